#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kill a batch at random moments: kill.py GPUCONV FAILING.

After SIGKILL each output is whole or missing, each original is unchanged or replaced by its result, and any other file
has the documented name of a temporary file. --skip-existing then completes the batch: the outputs equal those of an
undisturbed run, and the temporary files stay. In every other round FAILING (failing.c) simulates a file system without
unnamed files."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import faults
from faults import FULL, check, fail, run, tree

FILES = 200
ROUNDS = 150 if FULL else 16


def kill(command, values, delay):
    process = subprocess.Popen(command, env=values, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    return process.wait()


def temporary(name):
    return faults.TEMPORARY.fullmatch(os.path.basename(name))


def test(program):
    failing = faults.loadable(library)
    os.mkdir("in")
    for index in range(FILES):
        faults.write(f"in/{index}.png", faults.picture(40 + index % 50, 30, 3, index))
    command = [program, "-q", "-j3", "gaussian:2,sharpen", "in", "-o", "out", "--skip-existing"]
    start = time.monotonic()
    check(run(command).status == 0, "the undisturbed batch failed")
    seconds = time.monotonic() - start
    want = tree("out")
    check(len(want) == FILES, f"the undisturbed batch wrote {len(want)} files")
    originals = tree("in")

    moments = random.Random(20)
    killed = partly = left_over = 0
    for number in range(ROUNDS):
        named, in_place = number % 2 == 1, number % 4 >= 2
        values = faults.environment(LD_PRELOAD=failing, GPUCONV_NAMED="1") if named else faults.environment()
        what = f"round {number}{', named' if named else ''}{', in place' if in_place else ''}"
        shutil.rmtree("out")
        if in_place:
            shutil.copytree("in", "out")
        else:
            os.mkdir("out")
        this = command[:4] + ["--in-place", "out"] if in_place else command
        if kill(this, values, moments.random() * seconds) == -signal.SIGKILL:
            killed += 1
        else:
            seconds *= 0.8  # the batch had ended: the machine is less busy than before
        files = tree("out")
        done = 0
        for name, data in files.items():
            if temporary(name):
                left_over += 1
            elif not check(data == want.get(name) or (in_place and data == originals.get(name)), f"{what}: {name}"):
                continue
            done += data == want.get(name)
        partly += 0 < done < FILES
        if in_place:
            check(set(files) >= set(want), f"{what}: an original is gone")
            continue
        ended = run(command, values)
        files = {name: data for name, data in files.items() if temporary(name)}
        check(ended.status == 0 and ended.err == b"", f"{what}: the next run: {ended.status}, {ended.lines()}")
        check(tree("out") == {**want, **files}, f"{what}: the next run did not complete it")
    if partly < ROUNDS // 4:
        fail(f"only {partly} of {ROUNDS} batches were killed at work")
    print(f"{killed} of {ROUNDS} killed, {partly} of them at work; {left_over} temporary files were left")


library = os.path.abspath(sys.argv[2])
faults.main([test])
