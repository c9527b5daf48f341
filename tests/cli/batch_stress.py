#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thousands of tiny images in one batch: batch_stress.py GPUCONV. Memory and open
descriptors must not grow with their number."""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip, temporary_folder  # noqa: E402

COUNT = 3000
MEGABYTES = 4  # the growth that is allowed; an image takes kilobytes, so a leak for each image shows


def resident(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def watch(process, outputs):
    """Watch a batch: lists of resident megabytes and open descriptors in its first and its last third."""
    early, late = [], []
    while process.poll() is None:
        try:
            sample = resident(process), len(os.listdir(f"/proc/{process.pid}/fd"))
        except (FileNotFoundError, ProcessLookupError, IndexError):
            break
        done = len(os.listdir(outputs)) if os.path.isdir(outputs) else 0
        if COUNT / 10 < done < COUNT / 3:
            early.append(sample)
        elif 2 * COUNT / 3 < done < COUNT:
            late.append(sample)
        time.sleep(0.002)
    return early, late


def main():
    program = os.path.abspath(sys.argv[1])
    png = os.path.join(os.path.dirname(os.path.abspath(__file__)), "png.py")
    with temporary_folder() as folder:
        inputs, outputs = os.path.join(folder, "in"), os.path.join(folder, "out")
        os.mkdir(inputs)
        # Different sizes, so that buffers are reused and grown.
        images = [subprocess.run([sys.executable, png, str(8 + 5 * i), str(40 - 3 * i), str(1 + i % 4)], check=True,
                                 stdout=subprocess.PIPE).stdout for i in range(12)]
        for i in range(COUNT):
            with open(os.path.join(inputs, f"{i:05}.png"), "wb") as file:
                file.write(images[i % len(images)])
        process = subprocess.Popen([program, "-q", "-j4", "--backend", "cpu", "blur", inputs, "-o", outputs])
        early, late = watch(process, outputs)
        if process.wait() != 0:
            sys.exit(f"exit status {process.returncode}")
        if len(os.listdir(outputs)) != COUNT:
            sys.exit(f"{len(os.listdir(outputs))} of {COUNT} outputs")
        if not early or not late:
            skip("the batch ended before it could be watched")
        growth = max(m for m, _ in late) - max(m for m, _ in early)
        # Each worker opens a file or two at a time.
        most = max(d for _, d in early) + 8
        print(f"{growth:.2f} MB of growth, up to {max(d for _, d in late)} descriptors")
        if not growth <= MEGABYTES or max(d for _, d in late) > most:
            sys.exit("memory or descriptors grow")
    return 0


sys.exit(main())
