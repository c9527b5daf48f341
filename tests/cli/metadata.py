#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The metadata of files on their way through gpuconv: metadata.py GPUCONV, or metadata.py --seeds FOLDER
to write the first inputs of the metadata fuzzer. Skipped (exit status 77) without Pillow or exiftool."""
import hashlib
import io
import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import metadata_files  # noqa: E402
from harness import has_codec  # noqa: E402
from metadata_files import (  # noqa: E402
    DIGEST, HEIGHT, IPTC, MARKER, RESOURCES, WIDTH, Tiff, check_file, chunk, chunks, exif, exiftool, full_jpeg,
    full_png, jpeg, kind_of_profile, large_profile, picture, png, profile, profile_segments, raw_profile, resource,
    segment, segments, text, xmp_packet)

if metadata_files.Image is not None:
    from PIL import Image, ImageOps


# ---- Tests ----

def test_orientation(test):
    """The filter works on the upright picture, as turned by Pillow; both formats, both byte orders."""
    for orientation, make in itertools.product(range(1, 9), (full_png, full_jpeg)):
        source = "in.png" if make is full_png else "in.jpg"
        order = "<" if (orientation % 2 == 0) == (make is full_png) else ">"
        test.write(source, make(orientation, order))
        name = f"orientation {orientation}, {source}, {order}"
        test.equal(test.run("--no-orient", "identity", source, "stored.png"), "", name)
        test.equal(test.run("shift-right", source, "out.png"), "", name)
        stored = Image.open("stored.png")
        test.equal(stored.getexif().get(0x0112), orientation, f"{name}: tag of --no-orient")
        test.equal(stored.size, (WIDTH, HEIGHT), f"{name}: size of --no-orient")
        stored.info.pop("exif", None)
        upright = ImageOps.exif_transpose(stored)
        Image.frombytes(upright.mode, upright.size, upright.tobytes()).save("upright.png")
        test.run("shift-right", "upright.png", "expected.png")
        expected, actual = Image.open("expected.png"), Image.open("out.png")
        test.equal((actual.size, actual.tobytes()), (expected.size, expected.tobytes()), f"{name}: picture")
        tags, turned = check_file(test, "out.png"), orientation >= 5
        sides = (HEIGHT, WIDTH) if turned else (WIDTH, HEIGHT)
        test.equal(tags["IFD0:Orientation"], 1, f"{name}: tag")
        test.equal((tags["IFD0:ImageWidth"], tags["IFD0:ImageHeight"]), sides, f"{name}: sides")
        test.equal((tags["ExifIFD:ExifImageWidth"], tags["ExifIFD:ExifImageHeight"]), sides, f"{name}: sides in EXIF")
        test.equal((tags["IFD0:XResolution"], tags["IFD0:YResolution"]), (200, 300) if turned else (300, 200), name)
        test.equal((tags["ExifIFD:FocalPlaneXResolution"], tags["ExifIFD:FocalPlaneYResolution"]),
                   (5000, 4000) if turned else (4000, 5000), name)
        test.equal((tags["PNG-pHYs:PixelsPerUnitX"], tags["PNG-pHYs:PixelsPerUnitY"]),
                   (7874, 11811) if turned else (11811, 7874), name)
        test.equal("ExifIFD:SubjectArea" in tags, orientation == 1, f"{name}: what depends on places")
        test.equal((tags.get("XMP-tiff:Orientation"), tags.get("XMP-exif:ExifImageWidth")),
                   (6, 23) if orientation == 1 else (None, None), f"{name}: what turns in XMP")


def test_samples(test):
    """Pixels of every size are turned, also in images larger than the tiles of the rotation."""
    for mode, orientation in itertools.product(("L", "LA", "RGB", "RGBA"), range(2, 9)):
        image = picture(mode).resize((77, 45), Image.BILINEAR)
        test.write("in.png", png(chunk(b"eXIf", exif(orientation)), image=image))
        test.run("identity", "in.png", "out.png")
        expected, actual = ImageOps.exif_transpose(Image.open("in.png")), Image.open("out.png")
        test.equal((actual.mode, actual.size), (mode, expected.size), f"{mode}, {orientation}")
        test.equal(actual.tobytes(), expected.tobytes(), f"{mode}, {orientation}: samples")
        tags = actual.getexif()
        test.equal((tags.get(0x0100), tags.get(0x0101)), actual.size, f"{mode}, {orientation}: sides that were wrong")


def test_invalid_orientation(test):
    """An orientation counts as 1 if its first value is no integer from 1 to 8."""
    for kind, count, value in ((3, 1, b"\0\0"), (3, 1, b"\0\x09"), (3, 1, b"\xff\xff"), (4, 1, b"\0\6\0\0"),
                               (9, 1, b"\xff\xff\xff\6"), (2, 1, b"6"), (7, 1, b"\6"), (99, 1, b"\0\6")):
        test.write("in.png", png(chunk(b"eXIf", bytes(Tiff(">", [(0x0112, kind, count, value)]).data))))
        test.run("-q", "identity", "in.png", "out.png")
        test.equal(Image.open("out.png").size, (WIDTH, HEIGHT), f"type {kind}, count {count}, {value}")
    # The first of two orientations counts.
    twice = [(0x0112, 3, 1, b"\0\1"), (0x0112, 3, 1, b"\0\6")]
    test.write("in.png", png(chunk(b"eXIf", bytes(Tiff(">", twice).data))))
    test.run("identity", "in.png", "out.png")
    test.equal(Image.open("out.png").size, (WIDTH, HEIGHT), "two orientations")


def test_orientation_of_any_integer(test):
    """Integers of all types count, and the first of several; a tag of colours as well. JPEGs may have the tag in their
    second EXIF, and another byte at the end of its head."""
    for order, (kind, letter), count in itertools.product("<>", ((1, "B"), (3, "H"), (4, "I"), (6, "b"), (8, "h"),
                                                                 (9, "i")), (1, 2, 5)):
        value = struct.pack(f"{order}{count}{letter}", 8, *[1] * (count - 1))
        block = bytes(Tiff(order, [(0x010F, 2, 6, b"Maker\0"), (0x0112, kind, count, value)]).data)
        for name, data in (("in.png", png(chunk(b"eXIf", block))),
                           ("in.jpg", jpeg(segment(0xE1, b"Exif\0\xff" + block)))):
            test.write(name, data)
            for options, size in (("-q",), (HEIGHT, WIDTH)), (("-q", "--no-orient"), (WIDTH, HEIGHT)):
                test.run(*options, "identity", name, "out.png")
                test.equal(Image.open("out.png").size, size, f"{name}, {order}, type {kind}, count {count}, {options}")
            stored = Image.open("out.png").getexif().get(0x0112)
            test.check(stored in (8, b"\x08"), f"{name}, {order}, type {kind}, count {count}: {stored} by --no-orient")
    first, second = (bytes(Tiff(">", [entry]).data) for entry in ((0x010F, 2, 6, b"Maker\0"), (0x0112, 4, 1, b"\0\0\0\6")))
    test.write("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + first), segment(0xE1, b"Exif\0\0" + second)))
    test.run("-q", "identity", "in.jpg", "out.jpg")
    test.equal(Image.open("out.jpg").size, (HEIGHT, WIDTH), "a second EXIF")
    test.equal(Image.open("out.jpg").getexif().get(0x010F), "Maker", "the first EXIF")


def test_carried(test):
    """Profile, EXIF, XMP, resolution and comment go from each format to each; PNG to PNG keeps the rest too."""
    fields = {"IFD0:Make": "Maker & Co", "ExifIFD:DateTimeOriginal": "2024:05:06 07:08:09",
              "ExifIFD:UserComment": "a commen", "InteropIFD:InteropIndex": "R98", "GPS:GPSLatitudeRef": "N",
              "GPS:GPSLatitude": 48.8566666666667, "GPS:GPSLongitude": 2.29444444444444,
              "XMP-dc:Source": "Gr\u00fc\u00dfe",
              "IFD0:XResolution": 300, "IFD0:YResolution": 200, "IFD0:ResolutionUnit": 2}
    for source, target in itertools.product(("in.jpg", "in.png"), ("out.jpg", "out.png")):
        name, order = f"{source} to {target}", "<" if source[-3:] == target[-3:] else ">"
        test.write(source, (full_jpeg if source == "in.jpg" else full_png)(1, order))
        test.equal(test.run("sharpen", source, target), "", name)
        image, tags = Image.open(target), check_file(test, target)
        test.equal(image.info.get("icc_profile"), profile(), f"{name}: profile")
        for field, value in fields.items():
            test.equal(tags.get(field), value, f"{name}: {field}")
        for field in ("ExifIFD:MakerNoteUnknownText", "IFD1:Compression", "IFD0:Compression", "MPF0:MPFVersion"):
            test.check(field not in tags, f"{name}: {field}")
        density = [round(value) for value in image.info["dpi"]]
        test.equal(density, [300, 200], f"{name}: resolution")
        if source == "in.jpg" or target == "out.png":  # a JPEG gets Latin-1 unchanged, which exiftool does not expect
            comment = tags.get("File:Comment" if target == "out.jpg" else "PNG:Comment")
            test.equal(comment, "Gr\u00fc\u00dfe", f"{name}: comment")
        packets = [data for kind, data in (segments if target == "out.jpg" else chunks)(target)
                   if b"http://ns.adobe.com/xap/1.0/\0" in data or b"XML:com.adobe.xmp\0" in data]
        is_extended = name == "in.png to out.jpg"  # by the PNG's author and title
        test.equal([packet.endswith(xmp_packet()) for packet in packets], [not is_extended], f"{name}: XMP")
        if is_extended:
            test.equal((tags.get("XMP-dc:Creator"), tags.get("XMP-dc:Title")), ("Somebody", "A title"), name)
        if source == "in.jpg":
            test.equal(tags.get("IPTC:ObjectName"), "A title", f"{name}: IPTC")


def test_png_to_png(test):
    """Chunks that remain true are kept, in an allowed order; the others are dropped."""
    test.write("in.png", full_png())
    test.run("blur", "in.png", "out.png")
    before, after = dict(chunks("in.png")), dict(chunks("out.png"))
    for name in (b"gAMA", b"cHRM", b"pHYs", b"tEXt", b"zTXt"):
        test.equal(after.get(name), before[name], name)
    test.check(after[b"iCCP"].startswith(b"A name\0\0"), "the profile's name")
    for name in (b"sBIT", b"tIME"):
        test.check(name not in after, name)
    texts = [data for name, data in chunks("out.png") if name == b"iTXt"]
    test.equal(texts[-1], b"Title\0\0\0en\0t\0A title", "a text after the picture")
    names = [name for name, _ in chunks("out.png")]
    test.check(max(names.index(name) for name in (b"iCCP", b"gAMA", b"cHRM")) < names.index(b"IDAT"), names)
    test.write("in.png", png(chunk(b"cICP", b"\1\r\0\1"), chunk(b"sRGB", b"\2"),
                             chunk(b"pHYs", struct.pack(">IIB", 2, 1, 0))))
    test.run("blur", "in.png", "out.png")
    test.equal(dict(chunks("out.png")).get(b"cICP"), b"\1\r\0\1", "cICP")  # pngcheck does not know cICP
    test.equal(dict(chunks("out.png")).get(b"sRGB"), b"\2", "sRGB")
    test.equal(dict(chunks("out.png")).get(b"pHYs"), struct.pack(">IIB", 2, 1, 0), "an aspect")
    test.run("blur", "out.png", "out.jpg")
    test.equal(dict(segments("out.jpg"))[0xE0][7:12], b"\0\0\2\0\1", "an aspect in a JPEG")


def test_behind_end(test):
    """Nothing after IEND is read, where no checksum has been looked at; an output is always a file that is read."""
    broken = bytearray(chunk(b"tEXt", b"Title\0hidden"))
    broken[-1] ^= 1
    for name, added in (("whole", chunk(b"tEXt", b"Title\0hidden")), ("damaged", bytes(broken)),
                        ("exif", chunk(b"eXIf", exif(6)))):
        test.write("in.png", png() + added)
        test.run("blur", "in.png", "out.png")
        test.equal({kind for kind, _ in chunks("out.png")}, {b"IHDR", b"IDAT", b"IEND"}, f"after IEND: {name}")
        test.equal(Image.open("out.png").size, (WIDTH, HEIGHT), f"after IEND: {name}")
        test.run("blur", "out.png", "again.png")


def test_jpeg_to_jpeg(test):
    """IPTC and the copyright URL are kept, Photoshop's other resources are not. A comment keeps its bytes in any
    encoding. A profile of several segments is split again."""
    test.write("in.jpg", full_jpeg())
    test.run("blur", "in.jpg", "out.jpg")
    after = list(segments("out.jpg"))
    test.equal([data for kind, data in after if kind == 0xED],
               [b"Photoshop 3.0\0" + resource(0x0404, IPTC, b"x") + resource(0x0425, DIGEST)
                + resource(0x040B, b"https://example.org")], "resources")
    test.equal({kind for kind, _ in after if 0xE0 <= kind < 0xF0}, {0xE0, 0xE1, 0xE2, 0xED}, "segments")
    test.equal(after[0][0], 0xE0, "JFIF comes first")
    for comment in (b"plain", "Gr\u00fc\u00dfe".encode(), b"Gr\xfc\xdfe"):
        test.write("in.jpg", jpeg(segment(0xFE, comment)))
        test.run("blur", "in.jpg", "out.jpg")
        test.equal(dict(segments("out.jpg")).get(0xFE), comment, "a comment")
    large = large_profile(200000)
    test.write("in.jpg", jpeg(*profile_segments(large)))
    test.run("blur", "in.jpg", "out.jpg")
    test.equal(len([kind for kind, _ in segments("out.jpg") if kind == 0xE2]), 4, "segments of a large profile")
    test.equal(Image.open("out.jpg").info.get("icc_profile"), large, "a large profile")
    test.run("blur", "out.jpg", "out.png")
    test.equal(Image.open("out.png").info.get("icc_profile"), large, "a large profile in a PNG")
    test.write("in.jpg", jpeg(dpi=(72, 72)))
    test.run("blur", "in.jpg", "out.jpg")
    test.equal(dict(segments("out.jpg"))[0xE0][7:12], b"\1\0\x48\0\x48", "a density")


def test_hidden(test):
    """ImageMagick's profiles in PNG texts are read, and their thumbnails are found."""
    test.write("in.png", png(raw_profile(b"exif", b"Exif\0\0" + exif(6)), raw_profile(b"iptc", RESOURCES),
                             raw_profile(b"xmp", xmp_packet()), raw_profile(b"icc", profile() + MARKER)))
    test.run("blur", "in.png", "out.png")
    tags = check_file(test, "out.png")
    test.equal(Image.open("out.png").size, (HEIGHT, WIDTH), "a hidden orientation")
    test.equal((tags.get("IFD0:Make"), tags.get("IPTC:ObjectName"), tags.get("XMP-dc:Source")),
               ("Maker & Co", "A title", "Gr\u00fc\u00dfe"), "hidden metadata")
    test.run("blur", "in.png", "out.jpg")
    test.equal(exiftool("out.jpg").get("IPTC:ObjectName"), "A title", "IPTC to a JPEG")
    test.write("in.png", png(raw_profile(b"APP1", b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet())))
    test.run("blur", "in.png", "out.png")
    test.equal(exiftool("out.png").get("XMP-dc:Source"), "Gr\u00fc\u00dfe", "XMP as APP1")


