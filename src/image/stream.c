/* SPDX-License-Identifier: MIT
 *
 * A source's rows are fetched and read in strips, as they suit the source. They are transformed, encoded and written in
 * bands, as they suit the transform and the sink. Strips and bands lie in slots, which are used again cyclically:
 *
 *   source -- fetch --> raw slots -- read --> read slots -- make, encode --> output slots -- write --> sink
 *             strips                 strips                 bands                            bands
 *
 * Each step begins its strips or bands in order, from the top of the image. Writing takes one at a time, and so does
 * fetching unless the source takes any order; reading takes as many as the source says. Making, with what the sink can
 * encode, takes several at once, each on one thread, in memory that stays in its caches. All threads are alike: each
 * takes the next step that is possible, so decoding, transforming and encoding run beside each other. If there is none,
 * a source may have other work for the thread.
 *
 * A step waits for its rows, which the step to its left makes, and for a slot, which the step to its right gives back:
 *
 *   rows:        fetch s ------> read s ------> make b ------> write b
 *   a slot:      fetch s <------ read s <------ make b <------ write b
 *
 *   fetch strip s   waits until the old strip of its raw slot is read, and with neighbours the strip below that, too
 *   read strip s    waits until it is fetched, and with neighbours those above and below, too; and until the old strip
 *                   of its slot is read, and all bands are made that need it
 *   make band b     waits until all strips are read with its rows and the halo around them; and until the old band of
 *                   its slot is written
 *   write band b    waits until it is made
 *
 * Band w needs the strips that hold its rows and a halo, or whatever rows of another size the transform makes its rows
 * of. Band w + 1 needs some of them, too. Perhaps no band needs the strips at the top and at the bottom. They are read
 * all the same, because they may be damaged; those at the bottom once all is written:
 *
 *   strips       |  r-2  |  r-1  |   r   |  r+1  |  r+2  |  r+3  |       from the top of the image (left) to the bottom
 *   band w         . halo |      band w      | halo .
 *   band w + 1                        . halo |    band w + 1    | halo .
 *
 * So the first strips and bands that are not done hold no slot that they wait for. Proof that some step is under way or
 * can begin, until all is written: suppose not, and let w be the first band that is not written. No step is under way,
 * so w is not made, and its slot is free. Then a strip is not read that w needs, or one above these; let r be the
 * first. All strips above r are read. If r's slot is not free, w needs the slot's old strip. Then the rows from that
 * strip's last to r's first are at most those that w needs. But between them are read_slots - 1 strips, which have more
 * (stream_plan). So r or the strip below is not fetched; let f be the first. If f's slot is not free, then f -
 * raw_slots, or with neighbours the strip below that, is not read. But these are above r, because f is at most r + 1,
 * and there are at least three raw slots then.
 *
 * An image in memory replaces the slots: its rows are read, or written, from the beginning. If there is no
 * transform, either the rows are read where the sink's image has them, and nothing is made or written; or the sink
 * encodes and writes them where the source's image has them. Then a step waits less, and the proof holds. */
#include "image/stream.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/round.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

/* ---- Sizes ---- */

