#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The vectors of pixels-1.md: make_vectors.py GPUCONV checks that GPUCONV gives vectors.jsonl, and that two vectors or
more reach each rule. With --update it writes the file, and pillow.jsonl by pixels.py; read the diff. The test
python/tests/pillow_resize.py checks that the library and Pillow give the latter.

Inputs are formulas, so the file is text alone. pixels-1-files.md explains it (chapter V)."""
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "tests" / "lib")]
from harness import skip  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

TYPES = {1: "GRAYSCALE", 2: "GRAYSCALE_ALPHA", 3: "RGB", 4: "RGB_ALPHA"}
POINTS = ("grey", "invert", "sepia")  # no taps
RANKS = ("median", "rank", "erode", "dilate", "open", "close", "tophat", "blackhat", "outline")  # nor they
BUILT_IN = sorted({path.stem for path in (HERE.parent.parent / "filters").glob("*.txt")} - {*POINTS, *RANKS})
GRADIENTS = ("sobel", "prewitt", "scharr")
KERNELS = ("lanczos3", "lanczos2", "cubic", "mitchell", "triangle", "box")
BORDERS = ("replicate", "reflect", "reflect101", "wrap", "zero")


# ---- Pictures ----

def number(seed, n):
    """Number N of 32 bits."""
    k = (2654435769 * seed + n) & 0xffffffff
    k ^= k >> 16
    k = k * 2146121005 & 0xffffffff
    k ^= k >> 15
    k = k * 2221713035 & 0xffffffff
    return k ^ k >> 16


def sample(picture, i):
    width, height, channels, bits = (picture[key] for key in ("width", "height", "channels", "bits"))
    highest, seed, kind = (1 << bits) - 1, picture["seed"], picture["kind"]
    x, y, c = i // channels % width, i // channels // width, i % channels
    r = number(seed, i)
    if channels % 2 == 0 and c == channels - 1 and "opacity" in picture:
        low = r >> 16
        mixed = (0, highest, low % 256 * (highest // 255), low % 8 * (highest // 255))
        return highest if picture["opacity"] == "opaque" else mixed[(r >> 8) % 4]
    if kind == "noise":
        return r >> (32 - bits)
    if kind == "extremes":
        return highest * (r >> 31)
    if kind == "smooth":
        return highest * (x * (3 + c) + y * (5 - c)) // (8 * (width + height)) + (r >> (37 - bits))
    if kind == "blocks":
        return number(seed, 4 * (y // 8 * -(-width // 8) + x // 8) + c) >> (32 - bits)
    if kind in ("words", "rare"):
        word, part = number(seed, i // 11) >> 26, number(seed, i // 11) >> 23 & 7
        level = number(seed + 1, 11 * (word % 16) + i % 11)
        if kind == "rare" and part > 1:
            return r >> 24
        return level >> 24 if level & 15 == 0 else level & 3
    if kind == "tiles":
        return number(seed, 4 * (16 * (y % 16) + x % 16) + c) >> (32 - bits)
    if kind == "plain":
        return number(seed, c) >> (32 - bits)
    assert kind == "dots"
    return highest if r < 1 << 27 else 0


def samples(picture):
    """Big-endian bytes."""
    count = picture["width"] * picture["height"] * picture["channels"]
    return struct.pack(f">{count}{'H' if picture['bits'] == 16 else 'B'}", *(sample(picture, i) for i in range(count)))


def pam(picture):
    shape = (picture["width"], picture["height"], picture["channels"])
    return (f"P7\nWIDTH {shape[0]}\nHEIGHT {shape[1]}\nDEPTH {shape[2]}\nMAXVAL {(1 << picture['bits']) - 1}\n"
            f"TUPLTYPE {TYPES[shape[2]]}\nENDHDR\n").encode() + samples(picture)


def png_with_chunks(picture):
    """A PNG that says an orientation, a gamma or a transfer."""
    width, height, channels, bits = (picture[key] for key in ("width", "height", "channels", "bits"))
    chunks = b""
    if "cicp" in picture:
        chunks += chunk(b"cICP", bytes((1, picture["cicp"], 0, 1)))
    if "gamma" in picture:
        chunks += chunk(b"gAMA", struct.pack(">I", picture["gamma"]))
    if "orientation" in picture:
        chunks += chunk(b"eXIf", b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, picture["orientation"], 0, 0))
    return png(width, height, channels, bits, unfiltered(samples(picture), width * channels * bits // 8), chunks=chunks)


# ---- Cases ----

CASES = []


def picture(kind, width, height, channels=1, bits=8, alpha=None, **more):
    made = {"kind": kind, "width": width, "height": height, "channels": channels, "bits": bits,
            "seed": 0}
    return made | ({"opacity": alpha} if alpha else {}) | more


def case(group, source, chain, rules="", write=(), refused=False, text=None, mask=False, **options):
    """Add a case of GROUP, of the filters CHAIN or the one that TEXT says. RULES are those that it is made for; others
    follow from the filters and the options."""
    options = {key.replace("_", "-"): value for key, value in options.items()}
    name = f"{group}-{sum(other['id'].rpartition('-')[0] == group for other in CASES) + 1}"
    source = source | {"seed": source["seed"] or zlib.crc32(name.encode()) % 65536}
    made = {"id": name, "rules": rules.split(), "input": source}
    made |= {"text": text} if text is not None else {"filter": chain}
    if mask:
        made["mask"] = zlib.crc32(f"{name} mask".encode()) % 65536
        made["rules"].append("S4")
    if options:
        made["options"] = options
    if refused:
        made["refused"] = True
    else:
        made["write"] = list(write)
        made["rules"] += implied(made)
    made["rules"] = sorted(set(made["rules"]), key=lambda rule: (ORDER.index(rule[0]), int(rule[1:])))
    CASES.append(made)


ORDER = "PNFTGCDRMALOJEZHKQSU"


POINT_WORDS = {"levels": " Q3 Q4 Q5", "gamma": " Q3 Q5 Q7", "brightness": " Q2", "contrast": " Q2", "saturation": " Q2",
               "threshold": " Q2 Q3 Q4 Q5", "posterize": " Q3 Q4 Q5", "tint": " Q2 M4", "swap": " Q2"}


def of_filter(spec, bits):
    """The rules that a filter of a chain reaches."""
    spec, _, region = spec.partition("@")
    if region:
        return of_filter(spec, bits) + " S1 S2 S3"
    word = spec.partition(":")[0]
    correlation = f"C1 C2 C{4 if bits == 16 else 3}"
    if word == "gaussian" or word == "unsharp" and ":" in spec:
        return "G1 G2 G8 G9 G10 G15 D1 D2" + (" G11 D3 D4" if word == "unsharp" else "")
    if word == "box" and ":" in spec:
        return "G1 G7 " + ("D1 D2" if float(spec.split(":")[1]) > 63 else correlation)
    if word in ("motion", "disk", "log"):
        return f"G1 G5 G6 G15 {correlation} " + {"motion": "G3 G12", "disk": "G4 G13", "log": "G2 G8 G14"}[word]
    if word == "pixelate":
        return "S5"
    if word in RANKS:
        return ("U2 U3 U4" if ":" in spec else "F8 U1 U2 U3") + " U5" * (word in RANKS[4:])
    if word.startswith("auto-"):
        return "S6 Q9"
    if word in POINTS:
        return "F8 Q8 " + ("Q1 Q3 Q4 Q5" if word == "invert" else "Q1 Q2")
    if word in POINT_WORDS:
        return "Q8 Q10" + POINT_WORDS[word] + (" Q7" if word == "levels" and spec.count(":") == 3 else "")
    if ":pillow" in spec:
        rules = "K1 K2 K3 K5 K6 K7" + " K4" * ("-hamming" in spec or "-lanczos" in spec)
        return "R1 R2 " + ("K1 K8" if "-nearest" in spec else rules) + " M2 M3 K10" * (word == "cover")
    if ":nearest" in spec:
        return "R1 R2 R11" + {"cover": " M2 M3", "thumbnail": " R10"}.get(word, "")
    if word in ("resize", "thumbnail"):
        lanczos = " R6" if not any(other in spec for other in KERNELS[2:]) else ""
        return "R1 R2 R4 R5 R7 R8 R9" + lanczos + (" R10" if word == "thumbnail" else "")
    if word == "cover":
        return "M2 M3 R1 R2 R4 R5 R7 R8 R9"
    if word == "crop":
        return "M7 " + ("M1" if "+" in spec else "M2")
    if word in ("turn", "mirror"):
        return "M6 M7"
    if word == "pad":
        return "M4 M5 M7"
    return correlation + (" F8 T1 T3" if word in BUILT_IN else "") + (" C7" if word in GRADIENTS else "")


def implied(made):
    options, source = made.get("options", {}), made["input"]
    chain = made.get("filter", "").split(",")
    linear = options.get("linear", False)
    bits = 16 if linear else options.get("depth", source["bits"])
    rules = " ".join(of_filter(spec, bits) for spec in chain).split()
    rules += ["P1", "H1"] + ["H2"] * bool(made["write"]) + ["O3"] * (len(chain) > 1)
    rules += ["T5"] * ("flip" in options) + ["T6"] * ("abs" in options) + ["P2", "P3"] * ("depth" in options)
    rules += ["L1", "L2", "O4"] * linear + ["O1", "O2"] * ("orientation" in source)
    if linear and "gamma" not in source and "cicp" not in source:
        rules += ["L3"]
    if "file_quality" in source:
        rules += [f"J{i}" for i in range(1, 5)] + (["J5", "J6"] if source["channels"] == 3 else [])
    if "jpeg" in made["write"]:
        rules += [f"E{i}" for i in (1, 5, 6, 7, 8, 9)] + (["E2", "E3", "E4"] if source["channels"] > 2 else ["E3"])
        rules += ["O6"] if source["channels"] % 2 == 0 or bits == 16 else []
    if "png" in made["write"]:
        stored = options.get("compression") == 0
        rules += ["Z1", "Z2"] + (["Z4"] if stored else ["Z3"] + [f"Z{i}" for i in (5, 6, 7, 8, 9, 15, 16)])
    return rules


def parses(text, rules, bits=8, source=None, **options):
    case("text", source or picture("noise", 11, 9, 1, bits), None, f"F2 {rules}", text=text, **options)


def refuses(specs, **options):
    """SPECS: by rules, what is refused."""
    for rules, several in specs.items():
        for spec in several.split():
            case("refused", picture("noise", 10, 8), spec, rules, refused=True, **options)


def texts():
    for bits in (8, 16):
        parses("1 2 1\n2 4 2\n1 2 1\n", "F4 T1", bits)
        parses("title a title\nscale 16\n1 2 1\n2 4 2\n1 2 1\n", "F3 F4 T1 T3", bits)
        parses("# comment\n\n , ;\n1/9 1/9 1/9 # more\n1/9 1/9 1/9\n1/9 1/9 1/9\n", "F4 N1 N3 T1", bits)
        parses("0.5, 0.25, .25\n", "F4 N1 N2 T1", bits)
        parses("1,2,1\n", "F4 T1", bits)
        parses("1;2;1;\n", "F4 T1", bits)
        parses("scale 3\noffset 1/3\n1 -2 2.5\n", "F3 N1 T1 C3", bits)
        parses("scale 7\noffset -12.75\n1 3\n5 -2\n", "F3 F7 T1", bits)
        parses("offset 128\nanchor 0 2\n-2 -1 0\n-1 1 1\n0 1 2\n", "F3 F7 T1", bits)
        parses("anchor 3 0\n1 0 0 0\n0 0 0 2\n", "F7 T1", bits)
        parses("abs\n-1 0 1\n-2 0 2\n-1 0 1\n", "F3 C5", bits)
        parses("abs\nscale -2\noffset 3\n-1 0 1\n", "F3 C5 T1", bits)
        parses("3.14159265358979 -2.71828182845904523 1e-3\n", "N2 T2", bits)
        parses("scale 7.3\n1 2 3\n4 5 6.000000001\n", "N2 N3 T1 T2", bits)
        parses("0.33333333333333333333 0.33333333333333333333 0.33333333333333333333\n", "N2 T2", bits)
        parses("1/7 1/11 1/13 1/17 1/19 1/23 1/29 0.25\n", "N3 T1 T2", bits)
        parses("0.1000000001 0.2000000003 0.1\n0.1 0.0999999999 0.1\n0.1 0.1 0.1\n", "T2", bits)
        parses("1e3 -999\n", "N1 N2", bits)
        parses("0.00000000000000000001 1\n", "N2 T2", bits)
        parses("12345678901234567890e-19 -0.2\n", "N2 T2", bits)
        parses("100000.5 -100000\n", "T1", bits)
        parses("3 1 4 10\n1 2 1\n", "F6", bits)
        parses("1 2 10 5\n1\n3\n", "F6", bits)
        parses("3 3 16 7\n1 2 1\n2 4 2\n1 2 1\n", "F6 T1", bits)
        parses("2 1\n1.5 -1\n1 1\n", "F4 F6", bits)
        parses("\ufeffscale 2\r\n1 1\r\n", "F1", bits)
        parses("1e20/1e20 2/4\n", "N2 N3", bits)
        parses("offset 0.1234567890123456789012\n1 1 -1\n", "F3 N2 N4", bits)
        for combine in ("magnitude", "max", "sum"):
            rule = "C7" if combine == "magnitude" else "C6"
            parses(f"combine {combine}\n1 0\n0 -1\n---\n0 1\n-1 0\n", f"F5 {rule}", bits)
            parses(f"combine {combine}\nscale 3\noffset -4.3\n1 2 -1\n---\n0.5 -1 1/3\n", f"F5 {rule} T1", bits)
            parses(f"combine {combine}\noffset 1/1234567\nscale 5.000000001\n1 2 -4\n---\n3 -1 0\n", f"F5 {rule} T2 T4",
                   bits)
            parses(f"combine {combine}\noffset 20.7182818284\n1 2 -1\n---\n0 -1 2\n", f"F5 {rule} T4", bits,
                   picture("smooth", 12, 10, 1, bits))
        parses("1 0 0\n", "T5", bits, flip=True)
        parses("anchor 0 1\n1 2 3\n4 5 -9\n", "T5 F7", bits, flip=True)
        parses("-1 0 1\n", "T6 C5", bits, **{"abs": True})
        parses("combine max\n1 0\n0 -1\n---\n0 1\n-1 0\n", "T5 T6 C6", bits, flip=True, **{"abs": True})
    # Large taps leave no bits for the others, which are equally far from integers.
    third, half = "0.33333333333333333333", "0.50000000000000000001"
    for text in (f"4000000 {third} {third} {third} -4000000\n",
                 f"anchor 1 0\n4000000 {third} {third} {third} -4000000\n",
                 f"{half} 4000000 0 -4000000 {half}\n",
                 f"{half} 4000000 {half}\n0 0 0\n{half} -4000000 {half}\n",
                 f"4000000 -{third} 0\n-{third} -4000000 -{third}\n",
                 f"anchor 0 1\n4000000 {half} {half}\n-4000000 {half} {half}\n"):
        parses(text, "N2 T2", source=picture("dots", 24, 20))
    refused = {
        "F1": ("1 2\r3 4\r", "1 \x7f 2\n"), "F2": ("# nothing\n",), "N1": ("1 x 2\n", "1 0x10\n", "nan 1\n", "1 2e\n"),
        "N2": ("1 1e999\n",), "N3": ("1/0 1\n",), "T2": ("9000000 9000000\n", "scale 1e-9\n1\n"),
        "F3": ("scale 0\n1\n", "scale 0,5\n1\n", "scale 2 3\n1\n", "offset 70000\n1\n", "scale 1\nscale 2\n1\n",
               "1 2\nscale 3\n", "colour 3\n1\n", "anchor 0.5 0\n1 2 1\n", "title\n1\n", "combine mean\n1\n---\n1\n"),
        "F4": ("", "1 2\n1 2 3\n", "1 2; 3 4\n", "0,5 1,25\n", "1,,1\n", ",1 2\n", "1 " * 127 + "1\n", "1\n" * 128),
        "F5": ("1\n---\n1\n", "combine max\n1\n", "combine max\n1\n---\n1 2\n", "combine max\n1\n---\n1\n---\n1\n",
               "combine max\nabs\n1\n---\n1\n"),
        "F6": ("3 3 9\n1 1 1\n1 1 1\n1 1 1\n",), "F7": ("anchor 3 0\n1 2 1\n",)}
    for rule, several in refused.items():
        for text in several:
            case("text-refused", picture("noise", 5, 4), None, rule, text=text, refused=True)


def built_ins():
    for i, name in enumerate(BUILT_IN):
        case("built-in", picture("noise", 13, 10, 3 if i % 2 else 1, 16 if i % 3 == 0 else 8), name,
             border=BORDERS[i % 5])
    for name in ("sharpen", "emboss", "sobel"):
        case("built-in", picture("extremes", 17, 11, 1), name)
        case("built-in", picture("extremes", 9, 7, 3, 16), name)
    refuses({"F8": "no-such-filter"})


def borders():
    text = "scale 20\nanchor 4 0\n1 2 3 4 5\n-1 0 1 2 3\n"
    for border in BORDERS:
        for width, height in ((1, 1), (2, 1), (3, 2), (7, 5)):
            case("border", picture("noise", width, height), None, "C2", text=text, border=border)
        case("border", picture("noise", 3, 2, 1, 16), None, "C2", text=text, border=border)
        case("border", picture("noise", 5, 4), "gaussian:2", border=border)
        case("border", picture("noise", 4, 3, 3, 16), "gaussian:3", border=border)
        case("border", picture("noise", 6, 5), "box:70", border=border)
        case("border", picture("noise", 6, 5), "unsharp:1.5:2", border=border)
        case("border", picture("noise", 6, 5, 1, 16), "motion:9:20", border=border)


def generated():
    for bits in (8, 16):
        for sigma in ("0.1", "0.2", "0.25", "0.3", "0.5", "0.8", "1", "1.41421356", "2.5", "4/3", "7", "12.5", "40",
                      "170"):
            case("gaussian", picture("noise" if len(sigma) < 3 else "extremes", 14, 9, 1, bits), f"gaussian:{sigma}")
        for radius in ("0", "1", "3", "10", "20", "63", "64", "100", "850"):
            case("box", picture("noise", 12, 9, 1, bits), f"box:{radius}")
        for parameters in ("1:0", "2:0", "2:90", "5:45", "7.5:30", "9:-30", "15:123.456", "21:180", "30:-359", "60:77",
                           "127:13"):
            case("motion", picture("noise", 8, 7, 1, bits), f"motion:{parameters}")
        for radius in ("0.3", "0.5", "0.7", "1", "1.5", "2.25", "4.5", "8", "15.5", "40"):
            case("disk", picture("noise", 8, 7, 1, bits), f"disk:{radius}")
        for sigma in ("0.2", "0.25", "0.5", "0.8", "1", "1.5", "2.6", "5"):
            case("log", picture("noise", 9, 8, 1, bits), f"log:{sigma}")
        for parameters in ("1:1", "0.7:0.6:2", "2:0.5:3", "0.1:3", "3:100", "1.5:1/3:0.5", "5:0.000001", "4:2.5:255",
                           "0.5:7:1.7"):
            case("unsharp", picture("noise", 12, 9, 3, bits), f"unsharp:{parameters}")
        case("unsharp", picture("smooth", 14, 12, 3, bits), "unsharp:2:1.5:4")
        case("unsharp", picture("smooth", 14, 12, 1, bits), "unsharp:2:1.5:4")
    refuses({"G1": "gaussian:0 gaussian:171 gaussian gaussian:1:2 box:851 box:1.5 box:-1 motion:0.5:1 motion:128:0 "
                   "motion:5 motion:5:361 disk:0 disk:64 log:0.1 log:16 unsharp:1 unsharp:1:101 unsharp:1:1:256",
             "G1 N1": "gaussian:x", "O3": "blur,,edge"})


def resizes():
    sizes = ((20, 15, "7x5:exact"), (7, 5, "20x15:exact"), (16, 16, "8x8:exact"), (31, 17, "30x18:exact"),
             (33, 3, "2x1:exact"))
    for kernel in KERNELS:
        for bits in (8, 16):
            for width, height, size in sizes:
                case("resize", picture("noise", width, height, 1, bits), f"resize:{size}:{kernel}")
        case("resize", picture("extremes", 26, 14, 3), f"resize:11x9:exact:{kernel}")
    sizes = {"50%": (20, 10), "33.3%": (21, 11), "250%": (9, 5), "10x10": (30, 20), "11x11": (20, 30), "12x": (30, 20),
             "x7": (30, 20), "10x10:cover": (30, 20), "5x8:cover:cubic": (13, 40), "1/3%": (11, 40),
             "12.123456789012345%": (40, 3), "1e1x:enlarge": (5, 4), "3x2:exact": (200, 2), "9x2:exact:mitchell": (3, 90),
             "5x4:exact": (1, 1), "7x7:enlarge:lanczos2": (2, 2)}
    for size, (width, height) in sizes.items():
        case("resize", picture("noise", width, height, 3, 8 if width % 2 else 16), f"resize:{size}")
    for spec in ("resize:20x20", "resize:x30:box", "thumbnail:9x"):
        case("stays", picture("noise", 8, 6, 3), spec, "R3")
    case("stays", picture("noise", 8, 6, 4, 8, "mixed"), "resize:20x20", "R3 A8")
    for spec in ("thumbnail:5x5", "thumbnail:50%:box", "thumbnail:7x9:exact:triangle"):
        case("thumbnail", picture("noise", 22, 17, 3), spec)
    for border in ("wrap", "zero"):
        case("resize", picture("noise", 15, 11), "resize:6x", "R9", border=border)
    refuses({"R1": "resize resize: resize:x resize:0x5 resize:5x5:best resize:50%:cover resize:5x:exact resize:0.05% "
                   "resize:5x5:exact:cover resize:5x5:box:cubic resize:-5x5 resize:1.5x2 resize:100001x5 resize:10001%"})


def moves():
    for spec in ("crop:3x2+4+1 crop:5x4 crop:4x3:left crop:4x3:bottom:right crop:50% crop:37%:top crop:100% pad:15x12 "
                 "pad:16x11:black pad:14x10:#f80 pad:11x9:#12ab9F turn:90 turn:180 turn:270 mirror:x mirror:y cover:5x5 "
                 "cover:4x9:top cover:20x6:box:right").split():
        case("move", picture("noise", 10, 8, 3), spec)
        case("move", picture("noise", 9, 7, 1, 16), spec.replace("11x9", "12x9"))
    for spec in ("pad:12x11", "pad:12x11:white", "turn:90", "crop:4x4", "mirror:x"):
        for channels in (2, 4):
            case("move", picture("noise", 9, 8, channels, 8, "mixed"), spec)
    case("move", picture("noise", 9, 8, 4, 8, "mixed"), "mirror:y", "M7", linear=True)
    case("move", picture("noise", 9, 8, 3, 8), "crop:4x5", "M7", linear=True)
    refuses({"M1": "crop:3x3+8+0 crop:3x3+0+7 crop:3x3+1", "M2": "crop:11x2 crop:3x crop:101% crop:3x3:left:right",
             "M3": "cover:50% cover:4x4:exact", "M4": "pad:9x20 pad:20x7 pad:20x20:red pad:20x", "M6": "turn:45 mirror:z"})


def alphas():
    chains = {"blur": "A7", "gaussian:1.5": "A7", "sharpen": "A8", "unsharp:1:0.8:3": "A8", "edge": "A5", "sobel": "A5",
              "emboss": "A5", "shift-left": "A4", "identity": "A4", "log:1": "A5", "resize:7x5:exact": "A8", "box:2": "A7",
              "resize:5x9:exact:box": "A7", "resize:16x13:exact:triangle": "A7", "resize:16x13:exact:cubic": "A8",
              "motion:5:20": "A7"}
    for chain, rule in chains.items():
        for bits in (8, 16):
            over = rule if bits == 8 or rule in ("A4", "A5") else "A6"
            case("alpha", picture("noise", 11, 8, 4, bits, "mixed"), chain, f"A4 {over}")
        case("alpha", picture("noise", 9, 7, 2, 8, "mixed"), chain, f"A4 {rule}")
        case("alpha", picture("noise", 9, 7, 4, 8, "opaque"), chain, "A3 A1")
        case("alpha", picture("noise", 9, 7, 4, 8, "mixed"), chain, "A1", alpha="keep")
        case("alpha", picture("noise", 9, 7, 2, 16 if rule == "A8" else 8, "mixed"), chain, "A2", alpha="filter")
    for chain in ("blur", "sharpen", "shift-up", "identity", "sobel"):
        case("alpha", picture("noise", 9, 7, 4, 8, "mixed"), chain, "A4 A5", border="zero")
    case("alpha", picture("noise", 9, 7, 4, 8, "mixed"), "resize:4x", "A4 A8", border="zero")
    case("alpha", picture("noise", 9, 7, 4, 8, "opaque"), "pad:13x11,blur", "A3 A7")
    case("alpha", picture("noise", 9, 7, 4, 8, "opaque"), "pad:13x11:black,blur", "A3 A1")
    refuses({"A9": "resize:4x,blur gaussian:1,resize:4x"}, border="zero")


def lights():
    for chain in ("identity", "blur", "sharpen", "gaussian:2", "unsharp:1:1:2", "edge", "sobel", "resize:6x5:exact",
                  "resize:19x15:exact:mitchell", "emboss"):
        case("linear", picture("noise", 12, 9, 3), chain, linear=True)
        case("linear", picture("smooth", 9, 8, 1, 16), chain, linear=True)
        case("linear", picture("noise", 9, 8, 4, 8, "mixed"), chain,
             "A4 A6" if "edge" not in chain and "sobel" not in chain else "A5", linear=True)
    for mode in ("keep", "filter"):
        case("linear", picture("noise", 9, 8, 4, 8, "mixed"), "blur", "A1" if mode == "keep" else "A2", linear=True,
             alpha=mode)
        case("linear", picture("noise", 9, 8, 2, 8, "mixed"), "resize:5x4:exact", "A1" if mode == "keep" else "A2",
             linear=True, alpha=mode)
    for transfer in (1, 4, 5, 6, 7, 8, 13, 16, 18):
        rules = "L5" if transfer >= 16 else "L4"
        case("curve", picture("noise", 9, 8, 3, cicp=transfer), "blur", rules, linear=True)
        case("curve", picture("noise", 9, 8, 1, 16, cicp=transfer), "gaussian:1", rules, linear=True)
    for gamma in (45455, 55556, 100000, 30000):
        case("curve", picture("noise", 9, 8, 3, gamma=gamma), "sharpen", "L4", linear=True)
        case("curve", picture("noise", 9, 8, 3, gamma=gamma), "resize:4x4:exact", "L4", linear=True)
    case("curve", picture("noise", 9, 8, 3, gamma=5000), "blur", "L3 L4", linear=True)
    case("curve", picture("noise", 9, 8, 3, gamma=45455, cicp=1), "blur", "L4", linear=True)
    case("curve", picture("noise", 9, 8, 1, 16, cicp=13), "blur", "L6", linear=True)
    case("curve", picture("noise", 9, 8, 3, 8, cicp=13), "sharpen", "L6", linear=True)


def orders():
    for chain in ("blur,edge", "resize:50%,sharpen", "crop:9x9,turn:90", "gaussian:1,gaussian:1", "edge,resize:7x",
                  "box:1,unsharp:1:1,mirror:x", "turn:270,blur,crop:50%", "identity,identity"):
        case("chain", picture("noise", 13, 11, 3), chain)
        case("chain", picture("noise", 13, 11, 1, 16), chain)
        case("chain", picture("noise", 13, 11, 4, 8, "mixed"), chain, "O4 A4")
    for chain in ("blur,log:1", "blur,edge,sharpen", "resize:7x,sobel"):
        case("chain", picture("noise", 13, 11, 4, 8, "mixed"), chain, "O4 A5")
        case("chain", picture("noise", 13, 11, 3), chain, linear=True)
        case("chain", picture("noise", 13, 11, 4, 8, "mixed"), chain, "A1", alpha="keep")
    for depth in (8, 16):
        for bits in (8, 16):
            for chain in ("identity", "gaussian:1.3", "emboss"):
                case("depth", picture("noise", 9, 8, 3, bits), chain, depth=depth)
    case("depth", picture("noise", 9, 8, 4, 16, "mixed"), "blur", "A7", depth=8)
    case("depth", picture("noise", 9, 8, 4, 8, "mixed"), "sharpen", "A6", depth=16)
    case("depth", picture("noise", 9, 8, 3, 8), "blur", depth=16, linear=True)
    for orientation in range(1, 9):
        case("orientation", picture("noise", 7, 5, 3, orientation=orientation), "identity", "M6")
    case("orientation", picture("noise", 8, 5, 3, orientation=6), "resize:4x,mirror:x", "M6")
    case("orientation", picture("noise", 8, 5, 3, orientation=8), "blur", no_orient=True)
    case("orientation", picture("noise", 8, 5, 3, orientation=0), "blur")
    for _ in range(2):
        case("same", picture("noise", 63, 40, 3), "gaussian:2.2,sharpen", "O5")


def jpegs():
    for quality in (1, 10, 49, 50, 75, 90, 91, 100):
        case("jpeg", picture("smooth", 21, 18, 3), "identity", write=["jpeg"], quality=quality)
        case("jpeg", picture("noise", 11, 9, 1), "identity", write=["jpeg"], quality=quality)
    for subsampling in (444, 422, 420, 440, 411):
        for width, height in ((16, 16), (17, 9), (40, 31), (1, 1)):
            case("jpeg", picture("smooth", width, height, 3), "identity", write=["jpeg"], subsampling=subsampling)
        case("jpeg", picture("noise", 33, 18, 3), "identity", write=["jpeg"], subsampling=subsampling, quality=95)
        case("jpeg", picture("extremes", 24, 25, 3), "blur", write=["jpeg"], subsampling=subsampling, quality=30)
    for kind, channels in (("blocks", 3), ("plain", 3), ("dots", 1), ("blocks", 1)):
        case("jpeg", picture(kind, 50, 37, channels), "identity", write=["jpeg"])
    for channels, background in ((2, "white"), (2, "#f80"), (4, "black"), (4, "#123456"), (2, "#808080")):
        case("jpeg", picture("noise", 17, 12, channels, 8, "mixed"), "identity", write=["jpeg"], background=background)
    case("jpeg", picture("noise", 17, 12, 4, 16, "mixed"), "blur", write=["jpeg"])
    case("jpeg", picture("noise", 17, 12, 3, 16), "blur", write=["jpeg"])
    case("jpeg", picture("noise", 17, 12, 1, 8), "blur", write=["jpeg"], depth=16)
    for subsampling in (444, 422, 420, 440, 411):
        for width, height, quality in ((16, 16, 90), (19, 13, 60), (2, 3, 90), (5, 1, 80), (41, 34, 97)):
            case("decode", picture("smooth", width, height, 3, file_quality=quality, file_subsampling=subsampling),
                 "identity")
        case("decode", picture("blocks", 30, 21, 3, file_quality=85, file_subsampling=subsampling), "sharpen")
    for quality in (20, 90, 100):
        case("decode", picture("noise", 19, 21, 1, file_quality=quality, file_subsampling=444), "identity")
    case("decode", picture("smooth", 20, 15, 3, file_quality=90, file_subsampling=420), "blur", depth=16)
    case("decode", picture("smooth", 20, 15, 3, file_quality=90, file_subsampling=420), "blur", linear=True)
    for kind in ("noise", "extremes", "blocks"):  # all colours
        case("decode", picture(kind, 48, 40, 3, file_quality=100, file_subsampling=444), "identity")
    for subsampling in (444, 422, 420, 440, 411):
        for size, spec in ((61, "20x15"), (64, "10x10:triangle"), (50, "3x3:box")):
            case("shrink", picture("smooth", size, size - 13, 3, file_quality=90, file_subsampling=subsampling),
                 f"thumbnail:{spec}", "J7 J8 J9 J10")
    for spec in ("thumbnail:50%", "thumbnail:12.5%", "thumbnail:6x6,sharpen", "thumbnail:7x3:exact"):
        case("shrink", picture("noise", 60, 53, 1, file_quality=80, file_subsampling=444), spec, "J7 J8 J9 J10")
    case("shrink", picture("smooth", 61, 45, 3, file_quality=90, file_subsampling=420), "thumbnail:9x9", "R10",
         linear=True)
    case("shrink", picture("smooth", 61, 45, 3, file_quality=90, file_subsampling=420), "identity,thumbnail:9x9",
         "R10")
    for subsampling, width, height in ((422, 3, 4), (422, 4, 4), (420, 4, 5), (420, 3, 4)):  # two columns of chroma
        case("decode", picture("noise", width, height, 3, file_quality=95, file_subsampling=subsampling), "identity")


def pngs():
    for kind in ("noise", "smooth", "blocks", "plain", "dots", "extremes"):
        for channels, bits in ((1, 8), (3, 8), (4, 8), (2, 16), (3, 16)):
            repeats = "" if kind in ("noise", "smooth") else "Z13 Z14"
            case("png", picture(kind, 40, 30, channels, bits), "identity", repeats, write=["png"])
        case("png", picture(kind, 100, 60, 1), "identity", "Z11 Z13 Z14", write=["png"])
    for width, height in ((1, 1), (2, 1), (1, 9), (64, 1), (3, 50)):
        case("png", picture("noise", width, height, 3), "identity", write=["png"])
    case("png", picture("plain", 300, 4, 1), "identity", "Z13 Z14", write=["png"])
    case("png", picture("plain", 3, 2, 1), "identity", "Z13", write=["png"])
    for channels, bits in ((1, 8), (2, 8), (3, 8), (4, 8), (3, 16)):
        case("png-repeats", picture("tiles", 70, 40, channels, bits), "identity", "Z10 Z11 Z12 Z13 Z14", write=["png"])
    rules = "Z6 Z10 Z11 Z12 Z13 Z14"
    for i in range(4):
        case("png-repeats", picture("words", 61 + i, 40 + i % 2, 1 + i), "identity", rules, write=["png"])
        case("png-repeats", picture("rare", 60 + i, 47, 1 + i), "identity", rules, write=["png"])
    # Here a bound that is 1 off shows: that of Z12, and the block's beginning in Z13.
    for kind, width, height, channels, seed in (("words", 43, 47, 1, 1040), ("rare", 48, 52, 2, 1045),
                                                ("words", 57, 47, 2, 1017), ("words", 70, 37, 3, 1030)):
        case("png-repeats", picture(kind, width, height, channels, seed=seed), "identity", rules, write=["png"])
    case("png-repeats", picture("words", 150, 150, 3), "identity", "Z5 Z10 Z12 Z13", write=["png"])
    case("png-repeats", picture("tiles", 90, 33, 3), "blur", "Z10 Z11 Z12 Z13 Z14", write=["png"])
    case("png-repeats", picture("noise", 20, 15, 3), "resize:80x60:exact:box", "Z10 Z11 Z12 Z13 Z14", write=["png"])
    case("png-blocks", picture("blocks", 150, 160, 3), "identity", "Z5 Z12 Z13", write=["png"])
    case("png-blocks", picture("smooth", 160, 140, 3), "identity", "Z5 Z12", write=["png"])
    case("png-bands", picture("plain", 30, 20, 1), "resize:1100x500:exact:box", "Z2 Z5", write=["png"])
    case("png-bands", picture("plain", 3, 2, 1), "resize:520x1050:exact:box", "Z2 Z5", write=["png"])
    for channels, bits in ((1, 8), (3, 8), (4, 16), (2, 8)):
        case("png-stored", picture("noise", 31, 20, channels, bits), "identity", write=["png"], compression=0)
    case("png-stored", picture("smooth", 160, 140, 3), "identity", "Z4", write=["png"], compression=0)
    case("png-stored", picture("smooth", 520, 345, 3), "identity", "Z2 Z4", write=["png"], compression=0)
    case("png-places", picture("words", 64, 20, seed=5069), "identity", "Z8 Z9", write=["png"])
    case("png-places", picture("words", 45, 5, 4, seed=53357), "identity", "Z9", write=["png"])
    case("png-places", picture("dots", 32, 19, 3, seed=4577), "identity", "Z12", write=["png"])
    case("png-places", picture("words", 97, 34, 1, 16, seed=3022), "identity", "Z15", write=["png"])
    for chain in ("sharpen", "gaussian:2", "crop:50%", "sobel"):
        case("png", picture("smooth", 44, 33, 3), chain, write=["png"])


def readings():
    """Places of the text that somebody read in two ways, or that no vector reached."""
    for bits in (8, 16):
        # Rounded by N4, the offset is a half; exact it is less, and 1 is not added.
        parses("offset 0.49999990000000000001\n1 1 -1\n", "F3 N2 N4", bits)
        parses("offset -0.50000010000000000001\n1\n", "F3 N2 N4", bits)
        parses("offset 0.4999999\n1 1 -1\n", "F3 N2", bits)
        for combine in ("magnitude", "max", "sum"):
            parses(f"combine {combine}\noffset 0.4999999\n1\n---\n0\n", "F5 T4", bits)
            parses(f"combine {combine}\noffset -0.50000005\n1\n---\n0\n", "F5 T4", bits)
        # 3 v and 4 v make 5 v, which lies between two levels where v is odd.
        parses("combine magnitude\nscale 2\n3\n---\n-4\n", "F5 C7", bits)
        parses("combine magnitude\nscale 26\noffset -3\n-5\n---\n12\n", "F5 C7", bits)
        parses("1,-2,3\n", "F4 T1", bits)
        parses("1, 2, 1\n", "F4 T1", bits)
        parses("-1.,2., .5 ,\n", "F4 T1", bits)
        parses(" \t2 ;3 ; -1\t ;\t\n", "F4 T1", bits)
        parses("1 2\r", "F1 T1", bits)
        parses("# \u20ac\r\n1 2\r\n3 4\r", "F1 T1", bits)
        for radius in ("1e-3", "1e-160", "1e-200", "0.49"):
            case("small-disk", picture("noise", 6, 5, 1, bits), f"disk:{radius}")
        for spec in ("resize:7x5:exact:nearest", "resize:31x20:exact:nearest", "resize:6x:nearest",
                     "resize:50%:nearest", "resize:300%:nearest", "cover:4x9:nearest:top", "thumbnail:5x5:nearest"):
            case("nearest", picture("noise", 12, 9, 3, bits), spec)
            case("nearest", picture("noise", 10, 12, 4, bits, "mixed"), spec, "A4")
        case("nearest", picture("noise", 9, 7, 2, bits, "mixed"), "resize:5x5:exact:nearest", "A1", alpha="keep")
        case("nearest", picture("noise", 9, 7, 4, bits, "mixed"), "resize:18x11:exact:nearest,blur", "A4 L2", linear=True)
        case("nearest", picture("noise", 9, 7, 4, bits, "mixed"), "resize:5x11:exact:nearest", "A4", border="zero")
        for spec in ("resize:5x:enlarge:enlarge", "resize:20x16:enlarge:cubic:enlarge", "cover:5x5:enlarge",
                     "cover:12x5:cover:box:bottom:enlarge", "pad:12x11:White", "pad:11x12:BLACK", "pad:12x12:#AbC",
                     "resize:4x4:exact:10x8", "resize:5x5:10x8,sharpen", "cover:5x5:left:10x8"):
            case("words", picture("noise", 10, 8, 3, bits), spec)
    # The largest |e| of some pixel is the threshold: with < it is sharpened.
    for channels, bits, seed, threshold in ((3, 8, 11, "1.328125"), (1, 8, 12, "0.125"), (3, 16, 13, "2.87109375"),
                                            (1, 16, 14, "0.47265625")):
        case("threshold", picture("smooth", 14, 12, channels, bits, seed=seed), f"unsharp:1:1:{threshold}")
    for text in ("1,2, 1\n", "1,2 ,1\n", "1,2 1\n", "1\r\r\n", "\r1 2\n"):
        case("text-read", picture("noise", 5, 4), None, "F4" if "," in text else "F1", text=text, refused=True)
    for spec in ("crop:4x4:left:left", "cover:5x5:left:left", "cover:5x5:box:box", "resize:5x5:exact:9x8",
                 "resize:5x5:10x8:exact", "resize:5x5:10x", "resize:5x5:Exact", "pad:12x12:#12345G"):
        case("words-refused", picture("noise", 10, 8), spec, "M2" if spec[0] == "c" else "R1", refused=True)


def from_files():
    """P4, P5: files whose samples are not those of the picture."""
    def add(data, width, height, channels, bits, chain, rule, **more):
        source = picture("file", width, height, channels, bits, file=data.hex())
        case("file", source, chain, rule, **more)
    levels = bytes(number(7, i) >> 24 for i in range(700))
    for maxval in (1, 2, 7, 100, 254, 256, 1000, 65534):
        size = 1 if maxval < 256 else 2
        data = b"".join((number(maxval, i) % (maxval + 1)).to_bytes(size, "big") for i in range(60))
        add(b"P5 10 6 %d\n" % maxval + data, 10, 6, 1, 8 * size, "identity" if maxval % 2 else "blur", "P4")
        add(b"P7\nWIDTH 5\nHEIGHT 3\nDEPTH 4\nMAXVAL %d\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % maxval + data, 5, 3, 4,
            8 * size, "identity", "P4")
    add(b"P5 2 2 9\n" + bytes((1, 9, 10, 0)), 2, 2, 1, 8, "identity", "P4", refused=True)
    for bits in (1, 2, 4):
        stride = (11 * bits + 7) // 8
        rows = unfiltered(levels[:7 * stride], stride)
        add(png(11, 7, 1, bits, rows, level=0), 11, 7, 1, 8, "identity", "P5")
        key = chunk(b"tRNS", struct.pack(">H", (1 << bits) + 1))  # the high bits say nothing
        add(png(11, 7, 1, bits, rows, chunks=key, level=0), 11, 7, 2, 8, "identity", "P5")
        for colours, alpha in (((1 << bits) - 1, b""), (1 << bits, bytes(range(9, 9 + bits)))):
            chunks = chunk(b"PLTE", levels[100:100 + 3 * colours]) + (chunk(b"tRNS", alpha) if alpha else b"")
            add(indexed(11, 7, bits, rows, chunks), 11, 7, 4 if alpha else 3, 8, "box:1" if bits == 4 else "identity",
                "P5")
    chunks = chunk(b"PLTE", levels[:3 * 200]) + chunk(b"tRNS", levels[50:120])
    add(indexed(12, 9, 8, unfiltered(levels[150:258], 12), chunks), 12, 9, 4, 8, "resize:5x5:exact", "P5 A8")
    for bits in (8, 16):
        data = levels[:24 * bits]
        pixel = data[27 * bits // 8:30 * bits // 8]  # 3 samples
        key = chunk(b"tRNS", pixel if bits == 16 else b"".join(bytes((1, v)) for v in pixel))
        add(png(8, 8, 3, bits, unfiltered(data, 3 * bits), chunks=key, level=0), 8, 8, 4, bits, "identity", "P5")
        add(png(8, 8, 1, bits, unfiltered(data[:8 * bits], bits), chunks=chunk(b"tRNS", key[8:10]), level=0), 8, 8, 2,
            bits, "identity", "P5")


def indexed(width, height, bits, rows, chunks):
    """A PNG with a palette."""
    data = png(width, height, 1, bits, rows, chunks=chunks, level=0)
    return data[:8] + chunk(b"IHDR", data[16:25] + bytes((3, 0, 0, 0))) + data[33:]


def pillow():
    names = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
    kernels = [f"pillow-{name}" for name in names + ("mks2013", "mks2021")] + [f"pillow12-{name}" for name in names]
    # The rows come first, the columns do, both are as good, one side stays, and both sides grow.
    sizes = ((31, 20, "9x13:exact"), (20, 31, "17x5:exact"), (12, 14, "11x12:exact"), (9, 40, "9x7:exact"),
             (40, 7, "11x7:exact"), (7, 5, "23x31:exact"))
    for i, kernel in enumerate(kernels):
        for width, height, size in sizes:
            kind = "extremes" if width == 20 else "noise"
            case("pillow", picture(kind, width, height, 1 + (i + width) % 2 * 2), f"resize:{size}:{kernel}")
        for channels, opacity in ((2, "mixed"), (4, "mixed"), (4, "opaque")):
            case("pillow-alpha", picture("noise", 17, 13, channels, 8, opacity), f"resize:7x9:exact:{kernel}", "K9")
        case("pillow-long", picture("noise", 700, 2), f"resize:{3 + i}x2:exact:{kernel}")
    for alpha in ("keep", "filter"):
        case("pillow-alpha", picture("noise", 12, 11, 4, 8, "mixed"), "resize:5x5:exact:pillow-lanczos", "K9", alpha=alpha)
    case("pillow-alpha", picture("noise", 9, 8, 4, 8, "mixed"), "resize:9x8:exact:pillow-bicubic", "K9")
    case("pillow-alpha", picture("noise", 9, 8, 2, 8, "mixed"), "resize:30x30:pillow-bicubic", "K9 R3")
    for chain in ("resize:5x6:exact:pillow-bicubic,gaussian:1", "sharpen,resize:5x6:exact:pillow-lanczos",
                  "resize:6x6:exact,resize:4x3:exact:pillow-box,edge"):
        case("pillow-chain", picture("noise", 12, 10, 4, 8, "mixed"), chain, "K9 O3 O4")
    case("pillow-chain", picture("noise", 12, 10, 3, 16), "resize:5x6:exact:pillow-bicubic", depth=8)
    for width, height, spec in ((41, 30, "resize:17x17:cover:enlarge:pillow-bicubic"), (30, 43, "resize:11x:pillow-box"),
                                (30, 43, "resize:x11:pillow-box"), (33, 47, "resize:37%:pillow12-bilinear"),
                                (9, 5, "resize:20x20:enlarge:pillow-bilinear"), (50, 3, "resize:4x9:pillow-lanczos")):
        case("pillow-size", picture("noise", width, height, 3), spec)
    for width, height in ((41, 30), (30, 43), (37, 44), (44, 39), (13, 12)):
        case("pillow-crop", picture("noise", width, height, 3), "cover:12x11:pillow-bilinear")
        case("pillow-crop", picture("noise", width, height, 3), "crop:10x10:torchvision", "K10")
        case("pillow-crop", picture("noise", width, height, 3), "cover:11x12:pillow12-box:left:torchvision")
        case("pillow-crop", picture("noise", width, height), "crop:9x8:torchvision:bottom", "K10")
    for spec in ("resize:5x5:pillow", "resize:5x5:pillow-triangle", "resize:5x5:pillow12-mks2013", "resize:5x5:pillow13-box",
                 "resize:5x5:pillow-box:box", "crop:5x5:Torchvision", "crop:5x5+1+1:torchvision"):
        case("pillow-refused", picture("noise", 10, 8), spec, "K10" if spec[0] == "c" else "K1", refused=True)
    case("pillow-refused", picture("noise", 10, 8, 1, 16), "resize:5x5:pillow-box", "K1", refused=True)
    case("pillow-refused", picture("noise", 10, 8), "resize:5x5:pillow-box", "K1", refused=True, linear=True)
    case("pillow-refused", picture("noise", 16385, 1), "resize:1x1:exact:pillow-box", "K2", refused=True)
    case("pillow-refused", picture("noise", 16385, 1), "resize:2x1:exact:pillow-bicubic", "K2", refused=True)
    case("pillow-long", picture("blocks", 16384, 1), "resize:1x1:exact:pillow12-box")


# ---- Calls of the function ----

CALLS = []


def call(group, source, kernel, size, rules, refused=False, **arguments):
    """Add a call of pillow_resize, as case() does."""
    name = f"{group}-{sum(other['id'].rpartition('-')[0] == group for other in CALLS) + 1}"
    source = source | {"seed": zlib.crc32(name.encode()) % 65536}
    made = {"id": name, "rules": ["K1", *sorted(rules.split(), key=lambda rule: int(rule[1:]))],
            "input": source, "kernel": kernel, "size": list(size)}
    CALLS.append(made | arguments | ({"refused": True} if refused else {}))


def calls():
    names = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
    kernels = [f"pillow-{name}" for name in names + ("mks2013", "mks2021")] + [f"pillow12-{name}" for name in names]
    boxes = ([1.25, 0, 28.5, 19.75], [3, 2, 14, 20], [30.9, 0.1, 31, 20], [0, 12, 31, 13.5])
    for i, kernel in enumerate(kernels):
        has_sine = kernel.endswith(("hamming", "lanczos"))
        rules = " K8" if kernel.endswith("nearest") else " K2 K3" + " K4" * has_sine + " K5 K6 K7"
        for box, size in zip(boxes, ((9, 13), (11, 18), (4, 3), (31, 7))):
            channels = (i + size[0]) % 4 + 1
            call("box", picture("noise", 31, 20, channels), kernel, size, "K9 K11" + rules, box=box)
        for k, gap in enumerate((1, 1.5, 2.75)):
            source = picture("noise", 41, 50, (i + k) % 4 + 1)
            call("gap", source, kernel, (6, 5 + k), "K9 K11 K12" + rules, box=[0.5, 3.25, 40, 49 + 0.25 * k],
                 reducing_gap=gap)
        for bits in (16, 32):
            call("mode", picture("noise", 19, 23, 1, bits), kernel, (7 + i, 9), "K11 K13" + rules, box=[0.3, 2, 18.9, 22.5])
            call("mode", picture("extremes", 23, 19, 1, bits), kernel, (9, 30), "K13" + rules)
        call("mode-gap", picture("noise", 33, 29, 1, 32), kernel, (5, 4), "K11 K12 K13" + rules, box=[0, 1, 32.5, 28],
             reducing_gap=1)
    for bits in (16, 32):  # output 2 of 5, and 15 of 31: the sum of K8 errs, and the product of K13 does not
        for word in ("pillow", "pillow12"):
            call("nearest", picture("noise", 14, 22, 1, bits), f"{word}-nearest", (5, 31), "K8 K13")
    for box in ([-0.5, 0, 9, 8], [0, 0, 10.001, 8], [4, 0, 4, 8], [5, 3, 6, 2]):
        call("refused", picture("noise", 10, 8), "pillow-box", (3, 3), "K11", refused=True, box=box)
    call("refused", picture("noise", 10, 8), "pillow-box", (3, 3), "K12", refused=True, reducing_gap=0.99)
    call("refused", picture("noise", 10, 8, 1, 16), "pillow-box", (3, 3), "K12 K13", refused=True, reducing_gap=1)
    call("refused", picture("noise", 10, 8, 3, 16), "pillow-box", (3, 3), "K13", refused=True)


def call_lines():
    """The lines of pillow.jsonl."""
    from pixels import digest as digest_of, resized
    results = ({} if made.get("refused") else {"samples": digest_of(resized(made))} for made in CALLS)
    return [json.dumps(made | result) for made, result in zip(CALLS, results)]


def points():
    # All levels of 8 bits, and noise of 16.
    for spec in ("levels:10:245", "levels:2%:98%:1.3", "levels:1/3:99.9%:0.45", "gamma:2.2", "gamma:0.1", "gamma:10",
                 "gamma:1", "brightness:10", "brightness:-33.3%", "contrast:20", "contrast:-100", "contrast:777.77",
                 "saturation:30", "saturation:-100", "saturation:1000", "saturation:-12.345678", "threshold:50",
                 "threshold:100%", "threshold:1/3", "posterize:2", "posterize:5", "posterize:1e2", "tint:#ff8000",
                 "tint:#abc", "tint:White", "swap:BGR", "swap:GGR", "grey", "invert", "sepia"):
        for bits in (8, 16):
            case("point", picture("noise", 32, 24, 3, bits), spec)
    for spec in ("invert", "levels:20:200:1.5", "posterize:3", "contrast:15", "brightness:7.77"):
        case("point", picture("noise", 23, 11), spec)
        case("point-alpha", picture("noise", 23, 11, 2, 16, "mixed"), spec, "Q9")
    for spec in ("grey", "sepia", "saturation:50", "invert", "threshold:30", "levels:5%:80%:0.7", "tint:#08f", "posterize:4"):
        case("point-linear", picture("noise", 17, 13, 3), spec, "Q9", linear=True)
        case("point-linear", picture("noise", 9, 8, 4, 16, "mixed"), spec, "Q9", linear=True)
        for alpha in ("premultiply", "keep", "filter"):
            case("point-alpha", picture("noise", 11, 9, 4, 8, "mixed"), spec, "Q9", alpha=alpha)
    for chain in ("levels:10:200,gaussian:1.5,saturation:30", "invert,sharpen", "resize:50%,grey", "sepia,turn:90,gamma:2",
                  "blur,contrast:50,posterize:4,swap:GRB"):
        case("point-chain", picture("noise", 14, 12, 3), chain)
        case("point-chain", picture("noise", 14, 12, 4, 8, "mixed"), chain, "Q9")
        case("point-chain", picture("noise", 14, 12, 4, 16, "mixed"), chain, "Q9", linear=True)
    case("point-chain", picture("noise", 14, 12, 3), "resize:50%,invert", "Q9", border="zero")
    table = "\n".join(str((37 * i * i + 11) % 256) for i in range(256))
    texts = {
        "Q2": ("matrix\n1/3 1/3 1/3\n", "matrix\n0.3 0.6 0.1 12.5\n", "matrix\n.5 0 0 .5 -3\n0 .5 0 .5 0\n0 0 1 0 1/7\n",
               "matrix\n1 0 0 0\n0 1 0 0\n0 0 1 0\n.2 .7 .1 0\n", "matrix\n1 0 0 0 1\n0 1 0 0 2\n0 0 1 0 3\n0 0 0 -1 255\n",
               "matrix\n3.14159265358979 -2.71828182845904523 0.333333333333333333333 -0.1234567890123456789\n",
               "matrix\n-1 0 0 255\n0 2 -1 0\n0 0 1 1e-3\n", "matrix\n100000 -100000 1e-9\n"),
        "Q3 Q4 Q5": ("title x\ncurve\n0 0\n128 200\n255 255\n", "curve red\n10% 90%\n90%, 10%\ncurve blue green\n0;1/3\n255;2.5\n",
                     "curve steps\n9.5 77\n100 3\n100.0001 255\n201.125 0.49\n", "curve\n1/257 0\n2/257 100%\n",
                     f"table\n{table}\n", f"table blue\n{table.replace(chr(10), ' ')}\ntable red\n{table}\n",
                     "curve alpha\n0 40%\n255 80%\n", "matrix\n.2 .3 .5\ncurve\n0 255\n120 3\n255 99\n",
                     "curve\n0.12345678901234567890123 0\n254.99999999999999999999999 254.99999999999999999999999\n"),
        "Q3 Q4 Q5 Q6": ("curve smooth\n0 0\n64 40\n192 220\n255 255\n", "curve smooth\n0 255\n50 10\n100 10\n101 11\n200 254\n",
                        "curve green smooth\n20 30\n20.0001 30.0001\n21 200\n22 30\n", "curve smooth\n3 9\n250 11\n",
                        "curve smooth blue red\n0 1\n1 0\n2 255\n3 254.5\n255 3\n"),
        "Q3 Q4 Q5 Q7": ("curve gamma 2.2\n0 0\n100 50\n255 255\n", "curve red gamma 1/3\n5 255\n250 0\n",
                        "curve gamma 9.99\n1 2\n3 250\n250 1\n"),
        "Q2 Q3 Q4 Q5": ("matrix\n.2 .3 .5\ncurve red\n0 9\n255 200\ncurve blue steps\n0 30\n99 255\n",),
    }
    for rules, several in texts.items():
        for text in several:
            for channels, bits, opacity in ((3, 8, None), (3, 16, None), (4, 8, "mixed"), (4, 16, "opaque"), (1, 16, None)):
                if channels > 1 or "matrix" not in text and "red" not in text and "green" not in text and "blue" not in text:
                    case("point-text", picture("noise", 21, 17, channels, bits, opacity), None,
                         f"Q1 Q8 {rules}" + " Q9" * (channels == 4), text=text)
    refused = {
        "Q1": ("1 2 1\nmatrix\n1 0 0\n", "matrix\n1 0 0\ntitle x\n", "scale 2\nmatrix\n1 0 0\n", "curve\n0 0\n---\n9 9\n",
               "matrix\n1 0 0\nmatrix\n1 0 0\n", "curve red\n0 0\n9 9\nmatrix\n1 0 0\n", "matrix red\n1 0 0\n"),
        "Q2": ("matrix\n1 0 0\n0 1 0\n", "matrix\n1 0\n", "matrix\n1 0 0 0 0 0\n", "matrix\n1 0 0\n1 0 0\n1 0 0\n1 0 0\n",
               "matrix\n1 0 0\n1 0 0 0\n1 0 0\n", "matrix\n1 0 0 65536\n", "matrix\n9e6 0 0\n", "matrix\n", "matrix\n5% 0 0\n"),
        "Q3": ("curve\n0 0\n", "curve\n0 0 0\n9 9 9\n", "curve gamma\n0 0\n9 9\n", "curve gamma 11\n0 0\n9 9\n",
               "curve red gamma 1%\n0 0\n9 9\n", "curve smooth steps\n0 0\n9 9\n", "curve grey\n0 0\n9 9\n", "table\n1 2 3\n",
               f"table\n{table}\n1\n", "table smooth\n", "curve\n0 0\n9 9\ncurve blue\n0 0\n9 9\n",
               "curve\n" + "".join(f"{i}/2 {i}/2\n" for i in range(257))),
        "Q4": ("curve\n0 0\n9 9\n9 10\n", "curve\n0 0\n9 9\n5 10\n", "curve\n0 0\n256 3\n", "curve\n0 0\n9 -1\n",
               "curve\n0 0\n101% 3\n", "curve\n0 0\n1 2\n1.00000001 3\n", "curve\n0 0\n9 5%%\n", "curve\n0 0\n9 %\n"),
    }
    for rule, several in refused.items():
        for text in several:
            case("point-refused", picture("noise", 5, 4, 3), None, rule, text=text, refused=True)
    for spec in ("levels:1", "levels:5:5", "levels:9:3", "levels:0:256", "levels:0:255:1%", "levels:0:255:1:1", "gamma:0", "gamma:11",
                 "gamma:2%", "brightness:101", "brightness:", "contrast:-101", "saturation:1001", "threshold:0", "threshold:100.1",
                 "posterize:1", "posterize:129", "posterize:2.5", "posterize:4%", "tint:red", "swap:RGBA", "swap:bgr", "sepia:50"):
        case("point-refused", picture("noise", 5, 4, 3), spec, "Q10", refused=True)


def regions():
    places = ("7x5+2+3", "50%x25%+10%+33.3%", "30x30-4-5", "5x100+8-50", "100%x1+0+7", "1x1+0+0", "12.5%x99.9%-0.1%+0",
              "250%x7-3%+1", "20/3%x1000%+50%-20", "1e1x2e0+0+0", "3x3+10+8")
    specs = ("gaussian:2", "sharpen", "box:3", "sobel", "unsharp:1.5:2:3", "pixelate:4", "auto-levels:5", "invert",
             "auto-contrast", "saturation:40", "shift")
    for i, place in enumerate(places):
        for k in range(3):
            spec = specs[(i + 4 * k) % len(specs)]
            source = picture("noise", 13, 10, *((3, 8), (1, 16), (4, 8, "mixed"))[k])
            case("region", source, f"{spec}@{place}", border=BORDERS[(i + k) % 5])
    for channels, opacity in ((3, None), (4, "mixed"), (2, "opaque")):
        for alpha in ("premultiply", "keep", "filter"):
            for chain in ("gaussian:1@8x6+2+2,sharpen", "blur,pixelate:3@50%x50%+25%+25%,auto-levels:1@9x9+0+0",
                          "box:2@5x5+1+1,box:2@5x5+7+1,edge@3x3+0+0"):
                case("region-chain", picture("noise", 14, 11, channels, 8, opacity), chain, alpha=alpha)
                case("region-chain", picture("smooth", 14, 11, channels, 16, opacity), chain, alpha=alpha, linear=True)
    case("region-chain", picture("noise", 14, 11, 3), "resize:150%:enlarge,blur@50%x50%+0+0,crop:9x9,invert@4x4+1+1")
    case("region-chain", picture("noise", 14, 11, 3), "turn:90,pixelate:5@100%x50%+0+0,mirror:x")
    for spec in ("gaussian:2", "sobel", "pixelate:3", "auto-levels:2", "sharpen,blur", "saturation:50,gaussian:1"):
        for kind in ("noise", "extremes", "smooth"):
            for channels, bits, opacity in ((3, 8, None), (1, 16, None), (4, 8, "mixed"), (2, 16, "mixed")):
                if channels > 2 or "saturation" not in spec:
                    case("mask", picture(kind, 12, 9, channels, bits, opacity), spec, mask=True)
        case("mask", picture("noise", 12, 9, 4, 8, "mixed"), spec, mask=True, linear=True)
    for side in ("1", "2", "3", "5", "12", "4096", "7e0"):
        for channels, bits, opacity in ((3, 8, None), (1, 16, None), (4, 8, "mixed"), (4, 16, "opaque")):
            case("pixelate", picture("noise", 17, 13, channels, bits, opacity), f"pixelate:{side}")
    for alpha in ("keep", "filter"):
        case("pixelate", picture("noise", 17, 13, 4, 8, "mixed"), "pixelate:4", "A1", alpha=alpha)
    case("pixelate", picture("noise", 17, 13, 4, 8, "mixed"), "pixelate:4", border="zero")
    case("pixelate", picture("noise", 17, 13, 3), "pixelate:4", linear=True)
    case("pixelate", picture("noise", 17, 13, 3), "resize:50%,pixelate:3", border="zero")
    for clip in ("", ":0", ":0.5", ":2.25%", ":1/3", ":30", ":49", ":0.1234567890123"):
        for word in ("auto-levels", "auto-contrast"):
            for kind, channels, bits, opacity in (("smooth", 3, 8, None), ("smooth", 1, 16, None), ("noise", 4, 8, "mixed"),
                                                  ("blocks", 2, 16, "mixed"), ("plain", 3, 8, None)):
                case("automatic", picture(kind, 15, 13, channels, bits, opacity), word + clip)
            case("automatic", picture("smooth", 9, 8, 3), word + clip, linear=True)
    case("automatic", picture("blocks", 20, 16, 4, 8, "mixed"), "gaussian:1,auto-levels,pixelate:3,sharpen")
    case("automatic", picture("smooth", 15, 13, 3), "auto-contrast:1,crop:5x5+0+0")
    for bits in (8, 16):
        for chain in ("grey,blur", "sepia,grey", "grey,sepia", "grey@5x5+1+1", "threshold:50,pixelate:3", "grey,pad:12x11:#ff0000",
                      "grey,pad:12x11:#808080", "saturation:-100", "swap:GGG", "swap:BGR,invert"):
            for channels, opacity in ((3, None), (4, "mixed")):
                case("channels", picture("noise", 9, 8, channels, bits, opacity), chain, "S7 S8")
        for chain in ("sepia", "blur,sepia", "sepia@3x3+1+1", "tint:#0af,grey", "pad:12x11:#ff0000,sepia", "sepia,pad:12x11:#ff0000",
                      "pad:12x11:#ff0000", "grey", "saturation:50", "swap:BGR"):
            for channels, opacity in ((1, None), (2, "mixed")):
                case("channels", picture("noise", 9, 8, channels, bits, opacity), chain, "S7 S8")
        case("channels", picture("noise", 9, 8, 1, bits), "sepia", "S7 S8", mask=True)
        case("channels", picture("noise", 9, 8, 3, bits), "grey", "S7 S8", mask=True)
    refuses({"S1": "blur@5x5 blur@ blur@x5+1+1 blur@5x5+1 blur@5x5+1+1+1 blur@-5x5+1+1 blur@5.5x5+1+1 blur@5x5+1.5+1 blur@1001%x5+0+0 "
                   "blur@100001x5+0+0 blur@5x5+-1+1 blur@5%%x5+0+0 blur@.5x5+0+0 crop:5x5@5x5+0+0 resize:50%@5x5+0+0 turn:90@5x5+0+0 "
                   "blur@1/3333333333%x5+0+0 blur@5x5+1+1@5x5+1+1",
             "S3": "blur@5x5+10+0 blur@5x5+0+8 blur@5x5-5+0 blur@5x5+0-5 blur@0x5+0+0 blur@5x0%+0+0 blur@1%x5+0+0",
             "S5": "pixelate:0 pixelate:4097 pixelate:2.5 pixelate:3% pixelate pixelate:3:3",
             "S6": "auto-levels:50 auto-levels:-1 auto-levels:1:1 auto-contrast:x auto-levels: auto-contrast:49.01%"})


def ranks():
    cross, corner = "0 1 0\n1 1 1\n0 1 0\n", "1 1 0 0\n0 1 0 1\n"
    for bits in (8, 16):
        for spec in ("median", "median:1", "median:2", "median:3.9:disk", "rank:1:0", "rank:2:37.5%", "rank:2:1/3:disk", "rank:1:100",
                     "rank:1:99.99999999999999999999", "erode:2", "dilate:3:disk", "open:1", "close:2:disk", "tophat:2", "blackhat:1:disk",
                     "outline:1", "median:63"):
            case("rank", picture("noise", 13, 11, 3 if bits == 8 else 1, bits), spec)
        case("rank", picture("dots", 21, 17, 1, bits), "open:1.5:disk,close:2,median:1")
        for text, rules in ((f"combine median\n{cross}", ""), (f"combine minimum\nanchor 3 0\n{corner}", "F7"),
                            (f"title most\ncombine maximum\n{corner}", "F3"), (f"combine rank 60%\nanchor 0 1\n{corner}", "F7"),
                            (f"combine rank 1/3%\n{cross}", "N3"), ("combine rank 0.12345678901234567890123%\n1.0, 2/2, 0\n", "N2 N4"),
                            ("combine median\n3 3\n".replace("3", "1"), ""), ("anchor 2 0\ncombine rank 100%\n1 0 0\n", "F7")):
            case("rank-text", picture("noise", 12, 9, 1, bits), None, f"F2 F4 U1 U2 U3 {rules}", text=text)
        case("rank-text", picture("noise", 12, 9, 1, bits), None, "T5 U1 U3", text=f"combine rank 60%\nanchor 0 1\n{corner}", flip=True,
             **{"abs": True})
    for border in BORDERS:
        for spec in ("median:2", "rank:3:70:disk", "open:2", "blackhat:2", "outline:3", "tophat:1:disk"):
            case("rank-border", picture("noise", 7, 5, 3), spec, border=border)
        case("rank-border", picture("noise", 2, 1, 1, 16), "close:3", border=border)
        for alpha in ("premultiply", "keep", "filter"):
            for spec in ("rank:1:30", "open:1", "blackhat:1"):
                way = {"keep": "A1", "filter": "A2"}.get(alpha, "A4 A5" if spec[0] == "b" or border == "zero" else "A4 A7")
                case("rank-alpha", picture("noise", 9, 7, 4, 8, "mixed"), spec, f"U6 {way}", border=border, alpha=alpha)
    for channels, bits, opacity in ((2, 16, "mixed"), (4, 16, "mixed"), (4, 8, "opaque"), (3, 16, None), (1, 8, None), (4, 8, "mixed")):
        for spec in ("median:1", "close:1:disk", "outline:1"):
            case("rank-light", picture("smooth", 9, 8, channels, bits, opacity), spec, "U6", linear=True)
    case("rank-light", picture("noise", 9, 8, 4, 8, "mixed"), "median:1,blur,tophat:2,sharpen", "U6 A4", linear=True)
    case("rank-chain", picture("noise", 14, 11, 4, 8, "mixed"), "median:1@8x6+2+2,sepia,gaussian:1,erode:1,resize:7x", "O4 A4")
    case("rank-chain", picture("noise", 14, 11, 3), "turn:90,outline:1@50%x50%+25%+25%,dilate:1", "O3")
    for spec in ("median:2", "tophat:1"):
        case("mask", picture("noise", 12, 9, 4, 8, "mixed"), spec, mask=True)
    refused = ("combine median\n0 0\n", "combine median\n1 2\n", "combine rank\n1 1\n", "combine rank 25\n1 1\n", "combine rank 101%\n1\n",
               "combine rank -1%\n1\n", "combine rank 25 %\n1\n", "combine median 25%\n1\n", "combine median\n1\n---\n1\n",
               "scale 2\ncombine median\n1\n", "combine maximum\noffset 0\n1\n", "abs\ncombine minimum\n1\n", "combine average\n1\n",
               "combine median\n0.5 1\n", "combine median\n1 1\n1\n", "combine median\nanchor 2 0\n1 1\n", "combine median\n1.00000000000000000000001\n")
    for text in refused:
        case("rank-refused", picture("noise", 5, 4), None, "U1", text=text, refused=True)
    refuses({"U4": "median:0 median:64 median:2.5 median:1:1 median: median:2:square erode:0.5:disk erode:63.5:disk rank:2 rank rank:2:101 "
                   "rank:2:-1 rank:2:3:4 open outline:disk erode:1:disk:disk minimum:1"})
    refuses({"A9": "resize:4x,median"}, border="zero")


def srgb():
    """The pictures have no profile, so they are of sRGB."""
    for channels, bits in ((3, 8), (4, 16), (1, 8)):
        case("srgb", picture("noise", 9, 8, channels, bits, "mixed" if channels == 4 else None), "to-srgb", "Q11")
    refuses({"Q11": "to-srgb:1 to-srgb: to-srgb@5x5+0+0"})


def make_cases():
    for make in (texts, built_ins, borders, generated, resizes, moves, alphas, lights, orders, jpegs, pngs, readings,
                 from_files, pillow, points, regions, ranks, srgb):
        make()


# ---- Results ----

def digest(data):
    """H1 of a PAM as gpuconv writes it."""
    head, _, body = data.partition(b"ENDHDR\n")
    *shape, maxval = (int(re.search(rf"{word} (\d+)".encode(), head)[1]) for word in ("WIDTH", "HEIGHT", "DEPTH", "MAXVAL"))
    return hashlib.sha256(struct.pack(">4I", *shape, maxval.bit_length()) + body).hexdigest()


class Runner:
    """Runs jobs in one process of PROGRAM, in a folder of its own."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, jobs):
        """The answers to JOBS, by their ids."""
        lines = "".join(json.dumps(job) + "\n" for job in jobs)
        done = subprocess.run([self.program, "-q", "--jobs-from", "-"], input=lines, capture_output=True, text=True,
                              cwd=self.folder)
        answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
        assert len(answers) == len(jobs), done.stderr
        return answers

    def write_input(self, made):
        """Write the input of a case. Returns its name, and the job that makes a JPEG of it or None."""
        name, source = made["id"], made["input"]
        if "mask" in made:
            levels = {"kind": source["kind"], "width": source["width"], "height": source["height"], "channels": 1, "bits": 16}
            (self.folder / f"{name}.mask.pam").write_bytes(pam(levels | {"seed": made["mask"]}))
        if "file" in source:
            (self.folder / f"{name}.in").write_bytes(bytes.fromhex(source["file"]))
            return f"{name}.in", None
        if "orientation" in source or "gamma" in source or "cicp" in source:
            (self.folder / f"{name}.in.png").write_bytes(png_with_chunks(source))
            return f"{name}.in.png", None
        (self.folder / f"{name}.in.pam").write_bytes(pam(source))
        if "file_quality" not in source:
            return f"{name}.in.pam", None
        options = {key: str(source[f"file_{key}"]) for key in ("quality", "subsampling")}
        return f"{name}.in.jpg", {"id": name, "filter": "identity", "input": f"{name}.in.pam",
                                  "output": f"{name}.in.jpg"} | options

    def job(self, made, source, suffix):
        only = {"jpg": ("quality", "subsampling", "background"), "png": ("compression",)}
        left_out = {option for other, options in only.items() if other != suffix for option in options}
        options = {key: value if value is True else str(value)
                   for key, value in made.get("options", {}).items() if key not in left_out}
        if "text" in made:
            (self.folder / f"{made['id']}.txt").write_bytes(made["text"].encode())
        chain = made.get("filter", f"./{made['id']}.txt")
        if "mask" in made:
            chain = ",".join(f"{spec}@{made['id']}.mask.pam" for spec in chain.split(","))
        return {"id": f"{made['id']}.{suffix}", "filter": chain, "input": source,
                "output": f"{made['id']}.{suffix}"} | options

    def results(self, cases):
        """CASES with their results."""
        sources, first, second = {}, [], []
        for made in cases:
            sources[made["id"]], job = self.write_input(made)
            first += [job] if job else []
        self.run(first)
        suffixes = {"png": "png", "jpeg": "jpg"}
        for made in cases:
            for suffix in ["pam"] + [suffixes[kind] for kind in made.get("write", ())]:
                second.append(self.job(made, sources[made["id"]], suffix))
        answers = self.run(second)
        for made in cases:
            result = {key: value for key, value in made.items() if key != "write"}
            if made.get("refused"):
                if answers[f"{made['id']}.pam"]["status"] != "failed":
                    print(f"{made['id']} is not refused")
            else:
                for suffix in ["pam"] + [suffixes[kind] for kind in made["write"]]:
                    if answers[f"{made['id']}.{suffix}"]["status"] != "done":
                        print(made["id"], answers[f"{made['id']}.{suffix}"].get("error"))
                        continue
                result["samples"] = digest((self.folder / f"{made['id']}.pam").read_bytes())
                for kind in made["write"]:
                    data = (self.folder / f"{made['id']}.{suffixes[kind]}").read_bytes()
                    result[kind] = hashlib.sha256(data).hexdigest()
            yield result


