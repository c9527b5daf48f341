/* SPDX-License-Identifier: MIT
 *
 * An image in the memory of a GPU becomes planes, goes through the filters, and becomes an image again. All is queued
 * on the device's stream, which is the pipeline's or a caller's.
 *
 * All streams of a GPU share its constant memory, where kernels read the taps of filters. In a batch, a pipeline holds
 * the lock of constant memory from the upload of the taps until the last kernel ends. Pipelines that share a device
 * keep the taps in its memory, and copy them in the stream's order before a launch, so nobody waits.
 *
 * If the colours are converted, because alpha weighs them or light is linear, or if samples cross the bus, the image is
 * split and merged. The channels of all others take the shortest way to planes and back:
 *
 *   interleaved without padding, steps of pixels only   the kernel reads and writes the image
 *   planes, aligned as kernels need them, one launch    the kernel reads and writes them
 *   interleaved without padding                         split, filters, merge
 *   all others                                          their samples are copied, with their strides
 *
 * The kernels of the split do the steps that change each pixel by itself before the first other filter, and those of
 * the merge do the steps after the last one, so they cost no launch. They have launches of their own, for several steps
 * each, between other filters, if samples have more than 8 bits, and if planes become an image between filters.
 *
 * Memory is reserved for the largest image, because filters may change the size. */
#include "pipeline/pipeline_internal.h"

#include "base/round.h"
#include "image/linear.h"

#include <stdlib.h>

enum { CHANNELS_MAX = 4, IMAGE_ALIGNMENT = 16, PLANE_ALIGNMENT = 512, ROW_ALIGNMENT = 128 };

bool pipeline_open_device(int index, struct device **device, struct error *error)
{
    return device_open_shared(index, device, error);
}

void pipeline_close_device(struct device *device)
{
    device_close(device);
}

bool gpu_mark(const struct pipeline_run *run, enum mark mark, struct error *error)
{
    return run->phases == NULL || run->pipeline->resources->shared != NULL ||
           device_mark(run->pipeline->device, (int)mark, error);
}

/* ---- Layouts ---- */

bool gpu_is_packed(const struct image *image)
{
    return image->stored == STORED_FLOAT && image->channels <= CHANNELS_MAX &&
           (uintptr_t)image->samples % IMAGE_ALIGNMENT == 0 && image_row_stride(image) == image_row_bytes(image) &&
           image_pixel_stride(image) == image_pixel_bytes(image) &&
           image_channel_stride(image) == image_sample_bytes(image);
}