static int smaller_count(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

/* The rows of the source that the sink's rows of SPAN depend on. */
static struct row_span needed_rows(const struct stream *stream, struct row_span span)
{
    return stream->make != NULL ? stream->needs(stream->context, span) : span;
}

/* The rows that COUNT bands from number FIRST on need, or as many as there are. The sink may need a row above. */
static struct row_span band_rows(const struct stream *stream, int first, int count)
{
    const int rows = stream->bands.rows, above = stream->sink->reads_above && first > 0 ? 1 : 0;
    const int last = smaller_count(((int64_t)first + count) * rows, stream->produced_shape.height);
    return needed_rows(stream, (struct row_span){first * rows - above, last});
}

/* The rows of the source that the whole of the sink's image depends on. */
static int used_rows(const struct stream *stream)
{
    const struct row_span all = needed_rows(stream, (struct row_span){0, stream->produced_shape.height});
    return all.last - all.first;
}

/* ROWS of the sink's image in rows of the source's, at least 1. */
static int source_rows(const struct stream *stream, int rows)
{
    const int64_t scaled = (int64_t)rows * used_rows(stream) / stream->produced_shape.height;
    return scaled < 1 ? 1 : smaller_count(scaled, stream->shape.height);
}

static int choose_band(const struct stream *stream, int64_t cached)
{
    enum {
        /* A band shares some rows with its neighbours, and has at least BAND_NEEDS times their number: this bounds the
         * work that is done twice. From an image in memory it has HIGH_NEEDS times their number, at most HIGH_CACHES
         * times what a cache holds, or WIDE_NEEDS times if bands may be tall; each thread still gets two bands. */
        BAND_NEEDS = 2,
        HIGH_NEEDS = 4,
        HIGH_CACHES = 8,
        WIDE_NEEDS = 32,
        ROUNDED_BYTES = 16 << 20, /* bands are rounded to the transform's multiple while that takes no more bytes */
    };
    const int height = stream->produced_shape.height;
    const int64_t shared = BAND_NEEDS * stream->shared_rows;
    const size_t sink = (size_t)stream->sink->multiple, fitting = ROUNDED_BYTES / (stream->row_bytes + 1),
                 multiple = (size_t)(stream->multiple > 1 ? smaller_count((int64_t)fitting, stream->multiple) : 1);
    const int64_t enough =
        stream->is_wide ? WIDE_NEEDS * shared : smaller_count(HIGH_NEEDS * shared, HIGH_CACHES * (int)cached);
    const int64_t high = stream->source->image != NULL
                             ? smaller_count(enough, height / (stream->threads > 1 ? 2 * stream->threads : 1))
                             : 0;
    const int64_t min_rows = high > shared ? high : shared;
    const size_t wanted = (size_t)(cached > min_rows ? cached : min_rows);
    const int64_t rows = (int64_t)round_up(multiple > 1 ? round_up(wanted, multiple) : wanted, sink);
    assert(rows > 0); /* static analysers do not see it */
    return stream->is_whole ? height : smaller_count(rows, height);
}

void stream_plan(struct stream *stream)
{
    enum {
        BAND_BYTES = 1 << 19, /* bytes of one set of planes: two sets, and the image's rows, fill a core's L2 cache */
        BANDS_EACH = 6,       /* the least bands for each thread, if all steps have several: the last bands end late */
        PNG_ROWS = 8,         /* rows whose PNG filters are undone at once */
    };
    const struct row_source *source = stream->source;
    const int height = stream->shape.height;
    /* Without a transform, a thread works on a row's samples and on its raw or encoded bytes. */
    const size_t plain = 2 * image_row_bytes(&stream->shape);
    const int64_t row = (int64_t)(stream->make != NULL ? stream->row_bytes : plain);
    struct bands *bands = &stream->bands;
    const int pool = thread_pool_threads(stream->pool), each = source->any_order && pool > 1 ? pool * BANDS_EACH : 1;
    const int64_t fitting = smaller_count(BAND_BYTES / row, stream->produced_shape.height / each);
    const int64_t cached = fitting > 0 ? fitting : 1;
    bands->rows = choose_band(stream, cached);
    bands->count = (stream->produced_shape.height - 1) / bands->rows + 1;
    bands->strip_rows = source_rows(stream, smaller_count(cached, bands->rows));
    if (source->multiple > 1)
        bands->strip_rows = (int)round_up((size_t)bands->strip_rows, (size_t)source->multiple);
    else if (bands->strip_rows > PNG_ROWS && bands->strip_rows < height)
        bands->strip_rows -= bands->strip_rows % PNG_ROWS;
    bands->strips = (height - 1) / bands->strip_rows + 1;
    bands->threads = smaller_count(stream->threads, bands->count);
    const int readers = source->any_order ? stream->threads : source->readers > 1 ? source->readers : 1;
    bands->reading_threads = smaller_count(smaller_count(readers, stream->threads), bands->strips);

    /* For the bands that are made; for a strip that is needed in part; and for those that are read meanwhile. */
    int64_t needed = 1;
    for (int band = 0; band < bands->count; band++) {
        const struct row_span span = band_rows(stream, band, bands->threads);
        needed = span.last - span.first > needed ? span.last - span.first : needed;
    }
    const int64_t read = (needed + bands->strip_rows - 1) / bands->strip_rows + 1 + bands->reading_threads;
    bands->read_slots = smaller_count(read, bands->strips);
    bands->raw_slots = smaller_count((source->any_order ? 2 : 1) * (1 + bands->reading_threads), bands->strips);
    bands->output_slots = smaller_count(bands->threads + 1, bands->count);
}

/* Bytes of all slots of a kind. An output slot has a band, and the row above it for the sink. */
static size_t raw_bytes(const struct stream *stream)
{
    return (size_t)stream->bands.raw_slots * (size_t)stream->bands.strip_rows * stream->source->raw_bytes;
}

static size_t read_bytes(const struct stream *stream)
{
    return (size_t)stream->bands.read_slots * (size_t)stream->bands.strip_rows * image_row_bytes(&stream->shape);
}

static size_t output_bytes(const struct stream *stream)
{
    return (size_t)stream->bands.output_slots * ((size_t)stream->bands.rows + 1) *
           image_row_bytes(&stream->produced_shape);
}

size_t stream_need(const struct stream *stream)
{
    return (stream->source->image == NULL ? raw_bytes(stream) + read_bytes(stream) : 0) +
           (stream->sink->image == NULL ? 2 * output_bytes(stream) : 0);
}

/* ---- Rows ---- */

/* Rows of an image like SHAPE from FIRST on, COUNT or as many as it has. Their samples are not set. */
static struct image shape_of_rows(const struct image *shape, int first, int count)
{
    struct image part = *shape;
    part.height = smaller_count(count, shape->height - first);
    return part;
}

struct image stream_rows(const struct stream *stream, int first, int last)
{
    const int rows = stream->bands.strip_rows, at = first % rows;
    if (stream->in != NULL)
        return image_rows(stream->in, first, last - first);
    struct image part = shape_of_rows(&stream->shape, first, smaller_count(last - first, rows - at));
    const size_t slot = (size_t)(first / rows % stream->bands.read_slots);
    part.samples = stream->read + (slot * (size_t)rows + (size_t)at) * image_row_bytes(&part);
    return part;
}

/* The rows of BAND, made or to be made. The row above them is there, too, unless it is the first band. */
static struct image output_band(const struct stream *stream, int band)
{
    const int rows = stream->bands.rows, first = band * rows;
    struct image part = shape_of_rows(&stream->produced_shape, first, rows);
    if (stream->out != NULL)
        return image_rows(stream->out, first, part.height);
    const size_t slot = (size_t)(band % stream->bands.output_slots);
    part.samples = stream->output + (slot * ((size_t)rows + 1) + 1) * image_row_bytes(&part);
    return part;
}

static uint8_t *raw_strip(const struct stream *stream, int strip)
{
    const size_t slot = (size_t)(strip % stream->bands.raw_slots);
    return stream->raw + slot * (size_t)stream->bands.strip_rows * stream->source->raw_bytes;
}

/* Does a read need the raw rows of the neighbours? */
static bool needs_neighbours(const struct stream *stream)
{
    return stream->source->any_order && stream->source->fetch != NULL;
}

/* ---- Steps ---- */

static bool fetch_strip(const struct stream *stream, int strip, struct error *error)
{
    const struct row_source *source = stream->source;
    const int first = strip * stream->bands.strip_rows;
    const struct image part = shape_of_rows(&stream->shape, first, stream->bands.strip_rows);
    return source->fetch(source->context, first, part.height, raw_strip(stream, strip), error);
}

static bool read_strip(const struct stream *stream, int strip, struct error *error)
{
    const struct row_source *source = stream->source;
    const int rows = stream->bands.strip_rows, first = strip * rows;
    const struct image part = stream_rows(stream, first, smaller_count((int64_t)first + rows, stream->shape.height));
    struct rows raw = {0};
    if (source->fetch != NULL)
        raw.data = raw_strip(stream, strip);
    if (needs_neighbours(stream) && strip > 0)
        raw.above = raw_strip(stream, strip - 1) + (size_t)rows * source->raw_bytes;
    if (needs_neighbours(stream) && strip < stream->bands.strips - 1)
        raw.below = raw_strip(stream, strip + 1);
    if (!source->read(source->context, first, part.height, &raw, part.samples, error))
        return false;
    if (source->translucent == NULL || image_is_opaque(&part))
        return true;
    atomic_store(source->translucent, true);
    return error_set(error, ERROR_WORK, "row %d or one below it is not opaque", first);
}

/* Make BAND on thread number THREAD, and let the sink encode it. Adds the time of the latter to *ENCODING. */
static bool make_band(const struct stream *stream, int band, int thread, double *encoding, struct error *error)
{
    const struct row_sink *sink = stream->sink;
    const int first = band * stream->bands.rows;
    const struct image rows = output_band(stream, band);
    if (stream->make != NULL) {
        struct image produced = rows;
        const int above = sink->reads_above && first > 0 ? 1 : 0; /* another thread makes that row, too */
        produced.height += above;
        produced.samples -= (size_t)above * image_row_bytes(&rows);
        if (!stream->make(stream->context, thread, first - above, &produced, error))
            return false;
    }
    const double start = clock_milliseconds();
    const bool done = sink->encode == NULL || sink->encode(sink->context, thread, first, &rows, error);
    *encoding += clock_milliseconds() - start;
    return done;
}

static bool write_out_band(const struct stream *stream, int band, struct error *error)
{
    const struct row_sink *sink = stream->sink;
    const struct image rows = output_band(stream, band);
    return sink->write == NULL || sink->write(sink->context, band * stream->bands.rows, &rows, error);
}

/* ---- The choice of a step ---- */

enum { STEP_WAIT = STREAM_STEPS, STEP_END };

/* Are all strips read that BAND needs? */
static bool is_fed(const struct stream *stream, int band)
{
    return (band_rows(stream, band, 1).last - 1) / stream->bands.strip_rows < stream->steps[STREAM_READ].ended;
}

/* Is STRIP read, and are all bands made that need it? Later bands need no earlier strips, and some need none. */
static bool is_used(const struct stream *stream, int strip)
{
    const int made = stream->steps[STREAM_MAKE].ended;
    if (strip >= stream->steps[STREAM_READ].ended)
        return false;
    return made == stream->bands.count || band_rows(stream, made, 1).first / stream->bands.strip_rows > strip;
}

/* May STEP begin with its next strip or band? The head of this file lists the conditions. */
static bool can_begin(const struct stream *stream, enum stream_step step)
{
    const struct bands *bands = &stream->bands;
    const struct stream_progress *steps = stream->steps;
    const int next = steps[step].begun, below = needs_neighbours(stream) ? 1 : 0;
    if (next == steps[step].count || next - steps[step].ended >= steps[step].at_once)
        return false;
    switch (step) {
    case STREAM_FETCH:
        return next < bands->raw_slots || next - bands->raw_slots + below < steps[STREAM_READ].ended;
    case STREAM_READ:
        return smaller_count(next + below, bands->strips - 1) < steps[STREAM_FETCH].ended &&
               (next < bands->read_slots || is_used(stream, next - bands->read_slots));
    case STREAM_MAKE:
        return is_fed(stream, next) &&
               (stream->sink->image != NULL || next < steps[STREAM_WRITE].ended + bands->output_slots);
    default:
        return next < steps[STREAM_MAKE].ended;
    }
}

/* Is the goal reached? Before a single band is made, it is enough that its strips are read. */
static bool is_reached(const struct stream *stream)
{
    const struct stream_progress *goal = &stream->steps[stream->goal];
    return goal->ended == goal->count ||
           (stream->goal == STREAM_READ && stream->steps[STREAM_MAKE].ended == 0 && is_fed(stream, 0));
}

/* Choose a step and mark it as begun with strip or band *INDEX. A step that decodes in order comes first, because it
 * feeds other threads. Where decoding takes any order, the step nearest to the sink comes first: its rows are still in
 * a cache, and no more strips are decoded than the transform needs. */
static int next_step(struct stream *stream, int *index)
{
    static const enum stream_step orders[2][STREAM_STEPS] = {
        {STREAM_READ, STREAM_FETCH, STREAM_WRITE, STREAM_MAKE},
        {STREAM_WRITE, STREAM_MAKE, STREAM_READ, STREAM_FETCH},
    };
    const enum stream_step *order = orders[stream->source->any_order];
    if (stream->has_failed || is_reached(stream))
        return STEP_END;
    for (int i = 0; i < STREAM_STEPS; i++)
        if (order[i] <= stream->goal && can_begin(stream, order[i])) {
            *index = stream->steps[order[i]].begun++;
            return (int)order[i];
        }
    return STEP_WAIT;
}

/* ---- Threads ---- */

/* Do a step, and add its milliseconds to *DECODING or *ENCODING. */
static bool run_step(const struct stream *stream, int step, int index, int thread, double *decoding, double *encoding,
                     struct error *error)
{
    if (step == STREAM_MAKE)
        return make_band(stream, index, thread, encoding, error);
    const double start = clock_milliseconds();
    const bool done = step == STREAM_FETCH  ? fetch_strip(stream, index, error)
                      : step == STREAM_READ ? read_strip(stream, index, error)
                                            : write_out_band(stream, index, error);
    *(step == STREAM_WRITE ? encoding : decoding) += clock_milliseconds() - start;
    return done;
}

/* Note that a step has ended. */
static void end_step(struct stream_progress *progress, int index)
{
    progress->has_ended[index] = true;
    while (progress->ended < progress->count && progress->has_ended[progress->ended])
        progress->ended++;
}

/* Tell other threads how far the image is. A single band says nothing until all is done. */
static void record_progress(const struct stream *stream)
{
    const struct stream_progress *written = &stream->steps[STREAM_WRITE];
    if (stream->progress_permille != NULL && written->count > 1)
        atomic_store(stream->progress_permille, (int)(1000 * (int64_t)written->ended / written->count));
}

/* Note that a call has ended, after which others may begin. */
static void announce_change(struct stream *stream)
{
    stream->changes++;
    pthread_cond_broadcast(&stream->changed);
}

/* There is no step to take: help the source, or wait. Adds the time of the help to *DECODING. */
static void help_source_or_wait(struct stream *stream, double *decoding)
{
    const struct row_source *source = stream->source;
    const unsigned changes = stream->changes;
    bool helped = false;
    if (source->help != NULL) {
        pthread_mutex_unlock(&stream->mutex);
        const double start = clock_milliseconds();
        helped = source->help(source->context);
        *decoding += clock_milliseconds() - start;
        pthread_mutex_lock(&stream->mutex);
    }
    if (helped)
        announce_change(stream);
    else if (changes == stream->changes)
        pthread_cond_wait(&stream->changed, &stream->mutex);
}

/* One thread: take steps until the goal is reached, or one has failed. */
static void take_steps(void *context, int64_t number, int thread)
{
    struct stream *stream = context;
    double decoding = 0, encoding = 0;
    (void)number;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        int index = 0;
        struct error error;
        const int step = next_step(stream, &index);
        if (step == STEP_END)
            break;
        if (step == STEP_WAIT) {
            help_source_or_wait(stream, &decoding);
            continue;
        }
        pthread_mutex_unlock(&stream->mutex);
        const bool done = run_step(stream, step, index, thread, &decoding, &encoding, &error);
        pthread_mutex_lock(&stream->mutex);
        if (!done && !stream->has_failed) {
            stream->has_failed = true;
            stream->error = error;
        }
        end_step(&stream->steps[step], index);
        record_progress(stream);
        announce_change(stream);
    }
    stream->decoding += decoding;
    stream->encoding += encoding;
    pthread_mutex_unlock(&stream->mutex);
}

