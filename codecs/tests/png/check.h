/* SPDX-License-Identifier: MIT
 *
 * What the files of check_png share. */
#ifndef GPUCONV_CHECK_PNG_H
#define GPUCONV_CHECK_PNG_H

#include "codecs/tests/codec_check.h"
#include "image/image.h"
#include "png/png_gpu.h"

/* ---- bench.c ---- */

/* How fast the kernels are with the pictures of the files, on 1 to 16 streams. */
void bench_files(int count, char **names);

#endif
