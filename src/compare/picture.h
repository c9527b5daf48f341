/* SPDX-License-Identifier: MIT
 *
 * Pictures of differences as files: their names, and the mark that a later run looks for. */
#ifndef GPUCONV_PICTURE_H
#define GPUCONV_PICTURE_H

#include "base/error.h"
#include "compare/pair.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The format of the pictures. */
const struct format *picture_format(const struct compare_settings *settings);

/* The path of a row's picture: the row's name below the folder, with the suffix of the pictures' format added unless it
 * has that. Release it with free. NULL: there is not enough memory, or SETTINGS want no pictures. */
char *picture_path(const struct compare_settings *settings, const struct compare_row *row);

/* Put the mark into the encoded picture of *SIZE bytes at *BYTES, which a larger allocation replaces. */
bool picture_mark(const struct format *format, uint8_t **bytes, size_t *size, struct error *error);

/* Remove the pictures of an earlier run: the files at the paths of these rows' pictures, if they have the mark. Any other
 * file stays. Fails if one cannot be removed. */
bool pictures_remove_old(const struct compare_settings *settings, const struct compare_rows *rows, struct error *error);

#endif
