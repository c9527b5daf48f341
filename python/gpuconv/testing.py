# SPDX-License-Identifier: MIT
"""Golden images in tests: a test compares the image that it makes with one that was looked at before.

`pytest --update-images` accepts the new images; without the wheel, it needs `pytest_plugins = ["gpuconv.testing"]` in
conftest.py."""
import contextlib
import fcntl
import html
import operator
import os
import pathlib
import re
import shutil
import urllib.parse
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import gpuconv_pytest
import numpy

from . import _images

FOLDER = gpuconv_pytest.FOLDER
pytest_plugins = ["gpuconv_pytest"]


def assert_images_equal(actual: Any, expected: Any, tolerance: float = 0, *,
                        ignore: "Iterable[tuple[int, int, int, int]]" = (), mask: Any = None,
                        different: "int | str" = 0, strict_channels: bool = False,
                        folder: "str | os.PathLike[str]" = FOLDER, **options: Any) -> None:
    """Fail with an AssertionError if compare() finds more than TOLERANCE and its other OPTIONS allow.

    actual: an Image, a Pillow image, an array on the host of (H, W) or (H, W, C), uint8, uint16 or floats, or the path
        of a file.
    expected: an image of these kinds, or the path of a file.
    ignore: rectangles of (x, y, width, height) whose pixels may differ.
    mask: an image of the same size. Pixels that are black in it may differ.
    different: the number of pixels that may differ by more, or their share, such as 100 or "0.1%".
    strict_channels: as for compare(), but False if it is not given, as `gpuconv --compare` does.
    folder: for pictures of what differs: NAME.png is ACTUAL, NAME-expected.png and NAME-difference.png show the rest,
        and index.html shows all. NAME is the path of the expected file without .png, or the name of the test. The
        folder is made when it is needed. To accept ACTUAL, copy NAME.png over the expected file, or run pytest with
        --update-images.

    Raises also what read() and compare() raise."""
    __tracebackhide__ = True  # pytest shows the test's line
    is_path = _is_path(expected)
    exists = not is_path or os.path.exists(expected)
    problem = f"{expected} does not exist"
    layout = options.pop("layout", None)
    image = _images.upright(_opened(actual), layout)
    pictures = {"": image}
    if exists:
        golden = _images.upright(_opened(expected), layout)

        def compare(pair, count):
            return _images.compare(*pair, tolerance, strict_channels=strict_channels, different=count, **options)
        ignore, is_share = list(ignore), isinstance(different, str)
        comparison = compare((golden, image), 0 if is_share else different)
        if comparison.same_shape and (ignore or mask is not None or is_share):
            pair, count = _without_ignored(golden, image, ignore, mask)
            comparison = compare(pair, _count_of(different, count) if is_share else different)
        if comparison:
            if is_path and gpuconv_pytest.update and (comparison.tolerated or comparison.pixels or comparison.antialiased):
                gpuconv_pytest.accepted.append(("left", os.fspath(expected)))
            return
        problem = f"{expected if is_path else 'the images'}: {comparison}"
        pictures["-expected"] = golden
    if is_path and gpuconv_pytest.update:
        _accept(actual, _drawable(image) if layout else image, expected)
        return
    name = _name_of(expected if is_path else None)
    with _locked(folder):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        pictures = {f"{name}{suffix}.png": _drawable(picture) for suffix, picture in pictures.items()}
        if exists and comparison.same_shape:
            pictures[f"{name}-difference.png"] = _images.difference(*reversed(pictures.values()))
        for file, picture in pictures.items():
            _images.write(os.path.join(folder, file), picture)
        _show(pathlib.Path(folder, "index.html"), name, problem, pictures)
    raise AssertionError(f"{problem}; see {', '.join(os.path.join(folder, file) for file in pictures)}")


def _is_path(image):
    return isinstance(image, (str, os.PathLike))


def _opened(image):
    return _images.read(image) if _is_path(image) else image


