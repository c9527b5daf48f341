/* SPDX-License-Identifier: MIT
 *
 * What the programs float-*.cu share: the taps, the samples, and what times a kernel and checks its outputs. */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

static float taps[15 * 15]; /* of 15 x 15, and the first 81 of them for 9 x 9 */

/* A kernel for SIDE x SIDE outputs. The samples have size - 1 columns and rows more, so every window is inside. */
using kernel = void(const float *in, float *out, int side);

/* Number K of numbers from -1 to 1 that look random: a sample or a tap. */
static __host__ __device__ float noise(uint32_t k)
{
    k = (k ^ k >> 16) * 0x45d9f3b;
    k = (k ^ k >> 16) * 0x45d9f3b;
    return (int)(k ^ k >> 16) * 0x1p-31f;
}

static __global__ void fill(float *in, size_t count)
{
    size_t k = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (k < count)
        in[k] = noise(k);
}

static void make_taps()
{
    for (int k = 0; k < 15 * 15; k++)
        taps[k] = noise(~k);
}

/* The largest error of a sum of floats. A product meets at most size * size roundings, its own and those of the sums that
 * it is in, in any order. Each rounding errs by 2^-24 of what it rounds. TAP_SUM is the sum of |tap|, and |sample| <= 1. */
static double float_bound(int size, double tap_sum)
{
    return size * size * 0x1p-24 * tap_sum;
}

/* Time CONVOLVE for images of SIDE x SIDE outputs, and check rows of them. Returns whether they are right. */
static bool measure_shape(kernel *convolve, int size, int side, dim3 block, dim3 outputs, double (*bound)(int, double))
{
    /* All images have 1 GB: what a kernel reads is not in the L2 cache from the run before. */
    const size_t pitch = side + size - 1, samples = pitch * pitch, images = 16392 * 16392 / samples;
    const dim3 grid((side + outputs.x - 1) / outputs.x, (side + outputs.y - 1) / outputs.y);
    float *in, *out;
    if (cudaMalloc(&in, images * samples * sizeof *in) != cudaSuccess ||
        cudaMalloc(&out, images * side * side * sizeof *out) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), false;
    fill<<<images * samples / 256 + 1, 256>>>(in, images * samples);
    cudaEvent_t start, end;
    cudaEventCreate(&start), cudaEventCreate(&end);
    const int runs = 10;
    for (int run = 0; run <= runs; run++) {
        if (run == 1) /* the first run also loads the code */
            cudaEventRecord(start);
        for (size_t image = 0; image < images; image++)
            convolve<<<grid, block>>>(in + image * samples, out + image * side * side, side);
    }
    cudaEventRecord(end);
    const cudaError_t status = cudaDeviceSynchronize(); /* waits for the kernels */
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    double tap_sum = 0, largest = 0;
    for (int k = 0; k < size * size; k++)
        tap_sum += fabs(taps[k]);
    const double most = bound(size, tap_sum);
    int wrong = status != cudaSuccess;
    std::vector<float> samples_of_row(size * pitch), outputs_of_row(side);
    float *from = samples_of_row.data(), *to = outputs_of_row.data();
    for (int y = side - 1; y >= 0; y -= side / 30 | 1) { /* odd: these rows are at all places in their blocks */
        const size_t image = y % images;
        cudaMemcpy(from, in + image * samples + y * pitch, size * pitch * sizeof *in, cudaMemcpyDeviceToHost);
        cudaMemcpy(to, out + (image * side + y) * side, side * sizeof *out, cudaMemcpyDeviceToHost);
        for (int x = 0; x < side; x++) {
            double sum = 0;
            for (int i = 0; i < size; i++)
                for (int j = 0; j < size; j++)
                    sum += (double)taps[i * size + j] * from[i * pitch + x + j];
            const double error = fabs(to[x] - sum);
            wrong += !(error <= most); /* also if it is not a number */
            largest = fmax(largest, error);
        }
    }
    printf("%d x %d: %.4f ms\n", size, size, ms / (runs * images));
    printf("%d x %d: the largest error is %.2g of the bound, %.2g\n", size, size, largest / most, most);
    if (wrong > 0)
        printf("%d outputs are wrong: %s\n", wrong, cudaGetErrorString(status));
    cudaFree(in), cudaFree(out);
    return wrong == 0;
}

/* Copy the taps to GPU_TAPS. Time and check both kernels. A block computes OUTPUTS.x x OUTPUTS.y outputs. Returns the exit
 * status of the program. */
template <typename Taps>
static int measure(kernel *convolve_15, kernel *convolve_9, dim3 block, dim3 outputs, Taps &gpu_taps,
                   double (*bound)(int size, double tap_sum) = float_bound)
{
    cudaMemcpyToSymbol(gpu_taps, taps, sizeof taps);
    if (!measure_shape(convolve_15, 15, 3058, block, outputs, bound) ||
        !measure_shape(convolve_9, 9, 16384, block, outputs, bound))
        return 1;
    puts("OK");
    return 0;
}
