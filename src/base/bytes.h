/* SPDX-License-Identifier: MIT
 *
 * Numbers in the bytes of a file, and runs of bytes that grow. */
#ifndef GPUCONV_BYTES_H
#define GPUCONV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number in the 4 or 2 bytes at BYTES, the highest first. */
static inline uint32_t big32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline unsigned big16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

/* Store VALUE in 4 bytes, the highest first. */
static inline void put_big32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Does TEXT, without its NUL, stand anywhere in SIZE bytes? */
bool bytes_contain(const uint8_t *bytes, size_t size, const char *text);

/* Bytes that their struct owns. */
struct blob {
    uint8_t *bytes; /* NULL where size is 0 */
    size_t size;
};

/* Append SIZE undefined bytes, and return where they begin; NULL where there is no memory. */
uint8_t *blob_extend(struct blob *blob, size_t size);

/* Append a copy of SIZE bytes. False where there is no memory. */
bool blob_append(struct blob *blob, const void *bytes, size_t size);

/* Release the bytes; the struct may be all zero, and is afterwards. */
void blob_free(struct blob *blob);

#endif
