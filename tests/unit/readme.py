#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The two commands of README.md in every shell that is installed, with and without sudo, and where nothing can be
installed because the user may not: readme.py SOURCES. All programs that they call are stand-ins that write their names."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

EXPECTED = {"run": ["meson", "ninja", "gpuconv"], "test": ["meson", "meson", "python3"]}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def run(shell, command, sudo, may_install):
    """Run COMMAND and return the names of the programs that it called."""
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        programs, log = os.path.join(folder, "bin"), os.path.join(folder, "log")
        os.makedirs(programs)
        os.makedirs(os.path.join(folder, "build"))
        os.symlink("/bin/sh", os.path.join(programs, "sh"))
        for name in ("meson", "ninja", "python3", "apt-get", "build/gpuconv"):
            place = os.path.join(folder, name) if "/" in name else os.path.join(programs, name)
            status = 100 if name == "apt-get" and not may_install else 0
            write(place, f'echo {os.path.basename(name)} >>"{log}"\nexit {status}\n')
        if sudo:
            write(os.path.join(programs, "sudo"), f'echo sudo >>"{log}"\nexec "$@"\n')
        done = subprocess.run([shutil.which(shell), "-c", command], cwd=folder, env={"PATH": programs, "HOME": folder},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        with open(log, encoding="utf-8") as file:
            return file.read().split(), done


def main():
    with open(os.path.join(sys.argv[1], "README.md"), encoding="utf-8") as file:
        text = file.read()
    bad = False
    for name, programs in EXPECTED.items():
        command = re.search(f"^<!-- {name} -->\n```sh\n(.*)\n```$", text, re.M)[1]
        for shell in filter(shutil.which, ("sh", "bash", "zsh", "fish")):
            for sudo in (False, True):
                install = ["sudo", "apt-get"] if sudo else ["apt-get"]
                for may_install in (False, True):
                    expected = install * (2 if name == "run" and may_install else 1) + programs
                    called, done = run(shell, command, sudo, may_install)
                    if called != expected or done.returncode != 0:
                        print(f"{shell}, {name}, sudo {sudo}, may install {may_install}: called {called}, expected "
                              f"{expected}; exit status {done.returncode}\n{done.stderr}")
                        bad = True
    return bad


sys.exit(main())
