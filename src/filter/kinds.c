/* SPDX-License-Identifier: MIT
 *
 * The table of the kinds of steps. */
#include "filter/filter_internal.h"

const struct kind_of_step filter_kinds[STEP_KINDS] = {
    [STEP_CONVOLVE] = {.has_taps = true,
                       .has_border = true,
                       .describe = taps_describe,
                       .print = taps_print,
                       .work = taps_work,
                       .float_error = taps_float_error,
                       .joins_planes = taps_join_planes},
    [STEP_RESIZE] = {.resizes = true,
                     .repeats_edge = true,
                     .takes = "that keep the size of a picture",
                     .is = "changes it",
                     .size = resize_size,
                     .describe = resize_describe,
                     .print = resize_print,
                     .work = resize_work,
                     .float_error = resize_float_error},
    [STEP_MOVE] = {.resizes = true,
                   .moves = true,
                   .takes = "that compute samples",
                   .is = "only moves them",
                   .size = move_size,
                   .describe = move_describe,
                   .print = move_print,
                   .joins_planes = move_joins_planes},
};
