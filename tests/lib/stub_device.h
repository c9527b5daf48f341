/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the stub in place of a GPU. */
#ifndef GPUCONV_STUB_DEVICE_H
#define GPUCONV_STUB_DEVICE_H

#include "base/error.h"

/* The number of launches of variants. */
long stub_launches(void);

/* A stream that a CUDA graph captures. */
extern const char stub_captured;

/* Count a call of JPEG's functions, or of PNG's, and say whether it works. */
bool stub_works_jpeg(struct error *error);
bool stub_works_png(struct error *error);

#endif
