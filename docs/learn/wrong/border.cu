/* SPDX-License-Identifier: MIT
 *
 * A tile whose halo is not set outside of the picture.
 *
 *     nvcc -arch=sm_75 docs/learn/wrong/border.cu -o border && ./border cat.pgm border.pgm */
#include "picture.cuh"

constexpr int columns = 32, rows = 16, blocks = 5; /* outputs of a tile; blocks, which compute a tile after another */
constexpr int tile_columns = columns + size - 1, tile_rows = rows + size - 1;

static __global__ void convolve(const uint8_t *in, uint8_t *out, int width, int height)
{
    __shared__ uint8_t tile[tile_rows][tile_columns];
    int tx = threadIdx.x, ty = threadIdx.y, across = (width + columns - 1) / columns, down = (height + rows - 1) / rows;
    for (int k = blockIdx.x; k < across * down; k += blocks) {
        int left = k % across * columns - radius, top = k / across * rows - radius;
        for (int i = ty; i < tile_rows; i += rows)
            for (int j = tx; j < tile_columns; j += columns)
                if (left + j >= 0 && left + j < width && top + i >= 0 && top + i < height)
                    tile[i][j] = in[(top + i) * width + left + j];
        __syncthreads();
        int x = left + radius + tx, y = top + radius + ty, sum = 0;
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                sum += tile[ty + i][tx + j];
        if (x < width && y < height)
            out[y * width + x] = to_sample(sum);
        __syncthreads(); /* all have read the tile */
    }
}

static void launch(const uint8_t *in, uint8_t *out, int width, int height)
{
    convolve<<<blocks, dim3(columns, rows)>>>(in, out, width, height);
}

int main(int count, char **words)
{
    return run(count, words, launch);
}
