/* SPDX-License-Identifier: MIT
 *
 * Thin planes: narrower than a vector, or much smaller than the filter in one direction. The variant `cpu` works on
 * rows of vectors, with a halo as wide as the filter. For single columns, nearly all of both would be unused.
 *
 * 1. Taps that meet the same sample wherever the filter stands are joined, so a filter has at most about twice as many
 *    columns as the planes, and as many rows.
 * 2. Narrow planes become wide ones. They are transposed, with the filter, where the order of rows and columns does not
 *    matter. It does for filters in two passes, which round the sums of rows. For them, planes are cut into segments,
 *    each with its halo, side by side.
 *
 * All sums stay the same integers. */
#include "cpu/thin.h"

#include "cpu/cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NARROW = BLOCK_MAX / 2, /* narrower planes leave more than half of the lanes empty */
    TRANSPOSED_ROWS = 64,   /* rows that are transposed at once, so that they stay in a cache */
    SEGMENTS_MAX = 4 * BLOCK_MAX,
    JOINED_MAX = 1 << 30, /* the largest sum of joined taps: that of a parametric filter */
};

/* ---- Filters ---- */

/* The nearest tap at which a filter meets the same samples of SIZE as at D. Taps are counted from the anchor. Above 0
 * the result is below SIZE, unless it is a zero of the border. */
static int equal_tap(int d, int size, enum border border)
{
    if (-size < d && d < size)
        return d;
    if (border == BORDER_REPLICATE || (border == BORDER_REFLECT101 && size == 1))
        return d < 0 ? 1 - size : size - 1;
    if (border == BORDER_ZERO)
        return d < 0 ? -size : size;
    const int period = border == BORDER_WRAP ? size : border == BORDER_REFLECT ? 2 * size : 2 * size - 2;
    const int m = (d % period + period) % period;
    return m < size ? m : m - period;
}

/* Is the filter so wide that joined taps need fewer columns? There are at most 2 SIZE + 1. */
static bool is_far_wider(int taps, int size)
{
    return taps / 2 > size;
}

/* Join the taps of a row of COUNT, whose first one is -ANCHOR. The new row begins with tap LOW. */
static void join_row(int32_t *taps, int count, int anchor, int low, int size, enum border border)
{
    int32_t joined[FILTER_PASS_MAX] = {0};
    for (int j = 0; j < count; j++)
        joined[equal_tap(j - anchor, size, border) - low] += taps[j];
    memcpy(taps, joined, (size_t)count * sizeof *taps);
}

/* Join the columns of a filter for planes of WIDTH. */
static void join_filter_columns(struct filter *f, int width, enum border border)
{
    const int count = f->width, anchor = f->anchor_x, rows = f->two_pass ? 0 : filter_grids(f) * f->height;
    int low = 0, high = 0;
    if (!is_far_wider(count, width) || (f->two_pass && taps_sum(f->row, count) > JOINED_MAX))
        return;
    for (int j = 0; j < count; j++) {
        const int d = equal_tap(j - anchor, width, border);
        low = d < low ? d : low;
        high = d > high ? d : high;
    }
    f->width = high - low + 1;
    f->anchor_x = -low;
    join_row(f->row, count, anchor, low, width, border);
    for (int i = 0; i < rows; i++) {
        join_row(f->taps + i * count, count, anchor, low, width, border);
        memmove(f->taps + i * f->width, f->taps + i * count, (size_t)f->width * sizeof *f->taps);
    }
}

static void swap(int *a, int *b)
{
    const int c = *a;
    *a = *b;
    *b = c;
}

/* Transpose a filter: its rows become columns. SPARE has memory for its taps. */
static void transpose_filter(struct filter *f, int32_t *spare)
{
    const int size = f->width * f->height, grids = f->two_pass ? 0 : filter_grids(f);
    for (int grid = 0; grid < grids; grid++) {
        int32_t *taps = f->taps + grid * size;
        memcpy(spare, taps, (size_t)size * sizeof *taps);
        for (int k = 0; k < size; k++)
            taps[k % f->width * f->height + k / f->width] = spare[k];
    }
    for (int j = 0; j < FILTER_PASS_MAX; j++)
        swap(&f->row[j], &f->column[j]);
    swap(&f->width, &f->height);
    swap(&f->anchor_x, &f->anchor_y);
}

