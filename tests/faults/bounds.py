#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What --memory counts for an image is an upper bound of what it takes: bounds.py GPUCONV."""
import os
import random
import re

from faults import FULL, check, main, run, write
from harness import peak
from large_files import jpeg
from write_png import png, unfiltered

MEBI = 1 << 20
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
OPTIONS = (["blur"], ["gaussian:5,blur"], ["--linear", "gaussian:2"], ["--compression", "6", "identity"],
           ["--depth", "16", "blur"], ["--border", "wrap", "blur"])


def noise(width, height, bits):
    row = 3 * width * bits // 8
    return png(width, height, 3, bits, unfiltered(random.Random(1).randbytes(row * height), row), level=1)


def find_need(command):
    """The least --memory that lets COMMAND run, from what it says it needs; and the memory that it then takes."""
    allowed = 1
    while True:
        status, memory, lines = peak([command[0], "--memory", str(allowed), *command[1:]])
        needs = re.search(r"needs ([\d.]+) (\w+) of memory", " ".join(lines))
        if needs is None:
            check(status == 0 and lines == [], f"{command[1:]}: exit status {status}, said {lines}")
            return allowed, memory
        allowed = int((float(needs[1]) + 0.1) * UNITS[needs[2]])  # a tenth is what the sentence shows


def check_bounds(program, width, height, threads):
    write("8.png", noise(width, height, 8))
    write("16.png", noise(width, height, 16))
    check(run([program, "--quality", "100", "identity", "8.png", "noise.jpg"]).status == 0, "a JPEG")
    write("scans.jpg", jpeg(width, height, progressive=True))
    start = peak([program, "--version"])[1]
    for name in ("8.png", "16.png", "noise.jpg", "scans.jpg"):
        for options in OPTIONS:
            output = "o.png" if "--compression" in options else "o" + name[-4:]
            command = [program, "--quiet", "--threads", str(threads), *options, name, output]
            need, memory = find_need(command)
            check(memory - start <= need, f"{width} x {height} {command[2:]}: takes {(memory - start) / MEBI:.1f} MiB, "
                  f"and --memory {need / MEBI:.1f} MiB allows it")
            os.remove(output)


def test_bounds(program):
    check_bounds(program, 600, 400, 4)
    check_bounds(program, 1500, 1000, 2)
    if FULL:
        check_bounds(program, 4000, 3000, 8)


main([test_bounds])
