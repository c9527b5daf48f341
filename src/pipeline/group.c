/* SPDX-License-Identifier: MIT
 *
 * Many files to and from views in the memory of a shared GPU. JPEGs are decoded and encoded in groups: each stage is
 * one launch for a group. Meanwhile the threads of the pool load the next group, or take the data of the last one. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"
#include "base/round.h"
#include "jpeg/jpeg_gpu.h"
#include "kernels/device/device.h"
#include "png/png_gpu.h"

#include <assert.h>
#include <stdlib.h>

/* A group has enough work for a GPU, and its coefficients take less than 400 MB. */
enum { GROUP_PIXELS = 1 << 26, GROUP_PICTURES = 4096, ALIGNMENT = 512 };

static_assert((int)GROUP_PICTURES <= (int)DEVICE_JPEG_COUNT_MAX, "a group is one launch");

/* ---- The way of a picture ---- */

/* Bytes of an image like SHAPE in memory that it shares with others. */
static size_t aligned_bytes(const struct image *shape)
{
    const struct image packed = image_packed(shape, NULL);
    return round_up(image_bytes(&packed), ALIGNMENT);
}

/* Must the decoded picture be turned, or change its depth? */
static bool is_converted(const struct gpu_picture *picture)
{
    return picture->end.orientation > 1 || gpu_decoded_shape(&picture->end).bits != picture->view.bits;
}

/* If the view is planes that a JPEG is decoded to, and encoded from: bytes from one to the next; else 0. */
static size_t jpeg_plane(const struct gpu_picture *picture)
{
    enum { JPEG_ALIGNMENT = 16 };
    const struct image *view = &picture->view;
    const bool is_planar = picture->end.kind == END_JPEG && !gpu_is_packed(view) && view->channels == 3 &&
                           view->bits == 8 && (uintptr_t)view->samples % JPEG_ALIGNMENT == 0 &&
                           (view->width == 1 || image_pixel_stride(view) == 1) &&
                           (view->height == 1 || image_row_stride(view) == (size_t)view->width) &&
                           image_channel_stride(view) >= (size_t)view->width * (size_t)view->height;
    return is_planar ? image_channel_stride(view) : 0;
}

/* Can it be decoded right where it belongs? */
static bool is_direct(const struct gpu_picture *picture)
{
    return (gpu_is_packed(&picture->view) || jpeg_plane(picture) > 0) && !is_converted(picture);
}

/* Bytes that it needs on its way: as it is decoded, and once it is converted. */
static size_t way_bytes(const struct gpu_picture *picture)
{
    const struct image decoded = gpu_decoded_shape(&picture->end);
    const bool is_packed = gpu_is_packed(&picture->view);
    return is_direct(picture)
               ? 0
               : aligned_bytes(&decoded) + (is_converted(picture) && !is_packed ? aligned_bytes(&picture->view) : 0);
}

/* Queue the way from the decoded samples at WAY to the view. */
static bool bring_to_view(struct pipeline *pipeline, const struct gpu_picture *picture, uint8_t *way,
                          struct error *error)
{
    const struct image shape = gpu_decoded_shape(&picture->end), decoded = image_packed(&shape, way);
    const struct image *view = &picture->view;
    if (is_direct(picture))
        return true;
    if (!is_converted(picture))
        return device_copy_samples(pipeline->device, &decoded, view, NULL, error);
    const bool is_packed = gpu_is_packed(view);
    const struct image upright = image_packed(view, is_packed ? view->samples : way + aligned_bytes(&decoded));
    return device_orient(pipeline->device, &decoded, picture->end.orientation, &upright, error) &&
           (is_packed || device_copy_samples(pipeline->device, &upright, view, NULL, error));
}

/* ---- Groups ---- */

/* JPEGs on their way. Groups with even and with odd numbers have streams and memory of their own, so that a GPU works
 * on two groups beside each other. */
struct group {
    struct pipeline *pipeline;
    const struct task *task;
    int number; /* 0 or 1 */
    struct device_jpeg *jpeg;
    struct workspace *memory; /* for what is not directly in the views */
    struct gpu_picture **pictures;
    size_t count;
    struct jpeg_input *inputs;
    struct jpeg_output *outputs;
    struct jpeg_scan *scans;
    bool *is_decoded;
};

