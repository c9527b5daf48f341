#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzzers `image` and `inflate`: seeds.py IMAGES STREAMS. They are small pictures of every kind
of PNG and PNM, the kinds of JPEG that cjpeg, djpeg and jpegtran (libjpeg-turbo) make from a corner of a sample, and
deflate streams with all types of blocks, also as other writers make them. The corpora grew from them."""
import itertools
import os
import random
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import foreign_streams  # noqa: E402
from write_png import SIGNATURE, chunk, ihdr  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLE = os.path.join(HERE, "..", "..", "samples", "rocket.jpg")
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
SCANS = {  # for cjpeg -scans
    "spectral": "0 1 2: 0-0, 0, 0;\n0: 1-5, 0, 0;\n0: 6-63, 0, 0;\n1: 1-63, 0, 0;\n2: 1-63, 0, 0;\n",
    "successive": "0 1 2: 0-0, 0, 2;\n0: 1-63, 0, 1;\n0 1 2: 0-0, 2, 1;\n0: 1-63, 1, 0;\n0 1 2: 0-0, 1, 0;\n",
    "sequential": "0;\n1;\n2;\n",
}


def png(colour, bits, interlaced, transparent, width, height, chance):
    """A picture of noise on a ramp, with all five row filters."""
    raw = b""
    for x0, y0, dx, dy in PASSES if interlaced else ((0, 0, 1, 1),):
        columns = len(range(x0, width, dx))
        for y in range(y0, height, dy) if columns else ():
            size = (columns * CHANNELS[colour] * bits + 7) // 8
            raw += bytes([chance.randrange(5)]) + bytes((i * 3 + y + chance.randrange(9)) % 256 for i in range(size))
    data = SIGNATURE + ihdr(width, height, bits, colour, interlaced)
    data += chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1))
    if colour == 3:
        data += chunk(b"PLTE", bytes(chance.randrange(256) for _ in range(3 << bits)))
    if transparent:
        data += chunk(b"tRNS", b"\x10\x80" if colour == 3 else b"\0\1" * CHANNELS[colour])
    packed = zlib.compress(raw, 9)
    half = len(packed) // 2  # two chunks, as in large files
    return data + chunk(b"IDAT", packed[:half]) + chunk(b"IDAT", packed[half:]) + chunk(b"IEND")


def foreign_png(chance):
    """A picture of few colours, with the stream and the chunks of another writer."""
    width, height = chance.choice((1, 2, 3, 60)), chance.choice((1, 40))
    raw = b"".join(bytes([chance.randrange(5)]) + bytes(chance.choices((0, 0, 1, 250), k=3 * width)) for _ in range(height))
    return (SIGNATURE + ihdr(width, height, 8, 2, False) +
            foreign_streams.idats_by_chance(chance, foreign_streams.by_chance(chance, raw)) + chunk(b"IEND"))


def pnms(chance):
    """All kinds and depths, and what is allowed in headers."""
    def samples(count, maxval):
        return b"".join(chance.randrange(maxval + 1).to_bytes(2 if maxval > 255 else 1, "big") for _ in range(count))
    for maxval in (1, 100, 255, 1000, 65535):
        yield f"{maxval}.pgm", b"P5\n19 11\n%d\n" % maxval + samples(19 * 11, maxval)
        yield f"{maxval}.ppm", b"P6 # a comment\n7\t#\n5\r\n%d " % maxval + samples(7 * 5 * 3, maxval)
        for channels, kind in enumerate(("", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"), 1):
            yield f"{channels}-{maxval}.pam", (b"P7\n# a comment\nWIDTH 9\nHEIGHT 5\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\n"
                                               b"ENDHDR\n" % (channels, maxval, kind.encode())
                                               ) + samples(9 * 5 * channels, maxval)
    yield "two.pgm", 2 * (b"P5 3 2 255 " + samples(6, 255))


def output_of(*command, data=None):
    return subprocess.run(command, input=data, check=True, stdout=subprocess.PIPE).stdout


def jpegs(folder):
    """Corners of the sample: subsampling, grey, restart markers, progressive and other scan orders, metadata."""
    corner = output_of("jpegtran", "-crop", "40x24+160+64", SAMPLE)
    pixels, grey = output_of("djpeg", "-pnm", data=corner), output_of("djpeg", "-grayscale", "-pnm", data=corner)
    yield "exif", output_of("jpegtran", "-copy", "all", "-crop", "16x16+0+0", SAMPLE)
    for sampling in ("1x1", "2x1", "1x2", "2x2", "4x1", "4x2"):
        yield "sampling-" + sampling, output_of("cjpeg", "-sample", sampling, "-quality", "60", data=pixels)
        yield "progressive-" + sampling, output_of("cjpeg", "-progressive", "-sample", sampling, data=pixels)
    yield "sampling-odd", output_of("cjpeg", "-sample", "2x2,1x2,2x1", data=pixels)
    yield "grey", output_of("cjpeg", "-grayscale", data=grey)
    yield "grey-progressive", output_of("cjpeg", "-progressive", data=grey)
    yield "rgb", output_of("cjpeg", "-rgb", data=pixels)
    yield "restart", output_of("cjpeg", "-restart", "1B", "-optimize", data=pixels)
    yield "quality-1", output_of("cjpeg", "-quality", "1", data=pixels)
    yield "quality-100", output_of("cjpeg", "-quality", "100", "-dct", "float", data=pixels)
    for name, options in (("", []), ("-progressive", ["-progressive"]), ("-restart", ["-restart", "1B"])):
        yield "arithmetic" + name, output_of("cjpeg", "-arithmetic", "-quality", "60", *options, data=pixels)
    for name, text in SCANS.items():
        path = os.path.join(folder, "scans.tmp")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        yield "scans-" + name, output_of("cjpeg", "-scans", path, data=pixels)
        os.remove(path)


def streams(chance):
    """Noise, runs and copies, by each level and strategy, with all kinds of flushes; 4 bytes come before."""
    for level, strategy in itertools.chain(((i, 0) for i in (0, 1, 6, 9)), ((6, i) for i in (1, 2, 3, 4))):
        data = b""
        while len(data) < (20000 if level > 0 else 5000):
            data += bytes(chance.randrange(8) for _ in range(chance.randrange(300)))
            data += chance.choice((b"\1\2\3", b"\0")) * chance.randrange(100) + data[-chance.randrange(1, 9999):][:500]
        deflate, packed = zlib.compressobj(level, zlib.DEFLATED, -15, 1, strategy), b""
        for at in range(0, len(data), 1500):
            packed += deflate.compress(data[at:at + 1500]) + deflate.flush(chance.choice((0, 0, 2, 3, 5)))
        yield f"{level}-{strategy}", bytes((20 + 9 * level, 255, 5, strategy)) + packed + deflate.flush()
    for number in range(16):
        stream = foreign_streams.by_chance(chance, data[:chance.randrange(1, 5000)])
        blocks = stream[2:-4]  # without zlib's head and tail
        yield f"foreign-{number}", bytes((chance.randrange(256), 3, 5, number)) + blocks


def main():
    folder, stream_folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.makedirs(stream_folder, exist_ok=True)
    chance = random.Random(1)
    files = {}
    for colour, interlaced in itertools.product(CHANNELS, (0, 1)):
        for bits in DEPTHS[colour]:
            for transparent in (False, True) if colour < 4 else (False,):
                name = f"{colour}-{bits}{'-interlaced' * interlaced}{'-transparent' * transparent}.png"
                files[name] = png(colour, bits, interlaced, transparent, 19, 11, chance)
    files["one.png"] = png(2, 8, 0, False, 1, 1, chance)
    files["row.png"] = png(0, 1, 1, False, 33, 1, chance)
    files["column.png"] = png(6, 16, 1, False, 1, 33, chance)
    files.update((f"foreign-{number}.png", foreign_png(random.Random(number))) for number in range(24))
    files.update(pnms(chance))
    files.update((name + ".jpg", data) for name, data in jpegs(folder))
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    for name, data in streams(random.Random(1)):
        with open(os.path.join(stream_folder, name), "wb") as file:
            file.write(data)


main()
