#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure how far Gaussian blurs are from the true Gaussian: accuracy.py GPUCONV [--sigmas 1,8] [--json FILE].

The true Gaussian has double precision, 12 standard deviations on each side, and the outermost pixels go on outside the
picture, as all peers do it. Each number is the largest difference of an output from it, in levels, over a photo and a
picture of hard edges; 0.5 is what rounding to a level alone may cost. The pictures are grey, of 8 and of 16 bits. The
peers are those of these that are installed, with their defaults where the name says nothing else: OpenCV's GaussianBlur
(pip install opencv-python-headless), libvips' gaussblur (the program vips), SciPy's gaussian_filter of integers and
ImageMagick's -blur 0xSIGMA (convert). The difference includes that of their taps' cut."""
import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

from batch_bench import ROOT, save_json

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from read_png import read_plain  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PHOTO = "coffee.png"
MIN_AMPLITUDE = "0.001"  # the least that vips gaussblur takes


def read(path):
    width, height, channels, rows, bits = read_plain(path)
    samples = numpy.array(rows, dtype=numpy.uint16 if bits == 16 else numpy.uint8).reshape(height, width, channels)
    return samples[:, :, 0]


def write(path, samples):
    height, width = samples.shape
    big_endian = samples.astype(samples.dtype.newbyteorder(">"))
    with open(path, "wb") as file:
        file.write(png(width, height, 1, 8 * samples.itemsize,
                       unfiltered(big_endian.tobytes(), width * samples.itemsize)))


def hard_edges(height, width):
    """Black and white: lines, steps, checkerboards and rows of random letters."""
    picture = numpy.zeros((height, width), dtype=bool)
    y, x = numpy.mgrid[:height, :width]
    half, third = height // 2, width // 3
    picture[:half, :third] = (x * x // 500 % 2)[:half, :third].astype(bool)  # lines, ever thinner
    picture[:half, third:2 * third] = (x + y > third)[:half, third:2 * third]
    picture[:half, 2 * third:] = ((x >> y // 24) + (y >> y // 24) & 1)[:half, 2 * third:].astype(bool)
    letters = numpy.random.default_rng(18).integers(0, 2, (height // 12, width // 8, 5, 3), dtype=numpy.uint8)
    for row in range(half // 12):
        for column in range(width // 8):
            picture[half + 12 * row:half + 12 * row + 10, 8 * column:8 * column + 6] = \
                letters[row, column].repeat(2, 0).repeat(2, 1)
    picture[-40:, width // 2:] = True
    return picture


def pictures(bits):
    photo = read(os.path.join(ROOT, "samples", PHOTO))
    edges = hard_edges(*photo.shape)
    kind, most = (numpy.uint8, 255) if bits == 8 else (numpy.uint16, 65535)
    return {"photo": photo.astype(kind) * kind(most // 255), "edges": edges.astype(kind) * kind(most)}


def band(sigma, size):
    """The matrix that blurs SIZE samples."""
    reach = int(12 * sigma) + 2
    taps = numpy.exp(-0.5 * (numpy.arange(-reach, reach + 1) / sigma) ** 2)
    matrix = numpy.zeros((size, size))
    for offset, tap in zip(range(-reach, reach + 1), taps / taps.sum()):
        numpy.add.at(matrix, (numpy.arange(size), numpy.clip(numpy.arange(size) + offset, 0, size - 1)), tap)
    return matrix


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def gpuconv(program, variant):
    def blur(source, target, samples, sigma):
        run(program, "-q", "--variant", variant, f"gaussian:{sigma}", source, target)
        return read(target)
    return blur


def opencv():
    import cv2
    return lambda source, target, samples, sigma: cv2.GaussianBlur(samples, (0, 0), sigma,
                                                                   borderType=cv2.BORDER_REPLICATE)


def scipy():
    from scipy import ndimage
    return lambda source, target, samples, sigma: ndimage.gaussian_filter(samples, sigma, mode="nearest")


def vips(*options):
    def blur(source, target, samples, sigma):
        middle, rounded = target + ".v", target + ".round.v"
        run("vips", "gaussblur", source, middle, str(sigma), *options)
        form = subprocess.run(["vipsheader", "-f", "format", middle], check=True, capture_output=True, text=True).stdout
        if form.strip() in ("float", "double"):
            run("vips", "round", middle, rounded, "rint")
            run("vips", "cast", rounded, middle, "uchar" if samples.itemsize == 1 else "ushort")
        run("vips", "copy", middle, target, "--interpretation", "b-w" if samples.itemsize == 1 else "grey16")
        return read(target)
    return blur


def imagemagick(source, target, samples, sigma):
    bits = str(8 * samples.itemsize)
    run("convert", source, "-virtual-pixel", "edge", "-blur", f"0x{sigma}", "-depth", bits,
        "-define", "png:color-type=0", "-define", f"png:bit-depth={bits}", target)
    return read(target)


def version(*command):
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(r"\d+(\.\d+)+(-\d+)?", text)[0]


def find_peers(program, variant):
    """The functions, by name, and the versions; and the names of those that are missing."""
    peers, versions, missing = {"gpuconv": gpuconv(program, variant)}, {}, []
    for name, make, module in (("OpenCV", opencv, "cv2"), ("SciPy", scipy, "scipy")):
        if importlib.util.find_spec(module) is None:
            missing.append(name)
            continue
        peers[name] = make()
        versions[name] = sys.modules[module].__version__
    if shutil.which("vips") is None:
        missing.append("libvips")
    else:
        peers["libvips"] = vips()
        peers["libvips, float"] = vips("--precision", "float")
        peers["libvips, float, finest"] = vips("--precision", "float", "--min-ampl", MIN_AMPLITUDE)
        peers["libvips, approximate"] = vips("--precision", "approximate")
        versions["libvips"] = version("vips", "--version")
    try:
        versions["ImageMagick"] = version("convert", "--version")
        peers["ImageMagick"] = imagemagick
    except (OSError, subprocess.CalledProcessError):
        missing.append("ImageMagick")
    return peers, versions, missing


def bound(program, sigma, bits):
    """What gpuconv --show promises, with the rounding to a level."""
    shown = json.loads(subprocess.run([program, "--show", f"gaussian:{sigma}", "--json"], check=True,
                                      capture_output=True, text=True).stdout)[0]
    return 0.5 + (shown["deep"] or shown if bits == 16 else shown)["largest_error"]


def measure(program, peers, sigma, bits, folder):
    row = {"sigma": sigma, "bits": bits, "bound": bound(program, sigma, bits), "largest": {}}
    for picture, samples in pictures(bits).items():
        source, target = os.path.join(folder, "in.png"), os.path.join(folder, "out.png")
        write(source, samples)
        true = band(sigma, samples.shape[0]) @ samples.astype(float) @ band(sigma, samples.shape[1]).T
        for name, blur in peers.items():
            actual = blur(source, target, samples, sigma)
            assert actual.shape == samples.shape and actual.dtype == samples.dtype, (name, actual.dtype, actual.shape)
            row["largest"].setdefault(name, {})[picture] = float(numpy.abs(actual - true).max())
    assert max(row["largest"]["gpuconv"].values()) <= row["bound"] + 1e-9, row
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--sigmas", default="1,2,4,8,16,50,100,170")
    parser.add_argument("--variant", default="cpu")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    peers, versions, missing = find_peers(program, arguments.variant)
    print(", ".join(f"{name} {number}" for name, number in versions.items())
          + (f"; not installed: {', '.join(missing)}" if missing else ""))
    print("| bits | sigma | bound | " + " | ".join(peers) + " |\n" + "| --- " * (3 + len(peers)) + "|")
    rows = []
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        for bits in (8, 16):
            for sigma in arguments.sigmas.split(","):
                rows.append(measure(program, peers, float(sigma), bits, folder))
                largest = [max(values.values()) for values in rows[-1]["largest"].values()]
                print(f"| {bits} | {sigma} | {rows[-1]['bound']:.3f} | "
                      + " | ".join(f"{value:.3g}" for value in largest) + " |", flush=True)
    if arguments.json:
        save_json(arguments.json, {"versions": versions, "missing": missing, "rows": rows})


if __name__ == "__main__":
    main()