/* What to do with each group, one after another. */
struct task {
    bool (*queue)(struct group *group, struct error *error);
    bool (*finish)(struct group *group, struct error *error); /* it waits */
    struct gpu_picture *first;                                /* the caller's pictures */
    void (*wrap)(void *context, size_t index);
    void *context;
};

/* The JPEGs among PICTURES that are not done, in their order. Release *JPEGS with free. */
static bool list_jpegs(struct gpu_picture *pictures, size_t count, struct gpu_picture ***jpegs, size_t *jpeg_count,
                       struct error *error)
{
    *jpeg_count = 0;
    *jpegs = malloc((count + 1) * sizeof **jpegs);
    if (*jpegs == NULL)
        return error_no_memory(error, "%zu pictures", count);
    for (size_t i = 0; i < count; i++)
        if (!pictures[i].is_done && pictures[i].end.kind == END_JPEG)
            (*jpegs)[(*jpeg_count)++] = &pictures[i];
    return true;
}

/* How many of the first of COUNT pictures make a group. */
static size_t group_size(struct gpu_picture *const *pictures, size_t count)
{
    size_t size = 0, pixels = 0;
    while (size < count && size < GROUP_PICTURES) {
        const struct image *view = &pictures[size]->view;
        pixels += (size_t)view->width * (size_t)view->height;
        if (size > 0 && pixels > GROUP_PIXELS)
            break;
        size++;
    }
    return size;
}

/* Begin a group of COUNT pictures. Release it with free_group. */
static bool open_group(struct pipeline *pipeline, const struct task *task, int number, struct gpu_picture **pictures,
                       size_t count, struct group *group, struct error *error)
{
    struct device_jpeg **jpeg = &pipeline->jpegs[number];
    if (*jpeg == NULL && !device_jpeg_open(pipeline->device, MARK_COUNT + number, jpeg, error))
        return false;
    *group = (struct group){.pipeline = pipeline,
                            .task = task,
                            .number = number,
                            .jpeg = *jpeg,
                            .memory = &pipeline->memory[number == 0 ? MEMORY_DECODED : MEMORY_COPY],
                            .pictures = pictures,
                            .count = count,
                            .inputs = calloc(count, sizeof *group->inputs),
                            .outputs = calloc(count, sizeof *group->outputs),
                            .scans = calloc(count, sizeof *group->scans),
                            .is_decoded = calloc(count, sizeof *group->is_decoded)};
    return (group->inputs != NULL && group->outputs != NULL && group->scans != NULL && group->is_decoded != NULL) ||
           error_no_memory(error, "%zu pictures", count);
}

/* Finish a group, if there is one. */
static bool finish_group(struct group *group, struct error *error)
{
    if (group->count == 0)
        return true;
    device_use_stream(group->pipeline->device, group->number);
    return group->task->finish(group, error);
}

static void free_group(struct group *group)
{
    free(group->inputs);
    free(group->outputs);
    free(group->scans);
    free(group->is_decoded);
    *group = (struct group){0};
}

/* Do TASK with all PICTURES. */
static bool run_groups(struct pipeline *pipeline, struct gpu_picture **pictures, size_t count, const struct task *task,
                       struct error *error)
{
    struct group groups[2] = {{0}};
    int number = 0;
    bool done = device_fork(pipeline->device, error);
    for (size_t first = 0; done && first < count; number = !number) {
        struct group *group = &groups[number];
        const size_t size = group_size(pictures + first, count - first);
        done = finish_group(group, error);
        free_group(group);
        device_use_stream(pipeline->device, number);
        done = done && open_group(pipeline, task, number, pictures + first, size, group, error) &&
               task->queue(group, error);
        first += size;
    }
    for (int i = 0; i < 2; i++, number = !number) { /* the older one first */
        done = done && finish_group(&groups[number], error);
        free_group(&groups[number]);
    }
    device_use_stream(pipeline->device, 0);
    return device_join(pipeline->device, done ? error : NULL) && done;
}

/* ---- Decode ---- */

static void load_scan(void *context, int64_t index, int thread)
{
    const struct group *group = context;
    (void)thread;
    device_jpeg_load(group->jpeg, (size_t)index);
}

