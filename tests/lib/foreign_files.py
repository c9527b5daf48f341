# SPDX-License-Identifier: MIT
"""PNGs and JPEGs of writers that are not gpuconv, made up by a seed and a number. Needs NumPy and Pillow."""
import io
import random
import struct

import numpy
from PIL import Image, ImageFile

from foreign_streams import by_chance, idats_by_chance
from read_png import CHANNELS, PASSES
from write_png import SIGNATURE, chunk, ihdr

ImageFile.MAXBLOCK = 1 << 26  # Pillow's buffer for an optimized JPEG, which noise exceeds
KINDS = ((0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 16), (2, 16),
         *3 * ((2, 8), (6, 8)))  # colour type and bits
DAMAGED = 0.03  # the share of damaged files


# ---- Pictures: arrays of uint16, height x width x channels ----

def noise(chance, noises, width, height, channels, top):
    return noises.integers(0, top + 1, (height, width, channels))


def constant(chance, noises, width, height, channels, top):
    return numpy.broadcast_to(noises.integers(0, top + 1, channels), (height, width, channels))


def photo(chance, noises, width, height, channels, top):
    """Slopes, with noise."""
    slopes = noises.uniform(-1, 1, (2, channels))
    ground = (numpy.linspace(0, 1, height)[:, None, None] * slopes[0]
              + numpy.linspace(0, 1, width)[None, :, None] * slopes[1]) / 4 + 0.5
    ground = ground + noises.standard_normal(ground.shape, dtype=numpy.float32) * chance.choice((0, 0.004, 0.02))
    return numpy.clip(ground * top + 0.5, 0, top)


