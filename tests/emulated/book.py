#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of docs/learn/, and what its pages make of them, at small sizes on the emulated GPU:

    book.py OUT.cc DEPENDENCIES    makes one program of all
    book.py --check PROGRAM        runs each of them three times, with other orders of threads each time. The programs
                                   of docs/learn/wrong.md must be wrong until they are mended"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no files in the sources
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import learn  # noqa: E402

RUNS = 3
SMALL = {"side = 16384": "side = 128", "y += 127": "y++", "run < 20": "run < 1", "bytes = (size_t)1 << 28": "bytes = 1 << 16",
         "noise = 640": "noise = 64", "runs = 10": "runs = 1", "16392 * 16392": "20000", "15, 3058,": "15, 66,",
         "9, 16384,": "9, 128,"}
# The emulated GPU knows no assembly and no properties of a GPU. Blocks of 512 columns are too wide for this side.
LEFT_OUT = re.compile(r"asm\(|__pipeline|cudaDeviceProp|side / 512")
# What finds that a kernel accesses other memory: a sanitizer, or the guards of the emulated GPU.
BEYOND = re.compile("runtime error: index|AddressSanitizer: use-after-poison|wrote after a buffer")
MAIN = """
static int call(int (*program)(), int, char **)
{
    return program();
}

static int call(int (*program)(int, char **), int count, char **words)
{
    return program(count, words);
}

/* FILE ANSWER RUNS WORDS...: run a program. The status is the number of runs that failed. */
int main(int count, char **words)
{
    int failed = 0;
    for (int run = 0; run < atoi(words[3]); run++) {
%s    }
    return failed;
}
"""


def programs():
    return {key: text for key, text in learn.sources().items() if key[0].endswith(".cu") and not LEFT_OUT.search(text)}


def space(key):
    return re.sub(r"\W", "_", "program {} {}".format(*key))


def emulated(key, text, headers):
    """The text of a program in a namespace. HEADERS of C++ stay outside."""
    folder = (learn.LEARN / key[0]).parent
    text = re.sub(r'#include "(.*)"\n', lambda match: (folder / match[1]).read_text(encoding="utf-8"), text)
    for large, small in SMALL.items():
        text = text.replace(large, small)
    headers += re.findall(r"#include <.*>\n", text)
    text = re.sub(r"#include <.*>\n|#pragma once\n", "", text).replace("static __global__", "__global__")
    text = re.sub(r"(\w+)<<<(.*?)>>>", r'emulated_kernel("\1", \1, \2)', text, flags=re.S)
    return f"namespace {space(key)}\n{{\n{text}}}\n"


def make(target, dependencies):
    headers = ['#include "runtime.h"\n']
    texts = [emulated(key, text, headers) for key, text in programs().items()]
    calls = [f'        if (strcmp(words[1], "{key[0]}") == 0 && atoi(words[2]) == {key[1]})\n'
             f"            failed += call({space(key)}::main, count - 3, words + 3) != 0;\n" for key in programs()]
    target.write_text("".join([*dict.fromkeys(headers), *texts, MAIN % "".join(calls)]), encoding="utf-8")
    files = [ROOT / "benchmarks/learn.py", *learn.LEARN.rglob("*.cu*"), *learn.LEARN.glob("*.md")]
    dependencies.write_text(f"{target}: {' '.join(map(str, files))}\n", encoding="utf-8")


def check(program):
    for name, answer in programs():
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, learn.ARGUMENTS[0]).write_bytes(learn.picture(33, 17))
            words = [program, name, str(answer), str(RUNS), *learn.ARGUMENTS]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        print(name, answer, done.stdout.splitlines()[-1:], flush=True)
        if learn.is_wrong((name, answer)):
            assert done.returncode == RUNS or BEYOND.search(done.stderr), done
        else:
            assert done.returncode == 0, done


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(os.path.abspath(sys.argv[2]))
    else:
        make(*map(pathlib.Path, sys.argv[1:]))
