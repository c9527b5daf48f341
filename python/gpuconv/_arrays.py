# SPDX-License-Identifier: MIT
"""Arrays of the caller as views of the library, without a copy where that is possible."""
import ctypes
import functools
import math
import sys
from typing import Any

import numpy

from . import _library
from ._library import View

HOST, DEVICE = 0, 1  # enum gpuconv_memory
LEVELS = 0, 1  # the types of enum gpuconv_type that have levels: samples of files, and of linear light
_ROUNDED = "computed as float32, and rounded once more; a result that is too large becomes infinite"
# The kinds of samples, by their names in NumPy and PyTorch: the number in enum gpuconv_type, bytes, and what happens on
# the host and on a GPU alike. All others are refused(). docs/python.md shows this table; a test compares them.
SAMPLES = {
    "uint8": (0, 1, "as it is, and exact"), "uint16": (1, 2, "as it is, and exact"), "float32": (2, 4, "as it is"),
    "float16": (3, 2, _ROUNDED), "bfloat16": (4, 2, _ROUNDED),
    "float64": (5, 8, "computed as float32; or a `ValueError`: `the input has samples that float32 cannot store; "
                "divide them`"),
    "bool": (6, 1, "computed as 0 and 1 of float32; or a `ValueError`: `the result is not only True and False, so "
             "bool cannot store it; give the image as float32`")}
# The indices of rows, columns, channels and images in a shape. Channels of more than 4 are images, too.
AXES: dict[str | None, dict[int, Any]] = {
    "hwc": {2: (0, 1, None, None), 3: (0, 1, 2, None), 4: (1, 2, 3, 0)},
    "chw": {2: (0, 1, None, None), 3: (1, 2, 0, None), 4: (2, 3, 1, 0)},
    "nhw": {2: (0, 1, None, None), 3: (1, 2, None, 0)}}
AXES[None] = AXES["hwc"]
_INT_MAX = 0x7FFFFFFF
_KEPT = 1 << 13  # geometries that are kept: a list may have as many sizes as images, and the next one the same


# ---- Views ----

def _contiguous(shape, size):
    strides = []
    for count in reversed(shape):
        strides.insert(0, size)
        size *= count
    return strides


def axes_of(shape, layout, name):
    """The indices of rows, columns, channels and images in SHAPE."""
    axes = AXES[layout].get(len(shape))
    if axes is None:
        raise ValueError(f"the {name} has {len(shape)} dimensions; give {'2 or 3' if layout == 'nhw' else '2 to 4'}")
    if not all(1 <= count <= _INT_MAX for count in shape):  # min() would tell torch.compile the order of the sides
        raise ValueError(f"the {name} has the shape {tuple(shape)}; give 1 or more in each dimension")
    row, column, channel, number = axes
    if channel is None or shape[channel] <= 4:
        return axes
    if layout is None:  # a stack, planes, or an image of many channels: nobody can tell from the shape
        raise ValueError(f"the {name} has the shape {tuple(shape)}, which would be {shape[channel]} channels; give "
                         "layout='hwc' if it is, else 'chw' or 'nhw'")
    return row, column, None, channel


def are_many_images(shape, layout):
    """Are these several images of more than 4 channels? Each channel of each is an image for the library."""
    return len(shape) == 4 and layout in ("hwc", "chw") and shape[AXES[layout][4][2]] > 4


@functools.lru_cache(maxsize=256)
def kind_of(dtype):
    """The name of DTYPE, of NumPy or PyTorch, or of a typestr. In the other byte order it is no key of SAMPLES."""
    if str(dtype).startswith("torch."):
        return str(dtype).removeprefix("torch.")
    dtype = numpy.dtype(dtype)
    return dtype.name if dtype.isnative else dtype.str


def refused(dtype, name):
    """The exception for samples of DTYPE, which are not in SAMPLES. NAME is for messages."""
    kind, advice = kind_of(dtype), "uint8, uint16 or float32"
    form = "image.to(torch.{})" if str(dtype).startswith("torch.") else 'image.astype("{}")'
    if kind.startswith(("int", "uint", "float")):
        advice = f"{form.format('float32')}, or {form.format('uint8')} if they are levels of 8 bits"
    return TypeError(f"the {name} has samples of {kind}; give {advice}")


def _are_uneven(shape, strides, layout):
    """Are these such images, and the distances of their channels not all equal?"""
    return are_many_images(shape, layout) and strides[0] != shape[AXES[layout][4][2]] * strides[AXES[layout][4][2]]


