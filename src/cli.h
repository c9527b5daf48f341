/* SPDX-License-Identifier: MIT
 *
 * The command line: argv to struct options, and the texts of --help and of the short usage. One table of options is
 * behind all of them. Nothing here prints, exits or looks at a file. */
#ifndef GPUCONV_CLI_H
#define GPUCONV_CLI_H

#include "bench.h"
#include "codec.h"
#include "conv.h"
#include "error.h"
#include "image.h"
#include "pipeline.h"

#include <stdbool.h>

/* What was asked for. */
enum mode {
    MODE_RUN, /* FILTER INPUT OUTPUT */
    MODE_COMPARE,
    MODE_LIST,
    MODE_LIST_VARIANTS,
    MODE_SHOW,
    MODE_BENCH,
    MODE_DEVICES,
    MODE_HELP,
    MODE_VERSION,
    MODE_NOTHING, /* no arguments at all */
};

/* The strings are argv's. Numbers that choose from an enum are ints, so that the option table can set all alike. */
struct options {
    int mode;                                /* enum mode */
    const char *filter, *input, *output;     /* MODE_RUN; filter for MODE_SHOW too */
    const char *expected, *actual, *picture; /* MODE_COMPARE; picture may be NULL */

    int choice;                    /* enum choice: settled by --backend or by the named variant */
    const struct variant *variant; /* NULL: none was named */
    int device;                    /* -1: none was named */
    int border;                    /* enum border */
    int alpha;                     /* enum alpha */
    int format;                    /* enum format of OUTPUT; FORMAT_UNKNOWN: the input's */
    int quality;
    int threads; /* 0: as many as there are */
    bool flip, absolute, in_place, verbose, quiet;

    /* MODE_BENCH */
    const char *bench_filter; /* NULL: the default ones */
    struct bench_size bench_sizes[BENCH_SIZES];
    size_t bench_size_count; /* 0: the default ones */
    int bench_sample;        /* enum sample; -1: both */
    bool json, csv;
};

/* Fill OPTIONS from argv, check that they agree and that the files' names are possible. All errors are usage errors. */
bool cli_parse(int argc, char *const argv[], struct options *options, struct error *error);

/* The text of --help, to be released with free; NULL when there is no memory. */
char *cli_help(void);

/* What is printed when there are no arguments: a few lines. */
const char *cli_usage(void);

#endif
