/* SPDX-License-Identifier: MIT
 *
 * Many files to views and back, on the host or on a GPU. What a GPU does not decode or encode, the CPU does: many files
 * at a time, or one after another on all threads if there are few. */
#include "codec/gpu_codec.h"
#include "library/list.h"

#include <stdlib.h>

/* An image of more pixels is worth several threads. */
enum { LARGE_PIXELS = 1 << 19 };

/* ---- Lists ---- */

/* GIVEN is the caller's array. */
static bool open_list(struct list *list, struct gpuconv_context *context, const void *given, int count,
                      struct error *error)
{
    if (count < 0)
        return error_set(error, ERROR_USAGE, "%d files were given; give 0 or more", count);
    if (given == NULL && count > 0)
        return error_set(error, ERROR_USAGE, "there is no array of %d files or views; give an array", count);
    list->context = context;
    list->count = count;
    list->files = calloc((size_t)count + 1, sizeof *list->files);
    list->pictures = calloc((size_t)count + 1, sizeof *list->pictures);
    return (list->files != NULL && list->pictures != NULL) || error_no_memory(error, "the list of files");
}

static void close_list(struct list *list)
{
    for (int i = 0; list->files != NULL && i < list->count; i++) {
        image_free(&list->files[i].image);
        blob_free(&list->files[i].end.head);
    }
    free(list->files);
    free(list->pictures);
}

/* Let all files fail that a GPU was to do, unless they are done. */
static void fail_on_gpu(struct list *list, const struct error *reason)
{
    for (int i = 0; list->files != NULL && i < list->count; i++) {
        struct file *file = &list->files[i];
        if (!file->on_device || file->has_failed || file->is_done)
            continue;
        file->has_failed = true;
        file->error = *reason;
    }
}

/* Run WORK for all files: several at a time, unless those that are left are too few for all threads and one of them is
 * large. Then each may use the pool. */
static void for_each(struct list *list, void (*work)(void *list, int64_t index, int thread))
{
    struct thread_pool *pool = &list->context->pool;
    bool has_large = false;
    int left = 0;
    for (int i = 0; i < list->count; i++) {
        const struct file *file = &list->files[i];
        const bool is_left = !file->has_failed && !file->is_done;
        left += is_left;
        has_large |= is_left && (int64_t)file->view.width * file->view.height > LARGE_PIXELS;
    }
    const bool is_many = left >= thread_pool_threads(pool) || !has_large;
    list->settings.pool = is_many ? NULL : pool;
    parallel_for(pool, is_many ? thread_pool_threads(pool) : 1, list->count, work, list);
    list->settings.pool = NULL;
}

/* The status of each file, and that of the first failure. REASON is of a call that failed as a whole. */
static enum gpuconv_status report_statuses(const struct list *list, int count, const struct error *reason,
                                           struct gpuconv_error *errors)
{
    enum gpuconv_status first = GPUCONV_OK;
    for (int i = 0; i < count; i++) {
        const bool done = reason == NULL && !list->files[i].has_failed;
        const enum gpuconv_status status =
            library_status(done, reason != NULL ? reason : &list->files[i].error, errors != NULL ? &errors[i] : NULL);
        first = first == GPUCONV_OK ? status : first;
    }
    return count > 0 || reason == NULL ? first : library_status(false, reason, NULL);
}

/* ---- Inspect ---- */

/* Find the file's orientation. Broken metadata are no failure of the picture, as in gpuconv_decode. */
static bool find_orientation(const struct list *list, struct file *file)
{
    struct metadata metadata = {.max = METADATA_PART_MAX, .page = list->settings.page};
    file->orientation = 1;
    if (list->keeps_orientation)
        return true;
    if (!file->info.format->read_metadata(file->bytes.data, file->bytes.size, &metadata, &file->error))
        return false;
    file->orientation = metadata.orientation > 0 ? metadata.orientation : 1;
    metadata_free(&metadata);
    return true;
}

struct image list_shape(const struct list *list, const struct file *file)
{
    const bool swaps = orientation_swaps(file->orientation);
    const struct codec_info *info = &file->info;
    return (struct image){.width = swaps ? info->height : info->width,
                          .height = swaps ? info->width : info->height,
                          .channels = info->channels,
                          .bits = codec_bits(info, &list->settings)};
}

bool library_check_gpu(const struct gpuconv_context *context, const struct gpuconv_view *view, struct error *error)
{
    return view->memory != GPUCONV_DEVICE || context->resources.shared != NULL ||
           error_set(error, ERROR_USAGE,
                     "the context has no GPU; open a context with uses_gpu, or copy the image to the host");
}

