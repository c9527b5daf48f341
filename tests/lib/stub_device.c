/* SPDX-License-Identifier: MIT
 *
 * A GPU that runs on the CPU, for tests of the code around a GPU. It implements device.h and the CUDA rows of the
 * table, and does at once what a GPU queues. $GPUCONV_STUB_GPUS is the number of GPUs (default 2). $GPUCONV_STUB_FAIL
 * makes calls fail: CALL:N fails the Nth CALL and all later ones, counted over all streams, and CALL:N! the Nth only.
 * With @GPU after it, only the calls of threads that opened that GPU last are counted, and fail.
 * CALL is driver, open, allocate, locked, upload, split, prepare, launch, merge, mark, wait, download, elapsed, jpeg,
 * png, or any, which counts all of these but driver. Each driver, open and reset appends a line to the file that
 * $GPUCONV_STUB_LOG names. The first open waits, for a minute at most, until the file is there that $GPUCONV_STUB_START
 * names. $GPUCONV_STUB_DRIVER is the newest version of CUDA that the driver supports; below 12000 no GPU can be used.
 *
 * As with CUDA, all streams of a GPU share its constant memory. A stream that prepares a variant before another one has
 * waited for its own variant gets an error, and so does one whose launch finds the taps of another filter there. */
#include "tests/lib/stub_device.h"
#include "kernels/device/device.h"
#include "kernels/device/driver.h"
#include "kernels/resample/pillow.h"
#include "variants/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GPUS_MAX = 8, PLANE_ALIGNMENT = 512 };

struct device {
    struct device_info info;
    int index;
    struct timespec marks[DEVICE_MARKS];
    bool is_shared, is_entered;
    const struct device_taps *taps; /* that the next launch reads; NULL if it reads the plan's */
};

enum call {
    CALL_DRIVER,
    CALL_OPEN,
    CALL_ALLOCATE,
    CALL_LOCKED,
    CALL_UPLOAD,
    CALL_SPLIT,
    CALL_PREPARE,
    CALL_LAUNCH,
    CALL_MERGE,
    CALL_MARK,
    CALL_WAIT,
    CALL_DOWNLOAD,
    CALL_ELAPSED,
    CALL_JPEG,
    CALL_PNG,
    CALL_ANY,
    CALL_COUNT
};

static const char *const call_names[CALL_COUNT] = {"driver",  "open",   "allocate", "locked", "upload", "split",
                                                   "prepare", "launch", "merge",    "mark",   "wait",   "download",
                                                   "elapsed", "jpeg",   "png",      "any"};

const char stub_captured;

/* Shared by all streams: the number of calls of each kind, and the user of each GPU's constant memory. */
static atomic_long calls[CALL_COUNT];
static atomic_int streams; /* that are open */
static _Atomic(struct device *) users[GPUS_MAX];
static atomic_long launches[GPUS_MAX];                   /* launches that only read the constant memory */
static _Atomic(const struct filter *) filters[GPUS_MAX]; /* whose taps it has */

/* The GPU that this thread has opened last. */
static _Thread_local int opened;

static int gpus(void)
{
    const char *text = getenv("GPUCONV_STUB_GPUS");
    const int count = text != NULL ? atoi(text) : 2;
    return count < GPUS_MAX ? count : GPUS_MAX;
}

/* Count this call, and say whether it works. */
static bool works(enum call call, struct error *error)
{
    const char *fail = getenv("GPUCONV_STUB_FAIL"), *only = fail != NULL ? strchr(fail, '@') : NULL;
    if (only != NULL && atoi(only + 1) != opened)
        return true;
    const enum call meant = fail != NULL && call != CALL_DRIVER && strncmp(fail, "any:", 4) == 0 ? CALL_ANY : call;
    const long number = atomic_fetch_add(&calls[meant], 1) + 1;
    const size_t length = strlen(call_names[meant]);
    if (fail == NULL || strncmp(fail, call_names[meant], length) != 0 || fail[length] != ':' ||
        number < atol(fail + length + 1) || (strchr(fail, '!') != NULL && number != atol(fail + length + 1)))
        return true;
    return error_set(error, ERROR_GPU, "the GPU failed in %s", call_names[call]);
}

