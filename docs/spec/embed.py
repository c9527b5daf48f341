#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the vectors into a C file, compressed: embed.py VECTORS OUTPUT.c. src/batch/conformance.h declares what it has."""
import pathlib
import sys
import zlib

data = zlib.compress(pathlib.Path(sys.argv[1]).read_bytes(), 9)
rows = (",".join(map(str, data[at:at + 32])) for at in range(0, len(data), 32))
pathlib.Path(sys.argv[2]).write_text(
    '/* Written by docs/spec/embed.py; do not edit. */\n#include "batch/conformance.h"\n\n'
    "const uint8_t builtin_vectors[] = {\n" + ",\n".join(rows) + "};\n"
    "const size_t builtin_vectors_size = sizeof builtin_vectors;\n", encoding="ascii")
