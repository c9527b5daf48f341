/* SPDX-License-Identifier: MIT
 *
 * Filters that change the size of a picture: resize:SIZE[:WORD...], and thumbnail with the same words. */
#include "filter/filter_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Read ---- */

/* Read the side of a picture that fills the bytes from AT to END, which may be none: 0. */
static bool read_side(const char *at, const char *end, int *side)
{
    struct number number = NUMBER_ZERO;
    const bool done = at == end || (is_digit(*at) && number_read(at, end, &number) == NUMBER_FINE &&
                                    number_is_integer(number, 1, SIDE_MAX));
    *side = done ? (int)number.numerator : 0;
    return done;
}

bool read_sides(const char *at, const char *end, int *width, int *height)
{
    const char *x = memchr(at, 'x', (size_t)(end - at));
    return x != NULL && end - at > 1 && read_side(at, x, width) && read_side(x + 1, end, height);
}

bool read_percentage(const char *at, const char *end, double max, int64_t *numerator, int64_t *denominator)
{
    const struct number hundred = {.numerator = 100, .denominator = 1, .value = 100};
    struct number number;
    if (end == at || end[-1] != '%' || number_read(at, end - 1, &number) != NUMBER_FINE)
        return false;
    if (!(number.value >= 0.1 && number.value <= max))
        return false;
    number = number_divide(number, hundred);
    if (number.denominator == 0 || number.denominator > INT32_MAX || number.numerator > INT32_MAX)
        number = number_round(number);
    *numerator = number.numerator;
    *denominator = number.denominator;
    return true;
}

/* Read a word after the size. */
static bool read_word(const char *at, const char *end, struct resize *resize)
{
    const enum resample_kernel kernel = resample_find(at, end);
    if (kernel != RESAMPLE_NONE) {
        const bool is_first = resize->kernel == RESAMPLE_NONE;
        resize->kernel = kernel;
        return is_first;
    }
    bool *flag = is_word("exact", at, end)     ? &resize->exact
                 : is_word("cover", at, end)   ? &resize->covers
                 : is_word("enlarge", at, end) ? &resize->enlarges
                                               : NULL;
    if (flag != NULL)
        return *flag = true;
    return *end == '\0' && resize->picture_width == 0 &&
           read_sides(at, end, &resize->picture_width, &resize->picture_height) && resize->picture_width > 0 &&
           resize->picture_height > 0;
}

static bool read_resize(const char *spec, struct resize *resize, struct error *error)
{
    const char *at = spec + strcspn(spec, ":"), *end = at + 1 + strcspn(at + (*at == ':'), ":");
    const char *word = *spec == *THUMBNAIL_WORD ? THUMBNAIL_WORD : RESIZE_WORD;
    *resize = (struct resize){.kernel = RESAMPLE_NONE, .thumbnail = *spec == *THUMBNAIL_WORD};
    if (*at != ':' || (!read_percentage(at + 1, end, 10000, &resize->numerator, &resize->denominator) &&
                       !read_sides(at + 1, end, &resize->width, &resize->height)))
        return error_set(
            error, ERROR_USAGE,
            "there is no filter \"%s\": %s takes one or two sides from 1 to 100000 pixels, or a percentage "
            "from 0.1%% to 10000%%, for example %s:1920x, %s:x1080, %s:1920x1080 or %s:50%%; words such "
            "as :exact can follow, see gpuconv --help %s",
            spec, word, word, word, word, word, word);
    while (*end == ':') {
        at = end + 1;
        end = at + strcspn(at, ":");
        if (!read_word(at, end, resize))
            return error_set(
                error, ERROR_USAGE,
                "there is no filter \"%s\": after the size, %s takes the words exact, cover and enlarge, and "
                "one of the kernels lanczos3, lanczos2, cubic, mitchell, triangle, box and nearest, or one of "
                "Pillow's, "
                "such as pillow-bicubic and pillow12-lanczos",
                spec, word);
    }
    if (resize->covers && (resize->exact || resize->width == 0 || resize->height == 0))
        return error_set(error, ERROR_USAGE,
                         "there is no filter \"%s\": cover needs both sides and no exact, for example %s:640x640:cover",
                         spec, word);
    if (resize->exact && (resize->width == 0 || resize->height == 0))
        return error_set(error, ERROR_USAGE,
                         "there is no filter \"%s\": exact needs both sides, for example %s:640x640:exact", spec, word);
    resize->enlarges |= resize->exact || resize->denominator > 0;
    if (resize->kernel == RESAMPLE_NONE)
        resize->kernel = RESAMPLE_LANCZOS3;
    return true;
}

