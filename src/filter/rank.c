/* SPDX-License-Identifier: MIT
 *
 * Filters of ranks: the samples of a footprint are put in order, and one of them is the output. */
#include "filter/filter_internal.h"

__extension__ typedef __int128 int128;

/* The largest radius of a square. */
enum { RADIUS_MAX = FILTER_MAX / 2 };

static const struct rank_word {
    const char *word;
    enum rank_form form;
    int halves; /* RANK_ONE: halves of the way from the lowest sample to the highest; 3 if a parameter says where */
} rank_words[] = {
    {"erode", RANK_ONE, 0},     {"median", RANK_ONE, 1},        {"dilate", RANK_ONE, 2},
    {"rank", RANK_ONE, 3},      {"open", RANK_OPEN, 0},         {"close", RANK_CLOSE, 0},
    {"tophat", RANK_TOPHAT, 0}, {"blackhat", RANK_BLACKHAT, 0}, {"outline", RANK_OUTLINE, 0},
};

bool rank_make(struct filter *filter, int width, int height, bool (*has)(const void *context, int x, int y),
               const void *context, struct number share)
{
    struct rank *rank = &filter->rank;
    filter->kind = STEP_RANK;
    filter->width = width;
    filter->height = height;
    filter->anchor_x = width / 2;
    filter->anchor_y = height / 2;
    *rank = (struct rank){.width = width, .height = height, .anchor_x = width / 2, .anchor_y = height / 2};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            if (has(context, x, y)) {
                rank->footprint[y][x / 64] |= (uint64_t)1 << x % 64;
                rank->count++;
            }
    if (share.denominator == 0) /* more digits than a fraction holds */
        share = number_round(share);
    const int index = (int)((int128)rank->count * share.numerator / share.denominator);
    rank->index = index < rank->count ? index : rank->count - 1;
    return rank->count > 0;
}

/* A square, or a disk if its radius is not 0. */
struct shape {
    int middle;
    double radius;
};

static bool is_inside(const void *context, int x, int y)
{
    const struct shape *shape = context;
    x -= shape->middle;
    y -= shape->middle;
    return shape->radius == 0 || x * x + y * y <= shape->radius * shape->radius;
}

bool filter_make_rank(const struct filter_form *form, const char *spec, struct filter *filter, struct filter *filter16,
                      struct error *error)
{
    (void)filter16;
    const struct rank_word *word = rank_words;
    const char *at = spec + strcspn(spec, ":"), *end;
    while (!is_word(word->word, spec, at))
        word++;
    struct number numbers[2] = {NUMBER_ZERO,
                                {.numerator = 50 * word->halves, .denominator = 1, .value = 50 * word->halves}};
    const int count = word->halves == 3 ? 2 : 1;
    bool done = strlen(spec) < sizeof filter->name;
    for (int i = 0; done && i < count; i++, at = end) {
        end = *at == ':' ? at + 1 + strcspn(at + 1, ":") : at;
        done = end > at + 1 && number_read(at + 1, end - (i == 1 && end[-1] == '%'), &numbers[i]) == NUMBER_FINE;
    }
    const bool is_disk = strcmp(at, ":disk") == 0;
    if (!done || (*at != '\0' && !is_disk) || !(numbers[1].value >= 0 && numbers[1].value <= 100) ||
        (is_disk ? !(numbers[0].value >= 1 && numbers[0].value <= RADIUS_MAX)
                 : !number_is_integer(numbers[0], 1, RADIUS_MAX)))
        return fail_spec(spec, form->usage, error);
    const struct shape shape = {.middle = (int)numbers[0].value, .radius = is_disk ? numbers[0].value : 0};
    const int side = 2 * shape.middle + 1;
    filter_begin(STEP_RANK, spec, form->title, filter);
    rank_make(filter, side, side, is_inside, &shape, number_divide(numbers[1], NUMBER_HUNDRED));
    filter->rank.form = word->form;
    if (word->form != RANK_ONE && word->form != RANK_OUTLINE) { /* two passes, one after the other */
        filter->width = filter->height = 2 * side - 1;
        filter->anchor_x = filter->anchor_y = side - 1;
    }
    return true;
}

void rank_flip(struct filter *filter)
{
    struct rank *rank = &filter->rank, turned = *rank;
    memset(turned.footprint, 0, sizeof turned.footprint);
    for (int y = 0; y < rank->height; y++)
        for (int x = 0; x < rank->width; x++)
            if (rank_has(rank, rank->width - 1 - x, rank->height - 1 - y))
                turned.footprint[y][x / 64] |= (uint64_t)1 << x % 64;
    turned.anchor_x = rank->width - 1 - rank->anchor_x;
    turned.anchor_y = rank->height - 1 - rank->anchor_y;
    *rank = turned;
    filter->anchor_x = filter->width - 1 - filter->anchor_x;
    filter->anchor_y = filter->height - 1 - filter->anchor_y;
}

/* ---- Describe ---- */

static const char *const form_names[] = {
    [RANK_ONE] = "rank",      [RANK_OPEN] = "open",         [RANK_CLOSE] = "close",
    [RANK_TOPHAT] = "tophat", [RANK_BLACKHAT] = "blackhat", [RANK_OUTLINE] = "outline",
};

void rank_describe(FILE *stream, const struct filter *filter)
{
    static const char *const formulas[] = {
        [RANK_OPEN] = "the lowest sample, and of these the highest",
        [RANK_CLOSE] = "the highest sample, and of these the lowest",
        [RANK_TOPHAT] = "the picture less (the lowest sample, and of these the highest)",
        [RANK_BLACKHAT] = "(the highest sample, and of these the lowest) less the picture",
        [RANK_OUTLINE] = "the highest sample less the lowest",
    };
    const struct rank *rank = &filter->rank;
    fprintf(stream, "  size       %d x %d, anchor %d %d\n", rank->width, rank->height, rank->anchor_x, rank->anchor_y);
    if (rank->form == RANK_ONE)
        fprintf(stream, "  rank       %d of %d samples in order, from 1 for the lowest\n", rank->index + 1,
                rank->count);
    else
        fprintf(stream, "  result     %s, of %d samples\n", formulas[rank->form], rank->count);
    fputc('\n', stream);
    for (int y = 0; y < rank->height; y++) {
        fputc(' ', stream);
        for (int x = 0; x < rank->width; x++)
            fprintf(stream, " %d", rank_has(rank, x, y));
        fputc('\n', stream);
    }
}

void rank_print(FILE *file, const struct filter *filter)
{
    const struct rank *rank = &filter->rank;
    fprintf(file, "\"form\":\"%s\",\"rank\":", form_names[rank->form]);
    if (rank->form == RANK_ONE)
        fprintf(file, "%d", rank->index);
    else
        fputs("null", file);
    fprintf(file, ",\"samples\":%d,\"anchor\":[%d,%d],\"footprint\":[", rank->count, rank->anchor_x, rank->anchor_y);
    for (int y = 0; y < rank->height; y++) {
        fputs(y > 0 ? ",[" : "[", file);
        for (int x = 0; x < rank->width; x++)
            fprintf(file, x > 0 ? ",%d" : "%d", rank_has(rank, x, y));
        fputc(']', file);
    }
    fputc(']', file);
}
