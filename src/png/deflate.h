/* SPDX-License-Identifier: MIT
 *
 * A deflate (RFC 1951) for the filtered rows of PNG. Threads compress bands separately, and the bands together are one
 * stream. The bytes depend only on the band and on the size of a pixel: not on the number of threads, nor on the
 * instruction set. No rule below needs the result of a byte before, but for the walk over the sequences of a block. So
 * many threads, also those of a GPU, may work on one block.
 *
 * Why not a library? Streams of libdeflate cannot be joined, so it uses one thread. Filtered photos have almost no
 * repetitions but runs, and nearly all of the gain is in the Huffman codes. A compressor that looks for short
 * repetitions everywhere loses time, and the bits of distances.
 *
 * The definition. A picture is cut into bands of png_band_rows rows, the last one shorter. A band is its filtered rows,
 * each after the number of its filter. It is cut into blocks of 65,472 bytes, the last one shorter. All prices are in
 * 1/16 bit.
 *
 * 1. Same bytes. Byte i is the same at distance d if the band has a byte i - d, and both are equal. d is 1, or the
 *    bytes of a pixel.
 * 2. Long runs: 8 or more bytes of the block that are the same at one of these distances.
 * 3. Prices. Let T be the number of bytes outside of long runs. If U of them have a value, the price of this value is
 *    L(T) - L(U), at least 16 and at most 240. L(x) is 16 log2(x), linear between powers of two and rounded down. L(0)
 *    is 0.
 * 4. Runs. The least length is 128 over the lowest price, rounded up, 4 to 8. A run begins where so many bytes are the
 *    same at one of the distances. It has the distance at which more bytes are the same, or else distance 1, and ends
 *    with these bytes. From each place where a run begins, as many bytes as the least length are in a run.
 * 5. Other repetitions begin at chosen places. A place is chosen by its next 8 bytes b0 to b7, which must be in the
 *    block. Let m be the sum of 3^i b_i: the place is chosen if m mod 4 is 1. It is also chosen if the sum of the
 *    differences is 12 or more: b, or 256 - b if that is smaller, and at most 31. A place's candidate is the latest
 *    chosen place before it in the block with the same hash: the upper 13 bits of the 8 bytes, as a little-endian
 *    number, times 0x9e3779b97f4a7c15 modulo 2^64. The candidate counts only if the 8 bytes are the same, and at most
 *    32,768 bytes before.
 * 6. What a repetition saves: the prices of its bytes, less 240 and 16 for each extra bit of its distance. A byte in a
 *    run costs 0, or 128 if the byte before is not in a run.
 * 7. Samples: the places outside of runs where m mod 32 is 13. The candidate of a sample is the latest sample with the
 *    same hash. For each sample with a candidate, let n be the number of equal bytes, at most 32. It saves what n bytes
 *    save, divided by n and rounded down, or nothing. If 32 times the sum of this is at least a 20th of the price of
 *    all T bytes, the block has other repetitions than runs. If T is at most half of the block's size, an 80th is
 *    enough.
 * 8. The walk. It begins at the block's first byte. Where a run begins, take it. Else, if the block has other
 *    repetitions, take the candidate of a chosen place if it saves anything. It has all bytes from there that are
 *    equal, and all before that are equal and not in a repetition yet. Else, the byte is a literal. After a repetition,
 *    the walk goes on at its end. A repetition is written in parts of 258 bytes. A rest of 1 or 2 bytes is left.
 * 9. Codes. Each block has its own: deflate.c says how their lengths follow from the counts of the symbols. A block
 *    that would be as large as its bytes is stored instead. */
#ifndef GPUCONV_DEFLATE_H
#define GPUCONV_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a band at most, unless one row has more. A band and the compressor's memory fit into the second cache of
 * a processor. A band is large enough that starting anew with each one costs the compressor nothing. */
enum { PNG_BAND_BYTES = 1 << 19 };

/* The rows of each band but the last of a picture with HEIGHT rows. A row has ROW_BYTES bytes, and one in front. */
static inline int png_band_rows(size_t row_bytes, int height)
{
    const size_t fitting = row_bytes < PNG_BAND_BYTES ? PNG_BAND_BYTES / (row_bytes + 1) : 1;
    return fitting < (size_t)height ? (int)fitting : height;
}

#ifdef __cplusplus
extern "C" {
#endif

/* The scratch memory of a thread, about 450 KB. It keeps nothing from one band to the next. */
struct deflate_workspace;

struct deflate_workspace *deflate_workspace_new(void); /* release it with free; NULL if there is not enough memory */

/* An upper bound of the compressed size of a band of SIZE bytes. */
size_t deflate_bound(size_t size);

/* Compress a band of 1 byte to 1 GiB to OUT, which has room for deflate_bound(SIZE) bytes. Returns the compressed
 * size. The data end at a whole byte, so that the next band can follow; the LAST band ends the stream. The result
 * depends only on the band. */
size_t deflate_band(struct deflate_workspace *work, const uint8_t *bytes, size_t size, size_t pixel, bool last,
                    uint8_t *out);

/* Write a band in the same way, without compression. */
size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out);

#ifdef __cplusplus
}
#endif

#endif
