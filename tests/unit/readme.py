#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README's two commands in every installed shell, in a path with a space: readme.py SOURCES.

They run where the packages are installed, are missing, and cannot be installed. In sh, they run as root, as a user with
sudo and as one without; on Debian, on Fedora, and on a system that packaging/install-packages does not know. The script
is one for sh, so other shells matter to README's own line only. The programs that they call are stand-ins that write
down their names; packaging/install-packages is the real one.
If the tests fail, their results are still printed, and decide the exit status."""
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = {"run": ["meson", "ninja", "gpuconv"], "test": ["meson", "python3"]}
USERS = {"root": [], "user with sudo": ["sudo"], "user without sudo": None}  # what stands before the package manager
STATUSES = ("installed", "missing", "refused")
# The package manager, what asks for a package, its answer, a package, and how often the manager is called.
SYSTEMS = {
    "Debian": ("apt-get", "dpkg-query", "echo installed", "libstb-dev", {"installed": 0, "missing": 2, "refused": 1}),
    "Fedora": ("dnf", "rpm", "exit 0", "stb_image-devel", {"installed": 0, "missing": 1, "refused": 1}),
    "another system": ("pacman", "pacman-query", "exit 0", "libstb-dev", dict.fromkeys(STATUSES, 0)),
}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def run(script, shell, command, user, status, system="Debian", failing=()):
    """Run COMMAND; FAILING programs exit with 1. Return the names of the programs that it called, and how it ended."""
    manager, query, answer, *_ = SYSTEMS[system]
    with tempfile.TemporaryDirectory(prefix="a clone ") as folder:
        programs, log = os.path.join(folder, "bin"), os.path.join(folder, "log")
        os.makedirs(programs)
        os.makedirs(os.path.join(folder, "build"))
        os.symlink("/bin/sh", os.path.join(programs, "sh"))
        os.makedirs(os.path.join(folder, "packaging"))
        shutil.copy(script, os.path.join(folder, "packaging"))
        for path in ("bin/meson", "bin/ninja", "bin/python3", "build/gpuconv", f"bin/{manager}"):
            name = os.path.basename(path)
            result = 100 if name == manager and status == "refused" else int(name in failing)
            write(os.path.join(folder, path), f'echo {name} >>"{log}"\nexit {result}\n')
        write(os.path.join(programs, "id"), f"echo {0 if user == 'root' else 1000}\n")
        write(os.path.join(programs, query), f"{answer if status == 'installed' else 'exit 1'}\n")
        if user == "user with sudo":
            write(os.path.join(programs, "sudo"), f'echo sudo >>"{log}"\nexec "$@"\n')
        done = subprocess.run([shutil.which(shell), "-c", command], cwd=folder, env={"PATH": programs, "HOME": folder},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        with open(log, encoding="utf-8") as file:
            return file.read().split(), done


def check_results(script):
    """The script that README's second command ends with: it gives the reasons, and fails if a test failed."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "meson-logs"))
        for failed in (0, 1):
            tests = [("OK", "a", ""), ("SKIP", "b", "skipped: no GPU\n"), ("FAIL", "c", "")][:2 + failed]
            with open(os.path.join(folder, "meson-logs", "testlog.json"), "w", encoding="utf-8") as log:
                log.writelines(json.dumps({"result": result, "name": name, "stdout": text}) + "\n"
                               for result, name, text in tests)
            done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
            if (done.returncode, done.stdout) != (failed, f"1 skipped, no GPU: b\n1 passed, {failed} failed, 1 skipped\n"):
                sys.exit(f"{script}, {failed} failed: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    check_results(os.path.join(sys.argv[1], "tests", "results.py"))
    with open(os.path.join(sys.argv[1], "README.md"), encoding="utf-8") as file:
        text = file.read()
    script = os.path.join(sys.argv[1], "packaging", "install-packages")
    bad = False
    for name, programs in PROGRAMS.items():
        command = re.search(f"^<!-- {name} -->\n```sh\n(.*)\n```$", text, re.M)[1]
        for shell in filter(shutil.which, ("sh", "bash", "zsh", "fish")):
            systems, users = (SYSTEMS, USERS) if shell == "sh" else (("Debian",), ("root",))
            for system, user, status in itertools.product(systems, users, STATUSES):
                manager, _, _, package, calls = SYSTEMS[system]
                before = USERS[user]
                expected = programs if before is None else [*before, manager] * calls[status] + programs
                called, done = run(script, shell, command, user, status, system)
                says = package in done.stdout + done.stderr or (status == "installed" and system != "another system")
                if called != expected or done.returncode != 0 or not says:
                    print(f"{shell}, {name}, {system}, {user}, packages {status}: called {called}, expected {expected}; "
                          f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
                    bad = True
            for failing in ([["meson"], ["meson", "python3"]] if name == "test" else []):
                called, done = run(script, shell, command, "root", "installed", failing=failing)
                if called != programs or done.returncode != len(failing) - 1:
                    print(f"{shell}, failing {failing}: called {called}, exit status {done.returncode}")
                    bad = True
    return bad


sys.exit(main())
