#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of --compare --html in Firefox: firefox.py GPUCONV.

Firefox takes a screenshot of one row. Its pictures, and the difference that the browser draws, must be in it, each on
as many pixels as the window allows. page.py has all that a user can do, in Chromium. Skipped (exit status 77) where
Firefox is not installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import skip  # noqa: E402
from read_png import decode  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

RED, BLUE, BOTH = (255, 0, 0), (0, 0, 255), (255, 0, 255)


def main():
    program, firefox = os.path.abspath(sys.argv[1]), shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        skip("Firefox is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for side, colour in (("e", RED), ("a", BLUE)):
            os.mkdir(f"{folder}/{side}")
            for name in ("first.png", "second.png"):
                data = png(300, 200, 3, 8, unfiltered(bytes(RED if name == "first.png" else colour) * 60000, 900))
                pathlib.Path(folder, side, name).write_bytes(data[:200] if (side, name) == ("a", "first.png") else data)
        subprocess.run([program, "--compare", "e", "a", "--html", "page.html"], cwd=folder, stdout=subprocess.DEVNULL)
        for side in "ea":
            shutil.rmtree(f"{folder}/{side}")  # the page has all that it shows
        subprocess.run([firefox, "--headless", "--no-remote", "--profile", folder, "--window-size=1200,800", "--screenshot",
                        f"{folder}/shot.png", pathlib.Path(folder, "page.html").as_uri() + "#second.png"],
                       env={**os.environ, "HOME": folder}, check=True, timeout=240, capture_output=True)
        _, _, _, rows = decode(pathlib.Path(folder, "shot.png").read_bytes())
    pixels = [pixel[:3] for row in rows for pixel in row[420:]]  # to the right of the list
    for colour in (RED, BLUE, BOTH):
        assert pixels.count(colour) > 40000, (colour, pixels.count(colour))


main()
