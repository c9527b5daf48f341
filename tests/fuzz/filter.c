/* SPDX-License-Identifier: MIT
 *
 * Fuzzing the filters: any text is a filter that holds what filter.h promises, or is refused with one sentence. */
#include "filter/filter.h"

#include "base/text.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

/* The output is UTF-8. Its only control characters are line ends; it has no separators of lines or bidirectional
 * marks. */
static void check_printed(const char *text, size_t size)
{
    CHECK(text_is_utf8((const uint8_t *)text, size));
    for (const uint8_t *at = (const uint8_t *)text; *at != '\0'; at++) {
        CHECK((*at >= 0x20 || *at == '\n') && *at != 0x7f);
        CHECK(at[0] != 0xc2 || at[1] > 0x9f);
        CHECK(at[0] != 0xd8 || at[1] != 0x9c);
        if (at[0] == 0xe2 && at[1] == 0x80)
            CHECK(at[2] != 0x8e && at[2] != 0x8f && (at[2] < 0xa8 || at[2] > 0xae));
        CHECK(at[0] != 0xe2 || at[1] != 0x81 || at[2] < 0xa6 || at[2] > 0xa9);
    }
}

/* Any text is printed in this way, for people and for machines. */
static void check_escapes(const char *text)
{
    void (*const printers[])(FILE *, const char *) = {text_print_escaped, text_print_json};
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        struct text_buffer buffer;
        FILE *const stream = text_open(&buffer);
        CHECK(stream);
        printers[i](stream, text);
        CHECK(text_close(stream, &buffer));
        check_printed(buffer.bytes, buffer.size);
        CHECK(!strchr(buffer.bytes, '\n'));
        free(buffer.bytes);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* No row of a text that was accepted may have decimal commas: one between digits beside blanks or semicolons. */
static void check_commas(const char *text)
{
    while (*text != '\0') {
        const size_t line = strcspn(text, "\n");
        size_t start = strspn(text, " \t,;"), end = strcspn(text, "#\n");
        while (end > start && strchr(" \t,;\r", text[end - 1]))
            end--;
        bool comma = false, others = false;
        for (size_t i = start; i < end; i++) {
            comma = comma || (i > start && text[i] == ',' && is_digit(text[i - 1]) && is_digit(text[i + 1]));
            others = others || strchr(" \t;", text[i]);
        }
        CHECK(!comma || !others || !strchr("+-.0123456789", text[start]));
        text += line + (text[line] == '\n');
    }
}

/* A refused filter leaves a sentence. */
static void check_error(const struct error *error)
{
    CHECK(error->code == ERROR_USAGE || error->code == ERROR_WORK);
    CHECK(error->message[0] != '\0');
    CHECK(strlen(error->message) < sizeof error->message);
}

/* No sum of a filter in two passes may overflow, whatever its parameters. */
static void check_passes(const struct filter *filter, bool is_16_bit)
{
    int64_t row = 0, column = 0;

    CHECK(filter->width >= 1 && filter->width <= FILTER_PASS_MAX);
    CHECK(filter->height >= 1 && filter->height <= FILTER_PASS_MAX);
    for (int x = 0; x < filter->width; x++) {
        CHECK(filter->row[x] >= 0 && filter->row[x] < 1 << (is_16_bit ? 22 : 15));
        row += filter->row[x];
    }
    for (int y = 0; y < filter->height; y++) {
        CHECK(filter->column[y] >= 0 && filter->column[y] < 1 << (is_16_bit ? 22 : 15));
        column += filter->column[y];
    }
    CHECK(((is_16_bit ? 65535 : 255) * row >> filter->row_shift) * column < (int64_t)1 << (is_16_bit ? 53 : 32));
    CHECK(filter->pass_scale == row * column >> filter->row_shift);
    CHECK(filter->amount >= 0 && filter->amount < 1 << 27 && filter->threshold >= 0);
}

static void check_rank(const struct filter *filter)
{
    const struct rank *rank = &filter->rank;
    int count = 0;

    CHECK(rank->width >= 1 && rank->width <= filter->width && rank->height >= 1 && rank->height <= filter->height);
    CHECK(rank->anchor_x >= 0 && rank->anchor_x < rank->width && rank->anchor_y >= 0 && rank->anchor_y < rank->height);
    for (int y = 0; y < FILTER_MAX; y++)
        for (int x = 0; x < 128; x++) {
            CHECK(!rank_has(rank, x, y) || (x < rank->width && y < rank->height));
            count += rank_has(rank, x, y);
        }
    CHECK(count == rank->count && rank->index >= 0 && rank->index < count);
}

static void check_filter(const struct filter *filter)
{
    int64_t sum = 0, absolute = 0;

    if (filter->kind == STEP_RANK)
        check_rank(filter);
    if (filter->filter16 && filter->filter16->two_pass)
        check_passes(filter->filter16, true);
    if (!filter_kind(filter)->has_taps)
        return;
    if (filter->two_pass) {
        check_passes(filter, false);
        return;
    }

    CHECK(filter->width >= 1 && filter->width <= FILTER_MAX && filter->height >= 1 && filter->height <= FILTER_MAX);
    CHECK(filter->anchor_x >= 0 && filter->anchor_x < filter->width);
    CHECK(filter->anchor_y >= 0 && filter->anchor_y < filter->height);
    CHECK(filter->scale >= 1 && filter->scale <= 1 << 30);
    CHECK(isfinite(filter->offset) && isfinite(filter->largest_error) && filter->largest_error >= 0);
    CHECK(!filter->exact || filter->largest_error == 0);
    CHECK(memchr(filter->name, 0, sizeof filter->name) && memchr(filter->title, 0, sizeof filter->title));
    const int grids = filter_grids(filter), count = filter->width * filter->height;
    CHECK(grids == 1 || !filter->separable);
    for (int i = 0; i < grids * count; i++) {
        const int32_t tap = filter->taps[i];
        sum += i < count ? tap : 0;
        absolute += tap < 0 ? -(int64_t)tap : tap;
        CHECK(!filter->separable || tap == (int64_t)filter->column[i / filter->width] * filter->row[i % filter->width]);
    }
    for (int i = 1; grids > 1 && filter->combine == COMBINE_MAGNITUDE && i < FILTER_LEVELS; i++)
        CHECK(filter->steps[i] >= filter->steps[i - 1]);
    CHECK(sum == filter->tap_sum && absolute == filter->absolute_sum && absolute <= FILTER_MAX_SUM);
}

static char *describe(const struct filter *filter)
{
    struct text_buffer text;
    FILE *const stream = text_open(&text);
    CHECK(stream);
    filter_describe(stream, filter);
    CHECK(text_close(stream, &text));
    return text.bytes;
}

/* A filter that was accepted is described, survives being turned, and comes out alike the second time. */
static void check_use(struct filter *filter, struct filter *again)
{
    char *const text = describe(filter), *const text_again = describe(again);

    CHECK(strcmp(text, text_again) == 0);
    check_printed(text, strlen(text));
    check_filter(filter);
    filter_flip(filter);
    check_filter(filter);
    filter_flip(filter);
    char *const text_turned = describe(filter);
    CHECK(strcmp(text, text_turned) == 0);
    free(text);
    free(text_again);
    free(text_turned);
}

/* Does the text begin with the word of a parametric filter and its colon? Only such are looked up: other names are
 * paths, and a fuzzer must not open files. */
static bool is_parametric(const char *text)
{
    for (size_t i = 0; filter_forms[i].form; i++) {
        const size_t length = strcspn(filter_forms[i].form, ":") + 1;
        if (strncmp(text, filter_forms[i].form, length) == 0)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct filter filter, again, filter16, filter16_again; /* too large for the stack of a thread */
    struct error error = {.code = ERROR_NONE};
    char *const text = malloc(size + 1);

    CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    check_escapes(text);
    if (filter_parse((const char *)data, size, "fuzz", &filter, &error)) {
        CHECK(filter_parse((const char *)data, size, "fuzz", &again, &error));
        check_use(&filter, &again);
        check_commas(text);
    } else {
        check_error(&error);
        CHECK(!strchr(error.message, '\n')); /* below, the name is quoted as it is; main escapes it */
    }
    if (strncmp(text, "cover:", 6) == 0 && strchr(text, ',') == NULL) { /* two filters; other names may be paths */
        struct filter *both;
        size_t count;
        error = (struct error){.code = ERROR_NONE};
        if (filter_find_all(text, filter_find, &both, &count, &error)) {
            CHECK(count == 2 && both[0].kind == STEP_RESIZE && both[1].kind == STEP_MOVE);
            free(both);
        } else {
            check_error(&error);
        }
    } else if (is_parametric(text)) {
        error = (struct error){.code = ERROR_NONE};
        if (filter_find(text, &filter, &filter16, &error)) {
            CHECK(filter_find(text, &again, &filter16_again, &error));
            check_use(&filter, &again);
        } else {
            check_error(&error);
        }
    }
    free(text);
    return 0;
}
