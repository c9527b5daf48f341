#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Complete command lines as a shell would: completions.py GPUCONV FOLDER bash|zsh|fish.

Every option of --help all must be offered, with the words that it takes, and the filters, in zsh and fish with their
titles. Then a shell on a terminal of its own gets keys. Skipped (exit status 77) if the shell is not installed, or,
after the first checks, if there is no terminal."""
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from harness import fork_on_terminal, run, skip, temporary_folder  # noqa: E402

BASH = r'''
source "$FOLDER/gpuconv.bash"
for line in "$@"; do
    IFS=" " read -ra COMP_WORDS <<<"${line}x"
    COMP_WORDS[-1]=${COMP_WORDS[-1]%x}
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _gpuconv
    printf '%s\n' "${COMPREPLY[@]}" ""
done
'''
FISH = r'''
source "$FOLDER/gpuconv.fish"
for line in $argv
    complete -C $line | string replace -r '\t.*' ''
    echo
end
'''
# The specifications that zsh's _arguments receives, and the words that the filters' function adds.
ZSH = r'''
_arguments() { print -rl -- "$@"; }
_describe() { print -rl -- "${(@P)4}"; }
_files() { :; }
compset() { :; }
source "$FOLDER/_gpuconv"
print
_gpuconv_filters
print
_gpuconv_bench_filters
'''

# How a shell starts on a terminal, and the lines that it gets first.
LIVE = {
    "bash": (["--norc"], 'source "$FOLDER/gpuconv.bash"; bind "set bell-style none"'),
    "zsh": (["-f"], 'bindkey -e; unsetopt beep; fpath=($FOLDER $fpath); autoload -Uz compinit; compinit -u -D'),
    "fish": (["--no-config"], 'set fish_autosuggestion_enabled 0; source "$FOLDER/gpuconv.fish"'),
}
# The text before the key TAB, and the words of the line after it.
TYPED = {
    "gpuconv --bord": ["gpuconv", "--border"],
    "gpuconv --border wr": ["gpuconv", "--border", "wrap"],
    "gpuconv --variant tensor": ["gpuconv", "--variant", "tensor-core"],
    "gpuconv --show embo": ["gpuconv", "--show", "emboss"],
    "gpuconv embo": ["gpuconv", "emboss"],
    "gpuconv gaussian3,embo": ["gpuconv", "gaussian3,emboss"],
    "gpuconv --flip embo": ["gpuconv", "--flip", "emboss"],
    "gpuconv blur blu": ["gpuconv", "blur", "blue photo.png"],
}


def fail(text):
    print(text)
    sys.exit(1)


def type_keys(shell, home, values):
    """Type the lines of TYPED into the shell, each with TAB at its end. Let it print the words that are then there."""
    arguments, setup = LIVE[shell]
    out = os.path.join(home, "out")
    process, terminal = fork_on_terminal()
    if process == 0:
        os.chdir(home)
        os.execvpe(shell, [shell, *arguments, "-i"], dict(values, TERM="vt100", OUT=out))

    def wait(lines):
        end, shown = time.monotonic() + 60, b""
        while not os.path.exists(out) or open(out, encoding="utf-8").read().count("\n") < lines:
            if time.monotonic() > end:
                fail(f"{shell} does not answer:\n{shown.decode(errors='replace')}")
            if select.select([terminal], [], [], 0.02)[0]:
                shown += os.read(terminal, 65536)

    os.write(terminal, f'{setup}; echo ready >>"$OUT"\n'.encode())
    wait(1)
    for i, line in enumerate(TYPED):  # control-A goes to the line's beginning, control-E to its end
        os.write(terminal, f'{line}\t\1printf "%s|" \5 >>"$OUT"; echo >>"$OUT"\n'.encode())
        wait(2 + i)
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(process, 0)
    with open(out, encoding="utf-8") as file:
        answers = [line.split("|")[:-1] for line in file.read().splitlines()[1:]]
    for (line, expected), actual in zip(TYPED.items(), answers):
        if [word.rstrip("=") for word in actual] != expected:
            fail(f"{shell}, typed: {line}, expected: {expected}, actual: {actual}")


def check_titles(offered, titles):
    if offered != titles:
        fail(f"filters and titles: {sorted(set(offered.items()) ^ set(titles.items()))} are missing or too many")


def main():
    program, folder, shell = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    if not shutil.which(shell):
        skip(f"{shell} is not installed")
    text = run(program, "--help", "all").stdout
    options = re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]*)", text, re.M)
    letters = re.findall(r"^  (-\w), --", text, re.M)
    titles = {re.sub(r"(\[?):.*", lambda found: "" if found[1] else ":", entry["name"]): entry["title"]
              for entry in json.loads(run(program, "--list", "--json").stdout)}
    filters = list(titles)
    table = run(program, "--list-variants").stdout
    variants = [line.split()[0] for line in table.splitlines() if re.match(r"\S+ +(cpu|cuda) ", line)]
    if len(options) < 20 or len(filters) < 20 or len(variants) < 10:
        fail(f"--help all, --list or --list-variants could not be read: {options} {filters} {variants}")
    with temporary_folder() as home:
        open(os.path.join(home, "blue photo.png"), "w").close()
        values = dict(os.environ, HOME=home, FOLDER=folder, LC_ALL="C.UTF-8", GPUCONV_FILTERS="",
                      PATH=os.path.dirname(program) + ":" + os.environ["PATH"])

        def output_of(*command):
            done = subprocess.run(command, cwd=home, env=values, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60)
            if done.stderr or done.returncode != 0:
                fail(f"{shell}: exit status {done.returncode}: {done.stderr}")
            return done.stdout

        if shell == "zsh":
            specs, offered = output_of("zsh", "-f", "-c", ZSH, "_gpuconv").split("\n\n", 1)
            found = re.findall(r"^(--?[a-zA-Z0-9-]+)=?\[", specs, re.M)
            if sorted(found) != sorted(options + letters):
                fail(f"options: {sorted(set(options + letters) ^ set(found))} are missing or too many")
            if not re.search(r"^--border=\[.*\]:BORDER:\(replicate reflect reflect101 wrap zero\)$", specs, re.M) or \
                    not re.search(r"^--variant=\[.*\]:NAME:\(" + " ".join(variants) + r"\)$", specs, re.M) or \
                    not re.search(r"^--quality=\[.*\]:N:\(keep\)$", specs, re.M) or \
                    not re.search(r"^--bench-filter=\[.*\]:filter:_gpuconv_bench_filters$", specs, re.M) or \
                    not re.search(r"^--show=\[.*\]:filter:_gpuconv_filters$", specs, re.M):
                fail(f"the words of --border, --variant, --quality, --bench-filter or --show are wrong:\n{specs}")
            offered, of_bench = offered.split("\n\n", 1)
            if not set(of_bench.splitlines()) - set(offered.splitlines()) >= {"int8-9:random taps from -127 to 127"}:
                fail(f"the filters of --bench-filter are wrong:\n{of_bench}")
            check_titles(dict(re.fullmatch(r"(.*?[^\\]):(.*)", line).groups() for line in offered.splitlines()),
                         {name.replace(":", "\\:"): title for name, title in titles.items()})
            type_keys(shell, home, values)
            print(f"{len(options)} options, {len(filters)} filters, {len(variants)} variants, {len(TYPED)} lines typed")
            return 0

        def complete(line):
            command = (shell, "-c", BASH, "bash") if shell == "bash" else (shell, "--no-config", "-c", FISH)
            return sorted(word.rstrip("/") for word in output_of(*command, line).splitlines() if word)

        if shell == "fish":
            offered = output_of(shell, "--no-config", "-c",
                                'source "$FOLDER/gpuconv.fish"; complete -C "gpuconv --show "')
            check_titles(dict(line.split("\t") for line in offered.splitlines()), titles)
        cases = {
            "gpuconv --": options,
            "gpuconv --border re": ["reflect", "reflect101", "replicate"],
            "gpuconv --variant ": variants,
            "gpuconv --codec st": ["stb"],
            "gpuconv --quality ": ["keep"],
            "gpuconv --device ": ["all"],
            "gpuconv --show gaussian": [name for name in filters if name.startswith("gaussian")],
            "gpuconv emb": ["emboss"],
            "gpuconv --threads 2 --flip emb": ["emboss"],
            "gpuconv --threads 2 --flip blur emb": [],
            "gpuconv --compare emb": [],
            "gpuconv gaussian3,emb": ["gaussian3,emboss"],
            "gpuconv --bench --bench-filter emboss,int8-": [f"emboss,int8-{side}" for side in (3, 5, 7, 9, 15, 31)],
            "gpuconv --threads ": [],
        }
        if shell == "bash":
            cases["gpuconv -"] = options + letters
            cases["gpuconv --border = wr"] = ["wrap"]
            cases["gpuconv --border ="] = ["reflect", "reflect101", "replicate", "wrap", "zero"]
            cases["gpuconv blur blu"] = ["blue photo.png"]
        for line, expected in cases.items():
            actual = complete(line)
            if actual != sorted(expected):
                fail(f"{line}: {sorted(set(actual) ^ set(expected))} are missing or too many")
        type_keys(shell, home, values)
    print(f"{len(options)} options, {len(filters)} filters, {len(variants)} variants, {len(cases)} lines, "
          f"{len(TYPED)} lines typed")
    return 0


sys.exit(main())
