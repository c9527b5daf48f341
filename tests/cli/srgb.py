#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""to-srgb: srgb.py GPUCONV GPUCONV_STUB.

Pictures in the colours of phones, of Adobe RGB and of others, as profiles and a PNG's chunks name them. NumPy computes
each level from the definition; littleCMS must make levels within 1 of 255."""
import ctypes
import io
import itertools
import json
import os
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import harness  # noqa: E402
from metadata_files import Tiff, chunk, png, profile, text  # noqa: E402

try:
    import numpy as np
    from PIL import Image, ImageCms
except ImportError:
    harness.skip("NumPy or Pillow is not installed")

PROGRAM, STUB = (os.path.abspath(path) for path in sys.argv[1:3])
D65, D50 = (0.3127, 0.329), np.array([0.9642, 1, 0.8249])
SRGB = (0.64, 0.33, 0.3, 0.6, 0.15, 0.06, *D65)
P3 = (0.68, 0.32, 0.265, 0.69, 0.15, 0.06, *D65)
ADOBE = (0.64, 0.33, 0.21, 0.71, 0.15, 0.06, *D65)
BT2020 = (0.708, 0.292, 0.17, 0.797, 0.131, 0.046, *D65)
NTSC = (0.67, 0.33, 0.21, 0.71, 0.14, 0.08, 0.31, 0.316)
RANDOM = np.random.default_rng(68)


# ---- The definition ----

def srgb_light(x):
    return np.where(x <= 0.04045, x / 12.92, ((np.maximum(x, 0) + 0.055) / 1.055) ** 2.4)


def power(exponent):
    return lambda x: np.maximum(x, 0) ** exponent


def xyz_of(primaries):
    """XYZ of red, green and blue, adapted to D50 by Bradford's matrix."""
    bradford = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    x, y = np.array(primaries[0::2]), np.array(primaries[1::2])
    columns = np.array([x, y, 1 - x - y])
    white = columns[:, 3] / y[3]
    scaled = columns[:, :3] * np.linalg.solve(columns[:, :3], white)
    return np.linalg.inv(bradford) @ np.diag(bradford @ D50 / (bradford @ white)) @ bradford @ scaled


def expected(levels, light, xyz):
    """The levels of sRGB; XYZ is None for grey."""
    top = np.iinfo(levels.dtype).max
    steps = 65535 * srgb_light((np.arange(1, 65536) - 0.5) / 65535)  # the least light of each level but 0
    lights = np.floor(65535 * light(np.arange(top + 1) / top) + 0.5).astype(np.int64)[levels]
    if xyz is not None:
        matrix = np.linalg.solve(xyz_of(SRGB), xyz)
        matrix /= matrix.sum(axis=1, keepdims=True)
        weights = np.floor(matrix * 2**20 + 0.5).astype(np.int64)
        weights += np.diag(2**20 - weights.sum(axis=1))
        lights = np.clip((lights @ weights.T + 2**19) >> 20, 0, 65535)
    result = np.searchsorted(steps, lights, "left")
    return (result if top > 255 else (2 * result * 255 + 65535) // 131070).astype(levels.dtype)


# ---- Files ----

def make_profile(xyz=None, exponent=None, kind=b"RGB "):
    """A profile with these colours of XYZ, and a power instead of sRGB's curve."""
    data = bytearray(profile())
    data[16:20] = kind
    for at in range(132, 132 + 12 * struct.unpack(">I", data[128:132])[0], 12):
        tag, offset = bytes(data[at:at + 4]), struct.unpack(">I", data[at + 4:at + 8])[0]
        if xyz is not None and tag in (b"rXYZ", b"gXYZ", b"bXYZ"):
            column = xyz[:, b"rgb".index(tag[0])]
            data[offset + 8:offset + 20] = struct.pack(">3i", *(round(65536 * value) for value in column))
        if tag in (b"rTRC", b"gTRC", b"bTRC") and exponent is not None:
            data[at + 4:at + 12] = struct.pack(">II", len(data), 14)
            data += b"curv" + struct.pack(">IIH", 0, 1, round(256 * exponent)) + b"\0\0"
        if tag == b"rTRC" and kind == b"GRAY":
            data[at:at + 4] = b"kTRC"
    data[0:4] = struct.pack(">I", len(data))
    return bytes(data)


def rounded(xyz):
    return np.round(65536 * xyz) / 65536


def write_png(name, levels, *chunks):
    """A PNG with these chunks before its samples."""
    height, width, channels = levels.shape
    bits, kind = 8 * levels.dtype.itemsize, {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes() for row in levels)
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))
                   + b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def icc_chunk(icc):
    return chunk(b"iCCP", b"p\0\0" + zlib.compress(icc))


