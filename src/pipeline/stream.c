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
#include <string.h>

/* What one thread needs. It is reserved when the thread filters its first band. */
struct band_worker {
    void *planes[2];
    struct image merged; /* rows between two filters of a chain, where these round; else its samples are NULL */
    uint8_t *aside;      /* rows that a filter has made, if filters are limited to regions; else NULL */
    uint8_t *wide;       /* rows with all channels, if the result has fewer; else NULL */
    struct phases watch; /* the times of this thread */
};

/* The filters of an image. */
struct filtering {
    const struct pipeline_run *run; /* planned, or with its work only */
    struct stage *stages;           /* one more than filters: the last is the result */
    struct stream stream;
    size_t plane_bytes, merged_bytes; /* that a band needs at most: for each of two sets of planes, and of image rows */
    struct band_worker *workers;      /* one for each thread */
};

/* ---- Sizes ---- */

/* Let filters that move or resize make only the columns that the next filters need. */
static void narrow_stages(const struct filtering *filtering)
{
    const struct filter_chain *chain = filtering->run->recipe->chain;
    for (size_t i = 0; i < chain->count; i++) {
        struct stage *stage = &filtering->stages[i], *next = stage + 1;
        const struct rectangle needed = chain_needs(chain, i, next->shape.width, next->shape.height);
        stage->columns.first = needed.y;
        stage->columns.made = needed.height;
        stage->rows.first = needed.x;
        stage->rows.made = needed.width;
        stage->origin.x += needed.x;
        next->origin.x -= needed.x;
        if (needed.width < next->shape.width)
            next->origin.turned_width = next->shape.width = needed.width;
    }
}

/* Set the stages for images like SHAPE. Fails if a filter does not take them, or if there is too little memory. */
static bool make_stages(struct filtering *filtering, const struct image *shape, struct error *error)
{
    const struct filter_chain *chain = filtering->run->recipe->chain;
    struct image image = *shape;
    const bool is_16_bit = filtering->run->work.sample != SAMPLE_U8;
    filtering->stages = calloc(chain->count + 1, sizeof *filtering->stages);
    if (filtering->stages == NULL)
        return error_no_memory(error, "%zu filters", chain->count);
    for (size_t i = 0; i < chain->count; i++) {
        const struct filter *filter = filter_of_depth(&chain->filters[i], is_16_bit);
        struct stage *stage = &filtering->stages[i];
        *stage = (struct stage){
            .step = &step_table[filter->kind], .kind = filter_kind(filter), .filter = filter, .shape = image};
        stage->is_limited = filter->region.is_set;
        filter_region(filter, image.width, image.height, &stage->region);
        stage->is_whole = stage->kind->has_border && filtering->run->recipe->border == BORDER_WRAP;
        if (!recipe_resize_by(filtering->run->recipe, &filtering->run->work, i, &image, error))
            return false;
        if (stage->step->reach != NULL)
            stage->step->reach(stage, image.width, image.height, is_16_bit);
    }
    filtering->stages[chain->count].shape = image;
    narrow_stages(filtering);
    return true;
}

/* The rows of SPAN that are in the stage's region: all if it has none. They may be none. */
static struct row_span limit_span(const struct stage *stage, struct row_span span)
{
    const int first = stage->region.y, last = first + stage->region.height;
    if (!stage->is_limited)
        return span;
    if (span.last <= first || last <= span.first)
        return (struct row_span){span.first, span.first};
    return (struct row_span){span.first > first ? span.first : first, span.last < last ? span.last : last};
}

/* The rows that a filter must read for the rows SPAN of its result. Rows outside its region stay as they are. */
static struct row_span one_needs(const struct stage *stage, struct row_span span)
{
    const struct row_span limited = limit_span(stage, span);
    struct row_span needed = span;
    if (limited.first < limited.last)
        needed = stage->step->needs(stage, limited);
    if (stage->is_limited) {
        needed.first = needed.first < span.first ? needed.first : span.first;
        needed.last = needed.last > span.last ? needed.last : span.last;
    }
    return needed;
}

/* The rows that filter NUMBER must read for the rows SPAN of the result. */
static struct row_span stage_needs(const struct filtering *filtering, size_t number, struct row_span span)
{
    for (size_t i = filtering->run->recipe->chain->count; i-- > number;)
        span = one_needs(&filtering->stages[i], span);
    return span;
}

