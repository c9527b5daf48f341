/* SPDX-License-Identifier: MIT
 *
 * Rows of planes. */
#ifndef GPUCONV_CPU_ROWS_H
#define GPUCONV_CPU_ROWS_H

#include "image/image.h"

#include <stddef.h>

static inline const void *row_at(const struct plane *plane, int channel, int y)
{
    return (const char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

static inline void *row_to(const struct plane *plane, int channel, int y)
{
    return (char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

#endif