/* Do the kernels of the only filter take the first COUNT channels of IMAGE as planes? */
static bool is_planar(const struct pipeline_run *run, const struct image *image, int count)
{
    const bool is_half = image->stored == STORED_HALF || image->stored == STORED_BFLOAT16;
    return (image->stored == STORED_FLOAT || (is_half && run->planned->plans[0].variant->takes_halves)) &&
           (uintptr_t)image->samples % PLANE_ALIGNMENT == 0 && image_pixel_stride(image) == image_sample_bytes(image) &&
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
    planes.stored = image->stored;
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
static size_t span_bytes(const struct image *image)
{
    return (size_t)(image->height - 1) * image_row_stride(image) +
           (size_t)(image->width - 1) * image_pixel_stride(image) +
           (size_t)(image->channels - 1) * image_channel_stride(image) + image_sample_bytes(image);
}

static bool overlap(const struct image *a, const struct image *b)
{
    const uintptr_t first = (uintptr_t)a->samples, second = (uintptr_t)b->samples;
    return first < second + span_bytes(b) && second < first + span_bytes(a);
}

/* Copy FROM to TO, and store the samples as TO does. run_on_device looks for samples that have no value there. */
static bool copy_image_samples(struct pipeline *pipeline, const struct image *from, const struct image *to,
                               struct error *error)
{
    return device_copy_samples(pipeline->device, from, to, pipeline->memory[MEMORY_LOST].bytes, error);
}

/* How many images below each other are filtered at once. */
static int images_of(const struct pipeline_run *run)
{
    return run->images > 1 ? run->images : 1;
}

/* ---- Steps that change each pixel by itself ---- */

static bool fuses(const struct pipeline_run *run, size_t number)
{
    return step_fuses(&run->recipe->chain->filters[number]);
}

/* The first filter from NUMBER on, and before END, that one launch cannot do together with those before. */
static size_t points_end(const struct pipeline_run *run, size_t number, size_t end)
{
    const size_t first = number;
    while (number < end && number - first < POINTS_MAX && fuses(run, number))
        number++;
    return number;
}

static struct device_points points_of(const struct pipeline_run *run, size_t first, size_t end)
{
    const struct image *shape = &run->input.shape;
    struct device_points points = {.is_flat = true};
    for (size_t i = first; i < end; i++) {
        points.is_flat &= filter_is_flat(&run->recipe->chain->filters[i], shape->channels, shape->bits);
        points.taps[points.count++] = run->planned->taps[i];
    }
    return points;
}

/* Choose the filters that work on planes. All do in linear light, and if samples have more than 8 bits, unless the
 * image becomes the image. Returns whether it does. */
static bool choose_filters(const struct pipeline_run *run, const struct image *in, const struct image *out,
                           struct gpu_image *gpu)
{
    const size_t count = run->recipe->chain->count;
    gpu->first = 0;
    gpu->last = count;
    if (run->images < 0) /* joined channels, even if they lie as those of one pixel do */
        return false;
    if (run->linear == NULL && gpu_is_packed(in))
        gpu->first = points_end(run, 0, count);
    while (run->linear == NULL && gpu_is_packed(out) && gpu->last > gpu->first && count - gpu->last < POINTS_MAX &&
           fuses(run, gpu->last - 1))
        gpu->last--;
    if (gpu->first == gpu->last && gpu_is_packed(in) && gpu_is_packed(out))
        return true;
    if (in->bits > 8) {
        gpu->first = 0;
        gpu->last = count;
    }
    return false;
}

/* ---- Memory ---- */

/* Let the device hold the tables of linear light. No other image uses those that are there. *ON_DEVICE becomes them, or
 * NULL if the samples are filtered as they are: the device may still hold the tables of an earlier image. */
static bool upload_linear(struct pipeline_run *run, const struct linear **on_device, struct error *error)
{
    const struct linear *linear = run->linear;
    struct workspace *memory = &run->pipeline->memory[MEMORY_LINEAR];
    *on_device = NULL;
    if (linear == NULL)
        return true;
    if (memory->bytes == NULL || run->pipeline->device_serial != linear->version) {
        run->pipeline->device_serial = 0; /* no tables are there until the upload has succeeded */
        if (!device_reserve(run->pipeline->device, memory, linear_bytes(linear), error) ||
            !device_upload(run->pipeline->device, memory->bytes, linear, linear_bytes(linear), error))
            return false;
        run->pipeline->device_serial = linear->version;
    }
    *on_device = (const struct linear *)memory->bytes;
    return true;
}

/* Keep the taps of all plans on the device, if pipelines share it, and always the tables of steps that fuse. */
static bool keep_taps(struct pipeline_run *run, struct error *error)
{
    const size_t count = run->recipe->chain->count;
    if (run->planned->taps == NULL)
        run->planned->taps = calloc(count, sizeof *run->planned->taps);
    if (run->planned->taps == NULL)
        return error_no_memory(error, "the taps of %zu filters", count);
    for (size_t i = 0; i < count; i++)
        if (run->planned->taps[i] == NULL && (run->pipeline->resources->shared != NULL || fuses(run, i)) &&
            !device_keep_taps(run->pipeline->device, variant_prepare, &run->planned->plans[i], &run->planned->taps[i],
                              error)) {
            gpu_forget_taps(run->pipeline, run->planned, i);
            return false;
        }
    return true;
}

/* Lay out planes for images like IMAGE, in the memory of PLANES. Returns their bytes. If there are several
 * images, the planes of a channel follow each other without a gap, so that they are one tall plane, too. */
static size_t lay_out_planes(const struct pipeline_run *run, const struct image *image, struct plane *planes)
{
    struct plane layout;
    const int images = images_of(run), count = run->work.planes * images;
    const size_t size = device_plane_layout(run->work.sample, image->width, image->height, count, 0, &layout);
    layout.data = planes->data;
    if (images > 1)
        layout.plane_bytes = layout.row_bytes * (size_t)layout.height;
    *planes = layout;
    return size;
}

/* Several images below each other as one tall image, and their planes as tall planes. One image stays as it is. */
static struct image tall_image(const struct pipeline_run *run, const struct image *image)
{
    struct image tall = *image;
    tall.height *= images_of(run);
    return tall;
}

static struct plane tall_planes(const struct pipeline_run *run, const struct plane *planes)
{
    struct plane tall = *planes;
    tall.height *= images_of(run);
    tall.plane_bytes *= (size_t)images_of(run);
    tall.count /= images_of(run);
    return tall;
}

/* The bytes of the planes, and of the samples, of the largest image: the filters may change its size. */
static void find_largest(const struct pipeline_run *run, const struct image *image, size_t *planes, size_t *samples)
{
    struct image shape = *image;
    *planes = *samples = 0;
    for (size_t i = 0; i <= run->recipe->chain->count; i++) {
        struct plane unused = {0};
        const size_t plane_bytes = lay_out_planes(run, &shape, &unused), bytes = image_bytes(&shape);
        *planes = plane_bytes > *planes ? plane_bytes : *planes;
        *samples = bytes > *samples ? bytes : *samples;
        if (i < run->recipe->chain->count)
            recipe_resize_by(run->recipe, &run->work, i, &shape, NULL);
    }
}

/* Reserve what the filters need for IMAGE besides its samples. GPU's image gets the shape of IMAGE, and no samples. */
static bool reserve_planes(struct pipeline_run *run, const struct image *image, struct gpu_image *gpu,
                           struct error *error)
{
    struct device *device = run->pipeline->device;
    const struct image shape = image_packed(image, NULL);
    size_t plane_bytes;
    find_largest(run, &shape, &plane_bytes, &gpu->largest);
    gpu->image = shape;
    if (!keep_taps(run, error) || !upload_linear(run, &gpu->linear, error))
        return false;
    if (recipe_is_limited(run->recipe) &&
        !device_reserve(device, &run->pipeline->memory[MEMORY_ASIDE], gpu->largest, error))
        return false;
    for (int i = 0; i < 2; i++) {
        struct workspace *memory = &run->pipeline->memory[i == 0 ? MEMORY_PLANES : MEMORY_OTHER_PLANES];
        const size_t before = memory->size;
        /* Kernels read whole words, so also bytes after a row. No output depends on these, but initcheck reports
         * them. */
        if (!device_reserve(device, memory, plane_bytes, error) ||
            (memory->size > before && !device_fill(device, memory->bytes, 0, memory->size, error)))
            return false;
        gpu->planes[i].data = memory->bytes;
        lay_out_planes(run, &shape, &gpu->planes[i]);
    }
    return true;
}

bool gpu_reserve(struct pipeline_run *run, const struct image *shape, size_t count, struct gpu_image *gpu, size_t *size,
                 struct error *error)
{
    if (!reserve_planes(run, shape, gpu, error))
        return false;
    *size = round_up(gpu->largest, PLANE_ALIGNMENT);
    return device_reserve(run->pipeline->device, &run->pipeline->memory[MEMORY_IMAGE], count * *size, error);
}

/* ---- Filters ---- */

/* Queue a filter, and before it the upload of its taps if UPLOADS, or the use of kept ones. */
static bool queue_filter(struct pipeline_run *run, size_t number, const struct plane *from, const struct plane *to,
                         bool uploads, struct error *error)
{
    struct device *device = run->pipeline->device;
    struct plan *plan = &run->planned->plans[number];
    if (run->planned->taps[number] != NULL)
        return device_launch(device, run->planned->taps[number], variant_launch, plan, from, to, error);
    return (!uploads || variant_prepare(plan, device, error)) && variant_launch(plan, device, from, to, error);
}

/* Let the image and PLANES have the size of what filter NUMBER makes. Planes that have it keep their layout. */
static void resize_image(const struct pipeline_run *run, size_t number, struct image *image, struct plane *planes)
{
    const int count = planes->count;
    recipe_resize_by(run->recipe, &run->work, number, image, NULL);
    if (planes->width == image->width && planes->height == image->height)
        return;
    lay_out_planes(run, image, planes);
    planes->count = count;
}

/* Let the device hold the levels of MASK. */
static bool upload_mask(struct pipeline *pipeline, const struct mask *mask, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_MASK];
    const size_t bytes = (size_t)mask->width * (size_t)mask->height * sizeof *mask->levels;
    if (memory->bytes != NULL && pipeline->mask_serial == mask->serial)
        return true;
    pipeline->mask_serial = 0; /* no mask is there until the upload has succeeded */
    if (!device_reserve(pipeline->device, memory, bytes, error) ||
        !device_upload(pipeline->device, memory->bytes, mask->levels, bytes, error))
        return false;
    pipeline->mask_serial = mask->serial;
    return true;
}

