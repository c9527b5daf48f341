/* SPDX-License-Identifier: MIT
 *
 * Small JPEGs of a batch, whose pixels take a GPU less time than their launches. Several workers hand in an image each,
 * and wait. One of them takes all images that are there and alike, and runs them on an engine: one launch of each stage
 * of the codecs is for all of them. It never waits for more. While an engine works, images for the next one arrive. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "base/round.h"
#include "jpeg/jpeg_gpu.h"
#include "kernels/device/device.h"

#include <stdlib.h>
#include <string.h>

/* Two engines fill a GPU with small images, and a third one loads and downloads meanwhile. */
enum { ENGINES = 3, IMAGES_MAX = 64, PIXELS_MAX = 1 << 19, ALIGNMENT = 512 };

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
struct engine {
    struct pipeline pipeline;
    struct pipeline_run run; /* the first image's, but for the pipeline */
    struct resources resources;
    struct phases phases;
    bool is_busy;
    struct request *requests[IMAGES_MAX];
    size_t count;
    struct jpeg_input inputs[IMAGES_MAX];
    struct image images[IMAGES_MAX]; /* the results, in device memory */
    struct jpeg_output outputs[IMAGES_MAX];
    struct jpeg_scan scans[IMAGES_MAX];
    bool is_decoded[IMAGES_MAX];
};

/* What the workers of a GPU share. */
struct gathering {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct request *first; /* the first request that no engine has taken */
    struct engine engines[ENGINES];
};

/* ---- Which images ---- */

static bool is_small(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height <= PIXELS_MAX;
}

bool gather_takes(const struct pipeline_run *run)
{
    const struct resources *resources = run->pipeline->resources;
    const struct pipeline_input *input = &run->input;
    struct image result = input->shape;
    return resources->page_locked && resources->start != NULL && input->gpu_decodes == END_JPEG &&
           input->gpu_encodes == END_JPEG && input->is_upright && input->shape.bits == 8 &&
           run->recipe->chain->count > 0 && run->linear == NULL && is_small(&input->shape) &&
           recipe_resize(run->recipe, &run->work, &result, NULL) && is_small(&result);
}

/* Can one engine take both at once? */
static bool are_alike(const struct request *a, const struct request *b)
{
    const struct image *one = a->in->image, *other = b->in->image;
    return one->width == other->width && one->height == other->height && one->channels == other->channels &&
           a->run->work.full_width == b->run->work.full_width && a->run->work.full_height == b->run->work.full_height &&
           recipe_equal(a->run->recipe, b->run->recipe);
}

/* ---- An engine ---- */

/* Let the engine plan as the worker has done. */
static bool plan(struct engine *engine, const struct pipeline_run *like, struct error *error)
{
    struct pipeline *pipeline = &engine->pipeline;
    engine->run = (struct pipeline_run){.pipeline = pipeline,
                                        .recipe = like->recipe,
                                        .input = like->input,
                                        .phases = &engine->phases,
                                        .effective_alpha = like->effective_alpha,
                                        .work = like->work};
    phases_begin(&engine->phases);
    return plans_make(&engine->run, BACKEND_CUDA, error) && gpu_open(&engine->run, error) &&
           (pipeline->jpegs[0] != NULL || device_jpeg_open(pipeline->device, MARK_COUNT, &pipeline->jpegs[0], error));
}

/* Queue the decoding of all images to SAMPLES, SIZE bytes each. */
static bool queue_gathered_decoding(struct engine *engine, uint8_t *samples, size_t size, struct error *error)
{
    struct device_jpeg *jpeg = engine->pipeline.jpegs[0];
    for (size_t i = 0; i < engine->count; i++) {
        const struct end *in = engine->requests[i]->in;
        engine->inputs[i] = (struct jpeg_input){.layout = &in->jpeg, .scan = in->scan, .samples = samples + i * size};
    }
    if (!device_jpeg_reserve(jpeg, engine->inputs, engine->count, error))
        return false;
    for (size_t i = 0; i < engine->count; i++)
        device_jpeg_load(jpeg, i);
    return device_jpeg_decode(jpeg, error);
}

