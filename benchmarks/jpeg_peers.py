#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time the peers that decode and encode JPEGs: jpeg_peers.py FOLDER [--threads 16] [--runs 5] [--json FILE].

FOLDER holds baseline JPEGs, best in memory; batch_bench.py --keep makes such folders. Each line is one library that
decodes all files, or encodes the decoded pictures with quality 90 and 4:2:0, once they are in memory: gigapixels and
images a second, medians. They are OpenCV (its own libjpeg-turbo, one process a core), nvJPEG by each of its backends
and nvImageCodec, as far as they are installed (pip: nvidia-nvjpeg-cu12 or nvidia-nvjpeg, nvidia-nvimgcodec-cu13; CuPy
for device memory). gpuconv's own kernels are timed by check_jpeg --bench, and whole runs by batch_bench.py."""
import argparse
import concurrent.futures
import ctypes
import glob
import multiprocessing
import os
import statistics
import sys
import time

from batch_bench import save_json

QUALITY = 90
BACKENDS = (("HYBRID", 1), ("GPU_HYBRID", 2), ("HARDWARE", 3))


class Image(ctypes.Structure):
    """nvjpegImage_t."""
    _fields_ = [("channel", ctypes.c_void_p * 4), ("pitch", ctypes.c_size_t * 4)]


