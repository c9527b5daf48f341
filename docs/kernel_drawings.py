# SPDX-License-Identifier: MIT
"""The drawings of docs/kernels.md. They are of a 9 x 9 filter, in samples."""
from drawing import Drawing, Panel

SIZE = 9


def outputs(drawing, y, scale, width, height, thread, title="its outputs"):
    """The outputs of a block, and those of a thread."""
    panel = Panel(drawing, 660 - width * scale, y, scale, title, width)
    panel.rect(0, 0, width, height, "out")
    for x, y in thread:
        panel.rect(x, y, 1, 1, "mine")
    panel.down(0, height, width, f"{height}", 8)
    return panel


def pixel_a_thread(*road, pixels=1):
    """Blocks of 32 x 8 threads; a thread makes PIXELS outputs, a block's height apart."""
    rows, scale = 8 * pixels, 6 if pixels == 1 else 5
    drawing = Drawing(760, 70 + (rows + 8) * scale + 60)
    left = Panel(drawing, 70, 60, scale, "samples that a block reads", 40)
    right = outputs(drawing, 60 + 4 * scale, scale, 32, rows, [(10, 3 + 8 * k) for k in range(pixels)])
    left.rect(0, 0, 40, rows + 8, "halo")
    left.rect(4, 4, 32, rows, "tile")
    for k in range(pixels):
        left.cells(10, 3 + 8 * k, SIZE, SIZE)
    left.across(4, 36, 0, "32")
    left.down(4, 4 + rows, 0, str(rows))
    left.across(36, 40, rows + 8, "4", 8)
    left.across(10, 19, rows + 8, "9", 8)
    right.across(0, 32, 0, "32 threads: a warp is a row")
    if pixels > 1:
        right.down(16, 24, 0, "block 8")
    drawing.arrow(left.at(19.5, 7.5), right.at(9.5, 3.5), left.at(40, 0)[0], right.x, *road)
    return drawing


def basic():
    return pixel_a_thread("81 samples and", "81 taps, by L1")


def constant():
    return pixel_a_thread("81 samples by L1;", "taps are operands")


def coarsened():
    return pixel_a_thread("4 × 81 samples by L1;", "a tap serves 4", pixels=4)


def texture():
    return pixel_a_thread("81 coordinates to", "the texture unit")


def tile(inputs, made, shared, *road):
    """A tile of INPUTS x INPUTS samples in shared memory, and the MADE x MADE outputs of the block."""
    drawing = Drawing(760, 40 * 6 + 135)
    start = (40 - inputs) // 2
    left = Panel(drawing, 70 + start * 6, 60 + start * 6, 6, "samples that a block reads", inputs)
    left.rect(0, 0, inputs, inputs, "halo")
    left.rect(4, 4, made, made, "tile")
    left.rect(0, 0, inputs, inputs, "edge")
    left.across(0, inputs, 0, f"{shared} {inputs}")
    left.down(0, inputs, 0, str(inputs))
    left.across(4, 4 + made, inputs, str(made), 8)
    left.cells(14, 10, SIZE, SIZE)
    right = outputs(drawing, left.y + 24, 6, 32, made, [(14, 10)])
    drawing.arrow(left.at(23.5, 14.5), right.at(13.5, 10.5), left.at(inputs, 0)[0], right.x, *road)
    return drawing, left, right


def tiled_input():
    drawing, _, right = tile(32, 24, "block and tile", "81 reads of", "shared memory")
    right.rect(24, 0, 8, 32, "idle")
    right.rect(0, 24, 24, 8, "idle")
    right.across(0, 24, 0, "24")
    right.across(0, 32, 32, "block 32 × 32", 8)
    return drawing


def tiled_output():
    drawing, left, right = tile(40, 32, "tile", "81 reads of", "shared memory")
    (x, y), (far, bottom) = left.at(32, 32), left.at(40, 40)
    drawing.path("edge", f"M{x:g} {left.y:g}V{bottom:g}M{left.x:g} {y:g}H{far:g}", ' stroke-dasharray="4 3"')
    drawing.text((left.x + x) / 2, left.y + 16, "first loads", "quiet")
    right.across(0, 32, 0, "block 32")
    return drawing


