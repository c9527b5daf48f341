/* SPDX-License-Identifier: MIT
 *
 * An image streams through the CPU's filters. Its rows are fetched and read in strips, as they suit the source. They are
 * filtered, encoded and written in bands, as they suit the filters and the sink. Each step begins its strips or bands in
 * order. Writing takes one at a time, and so do fetching and reading unless the source takes any order. Filtering, with
 * what the sink can encode, takes several at once, each on one thread, in planes that stay in its caches. All threads are
 * alike: each takes the next step that is possible, so decoding, filtering and encoding run beside each other.
 *
 * Strips and bands lie in slots, which are used again in turn. A step begins once
 *
 *   fetch strip s     the old strip of its raw slot is read, and so is the one below that, if it needs neighbours
 *   read strip s      it is fetched, and so are the neighbours that it needs; no band needs the old strip of its slot
 *   filter band b     all strips with its rows and the halo around them are read; the old band of its slot is written
 *   write band b      it is filtered
 *
 * So the first strips and bands that are not through hold no slot that they wait for. Proof that some step is under way
 * or can begin, until all is written: else let w be the first band that is not written. No step is under way, so w is not
 * filtered, and its slot is free. Then a strip that w needs is not read; let r be the first. If r's slot is not free, w
 * needs the slot's old strip, too. Then the rows from that strip's last to r's first are at most those of w and the halo
 * on both sides. But between them are read_slots - 1 strips, which have more (choose_bands). So r or the strip below is
 * not fetched; let f be the first. If f's slot is not free, then f - raw_slots, or with neighbours the strip below that,
 * is not read. But these are above r, because f is at most r + 1, and there are at least three raw slots then. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "variants/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes ---- */

/* The numbers that follow from the shape of the image, the filters, the source and the sink. */
struct bands {
    int rows, count;              /* rows of a band; the last may have fewer */
    int strip_rows, strips;       /* the same of a strip */
    int halo;                     /* rows above and below that a band needs */
    int threads, reading_threads; /* the second: before a single band, which all threads filter together */
    int raw_slots, read_slots, filtered_slots;
};

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

static int64_t round_up(int64_t number, int multiple)
{
    return (number + multiple - 1) / multiple * multiple;
}

