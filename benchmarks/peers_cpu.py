#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the CPU's convolution beside OpenCV's and libvips': peers_cpu.py BUILD [--runs N] [--sets [--json FILE]].

For each case and thread count, gpuconv --bench of BUILD (checked; the median of its launches in memory) and OpenCV
(the median of N calls in memory, with one output buffer) run in turn, N times. The script prints the median of each.
libvips' time is that of a whole process minus that of a process that only copies the image; this takes minutes, and
--no-vips leaves it out. All get the same shape, thread count, machine and random samples. A smaller image shows how
exact each peer is: the number of samples that differ from the variant `reference`, and by how much.

With --sets, both libraries run by AVX2 and by AVX-512, in a process each. They filter a plane and an interleaved image
of NumPy in turn, by one thread. The script prints the least processor time of N + 1 calls, and --json writes it. This
works beside other programs, too. gpuconv is the Python package with the library of BUILD.

Needs numpy and OpenCV (pip install opencv-python-headless). libvips is optional."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import cv2
import numpy

import batch_bench

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


# ---- Instruction sets ----

SETS = {"AVX2": {"GPUCONV_CPU": "avx2", "OPENCV_CPU_DISABLE": "AVX512-SKX,AVX512-COMMON,AVX512F"}, "AVX-512": {}}


def more_works(folder):
    """Works that only --sets measures."""
    def box(size):
        return lambda a, out: cv2.blur(a, (size, size), dst=out, borderType=cv2.BORDER_REPLICATE)

    def sobel(a, _out):
        slopes = [cv2.Sobel(a, cv2.CV_32F, *axes, borderType=cv2.BORDER_REPLICATE) for axes in ((1, 0), (0, 1))]
        return cv2.convertScaleAbs(cv2.magnitude(*slopes))

    line = cv2.getGaussianKernel(9, 1.7)
    result = [Work(f"box {size}", folder, filter_name=f"box:{size // 2}", peer=box(size)) for size in (3, 15)]
    return result + [
        Work("gaussian 9, sepFilter2D", folder, filter_name="gaussian9",
             peer=lambda a, out: cv2.sepFilter2D(a, -1, line, line, dst=out, borderType=cv2.BORDER_REPLICATE)),
        Work("gaussian:2, 17 taps", folder, filter_name="gaussian:2",
             peer=lambda a, out: cv2.GaussianBlur(a, (17, 17), 2, dst=out, borderType=cv2.BORDER_REPLICATE)),
        Work("sobel", folder, filter_name="sobel", peer=sobel)]


def serve(library, folder):
    """For each line with the index of a work and of an array, print the milliseconds of LIBRARY for it."""
    image = numpy.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, CHANNELS), dtype=numpy.uint8)
    arrays = [numpy.ascontiguousarray(image[:, :, 0]), image]
    outs = [numpy.empty_like(array) for array in arrays]
    every = works(folder) + more_works(folder)
    cv2.setNumThreads(1)
    if library == "gpuconv":
        import gpuconv
        context = gpuconv.Context(threads=1)
    for line in sys.stdin:
        work, array = (int(word) for word in line.split())
        start = time.process_time()
        if library == "gpuconv":
            gpuconv.filter(arrays[array], every[work].filter, out=outs[array], context=context)
        else:
            every[work].peer(arrays[array], outs[array])
        print((time.process_time() - start) * 1e3, flush=True)


def start_server(build, library, extra, folder):
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = dict(os.environ, PYTHONPATH=os.path.join(source, "python"),
                       LD_LIBRARY_PATH=os.path.join(build, "src"), **extra)
    return subprocess.Popen([sys.executable, __file__, build, "--serve", library, folder], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def compare_sets(arguments, folder):
    with open("/proc/cpuinfo", encoding="ascii") as file:
        processor = next(line.split(": ")[1].strip() for line in file if line.startswith("model name"))
    keys = [(library, instructions) for instructions in SETS for library in ("gpuconv", "OpenCV")]
    servers = {key: start_server(arguments.build, key[0], SETS[key[1]], folder) for key in keys}
    rows = []
    print("| work | " + " | ".join(f"gpuconv, {name} | OpenCV, {name} | ratio" for name in SETS) + " |")
    print("| --- " * 7 + "|")
    for index, work in enumerate(works(folder) + more_works(folder)):
        for array, kind in enumerate(("plane", "RGB")):
            least = {}
            for _ in range(arguments.runs + 1):
                for key, server in servers.items():
                    print(index, array, file=server.stdin, flush=True)
                    taken = float(server.stdout.readline())
                    least[key] = min(least.get(key, taken), taken)
            cells = []
            for instructions in SETS:
                ours, peer = least["gpuconv", instructions], least["OpenCV", instructions]
                cells += [f"{ours:.1f}", f"{peer:.1f}", f"{peer / ours:.2f}"]
            print(f"| {work.name}, {kind} | {' | '.join(cells)} |", flush=True)
            rows.append({"work": work.name, "image": kind,
                         "ms": {" ".join(key): round(least[key], 2) for key in keys}})
    for server in servers.values():
        server.stdin.close()
        server.wait()
    if arguments.json:
        batch_bench.save_json(arguments.json, {
            "date": time.strftime("%Y-%m-%d"), "processor": processor, "processors": os.cpu_count(), "threads": 1,
            "commit": arguments.commit, "opencv": cv2.__version__, "calls": arguments.runs + 1, "rows": rows})


# ---- All of them in turn ----

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
    parser.add_argument("--sets", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--commit", default="")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        # In the main thread, gpuconv would filter in another one, whose time would not count.
        thread = threading.Thread(target=serve, args=arguments.serve)
        thread.start()
        thread.join()
        return
    if arguments.sets:
        with tempfile.TemporaryDirectory() as folder:
            compare_sets(arguments, folder)
        return
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
