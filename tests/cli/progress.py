#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a command on a terminal and check the progress bar that it draws: progress.py COMMAND..."""
import os
import pty
import re
import sys
import time

ERASE = b"\r\x1b[K"


def main():
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.argv[1], sys.argv[1:])
    output, start = b"", time.monotonic()
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the end of a terminal
            break
        if not part:
            break
        output += part
    seconds = time.monotonic() - start
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) != 0:
        sys.exit(f"failed: {output!r}")
    drawings = output.split(ERASE)
    bars = [text for text in drawings if re.fullmatch(rb"\[=* *\] \d+/\d+ files, [0-9.]+ Mpixel/s, [0-9:-]+ left", text)]
    if not bars:
        print("nothing drawn" if output == b"" else f"no bar in {output!r}")
    elif len(bars) > 10 * seconds + 1:
        print(f"{len(bars)} bars in {seconds:.1f} s")
    elif any(len(bar) > 79 for bar in bars):
        print(f"too long: {max(bars, key=len)!r}")
    elif not re.fullmatch(rb"\d+ of \d+ files done; [^\r\n]*\r\n", drawings[-1]):
        print(f"not cleared: {drawings[-1]!r}")
    else:
        print("drawn and cleared")


main()
