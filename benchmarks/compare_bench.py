#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time --compare beside its peers: compare_bench.py GPUCONV [--runs 5] [--pairs 1000] [--against OTHER] [--json FILE].

One pair of 15 Mpixel, then folders of pairs of 0.5 Mpixel. They are PNGs made from samples/, as in batch_bench.py, with
the same samples on both sides and other bytes: OpenCV or libvips wrote the expected ones, and gpuconv the actual ones. A
third work is the same pair with the same bytes. Files are in memory (--folder, default /dev/shm). Each time is from start to exit; all
programs run in turn, and the table has medians and minima, and medians of the processors' time. The peers, as far as they are installed, are ImageMagick's
compare with -metric AE, alone and under xargs, and two pixelmatch of PyPI: pixelmatch and pybind11_pixelmatch, both with
Pillow. Their times include the start of Python. OTHER is another gpuconv.

decode: the time that decoding all files takes on the cores of the machine, each as fast as one alone. For one pair it is
that of the slower file, because both are decoded beside each other. The least of all runs."""
import argparse
import importlib.metadata
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from batch_bench import ROOT, SAMPLES, has_opencv, make_with_opencv, make_with_vips, save_json

PIXELMATCH = """
import sys
from PIL import Image
from pixelmatch.contrib.PIL import pixelmatch
print(pixelmatch(Image.open(sys.argv[1]), Image.open(sys.argv[2])))
"""
PYBIND11 = """
import sys
from pybind11_pixelmatch import Options, pixelmatch, read_image
print(pixelmatch(read_image(sys.argv[1]), read_image(sys.argv[2]), options=Options()))
"""


def make_pairs(program, folder, sizes):
    """Fill FOLDER/expected and FOLDER/actual. Four files of each size are made, and copied."""
    make = make_with_opencv if has_opencv() else make_with_vips
    expected, actual = (os.path.join(folder, name) for name in ("expected", "actual"))
    for side in (expected, actual):
        os.makedirs(side)
    for i, (width, height) in enumerate(sizes):
        name = f"{i:04}.png"
        if i < len(SAMPLES):
            make(os.path.join(ROOT, "samples", SAMPLES[i]), os.path.join(expected, name), width, height, i)
            subprocess.run([program, "-q", "identity", os.path.join(expected, name), os.path.join(actual, name)],
                           check=True)
        else:
            for side in (expected, actual):
                shutil.copy(os.path.join(side, f"{i % len(SAMPLES):04}.png"), os.path.join(side, name))
    return expected, actual


def decode_seconds(program, side, count, folder, runs):
    """The mean seconds that one thread takes to decode one of COUNT files, the least of RUNS."""
    return min(decode_once(program, side, count, folder) for _ in range(runs))


def decode_once(program, side, count, folder):
    report = os.path.join(folder, "decode.jsonl")
    names = [os.path.join(side, name) for name in sorted(os.listdir(side))[:count]]
    subprocess.run([program, "-q", "-j1", "--threads", "1", "--backend", "cpu", "--report", report, "identity", *names,
                    "-o", os.path.join(folder, "decoded")], check=True)
    with open(report, encoding="utf-8") as file:
        milliseconds = [json.loads(line)["ms"]["decode"] for line in file]
    os.remove(report)
    return statistics.mean(milliseconds) / 1e3


def peers_of_pair(a, b):
    """Name and command of each peer that compares two files."""
    if shutil.which("compare"):
        yield "ImageMagick compare", ["compare", "-metric", "AE", a, b, "null:"]
    for module, script in (("pixelmatch", PIXELMATCH), ("pybind11_pixelmatch", PYBIND11)):
        if subprocess.run([sys.executable, "-c", f"import {module}, PIL"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            yield f"{module} {importlib.metadata.version(module)}", [sys.executable, "-c", script, a, b]


def peers_of_folders(expected, actual, jobs):
    if shutil.which("compare"):
        once = 'compare -metric AE "$0/$1" "$2/$1" null:'
        yield "ImageMagick compare, loop", ["sh", "-c", 'cd "$0"; for f in *; do compare -metric AE "$f" "$1/$f" null: || '
                                            "exit 1; done", expected, actual]
        yield f"ImageMagick compare, xargs -P{jobs}", ["sh", "-c", f"ls \"$0\" | xargs -P{jobs} -I '{{}}' sh -c '{once}' "
                                                       "\"$0\" '{}' \"$1\"", expected, actual]


def run(name, command):
    """The seconds of a command from start to exit, and those of processors."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status != 0:
            said.seek(0)
            sys.exit(f"{name} failed: {said.read().decode()}")
    return seconds, usage.ru_utime + usage.ru_stime


def time_all(title, commands, runs, decode):
    """Run the commands in turn. Prints and returns rows."""
    times = {name: [] for name, _ in commands}
    for _ in range(runs):
        for name, command in commands:
            times[name].append(run(name, command))
    rows = []
    print(title)
    if decode is not None:
        print(f"  {'decode':32} {decode:9.3f} s")
    for name, runs_of in times.items():
        seconds, processor = zip(*runs_of)
        rows.append({"work": title, "name": name, "seconds": seconds, "processor_seconds": processor,
                     "median": statistics.median(seconds), "least": min(seconds),
                     "processor": statistics.median(processor), "decode": decode})
        print(f"  {name:32} {rows[-1]['median']:9.3f} s, least {rows[-1]['least']:9.3f} s, processors "
              f"{rows[-1]['processor']:9.3f} s, {rows[-1]['median'] / rows[0]['median']:7.1f} x", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--against")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    program, cores = os.path.abspath(arguments.program), len(os.sched_getaffinity(0))

    def ours(a, b):
        yield "gpuconv", [program, "--compare", a, b]
        if arguments.against:
            yield "the other gpuconv", [os.path.abspath(arguments.against), "--compare", a, b]

    rows = []
    with tempfile.TemporaryDirectory(prefix="gpuconv-", dir=arguments.folder) as folder:
        one, many = os.path.join(folder, "one"), os.path.join(folder, "many")
        expected, actual = make_pairs(program, one, [(4743, 3162)])
        decode = max(decode_seconds(program, side, 1, one, arguments.runs) for side in (expected, actual))
        a, b = (os.path.join(side, "0000.png") for side in (expected, actual))
        peers = [] if arguments.no_peers else list(peers_of_pair(a, b))
        rows += time_all("one pair of 15 Mpixel", [*ours(a, b), *peers], arguments.runs, decode)
        copy = shutil.copy(a, os.path.join(one, "copy.png"))
        rows += time_all("the same bytes", list(ours(a, copy)), arguments.runs, None)
        expected, actual = make_pairs(program, many, [(866, 577)] * arguments.pairs)
        decode = arguments.pairs / cores * sum(
            decode_seconds(program, side, 16, many, arguments.runs) for side in (expected, actual))
        peers = [] if arguments.no_peers else list(peers_of_folders(expected, actual, cores))
        rows += time_all(f"{arguments.pairs} pairs of 0.5 Mpixel", [*ours(expected, actual), *peers], arguments.runs,
                         decode)
    if arguments.json:
        save_json(arguments.json, rows)


if __name__ == "__main__":
    main()
