/* SPDX-License-Identifier: MIT
 *
 * Views of the caller's samples: their check, and the same as images of this program. */
#include "library/library.h"

#include "codec/format.h"

/* An image of TYPE, without size and samples. */
static struct image image_of_type(enum gpuconv_type type)
{
    static const struct image types[] = {
        [GPUCONV_UINT8] = {.bits = 8},
        [GPUCONV_UINT16] = {.bits = 16},
        [GPUCONV_FLOAT] = {.bits = 32},
        [GPUCONV_HALF] = {.bits = 32, .stored = STORED_HALF},
        [GPUCONV_BFLOAT16] = {.bits = 32, .stored = STORED_BFLOAT16},
        [GPUCONV_DOUBLE] = {.bits = 32, .stored = STORED_DOUBLE},
        [GPUCONV_BOOL] = {.bits = 32, .stored = STORED_BOOL},
    };
    const bool is_type = type >= GPUCONV_UINT8 && type <= GPUCONV_BOOL;
    return types[is_type ? type : GPUCONV_FLOAT]; /* an unknown type is refused later */
}

const char *view_type_name(enum gpuconv_type type)
{
    static const char *const names[] = {
        [GPUCONV_UINT8] = "uint8",  [GPUCONV_UINT16] = "uint16",     [GPUCONV_FLOAT] = "float32",
        [GPUCONV_HALF] = "float16", [GPUCONV_BFLOAT16] = "bfloat16", [GPUCONV_DOUBLE] = "float64",
        [GPUCONV_BOOL] = "bool",
    };
    return names[type];
}

static size_t type_bytes(enum gpuconv_type type)
{
    const struct image image = image_of_type(type);
    return image_sample_bytes(&image);
}

/* ---- Made from parts ---- */

/* The stride of COUNT times SIZE bytes, or 0 if there is no such number: then the view is refused. */
static ptrdiff_t multiply_stride(ptrdiff_t size, int count)
{
    ptrdiff_t stride;
    return __builtin_mul_overflow(size, count, &stride) ? 0 : stride;
}

struct gpuconv_view gpuconv_interleaved(const void *data, int width, int height, int channels, enum gpuconv_type type)
{
    struct gpuconv_view view = {
        .data = (void *)data, .width = width, .height = height, .channels = channels, .type = type};
    view.channel_stride = (ptrdiff_t)type_bytes(type);
    view.column_stride = multiply_stride(view.channel_stride, channels);
    view.row_stride = multiply_stride(view.column_stride, width);
    return view;
}

struct gpuconv_view gpuconv_planar(const void *data, int width, int height, int channels, enum gpuconv_type type)
{
    struct gpuconv_view view = {
        .data = (void *)data, .width = width, .height = height, .channels = channels, .type = type};
    view.column_stride = (ptrdiff_t)type_bytes(type);
    view.row_stride = multiply_stride(view.column_stride, width);
    view.channel_stride = multiply_stride(view.row_stride, height);
    return view;
}

struct gpuconv_view gpuconv_crop(const struct gpuconv_view *view, int x, int y, int width, int height)
{
    struct gpuconv_view part = *view;
    ptrdiff_t right, down, offset;
    const bool is_inside = x >= 0 && y >= 0 && width > 0 && height > 0 && width <= view->width &&
                           height <= view->height && x <= view->width - width && y <= view->height - height &&
                           !__builtin_mul_overflow(view->column_stride, x, &right) &&
                           !__builtin_mul_overflow(view->row_stride, y, &down) &&
                           !__builtin_add_overflow(right, down, &offset);
    part.width = is_inside ? width : 0;
    part.height = is_inside ? height : 0;
    if (is_inside && view->data != NULL)
        part.data = (char *)view->data + offset;
    return part;
}

/* ---- Checks ---- */

struct axis {
    const char *name;
    int64_t count;
    ptrdiff_t stride;
};

enum { AXES = 4 };

static void list_axes(const struct gpuconv_view *view, struct axis axes[AXES])
{
    axes[0] = (struct axis){"channel", view->channels, view->channel_stride};
    axes[1] = (struct axis){"column", view->width, view->column_stride};
    axes[2] = (struct axis){"row", view->height, view->row_stride};
    axes[3] = (struct axis){"image", view->count > 0 ? view->count : 1, view->image_stride};
}

/* Check the strides, and set *BYTES to the size of the memory that VIEW covers. */
static bool check_strides(const struct gpuconv_view *view, const char *name, size_t *bytes, struct error *error)
{
    struct axis axes[AXES];
    const ptrdiff_t size = (ptrdiff_t)type_bytes(view->type);
    *bytes = (size_t)size;
    list_axes(view, axes);
    for (int i = 0; i < AXES; i++) {
        size_t reach;
        if (axes[i].count == 1)
            continue;
        if (axes[i].stride <= 0 || axes[i].stride % size != 0)
            return error_set(error, ERROR_USAGE,
                             "the %s stride of the %s is %td bytes; give a positive multiple of %td, or copy the image",
                             axes[i].name, name, axes[i].stride, size);
        if (__builtin_mul_overflow((size_t)axes[i].stride, (size_t)(axes[i].count - 1), &reach) ||
            __builtin_add_overflow(*bytes, reach, bytes) || *bytes > PTRDIFF_MAX)
            return error_set(error, ERROR_USAGE, "the strides of the %s reach beyond all memory; give smaller strides",
                             name);
    }
    return *bytes <= UINTPTR_MAX - (uintptr_t)view->data ||
           error_set(error, ERROR_USAGE, "the %s reaches beyond the last address; give smaller strides", name);
}

