/* SPDX-License-Identifier: MIT
 *
 * The benchmark: check, then time, every row of the table of variants. bench.c measures and prints nothing;
 * bench_print.c writes finished rows as a table, JSON or CSV.
 *
 * A case is a size, a number of planes, a sample type and a filter, on random samples. What must come out is computed
 * once by the CPU's canonical variant, which is itself checked against the reference first: all of the image where that
 * is affordable, else three parts of it, among them two corners. Every other row is compared with that, all samples,
 * before it is timed; a row that is wrong is reported and not timed.
 *
 * CUDA rows are timed by marks on the device's stream: the kernel alone, taps uploaded before. Input and output rotate
 * among pairs of buffers that together are larger than three times the L2 cache, at least two, at most BENCH_PAIRS (so
 * images below some 1 Mpixel stay in the cache). A launch of a few microseconds is not timed alone, because marks are
 * only exact to half of one: several launches stand between two marks, as many as take about 100 microseconds, and the
 * time is that of one of them. Rows of the CPU are timed by the clock, on one pair of buffers.
 *
 * (copy) is a copy of the same bytes within the device, timed in the same way, and (memcpy) one thread's memcpy: no
 * variant can be faster than a copy, so times are held against them. (image) is the way of an interleaved image on the
 * device, from image to image: split, the variant that is chosen or named, merge; for several planes of uint8_t. */
#ifndef GPUCONV_BENCH_H
#define GPUCONV_BENCH_H

#include "base/error.h"
#include "base/file.h"
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
    BENCH_RUNS = 21,            /* timed runs of a row: odd, so that one of them is the median */
    BENCH_SLOW_RUNS = 20,       /* of a row whose launch takes longer than 50 ms */
    BENCH_CPU_RUNS = 5,         /* of a row of the CPU that takes longer than 300 ms */
    BENCH_PAIRS = 128,          /* pairs of buffers, at most; kernels/device.cu keeps as many textures */
    BENCH_SIZES = 32,           /* sizes in one run, at most */
    BENCH_PLANES = 4,           /* planes of an image, at most */
    BENCH_SIDE = (1 << 24) - 1, /* pixels of a side, at most: as of an image (codec.c) */
};

struct bench_size {
    int width, height, planes;
};

/* Read WIDTHxHEIGHT or WIDTHxHEIGHTxPLANES, or several joined by commas, into SIZES, which has room for BENCH_SIZES. */
bool bench_parse_sizes(const char *text, struct bench_size *sizes, size_t *count, struct error *error);

/* The filters that are taken where none is named, for each size N of 3, 5, 7, 9, 15, 31: int8-N (random taps from -127
 * to 127), int16-N (from -8000 to 8000) and rank1-N (separable, a smooth blur). *FILTERS is to be released with free.
 */
bool bench_default_filters(struct filter **filters, size_t *count, struct error *error);

/* What is to be measured. What it points to must outlive the benchmark. */
struct bench_request {
    const struct bench_size *sizes; /* none: the default ones that fit into memory */
    size_t size_count;
    const struct filter *filters;
    size_t filter_count;
    bool default_filters; /* they are; some rows then meet only some of them (see bench.c) */
    bool samples[SAMPLE_COUNT];
    enum border border;
    const struct variant *variant; /* NULL: all */
    bool cpu, cuda;                /* which backends; both may be asked for where there is no GPU */
    int device;
    int threads; /* of the CPU; 0: as many as there are */
};

/* One finished row of the benchmark. */
struct bench_row {
    const char *variant; /* a variant's name, or (copy), (memcpy) or (image) */
    enum backend backend;
    const struct filter *filter; /* NULL for copies */
    struct bench_size size;
    enum sample sample;
    enum border border;

