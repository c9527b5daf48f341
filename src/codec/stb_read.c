/* SPDX-License-Identifier: MIT
 *
 * The implementation of stb_image, for PNG and JPEG from memory. container/ checks every file before stb sees it.
 * Compile with -fwrapv, because the sums of the JPEG decoder may overflow on damaged files, and without warnings. */
#include "codec/stb_read.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local size_t limit;
static _Thread_local bool refused;

void stb_read_limit(size_t size)
{
    limit = size;
    refused = false;
}

bool stb_read_refused(void)
{
    return refused;
}

/* Reallocate a block, and fill the new bytes with zeros. stb_image 2.27 accepts the distance codes 30 and 31, and these
 * copy bytes that were never written. */
static void *grow(void *block, size_t old_size, size_t size)
{
    refused |= size > limit;
    void *larger = size > limit ? NULL : realloc(block, size);
    if (larger != NULL && size > old_size)
        memset((char *)larger + old_size, 0, size - old_size);
    return larger;
}

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR

/* stb_image 2.27 leaves its JPEG tables undefined, and also the planes of components without a scan. With zeros, a
 * damaged file gives the same picture each time and never shows other data of the process. */
#define STBI_MALLOC(size) calloc(1, size)
#define STBI_REALLOC(block, size) realloc(block, size) /* stb asks for it; PNG and JPEG use only the next */
#define STBI_REALLOC_SIZED(block, old_size, size) grow(block, old_size, size)
#define STBI_FREE(block) free(block)

/* A damaged file must not end the process. The assertions are always true for checked files, or else harmless: a wrong
 * symbol of a damaged Huffman code. */
#define STBI_ASSERT(condition) ((void)0)

#include <stb/stb_image.h>
