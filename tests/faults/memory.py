#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Let each call for memory or a thread fail in turn: memory.py GPUCONV FAILING.

Each run must give the outputs of an undisturbed run, or exit status 75, one sentence and no output: no signal, no hang,
no temporary file, no other bytes. FAILING is the library that makes calls fail, failing.c. If there are many calls,
only some fail, at equal distances. GPUCONV_FAULTS=full lets each fail, alone and with all that follow."""
import ctypes
import ctypes.util
import json
import os
import re
import shutil
import sys
import tarfile

import faults
from faults import FULL, check, fail, run
from harness import has_codec, use_python_with

use_python_with("PIL")
try:
    from PIL import Image
except ImportError:
    Image = None

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "spec", "vectors.jsonl")
PROFILE = "/usr/share/color/icc/ghostscript/default_cmyk.icc"  # libgs-common installs it
MOST = 24  # calls of a kind that fail in a scenario, without GPUCONV_FAULTS=full


class Scenario:
    """A command in a folder of pictures; it writes below out/."""

    def __init__(self, name, *arguments, files=0, jobs=False, prints=False, status=0):
        self.name, self.arguments, self.files = name, arguments, files
        self.jobs = jobs  # each file fails alone, and a summary follows
        self.prints, self.status = prints, status


PNGS = ("in/a.png", "in/b.png", "in/c.png")
SCENARIOS = [
    Scenario("PNG", "blur", "in/a.png", "out/o.png", files=1),
    Scenario("PNG by stb", "--codec", "stb", "blur", "in/a.png", "out/o.png", files=1),
    Scenario("PNG, level 9", "--compression", "9", "--threads", "2", "blur", "in/large.png", "out/o.png", files=1),
    Scenario("JPEG", "blur", "in/d.jpg", "out/o.jpg", files=1),
    Scenario("JPEG by stb", "--codec", "stb", "blur", "in/d.jpg", "out/o.jpg", files=1),
    Scenario("grey and alpha to JPEG", "-q", "blur", "in/grey.png", "out/o.jpg", files=1),
    Scenario("PAM to PPM", "-q", "--threads", "3", "blur", "in/c.pam", "out/o.ppm", files=1),
    Scenario("PNG of several bands", "--threads", "3", "blur", "in/bands.png", "out/o.png", files=1),
    Scenario("JPEG of several bands", "--threads", "3", "blur", "in/bands.jpg", "out/o.jpg", files=1),
    Scenario("chain", "--alpha", "premultiply", "gaussian:2.3,sobel,in/taps.txt", "in/c.png", "out/o.png", files=1),
    Scenario("reference, stdout", "--variant", "reference", "blur", "in/a.png", "-", prints=True),
    Scenario("batch, one worker", "-q", "-j1", "blur,sharpen", *PNGS, "-o", "out", files=3, jobs=True),
    Scenario("batch, three workers", "-q", "-j3", "blur,sharpen", *PNGS, "-o", "out", files=3, jobs=True),
    Scenario("batch, tree, report", "-q", "-r", "-j2", "--report", "out.jsonl", "blur", "in/tree", "-o", "out", files=2,
             jobs=True),
    Scenario("list of files, shard", "-q", "--files-from", "in/list", "--shard", "1/1", "blur", "-o", "out", files=2,
             jobs=True),
    Scenario("in place", "-q", "-j2", "--in-place", "blur", "copy/a.png", "copy/b.png", jobs=True),
    Scenario("--compare", "--compare", "in/a.png", "in/other.png", "out/o.png", prints=True, files=1, status=1),
    Scenario("--compare, page", "--compare", "in/a.png", "in/other.png", "--html", "out/p.html", "--ignore", "0,0,9,9",
             prints=True, jobs=True, files=1, status=1),
    Scenario("--compare, JUnit", "--compare", "in/a.png", "in/other.png", "--junit", "out/j.xml", prints=True, jobs=True,
             files=1, status=1),
    Scenario("--compare, Markdown", "--compare", "in/a.png", "in/other.png", "--markdown", "out/m.md", prints=True, jobs=True,
             files=1, status=1),
    Scenario("--compare, PAM on a page", "--compare", "in/c.pam", "in/other.pam", "--html", "out/p.html", prints=True,
             jobs=True, files=1, status=1),
    Scenario("--list", "--list", prints=True),
    Scenario("--show", "--show", "unsharp,disk:40", prints=True),
    Scenario("--help", "--help", prints=True),
    Scenario("--conformance", "--conformance", "in/vectors.jsonl", prints=True),
    Scenario("a name that is none", "blr", "in/a.png", "out/o.png", status=2),
]


WEBP = [
    Scenario("WebP", "blur", "in/c.webp", "out/o.webp", files=1),
    Scenario("lossless WebP, two threads", "--threads", "2", "--lossless", "blur", "in/a.png", "out/o.webp", files=1),
    Scenario("lossless WebP, read", "blur", "in/lossless.webp", "out/o.png", files=1),
    Scenario("WebP with alpha, two threads", "--threads", "2", "blur", "in/c.png", "out/o.webp", files=1),
]
FRAMES = [Scenario("a frame of a WebP", "--page", "3", "blur", "in/frames.webp", "out/o.png", files=1)]
READ_WEBP = (WEBP[0], WEBP[2], FRAMES[0])
TIFF = [
    Scenario("TIFF", "blur", "in/c.tif", "out/o.tif", files=1),
    Scenario("TIFF without compression", "--compression", "0", "blur", "in/a.png", "out/o.tif", files=1),
    Scenario("TIFF of several strips", "blur", "in/bands.png", "out/o.tif", files=1),
]
PAGES = [
    Scenario("a page of a TIFF", "--page", "2", "blur", "in/pages.tif", "out/o.png", files=1),
    Scenario("pages of a TIFF", "-q", "-j", "1", "--pages", "blur", "in/pages.tif", "-o", "out", "--format", "png", files=3,
             jobs=True),
    Scenario("a TIFF of pages", "--pages", "blur", "in/pages.tif", "out/o.tif", files=1),
]
# The names that Pillow has for libtiff's compressions, and the mode of a picture that each can have.
COMPRESSIONS = {"tiff_lzw": "RGB", "tiff_adobe_deflate": "RGB", "packbits": "RGB", "jpeg": "RGB", "lzma": "RGB", "zstd": "RGB",
                "group3": "1", "group4": "1", "raw": "P"}


def prepare(program):
    """The pictures."""
    os.makedirs("in/tree/sub")
    for index, name in enumerate(("a", "b")):
        faults.write(f"in/{name}.png", faults.picture(40 + index, 30, 3, 5 * index))
    faults.write("in/other.png", faults.picture(40, 30, 3, 77))
    faults.write("in/c.png", faults.picture(35, 31, 4))
    faults.write("in/grey.png", faults.picture(35, 31, 2))
    faults.write("in/large.png", faults.picture(300, 400, 3))
    shutil.copy("in/a.png", "in/tree/a.png")
    shutil.copy("in/b.png", "in/tree/sub/b.png")
    faults.write("in/bands.png", faults.picture(600, 1000, 3))
    faults.write("in/taps.txt", b"scale 16\n1 2 1\n2 4 2\n1 2 1\n")
    faults.write("in/list", b"in/tree/a.png\nin/b.png\n")
    with open(VECTORS, "rb") as file:
        faults.write("in/vectors.jsonl", b"".join(file.readlines()[:40:8]))
    with tarfile.open("in/t.tar", "w") as archive:
        archive.add("in/tree")
    run([program, "identity", "in/a.png", "in/d.jpg"])
    run([program, "identity", "in/c.png", "in/c.pam"])
    run([program, "blur", "in/c.png", "in/other.pam"])
    run([program, "identity", "in/bands.png", "in/bands.jpg"])


def attempt(program, library, scenario, kind, number):
    """Run a scenario. Returns how it ended, the files it left, and the number of calls."""
    for folder in ("out", "copy"):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
    for name in ("a", "b"):
        shutil.copy(f"in/{name}.png", f"copy/{name}.png")
    if os.path.exists("out.jsonl"):
        os.remove("out.jsonl")
    reader, writer = os.pipe()
    values = faults.environment(GPUCONV_FILTERS="in", LD_PRELOAD=library, GPUCONV_FAIL=f"{kind}:{number}",
                                GPUCONV_FAIL_COUNT=str(writer), MALLOC_PERTURB_="165")
    ended = run([program, *scenario.arguments], values, pass_fds=(writer,))
    os.close(writer)
    with os.fdopen(reader) as file:
        count = int(file.read() or 0)
    out = {name: re.sub(rb' time="[0-9.]+"', b"", data) for name, data in faults.tree("out").items()}
    return ended, {**out, **{"copy/" + name: data for name, data in faults.tree("copy").items()}}, count


def libwebp_may_crash():
    """Before 1.4, where it gets no memory for a table of a lossless picture's codes (SECURITY.md)."""
    name = ctypes.util.find_library("webp")
    return name is not None and ctypes.CDLL(name).WebPGetDecoderVersion() < 0x010400


