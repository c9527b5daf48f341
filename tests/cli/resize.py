#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Filters that change the size, against Python's integers and against the kernels in doubles: resize.py GPUCONV STUB.

The taps that --show prints are those of the definition in src/filter/resample.h. Pictures of 8 and 16 bits have its
samples, and these are within 0.53 levels of the kernel's own result. All instruction sets, thread counts and both
variants make the same bytes, also in chains, which are the same as runs one after the other. So does the way through a
GPU, of which STUB has one that computes on the CPU."""
import json
import math
import os
import random
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import temporary_folder  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

ONE = 1 << 30
REACH = {"lanczos3": 6, "lanczos2": 4, "cubic": 4, "mitchell": 4, "triangle": 2, "box": 1, "nearest": 1}
TIMES = {"cubic": 2, "mitchell": 18, "box": 2}
SINC = (1073741824, 1766234505, 871601792, 204818212, 28076038, 2519085, 159374, 7490)
SIZES = ((500, 5), (333, 167), (13, 260), (31, 32), (1500, 17), (300, 150), (301, 150), (594, 256), (300, 299), (300, 301),
         (100, 2000), (7, 140), (1000, 63), (400, 25), (640, 481), (5, 1), (1, 9), (2, 3), (64, 64), (300, 1))


# ---- The definition ----

def times(a, b):
    return (a * b + ONE // 2) >> 30


def sinc_near(y):
    square, total = times(y, y), SINC[7]
    for k in range(6, -1, -1):
        total = SINC[k] - times(total, square)
    return total


def sinc(x):
    if x <= ONE // 2:
        return sinc_near(x)
    n = (x + ONE // 2) >> 30
    y = x - n * ONE
    value = (abs(y) * sinc_near(abs(y)) + x // 2) // x
    return -value if (n % 2 == 1) != (y < 0) else value


def ratio(a, b):
    return (2 * a * ONE + b) // (2 * b)


def weight(kernel, distance, longest):
    if kernel == "nearest":
        return ONE
    if kernel == "box":
        return (2 * ONE if distance < longest else ONE) if distance <= longest else 0
    if distance >= REACH[kernel] * longest:
        return 0
    x = ratio(distance, 2 * longest)
    if kernel.startswith("lanczos"):
        product = sinc(x) * sinc(ratio(distance, REACH[kernel] * longest))
        return (product + ONE // 2) >> 30 if product >= 0 else -((-product + ONE // 2) >> 30)
    square = times(x, x)
    cube = times(square, x)
    if kernel == "triangle":
        return ONE - x
    if kernel == "cubic":
        return 3 * cube - 5 * square + 2 * ONE if x < ONE else -cube + 5 * square - 8 * x + 4 * ONE
    return 21 * cube - 36 * square + 16 * ONE if x < ONE else -7 * cube + 36 * square - 60 * x + 32 * ONE


def ideal(kernel, x):
    def wave(z):
        return 1.0 if z == 0 else math.sin(math.pi * z) / (math.pi * z)
    if kernel == "nearest":
        return 1.0
    if kernel == "box":
        return 1.0 if x < 0.5 else 0.5 if x == 0.5 else 0.0
    if x >= REACH[kernel] / 2:
        return 0.0
    if kernel.startswith("lanczos"):
        return wave(x) * wave(2 * x / REACH[kernel])
    if kernel == "triangle":
        return 1 - x
    if kernel == "cubic":
        return 1.5 * x**3 - 2.5 * x * x + 1 if x < 1 else -0.5 * x**3 + 2.5 * x * x - 4 * x + 2
    return ((7 * x**3 - 12 * x * x + 16 / 3) if x < 1 else (-7 / 3 * x**3 + 12 * x * x - 20 * x + 32 / 3)) / 6


class Axis:
    """The taps of an axis, as the definition has them and as the kernel does, each with the input of the first."""

    def __init__(self, kernel, before, after, bits):
        self.kernel, self.before, self.after = "box" if before == after else kernel, before, after
        self.longest, self.reach = max(before, after), REACH[self.kernel]
        self.taps, self.exact = [], []
        outputs = [self.weights(i) for i in range(after)]
        largest = 1 << (15 if bits == 8 else 23)
        self.shift = 36 if bits == 8 or max(len(w) for _, _, w in outputs) > 4096 else 30
        while self.shift > largest.bit_length() - 1 and any((max(w) << self.shift) > largest * sum(w) for _, _, w in outputs):
            self.shift -= 1
        for first, distances, weights in outputs:
            taps = self.rounded(distances, weights)
            assert all(-largest < tap <= largest for tap in taps)
            self.taps.append((first, taps))

    def weights(self, i):
        middle, all_of = (2 * i + 1) * self.before, self.longest * self.reach
        first = -((all_of + self.after - middle) // (2 * self.after))
        last = (middle + all_of - self.after) // (2 * self.after)
        if self.kernel == "nearest":  # the later one of two, as in Pillow
            first = last = middle // (2 * self.after)
        distances = [abs((2 * j + 1) * self.after - middle) for j in range(first, last + 1)]
        weights = [weight(self.kernel, d, self.longest) for d in distances]
        own = [ideal(self.kernel, d / (2 * self.longest)) for d in distances]
        for w, o in zip(weights, own):
            assert abs(w / TIMES.get(self.kernel, 1) - o * ONE) <= 3, (self.kernel, self.before, self.after, i)
        area = math.fsum(own)
        self.exact.append((first, [o / area for o in own]))
        return first, distances, weights

    def rounded(self, distances, weights):
        total, scale = sum(weights), 1 << self.shift
        taps = [(2 * w * scale + total) // (2 * total) for w in weights]
        errors = [w * scale - tap * total for w, tap in zip(weights, taps)]
        groups = {}  # the taps at each distance
        for k, d in enumerate(distances):
            groups.setdefault(d, []).append(k)
        rest = scale - sum(taps)

        def change(group, by):
            for k in group:
                taps[k] += by
                errors[k] -= by * total
        if 0 in groups:
            group = groups.pop(0)
            if rest % 2:
                change(group, 1 if errors[group[0]] > 0 else -1)
                rest = scale - sum(taps)
        for sixteenths in range(7, -1, -1):
            for _, group in sorted(groups.items()):
                by = 1 if rest > 0 else -1
                if by * rest >= len(group) and 16 * by * errors[group[0]] > sixteenths * total:
                    change(group, by)
                    rest = scale - sum(taps)
        assert rest == 0 and all(abs(e) < total or w == 0 for e, w in zip(errors, weights))
        return taps


def clamp(value, low, high):
    return min(max(value, low), high)


def apply(taps, samples):
    """The sums of a row or column; what is outside is its edge."""
    last = len(samples) - 1
    return [sum(t * samples[clamp(first + k, 0, last)] for k, t in enumerate(row)) for first, row in taps]


def transpose(rows):
    return [list(row) for row in zip(*rows)]


def resized(rows, columns, across, bits):
    """The samples of the definition, and those of the kernel without rounding."""
    a, b, highest = columns.shift, across.shift, (1 << bits) - 1
    sums = transpose([[(s + (1 << (a - 7))) >> (a - 6) for s in apply(columns.taps, column)] for column in transpose(rows)])
    levels = [[clamp((s + (1 << (b + 5))) >> (b + 6), 0, highest) for s in apply(across.taps, row)] for row in sums]
    own = transpose([apply(columns.exact, column) for column in transpose(rows)])
    return levels, [apply(across.exact, row) for row in own]


# ---- The program ----

class Runs:
    def __init__(self, program, stub, folder):
        self.program, self.stub, self.folder = program, stub, folder

    def run(self, *args, **environment):
        done = subprocess.run([self.program, *args], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **environment})
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout + done.stderr

    def write(self, name, rows, bits):
        data = b"".join(value.to_bytes(bits // 8, "big") for row in rows for value in row)
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(b"P5 %d %d %d\n" % (len(rows[0]), len(rows), (1 << bits) - 1) + data)

    def write_any(self, name, width, height, channels, bits, data):
        kinds = (b"GRAYSCALE", b"GRAYSCALE_ALPHA", b"RGB", b"RGB_ALPHA")
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n"
                       % (width, height, channels, (1 << bits) - 1, kinds[channels - 1]) + data)

    def bytes_of(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def read(self, name):
        kind, size, highest, data = self.bytes_of(name).split(b"\n", 3)
        assert kind == b"P5"
        width, height = map(int, size.split())
        each = 1 if int(highest) < 256 else 2
        values = [int.from_bytes(data[i:i + each], "big") for i in range(0, len(data), each)]
        return [values[y * width:(y + 1) * width] for y in range(height)]


def check_taps(runs):
    for number, (before, after) in enumerate(SIZES):
        kernels = list(REACH) if number < 4 else [list(REACH)[number % 7], "lanczos3"]
        for kernel in kernels:
            spec = f"resize:{after}x3:exact:{kernel}:{before}x3"
            shown, = json.loads(runs.run("--show", spec, "--json"))
            for bits in (8, 16):
                axis, printed = Axis(kernel, before, after, bits), shown[f"taps{bits}"]
                rows = printed["rows"]
                assert rows["shift"] == axis.shift and (rows["from"], rows["to"]) == (before, after)
                for i, row in enumerate(rows["taps"]):
                    first, taps = axis.taps[i]
                    assert row["first"] == first, spec
                    assert row["taps"] == taps + [0] * (rows["count"] - len(taps)), spec
                    assert sum(row["taps"]) == 1 << axis.shift and not any(row["taps"][len(taps):])
                    mirrored = axis.taps[after - 1 - i]
                    assert kernel == "nearest" or mirrored == (before - first - len(taps), taps[::-1]), spec
                period = len(rows["taps"])
                assert all(axis.taps[i][1] == axis.taps[i % period][1] for i in range(after))
                least = 0.5 + (1 << bits - 1) * 0.99 * max(
                    math.fsum(abs(t / (1 << axis.shift) - e) for t, e in zip(taps, exact))
                    for (_, taps), (_, exact) in zip(axis.taps, axis.exact)) if before != after else 0.5
                assert printed["bound"] >= least, (spec, bits, printed["bound"], least)
                assert printed["bound"] <= (0.57 if bits == 8 else 0.6), (spec, bits, printed["bound"])


def check_samples(runs):
    """Noise of the two extreme levels, and of all levels, in every ratio."""
    random.seed(35)
    worst = {8: 0.0, 16: 0.0}
    cases = [(w, h, kernel) for kernel in REACH for w, h in (((20, 9), (23, 31)), ((38, 19), (31, 5)), ((27, 15), (11, 33)))]
    cases += [((300, 3), (200, 4), "lanczos3"), ((3, 60), (300, 3), "cubic"), ((1, 30), (40, 40), "mitchell")]
    for (before_w, after_w), (before_h, after_h), kernel in cases:
        for bits in (8, 16):
            levels = (0, (1 << bits) - 1) if random.random() < 0.5 else range(1 << bits)
            rows = [[random.choice(levels) for _ in range(before_w)] for _ in range(before_h)]
            columns, across = Axis(kernel, before_h, after_h, bits), Axis(kernel, before_w, after_w, bits)
            expected, own = resized(rows, columns, across, bits)
            spec = f"resize:{after_w}x{after_h}:exact:{kernel}"
            runs.write("in.pgm", rows, bits)
            for variant in ("reference", "cpu"):
                runs.run(spec, "in.pgm", "out.pgm", "--variant", variant)
                assert runs.read("out.pgm") == expected, (spec, before_w, before_h, bits, variant)
            for row, exact in zip(expected, own):
                for level, value in zip(row, exact):
                    worst[bits] = max(worst[bits], abs(level - clamp(value, 0, (1 << bits) - 1)))
    assert 0.49 < worst[8] <= 0.53 and 0.49 < worst[16] <= 0.53, worst


def check_long(runs):
    """Sides that become up to 100,000 times shorter. 512 taps that are all 2^15 have the largest sums."""
    random.seed(38)
    for before, after, kernel, bits in ((20000, 100, "lanczos3", 16), (65535, 1, "cubic", 16), (100000, 1, "triangle", 8), (1024, 2, "box", 8)):
        axis, highest = Axis(kernel, before, after, bits), (1 << bits) - 1
        noise = [random.randrange(highest // 2, highest + 1) for _ in range(before)]
        for row in (noise, [highest] * before, [0] * before):
            # A row's samples are a pass of their own: 64 times themselves, not rounded.
            sums = apply(axis.taps, row)
            half = 1 << (axis.shift - 1)
            across = [clamp((s + half) >> axis.shift, 0, highest) for s in sums]
            down = [clamp((((s + (half >> 6)) >> (axis.shift - 6)) + 32) >> 6, 0, highest) for s in sums]
            for rows, expected in (([row], [across]), (transpose([row]), transpose([down]))):
                runs.write("in.pgm", rows, bits)
                for variant in ("reference", "cpu"):
                    runs.run(f"resize:{len(expected[0])}x{len(expected)}:exact:{kernel}", "in.pgm", "out.pgm", "--variant", variant)
                    assert runs.read("out.pgm") == expected, (before, after, kernel, bits, row[:2], variant)
    for width, height in ((8000, 1), (1, 100000)):
        runs.write("in.pgm", [[10] * width] * height, 8)
        runs.run("resize:1x1:exact", "in.pgm", "out.pgm", "--linear")
        assert runs.read("out.pgm") == [[10]], (width, height)
    for sides, bounds in (("680x680", (0.57, 0.6)), ("100000x100000", (0.57, 0.9))):
        for kernel in REACH:
            shown, = json.loads(runs.run("--show", f"resize:1x1:exact:{kernel}:{sides}", "--json"))
            assert shown["taps8"]["bound"] <= bounds[0] and shown["taps16"]["bound"] <= bounds[1], (sides, kernel)


def check_bytes(runs):
    """All instruction sets, threads, bands and chains, and a GPU, give the same bytes."""
    random.seed(36)
    sets = [name for name in ("portable", "sse2", "avx2", "avx512", "vnni", "neon", "i8mm")
            if subprocess.run([runs.program, "identity", "in.pgm", "same.pgm"], cwd=runs.folder, capture_output=True,
                              env={**os.environ, "GPUCONV_CPU": name}).returncode == 0]
    assert "portable" in sets
    for number in range(36):
        width, height = random.choice(((1, 70), (70, 1), (333, 90), (1500, 40), (130, 700)))
        to_width, to_height = (max(1, int(side * random.choice((0.04, 0.3, 0.5, 0.77, 1, 1.4, 3)))) for side in (width, height))
        channels, bits = random.choice((1, 2, 3, 4)), random.choice((8, 16))
        runs.write_any("a.pam", width, height, channels, bits, random.randbytes(width * height * channels * bits // 8))
        filters = [f"resize:{to_width}x{to_height}:exact:{random.choice(list(REACH))}"]
        for other in ("sharpen", "unsharp:1:1", "resize:60%:triangle"):
            if random.random() < 0.4:
                filters.insert(random.randrange(len(filters) + 1), other)
        options = ["--alpha", random.choice(("premultiply", "keep", "filter"))]
        options += ["--border", random.choice(("replicate", "reflect101", "wrap"))]
        options += ["--linear"] if random.random() < 0.3 else []
        source = "a.pam"
        for i, one in enumerate(filters):
            runs.run(one, source, f"{i}.pam", "--variant", "reference", *options)
            source = f"{i}.pam"
        runs.run(",".join(filters), "a.pam", "all.pam", "--threads", random.choice("123"), *options,
                 GPUCONV_CPU=sets[number % len(sets)])
        what = (filters, width, height, channels, bits, options)
        assert runs.bytes_of("all.pam") == runs.bytes_of(source), what
        for name, where in (("cpu.png", (runs.program, "--backend", "cpu")), ("gpu.png", (runs.stub, "--backend", "cuda"))):
            Runs(where[0], runs.stub, runs.folder).run(",".join(filters), "a.pam", name, *where[1:], *options)
        assert runs.bytes_of("cpu.png") == runs.bytes_of("gpu.png"), what


def tiff(entries, sub_entries):
    """A TIFF block: the entries (tag, type, value) of the first directory, and those of EXIF."""
    def directory(at, rows):
        extra, body = b"", struct.pack(">H", len(rows))
        end = at + 2 + 12 * len(rows) + 4
        for tag, kind, value in rows:
            data = struct.pack(">HH", value, 0) if kind == 3 else struct.pack(">I", value) if kind == 4 else \
                struct.pack(">I", end + len(extra))
            extra += struct.pack(">II", *value) if kind == 5 else b""
            body += struct.pack(">HHI", tag, kind, 1) + data
        return body + bytes(4) + extra
    size = len(directory(8, entries + [(0x8769, 4, 0)]))
    return b"MM\0*\0\0\0\x08" + directory(8, entries + [(0x8769, 4, 8 + size)]) + directory(8 + size, sub_entries)


def check_metadata(runs):
    """A picture is turned upright first; then EXIF has its new sides, and as many pixels on the sensor as there are."""
    block = tiff([(0x100, 3, 40), (0x101, 3, 30), (0x112, 3, 6), (0x11a, 5, (300, 1)), (0x11b, 5, (300, 1))],
                 [(0xa002, 4, 40), (0xa003, 4, 30), (0xa20e, 5, (4000, 1)), (0xa20f, 5, (3000, 1))])
    exif = struct.pack(">I", len(block)) + b"eXIf" + block + struct.pack(">I", zlib.crc32(b"eXIf" + block))
    data = png(40, 30, 3, 8, unfiltered(bytes(range(120)) * 30, 120))
    with open(os.path.join(runs.folder, "turned.png"), "wb") as file:
        file.write(data[:33] + exif + data[33:])
    for name in ("out.png", "out.jpg"):
        runs.run("resize:x20", "turned.png", name)
        after = runs.bytes_of(name)
        for entry in ((0x100, 4, 15), (0x101, 4, 20), (0x112, 3, 1 << 16), (0xa002, 4, 15), (0xa003, 4, 20)):
            assert struct.pack(">HHII", entry[0], entry[1], 1, entry[2]) in after, (name, entry)
        for number in ((300, 1), (2000, 1)):  # the sides of the sensor are swapped, and both are halved or not
            assert struct.pack(">II", *number) in after, (name, number)
    assert runs.bytes_of("out.png")[16:24] == struct.pack(">II", 15, 20)


def check_meaning(runs):
    random.seed(37)
    rows = [[random.randrange(256) for _ in range(24)] for _ in range(18)]
    runs.write("in.pgm", rows, 8)
    runs.run("resize:50%:box", "in.pgm", "out.pgm")
    means = [[(rows[2 * y][2 * x] + rows[2 * y][2 * x + 1] + rows[2 * y + 1][2 * x] + rows[2 * y + 1][2 * x + 1] + 2) // 4
              for x in range(12)] for y in range(9)]
    # The mean of two rows is a half, and of four samples a quarter: the first pass rounds neither.
    assert runs.read("out.pgm") == means
    for kernel in REACH:
        runs.run(f"resize:17x31:exact:{kernel}", "in.pgm", "out.pgm")
        runs.write("mirrored.pgm", [row[::-1] for row in rows], 8)
        runs.run(f"resize:17x31:exact:{kernel}", "mirrored.pgm", "turned.pgm")
        assert kernel == "nearest" or runs.read("turned.pgm") == [row[::-1] for row in runs.read("out.pgm")], kernel
        runs.run(f"resize:24x18:{kernel}", "in.pgm", "same.pgm")
        assert runs.read("same.pgm") == rows, kernel
        runs.write("grey.pgm", [[97] * 24] * 18, 8)
        runs.run(f"resize:250%:{kernel}", "grey.pgm", "out.pgm")
        assert runs.read("out.pgm") == [[97] * 60] * 45, kernel
    # Transparent pixels have colours that must not show.
    pixels = b"".join(bytes((255, 0, 0, 255)) if x < 12 else bytes((0, 255, 0, 0)) for _ in range(18) for x in range(24))
    runs.write_any("a.pam", 24, 18, 4, 8, pixels)
    runs.run("resize:50%", "a.pam", "out.pam")
    out = runs.bytes_of("out.pam").split(b"ENDHDR\n")[1]
    assert len(out) == 12 * 9 * 4
    for i in range(0, len(out), 4):
        assert out[i + 3] == 0 or tuple(out[i:i + 3]) == (255, 0, 0), out[i:i + 4]


def main():
    program, stub = map(os.path.abspath, sys.argv[1:3])
    with temporary_folder() as folder:
        runs = Runs(program, stub, folder)
        for check in (check_taps, check_samples, check_long, check_bytes, check_meaning, check_metadata):
            check(runs)


if __name__ == "__main__":
    main()
