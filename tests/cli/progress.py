#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line of progress on a terminal: progress.py GPUCONV.

It fills with the bytes of a batch, shows the rows of a long image, is cleared at the end and by a signal, and is drawn
on nothing but a terminal in front."""
import fcntl
import math
import os
import random
import re
import signal
import struct
import sys
import termios
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import fork_on_terminal, run, temporary_folder  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

ERASE = "\r\x1b[K"
BAR = 30  # columns of the widest bar
LEFT = r"(?P<left>, [0-9:]+ left)?"
FILES = re.compile(r"(?:\[(?P<bar>=* *)\] )?(?P<done>\d+)/\d+ files(?:, [0-9.]+ Mpixel/s)?" + LEFT)
IMAGE = re.compile(r"\[(?P<bar>=* *)\] (?:reading|writing|filtering(?:: (?P<rows>\d+)% of the rows)?)" + LEFT)
SLOW = ["--variant", "reference", "--threads", "1", "box:2"]  # on one thread


def slow(seconds):
    """Options and as many filters as take these seconds of a processor. One image shows its line after a second."""
    return [*SLOW[:-1], ",".join(SLOW[-1:] * math.ceil(seconds / slow.each))]


def on_terminal(command, columns=80, stop=None, key=None, number=None):
    """Run a command on a terminal. Once STOP matches what it draws, press KEY or send it signal NUMBER. Returns its
    exit status, below 0 after a signal; what it drew, cut where it erases; and the seconds."""
    start = time.monotonic()
    process, terminal = fork_on_terminal()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execvp(command[0], command)
    output = ""
    while True:
        try:
            part = os.read(terminal, 65536).decode("ascii")
        except OSError:  # the end of a terminal
            break
        if not part:
            break
        output += part
        if stop is not None and re.search(stop, output):
            stop = None
            if key is not None:
                os.write(terminal, key)
            else:
                os.kill(process, number)
    os.close(terminal)
    if stop is not None:
        sys.exit(f"{command}: {stop} was never drawn: {output!r}")
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), output.split(ERASE), time.monotonic() - start


def check(is_right, *what):
    if not is_right:
        sys.exit(f"wrong: {what}")


def check_lines(lines, pattern, seconds, columns=80):
    """The matches of all lines, at least one, which must be like PATTERN, short, few, and never go back."""
    found = [pattern.fullmatch(line) for line in lines]
    check(found and all(found), "not a line", lines)
    check(len(found) <= 10 * seconds + 1, "too many lines", len(found), seconds)
    check(all(len(line) < columns for line in lines), "too long", lines)
    full = [len(match["bar"].rstrip()) for match in found if match["bar"] is not None]
    check(full == sorted(full), "a bar goes back", lines)
    return found


def check_batch(program, folder):
    """The first of seven files has nearly all bytes. A bar of files would stand still, and know no time."""
    command = [program, "-j1", *slow(1), folder, "-o", folder + "-out"]
    status, (first, *lines, last), seconds = on_terminal(command)
    check(status == 0 and first == "", status, first)
    found = check_lines(lines, FILES, seconds)
    check(any(match["done"] == "0" and "=" in match["bar"] and match["left"] for match in found), "no bytes", lines)
    check(all(len(match["bar"].rstrip()) > 0.9 * BAR for match in found if match["done"] != "0"), "not by bytes", lines)
    check(re.fullmatch(r"7 of 7 files done; [^\r\n]*\r\n", last), "the end", last)
    quiet = [program, "-qj1", *slow(1), folder, "-o", folder + "-out"]
    check(on_terminal(quiet)[1] == [""], "-q draws")


def check_compare(program, folder):
    """As many links to the largest pair as take long enough."""
    sides = folder + "-expected", folder + "-actual"
    command = [program, "-j1", "--compare", *sides]
    before, count = os.times().children_user, 1
    for side, file in zip(sides, (folder + "/1.png", folder + "-out/1.png")):
        os.mkdir(side)
        os.link(file, side + "/1.png")
    run(*command, status=1)
    count += math.ceil(1 / (os.times().children_user - before))
    for side in sides:
        for i in range(2, count + 1):
            os.link(f"{side}/1.png", f"{side}/{i}.png")
    status, (first, *lines, last), seconds = on_terminal(command)
    check(status == 1 and first == "", status, first)
    found = check_lines(lines, FILES, seconds)
    check(all((match["left"] is None) == (match["done"] == "0") for match in found), "the time", lines)
    check(last.endswith(f"{count} pairs: 0 equal, {count} different\r\n"), "the end", last)


def check_image(program, image, target):
    status = seconds = 0
    while status == 0 and seconds < 2:  # the processor may have become faster
        status, (first, *lines, last), seconds = on_terminal([program, *slow(2), image, target], columns=50)
        slow.each /= 2 if seconds < 2 else 1
    check(status == 0 and first == last == "", status, first, last)
    found = check_lines(lines, IMAGE, seconds - 1, columns=50)
    check(len({match["rows"] for match in found} - {None}) > 1, "no rows", lines)
    check(any(match["left"] for match in found), "no time", lines)
    os.remove(target)


def check_silence(program, image, small, target):
    """No line: for a short run, beside a result on standard output, in the background, and on no terminal."""
    command = [program, *slow(1.5), image, target]
    check(on_terminal([program, "blur", small, target])[1] == [""], "a short run draws")
    output = on_terminal(["sh", "-c", f'exec "$@" >"{target}"', "sh", *command[:-1], "-"])[1]
    check(output == [""], "it draws beside its result", output)
    output = on_terminal(["sh", "-c", 'set -m; "$@" & wait $!', "sh", *command])[1]
    check(len(output) == 1 and "rows" not in output[0], "it draws in the background", output)
    check(run(*command).stderr == "", "it draws on no terminal")
    os.remove(target)


def check_signals(program, folder, image):
    out = folder + "-cut"
    ways = [{"key": b"\x03"}, {"number": signal.SIGTERM}]
    for number, way in zip((signal.SIGINT, signal.SIGTERM), ways):
        command = [program, "-j2", *slow(3), folder, "-o", out]
        status, lines, _ = on_terminal(command, stop=r"[1-6]/7 files", **way)
        done = os.listdir(out)
        check(status == 128 + number, number, status)
        check(lines[-1] == f"gpuconv: interrupted: {len(done)} of 7 files done; give --skip-existing to continue\r\n", lines)
        check(0 < len(done) < 7, "interrupted too late", done)
        for name in done:
            os.remove(os.path.join(out, name))
        status, lines, _ = on_terminal([program, *slow(3), image, os.path.join(out, "a.png")], stop="rows", **way)
        check(status == -number and lines[-1] == "" and os.listdir(out) == [], number, status, lines)


def noise(width, height):
    return png(width, height, 3, 8, unfiltered(random.Random(1).randbytes(3 * width * height), 3 * width), level=0)


def main():
    program = os.path.abspath(sys.argv[1])
    with temporary_folder() as top:
        folder, image, target = (os.path.join(top, name) for name in ("in", "image.png", "out.png"))
        os.mkdir(folder)
        for path, size in [(image, (1500, 1200)), *((f"{folder}/{i}.png", (1500, 1200) if i == 1 else (120, 90))
                                                    for i in range(1, 8))]:
            with open(path, "wb") as file:
                file.write(noise(*size))
        run(program, *SLOW, image, target)
        slow.each = os.times().children_user
        check_batch(program, folder)
        check_compare(program, folder)
        check_image(program, image, target)
        check_silence(program, image, f"{folder}/2.png", target)
        check_signals(program, folder, image)


main()
