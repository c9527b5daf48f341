/* SPDX-License-Identifier: MIT
 *
 * The benchmark: check, then time, every row of the table of variants. The benchmark measures and prints nothing;
 * print.c writes finished rows as a table, JSON or CSV.
 *
 * A case is a size, a number of planes and a sample type, with random samples. For each filter, the CPU's canonical
 * variant computes the expected image once. This image is compared with the reference's output: all of it if that takes
 * only seconds, else the first rows, the last and some in the middle. Then all samples of every other row are compared
 * with the expected image, and the row is timed. A wrong row is reported, but not timed.
 *
 * CUDA rows are timed by marks on the device's stream: the kernel alone, after the upload of the taps. Input and output
 * rotate among pairs of buffers that together are larger than three times the L2 cache. There are at least two pairs
 * and at most BENCH_PAIRS, so images below about 1 Mpixel stay in the cache. Marks have a resolution of half a
 * microsecond. So several launches, about 100 microseconds of them, are timed together, and the mean is reported. CPU
 * rows are timed by the clock, on one pair of buffers.
 *
 * (copy) is a copy of the same bytes within the device, timed in the same way. (memcpy) is memcpy on one thread. No
 * variant can be faster than a copy, so times are compared with it. (image) takes an interleaved image through the
 * device: split, the chosen or named variant, merge. It is measured for several planes of integers. */
#ifndef GPUCONV_BENCH_H
#define GPUCONV_BENCH_H

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "filter/filter.h"
#include "kernels/device/device.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    BENCH_RUNS = 21,            /* timed runs of a row; odd, so that the median is one of them */
    BENCH_SLOW_RUNS = 20,       /* for a CUDA row whose launch takes longer than 50 ms */
    BENCH_CPU_RUNS = 5,         /* for a CPU row whose launch takes longer than 300 ms */
    BENCH_PAIRS = 128,          /* pairs of buffers, at most; kernels/device/device.cu keeps as many textures */
    BENCH_SIZES = 32,           /* sizes in one run, at most */
    BENCH_PLANES = 4,           /* planes of an image, at most */
    BENCH_SIDE = (1 << 24) - 1, /* pixels of a side, at most, as for an image */
};

struct bench_size {
    int width, height, planes;
};

/* Read TEXT, sizes such as 640x480 or 640x480x3 joined by commas, into SIZES, an array of BENCH_SIZES. *COUNT becomes
 * their number. */
bool bench_parse_sizes(const char *text, struct bench_size *sizes, size_t *count, struct error *error);

/* The default filters, in the order that bench_request.default_filters promises. */
#define BENCH_FILTERS                                                                                                  \
    "int8-3,int16-3,rank1-3,int8-5,int16-5,rank1-5,int8-7,int16-7,rank1-7,"                                            \
    "int8-9,int16-9,rank1-9,int8-15,int16-15,rank1-15,int8-31,int16-31,rank1-31"

/* Find a filter as filter_find does, or make one of the benchmark's own, N x N taps with N from 3 to 31: int8-N (random
 * taps from -127 to 127), int16-N (from -8000 to 8000) or rank1-N (separable, a smooth blur). */
filter_finder bench_find_filter;

/* The request. All that it points to must outlive the benchmark. */
struct bench_request {
    const struct bench_size *sizes; /* if there are none, the default sizes that fit into memory */
    size_t size_count;
    const struct filter *filters;
    size_t filter_count;
    bool default_filters; /* they are BENCH_FILTERS; some variants are then measured with some of them only */
    bool samples[SAMPLE_COUNT];
    enum border border;
    uint64_t variants; /* 1 << row for each row of the table that is named, or 0 for all */
    bool cpu, cuda;    /* the backends; with both, a missing GPU is an error only for a variant that is named */
    int device;
    int threads; /* threads of the CPU's variants, or 0 for one for each processor */
};

/* One finished row of the benchmark. */
struct bench_row {
    const char *variant; /* a variant's name, or (copy), (memcpy) or (image) */
    enum backend backend;
    const struct filter *filter; /* NULL for copies */
    struct bench_size size;
    enum sample sample;
    enum border border;

