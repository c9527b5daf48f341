#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Images of files: their metadata, copies of them in other processes, and warnings: images.py GPUCONV ROOT."""
import copy
import io
import os
import pathlib
import pickle
import subprocess
import sys
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

sys.dont_write_bytecode = True  # leave no files in the sources
PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run, run_tests  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

import gpuconv  # noqa: E402

IMAGE = numpy.random.default_rng(4).integers(0, 256, (40, 50, 3), "uint8")
ROCKET = ROOT / "samples/rocket.jpg"


def exif_block():
    """A block in little endian with tags of each directory."""
    def entry(tag, kind, count, value):
        return tag.to_bytes(2, "little") + kind.to_bytes(2, "little") + count.to_bytes(4, "little") + value

    def number(value, size=4):
        return value.to_bytes(size, "little").ljust(4, b"\0")

    head = b"II*\0" + number(8)
    first = [entry(0x10F, 2, 4, b"Me!\0"), entry(0x112, 3, 1, number(1, 2)), entry(0x8769, 4, 1, number(62)),
             entry(0x8825, 4, 1, number(92))]
    second = [entry(0x829A, 5, 1, number(200)), entry(0x8827, 3, 1, number(400, 2))]
    third = [entry(1, 2, 2, b"N\0\0\0"), entry(2, 5, 3, number(208))]
    block = head
    for entries in (first, second, third):
        block += number(len(entries), 2)[:2] + b"".join(entries) + number(0)
    block = block.ljust(200, b"\0")
    for pair in ((1, 250), (47, 1), (30, 1), (5, 2)):
        block += number(pair[0]) + number(pair[1])
    return block


def with_chunk(png, kind, content):
    """PNG with a chunk more, after its head."""
    chunk = len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")
    return png[:33] + chunk + png[33:]


