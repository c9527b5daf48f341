/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-png`, reading row by row. Fetching inflates rows and their filters; reading undoes the filters
 * and makes samples. Interlaced files are read in png_read.c. */
#include "codec/codec_internal.h"

#include "codec/png_picture.h"

#include <stdlib.h>

/* Two threads may fetch and read at the same time, so a field is either constant or of one of them. */
struct png_reader {
    struct codec_input input;
    struct png_picture picture;
    size_t row_bytes; /* without the filter */

    struct png_inflater *inflater; /* of the fetch, as the next field */
    size_t left;                   /* bytes to fetch */

    uint8_t scratch[]; /* of the read */
};

size_t png_reader_need(const struct codec_info *info)
{
    enum { ROWS = 4 }; /* at most, of the state */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8;
    return ROWS * row + sizeof(struct png_reader) + png_inflate_need(info);
}

/* Report an unknown filter. Before, inflate the rest to RAW, which has one row: a damaged stream is reported first, so that
 * the error does not depend on how many rows are fetched at once. */
static bool report_filter(struct png_reader *state, uint8_t *raw, struct error *error)
{
    const size_t raw_bytes = state->row_bytes + 1;
    for (; state->left > 0; state->left -= raw_bytes)
        if (!png_inflate_next(state->inflater, raw, raw_bytes, error))
            return false;
    return codec_report_damaged(&state->input, "unknown row filter", error);
}

static bool fetch_rows(void *context, int first, int rows, uint8_t *raw, struct error *error)
{
    struct png_reader *state = ((struct codec_reader *)context)->state;
    const size_t raw_bytes = state->row_bytes + 1, size = (size_t)rows * raw_bytes;
    (void)first;
    if (!png_inflate_next(state->inflater, raw, size, error))
        return false;
    state->left -= size;
    return png_filters_are_known(raw, (size_t)rows, raw_bytes) || report_filter(state, raw, error);
}

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    struct png_reader *state = ((struct codec_reader *)context)->state;
    const struct codec_info *info = state->input.info;
    const size_t width = state->picture.width, pixel = (size_t)info->channels * (size_t)info->bits / 8;
    (void)first;
    (void)error; /* the fetch has found all errors */
    png_make_samples(&state->picture, raw->data, (size_t)rows, width, state->scratch, samples, pixel, width * pixel);
    return true;
}

bool png_reader_open(struct codec_reader *reader, struct error *error)
{
    struct png_picture picture;
    png_picture_read(&reader->input, &picture);
    const size_t row_bytes = png_row_bytes(&picture, picture.width);
    struct png_reader *state = calloc(1, sizeof *state + png_scratch_bytes(row_bytes));
    reader->source.raw_bytes = row_bytes + 1;
    reader->source.fetch = fetch_rows;
    reader->source.read = read_rows;
    reader->state = state;
    if (state == NULL)
        return codec_report_decode_memory(&reader->input, error);
    *state = (struct png_reader){
        .input = reader->input,
        .picture = picture,
        .row_bytes = row_bytes,
        .left = picture.height * (row_bytes + 1),
    };
    state->inflater = png_inflate_open(&state->input, &state->picture, state->left, error);
    return state->inflater != NULL;
}

void png_reader_close(struct codec_reader *reader)
{
    struct png_reader *state = reader->state;
    if (state != NULL)
        free(state->inflater);
    free(state);
    reader->state = NULL;
}
