/* SPDX-License-Identifier: MIT
 *
 * Four wrong times of one kernel, and the right one.
 *
 *     nvcc -arch=sm_75 docs/learn/timing.cu -o timing && ./timing */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

using word = uint32_t;                               /* what a thread reads and writes */
constexpr int pairs = 8, launches = 80, rounds = 21; /* pairs of input and output; launches of a round */
static uint8_t *memory;                              /* on the GPU: an input, its output, the next input, ... */
static size_t bytes;                                 /* the size of an input, and of an output */
static cudaEvent_t start, end;

static __global__ void invert(const word *in, word *out)
{
    size_t k = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[k] = ~in[k];
}

static void launch(int pair)
{
    const uint8_t *in = memory + 2 * pair * bytes;
    invert<<<bytes / sizeof(word) / 256, 256>>>((const word *)in, (word *)(in + bytes));
}

/* The mean time of COUNT launches in ms. The first USED pairs take turns. */
static float time_by_events(int count, int used)
{
    float ms = 0;
    cudaEventRecord(start);
    for (int k = 0; k < count; k++)
        launch(k % used);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, start, end);
    return ms / count;
}

int main()
{
    cudaDeviceProp gpu;
    if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess)
        return printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
    bytes = gpu.l2CacheSize / 4 / 4096 * 4096; /* a pair is half of the L2 */
    std::vector<uint8_t> in(bytes), expected(bytes), out(bytes);
    uint32_t random = 1;
    for (size_t k = 0; k < bytes; k++)
        expected[k] = ~(in[k] = (random = 1664525 * random + 1013904223) >> 24);
    cudaMalloc(&memory, 2 * pairs * bytes);
    for (int pair = 0; pair < pairs; pair++)
        cudaMemcpy(memory + 2 * pair * bytes, in.data(), bytes, cudaMemcpyHostToDevice);
    cudaEventCreate(&start), cudaEventCreate(&end);

    const float first = time_by_events(1, 1);
    float ms[rounds];
    for (int round = -rounds; round < rounds; round++) /* half of them warm up */
        ms[round < 0 ? 0 : round] = time_by_events(launches, pairs);
    std::sort(ms, ms + rounds);
    const float one = time_by_events(1, pairs), same = time_by_events(launches, 1);
    const auto begin = std::chrono::steady_clock::now();
    launch(0);
    const std::chrono::duration<double, std::milli> returned = std::chrono::steady_clock::now() - begin;

    printf("%s: %.1f MB of L2, inputs of %.1f MB\n", gpu.name, gpu.l2CacheSize / 1e6, bytes / 1e6);
    printf("first launch: %.4f ms\nwithout waiting: %.4f ms\n", first, returned.count());
    printf("one launch between two events: %.4f ms\nthe same buffers each time: %.4f ms\n", one, same);
    printf("right, the fastest of %d rounds: %.4f ms\nright, the median: %.4f ms\nright, the slowest: %.4f ms\n",
           rounds, ms[0], ms[rounds / 2], ms[rounds - 1]);
    printf("each byte read once and written once: %.0f GB/s\n", 2 * bytes / ms[rounds / 2] / 1e6);
    int wrong = 0;
    for (const uint8_t *from = memory + bytes; from < memory + 2 * pairs * bytes; from += 2 * bytes)
        wrong += cudaMemcpy(out.data(), from, bytes, cudaMemcpyDeviceToHost) != cudaSuccess || out != expected;
    printf(wrong ? "%d outputs are wrong: %s\n" : "OK\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong > 0;
}
