# SPDX-License-Identifier: MIT
"""libgpuconv by ctypes: the structs and functions of gpuconv.h, under their own names. A call releases the GIL.

python/tests/interface.py compares the layouts and the functions with tests/library/interface.txt."""
import ctypes
import operator
import os
import pathlib
import sys
import warnings
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p

from ._errors import GpuError, ImageError, ImageWarning


def _load():
    """The library beside this file, as the wheel has it; else the installed one."""
    name = "libgpuconv.so.0"
    own = pathlib.Path(__file__).with_name(name)
    try:
        return ctypes.CDLL(os.fspath(own) if own.exists() else name)
    except OSError as error:
        raise ImportError(f"the library of gpuconv cannot be loaded: {error}; install both by `pip install .` in a "
                          "clone, or set LD_LIBRARY_PATH to the folder of libgpuconv.so.0") from None


# ---- Arguments ----

def expect(value, kind, name):
    """VALUE, which is a KIND. The library would take any number for an address. NAME is for messages."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}; give a {kind.__name__}")
    return value


def shown(value):
    """VALUE in a message: what was given, or of what kind it is."""
    words = repr(value) if isinstance(value, (bool, int, float, complex, str, bytes, type(None))) else ""
    return words if 0 < len(words) < 60 else f"a {type(value).__name__}"


def integer(value, name, kind=c_int):
    """VALUE as a KIND of ctypes, which would cut off its higher bits."""
    try:
        result = kind(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}; give an integer") from None
    if result.value != value:
        raise ValueError(f"{name} is {value}; give {'0 or more' if value < 0 else 'a smaller number'}")
    return result


def real(value, name):
    """VALUE, a number, as a float."""
    if not isinstance(value, (str, bytes)):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"{name} is {shown(value)}; give a number")


def flag(value, name):
    """VALUE, which is True or False: "no" would be true."""
    if value is True or value is False or type(value).__name__ in ("bool_", "bool"):  # NumPy has its own
        return bool(value)
    raise TypeError(f"{name} is {shown(value)}; give True or False")


def one_of(values, key, name):
    """The value of KEY, which is one of the keys of VALUES."""
    try:
        return values[key]
    except (KeyError, TypeError):  # also of what cannot be a key
        choice = ", ".join(map(repr, filter(None, values)))
        raise ValueError(f"there is no {name} {shown(key)}; give {choice}") from None


def text(value, name):
    """VALUE, a string or a path, as bytes for C, which would end it at a byte 0."""
    try:
        content = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}; give a string") from None
    except UnicodeError:
        raise ValueError(f"{name} has a character that UTF-8 cannot store; leave it out") from None
    if b"\0" in content:
        raise ValueError(f"{name} is {value!r}, with a character 0; leave it out")
    return content


# ---- Structs ----

class Settings(ctypes.Structure):
    """A struct of the caller's numbers, by their names."""

    def __init__(self, **values):
        kinds = dict(self._fields_)
        super().__init__(**{name: integer(value, name, kinds[name]) if kinds[name] in _INTEGERS else value
                            for name, value in values.items()})


_INTEGERS = c_int, c_size_t, c_uint32, c_uint64


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 2044)]

    def text(self, name=None):
        """The message. NAME is that of the file, which the functions for many files call "image"."""
        lines = self.message.decode(errors="replace").split("\n")
        return "\n".join(line if name is None else name + line[5:] if line.startswith(("image:", "image ")) else
                         f"{name}: {line}" for line in lines)

    def warn(self, name=None):
        """Give the warnings of a call that has succeeded to the caller of this package. NAME is as for text()."""
        if self.message:
            frame, depth = sys._getframe(1), 2
            while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
                frame, depth = frame.f_back, depth + 1
            for line in self.text(name).split("\n"):
                warnings.warn(line, ImageWarning, depth)


class ContextOptions(Settings):
    _fields_ = [("threads", c_int), ("uses_gpu", c_int), ("device", c_int), ("reserved", c_int * 5)]


