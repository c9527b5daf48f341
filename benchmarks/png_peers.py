#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time gpuconv and its peers on PNGs: png_peers.py GPUCONV [--count 128] [--size 3400x2264] [--threads 16] [--runs 3]
[--commit ID] [--json FILE].

The PNGs are photos made by batch_bench.py's recipe, with compression level 6, copied to --count files in memory
(--folder, default /dev/shm). Each line is one program or library, with medians; one that is missing or fails gives the
reason. They are:

- whole runs of gpuconv's filter sharpen, from file to file, on each backend; and of OpenCV, one process a core;
- nvImageCodec, from bytes to bytes without a filter, with all its threads (pip: nvidia-nvimgcodec-cu13);
- nvCOMP on the rows of gpuconv's own PNGs, after PNG's filters (pip: nvidia-libnvcomp-cu13, and CuPy for device
  memory). It compresses chunks of 64 KiB, then decompresses them, as raw deflate and as gzip, in device memory. It also
  decompresses the streams of the PNGs made first, one and all at a time, which shows what it does with a long stream.

A ratio is compressed by uncompressed bytes; that of gpuconv is of the same rows. check_png --bench times gpuconv's own
kernels."""
import argparse
import ctypes
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from backends import DIFFERENT, describe_machine, make_folder
from batch_bench import CV_SCRIPT, MATRICES, save_json
from jpeg_peers import check, median

CHUNK = 65536
IMAGES = 32  # that nvCOMP compresses at a time
GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


class Options(ctypes.Structure):
    """nvcompBatchedDeflateCompressOpts_t and its like: 64 bytes, the level first."""
    _fields_ = [("word", ctypes.c_int * 16)]


def read_files(paths):
    data = []
    for path in paths:
        with open(path, "rb") as file:
            data.append(file.read())
    return data


def deflate_stream(png):
    """The raw deflate stream of a PNG's rows."""
    at, parts = 8, []
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IDAT":
            parts.append(png[at + 8:at + 8 + length])
        at += 12 + length
    return b"".join(parts)[2:-4]


def inflate(stream):
    return zlib.decompress(stream, -15)


# ---- Programs and nvImageCodec ----

def run_gpuconv(program, backend, threads, folder):
    output = os.path.join(folder, "out")
    subprocess.run([program, "-q", f"-j{threads}", "--backend", backend, "sharpen", os.path.join(folder, "in"), "-o",
                    output], check=True)
    shutil.rmtree(output)


def run_opencv(threads, folder):
    """Seconds of one run; it takes too long for several."""
    output = os.path.join(folder, "out")
    os.mkdir(output)
    scale, rows = MATRICES["sharpen"]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", CV_SCRIPT.replace("else []", "else [cv2.IMWRITE_PNG_COMPRESSION, 1]"),
                    os.path.join(folder, "in"), output, str(scale), repr(rows), str(threads)], check=True)
    seconds = time.perf_counter() - start
    shutil.rmtree(output)
    return seconds


class ImageCodec:
    def __init__(self, data, threads):
        from nvidia import nvimgcodec
        self.decoder = nvimgcodec.Decoder(max_num_cpu_threads=threads)
        self.encoder = nvimgcodec.Encoder(max_num_cpu_threads=threads)
        self.parts = [data[first:first + 32] for first in range(0, len(data), 32)]
        self.first = self.decode(self.parts[0])

    def decode(self, part):
        images = self.decoder.decode(part)
        if not images or None in images:
            raise RuntimeError("it decodes no PNG here")
        return images

    def encode(self, images):
        streams = self.encoder.encode(images, codec="png")
        if not streams or None in streams:
            raise RuntimeError("it encodes no PNG here")

    def decode_all(self):
        for part in self.parts:
            self.decode(part)

    def encode_all(self):
        for part in self.parts:
            self.encode(self.first[:len(part)])

    def both(self):
        for part in self.parts:
            self.encode(self.decode(part))


# ---- nvCOMP ----

def load_nvcomp():
    for folder in sys.path:
        for path in glob.glob(os.path.join(folder, "nvidia", "libnvcomp", "lib64", "libnvcomp.so*")):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libnvcomp.so.6")


class Chunks:
    """Chunks of device memory: where they begin, how long they are, and their statuses."""
    def __init__(self, buffer, starts, lengths):
        import cupy
        self.buffer, self.count, self.longest, self.total = buffer, len(lengths), max(lengths), sum(lengths)
        self.starts, self.host_lengths = starts, lengths
        self.pointers = cupy.asarray([buffer.data.ptr + start for start in starts], dtype=cupy.uint64)
        self.lengths = cupy.asarray(lengths, dtype=cupy.uint64)
        self.statuses = cupy.zeros(len(lengths), dtype=cupy.int32)


