/* SPDX-License-Identifier: MIT */
#include "variants/choose.h"

#include <math.h>

/* ---- Variants ---- */

/* The canonical row with the lowest cost, except EXCEPT. */
static const struct variant *find_cheapest(const struct filter *filter, enum backend backend, const struct work *work,
                                           const struct variant *except)
{
    const struct variant *best = NULL;
    double min = 0;
    size_t count;
    filter = filter_of_depth(filter, work->sample != SAMPLE_U8);
    const struct variant *table = variants(&count);
    for (const struct variant *row = table; row < table + count; row++) {
        if (row->backend != backend || row == except || row->steps[filter->kind].seconds == NULL ||
            !variant_accepts(row, filter, work->sample))
            continue;
        const double seconds = cost_variant_seconds(row, filter, work);
        if (best == NULL || seconds < min) {
            best = row;
            min = seconds;
        }
    }
    return best;
}

const struct variant *variant_choose(const struct filter *filter, enum backend backend, const struct work *work)
{
    return find_cheapest(filter, backend, work, NULL);
}

const struct variant *variant_runner_up(const struct filter *filter, const struct variant *chosen,
                                        const struct work *work)
{
    return find_cheapest(filter, chosen->backend, work, chosen);
}

double cost_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work)
{
    return variant->steps[filter->kind].seconds(filter_of_depth(filter, work->sample != SAMPLE_U8), work);
}

/* ---- Backends ---- */

static const double move_seconds = 1 / 50e9; /* to move a byte of page-locked memory over the bus */

/* The chosen variants' seconds for all filters, one after the other, without the copies to and from the GPU. */
static double chosen_seconds(const struct filter *filters, size_t count, enum backend backend, const struct work *work)
{
    struct work image = *work;
    double seconds = 0;
    for (size_t i = 0; i < count; i++) {
        const struct variant *variant = variant_choose(&filters[i], backend, &image);
        seconds += variant == NULL ? INFINITY : cost_variant_seconds(variant, &filters[i], &image);
        work_resize(work, &filters[i], i, &image.width, &image.height, NULL);
    }
    return seconds;
}

double cost_cpu_seconds(const struct filter *filters, size_t count, const struct work *work)
{
    const double image = 0.5e-9; /* to split and merge a sample in a core's caches; threads share the bands */
    const int threads = work->threads > 0 ? work->threads : 1;
    return work_samples(work) * image / threads + chosen_seconds(filters, count, BACKEND_CPU, work);
}

/* Seconds between samples and a file: of a busy core that does it, of a GPU, and of the core beside that GPU, which
 * reads, copies, sums up and writes the file, and waits for the GPU's launches. */
struct codec_seconds {
    double cpu, gpu, host;
};

/* For an image, however small. One H100 decoded 7,566 JPEGs of 500 x 375 a second when each had its own launches. To
 * load or download samples and to launch the filters takes half of 60 us (benchmarks/array_peers.py). */
static const double codec_launches = 0.13e-3, copy_launches = 0.03e-3;

/* The GPU itself takes this time to decode or to encode a PNG, however small. In a batch, one H200 decoded, filtered
 * and encoded 2,534 PNGs of 500 x 375 a second (benchmarks/backends.py). */
static const double png_seconds = 0.17e-3;

/* For a pixel of a JPEG and a sample of a PNG, in batches on 16 cores and an H200. */
static const struct codec_seconds decoding[] = {
    [GPU_CODEC_JPEG] = {4.5e-9, 1 / 8e9, 0.25e-9}, [GPU_CODEC_PNG] = {2e-9, 1 / 25e9, 0.25e-9}};
static const struct codec_seconds encoding[] = {
    [GPU_CODEC_JPEG] = {2.5e-9, 1 / 12e9, 0.25e-9}, [GPU_CODEC_PNG] = {2.7e-9, 1 / 90e9, 0.4e-9}};

/* Those of an image. If a GPU has no codec, only the transfer of the samples counts. */
static struct codec_seconds codec_seconds(const struct total_work *batch, enum gpu_codec codec,
                                          const struct codec_seconds *each)
{
    const double copy = 0.05e-9; /* to copy a byte to or from page-locked memory */
    const double samples = work_samples(&batch->image), bytes = samples * (double)sample_bytes(batch->image.sample);
    const double count = codec == GPU_CODEC_PNG ? samples : (double)batch->image.width * batch->image.height;
    if (codec == GPU_CODEC_NONE)
        return (struct codec_seconds){.gpu = bytes * move_seconds, .host = copy_launches + bytes * copy};
    return (struct codec_seconds){count * each[codec].cpu,
                                  (codec == GPU_CODEC_PNG ? png_seconds : 0) + count * each[codec].gpu,
                                  codec_launches + count * each[codec].host};
}

/* The share of the file's pixels that the image has. A decoder that makes fewer still reads all codes. */
static double file_share(const struct work *image)
{
    return image->full_width > 0 ? (double)image->width / image->full_width * image->height / image->full_height : 1;
}

static double batch_cpu_seconds(const struct filter *filters, size_t count, const struct total_work *batch)
{
    const double decode = codec_seconds(batch, batch->gpu_decodes, decoding).cpu / file_share(&batch->image);
    const double encode = codec_seconds(batch, batch->gpu_encodes, encoding).cpu;
    /* For a photo of 15 Mpixel, 16 threads of a codec are 4 to 6 times as fast as one, and 4 are 3 times as fast. */
    const double threads = pow(batch->image.threads > 0 ? batch->image.threads : 1, 0.6);
    return cost_cpu_seconds(filters, count, &batch->image) + (decode + encode) / threads;
}

/* The GPU filters one image after the other; the workers copy theirs meanwhile. */
static double batch_cuda_seconds(const struct filter *filters, size_t count, const struct total_work *batch)
{
    const struct codec_seconds decode = codec_seconds(batch, batch->gpu_decodes, decoding);
    const struct codec_seconds encode = codec_seconds(batch, batch->gpu_encodes, encoding);
    const double gpu = decode.gpu / file_share(&batch->image) + encode.gpu +
                       chosen_seconds(filters, count, BACKEND_CUDA, &batch->image);
    return fmax(gpu / batch->gpus, (decode.host + encode.host) / batch->workers);
}

double cost_start(const struct total_work *batch)
{
    const double locking = 0.43e-9; /* to page-lock a byte, once for each worker */
    const struct work *image = &batch->image;
    const double bytes = work_samples(image) * (double)sample_bytes(image->sample);
    const bool is_moved = batch->gpu_decodes == GPU_CODEC_NONE || batch->gpu_encodes == GPU_CODEC_NONE;
    return 0.25 + (is_moved ? batch->workers * bytes * locking : 0); /* on an H200: see benchmarks.md */
}

struct backend_seconds cost_backends(const struct filter *filters, size_t count, const struct total_work *work)
{
    const struct work *image = &work->image;
    const double context = 0.3;      /* to create a CUDA context: a single image meets a GPU from a cold start */
    const double transfer = 2 / 9e9; /* to move a byte of pageable memory up and down */
    if (work->workers == 0)
        return (struct backend_seconds){.cpu = cost_cpu_seconds(filters, count, image),
                                        .cuda = context +
                                                work_samples(image) * (double)sample_bytes(image->sample) * transfer +
                                                chosen_seconds(filters, count, BACKEND_CUDA, image)};
    return (struct backend_seconds){.cpu = batch_cpu_seconds(filters, count, work),
                                    .cuda = batch_cuda_seconds(filters, count, work)};
}
