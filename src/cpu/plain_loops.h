/* SPDX-License-Identifier: MIT
 *
 * The loops of the variant `cpu` that compilers vectorize by themselves. */
#ifndef GPUCONV_CPU_PLAIN_LOOPS_H
#define GPUCONV_CPU_PLAIN_LOOPS_H

#include "cpu/loops.h"

#include <string.h>

static void subtract_words(const int16_t *from, const int16_t *other, int count, int16_t *to)
{
    for (int k = 0; k < count; k++)
        to[k] = (int16_t)(from[k] - other[k]);
}

static void slide(const uint8_t *entering, const uint8_t *leaving, int count, uint16_t *columns)
{
    for (int k = 0; k < count; k++)
        columns[k] = (uint16_t)(columns[k] + entering[k] - leaving[k]);
}

#define SLIDE_WIDE(type)                                                                                               \
    for (int k = 0; k < count; k++)                                                                                    \
        columns[k] += ((const type *)entering)[k];                                                                     \
    for (int k = 0; k < count && leaving != NULL; k++)                                                                 \
        columns[k] -= ((const type *)leaving)[k];

static void slide_wide(enum sample sample, const void *entering, const void *leaving, int count, uint32_t *columns)
{
    if (sample == SAMPLE_U8) {
        SLIDE_WIDE(uint8_t)
    } else {
        SLIDE_WIDE(uint16_t)
    }
}

#define SLIDE_TIMES(type, sum)                                                                                         \
    for (int k = 0; k < count; k++)                                                                                    \
        ((sum *)columns)[k] = (sum)(((sum *)columns)[k] + (unsigned)times * ((const type *)entering)[k]);

static void slide_times(enum sample sample, const void *entering, int times, int count, bool is_wide, void *columns)
{
    if (!is_wide)
        SLIDE_TIMES(uint8_t, uint16_t)
    else if (sample == SAMPLE_U8)
        SLIDE_TIMES(uint8_t, uint32_t)
    else
        SLIDE_TIMES(uint16_t, uint32_t)
}

#define ACROSS_WIDE(type)                                                                                              \
    for (int x = 0; x < width; x++)                                                                                    \
        ((type *)out)[x] = (type)(int32_t)(((double)(int64_t)(end[x] - start[x]) + term) * factor);

static void slide_across_wide(const struct wide_window *window, const uint32_t *columns, int width, void *out)
{
    const uint64_t *start = window->prefixes, *end = start + window->columns;
    const double term = window->term, factor = window->factor;
    uint64_t sum = 0;
    window->prefixes[0] = 0;
    for (int k = 0; k < width + window->columns - 1; k++)
        window->prefixes[k + 1] = sum += columns[k];
    if (window->sample == SAMPLE_U8) {
        ACROSS_WIDE(uint8_t)
    } else {
        ACROSS_WIDE(uint16_t)
    }
}

/* The outputs of one sample type, as passes_unsharp: LEVEL is exact in doubles, because |A e| < 2^52 has 2^-28 as unit,
 * and the result is below 2^25. */
#define UNSHARP(type, blur_type)                                                                                       \
    for (int x = 0; x < width; x++) {                                                                                  \
        const int32_t sample_x = ((const type *)in)[x];                                                                \
        const int32_t e = (sample_x << UNSHARP_LEVEL_BITS) - ((const blur_type *)blurs)[x];                            \
        const double level = e * amount + (sample_x + 0.5);                                                            \
        const int32_t clamped = (int32_t)(level < 0 ? 0 : level > highest ? highest : level);                          \
        ((type *)out)[x] = (type)clamped;                                                                              \
    }

static void unsharp(const struct passes *p, enum sample sample, const void *blurs, const void *in, int width, void *out)
{
    const double amount = p->amount / (double)(1 << (UNSHARP_AMOUNT_BITS + UNSHARP_LEVEL_BITS)), highest = p->highest;
    if (sample == SAMPLE_U8) {
        UNSHARP(uint8_t, uint16_t)
    } else if (sample == SAMPLE_U16) {
        UNSHARP(uint16_t, int32_t)
    } else {
        const float factor = (float)p->amount / (1 << UNSHARP_AMOUNT_BITS);
        for (int x = 0; x < width; x++) {
            const float value = ((const float *)in)[x];
            ((float *)out)[x] = value + factor * (value - ((const float *)blurs)[x]);
        }
    }
}

/* Set the marks for samples of one type. The levels of a blur are multiples of 1 / UNIT. */
#define MARK(type, blur_type, detail_type, unit, min)                                                                  \
    for (int x = 0; x < width; x++) {                                                                                  \
        const detail_type e = ((const type *)in)[x] * (unit) - ((const blur_type *)blurs)[x];                          \
        marks[x] |= (e < 0 ? -e : e) >= (min);                                                                         \
    }

static void mark_detail(const struct passes *p, enum sample sample, const void *blurs, const void *in, int width,
                        uint8_t *marks)
{
    const int32_t threshold = p->threshold;
    if (sample == SAMPLE_U8)
        MARK(uint8_t, uint16_t, int32_t, 1 << UNSHARP_LEVEL_BITS, threshold)
    else if (sample == SAMPLE_U16)
        MARK(uint16_t, int32_t, int32_t, 1 << UNSHARP_LEVEL_BITS, threshold)
    else
        MARK(float, float, float, 1, (float)threshold / (65535 << UNSHARP_LEVEL_BITS)) /* a threshold for 16 bits */
}

#define KEEP(type)                                                                                                     \
    for (int x = 0; x < width; x++)                                                                                    \
        ((type *)out)[x] = marks[x] ? ((type *)out)[x] : ((const type *)in)[x];

static void keep_unmarked(enum sample sample, const uint8_t *marks, const void *in, int width, void *out)
{
    if (sample == SAMPLE_U8)
        KEEP(uint8_t)
    else if (sample == SAMPLE_U16)
        KEEP(uint16_t)
    else
        KEEP(float)
}

/* Copy COUNT samples: VALUE says what of from[k]. */
#define WIDEN(type, value)                                                                                             \
    for (int k = 0; k < count; k++)                                                                                    \
        ((type *)to)[k] = (type)(value);

static void widen16(enum arithmetic arithmetic, enum sample_part part, const uint16_t *from, int count, void *to)
{
    const int shift = part == PART_HIGH ? 8 : 0, mask = part == PART_LOW ? 255 : 65535;
    if (arithmetic == ARITHMETIC_WORDS && part == PART_ALL)
        memcpy(to, from, (size_t)count * sizeof *from);
    else if (arithmetic == ARITHMETIC_WORDS && part == PART_CENTRED)
        WIDEN(uint16_t, from[k] ^ 0x8000)
    else if (part == PART_CENTRED)
        WIDEN(int32_t, from[k] - 32768)
    else if (arithmetic == ARITHMETIC_WORDS)
        WIDEN(uint16_t, from[k] >> shift & mask)
    else if (arithmetic == ARITHMETIC_FLOATS)
        WIDEN(float, from[k])
    else
        WIDEN(int32_t, from[k] >> shift & mask)
}

static void widen8(enum arithmetic arithmetic, const uint8_t *from, int count, void *to)
{
    if (arithmetic <= ARITHMETIC_NARROW)
        memcpy(to, from, (size_t)count);
    else if (arithmetic == ARITHMETIC_WORDS)
        WIDEN(int16_t, from[k])
    else if (arithmetic == ARITHMETIC_FLOATS)
        WIDEN(float, from[k])
    else
        WIDEN(int32_t, from[k])
}

#endif
