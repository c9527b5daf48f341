/* SPDX-License-Identifier: MIT
 *
 * The arithmetic that the fast variants share: the types of sums, four neighbouring samples as they are loaded, taps as
 * words, and four sums as they become samples and are stored. */
#ifndef GPUCONV_QUADS_CUH
#define GPUCONV_QUADS_CUH

#include "kernels/shared/conv.cuh"
#include "kernels/shared/instructions.cuh"

#include <string.h>
#include <type_traits>

/* ---- Sums of 16-bit samples ---- */

/* If the sums of 16-bit samples are too large for floats, the samples are split into bytes, 256 high + low. Each half
 * is summed exactly in a T, as samples of uint8_t are. At the end the halves are joined. The whole may have 40 bits. */
template <typename T>
struct halves {
    T high, low;

    halves() = default;

    __device__ __forceinline__ halves(T high, T low) : high(high), low(low)
    {
    }

    __device__ __forceinline__ explicit halves(int sample) : high((T)(sample >> 8)), low((T)(sample & 255))
    {
    }

    __device__ __forceinline__ halves &operator+=(const halves &other)
    {
        high += other.high;
        low += other.low;
        return *this;
    }

    __device__ __forceinline__ halves operator+(const halves &other) const
    {
        return halves(high + other.high, low + other.low);
    }
};

/* An int as a double without a conversion instruction, because conversions are slow: 2^52 + 2^31 + n has n + 2^31 in
 * its lower word. */
static __device__ __forceinline__ double double_of(uint32_t n_raised)
{
    return __hiloint2double(0x43300000, (int)n_raised) - 4503601774854144.0;
}

template <typename T>
static __device__ __forceinline__ halves<T> operator*(T tap, const halves<T> &sample)
{
    return halves<T>(tap * sample.high, tap * sample.low);
}

/* The type of a tap for sums of a type. */
template <typename Sum>
struct tap_type {
    using type = Sum;
};

template <typename T>
struct tap_type<halves<T>> {
    using type = T;
};

template <typename Sum>
using tap_of = typename tap_type<Sum>::type;

/* The whole sum of samples of uint16_t from its halves. */
static __device__ __forceinline__ double whole_of(const halves<float> &sum)
{
    return 256.0 * (double)sum.high + (double)sum.low;
}

static __device__ __forceinline__ double whole_of(const halves<int> &sum)
{
    return fma(256.0, double_of((uint32_t)sum.high + 0x80000000), double_of((uint32_t)sum.low + 0x80000000));
}

static __device__ __forceinline__ double whole_of(float sum)
{
    return double_of((uint32_t)__float2int_rn(sum) + 0x80000000);
}

/* Convert a sum to a level, as rounding16_apply does, but without clamping to 0 to 65535. */
template <typename Sum>
static __device__ __forceinline__ int level16(const struct launch &launch, const Sum &sum)
{
    const struct rounding16 rounding = rounding16_of(launch);
    const double whole = whole_of(sum);
    return __double2int_rd((rounding.absolute ? fabs(whole) : whole) * rounding.factor + rounding.term);
}

/* Store four samples, given as two words, at TO. Only the first LEFT are inside the image. */
static __device__ __forceinline__ void store_words16(uint16_t *to, uint32_t first, uint32_t second, int left)
{
    if (left >= 4) {
        __stcs((uint2 *)to, make_uint2(first, second));
        return;
    }
    if (left > 0)
        to[0] = (uint16_t)first;
    if (left > 1)
        to[1] = (uint16_t)(first >> 16);
    if (left > 2)
        to[2] = (uint16_t)second;
}

/* ---- Quads ---- */

/* Four neighbouring samples in the type of the sums: the unit in which the fast variants load and store. */
template <typename Sum>
struct alignas(16) quad {
    Sum v[4];
};

/* Byte K of a word as an int, or as a float without a conversion instruction, because conversions are slow. With the
 * byte as the lowest of its four, the float 2^23 becomes 2^23 + byte. */
template <typename T>
static __device__ __forceinline__ T byte_as(uint32_t word, int k)
{
    if constexpr (std::is_same<T, int>::value)
        return (int)__byte_perm(word, 0, 0x4440 + (unsigned)k);
    else
        return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7440 + (unsigned)k)) - 8388608.0f;
}

/* Half K of a word, a sample of uint16_t, in the type of the sums. */
template <typename Sum>
static __device__ __forceinline__ Sum word_as(uint32_t word, int k)
{
    if constexpr (sizeof(Sum) == 8)
        return Sum(byte_as<tap_of<Sum>>(word, 2 * k + 1), byte_as<tap_of<Sum>>(word, 2 * k));
    else
        return __uint_as_float(__byte_perm(word, 0x4b000000, k == 0 ? 0x7610 : 0x7632)) - 8388608.0f;
}

/* A quad as it is in memory: one aligned load, because rows are aligned and columns start at multiples of 4. */
template <typename T>
struct raw_quad;

template <>
struct raw_quad<uint8_t> {
    uint32_t word;

