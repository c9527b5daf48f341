/* SPDX-License-Identifier: MIT
 *
 * Tensor cores: as float-rows.cu, but samples and taps are sums of two halves, and three products are one.
 *
 *     nvcc -arch=sm_75 docs/learn/float-mma.cu -o float-mma && ./float-mma */
#include "float-step.cuh"

#include <cuda_fp16.h>

constexpr int warps = 4, height = 35; /* warps of a block, side by side; rows of outputs of a warp */
static __device__ float gpu_taps[15 * 15];
static const dim3 block(32, warps), outputs(128 * warps, height);

/* Two floats, as two pairs of halves: high + low is the float, but for its last bits. */
struct halves {
    uint32_t high, low;
};

static __device__ halves split(float a, float b)
{
    __half2 high = __floats2half2_rn(a, b), low = __floats2half2_rn(a - __low2float(high), b - __high2float(high));
    return {*(uint32_t *)&high, *(uint32_t *)&low};
}

/* sum (16 x 8) += samples (16 x 8) times band (8 x 8). A lane gives 4 + 2 halves, and has 4 sums. */
static __device__ void multiply(float (&sum)[4], const uint32_t (&samples)[2], uint32_t band)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(samples[0]), "r"(samples[1]), "r"(band));
}

template <int size>
static __global__ void __launch_bounds__(32 * warps, 4) convolve(const float *in, float *out, int side)
{
    constexpr int parts = (size + 14) / 8, quads = 30 + 2 * parts; /* of 8 rows of a band; words of a row of samples */
    __shared__ halves bands[size][parts][32];
    __shared__ uint32_t rings[warps][2][2][2 * quads];
    uint32_t(&ring)[2][2][2 * quads] = rings[threadIdx.y]; /* high and low halves of two rows, of this warp only */
    int lane = threadIdx.x, g = lane / 4, t = lane % 4, pitch = side + size - 1;
    int strip = (blockIdx.x * warps + threadIdx.y) * 128;
    int y = min((int)blockIdx.y * height, side - height); /* all rows are inside: the last warps compute some again */
    for (int k = threadIdx.y; k < size * parts; k += warps) { /* column g of a band is g zeros, the taps, and zeros */
        int i = k / parts, j = k % parts * 8 + 2 * t - g;
        auto tap = [&](int j) { return j >= 0 && j < size ? gpu_taps[i * size + j] : 0; };
        bands[i][k % parts][lane] = split(tap(j), tap(j + 1));
    }
    __syncthreads();
    if (strip >= side)
        return;
    float4 next[2];
    /* This lane's words of row R: none is outside. */
    auto load = [&](int r) {
        for (int h = 0; h < 2; h++)
            if (lane + 32 * h < quads)
                next[h] = *(const float4 *)&in[(y + r) * pitch + min(strip + 4 * lane + 128 * h, pitch - 4)];
    };
    load(0);
    float sum[size][4] = {};
#pragma unroll 1
    for (int r = 0; r < height + size - 1; r++) {
        auto &high = ring[r % 2][0], &low = ring[r % 2][1];
        for (int h = 0; h < 2; h++)
            if (lane + 32 * h < quads) {
                halves left = split(next[h].x, next[h].y), right = split(next[h].z, next[h].w);
                *(uint2 *)&high[2 * (lane + 32 * h)] = {left.high, right.high};
                *(uint2 *)&low[2 * (lane + 32 * h)] = {left.low, right.low};
            }
        __syncwarp(); /* row r is there, and all lanes have read row r - 1 */
        load(min(r + 1, height + size - 2));
        uint32_t sample[parts][2][2]; /* high and low: pair t of chunk g + part, and of g + part + 8 */
#pragma unroll
        for (int part = 0; part < parts; part++)
            for (int h = 0; h < 2; h++)
                for (int c = 0; c < 2; c++)
                    sample[part][h][c] = ring[r % 2][h][lane + 4 * part + 32 * c]; /* 4 * g + t is LANE */
#pragma unroll
        for (int i = size - 1; i >= 0; i--)
            if (r - i >= 0 && r - i < height) { /* over row i of the taps of an output that there is */
                float large[4] = {}, small[4] = {};
#pragma unroll
                for (int part = 0; part < parts; part++) {
                    const halves band = bands[i][part][lane];
                    multiply(large, sample[part][0], band.high);
                    multiply(small, sample[part][0], band.low);
                    multiply(small, sample[part][1], band.high);
                }
                for (int c = 0; c < 4; c++)
                    sum[i][c] = (i > 0 ? sum[i - 1][c] : 0) + (large[c] + small[c]);
            }
        if (r >= size - 1)
            for (int h = 0; h < 2; h++) {
                int x = strip + 8 * g + 64 * h + 2 * t;
                if (x < side) /* side is even */
                    *(float2 *)&out[(y + r - (size - 1)) * side + x] = {sum[size - 1][2 * h], sum[size - 1][2 * h + 1]};
            }
    }
}

/* With u = 2^-24, and taps and samples from -1 to 1. 3 u for each product: the low halves err by u, and low times low is
 * left out. 20 u for each `large` product of matrices: the unit cuts bits off. u for each row of taps: `large + small`, and
 * all sums of rows but the first, which is exact. The last u is for `small`, and for errors of errors:
 * float-tensor-cores.md has the proof. */
static double half_bound(int size, double tap_sum)
{
    int parts = (size + 14) / 8;
    return 0x1p-24 * (3 * size * size + (20 * parts + size + 1) * tap_sum);
}

int main()
{
    make_taps();
    return measure(convolve<15>, convolve<9>, block, outputs, gpu_taps, half_bound);
}
