/* SPDX-License-Identifier: MIT
 *
 * The benchmark's rows as a table for people, and as JSON and CSV for machines. The two machine formats have the same
 * fields; write_fields lists them once. */
#include "base/text.h"
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Today, as YYYY-MM-DD in UTC. */
static void print_date(char *text, size_t size)
{
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) == NULL || strftime(text, size, "%Y-%m-%d", &parts) == 0)
        snprintf(text, size, "unknown");
}

/* ---- JSON and CSV ---- */

/* Write a name, which may hold any bytes: control characters are escaped, quotation marks are doubled. */
static void csv_text(FILE *file, const char *text)
{
    char doubled[2 * sizeof((struct filter *)NULL)->name], *to = doubled; /* no text of a row is longer than a name */
    const char *quote = strpbrk(text, ",\"") != NULL ? "\"" : "";
    for (const char *c = text; *c != '\0'; *to++ = *c++)
        if (*c == '"')
            *to++ = '"';
    *to = '\0';
    fputs(quote, file);
    text_print_escaped(file, doubled);
    fputs(quote, file);
}

/* The destination of the fields of a row. */
struct fields {
    FILE *file;
    enum bench_format format;
    bool names; /* CSV's first line */
    bool begun; /* a field has been written */
};

/* Write what precedes a value: a comma, and in JSON the name. Returns false for CSV's first line, which has names
 * only. */
static bool begin_field(struct fields *fields, const char *name)
{
    if (fields->begun)
        fputs(fields->format == BENCH_JSON ? ", " : ",", fields->file);
    fields->begun = true;
    if (fields->format == BENCH_JSON)
        fprintf(fields->file, "\"%s\": ", name);
    else if (fields->names)
        fputs(name, fields->file);
    return !fields->names;
}

static void text_field(struct fields *fields, const char *name, const char *value)
{
    if (begin_field(fields, name))
        (fields->format == BENCH_JSON ? text_print_json : csv_text)(fields->file, value);
}

static void whole_field(struct fields *fields, const char *name, uint64_t value)
{
    if (begin_field(fields, name))
        fprintf(fields->file, "%llu", (unsigned long long)value);
}

static void bool_field(struct fields *fields, const char *name, bool value)
{
    if (begin_field(fields, name))
        fputs(value ? "true" : "false", fields->file);
}

/* Write a number with six digits. If it was not MEASURED, CSV has nothing and JSON has null. */
static void number_field(struct fields *fields, const char *name, double value, bool measured)
{
    if (!begin_field(fields, name))
        return;
    if (measured)
        fprintf(fields->file, "%.6g", value);
    else if (fields->format == BENCH_JSON)
        fputs("null", fields->file);
}

static void write_fields(struct fields *fields, const struct bench_row *row)
{
    const bool timed = row->runs > 0;
    text_field(fields, "variant", row->variant);
    text_field(fields, "backend", backend_name(row->backend));
    text_field(fields, "filter", row->filter != NULL ? row->filter->name : "");
    whole_field(fields, "filter_width", row->filter != NULL ? (uint64_t)row->filter->width : 0);
    whole_field(fields, "filter_height", row->filter != NULL ? (uint64_t)row->filter->height : 0);
    text_field(fields, "sample", sample_name(row->sample));
    whole_field(fields, "width", (uint64_t)row->size.width);
    whole_field(fields, "height", (uint64_t)row->size.height);
    whole_field(fields, "planes", (uint64_t)row->size.planes);
    text_field(fields, "border", border_name(row->border));
    whole_field(fields, "runs", (uint64_t)row->runs);
    number_field(fields, "median_ms", row->median_ms, timed);
    number_field(fields, "min_ms", row->min_ms, timed);
    number_field(fields, "max_ms", row->max_ms, timed);
    number_field(fields, "spread", row->spread, timed);
    number_field(fields, "gpixel_s", row->gpixel_s, timed);
    number_field(fields, "gb_s", row->gb_s, timed);
    number_field(fields, "tmac_s", row->tmac_s, timed);
    number_field(fields, "intensity", row->intensity, timed);
    number_field(fields, "x_copy", row->x_copy, timed);
    number_field(fields, "percent_copy", row->percent_copy, timed);
    number_field(fields, "percent_peak", row->percent_peak, timed);
    text_field(fields, "bound", row->memory_bound ? "memory" : "arithmetic");
    number_field(fields, "upload_ms", row->upload_ms, true);
    number_field(fields, "download_ms", row->download_ms, true);
    bool_field(fields, "canonical", row->canonical);
    whole_field(fields, "different", row->different);
    text_field(fields, "status", row->wrong ? "wrong" : "ok");
    bool_field(fields, "chosen", row->chosen);
}

