# SPDX-License-Identifier: MIT
"""Filters, and their application to arrays."""
import ctypes
import functools
import json
import math
import operator
import os
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy

from . import _arrays, _library
from ._context import Context, chosen_context, is_main_thread, run_interruptibly
from ._images import Image

Array = TypeVar("Array")  # an array of NumPy, CuPy, PyTorch, JAX...; or an Image
Taps = Sequence[Sequence[Any]] | Sequence[Any] | numpy.ndarray

_LONG = 1 << 20  # samples that take so long that Ctrl-C must be heard meanwhile; a thread's start takes 0.05 ms
BORDERS = {"replicate": 0, "reflect": 1, "reflect101": 2, "wrap": 3, "zero": 4}  # enum gpuconv_border
ALPHAS = {"premultiply": 0, "keep": 1, "filter": 2}  # enum gpuconv_alpha
_ALPHA_BY_TYPE = -1
_ALIKE = 8  # images of a list that one array filters faster
FLIPPED = "flipped\n"  # begins the key of a Filter that flip() has made


# ---- Filters ----

def _number(value, name):
    """VALUE as a filter file has it: an integer, a fraction, or a decimal without an exponent."""
    try:
        if isinstance(value, (int, numpy.integer)):
            return str(int(value))  # True is 1
        if isinstance(value, (str, bytes)):
            raise TypeError
        decimal = value if isinstance(value, (Decimal, Fraction)) else Decimal(repr(float(value)))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} is {_library.shown(value)}; give an integer, a Fraction or a float") from None
    if isinstance(decimal, Fraction):
        return str(decimal)
    if not decimal.is_finite():
        raise ValueError(f"{name} is {value}; give a finite number")
    return format(decimal, "f")


def _rows_of(taps):
    """The rows of TAPS, each a list. A list of numbers is one row."""
    if isinstance(taps, (bytes, bytearray, dict, set)) or not hasattr(taps, "__iter__"):
        raise TypeError(f"the filter is {_library.shown(taps)}; give a name such as 'gaussian:2', or rows of taps")
    try:
        rows = [list(row) if hasattr(row, "__iter__") and not isinstance(row, (str, bytes)) else row for row in taps]
    except TypeError:  # an array without dimensions
        rows = []
    if rows and all(isinstance(row, Filter) or isinstance(row, str) and row[:1].isalpha() for row in rows):
        raise TypeError("the filter is a list of filters; give one name, such as 'blur,edge', or filter once for each")
    rows = [rows] if rows and not any(isinstance(row, list) for row in rows) else rows
    if not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) > 0 for row in rows):
        raise ValueError("the taps are not a grid; give rows of equal length")
    if len(rows) > 127 or len(rows[0]) > 127:
        raise ValueError(f"the filter has {len(rows)} x {len(rows[0])} taps; give up to 127 x 127")
    return rows


def _text_of(taps, scale=None, offset=0, anchor=None, absolute=False):
    rows = _rows_of(taps)
    lines = [f"offset {_number(offset, 'the offset')}"]
    lines += [f"scale {_number(scale, 'the scale')}"] if scale is not None else []
    lines += ["abs"] if _library.flag(absolute, "absolute") else []
    if anchor is not None:
        try:
            column, row = map(operator.index, anchor)
        except (TypeError, ValueError):
            raise TypeError(f"the anchor is {_library.shown(anchor)}; give (column, row), two integers") from None
        if not (0 <= column < len(rows[0]) and 0 <= row < len(rows)):
            raise ValueError(f"the anchor is ({column}, {row}); give a column and a row of the taps, counted from 0")
        lines.append(f"anchor {column} {row}")
    return "\n".join(lines + [" ".join(_number(tap, "a tap") for tap in row) for row in rows]) + "\n"


