/* SPDX-License-Identifier: MIT
 *
 * What the memory allows: each thread copies 16 bytes.
 *
 *     nvcc -arch=sm_75 docs/learn/copy.cu -o copy && ./copy */
#include <cstdint>
#include <cstdio>
#include <cstring>

constexpr size_t bytes = (size_t)1 << 28; /* of 16384 x 16384 outputs */
static uint8_t in[bytes], out[bytes];

static __global__ void copy(const uint4 *in, uint4 *out)
{
    size_t k = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[k] = in[k];
}

int main()
{
    uint32_t random = 1;
    for (uint8_t &sample : in)
        sample = (random = 1664525 * random + 1013904223) >> 24;
    uint4 *gpu_in, *gpu_out; /* the GPU has a memory of its own */
    if (cudaMalloc(&gpu_in, bytes) != cudaSuccess || cudaMalloc(&gpu_out, bytes) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    cudaMemcpy(gpu_in, in, bytes, cudaMemcpyHostToDevice);
    cudaEvent_t start, end;
    cudaEventCreate(&start), cudaEventCreate(&end);
    copy<<<bytes / 16 / 256, 256>>>(gpu_in, gpu_out); /* the first run also loads the code */
    cudaEventRecord(start);
    for (int run = 0; run < 20; run++)
        copy<<<bytes / 16 / 256, 256>>>(gpu_in, gpu_out);
    cudaEventRecord(end);
    const cudaError_t status = cudaMemcpy(out, gpu_out, bytes, cudaMemcpyDeviceToHost); /* waits for the kernels */
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    const bool wrong = memcmp(in, out, bytes) != 0;
    printf("%.3f ms\n", ms / 20);
    printf(wrong ? "the outputs differ: %s\n" : "OK\n", cudaGetErrorString(status));
    return wrong;
}
