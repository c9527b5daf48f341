/* SPDX-License-Identifier: MIT
 *
 * Warnings about a run that may not do what its user expects. --quiet prints none. */
#ifndef GPUCONV_ADVICE_H
#define GPUCONV_ADVICE_H

#include "app/options.h"
#include "batch/file_list.h"
#include "filter/filter.h"

#include <stddef.h>

/* Warn about filters whose text has probably lost its scale. */
void warn_filters(const struct options *options, const struct filter *filters, size_t count);

/* Warn about options that a mode other than MODE_RUN does not use. */
void warn_unused_by_question(const struct options *options);

/* Warn about options for a format that no output of the list has. */
void warn_unused_by_files(const struct options *options, const struct file_list *list);

/* Warn about a --device that does not exist, if the CPU replaces it. */
void warn_unused_device(const struct options *options);

#endif
