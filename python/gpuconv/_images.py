# SPDX-License-Identifier: MIT
"""Image files, and the comparison of images."""
import ctypes
import dataclasses
import os
import pathlib
import secrets
import shutil
from typing import Any

import numpy

from . import _arrays, _library
from ._context import Context, chosen_context

_NUMPY_TYPES = "uint8", "uint16", "float32"  # by enum gpuconv_type


# ---- Images ----

class _Decoded(_library.Object):
    """An image of the library. NumPy's arrays of its samples keep it."""

    def __init__(self, pointer):
        super().__init__(pointer, _library.image_free)

    @property
    def __array_interface__(self):
        view = _library.image_view(self)
        shape = (view.height, view.width) + ((view.channels,) if view.channels > 1 else ())
        typestr = numpy.dtype(_NUMPY_TYPES[view.type]).str
        return {"version": 3, "shape": shape, "typestr": typestr, "data": (view.data, False)}


class Image:
    """An image of a file: its samples, and its metadata.

    array: (H, W) for grey, else (H, W, C), of uint8 or uint16. C is 2 for grey and alpha, 3 for RGB, 4 for RGB and
        alpha. The samples may be written.
    format: of the file: "PNG", "JPEG", "PGM", "PPM", "PNM", "PAM", "WebP" or "TIFF".

    NumPy's functions take it as its array. filter() gives another Image with the same metadata, and write() writes
    these."""

    def __init__(self, array: numpy.ndarray, format: str, decoded: _Decoded) -> None:
        """For this package: read() makes images."""
        self.array, self.format, self._decoded = array, format, decoded

    def __array__(self, dtype=None, copy=None):
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def filtered(self, taps, options, out, context):
        """As filter(), with a Filter and struct gpuconv_options."""
        view = view_of(self, "input")
        result = _arrays.empty_for(self.array, view, taps, "hwc") if out is None else _arrays.output_array(out)
        options.curve_of = self._decoded._as_parameter_
        _library.apply(chosen_context(context), taps, view,
                       _arrays.view_of_output(result.__array_interface__, _arrays.HOST, "hwc"), options,
                       _library.Error())
        return Image(result, self.format, self._decoded) if out is None else out

    def __repr__(self):
        return f"<gpuconv.Image {self.format}, shape {self.array.shape}, {self.array.dtype}>"


def view_of(image, name):
    return _arrays.view_of(_arrays.host_array(image).__array_interface__, _arrays.HOST, "hwc", name)


# ---- Files ----

def read(source: "str | os.PathLike[str] | bytes | bytearray | memoryview", *, bits: int = 0,
         keep_orientation: bool = False, max_pixels: int = 0, context: Context | None = None) -> Image:
    """Read a PNG, JPEG, PNM, WebP or TIFF, as the command line does.

    source: a path, or the bytes of a file.
    bits: of the samples, 8 or 16; 0 is as in the file.
    keep_orientation: leave the rows as they are in the file; else the image is turned upright, as EXIF says.
    max_pixels: refuse a larger image: the memory that a small file may ask for is in its head. 0 is no limit.

    Raises ImageError for damaged and for unsupported files, OSError, MemoryError."""
    if isinstance(source, (str, os.PathLike)):
        source, name = pathlib.Path(source).read_bytes(), os.fsencode(source)
    else:
        name = None
    content = numpy.frombuffer(source, numpy.uint8)
    info = _library.FileInfo()
    options = _library.DecodeOptions(bits=bits, keep_orientation=bool(keep_orientation), name=name,
                                     max_pixels=max_pixels)
    decoded = _Decoded(_library.decode(chosen_context(context), content.ctypes.data, content.size, options,
                                       _library.Error()))
    _library.inspect(content.ctypes.data, content.size, info, _library.Error())
    return Image(numpy.asarray(decoded), info.format.decode(), decoded)


