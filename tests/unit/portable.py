#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An interrupted packaging/portable.sh goes on where it stopped: portable.py SOURCES.

Its functions are replaced by ones that say their name, and end the script if they are told to."""
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests  # noqa: E402

SOURCES = pathlib.Path(sys.argv[1]).resolve()
STEPS = ["download", "old_glibc", "libraries", "wheel", "archive", "check"]


def test_interrupted():
    shutil.copytree(SOURCES / "packaging", "packaging")
    shutil.copy(SOURCES / "meson.build", ".")
    script = pathlib.Path("packaging/portable.sh")
    text = script.read_text(encoding="utf-8")
    for name in STEPS + ["cuda"]:
        stub = f'{name}() {{ mkdir{" -p" if name not in STEPS[3:] else ""} "$work/{name}"; echo {name}; [ "$END" != {name} ]; }}'
        stub = stub.replace("/archive", "/gpuconv-archive").replace("/check", "/unpacked")
        text, count = re.subn(rf"^{name}\(\) {{.*?^}}$", stub, text, flags=re.M | re.S)
        assert count == 1, name
    script.write_text(text)

    def ran(end="none", optimization="2", cuda="disabled"):
        done = subprocess.run(["bash", str(script), "x86_64", "files"], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "END": end, "OPTIMIZATION": optimization, "CUDA": cuda})
        assert (done.returncode == 0) == (end == "none") and done.stderr == "", done
        return done.stdout.split()

    assert ran("libraries") == STEPS[:3]
    assert ran("archive") == STEPS[2:5]
    assert ran("check", optimization="0") == STEPS
    assert ran(optimization="0") == STEPS[3:]
    assert ran("wheel", optimization="0") == STEPS[:4] and ran("download") == STEPS[:1] and ran() == STEPS
    assert ran("archive", cuda="enabled") == [*STEPS[:3], "cuda", *STEPS[3:5]] and ran(cuda="enabled") == STEPS[3:]


run_tests(globals())
