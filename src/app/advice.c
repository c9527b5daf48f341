/* SPDX-License-Identifier: MIT
 *
 * Warnings about a run that may not do what its user expects. */
#include "app/advice.h"

#include "app/messages.h"
#include "app/option_table.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void warn_filters(const struct options *options, const struct filter *filters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct filter *filter = &filters[i];
        const double times = filter_brightness(filter);
        char text[256];
        if (times == 0)
            continue;
        snprintf(text, sizeof text,
                 ": its taps sum to %.10g, which makes a picture that many times as bright; %s the line \"scale "
                 "%.10g\"%s, or a scale of 1 if you mean that",
                 times, filter->is_matrix ? "put" : "add", times, filter->is_matrix ? " in place of its first" : "");
        print_warning(options, filter->name, text);
    }
}

/* ---- Options without effect ---- */

static void warn_option(const struct options *options, const char *name, const char *reason)
{
    char text[256];
    snprintf(text, sizeof text, "--%s has no effect%s", name, reason);
    print_warning(options, text, "");
}

/* The filter, backend and file options that a question uses, each between two blanks. */
static const char *options_of_question(const struct options *options)
{
    switch ((enum mode)options->mode) {
    case MODE_SHOW:
        return " flip abs ";
    case MODE_BENCH:
        return " backend variant device threads border flip abs ";
    case MODE_COMPARE:
        return options->picture != NULL
                   ? " depth codec max-pixels threads first-picture format quality compression progressive "
                   : " depth codec max-pixels threads first-picture ";
    default:
        return " ";
    }
}

void warn_unused_by_question(const struct options *options)
{
    const char *used = options_of_question(options);
    if (options->mode == MODE_HELP || options->mode == MODE_VERSION || options->mode == MODE_NOTHING)
        return;
    for (size_t i = 0; i < option_count; i++) {
        const struct option *o = &option_table[i];
        char word[64], reason[64];
        snprintf(word, sizeof word, " %s ", o->name);
        if ((options->given >> i & 1) == 0 || o->use != USE_ANY || o->group > GROUP_FILE || strstr(used, word) != NULL)
            continue;
        snprintf(reason, sizeof reason, " with --%s", options_mode_name(options->mode));
        warn_option(options, o->name, reason);
    }
}

static bool has_quality(const struct format *format)
{
    return format->is_lossy;
}

static bool has_compression(const struct format *format)
{
    return !format->is_lossy;
}

static bool needs_background(const struct format *format)
{
    return !format->holds_alpha;
}

/* May an output of the list have a format that TAKES an option? A job without a format writes its input's format. */
static bool may_write(const struct file_list *list, bool (*takes)(const struct format *format))
{
    for (size_t i = 0; i < list->count; i++)
        if (list->jobs[i].problem == NULL && (list->jobs[i].format == NULL || takes(list->jobs[i].format)))
            return true;
    return false;
}

void warn_unused_by_files(const struct options *options, const struct file_list *list)
{
    static const struct {
        const char *name;
        bool (*takes)(const struct format *format);
    } rows[] = {{"quality", has_quality},
                {"subsampling", has_quality},
                {"progressive", has_quality},
                {"background", needs_background},
                {"compression", has_compression}};
    size_t count;
    const struct format *all = formats(&count);
    for (size_t i = 0; list->count > 0 && i < sizeof rows / sizeof *rows; i++) {
        char names[32] = "", reason[64];
        if (!options_given(options, rows[i].name) || may_write(list, rows[i].takes))
            continue;
        for (const struct format *format = all; format < all + count; format++)
            if (rows[i].takes(format))
                text_add_word(names, sizeof names, format->name, " or ");
        snprintf(reason, sizeof reason, ": no output is a %s", names);
        warn_option(options, rows[i].name, reason);
    }
}

void warn_unused_device(const struct options *options)
{
    const struct device_choice *choice = &options->devices;
    int largest = 0;
    if (options->request.choice != CHOICE_AUTO || (!choice->all && choice->count == 0))
        return; /* --backend cuda reports a missing GPU as an error */
    for (size_t i = 0; i < choice->count; i++)
        largest = choice->list[i] > largest ? choice->list[i] : largest;
    /* Do not look for GPU 0: CUDA starts slowly, and the run will find out. */
    if (pipeline_has_cuda && (largest == 0 || largest < pipeline_gpus()))
        return;
    char reason[64] = ": there is no GPU that gpuconv could use";
    if (pipeline_has_cuda)
        snprintf(reason, sizeof reason, ": there is no GPU %d (gpuconv --devices)", largest);
    warn_option(options, "device", reason);
}
