/* SPDX-License-Identifier: MIT
 *
 * parse -> run -> exit code. The only file that prints to the user: what was asked for goes to standard output, errors,
 * warnings and --verbose to standard error. */
#include "app/options.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "batch/batch.h"
#include "batch/file_list.h"
#include "batch/report.h"
#include "bench/bench.h"
#include "codec/codec.h"
#include "compare/compare.h"
#include "cpu/instruction_sets.h"
#include "filter/filter.h"
#include "image/image.h"
#include "image/linear.h"
#include "kernels/device/device.h"
#include "metadata/metadata.h"
#include "pipeline/pipeline.h"
#include "plan/border.h"
#include "variants/choose.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* After a failure to write to standard output: where its reader has gone, end as other programs do, by the signal and
 * without a word, unless who started this one ignores the signal. */
static void end_unheard(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    struct sigaction action;
    if (poll(&output, 1, 0) != 1 || (output.revents & POLLERR) == 0 || sigaction(SIGPIPE, NULL, &action) != 0 ||
        action.sa_handler == SIG_IGN)
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

/* "gpuconv: TEXT", and the exit status that the error asks for. */
static int report(const struct error *error)
{
    char text[ERROR_TEXT];
    error_text(error, text, sizeof text);
    fputs("gpuconv: ", stderr);
    text_print_escaped(stderr, text);
    fputc('\n', stderr);
    return (int)error->code;
}

static void warn(const struct options *options, const char *name, const char *text)
{
    if (options->quiet)
        return;
    fputs("gpuconv: warning: ", stderr);
    text_print_escaped(stderr, name);
    fputs(text, stderr);
    fputc('\n', stderr);
}

/* What the options say to the codec; the chroma subsampling is that of the input. */
static struct codec_settings codec_settings(const struct options *options, struct chroma_subsampling chroma)
{
    static const int bits[] = {[DEPTH_INPUT] = 0, [DEPTH_8] = 8, [DEPTH_16] = 16};
    return (struct codec_settings){
        .codec = options->codec,
        .bits = bits[options->depth],
        .quality = options->quality,
        .compression = options->compression,
        .threads = options->threads,
        .chroma_subsampling = chroma,
        .most_pixels = options->max_pixels,
    };
}

/* Say which metadata are not carried, if any. */
static void warn_dropped(const struct options *options, const char *name, uint32_t dropped)
{
    char parts[256], text[sizeof parts + 32];
    if (dropped == 0)
        return;
    metadata_print_dropped(dropped, parts, sizeof parts);
    snprintf(text, sizeof text, ": metadata not carried over: %s", parts);
    warn(options, name, text);
}

/* Read and decode the image at PATH. With METADATA, which are to be released also after a failure, it is turned upright
 * unless the options say otherwise. */
static bool load(const char *path, const struct options *options, struct stages *stages, struct image *image,
                 struct codec_info *info, struct metadata *metadata, struct error *error)
{
    const char *name = file_input_name(path);
    uint8_t *bytes;
    size_t size;
    if (!file_read(path, CODEC_MAX_BYTES, &bytes, &size, error))
        return false;
    stages_end(stages, STAGE_READ);

    const struct codec_settings settings = codec_settings(options, (struct chroma_subsampling){0, 0});
    bool done = codec_decode(bytes, size, name, &settings, image, info, error);
    if (metadata != NULL)
        done = done && info->format->read_metadata(bytes, size, metadata, error) &&
               (options->not_turned || metadata_orient(metadata, image, &info->chroma_subsampling, error));
    free(bytes);
    stages_end(stages, STAGE_DECODE);
    if (!done)
        return false;
    if (metadata != NULL && options->strip)
        metadata_free(metadata);
    if (metadata != NULL)
        warn_dropped(options, name, metadata->dropped);
    return true;
}

/* Encode IMAGE and write it with METADATA to PATH; *SIZE becomes the file's bytes. */
static bool save(const char *path, const struct options *options, const struct format *format,
                 struct chroma_subsampling chroma, const struct image *image, const struct metadata *metadata,
                 struct stages *stages, size_t *size, struct error *error)
{
    const char *name = file_output_name(path);
    if (!format->holds_alpha && image_has_alpha(image))
        warn(options, name, ": JPEG holds no alpha; the alpha channel is dropped");
    if (image->bits > format->most_bits)
        warn(options, name, ": JPEG holds 8 bits a sample; the image's 16 are reduced");
    const struct codec_settings settings = codec_settings(options, chroma);
    uint8_t *bytes;
    uint32_t dropped = 0;
    if (!codec_encode(image, format, &settings, &bytes, size, error))
        return false;
    bool done = format->write_metadata(metadata, &bytes, size, &dropped, error);
    warn_dropped(options, name, dropped);
    stages_end(stages, STAGE_ENCODE);
    if (done && !file_write(path, bytes, *size, error)) {
        done = false;
        if (file_is_standard(path))
            end_unheard();
    }
    free(bytes);
    stages_end(stages, STAGE_WRITE);
    return done;
}

/* Could PATH be written? Said before the work what file_write would say after it. */
static bool check_output(const char *path, struct error *error)
{
    struct stat facts;
    if (file_is_standard(path)) {
        if (isatty(STDOUT_FILENO))
            return error_set(error, ERROR_USAGE,
                             "standard output is a terminal, which cannot show an image; redirect it or name a file");
        return true;
    }
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return error_about(error, ERROR_WORK, path, "is a folder; give the path of a file");
    char *folder = file_folder(path);
    if (folder == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the name of a folder; free some");
    bool done = stat(folder, &facts) == 0;
    if (done && !S_ISDIR(facts.st_mode)) {
        done = false;
        errno = ENOTDIR;
    }
    if (!done)
        error_about(error, ERROR_WORK, path, "cannot be written: %s; its folder must exist", strerror(errno));
    free(folder);
    return done;
}

static bool check_files(const struct options *options, struct error *error)
{
    const struct codec_settings settings = codec_settings(options, (struct chroma_subsampling){0, 0});
    if (options->format != NULL && codec_writer(options->format, settings.bits, &settings, error) == NULL)
        return false;
    if (!check_output(options->output, error))
        return false;
    if (file_same(options->input, options->output))
        return error_set(error, ERROR_USAGE,
                         "%s is the same file as %s; name another OUTPUT, or give --in-place to replace INPUT",
                         options->output, options->input);
    return true;
}

/* The filters of the command line, as its options want them; to be released with free. */
static bool find_filters(const struct options *options, struct filter **filters, size_t *count, struct error *error)
{
    const char *named = options->mode == MODE_BENCH ? options->bench_filter : options->filter;
    if (named == NULL ? !bench_default_filters(filters, count, error) : !filter_find_all(named, filters, count, error))
        return false;
    for (size_t i = 0; i < *count; i++) {
        struct filter *filter = &(*filters)[i];
        if (options->flip)
            filter_flip(filter);
        /* What two grids give is never negative. */
        filter->absolute = filter->absolute || (options->absolute && filter_grids(filter) == 1);
    }
    return true;
}

/* One line of --verbose: a word, and what is to be said about it. */
static void tell(const char *word, const char *format, ...) ERROR_PRINTF(2, 3);

static void tell(const char *word, const char *format, ...)
{
    struct error line; /* only for its room */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line.message, sizeof line.message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%-9s ", word);
    text_print_escaped(stderr, line.message);
    fputc('\n', stderr);
}

static void tell_input(const char *name, const struct codec_info *info, const struct image *image)
{
    tell("input", "%s: %s by %s, %d x %d pixels, %d channel%s%s", name, info->format->name, info->codec->name,
         image->width, image->height, image->channels, image->channels == 1 ? "" : "s",
         info->bits > 8 ? " of 16 bits" : "");
}

static void tell_output(const struct options *options, const struct format *format, int bits, size_t size)
{
    const struct codec_settings settings = codec_settings(options, (struct chroma_subsampling){0, 0});
    tell("output", "%s: %s by %s, %zu bytes", file_output_name(options->output), format->name,
         codec_writer(format, bits, &settings, NULL)->name, size);
}

static void tell_pipeline(const struct pipeline *pipeline)
{
    const struct request *request = pipeline->request;
    tell("backend", "%s: %s", pipeline->backend == BACKEND_CUDA ? "cuda" : "cpu", pipeline->why.message);
#ifdef GPUCONV_CUDA
    if (pipeline->device != NULL) {
        const struct device_info *facts = device_facts(pipeline->device);
        tell("device", "%d: %s, compute capability %d.%d", request->device, facts->name, facts->capability / 10,
             facts->capability % 10);
    }
#endif
    struct error error;
    const char *set;
    if (pipeline->backend == BACKEND_CPU && cpu_instruction_set(&set, &error)) /* if not, the work says why */
        tell("cpu", "instruction set %s", set);
    for (size_t i = 0; i < request->count; i++) {
        const struct filter *filter = &request->filters[i];
        const struct variant *variant = pipeline->plans[i].variant;
        const struct variant *other = variant_runner_up(filter, variant, &pipeline->work);
        char why[128] = "asked for";
        if (request->variant == NULL && other != NULL)
            snprintf(why, sizeof why, "expected to take %.3f ms, %s %.3f ms",
                     1e3 * cost_variant_seconds(variant, filter, &pipeline->work), other->name,
                     1e3 * cost_variant_seconds(other, filter, &pipeline->work));
        tell("variant", "%s for %s: %s; %d x %d taps, %s", variant->name, filter->name, why, filter->width,
             filter->height, filter->separable ? "separable" : "not separable");
    }
}

static void tell_times(const struct stages *stages)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        if (stages->milliseconds[stage] > 0) /* the CPU has no upload */
            tell("time", "%-8s %10.3f ms", stage_name((enum stage)stage), stages->milliseconds[stage]);
    tell("time", "%-8s %10.3f ms", "total", stages_total(stages));
}

/* The GPU that is asked for, where it is one. */
static int device_of(const struct options *options)
{
    return options->devices.count > 0 ? options->devices.list[0] : 0;
}

/* The tables of linear light where they are wanted, to be released with free. */
static bool find_linear(const struct options *options, struct linear **linear, struct error *error)
{
    *linear = options->linear ? linear_make(error) : NULL;
    return *linear != NULL || !options->linear;
}

static struct request make_request(const struct options *options, const struct filter *filters, size_t count,
                                   const struct linear *linear)
{
    return (struct request){
        .filters = filters,
        .count = count,
        .border = (enum border)options->border,
        .alpha = (enum alpha)options->alpha,
        .linear = linear,
        .choice = (enum choice)options->choice,
        .variant = options->variant,
        .device = device_of(options),
        .threads = options->threads,
    };
}

/* Apply the filters to IMAGE. */
static bool convolve(const struct options *options, const struct request *request, struct image *image,
                     struct stages *stages, struct error *error)
{
    struct pipeline pipeline;
    struct image result; /* in place, as the request keeps no page-locked memory */
    bool done = pipeline_open(&pipeline, request, error) && pipeline_plan(&pipeline, image, stages, error);
    if (!done)
        goto out;
    if (options->verbose)
        tell_pipeline(&pipeline);
    done = pipeline_run(&pipeline, image, &result, error);
    if (pipeline.fallback.code != ERROR_NONE)
        warn(options, pipeline.fallback.message, "; the CPU takes over");
out:
    pipeline_close(&pipeline);
    return done;
}

static int run(const struct options *options)
{
    struct stages stages;
    struct error error;
    struct filter *filters = NULL;
    struct linear *linear = NULL;
    struct image image = {0};
    struct metadata metadata = {0};
    struct codec_info info;
    size_t count, size;
    stages_begin(&stages);

    bool done = find_filters(options, &filters, &count, &error) && find_linear(options, &linear, &error);
    if (!done)
        goto out;
    const struct request request = make_request(options, filters, count, linear);
    done = check_files(options, &error) && pipeline_check(&request, &error);
    stages_end(&stages, STAGE_PLAN);
    done = done && load(options->input, options, &stages, &image, &info, &metadata, &error);
    if (!done)
        goto out;
    if (options->verbose)
        tell_input(file_input_name(options->input), &info, &image);

    const struct format *format = options->format != NULL ? options->format : info.format;
    const struct codec_settings settings = codec_settings(options, info.chroma_subsampling);
    done = codec_writer(format, image.bits, &settings, &error) != NULL &&
           convolve(options, &request, &image, &stages, &error) &&
           save(options->output, options, format, info.chroma_subsampling, &image, &metadata, &stages, &size, &error);
    if (done && options->verbose) {
        tell_output(options, format, image.bits, size);
        tell_times(&stages);
    }
out:
    image_free(&image);
    free(linear);
    metadata_free(&metadata);
    free(filters);
    return done ? 0 : report(&error);
}

/* ---- Many images ---- */

/* What a batch is told to. */
struct batch_output {
    const struct options *options;
    bool progress; /* draw it */
    bool drawn;    /* it stands on the line of the cursor */
    int report;    /* a descriptor; -1: there is none */
    bool report_failed;
};

static void clear_progress(struct batch_output *output)
{
    if (output->drawn)
        fputs("\r\033[K", stderr);
    output->drawn = false;
}

static void draw_progress(void *context, const struct batch_totals *totals)
{
    struct batch_output *output = context;
    struct winsize window;
    char line[256], all[sizeof line + 8];
    /* One column is left free: some terminals wrap when the last is written. */
    size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
    batch_print_progress(totals, line, columns < sizeof line ? columns : sizeof line);
    snprintf(all, sizeof all, "\r\033[K%s", line);
    fputs(all, stderr);
    output->drawn = true;
}

static void record(void *context, const struct result *result)
{
    struct batch_output *output = context;
    struct error error;
    if (output->report < 0 || output->report_failed ||
        batch_report(output->report, output->options->report, result, &error))
        return;
    output->report_failed = true; /* once is enough */
    clear_progress(output);
    report(&error);
}

static void hear_result(void *context, const struct result *result)
{
    struct batch_output *output = context;
    const struct options *options = output->options;
    const struct job *job = result->job;
    if (result->outcome == OUTCOME_FAILED || options->verbose || result->reduced || result->alpha_dropped ||
        result->not_read > 0 || result->not_written > 0)
        clear_progress(output);
    warn_dropped(options, job->input, result->not_read);
    if (result->outcome == OUTCOME_FAILED) {
        report(&result->error);
        return;
    }
    if (result->reduced)
        warn(options, job->output, ": JPEG holds 8 bits a sample; the image's 16 are reduced");
    if (result->alpha_dropped)
        warn(options, job->output, ": JPEG holds no alpha; the alpha channel is dropped");
    warn_dropped(options, job->output, result->not_written);
    if (options->verbose && result->outcome == OUTCOME_SKIPPED)
        tell("skipped", "%s: %s is there", job->input, job->output);
    else if (options->verbose)
        tell("done", "%s: %d x %d pixels, %d channel%s%s, %s %s, %.1f ms: %s, %zu bytes", job->input, result->width,
             result->height, result->channels, result->channels == 1 ? "" : "s", result->bits > 8 ? " of 16 bits" : "",
             result->backend == BACKEND_CUDA ? "cuda" : "cpu", result->variants, stages_total(&result->stages),
             job->output, result->output_bytes);
}

static void hear_fallback(void *context, const char *text)
{
    struct batch_output *output = context;
    clear_progress(output);
    warn(output->options, text, "; the CPU takes over");
}

static void hear_left_out(const void *context, const char *name, const char *text)
{
    warn(context, name, text);
}

/* The GPUs to deal workers out to. Which there are is asked only where that was: CUDA takes its time to answer. */
static bool find_devices(const struct options *options, struct request *request, int *devices, size_t *count,
                         struct error *error)
{
    const struct device_choice *choice = &options->devices;
    *count = 0;
    if (request->choice == CHOICE_CPU || !pipeline_has_cuda)
        return pipeline_check(request, error);
    if (choice->all) {
        const int found = pipeline_gpus();
        for (int i = 0; i < found && i < DEVICES_MOST; i++)
            devices[(*count)++] = i;
        if (found == 0)
            return pipeline_check(request, error);
    } else if (choice->count > 0) {
        memcpy(devices, choice->list, choice->count * sizeof *devices);
        *count = choice->count;
    } else {
        devices[(*count)++] = 0;
    }
    bool done = true;
    for (size_t i = 0; done && i < *count; i++) {
        request->device = devices[i];
        done = pipeline_check(request, error);
    }
    return done;
}

static bool report_unwritten(const struct options *options, struct error *error)
{
    return error_about(error, ERROR_WORK, options->report, "the report cannot be written: %s; choose another file",
                       strerror(errno));
}

/* A full disk may have cut the last line of a report that is gone on with: the next is to stand on its own. */
static bool end_line(const char *path, int descriptor)
{
    struct stat facts;
    char last = '\n';
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0)
        return true;
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader >= 0) {
        if (pread(reader, &last, 1, facts.st_size - 1) != 1)
            last = '\n'; /* nothing to be known of it */
        close(reader);
    }
    return last == '\n' || write(descriptor, "\n", 1) == 1;
}

