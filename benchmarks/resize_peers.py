#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare resize with its peers: resize_peers.py GPUCONV [--json FILE] [--magick PROGRAM] [--times | --pillow].

Each peer, as far as it is installed, resizes a photo and noise of 8 bits by each kernel that it has under that name. The
table has the largest and the mean difference, in levels, of each from gpuconv, and of both from the kernel in doubles:
centres aligned, support widened where the picture shrinks, weights normalised, the edge repeated. `inside` leaves out the
outputs whose kernel reaches beyond the edge, where programs do other things. The peers are Pillow, OpenCV, libvips
(pyvips), ImageMagick 6 or 7 (PROGRAM), kornia-rs, and PyTorch with antialias.

--times instead measures what one thread takes for 15 megapixels of RGB to their half and to 2048 columns, by Pillow,
OpenCV, kornia-rs and gpuconv's Python package, in turn.

--pillow instead measures the processor time of one thread for 16 megapixels of RGB to 852 x 567 by Pillow's Lanczos,
and counts the samples that differ from Pillow's. Programs take turns, each in a process of its own: gpuconv with three
instruction sets, Pillow, fast_image_resize (cykooz-resizer) and OpenCV's Lanczos, which does not widen its support.
With --simd FOLDER, so does pillow-simd, which `CC="cc -mavx2" pip install --no-deps --target FOLDER pillow-simd`
builds. These rows replace the key `pillow` of FILE, and leave the others."""
import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy

REACH = {"lanczos3": 3, "cubic": 2, "mitchell": 2, "triangle": 1, "box": 0.5}
RATIOS = {"0.1": 0.1, "0.41": 0.41, "0.5": 0.5, "1.7": 1.7}


# ---- The kernel in doubles ----

def kernel(name, x):
    x = numpy.abs(x)
    if name == "lanczos3":
        return numpy.where(x < 3, numpy.sinc(x) * numpy.sinc(x / 3), 0)
    if name == "cubic":
        return numpy.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1,
                           numpy.where(x < 2, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2, 0))
    if name == "mitchell":
        return numpy.where(x < 1, 7 * x**3 - 12 * x**2 + 16 / 3,
                           numpy.where(x < 2, -7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3, 0)) / 6
    if name == "triangle":
        return numpy.maximum(0, 1 - x)
    return numpy.where(x < 0.5, 1, numpy.where(x == 0.5, 0.5, 0))


def matrix(name, before, after):
    """The weights of one axis, and which outputs reach beyond the edge."""
    weights, longest = numpy.zeros((after, before)), max(before, after)
    outside = numpy.zeros(after, bool)
    for i in range(after):
        middle = (i + 0.5) * before / after - 0.5
        reach = REACH[name] * longest / after + 1
        taps = numpy.arange(int(numpy.floor(middle - reach)), int(numpy.ceil(middle + reach)) + 1)
        values = kernel(name, ((2 * taps + 1) * after - (2 * i + 1) * before) / (2 * longest))
        outside[i] = numpy.any(values[(taps < 0) | (taps >= before)] != 0)
        numpy.add.at(weights[i], numpy.clip(taps, 0, before - 1), values / values.sum())
    return weights, outside


def ideal(name, image, width, height):
    rows, beyond_y = matrix(name, image.shape[0], height)
    columns, beyond_x = matrix(name, image.shape[1], width)
    exact = numpy.einsum("ij,jkc,lk->ilc", rows, image.astype(float), columns, optimize=True)
    return numpy.clip(exact, 0, 255), ~(beyond_y[:, None] | beyond_x[None, :])


# ---- The programs ----

def pillow():
    from PIL import Image, __version__
    names = {"lanczos3": Image.LANCZOS, "cubic": Image.BICUBIC, "triangle": Image.BILINEAR, "box": Image.BOX}

    def run(name, image, width, height):
        return numpy.asarray(Image.fromarray(image).resize((width, height), names[name]))
    return __version__, names, run


def opencv():
    import cv2
    names = {"cubic": cv2.INTER_CUBIC, "triangle": cv2.INTER_LINEAR, "box": cv2.INTER_AREA}
    return cv2.__version__, names, lambda name, image, width, height: cv2.resize(image, (width, height),
                                                                                   interpolation=names[name])


def vips():
    """It enlarges by another operation, affine, which is no kernel of this table."""
    import pyvips
    names = {"lanczos3": "lanczos3", "cubic": "cubic", "mitchell": "mitchell", "triangle": "linear"}

    def run(name, image, width, height):
        source = pyvips.Image.new_from_array(image)
        return source.resize(width / image.shape[1], vscale=height / image.shape[0], kernel=names[name], gap=0).numpy()
    return ".".join(str(pyvips.version(i)) for i in range(3)), names, run


def kornia():
    import kornia_rs
    names = {"lanczos3": "lanczos", "cubic": "bicubic", "triangle": "bilinear"}
    call = kornia_rs.imgproc.resize if hasattr(kornia_rs, "imgproc") else kornia_rs.resize
    call(numpy.zeros((8, 8, 3), numpy.uint8), (4, 4), "bilinear")
    return kornia_rs.__version__, names, lambda name, image, width, height: numpy.asarray(
        call(numpy.ascontiguousarray(image), (height, width), names[name]))


def torch():
    module = importlib.import_module("torch")
    names = {"cubic": "bicubic", "triangle": "bilinear"}

    def run(name, image, width, height):
        tensor = module.from_numpy(image).permute(2, 0, 1)[None]
        return module.nn.functional.interpolate(tensor, (height, width), mode=names[name], antialias=True,
                                                align_corners=False)[0].permute(1, 2, 0).numpy()
    return module.__version__, names, run


def magick(program):
    names = {"lanczos3": "Lanczos", "cubic": "Catrom", "mitchell": "Mitchell", "triangle": "Triangle", "box": "Box"}
    version = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stdout.split()[2]

    def run(name, image, width, height):
        with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
            write(folder, image)
            subprocess.run([program, f"{folder}/in.ppm", "-colorspace", "sRGB", "-filter", names[name], "-resize",
                            f"{width}x{height}!", "-depth", "8", f"{folder}/out.ppm"], check=True)
            return read(folder)
    return version, names, run


def write(folder, image):
    with open(f"{folder}/in.ppm", "wb") as file:
        file.write(b"P6 %d %d 255\n" % (image.shape[1], image.shape[0]) + image.tobytes())


def read(folder):
    with open(f"{folder}/out.ppm", "rb") as file:
        _, size, _, samples = file.read().split(b"\n", 3)
    width, height = map(int, size.split())
    return numpy.frombuffer(samples, numpy.uint8).reshape(height, width, 3)


def own(program, name, image, width, height):
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        write(folder, image)
        subprocess.run([program, "-q", f"resize:{width}x{height}:exact:{name}", f"{folder}/in.ppm", f"{folder}/out.ppm"],
                       check=True)
        return read(folder)


# ---- The table ----

def pictures(program):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory(prefix="gpuconv-") as folder:
        subprocess.run([program, "-q", "identity", f"{root}/samples/coffee.png", f"{folder}/out.ppm"], check=True)
        photo = read(folder)
    return {"photo": photo, "noise": numpy.random.default_rng(35).integers(0, 256, (300, 401, 3), numpy.uint8)}


def distance(a, b, inside):
    difference = numpy.abs(a.astype(float) - b)[inside]
    return {"largest": round(float(difference.max()), 3), "mean": round(float(difference.mean()), 4)}


def compare(program, peers):
    rows = []
    for picture, image in pictures(program).items():
        for ratio, factor in RATIOS.items():
            width, height = (max(1, round(side * factor)) for side in (image.shape[1], image.shape[0]))
            for name in REACH:
                exact, inside = ideal(name, image, width, height)
                ours = own(program, name, image, width, height)
                everywhere = numpy.ones_like(inside)
                rows.append({"program": "gpuconv", "kernel": name, "ratio": ratio, "picture": picture,
                             "ideal": distance(ours, exact, everywhere), "ideal_inside": distance(ours, exact, inside)})
                for peer, (_, names, run) in peers.items():
                    if name not in names or (peer == "libvips" and factor > 1):
                        continue
                    theirs = run(name, image, width, height)
                    assert theirs.shape == ours.shape, (peer, name, ratio, theirs.shape, ours.shape)
                    rows.append({"program": peer, "kernel": name, "ratio": ratio, "picture": picture,
                                 "gpuconv": distance(theirs, ours, everywhere),
                                 "gpuconv_inside": distance(theirs, ours, inside),
                                 "ideal": distance(theirs, exact, everywhere),
                                 "ideal_inside": distance(theirs, exact, inside)})
    return rows


def print_rows(rows):
    print(f"{'program':12}{'kernel':10}{'ratio':7}{'picture':9}{'from gpuconv':>16}{'from ideal':>18}{'inside':>18}")
    for row in rows:
        cells = (row.get("gpuconv"), row["ideal"], row["ideal_inside"])
        print(f"{row['program']:12}{row['kernel']:10}{row['ratio']:7}{row['picture']:9}" + "".join(
            f"{cell['largest']:10.2f} {cell['mean']:7.3f}" if cell else " " * 18 for cell in cells))


def measure(peers):
    """Milliseconds of one thread, the median of 11 runs in turn."""
    import gpuconv
    image = numpy.random.default_rng(1).integers(0, 256, (3168, 4752, 3), numpy.uint8)
    context = gpuconv.Context(threads=1)
    programs = {peer: run for peer, (_, names, run) in peers.items() if peer in ("Pillow", "OpenCV", "kornia-rs")}
    rows = []
    for width, height in ((2376, 1584), (2048, 1365)):
        for name in ("lanczos3", "cubic", "triangle", "box"):
            calls = {peer: functools.partial(run, name, image, width, height) for peer, run in programs.items()
                     if name in peers[peer][1]}
            taps = gpuconv.Filter(f"resize:{width}x{height}:exact:{name}")
            calls["gpuconv"] = functools.partial(gpuconv.filter, image, taps, context=context)
            times = {peer: [] for peer in calls}
            for _ in range(11):
                for peer, call in calls.items():
                    start = time.perf_counter()
                    call()
                    times[peer].append(1e3 * (time.perf_counter() - start))
            for peer, found in times.items():
                rows.append({"program": peer, "kernel": name, "to": [width, height],
                             "ms": round(float(numpy.median(found)), 2), "least_ms": round(min(found), 2)})
                print(f"{peer:12}{name:10}{width:6} x {height:<6}{rows[-1]['ms']:9.2f} ms", flush=True)
    return rows


# ---- Pillow's rule ----

BEFORE, AFTER, TURNS, CALLS = (4928, 3279), (852, 567), 15, 5


def lanczos(program, image):
    """The version of PROGRAM, a function that resizes IMAGE, and one that gives the samples of its result."""
    if program.startswith("gpuconv"):
        import gpuconv
        result, context = numpy.empty((*AFTER[::-1], 3), numpy.uint8), gpuconv.Context(threads=1)
        taps = gpuconv.Filter("resize:{}x{}:exact:pillow-lanczos".format(*AFTER))
        return gpuconv.__version__, lambda: gpuconv.filter(image, taps, out=result, context=context), numpy.asarray
    if program == "fast_image_resize":
        import cykooz_resizer as resizer
        kind = resizer.PixelType.U8x3
        before, after = resizer.ImageData(*BEFORE, kind, image.tobytes()), resizer.ImageData(*AFTER, kind)
        options = resizer.ResizeOptions(resizer.ResizeAlg.convolution(resizer.FilterType.lanczos3))
        return (importlib.metadata.version("cykooz-resizer"),
                functools.partial(resizer.Resizer().resize, before, after, options),
                lambda _: numpy.frombuffer(after.get_buffer(), numpy.uint8))
    if program == "OpenCV":
        import cv2
        cv2.setNumThreads(1)
        return cv2.__version__, lambda: cv2.resize(image, AFTER, interpolation=cv2.INTER_LANCZOS4), numpy.asarray
    from PIL import Image, __version__
    before = Image.fromarray(image)
    return __version__, lambda: before.resize(AFTER, Image.LANCZOS), numpy.asarray


def take_turn(program):
    """Print a line of JSON with the version and the milliseconds of a processor for each call, and then the samples."""
    image = numpy.random.default_rng(1).integers(0, 256, (*BEFORE[::-1], 3), numpy.uint8)
    version, run, samples_of = lanczos(program, image)
    times = []
    for _ in range(CALLS + 1):
        start = time.process_time()
        result = run()
        times.append(1e3 * (time.process_time() - start))
    print(json.dumps([version, times[1:]]), flush=True)
    sys.stdout.buffer.write(samples_of(result).tobytes())


def measure_pillow(program, simd):
    found = {f"gpuconv, {name}": {"GPUCONV_CPU": name} for name in ("avx2", "avx512", "vnni")}
    found |= {"Pillow": {}, "fast_image_resize": {}, "OpenCV": {}}
    if simd:
        found["pillow-simd"] = {"PYTHONPATH": os.pathsep.join([simd, os.environ.get("PYTHONPATH", "")])}
    versions, times, results = {}, {}, {}
    for name in TURNS * [*found]:
        done = subprocess.run([sys.executable, __file__, program, "--turn", name], env=os.environ | found[name],
                              stdout=subprocess.PIPE, check=True)
        line, _, samples = done.stdout.partition(b"\n")
        versions[name], calls = json.loads(line)
        times.setdefault(name, []).extend(calls)
        results[name] = numpy.frombuffer(samples, numpy.uint8).astype(int)
    rows = []
    for name, found in times.items():
        off = abs(results[name] - results["Pillow"])
        rows.append({"program": name, "version": versions[name], "ms": round(float(numpy.median(found)), 2),
                     "least_ms": round(min(found), 2), "differ": float((off > 0).mean()), "largest": int(off.max())})
        print("{program:20}{version:16}{ms:8.2f} ms, at least {least_ms:8.2f} ms".format(**rows[-1]) +
              f"{100 * rows[-1]['differ']:8.2f}% of samples differ from Pillow's, by up to {rows[-1]['largest']}")
    return rows


# ---- The command line ----

def save(path, new):
    """Write the keys of NEW to the file, with a line for each row, and keep its other keys."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            new = json.load(file) | new
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",\n ".join(f'"{key}": ' + ("[\n  " + ",\n  ".join(map(json.dumps, value)) + "]"
                                                     if isinstance(value, list) else json.dumps(value))
                                     for key, value in new.items()) + "}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="GPUCONV")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--magick", metavar="PROGRAM")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--pillow", action="store_true")
    parser.add_argument("--simd", metavar="FOLDER")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turn:
        return take_turn(options.turn)
    if options.pillow:
        rows = measure_pillow(options.program, options.simd)
        return options.json and save(options.json, {"pillow": rows})
    found = {"Pillow": pillow, "OpenCV": opencv, "libvips": vips, "kornia-rs": kornia, "PyTorch": torch}
    if options.magick:
        found["ImageMagick"] = functools.partial(magick, options.magick)
    peers = {}
    for name, make in found.items():
        try:
            peers[name] = make()
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    if options.times:
        if "OpenCV" in peers:
            importlib.import_module("cv2").setNumThreads(1)
        rows = measure(peers)
    else:
        rows = compare(options.program, peers)
        print_rows(rows)
    if options.json:
        save(options.json, {"versions": {name: peer[0] for name, peer in peers.items()}, "rows": rows})


if __name__ == "__main__":
    main()
