/* SPDX-License-Identifier: MIT
 *
 * Parse argv into struct options by the option table, then check that all options agree. */
#include "app/options.h"

#include "app/option_table.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Arguments ---- */

/* Is TEXT, the argument after the option O, or NULL, a number that was meant for it, although it takes none? OPERANDS
 * is the number of those before it: FILTER and INPUT may not be numbers, unless they are there. */
static bool is_stray_value(const struct option *o, const char *text, int operands, const struct options *options)
{
    return (o->kind == KIND_FLAG || o->kind == KIND_FLAG_WORD) && options->mode == MODE_RUN && text != NULL &&
           operands < 2 && suggest_is_number(text) && access(text, F_OK) != 0 &&
           !(operands == 0 && filter_is_named(text));
}

/* Is TEXT, the argument after the option O, or NULL, a word that may follow it? */
static bool is_word_of(const struct option *o, const char *text)
{
    bool is_word = text != NULL && o->kind == KIND_FLAG && o->keyword != NULL && strcmp(text, o->keyword) == 0;
    for (int i = 0; text != NULL && o->kind == KIND_FLAG_WORD && o->word(i) != NULL; i++)
        is_word |= strcmp(text, o->word(i)) == 0;
    return is_word;
}

/* Parse argv[*i], a long option after OPERANDS operands. If the next argument is its value, advance *i to it. */
static bool parse_long(int argc, char *const argv[], int *i, int operands, struct options *options, struct error *error)
{
    const char *argument = argv[*i];
    const size_t length = strcspn(argument, "=");
    const struct option *o = option_find(argument + 2, length - 2);
    if (o == NULL)
        return suggest_option(argument, error);

    const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
    if (value == NULL && is_word_of(o, argv[*i + 1]))
        value = argv[++*i];
    if (value == NULL && is_stray_value(o, argv[*i + 1], operands, options))
        value = argv[*i + 1];
    if (o->argument == NULL && value != NULL && o->kind != KIND_FLAG_WORD && !is_word_of(o, value))
        return suggest_no_value(o, false, value, error);
    if (o->argument != NULL && value == NULL) {
        if (*i + 1 == argc)
            return error_set(error, ERROR_USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->argument);
        value = argv[++*i];
    }
    /* Another program may say --jobs FILE; a number is of images at a time. */
    if (value != NULL && o->letter == 'j' &&
        strspn(value, "+-.0123456789") < strlen(value) + (value[0] == '-' && value[1] == '\0')) {
        if (!file_is_standard(value) && access(value, F_OK) != 0)
            return error_set(
                error, ERROR_USAGE,
                "\"%s\" is neither a number for -j or --jobs N, nor a file for --jobs-from FILE; give one of them",
                value);
        o = option_of_field(OPTION(jobs_from));
    }
    return option_set(o, value, options, error);
}

/* Parse argv[*i], a bundle of letters. The value of the last is the rest, as in -j4 and -o=DIR, or the next argument;
 * then advance *i to it. OPERANDS operands stand before. */
static bool parse_letters(int argc, char *const argv[], int *i, int operands, struct options *options,
                          struct error *error)
{
    const char *argument = argv[*i];
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct option *o = option_of_letter(*letter);
        if (o == NULL)
            return suggest_option(argument, error);
        if (o->argument == NULL) {
            const char *value = suggest_is_number(letter + 1) ? letter + 1 : argv[*i + 1];
            if (value == letter + 1 || (letter[1] == '\0' && is_stray_value(o, value, operands, options)))
                return suggest_no_value(o, true, value, error);
            if (!option_set(o, NULL, options, error))
                return false;
            continue;
        }
        if (letter[1] == '\0' && *i + 1 == argc)
            return error_set(error, ERROR_USAGE, "-%c needs a value: -%c %s", *letter, *letter, o->argument);
        if (letter[1] == '\0')
            return option_set(o, argv[++*i], options, error);
        return option_set(o, letter + (letter[1] == '=' ? 2 : 1), options, error);
    }
    return true;
}

/* ---- Contradictions ---- */

/* The first option of ONLY that was given and that the mode does not use, or NULL. */
static const struct option *first_given(const struct options *options, enum option_mode only)
{
    const unsigned used = option_modes_of(options);
    for (size_t i = 0; i < option_count; i++)
        if (options->given[i] && (option_table[i].bits & only) != 0 && (option_table[i].bits & used) == 0)
            return &option_table[i];
    return NULL;
}

