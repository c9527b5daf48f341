#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HEIC and AVIF, against the programs of libheif and libavif: heif.py GPUCONV. Skipped (exit status 77) if libheif was
not built in, or if Pillow, exiftool, avifenc, avifdec, heif-enc or heif-convert is not installed."""
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
    HEIGHT, WIDTH, exif, exiftool, full_jpeg, full_png, profile, xmp_packet)

if metadata_files.Image is not None:
    from PIL import Image

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples")
CAT = os.path.join(SAMPLES, "cat.png")
OTHERS = "also contains other pictures; only its first picture is used\n"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def small(mode, size=(53, 38)):
    image = Image.open(CAT).convert("RGB").crop((90, 60, 90 + size[0], 60 + size[1]))
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image.convert(mode)


def samples(test, path):
    """The shape of an image, and its samples as 16 bits, as gpuconv reads it."""
    test.run("-q", "--depth", "16", "identity", path, "samples.pam")
    head, _, data = read("samples.pam").partition(b"ENDHDR\n")
    numbers = {line.split()[0]: int(line.split()[1]) for line in head.decode().splitlines()[1:5]}
    return [numbers[name] for name in ("WIDTH", "HEIGHT", "DEPTH")], struct.unpack(f">{len(data) // 2}H", data)


def check_near(test, path, expected, largest, what):
    """The image at PATH has the shape of the one at EXPECTED, and samples that differ by at most LARGEST of 65535."""
    (shape, ours), (wanted, theirs) = samples(test, path), samples(test, expected)
    if wanted[2] - shape[2] == 2:  # grey that the other program writes as colours
        theirs = [level for i, level in enumerate(theirs) if i % wanted[2] in (0, wanted[2] - shape[2] + 1)]
        wanted[2] = shape[2]
    test.equal(shape, wanted, f"{what}: shape")
    distance = max(abs(a - b) for a, b in zip(ours, theirs))
    test.check(distance <= largest, f"{what}: {distance} of 65535")


def test_samples(test):
    """What libheif's program makes of a file, and within rounding what libavif's does, at all depths and sizes."""
    for mode in "L", "LA", "RGB", "RGBA":
        for size in (53, 38), (1, 1), (1, 33), (33, 1):
            small(mode, size).save("8.png")
            test.run("--depth", "16", "identity", "8.png", "16.png")
            for depth in "8", "10", "12":
                for limits in "full", "limited":
                    options = ["-s", "9", "-d", depth, "-r", limits, "-y", "400" if mode in ("L", "LA") else "444"]
                    run("avifenc", *options, "8.png" if depth == "8" else "16.png", "in.avif")
                    what = f"{mode} {size} {depth} {limits}"
                    run("avifdec", "-d", "16", "in.avif", "theirs.png")
                    check_near(test, "in.avif", "theirs.png", 420 if depth == "8" else 130, what)
                    if limits == "full" or mode in ("RGB", "RGBA"):  # its program leaves grey as it is
                        run("heif-convert", "in.avif", "theirs.png")
                        check_near(test, "in.avif", "theirs.png", 0 if depth == "8" else 65, what)
            for options in [], ["-L"], ["-p", "chroma=444"]:
                run("heif-enc", *options, "8.png", "-o", "in.heic")
                run("heif-convert", "in.heic", "theirs.png")
                check_near(test, "in.heic", "theirs.png", 0, f"{mode} {size} {options}")
    small("RGB").save("in.png")
    for bits in "10", "12":
        test.run("--depth", "16", "identity", "in.png", "16.png")
        run("heif-enc", "-b", bits, "16.png", "-o", "in.heic")
        run("heif-convert", "in.heic", "theirs.png")
        check_near(test, "in.heic", "theirs.png", 65, f"HEIC of {bits}")  # the program cuts bits off
        test.check("3 channels of 16 bits" in test.run("-v", "identity", "in.heic", "out.png"), "becomes 16 bits")


def test_exact_depths(test):
    """A level of 10 or 12 bits becomes the nearest one of 65535."""
    ramp = bytes(sum(([16 * i >> 8, 16 * i & 255] for i in range(4096)), []))
    test.write("ramp.pgm", b"P5\n64 64\n65535\n" + ramp)
    test.run("--lossless", "identity", "ramp.pgm", "ramp.avif")
    shape, levels = samples(test, "ramp.avif")
    test.equal(shape, [64, 64, 1], "shape")
    nearest = [(2 * (16 * i * 4095 + 32767) // 65535) // 2 for i in range(4096)]
    test.check(list(levels) == [(2 * 65535 * v + 4095) // (2 * 4095) for v in nearest], "12 bits")


def test_moves(test):
    """Turned, mirrored and cropped once, by the file; EXIF's orientation is not used."""
    small("RGB").save("in.png", exif=exif(6))
    plain = small("RGB")
    for turn in range(4):
        for mirror in (None, 0, 1):
            for crop in (None, "8,6,30,20"):
                options = ["--irot", str(turn)] + (["--imir", str(mirror)] if mirror is not None else [])
                options += ["--crop", crop] if crop else []
                run("avifenc", "-s", "9", "-l", *options, "in.png", "in.avif")
                test.equal(test.run("identity", "in.avif", "out.png"), "", options)
                expected = plain.crop((8, 6, 38, 26)) if crop else plain
                expected = expected.rotate(90 * turn, expand=True)
                if mirror is not None:
                    expected = expected.transpose(Image.FLIP_LEFT_RIGHT if mirror else Image.FLIP_TOP_BOTTOM)
                test.check(Image.open("out.png").tobytes() == expected.tobytes(), f"{options}")
                test.equal(exiftool("out.png").get("IFD0:Orientation"), 1, "upright")
    # With alpha, old versions of libavif turn the colours only.
    small("RGBA").save("in.png")
    run("avifenc", "-s", "9", "--irot", "1", "in.png", "in.avif")
    done = subprocess.run([test.program, "identity", "in.avif", "out.png"], capture_output=True, text=True)
    test.check(done.returncode == 0 or "its alpha, which has another size" in done.stderr, done.stderr)


