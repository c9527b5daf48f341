/* SPDX-License-Identifier: MIT
 *
 * What kernels use of CUDA, for the emulated GPU (../gpu.cc). One thread runs at a time, until it waits for others. */
#ifndef GPUCONV_EMULATED_CUDA_RUNTIME_H
#define GPUCONV_EMULATED_CUDA_RUNTIME_H

#include <fenv.h>
#include <functional>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- The language ---- */

#define __global__ static
#define __device__
#define __host__
#define __shared__ static thread_local /* a thread of the host runs a block */
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 800
#define __grid_constant__

struct alignas(8) uint2 { /* so aligned, as on a GPU: a sanitizer finds addresses that are not */
    unsigned x, y;
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

struct alignas(8) int2 {
    int x, y;
};

static inline int2 make_int2(int x, int y)
{
    return {x, y};
}

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

struct alignas(8) float2 {
    float x, y;
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

struct alignas(16) float4 {
    float x, y, z, w;
};

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

struct dim3 {
    unsigned x, y, z;

    constexpr dim3(unsigned across = 1, unsigned down = 1, unsigned deep = 1) : x(across), y(down), z(deep)
    {
    }
};

extern __thread dim3 threadIdx, blockIdx; /* unlike thread_local: without a call for each use */
extern dim3 blockDim, gridDim;

/* The dynamic shared memory of a block. It begins with noise, which is not a number if it is read as a float. */
enum { EMULATED_SHARED = 163 << 10 };
extern __thread unsigned char emulated_memory[EMULATED_SHARED] __attribute__((aligned(128)));

/* ---- The host ---- */

/* Run BODY, which calls KERNEL, for each thread of each block. */
void emulated_launch(const char *kernel, dim3 grid, dim3 block, size_t shared, const std::function<void()> &body);

/* ---- Threads that wait for each other ---- */

void __syncthreads();
int __syncthreads_or(int is_set);

/* The values of all lanes of a warp, valid until the second call after this one. */
const uint64_t *emulated_exchange(uint64_t value);

template <typename T>
static inline uint64_t emulated_bits(T value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename T>
static inline T emulated_value(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void __syncwarp()
{
    emulated_exchange(0);
}

template <typename T>
static inline T __shfl_sync(unsigned, T value, int lane)
{
    return emulated_value<T>(emulated_exchange(emulated_bits(value))[lane % 32]);
}

template <typename T>
static inline T __shfl_up_sync(unsigned, T value, unsigned step, unsigned width = 32)
{
    const unsigned lane = threadIdx.x % 32;
    return emulated_value<T>(emulated_exchange(emulated_bits(value))[lane % width >= step ? lane - step : lane]);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int mask)
{
    return emulated_value<T>(emulated_exchange(emulated_bits(value))[threadIdx.x % 32 ^ (unsigned)mask]);
}

static inline unsigned __reduce_min_sync(unsigned, unsigned value)
{
    const uint64_t *all = emulated_exchange(value);
    for (unsigned i = 0; i < 32; i++)
        value = all[i] < value ? (unsigned)all[i] : value;
    return value;
}

static inline unsigned __reduce_max_sync(unsigned lanes, unsigned value)
{
    return ~__reduce_min_sync(lanes, ~value);
}

template <typename T>
static inline unsigned __match_any_sync(unsigned, T value)
{
    const uint64_t *all = emulated_exchange(emulated_bits(value));
    unsigned lanes = 0;
    for (unsigned i = 0; i < 32; i++)
        lanes |= (unsigned)(all[i] == emulated_bits(value)) << i;
    return lanes;
}

static inline unsigned __ballot_sync(unsigned, int is_set)
{
    const uint64_t *all = emulated_exchange(is_set != 0);
    unsigned lanes = 0;
    for (unsigned i = 0; i < 32; i++)
        lanes |= (unsigned)all[i] << i;
    return lanes;
}

static inline int __any_sync(unsigned lanes, int is_set)
{
    return __ballot_sync(lanes, is_set) != 0;
}

/* ---- Memory ---- */

static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

template <typename T, typename U>
static inline T atomicAdd(T *target, U value)
{
    return __atomic_fetch_add(target, (T)value, __ATOMIC_SEQ_CST);
}

template <typename T, typename U>
static inline T atomicOr(T *target, U value)
{
    return __atomic_fetch_or(target, (T)value, __ATOMIC_SEQ_CST);
}

template <typename T, typename U>
static inline T atomicMin(T *target, U value)
{
    T before = *target;
    while ((T)value < before &&
           !__atomic_compare_exchange_n(target, &before, (T)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return before;
}

/* ---- Bits and numbers ---- */

static inline int __popc(int value)
{
    return __builtin_popcount((unsigned)value);
}

static inline int __ffs(int value)
{
    return __builtin_ffs(value);
}

static inline int __ffsll(long long value)
{
    return __builtin_ffsll(value);
}

static inline int __clz(int value)
{
    return value != 0 ? __builtin_clz((unsigned)value) : 32;
}

static inline int __clzll(long long value)
{
    return value != 0 ? __builtin_clzll((unsigned long long)value) : 64;
}

static inline unsigned __brev(unsigned value)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (value >> i & 1) << (31 - i);
    return reversed;
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> shift % 32);
}

static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << shift % 32 >> 32);
}

static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned chosen = 0;
    for (int i = 0; i < 4; i++)
        chosen |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return chosen;
}

/* The sum of A's bytes times B's, and SUM. */
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}

