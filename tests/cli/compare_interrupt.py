#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Interrupt a comparison of folders, and an --update, at many moments: compare_interrupt.py GPUCONV.

A comparison leaves whole pictures of differences only, and both reports or none. An update leaves each expected file
as it was or as it shall be, and prints exactly what it did. The exit status is 128 plus the number of the signal, and
the last line counts what was done. After SIGKILL the files are whole too."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run_and_signal, temporary_folder  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
ROUNDS = 12  # for each signal
PAIRS = 40
moments = random.Random(1)
TEMPORARY = ".gpuconv-"  # left by SIGKILL where the file system has no O_TMPFILE


def contents(folder):
    """{name: bytes} of the files in a folder, which need not exist."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*")}


def read_report(path):
    """A report without the times, which change."""
    return re.sub(rb' time="[0-9.]+"', b"", pathlib.Path(path).read_bytes())


def changes(folder):
    """The times of the last changes of its files."""
    return [os.stat(f"{folder}/{i:02}.png").st_mtime_ns for i in range(PAIRS)]


def make_folders(sides):
    """Two folders of pairs that differ in every pixel."""
    for side, level in sides.items():
        os.mkdir(side)
        for i in range(PAIRS):
            rows = bytes((level + x * i) % 256 for x in range(3 * 160 * 120))
            pathlib.Path(side, f"{i:02}.png").write_bytes(png(160, 120, 3, 8, unfiltered(rows, 480), level=1))


def interrupt(command, seconds, number, has_reached):
    """Run and interrupt within SECONDS after HAS_REACHED is true. Returns the exit status, the lines that were printed,
    and the last line of errors."""
    with tempfile.TemporaryFile("w+") as answer, tempfile.TemporaryFile("w+") as said:
        status = run_and_signal(command, moments.random() * seconds, number, has_reached, stdout=answer, stderr=said)
        answer.seek(0)
        said.seek(0)
        return status, answer.read().splitlines(), said.read().splitlines()[-1:]


def check_status(status, number, natural, last, line):
    """The number that the last LINE counts, or None where the program ended in another way."""
    if number == signal.SIGKILL or status in (natural, -number):  # the signal came before the work, or after it
        if status not in (natural, -number):
            sys.exit(f"{number.name}: exit status {status}")
        return None
    match = re.fullmatch(line, last[0]) if last else None
    if status != 128 + number or match is None:
        sys.exit(f"{number.name}: exit status {status}, last line {last}")
    return int(match[1])


def check_compare(program):
    """Returns in how many runs a part of the pictures was written."""
    command = [program, "--compare", "e", "a", "diff", "--report", "r.jsonl", "--junit", "j.xml", "-j2"]
    start = time.monotonic()
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    seconds = time.monotonic() - start
    whole, reports = contents("diff"), [read_report(name) for name in ("r.jsonl", "j.xml")]
    assert len(whole) == PAIRS
    partly = 0
    for number in SIGNALS:
        for i in range(ROUNDS):
            shutil.rmtree("diff", ignore_errors=True)
            for name in ("r.jsonl", "j.xml"):
                pathlib.Path(name).unlink(missing_ok=True)
            status, printed, last = interrupt(command, seconds / ROUNDS, number,
                                              lambda: len(list(pathlib.Path("diff").glob("*"))) >= i * PAIRS // ROUNDS)
            count = check_status(status, number, 1, last, rf"gpuconv: interrupted: (\d+) of {PAIRS} pairs compared; "
                                                          "nothing was reported")
            left = contents("diff")
            if number == signal.SIGKILL:
                left = {name: data for name, data in left.items() if not name.startswith(TEMPORARY)}
            if not left.items() <= whole.items():
                sys.exit(f"{number.name}: not all of {sorted(left)} are whole")
            lines, page = (read_report(name) if os.path.exists(name) else b"" for name in ("r.jsonl", "j.xml"))
            if not reports[0].startswith(lines) or lines and not lines.endswith(b"\n") or page not in (b"", reports[1]):
                sys.exit(f"{number.name}: a report is not whole")
            if count is not None and (printed or lines or page or not 0 <= count <= len(left) <= count + 2):
                sys.exit(f"{number.name}: {count} of {len(left)} pictures, {len(printed)} lines")
            if status == 1 and (printed, lines, page, len(left)) != (answer, *reports, PAIRS):
                sys.exit(f"{number.name}: the exit status is 1, and something is missing")
            partly += status != 1 and 0 < len(left) < PAIRS
    return partly


def check_update(program):
    """Returns in how many runs a part of the files was updated."""
    old, new = contents("e"), contents("a")
    command = [program, "--compare", "work", "a", "--update"]
    shutil.copytree("e", "work")
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    if contents("work") != new:
        sys.exit("an update left something else")
    partly = 0
    for number in SIGNALS:
        for i in range(ROUNDS):
            shutil.rmtree("work")
            shutil.copytree("e", "work")
            before, wanted = changes("work"), i * PAIRS // ROUNDS
            status, printed, last = interrupt(command, 0, number,
                                              lambda: sum(map(int.__ne__, before, changes("work"))) >= wanted)
            count = check_status(status, number, 0, last, rf"gpuconv: interrupted: (\d+) of {PAIRS} pairs (?:updated; "
                                                          "run it again for the others|compared; nothing was reported)")
            left = contents("work")
            if number == signal.SIGKILL:
                left = {name: data for name, data in left.items() if not name.startswith(TEMPORARY)}
            if left.keys() != old.keys() or any(data not in (old[name], new[name]) for name, data in left.items()):
                sys.exit(f"{number.name}: a file is neither as it was nor as it shall be")
            done = sorted(name for name in left if left[name] == new[name])
            said = sorted(line.split()[1] for line in printed if line.startswith("replaced"))
            if number != signal.SIGKILL and done != said:
                sys.exit(f"{number.name}: updated {done}, said {said}")
            if count is not None and "updated" in last[0] and count != len(done):
                sys.exit(f"{number.name}: {len(done)} files were updated, and the last line is {last}")
            if status == 0 and len(done) != PAIRS:
                sys.exit(f"{number.name}: the exit status is 0, and only {len(done)} files were updated")
            partly += status == 128 + number and 0 < len(done) < PAIRS
    return partly


def main():
    program = os.path.abspath(sys.argv[1])
    with temporary_folder():
        make_folders({"e": 0, "a": 90})
        partly = check_compare(program), check_update(program)
    if 0 in partly:
        sys.exit(f"no run was interrupted in the middle ({partly}): it ends too soon to test anything")
    print(f"{partly} runs were interrupted in the middle")


main()
