#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check a report against the files that it names: report.py REPORT INPUTS OUTPUTS."""
import collections
import json
import os
import struct
import sys

STAGES = ["wait", "read", "decode", "driver", "plan", "context", "buffers", "upload", "split", "convolve", "merge", "download", "encode",
          "write", "total"]


def png_size(path):
    with open(path, "rb") as file:
        return struct.unpack(">II", file.read(24)[16:])


def check(entry):
    source, target, status = os.fsencode(entry["input"]), os.fsencode(entry["output"]), entry["status"]
    assert os.path.basename(source) == os.path.basename(target), entry
    assert entry["input_bytes"] == os.path.getsize(source), entry
    assert (status == "failed") == ("error" in entry), entry
    assert (status == "skipped") == ("ms" not in entry), entry
    assert (entry.get("class"), entry.get("retry")) == (("input", False) if status == "failed" else (None, None)), entry
    if status == "failed":
        assert not os.path.exists(target), entry
    if status == "done":
        assert (entry["width"], entry["height"]) == png_size(source), entry
        assert entry["output_bytes"] == os.path.getsize(target), entry
        assert (entry["backend"], entry["variant"]) == ("cpu", "cpu,cpu"), entry
        stages = entry["ms"]
        assert list(stages) == [stage for stage in STAGES if stage in stages], entry
        parts = sum(stages.values()) - stages["total"]
        assert {"decode", "convolve", "encode", "write"} < set(stages), entry
        # An image has one thread here.
        assert parts < stages["total"] + 0.05 + 0.001 * len(stages), entry
    return source


def largest_share(entries):
    """How much of an image's time its stages have, at most: on a busy machine, others work between stages."""
    return max(sum(entry["ms"].values()) / entry["ms"]["total"] - 1 for entry in entries if entry["status"] == "done")


def main():
    path, inputs, outputs = map(os.fsencode, sys.argv[1:])
    with open(path, "rb") as file:
        text = file.read()
    entries = [json.loads(line.decode("utf-8", "strict")) for line in text.splitlines()]
    assert text.endswith(b"\n")
    seen = {check(entry) for entry in entries}
    assert seen == {os.path.join(inputs, name) for name in os.listdir(inputs)}, seen
    done = {os.path.basename(os.fsencode(entry["output"])) for entry in entries if entry["status"] == "done"}
    assert done == set(os.listdir(outputs)), done
    assert largest_share(entries) > 0.5, entries
    counts = collections.Counter(entry["status"] for entry in entries)
    print(*(f"{counts[status]} {status}" for status in ("failed", "done", "skipped")))


main()
