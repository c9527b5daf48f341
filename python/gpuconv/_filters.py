# SPDX-License-Identifier: MIT
"""Filters, and their application to arrays."""
import ctypes
import functools
import json
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy

from . import _arrays, _library
from ._context import Context, chosen_context
from ._images import Image

Array = TypeVar("Array")  # of NumPy, CuPy, PyTorch, JAX...; or an Image

BORDERS = {"replicate": 0, "reflect": 1, "reflect101": 2, "wrap": 3, "zero": 4}  # enum gpuconv_border
ALPHAS = {"premultiply": 0, "keep": 1, "filter": 2}  # enum gpuconv_alpha


# ---- Filters ----

def _number(value):
    """VALUE as a filter file has it: an integer, a fraction, or a decimal without an exponent."""
    if isinstance(value, (int, numpy.integer)):
        return str(int(value))  # True is 1
    if isinstance(value, Fraction):
        return str(value)
    return format(Decimal(repr(float(value))), "f")


def _text_of(taps, scale, offset, anchor, absolute):
    try:
        rows = [list(row) for row in taps]
    except TypeError:
        raise TypeError(f"a filter is a {type(taps).__name__}; give a name, or rows of taps") from None
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("the taps are not a grid; give rows of equal length")
    lines = [f"scale {_number(scale)}", f"offset {_number(offset)}"]
    lines += ["abs"] if absolute else []
    lines += [f"anchor {anchor[0]} {anchor[1]}"] if anchor is not None else []
    return "\n".join(lines + [" ".join(map(_number, row)) for row in rows]) + "\n"