def test_premultiplied(test):
    """Colours that alpha multiplies are divided by it."""
    image = Image.new("RGBA", (16, 16), (200, 100, 50, 128))
    image.save("in.png")
    for depth in "8", "10":
        run("avifenc", "-s", "9", "-p", "-d", depth, "--min", "0", "--max", "0", "in.png", "in.avif")
        shape, levels = samples(test, "in.avif")
        test.equal(shape, [16, 16, 4], "shape")
        for level, wanted in zip(levels, (200, 100, 50, 128)):
            test.check(abs(level / 257 - wanted) < 2.5, f"{level} for {wanted}")


def test_bytes(test):
    """--quality is that of heif-enc, on any number of threads; --lossless keeps all samples."""
    small("RGBA").save("alpha.png")
    small("L").save("grey.png")
    for source in CAT, "alpha.png":
        for quality in "1", "50", "100":
            run("heif-enc", "-A", "-q", quality, source, "-o", "expected.avif")
            for threads in "1", "2", "5":
                test.run("--threads", threads, "--quality", quality, "identity", source, "out.avif")
                test.check(read("out.avif") == read("expected.avif"), f"{source} {quality} {threads}: bytes of heif-enc")
    for source in "grey.png", "alpha.png":
        test.run("--lossless", "identity", source, "out.avif")
        run("avifdec", "out.avif", "out.png")
        check_near(test, "out.avif", source, 0, f"{source} lossless")
        test.check(Image.open("out.png").convert(Image.open(source).mode).tobytes() == Image.open(source).tobytes(),
                   f"{source} lossless for avifdec")


def test_metadata(test):
    """Profile, coding, EXIF and XMP go from each format to AVIF and back, as the allow-list has them."""
    for name, data in (("in.png", full_png(6, "<")), ("in.jpg", full_jpeg(6, ">"))):
        test.write(name, data)
        for options in [], ["--lossless"]:
            said = test.run(*options, "identity", name, "out.avif")
            test.check("metadata not carried over" in said and "(the format has none)" in said, said)
            run("avifdec", "out.avif", "theirs.png")
            tags = exiftool("out.avif")
            image = Image.open("theirs.png")
            test.equal(image.size, (HEIGHT, WIDTH), "sides")
            test.equal(image.info.get("icc_profile"), profile(), "profile")
            for field, value in {"IFD0:Orientation": 1, "IFD0:Make": "Maker & Co", "GPS:GPSLatitudeRef": "N",
                                 "XMP-dc:Source": "Gr\u00fc\u00dfe", "IFD0:XResolution": 200}.items():
                test.equal(tags.get(field), value, f"{name}: {field}")
            test.equal(test.run("identity", "out.avif", "back.png"), "", "back")
            again = exiftool("back.png")
            test.equal([again.get(field) for field in ("IFD0:Make", "XMP-dc:Source")], ["Maker & Co", "Gr\u00fc\u00dfe"], "back")
            test.equal(Image.open("back.png").info.get("icc_profile"), profile(), "profile back")
            run("heif-convert", "out.avif", "theirs.png")
            check_near(test, "out.avif", "theirs.png", 0, "with metadata")
    # Other writers' files, with alpha, and what they say besides.
    test.write("profile.icc", profile())
    test.write("packet.xmp", xmp_packet().encode() if isinstance(xmp_packet(), str) else xmp_packet())
    small("RGBA").save("in.png")
    test.write("in.exif", exif(1))
    run("avifenc", "-s", "9", "--exif", "in.exif", "--icc", "profile.icc", "--xmp", "packet.xmp", "in.png", "in.avif")
    test.equal(test.run("identity", "in.avif", "out.png"), "", "no warning")
    test.equal(Image.open("out.png").info.get("icc_profile"), profile(), "profile of avifenc")
    tags = exiftool("out.png")
    test.equal([tags.get(field) for field in ("IFD0:Make", "IFD0:Orientation", "XMP-dc:Source")],
               ["Maker & Co", 1, "Gr\u00fc\u00dfe"], "of avifenc")
    test.check(b"cICP" not in read("out.png"), "a profile counts more")
    test.run("--strip", "identity", "in.avif", "out.avif")
    test.check(b"Maker" not in read("out.avif") and b"prof" not in read("out.avif"), "--strip")
    small("RGB").save("in.png")
    run("avifenc", "-s", "9", "--cicp", "12/16/6", "in.png", "in.avif")
    for source in "in.avif", "out.avif":
        test.run("identity", source, "out.png")
        test.check(b"cICP\x0c\x10\0\1" in read("out.png"), f"coding of {source}")
        test.run("identity", "out.png", "out.avif")
    small("RGB").save("in.jpg", exif=b"Exif\0\0" + exif(6), icc_profile=profile())
    run("heif-enc", "in.jpg", "-o", "in.heic")
    test.run("identity", "in.heic", "out.jpg")
    tags = exiftool("out.jpg")
    test.equal([tags.get(field) for field in ("IFD0:Make", "IFD0:Orientation")], ["Maker & Co", 1], "of heif-enc")
    test.equal(Image.open("out.jpg").info.get("icc_profile"), profile(), "profile of heif-enc")


