#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small benchmark on one backend, in all three formats: bench.py GPUCONV cpu|cuda.

The times change from run to run; the relations between the fields do not."""
import csv
import io
import json
import math
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402

SIZES = [(64, 48, 1), (130, 67, 3)]
FILTERS = {"blur": (5, 5, True), "edge": (3, 3, False), "shift": (3, 1, True)}
FIELDS = """variant backend filter filter_width filter_height sample width height planes border runs median_ms min_ms
            max_ms spread gpixel_s gb_s tmac_s intensity x_copy percent_copy percent_peak bound upload_ms download_ms
            canonical different status chosen""".split()


def gpuconv(program, *arguments):
    done = harness.run(program, *arguments)
    if done.stderr:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def near(a, b):
    """Equal, given that two factors were printed with six digits."""
    return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-12)


def check_row(row, peaks, copy_ms):
    copy = row["variant"] in ("(copy)", "(memcpy)")
    samples = row["width"] * row["height"] * row["planes"]
    size = {"uint8": 1, "float": 4}[row["sample"]]
    seconds = row["median_ms"] / 1e3
    assert row["status"] == "ok" and row["runs"] >= 5 and row["border"] == "wrap"
    assert 0 < row["min_ms"] <= row["median_ms"] <= row["max_ms"] and row["spread"] >= 0
    assert near(row["gpixel_s"], samples / seconds / 1e9)
    assert near(row["gb_s"], 2 * samples * size / seconds / 1e9)
    assert near(row["x_copy"], row["median_ms"] / copy_ms) and near(row["x_copy"] * row["percent_copy"], 100)
    assert (row["upload_ms"] > 0 and row["download_ms"] > 0) == (row["backend"] == "cuda")
    if copy:
        assert row["filter"] == "" and not row["chosen"] and row["x_copy"] == 1
        return
    width, height, _ = FILTERS[row["filter"]]
    assert (row["filter_width"], row["filter_height"]) == (width, height)
    if row["variant"] == "(image)":
        assert row["backend"] == "cuda" and row["sample"] == "uint8" and row["planes"] > 1
        assert row["different"] == 0 and not row["chosen"] and row["tmac_s"] == 0
        return
    macs = width + height if row["variant"] == "separable" else width * height
    assert near(row["tmac_s"], samples * macs / seconds / 1e12)
    assert near(row["intensity"], macs / size)
    if row["sample"] == "float" or row["backend"] == "cpu":
        peak = peaks["cpu_fma_tmac_s" if row["backend"] == "cpu" else "fma_tmac_s"]
        if row["variant"] == "tensor-core":
            peak = peaks["tensor_tmac_s"] / 6  # three products of halves, which have half the rate of bytes
        assert near(row["percent_peak"], 100 * row["tmac_s"] / peak)
        by_memory = samples * macs / (copy_ms / 1e3) / 1e12
        assert near(by_memory, peak) or row["bound"] == ("memory" if by_memory < peak else "arithmetic")
    if row["sample"] == "uint8":
        assert row["different"] == 0  # the sums of these filters are exact in float too


def check_json(text, backend):
    result = json.loads(text)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", result["date"]) and result["version"] and result["cpu"]["threads"] >= 1
    assert (result["device"] is None) == (backend == "cpu")
    for name, peak in result["peaks"].items():
        assert (peak is not None and peak > 0) == (name.startswith("cpu") == (backend == "cpu")), name
    for name, (width, height, separable) in FILTERS.items():
        filter_ = result["filters"][name]
        assert (filter_["width"], filter_["height"], filter_["separable"]) == (width, height, separable)
        assert len(filter_["taps"]) == width * height and filter_["scale"] >= 1
    copies = {(r["sample"], r["width"]): r["median_ms"] for r in result["rows"] if r["variant"] in ("(copy)", "(memcpy)")}
    assert len(copies) == 2 * len(SIZES)
    cases = {}
    for row in result["rows"]:
        assert list(row) == FIELDS and row["backend"] == backend
        check_row(row, result["peaks"], copies[row["sample"], row["width"]])
        cases.setdefault((row["width"], row["height"], row["planes"], row["sample"], row["filter"]), []).append(row)
    assert len(cases) == len(SIZES) * 2 * (1 + len(FILTERS))
    for (width, height, planes, sample, name), rows in cases.items():
        assert (width, height, planes) in SIZES
        assert len({row["variant"] for row in rows}) == len(rows)
        assert sum(row["chosen"] for row in rows) == (1 if name else 0)
        images = sum(row["variant"] == "(image)" for row in rows)
        assert images == (backend == "cuda" and sample == "uint8" and planes > 1 and name != "")
    return result["rows"]


def check_csv(text, rows):
    lines = list(csv.reader(io.StringIO(text)))
    assert lines[0] == FIELDS and all(len(line) == len(FIELDS) for line in lines)
    of_json = [(r["variant"], r["filter"], r["sample"], str(r["width"]), str(r["different"])) for r in rows
               if r["sample"] == "uint8"]
    of_csv = [(line[0], line[2], line[5], line[6], line[FIELDS.index("different")]) for line in lines[1:]
              if line[5] == "uint8"]
    assert of_json == of_csv


def check_table(text, rows):
    lines = text.splitlines()
    assert all(len(line) <= 120 for line in lines), "a line is too long"
    assert not any(line.endswith(" ") for line in lines)
    assert sum(line.startswith(" variant ") for line in lines) == len(SIZES) * 2 * (1 + len(FILTERS))
    names = [line[1:].split()[0] for line in lines if re.match(r"[ *~][a-z(].* (memory|arith)( |$)", line)]
    assert names == [row["variant"] for row in rows], names
    assert re.match(r"The automatic choice was within 10% .* of \d+ cases", lines[-1]) or "not in these:" in text


def check_names(program, backend):
    """A filter's name may hold any bytes; none of them may drive a terminal or spoil a format."""
    name = b'loud\x1b[31m\n"\xff\xc2\x9b'
    with harness.temporary_folder() as folder:
        path = os.path.join(folder.encode(), name)
        with open(path, "w") as file:
            file.write("1 2 1\n")
        command = [program, "--bench", "--backend", backend, "--threads", "1", "--bench-size", "64x48",
                   "--bench-sample", "uint8", "--bench-filter", path]
        table, as_json, as_csv = (subprocess.run([*command, *form], stdout=subprocess.PIPE, check=True).stdout
                                  for form in ([], ["--json"], ["--csv"]))
    for text in (table, as_json, as_csv):
        assert not any(byte < 0x20 and byte != 0x0a or byte == 0x7f for byte in text), text
        assert b"\xc2\x9b" not in text, text
    result = json.loads(as_json.decode("utf-8"))
    long = path.decode("utf-8", "surrogateescape")
    assert list(result["filters"]) == [long], result["filters"]
    assert {row["filter"] for row in result["rows"]} == {"", long}
    lines = list(csv.reader(io.StringIO(as_csv.decode("utf-8", "surrogateescape"))))
    assert all(len(line) == len(FIELDS) for line in lines)
    assert lines[-1][2].endswith('loud\\x1b[31m\\n"\\xff\\xc2\\x9b'), lines[-1]
    assert b'loud\\x1b[31m\\n"\\xff\\xc2\\x9b (3 x 1 taps' in table, table


