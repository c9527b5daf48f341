/* SPDX-License-Identifier: MIT
 *
 * The CPU's filters, as a transform of the rows of a stream (image/stream.h). Each thread filters a band at a time, in
 * planes that stay in its caches. The filters make a band's outputs from these rows with the halo around them, and in a
 * chain each filter needs less of the halo than the previous filter. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "cpu/cpu.h"
#include "image/stream.h"
#include "variants/choose.h"

#include <math.h>
#include <stdlib.h>

/* The rows from FIRST to the one before LAST. */
struct span {
    int first, last;
};

/* What one thread needs. It is reserved when the thread filters its first band. */
struct band_worker {
    struct plane planes[2];
    struct image merged; /* rows between two filters of a chain, where these round; else its samples are NULL */
    struct phases watch; /* the times of this thread */
};

/* The filters of an image. */
struct filtering {
    const struct pipeline *pipeline;
    struct stream stream;
    struct band_worker *workers; /* one for each thread */
};

/* ---- Sizes ---- */

/* Rows above or below that the filters from number FIRST on need together, for planes of SAMPLE. The same number serves
 * both sides, because borders that reflect swap them. */
static int halo_of(const struct request *request, size_t first, enum sample sample)
{
    int64_t halo = 0;
    for (size_t i = first; i < request->count; i++) {
        const struct filter *filter = filter_of_depth(&request->filters[i], sample != SAMPLE_U8);
        const int above = filter->anchor_y, below = filter->height - 1 - above;
        halo += above > below ? above : below;
    }
    return halo < INT32_MAX / 4 ? (int)halo : INT32_MAX / 4;
}

/* Rows of a thread's planes: those of a band, the row above it for the sink, and the halo. */
static int plane_rows(const struct stream *stream)
{
    const int64_t rows = (int64_t)stream->bands.rows + 1 + 2 * (int64_t)stream->halo;
    return rows < stream->shape.height ? (int)rows : stream->shape.height;
}

/* The number of threads that make the work faster. Some steps take one strip or band at a time: more threads than feed
 * such a step only wait. */
static int useful_threads(const struct pipeline *pipeline, const struct row_source *source, const struct row_sink *sink)
{
    /* Seconds for a pixel on one thread, measured on photos: decode a JPEG or a PNG; filter and compress PNG rows;
     * write a JPEG. */
    const double decode = 4.5e-9, encode = sink->encode != NULL ? 12e-9 : 0, write = 3.5e-9;
    const int threads = thread_pool_threads(pipeline->request->pool);
    struct work work = pipeline->work;
    const bool all_decode = source->any_order || source->help != NULL;
    if (source->image != NULL || (all_decode && sink->encode != NULL))
        return threads;
    work.threads = 1;
    const double pixels = (double)work.width * work.height;
    const double filter = cost_cpu_seconds(pipeline->request->filters, pipeline->request->count, &work) / pixels;
    if (all_decode)
        return (int)fmin(2 + (decode + filter) / write, threads); /* one writes */
    return (int)fmin(3 + (filter + encode) / decode, threads);    /* one decodes, one writes */
}

/* SPAN, with MORE rows above and below, as far as the image has them. */
static struct span span_extend(const struct stream *stream, struct span span, int more)
{
    return (struct span){span.first > more ? span.first - more : 0,
                         stream->shape.height - span.last > more ? span.last + more : stream->shape.height};
}

/* ---- One band ---- */

/* A view of the rows of SPAN in planes that begin with row TOP. */
static struct plane plane_span(const struct plane *planes, int top, struct span span)
{
    struct plane part = *planes;
    part.height = span.last - span.first;
    part.data = (char *)part.data + (size_t)(span.first - top) * planes->row_bytes;
    return part;
}

/* How the alpha channel takes part in filter NUMBER. */
static enum alpha alpha_of(const struct filtering *filtering, size_t number)
{
    return request_alpha(filtering->pipeline->request, filtering->pipeline->effective_alpha, number);
}

/* Split the rows of SPAN into planes that begin with its first row. */
static void split_span(const struct filtering *filtering, struct span span, const struct plane *planes)
{
    for (int y = span.first; y < span.last;) {
        const struct image rows = stream_rows(&filtering->stream, y, span.last);
        const struct plane part = plane_span(planes, span.first, (struct span){y, y + rows.height});
        image_split(&rows, alpha_of(filtering, 0), filtering->pipeline->linear, &part);
        y += rows.height;
    }
}

/* Copy what the merge may leave as it is: alpha that no plane holds, and levels whose light does not change. */
static void copy_unfiltered(const struct stream *stream, struct span span, const struct image *to)
{
    for (int y = span.first; y < span.last;) {
        const struct image rows = stream_rows(stream, y, span.last);
        const struct image part = image_rows(to, y - span.first, rows.height);
        image_copy(&rows, &part);
        y += rows.height;
    }
}

/* A view of PLANES with those that filter NUMBER has. */
static struct plane filter_planes(const struct filtering *filtering, size_t number, struct plane planes)
{
    planes.count = image_planes(&filtering->stream.shape, alpha_of(filtering, number));
    return planes;
}

