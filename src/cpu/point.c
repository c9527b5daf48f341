/* SPDX-License-Identifier: MIT
 *
 * Filters that change each pixel by itself: rows of planes through a matrix and tables. */
#include "cpu/cpu.h"

#include "base/clones.h"
#include "base/parallel.h"
#include "base/vector/instruction_sets.h"
#include "plan/point.h"

#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    BLOCK_ROWS = 16, /* rows of a block, which a thread takes at once */
    PIECE = 2048,    /* samples of a row whose sums stay in a cache between the matrix and the table */
};

/* What all blocks of a launch share. */
struct pointing {
    const struct plan *plan;
    const struct point_tables *tables;
    const struct plane *in, *out;
    int first_row, last_row; /* the rows that are written, from the first to the one before the last */
    enum instruction_set set;
};

/* ---- Tables ---- */

#ifdef __x86_64__
/* Each 16 levels of the table take one shuffle, which gives 0 for bytes from 128 on: for all other samples. */
__attribute__((target("avx2"))) static size_t look_up_avx2(const uint8_t *table, const uint8_t *in, size_t count,
                                                           uint8_t *out)
{
    const __m256i above = _mm256_set1_epi8(0x70), step = _mm256_set1_epi8(16);
    __m256i parts[16];
    size_t i = 0;
    for (int k = 0; k < 16; k++)
        parts[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(table + 16 * k)));
    for (; i + sizeof *parts <= count; i += sizeof *parts) {
        __m256i x = _mm256_loadu_si256((const void *)(in + i)), levels = _mm256_setzero_si256();
        for (int k = 0; k < 16; k++, x = _mm256_sub_epi8(x, step))
            levels = _mm256_or_si256(levels, _mm256_shuffle_epi8(parts[k], _mm256_adds_epu8(x, above)));
        _mm256_storeu_si256((void *)(out + i), levels);
    }
    return i;
}

/* Four vectors hold the table. The shuffle of two reads the low 7 bits of a byte. */
__attribute__((target("avx512bw,avx512vbmi"))) static size_t look_up_vbmi(const uint8_t *table, const uint8_t *in,
                                                                          size_t count, uint8_t *out)
{
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64),
                  c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    size_t i = 0;
    for (; i + sizeof a <= count; i += sizeof a) {
        const __m512i x = _mm512_loadu_si512(in + i), low = _mm512_permutex2var_epi8(a, x, b);
        const __m512i high = _mm512_permutex2var_epi8(c, x, d);
        _mm512_storeu_si512(out + i, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(x), high));
    }
    return i;
}
#endif

/* Look up COUNT bytes with the loops of an instruction set. */
static void look_up_8(enum instruction_set set, const uint8_t *table, const uint8_t *in, size_t count, uint8_t *out)
{
    size_t i = 0;
#ifdef __x86_64__
    if (set >= SET_AVX512 && __builtin_cpu_supports("avx512vbmi"))
        i = look_up_vbmi(table, in, count, out);
    else if (set >= SET_AVX2)
        i = look_up_avx2(table, in, count, out);
#endif
    for (; i < count; i++)
        out[i] = table[in[i]];
    (void)set;
}

static void look_up(const struct pointing *pointing, const void *table, const void *in, size_t count, void *out)
{
    const enum sample sample = pointing->in->sample;
    const uint16_t *levels = table, *in16 = in;
    const float *floats = in;
    if (table == NULL)
        memmove(out, in, count * sample_bytes(sample));
    else if (sample == SAMPLE_U8)
        look_up_8(pointing->set, table, in, count, out);
    else if (sample == SAMPLE_U16)
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)out)[i] = levels[in16[i]];
    else
        for (size_t i = 0; i < count; i++)
            ((float *)out)[i] = point_curve_float(levels, floats[i]);
}

/* ---- Matrices ---- */

/* The samples of a pixel's channels: red, green, blue and alpha. A grey picture has one for all colours. Without alpha,
 * the fourth is one of the others, and its weight is 0, or the highest level. */
struct channels {
    const void *row[4];
};

CLONES(mix_8,
       (const struct point_sum *sum, const uint8_t *restrict r, const uint8_t *restrict g, const uint8_t *restrict b,
        const uint8_t *restrict a, size_t count, uint8_t *restrict out),
       (sum, r, g, b, a, count, out))
{
    const struct rounding rounding = sum->rounding;
    const int32_t *w = sum->weights;
    for (size_t i = 0; i < count; i++) {
        int32_t s = w[0] * r[i] + w[1] * g[i] + w[2] * b[i] + w[3] * a[i];
        s = s < rounding.low ? rounding.low : s > rounding.high ? rounding.high : s;
        const uint32_t t = (uint32_t)s + (uint32_t)(uint64_t)rounding.bias;
        out[i] = (uint8_t)((uint64_t)t * rounding.multiplier >> 32 >> rounding.shift);
    }
}