def main():
    program, backend = os.path.abspath(sys.argv[1]), sys.argv[2]
    if backend == "cuda" and gpuconv(program, "--devices").startswith("no CUDA device"):
        harness.skip("there is no GPU")
    # One thread: on a busy machine, threads that wait for each other lose milliseconds.
    common = ["--bench", "--backend", backend, "--threads", "1", "--border", "wrap", "--bench-filter",
              ",".join(FILTERS), "--bench-size", ",".join("x".join(map(str, size)) for size in SIZES)]
    rows = check_json(gpuconv(program, *common, "--json"), backend)
    check_csv(gpuconv(program, *common, "--csv"), rows)
    check_table(gpuconv(program, *common), rows)
    check_names(program, backend)

    one = json.loads(gpuconv(program, "--bench", "--variant", rows[-1]["variant"], "--bench-sample", "float",
                             "--bench-size", "64x48", "--bench-filter", "shift", "--threads", "1", "--json"))["rows"]
    assert [row["variant"] for row in one[1:]] == [rows[-1]["variant"]] and one[0]["sample"] == "float"

    # Some variants, in the order of the table, with filters of the benchmark's own: named filters are all measured.
    named = ["reference", "cpu"] if backend == "cpu" else ["basic", "constant"]
    some = json.loads(gpuconv(program, "--bench", "--variant", ",".join(reversed(named)), "--bench-sample", "uint8",
                              "--bench-size", "64x48x3", "--bench-filter", "rank1-4,int16-5", "--threads", "1",
                              "--json"))["rows"]
    names = named + (["(image)"] if backend == "cuda" else [])
    assert [(row["filter"], row["variant"]) for row in some[1:]] == \
        [(name, variant) for name in ("rank1-4", "int16-5") for variant in names], some
    return 0


sys.exit(main())
