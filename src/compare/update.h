/* SPDX-License-Identifier: MIT
 *
 * Accept: what is expected becomes what is actual. */
#ifndef GPUCONV_UPDATE_H
#define GPUCONV_UPDATE_H

#include "base/error.h"
#include "compare/rows.h"

#include <stdbool.h>

enum update_step { UPDATE_REPLACED, UPDATE_ADDED, UPDATE_REMOVED, UPDATE_KEPT };

struct update_request {
    const char *expected; /* the folder; NULL for two files */
    bool removes;         /* delete expected files that are missing */
    size_t file_most;     /* bytes of the largest file that is copied */
    /* Called for each step that is done. WHY is the reason of UPDATE_KEPT, else NULL. */
    void (*on_step)(void *context, enum update_step step, const struct compare_row *row, const char *why);
    /* Asked before each step; false: stop. */
    bool (*may_go_on)(void *context);
    void *context;
};

/* Copy actual files over the expected ones: those that are different or new, not those that are tolerated. Each copy is
 * atomic. *KEPT becomes the number of expected files that stay, although they are missing. Fails before the first step
 * while a row has a problem, and at the first file that cannot be written. */
bool rows_update(const struct compare_rows *rows, const struct update_request *request, size_t *kept,
                 struct error *error);

#endif
