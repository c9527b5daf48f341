#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PngSuite, the images that a decoder of PNG must read and the corrupt ones that it must refuse: check.py GPUCONV.

All go through the filter `identity` with every codec for PNG. Those that are corrupt are refused with one sentence each,
and leave nothing; what is made of the others is compared, sample by sample, with what the decoder in here makes of
them, which is written after the standard (ISO/IEC 15948) and shares nothing with gpuconv."""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunks(data):
    at = 8
    while at < len(data):
        length = struct.unpack_from(">I", data, at)[0]
        yield data[at + 4:at + 8], data[at + 8:at + 8 + length]
        at += 12 + length


def paeth(a, b, c):
    distances = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    return (a, b, c)[distances.index(min(distances))]


def unfilter(kind, row, above, step):
    """Section 9 of the standard."""
    row = bytearray(row)
    for i in range(len(row)):
        left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
        row[i] = row[i] + (0, left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[kind] & 255
    return row


def samples_of(row, bits, count):
    if bits == 16:
        return struct.unpack(f">{count}H", row)
    return [row[i * bits // 8] >> 8 - bits - i * bits % 8 & (1 << bits) - 1 for i in range(count)]


def decode(data):
    """The picture as (width, height, bits, rows of pixels); pixels are tuples of samples of 8 or 16 bits."""
    named = {}
    packed = b""
    for name, content in chunks(data):
        named[name] = content
        packed += content if name == b"IDAT" else b""
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", named[b"IHDR"])
    channels = CHANNELS[colour]
    palette = [tuple(named[b"PLTE"][i:i + 3]) for i in range(0, len(named[b"PLTE"]), 3)] if colour == 3 else []
    transparent = named.get(b"tRNS")
    key = ()
    if transparent is not None and colour == 3:
        palette = [entry + (alpha,) for entry, alpha in zip(palette, transparent.ljust(len(palette), b"\xff"))]
    elif transparent is not None:
        key = struct.unpack(f">{channels}H", transparent)
    most, scale = (65535, 1) if bits == 16 else (255, 255 // ((1 << bits) - 1))

    raw, at = zlib.decompress(packed), 0
    picture = [[None] * width for _ in range(height)]
    for x0, y0, across, down in PASSES if interlaced else ((0, 0, 1, 1),):
        columns = range(x0, width, across)
        size = (len(columns) * channels * bits + 7) // 8
        above = bytes(size)
        for y in range(y0, height, down) if columns else ():
            above = unfilter(raw[at], raw[at + 1:at + 1 + size], above, max(1, channels * bits // 8))
            at += 1 + size
            samples = samples_of(above, bits, len(columns) * channels)
            for i, x in enumerate(columns):
                pixel = tuple(samples[i * channels:(i + 1) * channels])
                if colour == 3:
                    picture[y][x] = palette[pixel[0]]
                else:
                    alpha = ((0 if pixel == key else most),) if key else ()
                    picture[y][x] = tuple(sample * scale for sample in pixel) + alpha
    return width, height, 16 if bits == 16 else 8, picture


def same(expected, actual):
    """Are the pictures equal? Where 8 bits were asked for, of 16 to the nearest."""
    if expected[:2] != actual[:2] or len(expected[3][0][0]) != len(actual[3][0][0]):
        return False
    if expected[2] == actual[2]:
        return expected[3] == actual[3]
    return expected[2] > actual[2] and all((e * 255 + 32767) // 65535 == a for rows in zip(expected[3], actual[3])
                                           for pixels in zip(*rows) for e, a in zip(*pixels))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def codecs(program):
    """Those that are built in and read and write PNG, and whether they write 16 bits a sample."""
    lines = subprocess.run([program, "--list-codecs"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [(line.split()[0], "stb" not in line) for line in lines if "PNG" in line and "not built in" not in line]


def check(program, codec, deep, names, folder, pictures):
    """Run one codec over all of them; returns what is wrong."""
    outputs = os.path.join(folder, codec)
    command = [program, "-q", "--codec", codec, "--backend", "cpu", "identity"] + ([] if deep else ["--depth", "8"])
    command += [os.path.join(HERE, name) for name in names] + ["-o", outputs]
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    wrong = [] if run.returncode == 1 else [f"exit status {run.returncode}"]
    said = [line for line in run.stderr.splitlines() if HERE in line]
    wrong += [f"unexpected: {line}" for line in run.stderr.splitlines()[:-1] if line not in said]
    for name in names:
        path = os.path.join(outputs, name)
        sentences = [line for line in said if f"{os.sep}{name}: " in line]
        if name.startswith("x"):
            wrong += [f"{name}: not refused once: {sentences}"] if len(sentences) != 1 or os.path.exists(path) else []
        elif sentences:
            wrong += sentences
        elif not same(pictures[name], decode(read(path))):
            wrong.append(f"{name}: other samples")
    return wrong


def main():
    program = os.path.abspath(sys.argv[1])
    names = sorted(name for name in os.listdir(HERE) if name.endswith(".png"))
    pictures = {name: decode(read(os.path.join(HERE, name))) for name in names if not name.startswith("x")}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        for codec, deep in codecs(program):
            wrong = check(program, codec, deep, names, folder, pictures)
            print(f"{codec}: {len(pictures)} images, {len(names) - len(pictures)} corrupt ones, {len(wrong)} faults")
            for line in wrong:
                print(f"  {line}")
            failed += len(wrong)
    return 1 if failed > 0 or len(names) != 175 else 0


sys.exit(main())
