/* SPDX-License-Identifier: MIT
 *
 * Images in the memory of a GPU, filtered on a caller's stream. Nothing here waits.
 *
 * An image takes the shortest way to planes and back:
 *
 *   planes, aligned as kernels need them, one filter    the kernel reads and writes them
 *   interleaved without padding                         split, filters, merge, as for an image of a file
 *   all others                                          their samples are copied, with their strides
 *
 * Where alpha weighs the colours, or light is linear, there is always a split and a merge. Filters that change the size
 * take the same ways, with memory for the largest image. */
#include "pipeline/pipeline_internal.h"

#include "kernels/device/device.h"

#include <stdlib.h>

enum { IMAGE_ALIGNMENT = 16, PLANE_ALIGNMENT = 512, ROW_ALIGNMENT = 128 };

bool pipeline_open_device(int index, struct device **device, struct error *error)
{
    return device_open_shared(index, device, error);
}

void pipeline_close_device(struct device *device)
{
    device_close(device);
}

/* ---- Layouts ---- */

/* Do the kernels for images take this one? */
static bool is_packed(const struct image *image)
{
    return image->bits <= 16 && (uintptr_t)image->samples % IMAGE_ALIGNMENT == 0 &&
           image_row_stride(image) == image_row_bytes(image) && image_pixel_stride(image) == image_pixel_bytes(image) &&
           image_channel_stride(image) == image_sample_bytes(image);
}

/* Do the kernels for planes take the first COUNT channels of IMAGE? */
static bool is_planar(const struct image *image, int count)
{
    return (uintptr_t)image->samples % PLANE_ALIGNMENT == 0 && image_pixel_stride(image) == image_sample_bytes(image) &&
           (image->height == 1 || image_row_stride(image) % ROW_ALIGNMENT == 0) &&
           (count == 1 || image_channel_stride(image) % ROW_ALIGNMENT == 0);
}

/* The channels of a planar image as planes. */
static struct plane planes_of(const struct image *image, const struct plane *like)
{
    struct plane planes = *like;
    planes.width = image->width;
    planes.height = image->height;
    planes.row_bytes = image_row_stride(image);
    planes.plane_bytes = image_channel_stride(image);
    planes.data = image->samples;
    return planes;
}

/* Planes as a planar image. */
static struct image image_of(const struct plane *planes)
{
    return (struct image){
        .width = planes->width,
        .height = planes->height,
        .channels = planes->count,
        .bits = (int)(8 * sample_bytes(planes->sample)),
        .samples = planes->data,
        .row_stride = planes->row_bytes,
        .pixel_stride = sample_bytes(planes->sample),
        .channel_stride = planes->plane_bytes,
    };
}

/* COUNT channels of IMAGE, from channel FIRST on. */
static struct image channels_of(const struct image *image, int first, int count)
{
    struct image part = *image;
    part.row_stride = image_row_stride(image);
    part.pixel_stride = image_pixel_stride(image);
    part.channel_stride = image_channel_stride(image);
    part.samples += (size_t)first * part.channel_stride;
    part.channels = count;
    return part;
}

/* Bytes from the first sample to the end of the last one. */
static size_t bytes_of(const struct image *image)
{
    return (size_t)(image->height - 1) * image_row_stride(image) +
           (size_t)(image->width - 1) * image_pixel_stride(image) +
           (size_t)(image->channels - 1) * image_channel_stride(image) + image_sample_bytes(image);
}

static bool is_same_size(const struct image *a, const struct image *b)
{
    return a->width == b->width && a->height == b->height;
}

static bool overlap(const struct image *a, const struct image *b)
{
    const uintptr_t first = (uintptr_t)a->samples, second = (uintptr_t)b->samples;
    return first < second + bytes_of(b) && second < first + bytes_of(a);
}

/* ---- An image ---- */

/* Keep the taps of all plans on the device. */
static bool keep_taps(struct pipeline *pipeline, struct error *error)
{
    const size_t count = pipeline->recipe->chain->count;
    if (pipeline->planned->taps == NULL)
        pipeline->planned->taps = calloc(count, sizeof *pipeline->planned->taps);
    if (pipeline->planned->taps == NULL)
        return error_no_memory(error, "the taps of %zu filters", count);
    for (size_t i = 0; i < count; i++)
        if (pipeline->planned->taps[i] == NULL &&
            !device_keep_taps(pipeline->device, variant_prepare, &pipeline->planned->plans[i],
                              &pipeline->planned->taps[i], error)) {
            gpu_forget_taps(pipeline, pipeline->planned, i);
            return false;
        }
    return true;
}

