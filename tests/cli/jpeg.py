#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the components of a JPEG, from its frame header: jpeg.py FILE."""
import sys


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    count = data[at + 9]
    print(count, *(f"{data[at + 11 + 3 * i] >> 4}x{data[at + 11 + 3 * i] & 15}" for i in range(count)))


main()
