# SPDX-License-Identifier: MIT
"""Shapes of the drawings in docs/kernels/ and docs/learn/, as SVG. They follow the reader's light or dark colours."""
import html

# class: light, dark; shapes with a line have no fill
FILLS = {"paper": ("#ffffff", "#0d1117"), "halo": ("#d6e6f7", "#17304d"), "tile": ("#8fbfec", "#2a5f96"),
         "out": ("#bfe3cd", "#1c4a33"), "mine": ("#007a4d", "#3fcf8e"), "idle": ("#e3e3e3", "#30363d"),
         "ink": ("#1f2328", "#e6edf3"), "quiet": ("#59636e", "#9da7b1")}
LINES = {"window": ("#c24e00", "#ff9d5c"), "measure": ("#59636e", "#9da7b1"), "edge": ("#1f2328", "#e6edf3")}
LEGEND = {"halo": "halo", "tile": "samples over the outputs", "window": "read by one thread", "out": "outputs",
          "mine": "of one thread", "idle": "idle"}


def style(which):
    rules = [f".{name} {{ fill: {colours[which]} }}" for name, colours in FILLS.items()]
    rules += [f".{name} {{ fill: none; stroke: {colours[which]} }}" for name, colours in LINES.items()]
    return " ".join(rules)


class Drawing:
    """Shapes on paper, in pixels. Classes that were used are in the legend."""

    def __init__(self, width, height):
        self.width, self.height, self.shapes, self.used = width, height, [], []

    def rect(self, x, y, width, height, kind, extra=""):
        if kind in LEGEND and kind not in self.used:
            self.used.append(kind)
        self.shapes.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{extra}/>')

    def path(self, kind, d, extra=""):
        self.shapes.append(f'<path class="{kind}" d="{d}"{extra}/>')

    def text(self, x, y, words, kind="ink", anchor="middle"):
        self.shapes.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(words)}</text>')

    def arrow(self, start, end, left, right, *lines):
        """An arrow; its words stand in the middle of LEFT to RIGHT."""
        (x0, y0), (x1, y1) = start, end
        self.path("edge", f"M{x0:g} {y0:g}L{x1 - 2:g} {y1:g}", ' marker-end="url(#head)"')
        for i, words in enumerate(lines):
            self.text((left + right) / 2, min(y0, y1) - 8 - 16 * (len(lines) - 1 - i), words)

    def svg(self):
        x = 16
        for kind in [kind for kind in LEGEND if kind in self.used]:
            self.rect(x, self.height - 26, 14, 14, kind)
            self.text(x + 20, self.height - 14, LEGEND[kind], "quiet", "start")
            x += 38 + 7 * len(LEGEND[kind])
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="sans-serif" font-size="13">\n'
                f"<style>{style(0)} .window {{ stroke-width: 2 }}\n"
                f"@media (prefers-color-scheme: dark) {{ {style(1)} }}</style>\n"
                '<marker id="head" orient="auto" markerWidth="8" markerHeight="8" refX="5" refY="3">'
                '<path class="ink" d="M0 0L6 3L0 6z"/></marker>\n'
                f'<rect class="paper" width="{self.width}" height="{self.height}"/>\n' + "\n".join(self.shapes) +
                "\n</svg>\n")


class Panel:
    """A part of a drawing that is measured in samples."""

    def __init__(self, drawing, x, y, scale, title, width):
        self.drawing, self.x, self.y, self.scale = drawing, x, y, scale
        drawing.text(x + width * scale / 2, 22, title)

    def at(self, x, y):
        return self.x + x * self.scale, self.y + y * self.scale

    def rect(self, x, y, width, height, kind, extra=""):
        self.drawing.rect(*self.at(x, y), width * self.scale, height * self.scale, kind, extra)

    def cells(self, x, y, width, height):
        """The window of a thread, with a line between samples."""
        (left, top), (right, bottom) = self.at(x, y), self.at(x + width, y + height)
        lines = [f"M{self.at(x + i, 0)[0]:g} {top:g}V{bottom:g}" for i in range(1, width)]
        lines += [f"M{left:g} {self.at(0, y + i)[1]:g}H{right:g}" for i in range(1, height)]
        self.drawing.path("window", "".join(lines), ' style="stroke-width: 0.5"')
        self.rect(x, y, width, height, "window")

    def across(self, x0, x1, y, words, gap=-8):
        (left, at), (right, _) = self.at(x0, y), self.at(x1, y)
        at += gap
        self.drawing.path("measure", f"M{left:g} {at - 3:g}v6M{right:g} {at - 3:g}v6M{left:g} {at:g}H{right:g}")
        self.drawing.text((left + right) / 2, at - 5 if gap < 0 else at + 14, words, "quiet")

    def down(self, y0, y1, x, words, gap=-8):
        (at, top), (_, bottom) = self.at(x, y0), self.at(x, y1)
        at += gap
        self.drawing.path("measure", f"M{at - 3:g} {top:g}h6M{at - 3:g} {bottom:g}h6M{at:g} {top:g}V{bottom:g}")
        self.drawing.text(at - 5 if gap < 0 else at + 5, (top + bottom) / 2 + 4, words, "quiet",
                          "end" if gap < 0 else "start")
