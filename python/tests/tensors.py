#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors on a GPU beside those of the CPU, of lists by chance:
tensors.py ROOT stub|emulated|torch|cupy [COUNT [SEED]]."""
import pathlib
import random
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT, DEVICE, COUNT, SEED = pathlib.Path(sys.argv[1]), *[*sys.argv[2:], *("60", "1")[len(sys.argv) - 3:]][:3]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, skip  # noqa: E402

for module in {"numpy", DEVICE} - {"stub", "emulated"}:
    need_module(module)
import numpy  # noqa: E402
import devices  # noqa: E402

import gpuconv  # noqa: E402

KERNELS = [f"pillow{version}-{name}" for version in ("", "12")
           for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")] + ["pillow-mks2013", "cubic"]
KINDS = ["float32", "float16", "uint8"] + ["bfloat16"] * (DEVICE == "torch")


def picture(chance, numbers, sizes):
    """A JPEG, a PNG, a damaged file, or an array: most are JPEGs, of a few sizes."""
    height, width = chance.choice(sizes)
    kind = chance.choice(("jpg",) * 5 + ("png", "array", "deep"))
    channels = chance.choice((1, 3, 3, 3) if kind == "jpg" else (1, 2, 3, 4))
    rough = numbers.integers(0, 256, (height // 8 + 2, width // 8 + 2, channels)).repeat(8, 0).repeat(8, 1)
    image = (rough[:height, :width] // 2 + numbers.integers(0, 128, (height, width, channels))).astype("uint8")
    if kind == "array":
        return image
    if kind == "deep":
        return image * numpy.uint16(257)
    if kind == "png":
        return gpuconv.encode(image, "png")
    return gpuconv.encode(image, "jpg", quality=chance.choice((60, 90, 100)), subsampling=chance.choice(("4:4:4", "4:2:0")))


def options_of(chance):
    height, width = chance.randint(1, 90), chance.randint(1, 90)
    size = chance.choice(({"resize": (height, width)}, {"resize": height, "crop": (height, width)},
                          {"resize": (height, width), "pad": "#7f2013"}, {"crop": (height, width)},
                          {"resize": height, "crop": (2 * height, width)}))
    return size | {"kernel": chance.choice(KERNELS), "dtype": chance.choice(KINDS), "layout": chance.choice(("chw", "hwc"))}


def check(number):
    chance, numbers = random.Random(f"{SEED} {number}"), numpy.random.default_rng([int(SEED), number])
    sizes = [(chance.randint(1, 140), chance.randint(1, 140)) for _ in range(chance.choice((1, 2, 9)))]
    sources = [picture(chance, numbers, sizes) for _ in range(chance.choice((1, 2, 20)))]
    options = options_of(chance)
    options |= {} if options["dtype"] == "uint8" else {"mean": (0.4, 0.5, 0.6), "std": 0.25}
    is_torch = DEVICE == "torch"
    expected = gpuconv.preprocess(sources, **options, device="cpu" if is_torch else None)
    if options["kernel"] != "cubic":  # then arrays may be on the GPU
        sources = [devices.put(one, "uint8", DEVICE) if getattr(one, "dtype", None) == "uint8" else one for one in sources]
    made = gpuconv.preprocess(sources, **options, device="cuda")
    made = made.cpu() if is_torch else made.get() if DEVICE == "cupy" else made.array
    expected, made = [one.view(__import__("torch").uint8).numpy() if is_torch else one.view("uint8")
                      for one in (expected, made)]
    wrong = (expected != made).reshape(len(sources), -1).any(1)
    if wrong.any():
        print(f"case {number}, {options}: {wrong.sum()} of {len(wrong)} pictures differ, the first is "
              f"{[getattr(one, 'shape', len(one)) for one in sources][wrong.argmax()]}")
    return wrong.any()


if DEVICE in ("stub", "emulated"):
    devices.install()
elif DEVICE == "torch":
    import torch  # noqa: E402, F401
if gpuconv.gpus() == 0:
    skip("there is no GPU")
failed = sum(check(number) for number in range(int(COUNT)))
print(f"{COUNT} lists on {DEVICE}: {failed} failed")
sys.exit(1 if failed else 0)