/* Refuse options of other modes. */
static bool validate_uses(const struct options *options, struct error *error)
{
    static const struct {
        enum option_mode only;
        int mode;
    } owners[] = {{ONLY_JOBS, MODE_JOBS}, {ONLY_BENCH, MODE_BENCH}, {ONLY_COMPARE, MODE_COMPARE}};
    const struct option *many = first_given(options, ONLY_MANY), *run = first_given(options, ONLY_RUN);
    if (options->mode == MODE_JOBS)
        return true; /* validate_jobs looks at all */
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        const struct option *o = first_given(options, owners[i].only);
        if (o != NULL && options->mode != owners[i].mode)
            return error_set(error, ERROR_USAGE, "--%s needs --%s; give both or neither", o->name,
                             options_mode_name(owners[i].mode));
    }
    if (options->mode != MODE_DIGEST && first_given(options, ONLY_DIGEST) != NULL)
        return error_set(error, ERROR_USAGE,
                         "--filter needs --digest or --jobs-from; give one of them, or gpuconv FILTER INPUT OUTPUT to "
                         "filter images");
    if (options->mode == MODE_RUN && options->json)
        return error_set(
            error, ERROR_USAGE,
            "--json prints the answer of --list, --list-variants, --list-codecs, --show, --devices, "
            "--compare, --digest, --conformance or --bench; give one of them, or --report FILE to filter images");
    if (options->mode == MODE_COMPARE && options->list.output != NULL)
        return error_set(error, ERROR_USAGE,
                         "--output is for filters; the picture of the difference is the third name: gpuconv --compare "
                         "EXPECTED ACTUAL DIFF");
    if (options->mode != MODE_RUN && many != NULL)
        return error_set(error, ERROR_USAGE, "--%s is for many files, and --%s does not filter files; leave one out",
                         many->name, options_mode_name(options->mode));
    if (options->mode != MODE_RUN && run != NULL)
        return error_set(error, ERROR_USAGE,
                         "--%s is for filtering images, and --%s does not filter images; leave one out", run->name,
                         options_mode_name(options->mode));
    return true;
}

