/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool bytes_contain(const uint8_t *bytes, size_t size, const char *text)
{
    return size > 0 && memmem(bytes, size, text, strlen(text)) != NULL; /* no bytes may be at NULL */
}

void *bytes_allocate(size_t size)
{
    enum { LARGE_MIN = 8 << 20, LARGE_PAGE = 2 << 20 };
    uint8_t *bytes = malloc(size);
    if (bytes != NULL && size >= LARGE_MIN) {
        const size_t before = LARGE_PAGE - (uintptr_t)bytes % LARGE_PAGE;
        (void)madvise(bytes + before, size - before, MADV_HUGEPAGE); /* the system may refuse */
    }
    return bytes;
}

void *array_grow(void *items, size_t count, size_t size)
{
    const bool full = (count & (count - 1)) == 0; /* its capacity is the next power of 2 */
    return full ? realloc(items, (count > 0 ? 2 * count : 1) * size) : items;
}

/* The capacity to reserve for SIZE bytes: a power of 2, or, from 2 MiB on, one of the three sizes between two of them,
 * too. So appending takes constant time per byte on average. All sizes are far below 2^63. */
static size_t capacity_of(size_t size)
{
    const size_t power = size <= 64 ? 64 : (size_t)1 << (64 - __builtin_clzll(size - 1)), step = power / 8;
    return size == 0 ? 0 : power <= MEMORY_COPIED_MAX ? power : (size + step - 1) / step * step;
}

uint8_t *blob_extend(struct blob *blob, size_t size)
{
    const size_t capacity = capacity_of(blob->size + size);
    if (capacity > capacity_of(blob->size)) {
        uint8_t *larger = realloc(blob->bytes, capacity);
        if (larger == NULL)
            return NULL;
        blob->bytes = larger;
    }
    blob->size += size;
    return blob->bytes + blob->size - size;
}

bool blob_append(struct blob *blob, const void *bytes, size_t size)
{
    uint8_t *to = size > 0 ? blob_extend(blob, size) : NULL;
    if (to != NULL)
        memcpy(to, bytes, size);
    return size == 0 || to != NULL;
}

void blob_free(struct blob *blob)
{
    free(blob->bytes);
    *blob = (struct blob){0};
}