/* Merge the planes after filter NUMBER, which is limited to a region, to the image: outside it stays. */
static bool merge_region(struct pipeline_run *run, size_t number, const struct plane *planes,
                         const struct gpu_image *gpu, struct error *error)
{
    struct device *device = run->pipeline->device;
    const enum alpha alpha = recipe_alpha(run->recipe, &run->work, run->effective_alpha, number);
    const struct image made = image_packed(&gpu->image, run->pipeline->memory[MEMORY_ASIDE].bytes);
    struct rectangle part;
    filter_region(&run->recipe->chain->filters[number], made.width, made.height, &part);
    const struct image from = image_rows(&made, part.y, part.height), to = image_rows(&gpu->image, part.y, part.height);
    const struct image from_part = image_columns(&from, part.x, part.width),
                       to_part = image_columns(&to, part.x, part.width);
    const struct mask *mask = run->recipe->chain->filters[number].region.mask;
    const bool keeps = planes->count < made.channels || gpu->linear != NULL; /* the merge keeps samples: image_merge */
    return (mask == NULL || upload_mask(run->pipeline, mask, error)) &&
           (!keeps || device_copy(device, made.samples, gpu->image.samples, image_bytes(&made), error)) &&
           device_merge(device, planes, alpha, recipe_light(run->recipe, number, gpu->linear), &made, error) &&
           (mask != NULL ? device_blend(device, &made, run->pipeline->memory[MEMORY_MASK].bytes, &gpu->image, error)
                         : copy_image_samples(run->pipeline, &from_part, &to_part, error));
}

