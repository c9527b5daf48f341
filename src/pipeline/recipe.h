/* SPDX-License-Identifier: MIT
 *
 * A recipe: what to do to images, and what follows from that for an image of one shape. It is plain data. With what it
 * is done is in pipeline/resources.h. */
#ifndef GPUCONV_RECIPE_H
#define GPUCONV_RECIPE_H

#include "base/error.h"
#include "filter/chain.h"
#include "image/image.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <stdbool.h>
#include <stddef.h>

/* Who decides on the backend. */
enum choice { CHOICE_AUTO, CHOICE_CUDA, CHOICE_CPU };

struct recipe {
    struct filter_chain *chain; /* without filters where images are only read */
    enum border border;
    enum alpha alpha;
    bool linear;                   /* filter in linear light, by the tables of the pipeline */
    enum choice choice;            /* where a variant is named, its backend or CHOICE_AUTO */
    const struct variant *variant; /* NULL for the fastest canonical one for each filter, as far as the model knows */
};

/* Do A and B do the same, by the same chain? Who compares a recipe later must keep a reference to its chain. */
bool recipe_equal(const struct recipe *a, const struct recipe *b);

/* Set the size of SHAPE, which filter NUMBER gets, to the size of its result: see work_resize. ERROR may be NULL. */
bool recipe_resize_by(const struct recipe *recipe, const struct work *work, size_t number, struct image *shape,
                      struct error *error);

/* Likewise, to the size of the result of all filters. */
bool recipe_resize(const struct recipe *recipe, const struct work *work, struct image *shape, struct error *error);

/* How alpha takes part in an image that is opaque, or may be translucent: as the recipe says, or ALPHA_KEEP where that
 * gives the same bytes, or ALPHA_FILTER if pixels only move or change by themselves. It is one answer for the chain:
 * if a filter may change opaque alpha, earlier filters premultiply, too, and may round otherwise than a run of their
 * own. */
enum alpha recipe_expected_alpha(const struct recipe *recipe, bool is_opaque);

/* How the alpha channel takes part in filter NUMBER of an image where it takes part as ALPHA. With ALPHA_PREMULTIPLY it
 * depends on the filter. If its taps sum to 1, it is applied to alpha as well, and the colours are divided by the new
 * alpha. If some of these taps are negative, sums need headroom. Any other filter, such as for edges, is applied to the
 * picture on a black background. The border zero does this with every filter: alpha is 0 there, and the edge of the
 * picture would become transparent. A filter that changes the size is applied to alpha, too, and knows no border. One
 * that moves samples takes all channels as they are. So does a resize by the rule of Pillow that keeps the size of the
 * image, which follows from WORK. */
enum alpha recipe_alpha(const struct recipe *recipe, const struct work *work, enum alpha alpha, size_t number);

/* The tables of linear light for filter NUMBER of the recipe: LINEAR, or NULL for levels. */
static inline const struct linear *recipe_light(const struct recipe *recipe, size_t number, const struct linear *linear)
{
    return filter_kind(&recipe->chain->filters[number])->takes_levels ? NULL : linear;
}

/* The work of the recipe on an image of SHAPE, by THREADS of the CPU: the sample type and the most planes that a filter
 * needs. */
struct work recipe_work(const struct recipe *recipe, enum alpha alpha, const struct image *shape, int threads);

/* Is a filter limited to a region? */
bool recipe_is_limited(const struct recipe *recipe);

/* Must planes become an image and planes again between two filters? With premultiplied colours or in linear light, the
 * merge rounds, and so do separate runs. A filter with a region needs the image before it. */
bool recipe_merges_between(const struct recipe *recipe, enum alpha alpha, const struct image *shape);

#endif
