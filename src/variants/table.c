/* SPDX-License-Identifier: MIT
 *
 * The table of variants, from the simplest to the fastest. A variant is named here, in its file, and in its line of
 * meson.build. --list-variants, the automatic choice, check_variants and the benchmark walk this table. */
#include "variants/table.h"

#include "cpu/cpu.h"
#include "variants/cost_model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef bool prepare_function(struct plan *plan, struct device *device, struct error *error);
typedef bool launch_function(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error);

launch_function basic_launch, constant_launch, coarsened_launch, tiled_input_launch, tiled_output_launch,
    tiled_cached_launch, texture_launch, register_tiled_launch, separable_launch, tensor_core_launch, sparse_launch,
    blur_launch, running_sums_launch, passes_launch, copy_launch, move_launch, resample_launch, gradient_launch,
    point_launch, pixelate_launch, rank_launch;
prepare_function basic_prepare, constant_prepare, coarsened_prepare, tiled_input_prepare, tiled_output_prepare,
    tiled_cached_prepare, texture_prepare, register_tiled_prepare, separable_prepare, tensor_core_prepare,
    sparse_prepare, blur_prepare, running_sums_prepare, passes_prepare, copy_prepare, resample_prepare,
    gradient_prepare, point_prepare, rank_prepare;

/* A function of a CUDA row; NULL in a build without CUDA. Tests that replace the GPU by a stub define the macro, so
 * that all rows call one function of the stub. */
#ifdef CUDA_FUNCTION
launch_function CUDA_FUNCTION(any, launch);
prepare_function CUDA_FUNCTION(any, prepare);
#elif defined GPUCONV_CUDA
#define CUDA_FUNCTION(variant, step) variant##_##step
#else
#define CUDA_FUNCTION(variant, step) NULL
#endif

#define U8 (1u << SAMPLE_U8)
#define U16 (1u << SAMPLE_U16)
#define F32 (1u << SAMPLE_F32)

/* A CUDA row's step of a KIND, for SAMPLES, with its COST and the functions of VARIANT. */
#define ON_CUDA(kind, bits, cost, variant)                                                                             \
    .backend = BACKEND_CUDA, .capability = 75,                                                                         \
    .steps = {[kind] = {bits, cost, CUDA_FUNCTION(variant, prepare), CUDA_FUNCTION(variant, launch)}}

/* A row whose sums are floats, as in textbooks. */
#define TEXTBOOK(text, variant, line)                                                                                  \
    {                                                                                                                  \
        .name = text, .summary = line, .accepts = ACCEPTS_ONE_GRID, ON_CUDA(STEP_CONVOLVE, U8 | F32, NULL, variant),   \
    }

