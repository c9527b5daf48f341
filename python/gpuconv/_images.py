# SPDX-License-Identifier: MIT
"""Image files, and the comparison of images."""
import concurrent.futures
import ctypes
import dataclasses
import io
import math
import os
import pathlib
import queue
import re
import secrets
import shutil
import sys
from decimal import Decimal
from typing import Any, BinaryIO, Literal

import numpy

from . import _arrays, _exif, _library, _lists
from ._context import Context, chosen_context

# The formats in which an option of encode() has an effect.
_JPEG, _OPAQUE = {b"jpg", b"jpeg"}, {b"jpg", b"jpeg", b"pgm", b"ppm", b"pnm"}
_LOSSLESS = {b"webp", b"avif"}
_SUFFIXES_OF = {"quality": _JPEG | _LOSSLESS, "subsampling": _JPEG, "progressive": _JPEG, "lossless": _LOSSLESS,
                "compression": {b"png", b"tif", b"tiff"}, "background": _OPAQUE}
_PLANAR = {None: False, "hwc": False, "chw": True}  # the layouts of one image
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
    format: of the file: "PNG", "JPEG", "PGM", "PPM", "PNM", "PAM", "WebP", "TIFF", "AVIF" or "HEIC".
    layout: of the array: None for (H, W, C); "chw" for (C, H, W), if read() was asked for that.

    Functions of NumPy, Pillow and PyTorch take it as its array. filter() gives another Image with the same metadata,
    and write() writes these. Two Images are equal if their samples are. It can be copied and sent to another process,
    with its metadata."""

    def __init__(self, array: numpy.ndarray, format: str, decoded: _Decoded, layout: str | None = None) -> None:
        """For this package: read() makes images."""
        self.array, self.format, self._decoded, self.layout = array, format, decoded, layout

    def _layout_as(self, layout):
        """The layout of the array. LAYOUT, which a call was given, is None or the same."""
        if layout not in (None, self.layout or "hwc"):
            raise ValueError(f"the Image has no layout {_library.shown(layout)}; leave layout out, or give its array")
        return self.layout

    def __eq__(self, other):
        if not isinstance(other, Image):
            return NotImplemented
        return self.dtype == other.dtype and numpy.array_equal(upright(self.array, self.layout),
                                                               upright(other.array, other.layout))

    __hash__ = None  # type: ignore[assignment]  # the samples may be written

    @property
    def __array_interface__(self):
        return dict(self.array.__array_interface__, strides=self.array.strides)  # Pillow then asks for tobytes()

    def tobytes(self) -> bytes:
        """The samples."""
        return self.array.tobytes()

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        return self.array[index]

    def __array__(self, dtype=None, copy=None):
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array: (H, W) or (H, W, C)."""
        return self.array.shape

    @property
    def size(self) -> tuple[int, int]:
        """The width and the height."""
        height, width = self.array.shape[-2:] if self.layout else self.array.shape[:2]
        return width, height

    @property
    def dtype(self) -> numpy.dtype:
        """That of the array: uint8 or uint16."""
        return self.array.dtype

    def _part(self, name):
        size = ctypes.c_size_t()
        pointer = _library.image_metadata(self._decoded, name, size)
        return ctypes.string_at(pointer, size.value) if pointer else b""

    @property
    def exif(self) -> bytes:
        """The EXIF of the file, a TIFF block, without what may show the picture; b"" if there is none."""
        return self._part(b"exif")

    @property
    def icc(self) -> bytes:
        """The ICC profile of the file; b"" if there is none."""
        return self._part(b"icc")

    @property
    def exif_dict(self) -> dict[str, Any]:
        """The tags of EXIF by their names, or as "0x9999": numbers, Fractions, strings, bytes, or tuples of these."""
        return _exif.parse(self.exif)

    def save(self, path: "str | os.PathLike[str] | BinaryIO", format: str | None = None, **options: Any) -> None:
        """As write()."""
        write(path, self, format, **options)

    def _repr_png_(self):
        """For notebooks: the picture, at most 1000 pixels wide and high."""
        from ._filters import filter
        return encode(filter(self, "resize:1000x1000") if max(self.size) > 1000 else self)

    def __reduce__(self):
        size, error = ctypes.c_size_t(), _library.Error()
        packed = _library.metadata_pack(self._decoded, size, error)
        try:
            return _restored, (self.array, self.format, ctypes.string_at(packed, size.value), self.layout)
        finally:
            _library.free(packed)

    def __repr__(self):
        return f"<gpuconv.Image {self.format}, shape {self.array.shape}, {self.array.dtype}>"


