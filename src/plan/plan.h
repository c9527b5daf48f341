/* SPDX-License-Identifier: MIT
 *
 * The table of variants, and the plan: everything derived from filter, border and variant before a sample is touched.
 *
 *     out(y, x) = clamp(round((sum over i, j of q(i, j) * in(y + i - anchor_y, x + j - anchor_x)) / D + O))
 *
 * for planes of uint8_t, the same with 257 * O in place of O for planes of uint16_t, and without clamp and round for
 * planes of float. (Levels of 16 bits are 257 times as fine, 65535 being 257 * 255, so that white stays white.) Outside
 * the image, in() is what the border says. Of a filter with two grids, what its `combine` makes of both sums stands in
 * place of the sum. */
#ifndef GPUCONV_CONV_H
#define GPUCONV_CONV_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;

enum backend { BACKEND_CPU, BACKEND_CUDA };

/* What stands outside the image, in OpenCV's words; a row of samples abcd continues as */
enum border {
    BORDER_REPLICATE,  /* aaa|abcd|ddd */
    BORDER_REFLECT,    /* cba|abcd|dcb */
    BORDER_REFLECT101, /* dcb|abcd|cba */
    BORDER_WRAP,       /* bcd|abcd|abc */
    BORDER_ZERO,       /* 000|abcd|000, the textbooks' ghost cells */
    BORDER_COUNT
};

/* The word for a border on the command line. */
const char *border_name(enum border border);

/* How a sum S of taps times samples becomes a sample of uint8_t, derived once so that no output takes a division:
 *
 *     S = |S| where absolute;  t = min(max(S, low), high) + bias;  out = t * multiplier >> 32 >> shift
 *
 * equals clamp(floor((S + B) / D)) for every |S| < 2^31 where D <= 2^23; the proof stands at rounding_make. Where D is
 * larger (`wide`), t is kept in 64 bits and divided. */
struct rounding {
    int64_t bias; /* for wide: B; else, modulo 2^32, what makes t start at 0 (at 1 where D is 1) */
    int32_t low, high;
    uint32_t multiplier;
    int32_t shift;
    int32_t scale;
    bool wide;
    bool absolute;
};

/* How the same sum S of samples of uint16_t, |S| < 2^40, becomes one of uint16_t:
 *
 *     S = |S| where absolute;  out = truncate(min(max(S * factor + term, 0), 65535))
 *
 * equals clamp(floor((S + B) / D)) with B = floor(D * (257 * O + 1/2)) for every D up to 2^30, whether the product is
 * rounded before the addition or not; the proof stands at rounding16_make. */
struct rounding16 {
    double factor, term;
    bool absolute;
};

/* How two such sums become a level with COMBINE_MAGNITUDE, O = numerator / denominator:
 *
 *     the greatest n up to 65535 with n <= sqrt(s1^2 + s2^2) / D + 257 * O + 1/2, or 0
 *
 * `rounding` takes the root, found in doubles. Where `fits` is set, that gives n; the proof stands at root16_make. Else
 * it may be wrong, and root16_reaches says so. */
struct root16 {
    struct rounding16 rounding;
    int64_t numerator, denominator;
    int32_t scale;
    bool fits;
};

struct plan;
struct work;

/* The most taps of FITS_SPARSE: of 8 bytes each, they fill CUDA's 64 KB of constant memory. */
#define SPARSE_MAX 8192

/* Which filters a variant takes. */
enum fits {
    FITS_ALL,
    FITS_ONE_GRID,  /* those of one grid; all below but the last are such too */
    FITS_RANK_1,    /* those whose taps are a column times a row */
    FITS_SHIFT,     /* those that move the picture and change no sample; also the identity */
    FITS_SPARSE,    /* those of at most SPARSE_MAX taps that are not zero */
    FITS_TWO_GRIDS, /* those of two grids */
};

/* The arithmetic that a variant does most of its sums of uint8_t samples with, and so whose peak rate bounds it. Sums
 * of float samples are always UNIT_FMA. */
