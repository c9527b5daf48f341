#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the Python package beside its peers on arrays: array_peers.py cpu|gpu [--points | --ranks] [--threads N]
[--npp FOLDER] [--processors N] [--commit ID] [--json FILE].

Each call takes a uint8 array of (2880, 5120, 3), as a program has it, and gives another one. The conversions that a peer
needs are in its time. Each number is the median of some rounds. On a GPU, a round queues several calls, with other
images in turn, more than its cache holds. Beside the time stands how far the result is from gpuconv's, in levels, where
no border counts. gpuconv is within 0.51 levels of the exact sum, so 1 is the peer's rounding and more is its accuracy.

With --points, filters change each pixel by itself, and write into an array that is there. Each number is the least of
30 rounds. The only peer is OpenCV, or a copy on a GPU, where chains and other filters beside them are timed, too.

With --ranks, filters put the samples of a window in order. Results of OpenCV, SciPy and CuPy must be gpuconv's, also at
the border; else the exit status is 1. Each number is the least of 30 rounds, or of those that begin in two seconds.

With --processors, a kernel occupies all multiprocessors of the GPU but N, as if these were the GPU's. Its memory and its
cache stay as they are. With GPUCONV_MAX_CAPABILITY=75, too, this says how smaller and older GPUs compare.

Needs numpy and the package gpuconv. The peers are optional: OpenCV, SciPy, scikit-image, Pillow and kornia-rs on the
CPU; CuPy, PyTorch, torchvision, NPP and kornia-rs on a GPU, where CuPy is also the clock."""
import argparse
import contextlib
import importlib
import itertools
import os
import statistics
import sys
import time
import types

import numpy

import gpuconv
from backends import describe_machine
from batch_bench import save_json

HEIGHT, WIDTH = 2880, 5120
IMAGES = 4       # of 44 MB each: more than the L2 cache of any GPU
LONGEST = 20     # seconds that a call may be expected to take
BORDER = 31      # pixels at each side that are not compared


def random_taps(size):
    """Integer taps without zeros, with a scale and an offset that keep outputs from saturating."""
    random = numpy.random.default_rng(size)
    taps = random.integers(1, 10, (size, size)) * random.choice([-1, 1], (size, size))
    scale = int(numpy.sqrt((taps.astype(float) ** 2).sum()) * 73.9 / 45) + 1
    return taps, scale, 128 - int(taps.sum() * 127.5 / scale)


class Work:
    """A filter, as gpuconv takes it and as its peers do."""

    def __init__(self, name, size=None, sigma=None, box=None):
        self.name, self.sigma, self.box = name, sigma, box
        self.dense = size is not None
        self.filter = gpuconv.Filter(name) if not self.dense else None
        self.offset = 0
        if self.dense:
            taps, scale, self.offset = random_taps(size)
            self.filter = gpuconv.Filter(taps, scale=scale, offset=self.offset)
            self.weights = (taps / scale).astype("float32")
        elif box:
            self.weights = numpy.full((box, box), 1 / box ** 2, "float32")
        else:
            radius = round(4 * sigma)  # SciPy's, and wider than gpuconv's
            line = numpy.exp(-numpy.arange(-radius, radius + 1) ** 2 / (2 * sigma ** 2))
            self.line = (line / line.sum()).astype("float32")
        self.taps = size ** 2 if size else 2 * (box or 8 * sigma)


WORKS = [Work("3 x 3", size=3), Work("9 x 9", size=9), Work("31 x 31", size=31), Work("box:4", box=9),
         Work("gaussian:2", sigma=2), Work("gaussian:5", sigma=5)]


class Point:
    """A matrix or curves, and OpenCV's CALL(cv2, image, out, grey), whose grey has other weights."""

    def __init__(self, name, call=None):
        self.name, self.call, self.filter, self.taps = name, call, gpuconv.Filter(name), 1