def _restored(array, format, packed, layout):
    return Image(array, format, _Decoded(_library.metadata_unpack(packed, len(packed), _library.Error())), layout)


def view_of(image, name, layout=None, takes_device=False):
    """The View of one image. It keeps the array whose samples it has."""
    if isinstance(image, Image):
        image, layout = image.array, image._layout_as(layout)
    if _arrays.is_on_device(image) and not takes_device:
        raise TypeError(f"the {name} is on a GPU; copy it to the host")
    array = image if _arrays.is_tensor(image) or _arrays.is_on_device(image) else \
        _arrays.host_array(image, name)
    if len(array.shape) not in (2, 3):
        raise ValueError(f"the {name} has {len(array.shape)} dimensions; give (H, W) or (H, W, C)")
    view = _arrays.input_view(array, layout, name)
    if view is None:
        array = _arrays.plain(_arrays.host_array(array, name), name)
        view = _arrays.host_view(array, layout, name)
    if view.type not in _arrays.LEVELS:
        form = ".to(torch.uint8)" if _arrays.is_tensor(image) else '.astype("uint8")'
        raise TypeError(f"the {name} has samples of {_arrays.kind_of(array.dtype)}; give uint8 or uint16, such as "
                        f"(255 * image).round(){form}")
    if view.count > 1:
        raise ValueError(f"the {name} has {view.count} channels; give 1 to 4, or one image at a time")
    view.layout = layout
    return view


def _pillow_metadata(image):
    """An Image that has the profile and the EXIF of an image of Pillow; None if it has none."""
    kept, file = {name: image.info[name] for name in ("icc_profile", "exif") if image.info.get(name)}, io.BytesIO()
    if not kept:
        return None
    sys.modules["PIL.Image"].new("RGB" if "RGB" in image.mode else "L", (1, 1)).save(file, "png", **kept)
    return read(file.getvalue(), keep_orientation=True)


# ---- Files ----

def _content_of(source, name=None):
    """The bytes of SOURCE, and its name, which is NAME if it has none."""
    if isinstance(source, (str, os.PathLike)):
        name = os.fsdecode(_library.text(source, "the path"))
        with open(source, "rb") as file:
            source = file.read()
    elif hasattr(source, "read"):
        named = getattr(source, "name", None)  # a number, if it was opened by one
        name = os.fsdecode(_library.text(named, "the path")) if isinstance(named, (str, bytes)) else name
        source = source.read()
        if isinstance(source, str):
            raise TypeError("the file is open as text; open it with open(path, 'rb')")
    try:
        return source if type(source) is bytes else numpy.frombuffer(source, numpy.uint8), name
    except (TypeError, ValueError, BufferError):
        raise TypeError(f"the source is {_library.shown(source)}; give a path, a file that is open for reading, or the "
                        "bytes of a file") from None