@functools.lru_cache(maxsize=_KEPT)
def _geometry(dtype, shape, strides, memory, layout, name):
    """A View without its address; None if the library does not take such an array as it is. NAME is for messages."""
    if kind_of(dtype) not in SAMPLES:
        return None
    number, size, _ = SAMPLES[kind_of(dtype)]
    row, column, channel, images = axes_of(shape, layout, name)
    strides = strides or _contiguous(shape, size)
    if _are_uneven(shape, strides, layout) or any(stride <= 0 < count - 1 for stride, count in zip(strides, shape)):
        return None
    view = View(None, shape[column], shape[row], 1 if channel is None else shape[channel], number, memory,
                1 if images is None else shape[images], strides[row], strides[column],
                0 if channel is None else strides[channel], 0 if images is None else strides[images])
    if are_many_images(shape, layout):
        view.count *= shape[0]
    return view


def _view_at(geometry, address, array):
    """The View of ARRAY, whose samples begin at ADDRESS. It keeps ARRAY."""
    view = View.from_buffer_copy(geometry)
    view.data, view.array = address, array
    return view


def _interface_view(array, interface, memory, layout, name):
    """The View of ARRAY by its __array_interface__ or __cuda_array_interface__; None as _geometry()."""
    dtype = array.dtype if "V" in interface["typestr"] else interface["typestr"]  # V may be bfloat16
    geometry = _geometry(dtype, tuple(interface["shape"]), interface.get("strides"), memory, layout, name)
    return geometry and _view_at(geometry, interface["data"][0], array)


@functools.lru_cache(maxsize=_KEPT)
def _new_shape(shape, width, height, taps, layout):
    """The shape of what TAPS make of an array of SHAPE, with images of WIDTH x HEIGHT. None if it keeps its shape."""
    new = taps.size(width, height)
    if new == (width, height):
        return None
    shape, (row, column, _, _) = list(shape), AXES[layout][len(shape)]
    shape[row], shape[column] = new[1], new[0]
    return tuple(shape)


# ---- On the host ----

def is_like(kind, image):
    """Is IMAGE a Pillow image ("PIL.Image", "Image"), or another class of a module that may not be there?"""
    module = sys.modules.get(kind[0])
    return module is not None and isinstance(image, getattr(module, kind[1], ()))


PILLOW, MASKED = ("PIL.Image", "Image"), ("numpy.ma", "MaskedArray")
_PILLOW_MODES = "L", "LA", "RGB", "RGBA", "I;16", "I;16B", "F"


def host_array(image, name):
    """IMAGE as a NumPy array, of the same memory if it has any. NAME is for messages."""
    if type(image) is numpy.ndarray:
        return image
    if is_like(PILLOW, image) and image.mode not in _PILLOW_MODES:
        mode = "F" if image.mode == "I" else "RGB"
        raise TypeError(f"the {name} is a Pillow image of mode {image.mode}; give image.convert({mode!r})")
    if is_like(MASKED, image):
        raise TypeError(f"the {name} is a masked array, whose mask no filter sees; give image.filled(0)")
    if isinstance(image, (str, bytes, bytearray)) or hasattr(image, "__fspath__"):
        raise TypeError(f"the {name} is {_library.shown(image)}; give an array, or gpuconv.read(...)")
    if hasattr(image, "__dlpack__") and not hasattr(image, "__array__"):
        return numpy.from_dlpack(image)
    if is_tensor(image):
        image = image.detach()
        if kind_of(image.dtype) == "bfloat16":
            raise TypeError(f"the {name} has samples of bfloat16, which NumPy does not have; give image.float()")
    try:
        array = numpy.asarray(image)
    except ValueError:
        raise ValueError(f"the {name} is not a grid of samples; give rows of equal length") from None
    if array.dtype.kind not in "biufc" and array.dtype.name not in SAMPLES:
        raise TypeError(f"the {name} is {_library.shown(image)}; give an array of uint8, uint16 or float32")
    return array


def _is_plain(array):
    """Does the library take ARRAY as it is?"""
    flags = array.flags
    return kind_of(array.dtype) in SAMPLES and flags.aligned and (
        flags.c_contiguous or all(stride > 0 for stride, count in zip(array.strides, array.shape) if count > 1))


def plain(array, name):
    """ARRAY, or a copy with the byte order and strides that the library takes."""
    if _is_plain(array):
        return array
    native = array.dtype.newbyteorder("=")
    if kind_of(native) not in SAMPLES:
        raise refused(native, name)
    return array.astype(native, order="C")