bool resize_is_valid(const char *spec)
{
    struct resize resize;
    return read_resize(spec, &resize, NULL);
}

bool filter_make_resize(const struct filter_form *form, const char *spec, struct filter *filter,
                        struct filter *filter16, struct error *error)
{
    (void)form, (void)filter16;
    struct resize resize;
    if (!read_resize(spec, &resize, error))
        return false;
    char title[64];
    snprintf(title, sizeof title, "another size by %s", resample_name(resize.kernel));
    filter_begin(STEP_RESIZE, spec, title, filter);
    filter->resize = resize;
    const int width = resize.picture_width, height = resize.picture_height;
    return width == 0 || resize_size(filter, &(int){width}, &(int){height}, error);
}

/* ---- Sizes ---- */

int64_t scale_side(int side, int64_t a, int64_t b)
{
    const int64_t scaled = (2 * side * a + b) / (2 * b);
    return scaled > 1 ? scaled : 1;
}

/* SIDE * A / B. With a kernel of Pillow, it is rounded down, as torchvision's Resize rounds the longer edge. */
static int64_t resized_side(const struct resize *resize, int side, int64_t a, int64_t b)
{
    return resample_is_pillow(resize->kernel) && side * a / b > 0 ? side * a / b : scale_side(side, a, b);
}

/* The size of the result, even if the filter would have to enlarge. */
static void find_size(const struct resize *resize, int width, int height, int64_t *new_width, int64_t *new_height)
{
    const bool height_limits = (int64_t)resize->height * width < (int64_t)resize->width * height;
    const bool by_height = resize->width == 0 || (resize->height > 0 && height_limits != resize->covers);
    if (resize->exact) {
        *new_width = resize->width;
        *new_height = resize->height;
    } else if (resize->denominator > 0) {
        *new_width = resized_side(resize, width, resize->numerator, resize->denominator);
        *new_height = resized_side(resize, height, resize->numerator, resize->denominator);
    } else if (by_height) {
        *new_width = resized_side(resize, width, resize->height, height);
        *new_height = resize->height;
    } else {
        *new_width = resize->width;
        *new_height = resized_side(resize, height, resize->width, width);
    }
}

bool filter_resize_stays(const struct filter *filter, int width, int height)
{
    int64_t new_width, new_height;
    if (filter->kind != STEP_RESIZE || filter->resize.enlarges)
        return false;
    find_size(&filter->resize, width, height, &new_width, &new_height);
    return new_width > width || new_height > height;
}

bool filter_resize(const struct filter *filter, int *width, int *height, struct error *error)
{
    return filter_kind(filter)->size == NULL ? !filter->region.is_set || region_check(filter, *width, *height, error)
                                             : filter_kind(filter)->size(filter, width, height, error);
}

bool resize_size(const struct filter *filter, int *width, int *height, struct error *error)
{
    const struct resize *resize = &filter->resize;
    int64_t new_width, new_height;
    if (resize->picture_width > 0 && (*width != resize->picture_width || *height != resize->picture_height))
        return error_set(error, ERROR_USAGE,
                         "%s is for a picture of %d x %d pixels, and this picture has %d x %d; leave the size out",
                         filter->name, resize->picture_width, resize->picture_height, *width, *height);
    if (filter_resize_stays(filter, *width, *height))
        return true;
    find_size(resize, *width, *height, &new_width, &new_height);
    if (new_width > RESAMPLE_SIDE_MAX || new_height > RESAMPLE_SIDE_MAX)
        return error_set(error, ERROR_WORK,
                         "%s would make %lld x %lld pixels of %d x %d; the longest side is %d, so give a smaller size",
                         filter->name, (long long)new_width, (long long)new_height, *width, *height, RESAMPLE_SIDE_MAX);
    if (!resample_check(filter->name, resize->kernel, *width, (int)new_width, error) ||
        !resample_check(filter->name, resize->kernel, *height, (int)new_height, error))
        return false;
    *width = (int)new_width;
    *height = (int)new_height;
    return true;
}

bool filter_is_pillow(const struct filter *filter)
{
    return filter->kind == STEP_RESIZE && resample_is_pillow(filter->resize.kernel);
}

