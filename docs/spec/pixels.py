#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: samples, alpha, light, the order, digests and vectors.

    python3 pixels.py [VECTORS...] [--match TEXT]

runs the vectors, and prints a line for each that differs. This file has the rules P, A, L, O, H and V, pixels_steps.py
F8, C, D, R and M, pixels_pillow.py K, pixels_point.py Q, pixels_regions.py S, pixels_ranks.py U, pixels_taps.py N, F, T and G, and
pixels_files.py J, E and Z.
"""

import argparse
import bisect
import copy
import functools
import hashlib
import json
import math
import pathlib
import re
import struct
import sys
import zlib
from dataclasses import dataclass, replace

sys.dont_write_bytecode = True  # leave no files in the sources
from pixels_pillow import Rule
from pixels_point import Point
from pixels_ranks import Rank
from pixels_regions import Levels, Squares, limited, masked, narrowed, widened
from pixels_steps import Filter, Move, Resize, oriented, read_chain, read_colour
from pixels_taps import Refused, nearest, require

HERE = pathlib.Path(__file__).resolve().parent
FACTORS = {"444": (1, 1), "422": (2, 1), "420": (2, 2), "440": (1, 2), "411": (4, 1)}


# Samples: P


@dataclass
class Picture:
    """P1: a picture, its samples in the order of rows, pixels, channels. The rest is what a file says about it."""

    width: int
    height: int
    channels: int
    bits: int
    samples: list
    orientation: int = 1
    gamma: int | None = None
    cicp: int | None = None
    factors: tuple | None = None

    @property
    def white(self):
        """P1: M."""
        return (1 << self.bits) - 1

    @property
    def has_alpha(self):
        """P1: 2 and 4 channels have alpha."""
        return self.channels in (2, 4)

    def planes(self):
        """The samples of each channel."""
        return [self.samples[c :: self.channels] for c in range(self.channels)]

    def with_planes(self, planes, width, height):
        """A picture like this one from other planes."""
        samples = [0] * (width * height * len(planes))
        for c, plane in enumerate(planes):
            samples[c :: len(planes)] = plane
        return replace(self, width=width, height=height, channels=len(planes), samples=samples)


def widen(v):
    """P2: 16 bits of 8."""
    return 257 * v


def reduce(v):
    """P2: 8 bits of 16."""
    return (255 * v + 32895) >> 16


def with_depth(picture, bits):
    """P3: a picture of 8 or 16 bits."""
    if bits == picture.bits:
        return picture
    return replace(picture, bits=bits, samples=[(widen if bits == 16 else reduce)(v) for v in picture.samples])


# Linear light: L


def srgb(c):
    """L3: the curve of sRGB."""
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


def pq(c):
    """L5: the curve PQ."""
    r = c ** (32 / 2523)
    return (max(r - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * r)) ** (16384 / 2610)


def hlg(c):
    """L5: the curve HLG."""
    return c * c / 3 if c <= 0.5 else (math.exp((c - 0.55991073) / 0.17883277) + 0.28466892) / 12


def power(exponent, c):
    """L4: the curve of a power."""
    return c**exponent


def video(slope, a, b):
    """L4: a curve with a straight beginning."""
    return lambda c: c / slope if c < slope * b else ((c + a - 1) / a) ** (1 / 0.45)


BT709 = video(4.5, 1.099296826809442, 0.018053968510807)
SMPTE240 = video(4, 1.111572195921731, 0.022821585529445)
TRANSFERS = {1: BT709, 6: BT709, 14: BT709, 15: BT709, 7: SMPTE240, 13: srgb, 16: pq, 18: hlg}
TRANSFERS |= {4: functools.partial(power, 2.2), 5: functools.partial(power, 2.8), 8: functools.partial(power, 1)}


class Light:
    """L1, L2: samples as light and back."""

    def __init__(self, picture):
        """L4, L6: the curve of a picture."""
        curve = TRANSFERS.get(picture.cicp, srgb)
        if picture.cicp is None and picture.gamma and 0.1 <= 100000 / picture.gamma <= 10:
            curve = functools.partial(power, 100000 / picture.gamma)
        if all(abs(curve(v / 255) - srgb(v / 255)) * 65535 < 2 for v in range(256)):
            curve = srgb
        self.curve = curve
        self.white = picture.white

    def exact(self, v):
        """L1, L2, L5: 65535 L(v / M)."""
        return 65535 * min(max(self.curve(v / self.white), 0), 1)

    def light(self, v):
        """L1: from(v)."""
        return math.floor(self.exact(v) + 0.5)

    def count(self, w):
        """L2: how many levels are below the light w."""
        return bisect.bisect_left(range(1, self.white + 1), w, key=lambda v: self.exact(v - 0.5))

    def level(self, w, v):
        """L2: the level of the light w, for a sample v of the step's input."""
        return v if self.light(v) == w else self.count(w)


