/* SPDX-License-Identifier: MIT
 *
 * Pictures between their ends and the memory of a GPU. JPEGs are decoded and encoded in groups: each stage is one
 * launch for a group. Samples of the host are uploaded and downloaded in groups. A PNG is a group of its own. While a
 * GPU works on a group of a list, the threads of the pool load the next one, or take the data of the one before. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"
#include "base/round.h"
#include "jpeg/jpeg_gpu.h"
#include "kernels/device/device.h"
#include "png/png_gpu.h"

#include <assert.h>
#include <stdlib.h>

/* A group has enough work for a GPU, and its coefficients take less than 400 MB. The pixels of a group are those with
 * which an H200 and 16 cores were fastest: twice as many were as fast, or slower, and half as many slower. */
enum { DECODED_PIXELS = 1 << 26, ENCODED_PIXELS = 1 << 25, GROUP_PICTURES = 4096, ALIGNMENT = 512 };

static_assert((int)GROUP_PICTURES <= (int)DEVICE_JPEG_COUNT_MAX, "a group is one launch");

/* ---- The way of a picture ---- */

/* Bytes of an image like SHAPE in memory that it shares with others. */
static size_t aligned_bytes(const struct image *shape)
{
    const struct image packed = image_packed(shape, NULL);
    return round_up(image_bytes(&packed), ALIGNMENT);
}

/* The shape of the image that the decoder of IN makes: not yet upright, and with its own depth. */
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

/* Must the decoded picture be turned, or change its depth? */
static bool is_converted(const struct gpu_picture *picture)
{
    return (picture->in->kind == END_JPEG || picture->in->kind == END_PNG) &&
           (picture->in->orientation > 1 || decoded_shape(picture->in).bits != picture->view.bits);
}

/* If VIEW is planes that a codec of KIND decodes to, and encodes from: bytes from one to the next; else 0. */
static size_t codec_plane(const struct image *view, enum end_kind kind)
{
    enum { JPEG_ALIGNMENT = 16 };
    const bool is_planar = kind == END_JPEG && !gpu_is_packed(view) && view->channels == 3 && view->bits == 8 &&
                           (uintptr_t)view->samples % JPEG_ALIGNMENT == 0 &&
                           (view->width == 1 || image_pixel_stride(view) == 1) &&
                           (view->height == 1 || image_row_stride(view) == (size_t)view->width) &&
                           image_channel_stride(view) >= (size_t)view->width * (size_t)view->height;
    return is_planar ? image_channel_stride(view) : 0;
}

/* Does a codec of KIND decode to VIEW, and encode from there, but for the bits of a sample? */
static bool is_direct(const struct image *view, enum end_kind kind)
{
    return gpu_is_packed(view) || codec_plane(view, kind) > 0;
}

/* Bytes that a picture needs on its way to the view: as it is decoded, and once it is converted. */
static size_t way_bytes(const struct gpu_picture *picture)
{
    const struct image decoded = decoded_shape(picture->in);
    if (picture->in->kind == END_DEVICE)
        return 0;
    if (!is_converted(picture))
        return is_direct(&picture->view, picture->in->kind) ? 0 : aligned_bytes(&decoded);
    return aligned_bytes(&decoded) + (gpu_is_packed(&picture->view) ? 0 : aligned_bytes(&picture->view));
}

/* Queue the way from the decoded samples at WAY to the view. */
static bool bring_to_view(struct pipeline *pipeline, const struct gpu_picture *picture, uint8_t *way,
                          struct error *error)
{
    const struct image shape = decoded_shape(picture->in), decoded = image_packed(&shape, way);
    const struct image *view = &picture->view;
    if (way_bytes(picture) == 0)
        return true;
    if (!is_converted(picture))
        return device_copy_samples(pipeline->device, &decoded, view, NULL, error);
    const bool is_packed = gpu_is_packed(view);
    const struct image upright = image_packed(view, is_packed ? view->samples : way + aligned_bytes(&decoded));
    return device_orient(pipeline->device, &decoded, picture->in->orientation, &upright, error) &&
           (is_packed || device_copy_samples(pipeline->device, &upright, view, NULL, error));
}