class Filter:
    """A filter, which never changes and may be used by several threads.

    source: a name as on the command line: "sharpen", "gaussian:2.5", the path of a file, or several of these, separated
        by commas. Or taps, row by row, or one row: integers, Fractions or floats, up to 127 x 127. Floats are read as
        the decimals of a filter file are.

    Only with taps: out = clamp(round(sum of tap * in / scale + offset)). It is a correlation; see flip().

    scale: the divisor. None is 1, with an ImageWarning if the taps seem to lack one.
    offset: in levels of 8 bits, also for images of 16 bits and of floats.
    anchor: (column, row) of the tap over the pixel; None is the middle.
    absolute: take the absolute value of the sum before it is divided.

    Raises ValueError if there is no such filter."""

    def __init__(self, source: "Taps | str | os.PathLike[str]", *,
                 scale: "float | Fraction | None" = None,
                 offset: "float | Fraction" = 0, anchor: tuple[int, int] | None = None,
                 absolute: bool = False) -> None:
        error = _library.Error()
        if isinstance(source, (str, os.PathLike)):
            if scale is not None or offset != 0 or anchor is not None or absolute:
                raise TypeError("scale, offset, anchor and absolute are for taps; a named filter has its own")
            key = name = os.fsdecode(source)
            pointer = _library.filter_find(_library.text(source, "the filter"), error)
        else:
            key, name = _text_of(source, scale, offset, anchor, absolute), "taps"
            pointer = _library.filter_parse(key.encode(), len(key), b"taps", error)
        self._take(pointer, name, key)
        error.warn()

    def _take(self, pointer, name, key):
        self._object = _library.Object(pointer, _library.filter_close)
        self._as_parameter_ = self._object._as_parameter_
        self._name, self._key = name, key  # of_key() makes it again from its key
        self._info = _library.FilterInfo()
        _library.filter_describe(self, self._info)

    @classmethod
    def parse(cls, text: str, name: str = "filter") -> "Filter":
        """The filter of TEXT, the content of a filter file. NAME is for messages."""
        parsed, content = cls.__new__(cls), _library.expect(text, str, "the text").encode()
        error = _library.Error()
        pointer = _library.filter_parse(content, len(content), _library.text(name, "the name"), error)
        parsed._take(pointer, name, text if text.endswith("\n") else text + "\n")
        error.warn()
        return parsed

    def flip(self) -> "Filter":
        """The filter with its taps turned by 180 degrees: the correlation with it is the convolution with this one."""
        flipped = Filter.__new__(Filter)
        flipped._take(_library.filter_flip(self, _library.Error()), f"{self._name}, flipped", FLIPPED + self._key)
        return flipped

    def __copy__(self):
        return self  # it never changes

    def __deepcopy__(self, _memo):
        return self

    def __reduce__(self):
        return _remade, (self._key, self._name)

    @property
    def margins(self) -> tuple[int, int, int, int]:
        """The pixels on the left, on the right, above and below a pixel that decide about its result: four numbers."""
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
        """What `gpuconv --show --json` prints, of each filter of the chain."""
        return [json.loads(text) for text in self._texts(True)]

    def __repr__(self):
        return f"<gpuconv.Filter {self._name}>"


def _remade(key, name="taps"):
    """The Filter of a key: of a name, or of text of taps, which has NAME."""
    if isinstance(key, str) and key.startswith(FLIPPED):
        return _remade(key.removeprefix(FLIPPED), name.removesuffix(", flipped")).flip()
    return Filter.parse(key, name) if isinstance(key, str) and "\n" in key else Filter(key)


of_key = functools.lru_cache(maxsize=256)(_remade)


def filter_of(source):
    """The Filter of a name or of taps."""
    return source if isinstance(source, Filter) else of_key(
        source if isinstance(source, (str, os.PathLike)) else _text_of(source))


def filter_names() -> list[str]:
    """The names of the filters that are built in, without the parametric ones."""
    names: list[str] = []
    while (name := _library.filter_name(len(names))) is not None:
        names.append(name.decode())
    return names


# ---- Apply ----

def _apply(context, taps, views, targets, options, type, is_long):
    """Filter VIEWS, one or several, to TARGETS. TYPE is that of their samples. Ctrl-C ends a call that IS_LONG."""
    if options.alpha == _ALPHA_BY_TYPE:
        options.alpha = ALPHAS["premultiply" if type in _arrays.LEVELS else "filter"]
    if options.linear and type not in _arrays.LEVELS:
        raise ValueError("linear is for uint8 and uint16; convert floats to linear light before, and leave linear out")
    error = _library.Error()
    arguments = context, taps, views, targets, getattr(views, "_length_", 1), options, error
    if is_long and is_main_thread():
        run_interruptibly(context, options, functools.partial(_library.apply_list, *arguments))
    else:
        _library.apply_list(*arguments)
    error.warn()


def _apply_to_view(context, taps, view, target, options):
    _apply(context, taps, view, target, options, view.type, view.memory == _arrays.HOST and
           view.width * view.height * view.channels * view.count >= _LONG)


