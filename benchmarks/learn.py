#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build and run the programs of docs/learn/, and what its pages make of them:

    learn.py [--cc CC] [--nvcc NVCC]         once each: the test. Without a GPU it builds the programs, but not what becomes
                                             of them, and its exit status is 77
    learn.py --json FILE [--ncu] [--runs 5]  alternately: writes the medians, and with --ncu what the profiler counts
    learn.py --json FILE --only NAME...      the same for these programs; what FILE says of others stays

A program is built by the command in its head. A change in a page is a block `diff` without numbers: a line --- with the
file's name, then hunks. A program checks itself, and prints its times and OK. The programs of docs/learn/wrong.md must be
wrong before their change, and compute-sanitizer, if it is installed, must find what the page says. If times are written,
the loop also runs with the GPU's size of image, and the programs float-*.cu also with code for this GPU. Without NVCC,
only the loop runs."""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import skip  # noqa: E402

LEARN = ROOT / "docs/learn"
ARGUMENTS = ["in.pgm", "out.pgm"]  # of programs that read a picture
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = ["launch__registers_per_thread", "smsp__inst_executed.sum",
           "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "l1tex__throughput.avg.pct_of_peak_sustained_active", "lts__throughput.avg.pct_of_peak_sustained_elapsed",
           "dram__throughput.avg.pct_of_peak_sustained_elapsed",
           "sm__warps_active.avg.pct_of_peak_sustained_active"] + [
               STALL.format(name) for name in (
                   "barrier", "branch_resolving", "dispatch_stall", "imc_miss", "lg_throttle", "long_scoreboard",
                   "math_pipe_throttle", "mio_throttle", "no_instruction", "not_selected", "short_scoreboard", "wait")]


def changes(text):
    """The blocks of a page: a file's name, and pairs of old and new text."""
    for block in re.findall(r"```diff\n--- (.*?)```", text, re.S):
        name, *lines = block.splitlines()
        hunks = [hunk.splitlines() for hunk in "\n".join(lines).split("\n@@\n")]
        yield name, [["\n".join(line[1:] for line in hunk if line[:1] != sign) for sign in "+-"] for hunk in hunks]


def sources():
    """Programs by name and by the number of the change; 0 is as in the book."""
    found = {(str(path.relative_to(LEARN)), 0): path.read_text() for path in sorted([*LEARN.glob("*.c"), *LEARN.rglob("*.cu")])}
    for name, pairs in changes((LEARN / "answers.md").read_text() + (LEARN / "wrong.md").read_text()):
        text = found[name, 0]
        for old, new in pairs:
            assert text.count(old) == 1, f"{name} has this {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        found[name, sum(other == name for other, _ in found)] = text
    return found


def is_wrong(key):
    return key[0].startswith("wrong/") and key[1] == 0


def picture(width, height):
    """A PGM of random samples."""
    return b"P5 %d %d 255\n" % (width, height) + random.Random(71).randbytes(width * height)


def build(key, text, folder, compilers):
    """Run the command in the program's head, in a folder where the source and the headers have their names. Returns the program."""
    (name, _), place = key, folder / "-".join(map(str, key))
    shutil.copytree(LEARN, place / "docs/learn")
    (place / "docs/learn" / name).write_text(text)
    (place / ARGUMENTS[0]).write_bytes(picture(250, 165))
    command, program = re.search(r"^ \*     (n?v?cc .*) && \./(\S+)(?: \w+\.pgm)* \*/$", text, re.M).groups()
    compiler, words = command.split(" ", 1)
    if compilers[compiler] is not None:
        subprocess.run(f"{compilers[compiler]} {words}", shell=True, cwd=place, check=True)
        return key, place / program
    return key, None


def run(key, program):
    """What it says, as times by their names. None without a GPU."""
    done = subprocess.run([program, *ARGUMENTS], cwd=program.parent, capture_output=True, text=True)
    if done.returncode == 1 and done.stdout.startswith("no GPU: "):
        return None
    assert done.returncode == is_wrong(key) and (is_wrong(key) or done.stdout.endswith("OK\n")), (program, done)
    return {what: float(ms) for what, ms in re.findall(r"^(?:(.*): )?([\d.]+) ms$", done.stdout, re.M)}


