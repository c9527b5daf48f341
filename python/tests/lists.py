#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists of arrays by chance, each beside its arrays one by one on the host:
lists.py ROOT host|stub|emulated|torch|cupy [COUNT [SEED]].

Filters that a table of pictures takes, and others; arrays of one shape, of some, and of many; of all kinds of samples,
layouts and strides."""
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT, DEVICE, COUNT, SEED = pathlib.Path(sys.argv[1]), *[*sys.argv[2:], *("300", "1")[len(sys.argv) - 3:]][:3]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import expect, need_module, skip  # noqa: E402

for module in {"numpy", DEVICE} - {"host", "stub", "emulated"}:
    need_module(module)
import numpy  # noqa: E402
import devices  # noqa: E402

import gpuconv  # noqa: E402

KERNELS = ["lanczos3", "cubic", "mitchell", "triangle", "box", "nearest", "pillow-bicubic", "pillow-lanczos",
           "pillow12-bilinear", "pillow-nearest"]
STEPS = ["{}", "{}", "{}", "mirror:x,{}", "turn:90,{}", "crop:80%,turn:270,{}", "{},crop:50%",
         "turn:180,{},crop:70%:top"]
OTHERS = ["blur", "gaussian:2", "{},mirror:y", "{},sharpen", "crop:60%", "turn:90", "{},pad:80x80:#f80", "{},{}",
          "sobel", "{},invert", "saturation:20,{}", "{},pixelate:3@50%x50%+10%+10%", "auto-contrast,{}", "median:2,{}",
          "{},outline:1"]


def name_of(chance):
    size = chance.choice((f"{chance.randint(1, 70)}x{chance.randint(1, 70)}:exact", "50%", "130%", "31x20",
                          f"{chance.randint(2, 40)}x40:cover:enlarge", f"{chance.randint(3, 60)}x"))
    return chance.choice(STEPS + OTHERS).replace("{}", f"resize:{size}:{chance.choice(KERNELS)}")


def array_of(chance, numbers, size, kind, layout):
    """An array of NumPy, a part of larger memory: with padding, every second column, or planes as pixels."""
    channels = chance.choice((0, 1, 3, 3, 3, 3, 4))
    how = chance.choice(("whole", "whole", "part", "second", "swapped"))
    shape = [*size, channels][:2 + (channels > 0)]
    planar = layout == "chw" and channels > 0
    shape = [shape[2], *shape[:2]] if planar else shape
    memory = [side + 3 for side in shape] if how == "part" else shape
    memory = [*memory[:-1], 2 * memory[-1]] if how == "second" else memory
    memory = memory[::-1] if how == "swapped" else memory
    array = numbers.integers(0, 256, memory)
    array = array / 255 if kind.startswith("float") else array * 257 if kind == "uint16" else array
    array = array.astype(kind)
    return array[(slice(1, -2),) * len(shape)] if how == "part" else array[..., ::2] if how == "second" else \
        array.T if how == "swapped" else array


def attempt(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except (ValueError, TypeError) as error:
        return error


def check(number):
    chance, numbers = random.Random(f"{SEED} {number}"), numpy.random.default_rng([int(SEED), number])
    sizes = [(chance.randint(1, 90), chance.randint(1, 90)) for _ in range(chance.choice((1, 2, 30)))]
    kinds = chance.choice((["uint8"],) * 4 + (["uint16"], ["float32"], ["uint8", "float32"], ["float16", "uint8"]))
    layout = chance.choice(("hwc", "hwc", "chw"))
    images = [array_of(chance, numbers, chance.choice(sizes), chance.choice(kinds), layout)
              for _ in range(chance.choice((0, 1, 2, 12, 40)))]
    if chance.random() < 0.3:  # alike, in memories of their own
        images = [devices.put(images[0], str(images[0].dtype), "host") for _ in images]
        for index, image in enumerate(images):
            image[index % image.shape[0]] = index % 2
    options = {"layout": layout, "alpha": chance.choice((None, None, "keep", "filter"))}
    name = name_of(chance)
    known = [attempt(gpuconv.filter, image.copy(), name, **options) for image in images]
    bad = [str(one) for one in known if isinstance(one, Exception)]
    given = [devices.put(image, str(image.dtype), DEVICE) for image in images]
    made = attempt(gpuconv.filter, given, name, **options)
    if isinstance(made, Exception) or bad:
        wrong = str(made) not in bad
    else:
        made = [one.cpu().numpy() if DEVICE == "torch" else one.get() if DEVICE == "cupy" else
                getattr(one, "array", one) for one in made]
        wrong = len(made) != len(known) or any(
            one.dtype != want.dtype or one.shape != want.shape or
            not (numpy.array_equal(one, want) if want.dtype.kind == "u" else
                 numpy.allclose(one, want, rtol=0, atol=2 ** -9 if want.dtype == "float16" else 1e-4))
            for one, want in zip(made, known))
    if wrong:
        found = sorted({(str(one.dtype), one.shape) for one in images})
        print(f"case {number}: {name}, {options}, {len(images)} of {found}: "
              f"{made if isinstance(made, Exception) else 'samples differ'}; alone: {bad[:1]}")
    return wrong


def check_launches():
    """No variant is launched for pictures of many sizes: the stub lets all launches but that of a table fail."""
    images = [devices.put(numpy.zeros((20 + number, 33, 3 if number % 2 else 1), "uint8"), "uint8", DEVICE)
              for number in range(9)]
    os.environ["GPUCONV_STUB_FAIL"] = "launch:1"
    for name in ("resize:9x7:exact", "resize:50%:pillow-bicubic", "turn:90,crop:50%,cover:8x6"):
        gpuconv.filter(images, name)
    expect(gpuconv.GpuError, "", gpuconv.filter, images, "blur")
    del os.environ["GPUCONV_STUB_FAIL"]


def check_errors():
    """One bad image in a list is an error of the call, with its sentence."""
    good = [devices.put(numpy.zeros((20 + size, 30, 3), "uint8"), "uint8", DEVICE) for size in range(9)]
    small = devices.put(numpy.zeros((9, 30, 3), "uint8"), "uint8", DEVICE)
    assert gpuconv.filter([], "resize:50%") == []
    for wrong in (small, numpy.zeros((9, 9), "int64"), numpy.zeros(9, "uint8"), "photo.png", None):
        alone, made = (attempt(gpuconv.filter, one, "crop:20x20,resize:5x5:exact") for one in (wrong, good + [wrong]))
        assert isinstance(alone, Exception) and repr(alone) == repr(made), (alone, made)
    expect(ValueError, "border zero cannot be combined with resize", gpuconv.filter, good, "resize:5x5:exact,blur",
           border="zero")


if DEVICE in ("stub", "emulated"):
    devices.install()
elif DEVICE == "torch":
    import torch  # noqa: E402, F401
if DEVICE != "host" and gpuconv.gpus() == 0:
    skip("there is no GPU")
check_errors()
if DEVICE == "stub":
    check_launches()
failed = sum(check(number) for number in range(int(COUNT)))
print(f"{COUNT} lists on {DEVICE}: {failed} failed")
sys.exit(1 if failed else 0)
