/* SPDX-License-Identifier: MIT
 *
 * Planes in guarded buffers: make, fill and compare them. */
#include "check.h"

#include "base/random.h"
#include "base/round.h"

#include <math.h>
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

double value_of(enum sample sample, const void *row, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

uint64_t count_mismatches(const struct plane *expected, const struct plane *actual, double allowed, int *where)
{
    uint64_t mismatches = 0;
    for (int channel = 0; channel < expected->count; channel++)
        for (int y = 0; y < expected->height; y++) {
            const unsigned char *e = row_of(expected, channel, y), *a = row_of(actual, channel, y);
            for (int x = 0; x < expected->width; x++) {
                const double difference = fabs(value_of(expected->sample, e, x) - value_of(expected->sample, a, x));
                if (!(difference <= allowed) && mismatches++ == 0) /* NaN is a mismatch */
                    where[0] = x, where[1] = y, where[2] = channel;
            }
        }
    return mismatches;
}

void check_expected(const struct plane *expected, const char *what)
{
    if (expected->sample == SAMPLE_F32 || (int64_t)expected->width * expected->height < 4096)
        return;
    size_t extremes = 0, total = 0;
    bool constant = true;
    const double first = value_of(expected->sample, row_of(expected, 0, 0), 0);
    const double white = expected->sample == SAMPLE_U8 ? 255 : 65535;
    for (int y = 0; y < expected->height; y++)
        for (int x = 0; x < expected->width; x++) {
            const double value = value_of(expected->sample, row_of(expected, 0, y), x);
            extremes += value == 0 || value == white;
            constant &= value == first;
            total++;
        }
    if (constant || extremes > total / 10)
        fail("%s: the expected image is %s; it would hide errors", what, constant ? "constant" : "saturated");
}
