/* SPDX-License-Identifier: MIT
 *
 * Questions and their answers on standard output: filters, variants, codecs, GPUs, help, version. */
#include "app/messages.h"
#include "app/modes.h"
#include "app/option_table.h"
#include "base/text.h"
#include "base/vector/instruction_sets.h"
#include "codec/codec.h"
#include "kernels/device/device.h"
#include "pipeline/pipeline.h"
#include "variants/table.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* The text that separates the next object of an array from the COUNT objects that are already printed. */
static const char *json_joint(size_t count)
{
    return count == 0 ? "[" : ",\n ";
}

static const char json_end[] = "]\n";

/* ---- Filters ---- */

bool find_filters(const struct options *options, const char *named, filter_finder *find, struct filter **filters,
                  size_t *count, struct error *error)
{
    if (!filter_find_all(named, find, filters, count, error))
        return false;
    for (size_t i = 0; i < *count; i++)
        filter_set_options(&(*filters)[i], options->flip, options->absolute);
    return true;
}

/* The groups of --list, each a title after = and its filters. The word of a form has its colon. Filters that are not
 * here follow the last title. */
static const char *const list_order[] = {
    "=Sharpen",    "unsharp:",     "sharpen",        "unsharp",     "=Blur",       "gaussian:",
    "box:",        "disk:",        "motion:",        "pixelate:",   "blur",        "gaussian3",
    "gaussian5",   "gaussian7",    "gaussian9",      "box3",        "box5",        "box9",
    "=Edges",      "log:",         "outline:",       "edge",        "laplacian",   "sobel",
    "sobel-x",     "sobel-y",      "scharr",         "prewitt",     "emboss",      "=Size and place",
    "resize:",     "thumbnail:",   "cover:",         "crop:",       "pad:",        "turn:",
    "mirror:",     "shift",        "shift-left",     "shift-right", "shift-up",    "shift-down",
    "identity",    "=Colours",     "levels:",        "gamma:",      "brightness:", "contrast:",
    "saturation:", "auto-levels:", "auto-contrast:", "tint:",       "swap:",       "threshold:",
    "posterize:",  "to-srgb:",     "grey",           "invert",      "sepia",       "=Rank",
    "median:",     "rank:",        "erode:",         "dilate:",     "open:",       "close:",
    "tophat:",     "blackhat:",    "median",         "=Your own"};
enum { LIST_ORDER = sizeof list_order / sizeof *list_order };

struct filter_list {
    const struct options *options; /* with `json`, and `word`: NULL, or what is asked for */
    bool is_exact;                 /* is it the name, or the word of a form? Else it is a part */
    const char *group, *heading;   /* the title of the group; the same until it is printed, then NULL */
    size_t count;                  /* filters that are already printed */
};

/* Print one filter if it is asked for: by its name, or a part of its name, title or group. FILTER is NULL for a form,
 * which has any size. */
static void list_filter(struct filter_list *list, const char *name, const struct filter *filter, const char *title)
{
    char head[128], text[4 * NAME_MAX]; /* a name's bytes have 4 characters at most */
    const char *word = list->options->word != NULL ? list->options->word : "";
    snprintf(head, sizeof head, "%.*s", (int)strcspn(word, ":,@"), word);
    const size_t length = strlen(head), before = list->count;
    if (list->is_exact ? strncmp(name, head, length) != 0 || strcspn(name, ":[") != length
                       : strcasestr(name, head) == NULL && strcasestr(title, head) == NULL &&
                             strcasestr(list->group, head) == NULL)
        return;
    list->count++;
    if (list->options->json) {
        printf("%s{\"name\":", json_joint(before));
        text_print_json(stdout, name);
        if (filter != NULL)
            printf(",\"width\":%d,\"height\":%d", filter->width, filter->height);
        else
            printf(",\"width\":null,\"height\":null");
        text_print_json_member(stdout, "title", title);
        putchar('}');
        return;
    }
    if (list->heading != NULL && list->options->mode == MODE_LIST)
        printf("%s%s:\n", before > 0 ? "\n" : "", list->heading);
    list->heading = NULL;
    text_escape(name, text, sizeof text);
    const int column = printf("  %s", text);
    text_escape(title, text, sizeof text);
    help_print_row(stdout, column, text);
}

/* List the filter NAME, or the form whose word and colon it is. If a file on the search path cannot be read, print a
 * warning instead. */
static void list_named(struct filter_list *list, const char *name, struct filter *filter, struct error *error)
{
    char text[ERROR_TEXT];
    const struct filter_form *form = name[strlen(name) - 1] == ':' ? form_find(name, strlen(name) - 1) : NULL;
    if (form != NULL) {
        const bool has_usage = form->usage != NULL && list->options->mode == MODE_HELP;
        snprintf(text, sizeof text, "%s%s%s", form->summary, has_usage ? "; " : "", has_usage ? form->usage : "");
        list_filter(list, form->form, NULL, text);
        return;
    }
    if (filter_find(name, filter, NULL, error)) {
        list_filter(list, name, filter, filter->title);
        return;
    }
    error_text(error, text, sizeof text);
    fflush(stdout);
    print_warning(list->options, text, "");
}

