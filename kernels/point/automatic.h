/* SPDX-License-Identifier: MIT */
#ifndef GPUCONV_POINT_AUTOMATIC_H
#define GPUCONV_POINT_AUTOMATIC_H

#include "plan/point.h"

/* Queue kernels that find the levels of the picture in the planes IN, for an automatic PLAN. The caller gives the
 * plan's tables in device memory as *TABLES, and gets those of the curves. The device owns their memory, and the next
 * launch may use it again. */
bool automatic_tables(const struct plan *plan, struct device *device, const struct plane *in,
                      const struct point_tables **tables, struct error *error);

#endif
