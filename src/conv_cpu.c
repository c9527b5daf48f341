/* SPDX-License-Identifier: MIT
 *
 * The variants of the CPU: the reference, written to be read, and the fast one, which comes from it in four steps.
 *
 * 1. The border leaves the inner loop. The image is cut into tiles; each input row of a tile is copied once, with its
 *    halo and what stands outside the image, into a row of a small ring that holds as many rows as the filter has.
 * 2. That copy also converts: to float where sums are exact in float (sum|q| * 255 < 2^24: every partial sum is an
 *    integer that a float holds), because one fused multiply-add does a tap of 4 to 16 samples; else to int32_t.
 * 3. The taps become a list without the zeros. A block of samples keeps its sums in vector registers while the list is
 *    walked once, so a tap costs one load and one multiply-add.
 * 4. A separable filter is two such lists: its row applied to each input row on the way into the ring, its column to
 *    the ring.
 *
 * Tiles are handed to threads. The function that does the sums is compiled for several instruction sets, and the loader
 * picks the one that the machine has. */
#include "conv.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* These two are named in the table only. */
bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error);
bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error);

static const void *row_at(const struct plane *plane, int channel, int y)
{
    return (const char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

static void *row_to(const struct plane *plane, int channel, int y)
{
    return (char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

static int thread_count(const struct plan *plan)
{
#ifdef _OPENMP
    return plan->threads > 0 ? plan->threads : omp_get_max_threads();
#else
    (void)plan;
    return 1;
#endif
}

/* Call WORK for each index below COUNT, on THREADS threads, the calling one among them. */
static void parallel_for(int threads, int64_t count, void (*work)(void *context, int64_t index, int thread),
                         void *context)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        /* Signals that end the program are left to the calling thread: it holds them back while it writes a file
         * (codec_write), which is of no use while another thread takes them. */
        sigset_t all;
        sigfillset(&all);
        if (omp_get_thread_num() != 0)
            pthread_sigmask(SIG_BLOCK, &all, NULL);
#pragma omp for schedule(dynamic)
        for (int64_t index = 0; index < count; index++)
            work(context, index, omp_get_thread_num());
    }
#else
    (void)threads;
    for (int64_t index = 0; index < count; index++)
        work(context, index, 0);
#endif
}

/* The reference. */

static uint8_t reference_u8(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (int64_t)f->taps[i * f->width + j] * ((const uint8_t *)row_at(in, channel, from_y))[from_x];
        }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += f->bias;
    const int64_t level = sum < 0 ? 0 : sum / f->scale; /* floor: a negative sum is clamped to 0 either way */
    return (uint8_t)(level < 255 ? level : 255);
}

static float reference_f32(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (double)f->taps[i * f->width + j] * (double)((const float *)row_at(in, channel, from_y))[from_x];
        }
    return (float)((f->absolute ? fabs(sum) : sum) / f->scale + f->offset);
}

struct images {
    const struct plan *plan;
    const struct plane *in, *out;
};

static void reference_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct images *images = context;
    const struct plane *in = images->in, *out = images->out;
    const int channel = (int)(index / in->height), y = (int)(index % in->height);
    for (int x = 0; x < in->width; x++)
        if (in->sample == SAMPLE_U8)
            ((uint8_t *)row_to(out, channel, y))[x] = reference_u8(images->plan, in, channel, y, x);
        else
            ((float *)row_to(out, channel, y))[x] = reference_f32(images->plan, in, channel, y, x);
}

bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error)
{
    (void)device;
    (void)error;
    struct images images = {plan, in, out};
    parallel_for(thread_count(plan), (int64_t)in->count * in->height, reference_row, &images);
    return true;
}

/* The fast one. */

/* A vector of 64 bytes is one register of AVX-512, two of AVX2, four of SSE or NEON; four of them hold the sums of a
 * block and leave registers for taps on all but the last. */
typedef float float_vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t int_vector __attribute__((vector_size(64), aligned(4), may_alias));

