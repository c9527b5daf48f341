#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A GPU that fails at each call in turn: gpu.py GPUCONV_STUB FAILING|--quick. The GPU is tests/lib/stub_device.c.
FAILING is the library that makes calls for memory fail, failing.c. --quick tries fewer calls, for sanitizers.

One image with --backend cuda: the failure is an error, and there is no output. With the automatic choice, and in every
batch: the CPU takes over, and the bytes are the CPU's."""
import os
import shutil
import sys

import faults
from faults import FULL, check, check_failed, run

FAILURES = ("open:1", "launch:2", "elapsed:1")
MORE = ("allocate:1", "allocate:3", "split:1", "prepare:1", "launch:1", "merge:1", "mark:1", "wait:1",
        "mark:6", "elapsed:5")
QUICK = "--quick" in sys.argv
FAILING = os.path.abspath(sys.argv[2])
MOST = 8 if QUICK else 24  # calls that fail in a batch; without --quick and GPUCONV_FAULTS=full


def attempt(program, fail, *arguments):
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("out")
    ended = run([program, *arguments], faults.environment(GPUCONV_STUB_FAIL=fail))
    return ended, faults.tree("out")


def insist(program, *command):
    """One image, --backend cuda: each call fails, once or from then on."""
    command = ("--backend", "cuda", *command)
    want, want_files = attempt(program, "", *command)
    check(want.status == 0, f"no failure: {want.lines()}")
    for once in ("", "!"):
        number = 1
        while True:
            ended, files = attempt(program, f"any:{number}{once}", *command)
            if ended.status == 0 or number > 99:
                break
            check_failed(ended, f"--backend cuda, call {number}{once}", "the GPU failed in ")
            check(files == {}, f"--backend cuda, call {number}{once}: left {list(files)}")
            number += 1
        check(10 < number < 99 and ended.err == b"" and files == want_files, f"--backend cuda: {number - 1} calls fail")


def test_insisted(program):
    faults.write("in.png", faults.picture(40, 30, 4))
    check(run([program, "identity", "in.png", "in.pam"]).status == 0, "no PAM was written")
    for source, output in (("in.png", "out/o.png"), ("in.pam", "out/o.pam")):  # on the GPU, and moved there and back
        insist(program, "--alpha", "premultiply", "blur,sharpen", source, output)


def test_insisted_jpeg(program):
    """The GPU decodes and encodes."""
    faults.write("in.png", faults.picture(40, 30, 3))
    check(run([program, "identity", "in.png", "in.jpg"]).status == 0, "no JPEG was written")
    insist(program, "blur,sharpen", "in.jpg", "out/o.jpg")


def test_open_choice(program):
    """One image, --backend auto, with so much work that the GPU is chosen. Under sanitizers, each run takes seconds, so
    fewer calls fail: those of --backend cuda fail in turn."""
    faults.write("in.png", faults.picture(480, 480, 3))
    check(run([program, "identity", "in.png", "in.pam"]).status == 0, "no PAM was written")
    check_open_choice(program, "in.png", "out/o.png", ("png:6",) if QUICK else ("png:1", "png:6"))
    check_open_choice(program, "in.pam", "out/o.ppm", ("upload:1",) if QUICK else ("upload:1", "download:1"))
    if not QUICK:  # 16 bits are twice the work
        check_open_choice(program, "in.png", "out/o.png", ("launch:1!", "png:6!"), "--linear", "--depth", "16")


def check_open_choice(program, source, output, ends, *options):
    """ENDS are the failures of the first call and the last one that only these files need."""
    command = (*options, "--threads", "1", "log:15,log:15,log:15", source)
    reference = "-".join(("cpu", *options)) + ".png"
    if not os.path.exists(reference):
        check(run([program, "--backend", "cpu", *command, reference]).status == 0, "--backend cpu wrote nothing")
    check(run([program, "identity", reference, os.path.basename(output)]).status == 0, f"no {output} was written")
    with open(os.path.basename(output), "rb") as file:
        want = {os.path.basename(output): file.read()}
    for fail in ends + (() if QUICK else FAILURES + (MORE if FULL else ())):
        ended, files = attempt(program, fail, "-v", *command, output)
        lines = ended.lines()
        check(ended.status == 0 and files == want, f"--backend auto, {fail}: exit status {ended.status}, {lines}")
        kind = fail.split(":")[0]  # a GPU that does not open is never chosen, and only --verbose reports it
        told = [] if kind == "open" else [f"gpuconv: warning: the GPU failed in {kind}; the CPU continues"]
        check([line for line in lines if "warning" in line] == told, f"--backend auto, {fail}: said {lines}")
        check((b"backend   cuda" in ended.err) == (kind != "open"), f"--backend auto, {fail}: chose another: {lines}")


def test_batch(program):
    """Ten images on two workers, --backend cuda: calls throughout the batch fail, once or from then on."""
    os.mkdir("in")
    for index in range(10):
        faults.write(f"in/{index}.png", faults.picture(30 + index, 20, 1 + index % 4, index))
        other = ("png", "jpg", "pam")[index % 3]
        if other != "png":
            check(run([program, "identity", f"in/{index}.png", f"in/{index}.{other}"]).status == 0, f"no {other}")
            os.remove(f"in/{index}.png")
    command = ("-j2", "blur,sharpen", "in", "-o", "out", "--report", "report")
    _, want = attempt(program, "", "-q", "--backend", "cpu", *command)
    check(len(want) == 10, "--backend cpu wrote no ten files")
    calls = 300  # about as many as the batch makes
    for number in range(1, calls, 1 if FULL else calls // MOST):
        for once in ("", "!"):
            ended, files = attempt(program, f"any:{number}{once}", "--backend", "cuda", *command)
            check(ended.status == 0 and files == want, f"batch, call {number}{once}: {ended.status}, {ended.lines()}")
            warnings = [line for line in ended.lines() if "the GPU failed in" in line]
            check(len(warnings) <= 1, f"batch, call {number}{once}: {len(warnings)} warnings")


def test_larger(program):
    """One image with a larger result: the last calls for memory fail, each in turn."""
    if QUICK:
        return
    library = faults.loadable(FAILING)
    faults.write("in.png", faults.picture(40, 30, 3))
    check(run([program, "identity", "in.png", "in.ppm"]).status == 0, "no PPM was written")
    command = ("--threads", "1", "--backend", "cuda", "resize:400x:enlarge", "in.ppm", "out.ppm")
    reader, writer = os.pipe()
    run([program, *command], faults.environment(LD_PRELOAD=library, GPUCONV_FAIL="memory:0",
                                                GPUCONV_FAIL_COUNT=str(writer)), pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader) as file:
        count = int(file.read())
    for number in range(count - 30, count + 1):
        ended = run([program, *command], faults.environment(LD_PRELOAD=library, GPUCONV_FAIL=f"memory:{number}"))
        if ended.status != 0:
            check_failed(ended, f"larger result, call {number}", "memory")


faults.main([test_insisted, test_insisted_jpeg, test_open_choice, test_batch, test_larger])
