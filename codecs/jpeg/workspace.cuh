/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of : its buffers. jpeg.cu makes and releases them; the encoder and the decoder have
 * their own. */
#ifndef GPUCONV_JPEG_WORKSPACE_CUH
#define GPUCONV_JPEG_WORKSPACE_CUH

#include "jpeg/jpeg_gpu.h"
#include "kernels/shared/queue.cuh"

struct encoder {
    const struct jpeg_output *outputs; /* what was queued last */
    size_t *capacities;                /* bytes that the scan of each may have */
    size_t count;
    struct workspace sent;       /* page-locked: the pictures, and their codes and divisors */
    struct workspace pictures;   /* the copy of SENT on the device */
    struct workspace words;      /* sums over tiles */
    struct workspace scans;      /* the data of the scans */
    struct workspace scan_sizes; /* page-locked: how long they are, written by the kernel */
    struct workspace data;       /* page-locked: the downloaded data */
};

/* A picture between device_jpeg_reserve and device_jpeg_decoded. */
struct loaded;

struct decoder {
    struct workspace data;         /* page-locked: the pictures; for each its tables, segments and bytes of the scan */
    struct workspace result;       /* page-locked: are the data of each picture bad? */
    struct workspace upload;       /* the copy of DATA on the device */
    struct workspace work;         /* states, sums and DC values */
    struct workspace coefficients; /* the coefficients of all blocks in the order of the scans */
    struct workspace samples;      /* the samples of all components */
    const struct jpeg_input *inputs;
    struct loaded *loaded;
    size_t count, size; /* the number of pictures; used bytes of the data */
};

struct device_jpeg {
    struct device *device;
    int mark;
    struct encoder encoder;
    struct decoder decoder;
};

#endif
