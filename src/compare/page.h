/* SPDX-License-Identifier: MIT
 *
 * Rows as a page of HTML, which browsers open from disk. */
#ifndef GPUCONV_PAGE_H
#define GPUCONV_PAGE_H

#include "base/error.h"
#include "compare/rows.h"

#include <stdbool.h>

/* The contents of the page. */
struct page_request {
    const char *expected, *actual; /* as the user named them */
    const struct compare_rows *rows;
    const struct compare_rules *rules;
};

/* The lines of page.html, made by embed_page.py; NULL ends them. */
extern const char *const page_template[];

/* Write the page to the file at PATH: all rows that are not equal, with their thumbnails in it. The pictures themselves
 * are links, relative to the folder of PATH. */
bool page_write(const char *path, const struct page_request *request, struct error *error);

#endif