enum unit {
    UNIT_FMA,    /* multiply-adds of float or int32_t */
    UNIT_DP4A,   /* products of four pairs of bytes */
    UNIT_TENSOR, /* the tensor cores' products of matrices of bytes */
};

/* A row of the table. */
struct variant {
    const char *name;    /* also its file, its README row */
    const char *summary; /* one line */
    enum backend backend;
    unsigned samples; /* bit SAMPLE_U8, _U16 or _F32 is set for each sample type it takes */
    enum fits fits;

    /* The seconds that it is expected to take. Set for the rows that return the canonical bytes for every filter, among
     * which the automatic choice is; NULL for others. */
    double (*seconds)(const struct filter *filter, const struct work *work);

    int capability; /* the least compute capability, times 10; 0 on the CPU */
    enum unit unit; /* for the benchmark */

    /* Get ready for launches of PLAN; not timed. NULL where there is nothing to do. On the CPU it is called once for a
     * plan and leaves its result in plan->prepared (a second call does nothing). On a device it uploads the taps to
     * constant memory, which all streams share, and is called before the launches of each image. */
    bool (*prepare)(struct plan *plan, struct device *device, struct error *error);

    /* Convolve all of IN's planes to OUT's: two buffers of one shape that do not overlap. On a device the work is
     * queued on the device's stream and errors of the kernels themselves show at the next synchronisation. DEVICE is
     * NULL on the CPU. NULL in a build without CUDA. */
    bool (*launch)(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                   struct error *error);
};

/* All variants, in the order of --list-variants; *COUNT is set to their number. */
const struct variant *variants(size_t *count);

/* The variant of that name. Fails with the nearest name in the message. */
const struct variant *variant_find(const char *name, struct error *error);

/* Does the variant take planes of that type and this filter? (It may still not be in this build: launch is NULL.) */
bool variant_takes(const struct variant *variant, const struct filter *filter, enum sample sample);

/* For which filters a variant is, in two words. */
const char *fits_name(enum fits fits);

/* filter + border + variant + numbers derived once. The plan points to the filter, which must outlive it. */
struct plan {
    const struct filter *filter;
    enum border border;
    enum sample sample;
    const struct variant *variant;
    struct rounding rounding;     /* for planes of uint8_t */
    struct rounding16 rounding16; /* for planes of uint16_t; there |sums| are below 2^31 * 257 < 2^40 */
    struct root16 root16;         /* the same, of COMBINE_MAGNITUDE */
    float offset;                 /* for planes of float */
    bool float_exact;             /* sums_fit_float for uint8_t */
    bool root_in_float;           /* of COMBINE_MAGNITUDE: see root_fits_float */
    int32_t twice_bias;           /* if so, 2 D (O + 1/2) */
    int tap_count;                /* taps that are not zero */
    int32_t largest_tap;          /* the largest |q| */
    int shift_x, shift_y;         /* the last of them is a weight of in(y + shift_y, x + shift_x) */
    int threads;                  /* for variants of the CPU; 0: as many as OpenMP gives */

    /* What the variant's prepare derived, owned by the plan, and what frees it; NULL: nothing. Launches only read it. */
    void *prepared;
    void (*release)(void *prepared);
};

/* Derive the numbers and check that the variant takes this filter and sample type and that this build has it. Free what
 * plan_prepare adds to the plan with plan_free. */
bool plan_make(struct plan *plan, const struct filter *filter, enum border border, enum sample sample,
               const struct variant *variant, struct error *error);

/* Call the variant's prepare, if it has one. It is needed before the first launch. DEVICE is NULL on the CPU. */
bool plan_prepare(struct plan *plan, struct device *device, struct error *error);

/* Free what was prepared; the plan becomes all zeros. A plan of zeros is allowed. */
void plan_free(struct plan *plan);

/* Do floats hold all sums of samples of SAMPLE, _U8 or _U16, exactly, in any order? Every partial sum is an integer of
 * at most sum|q| times the highest sample, and floats hold those up to 2^24. */
