/* SPDX-License-Identifier: MIT
 *
 * Many pictures on a GPU, to a tensor or to images of their own: one launch for each group resizes all its pictures,
 * whatever their sizes are. Pictures with a side of the same length share the taps for it. The pipeline keeps these. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"
#include "kernels/resample/pillow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A group has two axes a picture at most. TAPS_MAX are bytes of taps that are kept. */
enum { AXES_MAX = 1 << 13, TAPS_MAX = 1 << 26 };

/* The axes that a pipeline keeps, each one once. Some are used by the group that is loaded. */
struct tensor_axes {
    struct resample_axis axes[AXES_MAX];
    size_t count, bytes;                        /* bytes of all taps */
    uint16_t slots[2 * AXES_MAX];               /* a hash table: the number of an axis and 1, or 0 */
    size_t groups[AXES_MAX], group;             /* the last group that used an axis, and the one that is loaded */
    size_t offsets[AXES_MAX];                   /* in the group's words, of an axis that is used */
    uint16_t used[AXES_MAX], numbers[AXES_MAX]; /* each axis that is used; two a picture, of columns and of rows */
    size_t used_count;
    int32_t *words;
};

static void forget_axes(struct tensor_axes *axes)
{
    for (size_t i = 0; i < axes->count; i++)
        free(axes->axes[i].taps);
    axes->count = axes->bytes = 0;
    memset(axes->slots, 0, sizeof axes->slots);
}

void tensor_release(struct pipeline *pipeline)
{
    if (pipeline->axes != NULL)
        forget_axes(pipeline->axes);
    free(pipeline->axes);
    pipeline->axes = NULL;
}

/* The number of the axis that makes MADE outputs of FROM inputs, from output FIRST of TO on. */
static uint16_t find_axis(struct tensor_axes *axes, enum resample_kernel kernel, int from, int to, int first, int made)
{
    struct resample_axis wanted;
    resample_shape(&wanted, kernel, from, to, 8);
    wanted.first = first;
    wanted.made = made;
    const uint64_t hash = (((uint64_t)from * 31 + (uint64_t)to) * 31 + (uint64_t)first) * 31 + (uint64_t)made;
    size_t slot = hash % (2 * AXES_MAX);
    for (; axes->slots[slot] > 0; slot = (slot + 1) % (2 * AXES_MAX)) {
        const struct resample_axis *axis = &axes->axes[axes->slots[slot] - 1];
        if (axis->kernel == wanted.kernel && axis->from == from && axis->to == to && axis->first == first &&
            axis->made == made)
            break;
    }
    if (axes->slots[slot] == 0) {
        axes->axes[axes->count++] = wanted;
        axes->slots[slot] = (uint16_t)axes->count;
    }
    const uint16_t number = (uint16_t)(axes->slots[slot] - 1);
    if (axes->groups[number] != axes->group)
        axes->used[axes->used_count++] = number;
    axes->groups[number] = axes->group;
    return number;
}

static void make_axis(void *context, int64_t index, int thread)
{
    struct tensor_axes *axes = context;
    struct resample_axis *axis = &axes->axes[axes->used[index]];
    (void)thread;
    if (axis->taps == NULL)
        resample_make(axis);
}

static void pack_axis(void *context, int64_t index, int thread)
{
    const struct tensor_axes *axes = context;
    const uint16_t number = axes->used[index];
    (void)thread;
    pillow_pack(&axes->axes[number], axes->words + axes->offsets[number]);
}

/* Find the axes of all pictures, and make the taps that are not there. *WORDS becomes their number in the table. */
static bool make_axes(const struct group *group, struct tensor_axes *axes, size_t *words, struct error *error)
{
    const struct gpu_tensor *tensor = group->tensor;
    struct thread_pool *pool = group->pipeline->resources->pool;
    if (axes->count + 2 * group->count > AXES_MAX || axes->bytes > TAPS_MAX)
        forget_axes(axes);
    axes->group++;
    axes->used_count = *words = 0;
    const size_t before = axes->count;
    for (size_t i = 0; i < group->count; i++) {
        const struct tensor_part *part = &tensor->parts[group->pictures[i] - group->first];
        const struct image *view = &group->pictures[i]->view;
        axes->numbers[2 * i] =
            find_axis(axes, tensor->kernel, view->height, part->height, part->part.y, part->part.height);
        axes->numbers[2 * i + 1] =
            find_axis(axes, tensor->kernel, view->width, part->width, part->part.x, part->part.width);
    }
    parallel_for(pool, axes->count > before ? thread_pool_threads(pool) : 1, (int64_t)axes->used_count, make_axis,
                 axes);
    for (size_t i = 0; i < axes->used_count; i++) {
        const struct resample_axis *axis = &axes->axes[axes->used[i]];
        if (axis->taps == NULL)
            return error_no_memory(error, "the taps of %zu pictures", group->count);
        axes->bytes += axes->used[i] >= before ? resample_bytes(axis) : 0;
        axes->offsets[axes->used[i]] = *words;
        *words += pillow_words(axis);
    }
    return true;
}