/* Check the view that is to receive the file, or to be encoded, and note it. */
static bool take_view(const struct list *list, const struct gpuconv_view *view, struct file *file)
{
    struct images images;
    struct error *error = &file->error;
    if (!view_check(view, "view", &images, error))
        return false;
    if (view->type > GPUCONV_UINT16)
        return error_set(error, ERROR_USAGE,
                         "files have levels of 8 or 16 bits, and the view has none; multiply its samples by 255, and "
                         "convert them to uint8");
    if (images.count > 1)
        return error_set(error, ERROR_USAGE, "the view has %zu images; give a view for each", images.count);
    file->view = images.first;
    file->on_device = view->memory == GPUCONV_DEVICE;
    return library_check_gpu(list->context, view, error);
}

static bool take_output(const struct list *list, const struct gpuconv_view *view, struct file *file)
{
    const struct image shape = list_shape(list, file);
    const struct image *image = &file->view;
    if (!take_view(list, view, file) || !view_check_apart(view, "view", &file->error))
        return false;
    return (image->width == shape.width && image->height == shape.height && image->channels == shape.channels &&
            image->bits == shape.bits) ||
           error_set(&file->error, ERROR_USAGE,
                     "the file has %d x %d x %d samples of %d bits, and the view %d x %d x %d of %d; give what "
                     "gpuconv_inspect_all says",
                     shape.height, shape.width, shape.channels, shape.bits, image->height, image->width,
                     image->channels, image->bits);
}

/* What a codec gets. */
static struct codec_input input_of(const struct file *file, const struct codec_settings *settings)
{
    return (struct codec_input){.bytes = file->bytes.data,
                                .size = file->bytes.size,
                                .name = "image",
                                .info = &file->info,
                                .settings = settings};
}

/* A GPU decodes and encodes PNGs one after another. A small one takes it as long as a thread of the CPU takes for this
 * many pixels: one H200 1.5 to 3.4 ms and 0.6 ms. The threads of the CPU do several at a time. */
enum { DECODED_PNG_PIXELS = 1 << 17, ENCODED_PNG_PIXELS = 1 << 15 };

/* JPEGs are decoded together. Where all of them have fewer pixels, a thread of the CPU is faster than the launches. */
enum { DECODED_JPEG_PIXELS = 1 << 16 };

/* Is a GPU faster with a PNG of this size than the threads of the CPU are? */
static bool is_for_gpu(const struct list *list, const struct image *view, int64_t pixels)
{
    const int threads = thread_pool_threads(&list->context->pool);
    return (int64_t)view->width * view->height >= pixels * (threads < list->count ? threads : list->count);
}

void list_plan(const struct list *list, struct file *file, struct gpu_picture *picture)
{
    const struct codec_input input = input_of(file, &list->settings);
    struct end *end = &file->end;
    picture->in = end;
    picture->view = file->view;
    end->image = &file->view;
    end->orientation = file->orientation;
    codec_plan_gpu_input(&input, end);
    if ((end->kind == END_PNG && !is_for_gpu(list, &file->view, DECODED_PNG_PIXELS)) ||
        (end->kind == END_JPEG && (int64_t)file->view.width * file->view.height * list->count < DECODED_JPEG_PIXELS))
        end->kind = END_HOST;
    picture->is_done = end->kind == END_HOST; /* it is for the CPU */
}

bool list_inspect(const struct list *list, struct file *file)
{
    return library_inspect(file->bytes.data, file->bytes.size, "image", &list->settings, &file->info, &file->error) &&
           find_orientation(list, file);
}

static void inspect_one(void *context, int64_t index, int thread)
{
    struct list *list = context;
    struct file *file = &list->files[index];
    struct gpu_picture *picture = &list->pictures[index];
    (void)thread;
    picture->is_done = true;
    file->bytes = list->given[index];
    file->has_failed =
        !list_inspect(list, file) || (list->views != NULL && !take_output(list, &list->views[index], file));
    if (!file->has_failed && file->on_device)
        list_plan(list, file, picture);
}

bool list_inspect_all(struct list *list, struct gpuconv_context *context, const void *given, int count,
                      const struct gpuconv_decode_options *options, void (*work)(void *list, int64_t index, int thread),
                      struct error *error)
{
    const struct gpuconv_decode_options defaults = {0}, *o = options != NULL ? options : &defaults;
    if (!library_decode_settings(o, &list->settings, error) || !open_list(list, context, given, count, error))
        return false;
    list->keeps_orientation = o->keep_orientation != 0;
    list->stream = o->stream;
    parallel_for(&context->pool, thread_pool_threads(&context->pool), count, work, list);
    return true;
}

