/* SPDX-License-Identifier: MIT
 *
 * As tile-output.cu, but the block loads its tile as numbered words of four samples.
 *
 *     nvcc -arch=sm_75 docs/learn/tile-words.cu -o tile-words && ./tile-words */
#include "step.cuh"

constexpr int width = 32, height = 32;                              /* outputs of a block */
constexpr int columns = width + size - 1, rows = height + size - 1; /* samples of its tile */
static __constant__ int gpu_taps[size * size];
static const dim3 block(width, height), grid(side / width, side / height);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    __shared__ uint32_t words[rows * columns / 4]; /* no more than the block has threads */
    int tx = threadIdx.x, ty = threadIdx.y, k = ty * width + tx;
    int left = blockIdx.x * width, top = blockIdx.y * height;
    if (k < rows * columns / 4) {
        int i = k / (columns / 4), j = k % (columns / 4) * 4;
        words[k] = *(const uint32_t *)&in[(top + i) * pitch + left + j];
    }
    __syncthreads();
    const uint8_t *samples = (const uint8_t *)words + ty * columns + tx;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * samples[i * columns + j];
    out[(top + ty) * side + left + tx] = to_sample(sum);
}

int main()
{
    make_taps();
    return measure(convolve, grid, block, gpu_taps, taps);
}
