/* SPDX-License-Identifier: MIT
 *
 * Bytes: big-endian numbers, and a buffer that grows. */
#ifndef GPUCONV_BYTES_H
#define GPUCONV_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The big-endian number in the 4 bytes at BYTES. */
static inline uint32_t big32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The big-endian number in the 2 bytes at BYTES. */
static inline unsigned big16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

/* The little-endian number in the 8 bytes at BYTES. */
static inline uint64_t little64(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return le64toh(number);
}

/* The number in the COUNT bytes at BYTES, at most 4, big-endian or little-endian. */
static inline uint32_t bytes_number(const uint8_t *bytes, size_t count, bool big)
{
    uint32_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[big ? i : count - 1 - i];
    return number;
}

/* Store VALUE in the COUNT bytes at BYTES. */
static inline void bytes_put_number(uint8_t *bytes, size_t count, bool big, uint64_t value)
{
    for (size_t i = 0; i < count; i++)
        bytes[big ? count - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* Store VALUE in the 4 bytes, or 2, at BYTES, big-endian. */
static inline void put_big32(uint8_t *bytes, uint32_t value)
{
    bytes_put_number(bytes, 4, true, value);
}

static inline void put_big16(uint8_t *bytes, unsigned value)
{
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

/* Is BYTE blank, in headers of netpbm and in XML? */
static inline bool byte_is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Copy COUNT numbers of 2 bytes from big-endian to the machine's order, or back. */
static inline void bytes_swap_big16(const uint8_t *in, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < 2 * count; i += 2) {
        uint16_t number;
        memcpy(&number, in + i, sizeof number);
        number = be16toh(number);
        memcpy(out + i, &number, sizeof number);
    }
}

/* Do the SIZE bytes at BYTES contain TEXT (without its NUL)? */
bool bytes_contain(const uint8_t *bytes, size_t size, const char *text);

/* malloc, with large pages if the block is large and the system has them: a page fault for each 4 KiB of a photo would
 * take a tenth of its decoding time. */
void *bytes_allocate(size_t size);

/* Extend an array of COUNT items of SIZE bytes, which only this function has allocated, so that it can hold one more
 * item. Returns the array, which may have moved, or NULL if there is not enough memory. */
void *array_grow(void *items, size_t count, size_t size);

/* A buffer that grows. The struct owns the bytes; all zero is an empty one. */
struct blob {
    uint8_t *bytes; /* NULL if size is 0 */
    size_t size;
};

/* Append SIZE undefined bytes. Returns the first of them, or NULL if there is not enough memory. */
uint8_t *blob_extend(struct blob *blob, size_t size);

/* Append a copy of SIZE bytes. Returns false if there is not enough memory. */
bool blob_append(struct blob *blob, const void *bytes, size_t size);

/* Release the bytes. The buffer is empty afterwards. */
void blob_free(struct blob *blob);

#endif
