/* SPDX-License-Identifier: MIT
 *
 * Steps that change each pixel by itself (plan/point.h), on samples in registers. A kernel calls change() between its
 * loads and its stores, so steps before or after a filter cost no launch and no memory traffic.
 *
 * A thread has a word of 4 bytes of each channel: 4 samples of uint8_t, 2 of uint16_t or 1 float; or 1 sample in the
 * low bytes. Tables of 256 levels are in shared memory: they are 64 words, two in each bank, so a load of a warp takes
 * at most two cycles. Tables of 65,536 levels come through the L1 cache, and so do the numbers of a matrix, which all
 * threads read at once. */
#ifndef GPUCONV_POINT_CUH
#define GPUCONV_POINT_CUH

#include "kernels/shared/conv.cuh"
#include "plan/point.h"

/* The argument of a kernel: the tables of one step after the other, in device memory. */
struct point_steps {
    const struct point_tables *step[POINTS_MAX];
    int count;
};

static inline struct point_steps steps_of(const struct device_points *points)
{
    struct point_steps steps = {};
    for (steps.count = 0; steps.count < points->count; steps.count++)
        steps.step[steps.count] = (const struct point_tables *)kept_table(points->taps[steps.count]);
    return steps;
}

constexpr int step_bytes = 4 * 256; /* bytes of shared memory for the tables of a step */

/* Copy the tables of 256 levels to shared memory, a word for each of 256 threads. All threads of the block call this.
 * Returns the tables. Without steps, there are none. */
static __device__ __forceinline__ const uint8_t *load_levels(const struct point_steps &steps)
{
    __shared__ uint32_t words[POINTS_MAX][step_bytes / 4];
    const int t = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    for (int s = 0; s < steps.count; s++)
        if (!steps.step[s]->is_wide && t < 64 * steps.step[s]->tables)
            words[s][t] = ((const uint32_t *)steps.step[s]->levels)[t];
    __syncthreads();
    return (const uint8_t *)words;
}

static __device__ __forceinline__ const uint8_t *load_levels()
{
    return NULL;
}

/* ---- A sample ---- */

/* Sample K of a word. */
template <typename T>
static __device__ __forceinline__ T sample_in(uint32_t word, int k)
{
    if constexpr (sizeof(T) == 4)
        return __uint_as_float(word);
    return (T)(word >> 8 * (int)sizeof(T) * k);
}

/* A sample from a level of 16 bits. */
template <typename T>
static __device__ __forceinline__ T sample_of(uint16_t level)
{
    return sizeof(T) == 1 ? (T)reduce_sample(level) : (T)level;
}

template <typename T>
static __device__ __forceinline__ T on_curve(const uint16_t *levels, T sample)
{
    return sample_of<T>(__ldg(&levels[sizeof(T) == 1 ? widen_sample((unsigned)sample) : (unsigned)sample]));
}

/* As point_curve_float. No product is fused with a sum. */
static __device__ __forceinline__ float on_curve(const uint16_t *levels, float x)
{
    if (!(x == x))
        return x;
    const float t = __fmul_rn(x < 0 ? 0 : x > 1 ? 1 : x, 65535.0f);
    const int i = t < 65534 ? (int)t : 65534, level = __ldg(&levels[i]);
    return __fadd_rn((float)level, __fmul_rn((float)(__ldg(&levels[i + 1]) - level), t - (float)i)) / 65535.0f;
}

/* The sample that a row of the matrix makes, and then the curve with these LEVELS, unless they are NULL. The samples of
 * a pixel are red, green, blue and alpha. */
template <typename T>
static __device__ __forceinline__ T mix(const struct point_sum &sum, int, const uint16_t *levels, const T (&v)[4])
{
    int64_t s = 0;
    for (int c = 0; c < 4; c++)
        s += (int64_t)sum.weights[c] * v[c];
    const uint16_t level = rounding16_apply(&sum.rounding16, (sizeof(T) == 1 ? 257.0 : 1.0) * (double)s);
    return sample_of<T>(levels != NULL ? __ldg(&levels[level]) : level);
}

static __device__ __forceinline__ float mix(const struct point_sum &sum, int columns, const uint16_t *levels,
                                            const float (&v)[4])
{
    float value = __fmul_rn(sum.factors[0], v[0]);
    for (int c = 1; c < columns; c++)
        value = __fadd_rn(value, __fmul_rn(sum.factors[c], v[c]));
    value = __fadd_rn(value, sum.offset);
    return levels != NULL ? on_curve(levels, value) : value;
}

/* As mix for samples of 8 bits, without a curve: rounding_apply, if it is not `wide`. */
template <typename T>
static __device__ __forceinline__ T mix_bytes(const struct point_sum &sum, const T (&v)[4])
{
    const struct rounding &r = sum.rounding;
    const int s = sum.weights[0] * (int)v[0] + sum.weights[1] * (int)v[1] + sum.weights[2] * (int)v[2] +
                  sum.weights[3] * (int)v[3];
    return (T)(__umulhi((unsigned)(min(max(s, r.low), r.high) + (int)r.bias), r.multiplier) >> r.shift);
}

