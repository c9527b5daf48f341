/* SPDX-License-Identifier: MIT
 *
 * A deflate for the filtered rows of PNG. Threads compress bands separately, and the bands together are one stream.
 *
 * Filtered photos have almost no repetitions. Nearly all of the gain is in the Huffman codes. A compressor that looks
 * for short repetitions everywhere loses twice: time, and the bits of distances. This one looks only for long
 * repetitions, and takes longer and longer steps where they gain nothing.
 *
 * This is one reason not to use a library. The other: streams of libdeflate cannot be joined, so it uses one thread. A
 * photo of 15 Mpixel takes 68 ms of one thread and 19.7 MB here, 231 ms and 22.3 MB with libdeflate at level
 * 1, and 286 to 342 ms with zlib in bands (docs/benchmarks.md). */
#ifndef GPUCONV_DEFLATE_H
#define GPUCONV_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The scratch memory of a thread, about 100 KB. It keeps nothing from one band to the next. */
struct deflate_workspace;

struct deflate_workspace *deflate_workspace_new(void); /* release it with free; NULL if there is not enough memory */

/* An upper bound of the compressed size of a band of SIZE bytes. */
size_t deflate_bound(size_t size);

/* Compress a band of 1 byte to 1 GiB to OUT, which has room for deflate_bound(SIZE) bytes. Returns the compressed
 * size. The data end at a whole byte, so that the next band can follow; the LAST band ends the stream. The result
 * depends only on the band. */
size_t deflate_band(struct deflate_workspace *work, const uint8_t *bytes, size_t size, bool last, uint8_t *out);

/* Write a band in the same way, without compression. */
size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out);

#endif