/* Refuse an option that contradicts another, or lacks one that it needs. */
static bool validate_pairs(const struct options *options, struct error *error)
{
    static const struct {
        size_t option, other;
        bool needed;        /* else the other must not be given */
        const char *advice; /* why and what to do; NULL to leave one out */
    } rules[] = {
        {OPTION(verbose), OPTION(quiet), false, NULL},
        {OPTION(json), OPTION(bench.csv), false, NULL},
        {OPTION(list.output), OPTION(list.in_place), false, NULL},
        {OPTION(list.also), OPTION(list.in_place), false,
         ": a file has one result; write to folders with --output DIR"},
        {OPTION(list.suffix), OPTION(list.in_place), false, NULL},
        {OPTION(job.skip_existing), OPTION(list.in_place), false,
         "; give --report FILE, and run the same line to continue"},
        {OPTION(job.codec.page), OPTION(list.in_place), false,
         ": the other pages would be lost; write to another file"},
        {OPTION(list.pages), OPTION(list.in_place), false, ": each page gets its own file; leave one out"},
        {OPTION(list.pages), OPTION(job.codec.page), false, NULL},
        {OPTION(list.keeps_suffix), OPTION(list.in_place), false, NULL},
        {OPTION(list.keeps_suffix), OPTION(list.format), true, NULL},
        {OPTION(list.null_separated), OPTION(list.files_from), true, NULL},
        {OPTION(images_only), OPTION(tar), true, NULL},
        {OPTION(keep_failed), OPTION(tar), true, NULL},
        {OPTION(job.strip.kept), OPTION(job.strip.level), true, NULL},
        {OPTION(compare.removes), OPTION(compare.update), true, NULL},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (options_given(options, rules[i].option) && options_given(options, rules[i].other) != rules[i].needed) {
            const char *name = option_of_field(rules[i].option)->name, *other = option_of_field(rules[i].other)->name;
            return rules[i].needed ? error_set(error, ERROR_USAGE, "--%s needs --%s; give both or neither", name, other)
                                   : error_set(error, ERROR_USAGE, "--%s and --%s cannot be combined%s", name, other,
                                               rules[i].advice != NULL ? rules[i].advice : "; leave one out");
        }
    return true;
}

/* --variant chooses the backend too; variants of both backends choose both. --backend must agree with all of them. */
static bool validate_variants(struct options *options, struct error *error)
{
    struct recipe *recipe = &options->recipe;
    bool chosen[3] = {false};
    size_t count;
    const struct variant *table = variants(&count);
    if (options->mode != MODE_BENCH && (options->bench.variants & (options->bench.variants - 1)) != 0)
        return error_set(error, ERROR_USAGE, "--variant takes one variant; only --bench takes several");
    for (const struct variant *row = table; row < table + count; row++) {
        const enum choice choice = row->backend == BACKEND_CUDA ? CHOICE_CUDA : CHOICE_CPU;
        if ((options->bench.variants >> (row - table) & 1) == 0)
            continue;
        if (recipe->choice != CHOICE_AUTO && recipe->choice != choice)
            return error_set(error, ERROR_USAGE, "--variant %s works on %s, but --backend %s was given; leave one out",
                             row->name, choice_name(choice), choice_name(recipe->choice));
        chosen[choice] = true;
    }
    if (chosen[CHOICE_CUDA] != chosen[CHOICE_CPU])
        recipe->choice = chosen[CHOICE_CUDA] ? CHOICE_CUDA : CHOICE_CPU;
    return true;
}

/* --device must agree with --backend and --variant. */
bool options_check_backend(struct options *options, struct error *error)
{
    struct recipe *recipe = &options->recipe;
    const struct variant *variant = recipe->variant;
    if (!validate_variants(options, error))
        return false;
    const struct device_choice *devices = &options->devices;
    if ((devices->all || devices->count > 0) && recipe->choice == CHOICE_CPU)
        return error_set(error, ERROR_USAGE, "--device names a GPU, but --%s %s does not use a GPU; leave one out",
                         variant != NULL ? "variant" : "backend", variant != NULL ? variant->name : "cpu");
    return true;
}

/* Any other mode takes no operands, but --list a word. */
static bool validate_question(int count, struct options *options, struct error *error)
{
    if (options->mode == MODE_BENCH && (options->devices.all || options->devices.count > 1))
        return error_set(error, ERROR_USAGE, "--device names several GPUs, and --bench measures one GPU; give one GPU");
    if (options->mode == MODE_LIST && count == 1)
        options->word = options->operands[0];
    if (count == 0 || options->word != NULL)
        return true;
    return error_set(error, ERROR_USAGE, "--%s takes no operand, but \"%s\" was given; leave it out",
                     options_mode_name(options->mode), options->operands[0]);
}

/* In any case of letters. */
static bool ends_in(const char *path, const char *suffix)
{
    const size_t length = strlen(path), size = strlen(suffix);
    return length > size && strcasecmp(path + length - size, suffix) == 0;
}

bool options_check_suffix(const struct options *options, const char *path, bool or_folder, struct error *error)
{
    if (options->list.format != NULL || format_find_by_path(path) != NULL)
        return true;
    char suffixes[128];
    const bool bare = or_folder && strchr(file_name(path), '.') == NULL;
    format_join_suffixes("and", true, suffixes, sizeof suffixes);
    return error_about(error, ERROR_USAGE, path,
                       "gpuconv writes %s; give the file such a name, or its format with --format%s%s", suffixes,
                       bare                    ? ", or a folder with -o "
                       : ends_in(path, ".tar") ? ", or --tar for an archive"
                                               : "",
                       bare ? path : "");
}

/* Refuse options of a run that contradict each other. */
static bool validate_run_options(const struct options *options, struct error *error)
{
    const struct list_request *list = &options->list;
    const struct option *many = first_given(options, ONLY_MANY);
    if (list->output == NULL && !list->in_place && !options->tar && many != NULL)
        return error_set(error, ERROR_USAGE,
                         "--%s is for many files; say where they go with --output DIR, or --in-place", many->name);
    if (list->in_place && options->shard.count > 1)
        return error_set(error, ERROR_USAGE,
                         "--shard and --in-place cannot be combined: a shard that is started again would filter its "
                         "files twice; write to a folder with --output DIR");
    if (list->suffix != NULL && strchr(list->suffix, '/') != NULL)
        return error_set(error, ERROR_USAGE, "--suffix is part of a name, and \"%s\" has a slash; leave the slash out",
                         list->suffix);
    if (list->output != NULL && format_find_by_path(list->output) != NULL)
        return error_set(error, ERROR_USAGE,
                         "--output names a folder, and %s looks like an image; give FILTER INPUT OUTPUT for one image, "
                         "or %s/ to mean a folder",
                         list->output, list->output);
    return true;
}

/* FILTER INPUT..., to a folder or in place. */
static bool validate_many(const struct options *options, struct error *error)
{
    const struct list_request *list = &options->list;
    if (list->input_count == 0 && list->files_from == NULL)
        return error_set(error, ERROR_USAGE, "%s needs an INPUT; " USAGE, options->filter);
    for (size_t i = 0; i < list->input_count; i++)
        if (file_is_standard(list->inputs[i]))
            return error_set(error, ERROR_USAGE,
                             list->in_place
                                 ? "--in-place needs a file, and INPUT is standard input; give an OUTPUT"
                                 : "an image on standard input has no file name; give a file, or FILTER - OUTPUT");
    return true;
}

/* FILTER INPUT OUTPUT. */
static bool validate_pair(int count, struct options *options, struct error *error)
{
    char *const *operands = options->operands;
    if (options->devices.all || options->devices.count > 1)
        return error_set(error, ERROR_USAGE,
                         "--device names several GPUs, and one image runs on one GPU; give one GPU");
    if (count == 1)
        return error_set(error, ERROR_USAGE, "%s needs an INPUT and an OUTPUT; " USAGE, operands[0]);
    if (count == 2)
        return error_set(error, ERROR_USAGE,
                         "%s %s needs an OUTPUT, or -o DIR to write to a folder under the same names; " USAGE,
                         operands[0], operands[1]);
    if (count > 3)
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is one operand too many: filters are joined by commas, and many images need --output "
                         "DIR; " USAGE,
                         operands[3]);

    options->input = operands[1];
    options->output = operands[2];
    if (options->output[strlen(options->output) - 1] == '/')
        return error_about(error, ERROR_USAGE, options->output,
                           "is a folder; give -o %s to write to it under the same name", options->output);
    if (!file_is_standard(options->output)) {
        if (!options_check_suffix(options, options->output, true, error))
            return false;
    } else if (options->job.skip_existing) {
        return error_set(error, ERROR_USAGE,
                         "--skip-existing looks for the file OUTPUT, and OUTPUT is standard output; give a file");
    } else if (options->report != NULL && file_is_standard(options->report)) {
        return error_set(error, ERROR_USAGE,
                         "the image and its --report would both go to standard output; give a file for one of them");
    }
    if (options->list.format == NULL)
        options->list.format = format_find_by_path(options->output);
    options->pair = !options->list.pages || options->list.format == format_find_by_suffix("tif");
    if (!options->pair && (file_is_standard(options->input) || file_is_standard(options->output)))
        return error_set(error, ERROR_USAGE, "--pages cannot use standard input or output; give two files");
    return true;
}

