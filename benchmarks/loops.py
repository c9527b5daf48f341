#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the lesson's loops and the CPU's variants: loops.py GPUCONV [--cc gcc] [--size 4096x4096] [--json FILE].

docs/learn/loop.c is compiled with options from -O0 on, and run. Then gpuconv --bench times the variants reference and cpu
with the same size of image and of filter, cpu with each instruction set of this processor by GPUCONV_CPU. All of them
have one thread; the best set is timed with all threads, too.

The script prints milliseconds: the best of 3 runs of a loop, the median of gpuconv's runs. With --json, it writes
them."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import batch_bench

OPTIONS = ("-O0", "-O1", "-O2", "-O3", "-O3 -march=native", "-O3 -march=native -mprefer-vector-width=512")
INSTRUCTION_SETS = ("portable", "sse2", "avx2", "avx512", "vnni")  # as in src/base/vector/instruction_sets.c
SOURCE = os.path.join(batch_bench.ROOT, "docs", "learn", "loop.c")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def bench(program, size, variant, *options, instructions=""):
    """The processor and its threads, and the variant's milliseconds. None if it lacks these instructions."""
    done = subprocess.run([program, "--bench", "--json", "--backend", "cpu", "--variant", variant, "--bench-filter",
                           "int8-9", "--bench-sample", "uint8", "--bench-size", size, *options],
                          capture_output=True, text=True, check=False, env={**os.environ, "GPUCONV_CPU": instructions})
    if done.returncode == 2 and "GPUCONV_CPU" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    row = next(row for row in result["rows"] if row["variant"] == variant)
    assert row["status"] == "ok", row
    return result["cpu"], row["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--size", default="4096x4096")
    parser.add_argument("--json")
    options = parser.parse_args()
    program, rows = os.path.abspath(options.program), []

    def add(loop, built, threads, ms):
        rows.append({"loop": loop, "built": built, "threads": threads, "ms": round(ms, 3)})
        print(f"{loop:14}  {built:45} {threads:3}  {ms:10.2f}", flush=True)

    print("loop            options or instruction set                threads          ms")
    with tempfile.TemporaryDirectory() as folder:
        first = os.path.join(folder, "first")
        for built in OPTIONS:
            output(options.cc, *built.split(), SOURCE, "-o", first)
            for loop, ms in re.findall(r"(.*): (.*) ms", output(first)):
                add(loop, built, 1, float(ms))
    add("reference", "", 1, bench(program, options.size, "reference", "--threads", "1")[1])
    for name in INSTRUCTION_SETS:
        timed = bench(program, options.size, "cpu", "--threads", "1", instructions=name)
        if timed is None:
            break
        best = name
        add("cpu", name, 1, timed[1])
    machine, ms = bench(program, options.size, "cpu")
    add("cpu", best, machine["threads"], ms)
    compiler = output(options.cc, "--version").splitlines()[0]
    print(f"{machine['name']}, {compiler}")
    if options.json:
        batch_bench.save_json(options.json, {"date": time.strftime("%Y-%m-%d"), "cpu": machine["name"],
                                             "compiler": compiler, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
