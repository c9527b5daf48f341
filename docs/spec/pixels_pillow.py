# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: the rule of Pillow (K)."""

import functools
import math
import struct
from dataclasses import dataclass
from fractions import Fraction

from pixels_taps import require

SUPPORTS = {"nearest": 0, "box": 0.5, "bilinear": 1.0, "hamming": 1.0, "bicubic": 2.0, "lanczos": 3.0, "mks2013": 2.5,
            "mks2021": 4.5}
KERNELS = {f"pillow-{name}" for name in SUPPORTS}
KERNELS |= {f"pillow12-{name}" for name in SUPPORTS if not name.startswith("mks")}
DIGITS = 1 << 300  # the units of series, far below what a double shows


def series(x, is_cosine):
    """K4: the double nearest to the sine or the cosine of a double."""
    number = Fraction(x)
    square = number * number
    term = total = DIGITS if is_cosine else int(number * DIGITS)
    k = 1 if is_cosine else 2
    while term:
        term = -(term * square.numerator // square.denominator) // (k * (k + 1))
        term += term < 0  # towards 0, so that the series ends
        total += term
        k += 2
    return float(Fraction(total, DIGITS))


def sinc(x):
    """K4: sinc."""
    y = abs(x) * math.pi
    return series(y, False) / y if x else 1.0


def weight(name, u):
    """K3: the weight at a distance."""
    x = abs(u)
    if name == "box":
        return 1.0 if -0.5 < u <= 0.5 else 0.0
    if name == "bilinear":
        return max(1.0 - x, 0.0)
    if name == "hamming":
        return 0.0 if x >= 1 else sinc(x) * (9059697 / 2**24 + 15435039 / 2**25 * series(x * math.pi, True)) if x else 1.0
    if name == "bicubic":
        return (1.5 * x - 2.5) * x * x + 1 if x < 1 else (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2 else 0.0
    if name == "lanczos":
        return sinc(u) * sinc(u / 3) if -3 <= u < 3 else 0.0
    if name == "mks2013":
        if x < 0.5:
            return 17 / 16 - 7 / 4 * (x * x)
        return (1 - x) * (7 / 4 - x) if x < 1.5 else -1 / 8 * ((x - 5 / 2) * (x - 5 / 2)) if x < 2.5 else 0.0
    if x < 0.5:
        return 577 / 576 - 239 / 144 * (x * x)
    if x < 1.5:
        return 35 / 36 * (x - 1) * (x - 239 / 140)
    if x < 2.5:
        return 1 / 6 * (x - 2) * (65 / 24 - x)
    if x < 3.5:
        return 1 / 36 * (x - 3) * (x - 15 / 4)
    return -1 / 288 * ((x - 9 / 2) * (x - 9 / 2)) if x < 4.5 else 0.0


def to_float(x):
    """K11: the float nearest to a double."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


@functools.lru_cache(maxsize=64)
def axis_weights(n, size, name, part, bits):
    """K2, K5, K8, K11, K13: for each output its first input and its weights. None if all samples stay."""
    start, end = part
    length = to_float(end - start)
    scale = length / size
    if n == size and part == (0, n):
        return None
    if name == "nearest":
        positions = [start + scale * 0.5]
        while len(positions) < size:
            i = len(positions)
            positions.append(start + (i + 0.5) * scale if bits == 16 else positions[-1] + scale)
        return [(min(int(a), n - 1), [1.0]) for a in positions]
    f = max(scale, 1.0)
    s = SUPPORTS[name] * f
    require(min(max(math.ceil(length), size) * int(2 * SUPPORTS[name]) // size + 2, n) <= 16384, "too many taps")
    result = []
    for i in range(size):
        c = start + (i + 0.5) * scale
        first, last = max(int(c - s + 0.5), 0), min(int(c + s + 0.5), n)
        weights = [weight(name, (j - c + 0.5) * (1 / f)) for j in range(first, last)]
        total = 0.0
        for w in weights:
            total += w
        result.append((first, [w / total for w in weights]))
    return result


def rounded(t):
    """K5: halves away from 0."""
    return int(t - 0.5) if t < 0 else int(t + 0.5)


def output(weights, values, bits):
    """K5, K6, K13: the sample of an output."""
    if bits == 8:
        total = sum(rounded(w * (1 << 22)) * v for w, v in zip(weights, values))
        return min(max((total + (1 << 21)) >> 22, 0), 255)
    total = 0.0
    for w, v in zip(weights, values):
        total += w * v
    return min(max(rounded(total), 0), 65535) if bits == 16 else to_float(total)


def sum_rows(plane, width, axis, bits):
    """K6: a pass over rows."""
    rows = [plane[i : i + width] for i in range(0, len(plane), width)]
    return plane if axis is None else [output(weights, row[j:], bits) for row in rows for j, weights in axis]


def turned(plane, width):
    """Columns as rows."""
    return [v for x in range(width) for v in plane[x::width]]


def resize_plane(plane, width, target, kernel, box, bits):
    """K6, K7: a plane in another size."""
    version, name = kernel.split("-")
    height = len(plane) // width
    box = tuple(map(to_float, box))
    if all(v == int(v) for v in box[:2]) and (to_float(box[2] - box[0]), to_float(box[3] - box[1])) == target:
        name = "nearest"
    passes = ["across", "down"]
    if version == "pillow" and height > target[1] and height - target[1] > 2 * (width - target[0]):
        passes.reverse()
    for one in passes:
        if one == "across":
            axis = axis_weights(width, target[0], name, box[::2], bits)
            plane, width = sum_rows(plane, width, axis, bits), target[0]
        else:
            height = len(plane) // width
            axis = axis_weights(height, target[1], name, box[1::2], bits)
            plane = turned(sum_rows(turned(plane, width), height, axis, bits), target[1])
    return plane


def blocks_of(n, size, part, name, gap):
    """K12: how many samples of an axis become one, and where the blocks begin and end."""
    scale = (part[1] - part[0]) / size
    reach = (SUPPORTS[name] - 0.5) * scale
    low, high = max(int(part[0] - reach), 0), min(math.ceil(part[1] + reach), n)
    return max(int(scale / gap), 1), low, high


def mean(rows, is_whole, bits):
    """K12, K13: the mean of a block."""
    count = len(rows) * len(rows[0])
    if bits == 8:
        return (sum(map(sum, rows)) + count // 2) * (2**24 // count) >> 24
    side = 2 if is_whole else 1
    total = 0.0
    for y in range(0, len(rows), side):
        for x in range(0, len(rows[0]), side):
            group = 0.0
            for v in [v for row in rows[y : y + side] for v in row[x : x + side]]:
                group = to_float(group + v)
            total += group
    return to_float(total * (1 / count))


def reduce_plane(plane, width, across, down, bits):
    """K12: the means of the blocks of a plane."""
    (fx, left, right), (fy, top, bottom) = across, down
    result = []
    for y in range(top, bottom, fy):
        for x in range(left, right, fx):
            rows = [plane[i * width + x : i * width + min(x + fx, right)] for i in range(y, min(y + fy, bottom))]
            result.append(mean(rows, (len(rows), len(rows[0])) == (fy, fx), bits))
    return result


def premultiplied(plane, alpha):
    """K9: colours times alpha."""
    return [(2 * c * a + 255) // 510 for c, a in zip(plane, alpha)]


def divided(plane, alpha):
    """K9: colours over alpha."""
    return [min(255 * p // a, 255) if a else p for p, a in zip(plane, alpha)]


@dataclass
class Rule:
    """K1, K9, K11 to K13: what a resize by the rule of Pillow makes of a picture whose result has the size TARGET. Only
    the function has a BOX, a GAP, and other samples than those of 8 bits."""

    kernel: str
    target: tuple
    box: tuple | None = None
    gap: float | None = None

    def reduced(self, planes, width, bits):
        """K12: the planes, their width and the box after a reduction."""
        sides = width, len(planes[0]) // width
        name = self.kernel.split("-")[1]
        axes = [blocks_of(sides[i], self.target[i], self.box[i::2], name, self.gap) for i in (0, 1)]
        (fx, left, _), (fy, top, _) = axes
        if fx == fy == 1:
            return planes, width, self.box
        require(bits != 16 and fx * fy < 1 << 24, "no such reduction")
        planes = [reduce_plane(plane, width, *axes, bits) for plane in planes]
        box = tuple((v - low) / f for v, low, f in zip(self.box, (left, top) * 2, (fx, fy) * 2))
        return planes, (axes[0][2] - left + fx - 1) // fx, box

    def run(self, picture, premultiplies, has_light):
        """The picture in the other size."""
        width, height, bits, whole = picture.width, picture.height, picture.bits, (0, 0, picture.width, picture.height)
        if self.box is None:
            require(bits == 8 and not has_light, "not for 16 bits or light")
            self.box = whole
        left, top, right, bottom = self.box
        require(0 <= left and to_float(left) < to_float(right) <= width, "no such box")
        require(0 <= top and to_float(top) < to_float(bottom) <= height, "no such box")
        require(self.gap is None or self.gap >= 1, "no such gap")
        require(bits == 8 or picture.channels == 1, "no such mode")
        planes, box = picture.planes(), self.box
        if self.target == (width, height) and box == whole:
            return picture
        is_nearest = self.kernel.endswith("nearest")
        multiplies = premultiplies and picture.has_alpha and not is_nearest
        if multiplies:
            planes = [premultiplied(plane, planes[-1]) for plane in planes[:-1]] + planes[-1:]
        if self.gap is not None and not is_nearest and not (multiplies and self.kernel.startswith("pillow12")):
            planes, width, box = self.reduced(planes, width, bits)
        planes = [resize_plane(plane, width, self.target, self.kernel, box, bits) for plane in planes]
        if multiplies:
            planes = [divided(plane, planes[-1]) for plane in planes[:-1]] + planes[-1:]
        return picture.with_planes(planes, *self.target)
