/* SPDX-License-Identifier: MIT
 *
 * The bytes of the rows of a PNG, inflated from first to last: by one thread, from one IDAT chunk after the other, or
 * by several threads, from the joined data of all IDAT chunks. Both ways have the same bytes and errors. */
#include "codec/png_picture.h"

#include "base/parallel.h"
#include "png/png.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

struct png_inflater {
    const struct codec_input *input;
    const struct png_picture *picture;
    size_t left;       /* bytes of the rows */
    uint32_t checksum; /* Adler-32 of the bytes of the rows so far */

    struct inflate_stream *stream; /* inflates on one thread; or NULL */
    struct png_walk walk;          /* over the IDAT chunks */
    const uint8_t *data;           /* that are next in a chunk */
    size_t size;

    struct inflate_parts *parts; /* inflates on several threads; or NULL */
    const uint8_t *all;          /* the data of all IDAT chunks */
    uint8_t *joined;             /* the memory of ALL if there are several IDAT chunks, else NULL */
};

/* Report that the inflation failed; ZLIB_DONE means that it ended too early. Returns false. */
static bool report_inflate_error(const struct codec_input *input, enum zlib_result result, struct error *error)
{
    static const char *const reasons[] = {
        [ZLIB_DONE] = "it ends before the last row",
        [ZLIB_UNKNOWN] = "its compression is unknown",
        [ZLIB_DAMAGED] = "its compression or checksum is damaged",
        [ZLIB_TOO_LARGE] = "it continues after the last row",
    };
    return codec_report_damaged(input, reasons[result], error);
}

/* ---- The data on one thread ---- */

/* Copy the next SIZE bytes of the data of all IDAT chunks, or what is left. Returns their number. */
static size_t read_data(void *context, uint8_t *out, size_t size)
{
    struct png_inflater *inflater = context;
    struct png_chunk chunk;
    size_t done = 0;
    while (done < size) {
        if (inflater->size == 0) {
            if (png_walk_next(&inflater->walk, &chunk) != PNG_STEP_CHUNK || !png_chunk_is(&chunk, "IDAT"))
                break;
            inflater->data = chunk.data;
            inflater->size = chunk.size;
            continue;
        }
        const size_t some = size - done < inflater->size ? size - done : inflater->size;
        memcpy(out + done, inflater->data, some);
        inflater->data += some;
        inflater->size -= some;
        done += some;
    }
    return done;
}

/* Begin on one thread. */
static bool begin_stream(struct png_inflater *inflater, struct error *error)
{
    const struct codec_input *input = inflater->input;
    const struct png_stream *stream = &inflater->picture->stream;
    uint8_t head[ZLIB_HEAD];
    inflater->walk =
        (struct png_walk){.bytes = input->bytes, .size = input->size, .at = (size_t)(stream->chunks - input->bytes)};
    if (stream->size <= ZLIB_HEAD || read_data(inflater, head, ZLIB_HEAD) < ZLIB_HEAD || !zlib_head_is_known(head))
        return report_inflate_error(input, ZLIB_UNKNOWN, error);
    inflater->stream = inflate_stream_open(read_data, inflater);
    return inflater->stream != NULL || error_no_memory(error, "the decoder");
}

/* ---- The data on several threads ---- */

enum { COPY = 1 << 20 }; /* bytes of a piece; all threads copy the data piece by piece */

/* Copy piece number INDEX of the data. */
static void copy_piece(void *context, int64_t index, int thread)
{
    struct png_inflater *inflater = context;
    const struct png_stream *stream = &inflater->picture->stream;
    const size_t first = (size_t)index * COPY, last = first + COPY;
    (void)thread;
    png_stream_copy(stream, first, last < stream->size ? last : stream->size, inflater->joined + first);
}

/* Use the data of the only IDAT chunk, or a copy of the data of all. */
static bool join_image_data(struct png_inflater *inflater)
{
    struct thread_pool *pool = inflater->input->settings->pool;
    const size_t size = inflater->picture->stream.size;
    inflater->all = png_stream_data(&inflater->picture->stream);
    if (inflater->all != NULL)
        return true;
    inflater->all = inflater->joined = malloc(size);
    if (inflater->joined != NULL)
        parallel_for(pool, thread_pool_threads(pool), (int64_t)((size - 1) / COPY + 1), copy_piece, inflater);
    return inflater->joined != NULL;
}

size_t png_inflate_extra(const struct codec_info *info, const struct codec_settings *settings)
{
    /* A smaller file is inflated before threads have begun. Parts take 1.3 to 3 times the work of one decoder, so they
     * pay only if that keeps other threads waiting. */
    enum { SIZE_MIN = 1 << 19, THREADS_MIN = 4 };
    const int threads = thread_pool_threads(settings->pool);
    const struct inflate_cut cut = inflate_usual_cut(info->size, info->size, threads);
    return threads >= THREADS_MIN && info->size >= SIZE_MIN ? info->size + inflate_parts_need(&cut) : 0;
}

