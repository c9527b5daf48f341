/* SPDX-License-Identifier: MIT
 *
 * Every row of the table against the reference. (gpuconv --bench times them, and checks each again before.)
 *
 * A case is a filter, a size, a border and a sample type. Its input is random, with poison in the padding of its rows
 * and around it, so that a read outside the image shows. Each variant writes into a buffer full of poison, guarded on
 * both sides: an output that is not written, and a write outside the image, show too. The poison of uint8_t planes
 * changes from case to case, so that it cannot always equal the right answer; that of float planes is NaN. */
#include "base/random.h"
#include "cpu/instruction_sets.h"
#include "plan/plan.h"
#include "variants/table.h"
#ifdef GPUCONV_CUDA
#include "image/linear.h"
#include "kernels/device/device.h"
#endif

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_SKIPPED = 77,
    GUARD = 4096,          /* bytes on either side of the planes; a multiple of 512, as device planes ask */
    ROW_ALIGNMENT = 128,   /* as struct plane asks of device planes */
    PLANES_ALIGNMENT = 512 /* and of their buffer */
};

struct options {
    uint64_t seed;
    bool quick, large;
    const char *variant;
    bool cpu, cuda;
};

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        fail("not enough memory");
    return memory;
}

static int random_between(uint64_t *state, int low, int high)
{
    return low + (int)(random_next(state) % (uint64_t)(high - low + 1));
}

/* Filters. */

/* How large the random taps are, which decides the arithmetic: exact in float, or int32 only, or with a scale so large
 * that rounding takes 64 bits. */
enum magnitude { SMALL, MEDIUM, LARGE, WIDE, TINY };

enum {
    MEDIUM_TAP = 3000, /* more than 8 bits, fewer than 16 */
    TINY_TAP = 5       /* so few that floats hold the squares of sums whose root is 255 */
};

/* EQUAL: all taps are the same. SHIFT: all but one are 0, and that one is the scale. UNEVEN: column and row are of
 * different size, so that the sums of a row are small, or large. ROUND: the scale is a power of two. POSITIVE: column
 * and row have no tap below 0. ROOT, HIGHER and BOTH: two grids, with combine magnitude, max and sum. SLOPE: the second
 * is the first with columns for rows, and that a column times -1 0 1. FRACTION: the offset is no multiple of a half. */
enum {
    PLAIN = 0,
    SEPARABLE = 1,
    ABSOLUTE = 2,
    SPARSE = 4,
    EQUAL = 8,
    SHIFT = 16,
    UNEVEN = 32,
    ROUND = 64,
    POSITIVE = 128,
    ROOT = 256,
    HIGHER = 512,
    BOTH = 1024,
    TWO_GRIDS = ROOT | HIGHER | BOTH,
    SLOPE = 2048,
    FRACTION = 4096
};

struct shape {
    int width, height, anchor_x, anchor_y; /* anchors of -1: the centre */
    enum magnitude magnitude;
    int kind; /* bits */
};

