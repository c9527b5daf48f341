#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time batches on each backend: backends.py GPUCONV [--formats jpg,png] [--sizes 3400x2264,1200x800] [--cores 16,4,2]
[--filters sharpen,gaussian:8] [--gpus 1,2] [--runs 3] [--commit ID] [--json FILE].

The model that chooses the backend of a batch (src/variants/choose.c) is calibrated by this. JPEGs and PNGs of two
sizes, made by batch_bench.py's recipe (PNGs with compression level 6), go through filters from cheap to expensive with
--backend cpu, cuda and auto, on some numbers of cores and GPUs. They are read and written in memory (--folder, default
/dev/shm). The script prints images a second (the median of the runs), and how far auto is behind the better backend;
with --json, it writes them, and plot.py draws them."""
import argparse
import concurrent.futures
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import batch_bench

FILTERS = ("sharpen", "gaussian:3", "sobel", "disk:10", "gaussian:8", "gaussian:20")
SIZES = {"3400x2264": 192, "1200x800": 800}  # files for 16 cores
PARTS = {"jpg": 1, "png": 3}  # a PNG takes the CPU about as long as three JPEGs: a third of the files
DIFFERENT = len(batch_bench.SAMPLES)  # files; the others are copies


def make_folder(folder, kind, width, height, count):
    os.makedirs(folder)
    make = batch_bench.make_with_opencv if batch_bench.has_opencv() else batch_bench.make_with_vips
    paths = [os.path.join(folder, f"{index:04}.{kind}") for index in range(count)]
    with concurrent.futures.ProcessPoolExecutor(DIFFERENT) as pool:
        for ended in [pool.submit(make, os.path.join(batch_bench.ROOT, "samples", name), path, width, height, index, 6)
                      for index, (name, path) in enumerate(zip(batch_bench.SAMPLES, paths))]:
            ended.result()
    for index in range(DIFFERENT, count):
        shutil.copy(paths[index % DIFFERENT], paths[index])


def rate(program, cores, backend, gpus, name, files, output):
    """Images a second."""
    devices = [] if backend == "cpu" else ["--device", ",".join(map(str, range(gpus)))]
    command = ["taskset", "-c", f"0-{cores - 1}", program, "-q", "--backend", backend, *devices, name, *files, "-o",
               output]
    start = time.monotonic()
    subprocess.run(command, check=True)
    seconds = time.monotonic() - start
    shutil.rmtree(output)
    return len(files) / seconds


def describe_machine(commit):
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()
    name, driver = query[0].split(", ")
    return {"date": time.strftime("%Y-%m-%d"), "gpu": name, "gpus": len(query), "driver": driver, "commit": commit}


def measure(options, folder, kind, size):
    """A row for each number of cores, filter and number of GPUs."""
    program = os.path.abspath(options.program)
    cores, gpus = ([int(word) for word in text.split(",")] for text in (options.cores, options.gpus))
    width, height = map(int, size.split("x"))
    count = SIZES[size] // PARTS[kind]
    source, output = os.path.join(folder, "in"), os.path.join(folder, "out")
    make_folder(source, kind, width, height, max(DIFFERENT, count * max(cores) // 16))
    for number, name in ((number, name) for number in cores for name in options.filters.split(",")):
        files = sorted(os.path.join(source, file) for file in os.listdir(source))
        files = files[:max(DIFFERENT, count * number // 16)]

        def median(backend, gpu):
            return statistics.median(rate(program, number, backend, gpu, name, files, output)
                                     for _ in range(options.runs))
        cpu = median("cpu", 0)
        for gpu in gpus:
            cuda, auto = median("cuda", gpu), median("auto", gpu)
            share = auto / max(cpu, cuda)
            print(f"{kind}  {size:11} {len(files):5} {number:5} {gpu:5}  {name:11} {cpu:8.1f} {cuda:8.1f} {auto:8.1f}  "
                  f"{share:8.2f}", flush=True)
            yield {"format": kind, "width": width, "height": height, "images": len(files), "cores": number, "gpus": gpu,
                   "filter": name, "share_of_better": round(share, 3), "cpu_per_s": round(cpu, 1),
                   "cuda_per_s": round(cuda, 1), "auto_per_s": round(auto, 1)}
    shutil.rmtree(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--formats", default=",".join(PARTS))
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--cores", default="16,4,2")
    parser.add_argument("--filters", default=",".join(FILTERS))
    parser.add_argument("--gpus", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print("     pixels      files cores  GPUs  filter           cpu     cuda     auto  auto / better")
        for size in options.sizes.split(","):
            for kind in options.formats.split(","):
                rows.extend(measure(options, folder, kind, size))
    if options.json:
        batch_bench.save_json(options.json, {**describe_machine(options.commit), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