/* Load a group, and queue its decoding. */
static bool queue_group_decoding(struct group *group, struct error *error)
{
    struct device *device = group->pipeline->device;
    struct thread_pool *pool = group->pipeline->resources->pool;
    size_t used = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_picture *picture = group->pictures[i];
        group->inputs[i] = (struct jpeg_input){.layout = &picture->end.jpeg, .scan = picture->end.scan};
        used += way_bytes(picture);
    }
    if (!device_reserve(device, group->memory, used, error) ||
        !device_jpeg_reserve(group->jpeg, group->inputs, group->count, error))
        return false;
    parallel_for(pool, thread_pool_threads(pool), (int64_t)group->count, load_scan, group);
    uint8_t *way = group->memory->bytes;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_picture *picture = group->pictures[i];
        group->inputs[i].samples = is_direct(picture) ? picture->view.samples : way;
        group->inputs[i].plane = is_direct(picture) ? jpeg_plane(picture) : 0;
        way += way_bytes(picture);
    }
    bool done = device_jpeg_decode(group->jpeg, error);
    for (size_t i = 0; done && i < group->count; i++)
        done = bring_to_view(group->pipeline, group->pictures[i], group->inputs[i].samples, error);
    return done;
}

/* Note which pictures are decoded. */
static bool finish_decoding(struct group *group, struct error *error)
{
    const bool done = device_jpeg_decoded(group->jpeg, group->is_decoded, error);
    for (size_t i = 0; done && i < group->count; i++)
        group->pictures[i]->is_done = group->is_decoded[i];
    return done;
}

static bool decode_png(struct pipeline *pipeline, struct gpu_picture *picture, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_DECODED];
    bool is_decoded;
    if (pipeline->png == NULL && !device_png_open(pipeline->device, &pipeline->png, error))
        return false;
    if (!device_reserve(pipeline->device, memory, way_bytes(picture), error))
        return false;
    uint8_t *samples = is_direct(picture) ? picture->view.samples : memory->bytes;
    if (!gpu_decode_stream(pipeline->png, &picture->end, samples, &is_decoded, error))
        return false;
    picture->is_done = is_decoded;
    return !is_decoded || bring_to_view(pipeline, picture, samples, error);
}

/* Upload the samples of the end, which are as those of the view. */
static bool upload(struct pipeline *pipeline, struct gpu_picture *picture, struct error *error)
{
    const struct image *image = picture->end.image, *view = &picture->view;
    struct workspace *memory = &pipeline->memory[MEMORY_DECODED];
    const bool is_packed = gpu_is_packed(view);
    if (!is_packed && !device_reserve(pipeline->device, memory, image_bytes(image), error))
        return false;
    const struct image on_device = image_packed(image, is_packed ? view->samples : memory->bytes);
    picture->is_done = true;
    return device_upload(pipeline->device, on_device.samples, image->samples, image_bytes(image), error) &&
           (is_packed || device_copy_samples(pipeline->device, &on_device, view, NULL, error));
}

static bool decode_all(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count, struct error *error)
{
    const struct task task = {.queue = queue_group_decoding, .finish = finish_decoding};
    struct gpu_picture **jpegs;
    size_t jpeg_count;
    bool done = list_jpegs(pictures, count, &jpegs, &jpeg_count, error) &&
                run_groups(pipeline, jpegs, jpeg_count, &task, error);
    for (size_t i = 0; done && i < count; i++)
        if (!pictures[i].is_done && pictures[i].end.kind != END_JPEG)
            done = pictures[i].end.kind == END_PNG ? decode_png(pipeline, &pictures[i], error)
                                                   : upload(pipeline, &pictures[i], error);
    free(jpegs);
    return device_wait(pipeline->device, done ? error : NULL) && done;
}

/* ---- Encode ---- */

/* Queue the way from the view to an image as the encoder wants it, of BITS, at WAY if it cannot stay. Returns it in
 * *IMAGE. */
static bool bring_from_view(struct pipeline *pipeline, const struct gpu_picture *picture, int bits, uint8_t *way,
                            struct image *image, struct error *error)
{
    const struct image *view = &picture->view;
    *image = image_packed(view, view->samples);
    if (!gpu_is_packed(view) && jpeg_plane(picture) == 0) {
        image->samples = way;
        if (!device_copy_samples(pipeline->device, view, image, NULL, error))
            return false;
    }
    if (view->bits == bits)
        return true;
    const struct image from = *image;
    image->samples = way + aligned_bytes(view);
    image->bits = bits;
    return device_orient(pipeline->device, &from, 1, image, error);
}

