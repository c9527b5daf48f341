# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: numbers and filters as text, and taps (N, F, T, G)."""

import functools
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

LIMIT = 8421504  # L of the rules T
ABOVE_0 = 5e-324  # the least double above 0


class Refused(Exception):
    """What a rule calls refused."""


def require(truth, why):
    """Refuse unless something holds."""
    if not truth:
        raise Refused(why)


# The notation, and numbers: N


def nearest(a, b):
    """R(a / b) of the notation: the nearest integer, halves upwards."""
    return (2 * a + b) // (2 * b)


def away(x):
    """round(x) of the notation: the nearest integer of a double, halves away from 0."""
    low = math.floor(abs(x))
    size = low + 1 if abs(x) - low >= 0.5 else low
    return -size if x < 0 else size


class Number(NamedTuple):
    """A number of a text: its double, and the exact fraction if there is one."""

    double: float
    exact: Fraction | None


def exactly(fraction):
    """N2, N3: a number from an exact fraction."""
    return Number(float(fraction.numerator) / float(fraction.denominator), fraction)


DECIMAL = r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
NUMBER = re.compile(r"([+-]?)" + DECIMAL + "(?:/" + DECIMAL + ")?")


def read_decimal(word):
    """N2: a decimal."""
    mantissa, _, exponent = word.lower().partition("e")
    d = e = 0
    cut = after_point = False
    for c in mantissa:
        if c == ".":
            after_point = True
            continue
        if d <= 922337203685477579:
            d = 10 * d + int(c)
        else:
            e += 1
            cut = cut or c != "0"
        e -= after_point
    written = 0
    for c in exponent.lstrip("+-"):
        written = written if written >= 1000000 else 10 * written + int(c)
    return scale_decimal(d, e - written if exponent.startswith("-") else e + written, cut)


def scale_decimal(d, e, cut):
    """N2: the number d times 10^e."""
    if d == 0:
        return exactly(Fraction(0))
    while e < 0 and d % 10 == 0:
        d, e = d // 10, e + 1
    v, denominator = float(d), 1
    while e > 0 and v < math.inf:
        v, d, e = v * 10, d * 10, e - 1
    while e < 0 and v > 0:
        v, denominator, e = v / 10, denominator * 10, e + 1
    if not cut and max(d, denominator) < 1 << 63:
        return exactly(Fraction(d, denominator))
    require(v < math.inf, "number too large")
    return Number(v, None)


def divide(a, b):
    """N3: the quotient of two numbers."""
    require(b.double != 0 and abs(b.double) < math.inf, "division by 0")
    if a.exact is not None and b.exact:
        quotient = a.exact / b.exact
        if max(abs(quotient.numerator), quotient.denominator) < 1 << 63:
            return exactly(quotient)
    return Number(a.double / b.double, None)


def read_number(word):
    """N1: a word as a number."""
    match = NUMBER.fullmatch(word)
    require(match, f"not a number: {word}")
    sign, first, second = match.groups()
    number = read_decimal(first)
    if second:
        number = divide(number, read_decimal(second))
    if sign == "-":
        number = Number(-number.double, None if number.exact is None else -number.exact)
    return number


def round_fine(x):
    """N4: a double rounded to 2^-20."""
    return Fraction(away(x * (1 << 20)), 1 << 20)


def whole(number, low, high):
    """A number that has to be a whole one in a range."""
    require(low <= number.double <= high and number.double == int(number.double), "not a whole number in the range")
    return int(number.double)


# Filters as text: F, T


@dataclass(frozen=True)
class Grid:
    """Integer taps over a scale D, with an offset O: one grid or two, each a list of rows."""

    grids: list
    scale: int
    anchor: tuple
    offset: Fraction = Fraction(0)
    combine: str = ""
    absolute: bool = False
    exact: bool = True


@dataclass(frozen=True)
class Passes:
    """D1: the vectors of two passes. D3: the amount and threshold of an unsharp mask."""

    row: list
    column: list
    shift: int
    scale: int
    amount: int | None = None
    threshold: int = 0
    exact: bool = False


