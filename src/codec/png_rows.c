/* SPDX-License-Identifier: MIT
 *
 * The codec `libdeflate`, reading row by row. Fetching inflates rows and their filters; reading undoes the filters and
 * makes samples. Interlaced files are read in png_read.c. */
#include "codec/codec_internal.h"

#include "codec/png_filter.h"
#include "codec/png_picture.h"

#include <stdlib.h>
#include <string.h>

/* Two threads may fetch and read at the same time, so a field is either constant or of one of them. */
struct png_reader {
    struct codec_input input;
    struct png_picture picture;
    size_t row_bytes; /* without the filter */

    struct png_inflater *inflater; /* of the fetch, as the next field */
    size_t left;                   /* bytes to fetch */

    uint8_t *above; /* of the read: the row above the next one; NULL before the first */
    uint8_t last[]; /* its memory */
};

bool png_reader_open(struct codec_reader *reader, struct error *error)
{
    struct png_picture picture;
    png_picture_read(&reader->input, &picture);
    const size_t row_bytes = png_row_bytes(&picture, picture.width);
    struct png_reader *state = malloc(sizeof *state + row_bytes);
    reader->raw_bytes = row_bytes + 1;
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

/* Is there an unknown filter? Then inflate the rest, which RAW need not hold: a damaged stream is reported first, so
 * that the error does not depend on how many rows are fetched at once. */
static bool check_filters(struct png_reader *state, int rows, uint8_t *raw, struct error *error)
{
    const size_t raw_bytes = state->row_bytes + 1;
    for (int y = 0; y < rows; y++) {
        if (raw[(size_t)y * raw_bytes] < PNG_FILTERS)
            continue;
        for (; state->left > 0; state->left -= raw_bytes)
            if (!png_inflate_next(state->inflater, raw, raw_bytes, error))
                return false;
        return codec_report_damaged(&state->input, "unknown row filter", error);
    }
    return true;
}

bool png_reader_fetch(struct codec_reader *reader, int rows, uint8_t *raw, struct error *error)
{
    struct png_reader *state = reader->state;
    const size_t size = (size_t)rows * reader->raw_bytes;
    if (!png_inflate_next(state->inflater, raw, size, error))
        return false;
    state->left -= size;
    return check_filters(state, rows, raw, error);
}

bool png_reader_read(struct codec_reader *reader, int rows, uint8_t *raw, uint8_t *samples, struct error *error)
{
    struct png_reader *state = reader->state;
    const struct codec_info *info = state->input.info;
    const size_t pixel = (size_t)info->channels * (size_t)info->bits / 8, size = state->row_bytes;
    const uint8_t *above = state->above;
    uint8_t *row = raw + 1;
    (void)error; /* the fetch has found all errors */
    for (int y = 0; y < rows; y++, row += size + 1, samples += pixel * state->picture.width) {
        png_unfilter_row(&state->picture, row, above, size);
        png_expand_row(&state->picture, row, state->picture.width, samples, pixel);
        above = row;
    }
    if (rows > 0)
        state->above = memcpy(state->last, above, size);
    return true;
}

void png_reader_close(struct codec_reader *reader)
{
    struct png_reader *state = reader->state;
    if (state != NULL)
        png_inflate_close(state->inflater);
    free(state);
    reader->state = NULL;
}
