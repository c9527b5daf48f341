/* SPDX-License-Identifier: MIT
 *
 * Pictures that reach the ends of the arithmetic and of the codes. */
#include "check.h"

#include "base/random.h"

#include <stdlib.h>

const char *const content_names[CONTENTS] = {"noise", "extremes", "flat", "edges", "photo"};

static uint8_t sample_of(enum content content, int x, int y, int channel, uint64_t key, uint64_t *state)
{
    const uint64_t random = random_next(state);
    switch (content) {
    case NOISE:
        return (uint8_t)(random >> 56);
    case EXTREMES: /* long codes, and coefficients that are as large as they can be */
        return ((key & 1) != 0 ? random >> 63 : (uint64_t)((x >> (key >> 1 & 3)) + (y >> (key >> 3 & 3))) & 1) ? 255
                                                                                                               : 0;
    case FLAT:
        return (uint8_t)(key >> 8 * (unsigned)channel);
    case EDGES: { /* flat areas, some of them of single blocks, so that DC jumps and runs of zeros are long */
        const uint64_t area = (uint64_t)(x / (8 << (key & 3))) * 0x9e3779b97f4a7c15u +
                              (uint64_t)(y / (8 << (key >> 2 & 3))) * 0xbf58476d1ce4e5b9u + (uint64_t)channel * 977;
        const uint64_t mixed = (area ^ key ^ area >> 29) * 0x94d049bb133111ebu;
        return (uint8_t)((mixed >> 60) == 0 ? random >> 56 : mixed >> 40);
    }
    case PHOTO:
    default: { /* slopes with some noise */
        const int slope = x * (1 + (int)(key & 3)) / 3 + y * (1 + (int)(key >> 2 & 3)) / 2 + channel * 40;
        const int level = (slope / 256 % 2 != 0 ? 255 - slope % 256 : slope % 256) + (int)(random >> 60) - 8;
        return (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
    }
    }
}

void make_picture(struct pixels *pixels, enum content content, uint64_t *state)
{
    const uint64_t key = random_next(state);
    uint8_t *to = pixels->samples = allocate(pixels_bytes(pixels));
    for (int y = 0; y < pixels->height; y++)
        for (int x = 0; x < pixels->width; x++)
            for (int c = 0; c < pixels->channels; c++)
                *to++ = sample_of(content, x, y, c, key, state);
}