NEGATIVE = (255 - numpy.arange(256)).astype("uint8")
SEPIA = numpy.array([[393, 769, 189], [349, 686, 168], [272, 534, 131]], "float32") / 1000
POINTS = [
    Point("invert", lambda cv2, image, out, _: cv2.LUT(image, NEGATIVE, dst=out)),
    Point("posterize:2", lambda cv2, image, out, _: cv2.threshold(image, 127, 255, cv2.THRESH_BINARY, dst=out)[1]),
    Point("sepia", lambda cv2, image, out, _: cv2.transform(image, SEPIA, dst=out)),
    Point("grey", lambda cv2, image, _, grey: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, dst=grey)),
    Point("threshold:50", lambda cv2, image, _, grey: cv2.threshold(
        cv2.cvtColor(image, cv2.COLOR_RGB2GRAY, dst=grey), 127, 255, cv2.THRESH_BINARY, dst=grey)[1]),
]
GPU_POINTS = [Point(name) for name in (
    "invert", "sepia", "grey", "threshold:50", "contrast:20,gamma:2,saturation:20", "sharpen", "levels:10:245,sharpen",
    "sharpen,saturation:20", "levels:10:245,sharpen,saturation:20", "auto-levels", "pixelate:4", "pixelate:16",
    "gaussian:12", "gaussian:12@1000x800+200+300")]


class Rank:
    """A median or the lowest sample of a square, for samples of TYPE."""

    def __init__(self, name, type_="uint8"):
        self.filter, self.type = gpuconv.Filter(name), type_
        self.is_median, self.side = name.startswith("median"), 2 * int(name.split(":")[1]) + 1
        self.taps = self.side ** 2
        self.name = f"{name} {type_}" if type_ != "uint8" else name


RANKS = [Rank(f"{word}:{radius}", type_) for type_ in ("uint8", "uint16") for word in ("median", "erode")
         for radius in (1, 2, 3, 7, 15)]


def levels(module, values):
    """Floats as bytes, by the functions of NumPy or CuPy."""
    return module.clip(module.rint(values), 0, 255).astype("uint8")


# ---- Peers: a function of a work gives a function of an image, or None ----

def peer_gpuconv(work, options):
    context = gpuconv.Context(threads=options.threads) if options.where == "cpu" else None
    return lambda image: gpuconv.filter(image, work.filter, context=context)


def peer_cv2(work, options):
    import cv2
    cv2.setNumThreads(options.threads)
    if work.dense:
        return lambda image: cv2.filter2D(image, -1, work.weights, delta=work.offset, borderType=cv2.BORDER_REPLICATE)
    if work.box:
        return lambda image: cv2.blur(image, (work.box, work.box), borderType=cv2.BORDER_REPLICATE)
    return lambda image: cv2.GaussianBlur(image, (0, 0), work.sigma, borderType=cv2.BORDER_REPLICATE)


def point_gpuconv(point, options):
    if options.where == "gpu":
        import cupy
        out = cupy.zeros((HEIGHT, WIDTH, 3), "uint8")
        return lambda image: gpuconv.filter(image, point.filter, out=out)
    context, out = gpuconv.Context(threads=options.threads), numpy.zeros((HEIGHT, WIDTH, 3), "uint8")
    return lambda image: gpuconv.filter(image, point.filter, context=context, out=out)


def point_copy(point, options):
    import cupy
    out = cupy.zeros((HEIGHT, WIDTH, 3), "uint8")

    def call(image):
        cupy.copyto(out, image)
        return image
    return call if point is GPU_POINTS[0] else None


def point_cv2(point, options):
    import cv2
    cv2.setNumThreads(options.threads)
    out, grey = numpy.zeros((HEIGHT, WIDTH, 3), "uint8"), numpy.zeros((HEIGHT, WIDTH), "uint8")
    return lambda image: point.call(cv2, image, out, grey)


def rank_gpuconv(rank, options):
    context = gpuconv.Context(threads=options.threads) if options.where == "cpu" else None
    module = importlib.import_module("numpy" if options.where == "cpu" else "cupy")
    out = module.zeros((HEIGHT, WIDTH, 3), rank.type)
    return lambda image: gpuconv.filter(image, rank.filter, context=context, out=out)


def rank_planes(rank, _options):
    """gpuconv, with the channels of an image as planes."""
    import cupy
    planes, out = {}, cupy.zeros((3, HEIGHT, WIDTH), rank.type)

    def call(image):
        if image.data.ptr not in planes:  # before the times that count
            planes[image.data.ptr] = cupy.ascontiguousarray(image.transpose(2, 0, 1))
        return gpuconv.filter(planes[image.data.ptr], rank.filter, layout="chw", out=out).transpose(1, 2, 0)
    return call


def rank_cv2(rank, options):
    import cv2
    cv2.setNumThreads(options.threads)
    out, square = numpy.zeros((HEIGHT, WIDTH, 3), rank.type), numpy.ones((rank.side, rank.side), "uint8")
    if rank.is_median:
        return lambda image: cv2.medianBlur(image, rank.side, dst=out)
    return lambda image: cv2.erode(image, square, dst=out, borderType=cv2.BORDER_REPLICATE)