/* ---- Planes ---- */

/* Copy narrow planes, transposed, to wide ones, or BACK. */
static void transpose_planes(const struct plane *narrow, const struct plane *wide, bool back)
{
    const size_t size = sample_bytes(narrow->sample), step = narrow->row_bytes;
    for (int c = 0; c < narrow->count; c++)
        for (int top = 0; top < narrow->height; top += TRANSPOSED_ROWS) {
            const int rows = narrow->height - top < TRANSPOSED_ROWS ? narrow->height - top : TRANSPOSED_ROWS;
            for (int x = 0; x < narrow->width; x++) {
                char *column = (char *)plane_row(narrow, c, top) + (size_t)x * size;
                char *row = (char *)plane_row(wide, c, x) + (size_t)top * size;
                for (int y = 0; y < rows; y++, column += step, row += size)
                    if (size == 1)
                        *(back ? column : row) = *(back ? row : column);
                    else
                        memcpy(back ? column : row, back ? row : column, sizeof(uint16_t));
            }
        }
}

/* Segments of planes, side by side. */
struct segments {
    int count, rows; /* the number of segments, and the rows of outputs in one segment */
    int columns;     /* columns of one segment, with its halo */
};

/* The number of segments for which the fewest blocks are done. */
static struct segments choose_segments(const struct filter *f, int width, int rows)
{
    struct segments best = {0};
    int64_t min = INT64_MAX;
    for (int count = 1; count <= SEGMENTS_MAX && count <= rows; count++) {
        const struct segments s = {count, (rows + count - 1) / count, width + f->width - 1};
        const int64_t blocks = (int64_t)(s.rows + f->height - 1) * ((count * s.columns + BLOCK_MAX - 1) / BLOCK_MAX);
        if (blocks < min)
            best = s;
        min = blocks < min ? blocks : min;
    }
    return best;
}

/* Copy samples of ROW from the COUNT columns XS, where -1 stands for zero. */
#define PICK(type)                                                                                                     \
    for (int i = 0; i < count; i++)                                                                                    \
        ((type *)to)[i] = xs[i] < 0 ? 0 : ((const type *)row)[xs[i]];

static void pick_samples(enum sample sample, const void *row, const int *xs, int count, void *to)
{
    if (sample == SAMPLE_U8)
        PICK(uint8_t)
    else
        PICK(uint16_t)
}

/* Copy planes to segments TO, with what stands outside the image. */
static void cut_planes(const struct plan *plan, const struct plane *in, const struct segments *s, int first_row,
                       const struct plane *to)
{
    const struct filter *f = plan->filter;
    const size_t segment_bytes = (size_t)s->columns * sample_bytes(in->sample);
    int xs[NARROW + FILTER_PASS_MAX];
    for (int i = 0; i < s->columns; i++)
        xs[i] = border_index(i - f->anchor_x, in->width, plan->border);
    for (int c = 0; c < in->count; c++)
        for (int row = 0; row < to->height; row++) {
            char *segment = plane_row(to, c, row);
            for (int k = 0; k < s->count; k++, segment += segment_bytes) {
                const int y = border_index(first_row + k * s->rows + row - f->anchor_y, in->height, plan->border);
                if (y < 0)
                    memset(segment, 0, segment_bytes);
                else
                    pick_samples(in->sample, plane_row(in, c, y), xs, s->columns, segment);
            }
        }
}

/* Copy the outputs of segments FROM to the rows of OUT from FIRST_ROW on. */
static void join_segments(const struct filter *f, const struct plane *from, const struct segments *s, int first_row,
                          int last_row, const struct plane *out)
{
    const size_t size = sample_bytes(out->sample);
    assert(s->rows > 0);
    for (int c = 0; c < out->count; c++)
        for (int y = first_row; y < last_row; y++) {
            const int k = (y - first_row) / s->rows, row = (y - first_row) % s->rows + f->anchor_y;
            memcpy(plane_row(out, c, y),
                   (char *)plane_row(from, c, row) + (size_t)(k * s->columns + f->anchor_x) * size,
                   (size_t)out->width * size);
        }
}

/* ---- The launch ---- */

/* A plan of its own, for thin planes. */
struct thin {
    struct plan plan;
    struct filter filter;
    struct plane in, out;
    int32_t spare[FILTER_MAX * FILTER_MAX];
};

