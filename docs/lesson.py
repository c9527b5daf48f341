#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write the quotations and drawings of docs/kernels.md and of the book in docs/learn/:

    lesson.py            writes the drawings, and the code below each line <!-- code: ... --> of the pages
    lesson.py --check    writes nothing, and fails where something is out of date, a drawing is in no page, or an answer
                         shows before it is asked for

A quotation is <!-- code: FILE | FIRST | LAST -->: of a file of kernels/ or docs/, from the first line that contains
FIRST to the next that contains LAST, or to the "end of file". The drawings are those of kernel_drawings.py and
learn_drawings.py."""
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
import kernel_drawings  # noqa: E402
import learn_drawings  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parent


def quotation(match):
    """The lines that a marker asks for."""
    name, first, last = (word.strip() for word in match.group(1).split("|"))
    lines = (DOCS.parent / name).read_text(encoding="utf-8").splitlines()
    start = next((i for i, line in enumerate(lines) if first in line), None)
    end = len(lines) - 1 if last == "end of file" else next(
        (i for i, line in enumerate(lines) if start is not None and i >= start and last in line), None)
    if start is None or end is None:
        sys.exit(f"a page quotes {name} from \"{first}\" to \"{last}\", and there are no such lines")
    lines = lines[start:end + 1]
    indent = min(len(line) - len(line.lstrip()) for line in lines if line and line[0] != "#")  # pragmas have none
    quoted = "\n".join(line if line.startswith("#") else line[indent:] for line in lines)
    language = "c" if name.endswith(".c") else "cuda"
    return f"<!-- code: {match.group(1)} -->\n```{language}\n{quoted}\n```\n"


def drawn(folder, drawings, pages):
    """The texts of the drawings, by their paths. Each is in one of the pages."""
    texts = {}
    for draw in drawings:
        path = DOCS / folder / f"{draw.__name__.replace('_', '-')}.svg"
        if not any(f"({path.relative_to(page.parent)})" in text for page, text in pages.items()
                   if path.is_relative_to(page.parent)):
            sys.exit(f"no page shows {path.relative_to(DOCS)}")
        texts[path] = draw().svg()
    return texts


def main():
    pages = {page: page.read_text(encoding="utf-8")
             for page in [DOCS / "kernels.md", *sorted((DOCS / "learn").glob("*.md"))]}
    fresh = {page: re.sub(r"<!-- code: (.*?) -->\n(?:```c(?:uda)?\n.*?\n```\n)?", quotation, text, flags=re.S)
             for page, text in pages.items()}
    fresh |= drawn("kernels", kernel_drawings.DRAWINGS, pages) | drawn(
        "learn", [*learn_drawings.DRAWINGS, *kernel_drawings.STEPS], pages)
    answers = re.sub(r"<details>.*?</details>", "", pages[DOCS / "learn/answers.md"], flags=re.S).partition("\n## ")[2]
    stale = len(re.findall(r"^(?!#|$).+", answers.partition("\n")[2], re.M))
    if stale:
        print("docs/learn/answers.md has lines outside <details>")
    for path, text in fresh.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv:
            print(f"{path.relative_to(DOCS.parent)} is out of date; run docs/lesson.py")
            stale += 1
            continue
        path.write_text(text, encoding="utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
