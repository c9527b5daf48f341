/* SPDX-License-Identifier: MIT
 *
 * What the files of check_variants share. */
#ifndef GPUCONV_CHECK_H
#define GPUCONV_CHECK_H

#include "base/parallel.h"
#include "bench/bench.h"
#include "filter/filter.h"
#include "image/image.h"
#include "kernels/device/device.h"
#include "plan/plan.h"
#include "tests/lib/program.h"
#include "variants/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD = 4096,  /* bytes on either side of the planes; a multiple of 512, as device planes ask */
    ROW_STEP = 128 /* bytes; rows of device planes are multiples of it */
};

/* The command line. */
struct options {
    uint64_t seed;
    /* Check one in SHARE of the random cases. A reduced set has other borders and sample types for each size: their
     * number and its share have no divisor in common. LARGE asks for the large images and all ranks alone. */
    uint64_t share;
    bool quick, large;
    const char *variant;
    bool cpu, cuda;
};

/* What all checks share. */
struct checker {
    struct options options;
    struct thread_pool pool;          /* the threads of the CPU's variants */
    struct device *device;            /* NULL if there is none */
    struct workspace in, out;         /* memory of the device */
    uint64_t rows, cases, mismatches; /* what was counted */
};

/* ---- check_variants.c ---- */

/* Width and height of the images. */
extern const int sizes[][2];
extern const size_t size_count;

/* ---- shapes.c ---- */

/* How large the random taps are, which decides the arithmetic: exact in float, int32 only, or with a scale so large
 * that rounding takes 64 bits. */
enum tap_size { SMALL, MEDIUM, LARGE, WIDE, TINY };

enum pattern {
    ANY,
    SEPARABLE,
    UNEVEN,   /* separable; column and row differ in size, so the sums of a row are small, or large */
    POSITIVE, /* separable; no tap of column or row is below 0 */
    SPARSE,   /* one tap in seven is not 0 */
    EQUAL,    /* all taps are the same */
    SHIFT,    /* all taps but one are 0, and that one is the scale */
    SLOPE,    /* two grids; the first is a column times -1 0 1, and the second is the first with columns for rows */
};

/* One grid, or two and how they combine. */
enum grids { ONE, TWO_ROOT, TWO_MAX, TWO_SUM };

struct shape {
    int width, height;
    enum tap_size size;
    enum pattern pattern;
    enum grids grids;
    bool absolute;
    bool power_scale; /* the scale is a power of two */
    bool fraction;    /* the offset is not a multiple of a half */
    bool anchored;    /* else the anchor is in the centre */
    int anchor_x, anchor_y;
};

extern const struct shape shapes[];
extern const size_t shape_count;

/* Shapes for images that are too large for the caches of a CPU, whose outputs are stored another way. */
extern const struct shape large_shapes[];
extern const size_t large_shape_count;

/* A filter of random taps, read by filter_parse. Scale and offset are such that outputs of random samples have a mean
 * near 128 and a deviation near 45: neither saturated nor constant, so that a wrong sum shows. */
void random_filter(const struct shape *shape, uint64_t *state, struct filter *filter);

/* The text of a filter, while it is written. */
struct filter_text {
    FILE *stream;
    char *text;
    size_t size;
};

void filter_text_open(struct filter_text *text);

/* Write COUNT taps in rows of WIDTH. */
void filter_text_add_taps(struct filter_text *text, const int64_t *taps, int count, int width);

/* Read the filter NAME from the text, and free the text. The taps must be exact. */
void filter_text_parse(struct filter_text *text, const char *name, struct filter *filter);

/* ---- planes.c ---- */

/* Planes in a buffer with guards. */
struct guarded {
    unsigned char *memory; /* GUARD bytes, the planes, GUARD bytes; the caller frees it */
    size_t size;
    struct plane plane;
};

/* COUNT planes, with EXTRA bytes of padding in each row. */
struct guarded guarded_make(enum sample sample, int width, int height, int count, size_t extra);

/* Is every byte outside the samples still POISON? */
bool guards_intact(const struct guarded *g, unsigned char poison);

unsigned char *row_of(const struct plane *plane, int channel, int y);
void fill_random(const struct plane *plane, uint64_t *state);

/* ---- rows.c ---- */

/* Make both buffers of the device at least SIZE bytes large. */
void checker_reserve(struct checker *checker, size_t size);

/* Does this build have the row, and do the options ask for it? */
bool is_wanted(const struct options *options, const struct variant *row);

/* Run PLAN from IN to OUT on its backend. OUT's whole buffer is as the variant left it. */
bool run_variant(struct checker *checker, struct plan *plan, const struct guarded *in, struct guarded *out,
                 struct error *error);

/* A filter, an input and what becomes of it. */
struct test_case {
    const struct filter *filter;
    enum border border;
    enum sample sample;
    int width, height, planes;
    int out_width, out_height; /* 0 if the filter keeps the size */
    uint64_t number;           /* the poison and the padding of the rows change with it */
    bool is_telling;           /* the expected image must be neither constant nor saturated */
    const double *magnitudes;  /* sum|t x| for each output, which then bounds its error; or NULL */
    char what[256];            /* for messages */
    /* Set by case_open. */
    unsigned char poison;
    struct guarded in, expected, actual;
};

/* Allocate the planes, all full of poison. The caller fills c->in.plane and writes c->what. */
void case_open(struct test_case *c);

/* Compute the expected image by the reference. Then compare every wanted row with it, on the CPU with every instruction
 * set. If no row is wanted, compute nothing and return false. */
bool case_check(struct checker *checker, struct test_case *c);

void case_close(struct test_case *c);

/* ---- The other files, named as their functions ---- */

void check_extremes(struct checker *checker);
void check_floats(struct checker *checker);
void check_passes(struct checker *checker);
void check_properties(struct checker *checker);
void check_resizes(struct checker *checker);
void check_moves(struct checker *checker);
void check_points(struct checker *checker);
void check_ranks(struct checker *checker);
void check_images(struct checker *checker);

#endif