def read(source: Any, *, bits: int = 0, keep_orientation: bool = False, max_pixels: int = 0, page: int = 0,
         device: Any = None, layout: Literal["hwc", "chw"] | None = None, context: Context | None = None) -> Any:
    """Read a PNG, JPEG, PNM, WebP, TIFF, AVIF or HEIC, as the command line does; or many of them.

    source: a path, a file that is open for reading bytes, or the bytes of a file; or a list of these, for a list of
        results.
    bits: of the samples, 8 or 16; 0 is as in the file.
    keep_orientation: leave the rows as they are in the file; else the image is turned upright, as EXIF says.
    max_pixels: refuse a larger image: the memory that a small file may ask for is in its head. 0 is no limit.
    page: which page of a TIFF, frame of an animated WebP or picture of a HEIC or AVIF, from 1; 0 is the main picture.
    device: None gives an Image. "cuda" or "cuda:1" gives an array on that GPU, without metadata: of PyTorch if it is
        imported, else of CuPy. The GPU decodes JPEGs and PNGs, many small ones at once, to the same samples. Those of a
        list share memory.
    layout: of the array: "hwc" for (H, W, C), which None is, or "chw" for (C, H, W). Grey is (H, W).

    On a GPU the work is queued on the stream on which PyTorch or CuPy queue theirs, and the call waits for it.

    Raises ImageError for damaged and for unsupported files, of the first one in a list; OSError, MemoryError,
    GpuError."""
    is_list = isinstance(source, (list, tuple))
    options = _library.DecodeOptions(bits=bits, max_pixels=max_pixels, page=page,
                                     keep_orientation=_library.flag(keep_orientation, "keep_orientation"))
    sources = [(one, f"file {index} of the list") for index, one in enumerate(source)] if is_list else [(source, None)]
    if device is not None:
        arrays = _lists.decode([_content_of(*one) for one in sources], options, device, layout, context)
        return arrays if is_list else arrays[0]
    own, images = "chw" if _library.one_of(_PLANAR, layout, "layout") else None, []
    for decoded, format, error in _decode_all(sources, options, context):
        error.warn()
        array = numpy.asarray(decoded)
        array = numpy.ascontiguousarray(numpy.moveaxis(array, -1, 0)) if own and array.ndim == 3 else array
        images.append(Image(array, format, decoded, own))
    return images if is_list else images[0]


def _decode(source, options, context):
    content, name = _content_of(*source)
    content = numpy.frombuffer(content, numpy.uint8)
    info, error = _library.FileInfo(), _library.Error()
    options = type(options).from_buffer_copy(options)  # it has a name of its own
    options.name = None if name is None else os.fsencode(name)
    decoded = _Decoded(_library.decode(context, content.ctypes.data, content.size, options, error))
    _library.inspect(content.ctypes.data, content.size, info, _library.Error())
    return decoded, info.format.decode(), error


