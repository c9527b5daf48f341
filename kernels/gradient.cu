/* SPDX-License-Identifier: MIT
 *
 * gradient: the work of src/cpu/ on the GPU, for filters of two grids. One walk over the input computes both sums of an
 * output and joins them in registers.
 *
 * Edge filters such as sobel, prewitt and scharr are a slope in x and the same slope in y:
 *
 *     -p  0  p     -p -q -p        d = right - left              s1 = p d(above) + q d + p d(below)
 *     -q  0  q      0  0  0        t = p (left + right) + q mid  s2 = t(below) - t(above)
 *     -p  0  p      p  q  p
 * d and t of a row are computed once, and the three rows of outputs around it use both. So both sums take 8 operations,
 * or 6 if p is 1, instead of 12 for all taps that are not 0. Each thread walks down a strip of 8 columns, or 4 of
 * uint16_t. Loads: 8 bytes per row, and the samples on both sides, which are in L1; 4 rows ahead, in registers. Sums
 * are floats, and exact. If floats are not exact, for planes of float, and for all other grids there is the general
 * kernel.
 *
 * The root: magnitude is the greatest n with n <= (sqrt(N) + x) / D, N = s1^2 + s2^2, x = D (O + 1/2). For integers N
 * this is N >= steps[n]. The GPU's sqrt.approx errs by at most 2^-23 of its result. The code allows twice that to be
 * safe.
 *
 *     ROOT_QUICK  no N is so near to a step that the error could matter: is_quick checks all of them
 *     ROOT_FIXED  n is computed with an excess, so that it is right or one too large; the exact test says which.
 *                 root_fits_float is true (rounding.h), so k = D n - x is exact, and so is the sign of N - k |k|,
 *                 because a fused multiply-add rounds once
 *     ROOT_STEPS  the filter's steps, in 64 bits, for sums of any size: eight comparisons
 *
 * For planes of uint16_t, slopes have a root like ROOT_FIXED, whose test uses the rounding errors of its products
 * (slope_root16). The general kernel computes the root in doubles. If they may be wrong, it is tested in 128 bits
 * (root16_level).
 *
 * Limits: filters of two grids. */
#include "kernels/shared/strip.cuh"

#include <math.h>
#include <stddef.h>

template <typename T>
static constexpr int span = 8 / (int)sizeof(T); /* columns of a thread: a load of 8 bytes */

static constexpr int ahead = 4; /* rows on their way, so that 20 warps have 20 KB of new bytes under way */
static constexpr int slope_warps = 4, slope_blocks = 5; /* per multiprocessor: 96 registers per thread */
static constexpr int slope_rows = 62; /* rows of a strip, at most; with the two halo rows, a multiple of `ahead` */

enum root_way { ROOT_QUICK, ROOT_FIXED, ROOT_STEPS };

/* The numbers that join two sums, other than those of the launch. */
struct join {
    enum combine combine;
    enum root_way way;
    float scale, bias;    /* saturate(sqrt(N) scale + bias) * 255 is the level, and with ROOT_FIXED a little more; for
                           * planes of uint16_t, times 65535 */
    float factor, term;   /* D and x */
    struct root16 root16; /* for planes of uint16_t */
};

/* Both taps at each position of the grids, if constant memory is large enough for them. */
static __constant__ uint2 pairs[max_taps / 2];

/* The other input of the general kernel: the steps, and the taps of larger grids. */
struct table {
    int64_t steps[FILTER_LEVELS];
    uint2 taps[max_taps];
};

/* 2^-8 is more than the sum of all errors of 255 v. sqrt(N) / D and |x| / D are at most 2^12. For these, sqrt.approx
 * errs by 2^-22, and scale, bias and their sum by 2^-24 each; or by 2^-24 of 256, the scale of v. Together:
 * 2^12 (2^-22 + 3 * 2^-24) + 2^-15 < 2^-9 + 2^-15. */
static constexpr float excess = 1.0f / 256;

/* Is every N farther from its level's ends than ROOT_QUICK may err? The errors are as at `excess`, but sqrt(N) / D
 * matters only up to 256 + x / D. So all errors together are below 2^-21 of 256 + 2 x / D. */
static bool is_quick(const struct filter *filter, double x)
{
    const double scale = filter->scale, margin = ldexp(256 + 2 * x / scale, -21);
    for (int n = 1; n < FILTER_LEVELS; n++) {
        const double step = (double)filter->steps[n];
        if (!((sqrt(step) + x) / scale - n >= margin) || (step > 0 && !(n - (sqrt(step - 1) + x) / scale >= margin)))
            return false;
    }
    return true;
}

