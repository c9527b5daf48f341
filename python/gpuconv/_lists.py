# SPDX-License-Identifier: MIT
"""Many files at once, to and from arrays on a GPU. NumPy does what each file needs, for all files at once: a loop in
Python would take longer than the GPU."""
import ctypes
import importlib
import re
import sys

import numpy

from . import _arrays, _library
from ._context import chosen_context

_ALIGNMENT = 512  # bytes; of the first sample of each image
_INFO = numpy.dtype({"names": ["width", "height", "channels", "type"], "formats": ["i4"] * 4, "itemsize":
                     ctypes.sizeof(_library.FileInfo), "offsets": [getattr(_library.FileInfo, name).offset for name in
                                                                   ("width", "height", "channels", "type")]})
_VIEW = numpy.dtype(_library.View)


# ---- Errors ----

class _Errors:
    """An Error for each file. A file without a name has None, or its index in the list."""

    def __init__(self, names):
        self.names, self.errors = names, (_library.Error * len(names))()

    def check(self, status):
        """Raise the first error, or give the warnings of all."""
        if status != 0:
            first = next(index for index, error in enumerate(self.errors) if error.status != 0)
            raise _library.EXCEPTIONS[self.errors[first].status](self.errors[first].text(self.names[first]))
        texts = numpy.frombuffer(self.errors, numpy.uint8).reshape(len(self.names), -1)
        for index in texts[:, _library.Error.message.offset].nonzero()[0]:
            self.errors[index].warn(self.names[index])


# ---- Memory of the caller's library ----