/* Merge the planes after filter NUMBER to the image. Where it has changed the size, levels of linear light keep
 * nothing. */
static bool merge_after(struct pipeline_run *run, size_t number, const struct plane *planes,
                        const struct gpu_image *gpu, struct error *error)
{
    const enum alpha alpha = recipe_alpha(run->recipe, &run->work, run->effective_alpha, number);
    const struct image *image = &gpu->image;
    if (run->recipe->chain->filters[number].region.is_set)
        return merge_region(run, number, planes, gpu, error);
    return (gpu->linear == NULL || !filter_kind(&run->recipe->chain->filters[number])->resizes ||
            device_fill(run->pipeline->device, image->samples, 0, image_bytes(image), error)) &&
           device_merge(run->pipeline->device, planes, alpha, recipe_light(run->recipe, number, gpu->linear), image,
                        error);
}

/* Copy the planes after those that a filter has read FROM and written TO: alpha that it keeps. */
static bool copy_planes(const struct pipeline_run *run, const struct plane *from, const struct plane *to,
                        struct error *error)
{
    const int count = run->work.planes * images_of(run) - from->count;
    return count == 0 || device_copy(run->pipeline->device, plane_row(to, to->count, 0),
                                     plane_row(from, from->count, 0), (size_t)count * from->plane_bytes, error);
}

/* Queue the steps from FIRST to the one before END. All planes are those of an image, or of several images. */
static bool queue_points(struct pipeline_run *run, size_t first, size_t end, const struct plane *from,
                         const struct plane *to, struct error *error)
{
    const struct device_points points = points_of(run, first, end);
    const struct plane tall_from = tall_planes(run, from), tall_to = tall_planes(run, to);
    return device_change_planes(run->pipeline->device, &points, run->images < 0 ? -run->images : tall_from.count,
                                &tall_from, &tall_to, error);
}

/* Queue the filters that work on planes, beginning at planes[0]. *IN becomes the index of the planes that hold the
 * result. If the image has no samples, nothing is merged between filters, and planes that a filter leaves out are
 * copied. */
