/* SPDX-License-Identifier: MIT
 *
 * Planes in guarded buffers: make, fill and check them. */
#include "check.h"

#include "base/random.h"
#include "base/round.h"

#include <stdlib.h>

enum {
    ROW_BYTES = 128,   /* struct plane asks for rows of device planes that are multiples of this */
    BUFFER_BYTES = 512 /* and for buffers and planes that are multiples of this */
};

struct guarded guarded_make(enum sample sample, int width, int height, int count, size_t extra)
{
    struct guarded g = {.plane = {.sample = sample, .width = width, .height = height, .count = count}};
    g.plane.row_bytes = round_up((size_t)width * sample_bytes(sample), ROW_BYTES) + extra;
    g.plane.plane_bytes = round_up(g.plane.row_bytes * (size_t)height, BUFFER_BYTES);
    g.size = 2 * GUARD + g.plane.plane_bytes * (size_t)count;
    g.memory = aligned_alloc(BUFFER_BYTES, round_up(g.size, BUFFER_BYTES));
    if (g.memory == NULL)
        fail("not enough memory");
    g.plane.data = g.memory + GUARD;
    return g;
}

unsigned char *row_of(const struct plane *plane, int channel, int y)
{
    return (unsigned char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

void fill_random(const struct plane *plane, uint64_t *state)
{
    for (int channel = 0; channel < plane->count; channel++)
        for (int y = 0; y < plane->height; y++) {
            unsigned char *row = row_of(plane, channel, y);
            for (int x = 0; x < plane->width; x++) {
                const uint64_t r = random_next(state);
                if (plane->sample == SAMPLE_U8)
                    row[x] = (unsigned char)(r >> 56);
                else if (plane->sample == SAMPLE_U16)
                    ((uint16_t *)(void *)row)[x] = (uint16_t)(r >> 48);
                else
                    ((float *)(void *)row)[x] = (float)(r >> 40) / (1 << 24);
            }
        }
}

bool guards_intact(const struct guarded *g, unsigned char poison)
{
    const size_t samples = (size_t)g->plane.width * sample_bytes(g->plane.sample);
    const unsigned char *next = g->memory; /* the first byte that is not checked yet */
    for (int channel = 0; channel < g->plane.count; channel++)
        for (int y = 0; y < g->plane.height; y++) {
            const unsigned char *row = row_of(&g->plane, channel, y);
            for (; next < row; next++)
                if (*next != poison)
                    return false;
            next = row + samples;
        }
    for (; next < g->memory + g->size; next++)
        if (*next != poison)
            return false;
    return true;
}
