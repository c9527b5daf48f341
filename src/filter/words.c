/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of words of other programs, and what an unknown filter probably means. */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word in small letters without dashes, after its place; and what gpuconv has for it, or a sentence after `!`. */
static const char *const words[][2] = {
    {"-hash", "--digest"},
    {"-sha256", "--digest"},
    {"-verify", "--check"},
    {"-filters", "--list"},
    {"-kernel", "resize:SIZE:KERNEL as FILTER, such as resize:50%:lanczos3"},
    {"-input", "gpuconv FILTER INPUT OUTPUT"},
    {"-i", "gpuconv FILTER INPUT OUTPUT"},
    {"-outdir", "--output"},
    {"-sigma", "gaussian:SIGMA as FILTER"},
    {"-radius", "box:R as FILTER"},
    {"-resize", "resize:SIZE as FILTER"},
    {"-size", "resize:SIZE as FILTER"},
    {"-rotate", "turn:90 as FILTER"},
    {"-width", "resize:WIDTHx as FILTER"},
    {"-w", "resize:WIDTHx as FILTER"},
    {"-height", "resize:xHEIGHT as FILTER"},
    {"-gpu", "--backend cuda"},
    {"-f", "--format"},
    {"-q", "--quality, or -q, --quiet"},
    {"-silent", "--quiet"},
    {"-workers", "--jobs"},
    {"-nometadata", "--strip"},
    {"-keepmetadata", "!leave it out: metadata are kept, unless --strip is given"},
    {"-delta", "--tolerance"},
    {"-fuzz", "--tolerance"},
    {"-threshold", "--tolerance-yiq"},
    {"-failurethreshold", "--different"},
    {"-maxdiffpixels", "--different"},
    {"-maxdiffpixelratio", "--different"},
    {"-metric", "--min-ssim or --min-psnr"},
    {"-diff", "gpuconv --compare EXPECTED ACTUAL DIFF"},
    {"-ci", "--new-fails"},
    {"~u", "--update"},
    {"~dryrun", "!leave --update out, and nothing is written"},
    {"-dryrun", "!--digest --filter FILTER filters, and writes nothing"},
    {"-nofail", "!leave it out: a failed file is reported, and the others are done"},
    {"-autoorient", "!leave it out: images are turned upright, unless --no-orient is given"},
    {"-colorspace", "!images keep their colours; --linear filters in linear light"},
    {"-force", "!leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {"-overwrite", "!leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {"-y", "!leave it out: OUTPUT is replaced, and --in-place replaces INPUT"},
    {"=mogrify", "!give gpuconv --in-place FILTER INPUT..."},
    {"=identify", "!gpuconv does not describe images; the program file does"},
    {"=convert", "!to convert only: gpuconv identity INPUT OUTPUT"},
    {"=average", "box"},
    {"=mean", "box"},
    {"=usm", "unsharp"},
    {"=smooth", "blur"},
    {"=outline", "edge"},
    {"=thumb", "thumbnail"},
    {"=scale", "resize"},
    {"=shrink", "resize"},
    {"=rotate", "turn"},
    {"=fliph", "mirror:x"},
    {"=hflip", "mirror:x"},
    {"=flop", "mirror:x"},
    {"=flip", "mirror:y"},
    {"=vflip", "mirror:y"},
    {"=extent", "pad"},
    {"=median", "!gpuconv convolves, resizes and moves samples only"},
    {"=bilateral", "!gpuconv convolves, resizes and moves samples only"},
    {"=dilat", "!gpuconv convolves, resizes and moves samples only"},
    {"=ero", "!gpuconv convolves, resizes and moves samples only"},
    {"=gray", "!gpuconv convolves, resizes and moves samples only"},
    {"=grey", "!gpuconv convolves, resizes and moves samples only"},
    {"=invert", "!gpuconv convolves, resizes and moves samples only"},
    {"=canny", "!gpuconv convolves, resizes and moves samples only"},
    {"=threshold", "!gpuconv convolves, resizes and moves samples only"},
    {":bilinear", "triangle"},
    {":linear", "triangle"},
    {":bicubic", "cubic"},
    {":catrom", "cubic"},
    {":lanczos", "lanczos3"},
    {":area", "box"},
    {":neighbor", "nearest"},
    {":nearestneighbor", "nearest"},
    {":point", "nearest"},
    {":fit", ""},
    {":inside", ""},
    {":contain", ""},
    {":fill", "exact"},
    {":stretch", "exact"},
    {":upscale", "enlarge"},
};

const char *words_find(char place, const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = word, *meant = words[i][0] + 1;
        for (; *at != '\0' && *meant != '\0' && (*at == '-' || tolower((unsigned char)*at) == *meant); at++)
            meant += *at != '-';
        if (words[i][0][0] == place && *meant == '\0' && (*at == '\0' || place == '='))
            return words[i][1];
    }
    return NULL;
}