static inline bool sums_fit_float(const struct filter *filter, enum sample sample)
{
    return filter->absolute_sum * (sample == SAMPLE_U16 ? 65535 : 255) < 1 << 24;
}

/* The most by which an output of the plan's variant may differ from the reference's: nothing for planes of
 * uint8_t and uint16_t where the variant is canonical or its sums are exact in float, one level where they are not, and
 * for planes of float with samples from 0 to 1 the usual bound of a sum that is rounded at every step. */
double plan_tolerance(const struct plan *plan);

/* The numbers of one filter's rounding; plan_make calls all three. */
void rounding_make(const struct filter *filter, struct rounding *rounding);
void rounding16_make(const struct filter *filter, struct rounding16 *rounding);
void root16_make(const struct filter *filter, struct root16 *root);

/* May the level of COMBINE_MAGNITUDE be found with floats and one exact test? It may where sums are exact in float,
 * 2 D (O + 1/2) is an integer from 0 to 2^13, and the highest level is reached by squares N of at most 2^24. Then all
 * sums that give other levels than that have squares which are exact in float, those of larger sums stay above 2^24
 * when they are rounded, and
 *
 *     level n is reached  <=>  k |k| <= 4 N,  k = 2 D n - *TWICE_BIAS,  |k| <= 2^13, k k <= 2^26
 *
 * which 32 bits hold. That these are the filter's steps is checked, for each. */
bool root_fits_float(const struct filter *filter, int32_t *twice_bias);

/* The level of COMBINE_MAGNITUDE for any sums: the last of the filter's STEPS that s1^2 + s2^2 reaches. */
HOST_DEVICE static inline uint8_t root_level(const int64_t *steps, int32_t first, int32_t second)
{
    const uint64_t squares = (uint64_t)((int64_t)first * first) + (uint64_t)((int64_t)second * second);
    int level = 0;
    for (int half = FILTER_LEVELS / 2; half > 0; half /= 2)
        level += squares >= (uint64_t)steps[level + half] ? half : 0;
    return (uint8_t)level;
}

/* The instruction sets that the CPU's variants have on this machine, from the plain to the fast, by the names that
 * $GPUCONV_CPU takes; *COUNT is set to their number. */
const char *const *cpu_instruction_sets(size_t *count);

/* The one that they use: the last of them, or what $GPUCONV_CPU asks for. Fails where that is not among them. */
bool cpu_instruction_set(const char **name, struct error *error);

/* What the automatic choice decides by. */
struct work {
    int width, height, planes;
    enum sample sample;
    int threads; /* of the CPU */
};

/* The seconds that the CPU is expected to take for all FILTERS in turn, from image to image. (conv_model.c) */
double conv_cpu_seconds(const struct filter *filters, size_t count, const struct work *work);

/* The seconds that a GPU is expected to take from a cold start: context, copies, kernels. (conv_model.c) */
double conv_cuda_seconds(const struct filter *filters, size_t count, const struct work *work);

/* The seconds that a batch of so many IMAGES like WORK is expected to take on WORKERS that each have work->threads of
 * the CPU, without what decodes and encodes them; and on GPUS that are started once. (conv_model.c) */
double conv_batch_cpu_seconds(const struct filter *filters, size_t count, const struct work *work, double images,
                              int workers);
double conv_batch_cuda_seconds(const struct filter *filters, size_t count, const struct work *work, double images,
                               int workers, int gpus);

/* The seconds that a variant with such an expectation is expected to take for planes that are in place. */
double conv_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work);

/* The variant to run a filter with on a backend, when none is named: of those that return the canonical bytes, the one
 * that is expected to take the least. */
const struct variant *conv_choose(const struct filter *filter, enum backend backend, const struct work *work);

/* The variant that would be chosen if CHOSEN were not there; NULL where there is no other. */
const struct variant *conv_runner_up(const struct filter *filter, const struct variant *chosen,
                                     const struct work *work);

