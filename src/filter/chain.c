/* SPDX-License-Identifier: MIT */
#include "filter/chain.h"

#include <stdlib.h>
#include <string.h>

struct filter_chain *chain_make(struct filter *filters, size_t count, struct error *error)
{
    struct filter_chain *chain = malloc(sizeof *chain);
    if (chain == NULL) {
        error_no_memory(error, "%zu filters", count);
        filters_free(filters, count);
        return NULL;
    }
    *chain = (struct filter_chain){.references = 1, .count = count, .filters = filters};
    return chain;
}

struct filter_chain *chain_keep(struct filter_chain *chain)
{
    if (chain != NULL)
        atomic_fetch_add(&chain->references, 1);
    return chain;
}

void chain_release(struct filter_chain *chain)
{
    if (chain != NULL && atomic_fetch_sub(&chain->references, 1) == 1) {
        filters_free((struct filter *)chain->filters, chain->count);
        free(chain);
    }
}

struct filter *chain_copy_filters(const struct filter_chain *chain, struct error *error)
{
    struct filter *filters = malloc(2 * chain->count * sizeof *filters);
    if (filters == NULL)
        error_no_memory(error, "%zu filters", chain->count);
    for (size_t i = 0; filters != NULL && i < chain->count; i++) {
        filters[i] = chain->filters[i];
        if (filters[i].region.mask != NULL)
            __atomic_add_fetch(&filters[i].region.mask->references, 1, __ATOMIC_RELAXED);
        if (filters[i].kind == STEP_POINT && filters[i].point.colours != NULL)
            __atomic_add_fetch(&filters[i].point.colours->references, 1, __ATOMIC_RELAXED);
        if (filters[i].filter16 == NULL)
            continue;
        filters[chain->count + i] = *filters[i].filter16;
        filters[i].filter16 = &filters[chain->count + i];
    }
    return filters;
}

bool filter_needs_colours(const struct filter *filter)
{
    return filter->kind == STEP_POINT && filter->point.needs_colours;
}

bool chain_needs_colours(const struct filter_chain *chain)
{
    bool needs = false;
    for (size_t i = 0; i < chain->count; i++)
        needs |= filter_needs_colours(&chain->filters[i]);
    return needs;
}

struct filter_chain *chain_set_colours(const struct filter_chain *chain, struct colours *colours, int32_t weights[3][3],
                                       int32_t scale, struct error *error)
{
    struct filter *filters = chain_copy_filters(chain, error);
    for (size_t i = 0; filters != NULL && i < chain->count; i++) {
        struct point *point = &filters[i].point;
        if (!filter_needs_colours(&filters[i]))
            continue;
        point->needs_colours = false;
        point->colours = colours;
        if (colours != NULL)
            __atomic_add_fetch(&colours->references, 1, __ATOMIC_RELAXED);
        point->rows = point->columns = scale > 0 ? 3 : 0;
        for (int row = 0; row < point->rows; row++) {
            point->row[row] = (struct point_row){.scale = scale, .bias = scale / 2, .bias16 = scale / 2};
            memcpy(point->row[row].weights, weights[row], sizeof weights[row]);
        }
    }
    return filters == NULL ? NULL : chain_make(filters, chain->count, error);
}

/* Let GEOMETRY be of what FILTER makes. */
static bool add_filter(const struct filter *filter, struct geometry *geometry, struct error *error)
{
    const int width = geometry->width, height = geometry->height;
    struct rectangle part;
    geometry->is_cut |= !filter_region(filter, width, height, &part);
    geometry->is_not_enlarged |= filter_resize_stays(filter, width, height);
    if (!filter_resize(filter, &geometry->width, &geometry->height, error))
        return false;
    if (!filter_kind(filter)->moves) {
        geometry->horizontal *= (double)geometry->width / width;
        geometry->vertical *= (double)geometry->height / height;
    } else if (filter->move.orientation >= 5) {
        const double horizontal = geometry->horizontal;
        geometry->horizontal = geometry->vertical;
        geometry->vertical = horizontal;
        geometry->is_turned = !geometry->is_turned;
    }
    geometry->is_moved |= filter_kind(filter)->moves || geometry->width != width || geometry->height != height;
    return true;
}

bool chain_geometry(const struct filter_chain *chain, int width, int height, struct geometry *geometry,
                    struct error *error)
{
    bool done = true;
    *geometry = (struct geometry){.width = width, .height = height, .horizontal = 1, .vertical = 1};
    for (size_t i = 0; done && i < chain->count; i++)
        done = add_filter(&chain->filters[i], geometry, error);
    return done;
}

bool chain_resize(const struct filter_chain *chain, int *width, int *height, struct error *error)
{
    struct geometry geometry;
    const bool done = chain_geometry(chain, *width, *height, &geometry, error);
    *width = geometry.width;
    *height = geometry.height;
    return done;
}

/* Does FILTER put a colour that is no grey beside the picture? */
static bool pads_colour(const struct filter *filter)
{
    const uint8_t *rgb = filter->move.colour;
    return filter_kind(filter)->moves && filter->move.has_colour && (rgb[0] != rgb[1] || rgb[0] != rgb[2]);
}

void chain_channels(const struct filter_chain *chain, int channels, int *working, int *result)
{
    const int alpha = channels % 2 == 0;
    bool is_grey = channels < 3;
    *working = channels;
    for (size_t i = 0; i < chain->count; i++) {
        const struct filter *filter = &chain->filters[i];
        if (is_grey && filter_makes_colours(filter))
            *working = 3 + alpha;
        is_grey = (is_grey || filter_makes_grey(filter)) && !filter_makes_colours(filter) &&
                  !(*working > 2 && pads_colour(filter));
    }
    *result = is_grey ? 1 + alpha : *working;
}

static bool turns(const struct filter *filter)
{
    return filter_kind(filter)->moves && filter->move.orientation != 1;
}

/* The part of SIDE samples that is under COUNT samples from FIRST on, or the nearest sample. */
static void cut_side(int first, int count, int side, int *from, int *kept)
{
    *from = first < 0 ? 0 : first < side ? first : side - 1;
    const int last = first + count < 1 ? 1 : first + count < side ? first + count : side;
    *kept = last - *from;
}

struct rectangle chain_needs(const struct filter_chain *chain, size_t number, int width, int height)
{
    const struct filter *filter = &chain->filters[number];
    struct rectangle needed = {0, 0, width, height};
    size_t cuts = 0; /* filters after this one that only cut or pad the picture */
    if (!filter_kind(filter)->resizes || turns(filter))
        return needed;
    while (number + cuts + 1 < chain->count && filter_kind(&filter[cuts + 1])->moves && !turns(&filter[cuts + 1]) &&
           filter_resize(&filter[cuts + 1], &needed.width, &needed.height, NULL))
        cuts++;
    for (; cuts > 0; cuts--) {
        const struct rectangle later = needed;
        int before_width = width, before_height = height; /* the size of the picture that filter[cuts] gets */
        for (size_t i = 1; i < cuts; i++)
            filter_resize(&filter[i], &before_width, &before_height, NULL);
        const struct origin origin = filter_origin(&filter[cuts], before_width, before_height);
        cut_side(later.x + origin.x, later.width, before_width, &needed.x, &needed.width);
        cut_side(later.y + origin.y, later.height, before_height, &needed.y, &needed.height);
    }
    return needed;
}
