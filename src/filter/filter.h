/* SPDX-License-Identifier: MIT
 *
 * A filter is the weights, as integer taps q: out = clamp(round((sum of q*in) / scale + offset)), with
 * round(x) = floor(x + 1/2). This room reads filters from text, makes the parametric ones, finds them by name, factors
 * them and describes them. It knows nothing of images or devices.
 *
 * The text of a filter:
 *
 *     # a comment
 *     title one line for --list
 *     scale 16          # the divisor, default 1; any number but 0
 *     offset 128        # added after the division, default 0
 *     abs               # take the sum's absolute value first
 *     anchor 1 1        # column and row of the tap over the pixel, default width/2 height/2
 *     1 2 1
 *     2 4 2             # rows of taps: integers, decimals, fractions such as 1/16
 *     1 2 1
 *
 * or a libvips matrix: a first line `WIDTH HEIGHT [SCALE [OFFSET]]`, then HEIGHT rows of WIDTH taps.
 *
 * A filter may have two grids of one size, separated by a line `---`. The line `combine` before the first grid says how
 * their sums s1 and s2 become one number C: out = clamp(floor(C / scale + offset + 1/2)). The strength of edges, for
 * example:
 *
 *     combine magnitude # sqrt(s1^2 + s2^2); or max: max(|s1|, |s2|); or sum: |s1| + |s2|
 *     -1 1
 *      0 0
 *     ---
 *     -1 0
 *      1 0
 *
 * A filter of ranks has one grid of 0 and 1, its footprint. The samples under the ones are put in order, and one of
 * them is the output:
 *
 *     combine median    # or minimum, or maximum, or rank 25%: at 0% the lowest sample, at 100% the highest
 *     0 1 0
 *     1 1 1
 *     0 1 0
 *
 * A filter may also change each pixel by itself: by a matrix of its colours, then by curves. Lines begin them:
 *
 *     matrix            # then 1, 3 or 4 rows of 3 or 4 weights, and perhaps an offset in levels; one row is for all
 *     curve             # then points `IN OUT` in levels from 0 to 255, or percent; words after `curve`: red, green,
 *     0 10%             # blue or alpha for that channel, otherwise for all colours; and how a curve goes from point
 *     255 90%           # to point: smooth, steps or gamma G, otherwise in straight lines
 *     table             # then 256 levels: the points of all levels; words: the channels */
#ifndef GPUCONV_FILTER_H
#define GPUCONV_FILTER_H

#include "base/error.h"
#include "filter/resample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most taps in one direction. 127 x 127 taps of 4 bytes are 64,516 bytes and fit in CUDA's 64 KB of constant
 * memory. */
#define FILTER_MAX 127

/* The most taps of a column or a row of a filter in two passes: 5 standard deviations of 170 pixels on both sides. */
#define FILTER_PASS_MAX 1701

/* The units of an unsharp mask's amount, and of its threshold and its blur in one level: see struct filter. */
#define UNSHARP_AMOUNT_BITS 20
#define UNSHARP_LEVEL_BITS 8

/* sum|q| * 255 must stay below 2^31, so that every sum of taps times 8-bit samples fits in 32 bits: 8,421,504. With two
 * grids, the bound is for the sum over both: then |s1| + |s2| fits too, and so does every C. */
#define FILTER_MAX_SUM (INT32_MAX / 255)

/* The longest side of a square of STEP_PIXELATE: the sum of its levels of 16 bits is below 2^40. */
enum { SQUARE_MAX = 4096 };

/* The largest filter file, in bytes: 127 rows of 127 taps of 60 characters. */
#define FILTER_MAX_TEXT ((size_t)1 << 20)

/* How the sums of two grids become one number. */
enum combine {
    COMBINE_NONE, /* there is one grid */
    COMBINE_MAGNITUDE,
    COMBINE_MAX,
    COMBINE_SUM,
    COMBINE_COUNT
};

/* The levels of an 8-bit output. */
#define FILTER_LEVELS 256

/* The kinds of steps that filters are. Three tables have a row for each: filter_kinds here, step_table of the pipeline,
 * and the steps of the variants. */
