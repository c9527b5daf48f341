#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory by the shape of a picture and the first bytes of a file: shapes.py GPUCONV.

Pictures of a few kilobytes, of any ratio, become small results by way of huge ones, which are never in memory as a
whole. The samples are those of one filter after another, with files between them."""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import peak, run_tests  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
BASE = 40 << 20  # bytes: two threads, and the program itself
SHAPES = [(12289, 1), (1, 12289), (11003, 3), (3, 11003), (1024, 1), (211, 190)]
CHAINS = ["cover:390x280", "cover:280x390:top:left", "cover:61x62:triangle", "cover:90x90,crop:11x7:right",
          "resize:10000%,crop:30x20", "resize:9001%:cubic,crop:1%", "cover:300x200,pad:400x300,crop:50%",
          "pad:90000x80000,crop:33x44+5+6", "cover:64x64,turn:90", "cover:200x200,gaussian:2,crop:10x10"]


def write(width, height, channels=3):
    row = random.Random(width).randbytes(width * channels)
    data = unfiltered(row * height, width * channels)
    with open("in.png", "wb") as file:
        file.write(png(width, height, channels, 8, data))


def test_small_results_take_little_memory():
    for i, (width, height) in enumerate(SHAPES):
        write(width, height, (1, 3, 4)[i % 3])
        for chain in CHAINS:
            status, memory, errors = peak([PROGRAM, "--threads", "2", "--backend", "cpu", chain, "in.png", "out.png"])
            refused = status == 1 and ("longest side" in errors[-1] or "smaller than" in errors[-1])
            assert status == 0 or refused, (width, height, chain, status, errors)
            assert memory < BASE, (width, height, chain, memory)


def test_an_enlarged_picture_takes_some_rows():
    write(105, 104, 1)
    status, memory, errors = peak([PROGRAM, "--threads", "2", "--backend", "cpu", "resize:10000%", "in.png", "out.png"])
    assert status == 0 and memory < BASE + (30 << 20), (memory, errors)


def test_what_is_no_image_is_not_read_whole():
    with open("long.jpg", "wb") as file:
        file.write(b"no image")
        file.truncate(256 << 20)
    for words in ["--backend", "cpu", "blur", "long.jpg", "out.png"], ["--digest", "long.jpg"]:
        status, memory, errors = peak([PROGRAM, *words])
        assert status == 1 and "is not a PNG" in errors[0] and memory < BASE, (words, memory, errors)


def test_the_samples_are_those_of_single_filters():
    """With the columns and rows that are left out, also where an output's taps are of a kind of its own."""
    for width, height in [(197, 2), (3, 211), (31, 37)]:
        for channels in 1, 4:
            write(width, height, channels)
            for chain in ["resize:301x203:exact:enlarge,crop:33x31+101+57", "resize:307%,crop:7x5:right:bottom",
                          "resize:50%:lanczos2,crop:50%", "resize:303x99:exact,crop:200x90,crop:20x10:left,mirror:x",
                          "pad:400x300:#102030,crop:250x200:top,gaussian:1"]:
                for options in [], ["--depth", "16"], ["--linear"], ["--variant", "reference"]:
                    subprocess.run([PROGRAM, *options, "--backend", "cpu", chain, "in.png", "whole.png"], check=True)
                    source = "in.png"
                    for i, step in enumerate(chain.split(",")):
                        subprocess.run([PROGRAM, *options, "--backend", "cpu", step, source, f"{i}.png"], check=True)
                        source = f"{i}.png"
                    subprocess.run([PROGRAM, "--compare", source, "whole.png"], check=True, stdout=subprocess.DEVNULL)


run_tests(globals())
