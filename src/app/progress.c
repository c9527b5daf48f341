/* SPDX-License-Identifier: MIT
 *
 * The line of progress and the summary. */
#include "app/progress.h"

#include "app/messages.h"
#include "base/text.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A length of time, as 1:02:03, 2:03 or 0:03. */
static void print_time(double seconds, char *text, size_t size)
{
    const long total = seconds < 3.6e6 ? (long)(seconds + 0.5) : 3600000; /* a thousand hours */
    if (total >= 3600)
        snprintf(text, size, "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
    else
        snprintf(text, size, "%ld:%02ld", total / 60, total % 60);
}

/* Write the progress of the files, or of the rows of a single image. */
static void print_progress_words(const struct batch_totals *totals, char *text, size_t size)
{
    const struct job_progress *only = &totals->only;
    const size_t ended = totals->done + totals->skipped + totals->failed;
    char speed[32] = "";
    if (totals->pixels > 0 && totals->milliseconds > 0)
        snprintf(speed, sizeof speed, ", %.1f Mpixel/s", totals->pixels / 1e3 / totals->milliseconds);
    if (only->word == NULL)
        snprintf(text, size, "%zu/%zu file%s%s", ended, totals->count, totals->count == 1 ? "" : "s", speed);
    else if (only->rows < 0)
        snprintf(text, size, "%s", only->word);
    else
        snprintf(text, size, "%s: %d%% of the rows", only->word, (int)(100 * only->rows));
}

void progress_print(const struct batch_totals *totals, char *text, size_t size)
{
    enum { BAR_MAX = 30, BAR_MIN = 5 };
    const double left = fmax(totals->work - totals->work_done, 0), seconds = totals->milliseconds / 1e3;
    const double share = totals->work > 0 ? fmin(totals->work_done / totals->work, 1) : 1;
    char words[96], time[32], all[sizeof words + sizeof time + 8];
    print_progress_words(totals, words, sizeof words);
    print_time(totals->work_done > 0 ? seconds / totals->work_done * left : 0, time, sizeof time);
    const bool is_known = totals->work_done > 0 && !totals->only.is_rough;
    snprintf(all, sizeof all, is_known ? "%s, %s left" : "%s", words, time);

    const size_t columns = strlen(all) + 4 < size ? size - strlen(all) - 4 : 0; /* brackets, a space, the end */
    const size_t bar = columns < BAR_MAX ? columns : BAR_MAX;
    const size_t full = (size_t)((double)bar * share);
    if (bar < BAR_MIN)
        snprintf(text, size, "%s", all);
    else
        snprintf(text, size, "[%.*s%*s] %s", (int)full, "==============================", (int)(bar - full), "", all);
}

void progress_draw(struct progress *progress, const struct batch_totals *totals)
{
    enum { FIRST_MILLISECONDS = 1000 };
    struct winsize window;
    const pid_t group = tcgetpgrp(STDERR_FILENO); /* below 0: the terminal does not control this process */
    if ((totals->only.word != NULL && totals->milliseconds < FIRST_MILLISECONDS) || (group >= 0 && group != getpgrp()))
        return;
    char line[256], all[sizeof line + 8];
    /* Leave the last column free: some terminals wrap as soon as it is written. */
    const size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
    progress_print(totals, line, columns < sizeof line ? columns : sizeof line);
    snprintf(all, sizeof all, "\r\033[K%s", line);
    fputs(all, stderr);
    progress->drawn = true;
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

void print_choice(const struct batch_totals *totals)
{
    if (totals->count > 0)
        print_detail("backend", "%s; %d image%s at a time", totals->why, totals->workers, text_plural(totals->workers));
}

void print_summary(const struct batch_totals *totals, const char *unit, const char *why)
{
    const double seconds = totals->milliseconds / 1e3;
    const size_t ended = totals->done + totals->skipped + totals->failed;
    fprintf(stderr, "%zu of %zu %s%s done", totals->done, totals->count, unit, totals->count == 1 ? "" : "s");
    if (totals->skipped > 0)
        fprintf(stderr, ", %zu skipped (%s)", totals->skipped, why);
    if (ended < totals->count)
        fprintf(stderr, ", %zu not begun", totals->count - ended);
    fprintf(stderr, "; %.1f Mpixel in %.1f s, %.1f %ss/s\n", totals->pixels / 1e6, seconds,
            seconds > 0 ? (double)totals->done / seconds : 0, unit);
}

bool is_writable(int descriptor)
{
    struct pollfd reader = {.fd = descriptor, .events = POLLOUT};
    return poll(&reader, 1, 0) == 1 && (reader.revents & POLLOUT) != 0;
}

void print_interrupted(const struct batch_totals *totals, const char *unit, const char *verb, const char *hint)
{
    char text[256], skipped[64] = "";
    if (totals->skipped > 0)
        snprintf(skipped, sizeof skipped, ", %zu skipped", totals->skipped);
    const int size = snprintf(text, sizeof text, "gpuconv: interrupted: %zu of %zu %s%s %s%s%s\n", totals->done,
                              totals->count, unit, totals->count == 1 ? "" : "s", verb, skipped, hint);
    if (is_writable(STDERR_FILENO) && write(STDERR_FILENO, text, (size_t)size) < size)
        return; /* nobody reads it */
}