def output_array(out, like):
    """OUT as a NumPy array of the same memory, of the type of LIKE. Two arrays of a copy would have memory of their
    own."""
    array = host_array(out, "output")
    if array is not out and array.__array_interface__["data"] != host_array(out, "output").__array_interface__["data"]:
        raise TypeError(f"NumPy copies a {type(out).__name__}, so the result would be lost; give an array as output")
    if not array.flags.writeable:
        raise ValueError("the output is read-only; give an array that can be written")
    if array.dtype != like.dtype:
        raise ValueError(f"the output has samples of {array.dtype}, and the input of {like.dtype}; give an output like "
                         "the input")
    if any(stride == 0 for stride, count in zip(array.strides, array.shape) if count > 1):
        raise ValueError("the output has strides of 0, so that its samples share memory; give a new array")
    return array


def filter_host(array, layout, out, taps, apply):
    """Let APPLY(view, target) filter ARRAY by TAPS into a new array, or into OUT. Returns the array of the result."""
    given = None if out is None else output_array(out, array)
    if _are_uneven(array.shape, array.strides, layout) or given is not None and \
            _are_uneven(given.shape, given.strides, layout):
        return store(numpy.stack([filter_host(one, layout, None, taps, apply) for one in array]), given)
    source = plain(array, "input")
    view = host_view(source, layout, "input")
    if given is not None and _is_plain(given):
        result = given
    else:
        shape = _new_shape(source.shape, view.width, view.height, taps, layout)
        result = numpy.empty_like(source, subok=False) if shape is None else numpy.empty(shape, source.dtype)
    apply(view, host_view(result, layout, "output"))
    return result if result is given else store(result.astype(array.dtype, copy=False), given)


def host_view(array, layout, name):
    """The View of an array of NumPy that is plain()."""
    return _interface_view(array, array.__array_interface__, HOST, layout, name)


def store(result, given):
    """RESULT, which is copied to GIVEN unless that is None."""
    if given is None:
        return result
    if given.shape != result.shape:
        raise ValueError(f"the output has the shape {given.shape}; give an output like the input, of the shape "
                         f"{result.shape}")
    given[...] = result
    return given


def _namespace(image):
    """The module of functions for arrays like IMAGE, such as torch or jax.numpy."""
    if hasattr(image, "__array_namespace__"):
        return image.__array_namespace__()
    return sys.modules.get(type(image).__module__.partition(".")[0])


def like_caller(array, image):
    """The NumPy array ARRAY as an array of the library that IMAGE is from."""
    if isinstance(image, numpy.ndarray):
        return array
    if is_like(PILLOW, image):
        result = sys.modules["PIL.Image"].fromarray(array)
        result.info = dict(image.info)
        return result
    namespace = _namespace(image)
    if not hasattr(namespace, "from_dlpack"):
        return array
    try:
        return namespace.from_dlpack(array)
    except (BufferError, RuntimeError):  # NumPy exports no bfloat16
        return namespace.asarray(array)


# ---- As they are: on a GPU, of NumPy, and tensors ----

