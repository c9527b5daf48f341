/* SPDX-License-Identifier: MIT
 *
 * The results of a comparison: one row for each pair of files, with its kind and its numbers, sorted by name. All
 * reports are made from these rows, and so is the update of the expected files. */
#ifndef GPUCONV_COMPARE_ROWS_H
#define GPUCONV_COMPARE_ROWS_H

#include "base/error.h"
#include "compare/compare.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thumbnails;

enum row_kind {
    ROW_EQUAL,      /* equal samples, or equal bytes of the files */
    ROW_CHANNELS,   /* equal, but for opaque alpha, or grey as three equal channels */
    ROW_TOLERATED,  /* different samples, but within the rules */
    ROW_DIFFERENT,  /* different samples or metadata */
    ROW_SHAPE,      /* different width, height or bits, or different channels if these are compared */
    ROW_MISSING,    /* there is an expected file, but no actual one */
    ROW_NEW,        /* there is an actual file, but no expected one */
    ROW_UNREADABLE, /* one of the files could not be read, or memory was too small; `problem` says why */
    ROW_MASK,       /* the mask could not be read, or has another size; `problem` says why */
    ROW_KINDS
};

/* A file of a row. */
struct row_file {
    char *path;           /* NULL if there is no file; "-" is standard input */
    const char *relative; /* the part of the path below the folder that the user named; the path of a lone file */
    uint64_t bytes;
    int width, height, channels, bits; /* the shape of the image; 0 if it was not inspected, or that failed */
    int orientation;                   /* the EXIF orientation, 1 to 8; 0 if metadata were not compared */
    unsigned other_content;            /* other contents of the file, as in container/other_content.h */
};

struct compare_row {
    const char *id;   /* the "id" of the row's line of JSON, as a JSON value; NULL if it has none */
    const char *name; /* the relative path: of the expected file or, if there is none, of the actual one */
    struct row_file expected, actual;
    struct row_file mask; /* the mask of this row alone; its path is NULL if there is none */
    enum row_kind kind;
    bool identical;                /* the bytes of both files are equal, so nothing was decoded */
    unsigned metadata_differ;      /* 1 << each part of the metadata in which they differ, if these are compared */
    struct difference difference;  /* set if the kind is at most ROW_DIFFERENT, unless the files are identical */
    uint64_t allowed;              /* the number of pixels that may be beyond the tolerance */
    unsigned beyond;               /* the limits that the images violate, as in compare_limits */
    char *picture;                 /* the path of the picture of the difference, or NULL if none was written */
    char *problem;                 /* a sentence or NULL; below ROW_UNREADABLE, why the picture was not written */
    bool may_retry;                /* a later run may not have the problem */
    struct thumbnails *thumbnails; /* NULL if the row has none */
    bool thumbnails_lost;          /* there was not enough memory for a thumbnail */
    double seconds;                /* the duration of the comparison of this pair */
};

struct compare_rows {
    struct compare_row *rows; /* sorted by name, byte by byte */
    size_t count;
    size_t counts[ROW_KINDS];    /* rows of each kind */
    size_t shown;                /* the number of rows with thumbnails */
    struct compare_row *unshown; /* neither this row nor a later one keeps thumbnails; NULL if no row does */
    bool no_work;                /* no shard has a pair to compare or, for an update, an image to accept */
};

/* "equal", "channels", "tolerated", "different", "shape", "missing", "new", "unreadable" or "mask". */
const char *row_kind_name(enum row_kind kind);

/* Add a row of zeros. NULL if there is not enough memory. */
struct compare_row *rows_add(struct compare_rows *rows);

/* Set the problem of a row to the text of ERROR. */
void row_set_problem(struct compare_row *row, const struct error *error);

/* Only the first rows by name have thumbnails: the size of the page is bounded, and the same in each run. */
enum { COMPARE_THUMBNAILS_MAX = 2000 };

/* Count ROW among the rows with thumbnails. If there are too many, release the thumbnails of the last of these rows. */
void rows_add_thumbnails(struct compare_rows *rows, struct compare_row *row);

/* Release the thumbnails, each from malloc; NULL is allowed. */
void thumbnails_free(struct thumbnails *thumbnails);

/* Release the memory of a row, or all rows. */
void row_free(struct compare_row *row);
void rows_free(struct compare_rows *rows);

enum update_step { UPDATE_REPLACED, UPDATE_ADDED, UPDATE_REMOVED, UPDATE_KEPT };

struct update_request {
    const char *expected, *actual;
    bool folders;    /* EXPECTED and ACTUAL are folders, not files */
    bool renews;     /* replace tolerated files, too */
    bool removes;    /* delete expected files that are missing */
    size_t file_max; /* the largest size of a file to copy, in bytes */
    /* Called for each step that is done. WHY is the reason of UPDATE_KEPT, else NULL. */
    void (*on_step)(void *context, enum update_step step, const struct compare_row *row, const char *why);
    /* Asked before each step. If it returns false, the update stops. */
    bool (*may_go_on)(void *context);
    void *context;
};

/* Copy actual files over the expected ones: the different and the new ones, and the tolerated ones if REQUEST renews
 * them. Each copy is atomic. Fails before the first step if a row has a problem or links lead a copy to the file of
 * another row, and at the first file that cannot be written. */
bool rows_update(const struct compare_rows *rows, const struct update_request *request, struct error *error);

#endif
