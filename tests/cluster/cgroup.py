#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batches in a real cgroup of one processor and 256 MiB: cgroup.py GPUCONV. Photos of 15 megapixels are all done, the
kernel kills nothing, and only --memory refuses. Skipped (exit status 77) where this process may make no cgroup."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from harness import run, skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

ROOT = "/sys/fs/cgroup"
V2 = (("", (("memory.max", "268435456"), ("cpu.max", "100000 100000"))),)
V1 = (("memory", (("memory.limit_in_bytes", "268435456"),)),
      ("cpu", (("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "100000"))))


def make():
    """Make a cgroup of each hierarchy below this process's own. Returns the folders."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = {names: path for _, names, path in (line.rstrip("\n").split(":", 2) for line in file)}
    folders = []
    try:
        for mount, limits in V1 if os.path.isdir(f"{ROOT}/memory") else V2:
            path = next((path for names, path in own.items() if mount in names.split(",")), "/")
            folders.append(f"{ROOT}/{mount}{path}/gpuconv-test-{os.getpid()}")
            os.mkdir(folders[-1])
            for name, value in limits:
                with open(f"{folders[-1]}/{name}", "w", encoding="utf-8") as file:
                    file.write(value)
    except OSError as error:
        remove(folders)
        skip(f"no cgroup can be made: {error}")
    return folders


def remove(folders):
    for folder in folders:
        if os.path.isdir(folder):
            os.rmdir(folder)


def write_photos(program, folder):
    """Noise that is blurred a little: as large as photos when compressed, as PNG and as JPEG of each kind."""
    width, height = 4740, 3160
    with open("noise.png", "wb") as file:
        noise = random.Random(1).randbytes(3 * width * height)
        file.write(png(width, height, 3, 8, unfiltered(noise, 3 * width), level=0))
    kinds = {"photo.png": [], "photo.jpg": [], "scans.jpg": ["--progressive"], "444.jpg": ["--subsampling", "444"]}
    for name, options in kinds.items():
        run(program, "-q", *options, "gaussian:1", "noise.png", f"{folder}/{name}")
    with open(f"{folder}/photo.jpg", "rb") as file:
        photo = file.read()
    with open(f"{folder}/turned.jpg", "wb") as file:  # EXIF says to rotate it
        file.write(photo[:2] + b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06"
                   + bytes(6) + photo[2:])
    for name in os.listdir(folder):
        shutil.copy(f"{folder}/{name}", f"{folder}/second-{name}")


def check(folders, program, arguments, status, words):
    """Run in the cgroup. Check the exit status, and that WORDS are said."""
    enter = "".join(f"echo $$ >{folder}/cgroup.procs && " for folder in folders)
    ran = subprocess.run(["sh", "-c", enter + 'exec "$0" "$@"', program, *arguments], capture_output=True, text=True,
                         check=False)
    if ran.returncode != status or words not in ran.stderr:
        sys.exit(f"{arguments}: exit status {ran.returncode}, expected {status} and: {words}\n{ran.stderr}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    program = os.path.abspath(sys.argv[1])
    if not os.path.isdir(ROOT):
        skip(f"there is no {ROOT}")
    folders = make()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuconv-cgroup-", dir="/var/tmp") as place:  # not in memory
            os.chdir(place)
            os.mkdir("photos")
            write_photos(program, "photos")
            check(folders, program, ["-v", "blur", "photos", "-o", "out"], 0, "1 image at a time")
            check(folders, program, ["-j8", "blur", "photos", "-o", "out"], 0, "10 of 10 files done")
            check(folders, program, ["-j8", "--memory", "20M", "blur", "photos", "-o", "out"], 1,
                  "of memory, and --memory allows 20.0 MiB; allow more")
            os.chdir("/")
    finally:
        remove(folders)
    print("10 photos of 15 megapixels in 256 MiB, 1 and 8 at a time")


main()