/* Let THREADS threads take steps up to GOAL. */
static void run_up_to(struct stream *stream, enum stream_step goal, int threads)
{
    stream->goal = goal;
    parallel_for(stream->pool, threads, threads, take_steps, stream);
}

/* ---- A stream ---- */

/* Reserve the slots and the flags of the steps. One block for all would raise the size from which malloc maps blocks,
 * and the memory of files that grow. */
static bool reserve_slots(struct stream *stream)
{
    const struct bands *bands = &stream->bands;
    const struct image *in = stream->source->image, *out = stream->sink->image;
    const bool fetches = stream->source->fetch != NULL, makes = stream->make != NULL || out == NULL;
    const bool has_step[STREAM_STEPS] = {fetches, in == NULL, makes, makes};
    const int counts[STREAM_STEPS] = {bands->strips, bands->strips, bands->count, bands->count};
    stream->in = in == NULL && stream->make == NULL ? out : in;
    stream->out = out == NULL && stream->make == NULL ? in : out;
    stream->raw = fetches ? malloc(raw_bytes(stream)) : NULL;
    stream->read = stream->in == NULL ? malloc(read_bytes(stream)) : NULL;
    stream->output = stream->out == NULL ? malloc(output_bytes(stream)) : NULL;
    bool *has_ended = stream->flags = calloc(2, (size_t)bands->strips + (size_t)bands->count);
    for (int i = 0; stream->flags != NULL && i < STREAM_STEPS; has_ended += counts[i++]) {
        const bool in_order = i == STREAM_WRITE || (i < STREAM_MAKE && !stream->source->any_order);
        const int at_once = !in_order ? INT_MAX : i == STREAM_READ ? bands->reading_threads : 1;
        const int done = has_step[i] ? 0 : counts[i];
        stream->steps[i] = (struct stream_progress){counts[i], done, done, has_ended, at_once};
    }
    return (!fetches || stream->raw != NULL) && (stream->in != NULL || stream->read != NULL) &&
           (stream->out != NULL || stream->output != NULL) && stream->flags != NULL;
}

