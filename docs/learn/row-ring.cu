/* SPDX-License-Identifier: MIT
 *
 * As rows-ahead.cu, but asynchronous copies bring the rows to a ring in shared memory, one ring for each warp.
 *
 *     nvcc -arch=sm_80 docs/learn/row-ring.cu -o row-ring && ./row-ring */
#include "step.cuh"

#include <cuda_pipeline_primitives.h>

constexpr int height = 32, slots = 8, warps = 4; /* rows of outputs of a warp; rows of a ring; warps of a block */
constexpr int words = 32 + 2;                    /* words of 4 samples in a row of a ring */
static __constant__ float gpu_taps[size * size];
static const dim3 block(32, warps), grid(side / (128 * warps), side / height);

static __global__ void convolve(const uint8_t *in, uint8_t *out)
{
    __shared__ uint32_t rings[warps][slots][words];
    int strip = (blockIdx.x * warps + threadIdx.y) * 128, x = strip + threadIdx.x * 4, y = blockIdx.y * height;
    uint32_t(&ring)[slots][words] = rings[threadIdx.y];
    auto start_copy = [&](int r) {
        if (r < height + size - 1)
            for (int k = threadIdx.x; k < words; k += 32)
                __pipeline_memcpy_async(&ring[r % slots][k], &in[(y + r) * pitch + strip + 4 * k], 4);
        __pipeline_commit();
    };
    for (int r = 0; r < slots - 1; r++)
        start_copy(r);
    float sum[size][4] = {};
#pragma unroll 1
    for (int r = 0; r < height + size - 1; r++) {
        __pipeline_wait_prior(slots - 2); /* this lane's part of row r has come */
        __syncwarp();                     /* so have all parts, and all lanes have read row r - 1 */
        start_copy(r + slots - 1);
        float sample[12];
        for (int k = 0; k < 12; k++)
            sample[k] = ring[r % slots][threadIdx.x + k / 4] >> k % 4 * 8 & 255;
#pragma unroll
        for (int i = size - 1; i >= 0; i--)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                sum[i][c] = i > 0 ? sum[i - 1][c] : 0;
                for (int j = 0; j < size; j++)
                    sum[i][c] += gpu_taps[i * size + j] * sample[c + j];
            }
        if (r >= size - 1) {
            const float(&done)[4] = sum[size - 1];
            *(uchar4 *)&out[(y + r - (size - 1)) * side + x] = {to_sample(done[0]), to_sample(done[1]),
                                                                to_sample(done[2]), to_sample(done[3])};
        }
    }
}

int main()
{
    float packed[size * size];
    make_taps();
    for (int k = 0; k < size * size; k++)
        packed[k] = taps[k];
    return measure(convolve, grid, block, gpu_taps, packed);
}