def read(name, *options, program=PROGRAM):
    """The samples of a file."""
    done = subprocess.run([program, "-q", *options, "identity", name, "-", "--format", "pam"], capture_output=True,
                          check=True)
    head, data = done.stdout.split(b"ENDHDR\n", 1)
    fields = dict(line.split(b" ", 1) for line in head.split(b"\n")[1:] if b" " in line)
    kind = np.uint8 if fields[b"MAXVAL"] == b"255" else np.dtype(">u2")
    levels = np.frombuffer(data, kind).reshape(int(fields[b"HEIGHT"]), int(fields[b"WIDTH"]), int(fields[b"DEPTH"]))
    return levels.astype(levels.dtype.newbyteorder("="))


def run(*arguments, status=0, program=PROGRAM):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stderr


def picture(bits, channels, width=37, height=23):
    kind = np.uint8 if bits == 8 else np.uint16
    levels = RANDOM.integers(0, 2**bits, (height, width, channels)).astype(kind)
    levels[0, :8] = np.linspace(0, 2**bits - 1, 8).astype(kind)[:, None]  # greys stay grey
    return levels


# ---- Tests ----

SOURCES = [
    ("Display P3", P3, srgb_light, lambda: icc_chunk(make_profile(xyz_of(P3)))),
    ("Adobe RGB", ADOBE, power(563 / 256), lambda: icc_chunk(make_profile(xyz_of(ADOBE), 563 / 256))),
    ("1.8", BT2020, power(1.80078125), lambda: icc_chunk(make_profile(xyz_of(BT2020), 1.80078125))),
    ("cICP 9 4", BT2020, power(2.2), lambda: chunk(b"cICP", b"\x09\x04\0\1")),
    ("cICP 12 13", P3, srgb_light, lambda: chunk(b"cICP", b"\x0c\x0d\0\1")),
    ("cICP 4 8", NTSC, power(1), lambda: chunk(b"cICP", b"\x04\x08\0\1")),
    ("gAMA and cHRM", ADOBE, power(1 / 0.5), lambda: chunk(b"gAMA", struct.pack(">I", 50000)) + chunk(
        b"cHRM", struct.pack(">8I", *(round(1e5 * value) for value in (*ADOBE[6:], *ADOBE[:6]))))),
    ("gAMA", SRGB, power(1 / 0.45), lambda: chunk(b"gAMA", struct.pack(">I", 45000))),
]


def test_levels():
    for (name, primaries, light, make), bits, channels in itertools.product(SOURCES, (8, 16), (3, 4)):
        source, levels = make(), picture(bits, channels)
        xyz = xyz_of(primaries)
        if source[4:8] == b"iCCP":
            xyz = rounded(xyz)
        write_png("in.png", levels, source)
        wanted = levels.copy()
        wanted[..., :3] = expected(levels[..., :3], light, None if primaries == SRGB else xyz)
        for program, backend in ((PROGRAM, "cpu"), (STUB, "cuda")):
            said = run("--backend", backend, "to-srgb", "in.png", "out.png", program=program)
            assert said == "", said
            difference = np.abs(read("out.png").astype(int) - wanted.astype(int))
            assert difference.max() == 0, (name, bits, channels, program, difference.max(), (difference > 0).sum())
        with open("out.png", "rb") as file:
            data = file.read()
        assert b"sRGB" in data and not any(kind in data for kind in (b"iCCP", b"cICP", b"gAMA", b"cHRM")), name
        run("-q", "to-srgb", "out.png", "again.png")
        assert (read("again.png") == wanted).all(), (name, "sRGB stays")
        run("-q", "--linear", "to-srgb", "in.png", "out.png")  # light of 16 bits is coarse for dark levels of powers
        difference = np.abs(read("out.png").astype(int) - wanted.astype(int))
        bound = 1 if bits == 8 else np.where(wanted < 8000, 600, 30)
        assert (difference <= bound).all(), (name, bits, "linear", difference.max())
        grey = wanted[0, :8, :3]
        assert (grey == grey[:, :1]).all(), (name, "grey")