static bool open_report(const struct options *options, int *descriptor, struct error *error)
{
    *descriptor = -1;
    if (options->report == NULL)
        return true;
    if (strcmp(options->report, "-") == 0) {
        *descriptor = STDOUT_FILENO;
        return true;
    }
    *descriptor = open(options->report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (*descriptor < 0 || !end_line(options->report, *descriptor))
        return report_unwritten(options, error);
    return true;
}

/* Say how it went. */
static int report_totals(const struct options *options, const struct batch_totals *totals, bool complete)
{
    struct error error;
    if (options->verbose && totals->count > 0)
        tell("backend", "%s; %d image%s at a time", totals->why.message, totals->workers,
             totals->workers == 1 ? "" : "s");
    if (!options->quiet && (totals->count > 1 || options->verbose)) {
        char line[256];
        batch_print_summary(totals, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    if (totals->failed > 0 && totals->count > 1) { /* of one file the error says it */
        error_set(&error, ERROR_WORK, "%zu of %zu files failed", totals->failed, totals->count);
        return report(&error);
    }
    return totals->failed > 0 || !complete ? ERROR_WORK : 0;
}

/* Do the jobs; returns the exit status. */
static int run_jobs(const struct options *options, const struct batch_request *request)
{
    struct error error;
    struct batch_output output = {
        .options = options,
        .progress = !options->quiet && isatty(STDERR_FILENO),
    };
    const struct batch_listener listener = {
        .context = &output,
        .record = record,
        .ended = hear_result,
        .warn = hear_fallback,
        .progress = output.progress ? draw_progress : NULL,
    };
    struct batch_totals totals;
    if (!open_report(options, &output.report, &error))
        return report(&error);
    const bool done = batch_run(request, &listener, &totals, &error);
    if (totals.signal != 0) { /* workers go on, so nothing may be released, and nobody waited for */
        if (output.progress && write(STDERR_FILENO, "\r\033[K", 4) < 0)
            _exit(ERROR_WORK);
        _exit(128 + totals.signal); /* as a shell reports a program that a signal has ended */
    }
    clear_progress(&output);
    if (output.report > STDERR_FILENO && close(output.report) != 0 && !output.report_failed) {
        output.report_failed = true;
        report_unwritten(options, &error);
        report(&error);
    }
    return done ? report_totals(options, &totals, !output.report_failed) : report(&error);
}

/* Can the codec that was named write all that is to be written? */
static bool check_codec(const struct codec_settings *settings, const struct job_list *list, struct error *error)
{
    size_t count;
    const struct format *table = formats(&count);
    for (const struct format *format = table; format < table + count; format++) {
        bool needed = false;
        for (size_t i = 0; i < list->count && !needed; i++)
            needed = list->jobs[i].format == format;
        if (needed && codec_writer(format, settings->bits, settings, error) == NULL)
            return false;
    }
    return true;
}

/* Drop what other processes do. Of all the files, also those that are there already: else two processes, one of which
 * has begun earlier, would share the files out in different ways. */
static bool take_shard(const struct options *options, struct job_list *list, struct error *error)
{
    if (options->shard.count <= 1 || list->count == 0)
        return true;
    uint64_t *sizes = calloc(list->count, sizeof *sizes);
    bool *mine = calloc(list->count, sizeof *mine);
    bool done = sizes != NULL && mine != NULL;
    if (!done)
        error_set(error, ERROR_WORK, "not enough memory for a list of %zu files; free some", list->count);
    for (size_t i = 0; done && i < list->count; i++)
        sizes[i] = list->jobs[i].bytes;
    done = done && shard_select(&options->shard, sizes, list->count, mine, error);
    if (done)
        jobs_keep(list, mine);
    free(mine);
    free(sizes);
    return done;
}

static int run_batch(const struct options *options)
{
    struct error error;
    struct filter *filters = NULL;
    struct linear *linear = NULL;
    struct job_list list = {0};
    size_t count;
    int devices[DEVICES_MOST];
    const struct job_request names = {
        .inputs = options->inputs,
        .input_count = options->input_count,
        .files_from = options->files_from,
        .null_separated = options->null_separated,
        .recursive = options->recursive,
        .in_place = options->in_place,
        .output = options->folder,
        .suffix = options->suffix,
        .format = options->format,
        .warn = hear_left_out,
        .context = options,
    };
    int status;
    if (!find_filters(options, &filters, &count, &error))
        return report(&error);
    if (!find_linear(options, &linear, &error)) {
        free(filters);
        return report(&error);
    }
    struct request request = make_request(options, filters, count, linear);
    struct batch_request batch = {
        .request = &request,
        .workers = options->jobs,
        .devices = devices,
        .memory = options->memory > 0 ? options->memory : batch_default_memory(),
        .codec = codec_settings(options, (struct chroma_subsampling){0, 0}),
        .strip = options->strip,
        .not_turned = options->not_turned,
        .skip_existing = options->skip_existing,
        .fail_fast = options->fail_fast,
    };
    const bool done = find_devices(options, &request, devices, &batch.device_count, &error) &&
                      jobs_make(&names, &list, &error) && check_codec(&batch.codec, &list, &error) &&
                      take_shard(options, &list, &error) &&
                      (options->in_place || file_make_folders(options->folder, &error));
    batch.jobs = list.jobs;
    batch.count = list.count;
    status = done ? run_jobs(options, &batch) : report(&error);
    jobs_free(&list);
    free(linear);
    free(filters);
    return status;
}

/* Write the picture of a difference. */
static bool save_picture(const struct options *options, const struct image *expected, const struct image *actual,
                         struct error *error)
{
    struct stages stages = {0};
    struct image picture;
    const struct metadata none = {0};
    size_t size;
    if (!difference_picture(expected, actual, &picture, error))
        return false;
    const struct format *format = options->format != NULL ? options->format : format_find_by_path(options->picture);
    const bool done = save(options->picture, options, format, (struct chroma_subsampling){0, 0}, &picture, &none,
                           &stages, &size, error);
    image_free(&picture);
    return done;
}

/* The picture of a difference must not overwrite one of the images that it is about. */
static bool check_picture(const struct options *options, struct error *error)
{
    if (options->picture == NULL)
        return true;
    if (!check_output(options->picture, error))
        return false;
    if (file_same(options->picture, options->expected) || file_same(options->picture, options->actual))
        return error_set(error, ERROR_USAGE,
                         "%s is one of the images to compare; name another file for the difference picture",
                         options->picture);
    return true;
}

static void print_shapes(const struct image *expected, const struct image *actual)
{
    if (expected->width == actual->width && expected->height == actual->height &&
        expected->channels == actual->channels) {
        printf("depths differ: expected %d bits a sample, actual %d; give --depth 8 to compare them reduced\n",
               expected->bits, actual->bits);
        return;
    }
    printf("shapes differ: expected %d x %d with %d channel%s, actual %d x %d with %d channel%s\n", expected->width,
           expected->height, expected->channels, expected->channels == 1 ? "" : "s", actual->width, actual->height,
           actual->channels, actual->channels == 1 ? "" : "s");
}

static void print_difference(const struct image *image, const struct difference *difference)
{
    printf("%llu of %llu pixels differ, first at x %d y %d channel %d, largest difference %d, PSNR %.2f dB\n",
           (unsigned long long)difference->pixels, (unsigned long long)image->width * (unsigned long long)image->height,
           difference->first_x, difference->first_y, difference->first_channel, difference->largest, difference->psnr);
}

/* Exit status 0 where the images are equal, 1 where they are not or cannot be compared. */
static int compare(const struct options *options)
{
    struct stages stages = {0};
    struct error error;
    struct image expected = {0}, actual = {0};
    struct difference difference;
    struct codec_info info;
    int status = 1;
    if (!check_picture(options, &error) || !load(options->expected, options, &stages, &expected, &info, NULL, &error) ||
        !load(options->actual, options, &stages, &actual, &info, NULL, &error)) {
        status = report(&error);
        goto out;
    }
    compare_images(&expected, &actual, &difference);
    if (!difference.same_shape) {
        print_shapes(&expected, &actual);
    } else if (difference.pixels == 0) {
        puts("equal");
        status = 0;
    } else {
        print_difference(&expected, &difference);
        if (options->picture != NULL && !save_picture(options, &expected, &actual, &error))
            status = report(&error);
    }
out:
    image_free(&expected);
    image_free(&actual);
    return status;
}

/* One line of --list. A filter on the search path that cannot be read is warned of and left out. */
static void list_filter(const struct options *options, const char *name, int name_width, struct filter *filter)
{
    struct error error;
    if (!filter_find(name, filter, &error)) {
        char text[ERROR_TEXT];
        error_text(&error, text, sizeof text);
        warn(options, text, "");
        return;
    }
    char size[32];
    snprintf(size, sizeof size, "%dx%d", filter->width, filter->height);
    text_print_escaped(stdout, name);
    printf("%*s  %-7s  ", name_width - (int)strlen(name), "", size);
    text_print_escaped(stdout, filter->title);
    putchar('\n');
}

static int list(const struct options *options)
{
    struct error error;
    char **names;
    size_t count;
    if (!filter_names(&names, &count, &error))
        return report(&error);
    struct filter *filter = malloc(sizeof *filter);
    if (filter == NULL) {
        free(names);
        error_set(&error, ERROR_WORK, "not enough memory for a filter; free some");
        return report(&error);
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
            if (codec_reads(codec, format))
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] != '\0' ? ", " : "",
                         format->name);
        printf("%-13s  %-9s  reads %2d bits, writes %2d  %s%s\n", codec->name, names, codec->read_bits,
               codec->write_bits, codec->summary, codec->decode != NULL ? "" : " (not built in)");
    }
    return 0;
}

/* Print TEXT, whose lines may hold a file's name or title and all have an end. It is cut into them. */
static void print_lines(char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL && text != NULL;) {
        text_print_escaped(stdout, line);
        putchar('\n');
    }
}

