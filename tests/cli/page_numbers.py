#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages of TIFF, WebP, HEIC and AVIF, against Pillow, libtiff's, libwebp's and libheif's programs:
page_numbers.py GPUCONV. A part is left out where its codec or program is missing. Skipped (exit status 77) without
Pillow or exiftool."""
import itertools
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import metadata_files  # noqa: E402
from harness import has_codec  # noqa: E402
from metadata_files import exif, exiftool, profile  # noqa: E402
from write_tiff import tiff  # noqa: E402

if metadata_files.Image is not None:
    from PIL import Image, ImageSequence

RGB = {256: (3, [1]), 258: (3, [8, 8, 8]), 262: (3, [2]), 277: (3, [3])}
GREY = {256: (3, [4]), 257: (3, [4]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1])}


def has(codec, *programs):
    missing = [] if has_codec(sys.argv[1], codec) else [codec]
    missing += [program for program in programs if shutil.which(program) is None]
    if missing:
        print("left out:", ", ".join(missing), "missing")
    return not missing


def read(name):
    with open(name, "rb") as file:
        return file.read()


def picture(width, height, mode, seed):
    chance = random.Random(seed)
    image = Image.frombytes("RGBA", (width, height), chance.randbytes(4 * width * height)).resize((2 * width, height))
    return image.convert(mode)


def distance(ours, theirs):
    """The largest difference of two images of one size, with alpha; transparent pixels have no colours."""
    if ours.size != theirs.size:
        return 999
    pairs = zip(ours.convert("RGBA").getdata(), theirs.convert("RGBA").getdata())
    return max(abs(a - b) for p, q in pairs for a, b in zip(p, q) if p[3] + q[3] > 0)


def check_pages(test, name, count, largest=0):
    """Each page is what Pillow shows; the first one and the last one are so in all modes that read a file."""
    for page in range(1, count + 1):
        with Image.open(name) as image:
            image.seek(page - 1)
            expected = image.convert("RGBA" if image.mode in ("RGBA", "LA", "PA") else "RGB")
        number = ["--page", str(page)]
        test.equal(test.run(*number, "identity", name, "out.png"), "", f"{name} {page}: no warning")
        test.check(distance(Image.open("out.png"), expected) <= largest, f"{name} {page}: samples")
        if 1 < page < count:
            continue
        whole = read("out.png")
        test.run(*number, "identity", name, "-o", "many", "--format", "png")
        test.check(read(f"many/{name.rpartition('.')[0]}.png") == whole, f"{name} {page}: in a batch")
        done = subprocess.run([test.program, "--digest", *number, name], capture_output=True, text=True)
        plain = subprocess.run([test.program, "--digest", "out.png"], capture_output=True, text=True)
        test.equal(done.stdout.split()[:1], plain.stdout.split()[:1], f"{name} {page}: --digest")
        line = {"input": os.path.abspath(name), "output": os.path.abspath("line.png"), "filter": "identity", "page": page}
        done = subprocess.run([test.program, "--jobs-from", "-"], input=json.dumps(line) + "\n", capture_output=True, text=True)
        answer = json.loads(done.stdout)
        test.equal((answer["status"], answer.get("page", 1), answer.get("pages", 1)), ("done", page, count), f"{name} {page}: a line")
        test.check(read("line.png") == whole, f"{name} {page}: by a line")


def save_tiff(name, pages, **options):
    pages[0].save(name, save_all=True, append_images=pages[1:], **options)


def test_tiff(test):
    """All kinds of pages, in both orders and in BigTIFFs, in strips and tiles."""
    if not has("libtiff", "tiffcp", "tiffsplit"):
        return
    pages = [picture(20 + 7 * i, 33 - 4 * i, mode, i) for i, mode in enumerate(("RGB", "L", "RGBA", "1", "RGB"))]
    for options in ["-p", "separate"], [], ["-B", "-c", "lzw"], ["-8", "-c", "zip"], ["-t", "-w", "16", "-l", "16", "-c", "packbits"]:
        some = pages[::2] if "-p" in options else pages
        save_tiff("plain.tif", some)
        subprocess.run(["tiffcp", *options, "plain.tif", "in.tif"], check=True, capture_output=True)
        check_pages(test, "in.tif", len(some))
    save_tiff("a.tif", pages[:3])
    save_tiff("b.tif", pages[2::-1])
    for page in 1, 2, 3:
        done = subprocess.run([test.program, "--compare", "--page", str(page), "a.tif", "b.tif"], capture_output=True, text=True)
        test.equal((done.returncode, done.stdout == "equal\n"), (int(page != 2), page == 2), f"--compare {page}: {done.stdout}")
    os.mkdir("split")
    subprocess.run(["tiffsplit", "in.tif", "split/"], check=True)
    for page, name in enumerate(sorted(os.listdir("split")), 1):
        test.run("--page", str(page), "identity", "in.tif", "a.pam")
        test.run("identity", f"split/{name}", "b.pam")
        test.check(read("a.pam") == read("b.pam"), f"tiffsplit {page}")


def link(files):
    """One TIFF of several with a directory each, which are little-endian and begin with their directories' offsets."""
    out, places = bytearray(), []
    for make in files:
        file = make(len(out))
        places.append(struct.unpack_from("<I", file, 4)[0])
        out += file
    for place, following in zip(places, places[1:]):
        struct.pack_into("<I", out, place + 2 + 12 * struct.unpack_from("<H", out, place)[0], following)
    return out, places