def test_grey():
    for bits, channels in itertools.product((8, 16), (1, 2)):
        levels = picture(bits, channels)
        write_png("in.png", levels, icc_chunk(make_profile(None, 1.80078125, b"GRAY")))
        wanted = levels.copy()
        wanted[..., :1] = expected(levels[..., :1], power(1.80078125), None)
        assert run("to-srgb", "in.png", "out.png") == ""
        assert (read("out.png") == wanted).all(), (bits, channels)


def test_littlecms():
    for name, icc in (("P3", make_profile(xyz_of(P3))), ("Adobe", make_profile(xyz_of(ADOBE), 563 / 256))):
        levels = picture(8, 3, 200, 150)
        write_png("in.png", levels, icc_chunk(icc))
        run("-q", "to-srgb", "in.png", "out.png")
        theirs = ImageCms.profileToProfile(Image.fromarray(levels), ImageCms.ImageCmsProfile(io.BytesIO(icc)),
                                           ImageCms.createProfile("sRGB"), renderingIntent=1)
        assert np.abs(read("out.png").astype(int) - np.array(theirs).astype(int)).max() <= 1, name


def test_chains():
    """Filters before it have the picture's levels, and filters after it sRGB's."""
    levels = picture(16, 3)
    write_png("in.png", levels, icc_chunk(make_profile(rounded(xyz_of(P3)))))
    run("-q", "to-srgb,gaussian:1,levels:5:250", "in.png", "out.png")
    run("-q", "to-srgb", "in.png", "one.png")
    run("-q", "gaussian:1,levels:5:250", "one.png", "two.png")
    assert (read("out.png") == read("two.png")).all()
    run("-q", "resize:50%,to-srgb", "in.png", "out.png")
    run("-q", "resize:50%", "in.png", "one.png")
    run("-q", "to-srgb", "one.png", "two.png")
    assert (read("out.png") == read("two.png")).all()


def test_batches():
    """Each picture of a batch, a worker and a digest has its own colours."""
    os.mkdir("many")
    profiles = [icc_chunk(make_profile(xyz_of(primaries), exponent)) for primaries in (P3, ADOBE) for exponent in (None, 2)]
    for i in range(12):
        chunks = [] if i % 5 == 4 else [profiles[i % 5]]
        write_png(f"many/{i}.png", picture(8 if i % 3 else 16, 3), *chunks)
        run("-q", "to-srgb,blur", f"many/{i}.png", f"one-{i}.png")
    for program, backend in ((PROGRAM, "cpu"), (STUB, "cuda")):
        run("-q", "--backend", backend, "-j", "3", "to-srgb,blur", "many", "-o", "out-" + backend, program=program)
        for i in range(12):
            assert (read(f"one-{i}.png") == read(f"out-{backend}/{i}.png")).all(), (backend, i)
    lines = "".join(json.dumps({"filter": "to-srgb,blur", "input": f"many/{i}.png", "output": f"line-{i}.png"}) + "\n"
                    for i in range(12))
    subprocess.run([PROGRAM, "--jobs-from", "-"], input=lines, text=True, check=True, capture_output=True)
    for i in range(12):
        assert (read(f"one-{i}.png") == read(f"line-{i}.png")).all(), i
    digest = subprocess.run([PROGRAM, "--digest", "--filter", "to-srgb,blur", "many/1.png"], capture_output=True, text=True)
    assert digest.stdout.split()[0] == subprocess.run([PROGRAM, "--digest", "one-1.png"], capture_output=True,
                                                      text=True).stdout.split()[0], digest
    run("-q", "to-srgb", "many/0.png", "out.jpg")
    with open("out.jpg", "rb") as file:
        assert b"ICC_PROFILE" not in file.read()


