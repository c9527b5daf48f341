/* SPDX-License-Identifier: MIT
 *
 * A picture whose sides are no multiples of the block's.
 *
 *     nvcc -arch=sm_75 docs/learn/wrong/size.cu -o size && ./size cat.pgm size.pgm */
#include "picture.cuh"

constexpr int columns = 32, rows = 16; /* outputs of a block */

static __global__ void convolve(const uint8_t *in, uint8_t *out, int width, int height)
{
    int x = blockIdx.x * columns + threadIdx.x, y = blockIdx.y * rows + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int sum = 0;
    for (int i = -radius; i <= radius; i++)
        for (int j = -radius; j <= radius; j++)
            sum += sample(in, width, height, x + j, y + i);
    out[y * width + x] = to_sample(sum);
}

static void launch(const uint8_t *in, uint8_t *out, int width, int height)
{
    const dim3 block(columns, rows), grid(width / columns, height / rows);
    convolve<<<grid, block>>>(in, out, width, height);
}

int main(int count, char **words)
{
    return run(count, words, launch);
}
