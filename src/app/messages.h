/* SPDX-License-Identifier: MIT
 *
 * What the program says on standard error: errors, warnings and the lines of --verbose. Names are printed so that they
 * cannot move the cursor or change the terminal. */
#ifndef GPUCONV_MESSAGES_H
#define GPUCONV_MESSAGES_H

#include "app/options.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct format;

/* Print an error, and return the exit status that it asks for. */
int print_error_line(const struct error *error);

/* Print a warning about NAME, a file or a whole sentence, with TEXT right behind it; nothing with --quiet. */
void print_warning(const struct options *options, const char *name, const char *text);

/* Warn that these metadata, as in struct metadata, are not carried over, if there are any. */
void warn_dropped_metadata(const struct options *options, const char *name, uint32_t dropped);

/* Warn about what FORMAT cannot hold of the image that is written to NAME: its alpha channel, its 16 bits a sample. */
void warn_losses(const struct options *options, const char *name, const struct format *format, bool alpha_dropped,
                 bool reduced);

/* Print one line of --verbose: a word, and what there is to say about it. */
void print_detail(const char *word, const char *format, ...) ERROR_PRINTF(2, 3);

/* After a failure to write to standard output: if its reader is gone, end as other programs do, by the signal and without
 * a word. Returns if the reader is there, or if the program's parent ignores the signal. */
void end_if_unread(void);

/* Flush what was printed on standard output. STATUS, or that of a failure: a full disk shows here at the latest. */
int flush_output(int status);

#endif
