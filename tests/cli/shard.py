#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A batch in shards, started by a real engine: shard.py GPUCONV hand|mpirun|parallel|parallel-auto.

Three processes work on one folder. Together they must leave the bytes that one process leaves, and their reports must
name each input exactly once. Skipped (exit status 77) if the engine is not installed."""
import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run, skip  # noqa: E402

SHARDS = 3
HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = '"$GPUCONV" --backend cpu -q blur photos -o'

# The commands that a user types, plus one report for each process.
ENGINES = {
    "hand": "for i in 1 2 3; do " + BATCH + " out --shard $i/3 --report report.$i || exit 1; done",
    "mpirun": "mpirun --oversubscribe -n 3 sh -c '" + BATCH +
              " out --shard auto --report report.$OMPI_COMM_WORLD_RANK'",
    "parallel": "seq 3 | parallel -j 3 --halt now,fail=1 '" + BATCH + " out --shard {#}/{= $_ = total_jobs() =}"
                " --report report.{#}'",
    "parallel-auto": "seq 3 | GPUCONV_SHARDS=3 parallel -N0 -j 3 --halt now,fail=1 '" + BATCH +
                     " out --shard auto --report report.$PARALLEL_SEQ'",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("engine", choices=ENGINES)
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    tool = arguments.engine.split("-")[0]
    if tool != "hand" and not shutil.which(tool):
        skip(f"{tool} is not installed")
    if "--shard " not in run(program, "--help").stdout:
        skip("this gpuconv has no --shard")

    # Hide the variables of an engine that may be running the tests.
    values = {name: value for name, value in os.environ.items()
              if not name.startswith(("SLURM_", "OMPI_", "PMI", "PARALLEL", "JOB_COMPLETION", "GPUCONV_"))}
    values.update(GPUCONV=program)
    if os.geteuid() == 0:  # mpirun refuses root, and a container often has no other user
        values.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory(prefix="gpuconv-shard-") as folder:
        values["HOME"] = folder
        os.mkdir(os.path.join(folder, "photos"))
        for i in range(20):
            with open(os.path.join(folder, "photos", f"{i}.png"), "wb") as file:
                subprocess.run([sys.executable, os.path.join(HERE, "png.py"), str(7 + 5 * i), "9", "3"], stdout=file,
                               check=True)
        for command in (BATCH + " whole", ENGINES[arguments.engine]):
            ran = subprocess.run(["sh", "-c", command], cwd=folder, env=values, stdin=subprocess.DEVNULL, timeout=120)
            if ran.returncode != 0:
                print(f"{command}: exit status {ran.returncode}")
                return 1
        names = sorted(os.listdir(os.path.join(folder, "photos")))
        out = os.path.join(folder, "out")
        if sorted(os.listdir(out)) != names:
            print(f"outputs: {sorted(os.listdir(out))}")
            return 1
        different = [name for name in names
                     if not filecmp.cmp(os.path.join(folder, "whole", name), os.path.join(out, name), shallow=False)]
        reports = [name for name in os.listdir(folder) if name.startswith("report.")]
        lines = []
        for report in reports:
            with open(os.path.join(folder, report), encoding="utf-8") as file:
                lines += [os.path.basename(json.loads(line)["input"]) for line in file]
    if different or sorted(lines) != names or len(reports) != SHARDS:
        print(f"different: {different}\nreports: {reports}\ntheir inputs: {sorted(lines)}")
        return 1
    print(f"{len(names)} files in {SHARDS} shards by {arguments.engine}: each once, with the bytes of one process")
    return 0


sys.exit(main())
