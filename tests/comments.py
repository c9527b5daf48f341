#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the comments of src/, codecs/, kernels/, python/ and tests/: comments.py [ROOT] [--self-test].

A line of a comment has at most 120 columns: clang-format does not reflow comments. No comment writes a word and a
colon for "if", as in "NULL: there is none". No comment begins with "of" or "the same", or tells a number by "so" and
"many": it names the noun, the unit and the owner, as in "bytes of one row of the image". ROOT is this repository by
default. The exit status is 1 if a comment breaks these rules. --self-test checks texts that break them, and texts that
do not."""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

COLUMNS = 120
# Strings count, because a comment cannot begin in them.
C = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
SHELL = re.compile(r"^[ \t]*#[^\n]*", re.M)
WORD_AND_COLON = re.compile(r"(?:^(?:/\*+|//+|#+)\s*|[.;]\s+(?:[*#]\s+)?)"
                            r"(NULL|0|-1|[Ff]alse|[Tt]rue|None|[Nn]egative):\s+(?:[*#]\s+)?[a-z]")
VAGUE = re.compile(r'^(?:/\*+|//+|#+|[rR]?""")\s*((?:of|the same)\b)|\b(so\s+(?:[*#]\s+)?many)\b', re.I)


def comments(name, text):
    """The number of the first line of each comment, and its text. Python's long strings count as comments."""
    if name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and '"""' in token.string[:4]):
                yield token.start[0], token.string
        return
    for match in (SHELL if name.endswith(".sh") else C).finditer(text):
        if match[0][0] not in "\"'":
            yield text.count("\n", 0, match.start()) + 1, match[0]


def violations(name, text):
    lines = text.split("\n")
    for first, comment in comments(name, text):
        for number in range(first, first + comment.count("\n") + 1):
            if len(lines[number - 1]) > COLUMNS:
                yield f"{name}:{number}: the comment has {len(lines[number - 1])} columns, and {COLUMNS} are allowed"
        for match in WORD_AND_COLON.finditer(comment):
            number = first + comment.count("\n", 0, match.start(1))
            yield f'{name}:{number}: "{match[1]}:" stands for "if"; write a sentence'
        for match in VAGUE.finditer(comment):  # it does not name what it is about
            words = " ".join((match[1] or match[2]).split())
            number = first + comment.count("\n", 0, match.start())
            yield f'{name}:{number}: "{words}" names nothing; say the noun, the unit and the owner'


def self_test():
    """The number of the texts that are not judged as they should be."""
    long = "word " * 30
    texts = [  # name, text, the lines with a violation
        ("a.c", f"/* {long} */\n", [1]), ("a.c", f"/* {long[:100]} */\n", []), ("a.c", f'f("{long}");\n', []),
        ("a.c", f'f("/*{long}"); /* why */\n', [1]), ("a.cu", f"int a; // {long}\n", [1]),
        ("a.h", f"/* First.\n * {long}\n */\n", [2]), ("a.py", f"# {long}\n", [1]), ("a.py", f'"""{long}"""\n', [1]),
        ("a.py", f'print("{long}")\n', []), ("a.sh", f"# {long}\n", [1]), ("a.sh", f"echo {long}\n", []),
        ("a.c", "char *a; /* NULL: there is none */\n", [1]), ("a.c", "/* A file; NULL: none */\n", [1]),
        ("a.c", "/* Make it.\n * False: there is no memory. */\n", [2]), ("a.py", "f()  # None: all of them\n", [1]),
        ("a.h", "int a; /* -1: not known */\nint b; /* A row; negative: none */\n", [1, 2]),
        ("a.c", "/* NULL if there is none */\n", []), ("a.c", 'f("0: none");\n', []),
        ("a.c", "/* 1.0: the scale */\n", []),
        ("a.c", "switch (a) {\ncase 0: b();\n}\n", []), ("a.c", "/* These are 0: NULL, and the rest. */\n", []),
        ("a.h", "int a; /* of a row */\nint b; /* the same, for 16 bits */\n", [1, 2]),
        ("a.cu", "int a; // Of a tile\n", [1]),
        ("a.c", "/* Copy rows.\n * They are so\n * many that it takes long. */\n", [2]),
        ("a.sh", "# of each file\n", [1]),
        ("a.py", '"""The same for floats."""\n', [1]), ("a.py", "a = 1  # so many at once\n", [1]),
        ("a.c", "/* bytes of a row */ /* The offset of the same row */\n", []), ("a.c", 'f("/* of a row */");\n', []),
    ]
    missed = 0
    for name, text, expected in texts:
        found = [int(line.split(":")[1]) for line in violations(name, text)]
        if found != expected:
            print(f"{text!r} in {name}: expected lines {expected}, found {found}")
            missed += 1
    print(f"{len(texts)} texts, {missed} misjudged")
    return missed


def main():
    if "--self-test" in sys.argv:
        return 1 if self_test() else 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    listed = subprocess.run(["git", "ls-files", "-z", "src", "codecs", "kernels", "python", "tests"], cwd=root, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.split("\0")
    found = 0
    for name in listed:
        if name.endswith((".c", ".h", ".cu", ".cuh", ".py", ".sh")) and (root / name).is_file():
            for line in violations(name, (root / name).read_text(encoding="utf-8")):
                print(line)
                found += 1
    print(f"{found} comments break the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
