#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time batches of photos: batch_bench.py GPUCONV [--count 200] [--filter sharpen] [--formats png,jpg] [--runs 3]
[--no-peers] [--json FILE].

The photos have 2 to 15 Mpixel, PNG and JPEG in turn unless --formats names others: webp or tif, alone. They are made
from samples/: enlarged, with a little noise, so that they compress like photos. --keep FOLDER copies them there. Timed
are gpuconv on the CPU and on 1, 2, 4... GPUs, and, if installed, libvips under xargs and OpenCV, each with one process
a core (not with --no-peers). All read and write the same folders, which should be in memory (--folder, default
/dev/shm). The script prints a table and, with --json, writes JSON: medians of images and megapixels a second, the peak
memory of all processes of a run, and the share of each stage in gpuconv's time.

codec: the rate of as many cores that only decode and encode, each as fast as one alone. gpuconv's rate is also given in
percent of it."""
import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLES = ("astronaut.png", "cat.png", "coffee.png", "rocket.jpg")
MEGAPIXELS = (2, 3, 5, 6, 8, 10, 12, 15)
VIPS_OPTIONS = {"webp": "[Q=90]", "tif": "[compression=deflate,predictor=horizontal]"}  # as gpuconv writes them
NOISE = 4  # standard deviation: as a photo at a middling sensitivity
MATRICES = {  # for the peers; must be gpuconv's filters
    "sharpen": (1, ((0, -1, 0), (-1, 5, -1), (0, -1, 0))),
    "box9": (81, ((1,) * 9,) * 9),
}
CV_SCRIPT = """
import multiprocessing, os, sys
import cv2, numpy
source, target, scale, rows, workers = sys.argv[1], sys.argv[2], float(sys.argv[3]), eval(sys.argv[4]), int(sys.argv[5])
taps = numpy.array(rows, dtype=numpy.float32) / scale
def work(name):
    image = cv2.imread(os.path.join(source, name), cv2.IMREAD_UNCHANGED)
    filtered = cv2.filter2D(image, -1, taps, borderType=cv2.BORDER_REPLICATE)
    options = {'jpg': [cv2.IMWRITE_JPEG_QUALITY, 90], 'webp': [cv2.IMWRITE_WEBP_QUALITY, 90]}
    cv2.imwrite(os.path.join(target, name), filtered, options.get(name.rpartition('.')[2], []))
cv2.setNumThreads(1)
with multiprocessing.Pool(workers) as pool:
    pool.map(work, sorted(os.listdir(source)), chunksize=1)
"""


def has_opencv():
    return subprocess.run([sys.executable, "-c", "import cv2, numpy"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def make_with_opencv(sample, path, width, height, seed, level=None):
    """A photo; LEVEL is the compression of a PNG, and without it the library's own."""
    import cv2
    import numpy
    image = cv2.imread(sample, cv2.IMREAD_COLOR)
    image = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC).astype(numpy.float32)
    image += numpy.random.default_rng(seed).standard_normal(image.shape, dtype=numpy.float32) * NOISE
    if path.endswith(".jpg"):
        options = [cv2.IMWRITE_JPEG_QUALITY, 90]
    elif path.endswith(".webp"):
        options = [cv2.IMWRITE_WEBP_QUALITY, 90]  # else it would be lossless
    else:
        options = [] if level is None else [cv2.IMWRITE_PNG_COMPRESSION, level]
    cv2.imwrite(path, numpy.clip(image + 0.5, 0, 255).astype(numpy.uint8), options)


def make_with_vips(sample, path, width, height, seed, level=6):
    parts = [f"{path}.{i}.v" for i in range(5)]
    suffix = path.rpartition(".")[2]
    options = VIPS_OPTIONS.get(suffix, "[Q=90]" if suffix == "jpg" else f"[compression={level}]")
    for command in (["colourspace", sample, parts[0], "srgb"],
                    ["extract_band", parts[0], parts[1], "0", "--n", "3"],
                    ["thumbnail", parts[1], parts[2], str(width), "--height", str(height), "--size", "force"],
                    ["gaussnoise", parts[3], str(width), str(height), "--sigma", str(NOISE), "--seed", str(seed)],
                    ["add", parts[2], parts[3], parts[4]],
                    ["cast", parts[4], path + options, "uchar"]):
        subprocess.run(["vips", *command], check=True)
    for part in parts:
        os.remove(part)


