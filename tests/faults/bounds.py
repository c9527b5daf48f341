#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What --memory counts for an image is an upper bound of what it takes: bounds.py GPUCONV."""
import lzma
import os
import random
import re
import struct
import zlib

from faults import FULL, check, main, run, tree, write
from harness import has_codec, peak
from large_files import cmyk, jpeg, png as flat_png
from write_png import png, unfiltered
from write_tiff import tiff

MEBI = 1 << 20
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# Options, and the format of the output if it is not that of the input.
OPTIONS = ((["blur"], ""), (["gaussian:5,blur"], ""), (["gaussian:30"], ""), (["--linear", "gaussian:2"], ""),
           (["--compression", "6", "identity"], ".png"), (["--depth", "16", "blur"], ".png"),
           (["--border", "wrap", "blur"], ""), (["--quality", "100", "identity"], ".jpg"),
           (["--progressive", "identity"], ".jpg"), (["blur"], ".ppm"), (["resize:40%"], ""),
           (["resize:150%:cubic,blur"], ""), (["--linear", "resize:333x2000:exact,resize:10%"], ""),
           (["turn:90"], ""), (["crop:30%:top"], ""), (["cover:300x200,mirror:y,pad:999x999:#f80"], ""))


def noise(width, height, channels, bits):
    row = channels * width * bits // 8
    return png(width, height, channels, bits, unfiltered(random.Random(1).randbytes(row * height), row), level=1)


