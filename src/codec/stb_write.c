/* SPDX-License-Identifier: MIT
 *
 * stb_image_write's implementation, with libdeflate for the two parts of PNG that take the time: the compression and
 * the CRC. Compile with -O3, so that the search for the best filter of each row takes vectors, without -fwrapv, which
 * forbids that, and without warnings. */
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>

/* libdeflate's level, 1 to 12. Of a 5120 x 2880 photo, level 1 takes 0.19 s and leaves 16.1 MB, level 2 0.37 s and 15.5
 * MB, level 6 1.0 s and 15.1 MB; zlib as libvips uses it takes 1.5 s and leaves 22.8 MB. stb has one level for all
 * calls, a variable that threads would share, so this one does not change: the codec libdeflate has levels. */
enum { DEFLATE_LEVEL = 1 };

/* What stb asks of a compressor: a zlib stream in a block of malloc's, or NULL. stb's own level is ignored. */
static unsigned char *compress_zlib(unsigned char *data, int size, int *compressed_size, int level)
{
    struct libdeflate_compressor *const compressor = libdeflate_alloc_compressor(DEFLATE_LEVEL);
    unsigned char *compressed = NULL;
    size_t bound, used = 0;

    (void)level;
    if (!compressor)
        return NULL;
    bound = libdeflate_zlib_compress_bound(compressor, (size_t)size);
    compressed = malloc(bound);
    if (compressed)
        used = libdeflate_zlib_compress(compressor, data, (size_t)size, compressed, bound);
    libdeflate_free_compressor(compressor);
    if (used == 0 || used > INT_MAX / 2) { /* stb adds the chunks' headers in int */
        free(compressed);
        return NULL;
    }
    *compressed_size = (int)used;
    return compressed;
}

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS compress_zlib
#define STBIW_CRC32(data, size) libdeflate_crc32(0, data, (size_t)(size))

#include <stb_image_write.h>
