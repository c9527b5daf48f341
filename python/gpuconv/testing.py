# SPDX-License-Identifier: MIT
"""Golden images in tests: a test compares the image that it makes with one that was looked at before.

With `pytest_plugins = ["gpuconv.testing"]` in conftest.py, `pytest --update-images` accepts the new images."""
import fcntl
import html
import os
import pathlib
import re
from typing import Any

from . import _images

FOLDER = "gpuconv-differences"
_update = False  # --update-images was given


def assert_images_equal(actual: Any, expected: Any, tolerance: float = 0, *,
                        folder: "str | os.PathLike[str]" = FOLDER, **options: Any) -> None:
    """Fail with an AssertionError if compare() finds more than TOLERANCE and its other OPTIONS allow.

    actual: an Image, a Pillow image, or an array on the host of (H, W) or (H, W, C), uint8, uint16 or floats.
    expected: the same, or the path of a file.
    folder: for pictures of what differs: NAME.png is ACTUAL, NAME-expected.png and NAME-difference.png show the rest,
        where NAME is that of the file, or "image", and index.html shows all. It is made when it is needed. To accept
        ACTUAL, copy NAME.png over the expected file, or run pytest with --update-images.

    Raises also what read() and compare() raise."""
    __tracebackhide__ = True  # pytest shows the test's line
    is_path = isinstance(expected, (str, os.PathLike))
    exists = not is_path or os.path.exists(expected)
    problem = f"{expected} does not exist"
    pictures = {"": actual}
    if exists:
        golden = _images.read(expected) if is_path else expected
        comparison = _images.compare(golden, actual, tolerance, **options)
        if comparison:
            return
        problem = f"{expected if is_path else 'the images'}: {comparison}"
        pictures["-expected"] = golden
    layout = options.get("layout")
    if is_path and _update:
        os.makedirs(os.path.dirname(expected) or ".", exist_ok=True)
        _images.write(expected, _drawable(actual, layout) if layout else actual)
        return
    os.makedirs(folder, exist_ok=True)
    name = pathlib.Path(expected).stem if is_path else "image"
    pictures = {f"{name}{suffix}.png": _drawable(picture, layout) for suffix, picture in pictures.items()}
    if exists and comparison.same_shape:
        pictures[f"{name}-difference.png"] = _images.difference(*reversed(pictures.values()))
    for file, picture in pictures.items():
        _images.write(os.path.join(folder, file), picture)
    _show(pathlib.Path(folder, "index.html"), name, problem, pictures)
    raise AssertionError(f"{problem}; see {', '.join(os.path.join(folder, file) for file in pictures)}")


def _drawable(picture, layout):
    """PICTURE as write() takes it: floats from 0 to 1 become 8 bits."""
    floats = _images._floats_of(picture, "image", layout)
    if floats is None:
        return _images.upright(picture, layout)
    return (255 * floats.astype(float).clip(0, 1) + 0.5).astype("uint8")


def _show(page, name, problem, files):
    """Put a section about NAME into the page, in place of an older one. Processes of pytest-xdist take turns."""
    begin, end = f"<!-- {html.escape(name)} -->", "<!-- end -->\n"
    section = f"{begin}<h2>{html.escape(name)}</h2><p>{html.escape(problem)}</p>" + "".join(
        f'<img src="{html.escape(file)}" title="{html.escape(file)}">' for file in files) + end
    lock = os.open(page.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = page.read_text(encoding="utf-8") if page.exists() else \
            '<!DOCTYPE html><meta charset="utf-8"><title>Differences</title><style>img{max-width:32%}</style>\n'
        text = re.sub(re.escape(begin) + ".*?" + end, "", text, flags=re.S)
        page.write_text(text + section, encoding="utf-8")
    finally:
        os.close(lock)


# ---- The plugin of pytest ----

def pytest_addoption(parser):
    parser.getgroup("gpuconv").addoption("--update-images", action="store_true",
                                         help="write the images that differ over the expected files")


def pytest_configure(config):
    global _update
    _update = config.getoption("--update-images")
    if not hasattr(config, "workerinput"):  # the page of the last run
        pathlib.Path(FOLDER, "index.html").unlink(missing_ok=True)
