#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time batches on each backend: backends.py GPUCONV [--cores 16,4,2] [--runs 3] [--json FILE].

The model that chooses the backend of a batch (src/variants/choose.c) is calibrated by this. JPEGs of two sizes, made
by batch_bench.py's recipe, go through filters from cheap to expensive with --backend cpu, cuda and auto, on some
numbers of cores. They are read and written in memory (--folder, default /dev/shm). The script prints images a second
(the median of the runs), and how far auto is behind the better backend; with --json, it writes them."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import batch_bench

FILTERS = ("sharpen", "gaussian:3", "sobel", "disk:10", "gaussian:8", "gaussian:20")
SIZES = ((3400, 2264, 96), (1200, 800, 400))  # width, height, files on all cores
DIFFERENT = 4  # files; the others are copies


def make_folder(folder, width, height, count):
    os.makedirs(folder)
    make = batch_bench.make_with_opencv if batch_bench.has_opencv() else batch_bench.make_with_vips
    for index in range(count):
        path = os.path.join(folder, f"{index:04}.jpg")
        if index < DIFFERENT:
            sample = os.path.join(batch_bench.ROOT, "samples", batch_bench.SAMPLES[index])
            make(sample, path, width, height, index)
        else:
            shutil.copy(os.path.join(folder, f"{index % DIFFERENT:04}.jpg"), path)


def rate(program, cores, backend, name, files, output):
    """Images a second."""
    command = ["taskset", "-c", f"0-{cores - 1}", program, "-q", "--backend", backend, name, *files, "-o", output]
    start = time.monotonic()
    subprocess.run(command, check=True)
    return len(files) / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("program")
    parser.add_argument("--cores", default="16,4,2")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    cores = [int(word) for word in options.cores.split(",")]
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print("pixels        cores  filter           cpu     cuda     auto  auto / better")
        for width, height, count in SIZES:
            source, output = (os.path.join(folder, f"{kind}{width}") for kind in ("in", "out"))
            make_folder(source, width, height, count)
            for number in cores:
                files = sorted(os.path.join(source, name) for name in os.listdir(source))
                files = files[:max(DIFFERENT, count * number // max(cores))]
                for name in FILTERS:
                    rates = {backend: statistics.median(rate(program, number, backend, name, files, output)
                                                        for _ in range(options.runs))
                             for backend in ("cpu", "cuda", "auto")}
                    share = rates["auto"] / max(rates["cpu"], rates["cuda"])
                    rows.append(dict(width=width, height=height, images=len(files), cores=number, filter=name,
                                     share_of_better=round(share, 3),
                                     **{f"{backend}_per_s": round(value, 1) for backend, value in rates.items()}))
                    print(f"{width} x {height:<6} {number:5}  {name:11} {rates['cpu']:8.1f} {rates['cuda']:8.1f} "
                          f"{rates['auto']:8.1f}  {share:8.2f}", flush=True)
            shutil.rmtree(source)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
