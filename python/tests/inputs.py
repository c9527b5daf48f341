#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What users of NumPy and OpenCV give: arrays of all kinds, taps, paths and open files: inputs.py ROOT."""
import io
import pathlib
import re
import sys
import unittest.mock

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run_tests  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402

RANDOM = numpy.random.default_rng(3)
IMAGE = RANDOM.integers(0, 256, (24, 31, 3), "uint8")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and numpy.array_equal(a, b)


# ---- Arrays ----

def test_strides():
    """Negative strides and those of 0 are those of the same samples in a new array, as input and as output."""
    for dtype in ("uint8", "uint16", "float32", ">u2", "float64"):
        image = IMAGE.astype(dtype)
        for view in (image[:, :, ::-1], image[::-1], image[:, ::-1], numpy.fliplr(image), numpy.rot90(image),
                     image[::-2, ::-3], numpy.broadcast_to(image[3], image.shape), image[:, :, 1][:, ::-1],
                     numpy.broadcast_to(image[:, :1, :1], image.shape)):
            kept = view.copy()
            for name in ("motion:9:30", "resize:60%"):
                expected = gpuconv.filter(numpy.ascontiguousarray(view), name)
                assert same(gpuconv.filter(view, name), expected), (dtype, view.strides)
                out = numpy.zeros((expected.shape[0] + 2, *expected.shape[1:]), dtype)
                part = out[::-1][1:-1]
                assert gpuconv.filter(view, name, out=part) is part and same(part, expected)
                assert not out[0].any() and not out[-1].any()
            assert same(view, kept)
    assert not gpuconv.compare(IMAGE[::-1], (255 - IMAGE)[::-1]) and gpuconv.compare(IMAGE[::-1], IMAGE[::-1])
    assert gpuconv.encode(IMAGE[:, ::-1]) == gpuconv.encode(IMAGE[:, ::-1].copy())
    own = IMAGE.copy()
    gpuconv.filter(own[::-1], "blur", out=own[::-1])
    assert same(own, gpuconv.filter(IMAGE[::-1].copy(), "blur")[::-1])
    packed = numpy.zeros((8, 9), [("flag", "u1"), ("value", "<f4")])["value"]  # not aligned
    assert same(gpuconv.filter(packed, "blur"), numpy.zeros((8, 9), "float32"))
    expect(ValueError, "share memory", gpuconv.filter, IMAGE, "blur",
           out=numpy.lib.stride_tricks.as_strided(IMAGE.copy(), IMAGE.shape, (0, 3, 1)))


def test_types():
    """The result has the caller's type, and the samples of the type that the library has."""
    for dtype in (">u2", "<u2", ">f4", "<f4"):
        image = IMAGE.astype(dtype)
        native = image.astype(image.dtype.newbyteorder("="))
        result = gpuconv.filter(image, "blur")
        assert result.dtype == dtype and numpy.array_equal(result, gpuconv.filter(native, "blur"))
    floats = gpuconv.filter(IMAGE.astype("float32") / 255, "sharpen")
    assert same(gpuconv.filter((IMAGE.astype("float32") / 255).astype("float64"), "sharpen"), floats.astype("float64"))
    half = (IMAGE / 255).astype("float16")
    assert same(gpuconv.filter(half, "blur"), gpuconv.filter(half.astype("float32"), "blur").astype("float16"))
    mask = IMAGE > 100
    assert same(gpuconv.filter(mask, "identity"), mask)
    assert same(gpuconv.filter(numpy.ones((9, 9), bool), [[1]]), numpy.ones((9, 9), bool))
    expect(ValueError, "only True and False", gpuconv.filter, mask, "blur")
    assert numpy.isinf(gpuconv.filter(numpy.full((9, 9), 60000, "float16"), [[2]])).all()
    expect(ValueError, "float32 cannot store", gpuconv.filter, numpy.full((9, 9), 1e300), "blur")
    infinite = numpy.zeros((9, 9))
    infinite[0, 0] = numpy.inf
    assert gpuconv.filter(infinite, "identity")[0, 0] == numpy.inf
    for dtype in ("int64", "int8", "int32", "uint64"):
        expect(TypeError, f'samples of {dtype}; give image.astype("float32")', gpuconv.filter, IMAGE.astype(dtype),
               "blur")
    out = numpy.zeros(IMAGE.shape)
    assert gpuconv.filter(IMAGE / 255, "blur", out=out) is out and out.any()


def table():
    """The rows of the table of samples in docs/python.md, made of what the package knows."""
    kinds = {}
    for name, (_, _, what) in gpuconv._arrays.SAMPLES.items():
        kinds.setdefault(what, []).append(name)
    rows = [f"| {', '.join(names)} | {what} | the same |" for what, names in kinds.items()]
    refusals = {}
    for name in ("int8", "int16", "int32", "int64", "uint32", "uint64", "longdouble", "complex64", "complex128"):
        text = str(gpuconv._arrays.refused(numpy.dtype(name), "input")).replace(
            f"samples of {numpy.dtype(name)};", "samples of KIND;")
        refusals.setdefault(text, []).append(name)
    return rows + [f"| {', '.join(names)} | a `TypeError`: `{text}` | the same |" for text, names in refusals.items()]


