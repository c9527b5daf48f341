/* SPDX-License-Identifier: MIT
 *
 * For src/bench/: the GPU's measured peak rates of multiply-adds. The benchmark compares the variants with them.
 *
 * There is one kernel for each unit. Each thread (for the tensor cores, each warp) keeps a few sums in registers and
 * adds products to one after the other, so that the sums do not wait for each other. Operands never leave the
 * registers. Memory is written once, at the end, so that the compiler does not remove the sums. Blocks fill every
 * multiprocessor, however many threads it can run. The rate is that of the fastest of several launches of some
 * milliseconds each.
 *
 * The tensor cores' rate is that of mma.sync, which all chips from sm_75 on have. From sm_90 on there are also
 * instructions for groups of warps, which are faster. */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int sums = 4;      /* independent ones per thread; few, so that many threads fit on a multiprocessor */
constexpr int unrolled = 32; /* steps of each sum per round, so that the loop's own instructions do not count */
constexpr int block_size = 256;
constexpr int blocks_a_multiprocessor = 24; /* whole waves, whether a multiprocessor runs 4, 6 or 8 blocks */
static_assert(blocks_a_multiprocessor % 4 == 0 && blocks_a_multiprocessor % 6 == 0 && blocks_a_multiprocessor % 8 == 0,
              "1024, 1536 or 2048 threads per multiprocessor");

/* Multiply-adds of a warp's product of matrices: 16 x 8 x 32, and before sm_80 8 x 8 x 16. */
constexpr double mma_new = 16 * 8 * 32, mma_old = 8 * 8 * 16;
} // namespace

static __global__ void __launch_bounds__(block_size) peak_fma(int *to, int seed, int rounds)
{
    const float factor = 1.0f - (float)seed / (1 << 20), term = (float)seed / (1 << 10);
    float sum[sums];
#pragma unroll
    for (int i = 0; i < sums; i++)
        sum[i] = (float)((int)threadIdx.x + i);
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int i = 0; i < sums * unrolled; i++)
            sum[i % sums] = fmaf(sum[i % sums], factor, term);
    float total = 0;
#pragma unroll
    for (int i = 0; i < sums; i++)
        total += sum[i];
    to[blockIdx.x * block_size + threadIdx.x] = __float_as_int(total);
}

static __global__ void __launch_bounds__(block_size) peak_dp4a(int *to, int seed, int rounds)
{
    const int a = seed * 0x01010101 + (int)threadIdx.x, b = seed * 0x01020304;
    int sum[sums] = {};
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int i = 0; i < sums * unrolled; i++)
            asm volatile("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum[i % sums]) : "r"(a), "r"(b));
    int total = 0;
#pragma unroll
    for (int i = 0; i < sums; i++)
        total += sum[i];
    to[blockIdx.x * block_size + threadIdx.x] = total;
}

static __global__ void __launch_bounds__(block_size) peak_tensor(int *to, int seed, int rounds)
{
    const int a = seed * 0x01010101 + (int)threadIdx.x, b = seed * 0x01020304;
    int sum[sums][4] = {};
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int i = 0; i < sums * unrolled; i++) {
            int *s = sum[i % sums];
#if __CUDA_ARCH__ >= 800
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %4, %5}, "
                         "{%6, %4}, {%0, %1, %2, %3};"
                         : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
                         : "r"(a), "r"(b), "r"(seed));
#else
            asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+r"(s[0]), "+r"(s[1])
                         : "r"(a), "r"(b));
#endif
        }
    int total = 0;
#pragma unroll
    for (int i = 0; i < sums; i++)
        total += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
    to[blockIdx.x * block_size + threadIdx.x] = total;
}

typedef void peak_kernel(int *to, int value, int rounds);

/* Where the kernels run: BLOCKS blocks on a device, each thread of which writes an int to TO. */
struct meter {
    struct device *device;
    int *to, blocks;
};

/* The milliseconds of one launch. */
static bool time_launch(peak_kernel *kernel, const struct meter *meter, int rounds, float *milliseconds,
                        struct error *error)
{
    struct device *const device = meter->device;
    return device_mark(device, 0, error) &&
           queue_kernel(kernel, dim3((unsigned)meter->blocks), block_size, 0, device, error, meter->to, 3, rounds) &&
           device_mark(device, 1, error) && device_elapsed(device, 0, 1, milliseconds, error);
}

/* Measure the multiply-adds per second of a kernel, whose threads do MACS in each step of a round. */
static bool measure(peak_kernel *kernel, double macs, const struct meter *meter, double *rate, struct error *error)
{
    constexpr float min = 4;      /* milliseconds of a launch, so that the cost of the launch itself does not matter */
    constexpr float warm_up = 60; /* milliseconds that an idle GPU needs to raise its clock */
    constexpr int runs = 7;
    constexpr int max_rounds = 1 << 24; /* seconds, on any GPU */
    int rounds = 64;
    float milliseconds = 0, warm = 0;
    while (milliseconds < min || warm < warm_up) {
        if (!time_launch(kernel, meter, rounds, &milliseconds, error))
            return false;
        warm += milliseconds;
        if (milliseconds < min && rounds < max_rounds)
            rounds *= 2;
        else if (milliseconds < min)
            return error_set(error, ERROR_WORK, "the GPU's clock does not advance; its peak cannot be measured");
    }
    *rate = 0;
    for (int run = 0; run < runs; run++) {
        if (!time_launch(kernel, meter, rounds, &milliseconds, error))
            return false;
        const double done = macs * sums * unrolled * (double)rounds * (double)meter->blocks * block_size;
        if (done / (milliseconds * 1e-3) > *rate)
            *rate = done / (milliseconds * 1e-3);
    }
    return true;
}

extern "C" bool device_peaks(struct device *device, struct device_peaks *peaks, struct error *error)
{
    const int blocks = device_get_info(device)->multiprocessors * blocks_a_multiprocessor;
    struct workspace memory = {};
    /* The device code that runs may be for an older chip than the device. */
    cudaFuncAttributes attributes;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, (const void *)peak_tensor), error);
    const double mma = attributes.ptxVersion >= 80 ? mma_new : mma_old;
    if (!device_reserve(device, &memory, (size_t)blocks * block_size * sizeof(int), error))
        return false;
    const struct meter meter = {device, (int *)memory.bytes, blocks};
    const bool done = measure(peak_fma, 1, &meter, &peaks->fma, error) &&
                      measure(peak_dp4a, 4, &meter, &peaks->dp4a, error) &&
                      measure(peak_tensor, mma / 32, &meter, &peaks->tensor, error);
    device_release(device, &memory);
    return done;
}
