/* SPDX-License-Identifier: MIT
 *
 * The tables are made at run time: they are 330 KB, and few runs need them. */
#include "image/linear.h"

#include <math.h>
#include <stdlib.h>

enum { HIGHEST = 65535 };

double linear_light(double c)
{
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* The linear level at which LEVEL + 1 begins, of levels up to N. */
static double next_level(int level, int n)
{
    return HIGHEST * linear_light((level + 0.5) / n);
}

struct linear *linear_make(struct error *error)
{
    struct linear *linear = malloc(sizeof *linear);
    if (linear == NULL) {
        error_no_memory(error, "the tables of linear light");
        return NULL;
    }
    for (int i = 0; i <= 255; i++)
        linear->from8[i] = (uint16_t)(HIGHEST * linear_light(i / 255.0) + 0.5);
    for (int i = 0; i <= HIGHEST; i++)
        linear->from16[i] = (uint16_t)(HIGHEST * linear_light(i / (double)HIGHEST) + 0.5);
    for (int i = 0, level8 = 0, level16 = 0; i <= HIGHEST; i++) {
        while (level8 < 255 && next_level(level8, 255) <= i)
            level8++;
        while (level16 < HIGHEST && next_level(level16, HIGHEST) <= i)
            level16++;
        linear->to8[i] = (uint8_t)level8;
        linear->to16[i] = (uint16_t)level16;
    }
    return linear;
}