static int show(const struct options *options)
{
    struct error error;
    struct filter *filters;
    size_t count;
    if (!find_filters(options, &filters, &count, &error))
        return report(&error);
    int status = 0;
    for (size_t i = 0; status == 0 && i < count; i++) {
        char *text = filter_describe(&filters[i]);
        if (text == NULL) {
            error_set(&error, ERROR_WORK, "not enough memory to describe %s; free some", filters[i].name);
            status = report(&error);
            continue;
        }
        if (i > 0)
            putchar('\n');
        print_lines(text);
        free(text);
    }
    free(filters);
    return status;
}

#ifdef GPUCONV_CUDA
static int devices(void)
{
    struct error error;
    int count;
    if (!device_count(&count, &error)) {
        fputs("no CUDA device: ", stdout);
        text_print_escaped(stdout, error.message);
        putchar('\n');
        return 0;
    }
    for (int i = 0; i < count; i++) {
        struct device_info info;
        if (!device_describe(i, &info, &error))
            return report(&error);
        printf("%3d  %s, compute capability %d.%d, %.1f GiB\n", i, info.name, info.capability / 10,
               info.capability % 10, (double)info.memory / (1 << 30));
    }
    return 0;
}
#else
static int devices(void)
{
    puts("no CUDA device: this gpuconv was built without CUDA");
    return 0;
}
#endif

