/* SPDX-License-Identifier: MIT
 *
 * --conformance: the vectors of the definition, on each backend, variant and instruction set of this machine. */
#include "batch/conformance.h"
#include "app/messages.h"
#include "app/modes.h"
#include "base/file.h"
#include "base/text.h"
#include "base/vector/instruction_sets.h"
#include "variants/table.h"

#include <stdio.h>
#include <stdlib.h>

/* What all runs share. */
struct runs {
    const struct options *options;
    struct conformance_request request; /* the next one */
    size_t count, mismatches;
};

/* Print which variants have done how many filters, as FORMAT says. */
static void print_filters(const struct conformance_result *result, const char *format)
{
    size_t count, printed = 0;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++)
        if (result->filters[i] > 0)
            printf(format, printed++ > 0 ? "," : "", table[i].name, result->filters[i]);
}

static void print_conformance_result(const struct runs *runs, const struct conformance_result *result)
{
    const struct variant *variant = runs->request.variant;
    const char *name = variant != NULL ? variant->name : "automatic";
    const char *backend = backend_name(runs->request.choice == CHOICE_CUDA ? BACKEND_CUDA : BACKEND_CPU);
    const char *first = result->mismatches > 0 ? result->first : NULL;
    if (!runs->options->json) {
        printf("%-4s  %-14s  %4zu cases, %zu mismatches, %zu not taken; ran: %s, cpu %zu, cuda %zu; filters:", backend,
               name, result->cases, result->mismatches, result->not_taken, result->hardware, result->ran[BACKEND_CPU],
               result->ran[BACKEND_CUDA]);
        print_filters(result, "%s %s %zu");
        printf("%s%s\n", first != NULL ? "; first " : "", result->first);
        return;
    }
    printf("%s{\"pixels\":\"" PIXELS_NAME "\",\"backend\":\"%s\",\"variant\":\"%s\"", runs->count == 0 ? "[" : ",\n ",
           backend, name);
    text_print_json_member(stdout, "hardware", result->hardware);
    printf(",\"cases\":%zu,\"mismatches\":%zu,\"not_taken\":%zu,\"ran\":{\"cpu\":%zu,\"cuda\":%zu},\"filters\":{",
           result->cases, result->mismatches, result->not_taken, result->ran[BACKEND_CPU], result->ran[BACKEND_CUDA]);
    print_filters(result, "%s\"%s\":%zu");
    putchar('}');
    text_print_json_member(stdout, "first", first);
    putchar('}');
}

/* Do the request, and print what came of it. A case that ran elsewhere than it was to is a mismatch. */
static bool run_request(struct runs *runs, struct error *error)
{
    struct conformance_result result;
    if (!conformance_run(&runs->request, &result, error))
        return false;
    const size_t elsewhere = result.ran[runs->request.choice == CHOICE_CUDA ? BACKEND_CPU : BACKEND_CUDA];
    print_conformance_result(runs, &result);
    fflush(stdout);
    runs->count++;
    runs->mismatches += result.mismatches + elsewhere;
    return true;
}

/* Do the vectors by all variants of a backend whose results are the definition's. On a GPU, none takes all filters, so
 * the automatic choice follows. */
static bool run_variants(struct runs *runs, enum choice choice, bool with_reference, struct error *error)
{
    size_t count;
    const struct variant *table = variants(&count);
    bool done = true;
    runs->request.choice = choice;
    for (size_t i = 0; done && i < count; i++) {
        runs->request.variant = &table[i];
        if ((table[i].backend == BACKEND_CUDA) == (choice == CHOICE_CUDA) && variant_is_canonical(&table[i]) &&
            variant_is_built(&table[i]) && (with_reference || !table[i].is_reference))
            done = run_request(runs, error);
    }
    runs->request.variant = NULL;
    return done && (choice == CHOICE_CPU || run_request(runs, error));
}

/* $GPUCONV_CPU chooses the instruction set. No thread reads it meanwhile. */
static bool run_all(struct runs *runs, struct error *error)
{
    enum instruction_set chosen;
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    const char *asked = getenv("GPUCONV_CPU");
    bool done = instruction_set_find(&chosen, error), is_first = true;
    for (size_t i = 0; done && i < count; i++) {
        if (asked != NULL && asked[0] != '\0' && sets[i] != chosen)
            continue;
        setenv("GPUCONV_CPU", instruction_set_name(sets[i]), 1);
        done = run_variants(runs, CHOICE_CPU, is_first, error);
        is_first = false;
    }
    const int gpus = done && pipeline_has_cuda ? pipeline_gpus() : 0;
    for (runs->request.device = 0; done && runs->request.device < gpus; runs->request.device++)
        done = run_variants(runs, CHOICE_CUDA, false, error);
    return done;
}

int run_conformance(const struct options *options)
{
    enum { FILE_MAX = 1 << 26 };
    struct error error;
    struct runs runs = {.options = options};
    char *text = NULL;
    bool done = options->input == NULL ||
                file_read_text(options->input, FILE_MAX, ERROR_WORK, &text, &runs.request.size, &error);
    runs.request.text = text;
    done = done && run_all(&runs, &error);
    fputs(options->json && runs.count > 0 ? "]\n" : "", stdout);
    free(text);
    if (done && runs.mismatches > 0)
        done = error_set(&error, ERROR_WORK,
                         "%zu cases differ from " PIXELS_NAME ", or ran on another backend; do not use this build",
                         runs.mismatches);
    return done ? 0 : print_error_line(&error);
}