static bool list_filters(const struct options *options, struct error *error)
{
    char **names;
    size_t count;
    const bool is_help = options->mode == MODE_HELP;
    struct filter_list list = {.options = options, .is_exact = is_help && filter_is_named(options->word)};
    if (!filter_names(&names, &count, error))
        return false;
    struct filter *filter = malloc(sizeof *filter);
    bool done = filter != NULL || error_no_memory(error, "a filter");
    for (size_t i = 0; done && i < LIST_ORDER; i++) {
        if (list_order[i][0] == '=')
            list.group = list.heading = list_order[i] + 1;
        else
            list_named(&list, list_order[i], filter, error);
    }
    for (size_t i = 0; done && i < count; i++) {
        size_t at = 0;
        while (at < LIST_ORDER && strcmp(names[i], list_order[at]) != 0)
            at++;
        if (at == LIST_ORDER)
            list_named(&list, names[i], filter, error);
    }
    const bool is_known = options->word != NULL && words_find(options->word) != NULL; /* a word of other programs */
    if (is_help && !list.is_exact && !is_known && help_print_text(stdout, options->word))
        list.count++;
    if (done && list.count == 0) { /* it may be a path, else the error says what is near */
        done = is_help && !is_known ? suggest_option(options->word, error)
                                    : filter_find(options->word, filter, NULL, error);
        if (done)
            list_filter(&list, options->word, filter, filter->title);
    }
    if (done && options->word == NULL && !options->json)
        puts("\nFILTER@100x80+20+30 changes only that part, A,B is A and then B, and a file of\n"
             "weights is a filter, too. gpuconv --help FILTER says more.");
    fputs(options->json && done ? json_end : "", stdout);
    free(filter);
    free(names);
    return done;
}

static bool list_bench_filters(const struct options *options, struct error *error)
{
    struct filter *filters;
    size_t count;
    if (!filter_find_all(BENCH_FILTERS, bench_find_filter, &filters, &count, error))
        return false;
    struct filter_list list = {.options = options, .group = ""};
    for (size_t i = 0; i < count; i++)
        list_filter(&list, filters[i].name, &filters[i], filters[i].title);
    fputs(options->json ? json_end : "", stdout);
    free(filters);
    return true;
}

/* ---- Tables ---- */

static bool list_variants(const struct options *options, struct error *error)
{
    (void)error;
    size_t count;
    const struct variant *table = variants(&count);
    int width = 0;
    for (size_t i = 0; i < count; i++)
        width = (int)strlen(table[i].name) > width ? (int)strlen(table[i].name) : width;

    for (const struct variant *v = table; v < table + count; v++) {
        static const struct {
            const char *text, *json;
        } levels[] = {{"float", ""}, {"8 bit", "8"}, {"16 bit", "16"}, {"8/16 bit", "8,16"}}, *kind;
        char gpu[32];
        kind = &levels[variant_samples(v) & (1u << SAMPLE_U8 | 1u << SAMPLE_U16)];
        if (v->backend == BACKEND_CUDA)
            snprintf(gpu, sizeof gpu, "%s%d", options->json ? "" : "sm_", v->capability);
        else
            snprintf(gpu, sizeof gpu, "%s", options->json ? "null" : "-");
        if (options->json) {
            printf("%s{\"name\":\"%s\",\"backend\":\"%s\",\"capability\":%s,\"bits\":[%s]",
                   json_joint((size_t)(v - table)), v->name, backend_name(v->backend), gpu, kind->json);
            text_print_json_member(stdout, "filters", accepts_name(v->accepts));
            text_print_json_member(stdout, "summary", v->summary);
            printf(",\"built_in\":%s}", variant_is_built(v) ? "true" : "false");
            continue;
        }
        printf("%-*s  %-4s  %-5s  %-8s  %-14s  %s\n", width, v->name, backend_name(v->backend), gpu, kind->text,
               accepts_name(v->accepts), v->summary);
    }
    fputs(options->json ? json_end : "", stdout);
    if (!options->json && !pipeline_has_cuda)
        puts("This gpuconv was built without CUDA: the variants of the backend cuda cannot run.");
    return true;
}

