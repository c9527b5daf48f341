#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Full disks, read-only or missing folders, links, pipes and unusual names: files.py GPUCONV [--quick]. --quick has
less to compute while another program changes a file, for sanitizers.

The disks are real if file systems can be mounted, as root or in a user namespace."""
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import faults
from faults import check, check_failed, fail, picture, read, run, tree, write
from harness import has_codec
from write_png import chunk, png

LIMIT = 1 << 14  # bytes of the full disk
SLOW = "disk:9,disk:9" if "--quick" in sys.argv else "disk:30,disk:30"  # half a second and more


def own_namespace():
    """Run this test again with the right to mount; skip it if there is no such right."""
    for flags in (["-m"], ["-rm"]):
        command = ["unshare", *flags, "sh", "-c", "mount -t tmpfs -o size=16k none /mnt"]
        try:
            if run(command).status == 0:
                os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv, "mounting"])
        except FileNotFoundError:
            break
    print("not tested: full and read-only disks, because no file system can be mounted")


def mount(folder, options):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)


def fill(path):
    """Fill the disk with one file."""
    with open(path, "wb") as file:
        try:
            while True:
                os.write(file.fileno(), b"x" * 4096)
        except OSError:
            pass


def remount_read_only(folder):
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)


def counted(ended, failed, count, what, reason):
    """FAILED of the COUNT files of a batch failed: one sentence each, then a summary with the counts."""
    lines = ended.lines()
    check(ended.status == 1 and sum(reason in line for line in lines) == failed and len(lines) == failed + 2 and
          lines[-1] == f"gpuconv: {failed} of {count} files failed",
          f"{what}: exit status {ended.status}, said {lines}")


def test_full_disk(program):
    """A file that does not fit fails and ends its batch; originals stay."""
    mount("disk", f"size={LIMIT}")
    os.mkdir("in")
    write("in/large.png", picture(200, 200, 3))
    write("in/small.png", picture(9, 7, 3))
    run([program, "blur", "in/large.png", "large.png"])
    run([program, "blur", "in/small.png", "small.png"])
    check(os.path.getsize("large.png") > LIMIT, "the picture is smaller than the disk")
    full = "cannot be written: No space left on device; free some space or choose another folder"

    check_failed(run([program, "blur", "in/large.png", "disk/o.png"]), "full disk", full)
    check(tree("disk") == {}, f"full disk: left {list(tree('disk'))}")
    write("disk/o.png", b"old")
    check_failed(run([program, "blur", "in/large.png", "disk/o.png"]), "full disk, old output", full)
    check(tree("disk") == {"o.png": b"old"}, "full disk: the old output changed")
    os.remove("disk/o.png")

    ended = run([program, "-j1", "blur", "in", "-o", "disk"])  # the longest job begins first
    check(ended.status == 75 and full in ended.lines()[0] and "1 of 2 files failed and 1 did not begin" in
          ended.lines()[-1] and tree("disk") == {}, f"full disk, batch: {ended.lines()}, {list(tree('disk'))}")

    # In place: the original fills most of the disk, so its result, which is first written beside it, does not fit.
    write("disk/a.png", picture(60, 50, 3))
    fill("disk/filler")
    before = tree("disk")
    check_failed(run([program, "--in-place", "blur", "disk/a.png"]), "full disk, in place", full)
    check(tree("disk") == before, "full disk, in place: the original changed or something was left")

    # The report is cut, with one sentence; the work continues; the next report starts on a new line.
    os.remove("disk/filler")
    write("disk/report", b"x" * (4096 - 101) + b"\n")
    fill("disk/filler")
    ended = run([program, "-q", "blur", "in", "-o", "out", "--report", "disk/report"])
    check_failed(ended, "full disk, report", "the report cannot be written")
    check(sorted(tree("out")) == ["large.png", "small.png"], "full disk, report: the work did not go on")
    os.remove("disk/filler")
    run([program, "-q", "blur", "in", "-o", "out", "--report", "disk/report"])
    lines = read("disk/report").split(b"\n")
    check([json.loads(line)["status"] for line in lines[2:4]] == ["done", "done"], f"full disk, next report: {lines}")
    subprocess.run(["umount", "disk"], check=True)


def test_read_only(program):
    mount("disk", "size=1m")
    write("disk/a.png", picture(9, 7, 3))
    os.mkdir("disk/folder")
    os.mkdir("in")
    write("in/a.png", picture(9, 7, 3))
    remount_read_only("disk")
    why = "cannot be written: Read-only file system; choose a file and a folder that you may write to"
    check_failed(run([program, "blur", "in/a.png", "disk/o.png"]), "read-only disk", why)
    check_failed(run([program, "blur", "in/a.png", "disk/a.png"]), "read-only disk, old output", why)
    check_failed(run([program, "--in-place", "blur", "disk/a.png"]), "read-only disk, in place", why)
    check_failed(run([program, "blur", "in/a.png", "-o", "disk/folder"]), "read-only disk, batch", why)
    check_failed(run([program, "blur", "in/a.png", "-o", "disk/new"]), "read-only disk, new folder", "Read-only")
    check_failed(run([program, "blur", "in/a.png", "-o", "out", "--report", "disk/r"]), "read-only disk, report",
                 "Read-only file system")
    subprocess.run(["umount", "disk"], check=True)
    mount("bound", "size=1m")
    write("bound/a.png", picture(9, 7, 3))
    subprocess.run(["mount", "--bind", "-o", "ro", "bound/a.png", "bound/a.png"], check=False)
    subprocess.run(["mount", "-o", "remount,bind,ro", "bound/a.png"], check=False)
    before = read("bound/a.png")
    ended = run([program, "--in-place", "blur", "bound/a.png"])  # a mount point cannot be replaced
    check_failed(ended, "read-only file that is mounted")
    check(tree("bound") == {"a.png": before}, "read-only file that is mounted: changed, or something was left")
    subprocess.run("umount bound/a.png; umount bound", shell=True, check=True)


def as_another(program):
    """The command that runs another one as a user who is subject to permissions, or None."""
    if os.getuid() != 0:
        return []
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try:
        return other if run([*other, program, "--version"]).status == 0 else None
    except FileNotFoundError:
        return None


def test_permissions(program):
    other = as_another(program)
    if other is None:
        print("not tested: permissions, because root may write everywhere and cannot be another user here")
        return
    os.chmod(".", 0o777)
    os.mkdir("closed")
    os.mkdir("open")
    os.chmod("open", 0o777)
    write("in.png", picture(9, 7, 3))
    write("closed/a.png", picture(9, 7, 3))
    write("open/a.png", picture(9, 7, 3))
    write("open/secret.png", picture(9, 7, 3))
    os.chmod("open/a.png", 0o444)
    os.chmod("open/secret.png", 0)
    os.chmod("closed", 0o555)
    before = tree("closed"), read("open/a.png")
    why = "Permission denied; choose a file and a folder that you may write to"
    command = [*other, program]
    check_failed(run([*command, "blur", "in.png", "closed/o.png"]), "closed folder", why)
    check_failed(run([*command, "blur", "in.png", "-o", "closed"]), "closed folder, batch", why)
    check_failed(run([*command, "blur", "in.png", "-o", "closed/new"]), "closed folder, new folder",
                 "Permission denied")
    check_failed(run([*command, "--in-place", "blur", "closed/a.png"]), "closed folder, in place", why)
    check_failed(run([*command, "blur", "in.png", "open/a.png"]), "read-only file", why)
    check_failed(run([*command, "--in-place", "blur", "open/a.png"]), "read-only file, in place", why)
    check_failed(run([*command, "blur", "open/secret.png", "open/o.png"]), "secret file",
                 "open/secret.png: cannot be read")
    ended = run([*command, "-q", "blur", "open", "-o", "out"])  # the readable files are done
    check(ended.status == 1 and sorted(tree("out")) == ["a.png"], f"secret file, batch: {ended.lines()}")
    os.chmod("open/secret.png", 0o600)
    check((tree("closed"), read("open/a.png")) == before and sorted(tree("open")) == ["a.png", "secret.png"],
          "permissions: something was changed or left")


def test_limit(program):
    """A full disk by ulimit -f, which needs no mount."""
    write("in.png", picture(200, 200, 3))
    write("o.png", b"old")
    limited = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", program]
    why = "cannot be written: File too large; free some space or choose another folder"
    check_failed(run([*limited, "blur", "in.png", "o.png"]), "ulimit -f", why)
    check_failed(run([*limited, "blur", "in.png", "-o", "out"]), "ulimit -f, batch", why)
    check_failed(run([*limited, "--in-place", "blur", "in.png"]), "ulimit -f, in place", why)
    check(tree(".") == {"in.png": picture(200, 200, 3), "o.png": b"old"}, f"ulimit -f: left {list(tree('.'))}")


ACL = "system.posix_acl_access"


def access_list(*entries):
    """An access control list as the kernel takes it: entries (tag, rights, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def test_attributes(program):
    """A file that is replaced keeps its owner, group, mode, access control list and extended attributes."""
    write("before.png", picture(9, 7, 3))
    run([program, "blur", "before.png", "want.png"])
    # Owner rw, user 12345 r, group nothing, mask rw, others nothing: the bits of the group show the mask.
    rights = access_list((1, 6, 0xFFFFFFFF), (2, 4, 12345), (4, 0, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF),
                         (32, 0, 0xFFFFFFFF))
    own = os.getuid() == 0
    for named in ("in place", "in place, batch", "old output"):
        write("a.png", read("before.png"))
        wanted = {"user.note": b"kept"}
        if own:
            os.chown("a.png", 12345, 54321)
            wanted["trusted.note"] = b"kept too"
        try:
            os.setxattr("a.png", "user.note", b"kept")
            for name, value in wanted.items():
                os.setxattr("a.png", name, value)
            os.setxattr("a.png", ACL, rights)
            wanted[ACL] = rights
        except OSError as error:
            print(f"not tested: some attributes, because they cannot be set here: {error}")
            wanted = attributes("a.png")
        if own:  # what the old content may do is not for the new content
            os.setxattr("a.png", "security.capability", struct.pack("<IIIII", 0x02000000, 1 << 13, 0, 0, 0))
        os.chmod("a.png", 0o4660)
        before = os.stat("a.png")
        write("other.png", picture(8, 6, 1))
        command = {"in place": ["a.png", "--in-place"], "in place, batch": ["a.png", "other.png", "--in-place", "-q"],
                   "old output": ["before.png", "a.png"]}[named]
        ended = run([program, "blur", *command])
        after = os.stat("a.png")
        check(ended.status == 0 and read("a.png") == read("want.png"), f"attributes, {named}: {ended.lines()}")
        check((after.st_uid, after.st_gid) == (before.st_uid, before.st_gid), f"attributes, {named}: owner and group")
        check(stat.S_IMODE(after.st_mode) == 0o660, f"attributes, {named}: mode {stat.S_IMODE(after.st_mode):o}")
        check(attributes("a.png") == wanted, f"attributes, {named}: {attributes('a.png')}")

    # A file without a list stays without one, although its folder gives one to new files.
    os.mkdir("shared")
    try:
        os.setxattr("shared", "system.posix_acl_default", rights)
    except OSError:
        return
    write("shared/a.png", read("before.png"))
    os.removexattr("shared/a.png", ACL)
    os.chmod("shared/a.png", 0o640)
    check(run([program, "--in-place", "blur", "shared/a.png"]).status == 0 and
          attributes("shared/a.png") == {} and stat.S_IMODE(os.stat("shared/a.png").st_mode) == 0o640,
          f"attributes, list of the folder: {attributes('shared/a.png')}")


def test_foreign_group(program):
    """Whoever may write a file, but not give it away, gives nobody more rights than the file gave."""
    other = as_another(program)
    if not other:
        print("not tested: files of others, because this is not root, or root cannot be another user here")
        return
    os.chmod(".", 0o777)
    write("a.png", picture(9, 7, 3))
    os.chown("a.png", 12345, 54321)
    os.chmod("a.png", 0o646)
    check(run([*other, program, "--in-place", "blur", "a.png"]).status == 0, "file of another")
    after = os.stat("a.png")
    check((after.st_uid, after.st_gid, stat.S_IMODE(after.st_mode)) == (65534, 65534, 0o666),
          f"file of another: {after.st_uid} {after.st_gid} {stat.S_IMODE(after.st_mode):o}")
    os.chown("a.png", 12345, 54321)
    os.chmod("a.png", 0o670)
    os.setxattr("a.png", ACL, access_list((1, 6, 0xFFFFFFFF), (2, 6, 65534), (4, 0, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF),
                                          (32, 0, 0xFFFFFFFF)))
    check(run([*other, program, "--in-place", "blur", "a.png"]).status == 0, "file of another, with a list")
    check(stat.S_IMODE(os.stat("a.png").st_mode) == 0o600 and attributes("a.png") == {},
          f"file of another, with a list: {stat.S_IMODE(os.stat('a.png').st_mode):o} {attributes('a.png')}")


def test_changed(program):
    """A file that another program changes, replaces or removes while it is filtered in place is left as it is."""
    slow = [program, "-q", "--in-place", "--variant", "reference", "--threads", "1", SLOW]
    write("a.png", picture(150, 80, 3))
    start = time.monotonic()
    run([*slow, "a.png"])
    whole = time.monotonic() - start
    for how in ("changed", "replaced", "removed", "replaced behind a link"):
        link = how.endswith("link")
        for part in (0.5, 0.7, 0.3, 0.9, 0.6, 0.4, 0.8, 0.2) * 3:  # the change must come after the reading
            write("a.png", picture(150, 80, 3))
            if link and not os.path.islink("link.png"):
                os.symlink("a.png", "link.png")
            process = subprocess.Popen([*slow, "link.png" if link else "a.png"], stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env=faults.environment())
            time.sleep(whole * part)
            if how == "changed":
                write("a.png", picture(151, 80, 3))
            elif how == "removed":
                os.remove("a.png")
            else:
                write("new.png", picture(151, 80, 3))
                os.rename("new.png", "a.png")
            said = process.communicate()[1].decode()
            if "while it was filtered" in said:
                break
        check(process.returncode == 75 and said.count("\n") == 1 and "while it was filtered" in said,
              f"{how} while it was filtered: {process.returncode}, {said}")
        left = {name: data for name, data in tree(".").items() if name != "link.png"}
        check(left == ({} if how == "removed" else {"a.png": picture(151, 80, 3)}),
              f"{how} while it was filtered: the file is not as the other program left it")


def photo(width, height, shorter=0, last_filter=0):
    """The bytes of a PNG of several bands, which may end early or have another filter in its last row."""
    line = bytes((7 * x * x + 3 * x) & 255 for x in range(3 * width))
    rows = bytearray(b"".join(b"\0" + line[y % width:] + line[:y % width] for y in range(height)))
    rows[-3 * width - 1] = last_filter
    return png(width, height, 3, 8, bytes(rows[:len(rows) - shorter]), level=1)


def with_adler(data, change):
    """A PNG of one IDAT chunk, with another checksum of its rows."""
    end = len(data) - 12 - 4 - 4  # before IEND, the chunk's CRC and the checksum
    start = data.index(b"IDAT") + 4
    stream = data[start:end] + bytes(byte ^ change for byte in data[end:end + 4])
    return data[:start - 8] + chunk(b"IDAT", stream) + chunk(b"IEND")


def test_damaged_end(program):
    """Damage in the last rows shows when most rows have streamed to the encoder. Nothing is written."""
    whole = photo(700, 900)
    write("whole.png", whole)
    run([program, "identity", "whole.png", "whole.jpg"])
    files = {"checksum.png": with_adler(whole, 1), "filter.png": photo(700, 900, last_filter=5),
             "short.png": photo(700, 900, shorter=1)}
    if has_codec(program, "libjpeg-turbo"):  # stb makes such rows grey: docs/stb.md
        files["cut.jpg"] = read("whole.jpg")[:-300] + b"\xff\xd9"
    check(with_adler(whole, 0) == whole, "the checksum's place is wrong")
    os.mkdir("out")
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    for name, data in files.items():
        write(name, data)
        for threads in ("1", "3"):
            what = f"damaged end, {name}, --threads {threads}"
            command = [program, "--threads", threads]
            for arguments in (["blur", name, "out/o.png"], ["--in-place", "blur", name],
                              ["--format", "png", "blur", name, "-"], ["--format", "png", "blur", name, "pipe"]):
                ended = run([*command, *arguments])
                check_failed(ended, what, "is damaged: its data cannot be decoded")
                check(ended.out == b"" and os.read(reader, 1) == b"", f"{what}: wrote some of it")
            ended = run([*command, "-j2", "blur", name, "whole.png", "whole.jpg", "-o", "out"])
            counted(ended, 1, 3, what, "is damaged: its data cannot be decoded")
            check(sorted(os.listdir("out")) == ["whole.jpg", "whole.png"], f"{what}: left {os.listdir('out')}")
            ended = run([*command, "-q", "--in-place", "-j2", "identity", name, "out/whole.png"])
            check(ended.status == 1 and read(name) == data, f"{what}: the original changed")
            shutil.rmtree("out")
            os.mkdir("out")
    os.close(reader)
    os.remove("pipe")
    check(not any(".gpuconv-" in name for name in tree(".")), "damaged end: a temporary file is left")


def test_signal(program):
    """A signal while rows stream leaves neither an output nor a temporary file, and the original as it was."""
    data = photo(700, 900)
    write("a.png", data)
    write("b.png", data)
    slow = [program, "-q", "--threads", "3", "--variant", "reference", "disk:20"]
    for arguments in (["a.png", "out.png"], ["--in-place", "a.png"], ["a.png", "b.png", "-o", "out"]):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([*slow, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       env=faults.environment())
            time.sleep(0.5)  # it takes many seconds
            process.send_signal(number)
            process.communicate(timeout=faults.SECONDS)
            check(process.returncode in (-number, 128 + number), f"signal {number}: {process.returncode}")
            check(tree(".") == {"a.png": data, "b.png": data}, f"signal {number}: left {list(tree('.'))}")


def test_made(program):
    """An output that another program makes while the picture is filtered stays, unless it is the same."""
    slow = [program, "-q", "--variant", "reference", "--threads", "1", SLOW, "a.png"]
    write("a.png", picture(150, 80, 3))
    run([*slow, "want.png"])
    os.mkdir("out")
    for name, output in (("o.png", ["o.png"]), ("out/a.png", ["-o", "out"])):
        for content in (b"other", read("want.png")):
            for attempt in range(1, 26):  # it must come after the list is made, and before the end
                process = subprocess.Popen([*slow, *output], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                           env=faults.environment())
                time.sleep(0.02 * attempt)
                write(name, content)
                said = process.communicate()[1].decode()
                if content != b"other" or "was written by another" in said:
                    break
                os.remove(name)
            check(process.returncode == (content == b"other") and ("was written by another" in said) ==
                  (content == b"other") and read(name) == content, f"made: {process.returncode}, {said}")
            os.remove(name)


def test_vanishing(program):
    """The output folder is removed again and again during a batch: it is made again, or the file fails."""
    os.mkdir("in")
    for index in range(60):
        write(f"in/{index}.png", picture(90, 80, 3, index))
    run([program, "-q", "blur", "in", "-o", "want"])
    want = tree("want")
    for kind in ("rename", "remove", "in place"):
        for name in ("out", "gone"):
            shutil.rmtree(name, ignore_errors=True)
        os.makedirs("gone")
        if kind == "in place":
            shutil.copytree("in", "out")
            command = [program, "-q", "-j3", "--in-place", "blur", "out", "--report", "report"]
        else:
            command = [program, "-q", "-j3", "blur", "in", "-o", "out", "--report", "report"]
        if os.path.exists("report"):
            os.remove("report")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        moved = 0
        while kind == "in place" and process.poll() is None and not (os.path.exists("report") and read("report")):
            time.sleep(0.001)
        while process.poll() is None:
            try:
                if kind == "remove":
                    shutil.rmtree("out")
                else:
                    os.rename("out", f"gone/{moved}")
                moved += 1
            except OSError:
                pass
            time.sleep(0.002)
        lines = process.stderr.read().decode().splitlines()
        with open("report", encoding="utf-8") as file:
            results = [result for result in map(json.loads, file) if result["status"] != "begun"]
        failed = [result for result in results if result["status"] == "failed"]
        status = 75 if any(result["retry"] for result in failed) else bool(failed)
        check(process.returncode == status and len(results) == 60 and len(lines) == len(failed) + bool(failed),
              f"vanishing, {kind}: {process.returncode}, {len(results)}, {len(failed)} failed, {lines[-2:]}")
        for name, data in [*tree("out").items(), *tree("gone").items()]:
            base = os.path.basename(name)
            allowed = (want[base], read("in/" + base)) if kind == "in place" else (want.get(base),)
            if data not in allowed:
                fail(f"vanishing, {kind}: {name} is not whole")
        if kind == "in place" and moved:
            check(not os.path.exists("out"), "vanishing, in place: the folder was made again")
        if kind == "remove" or moved > 1:
            print(f"vanishing, {kind}: {moved} times, {len(failed)} files failed")


def test_links(program):
    """A link stays and its target is replaced; pipes and devices are written to directly."""
    write("in.png", picture(9, 7, 3))
    run([program, "blur", "in.png", "want.png"])
    want = read("want.png")
    os.makedirs("far/away")
    write("far/away/real.png", b"old")
    os.chmod("far/away/real.png", 0o640)
    os.symlink("far/away/real.png", "link.png")
    os.symlink("link.png", "second.png")
    check(run([program, "blur", "in.png", "second.png"]).status == 0 and os.readlink("second.png") == "link.png" and
          os.readlink("link.png") == "far/away/real.png" and read("far/away/real.png") == want and
          stat.S_IMODE(os.stat("far/away/real.png").st_mode) == 0o640, "link to a link")
    os.symlink("nowhere.png", "dangling.png")
    check_failed(run([program, "blur", "in.png", "dangling.png"]), "dangling link",
                 "symbolic link to a file that does not")
    os.symlink("loop.png", "loop.png")
    check_failed(run([program, "blur", "in.png", "loop.png"]), "loop", "Too many levels of symbolic links")
    check_failed(run([program, "blur", "loop.png", "o.png"]), "loop as input", "Too many levels of symbolic links")
    os.symlink("far", "folder.png")
    check_failed(run([program, "blur", "in.png", "folder.png"]), "link to a folder", "is a folder")
    os.symlink("far/away", "place")
    check(run([program, "blur", "in.png", "place/o.png"]).status == 0 and read("far/away/o.png") == want,
          "linked folder")

    # A file with two names: only the name that is written gets the new content, as with any tool that renames.
    write("one.png", b"old")
    os.link("one.png", "two.png")
    check(run([program, "blur", "in.png", "one.png"]).status == 0 and read("one.png") == want and
          read("two.png") == b"old", "hard link")
    os.link("in.png", "also.png")
    os.symlink("in.png", "soft.png")
    before = read("in.png")
    for name in ("in.png", "./in.png", "also.png", "soft.png", os.path.abspath("in.png"), "far/../in.png"):
        check_failed(run([program, "blur", "in.png", name]), f"output {name}", "is the same file as", status=2)
    check(read("in.png") == before, "the input was overwritten")

    check(run([program, "blur", "in.png", "/dev/null", "--format", "png"]).status == 0 and
          stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null")
    check_failed(run([program, "blur", "in.png", "/dev/full", "--format", "png"]), "/dev/full",
                 "No space left on device")
    os.mkfifo("pipe.png")
    reader = subprocess.Popen(["cat", "pipe.png"], stdout=subprocess.PIPE)
    check(run([program, "blur", "in.png", "pipe.png"]).status == 0 and reader.communicate()[0] == want and
          stat.S_ISFIFO(os.stat("pipe.png").st_mode), "pipe as output")
    writer = subprocess.Popen(["sh", "-c", "cat in.png >pipe.png"])
    check(run([program, "blur", "pipe.png", "o.png"]).status == 0 and read("o.png") == want, "pipe as input")
    writer.wait()

    # A batch writes in the same way.
    os.mkdir("links")
    os.symlink("../far/away/real.png", "links/in.png")
    write("far/away/real.png", b"old")
    check(run([program, "blur", "in.png", "-o", "links"]).status == 0 and os.path.islink("links/in.png") and
          read("far/away/real.png") == want, "link, batch")
    os.remove("links/in.png")
    os.symlink("loop.png", "links/in.png")
    check_failed(run([program, "blur", "in.png", "-o", "links"]), "dangling link, batch", "symbolic link")
    check(not [name for name in tree("far") if ".gpuconv-" in name], "links: a temporary file was left")


def test_waiting_pipe(program):
    """A batch waits for the reader of a pipe. A signal ends it after a timeout, a second signal at once."""
    os.makedirs("out")
    write("a.png", picture(9, 7, 3))
    write("b.png", picture(9, 7, 3, 1))
    os.mkfifo("out/a.png")
    process = subprocess.Popen([program, "-q", "-j2", "blur", "a.png", "b.png", "-o", "out"], stdin=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while not os.path.exists("out/b.png") and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)  # the lower number comes first if both wait
    process.send_signal(signal.SIGTERM)
    try:
        check(process.wait(timeout=4.5) == 128 + signal.SIGINT, f"waiting pipe: exit status {process.returncode}")
    except subprocess.TimeoutExpired:
        process.kill()
        fail("waiting pipe: the second signal did not end it")


NAMES = [b"with space.png", b"line\nend.png", b"-dash.png", b"--in-place.png", b"byte\xff\xfe.png", b"\x1b[31mred.png",
         b"\xc2\x9bcsi.png", b"quote'\"`$(x)\\.png", b"percent%s%n.png", b"tab\there.png", b"\xf0\x9f\x98\x80.png",
         b"n" * 251 + b".png", b"comma,and:colon.png", b".hidden.png", b"*?[x].png"]


def test_names(program):
    """Unusual names: unchanged in files, escaped in messages, and recoverable from a report."""
    os.mkdir(b"in")
    for name in NAMES:
        write(b"in/" + name, picture(9, 7, 3))
    write("plain.png", picture(9, 7, 3))
    run([program, "blur", "plain.png", "want.png"])
    want = read("want.png")
    listed = b"\0".join(b"in/" + name for name in NAMES)
    ended = run([program, "-v", "--files-from", "-", "-0", "blur", "-o", "out", "--report", "report"], data=listed)
    check(ended.status == 0 and sorted(os.listdir(b"out")) == sorted(NAMES), f"names: {ended.lines()}")
    check(all(read(b"out/" + name) == want for name in NAMES), "names: other bytes")
    check(not any(byte < 32 and byte != 10 or byte == 127 for byte in ended.err) and b"\xc2\x9b" not in ended.err and
          ended.err.count(b"\n") == len(NAMES) + 2, "names: control characters were printed")
    results = [json.loads(line) for line in read("report").decode("utf-8").splitlines()]
    check(sorted(os.fsencode(result["output"]) for result in results) == sorted(b"out/" + name for name in NAMES),
          "names: the report does not give them back")
    shutil.rmtree("out")
    check(run([program, "-q", "-r", "blur", "in", "-o", "out"]).status == 0 and sorted(os.listdir(b"out")) ==
          sorted(name for name in NAMES if name[:1] != b"."), "names of a folder")

    os.chdir("in")
    for name in NAMES:
        after = [b"--"] if name.startswith(b"-") else []
        check(run([program, "blur", *after, name, b"../" + name]).status == 0 and read(b"../" + name) == want,
              f"name {name}")
        check(run([program, "blur", "../plain.png", *after, name]).status == 0 and read(name) == want, f"output {name}")
        os.remove(name)
        ended = run([program, "blur", *after, name, b"../" + name])
        check_failed(ended, f"missing {name}", "No such file or directory")
        check(not any(byte < 32 or byte == 127 for byte in ended.err[:-1]) and b"\xc2\x9b" not in ended.err,
              f"missing {name}: control characters were printed")
    os.chdir("..")

    # One byte longer than a name may be, also after a batch adds its suffix.
    long = "n" * 252 + ".png"
    check_failed(run([program, "blur", "plain.png", long]), "name of 256 bytes", "File name too long")
    write("m" * 250 + ".png", picture(9, 7, 3))
    check_failed(run([program, "--suffix", "-long", "blur", "m" * 250 + ".png", "-o", "out"]), "suffix",
                 "name too long")


def test_long_paths(program):
    """Paths just below and above the longest allowed."""
    write("a.png", picture(9, 7, 3))
    run([program, "blur", "a.png", "want.png"])
    top = os.getcwd()
    folder = "d" * 200
    depth = (4095 - len(top)) // 201 - 1
    os.makedirs(os.path.join(top, *[folder] * depth))
    deep = os.path.join(top, *[folder] * depth)
    rest = 4095 - len(deep) - 1
    last = os.path.join(*["e" * 100] * (rest // 101), "") if rest > 250 else ""
    os.makedirs(os.path.join(deep, last), exist_ok=True)
    longest = os.path.join(deep, last, "x" * (4095 - len(os.path.join(deep, last)) - 4) + ".png")
    check(len(longest) == 4095, f"the longest path has {len(longest)} bytes")
    ended = run([program, "blur", "a.png", longest])
    if ended.status == 0:
        check(read(longest) == read("want.png"), "longest path: other bytes")
        check(run([program, "blur", longest, "o.png"]).status == 0, "longest path as input")
    else:  # the temporary file's name may be longer
        check_failed(ended, "longest path", "File name too long")
    check_failed(run([program, "blur", "a.png", longest[:-4] + "x.png"]), "path too long", "File name too long")
    check_failed(run([program, "blur", longest[:-4] + "x.png", "o.png"]), "input's path too long", "File name too long")
    ended = run([program, "-q", "-r", "blur", top, "-o", os.path.join(deep, "out" * 60)])
    check(ended.status in (0, 1) and all(len(line) < 6300 for line in ended.lines()), "batch with long paths")


TESTS = [test_damaged_end, test_signal, test_permissions, test_limit, test_attributes, test_foreign_group,
         test_changed, test_made, test_vanishing, test_links, test_waiting_pipe, test_names, test_long_paths]
if sys.argv[-1] == "mounting":
    TESTS += [test_full_disk, test_read_only]
else:
    own_namespace()
faults.main(TESTS)
