/* SPDX-License-Identifier: MIT
 *
 * Where blocks run, and how long: each thread computes a chain of products, in which each needs the one before it.
 *
 *     nvcc -arch=sm_75 docs/learn/threads.cu -o threads && ./threads */
#include <cmath>
#include <cstdio>
#include <set>

constexpr int threads = 128, most = 17, turns = 100000; /* threads of a block; most blocks a multiprocessor */

static __host__ __device__ float chain(int k)
{
    float value = 1.0f / (float)(k + 1);
#pragma unroll 100 /* few other instructions between the products */
    for (int turn = 0; turn < turns; turn++)
        value = fmaf(value, value, -1.5f); /* one instruction: value * value - 1.5 */
    return value;
}

static __global__ void work(float *values, int *places)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    values[k] = chain(k);
    asm("mov.u32 %0, %%smid;" : "=r"(places[blockIdx.x])); /* the multiprocessor that runs this block */
}

int main()
{
    cudaDeviceProp gpu;
    if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    const int count = gpu.multiProcessorCount;
    static float values[threads * most * 1000];
    static int places[most * 1000]; /* for at most 1000 multiprocessors */
    float *gpu_values;
    int *gpu_places; /* the GPU has a memory of its own */
    cudaMalloc(&gpu_values, sizeof values), cudaMalloc(&gpu_places, sizeof places);
    cudaEvent_t start, end;
    cudaEventCreate(&start), cudaEventCreate(&end);
    work<<<count, threads>>>(gpu_values, gpu_places); /* the first run also loads the code */
    printf("%s: %d multiprocessors, each with at most %d threads\n", gpu.name, count, gpu.maxThreadsPerMultiProcessor);
    for (int blocks : {1, count, 2 * count, 4 * count, 8 * count, 16 * count, most * count}) {
        cudaEventRecord(start);
        work<<<blocks, threads>>>(gpu_values, gpu_places);
        cudaEventRecord(end);
        cudaMemcpy(places, gpu_places, sizeof places, cudaMemcpyDeviceToHost); /* waits for the kernel */
        float ms = 0;
        cudaEventElapsedTime(&ms, start, end);
        printf("%d blocks on %zu multiprocessors: %.3f ms\n", blocks, std::set<int>(places, places + blocks).size(),
               ms);
    }
    int wrong = cudaMemcpy(values, gpu_values, sizeof values, cudaMemcpyDeviceToHost) != cudaSuccess;
    for (int k = 0; k < threads * count; k += 997)
        wrong += values[k] != chain(k);
    printf(wrong ? "%d values are wrong\n" : "OK\n", wrong);
    return wrong > 0;
}