def test_exif():
    """EXIF of Adobe RGB without a profile says sRGB afterwards."""
    camera = [(0xA001, 3, 1, struct.pack("<H", 0xFFFF)), (0xA005, 4, 1, [(1, *text("R03"))])]
    block = bytes(Tiff("<", [(0x010F, *text("A maker")), (0x8769, 4, 1, camera)]).data)
    image = picture(8, 3)
    write_png("in.png", image, chunk(b"eXIf", block))
    assert run("to-srgb", "in.png", "out.png") == ""
    assert (read("out.png") == expected(image, power(563 / 256), xyz_of(ADOBE))).all()
    assert Image.open("out.png").getexif().get_ifd(0x8769)[0xA001] == 1
    camera = [(0xA001, 3, 1, struct.pack("<H", 0xFFFF))]  # neither sRGB nor Adobe RGB
    write_png("in.png", image, chunk(b"eXIf", bytes(Tiff("<", [(0x8769, 4, 1, camera)]).data)))
    assert run("to-srgb", "in.png", "out.png") == "" and (read("out.png") == image).all()
    assert run("--strip", "all", "identity", "in.png", "out.png") == ""
    write_png("in.png", image, chunk(b"gAMA", struct.pack(">I", 45455)))  # what many programs write for sRGB
    assert run("to-srgb", "in.png", "out.png") == "" and (read("out.png") == image).all()


def test_errors():
    image, unread = picture(8, 3), "cannot read" if has_littlecms() else "without littleCMS"
    for source, words in ((chunk(b"cICP", b"\x09\x10\0\1"), "the light of PQ"), (chunk(b"cICP", b"\x09\x12\0\1"), "of HLG"),
                          (icc_chunk(make_profile().replace(b"rTRC", b"rXXX")), unread),
                          (icc_chunk(make_profile().replace(b"rXYZ", b"rYYY")), unread),
                          (chunk(b"cICP", b"\x03\x0d\0\1"), "cannot read"), (chunk(b"cICP", b"\x01\x03\0\1"), "cannot read")):
        write_png("bad.png", image, source)
        said = run("to-srgb", "bad.png", "never.png", status=1)
        assert words in said and said.startswith("gpuconv: bad.png: has ") and not os.path.exists("never.png"), said
    assert "takes nothing, or black-point" in run("to-srgb:1", "in.png", "out.png", status=2)
    assert "cannot have a region" in run("to-srgb@5x5+0+0", "in.png", "out.png", status=2)


# ---- Profiles of tables ----

def make_tables(space, connection=b"XYZ ", grid=5, seed=1, kind=b"prtr"):
    """A profile whose only colours are a table of 16 bits, lut16Type (ICC.1:2022, 10.10), smooth and of no device."""
    inputs = {b"GRAY": 1, b"RGB ": 3, b"CMYK": 4}[space]
    chance = np.random.default_rng(seed)
    axes = np.meshgrid(*[np.linspace(0, 1, grid)] * inputs, indexing="ij")
    if inputs == 4:
        light = np.stack([(1 - axes[i] * chance.uniform(0.8, 0.95)) * (1 - axes[3] * 0.93) for i in range(3)], -1) ** 1.8
    else:
        light = np.stack([axes[i % inputs] ** chance.uniform(1.5, 2.5) * 0.97 + 0.01 for i in range(3)], -1)
    xyz = light @ xyz_of(P3).T
    if connection == b"Lab ":
        f = np.cbrt(np.maximum(xyz / D50, 1e-3))
        lab = np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)
        table = np.clip(lab * (652.8, 256, 256) + (0, 32768, 32768), 0, 65535)
    else:
        table = np.clip(xyz * 32768, 0, 65535)
    matrix = struct.pack(">9i", *(65536 * (i % 4 == 0) for i in range(9)))
    line = struct.pack(">2H", 0, 65535)
    lut = (b"mft2\0\0\0\0" + bytes([inputs, 3, grid, 0]) + matrix + struct.pack(">2H", 2, 2) + line * inputs
           + np.round(table).astype(">u2").tobytes() + line * 3)
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    lut += bytes(-len(lut) % 4)
    tags = struct.pack(">I", 3)
    for name, offset, size in ((b"A2B0", 168, len(lut)), (b"A2B1", 168, len(lut)), (b"wtpt", 168 + len(lut), 20)):
        tags += name + struct.pack(">2I", offset, size)
    head = bytearray(128)
    head[4:24] = b"lcms\x02\x40\0\0" + kind + space + connection
    head[36:40] = b"acsp"
    head[68:80] = struct.pack(">3i", 63190, 65536, 54061)
    icc = bytes(head) + tags + lut + white
    return struct.pack(">I", len(icc)) + icc[4:]


