# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: the steps of a chain (F8, C, D, R, M, A9, K1, K10, Q10, S1, T5, T6, U1)."""

import functools
import math
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pixels_pillow
import pixels_point
import pixels_ranks
import pixels_regions
from pixels_taps import (MAKERS, Passes, divide, exactly, made_taps, nearest, read_number, read_parameters, read_text,
                         require, round_fine, text_taps, whole)

FILTERS = pathlib.Path(__file__).resolve().parents[2] / "filters"
UNIT = 1 << 30  # U of the rules R
MOST = 16777215  # P1
SIDE = 100000  # R1, M1, M4


# Filtering: C, D


def outside(i, n, border):
    """C2: the index of the sample for index i of n, or None for the sample 0."""
    if border == "zero":
        return i if 0 <= i < n else None
    if border == "wrap":
        return i % n
    if border == "replicate" or n == 1:
        return min(max(i, 0), n - 1)
    k = i % (2 * n if border == "reflect" else 2 * n - 2)
    if k < n:
        return k
    return 2 * n - 1 - k if border == "reflect" else 2 * n - 2 - k


def correlate(plane, width, taps, anchor, border):
    """C1, C2: the sums of a plane, with taps that are a list of rows."""
    height = len(plane) // width
    columns = [outside(x, width, border) for x in range(-anchor[0], width - anchor[0] + len(taps[0]) - 1)]
    wide = {None: [0] * len(columns)}
    for y in range(height):
        row = plane[y * width : (y + 1) * width]
        wide[y] = [0 if x is None else row[x] for x in columns]
    used = [(i - anchor[1], j, q) for i, row in enumerate(taps) for j, q in enumerate(row) if q]
    sums = []
    for y in range(height):
        total = [0] * width
        for i, j, q in used:
            row = wide[outside(y + i, height, border)]
            total = [t + q * v for t, v in zip(total, row[j : j + width])]
        sums += total
    return sums


