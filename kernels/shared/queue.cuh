/* SPDX-License-Identifier: MIT
 *
 * Calls of the CUDA runtime that may fail, and launches of kernels. Tests on an emulated GPU have their own file. */
#ifndef GPUCONV_QUEUE_CUH
#define GPUCONV_QUEUE_CUH

#include "kernels/device/stream.h"

#include <cuda_runtime.h>

/* Return false from the calling function, with an error, if a call of the CUDA runtime fails. */
#define CUDA_TRY(call, error)                                                                                          \
    do {                                                                                                               \
        const cudaError_t status_ = (call);                                                                            \
        if (status_ != cudaSuccess)                                                                                    \
            return cuda_failure(status_, #call, error);                                                                \
    } while (0)

/* Fill ERROR with CUDA's text for STATUS, and return false. (device.cu) */
bool cuda_failure(cudaError_t status, const char *call, struct error *error);

/* The device's stream. (device.cu) */
cudaStream_t device_stream(const struct device *device);

/* Queue a kernel: GRID blocks of BLOCK threads, each with SHARED bytes of shared memory. */
template <typename... Parameters, typename... Arguments>
static inline bool queue_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                struct device *device, struct error *error, const Arguments &...arguments)
{
    kernel<<<grid, block, shared, device_stream(device)>>>(arguments...);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}

#endif