static bool launch_on_transposed(struct thin *thin, const struct plane *in, const struct plane *out,
                                 plane_launcher *launch, struct error *error)
{
    const int first_row = thin->plan.first_row, last_row = thin->plan.last_row;
    thin->plan.first_row = thin->plan.last_row = 0; /* all */
    if (!plane_allocate(&thin->in, in->sample, in->height, in->width, in->count, error) ||
        !plane_allocate(&thin->out, in->sample, in->height, in->width, in->count, error))
        return false;
    transpose_planes(in, &thin->in, false);
    if (!launch(&thin->plan, &thin->in, &thin->out, error))
        return false;
    struct plane rows = *out, columns = thin->out;
    rows.data = plane_row(out, 0, first_row);
    rows.height = last_row - first_row;
    columns.data = (char *)columns.data + (size_t)first_row * sample_bytes(in->sample);
    transpose_planes(&rows, &columns, true);
    return true;
}

static bool launch_segments(struct thin *thin, const struct plane *in, const struct plane *out, plane_launcher *launch,
                            struct error *error)
{
    struct plan *plan = &thin->plan;
    const int first_row = plan->first_row, last_row = plan->last_row;
    const struct filter *f = plan->filter;
    const struct segments s = choose_segments(f, in->width, last_row - first_row);
    const int width = s.count * s.columns, height = s.rows + f->height - 1;
    plan->first_row = f->anchor_y;
    plan->last_row = f->anchor_y + s.rows;
    if (!plane_allocate(&thin->in, in->sample, width, height, in->count, error) ||
        !plane_allocate(&thin->out, in->sample, width, height, in->count, error))
        return false;
    cut_planes(plan, in, &s, first_row, &thin->in);
    if (!launch(plan, &thin->in, &thin->out, error))
        return false;
    join_segments(f, &thin->out, &s, first_row, last_row, out);
    return true;
}

bool cpu_widens_planes(const struct filter *filter, bool slides, int width, int height)
{
    return height >= TRANSPOSED_ROWS && height / 2 > width && (width < NARROW || (slides && width < filter->width));
}

bool cpu_copies_planes(const struct filter *filter, int width)
{
    return width < NARROW || width < filter->width;
}

bool thin_launch(const struct plan *plan, const struct plane *in, const struct plane *out, plane_launcher *launch,
                 struct error *error)
{
    const struct program *program = plan->prepared;
    const struct filter *f = plan->filter;
    const bool slides = program->is_window || program->is_wide_window, joins = !slides && !program->is_shift;
    const bool is_narrow = cpu_widens_planes(f, slides, in->width, in->height);
    const bool is_far = joins && (is_far_wider(f->width, in->width) || is_far_wider(f->height, in->height));
    if (plan->sample == SAMPLE_F32 || !(is_narrow || is_far))
        return launch(plan, in, out, error);

    struct thin *thin = calloc(1, sizeof *thin);
    if (thin == NULL)
        return error_no_memory(error, "the filter %s", f->name);
    thin->filter = *f;
    thin->filter.filter16 = NULL;
    const bool transposes = is_narrow && (!f->two_pass || slides);
    if (joins)
        join_filter_columns(&thin->filter, in->width, plan->border);
    transpose_filter(&thin->filter, thin->spare);
    if (joins)
        join_filter_columns(&thin->filter, in->height, plan->border);
    if (!transposes)
        transpose_filter(&thin->filter, thin->spare);
    plan_make(&thin->plan, &thin->filter, plan->border, plan->sample);
    thin->plan.pool = plan->pool;
    thin->plan.stop = plan->stop;
    thin->plan.first_row = plan->last_row > 0 ? plan->first_row : 0;
    thin->plan.last_row = plan->last_row > 0 ? plan->last_row : in->height;
    thin->plan.prepared = program_make(&thin->plan, program->loops);
    bool done = thin->plan.prepared != NULL || error_no_memory(error, "the filter %s", f->name);
    if (done)
        done = transposes  ? launch_on_transposed(thin, in, out, launch, error)
               : is_narrow ? launch_segments(thin, in, out, launch, error)
                           : launch(&thin->plan, in, out, error);
    program_free(thin->plan.prepared);
    plane_free(&thin->in);
    plane_free(&thin->out);
    free(thin);
    return done;
}