static const struct shape shapes[] = {
    {1, 1, -1, -1, SMALL, PLAIN},
    {3, 3, -1, -1, SMALL, PLAIN},
    {3, 3, -1, -1, SMALL, ABSOLUTE},
    {3, 3, 0, 2, LARGE, PLAIN},
    {5, 5, -1, -1, LARGE, PLAIN},
    {7, 7, -1, -1, SMALL, PLAIN},
    {9, 9, -1, -1, SMALL, PLAIN},
    {9, 9, -1, -1, LARGE, ABSOLUTE},
    {9, 9, -1, -1, WIDE, PLAIN},
    {2, 2, -1, -1, SMALL, PLAIN},
    {4, 6, 3, 0, SMALL, PLAIN},
    {1, 17, -1, -1, SMALL, PLAIN},
    {17, 1, -1, -1, LARGE, PLAIN},
    {18, 33, -1, -1, SMALL, PLAIN},
    {34, 19, 33, 18, LARGE, PLAIN},
    {11, 11, -1, -1, SMALL, PLAIN},
    {13, 13, -1, -1, LARGE, PLAIN},
    {15, 15, -1, -1, SMALL, SPARSE},
    {31, 31, -1, -1, SMALL, PLAIN},
    {127, 127, -1, -1, SMALL, PLAIN},
    {127, 127, 126, 0, LARGE, PLAIN},
    {3, 3, -1, -1, SMALL, SEPARABLE},
    {5, 5, -1, -1, SMALL, SEPARABLE},
    {7, 7, -1, -1, LARGE, SEPARABLE},
    {9, 9, -1, -1, SMALL, SEPARABLE},
    {11, 11, -1, -1, LARGE, SEPARABLE},
    {13, 13, -1, -1, SMALL, SEPARABLE},
    {15, 15, -1, -1, SMALL, SEPARABLE | ABSOLUTE},
    {21, 21, -1, -1, SMALL, SEPARABLE},
    {31, 31, -1, -1, LARGE, SEPARABLE},
    {9, 5, 8, 0, SMALL, SEPARABLE},
    {33, 12, -1, -1, LARGE, SEPARABLE},
    {127, 127, -1, -1, LARGE, SEPARABLE},
    {9, 9, -1, -1, SMALL, SEPARABLE | UNEVEN},
    {16, 7, -1, -1, SMALL, SEPARABLE | UNEVEN},
    {7, 8, -1, -1, LARGE, SEPARABLE | UNEVEN},
    {17, 17, -1, -1, MEDIUM, SEPARABLE},
    {16, 17, -1, -1, MEDIUM, SEPARABLE | ROUND},
    {15, 13, -1, -1, LARGE, SEPARABLE | POSITIVE},
    {13, 15, -1, -1, LARGE, SEPARABLE | POSITIVE | ROUND},
    {11, 12, -1, -1, LARGE, SEPARABLE | ROUND},
    {25, 25, -1, -1, SMALL, SEPARABLE | ABSOLUTE},
    {29, 31, -1, -1, LARGE, SEPARABLE | ROUND},
    {20, 19, -1, -1, LARGE, SEPARABLE | POSITIVE},
    {19, 20, -1, -1, LARGE, SEPARABLE | POSITIVE | ROUND},
    {19, 20, -1, -1, LARGE, SEPARABLE},
    {20, 19, -1, -1, LARGE, SEPARABLE | ROUND},
    {13, 29, 1, 28, SMALL, SEPARABLE},
    {33, 33, -1, -1, SMALL, SEPARABLE | ROUND},
    {9, 9, -1, -1, SMALL, EQUAL},
    {31, 31, -1, -1, SMALL, EQUAL},
    {30, 12, -1, -1, SMALL, EQUAL | ABSOLUTE},
    {127, 127, -1, -1, SMALL, EQUAL},
    {5, 6, 0, 5, LARGE, EQUAL},
    {2, 40, -1, -1, SMALL, EQUAL},
    {1, 1, -1, -1, LARGE, PLAIN},
    {9, 9, -1, -1, SMALL, ROUND},
    {9, 9, -1, -1, SMALL, ROUND | ABSOLUTE},
    {5, 9, -1, -1, LARGE, ROUND},
    {8, 8, -1, -1, SMALL, ABSOLUTE},
    {12, 5, -1, -1, MEDIUM, PLAIN},
    {9, 9, -1, -1, MEDIUM, PLAIN},
    {16, 16, -1, -1, MEDIUM, PLAIN},
    {1, 1, -1, -1, SMALL, SHIFT},
    {5, 5, -1, -1, SMALL, SHIFT},
    {127, 1, 0, 0, SMALL, SHIFT},
    {127, 1, 126, 0, SMALL, SHIFT},
    {1, 127, 0, 63, SMALL, SHIFT},
    {33, 9, 16, 8, SMALL, SHIFT},
    {127, 3, 126, 0, SMALL, SHIFT},
    {21, 11, -1, -1, LARGE, SPARSE},
    {127, 5, 126, 0, SMALL, SPARSE},
    {3, 3, -1, -1, TINY, ROOT | SLOPE},
    {3, 3, -1, -1, TINY, ROOT | SLOPE | ROUND},
    {3, 3, -1, -1, TINY, ROOT | SLOPE | FRACTION},
    {3, 3, -1, -1, MEDIUM, ROOT | SLOPE},
    {3, 3, -1, -1, TINY, HIGHER | SLOPE},
    {3, 3, -1, -1, TINY, BOTH | SLOPE},
    {3, 3, -1, -1, SMALL, HIGHER | SLOPE | FRACTION},
    {3, 3, -1, -1, LARGE, BOTH | SLOPE},
    {3, 3, -1, -1, TINY, ROOT},
    {3, 3, 0, 2, TINY, ROOT | SLOPE},
    {3, 3, -1, -1, TINY, BOTH | FRACTION},
    {5, 5, -1, -1, TINY, ROOT},
    {7, 7, -1, -1, TINY, HIGHER},
    {9, 9, -1, -1, SMALL, BOTH | ROUND},
    {1, 2, -1, -1, TINY, ROOT},
    {2, 2, -1, -1, TINY, ROOT},
    {6, 4, 5, 0, MEDIUM, ROOT},
    {5, 3, -1, -1, LARGE, ROOT},
    {4, 7, 0, 6, LARGE, HIGHER},
    {15, 2, 3, 1, WIDE, BOTH},
    {3, 5, -1, -1, WIDE, ROOT | FRACTION},
    {127, 127, -1, -1, TINY, ROOT},
    {127, 127, 126, 0, LARGE, BOTH},
};

/* Let COUNT taps sum to 0, as those of edges do: else all magnitudes would be about one and hide errors. */
static void balance(int *taps, int count, uint64_t *state)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += taps[k];
    const int each = (int)(sum / count);
    for (int k = 0; k < count; k++, sum -= each)
        taps[k] -= each;
    for (; sum != 0; sum += sum < 0 ? 1 : -1)
        taps[random_between(state, 0, count - 1)] -= sum < 0 ? -1 : 1;
}

/* Random taps of one shape with two grids. The sums of both have mean 0 and the deviation 73.9 * sqrt(squares). */
static void random_gradient(const struct shape *shape, uint64_t *state, struct filter *filter)
{
    const int count = shape->width * shape->height;
    const int limit = shape->magnitude == TINY     ? TINY_TAP
                      : shape->magnitude == SMALL  ? 100
                      : shape->magnitude == MEDIUM ? MEDIUM_TAP
                                                   : FILTER_MAX_SUM / 4 / count;
    int *taps = allocate(2 * (size_t)count * sizeof *taps);
    for (int k = 0; k < 2 * count; k++)
        taps[k] = random_between(state, -limit, limit);
    for (int grid = 0; grid < 2; grid++)
        balance(taps + grid * count, count, state);
    if (taps[0] == 0) { /* not all zero */
        taps[0] += limit;
        taps[count - 1] -= limit;
    }
    if (shape->kind & SLOPE) {
        const int outer = random_between(state, 1, limit), inner = random_between(state, 1, limit);
        for (int k = 0; k < 9; k++) {
            taps[k] = (k % 3 - 1) * (k / 3 == 1 ? inner : outer);
            taps[9 + k] = (k / 3 - 1) * (k % 3 == 1 ? inner : outer);
        }
    }
    double squares = 0;
    for (int k = 0; k < 2 * count; k++)
        squares += (double)taps[k] * taps[k] / 2;
    double divisor = floor(sqrt(squares) * 73.9 / 60) + 1;
    if (shape->magnitude == WIDE)
        divisor = fmax(divisor, (1 << 23) + 11);
    if (shape->kind & ROUND)
        divisor = exp2(ceil(log2(divisor)));

    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        fail("not enough memory");
    fprintf(stream, "combine %s\nscale %.0f\noffset %s\n",
            (shape->kind & ROOT)     ? "magnitude"
            : (shape->kind & HIGHER) ? "max"
                                     : "sum",
            divisor,
            shape->magnitude == WIDE                ? "99.7"
            : (shape->kind & FRACTION)              ? "-7.3"
            : shape->width % 2 && shape->height % 2 ? "0"
                                                    : "9");
    if (shape->anchor_x >= 0)
        fprintf(stream, "anchor %d %d\n", shape->anchor_x, shape->anchor_y);
    for (int k = 0; k < 2 * count; k++)
        fprintf(stream, "%s%d%c", k == count ? "---\n" : "", taps[k], (k + 1) % shape->width ? ' ' : '\n');
    fclose(stream);
    struct error error = {0};
    if (!filter_parse(text, size, "random", filter, &error))
        fail("%s", error.message);
    if (!filter->exact)
        fail("the random grids of %d x %d taps were not read as they were written", shape->width, shape->height);
    free(text);
    free(taps);
}