def rank_ndimage(package):
    """scipy.ndimage, or CuPy's."""
    def peer(rank, _options):
        ndimage = importlib.import_module(package)
        function = ndimage.median_filter if rank.is_median else ndimage.minimum_filter
        return lambda image: function(image, size=(rank.side, rank.side, 1), mode="nearest")
    return peer


def rank_skimage(rank, _options):
    from skimage.filters import rank as ranks
    if rank.type != "uint8":
        return None  # it takes minutes
    function, square = ranks.median if rank.is_median else ranks.minimum, numpy.ones((rank.side, rank.side), "uint8")
    return lambda image: numpy.stack([function(image[..., channel], square) for channel in range(3)], 2)


def rank_pillow(rank, _options):
    from PIL import Image, ImageFilter
    chosen = (ImageFilter.MedianFilter if rank.is_median else ImageFilter.MinFilter)(rank.side)
    return lambda image: numpy.asarray(Image.fromarray(image).filter(chosen))


def rank_kornia_rs(rank, options):
    from kornia_rs import imgproc
    from kornia_rs.image import Image
    if not rank.is_median:
        return None
    return lambda image: imgproc.median_blur(image if options.where == "cpu" else Image.from_dlpack(image),
                                             (rank.side, rank.side))


def ndimage(ndimage, module):
    """scipy.ndimage, or CuPy's."""
    def peer(work, _options):
        if work.dense:
            weights = module.asarray(work.weights[:, :, None])
            return lambda image: levels(module, ndimage.correlate(image, weights, "float32", "nearest") + work.offset)
        if work.box:
            return lambda image: levels(module, ndimage.uniform_filter(image, (work.box, work.box, 1), "float32",
                                                                       "nearest"))
        return lambda image: levels(module, ndimage.gaussian_filter(image, (work.sigma, work.sigma, 0), 0, "float32",
                                                                    "nearest"))
    return peer


def peer_scipy(work, options):
    import scipy.ndimage
    return ndimage(scipy.ndimage, numpy)(work, options)


def peer_skimage(work, _options):
    import skimage.filters
    if work.dense or work.box:
        return None
    return lambda image: levels(numpy, skimage.filters.gaussian(image, work.sigma, mode="nearest", channel_axis=-1,
                                                                preserve_range=True))


