#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every filter of the manual, with every kind of samples, layout, border, alpha and light:

product.py ROOT host|stub|emulated|torch|cupy [whole|COUNT [SEED]|CASE]

On the host, a case must give what its images give one by one, as plain arrays of a basic type; elsewhere, what it gives
on the host: the samples, or the exception with its sentence. COUNT cases are chosen by chance. All run in processes
that may die. A line for each that fails begins with what CASE takes; "-" takes cases from standard input."""
import concurrent.futures
import importlib.util
import itertools
import math
import os
import pathlib
import random
import re
import re
import signal
import sys
import warnings
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT, DEVICE, WHAT, SEED = pathlib.Path(sys.argv[1]), *[*sys.argv[2:], *("1000", "1")[len(sys.argv) - 3:]][:3]
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, run_cases, skip  # noqa: E402

for module in {"numpy", DEVICE} - {"host", "stub", "emulated"}:
    need_module(module)
import numpy  # noqa: E402
import devices  # noqa: E402

import gpuconv  # noqa: E402

LAYOUTS = {  # by name: a view of images (N, H, W, C) in memory, and `layout`
    "hwc": (lambda images: images[0].copy(), "hwc"), "grey": (lambda images: images[0, :, :, 0].copy(), "hwc"),
    "list": (list, "hwc"), "stack": (numpy.copy, "hwc"), "second": (lambda images: images[::2], "hwc"),
    "cropped": (lambda images: numpy.pad(images[0], ((3, 4), (2, 3), (0, 0)))[3:-4, 2:-3], "hwc"),
    "turned": (lambda images: images[0].transpose(1, 0, 2).copy().transpose(1, 0, 2), "hwc"),
    "planar": (lambda images: images[0].transpose(2, 0, 1).copy().transpose(1, 2, 0), "hwc"),
    "expanded": (lambda images: numpy.broadcast_to(images[0].copy(), images.shape), "hwc"),
    "chw": (lambda images: images[0].transpose(2, 0, 1).copy(), "chw"),
    "planes": (lambda images: images.transpose(0, 3, 1, 2).copy(), "chw"),
    "nhw": (lambda images: images[..., 0].copy(), "nhw"),
    "innermost": (lambda images: numpy.moveaxis(numpy.moveaxis(images[..., 0], 0, -1).copy(), -1, 0), "nhw"),
    "flipped": (lambda images: images[0].copy()[::-1, ::-1], "hwc")}  # PyTorch has no such strides
KINDS = ["uint8", "uint16", "bool", "float16", "float32", "float64"] + ["bfloat16"] * bool(
    DEVICE in ("torch", "host") and importlib.util.find_spec("torch"))
BORDERS = ["replicate", "reflect", "reflect101", "wrap", "zero"]
OTHER_AXES = (("60x70", "41x33", "1x1", "5x130"), ("new", "out", "part"), ("premultiply", "keep", "filter", "default"),
              ("levels", "linear"), ("unit", "wide", "odd"))  # chosen by chance, as their product is too large
MORE = ("box:70", "box:300", "gaussian:20", "gaussian:100", "unsharp:2:1.5:4", "unsharp:20:1", "blur,edge",
        "gaussian:2,resize:30x20:exact,sharpen", "levels:9:245,sharpen,saturation:20", "invert,tint:#0a8",
        "grey,blur,gamma:2,swap:BGR,resize:30x20:exact,sepia", "turn:90,box:40,mirror:y",
        "crop:50%,sobel,pad:50x50:#ff8000", "levels:10:200,gaussian:2,saturation:30", "edge,invert",
        "gaussian:2@20x15-3+4", "sharpen@50%x50%+25%+25%,invert@9x9+30+20", "box:70@1x1+0+0,edge", "sepia@50%x100%+50%+0",
        "pixelate:7", "pixelate:16@60%x60%-1%+10%,blur", "auto-levels", "auto-levels:2@50%x50%+0+0", "auto-contrast:0.5",
        "crop:50%,unsharp:2:1:4@100%x50%+0+0,auto-contrast", "median", "median:1", "median:2,sharpen", "median:7", "median:8",
        "rank:1:25", "rank:2.5:90:disk", "rank:9:30", "erode:1", "dilate:7", "erode:20", "erode:63", "dilate:3:disk",
        "open:2:disk,blur", "close:1", "close:2,resize:30x20:exact,erode:7", "tophat:3", "tophat:1.5:disk",
        "blackhat:5.5:disk", "outline:1@50%x50%+0+0", "outline:3", "median:2@50%x50%+10%+10%,blur")


def attempt(call, *arguments):
    """The result of a call, or its exception."""
    try:
        return call(*arguments)
    except (ValueError, TypeError, gpuconv.GpuError) as error:
        return error


def filters():
    """The names that are built in, and the parametric ones of the manual and the messages, for small images."""
    texts = [(ROOT / "docs" / name).read_text("utf-8") for name in ("manual.md", "gpuconv.1")]
    names = re.findall(r"^\| `(\w+):[A-Z]", texts[0], re.MULTILINE)
    texts += [str(attempt(gpuconv.Filter, name + ":")) for name in names]
    found = {name for name in re.findall(rf"\b(?:{'|'.join(names)}):[A-Za-z0-9.%:+#-]*[A-Za-z0-9%]", " ".join(texts))
             if attempt(lambda: math.prod(gpuconv.Filter(name).size(40, 30)) < 60000) is True}
    assert {name.partition(":")[0] for name in found} >= {*names}, "the manual lacks the example of a filter"
    return gpuconv.filter_names() + sorted(found | {*MORE})


def make_images(kind, channels, size, values, chance):
    shape = (3, *map(int, size.split("x")), int(channels))
    if kind.startswith("uint"):
        return chance.integers(0, numpy.iinfo(kind).max, shape, kind, endpoint=True)
    images = chance.integers(0, 256, shape) / 255 * (1 if values == "unit" else 3) - (values != "unit")
    if values == "odd":
        images.flat[chance.integers(0, images.size, 3)] = numpy.nan, numpy.inf, -numpy.inf
    return images > 0.5 if kind == "bool" else images.astype("float32" if kind == "bfloat16" else kind)


def filter_alone(images, name, kind, options):
    """What images (N, H, W, C) become one by one, and each of more than 4 channels, too."""
    images = images if kind.startswith("uint") else images.astype("float32")
    parts = [images] if images.shape[3] <= 4 else numpy.split(images, images.shape[3], 3)
    made = numpy.concatenate([numpy.stack([gpuconv.filter(image.copy(), name, layout="hwc", **options)
                                           for image in part]) for part in parts], 3)
    if kind == "bool":
        nearest = made >= 0.5
        if not (abs(made - nearest) <= 2**-12).all():
            raise ValueError("the result is not only True and False")
        return nearest
    return made


def check(case):  # returns what is wrong, or None
    name, kind, arrangement, channels, border, size, output, alpha, linear, values = case.split()
    arrange, layout = LAYOUTS[arrangement]
    view = arrange(make_images(kind, channels, size, values, numpy.random.default_rng(zlib.crc32(case.encode()))))
    options = {"border": border, "alpha": None if alpha == "default" else alpha, "linear": linear == "linear"}

    def result(device, output="new"):
        out = devices.output(view, gpuconv.Filter(name), layout, output, kind, device)
        result = gpuconv.filter(devices.put(view, kind, device), name, layout=layout, out=out, **options)
        return devices.take(result, layout)

    known = attempt(filter_alone, devices.take(view, layout), name, kind, options) if DEVICE == "host" else \
        attempt(result, "host")
    made = attempt(result, DEVICE, output)
    if isinstance(known, Exception) or isinstance(made, Exception):
        is_same = type(known) is type(made) and (DEVICE == "host" or str(known) == str(made))
        return None if is_same else f"{made!r:.300}, not {known!r:.300}"
    assert known.shape == made.shape, (known.shape, made.shape)
    most = 0 if known.dtype.kind in "bu" else numpy.abs(known[numpy.isfinite(known)]).max(initial=1)
    steps = {"float16": 2 ** -10, "bfloat16": 2 ** -7}.get(kind, 0), 2 ** -15 * most
    wrong = ~numpy.isclose(made, known, *steps, equal_nan=True)
    if alpha == "premultiply" and channels in "24" and known.dtype.kind == "f":
        wrong &= known[..., -1:] > 0.125  # a quotient by less shows the rounding of sums
    if known.dtype.kind == "f" and re.search(r"unsharp:\S*:\S*:|threshold|posterize", name):
        wrong &= wrong.sum() > wrong.size // 2000  # a sum on a threshold falls on either side, by its rounding
    if any(0 in (step.get("taps") or ()) for step in gpuconv.Filter(name).describe()):
        # 0 times infinity is NaN, but some kernels leave such taps out. Where alpha is NaN, colours become 0.
        parts = [made, known] + [part[..., -1:] for part in (made, known) if channels in "24"]
        wrong &= numpy.logical_and.reduce([*numpy.broadcast_arrays(*map(numpy.isfinite, parts))])
    return f"{wrong.sum()} of {wrong.size} samples: {made[wrong][:3]}, not {known[wrong][:3]}" if wrong.any() else None


def main():
    if DEVICE in ("stub", "emulated"):
        devices.install()
    if DEVICE != "host" and gpuconv.gpus() == 0:
        skip("there is no GPU")
    if " " in WHAT or WHAT == "-":
        warnings.simplefilter("ignore")
        for case in [WHAT] if WHAT != "-" else sys.stdin.read().splitlines():
            signal.alarm(500)
            print(">", flush=True)
            wrong = check(case)
            print(f"'{case}': {wrong}" if wrong else "", flush=True)
        return 0
    chance, failed = random.Random(SEED), 0
    axes = filters(), KINDS, [*LAYOUTS][:13 if DEVICE == "torch" else 14], "12346", BORDERS
    cases = [" ".join(words) for words in itertools.product(*axes)]
    cases = [" ".join([case, *map(chance.choice, OTHER_AXES)])
             for case in (cases if WHAT == "whole" else chance.sample(cases, int(WHAT)))]
    parts = [cases[first:first + 100] for first in range(0, len(cases), 100)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lambda part: run_cases([sys.executable, __file__, ROOT, DEVICE, "-"], part), parts):
            failed += len(lines)
            print(*lines, sep="\n", end="\n" * bool(lines), flush=True)
    print(f"{len(cases)} of {math.prod(map(len, axes))} cases on {DEVICE}: {failed} failed")
    return 1 if failed else 0


sys.exit(main())