/* Bytes that it takes on its way to an image of other bits. */
static size_t way_back_bytes(const struct gpu_picture *picture, int bits)
{
    const struct image *view = &picture->view;
    return (gpu_is_packed(view) || jpeg_plane(picture) > 0) && view->bits == bits ? 0 : 2 * aligned_bytes(view);
}

static void wrap_one(void *context, int64_t index, int thread)
{
    const struct group *group = context;
    const struct task *task = group->task;
    (void)thread;
    task->wrap(task->context, (size_t)(group->pictures[index] - task->first));
}

/* Queue the encoding of a group. */
static bool queue_group_encoding(struct group *group, struct error *error)
{
    size_t used = 0;
    for (size_t i = 0; i < group->count; i++)
        used += way_back_bytes(group->pictures[i], 8);
    if (!device_reserve(group->pipeline->device, group->memory, used, error))
        return false;
    uint8_t *way = group->memory->bytes;
    for (size_t i = 0; i < group->count; i++) {
        struct jpeg_output *output = &group->outputs[i];
        struct image image;
        output->layout = &group->pictures[i]->end.jpeg;
        output->plane = jpeg_plane(group->pictures[i]);
        output->margin = group->pictures[i]->end.head.size;
        if (!bring_from_view(group->pipeline, group->pictures[i], 8, way, &image, error))
            return false;
        output->samples = image.samples;
        output->channels = image.channels;
        way += way_back_bytes(group->pictures[i], 8);
    }
    return device_jpeg_encode(group->jpeg, group->outputs, group->count, error);
}

/* Download the data of a group, and let the caller take them. */
static bool finish_encoding(struct group *group, struct error *error)
{
    struct thread_pool *pool = group->pipeline->resources->pool;
    if (!device_jpeg_encoded(group->jpeg, group->scans, error))
        return false;
    for (size_t i = 0; i < group->count; i++) {
        struct end *end = &group->pictures[i]->end;
        end->data = (uint8_t *)group->scans[i].bytes;
        end->size = group->scans[i].size;
        group->pictures[i]->is_done = true;
    }
    parallel_for(pool, thread_pool_threads(pool), (int64_t)group->count, wrap_one, group);
    return true;
}

/* Encode the stream of a PNG, or download the samples to the end's image. */
static bool encode_other(struct pipeline *pipeline, struct gpu_picture *picture, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_DECODED];
    struct end *end = &picture->end;
    struct image image;
    if (end->kind == END_PNG && pipeline->png == NULL && !device_png_open(pipeline->device, &pipeline->png, error))
        return false;
    if (!device_reserve(pipeline->device, memory, way_back_bytes(picture, picture->view.bits), error) ||
        !bring_from_view(pipeline, picture, picture->view.bits, memory->bytes, &image, error))
        return false;
    picture->is_done = true;
    if (end->kind == END_PNG)
        return gpu_encode_png(pipeline, &image, end, error);
    return device_download(pipeline->device, end->image->samples, image.samples, image_bytes(&image), error) &&
           device_wait(pipeline->device, error);
}

static bool encode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                            const struct task *task, struct error *error)
{
    struct gpu_picture **jpegs;
    size_t jpeg_count;
    bool done =
        list_jpegs(pictures, count, &jpegs, &jpeg_count, error) && run_groups(pipeline, jpegs, jpeg_count, task, error);
    for (size_t i = 0; done && i < count; i++)
        if (!pictures[i].is_done && (done = encode_other(pipeline, &pictures[i], error)))
            task->wrap(task->context, i);
    free(jpegs);
    return device_wait(pipeline->device, done ? error : NULL) && done;
}

/* ---- On the caller's stream ---- */

bool pipeline_decode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              struct error *error)
{
    if (!device_enter(pipeline->device, pipeline->resources->stream, error))
        return false;
    const bool done = decode_all(pipeline, pictures, count, error);
    return device_leave(pipeline->device, done ? error : NULL) && done;
}

bool pipeline_encode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              void (*wrap)(void *context, size_t index), void *context, struct error *error)
{
    const struct task task = {
        .queue = queue_group_encoding, .finish = finish_encoding, .first = pictures, .wrap = wrap, .context = context};
    if (!device_enter(pipeline->device, pipeline->resources->stream, error))
        return false;
    const bool done = encode_pictures(pipeline, pictures, count, &task, error);
    return device_leave(pipeline->device, done ? error : NULL) && done;
}