static struct row_span first_needs(const void *context, struct row_span produced)
{
    return stage_needs(context, 0, produced);
}

static struct plane lay_out_band(const struct filtering *filtering, size_t number, int rows, size_t *size)
{
    struct plane planes;
    if (!plane_layout(&planes, filtering->run->work.sample, filtering->stages[number].shape.width, rows,
                      filtering->run->work.planes, size, NULL))
        *size = SIZE_MAX;
    return planes;
}

/* Set what the bands of the planned stream need. A band may have the row above it, for the sink. */
static void find_sizes(struct filtering *filtering)
{
    const struct bands *bands = &filtering->stream.bands;
    const int height = filtering->stream.produced_shape.height;
    for (int band = 0; band < bands->count; band++) {
        const int64_t first = (int64_t)band * bands->rows, last = first + bands->rows;
        const struct row_span span = {first > 0 ? (int)first - 1 : 0, last < height ? (int)last : height};
        for (size_t i = 0; i <= filtering->run->recipe->chain->count; i++) {
            const struct row_span needed = stage_needs(filtering, i, span);
            size_t size;
            lay_out_band(filtering, i, needed.last - needed.first, &size);
            const size_t merged = (size_t)(needed.last - needed.first) * image_row_bytes(&filtering->stages[i].shape);
            filtering->plane_bytes = size > filtering->plane_bytes ? size : filtering->plane_bytes;
            filtering->merged_bytes = merged > filtering->merged_bytes ? merged : filtering->merged_bytes;
        }
    }
}

/* Bytes of the widest planes, for each row of the result. */
static size_t widest_row_bytes(const struct filtering *filtering)
{
    size_t widest = 1;
    for (size_t i = 0; i <= filtering->run->recipe->chain->count; i++) {
        const size_t row = (size_t)filtering->stages[i].shape.width * (size_t)filtering->run->work.planes *
                           sample_bytes(filtering->run->work.sample);
        widest = row > widest ? row : widest;
    }
    return widest;
}

/* The rows of the result that take as much work as the rows which bands share with their neighbours. A picture between
 * two filters may be wider than both ends, so the widest work counts. */
static int64_t shared_rows(const struct filtering *filtering)
{
    const size_t count = filtering->run->recipe->chain->count;
    const int height = filtering->stages[count].shape.height, middle = height / 2;
    double shared = 0, row = 1; /* samples of a plane: that are shared, and for a row of the result */
    for (size_t i = 0; i <= count; i++) {
        const double width = filtering->stages[i].shape.width;
        const struct row_span one = stage_needs(filtering, i, (struct row_span){middle, middle + 1}),
                              all = stage_needs(filtering, i, (struct row_span){0, height});
        shared = fmax(shared, width * (one.last - one.first - 1));
        row = fmax(row, width * (all.last - all.first) / height);
    }
    return (int64_t)(shared / row);
}

/* The number of threads that make the work faster. Some steps take one strip or band at a time: more threads than feed
 * such a step only wait. */
static int useful_threads(const struct pipeline_run *run, const struct row_source *source, const struct row_sink *sink)
{
    /* Seconds for a pixel on one thread, measured on photos: decode a JPEG or a PNG; filter and compress PNG rows;
     * write a JPEG. */
    const double decode = 4.5e-9, encode = sink->encode != NULL ? 12e-9 : 0, write = 3.5e-9;
    const int threads = thread_pool_threads(run->pipeline->resources->pool);
    struct work work = run->work;
    const bool all_decode = source->any_order || source->help != NULL;
    if (source->image != NULL || (all_decode && sink->encode != NULL))
        return threads;
    work.threads = 1;
    const double pixels = (double)work.width * work.height;
    const double filter = cost_cpu_seconds(run->recipe->chain->filters, run->recipe->chain->count, &work) / pixels;
    if (all_decode)
        return (int)fmin(2 + (decode + filter) / write, threads); /* one writes */
    return (int)fmin(3 + (filter + encode) / decode, threads);    /* one decodes, one writes */
}

/* ---- One band ---- */

/* A view of the rows of SPAN in planes that begin with row TOP. */
static struct plane plane_span(const struct plane *planes, int top, struct row_span span)
{
    struct plane part = *planes;
    part.height = span.last - span.first;
    part.data = (char *)part.data + (size_t)(span.first - top) * planes->row_bytes;
    return part;
}