/* A pass along AXIS. By our own rule, that of columns leaves bits of m for that of rows. */
static struct pillow_pass pass_of(const struct tensor_axes *axes, size_t number, const int32_t *words, int fraction)
{
    const struct resample_axis *axis = &axes->axes[number];
    return (struct pillow_pass){words + axes->offsets[number], axis->made,
                                axis->shift + (resample_is_pillow(axis->kernel) ? 0 : fraction)};
}

/* Describe picture NUMBER of a group. WORDS are those of the axes, in device memory. */
static void describe(struct group *group, size_t number, const struct tensor_axes *axes, const int32_t *words,
                     struct pillow_picture *picture)
{
    const struct gpu_tensor *tensor = group->tensor;
    const size_t index = (size_t)(group->pictures[number] - group->first);
    const size_t column_axis = axes->numbers[2 * number], row_axis = axes->numbers[2 * number + 1];
    const struct tensor_part *part = &tensor->parts[index];
    const struct image *in = &group->pictures[number]->view;
    const struct image out = tensor->outs != NULL ? tensor->outs[index] : images_at(&tensor->out, index);
    struct pillow_table *table = &group->table;
    *picture = (struct pillow_picture){
        .in = in->samples,
        .out = out.samples,
        .in_row = (ptrdiff_t)image_row_stride(in),
        .in_pixel = (ptrdiff_t)image_pixel_stride(in),
        .in_channel = in->channels == 3 ? image_channel_stride(in) : 0,
        .out_row = (ptrdiff_t)image_row_stride(&out),
        .out_pixel = (ptrdiff_t)image_pixel_stride(&out),
        .out_channel = out.channels == 3 ? image_channel_stride(&out) : 0,
        .width = out.width,
        .height = out.height,
        .x = part->x,
        .y = part->y,
        .rows = pass_of(axes, row_axis, words, RESAMPLE_FRACTION),
        .columns = pass_of(axes, column_axis, words, -RESAMPLE_FRACTION),
        .rows_first = resample_rows_first(tensor->kernel, in->width, in->height, part->width, part->height),
    };
    const size_t shared = pillow_tiles(picture, &axes->axes[column_axis], &axes->axes[row_axis],
                                       table->is_pillow ? 3 : 3 * sizeof(int16_t), group->count);
    const unsigned tiles = pillow_tile_count(picture);
    table->shared = shared > table->shared ? shared : table->shared;
    table->tiles = tiles > table->tiles ? tiles : table->tiles;
}

/* The table is page-locked, and uploaded before the pictures are decoded. So its memory is free again once the group is
 * decoded, and the host never waits for the upload. */
bool tensor_load(struct group *group, struct error *error)
{
    struct device *device = group->pipeline->device;
    struct thread_pool *pool = group->pipeline->resources->pool;
    struct workspace *on_device = &group->pipeline->memory[MEMORY_TABLE + group->number];
    struct workspace *on_host = &group->pipeline->memory[MEMORY_LOCKED_TABLE + group->number];
    static_assert(sizeof(struct pillow_levels) % sizeof(int32_t) == 0, "words follow the levels");
    const size_t pictures = group->count * sizeof(struct pillow_picture),
                 head = pictures + sizeof(struct pillow_levels);
    size_t words;
    if (group->pipeline->axes == NULL)
        group->pipeline->axes = calloc(1, sizeof *group->pipeline->axes);
    struct tensor_axes *axes = group->pipeline->axes;
    if (axes == NULL)
        return error_no_memory(error, "the taps of %zu pictures", group->count);
    if (!make_axes(group, axes, &words, error))
        return false;
    const size_t bytes = head + words * sizeof *axes->words;
    if (!device_reserve_more(device, on_device, bytes, error) || !device_reserve_more(device, on_host, bytes, error))
        return false;
    group->table.pictures = (const struct pillow_picture *)on_device->bytes;
    group->table.is_pillow = resample_is_pillow(group->tensor->kernel);
    if (group->tensor->levels != NULL)
        group->table.levels = (const struct pillow_levels *)(const void *)(on_device->bytes + pictures);
    for (size_t i = 0; i < group->count; i++)
        describe(group, i, axes, (const int32_t *)(const void *)(on_device->bytes + head),
                 (struct pillow_picture *)(void *)on_host->bytes + i);
    if (group->tensor->levels != NULL)
        memcpy(on_host->bytes + pictures, group->tensor->levels, sizeof *group->tensor->levels);
    axes->words = (int32_t *)(void *)(on_host->bytes + head);
    parallel_for(pool, thread_pool_threads(pool), (int64_t)axes->used_count, pack_axis, axes);
    return device_upload(device, on_device->bytes, on_host->bytes, bytes, error);
}