# Alpha and the order: A, O


def opaque(picture):
    """A3: whether alpha is M in all pixels."""
    return all(v == picture.white for v in picture.samples[picture.channels - 1 :: picture.channels])


class Chain:
    """What all steps of a chain share: border, the option `alpha`, light and the depth of planes."""

    def __init__(self, steps, picture, options):
        """A3, O4: from the input of the chain."""
        self.border = options.get("border", "replicate")
        self.alpha = options.get("alpha", "premultiply") if picture.has_alpha else "filter"
        if self.alpha == "premultiply" and opaque(picture) and not any(getattr(s, "clear", False) for s in steps):
            self.alpha = "keep"
        self.light = Light(picture) if options.get("linear") else None
        over = any(self.way(step) == "over" for step in steps)
        self.bits = 16 if picture.bits == 16 or self.light or over else 8

    def way(self, step):
        """A1, A2, A4: `move`, `all`, `keep`, `black` or `over`."""
        if isinstance(step, Move):
            return "move"
        if isinstance(step, (Point, Levels)):  # Q9, S6
            return "all"
        if self.alpha == "premultiply":
            return step.way(self.border)
        return "keep" if self.alpha == "keep" and isinstance(step, (Filter, Squares, Rank)) else "all"

    def run(self, step, picture):
        """O3, O4, S3, S4: the picture that a step makes of another one."""
        made = self.run_everywhere(step, picture)
        if hasattr(step, "mask"):
            return masked(step.mask, picture, made)
        return limited(step.limit, picture, made) if hasattr(step, "limit") else made

    def run_everywhere(self, step, picture):
        """O4: the picture that a step without a region makes of another one."""
        way = self.way(step)
        if way == "move":
            return step.run(picture)
        if isinstance(step, Rank) and self.light:  # U6
            chain = copy.copy(self)
            chain.light = None
            return chain.run_everywhere(step, picture)
        if isinstance(step, Resize) and step.is_pillow():
            target = step.target(picture.width, picture.height)
            return Rule(step.kernel, target).run(picture, way == "pillow", self.light)
        headroom = way == "over" and picture.bits == 8 and not self.light and step.has_negative()
        planes = self.to_planes(picture, way, headroom)
        if isinstance(step, (Point, Levels)):
            planes = self.from_planes(step.run(planes, picture.has_alpha, self.bits), picture, way, headroom, False)
            return picture.with_planes(planes, picture.width, picture.height)
        kept = [planes.pop()] if way in ("keep", "black") else []
        planes, width, height = step.run(planes, picture.width, self.border, self.bits)
        planes = self.from_planes(planes + kept, picture, way, headroom, isinstance(step, Resize))
        return picture.with_planes(planes, width, height)

    def to_planes(self, picture, way, headroom):
        """O4, L1, A5 to A8: the planes that a step filters."""
        planes = picture.planes()
        alpha = planes.pop() if picture.has_alpha else []
        if headroom:
            planes = [[(254 * c * a + 255) // 510 for c, a in zip(plane, alpha)] for plane in planes]
            return planes + [[127 * a for a in alpha]]
        wide = self.bits > picture.bits
        levels = way == "black" and picture.bits == 8 and not self.light
        if levels:
            planes = [[(2 * c * a + 255) // 510 for c, a in zip(plane, alpha)] for plane in planes]
        if self.light:
            planes = [[self.light.light(v) for v in plane] for plane in planes]
        elif wide:
            planes = [[widen(v) for v in plane] for plane in planes]
        if wide:
            alpha = [widen(a) for a in alpha]
        if way in ("black", "over") and not levels:
            planes = [[(2 * c * a + 65535) // 131070 for c, a in zip(plane, alpha)] for plane in planes]
        return planes + [alpha] * picture.has_alpha

    def from_planes(self, planes, picture, way, headroom, resized):
        """O4, L2, A6 to A8: samples of the picture's depth from filtered planes."""
        alpha = [planes.pop()] if picture.has_alpha else []
        if way == "over":
            white = 255 if headroom else 65535
            planes = [[undo(p, a, white) for p, a in zip(plane, alpha[0])] for plane in planes]
        if headroom:
            return planes + [[min((a + 63) // 127, 255) for a in alpha[0]]]
        wide = self.bits > picture.bits
        if self.light:
            inputs = [[0] * len(plane) if resized else old for plane, old in zip(planes, picture.planes())]
            planes = [[self.light.level(w, v) for w, v in zip(*pair)] for pair in zip(planes, inputs)]
        elif wide:
            planes = [[reduce(v) for v in plane] for plane in planes]
        if wide:
            alpha = [[reduce(a) for a in plane] for plane in alpha]
        return planes + alpha


def undo(p, a, white):
    """A6, A8: a colour that is no longer premultiplied."""
    return min((2 * p * white + a) // (2 * a), white) if a else 0


def over_ground(plane, alpha, g, white):
    """O6: colours over a background."""
    return [(c * a + g * (white - a) + white // 2) // white for c, a in zip(plane, alpha)]


def flatten(picture, background):
    """O6: a picture of 8 bits without alpha."""
    if picture.has_alpha:
        ground = [v * (picture.white // 255) for v in read_colour(background)]
        *planes, alpha = picture.planes()
        if len(planes) == 1:
            planes = planes if len(set(ground)) == 1 else planes * 3
        planes = [over_ground(plane, alpha, g, picture.white) for plane, g in zip(planes, ground)]
        picture = picture.with_planes(planes, picture.width, picture.height)
    return with_depth(picture, 8)


# Digests, files and the vectors: H, V


def digest(picture):
    """H1: the digest of a picture."""
    head = b"".join(v.to_bytes(4, "big") for v in (picture.width, picture.height, picture.channels, picture.bits))
    if picture.bits == 32:  # K13
        return hashlib.sha256(head + struct.pack(f">{len(picture.samples)}f", *picture.samples)).hexdigest()
    return hashlib.sha256(head + b"".join(v.to_bytes(picture.bits // 8, "big") for v in picture.samples)).hexdigest()


def random_bits(seed, n):
    """V: r(n)."""
    k = (2654435769 * seed + n) % 2**32
    k ^= k >> 16
    k = 2146121005 * k % 2**32
    k ^= k >> 15
    k = 2221713035 * k % 2**32
    return k ^ k >> 16


def made_word(seed, i, rare):
    """V: a sample of the kinds `words` and `rare`."""
    w = random_bits(seed, i // 11)
    if rare and (w >> 23) % 8 > 1:
        return random_bits(seed, i) >> 24
    letter = random_bits(seed + 1, 11 * ((w >> 26) % 16) + i % 11)
    return letter >> 24 if letter % 16 == 0 else letter % 4


def made_sample(source, white, i, x, y, c):
    """V: a sample of a picture."""
    kind, seed, bits, width = source["kind"], source["seed"], source["bits"], source["width"]
    if kind == "noise":
        return random_bits(seed, i) >> (32 - bits)
    if kind == "extremes":
        return white * (random_bits(seed, i) >> 31)
    if kind == "smooth":
        slope = white * (x * (3 + c) + y * (5 - c)) // (8 * (width + source["height"]))
        return slope + (random_bits(seed, i) >> (37 - bits))
    if kind == "blocks":
        return random_bits(seed, 4 * (y // 8 * -(-width // 8) + x // 8) + c) >> (32 - bits)
    if kind == "tiles":
        return random_bits(seed, 4 * (16 * (y % 16) + x % 16) + c) >> (32 - bits)
    if kind == "plain":
        return random_bits(seed, c) >> (32 - bits)
    if kind == "dots":
        return white * (random_bits(seed, i) < 2**27)
    return made_word(seed, i, kind == "rare")


def made_alpha(source, white, i):
    """V: a sample of alpha."""
    if source["opacity"] == "opaque":
        return white
    r = random_bits(source["seed"], i)
    choices = [0, white, (r >> 16) % 256 * (white // 255), (r >> 16) % 8 * (white // 255)]
    return choices[(r >> 8) % 4]


def made_picture(source):
    """V: the picture of a vector."""
    if "file" in source:
        return file_picture(bytes.fromhex(source["file"]))
    width, height, channels = source["width"], source["height"], source["channels"]
    extra = {key: source[key] for key in ("orientation", "gamma", "cicp") if key in source}
    picture = Picture(width, height, channels, source["bits"], [], **extra)
    for i in range(width * height * channels):
        c, x, y = i % channels, i // channels % width, i // (channels * width)
        if "opacity" in source and picture.has_alpha and c == channels - 1:
            picture.samples.append(made_alpha(source, picture.white, i))
        else:
            picture.samples.append(made_sample(source, picture.white, i, x, y, c))
    return picture


def resized(vector):
    """K11 to K13: the result of a vector of pillow.jsonl."""
    source = vector["input"]
    picture = made_picture(source | {"bits": min(source["bits"], 16)})
    if source["bits"] == 32:
        picture = replace(picture, bits=32, samples=[(v - 32768) / 16 for v in picture.samples])
    box = tuple(vector.get("box", (0, 0, picture.width, picture.height)))
    rule = Rule(vector["kernel"], tuple(vector["size"]), box, vector.get("reducing_gap"))
    return rule.run(picture, True, False)


def file_picture(data):
    """P4, P5: the picture of a PGM, a PAM or a PNG."""
    if data[:1] != b"P":
        return png_picture(data)
    head = re.match(rb"P5 (\d+) (\d+) (\d+)\s|P7\nWIDTH (\d+)\nHEIGHT (\d+)\nDEPTH (\d)\nMAXVAL (\d+)\n.*?ENDHDR\n", data, re.S)
    values = [int(v) for v in head.groups() if v]
    width, height, maxval = values[0], values[1], values[-1]
    bits = 8 if maxval <= 255 else 16
    step = bits // 8
    body = data[head.end() :]
    samples = [int.from_bytes(body[i : i + step], "big") for i in range(0, len(body), step)]
    require(max(samples) <= maxval, "a sample above maxval")
    samples = [nearest(v * ((1 << bits) - 1), maxval) for v in samples]
    return Picture(width, height, values[2] if len(values) == 4 else 1, bits, samples)


def png_picture(data):
    """P5: the picture of a PNG whose rows have the filter type 0."""
    chunks, at = {}, 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks[data[at + 4 : at + 8]] = data[at + 8 : at + 8 + size]
        at += size + 12
    width, height = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    depth, kind = chunks[b"IHDR"][8:10]
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    rows, stride = zlib.decompress(chunks[b"IDAT"]), (width * channels * depth + 7) // 8
    raw = []
    for y in range(height):
        row = int.from_bytes(rows[y * (stride + 1) + 1 : (y + 1) * (stride + 1)], "big") >> (-width * channels * depth % 8)
        raw += [row >> (i * depth) & ((1 << depth) - 1) for i in reversed(range(width * channels))]
    pixels = [raw[i : i + channels] for i in range(0, len(raw), channels)]
    key = chunks.get(b"tRNS")
    if kind == 3:
        alpha = (key or b"") + bytes([255] * 256)
        palette = chunks[b"PLTE"] + bytes(768)
        pixels = [[*palette[3 * k : 3 * k + 3], alpha[k]][: 4 if key else 3] for (k,) in pixels]
    elif key:
        keys = [int.from_bytes(key[i : i + 2], "big") & ((1 << depth) - 1) for i in range(0, len(key), 2)]
        white = (1 << depth) - 1
        pixels = [[*pixel, 0 if pixel == keys else white] for pixel in pixels]
    if kind != 3 and depth < 8:
        pixels = [[v * (255 // ((1 << depth) - 1)) for v in pixel] for pixel in pixels]
    return Picture(width, height, len(pixels[0]), max(depth, 8), [v for pixel in pixels for v in pixel])


def from_file(picture, source, steps, options):
    """O1, R10, J8: the picture that a JPEG of it holds, perhaps smaller."""
    import pixels_files

    factors = FACTORS[str(source["file_subsampling"])]
    sides = picture.width, picture.height
    data = pixels_files.encode_jpeg(*sides, picture.channels, picture.samples, source["file_quality"], factors)
    shrink = 0
    if isinstance(steps[0], Resize) and steps[0].thumbnail and not options.get("linear"):
        upright = sides[::-1] if picture.orientation in (5, 6, 7, 8) and not options.get("no-orient") else sides
        target = steps[0].target(*upright)
        fits = [s for s in range(4) if all(-(-n >> s) >= 2 * m for n, m in zip(upright, target))]
        shrink = fits[-1] if fits else 0
        if shrink:
            steps[0] = replace(steps[0], width=target[0], height=target[1], percent=None, words={"exact"})
    width, height, channels, samples, factors = pixels_files.decode_jpeg(data, shrink)
    return replace(picture, width=width, height=height, channels=channels, samples=samples, factors=factors)


def convert(vector, options):
    """O1: the result of a vector, and the factors of the input for E1."""
    steps = read_chain(vector, options)
    picture = made_picture(vector["input"])
    if "file_quality" in vector["input"]:
        picture = from_file(picture, vector["input"], steps, options)
    picture = with_depth(picture, int(options.get("depth", picture.bits)))
    swaps = sum(getattr(step, "swaps", False) for step in steps)
    if 2 <= picture.orientation <= 8 and not options.get("no-orient"):
        swaps += picture.orientation >= 5
        picture = oriented(picture, picture.orientation)
    factors = picture.factors
    if factors and swaps % 2:
        factors = factors[::-1] if factors != (4, 1) else None
    if "mask" in vector:
        source = {"kind": vector["input"]["kind"], "bits": 16, "channels": 1, "seed": vector["mask"]}
        for step in steps:
            step.mask = made_picture({"width": picture.width, "height": picture.height} | source)
    channels = picture.channels
    picture = widened(picture, steps)
    chain = Chain(steps, picture, options)
    for step in steps:
        picture = chain.run(step, picture)
    return narrowed(picture, steps, channels), factors


def file_differs(name, vector, picture, factors):
    """H2, E1, Z: whether the file of a result differs."""
    if name not in vector:
        return False
    import pixels_files

    p, options = picture, vector.get("options", {})
    if name == "png":
        compression = int(options.get("compression", 1))
        data = pixels_files.encode_png(p.width, p.height, p.channels, p.bits, p.samples, compression)
    else:
        p = flatten(picture, options.get("background", "white"))
        quality = int(options.get("quality", 90))
        factors = FACTORS.get(str(options.get("subsampling")), factors) or ((2, 2) if quality <= 90 else (1, 1))
        data = pixels_files.encode_jpeg(p.width, p.height, p.channels, p.samples, quality, factors)
    return hashlib.sha256(data).hexdigest() != vector[name]


def differences(vector):
    """V: what differs in a vector."""
    options = vector.get("options", {})
    try:
        picture, factors = (resized(vector), None) if "kernel" in vector else convert(vector, options)
    except Refused as error:
        return [] if vector.get("refused") else [f"refused ({error})"]
    if vector.get("refused"):
        return ["not refused"]
    found = [] if digest(picture) == vector["samples"] else ["samples"]
    return found + [name for name in ("png", "jpeg") if file_differs(name, vector, picture, factors)]


def main():
    """V: run the vectors."""
    parser = argparse.ArgumentParser(description=__doc__)
    files = [HERE / "vectors.jsonl", HERE / "pillow.jsonl"]
    parser.add_argument("vectors", nargs="*", default=files, type=pathlib.Path)
    parser.add_argument("--match", default="", help="run only vectors with this text in their id")
    arguments = parser.parse_args()
    lines = [line for file in arguments.vectors for line in file.read_text(encoding="utf-8").splitlines()]
    vectors = [v for v in map(json.loads, lines) if arguments.match in v["id"]]
    differing = 0
    for vector in vectors:
        try:
            found = differences(vector)
        except Exception as error:  # a mistake in this program is a difference too
            found = [f"{type(error).__name__}: {error}"]
        differing += bool(found)
        if found:
            print(f"{vector['id']}: {', '.join(found)}", flush=True)
    print(f"{len(vectors)} vectors, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