bool device_may_exist(void)
{
    return gpus() > 0;
}

long stub_launches(void)
{
    return atomic_load(&calls[CALL_LAUNCH]);
}

bool stub_works_jpeg(struct error *error)
{
    return works(CALL_JPEG, error);
}

bool stub_works_png(struct error *error)
{
    return works(CALL_PNG, error);
}

static void log_call(const char *name)
{
    const char *path = getenv("GPUCONV_STUB_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%s\n", name);
    fclose(file);
}

bool device_count(int *count, struct error *error)
{
    log_call("driver");
    *count = 0;
    if (!works(CALL_DRIVER, error))
        return false;
    *count = gpus();
    const char *version = getenv("GPUCONV_STUB_DRIVER");
    const int supported = *count == 0 ? 0 : version != NULL ? atoi(version) : 12000;
    const struct driver driver = {.release = " 470.82.01", .supported = supported, .built = 12040};
    return driver.supported >= 12000 || driver_failure(&driver, error);
}

bool device_describe(int index, struct device_info *info, struct error *error)
{
    (void)index, (void)error;
    *info = (struct device_info){.name = "stub", .capability = 90, .memory = (size_t)1 << 33, .multiprocessors = 1};
    return true;
}

int device_driver_version(void)
{
    return 0;
}

static void wait_for_start(void)
{
    static atomic_flag has_begun = ATOMIC_FLAG_INIT;
    const char *path = getenv("GPUCONV_STUB_START");
    const struct timespec millisecond = {.tv_nsec = 1000000};
    if (path == NULL || atomic_flag_test_and_set(&has_begun))
        return;
    for (int waited = 0; waited < 60000 && access(path, F_OK) != 0; waited++)
        nanosleep(&millisecond, NULL);
}

bool device_open(int index, struct device **device, struct error *error)
{
    *device = NULL;
    log_call("open");
    wait_for_start();
    opened = index;
    if (!works(CALL_OPEN, error))
        return false;
    if (index >= gpus())
        return error_set(error, ERROR_GPU, "there is no CUDA device %d", index);
    *device = calloc(1, sizeof **device);
    if (*device == NULL)
        return error_set(error, ERROR_MEMORY, "not enough memory");
    (*device)->index = index;
    atomic_fetch_add(&streams, 1);
    return device_describe(index, &(*device)->info, error);
}

void device_close(struct device *device)
{
    atomic_fetch_sub(&streams, device != NULL);
    free(device);
}

void device_expect_streams(int count)
{
    (void)count;
}

void device_reset(int index)
{
    (void)index;
    log_call("reset");
}

void device_abandon(struct device *device)
{
    (void)device; /* each release is counted still */
}

const struct device_info *device_get_info(const struct device *device)
{
    return &device->info;
}

/* Exactly SIZE bytes, which begin with noise. On a shared device, they are new ones each time, so that a sanitizer sees
 * what reads the old. */
bool device_reserve(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    if (device->is_shared && !device->is_entered)
        return error_set(error, ERROR_WORK, "memory was reserved outside a call");
    if (size <= workspace->size && !device->is_shared)
        return true;
    void *memory;
    device_release(device, workspace);
    if (!works(workspace->is_locked ? CALL_LOCKED : CALL_ALLOCATE, error))
        return false;
    if (posix_memalign(&memory, PLANE_ALIGNMENT, size) != 0)
        return error_no_memory(error, "%zu bytes", size);
    workspace->bytes = memset(memory, 0xa5, size);
    workspace->size = size;
    return true;
}

bool device_reserve_more(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    return device_reserve(device, workspace, size, error);
}

void device_release(struct device *device, struct workspace *workspace)
{
    (void)device;
    free(workspace->bytes);
    workspace->bytes = NULL;
    workspace->size = 0;
}

size_t device_plane_layout(enum sample sample, int width, int height, int count, size_t extra, struct plane *plane)
{
    const size_t row = ((size_t)width * sample_bytes(sample) + 127) / 128 * 128 + extra;
    *plane = (struct plane){.sample = sample, .width = width, .height = height, .count = count, .row_bytes = row};
    plane->plane_bytes = (row * (size_t)height + PLANE_ALIGNMENT - 1) / PLANE_ALIGNMENT * PLANE_ALIGNMENT;
    return plane->plane_bytes * (size_t)count;
}

