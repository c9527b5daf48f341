/* SPDX-License-Identifier: MIT */
#include "pipeline/steps.h"

#include "cpu/cpu.h"
#include "plan/rank.h"

/* ---- Convolve ---- */

static int find_halo(const struct filter *filter)
{
    const int above = filter->anchor_y, below = filter->height - 1 - above;
    return above > below ? above : below;
}

static void reach_halo(struct stage *stage, int width, int height, bool is_16_bit)
{
    (void)height;
    stage->halo = find_halo(stage->filter);
    stage->takes_pixels = !is_16_bit && stage->shape.channels > 1 && cpu_takes_pixels(stage->filter, width);
}

/* SPAN with the halo, as far as the image has it; or all of it. */
static struct row_span add_halo(const struct stage *stage, struct row_span span)
{
    const int height = stage->shape.height;
    if (stage->is_whole)
        return (struct row_span){0, height};
    return (struct row_span){span.first > stage->halo ? span.first - stage->halo : 0,
                             height - span.last > stage->halo ? span.last + stage->halo : height};
}

/* The copies have halos. */
static size_t need_copies(const struct stage *stage, size_t threads, size_t plane_bytes)
{
    return cpu_copies_planes(stage->filter, stage->shape.width) ? threads * 6 * plane_bytes : 0;
}

static enum alpha find_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    const bool alone = filter->width == 1 && filter->height == 1;
    if (alpha != ALPHA_PREMULTIPLY)
        return alpha;
    if (filter_is_shift(filter) && (alone || border != BORDER_ZERO)) /* moves pixels, also hidden colours */
        return ALPHA_FILTER;
    if (filter_grids(filter) > 1 || filter->tap_sum != filter->scale || filter->offset_numerator != 0 ||
        filter->absolute || border == BORDER_ZERO)
        return ALPHA_BLACK;
    return filter->absolute_sum == filter->tap_sum ? ALPHA_PREMULTIPLY : ALPHA_HEADROOM;
}

/* ---- Resize ---- */

static void reach_axes(struct stage *stage, int width, int height, bool is_16_bit)
{
    const enum resample_kernel kernel = stage->filter->resize.kernel;
    const int bits = is_16_bit ? 16 : 8;
    stage->takes_pixels = true;
    resample_shape(&stage->columns, kernel, stage->shape.height, height, bits);
    resample_shape(&stage->rows, kernel, stage->shape.width, width, bits);
}

static struct row_span find_inputs(const struct stage *stage, struct row_span span)
{
    resample_span(&stage->columns, span.first, span.last, &span.first, &span.last);
    return span;
}

static size_t need_taps(const struct stage *stage, size_t threads, size_t plane_bytes)
{
    (void)plane_bytes;
    return cpu_resample_need(&stage->columns, &stage->rows, threads);
}

/* Weights of both signs overshoot. The kernel `nearest` copies pixels. */
static enum alpha find_resize_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    (void)border;
    const enum resample_kernel kernel = filter->resize.kernel;
    return alpha != ALPHA_PREMULTIPLY || kernel == RESAMPLE_NEAREST ? ALPHA_FILTER
           : !resample_is_pillow(kernel) ? kernel >= RESAMPLE_TRIANGLE ? ALPHA_PREMULTIPLY : ALPHA_HEADROOM
           : pillow_formula(kernel) == RESAMPLE_PILLOW_NEAREST ? ALPHA_FILTER
                                                               : ALPHA_PILLOW;
}

/* ---- Move ---- */

static void reach_rows(struct stage *stage, int width, int height, bool is_16_bit)
{
    (void)width, (void)height, (void)is_16_bit;
    stage->origin = filter_origin(stage->filter, stage->shape.width, stage->shape.height);
    stage->is_whole |= stage->filter->move.orientation > 2;
}

/* Where the result has no row of the image, it needs the nearest one, so that all spans have a row and are in order. */
static struct row_span find_rows(const struct stage *stage, struct row_span span)
{
    const int height = stage->shape.height, first = span.first + stage->origin.y, last = span.last + stage->origin.y;
    if (stage->is_whole)
        return (struct row_span){0, height};
    return (struct row_span){first < 0        ? 0
                             : first < height ? first
                                              : height - 1,
                             last < 1        ? 1
                             : last < height ? last
                                             : height};
}

