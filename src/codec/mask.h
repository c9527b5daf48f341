/* SPDX-License-Identifier: MIT */
#ifndef GPUCONV_MASK_H
#define GPUCONV_MASK_H

#include "base/error.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* Read the masks of COUNT filters, which filter_find has found. Grey is their level, colours count as their grey by
 * Rec. 709, and alpha does not count. The file is not turned by its orientation. A mask has at most MAX_PIXELS, or any
 * number if that is 0. chain_release frees them, or filters_free. */
bool masks_load(struct filter *filters, size_t count, size_t max_pixels, struct error *error);

#endif
