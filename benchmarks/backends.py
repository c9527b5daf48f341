#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time batches on each backend: backends.py GPUCONV [--formats jpg,png] [--sizes 3400x2264,1200x800] [--cores 16,4,2]
[--filters sharpen,gaussian:8] [--gpus 1,2] [--tar | --count N] [--runs 3] [--commit ID] [--json FILE].

The model that chooses the backend of a batch (src/variants/choose.c) is calibrated by this. JPEGs and PNGs of two
sizes, made by batch_bench.py's recipe (PNGs with compression level 6), go through filters from cheap to expensive with
--backend cpu, cuda and auto, on some numbers of cores and GPUs. They are read and written in memory (--folder, default
/dev/shm). The script prints images a second (the median of the runs), and how far auto is behind the better backend;
with --json, it writes them, and plot.py draws them. With --tar, the files are in an archive, and so are the results.

With --table, 39 other batches instead: from 5 to 8,500 files, photos of 4 to 15 Mpixel and pictures of 500 x 375,
JPEGs, PNGs and both, on 16 and on 4 processors. --seconds ends the table earlier.

With --count, each batch has N files, only --backend cuda is timed, and a batch of an eighth of them, too: from both
follow the time of start and end, and the rate without it. Processor time is that of all threads."""
import argparse
import concurrent.futures
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import batch_bench

FILTERS = ("sharpen", "gaussian:3", "sobel", "disk:10", "gaussian:8", "gaussian:20")
SIZES = {"3400x2264": 192, "1200x800": 800, "500x375": 16000}  # files for 16 cores
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


def run(program, cores, backend, gpus, name, files, output):
    """Seconds, and seconds of processors. FILES are in the archive OUTPUT.in if it is there."""
    devices = [] if backend == "cpu" else ["--device", ",".join(map(str, range(gpus)))]
    archive = output + ".in"
    paths = ["--tar", name, archive, output] if os.path.exists(archive) else [name, *files, "-o", output]
    command = ["taskset", "-c", f"0-{cores - 1}", program, "-q", "--backend", backend, *devices, *paths]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if os.path.isdir(output):
        shutil.rmtree(output)
    else:
        os.remove(output)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def describe_machine(commit):
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()
    name, driver = query[0].split(", ")
    return {"date": time.strftime("%Y-%m-%d"), "gpu": name, "gpus": len(query), "driver": driver, "commit": commit}


def compare_backends(options, row, files, output):
    """Images a second of each backend."""
    program = os.path.abspath(options.program)

    def median(backend):
        return len(files) / statistics.median(
            run(program, row["cores"], backend, row["gpus"], row["filter"], files, output)[0]
            for _ in range(options.runs))
    cpu, cuda, auto = median("cpu"), median("cuda"), median("auto")
    share = auto / max(cpu, cuda)
    print(f"{cpu:8.1f} {cuda:8.1f} {auto:8.1f}  {share:8.2f}", flush=True)
    return {"share_of_better": round(share, 3), "cpu_per_s": round(cpu, 1), "cuda_per_s": round(cuda, 1),
            "auto_per_s": round(auto, 1)}


def separate_start(options, row, files, output):
    """Images a second on the GPUs, with and without start and end."""
    program = os.path.abspath(options.program)

    def median(some):
        runs = [run(program, row["cores"], "cuda", row["gpus"], row["filter"], some, output)
                for _ in range(options.runs)]
        return (statistics.median(values) for values in zip(*runs))
    few = files[:len(files) // 8]
    seconds, processor = median(files)
    few_seconds, _ = median(few)
    running = (len(files) - len(few)) / (seconds - few_seconds)
    start = seconds - len(files) / running
    print(f"{len(files) / seconds:8.1f} {running:8.1f} {start:8.2f}  {processor / seconds:8.1f}", flush=True)
    return {"cuda_per_s": round(len(files) / seconds, 1), "without_start_per_s": round(running, 1),
            "start_s": round(start, 2), "processors": round(processor / seconds, 1)}


def measure(options, folder, kind, size):
    """A row for each number of cores, filter and number of GPUs."""
    cores, gpus = ([int(word) for word in text.split(",")] for text in (options.cores, options.gpus))
    width, height = map(int, size.split("x"))
    count = options.count or SIZES[size] // PARTS[kind] * max(cores) // 16
    source, output = os.path.join(folder, "in"), os.path.join(folder, "out")
    make_folder(source, kind, width, height, max(DIFFERENT, count))
    for number, name in ((number, name) for number in cores for name in options.filters.split(",")):
        files = sorted(os.path.join(source, file) for file in os.listdir(source))
        if not options.count:
            files = files[:max(DIFFERENT, SIZES[size] // PARTS[kind] * number // 16)]
        if options.tar:
            with tarfile.open(output + ".in", "w") as archive:
                for file in files:
                    archive.add(file, os.path.basename(file))
        for gpu in gpus:
            row = {"format": kind, "width": width, "height": height, "images": len(files), "cores": number, "gpus": gpu,
                   "filter": name} | ({"tar": True} if options.tar else {})
            print(f"{kind}  {size:11} {len(files):5} {number:5} {gpu:5}  {name:11} ", end="")
            yield row | (separate_start if options.count else compare_backends)(options, row, files, output)
    shutil.rmtree(source)


PHOTOS = ("2560x1600", "3000x2000", "3840x2160", "4000x3000", "5120x2880")
TABLE = [(16, batch, name) for batch in ("png 19", "png 95", "jpg 17", "jpg 85", "jpg 340", "both 50")
         for name in ("sharpen", "gaussian:8", "resize:50%")]
TABLE += [(16, batch, "sharpen") for batch in ("png 5", "jpg 5", "both 197", "small 100", "small 1000", "small 8500")]
TABLE += [(16, "both 197", "blur,gaussian:8,sharpen"), (16, "jpg 85", "blur,gaussian:8,sharpen"), (16, "small 8500", "resize:50%")]
TABLE += [(4, batch, name) for batch in ("png 19", "jpg 17", "jpg 85", "both 50") for name in ("sharpen", "gaussian:8")]
TABLE += [(4, batch, "sharpen") for batch in ("png 5", "jpg 5", "small 1000", "small 8500")]


def measure_table(options, folder):
    """A row for each batch of TABLE."""
    one, program = os.path.join(folder, "one"), os.path.abspath(options.program)
    kinds = {kind: [os.path.join(one, f"{size}-{i}.{kind}") for i in range(4) for size in PHOTOS] for kind in ("png", "jpg")}
    kinds["small"] = [os.path.join(one, f"500x375-{i}.jpg") for i in range(16)]
    kinds["both"] = [path for pair in zip(kinds["png"], kinds["jpg"]) for path in pair]
    os.mkdir(one)
    with concurrent.futures.ProcessPoolExecutor(max_workers=16) as pool:
        list(pool.map(make_photo, sorted({path for paths in kinds.values() for path in paths})))
    end = time.monotonic() + options.seconds
    for cores, batch, name in TABLE:
        kind, count = batch.split()[0], int(batch.split()[1])
        source = os.path.join(folder, batch.replace(" ", ""))
        os.makedirs(source, exist_ok=True)
        files = [os.path.join(source, f"{i:05}.{kinds[kind][i % len(kinds[kind])][-3:]}") for i in range(count)]
        for i, file in enumerate(files):
            if not os.path.exists(file):
                os.link(kinds[kind][i % len(kinds[kind])], file)
        times = {"cpu": [], "cuda": [], "auto": []}
        while len(times["auto"]) < options.runs and time.monotonic() < end:
            for backend, seconds in times.items():
                seconds.append(run(program, cores, backend, 1, name, files, os.path.join(folder, "out"))[0])
        if not times["auto"]:
            return
        cpu, cuda, auto = (statistics.median(seconds) for seconds in times.values())
        ratio = auto / min(cpu, cuda)
        print(f"{cores:2}  {batch:10}  {name:24} {cpu:7.3f} {cuda:7.3f} {auto:7.3f} {ratio:7.2f}", flush=True)
        yield {"cores": cores, "batch": batch, "filter": name, "runs": len(times["auto"]), "cpu_s": round(cpu, 3),
               "cuda_s": round(cuda, 3), "auto_s": round(auto, 3), "ratio": round(ratio, 2)}


def make_photo(path):
    size, number = os.path.basename(path)[:-4].split("-")
    sample = os.path.join(batch_bench.ROOT, "samples", batch_bench.SAMPLES[int(number) % DIFFERENT])
    make = batch_bench.make_with_opencv if batch_bench.has_opencv() else batch_bench.make_with_vips
    make(sample, path, *map(int, size.split("x")), int(number), level=6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--formats", default=",".join(PARTS))
    parser.add_argument("--sizes", default="3400x2264,1200x800")
    parser.add_argument("--cores", default="16,4,2")
    parser.add_argument("--filters", default=",".join(FILTERS))
    parser.add_argument("--gpus", default="1")
    parser.add_argument("--tar", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.table:
            print("    batch       filter                       cpu    cuda    auto auto / better, in seconds")
            rows.extend(measure_table(options, folder))
            ratios = [row["ratio"] for row in rows]
            print(f"{len(rows)} batches: mean {statistics.mean(ratios):.3f}, worst {max(ratios)}, "
                  f"{sum(ratio > 1.1 for ratio in ratios)} above 1.1")
        else:
            print("     pixels      files cores  GPUs  filter      " + (
                "    cuda  without start s  processors" if options.count else "     cpu     cuda     auto  auto / better"))
            for size in options.sizes.split(","):
                for kind in options.formats.split(","):
                    rows.extend(measure(options, folder, kind, size))
    if options.json:
        batch_bench.save_json(options.json, {**describe_machine(options.commit), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