/* Does PATH have the suffix of a compressed archive? */
static bool names_compressed(const char *path)
{
    static const char *const suffixes[] = {".gz", ".tgz", ".zst", ".tzst", ".xz", ".txz", ".bz2", ".tbz", ".lz4"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (ends_in(path, suffixes[i]))
            return true;
    return false;
}

/* --tar FILTER INPUT OUTPUT. */
static bool validate_tar(int count, struct options *options, struct error *error)
{
    const struct option *files = first_given(options, NOT_TAR);
    if (files != NULL)
        return error_set(error, ERROR_USAGE,
                         "--%s is for files, and --tar takes one archive and writes another; leave one out",
                         files->name);
    if (count != 3)
        return error_set(error, ERROR_USAGE,
                         "--tar takes a FILTER, the archive INPUT and the archive OUTPUT, not %d operand%s; usage: "
                         "gpuconv --tar FILTER INPUT OUTPUT",
                         count, count == 1 ? "" : "s");
    options->input = options->operands[1];
    options->output = options->operands[2];
    if (names_compressed(options->output))
        return error_about(error, ERROR_USAGE, options->output,
                           "would not be compressed: --tar writes plain archives; compress it in a pipe, such as "
                           "gpuconv --tar FILTER INPUT - | zstd > OUTPUT");
    if (format_find_by_path(options->output) != NULL)
        return error_about(error, ERROR_USAGE, options->output,
                           "has the name of an image, and --tar writes an archive; give a file such as out.tar");
    if (file_same(options->input, options->output))
        return error_set(error, ERROR_USAGE,
                         "%s is the same file as %s, which --tar reads while it writes; give another OUTPUT",
                         options->output, options->input);
    if (file_is_standard(options->output) && options->report != NULL && file_is_standard(options->report))
        return error_set(error, ERROR_USAGE,
                         "the archive and its --report would both go to standard output; give a file for one of them");
    return true;
}

static bool validate_run(int count, struct options *options, struct error *error)
{
    if (!validate_run_options(options, error))
        return false;
    if (count == 0)
        return error_set(error, ERROR_USAGE, "FILTER, INPUT and OUTPUT are missing; " USAGE);
    options->filter = options->operands[0];
    if (options->tar)
        return validate_tar(count, options, error);
    options->list.inputs = options->operands + 1;
    options->list.input_count = (size_t)count - 1;
    options->pair = options->list.output == NULL && !options->list.in_place;
    return options->pair ? validate_pair(count, options, error) : validate_many(options, error);
}

/* Files that --compare writes must be different files. None may have the name of an image, which it might overwrite. */
static bool validate_text_files(const struct options *options, struct error *error)
{
    const char *paths[OPTIONS_MAX] = {NULL};
    for (size_t i = 0; i < option_count; i++) {
        if (!options->given[i] || (option_table[i].bits & WRITES_TEXT) == 0)
            continue;
        paths[i] = options->values[i] != NULL ? options->values[i] : "-";
        if (format_find_by_path(paths[i]) != NULL)
            return error_set(error, ERROR_USAGE, "--%s %s has the name of an image; give another file",
                             option_table[i].name, paths[i]);
        for (size_t j = 0; j < i; j++)
            if (paths[j] != NULL && strcmp(paths[j], paths[i]) == 0)
                return error_set(error, ERROR_USAGE, "--%s and --%s both write to %s; give two files",
                                 option_table[j].name, option_table[i].name, file_output_name(paths[i]));
    }
    return true;
}

static bool validate_compare(int count, struct options *options, struct error *error)
{
    if (count < 2 || count > 3)
        return error_set(error, ERROR_USAGE,
                         "--compare takes two or three files or folders, not %d; usage: gpuconv --compare EXPECTED "
                         "ACTUAL [DIFF]",
                         count);
    options->expected = options->operands[0];
    options->actual = options->operands[1];
    options->picture = count == 3 ? options->operands[2] : NULL;
    const char *const inputs[] = {options->expected, options->actual, options->compare.mask, options->list.files_from};
    int standard = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        standard += inputs[i] != NULL && file_is_standard(inputs[i]);
    if (standard > 1)
        return error_set(error, ERROR_USAGE, "standard input can be read only once; give a file for the other input");
    if (options->compare.update && (file_is_standard(options->expected) || file_is_standard(options->actual)))
        return error_set(error, ERROR_USAGE, "--update copies files, and standard input is not a file; give a file");
    if (options->picture != NULL && file_is_standard(options->picture))
        return error_set(error, ERROR_USAGE,
                         "--compare prints its answer on standard output; give a file for the difference picture");
    if (options->json && options->report != NULL && file_is_standard(options->report))
        return error_set(error, ERROR_USAGE, "--json and --report - print the same lines; leave one out");
    return validate_text_files(options, error);
}

static bool validate_digest(int count, struct options *options, struct error *error)
{
    struct list_request *list = &options->list;
    const bool checks = options->check != NULL;
    int standard = (checks && file_is_standard(options->check)) ||
                   (list->files_from != NULL && file_is_standard(list->files_from));
    for (int i = 0; i < count; i++)
        standard += file_is_standard(options->operands[i]);
    if (standard > 1)
        return error_set(error, ERROR_USAGE, "standard input can be read only once; give a file for the other input");
    if (checks && (count > 0 || list->files_from != NULL))
        return error_set(error, ERROR_USAGE, "--check takes all names from %s, but %s was given; leave one out",
                         file_input_name(options->check), count > 0 ? options->operands[0] : "--files-from");
    if (!checks && count == 0 && list->files_from == NULL)
        return error_set(error, ERROR_USAGE,
                         "--digest needs a FILE; usage: gpuconv --digest [--filter FILTER] FILE..., or gpuconv --check "
                         "FILE");
    if (options->json && options->report != NULL)
        return error_set(error, ERROR_USAGE, "--json and --report %s print the same lines; leave one out",
                         options->report);
    if (options->json)
        options->report = "-";
    list->inputs = options->operands;
    list->input_count = (size_t)count;
    list->recursive = true;
    return true;
}

/* --jobs-from takes the options of its lines, and some about all jobs. */
static bool validate_jobs(int count, const struct options *options, struct error *error)
{
    if (count > 0)
        return error_set(error, ERROR_USAGE, "--jobs-from takes all names from %s, but %s was given; leave it out",
                         file_input_name(options->jobs_from), options->operands[0]);
    for (const struct option *o = option_table; o < option_table + option_count; o++)
        if (options->given[o - option_table] && (o->bits & option_modes_of(options)) == 0)
            return error_set(error, ERROR_USAGE, "--%s cannot be used with --jobs-from; leave one out", o->name);
    return true;
}

/* Is PATH a URL, such as https://example.org/a.png? A file can have such a name only after "./". */
static bool is_url(const char *path)
{
    const size_t scheme = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return scheme > 1 && strncmp(path + scheme, "://", 3) == 0;
}

/* Refuse URLs, which are the names of no files. */
static bool validate_paths(int count, const struct options *options, struct error *error)
{
    const char *url = options->list.output != NULL && is_url(options->list.output) ? options->list.output : NULL;
    for (int i = 0; i < count; i++)
        url = is_url(options->operands[i]) ? options->operands[i] : url;
    for (size_t i = 0; i < options->list.also_count; i++)
        url = is_url(options->list.also[i].output) ? options->list.also[i].output : url;
    return url == NULL || error_about(error, ERROR_USAGE, url,
                                      "is a URL, and gpuconv takes files; transfer it with another program, as in "
                                      "curl -L URL | gpuconv FILTER - OUTPUT");
}

/* Assign the operands, and check that they and all options agree. */
static bool validate_options(int count, struct options *options, struct error *error)
{
    if (!validate_paths(count, options, error))
        return false;
    if (!options_check_backend(options, error) || !validate_uses(options, error) || !validate_pairs(options, error))
        return false;
    switch (options->mode) {
    case MODE_RUN:
        return validate_run(count, options, error);
    case MODE_COMPARE:
        return validate_compare(count, options, error);
    case MODE_DIGEST:
        return validate_digest(count, options, error);
    case MODE_CONFORMANCE:
        options->input = count > 0 ? options->operands[0] : NULL;
        return count < 2 || error_set(error, ERROR_USAGE, "--conformance takes one FILE of vectors, not %d", count);
    case MODE_JOBS:
        return validate_jobs(count, options, error);
    default:
        return validate_question(count, options, error);
    }
}

/* ---- The whole ---- */

bool options_given(const struct options *options, size_t field)
{
    return options->given[option_of_field(field) - option_table];
}

bool options_parse(int argc, char *const argv[], struct options *options, struct error *error)
{
    *options = option_defaults;
    if (argc < 2) {
        options->mode = MODE_NOTHING;
        return true;
    }
    char **operands = malloc((size_t)argc * sizeof *operands);
    if (operands == NULL)
        return error_no_memory(error, "%d arguments", argc);

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
            done = parse_long(argc, argv, &i, count, options, error);
        else
            done = parse_letters(argc, argv, &i, count, options, error);
        /* Ignore the rest: a user who asks for help gets it, perhaps about a filter. */
        if (done && (options->mode == MODE_HELP || options->mode == MODE_VERSION)) {
            const char *word = count > 0 ? operands[0] : argv[i + 1]; /* after the last argument there is NULL */
            options->word = options->help_of == MODE_RUN && (count == 0 || filter_is_named(word)) ? word : NULL;
            return true;
        }
    }
    if (done && options->mode == MODE_RUN && count <= 2 && count > 0 && strcmp(operands[0], "help") == 0 &&
        !filter_is_named("help")) {
        options->mode = MODE_HELP;
        options->word = count == 2 ? operands[1] : NULL;
        return true;
    }
    if (done && options->mode == MODE_RUN && count > 0)
        done = suggest_operands(count, options, error);
    return done && validate_options(count, options, error);
}

char *options_text(const struct options *options)
{
    struct text_buffer text;
    FILE *file = text_open(&text);
    if (file == NULL)
        return NULL;
    for (size_t i = 0, printed = 0; i < option_count; i++) {
        const struct option *o = &option_table[i];
        if (!options->given[i] || (o->group != GROUP_FILTER && o->group != GROUP_FILE))
            continue;
        fprintf(file, "%s--%s%s%s", printed++ > 0 ? " " : "", o->name, options->values[i] != NULL ? " " : "",
                options->values[i] != NULL ? options->values[i] : "");
    }
    return text_close(file, &text) ? text.bytes : NULL;
}

void options_free(struct options *options)
{
    free(options->operands);
    options->operands = NULL;
}
