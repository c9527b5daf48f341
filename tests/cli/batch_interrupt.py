#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Interrupt a batch at many moments: batch_interrupt.py GPUCONV INPUTS OUTPUTS.

Each time OUTPUTS must hold whole files only, exactly those that the report calls done, and the exit status must be 128
plus the number of the signal; the last line counts them. Before and after the work the signal itself may end the
program. A signal that the parent ignores stays ignored. After SIGKILL all files are whole too, but the report may lack
one."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run_and_signal  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
ROUNDS = 12  # for each signal
JOBS = 3
stopped_files = set()


def names(folder):
    return os.listdir(folder) if os.path.isdir(folder) else []


def reported(path):
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text and not text.endswith("\n"):
        sys.exit("the report's last line is not whole")
    entries = [json.loads(line) for line in text.splitlines()]
    done = {os.path.basename(entry["input"]) for entry in entries if entry["status"] == "done"}
    stopped = [os.path.basename(entry["input"]) for entry in entries if entry["status"] == "failed"]
    if any((entry["class"], entry["retry"]) != ("interrupted", True) for entry in entries if entry["status"] == "failed"):
        sys.exit(f"a file failed: {entries}")
    if len(stopped) > JOBS or done & set(stopped) or len(done) + len(stopped) != len(entries):
        sys.exit(f"the report calls these done: {sorted(done)}, and these interrupted: {stopped}")
    stopped_files.update(stopped)
    return done


def main():
    program, inputs, outputs = sys.argv[1:]
    report = outputs + ".jsonl"
    command = [program, f"-j{JOBS}", "--variant", "reference", "--threads", "1", "--report", report, "box:2", inputs,
               "-o", outputs]
    start = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    whole = {}
    for name in names(outputs):
        with open(os.path.join(outputs, name), "rb") as file:
            whole[name] = file.read()

    job_seconds = seconds * JOBS / len(whole)
    moments = random.Random(1)
    partly = 0
    for number in SIGNALS:
        for i in range(ROUNDS):
            shutil.rmtree(outputs, ignore_errors=True)
            if os.path.exists(report):
                os.remove(report)
            with tempfile.TemporaryFile("w+") as said:
                status = run_and_signal(command, moments.random() * job_seconds, number,
                                        lambda: len(names(outputs)) >= i * len(whole) // ROUNDS, stderr=said)
                said.seek(0)
                last = said.read().splitlines()[-1:]
            left = set(names(outputs))
            killed = number == signal.SIGKILL
            allowed = {0, -number if killed else 128 + number}
            if len(left) in (0, len(whole)):  # the signal came before the work, or after it
                allowed.add(-number)
            if status not in allowed:
                sys.exit(f"{number.name}: exit status {status}")
            if killed:  # ended between naming a file and reporting it, or the file system has no O_TMPFILE
                left = {name for name in left if not name.startswith(".gpuconv-")}
            if left != reported(report) and not (killed and reported(report) <= left):
                sys.exit(f"{number.name}: outputs {sorted(left)}, report {sorted(reported(report))}")
            if status == 128 + number and last != [f"gpuconv: interrupted: {len(left)} of {len(whole)} files done; "
                                                   "give --skip-existing to continue"]:
                sys.exit(f"{number.name}: {len(left)} outputs, and the last line is {last}")
            for name in left:
                with open(os.path.join(outputs, name), "rb") as file:
                    if file.read() != whole[name]:
                        sys.exit(f"{number.name}: {name} is not whole")
            partly += status != 0 and 0 < len(left) < len(whole)

    for number in (signal.SIGHUP, signal.SIGINT):
        shutil.rmtree(outputs)
        if run_and_signal(command, 0, number, lambda: names(outputs), stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_IGN)) != 0:
            sys.exit(f"{number.name} was not ignored")
    shutil.rmtree(outputs)
    os.remove(report)
    if partly > 0 and not stopped_files:
        sys.exit("no report names an interrupted file")
    print("interrupted" if partly > 0 else "no batch was interrupted: it ends too soon to test anything")


main()
