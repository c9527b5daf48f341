/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-png`, reading: row by row, or an interlaced file as a whole. */
#include "codec/png_picture.h"

#include "base/parallel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Row by row: fetching inflates rows and their filters; reading undoes the filters and makes samples ---- */

/* Several threads undo the row filters of 8- and 16-bit samples. Each thread has its own rows, and goes from left to
 * right. A row depends on the one above it, so a thread waits with each of these columns until the rows above are
 * undone there. */
enum { COLUMNS = 8, COLUMN_PIXELS_MIN = 64 };

/* Two threads may fetch and read at the same time, so a field is either constant or of one of them. */
struct png_reader {
    struct codec_input input;
    struct png_picture picture;
    size_t row_bytes; /* without the filter */

    struct png_inflater *inflater; /* the fetch uses this field and the next one */
    size_t left;                   /* bytes to fetch */

    /* The read uses the fields from here on. */
    pthread_mutex_t mutex; /* for these */
    pthread_cond_t changed;
    int undone[COLUMNS]; /* rows in each column */
    size_t calls;        /* that have begun */
    uint8_t scratch[];   /* for png_make_samples, or the shared rows */
};

size_t png_reader_need(const struct codec_info *info)
{
    enum { ROWS = 2 * (CODEC_READERS + 1) }; /* at most, of the state */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8;
    return ROWS * row + sizeof(struct png_reader) + png_inflate_need();
}

/* Report an unknown filter. Before, inflate the rest to RAW, which has one row: a damaged stream is reported first, so
 * that the error does not depend on how many rows are fetched at once. */
static bool report_filter(struct png_reader *state, uint8_t *raw, struct error *error)
{
    const size_t raw_bytes = state->row_bytes + 1;
    for (; state->left > 0; state->left -= raw_bytes)
        if (!png_inflate_next(state->inflater, raw, raw_bytes, error))
            return false;
    return codec_report_damaged(&state->input, "unknown row filter", error);
}

static bool fetch_png_rows(void *context, int first, int rows, uint8_t *raw, struct error *error)
{
    struct png_reader *state = ((struct codec_reader *)context)->state;
    const size_t raw_bytes = state->row_bytes + 1, size = (size_t)rows * raw_bytes;
    (void)first;
    if (!png_inflate_next(state->inflater, raw, size, error))
        return false;
    state->left -= size;
    return png_filters_are_known(raw, (size_t)rows, raw_bytes) || report_filter(state, raw, error);
}

static bool help_rows(void *context)
{
    const struct png_reader *state = ((struct codec_reader *)context)->state;
    return png_inflate_help(state->inflater);
}

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    struct png_reader *state = ((struct codec_reader *)context)->state;
    const struct codec_info *info = state->input.info;
    const size_t width = (size_t)info->width, pixel = (size_t)info->channels * (size_t)info->bits / 8;
    (void)first;
    (void)error; /* the fetch has found all errors */
    png_make_samples(&state->picture.layout, raw->data, (size_t)rows, width, state->scratch,
                     (struct png_samples){samples, pixel, width * pixel});
    return true;
}

/* Wait until ROW rows are undone in COLUMN. */
static void wait_for_rows(struct png_reader *state, int column, int row)
{
    pthread_mutex_lock(&state->mutex);
    while (state->undone[column] < row)
        pthread_cond_wait(&state->changed, &state->mutex);
    pthread_mutex_unlock(&state->mutex);
}

/* Record that the filters of ROW rows are undone in COLUMN. */
static void record_rows(struct png_reader *state, int column, int row)
{
    pthread_mutex_lock(&state->mutex);
    state->undone[column] = row;
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->mutex);
}

/* The row that two threads share: the last one of the upper thread, above the first one of the lower thread. Each call
 * has one, which is used again when all threads are done with it. As many bytes for png_unfilter_columns follow. */
static uint8_t *shared_row(struct png_reader *state, size_t call)
{
    return state->scratch + call % (CODEC_READERS + 1) * 2 * state->row_bytes;
}

/* Read rows whose bytes become samples where they are. */
static bool read_columns(void *context, int first, int rows, const struct rows *raw, uint8_t *samples,
                         struct error *error)
{
    struct png_reader *state = ((struct codec_reader *)context)->state;
    const size_t size = state->row_bytes, width = (size_t)state->picture.layout.width, pixel = size / width,
                 count = (size_t)rows;
    (void)error;
    wait_for_rows(state, 0, first);
    uint8_t *above = shared_row(state, state->calls), *below = shared_row(state, ++state->calls);
    for (int i = 0; i < COLUMNS; i++) {
        const size_t from = (size_t)i * width / COLUMNS * pixel, to = ((size_t)i + 1) * width / COLUMNS * pixel;
        const struct png_columns columns = {.size = size, .pixel = pixel, .first = from, .last = to};
        wait_for_rows(state, i, first);
        png_unfilter_columns(raw->data, count, above, &columns, samples, above + size);
        memcpy(below + from, samples + (count - 1) * size + from, to - from);
        record_rows(state, i, first + rows);
    }
    if (state->picture.layout.bits == 16)
        bytes_swap_big16(samples, count * size / 2, samples);
    return true;
}

/* Let several threads read at once, if each can have some columns. */
static void allow_readers(struct png_reader *state, struct row_source *source)
{
    const struct png_layout *layout = &state->picture.layout;
    const int threads = thread_pool_threads(state->input.settings->pool) / 2;
    if (threads < 2 || layout->width < COLUMNS * COLUMN_PIXELS_MIN || layout->bits < 8 || layout->paletted ||
        layout->transparent)
        return;
    source->readers = threads < CODEC_READERS ? threads : CODEC_READERS;
    source->read = read_columns;
}

bool png_reader_open(struct codec_reader *reader, struct error *error)
{
    struct png_picture picture;
    png_picture_read(&reader->input, &picture);
    const struct png_layout *layout = &picture.layout;
    const size_t row_bytes = png_row_bytes(layout, (size_t)layout->width);
    const size_t shared_rows = 2 * (CODEC_READERS + 1) * row_bytes, scratch = png_scratch_bytes(row_bytes);
    struct png_reader *state = calloc(1, sizeof *state + (shared_rows > scratch ? shared_rows : scratch));
    reader->source.raw_bytes = row_bytes + 1;
    reader->source.fetch = fetch_png_rows;
    reader->source.read = read_rows;
    reader->state = state;
    if (state == NULL)
        return error_no_memory(error, "the decoder");
    *state = (struct png_reader){
        .input = reader->input,
        .picture = picture,
        .row_bytes = row_bytes,
        .left = (size_t)layout->height * (row_bytes + 1),
    };
    pthread_mutex_init(&state->mutex, NULL);
    pthread_cond_init(&state->changed, NULL);
    allow_readers(state, &reader->source);
    state->inflater = png_inflate_open(&state->input, &state->picture, state->left, error);
    if (state->inflater == NULL)
        return false;
    reader->source.help = png_inflate_takes_help(state->inflater) ? help_rows : NULL;
    return true;
}

void png_reader_close(struct codec_reader *reader)
{
    struct png_reader *state = reader->state;
    if (state != NULL) {
        png_inflate_close(state->inflater);
        pthread_mutex_destroy(&state->mutex);
        pthread_cond_destroy(&state->changed);
    }
    free(state);
    reader->state = NULL;
}

/* ---- Interlaced files: all passes are inflated at once, and their pixels are put where they belong ---- */

/* The pixels of one pass over an interlaced picture, or all pixels of another picture. */
struct pass {
    size_t x, y;           /* the position of the pass's first pixel in the picture */
    size_t step_x, step_y; /* from one pixel to the next */
    size_t width, height, row_bytes;
};

/* The passes of a picture, and the bytes of all of them, with one byte more in front of each row. */
struct passes {
    struct pass list[7];
    int count;
    size_t bytes;
};

static struct passes list_passes(const struct png_picture *picture)
{
    /* Adam7: the first pixel's x and y, and the steps. */
    static const uint8_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    const size_t width = (size_t)picture->layout.width, height = (size_t)picture->layout.height;
    struct passes passes = {.count = 0};
    for (int i = 0; i < (picture->interlaced ? 7 : 1); i++) {
        struct pass pass = {.step_x = 1, .step_y = 1};
        if (picture->interlaced)
            pass = (struct pass){.x = adam7[i][0], .y = adam7[i][1], .step_x = adam7[i][2], .step_y = adam7[i][3]};
        if (width <= pass.x || height <= pass.y)
            continue;
        pass.width = (width - pass.x - 1) / pass.step_x + 1;
        pass.height = (height - pass.y - 1) / pass.step_y + 1;
        pass.row_bytes = png_row_bytes(&picture->layout, pass.width);
        passes.bytes += pass.height * (pass.row_bytes + 1);
        passes.list[passes.count++] = pass;
    }
    return passes;
}

/* Make IMAGE from the rows of all passes at RAW, after which are png_scratch_bytes of memory. */
static bool read_passes(const struct codec_input *input, const struct png_layout *layout, const struct passes *passes,
                        uint8_t *raw, struct image *image, struct error *error)
{
    uint8_t *scratch = raw + passes->bytes;
    const size_t pixel = image_pixel_bytes(image), row = image_row_bytes(image);
    for (int i = 0; i < passes->count; i++) {
        const struct pass *pass = &passes->list[i];
        const struct png_samples to = {.first = image->samples + pass->y * row + pass->x * pixel,
                                       .step = pass->step_x * pixel,
                                       .stride = pass->step_y * row};
        if (!png_filters_are_known(raw, pass->height, pass->row_bytes + 1))
            return codec_report_damaged(input, "unknown row filter", error);
        memset(scratch, 0, png_scratch_bytes(pass->row_bytes));
        png_make_samples(layout, raw, pass->height, pass->width, scratch, to);
        raw += pass->height * (pass->row_bytes + 1);
    }
    return true;
}

/* Inflate the rows of all passes. They come first in the result, and png_scratch_bytes of memory follow. Release it
 * with free. NULL is an error. */
static uint8_t *inflate_passes(const struct codec_input *input, const struct png_picture *picture, size_t size,
                               struct error *error)
{
    const size_t scratch = png_scratch_bytes(png_row_bytes(&picture->layout, (size_t)picture->layout.width));
    uint8_t *raw = bytes_allocate(size + scratch);
    struct png_inflater *inflater =
        raw != NULL ? png_inflate_open(input, picture, size, error) : (error_no_memory(error, "the rows"), NULL);
    const bool done = inflater != NULL && png_inflate_next(inflater, raw, size, error);
    png_inflate_close(inflater);
    if (done)
        return raw;
    free(raw);
    return NULL;
}

bool png_check_rows(const struct codec_input *input, struct error *error)
{
    struct png_picture picture;
    png_picture_read(input, &picture);
    uint8_t *raw = inflate_passes(input, &picture, list_passes(&picture).bytes, error);
    free(raw);
    return raw != NULL;
}

bool png_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct png_picture picture;
    png_picture_read(input, &picture);
    const struct passes passes = list_passes(&picture);
    uint8_t *raw = inflate_passes(input, &picture, passes.bytes, error);
    const bool done = raw != NULL &&
                      image_allocate(image, info->width, info->height, info->channels, info->bits, error) &&
                      read_passes(input, &picture.layout, &passes, raw, image, error);
    if (!done)
        image_free(image);
    free(raw);
    return done;
}
