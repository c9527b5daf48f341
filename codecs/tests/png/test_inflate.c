/* SPDX-License-Identifier: MIT
 *
 * Inflating from any block on, and in parts on several threads: the bytes that zlib has deflated, at all levels and
 * with all strategies, and a stream's whole beginning where it is damaged. */
#include "base/parallel.h"
#include "base/random.h"
#include "codecs/tests/png/deflate_streams.h"
#include "png/inflate.h"
#include "png/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libdeflate.h>
#define ZLIB_CONST
#include <zlib.h>

enum { SIZE = 200000, CAPACITY = SIZE + 1000, PACKED_MAX = 8 * SIZE };

/* A random number below COUNT. */
static uint32_t below(uint64_t *seed, uint32_t count)
{
    return (uint32_t)(random_next(seed) >> 32) % count;
}

/* ---- Streams ---- */

enum kind { NOISE, DIFFERENCES, RUNS, COPIES, CONSTANT, KINDS };

/* Bytes that deflate into literals, short matches, runs, or matches from up to 32 KiB away. */
static void make_bytes(uint8_t *bytes, enum kind kind, uint64_t seed)
{
    for (size_t i = 0; i < SIZE; i++) {
        const uint32_t chance = below(&seed, UINT32_MAX);
        const size_t away = 1 + chance % (i < 32768 ? i + 1 : 32768);
        bytes[i] = kind == NOISE         ? (uint8_t)(chance >> 8)
                   : kind == DIFFERENCES ? (uint8_t)((chance & 3) + (chance >> 2 & 3) + (chance >> 4 & 7) - 6)
                   : kind == RUNS        ? (uint8_t)(chance % 50 == 0 || i < 3 ? chance >> 8 : bytes[i - 3])
                                         : 0;
        if (kind == COPIES && (chance % 40 == 0 || i < away)) {
            bytes[i] = (uint8_t)(chance >> 16);
        } else if (kind == COPIES) {
            size_t length = 3 + (chance >> 12) % 300;
            for (; length > 0 && i < SIZE; length--, i++)
                bytes[i] = bytes[i - away];
            i--;
        }
    }
}

