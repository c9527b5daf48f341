/* SPDX-License-Identifier: MIT
 *
 * A small model of operations and bytes. The automatic choice uses it to compare variants, and CPU and GPU. It never
 * changes a result, because all variants that may be chosen return the same bytes.
 *
 * The constants were measured on one NVIDIA H200 and on one core of an EPYC with AVX-512. Other machines are slower or
 * faster by about the same factor for all variants. tests/variants/choice.py compares the choice with the committed
 * measurements, benchmarks/bench-h200.csv: the chosen variant may take at most 10% longer than the fastest. */
#include "variants/cost_model.h"

#include "base/vector/instruction_sets.h"
#include "cpu/cpu.h"
#include "kernels/tensor-core/arrange.h"
#include "plan/parts.h"
#include "plan/rounding.h"

#include <math.h>

/* ---- The GPU's variants ---- */

/* Each variant takes the time of its arithmetic or of its memory traffic, whichever is longer, and a launch. At 3.7 ps
 * a sample, 2^28 samples take 1 ms. */

static const double launch_seconds = 5e-6;
static const double byte_sample = 0.49e-12, word_sample = 0.97e-12, float_sample = 1.9e-12; /* in and out, as a copy */

static double gpu_seconds(const struct work *work, double sample_seconds)
{
    const double copy = work->sample == SAMPLE_U8    ? byte_sample
                        : work->sample == SAMPLE_U16 ? word_sample
                                                     : float_sample;
    return launch_seconds + work_samples(work) * fmax(sample_seconds, copy);
}

/* 2^28 samples take SAMPLE_SECONDS each. Fewer take longer: below some six million they are a single wave
 * of strips, and from there on the last wave takes up to STRIP more. */
static double strip_seconds(const struct work *work, double sample_seconds, double strip)
{
    return gpu_seconds(work, sample_seconds - strip / (1 << 28)) + strip * fmin(1, work_samples(work) / 6e6);
}

/* How the GPU sums samples of uint16_t: as a whole in floats, or as two halves in floats or in integers. */
enum sums { SUMS_WHOLE, SUMS_FLOAT, SUMS_INT };

static enum sums sums_of(const struct filter *filter)
{
    return sums_fit_float(filter, SAMPLE_U16) ? SUMS_WHOLE : sums_fit_float(filter, SAMPLE_U8) ? SUMS_FLOAT : SUMS_INT;
}

static double register_tiled_words(const struct filter *filter)
{
    const double taps = filter->width * filter->height;
    const bool walks = filter_is_centred_square(filter) && filter->width >= 3 && filter->width <= 9;
    switch (sums_of(filter)) {
    case SUMS_WHOLE:
        return walks ? 0.75e-12 + 0.041e-12 * taps : 1.5e-12 + 0.0548e-12 * taps;
    case SUMS_FLOAT:
        return walks ? 0.9e-12 + 0.075e-12 * taps : 4.3e-12 + 0.09e-12 * taps;
    default:
        return 2.4e-12 + 0.126e-12 * taps;
    }
}

static double separable_words(const struct filter *filter)
{
    const double taps = filter->width + filter->height;
    const bool walks = filter_is_centred_square(filter) && filter->width >= 3 && filter->width <= 15;
    switch (sums_of(filter)) {
    case SUMS_WHOLE:
        return walks ? 0.9e-12 + 0.042e-12 * taps + 0.00046e-12 * taps * taps : 2.2e-12 + 0.06e-12 * taps;
    case SUMS_FLOAT:
        return walks ? 0.8e-12 + 0.092e-12 * taps + 0.0007e-12 * taps * taps : 1.2e-12 + 0.14e-12 * taps;
    default:
        return walks ? 0.9e-12 + 0.106e-12 * taps + 0.0008e-12 * taps * taps
                     : 0.9e-12 + 0.17e-12 * taps + 0.0003e-12 * taps * taps;
    }
}

