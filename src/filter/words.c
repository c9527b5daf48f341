/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of words of other programs, and what an unknown filter probably means. */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_DONE "!gpuconv convolves, ranks, resizes, moves and recolours pixels only"
#define MATRIX "!write a filter file of the line `matrix` and its rows of weights"
#define RANKS "!give median:R, erode:R, dilate:R or rank:R:P as FILTER, for squares of 2R+1 pixels a side"
#define REPLACED "!leave it out: OUTPUT is replaced, and --in-place replaces INPUT"

/* A word in small letters without dashes, perhaps after the option whose value it is; and the filter, option or value
 * that gpuconv has for it, or a sentence after `!`. */
static const char *const words[][2] = {
    {"autoorient", "!leave it out: images are turned upright, unless --no-orient is given"},
    {"delta", "--tolerance"},
    {"diff", "!give gpuconv --compare EXPECTED ACTUAL DIFF"},
    {"dryrun", "!--digest --filter FILTER and --compare without --update write no image"},
    {"f", "--format"},
    {"force", REPLACED},
    {"fuzz", "--tolerance"},
    {"gpu", "--backend cuda"},
    {"height", "!give resize:xHEIGHT as FILTER"},
    {"i", "!give gpuconv FILTER INPUT OUTPUT"},
    {"keepgoing", "!leave it out: after a failure the other files continue"},
    {"listdevices", "--devices"},
    {"keepmetadata", "!leave it out: metadata are kept, unless --strip is given"},
    {"maxdiffpixels", "--different"},
    {"metric", "--min-ssim or --min-psnr"},
    {"outdir", "--output"},
    {"overwrite", REPLACED},
    {"q", "--quality, or -q, --quiet"},
    {"r", "-r, --recursive"},
    {"sha256", "--digest"},
    {"silent", "--quiet"},
    {"size", "!give resize:SIZE as FILTER"},
    {"threshold", "!to compare, give --tolerance-yiq T; as FILTER, give threshold:P"},
    {"u", "--update"},
    {"verify", "--check"},
    {"width", "!give resize:WIDTHx as FILTER"},
    {"y", REPLACED},
    {"bilateral", NOT_DONE},
    {"brighten", "brightness"},
    {"brightnesscontrast", "!give brightness:P,contrast:P as FILTER"},
    {"colorize", "tint"},
    {"colormatrix", MATRIX},
    {"colorspace", "!give grey or to-srgb as FILTER; --linear filters in linear light"},
    {"convert", "!to convert only: gpuconv identity INPUT OUTPUT"},
    {"curves", "!write a filter file of the line `curve` and its points, a line `IN OUT` each"},
    {"desaturate", "!give grey, or saturation:-P, as FILTER"},
    {"equalize", "!gpuconv equalizes no levels; give levels:BLACK:WHITE as FILTER to stretch them"},
    {"flip", "mirror:y"},
    {"fliphorizontal", "mirror:x"},
    {"flop", "mirror:x"},
    {"gray", "grey"},
    {"grayscale", "grey"},
    {"greyscale", "grey"},
    {"hue", MATRIX},
    {"level", "levels"},
    {"icctransform", "to-srgb"},
    {"linear", "!give contrast:P,brightness:P as FILTER; --linear filters in linear light"},
    {"lut", "!write a filter file of the line `table` and 256 levels"},
    {"mean", "box"},
    {"modulate", "!give brightness:P,saturation:P as FILTER"},
    {"mogrify", "!give gpuconv --in-place FILTER INPUT..."},
    {"negate", "invert"},
    {"negative", "invert"},
    {"profile", "!give to-srgb as FILTER, which reads the profile of the file"},
    {"recomb", MATRIX},
    {"rotate", "turn"},
    {"saturate", "saturation"},
    {"scale", "resize"},
    {"sepiatone", "sepia"},
    {"smooth", "blur"},
    {"solarize", "!write a filter file of the lines `curve`, `0 0`, `128 128` and `255 0`"},
    {"usm", "unsharp"},
    {"vflip", "mirror:y"},
    {"autocontrast", "auto-contrast"},
    {"autolevel", "auto-levels"},
    {"autolevels", "auto-levels"},
    {"black_tophat", "blackhat"},
    {"closing", "close"},
    {"denoise", "!give median for specks, or gaussian:SIGMA, as FILTER"},
    {"despeckle", "median"},
    {"dilation", "dilate"},
    {"erosion", "erode"},
    {"getstructuringelement", "!write a filter file of the line `combine minimum` and rows of 0 and 1"},
    {"gradient", "outline"},
    {"grey_dilation", "dilate"},
    {"grey_erosion", "erode"},
    {"mask", "!put its file after a filter: blur@mask.png"},
    {"max", RANKS},
    {"maxfilter", RANKS},
    {"maximum", RANKS},
    {"medianblur", RANKS},
    {"medianfilter", RANKS},
    {"medfilt", RANKS},
    {"min", RANKS},
    {"minfilter", RANKS},
    {"minimum", RANKS},
    {"morphology", "!give erode:R, dilate:R, open:R, close:R, tophat:R, blackhat:R or outline:R as FILTER"},
    {"mosaic", "pixelate"},
    {"normalise", "auto-contrast:1"},
    {"normalize", "auto-contrast:1"},
    {"opening", "open"},
    {"percentile", RANKS},
    {"pixelize", "pixelate"},
    {"rankfilter", RANKS},
    {"region", "!put it after a filter: gaussian:12@100x80+20+30"},
    {"statistic", RANKS},
    {"backend gpu", "cuda"},
    {"border black", "zero"},
    {"border clamp", "replicate"},
    {"border edge", "replicate"},
    {"border mirror", "reflect"},
    {"border repeat", "wrap"},
};

