/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, WORDS = 8 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

/* Add a block to the hash. Names as in FIPS 180-4, 6.2.2. */
static void add_block(uint32_t hash[WORDS], const uint8_t *block)
{
    uint32_t w[ROUNDS], a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], f = hash[5], g = hash[6],
                        h = hash[7];
    for (int t = 0; t < ROUNDS; t++) {
        w[t] = t < 16 ? big32(block + 4 * (ptrdiff_t)t)
                      : (rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10) + w[t - 7] +
                            (rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 16];
        const uint32_t t1 =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants[t] + w[t];
        const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t last[WORDS] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < WORDS; i++)
        hash[i] += last[i];
}

void sha256_text(const uint8_t *bytes, size_t size, char text[SHA256_TEXT])
{
    /* The fractions of the square roots of the first 8 primes. */
    uint32_t hash[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t end[2 * BLOCK] = {0}; /* the bytes after the last whole block, a bit 1, zeros, and the number of bits */
    const size_t rest = size % BLOCK, end_size = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    for (size_t at = 0; at < size - rest; at += BLOCK)
        add_block(hash, bytes + at);
    if (rest > 0) /* no bytes may be at NULL */
        memcpy(end, bytes + (size - rest), rest);
    end[rest] = 0x80;
    put_big32(end + end_size - 8, (uint32_t)((uint64_t)size >> 29));
    put_big32(end + end_size - 4, (uint32_t)(size << 3));
    for (size_t at = 0; at < end_size; at += BLOCK)
        add_block(hash, end + at);
    for (int i = 0; i < WORDS; i++)
        snprintf(text + 8 * (ptrdiff_t)i, 9, "%08x", hash[i]);
}
