/* SPDX-License-Identifier: MIT
 *
 * The pipeline on a GPU: upload, split, filters, merge, download, queued on one stream. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "image/linear.h"
#include "kernels/device/device.h"

#include <stdlib.h>
#include <string.h>

const bool pipeline_has_cuda = true;

/* ---- GPUs ---- */

int pipeline_gpus(void)
{
    int count;
    struct error error;
    return device_count(&count, &error) ? count : 0;
}

bool pipeline_count_gpus(int *count, struct error *error)
{
    return device_count(count, error);
}

bool pipeline_describe_gpu(int index, struct device_info *facts, struct error *error)
{
    return device_describe(index, facts, error);
}

const struct device_info *pipeline_gpu_facts(const struct pipeline *pipeline)
{
    return pipeline->device != NULL ? device_facts(pipeline->device) : NULL;
}

bool gpu_check(const struct request *request, struct error *error)
{
    int count;
    if (!gpu_start_wait(request->start, GPU_DRIVER, error) || !device_count(&count, error))
        return false;
    if (request->device >= count)
        return error_set(error, ERROR_WORK, "there is no GPU %d, only %d of them, counted from 0 (gpuconv --devices)",
                         request->device, count);
    return true;
}

bool gpu_open(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    if (pipeline->device == NULL) {
        if (!gpu_check(request, error))
            return false;
        stages_end(pipeline->stages, STAGE_DRIVER);
    }
    pipeline->backend = BACKEND_CUDA;
    if (!pipeline_make_plans(pipeline, error))
        return false;
    stages_end(pipeline->stages, STAGE_PLAN);
    if (pipeline->device == NULL) {
        if (!gpu_start_wait(request->start, GPU_CONTEXT, error) ||
            !device_open(request->device, &pipeline->device, error))
            return false;
        stages_end(pipeline->stages, STAGE_CONTEXT);
    }

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

void gpu_close(struct pipeline *pipeline)
{
    gpu_buffers_release(pipeline);
    device_close(pipeline->device);
    pipeline->device = NULL;
}

/* ---- Buffers ---- */

void gpu_buffers_release(struct pipeline *pipeline)
{
    if (pipeline->device == NULL)
        return;
    device_release_locked(pipeline->device, pipeline->page_locked.data);
    device_release(pipeline->device, pipeline->device_samples.data);
    device_release(pipeline->device, pipeline->device_planes[0].data);
    device_release(pipeline->device, pipeline->device_planes[1].data);
    device_release(pipeline->device, pipeline->device_linear.data);
    pipeline->page_locked = pipeline->device_samples = pipeline->device_linear = (struct buffer){0};
    pipeline->device_planes[0] = pipeline->device_planes[1] = (struct buffer){0};
}

/* Let BUFFER hold SIZE bytes of one of the two kinds of memory that a device gives. */
static bool grow_device(struct device *device, struct buffer *buffer, size_t size,
                        bool (*allocate)(struct device *, size_t, void **, struct error *),
                        void (*release)(struct device *, void *), struct error *error)
{
    if (size <= buffer->capacity)
        return true;
    release(device, buffer->data);
    *buffer = (struct buffer){0};
    if (!allocate(device, size, &buffer->data, error))
        return false;
    buffer->capacity = size;
    return true;
}

/* The device memory of one image. */
struct workspace {
    struct image image; /* interleaved */
    struct plane planes[2];
    const struct linear *linear; /* NULL: the samples are filtered as they are */
};

/* Let the device hold the tables of linear light. */
static bool upload_linear(struct pipeline *pipeline, struct error *error)
{
    const struct linear *linear = pipeline->request->linear;
    struct buffer *buffer = &pipeline->device_linear;
    if (linear == NULL || buffer->data != NULL)
        return true;
    if (!grow_device(pipeline->device, buffer, sizeof *linear, device_allocate, device_release, error))
        return false;
    if (device_upload(pipeline->device, buffer->data, linear, sizeof *linear, error))
        return true;
    device_release(pipeline->device, buffer->data); /* an allocated buffer must hold the tables */
    *buffer = (struct buffer){0};
    return false;
}

static bool reserve_workspace(struct pipeline *pipeline, const struct image *image, struct workspace *workspace,
                              struct error *error)
{
    struct device *device = pipeline->device;
    const int count = image_planes(image, pipeline->request->alpha);
    const enum sample sample = pipeline_sample(pipeline->request, image->bits);
    bool done = upload_linear(pipeline, error) && grow_device(device, &pipeline->device_samples, image_bytes(image),
                                                              device_allocate, device_release, error);
    for (int i = 0; done && i < 2; i++) {
        struct buffer *buffer = &pipeline->device_planes[i];
        const size_t size = device_plane_layout(sample, image->width, image->height, count, 0, &workspace->planes[i]);
        done = grow_device(device, buffer, size, device_allocate, device_release, error);
        workspace->planes[i].data = buffer->data;
    }
    workspace->image = *image;
    workspace->image.samples = pipeline->device_samples.data;
    workspace->linear = pipeline->device_linear.data;
    return done &&
           (!pipeline->request->page_locked || grow_device(device, &pipeline->page_locked, image_bytes(image),
                                                           device_allocate_locked, device_release_locked, error));
}

/* ---- Filters ---- */

/* Marks on the device's stream: one at the end of each stage, MARK_BEGIN before the first, and MARK_LOCK once the lock
 * of constant memory is held. */
enum mark { MARK_BEGIN, MARK_UPLOAD, MARK_SPLIT, MARK_LOCK, MARK_CONVOLVE, MARK_MERGE, MARK_DOWNLOAD, MARK_COUNT };

/* Queue the filters, beginning at planes[0]. *IN becomes the index of the planes that hold the result. */
static bool queue_filters(struct pipeline *pipeline, const struct image *image, struct workspace *workspace, int *in,
                          struct error *error)
{
    const struct request *request = pipeline->request;
    struct device *device = pipeline->device;
    *in = 0;
    for (size_t i = 0; i < request->count; i++, *in = !*in) {
        struct plan *plan = &pipeline->plans[i];
        const struct plane *from = &workspace->planes[*in];
        if (i > 0 && request_merges_between(request, image) &&
            (!device_merge(device, from, request->alpha, workspace->linear, &workspace->image, error) ||
             !device_split(device, &workspace->image, request->alpha, workspace->linear, from, error)))
            return false;
        if (!variant_prepare(plan, device, error) ||
            !plan->variant->launch(plan, device, from, &workspace->planes[!*in], error))
            return false;
    }
    return true;
}

/* Run the filters. Constant memory is shared by all streams of a GPU: hold its lock from the upload of the first taps
 * until the last kernel ends. Drain this stream before, so that no other pipeline waits for this image's upload. */
static bool run_filters(struct pipeline *pipeline, const struct image *image, struct workspace *workspace, int *in,
                        struct error *error)
{
    struct device *device = pipeline->device;
    pthread_mutex_t *lock = pipeline->request->constant_memory_lock;
    if (lock != NULL) {
        if (!device_wait(device, error))
            return false;
        pthread_mutex_lock(lock);
    }
    bool done = device_mark(device, MARK_LOCK, error) && queue_filters(pipeline, image, workspace, in, error) &&
                device_mark(device, MARK_CONVOLVE, error);
    if (lock != NULL) {
        done = device_wait(device, done ? error : NULL) && done;
        pthread_mutex_unlock(lock);
    }
    return done;
}

/* ---- An image ---- */

/* Queue all but the download. */
static bool queue_image(struct pipeline *pipeline, const struct image *image, const void *samples,
                        struct workspace *workspace, struct error *error)
{
    const enum alpha alpha = pipeline->request->alpha;
    struct device *device = pipeline->device;
    int in;
    return device_mark(device, MARK_BEGIN, error) &&
           device_upload(device, workspace->image.samples, samples, image_bytes(image), error) &&
           device_mark(device, MARK_UPLOAD, error) &&
           device_split(device, &workspace->image, alpha, workspace->linear, &workspace->planes[0], error) &&
           device_mark(device, MARK_SPLIT, error) && run_filters(pipeline, image, workspace, &in, error) &&
           device_merge(device, &workspace->planes[in], alpha, workspace->linear, &workspace->image, error) &&
           device_mark(device, MARK_MERGE, error);
}

static bool download(struct pipeline *pipeline, const struct image *image, void *samples,
                     const struct workspace *workspace, struct error *error)
{
    struct device *device = pipeline->device;
    return device_download(device, samples, workspace->image.samples, image_bytes(image), error) &&
           device_mark(device, MARK_DOWNLOAD, error) && device_wait(device, error);
}

/* Add the times of the stages on the device, by the device's own clock. */
static bool add_device_times(struct pipeline *pipeline, struct error *error)
{
    static const enum stage stages[MARK_COUNT] = {
        [MARK_UPLOAD] = STAGE_UPLOAD,     [MARK_SPLIT] = STAGE_SPLIT, [MARK_LOCK] = STAGE_WAIT,
        [MARK_CONVOLVE] = STAGE_CONVOLVE, [MARK_MERGE] = STAGE_MERGE, [MARK_DOWNLOAD] = STAGE_DOWNLOAD,
    };
    for (int mark = MARK_UPLOAD; mark <= MARK_DOWNLOAD; mark++) {
        if (mark == MARK_LOCK && pipeline->request->constant_memory_lock == NULL)
            continue; /* there was no lock to wait for */
        float milliseconds;
        if (!device_elapsed(pipeline->device, mark - 1, mark, &milliseconds, error))
            return false;
        pipeline->stages->milliseconds[stages[mark]] += (double)milliseconds;
    }
    pipeline->stages->last = clock_milliseconds();
    return true;
}

bool run_on_gpu(struct pipeline *pipeline, struct image *image, struct image *result, bool *intact, struct error *error)
{
    struct device *device = pipeline->device;
    const struct request *request = pipeline->request;
    uint8_t *aside = NULL; /* the result, where it must not overwrite the image */
    struct workspace workspace = {0};
    *intact = true;
    bool done = reserve_workspace(pipeline, image, &workspace, error);
    stages_end(pipeline->stages, STAGE_BUFFERS);
    if (done && request->page_locked) {
        result->samples = pipeline->page_locked.data;
        memcpy(result->samples, image->samples, image_bytes(image));
        stages_end(pipeline->stages, STAGE_UPLOAD);
    }
    /* A kernel that fails shows at the wait, before the download overwrites the image. */
    done = done && queue_image(pipeline, image, result->samples, &workspace, error) && device_wait(device, error);
    if (done) {
        if (!request->page_locked && request->choice == CHOICE_AUTO)
            aside = malloc(image_bytes(image));
        if (aside != NULL)
            result->samples = aside;
        *intact = result->samples != image->samples;
        done = download(pipeline, image, result->samples, &workspace, error) && add_device_times(pipeline, error);
    }
    /* The caller may free the image now: wait for what still reads it. */
    if (!done)
        device_wait(device, NULL);
    if (done && aside != NULL) {
        free(image->samples);
        image->samples = aside;
    } else {
        free(aside);
    }
    return done;
}
