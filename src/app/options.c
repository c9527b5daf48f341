/* SPDX-License-Identifier: MIT
 *
 * The command line. Parsing, --help and the suggestion of the nearest name all walk one table; an option is one row of
 * it and one field of struct options. */
#include "app/options.h"

#include "base/file.h"
#include "base/text.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT"

enum group { GROUP_FILTER, GROUP_BACKEND, GROUP_FILE, GROUP_MANY, GROUP_TALK, GROUP_QUERY, GROUP_BENCH, GROUP_COUNT };

/* What an option's value is, and so what its field holds. */
enum kind {
    KIND_FLAG,    /* no value; a bool becomes true */
    KIND_MODE,    /* no value; an int becomes `low` */
    KIND_NUMBER,  /* an int from low to high */
    KIND_WORD,    /* one of the words; an int, where low is the first word's value */
    KIND_FORMAT,  /* one of the words; a row of the table of formats */
    KIND_VARIANT, /* a variant's name; a pointer to its row */
    KIND_CODEC,   /* a codec's */
    KIND_SHOW,    /* the FILTER of --show; sets the mode too */
    KIND_TEXT,    /* anything; a string */
    KIND_SIZES,   /* sizes for the benchmark */
    KIND_DEVICES, /* indices of GPUs */
    KIND_MEMORY,  /* a number of bytes; a size_t */
    KIND_PIXELS,  /* a number of pixels; a size_t */
    KIND_SHARD,   /* one part of many; a struct shard */
};

struct option {
    const char *name; /* without its dashes */
    char letter;      /* 0: none. A value follows in the same argument (-j4) or the next. */
    const char *argument;
    enum group group;
    const char *help; /* NULL: another option's says it */
    enum kind kind;
    size_t field;
    int low, high;
    const char *(*word)(int value); /* the word for a value; NULL beyond the last */
};

