/* SPDX-License-Identifier: MIT
 *
 * Random numbers that are the same on every machine, for benchmarks and tests. */
#ifndef GPUCONV_RANDOM_H
#define GPUCONV_RANDOM_H

#include <stdint.h>

/* The next 64 random bits, from splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
 * 2014). Any value of *STATE is a seed. The call advances *STATE. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