static bool queue_chain(struct pipeline_run *run, const struct image *image, struct gpu_image *gpu, bool uploads,
                        int *in, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    struct device *device = run->pipeline->device;
    const bool has_image = gpu->image.samples != NULL;
    const bool merges = has_image && recipe_merges_between(recipe, run->effective_alpha, image);
    *in = 0;
    for (size_t i = gpu->first, next; i < gpu->last; i = next, *in = !*in) {
        const enum alpha alpha = recipe_alpha(recipe, &run->work, run->effective_alpha, i);
        const bool is_point = fuses(run, i) && !merges && gpu->linear == NULL;
        struct plane *from = &gpu->planes[*in], *to = &gpu->planes[!*in];
        if (i > gpu->first && merges && !merge_after(run, i - 1, from, gpu, error))
            return false;
        from->count = to->count = (is_point ? run->work.planes : image_planes(image, alpha)) * images_of(run);
        if (i > gpu->first && merges &&
            !device_split(device, &gpu->image, alpha, recipe_light(recipe, i, gpu->linear), from, error))
            return false;
        resize_image(run, i, &gpu->image, to);
        next = is_point ? points_end(run, i, gpu->last) : i + 1;
        if (!(is_point ? queue_points(run, i, next, from, to, error) : queue_filter(run, i, from, to, uploads, error)))
            return false;
        if (!has_image && recipe->chain->count > 1 && !copy_planes(run, from, to, error))
            return false;
    }
    return true;
}

/* Are the taps of the only filter, number FIRST, where its kernels read them? */
static bool has_taps(const struct pipeline_run *run, size_t first)
{
    const struct constant_memory *memory = run->pipeline->resources->constant_memory;
    const struct planned *planned = run->planned;
    return run->pipeline->uploaded == planned && memory->variant == planned->plans[first].variant &&
           memory->sample == planned->sample && recipe_equal(&memory->recipe, &planned->recipe);
}

/* Record whose taps constant memory has now: those of the only filter, number FIRST, or parts of several. Its lock is
 * held. */
static void record_upload(struct pipeline_run *run, size_t first, bool is_whole)
{
    struct constant_memory *memory = run->pipeline->resources->constant_memory;
    struct planned *planned = run->planned;
    run->pipeline->uploaded = is_whole ? planned : NULL;
    memory->variant = is_whole ? planned->plans[first].variant : NULL;
    memory->sample = planned->sample;
    chain_keep(planned->recipe.chain);
    chain_release(memory->recipe.chain);
    memory->recipe = planned->recipe;
}

/* Run the filters. All streams of a GPU share its constant memory. If this pipeline's taps are there, hold the lock for
 * reading until the image is done. Otherwise hold it alone, from the upload of the first taps until the last kernel
 * ends. Drain this stream before, so that no other pipeline waits for this image's upload. */
static bool run_filters(struct pipeline_run *run, const struct image *image, struct gpu_image *gpu, int *in,
                        struct error *error)
{
    struct device *device = run->pipeline->device;
    struct constant_memory *memory = gpu->first < gpu->last ? run->pipeline->resources->constant_memory : NULL;
    bool uploads = true;
    if (memory != NULL && gpu->reads_taps) {
        uploads = false;
    } else if (memory != NULL) {
        pthread_rwlock_rdlock(&memory->lock);
        uploads = !has_taps(run, gpu->first);
        gpu->reads_taps = !uploads;
        if (uploads) {
            pthread_rwlock_unlock(&memory->lock);
            if (!device_wait(device, error))
                return false;
            pthread_rwlock_wrlock(&memory->lock);
        }
    }
    bool done = gpu_mark(run, MARK_LOCK, error) && queue_chain(run, image, gpu, uploads, in, error) &&
                gpu_mark(run, MARK_CONVOLVE, error);
    if (memory != NULL && uploads) {
        done = device_wait(device, done ? error : NULL) && done;
        record_upload(run, gpu->first, done && gpu->last - gpu->first == 1);
        pthread_rwlock_unlock(&memory->lock);
    }
    return done;
}

/* ---- An image ---- */

