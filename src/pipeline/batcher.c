/* SPDX-License-Identifier: MIT
 *
 * Small JPEGs of a batch, whose pixels take a GPU less time than their launches. Several workers hand in an image each,
 * and wait. One of them takes all images that are there and alike, and runs them on a slot. Each stage of the codecs
 * is one launch for all of them. The worker never waits for more images. While a slot works, images for the next one
 * arrive. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "kernels/device/device.h"

#include <stdlib.h>
#include <string.h>

/* Two slots fill a GPU with small images, and another one loads and downloads meanwhile. */
enum { SLOTS = 3, IMAGES_MAX = 64, PIXELS_MAX = 1 << 19 };

/* An image that a worker has handed in. */
struct request {
    struct pipeline_run *run; /* the worker's, which is planned */
    const struct end *in;
    struct end *out;
    bool is_taken, is_done;
    double share; /* this image's share of its group's time on the device, in milliseconds */
    enum run_result result;
    struct error error;
    struct request *next;
};

/* A pipeline for images of any worker, and its images. */
struct slot {
    struct pipeline pipeline;
    struct pipeline_run run; /* the first image's, but for the pipeline */
    struct resources resources;
    struct phases phases;
    bool is_busy;
    struct request *requests[IMAGES_MAX];
    size_t count;
    struct gpu_picture pictures[IMAGES_MAX];
};

/* What the workers of a GPU share. */
struct batcher {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct request *first; /* the first request that no slot has taken */
    struct slot slots[SLOTS];
};

/* ---- Which images ---- */

static bool is_small(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height <= PIXELS_MAX;
}

bool batcher_takes(const struct pipeline_run *run)
{
    const struct resources *resources = run->pipeline->resources;
    const struct pipeline_input *input = &run->input;
    struct image result = input->shape;
    return resources->page_locked && resources->start != NULL && input->gpu_decodes == END_JPEG &&
           input->gpu_encodes == END_JPEG && input->is_upright && input->shape.bits == 8 &&
           run->recipe->chain->count > 0 && run->linear == NULL && is_small(&input->shape) &&
           recipe_resize(run->recipe, &run->work, &result, NULL) && is_small(&result);
}

/* Can one slot take both at once? */
static bool are_alike(const struct request *a, const struct request *b)
{
    const struct image *one = a->in->image, *other = b->in->image;
    return one->width == other->width && one->height == other->height && one->channels == other->channels &&
           a->run->produced_channels == b->run->produced_channels &&
           a->run->work.full_width == b->run->work.full_width && a->run->work.full_height == b->run->work.full_height &&
           recipe_equal(a->run->recipe, b->run->recipe);
}

/* ---- A group ---- */

/* Plan as the worker of the first image has done. */
static bool plan(struct slot *slot, const struct pipeline_run *like, struct error *error)
{
    slot->run = (struct pipeline_run){.pipeline = &slot->pipeline,
                                      .recipe = like->recipe,
                                      .input = like->input,
                                      .phases = &slot->phases,
                                      .effective_alpha = like->effective_alpha,
                                      .produced_channels = like->produced_channels,
                                      .work = like->work};
    phases_begin(&slot->phases);
    const bool done = plans_make(&slot->run, BACKEND_CUDA, error) && gpu_open(&slot->run, error);
    slot->run.phases = NULL; /* the filters of single images are not timed */
    return done;
}

/* Decode, filter and encode all images. */
static bool run_images(struct slot *slot, struct gpu_image *gpu, struct error *error)
{
    struct pipeline *pipeline = &slot->pipeline;
    struct gpu_picture *pictures[IMAGES_MAX];
    struct group group = {0};
    size_t size;
    bool done = gpu_reserve(&slot->run, slot->requests[0]->in->image, slot->count, gpu, &size, error);
    for (size_t i = 0; done && i < slot->count; i++) {
        const struct request *request = slot->requests[i];
        pictures[i] = &slot->pictures[i];
        *pictures[i] = (struct gpu_picture){.in = request->in, .out = request->out, .view = gpu->image};
        pictures[i]->view.samples = pipeline->memory[MEMORY_IMAGE].bytes + i * size;
    }
    done = done && device_mark(pipeline->device, MARK_BEGIN, error) &&
           group_open(pipeline, 0, pictures, slot->count, &group, error) && group_decode(&group, error) &&
           device_mark(pipeline->device, MARK_INPUT, error);
    for (size_t i = 0; done && i < slot->count; i++)
        done = gpu_filter(&slot->run, gpu, pictures[i], error);
    done = done && device_mark(pipeline->device, MARK_MERGE, error) && group_encode(&group, error) &&
           group_encoded(&group, error) && device_mark(pipeline->device, MARK_OUTPUT, error) &&
           group_decoded(&group, error);
    group_close(&group);
    return done;
}

/* Give the worker of image INDEX a copy of the data of its scan. */
static bool hand_out(struct slot *slot, size_t index, struct error *error)
{
    struct pipeline *pipeline = slot->requests[index]->run->pipeline;
    struct end *out = slot->requests[index]->out;
    uint8_t *data = realloc(pipeline->scan, out->size + 2 * out->head.size);
    if (data == NULL)
        return error_no_memory(error, "a scan of %zu bytes", out->size);
    pipeline->scan = data;
    out->data = memcpy(data + out->head.size, out->data, out->size);
    *out->image = slot->pictures[index].view;
    out->image->samples = NULL;
    return true;
}

