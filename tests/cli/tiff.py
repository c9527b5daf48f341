#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TIFF, against libtiff's own programs and Pillow: tiff.py GPUCONV. Skipped (exit status 77) if libtiff was not built
in, or if Pillow, exiftool or libtiff-tools is not installed."""
import itertools
import os
import random
import shutil
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import metadata_files  # noqa: E402
from harness import has_codec, skip  # noqa: E402
from metadata_files import (  # noqa: E402
    HEIGHT, WIDTH, Tiff, check_file, exiftool, full_jpeg, full_png, profile)
from write_png import png, unfiltered  # noqa: E402
from write_tiff import tiff  # noqa: E402

if metadata_files.Image is not None:
    from PIL import Image

W, H = 61, 47


def samples(channels, bits):
    chance = random.Random(channels * bits)
    return [min(2 ** bits - 1, 700 * x * y // 13 % 2 ** bits + chance.randrange(9)) for y in range(H)
            for x in range(W * channels)]


def save(name, channels, bits):
    data = b"".join(sample.to_bytes(bits // 8, "big") for sample in samples(channels, bits))
    with open(name, "wb") as file:
        file.write(png(W, H, channels, bits, unfiltered(data, W * channels * bits // 8)))


def same(test, a, b, what):
    done = subprocess.run([test.program, "--compare", a, b], capture_output=True, text=True)
    test.equal((done.returncode, done.stdout), (0, "equal\n"), what)


# ---- Tests ----

def test_round_trip(test):
    """All channels and depths go to TIFF and back, by every level; libtiff's own reader and Pillow see the same."""
    for channels, bits in itertools.product((1, 2, 3, 4), (8, 16)):
        save("in.png", channels, bits)
        for level in "0", "1", "9":
            test.equal(test.run("--compression", level, "identity", "in.png", "out.tif"), "", "no warning")
            same(test, "in.png", "out.tif", f"{channels} channels of {bits} bits, level {level}")
        test.run("identity", "out.tif", "again.png")
        same(test, "in.png", "again.png", "back")
        info = subprocess.run(["tiffinfo", "-D", "out.tif"], capture_output=True, text=True)
        test.equal((info.returncode, info.stderr), (0, ""), f"tiffinfo: {info.stderr}")
        if bits == 8:  # Pillow reads few kinds of 16 bits
            test.check(Image.open("out.tif").tobytes() == Image.open("in.png").tobytes(), f"Pillow, {channels} of {bits}")


def test_kinds(test):
    """Strips and tiles, channels apart, compressions, byte orders and BigTIFF, as tiffcp makes them."""
    for channels, bits in itertools.product((1, 3, 4), (8, 16)):
        save("in.png", channels, bits)
        test.run("identity", "in.png", "in.tif")
        for options in (["-c", "none"], ["-c", "lzw:2"], ["-c", "zip:2", "-r", "1"], ["-c", "packbits"], ["-B"], ["-L"],
                        ["-8"], ["-8", "-B"], ["-t", "-w", "16", "-l", "32"], ["-t", "-w", "64", "-l", "48", "-c", "lzw"],
                        ["-p", "separate", "-c", "zip"], ["-p", "separate", "-t", "-w", "16", "-l", "16"], ["-r", "1000"],
                        ["-c", "zip", "-r", "7", "-B"]):
            if bits == 16 and "separate" in options:  # tiffcp does not separate these
                continue
            subprocess.run(["tiffcp", *options, "in.tif", "kind.tif"], check=True)
            same(test, "in.tif", "kind.tif", f"{channels} of {bits} {options}")
    save("in.png", 3, 8)
    test.run("identity", "in.png", "in.tif")
    for options in ["-c", "jpeg:r:95"], ["-c", "jpeg:95"], ["-c", "jpeg:95", "-t", "-w", "32", "-l", "32"]:
        subprocess.run(["tiffcp", *options, "in.tif", "jpeg.tif"], check=True)
        test.equal(test.run("identity", "jpeg.tif", "out.png"), "", options)
        expected = Image.open("jpeg.tif")
        differences = [abs(a - b) for a, b in zip(expected.tobytes(), Image.open("out.png").tobytes())]
        test.check(max(differences) <= 3, f"{options}: {max(differences)}")


