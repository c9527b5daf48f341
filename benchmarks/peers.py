#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time other libraries on the same card, planes and filters as a run of the benchmark:

    gpuconv --bench --json > bench.json
    python3 benchmarks/peers.py bench.json > peers.json

The peers: CuPy (ndimage.correlate, gaussian_filter), cuFFT through CuPy, PyTorch's conv2d (cuDNN), NPP (FilterBorder,
FilterGaussBorder, FilterGaussAdvancedBorder, GradientVectorSobelBorder). A table with the ratios goes to standard
error. A peer that is missing or fails is named with the reason, and the others continue.

Needs Python 3.8, an NVIDIA GPU, and CuPy with NumPy, which also hold the planes, check and time. The rest is optional:
PyTorch, and NPP, whose libnppif.so and libnppc.so come with `pip install nvidia-npp` (CUDA 13; CUDA 12:
nvidia-npp-cu12) or are in the folder of --npp.

The method is that of gpuconv --bench: one plane, border replicate, random samples (all levels, or floats from 0 to 1);
CUDA events on one stream; 3 warm-ups, then 21 runs, or 5 if one takes more than 200 ms; several calls are timed
together if they are too short for the events; buffers rotate, so that three times the L2 is touched between two uses.
Before each run a small kernel keeps the card busy until the host has queued the work. So Python's own time is not
counted, which favours the peers.

  whole  from a plane to a plane of the same type, as in gpuconv's time. Steps that a library
         lacks are added as fused passes: one converts and pads before the call, one rounds and clamps after it.
  call   the library's call alone, on an input that is already prepared (float, padded), which favours the peer.

A peer that does everything in one call has only `whole` rows.

Each output is compared with the exact answer: integer sums in 64 bits, rounded once, for uint8_t and uint16_t; sums in
double for float, and for a filter in two passes, which is a row and a column of weights here. Calls that take a grid of
taps get none of more than 31 taps a side. `different` counts the samples that differ at all (float: by more than the
rounding of float sums allows). A Gaussian that a library generates itself is compared with the same Gaussian in double,
because its taps are not the filter's.

PyTorch is timed with float32, with TF32, and with float16. TF32 keeps 11 bits of each tap and sample: enough for
integer taps up to 2048 and 8-bit samples, not for float planes. A float16 has 11 bits too, and it holds the sums, so
they are not exact. Taps are divided by the scale first, because a float16 ends at 65504. Samples of uint16_t have more
than 11 bits, so only float32 is timed with them.
"""
import argparse
import datetime
import glob
import json
import math
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from fractions import Fraction

WARM_UPS, RUNS = 3, 21       # as gpuconv --bench: 21, so that the median is one of the runs
SLOW_MS, SLOW_RUNS = 200, 5  # 21 runs of more would take longer than all other rows
BATCH_MS = 0.1               # events are told apart by 0.5 us: half a percent of this
LONGEST_S = 10               # a first call (cuDNN tries its algorithms in it) expected to take longer is not made
DENSE = 31                   # a side; calls that take a grid of taps get no larger filters: they would take seconds
DEATHS = 10                  # a group that takes its process down so often is given up
GRACE_S = 60                 # a group of peers that takes this much longer than its share of the time is ended
FIELDS = ("peer", "part", "filter", "filter_width", "filter_height", "sample", "width", "height", "planes", "runs",
          "median_ms", "min_ms", "max_ms", "different", "largest_difference", "gpuconv_ms", "gpuconv_variant", "ratio",
          "status", "note")

# The kernels that are not a peer's: what is exact, and what a peer lacks. They are also C++ for the host, where
# --self-test runs them. In the oracle SAMPLE is the type of the plane and SUM holds its sums exactly (integers) or with
# 29 bits more than a float (double); OUT is what is compared.
KERNELS = r"""
typedef unsigned char uint8;
typedef unsigned short uint16;

template <class SAMPLE, class TAP, class SUM>
__device__ SUM sum_at(const SAMPLE *in, const TAP *taps, int width, int height, int filter_width, int filter_height,
                      int y, int x)
{
    SUM sum = 0;
    for (int i = 0; i < filter_height; i++)
        for (int j = 0; j < filter_width; j++) {
            int row = y + i - filter_height / 2, column = x + j - filter_width / 2;
            row = row < 0 ? 0 : row >= height ? height - 1 : row;
            column = column < 0 ? 0 : column >= width ? width - 1 : column;
            sum += (SUM)taps[i * filter_width + j] * (SUM)in[(size_t)row * width + column];
        }
    return sum;
}

/* A block walks over rows, its threads over the samples of one: no index is divided. */
#define EACH_SAMPLE(y, x, width, height)                                                                               \
    for (int y = (int)blockIdx.x; y < (height); y += (int)gridDim.x)                                                   \
        for (int x = (int)threadIdx.x; x < (width); x += (int)blockDim.x)

/* Random planes: a counter, hashed (splitmix64). */
__device__ unsigned random_bits(unsigned long long seed)
{
    unsigned long long z = seed * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (unsigned)(z >> 40); /* 24 bits: as many as a float holds */
}

#define RANDOM(SAMPLE, shift)                                                                                          \
    extern "C" __global__ void random_##SAMPLE(SAMPLE *out, int width, int height, long long seed)                     \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height)                                                                               \
            out[(size_t)y * width + x] = (SAMPLE)(random_bits((size_t)y * width + x + (seed << 40)) >> shift);         \
    }
RANDOM(uint8, 16)
RANDOM(uint16, 8)

extern "C" __global__ void random_float(float *out, int width, int height, long long seed)
{
    EACH_SAMPLE(y, x, width, height)
        out[(size_t)y * width + x] = (float)random_bits((size_t)y * width + x + (seed << 40)) / 16777216;
}

#define EXACT(SAMPLE, highest)                                                                                         \
    extern "C" __global__ void exact_##SAMPLE(const SAMPLE *in, const long long *taps, SAMPLE *out, int width,         \
                                              int height, int filter_width, int filter_height, long long bias,         \
                                              long long scale, int absolute)                                           \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height) {                                                                             \
            long long t =                                                                                              \
                sum_at<SAMPLE, long long, long long>(in, taps, width, height, filter_width, filter_height, y, x);      \
            t = (absolute && t < 0 ? -t : t) + bias;                                                                   \
            t = t < 0 ? 0 : t / scale;                                                                                 \
            out[(size_t)y * width + x] = (SAMPLE)(t > highest ? highest : t);                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* Two grids: the root of the sum of squares. */                                                                   \
    extern "C" __global__ void exact_root_##SAMPLE(const SAMPLE *in, const long long *taps, SAMPLE *out, int width,    \
                                                   int height, int filter_width, int filter_height, double bias,       \
                                                   double scale)                                                       \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height) {                                                                             \
            const double s =                                                                                           \
                (double)sum_at<SAMPLE, long long, long long>(in, taps, width, height, filter_width, filter_height, y,  \
                                                             x);                                                       \
            const double t = (double)sum_at<SAMPLE, long long, long long>(                                             \
                in, taps + filter_width * filter_height, width, height, filter_width, filter_height, y, x);            \
            const double level = floor(sqrt(s * s + t * t) / scale + bias);                                            \
            out[(size_t)y * width + x] = (SAMPLE)(level < 0 ? 0 : level > highest ? highest : level);                  \
        }                                                                                                              \
    }
EXACT(uint8, 255)
EXACT(uint16, 65535)

extern "C" __global__ void exact_float(const float *in, const double *taps, double *out, int width, int height,
                                       int filter_width, int filter_height)
{
    EACH_SAMPLE(y, x, width, height)
        out[(size_t)y * width + x] =
            sum_at<float, double, double>(in, taps, width, height, filter_width, filter_height, y, x);
}

