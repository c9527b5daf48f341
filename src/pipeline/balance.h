/* SPDX-License-Identifier: MIT
 *
 * How a batch with an end shares its images between its workers on the CPU and its GPUs. The estimates of the cost
 * model are corrected by what the images that have ended took, so a wrong estimate harms the first images only. Nothing
 * here knows threads or clocks: the caller locks and gives the time, so that a test can simulate machines. */
#ifndef GPUCONV_BALANCE_H
#define GPUCONV_BALANCE_H

#include "variants/choose.h"

#include <stdbool.h>
#include <stddef.h>

/* Images that cost alike, by what a GPU decodes and encodes of them. The two sums are the seconds that those which have
 * ended took and were expected to take: of a worker, and of the GPUs. */
struct balance_kind {
    double taken[2], expected[2];
};

/* The caller sets the first two fields and leaves the others 0. */
struct balance {
    int workers;
    double start; /* the expected seconds of a start of the GPUs; it may change */

    double prepared; /* the seconds since the driver of the GPUs began to start; the caller sets it */
    struct balance_kind kinds[GPU_CODECS * GPU_CODECS];
    int busy;     /* workers that have an image; the caller counts them, with the one that asks */
    int on_gpu;   /* images that GPUs have now */
    double last;  /* when the first of these came, or the last one ended */
    double alone; /* how long an image is on its way through a GPU that has little else to do, by the shortest way so
                      far: a multiple of its expected seconds; 0 before there was one */
};

/* An image that is to be placed. */
struct balance_image {
    size_t kind;
    struct backend_seconds seconds; /* as expected, of a worker, and of the GPUs beside other images */
    double left;                    /* images like it, with this one, that nobody has begun */
    bool is_grouped;                /* a GPU takes a group of images like it, and enough workers wait with one */
};

/* For each of these, a worker may have had IMAGE for SECONDS, and need it for the REST, which is less than 0 if that is
 * not known.
 *
 * How long the images that are left are expected to take on the workers alone, and with GPUs that are to start. */
struct backend_seconds balance_expect(const struct balance *balance, const struct balance_image *image, double seconds,
                                      double rest);

/* Are GPUs to start? */
bool balance_starts(const struct balance *balance, const struct balance_image *image, double seconds, double rest);

/* Before the first image: is the driver of the GPUs to start, since they may turn out to pay off? That costs little. */
bool balance_prepares(const struct balance *balance, const struct balance_image *image);

/* Does IMAGE go to a GPU, which begins it anew? So it does if it is then done before the worker would have done it. The
 * GPUs must have started. */
bool balance_moves(const struct balance *balance, const struct balance_image *image, double seconds, double rest);

/* Does a worker wait for GPUs that start? Workers that compute make the start half as long again, and on some days
 * twice as long (measured on 16 threads beside an H200). So it waits if the GPUs do more than twice as much as all
 * workers. */
bool balance_waits(const struct balance *balance, const struct balance_image *image);

/* A GPU gets an image, or has returned it after SECONDS. It may not have DONE it. */
void balance_begin_gpu(struct balance *balance, double now);
void balance_end_gpu(struct balance *balance, const struct balance_image *image, double seconds, double now, bool done);

/* A worker has done IMAGE in as many SECONDS. */
void balance_end_cpu(struct balance *balance, const struct balance_image *image, double seconds);

#endif
