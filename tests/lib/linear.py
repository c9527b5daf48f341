#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The curve of sRGB with integers alone, from its definition: linear.py checks the checksums in test_linear.c.

L(c) = c / 12.92 where c <= 0.04045, else ((c + 0.055) / 1.055)^2.4. The power is a root of an integer power:
y = x^(12/5) exactly if y^5 = x^12. So each comparison compares fractions, and nothing is rounded."""
import os
import re
import sys
import zlib
from fractions import Fraction

HIGHEST = 65535


def reaches(numerator, denominator, level):
    """Is 65535 * L(numerator / denominator) >= LEVEL, a Fraction?"""
    if 100000 * numerator <= 4045 * denominator:
        return 100 * HIGHEST * numerator * level.denominator >= 1292 * denominator * level.numerator
    # ((1000 c + 55) / 1055)^12 >= (level / 65535)^5, the denominators multiplied out
    return (((1000 * numerator + 55 * denominator) ** 12) * (HIGHEST * level.denominator) ** 5
            >= (1055 * denominator) ** 12 * level.numerator ** 5)


def forward(highest):
    """round(65535 * L(v / highest)) for all v: the last w with 65535 * L >= w - 1/2. It grows with v."""
    table, level = [], 0
    for value in range(highest + 1):
        while level < HIGHEST and reaches(value, highest, Fraction(2 * level + 1, 2)):
            level += 1
        table.append(level)
    return table


def backward(highest):
    """For all w the number of v > 0 with 65535 * L((v - 1/2) / highest) <= w, which is where not > w."""
    table, level = [], 0
    for linear in range(HIGHEST + 1):
        while level < highest:
            numerator, denominator = 2 * level + 1, 2 * highest
            if reaches(numerator, denominator, Fraction(linear)) and not equals(numerator, denominator, linear):
                break
            level += 1
        table.append(level)
    return table


def equals(numerator, denominator, level):
    """Is 65535 * L(numerator / denominator) just LEVEL?"""
    if 100000 * numerator <= 4045 * denominator:
        return 100 * HIGHEST * numerator == 1292 * denominator * level
    return (1000 * numerator + 55 * denominator) ** 12 * HIGHEST ** 5 == (1055 * denominator) ** 12 * level ** 5


def tables():
    """The tables by name, with the bytes of an entry."""
    return {"from8": (forward(255), 2), "from16": (forward(HIGHEST), 2), "to8": (backward(255), 1),
            "to16": (backward(HIGHEST), 2)}


def main():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "test_linear.c")
    with open(source, encoding="ascii") as file:
        text = file.read()
    right = True
    for name, (table, size) in tables().items():
        expected = zlib.crc32(b"".join(value.to_bytes(size, "big") for value in table))
        found = re.search(rf"tables->{name}, \d+, {size}\), (0x[0-9a-f]+)\)", text)
        actual = int(found.group(1), 16) if found else None
        if actual != expected:
            print(f"{name}: test_linear.c has {actual}, the definition gives {expected:#010x}")
            right = False
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