def text(chance, noises, width, height, channels, top):
    """Glyphs of 8 x 8 pixels in two colours."""
    glyphs = noises.integers(0, 2, (chance.randrange(1, 40), 8, 8))
    places = noises.integers(0, len(glyphs), (height // 8 + 1, width // 8 + 1))
    page = glyphs[places].swapaxes(1, 2).reshape(places.shape[0] * 8, -1)[:height, :width]
    return noises.integers(0, top + 1, (2, channels))[page]


def pattern(chance, noises, width, height, channels, top):
    """A tile that repeats, near or far: so do the distances in the stream."""
    tile = noises.integers(0, top + 1, (chance.randrange(1, 40), chance.randrange(1, 300), channels))
    return numpy.tile(tile, (height // tile.shape[0] + 1, width // tile.shape[1] + 1, 1))[:height, :width]


def picture(chance, noises, width, height, channels, top):
    make = chance.choices((noise, constant, photo, text, pattern), (1, 1, 4, 2, 2))[0]
    return make(chance, noises, width, height, channels, top).astype(numpy.uint16)


# ---- PNG ----

def packed(samples, bits):
    """Rows of bytes, of the samples of a picture or of a pass."""
    rows = samples.reshape(samples.shape[0], -1)
    if bits == 16:
        return numpy.ascontiguousarray(rows, ">u2").view(numpy.uint8)
    if bits == 8:
        return rows.astype(numpy.uint8)
    ones = numpy.unpackbits(rows.astype(numpy.uint8)[..., None], axis=-1)[..., 8 - bits:]
    return numpy.packbits(ones.reshape(rows.shape[0], -1), axis=1)


def predicted(kind, left, above, corner):
    """Section 9 of the standard, for rows at once."""
    if kind < 3:
        return (0, left, above)[kind]
    left, above, corner = (part.astype(numpy.int16) for part in (left, above, corner))
    if kind == 3:
        return ((left + above) >> 1).astype(numpy.uint8)
    a, b, c = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
    return numpy.where((a <= b) & (a <= c), left, numpy.where(b <= c, above, corner)).astype(numpy.uint8)


def filtered(rows, pixel, kinds):
    """The rows, each after the number of its row filter, as bytes."""
    wide = numpy.zeros((rows.shape[0] + 1, rows.shape[1] + pixel), numpy.uint8)  # zeros above and to the left
    wide[1:, pixel:] = rows
    out = numpy.empty((rows.shape[0], rows.shape[1] + 1), numpy.uint8)
    out[:, 0] = kinds
    for kind in set(kinds.tolist()):
        chosen = numpy.flatnonzero(kinds == kind)
        out[chosen, 1:] = rows[chosen] - predicted(kind, wide[chosen + 1, :-pixel], wide[chosen, pixel:],
                                                   wide[chosen, :-pixel])
    return out.tobytes()


def ancillary(chance, noises, colour, bits, entries):
    """Chunks between IHDR and IDAT, in their order."""
    out = b""
    if chance.random() < 0.2:
        out += chance.choice((chunk(b"gAMA", struct.pack(">I", chance.choice((45455, 55000, 100000)))),
                              chunk(b"sRGB", b"\0"), chunk(b"pHYs", struct.pack(">IIB", 3000, 3000, 1)),
                              chunk(b"tEXt", b"Comment\0by nobody"), chunk(b"prVt", noises.bytes(99))))
    if chance.random() < 0.1:
        out += chunk(b"eXIf", exif(chance.randrange(1, 9)))
    if colour == 3:
        out += chunk(b"PLTE", noises.bytes(3 * entries))
    if colour in (0, 2, 3) and chance.random() < 0.25:
        alpha = noises.bytes(chance.randrange(1, entries + 1)) if colour == 3 else b"".join(
            struct.pack(">H", chance.randrange(1 << bits)) for _ in range(CHANNELS[colour]))
        out += chunk(b"tRNS", alpha)
    return out


def foreign_png(chance, noises, width, height):
    colour, bits = chance.choice(KINDS)
    channels, top = CHANNELS[colour], (1 << bits) - 1
    entries = chance.randrange(1, top + 2) if colour == 3 else 0
    samples = picture(chance, noises, width, height, channels, entries - 1 if colour == 3 else top)
    if colour in (4, 6) and chance.random() < 0.4:
        samples[..., -1] = top  # opaque
    interlaced = chance.random() < 0.06
    allowed = chance.sample(range(5), chance.choice((1, 2, 5)))
    data = b""
    for x, y, across, down in PASSES if interlaced else ((0, 0, 1, 1),):
        part = samples[y::down, x::across]
        if part.size > 0:
            data += filtered(packed(part, bits), max(1, channels * bits // 8), noises.choice(allowed, part.shape[0]))
    stream = by_chance(chance, data)
    if chance.random() < DAMAGED:
        stream = damaged(chance, stream)
    return (SIGNATURE + ihdr(width, height, bits, colour, int(interlaced))
            + ancillary(chance, noises, colour, bits, entries) + idats_by_chance(chance, stream)
            + chunk(b"tEXt", b"Software\0none") * (chance.random() < 0.1) + chunk(b"IEND"))


# ---- Pillow's files ----

def exif(orientation):
    return b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


def pillow_image(chance, noises, width, height):
    channels = chance.choice((1, 3, 3, 3))
    samples = picture(chance, noises, width, height, channels, 255).astype(numpy.uint8)
    return Image.fromarray(samples[..., 0] if channels == 1 else samples)


def pillow_png(chance, noises, width, height):
    out = io.BytesIO()
    pillow_image(chance, noises, width, height).save(out, "PNG", compress_level=chance.randrange(10))
    return out.getvalue()


def jpeg(chance, noises, width, height):
    image, out = pillow_image(chance, noises, width, height), io.BytesIO()
    if image.mode == "RGB" and chance.random() < 0.03:
        image = image.convert("CMYK")
    options = {"quality": chance.choice((1, 30, 60, 75, 85, 90, 95, 100)), "optimize": chance.random() < 0.3,
               "progressive": chance.random() < 0.15, "subsampling": chance.randrange(3)}
    restarts = chance.choice(("", "", "restart_marker_blocks", "restart_marker_rows"))  # older versions ignore them
    if restarts:
        options[restarts] = chance.choice((1, 2, 7, 64))
    if chance.random() < 0.1:
        options["exif"] = b"Exif\0\0" + exif(chance.randrange(1, 9))
    image.save(out, "JPEG", **options)
    data = out.getvalue()
    return damaged(chance, data) if chance.random() < DAMAGED else data


# ---- Files ----

def damaged(chance, data):
    """Cut, or with a bit that is wrong."""
    at = chance.randrange(len(data))
    return data[:at] if chance.random() < 0.5 else data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]


def size(chance, is_large):
    """Width and height: 2 to 8 Mpixel, or 50 to 400 a side, or 1 to 3 on one side."""
    if is_large:
        width = chance.randrange(1200, 3200)
        return width, chance.randrange(2_000_000, 8_000_000) // width
    width, height = (int(50 * 8 ** chance.random()) for _ in range(2))
    thin = chance.random()
    if thin < 0.04:
        return chance.randrange(1, 4), height
    return width, chance.randrange(1, 4) if thin < 0.08 else height


def make(seed, number, is_large):
    """The suffix and the bytes of a file."""
    chance, noises = random.Random(f"{seed} {number}"), numpy.random.default_rng((seed, number))
    writer = chance.choices((foreign_png, pillow_png, jpeg), (6, 1, 3))[0]
    return "jpg" if writer is jpeg else "png", writer(chance, noises, *size(chance, is_large))
