/* SPDX-License-Identifier: MIT
 *
 * The pipeline on a GPU: upload, split, filters, merge, download, queued on one stream. Where the image is a JPEG or a
 * PNG before or after the filters, it is decoded or encoded there. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "image/linear.h"
#include "kernels/device/device.h"
#include "kernels/jpeg/jpeg.h"
#include "kernels/png/png.h"

#include <stdlib.h>
#include <string.h>

const bool pipeline_has_cuda = true;

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

bool gpu_open(struct pipeline *pipeline, struct error *error)
{
    const struct resources *resources = pipeline->resources;
    if (pipeline->device == NULL) {
        if (!gpu_start_wait(resources->start, GPU_CONTEXT, error) ||
            !device_open(resources->device, &pipeline->device, error))
            return false;
        phases_end(pipeline->phases, PHASE_CONTEXT);
    }

    const struct device_info *info = device_get_info(pipeline->device);
    for (size_t i = 0; i < pipeline->recipe->chain->count; i++) {
        const struct variant *variant = pipeline->planned->plans[i].variant;
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
    if (pipeline->device == NULL)
        return;
    for (int i = 0; i < MEMORY_COUNT; i++)
        device_release(pipeline->device, &pipeline->memory[i]);
    device_jpeg_close(pipeline->jpeg);
    device_png_close(pipeline->png);
    pipeline->jpeg = NULL;
    pipeline->png = NULL;
}

bool gpu_upload_linear(struct pipeline *pipeline, const struct linear **on_device, struct error *error)
{
    const struct linear *linear = pipeline->linear;
    struct workspace *memory = &pipeline->memory[MEMORY_LINEAR];
    *on_device = NULL;
    if (linear == NULL)
        return true;
    if (memory->bytes == NULL || pipeline->device_serial != linear->version) {
        pipeline->device_serial = 0; /* of no tables, until these are there */
        if (!device_reserve(pipeline->device, memory, linear_bytes(linear), error) ||
            !device_upload(pipeline->device, memory->bytes, linear, linear_bytes(linear), error))
            return false;
        pipeline->device_serial = linear->version;
    }
    *on_device = (const struct linear *)memory->bytes;
    return true;
}

/* Is the end compressed? */
static bool is_encoded(const struct end *end)
{
    return end->kind == END_JPEG || end->kind == END_PNG;
}

/* The shape of the image that the decoder makes: not yet upright, and with its own depth. */
static struct image decoded_shape(const struct end *in)
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
                           struct gpu_image *workspace, struct error *error)
{
    const struct image *image = in->image;
    const bool has_jpeg = in->kind == END_JPEG || out->kind == END_JPEG;
    const bool has_png = in->kind == END_PNG || out->kind == END_PNG;
    struct image *decoded = &workspace->decoded, *encoded = &workspace->encoded;
    *decoded = decoded_shape(in);
    *encoded = *out->image;
    decoded->samples = encoded->samples = workspace->image.samples;
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
    return (!has_jpeg || pipeline->jpeg != NULL || device_jpeg_open(pipeline->device, &pipeline->jpeg, error)) &&
           (!has_png || pipeline->png != NULL || device_png_open(pipeline->device, &pipeline->png, error));
}

size_t gpu_lay_out(const struct pipeline *pipeline, const struct image *image, struct plane *planes)
{
    struct plane own;
    const size_t size =
        device_plane_layout(pipeline->work.sample, image->width, image->height, pipeline->work.planes, 0, &own);
    own.data = planes->data;
    *planes = own;
    return size;
}

void gpu_find_largest(const struct pipeline *pipeline, const struct image *image, size_t *planes, size_t *samples)
{
    struct image shape = *image;
    *planes = *samples = 0;
    for (size_t i = 0; i <= pipeline->recipe->chain->count; i++) {
        struct plane unused = {0};
        const size_t own = gpu_lay_out(pipeline, &shape, &unused), bytes = image_bytes(&shape);
        *planes = own > *planes ? own : *planes;
        *samples = bytes > *samples ? bytes : *samples;
        if (i < pipeline->recipe->chain->count)
            filter_resize(&pipeline->recipe->chain->filters[i], &shape.width, &shape.height, NULL);
    }
}

