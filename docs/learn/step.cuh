/* SPDX-License-Identifier: MIT
 *
 * What the steps of this folder share: the sizes, the taps, the rounding, and what times a kernel and compares rows with
 * the loop. */
#pragma once

#include <cstdint>
#include <cstdio>

constexpr int side = 16384, size = 9; /* outputs and taps, in a row and in a column */
constexpr int pitch = side + 128;     /* samples in a row and in a column: every window is inside */
static int taps[size * size];

static __host__ __device__ uint8_t to_sample(int sum)
{
    const int level = (sum + 128 * 1024 + 512) >> 10; /* sum / 1024 + 128, rounded */
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

static void make_taps()
{
    for (int k = 0; k < size * size; k++)
        taps[k] = k * 37 % 255 - 127;
}

static uint8_t in[pitch * pitch], out[side * side];

/* Copy the taps, PACKED as the kernel reads them, to GPU_TAPS. Run the kernel, and print its time and OK. Returns the
 * exit status of the program. */
template <typename Taps>
static int measure(void (*convolve)(const uint8_t *in, uint8_t *out), dim3 grid, dim3 block, Taps &gpu_taps,
                   const void *packed)
{
    uint32_t random = 1;
    for (uint8_t &sample : in)
        sample = (random = 1664525 * random + 1013904223) >> 24;
    uint8_t *gpu_in, *gpu_out; /* the GPU has a memory of its own */
    if (cudaMalloc(&gpu_in, sizeof in) != cudaSuccess || cudaMalloc(&gpu_out, sizeof out) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    cudaMemcpy(gpu_in, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(gpu_taps, packed, sizeof gpu_taps);
    cudaEvent_t start, end;
    cudaEventCreate(&start), cudaEventCreate(&end);
    convolve<<<grid, block>>>(gpu_in, gpu_out); /* the first run also loads the code */
    cudaEventRecord(start);
    for (int run = 0; run < 20; run++)
        convolve<<<grid, block>>>(gpu_in, gpu_out);
    cudaEventRecord(end);
    const cudaError_t status = cudaMemcpy(out, gpu_out, sizeof out, cudaMemcpyDeviceToHost); /* waits for the kernels */
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    int wrong = status != cudaSuccess;
    for (int y = 0; y < side; y += 127)
        for (int x = 0; x < side; x++) {
            int sum = 0;
            for (int k = 0; k < size * size; k++)
                sum += taps[k] * in[(y + k / size) * pitch + x + k % size];
            wrong += out[y * side + x] != to_sample(sum);
        }
    printf("%.3f ms\n", ms / 20);
    printf(wrong ? "%d outputs are wrong: %s\n" : "OK\n", wrong, cudaGetErrorString(status));
    return wrong > 0;
}