/* Taps that are no integers, a row and a column of them: the Gaussians. The column may add a half, for rounding. */
#define EXACT_ROW(SAMPLE)                                                                                              \
    extern "C" __global__ void exact_row_##SAMPLE(const SAMPLE *in, const double *taps, double *out, int width,        \
                                                  int height, int count)                                               \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height)                                                                               \
            out[(size_t)y * width + x] = sum_at<SAMPLE, double, double>(in, taps, width, height, count, 1, y, x);      \
    }
#define EXACT_COLUMN(OUT, half)                                                                                        \
    extern "C" __global__ void exact_column_##OUT(const double *in, const double *taps, OUT *out, int width,           \
                                                  int height, int count)                                               \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height)                                                                               \
            out[(size_t)y * width + x] =                                                                               \
                (OUT)(half + sum_at<double, double, double>(in, taps, width, height, 1, count, y, x));                 \
    }
EXACT_ROW(uint8)
EXACT_ROW(uint16)
EXACT_ROW(float)
EXACT_COLUMN(uint8, 0.5)
EXACT_COLUMN(uint16, 0.5)
EXACT_COLUMN(double, 0)

/* A plane to float, with its border around it: LEFT and TOP samples before, the rest after. */
#define PAD(name, SAMPLE, TO)                                                                                          \
    extern "C" __global__ void name(const SAMPLE *in, TO *out, int width, int height, int left, int top,               \
                                    int padded_width, int padded_height)                                               \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, padded_width, padded_height) {                                                               \
            int row = y - top, column = x - left;                                                                      \
            row = row < 0 ? 0 : row >= height ? height - 1 : row;                                                      \
            column = column < 0 ? 0 : column >= width ? width - 1 : column;                                            \
            out[(size_t)y * padded_width + x] = (TO)in[(size_t)row * width + column];                                  \
        }                                                                                                              \
    }
PAD(pad_uint8, uint8, float)
PAD(pad_uint16, uint16, float)
PAD(pad_float, float, float)

/* clamp(floor((sum + bias) * factor)) of sums that stand in rows of STRIDE; in double, so that nothing is lost here. */
#define ROUND(name, SUM, SAMPLE, highest)                                                                              \
    extern "C" __global__ void name(const SUM *sums, SAMPLE *out, int width, int height, int stride, double bias,      \
                                    double factor)                                                                     \
    {                                                                                                                  \
        EACH_SAMPLE(y, x, width, height) {                                                                             \
            const double t = floor(((double)sums[(size_t)y * stride + x] + bias) * factor);                            \
            out[(size_t)y * width + x] = (SAMPLE)(t < 0 ? 0 : t > highest ? highest : t);                              \
        }                                                                                                              \
    }
ROUND(round_float_uint8, float, uint8, 255)
ROUND(round_float_uint16, float, uint16, 65535)
ROUND(round_short_uint8, short, uint8, 255)
"""

# What only a device compiler takes: float16, and the kernel that keeps the card busy for some nanoseconds.
DEVICE_KERNELS = "#include <cuda_fp16.h>\n" + KERNELS + r"""
PAD(pad_half, uint8, __half)
ROUND(round_half_uint8, __half, uint8, 255)

