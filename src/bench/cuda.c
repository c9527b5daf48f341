/* SPDX-License-Identifier: MIT
 *
 * The GPU's part of the benchmark: see bench.h for how rows are timed. */
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/round.h"
#include "kernels/device/device.h"

#include <math.h>

/* ---- The GPU ---- */

static bool open_gpu(struct bench *bench, struct error *error)
{
    if (!device_open(bench->request->device, &bench->device, error))
        return false;
    bench->info = *device_get_info(bench->device);
    bench->driver = device_driver_version();
    return true;
}

static void close_gpu(struct bench *bench)
{
    device_close(bench->device);
}

static bool measure_gpu(struct bench *bench, struct error *error)
{
    return device_peaks(bench->device, &bench->peaks, error);
}

static size_t gpu_plane_layout(const struct bench_size *size, enum sample sample, struct plane *plane)
{
    return device_plane_layout(sample, size->width, size->height, size->planes, 0, plane);
}

/* ---- Launches ---- */

/* The interleaved image of pair number PAIR. */
static struct image pair_image(const struct bench_case *c, size_t pair)
{
    const struct plane *in = &c->in;
    return (struct image){.width = in->width,
                          .height = in->height,
                          .channels = in->count,
                          .bits = in->sample == SAMPLE_U8 ? 8 : 16,
                          .samples = c->images.bytes + pair * c->image_bytes};
}

/* Queue a launch, or a copy if PLAN is NULL, on pair NUMBER modulo c->pairs. With IMAGE, queue it between a split of
 * the pair's interleaved image and a merge into it. */
static bool queue_launch(struct bench_case *c, const struct plan *plan, bool image, int number, struct error *error)
{
    const size_t pair = (size_t)(number % c->pairs), offset = pair * 2 * c->bytes;
    struct device *device = c->bench->device;
    struct plane in = c->device_in, out = c->device_out;
    in.data = (char *)in.data + offset;
    out.data = (char *)out.data + offset;
    if (plan == NULL)
        return device_copy(device, out.data, in.data, c->bytes, error);
    if (!image)
        return variant_launch(plan, device, &in, &out, error);
    const struct image pixels = pair_image(c, pair);
    return device_split(device, &pixels, ALPHA_FILTER, NULL, &in, error) &&
           variant_launch(plan, device, &in, &out, error) &&
           device_merge(device, &out, ALPHA_FILTER, NULL, &pixels, error);
}

/* Time COUNT launches between two marks, on the pairs from *NEXT on. *MILLISECONDS becomes the time of one of them. */
static bool time_launches(struct bench_case *c, const struct plan *plan, bool image, int count, int *next,
                          double *milliseconds, struct error *error)
{
    struct device *device = c->bench->device;
    float elapsed;
    if (!device_mark(device, 0, error))
        return false;
    for (int i = 0; i < count; i++, *next = (*next + 1) % c->pairs)
        if (!queue_launch(c, plan, image, *next, error))
            return false;
    if (!device_mark(device, 1, error) || !device_elapsed(device, 0, 1, &elapsed, error))
        return false;
    *milliseconds = (double)elapsed / count;
    return true;
}

static bool fill_inputs(struct bench_case *c, struct error *error)
{
    struct device *device = c->bench->device;
    const size_t bytes = c->bytes;
    uint8_t *const first = c->memory.bytes;
    if (!device_upload(device, first, c->in.data, bytes, error))
        return false;
    for (int pair = 1; pair < c->pairs; pair++)
        if (!device_copy(device, first + (size_t)pair * 2 * bytes, first, bytes, error))
            return false;
    return device_wait(device, error);
}

