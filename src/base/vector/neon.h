/* SPDX-License-Identifier: MIT
 *
 * The words of x86.h in instructions of NEON, which every processor of AArch64 has, and of its extension I8MM. */
#ifndef GPUCONV_BASE_VECTOR_NEON_H
#define GPUCONV_BASE_VECTOR_NEON_H

#include "base/vector/quad.h"

#include <arm_neon.h>

/* multiply_pairs takes three instructions for two products a lane, and a multiply-add of ints or floats one for one. */
#define HAS_PAIRS 0
#define HAS_BYTE_PAIRS 0
#define HAS_SHUFFLE 1
#ifdef __ARM_FEATURE_MATMUL_INT8
#define HAS_FOURS 1
#else
#define HAS_FOURS 0
#endif

#define PACK(to, name, from, first, last)                                                                              \
    INLINE to name(from a, from b)                                                                                     \
    {                                                                                                                  \
        return (to)last(first(a), b);                                                                                  \
    }
PACK(shorts, pack, ints, vqmovn_s32, vqmovn_high_s32)
PACK(shorts, pack_unsigned, ints, vqmovun_s32, vqmovun_high_s32)
PACK(shorts, pack_shorts, shorts, vqmovn_s16, vqmovn_high_s16)
PACK(shorts, pack_shorts_unsigned, shorts, vqmovun_s16, vqmovun_high_s16)

INLINE ints multiply_pairs(shorts a, shorts b)
{
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}

#if HAS_FOURS
INLINE ints multiply_fours_add(ints sums, ints a, ints b)
{
    return vusdotq_s32(sums, (uchars)a, (int8x16_t)b);
}
#endif

INLINE shorts multiply_high_shorts(shorts a, shorts b)
{
    return vuzp2q_s16((shorts)vmull_s16(vget_low_s16(a), vget_low_s16(b)), (shorts)vmull_high_s16(a, b));
}

INLINE shorts multiply_high_ushorts(shorts a, shorts b)
{
    const ushorts c = (ushorts)a, d = (ushorts)b;
    return vuzp2q_s16((shorts)vmull_u16(vget_low_u16(c), vget_low_u16(d)), (shorts)vmull_high_u16(c, d));
}

INLINE ints multiply_high(ints a, ints b)
{
    const uints c = (uints)a, d = (uints)b;
    return vuzp2q_s32((ints)vmull_u32(vget_low_u32(c), vget_low_u32(d)), (ints)vmull_high_u32(c, d));
}

#define BINARY(type, name, intrinsic)                                                                                  \
    INLINE type name(type a, type b)                                                                                   \
    {                                                                                                                  \
        return intrinsic(a, b);                                                                                        \
    }
BINARY(uchars, smaller_uchars, vminq_u8)
BINARY(uchars, larger_uchars, vmaxq_u8)
BINARY(uchars, add_uchars, vqaddq_u8)
BINARY(uchars, subtract_uchars, vqsubq_u8)
BINARY(doubles, larger_doubles, vmaxq_f64)
BINARY(doubles, smaller_doubles, vminq_f64)

INLINE ints add_byte_sums(ints sums, uchars bytes)
{
    return (ints)vpadalq_u16((uints)sums, vpaddlq_u8(bytes));
}

INLINE uint64_t equal_uchars(uchars a, uchars b)
{
    const uchars bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128}, equal = (uchars)(a == b) & bits;
    return (uint64_t)vaddv_u8(vget_low_u8(equal)) | (uint64_t)vaddv_u8(vget_high_u8(equal)) << 8;
}

INLINE ints prefix_sums(ints value)
{
    const ints zeros = {0};
    value = add(value, vextq_s32(zeros, value, 3));
    return add(value, vextq_s32(zeros, value, 2));
}

INLINE floats square_root(floats value)
{
    return vsqrtq_f32(value);
}

INLINE doubles square_root_doubles(doubles value)
{
    return vsqrtq_f64(value);
}

INLINE doubles first_doubles(ints value)
{
    return vcvtq_f64_s64(vmovl_s32(vget_low_s32(value)));
}

INLINE doubles last_doubles(ints value)
{
    return vcvtq_f64_s64(vmovl_high_s32(value));
}

INLINE doubles load_doubles(const int32_t *from)
{
    return vcvtq_f64_s64(vmovl_s32(vld1_s32(from)));
}

INLINE ints join_doubles(doubles first, doubles last)
{
    return vuzp1q_s32((ints)vcvtq_s64_f64(first), (ints)vcvtq_s64_f64(last));
}

INLINE shorts shuffle(shorts value, shorts indices)
{
    return (shorts)vqtbl1q_u8((uchars)value, (uchars)indices);
}

INLINE bool is_zero(shorts value)
{
    return vmaxvq_u16((ushorts)value) == 0;
}

#endif
