/* SPDX-License-Identifier: MIT */
#include "pipeline/recipe.h"

#include "base/parallel.h"

bool request_resize(const struct request *request, struct image *shape, struct error *error)
{
    bool done = true;
    for (size_t i = 0; done && i < request->count; i++)
        done = filter_resize(&request->filters[i], &shape->width, &shape->height, error);
    return done;
}

bool request_resizes(const struct request *request)
{
    bool resizes = false;
    for (size_t i = 0; i < request->count; i++)
        resizes |= filter_resizes(&request->filters[i]);
    return resizes;
}

enum alpha request_alpha(const struct request *request, enum alpha alpha, size_t number)
{
    const struct filter *filter = filter_of_depth(&request->filters[number], true); /* premultiplied alpha is deep */
    if (filter_resizes(filter) && alpha != ALPHA_PREMULTIPLY)
        return ALPHA_FILTER;
    if (alpha != ALPHA_PREMULTIPLY)
        return alpha;
    const bool alone = filter->width == 1 && filter->height == 1;
    if (filter_is_shift(filter) && (alone || request->border != BORDER_ZERO)) /* moves pixels, also hidden colours */
        return ALPHA_FILTER;
    if (filter_grids(filter) > 1 || filter->tap_sum != filter->scale || filter->offset_numerator != 0 ||
        filter->absolute || (request->border == BORDER_ZERO && !filter_resizes(filter)))
        return ALPHA_BLACK;
    return filter->absolute_sum == filter->tap_sum ? ALPHA_PREMULTIPLY : ALPHA_HEADROOM;
}

struct work request_work(const struct request *request, enum alpha alpha, const struct image *shape)
{
    bool is_fine = shape->bits > 8 || request->linear; /* 8 bits would be too coarse for low alpha */
    struct work work = {.width = shape->width, .height = shape->height, .threads = thread_pool_threads(request->pool)};
    for (size_t i = 0; i < request->count; i++) {
        const enum alpha own = request_alpha(request, alpha, i);
        const int planes = image_planes(shape, own);
        work.planes = planes > work.planes ? planes : work.planes;
        is_fine = is_fine || (image_has_alpha(shape) && (own == ALPHA_PREMULTIPLY || own == ALPHA_HEADROOM));
    }
    work.sample = shape->bits == 32 ? SAMPLE_F32 : is_fine ? SAMPLE_U16 : SAMPLE_U8;
    return work;
}

bool request_merges_between(const struct request *request, enum alpha alpha, const struct image *shape)
{
    const bool keeps_alpha = alpha == ALPHA_KEEP && request_resizes(request); /* of another size than the image's */
    return request->count > 1 &&
           (request->linear || ((alpha == ALPHA_PREMULTIPLY || keeps_alpha) && image_has_alpha(shape)));
}
