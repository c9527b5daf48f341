# SPDX-License-Identifier: MIT
"""Streams of zlib as other writers make them, and IDAT chunks around them."""
import struct
import zlib

from write_png import chunk


def by_zlib(level, strategy=zlib.Z_DEFAULT_STRATEGY, window=15, memory=8):
    def deflate(rows):
        z = zlib.compressobj(level, zlib.DEFLATED, window, memory, strategy)
        return z.compress(rows) + z.flush()
    return deflate


def flushed(flush, size, more=b""):
    """A flush after SIZE bytes each, and then MORE blocks."""
    def deflate(rows):
        z = zlib.compressobj(6)
        pieces = [z.compress(rows[at:at + size]) + z.flush(flush) + more for at in range(0, len(rows), size)]
        return b"".join(pieces) + z.flush()
    return deflate


def one_block(rows):
    """One block with its own codes, and no repetition. 255 bytes have 8 bits; the last one and the end have 9."""
    lengths = [8] * 255 + [9] * 2 + [0]  # the last one is of the only distance
    # The last block; its own codes; 257 lengths, 1 of a distance, and 18 lengths of lengths.
    fields = [(1, 1), (2, 2), (0, 5), (0, 5), (14, 4)]
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
    fields += [({0: 2, 8: 1, 9: 2}.get(length, 0), 3) for length in order]
    bits = "".join(format(value, f"0{size}b")[::-1] for value, size in fields)
    bits += "".join({0: "10", 8: "0", 9: "11"}[length] for length in lengths)
    codes = [format(byte, "08b") for byte in range(255)] + ["1" * 8 + "0"]
    bits += "".join(codes[byte] for byte in rows) + "1" * 9
    bits += "0" * (-len(bits) % 8)
    block = int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")
    return b"\x78\1" + block + struct.pack(">I", zlib.adler32(rows))


STREAMS = {
    "zlib-1": by_zlib(1), "zlib-6": by_zlib(6), "zlib-9": by_zlib(9),
    "stored": by_zlib(0), "fixed": by_zlib(6, zlib.Z_FIXED), "huffman": by_zlib(6, zlib.Z_HUFFMAN_ONLY),
    "runs": by_zlib(1, zlib.Z_RLE), "one-block": one_block,
    "small-window": by_zlib(6, window=9), "small-blocks": by_zlib(6, memory=1), "large-blocks": by_zlib(6, memory=9),
    "full-flush": flushed(zlib.Z_FULL_FLUSH, 5000), "sync-flush": flushed(zlib.Z_SYNC_FLUSH, 50000),
    "partial-flush": flushed(zlib.Z_PARTIAL_FLUSH, 300),
    "empty-blocks": flushed(zlib.Z_SYNC_FLUSH, 50000, 5000 * b"\0\0\0\xff\xff"),
}


def idats(stream, size):
    """The data in chunks of SIZE bytes, some of them empty."""
    return b"".join(chunk(b"IDAT", stream[at:at + size]) + chunk(b"IDAT") * (at % 7 == 0)
                    for at in range(0, len(stream), size))
