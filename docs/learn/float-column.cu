/* SPDX-License-Identifier: MIT
 *
 * A thread computes eight outputs, one below the other, and loads each sample once for all of them.
 *
 *     nvcc -arch=sm_75 docs/learn/float-column.cu -o float-column && ./float-column */
#include "float-step.cuh"

constexpr int rows = 8; /* outputs of a thread */
static __constant__ float gpu_taps[15 * 15];
static const dim3 block(32, 8), outputs(32, 8 * rows);

template <int size>
static __global__ void convolve(const float *in, float *out, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, pitch = side + size - 1;
    int y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    if (x >= side)
        return;
    y = min(y, side - rows); /* the last threads compute outputs of others again: all rows are inside */
    float sum[rows] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++)
#pragma unroll
        for (int j = 0; j < size; j++) {
            float sample = in[(y + r) * pitch + x + j];
#pragma unroll
            for (int k = 0; k < rows; k++)
                if (r - k >= 0 && r - k < size) /* over output k lies row r - k of the taps */
                    sum[k] += gpu_taps[(r - k) * size + j] * sample;
        }
#pragma unroll
    for (int k = 0; k < rows; k++)
        out[(y + k) * side + x] = sum[k];
}

int main()
{
    make_taps();
    return measure(convolve<15>, convolve<9>, block, outputs, gpu_taps);
}
