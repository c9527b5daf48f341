#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the CPU's convolution beside OpenCV's and libvips': peers_cpu.py BUILD [--runs N].

For each case and thread count, gpuconv --bench of BUILD (checked; the median of its launches in memory) and OpenCV
(the median of N calls in memory, with one output buffer) run in turn, N times. The script prints the median of each.
libvips' time is that of a whole process minus that of a process that only copies the image; this takes minutes, and
--no-vips leaves it out. All get the same shape, thread count, machine and random samples. A smaller image shows how
exact each peer is: the number of samples that differ from the variant `reference`, and by how much.

Needs numpy and OpenCV (pip install opencv-python-headless). libvips is optional."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy

WIDTH, HEIGHT, CHANNELS = 5120, 2880, 3
SIDE = 4096  # of the float plane
SMALL = (768, 512)  # of the image for exactness: the reference is slow


def random_taps(size, largest, seed):
    """Integer taps that fill their range, no zeros, with a scale that keeps outputs from saturating."""
    random = numpy.random.default_rng(seed)
    taps = random.integers(1, largest + 1, (size, size)) * random.choice([-1, 1], (size, size))
    scale = int(numpy.sqrt((taps.astype(float) ** 2).sum()) * 73.9 / 45) + 1
    return taps, scale, 128 - int(taps.sum() * 127.5 / scale)


def write_filter(path, taps, scale, offset):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"scale {scale}\noffset {offset}\n")
        for row in taps:
            file.write(" ".join(map(str, row)) + "\n")


def write_vips(path, taps, scale, offset):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{taps.shape[1]} {taps.shape[0]} {scale} {offset}\n")
        for row in taps:
            file.write(" ".join(map(str, row)) + "\n")


class Work:
    """A filter for gpuconv and vips, and the same for OpenCV."""

    def __init__(self, name, folder, taps=None, scale=1, offset=0, filter_name=None, peer=None):
        self.name, self.peer, self.mask = name, peer, None
        self.filter = filter_name
        if taps is not None:
            kernel = taps.astype(numpy.float32) / numpy.float32(scale)
            self.filter = os.path.join(folder, name.replace(" ", "-") + ".txt")
            self.mask = os.path.join(folder, name.replace(" ", "-") + ".mat")
            write_filter(self.filter, taps, scale, offset)
            write_vips(self.mask, taps, scale, offset)
            self.peer = self.peer or (lambda a, out: cv2.filter2D(a, -1, kernel, dst=out, delta=offset,
                                                                  borderType=cv2.BORDER_REPLICATE))


def works(folder):
    result = []
    for size, largest, bits in ((3, 100, 8), (9, 100, 8), (9, 5000, 16), (15, 100, 8), (31, 100, 8)):
        taps, scale, offset = random_taps(size, largest, size * largest)
        result.append(Work(f"{size}x{size} int{bits}", folder, taps, scale, offset))
    for size, sigma, name in ((9, 1.7, "gaussian9"), (15, 2.1, "gaussian:2.1")):
        def gaussian(a, out, size=size, sigma=sigma):
            return cv2.GaussianBlur(a, (size, size), sigma, dst=out, borderType=cv2.BORDER_REPLICATE)
        result.append(Work(f"gaussian {size}", folder, filter_name=name, peer=gaussian))
    for size in (9, 31):
        def box(a, out, size=size):
            return cv2.blur(a, (size, size), dst=out, borderType=cv2.BORDER_REPLICATE)
        result.append(Work(f"box {size}", folder, numpy.ones((size, size), int), size * size, 0, peer=box))
    return result


def bench(build, work, size, planes, threads, sample):
    """Medians of gpuconv's convolution and of memcpy, in milliseconds."""
    command = [os.path.join(build, "gpuconv"), "--bench", "--backend", "cpu", "--variant", "cpu", "--json",
               "--bench-size", f"{size}x{planes}", "--bench-filter", work.filter, "--bench-sample", sample,
               "--threads", str(threads)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    medians = {row["variant"]: row["median_ms"] for row in result["rows"] if row["status"] == "ok"}
    return medians["cpu"], medians["(memcpy)"]


def call(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def vips_milliseconds(arguments, threads):
    environment = dict(os.environ, VIPS_CONCURRENCY=str(threads))
    return call(lambda: subprocess.run(["vips", *arguments], check=True, env=environment))


def exactness(build, work, folder):
    """Of OpenCV, against the reference: (part of the samples that differ, largest difference)."""
    source, target = os.path.join(folder, "small.png"), os.path.join(folder, "reference.png")
    small = numpy.random.default_rng(7).integers(0, 256, (SMALL[1], SMALL[0], CHANNELS), dtype=numpy.uint8)
    cv2.imwrite(source, small)
    subprocess.run([os.path.join(build, "gpuconv"), "--border", "replicate", "--variant", "reference",
                    work.filter, source, target], check=True)
    expected = cv2.imread(target).astype(int)
    difference = numpy.abs(expected - work.peer(small, None))
    return (difference > 0).mean(), difference.max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-vips", action="store_true")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    print(f"OpenCV {cv2.__version__}; {arguments.runs} turns; {WIDTH} x {HEIGHT} x {CHANNELS}; "
          f"load before: {os.getloadavg()[0]:.2f}")
    image = numpy.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, CHANNELS), dtype=numpy.uint8)
    out = numpy.empty_like(image)
    plane = numpy.random.default_rng(2).random((SIDE, SIDE), dtype=numpy.float32)
    plane_out = numpy.empty_like(plane)
    with tempfile.TemporaryDirectory() as folder:
        picture, copy = os.path.join(folder, "in.v"), os.path.join(folder, "out.v")
        has_vips = shutil.which("vips") is not None and not arguments.no_vips
        if has_vips:
            cv2.imwrite(os.path.join(folder, "in.ppm"), image)
            subprocess.run(["vips", "copy", os.path.join(folder, "in.ppm"), picture], check=True)
        print("| work | threads | gpuconv ms | OpenCV ms | ratio | vips ms | ratio | OpenCV differs, most | memcpy ms |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        every = [(work, image, out, f"{WIDTH}x{HEIGHT}", CHANNELS, "uint8") for work in works(folder)]
        taps, scale, _ = random_taps(9, 100, 5)
        every.append((Work("9x9 float", folder, taps, scale), plane, plane_out, f"{SIDE}x{SIDE}", 1, "float"))
        for work, source, target, size, planes, sample in every:
            differ = "" if sample == "float" else "%.4f%%, %d" % (lambda e: (e[0] * 100, e[1]))(
                exactness(arguments.build, work, folder))
            for threads in arguments.threads:
                cv2.setNumThreads(threads)
                work.peer(source, target)
                ours, peer = [], []
                for _ in range(arguments.runs):
                    ours.append(bench(arguments.build, work, size, planes, threads, sample))
                    work.peer(source, target)  # warm, as ours is
                    peer.append(call(lambda: work.peer(source, target)))
                mine, theirs = statistics.median(o[0] for o in ours), statistics.median(peer)
                vips = ""
                ratio = ""
                if has_vips and work.mask and sample == "uint8":
                    base = statistics.median(vips_milliseconds(["copy", picture, copy], threads) for _ in range(5))
                    took = vips_milliseconds(["conv", picture, copy, work.mask, "--precision", "integer"], threads) - base
                    vips, ratio = f"{took:.0f}", f"{took / mine:.1f}"
                print(f"| {work.name} | {threads} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.2f} | {vips} | {ratio} | "
                      f"{differ} | {statistics.median(o[1] for o in ours):.1f} |", flush=True)
    print(f"load after: {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    sys.exit(main())
