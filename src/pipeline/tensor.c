/* SPDX-License-Identifier: MIT
 *
 * A tensor of many pictures on a GPU: one launch for each group resizes all its pictures, whatever their sizes are.
 * Pictures with a side of the same length share the taps for it. */
#include "pipeline/pipeline_internal.h"

#include "base/parallel.h"
#include "kernels/resample/pillow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The axes of a group: each one once. */
struct axes {
    struct resample_axis *axes;
    size_t count;
    size_t *offsets; /* the words before those of an axis */
    size_t *numbers; /* the axes of each picture: that of its columns, and that of its rows */
    int32_t *words;
};

static bool open_axes(struct axes *axes, size_t pictures, struct error *error)
{
    axes->axes = calloc(2 * pictures, sizeof *axes->axes);
    axes->offsets = calloc(2 * pictures + 1, sizeof *axes->offsets);
    axes->numbers = calloc(2 * pictures, sizeof *axes->numbers);
    return (axes->axes != NULL && axes->offsets != NULL && axes->numbers != NULL) ||
           error_no_memory(error, "the taps of %zu pictures", pictures);
}

static void close_axes(struct axes *axes)
{
    for (size_t i = 0; i < axes->count; i++)
        free(axes->axes[i].taps);
    free(axes->axes);
    free(axes->offsets);
    free(axes->numbers);
}

/* The number of the axis that makes MADE outputs of FROM inputs, from output FIRST of TO on. */
static size_t find_axis(struct axes *axes, enum resample_kernel kernel, int from, int to, int first, int made)
{
    size_t i = axes->count;
    while (i > 0) {
        const struct resample_axis *axis = &axes->axes[--i];
        if (axis->from == from && axis->to == to && axis->first == first && axis->made == made)
            return i;
    }
    struct resample_axis *axis = &axes->axes[axes->count];
    resample_shape(axis, kernel, from, to, 8);
    axis->first = first;
    axis->made = made;
    return axes->count++;
}

static void make_axis(void *context, int64_t index, int thread)
{
    const struct axes *axes = context;
    (void)thread;
    resample_make(&axes->axes[index]);
}

static void pack_axis(void *context, int64_t index, int thread)
{
    const struct axes *axes = context;
    (void)thread;
    pillow_pack(&axes->axes[index], axes->words + axes->offsets[index]);
}

/* Find the axes of all pictures, and make their taps. */
static bool make_axes(const struct group *group, struct axes *axes, struct error *error)
{
    const struct gpu_tensor *tensor = group->tensor;
    struct thread_pool *pool = group->pipeline->resources->pool;
    for (size_t i = 0; i < group->count; i++) {
        const struct tensor_part *part = &tensor->parts[group->pictures[i] - group->first];
        const struct image *view = &group->pictures[i]->view;
        axes->numbers[2 * i] =
            find_axis(axes, tensor->kernel, view->height, part->height, part->part.y, part->part.height);
        axes->numbers[2 * i + 1] =
            find_axis(axes, tensor->kernel, view->width, part->width, part->part.x, part->part.width);
    }
    parallel_for(pool, thread_pool_threads(pool), (int64_t)axes->count, make_axis, axes);
    for (size_t i = 0; i < axes->count; i++) {
        if (axes->axes[i].taps == NULL)
            return error_no_memory(error, "the taps of %zu pictures", group->count);
        axes->offsets[i + 1] = axes->offsets[i] + pillow_words(&axes->axes[i]);
    }
    return true;
}

/* Describe picture NUMBER of a group. WORDS are those of the axes, in device memory. */
static void describe(struct group *group, size_t number, const struct axes *axes, const int32_t *words,
                     struct pillow_picture *picture)
{
    const size_t index = (size_t)(group->pictures[number] - group->first);
    const size_t column_axis = axes->numbers[2 * number], row_axis = axes->numbers[2 * number + 1];
    const struct resample_axis *columns = &axes->axes[column_axis], *rows = &axes->axes[row_axis];
    const struct tensor_part *part = &group->tensor->parts[index];
    const struct image *in = &group->pictures[number]->view, out = images_at(&group->tensor->out, index);
    struct tensor_table *table = &group->table;
    *picture = (struct pillow_picture){
        .in = in->samples,
        .out = out.samples,
        .in_row = image_row_stride(in),
        .in_pixel = image_pixel_stride(in),
        .in_channel = in->channels == 3 ? image_channel_stride(in) : 0,
        .out_row = image_row_stride(&out),
        .out_pixel = image_pixel_stride(&out),
        .out_channel = image_channel_stride(&out),
        .width = out.width,
        .height = out.height,
        .x = part->x,
        .y = part->y,
        .rows = {words + axes->offsets[row_axis], rows->made, rows->count},
        .columns = {words + axes->offsets[column_axis], columns->made, columns->count},
        .rows_first = resample_rows_first(group->tensor->kernel, in->width, in->height, part->width, part->height),
    };
    const size_t shared = pillow_tiles(picture, columns, rows, 3, group->count);
    const unsigned tiles = pillow_tile_count(picture);
    table->shared = shared > table->shared ? shared : table->shared;
    table->tiles = tiles > table->tiles ? tiles : table->tiles;
}

static bool load_table(struct group *group, struct axes *axes, struct error *error)
{
    struct device *device = group->pipeline->device;
    struct thread_pool *pool = group->pipeline->resources->pool;
    struct workspace *on_device = &group->pipeline->memory[MEMORY_TABLE + group->number];
    struct workspace *on_host = &group->pipeline->memory[MEMORY_LOCKED_TABLE + group->number];
    static_assert(sizeof(struct pillow_levels) % sizeof(int32_t) == 0, "words follow the levels");
    const size_t pictures = group->count * sizeof(struct pillow_picture),
                 head = pictures + sizeof(struct pillow_levels);
    if (!open_axes(axes, group->count, error) || !make_axes(group, axes, error))
        return false;
    const size_t bytes = head + axes->offsets[axes->count] * sizeof *axes->words;
    if (!device_reserve(device, on_device, bytes, error) || !device_reserve(device, on_host, bytes, error))
        return false;
    group->table.pictures = (const struct pillow_picture *)on_device->bytes;
    group->table.levels = (const struct pillow_levels *)(const void *)(on_device->bytes + pictures);
    for (size_t i = 0; i < group->count; i++)
        describe(group, i, axes, (const int32_t *)(const void *)(on_device->bytes + head),
                 (struct pillow_picture *)(void *)on_host->bytes + i);
    memcpy(on_host->bytes + pictures, group->tensor->levels, sizeof *group->tensor->levels);
    axes->words = (int32_t *)(void *)(on_host->bytes + head);
    parallel_for(pool, thread_pool_threads(pool), (int64_t)axes->count, pack_axis, axes);
    return device_upload(device, on_device->bytes, on_host->bytes, bytes, error);
}

/* The table is page-locked, and uploaded before the pictures are decoded. So its memory is free again once the group is
 * decoded, and the host never waits for the upload. */
bool tensor_load(struct group *group, struct error *error)
{
    struct axes axes = {0};
    const bool done = load_table(group, &axes, error);
    close_axes(&axes);
    return done;
}

bool tensor_queue(struct group *group, struct error *error)
{
    const struct tensor_table *table = &group->table;
    return pillow_launch(group->pipeline->device, table->pictures, group->count, table->levels, table->tiles,
                         table->shared, error);
}