enum {
    LANES = 16,           /* samples of 4 bytes in a vector */
    BLOCK = 4 * LANES,    /* samples whose sums are kept in registers */
    TILE_WIDTH = 1024,    /* 127 ring rows of (1024 + 126) x 4 bytes are 570 KiB, within a core's L2 cache */
    TILE_HEIGHT = 64,     /* at least; the halo rows that neighbouring tiles both load are few beside it */
    PARALLEL_WORK = 65536 /* sample-taps below which waking threads costs more than it saves */
};

/* A sample of work: 4 bytes, a float or an int32_t. */
union cell {
    float f;
    int32_t i;
};

/* One tap that is not zero: which row of the ring (0 the topmost under the filter), which column, which weight. */
struct tap {
    int row, column;
    union cell weight;
};

struct tap_list {
    int count;
    struct tap taps[FILTER_MAX * FILTER_MAX];
};

#ifdef GPUCONV_CLONES /* the instruction sets, from the build */
#define CLONES __attribute__((target_clones(GPUCONV_CLONES)))
#else
#define CLONES
#endif

/* sums[x] = sum over the list of weight * rows[tap.row][x + tap.column], for x from 0 to WIDTH rounded up to BLOCK. */
#define DEFINE_SUM_ROW(function, vector, member)                                                                       \
    CLONES static void function(const struct tap *taps, int count, const union cell *const *rows, int width,           \
                                union cell *sums)                                                                      \
    {                                                                                                                  \
        for (int x = 0; x < width; x += BLOCK) {                                                                       \
            vector sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};                                                     \
            for (int t = 0; t < count; t++) {                                                                          \
                const union cell *from = rows[taps[t].row] + taps[t].column + x;                                       \
                sum0 += taps[t].weight.member * *(const vector *)(from + 0 * LANES);                                   \
                sum1 += taps[t].weight.member * *(const vector *)(from + 1 * LANES);                                   \
                sum2 += taps[t].weight.member * *(const vector *)(from + 2 * LANES);                                   \
                sum3 += taps[t].weight.member * *(const vector *)(from + 3 * LANES);                                   \
            }                                                                                                          \
            *(vector *)(sums + x + 0 * LANES) = sum0;                                                                  \
            *(vector *)(sums + x + 1 * LANES) = sum1;                                                                  \
            *(vector *)(sums + x + 2 * LANES) = sum2;                                                                  \
            *(vector *)(sums + x + 3 * LANES) = sum3;                                                                  \
        }                                                                                                              \
    }

DEFINE_SUM_ROW(sum_row_float, float_vector, f)
DEFINE_SUM_ROW(sum_row_int, int_vector, i)

CLONES static void round_row(const struct rounding *rounding, bool is_float, const union cell *sums, int width,
                             uint8_t *to)
{
    const struct rounding r = *rounding;
    if (r.wide || r.absolute) {
        for (int x = 0; x < width; x++)
            to[x] = rounding_apply(&r, is_float ? (int32_t)sums[x].f : sums[x].i);
        return;
    }
    for (int x = 0; x < width; x++) {
        const int32_t sum = is_float ? (int32_t)sums[x].f : sums[x].i;
        const int32_t clamped = sum < r.low ? r.low : sum > r.high ? r.high : sum;
        const uint32_t t = (uint32_t)clamped + (uint32_t)(uint64_t)r.bias;
        to[x] = (uint8_t)((uint64_t)t * r.multiplier >> 32 >> r.shift);
    }
}

static void finish_row_float(const struct plan *plan, const union cell *sums, int width, float *to)
{
    for (int x = 0; x < width; x++)
        to[x] = (plan->filter->absolute ? fabsf(sums[x].f) : sums[x].f) + plan->offset;
}

/* What all tiles share. */
struct job {
    const struct plan *plan;
    const struct plane *in, *out;
    bool is_float;                  /* sums in float, else in int32_t */
    bool passes;                    /* row pass into the ring, column pass from it */
    struct tap_list *list, *across; /* the taps from ring to output; for `passes`, those from input row to ring */
    size_t ring_row;                /* cells of a row */
    int tile_height, tiles_x, tiles_y;
    union cell *cells; /* all threads' scratch, scratch_cells each */
    size_t scratch_cells;
};

