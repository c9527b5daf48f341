#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Alpha that weighs the colours, against double precision and against plain filters: alpha.py GPUCONV [BACKEND].

An opaque picture gets the bytes of --alpha keep, with every filter and border, alone and in a chain; so do opaque parts
of another picture. Colours are within half a level and what 16 bits lose of the weighted mean. One colour stays one."""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import temporary_folder  # noqa: E402
from read_png import read  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

W, H = 60, 50
BINOMIAL = [[a * b / 256 for a in (1, 4, 6, 4, 1)] for b in (1, 4, 6, 4, 1)]
MEAN = [[1 / 9] * 3] * 3
SHARPEN = [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]
FILTERS = ("blur", "sharpen", "unsharp", "edge", "emboss", "sobel", "shift", "sharpen,edge,blur")


def noise(low, high, seed=1):
    random.seed(seed)
    return [random.randint(low, high) if i % 4 == 3 else random.randrange(256) for i in range(W * H * 4)]


def save(path, pixels):
    with open(path, "wb") as file:
        file.write(png(W, H, 4, 8, unfiltered(bytes(pixels), 4 * W), level=1))


def weighted(pixels, taps, x, y):
    """The exact alpha and colours at x, y; the border replicates."""
    reach, total, colours = len(taps) // 2, 0.0, [0.0] * 3
    for j, row in enumerate(taps):
        for i, tap in enumerate(row):
            at = (min(max(y + j - reach, 0), H - 1) * W + min(max(x + i - reach, 0), W - 1)) * 4
            total += tap * pixels[at + 3]
            for c in range(3):
                colours[c] += tap * pixels[at + 3] * pixels[at + c]
    return total, colours


def main():
    program, backend = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cpu"
    failures = []
    with temporary_folder() as folder:
        source, result = os.path.join(folder, "in.png"), os.path.join(folder, "out.png")

        def run(filters, *options):
            subprocess.run([program, "--backend", backend, *options, filters, source, result], check=True)
            return [sample for row in read(result)[3] for pixel in row for sample in pixel]

        save(source, noise(255, 255))
        for filters in FILTERS:
            for border in ("replicate", "reflect", "wrap", "zero"):
                for options in ([], ["--depth", "16"], ["--linear"]):
                    options = [*options, "--border", border]
                    if run(filters, *options) != run(filters, *options, "--alpha", "keep"):
                        failures.append(f"opaque: {filters} {options}")
        pixels = noise(255, 255)
        pixels[-1] = 254
        save(source, pixels)
        for filters in FILTERS:
            if run(filters)[:W * (H - 6) * 4] != run(filters, "--alpha", "keep")[:W * (H - 6) * 4]:
                failures.append(f"opaque parts: {filters}")

        for high, bound in ((255, 0.51), (8, 0.7), (1, 2.4)):
            pixels = noise(high // 2, high)
            save(source, pixels)
            for name, taps in (("blur", BINOMIAL), ("box3", MEAN)):
                out, worst = run(name), 0.0
                for y in range(H):
                    for x in range(W):
                        total, colours = weighted(pixels, taps, x, y)
                        at = (y * W + x) * 4
                        if out[at + 3] == 0 or total < high / 4:
                            continue
                        worst = max([worst] + [abs(out[at + c] - colours[c] / total) for c in range(3)])
                print(f"alpha {high // 2} to {high}, {name}: colours within {worst:.3f} levels")
                if worst > bound:
                    failures.append(f"{name}, alpha up to {high}: {worst}")

        logo = [v for y in range(H) for x in range(W)
                for v in ((0, 128, 255, 255) if 15 < x < 40 and 15 < y < 35 else (255, 0, 0, 0))]
        save(source, logo)
        for filters in ("blur", "unsharp", "gaussian:3", "disk:4", "blur,shift"):
            out = run(filters)
            found = {tuple(out[i:i + 3]) for i in range(0, len(out), 4) if out[i + 3] > 1}
            # Half a 16-bit level of such an alpha is a level of 8 bits.
            found |= {(0, 128, 255) if abs(out[i + 1] - 128) <= 1 else tuple(out[i:i + 3])
                      for i in range(0, len(out), 4) if out[i + 3] == 1}
            if found != {(0, 128, 255)}:
                failures.append(f"{filters} changes the one colour of a logo: {sorted(found)[:4]}")
    print("\n".join(failures))
    return 1 if failures else 0


sys.exit(main())
