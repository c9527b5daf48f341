/* SPDX-License-Identifier: MIT
 *
 * The CPU's variants: the functions of their rows in the table of variants, whose struct variant says what they do. */
#ifndef GPUCONV_CPU_H
#define GPUCONV_CPU_H

#include "base/error.h"
#include "image/image.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

/* Has another thread set STOP, which may be NULL? A launch looks at its plan's before each block of rows. */
static inline bool cpu_is_stopped(const int *stop)
{
    return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

/* Convolve or resize IN to OUT, one sample after the other, as the definitions in filter.h say. It needs no
 * preparation. */
bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error);
bool reference_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                               const struct plane *out, struct error *error);

/* Make the program of PLAN for the machine's best instruction set, or for $GPUCONV_CPU's. plan_free frees it. Fails if
 * there is too little memory, or if the machine lacks that instruction set. */
bool cpu_prepare(struct plan *plan, struct device *device, struct error *error);

/* Convolve IN to OUT by a plan that cpu_prepare has prepared, on the threads of plan->pool. Fails if there is too
 * little memory for the scratch. */
bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error);

/* Prepare and launch a plan that changes the size, as cpu_prepare and cpu_launch do for others. Nothing is prepared if
 * an output has more taps than the loops are worth: the reference then takes less memory, and hardly more time. */
bool cpu_resample_prepare(struct plan *plan, struct device *device, struct error *error);
bool cpu_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                         const struct plane *out, struct error *error);

/* Resize a part of IN to OUT, which have no memory in common, as Image.resize of Pillow does. BOX has its left, upper,
 * right and lower edge in pixels; it changes. REDUCING_GAP is at least 1, or 0 for none. The images have 8 bits, or one
 * channel of 16 bits or floats. The calling thread does the work. */
bool cpu_pillow_resize(enum resample_kernel kernel, double box[4], double reducing_gap, const struct image *in,
                       struct image *out, struct error *error);

/* Move the samples of IN to OUT. This needs no preparation and does not fail. It is the reference, too. */
bool cpu_move_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                     struct error *error);

/* Prepare and launch a plan that changes each pixel by itself. This is the reference, too. */
bool cpu_point_prepare(struct plan *plan, struct device *device, struct error *error);
bool cpu_point_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error);

/* Make squares of their mean. This needs no preparation and does not fail, and is the reference, too. */
bool cpu_squares_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                        struct error *error);

/* Make the samples of ranks: struct rank says which. This needs no preparation. Fails if there is too little memory. */
bool reference_rank_launch(const struct plan *plan, struct device *device, const struct plane *in,
                           const struct plane *out, struct error *error);
bool cpu_rank_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                     struct error *error);

/* Bytes of memory that launches of a filter of ranks need on THREADS threads, at most, besides planes. */
size_t cpu_rank_need(const struct filter *filter, size_t threads);

/* Does cpu_launch make wide planes of such narrow ones? SLIDES says that FILTER is applied by running sums. */
bool cpu_widens_planes(const struct filter *filter, bool slides, int width, int height);

/* Bytes of memory that a filter needs that changes the size by COLUMNS and ROWS, which need no taps, on THREADS
 * threads: for its taps and for its launches, at most. */
size_t cpu_resample_need(const struct resample_axis *columns, const struct resample_axis *rows, size_t threads);

/* Does cpu_launch also take planes of WIDTH that are together, of uint8_t? FILTER is then a box of few taps, or
 * the identity. */
bool cpu_takes_pixels(const struct filter *filter, int width);

/* Does cpu_launch copy planes of WIDTH for FILTER? */
bool cpu_copies_planes(const struct filter *filter, int width);

#endif
