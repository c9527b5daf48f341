# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: matrices and curves (Q)."""

import functools
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

from pixels_taps import (away, divide, exact_taps, exactly, nearest, read_number, read_row, read_setting, require,
                         round_fine, rounded_taps, text_lines)

CHANNELS = ["red", "green", "blue", "alpha"]
WEIGHTS = [0.2126, 0.7152, 0.0722]
PART = 10000  # the units of a level


# Texts: Q1 to Q4


def word_of(line):
    """F3: the word that begins a line, or nothing."""
    return re.match(r"[A-Za-z_]?[^ \t,;]*", line.strip(" \t,;"))[0] if re.match(r"[ \t,;]*[A-Za-z_]", line) else ""


def has_sections(text):
    """Q1: whether a text has a matrix, a curve or a table."""
    return any(word_of(line) in ("matrix", "curve", "table") for line in text_lines(text))


def read_point(text):
    """Q1: the step of a text."""
    sections, settings, rows = [], {}, 0
    for line in text_lines(text):
        word = word_of(line)
        if word in ("matrix", "curve", "table"):
            sections.append((word, re.split("[ \t,;]+", line.strip(" \t,;"))[1:], []))
        elif word == "title":
            require(not sections, "a title after a section")
            read_setting(line, settings)
        else:
            require(not word and sections and line.strip(" \t,;") != "---", f"not in a section: {line}")
            sections[-1][2].append(line)
            rows += 1
    require(len(sections) <= 5 and rows <= 1028, "too many sections or rows")
    step = Point()
    for word, words, lines in sections:
        if word == "matrix":
            require(not step.rows and not step.curves and not words, "two matrices, one after a curve, or words")
            read_matrix(step, [read_row(line) for line in lines])
        else:
            read_curve(step, word, words, lines)
    return step


def read_matrix(step, rows):
    """Q2: the rows of a matrix."""
    n = len(rows[0]) if rows else 0
    require((len(rows), n) in [(1, 3), (1, 4), (1, 5), (3, 3), (3, 4), (3, 5), (4, 4), (4, 5)], "shape of a matrix")
    step.weights = 4 if len(rows) == 4 or n == 5 else 3
    for row in rows:
        require(len(row) == n, "rows differ")
        wishes = [[divide(number, exactly(Fraction(1))) for number in row[: step.weights]]]
        (q,), scale = exact_taps(wishes) or rounded_taps(wishes, step.weights, (0, 0))
        offset = row[step.weights] if n > step.weights else exactly(Fraction(0))
        require(abs(offset.double) <= 65535, "offset out of range")
        step.rows.append((q, scale, round_fine(offset.double) if offset.exact is None else offset.exact))


def read_level(word):
    """Q4: a number of a curve, in units."""
    number = read_number(word.removesuffix("%"))
    if word.endswith("%"):
        number = divide(number, exactly(Fraction(20, 51)))
    require(0 <= number.double <= 255, "level out of range")
    if number.exact is None:
        return away(number.double * 2570000.0)
    return nearest(2570000 * number.exact.numerator, number.exact.denominator)


def read_levels(line):
    """Q4: the numbers of a row. F4 says how they are separated; a percentage counts as its number there."""
    read_row(re.sub(r"([0-9.])%(?=[ \t,;]|$)", r"\1", line))
    return [read_level(word) for word in re.split("[ \t,;]+", line.strip(" \t,;"))]


def read_curve(step, word, words, lines):
    """Q3: a curve or a table."""
    named, shape, gamma = [], "", 0.0
    words = list(words)
    while words:
        one = words.pop(0)
        if one in CHANNELS:
            named.append(CHANNELS.index(one))
            continue
        require(word == "curve" and one in ("smooth", "steps", "gamma") and not shape, f"unknown, or a second: {one}")
        shape = one
        if one == "gamma":
            require(words, "no gamma")
            gamma = read_number(words.pop(0)).double
            require(0.1 <= gamma <= 10, "gamma out of range")
    rows = [read_levels(line) for line in lines]
    require(all(len(row) <= 256 for row in rows), "too many numbers in a row")
    if word == "table":
        ys = [y for row in rows for y in row]
        require(len(ys) == 256, "not 256 levels")
        rows = [(257 * PART * i, y) for i, y in enumerate(ys)]
    require(2 <= len(rows) <= 256 and all(len(row) == 2 for row in rows), "not points")
    require(all(a[0] < b[0] for a, b in zip(rows, rows[1:])), "not a function")
    for c in set(named or [0, 1, 2]):
        require(c not in step.curves, "a second curve")
        step.curves[c] = Curve(tuple(map(tuple, rows)), shape, gamma)


# Levels: Q5 to Q8


