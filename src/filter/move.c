/* SPDX-License-Identifier: MIT
 *
 * Filters that move samples and change none: crop, pad, turn and mirror; and cover, which is a resize and a crop. */
#include "base/text.h"
#include "filter/filter_internal.h"
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

/* ---- Read ---- */

/* Read a word for the position of the rectangle. */
static bool read_position(const char *at, const char *end, struct move *move)
{
    static const char *const across[] = {"left", "right"}, *const down[] = {"top", "bottom"};
    for (int i = 0; i < 2; i++) {
        int *side = is_word(across[i], at, end) ? &move->across : is_word(down[i], at, end) ? &move->down : NULL;
        if (side != NULL && *side == 0) {
            *side = 2 * i - 1;
            return true;
        }
    }
    move->rounds_even |= is_word("torchvision", at, end);
    return is_word("torchvision", at, end);
}

/* In these functions, AT is after the first colon, and END at the next one or at the end of the text, to which they
 * read. */
bool read_crop(const char *at, const char *end, struct move *move)
{
    const char *plus = memchr(at, '+', (size_t)(end - at)), *sides_end = plus != NULL ? plus : end;
    if (!read_percentage(at, end, 100, &move->numerator, &move->denominator) &&
        (!read_sides(at, sides_end, &move->width, &move->height) || move->width == 0 || move->height == 0))
        return false;
    if (plus != NULL)
        return *plus++ == '+' && text_read_number(&plus, 0, SIDE_MAX, &move->x) && *plus++ == '+' &&
               text_read_number(&plus, 0, SIDE_MAX, &move->y) && *plus == '\0';
    while (*end == ':') {
        at = end + 1;
        end = at + strcspn(at, ":");
        if (!read_position(at, end, move))
            return false;
    }
    return true;
}

bool read_pad(const char *at, const char *end, struct move *move)
{
    move->pads = true;
    move->has_colour = *end == ':';
    return read_sides(at, end, &move->width, &move->height) && move->width > 0 && move->height > 0 &&
           (!move->has_colour || text_read_colour(end + 1, move->colour));
}

bool read_turn(const char *at, const char *end, struct move *move)
{
    (void)end;
    move->orientation = strcmp(at, "90") == 0 ? 6 : strcmp(at, "180") == 0 ? 3 : strcmp(at, "270") == 0 ? 8 : 0;
    return move->orientation > 0;
}

bool read_mirror(const char *at, const char *end, struct move *move)
{
    (void)end;
    move->orientation = strcmp(at, "x") == 0 ? 2 : strcmp(at, "y") == 0 ? 4 : 0;
    return move->orientation > 0;
}

bool filter_make_move(const struct filter_form *form, const char *spec, struct filter *filter, struct filter *filter16,
                      struct error *error)
{
    (void)filter16;
    const size_t length = strcspn(spec, ":");
    const char *at = spec + length + (spec[length] == ':');
    struct move move = {.orientation = 1, .x = -1, .y = -1};
    if (form->read == NULL || strlen(spec) >= sizeof filter->name || spec[length] != ':' ||
        !form->read(at, at + strcspn(at, ":"), &move))
        return fail_spec(spec, form->usage, error);
    filter_begin(STEP_MOVE, spec, form->title, filter);
    filter->move = move;
    return true;
}

/* ---- Cover ---- */

static bool print_cover(FILE *stream, const struct filter_form *form, const char *spec, struct error *error)
{
    char resize[256], crop[256];
    struct move unused = {0};
    const char *at = spec + strcspn(spec, ":"), *end = *at == ':' ? at + 1 + strcspn(at + 1, ":") : at;
    int resize_length = snprintf(resize, sizeof resize, RESIZE_WORD "%.*s:cover:enlarge", (int)(end - at), at);
    int crop_length = snprintf(crop, sizeof crop, "crop%.*s", (int)(end - at), at);
    while (*end == ':') {
        at = end;
        end = at + 1 + strcspn(at + 1, ":");
        if (read_position(at + 1, end, &unused))
            crop_length += snprintf(crop + crop_length, sizeof crop / 2, "%.*s", (int)(end - at), at);
        else
            resize_length += snprintf(resize + resize_length, sizeof resize / 2, "%.*s", (int)(end - at), at);
        if (strncmp(at, ":pillow", 7) == 0)
            crop_length += snprintf(crop + crop_length, sizeof crop / 2, ":torchvision");
    }
    fprintf(stream, "%s,%s", resize, crop);
    return resize_is_valid(resize) || fail_spec(spec, form->usage, error);
}

