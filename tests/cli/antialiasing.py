#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--compare --ignore-antialiasing and --tolerance-yiq: antialiasing.py GPUCONV PART.

PART `itself` checks every pixel of small drawings against the rule, written here in fractions. PART `pixelmatch` checks
pixelmatch's own example images against pixelmatch, which node runs. It is skipped unless the variable PIXELMATCH names
a clone: git clone -b v7.2.0 https://github.com/mapbox/pixelmatch"""
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
from fractions import Fraction

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run, skip, temporary_folder  # noqa: E402
from read_png import read, read_plain  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

YELLOW = [255, 255, 0]


def write(path, width, height, channels, bits, samples):
    data = b"".join(sample.to_bytes(bits // 8, "big") for sample in samples)
    pathlib.Path(path).write_bytes(png(width, height, channels, bits, unfiltered(data, width * channels * bits // 8)))


def compare(program, *options):
    """The line of JSON about a.png and b.png, and the numbers of the yellow pixels of the picture, or None."""
    pathlib.Path("difference.png").unlink(missing_ok=True)
    done = subprocess.run([program, "--compare", "a.png", "b.png", "difference.png", "--json", *options],
                          capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == (found["status"] == "different"), found
    if "picture" not in found or "--ignore-antialiasing" not in options:
        return found, None
    width, _, channels, rows, _ = read_plain("difference.png")
    assert channels == 3
    pixels = [row[3 * x:3 * x + 3] for row in rows for x in range(width)]
    assert all(pixel == YELLOW or pixel[0] == pixel[1] == pixel[2] for pixel in pixels)
    return found, [i for i, pixel in enumerate(pixels) if pixel == YELLOW]


# ---- The rule ----

WEIGHTS = [[Fraction(number) for number in row.split()] for row in (
    "0.29889531 0.58662247 0.11448223", "0.59597799 -0.27417610 -0.32180189", "0.21147017 -0.52261711 0.31114694")]


class Picture:
    def __init__(self, width, height, channels, bits, samples):
        self.width, self.height, self.white = width, height, (1 << bits) - 1
        self.pixels = [tuple(samples[i:i + channels]) for i in range(0, len(samples), channels)]

    def colour(self, i):
        """Red, green, blue from 0 to 255, and alpha from 0 to 1."""
        pixel = self.pixels[i]
        alpha = Fraction(pixel[-1], self.white) if len(pixel) in (2, 4) else Fraction(1)
        colours = pixel[:3] if len(pixel) >= 3 else pixel[:1] * 3
        return [Fraction(255 * colour, self.white) for colour in colours], alpha

    def around(self, i):
        """The neighbours of pixel I, column by column."""
        x, y = i % self.width, i // self.width
        return [v * self.width + u for u in range(max(x - 1, 0), min(x + 2, self.width))
                for v in range(max(y - 1, 0), min(y + 2, self.height)) if (u, v) != (x, y)]

    def is_inside(self, i):
        around = self.around(i)
        return (len(around) < 8) + sum(self.pixels[j] == self.pixels[i] for j in around) > 2


def yiq(a, b, place):
    """The difference of two colours over the ground at PLACE."""
    ground = [48] + [48 + 159 * (math.floor(4 * place / ratio) % 2) for ratio in (1.618033988749895, 2.618033988749895)]
    over = [[g + (c - g) * alpha for c, g in zip(colours, ground)] for colours, alpha in (a, b)]
    return [sum(w * (p - q) for w, p, q in zip(row, *over)) for row in WEIGHTS]


def distance(a, b, i):
    y, p, q = yiq(a.colour(i), b.colour(i), i)
    return Fraction("0.5053") * y * y + Fraction("0.299") * p * p + Fraction("0.1957") * q * q


def is_antialiased(picture, other, i):
    around = picture.around(i)
    brighter = [yiq(picture.colour(i), picture.colour(j), i)[0] for j in around]
    if (len(around) < 8) + brighter.count(0) > 2 or not min(brighter, default=0) < 0 < max(brighter):
        return False
    ends = [around[brighter.index(end)] for end in (min(brighter), max(brighter))]
    return any(picture.is_inside(end) and other.is_inside(end) for end in ends)


def verdicts(a, b, threshold):
    """The numbers of the pixels that differ, and of those that are antialiased."""
    beyond = [i for i in range(len(a.pixels)) if distance(a, b, i) > 35215 * threshold * threshold]
    smooth = [i for i in beyond if is_antialiased(a, b, i) or is_antialiased(b, a, i)]
    return [i for i in beyond if i not in smooth], smooth


def draw(width, height, channels, white, shift, noise):
    """An ellipse with smooth edges, moved by SHIFT pixels, and some pixels of noise."""
    colours = [white * (c + 1) // 5 for c in range(channels)], [white * (7 - c) // 8 for c in range(channels)]
    if channels in (2, 4):
        colours[0][-1], colours[1][-1] = white // 9, white - white // 5
    samples = []
    for y in range(height):
        for x in range(width):
            radius = math.hypot((x - width / 2 - shift) / 1.4, y - height / 2)
            cover = min(max(height / 3 - radius + 0.5, 0), 1)
            samples += [round(p + (q - p) * cover) for p, q in zip(*colours)]
    for _ in range(noise):
        samples[random.randrange(len(samples))] = random.randrange(white + 1)
    return samples


def check_itself(program):
    random.seed(33)
    shapes = [(1, 1), (1, 9), (9, 1), (2, 2), (21, 17)]
    seen = [0, 0]
    for width, height in shapes:
        for channels in range(1, 5):
            for bits in (8, 16):
                two = [draw(width, height, channels, (1 << bits) - 1, shift, noise)
                       for shift, noise in ((0, 3), (0.3, 30))]
                for name, samples in zip("ab", two):
                    write(f"{name}.png", width, height, channels, bits, samples)
                a, b = (Picture(width, height, channels, bits, samples) for samples in two)
                for threshold in ("0.000001", "0.02", "0.1", "1"):
                    different, smooth = verdicts(a, b, Fraction(threshold))
                    found, yellow = compare(program, "--ignore-antialiasing", "--tolerance-yiq", threshold)
                    if found.get("same_bytes") is None:
                        numbers = found["different"], found["antialiased"]
                        assert numbers == (len(different), len(smooth)), (width, height, channels, bits, threshold)
                        assert yellow is None or yellow == smooth
                        seen = [seen[0] + len(different), seen[1] + len(smooth)]
                    # Without the rule they all count.
                    found, _ = compare(program, "--tolerance-yiq", threshold)
                    assert found.get("different", 0) == len(different) + len(smooth)
    assert min(seen) > 300, seen  # both verdicts were there


# ---- pixelmatch ----

SCRIPT = """
import fs from "node:fs";
const {default: match} = await import(process.argv[2] + "/index.js");
const [width, height, threshold] = process.argv.slice(3).map(Number);
const a = fs.readFileSync("a.raw"), b = fs.readFileSync("b.raw"), out = Buffer.alloc(a.length);
console.log(match(a, b, out, width, height, {threshold, alpha: 0}));
fs.writeFileSync("out.raw", out);
"""


def check_pixelmatch(program):
    clone = os.environ.get("PIXELMATCH")
    if clone is None or shutil.which("node") is None:
        skip("PIXELMATCH names no clone of pixelmatch 7.2.0" if clone is None else "there is no node")
    pathlib.Path("match.mjs").write_text(SCRIPT)
    images = pathlib.Path(clone, "test", "fixtures")
    for pair in (("1a", "1b"), ("2a", "2b"), ("3a", "3b"), ("4a", "4b"), ("5a", "5b"), ("6a", "6b"), ("7a", "7b"),
                 ("8a", "5b")):
        for side, name in zip("ab", pair):
            width, height, _, rows = read(images / f"{name}.png")
            samples = [sample for row in rows for pixel in row for sample in (pixel + (255,))[:4]]
            write(f"{side}.png", width, height, 4, 8, samples)
            pathlib.Path(f"{side}.raw").write_bytes(bytes(samples))
        for threshold in ("0.05", "0.1", "0.3"):
            count = int(run("node", "match.mjs", clone, str(width), str(height), threshold).stdout)
            out = pathlib.Path("out.raw").read_bytes()
            smooth = [i // 4 for i in range(0, len(out), 4) if list(out[i:i + 3]) == YELLOW]
            found, yellow = compare(program, "--ignore-antialiasing", "--tolerance-yiq", threshold)
            print(f"{pair[0]} {pair[1]} {threshold}: {count} differ, {len(smooth)} are antialiased")
            assert (found["different"], found["antialiased"]) == (count, len(smooth)), found
            assert yellow is None or yellow == smooth


def main():
    program = os.path.abspath(sys.argv[1])
    with temporary_folder():
        {"itself": check_itself, "pixelmatch": check_pixelmatch}[sys.argv[2]](program)


main()