/* How the alpha channel takes part in filter NUMBER. */
static enum alpha alpha_of(const struct filtering *filtering, size_t number)
{
    return recipe_alpha(filtering->run->recipe, &filtering->run->work, filtering->run->effective_alpha, number);
}

/* Split the rows of SPAN into planes that begin with its first row, unless the call is stopped meanwhile. */
static void split_span(const struct filtering *filtering, struct row_span span, const struct plane *planes)
{
    enum { ROWS = 64 }; /* between two looks */
    for (int y = span.first; y < span.last && !cpu_is_stopped(filtering->run->pipeline->resources->stop);) {
        const struct image rows = stream_rows(&filtering->stream, y, span.last - y < ROWS ? span.last : y + ROWS);
        const struct plane part = plane_span(planes, span.first, (struct row_span){y, y + rows.height});
        image_split(&rows, alpha_of(filtering, 0), recipe_light(filtering->run->recipe, 0, filtering->run->linear),
                    &part);
        y += rows.height;
    }
}

/* Copy the rows of SPAN, also what the merge may leave as it is: alpha that no plane holds, and levels whose light does
 * not change. */
static void copy_unfiltered(const struct stream *stream, struct row_span span, const struct image *to)
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

/* A view of the worker's rows between two filters as ROWS rows of what filter NUMBER reads. */
static struct image merged_rows(const struct filtering *filtering, const struct band_worker *worker, size_t number,
                                int rows)
{
    struct image merged = worker->merged;
    merged.width = filtering->stages[number].shape.width;
    merged.height = rows;
    return merged;
}

/* Where the result of a filter has another size, there is nothing that a merge could keep. */
static void forget_samples(const struct image *image)
{
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            for (int c = 0; c < image->channels; c++)
                memset(image_row(image, y) + (size_t)x * image_pixel_stride(image) +
                           (size_t)c * image_channel_stride(image),
                       0, image_sample_bytes(image));
}

/* The state of a band between two filters. */
struct band {
    struct plane planes[2]; /* views of the worker's; the first row of both, and of its merged rows, is row TOP */
    struct plane first;     /* what the first filter reads: the planes of the source's image, or those of the worker */
    struct image merged;
    int top, in; /* the index of the planes that hold the samples */
};

/* Let the planes of BAND be for what filter NUMBER reads, rows NEEDED of it. */
static void start_band(const struct filtering *filtering, const struct band_worker *worker, size_t number,
                       struct row_span needed, struct band *band)
{
    size_t size;
    for (int i = 0; i < 2; i++) {
        band->planes[i] = lay_out_band(filtering, number, needed.last - needed.first, &size);
        band->planes[i].data = worker->planes[i];
    }
    band->top = needed.first;
    if (worker->merged.samples != NULL)
        band->merged = merged_rows(filtering, worker, number, needed.last - needed.first);
}

/* Merge PLANES, the result of filter NUMBER, into ROWS, which hold the filter's input from row FIRST on. Pixels outside
 * its region stay. */
static void merge_stage(const struct filtering *filtering, const struct band_worker *worker, size_t number, int first,
                        const struct plane *planes, struct image *rows)
{
    const struct stage *stage = &filtering->stages[number];
    const enum alpha alpha = alpha_of(filtering, number);
    const struct linear *linear = recipe_light(filtering->run->recipe, number, filtering->run->linear);
    if (!stage->is_limited) {
        image_merge(planes, alpha, linear, rows);
        return;
    }
    const struct row_span limited = limit_span(stage, (struct row_span){first, first + rows->height});
    if (limited.first == limited.last)
        return;
    const struct image before = image_rows(rows, limited.first - first, limited.last - limited.first);
    const struct plane made = plane_span(planes, first, limited);
    struct image after = image_packed(&before, worker->aside);
    image_copy(&before, &after);
    image_merge(&made, alpha, linear, &after);
    const struct image from = image_columns(&after, stage->region.x, stage->region.width),
                       to = image_columns(&before, stage->region.x, stage->region.width);
    const struct mask *mask = stage->filter->region.mask;
    if (mask != NULL)
        image_blend(&after, mask->levels + (size_t)limited.first * (size_t)mask->width, &before);
    else
        image_copy(&from, &to);
}

