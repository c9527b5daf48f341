/* SPDX-License-Identifier: MIT
 *
 * Errors, warnings and the lines of --verbose. */
#include "app/messages.h"

#include "base/text.h"
#include "codec/codec.h"
#include "container/other_content.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int print_error_line(const struct error *error)
{
    char text[ERROR_TEXT];
    error_text(error, text, sizeof text);
    fputs("gpuconv: ", stderr);
    text_print_escaped(stderr, text);
    fputc('\n', stderr);
    return error_status(error->code);
}

void print_warning(const struct options *options, const char *name, const char *text)
{
    if (options->quiet)
        return;
    fputs("gpuconv: warning: ", stderr);
    text_print_escaped(stderr, name);
    text_print_escaped(stderr, text);
    fputc('\n', stderr);
}

/* ---- Counted warnings ---- */

/* The warnings of each kind that are printed. */
enum { FIRST_WARNINGS = 3 };

/* Write the warning TEXT to ALL, with DETAIL for its "%s". */
static void fill_in(const char *text, const char *detail, char *all, size_t size)
{
    const char *mark = strstr(text, "%s");
    const int before = mark != NULL ? (int)(mark - text) : (int)strlen(text);
    snprintf(all, size, "%.*s%s%s", before, text, mark != NULL ? detail : "", mark != NULL ? mark + 2 : "");
}

void warn_counted(struct warnings *warnings, const char *name, const char *text, const char *detail)
{
    const size_t max = sizeof warnings->kinds / sizeof *warnings->kinds;
    char all[512];
    size_t kind = 0;
    while (kind < warnings->kind_count && strcmp(warnings->kinds[kind].text, text) != 0)
        kind++;
    if (kind == warnings->kind_count && kind < max && strlen(text) < sizeof warnings->kinds->text)
        snprintf(warnings->kinds[warnings->kind_count++].text, sizeof warnings->kinds->text, "%s", text);
    if (kind < warnings->kind_count && warnings->kinds[kind].count++ >= FIRST_WARNINGS && !warnings->options->verbose)
        return;
    fill_in(text, detail, all, sizeof all);
    print_warning(warnings->options, name, all);
}

void print_warning_counts(const struct warnings *warnings)
{
    for (size_t kind = 0; kind < warnings->kind_count && !warnings->options->verbose; kind++) {
        const char *text = warnings->kinds[kind].text;
        const size_t count = warnings->kinds[kind].count;
        char all[512], times[96];
        if (count <= FIRST_WARNINGS)
            continue;
        snprintf(times, sizeof times, "%zu more like this (-v prints all): ", count - FIRST_WARNINGS);
        fill_in(text + strspn(text, ": "), "...", all, sizeof all);
        print_warning(warnings->options, times, all);
    }
}

void warn_left_out(void *context, const char *name, const char *text)
{
    warn_counted(context, name, text, "");
}

void warn_dropped_metadata(struct warnings *warnings, const char *name, uint64_t dropped)
{
    char parts[512];
    dropped = warnings->options->verbose ? dropped : metadata_without_notes(dropped);
    if (dropped == 0)
        return;
    metadata_print_dropped(dropped, parts, sizeof parts);
    warn_counted(warnings, name, ": metadata not carried over: %s", parts);
}

void warn_unread_curves(struct warnings *warnings, const char *name, unsigned unread, enum curve_source source)
{
    char detail[64];
    for (enum curve_source other = CURVE_OF_CICP; other < source; other++)
        if (unread & 1u << other) {
            snprintf(detail, sizeof detail, "%s, and uses the curve of %s", metadata_curve_name(other),
                     metadata_curve_name(source));
            warn_counted(warnings, name, ": --linear cannot read the curve of %s", detail);
        }
}

void warn_other_content(struct warnings *warnings, const char *name, unsigned other_content)
{
    char names[OTHER_CONTENT_TEXT];
    if (other_content == 0 || warnings->options->job.first_picture)
        return;
    container_print_other_content(other_content, names);
    warn_counted(warnings, name, ": also contains %s; only its first picture is used", names);
}

void warn_losses(struct warnings *warnings, const char *name, const struct format *format, bool alpha_dropped,
                 bool reduced)
{
    char text[128];
    if (alpha_dropped && !options_given(warnings->options, OPTION(job.codec.background))) {
        snprintf(text, sizeof text, ": %s cannot store alpha; the image is put on white (see --background)",
                 format->name);
        warn_counted(warnings, name, text, "");
    }
    if (reduced) {
        snprintf(text, sizeof text, ": %s stores %d bits per sample; the image's 16 bits are reduced", format->name,
                 format->max_bits);
        warn_counted(warnings, name, text, "");
    }
}

/* ---- Other lines ---- */

void print_detail(const char *word, const char *format, ...)
{
    char text[sizeof((struct error *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%-9s ", word);
    text_print_escaped(stderr, text);
    fputc('\n', stderr);
}

void end_if_unread(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    struct sigaction action;
    if (poll(&output, 1, 0) != 1 || (output.revents & POLLERR) == 0 || sigaction(SIGPIPE, NULL, &action) != 0 ||
        action.sa_handler == SIG_IGN)
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

int flush_output(int status)
{
    const bool failed = ferror(stdout) != 0; /* stdio does not keep the reason */
    errno = failed ? EIO : 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    end_if_unread();
    struct error error;
    error_set(&error, error_of_errno(errno, ERROR_OUTPUT, ERROR_WRITE),
              "standard output: cannot be written: %s; redirect it to a disk with free space", strerror(errno));
    return print_error_line(&error);
}
