/* SPDX-License-Identifier: MIT
 *
 * Values of options: text becomes a field of struct options. */
#include "app/option_table.h"
#include "base/text.h"
#include "codec/codec.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_word(const struct option *o, const char *value, int *field, struct error *error)
{
    for (int i = 0; o->word(i) != NULL; i++)
        if (strcmp(o->word(i), value) == 0) {
            *field = i;
            return true;
        }
    return suggest_word(o, value, error);
}

static bool parse_words(const struct option *o, const char *value, unsigned *field, struct error *error)
{
    char word[32];
    int number = 0;
    for (const char *at = value, *end;; at = end + 1) {
        end = strchrnul(at, ',');
        snprintf(word, sizeof word, "%.*s", (int)(end - at), at);
        if (!parse_word(o, word, &number, error))
            return false;
        *field |= 1u << number;
        if (*end == '\0')
            return true;
    }
}

static bool parse_format(const struct option *o, const char *value, const struct format **field, struct error *error)
{
    *field = format_find_by_suffix(value);
    return (*field != NULL && !(*field)->is_only_read) || suggest_word(o, value, error);
}

static bool parse_option_number(const struct option *o, const char *value, int *field, struct error *error)
{
    const char *end = value;
    static_assert(CODEC_QUALITY_KEEP == 0 && CODEC_COMPRESSION_FAST == -1, "one less than the lows of 1 and 0");
    if (o->keyword != NULL && strcmp(value, o->keyword) == 0) {
        *field = o->low - 1;
        return true;
    }
    const bool has_default =
        *(const int *)((const char *)&option_defaults + o->field) >= o->low; /* else it is all, or any */
    if (text_read_number(&end, o->low, o->high, field) && *end == '\0')
        return true;
    return error_set(error, ERROR_USAGE, "--%s takes a number from %d to %d%s%s, not \"%s\"%s", o->name, o->low,
                     o->high, o->keyword != NULL ? ", or " : "", o->keyword != NULL ? o->keyword : "", value,
                     has_default || o->group == GROUP_FILE ? "" : "; leave it out to use all processors");
}

/* One of the words, as a number; "keep" is 0. */
static bool parse_number_word(const struct option *o, const char *value, int *field, struct error *error)
{
    int row = 0;
    if (!parse_word(o, value, &row, error))
        return false;
    *field = atoi(o->word(row));
    return true;
}

static bool parse_subsampling(const struct option *o, const char *value, int *field, struct error *error)
{
    char digits[8];
    size_t length = 0; /* 4:2:0 is 420 */
    for (const char *at = value; *at != '\0' && length < sizeof digits - 1; at++)
        if (*at != ':')
            digits[length++] = *at;
    digits[length] = '\0';
    return parse_number_word(o, strlen(value) < sizeof digits ? digits : value, field, error);
}

static bool parse_colour(const struct option *o, const char *value, uint8_t *rgb, struct error *error)
{
    return text_read_colour(value, rgb) ||
           error_set(error, ERROR_USAGE,
                     "--%s takes white, black, #RGB or #RRGGBB in quotes, such as '#ff8000', not \"%s\"", o->name,
                     value);
}

/* GPUs: "all", or their indices, joined by commas. */
static bool parse_devices(const struct option *o, const char *value, struct device_choice *devices, struct error *error)
{
    *devices = (struct device_choice){.all = strcmp(value, "all") == 0};
    const char *at = value;
    while (!devices->all) {
        int number;
        if (!text_read_number(&at, o->low, o->high, &number) || (*at != ',' && *at != '\0') ||
            devices->count == DEVICES_MAX)
            return error_set(error, ERROR_USAGE,
                             "--%s takes all, or numbers from %d to %d joined by commas, not \"%s\"", o->name, o->low,
                             o->high, value);
        for (size_t i = 0; i < devices->count; i++)
            if (devices->list[i] == number)
                return error_set(error, ERROR_USAGE, "--%s has GPU %d twice; give it once", o->name, number);
        devices->list[devices->count++] = number;
        if (*at++ == '\0')
            break;
    }
    return true;
}

/* What an amount counts. A k, M, G or T multiplies it by BASE, its square and so on; a unit may end it. */
struct amount {
    double base;
    const char *unit, *short_unit, *what;
};

static const struct amount bytes = {1024, "iB", "B", "bytes, such as 800M or 4G"};

