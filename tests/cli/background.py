#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JPEGs of pictures with alpha, against the same pictures composed here: background.py GPUCONV.

Both must have the same bytes, of 8 and 16 bits, grey and in colour, on one thread and on all, by each writer of JPEGs.
The composed sample is (colour * alpha + ground * (white - alpha)) / white, rounded to nearest."""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import temporary_folder  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

W, H = 61, 83
GROUNDS = {"": (255, 255, 255), "white": (255, 255, 255), "black": (0, 0, 0), "#f80": (255, 136, 0),
           "#0A141e": (10, 20, 30), "#777": (119, 119, 119)}


def save(path, channels, bits, samples):
    data = b"".join(sample.to_bytes(bits // 8, "big") for sample in samples)
    with open(path, "wb") as file:
        file.write(png(W, H, channels, bits, unfiltered(data, W * channels * bits // 8), level=1))


def compose(samples, channels, white, ground):
    """The samples without alpha. Grey over grey stays grey."""
    wide = 1 if channels == 2 and len(set(ground)) == 1 else 3
    for at in range(0, len(samples), channels):
        alpha = samples[at + channels - 1]
        for c in range(wide):
            colour, below = samples[at + (c if channels == 4 else 0)], ground[c] * white // 255
            yield (2 * (colour * alpha + below * (white - alpha)) + white) // (2 * white)


def main():
    program, failures = os.path.abspath(sys.argv[1]), []
    codecs = subprocess.run([program, "--list-codecs"], capture_output=True, text=True, check=True).stdout
    variations = [[], ["--variant", "reference"], ["--threads", "1"], ["--codec", "stb"]]
    if not any(line.startswith("libjpeg-turbo") and "not built in" in line for line in codecs.splitlines()):
        variations.append(["--progressive"]) # stb has no such option
    with temporary_folder() as folder:
        source, wanted, out, want = (os.path.join(folder, name) for name in ("in.png", "want.png", "o.jpg", "w.jpg"))

        def run(*arguments):
            return subprocess.run([program, "-q", "--backend", "cpu", *arguments]).returncode == 0

        def equal():
            with open(out, "rb") as first, open(want, "rb") as second:
                return first.read() == second.read()

        for channels, bits in ((2, 8), (4, 8), (2, 16), (4, 16)):
            white, noise = 2 ** bits - 1, random.Random(channels * bits)
            samples = [noise.choice((0, noise.randint(0, white), white)) for _ in range(W * H * channels)]
            save(source, channels, bits, samples)
            for name, ground in GROUNDS.items():
                composed = list(compose(samples, channels, white, ground))
                save(wanted, len(composed) // (W * H), bits, composed)
                option = ["--background", name] if name else []
                for more in variations:
                    if not run(*more, *option, "identity", source, out) or \
                            not run(*more, "identity", wanted, want) or not equal():
                        failures.append(f"{channels} channels of {bits} bits, {name or 'no option'}, {more}")
    print("\n".join(failures) or "all equal")
    return 1 if failures else 0


sys.exit(main())
