/* SPDX-License-Identifier: MIT */
#include "jpeg/decode.h"

const struct jpeg_decode_loops *const *jpeg_decode_sets(size_t *count)
{
    static const struct jpeg_decode_loops *const sets[] = {
        &jpeg_decode_portable,
#ifdef __x86_64__
        &jpeg_decode_sse2,
        &jpeg_decode_avx2,
#endif
    };
    *count = sizeof sets / sizeof *sets;
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
        --*count;
#endif
    return sets;
}

const struct jpeg_decode_loops *jpeg_decode_best(void)
{
    size_t count;
    const struct jpeg_decode_loops *const *sets = jpeg_decode_sets(&count);
    return sets[count - 1];
}

void jpeg_decode_band(const struct jpeg_index *index, int first, int rows, uint8_t *planes)
{
    const int height = JPEG_SIDE * index->layout.vertical;
    for (int row = first / height; row <= (first + rows - 1) / height;
         row++, planes += jpeg_planes_bytes(&index->layout))
        index->loops->decode(index, row, planes);
}

void jpeg_convert_band(const struct jpeg_index *index, int first, int rows, const struct jpeg_planes *planes,
                       uint8_t *samples)
{
    index->loops->convert(&index->layout, first, rows, planes, samples);
}
