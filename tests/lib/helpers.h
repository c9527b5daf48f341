/* SPDX-License-Identifier: MIT
 *
 * What unit tests share. Include after cmocka.h. */
#ifndef GPUCONV_HELPERS_H
#define GPUCONV_HELPERS_H

#include "base/error.h"
#include "filter/chain.h"
#include "filter/filter.h"

#include <string.h>

/* The error reads as EXPECTED, its subject included: "SUBJECT: MESSAGE". */
#define assert_error(error, expected)                                                                                  \
    do {                                                                                                               \
        char helpers_text[ERROR_TEXT];                                                                                 \
        error_text(error, helpers_text, sizeof helpers_text);                                                          \
        assert_string_equal(helpers_text, expected);                                                                   \
    } while (0)

/* SIZE filters of LIST as a chain, as long as the block lasts. */
#define CHAIN(list, size) (&(struct filter_chain){.references = 1, .count = (size), .filters = (list)})

/* The filter that TEXT describes. The test fails if it cannot be read. */
static inline struct filter parsed(const char *text)
{
    struct filter filter;
    struct error error;
    if (!filter_parse(text, strlen(text), "test", &filter, &error))
        fail_msg("%s", error.message);
    return filter;
}

#endif