/* Add an equal share of the time on the device to the phases of the worker. */
static bool share_times(struct slot *slot, struct request *request, struct error *error)
{
    static const struct {
        int from, to;
        enum phase phase;
    } spans[] = {{MARK_BEGIN, MARK_INPUT, PHASE_DECODE},
                 {MARK_INPUT, MARK_MERGE, PHASE_CONVOLVE},
                 {MARK_MERGE, MARK_OUTPUT, PHASE_ENCODE}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        float milliseconds;
        if (!device_elapsed(slot->pipeline.device, spans[i].from, spans[i].to, &milliseconds, error))
            return false;
        const double share = (double)milliseconds / (double)slot->count;
        request->run->phases->milliseconds[spans[i].phase] += share;
        request->share += share;
    }
    return true;
}

/* Run the images of a slot, and set the results of all requests. */
static void run_group(struct slot *slot)
{
    struct error error = {0};
    struct gpu_image gpu = {0};
    struct pipeline *pipeline = &slot->pipeline;
    const bool done = plan(slot, slot->requests[0]->run, &error) && run_images(slot, &gpu, &error);
    if (!done && pipeline->device != NULL)
        device_wait(pipeline->device, NULL);
    if (gpu.reads_taps)
        pthread_rwlock_unlock(&pipeline->resources->constant_memory->lock);
    for (size_t i = 0; i < slot->count; i++) {
        struct request *request = slot->requests[i];
        request->result = RUN_FAILED;
        request->error = error;
        if (done && !slot->pictures[i].is_done)
            request->result = RUN_NEEDS_SAMPLES;
        else if (done && hand_out(slot, i, &request->error) && share_times(slot, request, &request->error))
            request->result = RUN_DONE;
    }
}

/* ---- Requests ---- */

/* Make what the workers of a GPU share, unless it is there. NULL if there is not enough memory. */
static struct batcher *find_batcher(struct gpu_start *start)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (start->batcher == NULL) {
        struct batcher *created = start->batcher = calloc(1, sizeof *created);
        if (created != NULL) {
            pthread_mutex_init(&created->mutex, NULL);
            pthread_cond_init(&created->changed, NULL);
        }
    }
    pthread_mutex_unlock(&mutex);
    return start->batcher;
}

/* A slot that has nothing to do, or NULL. */
static struct slot *find_slot(struct batcher *batcher, const struct resources *resources)
{
    for (struct slot *slot = batcher->slots; slot < batcher->slots + SLOTS; slot++) {
        if (slot->is_busy)
            continue;
        if (slot->pipeline.resources == NULL) {
            slot->resources = *resources;
            slot->resources.pool = NULL; /* the worker's own */
            slot->resources.batch = NULL;
            pipeline_open(&slot->pipeline, &slot->resources);
        }
        return slot;
    }
    return NULL;
}

/* Let the slot take CALLER_REQUEST and the others that are alike. */
static void take_requests(struct batcher *batcher, struct slot *slot, struct request *caller_request)
{
    size_t images_left = IMAGES_MAX - 1; /* beside CALLER_REQUEST */
    slot->count = 0;
    for (struct request **at = &batcher->first; *at != NULL;) {
        struct request *request = *at;
        if (request != caller_request && (images_left == 0 || !are_alike(request, caller_request))) {
            at = &request->next;
            continue;
        }
        images_left -= request != caller_request;
        *at = request->next;
        request->is_taken = true;
        slot->requests[slot->count++] = request;
    }
}

/* Tell the batch, whose other workers may wait for this. */
static void record_group(struct batch_choice *batch)
{
    if (batch == NULL)
        return;
    pthread_mutex_lock(&batch->mutex);
    batch->groups++;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->mutex);
}

enum run_result batcher_run(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    struct batcher *batcher = find_batcher(run->pipeline->resources->start);
    struct request caller_request = {.run = run, .in = in, .out = out};
    if (batcher == NULL) {
        error_no_memory(error, "the images of a GPU");
        return RUN_FAILED;
    }
    pthread_mutex_lock(&batcher->mutex);
    struct request **last = &batcher->first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = &caller_request;
    while (!caller_request.is_done) {
        struct slot *slot = caller_request.is_taken ? NULL : find_slot(batcher, run->pipeline->resources);
        if (slot == NULL) {
            pthread_cond_wait(&batcher->changed, &batcher->mutex);
            continue;
        }
        take_requests(batcher, slot, &caller_request);
        slot->is_busy = true;
        pthread_mutex_unlock(&batcher->mutex);
        record_group(run->pipeline->resources->batch);
        run_group(slot);
        pthread_mutex_lock(&batcher->mutex);
        slot->is_busy = false;
        for (size_t i = 0; i < slot->count; i++)
            slot->requests[i]->is_done = true;
        pthread_cond_broadcast(&batcher->changed);
    }
    pthread_mutex_unlock(&batcher->mutex);
    const double now = clock_milliseconds();
    run->phases->milliseconds[PHASE_WAIT] += now - run->phases->last - caller_request.share;
    run->phases->last = now;
    run->is_grouped = caller_request.result != RUN_FAILED;
    if (caller_request.result == RUN_FAILED)
        *error = caller_request.error;
    return caller_request.result;
}

void batcher_close(struct gpu_start *start)
{
    struct batcher *batcher = start->batcher;
    start->batcher = NULL;
    if (batcher == NULL)
        return;
    for (struct slot *slot = batcher->slots; slot < batcher->slots + SLOTS; slot++)
        if (slot->pipeline.resources != NULL)
            pipeline_close(&slot->pipeline);
    pthread_mutex_destroy(&batcher->mutex);
    pthread_cond_destroy(&batcher->changed);
    free(batcher);
}
