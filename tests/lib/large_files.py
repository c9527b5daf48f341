# SPDX-License-Identifier: MIT
"""Writers of large pictures that are quickly made: each row of a PNG has one level, which repeats every PERIOD rows,
and a JPEG is of one grey."""
import struct
import zlib

from write_png import SIGNATURE, chunk, ihdr

PERIOD = 300
ADLER_PRIME = 65521


def level(row):
    return row % PERIOD * 5 % 256


def join_adler(first, second, size):
    """The checksum of two runs of bytes, from their own checksums. The second run has SIZE bytes."""
    a = (first & 0xffff) - 1
    sums = ((first >> 16) + (second >> 16) + size % ADLER_PRIME * a) % ADLER_PRIME
    return sums << 16 | ((second & 0xffff) + a) % ADLER_PRIME


def png(width, height, bits=8):
    """A grey PNG. Its data are those of PERIOD rows, again and again."""
    rows = b"".join(b"\0" + bytes([level(y)]) * ((width * bits + 7) // 8) for y in range(PERIOD))
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = deflate.compress(rows) + deflate.flush(zlib.Z_FULL_FLUSH)
    adler = 1
    for _ in range(height // PERIOD):
        adler = join_adler(adler, zlib.adler32(rows), len(rows))
    data = b"\x78\x01" + height // PERIOD * packed + b"\x03\x00" + struct.pack(">I", adler)
    return SIGNATURE + ihdr(width, height, bits, 0) + chunk(b"IDAT", data) + chunk(b"IEND")


def segment(marker, data):
    return struct.pack(">BBH", 0xff, marker, len(data) + 2) + data


def cmyk(width, height, factors=0x11, orientation=1):
    """A progressive CMYK JPEG with arithmetic codes, which need no data for one colour."""
    exif = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)
    return (b"\xff\xd8" + segment(0xe1, exif) + segment(0xdb, b"\0" + 64 * b"\1")
            + segment(0xca, struct.pack(">BHHB", 8, height, width, 4)
                      + b"".join(bytes([i, factors, 0]) for i in range(4)))
            + b"".join(segment(0xda, bytes([1, i, 0, 0, 0, 0])) for i in range(4)) + b"\xff\xd9")


def jpeg(width, height, progressive=False, components=1):
    """A JPEG of one grey, with a scan for each component. Each code of its tables is the bit 0: "no difference", and
    "no more coefficients"."""
    bits = (width + 7) // 8 * ((height + 7) // 8) * (1 if progressive else 2)
    ids = range(1, components + 1)
    return (b"\xff\xd8" + segment(0xdb, b"\0" + 64 * b"\1")
            + segment(0xc2 if progressive else 0xc0, struct.pack(">BHHB", 8, height, width, components)
                      + b"".join(bytes([i, 0x11, 0]) for i in ids))
            + segment(0xc4, b"\0\1" + 16 * b"\0") + segment(0xc4, b"\x10\1" + 16 * b"\0")
            + b"".join(segment(0xda, bytes([1, i, 0, 0, 0 if progressive else 63, 0])) + (bits + 7) // 8 * b"\0" for i in ids)
            + b"\xff\xd9")
