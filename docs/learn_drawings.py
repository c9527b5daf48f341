# SPDX-License-Identifier: MIT
"""The drawings of the book in docs/learn/, one a chapter. Samples and taps are those of its programs: 9 x 9 taps."""
import json
import pathlib

from drawing import Drawing, Panel

SIZE = 9
MEASURED = pathlib.Path(__file__).resolve().parents[1] / "benchmarks/learn-h200.json"


def box(drawing, x, y, width, height, kind, *lines):
    """A rectangle with words in its middle."""
    drawing.rect(x, y, width, height, kind)
    drawing.rect(x, y, width, height, "edge")
    for i, words in enumerate(lines):
        drawing.text(x + width / 2, y + height / 2 + 5 + 16 * (i - (len(lines) - 1) / 2), words)


def note(drawing, *lines):
    """Words at the foot, in place of the legend."""
    drawing.used = []
    for i, words in enumerate(lines):
        drawing.text(30, drawing.height - 14 - 18 * (len(lines) - 1 - i), words, "quiet", "start")


def loop():
    """Both orders of loop.c. A vector of 256 bits has 8 sums."""
    drawing = Drawing(760, 300)
    for y, order, width, height, road, made in (
            (50, "pixel_by_pixel", SIZE, SIZE, ("81 samples,", "81 taps"), "one sum"),
            (180, "row_by_row", 8, 1, ("8 neighbours,", "one tap"), "8 sums in a vector")):
        left, right = Panel(drawing, 40, y, 8, "", 32), Panel(drawing, 500, y, 8, "", 24)
        left.rect(0, 0, 32, SIZE, "halo")
        left.cells(8, 0 if height > 1 else 2, width, height)
        right.rect(0, 0, 24, 1, "out")
        right.rect(8, 0, 1 if height > 1 else 8, 1, "mine")
        right.across(8, 9 if height > 1 else 16, 0, made)
        drawing.text(left.x, y - 10, order, anchor="start")
        drawing.arrow(left.at(32.6, 4.5), right.at(-0.6, 1.2), left.at(32, 0)[0], right.x, *road)
    note(drawing, "Marked: what is read in the innermost loops, and the sums that it is added to.")
    return drawing


def threads():
    """A multiprocessor: its four schedulers with four warps each, and what the warps share."""
    drawing = Drawing(760, 372)
    drawing.text(380, 22, "one of the 132 multiprocessors of an H200, in one cycle")
    drawing.rect(16, 36, 728, 284, "edge")
    states = ["ready", "waits: a sum", "waits: memory", "ready"]
    for s in range(4):
        x, chosen = 30 + 178 * s, (0, 3, 0, 3)[s]
        drawing.text(x + 83, 60, f"scheduler {s}")
        for w in range(4):
            state = "runs" if w == chosen else states[(w + s) % 4] if s != 1 else states[1 + w % 2]
            kind = "mine" if state == "runs" else "out" if state == "ready" else "idle"
            drawing.rect(x, 72 + 26 * w, 22, 20, kind)
            drawing.text(x + 30, 87 + 26 * w, f"warp {s + 4 * w}: {state}", "ink" if w == chosen else "quiet", "start")
        drawing.path("edge", f"M{x + 83:g} 178V192", ' marker-end="url(#head)"')
        for lane in range(32):
            drawing.rect(x + lane * 5.2, 196, 4.2, 22, "mine")
        drawing.text(x + 83, 234, "32 lanes: one instruction", "quiet")
    box(drawing, 30, 246, 700, 28, "tile", "65,536 registers of 32 bits: each thread has its own")
    box(drawing, 30, 280, 700, 28, "halo", "256 KB of L1 cache and shared memory: each block has its own shared memory")
    note(drawing, "Below all multiprocessors: the L2 cache, 63 MB, and the memory, 141 GB.",
         "A scheduler starts one instruction of one ready warp in each cycle. Up to 16 warps wait their turn with it.")
    return drawing