/* An image in MEMORY with a shape like LIKE, without padding. */
static struct image packed_like(const struct image *like, void *memory)
{
    return (struct image){.width = like->width,
                          .height = like->height,
                          .channels = like->channels,
                          .bits = like->bits,
                          .samples = memory};
}

/* Copy IMAGE without padding. */
static bool copy_packed(struct pipeline *pipeline, const struct image *image, struct image *copy, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_COPY];
    if (!device_reserve(pipeline->device, memory, image_bytes(image), error))
        return false;
    *copy = packed_like(image, memory->bytes);
    return device_copy_samples(pipeline->device, image, copy, error);
}

/* Reserve planes for the largest image, laid out for the first. */
static bool reserve_planes(struct pipeline *pipeline, const struct image *image, struct plane planes[2],
                           struct error *error)
{
    size_t size, unused;
    gpu_find_largest(pipeline, image, &size, &unused);
    for (int i = 0; i < 2; i++) {
        struct workspace *memory = &pipeline->memory[i == 0 ? MEMORY_PLANES : MEMORY_OTHER_PLANES];
        if (!device_reserve(pipeline->device, memory, size, error))
            return false;
        planes[i].data = memory->bytes;
        gpu_lay_out(pipeline, image, &planes[i]);
    }
    return true;
}

/* Filter channels as they are, from IN to OUT. They do not overlap, or are the same packed image. */
static bool queue_channels(struct pipeline *pipeline, const struct image *in, const struct image *out,
                           struct gpu_image *workspace, struct error *error)
{
    struct device *device = pipeline->device;
    struct plane *planes = workspace->planes;
    const int count = pipeline->work.planes;
    const bool in_place = in->samples == out->samples, is_direct = !in_place && pipeline->recipe->chain->count == 1;
    const bool reads_in = is_direct && is_planar(in, count), writes_out = is_direct && is_planar(out, count);
    const struct image kept_in = channels_of(in, count, in->channels - count),
                       kept_out = channels_of(out, count, in->channels - count);
    const struct image from = channels_of(in, 0, count), to = channels_of(out, 0, count), first = image_of(&planes[0]);
    int result;
    workspace->image = (struct image){.width = in->width, .height = in->height};
    if (reads_in)
        planes[0] = planes_of(in, &planes[0]);
    if (writes_out)
        planes[1] = planes_of(out, &planes[1]);
    if (!(reads_in        ? true
          : is_packed(in) ? device_split(device, in, ALPHA_FILTER, NULL, &planes[0], error)
                          : device_copy_samples(device, &from, &first, error)) ||
        !gpu_queue_filters(pipeline, in, workspace, false, &result, error))
        return false;
    if (kept_in.channels > 0 && !in_place && !device_copy_samples(device, &kept_in, &kept_out, error))
        return false;
    planes[result].count = count; /* the last filter may have left alpha out */
    const struct image last = image_of(&planes[result]);
    return writes_out       ? true
           : is_packed(out) ? device_merge(device, &planes[result], ALPHA_FILTER, NULL, out, error)
                            : device_copy_samples(device, &last, &to, error);
}

/* Filter an image whose colours are converted, from IN to OUT. They do not overlap, or are the same packed image. */
static bool queue_converted(struct pipeline *pipeline, const struct image *in, const struct image *out,
                            struct gpu_image *workspace, struct error *error)
{
    struct device *device = pipeline->device;
    const struct recipe *recipe = pipeline->recipe;
    const enum alpha first = recipe_alpha(recipe, pipeline->effective_alpha, 0);
    struct image *image = &workspace->image;
    size_t unused, largest;
    struct workspace *memory = &pipeline->memory[MEMORY_IMAGE];
    int result;
    gpu_find_largest(pipeline, in, &unused, &largest);
    const bool goes_to_out = is_packed(out) && image_bytes(out) >= largest;
    if (!goes_to_out && !device_reserve(device, memory, largest, error))
        return false;
    *image = packed_like(in, goes_to_out ? out->samples : memory->bytes);
    workspace->planes[0].count = image_planes(image, first);
    /* The merge needs the samples before: alpha that is kept, and levels whose light does not change. */
    if (!gpu_upload_linear(pipeline, &workspace->linear, error) ||
        (in->samples != image->samples && !device_copy_samples(device, in, image, error)))
        return false;
    return device_split(device, image, first, workspace->linear, &workspace->planes[0], error) &&
           gpu_queue_filters(pipeline, image, workspace, false, &result, error) &&
           gpu_merge_after(pipeline, recipe->chain->count - 1, &workspace->planes[result], workspace, error) &&
           (goes_to_out || device_copy_samples(device, image, out, error));
}