int filter_shrink(const struct filter *filter, int width, int height)
{
    int new_width = width, new_height = height, shrink = 0;
    if (filter->kind != STEP_RESIZE || !filter->resize.thumbnail ||
        !filter_resize(filter, &new_width, &new_height, NULL))
        return 0;
    while (shrink < 3 && (width - 1) >> (shrink + 1) >= 2 * new_width - 1 &&
           (height - 1) >> (shrink + 1) >= 2 * new_height - 1)
        shrink++;
    return shrink;
}

struct resize_work filter_resize_work(const struct filter *filter, int width, int height)
{
    struct resample_axis columns, rows;
    int new_width = width, new_height = height;
    filter_resize(filter, &new_width, &new_height, NULL);
    const enum resample_kernel kernel = filter->resize.kernel;
    const bool rows_first = resample_rows_first(kernel, width, height, new_width, new_height);
    const int each = resample_is_pillow(kernel) ? 2 : 1; /* the taps of Pillow's kernels have two parts */
    resample_shape(&columns, kernel, height, new_height, 8);
    resample_shape(&rows, kernel, width, new_width, 8);
    return (struct resize_work){.columns = (double)(rows_first ? new_width : width) * new_height * columns.count * each,
                                .rows = (double)(rows_first ? height : new_height) * new_width * rows.count * each};
}

double resize_work(const struct filter *filter, int width, int height)
{
    const struct resize_work work = filter_resize_work(filter, width, height);
    return work.columns + work.rows;
}

double resize_float_error(const struct filter *filter, int taps)
{
    (void)filter;
    return (taps + 8) * 1.55 * 1.55; /* the gain of each pass is at most 1.55 */
}

/* How far an output is at most from the sums of the kernel itself, in levels, with its last rounding. With the taps v
 * and h over 2^shift, what they should be v' and h', and what the first pass is rounded by, d <= 2^-7:
 *
 *     sum h (sum v in + d) - sum h' sum v' in = sum h d + sum h sum (v - v') in + sum (h - h') sum v' in
 *
 * All these taps sum to 1, so the middle level can be taken from each sample: |in| <= half. A weight is within 3 units
 * of the kernel, and the weights sum to about count / reach: so v' errs by at most 2 * 3 * reach units more. */
static double resize_bound(const struct resample_axis *columns, const struct resample_axis *rows, bool is_16_bit)
{
    const double half = is_16_bit ? 32767.5 : 127.5, unit = 6 * ldexp(1, -30);
    const double v = columns->from == columns->to ? 0 : columns->taps_error + unit * columns->reach;
    const double h = rows->from == rows->to ? 0 : rows->taps_error + unit * rows->reach;
    const double d = columns->from == columns->to ? 0 : ldexp(1, -RESAMPLE_FRACTION - 1);
    return 0.5 + rows->gain * d + half * (rows->gain * v + h * (columns->gain + v));
}

/* ---- Describe ---- */

/* Make the taps of both axes for the filter's picture. */
static bool make_axes(const struct filter *filter, bool is_16_bit, struct resample_axis axes[2])
{
    int width = filter->resize.picture_width, height = filter->resize.picture_height;
    const int from_width = width, from_height = height;
    filter_resize(filter, &width, &height, NULL);
    resample_shape(&axes[0], filter->resize.kernel, from_height, height, is_16_bit ? 16 : 8);
    resample_shape(&axes[1], filter->resize.kernel, from_width, width, is_16_bit ? 16 : 8);
    if (resample_make(&axes[0]) && resample_make(&axes[1]))
        return true;
    free(axes[0].taps);
    return false;
}

static bool has_rows_first(const struct filter *filter, const struct resample_axis axes[2])
{
    return resample_rows_first(filter->resize.kernel, axes[1].from, axes[0].from, axes[1].to, axes[0].to);
}

static void describe_axis(FILE *stream, const char *name, const struct resample_axis *axis)
{
    fprintf(stream, "  %-10s %d to %d: %d tap%s for each, in 1/2^%d, of %d kind%s\n", name, axis->from, axis->to,
            axis->count, axis->count > 1 ? "s" : "", axis->shift, axis->period, axis->period > 1 ? "s" : "");
    for (int i = 0; i < axis->period && i < 4; i++) {
        fprintf(stream, "    %d from %d:", i, resample_first(axis, i));
        for (int k = 0; k < axis->count; k++)
            fprintf(stream, " %d", axis->taps[i * axis->count + k]);
        fputs("\n", stream);
    }
    if (axis->period > 4)
        fprintf(stream, "    and so on; --json has all\n");
}