extern "C" __global__ void busy(long long nanoseconds)
{
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}
"""

# The same source as host C++: one thread that walks over all samples.
HOST_HEAD = """
#include <cmath>
#include <cstddef>
#define __global__
#define __device__ static
struct one { unsigned x; };
static const one blockIdx = {0}, threadIdx = {0}, blockDim = {1}, gridDim = {1};
using std::floor;
using std::sqrt;
"""


class Skip(Exception):
    """This peer does not take this case; the text says why."""


# --- The pure parts: no library, no GPU -----------------------------------------------------------------------------


def rows_of(taps, width):
    return [list(taps[i:i + width]) for i in range(0, len(taps), width)]


def flipped(taps):
    """Turned by 180 degrees: what a library that calls true convolution a filter has to be given."""
    return [row[::-1] for row in taps[::-1]]


def factor(taps):
    """(column, row) of integers whose product the taps are, or None."""
    pivot = next((row for row in taps if any(row)), None)
    if pivot is None:
        return None
    divisor = math.gcd(*pivot) if len(pivot) > 1 else abs(pivot[0])
    row = [tap // divisor for tap in pivot]
    k = next(i for i, tap in enumerate(row) if tap)
    column = [line[k] // row[k] for line in taps]
    return (column, row) if all(line == [c * r for r in row] for line, c in zip(taps, column)) else None


def facts_of(filter, sample):
    """A filter may be another one for samples of more than 8 bits."""
    return filter["deep"] if sample != "uint8" and filter.get("deep") else filter


def bias_of(scale, offset):
    """B of clamp(floor((sum + B) / D)), which is clamp(round(sum / D + O))."""
    return math.floor(scale * (Fraction(offset) + Fraction(1, 2)))


def rounding(scale, offset, divided):
    """(bias, factor) that round float sums, either whole or DIVIDED by the scale already. Whole sums are integers: half
    of one more keeps floor(sum * (1 / D)) from falling short, as sum / D is never within 1 / 2D of the next integer."""
    return (offset + 0.5, 1.0) if divided else (bias_of(scale, offset) + 0.5, 1 / scale)


def gaussian(size, sigma):
    """SIZE taps of a Gaussian that sum to 1."""
    taps = [math.exp(-0.5 * ((i - size // 2) / sigma) ** 2) for i in range(size)]
    total = sum(taps)
    return [tap / total for tap in taps]


def npp_sigma(size):
    """What nppi_filtering_functions.h says that FilterGaussBorder uses; the others are given the same."""
    return 0.4 + size // 2 * 0.6


def fast_length(n):
    """The least length from N on that has no prime factor above 7, for cuFFT."""
    while True:
        rest = n
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


def summary(times):
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[0], ordered[-1]


def expected_seconds(seen, area):
    """What a first call should take at AREA samples, from [(area, seconds)] of smaller ones: what it takes always, plus
    what grows with the area. None where nothing is known."""
    if not seen:
        return None
    if len(seen) == 1:
        return seen[0][1]
    (small, first), (large, second) = seen[-2:]
    slope = max(0, second - first) / (large - small)
    return second + slope * (area - large)


def cases_of(bench, sizes, samples, names):
    """The cases to time, each a dict, the ones that say most first: int8, separable, then the rest; within, from small
    to large. Float planes take the filters that the benchmark gave them."""
    kinds = {"int8": 0, "rank1": 1}
    timed = {(row["filter"], row["sample"]) for row in bench["rows"] if row["backend"] == "cuda"}
    cases = []
    for name in bench["filters"]:
        for sample in samples:
            filter = facts_of(bench["filters"][name], sample)
            if (names and name not in names) or (timed and (name, sample) not in timed):
                continue
            for size in sizes:
                cases.append({"filter": name, "filter_width": filter["width"], "filter_height": filter["height"],
                              "sample": sample, "width": size, "height": size, "planes": 1})
    return sorted(cases, key=lambda c: (kinds.get(c["filter"].split("-")[0], 2), c["width"], c["sample"] != "uint8",
                                        c["filter_width"] * c["filter_height"]))


def gpuconv_time(bench, case):
    """(ms, variant) of the row that the automatic choice takes, or (None, None)."""
    for row in bench["rows"]:
        if row["backend"] == "cuda" and row.get("chosen") and row.get("border", "replicate") == "replicate" and \
                all(row[key] == case[key] for key in ("filter", "sample", "width", "height", "planes")):
            return row["median_ms"], row["variant"]
    return None, None


def make_row(bench, case, peer, part, **more):
    row = dict.fromkeys(FIELDS)
    row.update(case, peer=peer, part=part, status="ok", note="")
    row.update(more)
    row["gpuconv_ms"], row["gpuconv_variant"] = gpuconv_time(bench, case)
    if row["median_ms"] is not None and row["gpuconv_ms"]:
        row["ratio"] = row["median_ms"] / row["gpuconv_ms"]
    return row


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def table(rows, libraries, absent):
    """The table for people: a group a case, a line a peer; what failed or was skipped follows, each reason once."""
    lines = ["  ".join(f"{name} {version}" for name, version in libraries.items())]
    head = f"{'peer':<34} {'call ms':>10} {'ratio':>7} {'whole ms':>10} {'ratio':>7} {'different':>11}  largest"
    groups = {}
    for row in rows:
        key = tuple(row[k] for k in ("width", "height", "sample", "filter"))
        groups.setdefault(key, {}).setdefault(row["peer"], {})[row["part"]] = row
    reasons = {}
    for (width, height, sample, name), peers in groups.items():
        first = next(iter(next(iter(peers.values())).values()))
        lines += ["", f"{name}, {sample}, {width} x {height}: gpuconv ({first['gpuconv_variant'] or 'not timed'}) "
                      f"{number(first['gpuconv_ms'], 4)} ms", head]
        for peer, parts in peers.items():
            ok = {part: row for part, row in parts.items() if row["status"] == "ok"}
            for row in parts.values():
                if row["status"] != "ok":
                    reasons.setdefault((peer, row["note"]), []).append(f"{name} {sample} {width}")
            if not ok:
                continue
            call, whole = ok.get("call", {}), ok.get("whole", {})
            either = whole or call
            largest = either.get("largest_difference")
            lines.append(f"{peer:<34} {number(call.get('median_ms'), 4):>10} {number(call.get('ratio'), 2):>7} "
                         f"{number(whole.get('median_ms'), 4):>10} {number(whole.get('ratio'), 2):>7} "
                         f"{'-' if either.get('different') is None else either['different']:>11}  "
                         f"{'-' if largest is None else format(largest, '.3g')}")
    if reasons or absent:
        lines += ["", "Not timed:"] + [f"  {group}: {why}" for group, why in absent.items()]
        for (peer, note), where in reasons.items():
            shown = ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")
            lines.append(f"  {peer}: {note} ({shown})")
    return "\n".join(lines)


# --- The card: planes, the exact answer, time -----------------------------------------------------------------------


class Bench:
    """What the peers of one worker share: the stream, the kernels, and the case at hand."""

    def __init__(self):
        import cupy
        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        device = cupy.cuda.Device()
        self.name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"].decode()
        self.l2 = device.attributes["L2CacheSize"]
        self.blocks = device.attributes["MultiProcessorCount"] * 8  # 8 blocks of 256 threads fill a multiprocessor
        # float16's header is CUDA's: where it is missing the float16 rows fail by name, and the rest is compiled alone.
        try:
            self.module = cupy.RawModule(code=DEVICE_KERNELS)
            self.module.get_function("busy")
        except Exception:
            without = DEVICE_KERNELS.replace("#include <cuda_fp16.h>\n", "")
            without = without.replace("PAD(pad_half, uint8, __half)\nROUND(round_half_uint8, __half, uint8, 255)\n", "")
            self.module = cupy.RawModule(code=without)
        self.case = None

    def run(self, name, *arguments):
        self.module.get_function(name)((self.blocks,), (256,), arguments)

    def begin(self, case, filter):
        """Make the planes of a case: as many as put three times the L2 between two uses of one."""
        cupy = self.cupy
        self.end()
        self.case, self.filter = case, filter
        self.width, self.height = case["width"], case["height"]
        self.columns, self.rows = filter["width"], filter["height"]
        self.two_pass, self.root = filter["taps"] is None, filter.get("combine", "none") != "none"
        if self.two_pass:
            self.factors = filter["column"], filter["row"]
            self.scale = sum(filter["column"]) * sum(filter["row"])
            self.taps = [[c * r for r in filter["row"]] for c in filter["column"]]
        else:
            self.taps = rows_of(filter["taps"], self.columns)
            self.factors = None if self.root else factor(self.taps)
            self.scale = filter["scale"]
        self.sample, self.floats = case["sample"], case["sample"] == "float"
        self.offset = filter["offset"] * (257 if self.sample == "uint16" else 1)
        self.type = {"uint8": cupy.uint8, "uint16": cupy.uint16, "float": cupy.float32}[self.sample]
        size = self.width * self.height * self.type().itemsize
        self.count = max(2, -(-3 * self.l2 // (2 * size)))
        self.planes = self.outputs()
        for k, plane in enumerate(self.planes):
            self.run("random_" + self.sample, plane, cupy.int32(self.width),
                     cupy.int32(self.height), cupy.int64(k + 1))
        self.answers = {}

    def end(self):
        self.planes = self.answers = None
        self.stream.synchronize()
        self.cupy.get_default_memory_pool().free_all_blocks()

    def outputs(self, type=None, shape=None):
        return [self.cupy.empty(shape or (self.height, self.width), type or self.type) for _ in range(self.count)]

    def divided(self, taps=None):
        """Taps over the scale, for libraries that take no scale."""
        return self.cupy.array(taps or self.taps, dtype=self.cupy.float64) / self.scale

    def exact(self, offset=True, gauss=None):
        """The exact answer for the first plane; with GAUSS, (size, sigma), that of such a Gaussian."""
        key = (offset, gauss)
        if key in self.answers:
            return self.answers[key]
        cupy, i32 = self.cupy, self.cupy.int32
        shape = i32(self.width), i32(self.height)
        filter_shape = i32(self.columns), i32(self.rows)
        out = cupy.empty((self.height, self.width), cupy.float64 if self.floats else self.type)
        if gauss is not None or self.two_pass:
            column, row = [gaussian(*gauss)] * 2 if gauss else ([tap / sum(taps) for tap in taps]
                                                                for taps in self.factors)
            between = cupy.empty((self.height, self.width), cupy.float64)
            self.run("exact_row_" + self.sample, self.planes[0], cupy.array(row), between, *shape, i32(len(row)))
            self.run("exact_column_" + ("double" if self.floats else self.sample), between, cupy.array(column), out,
                     *shape, i32(len(column)))
        elif self.floats:
            self.run("exact_float", self.planes[0], self.divided(), out, *shape, *filter_shape)
        elif self.root:
            self.run("exact_root_" + self.sample, self.planes[0], cupy.array(self.taps, dtype=cupy.int64), out, *shape,
                     *filter_shape, cupy.float64(self.offset + 0.5), cupy.float64(self.scale))
        else:
            bias = bias_of(self.scale, self.offset if offset else 0)
            self.run("exact_" + self.sample, self.planes[0], cupy.array(self.taps, dtype=cupy.int64), out, *shape,
                     *filter_shape, cupy.int64(bias), cupy.int64(self.scale), i32(self.filter["absolute"]))
        self.answers[key] = out
        return out

    def compare(self, actual, offset=True, gauss=None):
        """(how many samples differ, the largest difference; None where that is no number)."""
        cupy = self.cupy
        expected = self.exact(offset, gauss)
        if actual.shape != expected.shape or actual.dtype != self.type:
            raise RuntimeError(f"the output is {actual.dtype} {actual.shape}, not {self.type.__name__} "
                               f"{expected.shape}")
        # check_variants' bound for a sum of n float products of samples up to 1, plus 1 for the taps' own rounding.
        total = 1 if gauss is not None else sum(abs(tap) for row in self.taps for tap in row) / self.scale
        allowed = (self.rows * self.columns + 9) * 2.0 ** -24 * total if self.floats else 0
        different, largest = 0, 0.0
        step = max(1, (1 << 26) // self.width)  # rows of 64 Mi samples at a time, for the memory that this takes
        for y in range(0, self.height, step):
            distance = cupy.abs(actual[y:y + step].astype(cupy.float64) - expected[y:y + step])
            different += int(cupy.count_nonzero(~(distance <= allowed)))  # so that a NaN counts
            largest = max(largest, float(cupy.nan_to_num(distance, nan=cupy.inf).max()))
        return different, largest if math.isfinite(largest) else None

    def padded(self, type="float", width=None, height=None):
        """(buffers for planes of float or half with their border, the step that fills number K)."""
        cupy, i32 = self.cupy, self.cupy.int32
        width, height = width or self.width + self.columns - 1, height or self.height + self.rows - 1
        name = "pad_half" if type == "half" else "pad_" + self.sample
        buffers = self.outputs(cupy.float16 if type == "half" else cupy.float32, (height, width))

        def pad(k):
            self.run(name, self.planes[k], buffers[k], i32(self.width), i32(self.height), i32(self.columns // 2),
                     i32(self.rows // 2), i32(width), i32(height))

        return buffers, pad

    def rounded(self, sums, out, stride, divided=False, sum="float"):
        """Round sums to a plane of integers."""
        cupy, i32 = self.cupy, self.cupy.int32
        bias, factor = rounding(self.scale, self.offset, divided)
        self.run(f"round_{sum}_{self.sample}", sums, out, i32(self.width), i32(self.height), i32(stride),
                 cupy.float64(bias), cupy.float64(factor))

    def time(self, step):
        """{runs, median_ms, min_ms, max_ms} of step(k)."""
        cupy, stream = self.cupy, self.stream
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        used = 0

        def once(batch, busy_ns):
            nonlocal used
            self.module.get_function("busy")((1,), (1,), (cupy.int64(busy_ns),))
            begin = time.perf_counter()
            start.record(stream)
            for _ in range(batch):
                step(used % self.count)
                used += 1
            stop.record(stream)
            queued = time.perf_counter() - begin
            stop.synchronize()
            return cupy.cuda.get_elapsed_time(start, stop) / batch, queued

        step(0)
        ms, queued = once(1, 0)
        runs = RUNS
        if ms > SLOW_MS:
            runs, batch = SLOW_RUNS, 1
        else:
            # Every buffer once, and one more: then the libraries' own allocators have what they need.
            for _ in range(max(WARM_UPS - 2, self.count + 1)):
                ms, queued = once(1, 0)
            # That time may hold the host's; a busy card in front takes it out.
            ms, queued = once(1, min(50e6, 2e9 * queued))
            batch = max(1, min(self.count, math.ceil(BATCH_MS / max(ms, 1e-3))))
        # Twice the time that queueing took, and a fifth of a millisecond for what varies; 50 ms at most, where the
        # call is long anyway.
        busy_ns = min(50e6, 2e9 * queued * batch + 2e5)
        median, least, most = summary([once(batch, busy_ns)[0] for _ in range(runs)])
        return {"runs": runs, "median_ms": median, "min_ms": least, "max_ms": most}


class Peer:
    """One way to do a case. whole(k) takes plane K to result(k); call(k) is the library's part of it alone, or None
    where that is all. GAUSS: size and sigma of a Gaussian that the peer makes itself."""

    def __init__(self, whole, result, call=None, note="", offset=True, gauss=None):
        self.whole, self.result, self.call = whole, result, call
        self.note, self.offset, self.gauss = note, offset, gauss


# --- The peers; one that is not meant for a case is None -------------------------------------------------------------


def square(bench):
    if bench.rows != bench.columns or bench.rows % 2 == 0:
        raise Skip("takes square filters of odd size only")
    return bench.rows


def dense(bench):
    """Is the filter one for calls that take a grid of taps?"""
    return not bench.root and max(bench.rows, bench.columns) <= DENSE


def cupy_correlate(bench):
    from cupyx.scipy import ndimage
    if not dense(bench):
        return None
    cupy, out = bench.cupy, bench.outputs()
    if bench.floats:
        taps = bench.divided().astype(cupy.float32)
        return Peer(lambda k: ndimage.correlate(bench.planes[k], taps, output=out[k], mode="nearest"),
                    lambda k: out[k])
    # With an output of uint8 the sum would be cut and wrap; so to float, and rounded from there.
    taps = cupy.array(bench.taps, dtype=cupy.float64) / (bench.scale if bench.two_pass else 1)
    taps, sums = taps.astype(cupy.float32), bench.outputs(cupy.float32)

    def call(k):
        ndimage.correlate(bench.planes[k], taps, output=sums[k], mode="nearest")

    def whole(k):
        call(k)
        bench.rounded(sums[k], out[k], bench.width, bench.two_pass)

    return Peer(whole, lambda k: out[k], call, "sums in float")


def cupy_gaussian(bench):
    """Of the size of the filter, or for gaussian:SIGMA of that sigma, 4 of which it covers by default."""
    from cupyx.scipy import ndimage
    if not bench.factors:
        return None
    if bench.two_pass:
        sigma, truncate = float(bench.case["filter"].split(":")[1]), 4.0
        size = 2 * int(truncate * sigma + 0.5) + 1
    else:
        size = square(bench)
        sigma = npp_sigma(size)
        truncate = (size // 2) / sigma  # radius = int(truncate * sigma + 1/2)
    out = bench.outputs()
    note = f"taps are a Gaussian's, {size} of them" + ("" if bench.floats else f"; both passes cut to {bench.sample}")
    return Peer(lambda k: ndimage.gaussian_filter(bench.planes[k], sigma, output=out[k], mode="nearest",
                                                  truncate=truncate),
                lambda k: out[k], None, note, gauss=(size, sigma))


def cufft(bench):
    """Circular correlation of the plane with its border: irfft2(rfft2(plane) * conj(rfft2(taps)))."""
    if bench.root:
        return None
    cupy = bench.cupy
    height = fast_length(bench.height + bench.rows - 1)
    width = fast_length(bench.width + bench.columns - 1)
    divided = bench.floats or bench.two_pass
    scale = bench.scale if divided else 1
    spread = cupy.zeros((height, width), cupy.float32)
    spread[:bench.rows, :bench.columns] = cupy.array(bench.taps, dtype=cupy.float64) / scale
    transform = cupy.conj(cupy.fft.rfft2(spread))
    inputs, pad = bench.padded(width=width, height=height)
    sums = [None] * bench.count
    out = bench.outputs()

    def call(k):
        product = cupy.fft.rfft2(inputs[k])
        product *= transform
        sums[k] = cupy.fft.irfft2(product, s=(height, width))

    def whole(k):
        pad(k)
        call(k)
        if bench.floats:
            out[k][...] = sums[k][:bench.height, :bench.width]
        else:
            bench.rounded(sums[k], out[k], width, divided)

    for k in range(bench.count):
        pad(k)
    return Peer(whole, lambda k: out[k], call, f"transforms of {width} x {height}")


def torch_conv(bench, tf32=False, half=False, passes=1):
    import torch
    cupy = bench.cupy
    factors = bench.factors
    if (half and bench.floats) or (passes == 2 and not factors) or (passes == 1 and not dense(bench)):
        return None
    if (half or tf32) and bench.sample == "uint16":
        return None  # 11 bits of a sample
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = tf32 or half  # for the exact one the choice of PyTorch itself
    type = cupy.float16 if half else cupy.float32
    divided = half or bench.floats or bench.two_pass  # float16 ends at 65504: sums of whole taps would not fit
    if passes == 2:
        shapes = [[factors[1]], [[c] for c in factors[0]]]
        scales = list(map(sum, factors[::-1])) if bench.two_pass else [1, bench.scale if divided else 1]
    else:
        shapes, scales = [bench.taps], [bench.scale if divided else 1]
    taps = [torch.from_dlpack((cupy.array(shape, dtype=cupy.float64) / scale).astype(type))[None, None]
            for shape, scale in zip(shapes, scales)]
    buffers, pad = bench.padded("half" if half else "float")
    inputs = [torch.from_dlpack(buffer)[None, None] for buffer in buffers]
    sums, out = [None] * bench.count, bench.outputs()
    queue = torch.cuda.ExternalStream(bench.stream.ptr)

    def call(k):
        with torch.no_grad(), torch.cuda.stream(queue):
            result = inputs[k]
            for weight in taps:
                result = torch.nn.functional.conv2d(result, weight)
            sums[k] = result

    def whole(k):
        pad(k)
        call(k)
        if not bench.floats:
            bench.rounded(cupy.asarray(sums[k]), out[k], bench.width, divided, "half" if half else "float")

    def result(k):
        return cupy.asarray(sums[k])[0, 0] if bench.floats else out[k]

    for k in range(bench.count):
        pad(k)
    bench.stream.synchronize()
    note = "float16" if half else "TF32" if tf32 else "float32, TF32 off"
    return Peer(whole, result, call, note + ("; cudnn.benchmark" if tf32 or half else ""))


class Npp:
    """libnppif through ctypes: the functions with a stream context, which exist from CUDA 10.1 on."""

    REPLICATE = 2  # NPP_BORDER_REPLICATE, nppdefs.h
    NORM_L2 = 2    # nppiNormL2, nppdefs.h
    SUFFIXES = {"uint8": "_8u_C1R", "uint16": "_16u_C1R", "float": "_32f_C1R"}
    MASKS = {3: 200, 5: 201, 7: 400, 9: 500, 11: 600, 13: 700, 15: 800}  # NPP_MASK_SIZE_N_X_N, nppdefs.h

    def __init__(self, bench, folder):
        import ctypes
        self.ctypes, self.bench = ctypes, bench

        class Context(ctypes.Structure):
            """NppStreamContext, nppdefs.h"""
            _fields_ = [("stream", ctypes.c_void_p), ("device", ctypes.c_int), ("multiprocessors", ctypes.c_int),
                        ("threads_per_multiprocessor", ctypes.c_int), ("threads_per_block", ctypes.c_int),
                        ("shared_memory_per_block", ctypes.c_size_t), ("major", ctypes.c_int),
                        ("minor", ctypes.c_int), ("stream_flags", ctypes.c_uint), ("reserved", ctypes.c_int)]

        class Pair(ctypes.Structure):
            """NppiSize and NppiPoint"""
            _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int)]

        class Version(ctypes.Structure):
            _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("build", ctypes.c_int)]

        assert ctypes.sizeof(Context) == 48
        self.Pair, self.Context = Pair, Context
        path = npp_library(folder)
        core = os.path.join(os.path.dirname(path), os.path.basename(path).replace("nppif", "nppc"))
        core = ctypes.CDLL(core, mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(path)
        core.nppGetLibVersion.restype = ctypes.POINTER(Version)
        version = core.nppGetLibVersion().contents
        self.version = f"{version.major}.{version.minor}.{version.build}"
        device = bench.cupy.cuda.Device()
        facts = device.attributes
        self.context = Context(bench.stream.ptr, device.id, facts["MultiProcessorCount"],
                               facts["MaxThreadsPerMultiProcessor"], facts["MaxThreadsPerBlock"],
                               facts["MaxSharedMemoryPerBlock"], int(device.compute_capability[:-1]),
                               int(device.compute_capability[-1]), 1)  # cudaStreamNonBlocking
        self.turned = None

    def call(self, name, source, target, *middle):
        """nppiNAME_Ctx(source, step, size, offset, target, step, size, MIDDLE..., replicate, context)"""
        c, Pair = self.ctypes, self.Pair
        try:
            function = getattr(self.library, f"nppi{name}_Ctx")
        except AttributeError:
            raise Skip(f"this NPP has no nppi{name}_Ctx") from None
        pointer, size = c.c_void_p, Pair(source.shape[1], source.shape[0])
        types = {int: c.c_int, pointer: pointer, Pair: Pair}
        arguments = [pointer(source.data.ptr), c.c_int(source.strides[0]), size, Pair(0, 0),
                     pointer(target.data.ptr), c.c_int(target.strides[0]), size]
        arguments += [types[type(value)](value) if type(value) is int else value for value in middle]
        arguments += [c.c_int(self.REPLICATE), self.context]
        function.restype = c.c_int
        status = function(*arguments)
        if status < 0:
            raise RuntimeError(f"nppi{name}_Ctx returned status {status}")

    def taps(self, type, divided):
        """Taps on the device, in the order that NPP wants. Its header says reversed; a small picture and asymmetric
        taps tell once whether that holds."""
        cupy, bench = self.bench.cupy, self.bench
        if self.turned is None:
            picture = cupy.arange(40 * 48, dtype=cupy.float32).reshape(40, 48) ** 2 % 251
            probe = [[1, 2, 3], [4, 5, 6], [7, 8, 10]]
            expected = sum(probe[i][j] * picture[i:i + 38, j:j + 46] for i in range(3) for j in range(3))
            for turned in (True, False):
                weights = cupy.array(flipped(probe) if turned else probe, dtype=cupy.float32)
                actual = cupy.zeros_like(picture)
                self.call("FilterBorder_32f_C1R", picture, actual, self.pointer(weights), self.Pair(3, 3),
                          self.Pair(1, 1))
                bench.stream.synchronize()
                if bool((actual[1:39, 1:47] == expected).all()):
                    self.turned = turned
                    break
            else:
                raise RuntimeError("FilterBorder gives the right sums with taps neither reversed nor as drawn")
        taps = flipped(bench.taps) if self.turned else bench.taps
        return (cupy.array(taps, dtype=cupy.float64) / (bench.scale if divided else 1)).astype(type)

    def pointer(self, array):
        return self.ctypes.c_void_p(array.data.ptr)

    def anchor(self):
        """The tap over the pixel, counted in the order in which the taps are given."""
        b = self.bench
        x, y = b.columns // 2, b.rows // 2
        return self.Pair(b.columns - 1 - x, b.rows - 1 - y) if self.turned else self.Pair(x, y)

    def filter_border(self, float_taps):
        b = self.bench
        if not dense(b) or (b.two_pass and not float_taps):
            return None
        out = b.outputs()
        size = self.Pair(b.columns, b.rows)
        if float_taps:
            taps = self.taps(b.cupy.float32, True)
            name, more = ("FilterBorder" if b.floats else "FilterBorder32f"), ()
        else:
            taps, name, more = self.taps(b.cupy.int32, False), "FilterBorder", (b.scale,)
        name += self.SUFFIXES[b.sample]
        pointer, anchor = self.pointer(taps), self.anchor()

        def whole(k, _taps=taps):  # the taps live as long as the pointer to them
            self.call(name, b.planes[k], out[k], pointer, size, anchor, *more)

        note = "" if b.floats or not b.offset else "the offset is left out, here and in the exact answer"
        return Peer(whole, lambda k: out[k], None, note, offset=False)

    def gauss_border(self, advanced):
        b = self.bench
        if not b.factors:
            return None
        size, out = square(b), b.outputs()
        name = ("FilterGaussAdvancedBorder" if advanced else "FilterGaussBorder") + self.SUFFIXES[b.sample]
        gauss = None if b.two_pass and advanced else (size, npp_sigma(size))
        if advanced:
            taps = b.cupy.array(gaussian(*gauss) if gauss else b.factors[1], dtype=b.cupy.float64)
            taps = (taps / taps.sum()).astype(b.cupy.float32)
            more = (size, self.pointer(taps))
        elif size in self.MASKS:
            taps, more = None, (self.MASKS[size],)
        else:
            raise Skip("takes 3 to 15 taps")

        def whole(k, _taps=taps):
            self.call(name, b.planes[k], out[k], *more)

        note = "taps are a Gaussian's, of the same size" if gauss else "the filter's taps"
        return Peer(whole, lambda k: out[k], None, note, gauss=gauss)

    def gradient(self):
        """The root of the sum of squares of Sobel's slopes, alone, in a type that is wider than the samples."""
        b, c = self.bench, self.ctypes
        if b.case["filter"] != "sobel" or b.floats:
            return None
        name, sum = {"uint8": ("8u16s", "short"), "uint16": ("16u32f", "float")}[b.sample]
        function = getattr(self.library, f"nppiGradientVectorSobelBorder_{name}_C1R_Ctx", None)
        if function is None:
            raise Skip(f"this NPP has no nppiGradientVectorSobelBorder_{name}_C1R_Ctx")
        function.restype = c.c_int
        sums, out = b.outputs(b.cupy.int16 if sum == "short" else b.cupy.float32), b.outputs()
        size, none = self.Pair(b.width, b.height), (c.c_void_p(), c.c_int(0))

        def call(k):
            status = function(c.c_void_p(b.planes[k].data.ptr), c.c_int(b.planes[k].strides[0]), size, self.Pair(0, 0),
                              *none, *none, c.c_void_p(sums[k].data.ptr), c.c_int(sums[k].strides[0]), *none, size,
                              c.c_int(self.MASKS[3]), c.c_int(self.NORM_L2), c.c_int(self.REPLICATE), self.context)
            if status < 0:
                raise RuntimeError(f"nppiGradientVectorSobelBorder_{name}_C1R_Ctx returned status {status}")

        def whole(k):
            call(k)
            b.run(f"round_{sum}_{b.sample}", sums[k], out[k], b.cupy.int32(b.width), b.cupy.int32(b.height),
                  b.cupy.int32(b.width), b.cupy.float64((b.offset + 0.5) * b.scale), b.cupy.float64(1 / b.scale))

        return Peer(whole, lambda k: out[k], call, "the root alone, in " + name[name.index("u") + 1:])


