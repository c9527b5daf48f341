#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replace the launches of kernels by calls: launches.py KERNELS.cu OUT.cc. A launch is a statement on lines of its own:
kernel<<<grid, threads, 0, stream>>>(arguments); the shared memory may also be called `shared`."""
import pathlib
import re
import sys

LAUNCH = re.compile(r"^( *)(\w+)<<<(.*), (dim3\([^()]*\)|[^,()]+), (0|shared), ([^,]+)>>>\(([^;]*)\);$", re.MULTILINE)

source, target = map(pathlib.Path, sys.argv[1:])
text = source.read_text(encoding="utf-8")
text, count = LAUNCH.subn(r'\1(void)\5, emulated_launch("\2", \3, \4, \6, [&] { \2(\7); });', text)
# A thread of the host runs one block after the other, so it needs one array. It begins with noise, which is not a
# number if it is read as a float.
text = re.sub(r"extern __shared__ ([\w ]+) (\w+)\[\];", r"""static thread_local struct noise {
        alignas(16) unsigned char bytes[48 << 10];
        noise() { memset(bytes, 0xff, sizeof bytes); }
    } noise;
    \1 *\2 = (\1 *)noise.bytes;""", text)
if "<<<" in text:
    sys.exit(f"{source}: a launch has another form than launches.py knows")
target.write_text(f'#line 1 "{source}"\n' + text, encoding="utf-8")
