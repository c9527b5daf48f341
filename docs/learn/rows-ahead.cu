/* SPDX-License-Identifier: MIT
 *
 * A thread walks down 4 columns in a loop, its sums move on, and the next row is on its way.
 *
 *     nvcc -arch=sm_75 docs/learn/rows-ahead.cu -o rows-ahead && ./rows-ahead */
#include "step.cuh"

constexpr int height = 32; /* rows of outputs of a thread */
static __constant__ float gpu_taps[size * size];
static const dim3 block(128), grid(side / 512, side / height);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, y = blockIdx.y * height;
    const uint32_t *row = (const uint32_t *)&in[y * pitch + x];
    uint32_t next[3] = {row[0], row[1], row[2]};
    float sum[size][4] = {};
#pragma unroll 1
    for (int r = 0; r < height + size - 1; r++) {
        float sample[12];
        for (int k = 0; k < 12; k++)
            sample[k] = next[k / 4] >> k % 4 * 8 & 255;
        row += pitch / 4; /* the last iteration loads a row that nobody needs */
        for (int w = 0; w < 3; w++)
            next[w] = row[w];
#pragma unroll
        for (int i = size - 1; i >= 0; i--)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                sum[i][c] = i > 0 ? sum[i - 1][c] : 0;
                for (int j = 0; j < size; j++)
                    sum[i][c] += gpu_taps[i * size + j] * sample[c + j];
            }
        if (r >= size - 1) {
            const float(&done)[4] = sum[size - 1];
            *(uchar4 *)&out[(y + r - (size - 1)) * side + x] = {to_sample(done[0]), to_sample(done[1]),
                                                                to_sample(done[2]), to_sample(done[3])};
        }
    }
}

int main()
{
    float packed[size * size];
    make_taps();
    for (int k = 0; k < size * size; k++)
        packed[k] = taps[k];
    return measure(convolve, grid, block, gpu_taps, packed);
}
