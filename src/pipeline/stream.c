/* SPDX-License-Identifier: MIT
 *
 * An image streams through the CPU's filters in bands of rows. A band takes five steps: fetch, read, filter, write, and
 * before the write, on any thread, what the sink can encode. Each of fetch, read and write takes the bands in order, one
 * at a time. Several bands are filtered at once, each by one thread, in planes that stay in its caches. All threads are
 * alike: each takes the next step that is possible, so decoding, filtering and encoding run beside each other.
 *
 * A band needs the halo of all filters around it. The rows of a band are at least as many as those of the halo, so it
 * needs the bands just above and below, and no others. Slots for read bands are used again in turn, and so are those for
 * filtered bands. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "variants/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

/* The numbers that follow from the shape of the image, the filters and the sink. */
struct bands {
    int rows, count; /* rows of a band; the last may have fewer */
    int halo;        /* rows above and below that a band needs */
    int threads;
    int read_slots, filtered_slots, raw_slots;
};

/* Rows above or below that the filters from number FIRST on need together. The same number serves both sides, because
 * borders that reflect swap them. */
static int halo_of(const struct request *request, size_t first)
{
    int64_t halo = 0;
    for (size_t i = first; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const int above = filter->anchor_y, below = filter->height - 1 - above;
        halo += above > below ? above : below;
    }
    return halo < INT32_MAX / 4 ? (int)halo : INT32_MAX / 4;
}

/* Choose the bands of images like SHAPE, for at most THREADS threads. Bands hold multiples of MULTIPLE rows. Where the
 * image cannot be cut, there is one band. */
static struct bands choose_bands(const struct request *request, const struct image *shape, int multiple, int threads)
{
    enum {
        BAND_BYTES = 1 << 19, /* of one set of planes: two sets, and the image's rows, fill a core's second cache */
        BAND_HALOS = 4,       /* at least so many rows for each row of the halo: bounds the work on the halo */
        BANDS_BETWEEN = 3,    /* slots beside those of the bands that are filtered: read ahead, and one below */
    };
    const int64_t sample = (int64_t)sample_bytes(pipeline_sample(request, shape->bits));
    const int64_t row = (int64_t)shape->width * image_planes(shape, request->alpha) * sample;
    struct bands bands = {.halo = halo_of(request, 0)};
    int64_t rows = BAND_BYTES / row, least = (int64_t)BAND_HALOS * bands.halo;
    rows = rows > least ? rows : least > 0 ? least : 1;
    rows = (rows + multiple - 1) / multiple * multiple;
    if (request->border == BORDER_WRAP || rows >= shape->height)
        rows = shape->height;
    bands.rows = (int)rows;
    bands.count = (shape->height - 1) / bands.rows + 1;
    bands.threads = threads < bands.count ? threads : bands.count;
    bands.read_slots = bands.threads + BANDS_BETWEEN < bands.count ? bands.threads + BANDS_BETWEEN : bands.count;
    bands.filtered_slots = bands.threads + 1 < bands.count ? bands.threads + 1 : bands.count;
    bands.raw_slots = bands.count < 2 ? 1 : 2;
    return bands;
}

/* Bytes of one row of the image. */
static size_t row_bytes(const struct image *shape)
{
    return (size_t)shape->width * image_pixel_bytes(shape);
}

/* Rows of a filtered slot: a band, and the row above it for the sink. */
static size_t filtered_rows(const struct bands *bands)
{
    return (size_t)bands->rows + 1;
}

/* Rows of a thread's planes. */
static int plane_rows(const struct bands *bands, const struct image *shape)
{
    const int64_t rows = (int64_t)bands->rows + 1 + 2 * (int64_t)bands->halo;
    return rows < shape->height ? (int)rows : shape->height;
}

/* The threads of the pool that the work repays. Rows are decoded one after the other, so threads that filter and encode
 * faster than that only wait. */
static int repaid_threads(const struct pipeline *pipeline, const struct row_source *source, const struct row_sink *sink)
{
    /* Seconds for a pixel on one thread, measured on photos: decode a JPEG or a PNG; filter and compress PNG rows. */
    const double decode = 4.5e-9, encode = sink->encode != NULL ? 12e-9 : 0;
    const int threads = thread_pool_threads(pipeline->request->pool);
    struct work work = pipeline->work;
    if (source->image != NULL)
        return threads;
    work.threads = 1;
    const double pixels = (double)work.width * work.height;
    const double filter = cost_cpu_seconds(pipeline->request->filters, pipeline->request->count, &work) / pixels;
    return (int)fmin(3 + (filter + encode) / decode, threads); /* one decodes, one writes */
}

