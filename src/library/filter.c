/* SPDX-License-Identifier: MIT
 *
 * Filters for callers of the library. */
#include "base/text.h"
#include "codec/mask.h"
#include "cpu/cpu.h"
#include "library/library.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Objects ---- */

/* Make an object of COUNT FILTERS. It owns them from now on. */
static struct gpuconv_filter *make_object(struct filter *filters, size_t count, struct error *error)
{
    return (struct gpuconv_filter *)chain_make(filters, count, error);
}

void gpuconv_filter_close(struct gpuconv_filter *filter)
{
    chain_release(filter_chain_of(filter));
}

/* ---- Sources ---- */

/* Warn of taps that do not do what their writer expects. */
static struct gpuconv_filter *warn_of_taps(struct gpuconv_filter *filter, const struct error *reason,
                                           struct gpuconv_error *error)
{
    if (LIBRARY_RESULT(filter, reason, error) == NULL)
        return NULL;
    const struct filter_chain *chain = filter_chain_of(filter);
    for (size_t i = 0; i < chain->count; i++) {
        const struct filter *one = &chain->filters[i];
        const double times = filter_brightness(one);
        if (filter_is_zero(one))
            library_warn(error, "%s: all taps are 0, so all pixels become the same; check them", one->name);
        if (times != 0)
            library_warn(
                error,
                "%s: the taps sum to %.10g, so the picture becomes %.10g times as bright; give the scale %.10g, "
                "or 1 to keep that",
                one->name, times, times, times);
    }
    return filter;
}

/* Read the masks of FILTERS, or free these. */
static bool load_masks(struct filter *filters, size_t count, struct error *error)
{
    const bool done = masks_load(filters, count, 0, error);
    if (!done)
        filters_free(filters, count);
    return done;
}

struct gpuconv_filter *gpuconv_filter_find(const char *name, struct gpuconv_error *error)
{
    struct error reason;
    struct filter *filters;
    size_t count;
    const bool done =
        (name != NULL ||
         error_set(&reason, ERROR_USAGE, "there is no name of a filter; give a name such as \"gaussian:2\"")) &&
        filter_find_all(name, filter_find, &filters, &count, &reason) && load_masks(filters, count, &reason);
    return warn_of_taps(done ? make_object(filters, count, &reason) : NULL, &reason, error);
}

static struct gpuconv_filter *parse_filter(const char *text, size_t size, const char *name, struct error *error)
{
    struct filter *filter = malloc(sizeof *filter);
    if (text == NULL)
        error_set(error, ERROR_USAGE, "the filter's text is missing; give rows of taps");
    else if (filter == NULL)
        error_no_memory(error, "a filter");
    else if (filter_parse(text, size, name != NULL ? name : "filter", filter, error))
        return make_object(filter, 1, error);
    free(filter);
    return NULL;
}

struct gpuconv_filter *gpuconv_filter_parse(const char *text, size_t size, const char *name,
                                            struct gpuconv_error *error)
{
    struct error reason;
    return warn_of_taps(parse_filter(text, size, name, &reason), &reason, error);
}

/* Check what the text of a filter could not say, or not as clearly. */
static bool check_taps(const struct gpuconv_taps *taps, struct error *error)
{
    if (taps == NULL || taps->taps == NULL)
        return error_set(error, ERROR_USAGE, "there are no taps; give width x height taps");
    if (taps->width < 1 || taps->height < 1 || taps->width > FILTER_MAX || taps->height > FILTER_MAX)
        return error_set(error, ERROR_USAGE, "there are %d x %d taps; give 1 to %d on a side", taps->width,
                         taps->height, FILTER_MAX);
    if (taps->has_anchor &&
        (taps->anchor_x < 0 || taps->anchor_x >= taps->width || taps->anchor_y < 0 || taps->anchor_y >= taps->height))
        return error_set(error, ERROR_USAGE, "the anchor is at column %d, row %d; it must be in the %d x %d taps",
                         taps->anchor_x, taps->anchor_y, taps->width, taps->height);
    if (taps->scale < 0)
        return error_set(error, ERROR_USAGE, "the scale is %d; give 1 or more", taps->scale);
    if (!(taps->offset >= -65535 && taps->offset <= 65535))
        return error_set(error, ERROR_USAGE, "the offset is %g; give -65535 to 65535", taps->offset);
    return library_check_reserved(taps->reserved, sizeof taps->reserved / sizeof *taps->reserved, error);
}

