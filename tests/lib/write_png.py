# SPDX-License-Identifier: MIT
"""A writer of PNG for the tests, the counterpart of read_png.py. It shares nothing with gpuconv."""
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> colour type


def chunk(name, data=b""):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def ihdr(width, height, bits=8, colour=2, interlaced=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))


def png(width, height, channels, bits, rows, *, interlaced=0, chunks=b"", level=-1):
    """The bytes of a file. ROWS holds all rows, each after the number of its row filter. CHUNKS come before IDAT."""
    return (SIGNATURE + ihdr(width, height, bits, COLOUR_TYPES[channels], interlaced) + chunks
            + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND"))


def unfiltered(samples, stride):
    """The rows of SAMPLES, STRIDE bytes each, behind the row filter 0 (none)."""
    return b"".join(b"\0" + samples[at:at + stride] for at in range(0, len(samples), stride))
