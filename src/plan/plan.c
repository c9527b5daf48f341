/* SPDX-License-Identifier: MIT
 *
 * The table of variants, the numbers of a plan, and the automatic choice. */
#include "plan/plan.h"

#include "variants/cost_model.h"

#include <math.h>
#include <string.h>

/* The table: a row a variant, in the order of the lesson, from the one to read to the one to run. Nothing but a row,
 * its file and its Meson line names a variant; check_variants and the benchmark walk this table. */
#define U8 (1u << SAMPLE_U8)
#define U16 (1u << SAMPLE_U16)
#define F32 (1u << SAMPLE_F32)
#define VARIANTS(CPU, CUDA)                                                                                            \
    /*   function        name            samples  fits  seconds  capability  unit  summary */                          \
    CPU(reference, NULL, "reference", U8 | U16 | F32, FITS_ALL, reference_seconds, 0, UNIT_FMA,                        \
        "four loops, 64-bit integers: the truth for all others")                                                       \
    CPU(cpu, cpu_prepare, "cpu", U8 | U16 | F32, FITS_ALL, cpu_seconds, 0, UNIT_FMA,                                   \
        "vectors and threads over rows; two passes for rank 1")                                                        \
    CUDA(basic, "basic", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA, "a thread a pixel, taps in global memory")       \
    CUDA(constant, "constant", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA,                                            \
         "taps in constant memory, small sizes unrolled")                                                              \
    CUDA(coarsened, "coarsened", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA,                                          \
         "constant, each thread strides over several pixels")                                                          \
    CUDA(tiled_input, "tiled-input", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA,                                      \
         "shared tile, a thread an input sample")                                                                      \
    CUDA(tiled_output, "tiled-output", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA, "shared tile, a thread an output") \
    CUDA(tiled_cached, "tiled-cached", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA,                                    \
         "interior in shared memory, halo through caches")                                                             \
    CUDA(texture, "texture", U8 | F32, FITS_ONE_GRID, NULL, 75, UNIT_FMA, "input through the texture path")            \
    CUDA(register_tiled, "register-tiled", U8 | U16 | F32, FITS_ONE_GRID, register_tiled_seconds, 75, UNIT_FMA,        \
         "a window of outputs in registers a thread")                                                                  \
    CUDA(separable, "separable", U8 | U16 | F32, FITS_RANK_1, separable_seconds, 75, UNIT_FMA,                         \
         "row and column pass fused in one kernel; rank 1 only")                                                       \
    CUDA(tensor_core, "tensor-core", U8, FITS_ONE_GRID, tensor_core_seconds, 75, UNIT_TENSOR,                          \
         "banded int8 matrix products on the tensor cores")                                                            \
    CUDA(sparse, "sparse", U8 | F32, FITS_SPARSE, sparse_seconds, 75, UNIT_FMA,                                        \
         "only the taps that are not zero, from a list")                                                               \
    CUDA(copy, "copy", U8 | U16 | F32, FITS_SHIFT, copy_seconds, 75, UNIT_FMA,                                         \
         "16 bytes a thread, moved by the filter's one offset")                                                        \
    CUDA(gradient, "gradient", U8 | U16 | F32, FITS_TWO_GRIDS, gradient_seconds, 75, UNIT_FMA,                         \
         "both sums of a filter with two grids, and their root")

typedef bool prepare_function(struct plan *plan, struct device *device, struct error *error);
typedef bool launch_function(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error);

/* What a row's function is called. The tests, which have a stub for a GPU, have one for all of its kernels. */
#ifndef CUDA_FUNCTION
#define CUDA_FUNCTION(function, step) function##_##step
#endif