double register_tiled_cost(const struct filter *filter, const struct work *work)
{
    const double taps = filter->width * filter->height;
    const bool exact = sums_fit_float(filter, SAMPLE_U8); /* otherwise sums are integers, at half the rate */
    const bool any = !filter_is_centred_square(filter) || filter->width > 15;
    if (work->sample == SAMPLE_U16)
        return strip_seconds(work, register_tiled_words(filter), 36e-6);
    if (any) {
        if (work->sample == SAMPLE_F32)
            return gpu_seconds(work, fmax(1.12 * float_sample, 1.3e-12 + 0.044e-12 * taps));
        return gpu_seconds(work, exact ? 2.5e-12 + 0.058e-12 * taps : 4.5e-12 + 0.064e-12 * taps);
    }
    if (work->sample == SAMPLE_F32)
        return gpu_seconds(work, fmax(1.15 * float_sample, 0.0405e-12 * taps));
    return gpu_seconds(work, 0.37e-12 + (exact ? 0.043e-12 : 0.067e-12) * taps);
}

double separable_cost(const struct filter *filter, const struct work *work)
{
    const double taps = filter->width + filter->height;
    const bool walks = filter_is_centred_square(filter) && filter->width >= 3 &&
                       filter->width <= (work->sample == SAMPLE_F32 ? 31 : 15);
    if (work->sample == SAMPLE_U16)
        return strip_seconds(work, separable_words(filter), 36e-6);
    if (work->sample == SAMPLE_F32)
        return gpu_seconds(work,
                           walks ? fmax(1.1 * float_sample, 1e-12 + 0.043e-12 * taps) : 2.45e-12 + 0.0862e-12 * taps);
    return gpu_seconds(work,
                       walks ? 0.6e-12 + 0.04e-12 * taps + 0.00086e-12 * taps * taps : 2.3e-12 + 0.103e-12 * taps);
}

/* The two passes of tensor-core, in seconds a sample. */
static double passes_sample_seconds(const struct tensor_arrangement *a)
{
    const bool large = a->window == 3;
    if (a->parts == 2)
        return large ? 1.23e-12 : 0.99e-12;
    if (a->level == LEVEL_ANY)
        return a->planes == 3 ? 1.16e-12 : 0.84e-12;
    if (a->planes == 3)
        return 0.78e-12;
    return a->level == LEVEL_SHIFT ? (large ? 0.62e-12 : 0.58e-12) : (large ? 0.71e-12 : 0.61e-12);
}

double tensor_core_cost(const struct filter *filter, const struct work *work)
{
    struct tensor_arrangement a;
    const double words = (filter->width + 11) / 4;
    if (work->sample == SAMPLE_F32) {
        tensor_arrange_float(filter, (size_t)wide_shared_max, &a);
        if (a.kernel == TENSOR_NONE)
            return register_tiled_cost(filter, work);
        const bool two_blocks = a.shared <= (size_t)113 * 1024; /* a multiprocessor has 228 KB of shared memory */
        return gpu_seconds(work, (two_blocks ? 1 : 1.25) * (3.8e-12 + 0.25e-12 * a.blocks * (a.height / 2)));
    }
    if (work->sample == SAMPLE_U16) {
        tensor_arrange_16(filter, &a);
        return strip_seconds(work, 0.94e-12 + (0.41e-12 + 0.0166e-12 * words * filter->height) * a.parts, 8e-6);
    }
    tensor_arrange(filter, true, true, &a); /* as on the H200 */
    switch (a.kernel) {
    case TENSOR_WALK:
        return gpu_seconds(work, 0.52e-12 + (0.011e-12 + 0.035e-12 * (a.parts - 1)) * filter->height);
    case TENSOR_PASSES:
        return gpu_seconds(work, passes_sample_seconds(&a));
    case TENSOR_WIDE:
        return gpu_seconds(work, 0.35e-12 + 0.0417e-12 * a.terms * a.parts);
    default:
        break;
    }
    return gpu_seconds(work, 0.75e-12 + 0.0089e-12 * words * filter->height * a.parts);
}

double sparse_cost(const struct filter *filter, const struct work *work)
{
    const double taps = filter_tap_count(filter);
    if (work->sample == SAMPLE_F32)
        return gpu_seconds(work, fmax(1.9e-12 + 0.075e-12 * taps, 0.9e-12 + 0.151e-12 * taps));
    return gpu_seconds(work, 0.93e-12 + 0.0925e-12 * taps);
}