def test_orientation(test):
    """A picture that is not turned upright says so without EXIF, which readers of AVIF do not use."""
    for orientation in range(1, 9):
        for mode in "RGB", "RGBA":
            small(mode).save("in.png", exif=exif(orientation))
            test.run("identity", "in.png", "upright.png")
            test.run("--lossless", "--no-orient", "identity", "in.png", "kept.avif")
            test.equal(test.run("identity", "kept.avif", "out.png"), "", "")
            test.check(Image.open("out.png").tobytes() == Image.open("upright.png").tobytes(), f"{orientation} {mode}")
            run("heif-convert", "kept.avif", "theirs.png")
            check_near(test, "theirs.png", "upright.png", 0, f"{orientation} {mode} for heif-convert")
            test.equal(exiftool("kept.avif").get("IFD0:Orientation"), 1, "EXIF")


def test_other_content(test):
    """Other pictures, frames and gain maps are told of; thumbnails, tiles and alpha are parts of the picture."""
    small("RGBA", (128, 128)).save("a.png")
    small("RGB", (64, 48)).save("b.png")
    cases = {
        "in.heic": (["heif-enc", "a.png", "b.png", "-o", "in.heic"], OTHERS),
        "thumbnail.heic": (["heif-enc", "-t", "32", "a.png", "-o", "thumbnail.heic"], ""),
        "grid.avif": (["avifenc", "-s", "9", "-g", "2x2", "a.png", "grid.avif"], ""),
        "film.avif": (["avifenc", "-s", "9", "b.png", "b.png", "film.avif"], OTHERS.replace("other pictures", "frames of an animation")),
    }
    for name, (command, warning) in cases.items():
        run(*command)
        said = test.run("identity", name, "out.png")
        test.equal(said, f"gpuconv: warning: {name}: {warning}" if warning else "", name)
        if warning:
            status = 1 if name.endswith("avif") else 2
            words = "which --in-place would lose" if name.endswith("avif") else "gpuconv reads HEIC and does not write it"
            test.check(words in test.run("--in-place", "identity", name, status=status), name)
    test.write("tail.heic", read("thumbnail.heic") + bytes(20) + b"data")
    test.check("also contains data after the end" in test.run("identity", "tail.heic", "out.png"), "data after the end")


def test_damage(test):
    """A file that is cut, or whose bytes change, is read or refused with one sentence."""
    chance, sentences = random.Random(1), set()
    small("RGBA").save("in.png")
    run("heif-enc", "in.png", "-o", "in.heic")
    run("avifenc", "-s", "9", "in.png", "in.avif")
    for name in "in.heic", "in.avif":
        good = read(name)
        cases = [good[:size] for size in range(0, len(good), 50)]
        for _ in range(150):
            bad = bytearray(good)
            for _ in range(chance.choice((1, 3))):
                bad[chance.randrange(4, len(bad))] ^= 1 << chance.randrange(8)
            cases.append(bad)
        for bad in cases:
            test.write("bad.heic", bad)
            done = subprocess.run([test.program, "-q", "identity", "bad.heic", "out.png"], capture_output=True, text=True)
            ours = [line for line in done.stderr.splitlines() if line.startswith("gpuconv: ")]  # dav1d prints, too
            test.check(done.returncode in (0, 1) and len(ours) == done.returncode, f"{done.returncode} {done.stderr}")
            sentences.add(done.stderr.partition("bad.heic: ")[2])
    for words in "file is truncated: the box at byte", "its data cannot be decoded (", "it has no picture":
        test.check(any(words in sentence for sentence in sentences), words)


def main():
    if not has_codec(sys.argv[1], "libheif"):
        skip("libheif was not built in")
    for program in "avifenc", "avifdec", "heif-enc", "heif-convert":
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    return metadata_files.run_tests(globals())


sys.exit(main())