static bool reserve_workspace(struct pipeline *pipeline, const struct end *in, const struct end *out,
                              struct gpu_image *workspace, struct error *error)
{
    struct device *device = pipeline->device;
    const struct image *image = in->image;
    const bool has_samples = !is_encoded(in) || !is_encoded(out);
    size_t plane_bytes, sample_bytes;
    gpu_find_largest(pipeline, image, &plane_bytes, &sample_bytes);
    bool done = gpu_upload_linear(pipeline, &workspace->linear, error) &&
                device_reserve(device, &pipeline->memory[MEMORY_IMAGE], sample_bytes, error);
    for (int i = 0; done && i < 2; i++) {
        struct workspace *memory = &pipeline->memory[i == 0 ? MEMORY_PLANES : MEMORY_OTHER_PLANES];
        const size_t before = memory->size;
        done = device_reserve(device, memory, plane_bytes, error);
        /* Kernels read whole words, so also bytes after a row. No output depends on these, but initcheck reports
         * them. */
        if (done && memory->size > before)
            done = device_fill(device, memory->bytes, 0, memory->size, error);
        workspace->planes[i].data = memory->bytes;
        gpu_lay_out(pipeline, image, &workspace->planes[i]);
    }
    workspace->image = *image;
    workspace->image.samples = pipeline->memory[MEMORY_IMAGE].bytes;
    return done && reserve_codecs(pipeline, in, out, workspace, error) &&
           (!pipeline->resources->page_locked || !has_samples ||
            device_reserve(device, &pipeline->memory[MEMORY_LOCKED], sample_bytes, error));
}

/* ---- Encoded input and output ---- */

/* Decode to SAMPLES. *IS_DECODED is false if the CPU has to do it. */
static bool decode_scan(struct device_jpeg *jpeg, const struct end *in, uint8_t *samples, bool *is_decoded,
                        struct error *error)
{
    return device_jpeg_load(jpeg, &in->jpeg, &in->scan, error) && device_jpeg_decode(jpeg, &in->jpeg, samples, error) &&
           device_jpeg_decoded(jpeg, is_decoded, error);
}

static bool decode_stream(struct device_png *png, const struct end *in, uint8_t *samples, bool *is_decoded,
                          struct error *error)
{
    uint8_t *data;
    if (!device_png_reserve(png, in->stream.size, &data, error))
        return false;
    png_stream_copy(&in->stream, 0, in->stream.size, data);
    return device_png_decode(png, &in->png, samples, error) && device_png_decoded(png, is_decoded, error);
}

/* Decode to the workspace's image. *RESULT is as for queue_input. */
static bool decode_image(struct pipeline *pipeline, const struct end *in, const struct gpu_image *workspace,
                         enum run_result *result, struct error *error)
{
    const struct image *decoded = &workspace->decoded;
    bool is_decoded;
    if (!(in->kind == END_PNG ? decode_stream(pipeline->png, in, decoded->samples, &is_decoded, error)
                              : decode_scan(pipeline->jpeg, in, decoded->samples, &is_decoded, error)))
        return false;
    if (!is_decoded)
        *result = RUN_NEEDS_SAMPLES;
    return is_decoded && (decoded->samples == workspace->image.samples ||
                          device_orient(pipeline->device, decoded, in->orientation, &workspace->image, error));
}

/* Queue the image's way to the device. It may also fail without an error, because there is no image, or none that is
 * opaque. *RESULT says so. */
static bool queue_input(struct pipeline *pipeline, const struct end *in, const void *samples,
                        const struct gpu_image *workspace, enum run_result *result, struct error *error)
{
    struct device *device = pipeline->device;
    bool is_opaque = true;
    if (!is_encoded(in))
        return device_upload(device, workspace->image.samples, samples, image_bytes(in->image), error);
    if (pipeline->is_decoded)
        return true;
    if (!decode_image(pipeline, in, workspace, result, error) ||
        (pipeline->expects_opaque && !device_is_opaque(device, &workspace->image, &is_opaque, error)))
        return false;
    if (!is_opaque) {
        pipeline->is_decoded = true;
        *result = RUN_TRANSLUCENT;
    }
    return is_opaque;
}