/* Before filter NUMBER, round as two runs would: merge the planes and split them again. */
static void round_between(const struct filtering *filtering, const struct band_worker *worker, size_t number,
                          struct row_span input, struct band *band)
{
    const struct linear *linear = filtering->run->linear;
    const struct plane planes = plane_span(&band->planes[band->in], band->top, input);
    struct image rows = image_rows(&band->merged, input.first - band->top, input.last - input.first);
    const struct plane from = filter_planes(filtering, number - 1, planes),
                       to = filter_planes(filtering, number, planes);
    if (filtering->stages[number - 1].kind->resizes && linear != NULL)
        forget_samples(&rows);
    merge_stage(filtering, worker, number - 1, input.first, &from, &rows);
    image_split(&rows, alpha_of(filtering, number), recipe_light(filtering->run->recipe, number, linear), &to);
}

/* Has IMAGE planes of the samples that filter NUMBER takes or makes? Then PLANES becomes a view of its rows of SPAN.
 * IMAGE may be NULL. */
static bool find_planes(const struct filtering *filtering, const struct image *image, size_t number,
                        struct row_span span, struct plane *planes)
{
    const struct pipeline_run *run = filtering->run;
    const size_t size = sample_bytes(run->work.sample);
    if (image == NULL || image_sample_bytes(image) != size || image_pixel_stride(image) != size ||
        run->linear != NULL || (alpha_multiplies(run->effective_alpha) && image_has_alpha(image)))
        return false;
    *planes = (struct plane){
        .sample = run->work.sample,
        .width = image->width,
        .height = span.last - span.first,
        .count = image_planes(image, alpha_of(filtering, number)),
        .row_bytes = image_row_stride(image),
        .plane_bytes = image_channel_stride(image),
        .data = image_row(image, span.first),
    };
    return true;
}

static bool check_stop(const struct plan *plan, struct error *error)
{
    return !cpu_is_stopped(plan->stop) ||
           error_set(error, ERROR_INTERRUPTED, "the call was stopped before its end; filter the image again");
}

/* Launch a copy of a plan, which is only for the rows of a band. The outputs are not whole if it is stopped. */
static bool launch(const struct filtering *filtering, struct plan *plan, const struct plane *from,
                   const struct plane *to, struct error *error)
{
    plan->pool = filtering->stream.bands.count > 1 ? NULL : filtering->stream.pool;
    plan->stop = filtering->run->pipeline->resources->stop;
    return check_stop(plan, error) && variant_launch(plan, NULL, from, to, error) && check_stop(plan, error);
}

/* Apply filter NUMBER, as far as rows SPAN of the result need it. OUT becomes the sink's planes with the last filter's
 * output, or has no data. */
static bool convolve_stage(const struct filtering *filtering, const struct band_worker *worker, size_t number,
                           struct row_span span, struct band *band, struct plane *out, struct error *error)
{
    const struct stream *stream = &filtering->stream;
    const struct recipe *recipe = filtering->run->recipe;
    const struct row_span input = stage_needs(filtering, number, span);
    const struct row_span produced = stage_needs(filtering, number + 1, span);
    const bool resizes = filtering->stages[number].kind->resizes;
    struct plan plan = filtering->run->planned->plans[number];
    plan.origin = filtering->stages[number].origin;
    struct plane from = filter_planes(filtering, number, plane_span(&band->planes[band->in], band->top, input));
    if (number == 0)
        from = band->first;
    if (resizes)
        start_band(filtering, worker, number + 1, produced, band);
    const struct row_span rows = resizes ? produced : input; /* the rows of the planes that are written */
    struct plane to = filter_planes(filtering, number, plane_span(&band->planes[!band->in], band->top, rows));
    out->data = NULL;
    if (number == recipe->chain->count - 1 && !filtering->stages[number].is_limited &&
        to.count == stream->produced_shape.channels && find_planes(filtering, stream->sink->image, number, rows, out))
        to = *out;
    const struct row_span limited = limit_span(&filtering->stages[number], produced);
    plan.first_row = limited.first - rows.first;
    plan.last_row = limited.last - rows.first;
    plan.in_row = input.first;
    plan.out_row = rows.first;
    band->in = !band->in;
    return limited.first == limited.last || launch(filtering, &plan, &from, &to, error);
}

/* Apply all filters, for outputs of SPAN. If the sink's image has planes for all
 * channels, it gets these outputs, and RESULT has no data. Otherwise RESULT becomes the planes with the outputs. */