static void csv_begin(FILE *file)
{
    struct fields fields = {.file = file, .format = BENCH_CSV, .names = true};
    const struct bench_row none = {.variant = ""};
    write_fields(&fields, &none);
    fputc('\n', file);
}

static void json_begin(FILE *file, const struct bench *bench)
{
    struct fields peaks = {.file = file, .format = BENCH_JSON};
    char date[16];
    print_date(date, sizeof date);
    fprintf(file, "{\n  \"version\": \"%s\",\n  \"date\": \"%s\",\n  \"device\": ", GPUCONV_VERSION, date);
    if (bench->device != NULL) {
        fputs("{\"name\": ", file);
        text_print_json(file, bench->info.name);
        fprintf(file,
                ", \"capability\": %d, \"multiprocessors\": %d, \"memory\": %zu, \"l2_bytes\": %d, \"driver\": %d}",
                bench->info.capability, bench->info.multiprocessors, bench->info.memory, bench->info.l2_bytes,
                bench->driver);
    } else {
        fputs("null", file);
    }
    fputs(",\n  \"cpu\": {\"name\": ", file);
    text_print_json(file, bench->cpu);
    fprintf(file, ", \"threads\": %d},\n  \"peaks\": {", bench->pool.threads);
    number_field(&peaks, "fma_tmac_s", bench->peaks.fma / 1e12, bench->peaks.fma > 0);
    number_field(&peaks, "dp4a_tmac_s", bench->peaks.dp4a / 1e12, bench->peaks.dp4a > 0);
    number_field(&peaks, "tensor_tmac_s", bench->peaks.tensor / 1e12, bench->peaks.tensor > 0);
    number_field(&peaks, "cpu_fma_tmac_s", bench->cpu_peak / 1e12, bench->cpu_peak > 0);
    fputs("},\n  \"filters\": {", file);
    for (size_t i = 0; i < bench->request->filter_count; i++) {
        fputs(i > 0 ? ",\n    " : "\n    ", file);
        text_print_json(file, bench->request->filters[i].name);
        fputs(": ", file);
        filter_print_json(file, &bench->request->filters[i]);
    }
    fputs("\n  },\n  \"rows\": [", file);
}

/* ---- The table ---- */

/* Print a number in WIDTH columns, with fewer decimals if it is too long. */
static void print_cell(FILE *file, int width, int decimals, double value)
{
    while (decimals > 0 && snprintf(NULL, 0, "%.*f", decimals, value) > width)
        decimals--;
    fprintf(file, " %*.*f", width, decimals, value);
}