bool device_copy(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    (void)device, (void)error;
    memcpy(to, from, size);
    return true;
}

bool device_upload(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    return works(CALL_UPLOAD, error) && device_copy(device, to, from, size, error);
}

/* A download that fails overwrites the target first. */
bool device_download(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    const bool done = works(CALL_DOWNLOAD, error);
    if (!done)
        memset(to, 0x55, size);
    return done && device_copy(device, to, from, size, error);
}

bool device_fill(struct device *device, void *buffer, uint8_t value, size_t size, struct error *error)
{
    (void)device, (void)error;
    memset(buffer, value, size);
    return true;
}

bool device_wait(struct device *device, struct error *error)
{
    struct device *self = device;
    atomic_compare_exchange_strong(&users[device->index], &self, NULL);
    return works(CALL_WAIT, error);
}

bool device_mark(struct device *device, int mark, struct error *error)
{
    clock_gettime(CLOCK_MONOTONIC, &device->marks[mark]);
    return works(CALL_MARK, error);
}

bool device_elapsed(struct device *device, int from, int to, float *milliseconds, struct error *error)
{
    const struct timespec *a = &device->marks[from], *b = &device->marks[to];
    *milliseconds = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) / 1e6);
    return works(CALL_ELAPSED, error);
}

bool device_peaks(struct device *device, struct device_peaks *peaks, struct error *error)
{
    (void)device, (void)peaks;
    return error_set(error, ERROR_WORK, "the stub has no peaks");
}

/* Do the kernels that split and merge take IMAGE? */
static bool check_interleaved(const struct image *image, struct error *error)
{
    return (image->stored == STORED_FLOAT && image->channels <= 4 && (uintptr_t)image->samples % 16 == 0 &&
            image_row_stride(image) == image_row_bytes(image) &&
            image_pixel_stride(image) == image_pixel_bytes(image)) ||
           error_set(error, ERROR_WORK,
                     "an image of %d bits is not stored as floats, has padding or 5 channels, or is not aligned",
                     image->bits);
}

/* Output I of a pass: its input 0 is at FROM, and others are STEP apart. A level, or m as our own rule has it. */
static int pillow_output(const struct pillow_pass *pass, int i, const int16_t *from, ptrdiff_t step, bool is_level)
{
    int64_t sum = (int64_t)1 << (pass->shift - 1);
    for (int k = 0; k < pass->words[pass->outputs + i]; k++)
        sum += (int64_t)pass->words[(2 + k) * pass->outputs + i] * from[(pass->words[i] + k) * step];
    sum >>= pass->shift;
    return (int)(!is_level ? sum : sum < 0 ? 0 : sum < 255 ? sum : 255);
}

/* Make channel C of the outputs of a picture, in OUTPUTS, by way of SAMPLES and MIDDLE. */
static void pillow_channel(const struct pillow_picture *p, bool is_pillow, int c, int in_width, int in_height,
                           int16_t *samples, int16_t *middle, int16_t *outputs)
{
    const int width = p->rows.outputs, height = p->columns.outputs, columns = p->rows_first ? width : in_width;
    for (int y = 0; y < in_height; y++)
        for (int x = 0; x < in_width; x++)
            samples[y * in_width + x] = p->in[y * p->in_row + x * p->in_pixel + c * (ptrdiff_t)p->in_channel];
    for (int y = 0; y < (p->rows_first ? in_height : height); y++)
        for (int x = 0; x < columns; x++)
            middle[y * columns + x] =
                (int16_t)(p->rows_first ? pillow_output(&p->rows, x, samples + y * in_width, 1, true)
                                        : pillow_output(&p->columns, y, samples + x, in_width, is_pillow));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            outputs[y * width + x] =
                (int16_t)(p->rows_first ? pillow_output(&p->columns, y, middle + x, columns, true)
                                        : pillow_output(&p->rows, x, middle + y * columns, 1, true));
}