bool tensor_queue(struct group *group, struct error *error)
{
    return pillow_launch(group->pipeline->device, &group->table, group->count, error);
}

/* ---- Images of their own ---- */

/* IMAGE after MOVE, which pads nothing: a view of the same samples. Its strides may be below 0, as size_t has them. */
static struct image moved_view(const struct filter *move, const struct image *image)
{
    const struct origin origin = filter_origin(move, image->width, image->height);
    const struct pixel_walk walk =
        orient_walk(move->move.orientation, image->width, image->height, (ptrdiff_t)image_pixel_stride(image),
                    (ptrdiff_t)image_row_stride(image));
    struct image moved = *image;
    filter_resize(move, &moved.width, &moved.height, NULL);
    moved.samples += walk.first + origin.x * walk.column + origin.y * walk.row;
    moved.channel_stride = image_channel_stride(image);
    moved.pixel_stride = (size_t)walk.column;
    moved.row_stride = (size_t)walk.row;
    return moved;
}

/* The only filter of CHAIN that resizes, if those before it move samples, those after it crop, and none pads. */
static const struct filter *find_resize(const struct filter_chain *chain)
{
    const struct filter *resize = NULL, *end = chain->filters + chain->count;
    for (const struct filter *filter = chain->filters; filter < end; filter++) {
        const struct kind_of_step *kind = filter_kind(filter);
        if (kind->moves ? filter->move.pads || (resize != NULL && filter->move.orientation > 1)
                        : !kind->resizes || resize != NULL)
            return NULL;
        resize = kind->moves ? resize : filter;
    }
    return resize;
}

/* Does the table suit an image? A larger one fills a GPU by itself, and has faster kernels. */
static bool is_for_table(const struct images *images)
{
    enum { PIXELS = 1 << 20 };
    const struct image *image = &images->first;
    return images->count == 1 && image->bits == 8 && !image_has_alpha(image) && image->width <= PILLOW_OWN_MAX &&
           image->height <= PILLOW_OWN_MAX && image->width * image->height <= PIXELS;
}

/* Plan the way of a picture by RESIZE, a filter of CHAIN, to OUT: its view after the filters before, and its part. */
static void plan_picture(const struct filter_chain *chain, const struct filter *resize, const struct image *in,
                         const struct image *out, struct image *view, struct tensor_part *part)
{
    const struct filter *filter = chain->filters;
    for (*view = *in; filter < resize; filter++)
        *view = moved_view(filter, view);
    *part = (struct tensor_part){.width = view->width, .height = view->height};
    filter_resize(resize, &part->width, &part->height, NULL);
    int width = part->width, height = part->height;
    part->part = (struct rectangle){.width = out->width, .height = out->height};
    while (++filter < chain->filters + chain->count) {
        const struct origin origin = filter_origin(filter, width, height);
        filter_resize(filter, &width, &height, NULL);
        part->part.x += origin.x;
        part->part.y += origin.y;
    }
}

bool pipeline_resize_images(struct pipeline *pipeline, const struct recipe *recipe, const struct image_pair *pairs,
                            size_t count, bool *is_done, struct error *error)
{
    const struct filter *resize = recipe->linear ? NULL : find_resize(recipe->chain);
    size_t planned = 0;
    if (resize == NULL)
        return true;
    struct gpu_picture *pictures = calloc(count, sizeof *pictures);
    struct tensor_part *parts = calloc(count, sizeof *parts);
    struct image *outs = calloc(count, sizeof *outs);
    const struct end end = {.kind = END_DEVICE, .image = &outs[0]};
    const struct gpu_tensor tensor = {.outs = outs, .parts = parts, .kernel = resize->resize.kernel};
    bool done = (pictures != NULL && parts != NULL && outs != NULL) || error_no_memory(error, "%zu pictures", count);
    for (size_t i = 0; done && i < count; i++) {
        is_done[i] = is_for_table(&pairs[i].in) && is_for_table(&pairs[i].out);
        planned += is_done[i];
        pictures[i] = (struct gpu_picture){.in = &end, .is_done = !is_done[i]};
        outs[i] = pairs[i].out.first;
        if (is_done[i])
            plan_picture(recipe->chain, resize, &pairs[i].in.first, &outs[i], &pictures[i].view, &parts[i]);
    }
    done = done && (planned == 0 || pipeline_decode_pictures(pipeline, pictures, count, &tensor, error));
    free(pictures);
    free(parts);
    free(outs);
    return done;
}