def npp_library(folder):
    """The path of libnppif.so in FOLDER, among Python's packages or in the usual places of CUDA."""
    places = [folder] if folder else [os.path.join(path, "nvidia") for path in sys.path if path] + \
        ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"]
    for place in places:
        found = sorted(glob.glob(os.path.join(glob.escape(place), "**", "libnppif.so*"), recursive=True))
        found = [path for path in found if "/stubs/" not in path]
        if found:
            return found[-1]
    where = f"under {folder}" if folder else "among Python's packages"
    raise Skip(f"no libnppif.so {where}; `pip install nvidia-npp`, or give its folder with --npp")


def group_npp(bench, options):
    npp = Npp(bench, options.npp)
    return {"npp": npp.version}, {
        "NPP FilterBorder": lambda: npp.filter_border(bench.floats),
        "NPP FilterBorder32f": lambda: npp.filter_border(True) if not bench.floats else None,
        "NPP FilterGaussBorder": lambda: npp.gauss_border(False),
        "NPP FilterGaussAdvancedBorder": lambda: npp.gauss_border(True),
        "NPP GradientVectorSobelBorder": npp.gradient}


def group_cupy(bench, options):
    return {"cupy": bench.cupy.__version__}, {
        "CuPy correlate": lambda: cupy_correlate(bench),
        "CuPy gaussian_filter": lambda: cupy_gaussian(bench)}


