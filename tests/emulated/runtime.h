/* SPDX-License-Identifier: MIT
 *
 * What the programs of docs/learn/ call of CUDA's runtime, for the emulated GPU. book.py writes KERNEL<<<...>>> as a call
 * of emulated_kernel. */
#ifndef GPUCONV_EMULATED_RUNTIME_H
#define GPUCONV_EMULATED_RUNTIME_H

#include "kernels/shared/queue.cuh"

struct alignas(4) uchar4 {
    unsigned char x, y, z, w;
};

enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
typedef int cudaEvent_t;

template <typename... Parameters>
static inline auto emulated_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                   size_t shared = 0)
{
    return [=](Parameters... arguments) { emulated_launch(name, grid, block, shared, [=] { kernel(arguments...); }); };
}

template <typename T>
static inline cudaError_t cudaMalloc(T **memory, size_t size)
{
    struct workspace workspace = {};
    device_reserve(NULL, &workspace, size, NULL);
    *memory = (T *)workspace.bytes;
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind)
{
    memcpy(to, from, size);
    return cudaSuccess;
}

template <typename T>
static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t size)
{
    return cudaMemcpy(&symbol, from, size, cudaMemcpyHostToDevice);
}

static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t)
{
    return "no error";
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = 0;
    return cudaSuccess;
}

static inline cudaError_t cudaEventRecord(cudaEvent_t)
{
    return cudaSuccess;
}

static inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t)
{
    *milliseconds = 1;
    return cudaSuccess;
}

#endif
