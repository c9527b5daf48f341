/* SPDX-License-Identifier: MIT
 *
 * Files of a run that must not be the same. */
#ifndef GPUCONV_COLLISIONS_H
#define GPUCONV_COLLISIONS_H

#include "base/error.h"
#include "batch/file_list.h"

#include <stdbool.h>

/* No two jobs may write one place, and no job may write what another reads; IN_PLACE, it may write its own input. */
bool collisions_check(const struct file_list *list, bool in_place, struct error *error);

#endif