def peer_pillow(work, _options):
    from PIL import Image, ImageFilter
    if work.dense:
        if len(work.weights) > 5:
            return None
        chosen = ImageFilter.Kernel(work.weights.shape, work.weights[::-1].ravel().tolist(), 1, work.offset)
    else:
        chosen = ImageFilter.BoxBlur(work.box // 2) if work.box else ImageFilter.GaussianBlur(work.sigma)
    return lambda image: numpy.asarray(Image.fromarray(image).filter(chosen))


def peer_kornia_rs(work, options):
    from kornia_rs import imgproc
    if work.dense:
        return None
    size = work.box or 2 * (4 * work.sigma) + 1
    blur = (lambda image: imgproc.box_blur(image, (size, size))) if work.box else \
        (lambda image: imgproc.gaussian_blur(image, (size, size), (work.sigma, work.sigma)))
    if options.where == "cpu":
        return blur
    from kornia_rs.image import Image
    return lambda image: blur(Image.from_dlpack(image))


def peer_cupy(work, options):
    import cupy
    import cupyx.scipy.ndimage
    return ndimage(cupyx.scipy.ndimage, cupy)(work, options)


def peer_torch(work, _options):
    import torch
    functional = torch.nn.functional
    lines = [work.weights] if work.dense or work.box else [work.line[:, None], work.line[None, :]]
    kernels = [torch.from_numpy(line).cuda().expand(3, 1, *line.shape).contiguous() for line in lines]
    margin = max(max(line.shape) for line in lines) // 2

    def call(image):
        planes = torch.from_dlpack(image).permute(2, 0, 1)[None].float()
        planes = functional.pad(planes, (margin,) * 4, "replicate")
        for kernel in kernels:
            planes = functional.conv2d(planes, kernel, groups=3)
        return (planes + work.offset).round_().clamp_(0, 255).byte()[0].permute(1, 2, 0).contiguous()
    return call


def peer_torchvision(work, _options):
    import torch
    from torchvision.transforms import functional
    if work.dense or work.box:
        return None
    size = 8 * work.sigma + 1
    return lambda image: functional.gaussian_blur(torch.from_dlpack(image).permute(2, 0, 1), [size, size],
                                                  [work.sigma, work.sigma]).permute(1, 2, 0).contiguous()


def peer_npp(work, options):
    import cupy
    from peers import Npp
    npp = Npp(types.SimpleNamespace(cupy=cupy, stream=cupy.cuda.Stream.null), options.npp)
    if work.dense:
        taps = cupy.asarray(work.weights[::-1, ::-1].copy())
        size = npp.Pair(*work.weights.shape)
        middle = (npp.pointer(taps), size, npp.Pair(size.x // 2, size.y // 2))
        name = "FilterBorder32f_8u_C3R"
    elif work.box:
        name, middle, taps = "FilterBoxBorder_8u_C3R", (npp.Pair(work.box, work.box),
                                                        npp.Pair(work.box // 2, work.box // 2)), None
    else:
        taps = cupy.asarray(work.line)
        name, middle = "FilterGaussAdvancedBorder_8u_C3R", (len(work.line), npp.pointer(taps))

    def call(image, _taps=taps):
        result = cupy.empty_like(image)
        npp.call(name, image, result, *middle)
        return result
    return call


PEERS = {"cpu": {"gpuconv": peer_gpuconv, "OpenCV": peer_cv2, "SciPy": peer_scipy, "scikit-image": peer_skimage,
                 "Pillow": peer_pillow, "kornia-rs": peer_kornia_rs},
         "gpu": {"gpuconv": peer_gpuconv, "CuPy": peer_cupy, "PyTorch": peer_torch, "torchvision": peer_torchvision,
                 "NPP": peer_npp, "kornia-rs": peer_kornia_rs}}
POINT_PEERS = {"cpu": {"gpuconv": point_gpuconv, "OpenCV": point_cv2},
               "gpu": {"gpuconv": point_gpuconv, "copy": point_copy}}
RANK_PEERS = {"cpu": {"gpuconv": rank_gpuconv, "OpenCV": rank_cv2, "SciPy": rank_ndimage("scipy.ndimage"),
                      "scikit-image": rank_skimage, "Pillow": rank_pillow, "kornia-rs": rank_kornia_rs},
              "gpu": {"gpuconv": rank_gpuconv, "gpuconv planes": rank_planes, "copy": point_copy,
                      "CuPy": rank_ndimage("cupyx.scipy.ndimage"), "kornia-rs": rank_kornia_rs}}
SAME_RANKS = ("gpuconv", "gpuconv planes", "OpenCV", "SciPy", "CuPy")
MODULES = {"cpu": ("cv2", "scipy", "skimage", "PIL", "kornia_rs"), "gpu": ("cupy", "torch", "torchvision", "kornia_rs")}


# ---- Times ----

def seconds(call, images, count, finish):
    """Of a call, where COUNT calls are queued."""
    start = time.perf_counter()
    for index in range(count):
        call(images[index % len(images)])
    finish()
    return (time.perf_counter() - start) / count


def to_host(result):
    for name in ("get", "cpu"):  # of CuPy's arrays and kornia-rs' images, of PyTorch's tensors
        if hasattr(result, name):
            result = getattr(result, name)()
    return numpy.asarray(result.numpy() if hasattr(result, "numpy") else result).astype(int)


def measure(call, images, expected, finish, is_point, border=BORDER):
    result = to_host(call(images[0]))
    inside = (slice(border, -border or None),) * 2
    difference = int(abs(result - expected)[inside].max()) if result.shape == expected.shape else None
    del result
    first = seconds(call, images, 1, finish)
    if is_point:
        count = 1 if isinstance(images[0], numpy.ndarray) else max(1, min(50, int(0.1 / first)))
        rounds = max(1, min(30, int(2 / (first * count))))
        return min(seconds(call, images, count, finish) for _ in range(rounds)), difference
    count = max(1, min(50, int(0.1 / first)))
    times = [first] if first > 1 else [seconds(call, images, count, finish) for _ in range(7)]
    return statistics.median(times), difference


class Occupied:
    """While it lasts, no kernel runs on the GPU's multiprocessors from number LEFT on. Nothing may wait for the device."""

    # Two blocks of 1024 threads fill a multiprocessor. One thread of each asks, a thousand times per second, so that the
    # bus stays free; the others wait for it. They end by themselves after two minutes.
    CODE = r"""extern "C" __global__ void occupy(const volatile int *ends, int left)
    {
        unsigned number;
        unsigned long long begin, now;
        asm("mov.u32 %0, %%smid;" : "=r"(number));
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        if (threadIdx.x == 0 && number >= left)
            do {
                __nanosleep(1000000);
                asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
            } while (*ends == 0 && now - begin < 120000000000);
        __syncthreads();
    }"""

    def __init__(self, cupy, left):
        self.ends = cupy.cuda.alloc_pinned_memory(4)
        self.flag = numpy.frombuffer(self.ends, "int32", 1)
        self.flag[0] = 0
        with cupy.cuda.Stream(non_blocking=True) as stream:
            cupy.RawKernel(self.CODE, "occupy")((2 * cupy.cuda.Device().attributes["MultiProcessorCount"],), (1024,),
                                                (numpy.uint64(self.ends.ptr), numpy.int32(left)))
            self.over = stream.record()

    def end(self):
        assert not self.over.done, "the measurements took more than two minutes: the last ones had the whole GPU"
        self.flag[0] = 1


def run(options):
    images = [numpy.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), "uint8") for seed in range(IMAGES)]

    def finish():
        pass

    if options.where == "gpu":
        import cupy
        finish = cupy.cuda.Stream.null.synchronize if options.processors else cupy.cuda.runtime.deviceSynchronize
        images = [cupy.asarray(image) for image in images]
    rows = []
    points = GPU_POINTS if options.where == "gpu" else POINTS
    works, peers = (RANKS, RANK_PEERS) if options.ranks else (points, POINT_PEERS) if options.points else (WORKS, PEERS)
    occupied = None
    if options.processors:
        for work, peer in itertools.product(works, peers["gpu"].values()):
            with contextlib.suppress(ImportError):  # run() reports it
                call = peer(work, options)
                if call:
                    call(images[0])  # to allocate memory and to load a kernel waits for the device
        occupied = Occupied(cupy, options.processors)
    for work in works:
        if options.ranks and images[0].dtype != work.type:
            images = [image.astype(work.type) * 257 for image in images]
        expected = to_host(gpuconv.filter(images[0], work.filter))
        for name, peer in peers[options.where].items():
            row = {"filter": work.name, "library": name}
            before = [old for old in rows if old["library"] == name and "ms" in old]
            if before and before[-1]["ms"] / before[-1]["taps"] * work.taps > 1000 * LONGEST:
                continue
            try:
                call = peer(work, options)
                if call is None:
                    continue
                border = 0 if options.ranks and name in SAME_RANKS else BORDER
                taken, row["levels"] = measure(call, images, expected, finish, options.points or options.ranks, border)
                row.update(ms=round(1000 * taken, 4), taps=work.taps)
                print(f"{work.name:36} {name:14} {row['ms']:10.4f} ms   {row['levels']} levels", flush=True)
            except Exception as error:  # a peer that is missing, or cannot do this
                row["problem"] = f"{type(error).__name__}: {error}"[:200]
                print(f"{work.name:12} {name:14} {row['problem']}", flush=True)
            rows.append(row)
    if occupied:
        occupied.end()
    return rows


def machine(options):
    if options.where == "gpu":
        return describe_machine(options.commit) | {"processors": options.processors,
                                                   "capability": os.environ.get("GPUCONV_MAX_CAPABILITY")}
    with open("/proc/cpuinfo", encoding="ascii") as file:
        name = next((line.split(": ")[1].strip() for line in file if line.startswith("model name")), "")
    return {"date": time.strftime("%Y-%m-%d"), "processor": name, "threads": options.threads, "commit": options.commit}


def version(name):
    try:
        return importlib.import_module(name).__version__
    except (ImportError, AttributeError):
        return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("where", choices=("cpu", "gpu"))
    parser.add_argument("--points", action="store_true")
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--npp")
    parser.add_argument("--processors", type=int)
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    versions = {name: version(name) for name in MODULES[options.where]}
    print(versions)
    rows = run(options)
    if options.json:
        save_json(options.json, {"machine": machine(options), "versions": versions, "rows": rows})
    return int(any(row.get("levels", 0) != 0 for row in rows if options.ranks and row["library"] in SAME_RANKS))


if __name__ == "__main__":
    sys.exit(main())