/* As mix_8, but the levels have 16 bits. */
CLONES(mix_wide_8,
       (const struct point_sum *sum, const uint8_t *restrict r, const uint8_t *restrict g, const uint8_t *restrict b,
        const uint8_t *restrict a, size_t count, uint16_t *restrict levels),
       (sum, r, g, b, a, count, levels))
{
    const int32_t *w = sum->weights;
    const struct rounding16 rounding = sum->rounding16;
    for (size_t i = 0; i < count; i++)
        levels[i] = rounding16_apply(&rounding, 257.0 * (w[0] * r[i] + w[1] * g[i] + w[2] * b[i] + w[3] * a[i]));
}

/* Doubles hold the sums, which are below 2^47. */
CLONES(mix_16, (const struct point_sum *sum, const struct channels *in, size_t count, uint16_t *restrict out),
       (sum, in, count, out))
{
    const uint16_t *restrict r = in->row[0], *restrict g = in->row[1], *restrict b = in->row[2];
    const uint16_t *restrict a = in->row[3];
    const double w[4] = {sum->weights[0], sum->weights[1], sum->weights[2], sum->weights[3]};
    const struct rounding16 rounding = sum->rounding16;
    for (size_t i = 0; i < count; i++)
        out[i] = rounding16_apply(&rounding, w[0] * r[i] + w[1] * g[i] + w[2] * b[i] + w[3] * a[i]);
}

static void mix_float(const struct point_sum *sum, int columns, const struct channels *in, const uint16_t *table,
                      size_t count, float *out)
{
    const float *r = in->row[0], *g = in->row[1], *b = in->row[2], *a = in->row[3], *f = sum->factors;
    for (size_t i = 0; i < count; i++) {
        float value = f[0] * r[i] + f[1] * g[i] + f[2] * b[i];
        if (columns > 3)
            value += f[3] * a[i];
        value += sum->offset;
        out[i] = table != NULL ? point_curve_float(table, value) : value;
    }
}

static void mix(const struct pointing *pointing, const struct point_sum *sum, const struct channels *in,
                const void *table, size_t count, void *out)
{
    const enum sample sample = pointing->plan->sample;
    const uint16_t *wide_table = table;
    uint16_t levels[PIECE];
    if (sample == SAMPLE_U8 && table == NULL && !sum->rounding.wide)
        mix_8(sum, in->row[0], in->row[1], in->row[2], in->row[3], count, out);
    else if (sample == SAMPLE_U8) {
        mix_wide_8(sum, in->row[0], in->row[1], in->row[2], in->row[3], count, levels);
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = reduce_sample(table != NULL ? wide_table[levels[i]] : levels[i]);
    } else if (sample == SAMPLE_U16) {
        mix_16(sum, in, count, out);
        for (size_t i = 0; table != NULL && i < count; i++)
            ((uint16_t *)out)[i] = wide_table[((uint16_t *)out)[i]];
    } else
        mix_float(sum, pointing->tables->columns, in, table, count, out);
}

/* Samples of the highest level, for alpha that is not there. */
static void fill_opaque(enum sample sample, void *row, size_t count)
{
    if (sample != SAMPLE_F32)
        memset(row, 255, count * sample_bytes(sample));
    for (size_t i = 0; sample == SAMPLE_F32 && i < count; i++)
        ((float *)row)[i] = 1;
}

/* ---- A block ---- */

/* Alpha of 8 bits on a wide table. */
static void look_up_wide(const uint16_t *table, const uint8_t *in, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = reduce_sample(table[widen_sample(in[i])]);
}

/* ---- Colours ---- */

/* The light of COUNT samples. */
static void find_light(enum sample sample, const uint16_t *table, const void *in, size_t count, void *light)
{
    const uint8_t *levels = in;
    const uint16_t *levels16 = in;
    const float *floats = in;
    if (sample == SAMPLE_U8)
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)light)[i] = table[levels[i]];
    else if (sample == SAMPLE_U16)
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)light)[i] = table[levels16[i]];
    else
        for (size_t i = 0; i < count; i++)
            ((float *)light)[i] = point_curve_float(table, floats[i]);
}

