/* SPDX-License-Identifier: MIT */
#ifndef GPUCONV_POINT_AUTOMATIC_H
#define GPUCONV_POINT_AUTOMATIC_H

#include "plan/point.h"

/* Queue what finds the levels of the picture in the planes IN, for a plan that is automatic. *TABLES, which are those
 * of point_prepare, become the curves, in memory of the device that the next launch may use again. */
bool automatic_tables(const struct plan *plan, struct device *device, const struct plane *in,
                      const struct point_tables **tables, struct error *error);

#endif
