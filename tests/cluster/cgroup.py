#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A batch in a real cgroup: cgroup.py GPUCONV. One processor and 32 MiB bound the images at a time and the default of
--memory. Skipped (exit status 77) where this process may make no cgroup."""
import os
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from harness import skip  # noqa: E402

ROOT = "/sys/fs/cgroup"
V2 = (("", (("memory.max", "33554432"), ("cpu.max", "100000 100000"))),)
V1 = (("memory", (("memory.limit_in_bytes", "33554432"),)),
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


def write_black(path, side):
    """A black PNG, because png.py takes long for a large one."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(bytes(side * (3 * side + 1)))), (b"IEND", b""))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data +
                                                   struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    program = os.path.abspath(sys.argv[1])
    if not os.path.isdir(ROOT):
        skip(f"there is no {ROOT}")
    folders = make()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuconv-cgroup-") as place:
            for name, side in (("a", 20), ("b", 20), ("large", 1500)):
                write_black(f"{place}/{name}.png", side)
            enter = "".join(f"echo $$ >{folder}/cgroup.procs && " for folder in folders)
            ran = subprocess.run(["sh", "-c", enter + f"exec {program} -v --border wrap blur . -o out"], cwd=place,
                                 capture_output=True, text=True, check=False)
            outputs = sorted(os.listdir(f"{place}/out"))
    finally:
        remove(folders)
    for words in ("1 image at a time", "and --memory allows 8.0 MiB", "2 of 3 files done"):
        if words not in ran.stderr:
            sys.exit(f"not said: {words}\n{ran.stderr}")
    if outputs != ["a.png", "b.png"]:
        sys.exit(f"outputs: {outputs}")
    print("one image at a time, in a quarter of 32 MiB")


main()
