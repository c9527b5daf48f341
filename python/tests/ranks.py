#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranks, against NumPy and Pillow, and SciPy and OpenCV where they are installed: ranks.py ROOT.

Skipped (exit status 77) without NumPy and Pillow."""
import importlib.util
import pathlib
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/lib"))
from harness import need_module, run_tests  # noqa: E402

need_module("numpy")
need_module("PIL")
import numpy  # noqa: E402
from PIL import Image, ImageFilter  # noqa: E402

import gpuconv  # noqa: E402

NUMBERS = numpy.random.default_rng(67)
NUMPY = {"replicate": "edge", "reflect": "symmetric", "reflect101": "reflect", "wrap": "wrap", "zero": "constant"}
SCIPY = {"replicate": "nearest", "reflect": "reflect", "reflect101": "mirror", "wrap": "wrap", "zero": "constant"}
NAN = 0x7fffffff
FORMS = ("open", "close", "tophat", "blackhat", "outline")


def noise(kind, *shape):
    if kind == "float32":
        floats = NUMBERS.integers(-3, 4, shape).astype(kind) / 2
        odd = numpy.array([numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, -0.0, 0, 1e-40, -1e-40], kind)
        return numpy.where(NUMBERS.random(shape) < 0.3, NUMBERS.choice(odd, shape), floats)
    return NUMBERS.integers(0, numpy.iinfo(kind).max, shape, kind, endpoint=True)


def disk(radius):
    y, x = numpy.mgrid[-int(radius):int(radius) + 1, -int(radius):int(radius) + 1]
    return x * x + y * y <= radius * radius


def parse(footprint, combine, anchor):
    rows = "\n".join(" ".join(str(int(one)) for one in row) for row in footprint)
    return gpuconv.Filter.parse(f"combine {combine}\nanchor {anchor[0]} {anchor[1]}\n{rows}\n")


def keys(array):
    """Integers with the order of the specification (U3)."""
    if array.dtype.kind == "u":
        return array.astype("int64")
    bits = array.view("int32").astype("int64")
    return numpy.where(numpy.isnan(array), 1 << 40, numpy.where(bits < 0, -1 - (bits & NAN), bits))


def samples(found, kind):
    if kind != "float32":
        return found.astype(kind)
    return numpy.where(found == 1 << 40, NAN, numpy.where(found < 0, (-1 - found) - (1 << 31), found)).astype("int32").view(kind)


def ordered(array, footprint, index, border, anchor):
    """Each plane by sorting its windows."""
    height, width = footprint.shape
    margins = ((anchor[1], height - 1 - anchor[1]), (anchor[0], width - 1 - anchor[0]))
    planes = []
    for c in range(array.shape[2]):
        wide = keys(numpy.pad(array[..., c], margins, mode=NUMPY[border]))
        windows = numpy.lib.stride_tricks.sliding_window_view(wide, footprint.shape)[:, :, footprint]
        planes.append(samples(numpy.sort(windows, axis=-1)[..., index], array.dtype))
    return numpy.dstack(planes)


def same(found, expected):
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def test_numpy():
    """Footprints of any shape, anchors, borders, 8 and 16 bits, and floats: -0 below 0, all NaNs above infinity."""
    for number in range(60):
        kind, border = ("uint8", "uint16", "float32")[number % 3], list(NUMPY)[number % 5]
        array = noise(kind, *NUMBERS.integers(1, 20, 2), 1 + number % 3)
        footprint = NUMBERS.random(NUMBERS.integers(1, 6, 2)) < 0.7
        footprint.flat[0] |= not footprint.any()
        anchor = [int(NUMBERS.integers(side)) for side in footprint.shape[::-1]]
        count, percent = footprint.sum(), int(NUMBERS.integers(0, 101))
        for combine, index in (("median", count // 2), ("minimum", 0), ("maximum", count - 1),
                               (f"rank {percent}%", min(count * percent // 100, count - 1))):
            found = gpuconv.filter(array, parse(footprint, combine, anchor), border=border, alpha="filter", layout="hwc")
            assert same(found, ordered(array, footprint, index, border, anchor)), (kind, border, combine, footprint, anchor)
    floats = noise("float32", 12, 15, 1)
    square, middle = numpy.ones((3, 3), bool), (1, 1)
    high, low = (ordered(floats, square, index, "reflect", middle) for index in (8, 0))
    with numpy.errstate(invalid="ignore"):
        difference = high - low
    expected = numpy.where(numpy.isnan(difference), numpy.int32(NAN), difference.view("int32")).view("float32")
    assert same(gpuconv.filter(floats, "outline:1", border="reflect", layout="hwc"), expected)


def test_pillow():
    """Pillow's sizes are sides, and its borders repeat the edge."""
    for mode in ("L", "RGB"):
        array = noise("uint8", 21, 17, *[3] * (mode == "RGB"))
        image = Image.fromarray(array)
        for radius in (1, 2, 4):
            side = 2 * radius + 1
            cases = {"median": ImageFilter.MedianFilter(side), "erode": ImageFilter.MinFilter(side),
                     "dilate": ImageFilter.MaxFilter(side)}
            for word, expected in cases.items():
                assert same(gpuconv.filter(array, f"{word}:{radius}"), numpy.asarray(image.filter(expected))), word
            for percent in (0, 17, 50, 83, 100):
                rank = min(side * side * percent // 100, side * side - 1)
                expected = numpy.asarray(image.filter(ImageFilter.RankFilter(side, rank)))
                assert same(gpuconv.filter(array, f"rank:{radius}:{percent}"), expected), percent


def test_scipy():
    """All borders are the same. SciPy's differences of levels are not limited by 0."""
    if importlib.util.find_spec("scipy") is None:
        print("SciPy is not installed: nothing is compared with it")
        return
    from scipy import ndimage
    for number in range(90):
        kind, border = ("uint8", "uint16")[number % 2], list(SCIPY)[number % 5]
        plane = noise(kind, *NUMBERS.integers(1, 24, 2))
        radius = (1, 2, 3.3)[number % 3]
        footprint = disk(radius) if number % 3 == 2 else numpy.ones((2 * radius + 1,) * 2, bool)
        count, percent, end = footprint.sum(), int(NUMBERS.integers(0, 101)), ":disk" * (number % 3 == 2)
        options = {"footprint": footprint, "mode": SCIPY[border]}
        low, high = (ndimage.minimum_filter(plane, **options), ndimage.maximum_filter(plane, **options))
        opened, closed = ndimage.maximum_filter(low, **options), ndimage.minimum_filter(high, **options)
        expected = {"median": ndimage.median_filter(plane, **options), "erode": low, "dilate": high, "open": opened,
                    "close": closed, "tophat": plane - opened, "outline": high - low,
                    "blackhat": numpy.where(closed > plane, closed - plane, 0).astype(kind)}
        for word, result in expected.items():
            found = gpuconv.filter(plane, f"{word}:{radius}{end}", border=border)
            assert same(found, result), (word, kind, border, plane.shape)
        rank = ndimage.rank_filter(plane, min(count * percent // 100, count - 1), **options)
        assert same(gpuconv.filter(plane, f"rank:{radius}:{percent}{end}", border=border), rank), (percent, kind, border)


def test_opencv():
    """medianBlur repeats the edge, and takes 16 bits up to 5 x 5. The borders of morphologyEx include this one."""
    if importlib.util.find_spec("cv2") is None:
        print("OpenCV is not installed: nothing is compared with it")
        return
    import cv2
    for kind in ("uint8", "uint16"):
        array = noise(kind, 33, 41, 3)
        for radius in (1, 2, 5):
            if kind == "uint8" or radius < 3:
                assert same(gpuconv.filter(array, f"median:{radius}"), cv2.medianBlur(array, 2 * radius + 1)), radius
            square = numpy.ones((2 * radius + 1,) * 2, "uint8")
            for word, call in (("erode", cv2.erode), ("dilate", cv2.dilate)):
                found = gpuconv.filter(array, f"{word}:{radius}", border="reflect101")
                assert same(found, call(array, square, borderType=cv2.BORDER_REFLECT_101)), word
            round_one = disk(radius).astype("uint8")
            for word, code in zip(FORMS, (cv2.MORPH_OPEN, cv2.MORPH_CLOSE, cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT,
                                          cv2.MORPH_GRADIENT)):
                expected = cv2.morphologyEx(array, code, round_one, borderType=cv2.BORDER_REPLICATE)
                assert same(gpuconv.filter(array, f"{word}:{radius}:disk"), expected), word


def test_margins():
    assert gpuconv.Filter("median:3").margins == (3, 3, 3, 3) and gpuconv.Filter("close:3").margins == (6, 6, 6, 6)
    assert parse(numpy.ones((2, 4)), "median", (3, 0)).margins == (3, 0, 0, 1)
    turned = parse(numpy.ones((2, 4)), "median", (3, 0)).flip()
    assert turned.margins == (0, 3, 1, 0) and turned.describe()[0]["anchor"] == [0, 1]


run_tests(globals())
