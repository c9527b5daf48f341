/* SPDX-License-Identifier: MIT
 *
 * Filters that are applied one after another. Nobody changes them, so all who use a chain share it. */
#ifndef GPUCONV_CHAIN_H
#define GPUCONV_CHAIN_H

#include "base/error.h"
#include "filter/filter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct filter_chain {
    atomic_int references;
    size_t count;
    const struct filter *filters; /* one allocation, which also has each filter16 */
};

/* Make a chain of COUNT FILTERS, which are one allocation. The chain owns them, and the caller has the first reference.
 * If there is too little memory, the function frees them and returns NULL. */
struct filter_chain *chain_make(struct filter *filters, size_t count, struct error *error);

/* Add a reference. CHAIN may be NULL. Any thread may call this. */
struct filter_chain *chain_keep(struct filter_chain *chain);

/* Release a reference, and free the chain with the last one. CHAIN may be NULL. Any thread may call this. */
void chain_release(struct filter_chain *chain);

/* A copy of the filters of CHAIN, each filter16 included, for chain_make. NULL if there is too little memory. */
struct filter *chain_copy_filters(const struct filter_chain *chain, struct error *error);

/* Does a filter need the colours of each picture? */
bool filter_needs_colours(const struct filter *filter);
bool chain_needs_colours(const struct filter_chain *chain);

/* A chain like CHAIN in which such filters have COLOURS, which may be NULL, and a matrix of these WEIGHTS over SCALE,
 * unless SCALE is 0. NULL if there is too little memory. */
struct filter_chain *chain_set_colours(const struct filter_chain *chain, struct colours *colours, int32_t weights[3][3],
                                       int32_t scale, struct error *error);

/* What filters have made of a picture's geometry. */
struct geometry {
    int width, height;
    double horizontal, vertical; /* columns and rows for one of the picture, as far as it was resized */
    bool is_turned;              /* its rows have become columns, and its columns rows */
    bool is_moved;               /* what was somewhere in the picture may be elsewhere */
    bool is_cut;                 /* a region reaches beyond the picture */
    bool is_not_enlarged;        /* a resize has left it as it is: filter_resize_stays */
};

/* Set GEOMETRY to that of the result for a picture of WIDTH x HEIGHT. Fails if a filter does not take it. */
bool chain_geometry(const struct filter_chain *chain, int width, int height, struct geometry *geometry,
                    struct error *error);

/* Set *WIDTH and *HEIGHT, a picture's, to those of the result. Fails if a filter does not take such a picture. ERROR
 * may be NULL. */
bool chain_resize(const struct filter_chain *chain, int *width, int *height, struct error *error);

/* Set *WORKING to the channels that an image of a file with CHANNELS has in the filters, and *RESULT to those of the
 * result. Grey becomes three equal colours, before the first filter, for one that makes colours of it: then a filter
 * that pads has its colour, not the grey of that. The result is grey if all its colours
 * are equal, after a matrix that makes them so. */
void chain_channels(const struct filter_chain *chain, int channels, int *working, int *result);

/* The part of the result of filter NUMBER, of WIDTH x HEIGHT, that the next filters need: less than all if it resizes
 * or moves, and if the next filter moves, without a turn. A crop may leave little of a picture that was enlarged. */
struct rectangle chain_needs(const struct filter_chain *chain, size_t number, int width, int height);

#endif