def interlaced(width, height):
    """Noise of three channels in seven passes."""
    rows = b""
    for x, y, step_x, step_y in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                                 (0, 1, 1, 2)):
        row = 3 * -(-(width - x) // step_x)
        rows += unfiltered(random.Random(x + y).randbytes(row * -(-(height - y) // step_y)), row)
    return png(width, height, 3, 8, rows, interlaced=1, level=1)


def find_need(command):
    """The least --memory that lets COMMAND run, from what it says it needs; and the memory that it then takes."""
    allowed = 1
    while True:
        status, memory, lines = peak([command[0], "--memory", str(allowed), *command[1:]])
        needs = re.search(r"needs ([\d.]+) (\w+) of memory", " ".join(lines))
        if needs is None:
            check(status == 0 and lines == [], f"{command[1:]}: exit status {status}, said {lines}")
            return allowed, memory
        allowed = int((float(needs[1]) + 0.1) * UNITS[needs[2]])  # a tenth is what the sentence shows


def check_need(start, command, what):
    """START is what a run takes that does nothing."""
    need, memory = find_need(command)
    taken = memory - start
    check(taken <= need,
          f"{what} {command[2:]}: takes {taken / MEBI:.1f} MiB, and --memory {need / MEBI:.1f} MiB allows it")


def write_files(program, width, height):
    """Files of all kinds, of noise, which no codec makes smaller. Returns their names."""
    for name, channels, bits in (("8", 3, 8), ("16", 3, 16), ("grey", 1, 8), ("alpha", 4, 8)):
        write(name + ".png", noise(width, height, channels, bits))
    write("passes.png", interlaced(width, height))
    for name, options in (("noise", ["--quality", "100"]), ("scans", ["--progressive"])):
        check(run([program, *options, "identity", "8.png", name + ".jpg"]).status == 0, name)
    write("flat.jpg", jpeg(width, height, progressive=True))
    if has_codec(program, "libjpeg-turbo"):
        write("cmyk.jpg", cmyk(width, height))
    for name, source in (("8.ppm", "8.png"), ("16.pam", "16.png")):
        check(run([program, "identity", source, name]).status == 0, name)
    return [name for name in os.listdir() if name.endswith((".png", ".jpg", ".ppm", ".pam"))]


def check_bounds(program, width, height, all_threads):
    start = peak([program, "--version"])[1]
    count = 0
    for name in write_files(program, width, height):
        for options, suffix in OPTIONS:
            count += 1
            output = "o" + (suffix or name[-4:])
            threads = str(all_threads[count % len(all_threads)])
            command = [program, "--quiet", "--threads", threads, *options, name, output]
            check_need(start, command, f"{width} x {height}")
            os.remove(output)


def test_bounds(program):
    check_bounds(program, 1500, 1000, (1, 2))
    if FULL:
        check_bounds(program, 600, 400, (4,))
        check_bounds(program, 4000, 3000, (1, 8))


def test_threads(program):
    """Several threads inflate a PNG where the memory allows it, and take no more."""
    rows = unfiltered(bytes(byte & 15 for byte in random.Random(1).randbytes(3 * 1800 * 1200)), 3 * 1800)
    write("soft.png", png(1800, 1200, 3, 8, rows, level=1))
    start = peak([program, "--version"])[1]
    for threads in ("4", "8"):
        command = [program, "--quiet", "--threads", threads, "identity", "soft.png", "o.png"]
        need, least = find_need(command)
        for limit in (need, need + 4 * MEBI, need + 8 * MEBI, need + 16 * MEBI, need + 64 * MEBI):
            status, memory, lines = peak([*command, "--memory", str(limit)])
            check(status == 0 and lines == [], f"threads: exit status {status}, said {lines}")
            check(memory - start <= limit, f"{threads}: takes {(memory - start) / MEBI:.1f} of {limit / MEBI:.1f} MiB")
        check(memory > least + MEBI, f"{threads} threads take {memory / MEBI:.1f} MiB, one inflating {least / MEBI:.1f}")


def test_wide(program):
    """Some wide rows of tall units, in an image that is in memory as a whole."""
    if has_codec(program, "libjpeg-turbo"):
        write("wide.jpg", cmyk(65500, 8, factors=0x44, orientation=6))
        start = peak([program, "--version"])[1]
        check_need(start, [program, "--quiet", "--threads", "2", "identity", "wide.jpg", "o.png"], "65500 x 8")


def test_outputs(program):
    """What writers need besides rows: for a whole picture that is larger than its file, and for the highest level."""
    write("passes.png", interlaced(300, 200))
    write("noise.png", noise(900, 600, 3, 8))
    start = peak([program, "--version"])[1]
    for codec, options in (("libwebp", ["--lossless", "resize:300%:box", "passes.png", "o.webp"]),
                           ("libheif", ["--lossless", "resize:300%:box", "passes.png", "o.avif"]),
                           ("libtiff", ["--compression", "9", "identity", "noise.png", "o.tif"])):
        if has_codec(program, codec):
            check_need(start, [program, "--quiet", "--threads", "1", *options], codec)


def test_resizes(program):
    """A row or a column that becomes a few pixels takes 140 bytes for each of its pixels, as SECURITY.md says."""
    start = peak([program, "--version"])[1]
    for width, height in ((500000, 1), (1, 500000), (500000, 2)):
        for bits in (8, 16):
            with open("long.pgm", "wb") as file:
                file.write(b"P5 %d %d %d\n" % (width, height, (1 << bits) - 1) + bytes(width * height * bits // 8))
            for size in ("1x1", f"{min(width, 7)}x{min(height, 7)}"):
                command = [program, "--quiet", "--threads", "2", f"resize:{size}:exact", "long.pgm", "o.png"]
                check_need(start, command, f"{width} x {height} of {bits} bits")
                need, _ = find_need(command)
                check(need <= 140 * 500000 + 16 * MEBI, f"{command[4]} of {width} x {height} needs {need / MEBI:.1f} MiB")


def test_stream(program):
    """A streamed picture needs its file, some bands, and an output as large as the file."""
    write("flat.png", flat_png(4700, 3000))
    command = [program, "--quiet", "--backend", "cpu", "--threads", "1", "blur", "flat.png", "o.png"]
    need, _ = find_need(command)
    check(need < 16 * MEBI, f"a PNG of {os.path.getsize('flat.png') / MEBI:.1f} MiB needs {need / MEBI:.1f} MiB")


def test_growth(program):
    """Outputs that grow beyond what was expected share the memory of one: jobs begin again, and nothing fails."""
    write("8.png", noise(1500, 1000, 3, 8))
    os.mkdir("in")
    for index in range(4):
        run([program, "--quality", "50", "identity", "8.png", f"in/{index}.jpg"])
    options = ["--quiet", "--threads", "1", "--depth", "16"]
    start = peak([program, "--version"])[1]
    need, _ = find_need([program, *options, "identity", "in/0.jpg", "o.png"])
    many = [program, *options, "-j4", "--format", "png", "identity", "in", "-o"]
    for limit in (need, 2 * need):
        status, memory, lines = peak([*many, f"out{limit}", "--memory", str(limit)])
        check(status == 0 and lines == [], f"growth: exit status {status}, said {lines}")
        check(memory - start <= limit, f"growth: takes {(memory - start) / MEBI:.1f} MiB of {limit / MEBI:.1f} MiB")
    check(run([*many, "want"]).status == 0 and tree("want") == tree(f"out{need}") == tree(f"out{2 * need}"),
          "growth: other outputs")


def zstd(size, window):
    """A frame of SIZE zeros in blocks of one byte, which claims a window of 2^WINDOW bytes (RFC 8878, 3.1.1)."""
    largest = 1 << 17
    counts = [largest] * (size // largest) + [size % largest]
    blocks = [struct.pack("<I", count << 3 | 1 << 1)[:3] + b"\0" for count in counts]
    blocks[-1] = bytes([blocks[-1][0] | 1]) + blocks[-1][1:]
    return b"\x28\xb5\x2f\xfd\0" + bytes([window - 10 << 3]) + b"".join(blocks)


def xz(size, code):
    """SIZE zeros by LZMA, which claim the dictionary of CODE (the .xz file format, 3.1 and 5.3.1)."""
    data = lzma.compress(bytes(size), check=lzma.CHECK_NONE, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}])
    header = data[12:16] + bytes([code]) + data[17:20]
    return data[:12] + header + struct.pack("<I", zlib.crc32(header)) + data[24:]


def claiming_tiffs():
    """TIFFs of one strip, with what makes libtiff take memory, and the MiB that are enough, or None if all are."""
    def one(width, height, compression, data, bits=8, photometric=1, samples=1, more=()):
        return tiff("<", {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [compression]),
                          262: (3, [photometric]), 277: (3, [samples]), **dict(more)}, data)
    shared = {tag: (7, list(bytes(100000))) for tag in range(40000, 40001)}
    many = one(40, 30, 1, bytes(1200), more=shared.items())
    at = struct.unpack_from("<I", many, 4)[0]
    entries = [many[at + 2 + i * 12:at + 14 + i * 12] for i in range(struct.unpack_from("<H", many, at)[0])]
    place = len(many)
    entries = entries[:-1] + [struct.pack("<H", 40000 + i) + entries[-1][2:] for i in range(4000)]
    many = many[:4] + struct.pack("<I", place) + many[8:] + struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    side = 6000
    yield "4000 tags", many, 4
    yield "window of ZSTD", one(side, side, 50000, zstd(side * side, 27)), None
    yield "dictionary of LZMA", one(side, side, 34925, xz(side * side, 30)), None
    yield "progressive JPEG", one(side, side, 7, jpeg(side, side, progressive=True)), None
    yield "JPEG of several scans", one(3500, 3500, 7, jpeg(3500, 3500, components=3), photometric=6, samples=3), None
    yield "JPEG", one(side, side, 7, jpeg(side, side)), 10
    yield "wide JPEG", one(65500, 16, 7, jpeg(65500, 16)), 16
    yield "fax", one(10000000, 1, 4, b"\x80\x08\x00\x80", bits=1, photometric=0), None


def test_tiff(program):
    """What a TIFF claims besides its samples counts, before libtiff sees it."""
    if not has_codec(program, "libtiff"):
        return
    os.environ.pop("MALLOC_PERTURB_", None)  # it would fill a window that has no data
    start = peak([program, "--version"])[1]
    for name, data, most in claiming_tiffs():
        write("in.tif", data)
        command = [program, "--quiet", "--backend", "cpu", "--threads", "1", "identity", "in.tif", "o.png"]
        check_need(start, command, name)
        need, memory = find_need(command)
        check(most is None or need <= most * MEBI, f"{name}: needs {need / MEBI:.1f} MiB")


main([test_bounds, test_threads, test_wide, test_outputs, test_resizes, test_stream, test_tiff, test_growth])