def test_depths(test):
    """Grey of 1, 2 and 4 bits, both ways round; palettes; fax; alpha that multiplies the colours."""
    for bits, white in itertools.product((1, 2, 4), (0, 1)):
        chance, row = random.Random(bits), (W * bits + 7) // 8
        data = bytes(chance.randrange(256) for _ in range(row * H))
        entries = {256: (3, [W]), 257: (3, [H]), 258: (3, [bits]), 259: (3, [1]), 262: (3, [white]), 277: (3, [1])}
        palette = [chance.randrange(65536) for _ in range(3 << bits)]
        for order, wide in itertools.product("<>", (False, True)):
            test.write("in.tif", tiff(order, entries, data, wide))
            test.equal(test.run("identity", "in.tif", "out.png"), "", f"{bits} bits")
            levels = [[int(f"{int.from_bytes(data[y * row:(y + 1) * row], 'big'):0{8 * row}b}"[x * bits:(x + 1) * bits], 2)
                       for x in range(W)] for y in range(H)]
            top = 2 ** bits - 1
            expected = bytes((value if white else top - value) * 255 // top for line in levels for value in line)
            test.check(Image.open("out.png").tobytes() == expected, f"{bits} bits, {white}, {order}")
            test.write("in.tif", tiff(order, {**entries, 262: (3, [3]), 320: (3, palette)}, data, wide))
            test.run("identity", "in.tif", "out.png")
            expected = bytes((palette[c * (top + 1) + value] * 255 + 32895) >> 16 for line in levels for value in line
                             for c in range(3))
            test.check(Image.open("out.png").tobytes() == expected, f"palette of {bits} bits, {order}")
    test.write("bits.tif", tiff("<", {256: (3, [W]), 257: (3, [H]), 258: (3, [1]), 259: (3, [1]), 262: (3, [0])},
                                bytes(range(256))[:8] * H))
    for fax in "g3", "g4":
        subprocess.run(["tiffcp", "-c", fax, "bits.tif", "fax.tif"], check=True)
        same(test, "bits.tif", "fax.tif", fax)
    for bits, letter in ((8, "B"), (16, "H")):
        top = 2 ** bits - 1
        alpha = [0, 1, top // 3, top // 2, top - 1, top]
        pixels = [number for a in alpha for number in (a // 2, a, a // 3, a)]
        data = struct.pack(f"<{len(pixels)}{letter}", *pixels)
        entries = {256: (3, [len(alpha)]), 257: (3, [1]), 258: (3, [bits] * 4), 259: (3, [1]), 262: (3, [2]), 277: (3, [4])}
        for extra in (1, 2):
            test.write("in.tif", tiff("<", {**entries, 338: (3, [extra])}, data))
            test.run("identity", "in.tif", "out.pam")
            with open("out.pam", "rb") as file:
                actual = struct.unpack(f">{len(pixels)}{letter}", file.read()[-len(data):])
            expected = tuple(number if extra == 2 or i % 4 == 3 else
                             0 if pixels[i - i % 4 + 3] == 0 else
                             (2 * number * top + pixels[i - i % 4 + 3]) // (2 * pixels[i - i % 4 + 3])
                             for i, number in enumerate(pixels))
            test.equal(actual, expected, f"alpha of kind {extra}, {bits} bits")


def test_metadata(test):
    """Profile, EXIF, XMP, IPTC and resolution go to TIFF and back; the picture is turned as EXIF says."""
    fields = {"IFD0:Orientation": 1, "IFD0:Make": "Maker & Co", "GPS:GPSLatitudeRef": "N", "XMP-dc:Source": "Gr\u00fc\u00dfe",
              "ExifIFD:DateTimeOriginal": "2024:05:06 07:08:09", "InteropIFD:InteropIndex": "R98",
              "GPS:GPSLatitude": 48.8566666666667,
              "IFD0:ImageWidth": HEIGHT, "IFD0:ImageHeight": WIDTH}
    for (name, make), order in itertools.product((("in.png", full_png), ("in.jpg", full_jpeg)), "<>"):
        test.write(name, make(6, order))
        said = test.run("identity", name, "out.tif")
        fields.update({"IFD0:XResolution": 200, "IFD0:YResolution": 300, "IFD0:ResolutionUnit": 2} if name == "in.jpg" else
                      {"IFD0:XResolution": 78.74, "IFD0:YResolution": 118.11, "IFD0:ResolutionUnit": 3})
        test.check(said == "gpuconv: warning: out.tif: metadata not carried over: text (the format has none)\n", said)
        tags = check_file(test, "out.tif")
        test.equal({field: tags.get(field) for field in fields}, fields, f"{name} {order}")
        test.equal(Image.open("out.tif").info.get("icc_profile"), profile(), "profile")
        if name == "in.jpg":
            test.equal(tags.get("IPTC2:ObjectName"), "A title", "IPTC")
        info = subprocess.run(["tiffinfo", "out.tif"], capture_output=True, text=True)
        interop = "Unknown field with tag 40965"  # InteropIFD
        unknown = [line for line in info.stderr.splitlines() if interop not in line]
        test.equal((info.returncode, unknown), (0, []), "tiffinfo")
        test.equal(test.run("identity", "out.tif", "back.tif"), "", "back")
        again = check_file(test, "back.tif")
        test.equal({field: again.get(field) for field in fields}, fields, "TIFF to TIFF")
        same(test, "out.tif", "back.tif", "samples")
        test.equal(test.run("identity", "back.tif", "back.png"), "", "to PNG")
        tags = check_file(test, "back.png")
        test.equal((tags["PNG-pHYs:PixelsPerUnitX"], tags["PNG-pHYs:PixelsPerUnitY"]), (7874, 11811), "resolution")
        test.equal(tags.get("GPS:GPSLatitude"), fields["GPS:GPSLatitude"], "GPS in PNG")
    # A file's own EXIF, orientation and IPTC, in both orders and in a BigTIFF.
    for order, wide in itertools.product("<>", (False, True)):
        text = [ord(letter) for letter in "Maker"] + [0]
        test.write("in.tif", tiff(order, {256: (3, [5]), 257: (4, [3]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1]), 271: (2, text),
                                          274: (3, [6]), 282: (5, [3000, 10]), 283: (5, [200, 1]), 296: (3, [3]),
                                          33723: (7, list(b"\x1c\x02\x05\0\7A title"))}, bytes(range(15)), wide))
        for target in "out.tif", "out.png", "out.jpg":
            test.equal(test.run("identity", "in.tif", target), "", f"{order} {wide} {target}")
            tags = check_file(test, target)
            test.equal([tags.get(field) for field in ("IFD0:Make", "IFD0:Orientation", "IFD0:XResolution", "IFD0:ResolutionUnit")],
                       ["Maker", 1, 200, 3], target)
            test.equal(Image.open(target).size, (3, 5), target)
        test.equal(exiftool("out.tif").get("IPTC2:ObjectName"), "A title", "IPTC")


def test_no_exif(test):
    """What every TIFF says of its picture is no EXIF: nothing is lost, and no other format gets some."""
    for order, more in itertools.product("<>", ({}, {274: (3, [1]), 282: (5, [300, 1]), 283: (5, [300, 1]), 296: (3, [2])})):
        test.write("in.tif", tiff(order, {256: (3, [5]), 257: (3, [3]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1]), **more},
                                  bytes(range(15))))
        for target in "out.pgm", "out.png", "out.jpg", "out.tif":
            said = test.run("identity", "in.tif", target)
            lost = "resolution (the format has none)" if more and target == "out.pgm" else ""
            test.check(lost in said if lost else said == "", f"{order} {more} {target}: {said}")
        with open("out.png", "rb") as png_file, open("out.jpg", "rb") as jpeg_file:
            test.equal((b"eXIf" in png_file.read(), b"Exif" in jpeg_file.read()), (False, False), f"{order} {more}")
        if more:
            test.equal(exiftool("out.tif").get("IFD0:XResolution"), 300, "the resolution")


def test_pages(test):
    """The first page is read, with a warning; --in-place refuses; a smaller size of the picture does not count."""
    pages = [Image.new("RGB", (20, 10), (i * 90, 1, 2)) for i in range(3)]
    pages[0].save("in.tif", save_all=True, append_images=pages[1:])
    test.equal(test.run("identity", "in.tif", "out.png"),
               "gpuconv: warning: in.tif: also contains other pictures; only its first picture is used\n", "")
    test.check(Image.open("out.png").tobytes() == pages[0].tobytes(), "the first page")
    test.check("which --in-place would lose" in test.run("--in-place", "identity", "in.tif", status=1), "refused")
    test.run("--in-place", "--first-picture", "blur", "in.tif")
    test.equal(Image.open("in.tif").n_frames, 1, "one page")
    pages[0].save("in.tif", save_all=True, append_images=[pages[1].resize((10, 5))], tiffinfo={254: 1})
    test.equal(test.run("identity", "in.tif", "out.png"), "", "smaller")


GREY = {256: (3, [4]), 257: (3, [4]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1])}


def test_other_content(test):
    """What --in-place would lose is found below and after the first directory, and refused."""
    data, small = bytes(range(16)), {**GREY, 254: (4, [1]), 256: (3, [2])}
    for order, wide in itertools.product("<>", (False, True)):
        size = len(tiff(order, {**GREY, 330: (4, [0])}, data, wide))

        def below(picture, kind=4):
            """A TIFF with a PICTURE below its own."""
            second = tiff(order, picture, data, wide, size)
            place = struct.unpack_from(order + ("Q" if wide else "I"), second, 8 if wide else 4)[0]
            return tiff(order, {**GREY, 330: (kind, [place])}, data, wide) + second

        plain = tiff(order, GREY, data, wide)
        for file, words in (
                (below(GREY), "other pictures"), (below(GREY, 13), "other pictures"), (below({**GREY, 254: (4, [1])}), "other pictures"),
                (below(small), None), (plain, None), (plain + bytes(99), None),
                (plain + b"something else", "data after the end of its picture"), (plain + full_jpeg(1, order), "other pictures"),
                (below(small) + b"something else", "data after the end of its picture"),
                (tiff(order, {**GREY, 37724: (7, list(b"Adobe Photoshop Document Data Block"))}, data, wide), "layers")):
            test.write("in.tif", file)
            said = test.run("identity", "in.tif", "out.png")
            if words is None:
                test.equal(said, "", f"{order} {wide}")
                test.run("--in-place", "identity", "in.tif")
                continue
            test.equal(said, f"gpuconv: warning: in.tif: also contains {words}; only its first picture is used\n", f"{order} {wide}")
            test.check(f"{words}, which --in-place would lose" in test.run("--in-place", "identity", "in.tif", status=1), words)
            with open("in.tif", "rb") as left:
                test.check(left.read() == file, f"{words}: the file has changed")
    # Directories that refer to each other, and to all bytes of the file, take no time.
    loop = tiff("<", {**GREY, 330: (4, [0] * 60000), **{tag: (13, [8] * 100) for tag in range(50000, 50100)}}, data)
    place = struct.unpack_from("<I", loop, 4)[0]
    test.write("in.tif", loop.replace(bytes(240000), struct.pack("<I", place) * 60000))
    test.run("identity", "in.tif", "out.png")


def test_directories(test):
    """libtiff sees the needed entries alone, of any number, and no byte of its own memory changes."""
    data = bytes((5 * i + 255) % 256 for i in range(W * H))
    grey = {256: (3, [W]), 257: (3, [H]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1]), 277: (3, [1])}
    test.write("in.pgm", b"P5 %d %d 255\n" % (W, H) + data)
    # Entries that libtiff would refuse if it saw as many as the file has: 7 numbers where one is expected.
    left_out = {300: (4, [1]), 340: (3, list(range(7))), 341: (3, list(range(7)))}
    for order, wide in itertools.product("<>", (False, True)):
        entries = dict(grey)
        for more in ({}, {266: (3, [1])}, {284: (3, [1])}, {317: (3, [1])}, {339: (3, [1])}):
            entries |= more
            test.write("in.tif", tiff(order, entries | left_out, data, wide))
            test.run("-q", "identity", "in.tif", "out.pgm")
            same(test, "in.pgm", "out.pgm", f"{len(entries)} entries, {order}, BigTIFF {wide}")