enum step_kind { STEP_CONVOLVE, STEP_RESIZE, STEP_MOVE, STEP_POINT, STEP_PIXELATE, STEP_RANK, STEP_KINDS };

/* What STEP_RESIZE asks for. */
struct resize {
    enum resample_kernel kernel;
    int width, height;              /* the result's sides, or the sides of the rectangle that it fits in; 0 for any */
    int64_t numerator, denominator; /* the result's sides over the picture's, below 2^31, or 0 if not given */
    bool exact;                     /* the result has both sides, whatever the picture's ratio */
    bool covers;                    /* the result covers the rectangle */
    bool enlarges;                  /* a smaller picture is made larger */
    bool thumbnail;                 /* as the first step, a decoder may do a part of it: see filter_shrink */
    int picture_width, picture_height; /* the only size that is taken, for --show; 0 for any */
};

/* What STEP_MOVE asks for: the picture is turned, then a rectangle of it becomes the result. */
struct move {
    int orientation;                /* how it is turned: 1 to 8, as EXIF's tag says (image_orient) */
    bool pads;                      /* the rectangle is at least as large as the picture, not at most */
    int width, height;              /* the rectangle's sides; 0 for the picture's */
    int64_t numerator, denominator; /* its sides over the picture's, at most 1; the denominator is 0 if not given */
    int x, y;                       /* where it begins in the picture; -1 if not given */
    int across, down; /* else where it lies: -1 at the left or the top, 0 in the middle, 1 at the other end */
    bool rounds_even; /* the middle is that of torchvision's CenterCrop, which rounds a half to an even number */
    bool has_colour;  /* what it has beside the picture: see plan_fill */
    uint8_t colour[3];
};

/* Where the result of a move begins: its pixel (0, 0) is pixel (x, y) of the turned picture, which has turned_width x
 * turned_height. It may lie outside. */
struct origin {
    int turned_width, turned_height, x, y;
};

/* Pixels, or a share of the picture's if the denominator is not 0. */
struct share {
    int64_t numerator, denominator;
};

/* How a curve goes from one point to the next. With t from 0 to 1 between them, the level is y0 + (y1 - y0) f(t). */
enum point_shape {
    POINT_LINEAR, /* f = t */
    POINT_SMOOTH, /* a cubic that rises and falls only where the points do: curve_smooth in point.c */
    POINT_STEPS,  /* f = 0 */
    POINT_GAMMA,  /* f = t^(1 / gamma) */
};

/* The units of a point in one level of 16 bits. */
#define POINT_UNIT 10000

/* The most points of a curve. */
#define POINT_MAX 256

/* A curve of levels. Before the first point and after the last one, it is constant. */
struct point_curve {
    int count; /* points; 0 if the levels stay */
    enum point_shape shape;
    double gamma;
    int64_t in[POINT_MAX], out[POINT_MAX]; /* from 0 to 65535 POINT_UNIT; IN rises */
};

/* A row of a matrix: weights of red, green, blue and alpha, and what a grid of these taps has (struct filter). */
struct point_row {
    int32_t weights[4], scale;
    int64_t bias, bias16;
    double offset, largest_error;
    bool exact;
};

/* Where a curve comes from the picture: see point_range in plan/point.h. */
enum point_automatic {
    AUTOMATIC_NONE,
    AUTOMATIC_EACH, /* each colour has its own */
    AUTOMATIC_ALL,  /* all colours have one */
};

/* Tables that convert a picture's colours to sRGB: its levels become light, and light becomes sRGB's levels. White is
 * 65535 in both. */
struct colours {
    int references;           /* use atomic operations */
    int curves;               /* 1 for all colours, or 3 */
    bool in_light;            /* the step reads and makes light, as the picture's own curves have it */
    uint16_t light[3][65536]; /* the light of the levels of the picture's colours */
    uint16_t levels[65536];   /* sRGB's level of that much light */
};

/* What STEP_POINT does with each pixel: first the matrix, whose results are rounded and clamped, then the curves. With
 * COLOURS, levels become light, then the matrix, and light becomes levels. */