/* The bits of the samples that the encoder wants. */
static int encoded_bits(const struct gpu_picture *picture)
{
    return picture->out->kind == END_JPEG ? 8 : picture->view.bits;
}

/* Bytes that a picture needs on its way back. */
static size_t way_back_bytes(const struct gpu_picture *picture)
{
    const struct image *view = &picture->view;
    return is_direct(view, picture->out->kind) && view->bits == encoded_bits(picture) ? 0 : 2 * aligned_bytes(view);
}

/* Queue the way from the view to *IMAGE, which is as the encoder wants it: the view itself, or at WAY. */
static bool bring_from_view(struct pipeline *pipeline, const struct gpu_picture *picture, uint8_t *way,
                            struct image *image, struct error *error)
{
    const struct image *view = &picture->view;
    *image = image_packed(view, view->samples);
    if (!is_direct(view, picture->out->kind)) {
        image->samples = way;
        if (!device_copy_samples(pipeline->device, view, image, NULL, error))
            return false;
    }
    if (view->bits == encoded_bits(picture))
        return true;
    const struct image from = *image;
    image->samples = way + aligned_bytes(view);
    image->bits = encoded_bits(picture);
    return device_orient(pipeline->device, &from, 1, image, error);
}

/* ---- A group ---- */

static enum end_kind in_kind(const struct group *group)
{
    return group->pictures[0]->in != NULL ? group->pictures[0]->in->kind : END_HOST;
}

static enum end_kind out_kind(const struct group *group)
{
    return group->pictures[0]->out != NULL ? group->pictures[0]->out->kind : END_HOST;
}

bool group_open(struct pipeline *pipeline, int number, struct gpu_picture **pictures, size_t count, struct group *group,
                struct error *error)
{
    struct device_jpeg **jpeg = &pipeline->jpegs[number];
    *group = (struct group){.pipeline = pipeline,
                            .number = number,
                            .memory = &pipeline->memory[number == 0 ? MEMORY_DECODED : MEMORY_COPY],
                            .pictures = pictures,
                            .count = count};
    if ((in_kind(group) == END_PNG || out_kind(group) == END_PNG) && pipeline->png == NULL &&
        !device_png_open(pipeline->device, &pipeline->png, error))
        return false;
    if (in_kind(group) != END_JPEG && out_kind(group) != END_JPEG)
        return true;
    if (*jpeg == NULL && !device_jpeg_open(pipeline->device, MARK_COUNT + number, jpeg, error))
        return false;
    group->jpeg = *jpeg;
    group->inputs = calloc(count, sizeof *group->inputs);
    group->outputs = calloc(count, sizeof *group->outputs);
    group->scans = calloc(count, sizeof *group->scans);
    group->is_decoded = calloc(count, sizeof *group->is_decoded);
    return (group->inputs != NULL && group->outputs != NULL && group->scans != NULL && group->is_decoded != NULL) ||
           error_no_memory(error, "%zu pictures", count);
}

void group_close(struct group *group)
{
    free(group->inputs);
    free(group->outputs);
    free(group->scans);
    free(group->is_decoded);
    *group = (struct group){0};
}

/* Reserve the memory that the pictures need on their way: BYTES(picture) for each. */
static bool reserve_way(struct group *group, size_t (*bytes)(const struct gpu_picture *picture), struct error *error)
{
    size_t sum = 0;
    for (size_t i = 0; i < group->count; i++)
        sum += bytes(group->pictures[i]);
    return device_reserve(group->pipeline->device, group->memory, sum, error);
}

/* ---- Decode ---- */