/* One thread's part of that memory. */
struct scratch {
    union cell *ring;  /* filter height rows */
    union cell *input; /* one row, for `passes` */
    union cell *sums;  /* one row */
};

static union cell sample_cell(const struct job *job, const void *row, int x)
{
    if (job->plan->sample == SAMPLE_F32)
        return (union cell){.f = ((const float *)row)[x]};
    const uint8_t value = ((const uint8_t *)row)[x];
    return job->is_float ? (union cell){.f = value} : (union cell){.i = value};
}

/* cells[k] = in(y, x0 + k) for k from 0 to COUNT, border included; the rest of the block that sum_row reads is zero. */
static void load_row(const struct job *job, int channel, int y, int x0, int count, union cell *cells)
{
    const enum border border = job->plan->border;
    const int from_y = border_index(y, job->in->height, border);
    memset(cells + count, 0, (job->ring_row - (size_t)count) * sizeof *cells);
    if (from_y < 0) {
        memset(cells, 0, (size_t)count * sizeof *cells);
        return;
    }
    const void *row = row_at(job->in, channel, from_y);
    const int width = job->in->width;
    const int first = x0 < 0 ? (-x0 < count ? -x0 : count) : 0; /* cells left of the image */
    const int last = width - x0 < count ? width - x0 : count;   /* the first cell right of it */
    for (int k = 0; k < first; k++) {
        const int x = border_index(x0 + k, width, border);
        cells[k] = x < 0 ? (union cell){.i = 0} : sample_cell(job, row, x);
    }
    if (job->plan->sample == SAMPLE_F32) {
        if (last > first)
            memcpy(cells + first, (const float *)row + x0 + first, (size_t)(last - first) * sizeof *cells);
    } else {
        const uint8_t *samples = (const uint8_t *)row + x0;
        if (job->is_float)
            for (int k = first; k < last; k++)
                cells[k].f = samples[k];
        else
            for (int k = first; k < last; k++)
                cells[k].i = samples[k];
    }
    for (int k = last > first ? last : first; k < count; k++) {
        const int x = border_index(x0 + k, width, border);
        cells[k] = x < 0 ? (union cell){.i = 0} : sample_cell(job, row, x);
    }
}

static void sum_row(const struct job *job, const struct tap_list *list, const union cell *const *rows, int width,
                    union cell *sums)
{
    (job->is_float ? sum_row_float : sum_row_int)(list->taps, list->count, rows, width, sums);
}

static void convolve_tile(const struct job *job, const struct scratch *scratch, int channel, int y0, int y1, int x0,
                          int x1)
{
    const struct filter *f = job->plan->filter;
    const int width = x1 - x0;
    const union cell *rows[FILTER_MAX];
    for (int y = y0 - (f->height - 1); y < y1; y++) {
        /* The lowest row under the filter at output row y goes into the slot of the row that has left it. */
        const int newest = y - y0 + f->height - 1;
        union cell *slot = scratch->ring + (size_t)(newest % f->height) * job->ring_row;
        union cell *loaded = job->passes ? scratch->input : slot;
        load_row(job, channel, y + f->height - 1 - f->anchor_y, x0 - f->anchor_x, width + f->width - 1, loaded);
        if (job->passes)
            sum_row(job, job->across, (const union cell *const[]){loaded}, width, slot);
        if (y < y0)
            continue;
        for (int i = 0; i < f->height; i++)
            rows[i] = scratch->ring + (size_t)((newest + 1 + i) % f->height) * job->ring_row;
        sum_row(job, job->list, rows, width, scratch->sums);
        if (job->plan->sample == SAMPLE_U8)
            round_row(&job->plan->rounding, job->is_float, scratch->sums, width,
                      (uint8_t *)row_to(job->out, channel, y) + x0);
        else
            finish_row_float(job->plan, scratch->sums, width, (float *)row_to(job->out, channel, y) + x0);
    }
}