def check_rules(cases):
    """Two cases or more reach each rule of the text, and name no others."""
    text = "".join((HERE / name).read_text(encoding="utf-8") for name in ("pixels-1.md", "pixels-1-files.md"))
    rules = re.findall(r"^- \*\*([A-Z]\d+)\.\*\*", text, re.M)
    counts = {rule: 0 for rule in rules}
    for made in cases:
        for rule in made["rules"]:
            counts[rule] += 1
    few = [rule for rule in rules if counts[rule] < 2]
    if few or len(counts) < len(rules):
        sys.exit(f"fewer than two vectors reach {few}; {len(rules) - len(counts)} rules have a name twice")


def has_jpeg(program):
    """Other codecs than libjpeg-turbo and parallel-jpeg give other samples and bytes."""
    return "parallel-jpeg" in subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


def main():
    program = os.path.abspath(sys.argv[-1])
    jobs = subprocess.run([program, "--jobs-from", "/dev/null"], capture_output=True, text=True)
    if "built without" in jobs.stderr:
        skip("this gpuconv has no --jobs-from")
    make_cases()
    calls()
    check_rules(CASES + CALLS)
    jpeg = has_jpeg(program)
    cases = [made for made in CASES if jpeg or not ("file_quality" in made["input"] or "jpeg" in made.get("write", ()))]
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        lines = [json.dumps(result, ensure_ascii=False) for result in Runner(program, pathlib.Path(folder)).results(cases)]
    file = HERE / "vectors.jsonl"
    if "--update" in sys.argv:
        assert len(cases) == len(CASES), "this gpuconv has no libjpeg-turbo"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        (HERE / "pillow.jsonl").write_text("\n".join(call_lines()) + "\n", encoding="utf-8")
    listed = map(json.loads, (HERE / "pillow.jsonl").read_text(encoding="utf-8").splitlines())
    if [{key: value for key, value in made.items() if key != "samples"} for made in listed] != CALLS:
        sys.exit("pillow.jsonl has other calls than this program; give --update")
    expected = file.read_text(encoding="utf-8").split("\n")[:-1]
    wrong = [line for line in lines if line not in expected]
    for line in wrong[:10]:
        print(f"not in vectors.jsonl: {line}")
    print(f"{len(lines)} vectors, {len(wrong)} differ, {len(expected)} in the file")
    return len(wrong) > 0 or len(CASES) != len(expected)


if __name__ == "__main__":
    sys.exit(main())
