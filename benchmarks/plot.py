#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw the benchmark's plots:

    python3 benchmarks/plot.py benchmarks/bench-h200.csv benchmarks/peers-h200.csv docs

The first file is what join.py makes of the output of gpuconv --bench --json, the second of that of peers.py. The script writes
time-by-size.svg (a 9 x 9 filter against image size, every variant), cpu-or-gpu.svg (the CPU beside the GPU, with and
without transfers), roofline.svg (the same rows under the measured roofs) and time-by-filter.svg (the largest image
against filter size, beside the peers) into the folder. With --batches FILE, the JSON of backends.py, it writes
batch-by-cores.svg, too. The same input gives the same bytes with the same matplotlib. Needs Python 3.8 and matplotlib
3.5.
"""
import argparse
import math
import os
import sys

import matplotlib

matplotlib.use("SVG")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

import measurements

FILTER, SAMPLE = "int8-9", "uint8"  # what time-by-size and the roofline show; separable rows are of rank1-9
SEPARABLE = "rank1-9"

# Okabe and Ito's colours, which stay apart for every kind of colour blindness; their yellow is too light for lines on
# white. There are more lines than colours, so no two of one colour share a dash or a marker.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = \
    "#000000", "#c77f00", "#4a9fd0", "#009e73", "#0072b2", "#d55e00", "#b5558c", "#777777"
STYLES = [(BLUE, "-", "o"), (RED, "-", "s"), (GREEN, "-", "^"), (PURPLE, "-", "D"), (ORANGE, "-", "v"),
          (SKY, "-", "P"), (GREY, "-", "X"), (BLUE, "--", "<"), (RED, "--", ">"), (GREEN, "--", "p"),
          (PURPLE, "--", "h"), (ORANGE, "--", "*"), (SKY, "--", "d"), (GREY, "--", "8")]

FONT, SMALL = 10.5, 9.5  # points; a figure 600 points wide is 800 pixels, so the smaller is 12.7 pixels
WIDTH = 600 / 72

plt.rcParams.update({
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gpuconv",  # the names inside the file do not change from run to run
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"], "font.size": FONT,
    "axes.titlesize": FONT, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8,
    "axes.grid": True, "grid.color": "#e3e3e3", "grid.linewidth": 0.7, "axes.axisbelow": True,
    "lines.linewidth": 1.5, "lines.markersize": 4.5,
    "figure.facecolor": "white", "savefig.facecolor": "white", "axes.facecolor": "white",
    "path.simplify": False,
})


def plain(value, _=None):
    """1000, 10, 0.1: no powers of ten, no zeros at the end."""
    return f"{value:,.0f}" if value >= 1 else f"{value:.10f}".rstrip("0")


def log_axis(axis, ticks=None):
    if ticks:
        ticks = [tick for i, tick in enumerate(ticks) if i == 0 or tick > 1.4 * ticks[i - 1]]  # labels would overlap
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(plain))
    axis.set_minor_formatter(NullFormatter())


def spread(wanted, gap, low=-math.inf, high=math.inf):
    """Positions as near as possible to the wanted ones, in the same order, at least GAP apart and within the limits."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    clusters = []  # of [sum of (wanted - offset in the cluster), members]
    for i in order:
        clusters.append([wanted[i], [i]])
        while len(clusters) > 1:
            (a, first), (b, second) = clusters[-2], clusters[-1]
            start_a = a / len(first)
            if start_a + gap * len(first) <= b / len(second):
                break
            clusters[-2:] = [[a + b - gap * len(first) * len(second), first + second]]
    result = [0.0] * len(wanted)
    for total, members in clusters:
        for k, i in enumerate(members):
            result[i] = total / len(members) + gap * k
    limit = low
    for i in order:
        limit = result[i] = max(result[i], limit)
        limit += gap
    limit = high
    for i in reversed(order):
        limit = result[i] = min(result[i], limit)
        limit -= gap
    return result


