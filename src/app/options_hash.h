/* SPDX-License-Identifier: MIT
 *
 * The recipe of a run: what decides which picture it makes of another. */
#ifndef GPUCONV_OPTIONS_HASH_H
#define GPUCONV_OPTIONS_HASH_H

#include "app/options.h"
#include "batch/journal.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* Write the recipe of the COUNT filters and the options to TEXT: a hash of their values, not of their spelling. So it
 * does not matter whether a default is given, or which file a filter comes from. Fails if there is not enough memory.
 */
bool recipe_make(const struct options *options, const struct filter *filters, size_t count, char text[RECIPE_TEXT]);

#endif
