/* SPDX-License-Identifier: MIT
 *
 * Tensor cores: a warp multiplies 8 x 16 samples by a matrix of 16 x 8 taps at once.
 *
 *     nvcc -arch=sm_75 docs/learn/mma.cu -o mma && ./mma */
#include "step.cuh"

constexpr int rows = 32;                       /* of 64 outputs, for a warp */
static __device__ uint32_t gpu_taps[size][32]; /* for each row of taps, four bytes of its band for each lane */
static const dim3 block(32, 8), grid(side / 64, side / (8 * rows));

/* sum (8 x 8) += samples (8 x 16) times band (16 x 8). A lane gives 4 + 4 bytes, and has 2 sums. */
static __device__ void multiply(int sum[2], uint32_t samples, uint32_t band)
{
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(sum[0]), "+r"(sum[1])
        : "r"(samples), "r"(band));
}

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4; /* a group of four lanes has chunk g of the samples */
    int x = blockIdx.x * 64 + 8 * g, y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    int sum[rows][2] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++) {
        uint32_t samples = *(const uint32_t *)&in[(y + r) * pitch + x + 4 * t];
        for (int k = 0; k < rows; k++)
            if (r - k >= 0 && r - k < size)
                multiply(sum[k], samples, gpu_taps[r - k][threadIdx.x]);
    }
    for (int k = 0; k < rows; k++)
        *(uchar2 *)&out[(y + k) * side + x + 2 * t] = {to_sample(sum[k][0]), to_sample(sum[k][1])};
}

int main()
{
    make_taps();
    static int8_t packed[size][32][4];
    for (int k = 0; k < 8 * size * size; k++) { /* column g of a band is g zeros, 9 taps, 7 - g zeros */
        int g = k / 81, i = k % 81 / 9, j = k % 9;
        packed[i][4 * g + (g + j) / 4][(g + j) % 4] = taps[i * size + j];
    }
    return measure(convolve, grid, block, gpu_taps, packed);
}
