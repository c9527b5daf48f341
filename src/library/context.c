/* SPDX-License-Identifier: MIT
 *
 * Contexts, and the filters that they apply. */
#include "library/library.h"

#include "base/text.h"
#include "image/linear.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Errors ---- */

enum gpuconv_status library_status(bool done, const struct error *from, struct gpuconv_error *to)
{
    static const enum gpuconv_status statuses[] = {
        [ERROR_NONE] = GPUCONV_BAD_ARGUMENT,    [ERROR_WORK] = GPUCONV_BAD_DATA,
        [ERROR_USAGE] = GPUCONV_BAD_ARGUMENT,   [ERROR_READ] = GPUCONV_BAD_DATA,
        [ERROR_OUTPUT] = GPUCONV_BAD_DATA,      [ERROR_WRITE] = GPUCONV_BAD_DATA,
        [ERROR_LIMIT] = GPUCONV_NO_MEMORY,      [ERROR_MEMORY] = GPUCONV_NO_MEMORY,
        [ERROR_NO_GPU] = GPUCONV_NO_GPU,        [ERROR_GPU] = GPUCONV_NO_GPU,
        [ERROR_INTERRUPTED] = GPUCONV_BAD_DATA,
    };
    if (done) {
        if (to != NULL) {
            to->status = GPUCONV_OK;
            to->message[0] = '\0';
        }
        return GPUCONV_OK;
    }
    if (to != NULL) {
        to->status = statuses[from->code];
        char text[ERROR_TEXT];
        error_text(from, text, sizeof text);
        text_escape(text, to->message, sizeof to->message); /* names may have any bytes */
    }
    return statuses[from->code];
}

void library_warn(struct gpuconv_error *to, const char *format, ...)
{
    char text[ERROR_TEXT];
    va_list arguments;
    if (to == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const size_t used = strlen(to->message), line = used > 0 ? 1 : 0;
    if (used + line + 1 >= sizeof to->message)
        return;
    to->message[used] = '\n';
    text_escape(text, to->message + used + line, sizeof to->message - used - line);
}

bool library_check_reserved(const int *reserved, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i] != 0)
            return error_set(error, ERROR_USAGE,
                             "a reserved field is %d; set structs to 0 first, or use a library that is as new as the "
                             "header",
                             reserved[i]);
    return true;
}

bool library_check_context(const struct gpuconv_context *context, struct error *error)
{
    if (context == NULL)
        return error_set(error, ERROR_USAGE, "there is no context; open it first");
    return context->process == getpid() ||
           error_set(error, ERROR_USAGE,
                     "the context belongs to the parent of this process; open a context after fork");
}

const char *gpuconv_pixels(void)
{
    return PIXELS_NAME;
}

const char *gpuconv_version(void)
{
    return GPUCONV_VERSION;
}

int gpuconv_gpus(void)
{
    return pipeline_gpus();
}

/* ---- Contexts ---- */

static struct gpuconv_context *open_context(const struct gpuconv_context_options *options, struct error *error)
{
    const struct gpuconv_context_options defaults = {0}, *o = options != NULL ? options : &defaults;
    struct gpuconv_context *context = calloc(1, sizeof *context);
    bool done = (context != NULL || error_no_memory(error, "a context")) &&
                library_check_reserved(o->reserved, sizeof o->reserved / sizeof *o->reserved, error);
    if (done && (o->threads < 0 || o->threads > PARALLEL_THREADS_MAX))
        done = error_set(error, ERROR_USAGE, "%d threads were asked for; give 1 to %d, or 0 for all processors",
                         o->threads, PARALLEL_THREADS_MAX);
    if (done && o->device < 0)
        done = error_set(error, ERROR_USAGE, "there is no GPU %d; GPUs are counted from 0", o->device);
    if (!done || (o->uses_gpu && !pipeline_open_device(o->device, &context->resources.shared, error))) {
        free(context);
        return NULL;
    }
    context->process = getpid();
    context->resources.device = o->device;
    context->resources.pool = &context->pool;
    pthread_mutex_init(&context->mutex, NULL);
    thread_pool_open(&context->pool, o->threads);
    pipeline_open(&context->pipeline, &context->resources);
    return context;
}

struct gpuconv_context *gpuconv_context_open(const struct gpuconv_context_options *options, struct gpuconv_error *error)
{
    struct error reason;
    struct gpuconv_context *context = open_context(options, &reason);
    return LIBRARY_RESULT(context, &reason, error);
}

