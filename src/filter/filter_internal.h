/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this room: how numbers become a filter's taps, and the generators of parametric filters. */
#ifndef GPUCONV_FILTER_INTERNAL_H
#define GPUCONV_FILTER_INTERNAL_H

#include "filter/filter.h"
#include "filter/number.h"

#include <stdio.h>
#include <string.h>

/* The line between two grids. */
#define GRID_SEPARATOR "---"

/* Is WORD the text from AT to END? */
static inline bool is_word(const char *word, const char *at, const char *end)
{
    return strlen(word) == (size_t)(end - at) && memcmp(word, at, (size_t)(end - at)) == 0;
}

/* Set filter->name to as much of NAME as fits. */
static inline void filter_set_name(struct filter *filter, const char *name)
{
    snprintf(filter->name, sizeof filter->name, "%.*s", (int)sizeof filter->name - 1, name);
}

/* ---- Taps ---- */

/* Set the filter's taps, scale, exactness and largest error from TAPS: the numbers of all grids, divided by the scale
 * of the text. The grids' size, the anchor and `combine` are already set. Taps with a small enough common denominator
 * are exact; others are rounded once. Fails if their sum is too large or there is not enough memory; NAME is the
 * error's subject. */
bool filter_set_taps(struct filter *filter, const struct number *taps, const char *name, struct error *error);

/* Cancel the common factors of taps and scale. Then set everything that follows from taps, scale and OFFSET: sums,
 * biases, steps, column and row. OFFSET is exact and at most 65535 in absolute value. */
void filter_derive(struct filter *filter, struct number offset);

/* The functions of the row of STEP_CONVOLVE. */
void taps_describe(FILE *stream, const struct filter *filter);
void taps_print(FILE *file, const struct filter *filter);
void taps_flip(struct filter *filter);
double taps_work(const struct filter *filter, int width, int height);
double taps_float_error(const struct filter *filter, int taps);
bool taps_join_planes(const struct filter *filter);

/* ---- Matrices and curves ---- */

/* A line of numbers of a filter file. */
struct filter_line {
    size_t number;                    /* the line's number in the text, from 1 */
    int count;                        /* the numbers in the line */
    uint32_t columns[POINT_MAX + 1];  /* the column of each number, from 1, and of the end of the line */
    struct number numbers[POINT_MAX]; /* as the text has them: up to FILTER_MAX taps, or the levels of a table */
};

/* Lines that follow `matrix`, `curve` or `table`. */
struct point_section {
    size_t number, column; /* where the word is */
    unsigned channels;     /* the channels of a curve or table: bit C is set for channel C; 0 for a matrix */
    bool is_table;
    enum point_shape shape;
    double gamma;
    const struct filter_line *lines;
    int count; /* lines */
};

/* Where a section is wrong, and what was expected there. */
struct point_fault {
    size_t number, column;
    char sentence[256];
};

/* Let FILTER, which has its name and title, be what COUNT sections say. Otherwise FAULT says what is wrong. */
bool point_read(const struct point_section *sections, int count, struct filter *filter, struct point_fault *fault);

/* The functions of the row of STEP_POINT. */
void point_describe(FILE *stream, const struct filter *filter);
void point_print(FILE *file, const struct filter *filter);
bool point_joins_planes(const struct filter *filter);

/* ---- Squares ---- */

/* The functions of the row of STEP_PIXELATE. */
void squares_describe(FILE *stream, const struct filter *filter);
void squares_print(FILE *file, const struct filter *filter);
double squares_float_error(const struct filter *filter, int taps);

/* ---- Ranks ---- */

/* Let FILTER be of STEP_RANK, with a footprint of WIDTH x HEIGHT that HAS its sample (x, y), and the anchor in the
 * middle. SHARE is the rank of RANK_ONE as a share of the samples, exact, from 0 to 1. Returns false if the footprint
 * is empty. */
bool rank_make(struct filter *filter, int width, int height, bool (*has)(const void *context, int x, int y),
               const void *context, struct number share);

/* The functions of the row of STEP_RANK. */
void rank_describe(FILE *stream, const struct filter *filter);
void rank_print(FILE *file, const struct filter *filter);
void rank_flip(struct filter *filter);

/* ---- Filters with parameters ---- */

/* The parameters of a filter of STEP_POINT: texts of numbers or words, and the numbers of those that are. */
struct point_words {
    int count;
    char text[3][32];
    double value[3]; /* NAN if it is no number; without its percent sign */
};

#define MAX_PARAMETERS 3

/* The functions of the rows of filter_forms: see struct filter_form. */
form_maker filter_generate, filter_make_resize, filter_make_move, filter_make_point, filter_make_automatic,
    filter_make_to_srgb, filter_make_squares, filter_make_rank;
taps_generator make_box, make_gaussian, make_motion, make_disk, make_log, make_unsharp;
move_reader read_crop, read_pad, read_turn, read_mirror;
point_writer write_levels, write_gamma, write_brightness, write_contrast, write_saturation, write_threshold,
    write_posterize, write_tint, write_swap;

/* Let FILTER be SPEC, with TITLE. All else is 0, but the window, which is one sample. */
void filter_begin(enum step_kind kind, const char *spec, const char *title, struct filter *filter);

/* Report that there is no filter SPEC, and why. Returns false. */
bool fail_spec(const char *spec, const char *sentence, struct error *error);

/* ---- Sizes ---- */

/* The longest side that can be asked for. */
enum { SIDE_MAX = 100000 };

/* Read WIDTHxHEIGHT, which fills the bytes from AT to END, and where one of both may be missing: 0. */
bool read_sides(const char *at, const char *end, int *width, int *height);

/* Read a percentage up to MAX as a fraction. It is exact if 31 bits hold it. */
bool read_percentage(const char *at, const char *end, double max, int64_t *numerator, int64_t *denominator);

/* SIDE * A / B, rounded to nearest, and at least 1. */
int64_t scale_side(int side, int64_t a, int64_t b);

/* ---- Regions ---- */

/* Read a region WxH+X+Y. */
bool region_read(const char *text, struct region *region);

/* Fail if nothing of the filter's region is in a picture of WIDTH x HEIGHT. */
bool region_check(const struct filter *filter, int width, int height, struct error *error);

/* ---- Moves ---- */

/* The functions of the row of STEP_MOVE. */
void move_describe(FILE *stream, const struct filter *filter);
void move_print(FILE *file, const struct filter *filter);
bool move_joins_planes(const struct filter *filter);
bool move_clears(const struct filter *filter);
bool move_size(const struct filter *filter, int *width, int *height, struct error *error);

/* A copy of SPECS, which commas join, with each `cover:SIZE` replaced by its two filters. Release it with free.
 * NULL after an error. */
char *expand_covers(const char *specs, struct error *error);

/* ---- Resize ---- */

/* The words before the first colon. */
#define RESIZE_WORD "resize"
#define THUMBNAIL_WORD "thumbnail"

/* Can SPEC, which begins with such a word, be read? */
bool resize_is_valid(const char *spec);

/* The functions of the row of STEP_RESIZE. */
bool resize_size(const struct filter *filter, int *width, int *height, struct error *error);
void resize_describe(FILE *stream, const struct filter *filter);
void resize_print(FILE *file, const struct filter *filter);
double resize_work(const struct filter *filter, int width, int height);
double resize_float_error(const struct filter *filter, int taps);

/* ---- Names ---- */

/* Find the filter SPEC as filter_find does. If nothing has that name, *IS_KNOWN becomes false, and ERROR is not set. */
bool filter_find_known(const char *spec, bool *is_known, struct filter *filter, struct filter *filter16,
                       struct error *error);

#endif