static void describe_depth(FILE *stream, const struct filter *filter, bool is_16_bit)
{
    struct resample_axis axes[2];
    if (!make_axes(filter, is_16_bit, axes))
        return;
    fprintf(stream, "\n  For samples of %d bits:\n", is_16_bit ? 16 : 8);
    describe_axis(stream, "columns", &axes[0]);
    describe_axis(stream, "rows", &axes[1]);
    if (resample_is_pillow(filter->resize.kernel))
        fprintf(stream, "  first      %s\n", has_rows_first(filter, axes) ? "rows" : "columns");
    else
        fprintf(stream, "  bound      %.4f levels from the kernel's own result\n",
                resize_bound(&axes[0], &axes[1], is_16_bit));
    free(axes[0].taps);
    free(axes[1].taps);
}

void resize_describe(FILE *stream, const struct filter *filter)
{
    const struct resize *resize = &filter->resize;
    int width = resize->picture_width, height = resize->picture_height;
    fprintf(stream, "  kernel     %s\n", resample_name(resize->kernel));
    if (resample_is_pillow(resize->kernel))
        fprintf(stream, "  passes     each rounded to levels of 8 bits, in the order of Pillow %s\n",
                resize->kernel < RESAMPLE_PILLOW12_NEAREST ? "13" : "up to 12");
    else
        fprintf(stream, "  passes     the columns, their sums rounded to 1/2^%d of a level, then the rows\n",
                RESAMPLE_FRACTION);
    fprintf(stream, "  sum        1: a constant image stays as it is\n");
    if (resize->thumbnail)
        fprintf(stream, "  decoder    may make a JPEG smaller before, to twice the result or more\n");
    if (width == 0) {
        fprintf(stream, "  taps       depend on the picture; give its size at the end, as in %s:4000x3000\n",
                filter->name);
        return;
    }
    filter_resize(filter, &width, &height, NULL);
    fprintf(stream, "  size       %d x %d becomes %d x %d\n", resize->picture_width, resize->picture_height, width,
            height);
    describe_depth(stream, filter, false);
    if (!resample_is_pillow(resize->kernel))
        describe_depth(stream, filter, true);
}

static void print_axis(FILE *file, const char *name, const struct resample_axis *axis)
{
    fprintf(file, ",\"%s\":{\"from\":%d,\"to\":%d,\"count\":%d,\"shift\":%d,\"taps\":[", name, axis->from, axis->to,
            axis->count, axis->shift);
    for (int i = 0; i < axis->period; i++) {
        fprintf(file, "%s{\"first\":%d,\"taps\":[", i > 0 ? "," : "", resample_first(axis, i));
        for (int k = 0; k < axis->count; k++)
            fprintf(file, "%s%d", k > 0 ? "," : "", axis->taps[i * axis->count + k]);
        fputs("]}", file);
    }
    fputs("]}", file);
}

static void print_depth(FILE *file, const struct filter *filter, bool is_16_bit)
{
    struct resample_axis axes[2];
    const bool is_pillow = resample_is_pillow(filter->resize.kernel);
    if (filter->resize.picture_width == 0 || (is_pillow && is_16_bit) || !make_axes(filter, is_16_bit, axes)) {
        fputs("null", file);
        return;
    }
    if (is_pillow)
        fprintf(file, "{\"bound\":null,\"rows_first\":%s", has_rows_first(filter, axes) ? "true" : "false");
    else
        fprintf(file, "{\"bound\":%.6f", resize_bound(&axes[0], &axes[1], is_16_bit));
    print_axis(file, "columns", &axes[0]);
    print_axis(file, "rows", &axes[1]);
    fputc('}', file);
    free(axes[0].taps);
    free(axes[1].taps);
}

void resize_print(FILE *file, const struct filter *filter)
{
    const struct resize *resize = &filter->resize;
    fprintf(file, "\"kernel\":\"%s\",\"width\":%d,\"height\":%d,\"scale\":", resample_name(resize->kernel),
            resize->width, resize->height);
    if (resize->denominator > 0)
        fprintf(file, "[%lld,%lld]", (long long)resize->numerator, (long long)resize->denominator);
    else
        fputs("null", file);
    fprintf(
        file, ",\"exact\":%s,\"cover\":%s,\"enlarge\":%s,\"thumbnail\":%s,\"taps8\":", resize->exact ? "true" : "false",
        resize->covers ? "true" : "false", resize->enlarges ? "true" : "false", resize->thumbnail ? "true" : "false");
    print_depth(file, filter, false);
    fputs(",\"taps16\":", file);
    print_depth(file, filter, true);
}
