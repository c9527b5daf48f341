# SPDX-License-Identifier: MIT
"""What the tests of faults share: run gpuconv in a folder of its own, and check how it ended."""
import contextlib
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip, temporary_folder  # noqa: E402, F401: used by the other tests of faults
from write_png import png, unfiltered  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = os.environ.get("GPUCONV_FAULTS") == "full"
SECONDS = 60  # a run that takes longer hangs
TEMPORARY = re.compile(r"\.gpuconv-[0-9a-f]{16}")  # as documented in gpuconv(1)

failures = 0


class Ended:
    """How a run ended, and its output. Its exit status is negative if that signal killed it, and None if it hung."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self):
        return self.err.decode("utf-8", "backslashreplace").splitlines()


def environment(**more):
    ours = ("GPUCONV_FILTERS", "XDG_CONFIG_HOME")
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


def failed_status(lines):
    """The exit status of a failed run that says these lines: 75 if a retry can help, or 1."""
    passing = ("No space left", "not enough memory", "enough free memory", "Cannot allocate memory", "the GPU failed",
               "no thread can be started", "while it was filtered", "Too many open files", "Broken pipe",
               "only a part of the line")
    return 75 if any(reason in line for line in lines for reason in passing) else 1


def check_failed(ended, what, reason=None, status=None):
    """The run must have ended with STATUS, or the one of its sentence, which must contain REASON."""
    lines = ended.lines()
    return check(ended.status == (status or failed_status(lines)) and len(lines) == 1 and lines[0].startswith("gpuconv: ") and
                 (reason is None or reason in lines[0]), f"{what}: exit status {ended.status}, said {lines}")


def tree(folder):
    """All files below a folder: relative path -> bytes. A run that is at work may remove a file meanwhile."""
    files = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            with contextlib.suppress(FileNotFoundError), open(full, "rb") as file:
                files[os.path.relpath(full, folder)] = file.read()
    return files


def picture(width, height, channels=3, seed=0):
    """The bytes of a PNG file; each seed gives another picture."""
    stride = width * channels
    columns = range(min(stride, 256))  # which then repeat
    rows = (bytes((7 * x * y + 3 * x + 11 * y + seed) & 255 for x in columns) for y in range(height))
    samples = b"".join((row * (stride // 256 + 1))[:stride] for row in rows)
    return png(width, height, channels, 8, unfiltered(samples, stride))


def loadable(library):
    """The path of a copy in the folder of the test, without a space, which would end it in LD_PRELOAD."""
    return os.path.abspath(shutil.copy(library, "failing.so"))


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def main(tests):
    """Run each test, test(path of gpuconv), in an empty folder."""
    program = os.path.abspath(sys.argv[1])
    for test in tests:
        with temporary_folder():
            test(program)
    sys.exit(1 if failures else 0)
