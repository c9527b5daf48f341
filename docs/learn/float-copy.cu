/* SPDX-License-Identifier: MIT
 *
 * What memory and arithmetic allow: a thread copies 4 samples, and the multiply-adds are computed on paper.
 *
 *     nvcc -arch=sm_75 docs/learn/float-copy.cu -o float-copy && ./float-copy */
#include "float-step.cuh"

static __constant__ float gpu_taps[15 * 15];
static const dim3 block(32, 8), outputs(128, 8);

/* A convolution by a 1 in the first place and zeros. */
template <int size>
static __global__ void copy(const float *in, float *out, int side)
{
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, pitch = side + size - 1;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side)
        return;
    float4 word = *(const float4 *)&in[y * pitch + x];
    *(float2 *)&out[y * side + x] = {word.x, word.y};
    if (x + 2 < side) /* side is even */
        *(float2 *)&out[y * side + x + 2] = {word.z, word.w};
}

int main()
{
    cudaDeviceProp gpu;
    int khz = 0; /* the highest clock */
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    if (cudaGetDeviceProperties(&gpu, 0) == cudaSuccess) {
        const int lanes = gpu.major == 7 || (gpu.major == 8 && gpu.minor == 0) ? 64 : 128; /* for floats */
        const double products = (double)gpu.multiProcessorCount * lanes * khz;             /* in a millisecond */
        printf("15 x 15, arithmetic: %.4f ms\n", 15 * 15 * 3058.0 * 3058 / products);
        printf("9 x 9, arithmetic: %.4f ms\n", 9 * 9 * 16384.0 * 16384 / products);
    }
    taps[0] = 1;
    return measure(copy<15>, copy<9>, block, outputs, gpu_taps);
}