static bool convolve_band(const struct filtering *filtering, const struct band_worker *worker, struct row_span span,
                          struct band *band, struct plane *result, struct error *error)
{
    const struct recipe *recipe = filtering->run->recipe;
    struct plane out = {0};
    for (size_t i = 0; i < recipe->chain->count; i++) {
        if (i > 0 && worker->merged.samples != NULL)
            round_between(filtering, worker, i, stage_needs(filtering, i, span), band);
        if (!convolve_stage(filtering, worker, i, span, band, &out, error))
            return false;
    }
    *result = filter_planes(filtering, recipe->chain->count - 1, plane_span(&band->planes[band->in], band->top, span));
    result->data = out.data != NULL ? NULL : result->data;
    return true;
}

/* Has the result fewer channels than the image in the filters? */
static bool is_narrowed(const struct filtering *filtering)
{
    return filtering->stream.produced_shape.channels < filtering->stream.shape.channels;
}

/* Reserve the planes of a thread. Stores that bypass the caches need 64 bytes of alignment. */
static bool worker_open(const struct filtering *filtering, struct band_worker *worker, struct error *error)
{
    const struct pipeline_run *run = filtering->run;
    const struct image *shape = &filtering->stream.shape;
    for (int i = 0; i < 2; i++)
        worker->planes[i] = filtering->plane_bytes < PTRDIFF_MAX ? aligned_alloc(64, filtering->plane_bytes) : NULL;
    if (worker->planes[0] == NULL || worker->planes[1] == NULL)
        return error_no_memory(error, "planes of %d pixels", shape->width);
    worker->merged = (struct image){.channels = shape->channels, .bits = shape->bits};
    const bool is_limited = recipe_is_limited(run->recipe), is_narrow = is_narrowed(filtering);
    worker->aside = is_limited ? malloc(filtering->merged_bytes) : NULL;
    worker->wide = is_narrow ? malloc(filtering->merged_bytes) : NULL;
    if ((is_limited && worker->aside == NULL) || (is_narrow && worker->wide == NULL))
        return error_no_memory(error, "rows of %d pixels", shape->width);
    if (!recipe_merges_between(run->recipe, run->effective_alpha, shape))
        return true;
    worker->merged.samples = malloc(filtering->merged_bytes);
    return worker->merged.samples != NULL || error_no_memory(error, "rows of %d pixels", shape->width);
}

static void worker_close(struct band_worker *worker)
{
    free(worker->planes[0]);
    free(worker->planes[1]);
    image_free(&worker->merged);
    free(worker->aside);
    free(worker->wide);
}

/* Copy to PRODUCED, which has rows of the result from FIRST on, what the last merge may leave as it is. */
static void copy_kept(const struct filtering *filtering, const struct band_worker *worker, const struct band *band,
                      int first, const struct image *produced)
{
    if (filtering->stages[filtering->run->recipe->chain->count - 1].kind->resizes) {
        forget_samples(produced);
    } else if (worker->merged.samples != NULL) { /* an earlier filter may have changed them */
        const struct image part = image_rows(&band->merged, first - band->top, produced->height);
        image_copy(&part, produced);
    } else {
        copy_unfiltered(&filtering->stream, (struct row_span){first, first + produced->height}, produced);
    }
}

/* ROWS as planes, if the samples of its pixels lie together in the samples' own size. */
static bool view_pixels(const struct image *rows, enum sample sample, struct plane *planes)
{
    const size_t size = sample_bytes(sample);
    *planes = (struct plane){
        .sample = sample,
        .width = rows->width,
        .height = rows->height,
        .count = rows->channels,
        .row_bytes = image_row_stride(rows),
        .plane_bytes = size,
        .data = rows->samples,
        .is_together = true,
    };
    return image_sample_bytes(rows) == size && image_channel_stride(rows) == size &&
           image_pixel_stride(rows) == (size_t)rows->channels * size;
}

/* Is a filter that takes pixels all that is done to the image? Then no plane is needed: all channels are filtered
 * alike, and nothing converts a sample. FROM becomes the rows INPUT as planes, and TO those of PRODUCED. */
static bool find_pixels(const struct filtering *filtering, const struct band_worker *worker, struct row_span input,
                        const struct image *produced, struct plane *from, struct plane *to)
{
    const struct pipeline_run *run = filtering->run;
    const enum sample sample = run->work.sample;
    const struct image rows = stream_rows(&filtering->stream, input.first, input.last);
    if (filtering->run->recipe->chain->count > 1 || !filtering->stages[0].takes_pixels ||
        filtering->stages[0].is_limited || is_narrowed(filtering) || run->linear != NULL ||
        image_planes(produced, alpha_of(filtering, 0)) < produced->channels ||
        (alpha_multiplies(run->effective_alpha) && image_has_alpha(produced)) || !view_pixels(&rows, sample, from) ||
        !view_pixels(produced, sample, to))
        return false;
    if (rows.height == input.last - input.first)
        return true;
    struct image copy = filtering->stream.shape; /* receives rows that lie in several strips */
    copy.samples = worker->planes[0];
    copy_unfiltered(&filtering->stream, input, &copy);
    copy.height = input.last - input.first;
    return view_pixels(&copy, sample, from);
}