def tiled_cached():
    drawing = Drawing(760, 40 * 6 + 135)
    left = Panel(drawing, 70, 60, 6, "samples that a block reads", 40)
    left.rect(0, 0, 40, 40, "halo")
    left.rect(4, 4, 32, 32, "tile")
    left.rect(4, 4, 32, 32, "edge")
    left.cells(31, 10, SIZE, SIZE)
    left.across(4, 36, 0, "tile in shared memory 32")
    left.across(36, 40, 40, "4: by L1 and L2", 8)
    left.down(4, 36, 0, "32")
    right = outputs(drawing, 84, 6, 32, 32, [(31, 10)])
    right.across(0, 32, 0, "block 32")
    drawing.arrow(left.at(40.5, 14.5), right.at(30.5, 10.5), left.at(40, 0)[0], right.x,
                  "81 reads, each", "asks: in the tile?")
    return drawing


def many_sums():
    drawing = Drawing(760, 280)
    left = Panel(drawing, 110, 60, 10, "samples that a thread reads", 12)
    left.rect(0, 0, 12, 16, "halo")
    left.rect(4, 4, 4, 8, "tile")
    left.cells(0, 1, 12, 1)
    left.across(0, 12, 0, "12: three words")
    left.down(0, 16, 0, "16 = 8 + 8")
    left.across(4, 8, 16, "4", 8)
    right = outputs(drawing, 100, 10, 4, 8, [(x, y) for x in range(4) for y in range(8)], "its outputs")
    right.across(0, 4, 0, "4")
    right.across(0, 4, 8, "32 sums in registers", 8)
    for k in range(2):
        drawing.arrow(left.at(12.6, 1.5), right.at(-0.6, k + 0.5), 0, 0)
    drawing.text(425, 60, "a row is read once, and added to each row of outputs")
    drawing.text(425, 150, "row 1 to outputs 0 and 1, row 7 to all 8", "quiet")
    return drawing


def walk(slots, samples, rows, road, ring):
    """A warp on its way down a strip: the strip, the rows on their way, the sums of a lane."""
    drawing = Drawing(760, 290)
    strip = Panel(drawing, 60, 70, 1.5, "a warp's strip", samples)
    before = (samples - 128) // 2
    strip.rect(0, 0, samples, 80, "halo")
    strip.rect(before, 8, 128, 64, "tile")
    strip.rect(0, 30, samples, 2, "edge")
    strip.across(before, before + 128, 0, "128")
    strip.down(8, 72, 0, str(rows))
    strip.across(0, before, 80, f"halo {before}", 8)
    lane = Panel(drawing, 400, 82, 7, ring, 12)
    for k in range(slots):
        lane.rect(0, 2 * k, 12, 1.4, "halo")
    lane.cells(0, 2 * (slots - 1), 12, 1)
    lane.across(0, 12, 0, "a lane's window 12" if slots < 3 else f"{slots} rows of {samples}")
    sums = Panel(drawing, 610, 82, 10, "its sums, in registers", 4)
    for i in range(SIZE):
        sums.rect(0, 1.5 * i, 4, 1.2, "mine" if i == SIZE - 1 else "out")
    sums.across(0, 4, 0, "4")
    sums.down(0, 13.2, 4, "9 rows", 8)
    drawing.text(630, 238, "the last is done", "quiet")
    drawing.arrow(strip.at(samples + 1, 31), (394, 87), strip.at(samples, 0)[0], 400, *road)
    drawing.arrow((490, 84 + 14 * slots - 10), (602, 140), 484, 610, "9 × 36", "multiply-adds")
    return drawing


def rows_ahead():
    return walk(2, 136, 32, ("3 words,", "a row ahead"), "registers: rows r + 1 and r")


def row_ring():
    return walk(8, 136, 32, ("copies,", "7 rows ahead"), "ring in shared memory")


def register_tiled():
    return walk(8, 136, 64, ("copies of 16", "bytes, ahead"), "ring in shared memory (float)")