/* ---- The state ---- */

/* What one thread needs. It is reserved when the thread filters its first band. */
struct band_worker {
    struct plane planes[2];
    struct image merged; /* rows between two filters of a chain, where these round; else its samples are NULL */
};

struct stream {
    struct pipeline *pipeline;
    const struct row_source *source;
    const struct row_sink *sink;
    struct image shape;
    struct bands bands;
    uint8_t *raw, *read, *filtered; /* the slots; NULL where the source or the sink has the image */
    struct band_worker *workers;    /* one for each thread */
    bool *is_filtered;              /* for each band: it is filtered and encoded */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int fetched, read_count, begun, ended,
        written; /* bands: ENDED counts those before the first that is not filtered */
    bool is_fetching, is_reading, is_writing, has_failed;
    struct error error;
};

/* The rows from FIRST to the one before LAST. */
struct span {
    int first, last;
};

static struct span band_span(const struct stream *stream, int band)
{
    const int first = band * stream->bands.rows, left = stream->shape.height - first;
    return (struct span){first, first + (left < stream->bands.rows ? left : stream->bands.rows)};
}

/* SPAN, with MORE rows above and below, as far as the image has them. */
static struct span span_extend(const struct stream *stream, struct span span, int more)
{
    return (struct span){span.first > more ? span.first - more : 0,
                         stream->shape.height - span.last > more ? span.last + more : stream->shape.height};
}

/* ---- One band ---- */

/* The place of image row Y among the read rows. */
static uint8_t *read_row(const struct stream *stream, int y)
{
    if (stream->source->image != NULL)
        return image_row(stream->source->image, y);
    const size_t slot = (size_t)(y / stream->bands.rows % stream->bands.read_slots);
    return stream->read +
           (slot * (size_t)stream->bands.rows + (size_t)(y % stream->bands.rows)) * row_bytes(&stream->shape);
}

/* The filtered rows of BAND, and the row above them, which is there unless it is the first band. */
static struct image filtered_band(const struct stream *stream, int band)
{
    const struct span span = band_span(stream, band);
    struct image rows = stream->shape;
    rows.height = span.last - span.first;
    if (stream->sink->image != NULL) {
        rows.samples = image_row(stream->sink->image, span.first);
        return rows;
    }
    const size_t slot = (size_t)(band % stream->bands.filtered_slots);
    rows.samples = stream->filtered + (slot * filtered_rows(&stream->bands) + 1) * row_bytes(&stream->shape);
    return rows;
}

/* A view of the rows of SPAN in planes that begin with row TOP. */
static struct plane plane_span(const struct plane *planes, int top, struct span span)
{
    struct plane part = *planes;
    part.height = span.last - span.first;
    part.data = (char *)part.data + (size_t)(span.first - top) * planes->row_bytes;
    return part;
}

/* Split the rows of SPAN into planes that begin with its first row. They lie in up to three slots. */
static void split_span(const struct stream *stream, struct span span, const struct plane *planes)
{
    const struct request *request = stream->pipeline->request;
    for (int y = span.first, end; y < span.last; y = end) {
        end = (y / stream->bands.rows + 1) * stream->bands.rows;
        end = stream->source->image != NULL || end > span.last ? span.last : end;
        struct image rows = stream->shape;
        rows.height = end - y;
        rows.samples = read_row(stream, y);
        const struct plane part = plane_span(planes, span.first, (struct span){y, end});
        image_split(&rows, request->alpha, request->linear, &part);
    }
}

/* Copy what the merge leaves as it is: alpha that no plane holds. */
static void copy_unfiltered(const struct stream *stream, struct span span, const struct image *rows)
{
    for (int y = span.first; y < span.last; y++)
        memcpy(image_row(rows, y - span.first), read_row(stream, y), row_bytes(&stream->shape));
}

