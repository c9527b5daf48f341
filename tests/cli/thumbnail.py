#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Thumbnails against libjpeg-turbo's djpeg, which decodes to smaller pictures: thumbnail.py GPUCONV STUB.

The bytes are those of a resize of what djpeg -scale makes, for each subsampling, with one thread and several, and
through the GPU of STUB. Where no decoder may make the picture smaller, they are those of a resize. Skipped (exit
status 77) without cjpeg, djpeg and the codec libjpeg-turbo."""
import functools
import itertools
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip, temporary_folder  # noqa: E402

KINDS = (("-sample", "2x2"), ("-sample", "2x1"), ("-sample", "1x2"), ("-sample", "4x1"), ("-sample", "1x1"), ("-grayscale",),
         ("-progressive", "-sample", "2x2"), ("-restart", "3B", "-sample", "2x2"), ("-sample", "2x2,1x1,2x1"),
         ("-arithmetic",))


def write(name, width, height, pixels):
    with open(name, "wb") as file:
        file.write(b"P%d %d %d 255\n" % (6 if len(pixels) > width * height else 5, width, height) + pixels)


def read(name):
    """The sides of a PGM or PPM, and its samples."""
    with open(name, "rb") as file:
        _, width, height, _, pixels = file.read().replace(b"\n", b" ", 3).split(b" ", 4)
    return int(width), int(height), pixels


@functools.cache
def slopes(width, height):
    """The samples of slopes, edges and noise."""
    noise = random.randbytes(3 * width * height)
    return bytes((x * 3 + y * 2 + 90 * (x // 37 + y // 29 & 1) + 40 * c + noise[3 * (y * width + x) + c] // 4) // 3 & 255
                 for y in range(height) for x in range(width) for c in range(3))


def make_photo(width, height, kind):
    """The bytes of a JPEG."""
    write("photo.ppm", width, height, slopes(width, height))
    return subprocess.run(["cjpeg", "-quality", str(random.choice((60, 85, 97))), *kind, "photo.ppm"], check=True,
                          stdout=subprocess.PIPE).stdout


class Runs:
    def __init__(self, program, stub):
        self.program, self.stub, self.threads = program, stub, itertools.cycle("13")

    def run(self, *words, program=None):
        return subprocess.run([program or self.program, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def bytes_of(self, *words, program=None):
        self.run(*words, program=program)
        with open(words[2], "rb") as file:
            return file.read()

    def all_ways(self, spec, name, expected, *options):
        """The GPU, and in turns one thread and three, make the picture EXPECTED. Returns the message of the CPU, which
        may be --verbose."""
        for way in (("--backend", "cuda"), ("--threads", next(self.threads))):
            program = self.stub if way[0] == "--backend" else self.program
            message = self.run(spec, name, "out.pnm", *way, *options, program=program).stderr
            with open("out.pnm", "rb") as file:
                got = file.read()
            assert got == expected, (spec, name, way, got[:20], expected[:20])
        return message


def denominator(width, height, to_width, to_height):
    """By how much the decoder may make a picture smaller: it keeps twice the result, or more."""
    fits = [n for n in (1, 2, 4, 8) if -(-width // n) >= 2 * to_width and -(-height // n) >= 2 * to_height]
    return max(fits, default=1)


def scaled(n, name):
    subprocess.run(["djpeg", "-scale", f"1/{n}", "-pnm", "-outfile", "scaled.pnm", name], check=True)
    return read("scaled.pnm")


def check_sizes(runs):
    specs = ("thumbnail:40x", "thumbnail:x99", "thumbnail:70x70:exact:triangle", "thumbnail:12.5%:box", "thumbnail:30%:cubic",
             "thumbnail:50%", "thumbnail:51%", "thumbnail:150%", "thumbnail:9000x", "thumbnail:1x1:exact",
             "thumbnail:90x30:cover", "thumbnail:20x40:cover:box")
    seen = set()
    for number, kind in enumerate(KINDS):
        # parallel-jpeg takes 2^19 pixels and more
        for width, height in ((1009, 521), (random.randrange(17, 300), random.randrange(17, 300)), (3, 50)):
            with open("photo.jpg", "wb") as file:
                file.write(make_photo(width, height, kind))
            for spec in specs[number % 3::3]:
                size = runs.bytes_of(spec.replace("thumbnail", "resize"), "photo.jpg", "out.pnm")
                to_width, to_height, _ = read("out.pnm")
                n = denominator(width, height, to_width, to_height)
                seen.add(n)
                if n > 1:
                    scaled(n, "photo.jpg")
                    kernel = [word for word in spec.split(":") if word in ("triangle", "box", "cubic")]
                    size = runs.bytes_of(":".join([f"resize:{to_width}x{to_height}:exact", *kernel]), "scaled.pnm", "out.pnm")
                verbose = runs.all_ways(spec, "photo.jpg", size, "--verbose")
                assert (b"decoded at 1/%d" % n in verbose) == (n > 1), (spec, verbose)
    assert seen == {1, 2, 4, 8}, seen


def with_exif(data, orientation, width, height):
    entries = ((0x100, 4, width), (0x101, 4, height), (0x112, 3, orientation << 16))
    block = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", len(entries))
    block += b"".join(struct.pack(">HHII", tag, kind, 1, value) for tag, kind, value in entries) + bytes(4)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + data[2:]


def check_orientation(runs):
    """A photo on its side: the result's width is a part of its height. EXIF has the sides of the result."""
    data = make_photo(640, 401, ("-sample", "2x2"))
    with open("turned.jpg", "wb") as file:
        file.write(with_exif(data, 6, 640, 401))
    width, height, pixels = scaled(4, "turned.jpg")
    turned = b"".join(pixels[3 * ((height - 1 - x) * width + y):][:3] for y in range(width) for x in range(height))
    write("turned.ppm", height, width, turned)
    runs.all_ways("thumbnail:50x", "turned.jpg", runs.bytes_of("resize:50x80:exact", "turned.ppm", "out.pnm"))
    for spec, sides in (("thumbnail:50x", (50, 80)), ("thumbnail:50x,resize:401x640:exact", (401, 640))):
        jpeg = runs.bytes_of(spec, "turned.jpg", "out.jpg")
        for tag, value in zip((0x100, 0x101), sides):
            assert struct.pack(">HHII", tag, 4, 1, value) in jpeg, (spec, tag)
    jpeg = runs.bytes_of("thumbnail:50x,turn:90,crop:70x30", "turned.jpg", "out.jpg")
    for tag, value in ((0x100, 70), (0x101, 30)):
        assert struct.pack(">HHII", tag, 4, 1, value) in jpeg, tag
    write("plain.ppm", width, height, pixels)
    runs.all_ways("thumbnail:x50", "turned.jpg", runs.bytes_of("resize:80x50:exact", "plain.ppm", "out.pnm"),
                  "--no-orient")


