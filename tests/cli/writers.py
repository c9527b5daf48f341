#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Large PNG files of many writers: writers.py GPUCONV.

From four threads on, gpuconv inflates a file of 512 KiB or more in parts, which depend on how the writer has made its
blocks. Each file must be read to the samples that it was made of, with one thread and with more. Pillow must read the
same, so that a fault of the file itself is not taken for one of gpuconv.

Some files are put together here; the others are written by Pillow (libpng), netpbm, zopflipng, optipng, pngcrush,
advpng and OpenCV, as far as they are installed. Skipped (exit status 77) if Pillow is not installed."""
import io
import os
import random
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from foreign_streams import STREAMS, idats  # noqa: E402
from harness import need_module, run, temporary_folder  # noqa: E402
from write_png import COLOUR_TYPES, SIGNATURE, chunk, ihdr  # noqa: E402

need_module("PIL")
from PIL import Image, ImageDraw  # noqa: E402

SIZE_MIN = 1 << 19  # a smaller file is inflated on one thread


# ---- Pictures: width, height, channels, bits, samples ----

def of(picture):
    return *picture.size, len(picture.getbands()), 8, picture.tobytes()


def photo(width, height, channels=3):
    """A slope and noise in each channel."""
    noise = Image.effect_noise((width, height), 12)
    slopes = [Image.linear_gradient("L").rotate(90 * i).resize((width, height)) for i in range(channels)]
    return of(Image.merge(("RGB", "RGBA")[channels - 3],
                          [Image.blend(slope, noise.rotate(180 * (i % 2)), 0.4) for i, slope in enumerate(slopes)]))


def drawing(width, height):
    """A screen: windows full of text, and photos."""
    chance, picture = random.Random(1), Image.new("RGBA", (width, height), "teal")
    draw = ImageDraw.Draw(picture)
    for _ in range(30):
        x, y = chance.randrange(-200, width), chance.randrange(-200, height)
        ink, paper = (tuple(chance.randrange(low, low + 100) for _ in range(3)) + (255 - low // 2,) for low in (0, 150))
        draw.rectangle((x, y, x + 600, y + 400), fill=paper, outline=ink)
        for line in range(24):
            draw.text((x + 8, y + 8 + 16 * line), "".join(chance.choices("etaoin shrdlu()[];=", k=90)), fill=ink)
    for i in range(4):
        picture.paste(Image.frombytes("RGB", (400, 300), photo(400, 300)[4]), (width // 2 * (i % 2), 400 * (i // 2)))
    return of(picture)


def deep(width, height):
    """16 bits a sample: a slope, and noise in the lower byte."""
    noise = random.Random(2).randbytes(3 * width * height)
    return width, height, 3, 16, b"".join(bytes((i // 3 % width * 256 // width, low)) for i, low in enumerate(noise))


# ---- Rows ----

def filtered(width, height, channels, bits, samples):
    """The rows, each after its row filter: 1 (Sub). The bytes of a row are those of two large integers: no byte borrows
    from the next one, because the highest bits stand by themselves."""
    pixel, row = channels * bits // 8, width * channels * bits // 8
    high = int.from_bytes(row * b"\x80", "little")
    result = []
    for at in range(0, len(samples), row):
        a = int.from_bytes(samples[at:at + row], "little")
        b = int.from_bytes(bytes(pixel) + samples[at:at + row - pixel], "little")
        result.append(((a | high) - (b & ~high) ^ (a ^ ~b) & high).to_bytes(row, "little"))
    return b"\1" + b"\1".join(result)


# ---- Files ----

def file_of(picture, body):
    width, height, channels, bits, _ = picture
    return SIGNATURE + ihdr(width, height, bits, COLOUR_TYPES[channels]) + body + chunk(b"IEND")


def by_apple(picture, rows):
    """Two halves that can be inflated apart, and Apple's chunk iDOT: their number, and for each the first row, the
    number of rows, and the distance of its first IDAT chunk from the chunk iDOT."""
    height, row = picture[1], len(rows) // picture[1]
    half, z = (height + 1) // 2, zlib.compressobj(6)
    first = z.compress(rows[:half * row]) + z.flush(zlib.Z_FULL_FLUSH)
    upper, lower = idats(first, 16384), idats(z.compress(rows[half * row:]) + z.flush(), 16384)
    table = struct.pack(">7I", 2, 0, half, 40, half, height - half, 40 + len(upper))
    return file_of(picture, chunk(b"iDOT", table) + upper + lower)


def own_files(picture):
    """The files that are put together here, by writer."""
    rows = filtered(*picture)
    streams = {name: deflate(rows) for name, deflate in STREAMS.items()}
    files = {name: file_of(picture, chunk(b"IDAT", stream)) for name, stream in streams.items()}
    large = streams["one-block"]  # more than 1 MiB is joined on several threads
    files["small-chunks"] = file_of(picture, idats(large[:1], 1) + idats(large[1:], 100))
    files["apple"] = by_apple(picture, rows)
    return files


def pam(picture):
    width, height, channels, bits, samples = picture
    kind = {3: "RGB", 4: "RGB_ALPHA"}[channels]
    return (f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {(1 << bits) - 1}\nTUPLTYPE {kind}\n"
            "ENDHDR\n".encode() + samples)


def pillow_files(picture):
    width, height, channels, _, samples = picture
    for level in (1, 6, 9):
        file = io.BytesIO()
        image = Image.frombytes({3: "RGB", 4: "RGBA"}[channels], (width, height), samples)
        image.save(file, "png", compress_level=level)
        yield f"libpng-{level}", file.getvalue()


# Each writes the file "$OUT". The slow ones get one picture.
SLOW = ("advpng", "opencv", "zopflipng")
OPENCV = "import cv2, sys; assert cv2.imwrite(sys.argv[1], cv2.imread('in.png', cv2.IMREAD_UNCHANGED))"
TOOLS = {
    "netpbm": 'pamtopng in.pam > "$OUT"', "optipng": 'optipng -quiet -o1 -out "$OUT" in.png',
    "pngcrush": 'pngcrush -s -m 2 in.png "$OUT"', "advpng": 'cp in.png "$OUT"; advpng -q -z -2 "$OUT"',
    "opencv": f'python3 -c "{OPENCV}" "$OUT"', "zopflipng": 'zopflipng -y --iterations=1 --filters=p in.png "$OUT"',
}
PROBES = {"netpbm": "pamtopng -version", "opencv": "python3 -c 'import cv2'"}


def is_installed(writer):
    probe = PROBES.get(writer, f"command -v {writer}")
    return subprocess.run(probe, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def write_all(name, picture, tools):
    """Write the files of a picture to the folder `in`."""
    files = own_files(picture) | dict(pillow_files(picture) if picture[3] == 8 else ())
    sources = {"in.pam": pam(picture), "in.png": files["stored"]}
    for path, data in (sources | {f"in/{name}.{writer}.png": data for writer, data in files.items()}).items():
        with open(path, "wb") as file:
            file.write(data)
    for writer in tools:
        subprocess.run(TOOLS[writer], shell=True, check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"OUT": f"in/{name}.{writer}.png"})


def check(name, picture, folders):
    """Yields a sentence for each thing that is wrong with a file."""
    if os.path.getsize(f"in/{name}.png") < SIZE_MIN:
        yield f"{name}: is too small to be inflated in parts"
    with Image.open(f"in/{name}.png") as image:
        seen = image.convert({3: "RGB", 4: "RGBA"}[picture[2]]).tobytes()
    if seen != (picture[4] if picture[3] == 8 else picture[4][::2]):  # Pillow makes 8 bits of 16
        yield f"{name}: Pillow reads other samples: not a fault of gpuconv"
    expected = pam(picture)
    for folder in folders:
        with open(f"{folder}/{name}.pam", "rb") as file:
            if file.read() != expected:
                yield f"{name}: other samples by gpuconv, {folder}"


def main():
    program = os.path.abspath(sys.argv[1])
    tools = [writer for writer in TOOLS if is_installed(writer)]
    pictures = {"photo": photo(700, 600), "alpha": photo(500, 500, 4), "drawing": drawing(1000, 800),
                "deep": deep(400, 400)}
    with temporary_folder():
        os.mkdir("in")
        for name, picture in pictures.items():
            write_all(name, picture, [tool for tool in tools if name == "photo" or tool not in SLOW])
        folders = {f"{threads} threads": str(threads) for threads in (1, 4)}
        for output, threads in folders.items():
            command = [program, "-q", "-j1", "--threads", threads, "--backend", "cpu", "--format", "pam", "identity"]
            run(*command, "in", "-o", output)
        names = sorted(name[:-len(".png")] for name in os.listdir("in"))
        writers = {name.split(".")[1] for name in names}
        wrong = [line for name in names for line in check(name, pictures[name.split(".")[0]], folders)]
    for tool in sorted(set(TOOLS) - set(tools)):
        print(f"{tool} is not installed: its files were not checked")
    print("\n".join(wrong) or f"{len(names)} files of {len(writers)} writers are right")
    return 1 if wrong else 0


sys.exit(main())
