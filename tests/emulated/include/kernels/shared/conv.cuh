/* SPDX-License-Identifier: MIT
 *
 * What kernels other than those of filters with taps use of kernels/shared/conv.cuh, for the emulated GPU. The rest is
 * about constant memory. */
#ifndef GPUCONV_CONV_CUH
#define GPUCONV_CONV_CUH

#include "kernels/device/device.h"
#include "plan/plan.h"

#include <cuda_runtime.h>
#include <string.h>

#define CUDA_TRY(call, error)                                                                                          \
    do {                                                                                                               \
        if ((call) != cudaSuccess)                                                                                     \
            return error_set(error, ERROR_GPU, "%s failed", #call);                                                    \
    } while (0)

static inline cudaStream_t device_stream(const struct device *device)
{
    return (cudaStream_t)device;
}

/* (gpu.cc) */
bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error);
const void *device_table(const struct device *device);

#endif