/* M is a million here, as cameras count; a number above CODEC_MAX_PIXELS has no effect. */
static const struct amount pixels = {1000, "px", "P", "pixels, such as 1e6 or 50M for 50 million"};

/* A number from 1, such as 800, 1.5 or 1e6, with a letter and a unit in any case. */
static bool parse_amount(const struct option *o, const char *value, const struct amount *kind, size_t *field,
                         struct error *error)
{
    static const char letters[] = "kmgt";
    char *end;
    double amount = strtod(value, &end);
    const char *letter = *end != '\0' ? strchr(letters, tolower((unsigned char)*end)) : NULL;
    for (const char *at = letters; letter != NULL && at <= letter; at++)
        amount *= kind->base;
    end += letter != NULL;
    const bool is_amount = isdigit((unsigned char)value[0]) && tolower((unsigned char)value[1]) != 'x' && amount >= 1 &&
                           (*end == '\0' || strcasecmp(end, kind->unit) == 0 || strcasecmp(end, kind->short_unit) == 0);
    *field = is_amount && amount < (double)SIZE_MAX ? (size_t)amount : SIZE_MAX;
    return is_amount ||
           error_set(error, ERROR_USAGE, "--%s takes a number of %s, not \"%s\"", o->name, kind->what, value);
}

/* Read a number of at most HIGH, up to 999, with up to six decimals, in millionths, and END after it. */
static bool read_decimal(const char *value, const char *end, int high, int *millionths)
{
    enum { DECIMALS = 6 };
    const size_t whole = strspn(value, "0123456789");
    const bool pointed = value[whole] == '.';
    const char *decimals = value + whole + pointed;
    const size_t count = pointed ? strspn(decimals, "0123456789") : 0;
    int64_t number = whole <= 3 ? atoi(value) : 0;
    for (size_t i = 0; i < DECIMALS; i++)
        number = number * 10 + (i < count ? decimals[i] - '0' : 0);
    *millionths = (int)number;
    return whole + count > 0 && whole <= 3 && count <= DECIMALS && (count > 0 || !pointed) &&
           strcmp(decimals + count, end) == 0 && number <= (int64_t)high * COMPARE_MILLION;
}

static bool parse_decimal(const struct option *o, const char *value, int *field, struct error *error)
{
    return (read_decimal(value, "", o->high, field) && *field > 0) ||
           error_set(error, ERROR_USAGE,
                     "--%s takes a number above 0 and up to %d, with up to six decimals, not \"%s\"", o->name, o->high,
                     value);
}

/* A number of pixels, or a share of them with up to six decimals: 100, 0.1%. */
static bool parse_count_or_share(const struct option *o, const char *value, struct compare_rules *rules,
                                 struct error *error)
{
    const size_t digits = strspn(value, "0123456789");
    rules->different = 0;
    rules->share = 0;
    if (digits > 0 && digits <= 15 && value[digits] == '\0') {
        rules->different = strtoull(value, NULL, 10);
        return true;
    }
    if (read_decimal(value, "%", 100, &rules->share))
        return true;
    return error_set(error, ERROR_USAGE, "--%s takes a number of pixels, or a share of them such as 0.1%%, not \"%s\"",
                     o->name, value);
}

/* X,Y,WIDTH,HEIGHT. */
static bool parse_area(const struct option *o, const char *value, struct compare_rules *rules, struct error *error)
{
    int numbers[4];
    const char *at = value;
    if (rules->area_count == COMPARE_AREAS_MAX)
        return error_set(error, ERROR_USAGE, "--%s was given more than %d times; give a --mask instead", o->name,
                         COMPARE_AREAS_MAX);
    for (int i = 0; i < 4; i++)
        if (!text_read_number(&at, i < 2 ? 0 : 1, FORMAT_SIDE_MAX, &numbers[i]) || *at++ != (i < 3 ? ',' : '\0'))
            return error_set(error, ERROR_USAGE,
                             "--%s takes X,Y,WIDTH,HEIGHT in pixels, such as 0,0,100,20, not \"%s\"", o->name, value);
    rules->areas[rules->area_count++] = (struct compare_area){numbers[0], numbers[1], numbers[2], numbers[3]};
    return true;
}

