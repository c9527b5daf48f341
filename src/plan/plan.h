/* SPDX-License-Identifier: MIT
 *
 * The plan: everything that is derived from a filter and a border before any sample is touched.
 *
 *     out(y, x) = clamp(round((sum over i, j of q(i, j) * in(y + i - anchor_y, x + j - anchor_x)) / D + O))
 *
 * for planes of uint8_t. Planes of uint16_t take 257 * O instead of O, because their levels are 257 times as fine:
 * 65535 is 257 * 255, so white stays white. Planes of float take O / 255, because white is 1, and are neither clamped
 * nor rounded. Outside the image, the border gives in(). For a filter with two grids, its `combine` of both sums
 * replaces the sum. A filter in two passes has formulas of its own (struct filter); for planes of float its row
 * sums are not rounded. */
#ifndef GPUCONV_PLAN_H
#define GPUCONV_PLAN_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "plan/border.h"
#include "plan/passes.h"
#include "plan/rounding.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;      /* kernels/device/device.h */
struct variant;     /* variants/table.h */
struct thread_pool; /* base/parallel.h */

/* The most taps of the variant sparse. At 8 bytes each, they fill CUDA's 64 KB of constant memory. */
#define SPARSE_MAX 8192

/* A plan points to its filter, which must outlive it. For planes of more than 8 bits this is the filter's
 * `filter16`. */
struct plan {
    const struct filter *filter;
    enum border border;
    enum sample sample;
    const struct variant *variant; /* set by variant_plan, in variants/table.h */
    struct rounding rounding;      /* for planes of uint8_t */
    struct rounding16 rounding16;  /* for planes of uint16_t; there |sums| are below 2^31 * 257 < 2^40 */
    struct root16 root16;          /* for COMBINE_MAGNITUDE and planes of uint16_t */
    struct passes passes;          /* for filters in two passes; only boxes also use the first two */
    float offset;                  /* for planes of float: O / 255 */
    bool float_exact;              /* sums_fit_float for uint8_t */
    bool root_in_float;            /* root_fits_float, for COMBINE_MAGNITUDE */
    int32_t twice_bias;            /* with root_in_float: 2 D (O + 1/2) */
    int tap_count;                 /* taps that are not zero */
    int32_t largest_tap;           /* the largest |q| */
    int shift_x, shift_y;          /* the last tap that is not zero multiplies in(y + shift_y, x + shift_x) */
    struct thread_pool *pool;      /* for variants of the CPU; if NULL, the calling thread only */
    const int *stop;               /* for variants of the CPU: once it is not 0, a launch ends early; or NULL */
    int first_row, last_row;       /* for variants of the CPU: only outputs of the rows from the first to the one before
                                      the last are made; 0, 0: all */

    /* For filters that change the size. The taps are those of one size of pictures, which plan_resize sets. Row 0 of
     * the planes that a launch reads and writes are rows in_row and out_row of the picture before and after. first_row
     * and last_row count from out_row. */
    struct resample_axis columns, rows; /* columns: rows of outputs are made of rows of inputs */
    bool rows_first;                    /* resample_rows_first; otherwise, the taps of columns come first */
    int in_row, out_row;
    struct rectangle needed; /* the part of the result for which taps are made; the whole, if its width is 0 */
    struct origin origin;    /* where the result of a move begins; the axes then have only sizes */

    /* The result of the variant's prepare, and the function that frees it. Both are NULL if there is nothing. The plan
     * owns the result, and launches only read it. */
    void *prepared;
    void (*release)(void *prepared);
};

/* Derive the numbers of PLAN. It has no variant yet; variant_plan sets one. */
void plan_make(struct plan *plan, const struct filter *filter, enum border border, enum sample sample);

/* Let a plan whose filter changes the size, or moves samples, be for a picture of WIDTH x HEIGHT; others stay as they
 * are. What variant_prepare has made of other taps is freed. */
bool plan_resize(struct plan *plan, int width, int height, struct error *error);

/* Likewise, if a decoder has made the picture smaller: the result has the size that a full one would have. */
bool plan_resize_to(struct plan *plan, int width, int height, int new_width, int new_height, struct error *error);

/* Set FILL to the bits of the samples that a plan which moves samples leaves in each of COUNT planes where there is no
 * picture. The planes are all channels of an image: see struct image. With an alpha channel, a colour is opaque, and no
 * colour is transparent black. Without one, no colour is white. Grey is the brightness of the colour as Pillow's mode L
 * has it. */
void plan_fill(const struct plan *plan, int count, uint32_t fill[4]);

/* Free the taps, and the result of variant_prepare. The plan becomes all zeros. A plan of zeros is allowed. */
void plan_free(struct plan *plan);

#ifdef __cplusplus
}
#endif

#endif