/* For planes of uint16_t. 2^-3 is more than the sum of all errors of 65535 v. sqrt(N) / D and x / D are at most 2^16 +
 * 1: larger ones saturate v. N errs by 2^-23 of itself, and so its root by 2^-24; sqrt.approx by 2^-22; scale, bias and
 * their sum as at `excess`. Together: 2^16 (2^-22 + 4 * 2^-24) + 2^-7 < 2^-4. */
static constexpr float excess16 = 1.0f / 8;

/* Sums of a slope of uint16_t, and D times the highest level, are at most this: the test in slope_root16 is exact. */
static constexpr int max_slope16 = 1 << 21;

/* Can slope_root16 find the levels? Its x = D (257 O + 1/2) must be an integer or a half, from 0 to 2^21. */
static bool root_fits_float16(const struct filter *filter, double *x)
{
    if (filter->combine != COMBINE_MAGNITUDE || (int64_t)filter->scale * 65535 > max_slope16 || filter->offset < 0 ||
        filter->offset > 255)
        return false;
    const int64_t above = (int64_t)filter->scale * 257 * filter->offset_numerator, below = filter->offset_denominator;
    *x = (double)(above / below) + filter->scale / 2.0;
    return above % below == 0;
}

static struct join join_of(const struct plan *plan)
{
    const struct filter *filter = plan->filter;
    struct join join = {};
    join.combine = filter->combine;
    join.root16 = plan->root16;
    join.way = ROOT_STEPS;
    const bool is_16_bit = plan->sample == SAMPLE_U16;
    double x = plan->twice_bias / 2.0;
    if (is_16_bit ? !root_fits_float16(filter, &x) : !plan->root_in_float)
        return join;
    join.way = !is_16_bit && is_quick(filter, x) ? ROOT_QUICK : ROOT_FIXED;
    const double highest = is_16_bit ? 65535 : 255, raise = is_16_bit ? excess16 : excess;
    join.scale = (float)(1 / (highest * filter->scale));
    join.bias = (float)((x / filter->scale + (join.way == ROOT_FIXED ? raise : 0)) / highest);
    join.factor = (float)filter->scale;
    join.term = (float)x;
    return join;
}

/* A level of uint8_t in the last byte. */
template <bool FIXED>
static __device__ __forceinline__ uint32_t root(const struct join &join, float first, float second)
{
    const float squares = fmaf(first, first, second * second);
    const float size = quick_root(squares);
    const float level = __fmaf_rd(__saturatef(fmaf(size, join.scale, join.bias)), 255, 8388608); /* 2^23 + level */
    if (!FIXED)
        return __float_as_uint(level);
    const float k = fmaf(level - 8388608, join.factor, -join.term);
    const float rest = fmaf(-k, fabsf(k), squares); /* negative if the level is one too large */
    return __float_as_uint(level) + (uint32_t)(__float_as_int(rest) >> 31);
}

/* A level of uint16_t in the last two bytes.
 *
 * The level n has an excess, so it is right or one too large. It is right if N = s1^2 + s2^2 >= k^2, k = D n - x, or if
 * k is negative, as for n = 0. N - k^2 = s1^2 + (s2 - k)(s2 + k). With h the rounded product, l its rounding error, and
 * y = s1^2 + h, rounded, the test is the sign of y + l. |s1|, |s2| and k are at most 2^21, and all numbers are
 * multiples of 1/4. If |s1^2 + h| < 2^22, y is exact, and the sign is right. Otherwise |l| <= 2^-24 |h| <= 2^20 is less
 * than |y|.
 */
static __device__ __forceinline__ uint32_t slope_root16(const struct join &join, float first, float second)
{
    const float size = quick_root(fmaf(first, first, second * second));
    const float level = __fmaf_rd(__saturatef(fmaf(size, join.scale, join.bias)), 65535, 8388608); /* 2^23 + level */
    const float k = fmaxf(fmaf(level - 8388608, join.factor, -join.term), 0);
    const float less = second - k, more = second + k, product = less * more;
    /* Negative if the level is one too large. */
    const float rest = fmaf(first, first, product) + fmaf(less, more, -product);
    return __float_as_uint(level) + (uint32_t)(__float_as_int(rest) >> 31);
}