def check_tools(item):
    """Hold what the table of wrong.md says of a program against compute-sanitizer."""
    (name, _), program = item
    words = re.search(rf"`{name[6:]}` \| (\w+) \| (\w+) \| (\w+) ", (LEARN / "wrong.md").read_text()).groups()
    for tool, word in zip(["memcheck", "racecheck", "initcheck"], words):
        done = subprocess.run(["compute-sanitizer", "--tool", tool, program, *ARGUMENTS], cwd=program.parent,
                              capture_output=True, text=True)
        count = re.search(r" SUMMARY: (\d+) ", done.stdout)
        print(name, tool, count and count[0], flush=True)
        assert count and (count[1] == "0") == (word == "no"), (tool, word, done)


def profile(program, size=None):
    """What ncu counts for the second launch of the kernel, or of the kernel for taps of this size."""
    kernel = ["--kernel-name-base", "demangled", "--kernel-name", rf"regex:<(\(int\))?{size}>"] if size else []
    done = subprocess.run(["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", *kernel,
                           "--launch-skip", "1", "--launch-count", "1", "--metrics", ",".join(METRICS), program],
                          check=True, capture_output=True, text=True)
    names, _, values = csv.reader(line for line in done.stdout.splitlines() if line.startswith('"'))
    row = dict(zip(names, values))
    return {name: float(row[name].replace(",", "")) for name in METRICS}


def profiles_of(built):
    """The profiles of all programs but threads.cu. Programs with two kernels have one for each, of the GPU's own code."""
    found = {}
    for (name, answer), program in built.items():
        if name.startswith("float-"):
            sizes = [9, 15] if answer == "native" else []
            found |= {f"{name} {size}": profile(program, size) for size in sizes}
        elif name.endswith(".cu") and name != "threads.cu":
            found[f"{name} {answer}"] = profile(program)
    return found


def word(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def save(path, rows, profiles):
    """A row and a profile a line. What an earlier file says of other programs stays."""
    if path.exists():
        old, names = json.loads(path.read_text()), {row["program"] for row in rows}
        rows = [row for row in old["rows"] if row["program"] not in names] + rows
        profiles = {**old["profile"], **profiles}
    model = next(line for line in word("lscpu") if line.startswith("Model name"))
    gpu, driver = word("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")[0].split(", ")
    facts = {"gpu": gpu, "driver": driver, "cpu": model.split(":")[1].strip(), "threads": os.cpu_count(),
             "nvcc": word("nvcc", "--version")[-2].split(", ")[-1], "cc": word("cc", "--version")[0]}
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    parts.append('"rows": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]")
    parts.append('"profile": {\n  ' + ",\n  ".join(f"{json.dumps(name)}: {json.dumps(profiles[name])}"
                                                   for name in profiles) + "\n }")
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":", maxsplit=1)[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--ncu", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    texts = sources()
    if options.json:
        texts = {key: text for key, text in texts.items() if "/" not in key[0]}
        texts["loop.c", 16384] = texts["loop.c", 0].replace("side = 4096", "side = 16384")
        texts |= {(name, "native"): text.replace("-arch=sm_75", "-arch=native") for (name, answer), text in texts.items()
                  if name.startswith("float-") and answer == 0}
    if subprocess.run("nvidia-smi -L", shell=True, capture_output=True).returncode != 0:
        texts = {key: text for key, text in texts.items() if key[1] == 0 or key[0] == "loop.c"}
    if options.only:
        texts = {key: text for key, text in texts.items() if key[0] in options.only}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compilers = {"cc": options.cc, "nvcc": options.nvcc or None}
        built = dict(pool.map(lambda item: build(*item, pathlib.Path(folder), compilers), texts.items()))
        built = {key: program for key, program in built.items() if program}
        times, has_gpu = {}, True
        for _ in range(options.runs if options.json else 1):
            for key, program in built.items():
                said = run(key, program) if key != ("loop.c", 16384) or key not in times else {}
                has_gpu = has_gpu and said is not None
                for what, ms in (said or {}).items():
                    times.setdefault(key, {}).setdefault(what, []).append(ms)
                print(*key, said, flush=True)
        if options.json:
            rows = [{"program": name, "date": time.strftime("%Y-%m-%d"), "answer": answer, "what": what,
                     "ms": statistics.median(ms), "runs": ms}
                    for (name, answer), said in times.items() for what, ms in said.items()]
            save(options.json, rows, profiles_of(built) if options.ncu else {})
        if has_gpu and not options.json and shutil.which("compute-sanitizer"):
            list(pool.map(check_tools, filter(lambda item: is_wrong(item[0]), built.items())))
        if not has_gpu:
            skip("there is no GPU; the programs were built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