def trunc(a, b):
    """Q6: a quotient rounded towards 0."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(x, g):
    """Q7: x to the power of g."""
    m, n = math.frexp(x)
    if m < 0.70710678118654752:
        m, n = 2 * m, n - 1
    r = (m - 1) / (m + 1)
    z, p = r * r, 0.0
    for i in range(21, 0, -2):
        p = p * z + 1 / i
    e = min(g * (n + 2.8853900817779268 * r * p), 100)
    if e < -100:
        return 0.0
    k = math.floor(e + 0.5)
    w, p = (e - k) * 0.69314718055994531, 0.0
    for i in range(13, -1, -1):
        p = p * w + 1 / math.factorial(i)
    return p * 2.0**k


@dataclass(frozen=True)
class Curve:
    """Q3: points in units, the word and the gamma."""

    points: tuple
    shape: str
    gamma: float

    def secant(self, i):
        """Q6: m_i."""
        (x, y), (next_x, next_y) = self.points[i : i + 2]
        return trunc(2**16 * (next_y - y), next_x - x)

    def slope(self, i):
        """Q6: k_i."""
        if i in (0, len(self.points) - 1):
            return self.secant(min(i, len(self.points) - 2))
        a, b = self.secant(i - 1), self.secant(i)
        return 0 if a == 0 or b == 0 or (a < 0) != (b < 0) else trunc(2 * a * b, a + b)

    @functools.lru_cache(maxsize=None)
    def level(self, v):
        """Q5: T(v)."""
        position, points = PART * v, self.points
        if position <= points[0][0]:
            return nearest(points[0][1], PART)
        if position >= points[-1][0]:
            return nearest(points[-1][1], PART)
        i = max(k for k, (x, _) in enumerate(points) if x <= position)
        (x, y), (next_x, next_y) = points[i : i + 2]
        t, h, d = position - x, next_x - x, next_y - y
        if t == 0 or self.shape == "steps":
            return nearest(y, PART)
        if self.shape == "smooth":
            s = (2**22 * t) // h
            u = 2**22 - s
            bend = h * (self.slope(i) * u - self.slope(i + 1) * s) * s * u
            return nearest(y + ((2**16 * d * s * s * (3 * 2**22 - 2 * s) + bend) >> 82), PART)
        if self.shape == "gamma":
            return nearest(y + math.floor(d * power(t / h, 1 / self.gamma) + 0.5), PART)
        return nearest(h * y + d * t, PART * h)


@dataclass
class Point:
    """A step that changes each pixel by itself."""

    rows: list = field(default_factory=list)  # (q, D, O)
    curves: dict = field(default_factory=dict)
    weights: int = 3

    @property
    def clear(self):
        """Q9: whether an opaque picture may have other alpha afterwards."""
        return len(self.rows) == 4 or self.weights == 4 or 3 in self.curves

    def run(self, planes, has_alpha, bits):
        """Q8: the planes changed."""
        wide = [[257 * v for v in plane] for plane in planes] if bits == 8 else planes
        colours = len(planes) - has_alpha
        result = []
        for c, plane in enumerate(wide):
            channel = 3 if has_alpha and c == colours else c
            if self.rows and (channel < 3 or len(self.rows) == 4):
                row = self.rows[channel if len(self.rows) > 1 else 0]
                inputs = [wide[i if colours == 3 else 0] for i in range(3)]
                inputs.append(wide[-1] if has_alpha else [65535] * len(plane))
                plane = mixed(row, inputs[: self.weights])
            if channel in self.curves:
                plane = [self.curves[channel].level(v) for v in plane]
            result.append([(255 * v + 32895) >> 16 for v in plane] if bits == 8 else plane)
        return result


def mixed(row, inputs):
    """Q8: the sums of a row of the matrix."""
    q, scale, offset = row
    bias = 257 * offset + Fraction(1, 2)
    sums = (sum(weight * v for weight, v in zip(q, pixel)) for pixel in zip(*inputs))
    return [min(max((s * bias.denominator + bias.numerator * scale) // (scale * bias.denominator), 0), 65535) for s in sums]


# Words: Q10


def read_percentage(word, low, high):
    """Q10: P."""
    number = read_number(word.removesuffix("%")).double
    require(low <= number <= high, "out of range")
    return number


def mix_text(own, grey, offset):
    """Q10: 3 rows."""
    rows = [[grey * w + (own if c == j else 0) for j, w in enumerate(WEIGHTS)] for c in range(3)]
    return "matrix\n" + "".join(" ".join(f"{v:.12f}" for v in [*row, offset]) + "\n" for row in rows)


def word_text(name, words, read_colour):
    """Q10: the text of a word with its parameters."""
    counts = {"levels": (2, 3)}.get(name, (1, 1))
    require(counts[0] <= len(words) <= counts[1], "too few or too many parameters")
    first = words[0]
    if name == "levels":
        return f"curve {'gamma ' + words[2] if len(words) > 2 else ''}\n{first} 0\n{words[1]} 255\n"
    if name == "gamma":
        return f"curve gamma {first}\n0 0\n255 255\n"
    if name == "brightness":
        return mix_text(1, 0, read_percentage(first, -100, 100) * 2.55)
    if name in ("contrast", "saturation"):
        f = 1 + read_percentage(first, -100, 1000) / 100
        return mix_text(f, 0, 127.5 * (1 - f)) if name == "contrast" else mix_text(f, 1 - f, 0)
    if name == "threshold":
        require(read_percentage(first, 0, 100) > 0, "out of range")
        return f"matrix\n0.2126 0.7152 0.0722\ncurve steps\n0 0\n{first.removesuffix('%')}% 255\n"
    if name == "posterize":
        n = read_number(first).double
        require(2 <= n <= 128 and n == int(n), "out of range")
        n = int(n)
        return "curve steps\n" + "".join(f"{255 * i}/{n} {255 * i}/{n - 1}\n" for i in range(n))
    if name == "tint":
        return "matrix\n" + "".join(f"{2126 * v}/2550000 {7152 * v}/2550000 {722 * v}/2550000\n" for v in read_colour(first))
    require(re.fullmatch("[RGB]{3}", first), "not three letters")
    return "matrix\n" + "".join(" ".join(str(int(letter == one)) for one in "RGB") + "\n" for letter in first)


WORDS = {"levels", "gamma", "brightness", "contrast", "saturation", "threshold", "posterize", "tint", "swap"}
