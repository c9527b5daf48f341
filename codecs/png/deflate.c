/* SPDX-License-Identifier: MIT
 *
 * The blocks of a band. codes.h has their codes, and deflate_loops.c what takes time for each byte. */
#include "png/png.h"

#include "png/loops.h"

#include <stdlib.h>

enum { BLOCK_SLACK = 16 }; /* bytes after the end for writes of 8 bytes at once, and for an empty block */

size_t deflate_bound(size_t size)
{
    const size_t stored = 5; /* bytes of a stored block's header; its first bits may need one more */
    return size + (size / DEFLATE_BLOCK + 1) * (stored + 1) + BLOCK_SLACK;
}

struct deflate_workspace *deflate_workspace_new(bool is_fast)
{
    static const struct png_loops *const all[INSTRUCTION_SETS] = LOOPS_BY_SET(png_loops, avx512, vnni, neon);
    enum instruction_set set;
    struct deflate_workspace *workspace = malloc(sizeof *workspace);
    instruction_set_find(&set, NULL); /* the variant `cpu` reports an error of $GPUCONV_CPU */
#ifdef __x86_64__
    if (set == SET_VNNI && !__builtin_cpu_supports("avx512vbmi2")) /* the first processors with VNNI */
        set = SET_AVX512;
#endif
    if (workspace == NULL)
        return NULL;
    workspace->loops = all[set];
    workspace->is_fast = is_fast;
    for (unsigned bits = 0; bits < 256; bits++) {
        workspace->orders[bits] = 0;
        for (unsigned left = bits, at = 0; left != 0; left &= left - 1, at += 8)
            workspace->orders[bits] |= (uint64_t)__builtin_ctz(left) << at;
    }
    return workspace;
}

void png_filter(const struct deflate_workspace *workspace, const uint8_t *row, const uint8_t *above, size_t size,
                size_t pixel, uint8_t *out)
{
    workspace->loops->filter(row, above, size, pixel, workspace->is_fast, out);
}

/* ---- Blocks ---- */

/* Write bytes in stored blocks, or no bytes in an empty one. */
static void write_stored(const uint8_t *bytes, size_t size, bool last, struct deflate_writer *out)
{
    do {
        const size_t part = size < DEFLATE_BLOCK ? size : DEFLATE_BLOCK;
        deflate_put(out, last && part == size, 3);
        deflate_align(out);
        deflate_put(out, part | (~part & 0xffff) << 16, 32);
        deflate_flush(out);
        memcpy(out->next, bytes, part);
        out->next += part;
        bytes += part;
        size -= part;
    } while (size > 0);
}

size_t deflate_band(struct deflate_workspace *workspace, const uint8_t *bytes, size_t size, size_t pixel, bool last,
                    uint8_t *to)
{
    struct deflate_writer out = {.next = to};
    for (size_t start = 0, end; start < size; start = end) {
        struct deflate_codes codes;
        const struct deflate_writer begin = out;
        const size_t max = workspace->is_fast ? FAST_BLOCK : DEFLATE_BLOCK;
        end = size - start < max ? size : start + max;
        const bool final = last && end == size;
        workspace->loops->split(workspace, bytes + start, end - start, start, pixel);
        bool is_stored = deflate_make_codes(&workspace->uses, &codes) >= 8 * (uint64_t)(end - start);
        if (!is_stored) {
            deflate_write_description(&codes, final, &out);
            deflate_set_tables(&workspace->tables, &codes, 0, 1);
            workspace->loops->write(workspace, bytes + start, &out);
            is_stored = (size_t)(out.next - begin.next) > end - start; /* the fast level estimates */
        }
        if (is_stored) {
            out = begin;
            write_stored(bytes + start, end - start, final, &out);
        }
    }
    if (last)
        deflate_align(&out);
    else
        write_stored(bytes, 0, false, &out); /* an empty block, which ends at a whole byte */
    return (size_t)(out.next - to);
}

size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *to)
{
    struct deflate_writer out = {.next = to};
    write_stored(bytes, size, last, &out);
    return (size_t)(out.next - to);
}
