#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the interface of the library with interface.txt: interface.py [--update] CC... LIBRARY SOURCES.

It has the exported symbols, the declarations of the functions, the values of the enums, and the offset and the size of
each member of the structs. A line that changes or goes breaks programs that are built already: the soname must change.
New lines are fine: --update writes them. The man page and the symbols of the Debian package name each function.

Whatever is in interface.txt, all that the first header with this soname has, oldest/gpuconv.h, must be as it was; only
reserved members may shrink."""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run, temporary_folder  # noqa: E402


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def layouts(compiler, header, text):
    """A line for each enum value and each member, as the compiler lays them out."""
    prints = []
    for name, body in re.findall(r"\nenum (\w+) \{(.*?)\};", text, re.S):
        for value in re.findall(r"\b(GPUCONV_\w+)", body):
            prints.append(f'printf("enum {name} {value} %d\\n", (int){value});')
    for name, body in re.findall(r"\nstruct (\w+) \{(.*?)\n\};", text, re.S):
        prints.append(f'printf("struct {name} %zu bytes\\n", sizeof(struct {name}));')
        for declaration in body.split(";"):
            for member in re.findall(r"(\w+)(?:\[\w+\])?\s*(?:,|$)", declaration.strip()):
                field = f"((struct {name} *)0)->{member}"
                prints.append(f'printf("struct {name} {member} at %zu, %zu bytes\\n", '
                              f"offsetof(struct {name}, {member}), sizeof {field});")
    with temporary_folder() as folder:
        source, program = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ {" ".join(prints)} return 0; }}\n',
                          encoding="utf-8")
        run(*compiler, "-Wall", str(source), "-o", str(program))
        return run(str(program)).stdout.splitlines()


def declarations_of(text):
    return [" ".join(match.split()) for match in re.findall(r"\nGPUCONV_API ([^;]*);", text)]


def names_of(declarations):
    return sorted(re.search(r"(gpuconv_\w+)\(", line).group(1) for line in declarations)


def check_oldest(compiler, found, declared):
    header = pathlib.Path(__file__).resolve().with_name("oldest") / "gpuconv.h"
    text = without_comments(header.read_text(encoding="utf-8"))
    gone = [name for name in names_of(declarations_of(text)) if name not in declared]
    gone += [line for line in layouts(compiler, header, text) if line not in found and " reserved at " not in line]
    if gone:
        sys.exit(f"programs that were built with {header} break, so the soname must change:\n" + "\n".join(gone))


def main():
    update = "--update" in sys.argv
    *compiler, library, sources = [word for word in sys.argv[1:] if word != "--update"]
    sources = pathlib.Path(sources).resolve()
    header = sources / "src" / "library" / "gpuconv.h"
    text = without_comments(header.read_text(encoding="utf-8"))
    declarations = declarations_of(text)
    declared = names_of(declarations)
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = sorted(line.split()[-1].split("@")[0] for line in symbols.splitlines() if " A " not in line)
    if exported != declared:
        sys.exit(f"declared, but not exported: {sorted(set(declared) - set(exported))}\n"
                 f"exported, but not declared: {sorted(set(exported) - set(declared))}")
    for page in [sources / "docs" / "gpuconv.3", *sources.glob("debian/*.symbols")]:
        named = set(re.findall(r"\w+", page.read_text(encoding="utf-8")))
        missing = [name for name in declared if name not in named]
        if missing:
            sys.exit(f"{page} does not name {missing}")
    found = declarations + layouts(compiler, header, text)
    check_oldest(compiler, found, declared)
    record = pathlib.Path(__file__).with_name("interface.txt")
    if update:
        record.write_text("\n".join(found) + "\n", encoding="utf-8")
    expected = record.read_text(encoding="utf-8").splitlines()
    gone = [line for line in expected if line not in found]
    new = [line for line in found if line not in expected]
    if gone:
        sys.exit("these lines of tests/library/interface.txt are no longer true, so the soname must change:\n" +
                 "\n".join(gone))
    if new:
        sys.exit("run tests/library/interface.py --update, which adds these lines:\n" + "\n".join(new))
    print(f"{len(declared)} functions, {len(found)} lines")


main()
