#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Interrupt gpuconv at many moments of a run: interrupt.py GPUCONV INPUT FOLDER.

Each time FOLDER must hold nothing or the whole output. A run that ended by itself must have left the output.

First the threads are checked. A signal goes to any thread that does not block it. So the worker threads must block
signals, or the main thread cannot delay them while a temporary file exists. Chance hardly ever hits that moment."""
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run_and_signal  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ROUNDS = 12  # for each signal; enough to hit each stage of a run


def open_threads(process):
    """The number of threads of a process, and how many of them, besides the main one, do not block the signals."""
    wanted = sum(1 << (number - 1) for number in SIGNALS)
    threads = unblocked = 0
    for thread in os.listdir(f"/proc/{process.pid}/task"):
        with open(f"/proc/{process.pid}/task/{thread}/status", encoding="ascii") as file:
            blocked = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
        threads += 1
        unblocked += int(thread) != process.pid and blocked & wanted != wanted
    return threads, unblocked


def check_threads(program, source, folder, variant):
    """The worker threads of a run must soon block the signals. The run is long and gets killed."""
    filters = ",".join(["gaussian:15"] * 100)
    process = subprocess.Popen([program, "--variant", variant, "--threads", "3", filters, source,
                                os.path.join(folder, "out.png")])
    end = time.monotonic() + 60
    threads = unblocked = most = seen = 0
    while seen < 5 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
        try:
            threads, unblocked = open_threads(process)
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue  # a thread, or the process, has just ended
        most = max(most, threads)
        # More than once, because a thread starts with all signals blocked.
        seen = seen + 1 if threads > 1 and unblocked == 0 else 0
    process.kill()
    process.wait()
    if most > 1 and seen < 5:
        sys.exit(f"{variant}: {unblocked} of {threads} threads leave the signals unblocked")


def duration(command):
    start = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - start


def main():
    program, source, folder = sys.argv[1:]
    target = os.path.join(folder, "out.png")
    for variant in ("reference", "cpu"):
        check_threads(program, source, folder, variant)
    command = [program, "--backend", "cpu", "gaussian:3", source, target]
    seconds = min(duration(command) for _ in range(3))
    with open(target, "rb") as file:
        whole = file.read()

    interrupted = 0
    for number in SIGNALS:
        for i in range(ROUNDS):
            if os.path.exists(target):
                os.remove(target)
            status = run_and_signal(command, seconds * (i + 0.5) / ROUNDS, number)
            left = os.listdir(folder)
            if left not in ([], ["out.png"]) or (status == 0 and not left):
                sys.exit(f"{number.name}, exit status {status}: left {left}")
            if status not in (0, -number):
                sys.exit(f"{number.name}: exit status {status}")
            if left:
                with open(target, "rb") as file:
                    if file.read() != whole:
                        sys.exit(f"{number.name}, exit status {status}: {target} is not whole")
            interrupted += status != 0
    if os.path.exists(target):
        os.remove(target)
    print("interrupted" if interrupted > 0 else "no run was interrupted: it ends too soon to test anything")


main()