/* Between two filters, round as two runs would: merge the planes and split them again. */
static void round_between(const struct stream *stream, const struct band_worker *worker, const struct plane *planes)
{
    const struct request *request = stream->pipeline->request;
    struct image rows = worker->merged;
    rows.height = planes->height;
    image_merge(planes, request->alpha, request->linear, &rows);
    image_split(&rows, request->alpha, request->linear, planes);
}

/* Apply all filters to the planes of worker->planes[0], which begin with row TOP and hold the rows that outputs of SPAN
 * need. *RESULT becomes the planes with these outputs, from the same row on. */
static bool convolve_band(const struct stream *stream, struct band_worker *worker, int top, int bottom,
                          struct span span, struct plane *result, struct error *error)
{
    const struct pipeline *pipeline = stream->pipeline;
    const struct request *request = pipeline->request;
    struct span held = {top, bottom};
    int in = 0;
    for (size_t i = 0; i < request->count; i++, in = !in) {
        struct plan plan = pipeline->plans[i];
        const struct span made = span_extend(stream, span, halo_of(request, i + 1));
        const struct plane from = plane_span(&worker->planes[in], top, held);
        const struct plane to = plane_span(&worker->planes[!in], top, held);
        if (i > 0 && request_merges_between(request, &stream->shape))
            round_between(stream, worker, &from);
        plan.first_row = made.first - held.first;
        plan.last_row = made.last - held.first;
        plan.pool = stream->bands.count > 1 ? NULL : request->pool;
        if (!plan.variant->launch(&plan, NULL, &from, &to, error))
            return false;
        held = made;
    }
    *result = plane_span(&worker->planes[in], top, span);
    return true;
}

/* Reserve the planes of a thread. Stores that bypass the caches need 64 bytes of alignment, which they have. */
static bool worker_open(const struct stream *stream, struct band_worker *worker, struct error *error)
{
    const struct request *request = stream->pipeline->request;
    const struct image *shape = &stream->shape;
    const int rows = plane_rows(&stream->bands, shape), count = image_planes(shape, request->alpha);
    for (int i = 0; i < 2; i++)
        if (!plane_allocate(&worker->planes[i], pipeline_sample(request, shape->bits), shape->width, rows, count,
                            error))
            return false;
    return !request_merges_between(request, shape) ||
           image_allocate(&worker->merged, shape->width, rows, shape->channels, shape->bits, error);
}

static void worker_close(struct band_worker *worker)
{
    plane_free(&worker->planes[0]);
    plane_free(&worker->planes[1]);
    image_free(&worker->merged);
}

/* Filter BAND on thread number THREAD, and let the sink encode it. Adds the times to MILLISECONDS. */
static bool filter_band(struct stream *stream, int band, int thread, double *milliseconds, struct error *error)
{
    const struct request *request = stream->pipeline->request;
    const struct row_sink *sink = stream->sink;
    struct band_worker *worker = &stream->workers[thread];
    const struct span span = band_span(stream, band);
    struct stages watch;
    stages_begin(&watch);
    if (worker->planes[0].data == NULL && !worker_open(stream, worker, error))
        return false;

    struct image rows = filtered_band(stream, band);
    struct span wanted = span;
    if (sink->encode != NULL && span.first > 0) /* it needs the row above, which another thread makes too */
        wanted.first--;
    const struct span needed = span_extend(stream, wanted, stream->bands.halo);
    struct plane planes = plane_span(&worker->planes[0], needed.first, needed), result;
    split_span(stream, needed, &planes);
    stages_end(&watch, STAGE_SPLIT);
    if (!convolve_band(stream, worker, needed.first, needed.last, wanted, &result, error))
        return false;
    stages_end(&watch, STAGE_CONVOLVE);

    struct image merged = rows;
    merged.height = wanted.last - wanted.first;
    merged.samples -= (size_t)(span.first - wanted.first) * row_bytes(&stream->shape);
    if (result.count < rows.channels)
        copy_unfiltered(stream, wanted, &merged);
    image_merge(&result, request->alpha, request->linear, &merged);
    stages_end(&watch, STAGE_MERGE);
    const bool done = sink->encode == NULL || sink->encode(sink->context, thread, span.first, &rows, error);
    stages_end(&watch, STAGE_ENCODE);
    memcpy(milliseconds, watch.milliseconds, sizeof watch.milliseconds);
    return done;
}

/* ---- Steps ---- */

