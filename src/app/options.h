/* SPDX-License-Identifier: MIT
 *
 * The command line: argv becomes struct options. The parser, --help and the short usage use the same table of options.
 * Nothing here exits, and only help_print prints. Files are looked at only to find out what a wrong word means. */
#ifndef GPUCONV_OPTIONS_H
#define GPUCONV_OPTIONS_H

#include "base/error.h"
#include "batch/batch.h"
#include "batch/file_list.h"
#include "batch/job.h"
#include "batch/journal.h"
#include "batch/shard.h"
#include "bench/bench.h"
#include "compare/compare.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the user asks for. */
enum mode {
    MODE_RUN, /* FILTER INPUT OUTPUT, or FILTER INPUT... to a folder or in place */
    MODE_COMPARE,
    MODE_DIGEST,
    MODE_JOBS,
    MODE_LIST,
    MODE_LIST_VARIANTS,
    MODE_LIST_CODECS,
    MODE_LIST_BENCH_FILTERS,
    MODE_SHOW,
    MODE_BENCH,
    MODE_CONFORMANCE,
    MODE_DEVICES,
    MODE_HELP,
    MODE_VERSION,
    MODE_NOTHING, /* no arguments at all */
};

/* More options than the table has rows. */
enum { OPTIONS_MAX = 128 };

/* More GPUs than a machine has. */
enum { DEVICES_MAX = 64 };

/* The GPUs of --device: all, or COUNT indices in LIST. Without --device, COUNT is 0. */
struct device_choice {
    int list[DEVICES_MAX];
    size_t count;
    bool all;
};

/* The options of --bench alone. */
struct bench_options {
    const char *filter; /* NULL for the default ones */
    struct bench_size sizes[BENCH_SIZES];
    size_t size_count; /* 0 for the default ones */
    int sample;        /* enum sample, or -1 for uint8 and float */
    uint64_t variants; /* 1 << row for each variant that --variant names, or 0 for all */
    bool csv;
};

/* The options of --compare alone. */
struct compare_options {
    struct compare_rules rules;          /* without its mask */
    const char *mask;                    /* or NULL */
    const char *junit, *html, *markdown; /* or NULL */
    bool new_fails, update, renews, removes;
};

/* The strings belong to argv. Many options set a field of a module's own settings. The mode fills in the fields that no
 * option sets. */
struct options {
    int mode;                        /* enum mode */
    bool given[OPTIONS_MAX];         /* for each row of the option table: was the option given? */
    const char *values[OPTIONS_MAX]; /* the values of these rows, as given; NULL for a flag */

    const char *filter; /* for MODE_RUN and MODE_SHOW; for MODE_DIGEST and MODE_JOBS it may be NULL */
    int threads;        /* CPU threads for one image; 0 if not given */
    bool flip, absolute;
    struct recipe recipe; /* without its chain; --backend or the named variant sets the choice */
    struct device_choice devices;
    struct job_settings job;
    struct list_request list;
    struct batch_request batch;
    struct shard shard; /* all files, if its count is 0 */
    const char *report; /* or NULL */

    bool tar;                                /* MODE_RUN of one archive, from INPUT to OUTPUT */
    bool images_only, keep_failed;           /* with `tar` */
    bool pair;                               /* MODE_RUN of one image, from INPUT to OUTPUT */
    const char *input, *output;              /* paths of the image or archive; MODE_CONFORMANCE: the vectors, or NULL */
    const char *expected, *actual, *picture; /* MODE_COMPARE: files, or folders; picture may be NULL */
    const char *check;                       /* MODE_DIGEST: a list of digests, or NULL to make one */
    const char *jobs_from;                   /* MODE_JOBS: the path of the lines */
    const char *word;                        /* MODE_HELP and MODE_LIST: what is asked about; or NULL */
    bool ordered;                            /* MODE_JOBS: answer in the order of the lines */
    struct compare_options compare;          /* MODE_COMPARE */
    struct bench_options bench;              /* MODE_BENCH */

    bool verbose, quiet;
    bool json;   /* the other modes answer in JSON */
    int help_of; /* MODE_HELP: the mode that was asked for before; MODE_BENCH, MODE_COMPARE, MODE_DIGEST and MODE_JOBS
                    have help of their own */
    char **operands; /* list.inputs points into it; options_free releases it */
};

/* Fill OPTIONS from argv. Check that the options agree, and that the operands fit the mode. All errors are usage
 * errors, except a lack of memory. */
bool options_parse(int argc, char *const argv[], struct options *options, struct error *error);

/* Check that the options about the backend agree, and let them choose it. */
bool options_check_backend(struct options *options, struct error *error);

/* How code names an option: by the field of struct options that it sets. */
#define OPTION(field) offsetof(struct options, field)

/* Was the option of that field given? As in options_given(options, OPTION(verbose)). */
bool options_given(const struct options *options, size_t field);

/* The name of the option that asks for MODE, which is not MODE_RUN or MODE_NOTHING. */
const char *options_mode_name(int mode);

/* The options that were given and can change a picture, as one would type them. Release it with free. NULL if there is
 * too little memory. */
char *options_text(const struct options *options);

/* Write to TEXT a hash of what decides which picture a run makes of another; reports call it the recipe. It is of the
 * values of the filters and options, not of their spelling: it does not matter whether a default is given, or which
 * file a filter comes from. Fails if there is not enough memory. */
bool options_hash(const struct options *options, const struct filter_chain *chain, char text[RECIPE_TEXT]);

/* Release OPTIONS, also after a failure of options_parse. */
void options_free(struct options *options);

/* Can an image be written to PATH? Without --format, its suffix must name a format. With OR_FOLDER, the error for a
 * name without a suffix suggests that it means a folder. */
bool options_check_suffix(const struct options *options, const char *path, bool or_folder, struct error *error);

/* Print the help about WORD, which is a topic or an option. Returns false if there is none. If WORD is NULL, print the
 * help of MODE, or the short help of at most 24 lines. A call without arguments prints the short help, too. */
bool help_print(FILE *file, int mode, const char *word);

/* Print the options whose text or words have WORD. Returns false if there is none. */
bool help_print_text(FILE *file, const char *word);

/* Print TEXT to the right of COLUMN columns that the line has already, and break it at spaces. */
void help_print_row(FILE *file, int column, const char *text);

#endif