static enum alpha move_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    (void)filter, (void)border, (void)alpha;
    return ALPHA_FILTER;
}

/* ---- Point ---- */

/* A region leaves some pixels, and automatic levels depend on all. */
static bool is_fixed(const struct filter *filter)
{
    return !filter->region.is_set && filter->point.automatic == AUTOMATIC_NONE;
}

/* Pixels whose colours change alike, or of grey, are a row of samples. */
static void reach_pixel(struct stage *stage, int width, int height, bool is_16_bit)
{
    (void)width, (void)height, (void)is_16_bit;
    stage->is_whole |= stage->filter->point.automatic != AUTOMATIC_NONE;
    stage->takes_pixels = filter_is_flat(stage->filter, stage->shape.channels, stage->shape.bits);
}

/* Automatic levels have the counts of each thread, and tables of their own. */
static size_t need_counts(const struct stage *stage, size_t threads, size_t plane_bytes)
{
    (void)plane_bytes;
    return stage->filter->point.automatic != AUTOMATIC_NONE ? (threads + 1) * 3 * 65536 * sizeof(uint64_t) : 0;
}

/* Colours change as they are, whatever alpha is. */
static enum alpha find_point_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    (void)border;
    return alpha == ALPHA_FILTER || filter_uses_alpha(filter) ? ALPHA_FILTER : ALPHA_KEEP;
}

/* ---- Pixelate ---- */

/* SPAN with all rows of its squares. */
static struct row_span add_squares(const struct stage *stage, struct row_span span)
{
    const int side = stage->filter->square, last = (span.last + side - 1) / side * side;
    return (struct row_span){span.first / side * side, last < stage->shape.height ? last : stage->shape.height};
}

/* A mean is that of a box. */
static enum alpha find_square_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    (void)filter, (void)border;
    return alpha;
}

/* ---- Rank ---- */

static void reach_window(struct stage *stage, int width, int height, bool is_16_bit)
{
    (void)width, (void)height, (void)is_16_bit;
    stage->halo = find_halo(stage->filter);
    stage->takes_pixels = true;
}

/* The scratch of a pass, and the result of the first of two passes. */
static size_t need_pass(const struct stage *stage, size_t threads, size_t plane_bytes)
{
    return cpu_rank_need(stage->filter, threads) + (stage->filter->rank.form == RANK_ONE ? 0 : threads * plane_bytes);
}

/* Each sample of a pixel has its own rank. Where colours are multiplied by alpha, none is above it, and so is none
 * above the alpha of the same rank. A difference of alphas would be 0 in an opaque picture, and
 * alpha is 0 outside with the border zero. */
static enum alpha find_rank_alpha(const struct filter *filter, enum border border, enum alpha alpha)
{
    const bool keeps_alpha = rank_subtracts(&filter->rank) || border == BORDER_ZERO;
    return alpha == ALPHA_PREMULTIPLY && keeps_alpha ? ALPHA_BLACK : alpha;
}

/* ---- The table ---- */

const struct step step_table[STEP_KINDS] = {
    [STEP_CONVOLVE] = {.rows = 1, .reach = reach_halo, .needs = add_halo, .need = need_copies, .alpha = find_alpha},
    [STEP_RESIZE] =
        {.rows = 16, .reach = reach_axes, .needs = find_inputs, .need = need_taps, .alpha = find_resize_alpha},
    [STEP_MOVE] = {.rows = 1, .reach = reach_rows, .needs = find_rows, .alpha = move_alpha},
    [STEP_PIXELATE] = {.rows = 1, .needs = add_squares, .alpha = find_square_alpha},
    [STEP_RANK] = {.rows = 1, .reach = reach_window, .needs = add_halo, .need = need_pass, .alpha = find_rank_alpha},
    [STEP_POINT] = {.fuses = is_fixed,
                    .rows = 1,
                    .reach = reach_pixel,
                    .needs = add_halo,
                    .need = need_counts,
                    .alpha = find_point_alpha},
};