def load_nvjpeg():
    for folder in sys.path:
        for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvjpeg.so*")):
            return ctypes.CDLL(path)
    for name in ("libnvjpeg.so.13", "libnvjpeg.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


def check(status, name):
    if status != 0:
        raise RuntimeError(f"{name} failed: {status}")


def median(work, runs):
    """The median seconds of WORK, after one run that warms up."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Files:
    def __init__(self, folder):
        import cv2
        names = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith((".jpg", ".jpeg")))
        self.data = [open(name, "rb").read() for name in names]
        self.sizes = []
        for name in names:
            height, width = cv2.imread(name).shape[:2]
            self.sizes.append((width, height))
        self.pixels = sum(width * height for width, height in self.sizes)


def on_threads(count, threads, work):
    """Call WORK(thread, index) for all indices below COUNT, thread T for every THREADS-th from T on."""
    def loop(thread):
        import cupy
        cupy.cuda.Device(0).use()
        for index in range(thread, count, threads):
            work(thread, index)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for ended in [pool.submit(loop, thread) for thread in range(threads)]:
            ended.result()


def time_nvjpeg_decoder(library, files, backend, threads, runs):
    import cupy
    handle = ctypes.c_void_p()
    check(library.nvjpegCreateEx(backend, None, None, 0, ctypes.byref(handle)), "nvjpegCreateEx")
    most = max(width * height for width, height in files.sizes)
    states, streams, buffers = [], [], []
    for _ in range(threads):
        state = ctypes.c_void_p()
        check(library.nvjpegJpegStateCreate(handle, ctypes.byref(state)), "nvjpegJpegStateCreate")
        states.append(state)
        streams.append(cupy.cuda.Stream(non_blocking=True))
        buffers.append(cupy.empty(3 * most, dtype=cupy.uint8))

    def decode(thread, index):
        width, _ = files.sizes[index]
        image = Image()
        image.channel[0] = buffers[thread].data.ptr
        image.pitch[0] = 3 * width
        data = files.data[index]
        check(library.nvjpegDecode(handle, states[thread], data, ctypes.c_size_t(len(data)), 5, ctypes.byref(image),
                                   ctypes.c_void_p(streams[thread].ptr)), "nvjpegDecode")  # 5: interleaved RGB
        streams[thread].synchronize()
    return median(lambda: on_threads(len(files.data), threads, decode), runs)


def time_nvjpeg_hardware(library, files, runs):
    """The hardware decoder takes batches."""
    import cupy
    handle, state = ctypes.c_void_p(), ctypes.c_void_p()
    check(library.nvjpegCreateEx(3, None, None, 0, ctypes.byref(handle)), "nvjpegCreateEx")
    check(library.nvjpegJpegStateCreate(handle, ctypes.byref(state)), "nvjpegJpegStateCreate")
    count, stream = min(64, len(files.data)), cupy.cuda.Stream(non_blocking=True)
    check(library.nvjpegDecodeBatchedInitialize(handle, state, count, 1, 5), "nvjpegDecodeBatchedInitialize")
    images, buffers = (Image * count)(), []
    for index in range(count):
        width, height = files.sizes[index]
        buffers.append(cupy.empty(3 * width * height, dtype=cupy.uint8))
        images[index].channel[0] = buffers[-1].data.ptr
        images[index].pitch[0] = 3 * width
    data = (ctypes.c_char_p * count)(*files.data[:count])
    lengths = (ctypes.c_size_t * count)(*[len(one) for one in files.data[:count]])

    def decode():
        check(library.nvjpegDecodeBatched(handle, state, data, lengths, images, ctypes.c_void_p(stream.ptr)),
              "nvjpegDecodeBatched")
        stream.synchronize()
    pixels = sum(width * height for width, height in files.sizes[:count])
    return median(decode, runs) * files.pixels / pixels


def time_nvjpeg_encoder(library, files, threads, runs):
    import cupy
    import cv2
    import numpy
    handle = ctypes.c_void_p()
    check(library.nvjpegCreateEx(0, None, None, 0, ctypes.byref(handle)), "nvjpegCreateEx")
    parameters, states, streams, outputs = [], [], [], []
    pictures = [cupy.asarray(cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR)[:, :, ::-1].copy())
                for data in files.data[:32]]
    for _ in range(threads):
        state, parameter = ctypes.c_void_p(), ctypes.c_void_p()
        streams.append(cupy.cuda.Stream(non_blocking=True))
        stream = ctypes.c_void_p(streams[-1].ptr)
        check(library.nvjpegEncoderStateCreate(handle, ctypes.byref(state), stream), "nvjpegEncoderStateCreate")
        check(library.nvjpegEncoderParamsCreate(handle, ctypes.byref(parameter), stream), "nvjpegEncoderParamsCreate")
        check(library.nvjpegEncoderParamsSetQuality(parameter, QUALITY, stream), "nvjpegEncoderParamsSetQuality")
        check(library.nvjpegEncoderParamsSetSamplingFactors(parameter, 2, stream), "SetSamplingFactors")  # 4:2:0
        states.append(state)
        parameters.append(parameter)
        outputs.append(ctypes.create_string_buffer(max(map(len, files.data)) * 4))

    def encode(thread, index):
        picture = pictures[index % len(pictures)]
        height, width = picture.shape[:2]
        image = Image()
        image.channel[0] = picture.data.ptr
        image.pitch[0] = 3 * width
        stream, size = ctypes.c_void_p(streams[thread].ptr), ctypes.c_size_t(len(outputs[thread]))
        check(library.nvjpegEncodeImage(handle, states[thread], parameters[thread], ctypes.byref(image), 5, width,
                                        height, stream), "nvjpegEncodeImage")
        check(library.nvjpegEncodeRetrieveBitstream(handle, states[thread], outputs[thread], ctypes.byref(size),
                                                    stream), "nvjpegEncodeRetrieveBitstream")
        streams[thread].synchronize()
    pixels = sum(picture.shape[0] * picture.shape[1] for picture in pictures)
    return median(lambda: on_threads(len(pictures), threads, encode), runs) * files.pixels / pixels


def time_nvimgcodec(files, runs):
    """Seconds to decode, to encode, and to do both."""
    from nvidia import nvimgcodec
    decoder, encoder = nvimgcodec.Decoder(), nvimgcodec.Encoder()
    settings = nvimgcodec.EncodeParams(quality_type=nvimgcodec.QualityType.QUALITY, quality_value=QUALITY,
                                       chroma_subsampling=nvimgcodec.ChromaSubsampling.CSS_420)
    parts = [files.data[first:first + 32] for first in range(0, len(files.data), 32)]
    pictures = decoder.decode(parts[0])
    pixels = sum(width * height for width, height in files.sizes[:len(parts[0])])

    def both():
        for part in parts:
            encoder.encode(decoder.decode(part), codec="jpeg", params=settings)

    def decode():
        for part in parts:
            decoder.decode(part)
    return (median(decode, runs),
            median(lambda: encoder.encode(pictures, codec="jpeg", params=settings), runs) * files.pixels / pixels,
            median(both, runs))


def cv_decode(data):
    import cv2
    import numpy
    cv2.setNumThreads(1)
    return cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR) is not None


def cv_encode(data):
    import cv2
    import numpy
    picture = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR)
    start = time.perf_counter()
    cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return time.perf_counter() - start


def measure(options):
    files = Files(options.folder)
    rows = []

    def add(name, function):
        try:
            seconds = function()
        except Exception as reason:  # a peer that is not there, or cannot do this
            print(f"{name:44} {str(reason).splitlines()[0] if str(reason) else type(reason).__name__}", flush=True)
            return
        row = {"name": name, "gpixel_per_s": files.pixels / seconds / 1e9, "images_per_s": len(files.data) / seconds}
        rows.append(row)
        print(f"{name:44} {row['gpixel_per_s']:8.2f} Gpixel/s {row['images_per_s']:9.1f} images/s", flush=True)

    with multiprocessing.Pool(options.threads) as pool:
        add(f"OpenCV decode, {options.threads} processes", lambda: median(lambda: pool.map(cv_decode, files.data, 1),
                                                                            options.runs))
        add(f"OpenCV encode, {options.threads} processes",
            lambda: sum(pool.map(cv_encode, files.data, 1)) / options.threads)
    library = load_nvjpeg()
    if library is not None:
        for name, backend in BACKENDS[:2]:
            for threads in (1, 4, options.threads):
                add(f"nvJPEG decode, {name}, {threads} threads",
                    lambda b=backend, t=threads: time_nvjpeg_decoder(library, files, b, t, options.runs))
        add("nvJPEG decode, HARDWARE, batches", lambda: time_nvjpeg_hardware(library, files, options.runs))
        for threads in (1, 4):
            add(f"nvJPEG encode, {threads} threads",
                lambda t=threads: time_nvjpeg_encoder(library, files, t, options.runs))
    times = []
    add("nvImageCodec decode", lambda: times.extend(time_nvimgcodec(files, options.runs)) or times[0])
    if times:
        add("nvImageCodec encode", lambda: times[1])
        add("nvImageCodec decode and encode", lambda: times[2])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = measure(options)
    if options.json:
        save_json(options.json, rows)


if __name__ == "__main__":
    main()
