/* SPDX-License-Identifier: MIT
 *
 * What codecs use of kernels/shared/conv.cuh, for the emulated GPU. The rest is about convolution. */
#ifndef GPUCONV_CONV_CUH
#define GPUCONV_CONV_CUH

#include "kernels/device/device.h"

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

#endif
