#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that hold more than one picture: extras.py GPUCONV, or extras.py --seeds FOLDER to write some of them as inputs
of the image fuzzer.

Pillow writes animations and MPO files; the others are put together here. A warning and the report must name what each
holds, and --in-place must keep it, as it keeps a CMYK JPEG, whose samples must be Pillow's. Files that hold nothing
else, PngSuite among them, must give no warning. Skipped (exit status 77) if Pillow is not installed."""
import glob
import io
import json
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import has_codec, need_module, temporary_folder  # noqa: E402
from write_png import chunk  # noqa: E402

need_module("PIL")
from PIL import Image  # noqa: E402

PNGSUITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "pngsuite")
FRAMES, LAYERS, MAP, PICTURES = "frames of an animation", "layers", "a gain map", "other pictures"
RAW, FILM, DATA = "a camera's raw samples", "a film", "data after the end of its picture"


def encode(kind, count=1):
    """A file of COUNT pictures by Pillow. Pillow 11 has room for two in the index of an MPO file."""
    pictures = [Image.effect_noise((24, 16), 20 + i).convert("RGB") for i in range(count)]
    file = io.BytesIO()
    pictures[0].save(file, kind, save_all=count > 1, append_images=pictures[1:])
    return file.getvalue()


def with_segment(jpeg, marker, data):
    return jpeg[:2] + struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data + jpeg[2:]


def with_index(jpeg, kinds, behind, order):
    """JPEG with the segment MPF, which lists BEHIND once for each of KINDS; zeros stand between all of them."""
    head = b"MPF\0" + (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    entries = 8 + 2 + 3 * 12 + 4
    size = 4 + entries + 16 * (1 + len(kinds))
    whole, start = len(jpeg) + size + 4, 2 + 4 + 4
    fields = struct.pack(order + "HHHI4s", 3, 0xB000, 7, 4, b"0100") + struct.pack(
        order + "HHIIHHIII", 0xB001, 4, 1, 1 + len(kinds), 0xB002, 7, 16 * (1 + len(kinds)), entries, 0)
    fields += struct.pack(order + "IIIHH", 0x30000, whole, 0, 0, 0)
    tail = b""
    for kind in kinds:
        tail += bytes(100)
        fields += struct.pack(order + "IIIHH", kind, len(behind), whole + len(tail) - start, 0, 0)
        tail += behind
    return with_segment(jpeg, 0xE2, head + fields) + tail


def samsung(name, data):
    """The trailer that Samsung's cameras write, with one part."""
    part = struct.pack("<HHI", 0, 0x0A30, len(name)) + name + data
    directory = b"SEFH" + struct.pack("<IIHHII", 106, 1, 0, 0x0A30, len(part), len(part))
    return part + directory + struct.pack("<I", len(directory)) + b"SEFT"


