/* SPDX-License-Identifier: MIT
 *
 * The codec `libdeflate`, writing. Rows are filtered and compressed in bands that do not depend on each other. Threads
 * share the bands. The bands, and so the file, are the same for any number of threads. */
#include "codec/codec_internal.h"

#include "base/parallel.h"
#include "codec/deflate.h"
#include "codec/png_filter.h"
#include "container/png.h"
#include "container/zlib.h"

#include <endian.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a band before compression. A band and the compressor's memory fit into the second cache of a processor.
 * A band is large enough that starting anew with each one costs the compressor nothing. */
enum { BAND_BYTES = 1 << 19 };

/* From this level on, libdeflate compresses the filtered rows once more. It uses one piece and one thread, because its
 * streams cannot be joined. Drawings become a fifth smaller, photos larger. The smaller stream is kept. */
enum { LIBDEFLATE_LEVEL = 2 };

/* A compressed band. */
struct band {
    size_t size;
    uint32_t adler; /* of its filtered rows */
};

/* The state of a thread. */
struct thread_state {
    struct deflate_workspace *workspace;
    uint8_t *rows[2]; /* each has zeros before it */
    uint8_t *scratch, *filtered;
};

/* The state of encoding an image. */
struct encoding {
    const struct image *image;
    size_t pixel, row_bytes; /* without the byte in front */
    int64_t bands;
    int band_rows, level;
    uint8_t *out;      /* place of the first band */
    size_t out_bytes;  /* from a band to the next */
    uint8_t *filtered; /* all filtered rows; NULL: each thread has only its own */
    struct band *results;
    struct thread_state **threads;
};

/* The bytes of a full band before compression, with one byte in front of each row. */
static size_t band_bytes(const struct encoding *encoding)
{
    return (size_t)encoding->band_rows * (encoding->row_bytes + 1);
}

/* The bytes of all filtered rows. */
static size_t filtered_bytes(const struct encoding *encoding)
{
    return (size_t)encoding->image->height * (encoding->row_bytes + 1);
}

/* ---- Threads ---- */

static void thread_state_free(struct thread_state *state)
{
    if (state != NULL)
        free(state->workspace);
    free(state);
}

static struct thread_state *thread_state_new(const struct encoding *encoding)
{
    const size_t padded = encoding->row_bytes + PNG_PIXEL_MAX;
    const size_t scratch = png_filter_scratch(encoding->row_bytes);
    const size_t filtered = encoding->filtered != NULL ? 0 : band_bytes(encoding);
    struct thread_state *state = malloc(sizeof *state + 2 * padded + scratch + filtered);
    if (state == NULL)
        return NULL;
    uint8_t *bytes = (uint8_t *)(state + 1);
    *state = (struct thread_state){
        .workspace = deflate_workspace_new(),
        .rows = {bytes + PNG_PIXEL_MAX, bytes + padded + PNG_PIXEL_MAX},
        .scratch = bytes + 2 * padded,
        .filtered = bytes + 2 * padded + scratch,
    };
    memset(bytes, 0, 2 * padded);
    if (state->workspace == NULL) {
        free(state);
        return NULL;
    }
    return state;
}

/* Copy row Y of the image, in PNG's byte order. */
static void copy_row(const struct encoding *encoding, int y, uint8_t *out)
{
    const uint8_t *samples = encoding->image->samples + (size_t)y * encoding->row_bytes;
    if (image_sample_bytes(encoding->image) == 1) {
        memcpy(out, samples, encoding->row_bytes);
        return;
    }
    for (size_t i = 0; i < encoding->row_bytes; i += 2) {
        uint16_t sample;
        memcpy(&sample, samples + i, sizeof sample);
        sample = htobe16(sample);
        memcpy(out + i, &sample, sizeof sample);
    }
}

