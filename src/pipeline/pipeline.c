/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image. On both backends the planes of an image stand in two buffers that the filters read and
 * write in turn; merge and split stand at the ends, and between two filters where colours are premultiplied. */
#include "pipeline/pipeline.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "image/linear.h"
#include "kernels/device/device.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void stages_begin(struct stages *stages)
{
    *stages = (struct stages){0};
    stages->start = stages->last = clock_milliseconds();
}

void stages_end(struct stages *stages, enum stage stage)
{
    const double now = clock_milliseconds();
    stages->milliseconds[stage] += now - stages->last;
    stages->last = now;
}

double stages_total(const struct stages *stages)
{
    return stages->last - stages->start;
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_WAIT] = "wait",         [STAGE_READ] = "read",         [STAGE_DECODE] = "decode",
        [STAGE_PLAN] = "plan",         [STAGE_DEVICE] = "device",     [STAGE_UPLOAD] = "upload",
        [STAGE_SPLIT] = "split",       [STAGE_CONVOLVE] = "convolve", [STAGE_MERGE] = "merge",
        [STAGE_DOWNLOAD] = "download", [STAGE_ENCODE] = "encode",     [STAGE_WRITE] = "write",
    };
    return names[stage];
}

/* Make the plans for pipeline->work. A plan of the last image is kept where it would be the same: only the variant and
 * the sample type can differ, as the request stands. */
static bool make_plans(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    /* The CPU that has taken over from a GPU chooses for itself. */
    const bool named = request->variant != NULL && request->variant->backend == pipeline->backend;
    for (size_t i = 0; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const struct variant *variant =
            named ? request->variant : variant_choose(filter, pipeline->backend, &pipeline->work);
        struct plan *plan = &pipeline->plans[i];
        if (plan->variant == variant && plan->sample == pipeline->work.sample)
            continue;
        plan_free(plan);
        if (!variant_plan(plan, filter, request->border, pipeline->work.sample, variant, error))
            return false;
        plan->threads = request->threads;
        /* On a GPU, the upload of the taps waits until constant memory is this pipeline's: see run_filters. */
        if (variant->backend == BACKEND_CPU && !variant_prepare(plan, NULL, error)) {
            plan_free(plan);
            return false;
        }
    }
    return true;
}

/* Must planes become an image and planes again between two filters? Only so does a chain with premultiplied colours, or
 * in linear light, give the bytes of running its filters one after the other, because the way back rounds. */
static bool merges_between(const struct pipeline *pipeline, const struct image *image)
{
    const struct request *request = pipeline->request;
    return request->linear != NULL || (request->alpha == ALPHA_PREMULTIPLY && image_has_alpha(image));
}

/* Let KEPT hold SIZE bytes, which are undefined. */
static bool grow_host(struct kept *kept, size_t size, struct error *error)
{
    if (size <= kept->capacity)
        return true;
    free(kept->data);
    *kept = (struct kept){.data = malloc(size)};
    if (kept->data == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for planes of %zu bytes; close other programs",
                         size);
    kept->capacity = size;
    return true;
}

static void shrink_host(struct pipeline *pipeline)
{
    for (int i = 0; i < 2; i++) {
        free(pipeline->host_planes[i].data);
        pipeline->host_planes[i] = (struct kept){0};
    }
}

/* Lay out both buffers of planes of HEIGHT rows on the host. Stores past the caches need 64 bytes of alignment, which
 * malloc does not give: the data begins that much later. */
static bool host_planes(struct pipeline *pipeline, const struct image *image, int height, struct plane planes[2],
                        struct error *error)
{
    enum { ALIGNMENT = 64 };
    const int count = image_planes(image, pipeline->request->alpha);
    const enum sample sample = pipeline_sample(pipeline->request, image->bits);
    for (int i = 0; i < 2; i++) {
        size_t size;
        struct kept *kept = &pipeline->host_planes[i];
        if (!plane_layout(&planes[i], sample, image->width, height, count, &size, error) ||
            !grow_host(kept, size + ALIGNMENT, error))
            return false;
        planes[i].data = (char *)kept->data + (-(uintptr_t)kept->data & (ALIGNMENT - 1));
    }
    return true;
}