static void table_begin(FILE *file, const struct bench *bench)
{
    char date[16];
    print_date(date, sizeof date);
    fprintf(file, "gpuconv " GPUCONV_VERSION ", %s\n", date);
    if (bench->device != NULL)
        fprintf(file,
                "GPU: %s, compute capability %d.%d, %d multiprocessors, L2 %.0f MiB, driver for CUDA %d.%d\n"
                "     peaks: float %.2f TMAC/s, dp4a %.2f, tensor cores (int8) %.1f\n",
                bench->info.name, bench->info.capability / 10, bench->info.capability % 10, bench->info.multiprocessors,
                (double)bench->info.l2_bytes / (1 << 20), bench->driver / 1000, bench->driver % 1000 / 10,
                bench->peaks.fma / 1e12, bench->peaks.dp4a / 1e12, bench->peaks.tensor / 1e12);
    else if (bench->no_device.code != ERROR_NONE)
        fprintf(file, "GPU: none: %s\n", bench->no_device.message);
    fprintf(file, "CPU: %s, %d thread%s\n", bench->cpu, bench->pool.threads, bench->pool.threads == 1 ? "" : "s");
    if (bench->cpu_peak > 0)
        fprintf(file, "     peak: float %.4f TMAC/s\n", bench->cpu_peak / 1e12);
    if (bench->omitted_sizes > 0)
        fprintf(file, "%zu larger sizes are left out: they do not fit into memory\n", bench->omitted_sizes);
    fputs("Every row was checked before it was timed. * marks the automatic choice of its backend, ~ outputs that "
          "differ\n"
          "from the canonical ones within the tolerance. Times are for one launch. ops/B are operations a byte, 2 for "
          "each\n"
          "tap. bound is the lower limit at that intensity: memory speed or arithmetic. up and down are transfers.\n",
          file);
}

static bool same_group(const struct bench_row *a, const struct bench_row *b)
{
    return a->filter == b->filter && a->sample == b->sample && a->size.width == b->size.width &&
           a->size.height == b->size.height && a->size.planes == b->size.planes;
}

static void group_header(FILE *file, const struct bench_row *row)
{
    fprintf(file, "\n%d x %d, %d plane%s, %s, ", row->size.width, row->size.height, row->size.planes,
            row->size.planes == 1 ? "" : "s", sample_name(row->sample));
    if (row->filter == NULL) {
        fputs("copies\n", file);
    } else if (filter_kind(row->filter)->resizes && !filter_kind(row->filter)->moves) {
        int width = row->size.width, height = row->size.height;
        filter_resize(row->filter, &width, &height, NULL);
        fprintf(file, "%s, to %d x %d\n", row->filter->name, width, height);
    } else {
        text_print_escaped(file, row->filter->name);
        fprintf(file, " (%d x %d %s), border %s\n", row->filter->width, row->filter->height,
                filter_window_name(row->filter), border_name(row->border));
    }
    fprintf(file, " %-15s %9s %9s %6s %4s %8s %7s %7s %7s %6s %6s %-6s %8s %8s\n", "variant", "median ms", "min ms",
            "spread", "runs", "Gpixel/s", "GB/s", "TMAC/s", "ops/B", "% copy", "% peak", "bound", "up ms", "down ms");
}

/* Judge the automatic choice in the group that has ended. */
static void judge_group(struct bench_writer *writer)
{
    const struct bench_row *row = &writer->last;
    for (int backend = 0; backend < 2; backend++) {
        const struct bench_row chosen = writer->chosen[backend], best = writer->best[backend];
        writer->chosen[backend].runs = writer->best[backend].runs = 0;
        if (chosen.runs == 0)
            continue;
        writer->cases++;
        if (chosen.median_ms <= 1.1 * best.median_ms) {
            writer->near++;
            continue;
        }
        fprintf(writer->misses_file, "  %dx%dx%d %s ", row->size.width, row->size.height, row->size.planes,
                sample_name(row->sample));
        text_print_escaped(writer->misses_file, row->filter->name);
        fprintf(writer->misses_file, ": %s took %.4f ms, %s %.4f ms (%.2f times as long)\n", chosen.variant,
                chosen.median_ms, best.variant, best.median_ms, chosen.median_ms / best.median_ms);
    }
}

