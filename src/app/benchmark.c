/* SPDX-License-Identifier: MIT
 *
 * --bench: rows go to standard output as they are measured. The name of the row at work goes to standard error. */
#include "app/messages.h"
#include "app/modes.h"
#include "base/text.h"
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct bench_output {
    struct bench_writer writer;
    bool progress; /* say on standard error what is running */
};

static void show_progress(void *context, const char *what)
{
    (void)context;
    fputs("\r\033[K", stderr); /* overwrite the previous line */
    text_print_escaped(stderr, what);
    fflush(stderr);
}

static void print_bench_row(void *context, const struct bench_row *row)
{
    struct bench_output *output = context;
    if (output->progress)
        show_progress(NULL, "");
    bench_write_row(&output->writer, row);
    if (ferror(stdout) != 0)
        end_if_unread(); /* do not measure the next row */
}

/* Measure and print; the benchmark is open. */
static bool run_bench(const struct options *options, struct bench *bench, size_t *wrong, struct error *error)
{
    struct bench_output output = {.progress = !options->quiet && isatty(STDERR_FILENO)};
    const struct bench_listener listener = {&output, print_bench_row, output.progress ? show_progress : NULL};
    const enum bench_format format = options->json ? BENCH_JSON : options->bench.csv ? BENCH_CSV : BENCH_TABLE;
    if (!bench_write_begin(&output.writer, stdout, format, bench, error))
        return false;
    const bool done = bench_run(bench, &listener, wrong, error);
    if (output.progress)
        show_progress(NULL, "");
    bench_write_end(&output.writer);
    return done;
}

int run_benchmark(const struct options *options)
{
    struct error error;
    struct filter *filters = NULL;
    size_t count, wrong = 0;
    const char *named = options->bench.filter != NULL ? options->bench.filter : BENCH_FILTERS;
    if (!find_filters(options, named, bench_find_filter, &filters, &count, &error))
        return print_error_line(&error);
    const struct bench_request request = {
        .sizes = options->bench.sizes,
        .size_count = options->bench.size_count,
        .filters = filters,
        .filter_count = count,
        .default_filters = options->bench.filter == NULL,
        .samples = {[SAMPLE_U8] = options->bench.sample < 0 || options->bench.sample == SAMPLE_U8,
                    [SAMPLE_U16] = options->bench.sample == SAMPLE_U16,
                    [SAMPLE_F32] = options->bench.sample < 0 || options->bench.sample == SAMPLE_F32},
        .border = options->recipe.border,
        .variants = options->bench.variants,
        .cpu = options->recipe.choice != CHOICE_CUDA,
        .cuda = options->recipe.choice != CHOICE_CPU,
        .device = options->devices.list[0],
        .threads = options->threads,
    };
    struct bench *bench = calloc(1, sizeof *bench);
    bool done = bench != NULL ? bench_open(bench, &request, &error) && run_bench(options, bench, &wrong, &error)
                              : error_no_memory(&error, "the benchmark");
    if (done && wrong > 0)
        done = error_set(&error, ERROR_WORK,
                         "%zu of the benchmark's rows differ from the reference; they are marked as wrong", wrong);
    if (bench != NULL)
        bench_close(bench);
    free(bench);
    free(filters);
    return done ? 0 : print_error_line(&error);
}
