/* SPDX-License-Identifier: MIT */
#include "codecs/tests/png/deflate_streams.h"

#include "base/random.h"
#include "tests/lib/program.h"

#include <stdbool.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

enum { STORED_MAX = 65535, EMPTY_MAX = 40, OUT_BYTES = 1 << 18 /* more than zlib keeps back */ };

static void append(struct blob *stream, const uint8_t *bytes, size_t size)
{
    if (size > 0 && !blob_append(stream, bytes, size))
        fail("no memory");
}

/* Append a stored block, which is not the last one, at the beginning of a byte. */
static void append_stored(struct blob *stream, const uint8_t *bytes, size_t size)
{
    const uint8_t head[] = {0, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)};
    append(stream, head, sizeof head);
    append(stream, bytes, size);
}

static void run_deflate(z_stream *z, int flush, uint8_t *out, struct blob *stream)
{
    do {
        z->next_out = out;
        z->avail_out = OUT_BYTES;
        (void)deflate(z, flush);
        append(stream, out, OUT_BYTES - z->avail_out);
    } while (z->avail_out == 0);
}

static void change_settings(z_stream *z, uint64_t *state, uint8_t *out, struct blob *stream)
{
    z->next_out = out;
    z->avail_out = OUT_BYTES;
    if (deflateParams(z, random_between(state, 0, 9), random_between(state, 0, 4)) != Z_OK)
        fail("deflateParams failed");
    append(stream, out, OUT_BYTES - z->avail_out);
}

int deflate_as_others(uint64_t *state, const uint8_t *bytes, size_t size, struct blob *stream)
{
    static const int flushes[] = {Z_NO_FLUSH, Z_BLOCK, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH};
    static const int steps[] = {8, 60, 1000, 30000, 1 << 20}; /* the maximal number of bytes between two flushes */
    enum { FLUSHES = sizeof flushes / sizeof *flushes, STEPS = sizeof steps / sizeof *steps };
    const int window_bits = random_between(state, 9, 15), step = steps[random_between(state, 0, STEPS - 1)];
    const int only = random_between(state, 0, 2 * FLUSHES - 1); /* one kind of flush, or from FLUSHES on all of them */
    const bool adds_blocks = random_between(state, 0, 1) != 0, changes = random_between(state, 0, 1) != 0;
    uint8_t *const out = allocate(OUT_BYTES);
    z_stream z = {.next_in = bytes};
    if (deflateInit2(&z, random_between(state, 0, 9), Z_DEFLATED, -window_bits, random_between(state, 1, 9),
                     random_between(state, 0, 4)) != Z_OK)
        fail("deflateInit2 failed");
    for (const uint8_t *end = bytes + size; z.next_in < end;) {
        const int flush = flushes[only < FLUSHES ? only : random_between(state, 0, FLUSHES - 1)];
        const size_t left = (size_t)(end - z.next_in), some = (size_t)random_between(state, 1, step);
        z.avail_in = (unsigned)(some < left ? some : left);
        run_deflate(&z, flush, out, stream);
        const bool is_whole_byte = flush == Z_SYNC_FLUSH || flush == Z_FULL_FLUSH;
        for (int i = adds_blocks && is_whole_byte ? random_between(state, -EMPTY_MAX, step / 8) : 0; i > 0; i -= 7)
            append_stored(stream, NULL, 0);
        if (adds_blocks && flush == Z_FULL_FLUSH) { /* zlib repeats no byte from before, so it does not miss these */
            const size_t rest = (size_t)(end - z.next_in),
                         stored = (size_t)random_between(state, 1, STORED_MAX) % some + 1;
            append_stored(stream, z.next_in, stored < rest ? stored : rest);
            z.next_in += stored < rest ? stored : rest;
        }
        if (changes)
            change_settings(&z, state, out, stream);
    }
    run_deflate(&z, Z_FINISH, out, stream);
    deflateEnd(&z);
    free(out);
    return window_bits;
}
