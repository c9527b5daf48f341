/* SPDX-License-Identifier: MIT
 *
 * As float-first.cu, but the taps are in constant memory.
 *
 *     nvcc -arch=sm_75 docs/learn/float-constant.cu -o float-constant && ./float-constant */
#include "float-step.cuh"

static __constant__ float gpu_taps[15 * 15];
static const dim3 block(32, 8), outputs(32, 8);

template <int size>
static __global__ void convolve(const float *in, float *out, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int pitch = side + size - 1;
    if (x >= side || y >= side)
        return;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < size; i++)
#pragma unroll
        for (int j = 0; j < size; j++)
            sum += gpu_taps[i * size + j] * in[(y + i) * pitch + x + j];
    out[y * side + x] = sum;
}

int main()
{
    make_taps();
    return measure(convolve<15>, convolve<9>, block, outputs, gpu_taps);
}
