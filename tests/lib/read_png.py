# SPDX-License-Identifier: MIT
"""A reader of PNG for the tests, written from the standard (ISO/IEC 15948). It shares nothing with gpuconv and uses
only zlib."""
import struct
import zlib

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


def decode(data, plain=False):
    """The picture as (width, height, bits, rows of pixels); pixels are tuples of samples of 8 or 16 bits. A PLAIN
    picture has these bits in the file, no palette, and is not interlaced."""
    named = {}
    packed = b""
    for name, content in chunks(data):
        named[name] = content
        packed += content if name == b"IDAT" else b""
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", named[b"IHDR"])
    assert not plain or bits in (8, 16) and colour in (0, 2, 4, 6) and not interlaced
    channels = CHANNELS[colour]
    palette = [tuple(named[b"PLTE"][i:i + 3]) for i in range(0, len(named[b"PLTE"]), 3)] if colour == 3 else []
    transparent = named.get(b"tRNS")
    key = ()
    if transparent is not None and colour == 3:
        palette = [entry + (alpha,) for entry, alpha in zip(palette, transparent.ljust(len(palette), b"\xff"))]
    elif transparent is not None:
        key = struct.unpack(f">{channels}H", transparent)
    white, scale = (65535, 1) if bits == 16 else (255, 255 // ((1 << bits) - 1))

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
                    alpha = ((0 if pixel == key else white),) if key else ()
                    picture[y][x] = tuple(sample * scale for sample in pixel) + alpha
    return width, height, 16 if bits == 16 else 8, picture


def read(path):
    with open(path, "rb") as file:
        return decode(file.read())


def read_plain(path):
    """(width, height, channels, rows of samples, bits) of a plain PNG."""
    with open(path, "rb") as file:
        width, height, bits, picture = decode(file.read(), plain=True)
    return width, height, len(picture[0][0]), [[sample for pixel in row for sample in pixel] for row in picture], bits