/* Names of variants with commas between them; only --bench takes more than one. */
static bool parse_variants(const char *value, struct options *options, struct error *error)
{
    char name[256];
    size_t count, length;
    const struct variant *table = variants(&count);
    options->bench.variants = 0;
    for (const char *at = value;; at += length + 1) {
        length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        options->recipe.variant = variant_find(name, error);
        if (options->recipe.variant == NULL)
            return false;
        options->bench.variants |= (uint64_t)1 << (options->recipe.variant - table);
        if (at[length] == '\0')
            return true;
    }
}

/* Help and the version replace any other mode. */
static bool set_mode(struct options *options, int mode, struct error *error)
{
    if (options->mode != MODE_RUN && options->mode != mode && mode != MODE_HELP && mode != MODE_VERSION)
        return error_set(error, ERROR_USAGE, "--%s and --%s cannot be combined; leave one out",
                         options_mode_name(options->mode), options_mode_name(mode));
    options->help_of = options->mode;
    options->mode = mode;
    return true;
}

/* Add an output. VALUE, which is cut in two, is its folder, = and its filter. */
static bool add_also(const struct option *o, const char *value, struct list_request *list, struct error *error)
{
    char *end = strrchr(value, '=');
    if (end == NULL || end == value || end[1] == '\0')
        return error_set(error, ERROR_USAGE, "--%s takes a folder, = and a filter, as in small=resize:640x, not \"%s\"",
                         o->name, value);
    if (list->also_count == OUTPUTS_MAX - 1)
        return error_set(error, ERROR_USAGE, "--%s was given more than %d times; give the others in a second run",
                         o->name, OUTPUTS_MAX - 1);
    *end = '\0';
    list->also[list->also_count++] = (struct also){.output = value, .filter = end + 1};
    return true;
}

bool option_set(const struct option *o, const char *value, struct options *options, struct error *error)
{
    void *field = (char *)options + o->field;
    options->given[o - option_table] = true;
    options->values[o - option_table] = value;
    assert(value != NULL || o->argument == NULL);
    assert((o->argument == NULL) == (o->kind == KIND_FLAG || o->kind == KIND_FLAG_WORD || o->kind == KIND_MODE));
    switch (o->kind) {
    case KIND_FLAG:
        *(bool *)field = true;
        options->compare.renews |= value != NULL; /* only --update has a keyword */
        return true;
    case KIND_FLAG_WORD:
        *(int *)field = 1;
        return value == NULL || parse_word(o, value, field, error);
    case KIND_MODE:
        return set_mode(options, o->low, error);
    case KIND_NUMBER:
        return parse_option_number(o, value, field, error);
    case KIND_DECIMAL:
        return parse_decimal(o, value, field, error);
    case KIND_WORD:
        return parse_word(o, value, field, error);
    case KIND_WORDS:
        return parse_words(o, value, field, error);
    case KIND_BITS:
        return parse_number_word(o, value, field, error);
    case KIND_SUBSAMPLING:
        return parse_subsampling(o, value, field, error);
    case KIND_COLOUR:
        return parse_colour(o, value, field, error);
    case KIND_FORMAT:
        return parse_format(o, value, field, error);
    case KIND_VARIANT:
        return parse_variants(value, options, error);
    case KIND_CODEC:
        options->job.codec.codec = codec_find(value, error);
        return options->job.codec.codec != NULL;
    case KIND_MODE_WITH_VALUE:
        *(const char **)field = value;
        return set_mode(options, o->low, error);
    case KIND_PATH:
        if (value[0] == '\0')
            return error_set(error, ERROR_USAGE,
                             "--%s needs a path, and it is empty; is a variable of the script unset?", o->name);
        *(const char **)field = value;
        return true;
    case KIND_TEXT:
        *(const char **)field = value;
        return true;
    case KIND_SIZES:
        return bench_parse_sizes(value, field, &options->bench.size_count, error);
    case KIND_DEVICES:
        return parse_devices(o, value, field, error);
    case KIND_MEMORY:
        return parse_amount(o, value, &bytes, field, error);
    case KIND_PIXELS:
        return parse_amount(o, value, &pixels, field, error);
    case KIND_SHARD:
        return shard_parse(value, field, error);
    case KIND_COUNT_OR_SHARE:
        return parse_count_or_share(o, value, &options->compare.rules, error);
    case KIND_AREA:
        return parse_area(o, value, &options->compare.rules, error);
    case KIND_ALSO:
        return add_also(o, value, &options->list, error);
    }
    return false;
}
