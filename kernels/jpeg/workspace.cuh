/* SPDX-License-Identifier: MIT
 *
 * The buffers of JPEG on a GPU. jpeg.cu makes and releases them; the encoder and the decoder have their own. */
#ifndef GPUCONV_JPEG_WORKSPACE_CUH
#define GPUCONV_JPEG_WORKSPACE_CUH

#include "kernels/jpeg/jpeg.h"
#include "kernels/shared/conv.cuh"

/* Memory that grows: of the device, aligned to 512 bytes, or page-locked memory of the host. */
struct jpeg_buffer {
    uint8_t *bytes;
    size_t size;
    bool is_locked;
};

struct encoder {
    struct jpeg_layout layout; /* what was queued last */
    struct image image;
    struct jpeg_buffer tables;      /* codes and divisors */
    struct jpeg_buffer tables_sent; /* page-locked: what was uploaded there */
    struct jpeg_buffer words;       /* sums over tiles */
    struct jpeg_buffer scan;        /* the data of the scan */
    struct jpeg_buffer scan_size;   /* page-locked: how long they are, written by the kernel */
    struct jpeg_buffer data;        /* page-locked: the downloaded data */
};

struct decoder {
    struct jpeg_buffer data;         /* page-locked: tables, segments and the bytes of the scan */
    struct jpeg_buffer result;       /* page-locked: are the data bad? */
    struct jpeg_buffer upload;       /* the same on the device */
    struct jpeg_buffer work;         /* states, sums and DC values */
    struct jpeg_buffer coefficients; /* of all blocks in the order of the scan */
    struct jpeg_buffer samples;      /* of all components */
    size_t starts_at, bytes_at;      /* of segments and bytes in the data */
    size_t segments, size;           /* of the scan: restart segments; bytes without stuffing and restart markers */
    bool is_unsupported;             /* nothing is queued, because the CPU has to decode the file */
};

struct device_jpeg {
    struct device *device;
    struct encoder encoder;
    struct decoder decoder;
};

/* Make BUFFER at least SIZE bytes long. If it grows, its content is lost, and the call waits for the kernels that use
 * it. (jpeg.cu) */
bool jpeg_buffer_reserve(struct device_jpeg *jpeg, struct jpeg_buffer *buffer, size_t size, struct error *error);

#endif