def spaced(lengths):
    """The starts of blocks of these lengths, each at a multiple of 256 bytes, and the whole length."""
    starts, at = [], 0
    for length in lengths:
        starts.append(at)
        at += (length + 255) // 256 * 256
    return starts, at


def upload(blocks):
    import cupy
    import numpy
    lengths = [len(block) for block in blocks]
    starts, whole = spaced(lengths)
    host = numpy.zeros(whole, dtype=numpy.uint8)
    for start, block in zip(starts, blocks):
        host[start:start + len(block)] = numpy.frombuffer(block, dtype=numpy.uint8)
    return Chunks(cupy.asarray(host), starts, lengths)


def empty(lengths):
    import cupy
    starts, whole = spaced(lengths)
    return Chunks(cupy.zeros(whole, dtype=cupy.uint8), starts, lengths)


def pointer(array):
    return ctypes.c_void_p(array.data.ptr)


class Codec:
    """One codec of nvCOMP's batched interface, NAME "Deflate" or "Gzip"."""
    def __init__(self, library, name):
        self.library, self.name = library, name

    def call(self, function, *arguments):
        check(self.library[f"nvcompBatched{self.name}{function}"](*arguments), function)

    def workspace(self, function, chunks, longest, total, options):
        """Its device memory and size."""
        import cupy
        size = ctypes.c_size_t()
        self.call(function, ctypes.c_size_t(chunks), ctypes.c_size_t(longest), options, ctypes.byref(size),
                  ctypes.c_size_t(total), None)
        return cupy.empty(max(size.value, 8), dtype=cupy.uint8), size

    def compress(self, plain, level, runs):
        """Median seconds, and the compressed blocks as bytes."""
        import cupy
        options, longest = Options(), ctypes.c_size_t()
        options.word[0] = level
        self.call("CompressGetMaxOutputChunkSize", ctypes.c_size_t(plain.longest), options, ctypes.byref(longest))
        packed = empty([longest.value] * plain.count)
        memory, size = self.workspace("CompressGetTempSize", plain.count, plain.longest, plain.total, options)

        def work():
            self.call("CompressAsync", pointer(plain.pointers), pointer(plain.lengths), ctypes.c_size_t(plain.longest),
                      ctypes.c_size_t(plain.count), pointer(memory), size, pointer(packed.pointers),
                      pointer(packed.lengths), options, pointer(packed.statuses), None)
            cupy.cuda.Device().synchronize()
        seconds = median(work, runs)
        check(int(packed.statuses.max()), "a chunk's compression")
        host, lengths = packed.buffer.get(), packed.lengths.get()
        return seconds, [host[start:start + int(length)].tobytes() for start, length in zip(packed.starts, lengths)]

    def decompress(self, blocks, plain_blocks, algorithm, runs):
        """Median seconds. PLAIN_BLOCKS is the expected result. ALGORITHM is Gzip's: 0 naive, 1 with look-ahead."""
        import cupy
        packed, plain, expected = upload(blocks), empty([len(block) for block in plain_blocks]), upload(plain_blocks)
        written, options = cupy.zeros(plain.count, dtype=cupy.uint64), Options()
        options.word[1] = algorithm
        memory, size = self.workspace("DecompressGetTempSize", plain.count, plain.longest, plain.total, options)

        def work():
            self.call("DecompressAsync", pointer(packed.pointers), pointer(packed.lengths), pointer(plain.lengths),
                      pointer(written), ctypes.c_size_t(plain.count), pointer(memory), size, pointer(plain.pointers),
                      options, pointer(plain.statuses), None)
            cupy.cuda.Device().synchronize()
        seconds = median(work, runs)
        check(int(plain.statuses.max()), "a chunk's decompression")
        if not bool((plain.buffer == expected.buffer).all()):
            raise RuntimeError("it gives other bytes")
        return seconds


def gzip_of(stream, plain):
    return GZIP_HEAD + stream + struct.pack("<II", zlib.crc32(plain), len(plain) & 0xffffffff)