static const char *choice_word(int value)
{
    static const char *const words[] = {[CHOICE_AUTO] = "auto", [CHOICE_CUDA] = "cuda", [CHOICE_CPU] = "cpu"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *border_word(int value)
{
    return value < BORDER_COUNT ? border_name((enum border)value) : NULL;
}

static const char *alpha_word(int value)
{
    static const char *const words[] = {
        [ALPHA_KEEP] = "keep", [ALPHA_PREMULTIPLY] = "premultiply", [ALPHA_FILTER] = "filter"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *depth_word(int value)
{
    static const char *const words[] = {[DEPTH_8] = "8", [DEPTH_16] = "16"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *format_word(int value)
{
    size_t count;
    const struct format *table = formats(&count);
    return value < (int)count ? table[value].suffixes[0] : NULL;
}

static const char *sample_word(int value)
{
    return value < SAMPLE_COUNT ? sample_name((enum sample)value) : NULL;
}

#define FIELD(name) offsetof(struct options, name)

static const struct option table[] = {
    {"border", 0, "BORDER", GROUP_FILTER, "outside", KIND_WORD, FIELD(border), 0, 0, border_word},
    {"alpha", 0, "MODE", GROUP_FILTER, "the alpha channel", KIND_WORD, FIELD(alpha), 0, 0, alpha_word},
    {"flip", 0, NULL, GROUP_FILTER, "turn the taps by 180 degrees: true convolution", KIND_FLAG, FIELD(flip), 0, 0,
     NULL},
    {"abs", 0, NULL, GROUP_FILTER, "take the absolute value of each sum", KIND_FLAG, FIELD(absolute), 0, 0, NULL},
    {"linear", 0, NULL, GROUP_FILTER, "filter in linear light, taking samples as sRGB", KIND_FLAG, FIELD(linear), 0, 0,
     NULL},

    {"backend", 0, "BACKEND", GROUP_BACKEND, "where to work", KIND_WORD, FIELD(choice), 0, 0, choice_word},
    {"variant", 0, "NAME", GROUP_BACKEND, "how to convolve, and so where: see --list-variants", KIND_VARIANT,
     FIELD(variant), 0, 0, NULL},
    /* The bound only keeps a number short. */
    {"device", 0, "N", GROUP_BACKEND, "the GPU, or a list, or all; see --devices (default 0)", KIND_DEVICES,
     FIELD(devices), 0, 999, NULL},
    /* More threads than any machine has processors bring nothing and can exhaust the system. */
    {"threads", 0, "N", GROUP_BACKEND, "threads of the CPU for an image (default all)", KIND_NUMBER, FIELD(threads), 1,
     1024, NULL},

    {"format", 0, "FORMAT", GROUP_FILE, "to write, if not what the suffix says", KIND_FORMAT, FIELD(format), 0, 0,
     format_word},
    {"depth", 0, "BITS", GROUP_FILE, "of a sample, if not the input's", KIND_WORD, FIELD(depth), DEPTH_8, 0,
     depth_word},
    {"quality", 0, "N", GROUP_FILE, "quality of a JPEG, 1 to 100", KIND_NUMBER, FIELD(quality), 1, 100, NULL},
    {"compression", 0, "N", GROUP_FILE, "effort for a PNG, 0 (none) to 9", KIND_NUMBER, FIELD(compression), 0, 9, NULL},
    {"codec", 0, "NAME", GROUP_FILE, "how to read and write files: see --list-codecs", KIND_CODEC, FIELD(codec), 0, 0,
     NULL},
    {"max-pixels", 0, "N", GROUP_FILE, "refuse images of more pixels, such as 50M", KIND_PIXELS, FIELD(max_pixels), 0,
     0, NULL},
    {"strip", 0, NULL, GROUP_FILE, "carry no metadata (profile, EXIF, text)", KIND_FLAG, FIELD(strip), 0, 0, NULL},
    {"no-orient", 0, NULL, GROUP_FILE, "do not turn pictures upright", KIND_FLAG, FIELD(not_turned), 0, 0, NULL},
    {"in-place", 0, NULL, GROUP_FILE, "replace the INPUTs", KIND_FLAG, FIELD(in_place), 0, 0, NULL},

    {"output", 'o', "DIR", GROUP_MANY, "write to this folder, under the same names", KIND_TEXT, FIELD(folder), 0, 0,
     NULL},
    {"recursive", 'r', NULL, GROUP_MANY, "look into folders' folders, and keep the tree", KIND_FLAG, FIELD(recursive),
     0, 0, NULL},
    {"files-from", 0, "FILE", GROUP_MANY, "more INPUTs, one a line", KIND_TEXT, FIELD(files_from), 0, 0, NULL},
    {"null", '0', NULL, GROUP_MANY, "in --files-from they end in NULs, not in lines", KIND_FLAG, FIELD(null_separated),
     0, 0, NULL},
    {"suffix", 0, "TEXT", GROUP_MANY, "add this to each name: a.png, a-blur.png", KIND_TEXT, FIELD(suffix), 0, 0, NULL},
    {"skip-existing", 0, NULL, GROUP_MANY, "go on where an earlier run was stopped", KIND_FLAG, FIELD(skip_existing), 0,
     0, NULL},
    {"jobs", 'j', "N", GROUP_MANY, "images at a time (default: one a processor)", KIND_NUMBER, FIELD(jobs), 1, 1024,
     NULL},
    {"memory", 0, "SIZE", GROUP_MANY, "to stay below, such as 4G (default: a quarter)", KIND_MEMORY, FIELD(memory), 0,
     0, NULL},
    {"shard", 0, "I/N", GROUP_MANY, "the I-th of N equal parts, or auto: this process' one", KIND_SHARD, FIELD(shard),
     0, 0, NULL},
    {"report", 0, "FILE", GROUP_MANY, "append a JSON object a file, a line each", KIND_TEXT, FIELD(report), 0, 0, NULL},
    {"fail-fast", 0, NULL, GROUP_MANY, "stop at the first file that fails", KIND_FLAG, FIELD(fail_fast), 0, 0, NULL},

    {"verbose", 'v', NULL, GROUP_TALK, "say what was chosen, why, and how long it took", KIND_FLAG, FIELD(verbose), 0,
     0, NULL},
    {"quiet", 'q', NULL, GROUP_TALK, "no warnings, no progress, no summary", KIND_FLAG, FIELD(quiet), 0, 0, NULL},
    {"help", 'h', NULL, GROUP_TALK, "this text", KIND_MODE, FIELD(mode), MODE_HELP, 0, NULL},
    {"version", 0, NULL, GROUP_TALK, "the version, and whether it was built with CUDA", KIND_MODE, FIELD(mode),
     MODE_VERSION, 0, NULL},

    {"list", 0, NULL, GROUP_QUERY, "the filters", KIND_MODE, FIELD(mode), MODE_LIST, 0, NULL},
    {"list-variants", 0, NULL, GROUP_QUERY, "the variants", KIND_MODE, FIELD(mode), MODE_LIST_VARIANTS, 0, NULL},
    {"list-codecs", 0, NULL, GROUP_QUERY, "the codecs", KIND_MODE, FIELD(mode), MODE_LIST_CODECS, 0, NULL},
    {"show", 0, "FILTER", GROUP_QUERY, "the taps of FILTER and what is known about it", KIND_SHOW, FIELD(filter), 0, 0,
     NULL},
    {"devices", 0, NULL, GROUP_QUERY, "the GPUs", KIND_MODE, FIELD(mode), MODE_DEVICES, 0, NULL},
    {"compare", 0, NULL, GROUP_QUERY, "EXPECTED ACTUAL [DIFF.png]: exit status 1 if not equal", KIND_MODE, FIELD(mode),
     MODE_COMPARE, 0, NULL},

    {"bench", 0, NULL, GROUP_QUERY, "check, then time, every variant: see --bench --help", KIND_MODE, FIELD(mode),
     MODE_BENCH, 0, NULL},
    {"bench-size", 0, "SIZES", GROUP_BENCH, "WIDTHxHEIGHT or WIDTHxHEIGHTxPLANES, by commas", KIND_SIZES,
     FIELD(bench_sizes), 0, 0, NULL},
    {"bench-filter", 0, "NAME", GROUP_BENCH, "filters (default random ones, 3x3 to 31x31)", KIND_TEXT,
     FIELD(bench_filter), 0, 0, NULL},
    {"bench-sample", 0, "TYPE", GROUP_BENCH, "instead of uint8 and float", KIND_WORD, FIELD(bench_sample), 0, 0,
     sample_word},
    {"json", 0, NULL, GROUP_BENCH, "print JSON instead of a table", KIND_FLAG, FIELD(json), 0, 0, NULL},
    {"csv", 0, NULL, GROUP_BENCH, "print CSV instead of a table", KIND_FLAG, FIELD(csv), 0, 0, NULL},
};

enum { OPTIONS = sizeof table / sizeof *table };

static const struct options defaults = {
    .mode = MODE_RUN,
    .choice = CHOICE_AUTO,
    .border = BORDER_REPLICATE,
    .alpha = ALPHA_KEEP,
    .depth = DEPTH_INPUT,
    .quality = CODEC_QUALITY,
    .compression = CODEC_COMPRESSION,
    .bench_sample = -1,
};

/* The option of that name of LENGTH characters, or NULL. */
static const struct option *find_name(const char *name, size_t length)
{
    for (const struct option *o = table; o < table + OPTIONS; o++)
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

static const struct option *find_letter(char letter)
{
    for (const struct option *o = table; o < table + OPTIONS; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

/* The option that was most probably meant by WORD, or NULL. */
static const char *nearest_option(const char *word)
{
    const char *names[OPTIONS];
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = table[i].name;
    return error_nearest(word, names, OPTIONS);
}

static bool unknown_name(const char *argument, size_t length, struct error *error)
{
    char word[64]; /* longer than any option's name; what is cut off makes no name nearer */
    snprintf(word, sizeof word, "%.*s", (int)length - 2, argument + 2);
    const char *nearest = nearest_option(word);
    if (nearest != NULL)
        return error_set(error, ERROR_USAGE, "unknown option %.*s; did you mean --%s?", (int)length, argument, nearest);
    return error_set(error, ERROR_USAGE, "unknown option %.*s; gpuconv --help lists all", (int)length, argument);
}

static bool unknown_letter(const char *argument, char letter, struct error *error)
{
    const char *nearest = strlen(argument) > 2 ? nearest_option(argument + 1) : NULL;
    if (nearest != NULL)
        return error_set(error, ERROR_USAGE, "unknown option %s; did you mean --%s?", argument, nearest);
    if (strlen(argument) > 2)
        return error_set(error, ERROR_USAGE, "unknown option -%c in %s; gpuconv --help lists all", letter, argument);
    return error_set(error, ERROR_USAGE, "unknown option -%c; gpuconv --help lists all", letter);
}

/* Write the words of an option as "a, b or c" to TEXT. */
static void join_words(const struct option *o, char *text, size_t size)
{
    size_t used = 0;
    for (int i = o->low; o->word(i) != NULL && used < size; i++) {
        const char *joint = i == o->low ? "" : o->word(i + 1) != NULL ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", joint, o->word(i));
    }
}

static bool take_word(const struct option *o, const char *value, int *field, struct error *error)
{
    const char *words[16]; /* no option has as many */
    size_t count = 0;
    for (int i = o->low; o->word(i) != NULL && count < sizeof words / sizeof *words; i++) {
        if (strcmp(o->word(i), value) == 0) {
            *field = i;
            return true;
        }
        words[count++] = o->word(i);
    }
    char text[256];
    join_words(o, text, sizeof text);
    /* Of three letters one always may be wrong: "gpu" is not a mistyped "cpu". */
    const char *nearest = strlen(value) > 3 ? error_nearest(value, words, count) : NULL;
    if (nearest != NULL)
        return error_set(error, ERROR_USAGE, "--%s takes %s, not \"%s\"; did you mean %s?", o->name, text, value,
                         nearest);
    return error_set(error, ERROR_USAGE, "--%s takes %s, not \"%s\"", o->name, text, value);
}

static bool take_format(const struct option *o, const char *value, const struct format **field, struct error *error)
{
    size_t count;
    int row;
    if (!take_word(o, value, &row, error))
        return false;
    *field = &formats(&count)[row];
    return true;
}

static bool take_number(const struct option *o, const char *value, int *field, struct error *error)
{
    const size_t digits = strspn(value, "0123456789");
    /* Nine digits fit in an int. */
    const int number = digits > 0 && digits <= 9 && value[digits] == '\0' ? atoi(value) : -1;
    if (number < o->low || number > o->high)
        return error_set(error, ERROR_USAGE, "--%s takes a number from %d to %d, not \"%s\"", o->name, o->low, o->high,
                         value);
    *field = number;
    return true;
}

/* GPUs: "all", or their indices, joined by commas. */
static bool take_devices(const struct option *o, const char *value, struct device_choice *devices, struct error *error)
{
    *devices = (struct device_choice){.all = strcmp(value, "all") == 0};
    const char *at = value;
    while (!devices->all) {
        const size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > 3 || (at[digits] != ',' && at[digits] != '\0') || devices->count == DEVICES_MOST)
            return error_set(error, ERROR_USAGE,
                             "--%s takes all, or numbers from %d to %d joined by commas, not \"%s\"", o->name, o->low,
                             o->high, value);
        const int number = atoi(at);
        for (size_t i = 0; i < devices->count; i++)
            if (devices->list[i] == number)
                return error_set(error, ERROR_USAGE, "--%s names GPU %d twice; name it once", o->name, number);
        devices->list[devices->count++] = number;
        if (at[digits] == '\0')
            break;
        at += digits + 1;
    }
    return true;
}

/* A number above 0, or that of so many thousands, millions ..., where a thousand is BASE: K, M, G, T. 0 where it is
 * not, or too large. */
static size_t parse_count(const char *value, size_t base)
{
    static const char units[] = "KMGT";
    const size_t digits = strspn(value, "0123456789");
    const char *unit = value[digits] != '\0' ? strchr(units, value[digits]) : NULL;
    size_t count = digits > 0 && digits <= 18 ? (size_t)atoll(value) : 0; /* eighteen digits fit in 64 bits */
    bool fits = (unit != NULL ? value[digits + 1] : value[digits]) == '\0';
    for (const char *u = units; fits && unit != NULL && u <= unit; u++)
        fits = !__builtin_mul_overflow(count, base, &count);
    return fits ? count : 0;
}

static bool take_memory(const struct option *o, const char *value, size_t *field, struct error *error)
{
    *field = parse_count(value, 1024);
    if (*field == 0)
        return error_set(error, ERROR_USAGE, "--%s takes a number of bytes, such as 800M or 4G, not \"%s\"", o->name,
                         value);
    return true;
}

/* It can only lower the limit that there is. Pixels are counted in millions, as those of cameras are. */
static bool take_pixels(const struct option *o, const char *value, size_t *field, struct error *error)
{
    *field = parse_count(value, 1000);
    if (*field == 0 || *field > CODEC_MAX_SAMPLES)
        return error_set(error, ERROR_USAGE,
                         "--%s takes a number of pixels up to %zu, such as 50M for 50 million, not \"%s\"", o->name,
                         CODEC_MAX_SAMPLES, value);
    return true;
}

static const char *mode_option(int mode)
{
    if (mode == MODE_SHOW)
        return "show";
    for (const struct option *o = table; o < table + OPTIONS; o++)
        if (o->kind == KIND_MODE && o->low == mode)
            return o->name;
    return NULL;
}

/* Who asks for help after another question gets help. */
static bool take_mode(struct options *options, int mode, struct error *error)
{
    if (options->mode != MODE_RUN && options->mode != mode && mode != MODE_HELP && mode != MODE_VERSION)
        return error_set(error, ERROR_USAGE, "--%s and --%s are two different questions; ask one at a time",
                         mode_option(options->mode), mode_option(mode));
    options->of_bench = options->mode == MODE_BENCH; /* help */
    options->mode = mode;
    return true;
}

/* Put the value of an option, NULL where it takes none, into its field. */
static bool take(const struct option *o, const char *value, struct options *options, struct error *error)
{
    void *field = (char *)options + o->field;
    assert(value != NULL || o->argument == NULL);
    assert((o->argument == NULL) == (o->kind == KIND_FLAG || o->kind == KIND_MODE));
    switch (o->kind) {
    case KIND_FLAG:
        *(bool *)field = true;
        return true;
    case KIND_MODE:
        return take_mode(options, o->low, error);
    case KIND_NUMBER:
        return take_number(o, value, field, error);
    case KIND_WORD:
        return take_word(o, value, field, error);
    case KIND_FORMAT:
        return take_format(o, value, field, error);
    case KIND_VARIANT:
        options->variant = variant_find(value, error);
        return options->variant != NULL;
    case KIND_CODEC:
        options->codec = codec_find(value, error);
        return options->codec != NULL;
    case KIND_SHOW:
        options->filter = value;
        return take_mode(options, MODE_SHOW, error);
    case KIND_TEXT:
        *(const char **)field = value;
        return true;
    case KIND_SIZES:
        return bench_parse_sizes(value, field, &options->bench_size_count, error);
    case KIND_DEVICES:
        return take_devices(o, value, field, error);
    case KIND_MEMORY:
        return take_memory(o, value, field, error);
    case KIND_PIXELS:
        return take_pixels(o, value, field, error);
    case KIND_SHARD:
        return shard_parse(value, field, error);
    }
    return false;
}

/* Take argv[*i], a long option, and the argument after it where that is its value. */
static bool parse_long(int argc, char *const argv[], int *i, struct options *options, struct error *error)
{
    const char *argument = argv[*i];
    const size_t length = strcspn(argument, "=");
    const struct option *o = find_name(argument + 2, length - 2);
    if (o == NULL)
        return unknown_name(argument, length, error);

    const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
    if (o->argument == NULL && value != NULL)
        return error_set(error, ERROR_USAGE, "--%s takes no value, but \"%s\" was given", o->name, value);
    if (o->argument != NULL && value == NULL) {
        if (*i + 1 == argc)
            return error_set(error, ERROR_USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->argument);
        value = argv[++*i];
    }
    return take(o, value, options, error);
}

/* Take argv[*i], a bundle of letters, and the argument after it where that is the value of the last. */
static bool parse_letters(int argc, char *const argv[], int *i, struct options *options, struct error *error)
{
    const char *argument = argv[*i];
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct option *o = find_letter(*letter);
        if (o == NULL)
            return unknown_letter(argument, *letter, error);
        if (o->argument == NULL) {
            if (!take(o, NULL, options, error))
                return false;
            continue;
        }
        if (letter[1] == '\0' && *i + 1 == argc)
            return error_set(error, ERROR_USAGE, "-%c needs a value: -%c %s", *letter, *letter, o->argument);
        return take(o, letter[1] != '\0' ? letter + 1 : argv[++*i], options, error);
    }
    return true;
}

/* --variant settles the backend; what is asked for beside it must agree. */
static bool settle_backend(struct options *options, struct error *error)
{
    const struct variant *variant = options->variant;
    if (variant != NULL) {
        const int choice = variant->backend == BACKEND_CUDA ? CHOICE_CUDA : CHOICE_CPU;
        if (options->choice != CHOICE_AUTO && options->choice != choice)
            return error_set(error, ERROR_USAGE, "--variant %s works on %s, but --backend %s was given; leave one out",
                             variant->name, choice_word(choice), choice_word(options->choice));
        options->choice = choice;
    }
    const struct device_choice *devices = &options->devices;
    if ((devices->all || devices->count > 0) && options->choice == CHOICE_CPU)
        return error_set(error, ERROR_USAGE, "--device names a GPU, but --%s %s uses none; leave one out",
                         variant != NULL ? "variant" : "backend", variant != NULL ? variant->name : "cpu");
    return true;
}

static bool no_operands(char *const operands[], int count, const struct options *options, struct error *error)
{
    if (count == 0)
        return true;
    return error_set(error, ERROR_USAGE, "--%s stands alone, but \"%s\" was given", mode_option(options->mode),
                     operands[0]);
}

/* The suffix of an image that is to be written must name a format, unless --format does. */
static bool check_suffix(const char *path, struct error *error)
{
    if (format_find_by_path(path) != NULL)
        return true;
    return error_about(error, ERROR_USAGE, path,
                       "gpuconv writes .png, .jpg and .jpeg; give the file such a name, or its format with --format");
}

/* The name of an option that is for many files only, of those that are given, or NULL. */
static const char *many_option(const struct options *options)
{
    return options->files_from != NULL ? "files-from"
           : options->recursive        ? "recursive"
           : options->suffix != NULL   ? "suffix"
           : options->skip_existing    ? "skip-existing"
           : options->jobs > 0         ? "jobs"
           : options->memory > 0       ? "memory"
           : options->shard.count > 0  ? "shard"
           : options->report != NULL   ? "report"
           : options->fail_fast        ? "fail-fast"
                                       : NULL;
}

/* Options for many files that do not go together. */
static bool settle_many_options(const struct options *options, struct error *error)
{
    const char *given = many_option(options);
    if (options->folder == NULL && !options->in_place && given != NULL)
        return error_set(error, ERROR_USAGE,
                         "--%s is for many files; say where they go with --output DIR, or --in-place", given);
    if (options->folder != NULL && options->in_place)
        return error_set(error, ERROR_USAGE, "--output and --in-place contradict each other; leave one out");
    if (options->in_place && (options->suffix != NULL || options->skip_existing))
        return error_set(error, ERROR_USAGE, "--%s and --in-place contradict each other; leave one out",
                         options->suffix != NULL ? "suffix" : "skip-existing");
    if (options->in_place && options->shard.count > 1) /* by the sizes of files that other processes replace */
        return error_set(error, ERROR_USAGE,
                         "--shard shares files out by their sizes, which --in-place changes; write to a folder with "
                         "--output DIR");
    if (options->null_separated && options->files_from == NULL)
        return error_set(error, ERROR_USAGE, "--null says how --files-from separates its names; give both or neither");
    if (options->suffix != NULL && strchr(options->suffix, '/') != NULL)
        return error_set(error, ERROR_USAGE, "--suffix is part of a name, and \"%s\" holds a slash; leave that out",
                         options->suffix);
    if (options->folder != NULL && format_find_by_path(options->folder) != NULL)
        return error_set(error, ERROR_USAGE,
                         "--output names a folder, and %s looks like an image; give FILTER INPUT OUTPUT for one image, "
                         "or %s/ to mean a folder",
                         options->folder, options->folder);
    return true;
}

static bool settle_many(struct options *options, struct error *error)
{
    if (options->input_count == 0 && options->files_from == NULL)
        return error_set(error, ERROR_USAGE, "%s needs an INPUT; " USAGE, options->filter);
    for (size_t i = 0; i < options->input_count; i++)
        if (file_is_standard(options->inputs[i]))
            return error_set(
                error, ERROR_USAGE,
                options->in_place
                    ? "--in-place needs a file, and INPUT is standard input; give an OUTPUT"
                    : "standard input holds an image without a name; name a file, or give FILTER - OUTPUT");
    return true;
}

static bool settle_run(char *const operands[], int count, struct options *options, struct error *error)
{
    if (!settle_many_options(options, error))
        return false;
    if (count == 0)
        return error_set(error, ERROR_USAGE, "FILTER, INPUT and OUTPUT are missing; " USAGE);
    options->filter = operands[0];
    options->inputs = operands + 1;
    options->input_count = (size_t)count - 1;
    options->batch = options->folder != NULL || options->in_place;
    if (options->batch)
        return settle_many(options, error);

    if (options->devices.all || options->devices.count > 1)
        return error_set(error, ERROR_USAGE,
                         "--device names several GPUs, and one image is for one of them; name that");
    if (count == 1)
        return error_set(error, ERROR_USAGE, "%s needs an INPUT and an OUTPUT; " USAGE, operands[0]);
    if (count == 2)
        return error_set(error, ERROR_USAGE, "%s %s needs an OUTPUT; " USAGE, operands[0], operands[1]);
    if (count > 3)
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is one operand too many: filters are joined by commas, and many images need --output "
                         "DIR; " USAGE,
                         operands[3]);

    options->input = operands[1];
    options->output = operands[2];
    if (options->format == NULL && !file_is_standard(options->output)) {
        if (!check_suffix(options->output, error))
            return false;
        options->format = format_find_by_path(options->output);
    }
    return true;
}

static bool settle_compare(char *const operands[], int count, struct options *options, struct error *error)
{
    if (count < 2 || count > 3)
        return error_set(error, ERROR_USAGE,
                         "--compare takes two or three files, not %d; usage: gpuconv --compare EXPECTED ACTUAL "
                         "[DIFF.png]",
                         count);
    options->expected = operands[0];
    options->actual = operands[1];
    options->picture = count == 3 ? operands[2] : NULL;
    if (file_is_standard(options->expected) && file_is_standard(options->actual))
        return error_set(error, ERROR_USAGE, "standard input holds one image; name a file for the other");
    if (options->picture == NULL)
        return true;
    if (file_is_standard(options->picture))
        return error_set(error, ERROR_USAGE,
                         "--compare prints its answer on standard output; name a file for the difference picture");
    return options->format != NULL || check_suffix(options->picture, error);
}

/* The options of --bench stand with it only. */
static bool settle_bench(const struct options *options, struct error *error)
{
    const char *given = options->bench_size_count > 0   ? "bench-size"
                        : options->bench_filter != NULL ? "bench-filter"
                        : options->bench_sample >= 0    ? "bench-sample"
                        : options->json                 ? "json"
                        : options->csv                  ? "csv"
                                                        : NULL;
    if (options->mode != MODE_BENCH && given != NULL)
        return error_set(error, ERROR_USAGE, "--%s belongs to --bench; give both or neither", given);
    if (options->mode == MODE_BENCH && (options->devices.all || options->devices.count > 1))
        return error_set(error, ERROR_USAGE, "--device names several GPUs, and --bench measures one; name that");
    if (options->json && options->csv)
        return error_set(error, ERROR_USAGE, "--json and --csv contradict each other; leave one out");
    return true;
}

/* All options are known: give the operands their meaning and check that everything agrees. */
static bool settle(char *const operands[], int count, struct options *options, struct error *error)
{
    if (options->verbose && options->quiet)
        return error_set(error, ERROR_USAGE, "--verbose and --quiet contradict each other; leave one out");
    if (!settle_backend(options, error) || !settle_bench(options, error))
        return false;
    const char *given = options->folder != NULL ? "output" : options->null_separated ? "null" : many_option(options);
    if (options->mode != MODE_RUN && given != NULL)
        return error_set(error, ERROR_USAGE, "--%s is for many files, and --%s is not about them; leave one out", given,
                         mode_option(options->mode));
    switch (options->mode) {
    case MODE_RUN:
        return settle_run(operands, count, options, error);
    case MODE_COMPARE:
        return settle_compare(operands, count, options, error);
    default:
        return no_operands(operands, count, options, error);
    }
}

bool cli_parse(int argc, char *const argv[], struct options *options, struct error *error)
{
    *options = defaults;
    if (argc < 2) {
        options->mode = MODE_NOTHING;
        return true;
    }
    char **operands = malloc((size_t)argc * sizeof *operands);
    if (operands == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for %d arguments; free some", argc);

    options->operands = operands;
    int count = 0;
    bool done = true, only_operands = false;
    for (int i = 1; done && i < argc; i++) {
        char *argument = argv[i];
        if (argument[0] == '\0')
            done = error_set(error, ERROR_USAGE, "argument %d is empty; is a variable of the script unset?", i);
        else if (only_operands || argument[0] != '-' || file_is_standard(argument))
            operands[count++] = argument;
        else if (strcmp(argument, "--") == 0)
            only_operands = true;
        else if (argument[1] == '-')
            done = parse_long(argc, argv, &i, options, error);
        else
            done = parse_letters(argc, argv, &i, options, error);
        /* Whoever asks for help gets it, whatever else follows or is missing. */
        if (done && (options->mode == MODE_HELP || options->mode == MODE_VERSION))
            return true;
    }
    return done && settle(operands, count, options, error);
}

void cli_free(struct options *options)
{
    free(options->operands);
    options->operands = NULL;
}

const char *cli_usage(void)
{
    return "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
           "       gpuconv [OPTIONS] FILTER INPUT... -o DIR\n"
           "       gpuconv [OPTIONS] --in-place FILTER INPUT...\n"
           "       gpuconv --compare EXPECTED ACTUAL [DIFF.png]\n"
           "for example: gpuconv blur photo.png blurred.png\n"
           "gpuconv --list names the filters, gpuconv --help explains everything\n";
}

/* Where the explanations begin: right of the longest option. A line has 79 columns, so that none wraps in 80. */
enum { HELP_COLUMN = 24, HELP_WIDTH = 79 };

/* Print TEXT from HELP_COLUMN on, the cursor being at COLUMN, broken at spaces. */
static void print_wrapped(FILE *file, const char *text, int column)
{
    if (column + 2 > HELP_COLUMN) {
        fputc('\n', file);
        column = 0;
    }
    fprintf(file, "%*s", HELP_COLUMN - column, "");
    column = HELP_COLUMN;
    while (*text != '\0') {
        const int word = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            fprintf(file, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += fprintf(file, "%s%.*s", column > HELP_COLUMN ? " " : "", word, text);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

/* The default of an option that has one, as " (default X)", in TEXT. */
static void describe_default(const struct option *o, char *text, size_t size)
{
    const void *field = (const char *)&defaults + o->field;
    text[0] = '\0';
    if (o->kind == KIND_NUMBER && *(const int *)field >= o->low)
        snprintf(text, size, " (default %d)", *(const int *)field);
}

static void print_option(FILE *file, const struct option *o)
{
    int column = o->letter != 0 ? fprintf(file, "  -%c, --%s", o->letter, o->name) : fprintf(file, "  --%s", o->name);
    if (o->argument != NULL)
        column += fprintf(file, " %s", o->argument);

    char words[256] = "", standard[64], text[512];
    if (o->word != NULL)
        join_words(o, words, sizeof words);
    describe_default(o, standard, sizeof standard);
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->word != NULL ? ": " : "", words, standard);
    print_wrapped(file, text, column);
}

static const char opening[] = "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
                              "       gpuconv [OPTIONS] FILTER INPUT... -o DIR\n"
                              "       gpuconv [OPTIONS] --in-place FILTER INPUT...\n"
                              "Convolve PNG and JPEG images. FILTER is a name from --list, or gaussian:2, or\n"
                              "a file, or several joined by commas. The first of a list of values is default.\n";

static const char closing[] = "\nExit status: 0 done, 1 the work failed, 2 usage. Try: gpuconv blur a.png b.png\n";

static const char bench_opening[] = "usage: gpuconv --bench [OPTIONS]\n"
                                    "Check, then time, every variant, or one by --variant, on random samples.\n"
                                    "--backend, --device, --threads, --border, --flip and --abs hold too.\n";

char *cli_help(bool of_bench)
{
    static const char *const titles[GROUP_COUNT] = {
        [GROUP_FILTER] = "The filter",
        [GROUP_BACKEND] = "CPU or GPU (the picture is the same)",
        [GROUP_FILE] = "Files (- is standard input or output)",
        [GROUP_MANY] = "Many files (INPUTs may be folders)",
        [GROUP_TALK] = "Messages",
        [GROUP_QUERY] = "Instead of work",
        [GROUP_BENCH] = "Benchmark",
    };
    struct text_buffer text;
    FILE *file = text_open(&text);
    if (file == NULL)
        return NULL;

    const enum group first = of_bench ? GROUP_BENCH : 0, end = of_bench ? GROUP_COUNT : GROUP_BENCH;

    fputs(of_bench ? bench_opening : opening, file);
    for (enum group group = first; group < end; group++) {
        fprintf(file, "\n%s:\n", titles[group]);
        for (const struct option *o = table; o < table + OPTIONS; o++)
            if (o->group == group)
                print_option(file, o);
    }
    if (!of_bench)
        fputs(closing, file);
    return text_close(file, &text) ? text.bytes : NULL;
}
