/* SPDX-License-Identifier: MIT
 *
 * The kinds of steps, as the pipeline runs them. */
#ifndef GPUCONV_STEPS_H
#define GPUCONV_STEPS_H

#include "filter/filter.h"
#include "image/image.h"
#include "image/stream.h"
#include "plan/border.h"

#include <stdbool.h>
#include <stddef.h>

/* A filter of a chain: what it reads, and how far it reaches. */
struct stage {
    const struct step *step; /* NULL after the last filter */
    const struct kind_of_step *kind;
    const struct filter *filter;
    struct image shape; /* the image that the step reads; its samples do not matter */
    int halo;           /* rows above or below; one number serves both, as borders that reflect swap them */
    struct resample_axis columns, rows; /* a step that resizes: its axes, without taps */
    struct origin origin;               /* a step that moves: where its result begins */
    bool takes_pixels; /* the CPU's variants take the channels of a pixel side by side, too: planes that are together */
    bool is_limited;   /* to a region */
    struct rectangle region;
    bool is_whole; /* any row of the result may need any row of what it reads */
};

struct step {
    /* Does FILTER change each pixel by itself, all alike? A GPU does several such steps in one launch, also on the way
     * to planes and back. NULL if none of the kind does. */
    bool (*fuses)(const struct filter *filter);

    int rows; /* the CPU makes a multiple of this number of rows at once */

    /* Set how far STAGE, whose filter and shape are set, reaches for a result of WIDTH x HEIGHT. NULL if it does not:
     * each row of the result needs only its own. */
    void (*reach)(struct stage *stage, int width, int height, bool is_16_bit);

    /* The rows that it reads for the rows SPAN of its result. A step whose rows need only their own has add_halo, with
     * a halo of 0. */
    struct row_span (*needs)(const struct stage *stage, struct row_span span);

    /* Bytes that the CPU needs for it on THREADS threads, besides planes of PLANE_BYTES: while it runs, or until the
     * image is done if it resizes. NULL if it needs none. */
    size_t (*need)(const struct stage *stage, size_t threads, size_t plane_bytes);

    /* How FILTER, as it is for 16 bits, treats alpha if the recipe has ALPHA and BORDER: see recipe_alpha, and the
     * modes in image.h. ALPHA_PREMULTIPLY and ALPHA_HEADROOM take planes of 16 bits. */
    enum alpha (*alpha)(const struct filter *filter, enum border border, enum alpha alpha);
};

/* The rows of the table, by enum step_kind. */
extern const struct step step_table[STEP_KINDS];

static inline bool step_fuses(const struct filter *filter)
{
    return step_table[filter->kind].fuses != NULL && step_table[filter->kind].fuses(filter);
}

#endif
