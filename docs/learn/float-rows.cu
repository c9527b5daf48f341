/* SPDX-License-Identifier: MIT
 *
 * A warp walks down 128 columns: it loads each row once, and a thread has the sums of 4 columns in registers.
 *
 *     nvcc -arch=sm_75 docs/learn/float-rows.cu -o float-rows && ./float-rows */
#include "float-step.cuh"

constexpr int warps = 4, height = 35; /* warps of a block, side by side; rows of outputs of a warp */
static __constant__ float gpu_taps[15 * 15];
static const dim3 block(32, warps), outputs(128 * warps, height);

template <int size>
static __global__ void __launch_bounds__(32 * warps, 4) convolve(const float *in, float *out, int side)
{
    constexpr int window = (size + 6) / 4, quads = 31 + window; /* words of 4 samples: for a thread, for a warp */
    __shared__ float4 rings[warps][2][quads];
    float4(&ring)[2][quads] = rings[threadIdx.y]; /* two rows of samples, of this warp only */
    int lane = threadIdx.x, pitch = side + size - 1;
    int strip = (blockIdx.x * warps + threadIdx.y) * 128, x = strip + 4 * lane;
    int y = min((int)blockIdx.y * height, side - height); /* all rows are inside: the last warps compute some again */
    if (strip >= side)
        return;
    float4 next[2];
    /* This lane's words of row R: none is outside. */
    auto load = [&](int r) {
        for (int h = 0; h < 2; h++)
            if (lane + 32 * h < quads)
                next[h] = *(const float4 *)&in[(y + r) * pitch + min(x + 128 * h, pitch - 4)];
    };
    load(0);
    float sum[size][4] = {};
#pragma unroll 1
    for (int r = 0; r < height + size - 1; r++) {
        for (int h = 0; h < 2; h++)
            if (lane + 32 * h < quads)
                ring[r % 2][lane + 32 * h] = next[h];
        __syncwarp(); /* row r is there, and all lanes have read row r - 1 */
        load(min(r + 1, height + size - 2));
        float sample[4 * window];
#pragma unroll
        for (int w = 0; w < window; w++)
            *(float4 *)&sample[4 * w] = ring[r % 2][lane + w];
#pragma unroll
        for (int i = size - 1; i >= 0; i--)
            if (r - i >= 0 && r - i < height) /* over row i of the taps of an output that there is */
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    sum[i][c] = i > 0 ? sum[i - 1][c] : 0;
#pragma unroll
                    for (int j = 0; j < size; j++)
                        sum[i][c] += gpu_taps[i * size + j] * sample[c + j];
                }
        if (r >= size - 1)
            for (int h = 0; h < 4; h += 2)
                if (x + h < side) /* side is even */
                    *(float2 *)&out[(y + r - (size - 1)) * side + x + h] = {sum[size - 1][h], sum[size - 1][h + 1]};
    }
}

int main()
{
    make_taps();
    return measure(convolve<15>, convolve<9>, block, outputs, gpu_taps);
}