/* Threads of the CPU for an image. */
static int threads_of(const struct request *request)
{
    return request->threads > 0 ? request->threads : parallel_processors();
}

/* The rows of planes that a band of ROWS takes: the last band takes what would be fewer rows than the border reflects.
 */
static int band_height(const struct filter *filter, int rows)
{
    return rows + filter->height - 1 + (filter->height - 1 - filter->anchor_y);
}

/* The rows of a band. An image goes through small planes band by band, so that they stay in the caches, and so that
 * hardly any memory besides the image is touched: the pages of two whole planes took as long as the rest. */
static int band_rows(const struct pipeline *pipeline, const struct image *image)
{
    enum {
        BAND_BYTES = 1 << 20, /* of planes, for each thread: half of what a core's cache holds, as there are two */
        BAND_HALOS = 16,      /* rows for each that is read twice, at least */
    };
    const struct request *request = pipeline->request;
    const int64_t bytes = (int64_t)sample_bytes(pipeline_sample(request, image->bits));
    const int64_t row = (int64_t)image->width * image_planes(image, request->alpha) * bytes;
    const int64_t rows = (int64_t)BAND_BYTES * threads_of(request) / row;
    const int64_t least = BAND_HALOS * (int64_t)request->filters[0].height;
    const int64_t most = rows > least ? rows : least;
    /* Filters in a row would each need the halo of all that follow, and what wraps around is in no band. */
    if (request->count != 1 || request->border == BORDER_WRAP || most >= image->height)
        return image->height;
    return (int)most;
}

/* ROWS rows of IMAGE from row FIRST on. */
static struct image rows_of_image(const struct image *image, int first, int rows)
{
    struct image part = *image;
    part.height = rows;
    part.samples += (size_t)first * (size_t)image->width * image_pixel_bytes(image);
    return part;
}

static struct plane rows_of_planes(const struct plane *planes, int first, int rows)
{
    struct plane part = *planes;
    part.height = rows;
    part.data = (char *)part.data + (size_t)first * planes->row_bytes;
    return part;
}

/* Apply the one filter in place, band by band. A band's planes hold the halo too, whose outputs are dropped: there the
 * border is not the image's. The rows above are filtered in the image already; the last band's planes have them. */
static bool run_bands(struct pipeline *pipeline, struct image *image, int rows, struct error *error)
{
    const enum alpha alpha = pipeline->request->alpha;
    const struct linear *linear = pipeline->request->linear;
    const struct plan *plan = &pipeline->plans[0];
    const int top = plan->filter->anchor_y, bottom = plan->filter->height - 1 - top;
    struct plane planes[2];
    if (!host_planes(pipeline, image, band_height(plan->filter, rows), planes, error))
        return false;

    bool done = true;
    int held = 0; /* the row of the image that the planes begin with */
    for (int first = 0, last; done && first < image->height; first = last) {
        last = image->height - first - rows <= bottom ? image->height : first + rows;
        const int above = first < top ? first : top;
        const int below = image->height - last < bottom ? image->height - last : bottom;
        const struct plane *in = &planes[0], *out = &planes[1];
        for (int c = 0; above > 0 && c < in->count; c++) {
            char *plane = (char *)in->data + (size_t)c * in->plane_bytes;
            memmove(plane, plane + (size_t)(first - above - held) * in->row_bytes, (size_t)above * in->row_bytes);
        }
        held = first - above;
        const struct image unfiltered = rows_of_image(image, first, last - first + below);
        const struct plane fresh = rows_of_planes(in, above, unfiltered.height);
        image_split(&unfiltered, alpha, linear, &fresh);
        stages_end(pipeline->stages, STAGE_SPLIT);

        const struct plane from = rows_of_planes(in, 0, above + unfiltered.height);
        const struct plane to = rows_of_planes(out, 0, from.height);
        done = plan->variant->launch(plan, NULL, &from, &to, error);
        stages_end(pipeline->stages, STAGE_CONVOLVE);

        struct image filtered = rows_of_image(image, first, last - first);
        const struct plane kept = rows_of_planes(out, above, filtered.height);
        if (done)
            image_merge(&kept, alpha, linear, &filtered);
        stages_end(pipeline->stages, STAGE_MERGE);
    }
    return done;
}

