# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: ranks (U)."""

from dataclasses import dataclass, replace
from fractions import Fraction

from pixels_taps import divide, exactly, read_number, require, round_fine

HALF, WORDS = Fraction(1, 2), ("median", "rank", "erode", "dilate", "open", "close", "tophat", "blackhat", "outline")
SHARES = {"median": HALF, "minimum": Fraction(0), "maximum": Fraction(1), "erode": Fraction(0), "dilate": Fraction(1)}


@dataclass
class Rank:
    """U: a step that puts samples in order, by a footprint of rows of truths."""

    footprint: list
    anchor: tuple
    share: Fraction = Fraction(0)
    form: str = "rank"

    def has_negative(self):
        """U6, A8: it has no negative tap."""
        return False

    def way(self, border):
        """U6, A4: the way of a step with the default of `alpha`."""
        return "black" if border == "zero" or self.form in ("tophat", "blackhat", "outline") else "over"

    def ordered(self, plane, width, border, share):
        """U2, U3: the samples of one share in the windows of a plane."""
        from pixels_steps import outside

        height = len(plane) // width
        ones = [(i - self.anchor[1], j - self.anchor[0]) for i, row in enumerate(self.footprint) for j, one in enumerate(row) if one]
        k = min(len(ones) * share.numerator // share.denominator, len(ones) - 1)
        result = []
        for y in range(height):
            for x in range(width):
                places = [(outside(y + i, height, border), outside(x + j, width, border)) for i, j in ones]
                result.append(sorted(0 if None in place else plane[place[0] * width + place[1]] for place in places)[k])
        return result

    def changed(self, plane, width, border):
        """U3, U5: one plane of the result."""
        erode = lambda samples: self.ordered(samples, width, border, Fraction(0))
        dilate = lambda samples: self.ordered(samples, width, border, Fraction(1))
        less = lambda high, low: [max(h - l, 0) for h, l in zip(high, low)]
        if self.form == "open":
            return dilate(erode(plane))
        if self.form == "close":
            return erode(dilate(plane))
        if self.form == "tophat":
            return less(plane, dilate(erode(plane)))
        if self.form == "blackhat":
            return less(erode(dilate(plane)), plane)
        if self.form == "outline":
            return less(dilate(plane), erode(plane))
        return self.ordered(plane, width, border, self.share)

    def run(self, planes, width, border, bits):
        """U3, U5: the planes of the result, with their sides."""
        return [self.changed(plane, width, border) for plane in planes], width, len(planes[0]) // width

    def turned(self):
        """U1, T5: the step with the option `flip`."""
        width, height = len(self.footprint[0]), len(self.footprint)
        anchor = width - 1 - self.anchor[0], height - 1 - self.anchor[1]
        return replace(self, footprint=[row[::-1] for row in self.footprint[::-1]], anchor=anchor)


def read_percentage(word):
    """U2: the share of a number of percent."""
    number = read_number(word)
    require(0 <= number.double <= 100, "percentage out of range")
    share = divide(number, exactly(Fraction(100)))
    return round_fine(share.double) if share.exact is None else share.exact


def text_rank(settings, grids):
    """U1, U2: the step of the settings and the grids of a text, whose `combine` is a word, or a word and P%."""
    word, *percentage = settings["combine"].split()
    require(len(grids) == 1 and not settings.keys() & {"scale", "offset", "abs"}, "ranks have no sums")
    (rows,) = grids
    height, width = len(rows), len(rows[0])
    require(height <= 127 and width <= 127 and all(len(row) == width for row in rows), "no grid")
    require(all(number.exact in (0, 1) and number.exact is not None for row in rows for number in row), "neither 0 nor 1")
    footprint = [[number.exact == 1 for number in row] for row in rows]
    require(any(one for row in footprint for one in row), "no 1")
    anchor = settings.get("anchor", (width // 2, height // 2))
    require(anchor[0] < width and anchor[1] < height, "anchor outside")
    return Rank(footprint, anchor, read_percentage(percentage[0][:-1]) if percentage else SHARES[word])


def read_rank(name, words):
    """U4: the step of a word."""
    is_disk = words[-1:] == ["disk"]
    words = words[:-1] if is_disk else words
    require(len(words) == (2 if name == "rank" else 1), "wrong number of parameters")
    radius = read_number(words[0])
    share = read_percentage(words[1].removesuffix("%")) if name == "rank" else SHARES.get(name, Fraction(0))
    require(1 <= radius.double <= 63, "radius out of range")
    require(is_disk or radius.exact is not None and radius.exact.denominator == 1, "no whole number")
    reach, square = int(radius.double), radius.double * radius.double
    sides = range(-reach, reach + 1)
    footprint = [[not is_disk or x * x + y * y <= square for x in sides] for y in sides]
    return Rank(footprint, (reach, reach), share, name)
