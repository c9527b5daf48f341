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
FLOAT = 2  # in enum gpuconv_type
_NATIVE = "<" if sys.byteorder == "little" else ">"
_TYPES = {"|u1": 0, _NATIVE + "u2": 1, _NATIVE + "f4": 2}  # enum gpuconv_type
# The places of rows, columns, channels and images in a shape. Channels of more than 4 are images, too.
AXES: dict[str | None, dict[int, Any]] = {
    "hwc": {2: (0, 1, None, None), 3: (0, 1, 2, None), 4: (1, 2, 3, 0)},
    "chw": {2: (0, 1, None, None), 3: (1, 2, 0, None), 4: (2, 3, 1, 0)},
    "nhw": {2: (0, 1, None, None), 3: (1, 2, None, 0)}}
AXES[None] = AXES["hwc"]
_INT_MAX = 0x7FFFFFFF


# ---- Views ----

def _contiguous(shape, size):
    strides = []
    for count in reversed(shape):
        strides.insert(0, size)
        size *= count
    return strides


def axes_of(shape, layout, name):
    """The places of rows, columns, channels and images in SHAPE."""
    axes = AXES[layout].get(len(shape))
    if axes is None:
        raise ValueError(f"the {name} has {len(shape)} dimensions; give {'2 or 3' if layout == 'nhw' else '2 to 4'}")
    if not all(1 <= count <= _INT_MAX for count in shape):  # min() would tell torch.compile the order of the sides
        raise ValueError(f"the {name} has the shape {tuple(shape)}; give at least 1 of everything")
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


def _are_uneven(shape, strides, layout):
    """Are these such images, and the distances of their channels not all equal?"""
    return are_many_images(shape, layout) and strides[0] != shape[AXES[layout][4][2]] * strides[AXES[layout][4][2]]


@functools.lru_cache(maxsize=1024)
def _geometry(typestr, shape, strides, memory, layout, name):
    """A View without its address. NAME is for messages."""
    if typestr not in _TYPES:
        raise TypeError(f"the {name} has samples of {numpy.dtype(typestr)}; give uint8, uint16 or float32")
    row, column, channel, number = axes_of(shape, layout, name)
    strides = strides or _contiguous(shape, int(typestr[2:]))
    view = View(None, shape[column], shape[row], 1 if channel is None else shape[channel], _TYPES[typestr], memory,
                1 if number is None else shape[number], strides[row], strides[column],
                0 if channel is None else strides[channel], 0 if number is None else strides[number])
    if are_many_images(shape, layout):
        if _are_uneven(shape, strides, layout):
            raise ValueError(f"the {name} has {shape[number]} channels in the layout {layout!r}, and its planes are "
                             "not at equal distances; give 1 to 4 channels, or one image at a time")
        view.count *= shape[0]
    return view


def view_of(interface, memory, layout, name):
    """The View of an array, from its __array_interface__ or __cuda_array_interface__. NAME is for messages."""
    view = View.from_buffer_copy(_geometry(interface["typestr"], tuple(interface["shape"]), interface.get("strides"),
                                           memory, layout, name))
    view.data = interface["data"][0]
    return view


@functools.lru_cache(maxsize=256)
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
    try:
        array = numpy.asarray(image)
    except ValueError:
        raise ValueError(f"the {name} is no grid of samples; give rows of equal length") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"the {name} is {_library.shown(image)}; give an array of uint8, uint16 or float32")
    return array


def _is_plain(array):
    """Does the library take ARRAY as it is?"""
    flags = array.flags
    return array.dtype.str in _TYPES and flags.aligned and (
        flags.c_contiguous or all(stride > 0 for stride, count in zip(array.strides, array.shape) if count > 1))