def page_of(fields, data):
    return lambda offset: tiff("<", {**GREY, **fields}, data, False, offset)


def test_wrong_sizes(test):
    """A page whose strips have no list of sizes, or a wrong one."""
    if not has("libtiff"):
        return
    for sizes in {279: None}, {279: (4, [10 ** 6])}, {279: (4, [3])}:
        packed = zlib.compress(bytes(range(60, 76)))
        for fields, data in ((sizes, bytes(range(60, 76))), ({**sizes, 259: (3, [8])}, packed)):
            file, _ = link([page_of({}, bytes(range(16))), page_of(fields, data), page_of({}, bytes(16))])
            test.write("in.tif", file)
            wrong = sizes[279] is not None and sizes[279][1] == [3]
            said = test.run("--page", "2", "identity", "in.tif", "out.pgm", status=int(wrong))
            test.check("is damaged" in said if wrong else read("out.pgm").endswith(bytes(range(60, 76))), f"{fields}")
    palette = [257 * (i * (7 + channel) % 256) for channel in range(3) for i in range(256)]
    test.write("in.tif", link([page_of({}, bytes(16)), page_of({262: (3, [3]), 320: (3, palette)}, bytes(range(16)))])[0])
    test.run("--page", "2", "identity", "in.tif", "out.ppm")
    test.check(read("out.ppm").endswith(bytes(i * (7 + channel) % 256 for i in range(16) for channel in range(3))), "the palette of page 2")


def test_thumbnail(test):
    """A first directory of a smaller size is not the picture, but the largest of the others is, with its metadata, or
    those of the first one if it has none."""
    if not has("libtiff"):
        return
    maker = {271: (2, [ord(letter) for letter in "Maker"] + [0])}
    small = page_of({254: (4, [1]), **maker, 282: (5, [300, 1]), 283: (5, [300, 1])}, bytes(range(16)))
    large = {256: (3, [8]), 257: (3, [2])}
    test.write("in.tif", link([small, page_of({}, bytes(16)), page_of({**large, 257: (3, [6])}, bytes(range(100, 148))),
                               page_of(large, bytes(16))])[0])
    said = test.run("-v", "identity", "in.tif", "out.tif")
    test.check("8 x 6 pixels, 1 channel, page 3 of 4, the main one" in said, said)
    test.check("also contains other pictures" in said, "the others")
    test.equal((Image.open("out.tif").size, Image.open("out.tif").tobytes()), ((8, 6), bytes(range(100, 148))), "the largest")
    test.equal((exiftool("out.tif").get("IFD0:Make"), exiftool("out.tif").get("IFD0:XResolution")), ("Maker", 300), "metadata")
    test.run("--page", "1", "identity", "in.tif", "out.pgm")
    test.check(read("out.pgm").endswith(bytes(range(16))), "the thumbnail itself")
    test.run("--page", "3", "identity", "in.tif", "out.tif")
    test.equal(exiftool("out.tif").get("IFD0:Make"), None, "a page has its own metadata")
    # The picture alone is in place of the file, without a warning: a smaller size of it is nothing that is lost.
    test.write("in.tif", link([small, page_of({**large, 271: (2, [ord("A"), 0])}, bytes(range(16)))])[0])
    test.equal(test.run("--in-place", "identity", "in.tif"), "", "in place")
    test.equal((Image.open("in.tif").size, exiftool("in.tif").get("IFD0:Make")), ((8, 2), "A"), "in place")
    # If all are smaller sizes, the first one is the picture.
    test.write("in.tif", link([small, page_of({**large, 254: (4, [1])}, bytes(16))])[0])
    test.run("identity", "in.tif", "out.pgm")
    test.check(read("out.pgm").endswith(bytes(range(16))), "no other")