def _filter_directly(view, taps, options, layout, out, context):
    """Filter an array whose direct View is VIEW. None if OUT is on the host, and is no such array."""
    image, is_on_device = view.array, view.memory == _arrays.DEVICE
    result = _arrays.empty_like(image, view, taps, layout) if out is None else out
    target = _arrays.direct_view(result, layout, "output")
    if is_on_device and not _arrays.is_on_device(result):
        raise TypeError("the image is on a GPU and the output is not; give an output on the same GPU")
    if target is None:
        if out is None or not _arrays.is_tensor(out) and not is_on_device:
            return None
        return _arrays.store_directly(_filter_directly(view, taps, options, layout, None, context), out)
    if is_on_device:
        if options.stream is None:
            options.stream = _arrays.current_stream(image)
        context = chosen_context(context, _arrays.device_of(image))
    _apply_to_view(chosen_context(context), taps, view, target, options)
    return result


def _operator_for(image):
    """gpuconv.torch.filter, if IMAGE is a tensor that PyTorch follows: to compile a function, or for a gradient."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(image, torch.Tensor) or not hasattr(torch.library, "custom_op"):
        return None
    if not torch.compiler.is_compiling():
        forward = torch.autograd.forward_ad
        if torch._C._functorch.is_functorch_wrapped_tensor(image) or \
                forward._current_level >= 0 and forward.unpack_dual(image).tangent is not None:
            raise TypeError("vmap, the transforms of torch.func and forward gradients do not know this filter; give a "
                            "batch instead, such as (N, C, H, W) with layout='chw', or use backward()")
        if type(image) in (torch.Tensor, torch.nn.Parameter) and not (image.requires_grad and torch.is_grad_enabled()):
            return None
    from .torch import filter
    return filter


def _apart(images, out):
    """IMAGES. An image is copied if an earlier output would overwrite it."""
    if len(images) < 2:
        return images
    begins, ends = numpy.array([_arrays.bounds(target, "output") for target in out]).T
    apart = []
    for index, image in enumerate(images):
        array = image.array if isinstance(image, Image) else image
        begin, end = _arrays.bounds(array, "input")
        overlaps = ((begins[:index] < end) & (ends[:index] > begin)).any()
        apart.append(_arrays.copied(array, "input") if overlaps else image)
    return apart


def _filter_list(images, source, out, options):
    """A result for each image."""
    if any(isinstance(image, (list, tuple, int, float)) for image in images):
        raise TypeError("the list has lists or numbers, not images; give numpy.array(...) for one image")
    is_followed = any(_operator_for(image) is not None for image in images)
    if out is None:
        return [filter(image, source, **options) for image in images] if is_followed or not images else \
            _filter_many(images, filter_of(source), options)
    if not isinstance(out, (list, tuple)) or len(out) != len(images):
        raise ValueError(f"there are {len(images)} images; give a list of as many outputs")
    if is_followed:  # nobody can ask for addresses
        for target, result in zip(out, _filter_list(images, source, None, options)):
            target[...] = result
        return out
    for image, target in zip(_apart(images, out), out):
        filter(image, source, out=target, **options)
    return out


def _filter_many(images, taps, options):
    """A result for each of IMAGES. Those on a GPU that are alike become one array. One call filters the others that the
    library takes as they are, or several: for each GPU and the host, and for levels and floats."""
    layout, stream = options["layout"], options["stream"]
    _library.one_of(_arrays.AXES, layout, "layout")
    alike: dict[int, Any] = {}
    made: dict[Any, list[int]] = {}
    calls: dict[Any, list[int]] = {}
    rows, addresses, results = [bytes(_library.View())] * len(images), [0] * len(images), [None] * len(images)

    def set_results(indices, parts):
        for index, part in zip(indices, parts):
            results[index] = part

    for index, image in enumerate(images):
        kind, addresses[index] = _arrays.kind_in_list(image, layout, taps)
        alike.setdefault(id(kind), (kind, []))[1].append(index)
    for kind, indices in alike.values():
        row, group, is_small = kind or (None, (None,), False)
        if row is None or stream is not None and group[0] is None:
            set_results(indices, [filter(images[index], taps, **options) for index in indices])
        elif group[0] is not None and is_small and len(indices) >= _ALIKE and stream is None:
            stack = _arrays.stack([images[index] for index in indices])
            stack = filter(stack, taps, **dict(options, layout="nhw" if len(stack.shape) == 3 else layout))
            set_results(indices, _arrays.parts_of(stack))
        elif is_small:
            made.setdefault(group, []).extend(indices)
        else:
            made |= {(*group, index): [index] for index in indices}
        for index in indices:
            rows[index] = row or rows[index]
    views = _arrays.table_of(rows, addresses)
    targets = numpy.zeros_like(views)
    for group, indices in made.items():
        parts, targets[indices] = _arrays.many_empty(len(indices), images[indices[0]], group[3], layout)
        set_results(indices, parts)
        calls.setdefault((group[0], views["type"][indices[0]] in _arrays.LEVELS), []).extend(indices)
    for (gpu, _), indices in calls.items():
        ins, outs, array = views[indices], targets[indices], _library.View * len(indices)
        settings = _options_of(**{name: options[name] for name in ("border", "alpha", "linear", "layout", "stream")})
        if gpu is not None and stream is None:
            settings.stream = _arrays.current_stream(images[indices[0]])
        _apply(chosen_context(options["context"], gpu), taps, array.from_buffer(ins), array.from_buffer(outs), settings,
               ins["type"][0], gpu is None and sum(math.prod(images[index].shape) for index in indices) >= _LONG)
    return results


def _options_of(border, alpha, linear, layout, stream):
    if stream is not None:
        stream = _library.integer(stream, "the stream", ctypes.c_size_t).value
    _library.one_of(_arrays.AXES, layout, "layout")
    return _library.Options(_library.one_of(BORDERS, border, "border"), _ALPHA_BY_TYPE if alpha is None else
                            _library.one_of(ALPHAS, alpha, "alpha"), _library.flag(linear, "linear"), stream=stream)


def filter_now(image, source, border, alpha, linear, layout, out, context, stream):
    """As filter(), of one array, without PyTorch's operator."""
    if isinstance(image, (str, Filter)) and not isinstance(source, (str, Filter)):
        raise TypeError(f"the image is {_library.shown(image)}; give the image first, and then the filter")
    taps = filter_of(source)
    options = _options_of(border, alpha, linear, layout, stream)
    is_image = isinstance(image, Image)
    if is_image:
        layout, options.curve_of = image._layout_as(layout), image._decoded._as_parameter_
        options.image = image  # keeps the curve
    elif layout not in (None, "hwc") and _arrays.is_like(_arrays.PILLOW, image):
        raise ValueError(f"an image of Pillow has no layout {_library.shown(layout)}; leave layout out")
    array = image.array if is_image else image
    view = _arrays.input_view(array, layout, "input")
    if stream is not None and (view is None or view.memory == _arrays.HOST):
        raise ValueError("a CUDA stream is for images on a GPU, and the image is on the host; leave stream out")
    result = None if view is None else _filter_directly(view, taps, options, layout, out, context)
    if result is None:
        context = chosen_context(context)
        result = _arrays.filter_host(_arrays.host_array(array, "input"), layout, out, taps,
                                     lambda view, target: _apply_to_view(context, taps, view, target, options))
        result = result if is_image or out is not None else _arrays.like_caller(result, image)
    if out is not None:
        return out
    return Image(result, image.format, image._decoded, image.layout) if is_image else result