def test_refused(test):
    """What is not read is refused with a sentence, before memory is allocated; libtiff prints nothing."""
    rgb = {256: (3, [4]), 257: (3, [4]), 258: (3, [8, 8, 8]), 259: (3, [1]), 262: (3, [2]), 277: (3, [3])}
    for change, size, words in (
            ({259: (3, [6])}, 48, "JPEG of the old kind"), ({259: (3, [34712])}, 48, "of compression 34712"),
            ({262: (3, [5]), 277: (3, [4]), 258: (3, [8] * 4)}, 64, "in CMYK"), ({339: (3, [3])}, 48, "floating-point"),
            ({258: (3, [32] * 3)}, 192, "with 32 bits"), ({258: (3, [8, 8, 16])}, 48, "different bits"),
            ({258: (3, [12]), 262: (3, [1]), 277: (3, [1])}, 24, "12 bits per sample, which is not read; save it again with 8 or 16 bits"),
            ({259: (3, [34712])}, 48, "which is not read; save it again with deflate or LZW"),
            ({259: (3, [50002])}, 48, "which is not read; save it again with deflate or LZW"),
            ({262: (3, [6]), 259: (3, [7]), 284: (3, [2])}, 48, "in YCbCr with separate channels"),
            ({277: (3, [4]), 258: (3, [8] * 4), 338: (3, [0])}, 64, "not alpha (ExtraSamples 0)"),
            ({277: (3, [4]), 258: (3, [8] * 4), 338: (3, [9])}, 64, "not alpha (ExtraSamples 9)"),
            ({262: (3, [8])}, 48, "in an unusual colour space"), ({277: (3, [5]), 258: (3, [8] * 5)}, 80, "with 5 channels"),
            ({50706: (1, [1, 4, 0, 0])}, 48, "(DNG)"), ({256: (4, [100000]), 257: (4, [100000]), 278: (4, [100000])}, 48, "too few for 100000 x 100000"),
            ({273: (4, [4800])}, 48, "truncated: strip or tile 0"), ({279: (4, [0])}, 48, "strip or tile 0 is empty"),
            ({259: (3, [8])}, 48, "its data cannot be decoded"), ({259: (3, [5])}, 48, "its data cannot be decoded"),
            ({256: (4, [0])}, 48, "it claims 0 x 4"), ({258: (3, [8] * 3), 322: (3, [1 << 15]), 323: (3, [1 << 15]), 324: (4, [8]), 325: (4, [48])}, 48, "too few")):
        test.write("in.tif", tiff("<", {**rgb, **change}, bytes((7 * i + 255) % 256 for i in range(size))))
        said = test.run("--memory", "100M", "identity", "in.tif", "out.png", status=1)
        test.check(words in said and said.count("\n") == 1, f"{words}: {said}")
    chance = random.Random(1)
    for options in (["-c", "lzw"], ["-c", "zip"], ["-t", "-w", "16", "-l", "16"], ["-c", "jpeg:90"], ["-p", "separate"]):
        save("in.png", 3, 8)
        test.run("identity", "in.png", "in.tif")
        subprocess.run(["tiffcp", *options, "in.tif", "good.tif"], check=True)
        with open("good.tif", "rb") as file:
            good = file.read()
        for i in range(24):
            bad = bytearray(good)
            for _ in range(2):
                bad[chance.randrange(len(bad)) if i % 2 else -1 - chance.randrange(300)] ^= 1 << chance.randrange(8)
            test.write("bad.tif", bad if i % 3 else bad[:chance.randrange(len(bad))])
            done = subprocess.run([test.program, "-q", "--memory", "1G", "identity", "bad.tif", "out.png"], capture_output=True, text=True)
            test.check(done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode, f"{done.returncode} {done.stderr}")


