/* SPDX-License-Identifier: MIT
 *
 * A thread computes eight outputs, one below the other, and loads each sample once for all of them.
 *
 *     nvcc -arch=sm_75 docs/learn/column.cu -o column && ./column */
#include "step.cuh"

constexpr int rows = 8; /* outputs of a thread */
static __constant__ int gpu_taps[size * size];
static const dim3 block(32, 8), grid(side / 32, side / (8 * rows));

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    int sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++)
#pragma unroll
        for (int j = 0; j < size; j++) {
            int sample = in[(y + r) * pitch + x + j];
            for (int k = 0; k < rows; k++)
                if (r - k >= 0 && r - k < size) /* over output k lies row r - k of the taps */
                    sum[k] += gpu_taps[(r - k) * size + j] * sample;
        }
    for (int k = 0; k < rows; k++)
        out[(y + k) * side + x] = to_sample(sum[k]);
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
