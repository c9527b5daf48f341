#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs in place that go on after they were ended: journal.py GPUCONV FAILING.

A run ends at each call in turn that changes a file, as by SIGKILL and as by a power cut; and several workers are ended
by signals at random moments. The same line again must do the rest: each file is filtered exactly once. FAILING is the
library of failing.c."""
import fcntl
import hashlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

import faults
from faults import FULL, check, fail, run, tree

FILES = 4
MANY = 40
ROUNDS = 60 if FULL else 12


def make(folder, count, side):
    """A folder of pictures, and what they must become."""
    os.mkdir(folder)
    for index in range(count):
        faults.write(f"{folder}/{index}.png", faults.picture(side, 30 + index, 3, index))
    check(run([program, "-q", "sharpen", folder, "-o", f"{folder}-want"]).status == 0, "no filtered pictures")
    return tree(folder), tree(f"{folder}-want")


def reset(originals):
    for name in os.listdir("work") if os.path.isdir("work") else ():
        os.remove(f"work/{name}")
    os.makedirs("work", exist_ok=True)
    for name, data in originals.items():
        faults.write(f"work/{name}", data)
    if os.path.exists("r.jsonl"):
        os.remove("r.jsonl")


def entries():
    """The lines of the report that are not cut off."""
    with open("r.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("}\n")]


def pictures():
    return {name: data for name, data in tree("work").items() if not faults.TEMPORARY.fullmatch(name)}


def check_rest(command, originals, want, what):
    """The command does what is left when it is run again, and nothing when it is run a third time."""
    before = pictures()
    check(all(before[name] in (originals[name], want[name]) for name in want), f"{what}: a picture is neither old nor new")
    done = sum(before[name] == want[name] for name in want)
    ended = run(command)
    check(ended.status == 0 and ended.err == b"", f"{what}: the next run: {ended.status}, {ended.lines()}")
    check(pictures() == want, f"{what}: the next run did not filter each file once")
    last = entries()[-len(want):] if ended.status == 0 else []
    check(sum(entry["status"] == "skipped" for entry in entries()) == done, f"{what}: {done} files were done")
    for entry in last:
        if entry["status"] == "done":
            data = want[os.path.basename(entry["input"])]
            check((entry["sha256"], entry["output_bytes"]) == (hashlib.sha256(data).hexdigest(), len(data)), entry)
    ended = run(command)
    check(ended.status == 0 and pictures() == want, f"{what}: the third run changed a file")
    return done


def test_every_call(_):
    originals, want = make("few", FILES, 20)
    command = [program, "-q", "-j1", "--in-place", "--report", "r.jsonl", "sharpen", "work"]
    failing = faults.loadable(library)
    for more in ({}, {"GPUCONV_POWER": "1"}, {"GPUCONV_NAMED": "1"}):
        counts = set()
        for number in range(1, 99):
            reset(originals)
            what = f"call {number} {more}"
            ended = run(command, faults.environment(LD_PRELOAD=failing, GPUCONV_KILL=str(number), **more))
            if ended.status == 0:
                break
            check(ended.status == -signal.SIGKILL, f"{what}: {ended.status}, {ended.lines()}")
            counts.add(check_rest(command, originals, want, what))
        check(counts == set(range(FILES + 1)) and number > 6 * FILES, f"{more}: {number} calls, {counts} files done")


def test_signals(_):
    originals, want = make("many", MANY, 200)
    command = [program, "-j3", "--in-place", "--report", "r.jsonl", "--threads", "1", "sharpen", "work"]
    quiet = command[:1] + ["-q"] + command[1:]
    reset(originals)
    start = time.monotonic()
    run(command)
    seconds = time.monotonic() - start
    moments = random.Random(3)
    partly = 0
    for index in range(ROUNDS):
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[index % 3]
        reset(originals)
        process = subprocess.Popen(command, env=faults.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(moments.random() * seconds)
        process.send_signal(number)
        said = process.communicate()[1].decode().splitlines()[-1:]
        what = f"round {index}, {number.name}"
        if not os.path.exists("r.jsonl"):
            faults.write("r.jsonl", b"")
        done = check_rest(quiet, originals, want, what)
        partly += 0 < done < MANY
        if process.returncode == 128 + number:
            text = f"gpuconv: interrupted: {done} of {MANY} files done; run the same line again to continue"
            check(said == [text], f"{what}: {said}")
        elif process.returncode == 0:
            seconds *= 0.8
    if partly < ROUNDS // 4:
        fail(f"only {partly} of {ROUNDS} runs were ended at work")


def test_two_runs(_):
    """Two runs with one journal: the second ends at once. A lock ends with its process, also by SIGKILL."""
    originals, want = make("both", MANY, 200)
    for _ in range(4):
        reset(originals)
        command = [program, "-q", "-j2", "--in-place", "--report", "r.jsonl", "sharpen", "work"]
        runs = []
        for _ in range(2):
            runs.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=faults.environment()))
            while runs[0].poll() is None and pictures() == originals:  # the second begins when the first has done some
                time.sleep(0.001)
        said = [process.communicate()[1] for process in runs]
        statuses = sorted(process.returncode for process in runs)
        check(statuses in ([0, 0], [0, 75]), f"two runs: {statuses}, {said}")
        check(pictures() == want, "two runs: a file was not filtered once")
        check(all(text in (b"", b"gpuconv: r.jsonl: is the report of an --in-place run that has not ended; wait for its "
                           b"end, and run again\n") for text in said), said)
    reset(originals)
    held = open("r.jsonl", "wb")  # as a run holds it
    fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    ended = run(command)
    check(ended.status == 75 and pictures() == originals, f"a locked journal: {ended.status}, {ended.lines()}")
    held.close()
    ended = run(command)
    check(ended.status == 0 and pictures() == want, f"the lock has ended: {ended.status}, {ended.lines()}")


def test_without_report(_):
    """There is no journal, and the last line says so."""
    originals, want = make("more", MANY, 400)
    for index in range(9):
        reset(originals)
        process = subprocess.Popen([program, "--in-place", "--threads", "1", "sharpen", "work"], env=faults.environment(),
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and all(faults.read(f"work/{name}") == originals[name] for name in originals):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1].decode().splitlines()[-1]
        if process.returncode == 128 + signal.SIGINT:
            check(re.fullmatch(r"gpuconv: interrupted: \d+ of 40 files done; the same line would filter these files again: "
                               "give only the other files, and --report FILE next time", said), said)
            return
    fail(f"no run was interrupted; the last one did {sum(pictures()[name] == want[name] for name in want)} files")


program, library = map(os.path.abspath, sys.argv[1:])
faults.main([test_every_call, test_signals, test_two_runs, test_without_report])