struct point {
    bool needs_colours;             /* they are those of a picture's file, and COLOURS is not there yet */
    bool black_point;               /* with these: a profile's black becomes black, where it has tables */
    struct colours *colours;        /* or NULL */
    enum point_automatic automatic; /* then there is no matrix, and no curve here */
    struct share clip;              /* the share of the samples at each end that may clip; below 1/2 */
    int rows;    /* rows of the matrix: 0 if there is none, 1 for all colours, 3 for each colour, 4 with alpha */
    int columns; /* weights of a row: 3, or 4 with alpha's */
    struct point_row row[4];
    struct point_curve curve[4]; /* the curves of red, green, blue and alpha */
};

/* What STEP_RANK makes of the samples in order: see plan/rank.h. */
enum rank_form {
    RANK_ONE,      /* the sample of one rank */
    RANK_OPEN,     /* the lowest sample, and of these the highest */
    RANK_CLOSE,    /* the highest sample, and of these the lowest */
    RANK_TOPHAT,   /* the picture less RANK_OPEN */
    RANK_BLACKHAT, /* RANK_CLOSE less the picture */
    RANK_OUTLINE,  /* the highest sample less the lowest */
};

/* What STEP_RANK does. A window of one pass has this size and anchor; that of the filter is what all passes reach. */
struct rank {
    enum rank_form form;
    int width, height, anchor_x, anchor_y;
    int count;                         /* samples of the footprint, at least 1 */
    int index;                         /* RANK_ONE: the rank of the output, from 0 for the lowest sample */
    uint64_t footprint[FILTER_MAX][2]; /* its rows: bit x % 64 of word x / 64 is set if sample x belongs to it */
};

/* Does sample (X, Y) of the window belong to the footprint? */
static inline bool rank_has(const struct rank *rank, int x, int y)
{
    return rank->footprint[y][x / 64] >> x % 64 & 1;
}

/* A part of a picture. */
struct rectangle {
    int x, y, width, height;
};

/* The file that a filter or a mask was read from. All is 0 if there is none. */
struct source_file {
    char path[4096]; /* empty if it was a pipe */
    uint64_t device, inode;
    int64_t bytes, seconds, nanoseconds; /* its size, and when it was changed */
};

/* How much of a filter's result each pixel has, of 65535 parts, row by row. The rest is the picture before. */
struct mask {
    int references; /* use atomic operations */
    int width, height;
    unsigned serial; /* another one for each mask */
    uint16_t levels[];
};

/* The part of the picture that a filter changes: a rectangle or a mask. Pixels outside stay, but the filter reads
 * them. */
struct region {
    bool is_set;
    struct share width, height, x, y; /* the rectangle; all 0 with a mask */
    struct source_file mask_file;
    struct mask *mask; /* NULL until masks_load (codec/mask.h) has read it */
};

/* A step of a chain. Its kind says which part of the union it has: filter_kinds has what each kind does. */
struct filter {
    enum step_kind kind;
    char name[128];  /* as the user wrote it */
    char title[128]; /* a few words; may be empty */
    struct source_file file;
    struct region region;
    struct filter *filter16; /* the filter for samples of more than 8 bits, if it is another one; else NULL */
    int width, height;       /* the window of samples that an output is made of; 1 x 1 for most kinds */
    int anchor_x, anchor_y;  /* the output in it: 0 <= anchor_x < width, 0 <= anchor_y < height */
    union {
        struct {            /* STEP_CONVOLVE */
            bool two_pass;  /* two passes, not one or two grids */
            bool separable; /* taps[y][x] = column[y] * row[x], exactly; false with two grids; true with two passes */
            int64_t absolute_sum; /* sum of |q| over both grids, at most FILTER_MAX_SUM */
            bool exact;           /* the taps are exact; otherwise they were rounded once */
            double largest_error; /* how far rounded taps can move an output before it is rounded, in levels of 255 */
            int32_t column[FILTER_PASS_MAX], row[FILTER_PASS_MAX];