def time_nvcomp(add, streams, own, pixels, runs):
    """ADD a row for each call. STREAMS are of ordinary PNGs, OWN of gpuconv's, of the same pictures of PIXELS each."""
    rows, own_rows = [inflate(stream) for stream in streams], [inflate(stream) for stream in own]
    cuts = [whole[first:first + CHUNK] for whole in own_rows for first in range(0, len(whole), CHUNK)]
    library, repeat = load_nvcomp(), IMAGES // len(own)
    bytes_all = repeat * sum(map(len, cuts))
    for name in ("Deflate", "Gzip"):
        codec, algorithms = Codec(library, name), (("", 0), (", look-ahead", 1))[:1 if name == "Deflate" else 2]
        window = -15 if name == "Deflate" else 31
        blocks = []
        for level in (0, 1, 2):
            def compress():
                seconds, made = codec.compress(upload(cuts * repeat), level, runs)
                if [zlib.decompress(block, window) for block in made[:len(cuts)]] != cuts:
                    raise RuntimeError("zlib reads other bytes")
                blocks[:] = made
                return {"seconds": seconds, "ratio": sum(map(len, made)) / bytes_all}
            add(f"nvCOMP {name} compress, level {level}", compress, IMAGES, pixels, bytes_all)
            for suffix, algorithm in algorithms if blocks else ():
                add(f"nvCOMP {name} decompress, level {level}{suffix}",
                    lambda: {"seconds": codec.decompress(blocks, cuts * repeat, algorithm, runs)}, IMAGES, pixels,
                    bytes_all)
            blocks.clear()
        whole = streams if name == "Deflate" else [gzip_of(*both) for both in zip(streams, rows)]
        for count in (1, IMAGES):
            take, plural = max(1, count // len(rows)), "s" * (count > 1)
            for suffix, algorithm in algorithms:
                add(f"nvCOMP {name} decompress, {count} long stream{plural}{suffix}",
                    lambda: {"seconds": codec.decompress((whole * take)[:count], (rows * take)[:count], algorithm, 1)},
                    count, pixels, sum(map(len, (rows * take)[:count])))


# ---- The table ----

def measure(options, folder):
    table, program = [], os.path.abspath(options.program)
    width, height = map(int, options.size.split("x"))
    source, pixels = os.path.join(folder, "in"), width * height

    def add(name, function, images=options.count, pixels=pixels, size=0):
        """FUNCTION returns the row's "seconds", in which IMAGES of PIXELS each are done, and what else is known."""
        try:
            row = function()
        except Exception as reason:  # a peer that is not there, or cannot do this
            print(f"{name:48} {str(reason).splitlines()[0] if str(reason) else type(reason).__name__}", flush=True)
            return
        seconds = row["seconds"]
        row = {"name": name, "images": images, "images_per_s": images / seconds,
               "gpixel_per_s": images * pixels / seconds / 1e9, **row}
        if size:
            row["gb_per_s"] = size / seconds / 1e9
        table.append(row)
        print(f"{name:48} {row['images_per_s']:9.1f} images/s {row['gpixel_per_s']:7.2f} Gpixel/s" +
              (f" {row['gb_per_s']:7.2f} GB/s" if size else "") +
              (f", ratio {row['ratio']:.3f}" if "ratio" in row else ""), flush=True)

    make_folder(source, "png", width, height, options.count)
    paths = [os.path.join(source, name) for name in sorted(os.listdir(source))]
    for backend in ("cuda", "auto", "cpu"):
        add(f"gpuconv sharpen, {backend}, {options.threads} jobs",
            lambda: {"seconds": median(lambda: run_gpuconv(program, backend, options.threads, folder), options.runs)})
    add(f"OpenCV sharpen, {options.threads} processes", lambda: {"seconds": run_opencv(options.threads, folder)})
    data, codecs = read_files(paths), []
    for name in ("decode", "encode", "decode and encode"):
        def codec_seconds():
            codecs.extend([] if codecs else [ImageCodec(data, options.threads)])
            work = {"decode": codecs[0].decode_all, "encode": codecs[0].encode_all}.get(name, codecs[0].both)
            return {"seconds": median(work, options.runs)}
        add(f"nvImageCodec {name}", codec_seconds)
    codecs.clear()

    own = os.path.join(folder, "own")
    subprocess.run([program, "-q", "--backend", "cpu", "identity", *paths[:DIFFERENT], "-o", own], check=True)
    made = [deflate_stream(png) for png in read_files(os.path.join(own, name) for name in sorted(os.listdir(own)))]
    streams = [deflate_stream(png) for png in data[:DIFFERENT]]
    ratios = {name: sum(map(len, group)) / sum(len(inflate(stream)) for stream in group)
              for name, group in (("gpuconv", made), ("level 6", streams))}
    print(f"ratio of gpuconv's PNGs {ratios['gpuconv']:.3f}, of the PNGs that it read {ratios['level 6']:.3f}",
          flush=True)
    try:
        time_nvcomp(add, streams, made, pixels, options.runs)
    except OSError as reason:
        print(f"{'nvCOMP':48} {reason}")
    return {"width": width, "height": height, "threads": options.threads, "ratios": ratios, "rows": table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=128)
    parser.add_argument("--size", default="3400x2264")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--commit", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = measure(options, folder)
    if options.json:
        save_json(options.json, {**describe_machine(options.commit), **result})


if __name__ == "__main__":
    main()