static const struct variant table[] = {
    {
        .name = "reference",
        .summary = "four loops, exact sums: the truth for all others",
        .backend = BACKEND_CPU,
        .is_reference = true,
        .accepts = ACCEPTS_ALL,
        .two_pass = U8 | U16 | F32,
        .steps = {[STEP_CONVOLVE] = {U8 | U16 | F32, reference_cost, NULL, reference_launch},
                  [STEP_RESIZE] = {U8 | U16 | F32, reference_resample_cost, NULL, reference_resample_launch},
                  [STEP_MOVE] = {U8 | U16 | F32, NULL, NULL, cpu_move_launch},
                  [STEP_POINT] = {U8 | U16 | F32, NULL, cpu_point_prepare, cpu_point_launch},
                  [STEP_PIXELATE] = {U8 | U16 | F32, NULL, NULL, cpu_squares_launch},
                  [STEP_RANK] = {U8 | U16 | F32, reference_rank_cost, NULL, reference_rank_launch}},
    },
    {
        .name = "cpu",
        .summary = "vectors and threads over rows; two passes for rank 1",
        .backend = BACKEND_CPU,
        .accepts = ACCEPTS_ALL,
        .two_pass = U8 | U16 | F32,
        .steps = {[STEP_CONVOLVE] = {U8 | U16 | F32, cpu_cost, cpu_prepare, cpu_launch},
                  [STEP_RESIZE] = {U8 | U16 | F32, cpu_resample_cost, cpu_resample_prepare, cpu_resample_launch},
                  [STEP_MOVE] = {U8 | U16 | F32, cpu_move_cost, NULL, cpu_move_launch},
                  [STEP_POINT] = {U8 | U16 | F32, cpu_point_cost, cpu_point_prepare, cpu_point_launch},
                  [STEP_PIXELATE] = {U8 | U16 | F32, cpu_squares_cost, NULL, cpu_squares_launch},
                  [STEP_RANK] = {U8 | U16 | F32, cpu_rank_cost, NULL, cpu_rank_launch}},
    },
    TEXTBOOK("basic", basic, "one thread per pixel, taps in global memory"),
    TEXTBOOK("constant", constant, "taps in constant memory, small sizes unrolled"),
    TEXTBOOK("coarsened", coarsened, "constant, each thread strides over several pixels"),
    TEXTBOOK("tiled-input", tiled_input, "shared tile, one thread per input sample"),
    TEXTBOOK("tiled-output", tiled_output, "shared tile, one thread per output"),
    TEXTBOOK("tiled-cached", tiled_cached, "interior in shared memory, halo through caches"),
    TEXTBOOK("texture", texture, "input through the texture path"),
    {
        .name = "register-tiled",
        .summary = "each thread has a window of outputs in registers",
        .accepts = ACCEPTS_ONE_GRID,
        ON_CUDA(STEP_CONVOLVE, U8 | U16 | F32, register_tiled_cost, register_tiled),
    },
    {
        .name = "separable",
        .summary = "row and column pass fused in one kernel; rank 1 only",
        .accepts = ACCEPTS_RANK_1,
        .two_pass = F32,
        ON_CUDA(STEP_CONVOLVE, U8 | U16 | F32, separable_cost, separable),
    },
    {
        .name = "tensor-core",
        .summary = "banded matrix products on the tensor cores",
        .accepts = ACCEPTS_ONE_GRID,
        .unit = UNIT_TENSOR,
        ON_CUDA(STEP_CONVOLVE, U8 | U16 | F32, tensor_core_cost, tensor_core),
    },
    {
        .name = "blur",
        .summary = "two passes on the tensor cores, rounded in between",
        .accepts = ACCEPTS_BLURS,
        .two_pass = U8 | U16,
        .unit = UNIT_TENSOR,
        ON_CUDA(STEP_CONVOLVE, U8 | U16, blur_cost, blur),
    },
    {
        .name = "running-sums",
        .summary = "boxes: sums that move down columns, then prefix sums",
        .accepts = ACCEPTS_BOXES,
        .two_pass = U8 | U16,
        ON_CUDA(STEP_CONVOLVE, U8 | U16, running_sums_cost, running_sums),
    },
    {
        .name = "passes",
        .summary = "two passes of floats, each a launch, any number of taps",
        .accepts = ACCEPTS_TWO_PASSES,
        .takes_halves = true,
        .two_pass = F32,
        ON_CUDA(STEP_CONVOLVE, F32, passes_cost, passes),
    },
    {
        .name = "sparse",
        .summary = "only the taps that are not zero, from a list",
        .accepts = ACCEPTS_FEW_TAPS,
        ON_CUDA(STEP_CONVOLVE, U8 | F32, sparse_cost, sparse),
    },
    {
        .name = "copy",
        .summary = "16 bytes per thread, moved by the filter's one offset",
        .accepts = ACCEPTS_SHIFT,
        .backend = BACKEND_CUDA,
        .capability = 75,
        .steps = {[STEP_CONVOLVE] = {U8 | U16 | F32, copy_cost, CUDA_FUNCTION(copy, prepare),
                                     CUDA_FUNCTION(copy, launch)},
                  [STEP_MOVE] = {U8 | U16 | F32, copy_cost, NULL, CUDA_FUNCTION(move, launch)}},
    },
    {
        .name = "resample",
        .summary = "another size: columns to shared memory, then rows",
        .accepts = ACCEPTS_NONE,
        ON_CUDA(STEP_RESIZE, U8 | U16 | F32, resample_cost, resample),
    },
    {
        .name = "gradient",
        .summary = "both sums of a filter with two grids, and their root",
        .accepts = ACCEPTS_TWO_GRIDS,
        ON_CUDA(STEP_CONVOLVE, U8 | U16 | F32, gradient_cost, gradient),
    },
    {
        .name = "pixelate",
        .summary = "the mean of each square, by a warp or a block",
        .accepts = ACCEPTS_NONE,
        .backend = BACKEND_CUDA,
        .capability = 75,
        .steps = {[STEP_PIXELATE] = {U8 | U16 | F32, point_cost, NULL, CUDA_FUNCTION(pixelate, launch)}},
    },
    {
        .name = "rank",
        .summary = "networks, running extremes and histograms",
        .accepts = ACCEPTS_NONE,
        .backend = BACKEND_CUDA,
        .capability = 75,
        .steps = {[STEP_RANK] = {U8 | U16 | F32, rank_cost, CUDA_FUNCTION(rank, prepare), CUDA_FUNCTION(rank, launch)}},
    },
    {
        .name = "point",
        .summary = "a matrix and tables, each pixel by itself",
        .accepts = ACCEPTS_NONE,
        ON_CUDA(STEP_POINT, U8 | U16 | F32, point_cost, point),
    },
};