            struct {                                       /* grids */
                int32_t taps[2 * FILTER_MAX * FILTER_MAX]; /* q, row by row, width taps a row; then the second grid */
                enum combine combine;
                int32_t scale;                                /* D, 1 to 2^30 */
                int64_t tap_sum;                              /* sum of q over the first grid */
                double offset;                                /* O, the nearest double, for messages and float planes */
                int64_t offset_numerator, offset_denominator; /* O, exact; with two grids at most 2^20 below the line */
                int64_t bias;   /* floor(D * (O + 1/2)), exact: out = clamp(floor((sum + bias) / D)) */
                int64_t bias16; /* for 16-bit levels, 257 times as fine: floor(D * (257 * O + 1/2)) */
                bool absolute;  /* take the absolute value of the sum before the bias is added */
                bool unscaled;  /* the text has no scale, where one may be missing: see filter_brightness */
                bool is_matrix; /* the text is a libvips matrix */

                /* COMBINE_MAGNITUDE: steps[n] is the least s1^2 + s2^2 whose output is at least the level n, exact, or
                 * INT64_MAX if no sums reach it. The output is the greatest n with steps[n] <= s1^2 + s2^2. */
                int64_t steps[FILTER_LEVELS];
            };

            /* Two passes. The taps are too fine, or too many, for a grid: those of grids are not used, and scale,
             * tap_sum and absolute_sum are 1, as of the weights. The row comes first, its sums are rounded to
             * fractions of a level, and the column follows:
             *
             *     m(y, x) = floor((sum over j of row[j] * in(y, x + j - anchor_x)) / 2^row_shift + 1/2)
             *     s(y, x) = sum over i of column[i] * m(y + i - anchor_y, x)
             *     out = floor(s / pass_scale + 1/2)
             *
             * No tap is negative, and pass_scale = sum(row) * sum(column) / 2^row_shift, so no output needs to be
             * clamped. For samples of uint8_t, each tap is below 2^15, each sum of a row below 2^31, each m below 2^19
             * and each s below 2^32; for uint16_t, below 2^22, 2^47, 2^27 and 2^53. If row_shift is 0, the filter is a
             * box, and all taps are 1 (filter_is_box). Otherwise each m is below 2^16 and 2^22, and pass_scale is a
             * power of two: 2^23 or 2^24 for uint8_t, at least 2^27 for uint16_t. The row may be finer than the
             * column, and then they differ.
             *
             * An unsharp mask has an amount of A / 2^20 and a threshold of T / 2^8 levels. With e = 2^8 in -
             * floor(2^8 s / pass_scale + 1/2), out = clamp(floor(in + A e / 2^28 + 1/2)). But a pixel keeps its
             * samples if |e| < T in all of its planes. Its absolute_sum is 1 + 2 amounts, rounded up. */
            struct {
                int row_shift;
                int64_t pass_scale;
                int32_t amount; /* A, below 2^27; 0 if the filter is a blur, not an unsharp mask */
                int32_t threshold;
            };
        };

        /* STEP_RESIZE has taps for each size of a picture: see filter/resample.h. With the taps v of a column, which
         * sum to 2^a, and h of a row, which sum to 2^b,
         *
         *     m(y, x) = floor((sum over i of v(y, i) * in(first(y) + i, x)) / 2^(a - 6) + 1/2)
         *     out = clamp(floor((sum over j of h(x, j) * m(y, first(x) + j)) / 2^(b + 6) + 1/2))
         *
         * m is not clamped: where a kernel overshoots, the second pass may bring the sample back. resize_bound has
         * the distance from the same sums without rounding. For samples up to n, m is within 1.55 * 2^5 * n of
         * 2^5 * n, as gains are at most 1.55: so m - 2^13 fits in 15 bits for samples of 8 bits, and m - 2^21 in 23
         * for 16 bits. Samples of float are not rounded. */
        struct resize resize;

        struct move move; /* STEP_MOVE */

        struct point point; /* STEP_POINT */

        int square; /* STEP_PIXELATE: the side of a square, whose pixels become their mean, rounded to nearest */

        struct rank rank; /* STEP_RANK */
    };
};

/* The bits of m below a level. */
#define RESAMPLE_FRACTION 6

/* The filter to apply to samples of more than 8 bits (IS_16_BIT), or of 8. */
static inline const struct filter *filter_of_depth(const struct filter *filter, bool is_16_bit)
{
    return is_16_bit && filter->filter16 != NULL ? filter->filter16 : filter;
}

/* What the other rooms ask of a kind of step, as far as a filter decides it. A kind that maps each sample by itself has
 * no flag, `size` and `work`. */
