#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Print the components of a JPEG, from its frame header: jpeg.py FILE. With --tables, print the kind of its frame, and
for each component the first eight values and the sum of its quantisers."""
import sys


def main():
    with open(sys.argv[-1], "rb") as file:
        data = file.read()
    at, tables = 2, {}
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        size = int.from_bytes(data[at + 2:at + 4], "big")
        body = data[at + 4:at + 2 + size]
        while data[at + 1] == 0xDB and body:
            width = 1 + (body[0] >> 4)
            values = [int.from_bytes(body[1 + width * k:1 + width * (k + 1)], "big") for k in range(64)]
            tables[body[0] & 15] = values
            body = body[1 + 64 * width:]
        at += 2 + size
    count = data[at + 9]
    print(count, *(f"{data[at + 11 + 3 * i] >> 4}x{data[at + 11 + 3 * i] & 15}" for i in range(count)))
    if sys.argv[1] == "--tables":
        print("progressive" if data[at + 1] == 0xC2 else "sequential")
        for i in range(count):
            table = tables[data[at + 12 + 3 * i]]
            print(*table[:8], "sum", sum(table))


main()
