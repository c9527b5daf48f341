/* SPDX-License-Identifier: MIT
 *
 * pixelate: squares of pixels become their mean. */
#include "filter/filter_internal.h"

bool filter_make_squares(const struct filter_form *form, const char *spec, struct filter *filter,
                         struct filter *filter16, struct error *error)
{
    (void)filter16;
    const size_t word = strcspn(spec, ":"), length = strlen(spec);
    struct number side;
    if (length >= sizeof filter->name || spec[word] != ':' ||
        number_read(spec + word + 1, spec + length, &side) != NUMBER_FINE || !number_is_integer(side, 1, SQUARE_MAX))
        return fail_spec(spec, form->usage, error);
    filter_begin(STEP_PIXELATE, spec, form->title, filter);
    filter->square = (int)side.numerator;
    return true;
}

void squares_describe(FILE *stream, const struct filter *filter)
{
    fprintf(stream, "  squares    %d x %d pixels from the corner at the top left, smaller at the other edges\n",
            filter->square, filter->square);
}

void squares_print(FILE *file, const struct filter *filter)
{
    fprintf(file, "\"square\":%d", filter->square);
}

/* Sums are doubles, so the mean is rounded once, and perhaps from the wrong side. */
double squares_float_error(const struct filter *filter, int taps)
{
    (void)filter, (void)taps;
    return 2;
}