enum gpuconv_status gpuconv_inspect_all(struct gpuconv_context *context, const struct gpuconv_bytes *files, int count,
                                        const struct gpuconv_decode_options *options, struct gpuconv_file_info *infos,
                                        struct gpuconv_error *errors)
{
    struct list list = {.given = files};
    struct error reason;
    bool done = library_check_context(context, &reason);
    if (done) {
        pthread_mutex_lock(&context->mutex);
        done = list_inspect_all(&list, context, files, count, options, inspect_one, &reason);
        pthread_mutex_unlock(&context->mutex);
    }
    for (int i = 0; i < count; i++) {
        infos[i] = (struct gpuconv_file_info){0};
        if (!done || list.files[i].has_failed)
            continue;
        const struct image shape = list_shape(&list, &list.files[i]);
        infos[i] = (struct gpuconv_file_info){.format = list.files[i].info.format->name,
                                              .width = shape.width,
                                              .height = shape.height,
                                              .channels = shape.channels,
                                              .type = library_type_of(shape.bits)};
    }
    const enum gpuconv_status status = report_statuses(&list, count, done ? NULL : &reason, errors);
    close_list(&list);
    return status;
}

/* ---- Decode ---- */

/* Decode what a GPU can decode. */
static bool decode_on_gpu(struct list *list, struct error *error)
{
    if (!pipeline_decode_pictures(&list->context->pipeline, list->pictures, (size_t)list->count, list->tensor, error))
        return false;
    for (int i = 0; i < list->count; i++) {
        struct file *file = &list->files[i];
        file->is_done = file->on_device && !file->has_failed && file->end.kind != END_HOST && list->pictures[i].is_done;
    }
    return true;
}

bool list_decode(const struct list *list, struct file *file)
{
    struct codec_settings settings = list->settings;
    const struct codec_input input = input_of(file, &settings);
    settings.reader_extra = codec_reader_extra(&file->info, &settings);
    return codec_read_picture(&input, &file->image, NULL, &file->error) != NULL &&
           image_orient(&file->image, file->orientation, &file->error);
}

static void decode_one(void *context, int64_t index, int thread)
{
    struct list *list = context;
    struct file *file = &list->files[index];
    (void)thread;
    if (file->has_failed || file->is_done)
        return;
    file->has_failed = !list_decode(list, file);
    if (file->has_failed || file->on_device)
        return;
    image_copy(&file->image, &file->view);
    image_free(&file->image);
    file->is_done = true;
}

/* Upload the images of files that are not done. */
static bool upload_decoded(struct list *list, struct error *error)
{
    for (int i = 0; i < list->count; i++) {
        struct file *file = &list->files[i];
        struct gpu_picture *picture = &list->pictures[i];
        picture->is_done = file->has_failed || file->is_done;
        file->end.kind = END_HOST;
        file->end.image = &file->image;
        picture->in = &file->end;
    }
    return pipeline_decode_pictures(&list->context->pipeline, list->pictures, (size_t)list->count, list->tensor, error);
}

static bool has_device_views(const struct list *list)
{
    bool found = false;
    for (int i = 0; i < list->count; i++)
        found |= list->files[i].on_device && !list->files[i].has_failed;
    return found;
}

void list_decode_all(struct list *list, void (*work)(void *list, int64_t index, int thread))
{
    const bool on_gpu = has_device_views(list);
    struct error failure;
    list->context->resources.stream = &list->stream;
    if (on_gpu && !decode_on_gpu(list, &failure))
        fail_on_gpu(list, &failure);
    for_each(list, work);
    if (on_gpu && !upload_decoded(list, &failure))
        fail_on_gpu(list, &failure);
    list->context->resources.stream = NULL;
}

enum gpuconv_status list_finish(struct list *list, int count, const struct error *reason, struct gpuconv_error *errors)
{
    const enum gpuconv_status status = report_statuses(list, count, reason, errors);
    for (int i = 0; reason == NULL && errors != NULL && i < count; i++)
        if (!list->files[i].has_failed)
            library_warn_decoded(&errors[i], "image", &list->files[i].info);
    close_list(list);
    return status;
}

enum gpuconv_status gpuconv_decode_all(struct gpuconv_context *context, const struct gpuconv_bytes *files, int count,
                                       const struct gpuconv_decode_options *options, const struct gpuconv_view *views,
                                       struct gpuconv_error *errors)
{
    struct list list = {.given = files, .views = views};
    struct error reason;
    bool done =
        library_check_context(context, &reason) &&
        (views != NULL || count <= 0 || error_set(&reason, ERROR_USAGE, "there are no views; give a view per file"));
    if (done) {
        pthread_mutex_lock(&context->mutex);
        done = list_inspect_all(&list, context, files, count, options, inspect_one, &reason);
        if (done)
            list_decode_all(&list, decode_one);
        pthread_mutex_unlock(&context->mutex);
    }
    return list_finish(&list, count, done ? NULL : &reason, errors);
}

/* ---- Encode ---- */

