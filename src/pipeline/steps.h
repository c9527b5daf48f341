/* SPDX-License-Identifier: MIT
 *
 * The kinds of steps, as the pipeline runs them. */
#ifndef GPUCONV_STEPS_H
#define GPUCONV_STEPS_H

#include "filter/filter.h"
#include "image/image.h"
#include "image/stream.h"

#include <stdbool.h>
#include <stddef.h>

/* A filter of a chain: what it reads, and how far it reaches. */
struct stage {
    const struct step *step; /* NULL after the last filter */
    const struct filter *filter;
    struct image shape; /* of what it reads */
    int halo;           /* rows above or below; the same number serves both, as borders that reflect swap them */
    struct resample_axis columns, rows; /* of a step that resizes; without taps */
    struct placement place;             /* of a step that moves */
    bool takes_pixels; /* the CPU's variants take the channels of a pixel side by side, too: planes that are together */
    bool is_whole;     /* any row of the result may need any row of what it reads */
};

struct step {
    bool resizes;      /* the result is another image: it keeps none in its place, and has a plan of one size */
    bool repeats_edge; /* it takes the edge of the picture for what stands outside, whatever the border is */
    bool moves;        /* it changes no sample: neither alpha nor light matters */
    bool has_border;   /* it reads what stands outside the image */
    int rows;          /* the CPU makes a multiple of so many rows at once */

    /* Set how far STAGE, whose filter and shape are set, reaches for a result of WIDTH x HEIGHT. */
    void (*reach)(struct stage *stage, int width, int height, bool is_16_bit);

    /* The rows that it reads for the rows SPAN of its result. */
    struct row_span (*needs)(const struct stage *stage, struct row_span span);

    /* Bytes that the CPU needs for it on THREADS threads, besides planes of PLANE_BYTES: while it runs, or until the
     * image is done if it resizes. NULL if it needs none. */
    size_t (*need)(const struct stage *stage, size_t threads, size_t plane_bytes);
};

/* The rows of the table, by enum step_kind. */
extern const struct step step_table[STEP_KINDS];

#endif