    template <typename Sum>
    __device__ __forceinline__ quad<Sum> unpack() const
    {
        return {{byte_as<Sum>(word, 0), byte_as<Sum>(word, 1), byte_as<Sum>(word, 2), byte_as<Sum>(word, 3)}};
    }
};

template <>
struct raw_quad<uint16_t> {
    uint2 words;

    template <typename Sum>
    __device__ __forceinline__ quad<Sum> unpack() const
    {
        quad<Sum> four;
#pragma unroll
        for (int k = 0; k < 4; k++)
            four.v[k] = word_as<Sum>(k < 2 ? words.x : words.y, k % 2);
        return four;
    }
};

template <>
struct raw_quad<float> {
    float4 four;

    template <typename Sum>
    __device__ __forceinline__ quad<Sum> unpack() const
    {
        return {{four.x, four.y, four.z, four.w}};
    }
};

template <typename T>
static __device__ __forceinline__ raw_quad<T> read_quad(const T *from)
{
    return *(const raw_quad<T> *)from;
}

/* The quad at columns x to x + 3 of row Y (from border_index). Some of them are outside the image. Not inlined: few
 * threads need this, and all others are faster without these instructions. */
template <typename T, typename Sum>
static __device__ __noinline__ quad<Sum> gather_quad(const T *row, int x, int width, enum border border)
{
    quad<Sum> four;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int from = border_index(x + k, width, border);
        four.v[k] = from < 0 ? (Sum)0 : (Sum)row[from];
    }
    return four;
}

template <typename T, typename Sum>
static __device__ __forceinline__ quad<Sum> load_quad(const struct launch &launch, int from_y, int x)
{
    if (from_y < 0)
        return {};
    const T *row = in_row<T>(launch, from_y);
    return x >= 0 && x + 4 <= launch.width ? read_quad(row + x).template unpack<Sum>()
                                           : gather_quad<T, Sum>(row, x, launch.width, launch.border);
}

/* ---- Taps ---- */

/* A word of constant memory in the type of the sums, float or int. */
template <typename Sum>
static __device__ __forceinline__ Sum weight(uint32_t word)
{
    if constexpr (std::is_same<Sum, int>::value)
        return (int)word;
    else
        return __uint_as_float(word);
}

/* A tap in the type of the sums: q for planes of integers, q / DIVISOR for planes of float. */
static inline uint32_t tap_word(const struct plan *plan, int32_t q, double divisor)
{
    if (plan->sample != SAMPLE_F32 && !plan->float_exact)
        return (uint32_t)q;
    const float tap = (float)(plan->sample != SAMPLE_F32 ? q : q / divisor);
    uint32_t word;
    memcpy(&word, &tap, sizeof word);
    return word;
}

/* Types of samples and of their sums. */
template <typename T, typename Sum>
struct sum_types {
};

/* Return WORK's result for the types of a plan. Sums are floats if these are exact, else ints. For uint16_t they are by
 * halves if the whole sums are too large for floats. All types give the canonical bytes. */
template <typename Work>
static bool with_types(const struct plan *plan, Work work)
{
    if (plan->sample == SAMPLE_F32)
        return work(sum_types<float, float>());
    if (plan->sample == SAMPLE_U8)
        return plan->float_exact ? work(sum_types<uint8_t, float>()) : work(sum_types<uint8_t, int>());
    if (sums_fit_float(plan->filter, SAMPLE_U16))
        return work(sum_types<uint16_t, float>());
    return plan->float_exact ? work(sum_types<uint16_t, halves<float>>()) : work(sum_types<uint16_t, halves<int>>());
}

/* ---- Sums to samples ---- */

/* Sums become samples as `finish` in conv.cuh does it or, if QUICK, with fewer instructions. There are three kinds of
 * quick sums, all of floats. In planes of float, the sum starts with the offset and is the sample. In planes of
 * uint8_t, two multiply-adds make the sample. In planes of uint16_t, the halves convert quickly.
 *
 * These are the numbers of quick sums that the launch does not have. For uint8_t, with an integer S (S = |S| if
 * absolute),
 *
 *     floor((S + B) / D) = floor(x),  x = (S + B + 1/2) / D,  v = saturate(S scale + bias) ~ x / 255
 *
 * where saturate clamps to [0, 1] and is a part of the multiply-add. The sample is the last byte of 255 v + 2^23,
 * rounded down: floor(255 v). x is at least 1 / (2 D) away from integers, and floor(255 v) is right if 255 v errs by
 * less. With u = 2^-24 and b = (|B| + 1/2) / D, for x from 0 to 256, the rounding of scale, of bias and of the sum make
 * 255 v err by no more than u (256 + b), u b and 255 u 256 / 255 < 258 u. For other x, v is no nearer to [0, 1],
 * because it rises with S. */
struct level {
    float scale, bias;
    uint32_t mask; /* the mask of S, which clears the sign if absolute */
    bool quick;
};

/* Halves of sums of uint16_t up to this are quick. 1.5 * 2^23 + n is a float with n in its last bits, for |n| up to
 * 2^22. The whole sum is below 2^31. */
static constexpr int max_quick_half = 1 << 22;