/* On the CPU only one variant has something to prepare. */
prepare_function cpu_prepare;
#define DECLARE_CPU(function, ...) launch_function function##_launch;
#define ROW_CPU(function, prepare, name, samples, fits, seconds, capability, unit, summary)                            \
    {name, summary, BACKEND_CPU, samples, fits, seconds, capability, unit, prepare, function##_launch},
#ifdef GPUCONV_CUDA
#define CUDA_FUNCTIONS(function) CUDA_FUNCTION(function, prepare), CUDA_FUNCTION(function, launch)
#define DECLARE_CUDA(function, ...)                                                                                    \
    prepare_function CUDA_FUNCTION(function, prepare);                                                                 \
    launch_function CUDA_FUNCTION(function, launch);
#define ROW_CUDA(function, name, samples, fits, seconds, capability, unit, summary)                                    \
    {name, summary, BACKEND_CUDA, samples, fits, seconds, capability, unit, CUDA_FUNCTIONS(function)},
#else
#define DECLARE_CUDA(function, ...)
#define ROW_CUDA(function, name, samples, fits, seconds, capability, unit, summary)                                    \
    {name, summary, BACKEND_CUDA, samples, fits, seconds, capability, unit, NULL, NULL},
#endif

VARIANTS(DECLARE_CPU, DECLARE_CUDA)

static const struct variant table[] = {VARIANTS(ROW_CPU, ROW_CUDA)};

enum { TABLE_ROWS = sizeof table / sizeof table[0] };

static const char *const border_names[BORDER_COUNT] = {
    [BORDER_REPLICATE] = "replicate", [BORDER_REFLECT] = "reflect", [BORDER_REFLECT101] = "reflect101",
    [BORDER_WRAP] = "wrap",           [BORDER_ZERO] = "zero",
};

const char *border_name(enum border border)
{
    return border_names[border];
}

const struct variant *variants(size_t *count)
{
    *count = TABLE_ROWS;
    return table;
}

const struct variant *variant_find(const char *name, struct error *error)
{
    const char *names[TABLE_ROWS];
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (strcmp(name, table[i].name) == 0)
            return &table[i];
        names[i] = table[i].name;
    }
    error_unknown(error, "variant", name, error_nearest(name, names, TABLE_ROWS), "--list-variants");
    return NULL;
}

static bool is_shift(const struct filter *filter)
{
    bool kept = true;
    for (int i = 0; i < filter->width * filter->height; i++)
        kept &= filter->taps[i] == 0 || filter->taps[i] == filter->scale;
    return filter_tap_count(filter) == 1 && kept && filter->offset == 0 && !filter->absolute;
}

bool variant_takes(const struct variant *variant, const struct filter *filter, enum sample sample)
{
    const bool two = filter_grids(filter) == 2;
    if (!(variant->samples & 1u << sample))
        return false;
    switch (variant->fits) {
    case FITS_ALL:
        break;
    case FITS_ONE_GRID:
        return !two;
    case FITS_RANK_1:
        return !two && filter->separable;
    case FITS_SHIFT:
        return !two && is_shift(filter);
    case FITS_SPARSE:
        return !two && filter_tap_count(filter) <= SPARSE_MAX;
    case FITS_TWO_GRIDS:
        return two;
    }
    return true;
}

const char *fits_name(enum fits fits)
{
    static const char *const names[] = {
        [FITS_ALL] = "any filter",        [FITS_ONE_GRID] = "one grid", [FITS_TWO_GRIDS] = "two grids",
        [FITS_RANK_1] = "separable only", [FITS_SHIFT] = "shifts only", [FITS_SPARSE] = "few taps"};
    return names[fits];
}