/* Random taps of one shape, as text for filter_parse, with scale and offset such that outputs for random samples have
 * a mean near 128 and a deviation near 45: neither saturated nor constant, so that a wrong sum shows. */
static void random_filter(const struct shape *shape, uint64_t *state, struct filter *filter)
{
    const int count = shape->width * shape->height;
    if (shape->kind & TWO_GRIDS) {
        random_gradient(shape, state, filter);
        return;
    }
    /* The largest tap of LARGE taps: their absolute sum stays below 2^31 / 255 and, from 3 taps on, above 2^24 / 255.
     */
    const int limit = shape->magnitude == SMALL    ? (count < 600 ? 100 : 4)
                      : shape->magnitude == MEDIUM ? MEDIUM_TAP
                                                   : FILTER_MAX_SUM / count;
    int *taps = allocate((size_t)count * sizeof *taps);
    int column[FILTER_MAX], row[FILTER_MAX];
    const int vector_limit = (int)sqrt(limit), uneven = (shape->kind & UNEVEN) ? 4 : 1;
    const bool positive = shape->kind & POSITIVE;
    for (int i = 0; i < shape->height; i++)
        column[i] = random_between(state, positive ? 0 : -vector_limit / uneven, vector_limit / uneven);
    for (int j = 0; j < shape->width; j++)
        row[j] = random_between(state, positive ? 0 : -vector_limit * uneven, vector_limit * uneven);
    column[0] = vector_limit / uneven; /* not all zero */
    row[0] = vector_limit * uneven;
    const int kept = random_between(state, 0, count - 1);
    double sum = 0, squares = 0;
    for (int k = 0; k < count; k++) {
        taps[k] = (shape->kind & SEPARABLE) ? column[k / shape->width] * row[k % shape->width]
                                            : random_between(state, -limit, limit);
        if (shape->kind & SPARSE && k % 7)
            taps[k] = 0;
        if ((k == 0 && taps[k] == 0) || (shape->kind & EQUAL))
            taps[k] = limit;
        if (shape->kind & SHIFT)
            taps[k] = k == kept;
        sum += taps[k];
        squares += (double)taps[k] * taps[k];
    }
    /* Samples 0 to 255 have mean 127.5 and deviation 73.9. */
    double divisor = floor(sqrt(squares) * 73.9 / 45) + 1;
    if (shape->magnitude == WIDE)
        divisor = fmax(divisor, (1 << 23) + 11);
    if (shape->kind & (EQUAL | POSITIVE)) /* samples that the border repeats add up */
        divisor *= 4;
    if (shape->kind & ROUND)
        divisor = exp2(ceil(log2(divisor)));
    if (shape->kind & SHIFT)
        divisor = 1;
    const double offset = (shape->kind & SHIFT)      ? 0
                          : (shape->kind & ABSOLUTE) ? 60
                                                     : floor(128 - sum * 127.5 / divisor);

    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        fail("not enough memory");
    fprintf(stream, "scale %.0f\noffset %.0f\n%s", divisor, fmax(-65535, fmin(65535, offset)),
            (shape->kind & ABSOLUTE) ? "abs\n" : "");
    if (shape->anchor_x >= 0)
        fprintf(stream, "anchor %d %d\n", shape->anchor_x, shape->anchor_y);
    for (int k = 0; k < count; k++)
        fprintf(stream, "%d%c", taps[k], (k + 1) % shape->width ? ' ' : '\n');
    fclose(stream);
    struct error error = {0};
    if (!filter_parse(text, size, "random", filter, &error))
        fail("%s", error.message);
    if (!filter->exact || ((shape->kind & SEPARABLE) && !filter->separable))
        fail("the random filter of %d x %d taps was not read as it was written", shape->width, shape->height);
    free(text);
    free(taps);
}

/* Planes in guarded buffers. */

struct guarded {
    unsigned char *memory; /* GUARD bytes, the planes, GUARD bytes */
    size_t size;
    struct plane plane;
};

static size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static struct guarded guarded_make(enum sample sample, int width, int height, int count, size_t extra)
{
    struct guarded g = {.plane = {.sample = sample, .width = width, .height = height, .count = count}};
    g.plane.row_bytes = round_up((size_t)width * sample_bytes(sample), ROW_ALIGNMENT) + extra;
    g.plane.plane_bytes = round_up(g.plane.row_bytes * (size_t)height, 512);
    g.size = 2 * GUARD + g.plane.plane_bytes * (size_t)count;
    g.memory = aligned_alloc(PLANES_ALIGNMENT, round_up(g.size, PLANES_ALIGNMENT));
    if (!g.memory)
        fail("not enough memory");
    g.plane.data = g.memory + GUARD;
    return g;
}

