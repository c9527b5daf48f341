/* SPDX-License-Identifier: MIT
 *
 * The columns of the variant table that say what a row is expected to take, in seconds, for planes that are where the
 * variant wants them. One function a row that the automatic choice may pick. */
#ifndef GPUCONV_CONV_MODEL_H
#define GPUCONV_CONV_MODEL_H

#include "plan/plan.h"

typedef double seconds_function(const struct filter *filter, const struct work *work);

seconds_function reference_seconds, cpu_seconds, register_tiled_seconds, separable_seconds, tensor_core_seconds,
    sparse_seconds, copy_seconds, gradient_seconds;

#endif