static void convolve_numbered_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    union cell *mine = job->cells + (size_t)thread * job->scratch_cells;
    const size_t filter_height = (size_t)job->plan->filter->height;
    const struct scratch scratch = {
        .ring = mine,
        .input = mine + job->ring_row * filter_height,
        .sums = mine + job->ring_row * (filter_height + 1),
    };
    const int width = job->in->width, height = job->in->height;
    const int x0 = (int)(tile % job->tiles_x) * TILE_WIDTH;
    const int y0 = (int)(tile / job->tiles_x % job->tiles_y) * job->tile_height;
    const int x1 = width - x0 < TILE_WIDTH ? width : x0 + TILE_WIDTH;
    const int y1 = height - y0 < job->tile_height ? height : y0 + job->tile_height;
    convolve_tile(job, &scratch, (int)(tile / job->tiles_x / job->tiles_y), y0, y1, x0, x1);
}

static void add_tap(const struct job *job, struct tap_list *list, int row, int column, int32_t q, int32_t divisor)
{
    if (q == 0)
        return;
    const union cell weight = job->plan->sample == SAMPLE_F32 ? (union cell){.f = (float)((double)q / divisor)}
                              : job->is_float                 ? (union cell){.f = (float)q}
                                                              : (union cell){.i = q};
    list->taps[list->count++] = (struct tap){row, column, weight};
}

/* Fill the job's lists and say whether it takes two passes. */
static void list_taps(struct job *job)
{
    const struct filter *f = job->plan->filter;
    const int32_t divisor = job->plan->sample == SAMPLE_F32 ? f->scale : 1;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++)
            add_tap(job, job->list, i, j, f->taps[i * f->width + j], divisor);
    job->passes = f->separable && job->list->count > f->width + f->height;
    if (!job->passes)
        return;
    /* |sum of row * in| <= sum|q| * 255, as some |column| >= 1: what is exact for the whole is exact for the pass. */
    job->list->count = 0;
    for (int i = 0; i < f->height; i++)
        add_tap(job, job->list, i, 0, f->column[i], divisor);
    for (int j = 0; j < f->width; j++)
        add_tap(job, job->across, 0, j, f->row[j], 1);
}

bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error)
{
    (void)device;
    const struct filter *f = plan->filter;
    struct job job = {.plan = plan, .in = in, .out = out};
    job.is_float = plan->sample == SAMPLE_F32 || plan->float_exact;
    job.ring_row = TILE_WIDTH + FILTER_MAX - 1 + BLOCK;
    job.tile_height = 2 * f->height > TILE_HEIGHT ? 2 * f->height : TILE_HEIGHT;
    job.tiles_x = (in->width + TILE_WIDTH - 1) / TILE_WIDTH;
    job.tiles_y = (in->height + job.tile_height - 1) / job.tile_height;
    const int64_t tiles = (int64_t)job.tiles_x * job.tiles_y * in->count;
    const double work = (double)in->width * in->height * in->count * f->width * f->height;
    const int wanted = work < PARALLEL_WORK ? 1 : thread_count(plan);
    const int threads = tiles < wanted ? (int)tiles : wanted;

    job.scratch_cells = job.ring_row * ((size_t)f->height + 2);
    job.cells = malloc((size_t)threads * job.scratch_cells * sizeof *job.cells);
    job.list = calloc(1, sizeof *job.list);
    job.across = calloc(1, sizeof *job.across);
    const bool ok = job.cells && job.list && job.across;
    if (ok) {
        list_taps(&job);
        parallel_for(threads, tiles, convolve_numbered_tile, &job);
    } else {
        error_set(error, ERROR_WORK, "not enough memory for the filter %s; close other programs or lower --threads",
                  f->name);
    }
    free(job.cells);
    free(job.list);
    free(job.across);
    return ok;
}