def test_table():
    """docs/python.md says what happens to each kind of samples, and it does."""
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    head = ["<!-- samples -->", "| samples | on the host | on a GPU |", "| --- | --- | --- |"]
    expected = "\n".join(head + table()) + "\n\n"
    assert expected in page, f"write this to docs/python.md:\n{expected}"
    for name, (_, size, what) in gpuconv._arrays.SAMPLES.items():
        if name == "bfloat16":  # see arrays.py
            continue
        image = IMAGE > 99 if name == "bool" else IMAGE.astype(name) if name.startswith("u") else \
            (IMAGE / 7).astype(name)
        assert image.itemsize == size and image.dtype == name, name
        assert same(gpuconv.filter(image, "mirror:x"), image[:, ::-1].astype("float32").astype(name)), name
        floats = gpuconv.filter(image.astype("float32"), "gaussian:1", alpha="filter")
        if "rounded once more" in what:
            assert same(gpuconv.filter(image, "gaussian:1"), floats.astype(name))
        if "ValueError" in what:
            image = numpy.eye(9) == 1 if name == "bool" else numpy.full((9, 9), -1e39)
            expect(ValueError, re.search(": `(.*)`", what)[1], gpuconv.filter, image, "blur")
    for row in table():
        for name in row.split(" | ")[0].strip("| ").split(", ") if "TypeError" in row else []:
            expect(TypeError, re.search(": `(.*)`", row)[1].replace("KIND", numpy.dtype(name).name), gpuconv.filter,
                   IMAGE.astype(name), "blur")


