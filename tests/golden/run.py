#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare a filter's picture with the stored one: run.py GPUCONV NAME FOLDER [--backend cpu|cuda].

Every variant of the backend that takes the filter applies it to source.png. Each result must hold the samples of
NAME.png, by gpuconv --compare. NAME is the filter's name. With -16 at its end the input is source-16.png, of 16 bits a
sample; with -linear the variants work in linear light. Both run only the variants that take 16 bits. Even float
variants hold the sums of all shipped filters exactly. A result that differs is left in FOLDER as NAME.actual.png, and
the difference as NAME.diff.png. FOLDER/report.html shows both beside the expected picture. Without a GPU,
--backend cuda is skipped (exit status 77)."""
import argparse
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing is left in the sources
import report  # noqa: E402

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))


def filter_of(name):
    """The filter of a picture."""
    return name.removesuffix("-16").removesuffix("-linear")


def variants(program, backend, name):
    """The names of the backend's variants that take the filter."""
    deep = name.endswith(("-16", "-linear"))
    table = subprocess.run([program, "--list-variants"], check=True, capture_output=True, text=True).stdout
    shown = subprocess.run([program, "--show", filter_of(name)], check=True, capture_output=True, text=True).stdout
    separable = "separable  yes" in shown
    shift = name == "identity" or name.startswith("shift")
    other = "one grid " if "two grids" in shown else "two grids "
    for line in table.splitlines():
        words = line.split()
        if words[1] != backend or "separable only" in line and not separable or "shifts only" in line and not shift:
            continue
        if deep and "8/16 bit" not in line:
            continue
        if other in line or "two grids" in shown and ("separable only" in line or "few taps" in line):
            continue
        yield words[0]


def check(program, name, variant, folder, key):
    """Run one variant and say whether its picture is right."""
    actual = os.path.join(folder, f"{name}.actual.png")
    difference = os.path.join(folder, f"{name}.diff.png")
    for path in (actual, difference):
        if os.path.exists(path):
            os.remove(path)
    expected = os.path.join(HERE, f"{name}.png")
    source = os.path.join(HERE, "source-16.png" if name.endswith("-16") else "source.png")
    made = subprocess.run([program, "--variant", variant, *["--linear"] * name.endswith("-linear"),
                           filter_of(name), source, actual], stderr=subprocess.PIPE, text=True)
    sys.stdout.write(made.stderr)
    if made.returncode != 0:
        report.add(folder, key, f"{name} by {variant}", made.stderr, expected, actual, difference)
        print(f"{variant}: failed")
        return False
    compared = subprocess.run([program, "--compare", expected, actual, difference], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    print(f"{variant}: {compared.stdout.strip()}")
    if compared.returncode != 0:
        page = report.add(folder, key, f"{name} by {variant}", compared.stdout, expected, actual, difference)
        # Of other shapes or depths there is none.
        drawn = f"the difference in {difference}, " if os.path.exists(difference) else ""
        print(f"the picture is in {actual}, {drawn}all of them in {page}; if the change is meant, run "
              "tests/golden/update.py")
        return False
    os.remove(actual)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    for name in ("GPUCONV_FILTERS", "XDG_CONFIG_HOME"):
        os.environ.pop(name, None)
    os.environ["HOME"] = HERE  # no filters of the user's own

    if arguments.backend == "cuda":
        devices = subprocess.run([program, "--devices"], check=True, capture_output=True, text=True).stdout
        if devices.startswith("no CUDA device"):
            print(f"skipped: {devices.strip()}")
            return SKIP
    os.makedirs(arguments.folder, exist_ok=True)
    key = f"{arguments.name}-{arguments.backend}"
    report.remove(arguments.folder, key)
    count = 0
    for variant in variants(program, arguments.backend, arguments.name):
        count += 1
        if not check(program, arguments.name, variant, arguments.folder, key):
            return 1
    if count == 0:
        print(f"no variant of the backend {arguments.backend} takes {arguments.name}")
        return 1
    return 0


sys.exit(main())
