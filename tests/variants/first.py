#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compile the lesson's first kernel with nvcc alone, and run it: first.py NVCC SOURCE. Without a GPU, it must say so."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip  # noqa: E402


def main():
    nvcc, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "first")
        subprocess.run([nvcc, source, "-o", program], check=True)
        done = subprocess.run([program], capture_output=True, text=True)
    if done.returncode == 1 and done.stdout.startswith("no GPU: "):
        skip("there is no GPU")
    assert (done.returncode, done.stdout) == (0, "OK\n"), done
    return 0


sys.exit(main())