def strips(data):
    """The offset and size of each strip or tile of a little-endian TIFF."""
    at, = struct.unpack_from("<I", data, 4)
    entries = [struct.unpack_from("<HHI", data, at + 2 + 12 * i) + (at + 10 + 12 * i,)
               for i in range(struct.unpack_from("<H", data, at)[0])]

    def numbers(*tags):
        kind, count, where = next(entry[1:] for entry in entries if entry[0] in tags)
        letter = {3: "H", 4: "I"}[kind]
        if count * struct.calcsize(letter) > 4:
            where, = struct.unpack_from("<I", data, where)
        return struct.unpack_from(f"<{count}{letter}", data, where)

    return list(zip(numbers(273, 324), numbers(279, 325)))


def test_damaged_data(test):
    """What libtiff complains of, by any way, is refused, and so are all wrong streams of deflate."""
    width, height, chance = 150, 90, random.Random(7)
    bits = {256: (3, [width]), 257: (3, [height]), 258: (3, [1]), 259: (3, [1]), 262: (3, [0]), 277: (3, [1])}
    row = lambda: sum(1 << chance.randrange(width + 2) for _ in range(9)).to_bytes(width // 8 + 1, "big")  # noqa: E731
    test.write("bits.tif", tiff("<", bits, b"".join(row() for _ in range(height))))
    rgb = {**bits, 258: (3, [8] * 3), 262: (3, [2]), 277: (3, [3])}
    test.write("rgb.tif", tiff("<", rgb, bytes((x * x // 9 + 3 * y + chance.randrange(9)) % 256
                                               for y in range(height) for x in range(3 * width))))
    for name, options in (("bits", "-c g4"), ("bits", "-c g4 -r 7"), ("bits", "-c g3:1d"), ("bits", "-c g3:2d:fill"),
                          ("rgb", "-c zip"), ("rgb", "-c zip:2 -r 11"), ("rgb", "-t -w 48 -l 32 -c zip"),
                          ("rgb", "-c jpeg -r 16"), ("rgb", "-c lzw:2")):
        subprocess.run(["tiffcp", *options.split(), f"{name}.tif", "good.tif"], check=True)
        with open("good.tif", "rb") as file:
            good = file.read()
        test.run("identity", "good.tif", "out.png")
        for _ in range(16):
            bad, (offset, size) = bytearray(good), chance.choice(strips(good))
            bad[offset + chance.randrange(size)] ^= 1 << chance.randrange(8)
            test.write("bad.tif", bad)
            libtiff = subprocess.run(["tiffcp", "-c", "none", "bad.tif", "copy.tif"], capture_output=True)
            done = subprocess.run([test.program, "identity", "bad.tif", "out.png"], capture_output=True, text=True)
            is_bad = libtiff.returncode != 0 or libtiff.stderr != b""
            if "zip" in options:
                try:
                    is_bad = is_bad or len(zlib.decompress(bad[offset:offset + size])) == 0
                except zlib.error:
                    is_bad = True
            test.check(done.returncode == 1 if is_bad else done.returncode in (0, 1), f"{options}: {libtiff.stderr}")
            test.check(done.returncode == 0 or "the TIFF file is damaged" in done.stderr, done.stderr)


def test_lists_that_are_not_right(test):
    """Sizes of strips that are missing or too large, tiles in the tags of strips, and more numbers of bits than
    channels: what libtiff reads, and what follows from other numbers."""
    w, h, each = 29, 21, 4
    pixels = bytes(random.Random(3).randrange(256) for _ in range(3 * w * h))
    pieces = [pixels[i:i + 3 * w * each] for i in range(0, len(pixels), 3 * w * each)]
    packed = [zlib.compress(piece) for piece in pieces]
    tiles = [b"".join(pixels[3 * w * y + 3 * x:3 * w * y + 3 * min(x + 16, w)].ljust(48, b"\0") if y < h else bytes(48)
                      for y in range(top, top + 16)) for top in (0, 16) for x in (0, 16)]
    rgb = {256: (3, [w]), 257: (3, [h]), 258: (3, [8] * 3), 259: (3, [1]), 262: (3, [2]), 277: (3, [3])}
    test.write("right.png", png(w, h, 3, 8, unfiltered(pixels, 3 * w)))
    for order, wide in itertools.product("<>", (False, True)):
        def offsets(parts):
            return (4, [(16 if wide else 8) + sum(map(len, parts[:i])) for i in range(len(parts))])

        tiled = {322: (3, [16]), 323: (3, [16]), 273: offsets(tiles), 278: None}
        strip, deflate = {278: (3, [each]), 273: offsets(pieces)}, {278: (3, [each]), 259: (3, [8])}
        for change, data in (({258: (3, [8] * 5)}, [pixels]), ({279: None}, [pixels]), ({279: (4, [1 << 20])}, [pixels]),
                             ({278: (4, [999]), 279: (4, [99999])}, [pixels]), ({**strip, 279: None}, pieces),
                             ({**strip, 279: (4, [1 << 20] * len(pieces))}, pieces),
                             ({**strip, 279: (4, [len(pieces[0])] * (len(pieces) - 1) + [9999])}, pieces),
                             ({**deflate, 273: offsets(packed), 279: None}, packed),
                             ({**deflate, 273: offsets(packed), 279: (4, [1 << 20] * len(packed))}, packed),
                             ({**tiled, 279: (4, [768] * 4)}, tiles), ({**tiled, 279: None}, tiles)):
            test.write("in.tif", tiff(order, {**rgb, **change}, b"".join(data), wide))
            test.equal(test.run("identity", "in.tif", "out.png"), "", f"{order} {wide} {change}")
            same(test, "right.png", "out.png", f"{order} {wide} {change}")


def main():
    if not has_codec(sys.argv[1], "libtiff"):
        skip("libtiff was not built in")
    if shutil.which("tiffcp") is None:
        skip("tiffcp is not installed")
    return metadata_files.run_tests(globals())


sys.exit(main())
