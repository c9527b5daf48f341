# SPDX-License-Identifier: MIT
"""gpuconv pixels 1, made from the text of pixels-1.md alone: the rule of Pillow (K)."""

import functools
import math
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


@functools.lru_cache(maxsize=64)
def axis_taps(n, size, name):
    """K2, K5, K8: for each output its first input and its taps."""
    if n == size:
        return [(i, [1 << 22]) for i in range(n)]
    scale = n / size
    if name == "nearest":
        positions = [scale * 0.5]
        while len(positions) < size:
            positions.append(positions[-1] + scale)
        return [(int(a), [1 << 22]) for a in positions]
    f = max(scale, 1.0)
    s = SUPPORTS[name] * f
    require(min(max(n, size) * int(2 * SUPPORTS[name]) // size + 2, n) <= 16384, "too many taps")
    result = []
    for i in range(size):
        c = (i + 0.5) * scale
        first, last = max(int(c - s + 0.5), 0), min(int(c + s + 0.5), n)
        weights = [weight(name, (j - c + 0.5) * (1 / f)) for j in range(first, last)]
        total = 0.0
        for w in weights:
            total += w
        taps = [w / total * (1 << 22) for w in weights]
        result.append((first, [int(t - 0.5) if t < 0 else int(t + 0.5) for t in taps]))
    return result


def sum_rows(plane, width, axis):
    """K6: a pass over rows."""
    rows = [plane[i : i + width] for i in range(0, len(plane), width)]
    return [clamped(sum(q * v for q, v in zip(taps, row[j:]))) for row in rows for j, taps in axis]


def clamped(total):
    """K6: the level of a sum."""
    return min(max((total + (1 << 21)) >> 22, 0), 255)


def turned(plane, width):
    """Columns as rows."""
    return [v for x in range(width) for v in plane[x::width]]


def resize_plane(plane, width, target, kernel):
    """K6, K7: a plane in another size."""
    version, name = kernel.split("-")
    height = len(plane) // width
    passes = ["across", "down"]
    if version == "pillow" and height > target[1] and height - target[1] > 2 * (width - target[0]):
        passes.reverse()
    for one in passes:
        if one == "across":
            plane, width = sum_rows(plane, width, axis_taps(width, target[0], name)), target[0]
        else:
            height = len(plane) // width
            plane = turned(sum_rows(turned(plane, width), height, axis_taps(height, target[1], name)), target[1])
    return plane


def premultiplied(plane, alpha):
    """K9: colours times alpha."""
    return [(2 * c * a + 255) // 510 for c, a in zip(plane, alpha)]


def divided(plane, alpha):
    """K9: colours over alpha."""
    return [min(255 * p // a, 255) if a else p for p, a in zip(plane, alpha)]


@dataclass
class Rule:
    """K1, K9: what a resize by the rule of Pillow makes of a picture whose result has the size TARGET."""

    kernel: str
    target: tuple

    def run(self, picture, premultiplies, has_light):
        """The picture in the other size."""
        require(picture.bits == 8 and not has_light, "not for 16 bits or light")
        planes = picture.planes()
        if self.target == (picture.width, picture.height):
            return picture
        multiplies = premultiplies and picture.has_alpha and not self.kernel.endswith("nearest")
        if multiplies:
            planes = [premultiplied(plane, planes[-1]) for plane in planes[:-1]] + planes[-1:]
        planes = [resize_plane(plane, picture.width, self.target, self.kernel) for plane in planes]
        if multiplies:
            planes = [divided(plane, planes[-1]) for plane in planes[:-1]] + planes[-1:]
        return picture.with_planes(planes, *self.target)