def first():
    """The grid, a block, a warp, and what a warp loads at once in both forms of block."""
    drawing = Drawing(760, 330)
    grid = Panel(drawing, 40, 60, 24, "grid: 512 × 2048 blocks", 5)
    for y in range(6):
        for x in range(5):
            drawing.rect(grid.x + 24 * x, grid.y + 12 * y, 22.5, 10.5, "mine" if (x, y) == (1, 2) else "out")
    drawing.text(grid.x + 60, 152, "32 × 8 outputs each", "quiet")
    block = Panel(drawing, 230, 60, 7, "block: 32 × 8 threads, 8 warps", 32)
    for y in range(8):
        for x in range(32):
            drawing.rect(block.x + 7 * x, block.y + 10 * y, 6, 9, "mine" if y == 3 else "out")
    drawing.text(block.x + 112, 160, "a row of 32 threads is a warp", "quiet")
    for y, columns, rows, words, foot in (
            (60, 32, 1, "a load reads 32 neighbours", "1 or 2 sectors of 32 bytes"),
            (200, 8, 4, "in a block 8 × 32: 4 × 8", "4 or more sectors: four rows")):
        samples = Panel(drawing, 515, y, 6, "", 38)
        drawing.text(629, y - 12, words)
        for row in range(10):
            samples.rect(0, row, 38, 0.85, "halo")
        samples.rect(3, 3, columns, rows - 0.15, "tile")
        samples.rect(3, 3, columns, rows - 0.15, "window")
        drawing.text(629, y + 78, foot, "quiet")
    drawing.arrow((164, 100), (222, 100), 164, 222, "one")
    drawing.arrow((458, 90), (506, 83), 458, 506, "tap i, j")
    note(drawing, "For each tap (i, j), the 32 threads of a warp read 32 samples by one instruction.")
    return drawing


def taps():
    """How a tap and the samples come to the lanes of a warp, in first.cu and in constant.cu."""
    drawing = Drawing(760, 340)
    for y, name, source, kind, words in (
            (60, "first.cu", "L1 cache", "halo", "2 loads for a multiply-add: the tap is one of them"),
            (200, "constant.cu", "constant cache", "out", "1 load for a multiply-add: the tap comes beside the loads")):
        drawing.text(30, y - 14, name, anchor="start")
        box(drawing, 30, y, 150, 30, kind, source)
        box(drawing, 30, y + 56, 150, 30, "halo", "L1 cache")
        drawing.rect(250, y + 8, 14, 14, "tile")
        drawing.text(257, y + 2, "tap", "quiet")
        drawing.arrow((184, y + 15), (244, y + 15), 184, 244, "load" if y < 100 else "")
        drawing.arrow((184, y + 71), (332, y + 71), 184, 332, "load 32 samples")
        for lane in range(32):
            x = 340 + 12 * lane
            if lane % 4 == 0:
                drawing.path("measure", f"M264 {y + 15}L{x + 5} {y + 42}", ' style="stroke-width: 0.5"')
            drawing.rect(x, y + 44, 10, 12, "mine")
            drawing.rect(x, y + 66, 10, 10, "tile")
        drawing.text(532, y + 104, words, "quiet")
    note(drawing, "Dark: the sums of the 32 lanes. All lanes need the same tap, so one word serves a warp.")
    return drawing


def tiles():
    """Block (1, 0) of tile-input.cu and of tile-output.cu, with the indices of its columns."""
    drawing = Drawing(760, 420)
    one = Panel(drawing, 60, 84, 7, "tile-input.cu: a thread a sample", 32)
    one.rect(0, 0, 32, 32, "halo")
    one.rect(0, 0, 24, 24, "tile")
    one.rect(0, 0, 24, 24, "edge")
    one.cells(0, 0, SIZE, SIZE)
    one.across(0, 32, 0, "columns 24 to 55", -22)
    one.across(0, 24, 0, "outputs 24 to 47", -4)
    one.down(0, 24, 32, "24", 8)
    one.down(0, 32, 0, "32")
    drawing.text(*one.at(12, 20), "load and compute", "ink")
    drawing.text(*one.at(16, 28.5), "load only: 448 of 1024 threads", "ink")
    two = Panel(drawing, 440, 84, 7, "tile-output.cu: a thread an output", 40)
    two.rect(0, 0, 40, 40, "halo")
    two.rect(0, 0, 32, 32, "tile")
    two.cells(3, 5, SIZE, SIZE)
    two.across(0, 40, 0, "columns 32 to 71", -22)
    two.across(0, 32, 0, "outputs 32 to 63", -4)
    two.down(0, 32, 40, "32", 8)
    two.down(0, 40, 0, "40")
    (x, y), (far, bottom) = two.at(32, 32), two.at(40, 40)
    drawing.path("edge", f"M{x:g} {two.y:g}V{bottom:g}M{two.x:g} {y:g}H{far:g}", ' stroke-dasharray="4 3"')
    for i, (column, row) in enumerate(((3, 5), (35, 5), (3, 37), (35, 37))):
        two.rect(column, row, 1, 1, "mine")
        drawing.text(*two.at(column + (2 if column < 9 else 3), row - 0.6), f"{i + 1}", "ink")
    drawing.text(*two.at(18, 24), "each thread loads here first", "ink")
    note(drawing, "Orange: the windows of thread (0, 0) of the left block, and of thread (3, 5) of the right one.",
         "The latter loads samples 1 to 4.")
    return drawing


