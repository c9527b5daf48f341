#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare what the package says of the library with the list of its interface: interface.py ROOT."""
import ctypes
import inspect
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, run_tests  # noqa: E402

need_module("numpy")
from gpuconv import _arrays, _filters, _library  # noqa: E402

LINES = (ROOT / "tests/library/interface.txt").read_text(encoding="utf-8").splitlines()


def test_structs():
    """Each struct has the members of the C struct, at the same offsets."""
    structs = [struct for _, struct in inspect.getmembers(_library, inspect.isclass)
               if issubclass(struct, ctypes.Structure) and struct is not _library.Settings]
    assert len(structs) >= 9, structs
    for struct in structs:
        name = "gpuconv_" + re.sub(r"(?<!^)([A-Z])", r"_\1", struct.__name__).lower()
        own = [f"struct {name} {ctypes.sizeof(struct)} bytes"]
        for member, _ in struct._fields_:
            field = getattr(struct, member)
            own.append(f"struct {name} {member} at {field.offset}, {field.size} bytes")
        assert own == [line for line in LINES if line.startswith(f"struct {name} ") and "(" not in line], (name, own)


def kind_of(declaration):
    """What ctypes should say of a declaration in C."""
    if declaration == "void":
        return None
    match = re.match(r"(struct gpuconv_view|enum gpuconv_status|int|size_t)( \w+)?$", declaration)
    if match:
        return {"struct gpuconv_view": _library.View, "size_t": ctypes.c_size_t}.get(match[1], ctypes.c_int)
    match = re.match(r"(?:const )?struct gpuconv_(context_options|filter_info|view|options|file_info|decode_options|"
                     r"preprocess_options|encode_options|compare_options|difference|error|bytes) \*\w+", declaration)
    if match:
        struct = "".join(word.capitalize() for word in match[1].split("_"))
        return ctypes.POINTER(getattr(_library, struct))
    return {"size_t *size": ctypes.POINTER(ctypes.c_size_t), "int *width": ctypes.POINTER(ctypes.c_int),
            "int *height": ctypes.POINTER(ctypes.c_int), "void **bytes": ctypes.POINTER(ctypes.c_void_p),
            "const char *": ctypes.c_char_p, "const char *name": ctypes.c_char_p, "const char *text": ctypes.c_char_p,
            "const char *kernel": ctypes.c_char_p,
            "double reducing_gap": ctypes.c_double, "const char *part": ctypes.c_char_p}.get(declaration, ctypes.c_void_p)


def test_functions():
    """Each function takes and returns what the C function does."""
    seen = 0
    for line in LINES:
        match = re.match(r"(.*?)\b(gpuconv_(\w+))\((.*)\)$", line)
        if match is None or not hasattr(_library, match[3]):
            continue
        function = getattr(_library, match[3])
        result = kind_of(match[1].strip() if not match[1].endswith("*") else match[1])
        arguments = [] if match[4] == "void" else [kind_of(part.strip()) for part in match[4].split(",")]
        assert function.__name__ == match[2] and function.restype is result, (line, function.restype)
        assert list(function.argtypes) == arguments, (line, function.argtypes, arguments)
        seen += 1
    assert seen == 29, seen


def test_enums():
    for values, prefix, names in (
            (_filters.BORDERS, "border", {}),
            (_filters.ALPHAS, "alpha", {"filter": "FILTER_ALPHA"}),
            (dict(sorted(((name, row[0]) for name, row in _arrays.SAMPLES.items()), key=lambda pair: pair[1])), "type",
             {"float32": "FLOAT", "float16": "HALF", "float64": "DOUBLE"}),
            ({"host": _arrays.HOST, "device": _arrays.DEVICE}, "memory", {})):
        own = [f"enum gpuconv_{prefix} GPUCONV_{names.get(name, name.upper())} {value}"
               for name, value in values.items()]
        assert own == [line for line in LINES if line.startswith(f"enum gpuconv_{prefix} ")], own
    statuses = [line for line in LINES if line.startswith("enum gpuconv_status GPUCONV_")]
    assert set(_library.EXCEPTIONS) == {int(line.split()[-1]) for line in statuses} - {0}, statuses


run_tests(globals())