/* The rows of worker->merged that belong to PLANES, a view of planes[i] of the worker. */
static struct image merged_rows(const struct band_worker *worker, const struct plane *own, const struct plane *planes)
{
    const size_t first = (size_t)((char *)planes->data - (char *)own->data) / own->row_bytes;
    return image_rows(&worker->merged, (int)first, planes->height);
}

/* Before filter NUMBER, round as two runs would: merge the planes and split them again. */
static void round_between(const struct filtering *filtering, const struct band_worker *worker, size_t number, int in,
                          struct plane planes)
{
    const struct linear *linear = filtering->pipeline->linear;
    struct image rows = merged_rows(worker, &worker->planes[in], &planes);
    const struct plane from = filter_planes(filtering, number - 1, planes),
                       to = filter_planes(filtering, number, planes);
    image_merge(&from, alpha_of(filtering, number - 1), linear, &rows);
    image_split(&rows, alpha_of(filtering, number), linear, &to);
}

/* Has IMAGE planes of the samples that the filters take? Then PLANES becomes a view of its rows of SPAN. IMAGE may be
 * NULL. */
static bool find_planes(const struct filtering *filtering, const struct image *image, struct span span,
                        struct plane *planes)
{
    const struct pipeline *pipeline = filtering->pipeline;
    const size_t size = sample_bytes(pipeline->work.sample);
    if (image == NULL || image_sample_bytes(image) != size || image_pixel_stride(image) != size ||
        pipeline->linear != NULL || (alpha_multiplies(pipeline->effective_alpha) && image_has_alpha(image)))
        return false;
    *planes = (struct plane){
        .sample = pipeline->work.sample,
        .width = image->width,
        .height = span.last - span.first,
        .count = image_planes(image, pipeline->effective_alpha),
        .row_bytes = image_row_stride(image),
        .plane_bytes = image_channel_stride(image),
        .data = image_row(image, span.first),
    };
    return true;
}

/* Apply all filters to PLANES, which hold the rows NEEDED for outputs of SPAN. If the sink's image has planes for all
 * channels, it gets these outputs, and RESULT has no data. Otherwise RESULT becomes the planes with the outputs, from
 * the same row on. */
static bool convolve_band(const struct filtering *filtering, struct band_worker *worker, const struct plane *planes,
                          struct span needed, struct span span, struct plane *result, struct error *error)
{
    const struct stream *stream = &filtering->stream;
    const struct pipeline *pipeline = filtering->pipeline;
    const struct request *request = pipeline->request;
    struct span input = needed;
    bool is_written = false;
    int in = 0;
    for (size_t i = 0; i < request->count; i++, in = !in) {
        struct plan plan = pipeline->plans[i];
        struct plane out;
        const struct span produced = span_extend(stream, span, halo_of(request, i + 1, pipeline->work.sample));
        struct plane from = plane_span(&worker->planes[in], needed.first, input);
        struct plane to = plane_span(&worker->planes[!in], needed.first, input);
        if (i > 0 && worker->merged.samples != NULL)
            round_between(filtering, worker, i, in, from);
        from = i == 0 ? *planes : filter_planes(filtering, i, from);
        to = filter_planes(filtering, i, to);
        is_written = i == request->count - 1 && to.count == stream->shape.channels &&
                     find_planes(filtering, stream->sink->image, input, &out);
        to = is_written ? out : to;
        plan.first_row = produced.first - input.first;
        plan.last_row = produced.last - input.first;
        plan.pool = stream->bands.count > 1 ? NULL : request->pool;
        if (!plan.variant->launch(&plan, NULL, &from, &to, error))
            return false;
        input = produced;
    }
    *result = filter_planes(filtering, request->count - 1, plane_span(&worker->planes[in], needed.first, span));
    result->data = is_written ? NULL : result->data;
    return true;
}

/* Reserve the planes of a thread. Stores that bypass the caches need 64 bytes of alignment, which they have. */
static bool worker_open(const struct filtering *filtering, struct band_worker *worker, struct error *error)
{
    const struct pipeline *pipeline = filtering->pipeline;
    const struct work *work = &pipeline->work;
    const struct image *shape = &filtering->stream.shape;
    const int rows = plane_rows(&filtering->stream);
    for (int i = 0; i < 2; i++)
        if (!plane_allocate(&worker->planes[i], work->sample, shape->width, rows, work->planes, error))
            return false;
    return !request_merges_between(pipeline->request, pipeline->effective_alpha, shape) ||
           image_allocate(&worker->merged, shape->width, rows, shape->channels, shape->bits, error);
}

static void worker_close(struct band_worker *worker)
{
    plane_free(&worker->planes[0]);
    plane_free(&worker->planes[1]);
    image_free(&worker->merged);
}