double blur_cost(const struct filter *filter, const struct work *work)
{
    const bool is_16_bit = work->sample == SAMPLE_U16;
    const double taps = filter->width + filter->height;
    const double blocks = (filter->width + 22 + 31) / 32 + (filter->height + 15 + 31) / 32; /* blocks of 32 terms */
    /* The more blocks, the more shared memory a column takes, and the fewer warps work. */
    const double fused = is_16_bit ? 1.4e-12 + 0.25e-12 * blocks + 0.0175e-12 * blocks * blocks
                                   : 0.6e-12 + 0.35e-12 * blocks + 0.0028e-12 * blocks * blocks;
    const double two_launches = is_16_bit ? 4.0e-12 + 0.0088e-12 * taps : 2.45e-12 + 0.00385e-12 * taps; /* on 9.0 */
    return gpu_seconds(work, fmin(fused, two_launches));
}

/* Measured on an H100: 37 to 1021 taps a side, three planes of 15 million samples. */
double passes_cost(const struct filter *filter, const struct work *work)
{
    return launch_seconds + gpu_seconds(work, 4.5e-12 + 0.055e-12 * (filter->width + filter->height));
}

double running_sums_cost(const struct filter *filter, const struct work *work)
{
    const double side = (filter->width + filter->height) / 2.0; /* mean side of the window, in samples */
    return strip_seconds(work, work->sample == SAMPLE_U16 ? 2.1e-12 + 0.0063e-12 * side : 1.3e-12 + 0.005e-12 * side,
                         50e-6);
}

double copy_cost(const struct filter *filter, const struct work *work)
{
    (void)filter;
    return gpu_seconds(work, 0);
}

double point_cost(const struct filter *filter, const struct work *work)
{
    (void)filter;
    return gpu_seconds(work, 0);
}

/* Measured on an H200 with 44 million samples. Histograms move along both ends of a window. Where columns are put in
 * order instead, a row changes about as many samples as the window is wide, and each is a look at all columns. */
double rank_cost(const struct filter *filter, const struct work *work)
{
    const struct rank *rank = &filter->rank;
    const bool is_u8 = work->sample == SAMPLE_U8, is_whole = rank->count == rank->width * rank->height;
    const double bytes = is_u8 ? 1 : work->sample == SAMPLE_U16 ? 2 : 4;
    const bool is_extreme = rank->form != RANK_ONE || rank->index == 0 || rank->index == rank->count - 1;
    const double side = fmax(rank->width, rank->height), passes = rank->form == RANK_ONE ? 1 : 2;
    if (is_whole && is_extreme)
        return gpu_seconds(work, passes * (1e-12 + 1e-12 * bytes + 0.04e-12 * side));
    if (is_whole && side <= 5 && rank->index == rank->count / 2)
        return gpu_seconds(work, (0.5e-12 + 0.15e-12 * bytes) * side);
    if (is_u8)
        return gpu_seconds(work, passes * (15e-12 + 1.4e-12 * side) * (is_whole ? 1 : 2));
    return gpu_seconds(work, passes * (20e-12 + (is_whole ? 0.6e-12 : bytes * 1e-12) * side * side));
}

double gradient_cost(const struct filter *filter, const struct work *work)
{
    const double taps = filter_grids(filter) * filter->width * filter->height;
    if (work->sample == SAMPLE_U8 && filter_is_centred_square(filter) && filter->width == 3) /* usually slopes */
        return gpu_seconds(work, 0.9e-12);
    if (work->sample == SAMPLE_U16 && filter_is_centred_square(filter) && filter->width == 3)
        return gpu_seconds(work, 1.44e-12);
    if (work->sample == SAMPLE_U16)
        return gpu_seconds(work, 0.078e-12 * taps + 6.1e-12);
    return gpu_seconds(work, 0.11e-12 * taps + 3.3e-12);
}

double resample_cost(const struct filter *filter, const struct work *work)
{
    const struct resize_work passes = filter_resize_work(filter, work->width, work->height);
    const double seconds = work->sample == SAMPLE_U8 ? 0.09e-12 * passes.columns + 0.17e-12 * passes.rows
                                                     : 0.65e-12 * (passes.columns + 1.5 * passes.rows);
    /* Pillow's sums are no products of matrices: some 7 times as long as those, and the work counts each tap twice. */
    const double factor = filter_is_pillow(filter) ? 3.5 : 1;
    return gpu_seconds(work, factor * work->planes * seconds / work_samples(work));
}

