/* SPDX-License-Identifier: MIT
 *
 * The words of x86.h in C for vectors of one quad, where compilers find the instruction. portable.h and neon.h have the
 * others. */
#ifndef GPUCONV_BASE_VECTOR_QUAD_H
#define GPUCONV_BASE_VECTOR_QUAD_H

#include "base/vector/types.h"

#define ZIP(name, type, ...)                                                                                           \
    INLINE shorts name(shorts a, shorts b)                                                                             \
    {                                                                                                                  \
        return (shorts)CHOOSE(type, a, b, __VA_ARGS__);                                                                \
    }
ZIP(zip_first8, uchars, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
ZIP(zip_last8, uchars, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
ZIP(zip_first16, shorts, 0, 8, 1, 9, 2, 10, 3, 11)
ZIP(zip_last16, shorts, 4, 12, 5, 13, 6, 14, 7, 15)
ZIP(zip_first32, shorts, 0, 1, 8, 9, 2, 3, 10, 11)
ZIP(zip_last32, shorts, 4, 5, 12, 13, 6, 7, 14, 15)
ZIP(zip_first64, shorts, 0, 1, 2, 3, 8, 9, 10, 11)
ZIP(zip_last64, shorts, 4, 5, 6, 7, 12, 13, 14, 15)

INLINE shorts pack_small(ints a, ints b)
{
    enum { LOW = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1 };
    return CHOOSE(shorts, a, b, LOW, LOW + 2, LOW + 4, LOW + 6, LOW + 8, LOW + 10, LOW + 12, LOW + 14);
}

INLINE ints repeat_last(ints value)
{
    return repeat(value[LANES - 1]);
}

/* Neither C nor AArch64 has stores past the caches that are worth it. */
INLINE void store_past(void *to, ints value)
{
    store(to, value);
}

INLINE void fence_past(void)
{
}

#endif
