# SPDX-License-Identifier: MIT
"""One HTML page about all golden pictures that do not match: the expected picture, the actual one, and where they
differ. Several tests run at once. So each failure writes a fragment of its own, and then makes the page again from all
fragments."""
import base64
import contextlib
import fcntl
import glob
import html
import os

HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>gpuconv: golden pictures that do not match</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 2em; background: #eee; color: #222 }
section { background: #fff; border: 1px solid #ccc; padding: 0 1em 1em; margin: 1em 0 }
div { display: flex; flex-wrap: wrap; gap: 1em }
figure { margin: 0; width: 340px }
img { image-rendering: pixelated; width: 100%; box-sizing: border-box; border: 1px solid #888; background: #fff }
pre { white-space: pre-wrap }
</style>
<h1>Golden pictures that do not match</h1>
"""
TAIL = """<p>If a change is meant: <code>tests/golden/update.py build/gpuconv</code>.</p>
</html>
"""


@contextlib.contextmanager
def locked(folder):
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def figure(path, caption):
    if not os.path.exists(path):
        return f"<figure><figcaption>{caption}: there is none</figcaption></figure>\n"
    with open(path, "rb") as file:
        data = file.read()
    width, height, bits = (int.from_bytes(data[at:end], "big") for at, end in ((16, 20), (20, 24), (24, 25)))
    facts = f"{width} × {height} pixels, {bits} bits a sample"  # all are drawn as wide as each other
    return (f'<figure><img alt="{caption}" src="data:image/png;base64,{base64.b64encode(data).decode("ascii")}">'
            f"<figcaption>{caption}<br>{facts}</figcaption></figure>\n")


def assemble(folder):
    """Write report.html from all fragments, or remove it where there is none."""
    page = os.path.join(folder, "report.html")
    fragments = sorted(glob.glob(os.path.join(glob.escape(folder), "*.fragment")))
    if not fragments:
        with contextlib.suppress(FileNotFoundError):
            os.remove(page)
        return
    with open(page + ".new", "w", encoding="utf-8") as file:
        file.write(HEAD)
        for fragment in fragments:
            with open(fragment, encoding="utf-8") as part:
                file.write(part.read())
        file.write(TAIL)
    os.rename(page + ".new", page)


def add(folder, key, title, text, expected, actual, difference):
    """Put the failure KEY on the page, with its three pictures in it. Returns the path of the page."""
    with locked(folder):
        with open(os.path.join(folder, key + ".fragment"), "w", encoding="utf-8") as file:
            file.write(f"<section>\n<h2>{html.escape(title)}</h2>\n<pre>{html.escape(text)}</pre>\n<div>\n")
            file.write(figure(expected, "expected"))
            file.write(figure(actual, "actual"))
            file.write(figure(difference, "difference, the largest drawn white"))
            file.write("</div>\n</section>\n")
        assemble(folder)
    return os.path.join(folder, "report.html")


def remove(folder, key):
    """Take KEY off the page."""
    with locked(folder):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, key + ".fragment"))
        assemble(folder)