def left_out(test, data, target, expected, name, *options):
    """Writing DATA to TARGET drops what EXPECTED says, with one warning, or silently with -q."""
    source = "in.png" if data.startswith(b"\x89") else "in.jpg"
    test.write(source, data)
    warning = test.run(*options, "identity", source, target)
    test.check(warning.startswith("gpuconv: warning: ") and warning.endswith(": metadata not carried over: " + expected
                                                                             + "\n"), f"{name}: {warning}")
    test.equal(test.run("-q", "identity", source, target), "", name)
    check_file(test, target)


def test_left_out(test):
    """Damaged, too large or untrue metadata are dropped; the rest is kept."""
    grey, made = kind_of_profile(b"GRAY"), profile()
    left_out(test, png(chunk(b"iCCP", b"x\0\0" + zlib.compress(made)[:-1])), "out.png", "ICC profile (is damaged)",
             "cut short")
    left_out(test, png(chunk(b"iCCP", b"\0\0" + zlib.compress(made))), "out.png", "ICC profile (is damaged)", "unnamed")
    left_out(test, png(chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(100)))), "out.png", "ICC profile (is damaged)",
             "short")
    left_out(test, png(chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(17 << 20)))), "out.png",
             "ICC profile (is too large)", "bomb")
    left_out(test, jpeg(*profile_segments(made, 200)[1:]), "out.jpg", "ICC profile (is damaged)",
             "a segment is missing")
    left_out(test, jpeg(*profile_segments(made, 200), profile_segments(made, 200)[0]), "out.jpg",
             "ICC profile (is damaged)", "a segment is there twice")
    left_out(test, png(chunk(b"iCCP", b"x\0\0" + zlib.compress(grey))), "out.png", "ICC profile (is for other colours)",
             "grey profile, colour picture")
    left_out(test, png(chunk(b"iCCP", b"x\0\0" + zlib.compress(made)), image=picture("L")), "out.png",
             "ICC profile (is for other colours)", "RGB profile, grey picture")
    if has_codec(test.program, "libjpeg-turbo"):
        left_out(test, jpeg(*profile_segments(kind_of_profile(b"CMYK")), image=picture("CMYK")), "out.jpg",
                 "ICC profile (is for other colours)", "inks become RGB")
    left_out(test, png(chunk(b"eXIf", b"nonsense")), "out.png", "EXIF (is damaged)", "no TIFF")
    left_out(test, png(chunk(b"eXIf", b"II*\0\xff\xff\xff\xff")), "out.png", "EXIF (is damaged)", "directory outside")
    left_out(test, jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0x\0y")), "out.jpg", "XMP (is damaged)", "UTF-16")
    left_out(test, png(chunk(b"tEXt", b"no end")), "out.png", "text (is damaged)", "text without a keyword")
    left_out(test, png(chunk(b"tEXt", b"Author\0" + b"x" * (17 << 20))), "out.png", "text (is too large)", "long text")
    left_out(test, jpeg(segment(0xFE, b"a\0b")), "out.jpg", "text (is damaged)", "comment that is none")
    left_out(test, jpeg(segment(0xED, b"Photoshop 3.0\x008BIM\4\4\0\0\0\0\0\x09x")), "out.jpg", "IPTC (is damaged)",
             "resource cut short")
    prose = b"A field near the village. " * 2700
    long = [(tag, 2, 40001, prose[:40000] + b"\0") for tag in (0x010E, 0x013B)] + [(0x0112, 3, 1, b"\0\6")]
    left_out(test, png(chunk(b"eXIf", bytes(Tiff(">", long).data))), "out.jpg", "EXIF (is too large)", "long EXIF",
             "--keep-text")
    test.equal(Image.open("out.jpg").size, (HEIGHT, WIDTH), "the orientation of long EXIF")
    long = xmp_packet(elements=f"<dc:title>{prose[:66000].decode()}</dc:title>")
    left_out(test, png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + long)), "out.jpg", "XMP (is too large)", "XMP",
             "--keep-text")
    left_out(test, png(chunk(b"tEXt", b"Comment\0" + prose)), "out.jpg", "text (is too large)", "long comment",
             "--keep-text")
    # A grey profile on a grey picture stays true as long as the codec writes grey.
    test.write("in.png", png(chunk(b"iCCP", b"x\0\0" + zlib.compress(grey)), image=picture("L")))
    test.equal(test.run("identity", "in.png", "out.png"), "", "a grey profile")
    test.equal(Image.open("out.png").info.get("icc_profile"), grey, "a grey profile")
    said = test.run("--codec", "stb", "identity", "in.png", "out.jpg")
    test.check("ICC profile (is for other colours)" in said, f"stb writes colour: {said}")


