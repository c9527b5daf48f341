#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Too few descriptors, too little memory, stack or time, no threads; small files that claim large pictures; standard
streams that are closed or have no reader: limits.py GPUCONV."""
import io
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
import zlib

import faults
from faults import FULL, check, check_failed, fail, picture, read, run, tree, write
from harness import use_python_with
from write_png import SIGNATURE, chunk, ihdr

use_python_with("PIL")
try:
    from PIL import Image
except ImportError:
    Image = None

MEBI = 1 << 20


def limited(kind, amount):
    """Set limits in the child process, before gpuconv starts."""
    return lambda: resource.setrlimit(kind, (amount, amount))


def prepare(program):
    os.mkdir("in")
    for index in range(6):
        write(f"in/{index}.png", picture(60, 50 + index, 3, index))
    write("large.png", picture(700, 500, 3))
    run([program, "-q", "blur", "in", "-o", "want"])
    run([program, "--compression", "2", "gaussian:5,sharpen", "large.png", "want.png"])
    return tree("want"), read("want.png")


def judge(what, ended, files, want, jobs):
    """Every output is whole. All are there and the exit status is 0, or it is 1 or 75 and sentences say why."""
    if ended.status is not None and ended.status < 0:
        return fail(f"{what}: signal {-ended.status}")
    for name, data in files.items():
        check(data == want.get(name), f"{what}: {name} is not whole")
    lines = ended.lines()
    if ended.status == 0:
        return check(files == want and lines == [], f"{what}: exit status 0, {len(files)} files, said {lines}")
    if b"error while loading shared libraries" in ended.err:
        return True  # gpuconv has not started
    own = all(line.startswith("gpuconv: ") for line in lines) and (len(lines) == 1 or jobs)
    return check(ended.status == faults.failed_status(lines) and lines and own,
                 f"{what}: exit status {ended.status}, said {lines}")


def both(program, what, want, want_large, prefix=(), single=("--compression", "2", "gaussian:5,sharpen"), **options):
    """One image, and a batch on many workers, under a limit."""
    for name in ("o.png", "out"):
        if os.path.isdir(name):
            shutil.rmtree(name)
        elif os.path.exists(name):
            os.remove(name)
    ended = run([*prefix, program, "--threads", "4", *single, "large.png", "o.png"], **options)
    files = {"o.png": read("o.png")} if os.path.exists("o.png") else {}
    judge(what, ended, files, {"o.png": want_large}, False)
    first = ended.status
    ended = run([*prefix, program, "-q", "-j4", "blur", "in", "-o", "out"], **options)
    judge(what + ", batch", ended, tree("out") if os.path.isdir("out") else {}, want, True)
    return first, ended.status


def test_descriptors(program):
    want, large = prepare(program)
    statuses = [both(program, f"ulimit -n {number}", want, large, preexec_fn=limited(resource.RLIMIT_NOFILE, number))
                for number in (3, 4, 5, 6, 7, 8, 10, 16)]
    check(statuses[-1] == (0, 0), f"16 descriptors are not enough: {statuses}")
    check(75 in (batch for _, batch in statuses), f"no number of descriptors was too small for a batch: {statuses}")


def starts(program, limit):
    """Does the program come to its main? The CUDA runtime registers kernels before, where it does not check malloc."""
    status = run([program, "--version"], preexec_fn=limit).status
    return status is None or status >= 0


def test_memory(program):
    want, large = prepare(program)
    for kind, name, steps in ((resource.RLIMIT_AS, "-v", (10, 14, 18, 22, 26, 30, 40, 50, 70, 120, 400)),
                              (resource.RLIMIT_DATA, "-d", (1, 2, 3, 4, 6, 8, 12, 20, 40, 400))):
        if FULL:
            steps = range(2, 130)
        # No program starts with less address space than its own code and GPU kernels need.
        own = os.path.getsize(program) // MEBI if kind == resource.RLIMIT_AS else 0
        statuses = [both(program, f"ulimit {name} {mebi} MiB", want, large, preexec_fn=limited(kind, mebi * MEBI))
                    for mebi in (own + step for step in steps) if starts(program, limited(kind, mebi * MEBI))]
        if not FULL:
            check(statuses[-1] == (0, 0) and any(status[0] == 75 for status in statuses), f"ulimit {name}: {statuses}")


def test_memory_is_shared(program):
    """Where all images at once would not fit under a limit, they wait for each other, and all are written."""
    os.mkdir("photos")
    for index in range(8):
        write(f"photos/{index}.png", picture(1000, 800, 3, index))
    want = run([program, "-q", "-j1", "blur", "photos", "-o", "want"])
    check(want.status == 0, f"no limit: {want.status}, {want.lines()}")
    own = os.path.getsize(program) // MEBI
    for kind, name, mebi in ((resource.RLIMIT_AS, "-v", own + 40), (resource.RLIMIT_DATA, "-d", 30)):
        ended = run([program, "-q", "-j8", "blur", "photos", "-o", "out"], preexec_fn=limited(kind, mebi * MEBI))
        check(ended.status == 0 and tree("out") == tree("want"),
              f"ulimit {name} {mebi} MiB, 8 at a time: {ended.status}, {ended.lines()}")
        shutil.rmtree("out", ignore_errors=True)


def test_threads(program):
    """Fewer threads than asked for give the same bytes; a batch that can start none says so."""
    if os.getuid() != 0:
        print("not tested: ulimit -u, which counts all that a user runs, and this one runs others")
        return
    other = ["setpriv", "--reuid=54321", "--clear-groups"]
    os.chmod(".", 0o777)
    if not shutil.which("setpriv") or run([*other, program, "--version"]).status != 0:
        print("not tested: ulimit -u, which does not bind root, who cannot be another user here")
        return
    want, large = prepare(program)
    for number in (1, 2, 3, 4, 8):
        statuses = both(program, f"ulimit -u {number}", want, large, other,
                        preexec_fn=limited(resource.RLIMIT_NPROC, number))
        check(statuses == (0, 75 * (number == 1)), f"ulimit -u {number}: {statuses}")
    ended = run([*other, program, "-q", "-j4", "blur", "in", "-o", "out"],
                preexec_fn=limited(resource.RLIMIT_NPROC, 1))
    check_failed(ended, "no thread", "no thread can be started: Resource temporarily unavailable")


def test_small_stack(program):
    """All kinds of runs in a stack of 64 KiB: 0 or 1, as with a large one."""
    os.makedirs("a")
    os.makedirs("b")
    for seed in (0, 1):
        write(f"a/{seed}.png", picture(300, 200, 3, seed))
        write(f"b/{seed}.png", picture(300, 200, 3, 0))
    for name, options in (("baseline", []), ("scans", ["--progressive"])):
        run([program, *options, "identity", "a/0.png", name + ".jpg"])
    images = [[*options, filters, name, "o" + name[-4:]] for name in ("a/0.png", "baseline.jpg", "scans.jpg")
              for filters in ("blur", "motion:15:30", "gaussian:20", "unsharp:2:1", "disk:20,log:3")
              for options in (["--threads", "1"], ["--threads", "3", "--depth", "16"])]
    others = [["--codec", "stb", "blur", "baseline.jpg", "o.jpg"], ["--compression", "9", "blur", "a/0.png", "o.png"],
              ["--progressive", "--linear", "blur", "a/0.png", "o.jpg"], ["-v", "blur", "a/0.png", "o.png"],
              ["-j2", "motion:9:3,blur", "a", "-o", "out", "--report", "r.jsonl"],
              ["--compare", "a/1.png", "b/1.png", "d.png"],
              ["--compare", "a", "b", "d", "--html", "p.html", "--junit", "j"],
              ["--show", "motion:15:30"], ["--show", "unsharp:20:1", "--json"], ["--list"], ["--list-codecs"],
              ["--bench", "--backend", "cpu", "--bench-size", "64x64", "--bench-filter", "motion:9:3"],
              ["blur", "none.png", "o.png"], ["blr", "a/0.png", "o.png"]]
    for arguments in images + others:
        ended = run([program, *arguments], preexec_fn=limited(resource.RLIMIT_STACK, 64 << 10))
        usual = run([program, *arguments]).status
        check(ended.status == usual, f"ulimit -s 64, {arguments}: {ended.status} instead of {usual}, {ended.lines()}")


def test_stack_and_time(program):
    want, large = prepare(program)
    for kibi in (128, 256, 512, 1 << 20):
        stack = limited(resource.RLIMIT_STACK, kibi << 10)
        statuses = both(program, f"ulimit -s {kibi}", want, large, preexec_fn=stack)
        check(statuses == (0, 0), f"ulimit -s {kibi}: {statuses}")

    def one_second():
        resource.setrlimit(resource.RLIMIT_CPU, (1, 20))
    slow = ["--variant", "reference", "--threads", "1", "disk:40,disk:40,disk:40"]
    os.makedirs("slow")
    ended = run([program, *slow, "large.png", "slow/o.png"], preexec_fn=one_second)
    check(ended.status == -signal.SIGXCPU and tree("slow") == {}, f"ulimit -t: {ended.status}, {list(tree('slow'))}")
    shutil.copy("large.png", "larger.png")
    ended = run([program, "-q", "-j2", *slow, "large.png", "larger.png", "-o", "slow"], preexec_fn=one_second)
    check(ended.status == 128 + signal.SIGXCPU and tree("slow") == {}, f"ulimit -t, batch: {ended.status}")


def jpeg_segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def progressive(width, height, bits, data=None):
    """A grey JPEG: DATA bytes of DC coefficients, by default all that it needs, then a scan of a few bytes for each of
    BITS, that visits all AC coefficients. The only code, 0, is a difference of 0, or a run of up to 32767 blocks."""
    blocks = -(-width // 8) * -(-height // 8)
    file = b"\xff\xd8" + jpeg_segment(0xDB, b"\0" + b"\1" * 64)
    file += jpeg_segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
    file += jpeg_segment(0xC4, b"\0\1" + bytes(15) + b"\0") + jpeg_segment(0xC4, b"\x10\1" + bytes(15) + b"\xe0")
    file += jpeg_segment(0xDA, b"\1\1\0\0\0\0") + bytes(-(-blocks // 8) if data is None else data)
    runs = "011111111111111" * -(-blocks // 32767)
    runs += "1" * (-len(runs) % 8)
    runs = int(runs, 2).to_bytes(len(runs) // 8, "big").replace(b"\xff", b"\xff\0")
    for pair in bits:
        file += jpeg_segment(0xDA, b"\1\1\0\1\x3f" + bytes([pair])) + runs
    return file + b"\xff\xd9"


def arithmetic(width, height):
    """A flat grey JPEG with arithmetic codes, which need no data for it."""
    return (b"\xff\xd8" + jpeg_segment(0xDB, b"\0" + b"\1" * 64)
            + jpeg_segment(0xC9, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0")
            + jpeg_segment(0xDA, b"\1\1\0\0\x3f\0") + b"\xff\xd9")


# The first scan leaves 13 bits to the others, each of which sends one.
ALL_BITS = [13] + [left + 1 << 4 | left for left in range(12, -1, -1)]


def codecs_of(program, name):
    """The codecs that read a file of that name."""
    kind = "PNG" if name.endswith(".png") else "JPEG"
    listed = run([program, "--list-codecs"]).out.decode().splitlines()
    return [line.split()[0] for line in listed if kind in line and "not built in" not in line]


def claims():
    """Files whose data cannot fill their pictures, each with the reason; and files with the least data that can."""
    rows = chunk(b"IDAT", zlib.compress(bytes(100000), 9)) + chunk(b"IEND")
    bad = {"few.png": (SIGNATURE + ihdr(16000, 16000) + rows, "too few for 16000 x 16000 pixels"),
           "passes.png": (SIGNATURE + ihdr(16000, 16000, interlaced=1) + rows, "too few for 16000 x 16000 pixels"),
           "few.jpg": (progressive(65500, 5400, ALL_BITS[:2], 100000), "too few for 65500 x 5400 pixels"),
           "arithmetic.jpg": (arithmetic(65500, 5400), "too few for 65500 x 5400 pixels"),
           "scans.jpg": (progressive(8192, 7168, [1] + [16] * 97), "more than 14 scans with one coefficient")}
    rows = chunk(b"IDAT", zlib.compress(bytes(376 * 3000), 9)) + chunk(b"IEND")
    good = {"bits.png": SIGNATURE + ihdr(3000, 3000, 1, 0) + rows, "scans.jpg": progressive(2400, 2001, ALL_BITS),
            "arithmetic.jpg": arithmetic(4000, 3000)}
    for mode in ("L", "RGB", "CMYK") if Image else ():
        for options in ({"subsampling": 0}, {"subsampling": 2}, {"subsampling": 2, "progressive": True}):
            file = io.BytesIO()
            Image.new(mode, (2003, 1501), 77).save(file, "JPEG", optimize=True, quality=90, **options)
            good[f"{mode} {len(good)}.jpg"] = file.getvalue()
    return bad, good


def test_claims(program):
    """A small file that claims a large picture is refused at once, unless its data can fill the picture."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        resource.setrlimit(resource.RLIMIT_DATA, (64 * MEBI, 64 * MEBI))
    bad, good = claims()
    for name, (data, reason) in bad.items():
        write(name, data)
        for codec in codecs_of(program, name):
            ended = run([program, "--codec", codec, "identity", name, "o" + name[-4:]], preexec_fn=bounded)
            check_failed(ended, f"{name} by {codec}", reason)
    for name, data in good.items():
        write(name, data)
        for codec in codecs_of(program, name):
            if codec == "stb" and ("CMYK" in name or "arithmetic" in name):
                continue
            ended = run([program, "-q", "--codec", codec, "identity", name, "o" + name[-4:]])
            check(ended.status == 0, f"{name} by {codec}: {ended.lines()}")