/* The inputs of an axis that its outputs read end before this one. */
static int pillow_end(const struct pillow_pass *pass)
{
    return pass->words[pass->outputs - 1] + pass->words[2 * pass->outputs - 1];
}

bool pillow_launch(struct device *device, const struct pillow_table *table, size_t count, struct error *error)
{
    const struct pillow_levels *levels = table->levels;
    (void)device, (void)error;
    for (const struct pillow_picture *p = table->pictures; p < table->pictures + count; p++) {
        const int in_width = pillow_end(&p->rows), in_height = pillow_end(&p->columns);
        const int width = p->rows.outputs, height = p->columns.outputs;
        const size_t size = (size_t)(width > in_width ? width : in_width) *
                            (size_t)(height > in_height ? height : in_height) * sizeof(int16_t);
        int16_t *outputs = malloc(size), *middle = malloc(size), *samples = malloc(size);
        if (outputs == NULL || middle == NULL || samples == NULL)
            abort();
        for (int c = 0; c < 3; c++) {
            pillow_channel(p, table->is_pillow, c, in_width, in_height, samples, middle, outputs);
            for (int y = 0; y < p->height; y++)
                for (int x = 0; x < p->width; x++) {
                    const int i = x - p->x, j = y - p->y;
                    const bool is_inside = i >= 0 && i < width && j >= 0 && j < height;
                    const uint8_t level = (uint8_t)(is_inside ? outputs[j * width + i] : levels->outside[c]);
                    memcpy(p->out + y * p->out_row + x * p->out_pixel + c * (ptrdiff_t)p->out_channel,
                           levels != NULL ? levels->samples[c][level] : &level,
                           levels != NULL ? (size_t)levels->bytes : 1);
                }
        }
        free(outputs);
        free(middle);
        free(samples);
    }
    return true;
}

bool device_split(struct device *device, const struct image *image, enum alpha alpha, const struct linear *linear,
                  const struct plane *planes, struct error *error)
{
    (void)device;
    if (!check_interleaved(image, error))
        return false;
    image_split(image, alpha, linear, planes);
    return works(CALL_SPLIT, error);
}

bool device_merge(struct device *device, const struct plane *planes, enum alpha alpha, const struct linear *linear,
                  const struct image *image, struct error *error)
{
    (void)device;
    struct image merged = *image;
    if (!check_interleaved(image, error))
        return false;
    image_merge(planes, alpha, linear, &merged);
    return works(CALL_MERGE, error);
}

bool device_is_opaque(struct device *device, const struct image *image, bool *is_opaque, struct error *error)
{
    (void)device;
    *is_opaque = image_is_opaque(image);
    return works(CALL_DOWNLOAD, error);
}

bool device_orient(struct device *device, const struct image *from, int orientation, const struct image *to,
                   struct error *error)
{
    struct image turned;
    (void)device;
    if (!image_convert(from, to->bits, &turned, error) || !image_orient(&turned, orientation, error))
        return false;
    memcpy(to->samples, turned.samples, image_bytes(to));
    image_free(&turned);
    return true;
}

/* ---- On a caller's stream ---- */

/* The CPU's part instead of the GPU's. */
static const struct variant_step *step_of(const struct plan *plan)
{
    return &variant_find("cpu", NULL)->steps[plan->filter->kind];
}

/* One thread at a time uses the taps of a GPU. */
static pthread_mutex_t readers = PTHREAD_MUTEX_INITIALIZER;

struct device_taps {
    const struct plan *plan;
    int width, height; /* the size of the image that the taps are for, if the filter changes it */
};

bool device_open_shared(int index, struct device **device, struct error *error)
{
    const bool done = device_open(index, device, error);
    if (done)
        (*device)->is_shared = true;
    return done;
}

bool device_enter(struct device *device, void *const *stream, struct error *error)
{
    if (stream != NULL && *stream == &stub_captured)
        return error_set(error, ERROR_USAGE, "a CUDA graph captures the stream");
    if (device->is_entered)
        return error_set(error, ERROR_WORK, "two threads use one device");
    device->is_entered = true;
    return true;
}

bool device_fork(struct device *device, struct error *error)
{
    (void)device, (void)error;
    return true;
}

void device_use_stream(struct device *device, int number)
{
    (void)device, (void)number;
}