def group_cufft(bench, options):
    from cupy.cuda import cufft as library
    return {"cufft": str(library.getVersion())}, {"cuFFT": lambda: cufft(bench)}


def group_torch(bench, options):
    import torch
    if not torch.cuda.is_available():
        raise Skip("this PyTorch sees no GPU")
    return {"torch": torch.__version__, "cudnn": str(torch.backends.cudnn.version())}, {
        "PyTorch conv2d": lambda: torch_conv(bench),
        "PyTorch conv2d, two passes": lambda: torch_conv(bench, passes=2),
        "PyTorch conv2d, TF32": lambda: torch_conv(bench, tf32=True),
        "PyTorch conv2d, float16": lambda: torch_conv(bench, half=True)}


def group_opencv(bench, options):
    import cv2
    if not hasattr(cv2, "cuda") or cv2.cuda.getCudaEnabledDeviceCount() == 0:
        raise Skip(f"OpenCV {cv2.__version__} is built without CUDA, as the wheels on PyPI are")
    raise Skip(f"OpenCV {cv2.__version__} has CUDA, but this script does not time it yet")


# In this order, because what one group leaves of its time goes to the next, and PyTorch can use it best.
GROUPS = {"NPP": group_npp, "OpenCV": group_opencv, "cuFFT": group_cufft, "CuPy": group_cupy, "PyTorch": group_torch}