static int64_t clamp64(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* out = clamp(floor((S + B) / D)), S an integer with |S| <= M = 2^31 - 1, without a division:
 *
 * Only t = S + B in [0, 256 D) matters: below, the output is 0; above, 255, as at 256 D - 1. So S is first
 * clamped to
 * [-B, 256 D - 1 - B]; both ends are themselves clamped to 32 bits, which changes nothing for |S| <= M once B
 * is clamped to [-M, 256 D - 1 + M]: at either end of that every S gives 0 (all t <= 0), or every S gives 255.
 *
 * For D <= 2^23, t < 2^31. With s = ceil(log2 D) - 1 and m = ceil(2^(32+s) / D) = (2^(32+s) + e) / D, 0 <= e <
 * D: t m / 2^(32+s) = t/D + t e / (D 2^(32+s)),  and  t e < 2^31 D <= 2^31 2^(s+1) = 2^(32+s), so the second
 * term is below 1/D and floor is floor(t/D), exactly. m < 2^32, because D > 2^s. For D = 1 there is no such s;
 * there t <= 255 and (t + 1) (2^32 - 1) >> 32 = t. (Granlund and Montgomery, Division by invariant integers
 * using multiplication, 1994.) */
void rounding_make(const struct filter *filter, struct rounding *rounding)
{
    const int64_t scale = filter->scale;
    *rounding = (struct rounding){.scale = filter->scale, .absolute = filter->absolute};
    if (scale > 1 << 23) {
        rounding->wide = true;
        rounding->bias = filter->bias;
        return;
    }
    const int64_t bias = clamp64(filter->bias, -INT32_MAX, 256 * scale - 1 + INT32_MAX);
    rounding->low = (int32_t)clamp64(-bias, INT32_MIN, INT32_MAX);
    rounding->high = (int32_t)clamp64(256 * scale - 1 - bias, INT32_MIN, INT32_MAX);
    if (scale == 1) {
        rounding->bias = bias + 1;
        rounding->multiplier = UINT32_MAX;
        return;
    }
    rounding->bias = bias;
    while (scale > (int64_t)2 << rounding->shift)
        rounding->shift++;
    rounding->multiplier =
        (uint32_t)((((uint64_t)1 << (32 + rounding->shift)) + (uint64_t)scale - 1) / (uint64_t)scale);
}

/* With t = S + B, floor(t / D) = floor((t + 1/2) / D), and (t + 1/2) / D is at least 1 / 2D away from any integer, so
 * what is computed may err by less than that. What is computed is fl(S fl(1/D)) + fl((B + 1/2) fl(1/D)), rounded. With
 * u = 2^-53, the two products err by 2u |S| / D and 2u (|B| + 1/2) / D, and so little more that 3u covers it; the sum,
 * where it is below 65536, by 65536 u; where it is above, or below 0, it stays there, as 0 and 65536 are floating-point
 * numbers. All of it is below 1 / 2D where
 *
 *     6 |S| + 6 |B| + 3 + 2^17 D < 2^53
 *
 * |S| <= M = 2^40; D <= 2^30; and as for 8 bits, nothing changes when B is clamped to [-M - D, 65536 D + M], where |B|
 * < 2^47: the left side is below 2^50. Truncation is floor from 0 on, and between -1 and 0 both ways give 0. */
void rounding16_make(const struct filter *filter, struct rounding16 *rounding)
{
    const int64_t most = (int64_t)1 << 40, scale = filter->scale;
    const int64_t bias = clamp64(filter->bias16, -most - scale, 65536 * scale + most);
    rounding->factor = 1.0 / (double)scale;
    rounding->term = ((double)bias + 0.5) * rounding->factor;
    rounding->absolute = filter->absolute;
}

/* Levels are computed in doubles; where `fits` is set, 2^-33 is added, so that none is too low.
 *
 * With T = 257 O + 1/2, O = p/r and w = 2r: level n is reached where x = sqrt(N) / D + T >= n, where w sqrt(N) >= v =
 * w D (n - T), an integer. If it is not reached, w^2 N <= v^2 - 1, so that v - w sqrt(N) >= 1 / 2v, and x is below n by
 * at least 1 / (2v w D). With |T| < 2^16 + 1, v <= w D 2^17, and the distance is at least 2^-18 / (w D)^2; for w D <=
 * 128 that is 2^-32.
 *
 * What is computed errs by less than 2^-33. N is exact up to 2^53, and larger ones give the highest level. Up to that,
 * sqrt(N) / D < 2^17 + 2; with u = 2^-53, the root, 1 / D and their product err by 3u of it, T by less than 2u 2^17,
 * and the sum by u 2^17 at most. All of it is below u 2^20. */
void root16_make(const struct filter *filter, struct root16 *root)
{
    *root = (struct root16){
        .numerator = filter->offset_numerator,
        .denominator = filter->offset_denominator,
        .scale = filter->scale,
        .fits = filter->offset_denominator <= 64 && 2 * filter->offset_denominator * filter->scale <= 128 &&
                fabs(filter->offset) <= 255,
    };
    root->rounding.factor = 1.0 / filter->scale;
    root->rounding.term = 257 * filter->offset + 0.5 + (root->fits ? ldexp(1, -33) : 0);
}

bool root_fits_float(const struct filter *filter, int32_t *twice_bias)
{
    const int64_t most = 1 << 24;
    const double bias = 2 * filter->scale * (filter->offset + 0.5);
    if (filter->combine != COMBINE_MAGNITUDE || filter->absolute_sum * 255 >= most ||
        filter->steps[FILTER_LEVELS - 1] > most || !(bias >= 0 && bias <= 1 << 13))
        return false;
    *twice_bias = (int32_t)bias;
    for (int n = 1; n < FILTER_LEVELS; n++) {
        const int64_t k = 2 * (int64_t)filter->scale * n - *twice_bias; /* 4 N >= k^2: N >= k^2 / 4, rounded up */
        if (filter->steps[n] != (k <= 0 ? 0 : (k * k + 3) / 4))
            return false;
    }
    return true;
}

bool plan_make(struct plan *plan, const struct filter *filter, enum border border, enum sample sample,
               const struct variant *variant, struct error *error)
{
    if (!(variant->samples & 1u << sample))
        return error_set(error, ERROR_USAGE,
                         "the variant %s does not take %s samples; leave --variant out or choose another "
                         "(gpuconv --list-variants says which samples each takes)",
                         variant->name, sample_name(sample));
    if (variant->fits != FITS_ALL && (variant->fits == FITS_TWO_GRIDS) != (filter_grids(filter) == 2))
        return error_set(error, ERROR_USAGE,
                         variant->fits == FITS_TWO_GRIDS
                             ? "the variant %s takes only filters of two grids, and %s has one; leave --variant out or "
                               "choose another"
                             : "the variant %s takes only filters of one grid, and %s has two; leave --variant out or "
                               "choose another (gpuconv --list-variants says which filters each takes)",
                         variant->name, filter->name);
    if (variant->fits == FITS_SPARSE && !variant_takes(variant, filter, sample))
        return error_set(error, ERROR_USAGE,
                         "the variant %s takes filters of at most %d taps that are not zero, and %s has %d; leave "
                         "--variant out or choose another",
                         variant->name, SPARSE_MAX, filter->name, filter_tap_count(filter));
    if (!variant_takes(variant, filter, sample))
        return error_set(error, ERROR_USAGE,
                         variant->fits == FITS_SHIFT
                             ? "the variant %s takes only filters that move the picture and change no sample, and %s "
                               "is not one; leave --variant out or choose another"
                             : "the variant %s takes only filters that are a column times a row, and %s is not; leave "
                               "--variant out or choose another (gpuconv --show says which filters are separable)",
                         variant->name, filter->name);
    if (!variant->launch)
        return error_set(error, ERROR_WORK,
                         "this gpuconv was built without CUDA, which the variant %s needs; use --backend cpu or build "
                         "it where nvcc is installed",
                         variant->name);
    *plan = (struct plan){
        .filter = filter,
        .border = border,
        .sample = sample,
        .variant = variant,
        .offset = (float)filter->offset,
        .float_exact = sums_fit_float(filter, SAMPLE_U8),
    };
    rounding_make(filter, &plan->rounding);
    rounding16_make(filter, &plan->rounding16);
    root16_make(filter, &plan->root16);
    plan->root_in_float = root_fits_float(filter, &plan->twice_bias);
    for (int i = 0; i < filter_grids(filter) * filter->width * filter->height; i++)
        if (filter->taps[i] != 0) {
            const int32_t size = filter->taps[i] < 0 ? -filter->taps[i] : filter->taps[i];
            plan->tap_count++;
            plan->largest_tap = size > plan->largest_tap ? size : plan->largest_tap;
            plan->shift_x = i % filter->width - filter->anchor_x;
            plan->shift_y = i / filter->width % filter->height - filter->anchor_y;
        }
    return true;
}

bool plan_prepare(struct plan *plan, struct device *device, struct error *error)
{
    return plan->variant->prepare == NULL || plan->variant->prepare(plan, device, error);
}

void plan_free(struct plan *plan)
{
    if (plan->release != NULL)
        plan->release(plan->prepared);
    *plan = (struct plan){0};
}

double plan_tolerance(const struct plan *plan)
{
    const struct filter *f = plan->filter;
    if (plan->sample != SAMPLE_F32)
        return plan->variant->seconds || plan->float_exact ? 0 : 1;
    /* A float sum of n products in any order, samples up to 1: n u sum|t|, u = 2^-24, and for two passes and
     * the rounding of taps and offset a little more. What combines two sums passes on no more than the sum of their
     * errors, and adds that of four roundings. */
    const double n = f->width * f->height + 8 + 4 * filter_grids(f);
    return n * ldexp(1, -24) * ((double)f->absolute_sum / f->scale + fabs(f->offset));
}

double conv_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work)
{
    return variant->seconds(filter, work);
}

/* The row that is expected to take the least, EXCEPT left out. */
static const struct variant *cheapest(const struct filter *filter, enum backend backend, const struct work *work,
                                      const struct variant *except)
{
    const struct variant *best = NULL;
    double least = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const struct variant *row = &table[i];
        if (row->backend != backend || row == except || !row->seconds || !variant_takes(row, filter, work->sample))
            continue;
        const double seconds = row->seconds(filter, work);
        if (!best || seconds < least) {
            best = row;
            least = seconds;
        }
    }
    return best;
}

const struct variant *conv_choose(const struct filter *filter, enum backend backend, const struct work *work)
{
    return cheapest(filter, backend, work, NULL);
}

const struct variant *conv_runner_up(const struct filter *filter, const struct variant *chosen, const struct work *work)
{
    return cheapest(filter, chosen->backend, work, chosen);
}
