/* SPDX-License-Identifier: MIT
 *
 * Filters that change each pixel by itself: matrices and tables of all kinds, in all planes and types. */
#include "check.h"

#include "base/random.h"
#include "image/linear.h"

/* Tables of 256 levels for samples of 8 bits, for all colours or another one each; matrices of 1, 3 and 4 rows, with
 * alpha's weight and without, of their own channel only, with scales that take 64 bits, and with curves after them. */
static const char *const texts[] = {
    "curve\n0 10%\n255 90%\n",
    "curve red\n0 255\n255 0\ncurve green gamma 2\n0 0\n255 255\ncurve blue steps\n0 9\n90 130\n200 250\n",
    "curve alpha smooth\n0 0\n100 200\n255 240\n",
    "curve\n0 0\n255 200\ncurve alpha\n0 255\n255 3\n",
    "matrix\n0.2126 0.7152 0.0722\n",
    "matrix\n1.3 -0.2 -0.1 0.25 -7\n",
    "matrix\n0.123456789 0.31415926 0.271828182\n",
    "matrix\n0 0 1\n1 0 0\n0.25 0.5 0.25\n",
    "matrix\n2 0 0 -30\n0 1.5 0 0\n0 0 -1 255\n",
    "matrix\n1 0 0 0\n0 0.5 0 0\n0 0 1.1 0\n0 0 0 0.75\n",
    "matrix\n0.5 0.25 -0.1 0.3 4\n0.1 0.7 0.2 -0.25 -3\n-0.2 0.3 0.9 0.1 0\n0.2 0.1 0.1 0.6 5\n",
    "matrix\n1/3 1/3 1/3\ncurve red\n0 20\n255 60\ncurve blue\n0 240\n255 0\n",
    "matrix\n0.9 0.1 0\n0 0.9 0.1\n0.1 0 0.9\ncurve\n0 0\n128 100\n255 255\ncurve alpha\n0 50\n255 100\n",
};

/* Conversions of colours: curves for all colours or for each, with and without a matrix, of levels and of light. */
static const struct conversion {
    int curves, rows;
    bool in_light;
} conversions[] = {{1, 3, false}, {3, 3, false}, {1, 0, false}, {3, 0, false}, {3, 3, true}, {1, 0, true}};

static void convert(struct filter *filter, const struct conversion *conversion)
{
    static const int32_t weights[3][3] = {{1284900, -235600, -724}, {-44100, 1092676, 0}, {-20600, -82500, 1151676}};
    static const double exponents[3] = {2.2, 1.8, 2.4};
    struct colours *colours = colours_make();
    struct error error = {0};
    if (colours == NULL || !filter_find("to-srgb", filter, NULL, &error))
        fail("to-srgb: %s", error.message);
    colours->curves = conversion->curves;
    colours->in_light = conversion->in_light;
    for (int i = 0; i < 65536; i++) {
        for (int c = 0; c < 3; c++)
            colours->light[c][i] = (uint16_t)(65535 * linear_power(i / 65535.0, exponents[c]) + 0.5);
        colours->levels[i] = (uint16_t)(65535 * linear_power(i / 65535.0, 1 / 2.4) + 0.5);
    }
    struct point *point = &filter->point;
    point->needs_colours = false;
    point->colours = colours;
    point->rows = point->columns = conversion->rows;
    for (int row = 0; row < 3; row++) {
        point->row[row] = (struct point_row){.scale = 1 << 20, .bias = 1 << 19, .bias16 = 1 << 19};
        memcpy(point->row[row].weights, weights[row], sizeof weights[row]);
    }
}

/* A grey picture has no matrix of light. */
static bool takes_planes(const struct filter *filter, int planes)
{
    return planes > 2 || filter->point.colours == NULL || filter->point.rows == 0;
}

/* Floats also have values of no level, and between levels. */
static void fill_pixels(const struct plane *plane, uint64_t *state)
{
    static const float odd[] = {-0.5f, 0, -0.0f, 1, 1.0000001f, 7, -1e30f, 1e30f, 1e-42f, 65533.5f / 65535};
    fill_random(plane, state);
    for (int channel = 0; channel < plane->count && plane->sample == SAMPLE_F32; channel++)
        for (int y = 0; y < plane->height; y++)
            for (int x = 0; x < plane->width; x++)
                if (random_between(state, 0, 3) == 0)
                    ((float *)plane_row(plane, channel, y))[x] =
                        odd[random_between(state, 0, sizeof odd / sizeof *odd - 1)];
}

#ifdef GPUCONV_CUDA
/* The ways of an image through several steps on a GPU. */
enum way { WAY_IMAGE, WAY_SPLIT, WAY_MERGE, WAYS };

/* Queue one, in place, by planes in the checker's memory. */
static bool queue_way(struct checker *checker, enum way way, const struct device_points *points,
                      const struct image *image, struct plane planes, struct error *error)
{
    struct device *device = checker->device;
    planes.data = checker->out.bytes;
    if (way == WAY_IMAGE)
        return device_change_image(device, points, image, image, error);
    return (way == WAY_SPLIT ? device_split_points(device, points, image, &planes, error)
                             : device_split(device, image, ALPHA_FILTER, NULL, &planes, error)) &&
           (way == WAY_MERGE ? device_merge_points(device, points, &planes, image, error)
                             : device_merge(device, &planes, ALPHA_FILTER, NULL, image, error));
}

/* An image of CHANNELS through COUNT steps, with planes for PLANES of its channels. The steps change
 * samples of the type PLANNED: those of a picture of 8 bits with alpha, whose other filters have planes of 16 bits. */
