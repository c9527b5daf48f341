/* SPDX-License-Identifier: MIT
 *
 * The modes of the program, one file each. Each prints its errors and returns the exit status. */
#ifndef GPUCONV_MODES_H
#define GPUCONV_MODES_H

#include "app/options.h"
#include "base/error.h"
#include "compare/pair.h"
#include "filter/filter.h"

#include <stdbool.h>
#include <stddef.h>

/* Filter one image or many, or print or check their digests (run.c). */
int run_images(const struct options *options);

/* Compare two images or folders (compare.c). */
int run_compare(const struct options *options);

/* Do jobs as they come, and answer each (jobs.c). */
int run_jobs_from(const struct options *options);

/* Check, then time, the variants (benchmark.c). */
int run_benchmark(const struct options *options);

/* Check this build on this machine against the definition of the samples (conformance.c). */
int run_conformance(const struct options *options);

/* Answer a question: --list, --show and the like (queries.c). */
int run_query(const struct options *options);

/* The settings of the jobs that filter as OPTIONS say (run.c). */
struct job_settings make_job_settings(const struct options *options);

/* Set RECIPE to that of OPTIONS with FILTER. If that is NULL, its chain is empty. Release the chain (run.c). */
bool find_recipe(const struct options *options, const char *filter, struct recipe *recipe, struct error *error);

/* Name the GPUs of OPTIONS for the workers of BATCH, which has memory for them. If RECIPE asks for a GPU, it starts.
 * Unless it is for one image, check that those that are asked for are there (run.c). */
bool find_gpus(const struct options *options, const struct recipe *recipe, struct batch_request *batch,
               struct error *error);

/* Check that the first GPU of BATCH is there if RECIPE asks for one (run.c). */
bool check_first_gpu(const struct recipe *recipe, const struct batch_request *batch, struct error *error);

/* The settings for a pair of images that OPTIONS say, without the mask, and the check that the picture of their
 * difference replaces none of them (compare.c). */
struct compare_settings make_compare_settings(const struct options *options);
bool check_compare_picture(const struct options *options, const char *expected, const char *actual, const char *picture,
                           struct error *error);

/* FIND the filters that NAMED lists, and apply --flip and --abs to them. Release *FILTERS with free (queries.c). */
bool find_filters(const struct options *options, const char *named, filter_finder *find, struct filter **filters,
                  size_t *count, struct error *error);

#endif
