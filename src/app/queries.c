/* SPDX-License-Identifier: MIT
 *
 * Questions and their answers on standard output: filters, variants, codecs, GPUs, help, version. */
#include "app/messages.h"
#include "app/modes.h"
#include "base/text.h"
#include "codec/codec.h"
#include "kernels/device/device.h"
#include "pipeline/pipeline.h"
#include "variants/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Filters ---- */

bool find_filters(const struct options *options, const char *named, struct filter **filters, size_t *count,
                  struct error *error)
{
    if (named == NULL ? !bench_default_filters(filters, count, error) : !filter_find_all(named, filters, count, error))
        return false;
    for (size_t i = 0; i < *count; i++) {
        struct filter *filter = &(*filters)[i];
        if (options->flip)
            filter_flip(filter);
        /* Sums of two grids are never negative. */
        filter->absolute = filter->absolute || (options->absolute && filter_grids(filter) == 1);
    }
    return true;
}

/* Print one line of --list. A filter on the search path that cannot be read gets a warning instead. */
static void list_filter(const struct options *options, const char *name, int name_width, struct filter *filter)
{
    struct error error;
    if (!filter_find(name, filter, &error)) {
        char text[ERROR_TEXT];
        error_text(&error, text, sizeof text);
        print_warning(options, text, "");
        return;
    }
    char size[32];
    snprintf(size, sizeof size, "%dx%d", filter->width, filter->height);
    text_print_escaped(stdout, name);
    printf("%*s  %-7s  ", name_width - (int)strlen(name), "", size);
    text_print_escaped(stdout, filter->title);
    putchar('\n');
}

static int list_filters(const struct options *options)
{
    struct error error;
    char **names;
    size_t count;
    if (!filter_names(&names, &count, &error))
        return print_error_line(&error);
    struct filter *filter = malloc(sizeof *filter);
    if (filter == NULL) {
        free(names);
        error_set(&error, ERROR_WORK, "not enough memory for a filter; free some");
        return print_error_line(&error);
    }
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        width = strlen(names[i]) > width ? strlen(names[i]) : width;
    for (size_t i = 0; filter_forms[i][0] != NULL; i++)
        width = strlen(filter_forms[i][0]) > width ? strlen(filter_forms[i][0]) : width;

    for (size_t i = 0; i < count; i++)
        list_filter(options, names[i], (int)width, filter);
    for (size_t i = 0; filter_forms[i][0] != NULL; i++)
        printf("%-*s  %-7s  %s\n", (int)width, filter_forms[i][0], "any", filter_forms[i][1]);
    free(filter);
    free(names);
    return 0;
}

/* ---- Tables ---- */

static int list_variants(void)
{
    size_t count;
    const struct variant *table = variants(&count);
    int width = 0;
    for (size_t i = 0; i < count; i++)
        width = (int)strlen(table[i].name) > width ? (int)strlen(table[i].name) : width;

    for (size_t i = 0; i < count; i++) {
        const struct variant *v = &table[i];
        char gpu[32] = "-";
        if (v->backend == BACKEND_CUDA)
            snprintf(gpu, sizeof gpu, "sm_%d", v->capability);
        printf("%-*s  %-4s  %-5s  %-8s  %-14s  %s\n", width, v->name, v->backend == BACKEND_CUDA ? "cuda" : "cpu", gpu,
               v->samples & 1u << SAMPLE_U16 ? "8/16 bit" : "8 bit", accepts_name(v->accepts), v->summary);
    }
    if (!pipeline_has_cuda)
        puts("This gpuconv was built without CUDA: the variants of the backend cuda cannot run.");
    return 0;
}

static int list_codecs(void)
{
    size_t count, format_count;
    const struct codec *table = codecs(&count);
    const struct format *known = formats(&format_count);
    for (const struct codec *codec = table; codec < table + count; codec++) {
        char names[32] = "";
        for (const struct format *format = known; format < known + format_count; format++)
            if (codec_reads(codec, format) || codec_writes(codec, format))
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] != '\0' ? ", " : "",
                         format->name);
        printf("%-13s  %-9s  reads %2d bits, writes %2d  %s%s\n", codec->name, names, codec->read_bits,
               codec->write_bits, codec->summary, codec_is_built_in(codec) ? "" : " (not built in)");
    }
    return 0;
}

/* ---- One filter ---- */

static int show_filters(const struct options *options)
{
    struct error error;
    struct filter *filters;
    size_t count;
    if (!find_filters(options, options->filter, &filters, &count, &error))
        return print_error_line(&error);
    int status = 0;
    for (size_t i = 0; status == 0 && i < count; i++) {
        char *text = filter_describe(&filters[i]);
        if (text == NULL) {
            error_set(&error, ERROR_WORK, "not enough memory to describe %s; free some", filters[i].name);
            status = print_error_line(&error);
            continue;
        }
        if (i > 0)
            putchar('\n');
        fputs(text, stdout);
        free(text);
    }
    free(filters);
    return status;
}

/* ---- GPUs ---- */

static int list_devices(void)
{
    struct error error;
    int count;
    if (!pipeline_has_cuda) {
        puts("no CUDA device: this gpuconv was built without CUDA");
        return 0;
    }
    if (!pipeline_count_gpus(&count, &error)) {
        fputs("no CUDA device: ", stdout);
        text_print_escaped(stdout, error.message);
        putchar('\n');
        return 0;
    }
    for (int i = 0; i < count; i++) {
        struct device_info facts;
        if (!pipeline_describe_gpu(i, &facts, &error))
            return print_error_line(&error);
        printf("%3d  %s, compute capability %d.%d, %.1f GiB\n", i, facts.name, facts.capability / 10,
               facts.capability % 10, (double)facts.memory / (1 << 30));
    }
    return 0;
}

/* ---- About the program ---- */

static int print_help(const struct options *options)
{
    char *text = help_text(options->help_of);
    if (text == NULL) {
        struct error error;
        error_set(&error, ERROR_WORK, "not enough memory for the help; free some");
        return print_error_line(&error);
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

static int print_version(void)
{
    printf("gpuconv " GPUCONV_VERSION "\nbuilt %s CUDA\n", pipeline_has_cuda ? "with" : "without");
    return 0;
}

int run_query(const struct options *options)
{
    switch ((enum mode)options->mode) {
    case MODE_LIST:
        return list_filters(options);
    case MODE_LIST_VARIANTS:
        return list_variants();
    case MODE_LIST_CODECS:
        return list_codecs();
    case MODE_SHOW:
        return show_filters(options);
    case MODE_DEVICES:
        return list_devices();
    case MODE_HELP:
        return print_help(options);
    case MODE_VERSION:
        return print_version();
    default:
        fputs(usage_text(), stderr);
        return ERROR_USAGE;
    }
}