char *expand_covers(const char *specs, struct error *error)
{
    struct text_buffer text;
    FILE *stream = text_open(&text);
    bool done = stream != NULL || error_no_memory(error, "filters");
    for (size_t length; done && *specs != '\0'; specs += length + (specs[length] == ',')) {
        char spec[128];
        length = strcspn(specs, ",");
        snprintf(spec, sizeof spec, "%.*s", (int)length, specs);
        const struct filter_form *form = length < sizeof spec ? form_find(spec, strcspn(spec, ":")) : NULL;
        if (form != NULL && form->make == filter_make_move && form->read == NULL)
            done = print_cover(stream, form, spec, error);
        else
            fprintf(stream, "%.*s", (int)length, specs);
        fputs(specs[length] == ',' ? "," : "", stream);
    }
    if (stream != NULL && !text_close(stream, &text))
        done = error_no_memory(error, "filters");
    if (done)
        return text.bytes;
    free(text.bytes);
    return NULL;
}

/* ---- Sizes ---- */

/* Where a rectangle begins that has LESS samples than the picture, and lies on SIDE of it. */
static int begin_side(const struct move *move, int less, int side)
{
    return less * (side + 1) / 2 + (move->rounds_even && side == 0 && less % 4 == 3);
}

struct origin filter_origin(const struct filter *filter, int width, int height)
{
    const struct move *move = &filter->move;
    const bool swaps = orientation_swaps(move->orientation);
    struct origin origin = {.turned_width = swaps ? height : width, .turned_height = swaps ? width : height};
    move_size(filter, &width, &height, NULL);
    origin.x = move->x >= 0 ? move->x : begin_side(move, origin.turned_width - width, move->across);
    origin.y = move->y >= 0 ? move->y : begin_side(move, origin.turned_height - height, move->down);
    return origin;
}

bool move_size(const struct filter *filter, int *width, int *height, struct error *error)
{
    const struct move *move = &filter->move;
    const int from_width = *width, from_height = *height;
    if (orientation_swaps(move->orientation)) {
        *width = from_height;
        *height = from_width;
    } else if (move->denominator > 0) {
        *width = (int)scale_side(from_width, move->numerator, move->denominator);
        *height = (int)scale_side(from_height, move->numerator, move->denominator);
    } else if (move->width > 0) {
        *width = move->width;
        *height = move->height;
    }
    if (move->pads && (*width < from_width || *height < from_height))
        return error_set(error, ERROR_WORK,
                         "%s is smaller than the picture, which has %d x %d pixels; give at least this size, or resize "
                         "or crop the picture first",
                         filter->name, from_width, from_height);
    const int right = *width + (move->x > 0 ? move->x : 0), bottom = *height + (move->y > 0 ? move->y : 0);
    return move->width == 0 || move->pads || (right <= from_width && bottom <= from_height) ||
           error_set(error, ERROR_WORK, "%s reaches beyond the picture of %d x %d pixels; give a part of the picture",
                     filter->name, from_width, from_height);
}

/* ---- The row of the kind ---- */

void move_describe(FILE *stream, const struct filter *filter)
{
    fprintf(stream, "  samples    only move, and stay as they are\n%s",
            filter->move.pads && !filter->move.has_colour
                ? "  colour     transparent, or white without an alpha channel\n"
                : "");
}

void move_print(FILE *file, const struct filter *filter)
{
    fputs("\"move\":", file);
    text_print_json(file, filter->name);
}

bool move_joins_planes(const struct filter *filter)
{
    return filter->move.pads; /* what is beside the picture depends on the number of channels */
}

bool move_clears(const struct filter *filter)
{
    return filter->move.pads && !filter->move.has_colour;
}
