/* SPDX-License-Identifier: MIT
 *
 * What the checks of this room report. */
#ifndef GPUCONV_CONTAINER_REPORT_H
#define GPUCONV_CONTAINER_REPORT_H

#include "base/error.h"

/* The file of a check, which is the `file` of its state. */
struct checked_file {
    const char *format, *name;
    struct error *error;
};

/* Report that the file is as the text says, that it is damaged, or that it is truncated. */
#define REFUSE(state, ...) error_about((state)->file.error, ERROR_WORK, (state)->file.name, __VA_ARGS__)
#define REPORT(state, how, text, ...)                                                                                  \
    REFUSE(state, "the %s file is " how ": " text "; get an intact copy", (state)->file.format, __VA_ARGS__)
#define DAMAGED(state, text, ...) REPORT(state, "damaged", text, __VA_ARGS__)
#define TRUNCATED(state, text, ...) REPORT(state, "truncated", text, __VA_ARGS__)

#endif