/* Encode the workspace's image, and download the data. */
static bool encode_image(struct pipeline *pipeline, const struct gpu_image *workspace, struct end *out,
                         struct error *error)
{
    const struct image *image = &workspace->image, *encoded = &workspace->encoded;
    if (encoded->samples != image->samples && !device_orient(pipeline->device, image, 1, encoded, error))
        return false;
    return out->kind == END_PNG ? device_png_encode(pipeline->png, encoded, error) &&
                                      device_png_encoded(pipeline->png, &out->data, &out->size, &out->adler, error)
                                : device_jpeg_encode(pipeline->jpeg, &out->jpeg, encoded, error) &&
                                      device_jpeg_encoded(pipeline->jpeg, &out->data, &out->size, error);
}

/* ---- Filters ---- */

/* Marks on the device's stream: one at the end of each phase, MARK_BEGIN before the first, and MARK_LOCK once the lock
 * of constant memory is held. */
enum mark { MARK_BEGIN, MARK_INPUT, MARK_SPLIT, MARK_LOCK, MARK_CONVOLVE, MARK_MERGE, MARK_OUTPUT, MARK_COUNT };

/* Queue a filter, and before it the upload of its taps if UPLOADS. */
static bool queue_filter(struct pipeline *pipeline, size_t number, const struct plane *from, const struct plane *to,
                         bool uploads, struct error *error)
{
    struct device *device = pipeline->device;
    struct plan *plan = &pipeline->planned->plans[number];
    if (pipeline->planned->taps == NULL)
        return (!uploads || variant_prepare(plan, device, error)) && variant_launch(plan, device, from, to, error);
    if (!device_use_taps(device, pipeline->planned->taps[number], error))
        return false;
    const bool done = variant_launch(plan, device, from, to, error);
    return device_end_taps(device, done ? error : NULL) && done;
}

/* Let the workspace's image and PLANES have the size of what filter NUMBER makes. */
static void resize_workspace(const struct pipeline *pipeline, size_t number, struct gpu_image *workspace,
                             struct plane *planes)
{
    struct image *image = &workspace->image;
    const int count = planes->count;
    filter_resize(&pipeline->recipe->chain->filters[number], &image->width, &image->height, NULL);
    if (planes->width == image->width && planes->height == image->height)
        return;
    gpu_lay_out(pipeline, image, planes);
    planes->count = count;
}

bool gpu_merge_after(struct pipeline *pipeline, size_t number, const struct plane *planes,
                     const struct gpu_image *workspace, struct error *error)
{
    const enum alpha alpha = recipe_alpha(pipeline->recipe, pipeline->effective_alpha, number);
    const struct image *image = &workspace->image;
    return (workspace->linear == NULL || !step_table[pipeline->recipe->chain->filters[number].kind].resizes ||
            device_fill(pipeline->device, image->samples, 0, image_bytes(image), error)) &&
           device_merge(pipeline->device, planes, alpha, workspace->linear, image, error);
}

/* Copy the planes after those that a filter has read FROM and written TO: alpha that it keeps. */
static bool copy_planes(const struct pipeline *pipeline, const struct plane *from, const struct plane *to,
                        struct error *error)
{
    const int count = pipeline->work.planes - from->count;
    return count == 0 || device_copy(pipeline->device, plane_row(to, to->count, 0), plane_row(from, from->count, 0),
                                     (size_t)count * from->plane_bytes, error);
}