def is_tensor(image):
    """Is IMAGE a tensor of PyTorch? It says all about itself faster than its __cuda_array_interface__, which it makes
    anew each time, and not for a tensor with a gradient."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def is_on_device(image):
    if type(image) is numpy.ndarray:
        return False
    return image.is_cuda if is_tensor(image) else hasattr(image, "__cuda_array_interface__")


@functools.lru_cache(maxsize=_KEPT)
def _tensor_geometry(dtype, shape, strides, device, layout, name):
    """As _geometry(), for a tensor, which may be on a GPU."""
    if strides is None or device.type not in ("cpu", "cuda"):
        raise TypeError(f"the {name} is a tensor that is sparse or on {device.type!r}; give a dense tensor on the "
                        "CPU or on a GPU of CUDA")
    size = SAMPLES.get(kind_of(dtype), (0, 0))[1]
    return _geometry(dtype, tuple(shape), tuple(size * stride for stride in strides),
                     DEVICE if device.type == "cuda" else HOST, layout, name)


def _address_of(array):
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # takes a fourth of the time of the other way
    except (TypeError, ValueError):  # it is read-only, or not contiguous
        return array.__array_interface__["data"][0]


def direct_view(image, layout, name):
    """The View of an array that the library takes as it is: on a GPU, of NumPy, or a tensor. None if it is no such
    array. NAME is for messages."""
    if type(image) is numpy.ndarray:
        flags = image.flags
        geometry = _geometry(image.dtype, image.shape, image.strides, HOST, layout, name) \
            if flags.aligned and (flags.writeable or name != "output") else None
        return geometry and _view_at(geometry, _address_of(image), image)
    if is_tensor(image):
        torch = sys.modules["torch"]
        if image.requires_grad or type(image) is not torch.Tensor:
            if name == "output":  # PyTorch follows what is copied to it
                return None
            image = image.detach().as_subclass(torch.Tensor)
        strides = image.stride() if image.layout is torch.strided else None
        geometry = _tensor_geometry(image.dtype, image.shape, strides, image.device, layout, name)
        if image.is_neg():  # its samples are to be negated when they are read
            return None
        return geometry and _view_at(geometry, image.data_ptr(), image)
    interface = getattr(image, "__cuda_array_interface__", None)
    if name == "output" and interface is not None and interface["data"][1]:
        raise ValueError("the output is read-only; give an array that can be written")
    return None if interface is None else _interface_view(image, interface, DEVICE, layout, name)


def _move_axes(image, order):
    return (image.permute if is_tensor(image) else image.transpose)(*order)


def copied(image, name):
    """A copy of IMAGE of the same library, or of NumPy, without padding."""
    if is_tensor(image):
        return image.detach().resolve_neg().clone(memory_format=sys.modules["torch"].contiguous_format)
    if not is_on_device(image):
        return host_array(image, name).copy()
    if not hasattr(image, "copy"):
        raise ValueError(f"the {name} has strides of 0 or below, or uneven ones; give an array without gaps")
    return image.copy()


def input_view(image, layout, name):
    """The View of an array as direct_view() gives it, or of its copy, which the View keeps. None if it is neither a
    tensor nor on a GPU."""
    view = direct_view(image, layout, name)
    if view is None and (is_tensor(image) or is_on_device(image)):
        if kind_of(image.dtype) not in SAMPLES:
            raise refused(image.dtype, name)
        if layout == "hwc" and are_many_images(image.shape, layout):  # only planes are at equal distances
            copy = _move_axes(copied(_move_axes(image, (0, 3, 1, 2)), name), (0, 2, 3, 1))
        else:
            copy = copied(image, name)
        view = direct_view(copy, layout, name)
    return view


_rows: dict[Any, bytes] = {}  # Views of tensors of a kind, with any address


def many_views(images, layout, view_of):
    """The Views of IMAGES by VIEW_OF(image) in a LAYOUT, as table_of() makes them, and what must stay meanwhile."""
    rows, torch = [], sys.modules.get("torch")
    if len(_rows) > _KEPT:
        _rows.clear()
    if torch and all(isinstance(image, torch.Tensor) and image.layout is torch.strided for image in images):
        for image in images:
            kind = image.dtype, image.shape, image.stride(), image.device, image.is_neg(), layout
            row = _rows.get(kind)
            if row is None:
                view = view_of(image)
                if view.array is not image:
                    break
                row = _rows[kind] = bytes(view)
            rows.append(row)
        else:
            return table_of(rows, [image.data_ptr() for image in images]), images
    kept = list(map(view_of, images))
    return table_of(map(bytes, kept), [view.data for view in kept]), kept


def table_of(rows, addresses):
    """Views as a structured array, of their bytes with other addresses."""
    table = numpy.frombuffer(bytearray().join(rows), numpy.dtype(View))
    table["data"] = addresses
    return table


def store_directly(result, out):
    """Copy RESULT to OUT, which the library does not take: a tensor, or on a GPU."""
    if tuple(out.shape) != tuple(result.shape) or kind_of(out.dtype) != kind_of(result.dtype):
        raise ValueError(f"the output has the shape {tuple(out.shape)} and samples of {kind_of(out.dtype)}; give "
                         f"{tuple(result.shape)} of {kind_of(result.dtype)}")
    if numpy.ptp(bounds(out, "output")) < math.prod(out.shape) * SAMPLES[kind_of(out.dtype)][1]:
        raise ValueError("the output has samples that share memory; give a new array")
    out[...] = result
    return out


def bounds(image, name):
    """The addresses of the first byte of IMAGE, an array, and of the byte after its last. NAME is for messages."""
    if is_tensor(image):
        size, address = image.element_size(), image.data_ptr()
        shape, strides = image.shape, [size * stride for stride in image.stride()]
    else:
        interface = image.__cuda_array_interface__ if is_on_device(image) else \
            host_array(image, name).__array_interface__
        shape, size, address = interface["shape"], int(interface["typestr"][2:]), interface["data"][0]
        strides = interface.get("strides") or _contiguous(shape, size)
    spans = [stride * (count - 1) for stride, count in zip(strides, shape)]
    return address + sum(min(span, 0) for span in spans), address + sum(max(span, 0) for span in spans) + size


def device_of(image):
    """The number of the GPU that has IMAGE."""
    return image.device.index if is_tensor(image) else image.__dlpack_device__()[1]


def empty_like(image, view, taps, layout):
    """A new array for what TAPS make of IMAGE, whose direct View is VIEW."""
    name = type(image).__module__.partition(".")[0]
    if name not in ("numpy", "cupy", "torch"):
        raise TypeError(f"gpuconv cannot make an array of {name} on a GPU; give out=, an array of CuPy or PyTorch")
    shape = _new_shape(image.shape, view.width, view.height, taps, layout)
    if shape is None:
        return sys.modules[name].empty_like(image)
    is_planar = layout == "hwc" and are_many_images(shape, layout)
    shape = [shape[axis] for axis in (0, 3, 1, 2)] if is_planar else shape
    result = image.new_empty(shape) if name == "torch" else sys.modules[name].empty(shape, image.dtype)
    return _move_axes(result, (0, 2, 3, 1)) if is_planar else result


_TOGETHER = {HOST: 1 << 16, DEVICE: 1 << 24}  # samples of an image whose result shares memory with others


def stack(images):
    """IMAGES, arrays of one kind, as one array: without a copy if they are parts of a tensor at equal distances, as
    those that read() makes."""
    first = images[0]
    if is_tensor(first):
        address, step = first.data_ptr(), images[1].data_ptr() - first.data_ptr()
        if step > 0 and first.untyped_storage().data_ptr() == images[-1].untyped_storage().data_ptr() and all(
                image.data_ptr() == address + index * step and image.stride() == first.stride()
                for index, image in enumerate(images)):
            return first.as_strided((len(images), *first.shape), (step // first.element_size(), *first.stride()))
    return sys.modules[type(first).__module__.partition(".")[0]].stack(images)


@functools.lru_cache(maxsize=_KEPT)
def _kind_in_list(name, dtype, shape, strides, gpu, layout, taps):
    shape, size = tuple(shape), SAMPLES.get(kind_of(dtype), (0, 0))[1]
    if not size or len(shape) > (2 if layout == "nhw" else 3):
        return None
    strides = tuple(size * stride for stride in strides) if name == "torch" else strides
    memory = HOST if gpu is None else DEVICE
    geometry = _geometry(dtype, shape, strides, memory, layout, "input")
    if geometry is None:
        return None
    result = _new_shape(shape, geometry.width, geometry.height, taps, layout) or shape
    return bytes(geometry), (gpu, name, dtype, result), math.prod(shape) <= _TOGETHER[memory]


def kind_in_list(image, layout, taps):
    """What an image of a list has in common with others, so that they are filtered together, and its address. It is
    the View without an address; the number of the GPU or None, the library, the type and the shape of what TAPS make of
    it; and if it is so small that such arrays share memory. None for an image that is filtered by itself."""
    if is_tensor(image):
        if image.layout is not sys.modules["torch"].strided or image.is_neg() or not (image.is_cuda or image.is_cpu):
            return None, 0
        gpu = image.device.index if image.is_cuda else None
        return _kind_in_list("torch", image.dtype, image.shape, image.stride(), gpu, layout, taps), image.data_ptr()
    if type(image) is numpy.ndarray:
        if not image.flags.aligned:
            return None, 0
        return _kind_in_list("numpy", image.dtype, image.shape, image.strides, None, layout, taps), _address_of(image)
    if type(image).__module__.partition(".")[0] != "cupy":
        return None, 0
    interface = image.__cuda_array_interface__
    return _kind_in_list("cupy", image.dtype, image.shape, interface.get("strides"),
                         device_of(image), layout, taps), interface["data"][0]


def parts_of(block):
    """The arrays in BLOCK, an array with one dimension more."""
    return block.unbind() if is_tensor(block) else [block[index] for index in range(block.shape[0])]


def many_empty(count, image, shape, layout):
    """COUNT new arrays of SHAPE in one memory, otherwise like IMAGE, and their Views."""
    shape = count, *shape
    parts = parts_of(image.new_empty(shape) if is_tensor(image) else
                     sys.modules[type(image).__module__.partition(".")[0]].empty(shape, image.dtype))
    views = numpy.frombuffer(direct_view(parts[0], layout, "output"), numpy.dtype(View)).repeat(count)
    views["data"] += numpy.arange(count, dtype="u8") * numpy.uint64(math.prod(shape[1:]) *
                                                                  SAMPLES[kind_of(image.dtype)][1])
    return parts, views


def current_stream(image):
    """The CUDA stream on which the caller's library queues its work now. CuPy says it in its interface."""
    if is_tensor(image):
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # as Triton does: a Stream takes 10 us to make
        return raw(image.device.index) if raw else torch.cuda.current_stream(image.device).cuda_stream
    return image.__cuda_array_interface__.get("stream")
