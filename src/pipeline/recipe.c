/* SPDX-License-Identifier: MIT */
#include "pipeline/recipe.h"

#include "pipeline/steps.h"

bool recipe_equal(const struct recipe *a, const struct recipe *b)
{
    return a->chain == b->chain && a->border == b->border && a->alpha == b->alpha && a->linear == b->linear &&
           a->choice == b->choice && a->variant == b->variant;
}

bool recipe_resize_by(const struct recipe *recipe, const struct work *work, size_t number, struct image *shape,
                      struct error *error)
{
    return work_resize(work, &recipe->chain->filters[number], number, &shape->width, &shape->height, error);
}

bool recipe_resize(const struct recipe *recipe, const struct work *work, struct image *shape, struct error *error)
{
    bool done = true;
    for (size_t i = 0; done && i < recipe->chain->count; i++)
        done = recipe_resize_by(recipe, work, i, shape, error);
    return done;
}

/* May an opaque picture have other alpha after FILTER? */
static bool clears(const struct filter *filter)
{
    return filter_kind(filter)->clears != NULL && filter_kind(filter)->clears(filter);
}

enum alpha recipe_expected_alpha(const struct recipe *recipe, bool is_opaque)
{
    bool computes = false;
    for (size_t i = 0; i < recipe->chain->count; i++) {
        const struct filter *filter = &recipe->chain->filters[i];
        computes |= !filter_kind(filter)->moves && !step_fuses(filter);
        is_opaque &= !clears(filter);
    }
    return !computes ? ALPHA_FILTER : is_opaque && recipe->alpha == ALPHA_PREMULTIPLY ? ALPHA_KEEP : recipe->alpha;
}

/* Does filter NUMBER keep the size of the image that it gets? No, if that is not known yet. */
static bool keeps_size(const struct recipe *recipe, const struct work *work, size_t number)
{
    struct image shape = {.width = work->width, .height = work->height}, result;
    if (work->width == 0)
        return false;
    for (size_t i = 0; i < number; i++)
        recipe_resize_by(recipe, work, i, &shape, NULL);
    result = shape;
    recipe_resize_by(recipe, work, number, &result, NULL);
    return result.width == shape.width && result.height == shape.height;
}

enum alpha recipe_alpha(const struct recipe *recipe, const struct work *work, enum alpha alpha, size_t number)
{
    const struct filter *filter = filter_of_depth(&recipe->chain->filters[number], true); /* it takes 16 bits */
    const enum alpha found = step_table[filter->kind].alpha(filter, recipe->border, alpha);
    return found == ALPHA_PILLOW && keeps_size(recipe, work, number) ? ALPHA_FILTER : found;
}

struct work recipe_work(const struct recipe *recipe, enum alpha alpha, const struct image *shape, int threads)
{
    bool is_fine = shape->bits > 8 || recipe->linear; /* 8 bits would be too coarse for low alpha */
    struct work work = {.width = shape->width, .height = shape->height, .threads = threads};
    for (size_t i = 0; i < recipe->chain->count; i++) {
        const enum alpha used_alpha = recipe_alpha(recipe, &work, alpha, i);
        const int planes = image_planes(shape, used_alpha);
        work.planes = planes > work.planes ? planes : work.planes;
        is_fine =
            is_fine || (image_has_alpha(shape) && (used_alpha == ALPHA_PREMULTIPLY || used_alpha == ALPHA_HEADROOM));
    }
    work.sample = shape->bits == 32 ? SAMPLE_F32 : is_fine ? SAMPLE_U16 : SAMPLE_U8;
    return work;
}

bool recipe_is_limited(const struct recipe *recipe)
{
    bool is_limited = false;
    for (size_t i = 0; i < recipe->chain->count; i++)
        is_limited |= recipe->chain->filters[i].region.is_set;
    return is_limited;
}

bool recipe_merges_between(const struct recipe *recipe, enum alpha alpha, const struct image *shape)
{
    bool keeps_alpha = false; /* alpha of another size or of other levels than the image's */
    for (size_t i = 0; i < recipe->chain->count; i++)
        keeps_alpha |= alpha == ALPHA_KEEP &&
                       (filter_kind(&recipe->chain->filters[i])->resizes || clears(&recipe->chain->filters[i]));
    return recipe->chain->count > 1 && (recipe->linear || recipe_is_limited(recipe) ||
                                        ((alpha == ALPHA_PREMULTIPLY || keeps_alpha) && image_has_alpha(shape)));
}
