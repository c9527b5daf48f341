/* SPDX-License-Identifier: MIT
 *
 * The products of kernels/shared/products.cuh on the emulated GPU. */
#ifndef GPUCONV_PRODUCTS_CUH
#define GPUCONV_PRODUCTS_CUH

#include <cuda_runtime.h>

struct matrix {
    int v[4];
};

/* 16 terms: all lanes show their words, and each sums four dot products. */
template <typename A = uint8_t, typename B = int8_t>
static inline void multiply16(matrix &d, const uint32_t *a, uint32_t b, const matrix &c)
{
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const matrix before = c;
    uint64_t rows[32];
    memcpy(rows, emulated_exchange(a[0] | (uint64_t)a[1] << 32), sizeof rows);
    const uint64_t *columns = emulated_exchange(b);
    for (unsigned i = 0; i < 4; i++) {
        unsigned sum = (unsigned)before.v[i];
        for (unsigned k = 0; k < 16; k++) {
            const A x = (A)(rows[4 * g + k / 4] >> (32 * (i / 2) + 8 * (k % 4)));
            const B y = (B)(columns[4 * (2 * t + i % 2) + k / 4] >> 8 * (k % 4));
            sum += (unsigned)(x * y);
        }
        d.v[i] = (int)sum;
    }
}

/* 32 terms. */
template <typename A = uint8_t, typename B = int8_t>
static inline void multiply32(matrix &d, const uint32_t *a, const uint32_t *b, const matrix &c)
{
    multiply16<A, B>(d, a, b[0], c);
    multiply16<A, B>(d, a + 2, b[1], d);
}

static inline uint32_t pack_pair(int first, int second, uint32_t above)
{
    return above << 16 | (unsigned)min(max(second, 0), 255) << 8 | (unsigned)min(max(first, 0), 255);
}

#endif
