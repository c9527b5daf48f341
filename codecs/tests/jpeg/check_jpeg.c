/* SPDX-License-Identifier: MIT
 *
 * Check JPEG on a GPU against libjpeg-turbo, byte for byte: check_jpeg --cuda [--quick] [--huge] [--seed NUMBER]. A
 * buffer of samples has exactly the size of the samples, so compute-sanitizer finds accesses beyond them.
 *
 * check_jpeg --bench FILE... times the kernels with the pictures of JPEG files. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- What all files use ---- */

void reserve_samples(struct test_gpu *gpu, size_t size)
{
    struct error error = {0};
    device_release(gpu->device, &gpu->samples);
    must(device_reserve(gpu->device, &gpu->samples, size, &error), &error);
}

/* ---- The run ---- */

void test_gpu_open(struct test_gpu *gpu)
{
    struct error error = {0};
    *gpu = (struct test_gpu){0};
    must(device_open(0, &gpu->device, &error), &error);
    must(device_jpeg_open(gpu->device, DECODED_MARK, &gpu->jpeg, &error), &error);
}

void test_gpu_close(struct test_gpu *gpu)
{
    device_jpeg_close(gpu->jpeg);
    device_release(gpu->device, &gpu->samples);
    device_close(gpu->device);
}

static struct check_counts run(const struct check_options *options)
{
    struct test_gpu gpu;
    test_gpu_open(&gpu);
    check_decoder(options, &gpu);
    check_encoder(options, &gpu);
    test_gpu_close(&gpu);
    return (struct check_counts){.cases = gpu.cases};
}

static struct check_counts run_beside(const struct check_options *options)
{
    struct test_gpu gpu;
    test_gpu_open(&gpu);
    check_decoder_beside(options, &gpu);
    check_encoder_beside(options, &gpu);
    test_gpu_close(&gpu);
    return (struct check_counts){.cases = gpu.cases};
}

static void bench(int count, char **names)
{
    bench_decoder(count, names);
    bench_files(count, names);
}

int main(int argc, char **argv)
{
    static const struct codec_check check = {
        .usage = "usage: check_jpeg --cuda [--quick] [--huge] [--seed NUMBER]\n"
                 "       check_jpeg --bench FILE...\n",
        .seed = 20261122,
        .cases = 1, /* all of them; a reduced set has none */
        .has_huge = true,
        .run = run,
        .run_beside = run_beside,
        .bench = bench,
    };
    return codec_check_main(&check, argc, argv);
}
