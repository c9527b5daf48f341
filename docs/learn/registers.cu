/* SPDX-License-Identifier: MIT
 *
 * A thread computes 4 x 8 outputs, and its sums are floats.
 *
 *     nvcc -arch=sm_75 docs/learn/registers.cu -o registers && ./registers */
#include "step.cuh"

constexpr int rows = 8; /* rows of 4 outputs of a thread */
static __constant__ float gpu_taps[size * size];
static const dim3 block(32, 4), grid(side / 128, side / (4 * rows));

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    int y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    float sum[rows][4] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++) {
        const uint32_t *row = (const uint32_t *)&in[(y + r) * pitch + x];
        float sample[12];
        for (int k = 0; k < 12; k++)
            sample[k] = row[k / 4] >> k % 4 * 8 & 255;
#pragma unroll
        for (int k = 0; k < rows; k++)
            if (r - k >= 0 && r - k < size) /* over output row k lies row r - k of the taps */
                for (int c = 0; c < 4; c++)
                    for (int j = 0; j < size; j++)
                        sum[k][c] += gpu_taps[(r - k) * size + j] * sample[c + j];
    }
    for (int k = 0; k < rows; k++)
        *(uchar4 *)&out[(y + k) * side + x] = {to_sample(sum[k][0]), to_sample(sum[k][1]), to_sample(sum[k][2]),
                                               to_sample(sum[k][3])};
}

int main()
{
    float packed[size * size];
    make_taps();
    for (int k = 0; k < size * size; k++)
        packed[k] = taps[k];
    return measure(convolve, grid, block, gpu_taps, packed);
}