static void check_ways(struct checker *checker, const struct filter *filters, int count, struct test_case *c,
                       int channels, enum sample planned, uint64_t *state)
{
    struct device *device = checker->device;
    struct device_points points = {.count = 0};
    struct plan plans[2];
    struct error error = {0};
    struct guarded planes = guarded_make(c->sample, c->width, c->height, channels, 0), next = planes;
    struct image image = {
        .width = c->width, .height = c->height, .channels = channels, .bits = 8 * (int)sample_bytes(c->sample)};
    const size_t size = image_bytes(&image) + 2 * GUARD;
    unsigned char *before = allocate(size), *expected = allocate(size), *actual = allocate(size);
    next.memory = guarded_make(c->sample, c->width, c->height, channels, 0).memory;
    next.plane.data = next.memory + GUARD;
    memset(before, 0x5a, size);
    fill_pixels(&planes.plane, state);
    image.samples = before + GUARD;
    image_merge(&planes.plane, ALPHA_FILTER, NULL, &image);
    memcpy(expected, before, size);
    image.samples = expected + GUARD;
    planes.plane.count = next.plane.count = c->planes;
    for (int i = 0; i < count; i++, points.count++) {
        if (!variant_plan(&plans[0], &filters[i], BORDER_ZERO, c->sample, variant_reference(), &error) ||
            !variant_prepare(&plans[0], NULL, &error) ||
            !variant_launch(&plans[0], NULL, &planes.plane, &next.plane, &error) ||
            !variant_plan(&plans[1], &filters[i], BORDER_ZERO, planned, variant_find("point", NULL), &error) ||
            !device_keep_taps(device, variant_prepare, &plans[1], (struct device_taps **)&points.taps[i], &error))
            fail("%s", error.message);
        const struct guarded last = planes;
        planes = next;
        next = last;
        plan_free(&plans[0]);
    }
    image_merge(&planes.plane, ALPHA_FILTER, NULL, &image);
    checker_reserve(checker, size > planes.size ? size : planes.size);
    image.samples = checker->in.bytes + GUARD;
    const enum way end = image.bits == 8 && planned == c->sample ? WAYS : WAY_IMAGE + 1;
    for (enum way way = c->planes == channels ? WAY_IMAGE : WAY_SPLIT; way < end; way++) {
        if (!device_upload(device, checker->in.bytes, before, size, &error) ||
            !queue_way(checker, way, &points, &image, planes.plane, &error) ||
            !device_download(device, actual, checker->in.bytes, size, &error) || !device_wait(device, &error))
            fail("%s", error.message);
        checker->cases++;
        if (memcmp(expected, actual, size) == 0)
            continue;
        checker->mismatches++;
        fprintf(stderr, "MISMATCH way %d of %d steps: %s, %d channels\n", (int)way, count, c->what, channels);
    }
    for (int i = 0; i < count; i++)
        device_free_taps(device, (struct device_taps *)points.taps[i]);
    free(planes.memory);
    free(next.memory);
    free(before);
    free(expected);
    free(actual);
}
#endif

void check_points(struct checker *checker)
{
    enum { TEXTS = sizeof texts / sizeof *texts, ALL = TEXTS + sizeof conversions / sizeof *conversions, STEPS = 3 };
    uint64_t state = checker->options.seed, number = 0;
    struct filter *filters = allocate(ALL * sizeof *filters);
    for (int i = TEXTS; i < ALL; i++)
        convert(&filters[i], &conversions[i - TEXTS]);
    for (int i = 0; i < TEXTS; i++) {
        struct error error = {0};
        char name[32];
        snprintf(name, sizeof name, "pixels %d", i);
        if (!filter_parse(texts[i], strlen(texts[i]), name, &filters[i], &error))
            fail("%s: %s", name, error.message);
    }
    for (int i = 0; i < ALL; i++)
        for (int planes = 1; planes <= 4; planes++)
            for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++, number++) {
                const int *size = sizes[number * 5 % size_count];
                if (!takes_planes(&filters[i], planes))
                    continue;
                struct test_case c = {.filter = &filters[i],
                                      .sample = sample,
                                      .width = size[0],
                                      .height = size[1],
                                      .planes = planes,
                                      .number = number};
                snprintf(c.what, sizeof c.what, "%s, %d x %d %s, %d planes", c.filter->name, size[0], size[1],
                         sample_name(sample), planes);
                case_open(&c);
                fill_pixels(&c.in.plane, &state);
                case_check(checker, &c);
                case_close(&c);
#ifdef GPUCONV_CUDA
                bool uses_alpha = false;
                int count = i + STEPS < ALL ? 1 + (int)number % STEPS : 1;
                for (int k = i; k < i + count; k++) {
                    uses_alpha |= filter_uses_alpha(&filters[k]);
                    if (!takes_planes(&filters[k], planes))
                        count = k - i;
                }
                if (is_wanted(&checker->options, variant_find("point", NULL)))
                    check_ways(checker, &filters[i], count, &c, planes, sample, &state);
                if (sample == SAMPLE_U8 && is_wanted(&checker->options, variant_find("point", NULL)))
                    check_ways(checker, &filters[i], count, &c, planes, SAMPLE_U16, &state);
                if (planes % 2 == 1 && !uses_alpha && is_wanted(&checker->options, variant_find("point", NULL)))
                    check_ways(checker, &filters[i], count, &c, planes + 1, sample, &state);
#endif
            }
    filters_free(filters, ALL);
}