static void release_slots(struct stream *stream)
{
    free(stream->raw);
    free(stream->read);
    free(stream->output);
    free(stream->flags);
}

bool stream_run(struct stream *stream, struct error *error)
{
    const struct bands *bands = &stream->bands;
    if (!reserve_slots(stream)) {
        release_slots(stream);
        return error_no_memory(error, "bands of %d rows of %d pixels", bands->rows, stream->shape.width);
    }
    record_progress(stream);
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->changed, NULL);
    const int readers = stream->source->help != NULL ? stream->threads : bands->reading_threads;
    if (bands->count == 1)
        run_up_to(stream, STREAM_READ, readers);
    if (stream->steps[STREAM_WRITE].ended < bands->count)
        run_up_to(stream, STREAM_WRITE, bands->threads);
    if (stream->steps[STREAM_READ].ended < bands->strips) /* no band needs the others, but they may be damaged */
        run_up_to(stream, STREAM_READ, readers > bands->threads ? readers : bands->threads);
    if (stream->has_failed && error != NULL)
        *error = stream->error;
    pthread_mutex_destroy(&stream->mutex);
    pthread_cond_destroy(&stream->changed);
    release_slots(stream);
    return !stream->has_failed;
}

bool stream_move(const struct image *shape, struct row_source source, struct row_sink sink, struct thread_pool *pool,
                 struct error *error)
{
    const bool uses_all = source.read != NULL ? source.any_order || source.help != NULL : sink.encode != NULL;
    if (source.read != NULL)
        source.image = NULL;
    else
        sink.image = NULL;
    const int reads = source.read != NULL && source.readers > 1 ? source.readers : 1;
    struct stream stream = {
        .shape = *shape,
        .produced_shape = *shape,
        .source = &source,
        .sink = &sink,
        .pool = pool,
        .threads = uses_all ? thread_pool_threads(pool) : (source.fetch != NULL ? 1 : 0) + reads,
    };
    stream_plan(&stream);
    return stream_run(&stream, error);
}
