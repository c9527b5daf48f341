/* SPDX-License-Identifier: MIT
 *
 * What check_png and check_jpeg share: each compares a codec on a GPU with one on the CPU, byte for byte. */
#ifndef GPUCONV_TEST_CODEC_CHECK_H
#define GPUCONV_TEST_CODEC_CHECK_H

#include "base/error.h"
#include "tests/lib/program.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct check_options {
    uint64_t seed;
    int cases;  /* what this counts is the program's */
    bool quick; /* a reduced set, for sanitizers */
    bool huge;  /* images of more than 2^31 bytes, too */
};

/* Cases; the files of other writers among them; and those of these that the GPU left to the CPU. */
struct check_counts {
    uint64_t cases, others, left;
};

/* A check on one stream of the first GPU. */
typedef struct check_counts check_function(const struct check_options *options);

struct codec_check {
    const char *usage; /* its lines */
    uint64_t seed;     /* if the command line has none */
    int cases, quick_cases;
    bool has_huge;
    check_function *run;                    /* on one stream */
    check_function *run_beside;             /* on each of four streams at once, after that */
    void (*bench)(int count, char **names); /* times the kernels with files */
};

/* The main function: --cuda [--quick] [--cases NUMBER] [--huge] [--seed NUMBER], or --bench FILE... With fewer cases
 * than quick_cases, nothing runs on several streams. Returns the exit status. */
int codec_check_main(const struct codec_check *check, int argc, char **argv);

/* One of several streams that are timed at once, each on its own thread. */
struct bench_stream {
    pthread_t thread;
    pthread_barrier_t *barrier; /* all wait there when their buffers have grown */
    const void *work;           /* what the streams share */
    int index, together;        /* the stream's number, and the pictures that it does at once */
    double pixels;              /* pixels of all rounds */
    double times[2];            /* milliseconds that the program measures */
    size_t left;                /* pictures that the GPU left to the CPU */
};

enum { BENCH_STREAMS_MAX = 16 };

/* Run COUNT streams, whose argument is a struct bench_stream. Returns the sum of all pixels and pictures, and the
 * longest times. */
struct bench_stream bench_streams(int count, int together, void *(*run)(void *), const void *work);

/* The bytes of a file; release them with free. */
uint8_t *read_bytes(const char *name, size_t *size);

/* End the program where a call failed. */
void must(bool is_done, const struct error *error);

#endif