def test_endless(program):
    """A device without an end is refused soon, wherever a file may be named."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
        resource.setrlimit(resource.RLIMIT_DATA, (128 * MEBI, 128 * MEBI))
    write("in.png", picture(9, 7))
    write("list", b"0" * 64 + b"  /dev/zero\n")
    line = b'{"input": "/dev/zero", "output": "o.png", "filter": "blur"}\n'
    for arguments, data in ((["blur", "/dev/zero", "o.png"], None), (["--format", "png", "blur", "/dev/zero", "in.png", "-o", "out"], None),
                            (["--digest", "/dev/zero"], None), (["--check", "list"], None), (["--check", "/dev/zero"], None),
                            (["--compare", "in.png", "/dev/zero"], None), (["blur", "--files-from", "/dev/zero", "-o", "out"], None),
                            (["--tar", "blur", "/dev/zero", "o.tar"], None), (["--jobs-from", "-"], line)):
        ended = run([program, *arguments], data=data, preexec_fn=bounded)
        if b"without" in ended.err and b"was built" in ended.err:
            continue  # without libarchive
        check(ended.status in (1, 2) and b"/dev/zero: is a device, which may have no end" in ended.out + ended.err,
              f"{arguments}: {ended.status}, {ended.out} {ended.err}")
    check(tree(".").keys() == {"in.png", "list", "out/in.png"}, f"left {list(tree('.'))}")


def test_closed_streams(program):
    """A file that is opened never takes the number of a closed standard stream."""
    prepare(program)
    for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", program]
        ended = run([*shell, "blur", "in/0.png", "o.png"])
        check(ended.status == 0 and read("o.png") == read("want/0.png"), f"{closed}: {ended.status}, {ended.lines()}")
        os.remove("o.png")
        ended = run([*shell, "blur", "in/none.png", "o.png"])
        check(ended.status == 1 and len(ended.lines()) == ("2" not in closed), f"{closed}, no input: {ended.lines()}")
        check(not os.path.exists("o.png"), f"{closed}: the error went into the output")
        ended = run([*shell, "-v", "blur", "in", "-o", "out", "--report", "report"])
        check(ended.status == 0 and tree("out") == tree("want") and read("report").count(b"\n") == 6 and
              b"files done" not in read("report"), f"{closed}, batch: {ended.status}, {ended.lines()}")
        os.remove("report")
        shutil.rmtree("out")
        for arguments in (["--list"], ["blur", "in/0.png", "-"]):
            ended = run([*shell, *arguments])
            check(ended.status == (">&-" in closed.replace("2>&-", "")), f"{closed}, {arguments}: {ended.status}")
        ended = run([*shell, "blur", "-", "o.png"], data=read("in/0.png"))
        check(ended.status == ("<&-" in closed), f"{closed}, standard input: {ended.status}")
        if os.path.exists("o.png"):
            os.remove("o.png")


def unheard(command, ignored=False):
    """Run with a standard output that has no reader. By default Python restores SIGPIPE in its children."""
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                               restore_signals=not ignored)
    os.close(writer)
    try:
        _, err = process.communicate(timeout=faults.SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, b""
    return process.returncode, err


def test_broken_pipe(program):
    """Standard output has no reader: SIGPIPE ends the run silently; if SIGPIPE is ignored, one sentence does."""
    want, _ = prepare(program)
    asked = (["--list"], ["--list-variants"], ["--help"], ["--show", "blur"], ["--version"],
             ["blur", "in/0.png", "-"], ["--compare", "in/0.png", "in/1.png"], ["--compare", "in/0.png", "in/1.png", "--json"],
             ["--bench", "--backend", "cpu", "--bench-filter", "blur", "--bench-size", "64x64", "--json"])
    for arguments in asked:
        status, err = unheard([program, *arguments])
        check((status, err) == (-signal.SIGPIPE, b""), f"broken pipe, {arguments}: {status}, {err}")
    status, err = unheard([program, "--list"], ignored=True)
    check(status == 75 and err.startswith(b"gpuconv: standard output: cannot be written: Broken pipe") and
          err.count(b"\n") == 1, f"broken pipe, SIGPIPE ignored: {status}, {err}")

    # The images of a batch are still written.
    status, err = unheard([program, "-q", "blur", "in", "-o", "out", "--report", "-"])
    check(status == 75 and err.count(b"\n") == 1 and tree("out") == want, f"broken pipe, report: {status}, {err}")
    reader, writer = os.pipe()
    os.close(reader)
    shutil.rmtree("out")
    status = subprocess.run([program, "-v", "blur", "in", "-o", "out"], stdin=subprocess.DEVNULL, stderr=writer,
                            check=False).returncode
    check(status == 0 and tree("out") == want, f"broken pipe as standard error: {status}")
    os.close(writer)

    # A long benchmark ends with the next row.
    start = time.monotonic()
    shell = 'exec "$0" --bench --backend cpu --bench-size 2000x2000 --csv'
    status = subprocess.run(["sh", "-c", f"({shell}; echo $? >status) | head -n 1 >/dev/null", program],
                            check=False, timeout=faults.SECONDS).returncode
    check(status == 0 and time.monotonic() - start < faults.SECONDS, "broken pipe, benchmark")


faults.main([test_descriptors, test_memory, test_memory_is_shared, test_threads, test_small_stack,
             test_stack_and_time, test_claims, test_endless, test_closed_streams, test_broken_pipe])
