/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the benchmark. cuda.c and no_cuda.c define the same table of functions; Meson picks one. */
#ifndef GPUCONV_BENCH_INTERNAL_H
#define GPUCONV_BENCH_INTERNAL_H

#include "bench/bench.h"
#include "image/image.h"
#include "kernels/device/device.h"

enum { BENCH_WARM_UP = 3 }; /* launches before a row is timed */

/* A size and a sample type, and what all their rows share. */
struct bench_case {
    struct bench *bench;
    const struct bench_listener *listener;
    struct bench_size size;
    enum sample sample;
    struct plane in, expected, actual; /* on the host; the last two have the size that the filter makes */
    size_t bytes;                      /* bytes of all planes of IN; EXPECTED and ACTUAL each have as many */
    double copy_ms[2];                 /* milliseconds of a copy of the planes, by backend */
    double tap_seconds;                /* seconds that the reference takes for one tap of one sample */
    size_t wrong_rows;

    /* On the GPU. */
    int pairs;                          /* the number of pairs of an input and an output buffer */
    struct workspace memory;            /* all pairs */
    struct plane device_in, device_out; /* the first pair */
    struct workspace images;            /* one interleaved image for each pair; empty if the planes make none */
    size_t image_bytes;                 /* from one image to the next */
    double upload_ms, download_ms;
};

/* The number of samples of all planes. */
static inline double size_samples(const struct bench_size *size)
{
    return (double)size->width * size->height * size->planes;
}

/* VALUE as an integer from MIN to MAX. */
static inline int clamp_to_int(double value, int min, int max)
{
    return value < min ? min : value > max ? max : (int)value;
}

/* ---- cases.c ---- */

/* The kinds of default filters, in the order in which each size has them. */
enum filter_kind { KIND_INT8, KIND_INT16, KIND_RANK_1, KIND_COUNT };

/* Set bench->sizes to those of the request, or to the default ones that fit into memory. */
void bench_set_sizes(struct bench *bench);

/* Reserve the three images on the host and fill the input with random samples. */
bool case_reserve(struct bench_case *c, struct error *error);

/* Let the outputs have the size that FILTER makes of the input. */
bool case_size_outputs(struct bench_case *c, const struct filter *filter, struct error *error);

/* Release the three images. */
void case_release(struct bench_case *c);

/* Make a plan of VARIANT for the case's sample type, and prepare it on the CPU. Release it with plan_free. */
bool case_plan(const struct bench_case *c, const struct filter *filter, const struct variant *variant,
               struct plan *plan, struct error *error);

/* ---- check.c ---- */

/* Compare the expected image with the reference's: all of it if that takes only seconds, else three bands of rows.
 * *WRONG becomes the number of samples that differ by more than ALLOWED. */
bool check_expected(struct bench_case *c, const struct filter *filter, double allowed, uint64_t *wrong,
                    struct error *error);

/* ---- cuda.c, no_cuda.c ---- */

/* The GPU's part. Without a GPU only `open`, which fails, and `plane_layout` may be called. */
struct bench_gpu {
    /* Open the GPU of the request and describe it. Close it again. */
    bool (*open)(struct bench *bench, struct error *error);
    void (*close)(struct bench *bench);

    /* Measure the GPU's peaks. */
    bool (*measure)(struct bench *bench, struct error *error);

    /* Lay out planes as the GPU wants them, so that one copy moves all of them. Returns their bytes; SIZE_MAX if size_t
     * is too small. */
    size_t (*plane_layout)(const struct bench_size *size, enum sample sample, struct plane *plane);

    /* Reserve the pairs and the images on the GPU, time the transfers, and fill each pair's input. Release them, if
     * there are any. */
    bool (*reserve)(struct bench_case *c, struct error *error);
    void (*release)(struct bench_case *c);

    /* Run PLAN once and bring its output to c->actual. With IMAGE, run it from the first pair's interleaved image to
     * that image; the input is merged into the image before, and the output is split from it. The output buffer is
     * poisoned. */
    bool (*run)(struct bench_case *c, struct plan *plan, bool image, struct error *error);

    /* Time PLAN, prepared, or a copy of the same bytes if PLAN is NULL. With IMAGE, include a split and a merge. */
    bool (*time)(struct bench_case *c, const struct plan *plan, bool image, struct bench_row *row, struct error *error);
};
extern const struct bench_gpu bench_gpu;

#endif
