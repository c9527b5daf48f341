/* SPDX-License-Identifier: MIT
 *
 * Find a filter, or say what its name probably means. Nothing is suggested with parameters or in a chain that was not
 * tried. */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How words of other programs begin, and our name for them, or NULL if there is no such filter. */
static const char *const words_meant[][2] = {
    {"average", "box"},  {"mean", "box"},         {"usm", "unsharp"},  {"smooth", "blur"},  {"outline", "edge"},
    {"contour", "edge"}, {"median", NULL},        {"bilateral", NULL}, {"erode", NULL},     {"erosion", NULL},
    {"dilat", NULL},     {"canny", NULL},         {"morpholog", NULL}, {"threshold", NULL}, {"thumb", "thumbnail"},
    {"scale", "resize"}, {"shrink", "resize"},    {"rotate", "turn"},  {"flip", "mirror"},  {"flop", "mirror"},
    {"extent", "pad"},   {"convert", "identity"},
};

/* Words of other programs after resize's size, and ours. Pictures fit into both sides without a word. */
static const char *const resize_words_meant[][2] = {
    {"bilinear", "triangle"}, {"linear", "triangle"},
    {"bicubic", "cubic"},     {"catrom", "cubic"},
    {"lanczos", "lanczos3"},  {"area", "box"},
    {"average", "box"},       {"neighbor", "nearest"},
    {"point", "nearest"},     {"fit", ""},
    {"inside", ""},           {"contain", ""},
    {"fill", "exact"},        {"stretch", "exact"},
    {"force", "exact"},       {"ignore", "exact"},
    {"upscale", "enlarge"},
};

/* Write SPEC to TEXT, of SIZE bytes, with JOINT in place of whatever separates its words. As a colon, JOINT also stands
 * between a word and a number. Longer text is cut. */
static void respell(const char *spec, char joint, char *text, size_t size)
{
    size_t length = 0;
    for (const char *at = spec; *at != '\0' && length + 2 < size; at++) {
        const bool kept = isalnum((unsigned char)*at) || strchr("-_.%", *at) != NULL || (*at == ':' && joint == ',');
        const bool is_number =
            joint == ':' && at > spec && isdigit((unsigned char)*at) && isalpha((unsigned char)at[-1]);
        if ((!kept || is_number) && length > 0 && text[length - 1] != joint)
            text[length++] = joint;
        if (kept)
            text[length++] = *at;
    }
    text[length - (length > 0 && text[length - 1] == joint)] = '\0';
}

/* ---- Sizes ---- */

/* Write the size in the LENGTH characters of SIZE, as other programs have it, to TEXT as FORM says: `%sx` for a width.
 * A factor becomes a percentage. */
static void translate_size(const char *size, size_t length, const char *form, char *text, size_t max)
{
    char ours[32], *rest;
    snprintf(ours, sizeof ours, "%.*s", (int)length, size);
    const double factor = strtod(ours, &rest);
    for (char *at = ours; *at != '\0'; at++)
        *at = *at == 'X' || *at == '*' ? 'x' : *at;
    if (*rest != '\0' || ours[strspn(ours, "0123456789.")] != '\0')
        snprintf(text, max, "%.*s", (int)strcspn(ours, "!>"), ours);
    else if (strchr(ours, '.') != NULL)
        snprintf(text, max, "%g%%", 100 * factor);
    else
        snprintf(text, max, form, ours);
}

/* Write SPEC with our words for those of other programs to TEXT. FORM is what a lone number means. */
static void translate_resize(const char *spec, const char *form, char *text, size_t max)
{
    char size[64];
    const char *at = spec + strcspn(spec, ":"), *end = at + 1 + strcspn(at + 1, ":"), *second = end + (*end == ':');
    const size_t digits = strspn(second, "0123456789");
    const bool is_exact = end[-1] == '!';
    translate_size(at + 1, (size_t)(end - at - 1), digits > 0 && second[digits] != 'x' ? "%sx" : form, size,
                   sizeof size);
    size_t length = (size_t)snprintf(text, max, "%.*s:%s%s", (int)(at - spec), spec, size, is_exact ? ":exact" : "");
    if (digits > 0 && second[digits] != 'x') { /* width:height */
        length += (size_t)snprintf(text + length, max - length, "%.*s", (int)digits, second);
        end = second + digits;
    }
    while (*end == ':' && length < max) {
        char word[64];
        const char *ours = word;
        const size_t count = strcspn(end + 1, ":");
        snprintf(word, sizeof word, "%.*s", (int)count, end + 1);
        end += 1 + count;
        for (size_t i = 0; i < sizeof resize_words_meant / sizeof *resize_words_meant; i++)
            if (strcasecmp(word, resize_words_meant[i][0]) == 0)
                ours = resize_words_meant[i][1];
        length += (size_t)snprintf(text + length, max - length, "%s%s", *ours != '\0' ? ":" : "", ours);
    }
}

/* SPEC, which begins with the word for a resize, cannot be read. If it is clear what it means in another program,
 * suggest that in ERROR. */
static void suggest_resize(const char *spec, struct error *error)
{
    static const char *const forms[] = {"%sx", "x%s", "%s%%"};
    enum { FORMS = sizeof forms / sizeof *forms };
    char texts[FORMS][256];
    const char *found[FORMS];
    size_t count = 0;
    if (strlen(spec) >= sizeof texts[0] / 2 || strchr(spec, ':') == NULL)
        return;
    for (int i = 0; i < FORMS; i++) {
        translate_resize(spec, forms[i], texts[count], sizeof texts[count]);
        found[count] = texts[count];
        const bool is_new = count == 0 || strcmp(texts[count], texts[0]) != 0;
        count += is_new && resize_is_valid(texts[count]);
    }
    if (count > 0)
        error_unknown(error, "filter", spec, found, count, "--list");
}

