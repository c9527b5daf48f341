/* SPDX-License-Identifier: MIT
 *
 * The benchmark: see bench.h for what is measured and how. From top to bottom: sizes and filters, planes, statistics,
 * the check, the clocks of both backends, rows, cases. */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/text.h"

#include "image/image.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 3 };

/* Sample-taps that the reference checks: all of an image where it has no more, which takes it a few seconds of one
 * thread, else three parts of it with so many together. */
static const double check_whole = 2e9, check_parts = 2e8;

/* The reference is not timed where a run would take longer: its time is proportional to samples times taps, so that
 * larger cases say nothing that smaller ones do not. */
static const double reference_seconds = 0.5;

/* Sizes. */

static bool take_size(const char **text, struct bench_size *size)
{
    size->planes = 1;
    if (!text_read_number(text, 1, BENCH_SIDE, &size->width) || *(*text)++ != 'x' ||
        !text_read_number(text, 1, BENCH_SIDE, &size->height))
        return false;
    if (**text != 'x')
        return true;
    (*text)++;
    return text_read_number(text, 1, BENCH_PLANES, &size->planes);
}

bool bench_parse_sizes(const char *text, struct bench_size *sizes, size_t *count, struct error *error)
{
    const char *at = text;
    for (*count = 0;; at++) {
        if (*count == BENCH_SIZES)
            return error_set(error, ERROR_USAGE, "--bench-size takes at most %d sizes; run gpuconv twice", BENCH_SIZES);
        if (!take_size(&at, &sizes[(*count)++]) || (*at != ',' && *at != '\0'))
            return error_set(
                error, ERROR_USAGE,
                "--bench-size takes sizes such as 4096x4096 or, with planes (1 to %d), 4096x4096x3, joined "
                "by commas, not \"%s\"",
                BENCH_PLANES, text);
        if (*at == '\0')
            return true;
    }
}

static size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* The shape of planes on a device (see struct plane), used on the host too so that one copy moves all. */
static struct plane plane_shape(const struct bench_size *size, enum sample sample)
{
    struct plane plane = {.sample = sample, .width = size->width, .height = size->height, .count = size->planes};
    plane.row_bytes = round_up((size_t)size->width * sample_bytes(sample), 128);
    plane.plane_bytes = round_up(plane.row_bytes * (size_t)size->height, 512);
    return plane;
}

static size_t plane_size(const struct plane *plane)
{
    return plane->plane_bytes * (size_t)plane->count;
}

/* Do the three images that the host holds, and two pairs of buffers and their images on the device, fit into nine
 * tenths of memory? */
static bool fits(const struct bench *bench, const struct bench_size *size)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
        const struct plane plane = plane_shape(size, sample);
        const double bytes = (double)plane_size(&plane);
        if (bench->request->samples[sample] &&
            ((pages > 0 && 3 * bytes > 0.9 * (double)pages * (double)page) ||
             (bench->device != NULL && 6 * bytes > 0.9 * (double)bench->facts.memory)))
            return false;
    }
    return true;
}

static void set_sizes(struct bench *bench)
{
    const struct bench_request *request = bench->request;
    for (size_t i = 0; i < request->size_count; i++)
        bench->sizes[bench->size_count++] = request->sizes[i];
    for (int side = 1024; request->size_count == 0 && side <= 16384; side *= 2)
        for (int planes = 1; planes <= 3; planes += 2) {
            const struct bench_size size = {side, side, planes};
            if (fits(bench, &size))
                bench->sizes[bench->size_count++] = size;
            else
                bench->left_out++;
        }
}

/* Filters. */

/* The kinds of default filters, in their order for each size. */
enum kind { KIND_INT8, KIND_INT16, KIND_RANK_1, KIND_COUNT };

static const int default_sides[] = {3, 5, 7, 9, 15, 31};
enum { DEFAULT_SIDES = sizeof default_sides / sizeof default_sides[0], LARGEST_SIDE = 31 };

enum { INT16_TAP = 8000 };
static_assert(INT16_TAP * LARGEST_SIDE * LARGEST_SIDE <= FILTER_MAX_SUM, "sum|q| * 255 < 2^31");

/* A smooth vector of small integers: 1 2 3 ... 3 2 1. */
static int ramp(int i, int side)
{
    return i < side - i ? i + 1 : side - i;
}

/* Random taps get a scale and an offset such that outputs for random samples have a mean near 128 and a deviation near
 * 45: neither saturated nor constant, so that a wrong sum shows. The taps of rank 1 are a weighted mean. */