static unsigned char *row_of(const struct plane *plane, int channel, int y)
{
    return (unsigned char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

static void fill_random(const struct plane *plane, uint64_t *state)
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

/* Is every byte outside the samples still POISON? */
static bool guards_intact(const struct guarded *g, unsigned char poison)
{
    const size_t samples = (size_t)g->plane.width * sample_bytes(g->plane.sample);
    const unsigned char *next = g->memory; /* the first byte not looked at */
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

/* One backend: the CPU, or an opened device with two buffers of CAPACITY bytes. */
struct place {
    struct device *device;
    void *in, *out;
    size_t capacity;
};

#ifdef GPUCONV_CUDA
static void place_reserve(struct place *place, size_t size)
{
    struct error error = {0};
    if (place->capacity >= size)
        return;
    device_release(place->device, place->in);
    device_release(place->device, place->out);
    place->capacity = size + (size >> 1);
    if (!device_allocate(place->device, place->capacity, &place->in, &error) ||
        !device_allocate(place->device, place->capacity, &place->out, &error))
        fail("%s", error.message);
}
#endif

/* Run PLAN on IN to OUT, whatever the backend; OUT's whole buffer is as the variant left it. */
static bool run_variant(struct plan *plan, struct place *place, const struct guarded *in, struct guarded *out,
                        struct error *error)
{
#ifdef GPUCONV_CUDA
    if (plan->variant->backend == BACKEND_CUDA) {
        struct device *device = place->device;
        place_reserve(place, in->size > out->size ? in->size : out->size);
        struct plane from = in->plane, to = out->plane;
        from.data = (char *)place->in + GUARD;
        to.data = (char *)place->out + GUARD;
        return device_upload(device, place->in, in->memory, in->size, error) &&
               device_upload(device, place->out, out->memory, out->size, error) &&
               variant_prepare(plan, device, error) && plan->variant->launch(plan, device, &from, &to, error) &&
               device_download(device, out->memory, place->out, out->size, error) && device_wait(device, error);
    }
#endif
    (void)place;
    return variant_prepare(plan, NULL, error) && plan->variant->launch(plan, NULL, &in->plane, &out->plane, error);
}

static double value_of(enum sample sample, const void *row, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

/* How many samples differ by more than TOLERANCE, and the first of them. */
static uint64_t count_mismatches(const struct plane *expected, const struct plane *actual, double allowed, int *where)
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

/* Would a variant that returns a constant or saturated image pass? */
static void check_expected(const struct plane *expected, const char *what)
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

struct tally {
    uint64_t rows, cases, mismatches;
};

/* What one case is, for each row that meets it. */
struct test_case {
    struct place *place;
    const struct filter *filter;
    enum border border;
    enum sample sample;
    const char *what; /* for messages */
    unsigned char poison;
    const struct guarded *in, *expected;
    struct guarded *actual;
};

/* Run one row of the table, under the name of an instruction set where it has several, and compare. */
static void check_row(const struct test_case *c, const struct variant *row, const char *set, struct tally *tally)
{
    struct plan plan;
    struct error error = {0};
    memset(c->actual->memory, c->poison, c->actual->size);
    if (!variant_plan(&plan, c->filter, c->border, c->sample, row, &error) ||
        !run_variant(&plan, c->place, c->in, c->actual, &error))
        fail("%s %s: %s: %s", row->name, set, c->what, error.message);
    int where[3] = {0};
    const uint64_t wrong = count_mismatches(&c->expected->plane, &c->actual->plane, variant_tolerance(&plan), where);
    plan_free(&plan);
    const bool intact = guards_intact(c->actual, c->poison);
    tally->cases++;
    if (wrong == 0 && intact)
        return;
    tally->mismatches++;
    fprintf(stderr, "MISMATCH %s %s: %s: ", row->name, set, c->what);
    if (wrong)
        fprintf(stderr, "%" PRIu64 " samples differ, first at x %d y %d plane %d\n", wrong, where[0], where[1],
                where[2]);
    else
        fprintf(stderr, "a write outside the image\n");
}

/* Every row that is wanted, and of the CPU's every instruction set, on the case's input. */
static void check_rows(const struct options *options, const struct test_case *c, struct tally *tally)
{
    size_t count;
    const struct variant *rows = variants(&count);
    for (size_t i = 0; i < count; i++) {
        const struct variant *row = &rows[i];
        if (row->is_reference || !row->launch || !variant_accepts(row, c->filter, c->sample) ||
            (options->variant && strcmp(options->variant, row->name) != 0) ||
            !(row->backend == BACKEND_CPU ? options->cpu : options->cuda))
            continue;
        if (row->backend == BACKEND_CUDA) {
            check_row(c, row, "", tally);
            continue;
        }
        size_t sets;
        const char *const *names = cpu_instruction_sets(&sets);
        for (size_t s = 0; s < sets; s++) {
            setenv("GPUCONV_CPU", names[s], 1);
            check_row(c, row, names[s], tally);
        }
    }
}

static void check_case(const struct options *options, struct place *place, const struct filter *filter, int width,
                       int height, enum border border, enum sample sample, uint64_t number, uint64_t *state,
                       struct tally *tally)
{
    const int planes = 1 + (int)(number % 4);
    const size_t extra = number / SAMPLE_COUNT % 3 ? 0 : ROW_ALIGNMENT; /* of each sample type a third */
    const unsigned char poison = sample == SAMPLE_F32 ? 0xff : number & 1 ? 0xa5 : 0x5a;
    struct guarded in = guarded_make(sample, width, height, planes, extra);
    struct guarded expected = guarded_make(sample, width, height, planes, 0);
    struct guarded actual = guarded_make(sample, width, height, planes, number % 5 ? 0 : ROW_ALIGNMENT);
    memset(in.memory, poison, in.size);
    memset(expected.memory, 0, expected.size);
    fill_random(&in.plane, state);

    struct plan plan;
    struct error error = {0};
    if (!variant_plan(&plan, filter, border, sample, variant_reference(), &error) ||
        !variant_prepare(&plan, NULL, &error) || !plan.variant->launch(&plan, NULL, &in.plane, &expected.plane, &error))
        fail("%s", error.message);
    plan_free(&plan);
    char what[256];
    snprintf(what, sizeof what, "%d x %d taps, combine %s, anchor %d %d, %d x %d %s, %d planes, border %s",
             filter->width, filter->height, combine_name(filter->combine), filter->anchor_x, filter->anchor_y, width,
             height, sample_name(sample), planes, border_name(border));
    if (border != BORDER_ZERO && !filter->absolute) /* these two move the mean on purpose */
        check_expected(&expected.plane, what);

    const struct test_case c = {place, filter, border, sample, what, poison, &in, &expected, &actual};
    check_rows(options, &c, tally);
    free(in.memory);
    free(expected.memory);
    free(actual.memory);
}

static const int sizes[][2] = {
    {1, 1},     {1, 67},    {67, 1},    {2, 3},     {15, 16},  {16, 17},  {17, 15},    {23, 25},
    {31, 32},   {32, 31},   {33, 33},   {63, 64},   {64, 65},  {65, 63},  {97, 61},    {127, 129},
    {128, 128}, {129, 127}, {523, 101}, {256, 300}, {1023, 9}, {1024, 7}, {1025, 130},
};

/* Shapes that also meet an image too large for the caches of a CPU, whose outputs are stored another way. */
static const struct shape large_shapes[] = {
    {3, 3, -1, -1, SMALL, PLAIN},      {3, 3, -1, -1, SMALL, ROUND},       {5, 5, 0, 4, SMALL, EQUAL},
    {3, 5, 2, 0, MEDIUM, PLAIN},       {7, 7, -1, -1, LARGE, SEPARABLE},   {1, 3, -1, -1, SMALL, SHIFT},
    {2, 3, -1, -1, WIDE, PLAIN},       {7, 7, -1, -1, SMALL, SEPARABLE},   {13, 5, -1, -1, SMALL, SEPARABLE},
    {21, 4, -1, -1, SMALL, SEPARABLE}, {3, 3, -1, -1, TINY, ROOT | SLOPE}, {3, 3, -1, -1, SMALL, BOTH | SLOPE},
    {5, 3, -1, -1, LARGE, ROOT},
};

enum { LARGE_WIDTH = 2411, LARGE_HEIGHT = 2377, LARGE_NUMBER = 6 }; /* 16 MiB and more in the three planes of case 6 */

static void check_large(const struct options *options, struct place *place, uint64_t *state, struct tally *tally)
{
    struct filter *filter = allocate(sizeof *filter);
    for (size_t f = 0; f < sizeof large_shapes / sizeof large_shapes[0]; f++) {
        random_filter(&large_shapes[f], state, filter);
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++)
            if (!options->quick || f % SAMPLE_COUNT == sample)
                check_case(options, place, filter, LARGE_WIDTH, LARGE_HEIGHT, BORDER_REFLECT101, sample, LARGE_NUMBER,
                           state, tally);
    }
    free(filter);
}

static struct tally check_all(const struct options *options, struct place *place)
{
    struct tally tally = {0};
    uint64_t state = options->seed, number = 0;
    struct filter *filter = allocate(sizeof *filter);
    for (size_t f = 0; f < sizeof shapes / sizeof shapes[0]; f++) {
        random_filter(&shapes[f], &state, filter);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const int width = sizes[s][0], height = sizes[s][1];
            const int64_t taps = filter_grids(filter) * filter->width * filter->height;
            /* The reference takes a few nanoseconds a tap: the largest filters meet the smaller images only. */
            if (taps * width * height > (options->quick ? 1500000 : 20000000))
                continue;
            /* The reduced set has other borders and sample types for each size: their number and its share have no
             * divisor in common. */
            const uint64_t share = options->quick ? 29 : 1;
            for (enum border border = 0; border < BORDER_COUNT; border++)
                for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++, number++)
                    if ((number + f + s) % share == 0)
                        check_case(options, place, filter, width, height, border, sample, number, &state, &tally);
        }
    }
    free(filter);
    if (!options->quick || options->large)
        check_large(options, place, &state, &tally);
    return tally;
}

/* The largest sums. Columns and rows of taps that sum to these: beside each limit at which the arithmetic changes (see
 * conv_cpu.c), and at the largest that a filter may have. */
static const struct extreme {
    int width, height;
    int64_t row, column; /* sums; a column of 0: taps of no rank, that sum to ROW */
} extremes[] = {
    {3, 3, 256, 0},
    {3, 3, 257, 0},
    {5, 3, 32767, 0},
    {5, 3, 32768, 0},
    {4, 3, 65793, 0},
    {4, 3, 65794, 0},
    {3, 5, FILTER_MAX_SUM, 0},
    {1, 1, 32767, 0},
    {1, 1, 32768, 0},
    {2, 1, FILTER_MAX_SUM, 0},
    {15, 17, 16, 16},
    {15, 17, 257, 1000},
    {17, 15, 32767, 257},
    {17, 15, 32768, 257},
    {15, 17, 257, 32767},
    {17, 16, 256, 32768},
    {21, 20, 2901, 2902},
    {31, 127, 127, 258},
    {9, 9, 100, 327},
    {9, 9, 4096, 8},
};

/* COUNT weights that sum to SUM, nearly equal, times their SIGNS: all 1, or 1 and -1 in turn. */
static void spread(int64_t sum, int count, bool alternate, int64_t *weights)
{
    for (int k = 0; k < count; k++)
        weights[k] = (sum / count + (k < sum % count)) * (alternate && k % 2 ? -1 : 1);
}

/* Taps of one sign, of both, and of one with `abs` after a minus. The image has white under the taps above 0 and black
 * under the others, or the reverse, wherever the filter stands at a multiple of its size: the sums there are the
 * largest of all, and with a scale a little above that their outputs are next to white, or to grey. */
static void check_extreme(const struct options *options, struct place *place, const struct extreme *e, int kind,
                          struct tally *tally)
{
    static int64_t taps[FILTER_MAX * FILTER_MAX], row[FILTER_MAX], column[FILTER_MAX];
    const bool alternate = kind == 1, minus = kind == 2, reverse = kind == 3;
    const int count = e->width * e->height;
    spread(e->row, e->column ? e->width : count, alternate || reverse, e->column ? row : taps);
    spread(e->column, e->height, false, column);
    for (int k = 0; k < count && e->column; k++)
        taps[k] = column[k / e->width] * row[k % e->width];
    const int64_t sum = e->row * (e->column ? e->column : 1);

    char *text = NULL, what[128];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        fail("not enough memory");
    fprintf(stream, "scale %lld\noffset %s\n%s", (long long)sum + 1, alternate || reverse ? "127" : "0",
            minus ? "abs\n" : "");
    for (int k = 0; k < count; k++)
        fprintf(stream, "%lld%c", (long long)(minus ? -taps[k] : taps[k]), (k + 1) % e->width ? ' ' : '\n');
    fclose(stream);
    struct filter *filter = allocate(sizeof *filter);
    struct error error = {0};
    if (!filter_parse(text, size, "extreme", filter, &error))
        fail("%s", error.message);
    if (filter->absolute_sum != sum)
        fail("the taps that sum to %lld have a common divisor", (long long)sum);

    const int width = e->width + 66, height = e->height + 3;
    for (enum sample sample = SAMPLE_U8; sample <= SAMPLE_U16; sample++) {
        struct guarded in = guarded_make(sample, width, height, 1, 0),
                       expected = guarded_make(sample, width, height, 1, 0);
        struct guarded actual = guarded_make(sample, width, height, 1, 0);
        memset(in.memory, 0xa5, in.size);
        memset(expected.memory, 0, expected.size);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const bool above = taps[y % e->height * e->width + x % e->width] > 0;
                memset(row_of(&in.plane, 0, y) + (size_t)x * sample_bytes(sample), above == reverse ? 0 : 0xff,
                       sample_bytes(sample));
            }
        struct plan plan;
        if (!variant_plan(&plan, filter, BORDER_WRAP, sample, variant_reference(), &error) ||
            !variant_prepare(&plan, NULL, &error) ||
            !plan.variant->launch(&plan, NULL, &in.plane, &expected.plane, &error))
            fail("%s", error.message);
        plan_free(&plan);
        snprintf(what, sizeof what, "%d x %d taps that sum to %lld, kind %d, %s", e->width, e->height, (long long)sum,
                 kind, sample_name(sample));
        const struct test_case c = {place, filter, BORDER_WRAP, sample, what, 0x5a, &in, &expected, &actual};
        check_rows(options, &c, tally);
        free(in.memory);
        free(expected.memory);
        free(actual.memory);
    }
    free(filter);
    free(text);
}

