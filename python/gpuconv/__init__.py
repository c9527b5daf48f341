# SPDX-License-Identifier: MIT
"""Exact convolution of images, in memory, with the same bytes as the command gpuconv.

    import gpuconv
    blurred = gpuconv.filter(array, "gaussian:2")
    gpuconv.write("out.jpg", gpuconv.filter(gpuconv.read("photo.jpg"), "sharpen"))

The manual is docs/python.md."""
from . import _library
from ._context import Context, gpus
from ._errors import GpuError, ImageError, ImageWarning
from ._filters import Filter, filter, filter_names, pillow_resize
from ._images import Comparison, Image, compare, difference, encode, read, write
from ._preprocess import preprocess

__all__ = ["Comparison", "Context", "Filter", "GpuError", "Image", "ImageError", "ImageWarning", "compare",
           "difference", "encode", "filter", "filter_names", "gpus", "pillow_resize", "preprocess", "read", "write"]
__version__ = _library.version().decode()
