/* SPDX-License-Identifier: MIT
 *
 * The first kernel: each thread computes one output.
 *
 *     nvcc -arch=sm_75 docs/learn/first.cu -o first && ./first */
#include "step.cuh"

static __device__ int gpu_taps[size * size];
static const dim3 block(32, 8), grid((side + 31) / 32, (side + 7) / 8);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side)
        return;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * in[(y + i) * pitch + x + j];
    out[y * side + x] = to_sample(sum);
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
