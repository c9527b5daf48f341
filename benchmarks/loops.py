#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the lesson's loops and the CPU's variants: loops.py GPUCONV [--cc gcc] [--programs FOLDER] [--side 4096]
[--sides 1024,2048,4096,8192,16384] [--json FILE].

docs/first.c is compiled with options from -O0 on, and run. gpuconv --bench then times the variants reference and cpu on
planes of the same size with a filter of the same size, cpu with each instruction set of this processor by GPUCONV_CPU.
All of these have one thread. Last is cpu with all threads and the best set, for planes of some sizes. --programs keeps
the programs, and does not compile them again: a machine without a compiler can take those of another, -march=native
included.

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
INSTRUCTION_SETS = ("portable", "sse2", "avx2", "avx512", "vnni")  # as in src/cpu/instruction_sets.c
SOURCE = os.path.join(batch_bench.ROOT, "docs", "first.c")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def compile_all(compiler, folder):
    """Returns the compiler's version, which is kept beside the programs."""
    os.makedirs(folder, exist_ok=True)
    version = os.path.join(folder, "compiler")
    if not os.path.exists(version):
        for options in OPTIONS:
            program = os.path.join(folder, "first" + options)
            subprocess.run([compiler, *options.split(), SOURCE, "-o", program], check=True)
        with open(version, "w", encoding="utf-8") as file:
            file.write(output(compiler, "--version").splitlines()[0])
    with open(version, encoding="utf-8") as file:
        return file.read()


def bench(program, variant, sides, *options, instructions=""):
    """The processor, and rows of the variant. None if the processor lacks these instructions."""
    done = subprocess.run([program, "--bench", "--json", "--backend", "cpu", "--variant", variant, "--bench-filter",
                           "int8-9", "--bench-sample", "uint8", "--bench-size",
                           ",".join(f"{side}x{side}" for side in sides), *options],
                          capture_output=True, text=True, check=False, env={**os.environ, "GPUCONV_CPU": instructions})
    if done.returncode == 2 and "GPUCONV_CPU" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    rows = [row for row in result["rows"] if row["variant"] == variant]
    assert rows and all(row["status"] == "ok" for row in rows), rows
    return result["cpu"], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--programs")
    parser.add_argument("--side", default="4096")
    parser.add_argument("--sides", default="1024,2048,4096,8192,16384")
    parser.add_argument("--json")
    options = parser.parse_args()
    program, rows = os.path.abspath(options.program), []

    def add(loop, built, threads, side, ms):
        rows.append({"loop": loop, "built": built, "threads": threads, "width": int(side), "ms": round(ms, 3)})
        print(f"{loop:14}  {built:45} {threads:7} {side:>6} {ms:9.2f}", flush=True)

    print("loop            options or instruction set                    threads   side        ms")
    with tempfile.TemporaryDirectory() as folder:
        folder = options.programs or folder
        compiler = compile_all(options.cc, folder)
        for built in OPTIONS:
            said = output(os.path.join(folder, "first" + built))
            for loop, ms in re.findall(r"(.*): (.*) ms", said):
                add(loop, built, 1, 4096, float(ms))
    _, timed = bench(program, "reference", [options.side], "--threads", "1")
    add("reference", "", 1, options.side, timed[0]["median_ms"])
    for name in INSTRUCTION_SETS:
        timed = bench(program, "cpu", [options.side], "--threads", "1", instructions=name)
        if timed is None:
            break
        best = name
        add("cpu", name, 1, options.side, timed[1][0]["median_ms"])
    machine, timed = bench(program, "cpu", options.sides.split(","))
    for row in timed:
        add("cpu", best, machine["threads"], row["width"], row["median_ms"])
    print(f"{machine['name']}, {compiler}")
    if options.json:
        batch_bench.save_json(options.json, {"date": time.strftime("%Y-%m-%d"), "cpu": machine["name"],
                                             "compiler": compiler, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
