#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the tables of README.md and docs/benchmarks.md from the committed results.

    tables.py                    rewrites what stands between <!-- table: NAME --> and <!-- end --> in both
    tables.py --check            rewrites nothing and fails where a table is not what the results say

They are of one plane of 16384 x 16384, from benchmarks/bench-h200.json and benchmarks/peers-h200.json.
"""

import json
import os
import re
import sys

SIDE = 16384
VARIANTS = ["basic", "constant", "coarsened", "tiled-input", "tiled-output", "tiled-cached", "texture", "register-tiled",
            "separable", "tensor-core", "sparse"]
KINDS = {"int8": "dense, taps of 8 bits", "int16": "dense, 16 bits", "rank1": "separable"}
SAMPLES = ["uint8", "float"]


def milliseconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def line(cells):
    return ("| " + " | ".join(cells) + " |").replace("|  |", "| |").replace("|  |", "| |")


class Results:
    def __init__(self, bench, peers):
        self.rows = [row for row in bench["rows"] if row["backend"] == "cuda" and
                     (row["width"], row["height"], row["planes"]) == (SIDE, SIDE, 1)]
        self.peers = [row for row in peers["rows"] if row["width"] == SIDE and row["status"] == "ok"]
        self.copy = {row["sample"]: row["median_ms"] for row in self.rows if row["variant"] == "(copy)"}

    def find(self, name, sample, **wanted):
        for row in self.rows:
            if row["filter"] == name and row["sample"] == sample and all(row[k] == v for k, v in wanted.items()):
                return row["median_ms"]
        return None

    def fastest_peer(self, name, sample):
        """Of each peer its bare call, on an input that is as it wants it; where there is no such row, all of it."""
        rows = [row for row in self.peers if row["filter"] == name and row["sample"] == sample]
        bare = {row["peer"] for row in rows if row["part"] == "call"}
        rows = [row for row in rows if row["part"] == "call" or row["peer"] not in bare]
        return min(rows, key=lambda row: row["median_ms"])

    def variants(self):
        lines = ["| variant | `uint8_t` ms | × copy | `float` ms | × copy |", "| --- | --- | --- | --- | --- |"]
        lines.append(line(["*device-to-device copy*"] +
                          [cell for sample in SAMPLES for cell in (milliseconds(self.copy[sample]), "1.00")]))
        for variant in VARIANTS:
            name = "rank1-9" if variant == "separable" else "int8-9"
            cells = [variant]
            for sample in SAMPLES:
                time = self.find(name, sample, variant=variant)
                cells += [milliseconds(time), f"{time / self.copy[sample]:.2f}"] if time else ["", ""]
            lines.append(line(cells))
        return lines

    def filters(self):
        lines = ["| filter | `uint8_t`: gpuconv ms | × copy | fastest peer ms | ratio | `float`: gpuconv ms | × copy | "
                 "fastest peer ms | ratio |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
        for kind, words in KINDS.items():
            for side in (3, 5, 7, 9, 15, 31):
                name = f"{kind}-{side}"
                cells = [f"{side} × {side} {words}"]
                for sample in SAMPLES:
                    time = self.find(name, sample, chosen=True)
                    if time is None:
                        cells += [""] * 4
                        continue
                    peer = self.fastest_peer(name, sample)
                    cells += [milliseconds(time), f"{time / self.copy[sample]:.2f}",
                              f"{milliseconds(peer['median_ms'])} ({peer['peer'].replace(' correlate', '')})",
                              f"{peer['median_ms'] / time:.1f}"]
                lines.append(line(cells))
        return lines

    def words(self):
        lines = ["| filter | variant | `uint16_t` ms | × copy |", "| --- | --- | --- | --- |"]
        lines.append(line(["*device-to-device copy*", "", milliseconds(self.copy["uint16"]), "1.00"]))
        for row in self.rows:
            if row["sample"] == "uint16" and row["chosen"]:
                kind, _, side = row["filter"].partition("-")
                name = f"{side} × {side} {KINDS[kind]}" if kind in KINDS else f"`{row['filter']}`"
                lines.append(line([name, row["variant"], milliseconds(row["median_ms"]),
                                   f"{row['median_ms'] / self.copy['uint16']:.2f}"]))
        return lines


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    results = Results(load(os.path.join(here, "bench-h200.json")), load(os.path.join(here, "peers-h200.json")))
    stale = 0
    for path in (os.path.join(here, "..", "README.md"), os.path.join(here, "..", "docs", "benchmarks.md")):
        with open(path, encoding="utf-8") as file:
            text = file.read()

        def table(match):
            rows = getattr(results, match.group(1))()
            return f"<!-- table: {match.group(1)} -->\n" + "\n".join(rows) + "\n<!-- end -->"

        fresh, count = re.subn(r"<!-- table: (\w+) -->\n.*?\n?<!-- end -->", table, text, flags=re.S)
        assert count > 0, path
        if fresh != text and "--check" in sys.argv:
            print(f"{os.path.normpath(path)}: a table is not what the results say; run benchmarks/tables.py")
            stale += 1
        elif fresh != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(fresh)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
