#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make kernels for the emulated GPU: launches.py KERNELS.cu OUT.cc. A launch by queue_kernel gets the kernel's name."""
import pathlib
import re
import sys

source, target = map(pathlib.Path, sys.argv[1:])
text = source.read_text(encoding="utf-8")
text = re.sub(r"\bqueue_kernel\((\w+)", r'queue_kernel("\1", \1', text)
# A thread of the host runs one block after the other, so it needs one array. It begins with noise, which is not a
# number if it is read as a float.
text = re.sub(r"extern __shared__ ([\w ]+) (\w+)\[\];", r"""static thread_local struct noise {
        alignas(16) unsigned char bytes[48 << 10];
        noise() { memset(bytes, 0xff, sizeof bytes); }
    } noise;
    \1 *\2 = (\1 *)noise.bytes;""", text)
if "<<<" in text:
    sys.exit(f"{source}: launch kernels by queue_kernel")
target.write_text(f'#line 1 "{source}"\n' + text, encoding="utf-8")