/* Queue all work for one image. */
static bool queue_image(struct pipeline *pipeline, const struct image *in, const struct image *out, struct error *error)
{
    struct gpu_image workspace = {0};
    struct image from = *in;
    const bool weighs = pipeline->effective_alpha == ALPHA_PREMULTIPLY && image_has_alpha(in);
    if (weighs && in->bits > 16)
        return error_set(error, ERROR_USAGE,
                         "a GPU does not weigh floats by alpha; keep alpha, filter it as a channel, or use the CPU");
    if (!keep_taps(pipeline, error) || !reserve_planes(pipeline, in, workspace.planes, error))
        return false;
    const bool is_same = in->samples == out->samples && is_same_size(in, out) && is_packed(in) && is_packed(out);
    if (overlap(in, out) && !is_same && !copy_packed(pipeline, in, &from, error))
        return false;
    return weighs || pipeline->linear != NULL ? queue_converted(pipeline, &from, out, &workspace, error)
                                              : queue_channels(pipeline, &from, out, &workspace, error);
}

/* Filter an image in device memory on the caller's stream, without waiting. */
static bool run_on_stream(struct pipeline *pipeline, const struct image *in, const struct image *out,
                          struct error *error)
{
    struct device *device = pipeline->device;
    if (!device_enter(device, pipeline->resources->stream, error))
        return false;
    const bool done = queue_image(pipeline, in, out, error);
    return device_leave(device, done ? error : NULL) && done;
}

/* Upload IN, queue its way, and download it to OUT. */
static bool queue_copies(struct pipeline *pipeline, const struct image *in, const struct image *out,
                         struct error *error)
{
    struct device *device = pipeline->device;
    const size_t size = image_bytes(in), padded = (size + PLANE_ALIGNMENT - 1) / PLANE_ALIGNMENT * PLANE_ALIGNMENT;
    const size_t start = is_same_size(in, out) ? 0 : padded; /* of the result */
    struct workspace *memory = &pipeline->memory[MEMORY_HOST];
    if (!device_reserve(device, memory, start + image_bytes(out), error))
        return false;
    const struct image from = packed_like(in, memory->bytes), to = packed_like(out, memory->bytes + start);
    return device_upload(device, from.samples, in->samples, size, error) && queue_image(pipeline, &from, &to, error) &&
           device_download(device, out->samples, to.samples, image_bytes(out), error);
}

/* Filter an image on the host, by way of a copy without padding. */
static bool run_copies(struct pipeline *pipeline, const struct image *in, const struct image *out, struct error *error)
{
    struct device *device = pipeline->device;
    const struct image *larger = image_samples(out) > image_samples(in) ? out : in;
    struct image copy;
    if (!image_allocate(&copy, larger->width, larger->height, in->channels, in->bits, error))
        return false;
    const struct image from = packed_like(in, copy.samples), to = packed_like(out, copy.samples);
    image_copy(in, &from);
    bool done = device_enter(device, NULL, error);
    if (done) {
        done = queue_copies(pipeline, &from, &to, error);
        done = device_wait(device, done ? error : NULL) && done; /* the copy is not used any more */
        done = device_leave(device, done ? error : NULL) && done;
    }
    if (done)
        image_copy(&to, out);
    image_free(&copy);
    return done;
}

bool run_on_shared_gpu(struct pipeline *pipeline, const struct end *in, const struct end *out, struct error *error)
{
    return in->kind == END_DEVICE ? run_on_stream(pipeline, in->image, out->image, error)
                                  : run_copies(pipeline, in->image, out->image, error);
}

bool gpu_is_opaque(struct pipeline *pipeline, const struct image *image, bool *is_opaque, struct error *error)
{
    struct device *device = pipeline->device;
    struct image packed = *image;
    if (!device_enter(device, pipeline->resources->stream, error))
        return false;
    const bool done = (is_packed(image) || copy_packed(pipeline, image, &packed, error)) &&
                      device_is_opaque(device, &packed, is_opaque, error);
    return device_leave(device, done ? error : NULL) && done;
}
