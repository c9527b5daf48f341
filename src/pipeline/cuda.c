/* SPDX-License-Identifier: MIT
 *
 * The pipeline on a GPU: upload, split, filters, merge, download, queued on one stream. Where the image is a JPEG or a
 * PNG before or after the filters, it is decoded or encoded there. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "jpeg/jpeg_gpu.h"
#include "kernels/device/device.h"
#include "png/png_gpu.h"

#include <stdlib.h>
#include <string.h>

const bool pipeline_has_cuda = true;
const char pipeline_gpu_code[] = GPUCONV_GPU_CODE;

/* ---- GPUs ---- */

bool pipeline_count_gpus(int *count, struct error *error)
{
    return device_count(count, error);
}

bool pipeline_describe_gpu(int index, struct device_info *info, struct error *error)
{
    return device_describe(index, info, error);
}

bool pipeline_may_have_gpu(void)
{
    return device_may_exist();
}

bool gpu_check(const struct resources *resources, struct error *error)
{
    int count;
    if (!gpu_start_wait(resources->start, GPU_DRIVER, error) || !device_count(&count, error))
        return false;
    if (resources->device >= count)
        return error_set(error, ERROR_NO_GPU, "there is no GPU %d, only %d, counted from 0 (see gpuconv --devices)",
                         resources->device, count);
    return true;
}

bool gpu_open(struct pipeline_run *run, struct error *error)
{
    const struct resources *resources = run->pipeline->resources;
    if (run->pipeline->device == NULL) {
        if (!gpu_start_wait(resources->start, GPU_CONTEXT, error) ||
            !device_open(resources->device, &run->pipeline->device, error))
            return false;
        phases_end(run->phases, PHASE_CONTEXT);
    }

    const struct device_info *info = device_get_info(run->pipeline->device);
    for (size_t i = 0; i < run->recipe->chain->count; i++) {
        const struct variant *variant = run->planned->plans[i].variant;
        if (variant->capability > info->capability)
            return error_set(error, ERROR_WORK,
                             "the variant %s needs a GPU of compute capability %d.%d and %s has %d.%d; choose another "
                             "with --variant, or --backend cpu",
                             variant->name, variant->capability / 10, variant->capability % 10, info->name,
                             info->capability / 10, info->capability % 10);
    }
    return true;
}

void gpu_forget_taps(struct pipeline *pipeline, struct planned *planned, size_t number)
{
    if (planned->taps == NULL)
        return;
    device_free_taps(pipeline->device, planned->taps[number]);
    planned->taps[number] = NULL;
}

void gpu_close(struct pipeline *pipeline, bool is_last)
{
    if (is_last && pipeline->device != NULL && pipeline->resources->start != NULL)
        device_abandon(pipeline->device);
    pipeline_shrink(pipeline);
    plans_free_taps(pipeline);
    if (pipeline->resources->shared == NULL)
        device_close(pipeline->device);
    pipeline->device = NULL;
}

/* ---- Memory ---- */

void pipeline_shrink(struct pipeline *pipeline)
{
    free(pipeline->scan);
    pipeline->scan = NULL;
    tensor_release(pipeline);
    pipeline->has_input = false;
    if (pipeline->device == NULL)
        return;
    for (int i = 0; i < MEMORY_COUNT; i++)
        device_release(pipeline->device, &pipeline->memory[i]);
    for (int i = 0; i < 2; i++) {
        device_jpeg_close(pipeline->jpegs[i]);
        pipeline->jpegs[i] = NULL;
    }
    device_png_close(pipeline->png);
    pipeline->png = NULL;
}

/* Is the end compressed? */
static bool is_encoded(const struct end *end)
{
    return end->kind == END_JPEG || end->kind == END_PNG;
}

/* Queue a copy of the decoded image in VIEW, for later runs, or if there is one, from there to VIEW. */
static bool share_input(struct pipeline *pipeline, const struct image *view, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_INPUT];
    if (!pipeline->has_input && !device_reserve(pipeline->device, memory, image_bytes(view), error))
        return false;
    const struct image kept = image_packed(view, memory->bytes);
    const bool takes = pipeline->has_input;
    pipeline->has_input = true;
    return device_copy_samples(pipeline->device, takes ? &kept : view, takes ? view : &kept, NULL, error);
}