class FilterInfo(ctypes.Structure):
    _fields_ = [("count", c_int), ("left", c_int), ("right", c_int), ("above", c_int), ("below", c_int),
                ("exact", c_int), ("largest_error", c_double), ("reserved", c_int * 8)]


class View(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("width", c_int), ("height", c_int), ("channels", c_int), ("type", c_int),
                ("memory", c_int), ("count", c_int), ("row_stride", c_ssize_t), ("column_stride", c_ssize_t),
                ("channel_stride", c_ssize_t), ("image_stride", c_ssize_t), ("reserved", c_int * 4)]


class Options(ctypes.Structure):
    _fields_ = [("border", c_int), ("alpha", c_int), ("linear", c_int), ("curve_of", c_void_p), ("stream", c_void_p),
                ("stop", c_void_p), ("reserved", c_int * 4)]


class FileInfo(ctypes.Structure):
    _fields_ = [("format", c_char_p), ("width", c_int), ("height", c_int), ("channels", c_int), ("type", c_int),
                ("reserved", c_int * 8)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class DecodeOptions(Settings):
    _fields_ = [("bits", c_int), ("keep_orientation", c_int), ("name", c_char_p), ("max_pixels", c_size_t),
                ("stream", c_void_p), ("page", c_int), ("reserved", c_int * 3)]


class PreprocessOptions(Settings):
    _fields_ = [("decode", DecodeOptions), ("kernel", c_char_p), ("placements", c_void_p), ("levels", c_void_p),
                ("pad", c_uint32), ("background", c_uint32), ("has_background", c_int), ("reserved", c_int * 5)]


class EncodeOptions(Settings):
    _fields_ = [("format", c_char_p), ("quality", c_int), ("subsampling", c_int), ("progressive", c_int),
                ("compression", c_int), ("background", c_uint32), ("has_background", c_int),
                ("metadata_of", c_void_p), ("lossless", c_int), ("reserved", c_int * 3), ("stream", c_void_p)]


class Difference(ctypes.Structure):
    _fields_ = [("same_shape", c_int), ("largest", c_int), ("largest_of", c_int * 4), ("first_x", c_int),
                ("first_y", c_int), ("box_x", c_int), ("box_y", c_int), ("box_width", c_int), ("box_height", c_int),
                ("pixels", c_uint64), ("tolerated", c_uint64), ("psnr", c_double), ("ssim", c_double),
                ("antialiased", c_uint64), ("local_ssim", c_double), ("beyond", c_int), ("reserved", c_int * 3)]


class CompareOptions(Settings):
    _fields_ = [("tolerance", c_int), ("strict_channels", c_int), ("ignore_antialiasing", c_int),
                ("ignore_transparent", c_int), ("tolerance_yiq", c_double), ("different", c_uint64),
                ("min_psnr", c_double), ("min_ssim", c_double), ("min_local_ssim", c_double), ("reserved", c_int * 8)]


# ---- Functions ----

# enum gpuconv_status: the exceptions of BAD_ARGUMENT, BAD_DATA, NO_MEMORY and NO_GPU
EXCEPTIONS = {1: ValueError, 2: ImageError, 3: MemoryError, 4: GpuError}


def _check_status(status, function, arguments):
    if status != 0:
        reads_no_file = function in (apply_list, filter_size, pillow_resize)
        kinds = EXCEPTIONS | {2: ValueError} if reads_no_file else EXCEPTIONS
        raise kinds[status](arguments[-1].text())


def _check_pointer(pointer, _function, arguments):
    if pointer is None:
        _check_status(arguments[-1].status, None, arguments)
    return pointer


def _declare(name, result, *arguments):
    """The function, which raises what its last argument, an Error, says. Those for many files have many Errors, and
    only return a status."""
    function = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    if arguments and arguments[-1] is _ERROR and not name.endswith("_all"):
        function.errcheck = _check_status if result is c_int else _check_pointer
    return function


_library = _load()
_ERROR, _VIEW = POINTER(Error), POINTER(View)

version = _declare("gpuconv_version", c_char_p)
gpus = _declare("gpuconv_gpus", c_int)
context_open = _declare("gpuconv_context_open", c_void_p, POINTER(ContextOptions), _ERROR)
context_close = _declare("gpuconv_context_close", None, c_void_p)
filter_find = _declare("gpuconv_filter_find", c_void_p, c_char_p, _ERROR)
filter_parse = _declare("gpuconv_filter_parse", c_void_p, c_char_p, c_size_t, c_char_p, _ERROR)
filter_flip = _declare("gpuconv_filter_flip", c_void_p, c_void_p, _ERROR)
filter_describe = _declare("gpuconv_filter_describe", None, c_void_p, POINTER(FilterInfo))
filter_size = _declare("gpuconv_filter_size", c_int, c_void_p, POINTER(c_int), POINTER(c_int), _ERROR)
filter_text = _declare("gpuconv_filter_text", c_void_p, c_void_p, c_int, c_int, _ERROR)
filter_name = _declare("gpuconv_filter_name", c_char_p, c_int)
filter_close = _declare("gpuconv_filter_close", None, c_void_p)
apply_list = _declare("gpuconv_apply_list", c_int, c_void_p, c_void_p, _VIEW, _VIEW, c_int, POINTER(Options), _ERROR)
pillow_resize = _declare("gpuconv_pillow_resize", c_int, c_char_p, _VIEW, _VIEW, c_void_p, c_double, _ERROR)
image_view = _declare("gpuconv_image_view", View, c_void_p)
image_free = _declare("gpuconv_image_free", None, c_void_p)
inspect = _declare("gpuconv_inspect", c_int, c_void_p, c_size_t, POINTER(FileInfo), _ERROR)
decode = _declare("gpuconv_decode", c_void_p, c_void_p, c_void_p, c_size_t, POINTER(DecodeOptions), _ERROR)
encode = _declare("gpuconv_encode", c_int, c_void_p, _VIEW, POINTER(EncodeOptions), POINTER(c_void_p),
                  POINTER(c_size_t), _ERROR)
free = _declare("gpuconv_free", None, c_void_p)
inspect_all = _declare("gpuconv_inspect_all", c_int, c_void_p, POINTER(Bytes), c_int, POINTER(DecodeOptions),
                       POINTER(FileInfo), _ERROR)
decode_all = _declare("gpuconv_decode_all", c_int, c_void_p, POINTER(Bytes), c_int, POINTER(DecodeOptions), _VIEW,
                      _ERROR)
encode_all = _declare("gpuconv_encode_all", c_int, c_void_p, _VIEW, c_int, POINTER(EncodeOptions), POINTER(Bytes),
                      _ERROR)
preprocess_all = _declare("gpuconv_preprocess_all", c_int, c_void_p, POINTER(Bytes), _VIEW, c_int,
                          POINTER(PreprocessOptions), _VIEW, _ERROR)
image_metadata = _declare("gpuconv_image_metadata", c_void_p, c_void_p, c_char_p, POINTER(c_size_t))
metadata_pack = _declare("gpuconv_metadata_pack", c_void_p, c_void_p, POINTER(c_size_t), _ERROR)
metadata_unpack = _declare("gpuconv_metadata_unpack", c_void_p, c_void_p, c_size_t, _ERROR)
compare_with = _declare("gpuconv_compare_with", c_int, c_void_p, _VIEW, _VIEW, POINTER(CompareOptions),
                        POINTER(Difference), _ERROR)
compare_picture = _declare("gpuconv_compare_picture", c_void_p, _VIEW, _VIEW, _ERROR)


# ---- Objects ----

class Object:
    """An object of the library, which ends with this one. It can be an argument of the functions."""

    _as_parameter_ = c_void_p()  # none
    _release = staticmethod(lambda _pointer: None)

    def __init__(self, pointer, release):
        self._as_parameter_ = c_void_p(pointer)
        self._release = release

    def _close(self):
        pointer, self._as_parameter_ = self._as_parameter_, Object._as_parameter_
        self._release(pointer)

    def __del__(self):
        self._close()

    def __reduce__(self):
        raise TypeError("this object of gpuconv cannot be copied or sent to another process; make a new object there")
