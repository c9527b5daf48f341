/* SPDX-License-Identifier: MIT */
#include "jpeg/decode_loops.h"

const struct jpeg_decode_loops *jpeg_decode_loops_for(enum instruction_set set)
{
    static const struct jpeg_decode_loops *const all[INSTRUCTION_SETS] = LOOPS_BY_SET(jpeg_decode, avx2, avx2, neon);
    return all[set];
}

struct jpeg_index *jpeg_index_open(const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                                   struct thread_pool *pool)
{
    enum instruction_set set;
    instruction_set_find(&set, NULL); /* the variant `cpu` reports an error of $GPUCONV_CPU */
    return jpeg_index_build(layout, scan, jpeg_decode_loops_for(set), &jpeg_usual_chunking, pool);
}

void jpeg_decode_band(const struct jpeg_index *index, int first, int rows, uint8_t *planes)
{
    const int height = jpeg_mcu_height(&index->layout);
    for (int row = first / height; row <= (first + rows - 1) / height;
         row++, planes += jpeg_planes_bytes(&index->layout))
        index->loops->decode(index, row, planes);
}

void jpeg_convert_band(const struct jpeg_index *index, int first, int rows, const struct jpeg_planes *planes,
                       uint8_t *samples)
{
    index->loops->convert(&index->layout, first, rows, planes, samples);
}
