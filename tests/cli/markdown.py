#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the summary of --compare --markdown: markdown.py GPUCONV.

cmark-gfm, the parser of GitHub, makes HTML of it, and its table must have the names and the words of the other reports.
Skipped (exit status 77) where that is not installed."""
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests, skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
HOSTILE = ["a|b.png", "a\\\\|b.png", "`tick``s`.png", "<img src=x>.png", "@somebody.png", "*bold*_x_.png", "[a](b).png",
           "&amp;.png", "https:/x.org.png", "www.example.png", "~~no~~.png", " blank .png", "#1.png", "ümlaut.png"]


def picture(value):
    return png(2, 1, 1, 8, unfiltered(bytes((value, 9)), 2))


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pathlib.Path(path).write_bytes(data)


def compare(*words, status=1):
    done = subprocess.run([PROGRAM, "--compare", "e", "a", *words], capture_output=True, text=True)
    assert done.returncode == status, done
    return done.stdout


class Parsed(html.parser.HTMLParser):
    """The text of each cell and paragraph, and all tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.texts = set(), [], []
        done = subprocess.run(["cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough"],
                              input=text.encode(), capture_output=True, check=True)
        self.feed(done.stdout.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        elif tag in ("p", "h3", "th"):
            self.texts.append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.rstrip("\n")
        elif self.texts:
            self.texts[-1] += data.rstrip("\n")


def test_hostile_names():
    for i, name in enumerate(HOSTILE):
        put("e/" + name, picture(i))
        put("a/" + name, picture(200))
    put("a/bad @you|<b>.png", b"bad")
    put("e/bad @you|<b>.png", picture(1))
    text = compare("--markdown", "-")
    rows = [json.loads(line) for line in compare("--json").splitlines()]
    parsed = Parsed(text)
    assert [row[:2] for row in parsed.rows if row] == [[row["status"], row["name"]] for row in rows], parsed.rows
    # Mentions are none in <code>, and no name is a link but for www, which leads nowhere new.
    assert parsed.tags <= {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "a"}, parsed.tags
    assert parsed.texts[:2] == ["Images: 15 of 15 need a look", "15 pairs: 0 equal, 14 different, 1 unreadable"], text
    bad = [row for row in parsed.rows if row and row[0] == "unreadable"]
    assert bad[0][2].startswith("a/bad @you|<b>.png: is not a PNG") and "| <code>a/bad" in text, bad


def test_limits():
    for i in range(120):
        put(f"e/{i:03}.png", picture(i))
        if i != 7:
            put(f"a/{i:03}.png", picture(i + 1 if i < 110 else i))
    text = compare("--markdown", "-")
    parsed = Parsed(text)
    assert [row[1] for row in parsed.rows if row] == [f"{i:03}.png" for i in range(50)]
    assert "60 more are not listed." in text and "Images: 110 of 120 need a look" in text
    assert "120 pairs: 10 equal, 109 different, 1 missing" in text
    for i in range(120):
        os.makedirs(f"e/{'*' * 250}/{'|' * 250}/{'_' * 200}", exist_ok=True)
        put(f"e/{'*' * 250}/{'|' * 250}/{'_' * 200}/{i:03}.png", picture(i))
    text = compare("--markdown", "-")
    assert 40000 < len(text) < 65536, len(text)
    Parsed(text)


def test_words():
    put("e/1.png", picture(1))
    put("a/1.png", picture(1))
    answer = compare("--markdown", "summary.md", status=0)
    assert answer == "1 pair: 1 equal\n"
    assert pathlib.Path("summary.md").read_text() == "### Images: none of 1 needs a look\n\n1 pair: 1 equal\n"
    put("a/1.png", picture(2))
    assert "none of 1 needs" in compare("--markdown", "-", "--tolerance", "1", status=0)
    os.remove("a/1.png")
    os.remove("e/1.png")
    assert compare("--markdown", "-").startswith("### Images: nothing was compared\n")
    done = subprocess.run([PROGRAM, "--compare", "e", "a", "--markdown", "x.md", "--html", "x.md"], capture_output=True)
    assert done.returncode == 2 and b"--html and --markdown both write to x.md; give two files" in done.stderr, done
    done = subprocess.run([PROGRAM, "--compare", "e", "a", "--markdown", "none/x.md"], capture_output=True)
    assert done.returncode == 1 and b"none/x.md: cannot be written" in done.stderr, done


def main():
    if not shutil.which("cmark-gfm"):
        skip("cmark-gfm is not installed")
    run_tests(globals())


main()