def test_metadata(test):
    """A page has the orientation, the resolution and the profile of its own directory."""
    if not has("libtiff"):
        return
    icc = profile()
    second = page_of({256: (3, [8]), 257: (3, [2]), 274: (3, [6]), 271: (2, [ord("B"), 0]), 282: (5, [200, 1]), 283: (5, [100, 1])},
                     bytes(range(16)))
    file, _ = link([page_of({34675: (7, list(icc))}, bytes(16)), second])
    test.write("in.tif", file)
    test.run("--page", "2", "identity", "in.tif", "out.tif")
    tags = exiftool("out.tif")
    test.equal((Image.open("out.tif").size, tags.get("IFD0:Make"), tags.get("IFD0:XResolution"), "icc_profile" in Image.open("out.tif").info),
               ((2, 8), "B", 100, False), "page 2")
    test.write("other.tif", link([page_of({274: (3, [3])}, bytes(16)), second])[0])
    for page, equal in ("1", False), ("2", True):
        done = subprocess.run([test.program, "-q", "--compare", "--metadata", "--page", page, "in.tif", "other.tif"], capture_output=True, text=True)
        test.equal(done.returncode, int(not equal), f"--compare --metadata of page {page}: {done.stdout}")
    test.equal("ICC profile" in test.run("--page", "1", "identity", "in.tif", "out.png"), True, "page 1 has the profile, which is of colours")


