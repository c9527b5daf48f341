/* SPDX-License-Identifier: MIT
 *
 * Errors, warnings and the lines of --verbose. */
#include "app/messages.h"

#include "base/text.h"
#include "codec/codec.h"
#include "container/other_content.h"
#include "metadata/metadata.h"

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
    return (int)error->code;
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

void warn_dropped_metadata(const struct options *options, const char *name, uint32_t dropped)
{
    char parts[256], text[sizeof parts + 32];
    if (dropped == 0)
        return;
    metadata_print_dropped(dropped, parts, sizeof parts);
    snprintf(text, sizeof text, ": metadata not carried over: %s", parts);
    print_warning(options, name, text);
}

void warn_other_content(const struct options *options, const char *name, unsigned other_content)
{
    char names[OTHER_CONTENT_TEXT], text[sizeof names + 64];
    if (other_content == 0 || options->job.first_picture)
        return;
    container_print_other_content(other_content, names);
    snprintf(text, sizeof text, ": also contains %s; only its first picture is used", names);
    print_warning(options, name, text);
}

void warn_losses(const struct options *options, const char *name, const struct format *format, bool alpha_dropped,
                 bool reduced)
{
    char text[128];
    if (alpha_dropped && !options_given(options, "background")) {
        snprintf(text, sizeof text, ": %s cannot store alpha; the image is put on white (--background COLOUR)",
                 format->name);
        print_warning(options, name, text);
    }
    if (reduced) {
        snprintf(text, sizeof text, ": %s holds %d bits per sample; the image's 16 are reduced", format->name,
                 format->max_bits);
        print_warning(options, name, text);
    }
}

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
    const bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    end_if_unread();
    struct error error;
    error_set(&error, ERROR_WORK, "standard output: cannot be written: %s; redirect it to where there is room",
              strerror(errno));
    return print_error_line(&error);
}