def _count_of(different, count):
    """The share DIFFERENT as a number of pixels, of COUNT that are compared."""
    if not re.fullmatch(r"\d+(\.\d+)?%", different) or Fraction(different[:-1]) > 100:
        raise ValueError(f"different is {different!r}; give a number of pixels, or a share such as '0.1%'")
    return int(count * Fraction(different[:-1]) / 100)


def _without_ignored(golden, image, ignore, mask):
    """Both images, which have one shape, white where pixels are ignored, and the number of the other pixels."""
    arrays = [numpy.array(picture) for picture in (golden, image)]
    ignored = numpy.zeros(arrays[0].shape[:2], bool)
    for area in ignore:
        try:
            x, y, width, height = map(operator.index, area)
        except (TypeError, ValueError):
            x = -1
        if x < 0 or y < 0 or width < 1 or height < 1:
            raise ValueError(f"ignore has {area!r}; give rectangles of pixels, (x, y, width, height)")
        ignored[y:y + height, x:x + width] = True
    if mask is not None:
        levels = numpy.asarray(_opened(mask))
        if levels.shape[:2] != ignored.shape:
            raise ValueError(f"the mask has the shape {levels.shape}, and the expected image {arrays[0].shape}; give one "
                             "of its size")
        levels = levels.reshape(*ignored.shape, -1)
        ignored |= ~levels[..., :levels.shape[2] - (levels.shape[2] % 2 == 0)].any(axis=2)  # without alpha
    for array in arrays:
        array[ignored] = numpy.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    return arrays, int((~ignored).sum())


def _accept(actual, image, expected):
    """Make ACTUAL, which is IMAGE, the expected file."""
    os.makedirs(os.path.dirname(expected) or ".", exist_ok=True)
    if _is_path(actual) and pathlib.Path(actual).suffix == pathlib.Path(expected).suffix:
        shutil.copyfile(actual, expected)
    else:
        _images.write(expected, image)
    gpuconv_pytest.accepted.append(("wrote", os.fspath(expected)))


def _name_of(path):
    """The name of the pictures for the file PATH, or for the running test if that is None."""
    if path is None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "image").rpartition(" (")
        return re.sub(r"[^\w.]+", "-", test[0] or test[2]).strip("-.")
    path = pathlib.Path(os.path.abspath(path))
    try:
        parts = path.relative_to(os.getcwd()).parts
    except ValueError:
        parts = path.parts[1:]
    return os.path.join(*parts).removesuffix(".png")


def _drawable(picture):
    """PICTURE as write() takes it: floats from 0 to 1 become 8 bits."""
    floats = _images._floats_of(picture, "image")
    return picture if floats is None else (255 * floats.astype(float).clip(0, 1) + 0.5).astype("uint8")


@contextlib.contextmanager
def _locked(folder):
    """Make FOLDER, and let processes of pytest-xdist write to it one at a time."""
    os.makedirs(folder, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _show(page, name, problem, files):
    """Put a section about NAME into the page, instead of an older one."""
    begin, end = f"<!-- {html.escape(name)} -->", "<!-- end -->\n"
    captions = ("actual", "expected", "difference: black where both are equal")
    section = f"{begin}<h2>{html.escape(name)}</h2><p>{html.escape(problem)}</p>" + "".join(
        f'<figure><img src="{urllib.parse.quote(file)}"><figcaption>{caption}</figcaption></figure>'
        for file, caption in zip(files, captions)) + end
    text = page.read_text(encoding="utf-8") if page.exists() else (
        '<!DOCTYPE html><meta charset="utf-8"><title>Differences</title>\n<style>figure{display:inline-block;width:32%;'
        'margin:0 1% 0 0}img{max-width:100%}</style>\n')
    text = re.sub(re.escape(begin) + ".*?" + end, "", text, flags=re.S)
    page.write_text(text + section, encoding="utf-8")