void gpuconv_context_close(struct gpuconv_context *context)
{
    /* A child of fork has neither the threads nor the GPU. Another thread of the parent may have locked the mutex. */
    if (context == NULL || context->process != getpid())
        return;
    pipeline_close(&context->pipeline);
    pipeline_close_device(context->resources.shared);
    thread_pool_close(&context->pool);
    pthread_mutex_destroy(&context->mutex);
    free(context);
}

/* ---- Apply ---- */

/* How the images of a call are filtered. */
struct application {
    struct gpuconv_context *context;
    struct recipe recipe;
    const struct gpuconv_image *curve_of;
    unsigned *unread; /* the sources of its curve that cannot be read; its bits are those of metadata_set_linear */
    enum curve_source *curve; /* the source that was read */
    bool on_device;           /* the images are in the memory of the context's GPU */
    void *stream;             /* for these */
    int images;               /* as in struct pipeline_run */
};

/* Set the tables of linear light to those that the caller asks for. */
static void set_linear(const struct application *application, const struct image *image, struct linear *linear)
{
    const struct gpuconv_image *like = application->curve_of;
    if (like != NULL)
        *application->curve =
            metadata_set_linear(&like->metadata, image->channels <= 2, image->bits, linear, application->unread);
    else if (!linear_set(linear, &curve_srgb, 1, image->bits))
        assert(false); /* sRGB's curve rises */
}

bool library_run(struct pipeline *pipeline, struct phases *phases, const struct recipe *recipe, int images,
                 const struct end *in, struct end *out, struct error *error)
{
    struct pipeline_run run = {
        .pipeline = pipeline, .recipe = recipe, .input.shape = *in->image, .phases = phases, .images = images};
    struct image image = *in->image;
    if (in->kind == END_DEVICE)
        image.samples = NULL; /* only a GPU can look at them */
    phases_begin(phases);
    pipeline_choose(&run);
    return pipeline_plan(&run, &image, error) && pipeline_run(&run, in, out, error);
}

static bool apply_to_image(const struct application *application, struct image *in, struct image *out,
                           struct error *error)
{
    struct gpuconv_context *context = application->context;
    struct pipeline *pipeline = &context->pipeline;
    const struct recipe *recipe = &application->recipe;
    const enum end_kind kind = application->on_device ? END_DEVICE : END_HOST;
    const struct end from = {.kind = kind, .image = in};
    struct end to = {.kind = kind, .image = out};
    struct linear *linear = recipe->linear ? pipeline_linear(pipeline, error) : NULL;
    if (recipe->linear && linear == NULL)
        return false;
    if (recipe->linear)
        set_linear(application, in, linear);
    return library_run(pipeline, &context->phases, recipe, application->images, &from, &to, error);
}

/* As apply_to_image. On the host, samples that are not stored as floats are copied. */
static bool apply_to_stored(const struct application *application, struct image *in, struct image *out,
                            struct error *error)
{
    struct image copy, result;
    if (application->on_device || in->stored == STORED_FLOAT)
        return apply_to_image(application, in, out, error);
    if (!image_allocate(&copy, in->width, in->height, in->channels, in->bits, error))
        return false;
    bool done = image_allocate(&result, out->width, out->height, out->channels, out->bits, error);
    if (done) {
        done = (image_copy(in, &copy) || image_refuse(in, error)) &&
               apply_to_image(application, &copy, &result, error) &&
               (image_copy(&result, out) || image_refuse(in, error));
        image_free(&result);
    }
    image_free(&copy);
    return done;
}

/* Copy all IMAGES to a block of memory, which they then are. */
static bool copy_images(struct images *images, uint8_t **block, struct error *error)
{
    const size_t each = image_bytes(&images->first);
    size_t size;
    *block = __builtin_mul_overflow(each, images->count, &size) || size > PTRDIFF_MAX ? NULL : malloc(size);
    if (*block == NULL)
        return error_no_memory(error, "a copy of the input");
    struct images copies = {.first = image_packed(&images->first, *block), .count = images->count, .stride = each};
    copies.first.stored = images->first.stored;
    for (size_t i = 0; i < images->count; i++) {
        const struct image from = images_at(images, i), to = images_at(&copies, i);
        image_copy(&from, &to);
    }
    *images = copies;
    return true;
}