/* Filter the rows of MADE, from row FIRST on. */
static bool filter_rows(void *context, int thread, int first, struct image *produced, struct error *error)
{
    const struct filtering *filtering = context;
    const struct stream *stream = &filtering->stream;
    const struct pipeline *pipeline = filtering->pipeline;
    struct band_worker *worker = &filtering->workers[thread];
    const struct span wanted = {first, first + produced->height}, needed = span_extend(stream, wanted, stream->halo);
    worker->watch.last = clock_milliseconds();
    if (worker->planes[0].data == NULL && !worker_open(filtering, worker, error))
        return false;

    struct plane planes = filter_planes(filtering, 0, plane_span(&worker->planes[0], needed.first, needed)), result;
    if (!find_planes(filtering, stream->source->image, needed, &planes))
        split_span(filtering, needed, &planes);
    if (worker->merged.samples != NULL)
        copy_unfiltered(stream, needed, &worker->merged);
    phases_end(&worker->watch, PHASE_SPLIT);
    if (!convolve_band(filtering, worker, &planes, needed, wanted, &result, error))
        return false;
    phases_end(&worker->watch, PHASE_CONVOLVE);
    if (result.data == NULL)
        return true;

    const bool keeps = result.count < produced->channels || pipeline->linear != NULL;
    if (keeps && worker->merged.samples != NULL) { /* an earlier filter may have changed them */
        const struct image part = image_rows(&worker->merged, wanted.first - needed.first, produced->height);
        image_copy(&part, produced);
    } else if (keeps)
        copy_unfiltered(stream, wanted, produced);
    image_merge(&result, alpha_of(filtering, pipeline->request->count - 1), pipeline->linear, produced);
    phases_end(&worker->watch, PHASE_MERGE);
    return true;
}

/* ---- An image ---- */

/* Plan the stream of images like SHAPE, which are WORK, through the filters of REQUEST, on at most THREADS threads.
 * FILTERING stays where it is. */
static void plan_stream(struct filtering *filtering, const struct request *request, const struct work *work,
                        const struct image *shape, const struct row_source *source, const struct row_sink *sink,
                        int threads)
{
    *filtering = (struct filtering){
        .stream =
            {
                .shape = *shape,
                .source = source,
                .sink = sink,
                .pool = request->pool,
                .threads = threads,
                .make = filter_rows,
                .context = filtering,
                .row_bytes = (size_t)shape->width * (size_t)work->planes * sample_bytes(work->sample),
                .halo = halo_of(request, 0, work->sample),
                .is_whole = request->border == BORDER_WRAP,
            },
    };
    stream_plan(&filtering->stream);
}

bool pipeline_stream(struct pipeline *pipeline, const struct image *shape, const struct row_source *source,
                     const struct row_sink *sink, struct error *error)
{
    struct phases *phases = pipeline->phases;
    struct filtering filtering;
    plan_stream(&filtering, pipeline->request, &pipeline->work, shape, source, sink,
                useful_threads(pipeline, source, sink));
    const int threads = filtering.stream.bands.threads;
    filtering.pipeline = pipeline;
    filtering.stream.progress_permille = &pipeline->progress_permille;
    filtering.workers = calloc((size_t)threads, sizeof *filtering.workers);
    const bool done = filtering.workers != NULL && stream_run(&filtering.stream, error);
    if (filtering.workers == NULL)
        error_no_memory(error, "%d threads", threads);
    phases->milliseconds[PHASE_DECODE] += filtering.stream.decoding;
    phases->milliseconds[PHASE_ENCODE] += filtering.stream.encoding;
    for (int i = 0; filtering.workers != NULL && i < threads; i++) {
        for (int k = 0; k < PHASE_COUNT; k++)
            phases->milliseconds[k] += filtering.workers[i].watch.milliseconds[k];
        worker_close(&filtering.workers[i]);
    }
    free(filtering.workers);
    phases->last = clock_milliseconds();
    return done;
}

bool run_on_cpu(struct pipeline *pipeline, struct image *image, struct error *error)
{
    struct image result;
    if (!image_allocate(&result, image->width, image->height, image->channels, image->bits, error))
        return false;
    const struct row_source source = {.image = image};
    const struct row_sink sink = {.image = &result, .multiple = 1};
    if (!pipeline_stream(pipeline, image, &source, &sink, error)) {
        image_free(&result);
        return false;
    }
    image_free(image);
    *image = result;
    return true;
}

size_t pipeline_stream_need(const struct request *request, const struct image *shape, const struct row_source *source,
                            const struct row_sink *sink)
{
    const struct work work = request_work(request, request->alpha, shape);
    struct filtering filtering;
    plan_stream(&filtering, request, &work, shape, source, sink, work.threads);
    const struct stream *stream = &filtering.stream;
    const size_t threads = (size_t)stream->bands.threads, rows = (size_t)plane_rows(stream);
    struct plane planes;
    size_t size, sets = 2;
    for (size_t i = 0; i < request->count; i++)
        if (cpu_copies_planes(filter_of_depth(&request->filters[i], work.sample != SAMPLE_U8), shape->width))
            sets = 8; /* the copies have halos */
    if (!plane_layout(&planes, work.sample, shape->width, (int)rows, work.planes, &size, NULL))
        return SIZE_MAX;
    return stream_need(stream) + threads * sets * size +
           (request_merges_between(request, request->alpha, shape) ? threads * rows * image_row_bytes(shape) : 0);
}