/* Queue the filters of all images. Their results take the places of the images. */
static bool queue_gathered_filters(struct engine *engine, struct gpu_image *gpu, uint8_t *samples, size_t size,
                                   struct error *error)
{
    for (size_t i = 0; i < engine->count; i++) {
        struct image from = *engine->requests[i]->in->image;
        if (!gpu_reserve(&engine->run, &from, gpu, error))
            return false;
        from.samples = gpu->image.samples = samples + i * size;
        struct image to = from;
        if (!recipe_resize(engine->run.recipe, &engine->run.work, &to, error) ||
            !gpu_queue(&engine->run, &from, &to, gpu, error))
            return false;
        engine->images[i] = to;
        engine->outputs[i] = (struct jpeg_output){
            .layout = &engine->requests[i]->out->jpeg, .samples = to.samples, .channels = to.channels};
    }
    return true;
}

/* Decode, filter and encode all images. */
static bool run_gathered_images(struct engine *engine, struct gpu_image *gpu, struct error *error)
{
    struct pipeline *pipeline = &engine->pipeline;
    struct device_jpeg *jpeg = pipeline->jpegs[0];
    struct workspace *memory = &pipeline->memory[MEMORY_IMAGE];
    if (!gpu_reserve(&engine->run, engine->requests[0]->in->image, gpu, error))
        return false;
    const size_t size = round_up(gpu->largest, ALIGNMENT);
    return device_reserve(pipeline->device, memory, engine->count * size, error) &&
           device_mark(pipeline->device, MARK_BEGIN, error) &&
           queue_gathered_decoding(engine, memory->bytes, size, error) &&
           device_mark(pipeline->device, MARK_INPUT, error) &&
           queue_gathered_filters(engine, gpu, memory->bytes, size, error) &&
           device_mark(pipeline->device, MARK_MERGE, error) &&
           device_jpeg_encode(jpeg, engine->outputs, engine->count, error) &&
           device_jpeg_encoded(jpeg, engine->scans, error) && device_mark(pipeline->device, MARK_OUTPUT, error) &&
           device_jpeg_decoded(jpeg, engine->is_decoded, error);
}

/* Give the worker of image INDEX a copy of the data of its scan. */
static bool hand_out(struct engine *engine, size_t index, struct error *error)
{
    const struct jpeg_scan *scan = &engine->scans[index];
    struct pipeline *pipeline = engine->requests[index]->run->pipeline;
    struct end *out = engine->requests[index]->out;
    uint8_t *data = realloc(pipeline->gathered, scan->size + 2 * out->head.size);
    if (data == NULL)
        return error_no_memory(error, "a scan of %zu bytes", scan->size);
    pipeline->gathered = data;
    out->data = memcpy(data + out->head.size, scan->bytes, scan->size);
    out->size = scan->size;
    *out->image = engine->images[index];
    out->image->samples = NULL;
    return true;
}

/* Add an equal share of the time on the device to the phases of the worker. */
static bool share_times(struct engine *engine, struct request *request, struct error *error)
{
    static const struct {
        int from, to;
        enum phase phase;
    } spans[] = {{MARK_BEGIN, MARK_INPUT, PHASE_DECODE},
                 {MARK_INPUT, MARK_MERGE, PHASE_CONVOLVE},
                 {MARK_MERGE, MARK_OUTPUT, PHASE_ENCODE}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        float milliseconds;
        if (!device_elapsed(engine->pipeline.device, spans[i].from, spans[i].to, &milliseconds, error))
            return false;
        const double share = (double)milliseconds / (double)engine->count;
        request->run->phases->milliseconds[spans[i].phase] += share;
        request->share += share;
    }
    return true;
}

/* Run the images of an engine, and set the results of all requests. */
static void run_engine(struct engine *engine)
{
    struct error error = {0};
    struct gpu_image gpu = {0};
    struct pipeline *pipeline = &engine->pipeline;
    bool done = plan(engine, engine->requests[0]->run, &error);
    engine->run.phases = NULL; /* the filters of single images are not timed */
    done = done && run_gathered_images(engine, &gpu, &error);
    if (!done && pipeline->device != NULL)
        device_wait(pipeline->device, NULL);
    if (gpu.reads_taps)
        pthread_rwlock_unlock(&pipeline->resources->constant_memory->lock);
    for (size_t i = 0; i < engine->count; i++) {
        struct request *request = engine->requests[i];
        request->result = RUN_FAILED;
        request->error = error;
        if (done && !engine->is_decoded[i])
            request->result = RUN_NEEDS_SAMPLES;
        else if (done && hand_out(engine, i, &request->error) && share_times(engine, request, &request->error))
            request->result = RUN_DONE;
    }
}