/* What the benchmark's rows go through. */
struct bench_output {
    struct bench_writer writer;
    bool progress; /* say on standard error what is running */
};

static void show_progress(void *context, const char *what)
{
    (void)context;
    fputs("\r\033[K", stderr); /* over what was said last */
    text_print_escaped(stderr, what);
    fflush(stderr);
}

static void hear_row(void *context, const struct bench_row *row)
{
    struct bench_output *output = context;
    if (output->progress)
        show_progress(NULL, "");
    bench_write_row(&output->writer, row);
    if (ferror(stdout) != 0)
        end_unheard(); /* before the next row takes its time */
}

/* Measure, the benchmark being open, and write. */
static bool run_bench(const struct options *options, struct bench *bench, size_t *wrong, struct error *error)
{
    struct bench_output output = {.progress = !options->quiet && isatty(STDERR_FILENO)};
    const struct bench_listener listener = {&output, hear_row, output.progress ? show_progress : NULL};
    const enum bench_format format = options->json ? BENCH_JSON : options->csv ? BENCH_CSV : BENCH_TABLE;
    if (!bench_write_begin(&output.writer, stdout, format, bench, error))
        return false;
    const bool done = bench_run(bench, &listener, wrong, error);
    if (output.progress)
        show_progress(NULL, "");
    bench_write_end(&output.writer);
    return done;
}

