/* SPDX-License-Identifier: MIT */
#include "container/zlib.h"

#include <libdeflate.h>

bool zlib_head_is_known(const uint8_t head[ZLIB_HEAD])
{
    const int method = head[0] & 15, window = head[0] >> 4, check = head[0] << 8 | head[1], dictionary = head[1] & 32;
    return method == 8 && window <= 7 && check % 31 == 0 && !dictionary;
}

enum zlib_result zlib_inflate(const uint8_t *stream, size_t size, uint8_t *out, size_t capacity, size_t *read,
                              size_t *used)
{
    *used = 0;
    if (size <= ZLIB_HEAD || !zlib_head_is_known(stream))
        return ZLIB_UNKNOWN;
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL)
        return ZLIB_NO_MEMORY;
    const enum libdeflate_result result =
        libdeflate_zlib_decompress_ex(decompressor, stream, size, out, capacity, read, used);
    libdeflate_free_decompressor(decompressor);
    return result == LIBDEFLATE_SUCCESS              ? ZLIB_DONE
           : result == LIBDEFLATE_INSUFFICIENT_SPACE ? ZLIB_TOO_LARGE
                                                     : ZLIB_DAMAGED;
}

enum zlib_result zlib_inflate_blob(const uint8_t *stream, size_t *size, size_t max, struct blob *out)
{
    /* Try sizes that double. All tries together take at most twice the time of the last one. */
    size_t capacity = *size < max / 4 ? 4 * *size + 1024 : max, read = 0, used = 0;
    for (bool last = false; !last; capacity *= 2) {
        last = capacity >= max;
        blob_free(out);
        if (blob_extend(out, last ? max : capacity) == NULL)
            return ZLIB_NO_MEMORY;
        const enum zlib_result result = zlib_inflate(stream, *size, out->bytes, out->size, &read, &used);
        if (result == ZLIB_DONE) {
            out->size = used;
            *size = read;
        }
        if (result != ZLIB_TOO_LARGE)
            return result;
    }
    return ZLIB_TOO_LARGE;
}
