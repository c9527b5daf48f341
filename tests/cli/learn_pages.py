#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What two pages of the book say that filters make: learn_pages.py GPUCONV ROOT.

Each file of docs/learn/colours.md makes of one pixel what the page says, and of pictures what the built-in filter
beside it makes. Rows of samples become what a table of docs/learn/pmpp.md says."""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, run_tests  # noqa: E402

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PHOTO = str(ROOT / "samples/cat.png")


def source(name):
    return (ROOT / "docs/learn" / name).read_text(encoding="utf-8")


def samples(step, head, data, *options):
    """What a filter makes of a PNM."""
    done = subprocess.run([PROGRAM, step, "-", "-", "--format", "pnm", *options], input=head + bytes(data),
                          capture_output=True, check=True)
    return [*done.stdout.split(b"255\n", 1)[1]]


def levels(step, *pixel):
    """What a filter makes of a pixel, as the page writes it."""
    return ", ".join(map(str, samples(step, b"P6 1 1 255\n", pixel)))


def test_colours():
    page = source("colours.md")
    files = dict(re.findall(r"<!-- filter: (\S+) -->\n```\n(.*?)```", page, re.S))
    rows = re.findall(r"^\| `(\S+\.txt)` \| (?:`(\S+)` )?\| ([\d, ]+) \|$", page, re.M)
    assert {name for name, _, _ in rows} == files.keys() - {"one.txt"} and len(rows) == 7, rows
    for name, text in files.items():
        pathlib.Path(name).write_text(text, encoding="utf-8")
    for name, built_in, made in rows:
        assert levels("./" + name, 200, 100, 50) == made, name
        for depth in ("8", "16") if built_in else ():
            ours, theirs = (run(PROGRAM, "--digest", "--depth", depth, "--filter", step, PHOTO).stdout
                            for step in ("./" + name, built_in))
            assert ours == theirs, f"{name} is not {built_in}"
    for step, verb in (("./one.txt", "matrix"), ("contrast:20,brightness:10", "chain")):
        assert f"The {verb} makes {levels(step, 10, 240, 2)}" in page, step
    for name, text in re.findall(r"<!-- show: (\S+) -->\n```\n(.*?)```", page, re.S):
        assert run(PROGRAM, "--show", "./" + name).stdout == text, name


def test_pmpp():
    rows = re.findall(r"^\| [^|]*exercise \w+ \| ([\d ]+) \| ([\d/ ]+) \| ([\d ]+) \|$", source("pmpp.md"), re.M)
    assert len(rows) == 6, rows
    for row, taps, made in rows:
        pathlib.Path("row.txt").write_text(f"scale 1\n{taps}\n", encoding="utf-8")
        row = [int(sample) for sample in row.split()]
        outputs = samples("./row.txt", b"P5 %d 1 255\n" % len(row), row, "--border", "zero")
        assert outputs == [int(output) for output in made.split()], (row, taps, outputs)


run_tests(globals())