def make_files():
    """For each name, the bytes of a file and what it holds besides its first picture."""
    png, jpeg, film = encode("png"), encode("jpeg"), b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08mdat"
    gain_map = with_segment(jpeg, 0xE1, b"http://ns.adobe.com/xap/1.0/\0"
                            b" xmlns:hdrgm='http://ns.adobe.com/hdr-gain-map/1.0/'")
    iso_map = with_segment(jpeg, 0xE2, b"urn:iso:std:iso:ts:21496:-1\0" + bytes(9))
    extended = b"http://ns.adobe.com/xmp/extension/\0" + b"0" * 40
    namespace = b"xmlns:G='http://ns.google.com/photos/1.0/%s/' G:Data='AAAA'"
    padding = bytes(3000) + b"\xff\xff \t\r\n\xff\xd9" + b"\xff" * 2000
    return {
        "plain.png": (png, []), "padded.png": (png + bytes(500) + b"\r\n", []),
        "animated.png": (encode("png", 3), [FRAMES]),
        "fireworks.png": (png[:-12] + chunk(b"mkBF", bytes(4)) + chunk(b"mkBT", bytes(40)) + png[-12:], [LAYERS]),
        "private.png": (png[:-12] + chunk(b"prVt", bytes(4)) + png[-12:], []),
        "two.png": (png + png, [PICTURES]), "zip.png": (png + b"PK\3\4", [DATA]), "film.png": (png + film, [FILM]),
        "byte.png": (png + b"x", [DATA]),
        "plain.jpg": (jpeg, []), "padded.jpg": (jpeg + padding, []), "fill.jpg": (jpeg + b"\xff", []),
        "mpo.jpg": (encode("mpo", 2), [PICTURES]), "two.jpg": (jpeg + padding + jpeg, [PICTURES]),
        "cut.jpg": (jpeg + jpeg[:-2], [PICTURES]), "start.jpg": (jpeg + b"\xff\xd8", [PICTURES]),
        "in.jpg": (jpeg + png, [PICTURES]),
        "film.jpg": (jpeg + film, [FILM]), "late.jpg": (jpeg + padding + film, [FILM]),
        "samsung.jpg": (jpeg + samsung(b"MotionPhoto_Data", film), [FILM]),
        "time.jpg": (jpeg + samsung(b"Image_UTC_Data", b"1700000000000"), [DATA]),
        "map.jpg": (jpeg + gain_map, [MAP]), "iso.jpg": (jpeg + bytes(9) + iso_map, [MAP]),
        "ultra.jpg": (jpeg + gain_map + film, [MAP, FILM]),
        "all.jpg": (jpeg + gain_map + jpeg + film, [MAP, PICTURES, FILM]),
        "google.jpg": (with_segment(jpeg, 0xE1, extended + namespace % b"image"), [PICTURES]),
        "depth.jpg": (with_segment(jpeg, 0xE1, extended + namespace % b"depthmap"), [PICTURES]),
        "panorama.jpg": (with_segment(jpeg, 0xE1, extended + namespace % b"panorama"), []),
        "stripped.jpg": (with_segment(jpeg, 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + namespace % b"image"), []),
        "flir.jpg": (with_segment(jpeg, 0xE1, b"FLIR\0\1\0\0" + bytes(900)), [RAW]),
        "dji.jpg": (with_segment(jpeg, 0xE3, bytes(65530)), [RAW]),
        "meta.jpg": (with_segment(jpeg, 0xE3, bytes(900)), []),
        "gopro.jpg": (with_segment(jpeg, 0xE6, b"GoPro\0" + bytes(9000)), []),
        "jumbf.jpg": (with_segment(jpeg, 0xEB, b"JP" + bytes(65530)), []),
        "profile.jpg": (with_segment(jpeg, 0xE2, b"ICC_PROFILE\0\1\1" + bytes(65500)), []),
        "zip.jpg": (jpeg + b"PK\3\4", [DATA]), "byte.jpg": (jpeg + b"\n.\n", [DATA]),
        "word.jpg": (jpeg + b"\0ftyp", [FILM]),
        # MPF that lists previews only, one preview and one picture, and what is not there.
        "preview.jpg": (with_index(jpeg, [0x10001], jpeg, "<"), []),
        "previews.jpg": (with_index(jpeg, [0x40010001, 0x10002], jpeg, ">") + bytes(70), []),
        "disparity.jpg": (with_index(jpeg, [0x10002, 0x20002], jpeg, ">"), [PICTURES]),
        "behind.jpg": (with_index(jpeg, [0x10002], jpeg, "<") + jpeg, [PICTURES]),
        "moved.jpg": (with_index(jpeg, [0x10002], jpeg, "<").replace(bytes(100), bytes(101)), [PICTURES]),
        "short.jpg": (with_index(jpeg, [0x10002], jpeg, "<")[:-1], [PICTURES]),
        "gone.jpg": (with_index(jpeg, [0x10002, 0x20002], b"", "<"), []),
    }


