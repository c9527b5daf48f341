# SPDX-License-Identifier: MIT
"""Image files, and the comparison of images."""
import ctypes
import dataclasses
import os
import pathlib
import secrets
import shutil
from typing import Any, BinaryIO

import numpy

from . import _arrays, _library
from ._context import Context, chosen_context

# The formats in which an option of encode() has an effect.
_JPEG, _OPAQUE = {b"jpg", b"jpeg"}, {b"jpg", b"jpeg", b"pgm", b"ppm", b"pnm"}
_SUFFIXES_OF = {"quality": _JPEG | {b"webp"}, "subsampling": _JPEG, "progressive": _JPEG, "lossless": {b"webp"},
                "compression": {b"png", b"tif", b"tiff"}, "background": _OPAQUE}
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

    def __repr__(self):
        return f"<gpuconv.Image {self.format}, shape {self.array.shape}, {self.array.dtype}>"


def view_of(image, name):
    """The View of one image. It keeps the array whose samples it has."""
    if hasattr(image, "__cuda_array_interface__"):
        raise TypeError(f"the {name} is on a GPU; copy it to the host")
    array = image.array if isinstance(image, Image) else _arrays.host_array(image, name)
    if array.ndim not in (2, 3):
        raise ValueError(f"the {name} has {array.ndim} dimensions; give (H, W) or (H, W, C)")
    if array.dtype.kind in "bf":
        raise TypeError(f"the {name} has samples of {array.dtype}; give uint8 or uint16, such as "
                        '(255 * image).round().astype("uint8")')
    array = _arrays.plain(array, name)
    view = _arrays.view_of(array.__array_interface__, _arrays.HOST, None, name)
    view.array = array
    return view


# ---- Files ----

def read(source: "str | os.PathLike[str] | BinaryIO | bytes | bytearray | memoryview", *, bits: int = 0,
         keep_orientation: bool = False, max_pixels: int = 0, context: Context | None = None) -> Image:
    """Read a PNG, JPEG, PNM, WebP or TIFF, as the command line does.

    source: a path, a file that is open for reading bytes, or the bytes of a file.
    bits: of the samples, 8 or 16; 0 is as in the file.
    keep_orientation: leave the rows as they are in the file; else the image is turned upright, as EXIF says.
    max_pixels: refuse a larger image: the memory that a small file may ask for is in its head. 0 is no limit.

    Raises ImageError for damaged and for unsupported files, OSError, MemoryError."""
    name = None
    if isinstance(source, (str, os.PathLike)):
        name = _library.text(source, "the path")
        with open(source, "rb") as file:
            source = file.read()
    elif hasattr(source, "read"):
        named = getattr(source, "name", None)  # a number, if it was opened by one
        name, source = _library.text(named, "the path") if isinstance(named, (str, bytes)) else None, source.read()
        if isinstance(source, str):
            raise TypeError("the file gives text; open it by open(path, 'rb')")
    try:
        content = numpy.frombuffer(source, numpy.uint8)
    except (TypeError, ValueError, BufferError):
        raise TypeError(f"the source is {_library.shown(source)}; give a path, a file that is open for reading, or the "
                        "bytes of a file") from None
    info = _library.FileInfo()
    options = _library.DecodeOptions(bits=bits, name=name, max_pixels=max_pixels,
                                     keep_orientation=_library.flag(keep_orientation, "keep_orientation"))
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
    suffix = _library.text(format, "the format")
    options = {"quality": quality, "subsampling": subsampling, "progressive": _library.flag(progressive, "progressive"),
               "lossless": _library.flag(lossless, "lossless"), "compression": compression, "background": background}
    for option, value in options.items():
        is_given = value is not None if option == "background" else bool(value)
        if is_given and suffix.lower() not in _SUFFIXES_OF[option]:
            raise ValueError(f"a file of the format {format!r} has no {option}; leave {option} out")
    options = _library.EncodeOptions(**dict(options, format=suffix, background=background or 0,
                                            has_background=background is not None, metadata_of=metadata_of))
    content, size = ctypes.c_void_p(), ctypes.c_size_t()
    _library.encode(chosen_context(context), view_of(image, "image"), options, content, size, _library.Error())
    try:
        return ctypes.string_at(content, size.value)
    finally:
        _library.free(content)


def write(path: "str | os.PathLike[str] | BinaryIO", image: Any, format: str | None = None, **options: Any) -> None:
    """Write an image to a file, as the command line does. The suffix of the path is the format: .png, .jpg, .jpeg,
    .pgm, .ppm, .pnm, .pam, .webp, .tif or .tiff. A path without one, and a file that is open for writing bytes, need
    FORMAT. The other arguments are those of encode().

    Raises what encode() raises, and OSError. The file is never half-written: the new one takes its place at once."""
    is_open = hasattr(path, "write")
    if not is_open:
        path = os.fsdecode(_library.text(path, "the path"))
    if format is None:
        format = "" if is_open else os.path.splitext(path)[1][1:]
        if not format:
            raise ValueError(f"{'an open file' if is_open else repr(path)} has no suffix that says the format; give "
                             "format='png'")
    content = encode(image, format, **options)
    if is_open:
        try:
            path.write(content)
        except TypeError:
            raise TypeError("the file takes text; open it by open(path, 'wb')") from None
        return
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


def _opened(image):
    """IMAGE, which is read if it is a path."""
    return read(image) if isinstance(image, (str, os.PathLike)) else image


def compare(expected: Any, actual: Any, tolerance: int = 0, *, context: Context | None = None) -> Comparison:
    """Compare two images as `gpuconv --compare --strict-channels` does: RGB with opaque alpha is not RGB.

    expected, actual: paths, Images, Pillow images, or arrays on the host of (H, W) or (H, W, C), uint8 or uint16.
    tolerance: the difference that is allowed, in levels of the samples.

    In a test: `assert gpuconv.compare(expected, actual)`. See also gpuconv.testing.

    Raises ValueError, TypeError, MemoryError."""
    difference = _library.Difference()
    expected, actual = _opened(expected), _opened(actual)
    view = view_of(expected, "expected image")
    _library.compare(chosen_context(context), view, view_of(actual, "actual image"),
                     _library.integer(tolerance, "the tolerance"), difference, _library.Error())
    d, differs = difference, difference.pixels > 0
    return Comparison(
        bool(d.same_shape), tolerance, d.largest, tuple(d.largest_of[:view.channels]),
        (d.first_x, d.first_y) if differs else None,
        (d.box_x, d.box_y, d.box_width, d.box_height) if differs else None, d.pixels, d.tolerated, d.psnr, d.ssim)


def difference(expected: Any, actual: Any) -> numpy.ndarray:
    """A picture that shows where and how much two images of one shape differ: black where they are equal."""
    expected, actual = _opened(expected), _opened(actual)
    pointer = _library.compare_picture(view_of(expected, "expected image"), view_of(actual, "actual image"),
                                       _library.Error())
    return numpy.asarray(_Decoded(pointer))