/* Write SPEC to TEXT, of SIZE bytes, with JOINT in place of whatever separates its words, and a colon before the first
 * number. Longer text is cut. */
static void respell(const char *spec, char joint, char *text, size_t size)
{
    size_t length = 0;
    bool has_joint = false;
    for (const char *at = spec; *at != '\0' && length + 2 < size; at++) {
        const bool kept = isalnum((unsigned char)*at) || strchr(joint == ':' ? "-_.%+" : "-_.%", *at) != NULL ||
                          (*at == ':' && joint == ',');
        const bool is_number = joint == ':' && !has_joint && isdigit((unsigned char)*at) && length > 0;
        if ((!kept || is_number) && length > 0 && text[length - 1] != joint) {
            text[length++] = joint;
            has_joint = true;
        }
        if (kept)
            text[length++] = *at;
    }
    text[length - (length > 0 && text[length - 1] == joint)] = '\0';
}

/* Write SPEC, a resize of another program, in our words to TEXT, of SIZE bytes. A lone number is a width. */
static void translate_resize(const char *spec, char *text, size_t size)
{
    const char *at = spec + strcspn(spec, ":"), *end = at + 1 + strcspn(at + 1, ":!>"), *ours;
    char word[64], sides[64];
    snprintf(sides, sizeof sides, "%.*s", (int)(end - at - 1), at + 1);
    for (char *x = sides; *x != '\0'; x++)
        *x = strchr("X*", *x) != NULL ? 'x' : *x;
    if (strspn(sides, "0123456789") == strlen(sides) && *end == ':' && isdigit((unsigned char)end[1])) { /* 800:600 */
        const size_t digits = strspn(end + 1, "0123456789"), used = strlen(sides);
        snprintf(sides + used, sizeof sides - used, "x%.*s", (int)digits, end + 1);
        end += 1 + digits;
    } else if (strspn(sides, "0123456789.") == strlen(sides) && strchr(sides, '.') == strrchr(sides, '.')) {
        const bool is_factor = strchr(sides, '.') != NULL;
        snprintf(sides, sizeof sides, is_factor ? "%g%%" : "%.0fx", strtod(sides, NULL) * (is_factor ? 100 : 1));
    }
    size_t length =
        (size_t)snprintf(text, size, "%.*s:%s%s", (int)(at - spec), spec, sides, *end == '!' ? ":exact" : "");
    for (end += *end == '!' || *end == '>'; *end == ':' && length < size; end += strcspn(end, ":")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(end + 1, ":"), end + 1);
        ours = words_find(':', word);
        ours = ours != NULL ? ours : word;
        length += (size_t)snprintf(text + length, size - length, "%s%s", *ours != '\0' ? ":" : "", ours);
        end++;
    }
}

