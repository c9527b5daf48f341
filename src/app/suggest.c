/* SPDX-License-Identifier: MIT */
#include "app/option_table.h"
#include "base/text.h"
#include "codec/format.h"
#include "filter/filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Words ---- */

static bool is_number(const char *text)
{
    return isdigit((unsigned char)*text) && text[strspn(text, "0123456789.%")] == '\0';
}

/* A word of other programs for an option, without its dashes, in small letters. */
struct meant {
    const char *word;
    const char *ours; /* our option, with what follows it, or another part of the command line; NULL if there is none */
    const char *advice; /* what to do instead, if OURS is NULL */
    bool is_command;    /* the word is another program, in place of FILTER */
};

static const struct meant options_meant[] = {
    {.word = "hash", .ours = "--digest"},
    {.word = "sha256", .ours = "--digest"},
    {.word = "verify", .ours = "--check"},
    {.word = "filters", .ours = "--list"},
    {.word = "kernel", .ours = "gpuconv FILTER INPUT OUTPUT"},
    {.word = "input", .ours = "gpuconv FILTER INPUT OUTPUT"},
    {.word = "sigma", .ours = "gaussian:SIGMA as FILTER"},
    {.word = "radius", .ours = "box:R as FILTER"},
    {.word = "resize", .ours = "resize:SIZE as FILTER"},
    {.word = "width", .ours = "resize:WIDTHx as FILTER"},
    {.word = "height", .ours = "resize:xHEIGHT as FILTER"},
    {.word = "f", .ours = "--format"},
    {.word = "silent", .ours = "--quiet"},
    {.word = "parallel", .ours = "--jobs"},
    {.word = "workers", .ours = "--jobs"},
    {.word = "nometadata", .ours = "--strip"},
    {.word = "fuzz", .ours = "--tolerance"},
    {.word = "threshold", .ours = "--tolerance-yiq"},
    {.word = "matchingthreshold", .ours = "--tolerance-yiq"},
    {.word = "thresholdpixel", .ours = "--different"},
    {.word = "thresholdrate", .ours = "--different"},
    {.word = "failurethreshold", .ours = "--different"},
    {.word = "maxdiffpixels", .ours = "--different"},
    {.word = "maxdiffpixelratio", .ours = "--different"},
    {.word = "metric", .ours = "--min-ssim or --min-psnr"},
    {.word = "enableantialias", .ours = "--ignore-antialiasing"},
    {.word = "diff", .ours = "gpuconv --compare EXPECTED ACTUAL DIFF"},
    {.word = "ci", .ours = "--new-fails"},
    {.word = "u", .ours = "--update"},
    {.word = "mplgeneratepath", .ours = "--update"},
    {.word = "mogrify", .ours = "gpuconv --in-place FILTER INPUT...", .is_command = true},
    {.word = "identify", .advice = "gpuconv does not describe images; the program file does", .is_command = true},
    {.word = "autoorient", .advice = "leave it out: images are turned upright, unless --no-orient is given"},
    {.word = "colorspace", .advice = "images keep their colours; --linear filters in linear light"},
    {.word = "force", .advice = "leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {.word = "overwrite", .advice = "leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {.word = "y", .advice = "leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {.word = "dryrun", .advice = "--digest --filter FILTER filters, and writes nothing"},
};

/* Is WORD, in any case and without its dashes, the word MEANT of the table? */
static bool is_word_meant(const char *word, const char *meant)
{
    for (; *word != '\0'; word++)
        if (*word != '-' && tolower((unsigned char)*word) != *meant++)
            return false;
    return *meant == '\0';
}

/* The word of the option O that VALUE is, or that it means, or NULL. */
static const char *find_word(const struct option *o, const char *value)
{
    for (size_t i = 0; o->meant != NULL && o->meant[i][0] != NULL; i++)
        if (strcasecmp(o->meant[i][0], value) == 0)
            return o->meant[i][1];
    for (int i = 0; o->word(i) != NULL; i++)
        if (strcasecmp(o->word(i), value) == 0)
            return o->word(i);
    return NULL;
}

/* Write an option other than O that takes VALUE to TEXT, with the value. Returns false if there is none. */
static bool find_value(const struct option *o, const char *value, char *text, size_t size)
{
    for (const struct option *other = option_table; other < option_table + option_count; other++) {
        const bool names = (other->bits & ONLY_BENCH) == 0 && (other->kind == KIND_WORD || other->kind == KIND_FORMAT);
        const char *word = other != o && names ? find_word(other, value) : NULL;
        if (word != NULL)
            return snprintf(text, size, "--%s %s", other->name, word) > 0;
    }
    return false;
}

/* The mode that must stand before OURS: an option with its dashes, or other text, which needs none. COMPARES says
 * whether the command line has --compare already. */
static const char *mode_before(const char *ours, bool compares)
{
    const struct option *o = ours[0] == '-' ? option_find(ours + 2, strcspn(ours + 2, " ")) : NULL;
    const unsigned bits = o != NULL ? o->bits : 0;
    return bits & ONLY_BENCH                  ? "--bench "
           : bits & ONLY_DIGEST               ? "--digest "
           : bits & ONLY_JOBS                 ? "--jobs-from FILE "
           : bits & ONLY_COMPARE && !compares ? "--compare "
                                              : "";
}

/* Write the options whose names are nearest to WORD to TEXT, with the mode that they need. */
static void join_nearest(const char *word, bool compares, char *text, size_t size)
{
    enum { NEAREST_MAX = 4 };
    const char *names[OPTIONS_MAX], *nearest[NEAREST_MAX];
    for (size_t i = 0; i < option_count; i++)
        names[i] = option_table[i].name;
    const size_t count = error_nearest(word, names, option_count, nearest, NEAREST_MAX);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char ours[64], name[96];
        snprintf(ours, sizeof ours, "--%s", nearest[i]);
        snprintf(name, sizeof name, "%s%s", mode_before(ours, compares), ours);
        text_add_word(text, size, name, i + 1 == count ? " or " : NULL);
    }
}

/* The row for WORD, or NULL. */
static const struct meant *find_meant(const char *word)
{
    for (size_t i = 0; i < sizeof options_meant / sizeof *options_meant; i++)
        if (is_word_meant(word, options_meant[i].word))
            return &options_meant[i];
    return NULL;
}

/* Write what the option WORD, without its dashes, probably means to TEXT, or "" if that is not known. */
static void guess_option(const char *word, bool compares, char *text, size_t size)
{
    text[0] = '\0';
    if (filter_is_named(word)) /* also a generator */
        snprintf(text, size, "the filter %s, which has no dash", word);
    else if (!find_value(NULL, word, text, size))
        join_nearest(word, compares, text, size);
    char **filters = NULL;
    const char *nearest;
    size_t count = 0;
    if (text[0] == '\0' && filter_names(&filters, &count, NULL) &&
        error_nearest(word, (const char *const *)filters, count, &nearest, 1) > 0)
        snprintf(text, size, "the filter %s, which has no dash", nearest);
    free(filters);
}

/* ---- Options ---- */

/* Report the unknown option TYPED, which means MEANT, or is NULL, or probably GUESS, or is "". Returns false. */
static bool report_unknown(const char *typed, const struct meant *meant, const char *guess, bool compares,
                           struct error *error)
{
    char text[256];
    if (meant != NULL && meant->ours == NULL)
        return error_set(error, ERROR_USAGE, "unknown option %s; %s", typed, meant->advice);
    if (meant != NULL) {
        snprintf(text, sizeof text, "%s%s", mode_before(meant->ours, compares), meant->ours);
        guess = text;
    }
    if (guess[0] != '\0')
        return error_set(error, ERROR_USAGE, "unknown option %s; did you mean %s?%s", typed, guess,
                         compares ? " gpuconv --compare --help lists all" : "");
    return error_set(error, ERROR_USAGE, "unknown option %s; gpuconv %s--help lists all", typed,
                     compares ? "--compare " : "");
}

bool suggest_option(const char *argument, size_t length, bool compares, struct error *error)
{
    char typed[256], text[256]; /* what is cut is longer than any option's name */
    snprintf(typed, sizeof typed, "%.*s", (int)length, argument);
    const char *word = typed + strspn(typed, "-");
    guess_option(word, compares, text, sizeof text);
    return report_unknown(typed, find_meant(word), text, compares, error);
}

bool suggest_letter(const char *argument, const char *letter, bool compares, struct error *error)
{
    char typed[256], text[256] = "";
    const int character = text_utf8_length((const uint8_t *)letter, strlen(letter));
    const int length = character > 0 ? character : 1;
    const bool alone = strlen(argument) == 1 + (size_t)length;
    const int code = (unsigned char)*letter;
    const struct option *o = option_of_letter((char)(isupper(code) ? tolower(code) : toupper(code)));
    const struct option *before = letter > argument + 1 ? option_of_letter(letter[-1]) : NULL;
    if (before != NULL && is_number(letter))
        return suggest_no_value(before, true, letter, error);
    const struct meant *meant = find_meant(argument + 1);
    if (meant != NULL && alone && !compares && meant->ours != NULL && mode_before(meant->ours, false)[0] != '\0')
        meant = NULL; /* a letter alone says too little */
    if (alone && o != NULL)
        snprintf(text, sizeof text, "-%c, --%s", o->letter, o->name);
    else if (!alone || compares)
        guess_option(argument + 1, compares, text, sizeof text);
    if (alone || text[0] != '\0' || meant != NULL)
        snprintf(typed, sizeof typed, "%s", argument);
    else
        snprintf(typed, sizeof typed, "-%.*s in %s", length, letter, argument);
    return report_unknown(typed, meant, text, compares, error);
}

/* ---- Values ---- */

bool suggest_word(const struct option *o, const char *value, struct error *error)
{
    const char *words[16]; /* no option has as many */
    size_t count = 0;
    char text[256];
    option_join_words(o, text, sizeof text);
    while (count < sizeof words / sizeof *words && o->word((int)count) != NULL) {
        words[count] = o->word((int)count);
        count++;
    }
    const char *nearest = find_word(o, value);
    if (nearest == NULL && !is_number(value)) /* a number is not a mistyped word */
        error_nearest(value, words, count, &nearest, 1);
    return error_set(error, ERROR_USAGE, "--%s takes %s, not \"%s\"%s%s%s", o->name, text, value,
                     nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?" : "");
}

bool suggest_other_option(const struct option *o, const char *value, struct error *error)
{
    char text[128];
    const bool names = o->word != NULL || o->kind == KIND_VARIANT || o->kind == KIND_CODEC || o->kind == KIND_DEVICES;
    if (!names || !find_value(o, value, text, sizeof text))
        return false;
    return error_set(error, ERROR_USAGE, "%s; or did you mean %s?", error->message, text);
}

bool suggest_no_value(const struct option *o, bool is_letter, const char *value, struct error *error)
{
    char text[128] = "", typed[64];
    for (const struct option *other = option_table; is_number(value) && other < option_table + option_count; other++)
        if (other->kind == KIND_NUMBER && other->name[0] == o->name[0])
            snprintf(text, sizeof text, "; did you mean --%s %.16s?", other->name, value);
    if (is_letter)
        snprintf(typed, sizeof typed, "-%c is --%s and", o->letter, o->name);
    else
        snprintf(typed, sizeof typed, "--%s", o->name);
    return error_set(error, ERROR_USAGE, "%s takes no value, but \"%s\" was given%s", typed, value, text);
}

/* ---- Operands ---- */

/* The number of the argument that stands before OPERAND, if that is an option without a value, or 0. Sets *O to it. */
static int flag_before(int argc, char *const argv[], const char *operand, const struct option **o)
{
    for (int i = 2; i < argc; i++) {
        const char *before = argv[i - 1];
        if (argv[i] != operand || before[0] != '-')
            continue;
        *o = before[1] == '-' ? option_find(before + 2, strlen(before + 2))
                              : option_of_letter(before[strlen(before) - 1]);
        return *o != NULL && (*o)->argument == NULL ? i - 1 : 0;
    }
    return 0;
}

bool suggest_operands(int argc, char *const argv[], int count, char *const *operands, struct error *error)
{
    const char *first = operands[0], *second = count > 1 ? operands[1] : "";
    const bool is_image = format_find_by_path(first) != NULL, is_filter = filter_is_named(first);
    const struct option *o;
    for (int i = is_filter ? 1 : 0; i < 2 && i < count; i++) {
        const int flag =
            is_number(operands[i]) && access(operands[i], F_OK) != 0 ? flag_before(argc, argv, operands[i], &o) : 0;
        if (flag > 0)
            return suggest_no_value(o, argv[flag][1] != '-', operands[i], error);
    }
    if (is_filter && is_number(second) && access(second, F_OK) != 0)
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is no image; the parameters of a filter follow a colon, as in %s:%s", second, first,
                         second);
    if (is_filter && count == 1) { /* a word alone may ask what its parameters are */
        struct filter *filters = NULL;
        size_t filter_count;
        const bool done = filter_find_all(first, filter_find, &filters, &filter_count, error);
        free(filters);
        return done;
    }
    if (is_filter)
        return true;
    const struct meant *meant = find_meant(first);
    if (meant != NULL && meant->is_command && access(first, F_OK) != 0)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; %s%s%s", first,
                         meant->ours != NULL ? "did you mean " : meant->advice, meant->ours != NULL ? meant->ours : "",
                         meant->ours != NULL ? "?" : "");
    o = option_find(first, strlen(first));
    if (o != NULL && access(first, F_OK) != 0)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; did you mean --%s?", first, o->name);
    if (count == 3 && format_find_by_path(second) == NULL && (is_image || filter_is_named(second)))
        return error_set(error, ERROR_USAGE, "FILTER comes first, and %s is %s: gpuconv %s %s %s", first,
                         is_image ? "an image" : "no filter", second, first, operands[2]);
    if (is_image)
        return error_set(error, ERROR_USAGE, "FILTER comes first, and %s is an image; " USAGE, first);
    return true;
}