static void load_scan(void *context, int64_t index, int thread)
{
    const struct group *group = context;
    (void)thread;
    device_jpeg_load(group->jpeg, (size_t)index);
}

static bool decode_jpegs(struct group *group, uint8_t *way, struct error *error)
{
    struct thread_pool *pool = group->pipeline->resources->pool;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_picture *picture = group->pictures[i];
        const size_t bytes = way_bytes(picture);
        group->inputs[i] = (struct jpeg_input){.layout = &picture->in->jpeg,
                                               .scan = picture->in->scan,
                                               .samples = bytes == 0 ? picture->view.samples : way,
                                               .plane = bytes == 0 ? codec_plane(&picture->view, END_JPEG) : 0};
        way += bytes;
    }
    if (!device_jpeg_reserve(group->jpeg, group->inputs, group->count, error))
        return false;
    parallel_for(pool, thread_pool_threads(pool), (int64_t)group->count, load_scan, group);
    bool done = device_jpeg_decode(group->jpeg, error);
    for (size_t i = 0; done && i < group->count; i++)
        done = bring_to_view(group->pipeline, group->pictures[i], group->inputs[i].samples, error);
    return done;
}

/* Decode a PNG to SAMPLES, and wait for that. */
static bool decode_png(struct group *group, struct gpu_picture *picture, uint8_t *samples, struct error *error)
{
    const struct png_stream *stream = &picture->in->stream;
    struct device_png *png = group->pipeline->png;
    uint8_t *data;
    if (!device_png_reserve(png, stream->size, &data, error))
        return false;
    png_stream_copy(stream, 0, stream->size, data);
    return device_png_decode(png, &picture->in->png, samples, error) &&
           device_png_decoded(png, &picture->is_done, error);
}

/* Decode the only picture, or upload the samples of all pictures, which are as those of their views, if they are not
 * there. */
static bool decode_others(struct group *group, uint8_t *way, struct error *error)
{
    bool done = true;
    for (size_t i = 0; done && i < group->count; i++) {
        struct gpu_picture *picture = group->pictures[i];
        const struct image *image = picture->in->image;
        const size_t bytes = way_bytes(picture);
        uint8_t *samples = bytes == 0 ? picture->view.samples : way;
        picture->is_done = true;
        done = (in_kind(group) == END_DEVICE ? true
                : in_kind(group) == END_PNG
                    ? decode_png(group, picture, samples, error)
                    : device_upload(group->pipeline->device, samples, image->samples, image_bytes(image), error)) &&
               (!picture->is_done || bring_to_view(group->pipeline, picture, samples, error));
        way += bytes;
    }
    return done;
}

/* Bytes of a picture in the memory of its group. */
static size_t group_bytes(const struct gpu_picture *picture)
{
    return way_bytes(picture) + (picture->view.samples == NULL ? aligned_bytes(&picture->view) : 0);
}

bool group_decode(struct group *group, struct error *error)
{
    if (!reserve_way(group, group_bytes, error))
        return false;
    uint8_t *way = group->memory->bytes;
    for (size_t i = 0; i < group->count; i++) {
        struct image *view = &group->pictures[i]->view;
        if (view->samples == NULL) {
            view->samples = way;
            way += aligned_bytes(view);
        }
    }
    return (group->tensor == NULL || tensor_load(group, error)) &&
           (in_kind(group) == END_JPEG ? decode_jpegs(group, way, error) : decode_others(group, way, error)) &&
           (group->tensor == NULL || tensor_queue(group, error));
}

bool group_decoded(struct group *group, struct error *error)
{
    if (in_kind(group) != END_JPEG) /* nothing else waits for the upload of the tensor's table */
        return group->tensor == NULL || device_wait(group->pipeline->device, error);
    const bool done = device_jpeg_decoded(group->jpeg, group->is_decoded, error);
    for (size_t i = 0; done && i < group->count; i++)
        group->pictures[i]->is_done = group->is_decoded[i];
    return done;
}