/* Check all but the strides. */
static bool check_shape(const struct gpuconv_view *view, const char *name, struct error *error)
{
    if (view->type < GPUCONV_UINT8 || view->type > GPUCONV_BOOL)
        return error_set(error, ERROR_USAGE, "the %s has no type of samples; give a value of enum gpuconv_type", name);
    if (view->width < 1 || view->height < 1 || view->width > FORMAT_SIDE_MAX || view->height > FORMAT_SIDE_MAX)
        return error_set(error, ERROR_USAGE, "the %s has %d x %d pixels; give 1 to %d on a side", name, view->width,
                         view->height, FORMAT_SIDE_MAX);
    if (view->channels < 1 || view->channels > 4)
        return error_set(error, ERROR_USAGE, "the %s has %d channels; give 1 to 4", name, view->channels);
    if (view->count < 0)
        return error_set(error, ERROR_USAGE, "the %s has %d images; give 1 or more", name, view->count);
    if (view->memory != GPUCONV_HOST && view->memory != GPUCONV_DEVICE)
        return error_set(error, ERROR_USAGE, "the %s has no kind of memory; give a value of enum gpuconv_memory", name);
    if (view->data == NULL || (uintptr_t)view->data % type_bytes(view->type) != 0)
        return error_set(error, ERROR_USAGE, "the %s is at %p; give an address that is a multiple of %zu", name,
                         view->data, type_bytes(view->type));
    return library_check_reserved(view->reserved, sizeof view->reserved / sizeof *view->reserved, error);
}

bool view_check(const struct gpuconv_view *view, const char *name, struct images *images, struct error *error)
{
    if (view == NULL)
        return error_set(error, ERROR_USAGE, "there is no %s; give a view", name);
    if (!check_shape(view, name, error) || !check_strides(view, name, &images->bytes, error))
        return false;
    struct image *first = &images->first;
    *first = image_of_type(view->type);
    first->width = view->width;
    first->height = view->height;
    first->channels = view->channels;
    first->samples = view->data;
    first->channel_stride = view->channels > 1 ? (size_t)view->channel_stride : image_sample_bytes(first);
    first->pixel_stride = view->width > 1      ? (size_t)view->column_stride
                          : view->channels > 1 ? 0 /* as if they were interleaved */
                                               : image_sample_bytes(first);
    first->row_stride = view->height > 1 ? (size_t)view->row_stride : 0;
    images->count = view->count > 0 ? (size_t)view->count : 1;
    images->stride = images->count > 1 ? (size_t)view->image_stride : 0;
    return true;
}

bool view_check_apart(const struct gpuconv_view *view, const char *name, struct error *error)
{
    struct axis axes[AXES];
    ptrdiff_t covered = (ptrdiff_t)type_bytes(view->type); /* bytes that the axes of smaller strides cover */
    list_axes(view, axes);
    for (int i = 0; i < AXES; i++)
        for (int k = i + 1; k < AXES; k++)
            if (axes[k].stride < axes[i].stride) {
                const struct axis swapped = axes[i];
                axes[i] = axes[k];
                axes[k] = swapped;
            }
    for (int i = 0; i < AXES; i++) {
        if (axes[i].count == 1)
            continue;
        if (axes[i].stride < covered)
            return error_set(error, ERROR_USAGE,
                             "the %s stride of the %s is %td bytes, so that its samples share memory; give %td or more",
                             axes[i].name, name, axes[i].stride, covered);
        covered += axes[i].stride * (axes[i].count - 1);
    }
    return true;
}

bool library_copy_image(const struct image *from, struct image *image, struct image *copy, struct error *error)
{
    if (!image_allocate(copy, from->width, from->height, from->channels, from->bits, error))
        return false;
    image_copy(from, copy);
    *image = *copy;
    return true;
}

bool view_take_image(const struct gpuconv_view *view, const char *name, struct image *image, struct image *copy,
                     struct error *error)
{
    struct images images;
    *copy = (struct image){0};
    if (!view_check(view, name, &images, error))
        return false;
    if (images.count > 1 || view->memory != GPUCONV_HOST || view->type > GPUCONV_UINT16)
        return error_set(error, ERROR_USAGE, "the %s must be one image of 8 or 16 bits on the host; copy it", name);
    const struct image *first = &images.first;
    *image = image_packed(first, first->samples);
    return image_is_packed(first) || library_copy_image(first, image, copy, error);
}