def filter_grid(plane, width, grid, border, bits):
    """C3 to C7: one or two grids."""
    sums = [correlate(plane, width, taps, grid.anchor, border) for taps in grid.grids]
    parts = 2 * grid.offset.denominator
    bias = 2 * grid.offset.numerator * (1 if bits == 8 else 257) + grid.offset.denominator
    if grid.combine == "magnitude":
        scaled = [math.isqrt((s * s + t * t) * parts * parts) for s, t in zip(*sums)]
    elif grid.combine == "max":
        scaled = [parts * max(abs(s), abs(t)) for s, t in zip(*sums)]
    elif grid.combine == "sum":
        scaled = [parts * (abs(s) + abs(t)) for s, t in zip(*sums)]
    else:
        scaled = [parts * (abs(s) if grid.absolute else s) for s in sums[0]]
    white = (1 << bits) - 1
    return [min(max((s // grid.scale + bias) // parts, 0), white) for s in scaled]


def filter_passes(planes, width, passes, border, bits):
    """D1 to D4: two passes over the planes that are filtered together."""
    results, errors = [], []
    half = 1 << passes.shift >> 1
    middles = len(passes.row) // 2, len(passes.column) // 2
    column = [[q] for q in passes.column]
    for plane in planes:
        sums = correlate(plane, width, [passes.row], (middles[0], 0), border)
        sums = correlate([(s + half) >> passes.shift for s in sums], width, column, (0, middles[1]), border)
        if passes.amount is None:
            results.append([nearest(s, passes.scale) for s in sums])
        else:
            errors.append([256 * v - nearest(256 * s, passes.scale) for v, s in zip(plane, sums)])
    white = (1 << bits) - 1
    keep = [all(abs(e) < passes.threshold for e in pixel) for pixel in zip(*errors)]
    for plane, differences in zip(planes, errors):
        sharp = [v + ((passes.amount * e + (1 << 27)) >> 28) for v, e in zip(plane, differences)]
        results.append([v if k else min(max(s, 0), white) for v, s, k in zip(plane, sharp, keep)])
    return results


# Other sizes: R


REACHES = {"lanczos3": 6, "lanczos2": 4, "cubic": 4, "mitchell": 4, "triangle": 2, "box": 1, "nearest": 0}


def scaled_side(n, a, b):
    """R2: size(n, a, b)."""
    return max(nearest(n * a, b), 1)


def cut_side(n, a, b):
    """K1: size(n, a, b), rounded down."""
    return max(n * a // b, 1)


def percent_of(side, fraction):
    """R2: a side times P%."""
    return scaled_side(side, fraction.numerator, fraction.denominator)


def times(a, b):
    """R5: a product of numbers in units of 2^-30."""
    return (a * b + UNIT // 2) >> 30


def near(x):
    """R6: sinc up to 1/2."""
    s, v = times(x, x), 7490
    for f in (159374, 2519085, 28076038, 204818212, 871601792, 1766234505, 1073741824):
        v = f - times(v, s)
    return v


def sinc(x):
    """R6: sinc."""
    if x <= UNIT // 2:
        return near(x)
    k = (x + UNIT // 2) >> 30
    y = x - k * UNIT
    v = (abs(y) * near(abs(y)) + x // 2) // x
    return -v if (k % 2 == 1) != (y < 0) else v


def weight(kernel, d, z):
    """R5: the weight at distance d."""
    if kernel == "box":
        return 2 * UNIT if d < z else UNIT
    if d >= REACHES[kernel] * z:
        return 0
    x = nearest(d * UNIT, 2 * z)
    if kernel == "triangle":
        return UNIT - x
    if kernel.startswith("lanczos"):
        p = sinc(x) * sinc(nearest(d * UNIT, 2 * int(kernel[-1]) * z))
        return (p + UNIT // 2) >> 30 if p >= 0 else -((-p + UNIT // 2) >> 30)
    s = times(x, x)
    c = times(s, x)
    if kernel == "cubic":
        return 3 * c - 5 * s + 2 * UNIT if x < UNIT else -c + 5 * s - 8 * x + 4 * UNIT
    return 21 * c - 36 * s + 16 * UNIT if x < UNIT else -7 * c + 36 * s - 60 * x + 32 * UNIT


@functools.lru_cache(maxsize=64)
def axis_taps(n, size, kernel, bits):
    """R4, R7, R11: the shift of an axis, and for each output its taps by the index of the input."""
    if kernel == "nearest":
        return 15, [[((2 * i + 1) * n // (2 * size), 1 << 15)] for i in range(size)]
    z = max(n, size)
    reach = z * REACHES[kernel]
    outputs = []
    for i in range(size):
        middle = (2 * i + 1) * n
        first, last = -((size + reach - middle) // (2 * size)), (middle + reach - size) // (2 * size)
        inputs = range(first, last + 1) if n != size else [i]
        distances = [abs((2 * j + 1) * size - middle) for j in inputs]
        outputs.append((inputs, distances, [weight(kernel, d, z) for d in distances]))
    least = 15 if bits == 8 else 23
    shift = 30 if bits == 16 and all(len(inputs) <= 4096 for inputs, _, _ in outputs) else 36
    for _, distances, weights in outputs:
        peak = weights[distances.index(min(distances))]
        while shift > least and peak > sum(weights) >> (shift - least):
            shift -= 1
    result = []
    for inputs, distances, weights in outputs:
        merged = {}
        for j, tap in zip(inputs, spread_taps(distances, weights, shift)):
            j = min(max(j, 0), n - 1)
            merged[j] = merged.get(j, 0) + tap
        result.append([(j, tap) for j, tap in merged.items() if tap])
    return shift, result


def spread_taps(distances, weights, shift):
    """R7, R8: the taps of one output, which sum to 2^shift."""
    total, count = sum(weights), len(weights)
    taps = [nearest(w << shift, total) for w in weights]
    errors = [(w << shift) - tap * total for w, tap in zip(weights, taps)]
    rest = (1 << shift) - sum(taps)

    def change(k, b):
        taps[k] += b
        errors[k] -= b * total
        return b

    c = low = distances.index(min(distances))
    if distances[c] == 0:
        if rest % 2:
            rest -= change(c, 1 if errors[c] > 0 else -1)
        low = c - 1
    for t in range(7, -1, -1):
        before, after = low, c + 1
        while rest and (before >= 0 or after < count):
            b = 1 if rest > 0 else -1
            if before < 0 or after >= count:
                taken = [before if before >= 0 else after]
            elif distances[before] == distances[after]:
                taken = [before, after]
            else:
                taken = [before if distances[before] < distances[after] else after]
            if 16 * b * errors[taken[0]] > t * total and b * rest >= len(taken):
                for k in taken:
                    rest -= change(k, b)
            before -= before in taken
            after += after in taken
    return taps


def resize_plane(plane, width, across, down, bits):
    """R9: a plane in another size, the columns first."""
    a, b = down[0], across[0]
    half = 1 << (a - 7)
    half_out = 1 << (b + 5)
    white = (1 << bits) - 1
    result = []
    for taps in down[1]:
        total = [half] * width
        for j, tap in taps:
            total = [t + tap * v for t, v in zip(total, plane[j * width : (j + 1) * width])]
        row = [t >> (a - 6) for t in total]
        for taps_across in across[1]:
            s = half_out
            for j, tap in taps_across:
                s += tap * row[j]
            s >>= b + 6
            result.append(0 if s < 0 else white if s > white else s)
    return result


# The steps of a chain


@dataclass
class Filter:
    """A step with taps: a function from bits to a Grid or Passes."""

    taps: Callable

    def run(self, planes, width, border, bits):
        """C, D: the planes filtered, with their sides."""
        taps = self.taps(bits)
        height = len(planes[0]) // width
        if isinstance(taps, Passes):
            return filter_passes(planes, width, taps, border, bits), width, height
        return [filter_grid(plane, width, taps, border, bits) for plane in planes], width, height

    def has_negative(self):
        """A8: whether some tap is negative."""
        taps = self.taps(16)
        if isinstance(taps, Passes):
            return taps.amount is not None
        return any(q < 0 for row in taps.grids[0] for q in row)

    def way(self, border):
        """A4: the way of a step with the default of `alpha`."""
        taps = self.taps(16)
        if isinstance(taps, Passes):
            return "black" if border == "zero" else "over"
        flat = [q for grid in taps.grids for row in grid for q in row]
        plain = len(taps.grids) == 1 and taps.offset == 0 and not taps.absolute
        if plain and [q for q in flat if q] == [taps.scale] and (border != "zero" or len(flat) == 1):
            return "all"
        return "over" if plain and sum(flat) == taps.scale and border != "zero" else "black"


@dataclass
class Move:
    """M7: a step that takes all channels as they are."""

    run: Callable
    swaps: bool = False
    clear: bool = False  # a pad without a colour
    colour: tuple | None = None


@dataclass
class Resize:
    """R1: a step to another size."""

    width: int | None
    height: int | None
    percent: Fraction | None
    words: set = field(default_factory=set)
    kernel: str = "lanczos3"
    thumbnail: bool = False
    picture: tuple | None = None

    def target(self, w, h):
        """R1, R2, R3: the size of the result for a picture of w x h."""
        require(self.picture in (None, (w, h)), "for a picture of another size")
        width, height = self.width, self.height
        if self.percent is not None and self.is_pillow():
            width, height = (cut_side(n, self.percent.numerator, self.percent.denominator) for n in (w, h))
        elif self.percent is not None:
            width, height = percent_of(w, self.percent), percent_of(h, self.percent)
        elif "exact" not in self.words:
            by_height = width is None
            if width is not None and height is not None:
                by_height = (height * w < width * h) != ("cover" in self.words)
            side = cut_side if self.is_pillow() else scaled_side
            if by_height:
                width = side(w, height, h)
            else:
                height = side(h, width, w)
        require(max(width, height) <= MOST, "result too large")
        if self.percent is None and not self.words & {"exact", "enlarge"} and (width > w or height > h):
            return w, h
        return width, height

    def is_pillow(self):
        """K1: whether the rule of Pillow is asked for."""
        return self.kernel in pixels_pillow.KERNELS

    def run(self, planes, width, _, bits):
        """R4 to R9: the planes in the other size, with their sides."""
        height = len(planes[0]) // width
        target = self.target(width, height)
        across = axis_taps(width, target[0], self.kernel, bits)
        down = axis_taps(height, target[1], self.kernel, bits)
        return [resize_plane(plane, width, across, down, bits) for plane in planes], *target

    def has_negative(self):
        """A8: which kernels count as having negative taps."""
        return self.kernel not in ("triangle", "box", "nearest")

    def way(self, _):
        """A4, R11, K9: a resize goes over, but `nearest` copies all channels, and Pillow has a way of its own."""
        return "pillow" if self.is_pillow() else "all" if self.kernel == "nearest" else "over"


# Moves: M


def oriented(picture, o):
    """M6: a picture turned as orientation o says."""
    w, h = picture.width, picture.height
    width, height = (h, w) if o >= 5 else (w, h)
    pixels = [picture.samples[i : i + picture.channels] for i in range(0, len(picture.samples), picture.channels)]
    samples = []
    for y in range(height):
        for x in range(width):
            a, b = (x, y) if o >= 5 else (y, x)
            a = h - 1 - a if o in (3, 4, 6, 7) else a
            b = w - 1 - b if o in (2, 3, 7, 8) else b
            samples += pixels[a * w + b]
    return replace(picture, width=width, height=height, samples=samples)


def cropped(picture, width, height, left, top):
    """M1: a part of a picture."""
    require(left + width <= picture.width and top + height <= picture.height, "crop reaches beyond the picture")
    n = picture.channels
    samples = []
    for y in range(top, top + height):
        samples += picture.samples[(y * picture.width + left) * n : (y * picture.width + left + width) * n]
    return replace(picture, width=width, height=height, samples=samples)


def placed(picture, width, height, sides):
    """M2: the part of a picture with the sides from R2, at the place that words say."""
    if isinstance(width, Fraction):
        width, height = percent_of(picture.width, width), percent_of(picture.height, width)
    require(width <= picture.width and height <= picture.height, "crop larger than the picture")
    left, top = picture.width - width, picture.height - height
    even = "torchvision" in sides  # K10
    left = 0 if "left" in sides else left if "right" in sides else left // 2 + (even and left % 4 == 3)
    top = 0 if "top" in sides else top if "bottom" in sides else top // 2 + (even and top % 4 == 3)
    return cropped(picture, width, height, left, top)


def grey(colour):
    """M5: the grey of a colour."""
    return (19595 * colour[0] + 38470 * colour[1] + 7471 * colour[2] + 32768) >> 16


def padded(picture, width, height, colour):
    """M4, M5: a picture with a margin."""
    require(width >= picture.width and height >= picture.height, "pad smaller than the picture")
    if colour is None:
        pixel = [0 if picture.has_alpha else picture.white] * picture.channels
    else:
        pixel = list(colour) if picture.channels > 2 else [grey(colour)]
        pixel = [v * (picture.white // 255) for v in pixel] + [picture.white] * picture.has_alpha
    left, top = (width - picture.width) // 2, (height - picture.height) // 2
    right, row = width - picture.width - left, picture.width * picture.channels
    samples = pixel * (width * top)
    for y in range(picture.height):
        samples += pixel * left + picture.samples[y * row : (y + 1) * row] + pixel * right
    samples += pixel * (width * (height - picture.height - top))
    return replace(picture, width=width, height=height, samples=samples)


def read_colour(word):
    """M4: a colour."""
    word = word.lower()
    if word in ("white", "black"):
        return [255 if word == "white" else 0] * 3
    require(re.fullmatch("#([0-9a-f]{3}|[0-9a-f]{6})", word), f"unknown colour: {word}")
    if len(word) == 4:
        return [17 * int(c, 16) for c in word[1:]]
    return [int(word[i : i + 2], 16) for i in (1, 3, 5)]


# Steps from texts


def read_side(word):
    """R1: a side as a whole number."""
    require(word[:1].isdigit(), f"not a side: {word}")
    return whole(read_number(word), 1, SIDE)


def read_size(word, low, high, missing):
    """R1: the width, the height and the fraction of a size. One of the sides may be missing for a resize."""
    if word.endswith("%"):
        number = read_number(word[:-1])
        require(low <= number.double <= high, "percentage out of range")
        fraction = divide(number, exactly(Fraction(100)))
        exact = fraction.exact
        if exact is None or max(exact.numerator, exact.denominator) >= 1 << 31:
            exact = round_fine(fraction.double)
        return None, None, exact
    width, x, height = word.partition("x")
    require(x and (width or height) and (missing or width and height), f"not a size: {word}")
    return read_side(width) if width else None, read_side(height) if height else None, None


def read_resize(name, words):
    """R1, R10: the step of a resize."""
    require(words, "no size")
    step = Resize(*read_size(words[0], 0.1, 10000, True), thumbnail=name == "thumbnail")
    if len(words) > 1 and re.fullmatch(r"[0-9].*x[0-9].*", words[-1]):
        step.picture = read_size(words.pop(), 1, 1, False)[:2]
    kernels = [word for word in words[1:] if word in REACHES or word in pixels_pillow.KERNELS]
    step.words = set(words[1:]) - set(kernels)
    require(len(kernels) <= 1 and step.words <= {"exact", "cover", "enlarge"}, "unknown word, or two kernels")
    step.kernel = kernels[0] if kernels else step.kernel
    if step.words & {"exact", "cover"}:
        require(step.width and step.height and not step.words >= {"exact", "cover"}, "needs both sides, and one word")
    return step


def read_crop(words):
    """M1, M2: the step of a crop."""
    require(words, "no size")
    match = re.fullmatch(r"(.*)\+([0-9]{1,9})\+([0-9]{1,9})", words[0])
    width, height, percent = read_size(match[1] if match else words[0], 0.1, 100, False)
    if match:
        require(len(words) == 1 and not percent and max(int(match[2]), int(match[3])) <= SIDE, "wrong crop")
        return Move(lambda picture: cropped(picture, width, height, int(match[2]), int(match[3])))
    for axis in ({"left", "right"}, {"top", "bottom"}):
        require(sum(word in axis for word in words[1:]) <= 1, "an axis twice")
    require(set(words[1:]) <= {"left", "right", "top", "bottom", "torchvision"}, "unknown word")
    return Move(lambda picture: placed(picture, percent or width, height, words[1:]))


def read_pad(words):
    """M4: the step of a pad."""
    require(1 <= len(words) <= 2, "wrong pad")
    width, height, percent = read_size(words[0], 1, 1, False)
    require(percent is None, "pad has no percentage")
    colour = read_colour(words[1]) if len(words) == 2 else None
    return Move(lambda picture: padded(picture, width, height, colour), clear=colour is None, colour=colour)


def read_step(text, options):
    """F8, G1, R1, M1 to M6, S1: the steps that one filter stands for."""
    whole_step, at, limit = text.rpartition("@")
    if at:
        steps = read_step(whole_step, options)
        require("@" not in whole_step and whole_step != "to-srgb" and len(steps) == 1 and not isinstance(steps[0], (Resize, Move)), "a region of a resize or a move")
        steps[0].limit = pixels_regions.read_region(limit)
        return steps
    name, *words = text.split(":")
    if name in ("auto-levels", "auto-contrast"):
        return [pixels_regions.read_levels(name, words)]
    if name == "to-srgb":
        require(text in (name, name + ":black-point"), "parameters of to-srgb")
        return [text_step(b"matrix\n1 0 0\n0 1 0\n0 0 1\n", options)]  # Q11: a picture without a profile stays
    if name == "pixelate":
        return [pixels_regions.read_squares(words)]
    if not words:
        path = FILTERS / f"{name}.txt"
        require(re.fullmatch("[a-z0-9-]+", name) and path.exists(), f"unknown filter: {name}")
        return [text_step(path.read_bytes(), options)]
    if name in pixels_ranks.WORDS:
        return [pixels_ranks.read_rank(name, words)]
    if name in MAKERS:
        numbers = read_parameters(name, words)
        return [Filter(lambda bits: with_options(made_taps(name, numbers, bits), options))]
    if name in pixels_point.WORDS:
        return [pixels_point.read_point(pixels_point.word_text(name, words, read_colour).encode())]
    if name in ("resize", "thumbnail"):
        return [read_resize(name, words)]
    if name == "crop":
        return [read_crop(words)]
    if name == "pad":
        return [read_pad(words)]
    if name == "cover":
        others, placing = words[1:], []
        for axis in ({"left", "right"}, {"top", "bottom"}):
            first = [word for word in others if word in axis][:1]
            if first:
                others.remove(first[0])
            placing += first
        if "torchvision" in others or any(word.startswith("pillow") for word in others):  # K10
            placing.append("torchvision")
        others = [word for word in others if word != "torchvision"]
        return [read_resize("resize", [words[0], "cover", "enlarge", *others]), read_crop(words[:1] + placing)]
    turns = {"turn:90": 6, "turn:180": 3, "turn:270": 8, "mirror:x": 2, "mirror:y": 4}
    require(text in turns, f"unknown filter: {text}")
    return [Move(lambda picture: oriented(picture, turns[text]), swaps=turns[text] >= 6)]


def text_step(text, options):
    """The step of a text."""
    if pixels_point.has_sections(text):
        return pixels_point.read_point(text)
    settings, grids = read_text(text)
    if settings.get("combine", "").split(" ")[0] in ("median", "minimum", "maximum", "rank"):
        step = pixels_ranks.text_rank(settings, grids)
        return step.turned() if options.get("flip") else step
    taps = with_options(text_taps(text), options)
    return Filter(lambda bits: taps)


def with_options(taps, options):
    """T5, T6: the options `flip` and `abs`. The vectors of two passes are symmetric."""
    if isinstance(taps, Passes):
        return taps
    if options.get("abs") and len(taps.grids) == 1:
        taps = replace(taps, absolute=True)
    if options.get("flip"):
        grids = [[row[::-1] for row in grid[::-1]] for grid in taps.grids]
        anchor = len(grids[0][0]) - 1 - taps.anchor[0], len(grids[0]) - 1 - taps.anchor[1]
        taps = replace(taps, grids=grids, anchor=anchor)
    return taps


def read_chain(vector, options):
    """O3, A9: the steps of a vector."""
    if "text" in vector:
        return [text_step(vector["text"].encode(), options)]
    steps = [step for text in vector["filter"].split(",") for step in read_step(text, options)]
    if options.get("border") == "zero" and any(isinstance(step, Resize) for step in steps):
        require(not any(isinstance(step, (Filter, pixels_ranks.Rank)) for step in steps), "resize with zero")
    return steps