bool gpu_queue_filters(struct pipeline *pipeline, const struct image *image, struct gpu_image *workspace, bool uploads,
                       int *in, struct error *error)
{
    const struct recipe *recipe = pipeline->recipe;
    struct device *device = pipeline->device;
    const bool has_image = workspace->image.samples != NULL;
    const bool merges = has_image && recipe_merges_between(recipe, pipeline->effective_alpha, image);
    *in = 0;
    for (size_t i = 0; i < recipe->chain->count; i++, *in = !*in) {
        const enum alpha alpha = recipe_alpha(recipe, pipeline->effective_alpha, i);
        struct plane *from = &workspace->planes[*in], *to = &workspace->planes[!*in];
        if (i > 0 && merges && !gpu_merge_after(pipeline, i - 1, from, workspace, error))
            return false;
        from->count = to->count = image_planes(image, alpha);
        if (i > 0 && merges && !device_split(device, &workspace->image, alpha, workspace->linear, from, error))
            return false;
        resize_workspace(pipeline, i, workspace, to);
        if (!queue_filter(pipeline, i, from, to, uploads, error))
            return false;
        if (!has_image && recipe->chain->count > 1 && !copy_planes(pipeline, from, to, error))
            return false;
    }
    return true;
}

/* Are the taps of the only filter where its kernels read them? */
static bool has_taps(const struct pipeline *pipeline)
{
    const struct constant_memory *memory = pipeline->resources->constant_memory;
    const struct planned *planned = pipeline->planned;
    return pipeline->uploaded == planned && memory->variant == planned->plans[0].variant &&
           memory->sample == planned->sample && recipe_equal(&memory->recipe, &planned->recipe);
}

/* Note whose taps constant memory has now: those of the only filter, or parts of several. Its lock is held. */
static void note_upload(struct pipeline *pipeline, bool is_whole)
{
    struct constant_memory *memory = pipeline->resources->constant_memory;
    struct planned *planned = pipeline->planned;
    pipeline->uploaded = is_whole ? planned : NULL;
    memory->variant = is_whole ? planned->plans[0].variant : NULL;
    memory->sample = planned->sample;
    chain_keep(planned->recipe.chain);
    chain_release(memory->recipe.chain);
    memory->recipe = planned->recipe;
}

/* Run the filters. All streams of a GPU share its constant memory. If this pipeline's taps are there, hold the lock for
 * reading until the image is done. Otherwise hold it alone, from the upload of the first taps until the last kernel
 * ends. Drain this stream before, so that no other pipeline waits for this image's upload. */
static bool run_filters(struct pipeline *pipeline, const struct image *image, struct gpu_image *workspace, int *in,
                        struct error *error)
{
    struct device *device = pipeline->device;
    struct constant_memory *memory = pipeline->resources->constant_memory;
    bool uploads = true;
    if (memory != NULL) {
        pthread_rwlock_rdlock(&memory->lock);
        uploads = !has_taps(pipeline);
        workspace->reads_taps = !uploads;
        if (uploads) {
            pthread_rwlock_unlock(&memory->lock);
            if (!device_wait(device, error))
                return false;
            pthread_rwlock_wrlock(&memory->lock);
        }
    }
    bool done = device_mark(device, MARK_LOCK, error) &&
                gpu_queue_filters(pipeline, image, workspace, uploads, in, error) &&
                device_mark(device, MARK_CONVOLVE, error);
    if (memory != NULL && uploads) {
        done = device_wait(device, done ? error : NULL) && done;
        note_upload(pipeline, done && pipeline->recipe->chain->count == 1);
        pthread_rwlock_unlock(&memory->lock);
    }
    return done;
}

/* ---- An image ---- */

/* Queue all but the way back. */
static bool queue_image(struct pipeline *pipeline, const struct end *in, const void *samples,
                        struct gpu_image *workspace, enum run_result *result, struct error *error)
{
    const struct recipe *recipe = pipeline->recipe;
    const struct image *image = in->image;
    const enum alpha first = recipe_alpha(recipe, pipeline->effective_alpha, 0);
    struct device *device = pipeline->device;
    int planes;
    workspace->planes[0].count = image_planes(image, first);
    return device_mark(device, MARK_BEGIN, error) && queue_input(pipeline, in, samples, workspace, result, error) &&
           device_mark(device, MARK_INPUT, error) &&
           device_split(device, &workspace->image, first, workspace->linear, &workspace->planes[0], error) &&
           device_mark(device, MARK_SPLIT, error) && run_filters(pipeline, image, workspace, &planes, error) &&
           gpu_merge_after(pipeline, recipe->chain->count - 1, &workspace->planes[planes], workspace, error) &&
           device_mark(device, MARK_MERGE, error);
}

