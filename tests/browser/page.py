#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Use the page of --compare --html in a browser: page.py GPUCONV [FOLDER].

Keys are pressed, the mouse is moved, and colours on the screen are compared with those of the pictures. Skipped where
there is no Chromium. FOLDER receives screenshots, to look at."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True  # leave no files in the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import chromium  # noqa: E402
from harness import skip  # noqa: E402
from write_png import png, unfiltered  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
SHOTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
WIDTH, HEIGHT, BOX = 400, 300, (300, 200, 10, 6)
RED, BLUE, GREY, GREEN = (255, 0, 0), (0, 0, 255), (128, 128, 128), (128, 160, 128)
HOSTILE = '"><img src=x onerror=alert(1)>#?%41 \'.png'.replace("/", "")
MANY = 1000
# How often the view blinks in the time of two turns.
TURNS = """new Promise(done => {
  let turns = 0;
  new MutationObserver(() => turns++).observe(stage, {attributes: true});
  setTimeout(() => done(turns), 1300);
})"""
READY = "[...document.querySelectorAll('#stage img')].every(image => image.complete)"


def picture(colour, inside=None, width=WIDTH, height=HEIGHT, box=BOX):
    """One colour, and another one inside the box."""
    x, y, across, down = box
    plain = bytes(colour) * width
    marked = plain[:3 * x] + bytes(inside or colour) * across + plain[3 * (x + across):]
    rows = b"".join(marked if y <= row < y + down else plain for row in range(height))
    return png(width, height, 3, 8, unfiltered(rows, 3 * width), level=1)