class Filter:
    """A filter, which never changes and may be used by several threads.

    source: a name as on the command line: "sharpen", "gaussian:2.5", the path of a file, or several of these, separated
        by commas. Or taps, row by row: integers, Fractions or floats, up to 127 x 127.

    Only with taps: out = clamp(round(sum of tap * in / scale + offset)). It is a correlation; see flip().

    scale: the divisor, at least 1.
    offset: in levels of 8 bits, also for images of 16 bits and of floats.
    anchor: (column, row) of the tap over the pixel; None is the middle.
    absolute: take the absolute value of the sum before it is divided.

    Raises ValueError if there is no such filter."""

    def __init__(self, source: "str | os.PathLike[str] | Sequence[Sequence[Any]] | numpy.ndarray", *, scale: int = 1,
                 offset: "float | Fraction" = 0, anchor: tuple[int, int] | None = None, absolute: bool = False) -> None:
        error = _library.Error()
        if isinstance(source, (str, os.PathLike)):
            if scale != 1 or offset != 0 or anchor is not None or absolute:
                raise TypeError("scale, offset, anchor and absolute are for taps; a named filter has its own")
            name = os.fspath(source)
            pointer = _library.filter_find(_library.text(source, "the filter"), error)
        else:
            text = _text_of(source, scale, offset, anchor, absolute).encode()
            name = f"{len(source)} x {len(source[0])} taps"
            pointer = _library.filter_parse(text, len(text), b"taps", error)
        remake = functools.partial(Filter, scale=scale, offset=offset, anchor=anchor, absolute=absolute)
        self._take(pointer, name, (remake, (source,)))

    def _take(self, pointer, name, remake):
        self._object = _library.Object(pointer, _library.filter_close)
        self._as_parameter_ = self._object._as_parameter_
        self._name, self._remake = name, remake
        self._info = _library.FilterInfo()
        _library.filter_describe(self, self._info)

    @classmethod
    def parse(cls, text: str, name: str = "filter") -> "Filter":
        """The filter of TEXT, the content of a filter file. NAME is for messages."""
        parsed, content = cls.__new__(cls), _library.expect(text, str, "the text").encode()
        pointer = _library.filter_parse(content, len(content), _library.text(name, "the name"), _library.Error())
        parsed._take(pointer, name, (Filter.parse, (text, name)))
        return parsed

    def flip(self) -> "Filter":
        """The filter with its taps turned by 180 degrees: the correlation with it is the convolution with this one."""
        flipped = Filter.__new__(Filter)
        flipped._take(_library.filter_flip(self, _library.Error()), f"{self._name}, flipped", (Filter.flip, (self,)))
        return flipped

    def __reduce__(self):
        return self._remake

    @property
    def margins(self) -> tuple[int, int, int, int]:
        """So many pixels on the left, on the right, above and below a pixel decide about its result."""
        info = self._info
        return info.left, info.right, info.above, info.below

    @property
    def exact(self) -> bool:
        """The taps are exact. Otherwise they were rounded once: see largest_error."""
        return bool(self._info.exact)

    @property
    def largest_error(self) -> float:
        """How far rounded taps move a result, in levels of 8 bits."""
        return self._info.largest_error

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The width and the height of what the filter makes of an image: they change with filters like "resize:50%"."""
        new = _library.integer(width, "the width"), _library.integer(height, "the height")
        _library.filter_size(self, *new, _library.Error())
        return new[0].value, new[1].value

    def _texts(self, as_json: bool) -> Iterator[str]:
        for index in range(self._info.count):
            text = _library.filter_text(self, index, as_json, _library.Error())
            try:
                yield ctypes.string_at(text).decode()
            finally:
                _library.free(text)

    def show(self) -> str:
        """What `gpuconv --show` prints: the taps, their accuracy, and how the filter is applied."""
        return "\n".join(self._texts(False))

    def describe(self) -> list[dict[str, Any]]:
        """What `gpuconv --show --json` prints, of each filter that is applied in turn."""
        return [json.loads(text) for text in self._texts(True)]

    def __repr__(self):
        return f"<gpuconv.Filter {self._name}>"


@functools.lru_cache(maxsize=256)
def _find(name):
    return Filter(name)


def filter_names() -> list[str]:
    """The names of the filters that are built in, without the parametric ones."""
    names: list[str] = []
    while (name := _library.filter_name(len(names))) is not None:
        names.append(name.decode())
    return names


# ---- Apply ----

def _value(values, key, what):
    if key not in values:
        raise ValueError(f"there is no {what} {key!r}; give {', '.join(map(repr, values))}")
    return values[key]


def _filter_on_device(image, interface, taps, options, layout, out, context):
    view = _arrays.view_of(interface, _arrays.DEVICE, layout, "input")
    result = _arrays.empty_on_device(image, interface, view, taps, layout) if out is None else out
    result_interface = getattr(result, "__cuda_array_interface__", None)
    if result_interface is None:
        raise TypeError("the image is on a GPU and the output is not; give one on the same GPU")
    target = _arrays.view_of_output(result_interface, _arrays.DEVICE, layout)
    if options.stream is None:
        options.stream = _arrays.current_stream(image, interface)
    _library.apply(chosen_context(context, _arrays.device_of(image)), taps, view, target, options, _library.Error())
    return result


def filter(image: Array, filter: Filter | str, *,
           border: Literal["replicate", "reflect", "reflect101", "wrap", "zero"] = "replicate",
           alpha: Literal["premultiply", "keep", "filter"] = "premultiply", linear: bool = False,
           layout: Literal["hwc", "chw"] = "hwc", out: Any = None, context: Context | None = None,
           stream: int | None = None) -> Array:
    """Apply a filter to an image, or to several, and return the result: of the same shape and type, in the same kind
    of array, on the same device. Filters such as "resize:50%" change the shape.

    image: an array of uint8, uint16 (in the machine's byte order) or float32 (0 is black, 1 is white): of NumPy,
        PyTorch, JAX, or of another library with a buffer, __array__ or __dlpack__; or an Image. On a GPU, an array of
        CuPy or PyTorch, or of another library with __cuda_array_interface__ if OUT is given. It may be a part of an
        array, transposed or padded: it is not copied. Strides must be positive: 0 is refused, too.
    filter: a Filter, or a name for one, such as "gaussian:2". A name is looked up once a process.
    border: what stands outside the image: "replicate" (aaa|abcd|ddd), "reflect" (cba|abcd|dcb), "reflect101"
        (dcb|abcd|cba), "wrap" (bcd|abcd|abc) or "zero" (000|abcd|000).
    alpha: how the last of 2 or 4 channels takes part: "premultiply" (filter alpha, and the colours multiplied by it),
        "keep" (copy it) or "filter" (filter it as any other, also for four channels without alpha).
    linear: filter in linear light. For uint8 and uint16. The curve is that of an Image's file, else sRGB.
    layout: "hwc" for (H, W), (H, W, C) and (N, H, W, C); "chw" for (H, W), (C, H, W) and (N, C, H, W). C is 1 to 4.
    out: the array for the result, of the image's shape (but see Filter.size) and type. It may be the image itself, unless it has N on a GPU.
    context: a Context; None is this thread's own.
    stream: for an image on a GPU, the address of the cudaStream_t. None is the one on which CuPy or PyTorch queue work
        at the moment; 1 is CUDA's legacy default stream.

    uint8 and uint16 become the bytes that the command line makes, on every machine. Floats are neither rounded nor
    clamped. On a GPU the work is queued, and the call returns at once: OUT and the image must stay until it is done. Only
    if colours are multiplied by alpha, it waits until it knows whether the image is opaque.

    Raises ValueError (a shape, stride, name or value), TypeError (a kind of array or of samples), GpuError,
    MemoryError."""
    taps = filter
    if not isinstance(filter, Filter):
        if not isinstance(filter, (str, os.PathLike)):
            raise TypeError(f"the filter is a {type(filter).__name__}; give a name, or gpuconv.Filter(taps)")
        taps = _find(filter)
    if stream is not None:
        stream = _library.integer(stream, "the stream", ctypes.c_size_t).value
    options = _library.Options(_value(BORDERS, border, "border"), _value(ALPHAS, alpha, "alpha"), bool(linear),
                               stream=stream)
    if isinstance(image, Image):
        return image.filtered(taps, options, out, context)
    interface = getattr(image, "__cuda_array_interface__", None)  # once: PyTorch makes it anew each time
    if interface is not None:
        return _filter_on_device(image, interface, taps, options, layout, out, context)
    array = _arrays.host_array(image)
    view = _arrays.view_of(array.__array_interface__, _arrays.HOST, layout, "input")
    result = _arrays.empty_for(array, view, taps, layout) if out is None else _arrays.output_array(out)
    target = _arrays.view_of_output(result.__array_interface__, _arrays.HOST, layout)
    _library.apply(chosen_context(context), taps, view, target, options, _library.Error())
    return _arrays.like_caller(result, image) if out is None else out