struct kind_of_step {
    bool has_taps;     /* it is a convolution */
    bool has_border;   /* it reads what stands outside the image */
    bool repeats_edge; /* it takes the edge of the picture for what stands outside, whatever the border is */
    bool resizes;      /* it makes an image of another size, moves no sample as it is, and has a plan for one size */
    bool moves;        /* it changes no sample, so alpha does not matter; struct move says where they go */
    bool takes_levels; /* also in linear light: its samples are among those that it takes, or differences of them */

    /* Why a variant of other kinds does not take FILTER. The error says: it takes only filters `takes`, and FILTER
     * `is`. Both are NULL for a convolution. */
    const char *takes, *is;

    /* Set *WIDTH and *HEIGHT, a picture's, to those of the result: see filter_resize. NULL if both stay. */
    bool (*size)(const struct filter *filter, int *width, int *height, struct error *error);

    /* Print the lines of --show after the name, and the members of the JSON object after the names. */
    void (*describe)(FILE *stream, const struct filter *filter);
    void (*print)(FILE *file, const struct filter *filter);

    /* Turn the window by 180 degrees. NULL if it has one sample. */
    void (*flip)(struct filter *filter);

    /* The multiply-adds of a plane of WIDTH x HEIGHT, without any tricks. NULL if there are none. */
    double (*work)(const struct filter *filter, int width, int height);

    /* The bound of the rounding of floats from 0 to 1, in units of 2^-24, for a result of TAPS taps if they depend on
     * the size. NULL if no float is rounded. */
    double (*float_error)(const struct filter *filter, int taps);

    /* Do the planes of a pixel decide about each other, or does a sample depend on their number? NULL if never. */
    bool (*joins_planes)(const struct filter *filter);

    /* May an opaque picture have other alpha afterwards? NULL if never. */
    bool (*clears)(const struct filter *filter);
};
extern const struct kind_of_step filter_kinds[STEP_KINDS];

/* The row of the filter's kind. */
static inline const struct kind_of_step *filter_kind(const struct filter *filter)
{
    return &filter_kinds[filter->kind];
}

/* The built-in filters, sorted by name. filters/embed.py writes them at build time. */
struct builtin_filter {
    const char *name;
    const char *text;
    size_t size; /* bytes of the text, without its final 0 */
};
extern const struct builtin_filter builtin_filters[];
extern const size_t builtin_filter_count;

/* Read a filter from SIZE bytes of text; NAME becomes filter->name. An error's subject is "NAME:LINE:COLUMN", and its
 * sentence says what was expected there; if the error has no position in the text, the subject is NAME. */
bool filter_parse(const char *text, size_t size, const char *name, struct filter *filter, struct error *error);

/* Find or make the filter SPEC:
 *
 *   - a parametric filter, such as `gaussian:2.5`;
 *   - a path, if SPEC has a slash;
 *   - a name: DIR/NAME.txt in a folder of the search path, then a built-in filter;
 *   - a path without a slash, if no filter has that name.
 *
 * After it, `@WxH+X+Y` may limit it to a region of the picture, in pixels or percent; X and Y may be negative. So may
 * `@PATH`, the file of a mask, which masks_load reads.
 *
 * The search path is $GPUCONV_FILTERS (folders separated by colons), then $XDG_CONFIG_HOME/gpuconv/filters or
 * ~/.config/gpuconv/filters, then the installed folder. All errors are ERROR_USAGE, except a lack of memory. FILTER16
 * is memory for filter->filter16, and must live as long as FILTER; if it is NULL, there is none. */
bool filter_find(const char *spec, struct filter *filter, struct filter *filter16, struct error *error);

/* Are the files that FILTER and its mask were read from as they were then? */
bool filter_is_current(const struct filter *filter);

/* Is SPEC, or the first of a chain, the name of a filter? Its parameters may be wrong or missing. */
bool filter_is_named(const char *spec);

/* What gpuconv has for WORD of another program: a filter, an option with its dashes, a value, or a sentence after `!`;
 * NULL if that is not known. WORD is a filter, an option without its dashes, or an option, a blank and its value. */
const char *words_find(const char *word);

