#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The links in the pages and the notebook lead to files and headings that there are: links.py SOURCES.

NEWS.md is left out: it links to pages as they were in a release. The line under the title of each page in a folder says
for whom the page is, what it answers, and how long it takes, at 200 words a minute, give or take a half."""
import json
import pathlib
import re
import sys


LINE = re.compile(r"\*For [^:]+: [^:]+\. (?:(\d+) minutes?|To look things up(?:; chapter 1 takes (\d+) minutes)?)\.\*")


def anchors(text):
    """The names that GitHub gives to headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in re.findall(r"^#+ (.*)", text, re.M))
    return {title.replace(" ", "-") for title in titles}


def text_of(path):
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return path.read_text(encoding="utf-8")


def wrong_links(page):
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or anchor and anchor not in anchors(text_of(target)):
            yield link


def wrong_lines(page):
    """The line under the title, if it is another one."""
    text = text_of(page)
    line = text.split("\n\n")[1]
    found = LINE.fullmatch(line)
    if not found:
        yield line.split("\n")[0]
    elif found[1] or found[2]:
        minutes = len((text if found[1] else text.split("\n## ")[1]).split()) / 200
        if not minutes / 2 <= int(found[1] or found[2]) <= minutes * 2:
            yield f"{line} It takes {minutes:.1f} minutes"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [page for page in root.glob("*.md") if page.name != "NEWS.md"]
    pages += [page for folder in ("codecs", "docs", "packaging", "samples", "tests") for kind in ("md", "ipynb")
              for page in (root / folder).rglob(f"*.{kind}")]
    assert len(pages) > 20, pages
    wrong = [f"{page.relative_to(root)}: {link}" for page in sorted(pages) for link in wrong_links(page)]
    assert not wrong, "these lead nowhere:\n" + "\n".join(wrong)
    ours = [page for page in sorted(pages) if page.suffix == ".md" and page.parent not in (root, root / "tests/data/pngsuite")]
    wrong = [f"{page.relative_to(root)}: {line}" for page in ours for line in wrong_lines(page)]
    assert not wrong, "the line under the title is not *For WHOM: WHAT. N minutes.*:\n" + "\n".join(wrong)


main()
