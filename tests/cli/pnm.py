#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PGM, PPM and PAM: pnm.py GPUCONV PART.

    itself   files of all widths up to 70, kinds and depths keep their bytes; filters make the same samples as from
             PNGs; truncated files are refused with one sentence
    netpbm   netpbm reads and writes the same samples: pngtopam, pamtopng, pamdepth, and headers that are hard to read
    pillow   Pillow reads the same samples
    array    the manual's lines filter an array of numpy"""
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lib"))
from harness import need_module, run, skip, temporary_folder  # noqa: E402

TYPES = ("", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA")
WIDTHS = range(1, 71)


def pam(width, height, channels, maxval, samples, kind=None):
    kind = TYPES[channels] if kind is None else kind
    return (f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {maxval}\nTUPLTYPE {kind}\nENDHDR\n"
            .encode() + samples)


def pnm(width, height, channels, maxval, samples):
    return f"P{5 if channels == 1 else 6}\n{width} {height}\n{maxval}\n".encode() + samples


def noise(chance, count, maxval):
    """Samples as in a file."""
    size = 2 if maxval > 255 else 1
    return b"".join(chance.randint(0, maxval).to_bytes(size, "big") for _ in range(count))


def write_all(folder):
    """A file of each width, kind and depth."""
    chance, height = random.Random(1), 3
    os.mkdir(folder)
    for width in WIDTHS:
        for maxval in (255, 65535):
            for channels in (1, 2, 3, 4):
                samples = noise(chance, width * height * channels, maxval)
                name = f"{folder}/{width}-{channels}-{maxval}"
                pathlib.Path(name + ".pam").write_bytes(pam(width, height, channels, maxval, samples))
                if channels in (1, 3):
                    suffix = ".pgm" if channels == 1 else ".ppm"
                    pathlib.Path(name + suffix).write_bytes(pnm(width, height, channels, maxval, samples))
                    shutil.copyfile(name + suffix, name + "-any.pnm")


def same_bytes(a, b, suffixes):
    """Do two folders hold the same bytes under these names?"""
    names = sorted(name for name in os.listdir(a) if name.endswith(suffixes))
    for name in names:
        if pathlib.Path(a, name).read_bytes() != pathlib.Path(b, name).read_bytes():
            sys.exit(f"{a}/{name} and {b}/{name} differ")
    if len(names) < len(WIDTHS) * 4:
        sys.exit(f"{a} holds only {len(names)} files")


def test_itself(program):
    write_all("in")
    run(program, "-q", "identity", "in", "-o", "out")
    same_bytes("in", "out", (".pgm", ".ppm", ".pnm", ".pam"))
    shutil.rmtree("out")
    for name in list(os.listdir("in")):
        if not name.endswith(".pam"):
            os.remove("in/" + name)
    run(program, "-q", "identity", "in", "-o", "png", "--format", "png")
    for filters in ("blur", "gaussian:2,edge"):
        run(program, "-q", filters, "in", "-o", "a")
        run(program, "-q", filters, "png", "-o", "b", "--format", "pam")
        same_bytes("a", "b", (".pam",))
    for file in (pam(5, 4, 4, 300, bytes(160)), pnm(5, 4, 3, 255, bytes(60)), pnm(3, 3, 1, 65535, bytes(18))):
        for size in [*range(1, len(file), 5), len(file) - 1]:
            done = subprocess.run([program, "identity", "-", "x.png"], input=file[:size], capture_output=True)
            if done.returncode != 1 or done.stderr.count(b"\n") != 1 or not done.stderr.endswith(b"\n"):
                sys.exit(f"{file[:size]}: exit status {done.returncode}, {done.stderr}")
    if os.path.exists("x.png"):
        sys.exit("a truncated file was filtered")


def output_of(*command, data=None):
    done = subprocess.run(command, input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr}")
    return done.stdout


def as_pam(program, data):
    return output_of(program, "-q", "identity", "-", "-", "--format", "pam", data=data)


def equal(what, a, b):
    if a != b:
        sys.exit(f"{what}: {a[:200]} and {b[:200]}")


def test_netpbm(program):
    if not all(map(shutil.which, ("pngtopam", "pamtopng", "pamdepth", "pamtopam", "pamtopnm"))):
        skip("netpbm is not installed")
    chance = random.Random(2)
    files = 0
    for path in sorted((ROOT / "data" / "pngsuite").glob("*.png")):
        data = path.read_bytes()
        # netpbm makes grey of palettes, and it cannot know what gpuconv refuses.
        if data[25] & 1 or path.name.startswith(("x", "t")):
            continue
        files += 1
        want = as_pam(program, data)
        read = output_of("pngtopam", *["-alphapam"] * (data[25] >> 2 & 1), data=data)
        equal(f"pngtopam {path}", as_pam(program, output_of("pamtopam", data=read)), want)  # black and white, too
        equal(f"pamtopng {path}", as_pam(program, output_of("pamtopng", data=want)), want)
    if files < 80:
        sys.exit(f"only {files} files of PngSuite were compared")
    for maxval in (1, 2, 3, 100, 254, 256, 1000, 4095, 65534):
        for channels in (1, 2, 3, 4):
            file = pam(37, 11, channels, maxval, noise(chance, 37 * 11 * channels, maxval))
            white = "255" if maxval < 256 else "65535"
            equal(f"pamdepth {white} of maxval {maxval}", as_pam(program, file), output_of("pamdepth", white, data=file))
    for file in (b"P5 #\n#2\n2\r# 7 7\r\n1\t\n 255 ab", b"P5 2 1 255#9\nab", b"P6 1 1\n255 # #", b"P5#9\n 02 0001 255\rab",
                 b"P5\n2 1 # 3\n65535\nabcd", b"P5\n2 1\n255\r\na",
                 b"P7\n#\n\n DEPTH 1\nTUPLTYPE GRAYSCALE\nWIDTH 2  \nHEIGHT  1\n# DEPTH 2\nMAXVAL 255\nENDHDR\nab"):
        wanted = output_of("pamtopnm", data=file)
        equal(f"the header {file}", as_pam(program, file), as_pam(program, wanted))
        equal(f"the header {file}", wanted, output_of(program, "-q", "identity", "-", "-", "--format", "pnm", data=file))


def test_pillow(program):
    from PIL import Image
    write_all("in")
    names = [name for name in os.listdir("in") if name.endswith((".pgm", "-3-255.ppm"))]  # it reads no PPM of 16 bits
    run(program, "-q", "blur", *("in/" + name for name in names), "-o", "out")
    for name in names:
        with Image.open("out/" + name) as image:
            width, channels, maxval = (int(part) for part in name[:-4].split("-"))
            if image.size != (width, 3):
                sys.exit(f"{name}: Pillow reads {image.size}")
            read, file = image.tobytes(), pathlib.Path("out", name).read_bytes()
            samples = file[-width * 3 * channels * (2 if maxval > 255 else 1):]
            if maxval > 255:  # Pillow has 32 bits a sample
                read = b"".join(level.to_bytes(2, "big") for level in image.getdata())
            equal(f"Pillow reads {name}", read, samples)


def test_array(program):
    import numpy
    text = (ROOT.parent / "docs" / "manual.md").read_text(encoding="utf-8").split("### PNM\n")[1]
    lines = text.split("```python\n")[1].split("```")[0]
    array = numpy.random.default_rng(3).integers(0, 65536, (31, 45)).astype(numpy.uint16)
    names = {"array": array, "numpy": numpy}
    os.symlink(program, "gpuconv")
    os.environ["PATH"] = os.getcwd() + os.pathsep + os.environ["PATH"]
    exec(lines, names)
    pathlib.Path("in.pgm").write_bytes(pnm(45, 31, 1, 65535, array.astype(">u2").tobytes()))
    run(program, "identity", "in.pgm", "in.png")
    run(program, "gaussian:2", "in.png", "out.pgm")
    equal("the manual's lines", names["filtered"].tobytes(), pathlib.Path("out.pgm").read_bytes()[-2 * 31 * 45:])


def main():
    program, part = os.path.abspath(sys.argv[1]), sys.argv[2]
    modules = {"pillow": "PIL", "array": "numpy"}
    if part in modules:
        need_module(modules[part])
    with temporary_folder():
        {"itself": test_itself, "netpbm": test_netpbm, "pillow": test_pillow, "array": test_array}[part](program)


main()