/* ---- The CPU's variants ---- */

static int work_threads(const struct work *work)
{
    return work->threads > 0 ? work->threads : 1;
}

/* The seconds of one core with the fastest instruction set. */
static double resample_seconds(const struct filter *filter, const struct work *work)
{
    const struct resize_work passes = filter_resize_work(filter, work->width, work->height);
    return work->planes * (work->sample == SAMPLE_U8 ? 0.055e-9 : 0.14e-9) * (passes.columns + passes.rows);
}

double reference_resample_cost(const struct filter *filter, const struct work *work)
{
    return 20 * resample_seconds(filter, work) / work_threads(work);
}

/* Rows that become columns take as long as the caches are slow, whatever the instruction set. */
double cpu_move_cost(const struct filter *filter, const struct work *work)
{
    int width = work->width, height = work->height;
    filter_resize(filter, &width, &height, NULL);
    const double sample = filter->move.orientation > 1 ? 0.6e-9 : 0.05e-9;
    return sample * width * height * work->planes * (double)sample_bytes(work->sample) / work_threads(work);
}

double cpu_squares_cost(const struct filter *filter, const struct work *work)
{
    (void)filter;
    return 0.5e-9 * work_samples(work) / work_threads(work);
}

double reference_rank_cost(const struct filter *filter, const struct work *work)
{
    return work_samples(work) * filter->rank.count * 30e-9 / work_threads(work);
}

/* Vectors find the lowest and highest samples, and small medians. Other rectangles of 8 bits take a bisection of
 * levels, and the others a histogram, into which samples enter at the footprint's edges. */
double cpu_rank_cost(const struct filter *filter, const struct work *work)
{
    const struct rank *rank = &filter->rank;
    const bool is_end = rank->form != RANK_ONE || rank->index == 0 || rank->index == rank->count - 1;
    const bool is_rectangle = rank->count == rank->width * rank->height;
    const double nanoseconds = is_end || (is_rectangle && rank->count <= 25) ? 1
                               : is_rectangle && work->sample == SAMPLE_U8   ? 13
                                                                             : 50 + 3 * rank->height;
    return nanoseconds * 1e-9 * work_samples(work) / work_threads(work);
}

/* A table of bytes takes shuffles, with AVX2 and later. A matrix reads three samples for each. */
double cpu_point_cost(const struct filter *filter, const struct work *work)
{
    const double sample = filter->point.rows > 0 ? 0.3e-9 : 0.15e-9;
    return sample * work_samples(work) * (work->sample == SAMPLE_U8 ? 1 : 2) / work_threads(work);
}

double reference_cost(const struct filter *filter, const struct work *work)
{
    return work_samples(work) * (filter_multiply_adds(filter) + 10) * 1e-9 / work_threads(work);
}

/* How many times slower this machine's instruction set is than AVX-512 with VNNI. Only dense filters with taps of 8
 * bits multiply four of them at once there. The factors of x86-64 are those of one core of an EPYC (Zen 5), which ran
 * all of the sets. Those of ARM64 are estimates. */
static double instruction_set_factor(bool multiplies_fours)
{
    static const struct factors {
        double fours, others;
    } factors[INSTRUCTION_SETS] = {
        [SET_VNNI] = {1, 1}, [SET_AVX512] = {1.9, 1.1}, [SET_AVX2] = {3, 1.7},    [SET_SSE2] = {6, 3},
        [SET_I8MM] = {4, 4}, [SET_NEON] = {5, 5},       [SET_PORTABLE] = {11, 9},
    };
    enum instruction_set set;
    const struct factors *of = &factors[instruction_set_find(&set, NULL) ? set : SET_PORTABLE];
    return multiplies_fours ? of->fours : of->others;
}

/* The number of 8-bit parts of the filter's largest tap. */
static int largest_parts(const struct filter *filter)
{
    int max = 1;
    for (int i = 0; !filter->two_pass && i < filter_grids(filter) * filter->width * filter->height; i++) {
        const int parts = tap_parts(filter->taps[i], 8);
        max = parts > max ? parts : max;
    }
    return max;
}

