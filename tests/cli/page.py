#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the page of --compare --html as a text: page.py GPUCONV.

The page is parsed, and its rows, names, pictures and thumbnails are compared with the files. tests/browser/ has what a
browser makes of it."""
import base64
import hashlib
import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from harness import run_tests  # noqa: E402
from read_png import decode  # noqa: E402
from write_png import chunk, png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
SIDE = 160  # the longest side of a thumbnail
ROWS = 2000  # that have thumbnails
HOSTILE = [b'"><script>alert(1)</script>.png', b"#hash?query%41 space.png", b"&amp;'\".png", b"</script><!--.png",
           b"javascript:alert(1).png", b"new\nline.png", b"not-utf8-\x9b.png", b"\xe2\x80\xaereversed.png",
           "ä/ümlaut.png".encode(), b"x..png"]


def picture(width, height, channels, samples, bits=8):
    return png(width, height, channels, bits, unfiltered(bytes(samples), width * channels * bits // 8))


def put(path, data):
    os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def compare(*arguments, status=1):
    done = subprocess.run([PROGRAM, "--compare", *arguments], capture_output=True)
    assert done.returncode == status, (arguments, done)
    return done


class Page(html.parser.HTMLParser):
    """The rows of a page, as (kind, name, words, links); a link is its attributes, with those of its image."""

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.rows, self.open, self.scripts, self.buttons = [], [], 0, {}
        self.feed(self.text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
        self.scripts += tag == "script"
        if tag == "li":
            self.rows.append({"kind": attributes["data-kind"], "name": "", "words": "", "links": {}, **attributes})
        elif tag == "button" and "data-kind" in attributes:
            self.buttons[attributes["data-kind"]] = ""
        elif tag == "a":
            self.rows[-1]["links"][attributes["class"]] = attributes
        elif tag == "img":
            assert self.open[-1][0] == "a"
            self.open[-1][1]["image"] = attributes
        if tag in ("li", "h2", "p", "div", "a", "span", "figure", "ol", "nav", "button", "section", "dialog", "table"):
            self.open.append((tag, attributes))

    def handle_endtag(self, tag):
        if self.open and tag == self.open[-1][0]:
            self.open.pop()
        else:
            assert tag not in ("li", "h2", "p", "div", "a"), (tag, self.open)

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        if "li" in tags and self.open[-1][1].get("class") == "name":
            self.rows[-1]["name"] += data
        elif "li" in tags and tags[-1] == "p":
            self.rows[-1]["words"] += data
        elif "button" in tags and "data-kind" in dict(self.open)["button"]:
            self.buttons[dict(self.open)["button"]["data-kind"]] += data.strip(" \n")


def brought(page, link):
    """The bytes of a picture: in the page itself, or in a file beside it."""
    data = re.fullmatch(r"data:image/(?:png|jpeg);base64,([A-Za-z0-9+/]+=*)", link["href"])
    if data:
        assert re.fullmatch(r"(expected|actual|difference)\.(png|jpg)", link["download"]), link
        return base64.b64decode(data[1], validate=True)
    assert re.fullmatch(r"[A-Za-z0-9._~/%-]*", link["href"]) and "download" not in link, link
    return pathlib.Path(os.path.dirname(page), urllib.parse.unquote(link["href"])).read_bytes()


def thumbnail(link):
    """The thumbnail of a link, as rows of pixels."""
    image = link["image"]
    kind, data = re.fullmatch(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/]+=*)", image["src"]).groups()
    data = base64.b64decode(data, validate=True)
    if kind == "jpeg":
        assert len(data) < 64 << 10
        data = subprocess.run([PROGRAM, "--format", "png", "identity", "-", "-"], input=data, capture_output=True,
                              check=True).stdout
    width, height, bits, rows = decode(data)
    assert (width, height, bits) == (int(image["width"]), int(image["height"]), 8) and max(width, height) <= SIDE
    return rows


def near(pixel, expected):
    return len(pixel) == len(expected) and all(abs(a - b) <= 8 for a, b in zip(pixel, expected))


def shown(name):
    """A name as gpuconv prints it."""
    text = name.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff\u202e]", lambda byte: "".join(f"\\x{b:02x}" for b in byte[0].encode(
        "utf-8", "surrogateescape")), text).replace("\n", "\\n")


def test_hostile_names():
    for i, name in enumerate(HOSTILE):
        put(b"e/" + name, picture(2, 1, 1, (i, 9)))
        put(b"a/" + name, picture(2, 1, 1, (i, 200)))
    compare("e", "a", "d", "--html", "page.html")
    page = Page("page.html")
    assert page.scripts == 1
    names = [row["name"] for row in page.rows]
    assert names == [shown(name) for name in sorted(HOSTILE)], names
    for name, row in zip(sorted(HOSTILE), page.rows):
        for side, folder in (("expected", b"e/"), ("actual", b"a/"), ("difference", b"d/")):
            link = row["links"][side]
            with open(folder + name, "rb") as file:
                assert brought("page.html", link) == file.read(), link
            assert link["title"].startswith(side + ": "), link
        assert row["links"]["expected"]["data-size"] == "2 1" and row["data-box"] == "1 0 1 1", row
        assert "1 of 2 pixels (50%) differ" in row["words"] and "PSNR" in row["words"], row
    # Nothing but the page's own script and style may run, and nothing may come from elsewhere.
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page.text)[1]
    assert policy.startswith("default-src 'none'; img-src 'self' file: data:;") and "unsafe" not in policy
    for tag in ("style", "script"):
        digest = hashlib.sha256(re.search(f"<{tag}>(.*?)</{tag}>", page.text, re.S)[1].encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy, tag
    assert not re.search(r"https?:", page.text)


def test_kinds_and_links():
    small, other = picture(2, 2, 3, range(12)), picture(2, 2, 3, range(1, 13))
    files = {b"different": (small, other), b"equal": (small, small), b"missing": (small, None), b"new": (None, small),
             b"shape": (small, picture(4, 1, 3, range(12))), b"bad": (small, b"no picture")}
    for name, sides in files.items():
        for folder, data in zip((b"e/", b"a/"), sides):
            if data is not None:
                put(folder + name + b".png", data)
    os.makedirs("out/deep")
    compare("e", "a", "--html", "out/deep/page.html", "--report", "with.jsonl")
    compare("e", "a", "--report", "without.jsonl")
    assert pathlib.Path("with.jsonl").read_bytes() == pathlib.Path("without.jsonl").read_bytes()
    page = Page("out/deep/page.html")
    assert [(row["kind"], row["name"]) for row in page.rows] == [
        ("unreadable", "bad.png"), ("different", "different.png"), ("missing", "missing.png"), ("new", "new.png"),
        ("shape", "shape.png")]
    assert page.buttons == {"all": "all5", "different": "different1", "shape": "shape1", "missing": "missing1",
                            "new": "new1", "unreadable": "unreadable1", "channels": "channels0",
                            "tolerated": "tolerated0"}, page.buttons
    rows = {row["kind"]: row for row in page.rows}
    assert {kind: sorted(row["links"]) for kind, row in rows.items()} == {
        "unreadable": ["actual", "expected"], "different": ["actual", "difference", "expected"], "new": ["actual"],
        "missing": ["expected"], "shape": ["actual", "expected"]}
    for kind, row in rows.items():
        for side, link in row["links"].items():
            if side == "difference" or kind == "unreadable" and side == "actual":
                assert "href" not in link  # there is no picture of it
                continue
            assert brought("out/deep/page.html", link) == pathlib.Path(f"{side[0]}/{row['name']}").read_bytes()
            assert "image" in link, row
    assert thumbnail(rows["new"]["links"]["actual"])[1][1] == (9, 10, 11)
    assert len(thumbnail(rows["shape"]["links"]["actual"])[0]) == 4
    assert "<title>5 of 6 need a look</title>" in page.text and "<h1>5 of 6 need a look</h1>" in page.text


def test_a_pair_that_is_never_compared():
    os.makedirs("a")
    put(b"e/a.png", picture(2, 2, 1, range(4)))
    os.symlink("nowhere", "a/a.png")
    put(b"e/b.png", picture(2, 2, 1, range(4)))
    put(b"a/b.png", picture(2, 2, 1, range(1, 5)))
    put(b"m/b.png", picture(3, 2, 1, range(6)))
    compare("e", "a", "--mask", "m", "--html", "page.html")
    page = Page("page.html")
    assert [(row["kind"], [bool(link.get("href") and link["image"]) for link in row["links"].values()])
            for row in page.rows] == [("unreadable", [True, False]), ("mask", [True, True])], page.rows
    assert page.buttons["mask"] == "mask1"


def test_formats_that_browsers_cannot_show():
    put(b"e/a.pgm", b"P5 2 1 65535\n\x12\x34\xff\xff")
    put(b"a/a.pgm", b"P5 2 1 65535\n\x12\x34\xff\xfe")
    compare("e", "a", "--html", "page.html")
    links = Page("page.html").rows[0]["links"]
    assert decode(brought("page.html", links["actual"])) == (2, 1, 16, [[(0x1234,), (0xfffe,)]])


def test_large_pictures_lie_beside_the_page():
    random = os.urandom(1 << 20) * 3
    for name in (b"1", b"2", b"#3"):
        put(b"e/%s.png" % name, picture(1536, 2048, 1, random))
        put(b"a/%s.png" % name, picture(1536, 2048, 1, bytes([random[0] ^ 1]) + random[1:]))
    def put_old():
        put(b"out#1/page_files/pair-9-actual.png", b"old")
        put(b"out#1/page_files/own.png", b"own")
    put_old()
    compare("e", "a", "d", "--html", "out#1/page.html")
    page = Page("out#1/page.html")
    for row in page.rows:
        for folder, link in zip("ead", row["links"].values()):
            assert brought("out#1/page.html", link) == pathlib.Path(folder, row["name"]).read_bytes(), link
    assert sorted(os.listdir("out#1/page_files")) == ["own.png"] + sorted(
        f"pair-{i}-{side}.png" for i in (1, 2, 3) for side in ("expected", "actual", "difference"))
    # They may be moved together, and the page does not read the folders that were compared.
    assert b"../" not in pathlib.Path("out#1/page.html").read_bytes() and len(page.text) < 1 << 20
    # No picture goes to where the next run would compare it, or to standard output: as many as fit are in the page.
    for place in ("a/page.html", "-"):
        done = compare("e", "a", "d", "--html", place)
        if place == "-":
            put(b"stdout.html", done.stdout)
        page = Page("stdout.html" if place == "-" else place)
        seen = ["href" in link for row in page.rows for link in row["links"].values()]
        assert seen[0] and False in seen and "The page holds 16 MiB" in page.text, seen
        assert len(page.text) < 30 << 20 and not os.path.exists("a/page_files")
    # A page that needs no folder removes the pictures of the earlier one, and nothing else.
    put_old()
    for name in ("1", "2"):
        os.replace(f"e/{name}.png", f"a/{name}.png")
    compare("e", "a", "--html", "out#1/page.html")
    assert os.listdir("out#1/page_files") == ["own.png"]
    put_old()
    os.remove("out#1/page_files/own.png")
    compare("e", "a", "--html", "out#1/page.html")
    assert os.listdir("out#1") == ["page.html"]
    # A folder under such a name is somebody's, and the error says which it is.
    os.makedirs("out#1/page_files/pair-9-actual.png")
    done = compare("e", "a", "--html", "out#1/page.html")
    assert done.stderr.endswith(
        b"out#1/page_files/pair-9-actual.png: cannot be deleted: Is a directory; delete it by hand\n"), done


def test_thumbnails():
    # Grey of 16 bits, and alpha over a ground of squares of 8 pixels.
    put(b"e/deep.png", picture(2, 1, 1, (0x12, 0x34, 0xff, 0xff), 16))
    put(b"a/deep.png", picture(2, 1, 1, (0x80, 0x80, 0, 0), 16))
    put(b"e/alpha.png", picture(16, 1, 4, (255, 0, 0, 0) * 16))
    put(b"a/alpha.png", picture(16, 1, 4, (255, 0, 0, 255) * 8 + (10, 20, 30, 51) * 8))
    # One pixel of many: the mean hides it, the thumbnail of the difference shows it.
    plain = bytearray(b"\x40" * 1000 * 500)
    put(b"e/large.png", picture(1000, 500, 1, plain))
    plain[1000 * 250 + 700] = 0x60
    put(b"a/large.png", picture(1000, 500, 1, plain))
    # What is ignored is drawn as it is.
    put(b"e/zone.png", picture(4, 1, 1, (0, 0, 0, 0)))
    put(b"a/zone.png", picture(4, 1, 1, (99, 0, 0, 50)))
    compare("e", "a", "d", "--html", "page.html", "--ignore", "0,0,1,1")
    alpha, deep, large, zone = (row["links"] for row in Page("page.html").rows)
    assert thumbnail(deep["expected"]) == [[(0x12,), (255,)]]
    assert thumbnail(alpha["expected"])[0] == [(255,) * 3] * 8 + [(204,) * 3] * 8
    assert thumbnail(alpha["actual"])[0] == [(255, 0, 0)] * 8 + [(165, 167, 169)] * 8
    pixels = thumbnail(large["difference"])
    assert (len(pixels[0]), len(pixels)) == (143, 72)
    assert pixels[35][100][0] > 150 and pixels[10][10][0] < 30, pixels[35][95:105]
    assert near(thumbnail(large["actual"])[35][100], (0x40,) * len(pixels[0][0])) or near(
        thumbnail(large["actual"])[35][100], (0x41,) * 3)
    assert thumbnail(zone["actual"]) == [[(99,), (0,), (0,), (50,)]]
    assert thumbnail(zone["difference"]) == [[(0,), (0,), (0,), (255,)]]
    assert decode(pathlib.Path("d/zone.png").read_bytes())[3] == [[(0,), (0,), (0,), (255,)]]


def test_orientation():
    # Browsers turn pictures as EXIF says: the page must know it.
    data = picture(2, 1, 1, (10, 20))
    exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    put(b"e/a.png", data[:33] + chunk(b"eXIf", exif) + data[33:])
    put(b"a/a.png", picture(2, 1, 1, (10, 30)))
    compare("e", "a", "--html", "page.html", "--report", "r.jsonl")
    links = Page("page.html").rows[0]["links"]
    assert links["expected"]["data-turn"] == "6" and links["expected"]["data-size"] == "2 1", links
    assert "data-turn" not in links["actual"] and b"orientation" not in pathlib.Path("r.jsonl").read_bytes()


def test_rules_and_tolerated_rows():
    put(b"e/a.png", picture(2, 1, 1, (10, 20)))
    put(b"a/a.png", picture(2, 1, 1, (11, 20)))
    compare("e", "a", "--html", "page.html", "--tolerance", "2", "--different", "0.5%", "--ignore", "1,0,1,1",
            "--ignore-transparent", status=0)
    page = Page("page.html")
    assert page.rows[0]["kind"] == "tolerated" and page.rows[0]["data-gain"] == "255"
    assert "at most 2, largest difference 1, PSNR" in page.rows[0]["words"]
    assert thumbnail(page.rows[0]["links"]["difference"]) == [[(255,), (0,)]]
    assert ("Samples may differ by up to 2. 0.5% of the pixels may differ by more. 1 rectangle is ignored. "
            "Pixels that are transparent in both images are ignored.") in page.text


def test_it_is_the_same_each_time():
    for i in range(12):
        put(b"e/%d.png" % i, picture(300, 200, 3, bytes((i * 7 + j) % 251 for j in range(180000))))
        put(b"a/%d.png" % i, picture(300, 200, 3, bytes((i * 7 + j) % 247 for j in range(180000))))
    pages = []
    for jobs in ("1", "4", "3"):
        compare("e", "a", "-j", jobs, "--html", "page.html")
        pages.append(pathlib.Path("page.html").read_bytes())
    assert pages[0] == pages[1] == pages[2]
    put(b"names", b"3.png\n11.png\n")
    compare("e", "a", "--files-from", "names", "--html", "page.html")
    assert [row["name"] for row in Page("page.html").rows] == ["11.png", "3.png"]
    names = []
    for shard in ("1/2", "2/2"):
        compare("e", "a", "--shard", shard, "--html", "page.html")
        names += [row["name"] for row in Page("page.html").rows]
    assert sorted(names) == sorted(f"{i}.png" for i in range(12)) and names != sorted(names)
    compare("e/1.png", "a/1.png", "d.png", "--html", "page.html")
    row, = Page("page.html").rows
    assert [brought("page.html", link) for link in row["links"].values()] == [
        pathlib.Path(path).read_bytes() for path in ("e/1.png", "a/1.png", "d.png")]
    piped = subprocess.run([PROGRAM, "--compare", "-", "a/1.png", "--html", "-"],
                           stdin=open("e/1.png", "rb"), capture_output=True)
    put(b"piped.html", piped.stdout)  # the page alone
    links = Page("piped.html").rows[0]["links"]
    assert piped.stdout.startswith(b"<!DOCTYPE html>") and "href" not in links["expected"], links
    assert thumbnail(links["expected"]) and brought("-", links["actual"]) == pathlib.Path("a/1.png").read_bytes()


def test_the_first_rows_have_thumbnails():
    for i in range(ROWS + 5):  # the last ones are the largest, and so are compared first
        put(b"e/%04d.png" % i, picture(1 + i // 100, 1, 1, range(1 + i // 100)))
        if i % 100 != 0:
            put(b"a/%04d.png" % i, picture(1 + i // 100, 1, 1, range(1, 2 + i // 100)))
    compare("e", "a", "--html", "page.html", "-j", "4")
    rows = Page("page.html").rows
    assert len(rows) == ROWS + 5
    for i, row in enumerate(rows):
        for link in row["links"].values():
            assert ("image" in link) == (i < ROWS), (i, link)


def test_what_cannot_be_written():
    put(b"e/a.png", picture(2, 1, 1, (10, 20)))
    put(b"a/a.png", picture(2, 1, 1, (11, 20)))
    put(b"page.html", b"old")
    for place, reason, status in (("none/page.html", "No such file", 1), ("/dev/full", "No space left", 75),
                                  ("e", "is a folder", 1)):
        done = compare("e", "a", "--html", place, status=status)
        assert done.stderr.count(b"\n") == 1 and place in done.stderr.decode() and reason in done.stderr.decode(), done
    done = compare("e", "a", "--html", "x.png", status=2)
    assert done.stderr == b"gpuconv: --html x.png has the name of an image; give another file\n", done
    os.chmod("page.html", 0o644)
    limited = subprocess.run(["bash", "-c", 'ulimit -f 8 && trap "" XFSZ && "$@"', "-", PROGRAM, "--compare", "e", "a",
                              "--html", "page.html"], capture_output=True)
    assert limited.returncode == 1 and b"page.html: cannot be written: File too large" in limited.stderr, limited
    assert pathlib.Path("page.html").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["a", "e", "page.html"]


run_tests(globals())
