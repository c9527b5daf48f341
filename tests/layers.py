#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the rooms, the wall of the house codecs/ and the tables of steps: layers.py [ROOT] [--edges | --self-test].

ROOT is this repository by default.

A room is a folder of src/ or codecs/, or kernels/. A room includes only rooms below it in ROOMS. An #include names the
room ("base/error.h"), so that readers see where a header comes from. The house codecs/ with its tests takes only base
and the device layer, so it can be built and read alone. Only the room filter and two tables name a kind of step. The
exit status is 1 if a file breaks these rules.
--edges also prints how many #include lines lead from each room to another. --self-test plants violations in a copy of
ROOT's sources and expects the check to find each."""
import collections
import pathlib
import re
import shutil
import sys
import tempfile

# From top to bottom.
ROOMS = ["main.c", "app", "library", "compare", "batch", "bench", "pipeline", "codec", "metadata", "container", "jpeg", "png",
         "variants", "cpu", "kernels", "plan", "filter", "image", "archive", "base"]
# The rooms of the house codecs/. Other rooms include only these headers of them.
HEADERS = {"jpeg": ("jpeg/jpeg.h", "jpeg/jpeg_gpu.h"), "png": ("png/png.h", "png/png_gpu.h")}
# What that house takes of kernels/. These files take only base and each other.
DEVICE_LAYER = ("kernels/device/stream.h", "kernels/shared/queue.cuh", "kernels/shared/lanes.cuh", "kernels/shared/prefix.cuh")
# What its tests take of others'.
TEST_HEADERS = ("tests/lib/program.h", "tests/fuzz/fuzz.h")
# Outside of the room filter, these files name kinds of steps. Others ask the table of src/filter/kinds.c.
KIND_TABLES = ("pipeline/steps.c", "variants/table.c")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path):
    """The room of a path that begins at src/ or at the root of the repository: "base/error.h", "kernels/direct.cu"."""
    return path.split("/")[0]


def sources(root):
    """Each source file of each room, and its path as an #include would name it."""
    for folder, prefix in ((root / "src", ""), (root / "codecs/jpeg", "jpeg/"), (root / "codecs/png", "png/"),
                           (root / "kernels", "kernels/")):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".c", ".h", ".cu", ".cuh"):
                yield file, prefix + file.relative_to(folder).as_posix()


def includes(file):
    """The lines of a file that include one of ours: their numbers and the names of the headers."""
    text = file.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def check_wall(root):
    """The violations of the wall around the house codecs/."""
    inside = [file for file in sorted((root / "codecs").rglob("*")) if file.suffix in (".c", ".cc", ".h", ".cu", ".cuh")]
    for file in inside + [root / name for name in DEVICE_LAYER]:
        where = file.relative_to(root)
        is_test = where.parts[0] == "codecs" and where.parts[1] not in HEADERS
        for number, name in includes(file):
            room = room_of(name)
            if not (room == "base" or name in DEVICE_LAYER or (where.parts[0] == "codecs" and room in HEADERS)
                    or (is_test and ("/" not in name or name.startswith("codecs/tests/") or name in TEST_HEADERS))):
                yield f'{where}:{number}: "{name}" is outside base, codecs and the device layer'


def check(root):
    """The violations, and the number of #include lines from each room to each other."""
    violations, edges = list(check_wall(root)), collections.Counter()
    kinds = re.search(r"enum step_kind \{(.*?), STEP_KINDS", (root / "src/filter/filter.h").read_text(encoding="utf-8"))
    kind = re.compile(rf"\b({kinds[1].replace(', ', '|').strip()})\b")
    for file, path in sources(root):
        where, room = file.relative_to(root), room_of(path)
        if room != "filter" and path not in KIND_TABLES and "STEP_" in file.read_text(encoding="utf-8"):
            violations += [f"{where}:{number}: {found[0]} belongs into a table; ask filter_kind(filter)" for number, line
                           in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if (found := kind.search(line))]
        if room not in ROOMS:
            violations.append(f"{where}: {room} is not a room; add it to ROOMS in tests/layers.py, at its place")
            continue
        for number, name in includes(file):
            other = room_of(name)
            if "/" not in name or other not in ROOMS:
                violations.append(f'{where}:{number}: "{name}" does not begin with a room, such as "base/error.h"')
            elif ROOMS.index(other) < ROOMS.index(room):
                violations.append(f'{where}:{number}: {room} includes "{name}", but {other} is above {room}')
            elif other in HEADERS and room != other and name not in HEADERS[other]:
                violations.append(f'{where}:{number}: {room} includes "{name}"; include {" or ".join(HEADERS[other])} only')
            elif other != room:
                edges[room, other] += 1
    return violations, edges


