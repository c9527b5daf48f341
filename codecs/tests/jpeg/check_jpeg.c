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

void reserve_samples(struct place *place, size_t size)
{
    struct error error = {0};
    device_release(place->device, &place->samples);
    must(device_reserve(place->device, &place->samples, size, &error), &error);
}

/* ---- The run ---- */

void place_open(struct place *place)
{
    struct error error = {0};
    *place = (struct place){0};
    must(device_open(0, &place->device, &error), &error);
    must(device_jpeg_open(place->device, DECODED_MARK, &place->jpeg, &error), &error);
}

void place_close(struct place *place)
{
    device_jpeg_close(place->jpeg);
    device_release(place->device, &place->samples);
    device_close(place->device);
}

static struct check_counts run(const struct check_options *options)
{
    struct place place;
    place_open(&place);
    check_decoder(options, &place);
    check_encoder(options, &place);
    place_close(&place);
    return (struct check_counts){.cases = place.cases};
}

static struct check_counts run_beside(const struct check_options *options)
{
    struct place place;
    place_open(&place);
    check_decoder_beside(options, &place);
    check_encoder_beside(options, &place);
    place_close(&place);
    return (struct check_counts){.cases = place.cases};
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
