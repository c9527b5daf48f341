/* SPDX-License-Identifier: MIT
 *
 * Tensor cores: a warp multiplies 8 x 16 samples by a matrix of 16 x 8 taps at once.
 *
 *     nvcc -arch=sm_75 docs/learn/mma.cu -o mma && ./mma */
#include <cstdint>
#include <cstdio>

constexpr int side = 16384, size = 9; /* outputs and taps, in a row and in a column */
constexpr int pitch = side + 128;     /* samples in a row and in a column: every window is inside */
static int taps[size * size];

static __host__ __device__ uint8_t to_sample(int sum)
{
    const int level = (sum + 128 * 1024 + 512) >> 10; /* sum / 1024 + 128, rounded */
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

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

/* ---- The same in every step: time the kernel, and compare rows with the loop ---- */

static uint8_t in[pitch * pitch], out[side * side];

int main()
{
    uint32_t random = 1;
    for (uint8_t &sample : in)
        sample = (random = 1664525 * random + 1013904223) >> 24;
    for (int k = 0; k < size * size; k++)
        taps[k] = k * 37 % 255 - 127;
    uint8_t *gpu_in, *gpu_out; /* the GPU has a memory of its own */
    if (cudaMalloc(&gpu_in, sizeof in) != cudaSuccess || cudaMalloc(&gpu_out, sizeof out) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    cudaMemcpy(gpu_in, in, sizeof in, cudaMemcpyHostToDevice);
    static int8_t packed[size][32][4];
    for (int k = 0; k < 8 * size * size; k++) { /* column g of a band is g zeros, 9 taps, 7 - g zeros */
        int g = k / 81, i = k % 81 / 9, j = k % 9;
        packed[i][4 * g + (g + j) / 4][(g + j) % 4] = taps[i * size + j];
    }
    cudaMemcpyToSymbol(gpu_taps, packed, sizeof packed);
    cudaEvent_t start, end;
    cudaEventCreate(&start), cudaEventCreate(&end);
    convolve<<<grid, block>>>(gpu_in, gpu_out); /* the first run also loads the code */
    cudaEventRecord(start);
    for (int run = 0; run < 20; run++)
        convolve<<<grid, block>>>(gpu_in, gpu_out);
    cudaEventRecord(end);
    const cudaError_t status = cudaMemcpy(out, gpu_out, sizeof out, cudaMemcpyDeviceToHost); /* waits for the kernels */
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    int wrong = status != cudaSuccess;
    for (int y = 0; y < side; y += 127)
        for (int x = 0; x < side; x++) {
            int sum = 0;
            for (int k = 0; k < size * size; k++)
                sum += taps[k] * in[(y + k / size) * pitch + x + k % size];
            wrong += out[y * side + x] != to_sample(sum);
        }
    printf("%.3f ms\n", ms / 20);
    printf(wrong ? "%d outputs are wrong: %s\n" : "OK\n", wrong, cudaGetErrorString(status));
    return wrong > 0;
}