static bool run_cpu(struct pipeline *pipeline, struct image *image, struct error *error)
{
    const struct request *request = pipeline->request;
    const int rows = band_rows(pipeline, image);
    struct plane planes[2];
    if (rows < image->height)
        return run_bands(pipeline, image, rows, error);
    if (!host_planes(pipeline, image, image->height, planes, error))
        return false;

    image_split(image, request->alpha, request->linear, &planes[0]);
    stages_end(pipeline->stages, STAGE_SPLIT);
    bool done = true;
    int in = 0;
    for (size_t i = 0; done && i < request->count; i++, in = !in) {
        if (i > 0 && merges_between(pipeline, image)) {
            image_merge(&planes[in], request->alpha, request->linear, image);
            image_split(image, request->alpha, request->linear, &planes[in]);
        }
        const struct plan *plan = &pipeline->plans[i];
        done = plan->variant->launch(plan, NULL, &planes[in], &planes[!in], error);
    }
    stages_end(pipeline->stages, STAGE_CONVOLVE);
    if (done)
        image_merge(&planes[in], request->alpha, request->linear, image);
    stages_end(pipeline->stages, STAGE_MERGE);
    return done;
}

#ifdef GPUCONV_CUDA
const bool pipeline_has_cuda = true;

/* Is there a GPU of that index? */
static bool find_device(const struct request *request, struct error *error)
{
    int count;
    if (!device_count(&count, error))
        return false;
    if (request->device >= count)
        return error_set(error, ERROR_WORK, "there is no GPU %d, only %d of them, counted from 0 (gpuconv --devices)",
                         request->device, count);
    return true;
}

/* Open the GPU with all signals held back. The threads that CUDA starts inherit that for good, so a signal goes to this
 * thread, which can hold it back while it writes a file (file_write). */
