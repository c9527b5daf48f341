#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The golden images: golden.py GPUCONV cpu|cuda checks them, and golden.py GPUCONV --update makes them anew.

Each variant of the backend applies every filter that it takes to source.png, into the folder golden/VARIANT beside
GPUCONV; each picture must hold the samples of the one here. A name with -16 stands for source-16.png, of 16 bits a
sample; digests.txt has the digests of their samples, in place of pictures. One with -linear stands for linear light;
unsharp_2_0.5 for unsharp:2:0.5. Even float variants hold the sums of all shipped filters exactly. Without a GPU, cuda
is skipped (exit status 77).

--update is the only way to change the expected images; look at them before they are committed. First the script
computes each picture a second time, with Python's integers and from the definition alone:

    out = clamp(floor(sum of tap * sample / scale + offset + 1/2))

With two grids, it takes the root of the sum of both sums' squares instead of the sum. With 16 bits, the offset is 257 *
offset. Linear light uses the tables of linear.py. Matrices and curves are computed by the second implementation of
the specification, and so are regions, masks, squares, automatic levels and ranks; a mask is source.png. Other sizes
are computed as in tests/cli/resize.py. Filters in two passes take the vectors that --show prints, and the picture
must be as near to that of the true Gaussian as --show says. If the reference variant disagrees, nothing is changed."""
import functools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
from fractions import Fraction

sys.dont_write_bytecode = True  # leave no files in the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "cli"), str(HERE.parent.parent / "docs" / "spec")]
import linear  # noqa: E402
import pixels  # noqa: E402
import pixels_steps  # noqa: E402
import resize  # noqa: E402
from harness import run, skip  # noqa: E402
from read_png import read_plain  # noqa: E402

FILTERS = HERE.parent.parent / "filters"
DIGESTS = HERE / "digests.txt"  # what gpuconv --digest prints of the pictures of 16 bits
OTHERS = ("gaussian9-16", "sharpen-16", "emboss-16", "sobel-16", "gaussian9-linear", "unsharp-linear",
          "box_64", "gaussian_2.5", "gaussian_2.5-16", "gaussian_12-16", "gaussian_4-linear", "unsharp_1.5_0.8_3",
          "unsharp_3_1.3-16", "resize_40x", "resize_150x_enlarge_mitchell-16", "resize_33x70_exact_triangle-linear",
          "resize_150x_enlarge_box", "crop_80x50+31+17", "crop_77x58_bottom_right-16", "pad_160x121_black-linear",
          "pad_131x96_white", "turn_90", "turn_180-16", "turn_270-linear", "mirror_x", "mirror_y-16",
          "grey-16", "grey-linear", "invert-16", "sepia-16", "sepia-linear", "levels_20_210_1.4", "levels_5%_90%-16",
          "gamma_2.2-16", "brightness_15", "contrast_30", "contrast_-40-linear", "saturation_60", "saturation_-50-16",
          "saturation_40-linear", "threshold_45", "threshold_60-16", "threshold_20-linear", "posterize_4",
          "posterize_7-16", "tint_#ff8000", "tint_#4080c0-16", "tint_#4080c0-linear", "swap_BRG", "swap_GGB-16",
          "pixelate_9", "pixelate_7-16", "auto-levels_2", "auto-levels_0.5-16", "auto-contrast_1", "gaussian_4@70x50+40-9",
          "sharpen@50%x60%+30%+25%-16", "pixelate_8@source.png", "gaussian_3@source.png-16",
          "median_3", "median_2.5_disk-16", "rank_4_30", "erode_3-16", "dilate_2", "open_4_disk", "close_3-16", "tophat_5-16",
          "blackhat_4_disk", "outline_2", "median_2-linear")


def filter_of(name):
    """The filter of a picture."""
    return name.removesuffix("-16").removesuffix("-linear").replace("_", ":")


def source_of(name):
    return HERE / ("source-16.png" if name.endswith("-16") else "source.png")


# ---- Pictures by gpuconv ----

@functools.cache
def show_all(program):
    """What --show says of the filter of each picture. One call shows a chain of all of them."""
    names = *sorted(path.stem for path in FILTERS.glob("*.txt")), *OTHERS
    return dict(zip(names, json.loads(run(program, "--show", ",".join(map(filter_of, names)), "--json").stdout), strict=True))


def takes(variant, name, shown):
    """Does the variant take the filter of a picture? None if only the program knows."""
    if shown.get("taps") is None:
        return None
    two = len(shown["taps"]) == 2 * shown["width"] * shown["height"]
    kind = variant["filters"]
    return ((16 in variant["bits"] or not name.endswith(("-16", "-linear")))
            and (kind != "separable only" or shown["separable"] and not two)
            and (kind != "moves only" or name == "identity" or name.startswith("shift"))
            and (kind not in ("one grid", "few taps") or not two)
            and (kind != "boxes only" or not two and set(shown["taps"]) == {1})
            and (kind != "two grids" or two) and kind not in ("two passes", "no taps"))


def make_pictures(program, variant, folder):
    """Make the pictures of a variant in FOLDER, which becomes new. Returns the names of those that must be there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    known = {name: takes(variant, name, shown) for name, shown in show_all(program).items()}
    names = [name for name, is_taken in known.items() if is_taken is not False]
    lines = [json.dumps({"filter": filter_of(name), "input": str(source_of(name)), "output": str(folder / f"{name}.png"),
                         "variant": variant["name"], "linear": name.endswith("-linear")}) for name in names]
    done = subprocess.run([program, "--quiet", "--ordered", "--jobs-from", "-"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{variant['name']}: exit status {done.returncode}\n{done.stderr}")
    # A picture that fails is missing when the folders are compared. A variant that does not take a filter says so of
    # its line, before the picture is read.
    errors = [json.loads(line).get("error", "") for line in done.stdout.splitlines()]
    taken = [(name, error) for number, (name, error) in enumerate(zip(names, errors, strict=True), 1)
             if known[name] or not error.startswith(f"line {number}: ")]
    for name, error in taken:
        if error:
            print(f"{name}: {error}")
    return [name for name, _ in taken]


def compare(program, folder, names, *options):
    """Compare the pictures of 8 bits in FOLDER with the expected ones. Returns gpuconv's exit status."""
    return subprocess.run([program, "--compare", HERE, folder, "--files-from", "-", *options], text=True,
                          input="".join(f"{name}.png\n" for name in names if not name.endswith("-16"))).returncode


def check_digests(program, folder, names):
    """Check the digests of golden images of 16 bits. One that digests.txt does not have is wrong."""
    expected = {line[66:]: line for line in DIGESTS.read_text(encoding="utf-8").splitlines()}
    lines = [expected.get(f"{name}.png", f"{0:064}  {name}.png") + "\n" for name in names if name.endswith("-16")]
    if not lines:  # the variant takes no 16 bits
        return 0
    return subprocess.run([program, "--check", "-", "--quiet"], cwd=folder, text=True, input="".join(lines)).returncode


def check(program, backend, top):
    """Check all variants of a backend. Returns the exit status."""
    if backend == "cuda":
        devices = json.loads(run(program, "--devices", "--json").stdout)
        if not devices["devices"]:
            skip(devices["error"])
    wrong = count = 0
    for variant in json.loads(run(program, "--list-variants", "--json").stdout):
        if variant["backend"] != backend or not {8, 16} & {*variant["bits"]}:
            continue
        folder, page = top / variant["name"] / "actual", top / variant["name"] / "report.html"
        names = make_pictures(program, variant, folder)
        print(f"{variant['name']}:", flush=True)
        count += len(names)
        status = compare(program, folder, names, folder.parent / "diff", "--new-fails", "--html", page)
        for shown, failed in ((page, status), (folder, check_digests(program, folder, names))):
            if failed:
                wrong = 1
                print(f"the pictures are in {shown}; if the change is meant: tests/golden/golden.py {program} --update")
    return wrong if count > 0 else 1


# ---- The definition ----

def read_filter(path):
    """(grids, each rows of taps divided by the scale, offset, absolute, anchor) of a filter file."""
    scale, offset, absolute, anchor, grids = Fraction(1), Fraction(0), False, None, [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split()
        if not words or words[0] == "title":
            continue
        if words[0] == "scale":
            scale = Fraction(words[1])
        elif words[0] == "offset":
            offset = Fraction(words[1])
        elif words[0] == "abs":
            absolute = True
        elif words[0] == "anchor":
            anchor = int(words[1]), int(words[2])
        elif words[0] == "combine":
            assert words[1] == "magnitude"
        elif words[0] == "---":
            grids.append([])
        else:
            grids[-1].append([Fraction(word) for word in words])
    anchor = anchor or (len(grids[0][0]) // 2, len(grids[0]) // 2)
    return [[[tap / scale for tap in row] for row in taps] for taps in grids], offset, absolute, anchor


def convolve(image, path):
    """The rows of samples that the filter at PATH makes of an image, with the border replicated."""
    width, height, channels, rows, bits = image
    grids, offset, absolute, (anchor_x, anchor_y) = read_filter(path)
    top = (1 << bits) - 1
    offset *= top // 255
    divisor = math.lcm(2 * offset.denominator, *(tap.denominator for taps in grids for row in taps for tap in row))
    offsets = int((offset + Fraction(1, 2)) * divisor)
    weights = [[(i - anchor_y, j - anchor_x, int(tap * divisor))
                for i, row in enumerate(taps) for j, tap in enumerate(row) if tap] for taps in grids]
    result = []
    for y in range(height):
        line = []
        for x in range(width):
            for channel in range(channels):
                totals = [0] * len(grids)
                for grid, taps in enumerate(weights):
                    for dy, dx, weight in taps:
                        column = min(max(x + dx, 0), width - 1)
                        totals[grid] += weight * rows[min(max(y + dy, 0), height - 1)][column * channels + channel]
                if len(grids) == 2:  # below, n * divisor - offsets <= root, where the left side is an integer
                    total = math.isqrt(totals[0] ** 2 + totals[1] ** 2)
                else:
                    total = abs(totals[0]) if absolute else totals[0]
                line.append(min(max((total + offsets) // divisor, 0), top))
        result.append(line)
    return result


def passes(rows, width, height, channels, weights, finish):
    """Weight the samples along the rows, then along the columns; finish() rounds the sums of the first."""
    across, down = weights
    middle = [[finish(sum(tap * row[min(max(x + j - len(across) // 2, 0), width - 1) * channels + channel]
                          for j, tap in enumerate(across)))
               for x in range(width) for channel in range(channels)] for row in rows]
    return [[sum(tap * middle[min(max(y + i - len(down) // 2, 0), height - 1)][at] for i, tap in enumerate(down))
             for at in range(width * channels)] for y in range(height)]


def convolve_passes(image, shown):
    """Convolve an image by a filter in two passes."""
    width, height, channels, rows, bits = image
    top, shift, scale = (1 << bits) - 1, shown["row_shift"], shown["scale"]
    sums = passes(rows, width, height, channels, (shown["row"], shown["column"]), lambda m: m + (1 << shift >> 1) >> shift)
    if shown["amount"] is None:
        return [[(2 * total + scale) // (2 * scale) for total in line] for line in sums]

    def mask(pixel, totals):
        details = [256 * sample - (512 * total + scale) // (2 * scale) for sample, total in zip(pixel, totals)]
        if max(map(abs, details)) < 256 * shown["threshold"]:
            return pixel
        return [min(max(math.floor(sample + Fraction(shown["amount"]) * e / 256 + Fraction(1, 2)), 0), top)
                for sample, e in zip(pixel, details)]
    return [[sample for x in range(0, len(row), channels) for sample in mask(row[x:x + channels], line[x:x + channels])]
            for row, line in zip(rows, sums)]


def check_truth(name, image, shown, made):
    """A Gaussian, or a mask of it without a threshold, is as near to the true one as --show says."""
    width, height, channels, rows, bits = image
    kind, *numbers = filter_of(name).split(":")
    if kind == "box" or shown["threshold"]:
        return
    sigma, amount = float(numbers[0]), float(numbers[1]) if kind == "unsharp" else None
    taps = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-int(9 * sigma), int(9 * sigma) + 1)]
    taps = [tap / sum(taps) for tap in taps]
    true = passes(rows, width, height, channels, (taps, taps), lambda m: m)
    for row, line, outputs in zip(rows, true, made):
        for sample, blur, output in zip(row, line, outputs):
            level = blur if amount is None else min(max(sample + amount * (sample - blur), 0), (1 << bits) - 1)
            if not abs(output - level) <= 0.5 + shown["largest_error"] + 1e-6:
                sys.exit(f"{name}: {output} is too far from {level}; nothing was changed")


def convolve_linear(image, definition):
    """Convolve an image of 8 bits without alpha in linear light. DEFINITION convolves 16 bits."""
    width, height, channels, rows, bits = image
    assert bits == 8 and channels % 2 == 1
    curve = {name: table for name, (table, _) in linear.tables().items()}
    light = [[curve["from8"][sample] for sample in row] for row in rows]
    return [[curve["to8"][sample] for sample in row]
            for row in definition((width, height, channels, light, 16))]


def convolve_resize(image, shown):
    """Another size, by the definition of tests/cli/resize.py: each channel for itself."""
    width, height, channels, rows, bits = image
    kernel, new_width = shown["kernel"], shown["width"]
    new_height = shown["height"] if shown["exact"] else max(1, (2 * height * new_width + width) // (2 * width))
    axes = resize.Axis(kernel, height, new_height, bits), resize.Axis(kernel, width, new_width, bits)
    planes = [resize.resized([row[c::channels] for row in rows], *axes, bits)[0] for c in range(channels)]
    return [[sample for pixel in zip(*lines) for sample in pixel] for lines in zip(*planes)]


def move(image, name):
    """Samples that only move. A pad lies in the middle."""
    width, height, channels, rows, bits = image
    pixels = [[row[x:x + channels] for x in range(0, len(row), channels)] for row in rows]
    kind, size, *words = filter_of(name).split(":")
    if kind == "crop":
        w, h = map(int, size.split("+")[0].split("x"))
        x, y = map(int, size.split("+")[1:]) if "+" in size else (width - w, height - h)
        assert words in ([], ["bottom", "right"])
        pixels = [row[x:x + w] for row in pixels[y:y + h]]
    elif kind == "pad":
        w, h = map(int, size.split("x"))
        ground = {"black": [0, 0, 0], "white": [255, 255, 255]}[words[0]]
        left, top = (w - width) // 2, (h - height) // 2
        pixels = [[pixels[y - top][x - left] if 0 <= x - left < width and 0 <= y - top < height else ground
                   for x in range(w)] for y in range(h)]
    else:
        turns = {"90": lambda p: zip(*p[::-1]), "180": lambda p: [row[::-1] for row in p[::-1]],
                 "270": lambda p: [*zip(*p)][::-1], "x": lambda p: [row[::-1] for row in p], "y": lambda p: p[::-1]}
        pixels = turns[size](pixels)
    return [[sample for pixel in row for sample in pixel] for row in pixels]


def picture_of(image):
    width, height, channels, rows, bits = image
    return pixels.Picture(width, height, channels, bits, [sample for row in rows for sample in row])


def change(image, name):
    """What pixels.py makes: a file of grey has one channel."""
    spec = filter_of(name).removesuffix("@source.png")
    (step,) = pixels_steps.read_step(spec, {})
    if spec != filter_of(name):
        step.mask = picture_of(read_plain(HERE / "source.png"))
    picture = picture_of(image)
    made = pixels.narrowed(pixels.Chain([step], picture, {}).run(step, picture), [step], picture.channels)
    stride = made.width * made.channels
    return [made.samples[i:i + stride] for i in range(0, len(made.samples), stride)]


def check_definition(program, name, made):
    """The picture MADE must be the defined one. It must not be one grey, or black and white, which hides mistakes."""
    image, shown = read_plain(source_of(name)), show_all(program)[name]
    if name.endswith(("-16", "-linear")):
        shown = shown.get("deep") or shown

    def definition(image):
        if "move" in shown:
            return move(image, name)
        if {"matrix", "square", "footprint"} & {*shown} or "@" in name:
            return change(image, name)
        if "kernel" in shown:
            return convolve_resize(image, shown)
        if shown["taps"] is None:
            return convolve_passes(image, shown)
        return convolve(image, FILTERS / f"{filter_of(name)}.txt")
    defined = (convolve_linear(image, definition) if name.endswith("-linear") and "move" not in shown
               else definition(image))
    if not {"kernel", "move", "matrix", "square", "footprint"} & {*shown} and "@" not in name and shown["taps"] is None and not name.endswith("-linear"):
        check_truth(name, image, shown, defined)
    if read_plain(made)[3:] != (defined, image[4]):
        sys.exit(f"{name}: the program and this script do not agree; nothing was changed")
    samples = [sample for row in defined for sample in row]
    inside = sum(0 < sample < (1 << image[4]) - 1 for sample in samples)
    is_coarse = name.startswith(("threshold", "posterize"))
    if not is_coarse and (len(set(samples)) < 16 or inside < len(samples) // 8):
        sys.exit(f"{name}: the picture is nearly constant or saturated and tests nothing")


def update(program, folder):
    reference = json.loads(run(program, "--list-variants", "--json").stdout)[0]
    names = make_pictures(program, reference, folder)
    for name in names:
        check_definition(program, name, folder / f"{name}.png")
    deep = [f"{name}.png" for name in names if name.endswith("-16")]
    DIGESTS.write_bytes(subprocess.check_output([program, "--digest", *deep], cwd=folder))
    # Another version of libdeflate compresses to other bytes. An image whose samples are the same stays.
    return compare(program, folder, names, "--update")


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("cpu", "cuda", "--update"):
        sys.exit("usage: golden.py GPUCONV cpu|cuda|--update")
    program = os.path.abspath(sys.argv[1])
    top = pathlib.Path(program).parent / "golden"
    os.chdir(HERE)  # source.png is a mask
    for name in ("GPUCONV_FILTERS", "XDG_CONFIG_HOME"):
        os.environ.pop(name, None)
    os.environ["HOME"] = str(HERE)  # no filters of the user's own
    return check(program, sys.argv[2], top) if sys.argv[2] != "--update" else update(program, top / "update")


sys.exit(main())
