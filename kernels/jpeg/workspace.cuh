/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/jpeg/: its memory.
 * The buffers of JPEG on a GPU. jpeg.cu makes and releases them; the encoder and the decoder have their own. */
#ifndef GPUCONV_JPEG_WORKSPACE_CUH
#define GPUCONV_JPEG_WORKSPACE_CUH

#include "kernels/jpeg/jpeg.h"
#include "kernels/shared/conv.cuh"

struct encoder {
    struct jpeg_layout layout; /* what was queued last */
    struct image image;
    struct workspace tables;      /* codes and divisors */
    struct workspace tables_sent; /* page-locked: what was uploaded there */
    struct workspace words;       /* sums over tiles */
    struct workspace scan;        /* the data of the scan */
    struct workspace scan_size;   /* page-locked: how long they are, written by the kernel */
    struct workspace data;        /* page-locked: the downloaded data */
};

struct decoder {
    struct workspace data;         /* page-locked: tables, segments and the bytes of the scan */
    struct workspace result;       /* page-locked: are the data bad? */
    struct workspace upload;       /* the same on the device */
    struct workspace work;         /* states, sums and DC values */
    struct workspace coefficients; /* of all blocks in the order of the scan */
    struct workspace samples;      /* of all components */
    size_t starts_at, bytes_at;    /* of segments and bytes in the data */
    size_t segments, size;         /* of the scan: restart segments; bytes without stuffing and restart markers */
    bool is_unsupported;           /* nothing is queued, because the CPU has to decode the file */
};

struct device_jpeg {
    struct device *device;
    struct encoder encoder;
    struct decoder decoder;
};

#endif