# --- Workers: a process a group, because a fault on the card ends everything in its process ---------------------------


def say(**message):
    print(json.dumps(message), flush=True)


def reason(error):
    if isinstance(error, Skip):
        return str(error)
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def worker(bench_json, options):
    """Time one group's peers; a line of JSON a message: libraries, begin, row."""
    cases = cases_of(bench_json, options.sizes, options.samples, options.filters)
    group = options.worker
    try:
        bench = Bench()
        libraries, peers = GROUPS[group](bench, options)
    except Exception as error:  # whatever keeps the group from starting is the reason that is printed
        text = reason(error)
        if isinstance(error, ImportError) and "cupy" in text:
            text += " (this script holds, checks and times all planes with CuPy)"
        say(absent=text)
        return
    measured = (bench_json.get("device") or {}).get("name")
    if measured and measured != bench.name:
        say(absent=f"this card is {bench.name}, and {options.bench} is of {measured}: run the benchmark here first")
        return
    say(libraries=libraries)
    seen = {}
    for index, case in enumerate(cases):
        if index < options.start:
            continue
        if time.time() > options.deadline:
            say(late=index)
            return
        begun = False
        for name, make in peers.items():
            if (index, name) in options.avoid:
                continue
            say(begin=[index, name])
            try:
                if not begun:
                    bench.begin(case, facts_of(bench_json["filters"][case["filter"]], case["sample"]))
                    begun = True
                if bench.filter["absolute"]:
                    raise Skip("no peer takes absolute values of sums")
                history = seen.setdefault((name, case["filter"], case["sample"]), [])
                seconds = expected_seconds(history, case["width"] * case["height"])
                if seconds is not None and seconds > LONGEST_S:
                    raise Skip(f"the first call would take some {seconds:.0f} s")
                measure(bench, bench_json, case, name, make, history)
            except Exception as error:
                say(row=make_row(bench_json, case, name, "whole", note=reason(error),
                                 status="skipped" if isinstance(error, Skip) else "failed"))
                if "illegal" in str(error) or "unspecified launch" in str(error) or "misaligned" in str(error):
                    os._exit(3)  # the context is lost; the parent starts a new process after this case
            release(bench)
    say(done=True)


def release(bench):
    """Give what the last peer held back to the card."""
    import gc
    gc.collect()
    bench.cupy.fft.config.clear_plan_cache()
    bench.cupy.get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


def measure(bench, bench_json, case, name, make, history):
    peer = make()
    if peer is None:
        return
    begin = time.perf_counter()
    peer.whole(0)
    bench.stream.synchronize()
    first = time.perf_counter() - begin
    different, largest = bench.compare(peer.result(0), peer.offset, peer.gauss)
    for part in ("call", "whole"):
        step = getattr(peer, part)
        if step is None:
            continue
        say(row=make_row(bench_json, case, name, part, different=different, largest_difference=largest,
                         note=peer.note, **bench.time(step)))
    history.append((case["width"] * case["height"], first))


def listen(process, messages):
    for line in process.stdout:
        messages.put(line)
    messages.put(None)