    int runs;                         /* 0 if it was not timed; then all times and rates are 0 */
    double median_ms, min_ms, max_ms; /* milliseconds of one launch */
    double spread;                    /* interquartile range / median */
    double gpixel_s;                  /* 10^9 samples per second, of all planes */
    double gb_s;                      /* 10^9 bytes per second, each sample read once and written once */
    double tmac_s;                    /* 10^12 multiply-adds per second: all taps for each sample; for a
                                         variant of ACCEPTS_RANK_1, a row and a column of taps. A variant that saves
                                         some (zeros, two passes) may exceed its peak. */
    double intensity;                 /* operations per byte; a multiply-add is 2 operations */
    double x_copy, percent_copy;      /* median / copy's median, and the inverse in percent */
    double percent_peak;              /* tmac_s in percent of the measured peak of the unit that the variant uses */
    bool memory_bound;                /* at this intensity, the speed of a copy is a lower limit than that peak */
    double upload_ms, download_ms;    /* milliseconds to copy the planes from and to pageable memory; 0 on the CPU */
    bool canonical;                   /* the variant returns the canonical bytes */
    bool chosen;                      /* the automatic choice would take this variant on this backend */
    bool wrong;                       /* some samples differ by more than they may */
    uint64_t different;               /* samples that differ at all from the expected ones */
};

/* A benchmark, as it is before the first row. */
struct bench {
    const struct bench_request *request;
    struct bench_size sizes[BENCH_SIZES];
    size_t size_count;
    size_t omitted_sizes;   /* default sizes that do not fit into memory; all others are smaller */
    struct error no_device; /* set if CUDA was requested and there is no GPU; the message says why */
    struct device *device;  /* or NULL */
    struct device_info info;
    int driver;    /* the result of device_driver_version */
    char cpu[128]; /* the processor's name */
    struct thread_pool pool;
    struct device_peaks peaks; /* 0 without a device */
    double cpu_peak;           /* float multiply-adds per second; 0 if the CPU is not measured */
};

/* Callbacks. CONTEXT is passed to them. */
struct bench_listener {
    void *context;
    void (*on_row)(void *context, const struct bench_row *row); /* a row is finished */
    void (*on_progress)(void *context, const char *what);       /* WHAT starts now; may be NULL */
};

/* Open the device if the request has CUDA, and measure the peaks. A missing GPU is an error only if the request has no
 * CPU. Release with bench_close, also after a failure. */
bool bench_open(struct bench *bench, const struct bench_request *request, struct error *error);

/* Measure all rows and pass each to LISTENER. *WRONG becomes the number of wrong rows. */
bool bench_run(struct bench *bench, const struct bench_listener *listener, size_t *wrong, struct error *error);

/* Close the device and the threads. */
void bench_close(struct bench *bench);

/* Sample X of row Y of plane CHANNEL. */
double bench_sample(const struct plane *plane, int channel, int y, int x);

/* The number of samples that differ at all, and of those that differ by more than allowed or are NaN. */
struct bench_difference {
    uint64_t different, wrong;
    int64_t first; /* if there is a wrong sample, the index of the first one, counted through all rows and planes */
};

/* Compare planes of one shape on the threads of POOL, which may be NULL. */
struct bench_difference bench_compare(const struct plane *expected, const struct plane *actual, double allowed,
                                      struct thread_pool *pool);

/* Would this expected image hide errors? Returns "constant" or "saturated", or NULL. */
const char *bench_hides_errors(const struct plane *expected);

/* Sort the times of RUNS runs and set the row's runs, median, minimum, maximum and spread. */
void bench_statistics(double *milliseconds, int runs, struct bench_row *row);

/* Measure the highest rate at which the threads of POOL multiply and add floats. *PEAK becomes multiply-adds a second.
 * Fails only if there is too little memory. */
bool bench_measure_cpu(struct thread_pool *pool, double *peak, struct error *error);

/* ---- Writing rows ---- */

enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_CSV };

struct bench_writer {
    FILE *file;
    enum bench_format format;
    size_t rows;

    /* For the table, whose rows are in groups of one size, sample type and filter. */
    struct bench_row last; /* in the current group */
    struct bench_row chosen[2],
        best[2];               /* the group's automatic choice and fastest row, by backend; no runs if none yet */
    int cases, near;           /* automatic choices, and those within 10% of the fastest */
    bool some_variants;        /* the request names some, so the choice cannot be judged */
    struct text_buffer misses; /* one line per choice that was not near the fastest */
    FILE *misses_file;
};

/* Begin to write to FILE: the text before the rows. Fails only if there is too little memory. */
bool bench_write_begin(struct bench_writer *writer, FILE *file, enum bench_format format, const struct bench *bench,
                       struct error *error);

/* Write a row and flush the file. */
void bench_write_row(struct bench_writer *writer, const struct bench_row *row);

/* Write the text after the rows, and release the writer. */
void bench_write_end(struct bench_writer *writer);

#endif