def plain(array, name):
    """ARRAY, or a copy with samples and strides that the library takes."""
    if _is_plain(array):
        return array
    native, kind = array.dtype.newbyteorder("="), array.dtype
    if native.str in _TYPES:
        return array.astype(native, order="C")
    if kind.kind == "b" or kind.kind == "f" and kind.itemsize <= 8:
        with numpy.errstate(over="ignore"):
            copy = array.astype("float32", order="C")
        if kind.itemsize < 8 or (numpy.isinf(copy) == numpy.isinf(array)).all():
            return copy
        raise ValueError(f"the {name} has samples that float32 does not hold; divide them, or give "
                         'image.astype("float32")')
    advice = "uint8, uint16 or float32" if kind.kind not in "iuf" else \
        'image.astype("float32"), or "uint8" or "uint16" if they are levels of 8 or 16 bits'
    raise TypeError(f"the {name} has samples of {kind.type.__name__}; give {advice}")


def of_type(result, kind):
    """RESULT, of float32 or in the machine's byte order, as samples of KIND, the caller's type."""
    if result.dtype is kind or result.dtype.str == kind.str:
        return result
    with numpy.errstate(over="ignore"):
        own = result.astype(kind)
    if kind.kind == "b" and not (own == result).all():
        raise TypeError('the result is not True and False alone; give image.astype("float32")')
    if kind.itemsize == 2 and kind.kind == "f" and (numpy.isinf(own) != numpy.isinf(result)).any():
        raise TypeError('float16 does not hold the result; give image.astype("float32")')
    return own


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
        raise ValueError("the output has strides of 0, so that its samples share memory; give an array of its own")
    return array


def filter_host(array, layout, out, taps, apply):
    """Let APPLY(view, target) filter ARRAY by TAPS into a new array, or into OUT. Returns the array of the result."""
    given = None if out is None else output_array(out, array)
    if _are_uneven(array.shape, array.strides, layout) or given is not None and \
            _are_uneven(given.shape, given.strides, layout):
        return store(numpy.stack([filter_host(one, layout, None, taps, apply) for one in array]), given)
    source = plain(array, "input")
    view = view_of(source.__array_interface__, HOST, layout, "input")
    if given is not None and source.dtype == array.dtype and _is_plain(given):
        result = given
    else:
        shape = _new_shape(source.shape, view.width, view.height, taps, layout)
        result = numpy.empty_like(source, subok=False) if shape is None else numpy.empty(shape, source.dtype)
    apply(view, view_of(result.__array_interface__, HOST, layout, "output"))
    return result if result is given else store(of_type(result, array.dtype), given)


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
    from_dlpack = getattr(_namespace(image), "from_dlpack", None)
    return array if from_dlpack is None else from_dlpack(array)


# ---- As they are: on a GPU, of NumPy, and tensors ----

def _is_tensor(image):
    """Is IMAGE a tensor of PyTorch? It says all about itself faster than its __cuda_array_interface__, which it makes
    anew each time."""
    torch = sys.modules.get("torch")
    return torch is not None and type(image) is torch.Tensor


def is_on_device(image):
    if type(image) is numpy.ndarray:
        return False
    return image.is_cuda if _is_tensor(image) else hasattr(image, "__cuda_array_interface__")


@functools.lru_cache(maxsize=1024)
def _host_geometry(typestr, shape, strides, layout, name):
    """A View without its address; None if the library does not take such an array as it is."""
    is_plain = typestr in _TYPES and not _are_uneven(shape, strides, layout) and \
        all(stride > 0 for stride, count in zip(strides, shape) if count > 1)
    return _geometry(typestr, shape, strides, HOST, layout, name) if is_plain else None


