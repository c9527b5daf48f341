/* SPDX-License-Identifier: MIT
 *
 * The texts of --help and of the short usage. */
#include "app/option_table.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* Explanations begin to the right of most options. Lines have at most 79 columns, so none wraps in 80. */
enum { HELP_COLUMN = 24, HELP_WIDTH = 79 };

void help_print_row(FILE *file, int column, const char *text)
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
    if (o->word != NULL) {
        option_join_words(o, words, sizeof words);
        if (o->kind == KIND_WORD && *(const int *)field >= 0)
            snprintf(standard, sizeof standard, " (default %s)", o->word(*(const int *)field));
    }
    if (o->kind == KIND_NUMBER && *(const int *)field >= o->low)
        snprintf(standard, sizeof standard, " (default %d)", *(const int *)field);
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->word != NULL ? ": " : "", words, standard);
    help_print_row(file, column, text);
}

static const char summary[] = "Filter, sharpen, resize and compare images, on a GPU or the CPU.\n\n"
                              "  gpuconv blur in.png out.png                   one image\n"
                              "  gpuconv resize:1600x,sharpen in.jpg out.webp  one step after the other\n"
                              "  gpuconv -r sharpen photos -o sharp            a folder and its subfolders\n"
                              "  gpuconv --in-place sharpen *.jpg              replace the files\n"
                              "  gpuconv --compare expected actual diff        two images, or two folders\n\n";

static const char more[] = "\ngpuconv --list [WORD]   the filters, or those about a word, such as blur\n"
                           "gpuconv --help WORD     about a filter or an option, such as resize or quality,\n"
                           "                        or a topic: filters, gpu, files, folders, compare,\n"
                           "                        digest, jobs or bench\n"
                           "gpuconv --help all      all options; the manual page has the rest: man gpuconv\n";

static const char opening[] = "usage: gpuconv [OPTIONS] FILTER INPUT OUTPUT\n"
                              "       gpuconv [OPTIONS] FILTER INPUT... {-o DIR | --in-place}\n"
                              "FILTER is a name from --list, like gaussian:2, resize:50% or blur@100x80+20+30,\n"
                              "or a file, or several joined by commas.\n\n";

static const char closing[] = "\nExit status: 0 done, 1 failed, 75 try again, 2 usage\n";

static const char bench_opening[] = "usage: gpuconv --bench [OPTIONS]\n"
                                    "Check every variant on random samples, then time it. --variant selects some.\n"
                                    "It also takes --backend, --device, --threads, --border, --flip, --abs\n"
                                    "and --json. docs/learn/timing.md of the sources says how to time a kernel.\n\n";

static const char compare_opening[] = "usage: gpuconv --compare [OPTIONS] EXPECTED ACTUAL [DIFF]\n"
                                      "Compare two images, or the images of two folders by their relative paths.\n"
                                      "DIFF is a picture of the difference, or the folder for such pictures.\n"
                                      "It also takes --depth, --codec, --max-pixels, --page, --first-picture,\n"
                                      "--threads, --format, --files-from, -0, -j, --memory, --shard, --report,\n"
                                      "--json, -v, -q.\n\n";

static const char compare_closing[] = "\nExit status: 0 all equal, 1 some are different, missing or unreadable,\n75 a "
                                      "retry may read or write the rest, 2 usage.\n";

static const char digest_opening[] = "usage: gpuconv --digest [OPTIONS] FILE...\n"
                                     "       gpuconv --check LIST [OPTIONS]\n"
                                     "Print the SHA-256 of the samples of each image, or of those in a folder, or\n"
                                     "check such a list. Shape and depth count; format and metadata do not.\n"
                                     "It also takes --depth, --codec, --max-pixels, --page, --first-picture,\n"
                                     "--threads, --files-from, -0, -j, --memory, --shard, --report, --json, -v, -q,\n"
                                     "and with --filter all options about the filter and the backend.\n\n";

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
    "--threads, -j, --memory and -q.\n\n";