def roads():
    """The way of a sample to a register, without a tile and with one."""
    drawing = Drawing(760, 300)
    for y, name, steps in (
            (56, "constant.cu", [("L2", 120, "halo"), ("L1", 300, "tile"), ("registers", 640, "mine")]),
            (166, "tile-words.cu", [("L2", 120, "halo"), ("L1", 300, "tile"), ("tile", 445, "tile"),
                                    ("registers", 640, "mine")])):
        drawing.text(16, y + 24, name, anchor="start")
        for words, x, kind in steps:
            drawing.rect(x, y, 100 if words == "registers" else 70, 40, kind if kind != "mine" else "out")
            drawing.text(x + (50 if words == "registers" else 35), y + 24, words)
        drawing.arrow((194, y + 20), (294, y + 20), 194, 294, "by lines")
    drawing.arrow((374, 76), (634, 76), 374, 530, "81 loads an output")
    drawing.arrow((374, 186), (439, 186), 374, 439, "0.4 loads")
    drawing.arrow((519, 186), (634, 186), 540, 634, "81 loads")
    drawing.rect(286, 34, 246, 190, "edge", ' stroke-dasharray="4 3"')
    drawing.text(409, 242, "one memory, with one path to the registers", "quiet")
    note(drawing, "The tile saves nothing on the way to the registers. It adds its own loading and a barrier.")
    return drawing


def column():
    """A thread of column.cu: 16 rows of 9 samples, and its 8 sums."""
    drawing = Drawing(760, 330)
    left, right = Panel(drawing, 90, 60, 13, "16 rows of 9 samples", 9), Panel(drawing, 560, 86, 13, "8 sums", 8)
    left.rect(0, 0, 9, 16, "halo")
    for row in range(8):
        right.rect(0, 2 * row - 1, 8, 1.4, "mine" if row < 2 else "out")
        drawing.text(*right.at(4, 2 * row + 0.05), f"sum[{row}]", "paper" if row < 2 else "ink")
    left.cells(0, 1, 9, 1)
    left.cells(0, 7, 9, 1)
    left.down(0, 16, 0, "16")
    drawing.text(*left.at(9.6, 1.9), "row 1", "quiet", "start")
    drawing.text(*left.at(9.6, 7.9), "row 7", "quiet", "start")
    for row in range(2):
        drawing.path("edge", f"M{left.at(13, 1.5)[0]:g} {left.at(0, 1.5)[1]:g}L{right.x - 8:g} "
                     f"{right.at(0, 2 * row - 0.3)[1]:g}", ' marker-end="url(#head)"')
    for row in range(8):
        drawing.path("measure", f"M{left.at(13, 7.5)[0]:g} {left.at(0, 7.5)[1]:g}L{right.x - 8:g} "
                     f"{right.at(0, 2 * row - 0.1)[1]:g}", ' stroke-dasharray="4 3"')
    note(drawing, "Row 1 lies under the taps of outputs 0 and 1, row 7 under those of all eight. Each is loaded once:",
         "144 loads for 8 outputs are 18 an output, in place of 81.")
    return drawing