/* ---- Encode ---- */

/* Queue the encoding of PICTURE, which is IMAGE now and no JPEG, or its download. */
static bool encode_other(struct group *group, const struct gpu_picture *picture, const struct image *image,
                         struct error *error)
{
    const struct png_layout layout = {
        .width = image->width, .height = image->height, .channels = image->channels, .bits = image->bits};
    return out_kind(group) == END_PNG ? device_png_encode(group->pipeline->png, &layout, image->samples, error)
                                      : device_download(group->pipeline->device, picture->out->image->samples,
                                                        image->samples, image_bytes(image), error);
}

bool group_encode(struct group *group, struct error *error)
{
    if (!reserve_way(group, way_back_bytes, error))
        return false;
    uint8_t *way = group->memory->bytes;
    for (size_t i = 0; i < group->count; i++) {
        const struct gpu_picture *picture = group->pictures[i];
        struct image image;
        if (!bring_from_view(group->pipeline, picture, way, &image, error))
            return false;
        way += way_back_bytes(picture);
        if (out_kind(group) != END_JPEG && !encode_other(group, picture, &image, error))
            return false;
        if (out_kind(group) != END_JPEG)
            continue;
        group->outputs[i] = (struct jpeg_output){.layout = &picture->out->jpeg,
                                                 .samples = image.samples,
                                                 .channels = image.channels,
                                                 .plane = codec_plane(&picture->view, END_JPEG),
                                                 .margin = picture->out->head.size};
    }
    return out_kind(group) != END_JPEG || device_jpeg_encode(group->jpeg, group->outputs, group->count, error);
}

bool group_encoded(struct group *group, struct error *error)
{
    const bool has_jpegs = out_kind(group) == END_JPEG;
    struct end *first = group->pictures[0]->out;
    if (out_kind(group) == END_PNG &&
        !device_png_encoded(group->pipeline->png, first->head.size, &first->data, &first->size, &first->adler, error))
        return false;
    if (has_jpegs && !device_jpeg_encoded(group->jpeg, group->scans, error))
        return false;
    for (size_t i = 0; i < group->count; i++) {
        struct end *end = group->pictures[i]->out;
        if (has_jpegs) {
            end->data = (uint8_t *)group->scans[i].bytes;
            end->size = group->scans[i].size;
        }
        group->pictures[i]->is_done = true;
    }
    return true;
}

/* ---- Lists, on the caller's stream ---- */

/* What to do with each group. */
struct task {
    bool (*queue)(struct group *group, struct error *error);
    bool (*finish)(struct group *group, struct error *error); /* it waits */
    struct gpu_picture *first;                                /* the caller's pictures */
    const struct gpu_tensor *tensor;                          /* what becomes of them; or NULL */
    size_t group_pixels;                                      /* the most pixels of a group of several pictures */
    void (*wrap)(void *context, size_t index);                /* called for each finished picture; or NULL */
    void *context;
};

/* A group, for the threads that wrap its pictures. */
struct finished {
    const struct task *task;
    const struct group *group;
};

static void wrap_one(void *context, int64_t index, int thread)
{
    const struct finished *finished = context;
    const struct task *task = finished->task;
    (void)thread;
    task->wrap(task->context, (size_t)(finished->group->pictures[index] - task->first));
}

/* Finish a group, if there is one, and release it. */
static bool finish_group(const struct task *task, struct group *group, struct error *error)
{
    if (group->count == 0)
        return true;
    struct thread_pool *pool = group->pipeline->resources->pool;
    struct finished finished = {task, group};
    device_use_stream(group->pipeline->device, group->number);
    const bool done = task->finish(group, error);
    if (done && task->wrap != NULL)
        parallel_for(pool, thread_pool_threads(pool), (int64_t)group->count, wrap_one, &finished);
    group_close(group);
    return done;
}

