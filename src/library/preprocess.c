/* SPDX-License-Identifier: MIT
 *
 * Pictures to a tensor for a model. A GPU decodes and resizes those that it can, each group by one launch; the CPU
 * decodes the others, and a GPU then resizes them if the rule is Pillow's. */
#include "codec/gpu_codec.h"
#include "image/stored.h"
#include "library/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call of gpuconv_preprocess_all. */
struct preprocessing {
    struct list list; /* it is the first member */
    const struct gpuconv_preprocess_options *options;
    const struct gpuconv_view *views; /* the pictures that are no files */
    struct images out;
    bool on_device;
    struct tensor_part *parts; /* for each picture */
    bool uses_gpu;             /* it resizes the pictures, by the rule of Pillow */
    enum resample_kernel kernel;
    struct pillow_levels levels;
    uint8_t background[3];
};

/* ---- Options ---- */

static bool check_preprocessing(struct preprocessing *p, const struct gpuconv_context *context,
                                const struct gpuconv_view *out, int count, struct error *error)
{
    const struct gpuconv_preprocess_options *options = p->options;
    if (options == NULL || options->placements == NULL || options->kernel == NULL)
        return error_set(error, ERROR_USAGE, "there is no kernel, or no placement for each picture; give options");
    p->kernel = resample_find(options->kernel, options->kernel + strlen(options->kernel));
    if (p->kernel == RESAMPLE_NONE)
        return error_set(error, ERROR_USAGE,
                         "there is no kernel \"%s\"; give one of the kernels of resize, such as \"cubic\"",
                         options->kernel);
    if ((options->pad | options->background) > 0xffffff)
        return error_set(error, ERROR_USAGE, "a colour is 0x%x; give 0xRRGGBB",
                         (unsigned)(options->pad > 0xffffff ? options->pad : options->background));
    if (!view_check(out, "output", &p->out, error) || !view_check_apart(out, "output", error) ||
        !library_check_gpu(context, out, error))
        return false;
    if (p->out.count != (size_t)count || out->channels != 3)
        return error_set(error, ERROR_USAGE, "the output has %zu images of %d channels; give %d images of 3 channels",
                         p->out.count, out->channels, count);
    if (out->type == GPUCONV_UINT16 || out->type > GPUCONV_BFLOAT16 ||
        (out->type == GPUCONV_UINT8) != (options->levels == NULL))
        return error_set(error, ERROR_USAGE,
                         "the output has samples of %s %s levels; give uint8 without levels, or float32, float16 or "
                         "bfloat16 with them",
                         view_type_name(out->type), options->levels == NULL ? "without" : "with");
    return library_check_reserved(options->reserved, sizeof options->reserved / sizeof *options->reserved, error);
}

/* Find how the output stores each level. */
static void store_levels(struct preprocessing *p)
{
    const struct gpuconv_preprocess_options *options = p->options;
    bool is_held;
    p->levels.bytes = (int)image_sample_bytes(&p->out.first);
    for (int c = 0; c < 3; c++) {
        p->levels.outside[c] = (uint8_t)(options->pad >> (16 - 8 * c));
        p->background[c] = (uint8_t)(options->background >> (16 - 8 * c));
        for (int level = 0; level < 256; level++) {
            uint8_t *sample = p->levels.samples[c][level];
            *sample = (uint8_t)level;
            if (options->levels != NULL)
                stored_write(options->levels[256 * c + level], p->out.first.stored, sample, &is_held);
        }
    }
}

/* ---- Inspect ---- */

/* Find the part of a picture that is in the output. */
static bool find_part(const struct preprocessing *p, const struct gpuconv_placement *placement,
                      const struct image *picture, struct tensor_part *to, struct error *error)
{
    enum { SIDE_MAX = 100000 };
    const int width = placement->width, height = placement->height, x = placement->x, y = placement->y;
    const struct image *out = &p->out.first;
    const int64_t right = (int64_t)x + out->width, bottom = (int64_t)y + out->height;
    if (width < 1 || width > SIDE_MAX || height < 1 || height > SIDE_MAX)
        return error_set(error, ERROR_USAGE, "a placement has %d x %d pixels; give sides from 1 to %d", width, height,
                         SIDE_MAX);
    if (x >= width || y >= height || right <= 0 || bottom <= 0)
        return error_set(
            error, ERROR_USAGE,
            "the output of %d x %d pixels has nothing of the picture of %d x %d pixels from (%d, %d) on; give "
            "another placement",
            out->width, out->height, width, height, x, y);
    *to = (struct tensor_part){.width = width, .height = height, .part = {.x = x > 0 ? x : 0, .y = y > 0 ? y : 0}};
    to->part.width = (int)(right < width ? right : width) - to->part.x;
    to->part.height = (int)(bottom < height ? bottom : height) - to->part.y;
    to->x = to->part.x - x;
    to->y = to->part.y - y;
    return resample_check(p->options->kernel, p->kernel, picture->width, width, error) &&
           resample_check(p->options->kernel, p->kernel, picture->height, height, error);
}