static void check_extremes(const struct options *options, struct place *place, struct tally *tally)
{
    for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
        for (int kind = 0; kind < 4; kind++)
            check_extreme(options, place, &extremes[e], kind, tally);
}

/* Properties that hold whatever the reference says, so that the reference is checked too. Each looks at one plane of
 * uint8_t that went through a variant. */

struct property {
    const char *name, *filter; /* a filter's text */
    bool (*holds)(const struct plane *in, const struct plane *out, const struct filter *filter);
};

static bool is_copy(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < in->height; y++)
        if (memcmp(row_of(in, 0, y), row_of(out, 0, y), (size_t)in->width) != 0)
            return false;
    return true;
}

/* 0 0 1 with its anchor in the centre takes the sample on the right: the picture moves left by one. */
static bool is_moved_left(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < in->height; y++)
        if (memcmp(row_of(in, 0, y) + 1, row_of(out, 0, y), (size_t)in->width - 1) != 0)
            return false;
    return true;
}

/* A column 1 0 0 takes the sample above: the picture moves down. */
static bool is_moved_down(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 1; y < in->height; y++)
        if (memcmp(row_of(in, 0, y - 1), row_of(out, 0, y), (size_t)in->width) != 0)
            return false;
    return true;
}

/* The input is 0 but for a 1 in the middle. Correlation gives the taps there, turned by 180 degrees. */
static bool is_impulse_response(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            const int i = in->height / 2 - y + filter->anchor_y, j = in->width / 2 - x + filter->anchor_x;
            const bool under = i >= 0 && i < filter->height && j >= 0 && j < filter->width;
            if (row_of(out, 0, y)[x] != (under ? filter->taps[i * filter->width + j] : 0))
                return false;
        }
    return true;
}

