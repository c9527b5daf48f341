# SPDX-License-Identifier: MIT
"""Devices of arrays: the host, a GPU by PyTorch or CuPy, and a GPU whose memory is that of the host, the stub's or the
emulated one, by a CuPy that has what the package uses."""
import importlib
import sys
import types

import numpy
from numpy.lib.stride_tricks import as_strided


class Memory:
    def __init__(self, buffer, offset=0):
        self.buffer, self.offset = buffer, offset
        self.ptr = buffer.ctypes.data + offset

    def __add__(self, bytes):
        return Memory(self.buffer, self.offset + bytes)


class Array:
    asked = []  # the streams that were given

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        Array.asked.append(1)
        return dict(self.array.__array_interface__, version=3, stream=1)

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return self.array.shape

    def __dlpack_device__(self):
        return (2, 0)

    def __getitem__(self, where):
        return Array(self.array[where])

    def __setitem__(self, where, value):
        self.array[where] = value.array

    def transpose(self, *axes):
        return Array(self.array.transpose(*axes))

    def copy(self):
        return Array(self.array.copy())


class Device:
    """That number 1 is current only in a with statement."""

    current = 0

    def __init__(self, number=0):
        self.id = number

    def __enter__(self):
        Device.current = self.id

    def __exit__(self, *_reason):
        Device.current = 0


def current_stream():
    streams.append(Device.current)
    return types.SimpleNamespace(ptr=1)


streams: list = []  # the devices whose current stream was asked for


def install():
    """Let the module cupy be this one."""
    sys.modules["cupy"] = types.SimpleNamespace(
        empty_like=lambda image: Array(numpy.empty_like(image.array)),
        empty=lambda shape, dtype: Array(numpy.empty(shape, dtype)),
        stack=lambda images: Array(numpy.stack([image.array for image in images])),
        ndarray=lambda shape, dtype, memory, strides: Array(numpy.ndarray(shape, dtype, memory.buffer, memory.offset,
                                                                          strides)),
        cuda=types.SimpleNamespace(alloc=lambda size: Memory(numpy.empty(size, "uint8")),
                                   get_current_stream=current_stream, Device=Device))
    Array.__module__ = "cupy"


def put(view, kind, device):
    """A copy of the memory of VIEW, an array of NumPy or a list of these, in a device, with the same strides, and with
    samples of KIND."""
    if isinstance(view, list):
        return [put(one, kind, device) for one in view]
    owner = view
    while owner.base is not None:
        owner = owner.base
    first = (view.ctypes.data - owner.ctypes.data) // view.itemsize
    if device == "torch" or kind == "bfloat16":
        torch = importlib.import_module("torch")
        memory = torch.from_numpy(owner.copy()).to("cuda" if device == "torch" else "cpu", getattr(torch, kind))
        return memory.as_strided(view.shape, [stride // view.itemsize for stride in view.strides], first)
    if device == "cupy":
        cupy = importlib.import_module("cupy")
        return cupy.lib.stride_tricks.as_strided(cupy.asarray(owner).reshape(-1)[first:], view.shape, view.strides)
    copy = as_strided(owner.copy().reshape(-1)[first:], view.shape, view.strides)
    return copy if device == "host" else Array(copy)


def output(view, filter, layout, what, kind, device):
    """Memory as put() makes it, for what FILTER makes of VIEW in a LAYOUT. WHAT: "out", "part" of more memory, or "new"
    for no memory."""
    if what == "new":
        return None
    if isinstance(view, list):
        return [output(one, filter, layout, what, kind, device) for one in view]
    shape, row = [*view.shape], -3 if layout == "hwc" and view.ndim > 2 else -2
    shape[row + 1], shape[row] = filter.size(shape[row + 1], shape[row])
    if what == "out":
        return put(numpy.zeros(shape, view.dtype), kind, device)
    return put(numpy.zeros([side + 3 for side in shape], view.dtype)[(slice(1, -2),) * view.ndim], kind, device)


def take(array, layout):
    """Arrays of any device as NumPy's (N, H, W, C)."""
    if isinstance(array, (list, tuple)):
        return numpy.concatenate([take(one, layout) for one in array])
    if type(array).__module__ == "torch":
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).cpu().numpy()
    array = array.get() if hasattr(array, "get") else getattr(array, "array", array)
    array = numpy.moveaxis(array, -3, -1) if layout == "chw" and array.ndim > 2 else array
    array = array[..., None] if layout == "nhw" or array.ndim == 2 else array
    return array if array.ndim == 4 else array[None]
