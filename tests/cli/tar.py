#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Archives by --tar: tar.py GPUCONV [--any-memory].

Python's tarfile, GNU tar and bsdtar make archives in all their formats. What is no image must go through byte by byte,
and images must be those that gpuconv makes of files. Archives are cut, damaged, too long to be held, and cannot be
written."""
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import peak, run_tests, skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
RECORD = 10240


def image(seed=1, width=23, height=11):
    return png(width, height, 3, 8, unfiltered(random.Random(seed).randbytes(width * height * 3), width * 3))


def convert(*arguments, data=None, status=0, output="-"):
    """The archive that --tar makes of DATA, and the messages."""
    done = subprocess.run([PROGRAM, "--tar", *arguments, "-", output], input=data, capture_output=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout, done.stderr.decode(errors="surrogateescape")


def filtered(data, form):
    """What gpuconv makes of the file."""
    return subprocess.run([PROGRAM, "sharpen", "-", "-", "--format", form], input=data, capture_output=True, check=True).stdout


def member(name, kind=tarfile.REGTYPE, size=0, link="", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    info.mtime, info.mode, info.uid, info.gid, info.uname, info.gname = 1234567890, 0o640, 1234, 5678, "anna", "users"
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def make(members, form=tarfile.PAX_FORMAT, **options):
    """An archive of (TarInfo, bytes)."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=form, errors="surrogateescape", **options) as archive:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(data))
    return memory.getvalue()


def files(members):
    return [(member(name), data) for name, data in members.items()]


def contents(data):
    """The members: their fields, and their bytes."""
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as archive:
        return [(info, archive.extractfile(info).read() if info.isreg() else b"") for info in archive]


def names(data):
    return [info.name for info, _ in contents(data)]


def fields(info, size=True):
    return (info.name, info.type if info.type != tarfile.AREGTYPE else tarfile.REGTYPE, info.mode, info.uid, info.gid, info.uname, info.gname, info.linkname, info.devmajor,
            float(info.mtime), info.size if size else None)


def is_image(info):
    return info.isreg() and info.name.endswith((".png", ".jpg")) and not os.path.basename(info.name).startswith(".")