def filter(image: Array, filter: "Filter | Taps | str | os.PathLike[str]", *,
           border: Literal["replicate", "reflect", "reflect101", "wrap", "zero"] = "replicate",
           alpha: Literal["premultiply", "keep", "filter"] | None = None, linear: bool = False,
           layout: Literal["hwc", "chw", "nhw"] | None = None, out: Any = None, context: Context | None = None,
           stream: int | None = None) -> Array:
    """Apply a filter to an image, or to several, and return the result: of the same shape and type, in the same kind
    of array, on the same device. Filters such as "resize:50%" change the shape.

    image: an array of uint8, uint16 or floats (0 is black, 1 is white): of NumPy, PyTorch, JAX, or of another library
        with a buffer, __array__ or __dlpack__; an Image; or a Pillow image of mode L, LA, RGB, RGBA, I;16 or F. On a
        GPU, an array of CuPy or PyTorch, or of another library with __cuda_array_interface__ if OUT is given. It may be
        a part of an array, transposed or padded: it is not copied. Arrays with strides of 0 or below are copied.
        float64, float16, bfloat16 and bool (0 and 1) are computed as float32, and come back as they came: see the table
        in docs/python.md. A list of these gives a list, mostly by one call of the library. Results of one shape share
        memory, unless they are large.
    filter: a Filter, or a name for one, such as "gaussian:2", or taps, such as numpy.ones((3, 3)) / 9. A name is looked
        up once a process.
    border: what stands outside the image: "replicate" (aaa|abcd|ddd), "reflect" (cba|abcd|dcb), "reflect101"
        (dcb|abcd|cba), "wrap" (bcd|abcd|abc) or "zero" (000|abcd|000).
    alpha: how the last of 2 or 4 channels takes part: "premultiply" (filter alpha, and the colours multiplied by it),
        "keep" (copy it) or "filter" (filter it as any other, also for four channels without alpha). None is
        "premultiply" for uint8 and uint16, which are pictures, and "filter" for floats and bool, which may be anything.
    linear: filter in linear light. For uint8 and uint16. The curve is that of an Image's file, else sRGB.
    layout: "hwc" for (H, W), (H, W, C) and (N, H, W, C); "chw" for (H, W), (C, H, W) and (N, C, H, W); "nhw" for a
        stack (N, H, W). None is "hwc" with up to 4 channels. More than 4 are filtered as images of their own.
    out: the array for the result, of the image's shape (but see Filter.size) and type. It may be the image itself,
        unless it has N on a GPU. For a list of images it is a list, and may have these.
    context: a Context; None is this thread's own.
    stream: for an image on a GPU, the address of the cudaStream_t. None is the one on which CuPy or PyTorch queue work
        at the moment; 1 is CUDA's legacy default stream.

    uint8 and uint16 become the bytes that the command line makes, on every machine. Floats are neither rounded nor
    clamped. On a GPU the work is queued, and the call returns at once: OUT and the image must stay until it is done.
    If colours are multiplied by alpha, it waits until it knows whether the image is opaque; and it waits for a list of
    pictures that are resized from many sizes.

    From PyTorch 2.4 on, tensors of floats have a gradient, if the filter is linear and not "premultiply" asked for, and
    torch.compile and torch.export keep the call in their graphs: as the operator gpuconv::filter.

    Raises ValueError (a shape, stride, name or value), TypeError (a kind of array or of samples), GpuError,
    MemoryError."""
    if isinstance(image, (list, tuple)):
        return _filter_list(image, filter, out, {"border": border, "alpha": alpha, "linear": linear, "layout": layout,
                                                 "context": context, "stream": stream})
    operator = _operator_for(image)
    if operator is not None:
        return operator(image, filter, border, alpha, linear, layout, out, context, stream)
    return filter_now(image, filter, border, alpha, linear, layout, out, context, stream)


