/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image on one backend, with the time of each stage. Chooses the backend where that is left to the
 * tool, and falls back to the CPU where a GPU that nobody insisted on fails. Knows nothing of files or options. */
#ifndef GPUCONV_PIPELINE_H
#define GPUCONV_PIPELINE_H

#include "conv.h"
#include "error.h"
#include "filter.h"
#include "image.h"

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
    enum choice choice;            /* agrees with the variant's backend where one is named */
    const struct variant *variant; /* NULL: the best canonical one for each filter */
    int device;                    /* index of the GPU */
    int threads;                   /* of the CPU; 0: as many as there are */
};

/* The stages of a run, in order. */
enum stage {
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

struct pipeline {
    const struct request *request;
    struct stages *stages;
    enum backend backend;
    struct work work;      /* what the choices were made for */
    struct error why;      /* its message says why this backend */
    struct error fallback; /* code is set when the GPU failed in mid-work and the CPU took over */
    struct plan *plans;    /* one a filter */
    struct device *device; /* NULL on the CPU */
};

/* Was this program built with CUDA? */
extern const bool pipeline_has_cuda;

/* What can be known before there is an image: does the named variant take the filters, is there a GPU where one is
 * insisted on? */
bool pipeline_check(const struct request *request, struct error *error);

/* Choose the backend for images like this one, make the plans, open the device. Release with pipeline_close, also
 * after a failure. */
bool pipeline_open(struct pipeline *pipeline, const struct request *request, const struct image *image,
                   struct stages *stages, struct error *error);

/* Apply the filters to IMAGE, in place. */
bool pipeline_run(struct pipeline *pipeline, struct image *image, struct error *error);

void pipeline_close(struct pipeline *pipeline);

#endif
