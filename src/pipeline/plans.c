/* SPDX-License-Identifier: MIT
 *
 * The plans that a pipeline keeps: for each recipe, backend and kind of samples those of the last image. */
#include "pipeline/pipeline_internal.h"

#include <stdlib.h>

/* The taps of PLANNED on the device, if it has them, are of no use any more. */
static void forget_upload(struct pipeline *pipeline, const struct planned *planned)
{
    if (pipeline->uploaded == planned)
        pipeline->uploaded = NULL;
}

static void free_taps(struct pipeline *pipeline, struct planned *planned)
{
    for (size_t i = 0; i < planned->recipe.chain->count; i++)
        gpu_forget_taps(pipeline, planned, i);
    free(planned->taps);
    planned->taps = NULL;
    forget_upload(pipeline, planned);
}

/* Does nothing if there are no plans. */
static void free_planned(struct pipeline *pipeline, struct planned *planned)
{
    if (planned->last_use == 0)
        return;
    free_taps(pipeline, planned);
    for (size_t i = 0; i < planned->recipe.chain->count; i++)
        plan_free(&planned->plans[i]);
    free(planned->plans);
    chain_release(planned->recipe.chain);
    *planned = (struct planned){.last_use = 0};
}

/* The plans for run->recipe and run->work on the backend. They are empty if there are none yet. NULL if there
 * is too little memory. */
static struct planned *find_planned(struct pipeline_run *run, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    struct planned *oldest = &run->pipeline->kept[0];
    for (struct planned *kept = run->pipeline->kept; kept < run->pipeline->kept + PLANNED_MAX; kept++) {
        if (kept->last_use > 0 && kept->backend == run->backend && kept->sample == run->work.sample &&
            recipe_equal(&kept->recipe, recipe))
            return kept;
        if (kept->last_use < oldest->last_use)
            oldest = kept;
    }
    free_planned(run->pipeline, oldest);
    struct plan *plans = calloc(recipe->chain->count + 1, sizeof *plans);
    if (plans == NULL) {
        error_no_memory(error, "the plans of %zu filters", recipe->chain->count);
        return NULL;
    }
    *oldest = (struct planned){.recipe = *recipe, .backend = run->backend, .sample = run->work.sample, .plans = plans};
    chain_keep(recipe->chain);
    return oldest;
}

/* Let plan NUMBER be for an image like SHAPE, by VARIANT, and make one like RESULT. If it is, it stays: all else comes
 * from the recipe. */
static bool make_plan(struct pipeline_run *run, size_t number, const struct variant *variant, const struct image *shape,
                      const struct image *result, struct error *error)
{
    struct planned *planned = run->planned;
    const struct filter *filter = &run->recipe->chain->filters[number];
    struct plan *plan = &planned->plans[number];
    const bool is_new = plan->variant != variant;
    const bool is_resized =
        filter_kind(filter)->resizes && (plan->columns.from != shape->height || plan->rows.from != shape->width ||
                                         plan->columns.to != result->height || plan->rows.to != result->width);
    if (!is_new && !is_resized)
        return true;
    forget_upload(run->pipeline, planned);
    gpu_forget_taps(run->pipeline, planned, number);
    if (is_new) {
        plan_free(plan);
        if (!variant_plan(plan, filter, run->recipe->border, planned->sample, variant, error))
            return false;
        plan->pool = run->pipeline->resources->pool;
    }
    if (is_resized && variant->backend == BACKEND_CPU)
        plan->needed = chain_needs(run->recipe->chain, number, result->width, result->height);
    /* On a GPU, the upload of the taps waits for the lock of constant memory: see run_filters in cuda.c. */
    return plan_resize_to(plan, shape->width, shape->height, result->width, result->height, error) &&
           (variant->backend != BACKEND_CPU || variant_prepare(plan, NULL, error));
}

bool plans_make(struct pipeline_run *run, enum backend backend, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    /* A CPU that took over from a GPU makes its own choice. */
    const bool named = recipe->variant != NULL && recipe->variant->backend == backend;
    struct image shape = {.width = run->work.width, .height = run->work.height};
    run->backend = backend;
    struct planned *planned = run->planned = find_planned(run, error);
    if (planned == NULL)
        return false;
    planned->last_use = ++run->pipeline->uses;
    for (size_t i = 0; i < recipe->chain->count; i++) {
        const struct filter *filter = &recipe->chain->filters[i];
        const struct variant *variant = named ? recipe->variant : variant_choose(filter, backend, &run->work);
        if (variant == NULL)
            return error_set(error, ERROR_USAGE, "no variant for %s filters %s samples by %s; use the other backend",
                             backend == BACKEND_CUDA ? "a GPU" : "the CPU", sample_name(planned->sample), filter->name);
        struct image result = shape;
        if (!recipe_resize_by(recipe, &run->work, i, &result, error) ||
            !make_plan(run, i, variant, &shape, &result, error)) {
            plan_free(&planned->plans[i]);
            return false;
        }
        shape = result;
    }
    return true;
}

void plans_free_taps(struct pipeline *pipeline)
{
    for (struct planned *kept = pipeline->kept; kept < pipeline->kept + PLANNED_MAX; kept++)
        if (kept->last_use > 0)
            free_taps(pipeline, kept);
}

void plans_free(struct pipeline *pipeline)
{
    for (struct planned *kept = pipeline->kept; kept < pipeline->kept + PLANNED_MAX; kept++)
        free_planned(pipeline, kept);
}
