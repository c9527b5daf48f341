#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compile a program that stands alone, and run it: first.py SOURCE COMPILER [OPTION...]. Its last line must be OK, or
that there is no GPU."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip  # noqa: E402


def main():
    source, *compiler = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "first")
        subprocess.run([*compiler, source, "-o", program], check=True)
        done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode == 1 and done.stdout.startswith("no GPU: "):
        skip("there is no GPU")
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "OK", done
    return 0


sys.exit(main())