/* Remember what judge_group needs. */
static void record_choice(struct bench_writer *writer, const struct bench_row *row)
{
    const int backend = (int)row->backend;
    if (row->filter == NULL || row->runs == 0 || !row->canonical)
        return;
    if (row->chosen)
        writer->chosen[backend] = *row;
    if (writer->best[backend].runs == 0 || row->median_ms < writer->best[backend].median_ms)
        writer->best[backend] = *row;
}

static void table_row(struct bench_writer *writer, const struct bench_row *row)
{
    FILE *file = writer->file;
    if (writer->rows == 0 || !same_group(&writer->last, row)) {
        judge_group(writer);
        group_header(file, row);
    }
    record_choice(writer, row);
    writer->last = *row;
    fprintf(file, "%c%-15s", row->chosen ? '*' : row->different > 0 && !row->wrong ? '~' : ' ', row->variant);
    if (row->wrong) {
        fprintf(file, " WRONG, so not timed: %llu samples differ from the expected ones\n",
                (unsigned long long)row->different);
        return;
    }
    print_cell(file, 9, 4, row->median_ms);
    print_cell(file, 9, 4, row->min_ms);
    fprintf(file, " %5.1f%% %4d", 100 * row->spread, row->runs);
    print_cell(file, 8, 3, row->gpixel_s);
    print_cell(file, 7, 1, row->gb_s);
    if (row->filter != NULL) {
        print_cell(file, 7, 3, row->tmac_s);
        print_cell(file, 7, 1, row->intensity);
        print_cell(file, 6, 1, row->percent_copy);
        print_cell(file, 6, 1, row->percent_peak);
    } else {
        fprintf(file, " %7s %7s %6.1f %6s", "", "", row->percent_copy, "");
    }
    fprintf(file, row->backend == BACKEND_CUDA ? " %-6s" : " %s", row->memory_bound ? "memory" : "arith");
    if (row->backend == BACKEND_CUDA) {
        print_cell(file, 8, 2, row->upload_ms);
        print_cell(file, 8, 2, row->download_ms);
    }
    fputc('\n', file);
}

static void table_end(struct bench_writer *writer)
{
    judge_group(writer);
    if (writer->cases == 0 || writer->some_variants)
        return;
    fprintf(writer->file,
            "\nThe automatic choice was within 10%% of the fastest canonical variant in %d of %d cases%s\n",
            writer->near, writer->cases, writer->near < writer->cases ? "; not in these:" : ".");
    fflush(writer->misses_file);
    fputs(writer->misses.bytes, writer->file);
}

bool bench_write_begin(struct bench_writer *writer, FILE *file, enum bench_format format, const struct bench *bench,
                       struct error *error)
{
    *writer = (struct bench_writer){.file = file, .format = format, .some_variants = bench->request->variants != 0};
    writer->misses_file = text_open(&writer->misses);
    if (writer->misses_file == NULL)
        return error_no_memory(error, "the benchmark's table");
    if (format == BENCH_JSON)
        json_begin(file, bench);
    else if (format == BENCH_CSV)
        csv_begin(file);
    else
        table_begin(file, bench);
    return true;
}

void bench_write_row(struct bench_writer *writer, const struct bench_row *row)
{
    if (writer->format == BENCH_TABLE) {
        table_row(writer, row);
    } else {
        struct fields fields = {.file = writer->file, .format = writer->format};
        if (writer->format == BENCH_JSON)
            fputs(writer->rows > 0 ? ",\n    {" : "\n    {", writer->file);
        write_fields(&fields, row);
        fputs(writer->format == BENCH_JSON ? "}" : "\n", writer->file);
    }
    writer->rows++;
    fflush(writer->file);
}

void bench_write_end(struct bench_writer *writer)
{
    if (writer->format == BENCH_JSON)
        fputs("\n  ]\n}\n", writer->file);
    else if (writer->format == BENCH_TABLE)
        table_end(writer);
    if (text_close(writer->misses_file, &writer->misses))
        free(writer->misses.bytes);
}
