# SPDX-License-Identifier: MIT
"""Golden images in tests: a test compares the image that it makes with one that was looked at before."""
import os
import pathlib
from typing import Any

from . import _images


def assert_images_equal(actual: Any, expected: Any, tolerance: int = 0, *,
                        folder: "str | os.PathLike[str]" = "gpuconv-differences") -> None:
    """Fail with an AssertionError if a pixel differs by more than TOLERANCE levels.

    actual: an Image, or an array on the host of (H, W) or (H, W, C), uint8 or uint16.
    expected: the same, or the path of a file.
    folder: for pictures of what differs: NAME.png is ACTUAL and NAME-difference.png shows where, where NAME is that of
        the file, or "image". It is made when it is needed. To accept ACTUAL, copy NAME.png over the expected file.

    Raises also what read() and compare() raise."""
    __tracebackhide__ = True  # pytest shows the test's line
    is_path = isinstance(expected, (str, os.PathLike))
    name = pathlib.Path(expected).stem if is_path else "image"
    pictures = {f"{name}.png": actual}
    if is_path and not os.path.exists(expected):
        problem = f"{expected} does not exist"
    else:
        golden = _images.read(expected) if is_path else expected
        comparison = _images.compare(golden, actual, tolerance)
        if comparison:
            return
        problem = f"{expected if is_path else 'the images'}: {comparison}"
        if comparison.same_shape:
            pictures[f"{name}-difference.png"] = _images.difference(golden, actual)
    os.makedirs(folder, exist_ok=True)
    for file, picture in pictures.items():
        _images.write(os.path.join(folder, file), picture)
    raise AssertionError(f"{problem}; see {', '.join(os.path.join(folder, file) for file in pictures)}")
