#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--compare --metadata, of files that are built here: compare_metadata.py GPUCONV.

Each part of the metadata is on one side, or on both. Profile and orientation are equal, different, on one side only, or
damaged, in PNGs, in JPEGs, and between both. All files hold the same samples."""
import json
import os
import pathlib
import struct
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run, temporary_folder  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402


def profile(text):
    """A profile of RGB with one tag, a copyright."""
    value = b"text\0\0\0\0" + text
    tags = struct.pack(">I4sII", 1, b"cprt", 144, len(value))
    head = struct.pack(">I8x4s4s4s12x4s", 144 + len(value), b"mntr", b"RGB ", b"XYZ ", b"acsp")
    return head.ljust(128, b"\0") + tags + value


def tiff(orientation):
    """A block of EXIF with one tag."""
    return b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


def segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


class Files:
    """Files with the same samples, in the current folder."""

    def __init__(self, program):
        samples = bytes(128 for _ in range(16 * 16 * 3))  # one grey, which a JPEG holds exactly
        self.rows = unfiltered(samples, 48)
        pathlib.Path("grey.png").write_bytes(png(16, 16, 3, 8, self.rows))
        run(program, "-q", "identity", "grey.png", "grey.jpg")
        self.jpeg = pathlib.Path("grey.jpg").read_bytes()
        self.count = 0

    def make(self, suffix, icc=None, orientation=None):
        """Returns the path of a new file. The bytes of no two files are the same."""
        self.count += 1
        path = pathlib.Path(f"{self.count}.{suffix}")
        note = b"%d" % self.count
        if suffix == "png":
            chunks = chunk(b"ruSt", note)  # no chunk that metadata know
            if icc is not None:
                chunks += chunk(b"iCCP", b"name\0\0" + zlib.compress(icc))
            if orientation is not None:
                chunks += chunk(b"eXIf", tiff(orientation))
            path.write_bytes(png(16, 16, 3, 8, self.rows, chunks=chunks))
        else:
            segments = segment(0xEF, note)
            if orientation is not None:
                segments += segment(0xE1, b"Exif\0\0" + tiff(orientation))
            if icc is not None:
                segments += segment(0xE2, b"ICC_PROFILE\0\1\1" + icc)
            path.write_bytes(self.jpeg[:2] + segments + self.jpeg[2:])
        return str(path)


def check(program, files, suffixes, expected, actual, answer):
    """Compare two files with these metadata. ANSWER is what must be printed."""
    status = 0 if answer == "equal" else 1
    paths = files.make(suffixes[0], *expected), files.make(suffixes[1], *actual)
    without = run(program, "--compare", *paths)
    done = run(program, "--compare", "--metadata", *paths, status=status)
    wrong = "damaged" in answer
    said = (done.stderr if wrong else done.stdout).strip().replace(paths[0], "A").replace(paths[1], "B")
    if without.stdout != "equal\n" or said != answer:
        sys.exit(f"{suffixes} {expected} {actual}: {said!r}, expected {answer!r}; without metadata {without.stdout!r}")
    row = json.loads(run(program, "--compare", "--metadata", *paths, "--report", "-", status=status).stdout)
    numbers = row.get("profiles_differ"), row.get("expected_orientation"), row.get("actual_orientation")
    right = ("profiles" in answer, expected[1] or 1, actual[1] or 1) if not wrong else (None, None, None)
    if row["status"] != ("unreadable" if wrong else "equal" if status == 0 else "different") or numbers != right:
        sys.exit(f"{suffixes} {expected} {actual}: the report says {row}")
    if status == 1 and not wrong:  # there is no difference to draw
        run(program, "--compare", "--metadata", *paths, "diff.png", status=1)
        if os.path.exists("diff.png"):
            sys.exit("a picture was drawn where no sample differs")


def check_parts(program, files):
    """Each part, in a PNG, and in a JPEG that has it too."""
    artist = b"II*\0" + struct.pack("<IHHHII", 8, 1, 0x13B, 2, 8, 26) + bytes(4) + b"Artist\0\0"
    xmp = (b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
           b'rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" dc:source="here"/></rdf:RDF></x:xmpmeta>')
    iptc = b"8BIM\4\4\0\0" + struct.pack(">I", 10) + b"\x1c\2\5\0\5title"
    parts = {
        "EXIF": (chunk(b"eXIf", artist), segment(0xE1, b"Exif\0\0" + artist)),
        "XMP": (chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp), segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)),
        "IPTC": (None, segment(0xED, b"Photoshop 3.0\0" + iptc)),
        "text": (chunk(b"tEXt", b"Comment\0words " + b"and words " * 200), segment(0xFE, b"words " + b"and words " * 200)),
        "resolution": (chunk(b"pHYs", struct.pack(">IIB", 3937, 2835, 1)), None),
        "gamma or colour space": (chunk(b"cICP", b"\x0c\x0d\0\1"), None),
        "C2PA": (chunk(b"caBX", bytes(8)), segment(0xEB, b"JP\0\1\0\0\0\1\0\0\0\x28jumb" + bytes(32))),
    }
    for colours in (chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"cHRM", bytes(range(32))), chunk(b"sRGB", b"\1"),
                    chunk(b"mDCV", bytes(24)), chunk(b"cLLI", bytes(8))):
        parts[colours] = (colours, None)
    for part, (png_part, jpeg_part) in parts.items():
        part = part if isinstance(part, str) else "gamma or colour space"
        kinds = [("png", png_part)] * (png_part is not None) + [("jpg", jpeg_part)] * (jpeg_part is not None)
        with_part, without = [], []
        for suffix, added in kinds:
            path = pathlib.Path(files.make(suffix))
            without.append(str(path))
            data = path.read_bytes()
            at = 33 if suffix == "png" else 2
            path = pathlib.Path(f"with-{path}")
            path.write_bytes(data[:at] + added + data[at:])
            with_part.append(str(path))
        for one, other, differs in [(a, b, True) for a in with_part for b in without] + [(a, b, False) for a in with_part for b in with_part]:
            done = run(program, "--compare", "--metadata", one, other, status=int(differs))
            if done.stdout.strip() != (f"the {part} differs" if differs else "equal"):
                sys.exit(f"{part}: {one} and {other}: {done.stdout!r}")
            row = json.loads(run(program, "--compare", "--metadata", one, other, "--report", "-", status=int(differs)).stdout)
            if one != other and row["metadata_differ"] != [part] * differs:
                sys.exit(f"{part}: the report says {row}")


def check_resolutions(program, files):
    """A format may round a resolution, and has its own unit."""
    path, others = pathlib.Path(files.make("png")), []
    data = path.read_bytes()
    path.write_bytes(data[:33] + chunk(b"pHYs", struct.pack(">IIB", 11800, 2835, 1)) + data[33:])
    for suffix in ("jpg", "png"):
        run(program, "-q", "identity", str(path), "resolution." + suffix)
        run(program, "--compare", "--metadata", str(path), "resolution." + suffix)
    for numbers in ((11800, 2900, 1), (5, 3, 0)):
        path.write_bytes(data[:33] + chunk(b"pHYs", struct.pack(">IIB", *numbers)) + data[33:])
        done = run(program, "--compare", "--metadata", str(path), "resolution.jpg", status=1)
        if done.stdout.strip() != "the resolution differs":
            sys.exit(f"resolutions: {done.stdout}")


def main():
    program = os.path.abspath(sys.argv[1])
    one, other, damaged = profile(b"one\0"), profile(b"two\0"), b"\0\0\0\1" + profile(b"one\0")[4:]
    cases = [
        ((None, None), (None, None), "equal"),
        ((one, 6), (one, 6), "equal"),
        ((one, None), (one, 1), "equal"),  # no orientation is 1
        ((one, 6), (other, 6), "the profiles differ"),
        ((one, None), (None, None), "the profiles differ"),
        ((None, None), (one, None), "the profiles differ"),
        ((None, 6), (None, 3), "the orientation is 3, not 6"),
        ((None, 8), (None, None), "the orientation is 1, not 8"),
        ((None, None), (None, 2), "the orientation is 2, not 1"),
        ((one, 6), (other, 1), "the profiles differ; the orientation is 1, not 6"),
        ((damaged, None), (None, None), "gpuconv: A: has a profile that is damaged or too large; repair it, or leave "
                                        "--metadata out"),
        ((one, None), (damaged, None), "gpuconv: B: has a profile that is damaged or too large; repair it, or leave "
                                       "--metadata out"),
    ]
    with temporary_folder():
        files = Files(program)
        check_parts(program, files)
        check_resolutions(program, files)
        for suffixes in (("png", "png"), ("jpg", "jpg"), ("png", "jpg"), ("jpg", "png")):
            for case in cases:
                check(program, files, suffixes, *case)
    print(f"{4 * len(cases)} comparisons")


main()