/* ---- Requests ---- */

/* Make what the workers of a GPU share, unless it is there. NULL if there is not enough memory. */
static struct gathering *find_gathering(struct gpu_start *start)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (start->gathering == NULL) {
        struct gathering *created = start->gathering = calloc(1, sizeof *created);
        if (created != NULL) {
            pthread_mutex_init(&created->mutex, NULL);
            pthread_cond_init(&created->changed, NULL);
        }
    }
    pthread_mutex_unlock(&mutex);
    return start->gathering;
}

/* An engine that has nothing to do, or NULL. */
static struct engine *find_engine(struct gathering *gathering, const struct resources *resources)
{
    for (struct engine *engine = gathering->engines; engine < gathering->engines + ENGINES; engine++) {
        if (engine->is_busy)
            continue;
        if (engine->pipeline.resources == NULL) {
            engine->resources = *resources;
            engine->resources.pool = NULL; /* the worker's own */
            engine->resources.batch = NULL;
            pipeline_open(&engine->pipeline, &engine->resources);
        }
        return engine;
    }
    return NULL;
}

/* Let the engine take CALLER_REQUEST and the others that are alike. */
static void take_requests(struct gathering *gathering, struct engine *engine, struct request *caller_request)
{
    size_t images_left = IMAGES_MAX - 1; /* beside CALLER_REQUEST */
    engine->count = 0;
    for (struct request **at = &gathering->first; *at != NULL;) {
        struct request *request = *at;
        if (request != caller_request && (images_left == 0 || !are_alike(request, caller_request))) {
            at = &request->next;
            continue;
        }
        images_left -= request != caller_request;
        *at = request->next;
        request->is_taken = true;
        engine->requests[engine->count++] = request;
    }
}

/* Tell the batch, whose other workers may wait for this. */
static void record_gathered(struct batch_choice *batch)
{
    if (batch == NULL)
        return;
    pthread_mutex_lock(&batch->mutex);
    batch->gathered++;
    pthread_cond_broadcast(&batch->changed);
    pthread_mutex_unlock(&batch->mutex);
}

enum run_result gather_run(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    struct gathering *gathering = find_gathering(run->pipeline->resources->start);
    struct request caller_request = {.run = run, .in = in, .out = out};
    if (gathering == NULL) {
        error_no_memory(error, "the images of a GPU");
        return RUN_FAILED;
    }
    pthread_mutex_lock(&gathering->mutex);
    struct request **last = &gathering->first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = &caller_request;
    while (!caller_request.is_done) {
        struct engine *engine = caller_request.is_taken ? NULL : find_engine(gathering, run->pipeline->resources);
        if (engine == NULL) {
            pthread_cond_wait(&gathering->changed, &gathering->mutex);
            continue;
        }
        take_requests(gathering, engine, &caller_request);
        engine->is_busy = true;
        pthread_mutex_unlock(&gathering->mutex);
        record_gathered(run->pipeline->resources->batch);
        run_engine(engine);
        pthread_mutex_lock(&gathering->mutex);
        engine->is_busy = false;
        for (size_t i = 0; i < engine->count; i++)
            engine->requests[i]->is_done = true;
        pthread_cond_broadcast(&gathering->changed);
    }
    pthread_mutex_unlock(&gathering->mutex);
    const double now = clock_milliseconds();
    run->phases->milliseconds[PHASE_WAIT] += now - run->phases->last - caller_request.share;
    run->phases->last = now;
    run->is_gathered = caller_request.result != RUN_FAILED;
    if (caller_request.result == RUN_FAILED)
        *error = caller_request.error;
    return caller_request.result;
}

void gather_close(struct gpu_start *start)
{
    struct gathering *gathering = start->gathering;
    start->gathering = NULL;
    if (gathering == NULL)
        return;
    for (struct engine *engine = gathering->engines; engine < gathering->engines + ENGINES; engine++)
        if (engine->pipeline.resources != NULL)
            pipeline_close(&engine->pipeline);
    pthread_mutex_destroy(&gathering->mutex);
    pthread_cond_destroy(&gathering->changed);
    free(gathering);
}