/* The image becomes planes. */
static bool split_image(struct pipeline_run *run, const struct image *in, struct gpu_image *gpu, struct error *error)
{
    const enum alpha alpha = recipe_alpha(run->recipe, &run->work, run->effective_alpha, gpu->first);
    const struct device_points points = points_of(run, 0, gpu->first);
    struct device *device = run->pipeline->device;
    gpu->planes[0].count = image_planes(in, alpha);
    /* The merge needs the samples before: alpha that is kept, and levels whose light does not change. */
    if (in->samples != gpu->image.samples && !copy_image_samples(run->pipeline, in, &gpu->image, error))
        return false;
    if (points.count > 0 && !recipe_merges_between(run->recipe, run->effective_alpha, in))
        return device_split_points(device, &points, &gpu->image, &gpu->planes[0], error);
    return (points.count == 0 || device_change_image(device, &points, &gpu->image, &gpu->image, error)) &&
           device_split(device, &gpu->image, alpha, recipe_light(run->recipe, gpu->first, gpu->linear), &gpu->planes[0],
                        error);
}

static bool merge_image(struct pipeline_run *run, const struct image *out, const struct gpu_image *gpu, int result,
                        struct error *error)
{
    const struct device_points points = points_of(run, gpu->last, run->recipe->chain->count);
    const struct plane *planes = &gpu->planes[result];
    struct device *device = run->pipeline->device;
    const bool merged =
        points.count > 0 && !recipe_merges_between(run->recipe, run->effective_alpha, out)
            ? device_merge_points(device, &points, planes, &gpu->image, error)
            : merge_after(run, gpu->last - 1, planes, gpu, error) &&
                  (points.count == 0 || device_change_image(device, &points, &gpu->image, &gpu->image, error));
    return merged && (out->samples == gpu->image.samples || copy_image_samples(run->pipeline, &gpu->image, out, error));
}

/* Channels that are filtered as they are become planes, or are planes. Those after them are kept. */
static bool split_channels(struct pipeline_run *run, const struct image *in, const struct image *out,
                           struct gpu_image *gpu, struct error *error)
{
    const int count = run->work.planes;
    const bool is_direct = in->samples != out->samples && gpu->first == 0 && gpu->last == run->recipe->chain->count &&
                           (gpu->last == 1 || points_end(run, 0, gpu->last) == gpu->last);
    const struct device_points points = points_of(run, 0, gpu->first);
    struct plane *planes = gpu->planes;
    const struct image from = channels_of(in, 0, count), to = image_of(&planes[0]);
    if (is_direct && is_planar(run, out, count))
        planes[1] = planes_of(out, &planes[1]);
    if (is_direct && is_planar(run, in, count)) {
        planes[0] = planes_of(in, &planes[0]);
        return true;
    }
    if (!gpu_is_packed(in))
        return copy_image_samples(run->pipeline, &from, &to, error);
    const struct image all = tall_image(run, in);
    const struct plane tall = tall_planes(run, &planes[0]);
    return points.count > 0 ? device_split_points(run->pipeline->device, &points, &all, &tall, error)
                            : device_split(run->pipeline->device, &all, ALPHA_FILTER, NULL, &tall, error);
}

static bool merge_channels(struct pipeline_run *run, const struct image *in, const struct image *out,
                           struct gpu_image *gpu, int result, struct error *error)
{
    struct device *device = run->pipeline->device;
    struct plane *planes = &gpu->planes[result];
    const int count = run->work.planes, kept = in->channels - count;
    const struct device_points points = points_of(run, gpu->last, run->recipe->chain->count);
    const struct image kept_in = channels_of(in, count, kept), kept_out = channels_of(out, count, kept);
    planes->count = count * images_of(run); /* the last filter may have left alpha out */
    const struct image from = image_of(planes), to = channels_of(out, 0, count), all = tall_image(run, out);
    const struct plane tall = tall_planes(run, planes);
    if (kept > 0 && in->samples != out->samples && !copy_image_samples(run->pipeline, &kept_in, &kept_out, error))
        return false;
    return planes->data == (void *)out->samples ? true
           : points.count > 0                   ? device_merge_points(device, &points, &tall, &all, error)
           : gpu_is_packed(out)                 ? device_merge(device, &tall, ALPHA_FILTER, NULL, &all, error)
                                                : copy_image_samples(run->pipeline, &from, &to, error);
}

/* The image becomes the image, by steps that fuse. */
static bool change_image(struct pipeline_run *run, const struct image *in, const struct image *out,
                         const struct gpu_image *gpu, struct error *error)
{
    const struct device_points points = points_of(run, 0, gpu->first);
    const struct device_points rest = points_of(run, gpu->last, run->recipe->chain->count);
    const struct image from = tall_image(run, in), to = tall_image(run, out);
    return device_change_image(run->pipeline->device, &points, &from, &to, error) &&
           (rest.count == 0 || device_change_image(run->pipeline->device, &rest, &to, &to, error));
}