enum step { STEP_FETCH, STEP_READ, STEP_WRITE, STEP_FILTER, STEP_WAIT, STEP_END };

/* May the next band be fetched? The next three functions say so of the other steps. */
static bool can_fetch(const struct stream *stream)
{
    return !stream->is_fetching && stream->source->fetch != NULL && stream->fetched < stream->bands.count &&
           stream->fetched < stream->read_count + stream->bands.raw_slots;
}

static bool can_read(const struct stream *stream)
{
    const int band = stream->read_count;
    return !stream->is_reading && band < stream->bands.count &&
           (stream->source->fetch == NULL || band < stream->fetched) &&
           /* The last band that needs the slot's old rows is one below them. */
           (band < stream->bands.read_slots || band - stream->bands.read_slots + 1 < stream->ended);
}

static bool can_filter(const struct stream *stream)
{
    const int band = stream->begun, below = band + 1 < stream->bands.count ? band + 1 : band;
    return band < stream->bands.count && below < stream->read_count &&
           (stream->sink->image != NULL || band < stream->written + stream->bands.filtered_slots);
}

static bool can_write(const struct stream *stream)
{
    return !stream->is_writing && stream->written < stream->ended;
}

/* Choose a step and mark it as begun. What feeds other threads comes first. */
static enum step next_step(struct stream *stream, int *band)
{
    if (stream->has_failed || stream->written == stream->bands.count)
        return STEP_END;
    if (can_read(stream)) {
        stream->is_reading = true;
        *band = stream->read_count;
        return STEP_READ;
    }
    if (can_fetch(stream)) {
        stream->is_fetching = true;
        *band = stream->fetched;
        return STEP_FETCH;
    }
    if (can_write(stream)) {
        stream->is_writing = true;
        *band = stream->written;
        return STEP_WRITE;
    }
    if (can_filter(stream)) {
        *band = stream->begun++;
        return STEP_FILTER;
    }
    return STEP_WAIT;
}

/* Do a step. Adds the times of its stages to MILLISECONDS. */
static bool run_step(struct stream *stream, enum step step, int band, int thread, double *milliseconds,
                     struct error *error)
{
    const struct row_source *source = stream->source;
    const struct span span = band_span(stream, band);
    const int rows = span.last - span.first;
    const double start = clock_milliseconds();
    uint8_t *raw = stream->raw;
    bool done;
    if (raw != NULL)
        raw += (size_t)(band % stream->bands.raw_slots) * (size_t)stream->bands.rows * source->raw_bytes;
    if (step == STEP_FILTER)
        return filter_band(stream, band, thread, milliseconds, error);
    if (step == STEP_WRITE) {
        const struct image filtered = filtered_band(stream, band);
        done = stream->sink->write == NULL || stream->sink->write(stream->sink->context, span.first, &filtered, error);
        milliseconds[STAGE_ENCODE] += clock_milliseconds() - start;
        return done;
    }
    if (step == STEP_FETCH)
        done = source->fetch(source->context, rows, raw, error);
    else
        done = source->read(source->context, rows, raw, read_row(stream, span.first), error);
    milliseconds[STAGE_DECODE] += clock_milliseconds() - start;
    return done;
}

/* Note that a step has ended. */
static void end_step(struct stream *stream, enum step step, int band)
{
    if (step == STEP_FETCH) {
        stream->is_fetching = false;
        stream->fetched++;
    } else if (step == STEP_READ) {
        stream->is_reading = false;
        stream->read_count++;
    } else if (step == STEP_WRITE) {
        stream->is_writing = false;
        stream->written++;
    } else {
        stream->is_filtered[band] = true;
        while (stream->ended < stream->bands.count && stream->is_filtered[stream->ended])
            stream->ended++;
    }
}