static enum end_kind kind_of(const struct gpu_picture *picture)
{
    return (picture->in != NULL ? picture->in : picture->out)->kind;
}

/* The pictures that are not done: JPEGs first, and both kinds in their order. Release *LIST with free. */
static bool list_pictures(const struct task *task, size_t count, struct gpu_picture ***list, size_t *listed,
                          struct error *error)
{
    *listed = 0;
    *list = malloc((count + 1) * sizeof **list);
    if (*list == NULL)
        return error_no_memory(error, "%zu pictures", count);
    for (int is_other = 0; is_other < 2; is_other++)
        for (size_t i = 0; i < count; i++)
            if (!task->first[i].is_done && (kind_of(&task->first[i]) != END_JPEG) == is_other)
                (*list)[(*listed)++] = &task->first[i];
    return true;
}

/* How many of the first of COUNT pictures make a group. */
static size_t group_size(const struct task *task, struct gpu_picture *const *pictures, size_t count)
{
    size_t size = 0, pixels = 0;
    while (size < count && size < GROUP_PICTURES) {
        const struct image *view = &pictures[size]->view;
        pixels += (size_t)view->width * (size_t)view->height;
        const enum end_kind kind = kind_of(pictures[size]);
        if (size > 0 &&
            ((pixels > task->group_pixels && kind != END_DEVICE) || kind != kind_of(*pictures) || kind == END_PNG))
            break;
        size++;
    }
    return size;
}

/* Do TASK with COUNT pictures. Groups with even and with odd numbers have streams and memory of their own, so that a
 * GPU works on two groups of JPEGs beside each other. There is one codec for PNGs. */
static bool run_groups(struct pipeline *pipeline, struct gpu_picture **pictures, size_t count, const struct task *task,
                       struct error *error)
{
    struct group groups[2] = {{0}};
    int number = 0;
    bool done = device_fork(pipeline->device, error);
    for (size_t first = 0; done && first < count; number = !number) {
        struct group *group = &groups[number];
        const size_t size = group_size(task, pictures + first, count - first);
        done = finish_group(task, group, error);
        device_use_stream(pipeline->device, number);
        done = done && group_open(pipeline, number, pictures + first, size, group, error);
        group->tensor = task->tensor;
        group->first = task->first;
        done = done && task->queue(group, error) && (group->jpeg != NULL || finish_group(task, group, error));
        first += size;
    }
    for (int i = 0; i < 2; i++, number = !number) { /* the older one first */
        done = done && finish_group(task, &groups[number], error);
        group_close(&groups[number]);
    }
    device_use_stream(pipeline->device, 0);
    return device_join(pipeline->device, done ? error : NULL) && done;
}

/* Do TASK with the pictures that are not done, on the caller's stream, and wait. */
static bool run_task(struct pipeline *pipeline, size_t count, const struct task *task, struct error *error)
{
    struct gpu_picture **list;
    size_t listed;
    if (!device_enter(pipeline->device, pipeline->resources->stream, error))
        return false;
    bool done = list_pictures(task, count, &list, &listed, error) && run_groups(pipeline, list, listed, task, error);
    free(list);
    done = device_wait(pipeline->device, done ? error : NULL) && done;
    return device_leave(pipeline->device, done ? error : NULL) && done;
}

bool pipeline_decode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              const struct gpu_tensor *tensor, struct error *error)
{
    const struct task task = {.queue = group_decode,
                              .finish = group_decoded,
                              .first = pictures,
                              .tensor = tensor,
                              .group_pixels = DECODED_PIXELS};
    return run_task(pipeline, count, &task, error);
}

bool pipeline_encode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              void (*wrap)(void *context, size_t index), void *context, struct error *error)
{
    const struct task task = {.queue = group_encode,
                              .finish = group_encoded,
                              .first = pictures,
                              .wrap = wrap,
                              .context = context,
                              .group_pixels = ENCODED_PIXELS};
    return run_task(pipeline, count, &task, error);
}