def judge(scenario, what, want, want_files, ended, files):
    """Check a run in which a call failed. A retry can help."""
    before = {"copy/" + name: faults.read("in/" + name) for name in ("a.png", "b.png")}
    for name, data in files.items():
        # A report may say why a row failed, and an archive lacks what failed.
        reported = (b"memory" in data or name == "o.tar") and "memory" in "".join(ended.lines())
        if data not in (want_files.get(name), before.get(name)) and not reported:
            fail(f"{what}: {name} has {'other bytes' if name in want_files else 'no place there'}")
    if ended.status == want.status and ended.out == want.out and files == want_files:
        if "--report" in scenario.arguments:
            results = [json.loads(line)["status"] for line in faults.read("out.jsonl").splitlines()]
            check(results == ["done", "done"], f"{what}: the report says {results}")
        return  # the call was not needed, or the failure is as expected
    lines = ended.lines()
    if scenario.name == "--list" and ended.status == 0:  # with a warning about a filter that did not fit
        warnings = sum("warning: " in line and "memory" in line for line in lines)
        missing = [len(re.findall(rb"^  \S", out, re.M)) for out in (want.out, ended.out)]  # a line a filter
        check(warnings == missing[0] - missing[1] == len(lines), f"{what}: of {missing} filters, said {lines[:3]}")
    elif lines and lines[0].startswith("Fatal Internal Error in libarchive: "):
        pass  # it ends the process itself
    elif scenario in READ_WEBP and ended.status in (-6, -11) and libwebp_may_crash():
        pass
    elif not lines or not all(line.startswith("gpuconv: ") for line in lines if line):
        fail(f"{what}: exit status {ended.status}, said {lines}")
    elif ended.status not in (75, scenario.status):
        fail(f"{what}: exit status {ended.status}, said {lines}")
    elif len(lines) > 1 and not scenario.jobs:
        fail(f"{what}: exit status {ended.status}, said {lines}")
    elif scenario.prints and not want.out.startswith(ended.out):
        fail(f"{what}: printed something else")
    elif not scenario.jobs and not scenario.prints and files != before:
        fail(f"{what}: left an output")


