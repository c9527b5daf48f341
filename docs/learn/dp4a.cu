/* SPDX-License-Identifier: MIT
 *
 * As words.cu, but one instruction multiplies four samples by four taps and adds the products.
 *
 *     nvcc -arch=sm_75 docs/learn/dp4a.cu -o dp4a && ./dp4a */
#include "step.cuh"

constexpr int rows = 8;                       /* of 4 outputs */
static __constant__ int gpu_taps[4][size][3]; /* the taps for column c: c zeros, 9 taps, 3 - c zeros */
static const dim3 block(32, 8), grid(side / 128, side / (8 * rows));

/* sum + the four bytes of SAMPLES times the four signed bytes of TAPS */
static __device__ int dot(uint32_t samples, int taps, int sum)
{
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(samples), "r"(taps));
    return sum;
}

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    int y = (blockIdx.y * blockDim.y + threadIdx.y) * rows;
    int sum[rows][4] = {};
#pragma unroll
    for (int r = 0; r < rows + size - 1; r++)
#pragma unroll
        for (int w = 0; w < 3; w++) {
            uint32_t word = *(const uint32_t *)&in[(y + r) * pitch + x + 4 * w];
            for (int k = 0; k < rows; k++)
                for (int c = 0; c < 4; c++)
                    if (r - k >= 0 && r - k < size)
                        sum[k][c] = dot(word, gpu_taps[c][r - k][w], sum[k][c]);
        }
    for (int k = 0; k < rows; k++)
        *(uchar4 *)&out[(y + k) * side + x] = {to_sample(sum[k][0]), to_sample(sum[k][1]), to_sample(sum[k][2]),
                                               to_sample(sum[k][3])};
}

int main()
{
    make_taps();
    static int8_t packed[4][size][12];
    for (int k = 0; k < 4 * size * size; k++)
        packed[k / 81][k % 81 / 9][k / 81 + k % 9] = taps[k % 81];
    return measure(convolve, grid, block, gpu_taps, packed);
}
