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
        return error_set(error, ERROR_NO_GPU, "there is no GPU %d, only %d of them, counted from 0 (gpuconv --devices)",
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
    free(pipeline->gathered);
    pipeline->gathered = NULL;
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

struct image gpu_decoded_shape(const struct end *in)
{
    struct image decoded = *in->image;
    if (in->kind == END_JPEG) {
        decoded.width = in->jpeg.width;
        decoded.height = in->jpeg.height;
        decoded.bits = 8;
    } else if (in->kind == END_PNG) {
        decoded.width = in->png.width;
        decoded.height = in->png.height;
        decoded.bits = in->png.bits > 8 ? 16 : 8;
    }
    return decoded;
}

/* Reserve what decoding and encoding need besides, for an image like RESULT after the filters. A JPEG has 8 bits. One
 * buffer serves both: the decoded image is filtered before it is encoded. */
static bool reserve_codecs(struct pipeline *pipeline, const struct end *in, const struct end *out,
                           struct gpu_image *gpu, struct error *error)
{
    const struct image *image = in->image;
    const bool has_jpeg = in->kind == END_JPEG || out->kind == END_JPEG;
    const bool has_png = in->kind == END_PNG || out->kind == END_PNG;
    struct image *decoded = &gpu->decoded, *encoded = &gpu->encoded;
    *decoded = gpu_decoded_shape(in);
    *encoded = *out->image;
    decoded->samples = encoded->samples = gpu->image.samples;
    encoded->bits = out->kind == END_JPEG ? 8 : image->bits;
    const bool is_turned = decoded->bits != image->bits || (is_encoded(in) && in->orientation > 1);
    const bool is_reduced = encoded->bits != image->bits;
    const size_t before = is_turned ? image_bytes(decoded) : 0, after = is_reduced ? image_bytes(encoded) : 0;
    struct workspace *memory = &pipeline->memory[MEMORY_DECODED];
    if (!device_reserve(pipeline->device, memory, before > after ? before : after, error))
        return false;
    if (is_turned)
        decoded->samples = memory->bytes;
    if (is_reduced)
        encoded->samples = memory->bytes;
    return (!has_jpeg || pipeline->jpegs[0] != NULL ||
            device_jpeg_open(pipeline->device, MARK_COUNT, &pipeline->jpegs[0], error)) &&
           (!has_png || pipeline->png != NULL || device_png_open(pipeline->device, &pipeline->png, error));
}

/* Reserve all that the image needs on its way. */
static bool reserve_all(struct pipeline_run *run, const struct end *in, const struct end *out, struct gpu_image *gpu,
                        struct error *error)
{
    struct workspace *memory = run->pipeline->memory;
    const bool has_samples = !is_encoded(in) || !is_encoded(out);
    if (!gpu_reserve(run, in->image, gpu, error) ||
        !device_reserve(run->pipeline->device, &memory[MEMORY_IMAGE], gpu->largest, error))
        return false;
    gpu->image.samples = memory[MEMORY_IMAGE].bytes;
    return reserve_codecs(run->pipeline, in, out, gpu, error) &&
           (!run->pipeline->resources->page_locked || !has_samples ||
            device_reserve(run->pipeline->device, &memory[MEMORY_LOCKED], gpu->largest, error));
}

/* ---- Encoded input and output ---- */

/* Decode to SAMPLES. *IS_DECODED is false if the CPU has to do it. */
static bool decode_scan(struct device_jpeg *jpeg, const struct end *in, uint8_t *samples, bool *is_decoded,
                        struct error *error)
{
    const struct jpeg_input input = {.layout = &in->jpeg, .scan = in->scan, .samples = samples};
    if (!device_jpeg_reserve(jpeg, &input, 1, error))
        return false;
    device_jpeg_load(jpeg, 0);
    return device_jpeg_decode(jpeg, error) && device_jpeg_decoded(jpeg, is_decoded, error);
}

bool gpu_decode_stream(struct device_png *png, const struct end *in, uint8_t *samples, bool *is_decoded,
                       struct error *error)
{
    uint8_t *data;
    if (!device_png_reserve(png, in->stream.size, &data, error))
        return false;
    png_stream_copy(&in->stream, 0, in->stream.size, data);
    return device_png_decode(png, &in->png, samples, error) && device_png_decoded(png, is_decoded, error);
}

/* Decode to the GPU's image. *RESULT is as for queue_input. */
static bool decode_to_gpu(struct pipeline *pipeline, const struct end *in, const struct gpu_image *gpu,
                          enum run_result *result, struct error *error)
{
    const struct image *decoded = &gpu->decoded;
    bool is_decoded;
    if (!(in->kind == END_PNG ? gpu_decode_stream(pipeline->png, in, decoded->samples, &is_decoded, error)
                              : decode_scan(pipeline->jpegs[0], in, decoded->samples, &is_decoded, error)))
        return false;
    if (!is_decoded)
        *result = RUN_NEEDS_SAMPLES;
    return is_decoded && (decoded->samples == gpu->image.samples ||
                          device_orient(pipeline->device, decoded, in->orientation, &gpu->image, error));
}

/* Queue the image's way to the device. It may also fail without an error, because there is no image, or none that is
 * opaque. *RESULT says so. */
static bool queue_input(struct pipeline_run *run, const struct end *in, const struct gpu_image *gpu,
                        enum run_result *result, struct error *error)
{
    struct device *device = run->pipeline->device;
    const bool is_locked = run->pipeline->resources->page_locked;
    bool is_opaque = true;
    if (!is_encoded(in))
        return device_upload(device, gpu->image.samples,
                             is_locked ? run->pipeline->memory[MEMORY_LOCKED].bytes : in->image->samples,
                             image_bytes(in->image), error);
    if (run->is_decoded)
        return true;
    if (!decode_to_gpu(run->pipeline, in, gpu, result, error) ||
        (run->expects_opaque && !device_is_opaque(device, &gpu->image, &is_opaque, error)))
        return false;
    if (!is_opaque) {
        run->is_decoded = true;
        *result = RUN_TRANSLUCENT;
    }
    return is_opaque;
}

bool gpu_encode_png(struct pipeline *pipeline, const struct image *image, struct end *out, struct error *error)
{
    const struct png_layout layout = {
        .width = image->width, .height = image->height, .channels = image->channels, .bits = image->bits};
    return device_png_encode(pipeline->png, &layout, image->samples, error) &&
           device_png_encoded(pipeline->png, out->head.size, &out->data, &out->size, &out->adler, error);
}

/* Encode the GPU's image, and download the data. */
static bool encode_from_gpu(struct pipeline *pipeline, const struct gpu_image *gpu, struct end *out,
                            struct error *error)
{
    const struct image *image = &gpu->image, *encoded = &gpu->encoded;
    if (encoded->samples != image->samples && !device_orient(pipeline->device, image, 1, encoded, error))
        return false;
    if (out->kind == END_PNG)
        return gpu_encode_png(pipeline, encoded, out, error);
    const struct jpeg_output output = {
        .layout = &out->jpeg, .samples = encoded->samples, .channels = encoded->channels, .margin = out->head.size};
    struct jpeg_scan scan;
    if (!device_jpeg_encode(pipeline->jpegs[0], &output, 1, error) ||
        !device_jpeg_encoded(pipeline->jpegs[0], &scan, error))
        return false;
    out->data = (uint8_t *)scan.bytes;
    out->size = scan.size;
    return true;
}

/* ---- An image ---- */

/* Queue all but the way back. */
static bool queue_image(struct pipeline_run *run, const struct end *in, const struct end *out, struct gpu_image *gpu,
                        enum run_result *result, struct error *error)
{
    const struct image from = gpu->image;
    struct image to = *out->image;
    to.samples = from.samples;
    if (!gpu_mark(run, MARK_BEGIN, error) || !queue_input(run, in, gpu, result, error) ||
        !gpu_mark(run, MARK_INPUT, error))
        return false;
    return gpu_queue(run, &from, &to, gpu, error);
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

/* Bring the result to OUT. */
static bool fetch_output(struct pipeline_run *run, struct end *out, const struct gpu_image *gpu, struct error *error)
{
    const struct image *image = out->image;
    return (is_encoded(out) ? encode_from_gpu(run->pipeline, gpu, out, error)
                            : device_download(run->pipeline->device, image->samples,
                                              run->pipeline->memory[MEMORY_IMAGE].bytes, image_bytes(image), error)) &&
           gpu_mark(run, MARK_OUTPUT, error) && device_wait(run->pipeline->device, error);
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

/* As run_on_gpu, for samples without padding and for encoded ends. */
static enum run_result run_packed(struct pipeline_run *run, const struct end *in, struct end *out, bool *is_intact,
                                  struct error *error)
{
    const struct resources *resources = run->pipeline->resources;
    struct image *image = in->image, *result = out->image;
    uint8_t *aside = NULL; /* the result, where it must not overwrite the image */
    struct gpu_image gpu = {0};
    enum run_result failure = RUN_FAILED;
    const bool decodes = is_encoded(in), encodes = is_encoded(out);
    if (!gpu_open(run, error))
        return RUN_FAILED;
    *result = *image;
    result->samples = NULL;
    bool done = recipe_resize(run->recipe, &run->work, result, error) && reserve_all(run, in, out, &gpu, error);
    phases_end(run->phases, PHASE_BUFFERS);
    if (done && resources->page_locked && (!decodes || !encodes)) {
        result->samples = run->pipeline->memory[MEMORY_LOCKED].bytes;
        if (!decodes) {
            memcpy(result->samples, image->samples, image_bytes(image));
            phases_end(run->phases, PHASE_UPLOAD);
        }
    }
    /* A kernel that fails shows at the wait, before the download overwrites the image. */
    done = done && queue_image(run, in, out, &gpu, &failure, error) &&
           (resources->shared != NULL || device_wait(run->pipeline->device, error)) &&
           (encodes || choose_memory(run, in, result, &aside, error));
    if (done) {
        *is_intact = encodes || result->samples != image->samples;
        done = fetch_output(run, out, &gpu, error) && add_device_times(run, in, out, error);
    }
    /* The caller may free the image now: wait for what still reads it. */
    if (!done)
        device_wait(run->pipeline->device, NULL);
    if (gpu.reads_taps)
        pthread_rwlock_unlock(&resources->constant_memory->lock);
    if (done && aside != NULL) {
        free(image->samples);
        image->samples = aside;
    } else {
        free(aside);
    }
    if (done && result->samples == image->samples) {
        image->width = result->width;
        image->height = result->height;
    }
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
    if (in->kind == END_JPEG && out->kind == END_JPEG && gather_takes(run))
        return gather_run(run, in, out, error);
    if (resources->shared == NULL)
        return run_packed(run, in, out, is_intact, error);
    if (!device_enter(device, resources->stream, error))
        return RUN_FAILED;
    const enum run_result result = in->kind == END_DEVICE ? run_on_device(run, in->image, out->image, error)
                                                          : run_copy(run, in->image, out->image, error);
    return device_leave(device, result != RUN_FAILED ? error : NULL) ? result : RUN_FAILED;
}