class _Torch:
    def __init__(self, torch, device):
        self.torch, self.device = torch, torch.device(device)
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (self.device.index or 0) >= count:
            raise _library.GpuError(f"PyTorch has {count or 'no'} GPUs; " + (
                f"give 'cuda:{count - 1}' or less" if count else "leave device out, or install PyTorch with CUDA"))
        if self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self.number, self.stream = self.device.index, torch.cuda.current_stream(self.device).cuda_stream

    def allocate(self, size):
        """SIZE bytes, and their address."""
        self.memory = self.torch.empty(size, dtype=self.torch.uint8, device=self.device)
        return self.memory.data_ptr()

    def empty(self, shape, kind):
        return self.torch.empty(shape, dtype=getattr(self.torch, kind), device=self.device)

    def array(self, shape, strides, size, offset):
        memory = self.memory if size == 1 else self.memory.view(self.torch.uint16)  # from PyTorch 2.3 on
        return self.torch.as_strided(memory, shape, strides, offset // size)


class _CuPy:
    def __init__(self, cupy, device):
        self.cupy, (_, _, number) = cupy, str(device).partition(":")
        self.device = cupy.cuda.Device(int(number)) if number else cupy.cuda.Device()
        self.number = self.device.id
        with self.device:  # each has a current stream
            self.stream = cupy.cuda.get_current_stream().ptr

    def allocate(self, size):
        with self.device:
            self.memory = self.cupy.cuda.alloc(size)
        return self.memory.ptr

    def empty(self, shape, kind):
        with self.device:
            return self.cupy.empty(shape, kind)

    def array(self, shape, strides, size, offset):
        return self.cupy.ndarray(shape, f"u{size}", self.memory + offset, [stride * size for stride in strides])


def _memory(device):
    """The memory of the caller's library on DEVICE: of PyTorch if it is imported, else of CuPy."""
    if not re.fullmatch("cuda(:[0-9]+)?", str(device)):
        raise ValueError(f"the device is {_library.shown(device)}; give 'cuda' or 'cuda:0', or None for the host")
    torch = sys.modules.get("torch")
    if torch is not None:
        return _Torch(torch, device)
    try:
        return _CuPy(importlib.import_module("cupy"), device)
    except ImportError:
        raise TypeError("arrays on a GPU need PyTorch or CuPy; import torch first, or install CuPy") from None


# ---- Decode ----

def _bytes_of(contents):
    """The addresses and sizes of CONTENTS, bytes or what has a buffer, and what must stay meanwhile."""
    kept = [content if type(content) is bytes else numpy.frombuffer(content, numpy.uint8) for content in contents]
    files = numpy.empty((len(kept), 2), numpy.uintp)
    pointers = (ctypes.c_char_p * len(kept))(*[one if type(one) is bytes else None for one in kept])
    files[:, 0] = numpy.frombuffer(pointers, numpy.uintp)
    files[:, 1] = [len(one) for one in kept]
    for index, one in enumerate(kept):
        if type(one) is not bytes:
            files[index, 0] = one.ctypes.data
    return files, kept


def _pointer(array, kind):
    return array.ctypes.data_as(ctypes.POINTER(kind))


def _lay_out(infos, planar):
    """The Views of images like INFOS, at offsets in one memory; and the bytes of it. Images of one shape have equal
    distances."""
    views = numpy.zeros(len(infos), _VIEW)
    for name in "width", "height", "channels", "type":
        views[name] = infos[name]
    size = 1 + (infos["type"] == 1).astype(numpy.int64)
    width, height, channels = (infos[name].astype(numpy.int64) for name in ("width", "height", "channels"))
    views["memory"] = _arrays.DEVICE
    views["column_stride"] = size if planar else size * channels
    views["row_stride"] = views["column_stride"] * width
    views["channel_stride"] = views["row_stride"] * height if planar else size
    padded = (size * width * height * channels + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    ends = numpy.cumsum(padded)
    views["data"] = ends - padded
    return views, size, int(ends[-1])


def decode(sources, options, device, layout, context):
    """Decode SOURCES, each the bytes of a file and its name (_Errors), to arrays on a GPU."""
    planar = _library.one_of({None: False, "hwc": False, "chw": True}, layout, "layout")
    memory = _memory(device)
    if not sources:
        return []
    files, kept = _bytes_of([content for content, _ in sources])
    errors = _Errors([name for _, name in sources])
    count, context = len(kept), chosen_context(context, memory.number)
    options.stream = memory.stream
    infos, files = numpy.zeros(count, _INFO), _pointer(files, _library.Bytes)
    pointer = _pointer(infos, _library.FileInfo)
    errors.check(_library.inspect_all(context, files, count, options, pointer, errors.errors))
    views, sizes, total = _lay_out(infos, planar)
    offsets = views["data"].tolist()
    views["data"] += numpy.uint64(memory.allocate(total))
    errors.check(_library.decode_all(context, files, count, options, _pointer(views, _library.View), errors.errors))
    rows, columns, channel_strides = (views[f"{name}_stride"] // sizes for name in ("row", "column", "channel"))
    arrays = []
    for height, width, channels, row, column, channel, size, offset in zip(*(part.tolist() for part in (
            infos["height"], infos["width"], infos["channels"], rows, columns, channel_strides, sizes)), offsets):
        shape, strides = ((height, width), (row, column)) if channels == 1 else \
            ((channels, height, width), (channel, row, column)) if planar else \
            ((height, width, channels), (row, column, channel))
        arrays.append(memory.array(shape, strides, size, offset))
    return arrays


# ---- Encode ----

def encode(images, view_of, settings, layout, context):
    """The bytes of files with IMAGES: arrays on a GPU, or on the host. VIEW_OF(image, name, layout, True) is the View
    of one."""
    _library.one_of({None: 0, "hwc": 0, "chw": 0}, layout, "layout")
    arrays = [image for image in images if _arrays.is_on_device(image)]
    numbers = set(map(_arrays.device_of, arrays))
    if arrays:
        settings.stream = _arrays.current_stream(arrays[0])
    views, _kept = _arrays.many_views(images, layout, lambda image: view_of(image, "image", layout, True))
    if len(numbers) > 1:
        raise ValueError(f"the images are on the GPUs {sorted(numbers)}; give the images of one GPU at a time")
    if not images:
        return []
    names = [f"image {index} of the list" for index in range(len(images))] if len(images) > 1 else [None]
    errors, files = _Errors(names), (_library.Bytes * len(images))()
    context = chosen_context(context, *numbers)
    try:
        errors.check(_library.encode_all(context, _pointer(views, _library.View), len(images), settings, files,
                                         errors.errors))
        return [ctypes.string_at(file.data, file.size) for file in files]
    finally:
        for file in files:
            _library.free(file.data)