enum { TABLE_ROWS = sizeof table / sizeof table[0] };

static_assert(TABLE_ROWS <= 64, "sets of variants have a bit for each");

const struct variant *variants(size_t *count)
{
    *count = TABLE_ROWS;
    return table;
}

const struct variant *variant_reference(void)
{
    return table; /* the first row */
}

const struct variant *variant_find(const char *name, struct error *error)
{
    const char *names[TABLE_ROWS];
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (strcmp(name, table[i].name) == 0)
            return &table[i];
        names[i] = table[i].name;
    }
    const size_t nearest = error_nearest(name, names, TABLE_ROWS, names, TABLE_ROWS);
    error_unknown(error, "variant", name, names, nearest, "--list-variants");
    return NULL;
}

bool variant_accepts(const struct variant *variant, const struct filter *filter, enum sample sample)
{
    filter = filter_of_depth(filter, sample != SAMPLE_U8);
    if (filter_is_pillow(filter) && sample == SAMPLE_F32)
        return false;
    if (!filter_kind(filter)->has_taps)
        return variant->steps[filter->kind].samples & 1u << sample;
    if (filter->two_pass) /* separable takes as many taps as a grid's side has */
        return variant->two_pass & 1u << sample &&
               variant->accepts != (filter_is_box(filter) ? ACCEPTS_BLURS : ACCEPTS_BOXES) &&
               (variant->accepts != ACCEPTS_RANK_1 ||
                (filter->width <= FILTER_MAX && filter->height <= FILTER_MAX && filter->amount == 0));
    if (!(variant->steps[filter->kind].samples & 1u << sample))
        return false;
    const bool two = filter_grids(filter) == 2;
    switch (variant->accepts) {
    case ACCEPTS_ALL:
        break;
    case ACCEPTS_ONE_GRID:
        return !two;
    case ACCEPTS_RANK_1:
        return !two && filter->separable;
    case ACCEPTS_SHIFT:
        return filter_is_shift(filter);
    case ACCEPTS_FEW_TAPS:
        return !two && filter_tap_count(filter) <= SPARSE_MAX;
    case ACCEPTS_TWO_GRIDS:
        return two;
    case ACCEPTS_BOXES:
        return filter_is_box(filter) && filter->scale <= ROUNDING_SCALE;
    case ACCEPTS_BLURS:
    case ACCEPTS_TWO_PASSES:
    case ACCEPTS_NONE:
        return false;
    }
    return true;
}

unsigned variant_samples(const struct variant *variant)
{
    unsigned samples = variant->two_pass;
    for (enum step_kind kind = 0; kind < STEP_KINDS; kind++)
        samples |= variant->steps[kind].samples;
    return samples;
}

bool variant_is_built(const struct variant *variant)
{
    bool built = false;
    for (enum step_kind kind = 0; kind < STEP_KINDS; kind++)
        built |= variant->steps[kind].launch != NULL;
    return built;
}

bool variant_is_canonical(const struct variant *variant)
{
    bool canonical = false;
    for (enum step_kind kind = 0; kind < STEP_KINDS; kind++)
        canonical |= variant->steps[kind].seconds != NULL;
    return canonical;
}

const char *backend_name(enum backend backend)
{
    return backend == BACKEND_CUDA ? "cuda" : "cpu";
}

const char *accepts_name(enum accepts accepts)
{
    static const char *const names[] = {
        [ACCEPTS_ALL] = "any filter",         [ACCEPTS_ONE_GRID] = "one grid", [ACCEPTS_TWO_GRIDS] = "two grids",
        [ACCEPTS_RANK_1] = "separable only",  [ACCEPTS_BLURS] = "two passes",  [ACCEPTS_BOXES] = "boxes only",
        [ACCEPTS_SHIFT] = "moves only",       [ACCEPTS_FEW_TAPS] = "few taps", [ACCEPTS_NONE] = "no taps",
        [ACCEPTS_TWO_PASSES] = "blurs, boxes"};
    return names[accepts];
}