/* Queue the way from IN to OUT, in device memory. If GPU's image has samples, IN is split and merged there; memory that
 * differs from IN or OUT is copied. They are large enough for the largest image. Otherwise IN and OUT do not overlap,
 * or begin at the same address and have no padding. GPU's image gets the size of the result. */
static bool queue_image(struct pipeline_run *run, const struct image *in, const struct image *out,
                        struct gpu_image *gpu, struct error *error)
{
    const bool has_image = gpu->image.samples != NULL, is_image = choose_filters(run, in, out, gpu);
    int result;
    return (is_image    ? change_image(run, in, out, gpu, error)
            : has_image ? split_image(run, in, gpu, error)
                        : split_channels(run, in, out, gpu, error)) &&
           gpu_mark(run, MARK_SPLIT, error) && run_filters(run, in, gpu, &result, error) &&
           (is_image    ? true
            : has_image ? merge_image(run, out, gpu, result, error)
                        : merge_channels(run, in, out, gpu, result, error)) &&
           gpu_mark(run, MARK_MERGE, error);
}

/* Leave out the channels of IMAGE, without padding, that its result does not have. */
static bool narrow_image(struct pipeline_run *run, struct image *image, struct error *error)
{
    struct image narrow = image_narrow(image, run->produced_channels), copy = image_packed(&narrow, NULL);
    struct workspace *memory = &run->pipeline->memory[MEMORY_ASIDE];
    if (run->produced_channels == 0 || run->produced_channels == image->channels)
        return true;
    if (!device_reserve(run->pipeline->device, memory, image_bytes(&copy), error))
        return false;
    copy.samples = memory->bytes;
    image->channels = copy.channels;
    return copy_image_samples(run->pipeline, &narrow, &copy, error) &&
           device_copy(run->pipeline->device, image->samples, copy.samples, image_bytes(&copy), error);
}

bool gpu_filter(struct pipeline_run *run, struct gpu_image *gpu, struct gpu_picture *picture, struct error *error)
{
    struct image *image = &picture->view, from = *image;
    if (!reserve_planes(run, &from, gpu, error) || !recipe_resize(run->recipe, &run->work, image, error))
        return false;
    gpu->image.samples = from.samples;
    return queue_image(run, &from, image, gpu, error) && narrow_image(run, image, error);
}

/* ---- Several images in the caller's memory ---- */

/* Are the channels of all images at equal distances? Then *JOINED becomes one image with all of them. */
static bool join_channels(const struct images *images, struct image *joined)
{
    const size_t channels = (size_t)images->first.channels;
    *joined = images->first;
    if (channels == 1)
        joined->channel_stride = images->stride;
    joined->channels = (int)(images->count * channels);
    return images->stride == channels * joined->channel_stride;
}

/* Are the images interleaved, without padding, and each right after the one before? */
static bool are_stacked(const struct images *images)
{
    const struct image *first = &images->first;
    return first->channels > 1 && first->stored == STORED_FLOAT && (uintptr_t)first->samples % IMAGE_ALIGNMENT == 0 &&
           image_is_packed(first) && images->stride == image_bytes(first);
}

/* Have the channels of all images nothing to do with each other, and are they few enough for one launch? */
static bool is_one_launch(const struct recipe *recipe, const struct images *images)
{
    enum { PLANES_MAX = 65535 }; /* grid.z */
    const struct image *first = &images->first;
    struct image shape = *first;
    size_t largest = image_samples(first);
    for (size_t i = 0; i < recipe->chain->count; i++) {
        const struct filter *filter = &recipe->chain->filters[i];
        if (filter_kind(filter)->joins_planes != NULL && filter_kind(filter)->joins_planes(filter) &&
            !step_fuses(filter)) /* whose pixels are known */
            return false;
        filter_resize(filter, &shape.width, &shape.height, NULL);
        largest = image_samples(&shape) > largest ? image_samples(&shape) : largest;
    }
    return images->count > 1 && !recipe->linear && !recipe_is_limited(recipe) &&
           (recipe->alpha == ALPHA_FILTER || !image_has_alpha(first)) &&
           images->count <= PLANES_MAX / (size_t)first->channels && images->count <= ((size_t)1 << 30) / largest;
}