/* The index of the sample that stands at index I of a row or column of N, for any I (also far outside): 0 to N-1, or
 * -1 for the zero of BORDER_ZERO. Periods are unsigned: 2N may not fit in an int. */
HOST_DEVICE static inline int border_index(int i, int n, enum border border)
{
    if (i >= 0 && i < n)
        return i;
    if (border == BORDER_ZERO)
        return -1;
    if (border == BORDER_REPLICATE || n == 1)
        return i < 0 ? 0 : n - 1;
    const unsigned length = (unsigned)n;
    const unsigned period = border == BORDER_WRAP ? length : border == BORDER_REFLECT ? 2 * length : 2 * length - 2;
    const unsigned m = i < 0 ? period - 1 - (unsigned)(-1 - i) % period : (unsigned)i % period;
    return (int)(m < length ? m : border == BORDER_REFLECT ? period - 1 - m : period - m);
}

/* The formula at struct rounding where the scale is too large for 32 bits. Kept out of line: it is rare, and its
 * division is long. It takes values, because a pointer would force the kernels' parameters into local memory. */
HOST_DEVICE NOT_INLINED static uint8_t rounding_apply_wide(int64_t bias, int32_t scale, int32_t sum)
{
    const int64_t t = sum + bias;
    const int64_t level = t < 0 ? 0 : t / scale;
    return (uint8_t)(level < 255 ? level : 255);
}

/* One output from its sum: the formula at struct rounding, shared by every variant. */
HOST_DEVICE static inline uint8_t rounding_apply(const struct rounding *r, int32_t sum)
{
    if (r->absolute && sum < 0)
        sum = -sum;
    if (r->wide)
        return rounding_apply_wide(r->bias, r->scale, sum);
    sum = sum < r->low ? r->low : sum > r->high ? r->high : sum;
    const uint32_t t = (uint32_t)sum + (uint32_t)(uint64_t)r->bias;
    return (uint8_t)((uint64_t)t * r->multiplier >> 32 >> r->shift);
}

/* One output of uint16_t from its sum: the formula at struct rounding16. */
HOST_DEVICE static inline uint16_t rounding16_apply(const struct rounding16 *r, double sum)
{
    const double value = (r->absolute && sum < 0 ? -sum : sum) * r->factor + r->term;
    return (uint16_t)(value < 0 ? 0 : value > 65535 ? 65535 : value);
}

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Does sqrt(SQUARES) / D + 257 * O + 1/2 reach the level? It does where sqrt(SQUARES) >= D (level - 257 * O - 1/2).
 * With O = p / r, both sides times 2r and squared, that is 4 r^2 SQUARES >= edge^2, unless the edge is below 0.
 *
 * sqrt(SQUARES) <= |s1| + |s2| < 2^40 and r <= 2^20, so the left side is below 2^122, and an edge from 2^61 on is out
 * of reach. The edge itself: D <= 2^30, |p| < 2^16 r, so it is below 2^77. */
HOST_DEVICE static inline bool root16_reaches(const struct root16 *root, uint128 squares, int level)
{
    const int128 r = root->denominator, p = root->numerator;
    const int128 edge = root->scale * (2 * r * level - 514 * p - r);
    return edge <= 0 || (edge < (int128)1 << 61 && 4 * (uint128)(r * r) * squares >= (uint128)(edge * edge));
}

/* The level of COMBINE_MAGNITUDE of two sums: the formula at struct root16. */
HOST_DEVICE static inline uint16_t root16_level(const struct root16 *root, double first, double second)
{
    int level = rounding16_apply(&root->rounding, sqrt(first * first + second * second));
    if (!root->fits) {
        const int64_t a = (int64_t)first, b = (int64_t)second;
        const uint128 squares = (uint128)((int128)a * a) + (uint128)((int128)b * b);
        while (level < 65535 && root16_reaches(root, squares, level + 1))
            level++;
        while (level > 0 && !root16_reaches(root, squares, level))
            level--;
    }
    return (uint16_t)level;
}

#ifdef __cplusplus
}
#endif

#endif
