/* SPDX-License-Identifier: MIT */
#include "app/option_table.h"
#include "base/text.h"

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_value(const struct option *o, const struct options *options, char *text, size_t size)
{
    const void *field = (const char *)options + o->field;
    const uint8_t *colour = field;
    const struct format *const *format = field;
    if (o->kind == KIND_FLAG)
        snprintf(text, size, "%d", *(const bool *)field);
    else if (o->kind == KIND_COLOUR)
        snprintf(text, size, "%02x%02x%02x", colour[0], colour[1], colour[2]);
    else if (o->kind == KIND_FORMAT)
        snprintf(text, size, "%s", *format != NULL ? (*format)->name : "");
    else if (o->kind == KIND_WORD || o->kind == KIND_FLAG_WORD)
        snprintf(text, size, "%s", o->word(*(const int *)field));
    else
        snprintf(text, size, "%d", *(const int *)field);
}

/* Print the options that are not at their defaults: so an option that a later version adds changes no recipe. The taps
 * contain --flip and --abs. An option that decides which files are filtered, or by which code, is no part: with it, a
 * second run may do what the first refused. */
static void print_options(FILE *file, const struct options *options)
{
    for (const struct option *o = option_table; o < option_table + option_count; o++) {
        char value[64], standard[64];
        if ((o->bits & IN_RECIPE) == 0)
            continue;
        print_value(o, options, value, sizeof value);
        print_value(o, &option_defaults, standard, sizeof standard);
        if (strcmp(value, standard) != 0)
            fprintf(file, "%s %s\n", o->name, value);
    }
}

/* Print the part of the picture that a filter is limited to, and what its mask says; nothing if there is none. */
static void print_region(FILE *file, const struct region *region)
{
    const struct share shares[] = {region->width, region->height, region->x, region->y};
    const struct mask *mask = region->mask;
    char hash[SHA256_DIGEST_STRING_LENGTH];
    for (int i = 0; region->is_set && i < 4; i++)
        fprintf(file, "@%lld/%lld", (long long)shares[i].numerator, (long long)shares[i].denominator);
    if (mask == NULL)
        return;
    SHA256Data((const uint8_t *)mask->levels, (size_t)mask->width * (size_t)mask->height * sizeof *mask->levels, hash);
    fprintf(file, "@%d %s", mask->width, hash);
}

bool options_hash(const struct options *options, const struct filter_chain *chain, char text[RECIPE_TEXT])
{
    struct text_buffer values;
    char hash[SHA256_DIGEST_STRING_LENGTH];
    FILE *file = text_open(&values);
    if (file == NULL)
        return false;
    for (size_t i = 0; i < chain->count; i++) {
        filter_kind(&chain->filters[i])->print(file, &chain->filters[i]);
        print_region(file, &chain->filters[i].region);
        fputc('\n', file);
    }
    print_options(file, options);
    if (!text_close(file, &values))
        return false;
    SHA256Data((const uint8_t *)values.bytes, values.size, hash);
    snprintf(text, RECIPE_TEXT, "%.16s", hash);
    free(values.bytes);
    return true;
}