def joined(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def run(program, *arguments):
    """The exit status, the lines of standard error, and for each input its line of the report."""
    done = subprocess.run([program, "--backend", "cpu", "--report", "-", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, done.stderr.splitlines(), {os.path.basename(line["input"]): line for line in lines}


def about(lines, path):
    """What is said of the file at PATH, but for its metadata."""
    return [line.split(f"{path}: ", 1)[1] for line in lines
            if line.startswith("gpuconv: ") and f"{path}: " in line and "metadata" not in line]


def check_all(program, folder, files):
    """Yields a sentence for each thing that is wrong."""
    output = os.path.join(folder, "out")
    paths = {name: os.path.join(folder, name) for name in files}
    for name, (data, _) in files.items():
        with open(paths[name], "wb") as file:
            file.write(data)
    warned = run(program, "-v", "identity", *paths.values(), "-o", output)
    silent = run(program, "--first-picture", "identity", *paths.values(), "-o", output)
    refused = run(program, "--in-place", "identity", *paths.values())
    for name, (data, held) in files.items():
        text = joined(held) if held else None
        if about(warned[1], paths[name]) != ([f"also contains {text}; only its first picture is used"] if held else []):
            yield f"{name}: warned of {about(warned[1], paths[name])}, holds {text}"
        for _, lines, report in (warned, silent):
            if report[name]["status"] != "done" or report[name].get("pictures_left_out") != text:
                yield f"{name}: reported as {report[name]}, holds {text}"
        if about(silent[1], paths[name]):
            yield f"{name}: warned of with --first-picture: {about(silent[1], paths[name])}"
        with open(paths[name], "rb") as file:
            kept = file.read() == data
        sentence = (f"also contains {text}, which --in-place would lose; write to another file, or give --first-picture "
                    "to keep its first picture only")
        if held and (not kept or about(refused[1], paths[name]) != [sentence]):
            yield f"{name}: in place: {'kept' if kept else 'replaced'}, {about(refused[1], paths[name])}"
        if not held and refused[2][name]["status"] != "done":
            yield f"{name}: in place: {refused[2][name]}"
    if (warned[0], silent[0], refused[0]) != (0, 0, 1):
        yield f"exit statuses {warned[0]}, {silent[0]} and {refused[0]}"
    forced = run(program, "--in-place", "--first-picture", "identity", *paths.values())
    again = run(program, "--in-place", "identity", *paths.values())
    if forced[0] != 0 or again[0] != 0:
        yield f"in place with --first-picture, then without: exit statuses {forced[0]} and {again[0]}"


def make_cmyk():
    """CMYK and YCCK by Pillow, with Adobe's marker; and CMYK without it. Pillow stores inverted samples."""
    inks = [Image.effect_noise((40, 24), 20 + 20 * i) for i in range(4)]
    for name, options in (("", {"subsampling": 0}), ("-subsampled", {"subsampling": 2}),
                          ("-progressive", {"progressive": True})):
        file = io.BytesIO()
        Image.merge("CMYK", inks).save(file, "JPEG", **options)
        data = file.getvalue()
        at = data.index(b"\xff\xee\0\x0eAdobe")
        yield f"cmyk{name}.jpg", data
        yield f"ycck{name}.jpg", data[:at + 15] + b"\2" + data[at + 16:]
        yield f"unmarked{name}.jpg", data[:at] + data[at + 16:]


def check_cmyk(program, folder):
    path, output = os.path.join(folder, "cmyk.jpg"), os.path.join(folder, "rgb.png")
    for name, data in make_cmyk():
        with open(path, "wb") as file:
            file.write(data)
        status, lines, _ = run(program, "identity", path, output)
        if not has_codec(program, "libjpeg-turbo"):
            if status != 1 or "is read only if libjpeg-turbo is built in" not in " ".join(lines):
                yield f"{name}: exit status {status}, {lines}"
            continue
        if status != 0 or about(lines, path) != ["is CMYK; the output will be RGB"]:
            yield f"{name}: exit status {status}, {lines}"
        elif Image.open(output).tobytes() != Image.open(path).convert("RGB").tobytes():
            yield f"{name}: the samples are not Pillow's"
        status, lines, _ = run(program, "--in-place", "--first-picture", "identity", path)
        if status != 1 or len(lines) != 1 or Image.open(path).mode != "CMYK":
            yield f"{name} in place: exit status {status}, {lines}"
        with open(path, "wb") as file:
            file.write(data[:-len(data) // 4] + b"\xff\xd9")
        status, lines, _ = run(program, "identity", path, output)
        if status != 1 or "is damaged" not in " ".join(lines):
            yield f"{name} cut short: exit status {status}, {lines}"


def check_pngsuite(program, folder):
    names = [path for path in glob.glob(os.path.join(PNGSUITE, "*.png")) if not os.path.basename(path).startswith("x")]
    status, lines, _ = run(program, "identity", *names, "-o", os.path.join(folder, "suite"))
    if status != 0 or any("warning" in line for line in lines):
        yield f"PngSuite: exit status {status}, {lines}"


def main():
    if sys.argv[1] == "--seeds":
        files = {name: data for name, (data, _) in make_files().items()} | dict(make_cmyk())
        for name in ("animated.png", "disparity.jpg", "all.jpg", "cmyk.jpg", "ycck-subsampled.jpg"):
            with open(os.path.join(sys.argv[2], name), "wb") as file:
                file.write(files[name])
        return 0
    program = os.path.abspath(sys.argv[1])
    with temporary_folder() as folder:
        wrong = [*check_all(program, folder, make_files()), *check_cmyk(program, folder),
                 *check_pngsuite(program, folder)]
    print("\n".join(wrong) or f"{len(make_files())} files and PngSuite are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
