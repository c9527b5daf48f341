#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the manual's pictures with gpuconv:

    pictures.py GPUCONV            writes docs/pictures/*.png
    pictures.py GPUCONV --check    writes nothing, and fails where a picture is out of date or not in the manual

Filters that move the picture show its borders: a filter with one tap in a corner moves samples from outside into the
image. Four such filters, one for each corner, show all sides."""
import colorsys
import math
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from read_png import read  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

FOLDER = os.path.join(HERE, "pictures")
BORDERS = ["replicate", "reflect", "reflect101", "wrap", "zero"]
LETTER = ["..........", ".######...", ".#.....#..", ".#.....#..", ".######...", ".#...#....", ".#....#...",
          ".........."]
LINE = (224, 0, 0)


class Gpuconv:
    """Runs the program in a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, rows, chunks=b""):
        samples, channels = bytes(sample for row in rows for pixel in row for sample in pixel), len(rows[0][0])
        with open(self.path(name), "wb") as file:
            file.write(png(len(rows[0]), len(rows), channels, 8, unfiltered(samples, channels * len(rows[0])), chunks=chunks))

    def run(self, *words):
        """The rows of out.png, after a run on in.png."""
        subprocess.run([self.program, "--backend", "cpu", *words, "in.png", "out.png"], cwd=self.folder, check=True,
                       env=dict(os.environ, GPUCONV_FILTERS="", HOME=self.folder, XDG_CONFIG_HOME=self.folder))
        return read(self.path("out.png"))[3]

    def filtered(self, rows, *words):
        self.write("in.png", rows)
        return self.run(*words)

    def from_p3(self, rows):
        """The same colours of Display P3, which cICP names, in sRGB."""
        self.write("in.png", rows, chunk(b"cICP", b"\x0c\x0d\0\1"))
        return self.run("to-srgb")

    def steep(self, depth):
        """A blurred shade of few levels, of DEPTH bits, made 12 times as steep."""
        self.write("in.png", [[(100 + (x + y) // 24,) * 3 for x in range(288)] for y in range(192)])
        with open(self.path("steep.txt"), "w", encoding="utf-8") as file:
            file.write("scale 1\noffset -1200\n12\n")
        self.run("--depth", str(depth), "gaussian:12,./steep.txt")
        os.replace(self.path("out.png"), self.path("in.png"))
        return self.run("--depth", "8", "identity")


def crop(name, x, y, width, height):
    rows = read(os.path.join(ROOT, "samples", name))[3]
    return [row[x:x + width] for row in rows[y:y + height]]


def magnified(rows, times):
    return [[pixel for pixel in row for _ in range(times)] for row in rows for _ in range(times)]


def letter():
    """A letter that no mirror leaves as it is, over colours that tell its columns and rows apart."""
    return [[(40, 40, 60) if dot == "#" else (255 - 12 * x, 200 - 5 * x + 5 * y, 70 + 22 * y)
             for x, dot in enumerate(row)] for y, row in enumerate(LETTER)]


def framed(rows, x, y, width, height):
    """A line of two pixels around a rectangle."""
    def is_line(i, j):
        inside = x <= i < x + width and y <= j < y + height
        return not inside and x - 2 <= i < x + width + 2 and y - 2 <= j < y + height + 2

    return [[LINE if is_line(i, j) else pixel for i, pixel in enumerate(row)] for j, row in enumerate(rows)]


def surrounded(gpuconv, rows, border, margin):
    """The picture, and MARGIN pixels around it as the border makes them; at most half of a side."""
    width, height, side = len(rows[0]), len(rows), 2 * margin + 1
    whole = [[None] * (width + 2 * margin) for _ in range(height + 2 * margin)]
    for down in (0, 2 * margin):
        for right in (0, 2 * margin):  # the tap's column: the output at x shows the input at x + right - margin
            taps = [["1" if (i, j) == (right, down) else "0" for i in range(side)] for j in range(side)]
            with open(gpuconv.path("moved.txt"), "w", encoding="utf-8") as file:
                file.writelines(" ".join(row) + "\n" for row in taps)
            for j, row in enumerate(gpuconv.filtered(rows, "--border", border, "./moved.txt")):
                whole[j + down][right:right + width] = row
    return whole


def night(width, height):
    """A dark sky with stars of one pixel, over a fence of black and white columns."""
    def pixel(x, y):
        if y >= height * 3 // 4:
            return (255, 255, 255) if x % 2 else (0, 0, 0)
        is_star = (x * 37 + y * 61 + x * y % 7) % 23 == 0
        return (255, 244, 200) if is_star else (6, 8, 22)

    return [[pixel(x, y) for x in range(width)] for y in range(height)]


def wheel(width, height):
    """All hues around a white centre, the strongest outside, with rings that are lighter and darker."""
    def pixel(x, y):
        right, down = (2 * x + 1 - width) / height, (2 * y + 1 - height) / height
        far = math.hypot(right, down)
        value = 0.9 + 0.1 * math.cos(24 * far)
        colour = colorsys.hsv_to_rgb(math.atan2(down, right) / (2 * math.pi) % 1, far, value)
        return tuple(round(255 * c) for c in colour) if far < 1 else (255, 255, 255)

    return [[pixel(x, y) for x in range(width)] for y in range(height)]


def specks(rows):
    """Salt and pepper: a tenth of the pixels is black or white."""
    chance = random.Random(67)
    return [[chance.choice(((0, 0, 0), (255, 255, 255))) if chance.random() < 0.1 else pixel for pixel in row] for row in rows]


def make(gpuconv):
    """All pictures, by name."""
    margin, times = 4, 8
    rows = letter()
    cup = crop("coffee.png", 150, 60, 144, 128)
    for border in BORDERS:
        whole = magnified(surrounded(gpuconv, rows, border, margin), times)
        yield f"border-{border}", framed(whole, margin * times, margin * times, len(rows[0]) * times, len(rows) * times)
        yield f"blurred-{border}", gpuconv.filtered(cup, "--border", border, "box:12")
    for depth in (8, 16):
        yield f"depth-{depth}", gpuconv.steep(depth)
    eye = crop("cat.png", 76, 50, 72, 64)
    for name in ("identity", "sharpen", "unsharp"):
        yield name, magnified(gpuconv.filtered(eye, name), 2)
    for spec in ("levels:20:180:1.4", "saturation:-60", "sepia", "invert", "posterize:4", "threshold:45"):
        yield spec.partition(":")[0], magnified(gpuconv.filtered(eye, spec), 2)
    yield "pale", magnified(gpuconv.filtered(eye, "contrast:-60,brightness:20"), 2)
    yield "auto-contrast", magnified(gpuconv.filtered(eye, "contrast:-60,brightness:20,auto-contrast:0.5"), 2)
    for spec in ("pixelate:8@38x34+14+12", "gaussian:4@50%x100%+50%+0"):
        yield f"region-{spec.partition(':')[0]}", magnified(gpuconv.filtered(eye, spec), 2)
    noisy = specks(eye)
    yield "specks", magnified(noisy, 2)
    yield "specks-blur", magnified(gpuconv.filtered(noisy, "gaussian:1"), 2)
    yield "specks-median", magnified(gpuconv.filtered(noisy, "median"), 2)
    for spec in ("erode:2", "dilate:2", "outline:1"):
        yield spec.partition(":")[0], magnified(gpuconv.filtered(eye, spec), 2)
    sky = night(144, 128)
    yield "night", sky
    yield "night-levels", magnified(gpuconv.filtered(sky, "resize:25%"), 4)
    yield "night-linear", magnified(gpuconv.filtered(sky, "resize:25%", "--linear"), 4)
    colours = wheel(144, 128)
    yield "wheel", colours
    yield "wheel-srgb", gpuconv.from_p3(colours)
    eye = crop("cat.png", 92, 62, 36, 32)
    for kernel in ("box", "triangle", "mitchell", "lanczos3"):
        yield f"enlarged-{kernel}", gpuconv.filtered(eye, f"resize:400%:{kernel}")


def main():
    check = sys.argv[2:] == ["--check"]
    with open(os.path.join(HERE, "manual.md"), encoding="utf-8") as file:
        linked = re.findall(r"!\[[^]]+\]\(pictures/([\w-]+)\.png\)", file.read())
    wrong, made = [], set()
    with tempfile.TemporaryDirectory() as folder:
        gpuconv = Gpuconv(sys.argv[1], folder)
        for name, rows in make(gpuconv):
            made.add(name)
            path = os.path.join(FOLDER, name + ".png")
            if linked.count(name) != 1:
                wrong.append(f"the manual shows pictures/{name}.png {linked.count(name)} times, not once")
            else:
                linked.remove(name)
            if not check:
                os.makedirs(FOLDER, exist_ok=True)
                gpuconv.filtered(rows, "--compression", "9", "identity")
                os.replace(gpuconv.path("out.png"), path)
            elif not os.path.exists(path) or read(path)[3] != rows:
                wrong.append(f"docs/pictures/{name}.png is out of date; run docs/pictures.py GPUCONV")
    wrong += [f"docs/pictures/{name} is not made by docs/pictures.py" for name in sorted(os.listdir(FOLDER))
              if name.removesuffix(".png") not in made]
    wrong += [f"the manual shows pictures/{name}.png, which docs/pictures.py does not make" for name in linked]
    print("\n".join(wrong) or f"{len(made)} pictures")
    return 1 if wrong else 0


sys.exit(main())