static bool is_constant(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++)
            if (row_of(out, 0, y)[x] != *row_of(in, 0, 0))
                return false;
    return true;
}

/* The input holds every pair of samples as right and lower neighbour of one place in three by three, and zeros: there
 * the level is the greatest n with (2 D n - D)^2 <= 4 q^2 (a^2 + b^2), by the definition. */
static bool is_root(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    const int64_t q = filter->taps[5], scale = filter->scale;
    for (int y = 1; y < in->height; y += 3)
        for (int x = 1; x < in->width; x += 3) {
            const int64_t a = row_of(in, 0, y)[x + 1], b = row_of(in, 0, y + 1)[x];
            int64_t n = 0;
            while (n < 255 &&
                   (2 * scale * (n + 1) - scale) * (2 * scale * (n + 1) - scale) <= 4 * q * q * (a * a + b * b))
                n++;
            if (row_of(out, 0, y)[x] != n)
                return false;
        }
    return true;
}

static void fill_pairs(const struct plane *plane)
{
    for (int y = 0; y < plane->height; y++)
        for (int x = 0; x < plane->width; x++)
            row_of(plane, 0, y)[x] = (unsigned char)(y % 3 == 1 && x % 3 == 2   ? x / 3
                                                     : y % 3 == 2 && x % 3 == 1 ? y / 3
                                                                                : 0);
}

#define NEIGHBOURS(q) "combine magnitude\n0 0 0\n-" q " 0 " q "\n0 0 0\n---\n0 -" q " 0\n0 0 0\n0 " q " 0\n"

static const struct property properties[] = {
    {"magnitudes are rounded roots", NEIGHBOURS("1"), is_root},
    {"magnitudes are rounded roots, by 2", "scale 2\n" NEIGHBOURS("1"), is_root},
    {"magnitudes are rounded roots, 3 by 4", "scale 4\n" NEIGHBOURS("3"), is_root},
    {"magnitudes are rounded roots, 15 by 16", "scale 16\n" NEIGHBOURS("15"), is_root},
    {"magnitudes are rounded roots, 17 by 24", "scale 24\n" NEIGHBOURS("17"), is_root},
    {"magnitudes are rounded roots, 61 by 64", "scale 64\n" NEIGHBOURS("61"), is_root},
    {"magnitudes are rounded roots, 800011 by 1000001", "scale 1000001\n" NEIGHBOURS("800011"), is_root},
    {"identity is a copy", "1", is_copy},
    {"a shift is a move to the left", "0 0 1", is_moved_left},
    {"a shift is a move down", "1\n0\n0", is_moved_down},
    {"an impulse gives the taps", "1 2 3 4\n5 6 7 8\n9 10 11 250", is_impulse_response},
    {"an impulse gives separable taps", "anchor 0 2\n2 4 6\n3 6 9\n50 100 150\n", is_impulse_response},
    {"a constant stays constant", "scale 7\n1 2 1\n2 -4 3\n1 0 1", is_constant},
    {"a constant stays constant, separable", "1/16 2/16 1/16\n2/16 4/16 2/16\n1/16 2/16 1/16", is_constant},
};

