/* SPDX-License-Identifier: MIT
 *
 * Inflating on several threads, by png/inflate_parts.h. That decoder is strict, and finds no words for a damaged
 * stream. So whatever it does not read to its end, with the right checksum, is inflated again from the beginning by one
 * thread, which says what is wrong. */
#include "codec/png_picture.h"

#include "base/parallel.h"
#include "png/inflate_parts.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

struct png_raw {
    const struct codec_input *input;
    const struct png_picture *picture;
    size_t size, done;           /* bytes of the rows; how many were handed over */
    struct png_inflater *serial; /* inflates on one thread; or NULL */

    struct inflate_parts *parts; /* inflates on several, until there is a serial one */
    const uint8_t *stream;       /* the data of all IDAT chunks */
    uint8_t *joined;             /* the same, if there are several such chunks */
    uint32_t checksum;           /* of the bytes so far */
};

/* ---- The data ---- */

/* The data are copied in so many pieces, on all threads. */
enum { COPY = 1 << 20 };

/* Copy piece number INDEX of the data. */
static void copy_piece(void *context, int64_t index, int thread)
{
    struct png_raw *raw = context;
    const struct png_stream *stream = &raw->picture->stream;
    const size_t first = (size_t)index * COPY, last = first + COPY;
    (void)thread;
    png_stream_copy(stream, first, last < stream->size ? last : stream->size, raw->joined + first);
}

/* Let the stream be the data of the only IDAT chunk, or a copy of the data of all. */
static bool join_stream(struct png_raw *raw)
{
    struct thread_pool *pool = raw->input->settings->pool;
    const size_t size = raw->picture->stream.size;
    raw->stream = png_stream_data(&raw->picture->stream);
    if (raw->stream != NULL)
        return true;
    raw->stream = raw->joined = malloc(size);
    if (raw->joined != NULL)
        parallel_for(pool, thread_pool_threads(pool), (int64_t)((size - 1) / COPY + 1), copy_piece, raw);
    return raw->joined != NULL;
}

/* ---- The end of the stream ---- */

/* Is the stream whole: is it known, do few bytes follow the rows, and is the checksum right? */
static bool is_whole(struct png_raw *raw)
{
    uint8_t bytes[4096];
    size_t left = png_inflate_spare(raw->picture) + 1, some = sizeof bytes;
    while (some == sizeof bytes && left > 0) {
        some = inflate_parts_next(raw->parts, bytes, left < sizeof bytes ? left : sizeof bytes);
        raw->checksum = libdeflate_adler32(raw->checksum, bytes, some);
        left -= some;
    }
    const size_t end = ZLIB_HEAD + inflate_parts_end(raw->parts);
    return left > 0 && end > ZLIB_HEAD && end + ZLIB_TAIL <= raw->picture->stream.size &&
           big32(raw->stream + end) == raw->checksum;
}

/* Inflate on one thread from here on: at first again what was handed over, to OUT, which has SIZE bytes. */
static bool begin_serially(struct png_raw *raw, uint8_t *out, size_t size, struct error *error)
{
    raw->serial = png_inflate_open(raw->input, raw->picture, raw->size, error);
    if (raw->serial == NULL)
        return false;
    for (size_t left = raw->done, some; left > 0; left -= some) {
        some = left < size ? left : size;
        if (!png_inflate_next(raw->serial, out, some, error))
            return false;
    }
    return true;
}

/* ---- The whole ---- */

size_t png_raw_extra(const struct codec_info *info, const struct codec_settings *settings)
{
    /* A smaller file is inflated before threads have begun. Parts take 1.3 to 3 times the work of one decoder, so they
     * pay only if that keeps other threads waiting. */
    enum { SIZE_MIN = 1 << 19, THREADS_MIN = 4 };
    const int threads = thread_pool_threads(settings->pool);
    const struct inflate_cut cut = inflate_usual_cut(info->size, info->size, threads);
    return threads >= THREADS_MIN && info->size >= SIZE_MIN
               ? sizeof(struct png_raw) + info->size + inflate_parts_need(&cut)
               : 0;
}

/* Begin on several threads, if that is possible and allowed. */
static void begin_parts(struct png_raw *raw)
{
    const struct codec_settings *settings = raw->input->settings;
    const size_t size = raw->picture->stream.size, extra = png_raw_extra(raw->input->info, settings);
    const int threads = thread_pool_threads(settings->pool);
    const struct inflate_cut cut = inflate_usual_cut(size, raw->size, threads);
    if (extra > 0 && extra <= settings->reader_extra && size > ZLIB_HEAD + ZLIB_TAIL && join_stream(raw) &&
        zlib_head_is_known(raw->stream))
        raw->parts = inflate_parts_open(raw->stream + ZLIB_HEAD, size - ZLIB_HEAD, &cut);
}

bool png_raw_open(struct png_raw **opened, const struct codec_input *input, const struct png_picture *picture,
                  size_t size, struct error *error)
{
    struct png_raw *raw = *opened = malloc(sizeof *raw);
    if (raw == NULL)
        return error_no_memory(error, "the decoder");
    *raw = (struct png_raw){.input = input, .picture = picture, .size = size, .checksum = 1};
    begin_parts(raw);
    return raw->parts != NULL || begin_serially(raw, NULL, 0, error);
}

bool png_raw_next(struct png_raw *raw, uint8_t *out, size_t size, struct error *error)
{
    if (raw->serial == NULL) {
        const size_t some = inflate_parts_next(raw->parts, out, size);
        raw->checksum = libdeflate_adler32(raw->checksum, out, some);
        if (some == size && (raw->done + size < raw->size || is_whole(raw))) {
            raw->done += size;
            return true;
        }
        if (!begin_serially(raw, out, size, error))
            return false;
    }
    return png_inflate_next(raw->serial, out, size, error);
}

bool png_raw_takes_help(const struct png_raw *raw)
{
    return raw->parts != NULL;
}

bool png_raw_help(struct png_raw *raw)
{
    return inflate_parts_help(raw->parts);
}

void png_raw_close(struct png_raw *raw)
{
    if (raw == NULL)
        return;
    inflate_parts_free(raw->parts);
    free(raw->serial);
    free(raw->joined);
    free(raw);
}