def check_resizes(runs):
    """Where a thumbnail is a resize: after another filter, in linear light, of another format, by the codec stb."""
    with open("photo.jpg", "wb") as file:
        file.write(make_photo(400, 300, ("-sample", "2x2")))
    runs.run("identity", "photo.jpg", "photo.png")
    for spec, name, *options in (("blur,thumbnail:20%", "photo.jpg"), ("crop:50%,thumbnail:20%", "photo.jpg"),
                                 ("turn:90,thumbnail:20%", "photo.jpg"), ("thumbnail:20%", "photo.png"),
                                 ("thumbnail:20%", "photo.jpg", "--linear"), ("thumbnail:20%", "photo.jpg", "--codec", "stb")):
        expected = runs.bytes_of(spec.replace("thumbnail", "resize"), name, "out.png", *options)
        assert runs.bytes_of(spec, name, "out.png", *options) == expected, (spec, options)
    scaled(2, "photo.jpg")
    for more in (",sharpen", ",thumbnail:50%", ",unsharp:1:1", ",crop:50%", ",turn:90,sharpen", ",pad:90x99:#f80,mirror:y"):
        expected = runs.bytes_of("resize:80x60:exact" + more, "scaled.pnm", "out.pnm")
        runs.all_ways("thumbnail:20%" + more, "photo.jpg", expected)
    expected = runs.bytes_of("resize:100x75:exact,crop:100x40:top", "scaled.pnm", "out.pnm")
    runs.all_ways("thumbnail:100x40:cover,crop:100x40:top", "photo.jpg", expected)
    runs.run("identity", "photo.jpg", "whole.pnm")
    runs.all_ways("cover:100x40:top", "photo.jpg", runs.bytes_of("cover:100x40:top", "whole.pnm", "out.pnm"))
    expected = runs.bytes_of("resize:80x60:exact", "scaled.pnm", "out.pnm", "--depth", "16")
    runs.all_ways("thumbnail:20%", "photo.jpg", expected, "--depth", "16")


def check_batch(runs):
    """Photos of two sizes, in turns, with one recipe: results of one height, then of one width. A report; digests."""
    os.mkdir("photos")
    for i in range(6):
        with open(f"photos/{i}.jpg", "wb") as file:
            file.write(make_photo(300 + 50 * (i % 2), 200, KINDS[i % 3]))
    for number, spec in enumerate(("thumbnail:x24", "thumbnail:40x")):
        runs.run("-r", spec + ",sharpen", "photos", "-o", f"out{number}", f"--report=report{number}", "--jobs", "1")
        for i in range(6):
            alone = runs.bytes_of(spec + ",sharpen", f"photos/{i}.jpg", "alone.jpg")
            with open(f"out{number}/{i}.jpg", "rb") as file:
                assert file.read() == alone, i
            runs.run(spec, f"photos/{i}.jpg", "out.png")
            digests = runs.run("--digest", "--filter", spec, f"photos/{i}.jpg"), runs.run("--digest", "out.png")
            assert digests[0].stdout[:64] == digests[1].stdout[:64], i
    with open("jobs", "w", encoding="utf-8") as file:  # one worker, two filters, one size
        for i in range(4):
            job = {"input": "photos/0.jpg", "output": f"job{i}.png", "filter": ("thumbnail:40x", "thumbnail:40x:box")[i % 2]}
            file.write(json.dumps(job) + "\n")
    runs.run("--jobs-from", "jobs", "--jobs", "1")
    for i in range(4):
        with open(f"job{i}.png", "rb") as file:
            assert file.read() == runs.bytes_of(("thumbnail:40x", "thumbnail:40x:box")[i % 2], "photos/0.jpg", "out.png"), i
    with open("report1", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert {(row["input_width"], row["decoded_at"]) for row in rows} == {(300, "1/2"), (350, "1/4")}, rows


def main():
    for tool in ("cjpeg", "djpeg"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    program, stub = map(os.path.abspath, sys.argv[1:3])
    codecs = subprocess.run([program, "--list-codecs"], capture_output=True, text=True, check=True).stdout
    if re.search(r"^libjpeg-turbo .*\(not built in\)$", codecs, re.MULTILINE):
        skip("libjpeg-turbo was not built in, and stb makes no JPEG smaller")
    random.seed(11)
    with temporary_folder():
        runs = Runs(program, stub)
        for check in (check_sizes, check_orientation, check_resizes, check_batch):
            check(runs)


if __name__ == "__main__":
    main()