/* Write the name that is nearest to WORD to NEAREST, of SIZE bytes: that of a filter, or the word of a form. */
static bool find_nearest(const char *word, char *nearest, size_t size)
{
    char forms[FORM_COUNT][16], **names = NULL;
    const char *candidates[FORM_COUNT + 1], *found;
    size_t count = 0;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        snprintf(forms[i], sizeof forms[i], "%.*s", (int)strcspn(filter_forms[i][0], ":"), filter_forms[i][0]);
        candidates[i] = forms[i];
    }
    filter_names(&names, &count, NULL);
    const size_t more = error_nearest(word, (const char *const *)names, count, &candidates[FORM_COUNT], 1);
    const bool done = error_nearest(word, candidates, FORM_COUNT + more, &found, 1) > 0;
    if (done)
        snprintf(nearest, size, "%s", found);
    free(names);
    return done;
}

/* Report that there is no filter SPEC, and what it probably means. FILTER and FILTER16 are scratch. Returns false. */
static bool fail_unknown(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    char text[256], word[65], tried[256];
    const char *suggestion = text, *meant = words_find('=', spec);
    struct error inner = {.code = ERROR_NONE};
    bool is_known = false;
    if (strlen(spec) > 4 && strcmp(spec + strlen(spec) - 4, ".txt") == 0)
        return error_about(error, ERROR_USAGE, spec, "there is no such file; check its name, or see gpuconv --list");
    if (meant != NULL && meant[0] == '!')
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; %s", spec, meant + 1);
    for (const char *joint = ",:"; *joint != '\0'; joint++) {
        struct filter *filters = NULL;
        size_t count;
        respell(spec, *joint, text, sizeof text);
        const bool is_there = strlen(spec) < sizeof text / 2 && strcmp(text, spec) != 0 &&
                              filter_find_all(text, filter_find, &filters, &count, NULL);
        free(filters);
        if (is_there)
            return error_unknown(error, "filter", spec, &suggestion, 1, "--list");
    }

    const char *parameters = text + strcspn(text, ":");
    /* A number after the letters may be a part of the name, as in box3, or a parameter. */
    const size_t lengths[] = {strcspn(spec, ":=(+, "), (size_t)(parameters - text)};
    bool done = meant != NULL;
    snprintf(word, sizeof word, "%.*s", *parameters != '\0' ? (int)strcspn(meant != NULL ? meant : "", ":") : 64,
             meant != NULL ? meant : "");
    for (int i = 0; i < 2 && !done; i++) {
        snprintf(tried, sizeof tried, "%.*s", (int)lengths[i], spec);
        done = find_nearest(tried, word, sizeof word);
    }
    if (!done)
        return error_unknown(error, "filter", spec, NULL, 0, "--list");
    snprintf(tried, sizeof tried, "%s%.120s", word, parameters);
    suggestion = filter_find_known(tried, &is_known, filter, filter16, &inner) ? tried : word;
    const char *usage = inner.code == ERROR_USAGE ? strstr(inner.message, "\": ") : NULL; /* of wrong parameters */
    if (usage != NULL)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; %s", spec, usage + 3);
    if (strcmp(suggestion, spec) == 0 || (suggestion == word && strncmp(spec, word, strlen(word)) == 0))
        return error_set(error, ERROR_USAGE,
                         "there is no filter \"%s\": %s takes no parameter; gpuconv --list shows which do", spec, word);
    return error_unknown(error, "filter", spec, &suggestion, 1, "--list");
}

bool filter_find(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    bool is_known;
    char text[256];
    const char *suggestion = text;
    const bool done = filter_find_known(spec, &is_known, filter, filter16, error);
    if (error == NULL || done)
        return done;
    if (is_known && is_resize_word(spec, strcspn(spec, ":")) && error->code == ERROR_USAGE &&
        strlen(spec) < sizeof text / 2 && strchr(spec, ':') != NULL) {
        translate_resize(spec, text, sizeof text);
        if (resize_is_valid(text))
            return error_unknown(error, "filter", spec, &suggestion, 1, "--list");
    }
    return is_known ? false : fail_unknown(spec, filter, filter16, error);
}