@functools.lru_cache(maxsize=1024)
def _tensor_geometry(dtype, shape, strides, device, layout, name):
    """As _host_geometry, for a tensor, which may be on a GPU."""
    try:
        typestr = numpy.dtype(str(dtype).removeprefix("torch.")).str
    except TypeError:
        raise TypeError(f"the {name} has samples of {dtype}; give uint8, uint16 or float32") from None
    shape, strides = tuple(shape), tuple(int(typestr[2:]) * stride for stride in strides)
    if device.type == "cuda":
        return _geometry(typestr, shape, strides, DEVICE, layout, name)
    return _host_geometry(typestr, shape, strides, layout, name) if device.type == "cpu" else None


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
        geometry = _host_geometry(image.dtype.str, image.shape, image.strides, layout, name) \
            if flags.aligned and (flags.writeable or name != "output") else None
    elif _is_tensor(image) and not image.requires_grad:  # such a tensor refuses to be an array
        geometry = _tensor_geometry(image.dtype, image.shape, image.stride(), image.device, layout, name)
    else:
        interface = getattr(image, "__cuda_array_interface__", None)
        if name == "output" and interface is not None and interface["data"][1]:
            raise ValueError("the output is read-only; give an array that can be written")
        return None if interface is None else view_of(interface, DEVICE, layout, name)
    if geometry is None:
        return None
    view = View.from_buffer_copy(geometry)
    view.data = _address_of(image) if type(image) is numpy.ndarray else image.data_ptr()
    return view


def device_views(images, layout, name):
    """The Views of IMAGES, as an array of ctypes. Tensors of one shape differ in their addresses only."""
    views = (View * len(images))()
    if all(map(_is_tensor, images)) and len({(image.dtype, image.shape, image.stride()) for image in images}) == 1:
        many = numpy.frombuffer(views, numpy.dtype(View))
        many[:] = numpy.frombuffer(direct_view(images[0], layout, name), many.dtype)
        many["data"] = [image.data_ptr() for image in images]
    else:
        for index, image in enumerate(images):
            views[index] = direct_view(image, layout, name)
    return views


def device_of(image):
    """The number of the GPU that has IMAGE."""
    return image.device.index if _is_tensor(image) else image.__dlpack_device__()[1]


def empty_like(image, view, taps, layout):
    """A new array for what TAPS make of IMAGE, whose direct View is VIEW."""
    name = type(image).__module__.partition(".")[0]
    if name not in ("numpy", "cupy", "torch"):
        raise TypeError(f"gpuconv makes no arrays of {name} on a GPU; give out=, an array of CuPy or PyTorch")
    shape = _new_shape(image.shape, view.width, view.height, taps, layout)
    if shape is None:
        return sys.modules[name].empty_like(image)
    return image.new_empty(shape) if name == "torch" else sys.modules[name].empty(shape, image.dtype)


_STACKED = {False: 1 << 16, True: 1 << 24}  # samples of an image, on a GPU or not, whose copy takes less than a call


def kind_in_stack(image, layout):
    """What arrays have in common that are filtered faster as one array with one dimension more; None if there is no
    such array."""
    name = type(image).__module__.partition(".")[0]
    if name not in ("numpy", "cupy", "torch") or type(image).__name__ not in ("ndarray", "Tensor") or \
            image.ndim not in ((2,) if layout == "nhw" else (2, 3)) or \
            math.prod(image.shape) > _STACKED[is_on_device(image)]:
        return None
    return name, tuple(image.shape), image.dtype, str(getattr(image, "device", None))  # CuPy's has no hash


def stack(images):
    """IMAGES, arrays of one kind, as one array: without a copy if they are parts of a tensor at equal distances, as
    those that read() makes."""
    first = images[0]
    if _is_tensor(first):
        address, step = first.data_ptr(), images[1].data_ptr() - first.data_ptr()
        if step > 0 and first.untyped_storage().data_ptr() == images[-1].untyped_storage().data_ptr() and all(
                image.data_ptr() == address + index * step and image.stride() == first.stride()
                for index, image in enumerate(images)):
            return first.as_strided((len(images), *first.shape), (step // first.element_size(), *first.stride()))
    return sys.modules[type(first).__module__.partition(".")[0]].stack(images)


def current_stream(image):
    """The CUDA stream on which the caller's library queues its work now. CuPy says it in its interface."""
    if _is_tensor(image):
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # as Triton does: a Stream takes 10 us to make
        return raw(image.device.index) if raw else torch.cuda.current_stream(image.device).cuda_stream
    return image.__cuda_array_interface__.get("stream")