/* Queue the picture's way to the device. It may also fail without an error, because there is no image, or none that is
 * opaque. *RESULT says so. */
static bool queue_input(struct pipeline_run *run, struct group *group, enum run_result *result, struct error *error)
{
    struct gpu_picture *picture = group->pictures[0];
    struct pipeline *pipeline = run->pipeline;
    bool is_opaque = true;
    if (run->is_decoded)
        return true;
    const bool shares = run->shares_input && is_encoded(picture->in), takes = shares && pipeline->has_input;
    if (!takes && (!group_decode(group, error) || !group_decoded(group, error)))
        return false;
    if (!takes && !picture->is_done) {
        *result = RUN_NEEDS_SAMPLES;
        return false;
    }
    if (shares && !share_input(pipeline, &picture->view, error))
        return false;
    if (run->expects_opaque && is_encoded(picture->in) &&
        !device_is_opaque(run->pipeline->device, &picture->view, &is_opaque, error))
        return false;
    if (!is_opaque) {
        run->is_decoded = true;
        *result = RUN_TRANSLUCENT;
    }
    return is_opaque;
}

/* ---- An image ---- */

/* Queue all but the way back. */
static bool queue_image(struct pipeline_run *run, struct group *group, struct gpu_image *gpu, enum run_result *result,
                        struct error *error)
{
    return gpu_mark(run, MARK_BEGIN, error) && queue_input(run, group, result, error) &&
           gpu_mark(run, MARK_INPUT, error) && gpu_filter(run, gpu, group->pictures[0], error);
}

/* Choose the host's memory for the result, unless it has some: the image's own, or *ASIDE where the CPU may take over
 * or the result is larger. */
static bool choose_memory(const struct pipeline_run *run, const struct end *in, struct image *result, uint8_t **aside,
                          struct error *error)
{
    const bool fits = !is_encoded(in) && image_bytes(result) <= image_bytes(in->image);
    if (result->samples != NULL)
        return true;
    if (!fits || run->recipe->choice == CHOICE_AUTO)
        *aside = malloc(image_bytes(result));
    result->samples = *aside != NULL ? *aside : fits ? in->image->samples : NULL;
    return result->samples != NULL || error_no_memory(error, "%d x %d pixels", result->width, result->height);
}

/* Bring the result to its end. */
static bool fetch_output(struct pipeline_run *run, struct group *group, struct error *error)
{
    return group_encode(group, error) && group_encoded(group, error) && gpu_mark(run, MARK_OUTPUT, error) &&
           device_wait(run->pipeline->device, error);
}

/* Add the times of the phases on the device, by the device's own clock. */
static bool add_device_times(struct pipeline_run *run, const struct end *in, const struct end *out, struct error *error)
{
    const enum phase phases[MARK_COUNT] = {
        [MARK_INPUT] = is_encoded(in) ? PHASE_DECODE : PHASE_UPLOAD,
        [MARK_SPLIT] = PHASE_SPLIT,
        [MARK_LOCK] = PHASE_WAIT,
        [MARK_CONVOLVE] = PHASE_CONVOLVE,
        [MARK_MERGE] = PHASE_MERGE,
        [MARK_OUTPUT] = is_encoded(out) ? PHASE_ENCODE : PHASE_DOWNLOAD,
    };
    for (int mark = MARK_INPUT; mark <= MARK_OUTPUT && run->pipeline->resources->shared == NULL; mark++) {
        if (mark == MARK_LOCK && run->pipeline->resources->constant_memory == NULL)
            continue; /* there was no lock to wait for */
        float milliseconds;
        if (!device_elapsed(run->pipeline->device, mark - 1, mark, &milliseconds, error))
            return false;
        run->phases->milliseconds[phases[mark]] += (double)milliseconds;
    }
    run->phases->last = clock_milliseconds();
    return true;
}

/* If RESULT is in the memory of IMAGE, or ASIDE, which replaces that, let IMAGE be the result. */
static void keep_result(struct image *image, const struct image *result, uint8_t *aside)
{
    if (aside != NULL) {
        free(image->samples);
        image->samples = aside;
    }
    if (result->samples == image->samples) {
        image->width = result->width;
        image->height = result->height;
        image->channels = result->channels;
    }
}

