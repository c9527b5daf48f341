#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The filter files of docs/learn/colours.md: learn_pages.py GPUCONV ROOT.

Each makes of one pixel what the page says, and of pictures what the built-in filter beside it makes."""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, temporary_folder  # noqa: E402

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PHOTO = str(ROOT / "samples/cat.png")


def levels(step, *pixel):
    """What a filter makes of a pixel, as the page writes it."""
    done = subprocess.run([PROGRAM, step, "-", "-", "--format", "pnm"], input=b"P6 1 1 255\n" + bytes(pixel),
                          capture_output=True, check=True)
    return ", ".join(map(str, done.stdout.split(b"255\n", 1)[1]))


def main():
    page = (ROOT / "docs/learn/colours.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"<!-- filter: (\S+) -->\n```\n(.*?)```", page, re.S))
    rows = re.findall(r"^\| `(\S+\.txt)` \| (?:`(\S+)` )?\| ([\d, ]+) \|$", page, re.M)
    assert {name for name, _, _ in rows} == files.keys() - {"one.txt"} and len(rows) == 7, rows
    with temporary_folder():
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


main()