/* Apply to all images, in memory that may overlap. */
static bool apply_to_images(const struct application *application, const struct images *in, const struct images *out,
                            struct error *error)
{
    struct images from = *in;
    uint8_t *block = NULL;
    const uintptr_t a = (uintptr_t)in->first.samples, b = (uintptr_t)out->first.samples;
    const bool overlaps = a < b + out->bytes && b < a + in->bytes;
    if (overlaps && application->on_device && in->count > 1)
        return error_set(error, ERROR_USAGE,
                         "several images on a GPU overlap their results; give other memory for the output");
    struct image joined, result;
    struct application all = *application;
    all.recipe.alpha = ALPHA_FILTER; /* no channel is alpha, whatever their number */
    all.images = application->on_device ? pipeline_join_images(&application->recipe, in, out, &joined, &result) : 0;
    if (all.images != 0)
        return apply_to_image(&all, &joined, &result, error);
    bool done = !overlaps || application->on_device || copy_images(&from, &block, error);
    for (size_t i = 0; done && i < from.count; i++) {
        struct image image = images_at(&from, i);
        result = images_at(out, i);
        done = apply_to_stored(application, &image, &result, error);
    }
    free(block);
    return done;
}

/* Apply to COUNT pairs of an input and an output. On a GPU, one launch does many of them if the filter resizes. */
static bool apply_to_pairs(const struct application *application, const struct image_pair *pairs, size_t count,
                           struct error *error)
{
    bool *is_done = calloc(count, sizeof *is_done);
    if (is_done == NULL)
        return error_no_memory(error, "%zu images", count);
    bool done =
        !application->on_device || count == 1 ||
        pipeline_resize_images(&application->context->pipeline, &application->recipe, pairs, count, is_done, error);
    for (size_t i = 0; done && i < count; i++)
        done = is_done[i] || apply_to_images(application, &pairs[i].in, &pairs[i].out, error);
    free(is_done);
    return done;
}

/* Check the kinds of memory, and the stream. */
static bool check_memory(const struct gpuconv_context *context, const struct gpuconv_view *in,
                         const struct gpuconv_view *out, const struct gpuconv_options *options, struct error *error)
{
    if (in->memory != out->memory)
        return error_set(error, ERROR_USAGE, "one image is on the host and the other on a GPU; copy one of them");
    if (in->memory == GPUCONV_DEVICE && context->resources.shared == NULL)
        return error_set(error, ERROR_USAGE,
                         "the context has no GPU; open a context with uses_gpu, or copy the images to the host");
    return in->memory == GPUCONV_DEVICE || options->stream == NULL ||
           error_set(error, ERROR_USAGE, "images on the host are not filtered on a CUDA stream; leave it out");
}

static bool check_options(const struct gpuconv_options *options, const struct gpuconv_view *in, struct error *error)
{
    if (options->border < GPUCONV_REPLICATE || options->border > GPUCONV_ZERO)
        return error_set(error, ERROR_USAGE, "there is no border %d; give a value of enum gpuconv_border",
                         (int)options->border);
    if (options->alpha < GPUCONV_PREMULTIPLY || options->alpha > GPUCONV_FILTER_ALPHA)
        return error_set(error, ERROR_USAGE, "there is no mode %d of alpha; give a value of enum gpuconv_alpha",
                         (int)options->alpha);
    if (options->linear && in->type > GPUCONV_UINT16)
        return error_set(error, ERROR_USAGE,
                         "floats are filtered as they are; convert them to linear light before, and set linear to 0");
    return library_check_reserved(options->reserved, sizeof options->reserved / sizeof *options->reserved, error);
}

/* Check both views, and that OUT has the shape of what FILTER makes of IN. */
static bool check_views(const struct gpuconv_filter *filter, const struct gpuconv_view *in,
                        const struct gpuconv_view *out, struct image_pair *pair, struct error *error)
{
    if (!view_check(in, "input", &pair->in, error) || !view_check(out, "output", &pair->out, error) ||
        !view_check_apart(out, "output", error))
        return false;
    const struct image *a = &pair->in.first, *b = &pair->out.first;
    int width = a->width, height = a->height;
    if (!filter_size(filter, &width, &height, error))
        return false;
    if (width != b->width || height != b->height || a->channels != b->channels || in->type != out->type ||
        pair->in.count != pair->out.count)
        return error_set(error, ERROR_USAGE,
                         "the input is %zu x %d x %d x %d samples of %s, and the output %zu x %d x %d x %d of %s; "
                         "give an output like the input, of %d x %d pixels",
                         pair->in.count, a->height, a->width, a->channels, view_type_name(in->type), pair->out.count,
                         b->height, b->width, b->channels, view_type_name(out->type), width, height);
    return true;
}

