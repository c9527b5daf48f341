/* SPDX-License-Identifier: MIT
 *
 * Launches of kernels on the emulated GPU. */
#ifndef GPUCONV_QUEUE_CUH
#define GPUCONV_QUEUE_CUH

#include "kernels/device/stream.h"

#include <cuda_runtime.h>

#define CUDA_TRY(call, error) (void)(error)

/* launches.py adds the NAME. */
template <typename... Parameters, typename... Arguments>
static inline bool queue_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                struct device *, struct error *, const Arguments &...arguments)
{
    emulated_launch(name, grid, block, shared, [&] { kernel(arguments...); });
    return true;
}

template <typename... Parameters, typename... Arguments>
static inline bool queue_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                struct device *device, struct error *error, const Arguments &...arguments)
{
    return queue_kernel("a kernel", kernel, grid, block, shared, device, error, arguments...);
}

#endif