/* One thread: take steps until the image is through, or one has failed. */
static void run_steps(void *context, int64_t index, int thread)
{
    struct stream *stream = context;
    double times[STAGE_COUNT] = {0};
    (void)index;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        int band = 0;
        struct error error;
        double milliseconds[STAGE_COUNT] = {0};
        const enum step step = next_step(stream, &band);
        if (step == STEP_END)
            break;
        if (step == STEP_WAIT) {
            pthread_cond_wait(&stream->changed, &stream->mutex);
            continue;
        }
        pthread_mutex_unlock(&stream->mutex);
        const bool done = run_step(stream, step, band, thread, milliseconds, &error);
        for (int i = 0; i < STAGE_COUNT; i++)
            times[i] += milliseconds[i];
        pthread_mutex_lock(&stream->mutex);
        if (!done && !stream->has_failed) {
            stream->has_failed = true;
            stream->error = error;
        }
        end_step(stream, step, band);
        pthread_cond_broadcast(&stream->changed);
    }
    for (int i = 0; i < STAGE_COUNT; i++)
        stream->pipeline->stages->milliseconds[i] += times[i];
    pthread_mutex_unlock(&stream->mutex);
}

/* ---- An image ---- */

/* Reserve the slots. */
static bool stream_open(struct stream *stream, struct error *error)
{
    const struct bands *bands = &stream->bands;
    const size_t row = row_bytes(&stream->shape), rows = (size_t)bands->rows;
    const bool fetches = stream->source->fetch != NULL;
    const bool reads = stream->source->image == NULL, filters = stream->sink->image == NULL;
    stream->raw = fetches ? malloc((size_t)bands->raw_slots * rows * stream->source->raw_bytes) : NULL;
    stream->read = reads ? malloc((size_t)bands->read_slots * rows * row) : NULL;
    stream->filtered = filters ? malloc((size_t)bands->filtered_slots * filtered_rows(bands) * row) : NULL;
    stream->workers = calloc((size_t)bands->threads, sizeof *stream->workers);
    stream->is_filtered = calloc((size_t)bands->count, sizeof *stream->is_filtered);
    if (!reads)
        stream->fetched = stream->read_count = bands->count;
    return ((!fetches || stream->raw != NULL) && (!reads || stream->read != NULL) &&
            (!filters || stream->filtered != NULL) && stream->workers != NULL && stream->is_filtered != NULL) ||
           error_set(error, ERROR_WORK,
                     "there is not enough memory for bands of %d rows of %d pixels; close other "
                     "programs, or lower --threads",
                     bands->rows, stream->shape.width);
}

static void stream_close(struct stream *stream)
{
    for (int i = 0; stream->workers != NULL && i < stream->bands.threads; i++)
        worker_close(&stream->workers[i]);
    free(stream->raw);
    free(stream->read);
    free(stream->filtered);
    free(stream->workers);
    free(stream->is_filtered);
}

bool pipeline_stream(struct pipeline *pipeline, const struct image *shape, const struct row_source *source,
                     const struct row_sink *sink, struct error *error)
{
    struct stream stream = {
        .pipeline = pipeline,
        .source = source,
        .sink = sink,
        .shape = *shape,
        .bands = choose_bands(pipeline->request, shape, sink->multiple, repaid_threads(pipeline, source, sink)),
    };
    bool done = stream_open(&stream, error);
    pthread_mutex_init(&stream.mutex, NULL);
    pthread_cond_init(&stream.changed, NULL);
    if (done)
        parallel_for(pipeline->request->pool, stream.bands.threads, stream.bands.threads, run_steps, &stream);
    if (stream.has_failed) {
        *error = stream.error;
        done = false;
    }
    pthread_mutex_destroy(&stream.mutex);
    pthread_cond_destroy(&stream.changed);
    stream_close(&stream);
    pipeline->stages->last = clock_milliseconds();
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
    const struct bands bands = choose_bands(request, shape, sink->multiple, thread_pool_threads(request->pool));
    const size_t row = row_bytes(shape), rows = (size_t)bands.rows;
    const int planes_rows = plane_rows(&bands, shape);
    struct plane planes;
    size_t size;
    if (!plane_layout(&planes, pipeline_sample(request, shape->bits), shape->width, planes_rows,
                      image_planes(shape, request->alpha), &size, NULL))
        return SIZE_MAX;
    size_t need = (size_t)bands.threads * 2 * size;
    if (request_merges_between(request, shape))
        need += (size_t)bands.threads * (size_t)planes_rows * row;
    if (source->image == NULL)
        need += (size_t)bands.raw_slots * rows * source->raw_bytes + (size_t)bands.read_slots * rows * row;
    if (sink->image == NULL) /* twice: as filtered, and what the sink has made of them and not written yet */
        need += 2 * (size_t)bands.filtered_slots * filtered_rows(&bands) * row;
    return need;
}
