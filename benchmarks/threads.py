#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time one photo on some numbers of threads: threads.py GPUCONV [--against OTHER] [--threads 1,2,4,8,16] [--runs 7].

A photo of 5120 x 2880 pixels, made by batch_bench.py's recipe, goes from start to exit on the CPU, JPEG to JPEG and PNG
to PNG, in memory (--folder, default /dev/shm). The script prints medians in milliseconds; with --against, also those of
another gpuconv, run in turns."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import batch_bench

WORK = (("identity", "jpg"), ("blur", "jpg"), ("gaussian:3", "jpg"), ("gaussian:8", "jpg"), ("blur", "png"))


def run(program, threads, name, source, target):
    """Milliseconds of one run."""
    start = time.monotonic()
    subprocess.run([program, "-q", "--backend", "cpu", "--threads", threads, name, source, target], check=True)
    return 1e3 * (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("program")
    parser.add_argument("--against")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", default="/dev/shm")
    options = parser.parse_args()
    programs = [os.path.abspath(program) for program in (options.program, options.against) if program]
    make = batch_bench.make_with_opencv if batch_bench.has_opencv() else batch_bench.make_with_vips
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind in ("jpg", "png"):
            make(os.path.join(batch_bench.ROOT, "samples", "cat.png"), f"{folder}/in.{kind}", 5120, 2880, 1)
        print("filter      to    threads" +
              "".join(f"  {os.path.basename(program):>16}, ms" for program in programs))
        for name, kind in WORK:
            for threads in options.threads.split(","):
                results = [[] for _ in programs]
                for _ in range(options.runs):
                    for program, times in zip(programs, results):
                        times.append(run(program, threads, name, f"{folder}/in.{kind}", f"{folder}/out.{kind}"))
                print(f"{name:11} {kind} {threads:>9}" +
                      "".join(f"  {statistics.median(times):20.1f}" for times in results), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
