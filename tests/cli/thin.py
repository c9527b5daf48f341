#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thin pictures: the CPU gives the reference's bytes, and takes about the time of a square of as many pixels: thin.py
GPUCONV [--quick]. --quick leaves out the time."""
import itertools
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run, temporary_folder  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
PIXELS = 160 * 160
TIMES = 4  # as long as the square, at most; a few milliseconds more for the start

# On a column of pixels, all taps of its last row meet the same ones: they are no shift by a row.
CANCELLED = "0 0 0 0 0\n0 0 1 0 0\n1 0 0 0 -1\n"


def write(name, width, height, channels, bits=8):
    size = width * channels * bits // 8
    samples = random.Random(f"{width} {height}").randbytes(size * height)
    with open(name, "wb") as file:
        file.write(png(width, height, channels, bits, unfiltered(samples, size)))


def check_bytes():
    """Narrow and low pictures, some much smaller than the filters, with every border."""
    filters = ["box:850", "box:40", "gaussian:60", "disk:12", "motion:40:60", "unsharp:30:1:2", "sobel", "./cancelled"]
    shapes = [(1, 400), (2, 300), (9, 150), (31, 70), (200, 1), (150, 2), (3, 3)]
    with open("cancelled", "w") as file:
        file.write(CANCELLED)
    os.mkdir("in")
    for number, (width, height) in enumerate(shapes):
        write(f"in/{width}x{height}.png", width, height, 1 + number % 4, 8 + number // 2 % 2 * 8)
    for border, name in itertools.product(("replicate", "reflect", "reflect101", "wrap", "zero"), filters):
        for variant in ("cpu", "reference"):
            run(PROGRAM, "-qj1", "--border", border, "--variant", variant, name, "in", "-o", variant)
        for path in os.listdir("in"):
            with open(f"cpu/{path}", "rb") as one, open(f"reference/{path}", "rb") as other:
                if one.read() != other.read():
                    sys.exit(f"{name} on {path}, border {border}: not the reference's bytes")


def milliseconds(name, path):
    """The processor time of a run, the least of three, and the time that is expected of the filter."""
    least = None
    for _ in range(3):
        process = subprocess.Popen([PROGRAM, "-v", "--backend", "cpu", name, path, "/dev/null", "--format", "png"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        words = process.stderr.read()
        usage = os.wait4(process.pid, 0)[2]
        took = 1e3 * (usage.ru_utime + usage.ru_stime)
        least = took if least is None or took < least else least
        if took > 1500:
            break
    return least, float(re.search(r"variant   cpu for .*: expected to take ([0-9.]+) ms", words).group(1))


def check_time():
    """Translucent pictures of 16 bits inside, and opaque ones of 8."""
    for channels in (4, 3):
        paths = []
        for width, height in ((160, 160), (1, PIXELS), (20, PIXELS // 20), (PIXELS, 1)):
            paths.append(f"{width}x{height}.png")
            write(paths[-1], width, height, channels)
        for name in ("box:850", "box:60", "gaussian:100", "disk:20", "sharpen", "identity"):
            square = milliseconds(name, paths[0])[0]
            for path in paths[1:]:
                took, expected = milliseconds(name, path)
                if took > TIMES * square + 20 or took > 300 * expected + 50:
                    sys.exit(f"{name} on {path}, {channels} channels: {took:.0f} ms of the processor, the square "
                             f"{square:.0f} ms, expected {expected} ms")


with temporary_folder():
    check_bytes()
    if "--quick" not in sys.argv:
        check_time()
