#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold the instructions of ten runs against the committed counts: instructions.py GPUCONV COMPILER COUNTS.json
[--update]

Seconds depend on the machine and its other work, and instructions do not. valgrind counts them on one thread, with the
instruction set AVX2, less those of the start. A run may take 3% more than its count, so that no slower code lands
unnoticed. A run that takes 3% less asks for --update, so that the gain stays. Skipped (exit status 77) without
valgrind, AVX2, or the COMPILER of the counts, such as "gcc 12.2.0"."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from harness import skip  # noqa: E402

SAMPLES = os.path.join(HERE, "..", "..", "samples")
ALLOWED = 0.03
RUNS = {  # options, filter, input, output
    "identity, PNG to PNG": ("identity", "cat.png", "out.png"),
    "identity, PNG to PNG at level 6": ("--compression=6", "identity", "cat.png", "out.png"),
    "sharpen, JPEG to JPEG": ("sharpen", "rocket.jpg", "out.jpg"),
    "thumbnail, JPEG to JPEG": ("thumbnail:160x", "rocket.jpg", "out.jpg"),
    "gaussian:8, PNG to PPM": ("gaussian:8", "coffee.png", "out.ppm"),
    "disk:15, PNG to PPM": ("disk:15", "coffee.png", "out.ppm"),
    "blur in linear light, PNG to PPM": ("--linear", "blur", "coffee.png", "out.ppm"),
    "resize:50% of 16 bits, PNG to PPM": ("--depth=16", "resize:50%", "coffee.png", "out.ppm"),
    "median:2, PNG to PPM": ("median:2", "coffee.png", "out.ppm"),
    "sepia, PNG to PPM": ("sepia", "coffee.png", "out.ppm"),
}


# Meson lets malloc and free fill blocks, which takes instructions.
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}, "GPUCONV_CPU": "avx2"}


def count(program, *arguments):
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return int(re.search(r"I +refs: +([\d,]+)", done.stderr)[1].replace(",", ""))


def main():
    program, compiler, path = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        committed = json.load(file)
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed")
    if subprocess.run([program, "-q", "--backend", "cpu", "identity", os.path.join(SAMPLES, "cat.png"), "-"],
                      capture_output=True, env=ENVIRONMENT).returncode != 0:
        skip("this processor lacks AVX2")
    if "--update" not in sys.argv and compiler != committed["compiler"]:
        skip(f"the counts are those of {committed['compiler']}, not of {compiler}")
    start, counts, failed = count(program, "--version"), {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (*options, source, target) in RUNS.items():
            counts[name] = count(program, "-q", "--backend", "cpu", "--threads", "1", *options,
                                 os.path.join(SAMPLES, source), os.path.join(folder, target)) - start
            expected = committed["instructions"].get(name, 0)
            if abs(counts[name] - expected) > ALLOWED * expected:
                failed += 1
                print(f"{name}: {counts[name]:,} instructions, and {expected:,} are committed: "
                      f"{'make it faster, or say why and' if counts[name] > expected else 'commit the gain:'} "
                      "run instructions.py --update")
    if "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"compiler": compiler, "instructions": counts}, file, indent=1)
            file.write("\n")
        return 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