def end_labels(axes, labels, x=1.045, size=SMALL):
    """Name each line at its right end: LABELS are (x, y, text, colour, bold) in data. Names stand in a column at X
    (a part of the axes' width), pushed apart where they would touch, with a thin line to where they belong."""
    figure = axes.figure
    figure.canvas.draw()
    to_axes = lambda px, py: axes.transAxes.inverted().transform(axes.transData.transform((px, py)))
    height = axes.get_window_extent().height / figure.dpi * 72
    places = [to_axes(px, py) for px, py, *_ in labels]
    ys = spread([p[1] for p in places], size * 1.22 / height, 0.01, 0.99)
    for (px, py), y, (_, _, text, colour, bold) in zip(places, ys, labels):
        axes.plot([px + 0.012, x - 0.008], [py, y], transform=axes.transAxes, color=colour, linewidth=0.6,
                  clip_on=False, alpha=0.7)
        axes.text(x, y, text, transform=axes.transAxes, color=colour, fontsize=size, va="center",
                  fontweight="bold" if bold else "normal")


def darker(colour):
    """For text: the light colours of lines are hard to read as letters."""
    return {SKY: "#2b77a5", ORANGE: "#8f5c00", PURPLE: "#94407a"}.get(colour, colour)


def gpu_name(bench):
    return bench["device"]["name"] if bench.get("device") else "no GPU"


def cpu_label(bench):
    return f"cpu ({bench['cpu']['threads']} threads)"


def fitting(bench, **wanted):
    return [row for row in bench["rows"] if row.get("status", "ok") == "ok" and row.get("median_ms") and
            row.get("border", "replicate") in ("replicate", None) and
            all(row.get(key) == value for key, value in wanted.items())]


def variants_of(bench):
    """The names of all variants, in the order in which the benchmark lists them, the CPU's last."""
    names = {row["variant"]: row["backend"] for row in bench["rows"] if not row["variant"].startswith("(")}
    return sorted(names, key=lambda name: names[name] == "cpu")


def filter_for(bench, variant, sample, filter=FILTER):
    """The dense filter, and the separable one of that size for variants that take no other."""
    if fitting(bench, variant=variant, sample=sample, filter=filter):
        return filter
    return SEPARABLE


def save(figure, folder, name):
    figure.savefig(os.path.join(folder, name), format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)


def style_of(bench, variant):
    if variant == "cpu":
        return BLACK, "-", "o"
    if variant == "reference":
        return BLACK, ":", "s"
    names = [name for name in variants_of(bench) if name not in ("cpu", "reference")]
    return STYLES[names.index(variant) % len(STYLES)]


def time_by_size(bench, folder):
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 9.6))
    figure.subplots_adjust(left=0.095, right=0.755, top=0.96, bottom=0.055, hspace=0.22)
    for axes, sample in zip(panels, ("uint8", "float")):
        time_by_size_of(bench, axes, sample)
    save(figure, folder, "time-by-size.svg")