/* The numbers for a plan. `quick` says whether its sums are quick. */
static inline struct level level_of(const struct plan *plan)
{
    const struct filter *filter = plan->filter;
    struct level level = {};
    if (plan->sample != SAMPLE_U8) {
        level.quick = plan->sample == SAMPLE_F32
                          ? !filter->absolute
                          : !sums_fit_float(filter, SAMPLE_U16) && filter->absolute_sum * 255 <= max_quick_half;
        return level;
    }
    const double scale = filter->scale, bias = (double)filter->bias + 0.5;
    const double b = (bias < 0 ? 1 - bias : bias) / scale;
    level.scale = (float)(1 / (255 * scale));
    level.bias = (float)(bias / (255 * scale));
    level.mask = filter->absolute ? 0x7fffffff : 0xffffffff;
    level.quick = plan->float_exact && 2 * scale * (256 + b + b + 258) < 1 << 24;
    return level;
}

/* The initial value of sums. */
template <typename T, typename Sum, bool QUICK>
static __device__ __forceinline__ Sum sum_start(const struct launch &launch)
{
    if constexpr (sizeof(T) == 4 && QUICK)
        return launch.offset;
    else
        return (Sum)0;
}

/* Are some sums of this type, of such samples, quick? */
template <typename T, typename Sum>
constexpr bool may_be_quick =
    std::is_same<Sum, typename std::conditional<sizeof(T) == 2, halves<float>, float>::type>::value;

/* The low bytes of four words. */
static __device__ __forceinline__ uint32_t pack_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

static __device__ __forceinline__ uint32_t finish_quick(const struct level &level, float sum)
{
    const float s = __uint_as_float(__float_as_uint(sum) & level.mask);
    return __float_as_uint(__fmaf_rd(__saturatef(fmaf(s, level.scale, level.bias)), 255, 8388608));
}

/* Store four sums as samples at TO. Only the first LEFT are inside the image. The outputs are not read again. They
 * should leave L2 before the inputs, because the strips below may read these. */
template <bool QUICK, typename Sum>
static __device__ __forceinline__ void store_sums(const struct launch &launch, const struct level &level, uint8_t *to,
                                                  int left, const Sum *sum)
{
    uint32_t word;
    if constexpr (QUICK) {
        word = pack_bytes(finish_quick(level, sum[0]), finish_quick(level, sum[1]), finish_quick(level, sum[2]),
                          finish_quick(level, sum[3]));
    } else {
        uint8_t bytes[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            finish(launch, sum[k], &bytes[k]);
        word = pack_bytes(bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    if (left >= 4)
        __stcs((uint32_t *)to, word);
    else
#pragma unroll 1
        for (int k = 0; k < left; k++)
            to[k] = (uint8_t)(word >> 8 * k);
}

/* The level of a quick sum of uint16_t, as level16 gives it, but without conversions. */
static __device__ __forceinline__ int quick_level16(const struct launch &launch, const halves<float> &sum)
{
    constexpr uint32_t raised = 0x4b400000; /* 1.5 * 2^23 */
    const uint32_t high = __float_as_uint(sum.high + 12582912.0f), low = __float_as_uint(sum.low + 12582912.0f);
    const double whole = double_of(256 * high + low - 257 * raised + 0x80000000);
    const struct rounding16 rounding = rounding16_of(launch);
    const double value = (rounding.absolute ? fabs(whole) : whole) * rounding.factor + rounding.term;
    /* It fits in 32 bits: |value| <= 2^22 / 255 * 65535 + 257 * 65535 + 1 < 2^31, as |O| <= 65535. */
    return __double2loint(__dadd_rd(value, 6755399441055744.0)); /* 1.5 * 2^52 */
}

template <bool QUICK, typename Sum>
static __device__ __forceinline__ void store_sums(const struct launch &launch, const struct level &, uint16_t *to,
                                                  int left, const Sum *sum)
{
    int level[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        if constexpr (QUICK)
            level[k] = quick_level16(launch, sum[k]);
        else
            level[k] = level16(launch, sum[k]);
    store_words16(to, pack_levels16(level[0], level[1]), pack_levels16(level[2], level[3]), left);
}

template <bool QUICK>
static __device__ __forceinline__ void store_sums(const struct launch &launch, const struct level &, float *to,
                                                  int left, const float *sum)
{
    float4 four = {sum[0], sum[1], sum[2], sum[3]};
    if (!QUICK) {
        finish(launch, sum[0], &four.x);
        finish(launch, sum[1], &four.y);
        finish(launch, sum[2], &four.z);
        finish(launch, sum[3], &four.w);
    }
    if (left >= 4) {
        __stcs((float4 *)to, four);
        return;
    }
    if (left > 0)
        to[0] = four.x;
    if (left > 1)
        to[1] = four.y;
    if (left > 2)
        to[2] = four.z;
}

/* Convert four sums to samples and store those at columns x to x + 3 of row y that are inside the image. */
template <typename T, typename Sum>
static __device__ __forceinline__ void store_quad(const struct launch &launch, int y, int x, const Sum *sum)
{
    store_sums<false>(launch, {}, out_row<T>(launch, y) + x, launch.width - x, sum);
}

#endif
