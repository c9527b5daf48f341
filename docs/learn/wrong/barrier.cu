/* SPDX-License-Identifier: MIT
 *
 * A tile without a barrier.
 *
 *     nvcc -arch=sm_75 docs/learn/wrong/barrier.cu -o barrier && ./barrier cat.pgm barrier.pgm */
#include "picture.cuh"

constexpr int columns = 32, rows = 16; /* outputs of a block */
constexpr int tile_columns = columns + size - 1, tile_rows = rows + size - 1;

static __global__ void convolve(const uint8_t *in, uint8_t *out, int width, int height)
{
    __shared__ uint8_t tile[tile_rows][tile_columns];
    int tx = threadIdx.x, ty = threadIdx.y;
    int left = blockIdx.x * columns - radius, top = blockIdx.y * rows - radius;
    for (int i = ty; i < tile_rows; i += rows)
        for (int j = tx; j < tile_columns; j += columns)
            tile[i][j] = sample(in, width, height, left + j, top + i);
    int x = blockIdx.x * columns + tx, y = blockIdx.y * rows + ty;
    if (x >= width || y >= height)
        return;
    int sum = 0;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += tile[ty + i][tx + j];
    out[y * width + x] = to_sample(sum);
}

static void launch(const uint8_t *in, uint8_t *out, int width, int height)
{
    const dim3 block(columns, rows), grid((width + columns - 1) / columns, (height + rows - 1) / rows);
    convolve<<<grid, block>>>(in, out, width, height);
}

int main(int count, char **words)
{
    return run(count, words, launch);
}
