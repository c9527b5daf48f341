#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures beyond 2^30 samples, in little memory: large.py GPUCONV."""
import os
import struct
import zlib

from faults import FULL, check, check_failed, main, read, run, write
from harness import peak
from large_files import jpeg, level, png
from write_png import SIGNATURE, chunk, ihdr

MEBI = 1 << 20
STREAMED = 64 * MEBI  # a streamed picture takes no more, apart from its files


def filtered_rows(path):
    """The filtered rows of a grey PNG of 8 bits, without a filter's number: yields (filter, row). Checks the chunks."""
    data = read(path)
    width = struct.unpack_from(">I", data, 16)[0]
    at, inflate, rest = 8, zlib.decompressobj(), b""
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        body = memoryview(data)[at + 8:at + 8 + size]
        check(zlib.crc32(body, zlib.crc32(name)) == struct.unpack_from(">I", data, at + 8 + size)[0], "a CRC")
        while name == b"IDAT" and len(body) > 0:
            rest += inflate.decompress(body, 1 << 24)
            body = inflate.unconsumed_tail
            whole = len(rest) // (width + 1) * (width + 1)
            for start in range(0, whole, width + 1):
                yield rest[start], rest[start + 1:start + width + 1]
            rest = rest[whole:]
        at += 12 + size
    check(inflate.eof and rest == b"", f"{path}: its stream does not end with its rows")


def packed_row(kind, width, value, above):
    """A row of one level after row filter KIND, below a row of another level."""
    first, rest = [(value, value), (value, 0), (value - above, value - above),
                   (value - above // 2, value - (value + above) // 2), (value - above, 0)][kind]
    return bytes([first % 256]) + bytes([rest % 256]) * (width - 1)


def check_rows(path, width, height, level_of):
    above, count, expected = 0, 0, {}
    for kind, row in filtered_rows(path):
        key = (kind, level_of(count), above)
        if key not in expected:
            expected[key] = packed_row(kind, width, level_of(count), above)
        if not check(row == expected[key], f"{path}: row {count} is wrong"):
            return
        above = level_of(count)
        count += 1
    check(count == height, f"{path}: it has {count} rows instead of {height}")


def convert(program, arguments, source, target):
    """Run gpuconv, and check that it takes little memory, apart from the two files."""
    status, memory, lines = peak([program, "--threads", "2", *arguments, source, target])
    if check(status == 0 and lines == [], f"{arguments} {source}: exit status {status}, said {lines}"):
        files = os.path.getsize(source) + os.path.getsize(target)
        check(memory <= STREAMED + files, f"{arguments} {source}: {memory // MEBI} MiB, files of {files // MEBI} MiB")


def test_png(program):
    width, height = 36000, 30000
    write("large.png", png(width, height))
    write("column.txt", b"scale 3\n1\n1\n1\n")
    convert(program, ["column.txt"], "large.png", "o.png")

    def mean(row):
        rows = (max(row - 1, 0), row, min(row + 1, height - 1))
        return (2 * sum(level(y) for y in rows) + 3) // 6
    check_rows("o.png", width, height, mean)


def test_jpeg(program):
    write("large.jpg", jpeg(60000, 18000))
    convert(program, ["blur"], "large.jpg", "o.jpg")
    header = read("o.jpg")
    frame = header.index(b"\xff\xc0")
    check(struct.unpack_from(">HH", header, frame + 5) == (18000, 60000), "o.jpg has other sides")


def test_refused(program):
    """What counts in int says so, and small files that claim much cost nothing."""
    write("large.png", png(40000, 30000, 1))
    check_failed(run([program, "--codec", "stb", "blur", "large.png", "o.png"]), "stb",
                 "40000 x 30000 x 1 samples are too many for the codec stb: it takes at most 2^30 samples")
    small = chunk(b"IDAT", b"\x78\x01\x03\x00\0\0\0\1") + chunk(b"IEND")
    for side, reason in (((1 << 24) - 1, "too few"), ((1 << 31) - 1, "too many"), (1 << 31, "claims")):
        write("claim.png", SIGNATURE + ihdr(side, side, 16, 6) + small)
        status, memory, lines = peak([program, "blur", "claim.png", "o.png"])
        check(status == 1 and len(lines) == 1 and reason in lines[0], f"side {side}: {lines}")
        check(memory < STREAMED, f"side {side}: {memory // MEBI} MiB")


def test_two_chunks(program):
    """A stream of more than 2^31 - 1 bytes is in two chunks, and is read again."""
    width, height = 50000, 45000
    write("large.png", png(width, height))
    convert(program, ["--compression", "0", "identity"], "large.png", "two.png")
    data = read("two.png")
    check(struct.unpack_from(">I4s", data, 33) == (2 ** 31 - 1, b"IDAT"), "its first chunk is not full")
    del data
    convert(program, ["identity"], "two.png", "o.png")
    check_rows("o.png", width, height, level)


def test_others(program):
    """Beyond 2^32 bytes of rows, of 1 bit, and progressive."""
    write("rows.png", png(70000, 69900))
    convert(program, ["identity"], "rows.png", "o.png")
    check_rows("o.png", 70000, 69900, level)
    write("bit.png", png(40000, 30000, 1))
    convert(program, ["blur"], "bit.png", "o.jpg")
    write("scans.jpg", jpeg(60000, 20000, progressive=True))
    ended = run([program, "--memory", "1G", "blur", "scans.jpg", "o.jpg"])
    check_failed(ended, "a progressive JPEG", "GiB of memory, and --memory allows 1.0 GiB")
    ended = run([program, "--memory", "8G", "blur", "scans.jpg", "o.jpg"])
    check(ended.status == 0, f"a progressive JPEG: {ended.lines()}")


main([test_png, test_jpeg, test_refused] + ([test_two_chunks, test_others] if FULL else []))
