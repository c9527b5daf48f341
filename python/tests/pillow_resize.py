#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The kernels of Pillow make what Pillow makes, in each instruction set: pillow_resize.py ROOT [PICTURES [SEED]].

Skipped (exit status 77) if Pillow is not installed. Each set takes PICTURES random pictures, 400 if not given."""
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, run_tests  # noqa: E402

need_module("numpy")
need_module("PIL")
import numpy  # noqa: E402
import PIL.Image  # noqa: E402

import gpuconv  # noqa: E402

COUNT, SEED = (int(word) for word in (sys.argv[2:] + ["400", "65"][len(sys.argv) - 2:])[:2])
VERSION, MINOR = map(int, PIL.__version__.split(".")[:2])
WORD = "pillow" if VERSION >= 13 else "pillow12"
NAMES = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos") + ("mks2013", "mks2021") * (VERSION >= 13)
FILTERS = {name: getattr(PIL.Image, name.upper()) for name in NAMES}


def picture(chance, numbers):
    """A picture of a random mode and size: noise, hard edges, smooth, or mostly transparent or opaque."""
    width, height = (chance.choice((1, 2, 3, chance.randint(1, 40), chance.randint(1, 300), chance.randint(300, 1400)))
                     for _ in range(2))
    while width * height > 300000:
        width, height = (width + 2) // 3, (height + 1) // 2
    channels = chance.randint(1, 4)
    samples = numbers.integers(0, 256, (height, width, channels), "uint8")
    kind = chance.randrange(5)
    if kind == 1:
        samples = (samples > 128).astype("uint8") * 255
    elif kind == 2:
        samples //= 16
        samples += (numpy.arange(width) * 240 // width).astype("uint8")[None, :, None]
    elif kind == 3 and channels % 2 == 0:
        samples[..., -1] = numpy.where(samples[..., -1] < 128, samples[..., -1] // 100, 255)
    elif kind == 4 and channels % 2 == 0:
        samples[..., -1] = 255
    return samples[..., 0] if channels == 1 else samples


def sets():
    """For each instruction set that this processor has: its name, and contexts without plans of another one."""
    for name in ("portable", "sse2", "avx2", "avx512", "vnni", "neon", "i8mm"):
        os.environ["GPUCONV_CPU"] = name
        contexts = [gpuconv.Context(threads=threads) for threads in (1, 3)]
        try:
            gpuconv.filter(numpy.zeros((2, 2), "uint8"), "resize:1x1:exact:pillow-box", context=contexts[0])
        except ValueError:
            continue
        yield name, contexts
    del os.environ["GPUCONV_CPU"]


def check(samples, width, height, name, context=None):
    if VERSION == 12 and MINOR >= 2 and samples.shape[0] > 100 * samples.shape[1]:
        return  # these versions sum the columns of such pictures first
    expected = numpy.asarray(PIL.Image.fromarray(samples).resize((width, height), FILTERS[name]))
    actual = gpuconv.filter(samples, f"resize:{width}x{height}:exact:{WORD}-{name}", context=context)
    where = numpy.argwhere(expected != actual)
    assert len(where) == 0, (samples.shape, width, height, WORD, name, os.environ.get("GPUCONV_CPU"), len(where), where[0])


def test_random():
    for number, (name, contexts) in enumerate(sets()):
        chance, numbers = random.Random(SEED + number), numpy.random.default_rng(SEED + number)
        for _ in range(COUNT):
            samples = picture(chance, numbers)
            sides = []
            for side in samples.shape[1::-1]:
                share = chance.choice((1, 1, 0.5, 2, chance.random(), chance.random() / 20, 1 + 3 * chance.random()))
                sides.append(max(1, min(1500, chance.choice((round(side * share), chance.randint(1, 30))))))
            check(samples, *sides, chance.choice(NAMES), chance.choice(contexts))
        print(f"{COUNT} pictures by {name}")


def test_long():
    """Sums of thousands of samples, beside each other and one above the other."""
    numbers = numpy.random.default_rng(SEED)
    for length, after in ((16384, 1), (40000, 30), (9000, 7), (5000, 5001), (3, 9000)):
        samples = numbers.integers(0, 256, (2, length, 3), "uint8") | 128
        for name in NAMES:
            check(samples, after, 1, name)
            check(numpy.ascontiguousarray(samples.swapaxes(0, 1)), 2, after, name)
            check(numpy.full((1, length, 4), 255, "uint8"), after, 2, name)


def test_shortest_edge():
    """The longer edge and the middle are those of torchvision's Resize and CenterCrop."""
    chance, numbers = random.Random(SEED), numpy.random.default_rng(SEED)
    for _ in range(60):
        width, height, edge = (chance.randint(1, 90) for _ in range(3))
        samples = numbers.integers(0, 256, (height, width, 3), "uint8")
        short, part = min(width, height), chance.randint(1, edge)
        sides = [edge if side == short else int(edge * side / short) for side in (width, height)]
        left, top = (int(round((side - part) / 2)) for side in sides)
        expected = numpy.asarray(PIL.Image.fromarray(samples).resize(sides, PIL.Image.BICUBIC))
        expected = expected[top:top + part, left:left + part]
        chain = f"resize:{edge}x{edge}:cover:enlarge:{WORD}-bicubic,crop:{part}x{part}:torchvision"
        assert numpy.array_equal(gpuconv.filter(samples, chain), expected), (width, height, chain)
        if part == edge:
            assert numpy.array_equal(gpuconv.filter(samples, f"cover:{edge}x{edge}:{WORD}-bicubic"), expected)


def test_chains():
    """A step in a chain is Image.resize, also between steps that take 16 bits for a translucent picture."""
    samples = numpy.random.default_rng(SEED).integers(0, 256, (60, 80, 4), "uint8")
    for name in NAMES:
        one = gpuconv.filter(samples, "gaussian:2")
        two = numpy.asarray(PIL.Image.fromarray(one).resize((33, 47), FILTERS[name]))
        three = gpuconv.filter(two, "sharpen")
        assert numpy.array_equal(gpuconv.filter(samples, f"gaussian:2,resize:33x47:exact:{WORD}-{name},sharpen"), three)


def test_refused():
    for samples in (numpy.zeros((5, 5), "uint16"), numpy.zeros((5, 5), "float32")):
        expect(ValueError, "of 8 bits", gpuconv.filter, samples, "resize:3x3:exact:pillow-box")
    expect(ValueError, "linear", gpuconv.filter, numpy.zeros((5, 5), "uint8"), "resize:3x3:exact:pillow-box", linear=True)


run_tests(globals())
