/* SPDX-License-Identifier: MIT
 *
 * A thread computes 4 x 4 outputs from words of four samples.
 *
 *     nvcc -arch=sm_75 docs/learn/words.cu -o words && ./words */
#include "step.cuh"

constexpr int rows = 4; /* of 4 outputs */
static __constant__ int gpu_taps[size * size];
static const dim3 block(32, 8), grid(side / 128, side / (8 * rows));

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    int y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    int sum[rows][4] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++) {
        const uint32_t *row = (const uint32_t *)&in[(y + r) * pitch + x];
        const uint32_t word[3] = {row[0], row[1], row[2]}; /* 12 samples */
        for (int k = 0; k < rows; k++)
            if (r - k >= 0 && r - k < size)
                for (int c = 0; c < 4; c++)
                    for (int j = 0; j < size; j++)
                        sum[k][c] += gpu_taps[(r - k) * size + j] * (word[(c + j) / 4] >> (c + j) % 4 * 8 & 255);
    }
    for (int k = 0; k < rows; k++)
        *(uchar4 *)&out[(y + k) * side + x] = {to_sample(sum[k][0]), to_sample(sum[k][1]), to_sample(sum[k][2]),
                                               to_sample(sum[k][3])};
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
