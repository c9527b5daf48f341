/* SPDX-License-Identifier: MIT
 *
 * A filter is the weights, held as integer taps: out = clamp(round((sum of q*in) / scale + offset)), with
 * round(x) = floor(x + 1/2). This file reads filters from text, makes the parametric ones, finds them by
 * name, factors them and describes them. It knows nothing of images or devices.
 *
 * The text of a filter:
 *
 *     # a comment
 *     title one line that --list shows
 *     scale 16          # the divisor, default 1; any number but 0
 *     offset 128        # added after the division, default 0
 *     abs               # take the sum's absolute value first
 *     anchor 1 1        # column and row of the tap over the pixel, default width/2 height/2
 *     1 2 1
 *     2 4 2             # rows of taps: integers, decimals, fractions such as 1/16
 *     1 2 1
 *
 * or a libvips matrix: `WIDTH HEIGHT [SCALE [OFFSET]]` on the first line, then HEIGHT rows of WIDTH taps.
 *
 * A filter may hold two grids of one size, with a line `---` in between, and says before the first how their sums s1
 * and s2 become one, C: out = clamp(floor(C / scale + offset + 1/2)). It gives the strength of edges, for example:
 *
 *     combine magnitude # sqrt(s1^2 + s2^2); or max: max(|s1|, |s2|); or sum: |s1| + |s2|
 *     -1 1
 *      0 0
 *     ---
 *     -1 0
 *      1 0 */
#ifndef GPUCONV_FILTER_H
#define GPUCONV_FILTER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Taps in one direction, at most. 127 x 127 taps of 4 bytes are 64,516 bytes: the most that CUDA's 64 KB of constant
 * memory hold. */
#define FILTER_MAX 127

/* sum|q| * 255 must stay below 2^31, so that every sum of taps times 8-bit samples fits in 32 bits: 8,421,504. It is
 * the sum over both grids, where there are two: then |s1| + |s2| fits too, and with it every C. */
#define FILTER_MAX_SUM (INT32_MAX / 255)

/* The longest filter file that is read, in bytes: 127 rows of 127 taps of 60 characters. */
#define FILTER_MAX_TEXT ((size_t)1 << 20)

/* How the sums of two grids become one. */
enum combine {
    COMBINE_NONE, /* there is one grid */
    COMBINE_MAGNITUDE,
    COMBINE_MAX,
    COMBINE_SUM,
    COMBINE_COUNT
};

/* Levels of an 8-bit output. */
#define FILTER_LEVELS 256

struct filter {
    char name[128];  /* how the user called it */
    char title[128]; /* what it does, in a few words; may be empty */
    int width, height;
    int anchor_x, anchor_y; /* 0 <= anchor_x < width, 0 <= anchor_y < height */

    enum combine combine;
    int32_t taps[2 * FILTER_MAX * FILTER_MAX]; /* q, row by row, width taps a row; then those of the second grid */
    int32_t scale;                             /* D, 1 to 2^30 */
    double offset;                             /* O, for messages and float planes */
    int64_t bias;                              /* floor(D * (O + 1/2)), exact: out = clamp(floor((sum + bias) / D)) */
    int64_t bias16; /* the same of 16-bit samples, whose levels are 257 times as fine: floor(D * (257 * O + 1/2)) */
    int64_t offset_numerator, offset_denominator; /* O, exact; where there are two grids, a denominator up to 2^20 */
    bool absolute;                                /* the sum's absolute value is taken before the bias is added */

    /* Of COMBINE_MAGNITUDE: the least s1^2 + s2^2 whose output is at least the level n, exact; those that no sums reach
     * are INT64_MAX. The output is the greatest n with steps[n] <= s1^2 + s2^2. */
    int64_t steps[FILTER_LEVELS];

    int64_t tap_sum;      /* sum of q, of the first grid */
    int64_t absolute_sum; /* sum of |q| over both grids, at most FILTER_MAX_SUM */
    bool exact;           /* the taps are held exactly; if not, they were rounded once */
    double largest_error; /* the most that the rounding can move an output before it is rounded, in levels of 255 */

    bool separable; /* taps[y][x] = column[y] * row[x], exactly; never where there are two grids */
    int32_t column[FILTER_MAX], row[FILTER_MAX];
};

/* The filters that the build puts into the binary, sorted by name; filters/embed.py writes them. */
struct builtin_filter {
    const char *name;
    const char *text;
    size_t size; /* of the text, without its final 0 */
};
extern const struct builtin_filter builtin_filters[];
extern const size_t builtin_filter_count;

/* Read a filter from SIZE bytes of text; NAME becomes filter->name. An error's subject is "NAME:LINE:COLUMN", and its
 * sentence says what was expected there; where the error has no place in the text, the subject is NAME. */
bool filter_parse(const char *text, size_t size, const char *name, struct filter *filter, struct error *error);

/* Make the filter that SPEC names: a parametric one (`gaussian:2.5`), a path (it has a slash, or such a file exists and
 * no filter has that name), or a name, looked up first in the folders of the search path, as DIR/NAME.txt, then among
 * the built-in ones. The search path is $GPUCONV_FILTERS (folders joined by colons), then
 * $XDG_CONFIG_HOME/gpuconv/filters or ~/.config/gpuconv/filters, then the installed folder. */
bool filter_find(const char *spec, struct filter *filter, struct error *error);

/* Split a FILTER argument at its commas and find each. *FILTERS is one allocation of *COUNT, to be released with free.
 * An argument that is itself an existing file's path is one filter, commas or not. */
bool filter_find_all(const char *argument, struct filter **filters, size_t *count, struct error *error);

/* Turn the taps of each grid by 180 degrees, anchor included, so that correlation with the result is true convolution
 * with the original. */
void filter_flip(struct filter *filter);

/* The names of all filters that filter_find knows, built in or on the search path, sorted, each once. *NAMES is one
 * allocation, to be released with free. */
bool filter_names(char ***names, size_t *count, struct error *error);

/* The forms of the parametric filters, for help: pairs of form ("gaussian:SIGMA") and title, ended by NULL. */
extern const char *const filter_forms[][2];

/* The word for it in a filter file. */
const char *combine_name(enum combine combine);

/* How many grids the filter has: 1 or 2. */
int filter_grids(const struct filter *filter);

/* How many taps are not zero, in all grids. */
int filter_tap_count(const struct filter *filter);

/* Is it square, of an odd size, with its anchor in the centre? */
bool filter_is_centred_square(const struct filter *filter);

/* What --show prints: name, size, anchor, scale, sum, exact or rounded, separable or not, and the taps as a grid, or
 * how the grids' sums are combined, and both grids.
 * The text is to be released with free; NULL when there is no memory. */
char *filter_describe(const struct filter *filter);

#ifdef __cplusplus
}
#endif

#endif
