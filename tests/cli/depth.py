#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""16 bits per sample, --depth and --linear against results that this script computes: depth.py GPUCONV.

The script writes the pictures, reads the results by read_png.py, and computes the expected ones with integers and
fractions from the definitions: out = clamp(floor(sum of tap * sample / scale + 257 * offset + 1/2)) for 16 bits,
premultiplication with 65535, and the sRGB curve of linear.py."""
import json
import os
import random
import struct
import sys
from fractions import Fraction

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402
import linear  # noqa: E402
from read_png import PASSES, read_plain  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])


class Image:
    """Samples in rows of pixels, interleaved: samples[(y * width + x) * channels + c]."""

    def __init__(self, width, height, channels, bits, samples):
        self.width, self.height, self.channels, self.bits, self.samples = width, height, channels, bits, list(samples)
        assert len(self.samples) == width * height * channels

    def at(self, x, y, c):
        return self.samples[(y * self.width + x) * self.channels + c]

    def with_samples(self, samples, bits=None):
        return Image(self.width, self.height, self.channels, bits or self.bits, samples)

    def same(self, other):
        return vars(self) == vars(other)


def noise(width, height, channels, bits, seed=1):
    """A slope with noise in all bits; alpha is 0, the maximum, or between."""
    chance = random.Random(seed)
    top, samples = (1 << bits) - 1, []
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                sample = (top * (5 * x + 3 * y + 40 * c) // 255 + chance.randrange(top // 3)) % (top + 1)
                if channels % 2 == 0 and c == channels - 1:
                    sample = chance.choice((0, sample, sample, top))
                samples.append(sample)
    return Image(width, height, channels, bits, samples)


# ---- PNG ----

def write_png(path, image, interlaced=False, transparent=None):
    size, raw = image.bits // 8, b""
    for x0, y0, dx, dy in PASSES if interlaced else ((0, 0, 1, 1),):
        for y in range(y0, image.height, dy) if x0 < image.width else ():
            raw += b"\0" + b"".join(image.at(x, y, c).to_bytes(size, "big")
                                    for x in range(x0, image.width, dx) for c in range(image.channels))
    colour = b"".join(struct.pack(">H", value) for value in transparent or ())
    with open(path, "wb") as file:
        file.write(png(image.width, image.height, image.channels, image.bits, raw, interlaced=interlaced,
                       chunks=chunk(b"tRNS", colour) if colour else b""))


def read_png(path):
    width, height, channels, rows, bits = read_plain(path)
    return Image(width, height, channels, bits, (sample for row in rows for sample in row))


# ---- The definitions ----

def rounded(numerator, denominator):
    """floor(numerator / denominator + 1/2)"""
    return (2 * numerator + denominator) // (2 * denominator)


def reduced(value):
    return rounded(255 * value, 65535)


def with_bits(image, bits):
    """--depth: 8 to 16 bits is times 257; 16 to 8 bits rounds to nearest."""
    if image.bits == bits:
        return image
    if bits == 16:
        return image.with_samples((257 * value for value in image.samples), 16)
    return image.with_samples(map(reduced, image.samples), 8)


FILTERS = {  # rows of taps, scale, offset, absolute; two grids have a magnitude
    "identity": ([[[1]]], 1, 0, False),
    "blur": ([[[1, 2, 1], [2, 4, 2], [1, 2, 1]]], 16, 0, False),
    "sharpen": ([[[0, -1, 0], [-1, 5, -1], [0, -1, 0]]], 1, 0, False),
    "relief": ([[[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]], 1, Fraction(257, 2), False),
    "slope": ([[[-1, 0, 1]]], 3, -20, True),
    "wide": ([[[3, -7, 11, 2, 9, -4, 1]] * 5], 77, 1, False),
    "edges": ([[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]], 7, 3, False),
}


def write_filter(path, name):
    grids, scale, offset, absolute = FILTERS[name]
    text = f"scale {scale}\noffset {offset}\n" + "abs\n" * absolute + "combine magnitude\n" * (len(grids) > 1)
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "---\n".join("".join(" ".join(map(str, row)) + "\n" for row in taps) for taps in grids))


def outside(i, n, border):
    """The index inside 0 to N - 1 that the border gives for I; None means the sample is 0."""
    if 0 <= i < n:
        return i
    if border == "zero":
        return None
    if border == "replicate":
        return min(max(i, 0), n - 1)
    if border == "wrap":
        return i % n
    period = 2 * n if border == "reflect" else max(2 * n - 2, 1)
    i %= period
    return i if i < n else period - 1 - i if border == "reflect" else period - i


def alpha_way(name, border):
    """What --alpha premultiply is for a filter: "filter" if it moves pixels, "weigh" or, with negative taps, "headroom"
    if its taps sum to 1, else "black"."""
    grids, scale, offset, absolute = FILTERS[name]
    taps = [tap for row in grids[0] for tap in row]
    if name == "identity":
        return "filter"
    if len(grids) > 1 or sum(taps) != scale or offset or absolute or border == "zero":
        return "black"
    return "weigh" if min(taps) >= 0 else "headroom"


def convolve_plane(plane, width, height, name, border, bits):
    """One plane, a list of rows."""
    grids, scale, offset, absolute = FILTERS[name]
    top = (1 << bits) - 1
    offset = Fraction(offset) * (257 if bits == 16 else 1)
    result = []
    for y in range(height):
        line = []
        for x in range(width):
            sums = []
            for taps in grids:
                total = 0
                for i, row in enumerate(taps):
                    from_y = outside(y + i - len(taps) // 2, height, border)
                    for j, tap in enumerate(row):
                        from_x = outside(x + j - len(row) // 2, width, border)
                        if from_x is not None and from_y is not None:
                            total += tap * plane[from_y][from_x]
                sums.append(total)
            if len(sums) == 2:  # the highest level whose lower bound the root reaches, without rounding
                squares, low, high = sums[0] ** 2 + sums[1] ** 2, 0, top
                while low < high:
                    value = (low + high + 1) // 2
                    end = scale * (2 * value - 1 - 2 * int(offset))  # twice the bound
                    low, high = (value, high) if end <= 0 or end ** 2 <= 4 * squares else (low, value - 1)
                line.append(low)
            else:
                total = abs(sums[0]) if absolute else sums[0]
                numerator = total * offset.denominator + offset.numerator * scale
                line.append(min(max(rounded(numerator, scale * offset.denominator), 0), top))
        result.append(line)
    return result


def convolve(image, name, border="replicate", alpha="keep", curve=None):
    """The result that gpuconv must give. CURVE holds the tables of linear light, or is None."""
    width, height, channels = image.width, image.height, image.channels
    has_alpha, bits = channels % 2 == 0, 16 if curve else image.bits
    colours = channels - has_alpha
    top = (1 << bits) - 1
    planes = [[[image.at(x, y, c) for x in range(width)] for y in range(height)] for c in range(channels)]
    way = alpha_way(name, border) if alpha == "premultiply" else alpha
    if curve:
        for c in range(channels):
            table = curve[f"from{image.bits}"]
            planes[c] = [[table[value] if c < colours else value * (257 if image.bits == 8 else 1) for value in row]
                         for row in planes[c]]
    divides = has_alpha and way in ("weigh", "headroom")
    unit = 1  # levels of 16 bits for one of 8
    if divides and bits == 8:  # 8 bits are too coarse; 127 leaves room for sums up to twice white
        unit = 127 if way == "headroom" else 257
    bits_held = 16 if unit > 1 else bits
    if divides or (has_alpha and way == "black"):
        for c in range(colours):
            planes[c] = [[rounded(value * by * unit, top) for value, by in zip(*rows)]
                         for rows in zip(planes[c], planes[-1])]
    if divides:
        planes[-1] = [[value * unit for value in row] for row in planes[-1]]
    kept = planes[-1] if has_alpha and way in ("keep", "black") else None
    planes = [plane if plane is kept else convolve_plane(plane, width, height, name, border, bits_held)
              for plane in planes]
    if divides:
        white = 255 if unit == 127 else 65535 if unit == 257 else top  # the quotient's, before it has the image's bits
        for c in range(colours):
            planes[c] = [[min(rounded(value * white, by), white) if by else 0 for value, by in zip(*rows)]
                         for rows in zip(planes[c], planes[-1])]
            if unit == 257:
                planes[c] = [[reduced(value) for value in row] for row in planes[c]]
        if unit > 1:
            planes[-1] = [[min(rounded(value, unit), 255) for value in row] for row in planes[-1]]
    if curve:
        for c in range(channels):
            light, table = curve[f"from{image.bits}"], curve[f"to{image.bits}"]
            if c == colours:
                planes[c] = [[reduced(value) if image.bits == 8 else value for value in row] for row in planes[c]]
                continue
            for y, row in enumerate(planes[c]):  # a level stays where its light does
                levels = (image.at(x, y, c) for x in range(width))
                planes[c][y] = [level if light[level] == value else table[value] for value, level in zip(row, levels)]
    return image.with_samples(planes[c][y][x] for y in range(height) for x in range(width) for c in range(channels))


# ---- The tests ----

def gpuconv(*arguments, status=0):
    """Run it and return what it prints."""
    done = harness.run(PROGRAM, *arguments, status=status)
    return done.stdout + done.stderr


def expect(what, actual, expected):
    if actual.same(expected):
        return
    wrong = sum(a != b for a, b in zip(actual.samples, expected.samples))
    print(f"{what}: {actual.width} x {actual.height} x {actual.channels}, {actual.bits} bits instead of "
          f"{expected.width} x {expected.height} x {expected.channels}, {expected.bits} bits; {wrong} samples differ, "
          f"{actual.samples[:8]} instead of {expected.samples[:8]}")
    sys.exit(1)


def lively(image):
    """Check that the samples would show a mistake."""
    top = (1 << image.bits) - 1
    inside = sum(0 < value < top for value in image.samples)
    assert inside > len(image.samples) // 8 and len(set(image.samples)) > 30, "the picture tests nothing"


def test_identity(readers):
    """Every kind of 16-bit PNG comes back sample by sample from every codec."""
    for channels in 1, 2, 3, 4:
        for interlaced in False, True:
            for transparent in (False, True) if channels % 2 else (False,):
                image = noise(13, 11, channels, 16)
                key = image.samples[5 * channels:6 * channels] if transparent else None
                image.samples[7 * channels:8 * channels] = image.samples[5 * channels:6 * channels]
                if transparent:  # equal upper bytes are not enough
                    image.samples[9 * channels:10 * channels] = [value ^ 1 for value in key]
                write_png("in.png", image, interlaced, key)
                expected = image
                if transparent:
                    pixels = [image.samples[i:i + channels] for i in range(0, len(image.samples), channels)]
                    expected = Image(13, 11, channels + 1, 16,
                                     (value for pixel in pixels for value in pixel + [0 if pixel == key else 65535]))
                    assert expected.samples.count(0) >= 2
                what = f"{channels} channels, interlaced {interlaced}, transparent {transparent}"
                gpuconv("identity", "in.png", "out.png")
                expect(what, read_png("out.png"), expected)
                for codec in readers:
                    gpuconv("--codec", codec, "--depth", "8", "identity", "in.png", "out.png")
                    expect(f"{what}, {codec}, --depth 8", read_png("out.png"), with_bits(expected, 8))
                    if codec != "stb":
                        gpuconv("--codec", codec, "identity", "in.png", "out.png")
                        expect(f"{what}, {codec}", read_png("out.png"), expected)
                    # stb reads 16 bits but does not write them
                    gpuconv("--codec", codec, "--compare", "in.png", "in.png")
                assert gpuconv("--codec", "stb", "--compare", "in.png", "in.png") == "equal\n"


def test_filters(curve):
    """Filters, borders, alpha, depths and linear light, by both variants."""
    borders = "replicate", "reflect", "reflect101", "wrap", "zero"
    count = 0
    for channels in 1, 2, 3, 4:
        for bits in 8, 16:
            image = noise(9, 6, channels, bits, seed=channels)
            write_png("in.png", image)
            for name in FILTERS:
                write_filter(f"{name}.txt", name)
                for depth in (None, 8, 16):
                    for light in False, True:
                        count += 1
                        alphas = ("keep", "premultiply", "filter") if channels % 2 == 0 else ("keep",)
                        alpha, border = alphas[count % len(alphas)], borders[count % 5]
                        source = with_bits(image, depth or bits)
                        expected = convolve(source, name, border, alpha, curve if light else None)
                        if name in ("identity", "blur"):
                            lively(expected)
                        options = ["--border", border, "--alpha", alpha] + ["--linear"] * light
                        options += ["--depth", str(depth)] if depth else []
                        for variant in "cpu", "reference":
                            gpuconv(*options, "--variant", variant, f"./{name}.txt", "in.png", "out.png")
                            expect(f"{name}, {channels} channels of {bits} bits, {' '.join(options)}, {variant}",
                                   read_png("out.png"), expected)
    assert count == 4 * 2 * len(FILTERS) * 3 * 2


def test_lossless():
    """All levels survive linear light unchanged, with and without alpha."""
    image = Image(256, 4, 4, 8, (value for y in range(4) for x in range(256)
                                 for value in (x, 255 - x, x, (0, 1, 254, 255)[y])))
    write_png("in.png", image)
    for alpha in "keep", "filter":
        gpuconv("--linear", "--alpha", alpha, "identity", "in.png", "out.png")
        expect(f"identity in linear light, alpha {alpha}", read_png("out.png"), image)
    deep = Image(256, 256, 1, 16, range(65536))
    write_png("deep.png", deep)
    gpuconv("--linear", "identity,identity", "deep.png", "out.png")
    expect("identity in linear light, 16 bits", read_png("out.png"), deep)
    gpuconv("--depth", "16", "identity", "in.png", "out.png")
    expect("8 to 16 bits", read_png("out.png"), with_bits(image, 16))
    gpuconv("--depth", "8", "identity", "out.png", "back.png")
    expect("and back", read_png("back.png"), image)


def test_threads():
    """Bands of rows, threads and both variants, on an image of several bands."""
    chance = random.Random(5)
    for channels, options in (3, []), (4, ["--alpha", "premultiply"]), (3, ["--linear"]), (1, ["--border", "wrap"]):
        width, height = 500, 900
        raw = chance.randbytes(2 * width * height * channels)
        with open("large.png", "wb") as file:
            file.write(png(width, height, channels, 16, unfiltered(raw, 2 * width * channels), level=1))
        for name in "gaussian:2", "emboss":
            files = {}
            for threads in "1", "2", "5":
                gpuconv(*options, "--threads", threads, name, "large.png", "out.png")
                with open("out.png", "rb") as file:
                    files[threads] = file.read()
            gpuconv(*options, "--variant", "reference", name, "large.png", "want.png")
            assert gpuconv("--compare", "want.png", "out.png") == "equal\n", (name, options)
            assert len(set(files.values())) == 1, f"{name} {options}: the threads change the file"


def test_chains():
    """A chain equals its filters, one after the other."""
    for channels, bits, options in ((3, 16, []), (4, 16, ["--alpha", "premultiply"]), (3, 8, ["--linear"]),
                                    (4, 16, ["--linear", "--alpha", "premultiply"]), (2, 8, ["--depth", "16"])):
        write_png("in.png", noise(23, 17, channels, bits))
        gpuconv(*options, "blur,sharpen,emboss", "in.png", "chain.png")
        for name, source, made in ("blur", "in", "a"), ("sharpen", "a", "b"), ("emboss", "b", "c"):
            gpuconv(*options, name, f"{source}.png", f"{made}.png")
        assert gpuconv("--compare", "chain.png", "c.png") == "equal\n", (channels, bits, options)
        lively(read_png("chain.png"))


def test_batch():
    """A batch equals one run for each file, and its report has the depth."""
    os.mkdir("many")
    for i in range(6):
        write_png(f"many/{i}.png", noise(30 + i, 20, i % 4 + 1, 16 if i % 2 else 8))
    for options in [], ["--depth", "16"], ["--linear"], ["--depth", "8"]:
        gpuconv("-q", "-j3", *options, "sharpen", "many", "-o", "out", "--report", "report")
        with open("report", encoding="ascii") as file:
            lines = [json.loads(line) for line in file]
        assert len(lines) == 6
        for line in lines:
            wanted = int(options[1]) if options[:1] == ["--depth"] else read_png(line["input"]).bits
            assert line["bits"] == wanted and line["status"] == "done", line
            gpuconv(*options, "sharpen", line["input"], "one.png")
            expect(f"{line['input']} {options}", read_png(line["output"]), read_png("one.png"))
        os.remove("report")


def main():
    for name in "GPUCONV_FILTERS", "XDG_CONFIG_HOME":
        os.environ.pop(name, None)
    listed = gpuconv("--list-codecs").splitlines()
    readers = [line.split()[0] for line in listed if "PNG" in line and "not built in" not in line]
    assert {"parallel-png", "stb"} <= set(readers)
    curve = {name: table for name, (table, _) in linear.tables().items()}
    with harness.temporary_folder() as folder:
        os.environ["HOME"] = folder
        test_identity(readers)
        test_filters(curve)
        test_lossless()
        test_threads()
        test_chains()
        test_batch()


main()