/* Deflate the bytes at LEVEL, or as other writers do. */
static size_t deflate_bytes(const uint8_t *bytes, uint8_t *stream, int level, bool as_others, uint64_t seed)
{
    if (as_others) {
        struct blob blob = {0};
        (void)deflate_as_others(&seed, bytes, SIZE, &blob);
        assert_in_range(blob.size, 1, PACKED_MAX);
        memcpy(stream, blob.bytes, blob.size);
        const size_t size = blob.size;
        blob_free(&blob);
        return size;
    }
    z_stream z = {.next_in = bytes, .avail_in = SIZE, .next_out = stream, .avail_out = PACKED_MAX};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 1 + (int)(seed % 9), Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* ---- Parts ---- */

struct reading {
    struct inflate_parts *parts;
    uint8_t *out;
    size_t size, capacity;
    atomic_bool done;
};

static void read_or_help(void *context, int64_t index, int thread)
{
    struct reading *reading = context;
    (void)thread;
    while (index > 0 && !atomic_load(&reading->done))
        (void)inflate_parts_help(reading->parts);
    for (size_t some = 1; index == 0 && some > 0; reading->size += some) {
        const size_t left = reading->capacity - reading->size;
        some = inflate_parts_next(reading->parts, reading->out + reading->size, left < 20000 ? left : 20000);
    }
    if (index == 0)
        atomic_store(&reading->done, true);
}

/* Inflate in parts to OUT, which has CAPACITY bytes, on THREADS threads. If THREADS is 0, one thread takes parts at
 * random. Returns the number of bytes. *END becomes the end of the stream. */
static size_t inflate_in_parts(const uint8_t *stream, size_t size, const struct inflate_cut *cut, int threads,
                               uint64_t seed, uint8_t *out, size_t *end)
{
    static struct thread_pool pool;
    struct reading reading = {.parts = inflate_parts_open(stream, size, cut), .out = out, .capacity = CAPACITY};
    assert_non_null(reading.parts);
    if (threads > 0) {
        thread_pool_open(&pool, threads);
        parallel_for(&pool, threads, threads, read_or_help, &reading);
        thread_pool_close(&pool);
    }
    for (size_t some = 1; threads == 0 && some > 0; reading.size += some) {
        const size_t left = CAPACITY - reading.size, wanted = 1 + below(&seed, 30000);
        for (uint32_t helps = below(&seed, 4); helps > 0; helps--)
            (void)inflate_parts_help(reading.parts);
        some = inflate_parts_next(reading.parts, out + reading.size, left < wanted ? left : wanted);
    }
    *end = inflate_parts_end(reading.parts);
    inflate_parts_free(reading.parts);
    return reading.size;
}

/* Inflate with one decoder. */
static size_t inflate_at_once(const uint8_t *stream, size_t size, uint8_t *out, size_t capacity, size_t *end)
{
    struct inflate_decoder *decoder = malloc(sizeof *decoder);
    struct inflate_output output = {.end = capacity};
    inflate_begin(decoder, stream, size, 0);
    inflate_bytes(decoder, out, &output, UINT64_MAX);
    *end = decoder->state == INFLATE_END ? (size_t)((decoder->bit + 7) / 8) : 0;
    free(decoder);
    return output.at;
}

/* Expect COUNT bytes at BYTES and the END of the stream, however it is cut, and on any number of threads. Damage may be
 * found a little later: zeros after the stream are decoded, too. */
static void expect_parts(const uint8_t *stream, size_t size, const uint8_t *bytes, size_t count, size_t end,
                         uint64_t seed)
{
    enum { ZEROS = 8 * INFLATE_TAIL * 258 };
    uint8_t *out = malloc(CAPACITY + INFLATE_SPARE);
    for (int threads = 0; threads <= 4; threads += threads == 0 ? 2 : 1) {
        const uint32_t chance = below(&seed, UINT32_MAX);
        const struct inflate_cut cut = {
            .part = 500 + chance % 20000, .symbols = 1 + (chance >> 4) % 90000, .slots = 1 + (int)(chance >> 8) % 6};
        size_t found;
        memset(out, 1, CAPACITY);
        const size_t got = inflate_in_parts(stream, size, &cut, threads, seed, out, &found);
        const size_t both = got < count ? got : count;
        if (found != end || memcmp(out, bytes, both) != 0 || (end > 0 && got != count) || got + ZEROS < count ||
            count + ZEROS < got)
            fail_msg("%d threads, parts of %zu: %zu bytes of %zu, end %zu of %zu", threads, cut.part, got, count, found,
                     end);
    }
    free(out);
}

/* ---- Tests ---- */

static void test_parts_make_the_bytes_of_every_writer(void **state)
{
    uint8_t *bytes = malloc(CAPACITY + INFLATE_SPARE), *stream = malloc(PACKED_MAX),
            *out = malloc(CAPACITY + INFLATE_SPARE);
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int level = 0; level < 13; level++) {
            const uint64_t seed = (uint64_t)(100 * kind + level);
            size_t end;
            make_bytes(bytes, (enum kind)kind, seed);
            const size_t size = deflate_bytes(bytes, stream, level % 10, level > 9, seed);
            assert_int_equal(inflate_at_once(stream, size, out, CAPACITY, &end), SIZE);
            assert_memory_equal(out, bytes, SIZE);
            assert_int_equal(end, size);
            expect_parts(stream, size, bytes, SIZE, size, seed);
        }
    free(bytes);
    free(stream);
    free(out);
}

/* Where more bytes follow, decoding ends when INFLATE_AHEAD are left: it takes none of these, and all before. */
static void test_decoding_stops_before_the_last_bytes(void **state)
{
    enum { EXTRA = 3 };
    uint8_t *stream = calloc(INFLATE_AHEAD + EXTRA, 1), out[8 * EXTRA + INFLATE_SPARE];
    struct inflate_decoder *decoder = malloc(sizeof *decoder);
    (void)state;
    for (size_t more = 0; more <= EXTRA; more++) {
        struct inflate_output output = {.end = 8 * EXTRA};
        stream[0] = 3; /* a last block with fixed codes: 3 bits, then 7 zeros, which are its end */
        inflate_begin(decoder, stream, INFLATE_AHEAD + more, 0);
        inflate_continue(decoder, stream, INFLATE_AHEAD + more, true);
        inflate_bytes(decoder, out, &output, UINT64_MAX);
        assert_int_equal(decoder->state, more == 0 ? INFLATE_HEADER : INFLATE_END);
        assert_int_equal(decoder->bit, more == 0 ? 0 : 10);
    }
    free(decoder);
    free(stream);
}

