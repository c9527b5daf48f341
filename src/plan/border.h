/* SPDX-License-Identifier: MIT
 *
 * The border: the samples outside the image. */
#ifndef GPUCONV_BORDER_H
#define GPUCONV_BORDER_H

#include "base/inline.h"

/* The border modes, in OpenCV's words. A row of samples abcd continues as: */
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

/* The index of the sample that index I of a row or column of N samples refers to. I may be any int, also far outside.
 * Returns 0 to N - 1, or -1 for the zero of BORDER_ZERO. Periods are unsigned, because 2N may not fit in an int. */
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

#endif
