/* SPDX-License-Identifier: MIT
 *
 * The output on standard error: errors, warnings and the lines of --verbose. Names are escaped, so that they cannot
 * move the cursor or change the terminal. */
#ifndef GPUCONV_MESSAGES_H
#define GPUCONV_MESSAGES_H

#include "app/options.h"
#include "base/error.h"
#include "metadata/metadata.h"

#include <stdbool.h>
#include <stdint.h>

struct format;

/* The number of warnings of a run, by kind. The first warnings of a kind are printed, and the others only counted,
 * unless --verbose is given: thousands of files may have the same warning. */
struct warnings {
    const struct options *options;
    struct {
        char text[128];
        size_t count;
    } kinds[16]; /* warnings of other kinds are all printed */
    size_t kind_count;
};

/* Print an error. Returns its exit status. */
int print_error_line(const struct error *error);

/* Print a warning: NAME, which is a file or a sentence, directly followed by TEXT. With --quiet, print nothing. */
void print_warning(const struct options *options, const char *name, const char *text);

/* Print a warning that many files may have, or only count it. NAME is as for print_warning. TEXT is the kind of the
 * warning, and may contain one "%s", which stands for DETAIL. */
void warn_counted(struct warnings *warnings, const char *name, const char *text, const char *detail);

/* For each kind of warning, print how many were only counted. */
void print_warning_counts(const struct warnings *warnings);

/* The list_warner of file lists: call warn_counted. CONTEXT is a struct warnings. */
void warn_left_out(void *context, const char *name, const char *text);

/* Warn about metadata that are not carried over. DROPPED has the bits of struct metadata; 0 prints nothing. */
void warn_dropped_metadata(struct warnings *warnings, const char *name, uint64_t dropped);

/* Warn about the sources of a curve in the file NAME that cannot be read. UNREAD has the bits of struct job_result, and
 * SOURCE is what linear light uses. */
void warn_unread_curves(struct warnings *warnings, const char *name, unsigned unread, enum curve_source source);

/* Warn about the pictures in the file NAME besides its first one, unless --first-picture is given. OTHER_CONTENT has
 * the bits of struct codec_info; 0 prints nothing. */
void warn_other_content(struct warnings *warnings, const char *name, unsigned other_content);

/* Warn if the image that is written to NAME loses its alpha channel or its 16 bits per sample, which FORMAT lacks. */
void warn_losses(struct warnings *warnings, const char *name, const struct format *format, bool alpha_dropped,
                 bool reduced);

/* Print one line of --verbose: a word, and its explanation. */
void print_detail(const char *word, const char *format, ...) ERROR_PRINTF(2, 3);

/* Call this after a failed write to standard output. If the reader is gone, the program ends by SIGPIPE and prints
 * nothing, as other programs do. Returns if the reader is there, or if the program's parent ignores SIGPIPE. */
void end_if_unread(void);

/* Flush standard output. Returns STATUS, or the status of a failure: a full disk is noticed here at the latest. */
int flush_output(int status);

/* ---- advice.c: warnings about a run that may not do what its user expects ---- */

/* Warn about filters whose text has probably lost its scale. */
void warn_filters(const struct options *options, const struct filter *filters, size_t count);

/* Warn about options that a mode other than MODE_RUN does not use. */
void warn_unused_by_question(const struct options *options);

/* Warn about options for a format that no output of the list has. */
void warn_unused_by_files(const struct options *options, const struct file_list *list);

/* Warn about an OUTPUT whose name is that of another format than the one of --format. */
void warn_format(const struct options *options);

/* Warn about a --device that does not exist, if the CPU replaces it. */
void warn_unused_device(const struct options *options);

#endif
