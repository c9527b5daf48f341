/* SPDX-License-Identifier: MIT
 *
 * The command line. Parsing, --help and the suggestion of the nearest name all walk one table; an option is one row of
 * it and one field of struct options. */
#include "cli.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT"

enum group { GROUP_FILTER, GROUP_BACKEND, GROUP_FILE, GROUP_TALK, GROUP_QUERY, GROUP_BENCH, GROUP_COUNT };

/* What an option's value is, and so what its field holds. */
enum kind {
    KIND_FLAG,    /* no value; a bool becomes true */
    KIND_MODE,    /* no value; an int becomes `low` */
    KIND_NUMBER,  /* an int from low to high */
    KIND_WORD,    /* one of the words; an int, where low is the first word's value */
    KIND_VARIANT, /* a variant's name; a pointer to its row */
    KIND_SHOW,    /* the FILTER of --show; sets the mode too */
    KIND_TEXT,    /* anything; a string */
    KIND_SIZES,   /* sizes for the benchmark */
};

struct option {
    const char *name; /* without its dashes */
    char letter;      /* 0: none. Only options without a value have one, so that any letters may be bundled. */
    const char *argument;
    enum group group;
    const char *help;
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

static const char *format_word(int value)
{
    static const char *const words[] = {[FORMAT_PNG] = "png", [FORMAT_JPEG] = "jpg"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *sample_word(int value)
{
    static const char *const words[] = {[SAMPLE_U8] = "uint8", [SAMPLE_F32] = "float"};
    return value < (int)(sizeof words / sizeof *words) ? words[value] : NULL;
}

static const char *variant_word(int value)
{
    size_t count;
    const struct variant *table = variants(&count);
    return (size_t)value < count ? table[value].name : NULL;
}

#define FIELD(name) offsetof(struct options, name)

static const struct option table[] = {
    {"border", 0, "BORDER", GROUP_FILTER, "what stands outside the image", KIND_WORD, FIELD(border), 0, 0, border_word},
    {"alpha", 0, "MODE", GROUP_FILTER, "what happens to the alpha channel", KIND_WORD, FIELD(alpha), 0, 0, alpha_word},
    {"flip", 0, NULL, GROUP_FILTER, "turn the taps by 180 degrees: true convolution", KIND_FLAG, FIELD(flip), 0, 0,
     NULL},
    {"abs", 0, NULL, GROUP_FILTER, "take the absolute value of each sum", KIND_FLAG, FIELD(absolute), 0, 0, NULL},

    {"backend", 0, "BACKEND", GROUP_BACKEND, "where to work", KIND_WORD, FIELD(choice), 0, 0, choice_word},
    {"variant", 0, "NAME", GROUP_BACKEND, "how to convolve, and so where", KIND_VARIANT, FIELD(variant), 0, 0,
     variant_word},
    /* No machine has more than a few dozen GPUs; the bound only keeps the number short. */
    {"device", 0, "N", GROUP_BACKEND, "the GPU to use, see --devices (default 0)", KIND_NUMBER, FIELD(device), 0, 999,
     NULL},
    /* More threads than any machine has processors bring nothing and can exhaust the system. */
    {"threads", 0, "N", GROUP_BACKEND, "threads of the CPU (default: one a processor)", KIND_NUMBER, FIELD(threads), 1,
     1024, NULL},

    {"format", 0, "FORMAT", GROUP_FILE, "OUTPUT's format, instead of what its suffix says", KIND_WORD, FIELD(format),
     FORMAT_PNG, 0, format_word},
    {"quality", 0, "N", GROUP_FILE, "quality of a JPEG, 1 to 100", KIND_NUMBER, FIELD(quality), 1, 100, NULL},
    {"in-place", 0, NULL, GROUP_FILE, "let OUTPUT be INPUT; OUTPUT may be left out", KIND_FLAG, FIELD(in_place), 0, 0,
     NULL},

    {"verbose", 'v', NULL, GROUP_TALK, "say what was chosen, why, and how long it took", KIND_FLAG, FIELD(verbose), 0,
     0, NULL},
    {"quiet", 'q', NULL, GROUP_TALK, "no warnings", KIND_FLAG, FIELD(quiet), 0, 0, NULL},
    {"help", 'h', NULL, GROUP_TALK, "this text", KIND_MODE, FIELD(mode), MODE_HELP, 0, NULL},
    {"version", 0, NULL, GROUP_TALK, "the version, and whether it was built with CUDA", KIND_MODE, FIELD(mode),
     MODE_VERSION, 0, NULL},

    {"list", 0, NULL, GROUP_QUERY, "the filters", KIND_MODE, FIELD(mode), MODE_LIST, 0, NULL},
    {"list-variants", 0, NULL, GROUP_QUERY, "the variants", KIND_MODE, FIELD(mode), MODE_LIST_VARIANTS, 0, NULL},
    {"show", 0, "FILTER", GROUP_QUERY, "the taps of FILTER and what is known about it", KIND_SHOW, FIELD(filter), 0, 0,
     NULL},
    {"devices", 0, NULL, GROUP_QUERY, "the GPUs", KIND_MODE, FIELD(mode), MODE_DEVICES, 0, NULL},
    {"compare", 0, NULL, GROUP_QUERY, "compare EXPECTED and ACTUAL: exit status 0 if equal, 1 if not", KIND_MODE,
     FIELD(mode), MODE_COMPARE, 0, NULL},

    {"bench", 0, NULL, GROUP_BENCH, "check, then time, every variant on random samples, or one with --variant",
     KIND_MODE, FIELD(mode), MODE_BENCH, 0, NULL},
    {"bench-size", 0, "SIZES", GROUP_BENCH,
     "WIDTHxHEIGHT or WIDTHxHEIGHTxPLANES, joined by commas (default 1 to 268 Mpixel, 1 and 3 planes)", KIND_SIZES,
     FIELD(bench_sizes), 0, 0, NULL},
    {"bench-filter", 0, "FILTER", GROUP_BENCH, "filters (default random ones, 3x3 to 31x31)", KIND_TEXT,
     FIELD(bench_filter), 0, 0, NULL},
    {"bench-sample", 0, "TYPE", GROUP_BENCH, "what a sample is, instead of both", KIND_WORD, FIELD(bench_sample), 0, 0,
     sample_word},
    {"json", 0, NULL, GROUP_BENCH, "print JSON instead of a table", KIND_FLAG, FIELD(json), 0, 0, NULL},
    {"csv", 0, NULL, GROUP_BENCH, "print CSV instead of a table", KIND_FLAG, FIELD(csv), 0, 0, NULL},
};

enum { OPTIONS = sizeof table / sizeof *table };

static const struct options defaults = {
    .mode = MODE_RUN,
    .choice = CHOICE_AUTO,
    .device = -1,
    .border = BORDER_REPLICATE,
    .alpha = ALPHA_KEEP,
    .format = FORMAT_UNKNOWN,
    .quality = 90,
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
    options->mode = mode;
    return true;
}

/* Put the value of an option, NULL where it takes none, into its field. */
static bool take(const struct option *o, const char *value, struct options *options, struct error *error)
{
    void *field = (char *)options + o->field;
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
    case KIND_VARIANT:
        options->variant = variant_find(value, error);
        return options->variant != NULL;
    case KIND_SHOW:
        options->filter = value;
        return take_mode(options, MODE_SHOW, error);
    case KIND_TEXT:
        *(const char **)field = value;
        return true;
    case KIND_SIZES:
        return bench_parse_sizes(value, field, &options->bench_size_count, error);
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

/* Take a bundle of letters. */
static bool parse_letters(const char *argument, struct options *options, struct error *error)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const struct option *o = find_letter(*letter);
        if (o == NULL)
            return unknown_letter(argument, *letter, error);
        if (!take(o, NULL, options, error))
            return false;
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
    if (options->device >= 0 && options->choice == CHOICE_CPU)
        return error_set(error, ERROR_USAGE, "--device names a GPU, but --%s %s uses none; leave one out",
                         variant != NULL ? "variant" : "backend", variant != NULL ? variant->name : "cpu");
    return true;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
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
    if (codec_format_of_path(path) != FORMAT_UNKNOWN)
        return true;
    return error_set(error, ERROR_USAGE,
                     "%s: gpuconv writes .png, .jpg and .jpeg; give the file such a name, or its format with --format",
                     path);
}

static bool settle_run(char *const operands[], int count, struct options *options, struct error *error)
{
    const int least = options->in_place ? 2 : 3;
    if (count == 0)
        return error_set(error, ERROR_USAGE, "FILTER, INPUT and OUTPUT are missing; " USAGE);
    if (count == 1)
        return error_set(error, ERROR_USAGE,
                         options->in_place ? "%s needs an INPUT; " USAGE : "%s needs an INPUT and an OUTPUT; " USAGE,
                         operands[0]);
    if (count < least)
        return error_set(error, ERROR_USAGE, "%s %s needs an OUTPUT; " USAGE, operands[0], operands[1]);
    if (count > 3)
        return error_set(error, ERROR_USAGE, "\"%s\" is one operand too many (filters are joined by commas); " USAGE,
                         operands[3]);

    options->filter = operands[0];
    options->input = operands[1];
    options->output = operands[count - 1];
    if (count == 2 && is_standard(options->input))
        return error_set(error, ERROR_USAGE, "--in-place needs a file, and INPUT is standard input; give an OUTPUT");
    if (options->format == FORMAT_UNKNOWN && !is_standard(options->output)) {
        if (!check_suffix(options->output, error))
            return false;
        options->format = (int)codec_format_of_path(options->output);
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
    if (is_standard(options->expected) && is_standard(options->actual))
        return error_set(error, ERROR_USAGE, "standard input holds one image; name a file for the other");
    if (options->picture == NULL)
        return true;
    if (is_standard(options->picture))
        return error_set(error, ERROR_USAGE,
                         "--compare prints its answer on standard output; name a file for the difference picture");
    return options->format != FORMAT_UNKNOWN || check_suffix(options->picture, error);
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

    int count = 0;
    bool done = true, only_operands = false;
    for (int i = 1; done && i < argc; i++) {
        char *argument = argv[i];
        if (argument[0] == '\0')
            done = error_set(error, ERROR_USAGE, "argument %d is empty; is a variable of the script unset?", i);
        else if (only_operands || argument[0] != '-' || is_standard(argument))
            operands[count++] = argument;
        else if (strcmp(argument, "--") == 0)
            only_operands = true;
        else if (argument[1] == '-')
            done = parse_long(argc, argv, &i, options, error);
        else
            done = parse_letters(argument, options, error);
        /* Whoever asks for help gets it, whatever else follows or is missing. */
        if (done && (options->mode == MODE_HELP || options->mode == MODE_VERSION))
            goto out;
    }
    done = done && settle(operands, count, options, error);
out:
    free(operands);
    return done;
}

const char *cli_usage(void)
{
    return "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
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
    if (o->kind == KIND_WORD && *(const int *)field >= o->low)
        snprintf(text, size, " (default %s)", o->word(*(const int *)field));
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

char *cli_help(void)
{
    static const char *const titles[GROUP_COUNT] = {
        [GROUP_FILTER] = "The filter",
        [GROUP_BACKEND] = "CPU or GPU (the picture is the same)",
        [GROUP_FILE] = "Files",
        [GROUP_TALK] = "Messages",
        [GROUP_QUERY] = "Instead of work",
        [GROUP_BENCH] = "Benchmark",
    };
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;

    fputs("usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
          "       gpuconv --compare EXPECTED ACTUAL [DIFF.png]\n\n"
          "Convolve a PNG or JPEG image. FILTER is a name from --list, a parametric one\n"
          "such as gaussian:2.5, a file, or several joined by commas. - is standard\n"
          "input or output.\n",
          file);
    for (int group = 0; group < GROUP_COUNT; group++) {
        fprintf(file, "\n%s:\n", titles[group]);
        for (const struct option *o = table; o < table + OPTIONS; o++)
            if ((int)o->group == group)
                print_option(file, o);
    }
    fputs("\nExit status: 0 done, 1 the work failed, 2 usage.\n"
          "\nExamples:\n"
          "  gpuconv blur photo.png blurred.png\n"
          "  gpuconv gaussian:2.5,sharpen - - --format png < photo.jpg > soft.png\n"
          "  gpuconv sobel-x photo.png edges.png --border zero --verbose\n",
          file);
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