def test_damaged_chunks(test):
    """A chunk with a wrong checksum is left out with a warning if the picture does not need it, whatever codec reads
    the file. Its contents have no effect."""
    def damaged(kind, data):
        broken = bytearray(chunk(kind, data))
        broken[-1] ^= 1
        return bytes(broken)

    whole = chunk(b"tEXt", b"Author\0Somebody")
    test.write("whole.png", png(whole))
    test.run("blur", "whole.png", "expected.png")
    with open("expected.png", "rb") as file:
        expected = file.read()
    for kind, data, part in (
            (b"iCCP", b"x\0\0" + zlib.compress(profile()), "ICC profile"), (b"eXIf", exif(6), "EXIF"),
            (b"tEXt", b"Title\0x", "text"), (b"zTXt", b"Title\0\0" + zlib.compress(b"x"), "text"),
            (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_packet(), "text"),
            (b"gAMA", struct.pack(">I", 100000), "gamma or colour space"),
            (b"cHRM", bytes(32), "gamma or colour space"),
            (b"sRGB", b"\0", "gamma or colour space"), (b"cICP", b"\1\r\0\1", "gamma or colour space"),
            (b"pHYs", struct.pack(">IIB", 9, 9, 1), "another chunk"), (b"tIME", bytes(7), "another chunk"),
            (b"fdAT", bytes(8), "another chunk"), (b"bKGD", bytes(6), "another chunk")):
        for codec, place in itertools.product((None, "parallel-png", "stb"), ("before", "behind")):
            broken = damaged(kind, data)
            test.write("in.png", png(broken, whole) if place == "before" else png(whole, behind=(broken,)))
            options = ("--codec", codec) if codec else ()
            said = test.run(*options, "blur", "in.png", "out.png")
            test.equal(said, f"gpuconv: warning: in.png: metadata not carried over: {part} (is damaged)\n",
                       f"{kind}, {codec}, {place}")
            if codec != "stb":  # another encoder
                with open("out.png", "rb") as file:
                    test.equal(file.read() == expected, True, f"{kind}, {codec}, {place}")
            test.run("--compare", "out.png", "expected.png")
            said = test.run("--linear", "--strip", "blur", "in.png", "out.png")
            test.equal("cannot read the curve of its ICC profile, and uses the curve of sRGB" in said if kind == b"iCCP"
                       else said == "", True, f"{kind}, {codec}, {place}: {said}")
    test.write("in.png", png(chunk(b"gAMA", struct.pack(">I", 45455)), damaged(b"gAMA", struct.pack(">I", 100000))))
    test.run("identity", "in.png", "out.png")
    test.equal(dict(chunks("out.png")).get(b"gAMA"), struct.pack(">I", 45455), "the intact one of two")
    for kind in (b"IHDR", b"IDAT", b"IEND", b"PLTE", b"tRNS", b"uRNS", b"prVt", b"NEWS"):
        test.write("in.png", png(damaged(kind, b"")))
        test.check(f"the checksum of chunk {kind.decode()} at byte 33 is wrong"
                   in test.run("identity", "in.png", "never.png", status=1), f"{kind} is needed")


