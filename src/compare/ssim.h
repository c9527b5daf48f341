/* SPDX-License-Identifier: MIT
 *
 * The structural similarity of two images: Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality
 * assessment: from error visibility to structural similarity", IEEE Transactions on Image Processing 13 (4), 2004. As
 * there, the window is a Gaussian of 11 x 11 pixels with sigma 1.5, K1 is 0.01 and K2 is 0.03. The result is the mean of
 * all windows that lie inside the image. */
#ifndef GPUCONV_SSIM_H
#define GPUCONV_SSIM_H

#include "base/error.h"
#include "image/image.h"

struct thread_pool;

/* The side of the window. Smaller images have no SSIM. */
enum { SSIM_WINDOW = 11 };

/* Set *SSIM to that of the luma of two images of one shape: 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), or the
 * grey level. Alpha does not count. NAN if the images are smaller than the window. The result does not depend on the
 * number of threads. POOL may be NULL. Fails if there is not enough memory. */
bool ssim_compute(const struct image *expected, const struct image *actual, struct thread_pool *pool, double *ssim,
                  struct error *error);

#endif
