/* SPDX-License-Identifier: MIT
 *
 * The phases of a run, and a stopwatch that adds up the time of each. */
#ifndef GPUCONV_PHASES_H
#define GPUCONV_PHASES_H

/* The phases of a run, in order. */
enum phase {
    PHASE_WAIT, /* for memory that other images hold, a GPU's constant memory, or images that a GPU takes together */
    PHASE_READ,
    PHASE_DECODE,
    PHASE_DRIVER, /* wait for the GPU's driver to start */
    PHASE_PLAN,
    PHASE_CONTEXT, /* wait for the GPU's context, and make a stream; also the time that a GPU took until it failed */
    PHASE_BUFFERS, /* on the GPU, and page-locked ones */
    PHASE_UPLOAD,
    PHASE_SPLIT,
    PHASE_CONVOLVE,
    PHASE_MERGE,
    PHASE_DOWNLOAD,
    PHASE_ENCODE,
    PHASE_WRITE,
    PHASE_COUNT
};

/* A stopwatch. Times are in milliseconds of the monotonic clock. */
struct phases {
    double start, last; /* when it was started, and the end of the last phase */
    double milliseconds[PHASE_COUNT];
};

/* Set all times to 0 and start the watch. */
void phases_begin(struct phases *phases);

/* Add the time since the last call to PHASE. */
void phases_end(struct phases *phases, enum phase phase);

/* Milliseconds from the start to the last call of phases_end. */
double phases_total(const struct phases *phases);

/* The name of a phase in messages and reports. */
const char *phase_name(enum phase phase);

#endif
