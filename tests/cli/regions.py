#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Regions, masks, squares, automatic levels and channels, against NumPy: regions.py GPUCONV STUB.

A chain of filters with regions makes what NumPy composes of whole runs: outside, all samples stay, and inside they are
those of a run without a region. Files of grey have one channel, and sepia of such a file has three."""
import fractions
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import need_module, temporary_folder  # noqa: E402
from moves import is_same, random_picture, read, write  # noqa: E402
from resize import Runs  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

SIZES = ((1, 1), (1, 70), (70, 1), (33, 47), (200, 30), (31, 300), (64, 64))
FILTERS = ("gaussian:2", "sharpen", "sobel", "box:9", "unsharp:2:1:3", "shift", "gaussian:12", "edge", "invert", "sepia",
           "saturation:50", "levels:10:200", "threshold:40", "pixelate:7", "auto-levels:1", "auto-contrast", "median:2", "blackhat:1")


# ---- The same in NumPy ----

def random_region(array):
    """A region with a pixel of the picture, as text and as slices."""
    height, width = array.shape[:2]
    while True:
        texts, numbers = [], []
        for i, side in enumerate((width, height, width, height)):
            sign = "" if i < 2 else random.choice("++-")
            if random.random() < 0.4:
                percent = random.choice(("1", "12.5", "50", "33.3", "100", "0.7", "250"))
                text, value = f"{percent}%", fractions.Fraction(percent) / 100 * side
            else:
                value = fractions.Fraction(random.randint(0, side + 5))
                text = str(value)
            texts.append((sign or ("+" if i > 1 else "")) + text)
            numbers.append(((-value if sign == "-" else value) * 2 + 1) // 2)  # to nearest, halves up
        w, h, x, y = numbers
        rows, columns = slice(max(y, 0), max(y + h, 0)), slice(max(x, 0), max(x + w, 0))
        if array[rows, columns].size > 0:
            return f"@{texts[0]}x{texts[1]}{texts[2]}{texts[3]}", rows, columns


def random_mask(runs, name, width, height):
    """A mask file of any kind, and its levels of 16 bits."""
    channels, bits = random.randint(1, 4), random.choice((8, 16))
    mask = random_picture(width, height, channels, bits)
    white = (1 << bits) - 1
    for level in (0, white):
        mask[numpy.frombuffer(random.randbytes(width * height), "u1").reshape(height, width) < 80] = level
    write(runs, "mask.pam", mask)
    if name.endswith(".png"):
        runs.run("identity", "mask.pam", name)
    else:
        os.replace("mask.pam", name)
    wide = mask.astype(numpy.int64) * (65535 // white)
    if channels < 3:
        return wide[:, :, :1]
    return ((2126 * wide[:, :, 0] + 7152 * wide[:, :, 1] + 722 * wide[:, :, 2] + 5000) // 10000)[:, :, None]


def blended(before, after, levels):
    return ((levels * after + (65535 - levels) * before + 32767) // 65535).astype(before.dtype)


def squares(array, side):
    result = array.copy()
    for y in range(0, array.shape[0], side):
        for x in range(0, array.shape[1], side):
            part = array[y:y + side, x:x + side].astype(numpy.int64)
            count = part.shape[0] * part.shape[1]
            result[y:y + side, x:x + side] = (2 * part.sum((0, 1)) + count) // (2 * count)
    return result


def stretched(array, clip, joins):
    """Automatic levels of the colours. Alpha stays."""
    result, white = array.copy(), numpy.iinfo(array.dtype).max
    colours = list(range(3 if array.shape[2] > 2 else 1))
    for group in [colours] if joins else [[c] for c in colours]:
        values = numpy.sort(array[:, :, group].ravel()).astype(numpy.int64)
        cut = int(fractions.Fraction(str(clip)) / 100 * len(values))
        black, light = values[cut], values[len(values) - 1 - cut]
        if black < light:
            span = light - black
            levels = (2 * (array[:, :, group].astype(numpy.int64) - black) * white + span) // (2 * span)
            result[:, :, group] = numpy.clip(levels, 0, white)
    return result


# ---- Checks ----

def random_options():
    options = ["--alpha", random.choice(("premultiply", "keep", "filter"))]
    options += ["--border", random.choice(("replicate", "reflect101", "wrap", "zero"))]
    return options + (["--linear"] if random.random() < 0.3 else [])


def check_product(runs, stub):
    """Filters with regions and masks, in every channel, depth, alpha, border, light, number of threads and backend."""
    random.seed(70)
    for number in range(150):
        width, height = random.choice(SIZES)
        channels, bits = 1 + number % 4, random.choice((8, 16))
        array = random_picture(width, height, channels, bits)
        if number % 3 == 0 and channels % 2 == 0:
            array[:, :, -1] = (1 << bits) - 1  # opaque
        write(runs, "in.pam", array)
        options, specs = random_options(), []
        for i in range(random.choice((1, 1, 2, 3))):
            filter_ = random.choice([f for f in FILTERS if channels > 2 or f != "sepia"])
            write(runs, "before.pam", array)
            runs.run(filter_, "before.pam", "after.pam", "--backend", "cpu", *options)
            after = read(runs, "after.pam")
            if after.shape != array.shape:  # a file of grey
                after = numpy.concatenate([after[:, :, :1]] * 3 + [after[:, :, 1:]], 2)
            kind = random.random()
            if kind < 0.45:
                region, rows, columns = random_region(array)
                array = array.copy()
                array[rows, columns] = after[rows, columns]
                specs.append(filter_ + region)
            elif kind < 0.8 or filter_ == "threshold:40":
                name = f"mask{i}.{random.choice(('png', 'pam'))}"
                array = blended(array, after, random_mask(runs, name, width, height))
                specs.append(f"{filter_}@{name}")
            else:
                array = after
                specs.append(filter_)
        options += ["--threads", random.choice("1237"), "-q"]
        what = (specs, width, height, channels, bits, options)
        for program, backend in ((runs, "cpu"), (stub, "cuda")):
            program.run(",".join(specs), "in.pam", "out.pam", "--backend", backend, *options)
            assert is_same(read(runs, "out.pam"), array), (what, backend)


def check_squares_and_levels(runs, stub):
    random.seed(71)
    for number in range(80):
        width, height = random.choice(SIZES)
        channels, bits = 1 + number % 4, random.choice((8, 16))
        array = random_picture(width, height, channels, bits)
        if number % 2:  # dark
            array = (array // 3 + 7).astype(array.dtype)
        write(runs, "in.pam", array)
        side, clip = random.choice((1, 2, 3, 7, 64, 4096)), random.choice((0, 0.5, 2.25, 30, 49))
        cases = [(f"pixelate:{side}", squares(array, side))]
        for word, joins in (("auto-levels", False), ("auto-contrast", True)):
            cases.append((word + (f":{clip}" if clip else ""), stretched(array, clip, joins)))
        for spec, expected in cases:
            for program, backend in ((runs, "cpu"), (stub, "cuda")):
                program.run(spec, "in.pam", "out.pam", "--alpha", "filter", "--backend", backend)
                # Automatic levels leave alpha as it is. Squares take it for a colour here.
                assert is_same(read(runs, "out.pam"), expected), (spec, width, height, channels, bits, backend)


def check_bands(runs):
    """A picture of many bands, from a PNG to a PNG. Before a crop, automatic levels are still those of the picture."""
    random.seed(72)
    array = random_picture(300, 3000, 3, 8) // 2 + 30
    array[2999, 299] = (255, 0, 9)
    write(runs, "in.pam", array)
    runs.run("identity", "in.pam", "in.png")
    levels, blocks = stretched(array, 0, False), squares(array, 100)
    part = array.copy()
    part[1000:1500, 20:90] = blocks[1000:1500, 20:90]
    stretched_part = array.copy()
    stretched_part[10:20] = levels[10:20]
    for spec, expected in (("auto-levels", levels), ("auto-levels,crop:30x20+5+1000", levels[1000:1020, 5:35]),
                           ("auto-levels@300x10+0+10", stretched_part),
                           ("auto-levels@300x10+0+10,crop:300x30+0+0", stretched_part[:30]),
                           ("pixelate:100", blocks), ("pixelate:100,crop:30x20+5+1010", blocks[1010:1030, 5:35]),
                           ("pixelate:100@70x500+20+1000", part), ("pixelate:100@70x500+20+1000,mirror:y", part[::-1])):
        for threads in "125":
            for source in ("in.pam", "in.png"):
                runs.run(spec, source, "out.png", "--threads", threads, "--backend", "cpu")
                runs.run("identity", "out.png", "out.pam")
                assert is_same(read(runs, "out.pam"), expected), (spec, threads, source)


# ---- Channels of files ----

def profile(space):
    """An ICC profile without a tag, of the colour space SPACE."""
    return struct.pack(">I4xI4s4s4s12x4s88xI", 132, 0x04000000, b"mntr", space, b"XYZ ", b"acsp", 0)


def png_file(name, array, space=None):
    data = array.astype(array.dtype.newbyteorder(">")).tobytes()
    icc = chunk(b"iCCP", b"p\0\0" + zlib.compress(profile(space))) if space else b""
    with open(name, "wb") as file:
        file.write(png(array.shape[1], array.shape[0], array.shape[2], 8 * array.itemsize,
                       unfiltered(data, len(data) // array.shape[0]), chunks=icc))


def read_back(runs, name):
    runs.run("identity", name, "back.pam")
    return read(runs, "back.pam")


def channels_of(runs, name):
    return read_back(runs, name).shape[2]


def check_channels(runs, stub):
    random.seed(73)
    colours, grey = random_picture(23, 19, 3, 8), random_picture(23, 19, 1, 8)
    png_file("colours.png", colours)
    png_file("grey.png", grey)
    png_file("deep.png", random_picture(23, 19, 4, 16))
    formats = ["png", "jpg"] + [f for f in ("tif", "webp") if {"tif": "libtiff", "webp": "libwebp"}[f] in runs.run("--version")]
    runs.run("grey", "colours.png", "expected.pam")
    mixed = (colours.astype(numpy.int64) * (2126, 7152, 722)).sum(2, keepdims=True)
    assert is_same(read(runs, "expected.pam"), ((mixed + 5000) // 10000).astype(numpy.uint8))
    for program, backend in ((runs, "cpu"), (stub, "cuda")):
        for suffix in formats:
            only_colours = suffix == "webp"
            for spec, source, channels in (
                    ("grey", "colours.png", 1), ("grey", "grey.png", 1), ("sepia", "grey.png", 3), ("sepia,grey", "grey.png", 1),
                    ("grey,sepia", "colours.png", 3), ("sepia@3x3+1+1", "grey.png", 3), ("grey@3x3+1+1", "colours.png", 3),
                    ("threshold:50", "colours.png", 1), ("grey,gaussian:1", "colours.png", 1), ("swap:BGR", "grey.png", 1),
                    ("grey,pad:40x40:#ff0000", "colours.png", 3), ("grey,pad:40x40:#808080", "colours.png", 1),
                    ("grey", "deep.png", 2), ("sepia,grey,sepia", "deep.png", 4), ("crop:50%", "colours.png", 3)):
                alpha = 0 if suffix == "jpg" else 1 - channels % 2
                wanted = (3 if only_colours else channels - (1 - channels % 2)) + alpha
                program.run(spec, source, f"out.{suffix}", "--backend", backend, "-q")
                assert channels_of(runs, f"out.{suffix}") == wanted, (spec, source, suffix, backend)
        for spec, source in (("grey", "colours.png"), ("grey,gaussian:1", "colours.png"), ("sepia,grey", "grey.png")):
            program.run(spec, source, "one.pam", "--backend", backend)
            program.run(spec, source, "two.png", "--backend", backend)
            runs.run("identity", "two.png", "two.pam")
            assert is_same(read(runs, "one.pam"), read(runs, "two.pam")), (spec, backend)
        program.run("grey", "colours.png", "out.png", "--backend", backend, "--report", "report.jsonl")
        with open("report.jsonl", encoding="utf-8") as file:
            assert json.loads(file.readline())["channels"] == 1
    sepia = numpy.concatenate([grey] * 3, 2)
    png_file("grey3.png", sepia)
    runs.run("sepia", "grey3.png", "a.pam")
    runs.run("sepia", "grey.png", "b.pam")
    assert runs.bytes_of("a.pam") == runs.bytes_of("b.pam")


def check_batches(runs, stub):
    """A GPU does JPEGs of one size together. Their bytes are those of the CPU."""
    random.seed(77)
    for i in range(8):
        write(runs, "in.pam", numpy.repeat(random_picture(6, 5, 1 if i % 4 == 3 else 3, 8), 16, 0).repeat(16, 1))
        runs.run("identity", "in.pam", f"batch{i}.jpg")
    names = [f"batch{i}.jpg" for i in range(8)]
    for spec in ("grey", "sepia", "blur@50%x50%+25%+25%,grey", "grey,resize:50%", "grey@9x9+1+1", "auto-levels:1,pixelate:6",
                 "gaussian:2@30x30-9+40,invert@9x9+0+0", "grey,pad:99x99:#ff0000"):
        for program, backend in ((runs, "cpu"), (stub, "cuda")):
            program.run("-q", "-j4", "--backend", backend, spec, *names, "-o", f"out-{backend}")
        for name in names:
            assert runs.bytes_of(f"out-cpu/{name}") == runs.bytes_of(f"out-cuda/{name}"), (spec, name)


def check_profiles(runs):
    """Colours with a profile stay three channels, grey with a profile loses it where it gets colours, and --strip
    all asks for neither."""
    random.seed(74)
    png_file("rgb.png", random_picture(9, 7, 3, 8), b"RGB ")
    png_file("grey.png", random_picture(9, 7, 1, 16), b"GRAY")
    for spec, source, options, channels, has_icc, warns in (
            ("grey", "rgb.png", (), 3, True, False), ("grey", "rgb.png", ("--strip=all",), 1, False, False),
            ("sepia", "grey.png", (), 3, False, True), ("sepia", "grey.png", ("--strip=all",), 3, False, False),
            ("gaussian:1", "grey.png", (), 1, True, False), ("invert", "rgb.png", (), 3, True, False),
            ("sepia,grey", "grey.png", (), 1, False, True)):
        said = runs.run(spec, source, "out.png", *options)
        assert ("ICC profile (is" in said) == warns, (spec, source, options, said)
        assert (b"iCCP" in runs.bytes_of("out.png")) == has_icc, (spec, source, options)
        assert channels_of(runs, "out.png") == channels, (spec, source, options)


def check_roads(runs):
    """--in-place, --digest, archives and lines of JSON make the channels that a single file has."""
    random.seed(75)
    png_file("in.png", random_picture(23, 19, 3, 8))
    runs.run("grey", "in.png", "grey.png")
    expected = runs.run("--digest", "grey.png").split()[0]
    assert runs.run("--digest", "--filter", "grey", "in.png").split()[0] == expected
    png_file("place.png", read_back(runs, "in.png"))
    runs.run("--in-place", "grey", "place.png")
    assert channels_of(runs, "place.png") == 1
    with tarfile.open("in.tar", "w") as archive:
        archive.add("in.png")
    done = subprocess.run([runs.program, "--tar", "grey", "in.tar", "out.tar"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with tarfile.open("out.tar") as archive, open("of-tar.png", "wb") as file:
        file.write(archive.extractfile("in.png").read())
    # A worker: the same mask under one name is read again when it has changed.
    random_mask(runs, "mask.png", 23, 19)
    lines = [{"id": i, "filter": spec, "input": "in.png", "output": f"line{i}.png"}
             for i, spec in enumerate(("grey", "pixelate:4@9x9-2+3,gaussian:2@50%x50%+25%+25%", "blur@mask.png"))]
    for changed in (False, True):
        if changed:
            random_mask(runs, "mask.png", 23, 19)
        answers = subprocess.run([runs.program, "-q", "--jobs-from", "-"], input="".join(json.dumps(line) + "\n" for line in lines),
                                 capture_output=True, text=True)
        assert answers.returncode == 0, answers.stdout
        for line in lines:
            runs.run(line["filter"], "in.png", "expected.png", "-q")
            assert runs.bytes_of("expected.png") == runs.bytes_of(line["output"]), line
    for name in ("of-tar.png", "line0.png"):
        assert runs.run("--digest", name).split()[0] == expected, name


def check_worker(runs):
    """A worker that lives on reads a mask again when its file has changed, and refuses a pipe."""
    random.seed(76)
    png_file("in.png", random_picture(23, 19, 3, 8))
    os.mkfifo("pipe.png")
    worker = subprocess.Popen([runs.program, "-q", "--jobs-from", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)

    def ask(spec):
        worker.stdin.write(json.dumps({"id": 1, "filter": spec, "input": "in.png", "output": "out.png"}) + "\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    for _ in range(3):
        random_mask(runs, "mask.png", 23, 19)
        assert ask("invert@mask.png")["status"] == "done"
        runs.run("invert@mask.png", "in.png", "expected.png")
        assert runs.bytes_of("out.png") == runs.bytes_of("expected.png")
    answer = ask("invert@pipe.png")
    assert answer["status"] == "failed" and "regular file" in answer["error"], answer
    worker.stdin.close()
    assert worker.wait() in (0, 1)


def main():
    program, stub_program = map(os.path.abspath, sys.argv[1:3])
    with temporary_folder() as folder:
        runs, stub = Runs(program, stub_program, folder), Runs(stub_program, stub_program, folder)
        check_product(runs, stub)
        check_squares_and_levels(runs, stub)
        check_bands(runs)
        check_channels(runs, stub)
        check_batches(runs, stub)
        check_profiles(runs)
        check_roads(runs)
        check_worker(runs)


if __name__ == "__main__":
    main()