static const char jobs_closing[] = "\nExit status: 0 all done and equal, 1 or 75 some failed or differ, 2 usage.\n";

/* A part of the help: an opening, groups of options and a closing. */
struct page {
    const char *topic;
    int mode; /* the mode whose --help prints the page; MODE_HELP if there is none */
    const char *opening;
    enum group first, last;
    const char *closing;
};

static const struct page pages[] = {
    {"all", MODE_HELP, opening, 0, GROUP_COUNT - 1, closing},
    {"filters", MODE_HELP, "", GROUP_FILTER, GROUP_FILTER, ""},
    {"gpu", MODE_HELP, "", GROUP_BACKEND, GROUP_BACKEND,
     "\ngpuconv --devices lists the GPUs, or says why there is none.\n"},
    {"files", MODE_HELP, "", GROUP_FILE, GROUP_FILE, ""},
    {"folders", MODE_HELP, "", GROUP_MANY, GROUP_MANY, ""},
    {"bench", MODE_BENCH, bench_opening, GROUP_BENCH, GROUP_BENCH, ""},
    {"compare", MODE_COMPARE, compare_opening, GROUP_COMPARE, GROUP_COMPARE, compare_closing},
    {"digest", MODE_DIGEST, digest_opening, GROUP_DIGEST, GROUP_DIGEST, digest_closing},
    {"jobs", MODE_JOBS, jobs_opening, GROUP_JOBS, GROUP_JOBS, jobs_closing},
};

static void print_page(FILE *file, const struct page *page)
{
    static const char *const titles[GROUP_COUNT] = {
        [GROUP_FILTER] = "The filter",
        [GROUP_BACKEND] = "CPU or GPU (the result is the same)",
        [GROUP_FILE] = "Files (- is standard input or output)",
        [GROUP_MANY] = "Many files or folders (from --skip-existing on, also for one file)",
        [GROUP_TALK] = "Messages",
        [GROUP_QUERY] = "Instead of filtering",
        [GROUP_BENCH] = "With --bench",
        [GROUP_COMPARE] = "With --compare: what may differ, and what is written",
        [GROUP_DIGEST] = "With --digest",
        [GROUP_JOBS] = "With --jobs-from",
    };
    fputs(page->opening, file);
    for (enum group group = page->first; group <= page->last; group++) {
        fprintf(file, "%s%s:\n", group > page->first ? "\n" : "", titles[group]);
        for (const struct option *o = option_table; o < option_table + option_count; o++)
            if (o->group == group)
                print_option(file, o);
    }
    fputs(page->closing, file);
}

/* Print the option of the letter NAME, or all that begin with it, such as --page and --pages, or with IN_TEXT, those
 * whose text or words have it. Returns false if there is none. */
static bool print_options(FILE *file, const char *name, bool in_text)
{
    bool found = false;
    const size_t length = strlen(name);
    for (const struct option *o = option_table; o < option_table + option_count; o++) {
        char words[256] = "";
        if (o->word != NULL && in_text)
            option_join_words(o, words, sizeof words);
        if (in_text       ? strcasestr(o->help, name) != NULL || strcasestr(words, name) != NULL
            : length == 1 ? o->letter == *name
                          : strncmp(o->name, name, length) == 0) {
            print_option(file, o);
            found = true;
        }
    }
    return found;
}

bool help_print(FILE *file, int mode, const char *word)
{
    static const char *const common[] = {"output", "recursive", "format", "quality", "compare"};
    for (const struct page *page = pages; page < pages + sizeof pages / sizeof *pages; page++)
        if (word != NULL ? strcmp(page->topic, word) == 0 : page->mode == mode) {
            print_page(file, page);
            return true;
        }
    if (word == NULL) {
        fputs(summary, file);
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
            print_option(file, option_find(common[i], strlen(common[i])));
        fputs(more, file);
        return true;
    }
    return print_options(file, word + strspn(word, "-"), false);
}

bool help_print_text(FILE *file, const char *word)
{
    return print_options(file, word, true);
}