/* Filter COUNT rows from row FIRST on. Without compression, filters gain nothing and are not used. */
static void filter_rows(const struct encoding *encoding, struct thread_state *state, int first, int count, uint8_t *out)
{
    const size_t size = encoding->row_bytes;
    uint8_t *above = state->rows[0], *row = state->rows[1];
    if (first == 0 || encoding->level == 0)
        memset(above, 0, size);
    else
        copy_row(encoding, first - 1, above);
    for (int y = first; y < first + count; y++, out += size + 1) {
        if (encoding->level == 0) {
            out[0] = 0;
            copy_row(encoding, y, out + 1);
            continue;
        }
        uint8_t *next = above;
        copy_row(encoding, y, row);
        png_filter(row, above, size, encoding->pixel, state->scratch, out);
        above = row;
        row = next;
    }
}

static void encode_band(void *context, int64_t index, int thread)
{
    const struct encoding *encoding = context;
    struct thread_state *state = encoding->threads[thread];
    const int first = (int)index * encoding->band_rows, left = encoding->image->height - first;
    const int rows = left < encoding->band_rows ? left : encoding->band_rows;
    const size_t size = (size_t)rows * (encoding->row_bytes + 1);
    uint8_t *out = encoding->out + (size_t)index * encoding->out_bytes;
    uint8_t *filtered =
        encoding->filtered != NULL ? encoding->filtered + (size_t)index * band_bytes(encoding) : state->filtered;
    struct band *band = &encoding->results[index];
    filter_rows(encoding, state, first, rows, filtered);
    band->adler = libdeflate_adler32(1, filtered, size);
    band->size = encoding->level == 0 ? deflate_store(filtered, size, rows == left, out)
                                      : deflate_band(state->workspace, filtered, size, rows == left, out);
}

/* Filter and compress all bands on COUNT threads of POOL. Returns false if there is not enough memory. */
static bool encode_bands(struct encoding *encoding, struct thread_pool *pool, int count)
{
    encoding->results = calloc((size_t)encoding->bands, sizeof *encoding->results);
    encoding->threads = calloc((size_t)count, sizeof(struct thread_state *));
    bool done = encoding->results != NULL && encoding->threads != NULL;
    for (int i = 0; done && i < count; i++)
        done = (encoding->threads[i] = thread_state_new(encoding)) != NULL;
    if (done)
        parallel_for(pool, count, encoding->bands, encode_band, encoding);
    for (int i = 0; encoding->threads != NULL && i < count; i++)
        thread_state_free(encoding->threads[i]);
    free(encoding->threads);
    return done;
}

/* ---- The stream ---- */

/* The checksum of two runs of bytes, from their own checksums. The second run has SIZE bytes. Adler-32 is two sums
 * modulo 65521, the largest prime below 2^16: a = 1 + the bytes, and b = the values of a after each byte. */
static uint32_t join_adler(uint32_t first, uint32_t second, size_t size)
{
    const uint64_t prime = 65521, a = first & 0xffff, b = first >> 16;
    const uint64_t sum = (a + (second & 0xffff) + prime - 1) % prime;
    const uint64_t sums = (b + (second >> 16) + size % prime * (a + prime - 1)) % prime;
    return (uint32_t)(sums << 16 | sum);
}

/* Move the bands together. Returns the sum of their sizes and sets *ADLER to the checksum of all. */
static size_t join_bands(const struct encoding *encoding, uint32_t *adler)
{
    const size_t full = band_bytes(encoding), all = filtered_bytes(encoding);
    size_t size = 0;
    *adler = 1;
    for (int64_t i = 0; i < encoding->bands; i++) {
        const size_t before = (size_t)i * full;
        memmove(encoding->out + size, encoding->out + (size_t)i * encoding->out_bytes, encoding->results[i].size);
        size += encoding->results[i].size;
        *adler = join_adler(*adler, encoding->results[i].adler, all - before < full ? all - before : full);
    }
    return size;
}

/* Compress the filtered rows with libdeflate. If the result is smaller than the *SIZE bytes at OUT, it replaces them.
 * Returns false if there is not enough memory. */
static bool compress_again(const struct encoding *encoding, uint8_t *out, size_t *size)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(encoding->level);
    uint8_t *again = *size > 0 ? malloc(*size) : NULL;
    const bool done = compressor != NULL && again != NULL;
    if (done) {
        const size_t used =
            libdeflate_deflate_compress(compressor, encoding->filtered, filtered_bytes(encoding), again, *size - 1);
        if (used > 0) { /* it is smaller */
            memcpy(out, again, used);
            *size = used;
        }
    }
    if (compressor != NULL)
        libdeflate_free_compressor(compressor);
    free(again);
    return done;
}

