#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The digests of --digest are those of the lines in the manual: digests.py GPUCONV ROOT.

A reader of PNG that shares nothing with gpuconv gives these lines the samples. With --filter, the digest is that of the
PNG that a filter writes. Names survive a list, and a changed picture does not."""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import run, temporary_folder  # noqa: E402
from read_png import read_plain  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
TURNED = b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"  # EXIF: turn it by 90 degrees


def listed(*arguments):
    """The digests and names of a list."""
    return [tuple(line.split("  ", 1)) for line in run(PROGRAM, "--digest", *arguments).stdout.splitlines()]


def plain(digest, path):
    width, height, channels, rows, bits = read_plain(path)
    samples = b"".join(sample.to_bytes(bits // 8, "big") for row in rows for sample in row)
    return digest(width, height, channels, bits, samples), path


def main():
    manual = pathlib.Path(sys.argv[2], "docs", "manual.md").read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"<!-- digest -->\n```python\n(.*?)```", manual, re.S).group(1), names)
    digest = names["digest"]
    paths = []
    for channels in range(1, 5):
        for bits in (8, 16):
            for width, height in ((1, 1), (61, 67)):
                size = width * channels * bits // 8
                samples = bytes((i * i * 7 + i // 5) % 256 for i in range(size * height))
                paths.append(f"{channels}-{bits}-{width}.png")
                more = chunk(b"eXIf", TURNED) if channels == 3 else b""
                pathlib.Path(paths[-1]).write_bytes(png(width, height, channels, bits, unfiltered(samples, size),
                                                        chunks=more))
    expected = [plain(digest, path) for path in paths]
    assert listed(*paths) == expected
    assert len({line for line, _ in expected}) == len(paths)
    for jobs in ("1", "3", "16"):  # in the order of the names, whatever is done first
        assert listed(*reversed(paths), "-j", jobs) == expected[::-1]

    # The manual's command lines.
    os.makedirs("bin")
    os.symlink(PROGRAM, "bin/gpuconv")
    os.makedirs("photos")
    for path in ("photos/a.png", "photo.png"):
        os.link(paths[5], path)
    scripts = re.findall(r"<!-- digest -->\n```sh\n(.*?)```", manual, re.S)
    assert len(scripts) == 2
    for script in scripts:
        done = subprocess.run(["sh", "-ec", script], env=dict(os.environ, PATH="bin:" + os.environ["PATH"]),
                              capture_output=True, text=True)
        assert done.returncode == 0 and "photos/a.png: OK" in done.stdout, done

    # The format and the metadata do not count.
    run(PROGRAM, "identity", "--alpha", "keep", "1-16-61.png", "grey.pgm")
    run(PROGRAM, "identity", "--alpha", "keep", "4-8-61.png", "colours.pam")
    assert [line for line, _ in listed("grey.pgm", "colours.pam")] == [
        plain(digest, path)[0] for path in ("1-16-61.png", "4-8-61.png")]

    # What a filter makes: also turned upright, with transparency, and with other options.
    for options in ([], ["--linear"], ["--border", "wrap", "--depth", "16"], ["--alpha", "filter", "--no-orient"],
                    ["--variant", "reference"], ["--threads", "3"]):
        for path in paths:
            run(PROGRAM, *options, "sharpen,blur", path, "out.png")
            got = listed("--filter", "sharpen,blur", *options, path)
            assert got == [(plain(digest, "out.png")[0], path)], (options, path)

    # Any name survives a list, and sha256sum writes names with a backslash or a line end in the same way.
    strange = ["b\\a\nc.png", "line\r.png", "\x1b[31m.png", "\udcff.png", " two  blanks.png", "\\n.png", "tab\t.png"]
    for name in strange:
        os.link(paths[0], name)
    lines = subprocess.run([PROGRAM, "--digest", *strange], capture_output=True, check=True).stdout
    pathlib.Path("list").write_bytes(lines)
    assert all(byte >= 32 and byte < 127 or byte == 10 for byte in lines), lines
    assert run(PROGRAM, "--check", "list").stdout.count(": OK\n") == len(strange)
    theirs = subprocess.run(["sha256sum", *strange[:1]], capture_output=True, check=True).stdout
    assert theirs.split(b"  ")[1] == lines.split(b"\n")[0].split(b"  ")[1] + b"\n"
    # Capital digits, an asterisk and the line ends of Windows are fine, as for sha256sum.
    line = expected[0][0].upper() + " *" + paths[0] + "\r\n"
    pathlib.Path("list").write_text(line * 2, newline="")
    assert run(PROGRAM, "--check", "list").stdout == f"{paths[0]}: OK\n" * 2
    pathlib.Path("list").write_text(f"{expected[0][0]}  photos\n")
    assert "is a folder" in run(PROGRAM, "--check", "list", status=1).stderr

    # Every file of a long list is checked, and the wrong ones are named in their order.
    many = [f"{i}.png" for i in range(500)]
    for name in many:
        os.link(paths[3], name)
    pathlib.Path("list").write_text(run(PROGRAM, "--digest", *many).stdout)
    for name in ("17.png", "400.png"):
        os.unlink(name)
        os.link(paths[1], name)
    os.unlink("99.png")
    done = run(PROGRAM, "--check", "list", "--quiet", status=1)
    assert done.stdout.splitlines() == ["17.png: FAILED", "99.png: FAILED open or read", "400.png: FAILED"]
    assert "99.png: cannot be read" in done.stderr and "3 of 500 files failed" in done.stderr


with temporary_folder():
    main()