def run_group(group, bench_json, options, deadline):
    """All rows of one group, in a process of its own; a new one where a peer took it down."""
    cases = cases_of(bench_json, options.sizes, options.samples, options.filters)
    rows, libraries, avoid, current, absent, deaths = [], {}, [], [0, group], None, 0

    def rest(start, note):
        rows.extend(make_row(bench_json, case, group, "whole", status="skipped", note=note) for case in cases[start:])

    while True:
        command = [sys.executable, os.path.abspath(__file__), options.bench, "--worker", group, "--start",
                   str(current[0]), "--avoid", json.dumps(avoid), "--deadline", str(deadline),
                   "--sizes", ",".join(map(str, options.sizes)), "--samples", ",".join(options.samples)]
        command += ["--npp", options.npp] if options.npp else []
        command += ["--filters", ",".join(options.filters)] if options.filters else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        messages = queue.Queue()
        threading.Thread(target=listen, args=(process, messages), daemon=True).start()
        finished = killed = False
        while True:
            try:
                line = messages.get(timeout=max(1, deadline + GRACE_S - time.time()))
            except queue.Empty:
                process.kill()
                killed = True
                break
            if line is None:
                break
            try:
                message = json.loads(line)
            except ValueError:
                print(line, end="", file=sys.stderr)  # what a library prints
                continue
            if "libraries" in message:
                libraries = message["libraries"]
            elif "begin" in message:
                current = message["begin"]
            elif "row" in message:
                rows.append(message["row"])
            elif "absent" in message:
                finished = True
                absent = message["absent"]
            elif "late" in message:
                finished = True
                rest(message["late"], "the time was up; --seconds gives more")
            elif "done" in message:
                finished = True
        process.stdout.close()
        code = process.wait()
        if finished:
            return rows, libraries, absent
        index, peer = current
        death = "it took too long" if killed else \
            f"its process died of {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}"
        if not libraries:
            return rows, libraries, death  # it did not come as far as the first case
        done = {row["peer"] for row in rows if all(row[key] == cases[index][key] for key in cases[index])}
        if peer not in done:
            rows.append(make_row(bench_json, cases[index], peer, "whole", status="failed", note=death))
        avoid += [[index, name] for name in done | {peer}]
        deaths += 1
        if killed or time.time() > deadline or deaths == DEATHS:
            rest(index + 1, f"not run, because before it {peer} failed: {death}")
            return rows, libraries, None


def run_all(options):
    with open(options.bench) as file:
        bench_json = json.load(file)
    end = time.time() + options.seconds
    groups = [group for group in GROUPS if not options.peers or group.lower() in options.peers]
    rows, libraries, absent = [], {}, {}
    for index, group in enumerate(groups):
        share = max(10, (end - time.time()) / (len(groups) - index))
        found, names, missing = run_group(group, bench_json, options, time.time() + share)
        rows += found
        libraries.update(names)
        if missing:
            absent[group] = missing
        print(f"{group}: {missing or str(sum(row['status'] == 'ok' for row in found)) + ' rows'}", file=sys.stderr)
    order = {(c["filter"], c["sample"], c["width"]): i
             for i, c in enumerate(cases_of(bench_json, options.sizes, options.samples, options.filters))}
    rows.sort(key=lambda row: order[row["filter"], row["sample"], row["width"]])
    result = {"date": datetime.date.today().isoformat(), "device": (bench_json.get("device") or {}).get("name"),
              "libraries": libraries, "absent": absent, "rows": rows}
    json.dump(result, sys.stdout, indent=1)
    print()
    print(table(rows, libraries, absent), file=sys.stderr)
    return 0 if any(row["status"] == "ok" for row in rows) else 1


# --- The test of what needs no GPU -----------------------------------------------------------------------------------


