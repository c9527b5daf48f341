/* SPDX-License-Identifier: MIT
 *
 * A bound that is tested after the write.
 *
 *     nvcc -arch=sm_75 docs/learn/wrong/bound.cu -o bound && ./bound cat.pgm bound.pgm */
#include "picture.cuh"

constexpr int columns = 32, rows = 8; /* threads of a block */

/* A row of threads computes a row of outputs. */
static __global__ void convolve(const uint8_t *in, uint8_t *out, int width, int height)
{
    int y = blockIdx.x * rows + threadIdx.y;
    if (y >= height)
        return;
    for (int x = threadIdx.x;; x += columns) {
        int sum = 0;
        for (int i = -radius; i <= radius; i++)
            for (int j = -radius; j <= radius; j++)
                sum += sample(in, width, height, x + j, y + i);
        out[y * width + x] = to_sample(sum);
        if (x >= width)
            break;
    }
}

static void launch(const uint8_t *in, uint8_t *out, int width, int height)
{
    convolve<<<(height + rows - 1) / rows, dim3(columns, rows)>>>(in, out, width, height);
}

int main(int count, char **words)
{
    return run(count, words, launch);
}
