/* SPDX-License-Identifier: MIT
 *
 * What the programs of docs/learn/ call of CUDA's runtime, for the emulated GPU. book.py writes KERNEL<<<...>>> as a
 * call of emulated_kernel. Copies and kernels of a stream wait until the host waits for a stream, or stream 0 is used.
 * Then each stream does one of them in turn: a program that needs another order is found. */
#ifndef GPUCONV_EMULATED_RUNTIME_H
#define GPUCONV_EMULATED_RUNTIME_H

#include "kernels/shared/queue.cuh"

#include <deque>
#include <vector>

struct alignas(4) uchar4 {
    unsigned char x, y, z, w;
};

enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
typedef size_t cudaStream_t; /* the number of a stream. Stream 0 has no queue */
typedef int cudaEvent_t;

typedef std::deque<std::function<void()>> emulated_queue;
static std::vector<emulated_queue> emulated_streams(1);

static inline cudaError_t cudaDeviceSynchronize()
{
    for (bool is_any = true; is_any;) {
        is_any = false;
        for (emulated_queue &queue : emulated_streams)
            if (!queue.empty()) {
                queue.front()();
                queue.pop_front();
                is_any = true;
            }
    }
    return cudaSuccess;
}

static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaDeviceSynchronize();
}

static inline cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    *stream = emulated_streams.size();
    emulated_streams.resize(*stream + 1);
    return cudaSuccess;
}

static inline void emulated_start(cudaStream_t stream, const std::function<void()> &work)
{
    if (stream > 0)
        return emulated_streams[stream].push_back(work);
    cudaDeviceSynchronize();
    work();
}

template <typename... Parameters>
static inline auto emulated_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                   size_t shared = 0, cudaStream_t stream = 0)
{
    return [=](Parameters... arguments) {
        emulated_start(stream, [=] { emulated_launch(name, grid, block, shared, [=] { kernel(arguments...); }); });
    };
}

template <typename T>
static inline cudaError_t cudaMalloc(T **memory, size_t size)
{
    struct workspace workspace = {};
    device_reserve(NULL, &workspace, size, NULL);
    *memory = (T *)workspace.bytes;
    return cudaSuccess;
}

template <typename T>
static inline cudaError_t cudaMallocHost(T **memory, size_t size)
{
    return cudaMalloc(memory, size);
}

static inline cudaError_t cudaFree(void *memory)
{
    struct workspace workspace = {(uint8_t *)memory, 0, false};
    device_release(NULL, &workspace);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind)
{
    emulated_start(0, [=] { memcpy(to, from, size); });
    return cudaSuccess;
}

template <typename T>
static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t size)
{
    return cudaMemcpy(&symbol, from, size, cudaMemcpyHostToDevice);
}

template <typename T>
static inline cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t size, size_t offset,
                                                  cudaMemcpyKind, cudaStream_t stream)
{
    emulated_start(stream, [=, &symbol] { memcpy((unsigned char *)&symbol + offset, from, size); });
    return cudaSuccess;
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
