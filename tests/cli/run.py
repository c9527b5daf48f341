#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run one case of the command line: run.py GPUCONV CASE [--update].

A case is a transcript. Its commands run one after the other in an empty folder. Their output, their exit status and the
files that they leave must be exactly those of the transcript:

    # a comment
    require COMMAND -- REASON      skip the case (exit status 77) unless COMMAND succeeds
    $ gpuconv --bordr              a shell command
    1> text                        a line of its standard output
    2> text                        a line of its standard error
    2~ regex                       the same as a regular expression (also 1~)
    = 2                            its exit status; without this line 0
    files in.png out.png           the files that are left at the end; without this line none

`gpuconv` is the program under test, and `png` is png.py. $ROOT is the source tree and $BAD the folder of the bad
inputs, also in the output. There <9b> is a byte that is not UTF-8. --update writes the actual results into the
transcript; read the change before you keep it."""
import argparse
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from harness import temporary_folder  # noqa: E402
import bad  # noqa: E402

SKIP = 77
SECONDS = 120  # a command that takes longer hangs; the slowest need a few seconds, under sanitizers on a busy machine
FUNCTIONS = 'gpuconv() { "$GPUCONV" "$@"; }\npng() { "$PYTHON" "$ROOT/tests/cli/png.py" "$@"; }\n'
NO_NEWLINE = "\\ no newline at the end"


class Step:
    """A command, and its expected output: for each stream a list of (is a regular expression, line)."""

    def __init__(self, command):
        self.command = command
        self.streams = {"1": [], "2": []}
        self.status = 0


def parse(path):
    """The case as (lines of comments and requirements, steps, files)."""
    head, steps, files = [], [], []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif line.startswith(("1>", "2>", "1~", "2~")) and steps:
                steps[-1].streams[line[0]].append((line[1] == "~", line[3:]))
            elif line.startswith("= ") and steps:
                steps[-1].status = int(line[2:])
            elif line.startswith("files "):
                files = sorted(line[6:].split())
            elif (line.startswith(("#", "require ")) or not line) and not steps:
                head.append(line)
            elif line:
                sys.exit(f"{path}:{number}: not a line of a case: {line}")
    return head, steps, files


def environment(program, root, outer):
    values = dict(os.environ, GPUCONV=program, ROOT=root, PYTHON=sys.executable, HOME=os.path.join(outer, "home"),
                  BAD=os.path.join(outer, "bad"), LC_ALL="C")
    for name in ("GPUCONV_FILTERS", "XDG_CONFIG_HOME"):
        values.pop(name, None)
    return values


def execute(command, folder, values):
    """Run a command to its end and return (exit status, standard output, standard error)."""
    process = subprocess.Popen(["sh", "-c", FUNCTIONS + command], cwd=folder, env=values, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, [], [f"killed after {SECONDS} seconds"]
    return (process.returncode, *(lines_of(text, values) for text in output))


def lines_of(output, values):
    text = output.decode("utf-8", "surrogateescape")
    text = re.sub("[\udc80-\udcff]", lambda byte: f"<{ord(byte[0]) - 0xdc00:02x}>", text)
    for name in ("GPUCONV", "ROOT", "BAD"):
        text = text.replace(values[name], "$" + name)
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return lines + [NO_NEWLINE]


def matches(expected, actual):
    return len(expected) == len(actual) and all(
        re.fullmatch(want, line) if is_regex else want == line for (is_regex, want), line in zip(expected, actual))


def show(label, expected, actual):
    print(f"  {label} expected:")
    for is_regex, line in expected:
        print(f"    {'~' if is_regex else '>'} {line}")
    print(f"  {label} actual:")
    for line in actual:
        print(f"    > {line}")


def run_step(step, folder, values):
    """Run a step and print what is wrong. Afterwards the step holds the actual output, for --update."""
    status, *streams = execute(step.command, folder, values)
    right = status == step.status
    if not right:
        print(f"$ {step.command}\n  exit status expected {step.status}, actual {status}")
        step.status = status
    for label, actual in zip("12", streams):
        if not matches(step.streams[label], actual):
            print(f"$ {step.command}")
            show("standard output" if label == "1" else "standard error", step.streams[label], actual)
            step.streams[label] = [(False, line) for line in actual]
            right = False
    return right


def left_files(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, folders, names in os.walk(folder) for name in names)


def write(path, head, steps, files):
    with open(path, "w", encoding="utf-8") as file:
        for line in head:
            file.write(line + "\n")
        for step in steps:
            file.write(f"$ {step.command}\n")
            for label in "12":
                for is_regex, line in step.streams[label]:
                    file.write(f"{label}{'~' if is_regex else '>'} {line}".rstrip(" ") + "\n")
            if step.status != 0:
                file.write(f"= {step.status}\n")
        if files:
            file.write("files " + " ".join(files) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("case")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    head, steps, files = parse(arguments.case)
    if not steps:
        sys.exit(f"{arguments.case}: no command")
    program = os.path.abspath(arguments.program)
    with temporary_folder() as outer:
        folder = os.path.join(outer, "work")
        os.mkdir(folder)
        values = environment(program, root, outer)
        if any("$BAD" in step.command for step in steps):
            bad.write(values["BAD"])
        for line in head:
            if line.startswith("require "):
                command, reason = line[len("require "):].rsplit(" -- ", 1)
                if execute(command, folder, values)[0] != 0:
                    print(f"skipped: {reason}")
                    return SKIP
        right = all([run_step(step, folder, values) for step in steps])
        left = left_files(folder)
    if left != files:
        print(f"files expected: {' '.join(files)}\nfiles actual:   {' '.join(left)}")
        right = False
    if not right and arguments.update:
        write(arguments.case, head, steps, left)
        print("updated")
        return 0
    return 0 if right else 1


sys.exit(main())