def encode(image: Any, format: str = "png", *, metadata: Image | None = None, quality: int = 0, subsampling: int = 0,
           progressive: bool = False, lossless: bool = False, compression: int = 0, background: int | None = None,
           context: Context | None = None) -> bytes:
    """The bytes of a file with an image: those that the command line writes.

    image: an Image, or an array on the host of (H, W) or (H, W, C), uint8 or uint16.
    format: "png", "jpg", "pgm", "ppm", "pnm", "pam", "webp" or "tif".
    metadata: the Image whose metadata are written; None is IMAGE itself, if it is an Image.
    quality: of a JPEG or lossy WebP, 1 to 100; 0 is 90.
    subsampling: of a JPEG: 444, 422, 420, 440 or 411; 0 is as in the file of the metadata, or by the quality.
    progressive: a JPEG in several scans.
    lossless: a WebP that keeps all samples.
    compression: of a PNG or TIFF, 1 to 9; 0 is 1; -1 is none.
    background: the colour below alpha, 0xRRGGBB, for formats without alpha; None is white.

    Raises ImageError if the format cannot hold the image, ValueError, TypeError, MemoryError."""
    metadata = image if metadata is None and isinstance(image, Image) else metadata
    metadata_of = None if metadata is None else _library.expect(metadata, Image, "metadata")._decoded._as_parameter_
    array = _arrays.host_array(image)
    options = _library.EncodeOptions(
        format=_library.text(format, "the format"), quality=quality, subsampling=subsampling,
        progressive=bool(progressive), compression=compression, background=background or 0,
        has_background=background is not None, metadata_of=metadata_of, lossless=bool(lossless))
    content, size = ctypes.c_void_p(), ctypes.c_size_t()
    _library.encode(chosen_context(context), view_of(array, "image"), options, content, size, _library.Error())
    try:
        return ctypes.string_at(content, size.value)
    finally:
        _library.free(content)


def write(path: "str | os.PathLike[str]", image: Any, **options: Any) -> None:
    """Write an image to a file, as the command line does. The suffix of the path is the format: .png, .jpg, .jpeg,
    .pgm, .ppm, .pnm, .pam, .webp, .tif or .tiff. The other arguments are those of encode().

    Raises what encode() raises, and OSError. The file is never half-written: the new one takes its place at once."""
    content = encode(image, pathlib.Path(path).suffix[1:] or "png", **options)
    target = pathlib.Path(os.path.realpath(path))  # a link stays a link
    exists = target.exists()
    if exists and not target.is_file():  # a pipe or a device
        target.write_bytes(content)
        return
    temporary = target.with_name(f".gpuconv-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        if exists:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


# ---- Compare ----

@dataclasses.dataclass(frozen=True)
class Comparison:
    """The differences of two images. It is true if no pixel differs by more than the tolerance."""

    same_shape: bool  # height, width, channels and type agree; else all below is 0
    tolerance: int  # in levels of the samples, as all levels here
    largest: int  # the largest difference of two samples
    largest_of: tuple[int, ...]  # the same, of each channel
    first: tuple[int, int] | None  # column and row of the first pixel that differs by more than the tolerance
    box: tuple[int, int, int, int] | None  # x, y, width, height of the smallest rectangle around all such pixels
    pixels: int  # the number of such pixels
    tolerated: int  # the number of pixels that differ by no more than the tolerance
    psnr: float  # in dB; infinite if all samples are equal
    ssim: float  # the mean structural similarity of the luma; NaN below 11 x 11 pixels

    def __bool__(self) -> bool:
        return self.same_shape and self.pixels == 0

    def __str__(self):
        if not self.same_shape:
            return "the images have other sizes, channels or types"
        if self.pixels == 0:
            return f"no pixel differs by more than {self.tolerance}; {self.tolerated} differ by up to {self.largest}"
        return (f"{self.pixels} pixels differ by more than {self.tolerance}, the most by {self.largest}; the first at "
                f"column {self.first[0]}, row {self.first[1]}")

    def __repr__(self):
        return f"<gpuconv.Comparison: {self}>"


def compare(expected: Any, actual: Any, tolerance: int = 0, *, context: Context | None = None) -> Comparison:
    """Compare two images as `gpuconv --compare --strict-channels` does: RGB with opaque alpha is not RGB.

    expected, actual: Images, or arrays on the host of (H, W) or (H, W, C), uint8 or uint16.
    tolerance: the difference that is allowed, in levels of the samples.

    In a test: `assert gpuconv.compare(expected, actual)`. See also gpuconv.testing.

    Raises ValueError, TypeError, MemoryError."""
    difference = _library.Difference()
    array = _arrays.host_array(expected)
    _library.compare(chosen_context(context), view_of(array, "expected image"), view_of(actual, "actual image"),
                     _library.integer(tolerance, "the tolerance"), difference, _library.Error())
    d, differs = difference, difference.pixels > 0
    channels = array.shape[2] if array.ndim > 2 else 1
    return Comparison(
        bool(d.same_shape), tolerance, d.largest, tuple(d.largest_of[:channels]),
        (d.first_x, d.first_y) if differs else None,
        (d.box_x, d.box_y, d.box_width, d.box_height) if differs else None, d.pixels, d.tolerated, d.psnr, d.ssim)


def difference(expected: Any, actual: Any) -> numpy.ndarray:
    """A picture that shows where and how much two images of one shape differ: black where they are equal."""
    pointer = _library.compare_picture(view_of(expected, "expected image"), view_of(actual, "actual image"),
                                       _library.Error())
    return numpy.asarray(_Decoded(pointer))
