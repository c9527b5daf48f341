/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image. On both backends the planes of an image stand in two buffers that the filters read and
 * write in turn; merge and split stand at the ends, and between two filters where colours are premultiplied. */
#include "pipeline.h"

#include "device.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double clock_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void stages_begin(struct stages *stages)
{
    *stages = (struct stages){0};
    stages->start = stages->last = clock_milliseconds();
}

void stages_end(struct stages *stages, enum stage stage)
{
    const double now = clock_milliseconds();
    stages->milliseconds[stage] += now - stages->last;
    stages->last = now;
}

double stages_total(const struct stages *stages)
{
    return stages->last - stages->start;
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_READ] = "read",         [STAGE_DECODE] = "decode", [STAGE_PLAN] = "plan",
        [STAGE_DEVICE] = "device",     [STAGE_UPLOAD] = "upload", [STAGE_SPLIT] = "split",
        [STAGE_CONVOLVE] = "convolve", [STAGE_MERGE] = "merge",   [STAGE_DOWNLOAD] = "download",
        [STAGE_ENCODE] = "encode",     [STAGE_WRITE] = "write",
    };
    return names[stage];
}

/* Processors that this process may run on: what OpenMP takes when it is told no number. */
static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool make_plans(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    for (size_t i = 0; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const struct variant *variant =
            request->variant != NULL ? request->variant : conv_choose(filter, pipeline->backend, &pipeline->work);
        if (!plan_make(&pipeline->plans[i], filter, request->border, SAMPLE_U8, variant, error))
            return false;
        pipeline->plans[i].threads = request->threads;
    }
    return true;
}

/* Must planes become an image and planes again between two filters? Only so does a chain with premultiplied colours
 * give the bytes of running its filters one after the other, because the division by alpha rounds. */
static bool merges_between(const struct pipeline *pipeline, const struct image *image)
{
    return pipeline->request->alpha == ALPHA_PREMULTIPLY && image_has_alpha(image);
}

static bool run_cpu(struct pipeline *pipeline, struct image *image, struct error *error)
{
    const struct request *request = pipeline->request;
    const int count = image_planes(image, request->alpha);
    struct plane planes[2] = {{0}, {0}};
    bool done = plane_allocate(&planes[0], SAMPLE_U8, image->width, image->height, count, error) &&
                plane_allocate(&planes[1], SAMPLE_U8, image->width, image->height, count, error);
    if (!done)
        goto out;

    image_split(image, request->alpha, &planes[0]);
    stages_end(pipeline->stages, STAGE_SPLIT);
    int in = 0;
    for (size_t i = 0; done && i < request->count; i++, in = !in) {
        if (i > 0 && merges_between(pipeline, image)) {
            image_merge(&planes[in], request->alpha, image);
            image_split(image, request->alpha, &planes[in]);
        }
        const struct plan *plan = &pipeline->plans[i];
        done = plan->variant->launch(plan, NULL, &planes[in], &planes[!in], error);
    }
    stages_end(pipeline->stages, STAGE_CONVOLVE);
    if (done)
        image_merge(&planes[in], request->alpha, image);
    stages_end(pipeline->stages, STAGE_MERGE);
out:
    plane_free(&planes[0]);
    plane_free(&planes[1]);
    return done;
}

#ifdef GPUCONV_CUDA
const bool pipeline_has_cuda = true;

/* Is there a GPU of that index? */
static bool find_device(const struct request *request, struct error *error)
{
    int count;
    if (!device_count(&count, error))
        return false;
    if (request->device >= count)
        return error_set(error, ERROR_WORK, "there is no GPU %d, only %d of them, counted from 0 (gpuconv --devices)",
                         request->device, count);
    return true;
}

/* Open the GPU with all signals held back. The threads that CUDA starts inherit that for good, so a signal goes to this
 * thread, which can hold it back while it writes a file (codec_write). */
