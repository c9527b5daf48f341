/* SPDX-License-Identifier: MIT
 *
 * What the files of check_jpeg share. */
#ifndef GPUCONV_CHECK_JPEG_H
#define GPUCONV_CHECK_JPEG_H

#include "codecs/tests/codec_check.h"
#include "jpeg/jpeg_gpu.h"
#include "reference.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DECODED_MARK = 2 }; /* the device's mark for decoded data; the benchmarks use the marks before it */

/* A stream of a thread, and its buffers. */
struct test_gpu {
    struct device *device;
    struct device_jpeg *jpeg;
    struct workspace samples; /* on the device */
    uint64_t cases;
};

/* ---- check_jpeg.c ---- */

/* Reserve exactly SIZE bytes at gpu->samples, so that a sanitizer sees each access beyond them. */
void reserve_samples(struct test_gpu *gpu, size_t size);

/* Open a stream on the first GPU. */
void test_gpu_open(struct test_gpu *gpu);
void test_gpu_close(struct test_gpu *gpu);

/* ---- pictures.c ---- */

enum content { NOISE, EXTREMES, FLAT, EDGES, PHOTO, CONTENTS };

extern const char *const content_names[CONTENTS];

/* Fill PIXELS, whose sizes are set, with samples; release them with free. */
void make_picture(struct pixels *pixels, enum content content, uint64_t *state);

/* ---- encode_cases.c ---- */

void check_encoder(const struct check_options *options, struct test_gpu *gpu);

/* Some cases that may run beside those of other threads. */
void check_encoder_beside(const struct check_options *options, struct test_gpu *gpu);

/* ---- decode_cases.c ---- */

void check_decoder(const struct check_options *options, struct test_gpu *gpu);
void check_decoder_beside(const struct check_options *options, struct test_gpu *gpu);

/* Find the scan of a file, to decode it 1/2^SHRINK as wide and high, and fill LAYOUT. Returns false if the file is not
 * for this decoder. */
bool find_picture(const uint8_t *file, size_t size, int shrink, struct jpeg_layout *layout, struct jpeg_scan *scan);

/* ---- decode_bench.c ---- */

void bench_decoder(int count, char **names);

/* ---- bench.c ---- */

void bench_files(int count, char **names);

#endif
