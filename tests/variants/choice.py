#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold the automatic choice against committed measurements.

    choice.py CHOOSE BENCH.csv            fails where the chosen variant is more than 10% slower than the fastest
    choice.py CHOOSE BENCH.csv --update   sets the rows' "chosen" to what is chosen now

The fastest is the fastest of the variants that return the canonical bytes, as the benchmark measured them. Where the
benchmark has not measured the chosen variant, there is nothing to compare; the last line counts these.
"""

import collections
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "benchmarks"))
import measurements  # noqa: E402

ALLOWED = 1.10


def main():
    choose, path = os.path.abspath(sys.argv[1]), sys.argv[2]
    bench = measurements.read(path)
    cases = collections.defaultdict(list)
    for row in bench["rows"]:
        if row["backend"] == "cuda" and row["filter"] and row["variant"][0] != "(" and row["status"] == "ok":
            key = (row["filter"], row["sample"], row["width"], row["height"], row["planes"])
            cases[key].append(row)
    lines = "".join(" ".join(map(str, key)) + "\n" for key in cases)
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
            measurements.write(bench, file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