const char *words_find(const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = word, *meant = words[i][0];
        for (; *at != '\0' && (*at == '-' || tolower((unsigned char)*at) == *meant); at++)
            meant += *at != '-';
        if (*meant == '\0' && !islower((unsigned char)*at)) /* medianBlur and rotate:30, but not different */
            return words[i][1];
    }
    return NULL;
}

bool filter_nearest(const char *word, char *nearest, size_t size)
{
    char forms[FORM_COUNT][16], **names = NULL;
    const char *candidates[FORM_COUNT + 1], *found;
    size_t count = 0;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        snprintf(forms[i], sizeof forms[i], "%.*s", (int)strcspn(filter_forms[i].form, ":["), filter_forms[i].form);
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
    /* A number after the letters is a parameter, or a part of the name, as in gaussian3. */
    static const char *const ends[] = {":=(+, 0123456789", ":=(+, "};
    char word[65] = "", tried[256];
    const char *suggestion = word, *meant = words_find(spec);
    struct error inner = {.code = ERROR_NONE};
    bool is_known = false;
    if (strlen(spec) > 4 && strcmp(spec + strlen(spec) - 4, ".txt") == 0)
        return error_about(error, ERROR_USAGE, spec, "there is no such file; check its name, or see gpuconv --list");
    if (meant != NULL && meant[0] == '!')
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; %s", spec, meant + 1);
    snprintf(tried, sizeof tried, "%.250s.txt", spec);
    if (access(tried, F_OK) == 0) {
        suggestion = tried;
        return error_unknown(error, "filter", spec, &suggestion, 1, "--list");
    }
    for (int i = 0; i < 2 && suggestion == word; i++) {
        const char *name = spec + strspn(spec, " ");
        const size_t length = strcspn(name, ends[i]);
        const char *parameters = name + length + strspn(name + length, ends[1]);
        snprintf(tried, sizeof tried, "%.*s", (int)length, name);
        if (meant != NULL && meant[0] != '-')
            snprintf(word, sizeof word, "%.*s", *parameters != '\0' ? (int)strcspn(meant, ":") : 64, meant);
        else if (!filter_nearest(tried, word, sizeof word))
            continue;
        snprintf(tried, sizeof tried, "%s%s%.*s", word, *parameters != '\0' ? ":" : "", (int)strcspn(parameters, ")"),
                 parameters);
        suggestion = filter_find_known(tried, &is_known, filter, filter16, &inner) ? tried : word;
    }
    /* What the error says of wrong parameters. */
    const char *usage = inner.code == ERROR_USAGE ? strstr(inner.message, "\": ") : NULL;
    if (usage != NULL && suggestion == word)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; did you mean %s? %s", spec, word,
                         usage + 3);
    return error_unknown(error, "filter", spec, &suggestion, word[0] != '\0', "--list");
}

/* Find the filter SPEC, which has no region. */
static bool find_whole(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    bool is_known;
    return filter_find_known(spec, &is_known, filter, filter16, error) ||
           (!is_known && error != NULL && fail_unknown(spec, filter, filter16, error));
}

const char *filter_region_text(const char *spec)
{
    const char *at = strchr(spec, '@'), *last = strrchr(spec, '@');
    while (at != last && access(at + 1, F_OK) != 0) /* the path of a mask may have the sign, too */
        at = strchr(at + 1, '@');
    return at == NULL || access(spec, F_OK) == 0 ? NULL : at;
}

bool filter_find(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    const char *at = filter_region_text(spec);
    struct region region = {0};
    if (at == NULL)
        return find_whole(spec, filter, filter16, error);
    const bool is_mask = access(at + 1, F_OK) == 0;
    if (is_mask && strlen(at + 1) < sizeof region.mask_file.path)
        region = (struct region){.is_set = true};
    else if (!region_read(at + 1, &region))
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is neither a region nor the file of a mask; give sides and an offset in pixels or "
                         "percent, for example gaussian:12@100x80+20+30 or blur@50%%x50%%+25%%+25%%",
                         at + 1);
    char *whole = strndup(spec, (size_t)(at - spec));
    if (whole == NULL)
        return error_no_memory(error, "a filter");
    bool done = find_whole(whole, filter, filter16, error);
    free(whole);
    if (done && filter_kind(filter)->resizes)
        done = error_set(error, ERROR_USAGE,
                         "%s changes the size of the picture or moves it, so it cannot have a region; leave out "
                         "\"%s\"",
                         filter->name, at);
    if (done && filter->kind == STEP_POINT && filter->point.needs_colours)
        done =
            error_set(error, ERROR_USAGE,
                      "%s is for whole pictures, which have one profile, so it cannot have a region; leave out \"%s\"",
                      filter->name, at);
    if (is_mask)
        snprintf(region.mask_file.path, sizeof region.mask_file.path, "%s", at + 1);
    for (struct filter *one = done ? filter : NULL; one != NULL; one = one->filter16) {
        one->region = region;
        filter_set_name(one, spec);
    }
    return done;
}