def text_lines(text):
    """F1, F2: the lines of a text, without comments and without lines of separators alone."""
    require(len(text) <= 1 << 20, "text too long")
    text = text.removeprefix(b"\xef\xbb\xbf")
    require(text[:2] not in (b"\xff\xfe", b"\xfe\xff"), "UTF-16")
    lines = [line.removesuffix(b"\r").decode("latin-1") for line in text.split(b"\n")]
    require(not any(re.search(r"[\x00-\x08\x0a-\x1f\x7f]", line) for line in lines), "control character")
    lines = [line.partition("#")[0] for line in lines]
    return [line for line in lines if line.strip(" \t,;")]


def read_setting(line, settings):
    """F3: a line that is a setting."""
    line = line.strip(" \t,;")
    word, *values = re.split("[ \t,;]+", line)
    require(word not in settings, f"twice: {word}")
    value = None
    if word == "title":
        value = line.removeprefix("title").strip(" \t,;")
        require(1 <= len(value) <= 127, "title of a wrong length")
    elif word in ("scale", "offset"):
        require(len(values) == 1, f"{word} needs one number")
        value = read_number(values[0])
    elif word == "abs":
        require(not values, "abs has no value")
    elif word == "anchor":
        require(len(values) == 2, "anchor needs two numbers")
        value = tuple(whole(read_number(v), 0, 126) for v in values)
    else:
        ranks = values in (["median"], ["minimum"], ["maximum"]) or len(values) == 2 and values[0] == "rank" and values[1][-1] == "%"  # U1
        require(word == "combine" and (ranks or values in (["magnitude"], ["max"], ["sum"])), f"unknown: {line}")
        value = " ".join(values)
    settings[word] = value


def read_row(line):
    """F4: a line that is a row of taps."""
    separator = r"[ \t]*[,;][ \t]*|[ \t]+"
    body = re.sub(r"[ \t]*[,;]?[ \t]*$", "", line.strip(" \t"), count=1)
    separators = re.findall(separator, body)
    require(len({s.strip(" \t") for s in separators}) <= 1, "separators differ")
    if re.search("[0-9],[0-9]", body):
        require(all(s == "," for s in separators), "looks like decimal commas")
    return [read_number(word) for word in re.split(separator, body)]


def is_matrix(rows):
    """F6: whether rows are a matrix of libvips."""
    if not 2 <= len(rows[0]) <= 4:
        return False
    sides = [number.double for number in rows[0][:2]]
    if not all(1 <= v <= 127 and v == int(v) for v in sides):
        return False
    if len(rows) - 1 != sides[1] or any(len(row) != sides[0] for row in rows[1:]):
        return False
    require(len(rows[0]) != sides[0] or len(rows) > 127, "a matrix or a grid")
    return True


def read_text(text):
    """F3, F5, F6: the settings and the grids of a text."""
    settings, grids = {}, [[]]
    for line in text_lines(text):
        word = line.strip(" \t,;")
        if re.match("[A-Za-z_]", word):
            require(grids == [[]], "a setting after the first row")
            read_setting(line, settings)
        elif word == "---":
            require("combine" in settings and len(grids) == 1, "a second grid needs combine, a third one is refused")
            grids.append([])
        else:
            grids[-1].append(read_row(line))
    require(all(grids), "no row")
    if not settings and len(grids) == 1 and is_matrix(grids[0]):
        settings = dict(zip(("scale", "offset"), grids[0].pop(0)[2:]))
    return settings, grids


