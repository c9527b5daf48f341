# SPDX-License-Identifier: MIT
"""What the tests of faults share: run gpuconv in a folder of its own, and judge how it ended."""
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = os.environ.get("GPUCONV_FAULTS") == "full"
SECONDS = 60  # what takes longer hangs
TEMPORARY = re.compile(r"\.gpuconv-[0-9a-f]{16}")  # as gpuconv(1) has it

failures = 0


class Ended:
    """How a run ended: its exit status (negative: by that signal; None: it hung) and what it printed."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self):
        return self.err.decode("utf-8", "backslashreplace").splitlines()


def environment(**more):
    ours = ("GPUCONV_FILTERS", "XDG_CONFIG_HOME", "OMP_NUM_THREADS")
    values = {name: value for name, value in os.environ.items() if name not in ours}
    return dict(values, LC_ALL="C", HOME="/nonexistent", **more)


def run(command, values=None, data=None, **options):
    """Run a command to its end."""
    process = subprocess.Popen(command, env=values or environment(), stdin=subprocess.PIPE if data else
                               subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    try:
        out, err = process.communicate(data, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Ended(None, out, err)
    return Ended(process.returncode, out, err)


def fail(what):
    global failures
    failures += 1
    print(f"FAILED: {what}")


def check(right, what):
    if not right:
        fail(what)
    return right


def check_failed(ended, what, reason=None, status=1):
    """It must have ended with STATUS and one sentence, which holds REASON."""
    lines = ended.lines()
    return check(ended.status == status and len(lines) == 1 and lines[0].startswith("gpuconv: ") and
                 (reason is None or reason in lines[0]), f"{what}: exit status {ended.status}, said {lines}")


def tree(folder):
    """All files below a folder: relative path -> bytes."""
    files = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            with open(full, "rb") as file:
                files[os.path.relpath(full, folder)] = file.read()
    return files


def picture(width, height, channels=3, seed=0):
    """The bytes of a PNG file, of another picture for each seed."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    stride = width * channels
    rows = b"".join(b"\0" + bytes((7 * x * y + 3 * x + 11 * y + seed) & 255 for x in range(stride))
                    for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, (0, 4, 2, 6)[channels - 1], 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def main(tests):
    """Run functions that take (gpuconv's path), each in an empty folder."""
    program = os.path.abspath(sys.argv[1])
    before = os.getcwd()
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="gpuconv-", ignore_cleanup_errors=True) as folder:
            os.chdir(folder)
            test(program)
            os.chdir(before)
    sys.exit(1 if failures else 0)
