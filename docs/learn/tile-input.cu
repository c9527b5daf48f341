/* SPDX-License-Identifier: MIT
 *
 * A tile in shared memory: each thread loads one sample, and the inner ones compute an output.
 *
 *     nvcc -arch=sm_75 docs/learn/tile-input.cu -o tile-input && ./tile-input */
#include "step.cuh"

constexpr int tile = 32, inner = tile - (size - 1); /* samples and outputs of a block, in a row and in a column */
static __constant__ int gpu_taps[size * size];
static const dim3 block(tile, tile), grid((side + inner - 1) / inner, (side + inner - 1) / inner);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    __shared__ uint8_t samples[tile][tile];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * inner + tx, y = blockIdx.y * inner + ty;
    samples[ty][tx] = in[y * pitch + x];
    __syncthreads();
    if (tx >= inner || ty >= inner || x >= side || y >= side)
        return;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * samples[ty + i][tx + j];
    out[y * side + x] = to_sample(sum);
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