def separable():
    drawing = Drawing(760, 240)
    window = Panel(drawing, 40, 100, 14, "a row of the ring", 12)
    window.rect(0, 0, 12, 1, "halo")
    window.rect(4, 0, 4, 1, "tile")
    window.cells(0, 0, 12, 1)
    window.across(0, 12, 0, "a lane's window 12")
    row = Panel(drawing, 350, 100, 14, "4 row sums", 4)
    row.rect(0, 0, 4, 1, "tile")
    sums = Panel(drawing, 590, 50, 10, "sums of 9 output rows", 4)
    for i in range(SIZE):
        sums.rect(0, 1.5 * i, 4, 1.2, "mine" if i == SIZE - 1 else "out")
    sums.down(0, 13.2, 4, "9 rows, in registers", 8)
    drawing.arrow((214, 107), (344, 107), 214, 350, "row: 9 multiply-", "adds an output")
    drawing.arrow((412, 107), (582, 107), 412, 590, "column: 9 multiply-", "adds an output")
    return drawing


def tensor_core():
    """mma.m16n8k16: its operands, its result, and what lane 9 holds of them."""
    drawing = Drawing(760, 350)
    image = Panel(drawing, 30, 60, 14, "16 chunks of 16 samples", 16)
    band = Panel(drawing, 365, 60, 14, "band matrix of taps a to i", 8)
    image.rect(0, 0, 16, 16, "tile")
    image.across(0, 16, 0, "16")
    image.down(0, 16, 16, "16", 8)
    drawing.text(325, 175, "×")
    band.rect(0, 0, 8, 16, "idle")
    for n in range(8):
        band.rect(n, n, 1, SIZE, "halo")
        for k in range(SIZE):
            drawing.text(*band.at(n + 0.5, n + k + 0.8), "abcdefghi"[k], "quiet")
    band.across(0, 8, 0, "8")
    band.down(0, 16, 8, "16", 8)
    drawing.text(530, 175, "=")
    sums = outputs(drawing, 60, 14, 8, 16, [(2, 2), (3, 2), (2, 10), (3, 10)], "16 × 8 sums")
    sums.across(0, 8, 0, "8")
    for row in (2, 10):
        image.cells(4, row, 4, 1)
    band.rect(2, 4, 1, 4, "window")
    drawing.used = []
    drawing.text(30, 325, "Marked: what lane 9 of 32 holds: 8 samples and 4 taps as bytes, and 4 sums as integers. Grey is zero.",
                 "quiet", "start")
    return drawing


def blur():
    """A block of four warps, with 9 taps: stages of samples, the ring of sums, outputs."""
    drawing = Drawing(760, 316)
    left = Panel(drawing, 40, 75, 2.6, "samples, in shared memory", 72)
    for k in range(2):
        left.rect(0, 36 * k, 72, 32, "halo")
        left.rect(4, 36 * k, 64, 32, "tile")
    left.rect(16, 0, 24, 32, "window")
    left.across(4, 68, 0, "64 columns")
    left.down(0, 32, 0, "32")
    left.across(16, 40, 32, "24", 4)
    drawing.text(*left.at(36, 76), "one stage on its way", "quiet")
    ring = Panel(drawing, 328, 75, 2.4, "ring of the rounded sums", 64)
    for k in range(3):
        ring.rect(2, 20 * k + 2, 64, 16, "halo")  # the other byte of the sums
        ring.rect(0, 20 * k, 64, 16, "tile")
    ring.rect(32, 0, 32, 36, "window")
    ring.across(32, 64, 0, "32")
    drawing.text(*ring.at(32, 66), "blocks of 16 rows; behind", "quiet")
    drawing.text(*ring.at(32, 73), "each, the sums' other bytes", "quiet")
    right = Panel(drawing, 570, 75, 2.4, "32 rows of outputs", 64)
    right.rect(0, 0, 64, 32, "out")
    right.rect(32, 0, 32, 16, "mine")
    right.across(32, 64, 0, "32")
    right.down(0, 16, 64, "16", 8)
    drawing.arrow(left.at(73, 8), (ring.x - 6, left.at(0, 8)[1]), left.at(72, 0)[0], ring.x, "× band of", "row taps")
    drawing.arrow((ring.at(66, 0)[0] + 4, left.at(0, 8)[1]), (right.x - 6, left.at(0, 8)[1]), ring.at(66, 0)[0], right.x,
                  "× band of", "column taps")
    drawing.used = []
    drawing.text(30, 303, "Marked: what one of four warps reads and makes. A band is as tensor-core's, of 16 × 32 bytes.",
                 "quiet", "start")
    return drawing