static bool list_codecs(const struct options *options, struct error *error)
{
    (void)error;
    size_t count, format_count;
    const struct codec *table = codecs(&count);
    const struct format *known = formats(&format_count);
    for (const struct codec *codec = table; codec < table + count; codec++) {
        char names[32] = "", summary[96];
        codec_describe(codec, summary, sizeof summary);
        for (const struct format *format = known; format < known + format_count; format++)
            if (codec_reads(codec, format) || codec_writes(codec, format))
                text_add_word(names, sizeof names, format->name, options->json ? "\",\"" : NULL);
        if (!options->json) {
            printf("%-13s  %-18s  reads %2d bits, writes %2d  %s%s\n", codec->name, names, codec->read_bits,
                   codec->write_bits, summary, codec_is_built_in(codec) ? "" : " (not built in)");
            continue;
        }
        printf("%s{\"name\":\"%s\",\"formats\":[\"%s\"],\"read_bits\":%d,\"write_bits\":%d",
               json_joint((size_t)(codec - table)), codec->name, names, codec->read_bits, codec->write_bits);
        text_print_json_member(stdout, "summary", summary);
        printf(",\"built_in\":%s}", codec_is_built_in(codec) ? "true" : "false");
    }
    fputs(options->json ? json_end : "", stdout);
    return true;
}

/* ---- Version ---- */

/* What a report of a bug needs. */
static bool print_version(const struct options *options, struct error *error)
{
    (void)options, (void)error;
    printf("gpuconv " GPUCONV_VERSION "\nsamples: " PIXELS_NAME "\nbuilt %s CUDA\ncodecs:",
           pipeline_has_cuda ? "with" : "without");
    size_t count;
    const struct codec *table = codecs(&count);
    for (const struct codec *codec = table; codec < table + count; codec++)
        if (codec_is_built_in(codec))
            printf(" %s", codec->name);
    printf("\ninstruction sets here:");
    const enum instruction_set *sets = instruction_sets(&count);
    for (size_t i = 0; i < count; i++)
        printf(" %s", instruction_set_name(sets[i]));
    printf("\nGPU code: %s\n", pipeline_gpu_code);
    return true;
}

/* ---- One filter ---- */

static bool show_filters(const struct options *options, struct error *error)
{
    struct filter *filters;
    size_t count;
    if (!find_filters(options, options->filter, filter_find, &filters, &count, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        fputs(options->json ? json_joint(i) : i > 0 ? "\n" : "", stdout);
        (options->json ? filter_print_json : filter_describe)(stdout, &filters[i]);
    }
    fputs(options->json ? json_end : "", stdout);
    free(filters);
    return true;
}

/* ---- GPUs ---- */

/* Print COUNT GPUs; if there are none, WHY is the reason. */
static void print_devices(const struct options *options, const struct device_info *gpus, int count, const char *why)
{
    if (options->json) {
        fputs("{\"devices\":", stdout);
        for (int i = 0; i < count; i++) {
            printf("%s{\"device\":%d", json_joint((size_t)i), i);
            text_print_json_member(stdout, "name", gpus[i].name);
            printf(",\"capability\":%d,\"memory\":%zu}", gpus[i].capability, gpus[i].memory);
        }
        fputs(count == 0 ? "[]" : "]", stdout);
        text_print_json_member(stdout, "error", why);
        fputs("}\n", stdout);
        return;
    }
    if (count == 0) {
        fputs("no CUDA device: ", stdout);
        text_print_escaped(stdout, why);
        putchar('\n');
    }
    for (int i = 0; i < count; i++)
        printf("%3d  %s, compute capability %d.%d, %.1f GiB\n", i, gpus[i].name, gpus[i].capability / 10,
               gpus[i].capability % 10, (double)gpus[i].memory / (1 << 30));
}

static bool list_devices(const struct options *options, struct error *error)
{
    int count;
    if (!pipeline_has_cuda || !pipeline_count_gpus(&count, error)) {
        print_devices(options, NULL, 0, pipeline_has_cuda ? error->message : "this gpuconv was built without CUDA");
        return true;
    }
    struct device_info *gpus = calloc((size_t)count, sizeof *gpus);
    bool done = gpus != NULL || error_no_memory(error, "a list of GPUs");
    for (int i = 0; done && i < count; i++)
        done = pipeline_describe_gpu(i, &gpus[i], error);
    if (done)
        print_devices(options, gpus, count, NULL);
    free(gpus);
    return done;
}

/* ---- All questions ---- */

static bool print_help(const struct options *options, struct error *error)
{
    return help_print(stdout, options->help_of, options->word) ||
           (options->word[0] == '-' ? suggest_option(options->word, error) : list_filters(options, error));
}

int run_query(const struct options *options)
{
    static bool (*const answers[])(const struct options *options, struct error *error) = {
        [MODE_LIST] = list_filters,       [MODE_LIST_VARIANTS] = list_variants,
        [MODE_LIST_CODECS] = list_codecs, [MODE_LIST_BENCH_FILTERS] = list_bench_filters,
        [MODE_SHOW] = show_filters,       [MODE_DEVICES] = list_devices,
        [MODE_HELP] = print_help,         [MODE_VERSION] = print_version,
    };
    struct error error;
    if (options->mode == MODE_NOTHING) {
        help_print(stderr, MODE_RUN, NULL);
        return ERROR_USAGE;
    }
    return answers[options->mode](options, &error) ? 0 : print_error_line(&error);
}