def make_photos(folder, count, formats, jobs):
    """Photos of each size and format from each sample in turn, and copies of them. Returns their megapixels."""
    make = make_with_opencv if has_opencv() else make_with_vips
    kinds, copies, total = {}, [], 0
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        made = []
        for i in range(count):
            kind = MEGAPIXELS[i % len(MEGAPIXELS)], formats[i // 8 % len(formats)], SAMPLES[i // 16 % 4]
            width, height = round((kind[0] * 1e6 * 1.5) ** 0.5), round((kind[0] * 1e6 / 1.5) ** 0.5)
            path = os.path.join(folder, f"{i:04}.{kind[1]}")
            if kind in kinds:
                copies.append((kinds[kind], path))
            else:
                made.append(pool.submit(make, os.path.join(ROOT, "samples", kind[2]), path, width, height, i))
                kinds[kind] = path
            total += width * height / 1e6
        for future in made:
            future.result()
    for source, target in copies:
        shutil.copy(source, target)
    return total


def memory_of(group):
    """Resident megabytes of all processes of a process group."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == group:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return total


def run(command, output):
    """(seconds, peak megabytes) of a command that fills the folder OUTPUT."""
    shutil.rmtree(output, ignore_errors=True)
    os.mkdir(output)
    peak, ended = 0.0, threading.Event()
    start = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    waiter = threading.Thread(target=lambda: (process.wait(), ended.set()))
    waiter.start()
    while not ended.wait(0.05):
        peak = max(peak, memory_of(process.pid))
    waiter.join()
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed: {process.returncode}")
    return time.monotonic() - start, peak


def shares(report):
    """(share of each stage in percent, milliseconds of codecs an image, as seen by the workers) of a run's report."""
    totals, codec, count = {}, 0.0, 0
    with open(report, encoding="utf-8") as file:
        for line in file:
            stages = json.loads(line)["ms"]
            count += 1
            codec += stages["decode"] + stages["encode"]
            for stage, milliseconds in stages.items():
                totals[stage] = totals.get(stage, 0) + milliseconds
    whole = totals.pop("total")
    return {stage: round(100 * value / whole, 1) for stage, value in totals.items()}, codec / count


def commands(arguments, source, output, report):
    """Name and command of each thing to time."""
    program, workers = arguments.program, arguments.jobs
    base = [program, "-q", f"-j{workers}", "--report", report, arguments.filter, source, "-o", output]
    yield "gpuconv cpu", [*base, "--backend", "cpu"]
    listed = subprocess.run([program, "--devices"], stdout=subprocess.PIPE, check=True, text=True).stdout
    gpus = 0 if listed.startswith("no CUDA device") else len(listed.splitlines())
    number = 1
    while number <= gpus:
        devices = ",".join(map(str, range(number)))
        yield f"gpuconv cuda, {number} GPU", [*base, "--backend", "cuda", "--device", devices]
        number *= 2
    if gpus > 0:
        yield "gpuconv auto", [*base, "--device", "all"]
    if arguments.filter not in MATRICES or arguments.no_peers:
        return
    scale, rows = MATRICES[arguments.filter]
    if shutil.which("vips"):
        matrix = os.path.join(os.path.dirname(output), "matrix.mat")
        with open(matrix, "w", encoding="ascii") as file:
            file.write(f"{len(rows[0])} {len(rows)} {scale} 0\n")
            file.writelines(" ".join(map(str, row)) + "\n" for row in rows)
        yield "vips, xargs", ["sh", "-c", 'cd "$0" && ls | VIPS_CONCURRENCY=1 xargs -P "$3" -I {} '
                              'vips conv {} "$1/{}$4" "$2" --precision integer', source, output, matrix, str(workers),
                              VIPS_OPTIONS.get(arguments.formats, "")]
    if has_opencv():
        yield "OpenCV, processes", [sys.executable, "-c", CV_SCRIPT, source, output, str(scale), repr(rows),
                                    str(workers)]


def save_json(path, value):
    with open(path, "w", encoding="ascii") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--filter", default="sharpen")
    parser.add_argument("--formats", default="png,jpg")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)

    rows = []
    with tempfile.TemporaryDirectory(prefix="gpuconv-", dir=arguments.folder) as folder:
        source, output, report = (os.path.join(folder, name) for name in ("in", "out", "report.jsonl"))
        os.mkdir(source)
        megapixels = make_photos(source, arguments.count, arguments.formats.split(","), arguments.jobs)
        if arguments.keep:
            shutil.copytree(source, arguments.keep)
        alone = os.path.join(folder, "alone")
        first = [os.path.join(source, name) for name in sorted(os.listdir(source))[:16]]  # of each size and format
        run([arguments.program, "-q", "-j1", "--backend", "cpu", "--report", alone, "identity", *first, "-o", output],
            output)
        codec = 1e3 * arguments.jobs / shares(alone)[1]
        for name, command in commands(arguments, source, output, report):
            times, peak = [], 0.0
            for _ in range(arguments.runs):
                if os.path.exists(report):
                    os.remove(report)
                seconds, memory = run(command, output)
                times.append(seconds)
                peak = max(peak, memory)
            if len(os.listdir(output)) != arguments.count:
                sys.exit(f"{name} wrote {len(os.listdir(output))} of {arguments.count} files")
            seconds = statistics.median(times)
            row = {"name": name, "seconds": times, "images_per_second": arguments.count / seconds,
                   "megapixels_per_second": megapixels / seconds, "peak_megabytes": peak}
            if os.path.exists(report):
                row["percent_of_codec"] = 100 * row["images_per_second"] / codec
                row["stages_percent"] = shares(report)[0]
            rows.append(row)
            print(f"{name:20} {row['images_per_second']:8.2f} images/s {row['megapixels_per_second']:8.1f} Mpixel/s "
                  f"{peak:7.0f} MB" + (f" {row['percent_of_codec']:5.0f}% of codec  " + ", ".join(
                      f"{stage} {share}" for stage, share in row["stages_percent"].items() if share >= 0.5)
                      if "stages_percent" in row else ""), flush=True)
    if arguments.json:
        save_json(arguments.json, {
            "count": arguments.count, "filter": arguments.filter, "formats": arguments.formats, "jobs": arguments.jobs,
            "megapixels": megapixels, "codec_images_per_second": codec, "rows": rows})


if __name__ == "__main__":
    main()