/* Each block with its own codes is found, but for the last one, and decodes to symbols that become its bytes. */
static void test_blocks_are_found_and_decoded_before_their_window_is_known(void **state)
{
    enum { SYMBOLS = DEFLATE_WINDOW + CAPACITY + INFLATE_SPARE };
    uint8_t *bytes = malloc(CAPACITY + INFLATE_SPARE), *stream = malloc(PACKED_MAX),
            *out = malloc(CAPACITY + INFLATE_SPARE);
    uint16_t *symbols = malloc(SYMBOLS * sizeof *symbols);
    uint8_t *table = malloc(1 << 16);
    struct inflate_decoder *decoder = malloc(2 * sizeof *decoder);
    int found = 0, others = 0;
    (void)state;
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)i;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct inflate_output output = {.end = CAPACITY};
        make_bytes(bytes, (enum kind)(seed % KINDS), seed);
        const size_t size = deflate_bytes(bytes, stream, 6, seed % 2 != 0, seed);
        inflate_begin(decoder, stream, size, 0);
        while (decoder->state != INFLATE_END) {
            const uint64_t bit = decoder->bit;
            const size_t from = output.at;
            const unsigned head =
                (unsigned)(stream[bit / 8] | (bit / 8 + 1 < size ? stream[bit / 8 + 1] << 8 : 0)) >> bit % 8;
            inflate_bytes(decoder, out, &output, bit + 1);
            assert_true(decoder->state == INFLATE_HEADER || decoder->state == INFLATE_END);
            if ((head & 7) != 4) { /* the last one, or of another type */
                others++;
                continue;
            }
            uint64_t start;
            struct inflate_output marked = {.end = CAPACITY};
            inflate_begin(&decoder[1], stream, size, 0);
            assert_true(inflate_find(&decoder[1], bit, bit + 1, &start));
            assert_true(start == bit);
            assert_false(inflate_find(&decoder[1], bit + 1, decoder->bit, &start));
            assert_true(inflate_find(&decoder[1], bit, bit + 1, &start));
            inflate_mark(symbols);
            inflate_symbols(&decoder[1], symbols + DEFLATE_WINDOW, &marked, decoder->bit);
            assert_int_equal(marked.at, output.at - from);
            assert_int_equal(decoder[1].bit, decoder->bit);
            const size_t known = from < DEFLATE_WINDOW ? from : DEFLATE_WINDOW;
            memcpy(table + (1 << 16) - known, bytes + from - known, known);
            inflate_resolve(symbols + DEFLATE_WINDOW, marked.at, table, (uint8_t *)(symbols + DEFLATE_WINDOW));
            assert_memory_equal(symbols + DEFLATE_WINDOW, bytes + from, marked.at);
            found++;
        }
        assert_int_equal(output.at, SIZE);
    }
    assert_true(found > 100 && others > 30);
    free(bytes);
    free(stream);
    free(out);
    free(symbols);
    free(table);
    free(decoder);
}

/* Damage ends the bytes at the same byte on any number of threads. libdeflate also reads each accepted stream. */
static void test_damage_is_found_alike(void **state)
{
    uint8_t *bytes = malloc(CAPACITY + INFLATE_SPARE), *stream = malloc(PACKED_MAX),
            *out = malloc(CAPACITY + INFLATE_SPARE);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    int accepted = 0, refused = 0;
    (void)state;
    for (uint32_t i = 0; i < 60; i++) {
        uint64_t seed = i;
        size_t end, used;
        make_bytes(bytes, (enum kind)(i % KINDS), seed);
        size_t size = deflate_bytes(bytes, stream, (int)i % 10, i % 2 != 0, seed);
        for (uint32_t flips = i % 3; flips > 0; flips--)
            stream[below(&seed, (uint32_t)size)] ^= (uint8_t)(1 << below(&seed, 8));
        if (i % 3 == 0)
            size = below(&seed, (uint32_t)size);
        const size_t count = inflate_at_once(stream, size, out, CAPACITY, &end);
        expect_parts(stream, size, out, count < CAPACITY ? count : CAPACITY, end, seed);
        accepted += end > 0;
        refused += end == 0;
        if (end > 0) {
            assert_int_equal(
                libdeflate_deflate_decompress(decompressor, stream, size, bytes, CAPACITY + INFLATE_SPARE, &used),
                LIBDEFLATE_SUCCESS);
            assert_int_equal(used, count);
            assert_memory_equal(out, bytes, used);
        }
    }
    assert_true(accepted > 3 && refused > 20);
    libdeflate_free_decompressor(decompressor);
    free(bytes);
    free(stream);
    free(out);
}

