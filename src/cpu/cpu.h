/* SPDX-License-Identifier: MIT
 *
 * The CPU's variants: the functions of their rows in the table of variants, whose struct variant says what they do. */
#ifndef GPUCONV_CPU_H
#define GPUCONV_CPU_H

#include "base/error.h"
#include "image/image.h"
#include "plan/plan.h"

#include <stdbool.h>

bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error);

bool cpu_prepare(struct plan *plan, struct device *device, struct error *error);
bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error);

#endif
