#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PNGs on a GPU, or on a stub in its place: png_gpu.py GPUCONV. A batch of files of every kind gives the files and the
messages of the CPU, with many options. The kinds: PngSuite, also its corrupt files; opaque and translucent ones,
upright and turned, with a curve; several IDAT chunks; bytes after the last row; damaged chunks, checksums and
streams."""
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from harness import run, skip, temporary_folder  # noqa: E402
from write_png import SIGNATURE, chunk, ihdr, png  # noqa: E402

SUITE = os.path.join(HERE, "..", "data", "pngsuite")
OPTIONS = ("", "--linear", "--depth 8", "--depth 16", "--alpha keep", "--border zero", "--format jpg", "--format pam",
           "--no-orient --compression 2", "-j1")
FILTERS = ("gaussian:2,sharpen", "sobel")  # the taps of gaussian:2 for 8 bits are not those for 16


def rows(width, height, channels, bits, alpha=None):
    """The rows of a picture, with all row filters in turn, or with alpha of this sample and the filter 0 (none)."""
    size, out = bits // 8, b""
    for y in range(height):
        out += bytes([y % 5 if alpha is None else 0])
        for x in range(width):
            pixel = bytes((x * 7 + y * 13 + i * 31 + x * y) % 256 for i in range(channels * size))
            out += pixel if alpha is None else pixel[:-size] + alpha.to_bytes(size, "big")
    return out


def oriented(orientation):
    return chunk(b"eXIf", b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0))


def whole_files():
    """The name and the bytes of each intact file that a GPU decodes."""
    for channels in 1, 2, 3, 4:
        for bits in 8, 16:
            name = f"{channels}-{bits}"
            yield name, png(67, 41, channels, bits, rows(67, 41, channels, bits))
            yield f"{name}-turned", png(30, 41, channels, bits, rows(30, 41, channels, bits),
                                        chunks=oriented(2 * channels - bits // 16))
            yield f"{name}-curve", png(9, 70, channels, bits, rows(9, 70, channels, bits),
                                       chunks=chunk(b"gAMA", struct.pack(">I", 50000)))
    for alpha in 255, 254:
        yield f"alpha-{alpha}", png(70, 50, 4, 8, rows(70, 50, 4, 8, alpha), chunks=oriented(6))
    for alpha in 65535, 65534, 65407, 65406:  # the last but one becomes 255, and the last becomes 254
        yield f"alpha-{alpha}", png(70, 50, 2, 16, rows(70, 50, 2, 16, alpha))
    stream = zlib.compress(rows(200, 100, 3, 8), 6)
    yield "chunks", (SIGNATURE + ihdr(200, 100) + b"".join(chunk(b"IDAT", stream[at:at + 97])
                                                           for at in range(0, len(stream), 97)) + chunk(b"IEND"))


def other_files():
    """Files that only the CPU decodes, or refuses."""
    raw = rows(20, 30, 3, 8)
    stream = zlib.compress(raw, 6)
    wrong = stream[:-1] + bytes([stream[-1] ^ 1])
    middle = stream[:99] + bytes([stream[99] ^ 64]) + stream[100:]
    intact = png(20, 30, 3, 8, raw)
    for name, data in (("checksum", wrong), ("damaged", middle), ("short", zlib.compress(raw[:-1])),
                       ("long", zlib.compress(raw + b"12")), ("after", stream + b"12"), ("head", b"\0" + stream[1:]),
                       ("filter", zlib.compress(b"\5" + raw[1:]))):
        yield name, SIGNATURE + ihdr(20, 30) + chunk(b"IDAT", data) + chunk(b"IEND")
    yield "crc", intact[:-20] + bytes([intact[-20] ^ 1]) + intact[-19:]
    yield "cut", intact[:-16]


def tree(folder):
    """The bytes of each file."""
    return {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}


def convert(program, backend, options):
    """The files, the messages, and the report."""
    shutil.rmtree("out", ignore_errors=True)
    if os.path.exists("report"):
        os.remove("report")
    command = [program, "-q", "--backend", backend, *options, "in", SUITE, "-o", "out", "--report", "report"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    with open("report", encoding="utf-8") as lines:
        report = [json.loads(line) for line in lines]
    return tree("out"), sorted(done.stderr.splitlines()), report


def main():
    program = os.path.abspath(sys.argv[1])
    if "no CUDA device" in run(program, "--devices").stdout:
        skip("there is no GPU")
    wrong = 0
    with temporary_folder():
        os.mkdir("in")
        whole = dict(whole_files())
        for name, data in [*whole.items(), *other_files()]:
            with open(f"in/{name}.png", "wb") as file:
                file.write(data)
        for filters in FILTERS:
            for option in OPTIONS:
                options = [*option.split(), filters]
                want, want_said, _ = convert(program, "cpu", options)
                files, said, report = convert(program, "cuda", options)
                differ = [name for name in sorted({**want, **files}) if want.get(name) != files.get(name)]
                uploaded = [row["input"] for row in report
                            if "upload" in row.get("ms", {}) and os.path.basename(row["input"])[:-4] in whole]
                if differ or said != want_said or uploaded or len(want) < len(whole) + 150:
                    print(f"{filters} {option}: {len(want)} files; differ: {differ}; not decoded: {uploaded}; "
                          f"messages: {sorted(set(said) ^ set(want_said))}")
                    wrong += 1
    return 1 if wrong else 0


sys.exit(main())
