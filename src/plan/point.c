/* SPDX-License-Identifier: MIT */
#include "plan/point.h"

#include <stdlib.h>
#include <string.h>

static void set_sum(const struct point_row *row, struct point_sum *sum)
{
    memcpy(sum->weights, row->weights, sizeof sum->weights);
    rounding_make(row->scale, row->bias, false, &sum->rounding);
    rounding16_make(row->scale, row->bias16, false, &sum->rounding16);
    for (int c = 0; c < 4; c++)
        sum->factors[c] = (float)((double)row->weights[c] / row->scale);
    sum->offset = (float)(row->offset / 255);
}

/* What becomes of LEVEL of colour C: of a level, or of light after a matrix or in linear light. */
static uint16_t convert_level(const struct point *point, int c, uint16_t level)
{
    const struct colours *colours = point->colours;
    const uint16_t *light = colours->light[colours->curves > 1 ? c : 0];
    return colours->in_light ? light[colours->levels[level]] : colours->levels[point->rows > 0 ? level : light[level]];
}

/* The level of LEVEL after SUM, which weighs channel C only and may be NULL, and channel C's curve. */
static uint16_t find_level(const struct point *point, const struct point_sum *sum, int c, uint16_t level)
{
    const struct point_curve *curve = &point->curve[c];
    if (point->colours != NULL)
        return convert_level(point, c, level);
    if (sum != NULL)
        level = rounding16_apply(&sum->rounding16, (double)sum->weights[c] * level);
    return curve->count > 0 ? point_curve_level(curve, level) : level;
}

/* Do channels A and B have equal tables? */
static bool are_equal(const struct point *point, bool has_sums, int a, int b)
{
    const struct point_row *x = &point->row[a], *y = &point->row[b];
    if (point->colours != NULL)
        return point->colours->curves == 1 || (point->rows > 0 && !point->colours->in_light);
    return (!has_sums || (x->weights[a] == y->weights[b] && x->scale == y->scale && x->bias16 == y->bias16)) &&
           point_curve_equal(&point->curve[a], &point->curve[b]);
}

void point_tables_stretch(struct point_tables *tables, enum sample sample, const struct point_range range[3])
{
    const size_t size = point_table_bytes(tables);
    const int levels = sample == SAMPLE_U8 ? 256 : 65536;
    for (int c = 0; c < 3; c++) {
        tables->table_of[c] = c;
        uint8_t *table = tables->levels + (size_t)c * size;
        for (int i = 0; i < levels; i++) {
            const uint16_t level = point_stretch(range[c], i, levels - 1);
            if (sample == SAMPLE_U8)
                table[i] = (uint8_t)level;
            else
                memcpy(table + (size_t)i * sizeof level, &level, sizeof level);
        }
    }
    tables->tables = 3;
    tables->bytes = sizeof *tables + 3 * size;
}

struct point_tables *point_tables_make(const struct plan *plan)
{
    const struct point *point = &plan->filter->point;
    const bool has_sums = point_is_diagonal(point) && plan->sample != SAMPLE_F32 && point->colours == NULL;
    const struct point_tables first = {
        .rows = has_sums ? 0 : point->rows,
        .columns = point->columns,
        .is_wide = plan->sample != SAMPLE_U8 || (point->rows > 0 && !has_sums),
    };
    const size_t size = point_table_bytes(&first), levels = first.is_wide ? 65536 : 256;
    const bool has_light = point->colours != NULL && point->rows > 0 && !point->colours->in_light;
    const size_t light_levels = plan->sample == SAMPLE_U8 ? 256 : 65536;
    const size_t light_bytes = has_light ? (size_t)point->colours->curves * light_levels * sizeof(uint16_t) : 0;
    struct point_tables *tables = malloc(sizeof *tables + 4 * size + light_bytes);
    if (tables == NULL)
        return NULL;
    *tables = first;
    for (int i = 0; i < point->rows; i++)
        set_sum(&point->row[i], &tables->row[i]);
    for (int c = 0; c < 4; c++) {
        const struct point_curve *curve = &point->curve[c];
        const struct point_sum *sum = has_sums && c < point->rows ? &tables->row[c] : NULL;
        int same = 0;
        tables->table_of[c] = -1;
        if (sum == NULL && curve->count == 0 && (point->colours == NULL || c == 3))
            continue;
        while (same < c && (tables->table_of[same] < 0 || !are_equal(point, sum != NULL, same, c)))
            same++;
        tables->table_of[c] = same < c ? tables->table_of[same] : tables->tables++;
        uint8_t *table = tables->levels + (size_t)tables->table_of[c] * size;
        for (size_t i = 0; same == c && i < levels; i++) {
            const uint16_t level = find_level(point, sum, c, (uint16_t)(first.is_wide ? i : 257 * i));
            if (first.is_wide)
                memcpy(table + i * sizeof level, &level, sizeof level);
            else
                table[i] = reduce_sample(level);
        }
    }
    tables->light_offset = (size_t)tables->tables * size;
    tables->bytes = sizeof *tables + tables->light_offset + light_bytes;
    if (has_light) {
        tables->lights = point->colours->curves;
        tables->light_levels = (int)light_levels;
        for (int c = 0; c < tables->lights; c++)
            for (size_t i = 0; i < light_levels; i++)
                memcpy(tables->levels + tables->light_offset + (light_levels * (size_t)c + i) * sizeof(uint16_t),
                       &point->colours->light[c][light_levels == 256 ? 257 * i : i], sizeof(uint16_t));
    }
    return tables;
}