static int smaller(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

/* Choose the bands and strips of images like SHAPE, for at most THREADS threads. Where the image cannot be cut, there is
 * one band. */
static struct bands choose_bands(const struct request *request, const struct image *shape,
                                 const struct row_source *source, const struct row_sink *sink, int threads)
{
    enum {
        BAND_BYTES = 1 << 19, /* of one set of planes: two sets, and the image's rows, fill a core's second cache */
        BAND_HALOS = 4,       /* at least so many rows for each row of the halo: bounds the work on the halo */
        BANDS_EACH = 6,       /* at least so many for each thread, if all steps have several: the last bands end late */
    };
    const enum sample sample = pipeline_sample(request, shape);
    const int64_t row = (int64_t)shape->width * pipeline_planes(request, shape) * (int64_t)sample_bytes(sample);
    struct bands bands = {.halo = halo_of(request, 0, sample)};
    const int pool = thread_pool_threads(request->pool), each = source->any_order && pool > 1 ? pool * BANDS_EACH : 1;
    const int64_t fitting = smaller(BAND_BYTES / row, shape->height / each), cached = fitting > 0 ? fitting : 1;
    const int64_t least = (int64_t)BAND_HALOS * bands.halo;
    const int64_t rows = round_up(cached > least ? cached : least, sink->multiple);
    bands.rows = request->border == BORDER_WRAP ? shape->height : smaller(rows, shape->height);
    bands.count = (shape->height - 1) / bands.rows + 1;
    bands.strip_rows = (int)round_up(smaller(cached, bands.rows), source->image == NULL ? source->multiple : 1);
    bands.strips = (shape->height - 1) / bands.strip_rows + 1;
    bands.threads = smaller(threads, bands.count);
    bands.reading_threads = source->any_order ? smaller(threads, bands.strips) : 1;

    /* For the bands that are filtered, with the halo around them all; for a strip that is needed in part; and for those
     * that are read meanwhile. */
    const int64_t needed = (int64_t)bands.threads * bands.rows + 2 * (int64_t)bands.halo;
    const int64_t read = round_up(needed, bands.strip_rows) / bands.strip_rows + 1 + bands.reading_threads;
    bands.read_slots = smaller(read, bands.strips);
    bands.raw_slots = smaller(source->any_order ? 2 + 2 * bands.reading_threads : 2, bands.strips);
    bands.filtered_slots = smaller(bands.threads + 1, bands.count);
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

/* The threads of the pool that the work repays. A thread that is faster than a step which takes one strip or band at a
 * time only waits. */
static int repaid_threads(const struct pipeline *pipeline, const struct row_source *source, const struct row_sink *sink)
{
    /* Seconds for a pixel on one thread, measured on photos: decode a JPEG or a PNG; filter and compress PNG rows; write
     * a JPEG. */
    const double decode = 4.5e-9, encode = sink->encode != NULL ? 12e-9 : 0, write = 3.5e-9;
    const int threads = thread_pool_threads(pipeline->request->pool);
    struct work work = pipeline->work;
    if (source->image != NULL || (source->any_order && sink->encode != NULL))
        return threads;
    work.threads = 1;
    const double pixels = (double)work.width * work.height;
    const double filter = cost_cpu_seconds(pipeline->request->filters, pipeline->request->count, &work) / pixels;
    if (source->any_order)
        return (int)fmin(2 + (decode + filter) / write, threads); /* one writes */
    return (int)fmin(3 + (filter + encode) / decode, threads);    /* one decodes, one writes */
}

/* ---- The state ---- */

/* What one thread needs. It is reserved when the thread filters its first band. */
struct band_worker {
    struct plane planes[2];
    struct image merged; /* rows between two filters of a chain, where these round; else its samples are NULL */
};

enum step { STEP_FETCH, STEP_READ, STEP_FILTER, STEP_WRITE, STEPS, STEP_WAIT = STEPS, STEP_END };

/* How far a step is with the strips or bands of the image. */
struct progress {
    int count;        /* all of them */
    int begun, ended; /* those before the first that has not begun, or not ended */
    bool *has_ended;  /* for each */
    bool in_turn;     /* one at a time */
};

struct stream {
    struct pipeline *pipeline;
    const struct row_source *source;
    const struct row_sink *sink;
    struct image shape;
    struct bands bands;
    uint8_t *raw, *read, *filtered; /* the slots; NULL where the source or the sink has the image */
    struct band_worker *workers;    /* one for each thread */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct progress steps[STEPS];
    enum step goal; /* the threads return once this step has ended all over */
    bool has_failed;
    struct error error;
};

/* The rows from FIRST to the one before LAST. */
struct span {
    int first, last;
};

/* The rows of a strip or band, if each has ROWS. */
static struct span nth_span(const struct stream *stream, int index, int rows)
{
    const int first = index * rows, left = stream->shape.height - first;
    return (struct span){first, first + (left < rows ? left : rows)};
}

static struct span band_span(const struct stream *stream, int band)
{
    return nth_span(stream, band, stream->bands.rows);
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
    const int rows = stream->bands.strip_rows;
    const size_t slot = (size_t)(y / rows % stream->bands.read_slots);
    return stream->read + (slot * (size_t)rows + (size_t)(y % rows)) * row_bytes(&stream->shape);
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

/* Split the rows of SPAN into planes that begin with its first row. They lie in several slots. */
static void split_span(const struct stream *stream, struct span span, const struct plane *planes)
{
    const struct request *request = stream->pipeline->request;
    for (int y = span.first, end; y < span.last; y = end) {
        end = (y / stream->bands.strip_rows + 1) * stream->bands.strip_rows;
        end = stream->source->image != NULL || end > span.last ? span.last : end;
        struct image rows = stream->shape;
        rows.height = end - y;
        rows.samples = read_row(stream, y);
        const struct plane part = plane_span(planes, span.first, (struct span){y, end});
        image_split(&rows, pipeline_alpha(request, 0), request->linear, &part);
    }
}

/* Copy what the merge leaves as it is: alpha that no plane holds. */
static void copy_unfiltered(const struct stream *stream, struct span span, const struct image *rows)
{
    for (int y = span.first; y < span.last; y++)
        memcpy(image_row(rows, y - span.first), read_row(stream, y), row_bytes(&stream->shape));
}

/* A view of PLANES with those that filter NUMBER has. */
static struct plane filter_planes(const struct stream *stream, size_t number, struct plane planes)
{
    planes.count = image_planes(&stream->shape, pipeline_alpha(stream->pipeline->request, number));
    return planes;
}

/* The rows of worker->merged that belong to PLANES, a view of planes[i] of the worker. */
static struct image merged_rows(const struct band_worker *worker, const struct plane *own, const struct plane *planes)
{
    const size_t first = (size_t)((char *)planes->data - (char *)own->data) / own->row_bytes;
    return image_rows(&worker->merged, (int)first, planes->height);
}

/* Before filter NUMBER, round as two runs would: merge the planes and split them again. */
static void round_between(const struct stream *stream, const struct band_worker *worker, size_t number, int in,
                          struct plane planes)
{
    const struct request *request = stream->pipeline->request;
    struct image rows = merged_rows(worker, &worker->planes[in], &planes);
    const struct plane from = filter_planes(stream, number - 1, planes), to = filter_planes(stream, number, planes);
    image_merge(&from, pipeline_alpha(request, number - 1), request->linear, &rows);
    image_split(&rows, pipeline_alpha(request, number), request->linear, &to);
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
        const struct span made = span_extend(stream, span, halo_of(request, i + 1, pipeline->work.sample));
        struct plane from = plane_span(&worker->planes[in], top, held);
        struct plane to = plane_span(&worker->planes[!in], top, held);
        if (i > 0 && request_merges_between(request, &stream->shape))
            round_between(stream, worker, i, in, from);
        from = filter_planes(stream, i, from);
        to = filter_planes(stream, i, to);
        plan.first_row = made.first - held.first;
        plan.last_row = made.last - held.first;
        plan.pool = stream->bands.count > 1 ? NULL : request->pool;
        if (!plan.variant->launch(&plan, NULL, &from, &to, error))
            return false;
        held = made;
    }
    *result = filter_planes(stream, request->count - 1, plane_span(&worker->planes[in], top, span));
    return true;
}

/* Reserve the planes of a thread. Stores that bypass the caches need 64 bytes of alignment, which they have. */
static bool worker_open(const struct stream *stream, struct band_worker *worker, struct error *error)
{
    const struct request *request = stream->pipeline->request;
    const struct image *shape = &stream->shape;
    const int rows = plane_rows(&stream->bands, shape), count = pipeline_planes(request, shape);
    for (int i = 0; i < 2; i++)
        if (!plane_allocate(&worker->planes[i], pipeline_sample(request, shape), shape->width, rows, count, error))
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
    struct plane planes = filter_planes(stream, 0, plane_span(&worker->planes[0], needed.first, needed)), result;
    split_span(stream, needed, &planes);
    if (worker->merged.samples != NULL && image_has_alpha(&stream->shape)) /* for the alpha that no plane holds */
        copy_unfiltered(stream, needed, &worker->merged);
    stages_end(&watch, STAGE_SPLIT);
    if (!convolve_band(stream, worker, needed.first, needed.last, wanted, &result, error))
        return false;
    stages_end(&watch, STAGE_CONVOLVE);

    struct image merged = rows;
    merged.height = wanted.last - wanted.first;
    merged.samples -= (size_t)(span.first - wanted.first) * row_bytes(&stream->shape);
    if (result.count < rows.channels && worker->merged.samples != NULL) /* an earlier filter may have changed alpha */
        memcpy(merged.samples, image_row(&worker->merged, wanted.first - needed.first),
               (size_t)merged.height * row_bytes(&stream->shape));
    else if (result.count < rows.channels)
        copy_unfiltered(stream, wanted, &merged);
    image_merge(&result, pipeline_alpha(request, request->count - 1), request->linear, &merged);
    stages_end(&watch, STAGE_MERGE);
    const bool done = sink->encode == NULL || sink->encode(sink->context, thread, span.first, &rows, error);
    stages_end(&watch, STAGE_ENCODE);
    memcpy(milliseconds, watch.milliseconds, sizeof watch.milliseconds);
    return done;
}

/* ---- Steps ---- */

/* Does a read need the raw rows of the neighbours? */
static bool needs_neighbours(const struct stream *stream)
{
    return stream->source->any_order && stream->source->fetch != NULL;
}

/* The last strip that the outputs of BAND need. */
static int last_strip(const struct stream *stream, int band)
{
    const struct span needed = span_extend(stream, band_span(stream, band), stream->bands.halo);
    return (needed.last - 1) / stream->bands.strip_rows;
}

/* The last band that needs rows of STRIP. The sink may need one more row above a band. */
static int last_band(const struct stream *stream, int strip)
{
    const struct bands *bands = &stream->bands;
    return smaller(((int64_t)(strip + 1) * bands->strip_rows + bands->halo) / bands->rows, bands->count - 1);
}

/* May STEP begin with its next strip or band? The head of this file lists the conditions. */
static bool can_begin(const struct stream *stream, enum step step)
{
    const struct bands *bands = &stream->bands;
    const struct progress *steps = stream->steps;
    const int next = steps[step].begun, below = needs_neighbours(stream) ? 1 : 0;
    if (next == steps[step].count || (steps[step].in_turn && steps[step].ended < next))
        return false;
    switch (step) {
    case STEP_FETCH:
        return next < bands->raw_slots || next - bands->raw_slots + below < steps[STEP_READ].ended;
    case STEP_READ:
        return smaller(next + below, bands->strips - 1) < steps[STEP_FETCH].ended &&
               (next < bands->read_slots || last_band(stream, next - bands->read_slots) < steps[STEP_FILTER].ended);
    case STEP_FILTER:
        return last_strip(stream, next) < steps[STEP_READ].ended &&
               (stream->sink->image != NULL || next < steps[STEP_WRITE].ended + bands->filtered_slots);
    default:
        return next < steps[STEP_FILTER].ended;
    }
}

/* Choose a step and mark it as begun with strip or band *INDEX. A step that decodes in turn comes first, because it
 * feeds other threads. Where decoding takes any order, what is nearest to its end comes first: its rows are still in a
 * cache, and no more strips are decoded than the filters need. */
static enum step next_step(struct stream *stream, int *index)
{
    static const enum step orders[2][STEPS] = {
        {STEP_READ, STEP_FETCH, STEP_WRITE, STEP_FILTER},
        {STEP_WRITE, STEP_FILTER, STEP_READ, STEP_FETCH},
    };
    const enum step *order = orders[stream->source->any_order];
    if (stream->has_failed || stream->steps[stream->goal].ended == stream->steps[stream->goal].count)
        return STEP_END;
    for (int i = 0; i < STEPS; i++)
        if (order[i] <= stream->goal && can_begin(stream, order[i])) {
            *index = stream->steps[order[i]].begun++;
            return order[i];
        }
    return STEP_WAIT;
}

/* The place of a strip's raw rows. */
static uint8_t *raw_strip(const struct stream *stream, int strip)
{
    const struct bands *bands = &stream->bands;
    const size_t slot = (size_t)(strip % bands->raw_slots);
    return stream->raw + slot * (size_t)bands->strip_rows * stream->source->raw_bytes;
}

static bool fetch_strip(const struct stream *stream, int strip, struct error *error)
{
    const struct row_source *source = stream->source;
    const struct span span = nth_span(stream, strip, stream->bands.strip_rows);
    return source->fetch(source->context, span.first, span.last - span.first, raw_strip(stream, strip), error);
}

static bool read_strip(const struct stream *stream, int strip, struct error *error)
{
    const struct row_source *source = stream->source;
    const struct span span = nth_span(stream, strip, stream->bands.strip_rows);
    struct rows raw = {0};
    if (source->fetch != NULL)
        raw.data = raw_strip(stream, strip);
    if (needs_neighbours(stream) && strip > 0)
        raw.above = raw_strip(stream, strip - 1) + (size_t)stream->bands.strip_rows * source->raw_bytes;
    if (needs_neighbours(stream) && strip < stream->bands.strips - 1)
        raw.below = raw_strip(stream, strip + 1);
    struct image rows = stream->shape;
    rows.height = span.last - span.first;
    rows.samples = read_row(stream, span.first);
    if (!source->read(source->context, span.first, rows.height, &raw, rows.samples, error))
        return false;
    if (source->translucent == NULL || image_is_opaque(&rows))
        return true;
    atomic_store(source->translucent, true);
    return error_set(error, ERROR_WORK, "row %d or one below it is not opaque", span.first);
}

static bool write_band(const struct stream *stream, int band, struct error *error)
{
    const struct row_sink *sink = stream->sink;
    const struct image rows = filtered_band(stream, band);
    return sink->write == NULL || sink->write(sink->context, band_span(stream, band).first, &rows, error);
}

/* Do a step. Adds the times of its stages to MILLISECONDS. */
static bool run_step(struct stream *stream, enum step step, int index, int thread, double *milliseconds,
                     struct error *error)
{
    if (step == STEP_FILTER)
        return filter_band(stream, index, thread, milliseconds, error);
    const double start = clock_milliseconds();
    const bool done = step == STEP_FETCH  ? fetch_strip(stream, index, error)
                      : step == STEP_READ ? read_strip(stream, index, error)
                                          : write_band(stream, index, error);
    milliseconds[step == STEP_WRITE ? STAGE_ENCODE : STAGE_DECODE] += clock_milliseconds() - start;
    return done;
}

/* Note that a step has ended. */
static void end_step(struct progress *progress, int index)
{
    progress->has_ended[index] = true;
    while (progress->ended < progress->count && progress->has_ended[progress->ended])
        progress->ended++;
}

/* Tell other threads how far the image is. A single band says nothing until all is done. */
static void note_passed(const struct stream *stream)
{
    const struct progress *written = &stream->steps[STEP_WRITE];
    if (written->count > 1)
        atomic_store(&stream->pipeline->passed, (int)(1000 * (int64_t)written->ended / written->count));
}

/* One thread: take steps until the goal is reached, or one has failed. */
static void run_steps(void *context, int64_t number, int thread)
{
    struct stream *stream = context;
    double times[STAGE_COUNT] = {0};
    (void)number;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        int index = 0;
        struct error error;
        double milliseconds[STAGE_COUNT] = {0};
        const enum step step = next_step(stream, &index);
        if (step == STEP_END)
            break;
        if (step == STEP_WAIT) {
            pthread_cond_wait(&stream->changed, &stream->mutex);
            continue;
        }
        pthread_mutex_unlock(&stream->mutex);
        const bool done = run_step(stream, step, index, thread, milliseconds, &error);
        for (int i = 0; i < STAGE_COUNT; i++)
            times[i] += milliseconds[i];
        pthread_mutex_lock(&stream->mutex);
        if (!done && !stream->has_failed) {
            stream->has_failed = true;
            stream->error = error;
        }
        end_step(&stream->steps[step], index);
        note_passed(stream);
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
    const size_t row = row_bytes(&stream->shape), strip = (size_t)bands->strip_rows;
    const int counts[STEPS] = {bands->strips, bands->strips, bands->count, bands->count};
    const bool fetches = stream->source->fetch != NULL;
    const bool reads = stream->source->image == NULL, filters = stream->sink->image == NULL;
    stream->raw = fetches ? malloc((size_t)bands->raw_slots * strip * stream->source->raw_bytes) : NULL;
    stream->read = reads ? malloc((size_t)bands->read_slots * strip * row) : NULL;
    stream->filtered = filters ? malloc((size_t)bands->filtered_slots * filtered_rows(bands) * row) : NULL;
    stream->workers = calloc((size_t)bands->threads, sizeof *stream->workers);
    bool has_flags = true;
    for (int i = 0; i < STEPS; i++) {
        struct progress *progress = &stream->steps[i];
        *progress = (struct progress){.count = counts[i],
                                      .in_turn = i == STEP_WRITE || (i < STEP_FILTER && !stream->source->any_order)};
        if ((i == STEP_FETCH && !fetches) || (i <= STEP_READ && !reads))
            progress->begun = progress->ended = progress->count;
        progress->has_ended = calloc((size_t)counts[i], sizeof *progress->has_ended);
        has_flags = has_flags && progress->has_ended != NULL;
    }
    return ((!fetches || stream->raw != NULL) && (!reads || stream->read != NULL) &&
            (!filters || stream->filtered != NULL) && stream->workers != NULL && has_flags) ||
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
    for (int i = 0; i < STEPS; i++)
        free(stream->steps[i].has_ended);
}

/* Let THREADS threads take steps up to GOAL. */
static void reach(struct stream *stream, enum step goal, int threads)
{
    stream->goal = goal;
    parallel_for(stream->pipeline->request->pool, threads, threads, run_steps, stream);
}

bool pipeline_stream(struct pipeline *pipeline, const struct image *shape, const struct row_source *source,
                     const struct row_sink *sink, struct error *error)
{
    struct stream stream = {
        .pipeline = pipeline,
        .source = source,
        .sink = sink,
        .shape = *shape,
        .bands = choose_bands(pipeline->request, shape, source, sink, repaid_threads(pipeline, source, sink)),
    };
    bool done = stream_open(&stream, error);
    note_passed(&stream);
    pthread_mutex_init(&stream.mutex, NULL);
    pthread_cond_init(&stream.changed, NULL);
    if (done && stream.bands.count == 1)
        reach(&stream, STEP_READ, stream.bands.reading_threads);
    if (done)
        reach(&stream, STEP_WRITE, stream.bands.threads);
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
    const struct bands bands = choose_bands(request, shape, source, sink, thread_pool_threads(request->pool));
    const size_t row = row_bytes(shape), strip = (size_t)bands.strip_rows;
    const int planes_rows = plane_rows(&bands, shape);
    struct plane planes;
    size_t size;
    if (!plane_layout(&planes, pipeline_sample(request, shape), shape->width, planes_rows,
                      pipeline_planes(request, shape), &size, NULL))
        return SIZE_MAX;
    size_t need = (size_t)bands.threads * 2 * size;
    if (request_merges_between(request, shape))
        need += (size_t)bands.threads * (size_t)planes_rows * row;
    if (source->image == NULL)
        need += (size_t)bands.raw_slots * strip * source->raw_bytes + (size_t)bands.read_slots * strip * row;
    if (sink->image == NULL) /* twice: as filtered, and what the sink has made of them and not written yet */
        need += 2 * (size_t)bands.filtered_slots * filtered_rows(&bands) * row;
    return need;
}