/* As run_on_gpu, for samples without padding and for encoded ends. */
static enum run_result run_packed(struct pipeline_run *run, const struct end *in, struct end *out, bool *is_intact,
                                  struct error *error)
{
    const struct resources *resources = run->pipeline->resources;
    struct image *image = in->image, *result = out->image;
    uint8_t *aside = NULL; /* the result, where it must not overwrite the image */
    struct workspace *memory = run->pipeline->memory;
    struct image input = *image; /* what is uploaded: the image, or its page-locked copy */
    struct end from = *in;
    struct gpu_picture picture = {.out = out}, *pictures[] = {&picture};
    struct group group = {0};
    struct gpu_image gpu = {0};
    enum run_result failure = RUN_FAILED;
    const bool decodes = is_encoded(in), encodes = is_encoded(out),
               locks = resources->page_locked && !(decodes && encodes);
    size_t size;
    if (!gpu_open(run, error))
        return RUN_FAILED;
    *result = *image;
    result->samples = NULL;
    if (run->produced_channels > 0)
        result->channels = run->produced_channels;
    bool done = recipe_resize(run->recipe, &run->work, result, error) &&
                gpu_reserve(run, image, 1, &gpu, &size, error) &&
                (!locks || device_reserve(run->pipeline->device, &memory[MEMORY_LOCKED], gpu.largest, error));
    phases_end(run->phases, PHASE_BUFFERS);
    if (done && locks)
        result->samples = memory[MEMORY_LOCKED].bytes;
    if (done && locks && !decodes) {
        input.samples = memcpy(result->samples, image->samples, image_bytes(image));
        phases_end(run->phases, PHASE_UPLOAD);
    }
    from.image = &input;
    pictures[0]->in = &from;
    pictures[0]->view = image_packed(image, memory[MEMORY_IMAGE].bytes);
    /* A kernel that fails shows at the wait, before the download overwrites the image. */
    done = done && group_open(run->pipeline, 0, pictures, 1, &group, error) &&
           queue_image(run, &group, &gpu, &failure, error) &&
           (resources->shared != NULL || device_wait(run->pipeline->device, error)) &&
           (encodes || choose_memory(run, in, result, &aside, error));
    if (done) {
        *is_intact = encodes || result->samples != image->samples;
        done = fetch_output(run, &group, error) && add_device_times(run, in, out, error);
    }
    group_close(&group);
    /* The caller may free the image now: wait for what still reads it. */
    if (!done)
        device_wait(run->pipeline->device, NULL);
    if (gpu.reads_taps)
        pthread_rwlock_unlock(&resources->constant_memory->lock);
    if (done)
        keep_result(image, result, aside);
    else
        free(aside);
    if (!done)
        result->samples = NULL;
    return done ? RUN_DONE : failure;
}

/* As run_on_gpu, for samples that may have strides, by way of a copy without padding. */
static enum run_result run_copy(struct pipeline_run *run, const struct image *in, const struct image *out,
                                struct error *error)
{
    struct image copy, filtered;
    bool is_intact;
    if (!image_allocate(&copy, in->width, in->height, in->channels, in->bits, error))
        return RUN_FAILED;
    image_copy(in, &copy);
    const struct end from = {.kind = END_HOST, .image = &copy};
    struct end to = {.kind = END_HOST, .image = &filtered};
    const enum run_result result = run_packed(run, &from, &to, &is_intact, error);
    if (result == RUN_DONE)
        image_copy(&filtered, out);
    image_free(&copy);
    return result;
}

enum run_result run_on_gpu(struct pipeline_run *run, const struct end *in, struct end *out, bool *is_intact,
                           struct error *error)
{
    struct device *device = run->pipeline->device;
    const struct resources *resources = run->pipeline->resources;
    *is_intact = in->kind != END_DEVICE;
    if (in->kind == END_JPEG && out->kind == END_JPEG && batcher_takes(run))
        return batcher_run(run, in, out, error);
    if (resources->shared == NULL)
        return run_packed(run, in, out, is_intact, error);
    if (!device_enter(device, resources->stream, error))
        return RUN_FAILED;
    const enum run_result result = in->kind == END_DEVICE ? run_on_device(run, in->image, out->image, error)
                                                          : run_copy(run, in->image, out->image, error);
    return device_leave(device, result != RUN_FAILED ? error : NULL) ? result : RUN_FAILED;
}