static bool time_gpu(struct bench_case *c, const struct plan *plan, bool image, struct bench_row *row,
                     struct error *error)
{
    const double batch_ms = 0.1; /* 200 times the resolution of a mark */
    double each, milliseconds[BENCH_RUNS];
    int next = 0;
    /* Launch on every pair first: a variant may create and keep something for each buffer, such as a texture. */
    if (!time_launches(c, plan, image, c->pairs > BENCH_WARM_UP ? c->pairs : BENCH_WARM_UP, &next, &each, error))
        return false;
    if (each < 10 * batch_ms && !time_launches(c, plan, image, c->pairs, &next, &each, error))
        return false;
    const int runs = each > 50 ? BENCH_SLOW_RUNS : BENCH_RUNS; /* see bench.h */
    const int batch = each > 0 ? clamp_to_int(ceil(batch_ms / each), 1, c->pairs) : c->pairs;
    for (int run = 0; run < runs; run++)
        if (!time_launches(c, plan, image, batch, &next, &milliseconds[run], error))
            return false;
    bench_statistics(milliseconds, runs, row);
    return !image || fill_inputs(c, error); /* the splits have overwritten them */
}

static bool time_on_gpu(struct bench_case *c, struct plan *plan, bool image, struct error *error)
{
    struct device *device = c->bench->device;
    const struct plane *in = &c->device_in, *out = &c->device_out;
    const size_t bytes = c->bytes;
    const struct image pixels = pair_image(c, 0);
    return (!image || device_merge(device, in, ALPHA_FILTER, NULL, &pixels, error)) &&
           device_fill(device, out->data, 0xff, bytes, error) && variant_prepare(plan, device, error) &&
           queue_launch(c, plan, image, 0, error) &&
           (!image || (device_fill(device, out->data, 0xff, bytes, error) &&
                       device_split(device, &pixels, ALPHA_FILTER, NULL, out, error))) &&
           device_download(device, c->actual.data, out->data, bytes, error) && device_wait(device, error);
}

/* ---- Buffers ---- */

static void release_gpu(struct bench_case *c)
{
    device_release(c->bench->device, &c->images);
    device_release(c->bench->device, &c->memory);
}

/* Set the median times of moving the planes to and from the device. */
static bool time_transfers(struct bench_case *c, struct error *error)
{
    enum { TRANSFERS = 5 };
    struct device *device = c->bench->device;
    const size_t bytes = c->bytes;
    double up[TRANSFERS], down[TRANSFERS];
    struct bench_row median;
    for (int run = -1; run < TRANSFERS; run++) { /* the first touches fresh pages on both sides */
        const double start = clock_milliseconds();
        if (!device_upload(device, c->device_in.data, c->in.data, bytes, error) || !device_wait(device, error))
            return false;
        const double between = clock_milliseconds();
        if (!device_download(device, c->actual.data, c->device_in.data, bytes, error) || !device_wait(device, error))
            return false;
        up[run < 0 ? 0 : run] = between - start;
        down[run < 0 ? 0 : run] = clock_milliseconds() - between;
    }
    bench_statistics(up, TRANSFERS, &median);
    c->upload_ms = median.median_ms;
    bench_statistics(down, TRANSFERS, &median);
    c->download_ms = median.median_ms;
    return true;
}

static bool reserve_gpu(struct bench_case *c, struct error *error)
{
    enum { IMAGE_ALIGNMENT = 512 };
    struct device *device = c->bench->device;
    const size_t bytes = c->bytes;
    c->pairs = clamp_to_int(3.0 * c->bench->info.l2_bytes / (2.0 * (double)bytes) + 1, 2, BENCH_PAIRS);
    if (!device_reserve(device, &c->memory, (size_t)c->pairs * 2 * bytes, error))
        return false;
    c->device_in = c->device_out = c->in;
    c->device_in.data = c->memory.bytes;
    c->device_out.data = c->memory.bytes + bytes;
    const size_t image_size = (size_t)size_samples(&c->size) * sample_bytes(c->sample);
    c->image_bytes = round_up(image_size, IMAGE_ALIGNMENT);
    const bool makes_image = c->sample != SAMPLE_F32 && c->size.planes > 1; /* a single plane is its own image */
    if (makes_image && !device_reserve(device, &c->images, (size_t)c->pairs * c->image_bytes, error))
        return false;
    return time_transfers(c, error) && fill_inputs(c, error);
}

const struct bench_gpu bench_gpu = {
    .open = open_gpu,
    .close = close_gpu,
    .measure = measure_gpu,
    .plane_layout = gpu_plane_layout,
    .reserve = reserve_gpu,
    .release = release_gpu,
    .run = time_on_gpu,
    .time = time_gpu,
};
