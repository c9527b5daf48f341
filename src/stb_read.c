/* SPDX-License-Identifier: MIT
 *
 * stb_image's implementation, for PNG and JPEG from memory. codec.c checks every file before stb sees it. Compile with
 * -fwrapv (the JPEG decoder's sums may overflow on damaged files) and without warnings. */
#include <stdlib.h>

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR

/* stb_image 2.27 leaves its JPEG tables and the planes of components without a scan undefined: zeros, so that a
 * damaged file gives the same picture each time, and never bytes of something else. */
#define STBI_MALLOC(size) calloc(1, size)
#define STBI_REALLOC(block, size) realloc(block, size)
#define STBI_FREE(block) free(block)

/* A damaged file must not end the process. What the assertions guard is either certain for the files that codec.c lets
 * pass, or harmless (a wrong symbol of a damaged Huffman code). */
#define STBI_ASSERT(condition) ((void)0)

#include <stb_image.h>
