/* SPDX-License-Identifier: MIT
 *
 * A tile in shared memory: each thread computes one output, and a block loads each of its samples once.
 *
 *     nvcc -arch=sm_75 docs/learn/float-tile.cu -o float-tile && ./float-tile */
#include "float-step.cuh"

constexpr int width = 32, height = 16; /* outputs of a block */
static __constant__ float gpu_taps[15 * 15];
static const dim3 block(width, height), outputs(width, height);

template <int size>
static __global__ void convolve(const float *in, float *out, int side)
{
    __shared__ float samples[height + size - 1][width + size - 1];
    int tx = threadIdx.x, ty = threadIdx.y, pitch = side + size - 1;
    int left = blockIdx.x * width, top = blockIdx.y * height;
    for (int i = ty; i < height + size - 1; i += height)
        for (int j = tx; j < width + size - 1; j += width)
            if (top + i < pitch && left + j < pitch) /* the last tiles reach beyond the image */
                samples[i][j] = in[(top + i) * pitch + left + j];
    __syncthreads();
    if (left + tx >= side || top + ty >= side)
        return;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
#pragma unroll
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * samples[ty + i][tx + j];
    out[(top + ty) * side + left + tx] = sum;
}

int main()
{
    make_taps();
    return measure(convolve<15>, convolve<9>, block, outputs, gpu_taps);
}