static bool open_quietly(struct pipeline *pipeline, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool done = device_open(pipeline->request->device, &pipeline->device, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* Open the GPU and check that it is new enough for the plans. */
static bool open_device(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    if (!find_device(request, error))
        return false;
    pipeline->backend = BACKEND_CUDA;
    if (!make_plans(pipeline, error))
        return false;
    stages_end(pipeline->stages, STAGE_PLAN);
    if (!open_quietly(pipeline, error))
        return false;
    stages_end(pipeline->stages, STAGE_DEVICE);

    const struct device_info *facts = device_facts(pipeline->device);
    for (size_t i = 0; i < request->count; i++) {
        const struct variant *variant = pipeline->plans[i].variant;
        if (variant->capability > facts->capability)
            return error_set(error, ERROR_WORK,
                             "the variant %s needs a GPU of compute capability %d.%d and %s has %d.%d; choose another "
                             "with --variant, or --backend cpu",
                             variant->name, variant->capability / 10, variant->capability % 10, facts->name,
                             facts->capability / 10, facts->capability % 10);
    }
    return true;
}

static void close_device(struct pipeline *pipeline)
{
    device_close(pipeline->device);
    pipeline->device = NULL;
}

/* What a run holds on the device. */
struct buffers {
    void *samples; /* the interleaved image */
    struct plane planes[2];
};

/* A mark stands at the end of each stage on the device; MARK_BEGIN before the first. */
enum mark { MARK_BEGIN, MARK_UPLOAD, MARK_SPLIT, MARK_CONVOLVE, MARK_MERGE, MARK_DOWNLOAD };

/* Queue the filters from planes[0] on; *IN becomes the buffer that holds the result. */
static bool queue_filters(struct pipeline *pipeline, const struct image *image, struct buffers *buffers, int *in,
                          struct error *error)
{
    const struct request *request = pipeline->request;
    struct device *device = pipeline->device;
    *in = 0;
    for (size_t i = 0; i < request->count; i++, *in = !*in) {
        const struct plan *plan = &pipeline->plans[i];
        const struct plane *from = &buffers->planes[*in];
        if (i > 0 && merges_between(pipeline, image) &&
            (!device_merge(device, from, image->channels, request->alpha, buffers->samples, error) ||
             !device_split(device, buffers->samples, image->channels, request->alpha, from, error)))
            return false;
        if (plan->variant->prepare != NULL && !plan->variant->prepare(plan, device, error))
            return false;
        if (!plan->variant->launch(plan, device, from, &buffers->planes[!*in], error))
            return false;
    }
    return true;
}

static bool queue_all(struct pipeline *pipeline, const struct image *image, struct buffers *buffers,
                      struct error *error)
{
    const enum alpha alpha = pipeline->request->alpha;
    struct device *device = pipeline->device;
    int in;
    return device_mark(device, MARK_BEGIN, error) &&
           device_upload(device, buffers->samples, image->samples, image_samples(image), error) &&
           device_mark(device, MARK_UPLOAD, error) &&
           device_split(device, buffers->samples, image->channels, alpha, &buffers->planes[0], error) &&
           device_mark(device, MARK_SPLIT, error) && queue_filters(pipeline, image, buffers, &in, error) &&
           device_mark(device, MARK_CONVOLVE, error) &&
           device_merge(device, &buffers->planes[in], image->channels, alpha, buffers->samples, error) &&
           device_mark(device, MARK_MERGE, error);
}

static bool download(struct pipeline *pipeline, struct image *image, const struct buffers *buffers, struct error *error)
{
    struct device *device = pipeline->device;
    return device_download(device, image->samples, buffers->samples, image_samples(image), error) &&
           device_mark(device, MARK_DOWNLOAD, error) && device_wait(device, error);
}

/* The stages on the device, by the device's own clock. */
static bool time_stages(struct pipeline *pipeline, struct error *error)
{
    static const enum stage stages[] = {
        [MARK_UPLOAD] = STAGE_UPLOAD, [MARK_SPLIT] = STAGE_SPLIT,       [MARK_CONVOLVE] = STAGE_CONVOLVE,
        [MARK_MERGE] = STAGE_MERGE,   [MARK_DOWNLOAD] = STAGE_DOWNLOAD,
    };
    for (int mark = MARK_UPLOAD; mark <= MARK_DOWNLOAD; mark++) {
        float milliseconds;
        if (!device_elapsed(pipeline->device, mark - 1, mark, &milliseconds, error))
            return false;
        pipeline->stages->milliseconds[stages[mark]] += (double)milliseconds;
    }
    pipeline->stages->last = clock_milliseconds();
    return true;
}

/* *INTACT says after a failure whether IMAGE still is what it was. */
static bool run_cuda(struct pipeline *pipeline, struct image *image, bool *intact, struct error *error)
{
    struct device *device = pipeline->device;
    const int count = image_planes(image, pipeline->request->alpha);
    struct buffers buffers = {0};
    *intact = true;
    bool done = device_allocate(device, image_samples(image), &buffers.samples, error);
    for (int i = 0; done && i < 2; i++)
        done =
            device_plane_allocate(device, SAMPLE_U8, image->width, image->height, count, 0, &buffers.planes[i], error);
    stages_end(pipeline->stages, STAGE_DEVICE);
    /* Kernels fail here, before the download overwrites the image. */
    done = done && queue_all(pipeline, image, &buffers, error) && device_wait(device, error);
    if (done) {
        *intact = false;
        done = download(pipeline, image, &buffers, error) && time_stages(pipeline, error);
    }
    device_release(device, buffers.planes[1].data);
    device_release(device, buffers.planes[0].data);
    device_release(device, buffers.samples);
    return done;
}

#else
const bool pipeline_has_cuda = false;

static bool find_device(const struct request *request, struct error *error)
{
    (void)request;
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

static bool open_device(struct pipeline *pipeline, struct error *error)
{
    return find_device(pipeline->request, error);
}

static void close_device(struct pipeline *pipeline)
{
    (void)pipeline;
}

static bool run_cuda(struct pipeline *pipeline, struct image *image, bool *intact, struct error *error)
{
    (void)image;
    *intact = true;
    return find_device(pipeline->request, error);
}
#endif

bool pipeline_check(const struct request *request, struct error *error)
{
    struct plan plan;
    for (size_t i = 0; request->variant != NULL && i < request->count; i++)
        if (!plan_make(&plan, &request->filters[i], request->border, SAMPLE_U8, request->variant, error))
            return false;
    if (request->choice != CHOICE_CUDA)
        return true;
    struct error reason;
    if (find_device(request, &reason))
        return true;
    return error_set(error, reason.code, "there is no GPU to work on: %s; --backend cpu works everywhere",
                     reason.message);
}

/* Choose a backend without being told one. Where the CPU is as fast as the GPU's start-up, CUDA is not even asked. */
static bool choose(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    const double cpu = 1e3 * conv_cpu_seconds(request->filters, request->count, &pipeline->work);
    const double cuda = 1e3 * conv_cuda_seconds(request->filters, request->count, &pipeline->work);
    if (cpu > cuda && open_device(pipeline, &pipeline->why)) {
        error_set(&pipeline->why, ERROR_NONE, "a GPU is expected to take %.1f ms with its start-up, the CPU %.1f ms",
                  cuda, cpu);
        return true;
    }
    if (cpu <= cuda)
        error_set(&pipeline->why, ERROR_NONE, "the CPU is expected to take %.1f ms, a GPU %.1f ms with its start-up",
                  cpu, cuda);
    close_device(pipeline);
    pipeline->backend = BACKEND_CPU;
    return make_plans(pipeline, error);
}

bool pipeline_open(struct pipeline *pipeline, const struct request *request, const struct image *image,
                   struct stages *stages, struct error *error)
{
    *pipeline = (struct pipeline){.request = request, .stages = stages, .backend = BACKEND_CPU};
    pipeline->work = (struct work){
        .width = image->width,
        .height = image->height,
        .planes = image_planes(image, request->alpha),
        .sample = SAMPLE_U8,
        .threads = request->threads > 0 ? request->threads : processors(),
    };
    pipeline->plans = calloc(request->count, sizeof *pipeline->plans);
    if (pipeline->plans == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the plans of %zu filters; use fewer",
                         request->count);
    error_set(&pipeline->why, ERROR_NONE, "asked for");
    bool done = false;
    switch (request->choice) {
    case CHOICE_AUTO:
        done = choose(pipeline, error);
        break;
    case CHOICE_CUDA:
        done = open_device(pipeline, error);
        break;
    case CHOICE_CPU:
        done = make_plans(pipeline, error);
        break;
    }
    stages_end(stages, STAGE_PLAN);
    return done;
}

bool pipeline_run(struct pipeline *pipeline, struct image *image, struct error *error)
{
    if (pipeline->backend == BACKEND_CPU)
        return run_cpu(pipeline, image, error);

    bool intact;
    if (run_cuda(pipeline, image, &intact, error))
        return true;
    if (!intact || pipeline->request->choice != CHOICE_AUTO)
        return false;
    pipeline->fallback = *error;
    close_device(pipeline);
    pipeline->backend = BACKEND_CPU;
    stages_end(pipeline->stages, STAGE_DEVICE);
    return make_plans(pipeline, error) && run_cpu(pipeline, image, error);
}

void pipeline_close(struct pipeline *pipeline)
{
    close_device(pipeline);
    free(pipeline->plans);
    pipeline->plans = NULL;
}
