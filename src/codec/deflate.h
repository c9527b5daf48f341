/* SPDX-License-Identifier: MIT
 *
 * A deflate for the filtered rows of PNG. Threads compress bands apart, and the bands together make one stream.
 *
 * Filtered photos hold next to no repetition. Nearly all of the gain is in the Huffman codes, and a compressor that looks
 * for short repetitions everywhere pays for them twice: in time, and in the bits of distances. This one looks for long
 * repetitions only, in longer and longer steps where they gain nothing.
 *
 * It exists beside the libraries because of that, and because the streams of libdeflate cannot be joined, so that they
 * take one thread. A photo of 15 Mpixel takes 68 ms of one thread and 19.7 MB here, 231 ms and 22.3 MB with libdeflate at
 * level 1, and 286 to 342 ms with zlib in bands (docs/benchmarks.md). */
#ifndef GPUCONV_DEFLATE_H
#define GPUCONV_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of a band. */
#define DEFLATE_BAND_MAX ((size_t)1 << 30)

/* What a thread needs to compress: about 100 KB, which hold nothing from one band to the next. */
struct deflate_workspace;

struct deflate_workspace *
deflate_workspace_new(void); /* to be released with free; NULL where there is not enough memory */

/* The most bytes that a band of SIZE bytes takes. */
size_t deflate_bound(size_t size);

/* Compress a band of at least one byte to OUT, which has room for deflate_bound(SIZE) bytes, and return how many it
 * takes. They end at a whole byte, so that the next band can follow; the LAST band ends the stream. The result depends on
 * the band only. */
size_t deflate_band(struct deflate_workspace *work, const uint8_t *bytes, size_t size, bool last, uint8_t *out);

/* Write a band in the same way, without compression. */
size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out);

#endif