static int benchmark(const struct options *options)
{
    struct bench bench = {0};
    struct error error;
    struct filter *filters = NULL;
    size_t count, wrong = 0;
    if (!find_filters(options, &filters, &count, &error))
        return report(&error);
    const struct bench_request request = {
        .sizes = options->bench_sizes,
        .size_count = options->bench_size_count,
        .filters = filters,
        .filter_count = count,
        .default_filters = options->bench_filter == NULL,
        .samples = {[SAMPLE_U8] = options->bench_sample < 0 || options->bench_sample == SAMPLE_U8,
                    [SAMPLE_U16] = options->bench_sample == SAMPLE_U16,
                    [SAMPLE_F32] = options->bench_sample < 0 || options->bench_sample == SAMPLE_F32},
        .border = (enum border)options->border,
        .variant = options->variant,
        .cpu = options->choice != CHOICE_CUDA,
        .cuda = options->choice != CHOICE_CPU,
        .device = device_of(options),
        .threads = options->threads,
    };
    bool done = bench_open(&bench, &request, &error) && run_bench(options, &bench, &wrong, &error);
    if (done && wrong > 0)
        done = error_set(&error, ERROR_WORK,
                         "%zu of the benchmark's rows differ from the reference; they are marked as wrong", wrong);
    bench_close(&bench);
    free(filters);
    return done ? 0 : report(&error);
}

