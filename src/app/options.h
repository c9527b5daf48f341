/* SPDX-License-Identifier: MIT
 *
 * The command line: argv to struct options, and the texts of --help and of the short usage. One table of options is
 * behind all of them. Nothing here prints, exits or looks at a file. */
#ifndef GPUCONV_CLI_H
#define GPUCONV_CLI_H

#include "base/error.h"
#include "batch/shard.h"
#include "bench/bench.h"
#include "codec/codec.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "plan/border.h"
#include "variants/table.h"

#include <stdbool.h>

/* What was asked for. */
enum mode {
    MODE_RUN, /* FILTER INPUT OUTPUT */
    MODE_COMPARE,
    MODE_LIST,
    MODE_LIST_VARIANTS,
    MODE_LIST_CODECS,
    MODE_SHOW,
    MODE_BENCH,
    MODE_DEVICES,
    MODE_HELP,
    MODE_VERSION,
    MODE_NOTHING, /* no arguments at all */
};

/* No machine has as many GPUs. */
enum { DEVICES_MOST = 64 };

/* Which GPUs: LIST of COUNT indices, none of them named, or all there are. */
struct device_choice {
    int list[DEVICES_MOST];
    size_t count;
    bool all;
};

/* The bits a sample that images are filtered and written with. */
enum depth { DEPTH_INPUT, DEPTH_8, DEPTH_16 };

/* The strings are argv's. Numbers that choose from an enum are ints, so that the option table can set all alike. */
struct options {
    int mode;                                /* enum mode */
    const char *filter;                      /* MODE_RUN and MODE_SHOW */
    const char *input, *output;              /* MODE_RUN of one image */
    const char *expected, *actual, *picture; /* MODE_COMPARE; picture may be NULL */

    int choice;                    /* enum choice: settled by --backend or by the named variant */
    const struct variant *variant; /* NULL: none was named */
    struct device_choice devices;
    int border;                  /* enum border */
    int alpha;                   /* enum alpha */
    int depth;                   /* enum depth */
    const struct format *format; /* of OUTPUT; NULL: the input's */
    int quality;
    int compression;
    const struct codec *codec; /* NULL: none was named */
    size_t max_pixels;         /* of an image that is read; 0: no limit but the codecs' */
    int threads;               /* 0: as many as there are */
    bool flip, absolute, linear, in_place, verbose, quiet;
    bool strip;      /* carry no metadata */
    bool not_turned; /* keep the order of the samples, whatever EXIF says is up */
    bool of_bench;   /* MODE_HELP was asked for after MODE_BENCH */

    /* MODE_RUN of many images, or of one where `batch` is false. */
    bool batch;
    char **operands;     /* all of them; to be released with cli_free */
    char *const *inputs; /* among them: FILTER's followers */
    size_t input_count;
    const char *folder, *files_from, *suffix, *report; /* NULL: not given */
    bool recursive, null_separated, skip_existing, fail_fast;
    int jobs;           /* 0: one a processor */
    size_t memory;      /* bytes; 0: a quarter of the machine's */
    struct shard shard; /* count 0: all */

    /* MODE_BENCH */
    const char *bench_filter; /* NULL: the default ones */
    struct bench_size bench_sizes[BENCH_SIZES];
    size_t bench_size_count; /* 0: the default ones */
    int bench_sample;        /* enum sample; -1: uint8 and float */
    bool json, csv;
};

/* Fill OPTIONS from argv, check that they agree and that the files' names are possible. All errors are usage errors. */
bool cli_parse(int argc, char *const argv[], struct options *options, struct error *error);

/* Release what cli_parse has reserved, also after its failure. */
void cli_free(struct options *options);

/* The text of --help, or of --bench --help, to be released with free; NULL when there is no memory. */
char *cli_help(bool of_bench);

/* What is printed when there are no arguments: a few lines. */
const char *cli_usage(void);

#endif
