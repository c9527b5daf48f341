/* SPDX-License-Identifier: MIT
 *
 * Warnings about a run that may not do what its user expects. */
#include "app/messages.h"
#include "app/option_table.h"
#include "base/text.h"

#include <stdio.h>

void warn_filters(const struct options *options, const struct filter *filters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct filter *filter = &filters[i];
        const double times = filter_brightness(filter);
        char text[256];
        if (filter_is_zero(filter))
            print_warning(options, filter->name, ": all its taps are 0, so all pixels become the same; check the file");
        if (filter_kind(filter)->repeats_edge && options_given(options, OPTION(recipe.border)) &&
            options->recipe.border != BORDER_REPLICATE)
            print_warning(options, filter->name, ": repeats the edge of the picture with every --border");
        if (times == 0)
            continue;
        snprintf(
            text, sizeof text,
            ": its taps sum to %.10g, so the picture becomes %.10g times as bright; %s the line \"scale %.10g\"%s, "
            "or a scale of 1 to keep that",
            times, times, filter->is_matrix ? "put" : "add", times,
            filter->is_matrix ? " in place of its first line" : "");
        print_warning(options, filter->name, text);
    }
}

/* ---- Options without effect ---- */

static void warn_option(const struct options *options, const struct option *o, const char *reason)
{
    char text[256];
    snprintf(text, sizeof text, "--%s has no effect%s", o->name, reason);
    print_warning(options, text, "");
}

void warn_unused_by_question(const struct options *options)
{
    if (options->mode == MODE_HELP || options->mode == MODE_VERSION || options->mode == MODE_NOTHING ||
        options->mode == MODE_JOBS)
        return;
    for (const struct option *o = option_table; o < option_table + option_count; o++) {
        char reason[64];
        if (!options->given[o - option_table] || o->group > GROUP_FILE || (o->bits & option_modes_of(options)) != 0)
            continue;
        snprintf(reason, sizeof reason, " with --%s", options_mode_name(options->mode));
        warn_option(options, o, reason);
    }
}

/* Does the option O change how files of FORMAT are written? */
static bool takes(const struct format *format, const struct option *o)
{
    const unsigned options = format->options | (format->holds_alpha ? 0 : FORMAT_BACKGROUND);
    return (options & o->encoding) != 0;
}

void warn_unused_by_files(const struct options *options, const struct file_list *list)
{
    size_t count;
    const struct format *all = formats(&count), *last = NULL;
    for (const struct option *o = option_table; list->count > 0 && o < option_table + option_count; o++) {
        char words[32] = "", reason[64];
        bool is_used = !options->given[o - option_table] || o->encoding == 0;
        for (size_t i = 0; i < list->count && !is_used; i++) /* a job without a format writes that of its input */
            is_used = list->jobs[i].problem == NULL && (list->jobs[i].format == NULL || takes(list->jobs[i].format, o));
        for (const struct format *format = all; format < all + count; format++)
            last = takes(format, o) ? format : last;
        for (const struct format *format = all; format < all + count; format++)
            if (takes(format, o))
                text_add_word(words, sizeof words, format->name, format == last ? " or " : NULL);
        snprintf(reason, sizeof reason, ": no output is a %s", words);
        if (!is_used)
            warn_option(options, o, reason);
    }
}

void warn_format(const struct options *options)
{
    const struct format *format = options->list.format;
    const struct format *named = options->pair ? format_find_by_path(options->output) : NULL;
    char text[128];
    if (named == NULL || format == NULL || format == named)
        return;
    snprintf(text, sizeof text, ": is written as %s, and its name is that of a %s; give it a name that ends in .%s",
             format->name, named->name, format->suffixes[0]);
    print_warning(options, options->output, text);
}

void warn_unused_device(const struct options *options)
{
    const struct device_choice *choice = &options->devices;
    int largest = 0;
    if (options->recipe.choice != CHOICE_AUTO || (!choice->all && choice->count == 0))
        return; /* --backend cuda reports a missing GPU as an error */
    for (size_t i = 0; i < choice->count; i++)
        largest = choice->list[i] > largest ? choice->list[i] : largest;
    /* Do not look for GPU 0: CUDA starts slowly, and the run will find out. */
    if (pipeline_has_cuda && (largest == 0 || largest < pipeline_gpus()))
        return;
    char reason[64] = ": there is no GPU that gpuconv can use";
    if (pipeline_has_cuda)
        snprintf(reason, sizeof reason, ": there is no GPU %d (gpuconv --devices)", largest);
    warn_option(options, option_of_field(OPTION(devices)), reason);
}