def test_extended_xmp(test):
    """The first segment of an extended packet is kept, and no longer refers to the others."""
    guid = "0123456789ABCDEF0123456789ABCDEF"
    extension = (b"http://ns.adobe.com/xmp/extension/\0" + guid.encode() + struct.pack(">II", len(MARKER), 0) + MARKER)
    for form in ((f'xmlns:xmpNote="http://ns.adobe.com/xmp/note/" xmpNote:HasExtendedXMP="{guid}"', ""),
                 ('xmlns:xmpNote="http://ns.adobe.com/xmp/note/"',
                  f"<xmpNote:HasExtendedXMP>{guid}</xmpNote:HasExtendedXMP>")):
        test.write("in.jpg", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(*form)),
                                  segment(0xE1, extension)))
        test.equal(test.run("identity", "in.jpg", "out.jpg"), "", "extended XMP")
        tags = check_file(test, "out.jpg")
        test.equal(tags.get("XMP-dc:Source"), "Gr\u00fc\u00dfe", "the first segment")
        with open("out.jpg", "rb") as file:
            test.check(guid.encode() not in file.read(), "the extension is named")


def test_claims(test):
    """Properties that describe other bytes of a file are always left out. Properties that describe the picture stay,
    but a place in it does not survive a turn."""
    google, rdf = "http://ns.google.com/photos/1.0/", "rdf:parseType='Resource'"
    items = "".join(f"<rdf:li {rdf}><Container:Item Item:Mime='image/jpeg' Item:Semantic='{name}' Item:Length='9'/>"
                    "</rdf:li>" for name in ("Primary", "GainMap", "MotionPhoto"))
    claims = {
        "Ultra HDR": ('xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"', ""),
        "its numbers": ('xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/"',
                        "<hdrgm:GainMapMax><rdf:Seq><rdf:li>1.2</rdf:li></rdf:Seq></hdrgm:GainMapMax>"),
        "the directory": (f'xmlns:Container="{google}container/" xmlns:Item="{google}container/item/"',
                          f"<Container:Directory><rdf:Seq>{items}</rdf:Seq></Container:Directory>"),
        "a film": (f'xmlns:GCamera="{google}camera/" GCamera:MotionPhoto="1" GCamera:MotionPhotoVersion="1" '
                   'GCamera:MotionPhotoPresentationTimestampUs="5" GCamera:MicroVideo="1" '
                   'GCamera:MicroVideoOffset="999"', ""),
        "another prefix": (f'xmlns:a="{google}camera/"', "<a:MotionPhoto>1</a:MotionPhoto>"),
        "OPPO's film": ('xmlns:OpCamera="http://ns.oplus.com/photos/1.0/camera/" OpCamera:VideoLength="9"', ""),
        "a depth": (f'xmlns:GDepth="{google}depthmap/" GDepth:Mime="image/png" xmlns:GImage="{google}image/" '
                    'GImage:Mime="image/jpeg"', ""),
        "dynamic depth": ("", "<d:Container xmlns:d='http://ns.google.com/photos/dd/1.0/device/' "
                          f"{rdf}><d:Directory>x</d:Directory></d:Container>"),
        "Apple's map": ('xmlns:HDRGainMap="http://ns.apple.com/HDRGainMap/1.0/" HDRGainMap:HDRGainMapVersion="131072"',
                        ""),
        "a manifest": ('xmlns:dcterms="http://purl.org/dc/terms/" dcterms:provenance="self#jumbf=c2pa"', ""),
        "a thumbnail": ('xmlns:g="http://ns.adobe.com/xap/1.0/g/img/"', "<xmp:Thumbnails><rdf:Alt><rdf:li "
                        f"{rdf}><g:image>{MARKER.decode()}</g:image></rdf:li></rdf:Alt></xmp:Thumbnails>"),
    }
    words = (b"GainMap", b"MotionPhoto", b"MicroVideo", b"Container", b"Item", b"Version", b"provenance", b"Length",
             b"Mime", b"Directory", b"Thumbnails", b"google", b"oplus", b"apple", b"purl.org/dc/terms")
    index = segment(0xE2, b"MPF\0" + MARKER)
    iso = segment(0xE2, b"urn:iso:std:iso:ts:21496:-1\0" + MARKER)
    title = "<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>A title</rdf:li></rdf:Alt></dc:title>"
    for (name, (attributes, elements)), options in itertools.product(claims.items(), ((), ("--keep-text",))):
        packet = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(attributes, elements + title))
        test.write("in.jpg", jpeg(packet, index, iso))
        for target in ("out.jpg", "out.png"):
            test.equal(test.run(*options, "identity", "in.jpg", target), "", f"{name}, {options}")
            tags = check_file(test, target)
            test.equal((tags.get("XMP-dc:Source"), tags.get("XMP-dc:Title")), ("Gr\u00fc\u00dfe", "A title"), name)
            with open(target, "rb") as file:
                data = file.read()
            test.equal([word for word in words if word in data], [], f"{name}, {options}, {target}: what is left")
    places = (f'xmlns:GPano="{google}panorama/" GPano:FullPanoWidthPixels="4000" tiff:ImageWidth="23"',
              '<mwg:Regions xmlns:mwg="http://www.metadataworkinggroup.com/schemas/regions/" '
              'xmlns:area="http://ns.adobe.com/xmp/sType/Area#" area:x="0.5"/>')
    for orientation, options in itertools.product((1, 3, 6), ((), ("--keep-text",))):
        test.write("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + exif(orientation)),
                                  segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(*places))))
        test.equal(test.run(*options, "identity", "in.jpg", "out.jpg"), "", f"places, {orientation}, {options}")
        with open("out.jpg", "rb") as file:
            data = file.read()
        test.equal([word in data for word in (b"FullPanoWidthPixels", b"mwg:Regions", b"ImageWidth", b"dc:source")],
                   [orientation == 1] * 3 + [True], f"places, {orientation}, {options}")


