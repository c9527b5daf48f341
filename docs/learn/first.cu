/* SPDX-License-Identifier: MIT
 *
 * A first kernel: an output is the sum of 3 x 3 samples, each times its tap. It stands alone:
 *
 *     nvcc docs/learn/first.cu -o first && ./first */
#include <stdio.h>

static const int width = 1000, height = 700;

/* One thread makes the output (x, y). Outputs at the edge have no whole window, and stay 0. */
static __global__ void convolve(const float *in, const float *taps, float *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= 1 && y >= 1 && x < width - 1 && y < height - 1)
        for (int i = 0; i < 9; i++)
            out[y * width + x] += taps[i] * in[(y + i / 3 - 1) * width + x + i % 3 - 1];
}

int main()
{
    static float in[height * width], out[height * width];
    for (int i = 0; i < width * height; i++)
        in[i] = i * 7 % 251; /* whole numbers: all sums are exact */
    float taps[9];
    for (int i = 0; i < 9; i++)
        taps[i] = i - 3;

    float *gpu_in, *gpu_taps, *gpu_out; /* the GPU has a memory of its own */
    if (cudaMalloc(&gpu_in, sizeof in) != cudaSuccess || cudaMalloc(&gpu_out, sizeof out) != cudaSuccess ||
        cudaMalloc(&gpu_taps, sizeof taps) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    cudaMemcpy(gpu_in, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemcpy(gpu_taps, taps, sizeof taps, cudaMemcpyHostToDevice);
    cudaMemset(gpu_out, 0, sizeof out);

    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
    convolve<<<grid, block>>>(gpu_in, gpu_taps, gpu_out);
    cudaError_t status = cudaMemcpy(out, gpu_out, sizeof out, cudaMemcpyDeviceToHost); /* waits for the kernel */

    int wrong = status != cudaSuccess;
    for (int y = 1; y < height - 1; y++)
        for (int x = 1; x < width - 1; x++) {
            float sum = 0;
            for (int i = -1; i <= 1; i++)
                for (int j = -1; j <= 1; j++)
                    sum += taps[3 * i + j + 4] * in[(y + i) * width + x + j];
            wrong += out[y * width + x] != sum;
        }
    printf(wrong ? "%d outputs are wrong: %s\n" : "OK\n", wrong, cudaGetErrorString(status));
    return wrong > 0;
}