def text_taps(text):
    """F3 to F7, T1 to T4: the taps of a text."""
    settings, grids = read_text(text)
    height, width = len(grids[0]), len(grids[0][0])
    require(height <= 127 and width <= 127, "too many taps")
    require(all(len(grid) == height and all(len(row) == width for row in grid) for grid in grids), "shapes differ")
    require(("combine" in settings) == (len(grids) == 2), "combine is for two grids")
    require(not ("combine" in settings and "abs" in settings), "combine with abs")
    offset = settings.get("offset", exactly(Fraction(0)))
    if offset.exact is None or len(grids) == 2 and offset.exact.denominator > 1 << 20:
        offset = exactly(round_fine(offset.double))
    require(abs(offset.exact) <= 65535, "offset out of range")
    anchor = settings.get("anchor", (width // 2, height // 2))
    require(anchor[0] < width and anchor[1] < height, "anchor outside")
    scale = settings.get("scale", exactly(Fraction(1)))
    wishes = [[divide(number, scale) for row in grid for number in row] for grid in grids]
    taps, scale = exact_taps(wishes) or rounded_taps(wishes, width, anchor)
    taps = [[q[i : i + width] for i in range(0, len(q), width)] for q in taps]
    return Grid(taps, scale, anchor, offset.exact, settings.get("combine", ""), "abs" in settings)


def cancel(grids, scale):
    """T3: taps and scale over their common divisor."""
    divisor = math.gcd(scale, *[q for grid in grids for q in grid])
    return [[q // divisor for q in grid] for grid in grids], scale // divisor


def exact_taps(wishes):
    """T1, T3: exact taps and their scale, or None."""
    if any(t.exact is None for grid in wishes for t in grid):
        return None
    scale = math.lcm(*[t.exact.denominator for grid in wishes for t in grid])
    grids = [[int(t.exact * scale) for t in grid] for grid in wishes]
    if scale > 1 << 30 or sum(abs(q) for grid in grids for q in grid) > LIMIT:
        return None
    return cancel(grids, scale)


def rounded_taps(wishes, width, anchor):
    """T2: rounded taps and their scale."""
    doubles = [[t.double for t in grid] for grid in wishes]
    total = add_up(abs(t) for grid in doubles for t in grid)
    for k in range(30, -1, -1):
        if 2.0**k * total <= LIMIT + sum(len(grid) for grid in doubles):
            grids = [round_grid(grid, 2.0**k, width, anchor) for grid in doubles]
            if sum(abs(q) for grid in grids for q in grid) <= LIMIT:
                return grids, 1 << k
    raise Refused("taps too large")


def add_up(values):
    """The sum of doubles in order, without the compensation that newer versions of sum() have."""
    total = 0.0
    for v in values:
        total = total + v
    return total


def round_grid(doubles, factor, width, anchor):
    """T2: the taps of a grid, rounded so that their sum is kept."""
    taps = [away(factor * t) for t in doubles]
    missing = away(factor * add_up(doubles)) - sum(taps)
    sign = 1 if missing > 0 else -1

    def rank(i):
        distance = (i % width - anchor[0]) ** 2 + (i // width - anchor[1]) ** 2
        return -(factor * doubles[i] - taps[i]) * sign, distance, i

    for i in sorted(range(len(taps)), key=rank)[: abs(missing)]:
        taps[i] += sign
    return taps


# Taps from parameters: G


def decay(x):
    """G2: e^-x."""
    if x >= 700:
        return 0.0
    n = 0
    while x > 0.5:
        x, n = x / 2, n + 1
    p = t = 1.0
    for i in range(1, 16):
        t = t * (-x / i)
        p = p + t
    for _ in range(n):
        p = p * p
    return p


def sine(a):
    """G3: the sine of 0 to 90 degrees."""
    x = a * (3.14159265358979323846 / 180)
    s = t = x
    for i in range(2, 23, 2):
        t = t * ((-x * x) / (i * (i + 1)))
        s = s + t
    return s


def arcsine(z):
    """G4: the arcsine of 0 to 1."""
    f = 1
    while z > 0.1:
        z = z / math.sqrt(2 + 2 * math.sqrt(1 - z * z))
        f = f * 2
    s = t = z
    for i in range(1, 16, 2):
        t = t * ((z * z * i) / (i + 1))
        s = s + t / (i + 2)
    return f * s


def set_taps(weights, total, cut, bits):
    """G5, G6: a square grid of taps from weights, which sum to 0 or 1."""
    largest = max(abs(w) for w in weights)
    most = min((LIMIT - len(weights)) / add_up(abs(w) for w in weights), 2.0**30)
    exact = False
    for i in range(24):
        c = 2**i - (i % 8 == 7)
        u = math.floor(min((c if total else c - c // 32) / largest, most))
        taps = [away(w * u) for w in weights]
        scale = sum(taps) if total else u
        if scale == 0:
            continue
        if not total:
            taps[len(taps) // 2] -= sum(taps)
        error = cut
        for q, w in zip(taps, weights):
            error = error + abs(q / scale - w)
        error = (255 if bits == 8 else 65535) / 2 * error
        exact = error < 1e-9
        if exact or i % 8 == 7 and error <= (0.1 if bits == 8 else 0.12):
            break
    if exact:
        (taps,), scale = cancel([taps], scale)
    return square_grid(taps, scale, exact)


def square_grid(taps, scale, exact):
    """G6: a grid without outer columns and rows of zeros."""
    side = math.isqrt(len(taps))
    rows = [taps[i : i + side] for i in range(0, len(taps), side)]
    while len(rows) > 2 and not any(rows[0]) and not any(rows[-1]):
        rows = rows[1:-1]
    while len(rows[0]) > 2 and not any(row[0] or row[-1] for row in rows):
        rows = [row[1:-1] for row in rows]
    return Grid([rows], scale, (len(rows[0]) // 2, len(rows) // 2), exact=exact)


@functools.lru_cache(maxsize=None)
def gaussian_weights(sigma):
    """G8: the weights of a Gaussian."""
    g, t, i = [1.0], 1.0, 1
    while i <= 850 or i < 40 * sigma:
        x = decay(i / sigma * (i / sigma) / 2)
        if i <= 850:
            g.append(x)
        t, i = t + 2 * x, i + 1
    return [x / t for x in g]


def gaussian_radius(g, c):
    """G8: the radius for a number c."""
    inside = 0.0
    for i, x in enumerate(g):
        inside = inside + (2 * x if i else x)
        if 1 - inside <= c:
            return i
    return 850


def gaussian_vector(g, r, k):
    """G9: integers for the distances 0 to r, whose sum over both sides is 2^k, and their error."""
    v = [math.floor(2.0**k * x) for x in g[: r + 1]]
    rests = [2.0**k * g[i] - v[i] for i in range(r + 1)]
    missing = 2**k - v[0] - 2 * sum(v[1:])
    while missing >= 2:
        i = max(range(1, r + 1), key=lambda i: rests[i])
        v[i], rests[i], missing = v[i] + 1, rests[i] - 1, missing - 2
    v[0] += missing
    inside = g[0]
    for x in g[1 : r + 1]:
        inside = inside + 2 * x
    error = 1 - inside
    for i in range(r + 1):
        error = error + (2 if i else 1) * abs(v[i] * 2.0**-k - g[i])
    return v, error


def both_sides(v):
    """A whole vector of its numbers for the distances from the middle."""
    return v[:0:-1] + v


def make_gaussian(bits, sigma):
    """G10: two passes, or one tap."""
    white = 255 if bits == 8 else 65535
    g = gaussian_weights(sigma)
    r = gaussian_radius(g, (0.02 if bits == 8 else 0.06) / white / 2)
    if r == 0:
        return Grid([[[1]]], 1, (0, 0), exact=False)
    f = 23 if bits == 8 else 31
    while 2.0**f * g[0] + 1 >= 2 ** (15 if bits == 8 else 22):
        f -= 1
    row, error = gaussian_vector(g, r, f)
    if bits == 16:
        return Passes(both_sides(row), both_sides(row), f - 6, 1 << (f + 6))
    best = None
    for p in range(8, 2, -1):
        k = min(f, 24 - p)
        if k + p < 23:
            break
        column, column_error = gaussian_vector(g, r, k)
        bound = white / 2 * (error + column_error) + 2.0**-p / 2
        if best is None or bound < best[0]:
            best = bound, Passes(both_sides(row), both_sides(column), f - p, 1 << (k + p))
    return best[1]


def make_unsharp(bits, sigma, amount, threshold=0.0):
    """G11: an unsharp mask."""
    passes = make_gaussian(bits, sigma)
    if isinstance(passes, Grid):
        return passes
    threshold = away(256 * threshold) * (257 if bits == 16 else 1)
    return replace(passes, amount=away(amount * 2**20), threshold=threshold)


def make_box(bits, radius):
    """G7: a mean."""
    side = 2 * int(radius) + 1
    if radius > 63:
        return Passes([1] * side, [1] * side, 0, side * side, exact=True)
    return Grid([[[1] * side] * side], side * side, (side // 2, side // 2))


def make_motion(bits, length, angle):
    """G12: a line."""
    a = math.fmod(angle + 360, 180) if angle < 0 else math.fmod(angle, 180)
    dx = sine(90 - a) if a <= 90 else -sine(a - 90)
    dy = -sine(a) if a <= 90 else -sine(180 - a)
    h = (length - 1) / 2
    weights = []
    for y in range(-63, 64):
        for x in range(-63, 64):
            across = x * dy - y * dx
            beyond = max(abs(x * dx + y * dy) - h, 0)
            weights.append(max(1 - math.sqrt(across * across + beyond * beyond), 0))
    total = add_up(weights)
    return set_taps([w / total for w in weights], 1, 0, bits)


def circle_part(x, y, r):
    """G13: Q(x, y)."""
    sign = -1 if (x < 0) != (y < 0) else 1
    x, y = min(abs(x), r), min(abs(y), r)
    if x * x + y * y <= r * r:
        return sign * x * y
    p = math.sqrt(r * r - y * y)
    h = math.sqrt(r * r - x * x)
    return sign * (p * y + (x * h - p * y + r * r * (arcsine(x / r) - arcsine(p / r))) / 2)


def make_disk(bits, radius):
    """G13: a disk."""
    radius = max(radius, 0.5)
    reach = math.ceil(radius)
    weights = []
    for y in range(-reach, reach + 1):
        for x in range(-reach, reach + 1):
            far, close = max(abs(x), abs(y)), min(abs(x), abs(y))
            area = circle_part(far + 0.5, close + 0.5, radius) - circle_part(far - 0.5, close + 0.5, radius)
            area = area - circle_part(far + 0.5, close - 0.5, radius) + circle_part(far - 0.5, close - 0.5, radius)
            weights.append(max(area, 0))
    total = add_up(weights)
    return set_taps([w / total for w in weights], 1, 0, bits)


def make_log(bits, sigma):
    """G14: the Laplacian of a Gaussian."""
    white, limit = (255, 0.03) if bits == 8 else (65535, 0.06)
    g = gaussian_weights(sigma)
    mean = add_up(4 * g[i] * (i * i) for i in range(1, 851))
    inside, squares, r, outside = g[0], 0.0, 0, 0.0
    while r == 0 or r < 63 and (r < 2 * sigma or outside * white > limit):
        r = r + 1
        inside = inside + 2 * g[r]
        squares = squares + 2 * g[r] * (r * r)
        outside = -inside * (2 * squares - mean * inside) / (sigma * sigma)
    mean = 2 * squares / inside
    reach = range(-r, r + 1)
    weights = [g[abs(x)] * g[abs(y)] * (x * x + y * y - mean) / (sigma * sigma) for y in reach for x in reach]
    return set_taps(weights, 0, 2 * outside, bits)


MAKERS = {  # G1: the function, and the ranges of its numbers
    "box": (make_box, [(0, 850)]),
    "gaussian": (make_gaussian, [(ABOVE_0, 170)]),
    "motion": (make_motion, [(1, 127), (-360, 360)]),
    "disk": (make_disk, [(ABOVE_0, 63)]),
    "log": (make_log, [(0.2, 15.75)]),
    "unsharp": (make_unsharp, [(ABOVE_0, 170), (0.000001, 100), (0, 255)]),
}


@functools.lru_cache(maxsize=None)
def made_taps(name, numbers, bits):
    """G15: taps from parameters for planes of 8 or 16 bits."""
    maker = MAKERS[name][0]
    taps = maker(8, *numbers)
    return taps if bits == 8 or taps.exact else maker(16, *numbers)


def read_parameters(name, words):
    """G1: the numbers of NAME:NUMBER[:NUMBER...]."""
    ranges = MAKERS[name][1]
    least = 2 if name == "unsharp" else len(ranges)
    require(least <= len(words) <= len(ranges), "too few or too many numbers")
    numbers = tuple(read_number(word).double for word in words)
    for v, (low, high) in zip(numbers, ranges):
        require(low <= v <= high and (name != "box" or v == int(v)), "number out of range")
    return numbers