/* Filter the rows of PRODUCED, from row FIRST on. */
static bool filter_rows(void *context, int thread, int first, struct image *produced, struct error *error)
{
    const struct filtering *filtering = context;
    const struct stream *stream = &filtering->stream;
    const struct pipeline_run *run = filtering->run;
    struct band_worker *worker = &filtering->workers[thread];
    const struct row_span wanted = {first, first + produced->height}, needed = first_needs(filtering, wanted);
    struct band band = {.in = 0};
    worker->watch.last = clock_milliseconds();
    if (worker->planes[1] == NULL && !worker_open(filtering, worker, error))
        return false;

    struct plane planes, result;
    if (find_pixels(filtering, worker, needed, produced, &planes, &result)) {
        struct plan plan = run->planned->plans[0];
        plan.in_row = needed.first;
        plan.out_row = first;
        if (!filtering->stages[0].kind->resizes) { /* both begin with one row */
            plan.first_row = wanted.first - needed.first;
            plan.last_row = wanted.last - needed.first;
            result.data = (char *)result.data - (size_t)plan.first_row * result.row_bytes;
        }
        const bool done = launch(filtering, &plan, &planes, &result, error);
        phases_end(&worker->watch, PHASE_CONVOLVE);
        return done;
    }
    start_band(filtering, worker, 0, needed, &band);
    planes = filter_planes(filtering, 0, band.planes[0]);
    if (!find_planes(filtering, stream->source->image, 0, needed, &planes))
        split_span(filtering, needed, &planes);
    band.first = planes;
    if (worker->merged.samples != NULL)
        copy_unfiltered(stream, needed, &band.merged);
    phases_end(&worker->watch, PHASE_SPLIT);
    if (!convolve_band(filtering, worker, wanted, &band, &result, error))
        return false;
    phases_end(&worker->watch, PHASE_CONVOLVE);
    if (result.data == NULL)
        return true;

    const size_t last = run->recipe->chain->count - 1;
    struct image wide = image_packed(&filtering->stages[last + 1].shape, worker->wide), *whole = produced;
    if (is_narrowed(filtering)) {
        wide.height = produced->height;
        whole = &wide;
    }
    if (result.count < whole->channels || run->linear != NULL || filtering->stages[last].is_limited)
        copy_kept(filtering, worker, &band, first, whole);
    merge_stage(filtering, worker, last, first, &result, whole);
    if (whole != produced) {
        const struct image narrow = image_narrow(whole, produced->channels);
        image_copy(&narrow, produced);
    }
    phases_end(&worker->watch, PHASE_MERGE);
    return true;
}

/* ---- An image ---- */

/* Plan the stream of a planned image through its filters, on at most THREADS threads. FILTERING stays where it is. Free
 * its stages afterwards, also after a failure. */
static bool plan_stream(struct filtering *filtering, const struct pipeline_run *run, const struct row_source *source,
                        const struct row_sink *sink, int threads, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    const struct image *image = &run->input.shape;
    const struct image shape = {
        .width = image->width, .height = image->height, .channels = image->channels, .bits = image->bits};
    *filtering = (struct filtering){.run = run};
    if (!make_stages(filtering, &shape, error))
        return false;
    int multiple = 1;
    bool is_whole = false;
    for (size_t i = 0; i < recipe->chain->count; i++) {
        multiple = filtering->stages[i].step->rows > multiple ? filtering->stages[i].step->rows : multiple;
        is_whole |= filtering->stages[i].is_whole;
    }
    filtering->stream = (struct stream){
        .shape = shape,
        .produced_shape = filtering->stages[recipe->chain->count].shape,
        .source = source,
        .sink = sink,
        .pool = run->pipeline->resources->pool,
        .threads = threads,
        .make = filter_rows,
        .needs = first_needs,
        .context = filtering,
        .row_bytes = widest_row_bytes(filtering),
        .shared_rows = shared_rows(filtering),
        .multiple = multiple,
        .is_whole = is_whole,
        .is_wide = source->image != NULL && recipe->chain->count == 1 && filtering->stages[0].takes_pixels &&
                   !image_has_alpha(&shape),
    };
    if (run->produced_channels > 0)
        filtering->stream.produced_shape.channels = run->produced_channels;
    stream_plan(&filtering->stream);
    find_sizes(filtering);
    return true;
}