def refuse(program, library, scenario, kind):
    want, want_files, count = attempt(program, library, scenario, kind, 0)
    if not check(want.status == scenario.status and len(want_files) == scenario.files + 2,
                 f"{scenario.name}: exit status {want.status}, said {want.lines()}, left {list(want_files)}"):
        return 0
    step = 1 if FULL or count <= MOST else count / MOST
    numbers = [1 + int(i * step) for i in range(int(count / step))]
    for number in [str(n) + end for n in numbers for end in (("", "+") if FULL else ("",))]:
        ended, files, _ = attempt(program, library, scenario, kind, number)
        judge(scenario, f"{scenario.name}, {kind} {number} of {count}", want, want_files, ended, files)
    return len(numbers)


def test(program):
    library = faults.loadable(os.path.join(before, sys.argv[2]))
    prepare(program)
    if has_codec(program, "libwebp"):
        run([program, "identity", "in/c.png", "in/c.webp"])
        run([program, "--lossless", "identity", "in/c.png", "in/lossless.webp"])
        SCENARIOS.extend(WEBP)
        if Image:
            frames = [Image.open("in/c.png").rotate(90 * i) for i in range(3)]
            frames[0].save("in/frames.webp", save_all=True, append_images=frames[1:], lossless=True)
            SCENARIOS.extend(FRAMES)
    if run([program, "--tar", "blur", "in/t.tar", "out.tar"]).status == 0:  # with libarchive
        SCENARIOS.append(Scenario("--tar", "-q", "--tar", "blur", "in/t.tar", "out/o.tar", files=1, jobs=True))
    if has_codec(program, "libtiff"):
        run([program, "identity", "in/c.png", "in/c.tif"])
        SCENARIOS.extend(TIFF)
        if Image:
            pages = [Image.open(f"in/{name}.png") for name in ("a", "b", "c")]
            pages[0].save("in/pages.tif", save_all=True, append_images=pages[1:], compression="tiff_lzw")
            SCENARIOS.extend(PAGES)
        for name, mode in COMPRESSIONS.items() if Image else ():
            Image.open("in/bands.png").resize((120, 90)).convert(mode).save(f"in/{name}.tif", compression=name)
            SCENARIOS.append(Scenario("TIFF, " + name, "blur", f"in/{name}.tif", "out/o.png", files=1))
    if Image and os.path.exists(PROFILE):
        Image.open("in/grey.png").convert("CMYK").save("in/cmyk.jpg", icc_profile=faults.read(PROFILE))
        if run([program, "to-srgb", "in/cmyk.jpg", "out.png"]).status == 0:  # with libjpeg-turbo and littleCMS
            SCENARIOS.append(Scenario("profile of tables", "to-srgb", "in/cmyk.jpg", "out/o.png", files=1))
    for scenario in SCENARIOS:
        if len(sys.argv) > 3 and scenario.name not in sys.argv[3:]:
            continue
        tried = [refuse(program, library, scenario, kind) for kind in ("memory", "thread")]
        check(tried[0] > 0, f"{scenario.name}: no call for memory was counted")
        print(f"{scenario.name}: {tried[0]} calls for memory, {tried[1]} for threads")


before = os.getcwd()
faults.main([test])