static bool inspect_view(const struct preprocessing *p, const struct gpuconv_view *view, struct file *file)
{
    struct images images;
    if (!view_check(view, "image", &images, &file->error) || !library_check_gpu(p->list.context, view, &file->error))
        return false;
    file->view = images.first;
    if (view->memory == GPUCONV_HOST)
        return true;
    file->view.channels = images.first.channels >= 3 ? 3 : 1; /* alpha is dropped */
    file->end = (struct end){.kind = END_DEVICE, .image = &file->view};
    return (images.count == 1 && view->type == GPUCONV_UINT8 && p->uses_gpu && !p->options->has_background) ||
           error_set(&file->error, ERROR_USAGE,
                     "a picture in a GPU's memory must be one image of uint8, without a background, for an output "
                     "there and a kernel of Pillow; copy the picture to the host");
}

/* Is picture INDEX a file, and no view? */
static bool is_file(const struct preprocessing *p, int64_t index)
{
    return p->list.files[index].bytes.data != NULL || p->views == NULL;
}

static void inspect_picture(void *context, int64_t index, int thread)
{
    struct preprocessing *p = context;
    struct list *list = &p->list;
    struct file *file = &list->files[index];
    struct gpu_picture *picture = &list->pictures[index];
    (void)thread;
    if (list->given != NULL)
        file->bytes = list->given[index];
    file->on_device = p->on_device;
    picture->is_done = true; /* unless the GPU decodes it */
    if (!is_file(p, index))
        file->has_failed = !inspect_view(p, &p->views[index], file);
    else if (list_inspect(list, file))
        file->view = list_shape(list, file);
    else
        file->has_failed = true;
    file->has_failed =
        file->has_failed || !find_part(p, &p->options->placements[index], &file->view, &p->parts[index], &file->error);
    if (file->has_failed || !p->uses_gpu)
        return;
    if (file->end.kind == END_DEVICE)
        *picture = (struct gpu_picture){.in = &file->end, .view = file->view};
    if (!is_file(p, index))
        return;
    file->view.bits = 8;
    list_plan(list, file, picture);
    if (file->end.kind == END_PNG) { /* the CPU drops alpha, and the lower bits of 16 */
        file->end.kind = END_HOST;
        picture->is_done = true;
    }
}

/* ---- On the CPU ---- */

/* Let IMAGE have 8 bits, and 1 or 3 channels: those of Pillow's convert("RGB"), but for grey, which stays one. */
static bool take_colours(const struct preprocessing *p, struct image *image, struct error *error)
{
    const size_t channels = (size_t)image->channels, colours = channels >= 3 ? 3 : 1;
    const size_t kept = p->options->has_background ? channels : colours;
    const size_t count = (size_t)image->width * (size_t)image->height;
    const uint16_t *words = image_samples16(image);
    uint8_t *to = image->samples; /* no sample is read after it is overwritten */
    for (size_t i = 0; (image->bits > 8 || kept < channels) && i < count; i++)
        for (size_t at = i * channels; at < i * channels + kept; at++)
            *to++ = image->bits == 8 ? image->samples[at]
                    : channels > 1   ? (uint8_t)(words[at] >> 8)
                                     : (uint8_t)(words[at] < 255 ? words[at] : 255);
    image->bits = 8;
    image->channels = (int)kept;
    struct image composed;
    if (!image_has_alpha(image))
        return true;
    if (!image_compose(image, p->background, image_composed_channels(image->channels, p->background), &composed, error))
        return false;
    image_free(image);
    *image = composed;
    return true;
}

/* Let IMAGE be the part of its picture that is in the output. Only what the part needs is computed. */
static bool resize_part(const struct preprocessing *p, const struct tensor_part *to, struct image *image,
                        struct error *error)
{
    const struct resources resources = {.pool = p->list.settings.pool, .cpu_only = true};
    const struct rectangle *part = &to->part;
    struct recipe recipe = {.alpha = ALPHA_FILTER, .choice = CHOICE_CPU};
    struct pipeline *pipeline = calloc(1, sizeof *pipeline);
    struct phases phases;
    struct filter *filters;
    size_t count;
    char name[256];
    snprintf(name, sizeof name, "resize:%dx%d:exact:%s,crop:%dx%d+%d+%d", to->width, to->height, p->options->kernel,
             part->width, part->height, part->x, part->y);
    if (pipeline == NULL)
        return error_no_memory(error, "a picture");
    pipeline_open(pipeline, &resources);
    if (filter_find_all(name, filter_find, &filters, &count, error))
        recipe.chain = chain_make(filters, count, error);
    struct image result = {0};
    const struct end in = {.kind = END_HOST, .image = image};
    struct end out = {.kind = END_HOST, .image = &result}; /* it replaces IMAGE */
    const bool done = recipe.chain != NULL && library_run(pipeline, &phases, &recipe, 0, &in, &out, error);
    pipeline_close(pipeline);
    chain_release(recipe.chain);
    free(pipeline);
    return done;
}

