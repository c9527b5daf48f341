#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the manual's recipes for golden images: recipes.py GPUCONV ROOT NAME.

NAME is the file that the recipe is. The test extracts it from docs/manual.md and runs it as it stands there, in a folder
with a program that draws: first with equal pictures, then with a different one, a new one and a damaged one. Skipped
(exit status 77) where the recipe's tool is not installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import skip  # noqa: E402

DRAW = "#!/bin/sh\nmkdir -p \"$1\" && cp {source}/*.png \"$1\"\n"
PNG = pathlib.Path(__file__).with_name("png.py")


def command(name):
    """What runs the recipe."""
    if name == "Makefile":
        return ["make", "-s", "check"], "make"
    if name == "meson.build":
        return ["sh", "-c", "test -d b || meson setup b; rm -rf b/out; meson test -C b --print-errorlogs"], "meson"
    if name == "test_golden.py":
        return ["pytest", "-q", "-p", "no:cacheprovider", name], "pytest"
    return ["sh", name], "sh"


def picture(path, *samples):
    with open(path, "wb") as file:
        subprocess.run([sys.executable, PNG, "4", "2", "1", "8", *samples], stdout=file, check=True)


def expect(step, words, folder, values, passes):
    done = subprocess.run(words, cwd=folder, env=values, capture_output=True, text=True)
    if (done.returncode == 0) != passes:
        sys.exit(f"{step}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    program, root, name = sys.argv[1:]
    manual = pathlib.Path(root, "docs", "manual.md").read_text(encoding="utf-8")
    text = re.search(rf"<!-- recipe: {re.escape(name)} -->\n```\w*\n(.*?)```", manual, re.S).group(1)
    words, tool = command(name)
    if not shutil.which(tool):
        skip(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as top:
        folder = pathlib.Path(top, "work")
        for part in ("golden", "source", "bin"):
            (folder / part).mkdir(parents=True)
        (folder / "bin" / "gpuconv").symlink_to(os.path.abspath(program))
        (folder / "draw").write_text(DRAW.format(source=folder / "source"))
        (folder / "draw").chmod(0o755)
        (folder / name).write_text(text)
        values = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
        samples = [str(10 * i) for i in range(8)]
        for part in ("golden", "source"):
            picture(folder / part / "a.png", *samples)
        expect("equal", words, folder, values, True)
        picture(folder / "source" / "a.png", *samples[:-1], "99")
        expect("different", words, folder, values, False)
        if name == "Makefile":
            expect("accept", ["make", "-s", "accept"], folder, values, True)
            expect("accepted", words, folder, values, True)
        picture(folder / "source" / "a.png", *samples)
        picture(folder / "golden" / "a.png", *samples)
        picture(folder / "source" / "new.png", *samples)
        expect("new", words, folder, values, name in ("Makefile", "test_golden.py"))
        (folder / "source" / "a.png").write_bytes(b"damaged")
        expect("damaged", words, folder, values, False)


main()