def test_keep_text(test):
    """Long texts and unknown properties need --keep-text. A file has a limit for one text and one for all."""
    def files(size, count=1):
        """Files with COUNT texts of SIZE bytes in each place, and where they are read."""
        value = (b"A field near the village, in the evening. " * 100)[:size]
        data = value.decode()
        elements = "".join(f"<xmp:N{i}>{data}</xmp:N{i}>" for i in range(count))
        tags = (0x010E, 0x013B, 0x8298, 0xA436, 0x9213, 0x0131, 0x010D, 0x000B, 0xA433, 0xA434)[:count]
        datasets = b"".join(b"\x1c\2" + bytes([120]) + struct.pack(">H", size) + value for i in range(count))
        yield "XMP", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet("", elements))), value
        packed = zlib.compress(xmp_packet("", elements))
        yield "XMP", png(chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed)), value
        block = Tiff("<", [(tag, 2, size + 1, value + b"\0") for tag in tags])
        yield "EXIF", png(chunk(b"eXIf", bytes(block.data))), value
        yield "IPTC", jpeg(segment(0xED, b"Photoshop 3.0\0" + resource(0x0404, datasets))), value
        yield "text", png(*(chunk(b"tEXt", b"Author\0" + value) for i in range(count))), value
        yield "text", png(*(chunk(b"zTXt", b"Author\0\0" + zlib.compress(value)) for i in range(count))), value
        yield "text", jpeg(*(segment(0xFE, value) for i in range(count))), value

    for size in (900, 1001):
        for part, data, value in files(size):
            source = "in.png" if data.startswith(b"\x89") else "in.jpg"
            target = source.replace("in", "out")
            test.write(source, data)
            expected = "" if size == 900 else (f"gpuconv: warning: {source}: metadata not carried over: {part} "
                                               "(parts need --keep-text)\n")
            for options, said, kept in (((), expected, size == 900), (("--keep-text",), "", True)):
                test.equal(test.run(*options, "identity", source, target), said, f"{part}, {source}, {size}, {options}")
                found = [value in body for body in texts_of(target)]
                test.equal(any(found), kept, f"{part}, {source}, {size}, {options}")
    for part, data, value in files(900, 10):
        source = "in.png" if data.startswith(b"\x89") else "in.jpg"
        target = source.replace("in", "out")
        test.write(source, data)
        said = test.run("identity", source, target)
        test.check(f"{part} (parts need --keep-text)" in said, f"10 texts in {part}: {said}")
        count = sum(body.count(value) for body in texts_of(target))
        test.check(count == 0 if part == "EXIF" else 6 <= count <= 8, f"10 texts in {part}, {source}: {count}")
        test.equal(test.run("--keep-text", "identity", source, target), "", f"10 texts in {part}, {source}")
        test.equal(sum(body.count(value) for body in texts_of(target)), 10, f"10 texts in {part}, {source}")
    unknown = xmp_packet('xmlns:a="https://example.org/a/" a:b="A value"',
                         "<a:c>Another</a:c><dc:title>A title</dc:title>")
    test.write("in.jpg", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + unknown)))
    said = test.run("identity", "in.jpg", "out.jpg")
    test.check("XMP (parts need --keep-text)" in said, f"unknown properties: {said}")
    test.equal([word in b"".join(texts_of("out.jpg")) for word in (b"A value", b"Another", b"example", b"A title")],
               [False, False, False, True], "unknown properties")
    test.equal(test.run("--keep-text", "identity", "in.jpg", "out.jpg"), "", "unknown properties")
    test.check(any(body.endswith(unknown) for body in texts_of("out.jpg")), "unknown properties with --keep-text")


def texts_of(path):
    """The bodies of the chunks or segments of a file, those of compressed texts and raw profiles inflated."""
    for kind, body in chunks(path) if path.endswith(".png") else segments(path):
        if kind == b"zTXt":
            body = zlib.decompress(body.split(b"\0", 1)[1][1:])
        if b"Raw profile type" in body:
            body = bytes.fromhex("".join(body.decode().split("\n")[3:]))
        yield body


def test_xmp_orientation(test):
    """XMP's orientation, an attribute with either quote or an element, stays only if the picture is not turned."""
    forms = (('tiff:Orientation="6"', ""), ("tiff:Orientation = '6'", ""),
             ("", "<tiff:Orientation>6</tiff:Orientation>"))
    for form, orientation in itertools.product(forms, (1, 6)):
        test.write("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + exif(orientation)),
                                  segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(*form))))
        test.run("identity", "in.jpg", "out.jpg")
        test.equal(exiftool("out.jpg").get("XMP-tiff:Orientation"), None if orientation == 6 else 6,
                   f"{form}, {orientation}")


def test_hostile_exif(test):
    """Loops, directories and values out of bounds, overflowing counts: at most a warning; the readable rest is read."""
    def block(*entries, order=">", count=None):
        data = b"".join(struct.pack(order + "HHI", *entry[:3]) + entry[3] for entry in entries)
        return ((b"MM\0*" if order == ">" else b"II*\0") + struct.pack(order + "I", 8)
                + struct.pack(order + "H", len(entries) if count is None else count) + data)

    orientation = (0x0112, 3, 1, b"\0\6\0\0")
    blocks = {
        "a directory below itself": block(orientation, (0x8769, 4, 1, struct.pack(">I", 8))),
        "a next directory that is the same": block(orientation) + struct.pack(">I", 8),
        "far outside": block(orientation, (0x8769, 4, 1, b"\xff\xff\xff\xff"), (0x8825, 4, 1, b"\xff\xff\xff\xfe")),
        "value outside": block(orientation, (0x010F, 2, 100, b"\0\0\0\x20")),
        "count overflows": block(orientation, (0x010F, 12, 0xFFFFFFFF, b"\0\0\0\x08")),
        "more entries than bytes": block(orientation, count=65535),
        "inside the header": block(orientation, (0x8769, 4, 1, b"\0\0\0\1")),
        "several kinds of pointer": block(orientation, (0x8769, 3, 1, b"\0\x08\0\0"), (0x8825, 4, 2, b"\0\0\0\x08")),
    }
    for name, data in blocks.items():
        for size in (len(data), len(data) - 1):
            test.write("in.png", png(chunk(b"eXIf", data[:size])))
            test.run("-q", "identity", "in.png", "out.png")
            whole = size >= 22  # the first entry is whole
            test.equal(Image.open("out.png").size, (HEIGHT, WIDTH) if whole else (WIDTH, HEIGHT), name)
            check_file(test, "out.png")
    # 60000 entries that all name the same 8 million bytes: time and memory grow with the file only.
    many = b"MM\0*\0\0\0\x08" + struct.pack(">H", 60000)
    many += b"".join(struct.pack(">HHII", 0xB000 - i & 0xFFFF, 7, 8 << 20, 800000) for i in range(60000))
    test.write("in.png", png(chunk(b"eXIf", many + bytes(9 << 20))))
    subprocess.run([test.program, "-q", "identity", "in.png", "out.png"], check=True, timeout=60)
    test.check(os.path.getsize("out.png") < 40 << 20, "the size of what overlaps")


def wide_profile():
    """A profile whose red is that of Display P3."""
    data = bytearray(profile())
    for i in range(struct.unpack(">I", data[128:132])[0]):
        tag, at = data[132 + 12 * i:136 + 12 * i], struct.unpack(">I", data[136 + 12 * i:140 + 12 * i])[0]
        if tag == b"rXYZ":
            data[at + 8:at + 20] = struct.pack(">3i", round(0.5151 * 65536), round(0.2412 * 65536), -round(0.0011 * 65536))
    return bytes(data)


def named_files(icc):
    """A JPEG, and a PNG, that say all that somebody may want to keep or to drop."""
    camera = [(0x9003, *text("2023:04:05 06:07:08")), (0xA430, *text("An Owner")), (0xA431, *text("Body 123")),
              (0xA434, *text("A lens")), (0xA435, *text("Lens 456"))]
    place = [(0, 1, 4, b"\2\3\0\0"), (1, *text("N")), (2, 5, 3, struct.pack("<6I", 48, 1, 51, 1, 24, 1))]
    image = [(0x010F, *text("A maker")), (0x0112, 3, 1, b"\6\0"), (0x011A, 5, 1, struct.pack("<II", 300, 1)),
             (0x013B, *text("An Artist")), (0x8298, *text("(c) Exif")), (0x8769, 4, 1, camera), (0x8825, 4, 1, place)]
    block = bytes(Tiff("<", image).data)
    packet = xmp_packet('xmp:Rating="3" photoshop:City="A City" exif:GPSLatitude="48,51N" xmpMM:DocumentID="An id" '
                        'xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" '
                        'xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" '
                        'xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/" xmpRights:WebStatement="https://a.example"',
                        "<dc:creator><rdf:Seq><rdf:li>A Creator</rdf:li></rdf:Seq></dc:creator>"
                        "<dc:rights><rdf:Alt><rdf:li xml:lang='x-default'>(c) Xmp</rdf:li></rdf:Alt></dc:rights>")
    iptc = b"\x1c\x02\x05\0\7A title\x1c\x02\x50\0\4Name\x1c\x02\x5a\0\4Town\x1c\x02\x74\0\x08(c) Iptc"
    resources = resource(0x0404, iptc) + resource(0x0425, hashlib.md5(iptc).digest())
    texts = [chunk(b"tEXt", pair) for pair in (b"Author\0A Writer", b"Copyright\0(c) Text", b"Title\0The title")]
    return {"in.jpg": jpeg(segment(0xE1, b"Exif\0\0" + block), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet),
                           segment(0xED, b"Photoshop 3.0\0" + resources), *profile_segments(icc)),
            "in.png": png(chunk(b"iCCP", b"x\0\0" + zlib.compress(icc)),
                          chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet), *texts,
                          behind=(chunk(b"eXIf", block),))}