def _decode_all(sources, options, context):
    """Decode several at a time. They share the threads of the processors. A CONTEXT runs one call after the other."""
    processors = len(os.sched_getaffinity(0))
    workers = min(processors, len(sources))
    if context is not None or workers < 2:
        return [_decode(source, options, chosen_context(context)) for source in sources]
    contexts: queue.SimpleQueue[Context] = queue.SimpleQueue()
    for _ in range(workers):
        contexts.put(Context(threads=processors // workers))

    def decode(source):
        own = contexts.get()
        try:
            return _decode(source, options, own)
        finally:
            contexts.put(own)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(decode, sources))


# The numbers of the library for words of the command. Its 0 is the default, where --compression 0 is none.
_SUBSAMPLING = {":".join(str(ratio)): ratio for ratio in (444, 422, 420, 440, 411)} | {"keep": 0}
_COMPRESSION = {0: -1, "fast": -2}


def _number_of(value, words):
    """The library's number for VALUE, which may be one of WORDS. None is the default."""
    return 0 if value is None else words.get(value, value) if isinstance(value, (str, int, numpy.integer)) else value


def colour_of(value, name="background"):
    """0xRRGGBB of VALUE, such a number, or a word of the command: "white", "black", "#rgb" or "#rrggbb"."""
    if not isinstance(value, str):
        return value
    word = {"white": "#fff", "black": "#000"}.get(value.lower(), value)
    if not re.fullmatch("#([0-9a-fA-F]{3}){1,2}", word):
        raise ValueError(f"the {name} is {_library.shown(value)}; give 'white', 'black', '#rrggbb' or 0xRRGGBB")
    return int("".join(digit * (2 if len(word) == 4 else 1) for digit in word[1:]), 16)


def encode(image: Any, format: str = "png", *, metadata: Image | None = None, quality: int | None = None,
           subsampling: int | str | None = None, progressive: bool = False, lossless: bool = False,
           compression: int | str | None = None, background: int | str | None = None,
           layout: Literal["hwc", "chw"] | None = None, context: Context | None = None) -> Any:
    """The bytes of a file with an image: those that the command line writes.

    image: an Image, a Pillow image, or an array on the host of (H, W) or (H, W, C), uint8 or uint16; or such an array
        on a GPU, which encodes JPEGs and PNGs, many small ones at once; or a list of these, for a list of results.
    format: "png", "jpg", "pgm", "ppm", "pnm", "pam", "webp", "tif" or "avif".
    metadata: the Image whose metadata are written; None is IMAGE itself, if it is an Image, or the profile and the EXIF
        in the info of a Pillow image.
    quality: of a JPEG, lossy WebP or AVIF, 1 to 100; None is 90.
    subsampling: of a JPEG: "4:2:0" or 420, also 444, 422, 440 and 411; None is as in the file of the metadata, or by
        the quality.
    progressive: a JPEG in several scans.
    lossless: a WebP or AVIF that keeps all samples.
    compression: of a PNG or TIFF, 0 (none) to 9, or "fast", a level of PNGs; None is 1.
    background: the colour below alpha, for formats without alpha: "white", "#ff8000" or 0xff8000; None is white.
    layout: the layout of arrays: "hwc" for (H, W, C), which None is, or "chw" for (C, H, W).

    An array on a GPU is encoded on the stream on which PyTorch or CuPy queue theirs, and the call waits for it.

    Raises ImageError if the format cannot hold the image, ValueError, TypeError, MemoryError, GpuError."""
    is_list = isinstance(image, (list, tuple))
    images = list(image) if is_list else [image]
    if is_list and metadata is None and any(isinstance(one, Image) or _arrays.is_like(_arrays.PILLOW, one)
                                            for one in images):  # each has its own
        return [encode(one, format, quality=quality, subsampling=subsampling, progressive=progressive,
                       lossless=lossless, compression=compression, background=background, layout=layout,
                       context=context) for one in images]
    if metadata is None:
        metadata = image if isinstance(image, Image) else \
            _pillow_metadata(image) if _arrays.is_like(_arrays.PILLOW, image) else None
    metadata_of = None if metadata is None else _library.expect(metadata, Image, "metadata")._decoded._as_parameter_
    suffix = _library.text(format, "the format")
    options = {"quality": _number_of(quality, {}), "subsampling": _number_of(subsampling, _SUBSAMPLING),
               "progressive": _library.flag(progressive, "progressive"),
               "lossless": _library.flag(lossless, "lossless"), "compression": _number_of(compression, _COMPRESSION),
               "background": colour_of(background)}
    for option, value in options.items():
        is_given = value is not None if option == "background" else bool(value)
        if is_given and suffix.lower() not in _SUFFIXES_OF[option]:
            raise ValueError(f"a file of the format {format!r} has no {option}; leave {option} out")
    settings = _library.EncodeOptions(**dict(options, format=suffix, background=options["background"] or 0,
                                             has_background=background is not None, metadata_of=metadata_of))
    if is_list or _arrays.is_on_device(image):
        contents = _lists.encode(images, view_of, settings, layout, context)
        return contents if is_list else contents[0]
    _library.one_of(_PLANAR, layout, "layout")
    content, size, error = ctypes.c_void_p(), ctypes.c_size_t(), _library.Error()
    _library.encode(chosen_context(context), view_of(image, "image", layout), settings, content, size, error)
    try:
        error.warn()
        return ctypes.string_at(content, size.value)
    finally:
        _library.free(content)


def write(path: Any, image: Any, format: str | None = None, **options: Any) -> None:
    """Write an image to a file, as the command line does; or a list of images to a list of files. The suffix of the
    path is the format: .png, .jpg, .jpeg, .pgm, .ppm, .pnm, .pam, .webp, .tif, .tiff or .avif. A path without one,
    and a file that is open for writing bytes, need FORMAT. The other arguments are those of encode().

    Raises what encode() raises, and OSError. The file is never half-written: it appears as a whole."""
    if isinstance(path, (list, tuple)):
        _write_list(list(path), image, format, options)
    else:
        _write_content(path, encode(image, _format_of(path, format), **options))


def _format_of(path, format):
    name = "" if hasattr(path, "write") else os.fsdecode(_library.text(path, "the path"))
    format = os.path.splitext(name)[1][1:] or None if format is None else format
    if format is None:
        raise ValueError(f"{repr(name) if name else 'an open file'} has no suffix that says the format; give "
                         "format='png'")
    return format


def _write_list(paths, images, format, options):
    if not isinstance(images, (list, tuple)) or len(images) != len(paths):
        raise ValueError(f"there are {len(paths)} paths; give a list of as many images")
    formats = [_format_of(path, format) for path in paths]
    for one in dict.fromkeys(formats):  # those of a format at once
        chosen = [index for index, other in enumerate(formats) if other == one]
        for index, content in zip(chosen, encode([images[index] for index in chosen], one, **options)):
            _write_content(paths[index], content)


def _write_content(path, content):
    if hasattr(path, "write"):
        try:
            path.write(content)
        except TypeError:
            raise TypeError("the file is open as text; open it with open(path, 'wb')") from None
        return
    target = pathlib.Path(os.path.realpath(os.fsdecode(path)))  # a link stays a link
    exists = target.exists()
    if exists and not target.is_file():  # a pipe or a device
        target.write_bytes(content)
        return
    temporary = target.with_name(f".gpuconv-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as written:
            written.write(content)
        if exists:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


# ---- Compare ----

@dataclasses.dataclass(frozen=True)
class Comparison:
    """The differences of two images. It is true if they are within all that compare() was told to allow."""

    same_shape: bool  # height, width, channels (see strict_channels) and type agree; else all below is 0
    tolerance: float  # in levels of the samples, as all levels here
    largest: float  # the largest difference of two samples
    largest_of: tuple[float, ...]  # the largest difference of two samples, for each channel
    first: tuple[int, int] | None  # column and row of the first pixel that differs by more than the tolerance
    box: tuple[int, int, int, int] | None  # x, y, width, height of the smallest rectangle around all such pixels
    pixels: int  # the number of such pixels
    tolerated: int  # the number of pixels that differ by no more than the tolerance
    psnr: float  # in dB; infinite if all samples are equal
    ssim: float  # the mean structural similarity of the luma; NaN below 11 x 11 pixels, and for floats that differ
    antialiased: int = 0  # the number of pixels that were ignored because they are antialiased
    local_ssim: float = 1  # the lowest similarity of a window of 11 x 11 pixels
    beyond: bool = False  # the images differ by more than is allowed

    def __bool__(self) -> bool:
        return self.same_shape and not self.beyond

    def __str__(self):
        if not self.same_shape:
            return "the images have different sizes, channels or types"
        if self.pixels == 0 and self:
            return f"no pixel differs by more than {self.tolerance}; {self.tolerated} differ by up to {self.largest}"
        similar = "" if self.ssim == 1 else f"; PSNR {self.psnr:.2f} dB, SSIM {self.ssim:.4f}"
        if self.first is None:
            return f"no pixel differs by more than {self.tolerance}{similar}"
        return (f"{self.pixels} pixels differ by more than {self.tolerance}, the most by {self.largest}; the first at "
                f"column {self.first[0]}, row {self.first[1]}{similar}")

    def __repr__(self):
        return f"<gpuconv.Comparison: {self}>"


def _opened(image):
    """IMAGE, which is read if it is a path."""
    return read(image) if isinstance(image, (str, os.PathLike)) else image


def _floats_of(image, name, layout=None):
    """IMAGE as an array of (H, W) or (H, W, C), if it has floats or is True and False; else None."""
    if isinstance(image, Image) or _arrays.is_on_device(image):
        return None
    array = _arrays.host_array(image, name)
    if array.dtype.kind not in "bf" and array.dtype.name != "bfloat16" or array.size == 0:
        return None
    return upright(array, layout)


def upright(image, layout):
    """IMAGE, with its channels last if it is an array of LAYOUT."""
    if layout != "chw" or isinstance(image, Image) or _arrays.is_like(_arrays.PILLOW, image) or len(image.shape) != 3:
        return image
    return numpy.moveaxis(_arrays.host_array(image, "image"), 0, -1)


def _compare_floats(a, b, tolerance):
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind or a.ndim not in (2, 3):
        return Comparison(False, tolerance, 0, (), None, None, 0, 0, 0, 0)
    shape = a.shape[:2] + (-1,)
    a, b = a.astype("float64").reshape(shape), b.astype("float64").reshape(shape)
    with numpy.errstate(invalid="ignore"):
        differences = numpy.where(a == b, 0, numpy.abs(a - b))  # infinity is equal to itself
    rows, columns = numpy.nonzero((~(differences <= tolerance)).any(axis=2))  # also of NaN
    box, first = None, None
    if rows.size > 0:
        first = int(columns[0]), int(rows[0])
        left, top = int(columns.min()), int(rows.min())
        box = left, top, int(columns.max()) - left + 1, int(rows.max()) - top + 1
    square, largest = float((differences ** 2).mean()), float(differences.max())
    return Comparison(
        True, tolerance, largest, tuple(map(float, differences.max(axis=(0, 1)))), first, box, rows.size,
        int((differences != 0).any(axis=2).sum()) - rows.size,
        float("inf") if square == 0 else 10 * math.log10(1 / square) if square < float("inf") else -float("inf"),
        1 if largest == 0 else float("nan"), beyond=rows.size > 0)


def compare(expected: Any, actual: Any, tolerance: float = 0, *, strict_channels: bool = True,
            ignore_antialiasing: bool = False, ignore_transparent: bool = False, tolerance_yiq: float = 0,
            different: int | str = 0, min_psnr: float = 0, min_ssim: float = 0, min_local_ssim: float = 0,
            layout: Literal["hwc", "chw"] | None = None, context: Context | None = None) -> Comparison:
    """Compare two images as `gpuconv --compare` does, with its options.

    expected, actual: paths, Images, Pillow images, or arrays on the host of (H, W) or (H, W, C), uint8, uint16 or
        floats. NaN differs from everything.
    tolerance: the difference that is allowed, in levels of the samples: an integer, but for floats.
    strict_channels: opaque alpha, and grey as three equal channels, are a difference.
    layout: the layout of arrays: "hwc" for (H, W, C), which None is, or "chw" for (C, H, W).

    The others are not for floats:

    ignore_antialiasing: ignore pixels that differ only because edges were smoothed in another way.
    ignore_transparent: ignore pixels whose alpha is 0 in both images.
    tolerance_yiq: the largest difference of colours, up to 1, as eyes see it: pixelmatch's threshold.
    different: the number of pixels that may differ by more, or their share of those that are compared, such as "0.1%".
    min_psnr, min_ssim, min_local_ssim: the least PSNR in dB, or SSIM: any differences that leave it are allowed.
        Beside a tolerance, both count.

    In a test: `assert gpuconv.compare(expected, actual)`. See also gpuconv.testing.

    Raises ValueError, TypeError, MemoryError, and what read() raises."""
    expected, actual = _opened(expected), _opened(actual)
    flags = {"strict_channels": strict_channels, "ignore_antialiasing": ignore_antialiasing,
             "ignore_transparent": ignore_transparent}
    numbers = {"tolerance_yiq": tolerance_yiq, "min_psnr": min_psnr, "min_ssim": min_ssim,
               "min_local_ssim": min_local_ssim}
    flags = {name: _library.flag(value, name) for name, value in flags.items()}
    numbers = {name: _library.real(value, name) for name, value in numbers.items()}
    _library.one_of(_PLANAR, layout, "layout")
    floats = [_floats_of(expected, "expected image", layout), _floats_of(actual, "actual image", layout)]
    if floats[0] is not None and floats[1] is not None:
        given = [name for name, value in dict(flags, **numbers, different=different).items()
                 if value and name != "strict_channels"]
        if given:
            raise ValueError(f"{given[0]} is for uint8 and uint16, and these are floats; leave {given[0]} out")
        if not _library.real(tolerance, "the tolerance") >= 0:
            raise ValueError(f"the tolerance is {tolerance}; give 0 or more")
        return _compare_floats(floats[0], floats[1], tolerance)
    d, views = _library.Difference(), _views_of(expected, actual, layout)
    if isinstance(different, str):
        different = _share_of(different, views, flags["ignore_transparent"])
    options = _library.CompareOptions(tolerance=tolerance, different=different, **flags, **numbers)
    _library.compare_with(chosen_context(context), *views, options, d, _library.Error())
    counts = [view.channels for view in views]
    channels = (3 if max(counts) > 2 else 1) + any(count % 2 == 0 for count in counts)
    differs = d.pixels > 0
    return Comparison(
        bool(d.same_shape), tolerance, d.largest, tuple(d.largest_of[:channels]),
        (d.first_x, d.first_y) if differs else None,
        (d.box_x, d.box_y, d.box_width, d.box_height) if differs else None, d.pixels, d.tolerated, d.psnr, d.ssim,
        d.antialiased, d.local_ssim, bool(d.beyond))


def _views_of(expected, actual, layout):
    """The Views of two images. LAYOUT is that of arrays: an Image has its own."""
    return [view_of(image, name, None if isinstance(image, Image) or _arrays.is_like(_arrays.PILLOW, image) else layout)
            for image, name in ((expected, "expected image"), (actual, "actual image"))]


def _share_of(words, views, ignores_transparent):
    """How many of the pixels that are compared are a share such as "0.1%"."""
    match = re.fullmatch(r"([0-9]{1,3}(\.[0-9]{1,6})?)%", words)
    if match is None or not 0 < Decimal(match[1]) <= 100:
        raise ValueError(f"different is {_library.shown(words)}; give a number of pixels, or a share such as '0.1%'")
    count = views[0].width * views[0].height
    if ignores_transparent and all(view.channels in (2, 4) for view in views):
        hidden = [upright(numpy.asarray(view.array), view.layout)[..., -1] == 0 for view in views]
        count -= int((hidden[0] & hidden[1]).sum()) if hidden[0].shape == hidden[1].shape else 0
    return int(Decimal(match[1]) * count / 100)


def difference(expected: Any, actual: Any, *, layout: Literal["hwc", "chw"] | None = None) -> numpy.ndarray:
    """A picture that shows where and how much two images of one shape differ: black where they are equal. Images and
    LAYOUT are as for compare()."""
    expected, actual = _opened(expected), _opened(actual)
    _library.one_of(_PLANAR, layout, "layout")
    views = _views_of(expected, actual, layout)
    return numpy.asarray(_Decoded(_library.compare_picture(*views, _library.Error())))
