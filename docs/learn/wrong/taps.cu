/* SPDX-License-Identifier: MIT
 *
 * Taps in constant memory that change while a kernel reads them.
 *
 *     nvcc -arch=sm_75 docs/learn/wrong/taps.cu -o taps && ./taps cat.pgm taps.pgm */
#include "picture.cuh"

static __constant__ int gpu_taps[size * size];

/* Each thread computes a column of outputs. */
static __global__ void convolve(const uint8_t *in, uint8_t *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width)
        return;
    for (int y = 0; y < height; y++) {
        int sum = 0;
        for (int k = 0; k < size * size; k++)
            sum += gpu_taps[k] * sample(in, width, height, x + k % size - radius, y + k / size - radius);
        out[y * width + x] = to_sample(sum);
    }
}

/* Blur the picture, and sharpen it beside that. */
static void launch(const uint8_t *in, uint8_t *out, int width, int height)
{
    cudaStream_t streams[2];
    int(*taps)[size * size];
    uint8_t *sharp;
    for (cudaStream_t &stream : streams)
        cudaStreamCreate(&stream);
    cudaMallocHost(&taps, 2 * sizeof *taps); /* page-locked, so that the host does not wait for the copies */
    cudaMalloc(&sharp, width * height);
    for (int k = 0; k < size * size; k++)
        taps[0][k] = 1, taps[1][k] = k == size * size / 2 ? 3 * size * size - 2 : -2;
    for (int k = 0; k < 2; k++) {
        cudaMemcpyToSymbolAsync(gpu_taps, taps[k], sizeof gpu_taps, 0, cudaMemcpyHostToDevice, streams[k]);
        convolve<<<(width + 31) / 32, 32, 0, streams[k]>>>(in, k == 0 ? out : sharp, width, height);
    }
}

int main(int count, char **words)
{
    return run(count, words, launch);
}