/* Write the stream, without head and checksum, to OUT on COUNT threads of POOL. Returns its size, or 0 if there is not enough
 * memory. */
static size_t compress(struct encoding *encoding, struct thread_pool *pool, int count, uint8_t *out, uint32_t *adler)
{
    size_t size = 0;
    encoding->out = out;
    encoding->out_bytes = deflate_bound(band_bytes(encoding));
    if (encoding->level >= LIBDEFLATE_LEVEL) {
        encoding->filtered = malloc(filtered_bytes(encoding));
        if (encoding->filtered == NULL)
            return 0;
    }
    if (encode_bands(encoding, pool, count)) {
        size = join_bands(encoding, adler);
        if (encoding->filtered != NULL && !compress_again(encoding, out, &size))
            size = 0;
    }
    free(encoding->results);
    free(encoding->filtered);
    return size;
}

/* ---- The file ---- */

enum { HEADER_BYTES = PNG_SIGNATURE + PNG_CHUNK_OVERHEAD + PNG_HEADER_DATA };

/* Write signature and IHDR. Returns the place of the next chunk. */
static uint8_t *write_header(uint8_t *out, const struct image *image)
{
    static const uint8_t colours[] = {[1] = 0, PNG_ALPHA, PNG_COLOUR, PNG_COLOUR | PNG_ALPHA};
    uint8_t *chunk = out + PNG_SIGNATURE, *data = chunk + PNG_CHUNK_HEAD;
    memcpy(out, png_signature, PNG_SIGNATURE);
    memset(data, 0, PNG_HEADER_DATA);
    put_big32(data, (uint32_t)image->width);
    put_big32(data + 4, (uint32_t)image->height);
    data[8] = (uint8_t)image->bits;
    data[9] = colours[image->channels];
    return png_chunk_close(chunk, "IHDR", PNG_HEADER_DATA);
}

bool png_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                uint8_t **bytes, size_t *size, struct error *error)
{
    const size_t pixel = image_pixel_bytes(image), row_bytes = (size_t)image->width * pixel;
    const int fitting = row_bytes < BAND_BYTES ? (int)(BAND_BYTES / (row_bytes + 1)) : 1;
    struct encoding encoding = {.image = image, .pixel = pixel, .row_bytes = row_bytes, .level = settings->compression};
    encoding.band_rows = fitting < image->height ? fitting : image->height;
    encoding.bands = (image->height - 1) / encoding.band_rows + 1;
    const int wanted = thread_pool_threads(settings->pool);
    const int threads = encoding.bands < wanted ? (int)encoding.bands : wanted;
    const size_t stream_bound = (size_t)encoding.bands * deflate_bound(band_bytes(&encoding));
    const size_t chunk_bytes = PNG_CHUNK_OVERHEAD + ZLIB_HEAD + stream_bound + ZLIB_TAIL;
    uint8_t *file = malloc(HEADER_BYTES + chunk_bytes + PNG_CHUNK_OVERHEAD);
    if (file == NULL)
        return codec_report_encode_memory(image, format, error);

    uint8_t *chunk = write_header(file, image);
    uint8_t *stream = chunk + PNG_CHUNK_HEAD + ZLIB_HEAD;
    uint32_t adler;
    const size_t compressed = compress(&encoding, settings->pool, threads, stream, &adler);
    if (compressed == 0) {
        free(file);
        return codec_report_encode_memory(image, format, error);
    }
    stream[-2] = 0x78; /* deflate with a window of 32 KB */
    stream[-1] = 0x01; /* fast compression; with it, the two bytes are a multiple of 31 */
    put_big32(stream + compressed, adler);
    uint8_t *end = png_chunk_close(chunk, "IDAT", ZLIB_HEAD + compressed + ZLIB_TAIL);
    *size = (size_t)(png_chunk_close(end, "IEND", 0) - file);
    *bytes = file;
    return true;
}
