/* SPDX-License-Identifier: MIT
 *
 * The table of variants. A variant is one named way to convolve planes. Its name is also the name of its file and of
 * its row in the README. */
#ifndef GPUCONV_TABLE_H
#define GPUCONV_TABLE_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>

struct device;
struct work;

enum backend { BACKEND_CPU, BACKEND_CUDA };

/* Which filters a variant accepts. */
enum accepts {
    ACCEPTS_ALL,
    ACCEPTS_ONE_GRID,   /* filters with one grid; the next three accept some of these */
    ACCEPTS_RANK_1,     /* separable filters: a column times a row */
    ACCEPTS_SHIFT,      /* filters that move the picture and change no sample, the identity included */
    ACCEPTS_FEW_TAPS,   /* filters with at most SPARSE_MAX taps that are not zero */
    ACCEPTS_TWO_GRIDS,  /* filters with two grids */
    ACCEPTS_BOXES,      /* filters whose taps are all 1 */
    ACCEPTS_BLURS,      /* filters in two passes that are no boxes */
    ACCEPTS_TWO_PASSES, /* all filters in two passes */
    ACCEPTS_NONE,       /* no convolutions: the variant changes the size */
};

/* The arithmetic of most of a variant's sums of uint8_t samples. Its peak rate bounds the variant. Sums of float
 * samples use UNIT_FMA; those of a variant with UNIT_TENSOR are products of halves. */
enum unit {
    UNIT_FMA,    /* multiply-adds of float or int32_t */
    UNIT_DP4A,   /* products of four pairs of bytes */
    UNIT_TENSOR, /* the tensor cores' products of matrices of bytes */
};

/* What a variant does of one kind of step. All is 0 for a kind that it does not take. */
struct variant_step {
    unsigned samples; /* bit SAMPLE_U8, _U16 or _F32 is set for each sample type that it accepts */

    /* The expected seconds, for planes that are already in the variant's memory. Set for the canonical rows, which
     * return the reference's bytes for every filter. The automatic choice picks among these. NULL for the others. */
    double (*seconds)(const struct filter *filter, const struct work *work);

    /* Prepare launches of PLAN. Not timed. NULL if there is nothing to prepare. On the CPU this is called once for a
     * plan and leaves its result in plan->prepared; a second call does nothing. On a device it uploads the taps to
     * constant memory. All streams share that memory, so prepare is called before the launches of each image. */
    bool (*prepare)(struct plan *plan, struct device *device, struct error *error);

    /* Filter all planes of IN into those of OUT: two buffers that do not overlap, of the shape before the step and the
     * one after it. DEVICE is NULL on the CPU. On a device this queues the work on the device's stream, and the next
     * synchronisation reports errors of the kernels. NULL in a build without CUDA, and if the variant is left out. */
    bool (*launch)(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                   struct error *error);
};

/* A row of the table. */
struct variant {
    const char *name;
    const char *summary; /* one line */
    enum backend backend;
    bool is_reference; /* true for one row; tests compare all others with it */
    struct variant_step steps[STEP_KINDS];
    enum accepts accepts; /* the convolutions that it takes */
    bool takes_halves;    /* floats may also be stored as STORED_HALF and STORED_BFLOAT16 */
    unsigned two_pass;    /* bits as of variant_step's samples, for filters in two passes */
    int capability;       /* the least compute capability, times 10; 0 on the CPU */
    enum unit unit;       /* for the benchmark */
};

/* All variants, in the order of --list-variants. *COUNT is set to their number. */
const struct variant *variants(size_t *count);

/* The variant that all others are checked against. Every build has it. */
const struct variant *variant_reference(void);

/* The variant with that name. Fails with the nearest name in the message. */
const struct variant *variant_find(const char *name, struct error *error);

/* Does the variant accept this filter, and planes of this sample type? If the filter has a filter16, the one for
 * the type counts. Also true if this build lacks the variant. */
bool variant_accepts(const struct variant *variant, const struct filter *filter, enum sample sample);

/* The sample types that the variant accepts for some kind of step: bits as of variant_step's samples. */
unsigned variant_samples(const struct variant *variant);

/* Does this build have the variant? */
bool variant_is_built(const struct variant *variant);

/* Does it return the reference's bytes for every filter that it accepts? */
bool variant_is_canonical(const struct variant *variant);

/* The word for BACKEND in options and results. */
const char *backend_name(enum backend backend);

/* The filters that a variant accepts, in two words. */
const char *accepts_name(enum accepts accepts);

/* Make a plan for VARIANT. Fails if the variant does not accept the filter or the sample type, or if this build does
 * not have the variant. Free the plan with plan_free. */
bool variant_plan(struct plan *plan, const struct filter *filter, enum border border, enum sample sample,
                  const struct variant *variant, struct error *error);

/* Call the variant's prepare, if it has one. Call this before the first launch. DEVICE is NULL on the CPU. */
bool variant_prepare(struct plan *plan, struct device *device, struct error *error);

/* Call the variant's launch. */
bool variant_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                    struct error *error);

/* The largest allowed difference between an output of the plan's variant and the reference's. For planes of uint8_t and
 * uint16_t it is 0 if the variant is canonical or its sums are exact in float, and one level otherwise. For planes of
 * float with samples from 0 to 1 it is the usual bound of a sum that is rounded at every step. */
double variant_tolerance(const struct plan *plan);

#endif
