/* SPDX-License-Identifier: MIT
 *
 * The choice of the backend, the plans, and what is kept between images: see pipeline.h. stream.c and cuda.c do the
 * work. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"

#include <stdlib.h>

bool request_merges_between(const struct request *request, const struct image *image)
{
    return request->linear != NULL || (request->alpha == ALPHA_PREMULTIPLY && image_has_alpha(image));
}

enum alpha pipeline_alpha(const struct request *request, size_t number)
{
    const struct filter *filter = filter_of_depth(&request->filters[number], true); /* premultiplied alpha is deep */
    if (request->alpha != ALPHA_PREMULTIPLY)
        return request->alpha;
    const bool alone = filter->width == 1 && filter->height == 1;
    if (filter_is_shift(filter) && (alone || request->border != BORDER_ZERO)) /* moves pixels, also hidden colours */
        return ALPHA_FILTER;
    if (filter_grids(filter) > 1 || filter->tap_sum != filter->scale || filter->offset_numerator != 0 ||
        filter->absolute || request->border == BORDER_ZERO)
        return ALPHA_BLACK;
    return filter->absolute_sum == filter->tap_sum ? ALPHA_PREMULTIPLY : ALPHA_HEADROOM;
}

enum sample pipeline_sample(const struct request *request, const struct image *shape)
{
    bool fine = shape->bits > 8 || request->linear != NULL; /* 8 bits would be too coarse for low alpha */
    for (size_t i = 0; !fine && image_has_alpha(shape) && i < request->count; i++)
        fine = pipeline_alpha(request, i) == ALPHA_PREMULTIPLY || pipeline_alpha(request, i) == ALPHA_HEADROOM;
    return fine ? SAMPLE_U16 : SAMPLE_U8;
}

int pipeline_planes(const struct request *request, const struct image *shape)
{
    int most = 0;
    for (size_t i = 0; i < request->count; i++) {
        const int planes = image_planes(shape, pipeline_alpha(request, i));
        most = planes > most ? planes : most;
    }
    return most;
}

/* ---- Plans ---- */

bool pipeline_make_plans(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    /* A CPU that took over from a GPU makes its own choice. */
    const bool named = request->variant != NULL && request->variant->backend == pipeline->backend;
    for (size_t i = 0; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const struct variant *variant =
            named ? request->variant : variant_choose(filter, pipeline->backend, &pipeline->work);
        struct plan *plan = &pipeline->plans[i];
        if (plan->variant == variant && plan->sample == pipeline->work.sample)
            continue;
        plan_free(plan);
        pipeline->has_taps = false;
        if (!variant_plan(plan, filter, request->border, pipeline->work.sample, variant, error))
            return false;
        plan->pool = request->pool;
        /* On a GPU, the upload of the taps waits for the lock of constant memory: see run_filters in cuda.c. */
        if (variant->backend == BACKEND_CPU && !variant_prepare(plan, NULL, error)) {
            plan_free(plan);
            return false;
        }
    }
    return true;
}

/* Check that the named variant, if there is one, accepts the filters and the sample type. */
static bool check_named_variant(const struct request *request, enum sample sample, struct error *error)
{
    struct plan plan;
    for (size_t i = 0; request->variant != NULL && i < request->count; i++)
        if (!variant_plan(&plan, &request->filters[i], request->border, sample, request->variant, error))
            return false;
    return true;
}

bool pipeline_check(const struct request *request, struct error *error)
{
    return check_named_variant(request, pipeline_sample(request, &(struct image){.channels = 3, .bits = 8}), error);
}

bool pipeline_check_gpu(const struct request *request, struct error *error)
{
    if (request->choice != CHOICE_CUDA)
        return true;
    struct error reason;
    if (gpu_check(request, &reason))
        return true;
    return error_set(error, reason.code, "there is no GPU to work on: %s; --backend cpu works everywhere",
                     reason.message);
}

/* ---- Constant memory ---- */