# ---- Pillow ----

def pillow_resize(image: Array, size: tuple[int, int], kernel: str, *,
                  box: "tuple[float, float, float, float] | None" = None,
                  reducing_gap: float | None = None) -> Array:
    """What image.resize(size, ...) of Pillow makes, to the last bit, without Pillow: a new array, or Pillow image.

    image: an array on the host, (H, W) or (H, W, C), of uint8 with up to 4 channels (L, LA, RGB and RGBA), or of uint16
        or float32 with one (I;16 and F); or a Pillow image of these modes.
    size: the new (width, height).
    kernel: "pillow-bicubic" is BICUBIC of Pillow 13, and "pillow12-bicubic" that of Pillow up to 12. Also -nearest,
        -box, -bilinear, -hamming and -lanczos, and pillow-mks2013 and pillow-mks2021.
    box: the part that is resized: (left, upper, right, lower), with fractions. None is the whole image.
    reducing_gap: reduce the image by Image.reduce before, but not below this multiple of the size, 1 or more.

    Raises ValueError, TypeError, MemoryError."""
    if _arrays.is_on_device(image):
        raise TypeError("the image is on a GPU; copy it to the host, or use filter() with 'resize:WxH:exact:KERNEL'")
    array = _arrays.host_array(image, "input")
    source = _arrays.plain(array, "input")
    if numpy.shape(size) != (2,) or box is not None and numpy.shape(box) != (4,) or source.ndim not in (2, 3):
        raise ValueError(f"the size is {size}, the box {box}, and the image has {source.ndim} dimensions; give (width, "
                         "height), 4 numbers or None, and an array (H, W) or (H, W, C)")
    width, height = (_library.integer(side, "a side of the size", ctypes.c_uint32).value for side in size)
    edges = None if box is None else (ctypes.c_double * 4)(*(_library.real(edge, "an edge of the box") for edge in box))
    gap = 0.0 if reducing_gap is None else _library.real(reducing_gap, "reducing_gap")
    if reducing_gap is not None and not gap >= 1:
        raise ValueError(f"reducing_gap is {reducing_gap}; give 1 or more, or None")
    result = numpy.empty((height, width, *source.shape[2:]), source.dtype)
    _library.pillow_resize(_library.text(kernel, "the kernel"), _arrays.host_view(source, "hwc", "input"),
                           _arrays.host_view(result, "hwc", "output"), edges, gap, _library.Error())
    return _arrays.like_caller(result.astype(array.dtype, copy=False), image)
