# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: regions, masks, squares, automatic levels and channels (S)."""

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from pixels_taps import divide, exactly, nearest, read_number, require, round_fine, whole

SIDE = 100000


# Regions: S1 to S4


def read_share(word, sign):
    """S1: a whole number as an integer, or a percentage as a fraction."""
    require(word[:1].isdigit() and word[0] in "0123456789", f"no side or offset: {word}")
    if not word.endswith("%"):
        return sign * whole(read_number(word), 0, SIDE)
    number = divide(read_number(word[:-1]), exactly(Fraction(100)))
    require(number.double <= 10 and number.exact is not None and number.exact.denominator < 2**31, f"percentage: {word}")
    return sign * number.exact


def read_region(text):
    """S1: the region W, H, X, Y."""
    match = re.fullmatch(r"([^x]*)x([^+-]*)([+-])([^+-]*)([+-])([^+]*)", text)
    require(match, f"no region: {text}")
    width, height, across, x, down, y = match.groups()
    signs = {"+": 1, "-": -1}
    return (read_share(width, 1), read_share(height, 1), read_share(x, signs[across]), read_share(y, signs[down]))


def placed(share, side):
    """S2: a share of a side."""
    return nearest(side * share.numerator, share.denominator) if isinstance(share, Fraction) else share


def limited(region, before, after):
    """S3: a picture that is changed in a region."""
    shares = zip(region, (before.width, before.height) * 2)
    width, height, left, top = (placed(share, side) for share, side in shares)
    columns = range(max(left, 0), min(left + width, before.width))
    rows = range(max(top, 0), min(top + height, before.height))
    require(len(columns) > 0 and len(rows) > 0, "no pixel in the region")
    samples = list(before.samples)
    for y in rows:
        for x in columns:
            at = (y * before.width + x) * before.channels
            samples[at : at + before.channels] = after.samples[at : at + before.channels]
    return replace(after, samples=samples)


def masked(mask, before, after):
    """S4: a picture that is changed as much as the levels of a mask say."""
    require((mask.width, mask.height) == (before.width, before.height), "a mask of another size")
    factor = 257 if mask.bits == 8 else 1
    levels = []
    for at in range(0, len(mask.samples), mask.channels):
        wide = [factor * v for v in mask.samples[at : at + mask.channels]]
        grey = (2126 * wide[0] + 7152 * wide[1] + 722 * wide[2] + 5000) // 10000 if mask.channels > 2 else wide[0]
        levels += [grey] * before.channels
    pairs = zip(levels, after.samples, before.samples)
    return replace(after, samples=[(m * v + (65535 - m) * u + 32767) // 65535 for m, v, u in pairs])


# Squares: S5


@dataclass
class Squares:
    """S5: squares of samples become their mean."""

    side: int

    def has_negative(self):
        """S5, A8: it has no negative tap."""
        return False

    def way(self, border):
        """S5, A4: its way with the default of `alpha`."""
        return "over"

    def run(self, planes, width, border, bits):
        """S5: the planes of means."""
        height = len(planes[0]) // width
        result = []
        for plane in planes:
            sums, counts = {}, {}
            keys = [(y // self.side, x // self.side) for y in range(height) for x in range(width)]
            for key, v in zip(keys, plane):
                sums[key] = sums.get(key, 0) + v
                counts[key] = counts.get(key, 0) + 1
            result.append([nearest(sums[key], counts[key]) for key in keys])
        return result, width, height


def read_squares(words):
    """S5: the step of a word."""
    require(len(words) == 1, "one number")
    return Squares(whole(read_number(words[0]), 1, 4096))


# Automatic levels: S6


@dataclass
class Levels:
    """S6: levels that are stretched as the picture wants."""

    joins: bool
    clip: Fraction
    clear = False

    def run(self, planes, has_alpha, bits):
        """S6: the planes changed."""
        colours = planes[: len(planes) - has_alpha]
        groups = [sum(colours, [])] * len(colours) if self.joins else colours
        white = 255 if bits == 8 else 65535
        return [self.stretched(plane, sorted(group), white) for plane, group in zip(colours, groups)] + planes[len(colours) :]

    def stretched(self, plane, group, white):
        """S6: a plane with the range of the sorted samples of a group."""
        cut = math.floor(len(group) * self.clip / 100)
        low, high = group[cut], group[-1 - cut]
        if low >= high:
            return plane
        return [min(max(nearest((v - low) * white, high - low), 0), white) for v in plane]


def read_levels(name, words):
    """S6: the step of a word."""
    require(len(words) <= 1, "one number")
    number = read_number(words[0].removesuffix("%")) if words else exactly(Fraction(0))
    require(0 <= number.double <= 49, "clip out of range")
    is_exact = number.exact is not None and number.exact.denominator <= 1 << 20
    return Levels(name == "auto-contrast", number.exact if is_exact else round_fine(number.double))


# Channels: S7, S8


def has_one_curve(step):
    """S7: whether red, green and blue have one curve, or none."""
    return step.curves.get(0) == step.curves.get(1) == step.curves.get(2)


def makes_colours(step):
    """S7: whether a step makes colours of grey."""
    if not hasattr(step, "curves"):
        return False
    sums = {(Fraction(sum(q[:3]), d), Fraction(sum(q[3:]), d), offset) for q, d, offset in step.rows[:3]}
    return not has_one_curve(step) or len(step.rows) >= 3 and len(sums) > 1


def makes_grey(step):
    """S7: whether a step makes grey of colours."""
    if not hasattr(step, "curves") or hasattr(step, "limit") or hasattr(step, "mask"):
        return False
    rows = {(tuple(q), d, offset) for q, d, offset in step.rows[:3]}
    return has_one_curve(step) and len(rows) == 1


def widened(picture, steps):
    """S7: the picture that the steps take."""
    if picture.channels > 2 or not any(makes_colours(step) for step in steps):
        return picture
    planes = picture.planes()
    return picture.with_planes(planes[:1] * 3 + planes[1:], picture.width, picture.height)


def narrowed(picture, steps, channels):
    """S8: the result of steps for an input with CHANNELS."""
    grey = channels < 3
    for step in steps:
        colour = getattr(step, "colour", None)
        pads = colour is not None and len(set(colour)) > 1 and picture.channels > 2
        grey = (grey or makes_grey(step)) and not makes_colours(step) and not pads
    if not grey or picture.channels < 3:
        return picture
    planes = picture.planes()
    return picture.with_planes(planes[:1] + planes[3:], picture.width, picture.height)