def check(before, *options):
    """Filter an archive: images change, and nothing else."""
    after, _ = convert(*options, "sharpen", data=before)
    assert len(after) % RECORD == 0
    old, new = contents(before), contents(after)
    assert len(old) == len(new)
    for (a, data), (b, result) in zip(old, new):
        if is_image(a):
            assert fields(a, False) == fields(b, False), (fields(a), fields(b))
            assert result == filtered(data, "png"), a.name
        else:
            assert fields(a) == fields(b), (fields(a), fields(b))
            assert a.pax_headers == b.pax_headers and data == result, a.name
            # All of its blocks are the same bytes.
            start, end = a.offset, a.offset_data + (0 if a.sparse else (a.size + 511) // 512 * 512)
            assert before[start:end] == after[b.offset:b.offset + end - start], a.name
    return after


def test_built():
    done = subprocess.run([PROGRAM, "--tar", "blur", "/dev/null", "-"], capture_output=True, text=True)
    if "built without libarchive" in done.stderr:
        skip("this build has no libarchive")
    assert done.returncode == 1 and done.stderr == "gpuconv: /dev/null: is empty (0 bytes); give a tar archive\n"


def test_formats():
    """Folders, links, devices, side-cars, long names and names in any script go through, in all formats."""
    long = "d" * 90 + "/" + "e" * 80
    for word, form in FORMATS.items():
        members = [(member("photos", tarfile.DIRTYPE), b"")]
        members += files({"photos/a.png": image(1), "photos/a.json": b'{"label": 3}', "photos/b.png": image(2), "photos/b.cls": b"7",
                          "photos/empty": b"", "photos/.c.png": b"hidden", long + "/d.png": image(3), long + "/d.txt": b"x" * 1000})
        members += [(member("photos/link", tarfile.SYMTYPE, link="a.png"), b""),
                    (member("photos/hard.png", tarfile.LNKTYPE, link="photos/a.png"), b""),
                    (member("fifo", tarfile.FIFOTYPE), b""), (member("../out.png"), image(5)), (member("/etc/abs.txt"), b"abs")]
        if word != "ustar":
            members += files({"\xe4/\u6f22.png": image(6), "a\u0308.png": image(7), "a\u0308.txt": b"not composed", "\udcff.png": image(8),
                              "\udcff.txt": b"no UTF-8", "f" * 300 + ".png": image(9), "f" * 300 + ".txt": b"long"})
            members += [(member("symlink", tarfile.SYMTYPE, link="g" * 200), b""), (member("big.png", uid=1 << 40, mtime=-5), image(10))]
        if word == "pax":
            more = {"comment": "mine", "VENDOR.key": "value", "SCHILY.xattr.user.k": "v"}
            members += [(member("xattr.txt", pax_headers=more, mtime=1.25), b"1"), (member("late.png", mtime=1.5), image(11))]
        check(make(members, form, pax_headers={"comment": "of all"} if word == "pax" else {}))
    # Without an image, the archive is the same.
    plain = make([(info, data) for info, data in members if not is_image(info)], pax_headers={"comment": "of all"})
    assert convert("sharpen", data=plain)[0] == plain
    # A header for all members goes through, also where an image follows it.
    assert tarfile.open(fileobj=io.BytesIO(convert("sharpen", data=make(files({"a.png": image()}), pax_headers={"comment": "of all"}))[0])
                        ).pax_headers == {"comment": "of all"}


def test_programs():
    """Archives of GNU tar and bsdtar, which both read the results without a warning."""
    os.makedirs("in/folder")
    for name, data in {"a.png": image(1), "folder/\xe4.png": image(2), "a.txt": b"label", "folder/" + "n" * 120 + ".png": image(3)}.items():
        with open("in/" + name, "wb") as file:
            file.write(data)
    os.symlink("a.png", "in/s.png")
    os.link("in/a.txt", "in/hard.txt")
    os.utime("in/a.png", ns=(0, 1_000_000_000_123_456_789))
    with open("in/sparse.bin", "wb") as file:
        file.truncate(10_000_000)
        file.seek(5_000_000)
        file.write(b"middle")
    made = 0
    for program, forms in (("tar", ("v7", "ustar", "gnu", "oldgnu", "posix")), ("bsdtar", ("ustar", "pax", "gnutar", "v7"))):
        if shutil.which(program) is None:
            continue
        for form in forms:
            more = ["--sparse"] if program == "tar" and form in ("gnu", "posix") else []
            subprocess.run([program, f"--format={form}", *more, "-cf", "in.tar", "-C", "in", "."], capture_output=True)
            with open("in.tar", "rb") as file:
                after = check(file.read())
            with open("out.tar", "wb") as file:
                file.write(after)
            for reader in filter(shutil.which, ("tar", "bsdtar")):
                done = subprocess.run([reader, "-tvf", "out.tar"], capture_output=True, text=True)
                assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == len(contents(after)), done
            made += 1
    assert made >= 5, "tar is missing"


def test_names():
    """With --format and --suffix, images get other names, and links to them follow."""
    before = make(files({"a.png": image(1), "d/b.PNG": image(2), "c.txt": b"c"}) +
                  [(member("l.png", tarfile.SYMTYPE, link="d/b.PNG"), b""), (member("h.png", tarfile.LNKTYPE, link="a.png"), b""),
                   (member("s", tarfile.SYMTYPE, link="c.txt"), b"")])
    after, _ = convert("--format", "ppm", "--suffix", "-x", "sharpen", data=before)
    assert [(info.name, info.linkname) for info, _ in contents(after)] == [
        ("a-x.ppm", ""), ("d/b-x.ppm", ""), ("c.txt", ""), ("l-x.ppm", "d/b-x.ppm"), ("h-x.ppm", "a-x.ppm"), ("s", "c.txt")]
    assert contents(after)[0][1] == filtered(image(1), "ppm")
    # The second one of two images that would get one name fails. A name that the archive has twice stays so.
    twice = make(files({"a.png": image(1), "a.jpg": image(2), "b.png": image(3)}) + files({"b.png": image(4)}))
    after, messages = convert("--format", "ppm", "sharpen", data=twice, status=1)
    assert names(after) == ["a.ppm", "b.ppm", "b.ppm"] and "a.jpg: would get the name of another member" in messages
    assert names(convert("sharpen", data=twice)[0]) == names(twice)


def test_equal_hashes():
    """Names of which FNV-1a makes the same 64 bits are different names."""
    one, other = "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"
    after, _ = convert("--format", "ppm", "sharpen", data=make(files({one + ".png": image(1), other + ".PNG": image(2)})))
    assert names(after) == [one + ".ppm", other + ".ppm"]
    before = make(files({one + ".png": b"no image", other + ".png": image()}) + [(member("h", tarfile.LNKTYPE, link=other + ".png"), b"")])
    assert names(convert("sharpen", data=before, status=1)[0]) == [other + ".png", "h"]


def test_failures():
    """A member that fails is left out, with the hard links to it, or kept."""
    before = make(files({"a.png": image(1), "bad.png": b"no image", "void.png": b"", "c.txt": b"c"}) +
                  [(member("h.png", tarfile.LNKTYPE, link="bad.png"), b""), (member("h2", tarfile.LNKTYPE, link="h.png"), b"")])
    after, messages = convert("--report", "r", "sharpen", data=before, status=1)
    assert names(after) == ["a.png", "c.txt"]
    for words in ("bad.png: is not a PNG", "void.png: is empty", "h.png: is a hard link to bad.png, which was left out",
                  "h2: is a hard link to h.png", "1 of 6 files done, 1 skipped", "4 of 6 files failed"):
        assert words in messages, messages
    lines = [json.loads(line) for line in open("r", encoding="utf-8")]
    assert [(line["input"], line["status"]) for line in lines] == [
        ("a.png", "done"), ("bad.png", "failed"), ("void.png", "failed"), ("c.txt", "skipped"), ("h.png", "failed"), ("h2", "failed")]
    assert lines[0]["output"] == "a.png" and lines[0]["width"] == 23 and lines[1]["retry"] is False
    after, messages = convert("--keep-failed", "--format", "jpeg", "sharpen", data=before, status=1)
    assert names(after) == ["a.jpg", "bad.png", "void.png", "c.txt", "h.jpg", "h2"] and contents(after)[1][1] == b"no image"
    after, _ = convert("--images-only", "sharpen", data=before, status=1)
    assert names(after) == ["a.png"]
    after, messages = convert("-q", "--fail-fast", "-j", "1", "sharpen", data=before, status=1)
    assert names(after) == ["a.png"], names(after)


def test_cut():
    """A cut archive is an error. What was done before is whole."""
    before = make(files({"a.png": image(1), "n" * 120 + ".png": image(2), "c.txt": b"c" * 600, "d.png": image(3)}))
    all_names, count = names(before), 0
    ends = {info.offset_data + (info.size + 511) // 512 * 512 for info, _ in contents(before)}
    places = sorted({*range(1, len(before) - RECORD + 3000, 97), *ends, *(end + 1 for end in ends)})
    for place in places:
        if place >= max(ends) + 512:
            continue
        after, messages = convert("identity", data=before[:place], status=1)
        whole = sum(end <= place for end in sorted(ends))
        assert (names(after) if after else []) == all_names[:whole], place
        assert re.search(r"standard input: (is cut or damaged|has no end mark|is not a tar archive)", messages), messages
        count += 1
    assert count > 30
    with open("old.tar", "wb") as file:
        file.write(b"old")
    convert("identity", data=b"no archive" * 1000, status=1, output="old.tar")
    assert open("old.tar", "rb").read() == b"old"
    assert os.listdir() == ["old.tar"]


def test_headers():
    """An archive with a damaged header, or with more special headers than libarchive reads, is an error at that place.
    OUTPUT gets the members before it, or stays as it was if there are none."""
    record = b"18 comment=abcdef\n"
    special = member("x", b"x", len(record)).tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")
    first, rest = make(files({"a.png": image(1)}))[:-RECORD], make(files({"b.png": image(2), "c.png": image(3)}))
    damaged = bytearray(rest)
    damaged[100] ^= 1
    for bad, words in ((special * 33 + rest, "more special headers"), (special * 70 + rest, "more special headers"),
                       (bytes(damaged), "is cut or damaged")):
        for before in (b"", first):
            with open("old.tar", "wb") as file:
                file.write(b"old")
            messages = convert("identity", data=before + bad, status=1, output="old.tar")[1]
            assert (words if before or bad[0:1] == b"x" else "is not a tar archive") in messages and "INTERNAL" not in messages, messages
            with open("old.tar", "rb") as file:
                after = file.read()
            assert (names(after) == ["a.png"]) if before else after == b"old", (len(before), words)
    assert names(convert("identity", data=special * 20 + rest)[0]) == ["b.png", "c.png"]


def test_links():
    """The messages tell links from what is no image."""
    before = make(files({"a.png": image(1), "c.txt": b"c"}) + [(member("h.png", tarfile.LNKTYPE, link="a.png"), b""),
                                                              (member("s.png", tarfile.SYMTYPE, link="a.png"), b"")])
    after, messages = convert("-v", "sharpen", data=before)
    assert [info.linkname for info, _ in contents(after)] == ["", "", "a.png", "a.png"]
    for words in ("c.txt: is not an image", "h.png: is a link", "s.png: is a link", "3 skipped (links or other files: unchanged)"):
        assert words in messages, messages


def test_several():
    """An archive that was appended to another counts, and zeros at the end do not."""
    first, second = make(files({"a.png": image(1)})), make(files({"b.png": image(2), "b.txt": b"b"}))
    assert names(convert("sharpen", data=first + second + bytes(3 << 20))[0]) == ["a.png", "b.png", "b.txt"]
    assert names(convert("sharpen", data=bytes(RECORD))[0]) == []


def stream(pieces, *arguments):
    """Give the pieces to a run, and measure it. Returns its exit status, its peak memory and its output's size."""
    read, write = os.pipe()
    def feed():
        with open(write, "wb", buffering=0) as pipe:
            for piece in pieces:
                try:
                    pipe.write(piece)
                except BrokenPipeError:
                    return
    thread = threading.Thread(target=feed)
    saved = os.dup(0)
    os.dup2(read, 0)
    os.close(read)
    thread.start()
    status, memory, _ = peak([PROGRAM, "--tar", *arguments, "identity", "-", "out.tar"])
    os.dup2(saved, 0)
    os.close(saved)
    thread.join()
    return status, memory, os.path.getsize("out.tar") if os.path.exists("out.tar") else 0


def test_memory():
    """Streams of any length need no more memory: a large member, many members, zeros, and lies about them."""
    pad = bytes(1 << 20)
    def large(name, megabytes):
        yield member(name, size=megabytes << 20).tobuf(tarfile.GNU_FORMAT)
        for _ in range(megabytes):
            yield pad
    small = make(files({"a.png": image(1), "a.txt": b"a"}))
    small = small[:contents(small)[-1][0].offset_data + 512]
    end = [bytes(1024)]
    bound = stream([small, *end], "-j2")[1] + (40 << 20) if sys.argv[2:] == [] else 1 << 40
    for pieces, size in (((small, *large("zeros.bin", 300), small, *end), 300 << 20), ([small * 500] * 20 + end, 1 << 20),
                         ([small] + [pad] * 300 + end, 1 << 10)):
        status, memory, written = stream(pieces, "-j2")
        assert status == 0 and memory < bound and written > size, (status, memory, bound, written)
    # An image that is too large is reported, and not held.
    status, memory, _ = stream((small, *large("large.png", 80), small, *end), "-j2", "--memory", "40M")
    assert status == 1 and names(open("out.tar", "rb").read()) == ["a.png", "a.txt"] * 2
    status, memory, written = stream((small, *large("large.png", 80), small, *end), "-j2", "--memory", "40M", "--keep-failed")
    assert status == 1 and names(open("out.tar", "rb").read()) == ["a.png", "a.txt", "large.png", "a.png", "a.txt"]
    # If the archive is cut in a member that is copied, there is no whole archive to keep.
    os.remove("out.tar")
    status, _, _ = stream([small, member("zeros.bin", size=1 << 40).tobuf(tarfile.GNU_FORMAT), pad, pad], "-j2")
    assert status == 1 and os.listdir() == []


def test_damage():
    """Damaged archives end with an exit status, never with a signal, and archives that are called whole are."""
    rand = random.Random(1)
    base = [make(files({"a.png": image(1), "n" * 90 + "/" + "n" * 90: b"text" * 200, "b.ppm": b"P6 1 1 255\nabc"}), form) for form in FORMATS.values()]
    if shutil.which("tar"):
        with open("sparse.png", "wb") as file:
            file.truncate(100_000)
        base.append(subprocess.run(["tar", "-S", "--format=posix", "-cf", "-", "sparse.png"], capture_output=True).stdout)
        after, messages = convert("identity", data=base[-1], status=1)
        assert names(after) == [] and "sparse.png: is stored as a sparse file" in messages
        assert convert("--keep-failed", "identity", data=base[-1], status=1)[0] == base[-1]
    for number in range(240):
        data = bytearray(base[number % len(base)])
        for _ in range(rand.randint(1, 8)):
            data[rand.choice((rand.randrange(len(data)), rand.randrange(2048)))] = rand.choice((0, 32, 48, 55, 255, rand.randrange(256)))
        for at in range(0, len(data) - 511, 512):  # right check sums, so that the damage counts
            if data[at + 257:at + 262] == b"ustar":
                data[at + 148:at + 156] = b"%06o\0 " % (sum(data[at:at + 148]) + 8 * 32 + sum(data[at + 156:at + 512]))
        done = subprocess.run([PROGRAM, "--tar", "-q", "-j2", "identity", "-", "-"], input=data, capture_output=True, timeout=60)
        assert done.returncode in (0, 1), (number, done)
        if done.returncode == 0:
            with tarfile.open(fileobj=io.BytesIO(done.stdout), errors="surrogateescape", ignore_zeros=True) as archive:
                archive.getmembers()


def test_faults():
    """A full disk, a reader that has gone, and a signal leave no archive."""
    before = make(files({f"{i}.png": image(i, 200, 200) for i in range(20)}))
    with open("in.tar", "wb") as file:
        file.write(before)
    done = subprocess.run([PROGRAM, "--tar", "blur", "in.tar", "/dev/full"], capture_output=True, text=True)
    assert done.returncode == 75 and "/dev/full: cannot be written: No space left on device" in done.stderr, done
    assert done.stderr.count("No space") == 1, done.stderr
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    done = subprocess.run([PROGRAM, "--tar", "blur", "in.tar", "-"], stdout=reader.stdin, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b""), done
    with open("old.tar", "wb") as file:
        file.write(b"old")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([PROGRAM, "--tar", "blur", "-", "old.tar"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(before[:len(before) // 2])
        process.stdin.flush()
        process.send_signal(number)
        messages = process.stderr.read().decode()
        assert process.wait() == 128 + number and "interrupted" in messages, (process.returncode, messages)
        assert open("old.tar", "rb").read() == b"old" and sorted(os.listdir()) == ["in.tar", "old.tar"]
    done = subprocess.run([PROGRAM, "--tar", "-v", "blur", "in.tar", "old.tar"], capture_output=True, text=True)
    assert done.returncode == 0 and len(names(open("old.tar", "rb").read())) == 20 and done.stderr.count("done ") == 20


def test_wrong():
    """What cannot be meant is said."""
    with open("in.tar", "wb") as file:
        file.write(make(files({"a.png": image()})))
    for arguments, words in (
            (("blur", "in.tar", "out.tar.gz"), "| zstd > OUTPUT"), (("blur", "in.tar", "out.png"), "has the name of an image"),
            (("blur", "in.tar"), "--tar takes a FILTER"), (("blur", "in.tar", "o.tar", "-o", "d"), "--output is for files"),
            (("blur", "in.tar", "o.tar", "--shard", "1/2"), "--shard is for files"), (("blur", "in.tar", "./in.tar"), "./in.tar is the same file as in.tar"),
            (("blur", "in.tar", "-", "--report", "-"), "both go to standard output"),
            (("blur", "in.tar", "o.tar", "--report", "in.tar"), "is the same file")):
        done = subprocess.run([PROGRAM, "--tar", *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and words in done.stderr and "--in-place" not in done.stderr, (arguments, done)
    done = subprocess.run([PROGRAM, "blur", "in.tar", "out.tar"], capture_output=True, text=True)
    assert done.returncode == 2 and "or --tar for an archive" in done.stderr, done
    for option in ("--images-only", "--keep-failed"):
        done = subprocess.run([PROGRAM, option, "blur", "a.png", "b.png"], capture_output=True, text=True)
        assert done.returncode == 2 and f"{option} needs --tar" in done.stderr
    for magic, tool in ((b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh9", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")):
        assert f"{tool} -dc < FILE | gpuconv --tar FILTER - OUTPUT" in convert("blur", data=magic + bytes(600), status=1)[1]
    assert os.listdir() == ["in.tar"]


run_tests(globals())