static bool make_filter(enum kind kind, int side, struct filter *filter, struct error *error)
{
    static const char *const names[KIND_COUNT] = {"int8", "int16", "rank1"};
    const int limit = kind == KIND_INT8 ? 127 : INT16_TAP;
    uint64_t state = (uint64_t)(1000 * side + (int)kind);
    int taps[LARGEST_SIDE * LARGEST_SIDE];
    double sum = 0, squares = 0;
    for (int i = 0; i < side * side; i++) {
        taps[i] = kind == KIND_RANK_1 ? ramp(i / side, side) * ramp(i % side, side)
                                      : (int)(random_next(&state) % (uint64_t)(2 * limit + 1)) - limit;
        sum += taps[i];
        squares += (double)taps[i] * taps[i];
    }
    /* Samples from 0 to 255 have a mean of 127.5 and a deviation of 73.9. */
    const double scale = kind == KIND_RANK_1 ? sum : floor(sqrt(squares) * 73.9 / 45) + 1;
    const double offset = kind == KIND_RANK_1 ? 0 : floor(128 - sum * 127.5 / scale);

    char name[32];
    struct text_buffer text;
    snprintf(name, sizeof name, "%s-%d", names[kind], side);
    FILE *stream = text_open(&text);
    if (stream == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the filter %s; free some", name);
    fprintf(stream, "scale %.0f\noffset %.0f\n", scale, offset);
    for (int i = 0; i < side * side; i++)
        fprintf(stream, "%d%c", taps[i], (i + 1) % side ? ' ' : '\n');
    const bool done = text_close(stream, &text)
                          ? filter_parse(text.bytes, text.size, name, filter, error)
                          : error_set(error, ERROR_WORK, "not enough memory for the filter %s; free some", name);
    free(text.bytes);
    return done;
}

bool bench_default_filters(struct filter **filters, size_t *count, struct error *error)
{
    *count = DEFAULT_SIDES * KIND_COUNT;
    *filters = malloc(*count * sizeof **filters);
    if (*filters == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the benchmark's filters; free some");
    for (size_t i = 0; i < *count; i++)
        if (!make_filter((enum kind)(i % KIND_COUNT), default_sides[i / KIND_COUNT], &(*filters)[i], error)) {
            free(*filters);
            *filters = NULL;
            return false;
        }
    return true;
}

/* Statistics. */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_statistics(double *milliseconds, int runs, struct bench_row *row)
{
    qsort(milliseconds, (size_t)runs, sizeof *milliseconds, compare_doubles);
    row->runs = runs;
    row->median_ms = (milliseconds[(runs - 1) / 2] + milliseconds[runs / 2]) / 2;
    row->min_ms = milliseconds[0];
    row->max_ms = milliseconds[runs - 1];
    row->spread = (milliseconds[runs - 1 - runs / 4] - milliseconds[runs / 4]) / row->median_ms;
}

static const void *row_at(const struct plane *plane, int channel, int y)
{
    return (const char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

/* Sample number X of a row. */
static inline double sample_at(const void *row, enum sample sample, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

static struct bench_difference compare_rows(const void *expected, const void *actual, enum sample sample, int width,
                                            double allowed)
{
    struct bench_difference difference = {0};
    for (int x = 0; x < width; x++) {
        const double e = sample_at(expected, sample, x), a = sample_at(actual, sample, x);
        difference.different += !(e == a);
        difference.wrong += !(fabs(e - a) <= allowed); /* NaN is wrong */
    }
    return difference;
}

enum { COMPARED_ROWS = 16 }; /* that a thread compares at a time */

struct comparison {
    const struct plane *expected, *actual;
    double allowed;
    atomic_uint_least64_t different, wrong;
};

/* Compare rows number INDEX * COMPARED_ROWS and on, counted through all planes. */
static void compare_some(void *context, int64_t index, int thread)
{
    struct comparison *comparison = context;
    const struct plane *expected = comparison->expected;
    const int64_t rows = (int64_t)expected->height * expected->count;
    const int64_t first = index * COMPARED_ROWS;
    (void)thread;
    for (int64_t i = first; i < rows && i < first + COMPARED_ROWS; i++) {
        const int channel = (int)(i / expected->height), y = (int)(i % expected->height);
        const void *e = row_at(expected, channel, y), *a = row_at(comparison->actual, channel, y);
        if (expected->sample != SAMPLE_F32 &&
            memcmp(e, a, (size_t)expected->width * sample_bytes(expected->sample)) == 0)
            continue;
        const struct bench_difference row = compare_rows(e, a, expected->sample, expected->width, comparison->allowed);
        atomic_fetch_add(&comparison->different, row.different);
        atomic_fetch_add(&comparison->wrong, row.wrong);
    }
}

struct bench_difference bench_compare(const struct plane *expected, const struct plane *actual, double allowed,
                                      int threads)
{
    struct comparison comparison = {.expected = expected, .actual = actual, .allowed = allowed};
    const int64_t rows = (int64_t)expected->height * expected->count;
    const bool small = rows * expected->width <= 1 << 20; /* starting threads would take longer */
    parallel_for(small ? 1 : threads, (rows + COMPARED_ROWS - 1) / COMPARED_ROWS, compare_some, &comparison);
    return (struct bench_difference){comparison.different, comparison.wrong};
}

/* A size and a sample type at work: what its cases share. */
struct lab {
    struct bench *bench;
    const struct bench_listener *listener;
    struct bench_size size;
    enum sample sample;
    struct plane in, expected, actual; /* on the host */
    double copy_ms[2];                 /* by backend */
    double tap_seconds;                /* of the reference, a sample-tap */
    size_t wrong;                      /* rows */

    int pairs; /* of buffers on the device */
    void *memory;
    struct plane device_in, device_out; /* the first pair */
    void *images;                       /* an interleaved image a pair; NULL where the planes make none */
    size_t image_bytes;                 /* from one to the next */
    double upload_ms, download_ms;
};

static void tell(const struct lab *lab, const char *what, const struct filter *filter)
{
    char text[512];
    if (lab->listener->progress == NULL)
        return;
    snprintf(text, sizeof text, "%dx%dx%d %s %s %s", lab->size.width, lab->size.height, lab->size.planes,
             sample_name(lab->sample), filter != NULL ? filter->name : "", what);
    lab->listener->progress(lab->listener->context, text);
}

static double samples_of(const struct bench_size *size)
{
    return (double)size->width * size->height * size->planes;
}

static double taps_of(const struct filter *filter)
{
    return (double)filter_grids(filter) * filter->width * filter->height;
}

/* A plan of VARIANT for the lab's sample type, prepared if it is one of the CPU. Release it with plan_free. */
static bool make_plan(const struct lab *lab, const struct filter *filter, const struct variant *variant,
                      struct plan *plan, struct error *error)
{
    if (!variant_plan(plan, filter, lab->bench->request->border, lab->sample, variant, error))
        return false;
    plan->threads = lab->bench->threads;
    return variant->backend != BACKEND_CPU || variant_prepare(plan, NULL, error);
}

static bool no_memory(const struct bench_size *size, struct error *error)
{
    return error_set(error, ERROR_WORK,
                     "not enough memory to measure %d x %d x %d samples; free some, or choose smaller images with "
                     "--bench-size",
                     size->width, size->height, size->planes);
}

static bool reserve(const struct lab *lab, struct plane *plane, struct error *error)
{
    *plane = plane_shape(&lab->size, lab->sample);
    plane->data = malloc(plane_size(plane));
    return plane->data != NULL || no_memory(&lab->size, error);
}

/* Random samples: bytes, or words of 16 bits, or floats from 0 to 1. The padding gets some too, so that a variant that
 * reads it is wrong. */
static void fill_random(const struct plane *plane)
{
    uint64_t state = 20261121; /* any */
    char *to = plane->data;
    for (size_t at = 0; at < plane_size(plane); at += sizeof(uint64_t)) {
        const uint64_t word = random_next(&state);
        const float two[2] = {(float)(word >> 40) / (1 << 24), (float)(word >> 8 & 0xffffff) / (1 << 24)};
        memcpy(to + at, plane->sample != SAMPLE_F32 ? (const void *)&word : two, sizeof word);
    }
}

/* The check of the expected image against the reference. */

/* A rectangle of one plane. */
struct part {
    int channel, x, y, width, height;
};

/* in(y, x) for the part and the halo around it, border included: what the reference is to see, so that inside it no
 * window reaches its own border. */
static void copy_window(const struct lab *lab, const struct filter *filter, const struct part *part,
                        const struct plane *window)
{
    const size_t bytes = sample_bytes(lab->sample);
    for (int i = 0; i < window->height; i++) {
        char *to = (char *)window->data + (size_t)i * window->row_bytes;
        const int y = border_index(part->y - filter->anchor_y + i, lab->in.height, lab->bench->request->border);
        for (int j = 0; j < window->width; j++) {
            const int x = border_index(part->x - filter->anchor_x + j, lab->in.width, lab->bench->request->border);
            if (y < 0 || x < 0)
                memset(to + (size_t)j * bytes, 0, bytes);
            else
                memcpy(to + (size_t)j * bytes, (const char *)row_at(&lab->in, part->channel, y) + (size_t)x * bytes,
                       bytes);
        }
    }
}

/* PART of a plane as a plane of its own. */
static struct plane view(const struct plane *plane, const struct part *part)
{
    struct plane small = *plane;
    small.width = part->width;
    small.height = part->height;
    small.count = 1;
    small.data = (char *)plane->data + (size_t)part->channel * plane->plane_bytes + (size_t)part->y * plane->row_bytes +
                 (size_t)part->x * sample_bytes(plane->sample);
    return small;
}

static bool check_part(struct lab *lab, const struct plan *reference, const struct part *part, double allowed,
                       uint64_t *wrong, struct error *error)
{
    const struct filter *filter = reference->filter;
    struct plane window, result;
    if (!plane_allocate(&window, lab->sample, part->width + filter->width - 1, part->height + filter->height - 1, 1,
                        error))
        return false;
    if (!plane_allocate(&result, lab->sample, window.width, window.height, 1, error)) {
        plane_free(&window);
        return false;
    }
    copy_window(lab, filter, part, &window);
    const double start = clock_milliseconds();
    const bool done = reference->variant->launch(reference, NULL, &window, &result, error);
    lab->tap_seconds = (clock_milliseconds() - start) / 1e3 / ((double)window.width * window.height * taps_of(filter));
    if (done) {
        const struct plane expected = view(&lab->expected, part);
        const struct plane actual =
            view(&result, &(struct part){0, filter->anchor_x, filter->anchor_y, part->width, part->height});
        *wrong += bench_compare(&expected, &actual, allowed, lab->bench->threads).wrong;
    }
    plane_free(&window);
    plane_free(&result);
    return done;
}

static int limited(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

/* Compare the expected image with the reference's: how many samples are WRONG. */
static bool check_by_plan(struct lab *lab, const struct plan *reference, double allowed, uint64_t *wrong,
                          struct error *error)
{
    const struct filter *filter = reference->filter;
    const double work = taps_of(filter) * samples_of(&lab->size);
    *wrong = 0;
    if (work <= check_whole) {
        const double start = clock_milliseconds();
        if (!reference->variant->launch(reference, NULL, &lab->in, &lab->actual, error))
            return false;
        lab->tap_seconds = (clock_milliseconds() - start) / 1e3 / work;
        *wrong = bench_compare(&lab->expected, &lab->actual, allowed, lab->bench->threads).wrong;
        return true;
    }
    /* Parts as wide as the image where that leaves at least 4 rows, else narrower ones of 4 rows. The reference also
     * computes the halo, which is thrown away. */
    const double samples = check_parts / 3 / taps_of(filter);
    const int width = limited(samples / (4 + filter->height - 1) - (filter->width - 1), 64, lab->size.width);
    const int part_width = width < lab->size.width ? width : lab->size.width;
    const int height = limited(samples / (part_width + filter->width - 1) - (filter->height - 1), 4, lab->size.height);
    const int part_height = height < lab->size.height ? height : lab->size.height;
    const int right = lab->size.width - part_width, bottom = lab->size.height - part_height;
    const struct part parts[] = {
        {0, 0, 0, part_width, part_height},
        {lab->size.planes / 2, right / 2, bottom / 2, part_width, part_height},
        {lab->size.planes - 1, right, bottom, part_width, part_height},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!check_part(lab, reference, &parts[i], allowed, wrong, error))
            return false;
    return true;
}

static bool check_expected(struct lab *lab, const struct filter *filter, double allowed, uint64_t *wrong,
                           struct error *error)
{
    struct plan reference;
    if (!make_plan(lab, filter, variant_reference(), &reference, error))
        return false;
    const bool done = check_by_plan(lab, &reference, allowed, wrong, error);
    plan_free(&reference);
    return done;
}

/* Would a variant pass that returns a saturated or constant image? The default filters are made so that none does. */
static bool is_telling(const struct plane *plane)
{
    size_t extremes = 0, other = 0;
    const uint8_t first = *(const uint8_t *)row_at(plane, 0, 0);
    for (int y = 0; y < plane->height; y++) {
        const uint8_t *row = row_at(plane, 0, y);
        for (int x = 0; x < plane->width; x++) {
            extremes += row[x] == 0 || row[x] == 255;
            other += row[x] != first;
        }
    }
    const size_t samples = (size_t)plane->width * (size_t)plane->height;
    return samples < 4096 || (other > 0 && extremes <= samples / 10); /* of few samples many may be 0 by chance */
}

/* The clocks. */

static int runs_on_cpu(double milliseconds)
{
    return milliseconds > 300 ? BENCH_CPU_RUNS : BENCH_RUNS; /* see bench.h */
}

/* Time a plan of the CPU, or a copy where PLAN is NULL. FIRST_MS is what a run took that went before. */
static bool time_cpu(struct lab *lab, const struct plan *plan, double first_ms, struct bench_row *row,
                     struct error *error)
{
    double milliseconds[BENCH_RUNS];
    const int runs = runs_on_cpu(first_ms);
    for (int run = runs == BENCH_RUNS ? -WARM_UP : 0; run < runs; run++) {
        const double start = clock_milliseconds();
        if (plan == NULL)
            memcpy(lab->actual.data, lab->in.data, plane_size(&lab->in));
        else if (!plan->variant->launch(plan, NULL, &lab->in, &lab->actual, error))
            return false;
        milliseconds[run < 0 ? 0 : run] = clock_milliseconds() - start;
    }
    bench_statistics(milliseconds, runs, row);
    return true;
}

#ifdef GPUCONV_CUDA
/* The interleaved image of pair number PAIR. */
static struct image image_of(const struct lab *lab, size_t pair)
{
    const struct plane *in = &lab->in;
    return (struct image){.width = in->width,
                          .height = in->height,
                          .channels = in->count,
                          .bits = in->sample == SAMPLE_U8 ? 8 : 16,
                          .samples = (uint8_t *)lab->images + pair * lab->image_bytes};
}

/* Queue one launch, or a copy where PLAN is NULL, on pair NUMBER modulo the pairs; with IMAGE from the pair's
 * interleaved image to it, through a split and a merge. */
static bool queue(struct lab *lab, const struct plan *plan, bool image, int number, struct error *error)
{
    const size_t pair = (size_t)(number % lab->pairs), offset = pair * 2 * plane_size(&lab->in);
    struct device *device = lab->bench->device;
    struct plane in = lab->device_in, out = lab->device_out;
    in.data = (char *)in.data + offset;
    out.data = (char *)out.data + offset;
    if (plan == NULL)
        return device_copy(device, out.data, in.data, plane_size(&in), error);
    if (!image)
        return plan->variant->launch(plan, device, &in, &out, error);
    const struct image pixels = image_of(lab, pair);
    return device_split(device, &pixels, ALPHA_FILTER, NULL, &in, error) &&
           plan->variant->launch(plan, device, &in, &out, error) &&
           device_merge(device, &out, ALPHA_FILTER, NULL, &pixels, error);
}

/* The milliseconds of one of COUNT launches between two marks, on the pairs from *NEXT on. */
static bool time_batch(struct lab *lab, const struct plan *plan, bool image, int count, int *next, double *milliseconds,
                       struct error *error)
{
    struct device *device = lab->bench->device;
    float elapsed;
    if (!device_mark(device, 0, error))
        return false;
    for (int i = 0; i < count; i++, *next = (*next + 1) % lab->pairs)
        if (!queue(lab, plan, image, *next, error))
            return false;
    if (!device_mark(device, 1, error) || !device_elapsed(device, 0, 1, &elapsed, error))
        return false;
    *milliseconds = (double)elapsed / count;
    return true;
}

static bool time_cuda(struct lab *lab, const struct plan *plan, bool image, struct bench_row *row, struct error *error)
{
    const double batch_ms = 0.1; /* 200 times what marks are exact to */
    double each, milliseconds[BENCH_RUNS];
    int next = 0;
    /* Every pair is met once before, as a variant may make something for each buffer that it keeps (a texture). */
    if (!time_batch(lab, plan, image, lab->pairs > WARM_UP ? lab->pairs : WARM_UP, &next, &each, error))
        return false;
    if (each < 10 * batch_ms && !time_batch(lab, plan, image, lab->pairs, &next, &each, error))
        return false;
    const int runs = each > 50 ? BENCH_SLOW_RUNS : BENCH_RUNS; /* see bench.h */
    const int batch = each > 0 ? limited(ceil(batch_ms / each), 1, lab->pairs) : lab->pairs;
    for (int run = 0; run < runs; run++)
        if (!time_batch(lab, plan, image, batch, &next, &milliseconds[run], error))
            return false;
    bench_statistics(milliseconds, runs, row);
    return true;
}

/* Run PLAN once, its output buffer poisoned, and bring the output to the host; with IMAGE out of the merged image, of
 * which the input is made first. */
static bool run_cuda(struct lab *lab, struct plan *plan, bool image, struct error *error)
{
    struct device *device = lab->bench->device;
    const struct plane *in = &lab->device_in, *out = &lab->device_out;
    const size_t bytes = plane_size(in);
    const struct image pixels = image_of(lab, 0);
    return (!image || device_merge(device, in, ALPHA_FILTER, NULL, &pixels, error)) &&
           device_fill(device, out->data, 0xff, bytes, error) && variant_prepare(plan, device, error) &&
           queue(lab, plan, image, 0, error) &&
           (!image || (device_fill(device, out->data, 0xff, bytes, error) &&
                       device_split(device, &pixels, ALPHA_FILTER, NULL, out, error))) &&
           device_download(device, lab->actual.data, out->data, bytes, error) && device_wait(device, error);
}

/* The median milliseconds of moving the planes to and from the device. */
static bool time_transfers(struct lab *lab, struct error *error)
{
    enum { TRANSFERS = 5 };
    struct device *device = lab->bench->device;
    const size_t bytes = plane_size(&lab->in);
    double up[TRANSFERS], down[TRANSFERS];
    struct bench_row median;
    for (int run = -1; run < TRANSFERS; run++) { /* the first finds fresh pages on both sides */
        const double start = clock_milliseconds();
        if (!device_upload(device, lab->device_in.data, lab->in.data, bytes, error) || !device_wait(device, error))
            return false;
        const double between = clock_milliseconds();
        if (!device_download(device, lab->actual.data, lab->device_in.data, bytes, error) ||
            !device_wait(device, error))
            return false;
        up[run < 0 ? 0 : run] = between - start;
        down[run < 0 ? 0 : run] = clock_milliseconds() - between;
    }
    bench_statistics(up, TRANSFERS, &median);
    lab->upload_ms = median.median_ms;
    bench_statistics(down, TRANSFERS, &median);
    lab->download_ms = median.median_ms;
    return true;
}

static void close_device(struct bench *bench)
{
    device_close(bench->device);
    bench->device = NULL;
}

static void release_device(struct lab *lab)
{
    if (lab->memory == NULL)
        return;
    device_release(lab->bench->device, lab->images);
    device_release(lab->bench->device, lab->memory);
    lab->images = lab->memory = NULL;
}

/* Are the planes an interleaved image's? One plane is its own image. */
static bool makes_image(const struct lab *lab)
{
    return lab->sample != SAMPLE_F32 && lab->size.planes > 1;
}

/* Fill the input of each pair. */
static bool fill_inputs(struct lab *lab, struct error *error)
{
    struct device *device = lab->bench->device;
    const size_t bytes = plane_size(&lab->in);
    if (!device_upload(device, lab->memory, lab->in.data, bytes, error))
        return false;
    for (int pair = 1; pair < lab->pairs; pair++)
        if (!device_copy(device, (char *)lab->memory + (size_t)pair * 2 * bytes, lab->memory, bytes, error))
            return false;
    return device_wait(device, error);
}

/* Reserve the pairs in one piece of device memory, fill each input, and reserve the images. */
static bool reserve_device(struct lab *lab, struct error *error)
{
    struct device *device = lab->bench->device;
    const size_t bytes = plane_size(&lab->in);
    lab->pairs = limited(3.0 * lab->bench->facts.l2_bytes / (2.0 * (double)bytes) + 1, 2, BENCH_PAIRS);
    if (!device_allocate(device, (size_t)lab->pairs * 2 * bytes, &lab->memory, error))
        return false;
    lab->device_in = lab->device_out = lab->in;
    lab->device_in.data = lab->memory;
    lab->device_out.data = (char *)lab->memory + bytes;
    lab->image_bytes = round_up((size_t)samples_of(&lab->size) * sample_bytes(lab->sample), 512);
    if (makes_image(lab) && !device_allocate(device, (size_t)lab->pairs * lab->image_bytes, &lab->images, error))
        return false;
    return time_transfers(lab, error) && fill_inputs(lab, error);
}

static bool open_device(struct bench *bench, struct error *error)
{
    if (!device_open(bench->request->device, &bench->device, error))
        return false;
    bench->facts = *device_facts(bench->device);
    bench->driver = device_driver_version();
    return true;
}

static bool measure_device(struct bench *bench, struct error *error)
{
    return device_peaks(bench->device, &bench->peaks, error);
}
#else
static bool time_cuda(struct lab *lab, const struct plan *plan, bool image, struct bench_row *row, struct error *error)
{
    (void)lab, (void)plan, (void)image, (void)row;
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

static bool run_cuda(struct lab *lab, struct plan *plan, bool image, struct error *error)
{
    return time_cuda(lab, plan, image, NULL, error);
}

static void close_device(struct bench *bench)
{
    (void)bench;
}

static void release_device(struct lab *lab)
{
    (void)lab;
}

static bool fill_inputs(struct lab *lab, struct error *error)
{
    return time_cuda(lab, NULL, false, NULL, error);
}

static bool reserve_device(struct lab *lab, struct error *error)
{
    return fill_inputs(lab, error);
}

static bool open_device(struct bench *bench, struct error *error)
{
    (void)bench;
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

static bool measure_device(struct bench *bench, struct error *error)
{
    return open_device(bench, error);
}
#endif

/* Rows. */

static bool is_cuda(const struct bench_row *row)
{
    return row->backend == BACKEND_CUDA;
}

/* The multiply-adds a second that the arithmetic of VARIANT could do. */
static double peak_of(const struct bench *bench, const struct variant *variant, enum sample sample)
{
    if (variant->backend == BACKEND_CPU)
        return bench->cpu_peak;
    if (sample == SAMPLE_F32 || variant->unit == UNIT_FMA)
        return bench->peaks.fma;
    return variant->unit == UNIT_DP4A ? bench->peaks.dp4a : bench->peaks.tensor;
}

/* Derive the rates of a row from its median. VARIANT is NULL for a copy. */
static void set_rates(const struct lab *lab, const struct variant *variant, struct bench_row *row)
{
    const double samples = samples_of(&lab->size), seconds = row->median_ms / 1e3;
    const double bytes = 2 * samples * (double)sample_bytes(lab->sample);
    const double copy_seconds = lab->copy_ms[row->backend] / 1e3;
    row->memory_bound = true;
    if (row->runs == 0)
        return;
    row->gpixel_s = samples / seconds / 1e9;
    row->gb_s = bytes / seconds / 1e9;
    row->x_copy = seconds / copy_seconds;
    row->percent_copy = 100 * copy_seconds / seconds;
    if (variant == NULL)
        return;
    const struct filter *filter = row->filter;
    const double macs =
        samples * (variant->accepts == ACCEPTS_RANK_1 ? filter->width + filter->height : taps_of(filter));
    const double peak = peak_of(lab->bench, variant, lab->sample);
    row->tmac_s = macs / seconds / 1e12;
    row->intensity = 2 * macs / bytes;
    row->percent_peak = 100 * macs / seconds / peak;
    row->memory_bound = macs / copy_seconds < peak;
}

static void hand_over(struct lab *lab, const struct bench_row *row)
{
    lab->wrong += row->wrong;
    lab->listener->row(lab->listener->context, row);
}

static struct bench_row new_row(const struct lab *lab, const char *variant, enum backend backend)
{
    return (struct bench_row){
        .variant = variant,
        .backend = backend,
        .size = lab->size,
        .sample = lab->sample,
        .border = lab->bench->request->border,
        .canonical = true,
        .upload_ms = backend == BACKEND_CUDA ? lab->upload_ms : 0,
        .download_ms = backend == BACKEND_CUDA ? lab->download_ms : 0,
    };
}

/* Time copies on both backends. */
static bool copy_rows(struct lab *lab, struct error *error)
{
    const bool wanted[2] = {[BACKEND_CPU] = lab->bench->request->cpu, [BACKEND_CUDA] = lab->bench->device != NULL};
    tell(lab, "copies", NULL);
    for (enum backend backend = BACKEND_CPU; backend <= BACKEND_CUDA; backend++) {
        struct bench_row row = new_row(lab, backend == BACKEND_CUDA ? "(copy)" : "(memcpy)", backend);
        if (!wanted[backend])
            continue;
        if (!(is_cuda(&row) ? time_cuda(lab, NULL, false, &row, error) : time_cpu(lab, NULL, 0, &row, error)))
            return false;
        lab->copy_ms[backend] = row.median_ms;
        set_rates(lab, NULL, &row);
        hand_over(lab, &row);
    }
    return true;
}

/* Is VARIANT to be measured with FILTER? Of the default filters, variants whose time does not depend on the taps'
 * values get those of one kind: the textbook ones, which are not canonical, and the reference. */
static bool is_wanted(const struct bench *bench, const struct variant *variant, const struct filter *filter,
                      enum sample sample)
{
    const struct bench_request *request = bench->request;
    if (variant->launch == NULL || !variant_accepts(variant, filter, sample) ||
        (request->variant != NULL && request->variant != variant))
        return false;
    if (variant->backend == BACKEND_CPU ? !request->cpu
                                        : bench->device == NULL || variant->capability > bench->facts.capability)
        return false;
    if (!request->default_filters)
        return true;
    const enum kind kind = (enum kind)((filter - request->filters) % KIND_COUNT);
    if (sample == SAMPLE_F32 && kind == KIND_INT16)
        return false; /* to floats all dense taps are the same */
    return kind == KIND_INT8 || (variant->seconds != NULL && !variant->is_reference);
}

/* Check PLAN's variant against the expected image and time it where it is right; with IMAGE from an interleaved image
 * to one. */
static bool measure_plan(struct lab *lab, struct plan *plan, bool image, const struct work *work, struct error *error)
{
    const struct variant *variant = plan->variant;
    const struct filter *filter = plan->filter;
    struct bench_row row = new_row(lab, image ? "(image)" : variant->name, variant->backend);
    row.filter = filter;
    row.canonical = variant->seconds != NULL;
    row.chosen = !image && variant_choose(filter, variant->backend, work) == variant;
    memset(lab->actual.data, 0xff, plane_size(&lab->actual)); /* poison; for floats NaN */
    const double start = clock_milliseconds();
    if (!(is_cuda(&row) ? run_cuda(lab, plan, image, error)
                        : variant->launch(plan, NULL, &lab->in, &lab->actual, error)))
        return false;
    const double first_ms = clock_milliseconds() - start;
    /* Two float sums were each rounded. */
    const double allowed = lab->sample == SAMPLE_F32 ? 2 * variant_tolerance(plan) : variant_tolerance(plan);
    const struct bench_difference difference =
        bench_compare(&lab->expected, &lab->actual, allowed, lab->bench->threads);
    row.different = difference.different;
    row.wrong = difference.wrong > 0;
    if (!row.wrong &&
        !(is_cuda(&row) ? time_cuda(lab, plan, image, &row, error) : time_cpu(lab, plan, first_ms, &row, error)))
        return false;
    set_rates(lab, image ? NULL : variant, &row);
    hand_over(lab, &row);
    return true;
}

static bool measure_row(struct lab *lab, const struct variant *variant, const struct filter *filter, bool image,
                        const struct work *work, struct error *error)
{
    struct plan plan;
    tell(lab, image ? "(image)" : variant->name, filter);
    if (!make_plan(lab, filter, variant, &plan, error))
        return false;
    const bool done = measure_plan(lab, &plan, image, work, error);
    plan_free(&plan);
    return done;
}

/* The whole way of an image on the device, with the variant that is chosen or named. */
static bool measure_image(struct lab *lab, const struct filter *filter, const struct work *work, struct error *error)
{
    const struct bench *bench = lab->bench;
    const struct variant *variant = bench->request->variant;
    if (variant == NULL)
        variant = variant_choose(filter, BACKEND_CUDA, work);
    if (lab->images == NULL || variant->backend != BACKEND_CUDA || !is_wanted(bench, variant, filter, lab->sample))
        return true;
    /* The splits write over the inputs. */
    return measure_row(lab, variant, filter, true, work, error) && fill_inputs(lab, error);
}

/* Would the reference take too long? It is timed all the same where it is named. */
static bool is_too_slow(const struct lab *lab, const struct variant *variant, const struct filter *filter)
{
    return variant->is_reference && lab->bench->request->variant != variant &&
           lab->tap_seconds * taps_of(filter) * samples_of(&lab->size) > reference_seconds;
}

static bool measure_case(struct lab *lab, const struct filter *filter, struct error *error)
{
    size_t count, wanted = 0;
    const struct bench *bench = lab->bench;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++)
        wanted += is_wanted(bench, &table[i], filter, lab->sample);
    if (wanted == 0)
        return true;

    const struct work work = {lab->size.width, lab->size.height, lab->size.planes, lab->sample, bench->threads};
    const struct variant *canonical = variant_choose(filter, BACKEND_CPU, &work);
    struct plan plan;
    uint64_t wrong;
    tell(lab, "what must come out", filter);
    if (!make_plan(lab, filter, canonical, &plan, error))
        return false;
    const bool made = canonical->launch(&plan, NULL, &lab->in, &lab->expected, error);
    const double allowed = variant_tolerance(&plan);
    plan_free(&plan);
    if (!made || !check_expected(lab, filter, allowed, &wrong, error))
        return false;
    if (wrong > 0) { /* and then there is nothing to check the others against */
        struct bench_row row = new_row(lab, canonical->name, BACKEND_CPU);
        row.filter = filter;
        row.wrong = row.chosen = true;
        row.different = wrong;
        set_rates(lab, canonical, &row);
        hand_over(lab, &row);
        return true;
    }
    if (bench->request->default_filters && lab->sample == SAMPLE_U8 && !is_telling(&lab->expected))
        return error_set(error, ERROR_WORK,
                         "the benchmark's filter %s makes a saturated or constant image, which would hide errors; name "
                         "others with --bench-filter",
                         filter->name);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(bench, &table[i], filter, lab->sample) && !is_too_slow(lab, &table[i], filter) &&
            !measure_row(lab, &table[i], filter, false, &work, error))
            return false;
    return measure_image(lab, filter, &work, error);
}

static bool measure_lab(struct lab *lab, struct error *error)
{
    tell(lab, "samples", NULL);
    if (!reserve(lab, &lab->in, error) || !reserve(lab, &lab->expected, error) || !reserve(lab, &lab->actual, error))
        return false;
    fill_random(&lab->in);
    if ((lab->bench->device != NULL && !reserve_device(lab, error)) || !copy_rows(lab, error))
        return false;
    const struct bench_request *request = lab->bench->request;
    for (size_t i = 0; i < request->filter_count; i++)
        if (!measure_case(lab, &request->filters[i], error))
            return false;
    return true;
}

bool bench_run(struct bench *bench, const struct bench_listener *listener, size_t *wrong, struct error *error)
{
    *wrong = 0;
    for (size_t i = 0; i < bench->size_count; i++)
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
            if (!bench->request->samples[sample])
                continue;
            struct lab lab = {.bench = bench, .listener = listener, .size = bench->sizes[i], .sample = sample};
            const bool done = measure_lab(&lab, error);
            release_device(&lab);
            free(lab.in.data);
            free(lab.expected.data);
            free(lab.actual.data);
            *wrong += lab.wrong;
            if (!done)
                return false;
        }
    return true;
}

/* Opening. */

static void name_cpu(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", strlen("model name")) == 0 && strchr(line, ':') != NULL) {
            const char *value = strchr(line, ':') + 1;
            value += strspn(value, " \t");
            snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    fclose(file);
}

/* Does a named variant take any of the filters? */
static bool check_variant(const struct bench *bench, struct error *error)
{
    const struct bench_request *request = bench->request;
    const struct variant *variant = request->variant;
    if (variant == NULL)
        return true;
    if (bench->device != NULL && variant->capability > bench->facts.capability)
        return error_set(error, ERROR_WORK, "the variant %s needs a GPU of compute capability %d.%d and %s has %d.%d",
                         variant->name, variant->capability / 10, variant->capability % 10, bench->facts.name,
                         bench->facts.capability / 10, bench->facts.capability % 10);
    enum sample first = 0;
    while (!request->samples[first])
        first++;
    for (size_t i = 0; i < request->filter_count; i++)
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++)
            if (request->samples[sample] && is_wanted(bench, variant, &request->filters[i], sample))
                return true;
    if (request->default_filters)
        return error_set(error, ERROR_USAGE,
                         "the variant %s takes none of the benchmark's filters; name one that it takes with "
                         "--bench-filter",
                         variant->name);
    struct plan plan;
    return variant_plan(&plan, &request->filters[0], request->border, first, variant, error);
}

bool bench_open(struct bench *bench, const struct bench_request *request, struct error *error)
{
    *bench = (struct bench){.request = request, .threads = parallel_threads(request->threads)};
    if (request->cuda && !open_device(bench, &bench->no_device) && !request->cpu)
        return error_set(error, ERROR_WORK, "there is no GPU to work on: %s; --backend cpu works everywhere",
                         bench->no_device.message);
    if (!check_variant(bench, error))
        return false;
    if (bench->device != NULL && !measure_device(bench, error))
        return false;
    name_cpu(bench->cpu, sizeof bench->cpu);
    if (request->cpu && !peak_cpu(bench->threads, &bench->cpu_peak, error))
        return false;
    set_sizes(bench);
    return true;
}

void bench_close(struct bench *bench)
{
    close_device(bench);
}
