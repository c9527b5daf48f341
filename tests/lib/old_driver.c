/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 that supports the version of CUDA in $OLD_DRIVER, such as 11040, and can do nothing. The CUDA runtime
 * asks it for its version first. */
#include <stdlib.h>

int cuDriverGetVersion(int *version); /* as in cuda.h */

int cuDriverGetVersion(int *version)
{
    const char *text = getenv("OLD_DRIVER");
    *version = text != NULL ? atoi(text) : 0;
    return 0;
}