static bool open_quietly(struct pipeline *pipeline, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool done = device_open(pipeline->request->device, &pipeline->device, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* Open the GPU and check that it is new enough for the plans. */
static bool open_device(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    if (!find_device(request, error))
        return false;
    pipeline->backend = BACKEND_CUDA;
    if (!make_plans(pipeline, error))
        return false;
    stages_end(pipeline->stages, STAGE_PLAN);
    if (pipeline->device == NULL && !open_quietly(pipeline, error))
        return false;
    stages_end(pipeline->stages, STAGE_DEVICE);

    const struct device_info *facts = device_facts(pipeline->device);
    for (size_t i = 0; i < request->count; i++) {
        const struct variant *variant = pipeline->plans[i].variant;
        if (variant->capability > facts->capability)
            return error_set(error, ERROR_WORK,
                             "the variant %s needs a GPU of compute capability %d.%d and %s has %d.%d; choose another "
                             "with --variant, or --backend cpu",
                             variant->name, variant->capability / 10, variant->capability % 10, facts->name,
                             facts->capability / 10, facts->capability % 10);
    }
    return true;
}

static void shrink_device(struct pipeline *pipeline)
{
    if (pipeline->device == NULL)
        return;
    device_release_locked(pipeline->device, pipeline->locked.data);
    device_release(pipeline->device, pipeline->device_samples.data);
    device_release(pipeline->device, pipeline->device_planes[0].data);
    device_release(pipeline->device, pipeline->device_planes[1].data);
    device_release(pipeline->device, pipeline->device_linear.data);
    pipeline->locked = pipeline->device_samples = pipeline->device_linear = (struct kept){0};
    pipeline->device_planes[0] = pipeline->device_planes[1] = (struct kept){0};
}

static void close_device(struct pipeline *pipeline)
{
    shrink_device(pipeline);
    device_close(pipeline->device);
    pipeline->device = NULL;
}

int pipeline_gpus(void)
{
    int count;
    struct error error;
    return device_count(&count, &error) ? count : 0;
}

bool pipeline_warm(int index, struct error *error)
{
    struct device *device;
    if (!device_open(index, &device, error))
        return false;
    device_close(device);
    return true;
}

/* Let KEPT hold SIZE bytes of one of the two kinds of memory that a device gives. */
static bool grow_device(struct device *device, struct kept *kept, size_t size,
                        bool (*allocate)(struct device *, size_t, void **, struct error *),
                        void (*release)(struct device *, void *), struct error *error)
{
    if (size <= kept->capacity)
        return true;
    release(device, kept->data);
    *kept = (struct kept){0};
    if (!allocate(device, size, &kept->data, error))
        return false;
    kept->capacity = size;
    return true;
}

/* What a run uses on the device. */
struct buffers {
    struct image image; /* interleaved */
    struct plane planes[2];
    const struct linear *linear; /* NULL: samples are filtered as they are */
};

/* Let the device hold the tables of linear light. */
static bool find_linear(struct pipeline *pipeline, struct error *error)
{
    const struct linear *linear = pipeline->request->linear;
    struct kept *kept = &pipeline->device_linear;
    if (linear == NULL || kept->data != NULL)
        return true;
    if (!grow_device(pipeline->device, kept, sizeof *linear, device_allocate, device_release, error))
        return false;
    if (device_upload(pipeline->device, kept->data, linear, sizeof *linear, error))
        return true;
    device_release(pipeline->device, kept->data); /* so that they are not taken to be there */
    *kept = (struct kept){0};
    return false;
}

static bool find_buffers(struct pipeline *pipeline, const struct image *image, struct buffers *buffers,
                         struct error *error)
{
    struct device *device = pipeline->device;
    const int count = image_planes(image, pipeline->request->alpha);
    const enum sample sample = pipeline_sample(pipeline->request, image->bits);
    bool done = find_linear(pipeline, error) && grow_device(device, &pipeline->device_samples, image_bytes(image),
                                                            device_allocate, device_release, error);
    for (int i = 0; done && i < 2; i++) {
        struct kept *kept = &pipeline->device_planes[i];
        const size_t size = device_plane_layout(sample, image->width, image->height, count, 0, &buffers->planes[i]);
        done = grow_device(device, kept, size, device_allocate, device_release, error);
        buffers->planes[i].data = kept->data;
    }
    buffers->image = *image;
    buffers->image.samples = pipeline->device_samples.data;
    buffers->linear = pipeline->device_linear.data;
    return done && (!pipeline->request->staged || grow_device(device, &pipeline->locked, image_bytes(image),
                                                              device_allocate_locked, device_release_locked, error));
}

/* A mark stands at the end of each stage on the device; MARK_BEGIN before the first, MARK_TURN before the filters. */
enum mark { MARK_BEGIN, MARK_UPLOAD, MARK_SPLIT, MARK_TURN, MARK_CONVOLVE, MARK_MERGE, MARK_DOWNLOAD, MARK_COUNT };

/* Queue the filters from planes[0] on; *IN becomes the buffer that holds the result. */
static bool queue_filters(struct pipeline *pipeline, const struct image *image, struct buffers *buffers, int *in,
                          struct error *error)
{
    const struct request *request = pipeline->request;
    struct device *device = pipeline->device;
    *in = 0;
    for (size_t i = 0; i < request->count; i++, *in = !*in) {
        struct plan *plan = &pipeline->plans[i];
        const struct plane *from = &buffers->planes[*in];
        if (i > 0 && merges_between(pipeline, image) &&
            (!device_merge(device, from, request->alpha, buffers->linear, &buffers->image, error) ||
             !device_split(device, &buffers->image, request->alpha, buffers->linear, from, error)))
            return false;
        if (!variant_prepare(plan, device, error) ||
            !plan->variant->launch(plan, device, from, &buffers->planes[!*in], error))
            return false;
    }
    return true;
}

/* Run the filters. Where other pipelines use this GPU they wait from the upload of the first taps until the last kernel
 * has read its own. What was queued before is waited for first, so that nobody waits for this image's upload. */
static bool run_filters(struct pipeline *pipeline, const struct image *image, struct buffers *buffers, int *in,
                        struct error *error)
{
    struct device *device = pipeline->device;
    pthread_mutex_t *turn = pipeline->request->turn;
    if (turn != NULL) {
        if (!device_wait(device, error))
            return false;
        pthread_mutex_lock(turn);
    }
    bool done = device_mark(device, MARK_TURN, error) && queue_filters(pipeline, image, buffers, in, error) &&
                device_mark(device, MARK_CONVOLVE, error);
    if (turn != NULL) {
        done = device_wait(device, done ? error : NULL) && done;
        pthread_mutex_unlock(turn);
    }
    return done;
}

static bool queue_all(struct pipeline *pipeline, const struct image *image, const void *samples,
                      struct buffers *buffers, struct error *error)
{
    const enum alpha alpha = pipeline->request->alpha;
    struct device *device = pipeline->device;
    int in;
    return device_mark(device, MARK_BEGIN, error) &&
           device_upload(device, buffers->image.samples, samples, image_bytes(image), error) &&
           device_mark(device, MARK_UPLOAD, error) &&
           device_split(device, &buffers->image, alpha, buffers->linear, &buffers->planes[0], error) &&
           device_mark(device, MARK_SPLIT, error) && run_filters(pipeline, image, buffers, &in, error) &&
           device_merge(device, &buffers->planes[in], alpha, buffers->linear, &buffers->image, error) &&
           device_mark(device, MARK_MERGE, error);
}

static bool download(struct pipeline *pipeline, const struct image *image, void *samples, const struct buffers *buffers,
                     struct error *error)
{
    struct device *device = pipeline->device;
    return device_download(device, samples, buffers->image.samples, image_bytes(image), error) &&
           device_mark(device, MARK_DOWNLOAD, error) && device_wait(device, error);
}

/* The stages on the device, by the device's own clock. */
static bool time_stages(struct pipeline *pipeline, struct error *error)
{
    static const enum stage stages[MARK_COUNT] = {
        [MARK_UPLOAD] = STAGE_UPLOAD,     [MARK_SPLIT] = STAGE_SPLIT, [MARK_TURN] = STAGE_WAIT,
        [MARK_CONVOLVE] = STAGE_CONVOLVE, [MARK_MERGE] = STAGE_MERGE, [MARK_DOWNLOAD] = STAGE_DOWNLOAD,
    };
    for (int mark = MARK_UPLOAD; mark <= MARK_DOWNLOAD; mark++) {
        if (mark == MARK_TURN && pipeline->request->turn == NULL)
            continue; /* nobody was waited for */
        float milliseconds;
        if (!device_elapsed(pipeline->device, mark - 1, mark, &milliseconds, error))
            return false;
        pipeline->stages->milliseconds[stages[mark]] += (double)milliseconds;
    }
    pipeline->stages->last = clock_milliseconds();
    return true;
}

/* *INTACT says after a failure whether IMAGE still is what it was. Where the CPU may have to take over, it is, as long
 * as there is memory for the result beside it. */
static bool run_cuda(struct pipeline *pipeline, struct image *image, struct image *result, bool *intact,
                     struct error *error)
{
    struct device *device = pipeline->device;
    uint8_t *aside = NULL;
    struct buffers buffers = {0};
    *intact = true;
    bool done = find_buffers(pipeline, image, &buffers, error);
    stages_end(pipeline->stages, STAGE_DEVICE);
    if (done && pipeline->request->staged) {
        result->samples = pipeline->locked.data;
        memcpy(result->samples, image->samples, image_bytes(image));
        stages_end(pipeline->stages, STAGE_UPLOAD);
    }
    /* Kernels fail here, before the download overwrites the image. */
    done = done && queue_all(pipeline, image, result->samples, &buffers, error) && device_wait(device, error);
    if (done) {
        if (!pipeline->request->staged && pipeline->request->choice == CHOICE_AUTO)
            aside = malloc(image_bytes(image));
        if (aside != NULL)
            result->samples = aside;
        *intact = result->samples != image->samples;
        done = download(pipeline, image, result->samples, &buffers, error) && time_stages(pipeline, error);
    }
    /* What was queued may still read the image, which the caller is about to free. */
    if (!done)
        device_wait(device, NULL);
    if (done && aside != NULL) {
        free(image->samples);
        image->samples = aside;
    } else {
        free(aside);
    }
    return done;
}

#else
const bool pipeline_has_cuda = false;

static bool find_device(const struct request *request, struct error *error)
{
    (void)request;
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

static bool open_device(struct pipeline *pipeline, struct error *error)
{
    return find_device(pipeline->request, error);
}

static void shrink_device(struct pipeline *pipeline)
{
    (void)pipeline;
}

static void close_device(struct pipeline *pipeline)
{
    (void)pipeline;
}

int pipeline_gpus(void)
{
    return 0;
}

bool pipeline_warm(int device, struct error *error)
{
    (void)device;
    (void)error;
    return true;
}

static bool run_cuda(struct pipeline *pipeline, struct image *image, struct image *result, bool *intact,
                     struct error *error)
{
    (void)image;
    (void)result;
    *intact = true;
    return find_device(pipeline->request, error);
}
#endif

enum sample pipeline_sample(const struct request *request, int bits)
{
    return bits > 8 || request->linear != NULL ? SAMPLE_U16 : SAMPLE_U8;
}

/* Does the variant that is named, if one is, take the filters and samples? */
static bool check_variant(const struct request *request, enum sample sample, struct error *error)
{
    struct plan plan;
    for (size_t i = 0; request->variant != NULL && i < request->count; i++)
        if (!variant_plan(&plan, &request->filters[i], request->border, sample, request->variant, error))
            return false;
    return true;
}

bool pipeline_check(const struct request *request, struct error *error)
{
    if (!check_variant(request, pipeline_sample(request, 8), error))
        return false;
    if (request->choice != CHOICE_CUDA)
        return true;
    struct error reason;
    if (find_device(request, &reason))
        return true;
    return error_set(error, reason.code, "there is no GPU to work on: %s; --backend cpu works everywhere",
                     reason.message);
}

/* Choose a backend without being told one. Where the CPU is as fast as the GPU's start-up, CUDA is not even asked. */
static bool choose(struct pipeline *pipeline, struct error *error)
{
    const struct request *request = pipeline->request;
    const double cpu = 1e3 * cost_cpu_seconds(request->filters, request->count, &pipeline->work);
    const double cuda = 1e3 * cost_cuda_seconds(request->filters, request->count, &pipeline->work);
    if (cpu > cuda && open_device(pipeline, &pipeline->why)) {
        error_set(&pipeline->why, ERROR_NONE, "a GPU is expected to take %.1f ms with its start-up, the CPU %.1f ms",
                  cuda, cpu);
        return true;
    }
    if (cpu <= cuda)
        error_set(&pipeline->why, ERROR_NONE, "the CPU is expected to take %.1f ms, a GPU %.1f ms with its start-up",
                  cpu, cuda);
    close_device(pipeline);
    pipeline->backend = BACKEND_CPU;
    return make_plans(pipeline, error);
}

/* The CPU takes over from the GPU, which failed for the reason in ERROR. */
static bool take_over(struct pipeline *pipeline, struct error *error)
{
    pipeline->fallback = *error;
    close_device(pipeline);
    pipeline->backend = BACKEND_CPU;
    stages_end(pipeline->stages, STAGE_DEVICE);
    return make_plans(pipeline, error);
}

bool pipeline_open(struct pipeline *pipeline, const struct request *request, struct error *error)
{
    *pipeline = (struct pipeline){.request = request, .backend = BACKEND_CPU};
    pipeline->plans = calloc(request->count, sizeof *pipeline->plans);
    if (pipeline->plans == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the plans of %zu filters; use fewer",
                         request->count);
    return true;
}

bool pipeline_plan(struct pipeline *pipeline, const struct image *image, struct stages *stages, struct error *error)
{
    const struct request *request = pipeline->request;
    pipeline->stages = stages;
    pipeline->work = (struct work){
        .width = image->width,
        .height = image->height,
        .planes = image_planes(image, request->alpha),
        .sample = pipeline_sample(request, image->bits),
        .threads = threads_of(request),
    };
    error_set(&pipeline->why, ERROR_NONE, "asked for");
    if (!check_variant(request, pipeline->work.sample, error)) /* which is nothing for the CPU to take over */
        return false;
    bool done = false;
    if (pipeline->fallback.code != ERROR_NONE || request->choice == CHOICE_CPU) {
        pipeline->backend = BACKEND_CPU;
        done = make_plans(pipeline, error);
    } else if (request->choice == CHOICE_AUTO) {
        done = choose(pipeline, error);
    } else {
        shrink_host(pipeline); /* left from images before the GPU was there */
        done = open_device(pipeline, error) || (request->hand_over && take_over(pipeline, error));
    }
    stages_end(stages, STAGE_PLAN);
    return done;
}

bool pipeline_run(struct pipeline *pipeline, struct image *image, struct image *result, struct error *error)
{
    *result = *image;
    if (pipeline->backend == BACKEND_CPU)
        return run_cpu(pipeline, image, error);

    const struct request *request = pipeline->request;
    bool intact;
    if (run_cuda(pipeline, image, result, &intact, error))
        return true;
    *result = *image;
    if (!intact || !(request->choice == CHOICE_AUTO || request->hand_over))
        return false;
    return take_over(pipeline, error) && run_cpu(pipeline, image, error);
}

size_t pipeline_need(const struct pipeline *pipeline, int width, int height, int channels, int bits)
{
    const struct request *request = pipeline->request;
    const struct image image = {.width = width, .height = height, .channels = channels, .bits = bits};
    const enum sample sample = pipeline_sample(request, bits);
    const int rows = band_rows(pipeline, &image);
    struct plane planes;
    size_t size;
    if (!plane_layout(&planes, sample, width, rows < height ? band_height(&request->filters[0], rows) : height,
                      image_planes(&image, request->alpha), &size, NULL))
        return SIZE_MAX;
    /* Planes of the CPU, which may have to take over, or page-locked memory: never both. */
    return request->choice == CHOICE_CPU || 2 * size > image_bytes(&image) ? 2 * size : image_bytes(&image);
}

size_t pipeline_kept(const struct pipeline *pipeline)
{
    return pipeline->host_planes[0].capacity + pipeline->host_planes[1].capacity + pipeline->locked.capacity;
}

void pipeline_shrink(struct pipeline *pipeline)
{
    shrink_host(pipeline);
    shrink_device(pipeline);
}

void pipeline_close(struct pipeline *pipeline)
{
    shrink_host(pipeline);
    close_device(pipeline);
    for (size_t i = 0; pipeline->plans != NULL && i < pipeline->request->count; i++)
        plan_free(&pipeline->plans[i]);
    free(pipeline->plans);
    pipeline->plans = NULL;
}