def theirs(image, icc, black_point=False, to=None):
    return np.array(ImageCms.profileToProfile(
        image, ImageCms.ImageCmsProfile(io.BytesIO(icc)), to or ImageCms.createProfile("sRGB"), renderingIntent=1,
        outputMode=image.mode if image.mode != "CMYK" else "RGB", flags=0x2000 if black_point else 0)).astype(int)


def their_levels(colours, icc, black_point):
    """What littleCMS makes of 16 bits, which Pillow does not ask it for."""
    library = ctypes.CDLL("liblcms2.so.2")
    for name in ("cmsOpenProfileFromMem", "cmsCreateTransform"):
        getattr(library, name).restype = ctypes.c_void_p
    channels = colours.shape[2]
    kind = ((3 if channels == 1 else 4) << 16) + 8 * channels + 2
    to = make_profile(None, None, b"GRAY") if channels == 1 else make_profile()
    profiles = [ctypes.c_void_p(library.cmsOpenProfileFromMem(data, len(data))) for data in (icc, to)]
    transform = ctypes.c_void_p(library.cmsCreateTransform(profiles[0], kind, profiles[1], kind, 1, 0x2000 * black_point))
    levels, made = colours.astype(np.uint16) * 257, np.zeros(colours.shape, np.uint16)
    library.cmsDoTransform(transform, levels.ctypes.data_as(ctypes.c_void_p), made.ctypes.data_as(ctypes.c_void_p),
                           levels.size // channels)
    return made.astype(int)


def has_littlecms():
    write_png("in.png", picture(8, 3), icc_chunk(make_tables(b"RGB ")))
    done = subprocess.run([PROGRAM, "to-srgb", "in.png", "out.png"], capture_output=True, text=True)
    if "built without littleCMS" not in done.stderr:
        return True
    assert done.returncode == 1, done
    return False


def test_tables():
    """By tables of XYZ and Lab, with and without alpha, of 8 and 16 bits, row by row and at once."""
    if not has_littlecms():
        return
    grey_srgb = ImageCms.ImageCmsProfile(io.BytesIO(make_profile(None, None, b"GRAY")))
    for connection, channels, black_point in itertools.product((b"XYZ ", b"Lab "), (1, 2, 3, 4), (False, True)):
        icc = make_tables(b"RGB " if channels >= 3 else b"GRAY", connection, seed=channels)
        levels = picture(8, channels, 64, 48)
        step = "to-srgb:black-point" if black_point else "to-srgb"
        colours = levels[..., :channels - (channels % 2 == 0)]
        image = Image.fromarray(colours.squeeze())
        wanted = theirs(image, icc, black_point, None if channels >= 3 else grey_srgb).reshape(colours.shape)
        write_png("in.png", levels, icc_chunk(icc))
        for program, backend in ((PROGRAM, "cpu"), (STUB, "cuda")):
            assert run("--backend", backend, step, "in.png", "out.png", program=program) == ""
            made = read("out.png")
            case = (connection, channels, black_point, backend)
            assert np.abs(made[..., :colours.shape[2]].astype(int) - wanted).max() <= 1, case
            assert channels % 2 or (made[..., -1] == levels[..., -1]).all(), case
        if channels == 3:
            again = Image.open("out.png")
            assert "icc_profile" not in again.info and again.info["srgb"] == 1
            assert run("--linear", step, "in.png", "linear.png") == "" and (read("linear.png") == made).all(), case
            image.save("in.webp", lossless=True, icc_profile=icc)
            image.save("in.tif", icc_profile=icc)
            for name, *options in (("in.webp",), ("in.tif",), ("in.png", "--codec", "stb", "--backend", "cpu")):
                assert run(*options, step, name, "out.png") == "" and (read("out.png") == made).all(), (case, name)
            image.save("in.jpg", quality=95, icc_profile=icc)
            for backend in ("cpu", "cuda"):
                run("--backend", backend, step, "in.jpg", backend + ".png", program=STUB)
            assert (read("cpu.png") == read("cuda.png")).all(), case
            assert np.abs(read("cpu.png").astype(int) - theirs(Image.open("in.jpg"), icc, black_point)).max() <= 1, case
            run("-q", "--depth", "16", step, "in.png", "deep.png")
            assert (read("deep.png") == 257 * made.astype(int)).all(), case
        write_png("deep.png", levels.astype(np.uint16) * 257, icc_chunk(icc))
        run(step, "deep.png", "out.png")
        difference = read("out.png")[..., :colours.shape[2]].astype(int) - their_levels(colours, icc, black_point)
        assert np.abs(difference).max() <= 257, (case, np.abs(difference).max())


def cmyk_profiles():
    found = ("/usr/share/color/icc/ghostscript/default_cmyk.icc", "/usr/share/color/icc/colord/SWOP2006_Coated3v2.icc",
             "/usr/share/color/icc/colord/FOGRA39L_coated.icc")
    yield make_tables(b"CMYK", b"Lab ")
    yield make_tables(b"CMYK", b"XYZ ", 4, 9)
    for name in found:
        if os.path.exists(name):
            with open(name, "rb") as file:
                yield file.read()


def test_cmyk():
    if not has_littlecms() or not harness.has_codec(PROGRAM, "libjpeg-turbo"):
        return
    inks = np.array(Image.fromarray(RANDOM.integers(0, 256, (30, 40, 4)).astype(np.uint8), "CMYK").resize((160, 120)))
    for number, icc in enumerate(cmyk_profiles()):
        Image.fromarray(inks, "CMYK").save("in.jpg", quality=95, icc_profile=icc, progressive=number % 2 == 1)
        image = Image.open("in.jpg")
        for black_point in (False, True):
            step = "to-srgb:black-point" if black_point else "to-srgb"
            assert run(step, "in.jpg", "out.png") == "", number
            made, wanted = read("out.png").astype(int), theirs(image, icc, black_point)
            assert np.abs(made - wanted).max() <= 1, (number, black_point, np.abs(made - wanted).max())
            said = run("-v", "--report", "report.jsonl", step, "in.jpg", "out.png")
            assert "colours   by littleCMS 2." in said, said
            with open("report.jsonl", encoding="utf-8") as file:
                assert json.loads(file.readlines()[-1])["colours"].startswith("littleCMS 2.")
        run(step + ",thumbnail:50x50", "in.jpg", "small.jpg")
        run("-q", step, "in.jpg", "big.png")
        run("-q", "thumbnail:50x50", "big.png", "small.png")
        run("-q", "--backend", "cpu", step + ",thumbnail:50x50", "in.jpg", "small-too.png")
        assert (read("small.png") == read("small-too.png")).all()
    Image.fromarray(inks, "CMYK").save("in.jpg", quality=95)
    assert "is CMYK; the output will be RGB" in run("to-srgb", "in.jpg", "out.png")


def test_many_tables():
    """Each picture of a batch has its own profile, and workers keep those of the last."""
    if not has_littlecms():
        return
    os.mkdir("tables")
    sources = [icc_chunk(make_tables(b"RGB ", seed=seed)) for seed in (1, 2)] + [icc_chunk(make_profile(xyz_of(P3)))]
    for i in range(18):
        write_png(f"tables/{i}.png", picture(8 if i % 2 else 16, 3 + i % 4 // 2), *([sources[i % 5]] if i % 5 < 3 else []))
        run("-q", "to-srgb,blur", f"tables/{i}.png", f"one-{i}.png")
    Image.fromarray(picture(8, 3)).save("tables/j.jpg", icc_profile=make_tables(b"RGB ", b"Lab ", seed=3))
    run("-q", "--backend", "cpu", "to-srgb,blur", "tables/j.jpg", "one-j.jpg")
    for workers, program, backend in (("1", PROGRAM, "cpu"), ("3", PROGRAM, "cpu"), ("3", STUB, "cuda")):
        folder = f"out-{workers}-{backend}"
        run("-q", "-j", workers, "--backend", backend, "to-srgb,blur", "tables", "-o", folder, program=program)
        for name in [f"{i}.png" for i in range(18)] + ["j.jpg"]:
            assert (read("one-" + name) == read(f"{folder}/{name}")).all(), (folder, name)
    digests = [subprocess.run([PROGRAM, "--digest", *words], capture_output=True, text=True, check=True).stdout.split()[0]
               for words in (("--filter", "to-srgb,blur", "tables/0.png"), ("one-0.png",))]
    assert digests[0] == digests[1]


def test_outputs_of_one_input():
    """Results of one picture by its profile, without it, and by it in another way: none has the colours of another."""
    if not has_littlecms():
        return
    write_png("in.png", picture(8, 3), icc_chunk(make_tables(b"RGB ")))
    filters = "to-srgb,blur", "blur", "to-srgb:black-point,blur", "sharpen", "to-srgb,blur"
    options = [f"--also=also{i}={words}" for i, words in enumerate(filters)]
    for backend in "cpu", "cuda":
        run("-q", "--backend", backend, filters[0], "in.png", "-o", "first", *options, program=STUB)
        for i, words in enumerate(filters):
            run("-q", "--backend", "cpu", words, "in.png", "one.png")
            assert (read(f"also{i}/in.png") == read("one.png")).all(), (backend, i)
            assert i == 4 or (read("one.png") != read(f"also{i + 1}/in.png")).any(), (backend, i)


def test_bad_tables():
    image, good = picture(8, 3), make_tables(b"RGB ")
    built = has_littlecms()
    write_png("bad.png", image, icc_chunk(good))
    assert (not built) or "must be the first filter" in run("blur,to-srgb", "bad.png", "never.png", status=1)
    chance = np.random.default_rng(7)
    damaged = [good.replace(b"mft2", b"mft9"), good.replace(b"A2B", b"A3B"), good.replace(b"prtr", b"link"),
               good.replace(b"prtr", b"nmcl"), good[:182] + b"\xff" * (len(good) - 182), make_tables(b"GRAY"), make_tables(b"CMYK"),
               good.replace(b"mft2\0\0\0\0\3\3\5", b"mft2\0\0\0\0\3\3\xff"), good.replace(b"mft2\0\0\0\0\3", b"mft2\0\0\0\0\xff")]
    for icc in damaged:
        write_png("bad.png", image, icc_chunk(icc))
        said = run("to-srgb", "bad.png", "never.png", status=1)
        assert said.startswith("gpuconv: bad.png: has ") and said.count("\n") == 1, said
        assert not os.path.exists("never.png")
    for _ in range(60):  # a sentence, or a picture
        icc = bytearray(good)
        for at in chance.integers(0, len(icc) if chance.integers(2) else 230, chance.integers(1, 8)):
            icc[at] = chance.integers(256)
        write_png("bad.png", image, icc_chunk(bytes(icc)))
        done = subprocess.run([PROGRAM, "to-srgb", "bad.png", "maybe.png"], capture_output=True, text=True)
        assert done.returncode in (0, 1) and done.stderr.count("\n") == (done.stderr != ""), done


if __name__ == "__main__":
    with harness.temporary_folder():
        if len(sys.argv) > 3 and not has_littlecms():
            harness.skip("this gpuconv was built without littleCMS")
        for name, function in list(globals().items()):
            if name.startswith("test_") and (len(sys.argv) < 4 or name in sys.argv[3:]):
                function()
                print(name, flush=True)