def test_many_channels():
    """Each channel of more than 4, and each image of a stack, is filtered as if it was alone."""
    for shape in ((24, 31, 7), (24, 31, 224), (2, 24, 31, 5)):
        cube = RANDOM.integers(0, 65536, shape, "uint16")
        for name in ("gaussian:2", "resize:50%"):
            result = gpuconv.filter(cube, name, layout="hwc")
            for c in (0, shape[-1] // 2, shape[-1] - 1):
                assert numpy.array_equal(result[..., c][0] if len(shape) == 4 else result[..., c],
                                         gpuconv.filter(cube[0, ..., c] if len(shape) == 4 else cube[..., c], name))
            planes = numpy.moveaxis(cube, -1, -3)
            assert same(gpuconv.filter(planes, name, layout="chw"), numpy.moveaxis(result, -1, -3))
            out = numpy.zeros_like(result)
            assert gpuconv.filter(cube, name, layout="hwc", out=out) is out and same(out, result)
    stack = RANDOM.integers(0, 256, (9, 24, 31), "uint8")
    result = gpuconv.filter(stack, "gaussian:2", layout="nhw")
    assert all(same(result[i], gpuconv.filter(stack[i], "gaussian:2")) for i in range(9))
    assert same(gpuconv.filter(stack, "resize:50%", layout="nhw")[8], gpuconv.filter(stack[8], "resize:50%"))
    assert same(gpuconv.filter(stack[:, ::-1], "blur", layout="nhw"),
                gpuconv.filter(stack[:, ::-1].copy(), "blur", layout="nhw"))
    for array in (stack, stack[:3], numpy.zeros((3, 24, 31), "uint8"), numpy.zeros((2, 3, 24, 31), "uint8")):
        expect(ValueError, "would be 31 channels; give layout='hwc' if it is, else 'chw' or 'nhw'", gpuconv.filter,
               array, "blur")


def test_lists():
    """A list gives a list. Small images of one shape are filtered by one call."""
    grey = RANDOM.integers(0, 256, (24, 31), "uint8")
    images = [IMAGE, grey, IMAGE[::-1], numpy.zeros((300, 300, 3), "uint8"), IMAGE / 255, 255 - grey, IMAGE.copy()]
    calls = []
    with unittest.mock.patch.object(gpuconv._filters, "_apply", lambda *arguments, own=gpuconv._filters._apply:
                                    calls.append(arguments) or own(*arguments)):
        results = gpuconv.filter(images, "resize:50%,blur")
    assert len(calls) == 3 and max(getattr(call[2], "_length_", 1) for call in calls) == 5, len(calls)
    for image, result in zip(images, results):
        assert same(result, gpuconv.filter(image, "resize:50%,blur"))
    planes = [RANDOM.random((3, 24, 31), "float32") for _ in range(3)]
    for one, result in zip(planes, gpuconv.filter(tuple(planes), "blur", layout="chw")):
        assert same(result, gpuconv.filter(one, "blur", layout="chw"))
    swapped = [IMAGE.astype(">u2"), (255 - IMAGE[:, ::-1]).astype(">u2"), 2 * IMAGE.astype(">u2")]
    for image, result in zip(swapped, gpuconv.filter(swapped, "sobel")):
        assert same(result, gpuconv.filter(image, "sobel"))
    rows = RANDOM.integers(0, 256, (40, 31), "uint8")  # parts that overlap, also turned around
    parts = [rows[10:30], rows[5:25][:, ::-1], rows[16:36]]
    out = [rows[20:], rows[:20][::-1], numpy.zeros_like(rows[:20])]
    expected = [gpuconv.filter(part.copy(), "blur") for part in parts]
    gpuconv.filter(parts, "blur", out=out)
    assert all(map(same, out, expected))
    for dtype in ("uint8", "float32", "float16", ">u2"):
        x, y, z = (RANDOM.integers(0, 256, (24, 31, 3)).astype(dtype) for _ in range(3))
        expected = gpuconv.filter([x, y, z], "gaussian:2")
        gpuconv.filter([x, y, z], "gaussian:2", out=[y, z, x])
        assert all(map(same, [y, z, x], expected)), dtype
    out = [numpy.zeros_like(image) for image in images]
    assert gpuconv.filter(images, "sobel", out=out) is out
    assert all(same(one, gpuconv.filter(image, "sobel")) for one, image in zip(out, images))
    gpuconv.write("a.png", IMAGE)
    photos = gpuconv.filter([gpuconv.read("a.png")] * 2, "blur")
    assert photos[1].format == "PNG" and same(photos[1].array, gpuconv.filter(IMAGE, "blur"))
    assert gpuconv.filter([], "blur") == []


def test_memory_map():
    """A file that is mapped for reading is an input, and one that is mapped for writing is an output."""
    IMAGE.tofile("raw")
    mapped = numpy.memmap("raw", "uint8", "r", shape=IMAGE.shape)
    expected = gpuconv.filter(IMAGE, "blur")
    result = gpuconv.filter(mapped, "blur")
    assert same(result, expected) and type(result) is numpy.ndarray
    expect(ValueError, "the output is read-only", gpuconv.filter, IMAGE, "blur", out=mapped)
    written = numpy.memmap("raw", "uint8", "r+", shape=IMAGE.shape)
    gpuconv.filter(IMAGE, "blur", out=written)
    written.flush()
    assert same(numpy.fromfile("raw", "uint8").reshape(IMAGE.shape), expected)


# ---- Taps, paths and files ----

def test_taps():
    """Taps are a filter wherever a filter is wanted, with the numbers of a filter file."""
    pathlib.Path("mean.txt").write_text("\n".join(["0.1111111111111111 " * 3] * 3))
    expected = gpuconv.filter(IMAGE, "./mean.txt")
    assert same(gpuconv.filter(IMAGE, numpy.ones((3, 3)) / 9), expected)
    assert same(gpuconv.filter(IMAGE, [[1 / 9] * 3] * 3), expected)
    assert (gpuconv.filter(numpy.full_like(IMAGE, 77), numpy.ones((3, 3)) / 9) == 77).all()
    row = gpuconv.filter(IMAGE, [1, 2, 1])
    assert same(row, gpuconv.filter(IMAGE, gpuconv.Filter([[1, 2, 1]])))
    assert same(row, gpuconv.filter(IMAGE, gpuconv.Filter([1, 2, 1])))
    assert gpuconv.Filter([1, 2, 1]).margins == (1, 1, 0, 0)
    assert same(row, gpuconv.filter(IMAGE, numpy.array([1, 2, 1], "float32")))
    assert same(gpuconv.filter(IMAGE, pathlib.Path("mean.txt").resolve()), expected)
    assert gpuconv.Filter([[1e-30, 1]]).margins == (1, 0, 0, 0)


def test_files():
    """Paths, pathlib's and open files, and formats that nothing says."""
    path = pathlib.Path("a.png")
    gpuconv.write(path, IMAGE)
    assert gpuconv.compare(path, "a.png") and gpuconv.compare(IMAGE, path)
    assert not gpuconv.difference("a.png", path).any()
    with open("a.png", "rb") as file:
        assert same(gpuconv.read(file).array, IMAGE)
    assert same(gpuconv.read(io.BytesIO(path.read_bytes())).array, IMAGE)
    stream = io.BytesIO()
    gpuconv.write(stream, IMAGE, "ppm")
    assert stream.getvalue() == gpuconv.encode(IMAGE, "ppm")
    with open("b", "wb") as file:
        gpuconv.write(file, IMAGE, format="png")
    gpuconv.write("c", IMAGE, format="png")
    assert path.read_bytes() == pathlib.Path("b").read_bytes() == pathlib.Path("c").read_bytes()
    expect(ValueError, "'x' has no suffix that says the format; give format='png'", gpuconv.write, "x", IMAGE)
    assert not pathlib.Path("x").exists()
    pathlib.Path("bad.png").write_bytes(b"\x89PNG\r\n\x1a\nbad")
    with open("bad.png", "rb") as file:
        expect(gpuconv.ImageError, "bad.png", gpuconv.read, file)


run_tests(globals())