/* Pipelines read it nearly all the time, so one that must write goes first. */
void constant_memory_open(struct constant_memory *memory)
{
    pthread_rwlockattr_t attributes;
    *memory = (struct constant_memory){0};
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&memory->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

void constant_memory_close(struct constant_memory *memory)
{
    pthread_rwlock_destroy(&memory->lock);
}

/* ---- The choice of the backend ---- */

/* Note what the choices depend on. */
static void note_work(struct pipeline *pipeline, const struct image *image)
{
    const struct request *request = pipeline->request;
    pipeline->work = (struct work){
        .width = image->width,
        .height = image->height,
        .planes = pipeline_planes(request, image),
        .sample = pipeline_sample(request, image),
        .threads = thread_pool_threads(request->pool),
    };
}

bool pipeline_expects_gpu(struct pipeline *pipeline, const struct image *image, struct stages *stages)
{
    const struct request *request = pipeline->request;
    if (pipeline->fallback.code != ERROR_NONE || request->choice == CHOICE_CPU)
        return false;
    if (request->choice == CHOICE_CUDA) {
        gpu_start_begin(request->start);
        return true;
    }
    note_work(pipeline, image);
    if (cost_cpu_seconds(request->filters, request->count, &pipeline->work) <=
        cost_cuda_seconds(request->filters, request->count, &pipeline->work))
        return false;
    gpu_start_begin(request->start);
    const bool there = gpu_check(request, NULL);
    stages_end(stages, there || pipeline_may_have_gpu() ? STAGE_DRIVER : STAGE_PLAN);
    return there;
}

/* Choose the backend by the expected times. Where the CPU is expected to be faster, CUDA is not started at all. */
static bool choose_backend(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    const double cpu = 1e3 * cost_cpu_seconds(request->filters, request->count, &pipeline->work);
    const double cuda = 1e3 * cost_cuda_seconds(request->filters, request->count, &pipeline->work);
    if (cpu > cuda && gpu_open(pipeline, &pipeline->why)) {
        error_set(&pipeline->why, ERROR_NONE, "a GPU is expected to take %.1f ms with its start-up, the CPU %.1f ms",
                  cuda, cpu);
        return true;
    }
    if (!pipeline_may_have_gpu())
        error_set(&pipeline->why, ERROR_NONE, "the CPU is expected to take %.1f ms", cpu);
    else if (cpu <= cuda) /* else gpu_open has said why */
        error_set(&pipeline->why, ERROR_NONE, "the CPU is expected to take %.1f ms, a GPU %.1f ms with its start-up",
                  cpu, cuda);
    gpu_close(pipeline);
    pipeline->backend = BACKEND_CPU;
    return pipeline_make_plans(pipeline, error);
}

/* Can a GPU take an image as large as this? Kernels count its samples in int. */
static bool check_gpu_size(const struct image *image, struct error *error)
{
    const size_t most = (size_t)1 << 30;
    return image_samples(image) <= most ||
           error_set(error, ERROR_WORK,
                     "%d x %d pixels of %d channels are too many for a GPU: it takes at most %zu samples; give "
                     "--backend cpu",
                     image->width, image->height, image->channels, most);
}

/* Let the CPU take over from the GPU, which failed for the reason in ERROR. */
static bool fall_back_to_cpu(struct pipeline *pipeline, struct error *error)
{
    pipeline->fallback = *error;
    gpu_close(pipeline);
    pipeline->backend = BACKEND_CPU;
    stages_end(pipeline->stages, STAGE_CONTEXT);
    return pipeline_make_plans(pipeline, error);
}

/* ---- A pipeline ---- */

bool pipeline_open(struct pipeline *pipeline, const struct request *request, struct error *error)
{
    *pipeline = (struct pipeline){.request = request, .backend = BACKEND_CPU};
    pipeline->plans = calloc(request->count, sizeof *pipeline->plans);
    if (pipeline->plans == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the plans of %zu filters; use fewer",
                         request->count);
    return true;
}

bool pipeline_plan(struct pipeline *pipeline, const struct image *image, struct stages *stages, struct error *error)
{
    const struct request *request = pipeline->request;
    pipeline->stages = stages;
    atomic_store(&pipeline->passed, -1);
    note_work(pipeline, image);
    error_set(&pipeline->why, ERROR_NONE, "asked for");
    if (!check_named_variant(request, pipeline->work.sample, error)) { /* not even the CPU may take over */
        if (image->bits == 8 && request->linear == NULL && check_named_variant(request, SAMPLE_U8, NULL))
            error_set(
                error, ERROR_USAGE,
                "the variant %s takes 8 bits only, which are too few for a translucent picture; give --alpha keep, "
                "or leave --variant out",
                request->variant->name);
        return false;
    }
    bool done = false;
    if (request->choice != CHOICE_CPU && !check_gpu_size(image, &pipeline->why)) { /* the next image may be smaller */
        *error = pipeline->why;
        pipeline->backend = BACKEND_CPU;
        done = (request->choice == CHOICE_AUTO || request->cpu_fallback) && pipeline_make_plans(pipeline, error);
    } else if (pipeline->fallback.code != ERROR_NONE || request->choice == CHOICE_CPU) {
        pipeline->backend = BACKEND_CPU;
        done = pipeline_make_plans(pipeline, error);
    } else if (request->choice == CHOICE_AUTO) {
        done = choose_backend(pipeline, error);
    } else {
        done = gpu_open(pipeline, error) || (request->cpu_fallback && fall_back_to_cpu(pipeline, error));
    }
    stages_end(stages, STAGE_PLAN);
    return done;
}

bool pipeline_run(struct pipeline *pipeline, struct image *image, struct jpeg_ends *ends, struct image *result,
                  struct error *error)
{
    const struct request *request = pipeline->request;
    bool intact = true;
    *result = *image;
    if (ends != NULL)
        ends->is_handed_over = false;
    if (pipeline->backend == BACKEND_CUDA && run_on_gpu(pipeline, image, ends, result, &intact, error))
        return true;
    if (ends != NULL && ends->is_handed_over)
        return false;
    const bool may_fall_back = intact && (request->choice == CHOICE_AUTO || request->cpu_fallback);
    if (pipeline->backend == BACKEND_CUDA && !(may_fall_back && fall_back_to_cpu(pipeline, error)))
        return false;
    if (ends != NULL)
        ends->out = NULL;
    if (ends != NULL && ends->in != NULL) {
        ends->is_handed_over = true;
        return false;
    }
    const bool done = run_on_cpu(pipeline, image, error);
    *result = *image;
    return done;
}

void pipeline_shrink(struct pipeline *pipeline)
{
    gpu_buffers_release(pipeline);
}

void pipeline_leave_gpu(struct pipeline *pipeline)
{
    gpu_leave(pipeline);
    gpu_start_release(pipeline->request->start);
}

void pipeline_close(struct pipeline *pipeline)
{
    gpu_leave(pipeline);
    for (size_t i = 0; pipeline->plans != NULL && i < pipeline->request->count; i++)
        plan_free(&pipeline->plans[i]);
    free(pipeline->plans);
    pipeline->plans = NULL;
}