bool device_join(struct device *device, struct error *error)
{
    (void)device, (void)error;
    return true;
}

bool device_leave(struct device *device, struct error *error)
{
    (void)error;
    device->is_entered = false;
    return true;
}

bool device_keep_taps(struct device *device, bool (*prepare)(struct plan *, struct device *, struct error *),
                      struct plan *plan, struct device_taps **taps, struct error *error)
{
    *taps = calloc(1, sizeof **taps);
    if (*taps != NULL)
        **taps = (struct device_taps){.plan = plan, .width = plan->rows.from, .height = plan->columns.from};
    if (*taps != NULL && plan->filter->kind == STEP_POINT) /* nothing is in constant memory */
        return works(CALL_PREPARE, error) && step_of(plan)->prepare(plan, NULL, error);
    pthread_mutex_lock(&readers); /* stub_prepare does not know that constant memory has no part in this */
    const bool done = *taps != NULL && prepare(plan, device, error);
    atomic_store(&users[device->index], NULL);
    pthread_mutex_unlock(&readers);
    return done;
}

void device_free_taps(struct device *device, struct device_taps *taps)
{
    (void)device;
    free(taps);
}

bool device_launch(struct device *device, const struct device_taps *taps, device_launcher *launch,
                   const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error)
{
    if (plan->filter->kind == STEP_POINT)
        return works(CALL_LAUNCH, error) && step_of(plan)->launch(plan, device, in, out, error);
    if (!works(CALL_PREPARE, error))
        return false;
    pthread_mutex_lock(&readers);
    atomic_store(&users[device->index], device);
    device->taps = taps;
    const bool done = launch(plan, device, in, out, error);
    device->taps = NULL;
    atomic_store(&users[device->index], NULL);
    pthread_mutex_unlock(&readers);
    return done;
}

bool device_copy_samples(struct device *device, const struct image *from, const struct image *to, uint8_t *is_lost,
                         struct error *error)
{
    (void)device;
    if (!image_copy(from, to) && is_lost != NULL)
        *is_lost = 1;
    return works(CALL_UPLOAD, error);
}

bool device_change_planes(struct device *device, const struct device_points *points, int channels,
                          const struct plane *in, const struct plane *out, struct error *error)
{
    struct plane from, to = *out;
    bool done = works(CALL_LAUNCH, error);
    if (!done || !plane_allocate(&from, in->sample, in->width, in->height, channels, error))
        return false;
    to.count = channels;
    for (int i = 0; done && i < in->count / channels * points->count; i++) {
        const int step = i % points->count, first = i / points->count * channels;
        const struct plan *kept = points->taps[step]->plan;
        struct plan plan; /* for these samples: a kernel reads the tables of 16 bits for samples of 8, too */
        for (int row = 0; row < channels * in->height; row++)
            memcpy(plane_row(&from, row / in->height, row % in->height),
                   plane_row(step == 0 ? in : out, first + row / in->height, row % in->height),
                   (size_t)in->width * sample_bytes(in->sample));
        to.data = plane_row(out, first, 0);
        plan_make(&plan, kept->filter, kept->border, in->sample);
        done = step_of(&plan)->prepare(&plan, NULL, error) && step_of(&plan)->launch(&plan, device, &from, &to, error);
        plan_free(&plan);
    }
    plane_free(&from);
    return done;
}

bool device_split_points(struct device *device, const struct device_points *points, const struct image *image,
                         const struct plane *planes, struct error *error)
{
    return device_split(device, image, ALPHA_FILTER, NULL, planes, error) &&
           device_change_planes(device, points, planes->count, planes, planes, error);
}

bool device_merge_points(struct device *device, const struct device_points *points, const struct plane *planes,
                         const struct image *image, struct error *error)
{
    return device_change_planes(device, points, planes->count, planes, planes, error) &&
           device_merge(device, planes, ALPHA_FILTER, NULL, image, error);
}

