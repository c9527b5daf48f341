/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-png`, writing. Rows are filtered and compressed in bands that do not depend on each other, so any
 * thread may encode any band. The bands, and so the file, are the same for any number of threads. */
#include "codec/codec_internal.h"

#include "base/parallel.h"
#include "codec/gpu_codec.h"
#include "codec/png_picture.h"
#include "container/png.h"
#include "container/zlib.h"
#include "png/png.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)PNG_BAND_BYTES <= (int)CODEC_BAND_BYTES, "memory is planned for bands of at most these bytes");

/* From this level on, libdeflate compresses the filtered rows once more. It uses one piece and one thread, because its
 * streams cannot be joined. Drawings become a fifth smaller, photos larger. The smaller stream is kept. */
enum { LIBDEFLATE_LEVEL = 2 };

/* The maximal number of bytes of data in a chunk. */
enum { CHUNK_MAX = INT32_MAX };

/* A compressed band. */
struct band {
    uint8_t *bytes; /* NULL once it is in the file */
    size_t size;
    uint32_t adler; /* Adler-32 of the band's filtered rows */
};

/* The state of a thread. */
struct thread_state {
    struct deflate_workspace *workspace;
    uint8_t *rows[2];
    uint8_t *filtered;
};

/* The state of a writer. */
struct encoding {
    struct image shape;
    size_t pixel, row_bytes; /* without the byte in front */
    int64_t bands;
    int band_rows, level;
    uint8_t *filtered; /* all filtered rows; NULL if each thread has only those of its band */
    struct band *results;
    struct thread_state **threads;
    int thread_count;
    struct blob *file; /* the bands that are written, and what is before them */
    uint32_t crc;      /* CRC of an IDAT chunk with the bands that are written */
    uint32_t adler;    /* Adler-32 of the filtered rows of these bands */
};

/* The bytes of a full band before compression, with one byte in front of each row. */
static size_t band_bytes(const struct encoding *encoding)
{
    return (size_t)encoding->band_rows * (encoding->row_bytes + 1);
}

/* The bytes of all filtered rows. */
static size_t filtered_bytes(const struct encoding *encoding)
{
    return (size_t)encoding->shape.height * (encoding->row_bytes + 1);
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
    const size_t row = encoding->row_bytes, filtered = encoding->filtered != NULL ? 0 : band_bytes(encoding);
    struct thread_state *state = malloc(sizeof *state + 2 * row + filtered);
    if (state == NULL)
        return NULL;
    uint8_t *bytes = (uint8_t *)(state + 1);
    *state = (struct thread_state){
        .workspace = deflate_workspace_new(encoding->level == CODEC_COMPRESSION_FAST),
        .rows = {bytes, bytes + row},
        .filtered = bytes + 2 * row,
    };
    if (state->workspace == NULL) {
        free(state);
        return NULL;
    }
    return state;
}

/* A row of samples in PNG's byte order: the samples, or a copy in SCRATCH_ROW. */
static const uint8_t *order_row(const struct encoding *encoding, const uint8_t *samples, uint8_t *scratch_row)
{
    if (image_sample_bytes(&encoding->shape) == 1)
        return samples;
    bytes_swap_big16(samples, encoding->row_bytes / 2, scratch_row);
    return scratch_row;
}

/* Filter ROWS. If IS_FIRST, no row is above them. Without compression, filters gain nothing and are not used. */
static void filter_band(const struct encoding *encoding, struct thread_state *state, bool is_first,
                        const struct image *rows, uint8_t *out)
{
    const size_t size = encoding->row_bytes;
    const uint8_t *above = state->rows[1];
    if (is_first)
        memset(state->rows[1], 0, size);
    else
        above = order_row(encoding, rows->samples - size, state->rows[1]);
    for (int y = 0; y < rows->height; y++, out += size + 1) {
        const uint8_t *row = order_row(encoding, image_row(rows, y), state->rows[y % 2]);
        if (encoding->level == 0) {
            out[0] = 0;
            memcpy(out + 1, row, size);
        } else {
            png_filter(state->workspace, row, above, size, encoding->pixel, out);
        }
        above = row;
    }
}

/* Filter and compress band number INDEX, which holds ROWS. Returns false if there is not enough memory. */
static bool encode_band(struct encoding *encoding, struct thread_state *state, int64_t index, const struct image *rows)
{
    const bool is_last = index == encoding->bands - 1;
    const size_t size = (size_t)rows->height * (encoding->row_bytes + 1);
    uint8_t *filtered =
        encoding->filtered != NULL ? encoding->filtered + (size_t)index * band_bytes(encoding) : state->filtered;
    struct band *band = &encoding->results[index];
    uint8_t *out = malloc(deflate_bound(size) + (encoding->level == CODEC_COMPRESSION_FAST ? DEFLATE_FAST_EXTRA : 0));
    if (out == NULL)
        return false;
    filter_band(encoding, state, index == 0, rows, filtered);
    band->adler = libdeflate_adler32(1, filtered, size);
    band->size = encoding->level == 0 ? deflate_store(filtered, size, is_last, out)
                                      : deflate_band(state->workspace, filtered, size, encoding->pixel, is_last, out);
    band->bytes = out;
    uint8_t *smaller = realloc(out, band->size);
    if (smaller != NULL)
        band->bytes = smaller;
    return true;
}

/* ---- The file, and its stream ---- */

/* The checksum of two runs of bytes, from their own checksums. The second run has SIZE bytes. Adler-32 is two sums
 * modulo 65521, the largest prime below 2^16: a = 1 + the bytes, and b = the values of a after each byte. */
static uint32_t join_adler(uint32_t first, uint32_t second, size_t size)
{
    const uint64_t prime = 65521, a = first & 0xffff, b = first >> 16;
    const uint64_t sum = (a + (second & 0xffff) + prime - 1) % prime;
    const uint64_t sums = (b + (second >> 16) + size % prime * (a + prime - 1)) % prime;
    return (uint32_t)(sums << 16 | sum);
}

/* The offset of the first band. */
enum { STREAM_AT = PNG_SIGNATURE + PNG_CHUNK_OVERHEAD + PNG_HEADER_DATA + PNG_CHUNK_HEAD + ZLIB_HEAD };

bool png_begin_stream(const struct image *shape, struct blob *file)
{
    static const uint8_t colours[] = {[1] = 0, PNG_ALPHA, PNG_COLOUR, PNG_COLOUR | PNG_ALPHA};
    /* The head of IDAT, and deflate with a window of 32 KB and fast compression: both bytes are a multiple of 31. */
    static const uint8_t head[PNG_CHUNK_HEAD + ZLIB_HEAD] = {[4] = 'I', 'D', 'A', 'T', 0x78, 0x01};
    uint8_t header[PNG_HEADER_DATA] = {[8] = (uint8_t)shape->bits, colours[shape->channels]};
    put_big32(header, (uint32_t)shape->width);
    put_big32(header + 4, (uint32_t)shape->height);
    return blob_append(file, png_signature, PNG_SIGNATURE) && png_chunk_append(file, "IHDR", header, sizeof header) &&
           blob_append(file, head, sizeof head);
}

/* What does not fit into a chunk moves by what is between two chunks. */
uint8_t *png_end_stream(uint8_t *data, size_t size, uint32_t adler, const uint32_t *crc)
{
    uint8_t *chunk = data - ZLIB_HEAD - PNG_CHUNK_HEAD, *tail = data + size;
    size_t left = ZLIB_HEAD + size + ZLIB_TAIL;
    put_big32(tail, adler);
    if (crc != NULL && left <= CHUNK_MAX) {
        put_big32(chunk, (uint32_t)left);
        put_big32(tail + ZLIB_TAIL, libdeflate_crc32(*crc, tail, ZLIB_TAIL));
        return png_chunk_close(tail + ZLIB_TAIL + sizeof *crc, "IEND", 0);
    }
    for (size_t step; left > 0; left -= step) {
        step = left < CHUNK_MAX ? left : CHUNK_MAX;
        uint8_t *end = chunk + PNG_CHUNK_HEAD + step;
        memmove(end + PNG_CHUNK_OVERHEAD, end, left - step);
        chunk = png_chunk_close(chunk, "IDAT", step);
    }
    return png_chunk_close(chunk, "IEND", 0);
}

/* Forget the bands in the file. */
static void begin_data(struct encoding *encoding)
{
    enum { BEFORE = 4 + ZLIB_HEAD }; /* what the CRC is also of: the type, and the head of the stream */
    encoding->file->size = STREAM_AT;
    encoding->crc = libdeflate_crc32(0, encoding->file->bytes + STREAM_AT - BEFORE, BEFORE);
}

/* Append SIZE bytes of bands. These are still in a cache when their checksum is taken. Returns false if there is not
 * enough memory. */
static bool append_data(struct encoding *encoding, const uint8_t *bytes, size_t size)
{
    if (!blob_append(encoding->file, bytes, size))
        return false;
    encoding->crc = libdeflate_crc32(encoding->crc, encoding->file->bytes + encoding->file->size - size, size);
    return true;
}

/* End the file. Returns false if there is not enough memory. */
static bool end_data(struct encoding *encoding)
{
    struct blob *file = encoding->file;
    const size_t size = file->size - STREAM_AT, chunks = size / CHUNK_MAX + 3; /* at most, with IEND */
    if (blob_extend(file, chunks * PNG_CHUNK_OVERHEAD) == NULL)
        return false;
    const uint8_t *end = png_end_stream(file->bytes + STREAM_AT, size, encoding->adler, &encoding->crc);
    file->size = (size_t)(end - file->bytes);
    return true;
}

/* ---- The writer ---- */

/* Compress the filtered rows with libdeflate. If the result is smaller than what is in the file, it replaces that.
 * Returns false if there is not enough memory. */
static bool compress_again(struct encoding *encoding)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(encoding->level);
    const size_t size = encoding->file->size - STREAM_AT;
    uint8_t *again = malloc(size);
    bool done = compressor != NULL && again != NULL;
    const size_t used =
        done ? libdeflate_deflate_compress(compressor, encoding->filtered, filtered_bytes(encoding), again, size - 1)
             : 0;
    if (used > 0) { /* it is smaller */
        begin_data(encoding);
        done = append_data(encoding, again, used);
    }
    if (compressor != NULL)
        libdeflate_free_compressor(compressor);
    free(again);
    return done;
}

/* Reserve what all bands share, and the beginning of the file. Returns false if there is not enough memory. */
static bool encoding_open(struct encoding *encoding, int threads)
{
    encoding->results = calloc((size_t)encoding->bands, sizeof *encoding->results);
    encoding->threads = calloc((size_t)threads, sizeof(struct thread_state *));
    encoding->thread_count = encoding->threads != NULL ? threads : 0;
    if (encoding->level >= LIBDEFLATE_LEVEL)
        encoding->filtered = malloc(filtered_bytes(encoding));
    const bool done = encoding->results != NULL && encoding->threads != NULL &&
                      (encoding->level < LIBDEFLATE_LEVEL || encoding->filtered != NULL) &&
                      png_begin_stream(&encoding->shape, encoding->file);
    if (done)
        begin_data(encoding);
    return done;
}

/* A thread has the rows of a band, as filtered and as compressed. From LIBDEFLATE_LEVEL on, all filtered rows, a second
 * stream and libdeflate's compressor are in memory, too. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    /* The first is a thread's compressor, and what deflate_bound adds. */
    enum { OTHER = 512 << 10, LIBDEFLATE = 1 << 20 };
    const size_t row = image_pixel_bytes(shape) * (size_t)shape->width + 1, rows = row * (size_t)shape->height;
    const size_t max = row < PNG_BAND_BYTES ? PNG_BAND_BYTES : row, band = rows < max ? rows : max;
    const size_t extra = settings->compression == CODEC_COMPRESSION_FAST ? DEFLATE_FAST_EXTRA : 0;
    const size_t thread = 2 * band + 2 * row + OTHER + extra;
    const size_t threads = (size_t)thread_pool_threads(settings->pool);
    const size_t bands = (rows - 1) / max + 1, used = threads < bands ? threads : bands;
    return (settings->compression >= LIBDEFLATE_LEVEL ? 2 * rows + LIBDEFLATE : 0) + used * thread;
}

static bool encode_png_rows(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    struct encoding *encoding = writer->state;
    struct thread_state **state = &encoding->threads[thread];
    if (*state == NULL)
        *state = thread_state_new(encoding);
    bool done = *state != NULL;
    for (int y = 0; done && y < rows->height; y += encoding->band_rows) {
        const int left = rows->height - y;
        const struct image band = image_rows(rows, y, left < encoding->band_rows ? left : encoding->band_rows);
        done = encode_band(encoding, *state, (first + y) / encoding->band_rows, &band);
    }
    return done || error_no_memory(error, "the encoded image");
}

static bool write_rows(void *context, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    struct encoding *encoding = writer->state;
    for (int y = first; y < first + rows->height; y += encoding->band_rows) {
        const int left = encoding->shape.height - y;
        struct band *band = &encoding->results[y / encoding->band_rows];
        if (!append_data(encoding, band->bytes, band->size))
            return error_no_memory(error, "the encoded image");
        free(band->bytes);
        band->bytes = NULL;
        encoding->adler =
            join_adler(encoding->adler, band->adler,
                       (size_t)(left < encoding->band_rows ? left : encoding->band_rows) * (encoding->row_bytes + 1));
    }
    writer->written = encoding->file->size;
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    const struct image *shape = &writer->shape;
    const size_t pixel = image_pixel_bytes(shape), row_bytes = (size_t)shape->width * pixel;
    struct encoding *encoding = writer->state;
    *encoding = (struct encoding){.shape = *shape,
                                  .pixel = pixel,
                                  .row_bytes = row_bytes,
                                  .level = writer->settings->compression,
                                  .file = &writer->file,
                                  .adler = 1};
    encoding->band_rows = png_band_rows(row_bytes, shape->height);
    encoding->bands = (shape->height - 1) / encoding->band_rows + 1;
    writer->sink.multiple = encoding->band_rows;
    writer->sink.reads_above = true;
    writer->sink.encode = encode_png_rows;
    writer->sink.write = write_rows;
    writer->finishes_late = encoding->level >= LIBDEFLATE_LEVEL;
    return encoding_open(encoding, thread_pool_threads(writer->settings->pool)) ||
           error_no_memory(error, "the encoded image");
}

static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    struct encoding *encoding = writer->state;
    return ((encoding->filtered == NULL || compress_again(encoding)) && end_data(encoding)) ||
           error_no_memory(error, "the encoded image");
}

static void writer_close(struct codec_writer *writer)
{
    struct encoding *encoding = writer->state;
    for (int i = 0; i < encoding->thread_count; i++)
        thread_state_free(encoding->threads[i]);
    for (int64_t i = 0; encoding->results != NULL && i < encoding->bands; i++)
        free(encoding->results[i].bytes);
    free(encoding->threads);
    free(encoding->results);
    free(encoding->filtered);
}

const struct codec_functions parallel_png = {
    .writer_state = sizeof(struct encoding),
    .decode = png_decode,
    .reader_need = png_reader_need,
    .reader_extra = png_inflate_extra,
    .reader_open = png_reader_open,
    .reader_close = png_reader_close,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
