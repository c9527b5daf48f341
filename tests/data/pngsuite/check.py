#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PngSuite, the images that a decoder of PNG must read and the corrupt ones that it must refuse: check.py GPUCONV.

Every codec for PNG runs all of them through the filter `identity`. A corrupt image must be refused with one sentence
and leave no file. The other results must equal, sample by sample, what tests/lib/read_png.py reads."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from harness import temporary_folder  # noqa: E402
import read_png  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def same(expected, actual):
    """Are the pictures equal? If 8 bits were asked for, 16 bits are rounded to nearest."""
    if expected[:2] != actual[:2] or len(expected[3][0][0]) != len(actual[3][0][0]):
        return False
    if expected[2] == actual[2]:
        return expected[3] == actual[3]
    return expected[2] > actual[2] and all((e * 255 + 32767) // 65535 == a for rows in zip(expected[3], actual[3])
                                           for pixels in zip(*rows) for e, a in zip(*pixels))


def codecs(program):
    """The built-in codecs that read and write PNG, and whether each writes 16 bits."""
    lines = subprocess.run([program, "--list-codecs"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [(line.split()[0], "stb" not in line) for line in lines if "PNG" in line and "not built in" not in line]


def check(program, codec, deep, names, folder, pictures):
    """Run one codec over all images; returns what is wrong."""
    outputs = os.path.join(folder, codec)
    command = [program, "-q", "--codec", codec, "--backend", "cpu", "identity"] + ([] if deep else ["--depth", "8"])
    command += [os.path.join(HERE, name) for name in names] + ["-o", outputs]
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    wrong = [] if run.returncode == 1 else [f"exit status {run.returncode}"]
    said = [line for line in run.stderr.splitlines() if HERE in line]
    wrong += [f"unexpected: {line}" for line in run.stderr.splitlines()[:-1] if line not in said]
    for name in names:
        path = os.path.join(outputs, name)
        sentences = [line for line in said if f"{os.sep}{name}: " in line]
        if name.startswith("x"):
            wrong += [f"{name}: not refused once: {sentences}"] if len(sentences) != 1 or os.path.exists(path) else []
        elif sentences:
            wrong += sentences
        elif not same(pictures[name], read_png.read(path)):
            wrong.append(f"{name}: other samples")
    return wrong


def main():
    program = os.path.abspath(sys.argv[1])
    names = sorted(name for name in os.listdir(HERE) if name.endswith(".png"))
    pictures = {name: read_png.read(os.path.join(HERE, name)) for name in names if not name.startswith("x")}
    failed = 0
    with temporary_folder() as folder:
        for codec, deep in codecs(program):
            wrong = check(program, codec, deep, names, folder, pictures)
            print(f"{codec}: {len(pictures)} images, {len(names) - len(pictures)} corrupt ones, {len(wrong)} faults")
            for line in wrong:
                print(f"  {line}")
            failed += len(wrong)
    return 1 if failed > 0 or len(names) != 175 else 0


sys.exit(main())
