#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chains with steps that change each pixel by itself, through the code around a GPU: points.py GPUCONV STUB.

STUB, whose GPU is the CPU, makes the files that GPUCONV makes on the CPU: from files of all kinds, with steps before,
between and after other filters, more in a row than one launch takes, and with alpha and linear light in every way."""
import filecmp
import os
import pathlib
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import temporary_folder  # noqa: E402

PROGRAMS = {"cpu": os.path.abspath(sys.argv[1]), "cuda": os.path.abspath(sys.argv[2])}
FILES = sorted((ROOT / "tests/data/pngsuite").glob("[bt]*.png")) + [ROOT / "samples/cat.png"]
FILTERS = {"alpha.txt": "matrix\n0.5 0.2 -0.1 0.3 4\n0 0.7 0.2 -0.2 0\n0 0 0.9 0.1 0\n0.2 0 0 0.6 5\n",
           "curves.txt": "curve red\n0 255\n255 0\ncurve blue steps\n0 5\n90 200\ncurve alpha\n0 0\n99 200\n255 255\n",
           "both.txt": "matrix\n1/3 1/3 1/3\ncurve green\n0 20\n255 230\n"}
POINTS = ["levels:10:245", "saturation:20", "invert", "grey", "tint:#ff8000", "swap:BGR", *map("./{}".format, FILTERS)]
OTHERS = ["sharpen", "gaussian:2", "sobel", "median:2", "tophat:1", "resize:30x20:exact", "turn:90", "mirror:y", "pad:700x800:#ff8000"]
CASES = 60


def points(chance):
    return chance.choices(POINTS, k=chance.choice((0, 1, 1, 2, 10)))


def main():
    chance, failed = random.Random(66), 0
    with temporary_folder():
        for name, text in FILTERS.items():
            pathlib.Path(name).write_text(text, encoding="utf-8")
        for number in range(CASES):
            chain = [step for _ in range(number % 3) for step in [*points(chance), chance.choice(OTHERS)]]
            chain = ",".join(chain + points(chance)) or "invert"
            options = ["--alpha", chance.choice(("premultiply", "keep", "filter")), *["--linear"] * (number % 4 == 0)]
            files = chance.sample(FILES, 4)
            for backend, program in PROGRAMS.items():
                subprocess.run([program, chain, *files, "--output", f"{number}-{backend}", "--backend", backend,
                                *options], check=True, stderr=subprocess.DEVNULL)
            made = sorted(os.listdir(f"{number}-cpu"))
            assert len(made) == len(files) and made == sorted(os.listdir(f"{number}-cuda"))
            other = filecmp.cmpfiles(f"{number}-cpu", f"{number}-cuda", made, shallow=False)[1]
            if other:
                print(f"{chain} {' '.join(options)}: {', '.join(other)} differ")
                failed += 1
    print(f"{CASES} chains: {failed} failed")
    return 1 if failed else 0


sys.exit(main())
