/* SPDX-License-Identifier: MIT
 *
 * Thin planes, for the variant `cpu`. */
#ifndef GPUCONV_THIN_H
#define GPUCONV_THIN_H

#include "cpu/program.h"

/* A launch of the variant `cpu` with the program PLAN->prepared. */
typedef bool plane_launcher(const struct plan *plan, const struct plane *in, const struct plane *out,
                            struct error *error);

/* Launch PLAN so that thin planes, too, take time in proportion to their samples. The outputs are the same. */
bool thin_launch(const struct plan *plan, const struct plane *in, const struct plane *out, plane_launcher *launch,
                 struct error *error);

#endif