def correlated(picture, taps):
    """The definition, in Python's integers: border replicate, taps as drawn, anchor in the centre."""
    height, width, rows, columns = len(picture), len(picture[0]), len(taps), len(taps[0])
    at = lambda y, x: picture[min(max(y, 0), height - 1)][min(max(x, 0), width - 1)]
    return [[sum(taps[i][j] * at(y + i - rows // 2, x + j - columns // 2) for i in range(rows) for j in range(columns))
             for x in range(width)] for y in range(height)]


def test_pure():
    shift = [[0, 0, 0], [0, 0, 1], [0, 0, 0]]  # out(y, x) = in(y, x + 1)
    assert correlated([[1, 2, 3]], shift) == [[2, 3, 3]]
    assert flipped(shift) == [[0, 0, 0], [1, 0, 0], [0, 0, 0]] and flipped([[1, 2], [3, 4]]) == [[4, 3], [2, 1]]
    # True convolution with flipped taps, anchor flipped too, is correlation.
    picture = [[(7 * y * y + 3 * x + x * y) % 11 for x in range(6)] for y in range(5)]
    for taps in ([[1, 2, 3], [4, 5, 6]], [[1, -2, 3]], [[2, 0, 1], [0, 3, 0], [1, 1, 4]]):
        rows, columns, turned = len(taps), len(taps[0]), flipped(taps)
        ay, ax = rows - 1 - rows // 2, columns - 1 - columns // 2
        at = lambda y, x: picture[min(max(y, 0), 4)][min(max(x, 0), 5)]
        convolved = [[sum(turned[i][j] * at(y + ay - i, x + ax - j) for i in range(rows) for j in range(columns))
                      for x in range(6)] for y in range(5)]
        assert convolved == correlated(picture, taps), taps
    # The circular correlation that cuFFT computes, on a plane with its border, holds the answer in its corner.
    taps, height, width = [[1, 2, 3, 4, 5], [0, 1, 0, -1, 0], [2, 2, -9, 1, 1]], fast_length(5 + 2), fast_length(6 + 4)
    padded = [[picture[min(max(y - 1, 0), 4)][min(max(x - 2, 0), 5)] for x in range(width)] for y in range(height)]
    circular = [[sum(taps[i][j] * padded[(y + i) % height][(x + j) % width] for i in range(3) for j in range(5))
                 for x in range(6)] for y in range(5)]
    assert circular == correlated(picture, taps)
    assert [fast_length(n) for n in (1, 11, 16386, 16414)] == [1, 12, 16464, 16464]
    assert factor([[2, 4], [3, 6]]) == ([2, 3], [1, 2]) and factor([[1, 2], [3, 4]]) is None
    assert factor([[0, 0], [0, 3]]) == ([0, 1], [0, 3]) or factor([[0, 0], [0, 3]]) == ([0, 3], [0, 1])
    assert factor([[0]]) is None and factor([[-4, 2]]) == ([1], [-4, 2]) or factor([[-4, 2]]) == ([2], [-2, 1])
    assert bias_of(16, 0) == 8 and bias_of(3, 0) == 1 and bias_of(3, -1) == -2 and bias_of(1, 0.25) == 0
    taps = gaussian(9, npp_sigma(9))
    assert abs(sum(taps) - 1) < 1e-12 and taps == taps[::-1] and max(taps) == taps[4]
    assert all(int(size // 2 / npp_sigma(size) * npp_sigma(size) + 0.5) == size // 2 for size in range(3, 33, 2))
    assert summary([3, 1, 2]) == (2, 1, 3)
    assert expected_seconds([], 4) is None and expected_seconds([(1, 2.0)], 4) == 2
    assert expected_seconds([(1, 2.0), (16, 2.0)], 256) == 2 and expected_seconds([(1, 9.0), (16, 2.0)], 256) == 2
    assert abs(expected_seconds([(1, 2.0), (16, 3.5)], 256) - 27.5) < 1e-9


def test_rows():
    filters = {name: {"width": n, "height": n, "scale": 1, "offset": 0, "absolute": False, "taps": [1] * n * n}
               for name, n in (("rank1-3", 3), ("int16-3", 3), ("int8-5", 5), ("int8-3", 3))}
    row = {"variant": "basic", "backend": "cuda", "filter": "int8-3", "sample": "uint8", "width": 64, "height": 64,
           "planes": 1, "border": "replicate", "median_ms": 4.0, "chosen": False}
    chosen = dict(row, variant="register-tiled", median_ms=2.0, chosen=True)
    bench = {"filters": filters, "rows": [row, dict(chosen, planes=3, median_ms=9.0),
                                          dict(chosen, backend="cpu", median_ms=8.0), chosen,
                                          dict(chosen, filter="int8-5"), dict(row, filter="rank1-3"),
                                          dict(row, filter="int16-3"), dict(row, filter="int8-3", sample="float")]}
    cases = cases_of(bench, [64, 128], ["uint8", "float"], None)
    assert [(c["filter"], c["sample"], c["width"]) for c in cases] == [
        ("int8-3", "uint8", 64), ("int8-5", "uint8", 64), ("int8-3", "float", 64), ("int8-3", "uint8", 128),
        ("int8-5", "uint8", 128), ("int8-3", "float", 128), ("rank1-3", "uint8", 64), ("rank1-3", "uint8", 128),
        ("int16-3", "uint8", 64), ("int16-3", "uint8", 128)]
    assert len(cases_of(bench, [64], ["float"], ["int8-3"])) == 1
    assert gpuconv_time(bench, cases[0]) == (2.0, "register-tiled")
    assert gpuconv_time(bench, cases[3]) == (None, None)
    good = make_row(bench, cases[0], "A", "whole", median_ms=5.0, different=7, largest_difference=1.0)
    assert good["ratio"] == 2.5 and list(good) == list(FIELDS)
    bad = [make_row(bench, case, "B", "whole", status="skipped", note="it is not there") for case in cases[:5]]
    assert bad[3]["ratio"] is None
    rows = [good, make_row(bench, cases[0], "A", "call", median_ms=3.0)] + bad
    text = table(rows, {"a": "1.2"}, {"C": "gone"}).splitlines()
    assert text[2] == "int8-3, uint8, 64 x 64: gpuconv (register-tiled) 2.0000 ms"
    assert text[4].split() == ["A", "3.0000", "1.50", "5.0000", "2.50", "7", "1"], text[4]
    assert text[-2] == "  C: gone"
    assert text[-1] == "  B: it is not there (int8-3 uint8 64, int8-5 uint8 64, int8-3 float 64 and 2 more)", text[-1]
    assert max(map(len, text)) <= 120


def test_kernels():
    """The kernels, compiled for the host, against the definition. False where there is no compiler."""
    import ctypes
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "kernels.cc"), os.path.join(folder, "kernels.so")
        with open(source, "w") as file:
            file.write(HOST_HEAD + KERNELS)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
        kernels = ctypes.CDLL(library)
        width, height, integer = 13, 9, ctypes.c_int
        picture = [[(y * 37 + x * x * 11 + x * y * 5) % 256 for x in range(width)] for y in range(height)]
        plane = bytes(sum(picture, []))
        for columns, rows in ((3, 3), (5, 3), (1, 7), (4, 2), (31, 31)):
            taps = [[(i * 5 + j * 3 + i * j) % 17 - 8 for j in range(columns)] for i in range(rows)]
            flat, count = sum(taps, []), rows * columns
            sums = correlated(picture, taps)
            shape = integer(width), integer(height), integer(columns), integer(rows)
            for scale, offset, absolute in ((1, 0, 0), (7, 128, 0), (1000, 100.5, 1)):
                out = (ctypes.c_uint8 * len(plane))()
                kernels.exact_uint8(plane, (ctypes.c_longlong * count)(*flat), out, *shape,
                                    ctypes.c_longlong(bias_of(scale, offset)), ctypes.c_longlong(scale),
                                    integer(absolute))
                rounded = [min(255, max(0, math.floor(Fraction(abs(s) if absolute else s, scale) + Fraction(offset) +
                                                      Fraction(1, 2)))) for s in sum(sums, [])]
                assert list(out) == rounded, (columns, rows, scale)
                if not absolute:
                    # Through float, padded and rounded, in rows longer than the plane's, as the libraries' sums go.
                    again = (ctypes.c_uint8 * len(plane))()
                    stride = width + 3
                    floats = (ctypes.c_float * (stride * height))()
                    for y in range(height):
                        floats[y * stride:y * stride + width] = sums[y]
                    kernels.round_float_uint8(floats, again, integer(width), integer(height), integer(stride),
                                        *map(ctypes.c_double, rounding(scale, offset, False)))
                    assert list(again) == rounded
            floats = (ctypes.c_float * len(plane))(*plane)
            doubles = (ctypes.c_double * len(plane))()
            kernels.exact_float(floats, (ctypes.c_double * count)(*flat), doubles, *shape)
            assert list(doubles) == sum(sums, [])
            padded_width, padded_height = width + columns + 2, height + rows - 1
            for name, source_plane in (("pad_uint8", plane), ("pad_float", floats)):
                padded = (ctypes.c_float * (padded_width * padded_height))()
                getattr(kernels, name)(source_plane, padded, integer(width), integer(height), integer(columns // 2),
                                       integer(rows // 2), integer(padded_width), integer(padded_height))
                grid = rows_of(list(padded), padded_width)
                inside = [[sum(taps[i][j] * grid[y + i][x + j] for i in range(rows) for j in range(columns))
                           for x in range(width)] for y in range(height)]
                assert inside == sums, name
        between, words = (ctypes.c_double * len(plane))(), (ctypes.c_uint16 * len(plane))(*(257 * v for v in plane))
        out = (ctypes.c_uint16 * len(plane))()
        quarters = (ctypes.c_double * 3)(0.25, 0.5, 0.25)
        kernels.exact_row_uint16(words, quarters, between, integer(width), integer(height), integer(3))
        kernels.exact_column_uint16(between, quarters, out, integer(width), integer(height), integer(3))
        taps = [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
        assert list(out) == [(257 * s + 8) // 16 for s in sum(correlated(picture, taps), [])]
        kernels.exact_uint16(words, (ctypes.c_longlong * 9)(*sum(taps, [])), out, integer(width), integer(height),
                             integer(3), integer(3), ctypes.c_longlong(4), ctypes.c_longlong(8), integer(0))
        assert list(out) == [min(65535, (257 * s + 4) // 8) for s in sum(correlated(picture, taps), [])]
        grids = [[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]]
        kernels.exact_root_uint16(words, (ctypes.c_longlong * 18)(*sum(sum(grids, []), [])), out, integer(width),
                                  integer(height), integer(3), integer(3), ctypes.c_double(0.5), ctypes.c_double(2))
        slopes = [sum(correlated(picture, grid), []) for grid in grids]
        assert list(out) == [min(65535, math.floor(257 * math.hypot(x, y) / 2 + 0.5)) for x, y in zip(*slopes)]
    return True


def self_test():
    test_pure()
    test_rows()
    if not test_kernels():
        print("The kernels were not tested: there is no C++ compiler.")
        return 77  # skipped, as the other tests say it
    print("ok")
    return 0


def words(text):
    return [word for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", nargs="?", metavar="BENCH.json", help="what gpuconv --bench --json printed")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in words(text)], default=[1024, 4096, 16384],
                        help="sides of the square planes (1024,4096,16384)")
    parser.add_argument("--samples", type=words, default=["uint8", "float"], help="of uint8,uint16,float (uint8,float)")
    parser.add_argument("--filters", type=words, help="names of the benchmark's filters (all)")
    parser.add_argument("--peers", type=lambda text: words(text.lower()), help=f"{','.join(GROUPS)} (all)")
    parser.add_argument("--npp", metavar="DIR", help="a folder that holds libnppif.so and libnppc.so")
    parser.add_argument("--seconds", type=float, default=240, help="the time for all peers (240); the rest is skipped")
    parser.add_argument("--table", metavar="PEERS.json", help="print the table of an earlier run, and run nothing")
    parser.add_argument("--self-test", action="store_true", help="check the parts that need no GPU")
    parser.add_argument("--worker", choices=GROUPS, help=argparse.SUPPRESS)
    parser.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--avoid", type=lambda text: {tuple(pair) for pair in json.loads(text)}, default=set(),
                        help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, default=math.inf, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.table:
        with open(options.table) as file:
            earlier = json.load(file)
        print(table(earlier["rows"], earlier["libraries"], earlier["absent"]))
        return 0
    if not options.bench:
        parser.error("BENCH.json is missing: give the file that gpuconv --bench --json printed")
    if options.worker:
        with open(options.bench) as file:
            worker(json.load(file), options)
        return 0
    for group in options.peers or []:
        if group not in map(str.lower, GROUPS):
            parser.error(f"there is no peer {group}; the peers are {', '.join(GROUPS)}")
    return run_all(options)


if __name__ == "__main__":
    sys.exit(main())
