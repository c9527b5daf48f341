#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a small PNG to standard output: png.py WIDTH HEIGHT CHANNELS [BITS [SAMPLE...]].

Without samples they are noise on a slope, the same each time, so that every filter changes them; alpha, the last of 2
or 4 channels, is 0, 255 or something in between."""
import random
import struct
import sys
import zlib

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


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
    stride = width * channels * bits // 8
    rows = b"".join(b"\0" + samples[y * stride:(y + 1) * stride] for y in range(height))  # 0: no row filter
    header = struct.pack(">IIBBBBB", width, height, bits, COLOUR_TYPES[channels], 0, 0, 0)
    sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
                            + chunk(b"IEND", b""))


main()
