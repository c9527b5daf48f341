#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make all golden images anew: update.py GPUCONV. This is the only way to change them; look at them before they are
committed.

First the script computes each picture a second time, with Python's integers and from the definition alone:
out = clamp(floor(sum of tap * sample / scale + offset + 1/2)). With two grids, the root of the sum of both sums'
squares takes the place of the sum. With 16 bits, the offset is 257 * offset. Linear light uses the tables of linear.py.
If the program disagrees, nothing is changed."""
import math
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.dont_write_bytecode = True  # nothing is left in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import linear  # noqa: E402
from read_png import read_plain  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FILTERS = os.path.join(HERE, "..", "..", "filters")
DEEP = ("gaussian9-16", "sharpen-16", "emboss-16", "sobel-16")  # of source-16.png
LINEAR = ("gaussian9-linear", "unsharp-linear")


def read_filter(path):
    """(grids, each rows of taps divided by the scale, offset, absolute, anchor) of a filter file."""
    scale, offset, absolute, anchor, grids = Fraction(1), Fraction(0), False, None, [[]]
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if not words or words[0] == "title":
                continue
            if words[0] == "scale":
                scale = Fraction(words[1])
            elif words[0] == "offset":
                offset = Fraction(words[1])
            elif words[0] == "abs":
                absolute = True
            elif words[0] == "anchor":
                anchor = int(words[1]), int(words[2])
            elif words[0] == "combine":
                assert words[1] == "magnitude"
            elif words[0] == "---":
                grids.append([])
            else:
                grids[-1].append([Fraction(word) for word in words])
    anchor = anchor or (len(grids[0][0]) // 2, len(grids[0]) // 2)
    return [[[tap / scale for tap in row] for row in taps] for taps in grids], offset, absolute, anchor


def convolve(image, path):
    """The rows of samples that the filter at PATH makes of an image, with the border replicated."""
    width, height, channels, rows, bits = image
    grids, offset, absolute, (anchor_x, anchor_y) = read_filter(path)
    top = (1 << bits) - 1
    offset *= top // 255
    divisor = math.lcm(2 * offset.denominator, *(tap.denominator for taps in grids for row in taps for tap in row))
    offsets = int((offset + Fraction(1, 2)) * divisor)
    weights = [[(i - anchor_y, j - anchor_x, int(tap * divisor))
                for i, row in enumerate(taps) for j, tap in enumerate(row) if tap] for taps in grids]
    result = []
    for y in range(height):
        line = []
        for x in range(width):
            for channel in range(channels):
                totals = [0] * len(grids)
                for grid, taps in enumerate(weights):
                    for dy, dx, weight in taps:
                        column = min(max(x + dx, 0), width - 1)
                        totals[grid] += weight * rows[min(max(y + dy, 0), height - 1)][column * channels + channel]
                if len(grids) == 2:  # below, n * divisor - offsets <= root, where the left side is an integer
                    total = math.isqrt(totals[0] ** 2 + totals[1] ** 2)
                else:
                    total = abs(totals[0]) if absolute else totals[0]
                line.append(min(max((total + offsets) // divisor, 0), top))
        result.append(line)
    return result


def convolve_linear(image, path):
    """The same in linear light, of 8 bits without alpha."""
    width, height, channels, rows, bits = image
    assert bits == 8 and channels % 2 == 1
    curve = {name: table for name, (table, _) in linear.tables().items()}
    light = [[curve["from8"][sample] for sample in row] for row in rows]
    return [[curve["to8"][sample] for sample in row]
            for row in convolve((width, height, channels, light, 16), path)]


def check_lively(name, rows, bits):
    """A picture that is one grey or all black and white would let any mistake pass."""
    samples = [sample for row in rows for sample in row]
    inside = sum(0 < sample < (1 << bits) - 1 for sample in samples)
    if len(set(samples)) < 16 or inside < len(samples) // 8:
        sys.exit(f"{name}: the picture is nearly constant or saturated and tests nothing")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: update.py GPUCONV")
    program = os.path.abspath(sys.argv[1])
    os.environ["GPUCONV_FILTERS"] = os.path.abspath(FILTERS)
    names = sorted(name[:-4] for name in os.listdir(FILTERS) if name.endswith(".txt"))
    names += [*DEEP, *LINEAR]
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        for name in names:
            source = os.path.join(HERE, "source-16.png" if name in DEEP else "source.png")
            spec = name.removesuffix("-16").removesuffix("-linear")
            made = os.path.join(folder, f"{name}.png")
            subprocess.run([program, "--variant", "reference", *["--linear"] * (name in LINEAR), spec, source, made],
                           check=True)
            image = read_plain(source)
            expected = (convolve_linear if name in LINEAR else convolve)(image, os.path.join(FILTERS, f"{spec}.txt"))
            if read_plain(made)[3:] != (expected, image[4]):
                sys.exit(f"{name}: the program and this script do not agree; nothing was changed")
            check_lively(name, expected, image[4])
        # Another version of libdeflate compresses to other bytes. An image whose samples are the same stays.
        listed = "".join(f"{name}.png\n" for name in names)
        updated = subprocess.run([program, "--compare", HERE, folder, "--files-from", "-", "--update"], input=listed,
                                 text=True)
    if updated.returncode != 0:
        sys.exit("the images are right, and could not be written")
    print(f"{len(names)} golden images checked")


main()
