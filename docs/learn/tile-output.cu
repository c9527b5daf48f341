/* SPDX-License-Identifier: MIT
 *
 * A tile in shared memory: each thread computes one output, and loads up to four samples.
 *
 *     nvcc -arch=sm_75 docs/learn/tile-output.cu -o tile-output && ./tile-output */
#include "step.cuh"

constexpr int outputs = 32, tile = outputs + size - 1; /* outputs and samples of a block, in a row and in a column */
static __constant__ int gpu_taps[size * size];
static const dim3 block(outputs, outputs), grid(side / outputs, side / outputs);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    __shared__ uint8_t samples[tile][tile];
    int tx = threadIdx.x, ty = threadIdx.y;
    int left = blockIdx.x * outputs, top = blockIdx.y * outputs;
    for (int i = ty; i < tile; i += outputs)
        for (int j = tx; j < tile; j += outputs)
            samples[i][j] = in[(top + i) * pitch + left + j];
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * samples[ty + i][tx + j];
    out[(top + ty) * side + left + tx] = to_sample(sum);
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
