/* SPDX-License-Identifier: MIT
 *
 * The modes of the program, one file each. Each prints its errors and returns the exit status. */
#ifndef GPUCONV_MODES_H
#define GPUCONV_MODES_H

#include "app/options.h"
#include "base/error.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* Filter one image or many, or print or check their digests (run.c). */
int run_images(const struct options *options);

/* Compare two images or folders (compare.c). */
int run_compare(const struct options *options);

/* Check, then time, the variants (benchmark.c). */
int run_benchmark(const struct options *options);

/* Answer a question: --list, --show and the like (queries.c). */
int run_query(const struct options *options);

/* FIND the filters that NAMED lists, and apply --flip and --abs to them. Release *FILTERS with free (queries.c). */
bool find_filters(const struct options *options, const char *named, filter_finder *find, struct filter **filters,
                  size_t *count, struct error *error);

#endif