/* Begin on several threads, if that is possible and allowed. */
static void begin_parts(struct png_inflater *inflater)
{
    const struct codec_settings *settings = inflater->input->settings;
    const size_t size = inflater->picture->stream.size, extra = png_inflate_extra(inflater->input->info, settings);
    const int threads = thread_pool_threads(settings->pool);
    const struct inflate_cut cut = inflate_usual_cut(size, inflater->left, threads);
    if (extra > 0 && extra <= settings->reader_extra && size > ZLIB_HEAD + ZLIB_TAIL && join_image_data(inflater) &&
        zlib_head_is_known(inflater->all))
        inflater->parts = inflate_parts_open(inflater->all + ZLIB_HEAD, size - ZLIB_HEAD, &cut);
}

/* ---- The bytes ---- */

/* Inflate the next SIZE bytes to OUT. Returns how many there are. */
static size_t inflate(struct png_inflater *inflater, uint8_t *out, size_t size)
{
    const size_t some = inflater->parts != NULL ? inflate_parts_next(inflater->parts, out, size)
                                                : inflate_stream_next(inflater->stream, out, size);
    inflater->checksum = libdeflate_adler32(inflater->checksum, out, some);
    return some;
}

/* Find the checksum in the stream, after its last block. Returns false if it is not there, or if the stream goes on. */
static bool find_checksum(struct png_inflater *inflater, uint8_t *out)
{
    if (inflater->parts == NULL)
        return inflate_stream_end(inflater->stream, out, ZLIB_TAIL);
    const size_t end = inflate_parts_end(inflater->parts);
    if (end == 0 || ZLIB_HEAD + end + ZLIB_TAIL > inflater->picture->stream.size)
        return false;
    memcpy(out, inflater->all + ZLIB_HEAD + end, ZLIB_TAIL);
    return true;
}

/* Has the stream a last block, and no more bytes? */
static bool has_ended(struct png_inflater *inflater)
{
    uint8_t none[1];
    return inflater->parts != NULL ? inflate_parts_end(inflater->parts) > 0
                                   : inflate_stream_end(inflater->stream, none, 0);
}

/* Inflate what follows the rows, and check the end of the stream. Some writers add a few bytes, which all readers
 * ignore. A stream with more is damaged. */
static enum zlib_result check_stream_end(struct png_inflater *inflater)
{
    enum { MORE = 1 << 16 };
    const struct png_layout *layout = &inflater->picture->layout;
    uint8_t bytes[4096];
    size_t left = png_row_bytes(layout, (size_t)layout->width) + MORE + 1, some = sizeof bytes;
    while (some == sizeof bytes && left > 0) {
        some = inflate(inflater, bytes, left < sizeof bytes ? left : sizeof bytes);
        left -= some;
    }
    if (left == 0)
        return ZLIB_TOO_LARGE;
    return find_checksum(inflater, bytes) && big32(bytes) == inflater->checksum ? ZLIB_DONE : ZLIB_DAMAGED;
}

bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error)
{
    enum zlib_result result = ZLIB_DONE;
    const bool is_short = inflate(inflater, out, size) < size;
    inflater->left -= size;
    if (is_short)
        result = has_ended(inflater) ? ZLIB_DONE : ZLIB_DAMAGED;
    else if (inflater->left == 0)
        result = check_stream_end(inflater);
    return (!is_short && result == ZLIB_DONE) || report_inflate_error(inflater->input, result, error);
}

/* ---- Opening and closing ---- */

size_t png_inflate_need(void)
{
    return sizeof(struct png_inflater) + inflate_stream_need();
}

struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error)
{
    struct png_inflater *inflater = malloc(sizeof *inflater);
    if (inflater == NULL) {
        error_no_memory(error, "the decoder");
        return NULL;
    }
    *inflater = (struct png_inflater){.input = input, .picture = picture, .left = size, .checksum = 1};
    begin_parts(inflater);
    if (inflater->parts != NULL || begin_stream(inflater, error))
        return inflater;
    png_inflate_close(inflater);
    return NULL;
}

bool png_inflate_takes_help(const struct png_inflater *inflater)
{
    return inflater->parts != NULL;
}

bool png_inflate_help(struct png_inflater *inflater)
{
    return inflate_parts_help(inflater->parts);
}

void png_inflate_close(struct png_inflater *inflater)
{
    if (inflater == NULL)
        return;
    inflate_parts_free(inflater->parts);
    free(inflater->stream);
    free(inflater->joined);
    free(inflater);
}
