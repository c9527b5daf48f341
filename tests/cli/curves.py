#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The curve of --linear, as files name it: curves.py GPUCONV GPUCONV_STUB.

The script makes profiles, chunks and EXIF, computes the light of each sample from the definitions with 30 digits, and
checks that every result has the nearest level. littleCMS, where it is installed, must see the same curves."""
import ctypes
import ctypes.util
import functools
import glob
import os
import random
import struct
import sys
import zlib
from decimal import Decimal, getcontext
from fractions import Fraction

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402
from metadata_files import Tiff, segment  # noqa: E402
from read_png import read_plain  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

PROGRAM, STUB = (os.path.abspath(path) for path in sys.argv[1:3])
WIDTH, HEIGHT = 21, 11
getcontext().prec = 30


# ---- The definitions ----

class Curve:
    """65535 times the light of a sample, a Fraction from 0 to 1. It is computed once for each."""

    def __init__(self, light):
        self.level = functools.cache(lambda x: 65535 * min(max(light(x), 0), 1))

    def linear(self, v, top):
        return int((2 * self.level(Fraction(v, top)) + 1) // 2)


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def parametric(g, a=1, b=0, c=0, d=0, e=0, f=0):
    c, d, f = Fraction(c), Fraction(d), Fraction(f)
    g, a, b, e = (decimal(Fraction(number)) for number in (g, a, b, e))

    def light(x):
        return max(a * decimal(x) + b, Decimal(0)) ** g + e if x >= d else c * x + f  # ties of the line are exact
    return Curve(light)


def sampled(entries):
    def light(x):
        place = x * (len(entries) - 1)
        i = min(int(place), len(entries) - 2)
        return (entries[i] + (place - i) * (entries[i + 1] - entries[i])) / 65535
    return Curve(light)


def transfer(alpha, slope, beta):
    """BT.709 and its relatives: V = alpha L^0.45 - (alpha - 1), and slope * L below beta."""
    alpha, slope, beta = Decimal(alpha), Fraction(slope), Fraction(beta)

    def light(x):
        return ((decimal(x) + alpha - 1) / alpha) ** (1 / Decimal("0.45")) if x >= slope * beta else x / slope
    return Curve(light)


def pq_light(x):
    root = decimal(x) ** (Decimal(32) / 2523)
    return (max(root - Decimal(3424) / 4096, Decimal(0)) / (Decimal(2413) / 128 - Decimal(2392) / 128 * root)) ** (
        Decimal(16384) / 2610)


def hlg_light(x):
    x = decimal(x)
    a, b, c = Decimal("0.17883277"), Decimal("0.28466892"), Decimal("0.55991073")
    return x * x / 3 if x <= Decimal("0.5") else (((x - c) / a).exp() + b) / 12


SRGB = parametric("2.4", Fraction(1000, 1055), Fraction(55, 1055), Fraction(100, 1292), "0.04045")
REC709 = transfer("1.099296826809442", "4.5", "0.018053968510807")
ADOBE = parametric(Fraction(563, 256))
LINEAR = parametric(1)


def outside(i, n):
    return min(max(i, 0), n - 1)


def blurred(plane):
    """The filter `blur`: 1 4 6 4 1 in both directions, divided by 256 and rounded."""
    height, width, taps = len(plane), len(plane[0]), ((-2, 1), (-1, 4), (0, 6), (1, 4), (2, 1))
    return [[(sum(plane[outside(y + i, height)][outside(x + j, width)] * a * b for i, a in taps for j, b in taps) + 128)
             // 256 for x in range(width)] for y in range(height)]


def check_blur(what, image, result, curves):
    """Is each sample of RESULT that of a blurred IMAGE: its own level where its light stays, else the nearest?"""
    rows, bits = image
    top, colours = (1 << bits) - 1, len(rows[0]) // WIDTH
    moved = 0
    for c in range(colours):
        curve = curves[c % len(curves)]
        before = [row[c::colours] for row in rows]
        light = blurred([[curve.linear(v, top) for v in row] for row in before])
        for y in range(HEIGHT):
            for x in range(WIDTH):
                v, w = result[y][x * colours + c], light[y][x]
                moved += v != before[y][x]
                if curve.linear(before[y][x], top) == w:
                    right = v == before[y][x]
                else:
                    right = ((v == 0 or curve.level(Fraction(2 * v - 1, 2 * top)) < w)
                             and (v == top or curve.level(Fraction(2 * v + 1, 2 * top)) >= w))
                if not right:
                    sys.exit(f"{what}: sample {x}, {y}, {c} of {before[y][x]} became {v}, whose light is not {w}")
    assert moved > HEIGHT * WIDTH * colours // 2, f"{what}: the picture tests nothing"


# ---- Files ----

def picture(colours, bits):
    """Levels of all sizes, many of them dark."""
    chance = random.Random(colours * bits)
    top = (1 << bits) - 1
    return [[int(top * chance.random() ** chance.choice((1, 3, 6))) for _ in range(WIDTH * colours)]
            for _ in range(HEIGHT)], bits


def levels(colours, bits):
    """All levels in every colour."""
    width, height = (256, 1) if bits == 8 else (256, 256)
    return [[(width * y + x + 85 * c) % (1 << bits) for x in range(width) for c in range(colours)]
            for y in range(height)], bits


def write(path, image, chunks=b""):
    rows, bits = image
    width = 256 if len(rows[0]) % 256 == 0 else WIDTH
    channels = len(rows[0]) // width
    data = b"".join(v.to_bytes(bits // 8, "big") for row in rows for v in row)
    with open(path, "wb") as file:
        file.write(png(width, len(rows), channels, bits, unfiltered(data, len(rows[0]) * bits // 8), chunks=chunks))


def curv(*entries):
    return b"curv" + struct.pack(">II", 0, len(entries)) + struct.pack(f">{len(entries)}H", *entries)


def fixed(number):
    return round(number * 65536)


def para(kind, *numbers):
    return b"para" + struct.pack(">IHH", 0, kind, 0) + struct.pack(f">{len(numbers)}i", *map(fixed, numbers))


def cicp(transfer_number, full=1):
    return b"cicp" + bytes([0, 0, 0, 0, 9, transfer_number, 0, full])


def profile(tags, colour=b"RGB ", connection=b"XYZ ", version=4):
    head = (struct.pack(">I", 0) + b"    " + bytes([version, 0, 0, 0]) + b"mntr" + colour + connection + bytes(12)
            + b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061) + bytes(48))
    table, data, start = b"", b"", 132 + 12 * len(tags)
    for name, value in tags.items():
        table += name + struct.pack(">II", start + len(data), len(value))
        data += value + bytes(-len(value) % 4)
    whole = head + struct.pack(">I", len(tags)) + table + data
    return struct.pack(">I", len(whole)) + whole[4:]


def rgb_profile(*curves, **options):
    """A profile with the three curves, or with one for all."""
    return profile(dict(zip((b"rTRC", b"gTRC", b"bTRC"), curves * (3 // len(curves)))), **options)


def grey_profile(curve, **options):
    return profile({b"kTRC": curve}, b"GRAY", **options)


def iccp(data):
    return chunk(b"iCCP", b"x\0\0" + zlib.compress(data))


def gama(number):
    return chunk(b"gAMA", struct.pack(">I", number))


def coding(number, full=1):
    return chunk(b"cICP", bytes([9, number, 0, full]))


CHUNK_SRGB = chunk(b"sRGB", b"\0")
KNEE = tuple(min(65535, int(65535 * (i / 60) ** 2)) for i in range(64))  # black and white at several entries
DARK = (0,) * 9 + tuple(900 * i for i in range(1, 60)) + (65535,)
FALLING = (0, 9000, 30000, 29000, 65535)
P3 = para(3, 2.39999, 0.94786, 0.05214, 0.07739, 0.04045)
S1024 = tuple(int(SRGB.level(Fraction(i, 1023))) for i in range(1024))

SQUARES = tuple(i * i // 13733 for i in range(30000))

# Profiles for colours, and their curves.
PROFILES = {
    "curv without entries": (rgb_profile(curv()), [LINEAR]),
    "curv 1.8": (rgb_profile(curv(0x1CD), version=2), [parametric(Fraction(0x1CD, 256))]),
    "curv 563/256": (rgb_profile(curv(563), version=2), [ADOBE]),
    "curv of 2": (rgb_profile(curv(1000, 64000)), [sampled((1000, 64000))]),
    "curv of 64": (rgb_profile(curv(*KNEE), version=2), [sampled(KNEE)]),
    "curv with black": (rgb_profile(curv(*DARK)), [sampled(DARK)]),
    "curv of 30000": (rgb_profile(curv(*SQUARES)), [sampled(SQUARES)]),
    "curv of sRGB": (rgb_profile(curv(*S1024), version=2), [SRGB]),
    "para 0": (rgb_profile(para(0, 2.2)), [parametric(Fraction(fixed(2.2), 65536))]),
    "para 1": (rgb_profile(para(1, 2.0, 1.25, -0.25)), [parametric(2, "1.25", "-0.25")]),
    "para 2": (rgb_profile(para(2, 2, 0.75, 0.125, 0.0625)), [parametric(2, "0.75", "0.125", 0, 0, "0.0625")]),
    "para 3": (rgb_profile(para(3, 3, 0.875, 0.125, 0.0625, 0.125)), [parametric(3, "0.875", "0.125", "0.0625", "0.125")]),
    "para 4": (rgb_profile(para(4, 2.5, 0.75, 0.25, 0.0625, 0.125, -0.0625, -0.00390625)),
               [parametric("2.5", "0.75", "0.25", "0.0625", "0.125", "-0.0625", "-0.00390625")]),
    "Display P3": (rgb_profile(P3), [SRGB]),
    "three curves": (rgb_profile(curv(*KNEE), para(0, 1.5), P3), [sampled(KNEE), parametric("1.5"), SRGB]),
    "cicp in a profile": (profile({b"cicp": cicp(18), b"A2B0": bytes(40)}), [Curve(hlg_light)]),
    "curves beside a LUT": (profile({b"A2B0": bytes(40), b"rTRC": curv(512), b"gTRC": curv(512), b"bTRC": curv(512)}),
                            [parametric(2)]),
}

# Other chunks before the picture, and their curves.
CHUNKS = {
    "gAMA 1": (gama(100000), [LINEAR]),
    "gAMA 1/2.2": (gama(45455), [parametric(Fraction(100000, 45455))]),
    "gAMA 1/1.8": (gama(55556), [parametric(Fraction(100000, 55556))]),
    "sRGB": (CHUNK_SRGB, [SRGB]),
    "cICP 1": (coding(1), [REC709]),
    "cICP 4": (coding(4), [parametric("2.2")]),
    "cICP 5": (coding(5), [parametric("2.8")]),
    "cICP 6": (coding(6), [REC709]),
    "cICP 7": (coding(7), [transfer("1.111572195921731", "4", "0.022821585529445")]),
    "cICP 8": (coding(8), [LINEAR]),
    "cICP 13": (coding(13), [SRGB]),
    "cICP 14": (coding(14), [REC709]),
    "cICP 15": (coding(15), [REC709]),
    "cICP 16": (coding(16), [Curve(pq_light)]),
    "cICP 18": (coding(18), [Curve(hlg_light)]),
}


def exif(space, index=None):
    """An EXIF block with a colour space and an index of interoperability."""
    entries = [(0xA001, 3, 1, struct.pack("<H", space))]
    if index:
        entries.append((0xA005, 4, 1, [(0x0001, 2, 4, index + b"\0")]))
    return bytes(Tiff("<", [(0x8769, 4, 1, entries)]).data)


# ---- Running ----

def gpuconv(*arguments, program=PROGRAM):
    """Run it and return what it says."""
    return harness.run(program, *arguments).stderr


def read(path):
    _, _, _, rows, bits = read_plain(path)
    return [list(row) for row in rows], bits


def expect(what, said, *warnings):
    """Are these the warnings?"""
    wanted = "".join(f"gpuconv: warning: {warning}\n" for warning in warnings)
    if said != wanted:
        sys.exit(f"{what}: {said!r} instead of {wanted!r}")


def unread(name, part, used="sRGB"):
    return f"{name}: --linear cannot read the curve of {part}, and uses the curve of {used}"


def same(what, *paths):
    contents = [read(path) for path in paths]
    if any(content != contents[0] for content in contents):
        sys.exit(f"{what}: {', '.join(paths)} differ")


def check_curve(what, chunks, curves, colours, *warnings):
    """Every level comes back, and a blur is right, in both depths. With 16 bits, a curve takes long to compute."""
    for bits in 8, 16:
        all_levels, image = levels(colours, bits), picture(colours, bits)
        write("in.png", all_levels, chunks)
        expect(what, gpuconv("--linear", "identity", "in.png", "out.png"), *warnings)
        if read("out.png") != all_levels:
            sys.exit(f"{what}, {bits} bits: identity changes levels")
        write("in.png", image, chunks)
        expect(what, gpuconv("--linear", "blur", "in.png", "out.png"), *warnings)
        check_blur(f"{what}, {bits} bits", image, read("out.png")[0], curves)


# ---- Tests ----

def test_png():
    """Every curve, in colour and in grey."""
    for name, (data, curves) in PROFILES.items():
        check_curve(name, iccp(data), curves, 3)
    for name, (chunks, curves) in CHUNKS.items():
        check_curve(name, chunks, curves, 3)
    check_curve("grey, gAMA", gama(55556), CHUNKS["gAMA 1/1.8"][1], 1)
    check_curve("grey profile", iccp(grey_profile(para(0, 1.8))), [parametric(Fraction(fixed(1.8), 65536))], 1)
    other = "out.png: metadata not carried over: ICC profile (is for other colours)"
    check_curve("grey with a profile for colours", iccp(rgb_profile(curv(512))), [parametric(2)], 1, other)
    check_curve("nothing", b"", [SRGB], 3)


def test_display_p3():
    """The curves of Display P3 and of sRGB in profiles give the bytes of sRGB."""
    for bits in 8, 16:
        image = picture(3, bits)
        write("plain.png", image)
        gpuconv("--linear", "gaussian:1.5", "plain.png", "plain-out.png")
        for name in "Display P3", "curv of sRGB":
            write("in.png", image, iccp(PROFILES[name][0]))
            gpuconv("--linear", "gaussian:1.5", "in.png", "out.png")
            same(name, "plain-out.png", "out.png")


def test_precedence():
    """cICP, then the profile, sRGB and gAMA; --verbose names the one that counts, and --strip changes nothing."""
    chunks = [coding(8), iccp(PROFILES["curv 1.8"][0]), CHUNK_SRGB, gama(100000)]
    curves = [LINEAR, PROFILES["curv 1.8"][1][0], SRGB, LINEAR, SRGB]
    names = ["its cICP chunk", "its ICC profile", "its sRGB chunk", "its gAMA chunk", "its EXIF"]
    image = picture(3, 8)
    for i, name in enumerate(names):
        write("in.png", image, b"".join(reversed(chunks[i:])) + chunk(b"eXIf", exif(1)))
        for options in [], ["--strip"]:
            said = gpuconv("--linear", "-v", *options, "blur", "in.png", "out.png")
            assert f"\nlinear    by the curve of {name}\n" in said, said
            check_blur(name, image, read("out.png")[0], [curves[i]])


def test_unread():
    """A part that cannot be read gets a warning, and the next part that names a curve counts."""
    lut = iccp(profile({b"A2B0": bytes(60), b"B2A0": bytes(60)}))
    icc, cicp_chunk, gamma = "its ICC profile", "its cICP chunk", "its gAMA chunk"
    other = "out.png: metadata not carried over: ICC profile (is for other colours)"
    damaged = "in.png: metadata not carried over: ICC profile (is damaged)"
    for name, chunks, colours, warnings in (
            ("a LUT", lut, 3, [unread("in.png", icc)]),
            ("one curve is missing", iccp(profile({b"rTRC": curv(), b"gTRC": curv()})), 3, [unread("in.png", icc)]),
            ("a curve that falls", iccp(rgb_profile(curv(*FALLING))), 3, [unread("in.png", icc)]),
            ("one of three falls", iccp(rgb_profile(curv(), curv(), curv(*FALLING))), 3, [unread("in.png", icc)]),
            ("a level curve", iccp(rgb_profile(curv(700, 700))), 3, [unread("in.png", icc)]),
            ("exponent 0", iccp(rgb_profile(curv(0))), 3, [unread("in.png", icc)]),
            ("a negative exponent", iccp(rgb_profile(para(0, -2.2))), 3, [unread("in.png", icc)]),
            ("an unknown type", iccp(rgb_profile(para(5, 2.2))), 3, [unread("in.png", icc)]),
            ("numbers are missing", iccp(rgb_profile(para(4, 2.2, 1, 0))), 3, [unread("in.png", icc)]),
            ("entries are missing", iccp(rgb_profile(curv(*KNEE)[:-2])), 3, [unread("in.png", icc)]),
            ("a named colour", iccp(rgb_profile(b"ncl2" + bytes(90))), 3, [unread("in.png", icc)]),
            ("CMYK", iccp(rgb_profile(curv(), colour=b"CMYK")), 3, [unread("in.png", icc), other]),
            ("grey for colours", iccp(grey_profile(curv())), 3, [unread("in.png", icc), other]),
            ("grey by L*", iccp(grey_profile(curv(), connection=b"Lab ")), 1, [unread("in.png", icc)]),
            ("three curves for grey", iccp(PROFILES["three curves"][0]), 1, [unread("in.png", icc), other]),
            ("a damaged profile", iccp(b"nothing"), 3, [damaged, unread("in.png", icc)]),
            ("a transfer that is not known", coding(2), 3, [unread("in.png", cicp_chunk)]),
            ("a narrow range", coding(8, 0), 3, [unread("in.png", cicp_chunk)]),
            ("gAMA 0", gama(0), 3, [unread("in.png", gamma)]),
            ("gAMA of an exponent of 100000", gama(1), 3, [unread("in.png", gamma)]),
            ("colours of EXIF that are not known", chunk(b"eXIf", exif(65535)), 3, [unread("in.png", "its EXIF")])):
        image = picture(colours, 16)
        write("in.png", image, chunks)
        expect(name, gpuconv("--linear", "blur", "in.png", "out.png"), *warnings)
        check_blur(name, image, read("out.png")[0], [SRGB])
        assert "curve" not in gpuconv("blur", "in.png", "out.png"), name
    image = picture(3, 8)
    write("in.png", image, coding(9) + lut + gama(100000))
    expect("two of three", gpuconv("--linear", "blur", "in.png", "out.png"), unread("in.png", cicp_chunk, gamma),
           unread("in.png", icc, gamma))
    check_blur("two of three", image, read("out.png")[0], [LINEAR])


def profile_segments(data, size=60000):
    pieces = [data[at:at + size] for at in range(0, len(data), size)]
    return [segment(0xE2, b"ICC_PROFILE\0" + bytes([i + 1, len(pieces)]) + piece) for i, piece in enumerate(pieces)]


def test_jpeg():
    """A JPEG has the curve of its profile, in any number of segments, or of EXIF: the result is that of a PNG."""
    write("in.png", picture(3, 8))
    full = ["--subsampling", "444"] if harness.has_codec(PROGRAM, "libjpeg-turbo") else []  # as stb writes
    gpuconv(*full, "identity", "in.png", "plain.jpg")
    gpuconv("identity", "plain.jpg", "plain.png")
    samples = read("plain.png")
    with open("plain.jpg", "rb") as file:
        data = file.read()
    large, adobe = PROFILES["curv of 30000"][0], rgb_profile(curv(563))
    pieces = profile_segments(large)
    assert len(pieces) > 1
    blocks = {space: segment(0xE1, b"Exif\0\0" + block) for space, block in (
        ("sRGB", exif(1)), ("R03", exif(65535, b"R03")), ("R98", exif(65535, b"R98")))}
    damaged = "in.jpg: metadata not carried over: ICC profile (is damaged)"
    for name, segments, chunks, warnings in (
            ("several segments", pieces, iccp(large), []),
            ("in the wrong order", pieces[::-1], iccp(large), []),
            ("a segment is missing", pieces[:1], b"", [damaged, unread("in.jpg", "its ICC profile")]),
            ("EXIF, sRGB", [blocks["sRGB"]], b"", []),
            ("EXIF, Adobe RGB", [blocks["R03"]], iccp(adobe), []),
            ("EXIF, not known", [blocks["R98"]], b"", [unread("in.jpg", "its EXIF")]),
            ("a profile and EXIF", [blocks["sRGB"], *profile_segments(adobe)], iccp(adobe), []),
            ("a profile and other EXIF", [blocks["R98"], *profile_segments(adobe)], iccp(adobe), [])):
        with open("in.jpg", "wb") as file:
            file.write(data[:2] + b"".join(segments) + data[2:])
        write("want.png", samples, chunks)
        expect(name, gpuconv("--linear", "blur", "in.jpg", "out.png"), *warnings)
        gpuconv("--linear", "blur", "want.png", "want-out.png")
        same(name, "out.png", "want-out.png")


def test_batch():
    """Images of many curves and both depths in one run, each by its own: on the CPU, by a stub for the GPU, and on a
    GPU if there is one."""
    os.mkdir("many")
    os.mkdir("single")
    cases = [(iccp(data), f"icc{i}") for i, (data, _) in enumerate(PROFILES.values())]
    cases += [(chunks, f"chunk{i}") for i, (chunks, _) in enumerate(CHUNKS.values())]
    for i, (chunks, name) in enumerate(cases):
        write(f"many/{name}.png", picture(3, 16 if i % 5 == 0 else 8), chunks)
        gpuconv("--linear", "blur,sharpen", f"many/{name}.png", f"single/{name}.png")
    cuda = ["--backend", "cuda"]
    runs = [(PROGRAM, ["-j1"]), (PROGRAM, ["-j3"]), (STUB, ["-j1", *cuda]), (STUB, ["-j3", *cuda])]
    if not harness.run(PROGRAM, "--devices").stdout.startswith("no CUDA device"):
        runs += [(PROGRAM, ["-j1", *cuda]), (PROGRAM, ["-j3", *cuda])]
    for program, options in runs:
        gpuconv("-q", *options, "--linear", "blur,sharpen", "many", "-o", "out", program=program)
        for _, name in cases:
            same(f"batch of {options}, {name}", f"single/{name}.png", f"out/{name}.png")


def open_littlecms():
    name = ctypes.util.find_library("lcms2")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    for function in "cmsOpenProfileFromMem", "cmsReadTag", "cmsCreate_sRGBProfile":
        getattr(library, function).restype = ctypes.c_void_p
    library.cmsEvalToneCurveFloat.restype = ctypes.c_float
    return library


def littlecms_levels(library, data, tag):
    """The light of 8-bit levels that littleCMS finds in a tag of a profile; None if it finds no curve."""
    handle = ctypes.c_void_p(library.cmsOpenProfileFromMem(data, len(data)))
    curve = ctypes.c_void_p(library.cmsReadTag(handle, int.from_bytes(tag, "big")))
    found = curve and [65535 * max(library.cmsEvalToneCurveFloat(curve, ctypes.c_float(v / 255)), 0)
                       for v in range(256)]
    library.cmsCloseProfile(handle)
    return found


def check_installed(library, path, data):
    """A blur by the curves of the profile has the level whose light is nearest by littleCMS, or one within rounding."""
    tags = [b"kTRC"] if data[16:20] == b"GRAY" else [b"rTRC", b"gTRC", b"bTRC"]
    curves = [littlecms_levels(library, data, tag) for tag in tags]
    if not all(curves) or (len(curves) == 1 and data[20:24] != b"XYZ "):
        return
    image = picture(len(curves), 8)
    write("in.png", image, iccp(data))
    expect(path, gpuconv("--linear", "blur", "in.png", "out.png"))
    result = read("out.png")[0]
    for c, curve in enumerate(curves):
        light = blurred([[int(curve[v] + 0.5) for v in row[c::len(curves)]] for row in image[0]])
        for y, row in enumerate(light):
            for x, w in enumerate(row):
                far = abs(curve[result[y][x * len(curves) + c]] - w)
                assert far <= min(abs(level - w) for level in curve) + 3, f"{path}: sample {x}, {y}, {c} is {far} off"


def test_littlecms():
    """littleCMS finds the same curves in the profiles of this script, and in those that are installed here. Its own
    profile of sRGB counts as sRGB."""
    library = open_littlecms()
    if library is None:
        print("littleCMS is not installed: only the definitions were checked")
        return
    for name, (data, curves) in PROFILES.items():
        for tag, curve in zip((b"rTRC", b"gTRC", b"bTRC"), curves * 3 if b"rTRC" in data else ()):
            found = littlecms_levels(library, data, tag)
            assert found, f"{name}: littleCMS finds no curve"
            far = max(abs(level - float(curve.level(Fraction(v, 255)))) for v, level in enumerate(found))
            assert far < 4, f"{name}, {tag}: littleCMS is {far} levels away"
    for path in sorted(glob.glob("/usr/share/color/icc/**/*.ic[cm]", recursive=True)):
        with open(path, "rb") as file:
            check_installed(library, path, file.read())
    own = ctypes.c_void_p(library.cmsCreate_sRGBProfile())
    size = ctypes.c_uint32(0)
    library.cmsSaveProfileToMem(own, None, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    library.cmsSaveProfileToMem(own, data, ctypes.byref(size))
    check_curve("sRGB of littleCMS", iccp(data.raw), [SRGB], 3)


def main():
    for name in "GPUCONV_FILTERS", "XDG_CONFIG_HOME":
        os.environ.pop(name, None)
    with harness.temporary_folder() as folder:
        os.environ["HOME"] = folder
        for test in (test_display_p3, test_precedence, test_unread, test_jpeg, test_batch, test_png, test_littlecms):
            test()


main()
