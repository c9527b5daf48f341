#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders that take several names for one file, because they ignore case or normalise Unicode: names.py GPUCONV.

The folder is real: the first of these file systems that can be mounted here."""
import json
import os
import shutil
import subprocess
import sys

import faults
from faults import check, check_failed, picture, read, run, skip, tree, write

# Each makes an empty folder "disk". The file system ends with the namespace.
SYSTEMS = {
    "tmpfs": "mount -t tmpfs -o casefold none top && mkdir disk && mkdir top/d && chattr +F top/d && "
             "mount --bind top/d disk",
    "ext4": "truncate -s 16M image && mkfs.ext4 -q -O casefold -E encoding=utf8 image && mount -o loop image top && "
            "mkdir top/d && chattr +F top/d && mount --bind top/d disk",
    "vfat": "truncate -s 16M image && mkfs.vfat image && mount -o loop image disk",
    "ntfs": "truncate -s 8M image && mkntfs -Fq image && lowntfs-3g -o ignore_case image disk",
}


def prepare():
    """Mount a folder that ignores case, or skip the test."""
    os.makedirs("top", exist_ok=True)
    os.makedirs("disk", exist_ok=True)
    for system, command in SYSTEMS.items():
        if subprocess.run(["sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            continue
        write("disk/probe", b"")
        if os.path.exists("disk/PROBE"):
            os.remove("disk/probe")
            return system
    return None


def failed_one(ended, what):
    """One file of two failed, and the sentence says why."""
    lines = ended.lines()
    check(ended.status == 1 and sum("takes both names for one" in line for line in lines) == 1 and
          lines[-1] == "gpuconv: 1 of 2 files failed", f"{what}: exit status {ended.status}, said {lines}")


def test_names(program):
    system = prepare()
    print(f"file system: {system}")
    write("a.png", picture(9, 7, 3, 1))
    os.mkdir("in")
    pairs = [("a.png", "A.png"), ("Dir/x.png", "dIR/x.png")]
    write("disk/caf\u00e9", b"")
    if os.path.exists("disk/cafe\u0301"):  # the file system takes both forms for one
        pairs.append(("caf\u00e9.png", "cafe\u0301.png"))
    os.remove("disk/caf\u00e9")
    for pair in pairs:
        for seed, name in enumerate(pair):
            os.makedirs(os.path.dirname("in/" + name), exist_ok=True)
            write("in/" + name, picture(9, 7, 3, seed))
        for options in (["-j1"], ["-j2"], ["-j1", "--skip-existing"], ["-j2", "--skip-existing"]):
            what = f"{pair[0]} {options}"
            command = [program, "-r", *options, "blur", "in", "-o"]
            run([*command, "want", "-q"])
            failed_one(run([*command, "disk", "--report", "report"]), what)
            results = {result["status"]: result for result in map(json.loads, read("report").splitlines())}
            done = os.path.relpath(results["done"]["output"], "disk")
            check(list(tree("disk").values()) == [read("want/" + done)], f"{what}: the first output was replaced")
            check_failed(run([*command, "disk"]), f"{what}, again", "would both be written to", status=2)
            check_failed(run([*command, "disk", "--shard", "1/2"]), f"{what}, shard", "would both be written to", status=2)
            check(list(tree("disk").values()) == [read("want/" + done)], f"{what}, again: the output was replaced")
            os.remove("report")
            for left in os.listdir("disk"):
                (shutil.rmtree if os.path.isdir("disk/" + left) else os.remove)("disk/" + left)
            shutil.rmtree("want")
        shutil.rmtree("in")

    # The report under another name of an output.
    for report, status in (("disk/O.png", 1), ("disk/O.png", 2)):
        ended = run([program, "blur", "a.png", "disk/o.png", "--report", report])
        check_failed(ended, "report", "is the same file as", status=status)
    check(json.loads(read("disk/o.png"))["status"] == "failed", "the report was replaced")
    os.remove("disk/o.png")

    # One file under another name is replaced, as is any output of an earlier run.
    write("disk/a.png", b"old")
    run([program, "blur", "a.png", "want.png"])
    check(run([program, "blur", "a.png", "disk/A.png"]).status == 0 and read("disk/a.png") == read("want.png"),
          "an old output under another name")
    check_failed(run([program, "blur", "disk/A.png", "disk/a.png"]), "input under another name", "is the same file as",
                 status=2)
    check_failed(run([program, "--in-place", "blur", "disk/A.png", "disk/a.png"]), "in place under two names",
                 "filtered twice", status=2)
    os.mkdir("in")
    write("in/A.png", picture(9, 7, 3, 1))
    write("disk/a.png", picture(9, 7, 3, 2))
    check_failed(run([program, "--compare", "disk", "in", "--update", "--delete"]), "update under another name",
                 "exists under another name", status=2)
    check(read("disk/a.png") == picture(9, 7, 3, 2), "the update changed a file under another name")


def probe(_):
    check(prepare() is not None, "no file system that ignores case can be mounted")


def unmounted(test):
    """The test, after which nothing is mounted: the process behind lowntfs-3g would stay."""
    def run_test(program):
        try:
            test(program)
        finally:
            subprocess.run(["sh", "-c", "umount disk; umount top"], stderr=subprocess.DEVNULL, check=False)
    return run_test


if len(sys.argv) == 2:
    for flags in (["-m"], ["-rm"]):
        inner = ["unshare", *flags, sys.executable, *sys.argv]
        if shutil.which("unshare") and run([*inner, "probe"]).status == 0:
            os.execvp("unshare", [*inner, "mounting"])
    skip("no file system that ignores case can be mounted")
faults.main([unmounted(probe if sys.argv[2] == "probe" else test_names)])