def oriented(data, orientation):
    """A JPEG with an EXIF tag of orientation."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x112, 3, 1, orientation, 0) + bytes(4)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]


def jpeg(data):
    return subprocess.run([PROGRAM, "--format", "jpeg", "identity", "-", "-"], input=data, capture_output=True,
                          check=True).stdout


def write_files():
    """Pairs of each kind, and what the page must list: (kind, name)."""
    turned = jpeg(picture(RED, BLUE, box=(0, 0, 200, 150)))  # another colour in one corner
    files = {
        "bad.png": (b"no picture", b"no picture, too"), "box.png": (picture(GREY), picture(GREY, GREEN)),
        "colour.png": (picture(RED), picture(BLUE)), "equal.png": (picture(RED), picture(RED)),
        "gone.png": (picture(RED), None), HOSTILE: (picture(RED), picture(GREY)), "new.png": (None, picture(BLUE)),
        "shape.png": (picture(RED), picture(BLUE, width=200)), "tolerated.png": (picture(GREY), picture((130, 128, 128))),
        "wide.png": (picture(RED, height=40), picture(BLUE, height=40)),
        "tall.png": (picture(RED, width=40, height=400), picture(BLUE, width=40, height=400)),
        "half.png": (picture(RED), picture(BLUE)[:200]),
        "clear.png": (png(40, 30, 4, 8, unfiltered(bytes((9, 9, 9, 255)) * 1200, 160)),
                      png(40, 30, 4, 8, unfiltered(bytes(4800), 160))),
        "turned.jpg": (oriented(turned, 6), jpeg(picture(RED, GREY, box=(0, 0, 200, 150)))),
    }
    for name, sides in files.items():
        for folder, data in zip("ea", sides):
            if data is not None:
                os.makedirs(folder, exist_ok=True)
                pathlib.Path(folder, name).write_bytes(data)
    subprocess.run([PROGRAM, "--compare", "e", "a", "--html", "page.html", "--tolerance", "2", "-q"], capture_output=True)
    subprocess.run([PROGRAM, "--compare", "e", "a", "d", "--html", "drawn.html", "-q"], capture_output=True)
    return sorted([("unreadable", "bad.png"), ("different", "box.png"), ("different", "clear.png"), ("different", "colour.png"),
                   ("missing", "gone.png"), ("unreadable", "half.png"), ("different", "tall.png"),
                   ("different", HOSTILE), ("new", "new.png"), ("shape", "shape.png"), ("tolerated", "tolerated.png"),
                   ("different", "turned.jpg"), ("different", "wide.png")], key=lambda row: row[1].encode())


def address(path):
    return pathlib.Path(path).resolve().as_uri()


class Tester:
    def __init__(self, browser):
        self.browser = browser

    def open(self, path):
        self.browser.requests.clear()
        seconds = self.browser.open(address(path))
        self.browser.wait(READY)
        return seconds

    def show(self, name):
        """Search for a row, so that it is chosen."""
        self.browser.key("/")
        self.browser.get("document.activeElement.select()")
        self.browser.call("Input.insertText", text=name)
        self.browser.key("Escape")
        assert self.chosen() == name, (name, self.chosen())
        self.browser.wait(READY)

    def chosen(self):
        return self.browser.get("document.querySelector('[aria-current] .name').textContent")

    def listed(self):
        return self.browser.get("[...document.querySelectorAll('#rows > li')].filter(row => row.offsetHeight > 0)"
                                ".map(row => row.querySelector('.name').textContent)")

    def pane(self, side):
        return self.browser.get("(() => { const box = document.querySelector('#stage .%s .pane').getBoundingClientRect();"
                                "return [box.x, box.y, box.width, box.height]; })()" % side)

    def colour(self, side, across=.5, down=.5):
        """The colour at a part of a pane."""
        x, y, width, height = self.pane(side)
        return self.browser.colour(x + across * width, y + down * height)

    def expect(self, colour, side, *place):
        seen = self.colour(side, *place)
        assert all(abs(a - b) <= 4 for a, b in zip(seen, colour)), (colour, seen, side, place)

    def shoot(self, name):
        if SHOTS:
            os.makedirs(SHOTS, exist_ok=True)
            pathlib.Path(SHOTS, name + ".png").write_bytes(self.browser.screenshot())


def test_list(t, rows):
    t.open("page.html")
    names = [name for _, name in rows]
    assert t.listed() == names and t.chosen() == names[0]
    # The page has all that it shows.
    assert {request for request in t.browser.requests if not request.startswith("data:")} == {address("page.html")}
    assert t.browser.get("document.title") == f"{len(rows) - 1} of {len(rows) + 1} need a look"
    for kind in ("different", "missing", "new", "shape", "unreadable", "tolerated", "all"):
        t.browser.get(f"document.querySelector('button[data-kind={kind}]').click()")
        assert t.listed() == [name for one, name in rows if kind in (one, "all")], (kind, t.listed())
        assert t.chosen() in t.listed(), kind
        assert t.browser.get("document.querySelector('button[data-kind][aria-pressed=true]').dataset.kind") == kind
    # Next and previous rows are those that are listed.
    t.browser.get("document.querySelector('button[data-kind=different]').click()")
    different = t.listed()
    t.show(different[0])
    t.browser.get("(search => { search.value = ''; search.oninput(); })(document.getElementById('search'))")
    for key, name in zip(("j", "ArrowDown", "j", "j", "k", "ArrowUp"), (*different[1:5], *different[3:1:-1])):
        t.browser.key(key)
        assert t.chosen() == name, (key, name, t.chosen())
    t.browser.get("document.querySelector('button[data-kind=all]').click()")
    reached = set()  # by Tab: few steps lead to the view
    for _ in range(12):
        for kind in ("rawKeyDown", "keyUp"):
            t.browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(t.browser.get("document.activeElement.id || document.activeElement.dataset.mode"))
    assert {"side", "slider", "keys"} <= reached, reached
    t.browser.get("document.activeElement.blur()")
    t.browser.key("/")
    t.browser.call("Input.insertText", text="NEW")
    t.browser.key("b")  # a letter of the search, no key of the view
    assert t.listed() == [] and t.browser.get("document.getElementById('stage').dataset.mode") == "side"
    t.browser.key("Escape")
    t.show("new.png")
    assert t.listed() == ["new.png"]
    t.expect(BLUE, "actual")
    assert t.browser.get("document.querySelector('#stage .expected').offsetWidth") == 0
    t.browser.get("document.querySelector('#search').value = ''; filter()")
    t.browser.get("document.querySelectorAll('#rows img')[5].click()")  # opens the row, not the file
    t.browser.get("new Promise(requestAnimationFrame)")
    assert t.browser.get("location.href.split('#')[0]") == address("page.html")
    assert t.browser.get("view.row === document.querySelectorAll('#rows img')[5].closest('li')")


def test_link_to_a_row(t, rows):
    for name in ("wide.png", HOSTILE):
        t.browser.open("about:blank")
        t.browser.open(address("page.html") + "#" + urllib.parse.quote(name, safe=""))
        assert t.chosen() == name
    t.browser.get("document.querySelector('button[data-kind=new]').click()")
    t.browser.get("location.hash = 'gone.png'")  # a hidden row, too
    t.browser.wait("document.querySelector('[aria-current] .name').textContent === 'gone.png'")
    t.browser.key("j")
    assert urllib.parse.unquote(t.browser.get("location.hash")) == "#" + t.chosen() != "#gone.png"
    t.browser.get("location.hash = '%'")  # no row
    assert t.browser.get("new Promise(done => setTimeout(() => done(1), 50))") == 1


def test_ground(t, rows):
    """Squares are seen through what is transparent, and nowhere else."""
    t.open("page.html")
    t.show("clear.png")
    x, y, width, height = t.pane("expected")
    for side, opaque in (("expected", True), ("actual", False)):
        seen = {t.colour(side, .5 + i / width, .5) for i in range(0, 60, 5)}
        assert (len(seen) == 1) == opaque, (side, seen)
    t.show("wide.png")  # none beside the picture
    assert len({t.colour("expected", .5, 0.02 + i / 200) for i in range(10)}) == 1


def test_unreadable_and_large(t, rows):
    t.open("page.html")
    t.show("half.png")  # the intact side takes all the room
    t.expect(RED, "expected")
    assert t.browser.get("document.querySelector('#stage .actual').offsetWidth") == 0
    assert t.pane("expected")[2] > 800
    for name, layout in (("wide.png", "stacked"), ("tall.png", "side by side")):
        t.show(name)
        assert t.browser.get("document.getElementById('layout').textContent") == layout, name
        widths = [t.browser.get(f"document.querySelector('#stage .{side} .layer img').getBoundingClientRect().width")
                  for side in ("expected", "actual", "difference")]
        heights = [t.pane(side)[3] for side in ("expected", "actual", "difference")]
        assert max(widths) - min(widths) < 1 and max(heights) - min(heights) < 2, (widths, heights)
    # No other arrangement makes a picture larger.
    for name in ("box.png", "wide.png", "tall.png"):
        t.show(name)
        best = t.browser.get("Number(document.querySelector('.layer').dataset.scale)")
        for columns in "123":
            t.browser.get(f"stage.dataset.columns = {columns}")
            pane = t.pane("expected")
            size = t.browser.get("document.querySelector('.layer img').size")
            assert min(pane[2] / size[0], pane[3] / size[1]) < best + .02, (name, columns)
    # The button says how the pictures stand.
    seen = set()
    for width in (700, 1100, 1400):
        t.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for name in ("box.png", "wide.png", "tall.png"):
            t.show(name)
            t.browser.get("layOut()")
            lefts = {round(t.pane(side)[0]) for side in ("expected", "actual", "difference")}
            layout = t.browser.get("document.getElementById('layout').textContent")
            assert layout == {1: "stacked", 2: "in two rows", 3: "side by side"}[len(lefts)], (width, name, layout)
            seen.add(layout)
    assert len(seen) == 3, seen


def test_phone(t, rows):
    for width, height in ((390, 844), (844, 390)):
        t.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
        t.open("page.html")
        t.shoot(f"phone-{width}")
        t.browser.get("document.getElementById('rows').lastElementChild.click()")
        t.browser.wait("view.row === rows.at(-1) && " + READY)
        x, y, across, down = t.pane("expected")  # on the screen, and not covered
        assert 0 <= x and x + across <= width and 0 <= y and y + down <= height, (x, y, across, down)
        middle = x + across / 2, y + down / 2
        assert across * down > 10000 and t.browser.get("document.elementFromPoint(%f, %f).closest('.pane') !== null" % middle)
        assert t.browser.get("document.documentElement.scrollWidth") <= width
        t.browser.call("Emulation.setTouchEmulationEnabled", enabled=True)  # two fingers zoom
        scale = t.browser.get("Number(document.querySelector('.layer').dataset.scale)")
        for kind, apart in (("touchStart", 20), ("touchMove", 30), ("touchMove", 40), ("touchEnd", None)):
            points = [{"x": middle[0] + side * apart / 2, "y": middle[1], "id": side} for side in (-1, 1)] if apart else []
            t.browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        zoomed = t.browser.get("Number(document.querySelector('.layer').dataset.scale)")
        assert abs(zoomed / scale - 2) < .05, (scale, zoomed)
        t.browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    t.browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)


def test_views(t, rows):
    for page in ("page.html", "drawn.html"):  # the browser draws the difference in the first
        t.open(page)
        t.show("colour.png")
        t.expect(RED, "expected")
        t.expect(BLUE, "actual")
        t.expect((255, 0, 255), "difference")
    t.open("page.html")
    t.show("colour.png")
    t.browser.key("l")
    t.expect(RED, "expected", .4)
    t.expect(BLUE, "expected", .6)
    for _ in range(6):
        t.browser.key("ArrowLeft")
    t.expect(RED, "expected", .35)
    t.expect(BLUE, "expected", .45)
    x, y, width, height = t.pane("expected")
    t.browser.mouse((x + .4 * width, y + height / 2), (x + .8 * width, y + height / 2))
    t.expect(RED, "expected", .75)
    t.expect(BLUE, "expected", .85)
    t.shoot("slider")
    t.browser.key("b")
    for top in ("actual", "expected", "actual"):
        t.browser.wait(f"document.getElementById('stage').dataset.top === '{top}'")
    t.browser.key("x")  # blinking ends
    top = t.browser.get("document.getElementById('stage').dataset.top")
    t.expect(RED if top == "expected" else BLUE, "expected")
    t.browser.key("x")
    t.expect(BLUE if top == "expected" else RED, "expected")
    assert t.browser.get(TURNS) == 0
    t.expect(BLUE if top == "expected" else RED, "expected")
    t.browser.key("d")
    t.expect((255, 0, 255), "difference")
    x, y, width, height = t.pane("difference")
    left = t.browser.get("document.querySelector('#stage .difference .layer > *').getBoundingClientRect().x") - x
    t.browser.mouse((x + 99, y + 99), (x + 119, y + 99))
    t.expect((255, 0, 255), "difference", .5, .5)
    t.expect((255, 0, 255), "difference", (left + 22) / width, .5)
    assert tuple(t.colour("difference", (left + 18) / width, .5)) != (255, 0, 255)
    assert t.pane("difference")[2] > 800 and t.browser.get("document.querySelector('#stage .actual').offsetWidth") == 0
    t.browser.key("s")
    assert t.pane("difference")[2] < 500
    t.show("wide.png")  # one below the other
    assert t.pane("expected")[2] > 800 and t.pane("expected")[1] < t.pane("actual")[1] < t.pane("difference")[1]
    t.expect(BLUE, "actual")
    # Pictures that EXIF turns are shown as they were compared.
    t.show("turned.jpg")
    t.expect((0, 0, 254), "expected", .3, .5 - .1)
    t.expect((254, 0, 0), "expected", .3, .5 + .1)
    t.expect((254, 0, 0), "expected", .7, .5 - .1)
    t.browser.key("?")
    assert t.browser.get("document.getElementById('help').open")
    t.shoot("help")
    t.browser.key("j")  # not while the keys are shown
    assert t.chosen() == "turned.jpg"
    t.browser.key("?")
    assert not t.browser.get("document.getElementById('help').open")


def test_zoom(t, rows):
    t.open("page.html")
    t.show("box.png")
    for side in ("expected", "actual"):
        t.expect(GREY, side)
    t.browser.key("z")
    t.expect(GREEN, "actual")
    t.expect(GREY, "expected")
    t.expect((0, 255, 0), "difference")
    x, y, width, height = t.pane("difference")
    left, top, across, down = t.browser.get("(() => { const box = document.getElementById('box').getBoundingClientRect();"
                                            "return [box.x, box.y, box.width, box.height]; })()")
    assert x < left and left + across < x + width and y < top and top + down < y + height
    assert across > width / 3 and abs(left + across / 2 - x - width / 2) < 1, (left, across, x, width)
    t.shoot("zoom")
    t.browser.key("+")
    assert t.browser.get("document.getElementById('box').getBoundingClientRect().width") > 1.2 * across
    t.browser.mouse((x + width / 2, y + height / 2), (x + width / 2 + 40, y + height / 2))
    moved = t.browser.get("document.getElementById('box').getBoundingClientRect().x")
    t.browser.mouse((x + width / 2 + 40, y + height / 2), (x + width / 2, y + height / 2))
    assert abs(moved - t.browser.get("document.getElementById('box').getBoundingClientRect().x") - 40) < 1
    t.browser.key("z")
    t.expect(GREY, "actual")
    t.show("colour.png")  # a box as large as the picture gets no margin
    x, y, width, height = t.pane("difference")
    t.browser.key("z")
    across, down = t.browser.get("(box => [box.width, box.height])(document.getElementById('box').getBoundingClientRect())")
    assert across > width - 4 or down > height - 4, (across, down, width, height)


def test_schemes(t, rows):
    t.open("page.html")
    for scheme in ("light", "dark"):
        t.browser.prefer(prefers_color_scheme=scheme)
        t.shoot(scheme)
        assert (min(t.browser.colour(3, 3)) > 200) == (scheme == "light") == (max(t.browser.colour(3, 3)) > 60), scheme
    t.browser.prefer(prefers_reduced_motion="reduce")  # nothing blinks by itself
    t.browser.key("b")
    assert t.browser.get(TURNS) == 0
    t.browser.prefer()


def test_policy(t, rows):
    t.open("page.html")
    blocked = ("new Promise(done => { addEventListener('securitypolicyviolation', event => done(event.effectiveDirective));"
               "%s })")
    assert t.browser.get(blocked % "new Image().src = 'https://127.0.0.1:9/x.png'") == "img-src"
    assert t.browser.get(blocked % "const one = document.createElement('script'); one.textContent = 'window.hacked = 1';"
                         "document.body.append(one)") == "script-src-elem"
    assert t.browser.get("window.hacked") is None
    assert len(t.browser.complaints) == 2, t.browser.complaints
    t.browser.complaints.clear()


def test_files_that_are_gone(t, rows):
    os.makedirs("large/e")
    os.makedirs("large/a")
    rows = bytes(RED) * 3000 * 1000
    for side, data in (("e", rows), ("a", rows[::-1])):
        pathlib.Path("large", side, "long-name-of-a-picture.png").write_bytes(
            png(3000, 1000, 3, 8, unfiltered(data, 9000), level=0))
    subprocess.run([PROGRAM, "--compare", "large/e", "large/a", "--html", "large/page.html", "-q"],
                   stdout=subprocess.DEVNULL)
    t.open("large/page.html")
    read = {os.path.basename(request) for request in t.browser.requests if not request.startswith("data:")}
    assert read == {"page.html", "pair-1-expected.png", "pair-1-actual.png"}, read
    os.rename("large/page_files/pair-1-expected.png", "elsewhere.png")
    t.open("large/page.html")
    t.browser.wait("document.querySelector('#stage .expected').textContent.includes('its thumbnail')")
    t.browser.wait(READY)
    t.expect((254, 0, 0), "expected")
    t.expect(BLUE, "actual")
    assert all("pair-1" in text for text in t.browser.complaints), t.browser.complaints
    t.browser.complaints.clear()
    # The note is not cut off.
    for width in (1400, 800, 390):
        t.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        assert t.browser.get("(note => note.scrollWidth <= note.clientWidth && note.offsetHeight > 0)"
                             "(document.querySelector('#stage .expected figcaption div'))"), width
    t.browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=900, deviceScaleFactor=1, mobile=False)


def test_many_rows(t, rows):
    for i in range(MANY):
        for folder, colour in (("many/e", GREY), ("many/a", (i % 256, 255 - i % 256, 99))):
            os.makedirs(folder, exist_ok=True)
            pathlib.Path(folder, f"{i}.png").write_bytes(picture(GREY, colour, box=(i % 200, i % 150, 100, 100)))
    subprocess.run([PROGRAM, "--compare", "many/e", "many/a", "--html", "many.html", "-q"], stdout=subprocess.DEVNULL)
    seconds = t.open("many.html")
    print(f"{MANY} rows: {os.path.getsize('many.html')} bytes, open in {seconds:.2f} s")
    assert t.browser.get("document.querySelectorAll('#rows > li').length") == MANY
    for _ in range(20):
        t.browser.key("j")
    t.browser.wait(READY)
    assert t.browser.get("rows.indexOf(view.row)") == 20
    box = t.browser.get("(row => row.getBoundingClientRect())(view.row).bottom")
    assert 0 < box <= 900, box
    t.shoot("many")
    t.browser.get("document.getElementById('rows').lastElementChild.click()")
    t.browser.wait("view.row === rows.at(-1) && " + READY)


def main():
    if chromium.find() is None:
        skip("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder, chromium.Browser() as browser:
        os.chdir(folder)
        rows = write_files()
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(Tester(browser), rows)
                assert not browser.complaints, (name, browser.complaints)
                assert all(request.startswith(("file:///", "data:image/")) for request in browser.requests
                           if "127.0.0.1" not in request), browser.requests
                print(name, flush=True)
        os.chdir("/")


main()