/* Convert the two sums of a slope to a level in the last bytes. */
template <typename T, int COMBINE, bool QUICK>
static __device__ __forceinline__ uint32_t finish_slope(const struct launch &launch, const struct join &join,
                                                        const struct level &level, float first, float second)
{
    if (COMBINE == COMBINE_MAGNITUDE)
        return sizeof(T) == 2 ? slope_root16(join, first, second) : root<!QUICK>(join, first, second);
    const float a = fabsf(first), b = fabsf(second), sum = COMBINE == COMBINE_MAX ? fmaxf(a, b) : a + b;
    if (sizeof(T) == 2)
        return (uint32_t)min(max(level16(launch, sum), 0), 65535);
    if (QUICK)
        return finish_quick(level, sum);
    uint8_t byte;
    finish(launch, sum, &byte);
    return byte;
}

/* The last bytes of a word's levels. */
template <typename T>
static __device__ __forceinline__ uint32_t pack_levels(const uint32_t *levels)
{
    if constexpr (sizeof(T) == 1)
        return pack_bytes(levels[0], levels[1], levels[2], levels[3]);
    else
        return __byte_perm(levels[0], levels[1], 0x5410);
}

/* The weights of a slope, and the rows and columns that border_index gives for those just outside the image. */
struct slope {
    float outer, inner; /* p, q */
    int left, right, top, bottom;
};

/* The bytes of a row that a thread reads. */
struct row_bytes {
    uint2 middle;
    uint32_t left, right; /* samples */
};

template <typename T>
static __device__ __forceinline__ uint32_t sample_at(const T *row, int x)
{
    return x < 0 ? 0 : row[x];
}

/* Row y, from -1 to the image's height; further below, any row. PLAIN says that the thread's columns and the two next
 * to them are inside. */
template <typename T>
static __device__ __forceinline__ row_bytes read_row(const struct launch &launch, const struct slope &slope, bool plain,
                                                     int y, int x)
{
    row_bytes bytes = {make_uint2(0, 0), 0, 0};
    const int from_y = y < 0 ? slope.top : y < launch.height ? y : slope.bottom;
    if (from_y < 0)
        return bytes;
    const T *row = in_row<T>(launch, from_y);
    if (plain) {
        const T *from = row + x;
        bytes.middle = *(const uint2 *)from;
        bytes.left = from[-1];
        bytes.right = from[span<T>];
        return bytes;
    }
    bytes.left = sample_at(row, x > 0 ? x - 1 : slope.left);
    bytes.right = sample_at(row, x + span<T> < launch.width ? x + span<T> : slope.right);
    if (x + span<T> <= launch.width) {
        bytes.middle = *(const uint2 *)(row + x);
        return bytes;
    }
#pragma unroll 1
    for (int k = 0; k <= launch.width - x; k++) { /* outputs inside need only the first column outside */
        const uint32_t sample = k < launch.width - x ? row[x + k] : bytes.right;
        constexpr int half = span<T> / 2, bits = 8 * (int)sizeof(T);
        bytes.middle.x |= k < half ? sample << bits * k : 0;
        bytes.middle.y |= k < half ? 0 : sample << bits * (k - half);
    }
    return bytes;
}

/* Byte K of a word as the float 2^15 + byte. That needs no conversion, only a byte permutation: with the exponent of
 * 2^15, the second byte counts ones. Differences lose the 2^15 again, and so does t(below) - t(above). All numbers in
 * it are integers below 2^24 as long as 2 p + |q| is at most max_weight. */
static __device__ __forceinline__ float raised(uint32_t word, int k)
{
    return __uint_as_float(__byte_perm(word, 0x47000000, 0x7404 + 16 * k));
}

static constexpr int max_weight = 507;
static_assert(max_weight * ((1 << 15) + 255) < 1 << 24, "float holds all integers up to 2^24");

static constexpr int max_weight16 = max_slope16 / 65535;

/* Sample K of a word as a float, raised or not. */
template <typename T>
static __device__ __forceinline__ float slope_sample(uint32_t word, int k)
{
    if constexpr (sizeof(T) == 1)
        return raised(word, k);
    else
        return word_as<float>(word, k);
}

/* COMBINE is the filter's. QUICK is for samples of uint8_t: the root is ROOT_QUICK, or the sum is quick (quads.cuh).
 * UNIT says that p is 1. */