def test_strip(test):
    """--strip keeps the copyright, and a profile that is not sRGB's; --strip private keeps all but what says who and
    where; --strip all drops all, and says so if colours change. The picture is always turned."""
    copyright = {"(c) Exif", "(c) Xmp", "(c) Iptc", "(c) Text", "https://a.example"}
    persons = {"An Owner", "Body 123", "Lens 456", "An Artist", "A City", "An id", "A Creator", "Name", "Town", "A Writer"}
    public = {"A maker", "A lens", "A title", "The title", "2023:04:05 06:07:08"}
    for icc, suffix in itertools.product((profile(), wide_profile()), ("jpg", "png", "webp", "tif")):
        is_wide = icc != profile()
        for name, data in named_files(icc).items():
            test.write(name, data)
            before = set(map(str, exiftool(name).values()))
            for words in ("", "none", "most", "private", "all"):
                target = f"out.{suffix}"
                case = f"{name} to {target}, {is_wide}, {words}"
                options = [] if words == "none" else ["--strip"] + [words] * (words != "")
                said = test.run(*options, "blur", name, target)
                tags = exiftool(target)
                values = set(map(str, tags.values()))
                kept = {"none": copyright | persons | public, "private": copyright | public}.get(words, copyright)
                kept = kept & before if words != "all" else set()
                if suffix == "webp":  # which holds no IPTC
                    kept -= {"(c) Iptc", "A title", "Name", "Town"}
                if suffix != "png":  # XMP has a title of the PNG's, and an author and a copyright of its own
                    kept -= {"(c) Text", "A Writer"}
                test.equal((copyright | persons | public) & values, kept, case)
                has_gps = any("GPS" in tag and tag != "File:GPS" for tag in tags)
                test.equal(has_gps, words == "none", f"{case}: places")
                test.equal(any("ICC" in tag for tag in tags), words in ("none", "private") or (is_wide and words != "all"),
                           f"{case}: profile")
                test.equal("colours look different" in said, words == "all" and is_wide, f"{case}: {said}")
                test.equal(Image.open(target).size, (HEIGHT, WIDTH), f"{case}: size")
    for name in ("in.jpg", "in.png"):
        test.write(name, (full_jpeg if name == "in.jpg" else full_png)(6))
        test.equal(test.run("--strip=all", "--no-orient", "blur", name, "out.png"), "", name)
        test.equal({kind for kind, _ in chunks("out.png")}, {b"IHDR", b"IDAT", b"IEND"}, name)
        test.equal(Image.open("out.png").size, (WIDTH, HEIGHT), f"{name}: size with --no-orient")
    for chunk_, kept in ((chunk(b"cICP", b"\x0c\x0d\0\1"), True), (chunk(b"cICP", b"\1\x0d\0\1"), False),
                         (chunk(b"gAMA", struct.pack(">I", 100000)), True), (chunk(b"sRGB", b"\0"), False),
                         (chunk(b"gAMA", struct.pack(">I", 45455)), False)):
        test.write("in.png", png(chunk_))
        test.equal(test.run("--strip", "blur", "in.png", "out.png"), "", "colours are kept")
        test.equal(any(kind == chunk_[4:8] for kind, _ in chunks("out.png")), kept, chunk_)
        said = test.run("--strip", "all", "blur", "in.png", "out.png")
        test.equal("gamma or colour space (the colours look different without it" in said, kept, said)
    test.write("in.png", png(chunk(b"eXIf", b"nonsense")))
    test.equal(test.run("--strip", "blur", "in.png", "out.png"), "", "what is stripped is not warned of")
    test.check("takes none, most, private or all" in test.run("--strip=some", "blur", "in.png", "out.png", status=2), "")


def test_keep(test):
    """--keep names what --strip leaves: a part, or one thing in all parts."""
    says = {"copyright": {"(c) Exif", "(c) Xmp", "(c) Iptc", "(c) Text", "https://a.example"},
            "exif": {"(c) Exif", "An Owner", "Body 123", "Lens 456", "An Artist", "A maker", "A lens", "2023:04:05 06:07:08"},
            "xmp": {"(c) Xmp", "A Creator", "A City", "An id", "https://a.example"}, "iptc": {"(c) Iptc", "Name", "Town"},
            "text": {"(c) Text", "A Writer", "The title"}, "gps": set(), "icc": set(), "resolution": set()}
    everything = set().union(*says.values())
    for name, data in named_files(wide_profile()).items():
        test.write(name, data)
        before = set(map(str, exiftool(name).values())) & everything
        for strip, kept in itertools.product(("all", "most", "private"), [*[(word,) for word in says], ("icc", "gps"),
                                                                          ("copyright", "icc"), ("exif", "xmp", "text")]):
            case = f"{name}, {strip}, {kept}"
            said = test.run("--strip", strip, "--keep", ",".join(kept), "blur", name, "out.png")
            tags = exiftool("out.png")
            values = set(map(str, tags.values())) & everything
            wanted = set().union(*(says[word] for word in kept)) | (says["copyright"] if strip != "all" else set())
            if strip != "private":
                test.equal(values, wanted & before, case)
            else:
                test.check(wanted & before <= values, case)
            test.equal("GPS:GPSLatitude" in tags, "gps" in kept or "exif" in kept, f"{case}: places")
            has_colours = any("ICC" in tag for tag in tags)
            test.equal(has_colours, strip != "all" or "icc" in kept, f"{case}: profile")
            test.equal("colours look different" in said, not has_colours, f"{case}: {said}")
    test.write("in.png", png(chunk(b"cICP", b"\x0c\x0d\0\1"), chunk(b"pHYs", struct.pack(">IIB", 4000, 3000, 1))))
    for kept in ("icc", "resolution"):
        test.run("-q", "--strip", "--keep", kept, "--strip=all", "blur", "in.png", "out.png")
        test.equal([kind for kind, _ in chunks("out.png") if kind in (b"cICP", b"pHYs")],
                   [b"cICP" if kept == "icc" else b"pHYs"], kept)
    job = {"filter": "blur", "input": "in.png", "output": "job.png", "strip": "all", "keep": "resolution"}
    subprocess.run([test.program, "-q", "--jobs-from", "-"], input=json.dumps(job), text=True, check=True, capture_output=True)
    with open("job.png", "rb") as one, open("out.png", "rb") as other:
        test.check(one.read() == other.read(), "a line of jobs")
    test.write("in.png", png(chunk(b"eXIf", b"nonsense")))
    test.check("EXIF (is damaged)" in test.run("--strip", "--keep", "exif", "blur", "in.png", "out.png"), "a kept part")
    for value, words in (("icc,copyrigt", 'not "copyrigt"; did you mean copyright?'), ("", 'not ""'), ("icc,", 'not ""'),
                         ("icc,,gps", 'not ""'), ("x" * 99, "--keep takes icc, exif,")):
        test.check(words in test.run("--strip", "--keep", value, "blur", "in.png", "out.png", status=2), words)
    test.check("--keep needs --strip" in test.run("--keep", "icc", "blur", "in.png", "out.png", status=2), "--keep alone")