/* As mix, but the matrix has the light of the samples. */
template <typename T>
static __device__ __forceinline__ T mix_light(const struct point_sum &sum, const struct point_tables *tables,
                                              const uint16_t *levels, const T (&v)[4])
{
    const bool widens = sizeof(T) == 1 && tables->light_levels > 256; /* planned for planes of 16 bits */
    int64_t s = 0;
    for (int c = 0; c < 3; c++)
        s += (int64_t)sum.weights[c] * __ldg(&point_light_of(tables, c)[widens ? widen_sample(v[c]) : v[c]]);
    return sample_of<T>(__ldg(&levels[rounding16_apply(&sum.rounding16, (double)s)]));
}

static __device__ __forceinline__ float mix_light(const struct point_sum &sum, const struct point_tables *tables,
                                                  const uint16_t *levels, const float (&v)[4])
{
    float light[4] = {};
    for (int c = 0; c < 3; c++)
        light[c] = on_curve(point_light_of(tables, c), v[c]);
    return mix(sum, 3, levels, light);
}

/* ---- Pixels ---- */

/* A word of COUNT samples: MAKE(k) is number k. */
template <typename T, int COUNT, int UNROLL = COUNT, typename Make>
static __device__ __forceinline__ uint32_t word_of(Make make)
{
    uint32_t word = 0;
#pragma unroll UNROLL
    for (int k = 0; k < COUNT; k++) {
        const T sample = make(k);
        if constexpr (sizeof(T) == 4)
            word = __float_as_uint(sample);
        else
            word |= (uint32_t)sample << 8 * (int)sizeof(T) * k;
    }
    return word;
}

/* Let COUNT pixels, a word of each of CHANNELS, be what the steps make of them. LEVELS are those of load_levels. */
template <typename T, int COUNT, int CHANNELS>
static __device__ __forceinline__ void change(uint32_t *word, const uint8_t *levels, const struct point_steps &steps)
{
    constexpr int colours = CHANNELS > 2 ? 3 : 1;
    constexpr T white = (T)(sizeof(T) == 4 ? 1 : ~0);
    constexpr bool is_byte = sizeof(T) == 1;
#pragma unroll 1
    for (int s = 0; s < steps.count; s++, levels += step_bytes) {
        const struct point_tables *tables = steps.step[s];
        const bool is_wide = tables->is_wide;
        uint32_t before[CHANNELS];
        int table_of[CHANNELS]; /* loaded at once, as each load takes a while */
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            before[c] = word[c];
            table_of[c] = tables->table_of[CHANNELS % 2 == 0 && c == CHANNELS - 1 ? 3 : c];
        }
        const auto pixel = [&](int k, T(&v)[4]) {
            v[0] = sample_in<T>(before[0], k);
            v[1] = sample_in<T>(before[colours / 2], k);
            v[2] = sample_in<T>(before[colours - 1], k);
            v[3] = CHANNELS % 2 == 0 ? sample_in<T>(before[CHANNELS - 1], k) : white;
        };
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            const struct point_sum *sum = point_row_of(tables, CHANNELS, c);
            const bool has_table = table_of[c] >= 0;
            if (is_byte && sum == NULL && has_table && !is_wide) {
                const uint8_t *narrow = levels + 256 * table_of[c];
                word[c] = word_of<T, COUNT>([&](int k) { return (T)narrow[(uint8_t)sample_in<T>(before[c], k)]; });
            } else if (is_byte && sum != NULL && !has_table && !sum->rounding.wide) {
                const struct point_sum row = *sum;
                word[c] = word_of<T, COUNT>([&](int k) {
                    T v[4];
                    pixel(k, v);
                    return mix_bytes(row, v);
                });
            } else if (CHANNELS > 2 && c < colours && tables->lights > 0) {
                const uint16_t *curve = (const uint16_t *)tables->levels + 65536 * table_of[c];
                word[c] = word_of<T, COUNT, 1>([&](int k) {
                    T v[4];
                    pixel(k, v);
                    return mix_light(*sum, tables, curve, v);
                });
            } else if (sum != NULL || has_table) {
                const uint16_t *curve = has_table ? (const uint16_t *)tables->levels + 65536 * table_of[c] : NULL;
                word[c] = word_of<T, COUNT, 1>([&](int k) {
                    T v[4];
                    pixel(k, v);
                    return sum != NULL ? mix(*sum, tables->columns, curve, v)
                                       : on_curve(curve, sample_in<T>(before[c], k));
                });
            }
        }
    }
}

template <typename T, int COUNT, int CHANNELS>
static __device__ __forceinline__ void change(uint32_t *, const uint8_t *)
{
}

#endif