def warned(function, *arguments, **options):
    """The messages of the warnings of a call, and its result."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = function(*arguments, **options)
    assert all(one.category is gpuconv.ImageWarning and one.filename == __file__ for one in seen), seen
    return [str(one.message) for one in seen], result


# ---- Metadata ----

def test_metadata():
    photo = gpuconv.read(with_chunk(gpuconv.encode(IMAGE), b"eXIf", exif_block()))
    assert photo.shape == IMAGE.shape and photo.icc == b"" and photo.exif[:4] in (b"II*\0", b"MM\0*")
    tags = photo.exif_dict
    assert tags["Make"] == "Me!" and tags["ExposureTime"] == Fraction(1, 250) and tags["GPSLatitudeRef"] == "N", tags
    assert tags["PhotographicSensitivity"] == 400 and tags["GPSLatitude"] == (47, 30, Fraction(5, 2)), tags
    assert gpuconv.read(gpuconv.encode(IMAGE)).exif_dict == {}
    from gpuconv import _exif
    for end in range(len(photo.exif)):  # damaged blocks lose tags, and that is all
        _exif.parse(photo.exif[:end])
    half = gpuconv.filter(photo, "resize:50%")
    assert half.exif_dict["Make"] == "Me!" and half.shape == (20, 25, 3)
    half.save("half.png")
    assert pathlib.Path("half.png").read_bytes() == gpuconv.encode(half)
    assert gpuconv.read(io.BytesIO(half._repr_png_())).shape == (20, 25, 3)
    large = gpuconv.filter(photo, "resize:3000x20:exact")
    assert gpuconv.read(large._repr_png_()).shape[1] <= 1000


def test_image():
    """An Image is taken for its array, and equal to another one with the same samples."""
    photo, other = gpuconv.read(ROCKET), gpuconv.read(gpuconv.encode(gpuconv.read(ROCKET)))
    assert photo.size == photo.shape[1::-1] and photo.dtype == "uint8" and len(photo) == photo.shape[0]
    assert photo == other and photo.format != other.format and not photo != other
    assert photo != gpuconv.read(ROCKET, bits=16) and photo != 3 and (photo == photo.array).all()
    assert numpy.shares_memory(numpy.asarray(photo), photo.array)
    assert numpy.array_equal(photo[3:5, 2], photo.array[3:5, 2])
    other.array[5, 6, 1] ^= 1
    assert photo != other
    expect(TypeError, "unhashable", hash, photo)


def test_layouts():
    """Planes are read, filtered, written and compared as interleaved images are."""
    for path in (ROCKET, ROOT / "samples/cat.png"):
        planes, photo = gpuconv.read(path, layout="chw"), gpuconv.read(path, layout="hwc")
        assert numpy.array_equal(planes, photo.array.transpose(2, 0, 1)) and planes.array.flags.c_contiguous
        assert planes.size == photo.size and planes.layout == "chw" and planes == photo == gpuconv.read(path)
        for suffix in ("png", "jpg", "ppm"):
            with warnings.catch_warnings(action="ignore"):
                assert gpuconv.encode(planes, suffix, layout="chw") == gpuconv.encode(photo, suffix)
                assert gpuconv.encode(planes.array, suffix, layout="chw") == gpuconv.encode(photo.array, suffix)
                assert gpuconv.encode([planes.array, planes.array[:, :9]], suffix, layout="chw")[1] == \
                    gpuconv.encode(photo.array[:9], suffix)
        half = gpuconv.filter(planes, "resize:50%,blur", linear=True)
        assert half == gpuconv.filter(photo, "resize:50%,blur", linear=True) and half.layout == "chw"
        assert gpuconv.encode(pickle.loads(pickle.dumps(half)), "png") == gpuconv.encode(half)
        assert gpuconv.compare(planes, photo) and gpuconv.compare(planes.array, path, layout="chw")
        assert not gpuconv.difference(planes, photo).any()
        assert gpuconv.read(io.BytesIO(half._repr_png_())).size == half.size
        gpuconv.write(["a.png", "b.png"], [planes, photo])
        assert pathlib.Path("a.png").read_bytes() == pathlib.Path("b.png").read_bytes()
    grey = gpuconv.read(gpuconv.encode(IMAGE[..., 0]), layout="chw")
    assert grey.shape == (40, 50) and grey.size == (50, 40) and gpuconv.filter(grey, "blur").shape == (40, 50)
    expect(ValueError, "no layout 'hwc'; leave layout out", gpuconv.filter, planes, "blur", layout="hwc")
    expect(ValueError, "no layout 'chw'; leave layout out", gpuconv.encode, photo, layout="chw")


def test_words_of_the_command():
    """Options of a file take the words of the command, and None is the default."""
    rgba = numpy.dstack([IMAGE, IMAGE[..., 0]])
    gpuconv.write("in.png", rgba)
    for suffix, words, options in (
            ("jpg", ["--quality", "37"], {"quality": 37}), ("jpg", [], {"quality": None, "subsampling": None}),
            ("jpg", ["--subsampling", "4:2:2"], {"subsampling": "4:2:2"}),
            ("jpg", ["--subsampling", "440"], {"subsampling": 440}), ("jpg", ["--subsampling", "keep"],
                                                                      {"subsampling": "keep"}),
            ("jpg", ["--background", "black"], {"background": "Black"}),
            ("jpg", ["--background", "white"], {"background": "white"}),
            ("ppm", ["--background", "#f80"], {"background": "#f80"}),
            ("ppm", ["--background", "#12aBc4"], {"background": "#12aBc4"}),
            ("ppm", ["--background", "#000102"], {"background": 0x102}),
            *(("png", ["--compression", str(level)], {"compression": level}) for level in (0, 1, 4, 9, "fast")),
            ("png", [], {"compression": None}), ("png", ["--compression", "0"], {"compression": numpy.int64(0)}),
            ("png", ["--compression", "0"], {"compression": -1}),
            ("png", ["--compression", "fast"], {"compression": -2})):
        run(PROGRAM, "identity", "in.png", f"out.{suffix}", *words)
        with warnings.catch_warnings(action="ignore"):
            gpuconv.write(f"own.{suffix}", gpuconv.filter(gpuconv.read("in.png"), "identity"), **options)
        own, out = (pathlib.Path(f"{name}.{suffix}").read_bytes() for name in ("own", "out"))
        assert own == out, (words, options)
    expect(ValueError, "the background is 'orange'; give 'white'", gpuconv.encode, rgba, "jpg", background="orange")


def blurred(image):
    return gpuconv.filter(image, "resize:50%,blur")


def test_copies():
    """Copies of an image, also from other processes, become the files that it becomes."""
    samples = [gpuconv.read(ROCKET), gpuconv.read(ROOT / "samples/cat.png", bits=16),
               gpuconv.read(with_chunk(gpuconv.encode(IMAGE), b"eXIf", exif_block())), blurred(gpuconv.read(ROCKET))]
    for photo in samples:
        for again in (copy.copy(photo), copy.deepcopy(photo), pickle.loads(pickle.dumps(photo))):
            assert numpy.array_equal(again.array, photo.array) and again.format == photo.format
            for suffix in ("jpg", "png"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", gpuconv.ImageWarning)
                    assert gpuconv.encode(again, suffix) == gpuconv.encode(photo, suffix)
            assert numpy.array_equal(gpuconv.filter(again, "blur", linear=True),
                                     gpuconv.filter(photo, "blur", linear=True))
        deep = copy.deepcopy(photo)
        deep.array[:] = 0
        assert photo.array.any()
    for method in ("fork", "spawn"):
        with ProcessPoolExecutor(1, get_context(method)) as pool:
            there = pool.submit(blurred, samples[0]).result()
        assert gpuconv.encode(there, "jpg") == gpuconv.encode(blurred(samples[0]), "jpg")
    packed = pickle.dumps(samples[0])
    for old in (b"0.1.0\0", gpuconv.__version__.encode() + b"\0"):
        if old in packed:
            try:
                pickle.loads(packed.replace(old, b"9.9.9\0"))
            except ValueError as error:
                assert "pack and unpack with one version" in str(error), error
            else:
                raise AssertionError("metadata of another version were taken")


# ---- Warnings ----

def test_lists():
    """A list of files has the images, errors and warnings of each, in order."""
    text = with_chunk(gpuconv.encode(IMAGE), b"tEXt", b"Comment\0" + 5000 * b"x")
    pathlib.Path("list.png").write_bytes(text)
    sources = [source for _ in range(3)
               for source in (ROCKET, text, io.BytesIO(text), "list.png", gpuconv.encode(IMAGE, "ppm"))]
    said, images = warned(gpuconv.read, sources)
    for source, image in zip(sources, images):
        alone = warned(gpuconv.read, io.BytesIO(text) if isinstance(source, io.BytesIO) else source)[1]
        assert numpy.array_equal(image, alone) and (image.format, image.exif) == (alone.format, alone.exif)
    assert [line.partition(": metadata")[0] for line in said[:3]] == ["file 1 of the list", "file 2 of the list",
                                                                      "list.png"]
    assert len(said) == 9
    assert gpuconv.read([]) == [] and len(gpuconv.read([ROCKET], context=gpuconv.Context(threads=1))) == 1
    expect(gpuconv.ImageError, "file 7 of the list: is not", gpuconv.read, [text] * 7 + [b"x", b"y"])
    expect(FileNotFoundError, "absent.png", gpuconv.read, [text, "absent.png", b"x"])


def command_warnings(*words):
    return run(PROGRAM, *words).stderr.count("warning: ")


def test_warnings():
    """What the command line warns of."""
    rgba = numpy.dstack([IMAGE, IMAGE[..., 0]])
    for array, suffix, text in ((rgba, "jpg", "JPEG cannot store alpha"), (rgba, "ppm", "PPM cannot store alpha"),
                                (IMAGE.astype("uint16"), "jpg", "JPEG stores 8 bits"), (rgba, "png", None),
                                (IMAGE, "jpg", None), (IMAGE.astype("uint16"), "png", None)):
        said, content = warned(gpuconv.encode, array, suffix)
        assert len(said) == (text is not None) and (text is None or text in said[0]), (suffix, said)
        gpuconv.write("in.png", array)
        assert command_warnings("identity", "in.png", f"out.{suffix}") == len(said)
    assert warned(gpuconv.encode, rgba, "jpg", background=0)[0] == []
    assert len(warned(gpuconv.write, "a.jpg", rgba)[0]) == 1
    text = with_chunk(gpuconv.encode(IMAGE), b"tEXt", b"Comment\0" + 5000 * b"x")
    pathlib.Path("text.png").write_bytes(text)
    said, photo = warned(gpuconv.read, "text.png")
    assert len(said) == 1 and said[0].startswith("text.png: metadata not carried over: text"), said
    assert warned(gpuconv.read, text)[0][0].startswith("image: metadata not carried over: text")
    short = gpuconv.read(with_chunk(gpuconv.encode(IMAGE), b"eXIf", exif_block()))
    assert "PPM: metadata not carried over" in warned(gpuconv.encode, short, "ppm")[0][0]
    for call, count in ((lambda: gpuconv.Filter([[1, 2, 1]]), 1), (lambda: gpuconv.Filter([1, 2, 1], scale=4), 0),
                        (lambda: gpuconv.Filter([1, 2, 1], scale=1), 0), (lambda: gpuconv.Filter([[0, 0]]), 1),
                        (lambda: gpuconv.filter(IMAGE, [[3, 4]]), 1), (lambda: gpuconv.Filter.parse("1 2 1"), 1),
                        (lambda: gpuconv.filter(IMAGE, numpy.ones((3, 3)) / 9), 0),
                        (lambda: gpuconv.Filter([[-1, 0, 1]]), 0),
                        (lambda: gpuconv.filter(IMAGE, "resize:50%", border="wrap"), 1)):
        said, _ = warned(call)
        assert len(said) == count, said
    assert "the taps sum to 4" in warned(gpuconv.Filter, [[1, 2, 1]])[0][0]
    pathlib.Path("sum.txt").write_text("1 2 1\n")
    assert len(warned(gpuconv.filter, IMAGE, "./sum.txt")[0]) == command_warnings("./sum.txt", "in.png", "o.png") == 1
    code = "import gpuconv\ntry:\n    gpuconv.Filter([3, 4])\nexcept gpuconv.ImageWarning as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("taps: the taps sum to 7") and not done.stderr, done


if __name__ == "__main__":
    run_tests(globals())