/* A stream, and how many bytes of it were read. */
struct pieces {
    const uint8_t *stream;
    size_t size, at;
};

static size_t read_piece(void *context, uint8_t *out, size_t size)
{
    struct pieces *pieces = context;
    const size_t left = pieces->size - pieces->at, some = size < left ? size : left;
    memcpy(out, pieces->stream + pieces->at, some);
    pieces->at += some;
    return some;
}

/* A stream that is read piece by piece has the bytes, the end and the damage of one that is in memory. */
static void test_a_stream_comes_in_pieces(void **state)
{
    uint8_t *bytes = malloc(CAPACITY + INFLATE_SPARE), *stream = malloc(PACKED_MAX + 4),
            *out = malloc(CAPACITY + INFLATE_SPARE), *again = malloc(CAPACITY + INFLATE_SPARE);
    (void)state;
    for (uint32_t i = 0; i < 60; i++) {
        static const uint8_t mark[4] = {1, 2, 3, 4};
        uint64_t seed = i;
        size_t end, count = 0;
        uint8_t after[4] = {0};
        make_bytes(bytes, (enum kind)(i % KINDS), seed);
        size_t size = deflate_bytes(bytes, stream, (int)i % 10, i % 2 != 0, seed);
        for (uint32_t flips = i % 3; flips > 0; flips--)
            stream[below(&seed, (uint32_t)size)] ^= (uint8_t)(1 << below(&seed, 8));
        if (i % 4 == 0)
            size = below(&seed, (uint32_t)size);
        const size_t expected = inflate_at_once(stream, size, out, CAPACITY, &end);
        if (end == size)
            memcpy(stream + size, mark, sizeof mark);
        struct pieces pieces = {stream, end == size ? size + sizeof mark : size, 0};
        struct inflate_stream *reader = inflate_stream_open(read_piece, &pieces);
        assert_non_null(reader);
        for (size_t some = 1; some > 0; count += some) {
            static const uint8_t guard[INFLATE_SPARE] = {0};
            const size_t wanted = 1 + below(&seed, 150000), left = CAPACITY - count;
            uint8_t *const end_of_part = again + count + (wanted < left ? wanted : left);
            memset(end_of_part, 0, sizeof guard);
            some = inflate_stream_next(reader, again + count, wanted < left ? wanted : left);
            assert_memory_equal(end_of_part, guard, sizeof guard); /* no byte more is written */
        }
        assert_true(inflate_stream_end(reader, after, 0) == (end > 0));
        assert_true(inflate_stream_end(reader, after, sizeof after) == (end == size || (end > 0 && end + 4 <= size)));
        assert_true(end != size || memcmp(after, mark, sizeof mark) == 0);
        assert_true(end == 0 || count == expected);
        assert_memory_equal(again, out, count < expected ? count : expected);
        free(reader);
    }
    free(bytes);
    free(stream);
    free(out);
    free(again);
}

/* A block whose only code is that of its end, 1 bit. zlib and libdeflate accept it. */
static void test_a_block_may_be_empty(void **state)
{
    static const uint8_t stream[] = {0x05, 0xc0, 0x81, 0x08, 0x00, 0x00, 0x00, 0x00, 0x20, 0x7f, 0xeb, 0x03};
    uint8_t out[1 + INFLATE_SPARE];
    size_t end;
    (void)state;
    assert_int_equal(inflate_at_once(stream, sizeof stream, out, 1, &end), 0);
    assert_int_equal(end, sizeof stream);
    z_stream z = {.next_in = stream, .avail_in = sizeof stream, .next_out = out, .avail_out = 1};
    assert_int_equal(inflateInit2(&z, -15), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_make_the_bytes_of_every_writer),
        cmocka_unit_test(test_decoding_stops_before_the_last_bytes),
        cmocka_unit_test(test_blocks_are_found_and_decoded_before_their_window_is_known),
        cmocka_unit_test(test_damage_is_found_alike),
        cmocka_unit_test(test_a_stream_comes_in_pieces),
        cmocka_unit_test(test_a_block_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
