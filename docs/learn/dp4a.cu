/* SPDX-License-Identifier: MIT
 *
 * As words.cu, but one instruction multiplies four samples by four taps and adds the products.
 *
 *     nvcc -arch=sm_75 docs/learn/dp4a.cu -o dp4a && ./dp4a */
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
    static int8_t packed[4][size][12];
    for (int k = 0; k < 4 * size * size; k++)
        packed[k / 81][k % 81 / 9][k / 81 + k % 9] = taps[k % 81];
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