static void check_properties(const struct options *options, struct place *place, struct tally *tally)
{
    struct filter *filter = allocate(sizeof *filter);
    uint64_t state = options->seed;
    for (size_t p = 0; p < sizeof properties / sizeof properties[0]; p++) {
        const struct property *property = &properties[p];
        struct error error = {0};
        if (!filter_parse(property->filter, strlen(property->filter), "property", filter, &error))
            fail("%s", error.message);
        const bool pairs = property->holds == is_root; /* 256 of three samples each way */
        const int width = pairs ? 768 : 211, height = pairs ? 768 : 67;
        struct guarded in = guarded_make(SAMPLE_U8, width, height, 1, 0);
        struct guarded out = guarded_make(SAMPLE_U8, width, height, 1, 0);
        memset(in.memory, property->holds == is_constant ? 173 : 0, in.size);
        if (property->holds == is_impulse_response)
            row_of(&in.plane, 0, in.plane.height / 2)[in.plane.width / 2] = 1;
        else if (pairs)
            fill_pairs(&in.plane);
        else if (property->holds != is_constant)
            fill_random(&in.plane, &state);
        size_t count;
        const struct variant *rows = variants(&count);
        for (size_t i = 0; i < count; i++) {
            struct plan plan;
            if (!rows[i].launch || !variant_accepts(&rows[i], filter, SAMPLE_U8) ||
                !(rows[i].backend == BACKEND_CPU ? options->cpu : options->cuda) ||
                (options->variant && strcmp(options->variant, rows[i].name) != 0))
                continue;
            memset(out.memory, 0xa5, out.size);
            if (!variant_plan(&plan, filter, BORDER_REFLECT101, SAMPLE_U8, &rows[i], &error) ||
                !run_variant(&plan, place, &in, &out, &error))
                fail("%s: %s", rows[i].name, error.message);
            plan_free(&plan);
            tally->cases++;
            if (!property->holds(&in.plane, &out.plane, filter)) {
                tally->mismatches++;
                fprintf(stderr, "MISMATCH %s: it does not hold that %s\n", rows[i].name, property->name);
            }
        }
        free(in.memory);
        free(out.memory);
    }
    free(filter);
}

#ifdef GPUCONV_CUDA
/* Images are of 8 or 16 bits, and planes of 16 take either, perhaps by the tables of linear light. */
struct image_case {
    int width, height, channels, bits, planes;
    enum alpha alpha;
    enum sample sample;
    const struct linear *linear, *device_linear; /* NULL: none */
};

/* Colours and alphas at the ends of their range and in between, where 8 bits are not to be met all. */
static uint16_t awkward_sample(uint64_t *state)
{
    static const uint16_t ends[] = {0, 1, 2, 127, 128, 255, 256, 257, 32767, 32768, 65278, 65279, 65534, 65535};
    const uint64_t r = random_next(state);
    return r >> 63 ? (uint16_t)(r >> 40) : ends[(r >> 32) % (sizeof ends / sizeof ends[0])];
}

static void fill_awkward(const struct plane *plane, uint64_t *state)
{
    for (int channel = 0; channel < plane->count; channel++)
        for (int y = 0; y < plane->height; y++)
            for (int x = 0; x < plane->width; x++)
                ((uint16_t *)(void *)row_of(plane, channel, y))[x] = awkward_sample(state);
}

/* Does one image split and merge on the device as it does on the CPU? Whole buffers are compared, with the poison in
 * their guards and padding. */
static void check_image(struct place *place, const struct image_case *c, uint64_t *state, struct tally *tally)
{
    const size_t samples_count = (size_t)c->width * (size_t)c->height * (size_t)c->channels;
    const size_t size = samples_count * (c->bits > 8 ? 2 : 1), whole = size + 2 * GUARD;
    const bool deep = c->sample == SAMPLE_U16, all_pairs = !deep && c->width == 256 && c->height == 256;
    const unsigned char poison = tally->cases & 1 ? 0xa5 : 0x5a;
    struct guarded expected =
        guarded_make(c->sample, c->width, c->height, c->planes, tally->cases % 3 ? 0 : ROW_ALIGNMENT);
    unsigned char *actual = allocate(expected.size), *samples = allocate(whole), *merged = allocate(whole);
    memset(expected.memory, poison, expected.size);
    memset(actual, poison, expected.size);
    memset(samples, poison, whole);
    for (size_t i = 0; i < samples_count; i++)
        if (c->bits > 8)
            ((uint16_t *)(void *)(samples + GUARD))[i] = awkward_sample(state);
        else
            samples[GUARD + i] = (unsigned char)(random_next(state) >> 56);
    if (all_pairs) /* every colour with every alpha */
        for (size_t i = 0; i < 256 * 256; i++) {
            unsigned char *pixel = samples + GUARD + i * (size_t)c->channels;
            pixel[0] = (unsigned char)i;
            pixel[c->channels - 1] = (unsigned char)(i >> 8);
        }
    struct image image = {c->width, c->height, c->channels, c->bits, samples + GUARD};
    image_split(&image, c->alpha, c->linear, &expected.plane);

    struct device *device = place->device;
    place_reserve(place, whole > expected.size ? whole : expected.size);
    struct plane plane = expected.plane;
    struct image device_image = image;
    plane.data = (char *)place->out + GUARD;
    device_image.samples = (uint8_t *)place->in + GUARD;
    struct error error = {0};
    bool done = device_upload(device, place->in, samples, whole, &error) &&
                device_upload(device, place->out, actual, expected.size, &error) &&
                device_split(device, &device_image, c->alpha, c->device_linear, &plane, &error) &&
                device_download(device, actual, place->out, expected.size, &error) && device_wait(device, &error);
    const bool split = done && memcmp(expected.memory, actual, expected.size) == 0;

    if (deep)
        fill_awkward(&expected.plane, state);
    else
        fill_random(&expected.plane, state); /* as filters leave planes: any colour with any alpha */
    if (all_pairs)
        for (int y = 0; y < c->height; y++)
            for (int x = 0; x < c->width; x++) {
                row_of(&expected.plane, 0, y)[x] = (unsigned char)x;
                row_of(&expected.plane, c->planes - 1, y)[x] = (unsigned char)y;
            }
    done = done && device_upload(device, place->out, expected.memory, expected.size, &error) &&
           device_merge(device, &plane, c->alpha, c->device_linear, &device_image, &error) &&
           device_download(device, merged, place->in, whole, &error) && device_wait(device, &error);
    if (!done)
        fail("split and merge: %s", error.message);
    image_merge(&expected.plane, c->alpha, c->linear, &image);
    const bool merge = memcmp(samples, merged, whole) == 0;
    tally->cases++;
    tally->mismatches += !split || !merge;
    if (!split || !merge)
        fprintf(stderr, "MISMATCH %s: %d x %d, %d channels of %d bits, %d planes of %s, alpha %d%s\n",
                split ? "merge" : "split", c->width, c->height, c->channels, c->bits, c->planes, sample_name(c->sample),
                c->alpha, c->linear ? ", linear" : "");
    free(expected.memory);
    free(actual);
    free(samples);
    free(merged);
}