/* Write the name that is nearest to WORD, of a filter or the word of a form, to NEAREST, of SIZE bytes. Returns false
 * if none is near. */
bool filter_nearest(const char *word, char *nearest, size_t size);

/* A function as filter_find. */
typedef bool filter_finder(const char *spec, struct filter *filter, struct filter *filter16, struct error *error);

/* The `@` before the region or the mask of SPEC, or NULL: a file whose path is SPEC is a filter. */
const char *filter_region_text(const char *spec);

/* Set PART to the part of a picture of WIDTH x HEIGHT that FILTER is limited to, as far as the picture has it: all if
 * the filter has no region. Returns false if the region reaches beyond the picture. */
bool filter_region(const struct filter *filter, int width, int height, struct rectangle *part);

/* Colours with one reference, and without curves. NULL if there is too little memory. */
struct colours *colours_make(void);

/* Release a reference. COLOURS may be NULL. */
void colours_release(struct colours *colours);

/* A mask with one reference, and undefined levels. NULL if there is too little memory. */
struct mask *mask_make(int width, int height);

/* Set FILE to what STATUS says of the file PATH. */
struct stat;
void source_file_set(struct source_file *file, const char *path, const struct stat *status);

/* Free COUNT filters, which are one allocation, and their masks and colours. FILTERS may be NULL. */
void filters_free(struct filter *filters, size_t count);

/* Split ARGUMENT at its commas and FIND each filter. Both filters of a `cover:SIZE` count. *FILTERS is one allocation
 * of *COUNT filters, with each `filter16` after them; release it with filters_free. If ARGUMENT is the path of an
 * existing file, it is one filter, even with commas. */
bool filter_find_all(const char *argument, filter_finder *find, struct filter **filters, size_t *count,
                     struct error *error);

/* Rotate the taps of each grid and the anchor by 180 degrees, also of filter->filter16. Correlation with the result is
 * true convolution with the original. */
void filter_flip(struct filter *filter);

/* Do what --flip and --abs ask for, if they are given. Sums of two grids, or of two passes, are never negative. */
void filter_set_options(struct filter *filter, bool flips, bool is_absolute);

/* The names of all filters, built in or on the search path, sorted, each once. *NAMES is one allocation; release it
 * with free. */
bool filter_names(char ***names, size_t *count, struct error *error);

/* The functions of a row of filter_forms. A maker makes the filter SPEC, which begins with the word of FORM. A
 * generator makes the taps for samples of more than 8 bits (IS_16_BIT) or of 8. FILTER has none yet, and WEIGHTS is
 * memory for those of the largest grid. A reader reads what a move does from AT, which is after the first colon. END is
 * at the next colon or at the end of the text, to which it reads. A writer writes the text of a filter of STEP_POINT.
 * All return false if a parameter is wrong. */
struct filter_form;
struct number;
struct point_words;
typedef bool form_maker(const struct filter_form *form, const char *spec, struct filter *filter,
                        struct filter *filter16, struct error *error);
typedef bool taps_generator(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter);
typedef bool move_reader(const char *at, const char *end, struct move *move);
typedef bool point_writer(const struct point_words *words, FILE *text);

/* A word before a colon that begins filters with parameters. */
struct filter_form {
    const char *form;    /* for --list, such as "gaussian:SIGMA" */
    const char *summary; /* for --list */
    const char *title;   /* its filters' title; NULL if `make` has its own */
    const char *usage;   /* what an error says after a colon of wrong parameters; NULL if `make` has its own */
    form_maker *make;
    taps_generator *generate; /* what filter_generate calls */
    int parameters, optional; /* how many it takes; how many of them, the last ones, may be missing: 0 then */
    bool has_filter16;        /* its filter for samples of more than 8 bits is another one, unless it is exact */
    move_reader *read;        /* what filter_make_move calls; NULL for `cover`, which is two filters */
    point_writer *write;      /* what filter_make_point calls */
};

/* All words. A row of NULL ends them. */
#define FORM_COUNT 35
extern const struct filter_form filter_forms[FORM_COUNT + 1];

/* The row of filter_forms whose word is the first LENGTH bytes of SPEC; NULL if there is none. */
const struct filter_form *form_find(const char *spec, size_t length);

