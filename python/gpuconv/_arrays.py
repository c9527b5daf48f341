# SPDX-License-Identifier: MIT
"""Arrays of the caller as views of the library, without a copy."""
import functools
import sys

import numpy

from ._library import View

HOST, DEVICE = 0, 1  # enum gpuconv_memory
_NATIVE = "<" if sys.byteorder == "little" else ">"
_TYPES = {"|u1": 0, _NATIVE + "u2": 1, _NATIVE + "f4": 2}  # enum gpuconv_type
# The places of rows, columns, channels and images in a shape.
_AXES = {"hwc": {2: (0, 1, None, None), 3: (0, 1, 2, None), 4: (1, 2, 3, 0)},
         "chw": {2: (0, 1, None, None), 3: (1, 2, 0, None), 4: (2, 3, 1, 0)}}
_INT_MAX = 0x7FFFFFFF


# ---- Views ----

def _contiguous(shape, size):
    strides = []
    for count in reversed(shape):
        strides.insert(0, size)
        size *= count
    return strides


@functools.lru_cache(maxsize=1024)
def _geometry(typestr, shape, strides, memory, layout, name):
    """All of a View but its address. NAME is for messages."""
    if typestr not in _TYPES:
        raise TypeError(f"the {name} has samples of type {typestr}; give uint8, uint16 or float32")
    if layout not in _AXES:
        raise ValueError(f"there is no layout {layout!r}; give 'hwc' or 'chw'")
    axes = _AXES[layout].get(len(shape))
    if axes is None:
        raise ValueError(f"the {name} has {len(shape)} dimensions; give 2 to 4")
    if min(shape) < 1 or max(shape) > _INT_MAX:
        raise ValueError(f"the {name} has the shape {tuple(shape)}; give at least 1 of everything")
    row, column, channel, number = axes
    channels = 1 if channel is None else shape[channel]
    if channels > 4:
        raise ValueError(f"the {name} has {channels} channels in the layout {layout!r}; give 1 to 4 channels, or "
                         "another layout")
    strides = strides or _contiguous(shape, int(typestr[2:]))
    return (shape[column], shape[row], channels, _TYPES[typestr], memory, 1 if number is None else shape[number],
            strides[row], strides[column], 0 if channel is None else strides[channel],
            0 if number is None else strides[number])


def view_of(interface, memory, layout, name):
    """The View of an array, from its __array_interface__ or __cuda_array_interface__. NAME is for messages."""
    return View(interface["data"][0], *_geometry(interface["typestr"], tuple(interface["shape"]),
                                                 interface.get("strides"), memory, layout, name))


def view_of_output(interface, memory, layout):
    if interface["data"][1]:
        raise ValueError("the output is read-only; give an array that can be written")
    return view_of(interface, memory, layout, "output")


def _new_shape(shape, view, taps, layout):
    """The shape of what the filter TAPS makes of an array of SHAPE, whose View is VIEW; None if it keeps the shape."""
    width, height = taps.size(view.width, view.height)
    if (width, height) == (view.width, view.height):
        return None
    shape, (row, column, _, _) = list(shape), _AXES[layout][len(shape)]
    shape[row], shape[column] = height, width
    return tuple(shape)


# ---- On the host ----

def host_array(image):
    """IMAGE as a NumPy array of the same memory."""
    if isinstance(image, numpy.ndarray):
        return image
    if hasattr(image, "__dlpack__") and not hasattr(image, "__array__"):
        return numpy.from_dlpack(image)
    return numpy.asarray(image)


def output_array(out):
    """OUT as a NumPy array of the same memory. Two arrays of a copy would have memory of their own."""
    array = host_array(out)
    again = host_array(out)
    if array.__array_interface__["data"] != again.__array_interface__["data"]:
        raise TypeError(f"NumPy copies a {type(out).__name__}, so the result would be lost; give an array as output")
    return array


def empty_for(array, view, taps, layout):
    """An array like ARRAY, whose View is VIEW, for what the filter TAPS makes of it."""
    shape = _new_shape(array.shape, view, taps, layout)
    return numpy.empty_like(array) if shape is None else numpy.empty(shape, array.dtype)


def _namespace(image):
    """The module of functions for arrays like IMAGE, such as torch or jax.numpy."""
    if hasattr(image, "__array_namespace__"):
        return image.__array_namespace__()
    return sys.modules[type(image).__module__.partition(".")[0]]


def like_caller(array, image):
    """The NumPy array ARRAY as an array of the library that IMAGE is from."""
    from_dlpack = None if isinstance(image, numpy.ndarray) else getattr(_namespace(image), "from_dlpack", None)
    return array if from_dlpack is None else from_dlpack(array)


# ---- On a GPU ----

def device_of(image):
    """The number of the GPU that has IMAGE."""
    return image.__dlpack_device__()[1]


def empty_on_device(image, interface, view, taps, layout):
    """As empty_for, for an array IMAGE on a GPU."""
    name = type(image).__module__.partition(".")[0]
    if name not in ("cupy", "torch"):
        raise TypeError(f"gpuconv makes no arrays of {name} on a GPU; give out=, an array of CuPy or PyTorch")
    shape = _new_shape(interface["shape"], view, taps, layout)
    if shape is None:
        return sys.modules[name].empty_like(image)
    return image.new_empty(shape) if name == "torch" else sys.modules[name].empty(shape, image.dtype)


def current_stream(image, interface):
    """The CUDA stream on which the caller's library queues its work now. CuPy says it in its interface."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(image, torch.Tensor):
        return torch.cuda.current_stream(image.device).cuda_stream
    return interface.get("stream")
