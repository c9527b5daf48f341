/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image on one backend, with the time of each stage. Chooses the backend where that is left to the
 * tool, and falls back to the CPU where a GPU that nobody insisted on fails. Takes one image after the other and keeps
 * its buffers between them. Knows nothing of files or options. */
#ifndef GPUCONV_PIPELINE_H
#define GPUCONV_PIPELINE_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct device;

/* Who decides on the backend. */
enum choice { CHOICE_AUTO, CHOICE_CUDA, CHOICE_CPU };

/* What is to be done to an image. Whatever it points to must outlive the pipeline. */
struct request {
    const struct filter *filters; /* applied in turn, with the bytes of running them one after the other */
    size_t count;
    enum border border;
    enum alpha alpha;
    const struct linear *linear;   /* NULL: samples are filtered as they are; else in linear light, by these tables */
    enum choice choice;            /* agrees with the variant's backend where one is named */
    const struct variant *variant; /* NULL: the best canonical one for each filter */
    int device;                    /* index of the GPU */
    int threads;                   /* of the CPU; 0: as many as there are */

    /* Of many images. */
    bool staged;           /* keep page-locked memory for copies to and from the GPU: repays after a few images */
    bool hand_over;        /* the CPU takes over from a GPU that fails, even one that was asked for */
    pthread_mutex_t *turn; /* held while kernels use the GPU's constant memory; NULL: no other pipeline is on it */
};

/* The stages of a run, in order. */
enum stage {
    STAGE_WAIT, /* for memory that other images hold */
    STAGE_READ,
    STAGE_DECODE,
    STAGE_PLAN,
    STAGE_DEVICE, /* context, stream and buffers */
    STAGE_UPLOAD,
    STAGE_SPLIT,
    STAGE_CONVOLVE,
    STAGE_MERGE,
    STAGE_DOWNLOAD,
    STAGE_ENCODE,
    STAGE_WRITE,
    STAGE_COUNT
};

/* A stop watch. */
struct stages {
    double start, last; /* in milliseconds of the monotonic clock */
    double milliseconds[STAGE_COUNT];
};

/* Start the watch. */
void stages_begin(struct stages *stages);

/* Count the time since the last call as STAGE's. */
void stages_end(struct stages *stages, enum stage stage);

/* Milliseconds from the start to the last call. */
double stages_total(const struct stages *stages);

const char *stage_name(enum stage stage);

/* Memory that is kept from image to image, and grown. */
struct kept {
    void *data;
    size_t capacity;
};

struct pipeline {
    const struct request *request;
    struct stages *stages;
    enum backend backend;
    struct work work;      /* what the choices were made for */
    struct error why;      /* its message says why this backend */
    struct error fallback; /* code is set when the GPU failed and the CPU took over, for all images that follow */
    struct plan *plans;    /* one a filter */
    struct device *device; /* NULL on the CPU */

    struct kept host_planes[2];
    struct kept locked;         /* page-locked: an interleaved image */
    struct kept device_samples; /* an interleaved image */
    struct kept device_planes[2];
    struct kept device_linear; /* the request's tables */
};

/* Was this program built with CUDA? */
extern const bool pipeline_has_cuda;

/* How many GPUs there are; 0 where there is none or no driver. */
int pipeline_gpus(void);

/* Create the context of a GPU and open nothing on it, so that pipelines that come later find it ready. */
bool pipeline_warm(int device, struct error *error);

/* What planes of images of BITS a sample are made of. */
enum sample pipeline_sample(const struct request *request, int bits);

/* What can be known before there is an image: does the named variant take the filters, is there a GPU where one is
 * insisted on? */
bool pipeline_check(const struct request *request, struct error *error);

/* Begin. Release with pipeline_close, also after a failure. */
bool pipeline_open(struct pipeline *pipeline, const struct request *request, struct error *error);

/* Choose the backend for images like this one, make the plans, open the device where that has not been done. */
bool pipeline_plan(struct pipeline *pipeline, const struct image *image, struct stages *stages, struct error *error);

/* Apply the filters that were planned to IMAGE. RESULT becomes a view of the samples, to be read until the next call
 * and not to be freed: they are IMAGE's or, where the request is staged, on a GPU the pipeline's own. */
bool pipeline_run(struct pipeline *pipeline, struct image *image, struct image *result, struct error *error);

/* Bytes of host memory beyond the image itself that pipeline_run is going to keep for such images, and that it keeps
 * now. */
size_t pipeline_need(const struct pipeline *pipeline, int width, int height, int channels, int bits);
size_t pipeline_kept(const struct pipeline *pipeline);

/* Release the buffers that are kept. */
void pipeline_shrink(struct pipeline *pipeline);

void pipeline_close(struct pipeline *pipeline);

#endif