int pipeline_join_images(const struct recipe *recipe, const struct images *in, const struct images *out,
                         struct image *joined_in, struct image *joined_out)
{
    if (!is_one_launch(recipe, in))
        return 0;
    if (join_channels(in, joined_in) && join_channels(out, joined_out))
        return -in->first.channels;
    *joined_in = in->first;
    *joined_out = out->first;
    return are_stacked(in) && are_stacked(out) ? (int)in->count : 0;
}

/* ---- An image in the caller's memory ---- */

/* Copy IMAGE without padding. */
static bool copy_packed(struct pipeline *pipeline, const struct image *image, struct image *copy, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_COPY];
    *copy = image_packed(image, NULL);
    if (!device_reserve(pipeline->device, memory, image_bytes(copy), error))
        return false;
    copy->samples = memory->bytes;
    return copy_image_samples(pipeline, image, copy, error);
}

/* Is alpha the largest level everywhere? Waits for the work that is queued on the caller's stream. */
static bool check_opaque(struct pipeline *pipeline, const struct image *image, bool *is_opaque, struct error *error)
{
    struct image packed = *image;
    return (gpu_is_packed(image) || copy_packed(pipeline, image, &packed, error)) &&
           device_is_opaque(pipeline->device, &packed, is_opaque, error);
}

/* Choose memory for the interleaved image whose colours are converted: the output's if the largest one fits. */
static bool choose_image(struct pipeline *pipeline, const struct image *out, struct gpu_image *gpu, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_IMAGE];
    const bool goes_to_out = gpu_is_packed(out) && image_bytes(out) >= gpu->largest;
    if (!goes_to_out && !device_reserve(pipeline->device, memory, gpu->largest, error))
        return false;
    gpu->image.samples = goes_to_out ? out->samples : memory->bytes;
    return true;
}

/* Can samples that are stored so be lost with an error? See image_copy. */
static bool is_checked(const struct image *image)
{
    return image->stored == STORED_DOUBLE || image->stored == STORED_BOOL;
}

/* Has a copy since reset_lost lost a sample of IMAGE, or of its result? Waits for the work that is queued. */
static bool check_lost(struct pipeline *pipeline, const struct image *image, struct error *error)
{
    uint8_t is_lost = 0;
    return device_download(pipeline->device, &is_lost, pipeline->memory[MEMORY_LOST].bytes, sizeof is_lost, error) &&
           device_wait(pipeline->device, error) && (!is_lost || image_refuse(image, error));
}

static bool reset_lost(struct pipeline *pipeline, struct error *error)
{
    struct workspace *memory = &pipeline->memory[MEMORY_LOST];
    return device_reserve(pipeline->device, memory, sizeof(uint8_t), error) &&
           device_fill(pipeline->device, memory->bytes, 0, sizeof(uint8_t), error);
}

enum run_result run_on_device(struct pipeline_run *run, const struct image *in, const struct image *out,
                              struct error *error)
{
    struct gpu_image gpu = {0};
    struct image from = *in;
    bool is_opaque = true;
    if (run->expects_opaque && !check_opaque(run->pipeline, in, &is_opaque, error))
        return RUN_FAILED;
    if (!is_opaque)
        return RUN_TRANSLUCENT;
    const bool converts = run->linear != NULL || recipe_is_limited(run->recipe) ||
                          (run->effective_alpha == ALPHA_PREMULTIPLY && image_has_alpha(in));
    const bool is_same = in->samples == out->samples && in->width == out->width && in->height == out->height &&
                         gpu_is_packed(in) && gpu_is_packed(out);
    const bool done = reserve_planes(run, in, &gpu, error) && (!is_checked(in) || reset_lost(run->pipeline, error)) &&
                      (!overlap(in, out) || is_same || copy_packed(run->pipeline, in, &from, error)) &&
                      (!converts || choose_image(run->pipeline, out, &gpu, error)) &&
                      queue_image(run, &from, out, &gpu, error) &&
                      (!is_checked(in) || check_lost(run->pipeline, in, error));
    return done ? RUN_DONE : RUN_FAILED;
}