/* Set *WIDTH and *HEIGHT, a picture's, to those of the result. Fails if the filter does not take such a picture. ERROR
 * may be NULL. */
bool filter_resize(const struct filter *filter, int *width, int *height, struct error *error);

/* Does FILTER resize by the rule of Pillow, which is for samples of 8 bits? */
bool filter_is_pillow(const struct filter *filter);

/* How many times, 0 to 3, a decoder may halve the sides of a picture of WIDTH x HEIGHT, rounded up, before FILTER is
 * applied as the first one. Each side keeps at least twice what FILTER makes of it. */
int filter_shrink(const struct filter *filter, int width, int height);

/* Where the result of STEP_MOVE begins in a picture of WIDTH x HEIGHT that it takes. */
struct origin filter_origin(const struct filter *filter, int width, int height);

/* The multiply-adds of both passes of STEP_RESIZE. */
struct resize_work {
    double columns, rows;
};

/* The work for a plane of WIDTH x HEIGHT: the columns of the picture are summed for the new rows, and then these
 * rows. */
struct resize_work filter_resize_work(const struct filter *filter, int width, int height);

/* Is a picture of that size left as it is, because it is smaller than the result and the filter does not enlarge? */
bool filter_resize_stays(const struct filter *filter, int width, int height);

/* The word for COMBINE in a filter file. */
const char *combine_name(enum combine combine);

/* The sums of COUNT taps, and of their absolute values. */
int64_t taps_sum(const int32_t *taps, int count);
int64_t taps_absolute_sum(const int32_t *taps, int count);

/* The number of grids: 1 or 2. */
int filter_grids(const struct filter *filter);

/* The number of taps that are not zero, in all grids. */
int filter_tap_count(const struct filter *filter);

/* Are all taps 0? */
bool filter_is_zero(const struct filter *filter);

/* Is it a column times a row, or has it no taps? */
bool filter_is_separable(const struct filter *filter);

/* The number of multiply-adds for an output, without any tricks: those of all grids, or of both passes. 2 without
 * taps. */
int filter_multiply_adds(const struct filter *filter);

/* How many times as bright the filter makes a picture, if its text has several taps that sum to 2 or more, and no
 * scale, as textbooks print kernels. Otherwise 0. */
double filter_brightness(const struct filter *filter);

/* Does the filter only move the picture, or leave it as it is? Then its only tap that is not zero equals the scale. */
bool filter_is_shift(const struct filter *filter);

/* Are all taps 1, of one grid, or of two passes whose row sums are not rounded? Then sums are those of a rectangle. */
bool filter_is_box(const struct filter *filter);

/* Do both make the same of all levels, as far as their points say? */
bool point_curve_equal(const struct point_curve *a, const struct point_curve *b);

/* Does each row of the matrix weigh its own channel only? Then levels need no sum. */
bool point_is_diagonal(const struct point *point);

/* Do the samples of an image of CHANNELS, and of BITS, all go through one table? Floats have none for a matrix. */
bool filter_is_flat(const struct filter *filter, int channels, int bits);

/* Does STEP_POINT read or change alpha? */
bool filter_uses_alpha(const struct filter *filter);

/* Does it make colours of a grey pixel? */
bool filter_makes_colours(const struct filter *filter);

/* Does it make grey of all colours, everywhere? */
bool filter_makes_grey(const struct filter *filter);

/* The level of 16 bits that CURVE, which has points, makes of LEVEL. */
uint16_t point_curve_level(const struct point_curve *curve, uint16_t level);

/* Is the filter square, of an odd size, with its anchor in the centre? */
bool filter_is_centred_square(const struct filter *filter);

/* What a window of the filter is made of, after its size: "taps, separable", or "pixels" if it has no taps. */
const char *filter_window_name(const struct filter *filter);

/* Print the text of --show: name, size, anchor, scale, sum, exactness and separability or `combine`, then the grids of
 * taps. */
void filter_describe(FILE *stream, const struct filter *filter);

/* Print the same as a JSON object: the taps row by row, then those of the second grid. */
void filter_print_json(FILE *file, const struct filter *filter);

#ifdef __cplusplus
}
#endif

#endif