/* Put the metadata into a file, if there are some. */
static bool write_metadata(const struct list *list, struct file *file, uint8_t **bytes, size_t *size)
{
    return list->like == NULL ||
           library_write_metadata(list->like, &file->view, list->format, bytes, size, &file->dropped, &file->error);
}

/* Give the file its bytes, if it is DONE. */
static void finish_file(struct file *file, bool done, uint8_t *bytes, size_t size)
{
    file->is_done = done;
    file->has_failed = !done;
    if (done)
        file->bytes = (struct gpuconv_bytes){bytes, size};
    else
        free(bytes);
}

/* Make the file of picture INDEX, which the GPU has encoded. If it has only downloaded the samples, encode_one does. */
static void wrap_picture(void *context, size_t index)
{
    struct list *list = context;
    struct file *file = &list->files[index];
    const struct end *end = &file->end;
    size_t size;
    if (end->kind == END_HOST)
        return;
    uint8_t *bytes = codec_end_file(end, true, &size, &file->error);
    finish_file(file, bytes != NULL, bytes, size);
}

/* Check a view, and note how a GPU encodes it. */
static void plan_encoding(void *context, int64_t index, int thread)
{
    struct list *list = context;
    struct file *file = &list->files[index];
    struct gpu_picture *picture = &list->pictures[index];
    struct end *end = &file->end;
    (void)thread;
    file->has_failed = !take_view(list, &list->views[index], file);
    picture->is_done = true;
    if (file->has_failed || !file->on_device)
        return;
    const struct image *view = &file->view;
    picture->view = *view;
    picture->out = end;
    end->image = &file->image;
    codec_plan_gpu_output(list->format, view, &list->settings, end);
    if (end->kind == END_PNG && !is_for_gpu(list, view, ENCODED_PNG_PIXELS))
        end->kind = END_HOST;
    file->has_failed = codec_find_writer(list->format, view, &list->settings, &file->error) == NULL ||
                       (end->kind == END_HOST && !image_allocate(&file->image, view->width, view->height,
                                                                 view->channels, view->bits, &file->error));
    if (!file->has_failed && end->kind != END_HOST)
        file->has_failed = !codec_begin_file(view, end, &file->error) ||
                           !write_metadata(list, file, &end->head.bytes, &end->head.size);
    picture->is_done = file->has_failed;
}

static void encode_one(void *context, int64_t index, int thread)
{
    struct list *list = context;
    struct file *file = &list->files[index];
    struct image image = file->image;
    uint8_t *bytes = NULL;
    size_t size = 0;
    (void)thread;
    if (file->has_failed || file->is_done)
        return;
    const bool done =
        (file->on_device || view_take_image(&list->views[index], "view", &image, &file->image, &file->error)) &&
        codec_encode(&image, list->format, &list->settings, &bytes, &size, &file->error) &&
        write_metadata(list, file, &bytes, &size);
    finish_file(file, done, bytes, size);
    image_free(&file->image);
}

static bool encode_files(struct list *list, struct gpuconv_context *context, int count,
                         const struct gpuconv_encode_options *options, struct error *error)
{
    if (!library_encode_settings(options, &list->settings, &list->format, error) ||
        !open_list(list, context, list->views, count, error))
        return false;
    list->like = options->metadata_of;
    list->stream = options->stream;
    struct error failure;
    parallel_for(&context->pool, thread_pool_threads(&context->pool), count, plan_encoding, list);
    context->resources.stream = &list->stream;
    if (has_device_views(list) &&
        !pipeline_encode_pictures(&context->pipeline, list->pictures, (size_t)count, wrap_picture, list, &failure))
        fail_on_gpu(list, &failure);
    for_each(list, encode_one);
    context->resources.stream = NULL;
    return true;
}

enum gpuconv_status gpuconv_encode_all(struct gpuconv_context *context, const struct gpuconv_view *views, int count,
                                       const struct gpuconv_encode_options *options, struct gpuconv_bytes *files,
                                       struct gpuconv_error *errors)
{
    const struct gpuconv_encode_options defaults = {0};
    struct list list = {.views = views};
    struct error reason;
    options = options != NULL ? options : &defaults;
    bool done = library_check_context(context, &reason);
    if (done) {
        pthread_mutex_lock(&context->mutex);
        done = encode_files(&list, context, count, options, &reason);
        pthread_mutex_unlock(&context->mutex);
    }
    const enum gpuconv_status status = report_statuses(&list, count, done ? NULL : &reason, errors);
    for (int i = 0; i < count; i++) {
        files[i] = done ? list.files[i].bytes : (struct gpuconv_bytes){0};
        if (!done || errors == NULL || list.files[i].has_failed)
            continue;
        library_warn_encoded(&errors[i], &views[i], list.format, options);
        library_warn_dropped(&errors[i], list.format->name, list.files[i].dropped);
    }
    close_list(&list);
    return status;
}
