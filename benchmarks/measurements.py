# SPDX-License-Identifier: MIT
"""Read and write bench-*.csv and peers-*.csv: what was measured, a row a line. What follows from it is computed here.

The lines before the columns begin with "# " and are JSON: the date, the machine, its peaks, and a digest of the taps of
each filter. read() takes the JSON of gpuconv --bench and of peers.py, too, and then knows the taps themselves."""
import csv
import hashlib
import json
import re

COLUMNS = {name: kind for kind, names in (
    (str, "variant backend peer part filter sample status note"),
    (int, "filter_width filter_height width height planes runs different"),
    (float, "median_ms min_ms max_ms copy_ms peak_tmac_s upload_ms download_ms largest_difference"),
    (bool, "canonical chosen")) for name in names.split()}
# copy_ms and peak_tmac_s are of the row's own run; those of the head are of the first run that was joined.
BENCH = ("variant backend filter sample width height planes runs median_ms min_ms max_ms copy_ms peak_tmac_s upload_ms "
         "download_ms canonical different chosen").split()
PEERS = ("peer part filter filter_width filter_height sample width height planes runs median_ms min_ms max_ms different "
         "largest_difference status note").split()
TAPS = "scale", "offset", "absolute", "combine", "taps", "row", "column"


def about_filter(facts):
    """Has the filter two passes, and a digest of its taps; FACTS are what gpuconv --bench --json says of it."""
    if "digest" in facts:
        return facts
    taps = json.dumps([facts.get(key) for key in TAPS])
    return {"two_passes": facts["taps"] is None, "digest": hashlib.sha256(taps.encode()).hexdigest()[:16]}


def complete(row):
    """Add to a row of gpuconv what follows from its columns. The work is known for the benchmark's own filters."""
    row["status"] = "ok" if row["median_ms"] else "wrong"
    own = re.fullmatch(r"(?:int8|int16|rank1)-(\d+)", row["filter"])
    row["filter_width"] = side = int(own[1]) if own else None
    if own and row["peak_tmac_s"]:
        work = 2 * side if row["variant"] == "separable" else side * side  # multiply-adds for a sample
        row["tmac_s"] = row["width"] * row["height"] * row["planes"] * work / row["median_ms"] / 1e9
        row["intensity"] = work / {"uint8": 1, "uint16": 2, "float": 4}[row["sample"]]  # operations per byte in and out
        row["percent_peak"] = 100 * row["tmac_s"] / row["peak_tmac_s"]
        row["percent_copy"] = 100 * row["copy_ms"] / row["median_ms"]
    return row


def measured(row):
    """A row of gpuconv --bench --json with what its rates say of its run."""
    assert row["border"] == "replicate", f"{row['border']} is no border of these results"
    row["copy_ms"] = float(f"{row['percent_copy'] * row['median_ms'] / 100:.5g}") if row["percent_copy"] else None
    row["peak_tmac_s"] = float(f"{100 * row['tmac_s'] / row['percent_peak']:.5g}") if row["percent_peak"] else None
    return row


def read(path):
    """The head of a file, as a dict, with its "rows"."""
    with open(path, newline="", encoding="utf-8") as file:
        if not str(path).endswith(".csv"):
            result = json.load(file)
            if "peaks" in result:
                result["rows"] = [measured(row) for row in result["rows"]]
        else:
            result, line = {"rows": []}, file.readline()
            while line.startswith("# "):
                key, _, value = line[2:].partition(": ")
                kind, _, name = key.partition(" ")
                (result.setdefault("filters", {}) if name else result)[name or kind] = json.loads(value)
                line = file.readline()
            for texts in csv.DictReader(file, fieldnames=line.strip().split(",")):
                row = {name: COLUMNS[name](int(text) if COLUMNS[name] is bool else text)
                       if text or COLUMNS[name] is str else None for name, text in texts.items()}
                result["rows"].append(complete(row) if "peaks" in result else row)
    if "filters" in result:
        result["filters"] = {name: about_filter(facts) for name, facts in result["filters"].items()}
    return result


def cell(row, name):
    value, kind = row.get(name), int if COLUMNS[name] is bool else COLUMNS[name]
    return value if value is None else kind(value)


def write(result, file):
    """Write the head and the measured columns of what read() gave. What changed between two results can be read."""
    for key, value in result.items():
        if key == "filters":
            file.writelines(f"# filter {name}: {json.dumps(facts)}\n" for name, facts in value.items())
        elif key != "rows":
            file.write(f"# {key}: {json.dumps(value)}\n")
    lines = csv.writer(file, lineterminator="\n")
    columns = BENCH if "peaks" in result else PEERS
    lines.writerow(columns)
    lines.writerows([cell(row, name) for name in columns] for row in result["rows"])
