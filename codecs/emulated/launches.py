#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make kernels for the emulated GPU: launches.py KERNELS.cu OUT.cc DEPENDENCIES. A launch by queue_kernel gets the
kernel's name. Headers of kernels replace their #include, but for those of which the emulated GPU has versions
(include/, and tests/emulated/include)."""
import pathlib
import re
import sys

source, target, dependencies = map(pathlib.Path, sys.argv[1:])
here = pathlib.Path(__file__).resolve().parent
headers = []


def include(match):
    path = here.parents[1] / match[1]
    if any((folder / "include" / match[1]).exists() for folder in (here, here.parents[1] / "tests/emulated")):
        return match[0]
    headers.append(path)
    text = match.string[:match.end()]
    return f'{read(path)}#line {text.count(chr(10))} {text.split(chr(10))[0][8:]}\n'


def read(path):
    return re.sub(r'#include "(kernels/[\w/-]+\.cuh)"\n', include, f'#line 1 "{path}"\n{path.read_text(encoding="utf-8")}')


text = re.sub(r"\bqueue_kernel\((\w+)(?=[,<])", r'queue_kernel("\1", \1', read(source))
text = text.replace("static __global__", "__global__")  # which is static
text = text.replace("__noinline__", "__attribute__((noinline))")  # libstdc++ has the word, too: a macro would break it
# A thread of the host runs one block after the other, so it needs one array.
text = re.sub(r"extern __shared__ ([\w ]+) (\w+)\[\];", r"\1 *\2 = (\1 *)emulated_memory;", text)
if "<<<" in text:
    sys.exit(f"{source}: launch kernels by queue_kernel")
target.write_text(text, encoding="utf-8")
dependencies.write_text(f"{target}: {' '.join(map(str, headers))}\n", encoding="utf-8")
