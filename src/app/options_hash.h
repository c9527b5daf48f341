/* SPDX-License-Identifier: MIT
 *
 * A hash of what decides which picture a run makes of another. Reports call it the recipe. */
#ifndef GPUCONV_OPTIONS_HASH_H
#define GPUCONV_OPTIONS_HASH_H

#include "app/options.h"
#include "batch/journal.h"
#include "filter/chain.h"

#include <stdbool.h>

/* Write to TEXT a hash of the values of the filters and the options, not of their spelling: it does not matter whether
 * a default is given, or which file a filter comes from. Fails if there is not enough memory. */
bool options_hash(const struct options *options, const struct filter_chain *chain, char text[RECIPE_TEXT]);

#endif
