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
    bits += "".join(map(codes.__getitem__, rows)) + "1" * 9
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


# ---- By chance ----

STRATEGIES = zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED
Z_BLOCK = 5  # ends a block and keeps its last bits; Python has no name for it
ALIGNED = zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH
PIECES = 4000  # the maximal number of blocks, or of chunks, of a stream


def stored(data):
    """A block of up to 65535 bytes that is not compressed. It begins on a whole byte, and is not the last one."""
    return b"\0" + struct.pack("<HH", len(data), len(data) ^ 0xffff) + data


def wrapped(window, level, blocks, data):
    """A stream of BLOCKS whose header says 2^WINDOW bytes, 8 to 15, and LEVEL, 0 to 3."""
    head = (window - 8 << 4 | 8) << 8 | level << 6
    return struct.pack(">H", head + 31 - head % 31) + blocks + struct.pack(">I", zlib.adler32(data))


def size_by_chance(chance, total):
    """The size of a piece: all magnitudes are equally likely, and TOTAL bytes have not more than PIECES."""
    return max(int(2 ** chance.uniform(0, 17)), total // PIECES, 1)


def stored_by_chance(chance, data):
    """Blocks that are not compressed: of one size, or of many."""
    size, varies, out, at = min(size_by_chance(chance, len(data)), 65535), chance.random() < 0.5, [], 0
    while at < len(data):
        count = chance.randrange(1, size + 1) if varies else size
        out.append(stored(b"") * (chance.random() < 0.1) + stored(data[at:at + count]))
        at += count
    return wrapped(chance.randrange(8, 16), 0, b"".join(out) + b"\1\0\0\xff\xff", data)


def flushed_by_chance(chance, data):
    """Any settings of zlib, a flush of any kind at any byte, and empty and stored blocks where they can stand."""
    window, strategy = chance.randrange(9, 16), chance.choice(STRATEGIES)
    z = zlib.compressobj(chance.randrange(10), zlib.DEFLATED, -window, chance.randrange(1, 10), strategy)
    flushes = chance.choices((*ALIGNED, zlib.Z_PARTIAL_FLUSH, Z_BLOCK), k=chance.randrange(1, 4))
    size, inserts, out, at = size_by_chance(chance, len(data)), chance.random() < 0.3, [], 0
    while at < len(data):
        count = chance.randrange(1, 2 * size + 1)
        flush = chance.choice(flushes)
        out.append(z.compress(data[at:at + count]) + z.flush(flush))
        at += count
        if inserts and flush in ALIGNED:
            out.append(stored(b"") * chance.choice((0, 1, 30)))
        if inserts and flush == zlib.Z_FULL_FLUSH and at < len(data):  # zlib repeats nothing from before this byte
            piece = data[at:at + chance.randrange(1, min(size, 65535) + 1)]
            out.append(stored(piece))
            at += len(piece)
    if strategy in (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE):  # the only distance is 1
        window = chance.randrange(8, 16)
    return wrapped(window, chance.randrange(4), b"".join(out) + z.flush(), data)


def by_chance(chance, data):
    """A stream of a writer that CHANCE, a random.Random, makes up."""
    kind = chance.choices(("flushed", "zlib", "stored", "named"), (5, 3, 1, 1))[0]
    if kind == "flushed":
        return flushed_by_chance(chance, data)
    if kind == "stored":
        return stored_by_chance(chance, data)
    if kind == "named" and len(data) < 1 << 18:
        return chance.choice(list(STREAMS.values()))(data)
    return by_zlib(chance.randrange(10), chance.choice(STRATEGIES), chance.randrange(9, 16), chance.randrange(1, 10))(data)


def idats_by_chance(chance, stream):
    return idats(stream, chance.choice((len(stream), 8192, size_by_chance(chance, len(stream)))))