/* Convert COUNT pixels of three colours, from column X of row Y on, through light. */
static void convert_piece(const struct pointing *pointing, int y, size_t x, size_t count)
{
    enum { LIGHT = 512 }; /* pixels whose light stays in a cache */
    const struct point_tables *tables = pointing->tables;
    const struct plane *in = pointing->in, *out = pointing->out;
    const enum sample sample = in->sample;
    uint32_t light[3][LIGHT]; /* samples of 2 or 4 bytes */
    uint16_t levels[LIGHT];
    const struct channels channels = {{light[0], light[1], light[2], light[0]}};
    for (size_t done = 0, n; done < count; done += n) {
        const size_t offset = (x + done) * sample_bytes(sample);
        n = count - done < LIGHT ? count - done : LIGHT;
        for (int c = 0; c < 3; c++)
            find_light(sample, point_light_of(tables, c), (const char *)plane_row(in, c, y) + offset, n, light[c]);
        for (int c = 0; c < 3; c++) {
            const struct point_sum *sum = point_row_of(tables, in->count, c);
            const uint16_t *table = point_table_of(tables, in->count, c);
            void *to = (char *)plane_row(out, c, y) + offset;
            if (sample == SAMPLE_F32) {
                mix_float(sum, tables->columns, &channels, table, n, to);
                continue;
            }
            mix_16(sum, &channels, n, levels);
            for (size_t i = 0; sample == SAMPLE_U8 && i < n; i++)
                ((uint8_t *)to)[i] = reduce_sample(table[levels[i]]);
            for (size_t i = 0; sample == SAMPLE_U16 && i < n; i++)
                ((uint16_t *)to)[i] = table[levels[i]];
        }
        if (in->count == 4)
            memcpy((char *)plane_row(out, 3, y) + offset, (const char *)plane_row(in, 3, y) + offset,
                   n * sample_bytes(sample));
    }
}

/* ---- Rows ---- */

/* Make COUNT samples of all planes from column X of row Y on. */
static void make_piece(const struct pointing *pointing, int y, size_t x, size_t count)
{
    const struct plane *in = pointing->in, *out = pointing->out;
    const enum sample sample = in->sample;
    const size_t offset = x * sample_bytes(sample);
    const int planes = in->count, colours = planes > 2 ? 3 : 1;
    uint32_t opaque[PIECE]; /* samples of up to 4 bytes */
    struct channels channels;
    for (int c = 0; c < 4; c++)
        channels.row[c] = (const char *)plane_row(in, c < colours ? c : c < 3 ? 0 : planes - 1, y) + offset;
    if (pointing->tables->columns > 3 && planes % 2 == 1) {
        fill_opaque(sample, opaque, count);
        channels.row[3] = opaque;
    }
    for (int c = 0; c < planes; c++) {
        const struct point_sum *sum = point_row_of(pointing->tables, planes, c);
        const void *table = point_table_of(pointing->tables, planes, c);
        const void *from = (const char *)plane_row(in, c, y) + offset;
        void *to = (char *)plane_row(out, c, y) + offset;
        if (c > 0 && c < colours && sum != NULL && sum == point_row_of(pointing->tables, planes, c - 1) &&
            table == point_table_of(pointing->tables, planes, c - 1)) /* it is grey */
            memcpy(to, (char *)plane_row(out, c - 1, y) + offset, count * sample_bytes(sample));
        else if (sum != NULL)
            mix(pointing, sum, &channels, table, count, to);
        else if (sample == SAMPLE_U8 && table != NULL && pointing->tables->is_wide)
            look_up_wide(table, from, count, to);
        else
            look_up(pointing, table, from, count, to);
    }
}

static void point_block(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct pointing *pointing = context;
    const struct plane *in = pointing->in;
    const int first = pointing->first_row + (int)index * BLOCK_ROWS;
    const int last = first + BLOCK_ROWS < pointing->last_row ? first + BLOCK_ROWS : pointing->last_row;
    if (cpu_is_stopped(pointing->plan->stop))
        return;
    for (int y = first; y < last; y++) {
        const size_t width = (size_t)in->width;
        if (in->is_together) { /* all channels have one table */
            look_up(pointing, point_table_of(pointing->tables, 1, 0), plane_row(in, 0, y), width * (size_t)in->count,
                    plane_row(pointing->out, 0, y));
            continue;
        }
        for (size_t x = 0; x < width; x += PIECE)
            (pointing->tables->lights > 0 ? convert_piece : make_piece)(pointing, y, x,
                                                                        width - x < PIECE ? width - x : PIECE);
    }
}