/* Report why VARIANT does not accept FILTER. Returns false. */
static bool refuse_filter(const struct variant *variant, const struct filter *filter, struct error *error)
{
    const struct kind_of_step *kind = filter_kind(filter);
    const char *takes = "that are a column times a row", *is = "is not one", *see = "";
    if (kind->has_taps && variant->accepts == ACCEPTS_FEW_TAPS && !filter->two_pass && filter_grids(filter) == 1)
        return error_set(error, ERROR_USAGE,
                         "the variant %s takes filters of at most %d taps that are not zero, and %s has %d; leave "
                         "--variant out or choose another",
                         variant->name, SPARSE_MAX, filter->name, filter_tap_count(filter));
    if (filter_is_pillow(filter) && variant->steps[filter->kind].samples != 0)
        return error_set(
            error, ERROR_USAGE,
            "the variant %s does not take %s for these samples, as it resizes by the rule of Pillow; leave "
            "--variant out, or choose another kernel",
            variant->name, filter->name);
    if (kind->takes != NULL) {
        takes = kind->takes;
        is = kind->is;
    } else if (variant->accepts == ACCEPTS_NONE && variant->steps[STEP_RESIZE].samples != 0) {
        takes = "that change the size of a picture";
        is = "keeps it";
    } else if (variant->accepts == ACCEPTS_NONE) {
        takes = "without taps";
        is = "has some";
    } else if (variant->accepts == ACCEPTS_BLURS) {
        takes = "in two passes with different taps, such as gaussian:2";
    } else if (variant->accepts == ACCEPTS_TWO_PASSES) {
        takes = "in two passes, such as gaussian:20 and box:70";
    } else if (variant->accepts == ACCEPTS_BOXES && filter_grids(filter) == 1) {
        takes = "whose taps are all 1, such as box:16";
    } else if (variant->accepts == ACCEPTS_TWO_GRIDS) {
        takes = "of two grids";
        is = "has one";
    } else if (filter->two_pass) {
        takes = "that are a grid of taps";
        is = "is two passes with rounded sums between them";
        see = " (gpuconv --list-variants says which)";
    } else if (filter_grids(filter) == 2) {
        takes = "of one grid";
        is = "has two";
        see = " (gpuconv --list-variants says which filters each takes)";
    } else if (variant->accepts == ACCEPTS_SHIFT) {
        takes = "that move the picture and change no sample";
    } else {
        is = "is not";
        see = " (gpuconv --show says which filters are separable)";
    }
    return error_set(error, ERROR_USAGE,
                     "the variant %s takes only filters %s, and %s %s; leave --variant out or choose another%s",
                     variant->name, takes, filter->name, is, see);
}

bool variant_plan(struct plan *plan, const struct filter *filter, enum border border, enum sample sample,
                  const struct variant *variant, struct error *error)
{
    if (!(variant_samples(variant) & 1u << sample))
        return error_set(error, ERROR_USAGE,
                         "the variant %s does not take %s samples; leave --variant out or choose another "
                         "(gpuconv --list-variants says which samples each takes)",
                         variant->name, sample_name(sample));
    if (!variant_accepts(variant, filter, sample))
        return refuse_filter(variant, filter_of_depth(filter, sample != SAMPLE_U8), error);
    if (!variant_is_built(variant))
        return error_set(error, ERROR_WORK,
                         "this gpuconv was built without CUDA, which the variant %s needs; use --backend cpu or build "
                         "it where nvcc is installed",
                         variant->name);
    plan_make(plan, filter, border, sample);
    plan->variant = variant;
    return true;
}

bool variant_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct variant_step *step = &plan->variant->steps[plan->filter->kind];
    return step->prepare == NULL || step->prepare(plan, device, error);
}

bool variant_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                    struct error *error)
{
    return plan->variant->steps[plan->filter->kind].launch(plan, device, in, out, error);
}

double variant_tolerance(const struct plan *plan)
{
    const struct kind_of_step *kind = filter_kind(plan->filter);
    if (plan->sample != SAMPLE_F32)
        return variant_is_canonical(plan->variant) || plan->float_exact ? 0 : 1;
    return kind->float_error == NULL
               ? 0
               : ldexp(kind->float_error(plan->filter, plan->columns.count + plan->rows.count), -24);
}