/* Write what levels become, COUNT of them in samples of BYTES: the level at IN, and each that is STEP after it. */
static void write_levels(const uint8_t levels[256][sizeof(float)], size_t bytes, const uint8_t *in, size_t step,
                         int count, uint8_t *out, size_t out_step)
{
    for (int i = 0; bytes == sizeof(float) && i < count; i++, in += step, out += out_step)
        memcpy(out, levels[*in], sizeof(float));
    for (int i = 0; bytes == sizeof(uint16_t) && i < count; i++, in += step, out += out_step)
        memcpy(out, levels[*in], sizeof(uint16_t));
    for (int i = 0; bytes == 1 && i < count; i++, in += step, out += out_step)
        *out = *levels[*in];
}

/* Write IMAGE, whose first pixel is pixel (X, Y) of OUT, and the colour outside around it. */
static void write_picture(const struct preprocessing *p, const struct image *image, int x, int y,
                          const struct image *out)
{
    const size_t bytes = (size_t)p->levels.bytes, step = image_pixel_stride(out), channels = (size_t)image->channels;
    for (int row = 0; row < out->height; row++)
        for (size_t c = 0; c < 3; c++) {
            uint8_t *to = image_row(out, row) + c * image_channel_stride(out);
            const bool is_inside = row >= y && row - y < image->height;
            if (!is_inside || image->width < out->width)
                write_levels(p->levels.samples[c], bytes, &p->levels.outside[c], 0, out->width, to, step);
            if (is_inside)
                write_levels(p->levels.samples[c], bytes, image_row(image, row - y) + (channels == 3 ? c : 0), channels,
                             image->width, to + (size_t)x * step, step);
        }
}

/* Decode a file, or copy its view, to its image. */
static bool load_picture(const struct preprocessing *p, int64_t index, struct file *file)
{
    struct image packed, *image = &file->image;
    if (is_file(p, index))
        return list_decode(&p->list, file);
    return view_take_image(&p->views[index], "image", &packed, image, &file->error) &&
           (image->samples != NULL || library_copy_image(&packed, &packed, image, &file->error));
}

static void preprocess_one(void *context, int64_t index, int thread)
{
    struct preprocessing *p = context;
    struct file *file = &p->list.files[index];
    const struct tensor_part *part = &p->parts[index];
    struct image *image = &file->image, out = images_at(&p->out, (size_t)index);
    (void)thread;
    if (file->has_failed || file->is_done)
        return;
    file->has_failed = !load_picture(p, index, file) || !take_colours(p, image, &file->error);
    p->list.pictures[index].view = p->uses_gpu ? image_packed(image, NULL) : out;
    if (file->has_failed || p->uses_gpu)
        return;
    file->has_failed = !resize_part(p, part, image, &file->error) ||
                       (file->on_device && !image_allocate(&out, out.width, out.height, 3, out.bits, &file->error));
    if (file->has_failed)
        return;
    write_picture(p, image, part->x, part->y, &out);
    image_free(image);
    if (file->on_device)
        *image = out;
}

/* ---- The call ---- */

static bool preprocess_pictures(struct preprocessing *p, struct gpuconv_context *context, int count,
                                struct error *error)
{
    const void *given = p->list.given != NULL ? (const void *)p->list.given : p->views;
    p->parts = calloc((size_t)count, sizeof *p->parts);
    if (p->parts == NULL)
        return error_no_memory(error, "%d pictures", count);
    store_levels(p);
    if (p->on_device) { /* its samples have as many bits, whatever these mean */
        p->out.first.bits = 8 * p->levels.bytes;
        p->out.first.stored = STORED_FLOAT;
    }
    const struct gpu_tensor tensor = {.out = p->out, .parts = p->parts, .kernel = p->kernel, .levels = &p->levels};
    p->list.tensor = p->uses_gpu ? &tensor : NULL;
    if (!list_inspect_all(&p->list, context, given, count, &p->options->decode, inspect_picture, error))
        return false;
    list_decode_all(&p->list, preprocess_one);
    return true;
}

enum gpuconv_status gpuconv_preprocess_all(struct gpuconv_context *context, const struct gpuconv_bytes *files,
                                           const struct gpuconv_view *views, int count,
                                           const struct gpuconv_preprocess_options *options,
                                           const struct gpuconv_view *out, struct gpuconv_error *errors)
{
    struct preprocessing p = {.list.given = files, .options = options, .views = views};
    struct error reason;
    bool done = library_check_context(context, &reason) &&
                (count == 0 || check_preprocessing(&p, context, out, count, &reason));
    if (done && count != 0) {
        p.on_device = out->memory == GPUCONV_DEVICE;
        p.uses_gpu = p.on_device && resample_is_pillow(p.kernel);
        pthread_mutex_lock(&context->mutex);
        done = preprocess_pictures(&p, context, count, &reason);
        pthread_mutex_unlock(&context->mutex);
    }
    free(p.parts);
    return list_finish(&p.list, count, done ? NULL : &reason, errors);
}