/* The filter and the planes as the variant `cpu` takes them (cpu/thin.c): narrow planes are transposed or cut, and taps
 * reach no further than the planes. */
struct shape {
    double columns, rows; /* columns and rows of taps */
    double width, height;
    bool is_narrow;
};

static struct shape work_shape(const struct filter *filter, const struct work *work, bool slides)
{
    struct shape s = {filter->width, filter->height, work->width, work->height,
                      cpu_widens_planes(filter, slides, work->width, work->height)};
    if (s.is_narrow && (slides || !filter->two_pass))
        s = (struct shape){s.rows, s.columns, s.height, s.width, true};
    if (!slides) {
        s.columns = fmin(s.columns, 2 * s.width + 1);
        s.rows = fmin(s.rows, 2 * s.height + 1);
    }
    return s;
}

/* Rows, or columns, that are read for each one that is written, in planes of SIZE. The constants below contain the halo
 * of large planes. */
static double with_halo(double taps, double size)
{
    return fmax(1, 0.75 + taps / size);
}

/* The taps of a row pass and a column pass for one sample. */
static double pass_taps(const struct filter *filter, const struct shape *s)
{
    const bool is_cut = s->is_narrow && filter->two_pass;
    return (s->columns * with_halo(s->rows, s->height) + s->rows) * (is_cut ? with_halo(s->columns, s->width) : 1);
}

/* Filters in two passes, measured on one core of another AVX-512 machine. Sums beyond 32 bits take a column pass in
 * doubles. */
static double cpu_passes_sample_seconds(const struct filter *filter, const struct shape *s, enum sample sample)
{
    const double taps = pass_taps(filter, s);
    if (sample == SAMPLE_F32)
        return 0.022e-9 * taps * instruction_set_factor(false) + 0.1e-9;
    if (filter_is_box(filter)) /* running sums */
        return (0.25e-9 * instruction_set_factor(false) + 2e-9) * with_halo(s->columns, s->width) *
               with_halo(fmin(s->rows, s->height), s->height);
    if (sample == SAMPLE_U16)
        return 0.034e-9 * taps * instruction_set_factor(false) + 1.2e-9;
    return 0.0145e-9 * taps * instruction_set_factor(false) + 0.35e-9;
}

double cpu_resample_cost(const struct filter *filter, const struct work *work)
{
    return resample_seconds(filter, work) * instruction_set_factor(false) / work_threads(work);
}

double cpu_cost(const struct filter *filter, const struct work *work)
{
    const bool slides = filter->two_pass && filter_is_box(filter);
    const struct shape s = work_shape(filter, work, slides);
    const double copies = s.is_narrow ? 0.8e-9 : 0; /* seconds a sample for copies of narrow planes */
    if (filter->two_pass)
        return work_samples(work) * (cpu_passes_sample_seconds(filter, &s, work->sample) + copies) / work_threads(work);
    const double joined = s.columns * s.rows / (filter->width * filter->height);
    const double taps = filter_tap_count(filter) * joined, passes = pass_taps(filter, &s);
    if (work->sample == SAMPLE_U16) { /* two taps an instruction; sums above 32 bits have two parts */
        const double parts = filter->absolute_sum > INT16_MAX ? 2 : 1;
        const double dense = 0.010e-9 * parts * taps, separable = 0.025e-9 * parts * passes;
        const double min = filter->separable && separable < dense ? separable : dense;
        return work_samples(work) * (min * instruction_set_factor(false) + 0.25e-9 + copies) / work_threads(work);
    }
    const bool fours = work->sample == SAMPLE_U8 && largest_parts(filter) == 1;
    const double dense_tap = work->sample == SAMPLE_F32 ? 0.023e-9 : fours ? 0.005e-9 : 0.011e-9;
    const double dense = dense_tap * taps * instruction_set_factor(fours);
    const double separable = 0.022e-9 * passes * instruction_set_factor(false);
    const double min = filter->separable && separable < dense ? separable : dense;
    return work_samples(work) * (min + 0.1e-9 + copies) / work_threads(work);
}
