/* SPDX-License-Identifier: MIT
 *
 * The texts of --help and of the short usage. */
#include "app/option_table.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

const char usage_text[] = "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
                          "       gpuconv [OPTIONS] FILTER INPUT... -o DIR\n"
                          "       gpuconv [OPTIONS] --in-place FILTER INPUT...\n"
                          "       gpuconv --compare EXPECTED ACTUAL [DIFF]\n"
                          "for example: gpuconv blur photo.png blurred.png\n"
                          "gpuconv --list names the filters, gpuconv --help explains everything\n";

/* Explanations begin to the right of the longest option. Lines have at most 79 columns, so none wraps in 80. */
enum { HELP_COLUMN = 24, HELP_WIDTH = 79 };

/* Print TEXT from HELP_COLUMN on, and break its lines at spaces. The cursor is at COLUMN. */
static void print_wrapped(FILE *file, const char *text, int column)
{
    if (column + 2 > HELP_COLUMN) {
        fputc('\n', file);
        column = 0;
    }
    fprintf(file, "%*s", HELP_COLUMN - column, "");
    column = HELP_COLUMN;
    while (*text != '\0') {
        const int word = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            fprintf(file, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += fprintf(file, "%s%.*s", column > HELP_COLUMN ? " " : "", word, text);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', file);
}

static void print_option(FILE *file, const struct option *o)
{
    int column = o->letter != 0 ? fprintf(file, "  -%c, --%s", o->letter, o->name) : fprintf(file, "  --%s", o->name);
    if (o->argument != NULL)
        column += fprintf(file, " %s", o->argument);

    char words[256] = "", standard[64] = "", text[512];
    const void *field = (const char *)&option_defaults + o->field;
    if (o->word != NULL)
        option_join_words(o, words, sizeof words);
    if (o->kind == KIND_NUMBER && *(const int *)field >= o->low)
        snprintf(standard, sizeof standard, " (default %d)", *(const int *)field);
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->word != NULL ? ": " : "", words, standard);
    print_wrapped(file, text, column);
}

static const char opening[] = "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
                              "       gpuconv [OPTIONS] FILTER INPUT... {-o DIR | --in-place}\n"
                              "FILTER is a name from --list, like gaussian:2, resize:50% or blur@100x80+20+30,\n"
                              "or a file, or several joined by commas. A list's first value is the default.\n";

static const char closing[] = "\nExit status: 0 done, 1 failed, 75 retry, 2 usage. Try: gpuconv blur a.png b.png\n";

static const char bench_opening[] = "usage: gpuconv --bench [OPTIONS]\n"
                                    "Check every variant on random samples, then time it. --variant selects some.\n"
                                    "It also takes --backend, --device, --threads, --border, --flip, --abs\n"
                                    "and --json.\n";

static const char compare_opening[] = "usage: gpuconv --compare [OPTIONS] EXPECTED ACTUAL [DIFF]\n"
                                      "Compare two images, or the images of two folders by their relative paths.\n"
                                      "DIFF is a picture of the difference, or the folder for such pictures.\n"
                                      "It also takes --depth, --codec, --max-pixels, --page, --first-picture,\n"
                                      "--threads, --format, --files-from, -0, -j, --memory, --shard, --report,\n"
                                      "--json, -v, -q.\n";

static const char compare_closing[] = "\nExit status: 0 all equal, 1 some are different, missing or unreadable,\n75 a "
                                      "retry may read or write the rest, 2 usage.\n";

static const char digest_opening[] = "usage: gpuconv --digest [OPTIONS] FILE...\n"
                                     "       gpuconv --check LIST [OPTIONS]\n"
                                     "Print the SHA-256 of the samples of each image, or of those in a folder, or\n"
                                     "check such a list. Shape and depth count; format and metadata do not.\n"
                                     "It also takes --depth, --codec, --max-pixels, --page, --first-picture,\n"
                                     "--threads, --files-from, -0, -j, --memory, --shard, --report, --json, -v, -q,\n"
                                     "and with --filter all options about the filter and the backend.\n";

static const char digest_closing[] =
    "\nExit status: 0 done, 1 a digest is wrong or a file unreadable, 75 unreadable\nfor now, 2 usage.\n";

static const char jobs_opening[] =
    "usage: gpuconv --jobs-from FILE [OPTIONS]\n"
    "Do the jobs in FILE, a line of JSON each, as they come; - is standard input.\n"
    "Each is answered by a line of JSON on standard output, when it is done:\n"
    "    {\"id\": 1, \"filter\": \"blur\", \"input\": \"a.jpg\", \"output\": \"b.jpg\"}\n"
    "    {\"id\": 2, \"expected\": \"a.png\", \"actual\": \"b.png\", \"diff\": \"d.png\"}\n"
    "A line may have the options about the filter, the backend, files, and what may\n"
    "differ, by their long names: \"quality\": 80, \"strip\": true. On the command line\n"
    "they hold for all lines. \"outputs\": [{\"output\": \"s.jpg\", \"quality\": 70}, ...]\n"
    "makes several results. It also takes --filter, --skip-existing, --device,\n"
    "--threads, -j, --memory and -q.\n";

static const char jobs_closing[] = "\nExit status: 0 all done and equal, 1 or 75 some failed or differ, 2 usage.\n";

/* What --help prints after a mode: an opening, groups of options and a closing. */
struct page {
    int mode;
    const char *opening;
    enum group first, last;
    const char *closing;
};

static const struct page pages[] = {
    {MODE_BENCH, bench_opening, GROUP_BENCH, GROUP_BENCH, ""},
    {MODE_COMPARE, compare_opening, GROUP_COMPARE, GROUP_COMPARE, compare_closing},
    {MODE_DIGEST, digest_opening, GROUP_DIGEST, GROUP_DIGEST, digest_closing},
    {MODE_JOBS, jobs_opening, GROUP_JOBS, GROUP_JOBS, jobs_closing},
    {MODE_RUN, opening, 0, GROUP_QUERY, closing},
};

void help_print(FILE *file, int mode)
{
    static const char *const titles[GROUP_COUNT] = {
        [GROUP_FILTER] = "The filter",
        [GROUP_BACKEND] = "CPU or GPU (the result is the same)",
        [GROUP_FILE] = "Files (- is standard input or output)",
        [GROUP_MANY] = "Many files or folders (--skip-existing and what follows also work for one)",
        [GROUP_TALK] = "Messages",
        [GROUP_QUERY] = "Instead of filtering",
        [GROUP_BENCH] = "Benchmark",
        [GROUP_COMPARE] = "What may differ, and what is written",
        [GROUP_DIGEST] = "Digests",
        [GROUP_JOBS] = "Answers",
    };
    const struct page *page = pages;
    while (page->mode != mode && page->mode != MODE_RUN)
        page++;
    fputs(page->opening, file);
    for (enum group group = page->first; group <= page->last; group++) {
        fprintf(file, "\n%s:\n", titles[group]);
        for (const struct option *o = option_table; o < option_table + option_count; o++)
            if (o->group == group)
                print_option(file, o);
    }
    fputs(page->closing, file);
}