template <typename T, int COMBINE, bool QUICK, bool UNIT>
static __global__ void __launch_bounds__(32 * slope_warps, slope_blocks)
    gradient_slope(const __grid_constant__ struct launch launch, const __grid_constant__ struct slope slope,
                   const __grid_constant__ struct join join, const __grid_constant__ struct level level)
{
    constexpr int columns = span<T>, half = columns / 2;
    const int2 tile = block_tile(launch);
    const int x = ((tile.x * slope_warps + (int)threadIdx.y) * 32 + (int)threadIdx.x) * columns;
    const int y = tile.y * launch.strip, rows = min(launch.strip, launch.height - y);
    if (x >= launch.width)
        return;
    const bool plain = x > 0 && x + columns < launch.width, whole = x + columns <= launch.width;
    /* Are all rows of the input inside the image, too, and are there only whole iterations? */
    const bool clear = plain && y > 0 && y + rows < launch.height && rows == launch.strip;
    row_bytes bytes[ahead];
#pragma unroll
    for (int k = 0; k < ahead; k++)
        bytes[k] = read_row<T>(launch, slope, plain, y - 1 + k, x);

    /* At row r of the strip's input: `first` has the share of rows r - 2 and r - 1 in the first sum of the outputs of
     * row r - 1. `next` has the share of row r - 1 in that of row r. The others are t of both rows. */
    float first[columns] = {}, next[columns] = {}, above[columns] = {}, middle[columns] = {};
    const T *from =
        (const T *)(launch.in + blockIdx.z * launch.in_plane + (int64_t)(y - 1 + ahead) * (int64_t)launch.in_row) + x;
    T *to = out_row<T>(launch, y) + x;
    int r = 0;
    auto take_step = [&](auto is_steady) {
        constexpr bool steady = decltype(is_steady)::value;
#pragma unroll
        for (int k = 0; k < ahead; k++) {
            float v[columns + 2];
            v[0] = slope_sample<T>(bytes[k].left, 0);
            v[columns + 1] = slope_sample<T>(bytes[k].right, 0);
#pragma unroll
            for (int c = 0; c < columns; c++)
                v[1 + c] = slope_sample<T>(c < half ? bytes[k].middle.x : bytes[k].middle.y, c % half);
            if (steady) {
                bytes[k].middle = *(const uint2 *)from;
                bytes[k].left = from[-1];
                bytes[k].right = from[columns];
                from = next_row(from, launch.in_row);
            } else if (r + k + ahead < rows + 2) {
                bytes[k] = read_row<T>(launch, slope, plain, y - 1 + r + k + ahead, x);
            }
            uint32_t out[columns];
#pragma unroll
            for (int c = 0; c < columns; c++) {
                const float d = v[c + 2] - v[c], both = v[c] + v[c + 2];
                const float t = fmaf(slope.inner, v[c + 1], UNIT ? both : slope.outer * both);
                const float s1 = UNIT ? first[c] + d : fmaf(slope.outer, d, first[c]), s2 = t - above[c];
                first[c] = fmaf(slope.inner, d, next[c]);
                next[c] = UNIT ? d : slope.outer * d;
                above[c] = middle[c];
                middle[c] = t;
                out[c] = finish_slope<T, COMBINE, QUICK>(launch, join, level, s1, s2);
            }
            if (!steady && (r + k < 2 || r + k >= rows + 2))
                continue;
            const uint2 words = make_uint2(pack_levels<T>(out), pack_levels<T>(out + half));
            if (steady || whole) {
                __stcs((uint2 *)to, words);
            } else {
#pragma unroll 1
                for (int c = 0; c < launch.width - x; c++)
                    to[c] = (T)((c < half ? words.x : words.y) >> 8 * (int)sizeof(T) * (c % half));
            }
            to = next_row(to, launch.out_row);
        }
        r += ahead;
    };
    take_step(known<false>());
    if (clear) {
        from = next_row(from, ahead * launch.in_row);
#pragma unroll 1
        while (r + ahead < rows + 2)
            take_step(known<true>());
    }
#pragma unroll 1
    while (r < rows + 2)
        take_step(known<false>());
}

/* ---- Any grids ---- */

static constexpr int general_rows = 4, general_warps = 4;

/* Two sums to a sample. */
static __device__ __forceinline__ void join_sums(const struct launch &launch, const struct join &join,
                                                 const int64_t *steps, int first, int second, uint8_t *to)
{
    if (join.combine != COMBINE_MAGNITUDE)
        *to = finish_sum(launch, join.combine == COMBINE_MAX ? max(abs(first), abs(second)) : abs(first) + abs(second));
    else if (join.way == ROOT_STEPS)
        *to = root_level(steps, first, second);
    else if (join.way == ROOT_FIXED)
        *to = (uint8_t)root<true>(join, (float)first, (float)second);
    else
        *to = (uint8_t)root<false>(join, (float)first, (float)second);
}

