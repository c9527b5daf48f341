#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters that move samples, against NumPy: moves.py GPUCONV STUB.

Pictures of 8 and 16 bits with all channels go through random chains of crops, pads, turns and mirrors, in bands of
every size, and through the stub's GPU. With other filters between them, a chain makes the bytes of one run for each
filter. Metadata say what the picture has become."""
import json
import os
import random
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import need_module, temporary_folder  # noqa: E402
from resize import Runs, tiff  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

need_module("numpy")
import numpy  # noqa: E402

COLOURS = {"white": (255, 255, 255), "black": (0, 0, 0), "#f80": (255, 136, 0), "#0a64ff": (10, 100, 255)}


# ---- The same in NumPy ----

def grey(colour):
    return (colour[0] * 19595 + colour[1] * 38470 + colour[2] * 7471 + 0x8000) >> 16


def ground(array, name):
    """The pixel that a pad leaves beside the picture."""
    channels, has_alpha = array.shape[2], array.shape[2] % 2 == 0
    if name is None:
        pixel = [0] * channels if has_alpha else [255] * channels
    else:
        pixel = ([grey(COLOURS[name])] if channels < 3 else list(COLOURS[name])) + [255] * has_alpha
    return numpy.array(pixel, array.dtype) * (257 if array.dtype == numpy.uint16 else 1)


def random_move(array, place=random):
    """A filter that ARRAY takes, and what it makes."""
    height, width = array.shape[:2]
    kind = place.choice(("crop", "part", "percent", "pad", "turn", "mirror"))
    w, h = place.randint(1, width), place.randint(1, height)
    if kind == "crop":
        x, y = place.randint(0, width - w), place.randint(0, height - h)
        return f"crop:{w}x{h}+{x}+{y}", array[y:y + h, x:x + w]
    if kind in ("part", "percent"):
        percent = place.choice((1, 12.5, 50, 100))
        if kind == "percent":  # rounded to nearest, halves up
            w, h = (max(1, int(side * percent / 100 + 0.5)) for side in (width, height))
        words = place.sample((place.choice(("left", "right", "")), place.choice(("top", "bottom", ""))), 2)
        x = 0 if "left" in words else width - w if "right" in words else (width - w) // 2
        y = 0 if "top" in words else height - h if "bottom" in words else (height - h) // 2
        size = f"{percent}%" if kind == "percent" else f"{w}x{h}"
        return "".join([f"crop:{size}", *(f":{word}" for word in words if word)]), array[y:y + h, x:x + w]
    if kind == "pad":
        more, name = (place.randint(0, 40), place.randint(0, 40)), place.choice((None, *COLOURS))
        full = numpy.empty((height + more[1], width + more[0], array.shape[2]), array.dtype)
        full[:] = ground(array, name)
        full[more[1] // 2:more[1] // 2 + height, more[0] // 2:more[0] // 2 + width] = array
        return f"pad:{width + more[0]}x{height + more[1]}" + (f":{name}" if name else ""), full
    if kind == "turn":
        quarters = place.randint(1, 3)
        return f"turn:{90 * quarters}", numpy.rot90(array, -quarters)
    axis = place.choice("xy")
    return f"mirror:{axis}", array[:, ::-1] if axis == "x" else array[::-1]


# ---- Pictures ----

def random_picture(width, height, channels, bits):
    noise = numpy.frombuffer(random.randbytes(width * height * channels * bits // 8), f"u{bits // 8}")
    return noise.reshape(height, width, channels).copy()


def write(runs, name, array):
    big = array.astype(array.dtype.newbyteorder(">"))
    runs.write_any(name, array.shape[1], array.shape[0], array.shape[2], 8 * array.itemsize, big.tobytes())


def read(runs, name):
    head, data = runs.bytes_of(name).split(b"ENDHDR\n", 1)
    fields = dict(line.split(b" ", 1) for line in head.split(b"\n")[1:-1])
    width, height, channels = (int(fields[key]) for key in (b"WIDTH", b"HEIGHT", b"DEPTH"))
    kind = numpy.uint8 if int(fields[b"MAXVAL"]) < 256 else numpy.uint16
    samples = numpy.frombuffer(data, numpy.dtype(kind).newbyteorder(">")).astype(kind)
    return samples.reshape(height, width, channels)


def is_same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())


# ---- Checks ----

def check_moves(runs, stub):
    """Chains of moves: each sample is where NumPy has it, whatever happens to alpha and light."""
    random.seed(50)
    for number in range(160):
        width, height = random.choice(((1, 1), (1, 70), (70, 1), (33, 47), (200, 30), (31, 300), (64, 64)))
        channels, bits = 1 + number % 4, random.choice((8, 16))
        array = random_picture(width, height, channels, bits)
        if number % 3 == 0 and channels % 2 == 0:
            array[:, :, -1] = (1 << bits) - 1  # opaque
        write(runs, "in.pam", array)
        specs = []
        for _ in range(random.choice((1, 1, 2, 3, 5))):
            spec, array = random_move(array)
            specs.append(spec)
        options = ["--alpha", random.choice(("premultiply", "keep", "filter"))]
        options += ["--border", random.choice(("replicate", "wrap", "zero"))]
        options += ["--linear"] if random.random() < 0.3 else []
        options += ["--threads", random.choice("1237")]
        what = (specs, width, height, channels, bits, options)
        for program, more in ((runs, ["--variant", "reference"]), (runs, ["--backend", "cpu"]), (stub, ["--backend", "cuda"])):
            program.run(",".join(specs), "in.pam", "out.pam", *options, *more)
            assert is_same(read(runs, "out.pam"), array), (what, more)


def check_chains(runs, stub):
    """With other filters: the bytes of one run for each. They read and write PNGs, whose rows come in many bands."""
    random.seed(51)
    for number in range(48):
        width, height = random.choice(((90, 70), (333, 90), (1500, 40), (130, 700)))
        channels, bits = 1 + number % 4, random.choice((8, 16))
        array = random_picture(width, height, channels, bits)
        if number % 3 == 0 and channels % 2 == 0:
            array[:, :, -1] = (1 << bits) - 1
        write(runs, "in.pam", array)
        options = ["--alpha", random.choice(("premultiply", "premultiply", "keep", "filter"))]
        options += ["--border", random.choice(("replicate", "reflect101", "wrap", "zero"))]
        options += ["--linear"] if random.random() < 0.3 else []
        others = ["sharpen", "gaussian:1", "sobel"]
        others += [] if "zero" in options else ["resize:60%:triangle", "cover:50x61", "cover:31x40:top:box"]
        specs, source, count = [], "in.pam", random.randint(2, 4)
        for i in range(count):
            spec = random_move(read(runs, source))[0] if random.random() < 0.6 else random.choice(others)
            if spec.startswith("crop:") and random.random() < 0.5:  # not too small
                spec = random.choice(("crop:90%", "crop:80%:top", "mirror:x"))
            runs.run(spec, source, f"{i}.pam", "--backend", "cpu", *options)
            specs.append(spec)
            source = f"{i}.pam"
        what = (specs, width, height, channels, bits, options)
        expected = runs.bytes_of(source)
        runs.run(",".join(specs), "in.pam", "all.pam", "--threads", random.choice("1237"), *options)
        assert runs.bytes_of("all.pam") == expected, what
        runs.run("identity", "in.pam", "in.png")
        for suffix, image in (("pam", "in.pam"), ("png", "in.png")):
            runs.run(",".join(specs), image, f"cpu.{suffix}", "--backend", "cpu", "--memory", "60M", *options)
            stub.run(",".join(specs), image, f"gpu.{suffix}", "--backend", "cuda", *options)
            assert runs.bytes_of(f"cpu.{suffix}") == runs.bytes_of(f"gpu.{suffix}"), what
        assert runs.bytes_of("cpu.pam") == expected, what


def check_opaque(runs, stub):
    """An opaque picture is translucent after a pad, which the next filter must know."""
    random.seed(54)
    array = random_picture(40, 30, 4, 8)
    array[:, :, 3] = 255
    write(runs, "in.pam", array)
    for pad in "pad:61x50", "pad:61x50:white":
        for other in "gaussian:2", "sharpen", "resize:50%":
            runs.run(pad, "in.pam", "padded.pam")
            runs.run(other, "padded.pam", "expected.pam")
            for program, backend in ((runs, "cpu"), (stub, "cuda")):
                program.run(f"{pad},{other}", "in.pam", "out.pam", "--backend", backend)
                assert runs.bytes_of("out.pam") == runs.bytes_of("expected.pam"), (pad, other, backend)


def check_bands(runs):
    """A picture of many bands. Some bands need no row of it, or all rows. All rows are read, because the last ones may
    be damaged."""
    random.seed(52)
    array = random_picture(700, 3000, 3, 8)
    write(runs, "in.pam", array)
    runs.run("identity", "in.pam", "in.png", "--compression", "1")
    for spec, expected in (("crop:650x40+20+10", array[10:50, 20:670]), ("crop:700x900+0+2100", array[2100:]),
                           ("crop:3x3+5+2990", array[2990:2993, 5:8]), ("mirror:x", array[:, ::-1]),
                           ("mirror:y", array[::-1]), ("turn:270", numpy.rot90(array)),
                           ("pad:700x9000:black", numpy.pad(array, ((3000, 3000), (0, 0), (0, 0)))),
                           ("pad:710x3001:black", numpy.pad(array, ((0, 1), (5, 5), (0, 0)))),
                           ("crop:50%:bottom,mirror:x,crop:9x1000", array[1500:, 175:525][:, ::-1][250:1250, 170:179])):
        for threads in "1", "2", "5":
            for source in "in.pam", "in.png":
                runs.run(spec, source, "out.pam", "--threads", threads, "--backend", "cpu")
                assert is_same(read(runs, "out.pam"), expected), (spec, threads, source)
    array = random_picture(90, 70, 2, 8)
    write(runs, "small.pam", array)
    for _ in range(60):  # many small strips that no band needs, on more threads than rows
        runs.run("crop:67x16:right", "small.pam", "out.pam", "--threads", "7", "--backend", "cpu")
        assert is_same(read(runs, "out.pam"), array[27:43, 23:])
    rows = bytearray(unfiltered(random.randbytes(300 * 2000), 300))
    rows[-301] = 9  # the last row has an unknown filter
    with open("damaged.png", "wb") as file:
        file.write(png(100, 2000, 3, 8, bytes(rows), level=1))
    for spec in "identity", "crop:60x20+9+9", "crop:9x1900":
        for threads in "1", "3":
            done = subprocess.run([runs.program, spec, "damaged.png", "no.png", "--threads", threads, "--backend", "cpu"],
                                  capture_output=True, text=True)
            assert done.returncode == 1 and not os.path.exists("no.png"), (spec, threads, done.stderr)


def check_cover(runs):
    """It is the resize and the crop that it stands for, and both sides fit."""
    random.seed(53)
    for _ in range(40):
        width, height = random.randint(1, 90), random.randint(1, 90)
        w, h = random.randint(1, 90), random.randint(1, 90)
        word, kernel = random.choice(("", ":top", ":left", ":bottom:right")), random.choice(("", ":box", ":cubic"))
        write(runs, "in.pam", random_picture(width, height, 3, 8))
        scale = (w, width) if w * height >= h * width else (h, height)
        sides = [max(1, (2 * side * scale[0] + scale[1]) // (2 * scale[1])) for side in (width, height)]
        runs.run(f"cover:{w}x{h}{word}{kernel}", "in.pam", "cover.pam")
        runs.run(f"resize:{sides[0]}x{sides[1]}:exact{kernel},crop:{w}x{h}{word}", "in.pam", "two.pam")
        assert runs.bytes_of("cover.pam") == runs.bytes_of("two.pam"), (width, height, w, h, word, kernel)
        assert read(runs, "cover.pam").shape[:2] == (h, w)
    resize, crop = json.loads(runs.run("--show", "cover:40x30:top:box", "--json"))
    assert resize["name"] == "resize:40x30:cover:enlarge:box" and resize["cover"] and crop["move"] == "crop:40x30:top"


def check_metadata(runs):
    """What is said of sides, resolution and the sensor follows; the thumbnail and positions go."""
    entries = [(0x100, 3, 40), (0x101, 3, 30), (0x112, 3, 1), (0x11a, 5, (300, 1)), (0x11b, 5, (150, 1))]
    sub = [(0x9214, 3, 7), (0xa002, 4, 40), (0xa003, 4, 30), (0xa20e, 5, (4000, 1)), (0xa20f, 5, (3000, 1))]
    for orientation in (1, 6):
        entries[2] = (0x112, 3, orientation)
        block = tiff(entries, sub)
        exif = struct.pack(">I", len(block)) + b"eXIf" + block + struct.pack(">I", zlib.crc32(b"eXIf" + block))
        data = png(40, 30, 3, 8, unfiltered(bytes(range(120)) * 30, 120))
        with open("in.png", "wb") as file:
            file.write(data[:33] + exif + data[33:])
        turned = orientation == 6
        for spec, swaps, scale in (("crop:20x10+1+1", 0, 1), ("pad:50x50", 0, 1), ("turn:90", 1, 1), ("mirror:x", 0, 1),
                                   ("turn:90,turn:270", 0, 1), ("turn:180", 0, 1), ("resize:50%,turn:90", 1, 0.5),
                                   ("turn:270,crop:20x20,resize:50%", 1, 0.5)):
            runs.run(spec, "in.png", "out.png")
            after = runs.bytes_of("out.png")
            width, height = struct.unpack(">II", after[16:24])
            for tag, value in ((0x100, width), (0x101, height), (0xa002, width), (0xa003, height)):
                assert struct.pack(">HHII", tag, 4, 1, value) in after, (spec, tag)
            assert struct.pack(">HHII", 0x112, 3, 1, 1 << 16) in after and struct.pack(">HH", 0x9214, 3) not in after, spec
            is_swapped = turned != bool(swaps)
            start = after.index(b"eXIf") + 4
            numbers = []
            for tag in (0x11a, 0x11b, 0xa20e, 0xa20f):
                at = after.index(struct.pack(">HHI", tag, 5, 1)) + 8
                offset = start + struct.unpack(">I", after[at:at + 4])[0]
                numbers.append(struct.unpack(">II", after[offset:offset + 8])[0])
            sensor = [4000 * scale, 3000 * scale]
            assert numbers[:2] == ([150, 300] if is_swapped else [300, 150]), (spec, orientation, numbers)
            assert numbers[2:] == (sensor[::-1] if is_swapped else sensor), (spec, orientation, numbers)


def main():
    program, stub_program = map(os.path.abspath, sys.argv[1:3])
    with temporary_folder() as folder:
        runs, stub = Runs(program, stub_program, folder), Runs(stub_program, stub_program, folder)
        check_moves(runs, stub)
        check_chains(runs, stub)
        check_opaque(runs, stub)
        check_bands(runs)
        check_cover(runs)
        check_metadata(runs)


if __name__ == "__main__":
    main()
