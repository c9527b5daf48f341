/* SPDX-License-Identifier: MIT
 *
 * The clock for all measurements. */
#ifndef GPUCONV_CLOCK_H
#define GPUCONV_CLOCK_H

#include <time.h>

/* Milliseconds of the monotonic clock. */
static inline double clock_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#endif