PARTS = {  # parts of a PNG: the chunk, its name in a warning, and tags that say it
    "cICP": (lambda: chunk(b"cICP", b"\x0c\x0d\0\1"), "gamma or colour space",
             ("ICC-header:ColorSpaceData", "PNG-cICP:ColorPrimaries", "QuickTime:ColorPrimaries")),
    "gAMA": (lambda: chunk(b"gAMA", struct.pack(">I", 100000)), "gamma or colour space", ("ICC-header:ColorSpaceData", "PNG:Gamma")),
    "cHRM": (lambda: chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"cHRM", struct.pack(
        ">8I", 31270, 32900, 70800, 29200, 17000, 79700, 13100, 4600)), "gamma or colour space",
        ("ICC-header:ColorSpaceData", "PNG:RedX")),
    "cLLI": (lambda: chunk(b"cLLI", bytes(8)), "gamma or colour space", ("cLLI",)),
    "mDCV": (lambda: chunk(b"mDCV", bytes(24)), "gamma or colour space", ("mDCV",)),
    "iCCP": (lambda: chunk(b"iCCP", b"x\0\0" + zlib.compress(wide_profile())), "ICC profile", ("ICC-header:ColorSpaceData",)),
    "pHYs": (lambda: chunk(b"pHYs", struct.pack(">IIB", 4000, 3000, 1)), "resolution",
             ("PNG-pHYs:PixelsPerUnitX", "IFD0:XResolution", "JFIF:XResolution")),
    "eXIf": (lambda: chunk(b"eXIf", bytes(Tiff("<", [(0x010F, *text("A maker"))]).data)), "EXIF", ("IFD0:Make",)),
    "XMP": (lambda: chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp_packet()), "XMP", ("XMP-dc:Source",)),
    "IPTC": (lambda: raw_profile(b"iptc", RESOURCES), "IPTC", ("IPTC:ObjectName", "Photoshop:URL")),
    "Title": (lambda: chunk(b"tEXt", b"Title\0Gr\xfc\xdfe & <more>"), "text", ("PNG:Title", "XMP-dc:Title")),
    "Author": (lambda: chunk(b"zTXt", b"Author\0\0" + zlib.compress(b"Somebody")), "text", ("PNG:Author", "XMP-dc:Creator")),
    "Copyright": (lambda: chunk(b"iTXt", b"Copyright\0\0\0\0\0(c) \xc3\xa4"), "text", ("PNG:Copyright", "XMP-dc:Rights")),
    "Software": (lambda: chunk(b"tEXt", b"Software\0A program"), "text", ("PNG:Software", "XMP-xmp:CreatorTool")),
    "Comment": (lambda: chunk(b"tEXt", b"Comment\0A comment"), "text", ("PNG:Comment", "File:Comment")),
    "parameters": (lambda: chunk(b"tEXt", b"parameters\0a prompt"), "text", ("PNG:Parameters",)),
    "C2PA": (lambda: chunk(b"caBX", bytes(20)), "C2PA (signs the input only)", ()),
}


def test_pairs(test):
    """Each part of a PNG, and of the files that are made of it, is kept or named in each format."""
    for part, (make, word, names) in PARTS.items():
        test.write("in.png", png(make()))
        sources = ["in.png"]
        for suffix in ("png", "jpg", "tif", "webp", "avif", "ppm"):
            for source in list(sources):
                case, target = f"{part}: {source} to {suffix}", f"{source[:-4].replace('.', '-')}-{suffix}.{suffix}"
                said = test.run("blur", source, target)
                tags = exiftool(target) if suffix != "ppm" else {}
                if suffix == "png":
                    tags.update((kind.decode(), True) for kind, _ in chunks(target))
                if tags.get("QuickTime:ColorPrimaries") == 1:
                    del tags["QuickTime:ColorPrimaries"]  # each AVIF has some, and these are sRGB's
                kept = any(name in tags for name in names)
                named = word in said if source == "in.png" else "(the format has none)" in said  # as what it has become
                test.check(kept != named, f"{case}: kept {kept}, {said!r}, {sorted(tags)}")
                if source == "in.png" and kept and suffix in ("jpg", "tif", "webp", "avif"):
                    sources.append(target)
    test.write("in.png", png(PARTS["Title"][0]()))
    test.run("blur", "in.png", "out.jpg")
    test.equal(exiftool("out.jpg")["XMP-dc:Title"], "Gr\u00fc\u00dfe & <more>", "a title in XMP")
    for suffix in ("tif", "webp", "avif"):
        test.write("in.png", png(PARTS["pHYs"][0]()))
        test.run("blur", "in.png", "out." + suffix)
        tags = exiftool("out." + suffix)
        test.equal([tags[f"IFD0:{side}Resolution"] for side in "XY"] + [tags["IFD0:ResolutionUnit"]], [40, 30, 3], suffix)
    segment_of_c2pa = segment(0xEB, b"JP\0\1\0\0\0\1\0\0\0\x28jumb" + bytes(32))
    test.write("in.jpg", jpeg(segment_of_c2pa))
    test.check("C2PA (signs the input only)" in test.run("blur", "in.jpg", "out.jpg"), "C2PA in a JPEG")


def test_notes(test):
    """What is of no known kind is named by --verbose and the report, and is no warning."""
    body = png()[:-12]
    webp = io.BytesIO()
    picture("RGB").save(webp, "WEBP", lossless=True)
    webp = webp.getvalue()
    vp8x = b"VP8X" + struct.pack("<I", 10) + bytes(4) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3]
    unknown = b"RIFF" + struct.pack("<I", 4 + len(vp8x) + len(webp) - 12 + 12) + b"WEBP" + vp8x + webp[12:] + b"abcd\4\0\0\0wxyz"
    cases = [("in.jpg", jpeg(segment(0xE0 + number, data)), is_note) for number, data, is_note in (
        (3, b"Meta\0x", 1), (10, b"AROT\0\0", 1), (15, b"", 1), (1, b"http://ns.adobe.com/xmp/extension/\0" + bytes(80), 1), (2, b"FPXR\0", 1),
        (13, b"Ducky", 1), (11, b"HDR_RI", 1), (14, b"Adobe\0d\0\0\0\0\1", 0))]
    cases += [("in.png", png(chunk(kind, data)), is_note) for kind, data, is_note in (
        (b"iDOT", bytes(28), 1), (b"vpAg", bytes(9), 1), (b"bKGD", bytes(6), 1), (b"tIME", b"\x07\xe8\5\6\7\x08\x09", 0), (b"sBIT", b"\5\5\5", 0))]
    cases += [("in.png", body + chunk(b"ruSt", b"late") + png()[-12:], 1), ("in.png", png(), 0)]
    makers = "EXIF (maker's notes)"
    cases += [("in.png", png(chunk(b"eXIf", exif())), makers), ("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + exif(order="<"))), makers)]
    if has_codec(test.program, "libwebp"):
        cases.append(("in.webp", unknown, 1))
    for name, data, is_note in cases:
        test.write(name, data)
        for strip in ((), ("--strip",)):
            said = test.run(*strip, "--report", "notes.jsonl", "blur", name, "out.png")
            test.check("metadata" not in said, f"{data[:30]} {said}")
            said = test.run(*strip, "-v", "blur", name, "out.png")
            expected = is_note if is_note == makers else "other chunks or segments (parts of an unknown kind)"
            told = f"metadata not carried over: {expected}\n" in said
            test.equal(told, bool(is_note and not strip), f"{name}, {data[20:50]}, {strip}: {said}")
            with open("notes.jsonl", encoding="utf-8") as file:
                test.equal("metadata_left_out" in json.loads(file.readlines()[-1]), told, f"{name}, {strip}: report")


def test_stale(test):
    """A description that gives the size, and an orientation in XMP alone, are named if the picture moves."""
    ome = b'<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Pixels SizeX="23"/></OME>\0'
    for text_, stale in () if not has_codec(test.program, "libtiff") else ((b"ImageJ=1.53t\nimages=1\nunit=micron\nmin=0\nmax=255\n\0", True), (ome, True), (b"A garden\0", False)):
        test.write("in.tif", b"")
        picture("RGB").save("in.tif", description=text_[:-1].decode())
        for step, moves in (("blur", False), ("resize:50%", True), ("mirror:x", True), ("crop:9x9", True)):
            said = test.run(step, "in.tif", "out.tif")
            kept = exiftool("out.tif").get("IFD0:ImageDescription") is not None
            test.equal(kept, not (stale and moves), f"{text_}, {step}: kept")
            test.equal("EXIF (has the old size or orientation)" in said, not kept, f"{text_}, {step}: {said}")
    forms = [('tiff:Orientation="8"', ""), ("tiff:Orientation = '2'", ""), ("", "<tiff:Orientation>\n6</tiff:Orientation>"),
             ('tiff:Orientation="1"', "")]
    for form in forms:
        test.write("in.jpg", jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp_packet(*form))))
        test.equal(test.run("blur", "in.jpg", "out.jpg"), "", form)
        said = test.run("resize:50%", "in.jpg", "out.jpg")
        test.equal("XMP (has the old size or orientation)" in said, form != forms[-1], f"{form}: {said}")
        test.check("XMP-tiff:Orientation" not in exiftool("out.jpg"), form)