def self_test(root):
    """Plant one violation at a time. Returns the number of those that were not found."""
    plants = [  # file, text at its end, what the check must say
        ("src/base/error.c", '#include "codec/codec.h"\n', 'base includes "codec/codec.h", but codec is above base'),
        ("src/plan/planted.h", '# include "variants/variants.h" /* why */\n', "but variants is above plan"),
        ("kernels/planted.cuh", '#include "pipeline/pipeline.h"\n', "but pipeline is above kernels"),
        ("src/image/deep/planted.c", '\n\n#include "filter/filter.h"\n', "src/image/deep/planted.c:3: image includes"),
        ("src/batch/planted.c", '#include "batch.h"\n', '"batch.h" does not begin with a room'),
        ("src/app/planted.c", '#include "../base/error.h"\n', '"../base/error.h" does not begin with a room'),
        ("src/codec/planted.c", '#include "jpeg/lookup.h"\n', "include jpeg/jpeg.h or jpeg/jpeg_gpu.h only"),
        ("src/pipeline/planted.c", '#include "png/inflate.h"\n', "include png/png.h or png/png_gpu.h only"),
        ("kernels/planted.cu", '#include "jpeg/jpeg.h"\n', "but jpeg is above kernels"),
        ("codecs/jpeg/encode.c", '#include "image/rows.h"\n', '"image/rows.h" is outside base, codecs and the device layer'),
        ("codecs/png/planted.cuh", '#include "kernels/device/device.h"\n', '"kernels/device/device.h" is outside base'),
        ("codecs/tests/png/planted.c", '#include "codec/codec.h"\n', '"codec/codec.h" is outside base'),
        ("kernels/shared/queue.cuh", '#include "plan/plan.h"\n', '"plan/plan.h" is outside base'),
        ("src/plan/plan.c", "int kind = STEP_RESIZE;\n", "STEP_RESIZE belongs into a table"),
        ("kernels/copy.cu", "// of STEP_MOVE\n", "STEP_MOVE belongs into a table"),
        ("src/attic/planted.c", "int planted;\n", "attic is not a room"),
        ("src/planted.c", "int planted;\n", "planted.c is not a room"),
    ]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        copy = pathlib.Path(folder)
        for name in ("src", "kernels", "codecs"):
            shutil.copytree(root / name, copy / name)
        before = check(copy)[0]
        for name, text, expected in plants:
            file = copy / name
            old = file.read_bytes() if file.exists() else None
            file.parent.mkdir(exist_ok=True)
            file.write_bytes((old or b"") + text.encode())
            found = [line for line in check(copy)[0] if line not in before]
            if len(found) != 1 or name not in found[0] or expected not in found[0]:
                print(f"planted in {name}: {text!r}; expected: {expected}; found: {found}")
                missed += 1
            file.unlink()
            if old is not None:
                file.write_bytes(old)
        if check(copy)[0] != before:
            print("the copy differs after the test")
            missed += 1
    print(f"{len(plants)} violations planted, {missed} missed")
    return missed


def main():
    operands = [word for word in sys.argv[1:] if not word.startswith("--")]
    root = pathlib.Path(operands[0] if operands else pathlib.Path(__file__).resolve().parents[1])
    if "--self-test" in sys.argv:
        return 1 if self_test(root) else 0
    violations, edges = check(root)
    for violation in violations:
        print(violation)
    if "--edges" in sys.argv:
        for room in ROOMS:
            below = [f"{other} ({edges[room, other]})" for other in ROOMS if (room, other) in edges]
            if below:
                print(f"{room:10} {', '.join(below)}")
    print(f"{len(edges)} edges between rooms, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