static int help(const struct options *options)
{
    char *text = cli_help(options->of_bench);
    if (text == NULL) {
        struct error error;
        error_set(&error, ERROR_WORK, "not enough memory for the help; free some");
        return report(&error);
    }
    fputs(text, stdout);
    free(text);
    return 0;
}

static int version(void)
{
    printf("gpuconv " GPUCONV_VERSION "\nbuilt %s CUDA\n", pipeline_has_cuda ? "with" : "without");
    return 0;
}

static int dispatch(const struct options *options)
{
    switch ((enum mode)options->mode) {
    case MODE_RUN:
        return options->batch ? run_batch(options) : run(options);
    case MODE_COMPARE:
        return compare(options);
    case MODE_LIST:
        return list(options);
    case MODE_LIST_VARIANTS:
        return list_variants();
    case MODE_LIST_CODECS:
        return list_codecs();
    case MODE_SHOW:
        return show(options);
    case MODE_DEVICES:
        return devices();
    case MODE_BENCH:
        return benchmark(options);
    case MODE_HELP:
        return help(options);
    case MODE_VERSION:
        return version();
    case MODE_NOTHING:
        fputs(cli_usage(), stderr);
        return ERROR_USAGE;
    }
    return ERROR_USAGE;
}

/* Occupy the standard descriptors that are closed, or a file that is opened later becomes one of them. Each is opened
 * the wrong way round, so that its use still fails. */
static void occupy_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(ERROR_WORK); /* and there may be nowhere to say so */
}

/* What was printed must have arrived: a full disk shows at the latest here. */
static int finish(int status)
{
    const bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    end_unheard();
    struct error error;
    error_set(&error, ERROR_WORK, "standard output: cannot be written: %s; redirect it to where there is room",
              strerror(errno));
    return report(&error);
}

static void pass_over(int number)
{
    (void)number;
}

int main(int argc, char *argv[])
{
    occupy_descriptors();
    /* Writing into a closed pipe, or beyond the largest allowed file, is to fail, not to kill: a warning that nobody
     * reads must not keep an image from being written. Whether the first was ignored before, end_unheard asks. */
    if (signal(SIGPIPE, pass_over) == SIG_IGN)
        signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    struct options options;
    struct error error;
    const bool parsed = cli_parse(argc, argv, &options, &error);
    if (parsed && (options.mode == MODE_RUN || options.mode == MODE_COMPARE || options.mode == MODE_BENCH) &&
        !options.batch) /* which shares them out */
        options.threads = parallel_allowed(options.threads);
    const int status = parsed ? finish(dispatch(&options)) : report(&error);
    cli_free(&options);
    return status;
}
