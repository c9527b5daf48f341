/* SPDX-License-Identifier: MIT
 *
 * Fuzz the inflating in parts. The first bytes of the input say how the stream is cut, and when help comes; the rest is
 * a deflate stream. The parts must make what one decoder makes. libdeflate must accept what they accept, and make the
 * same bytes. */
#include "png/inflate.h"
#include "base/random.h"
#include "png/png.h"

#include "tests/fuzz/fuzz.h"

#include <libdeflate.h>
#include <string.h>

enum { CUT = 4, CAPACITY = 1 << 17 };

/* The maximal number of bytes after which damage is found, because zeros after the stream are decoded, too. */
enum { ZEROS = 8 * INFLATE_TAIL * 258 };

static struct inflate_decoder decoder;
static uint8_t expected[CAPACITY + INFLATE_SPARE], out[CAPACITY];

/* Inflate in parts, and help at random. Returns the number of bytes. */
static size_t inflate_in_parts(const uint8_t *data, const uint8_t *stream, size_t size, size_t *end)
{
    const struct inflate_cut cut = {
        .part = 1 + (size_t)data[0] * 8, .symbols = 1 + (size_t)data[1] * 200, .slots = 1 + data[2] % 8};
    struct inflate_parts *parts = inflate_parts_open(stream, size, &cut);
    uint64_t seed = data[3];
    size_t all = 0, some = 1;
    CHECK(parts != NULL);
    while (some > 0) {
        const size_t wanted = 1 + random_next(&seed) % 10000, left = sizeof out - all;
        for (uint64_t helps = random_next(&seed) % 4; helps > 0; helps--)
            (void)inflate_parts_help(parts);
        some = inflate_parts_next(parts, out + all, wanted < left ? wanted : left);
        all += some;
    }
    *end = inflate_parts_end(parts);
    inflate_parts_free(parts);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inflate_output output = {.end = CAPACITY};
    size_t end, read, used;
    if (size < CUT)
        return 0;
    const uint8_t *stream = data + CUT;
    size -= CUT;
    inflate_begin(&decoder, stream, size, 0);
    inflate_bytes(&decoder, expected, &output, UINT64_MAX);
    const size_t all = inflate_in_parts(data, stream, size, &end);
    CHECK(memcmp(out, expected, all < output.at ? all : output.at) == 0);
    if (output.at >= CAPACITY) {
        CHECK(all == CAPACITY || all + ZEROS >= CAPACITY);
        return 0;
    }
    CHECK(all <= output.at + ZEROS && output.at <= all + ZEROS);
    CHECK((end > 0) == (decoder.state == INFLATE_END));
    if (end == 0)
        return 0;
    CHECK(end == (decoder.bit + 7) / 8 && all == output.at);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    CHECK(decompressor != NULL);
    CHECK(libdeflate_deflate_decompress_ex(decompressor, stream, size, out, sizeof out, &read, &used) ==
          LIBDEFLATE_SUCCESS);
    CHECK(read == end && used == all && memcmp(out, expected, all) == 0);
    libdeflate_free_decompressor(decompressor);
    return 0;
}
