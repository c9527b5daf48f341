#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package beside the command line: calls.py GPUCONV ROOT."""
import copy
import ctypes
import functools
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

sys.dont_write_bytecode = True  # leave no files in the sources
CODECS = {"tif": "libtiff", "webp": "libwebp", "avif": "libheif"}  # that may not be built in
PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, has_codec, need_module, run, run_tests  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402
import gpuconv.testing  # noqa: E402
import gpuconv_pytest  # noqa: E402

RANDOM = numpy.random.default_rng(1)


def noise(*shape, dtype="uint8"):
    if dtype == "float32":
        return RANDOM.random(shape, dtype)
    return RANDOM.integers(0, 256 if dtype == "uint8" else 65536, shape, dtype)


# ---- Bytes ----

def test_bytes_of_the_command_line():
    """The file that the command line writes, from the file that it reads."""
    chance = random.Random(1)
    for _ in range(40):
        channels, dtype = chance.randrange(1, 5), chance.choice(("uint8", "uint16"))
        shape = (chance.randrange(1, 60), chance.randrange(1, 60)) + ((channels,) if channels > 1 else ())
        gpuconv.write("in.png", noise(*shape, dtype=dtype))
        name = chance.choice(("gaussian:2", "sobel", "sharpen,box3", "motion:9:30", "unsharp:1.5:2:4", "shift-left",
                              "resize:40%", "resize:33x70:exact:cubic", "crop:60%:top,sharpen,turn:90", "cover:9x20",
                              "mirror:y,pad:99x99,mirror:x"))
        border = chance.choice(("replicate", "reflect", "reflect101", "wrap", "zero"))
        alpha, linear = chance.choice(("premultiply", "keep", "filter")), chance.random() < 0.3
        run(PROGRAM, name, "in.png", "out.png", "--border", border, "--alpha", alpha, *(["--linear"] if linear else []))
        photo = gpuconv.read("in.png")
        assert photo.array.dtype == dtype and photo.array.shape == shape, photo
        result = gpuconv.filter(photo, name, border=border, alpha=alpha, linear=linear)
        assert gpuconv.encode(result) == pathlib.Path("out.png").read_bytes(), (shape, name, border, alpha, linear)
        array = gpuconv.filter(photo.array, name, border=border, alpha=alpha, linear=linear)
        assert numpy.array_equal(array, gpuconv.read("out.png").array)


def test_files_of_the_command_line():
    """Formats, metadata, orientation, and the options of writing."""
    for name, taps in (("cat.png", "blur"), ("rocket.jpg", "blur"), ("rocket.jpg", "resize:40%,sharpen")):
        source = ROOT / "samples" / name
        for suffix, words, options in (("png", [], {}), ("jpg", ["--quality", "75"], {"quality": 75}),
                                       ("png", ["--depth", "16", "--linear"], {"bits": 16, "linear": True}),
                                       ("ppm", [], {}), ("webp", [], {}), ("webp", ["--lossless"], {"lossless": True}),
                                       ("tif", ["--depth", "16"], {"bits": 16}), ("avif", ["--quality", "60"], {"quality": 60})):
            if suffix in CODECS and not has_codec(PROGRAM, CODECS[suffix]):
                continue
            run(PROGRAM, taps, str(source), f"c.{suffix}", *words)
            photo = gpuconv.read(source, bits=options.get("bits", 0))
            result = gpuconv.filter(photo, taps, linear=options.get("linear", False))
            gpuconv.write(f"p.{suffix}", result, quality=options.get("quality", 0),
                          lossless=options.get("lossless", False))
            same = pathlib.Path(f"c.{suffix}").read_bytes() == pathlib.Path(f"p.{suffix}").read_bytes()
            assert same, (name, suffix, words)
    content = (ROOT / "samples/rocket.jpg").read_bytes()
    assert numpy.array_equal(gpuconv.read(content), gpuconv.read(ROOT / "samples/rocket.jpg"))
    assert gpuconv.read(memoryview(content)).format == "JPEG"
    metadata = gpuconv.read(content)
    with_metadata = gpuconv.encode(metadata.array, "jpg", metadata=metadata)
    assert with_metadata == gpuconv.encode(metadata, "jpg")


# ---- Arrays ----

