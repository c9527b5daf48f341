#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The links in the pages and the notebook lead to files and headings that there are: links.py SOURCES.

NEWS.md is left out: it links to pages as they were in a release."""
import json
import pathlib
import re
import sys


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


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [page for page in root.glob("*.md") if page.name != "NEWS.md"]
    pages += [page for folder in ("codecs", "docs", "packaging", "samples", "tests") for kind in ("md", "ipynb")
              for page in (root / folder).rglob(f"*.{kind}")]
    assert len(pages) > 20, pages
    wrong = [f"{page.relative_to(root)}: {link}" for page in sorted(pages) for link in wrong_links(page)]
    assert not wrong, "these lead nowhere:\n" + "\n".join(wrong)


main()
