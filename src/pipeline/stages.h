/* SPDX-License-Identifier: MIT
 *
 * The stages of a run, and a stopwatch that adds up the time of each. */
#ifndef GPUCONV_STAGES_H
#define GPUCONV_STAGES_H

/* The stages of a run, in order. */
enum stage {
    STAGE_WAIT, /* for memory that other images hold, or for a GPU's constant memory */
    STAGE_READ,
    STAGE_DECODE,
    STAGE_DRIVER, /* wait for the GPU's driver to start */
    STAGE_PLAN,
    STAGE_CONTEXT, /* wait for the GPU's context, and make a stream; also the time that a GPU took until it failed */
    STAGE_BUFFERS, /* on the GPU, and page-locked ones */
    STAGE_UPLOAD,
    STAGE_SPLIT,
    STAGE_CONVOLVE,
    STAGE_MERGE,
    STAGE_DOWNLOAD,
    STAGE_ENCODE,
    STAGE_WRITE,
    STAGE_COUNT
};

/* A stopwatch. Times are in milliseconds of the monotonic clock. */
struct stages {
    double start, last; /* when it was started, and the end of the last stage */
    double milliseconds[STAGE_COUNT];
};

/* Set all times to 0 and start the watch. */
void stages_begin(struct stages *stages);

/* Add the time since the last call to STAGE. */
void stages_end(struct stages *stages, enum stage stage);

/* Milliseconds from the start to the last call of stages_end. */
double stages_total(const struct stages *stages);

/* The name of a stage in messages and reports. */
const char *stage_name(enum stage stage);

#endif