/* ---- Automatic ---- */

/* What all blocks of a histogram share. */
struct counting {
    const struct plan *plan;
    const struct plane *in;
    int levels;
    uint64_t *counts; /* for each thread, of each colour and level */
};

static void count_block(void *context, int64_t index, int thread)
{
    const struct counting *counting = context;
    const struct plane *in = counting->in;
    const int colours = in->count > 2 ? 3 : 1, levels = counting->levels;
    const int64_t first = index * BLOCK_ROWS, last = first + BLOCK_ROWS < in->height ? first + BLOCK_ROWS : in->height;
    if (cpu_is_stopped(counting->plan->stop))
        return;
    for (int c = 0; c < colours; c++) {
        uint64_t *counts = counting->counts + ((ptrdiff_t)thread * 3 + c) * levels;
        for (int y = (int)first; y < last; y++) {
            const void *row = plane_row(in, c, y);
            for (int x = 0; in->sample == SAMPLE_U8 && x < in->width; x++)
                counts[((const uint8_t *)row)[x]]++;
            for (int x = 0; in->sample == SAMPLE_U16 && x < in->width; x++)
                counts[((const uint16_t *)row)[x]]++;
            for (int x = 0; in->sample == SAMPLE_F32 && x < in->width; x++) {
                const int level = point_float_level(((const float *)row)[x]);
                if (level >= 0)
                    counts[level]++;
            }
        }
    }
}

/* Make the ranges of the colours of IN. */
static bool find_ranges(const struct plan *plan, const struct plane *in, struct point_range range[3])
{
    const struct point *point = &plan->filter->point;
    const int threads = thread_pool_threads(plan->pool), levels = in->sample == SAMPLE_U8 ? 256 : 65536;
    struct counting counting = {plan, in, levels, calloc((size_t)threads * 3 * (size_t)levels, sizeof(uint64_t))};
    if (counting.counts == NULL)
        return false;
    parallel_for(plan->pool, threads, (in->height + BLOCK_ROWS - 1) / BLOCK_ROWS, count_block, &counting);
    for (int i = 1; i < threads; i++)
        for (int k = 0; k < 3 * levels; k++)
            counting.counts[k] += counting.counts[(ptrdiff_t)i * 3 * levels + k];
    for (int k = 0; point->automatic == AUTOMATIC_ALL && k < levels; k++)
        counting.counts[k] += counting.counts[levels + k] + counting.counts[2 * levels + k];
    for (int c = 0; c < 3; c++) {
        const uint64_t *counts = counting.counts + (point->automatic == AUTOMATIC_ALL ? 0 : (ptrdiff_t)c * levels);
        uint64_t n = 0;
        for (int k = 0; k < levels; k++)
            n += counts[k];
        range[c] = point_range_find(counts, levels, n, point->clip);
    }
    free(counting.counts);
    return true;
}

/* ---- A launch ---- */

bool cpu_point_prepare(struct plan *plan, struct device *device, struct error *error)
{
    (void)device;
    if (plan->prepared == NULL)
        plan->prepared = point_tables_make(plan);
    plan->release = free;
    return plan->prepared != NULL || error_no_memory(error, "the tables of %s", plan->filter->name);
}

bool cpu_point_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error)
{
    (void)device;
    struct pointing pointing = {
        .plan = plan,
        .tables = plan->prepared,
        .in = in,
        .out = out,
        .first_row = plan->last_row > 0 ? plan->first_row : 0,
        .last_row = plan->last_row > 0 ? plan->last_row : out->height,
    };
    instruction_set_find(&pointing.set, NULL); /* the variant `cpu` reports an error of $GPUCONV_CPU */
    const int64_t blocks = (pointing.last_row - pointing.first_row + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const int max = thread_pool_threads(plan->pool);
    struct point_tables *own = NULL;
    if (plan->filter->point.automatic != AUTOMATIC_NONE) {
        struct point_range range[3];
        own = point_tables_make(plan);
        if (own == NULL || !find_ranges(plan, in, range)) {
            free(own);
            return error_no_memory(error, "the histogram of a picture");
        }
        point_tables_stretch(own, plan->sample, range);
        pointing.tables = own;
    }
    parallel_for(plan->pool, blocks < max ? (int)blocks : max, blocks, point_block, &pointing);
    free(own);
    return true;
}