def frame(x, y, image, flags, **options):
    """A chunk ANMF."""
    image.save("frame.webp", **({"lossless": True, "exact": True} | options))
    chunks, body, at = read("frame.webp"), b"", 12
    while at < len(chunks):
        size = struct.unpack_from("<I", chunks, at + 4)[0]
        whole = chunks[at:at + 8 + size + size % 2]
        body += whole if whole[:4] in (b"ALPH", b"VP8 ", b"VP8L") else b""
        at += len(whole)
    head = b"".join(number.to_bytes(3, "little") for number in (x // 2, y // 2, image.width - 1, image.height - 1, 70))
    return b"ANMF" + struct.pack("<I", len(head) + 1 + len(body)) + head + bytes([flags]) + body


def animation(width, height, frames):
    body = (b"WEBPVP8X" + struct.pack("<I", 10) + bytes([2 | 16, 0, 0, 0]) + (width - 1).to_bytes(3, "little")
            + (height - 1).to_bytes(3, "little") + b"ANIM" + struct.pack("<I", 6) + bytes(6) + b"".join(frames))
    return b"RIFF" + struct.pack("<I", len(body)) + body


def test_webp(test):
    """Frames of any size, over each other or in place of each other, kept or removed, with and without alpha."""
    if not has("libwebp"):
        return
    chance = random.Random(7)
    for case in range(12):
        modes, frames = ("RGBA",) if case % 3 == 0 else ("RGB",) if case % 3 == 1 else ("RGB", "RGBA"), []
        for i in range(5):
            width, height = (46, 31) if i == 0 or chance.random() < 0.2 else (2 * chance.randrange(1, 12), chance.randrange(1, 20))
            image = picture(width // 2, height, chance.choice(modes), 100 * case + i)
            if image.mode == "RGBA" and case < 6:  # visible or not
                image.putalpha(image.getchannel("A").point(lambda level: 255 * (level > 127)))
            x, y = 2 * chance.randrange((46 - width) // 2 + 1), 2 * chance.randrange((31 - height) // 2 + 1)
            frames.append(frame(x, y, image, chance.randrange(4), **({} if case % 2 else {"lossless": False, "quality": 70})))
        test.write("in.webp", animation(46, 31, frames))
        check_pages(test, "in.webp", 5, 0 if case < 6 else 2)
    # Half of red over half of blue: alpha 191, and two parts of red for one of blue.
    red, blue = (Image.new("RGBA", (4, 4), colour) for colour in ((255, 0, 0, 128), (0, 0, 255, 128)))
    test.write("in.webp", animation(4, 4, [frame(0, 0, blue, 0), frame(0, 0, red, 0)]))
    test.run("--page", "2", "identity", "in.webp", "out.png")
    test.equal(Image.open("out.png").getpixel((1, 1)), (170, 0, 85, 192), "over each other")


def join_pictures(target):
    """Make a HEIC of three pictures. libheif may have no encoder of HEVC, and then they are coded as AV1."""
    for coding in [], ["-A"]:
        done = subprocess.run(["heif-enc", *coding, "0.png", "1.png", "2.png", "-o", target], capture_output=True, text=True)
        if done.returncode == 0:
            return
    raise RuntimeError(done.stderr)


def test_heif(test):
    """The pictures in the order of heif-convert, with their own EXIF and alpha."""
    if not has("libheif", "heif-enc", "heif-convert"):
        return
    sizes = ((64, 48), (80, 32), (48, 64))
    for i, (width, height) in enumerate(sizes):
        image = Image.linear_gradient("L").resize((width, height)).rotate(90 * i)
        image = Image.merge("RGB", (image, image.rotate(180), image.point(lambda level: 255 - level // (i + 1))))
        if i == 1:
            image.putalpha(Image.linear_gradient("L").resize((width, height)))
        image.save(f"{i}.png")
    join_pictures("in.heic")
    subprocess.run(["heif-convert", "in.heic", "theirs.png"], check=True, capture_output=True)
    plain = test.run("-v", "identity", "in.heic", "out.png")
    test.check("page 1 of 3" in plain and "the main one" not in plain, plain)
    for page, size in enumerate(sizes, 1):
        said = test.run("-v", "--page", str(page), "identity", "in.heic", "out.png")
        test.check(f"{size[0]} x {size[1]} pixels, {4 if page == 2 else 3} channels, page {page} of 3\n" in said, said)
        test.check("also contains" not in said, "no warning")
        test.check(distance(Image.open("out.png"), Image.open(f"theirs-{page}.png")) <= 2, f"picture {page}")
    # Another item is the primary one.
    file = read("in.heic")
    at = file.index(b"pitm") + 8
    items = [(file[i + 12:i + 16], struct.unpack_from(">H", file, i + 8)[0]) for i in range(len(file)) if file[i:i + 4] == b"infe"]
    ids = [item for kind, item in items if kind == b"grid"] or [item for kind, item in items if kind == b"av01"]
    for page, size in ((1, sizes[0]), (3, sizes[2])):
        item = ids[0] if page == 1 else ids[-1]
        test.write("moved.heic", file[:at] + struct.pack(">H", item) + file[at + 2:])
        said = test.run("-v", "identity", "moved.heic", "out.png")
        test.check(f"{size[0]} x {size[1]} pixels, 3 channels, page {page} of 3{', the main one' if page > 1 else ''}" in said, said)
        said = test.run("-v", "--page", "2", "identity", "moved.heic", "out.png")
        test.check("80 x 32 pixels, 4 channels, page 2 of 3" in said, said)


def test_absent(test):
    """A page that is not there is refused with the number of pages, in all modes."""
    chance = picture(4, 6, "RGB", 1)
    files = {"in.png": 1, "in.jpg": 1, "in.ppm": 1}
    for name, codec, save in (("in.tif", "libtiff", lambda name: save_tiff(name, [chance, chance.rotate(90)])),
                              ("in.webp", "libwebp", lambda name: chance.save(name, save_all=True, append_images=[chance.rotate(180)])),
                              ("still.webp", "libwebp", chance.save)):
        if has(codec):
            save(name)
            files[name] = 1 if name == "still.webp" else 2
    for name, count in files.items():
        if not os.path.exists(name):
            chance.save(name)
        test.run("--page", "1", "identity", name, "out.png")
        for page in count + 1, 65536:
            ask = f"a page from 1 to {count}" if count > 1 else "page 1"
            sentence = f"{name}: has {count} page{'s' * (count > 1)}, so there is no page {page}; ask for {ask}\n"
            for words in (["identity", name, "out.png"], ["identity", name, "-o", "many", "--format", "png"]):
                test.equal(test.run("--page", str(page), *words, status=1), f"gpuconv: {sentence}", words)
            test.write("copy", read(name) + bytes(4))
            done = subprocess.run([test.program, "--compare", "--page", str(page), name, "copy"], capture_output=True, text=True)
            test.check(done.returncode == 1 and sentence.strip() in done.stdout + done.stderr, f"--compare: {done.stdout}{done.stderr}")
            done = subprocess.run([test.program, "--digest", "--page", str(page), name], capture_output=True, text=True)
            test.check(done.returncode == 1 and sentence in done.stderr, f"--digest: {done.stderr}")


def test_all_pages(test):
    """--pages makes what --page makes of each page, of files and folders, in shards and again; a failed page is named,
    and loses no other."""
    pages, files = [picture(6, 8 + i, "RGB", i) for i in range(3)], {"photos/d.png": 1}
    os.makedirs("photos/deep")
    pages[0].save("photos/d.png")
    if has("libtiff"):
        save_tiff("photos/a.tif", pages)
        files["photos/a.tif"] = 3
    if has("libwebp"):
        pages[0].save("photos/deep/b.webp", save_all=True, append_images=[image.resize(pages[0].size) for image in pages[1:]])
        files["photos/deep/b.webp"] = 3
    if has("libheif", "heif-enc"):
        for i, image in enumerate(pages):
            image.resize((64, 64)).save(f"{i}.png")
        join_pictures("photos/c.heic")
        files["photos/c.heic"] = 3
    expected = {}
    for name, count in files.items():
        test.run("--pages", "blur", name, "one.png")
        for page in range(1, count + 1):
            test.run("--page", str(page), "blur", name, "out.png")
            test.equal(read(f"one-{page:03d}.png"), read("out.png"), f"{name} {page}")
            expected[f"{os.path.relpath(name, 'photos').rpartition('.')[0]}-{page:03d}.png"] = read("out.png")
        test.check(not os.path.exists(f"one-{count + 1:03d}.png") or count == 1, f"{name}: no page {count + 1}")
    words = ["--pages", "-r", "--format", "png", "blur", "photos", "-o"]
    for options in ([], ["-j", "3"], ["--shard", "1/2"], ["--shard", "2/2"], ["--skip-existing"]):
        folder = "parts" if "--shard" in options else "all"
        test.run("-q", *options, "--report", "report.jsonl", *words, folder)
    for folder in "all", "parts":
        found = {os.path.relpath(os.path.join(at, name), folder): read(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names}
        test.check(found == expected, f"{folder}: {sorted(found)} for {sorted(expected)}")
    lines = [json.loads(line) for line in read("report.jsonl").decode().splitlines()]
    test.equal({(line["input"], line.get("page", 1), line.get("pages", 1)) for line in lines if line["status"] == "done"},
               {(name, page, count) for name, count in files.items() for page in range(1, count + 1)}, "the report")
    test.equal(sum(line["status"] == "skipped" for line in lines), len(expected), "--skip-existing")
    if "photos/a.tif" not in files:
        return
    test.run("-q", "-r", "--pages", "--format", "png", "blur", "photos", "-o", "web", "--also", "small=resize:3x")
    test.check({f"{at}/{name}".removeprefix("web/"): read(f"{at}/{name}") for at, _, names in os.walk("web") for name in names} == expected, "--also")
    for page in 1, 2, 3:
        test.run("--page", str(page), "resize:3x", "photos/a.tif", "out.png")
        test.equal(read(f"small/a-{page:03d}.png"), read("out.png"), f"--also, page {page}")
    test.run("-q", "--pages", "--suffix", "-x", "identity", "photos/a.tif", "-o", "single")
    test.equal(sorted(os.listdir("single")), ["a-x-001.tif", "a-x-002.tif", "a-x-003.tif"], "--suffix")
    save_tiff("in-002.tif", pages)
    test.run("--pages", "identity", "in-002.tif", "-o", "single")
    os.rename("in-002.tif", "copy-002.png")
    test.check("is the same file as" in test.run("--pages", "identity", "copy-002.png", "copy.png", status=2), "the input is an output")
    file, places = link([page_of({}, bytes([i] * 16)) for i in range(3)])
    entry = next(i for i in range(places[1] + 2, len(file), 12) if struct.unpack_from("<H", file, i)[0] == 273)
    struct.pack_into("<I", file, entry + 8, len(file))
    test.write("bad.tif", file)
    said = test.run("--pages", "identity", "bad.tif", "bad.pgm", status=1)
    test.check(said.startswith("gpuconv: bad.tif, page 2: the TIFF file is truncated: ") and "1 of 3 files failed" in said, said)
    test.equal([os.path.exists(f"bad-{page:03d}.pgm") for page in (1, 2, 3, 4)], [True, False, True, False], "the others")
    # A file that is none, is missing, or whose pages cannot be counted, has one job, which says why.
    struct.pack_into("<I", file, places[0] + 2 + 12 * struct.unpack_from("<H", file, places[0])[0], places[0])
    for name, content in (("circle.tif", file), ("none.tif", b"text"), ("cut.webp", read("photos/a.tif")[:9])):
        test.write(name, content)
        said = test.run("--pages", "identity", name, "x.png", status=1)
        test.check(said.startswith(f"gpuconv: {name}, page 1: ") and said.count("\n") == 1, said)
    test.check("missing.tif" in test.run("--pages", "identity", "missing.tif", "x.png", status=1), "missing")


def page_with_exif(number):
    """A page with EXIF, what that has for other programs, a place and a profile, all of its own."""
    def make(base):
        data, places = bytearray(16), []
        for entries in ({1: (2, list(b"R0%d\0" % number))}, {0x9003: (2, list(b"2024:05:06 07:08:0%d\0" % number)), 0xA005: None},
                        {1: (2, list(b"N\0")), 2: (5, [40 + number, 1, 51, 1, 24, 1])}):
            at = base + 8 + len(data)
            entries = {257: (4, [1]), 278: None, 279: None, 273: None, **entries}
            file = tiff("<", entries if 0xA005 not in entries else {**entries, 0xA005: (4, [places[0]])}, b"", False, at)
            places.append(struct.unpack_from("<I", file, 4)[0])
            data += file
        fields = {271: (2, list(b"Maker %d\0" % number)), 279: (4, [16]), 282: (5, [100 * number, 1]), 283: (5, [100 * number, 1]),
                  296: (3, [2]), 34665: (4, [places[1]]), 34853: (4, [places[2]])}
        icc = {34675: (7, list(profile() + bytes(4 * number)))} if number % 2 else {}
        return tiff("<", {**GREY, **RGB, **fields, **icc}, bytes(data[:16]) + data[16:], False, base)
    return make


def check_joined(test, name, count, *options, again=False):
    """--pages makes a TIFF with the pages that --page reads, for our reader, Pillow and libtiff's programs. If it is
    AGAIN the same file, the first page and the last one are enough for the programs."""
    test.equal(test.run("-q", *options, "--pages", "blur", name, "joined.tif"), "", f"{name} {options}: no error")
    shutil.rmtree("split", ignore_errors=True)
    os.mkdir("split")
    done = subprocess.run(["tiffsplit", "joined.tif", "split/"], check=True, capture_output=True, text=True)
    said = done.stderr + subprocess.run(["tiffinfo", "-D", "joined.tif"], check=True, capture_output=True, text=True).stderr
    said = [line for line in said.splitlines() if "Unknown field" not in line]  # libtiff does not name all of EXIF
    test.equal((said, len(os.listdir("split"))), ([], count), f"{name}: libtiff")
    with Image.open("joined.tif") as joined:
        test.equal(joined.n_frames, count, f"{name}: Pillow")
        for page, (frame, part) in enumerate(zip(ImageSequence.Iterator(joined), sorted(os.listdir("split"))), 1):
            test.run("-q", *options, "--page", str(page), "blur", name, "page.tif")
            with Image.open("page.tif") as alone:
                test.check((frame.mode, frame.size, frame.tobytes()) == (alone.mode, alone.size, alone.tobytes()), f"{name} {page}: Pillow")
            if again and 1 < page < count:
                continue
            test.run("-q", "identity", f"split/{part}", "a.pam")
            for out, words in ("b.pam", ["joined.tif"]), ("c.pam", ["--page", "1", "page.tif"]):
                test.run("-q", "--page", str(page), *words[:-1], "identity", words[-1], out)
            test.check(read("a.pam") == read("b.pam") == read("c.pam"), f"{name} {page}: samples")
            for out, words in ("b.png", ["--page", str(page), "identity", "joined.tif"]), ("c.png", ["identity", "page.tif"]):
                test.run("-q", *words, out)
            test.check(read("b.png") == read("c.png"), f"{name} {page}: metadata")


def test_joined(test):
    """A TIFF of pages: of all samples, in one strip and several, with metadata, from standard input and to standard
    output; and from other formats."""
    if not has("libtiff", "tiffinfo", "tiffsplit"):
        return
    save_tiff("a.tif", [picture(20 + 190 * i, 33 + 150 * (4 - i), mode, i) for i, mode in enumerate(("RGB", "L", "RGBA", "1", "RGB"))])
    for level in "0", "1", "9", "fast":
        check_joined(test, "a.tif", 5, "--compression", level, again=level != "0")
    deep = [page_of({**fields, 258: (3, [16] * count), 277: (3, [count])}, random.Random(count).randbytes(32 * count))
            for count, fields in ((1, {}), (3, {262: (3, [2])}), (4, {262: (3, [2]), 338: (3, [2])}))]
    test.write("deep.tif", link(deep)[0])
    check_joined(test, "deep.tif", 3)
    test.write("exif.tif", link([page_with_exif(i) for i in range(1, 5)])[0])
    check_joined(test, "exif.tif", 4)
    tags = exiftool("joined.tif", "-G5")
    for i in range(4):
        at = f"IFD{i}"
        found = [next((value for key, value in tags.items() if f"{at}" in key.split(":")[0].split("-") and key.endswith(f":{name}")), None)
                 for name in ("Make", "XResolution", "DateTimeOriginal", "InteropIndex", "GPSLatitude")]
        test.equal(found[:4], [f"Maker {i + 1}", 100 * (i + 1), f"2024:05:06 07:08:0{i + 1}", f"R0{i + 1}"], f"exiftool, page {i + 1}: {tags}")
        test.check(abs((found[4] or 0) - 41 - i - 0.8567) < 0.01, f"exiftool, the place of page {i + 1}: {found}")
    test.run("--strip", "all", "--pages", "identity", "exif.tif", "plain.tif")
    test.check(b"Maker" not in read("plain.tif"), "--strip")
    with open("exif.tif", "rb") as file:
        piped = subprocess.run([test.program, "--pages", "--format", "tif", "blur", "-", "-"], stdin=file, capture_output=True, check=True)
    test.check(piped.stdout == read("joined.tif"), "from standard input to standard output")
    said = test.run("-v", "--pages", "blur", "--threads", "3", "exif.tif", "again.tiff")
    test.check(read("again.tiff") == read("joined.tif") and said.count("input  ") == 4 and ", page 3 of 4\n" in said, said)
    test.run("--report", "joined.jsonl", "--pages", "blur", "exif.tif", "again.tif")
    line = json.loads(read("joined.jsonl"))
    test.equal((line["pages"], "page" in line, line["output_bytes"]), (4, False, len(read("joined.tif"))), "the report")
    picture(9, 9, "RGB", 1).save("one.png")
    check_joined(test, "one.png", 1)
    if has("libwebp"):
        test.write("film.webp", animation(20, 10, [frame(2 * i, 0, picture(5, 5, "RGBA", i), i) for i in range(3)]))
        check_joined(test, "film.webp", 3)
    if has("libheif", "heif-enc"):
        for i in range(3):
            picture(32 + 2 * i, 64, "RGB", i).save(f"{i}.png")
        join_pictures("some.heic")
        check_joined(test, "some.heic", 3)


def test_joined_fails(test):
    """A page that fails, too little memory or a full page leaves the output as it was."""
    if not has("libtiff"):
        return
    file, places = link([page_of({}, bytes([i] * 16)) for i in range(3)])
    entry = next(i for i in range(places[1] + 2, len(file), 12) if struct.unpack_from("<H", file, i)[0] == 273)
    struct.pack_into("<I", file, entry + 8, len(file))
    test.write("bad.tif", file)
    save_tiff("large.tif", [Image.new("RGB", (1000, 800), (i, 0, 0)) for i in range(9)], compression="tiff_adobe_deflate")
    test.write("out.tif", b"as it was")
    said = test.run("--report", "failed.jsonl", "--pages", "identity", "bad.tif", "out.tif", status=1)
    test.check(said.startswith("gpuconv: bad.tif, page 2: the TIFF file is truncated: ") and said.count("\n") == 1, said)
    line = json.loads(read("failed.jsonl"))
    test.check(line["status"] == "failed" and line["error"].startswith("bad.tif, page 2: "), line)
    said = test.run("--memory", "16M", "--pages", "--compression", "0", "identity", "large.tif", "out.tif", status=1)
    test.check(re.match(r"gpuconv: large.tif, page [2-9]: needs .* of memory, and --memory allows 16.0 MiB; allow more\n$", said), said)
    test.check("is the same file as" in test.run("--pages", "identity", "bad.tif", "bad.tif", status=2), "in place")
    test.equal((read("out.tif"), [name for name in os.listdir(".") if name.startswith((".", "out.tif."))]), (b"as it was", []), "the output")
    test.run("--skip-existing", "--pages", "identity", "bad.tif", "out.tif")


def test_outputs(test):
    """Outputs of one line that read several pages of one size share no picture."""
    if not has("libtiff"):
        return
    save_tiff("in.tif", [picture(8, 9, "RGB", i) for i in range(2)])
    pages = (1, 2, 2, 1, 2)
    line = {"input": "in.tif", "filter": "blur", "outputs": [{"output": f"{i}.png", "page": page} for i, page in enumerate(pages)]}
    subprocess.run([test.program, "--jobs-from", "-"], input=json.dumps(line) + "\n", capture_output=True, text=True, check=True)
    for i, page in enumerate(pages):
        test.run("--page", str(page), "blur", "in.tif", "out.png")
        test.equal(read(f"{i}.png"), read("out.png"), f"output {i}")


def one_sentence(test, name, *options):
    done = subprocess.run([test.program, "-q", *options, "identity", name, "out.png"], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if line.startswith("gpuconv: ")]
    test.check(done.returncode in (0, 1) and len(ours) == done.returncode, f"{done.returncode} {done.stderr}")
    return done.stderr


def test_damaged_tiff(test):
    """Only the damaged page is refused. Directories in a circle, or over each other, take no time."""
    if not has("libtiff"):
        return
    file, places = link([page_of({}, bytes([i] * 16)) for i in range(4)])
    strip = file.index(bytes([1] * 16))
    entry = next(i for i in range(places[1] + 2, len(file), 12) if struct.unpack_from("<H", file, i)[0] == 273)
    for offset, words in ((len(file), "strip or tile 0 at byte"), (strip, None)):
        struct.pack_into("<I", file, entry + 8, offset)
        test.write("in.tif", file)
        for page in 1, 2, 3, 4:
            said = one_sentence(test, "in.tif", "--page", str(page))
            test.check(words in said if words and page == 2 else said == "", f"{offset} {page}: {said}")
    end = places[2] + 2 + 12 * struct.unpack_from("<H", file, places[2])[0]
    for place in places[0], places[1], places[2], places[2] + 1, 10 ** 6:
        bad = bytearray(file)
        struct.pack_into("<I", bad, end, place)
        test.write("bad.tif", bad)
        test.check("claims" not in one_sentence(test, "bad.tif"), "the first page is read")
        said = one_sentence(test, "bad.tif", "--page", "3")
        test.check("overlap, or follow each other in a circle" in said if place in places else said == "" or "overlap" in said, f"{place}: {said}")
        if place == 10 ** 6:
            test.check("directory 4 is not in the" in one_sentence(test, "bad.tif", "--page", "4"), "cut")
            test.check("has 4 pages, so there is no page 5" in one_sentence(test, "bad.tif", "--page", "5"), "after the cut")
    bad = file + b"\xff\xff" + struct.pack("<I", places[0])  # a directory that ends before its entries
    struct.pack_into("<I", bad, end, len(file))
    test.write("bad.tif", bad)
    test.check("directory 4 is not in the" in one_sentence(test, "bad.tif", "--page", "4"), "cut after the first bytes")
    # 65535 entries each, at every 2nd byte of 1.5 MB: the first one is marked as a smaller size.
    first = tiff("<", {**GREY, 254: (4, [1])}, bytes(16), False)
    place = struct.unpack_from("<I", first, 4)[0]
    large = bytearray(first + b"\xff" * 1600000)
    struct.pack_into("<I", large, place + 2 + 12 * struct.unpack_from("<H", large, place)[0], len(first))
    for i in range(0, 400000, 4):
        struct.pack_into("<I", large, len(first) + i + 2 + 12 * 65535, len(first) + i + 4)
    test.write("large.tif", large)
    subprocess.run([test.program, "-q", "identity", "large.tif", "out.png"], timeout=60, check=True)
    test.check("overlap" in one_sentence(test, "large.tif", "--page", "9"), "directories over each other")


def test_damaged_frames(test):
    """A frame after the wanted one may be damaged, one that it needs may not; none may leave the canvas."""
    if not has("libwebp"):
        return
    image = picture(10, 10, "RGBA", 5)
    frames = [frame(0, 0, image, 0), frame(4, 4, image.crop((0, 0, 9, 9)), 0), frame(2, 2, image.crop((0, 0, 7, 7)), 0)]
    for damage, words in ((lambda chunk: chunk[:8] + (9).to_bytes(3, "little") + chunk[11:], "does not fit its canvas of 20 x 14"),
                          (lambda chunk: chunk[:14] + (40).to_bytes(3, "little") + chunk[17:], "another size than the picture in it"),
                          (lambda chunk: chunk[:24] + b"XXXX" + chunk[28:], "it has no picture"),
                          (lambda chunk: chunk[:40] + bytes(len(chunk) - 40), "")):
        test.write("in.webp", animation(20, 14, [frames[0], damage(frames[1]), frames[2]]))
        test.run("-q", "--page", "1", "identity", "in.webp", "out.png")
        for page in "2", "3":
            said = one_sentence(test, "in.webp", "--page", page)
            test.check(words in said, f"{page}: {said}")
    for page in "1", "2":
        test.write("in.webp", animation(20, 14, frames[:2] + [b"XXXX" + frames[2][4:]]))
        test.run("-q", "--page", page, "identity", "in.webp", "out.png")


def test_random_damage(test):
    """A file whose bytes change is read or refused with one sentence, each page of it."""
    chance, files = random.Random(2), []
    if has("libtiff"):
        save_tiff("a.tif", [picture(9, 9, mode, 3) for mode in ("RGB", "L", "RGBA")], compression="tiff_lzw")
        files.append("a.tif")
    if has("libwebp"):
        test.write("a.webp", animation(20, 10, [frame(2 * i, i // 2 * 2, picture(5, 5, "RGBA", i), i) for i in range(3)]))
        files.append("a.webp")
    if has("libheif", "heif-enc"):
        for name in "0.png", "1.png", "2.png":
            picture(32, 64, "RGB", 1).save(name)
        join_pictures("a.heic")
        files.append("a.heic")
    for name in files:
        good = read(name)
        heads = min(len(good), 900)
        for i in range(70):
            bad = bytearray(good)
            for _ in range(chance.choice((1, 3))):
                bad[chance.randrange(12, heads if i % 2 else len(bad))] ^= 1 << chance.randrange(8)
            test.write("bad", bad)
            one_sentence(test, "bad", "--page", str(chance.choice((2, 3, 4))))


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    return metadata_files.run_tests(globals())


sys.exit(main())