/* An image of each number of channels and each way with alpha. */
static void check_channels(struct place *place, struct image_case c, uint64_t *state, struct tally *tally)
{
    for (c.channels = 1; c.channels <= 4; c.channels++) {
        c.alpha = ALPHA_KEEP;
        for (c.planes = 1; c.planes < c.channels; c.planes++)
            check_image(place, &c, state, tally);
        c.planes = c.channels;
        c.alpha = ALPHA_FILTER;
        check_image(place, &c, state, tally);
        c.alpha = ALPHA_PREMULTIPLY;
        check_image(place, &c, state, tally);
    }
}

static void check_images(const struct options *options, struct place *place, struct tally *tally)
{
    uint64_t state = options->seed;
    if (!options->cuda || options->variant)
        return;
    struct error error = {0};
    struct linear *linear = linear_make(&error);
    void *device_linear = NULL;
    if (linear == NULL || !device_allocate(place->device, sizeof *linear, &device_linear, &error) ||
        !device_upload(place->device, device_linear, linear, sizeof *linear, &error))
        fail("%s", error.message);
    for (size_t s = 0; s <= sizeof sizes / sizeof sizes[0]; s++) {
        const bool pairs = s == sizeof sizes / sizeof sizes[0];
        struct image_case c = {.width = pairs ? 256 : sizes[s][0], .height = pairs ? 256 : sizes[s][1], .bits = 8};
        check_channels(place, c, &state, tally);
        c.sample = SAMPLE_U16;
        for (c.bits = 8; c.bits <= 16; c.bits += 8) {
            c.linear = c.device_linear = NULL;
            check_channels(place, c, &state, tally);
            c.linear = linear;
            c.device_linear = device_linear;
            check_channels(place, c, &state, tally);
        }
    }
    device_release(place->device, device_linear);
    free(linear);
}
#endif

static const char usage[] = "usage: check_variants [--cpu | --cuda] [--quick [--large]] [--seed N] [--variant NAME]\n";

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0)
            options->quick = true;
        else if (strcmp(argv[i], "--large") == 0)
            options->large = true;
        else if (strcmp(argv[i], "--cpu") == 0)
            options->cpu = true;
        else if (strcmp(argv[i], "--cuda") == 0)
            options->cuda = true;
        else if (!value)
            return false;
        else if (strcmp(argv[i++], "--seed") == 0)
            options->seed = strtoull(value, NULL, 0);
        else if (strcmp(argv[i - 1], "--variant") == 0)
            options->variant = value;
        else
            return false;
    }
    if (!options->cpu && !options->cuda)
        options->cpu = options->cuda = true;
    return !options->variant || variant_find(options->variant, NULL);
}

/* Open the GPU, or say why there is none. */
static bool open_device(struct device **device)
{
    struct error error = {0};
#ifdef GPUCONV_CUDA
    if (device_open(0, device, &error)) {
        const struct device_info *facts = device_facts(*device);
        const int version = device_driver_version();
        printf("GPU: %s, compute capability %d.%d, %d multiprocessors, driver for CUDA %d.%d\n", facts->name,
               facts->capability / 10, facts->capability % 10, facts->multiprocessors, version / 1000,
               version % 1000 / 10);
        return true;
    }
#else
    error_set(&error, ERROR_WORK, "this build has no CUDA");
    (void)device;
#endif
    printf("no GPU: %s\n", error.message);
    return false;
}

static void print_instruction_sets(void)
{
    size_t count;
    const char *const *names = cpu_instruction_sets(&count);
    printf("CPU:");
    for (size_t i = 0; i < count; i++)
        printf(" %s", names[i]);
    putchar('\n');
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 20261121};
    if (!parse(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    struct place place = {0};
    const bool only_cuda = options.cuda && !options.cpu;
    if (options.cuda && !open_device(&place.device)) {
        options.cuda = false;
        if (only_cuda) {
            puts("skipped: the CUDA variants");
            return EXIT_SKIPPED;
        }
    }
    printf("seed %" PRIu64 "\n", options.seed);
    if (options.cpu)
        print_instruction_sets();
    struct tally tally = check_all(&options, &place);
    check_extremes(&options, &place, &tally);
    check_properties(&options, &place, &tally);
#ifdef GPUCONV_CUDA
    check_images(&options, &place, &tally);
#endif
    size_t count;
    const struct variant *rows = variants(&count);
    for (size_t i = 0; i < count; i++)
        tally.rows += !rows[i].is_reference && rows[i].launch &&
                      (rows[i].backend == BACKEND_CPU ? options.cpu : options.cuda) &&
                      (!options.variant || strcmp(options.variant, rows[i].name) == 0);
    printf("%" PRIu64 " rows, %" PRIu64 " cases, %" PRIu64 " mismatches\n", tally.rows, tally.cases, tally.mismatches);
    if (tally.cases == 0)
        fail("nothing was checked");
#ifdef GPUCONV_CUDA
    if (place.device) {
        device_release(place.device, place.in);
        device_release(place.device, place.out);
        device_close(place.device);
    }
#endif
    return tally.mismatches ? 1 : 0;
}