/* VALUE(a, b) of each byte of A and B. */
template <typename Value>
static inline unsigned emulated_bytes(unsigned a, unsigned b, Value value)
{
    unsigned result = 0;
    for (int i = 0; i < 32; i += 8)
        result |= (value((int)(a >> i & 255), (int)(b >> i & 255)) & 255u) << i;
    return result;
}

static inline unsigned __vsub4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return (unsigned)(x - y); });
}

static inline unsigned __vsubus4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return (unsigned)(x > y ? x - y : 0); });
}

static inline unsigned __vabsdiffu4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return (unsigned)abs(x - y); });
}

static inline unsigned __vhaddu4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return (unsigned)(x + y) / 2; });
}

static inline unsigned __vcmpgtu4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return x > y ? 255u : 0u; });
}

static inline unsigned __vcmpeq4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return x == y ? 255u : 0u; });
}

static inline unsigned __vminu4(unsigned a, unsigned b)
{
    return emulated_bytes(a, b, [](int x, int y) { return x < y ? (unsigned)x : (unsigned)y; });
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static inline uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline int max(int a, int b)
{
    return a > b ? a : b;
}

static inline unsigned max(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

template <typename T>
static inline T __ldg(const T *from)
{
    return *from;
}

template <typename T>
static inline void __stcs(T *to, T value)
{
    *to = value;
}

static inline float __uint_as_float(unsigned bits)
{
    return emulated_value<float>(bits);
}

static inline unsigned __float_as_uint(float value)
{
    return (unsigned)emulated_bits(value);
}

static inline int __float_as_int(float value)
{
    return (int)__float_as_uint(value);
}

static inline int __double2loint(double value)
{
    return (int)emulated_bits(value);
}

static inline double __hiloint2double(int high, int low)
{
    return emulated_value<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

static inline double __longlong_as_double(long long bits)
{
    return emulated_value<double>((uint64_t)bits);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline int __mulhi(int a, int b)
{
    return (int)((int64_t)a * b >> 32);
}

static inline float __saturatef(float value)
{
    return value > 0 ? fminf(value, 1) : 0;
}

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

/* The nearest integers. Conversions saturate, and make 0 of what is not a number. */
static inline int emulated_int(double value)
{
    return value != value ? 0 : value < -2147483648.0 ? INT32_MIN : value > 2147483647.0 ? INT32_MAX : (int)value;
}

static inline int __float2int_rn(float value)
{
    return emulated_int(rint((double)value));
}

static inline int __double2int_rd(double value)
{
    return emulated_int(floor(value));
}

/* A * B + C, rounded down. */
template <typename T>
static inline T emulated_fma_down(T a, T b, T c)
{
    fesetround(FE_DOWNWARD);
    asm volatile("" : "+m"(a), "+m"(b), "+m"(c));
    T sum = (T)fma((double)a, (double)b, (double)c);
    asm volatile("" : "+m"(sum));
    fesetround(FE_TONEAREST);
    return sum;
}

static inline float __fmaf_rd(float a, float b, float c)
{
    return emulated_fma_down(a, b, c);
}

static inline double __dadd_rd(double a, double b)
{
    return emulated_fma_down(a, 1.0, b);
}

static inline void __trap()
{
    abort();
}

/* ---- Textures ---- */

struct emulated_texture {
    const unsigned char *data;
    size_t row_bytes;
    int width, height;
    bool is_zero_outside;
};
typedef const emulated_texture *cudaTextureObject_t;

template <typename T>
static inline T tex2D(cudaTextureObject_t texture, float x, float y)
{
    const int column = (int)floorf(x), row = (int)floorf(y);
    const int last_column = texture->width - 1, last_row = texture->height - 1;
    if (texture->is_zero_outside && (column < 0 || row < 0 || column > last_column || row > last_row))
        return 0;
    const int inside_x = column < 0 ? 0 : column < last_column ? column : last_column;
    const int inside_y = row < 0 ? 0 : row < last_row ? row : last_row;
    return ((const T *)(texture->data + (size_t)inside_y * texture->row_bytes))[inside_x];
}

/* Sums and differences of the halves. */
static inline unsigned __vadd2(unsigned a, unsigned b)
{
    return ((a & 0xffff0000) + (b & 0xffff0000)) | ((a + b) & 0xffff);
}

static inline unsigned __vsub2(unsigned a, unsigned b)
{
    return ((a & 0xffff0000) - (b & 0xffff0000)) | ((a - b) & 0xffff);
}

/* The difference of the halves, or 0 if it is negative. */
static inline unsigned __vsubus2(unsigned a, unsigned b)
{
    return ((a >> 16) - min(a >> 16, b >> 16)) << 16 | ((a & 0xffff) - min(a & 0xffff, b & 0xffff));
}

/* The smaller and the larger halves. */
static inline unsigned __vminu2(unsigned a, unsigned b)
{
    return min(a >> 16, b >> 16) << 16 | min(a & 0xffff, b & 0xffff);
}

static inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return ~__vminu2(~a, ~b);
}

#endif
