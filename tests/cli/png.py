#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a small PNG to standard output: png.py WIDTH HEIGHT CHANNELS [BITS [SAMPLE...]].

Without SAMPLE, the samples are noise on a slope, the same each time, so that every filter changes them. Alpha, the last
of 2 or 4 channels, is 0, 255 or between them."""
import os
import random
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from write_png import png, unfiltered  # noqa: E402


def noise_samples(width, height, channels):
    noise = random.Random(1)
    for y in range(height):
        for x in range(width):
            for channel in range(channels):
                sample = (5 * x + 3 * y + 40 * channel + noise.randrange(100)) % 256
                if channels % 2 == 0 and channel == channels - 1:
                    sample = (0, sample, 255)[noise.randrange(3)]
                yield sample


def main():
    width, height, channels, *rest = map(int, sys.argv[1:])
    bits, *samples = rest or [8]
    samples = bytes(samples or noise_samples(width, height, channels))
    if bits == 16:
        samples = bytes(byte for sample in samples for byte in (sample, sample))
    rows = unfiltered(samples, width * channels * bits // 8)
    sys.stdout.buffer.write(png(width, height, channels, bits, rows))


main()
