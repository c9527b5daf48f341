#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time lists of JPEGs to arrays on a GPU and back, beside peers: lists.py [--sizes 500x375x1024,3008x2000x64]
[--arrays 1024] [--equal 20000] [--commit ID] [--json FILE].

The third part is tensors for a model: (N, 3, 224, 224) of float16, normalised, by Pillow's bicubic resize and a centre
crop, beside torchvision's resize with antialias on the GPU and Pillow on all cores.

The files are cut from samples/, enlarged, with a little noise, of quality 90 and 4:2:0. From their bytes in memory, all
of a size become tensors, and these become files again, of the same quality and subsampling. Peers are torchvision (by
nvJPEG), Pillow and OpenCV on all cores, with the upload, and nvImageCodec if it is installed. A rate is the median of
some rounds. Beside it stands how many samples differ from Pillow's, and by how much.

--arrays N filters a list of N tensors on the GPU, and makes one tensor of the list. The tensors have 500 x 375 pixels,
or sizes around that. How many samples differ is counted beside the same call on the CPU.

--equal makes so many small files of both formats, of other sizes, qualities, subsamplings and modes. It counts those
whose samples are not Pillow's, and those whose levels are not after a resize by each of Pillow's kernels. Needs PyTorch, NumPy, Pillow and OpenCV."""
import argparse
import io
import os
import pathlib
import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy
import PIL
import torch
from PIL import Image

import gpuconv
from backends import describe_machine
from batch_bench import NOISE, SAMPLES, save_json

PILLOW = "pillow-" if int(PIL.__version__.split(".")[0]) > 12 else "pillow12-"
ROUNDS = 7
CORES = len(os.sched_getaffinity(0))
POOL = ThreadPoolExecutor(CORES)
ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = [numpy.asarray(Image.open(ROOT / "samples" / name).convert("RGB")) for name in SAMPLES]


def picture(number, width, height):
    """A part of a sample, enlarged, with noise."""
    random, sample = numpy.random.default_rng(number), PICTURES[number % len(PICTURES)]
    factor = max(width / sample.shape[1], height / sample.shape[0]) * random.uniform(1, 1.6)
    large = cv2.resize(sample, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
    y, x = random.integers(0, large.shape[0] - height + 1), random.integers(0, large.shape[1] - width + 1)
    part = large[y:y + height, x:x + width]
    return numpy.clip(part + random.normal(0, NOISE, part.shape), 0, 255).round().astype("uint8")


def save(array, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, **options)
    return file.getvalue()


def from_pillow(content):
    return numpy.asarray(Image.open(io.BytesIO(content)))


# ---- Rates ----

def rate(call, count):
    """Files a second, and the last result."""
    times = []
    for _ in range(ROUNDS + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return count / statistics.median(times[2:]), result


def decoders(contents):
    """What decodes all CONTENTS to tensors on the GPU, by names; each gives (H, W, C), or (C, H, W)."""
    import torchvision
    tensors = [torch.frombuffer(bytearray(content), dtype=torch.uint8) for content in contents]

    def upload(decode):
        return [torch.from_numpy(array).cuda(non_blocking=True) for array in POOL.map(decode, contents)]

    yield "gpuconv", lambda: gpuconv.read(contents, device="cuda")
    yield "gpuconv, planar", lambda: gpuconv.read(contents, device="cuda", layout="chw")
    yield "torchvision", lambda: torchvision.io.decode_jpeg(tensors, device="cuda")
    yield "Pillow, all cores", lambda: upload(lambda content: numpy.array(Image.open(io.BytesIO(content))))
    yield "OpenCV, all cores", lambda: upload(lambda content: cv2.cvtColor(cv2.imdecode(
        numpy.frombuffer(content, numpy.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))
    try:
        from nvidia import nvimgcodec
    except ImportError:
        return
    decoder = nvimgcodec.Decoder()
    yield "nvImageCodec", lambda: [torch.as_tensor(image, device="cuda") for image in decoder.decode(contents)]


def encoders(tensors):
    import torchvision
    planar = [tensor.permute(2, 0, 1).contiguous() for tensor in tensors]
    arrays = [tensor.cpu().numpy() for tensor in tensors]
    yield "gpuconv", lambda: gpuconv.encode(tensors, "jpg", quality=90, subsampling=420)
    yield "gpuconv, planar", lambda: gpuconv.encode(planar, "jpg", quality=90, subsampling=420, layout="chw")
    yield "torchvision", lambda: torchvision.io.encode_jpeg(planar, quality=90)
    yield "Pillow, all cores, without the download", lambda: list(POOL.map(
        lambda array: save(array, format="jpeg", quality=90, subsampling=2), arrays))


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def resize_by_pillow(content):
    """The levels of 256 pixels on the shorter side, and of the middle 224."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    width, height = image.size
    size = (256, 256 * height // width) if width <= height else (256 * width // height, 256)
    x, y = (round((side - 224) / 2) for side in size)
    return numpy.asarray(image.resize(size, Image.BICUBIC))[y:y + 224, x:x + 224]


def tensor_makers(contents):
    """What makes tensors of CONTENTS, by names; each gives (N, 3, 224, 224), of levels if it gets True."""
    from torchvision.io import decode_jpeg
    from torchvision.transforms import v2
    files = [torch.frombuffer(bytearray(content), dtype=torch.uint8) for content in contents]
    resize = v2.Compose([v2.Resize(256, v2.InterpolationMode.BICUBIC, antialias=True), v2.CenterCrop(224)])
    finish = v2.Compose([v2.ToDtype(torch.float16, scale=True), v2.Normalize(MEAN, STD)])

    def ours(is_levels):
        options = {"dtype": "uint8"} if is_levels else {"dtype": "float16", "mean": MEAN, "std": STD}
        return gpuconv.preprocess(contents, resize=256, crop=224, device="cuda",
                                  kernel=PILLOW + "bicubic", **options)

    def torchvisions(is_levels):
        images = decode_jpeg(files, device="cuda")
        if len({image.shape for image in images}) == 1:
            levels = resize(torch.stack(images))
        else:
            levels = torch.stack([resize(image) for image in images])
        return levels if is_levels else finish(levels)

    def pillows(is_levels):
        levels = torch.from_numpy(numpy.stack(list(POOL.map(resize_by_pillow, contents)))).cuda().permute(0, 3, 1, 2)
        return levels if is_levels else finish(levels)

    yield "gpuconv.preprocess", ours
    yield "torchvision", torchvisions
    yield "Pillow, all cores", pillows


def time_tensors(contents, width, height):
    rows = {}
    expected = [resize_by_pillow(content) for content in contents[:64]]
    for name, make in tensor_makers(contents):
        files, _ = rate(lambda make=make: make(False), len(contents))
        share, largest = differences(make(True)[:64], expected)
        rows[f"tensor, {name}"] = {"files": files, "differ": share, "largest": largest}
        print(f"  tensor, {name:40} {files:9.0f} files/s {files * width * height / 1e9:7.2f} Gpixel/s  "
              f"{100 * share:5.2f}% of levels differ from Pillow's, by up to {largest}", flush=True)
    return rows


def differences(results, expected):
    """The share of samples that differ from EXPECTED, and the largest difference."""
    count = largest = total = 0
    for result, want in zip(results, expected):
        array = result.cpu().numpy()
        array = array.transpose(1, 2, 0) if array.shape[0] == 3 else array
        off = numpy.abs(array.astype("int16") - want)
        count, total, largest = count + int((off > 0).sum()), total + off.size, max(largest, int(off.max()))
    return count / total, largest


def time_size(width, height, count):
    contents = list(POOL.map(lambda number: save(picture(number, width, height), format="jpeg", quality=90,
                                                 subsampling=2), range(min(count, 256))))
    contents = [contents[number % len(contents)] for number in range(count)]
    expected = [from_pillow(content) for content in contents[:64]]
    rows = {}
    print(f"{count} JPEGs of {width} x {height}, {sum(map(len, contents)) / count / 1e3:.0f} KB each")
    for name, call in decoders(contents):
        files, result = rate(call, count)
        share, largest = differences(result, expected)
        rows[f"decode, {name}"] = {"files": files, "differ": share, "largest": largest}
        print(f"  decode, {name:40} {files:9.0f} files/s {files * width * height / 1e9:7.2f} Gpixel/s  "
              f"{100 * share:5.2f}% of samples differ from Pillow's, by up to {largest}", flush=True)
    rows |= time_tensors(contents, width, height)
    tensors = gpuconv.read(contents, device="cuda")
    for name, call in encoders(tensors):
        files, result = rate(call, count)
        rows[f"encode, {name}"] = {"files": files}
        print(f"  encode, {name:40} {files:9.0f} files/s {files * width * height / 1e9:7.2f} Gpixel/s", flush=True)
    return rows


# ---- Lists of arrays ----

def time_arrays(count):
    rows, random = {}, numpy.random.default_rng(1)
    sizes = {"equal": [(375, 500)] * count, "differing": random.integers((300, 400), (450, 600), (count, 2)).tolist()}
    batch = torch.randint(0, 256, (count, 375, 500, 3), dtype=torch.uint8, device="cuda")
    lists = {kind: [torch.randint(0, 256, (*size, 3), dtype=torch.uint8, device="cuda") for size in part]
             for kind, part in sizes.items()} | {"parts of one": list(batch)}
    calls = {name: lambda images, name=name: gpuconv.filter(images, name)
             for name in ("resize:224x224:exact", f"resize:224x224:exact:{PILLOW}bicubic", "cover:224x224", "blur")}
    calls["preprocess"] = lambda images: list(gpuconv.preprocess(
        images, resize=(224, 224), kernel=PILLOW + "bicubic", dtype="uint8", layout="hwc",
        device="cuda" if images[0].is_cuda else "cpu"))
    for kind, images in lists.items():
        for name, call in calls.items():
            pictures, result = rate(lambda call=call, images=images: call(images), count)
            share, largest = differences(result[:64], [one.numpy() for one in call([one.cpu() for one in images[:64]])])
            rows[f"{name}, {kind}"] = {"pictures": pictures, "differ": share, "largest": largest}
            print(f"  {name + ', ' + kind:60} {pictures:9.0f} pictures/s  {100 * share:5.2f}% of samples differ from the "
                  f"CPU's, by up to {largest}", flush=True)
    return rows


# ---- Equal samples ----

def any_file(number):
    """A small file by chance."""
    random = numpy.random.default_rng(number)
    array = picture(number, int(random.integers(1, 600)), int(random.integers(1, 500)))
    mode = random.integers(0, 4)
    array = array[:, :, 1] if mode == 0 else array
    if random.integers(0, 4) > 0:
        return save(array, format="jpeg", quality=int(random.integers(20, 100)), subsampling=int(random.integers(0, 3)),
                    optimize=bool(random.integers(0, 2)), progressive=bool(random.integers(0, 8) == 0),
                    restart_marker_rows=int(random.integers(0, 3)))
    array = numpy.dstack([array, array[:, :, :1]]) if mode == 1 else array
    return save(array, format="png", compress_level=int(random.integers(0, 7)))


FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}  # Pillow's numbers