/* Write OFFSET as a fraction: a decimal of up to nine digits as its writer meant it, else rounded to 1/2^32. No number
 * is printed with a point, because the locale may have another one. */
static void print_offset(FILE *stream, double offset)
{
    int64_t unit = 1;
    while (unit < 1000000000 && (double)llround(offset * (double)unit) / (double)unit != offset)
        unit *= 10;
    if ((double)llround(offset * (double)unit) / (double)unit != offset)
        unit = (int64_t)1 << 32;
    fprintf(stream, "offset %lld/%lld\n", llround(offset * (double)unit), (long long)unit);
}

/* The parser makes a filter of TAPS, written as text: it cancels factors, checks sums and factors the filter. */
static struct gpuconv_filter *make_filter_from_taps(const struct gpuconv_taps *taps, struct error *error)
{
    struct text_buffer text;
    if (!check_taps(taps, error))
        return NULL;
    FILE *stream = text_open(&text);
    if (stream == NULL) {
        error_no_memory(error, "a filter");
        return NULL;
    }
    if (taps->scale > 0)
        fprintf(stream, "scale %d\n", taps->scale);
    fputs(taps->absolute ? "abs\n" : "", stream);
    print_offset(stream, taps->offset);
    if (taps->has_anchor)
        fprintf(stream, "anchor %d %d\n", taps->anchor_x, taps->anchor_y);
    for (int i = 0; i < taps->width * taps->height; i++)
        fprintf(stream, "%d%c", taps->taps[i], i % taps->width == taps->width - 1 ? '\n' : ' ');
    struct gpuconv_filter *filter = NULL;
    if (text_close(stream, &text))
        filter = parse_filter(text.bytes, text.size, "taps", error);
    else
        error_no_memory(error, "a filter");
    free(text.bytes);
    return filter;
}

struct gpuconv_filter *gpuconv_filter_make(const struct gpuconv_taps *taps, struct gpuconv_error *error)
{
    struct error reason;
    struct gpuconv_filter *filter = make_filter_from_taps(taps, &reason);
    return LIBRARY_RESULT(filter, &reason, error);
}

struct gpuconv_filter *gpuconv_filter_flip(const struct gpuconv_filter *filter, struct gpuconv_error *error)
{
    struct error reason;
    const struct filter_chain *chain = filter_chain_of(filter);
    struct filter *filters = chain_copy_filters(chain, &reason);
    for (size_t i = 0; filters != NULL && i < chain->count; i++)
        filter_flip(&filters[i]);
    struct gpuconv_filter *flipped = filters != NULL ? make_object(filters, chain->count, &reason) : NULL;
    return LIBRARY_RESULT(flipped, &reason, error);
}

/* ---- Descriptions ---- */

void gpuconv_filter_describe(const struct gpuconv_filter *filter, struct gpuconv_filter_info *info)
{
    const struct filter_chain *chain = filter_chain_of(filter);
    *info = (struct gpuconv_filter_info){.count = (int)chain->count, .exact = 1};
    for (size_t i = 0; i < chain->count; i++) {
        const struct filter *f = &chain->filters[i];
        int left = 0, right = 0, above = 0, below = 0;
        info->exact &= filter_kind(f)->has_taps;
        for (; f != NULL && filter_kind(f)->has_border; f = f->filter16) { /* that for more bits may reach farther */
            left = f->anchor_x > left ? f->anchor_x : left;
            above = f->anchor_y > above ? f->anchor_y : above;
            right = f->width - 1 - f->anchor_x > right ? f->width - 1 - f->anchor_x : right;
            below = f->height - 1 - f->anchor_y > below ? f->height - 1 - f->anchor_y : below;
            if (!filter_kind(f)->has_taps)
                continue;
            info->exact &= f->exact;
            info->largest_error = f->largest_error > info->largest_error ? f->largest_error : info->largest_error;
        }
        info->left += left;
        info->right += right;
        info->above += above;
        info->below += below;
    }
}

bool filter_size(const struct gpuconv_filter *filter, int *width, int *height, struct error *error)
{
    if (*width < 1 || *height < 1 || *width > RESAMPLE_SIDE_MAX || *height > RESAMPLE_SIDE_MAX)
        return error_set(error, ERROR_USAGE, "there is no image of %d x %d pixels; give 1 to %d on a side", *width,
                         *height, RESAMPLE_SIDE_MAX);
    return chain_resize(filter_chain_of(filter), width, height, error);
}

enum gpuconv_status gpuconv_filter_size(const struct gpuconv_filter *filter, int *width, int *height,
                                        struct gpuconv_error *error)
{
    struct error reason;
    return library_status(filter_size(filter, width, height, &reason), &reason, error);
}

