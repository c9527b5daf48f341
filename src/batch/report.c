/* SPDX-License-Identifier: MIT
 *
 * A batch's words and its JSON. */
#include "batch/report.h"

#include "base/file.h"
#include "base/text.h"
#include "metadata/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void batch_print_progress(const struct batch_totals *totals, char *line, size_t size)
{
    const size_t ended = totals->done + totals->skipped + totals->failed;
    const double seconds = totals->milliseconds / 1e3;
    char words[128], left[32] = "-:--";
    if (totals->bytes_ended > 0)
        print_time(seconds / totals->bytes_ended * (totals->bytes - totals->bytes_ended), left, sizeof left);
    snprintf(words, sizeof words, "%zu/%zu files, %.1f Mpixel/s, %s left", ended, totals->count,
             seconds > 0 ? totals->pixels / 1e6 / seconds : 0, left);
    enum { BAR_MOST = 30, BAR_LEAST = 5 };
    const size_t room = strlen(words) + 4 < size ? size - strlen(words) - 4 : 0; /* brackets, a space, the end */
    const size_t bar = room < BAR_MOST ? room : BAR_MOST;
    const size_t full = totals->count > 0 ? bar * ended / totals->count : bar;
    if (bar < BAR_LEAST)
        snprintf(line, size, "%s", words);
    else
        snprintf(line, size, "[%.*s%*s] %s", (int)full, "==============================", (int)(bar - full), "", words);
}

void batch_print_summary(const struct batch_totals *totals, char *line, size_t size)
{
    const double seconds = totals->milliseconds / 1e3;
    const size_t ended = totals->done + totals->skipped + totals->failed;
    char skipped[48] = "", begun[48] = "";
    if (totals->skipped > 0)
        snprintf(skipped, sizeof skipped, ", %zu skipped", totals->skipped);
    if (ended < totals->count)
        snprintf(begun, sizeof begun, ", %zu not begun", totals->count - ended);
    snprintf(line, size, "%zu of %zu file%s done%s%s; %.1f Mpixel in %.1f s, %.1f files/s", totals->done, totals->count,
             totals->count == 1 ? "" : "s", skipped, begun, totals->pixels / 1e6, seconds,
             seconds > 0 ? (double)totals->done / seconds : 0);
}

/* ---- JSON ---- */

static void print_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\"%s\":", name);
    text_print_json(file, text);
}

static void print_result(FILE *file, const struct result *result)
{
    static const char *const words[] = {
        [OUTCOME_DONE] = "done", [OUTCOME_SKIPPED] = "skipped", [OUTCOME_FAILED] = "failed"};
    fprintf(file, "{\"status\":\"%s\"", words[result->outcome]);
    print_text(file, "input", result->job->input);
    print_text(file, "output", result->job->output);
    fprintf(file, ",\"input_bytes\":%zu", result->input_bytes);
    if (result->width > 0)
        fprintf(file, ",\"width\":%d,\"height\":%d,\"channels\":%d,\"bits\":%d", result->width, result->height,
                result->channels, result->bits);
    if (result->outcome == OUTCOME_DONE)
        fprintf(file, ",\"output_bytes\":%zu", result->output_bytes);
    if (result->decoder != NULL)
        print_text(file, "decoder", result->decoder->name);
    if (result->encoder != NULL)
        print_text(file, "encoder", result->encoder->name);
    if (result->variants[0] != '\0') {
        print_text(file, "backend", result->backend == BACKEND_CUDA ? "cuda" : "cpu");
        if (result->device >= 0)
            fprintf(file, ",\"device\":%d", result->device);
        print_text(file, "variant", result->variants);
    }
    if (result->outcome == OUTCOME_DONE && (result->not_read | result->not_written) != 0) {
        char parts[METADATA_PARTS * METADATA_REASONS * 40]; /* none of them is as long as that */
        metadata_print_dropped(result->not_read | result->not_written, parts, sizeof parts);
        print_text(file, "metadata_left_out", parts);
    }
    if (result->outcome == OUTCOME_FAILED) {
        char text[ERROR_TEXT];
        error_text(&result->error, text, sizeof text);
        print_text(file, "error", text);
    }
    if (result->outcome != OUTCOME_SKIPPED) {
        fputs(",\"ms\":{", file);
        for (int stage = 0; stage < STAGE_COUNT; stage++)
            if (result->stages.milliseconds[stage] > 0)
                fprintf(file, "\"%s\":%.3f,", stage_name((enum stage)stage), result->stages.milliseconds[stage]);
        fprintf(file, "\"total\":%.3f}", stages_total(&result->stages));
    }
    fputs("}\n", file);
}

bool batch_report(int descriptor, const char *name, const struct result *result, struct error *error)
{
    struct text_buffer line;
    FILE *file = text_open(&line);
    if (file == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for a line of the report %s; free some", name);
    print_result(file, result);
    bool done = text_close(file, &line);
    if (!done) {
        error_set(error, ERROR_WORK, "not enough memory for a line of the report %s; free some", name);
    } else {
        const ssize_t wrote = write(descriptor, line.bytes, line.size);
        if (wrote != (ssize_t)line.size)
            done = error_about(error, ERROR_WORK, name,
                               "the report cannot be written: %s; make room or choose another file",
                               wrote < 0 ? strerror(errno) : "it takes only a part of a line");
    }
    free(line.bytes);
    return done;
}
