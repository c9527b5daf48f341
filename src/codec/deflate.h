/* SPDX-License-Identifier: MIT
 *
 * A deflate for the filtered rows of PNG: in bands that threads compress apart and that together make one stream.
 *
 * Filtered photos hold next to no repetition, so nearly all of the gain is in the Huffman codes, and a compressor that
 * looks for short repetitions everywhere pays for them twice: in time, and in the bits that distances take. This one
 * looks for long repetitions, in longer and longer steps where they gain nothing. docs/benchmarks.md has what it takes
 * and leaves. */
#ifndef GPUCONV_DEFLATE_H
#define GPUCONV_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of a band. */
#define DEFLATE_BAND_MAX ((size_t)1 << 30)

/* What a thread needs to compress: about 100 KB, whose contents nobody reads between two bands. */
struct deflate_workspace;

struct deflate_workspace *deflate_workspace_new(void); /* to be released with free; NULL where there is no memory */

/* How many bytes a band of SIZE takes at most. */
size_t deflate_bound(size_t size);

/* Compress a band of at least one byte to OUT, which has room for deflate_bound(SIZE), and return its size. What it
 * writes ends at a whole byte, so that the next band may follow; the last band ends the stream. It depends on nothing
 * but the band. */
size_t deflate_band(struct deflate_workspace *space, const uint8_t *bytes, size_t size, bool last, uint8_t *out);

/* The same without compression. */
size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out);

#endif