char *gpuconv_filter_text(const struct gpuconv_filter *filter, int index, int as_json, struct gpuconv_error *error)
{
    struct error reason;
    struct text_buffer text = {0};
    const struct filter_chain *chain = filter_chain_of(filter);
    const bool is_there = index >= 0 && (size_t)index < chain->count;
    const locale_t locale = newlocale(LC_ALL_MASK, "C", NULL),
                   before = uselocale(locale); /* numbers have decimal points */
    FILE *stream = is_there ? text_open(&text) : NULL;
    if (stream != NULL) {
        (as_json ? filter_print_json : filter_describe)(stream, &chain->filters[index]);
        text_close(stream, &text);
    }
    uselocale(before);
    freelocale(locale);
    if (!is_there)
        error_set(&reason, ERROR_USAGE, "there is no filter %d: there are %zu, counted from 0", index, chain->count);
    else if (text.bytes == NULL)
        error_no_memory(&reason, "the text of a filter");
    return LIBRARY_RESULT(text.bytes, &reason, error);
}

const char *gpuconv_filter_name(int index)
{
    return index >= 0 && (size_t)index < builtin_filter_count ? builtin_filters[index].name : NULL;
}

/* ---- Pillow ---- */

/* Check both views, and set IMAGES to them. */
static bool check_pillow_views(const struct gpuconv_view *in, const struct gpuconv_view *out, struct images images[2],
                               struct error *error)
{
    if (!view_check(in, "input", &images[0], error) || !view_check(out, "output", &images[1], error) ||
        !view_check_apart(out, "output", error))
        return false;
    const bool is_mode = in->type == GPUCONV_UINT8 || (in->type <= GPUCONV_FLOAT && in->channels == 1);
    return (is_mode && in->type == out->type && in->channels == out->channels && images[0].count == 1 &&
            images[1].count == 1 && in->memory == GPUCONV_HOST && out->memory == GPUCONV_HOST) ||
           error_set(error, ERROR_USAGE,
                     "the input is %zu x %d channels of %s, and the output %zu x %d of %s; give one image each, on the "
                     "host, with 1 to 4 channels of uint8, or 1 of uint16 or float32",
                     images[0].count, in->channels, view_type_name(in->type), images[1].count, out->channels,
                     view_type_name(out->type));
}

static bool pillow_resize(const char *word, const struct gpuconv_view *in, const struct gpuconv_view *out,
                          const double *part, double reducing_gap, struct error *error)
{
    const enum resample_kernel kernel = word != NULL ? resample_find(word, word + strlen(word)) : RESAMPLE_NONE;
    struct images images[2] = {0};
    struct image copy = {0}, *from = &images[0].first, *to = &images[1].first;
    double box[4];
    if (!check_pillow_views(in, out, images, error))
        return false;
    if (!resample_is_pillow(kernel))
        return error_set(error, ERROR_USAGE, "there is no kernel of Pillow; give a name such as \"pillow-bicubic\"");
    memcpy(box, part != NULL ? part : (const double[4]){0, 0, from->width, from->height}, sizeof box);
    for (int i = 0; i < 2; i++)
        if (!(box[i] >= 0 && (float)box[i] < (float)box[i + 2] &&
              (float)box[i + 2] <= (float)(i == 0 ? from->width : from->height)))
            return error_set(
                error, ERROR_USAGE,
                "the box is from (%g, %g) to (%g, %g), and the image has %d x %d pixels; give a part of it", box[0],
                box[1], box[2], box[3], from->width, from->height);
    if (!(reducing_gap == 0 || reducing_gap >= 1))
        return error_set(error, ERROR_USAGE, "the reducing gap is %g; give 1 or more, or 0 for none", reducing_gap);
    const bool overlaps =
        from->samples < to->samples + images[1].bytes && to->samples < from->samples + images[0].bytes;
    const bool done = (!overlaps || library_copy_image(from, from, &copy, error)) &&
                      cpu_pillow_resize(kernel, box, reducing_gap, from, to, error);
    image_free(&copy);
    return done;
}

enum gpuconv_status gpuconv_pillow_resize(const char *kernel, const struct gpuconv_view *in,
                                          const struct gpuconv_view *out, const double box[4], double reducing_gap,
                                          struct gpuconv_error *error)
{
    struct error reason;
    return library_status(pillow_resize(kernel, in, out, box, reducing_gap, &reason), &reason, error);
}