def registers():
    """The words of a row, and how many warps the registers of a multiprocessor suffice for."""
    drawing = Drawing(760, 330)
    left = Panel(drawing, 40, 60, 22, "a row: three words, 12 samples", 12)
    left.rect(0, 0, 12, 1, "halo")
    for word in range(3):
        left.rect(4 * word, 0, 4, 1, "edge")
    for c in range(4):
        left.rect(c, 1.5 + 1.1 * c, 9, 0.8, "tile")
        drawing.text(*left.at(c + 4.5, 2.12 + 1.1 * c), f"window of column {c}")
    drawing.text(172, 205, "3 loads serve 36 multiply-adds", "quiet")
    drawing.text(560, 22, "65,536 registers, cut for threads of")
    for k, count in enumerate((32, 64, 128)):
        warps, y = 2048 // count, 60 + 62 * k
        drawing.text(470, y + 20, f"{count} registers", "ink", "end")
        for warp in range(warps):
            width = 240 / warps
            drawing.rect(480 + width * warp, y, width - 1, 28, "mine")
        drawing.text(600, y + 44, f"{warps} warps", "quiet")
    note(drawing, "A thread with more registers does more work for each load. But fewer warps then fit at once,",
         "and a scheduler has fewer warps to choose from while the others wait.")
    return drawing


def profiler():
    """How busy three parts are in each step, as ncu counted."""
    counted = json.loads(MEASURED.read_text(encoding="utf-8"))["profile"]
    steps = ["first.cu", "constant.cu", "tile-input.cu", "tile-output.cu", "tile-words.cu", "column.cu", "words.cu", "dp4a.cu",
             "mma.cu", "copy.cu"]
    drawing = Drawing(760, 76 + 30 * len(steps))
    for i, (words, name) in enumerate((("issue slots", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
                                       ("L1 and shared memory", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
                                       ("memory", "dram__throughput.avg.pct_of_peak_sustained_elapsed"))):
        x = 130 + 210 * i
        drawing.text(x + 85, 22, words)
        for k, step in enumerate(steps):
            share = counted[f"{step} 0"][name]
            drawing.rect(x, 40 + 30 * k, 170, 20, "halo")
            drawing.rect(x, 40 + 30 * k, 1.7 * share, 20, "tile" if share < 70 else "mine")
            drawing.text(x + 175, 55 + 30 * k, f"{share:.0f}%", "ink", "start")
    for k, step in enumerate(steps):
        drawing.text(110, 55 + 30 * k, step, anchor="end")
    note(drawing, "Percent of the peak, on an H200. Green: at least 70%, so this part is near its limit.")
    return drawing


def fragments():
    """The operands and the result of mma.m8n8k16: the number in a frame is that of the lane which has it."""
    drawing = Drawing(760, 372)
    samples = Panel(drawing, 64, 76, 17, "samples: 8 chunks of 16", 16)
    band = Panel(drawing, 385, 76, 14, "band of taps a to i", 8)
    sums = Panel(drawing, 570, 76, 18, "sums: 8 × 8", 8)
    samples.rect(0, 0, 16, 8, "tile")
    band.rect(0, 0, 8, 16, "idle")
    sums.rect(0, 0, 8, 8, "out")
    for n in range(8):
        band.rect(n, n, 1, SIZE, "halo")
        for k in range(SIZE):
            drawing.text(*band.at(n + 0.5, n + k + 0.8), "abcdefghi"[k], "quiet")
    for lane in range(32):
        g, t = divmod(lane, 4)
        for panel, x, y, width, height in ((samples, 4 * t, g, 4, 1), (band, g, 4 * t, 1, 4), (sums, 2 * t, g, 2, 1)):
            panel.rect(x, y, width, height, "edge", ' style="stroke-width: 0.5"')
        for panel, x, y in ((samples, 4 * t + 2, g), (sums, 2 * t + 1, g)):
            drawing.text(*panel.at(x, y + 0.74), f"{lane}", "ink")
    for panel, x, y, width, height in ((samples, 4, 2, 4, 1), (band, 2, 4, 1, 4), (sums, 2, 2, 2, 1)):
        panel.rect(x, y, width, height, "window")
    samples.across(4, 8, 0, "t = 1")
    samples.down(2, 3, 0, "g = 2")
    band.across(2, 3, 0, "g = 2")
    band.down(4, 8, 8, "t = 1", 8)
    drawing.text(357, 150, "×")
    drawing.text(552, 150, "=")
    note(drawing, "Numbers are lanes. Lane 4g + t gives 4 samples of chunk g and 4 taps of column g, and gets 2 sums of g.",
         "Orange: lane 9. Grey is zero: column n of the band is the row of taps, n places further down.")
    return drawing


DRAWINGS = [loop, threads, first, taps, tiles, roads, column, registers, profiler, fragments]
