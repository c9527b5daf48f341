#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write filter files into a C file: embed.py OUTPUT.c FILE...

The C file defines builtin_filters, sorted by name, and builtin_filter_count, which src/filter/filter.h declares.
"""

import pathlib
import sys

HEAD = """/* Written by filters/embed.py from the files in filters/; do not edit. */
#include "filter/filter.h"

const struct builtin_filter builtin_filters[] = {
"""
TAIL = """};
const size_t builtin_filter_count = sizeof builtin_filters / sizeof builtin_filters[0];
"""


def literal(data):
    """A C string literal of the bytes. Octal escapes end after three digits, and no trigraph can appear."""
    special = {ord("\n"): "\\n", ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    plain = lambda byte: chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
    return '"' + "".join(special.get(byte) or plain(byte) for byte in data) + '"'


def entry(path):
    data = path.read_bytes()
    lines = [literal(line) for line in data.splitlines(keepends=True)] or ['""']
    text = "\n     ".join(lines)
    return f"    {{{literal(path.stem.encode())},\n     {text},\n     {len(data)}}},\n"


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: embed.py OUTPUT.c FILE...")
    paths = sorted((pathlib.Path(name) for name in sys.argv[2:]), key=lambda path: path.stem.encode())
    stems = [path.stem for path in paths]
    if len(set(stems)) != len(stems):
        sys.exit("embed.py: two files have one name")
    pathlib.Path(sys.argv[1]).write_text(HEAD + "".join(map(entry, paths)) + TAIL, encoding="ascii")


if __name__ == "__main__":
    main()
