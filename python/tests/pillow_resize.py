#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The kernels of Pillow make what Pillow makes, in each instruction set: pillow_resize.py ROOT [PICTURES [SEED]].

Skipped (exit status 77) if Pillow is not installed. Each set takes PICTURES random pictures for the filter `resize`,
and as many for the function pillow_resize, 400 if not given."""
import hashlib
import io
import json
import os
import pathlib
import random
import struct
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "docs/spec")]
from harness import expect, need_module, run_tests  # noqa: E402

need_module("numpy")
need_module("PIL")
import numpy  # noqa: E402
import PIL.Image  # noqa: E402

import gpuconv  # noqa: E402
from make_vectors import samples as made_samples  # noqa: E402

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


def any_mode(chance, numbers):
    """A picture of a random mode, also I;16 and F, as an array that may have gaps."""
    samples = picture(chance, numbers)
    kind = chance.randrange(5)
    if kind == 0 and samples.ndim == 2:
        samples = samples * numpy.uint16(257) ^ numbers.integers(0, 256, samples.shape, "uint16")
    elif kind == 1 and samples.ndim == 2:
        samples = (samples - 99.9).astype("float32") * numpy.float32(10.0 ** chance.randint(-30, 30))
    elif kind == 2 and samples.ndim == 2:
        samples = numpy.copysign(numpy.exp(numbers.normal(0, 15, samples.shape)), samples - 128.0).astype("float32")
    elif kind == 3:
        samples = numpy.repeat(samples, 2, axis=1)[:, 1::2]
    return samples


def part(chance, side):
    """Where a random part of SIDE pixels begins and ends: between pixels, within one, or at an end."""
    while True:
        low, high = sorted(chance.choice((0, side, chance.randint(0, side), chance.uniform(0, side),
                                          chance.randint(0, 4 * side) / 4)) for _ in range(2))
        if chance.random() < 0.1:
            high = min(side, low + 10 ** chance.uniform(-4, 0))
        if numpy.float32(low) < numpy.float32(high):
            return low, high


def is_tall(image, size, name, box, gap):
    """Do Pillow 12.2 and 12.3 sum the columns first? Maybe only of the picture that has been reduced."""
    box = box or (0, 0, *image.size)
    width, height = image.size
    if gap is not None and name != "nearest" and image.mode not in ("LA", "RGBA"):
        across, down = (int((box[i + 2] - box[i]) / size[i] / gap) or 1 for i in (0, 1))
        left, top, right, bottom = image._get_safe_box(size, FILTERS[name], box)
        if across > 1 or down > 1:
            width, height = -((left - right) // across), -((top - bottom) // down)
    return height > 100 * width


def check_function(samples, size, name, box, gap):
    """Both make the same, or both refuse it."""
    if (VERSION, MINOR) < (12, 3) and samples.dtype == "uint16":
        return  # these versions have no such mode, or keep the low byte of levels beyond white
    case = samples.shape, samples.dtype, size, name, box, gap, os.environ.get("GPUCONV_CPU")
    image = PIL.Image.fromarray(samples)
    if VERSION == 12 and MINOR >= 2 and is_tall(image, size, name, box, gap):
        return
    try:
        expected = numpy.asarray(image.resize(size, FILTERS[name], box, gap))
    except ValueError:
        assert image.mode == "I;16", case
        expect(ValueError, "samples of 16 bits to one", gpuconv.pillow_resize, samples, size, f"{WORD}-{name}",
               box=box, reducing_gap=gap)
        return
    actual = gpuconv.pillow_resize(samples, size, f"{WORD}-{name}", box=box, reducing_gap=gap)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape, case
    where = numpy.argwhere(actual.view(f"u{actual.itemsize}") != expected.view(f"u{expected.itemsize}"))
    assert len(where) == 0, (case, len(where), where[0])


def random_function(chance, samples):
    """Check a random call of the function."""
    sides = samples.shape[1::-1]
    box = tuple(zip(*(part(chance, side) for side in sides))) if chance.random() < 0.8 else None
    box = box and (*box[0], *box[1])
    lengths = [high - low for low, high in zip(box, box[2:])] if box else sides
    size = []
    for side, length in zip(sides, lengths):
        choices = side, length, length * chance.random() / 20, length * chance.random(), 2 * length, chance.randint(1, 30)
        size.append(max(1, min(1500, round(chance.choice(choices)))))
    gap = chance.choice((None, None, 1, 1.5, 2, chance.uniform(1, 4)))
    check_function(samples, tuple(size), chance.choice(NAMES), box, gap)


def test_function():
    for number, (name, _) in enumerate(sets()):
        chance, numbers = random.Random(SEED + number), numpy.random.default_rng(SEED + number)
        for _ in range(COUNT):
            random_function(chance, any_mode(chance, numbers))
        print(f"{COUNT} calls by {name}")


def test_large():
    """Pictures with sides of up to 4000 pixels."""
    chance, numbers = random.Random(SEED), numpy.random.default_rng(SEED)
    for kind, channels in (("uint8", 1), ("uint8", 2), ("uint8", 3), ("uint8", 4), ("uint16", 1), ("float32", 1)):
        shape = chance.randint(1000, 4000), chance.randint(1000, 4000)
        shape = (*shape, channels) if channels > 1 else shape
        for _ in range(max(1, COUNT // 200)):
            random_function(chance, numbers.integers(0, 65536, shape, "uint16").astype(kind))


def test_vectors():
    """The calls of docs/spec/pillow.jsonl have its digests; so has Pillow, if it is of their version."""
    lines = (ROOT / "docs/spec/pillow.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 150
    for line in map(json.loads, lines):
        source, (width, height) = line["input"], line["size"]
        samples = made_samples(source | {"bits": min(source["bits"], 16)})
        samples = numpy.frombuffer(samples, ">u2" if source["bits"] > 8 else "u1").astype(f"u{min(source['bits'] // 8, 2)}")
        if source["bits"] == 32:
            samples = (samples.astype("float32") - 32768) / 16
        channels = [source["channels"]] if source["channels"] > 1 else []
        samples = samples.reshape([source["height"], source["width"], *channels])
        box, gap = line.get("box"), line.get("reducing_gap")
        if line.get("refused"):
            expect(ValueError, "", gpuconv.pillow_resize, samples, line["size"], line["kernel"], box=box,
                   reducing_gap=gap)
            continue
        actual = gpuconv.pillow_resize(samples, line["size"], line["kernel"], box=box, reducing_gap=gap)
        head = struct.pack(">4I", width, height, source["channels"], source["bits"])
        digest = hashlib.sha256(head + actual.astype(actual.dtype.newbyteorder(">")).tobytes()).hexdigest()
        assert digest == line["samples"], line
        word, _, name = line["kernel"].partition("-")
        if word == WORD and name in NAMES:
            check_function(samples, (width, height), name, box, gap)


def test_bits_of_floats():
    """`nearest`, and a box of whole pixels, copy all bits; sums have infinities and NaN where Pillow has them."""
    samples = numpy.random.default_rng(SEED).integers(0, 2**32, (40, 30), "uint32").view("float32")
    special = numpy.float32([numpy.nan, numpy.inf, -numpy.inf, -0.0, 1e-45, 3e38])
    samples[3:9, 5] = samples[12, 3:9] = special
    for name in NAMES:
        check_function(samples, (20, 15), name, (4, 2, 24, 17), None)
    check_function(samples, (17, 50), "nearest", (1.3, 2.2, 29.9, 38.1), None)
    for size, box, gap in (((9, 50), None, None), ((5, 7), None, 1), ((30, 39), (0, 1, 30, 40), None)):
        actual = gpuconv.pillow_resize(samples, size, f"{WORD}-lanczos", box=box, reducing_gap=gap)
        expected = numpy.asarray(PIL.Image.fromarray(samples).resize(size, FILTERS["lanczos"], box, gap))
        assert numpy.array_equal(actual, expected, equal_nan=True), (size, box, gap)


def test_images_of_pillow():
    """A Pillow image gives one of the same mode, with its info; I;16B becomes I;16."""
    for mode in ("L", "LA", "RGB", "RGBA", "I;16", "F"):
        kind = {"I;16": "uint16", "F": "float32"}.get(mode, "uint8")
        samples = numpy.random.default_rng(SEED).integers(0, 256, (9, 8, len(mode) if kind == "uint8" else 1)).astype(kind)
        samples = samples[..., 0] if samples.shape[2] == 1 else samples
        image = PIL.Image.fromarray(samples)
        image.info["dpi"] = 72, 72
        result = gpuconv.pillow_resize(image, (5, 7), f"{WORD}-bicubic", box=(1, 2, 7.5, 8))
        assert result.mode == image.mode == mode and result.info == image.info, result
        assert numpy.array_equal(result, gpuconv.pillow_resize(samples, (5, 7), f"{WORD}-bicubic", box=(1, 2, 7.5, 8)))
    swapped = PIL.Image.open(io.BytesIO(b"P5 3 2 65535\n" + bytes(range(12))))
    if swapped.mode == "I;16B":
        expected = numpy.asarray(swapped).astype("uint16")
        assert numpy.array_equal(gpuconv.pillow_resize(swapped, (3, 2), "pillow-box"), expected)


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
    grey, image = numpy.zeros((5, 7), "uint8"), PIL.Image.new("L", (7, 5))
    for box in ((-0.1, 0, 3, 3), (0, -1, 3, 3), (0, 0, 7.1, 3), (0, 0, 3, 5.1), (3, 0, 2, 3), (0, 3, 3, 2)):
        expect(ValueError, "give a part of it", gpuconv.pillow_resize, grey, (3, 3), "pillow-box", box=box)
        expect(ValueError, "box", image.resize, (3, 3), PIL.Image.BOX, box)
    for box in ((0, 0, 0, 3), (0, 3, 3, 3), (3, 0, 3 + 1e-9, 3), (float("nan"), 0, 3, 3), (0, 0, 3, float("inf"))):
        expect(ValueError, "give a part of it", gpuconv.pillow_resize, grey, (3, 3), "pillow-box", box=box)
    for gap in (0, 0.99, -1, float("nan")):
        expect(ValueError, "1 or more, or None", gpuconv.pillow_resize, grey, (3, 3), "pillow-box", reducing_gap=gap)
    expect(ValueError, "give 1 or more in each dimension", gpuconv.pillow_resize, grey, (3, 0), "pillow-box")
    expect(ValueError, "a side of the size is -1; give", gpuconv.pillow_resize, grey, (3, -1), "pillow-box")
    expect(TypeError, "a side of the size is 3.5; give", gpuconv.pillow_resize, grey, (3, 3.5), "pillow-box")
    expect(TypeError, "an edge of the box is '3'; give", gpuconv.pillow_resize, grey, (3, 3), "pillow-box", box=(1, 2, "3", 4))
    expect(ValueError, "1 dimensions", gpuconv.pillow_resize, grey[0], (3, 3), "pillow-box")
    expect(ValueError, "no kernel of Pillow", gpuconv.pillow_resize, grey, (3, 3), "lanczos3")
    expect(ValueError, "one image each", gpuconv.pillow_resize, numpy.zeros((5, 5, 5), "uint8"), (3, 3), "pillow-box")
    expect(ValueError, "at most 16384", gpuconv.pillow_resize, numpy.zeros((1, 20000), "uint8"), (1, 1), "pillow-box")
    for samples in (numpy.zeros((5, 5, 3), "uint16"), numpy.zeros((5, 5, 2), "float32"), numpy.zeros((5, 5))):
        expect(ValueError, "or 1 of uint16 or float32", gpuconv.pillow_resize, samples, (3, 3), "pillow-box")
    for size, box in ((3, None), ((3, 3, 3), None), ("33", None), (None, None), ((3, 3), (0, 0, 3)), ((3, 3), "abcd")):
        expect(ValueError, "4 numbers or None", gpuconv.pillow_resize, grey, size, "pillow-box", box=box)


run_tests(globals())
