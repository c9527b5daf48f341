#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold the automatic choice against committed measurements.

    choice.py CHOOSE BENCH.json            fails where the chosen variant is more than 10% slower than the fastest
    choice.py CHOOSE BENCH.json --update   sets the rows' "chosen" to what is chosen now

The fastest is the fastest of the variants that return the canonical bytes, as the benchmark measured them. Where the
benchmark has not measured the chosen variant, there is nothing to compare; the last line counts these.
"""

import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "..", "benchmarks")]
import join  # noqa: E402
from harness import temporary_folder  # noqa: E402

ALLOWED = 1.10


def filter_text(name, facts):
    width, height = facts["width"], facts["height"]
    rows = [" ".join(map(str, facts["taps"][i:i + width])) for i in range(0, len(facts["taps"]), width)]
    grids = ["\n".join(rows[i:i + height]) for i in range(0, len(rows), height)]
    return "".join([f"title {name}\nscale {facts['scale']}\noffset {facts['offset']:.17g}\n",
                    "abs\n" if facts["absolute"] else "",
                    f"combine {facts['combine']}\n" if len(grids) > 1 else "", "\n---\n".join(grids), "\n"])


def main():
    choose, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    with open(path) as file:
        bench = json.load(file)
    cases = collections.defaultdict(list)
    for row in bench["rows"]:
        if row["backend"] == "cuda" and row["filter"] and row["variant"][0] != "(" and row["status"] == "ok":
            key = (row["filter"], row["sample"], row["width"], row["height"], row["planes"])
            cases[key].append(row)
    with temporary_folder() as folder:
        specs = {}
        for name, facts in bench["filters"].items():
            if facts["taps"] is None:  # two passes are in no file
                specs[name] = name
                continue
            specs[name] = os.path.join(folder, name + ".txt")
            with open(specs[name], "w") as file:
                file.write(filter_text(name, facts))
        lines = "".join(f"{specs[key[0]]} {key[1]} {key[2]} {key[3]} {key[4]}\n" for key in cases)
        chosen = subprocess.run([choose], input=lines, capture_output=True, text=True, check=True).stdout.split()
    assert len(chosen) == len(cases) > 0
    failed = unknown = 0
    for (key, rows), name in zip(cases.items(), chosen):
        times = {row["variant"]: row["median_ms"] for row in rows if row["canonical"]}
        fastest = min(times, key=times.get)
        for row in rows:
            row["chosen"] = row["variant"] == name
        if name not in times:
            unknown += 1
        elif not times[name] <= ALLOWED * times[fastest]:
            failed += 1
            print(f"{key}: {name} is chosen and takes {times[name]:.4f} ms, {fastest} {times[fastest]:.4f} ms")
    known = len(cases) - unknown
    assert known > 0
    print(f"{known - failed} of {known} choices within 10% of the fastest, {unknown} not measured")
    if "--update" in sys.argv:
        with open(path, "w") as file:
            join.write(bench, file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