def test_profiles_of_chunks(test):
    """The profile of cICP, gAMA and cHRM gives the colours that the PNG has, by littleCMS and by to-srgb."""
    from PIL import ImageCms
    for part in ("cICP", "gAMA", "cHRM"):
        test.write("in.png", png(PARTS[part][0]()))
        test.run("identity", "in.png", "out.tif")
        test.run("to-srgb", "in.png", "expected.png")
        test.run("to-srgb", "out.tif", "actual.png")
        expected, actual, stored = (Image.open(name) for name in ("expected.png", "actual.png", "out.tif"))
        theirs = ImageCms.profileToProfile(stored, ImageCms.ImageCmsProfile(io.BytesIO(stored.info["icc_profile"])),
                                           ImageCms.createProfile("sRGB"), renderingIntent=1)
        for other in actual, theirs:
            most = max(abs(a - b) for a, b in zip(expected.tobytes(), other.tobytes()))
            test.check(most <= 1, f"{part}: {most} levels")
        test.equal(test.run("identity", "out.tif", "back.png"), "", part)
        test.run("to-srgb", "back.png", "actual.png")
        test.equal(Image.open("actual.png").tobytes(), actual.tobytes(), f"{part}: a PNG again")


def test_batch(test):
    """A batch equals single runs, reports the upright size, and warns."""
    os.mkdir("many")
    for orientation in (1, 3, 6):
        test.write(f"many/p{orientation}.png", full_png(orientation))
        test.write(f"many/j{orientation}.jpg", full_jpeg(orientation))
    grey = chunk(b"iCCP", b"x\0\0" + zlib.compress(kind_of_profile(b"GRAY")))
    test.write("many/bad.png", png(chunk(b"eXIf", b"nonsense"), grey))
    for options in ((), ("--strip",), ("--no-orient",)):
        folder = "out" + "".join(options)
        said = test.run(*options, "blur", "many", "-o", folder, "--report", folder + ".jsonl")
        warning = "many/bad.png: metadata not carried over: EXIF (is damaged)"
        test.equal(said.count(warning), int("--strip" not in options), f"a batch's warnings: {said}")
        for name in sorted(os.listdir("many")):
            test.run("-q", *options, "blur", "many/" + name, "one-" + name)
            with open("one-" + name, "rb") as one, open(f"{folder}/{name}", "rb") as other:
                test.equal(other.read() == one.read(), True, f"{options} {name}")
        with open(folder + ".jsonl", encoding="utf-8") as file:
            records = {record["input"]: record for record in map(json.loads, file)}
        sides = {name: (record["width"], record["height"]) for name, record in records.items()}
        upright = (WIDTH, HEIGHT) if "--no-orient" in options else (HEIGHT, WIDTH)
        test.equal((sides["many/j6.jpg"], sides["many/p6.png"]), (upright, upright), "sides in the report")
        told = {name: record["metadata_left_out"] for name, record in records.items() if "metadata_left_out" in record}
        named = {"many/bad.png": "ICC profile (is for other colours), EXIF (is damaged)",  # output; input
                 **{f"many/p{i}.png": "EXIF (maker's notes)" for i in (1, 3, 6)},
                 **{f"many/j{i}.jpg": "EXIF (maker's notes), other chunks or segments (parts of an unknown kind)" for i in (1, 3, 6)}}
        test.equal(told, {} if "--strip" in options else named, "what the report names")
    shutil.copytree("many", "place")
    test.run("-q", "--in-place", "blur", "place")
    for name in os.listdir("many"):
        with open("out/" + name, "rb") as one, open("place/" + name, "rb") as other:
            test.equal(other.read() == one.read(), True, f"in place: {name}")


def test_sampling(test):
    """The chroma subsampling turns with the picture."""
    for sampling, expected in ((1, b"\x12"), (2, b"\x22"), (0, b"\x11")):
        test.write("in.jpg", jpeg(segment(0xE1, b"Exif\0\0" + exif(6)), subsampling=sampling))
        said = test.run("-v", "blur", "in.jpg", "out.jpg")
        test.check(f"{HEIGHT} x {WIDTH} pixels" in said, said)
        if "JPEG by libjpeg-turbo" in said:
            frame = dict(segments("out.jpg"))[0xC0]
            test.equal(frame[7:8], expected, f"subsampling {sampling}")


def test_compare(test):
    """--compare compares the samples as stored, not turned."""
    test.write("a.png", png(chunk(b"eXIf", exif(6))))
    test.write("b.png", png())
    test.run("--compare", "a.png", "b.png")


def webp(image):
    file = io.BytesIO()
    image.save(file, "webp", lossless=True, exif=exif(6, "<"), icc_profile=profile(), xmp=xmp_packet())
    return file.getvalue()


def seeds(folder):
    """The first inputs of the fuzzer."""
    os.makedirs(folder, exist_ok=True)
    small = Image.new("RGB", (2, 1))
    files = {"full.jpg": full_jpeg(6), "full.png": full_png(6),
             "raw.png": png(raw_profile(b"exif", b"Exif\0\0" + exif(8, "<")), raw_profile(b"iptc", RESOURCES),
                            raw_profile(b"xmp", xmp_packet()), image=small),
             "grey.png": png(chunk(b"iCCP", b"x\0\0" + zlib.compress(kind_of_profile(b"GRAY"))), chunk(b"sRGB", b"\1"),
                             image=Image.new("L", (1, 2))),
             "full.webp": webp(small)}
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def main():
    if sys.argv[1] == "--seeds" and metadata_files.Image is not None:
        seeds(sys.argv[2])
        return 0
    return metadata_files.run_tests(globals())


sys.exit(main())
