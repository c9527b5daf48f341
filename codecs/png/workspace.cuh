/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of : its buffers. png.cu makes and releases them; the encoder and the decoder have
 * their own. */
#ifndef GPUCONV_PNG_WORKSPACE_CUH
#define GPUCONV_PNG_WORKSPACE_CUH

#include "png/inflate.cuh"
#include "png/png_gpu.h"

struct png_encoder {
    struct workspace filtered, sums, block_list, ends, stream;
    struct workspace result, data; /* page-locked */
};

struct png_decoder {
    struct workspace data, result; /* page-locked */
    struct workspace stream, rows, sums, layout, progress;
    struct inflation inflation;
    size_t size;         /* bytes of the stream of zlib */
    bool is_unsupported; /* nothing is queued, because the CPU has to decode the file */
};

struct device_png {
    struct device *device;
    struct png_encoder encoder;
    struct png_decoder decoder;
};

#endif
