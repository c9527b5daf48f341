#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README's example writes a whole JPEG of its size: example.py PROGRAM."""
import subprocess
import sys

file = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout
assert file.startswith(b"\xff\xd8") and file.endswith(b"\xff\xd9"), file[:20]
frame = file.index(b"\xff\xc0")
assert file[frame + 5:frame + 10] == bytes((480 >> 8, 480 & 255, 640 >> 8, 640 & 255, 3)), file[frame:frame + 20]