def time_by_size_of(bench, axes, sample):
    def samples(row):
        return row["width"] * row["height"] * row["planes"] / 1e6

    labels, sizes, separable = [], set(), False
    for variant in variants_of(bench):
        if variant == "reference":
            continue  # timed at small sizes only, and no one's choice
        name = filter_for(bench, variant, sample)
        rows = sorted(fitting(bench, variant=variant, sample=sample, filter=name), key=samples)
        if not rows:
            continue
        colour, dash, marker = style_of(bench, variant)
        x, y = [samples(row) for row in rows], [row["median_ms"] for row in rows]
        sizes.update(x)
        chosen = any(row.get("chosen") for row in rows)
        axes.plot(x, y, color=colour, linestyle=dash, marker=marker, linewidth=2.4 if chosen else 1.5)
        text = cpu_label(bench) if variant == "cpu" else variant + (" *" if name != FILTER else "")
        separable |= name != FILTER
        labels.append((x[-1], y[-1], text, darker(colour), chosen))
    copies = sorted(fitting(bench, variant="(copy)", sample=sample), key=samples)
    if copies:
        x, y = [samples(row) for row in copies], [row["median_ms"] for row in copies]
        axes.plot(x, y, color=BLACK, linestyle=(0, (4, 3)), linewidth=1.2)
        labels.append((x[-1], y[-1], "copy on the GPU", BLACK, False))
    axes.set(xscale="log", yscale="log", xlabel="Mpixel, all planes together", ylabel="time, ms")
    kind = "uint8_t" if sample == "uint8" else "float"
    axes.set_title(f"9 × 9 filter on {kind} planes, {gpu_name(bench)}: time against image size")
    log_axis(axes.xaxis, sorted(sizes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    log_axis(axes.yaxis)
    note = "bold: the automatic choices" + ("\n* separable filters only" if separable else "")
    axes.text(0.02, 0.98, note, transform=axes.transAxes, fontsize=SMALL, va="top", color="#444444",
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    end_labels(axes, labels)


def cpu_or_gpu(bench, folder):
    """The CPU and the automatic choice for the GPU, with and without transfers, by image size."""
    gpu = fitting(bench, backend="cuda", sample=SAMPLE, filter=FILTER, planes=1, chosen=True)
    cpu = fitting(bench, variant="cpu", sample=SAMPLE, filter=FILTER, planes=1)
    figure, axes = plt.subplots(figsize=(WIDTH, 4))
    figure.subplots_adjust(left=0.095, right=0.755, top=0.92, bottom=0.125)
    labels = []
    for points, text, colour, dash, marker in (
            ([(row["width"], row["median_ms"]) for row in cpu], f"CPU ({bench['cpu']['threads']} threads)", BLACK, "-", "o"),
            ([(row["width"], row["median_ms"]) for row in gpu], "GPU", BLUE, "-", "s"),
            ([(row["width"], row["median_ms"] + row["upload_ms"] + row["download_ms"]) for row in gpu],
             "GPU and transfers", BLUE, "--", "^")):
        x, y = zip(*sorted(points))
        axes.plot(x, y, color=colour, linestyle=dash, marker=marker)
        labels.append((x[-1], y[-1], text, darker(colour), False))
    axes.set(xscale="log", yscale="log", xlabel="image, pixels a side", ylabel="time, ms")
    axes.set_title(f"9 × 9 filter on uint8_t, CPU or {gpu_name(bench)}")
    log_axis(axes.xaxis, x)
    log_axis(axes.yaxis)
    end_labels(axes, labels)
    save(figure, folder, "cpu-or-gpu.svg")


def roofline(bench, folder):
    size = max(row["width"] for row in fitting(bench, backend="cuda", sample=SAMPLE, planes=1))
    copy = fitting(bench, variant="(copy)", sample=SAMPLE, planes=1, width=size)[0]
    # Bytes in and out of a copy, by the second; both roofs in operations, two to a multiply-add.
    bandwidth = 2 * size * size / copy["median_ms"] / 1e9  # TB/s
    peaks = [(bench["peaks"].get(key), text, colour) for key, text, colour in (
        ("fma_tmac_s", "float multiply-add", RED), ("dp4a_tmac_s", "dp4a", ORANGE),
        ("tensor_tmac_s", "int8 tensor cores", GREEN))]
    peaks = [(2 * value, text, colour) for value, text, colour in peaks if value]
    figure, axes = plt.subplots(figsize=(WIDTH, 5.6))
    figure.subplots_adjust(left=0.095, right=0.755, top=0.93, bottom=0.095)

    points, labels = [], []
    for variant in variants_of(bench):
        name = filter_for(bench, variant, SAMPLE)
        colour, _, marker = style_of(bench, variant)
        stem = name.rsplit("-", 1)[0] + "-"
        for row in fitting(bench, variant=variant, backend="cuda", sample=SAMPLE, planes=1, width=size, height=size):
            if not (row["filter"] or "").startswith(stem):
                continue
            x, y = row["intensity"], 2 * row["tmac_s"]
            points.append((x, y))
            if row["filter"] == name:
                axes.plot(x, y, marker=marker, color=colour, markersize=7, linestyle="none", zorder=4,
                          markeredgecolor="white", markeredgewidth=0.6)
                labels.append((x, y, variant, darker(colour), bool(row.get("chosen"))))
            else:
                axes.plot(x, y, marker=marker, color=colour, markersize=4.5, linestyle="none", alpha=0.35, zorder=3,
                          markeredgecolor="none")
    low = 10 ** math.floor(math.log10(min(y for _, y in points)) - 0.05)
    left, right = min(x for x, _ in points) / 2, max(x for x, _ in points) * 2
    top = max(value for value, _, _ in peaks)
    axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(low, top * 2),
             xlabel="arithmetic intensity, operations per byte in and out (two to a multiply-add)",
             ylabel="T operations per second")
    axes.plot([left, top / bandwidth], [left * bandwidth, top], color=BLACK, linewidth=1.5, zorder=2)
    for value, text, colour in peaks:
        axes.plot([value / bandwidth, right], [value, value], color=colour, linewidth=1.5, zorder=2)
        axes.text(right, value * 1.06, f"{text} {value:,.0f} ", color=darker(colour), fontsize=SMALL, ha="right",
                  va="bottom", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8})
    axes.set_title(f"Roofline, {gpu_name(bench)}, {size} × {size} uint8_t, one plane")
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
    figure.canvas.draw()
    start = axes.transData.transform((left, left * bandwidth))
    end = axes.transData.transform((left * 10, left * 10 * bandwidth))
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    axes.annotate(f"copy {bandwidth:.2f} TB/s", (left, left * bandwidth), xytext=(8, 15), fontsize=SMALL,
                  textcoords="offset points", rotation=angle, rotation_mode="anchor", va="bottom")
    # Where each filter size stands.
    for row in fitting(bench, backend="cuda", sample=SAMPLE, planes=1, width=size, height=size):
        if (row["filter"] or "").startswith("int8-") and row["variant"] == labels[0][2]:
            side = row["filter_width"]
            axes.annotate(f"{side}×{side}", (row["intensity"], 0.012), xycoords=("data", "axes fraction"),
                          fontsize=SMALL, ha="center", va="bottom", color="#444444")
    axes.text(0.02, 0.98, "large: 9 × 9; faint: the other sizes\nbold: the automatic choices",
              transform=axes.transAxes, fontsize=SMALL, va="top", color="#444444",
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    end_labels(axes, labels)
    save(figure, folder, "roofline.svg")


# Which peers are drawn, in which style. Where a peer's call alone was timed, that is drawn: the better of its two.
PEERS = [("CuPy correlate", RED, "-", "s"), ("PyTorch conv2d", PURPLE, "-", "D"),
         ("PyTorch conv2d, TF32", PURPLE, "--", "h"), ("PyTorch conv2d, float16", ORANGE, "--", "v"),
         ("cuFFT", GREEN, "-", "^"), ("NPP FilterBorder", GREY, "-", "X"), ("NPP FilterBorder32f", GREY, "--", "8")]
SHORT = {"CuPy correlate": "CuPy", "PyTorch conv2d": "PyTorch float32", "PyTorch conv2d, TF32": "PyTorch TF32",
         "PyTorch conv2d, float16": "PyTorch float16", "NPP FilterBorder": "NPP", "NPP FilterBorder32f": "NPP 32f"}


def time_by_filter(bench, peers, folder):
    figure, both = plt.subplots(2, 1, figsize=(WIDTH, 8.2))
    figure.subplots_adjust(left=0.095, right=0.755, top=0.955, bottom=0.085, hspace=0.24)
    for axes, sample in zip(both, ("uint8", "float")):
        timed = [row for row in fitting(bench, backend="cuda", sample=sample, planes=1) if row["filter"]]
        size = max(row["width"] for row in timed)
        where = {"sample": sample, "planes": 1, "width": size, "height": size}
        labels, ticks = [], set()

        def line(rows, text, colour, dash, marker, width=1.5, bold=False):
            rows = sorted(rows, key=lambda row: row["filter_width"])
            if not rows:
                return
            x, y = [row["filter_width"] for row in rows], [row["median_ms"] for row in rows]
            ticks.update(x)
            axes.plot(x, y, color=colour, linestyle=dash, marker=marker, linewidth=width)
            labels.append((x[-1], y[-1], text, darker(colour), bold))

        for peer, colour, dash, marker in PEERS:
            best = {}
            for row in peers["rows"]:
                if row["peer"] == peer and row["status"] == "ok" and row["filter"].startswith("int8-") and \
                        all(row[key] == value for key, value in where.items()):
                    if row["filter"] not in best or row["median_ms"] < best[row["filter"]]["median_ms"]:
                        best[row["filter"]] = row
            inexact = " †" if any(row.get("different") for row in best.values()) else ""
            line(list(best.values()), SHORT.get(peer, peer) + inexact, colour, dash, marker)
        chosen = [row for row in timed if row.get("chosen") and all(row[k] == v for k, v in where.items())]
        line([row for row in chosen if row["filter"].startswith("int8-")], "gpuconv", BLUE, "-", "o", 2.6, True)
        line([row for row in chosen if row["filter"].startswith("rank1-")], "gpuconv, separable", BLUE, ":", "o", 1.8,
             True)
        axes.set(xscale="log", yscale="log", ylabel="time, ms")
        copy = fitting(bench, variant="(copy)", **where)
        if copy:
            axes.axhline(copy[0]["median_ms"], color=BLACK, linestyle=(0, (4, 3)), linewidth=1.2)
            labels.append((max(ticks), copy[0]["median_ms"], "copy on the GPU", BLACK, False))
            axes.set_ylim(bottom=copy[0]["median_ms"] / 1.7)
        log_axis(axes.xaxis, sorted(ticks))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}×{value:.0f}"))
        log_axis(axes.yaxis)
        axes.set_title(f"{'uint8_t' if sample == 'uint8' else 'float'}, {size} × {size}, one plane, "
                       f"{gpu_name(bench)}")
        end_labels(axes, labels)
    both[1].set_xlabel("filter, taps")
    figure.text(0.095, 0.012, "Peers: the library's call alone, input padded and converted before. † differs from the "
                "exact answer",
                fontsize=SMALL, color="#444444")
    save(figure, folder, "time-by-filter.svg")


def batch_by_cores(batches, folder):
    """Images a second by cores, with the CPU alone and with GPUs, for each format."""
    size = max(row["width"] for row in batches["rows"])
    rows = [{"format": "jpg", **row} for row in batches["rows"] if row["width"] == size]
    kinds = list(dict.fromkeys(row["format"] for row in rows))
    figure, panels = plt.subplots(len(kinds), 1, figsize=(WIDTH, 4.8 * len(kinds)), squeeze=False)
    figure.subplots_adjust(left=0.095, right=0.72, top=1 - 0.07 / len(kinds), bottom=0.11 / len(kinds), hspace=0.23)
    for axes, kind in zip(panels.flat, kinds):
        batch_by_cores_of([row for row in rows if row["format"] == kind], axes, batches["gpu"])
    save(figure, folder, "batch-by-cores.svg")


def batch_by_cores_of(rows, axes, gpu):
    first, labels = rows[0], []
    for i, name in enumerate(dict.fromkeys(row["filter"] for row in rows)):
        colour = STYLES[i][0]
        for gpus in (0, *sorted({row["gpus"] for row in rows})):
            points = sorted((row["cores"], row["cuda_per_s" if gpus else "cpu_per_s"]) for row in rows
                            if row["filter"] == name and row["gpus"] == (gpus or first["gpus"]))
            x, y = zip(*points)
            axes.plot(x, y, color=colour, linestyle=("-", "--", "-.")[min(gpus, 2)], marker=("o", "s", "^")[min(gpus, 2)])
            text = f"{name}, CPU" if gpus == 0 else f"{name}, {gpus} GPU" + ("s" if gpus > 1 else "")
            labels.append((x[-1], y[-1], text, darker(colour), False))
    axes.set(xscale="log", yscale="log", xlabel="cores of the CPU", ylabel="images a second")
    name = {"jpg": "JPEG", "png": "PNG"}[first["format"]]
    axes.set_title(f"{name} to {name}, {first['width'] * first['height'] / 1e6:.1f} Mpixel, {gpu}")
    log_axis(axes.xaxis, sorted({row["cores"] for row in rows}))
    log_axis(axes.yaxis, [10, 20, 50, 100, 200, 500, 1000, 2000])
    axes.text(0.02, 0.98, f"{first['images'] // first['cores']} images a core, the GPU's start included",
              transform=axes.transAxes, fontsize=SMALL, va="top", color="#444444")
    end_labels(axes, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", metavar="BENCH.csv")
    parser.add_argument("peers", metavar="PEERS.csv")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--batches", metavar="BATCHES.json")
    options = parser.parse_args()
    bench, peers = measurements.read(options.bench), measurements.read(options.peers)
    time_by_size(bench, options.folder)
    roofline(bench, options.folder)
    time_by_filter(bench, peers, options.folder)
    cpu_or_gpu(bench, options.folder)
    if options.batches:
        batch_by_cores(measurements.read(options.batches), options.folder)


if __name__ == "__main__":
    sys.exit(main())