/* ---- Names ---- */

/* Is each filter of SPECS, which commas join, there? */
static bool are_there(const char *specs, struct filter *filter, struct filter *filter16)
{
    char spec[256];
    size_t length;
    for (const char *at = specs;; at += length + 1) {
        length = strcspn(at, ",");
        snprintf(spec, sizeof spec, "%.*s", (int)length, at);
        bool is_known;
        if (!filter_find_known(spec, &is_known, filter, filter16, NULL))
            return false;
        if (at[length] == '\0')
            return true;
    }
}

/* Report that NAME, a filter that is there, takes no parameters, and which filters do. */
static bool refuse_parameters(const char *spec, const char *name, struct error *error)
{
    char forms[256] = "";
    for (size_t i = 0; i < GENERATOR_COUNT; i++)
        text_add_word(forms, sizeof forms, filter_forms[i][0], i == GENERATOR_COUNT - 1 ? " and " : NULL);
    return error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s takes no parameter, but %s do", spec, name,
                     forms);
}

/* Report SPEC, and suggest a name that is near to WORD, with PARAMETERS, which are empty or begin with a colon. NAMES
 * are those of filter_names. Returns whether there was such a name. */
static bool suggest_nearest(const char *spec, const char *word, const char *parameters, const char *const *names,
                            size_t count, struct filter *filter, struct error *error)
{
    const char *candidates[FORM_COUNT + 1], *nearest;
    char words[FORM_COUNT][16], tried[256];
    for (size_t i = 0; i < FORM_COUNT; i++) {
        snprintf(words[i], sizeof words[i], "%.*s", (int)strcspn(filter_forms[i][0], ":"), filter_forms[i][0]);
        candidates[i] = words[i];
    }
    const size_t more = error_nearest(word, names, count, &candidates[FORM_COUNT], 1);
    if (error_nearest(word, candidates, FORM_COUNT + more, &nearest, 1) == 0)
        return false;

    for (size_t i = GENERATOR_COUNT; i < FORM_COUNT; i++)
        if (nearest == candidates[i]) {
            bool is_known;
            snprintf(tried, sizeof tried, "%s%s", nearest, parameters);
            nearest = filter_find_known(tried, &is_known, filter, NULL, NULL) ? tried : filter_forms[i][0];
            error_unknown(error, "filter", spec, &nearest, 1, "--list");
            return true;
        }
    const bool is_name = more > 0 && strcmp(nearest, candidates[FORM_COUNT]) == 0;
    const size_t generator = generator_index(nearest, strlen(nearest));
    if (generator == GENERATOR_COUNT && *parameters != '\0' && strcmp(nearest, word) == 0) {
        refuse_parameters(spec, nearest, error);
        return true;
    }
    const bool is_generator = generator < GENERATOR_COUNT && !(is_name && *parameters == '\0'); /* `unsharp` is both */
    snprintf(tried, sizeof tried, "%s%s", nearest, is_generator ? parameters : "");
    nearest =
        is_generator && !filter_generate(tried, generator, filter, NULL, NULL) ? filter_forms[generator][0] : tried;
    error_unknown(error, "filter", spec, &nearest, 1, "--list");
    return true;
}

/* Report that there is no filter SPEC, and what it probably means. FILTER and FILTER16 are scratch. Returns false. */
static bool fail_unknown(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    char text[256], word[65];
    const char *suggestion = text, *meant = "";
    for (const char *joint = ",:"; *joint != '\0'; joint++) {
        respell(spec, *joint, text, sizeof text);
        if (strlen(spec) < sizeof text / 2 && strcmp(text, spec) != 0 && are_there(text, filter, filter16))
            return error_unknown(error, "filter", spec, &suggestion, 1, "--list");
    }
    for (size_t i = 0; i < sizeof words_meant / sizeof *words_meant; i++)
        if (strncasecmp(spec, words_meant[i][0], strlen(words_meant[i][0])) == 0)
            meant = words_meant[i][1];
    if (meant == NULL)
        return error_set(error, ERROR_USAGE,
                         "there is no filter named \"%s\": gpuconv convolves, resizes and moves samples only (gpuconv "
                         "--list shows all)",
                         spec);

    const char *parameters = text + strcspn(text, ":");
    /* A number after the letters may be a part of the name, as in box3, or a parameter. */
    const size_t lengths[] = {strcspn(spec, ":=(+, "), (size_t)(parameters - text)};
    char **names = NULL;
    size_t count = 0;
    bool suggested = false;
    filter_names(&names, &count, NULL);
    for (int i = 0; i < 2 && !suggested; i++) {
        snprintf(word, sizeof word, "%.*s", (int)lengths[i], spec);
        suggested = suggest_nearest(spec, *meant != '\0' ? meant : word, parameters, (const char *const *)names, count,
                                    filter, error);
    }
    free(names);
    return suggested ? false : error_unknown(error, "filter", spec, NULL, 0, "--list");
}

bool filter_find(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    bool is_known;
    const bool done = filter_find_known(spec, &is_known, filter, filter16, error);
    if (error == NULL || done)
        return done;
    if (is_known && is_resize_word(spec, strcspn(spec, ":")) && error->code == ERROR_USAGE)
        suggest_resize(spec, error);
    return is_known ? false : fail_unknown(spec, filter, filter16, error);
}