bool device_change_image(struct device *device, const struct device_points *points, const struct image *from,
                         const struct image *to, struct error *error)
{
    struct plane planes;
    const enum sample sample = from->bits == 8 ? SAMPLE_U8 : from->bits == 16 ? SAMPLE_U16 : SAMPLE_F32;
    if (!plane_allocate(&planes, sample, from->width, from->height, from->channels, error))
        return false;
    const bool done = device_split_points(device, points, from, &planes, error) &&
                      device_merge(device, &planes, ALPHA_FILTER, NULL, to, error);
    plane_free(&planes);
    return done;
}

bool device_blend(struct device *device, const struct image *from, const void *levels, const struct image *to,
                  struct error *error)
{
    (void)device;
    image_blend(from, levels, to);
    return works(CALL_MERGE, error);
}

/* ---- The rows of the table ---- */

/* CUDA_FUNCTION of src/variants/table.c makes every row of the GPU call these. */
bool stub_prepare(struct plan *plan, struct device *device, struct error *error);
bool stub_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                 struct error *error);

bool stub_prepare(struct plan *plan, struct device *device, struct error *error)
{
    struct device *nobody = NULL;
    if (atomic_load(&launches[device->index]) == 0 &&
        (atomic_compare_exchange_strong(&users[device->index], &nobody, device) || nobody == device)) {
        atomic_store(&filters[device->index], plan->filter);
        return works(CALL_PREPARE, error) &&
               (step_of(plan)->prepare == NULL || step_of(plan)->prepare(plan, NULL, error));
    }
    return error_set(error, ERROR_WORK, "two streams use the constant memory of GPU %d at once", device->index);
}

static struct image image_of(const struct plane *planes)
{
    struct image image = {.width = planes->width,
                          .height = planes->height,
                          .channels = planes->count,
                          .bits = (int)(8 * sample_bytes(planes->sample)),
                          .samples = planes->data,
                          .row_stride = planes->row_bytes,
                          .channel_stride = planes->plane_bytes,
                          .stored = planes->stored};
    image.pixel_stride = image_sample_bytes(&image);
    return image;
}

/* The CPU's part, by way of floats where samples are halves: the CPU takes none. */
static bool launch_on_cpu(const struct plan *plan, struct device *device, const struct plane *in,
                          const struct plane *out, struct error *error)
{
    struct plane copies[2] = {*in, *out};
    const struct image from = image_of(in), to = image_of(out);
    if (in->stored == STORED_FLOAT && out->stored == STORED_FLOAT)
        return step_of(plan)->launch(plan, device, in, out, error);
    for (int i = 0; i < 2; i++) {
        copies[i].stored = STORED_FLOAT;
        if (!plane_allocate(&copies[i], copies[i].sample, copies[i].width, copies[i].height, copies[i].count, error))
            abort();
    }
    const struct image floats = image_of(&copies[0]), result = image_of(&copies[1]);
    image_copy(&from, &floats);
    const bool done = step_of(plan)->launch(plan, device, &copies[0], &copies[1], error);
    image_copy(&result, &to);
    plane_free(&copies[0]);
    plane_free(&copies[1]);
    return done;
}

bool stub_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                 struct error *error)
{
    /* Give another stream the time to interfere, if there is one. */
    const struct timespec millisecond = {.tv_nsec = 1000000};
    struct device *user = atomic_load(&users[device->index]);
    const struct device_taps *taps = device->taps;
    if (taps != NULL && (taps->width != plan->rows.from || taps->height != plan->columns.from))
        return error_set(error, ERROR_WORK, "the taps on the device are for %d x %d pixels", taps->width, taps->height);
    const bool reads_taps = step_of(plan)->prepare != NULL;
    if (reads_taps && taps == NULL && plan->filter != atomic_load(&filters[device->index]))
        return error_set(error, ERROR_WORK, "constant memory of GPU %d has the taps of another filter", device->index);
    const bool is_reader = user != device;
    if (is_reader && user != NULL)
        return error_set(error, ERROR_WORK, "a stream reads the constant memory of GPU %d that another writes",
                         device->index);
    atomic_fetch_add(&launches[device->index], is_reader);
    if (atomic_load(&streams) > 1)
        nanosleep(&millisecond, NULL);
    atomic_fetch_sub(&launches[device->index], is_reader);
    return works(CALL_LAUNCH, error) && launch_on_cpu(plan, device, in, out, error);
}