/* Run the planned stream, and add the times of its threads to those of the pipeline. */
static bool run_stream(struct filtering *filtering, struct phases *phases, struct error *error)
{
    const int threads = filtering->stream.bands.threads;
    filtering->workers = calloc((size_t)threads, sizeof *filtering->workers);
    if (filtering->workers == NULL)
        return error_no_memory(error, "%d threads", threads);
    const bool done = stream_run(&filtering->stream, error);
    phases->milliseconds[PHASE_DECODE] += filtering->stream.decoding;
    phases->milliseconds[PHASE_ENCODE] += filtering->stream.encoding;
    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < PHASE_COUNT; k++)
            phases->milliseconds[k] += filtering->workers[i].watch.milliseconds[k];
        worker_close(&filtering->workers[i]);
    }
    free(filtering->workers);
    phases->last = clock_milliseconds();
    return done;
}

/* Filter the image from SOURCE to SINK. */
static bool filter_stream(struct pipeline_run *run, const struct row_source *source, const struct row_sink *sink,
                          struct error *error)
{
    struct filtering filtering;
    bool done = plan_stream(&filtering, run, source, sink, useful_threads(run, source, sink), error);
    filtering.stream.progress_permille = &run->pipeline->progress_permille;
    done = done && run_stream(&filtering, run->phases, error);
    free(filtering.stages);
    return done;
}

bool stream_image(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    struct image *image = in->image, result = *out->image;
    const bool allocates = out->kind == END_HOST && out->image->samples == NULL;
    struct row_source source = {.image = image};
    struct row_sink sink = {.image = &result, .multiple = 1};
    if (in->kind == END_ROWS) {
        source = *in->source;
        source.translucent = run->expects_opaque ? &run->translucent : NULL;
    }
    if (out->kind == END_ROWS)
        sink = *out->sink;
    if (allocates) {
        result = (struct image){
            .width = image->width, .height = image->height, .channels = image->channels, .bits = image->bits};
        if (run->produced_channels > 0)
            result.channels = run->produced_channels;
        if (!recipe_resize(run->recipe, &run->work, &result, error) ||
            !image_allocate(&result, result.width, result.height, result.channels, result.bits, error))
            return false;
    }
    const bool done = filter_stream(run, &source, &sink, error);
    if (allocates && done) {
        image_free(image);
        *image = *out->image = result;
    } else if (allocates) {
        image_free(&result);
    }
    return done;
}

size_t pipeline_stream_need(const struct pipeline_run *run, const struct row_source *source,
                            const struct row_sink *sink)
{
    const struct recipe *recipe = run->recipe;
    const struct pipeline_run all = {.pipeline = run->pipeline,
                                     .recipe = recipe,
                                     .input = run->input,
                                     .work = pipeline_work(run, recipe->alpha),
                                     .produced_channels = run->produced_channels};
    struct filtering filtering;
    size_t need = SIZE_MAX;
    if (plan_stream(&filtering, &all, source, sink, all.work.threads, NULL) && filtering.plane_bytes < PTRDIFF_MAX) {
        const struct stream *stream = &filtering.stream;
        const size_t threads = (size_t)stream->bands.threads;
        size_t more = 0;
        for (size_t i = 0; i < recipe->chain->count; i++) {
            const struct step *step = filtering.stages[i].step;
            const size_t step_bytes =
                step->need != NULL ? step->need(&filtering.stages[i], threads, filtering.plane_bytes) : 0;
            more = filtering.stages[i].kind->resizes ? more + step_bytes : step_bytes > more ? step_bytes : more;
        }
        need =
            stream_need(stream) + threads * 2 * filtering.plane_bytes + more +
            (recipe_merges_between(recipe, recipe->alpha, &run->input.shape) ? threads * filtering.merged_bytes : 0) +
            (size_t)(recipe_is_limited(recipe) + is_narrowed(&filtering)) * threads * filtering.merged_bytes;
    }
    free(filtering.stages);
    return need;
}
