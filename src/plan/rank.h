/* SPDX-License-Identifier: MIT
 *
 * Ranks: the passes of a filter of ranks, the order of floats, and differences of samples. */
#ifndef GPUCONV_PLAN_RANK_H
#define GPUCONV_PLAN_RANK_H

#include "base/inline.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stdint.h>

/* The passes of a filter. Each makes of every window the sample of one rank: 0 for the lowest. */
struct rank_passes {
    int first;
    int second;       /* -1 if there is one pass */
    bool reads_input; /* the second pass reads the picture, not the result of the first */
};

static inline struct rank_passes rank_passes(const struct rank *rank)
{
    struct rank_passes passes = {rank->index, -1, rank->form == RANK_OUTLINE};
    const int highest = rank->count - 1;
    const bool opens = rank->form == RANK_OPEN || rank->form == RANK_TOPHAT;
    if (rank->form != RANK_ONE) {
        passes.first = opens ? 0 : highest;
        passes.second = opens ? highest : 0;
    }
    return passes;
}

/* Is the result a difference of samples? RANK_TOPHAT: the picture less the second pass. RANK_BLACKHAT: the second pass
 * less the picture. RANK_OUTLINE: the first pass less the second. A difference of levels is at least 0: with the border
 * zero, the second pass of RANK_BLACKHAT takes 0 for what is outside, and would make less than the picture. */
static inline bool rank_subtracts(const struct rank *rank)
{
    return rank->form >= RANK_TOPHAT;
}

/* The bits of a float as an integer that has the order of floats: -0 before 0, and after infinity all that are no
 * numbers, as one. */
HOST_DEVICE static inline uint32_t rank_key(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000 ? UINT32_MAX : bits ^ (bits >> 31 != 0 ? UINT32_MAX : 0x80000000);
}

/* The bits of the float with that key. */
HOST_DEVICE static inline uint32_t rank_bits(uint32_t key)
{
    return key ^ (key >> 31 != 0 ? 0x80000000 : UINT32_MAX);
}

/* A difference of floats; what is no number always has the bits of rank_bits(UINT32_MAX), 0x7fffffff. */
HOST_DEVICE static inline float rank_difference(float high, float low)
{
    union {
        float value;
        uint32_t bits;
    } difference;
    difference.value = high - low;
    if (difference.value != difference.value)
        difference.bits = 0x7fffffff;
    return difference.value;
}

#endif
