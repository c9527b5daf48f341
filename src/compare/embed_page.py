#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the lines of page.html into a C file: embed_page.py FILTERS PAGE.html OUTPUT.c

FILTERS is the folder of embed.py, which writes C strings. The page allows only its own style and script, by their
hashes: they replace 'STYLE' and 'SCRIPT' in its Content-Security-Policy."""
import base64
import hashlib
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, sys.argv[1])
from embed import literal  # noqa: E402


def main():
    page = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    for name in ("style", "script"):
        parts = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        placeholder = f"'{name.upper()}'"
        if len(parts) != 1 or page.count(placeholder) != 1:
            sys.exit(f"embed_page.py: the page must have one <{name}> and one {placeholder}")
        digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode("ascii")
        page = page.replace(placeholder, f"'sha256-{digest}'")
    lines = "".join(f"    {literal(line)},\n" for line in page.encode().splitlines(keepends=True))
    pathlib.Path(sys.argv[3]).write_text(
        "/* Written by src/compare/embed_page.py from page.html; do not edit. */\n"
        f'#include "compare/report.h"\n\nconst char *const page_template[] = {{\n{lines}    NULL,\n}};\n', encoding="ascii")


main()