/* Check COUNT views IN and OUT, and the options for them. */
static bool check_pairs(const struct gpuconv_context *context, const struct gpuconv_filter *filter,
                        const struct gpuconv_view *in, const struct gpuconv_view *out, size_t count,
                        const struct gpuconv_options *options, struct image_pair *pairs, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!check_views(filter, &in[i], &out[i], &pairs[i], error) ||
            !check_memory(context, &in[i], &out[i], options, error) || !check_options(options, &in[i], error))
            return false;
        if (in[i].memory != in[0].memory)
            return error_set(error, ERROR_USAGE,
                             "some images are on the host and others on a GPU; filter them in two calls");
    }
    return true;
}

/* Apply FILTER to the images of COUNT views IN. The caller has set what APPLICATION is for and receives, and this sets
 * the rest. */
static bool apply(struct application *application, const struct gpuconv_filter *filter, const struct gpuconv_view *in,
                  const struct gpuconv_view *out, size_t count, const struct gpuconv_options *options,
                  struct error *error)
{
    static const enum alpha alphas[] = {
        [GPUCONV_PREMULTIPLY] = ALPHA_PREMULTIPLY, [GPUCONV_KEEP] = ALPHA_KEEP, [GPUCONV_FILTER_ALPHA] = ALPHA_FILTER};
    const struct gpuconv_options defaults = {0};
    struct gpuconv_context *context = application->context;
    options = options != NULL ? options : &defaults;
    if (!library_check_context(context, error))
        return false;
    if (filter == NULL)
        return error_set(error, ERROR_USAGE, "there is no filter; open it first");
    struct image_pair *pairs = calloc(count, sizeof *pairs);
    if (pairs == NULL)
        return error_no_memory(error, "%zu images", count);
    bool done = check_pairs(context, filter, in, out, count, options, pairs, error);
    if (done) {
        application->recipe = (struct recipe){
            .chain = filter_chain_of(filter),
            .border = (enum border)options->border,
            .alpha = alphas[options->alpha],
            .linear = options->linear != 0,
            .choice = context->resources.shared != NULL ? CHOICE_CUDA : CHOICE_CPU,
        };
        application->curve_of = options->curve_of;
        application->on_device = in->memory == GPUCONV_DEVICE;
        application->stream = options->stream;
        pthread_mutex_lock(&context->mutex);
        context->resources.stream = application->on_device ? &application->stream : NULL;
        context->resources.stop = options->stop;
        done = apply_to_pairs(application, pairs, count, error);
        context->resources.stop = NULL; /* it is the caller's, and only for this call */
        pthread_mutex_unlock(&context->mutex);
    }
    free(pairs);
    return done;
}

/* As gpuconv_apply_list, for COUNT views of 1 or more. */
static enum gpuconv_status apply_views(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                       const struct gpuconv_view *in, const struct gpuconv_view *out, size_t count,
                                       const struct gpuconv_options *options, struct gpuconv_error *error)
{
    struct error reason;
    unsigned unread = 0;
    enum curve_source curve = CURVE_ASSUMED;
    struct application application = {.context = context, .unread = &unread, .curve = &curve};
    const bool done = apply(&application, filter, in, out, count, options, &reason);
    const enum gpuconv_status status = library_status(done, &reason, error);
    for (enum curve_source other = CURVE_OF_CICP; done && unread != 0 && other < curve; other++)
        if (unread & 1u << other)
            library_warn(error, "the curve of %s cannot be read; linear light uses that of %s",
                         metadata_curve_name(other), metadata_curve_name(curve));
    const struct filter_chain *chain = filter_chain_of(filter);
    for (size_t i = 0; done && options != NULL && options->border != GPUCONV_REPLICATE && i < chain->count; i++) {
        if (filter_kind(&chain->filters[i])->repeats_edge)
            library_warn(error, "%s repeats the edge of the picture with every border", chain->filters[i].name);
    }
    return status;
}

enum gpuconv_status gpuconv_apply(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                  const struct gpuconv_view *in, const struct gpuconv_view *out,
                                  const struct gpuconv_options *options, struct gpuconv_error *error)
{
    return apply_views(context, filter, in, out, 1, options, error);
}

enum gpuconv_status gpuconv_apply_list(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                       const struct gpuconv_view *in, const struct gpuconv_view *out, int count,
                                       const struct gpuconv_options *options, struct gpuconv_error *error)
{
    struct error reason;
    if (count < 0 || (count > 0 && (in == NULL || out == NULL)))
        error_set(&reason, ERROR_USAGE, "there are no views; give an input and an output for each image");
    else if (count > 0)
        return apply_views(context, filter, in, out, (size_t)count, options, error);
    return library_status(count == 0, &reason, error);
}
