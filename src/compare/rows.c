/* SPDX-License-Identifier: MIT */
#include "compare/rows.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

const char *row_kind_name(enum row_kind kind)
{
    static const char *const names[ROW_KINDS] = {
        [ROW_EQUAL] = "equal",
        [ROW_CHANNELS] = "channels",
        [ROW_TOLERATED] = "tolerated",
        [ROW_DIFFERENT] = "different",
        [ROW_SHAPE] = "shape",
        [ROW_MISSING] = "missing",
        [ROW_NEW] = "new",
        [ROW_UNREADABLE] = "unreadable",
        [ROW_MASK] = "mask",
    };
    return names[kind];
}

struct compare_row *rows_add(struct compare_rows *rows)
{
    struct compare_row *larger = array_grow(rows->rows, rows->count, sizeof *larger);
    if (larger == NULL)
        return NULL;
    rows->rows = larger;
    rows->rows[rows->count] = (struct compare_row){0};
    return &rows->rows[rows->count++];
}

void row_set_problem(struct compare_row *row, const struct error *error)
{
    char text[ERROR_TEXT];
    error_text(error, text, sizeof text);
    free(row->problem);
    row->may_retry = error_may_retry(error->code);
    row->problem = strdup(text); /* without memory the row has its kind, and no sentence */
}

void rows_add_thumbnails(struct compare_rows *rows, struct compare_row *row)
{
    struct compare_row *last = row;
    if (row->thumbnails == NULL)
        return;
    if (row < rows->unshown && ++rows->shown > COMPARE_THUMBNAILS_MAX) {
        do
            last = --rows->unshown;
        while (last->thumbnails == NULL);
        rows->shown--;
    } else if (row < rows->unshown) {
        return;
    }
    thumbnails_free(last->thumbnails);
    last->thumbnails = NULL;
}

void row_free(struct compare_row *row)
{
    free(row->expected.path);
    free(row->actual.path);
    free(row->mask.path);
    free(row->picture);
    free(row->problem);
    thumbnails_free(row->thumbnails);
}

void rows_free(struct compare_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        row_free(&rows->rows[i]);
    free(rows->rows);
    *rows = (struct compare_rows){0};
}
