/* SPDX-License-Identifier: MIT
 *
 * The part of a picture that a filter is limited to. */
#include "filter/filter_internal.h"

#include <stdlib.h>
#include <sys/stat.h>

struct mask *mask_make(int width, int height)
{
    static unsigned serial;
    struct mask *mask = malloc(sizeof *mask + (size_t)width * (size_t)height * sizeof *mask->levels);
    if (mask != NULL)
        *mask = (struct mask){.references = 1,
                              .width = width,
                              .height = height,
                              .serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED)};
    return mask;
}

struct colours *colours_make(void)
{
    struct colours *colours = calloc(1, sizeof *colours);
    if (colours != NULL)
        colours->references = 1;
    return colours;
}

void colours_release(struct colours *colours)
{
    if (colours != NULL && __atomic_sub_fetch(&colours->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(colours);
}

void filters_free(struct filter *filters, size_t count)
{
    for (size_t i = 0; filters != NULL && i < count; i++) {
        struct mask *mask = filters[i].region.mask;
        if (mask != NULL && __atomic_sub_fetch(&mask->references, 1, __ATOMIC_ACQ_REL) == 0)
            free(mask);
        if (filters[i].kind == STEP_POINT)
            colours_release(filters[i].point.colours);
    }
    free(filters);
}

/* Read a whole number of pixels, or a percentage, which fills the bytes from AT to END. */
static bool read_share(const char *at, const char *end, struct share *share)
{
    struct number number;
    const bool is_percentage = end > at && end[-1] == '%';
    if (end == at || !is_digit(*at) || number_read(at, end - is_percentage, &number) != NUMBER_FINE)
        return false;
    if (is_percentage)
        number = number_divide(number, (struct number){.numerator = 100, .denominator = 1, .value = 100});
    *share = (struct share){number.numerator, is_percentage ? number.denominator : 0};
    return is_percentage ? number.value <= 10 && number.denominator > 0 && number.denominator <= INT32_MAX
                         : number_is_integer(number, 0, SIDE_MAX);
}

bool region_read(const char *text, struct region *region)
{
    struct share *const shares[4] = {&region->width, &region->height, &region->x, &region->y};
    static const char *const ends[4] = {"x", "+-", "+-", ""};
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        const bool is_negative = i > 1 && *at == '-';
        at += i > 0; /* the x or the sign */
        const char *end = at + strcspn(at, ends[i][0] != '\0' ? ends[i] : "+");
        if ((i < 3 && *end == '\0') || !read_share(at, end, shares[i]))
            return false;
        shares[i]->numerator *= is_negative ? -1 : 1;
        at = end;
    }
    region->is_set = *at == '\0';
    return region->is_set;
}

/* A share of SIDE pixels, rounded to nearest. */
static int64_t find_share(struct share share, int side)
{
    if (share.denominator == 0)
        return share.numerator;
    const int64_t twice = 2 * share.numerator * side + share.denominator, divisor = 2 * share.denominator;
    return twice / divisor - (twice % divisor < 0);
}

/* The part of SIDE pixels under COUNT of them from FIRST on. */
static void cut(int64_t first, int64_t count, int side, int *from, int *kept)
{
    const int64_t last = first + count < side ? first + count : side;
    *from = (int)(first < 0 ? 0 : first < side ? first : side);
    *kept = last > *from ? (int)(last - *from) : 0;
}

bool filter_region(const struct filter *filter, int width, int height, struct rectangle *part)
{
    const struct region *region = &filter->region;
    *part = (struct rectangle){0, 0, width, height};
    if (!region->is_set || region->mask_file.path[0] != '\0')
        return true;
    const int64_t wide = find_share(region->width, width), high = find_share(region->height, height);
    cut(find_share(region->x, width), wide, width, &part->x, &part->width);
    cut(find_share(region->y, height), high, height, &part->y, &part->height);
    return part->width == wide && part->height == high;
}

bool region_check(const struct filter *filter, int width, int height, struct error *error)
{
    const struct mask *mask = filter->region.mask;
    struct rectangle part;
    filter_region(filter, width, height, &part);
    if (mask != NULL && (mask->width != width || mask->height != height))
        return error_set(error, ERROR_WORK,
                         "the mask %s has %d x %d pixels, and the picture has %d x %d there; give a mask of that size",
                         filter->region.mask_file.path, mask->width, mask->height, width, height);
    return (part.width > 0 && part.height > 0) ||
           error_set(error, ERROR_WORK,
                     "the region of %s is empty, or outside the picture of %d x %d pixels; give a part of the picture",
                     filter->name, width, height);
}