static __device__ __forceinline__ void join_sums(const struct launch &launch, const struct join &join,
                                                 const int64_t *steps, float first, float second, uint8_t *to)
{
    join_sums(launch, join, steps, __float2int_rn(first), __float2int_rn(second), to);
}

static __device__ __forceinline__ void join_sums(const struct launch &launch, const struct join &join, const int64_t *,
                                                 float first, float second, float *to)
{
    const float a = fabsf(first), b = fabsf(second);
    const float sum = join.combine == COMBINE_MAGNITUDE ? sqrtf(fmaf(a, a, b * b))
                      : join.combine == COMBINE_MAX     ? fmaxf(a, b)
                                                        : a + b;
    *to = sum + launch.offset;
}

template <typename Sum>
static __device__ __forceinline__ void join_sums(const struct launch &launch, const struct join &join, const int64_t *,
                                                 const Sum &first, const Sum &second, uint16_t *to)
{
    const struct rounding16 rounding = rounding16_of(launch);
    const double a = fabs(whole_of(first)), b = fabs(whole_of(second));
    *to = join.combine == COMBINE_MAGNITUDE
              ? root16_level(&join.root16, a, b)
              : rounding16_apply(&rounding, join.combine == COMBINE_MAX ? fmax(a, b) : a + b);
}

/* Each row passes in quads. Two of them are in registers at a time, as in register-tiled. */
template <typename T, typename Sum, bool SMALL>
static __global__ void __launch_bounds__(32 * general_warps)
    gradient_general(const __grid_constant__ struct launch launch, const __grid_constant__ struct join join,
                     const struct table *__restrict__ table)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * strip_width + (int)threadIdx.x * columns;
    const int y = (tile.y * general_warps + (int)threadIdx.y) * general_rows;
    if (x >= launch.width || y >= launch.height)
        return;
    Sum first[general_rows][columns] = {}, second[general_rows][columns] = {};
    const int lead = lead_of(launch.anchor_x), left = x - launch.anchor_x;
    for (int r = 0; r < general_rows + launch.filter_height - 1; r++) {
        const int from_y = border_index(y - launch.anchor_y + r, launch.height, launch.border);
        quad<Sum> next = load_quad<T, Sum>(launch, from_y, left - lead);
        for (int j0 = -lead; j0 < launch.filter_width; j0 += 4) {
            const quad<Sum> here = next;
            next = load_quad<T, Sum>(launch, from_y, left + j0 + 4);
            const Sum v[8] = {here.v[0], here.v[1], here.v[2], here.v[3], next.v[0], next.v[1], next.v[2], next.v[3]};
#pragma unroll
            for (int k = 0; k < general_rows; k++) {
                const int i = r - k;
                if (i < 0 || i >= launch.filter_height)
                    continue;
#pragma unroll
                for (int u = 0; u < 4; u++) {
                    if (j0 + u < 0 || j0 + u >= launch.filter_width)
                        continue;
                    const int at = i * launch.filter_width + j0 + u;
                    const uint2 tap = SMALL ? pairs[at] : __ldg(&table->taps[at]);
#pragma unroll
                    for (int c = 0; c < columns; c++) {
                        first[k][c] += weight<tap_of<Sum>>(tap.x) * v[u + c];
                        second[k][c] += weight<tap_of<Sum>>(tap.y) * v[u + c];
                    }
                }
            }
        }
    }
#pragma unroll 1
    for (int k = 0; k < general_rows; k++) {
        if (y + k >= launch.height)
            break;
        T *to = out_row<T>(launch, y + k) + x;
        T four[columns];
#pragma unroll
        for (int c = 0; c < columns; c++)
            join_sums(launch, join, table->steps, first[k][c], second[k][c], &four[c]);
#pragma unroll
        for (int c = 0; c < columns; c++)
            if (x + c < launch.width)
                to[c] = four[c];
    }
}

/* Are the grids a slope in x and the same slope in y, and are the weights of a row at most MAX in all? Order and
 * signs do not matter, because no way to join the sums depends on them. */