/* Bring the result to OUT. */
static bool fetch_output(struct pipeline *pipeline, struct end *out, const struct gpu_image *workspace,
                         struct error *error)
{
    struct device *device = pipeline->device;
    const struct image *image = &workspace->image;
    return (is_encoded(out)
                ? encode_image(pipeline, workspace, out, error)
                : device_download(device, out->image->samples, image->samples, image_bytes(image), error)) &&
           device_mark(device, MARK_OUTPUT, error) && device_wait(device, error);
}

/* Add the times of the phases on the device, by the device's own clock. */
static bool add_device_times(struct pipeline *pipeline, const struct end *in, const struct end *out,
                             struct error *error)
{
    const enum phase phases[MARK_COUNT] = {
        [MARK_INPUT] = is_encoded(in) ? PHASE_DECODE : PHASE_UPLOAD,
        [MARK_SPLIT] = PHASE_SPLIT,
        [MARK_LOCK] = PHASE_WAIT,
        [MARK_CONVOLVE] = PHASE_CONVOLVE,
        [MARK_MERGE] = PHASE_MERGE,
        [MARK_OUTPUT] = is_encoded(out) ? PHASE_ENCODE : PHASE_DOWNLOAD,
    };
    for (int mark = MARK_INPUT; mark <= MARK_OUTPUT; mark++) {
        if (mark == MARK_LOCK && pipeline->resources->constant_memory == NULL)
            continue; /* there was no lock to wait for */
        float milliseconds;
        if (!device_elapsed(pipeline->device, mark - 1, mark, &milliseconds, error))
            return false;
        pipeline->phases->milliseconds[phases[mark]] += (double)milliseconds;
    }
    pipeline->phases->last = clock_milliseconds();
    return true;
}

enum run_result run_on_gpu(struct pipeline *pipeline, const struct end *in, struct end *out, bool *is_intact,
                           struct error *error)
{
    struct device *device = pipeline->device;
    const struct resources *resources = pipeline->resources;
    struct image *image = in->image, *result = out->image;
    uint8_t *aside = NULL; /* the result, where it must not overwrite the image */
    struct gpu_image workspace = {0};
    enum run_result failure = RUN_FAILED;
    const bool decodes = is_encoded(in), encodes = is_encoded(out);
    *is_intact = true;
    *result = *image;
    bool done =
        recipe_resize(pipeline->recipe, result, error) && reserve_workspace(pipeline, in, out, &workspace, error);
    phases_end(pipeline->phases, PHASE_BUFFERS);
    if (done && resources->page_locked && (!decodes || !encodes)) {
        result->samples = pipeline->memory[MEMORY_LOCKED].bytes;
        if (!decodes) {
            memcpy(result->samples, image->samples, image_bytes(image));
            phases_end(pipeline->phases, PHASE_UPLOAD);
        }
    }
    /* A kernel that fails shows at the wait, before the download overwrites the image. */
    done =
        done && queue_image(pipeline, in, result->samples, &workspace, &failure, error) && device_wait(device, error);
    if (done) {
        if (!encodes && !resources->page_locked &&
            (decodes || pipeline->recipe->choice == CHOICE_AUTO || image_bytes(result) > image_bytes(image)))
            aside = malloc(image_bytes(result));
        if (aside != NULL)
            result->samples = aside;
        *is_intact = encodes || result->samples != image->samples;
        done = (encodes || result->samples != NULL ||
                error_no_memory(error, "%d x %d pixels", result->width, result->height)) &&
               fetch_output(pipeline, out, &workspace, error) && add_device_times(pipeline, in, out, error);
    }
    /* The caller may free the image now: wait for what still reads it. */
    if (!done)
        device_wait(device, NULL);
    if (workspace.reads_taps)
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
