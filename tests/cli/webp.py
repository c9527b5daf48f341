#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""WebP, against libwebp's own programs and Pillow: webp.py GPUCONV. Skipped (exit status 77) if libwebp was not built
in, or if Pillow, exiftool, cwebp or webpinfo is not installed."""
import os
import random
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import metadata_files  # noqa: E402
from harness import has_codec, skip  # noqa: E402
from metadata_files import (  # noqa: E402
    HEIGHT, WIDTH, exif, exiftool, full_jpeg, full_png, picture, profile, xmp_packet)

if metadata_files.Image is not None:
    from PIL import Image, ImageOps

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples")
CAT = os.path.join(SAMPLES, "cat.png")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def translucent():
    image = Image.open(CAT).convert("RGBA").crop((40, 30, 141, 107))
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def test_bytes(test):
    """--quality is that of cwebp, and --lossless also keeps what is invisible; on any number of threads."""
    translucent().save("alpha.png")
    for source, options in ((CAT, []), ("alpha.png", [])):
        for ours, theirs in [(["--quality", q], ["-q", q]) for q in ("1", "75", "100")] + [
                (["--lossless"], ["-lossless", "-exact"])]:
            subprocess.run(["cwebp", "-quiet", *theirs, source, "-o", "expected.webp"], check=True)
            for threads in "1", "2":
                test.run("--threads", threads, *ours, "identity", source, "out.webp")
                test.check(read("out.webp") == read("expected.webp"), f"{source} {ours} {threads}: bytes of cwebp")


def test_samples(test):
    """What Pillow and gpuconv read of a file is the same, with and without alpha, lossy and lossless."""
    for image in (translucent(), Image.open(CAT), picture("L"), Image.new("RGBA", (1, 1), (1, 2, 3, 0))):
        for options in ({"lossless": True, "exact": True}, {"quality": 30}, {"quality": 95, "alpha_quality": 40}):
            image.save("in.webp", **options)
            test.equal(test.run("identity", "in.webp", "out.png"), "", options)
            expected, actual = Image.open("in.webp"), Image.open("out.png")
            test.equal((actual.mode, actual.size), (expected.mode, expected.size), options)
            test.check(actual.tobytes() == expected.tobytes(), f"{image} {options}: samples")
            test.run("--lossless", "identity", "in.webp", "out.webp")
            test.check(Image.open("out.webp").tobytes() == expected.tobytes(), f"{image} {options}: lossless again")


def test_metadata(test):
    """Profile, EXIF and XMP go from each format to WebP and back, and the picture is turned as EXIF says."""
    for name, data in (("in.png", full_png(6, "<")), ("in.jpg", full_jpeg(6, ">"))):
        test.write(name, data)
        for options in ([], ["--lossless"]):
            said = test.run(*options, "identity", name, "out.webp")
            test.check("metadata not carried over" in said and "(the format has none)" in said, said)
            info = subprocess.run(["webpinfo", "out.webp"], capture_output=True, text=True)
            test.check(info.returncode == 0 and "No error detected" in info.stdout, info.stdout + info.stderr)
            image, tags = Image.open("out.webp"), exiftool("out.webp")
            test.equal(image.size, (HEIGHT, WIDTH), "sides")
            test.equal(image.info.get("icc_profile"), profile(), "profile")
            for field, value in {"IFD0:Orientation": 1, "IFD0:Make": "Maker & Co", "GPS:GPSLatitudeRef": "N",
                                 "XMP-dc:Source": "Gr\u00fc\u00dfe", "IFD0:XResolution": 200}.items():
                test.equal(tags.get(field), value, f"{name}: {field}")
            test.equal(test.run("identity", "out.webp", "back.png"), "", "back")
            again = exiftool("back.png")
            test.equal([again.get(field) for field in ("IFD0:Make", "XMP-dc:Source")], ["Maker & Co", "Gr\u00fc\u00dfe"], "back")
            test.equal(Image.open("back.png").info.get("icc_profile"), profile(), "profile back")
    translucent().save("in.webp", exif=exif(6), icc_profile=profile(), xmp=xmp_packet())
    for target in "out.webp", "out.png":
        test.equal(test.run(*(["--quality", "100"] if target == "out.webp" else []), "identity", "in.webp", target), "", "no warning")
        expected, actual = ImageOps.exif_transpose(Image.open("in.webp")), Image.open(target)
        test.equal((actual.mode, actual.size), (expected.mode, expected.size), target)
        test.equal((actual.info.get("icc_profile"), exiftool(target).get("XMP-dc:Source")), (profile(), "Gr\u00fc\u00dfe"), target)
    test.run("--strip", "identity", "in.webp", "out.webp")
    test.equal(Image.open("out.webp").info.get("icc_profile"), None, "--strip")


def test_animation(test):
    """The first frame is read, on a transparent canvas; a warning tells of the others, and --in-place refuses."""
    frames = [Image.new("RGBA", (40, 30), (50 * i, 20, 30, 255)) for i in range(3)]
    frames[0].save("in.webp", save_all=True, append_images=frames[1:], duration=100, lossless=True)
    before = read("in.webp")
    said = test.run("identity", "in.webp", "out.png")
    test.equal(said, "gpuconv: warning: in.webp: also contains frames of an animation; only its first picture is used\n", "")
    test.check(Image.open("out.png").convert("RGBA").tobytes() == frames[0].tobytes(), "the first frame")
    test.check("which --in-place would lose" in test.run("--in-place", "identity", "in.webp", status=1), "refused")
    test.check(read("in.webp") == before, "the file stays")
    # A frame of 7 x 5 pixels at 6, 4 on a canvas of 20 x 10.
    Image.new("RGB", (7, 5), (9, 8, 7)).save("frame.webp", lossless=True)
    chunk = read("frame.webp")[12:]
    frame = b"".join(number.to_bytes(3, "little") for number in (3, 2, 6, 4, 100)) + b"\0" + chunk
    body = (b"WEBPVP8X" + struct.pack("<I", 10) + b"\x02\0\0\0\x13\0\0\x09\0\0" + b"ANIM" + struct.pack("<I", 6) + bytes(6)
            + b"ANMF" + struct.pack("<I", len(frame)) + frame)
    test.write("placed.webp", b"RIFF" + struct.pack("<I", len(body)) + body)
    test.equal(test.run("identity", "placed.webp", "out.png"), "", "one frame")
    expected = Image.new("RGBA", (20, 10))
    expected.paste((9, 8, 7, 255), (6, 4, 13, 9))
    test.check(Image.open("out.png").tobytes() == expected.tobytes(), "a frame in its place")


def test_damage(test):
    """A file that is cut, or whose bytes change, is read or refused with one sentence."""
    chance, sentences = random.Random(1), set()
    for options in ({"lossless": True}, {"quality": 60}):
        translucent().save("good.webp", **options)
        good = read("good.webp")
        for i in range(60):
            bad = bytearray(good)
            for _ in range(3):
                bad[chance.randrange(20, len(bad))] ^= 1 << chance.randrange(8)
            if i % 2:  # cut, and the lengths say so
                bad = bad[:len(bad) // 2]
                bad[4:8] = struct.pack("<I", len(bad) - 8)
            test.write("bad.webp", bad)
            done = subprocess.run([test.program, "-q", "identity", "bad.webp", "out.png"], capture_output=True, text=True)
            test.check(done.returncode in (0, 1) and done.stderr.count("\n") == done.returncode, done.stderr)
            sentences.add(done.stderr.partition("bad.webp: ")[2])
    test.check(any("its data cannot be decoded (its codes are wrong)" in sentence for sentence in sentences), sentences)


def main():
    if not has_codec(sys.argv[1], "libwebp"):
        skip("libwebp was not built in")
    for program in "cwebp", "webpinfo":
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    return metadata_files.run_tests(globals())


sys.exit(main())