static bool find_slope(const struct filter *filter, int max, struct slope *slope)
{
    if (!filter_is_centred_square(filter) || filter->width != 3)
        return false;
    for (int order = 0; order < 2; order++) {
        const int32_t *across = filter->taps + 9 * order, *down = filter->taps + 9 * (1 - order);
        const int32_t outer = across[2], inner = across[5];
        const int32_t sign = down[6] == outer && down[7] == inner ? 1 : -1;
        bool same = true;
        for (int k = 0; k < 9; k++) {
            same &= across[k] == (k % 3 - 1) * (k / 3 == 1 ? inner : outer);
            same &= down[k] == sign * (k / 3 - 1) * (k % 3 == 1 ? inner : outer);
        }
        if (!same || 2 * abs(outer) + abs(inner) > max)
            continue;
        slope->outer = (float)(outer < 0 ? -outer : outer);
        slope->inner = (float)(outer < 0 ? -inner : inner);
        return true;
    }
    return false;
}

extern "C" bool gradient_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    const int count = filter->width * filter->height;
    struct table table;
    memcpy(table.steps, filter->steps, sizeof table.steps);
    for (int i = 0; i < count; i++)
        table.taps[i] = make_uint2(tap_word(plan, filter->taps[i], filter->scale),
                                   tap_word(plan, filter->taps[count + i], filter->scale));
    if (count <= max_taps / 2 && !upload_words(device, pairs, table.taps, 2 * count, error))
        return false;
    return upload_table(device, &table, offsetof(struct table, taps) + (size_t)count * sizeof table.taps[0], error);
}

typedef void slope_kernel(struct launch, struct slope, struct join, struct level);

template <typename T, bool QUICK, bool UNIT>
static slope_kernel *slope_kernel_for(enum combine combine)
{
    return combine == COMBINE_MAGNITUDE ? gradient_slope<T, COMBINE_MAGNITUDE, QUICK, UNIT>
           : combine == COMBINE_MAX     ? gradient_slope<T, COMBINE_MAX, QUICK, UNIT>
                                        : gradient_slope<T, COMBINE_SUM, QUICK, UNIT>;
}

/* The kernel for a slope; NULL if only the general one has the root. */
static slope_kernel *slope_kernel_of(enum sample sample, const struct join &join, const struct level &level, bool unit)
{
    const bool magnitude = join.combine == COMBINE_MAGNITUDE;
    const bool quick = magnitude ? join.way == ROOT_QUICK : level.quick;
    if (magnitude && join.way == ROOT_STEPS)
        return NULL;
    if (sample == SAMPLE_U16)
        return slope_kernel_for<uint16_t, false, false>(join.combine);
    if (unit)
        return quick ? slope_kernel_for<uint8_t, true, true>(join.combine)
                     : slope_kernel_for<uint8_t, false, true>(join.combine);
    return quick ? slope_kernel_for<uint8_t, true, false>(join.combine)
                 : slope_kernel_for<uint8_t, false, false>(join.combine);
}

template <typename T, typename Sum>
static bool launch_general(sum_types<T, Sum>, const struct plan *plan, const struct join &join, struct device *device,
                           const struct plane *in, const struct plane *out, struct error *error)
{
    const bool small = plan->filter->width * plan->filter->height <= max_taps / 2;
    return launch_kernel(small ? gradient_general<T, Sum, true> : gradient_general<T, Sum, false>,
                         make_launch(plan, in, out), in->count, device,
                         {strip_width, general_warps * general_rows, dim3(32, general_warps)}, error, join,
                         (const struct table *)device_table(device));
}

extern "C" bool gradient_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                const struct plane *out, struct error *error)
{
    const struct join join = join_of(plan);
    const struct level level = level_of(plan);
    const bool is_16_bit = plan->sample == SAMPLE_U16;
    struct slope slope;
    slope_kernel *kernel = NULL;
    if (plan->sample != SAMPLE_F32 && (is_16_bit || plan->float_exact) &&
        find_slope(plan->filter, is_16_bit ? max_weight16 : max_weight, &slope))
        kernel = slope_kernel_of(plan->sample, join, level, slope.outer == 1);
    if (!kernel)
        return with_types(plan, [&](auto types) { return launch_general(types, plan, join, device, in, out, error); });
    const int width = 32 * (is_16_bit ? span<uint16_t> : span<uint8_t>),
              strip = strip_rows(6, slope_rows, ahead, 40, slope_warps * width, device, in);
    slope.left = border_index(-1, in->width, plan->border);
    slope.right = border_index(in->width, in->width, plan->border);
    slope.top = border_index(-1, in->height, plan->border);
    slope.bottom = border_index(in->height, in->height, plan->border);
    return launch_kernel(kernel, make_launch(plan, in, out), in->count, device,
                         {width * slope_warps, strip, dim3(32, slope_warps), strip}, error, slope, join, level);
}
