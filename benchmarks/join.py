#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Join the results of several runs into one file. A later run's row replaces an earlier one.

    join.py bench RUN... > bench-h200.csv                   runs of gpuconv --bench --json, and earlier results
    join.py peers RUN... > peers-h200.csv                   runs of benchmarks/peers.py, and earlier results
    join.py lesson BENCH.json NCU.csv > lesson-h200.json    a run of gpuconv --bench --json, or an earlier result, and
                                                            what ncu --csv --page raw --print-units base says of
                                                            kernels

Runs of different cards are refused. Where a later run has another filter under a name, the rows of the earlier one go.
The first run's date, processor and peaks stay. A row without a time is dropped when a later run timed that peer and
case.
"""

import csv
import json
import re
import sys

import measurements


def rows_by(key, runs):
    rows = {}
    for run in runs:
        for row in run["rows"]:
            rows[tuple(row[k] for k in key)] = row
    return list(rows.values())


def join_bench(runs):
    first = runs[0]
    names = {run["device"]["name"] for run in runs}
    if len(names) > 1:
        raise SystemExit(f"these are runs of different cards: {', '.join(sorted(names))}; join runs of one")
    for run in runs:
        for name, peak in run["peaks"].items():  # that of a backend that was not asked for is not known
            first["peaks"][name] = first["peaks"].get(name) or peak
        for name, facts in run["filters"].items():
            if first["filters"].get(name, facts) != facts:
                for earlier in runs[:runs.index(run)]:
                    earlier["rows"] = [row for row in earlier["rows"] if row["filter"] != name]
            first["filters"][name] = facts
    first["rows"] = rows_by(("variant", "backend", "filter", "sample", "width", "height", "planes"), runs)
    return first


def join_peers(runs):
    first = runs[0]
    for run in runs[1:]:
        first["libraries"].update(run["libraries"])
    case = ("filter", "sample", "width", "height")
    rows = rows_by(("peer", "part") + case, runs)
    timed = {tuple(row[k] for k in case) + (row["peer"].split()[0].rstrip(","),)
             for row in rows if row["status"] == "ok"}
    first["rows"] = []
    for row in rows:
        if row["status"] != "ok" and tuple(row[k] for k in case) + (row["peer"].split()[0],) in timed:
            continue
        first["rows"].append(row)
    first["absent"] = {name: why for name, why in first["absent"].items()
                       if not any(row["peer"].startswith(name) and row["status"] == "ok" for row in rows)}
    return first


def join_lesson(bench, path):
    """Add to BENCH what the profiler counted: "profile" has the metrics of each variant by name. Others' stay."""
    wanted = re.compile(r"(smsp|sm|l1tex|lts|dram|gpu)__\w+(\.(sum|ratio|pct)|\.avg\.pct_of_peak_sustained_(active|elapsed))|"
                        r"launch__registers_per_thread")
    variants = {"tensor_walk": "tensor-core", "sparse_bytes": "sparse", "gradient_slope": "gradient"}
    profile = bench.setdefault("profile", {})
    with open(path, newline="") as file:
        for cells in csv.reader(line for line in file if line.startswith('"')):
            if cells[0] == "ID":
                names = cells  # of the columns; a line of units follows
            elif cells[0]:
                row = dict(zip(names, cells))
                kernel = re.match(r"(?:void )?(\w+)", row["Kernel Name"]).group(1)
                profile[variants.get(kernel, kernel.replace("_", "-"))] = {
                    name: float(value.replace(",", "")) for name, value in row.items()
                    if wanted.fullmatch(name) and value}
    return bench


def write(result, file):
    """A filter, a row and a variant's profile a line: what changed between two results can be read."""
    parts = []
    for key, value in result.items():
        if key in ("filters", "profile"):
            value = "{\n  " + ",\n  ".join(f"{json.dumps(name)}: {json.dumps(value[name])}" for name in value) + "\n }"
        elif key == "rows":
            value = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        else:
            value = json.dumps(value)
        parts.append(f' "{key}": {value}')
    file.write("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("bench", "peers", "lesson"):
        raise SystemExit(__doc__)
    if sys.argv[1] == "lesson":
        with open(sys.argv[2]) as file:
            write(join_lesson(json.load(file), sys.argv[3]), sys.stdout)
        return
    join = join_bench if sys.argv[1] == "bench" else join_peers
    measurements.write(join([measurements.read(path) for path in sys.argv[2:]]), sys.stdout)


if __name__ == "__main__":
    main()
