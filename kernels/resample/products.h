/* SPDX-License-Identifier: MIT
 *
 * The variant `resample` for samples of uint8_t and uint16_t, as products of matrices of bytes: the GPU's half of
 * src/cpu/resample.c. */
#ifndef GPUCONV_RESAMPLE_PRODUCTS_H
#define GPUCONV_RESAMPLE_PRODUCTS_H

#include "plan/plan.h"

/* Can products of bytes resize as PLAN says? Not where a side becomes some 100 times shorter, where the matrices need
 * more than 64 MiB, or if samples are floats. */
bool resample_takes_products(const struct plan *plan);

/* Copy the matrices to DEVICE, and change the size of planes, for a plan that resample_takes_products. */
bool resample_prepare_products(const struct plan *plan, struct device *device, struct error *error);
bool resample_launch_products(const struct plan *plan, struct device *device, const struct plane *in,
                              const struct plane *out, struct error *error);

#endif