def is_tall(content):
    """Is the picture more than 100 times as high as wide? Pillow 12.2 and 12.3 sum the columns of such pictures first."""
    width, height = Image.open(io.BytesIO(content)).size
    return height > 100 * width


def count_equal(count):
    contents = list(POOL.map(any_file, range(count)))
    differ = resized = 0
    for first in range(0, count, 500):
        part, random = contents[first:first + 500], numpy.random.default_rng(first)
        name, (height, width) = list(FILTERS)[first // 500 % len(FILTERS)], random.integers(1, 400, 2).tolist()
        for content, array in zip(part, gpuconv.read(part, device="cuda")):
            differ += not numpy.array_equal(array.cpu().numpy(), from_pillow(content))
        tensors = gpuconv.preprocess(part, resize=(height, width), kernel=PILLOW + name, dtype="uint8", layout="hwc",
                                     device="cuda").cpu().numpy()
        images = POOL.map(lambda content: numpy.asarray(Image.open(io.BytesIO(content)).convert("RGB").resize(
            (width, height), FILTERS[name])), part)
        resized += sum(not numpy.array_equal(tensor, want) for content, tensor, want in zip(part, tensors, images)
                       if not is_tall(content))
    print(f"{differ} of {count} small JPEGs and PNGs have other samples than Pillow's, and {resized} other levels after "
          "a resize", flush=True)
    return {"files": count, "differ": differ, "resized": resized}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="500x375x1024,3008x2000x64")
    parser.add_argument("--arrays", type=int, default=1024)
    parser.add_argument("--equal", type=int, default=0)
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    result = {"machine": describe_machine(options.commit), "sizes": {}}
    print(result["machine"])
    for size in filter(None, options.sizes.split(",")):
        result["sizes"][size] = time_size(*map(int, size.split("x")))
    if options.arrays:
        result["arrays"] = time_arrays(options.arrays)
    if options.equal:
        result["equal"] = count_equal(options.equal)
    if options.json:
        save_json(options.json, result)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