def test_written_whole():
    """A disk that fills up leaves the old file. Links stay links, permissions stay, and pipes get the bytes."""
    image = noise(300, 300, 3)
    pathlib.Path("old.png").write_text("old")
    os.chmod("old.png", 0o640)
    os.symlink("old.png", "link.png")
    full = subprocess.run(["sh", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "sh", sys.executable, "-c",
                           "import gpuconv, numpy\n"
                           "gpuconv.write('old.png', numpy.random.randint(0, 256, (300, 300), 'uint8'))"],
                          capture_output=True, text=True, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
    assert full.returncode == 1 and "OSError" in full.stderr, full
    assert pathlib.Path("old.png").read_text() == "old" and not list(pathlib.Path().glob(".gpuconv-*"))
    gpuconv.write("link.png", image)
    assert os.path.islink("link.png") and os.stat("old.png").st_mode & 0o777 == 0o640
    assert pathlib.Path("old.png").read_bytes() == gpuconv.encode(image)
    os.mkfifo("pipe.png")
    with ThreadPoolExecutor(1) as pool:
        content = pool.submit(pathlib.Path("pipe.png").read_bytes)
        gpuconv.write("pipe.png", image)
        assert content.result() == gpuconv.encode(image)


def test_layouts_and_strides():
    """Views of the same samples have the same result, and no other sample is touched."""
    for dtype in ("uint8", "uint16", "float32"):
        image = noise(23, 31, 3, dtype=dtype)
        expected = gpuconv.filter(image, "gaussian:1")
        assert expected.dtype == dtype and expected.shape == image.shape and not numpy.array_equal(expected, image)

        def is_expected(result):  # floats may be added in another order
            return numpy.allclose(result, expected, rtol=0, atol=1e-6 if dtype == "float32" else 0)

        planes = numpy.ascontiguousarray(image.transpose(2, 0, 1))
        assert is_expected(gpuconv.filter(planes, "gaussian:1", layout="chw").transpose(1, 2, 0))
        assert is_expected(gpuconv.filter(image.transpose(2, 0, 1), "gaussian:1", layout="chw").transpose(1, 2, 0))
        assert is_expected(gpuconv.filter(numpy.asfortranarray(image), "gaussian:1"))
        assert is_expected(numpy.dstack([gpuconv.filter(image[..., c], "gaussian:1") for c in range(3)]))
        wide = numpy.full((46, 62, 5), 7, dtype)
        wide[::2, ::2, 1:4] = image
        assert is_expected(gpuconv.filter(wide[::2, ::2, 1:4], "gaussian:1"))
        out = numpy.full_like(wide, 9)
        assert gpuconv.filter(image, "gaussian:1", out=out[1::2, ::2, 2:5])[0, 0, 0] == out[1, 0, 2]
        assert is_expected(out[1::2, ::2, 2:5])
        out[1::2, ::2, 2:5] = 9
        assert (out == 9).all()
        batch = numpy.stack([image, image[::-1, ::-1]])
        several = gpuconv.filter(batch, "gaussian:1")
        assert is_expected(several[0]) and is_expected(several[1][::-1, ::-1])
        assert numpy.array_equal(gpuconv.filter(numpy.ascontiguousarray(batch.transpose(0, 3, 1, 2)), "gaussian:1",
                                                layout="chw").transpose(0, 2, 3, 1), several)
        in_place = image.copy()
        assert gpuconv.filter(in_place, "gaussian:1", out=in_place) is in_place and is_expected(in_place)
    read_only = noise(5, 5)
    expected = gpuconv.filter(read_only, "blur")
    read_only.setflags(write=False)
    assert numpy.array_equal(gpuconv.filter(read_only, "blur"), expected)
    assert numpy.array_equal(gpuconv.filter(memoryview(read_only), "blur"), expected)


def test_other_sizes():
    """A new array has the size of the result, in both layouts; a given one must have it."""
    assert gpuconv.Filter("thumbnail:20%").size(400, 300) == (80, 60)
    half = gpuconv.Filter("resize:50%")
    assert half.size(30, 21) == (15, 11) and gpuconv.Filter("blur").size(30, 21) == (30, 21)
    expect(ValueError, "0 x 5", half.size, 0, 5)
    for dtype in ("uint8", "uint16", "float32"):
        rows = noise(2, 21, 30, 3, dtype="uint8").astype(dtype)
        result = gpuconv.filter(rows, half)
        assert result.shape == (2, 11, 15, 3) and result.dtype == dtype
        planes = gpuconv.filter(rows.transpose(0, 3, 1, 2), half, layout="chw")
        assert numpy.array_equal(planes.transpose(0, 2, 3, 1), result)
        out = numpy.zeros_like(result)
        assert gpuconv.filter(rows, half, out=out) is out and numpy.array_equal(out, result)
        expect(ValueError, "15 x 11 pixels", gpuconv.filter, rows, half, out=rows)


def test_moves():
    """Every sample is where NumPy has it, also those of floats that are not numbers."""
    for dtype in ("uint8", "uint16", "float32"):
        white = {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
        for channels in (1, 2, 3, 4):
            image = noise(30, 41, channels, dtype=dtype)
            if dtype == "float32":
                image[3, 4, 0], image[5, 6, -1], image[7, 8] = -numpy.inf, 7, numpy.nan
            for alpha in ("premultiply", "keep", "filter"):
                def check(name, expected, image=image, alpha=alpha):
                    for layout in ("hwc", "chw"):
                        array = image if layout == "hwc" else image.transpose(2, 0, 1)
                        result = gpuconv.filter(array, name, alpha=alpha, layout=layout)
                        result = result if layout == "hwc" else result.transpose(1, 2, 0)
                        assert result.dtype == image.dtype and result.shape == expected.shape, (name, result.shape)
                        assert result.tobytes() == expected.tobytes(), (name, dtype, channels, alpha, layout)
                check("crop:10x9+20+21", image[21:30, 20:30])
                check("turn:90", numpy.rot90(image, -1))
                check("turn:270,mirror:x", numpy.rot90(image)[:, ::-1])
                check("turn:180,mirror:y,mirror:x", image)
                padded = numpy.zeros((31, 43, channels), dtype)
                padded[:] = 0 if channels % 2 == 0 else white
                padded[0:30, 1:42] = image
                check("pad:43x31", padded)
                colour = [255, 136, 0] if channels > 2 else [156]  # Pillow's grey of it
                ground = [white] * (channels % 2 == 0)
                levels = numpy.array(colour, "float32") / 255 if dtype == "float32" else numpy.array(colour) * (white // 255)
                padded[0:1], padded[30:], padded[:, 0], padded[:, 42:] = ([[*levels, *ground]],) * 4
                padded[0:30, 1:42] = image
                check("pad:43x31:#f80", padded)
    stack = noise(3, 20, 30, 4)
    turned = gpuconv.filter(stack, "turn:90,pad:33x33")
    assert all(numpy.array_equal(turned[i], gpuconv.filter(stack[i], "turn:90,pad:33x33")) for i in range(3))
    assert gpuconv.Filter("cover:30x40,turn:90").size(500, 3) == (40, 30)
    expect(ValueError, "reaches beyond the picture", gpuconv.filter, stack[0], "crop:31x1")
    square = noise(300, 300)
    expected = numpy.rot90(square, -1).copy()
    assert gpuconv.filter(square, "turn:90", out=square) is square and numpy.array_equal(square, expected)


def test_alpha_by_type():
    """The last channel of floats is like the others, unless alpha is asked for."""
    for dtype in ("float16", "float32", "float64", "uint8", "uint16"):
        for channels in (2, 4):
            image = (200 * noise(20, 20, channels, dtype="float32") - (100 if dtype[0] == "f" else 0)).astype(dtype)
            expected = gpuconv.filter(image, "box3", alpha="filter" if dtype[0] == "f" else "premultiply")
            assert numpy.array_equal(gpuconv.filter(image, "box3"), expected), dtype
            assert not numpy.array_equal(gpuconv.filter(image, "box3", alpha="keep"), expected)
    flow = numpy.full((9, 9, 2), (3, -5), "float32")
    assert numpy.allclose(gpuconv.filter(flow, "gaussian:2"), flow)


def test_four_channels_without_alpha():
    image = noise(20, 20, 4)
    result = gpuconv.filter(image, "blur", alpha="filter")
    assert numpy.array_equal(result[..., 3], gpuconv.filter(image[..., 3], "blur"))
    assert numpy.array_equal(gpuconv.filter(image, "blur", alpha="keep")[..., 3], image[..., 3])
    assert not numpy.array_equal(gpuconv.filter(image, "blur")[..., :3], result[..., :3])


def test_float():
    """Floats are neither rounded nor clamped: the rounded result is that of the integers."""
    image = noise(40, 50, 3)
    result = gpuconv.filter(image.astype("float32") / 255, "sharpen") * 255
    assert result.min() < -1 and result.max() > 256
    assert numpy.array_equal(numpy.clip(numpy.floor(result + 0.5 + 1e-4), 0, 255), gpuconv.filter(image, "sharpen"))


def test_errors():
    image = noise(6, 7, 3)
    for kind, text, arguments, options in (
            (ValueError, 'no filter named "gauss"', (image, "gauss"), {}),
            (ValueError, "there is no border 'mirror'; give 'replicate'", (image, "blur"), {"border": "mirror"}),
            (ValueError, "there is no alpha 'none'", (image, "blur"), {"alpha": "none"}),
            (ValueError, "there is no layout 'HWC'", (image, "blur"), {"layout": "HWC"}),
            (ValueError, "the shape (3, 6, 7), which would be 7 channels; give layout='hwc' if it is, else 'chw' or",
             (image.reshape(3, 6, 7), "blur"), {}),
            (ValueError, "the output has strides of 0", (image, "blur"),
             {"out": numpy.lib.stride_tricks.as_strided(image.copy(), image.shape, (0, 3, 1))}),
            (ValueError, "has 1 dimensions", (image[0, 0], "blur"), {}),
            (ValueError, "the input has the shape (0, 7, 3)", (image[:0], "blur"), {}),
            (ValueError, "the input has the shape (0, 6, 7, 3)", (image[None][:0], "blur"), {}),
            (ValueError, "give an output like the input", (image, "blur"), {"out": noise(6, 8, 3)}),
            (ValueError, "give an output like the input", (image, "blur"), {"out": noise(6, 7, 3, dtype="uint16")}),
            (ValueError, "give an output like the input", (image[::-1], "blur"), {"out": noise(6, 8, 3)[::-1]}),
            (ValueError, "share memory", (image, "blur"), {"out": numpy.lib.stride_tricks.as_strided(
                numpy.zeros(9, "uint8"), (6, 7, 3), (1, 1, 1))}),
            (ValueError, "the output is read-only", (image, "blur"),
             {"out": numpy.frombuffer(bytes(126), "uint8").reshape(6, 7, 3)}),
            (ValueError, "CUDA stream", (image, "blur"), {"stream": 1}),
            (ValueError, "linear", (image.astype("float32"), "blur"), {"linear": True}),
            (TypeError, 'samples of int64; give image.astype("float32")', (image.astype("int64"), "blur"), {}),
            (ValueError, "only True and False", (image > 99, "blur"), {}),
            (TypeError, "the image is 'blur'; give the image first", ("blur", image), {}),
            (TypeError, "a Filter; give the image first", (gpuconv.Filter("edge"), numpy.float32(image)), {}),
            (TypeError, "give one name, such as 'blur,edge'", (image, ["sharpen", "emboss"]), {}),
            (TypeError, "give one name, such as 'blur,edge'", (image, (gpuconv.Filter("blur"),)), {}),
            (ValueError, "smaller than the picture", (image, "pad:3x90"), {}),
            (TypeError, "samples of int64", (numpy.array([[1, 2]]), "blur"), {})):
        expect(kind, text, gpuconv.filter, *arguments, **options)
    expect(ValueError, "65536", gpuconv.Context, threads=65536)
    with gpuconv.Context() as context:
        gpuconv.filter(image, "blur", context=context)
    expect(ValueError, "there is no context", gpuconv.filter, image, "blur", context=context)
    context.close()
    if gpuconv.gpus() == 0:
        expect(gpuconv.GpuError, "", gpuconv.Context, gpu=0)
    pathlib.Path("bad.png").write_bytes(b"\x89PNG\r\n\x1a\nbad")
    expect(gpuconv.ImageError, "bad.png", gpuconv.read, "bad.png")
    expect(FileNotFoundError, "none.png", gpuconv.read, "none.png")
    expect(gpuconv.ImageError, "is not a PNG", gpuconv.read, b"")
    expect(gpuconv.ImageError, "1000", gpuconv.read, ROOT / "samples/cat.png", max_pixels=1000)
    expect(gpuconv.ImageError, "has 1 page, so there is no page 2", gpuconv.read, ROOT / "samples/cat.png", page=2)
    expect(ValueError, "page -1", gpuconv.read, ROOT / "samples/cat.png", page=-1)
    expect(ValueError, "gif", gpuconv.write, "a.gif", image)
    expect(ValueError, "quality", gpuconv.encode, image, "jpg", quality=101)
    expect(FileNotFoundError, "none", gpuconv.write, "none/a.png", image)
    assert not os.path.exists("a.gif")


class Copies:
    """An array that NumPy can only copy."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.copy()


def test_wrong_kinds():
    """No argument of another kind becomes an address, and no number is cut off."""
    image = noise(6, 7, 3)
    opened = gpuconv.Context()
    for kind, text, function, arguments, options in (
            (TypeError, "context is a int", gpuconv.filter, (image, "blur"), {"context": 1}),
            (TypeError, "context is a str", gpuconv.read, (ROOT / "samples/cat.png",), {"context": "cpu"}),
            (TypeError, "context is a str", gpuconv.encode, (image,), {"context": "cpu"}),
            (TypeError, "context is a int", gpuconv.compare, (image, image), {"context": 0}),
            (TypeError, "metadata is a int", gpuconv.encode, (image,), {"metadata": 1}),
            (TypeError, "the filter is 1; give a name", gpuconv.filter, (image, 1), {}),
            (TypeError, "the filter is 1; give a name", gpuconv.Filter, (1,), {}),
            (TypeError, "the text is a bytes", gpuconv.Filter.parse, (b"1 2",), {}),
            (TypeError, "NumPy copies a Copies", gpuconv.filter, (image, "blur"), {"out": Copies(image)}),
            (TypeError, "NumPy copies a list", gpuconv.filter, (image, "blur"), {"out": image.tolist()}),
            (TypeError, "cannot be copied", copy.copy, (opened,), {}),
            (TypeError, "cannot be copied", copy.deepcopy, (opened,), {}),
            (TypeError, "cannot be copied", pickle.dumps, (opened,), {}),
            (TypeError, "threads is 1.5", gpuconv.Context, (1.5,), {}),
            (ValueError, "threads is 4294967297", gpuconv.Context, (2**32 + 1,), {}),
            (ValueError, "device is 4294967296", gpuconv.Context, (), {"gpu": 2**32}),
            (ValueError, "max_pixels is -1", gpuconv.read, (ROOT / "samples/cat.png",), {"max_pixels": -1}),
            (ValueError, "max_pixels is 184467", gpuconv.read, (ROOT / "samples/cat.png",), {"max_pixels": 2**64}),
            (ValueError, "bits is 42949", gpuconv.read, (ROOT / "samples/cat.png",), {"bits": 2**32 + 8}),
            (ValueError, "quality is 4294967386", gpuconv.encode, (image, "jpg"), {"quality": 2**32 + 90}),
            (TypeError, "quality is '90'", gpuconv.encode, (image, "jpg"), {"quality": "90"}),
            (ValueError, "background is -1", gpuconv.encode, (image, "jpg"), {"background": -1}),
            (ValueError, "tolerance is 4294967297", gpuconv.compare, (image, image, 2**32 + 1), {}),
            (ValueError, "the stream is 18446744073709551616", gpuconv.filter, (image, "blur"), {"stream": 2**64}),
            (ValueError, "the width is 4294967301", gpuconv.Filter("blur").size, (2**32 + 5, 5), {}),
            (ValueError, "the filter is 'blur\\x00'", gpuconv.filter, (image, "blur\0"), {}),
            (ValueError, "the format is 'png\\x00x'", gpuconv.encode, (image, "png\0x"), {})):
        expect(kind, text, function, *arguments, **options)
    assert gpuconv.filter(image, "blur", out=memoryview(image), context=opened).obj is image
    assert gpuconv.Filter("blur").size(numpy.int16(5), 6) == (5, 6)


# ---- Filters ----

def test_filters():
    """Taps are those of the same filter file, and what is shown is what the command line shows."""
    rows = [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]
    text = "scale 3\noffset 12.5\nabs\nanchor 0 1\n-2 -1 0\n-1 1 1\n0 1 2\n"
    pathlib.Path("mine.txt").write_text(text)
    options = {"scale": 3, "offset": 12.5, "anchor": (0, 1), "absolute": True}
    image = noise(30, 40)
    expected = gpuconv.filter(image, "./mine.txt")
    made = [gpuconv.Filter(rows, **options), gpuconv.Filter(numpy.array(rows, "int8"), **options),
            gpuconv.Filter.parse(text), gpuconv.Filter(pathlib.Path("./mine.txt"))]
    made += [pickle.loads(pickle.dumps(one)) for one in made]
    for one in made:
        assert numpy.array_equal(gpuconv.filter(image, one), expected), one
        assert one.margins == (0, 2, 1, 1) and one.exact and one.largest_error == 0
    taps = numpy.array(rows, "int16")
    kept = gpuconv.Filter(taps, **options)
    taps[:] = 5
    for one in (pickle.loads(pickle.dumps(kept)), copy.copy(kept), copy.deepcopy({1: kept})[1], kept.flip().flip(),
                pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(gpuconv.Filter.parse(text, "mine")))))):
        assert numpy.array_equal(gpuconv.filter(image, one), expected) and one.exact, one
    named = gpuconv.Filter.parse(text, "mine").flip()
    assert repr(pickle.loads(pickle.dumps(named))) == repr(named) == "<gpuconv.Filter mine, flipped>"
    flipped = pickle.loads(pickle.dumps(made[0].flip()))
    turned = [row[::-1] for row in rows[::-1]]
    again = gpuconv.Filter(turned, **dict(options, anchor=(2, 1)))
    assert numpy.array_equal(gpuconv.filter(image, flipped), gpuconv.filter(image, again))
    thirds = gpuconv.Filter([[Fraction(1, 3)] * 3])
    assert gpuconv.Filter([[True, 2]]).describe() == gpuconv.Filter([[1, 2]]).describe()
    assert thirds.exact and not gpuconv.Filter([[1 / 3, 1e-7]]).exact
    for name in ("gaussian:2", "sharpen,box3", "sobel"):
        shown = gpuconv.Filter(name)
        assert run(PROGRAM, "--show", name).stdout == shown.show(), shown.show()
        assert len(shown.describe()) == name.count(",") + 1 and "taps" in str(shown.describe()[0])
    for taps in ([], [[]], [[1, 2], [3]], [[0] * 128]):
        expect(ValueError, "", gpuconv.Filter, taps)
    expect(TypeError, "a named filter has its own", gpuconv.Filter, "blur", scale=2)
    assert "gaussian3" in gpuconv.filter_names() and len(gpuconv.filter_names()) > 15


# ---- Threads and processes ----

def test_threads():
    """Threads do not disturb each other, with contexts of their own and with one that they share."""
    images = [noise(200, 300, 3) for _ in range(16)]
    expected = [gpuconv.filter(image, "gaussian:3") for image in images]
    for context in (None, gpuconv.Context(threads=2)):
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda image: gpuconv.filter(image, "gaussian:3", context=context), 4 * images))
        assert all(numpy.array_equal(a, b) for a, b in zip(results, 4 * expected))


def test_releases_the_lock():
    """Another thread runs while a call does. A call that kept the interpreter's lock would stop it until its end."""
    image, beats, done = noise(1500, 1500, dtype="uint16"), [], threading.Event()

    def beat():
        while not done.is_set():
            beats.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=beat)
    thread.start()
    with gpuconv.Context(threads=1) as context:
        begin = time.perf_counter()
        gpuconv.filter(image, "disk:20", context=context)
        end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(begin < moment < end for moment in beats)
    assert end - begin > 0.02 and inside >= 5, (inside, end - begin)


INTERRUPTED = """
import gpuconv, numpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its jobs in the background ignore the signal
image = numpy.zeros((12000, 12000), "uint16")
out = numpy.ones_like(image)
print("begun", flush=True)
try:
    gpuconv.filter(image, "disk:20", out=out, context=gpuconv.Context(threads=1))
except KeyboardInterrupt:
    print("interrupted", out[-1].all(), flush=True)
assert numpy.array_equal(gpuconv.filter(image[:100], "blur"), image[:100])
"""


def test_interrupt():
    """A long call hears Ctrl-C, and the next call works."""
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted True\n"
    assert time.perf_counter() - begin < 10, time.perf_counter() - begin
    assert process.wait() == 0


SIGNALS = """
import gpuconv, numpy, signal
class Alarm(Exception): pass
armed = False
def raises(number, _frame):
    if armed:
        raise KeyboardInterrupt if number == signal.SIGINT else Alarm
for number in signal.SIGINT, signal.SIGUSR1:
    signal.signal(number, raises)
for number in range(4):
    image = numpy.full((5000, 5000), number, "uint16")
    try:
        try:
            context, armed = gpuconv.Context(threads=1), True
            print("begun", flush=True)
            with context:
                gpuconv.filter(image, "disk:30", out=numpy.zeros_like(image), context=context)
        finally:
            armed = False
    except (KeyboardInterrupt, Alarm) as error:
        armed = False
        del context, image
        print(type(error).__name__, flush=True)
image = numpy.full((50, 50), 9, "uint16")
assert numpy.array_equal(gpuconv.filter(image, "blur"), image)
for number in signal.SIGINT, signal.SIGUSR1:  # the interpreter takes its handlers away before it ends
    signal.signal(number, signal.SIG_IGN)
"""


def test_signals():
    """Many signals whose handlers raise end a long call, and not the process."""
    process = subprocess.Popen([sys.executable, "-c", SIGNALS], stdout=subprocess.PIPE, text=True)
    for number in range(4):
        assert process.stdout.readline() == "begun\n"
        ended = threading.Event()

        def send(ended=ended, number=number):
            time.sleep(0.1)
            for count in range(400):
                if process.poll() is not None or ended.wait(0.0007 * (number + 1)):
                    return
                process.send_signal(signal.SIGUSR1 if (count + number) % 3 == 2 else signal.SIGINT)

        sender = threading.Thread(target=send)
        sender.start()
        name = process.stdout.readline()
        ended.set()
        sender.join()
        assert name in ("KeyboardInterrupt\n", "Alarm\n"), (number, name, process.poll())
    assert process.wait() == 0, process.returncode


def test_second_exception():
    """The call has ended before the first exception leaves the wait, whatever comes after it. It may also fail to start
    or end with an exception of its own."""
    from gpuconv import _context, _library
    main, options, seen, context = threading.main_thread().ident, _library.Options(), [], gpuconv.Context()

    def call():
        stop = ctypes.c_int.from_address(options.stop)
        for count in range(6):
            signal.pthread_kill(main, signal.SIGUSR1)
            time.sleep(0.03)
            seen.append(stop.value)

    def raises(_number, _frame):
        raise LookupError(len(seen))

    before = signal.signal(signal.SIGUSR1, raises)
    try:
        expect(LookupError, "0", _context.run_interruptibly, context, options, call)
        assert seen == [1] * 6, seen
        with unittest.mock.patch.object(_context, "start_new_thread", side_effect=RuntimeError("can't start")):
            _context.run_interruptibly(context, options, lambda: seen.append(2))
        assert seen[6:] == [2]
        expect(ZeroDivisionError, "", _context.run_interruptibly, context, options, lambda: 1 // 0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    context.close()


def test_fork():
    """A child has contexts of its own."""
    image = noise(900, 900, 3)
    expected = gpuconv.filter(image, "blur")
    own = gpuconv.Context()
    assert numpy.array_equal(gpuconv.filter(image, "blur", context=own), expected)
    child = os.fork()
    if child == 0:
        try:
            expect(ValueError, "belongs to the parent", gpuconv.filter, image, "blur", context=own)
            own.close()
            assert numpy.array_equal(gpuconv.filter(image, "blur"), expected)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORKS = """
import gpuconv, numpy, os, threading, time
image = numpy.arange(900 * 900 * 3, dtype="uint8").reshape(900, 900, 3)
expected = gpuconv.filter(image, "blur")
ready, end = threading.Barrier(4), threading.Event()

def sleep():
    gpuconv.filter(image, "blur")
    ready.wait()
    end.wait()

def work():
    ready.wait()
    while not end.is_set():
        gpuconv.filter(image, "blur")

threads = [threading.Thread(target=one) for one in (sleep, sleep, work)]
for thread in threads:
    thread.start()
ready.wait()
time.sleep(0.05)
for _ in range(5):
    child = os.fork()
    if child == 0:
        same = numpy.array_equal(gpuconv.filter(image, "blur"), expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
end.set()
for thread in threads:
    thread.join()
import multiprocessing
multiprocessing.set_start_method("fork")
with multiprocessing.Pool(2) as pool:
    assert pool.map(len, [[1], [2, 3]]) == [1, 2]
    assert all(numpy.array_equal(one, expected) for one in pool.starmap(gpuconv.filter, [(image, "blur")] * 4))
"""


def test_fork_beside_threads():
    """A child does not wait for threads of its parent that have filtered, that sleep, or that filter."""
    done = subprocess.run(["timeout", "60", sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def test_ends():
    """A program that leaves everything open ends without a word."""
    code = ("import gpuconv, numpy\nimage = numpy.zeros((900, 900, 3), 'uint8')\n"
            "gpuconv.filter(image, 'blur')\nphoto = gpuconv.read(gpuconv.encode(image))\ncontext = gpuconv.Context()\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def test_images_outlive():
    """The samples stay as long as an array has them."""
    array = gpuconv.read(ROOT / "samples/cat.png").array[5:, 5:]
    copy = array.copy()
    for _ in range(20):
        gpuconv.read(ROOT / "samples/cat.png")
    assert numpy.array_equal(array, copy)


# ---- Compare ----

def test_compare():
    a = noise(30, 40, 3)
    b = a.copy()
    b[7, 9, 1] ^= 64
    b[12, 4, 0] ^= 1
    same, differs = gpuconv.compare(a, a), gpuconv.compare(a, b, 1)
    assert same and same.psnr == float("inf") and same.first is None and same.largest_of == (0, 0, 0)
    assert not differs and (differs.pixels, differs.tolerated, differs.largest) == (1, 1, 64)
    assert differs.largest_of == (1, 64, 0) and differs.first == (9, 7) and differs.box == (9, 7, 1, 1)
    assert "1 pixels differ by more than 1, the most by 64; the first at column 9, row 7" in repr(differs)
    assert gpuconv.compare(a, b, 64) and not gpuconv.compare(a, b[..., 0]).same_shape
    expect(ValueError, "tolerance", gpuconv.compare, a, b, -1)
    planes = [numpy.ascontiguousarray(one.transpose(2, 0, 1)) for one in (a, b)]
    for given, tolerance in ((planes, 1), ([one / 255 for one in planes], 1 / 254)):
        found = gpuconv.compare(*given, tolerance, layout="chw")
        assert found.first == (9, 7) and found.pixels == 1 and not found
    assert numpy.array_equal(gpuconv.difference(*planes, layout="chw"), gpuconv.difference(a, b))
    expect(ValueError, "200 channels; give 1 to 4", gpuconv.compare, numpy.zeros((9, 9, 200), "uint8"), a, layout="hwc")
    picture = gpuconv.difference(a, b)
    assert picture[7, 9].any() and not picture[0, 0].any() and picture.shape[:2] == a.shape[:2]
    gpuconv.write("a.png", a)
    gpuconv.write("b.png", b)
    run(PROGRAM, "--compare", "a.png", "b.png", "d.png", status=1)
    assert numpy.array_equal(gpuconv.read("d.png"), picture)


def test_compare_options():
    """The options of `--compare` find what the command line finds."""
    a = noise(30, 40, 3)
    b = a.copy()
    b[7, 9, 1] ^= 64
    b[12, 4, 0] ^= 1
    opaque = numpy.dstack([a, numpy.full((30, 40), 255, "uint8")])
    grey = noise(30, 40)
    edges = numpy.zeros((40, 40), "uint8")
    edges[:, 20:] = 255
    smooth = edges.copy()
    smooth[10:30, 19] = 90
    hidden = opaque.copy()
    hidden[3, 3] = 0
    other = hidden.copy()
    other[3, 3, 1] = 9
    veiled = numpy.full((30, 40, 4), 100, "uint8")
    veiled[10:, :, 3] = 0
    spotted = veiled.copy()
    spotted[0, 0] += 1
    for first, second, options in (
            (a, b, {}), (a, b, {"tolerance": 1}), (a, b, {"different": 1}), (a, b, {"different": 2}),
            (a, b, {"different": "0.09%"}), (a, b, {"different": "0.17%"}), (a, b, {"different": "100%"}),
            (hidden, other, {"different": "0.1%"}), (hidden, 255 - other, {"different": "99.92%"}),
            (hidden, 255 - other, {"different": "99.91%", "ignore_transparent": True}),
            (veiled, spotted, {"different": "0.1%"}),
            (veiled, spotted, {"different": "0.1%", "ignore_transparent": True}),
            (a, b, {"min_ssim": 0.9}), (a, b, {"min_ssim": 0.9999}), (a, b, {"min_ssim": 0.9, "tolerance": 1}),
            (a, b, {"min_psnr": 30}), (a, b, {"min_psnr": 60}), (a, b, {"min_local_ssim": 0.9}),
            (a, b, {"min_local_ssim": 0.5}), (a, b, {"tolerance_yiq": 0.2}), (a, b, {"tolerance_yiq": 0.01}),
            (a, opaque, {}), (a, opaque, {"strict_channels": False}), (grey, numpy.dstack([grey] * 3), {}),
            (grey, numpy.dstack([grey] * 3), {"strict_channels": False}), (a, hidden, {"strict_channels": False}),
            (hidden, other, {"ignore_transparent": True}), (hidden, other, {}),
            (edges, smooth, {}), (edges, smooth, {"ignore_antialiasing": True})):
        gpuconv.write("a.png", first)
        gpuconv.write("b.png", second)
        words = [] if options.get("strict_channels") is False else ["--strict-channels"]
        words += [word for name, value in options.items() if name != "strict_channels"
                  for word in ["--" + name.replace("_", "-")] + ([str(value)] if value is not True else [])]
        done = subprocess.run([PROGRAM, "--compare", "a.png", "b.png", *words], capture_output=True, text=True)
        kept = first.copy(), second.copy()
        found = gpuconv.compare(first, second, **options)
        assert numpy.array_equal(first, kept[0]) and numpy.array_equal(second, kept[1])
        assert done.returncode == (0 if found else 1), (options, done, found)
    assert gpuconv.compare(edges, smooth, ignore_antialiasing=True).antialiased > 0
    assert gpuconv.compare(a, b).ssim < gpuconv.compare(a, a).ssim == 1


def test_compare_floats():
    a = noise(20, 30, 3, dtype="float32")
    b = a.copy()
    b[7, 9, 1] += 0.25
    assert gpuconv.compare(a, a) and gpuconv.compare(a, b, 0.3) and gpuconv.compare(a, a.astype("float64"))
    found = gpuconv.compare(a, b, 0.1)
    assert not found and found.first == (9, 7) and found.box == (9, 7, 1, 1) and found.pixels == 1
    assert abs(found.largest - 0.25) < 1e-6 and found.largest_of[0] == 0 and 30 < found.psnr < 60
    b[7, 9, 1] = numpy.nan
    assert not gpuconv.compare(a, b, 1e9) and not gpuconv.compare(b, b)
    assert not gpuconv.compare(a, a[1:]).same_shape
    assert gpuconv.compare(a > 0.5, a > 0.5) and not gpuconv.compare(a > 0.5, a > 0.4)
    expect(TypeError, "samples of float32; give uint8 or uint16", gpuconv.compare, a, noise(20, 30, 3))


def test_golden():
    a = noise(30, 40, 3)
    b = a.copy()
    b[7, 9] ^= 64
    gpuconv.write("golden.png", a)
    gpuconv.testing.assert_images_equal(a, "golden.png")
    gpuconv.testing.assert_images_equal(b, "golden.png", tolerance=64)
    assert not os.path.exists("gpuconv-differences")
    for _ in range(2):
        expect(AssertionError, "golden.png: 1 pixels differ", gpuconv.testing.assert_images_equal, b, "golden.png")
    assert numpy.array_equal(gpuconv.read("gpuconv-differences/golden.png"), b)
    assert gpuconv.read("gpuconv-differences/golden-difference.png").array[7, 9].any()
    assert gpuconv.compare("golden.png", "gpuconv-differences/golden-expected.png")
    gpuconv.testing.assert_images_equal(b, "golden.png", min_ssim=0.9)
    page = pathlib.Path("gpuconv-differences/index.html").read_text()
    assert page.count("<h2>golden</h2>") == 1 and page.count("<img") == 3 and "golden.png: 1 pixels differ" in page
    expect(AssertionError, "new.png does not exist; see f/new.png", gpuconv.testing.assert_images_equal, a,
           pathlib.Path("new.png"), folder="f")
    expect(AssertionError, "the images: the images have different sizes", gpuconv.testing.assert_images_equal, a, a[1:])
    floats = a / 255
    gpuconv.testing.assert_images_equal(floats, floats + 1e-9, 1e-6)
    expect(AssertionError, "differ by more than 0", gpuconv.testing.assert_images_equal, floats, floats + 0.01,
           folder="g")
    expect(AssertionError, "1 pixels differ", gpuconv.testing.assert_images_equal, b.transpose(2, 0, 1), "golden.png",
           layout="chw", folder="h")
    expect(AssertionError, "1 pixels differ", gpuconv.testing.assert_images_equal, a.transpose(2, 0, 1) / 255.0,
           b.transpose(2, 0, 1) / 255.0, layout="chw", folder="i")
    assert gpuconv.compare("i/image.png", a)
    assert numpy.array_equal(gpuconv.read("h/golden.png"), b)
    assert numpy.array_equal(gpuconv.read("g/image-expected.png"), gpuconv.read("g/image.png")) is False


def test_golden_files():
    """Paths for both, goldens of one name, and what the command does."""
    a = noise(30, 40, 3)
    b = a.copy()
    b[7:9, 9:12] ^= 64
    for folder in ("one", "two/one", "two"):
        os.makedirs(folder, exist_ok=True)
        gpuconv.write(f"{folder}/same.png", a)
    gpuconv.write("one/other.png", b)
    gpuconv.testing.assert_images_equal("one/same.png", "two/same.png")
    for folder in ("one", "two/one", "two"):
        expect(AssertionError, f"see h/{folder}/same.png, h/{folder}/same-expected.png, h/{folder}/same-difference.png",
               gpuconv.testing.assert_images_equal, "one/other.png", f"{folder}/same.png", folder="h")
        assert numpy.array_equal(gpuconv.read(f"h/{folder}/same.png"), b)
    gpuconv.write("one/same.jpg", a)
    expect(AssertionError, "see h/one/same.jpg.png", gpuconv.testing.assert_images_equal, b, "one/same.jpg", folder="h")
    outside = pathlib.Path("..", "outside #1.png").absolute()
    expect(AssertionError, "outside #1.png does not exist; see h/", gpuconv.testing.assert_images_equal, b, outside,
           folder="h")
    page = pathlib.Path("h/index.html").read_text()
    assert "outside%20%231.png" in page and page.count("<figcaption>difference") == 4, page

    gpuconv_pytest.update = True
    gpuconv.testing.assert_images_equal("one/same.jpg", "new/same.jpg")  # its bytes, not its samples encoded anew
    gpuconv_pytest.update = False
    assert pathlib.Path("new/same.jpg").read_bytes() == pathlib.Path("one/same.jpg").read_bytes()

    def passes(*words, **options):
        gpuconv.testing.assert_images_equal(*words, **options)
        return True
    fails = functools.partial(expect, AssertionError, "differ", gpuconv.testing.assert_images_equal, folder="h")
    rgba = numpy.dstack([a, numpy.full((30, 40), 255, "uint8")])
    grey = a[:, :, 0].copy()
    assert passes(rgba, a) and passes(a, rgba) and passes(numpy.dstack([grey] * 3), grey)
    expect(AssertionError, "different sizes, channels", gpuconv.testing.assert_images_equal, rgba, a, folder="h",
           strict_channels=True)
    red = numpy.dstack([grey] * 3)
    red[0, 0] = 1, 2, 3
    fails(red, grey)
    assert passes(b, a, ignore=[(9, 7, 3, 2)]) and passes(b, a, ignore=iter([(0, 8, 40, 100), (9, 7, 9, 1)]))
    fails(b, a, ignore=[(9, 7, 2, 2)])
    mask = numpy.full((30, 40, 4), 255, "uint8")
    mask[7:9, 9:12, :3] = 0
    gpuconv.write("mask.png", mask)
    assert passes(b, a, mask=mask) and passes(b, a, mask="mask.png") and passes(b, a, mask=mask[:, :, 1])
    assert passes(b / 255, a / 255, mask=mask, ignore=[(0, 0, 1, 1)])
    mask[8, 11, 2] = 1
    fails(b, a, mask=mask)
    assert passes(b, a, different="0.5%") and passes(b, a, different=6) and passes(b, a, different="100%")
    fails(b, a, different="0.49%")
    fails(b, a, different="0.5%", ignore=[(20, 20, 9, 9)])
    for wrong, words in (({"different": "5"}, "a share such as"), ({"different": "101%"}, "a share such as"),
                         ({"ignore": [(1, 2, 3)]}, "rectangles of pixels"), ({"ignore": [(-1, 2, 3, 4)]}, "rectangles"),
                         ({"ignore": [5]}, "rectangles"), ({"mask": grey[1:]}, "the mask has the shape (29, 40)")):
        expect(ValueError, words, gpuconv.testing.assert_images_equal, b, a, **wrong)


run_tests(globals())