def sparse():
    drawing = Drawing(760, 240)
    left = Panel(drawing, 60, 60, 14, "a filter with 9 taps in 81", SIZE)
    left.rect(0, 0, SIZE, SIZE, "idle")
    for i in range(SIZE):
        left.rect(i, (17 - i) // 2 - 2, 1, 1, "tile")
    left.rect(0, 0, SIZE, SIZE, "edge")
    left.across(0, SIZE, 0, "9")
    left.down(0, SIZE, 0, "9")
    names = Panel(drawing, 330, 60, 14, "a list in constant memory", SIZE)
    for i in range(SIZE):
        names.rect(0, i, 8.6, 0.8, "tile")
    drawing.text(*names.at(4.3, 10.2), "offset and tap of each", "quiet")
    right = outputs(drawing, 67, 14, 4, 8, [(x, y) for x in range(4) for y in range(8)], "a thread's outputs")
    right.across(0, 4, 0, "4")
    drawing.arrow((200, 123), (322, 123), 200, 322, "only those", "not zero")
    drawing.arrow((462, 123), (right.x - 6, 123), 462, right.x, "a tap is added", "to all of them")
    drawing.used = []
    return drawing


def copy():
    drawing = Drawing(760, 210)
    left = Panel(drawing, 30, 80, 10, "samples of uint8_t", 32)
    left.rect(0, 0, 32, 4, "halo")
    left.rect(5, 0, 16, 4, "tile")
    left.rect(0, 0, 32, 4, "window")
    left.across(0, 16, 0, "aligned load of 16")
    left.across(16, 32, 0, "and another")
    left.across(5, 21, 4, "16 bytes at any offset", 8)
    left.down(0, 4, 32, "4 rows", 8)
    right = Panel(drawing, 560, 80, 10, "outputs", 16)
    right.rect(0, 0, 16, 4, "mine")
    right.across(0, 16, 0, "an aligned store")
    drawing.arrow((430, 100), right.at(-0.5, 2), 430, right.x, "shifted", "in registers")
    drawing.used = ["window", "mine"]
    return drawing


def gradient():
    drawing = Drawing(760, 220)
    left = Panel(drawing, 50, 75, 14, "a row, and two grids of 3 × 3 taps", 10)
    left.rect(0, 0, 10, 1, "halo")
    left.rect(1, 0, 8, 1, "tile")
    left.cells(0, 0, 10, 1)
    left.across(1, 9, 0, "8 columns of a thread")
    right = Panel(drawing, 580, 75, 14, "8 outputs", 8)
    right.rect(0, 0, 8, 1, "mine")
    for y, words in ((75, "sums of grid 1"), (145, "sums of grid 2")):
        sums = Panel(drawing, 310, y, 14, "", 8)
        sums.rect(0, 0, 8, 1, "out")
        drawing.text(366, y + 32, words, "quiet")
        drawing.arrow((196, 82), (304, y + 7), 196, 304, "")
        drawing.arrow((428, y + 7), (574, 82), 428, 574, "root of squares" if y == 75 else "")
    drawing.used = ["halo", "tile", "window", "mine"]
    return drawing


DRAWINGS = [basic, constant, coarsened, tiled_input, tiled_output, tiled_cached, texture, register_tiled,
            separable, tensor_core, blur, sparse, copy, gradient]
STEPS = [many_sums, rows_ahead, row_ring]  # of docs/learn/strips.md