    int runs;                         /* 0: not timed, and then all times and rates are 0 */
    double median_ms, min_ms, max_ms; /* of one launch */
    double spread;                    /* third quartile less first, over the median */
    double gpixel_s;                  /* 10^9 samples a second, of all planes */
    double gb_s;                      /* 10^9 bytes a second, each sample read once and written once */
    double tmac_s;                    /* 10^12 multiply-adds a second: a tap a sample, for a variant of ACCEPTS_RANK_1
                                         a row and a column of taps. One that finds that it has less to do (zeros, two
                                         passes of its own) may exceed its peak. */
    double intensity;                 /* operations (2 a multiply-add) a byte */
    double x_copy, percent_copy;      /* median over the copy's, and the reverse in percent */
    double percent_peak;              /* of the measured peak of the unit that the variant uses */
    bool memory_bound;                /* at this intensity copy speed allows less than that peak */
    double upload_ms, download_ms;    /* the planes between host and device, pageable memory; 0 on the CPU */
    bool canonical;                   /* the variant returns the canonical bytes */
    bool chosen;                      /* the automatic choice among its backend's variants */
    bool wrong;                       /* some samples differ by more than they may */
    uint64_t different;               /* samples that differ at all from the CPU's canonical ones */
};

/* A benchmark: what is known before a row is measured. */
struct bench {
    const struct bench_request *request;
    struct bench_size sizes[BENCH_SIZES];
    size_t size_count;
    size_t omitted_sizes;   /* default sizes that do not fit into memory; all others are smaller */
    struct error no_device; /* its code is set where CUDA was asked for and there is no GPU; the message says why */
    struct device *device;  /* NULL: none */
    struct device_info facts;
    int driver;    /* as device_driver_version */
    char cpu[128]; /* the processor's name */
    int threads;
    struct device_peaks peaks; /* 0 where there is no device */
    double cpu_peak;           /* multiply-adds of float a second; 0 where the CPU is not measured */
};

/* Who hears of the rows. */
struct bench_listener {
    void *context;
    void (*row)(void *context, const struct bench_row *row); /* a row is finished */
    void (*progress)(void *context, const char *what);       /* what is running now; may be NULL */
};

/* Open the device where CUDA is asked for, and measure the peaks. Where there is no GPU that fails only if the CPU is
 * not asked for. Release with bench_close, also after a failure. */
bool bench_open(struct bench *bench, const struct bench_request *request, struct error *error);

/* Measure. *WRONG is the number of rows that were wrong. */
bool bench_run(struct bench *bench, const struct bench_listener *listener, size_t *wrong, struct error *error);

void bench_close(struct bench *bench);

/* How many samples differ at all, and how many by more than ALLOWED (a NaN does). THREADS do the work. */
struct bench_difference {
    uint64_t different, wrong;
};
struct bench_difference bench_compare(const struct plane *expected, const struct plane *actual, double allowed,
                                      int threads);

/* Sort RUNS times in milliseconds and set the row's runs, median, minimum, maximum and spread. */
void bench_statistics(double *milliseconds, int runs, struct bench_row *row);

/* Set *PEAK to the highest rate at which THREADS threads of the CPU multiply and add floats, in multiply-adds a second.
 * It fails only where memory is short (peak.c). */
bool peak_cpu(int threads, double *peak, struct error *error);

/* Writing rows (bench_print.c). */
enum bench_format { BENCH_TABLE, BENCH_JSON, BENCH_CSV };

struct bench_writer {
    FILE *file;
    enum bench_format format;
    size_t rows;
    /* For the table: the group under its header, and what was found about the automatic choice. */
    struct bench_row last;
    double chosen_ms[2], best_ms[2]; /* of the group, by backend; 0: none yet */
    const char *chosen_name[2], *best_name[2];
    int cases, near;
    bool narrowed;             /* to one variant: then nothing can be said about the choice */
    struct text_buffer misses; /* lines about the cases where the choice was not near the best */
    FILE *misses_file;
};

/* Write what stands before the rows. */
bool bench_write_begin(struct bench_writer *writer, FILE *file, enum bench_format format, const struct bench *bench,
                       struct error *error);
void bench_write_row(struct bench_writer *writer, const struct bench_row *row);
/* Write what stands after them, and release what the writer holds. */
void bench_write_end(struct bench_writer *writer);

#endif
