/* SPDX-License-Identifier: MIT
 *
 * Filter images. FILTER INPUT OUTPUT is a list of one job, which is done like a list of many jobs. */
#include "app/messages.h"
#include "app/modes.h"
#include "app/progress.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/text.h"
#include "batch/batch.h"
#include "batch/collisions.h"
#include "batch/digest_list.h"
#include "batch/file_list.h"
#include "batch/members.h"
#include "batch/report.h"
#include "codec/mask.h"
#include "variants/choose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The result of --digest or --check for a file. */
struct digest_line {
    bool is_known, is_right;
    char digest[SHA256_DIGEST_STRING_LENGTH]; /* empty if the file could not be read */
};

/* Where the callbacks print. */
struct output {
    const struct options *options;
    const struct batch_request *batch;
    struct progress progress;
    struct report report;
    struct warnings *warnings;
    int status;                  /* the exit status of the last failed job */
    int report_status;           /* the exit status if lines of the report could not be written, else 0 */
    struct members *members;     /* the archives of --tar */
    struct digest_line *digests; /* the results of --digest and --check, one for each job */
    size_t digests_printed;      /* lines of `digests` that are printed: lines are in the order of the files */
};

/* ---- --verbose for one image ---- */

static void print_input(const struct output *output, const struct job_result *result)
{
    char shrunk[32] = "", page[64] = "";
    if (result->pages > 1)
        snprintf(page, sizeof page, ", page %d of %d%s", result->page, result->pages,
                 result->page > 1 && !result->job->all_pages && !options_given(output->options, OPTION(job.codec.page))
                     ? ", the main one"
                     : "");
    if (result->shrink > 0)
        snprintf(shrunk, sizeof shrunk, ", decoded at 1/%d", 1 << result->shrink);
    print_detail("input", "%s: %s by %s, %d x %d pixels, %d channel%s%s%s%s", file_input_name(result->job->input),
                 result->input_format->name, result->decoder->name, result->width, result->height, result->channels,
                 text_plural(result->channels), result->input_bits > 8 ? " of 16 bits" : "", shrunk, page);
    if (result->converted_by[0] != '\0')
        print_detail("colours", "by %s and the profile of tables; other versions may differ by a level",
                     result->converted_by);
    if (output->batch->recipe->linear)
        print_detail("linear", "by the curve of %s", metadata_curve_name(result->curve));
}

/* Print the variant of filter NUMBER, and the reason. */
static void print_variant(const struct pipeline_run *run, size_t number)
{
    const struct plan *plan = &run->planned->plans[number];
    const struct filter *filter = plan->filter;
    const struct variant *variant = plan->variant;
    const struct variant *other = variant_runner_up(filter, variant, &run->work);
    char why[128];
    snprintf(why, sizeof why, "%s", run->recipe->variant != NULL ? "asked for" : "the only one");
    if (run->recipe->variant == NULL && other != NULL)
        snprintf(why, sizeof why, "expected to take %.3f ms, %s %.3f ms",
                 1e3 * cost_variant_seconds(variant, filter, &run->work), other->name,
                 1e3 * cost_variant_seconds(other, filter, &run->work));
    print_detail("variant", "%s for %s: %s; %d x %d %s", variant->name, filter->name, why,
                 plan->rows.count > 0 ? plan->rows.count : filter->width,
                 plan->columns.count > 0 ? plan->columns.count : filter->height, filter_window_name(filter));
}

static void print_plan(const struct pipeline_run *run)
{
    char hardware[300];
    print_detail("backend", "%s: %s", backend_name(run->backend), run->pipeline->why.message);
    if (pipeline_describe_hardware(run->backend, run->pipeline->resources->device, hardware, sizeof hardware))
        print_detail(run->backend == BACKEND_CUDA ? "device" : "cpu", "%s", hardware);
    for (size_t i = 0; i < run->recipe->chain->count; i++)
        print_variant(run, i);
}

static void print_output(const struct job_result *result)
{
    char size[64] = "";
    if (result->output_width != result->width || result->output_height != result->height)
        snprintf(size, sizeof size, "%d x %d pixels, ", result->output_width, result->output_height);
    print_detail("output", "%s: %s by %s, %s%zu bytes", file_output_name(result->job->output),
                 result->output_format->name, result->encoder->name, size, result->output_bytes);
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (result->phases.milliseconds[phase] > 0) /* the CPU has no upload */
            print_detail("time", "%-8s %10.3f ms", phase_name((enum phase)phase), result->phases.milliseconds[phase]);
    print_detail("time", "%-8s %10.3f ms", "total", phases_total(&result->phases));
}

/* ---- Results ---- */

static void print_job_result(const struct options *options, const struct job_result *result)
{
    const struct job *job = result->job;
    if (result->outcome == JOB_SKIPPED && options->list.in_place)
        print_detail("skipped", "%s: an earlier run wrote it, says %s", job->input, options->report);
    else if (result->outcome == JOB_SKIPPED && options->tar)
        print_detail("unchanged", "%s: is %s", job->input, job->is_link ? "a link" : "not an image");
    else if (result->outcome == JOB_SKIPPED)
        print_detail("skipped", "%s: %s exists", file_input_name(job->input), job->output);
    else if (options->pair)
        print_output(result);
    else
        print_detail("done", "%s: %d x %d pixels, %d channel%s%s, %s %s, %.1f ms: %s, %zu bytes", job->input,
                     result->width, result->height, result->channels, text_plural(result->channels),
                     result->bits > 8 ? " of 16 bits" : "", backend_name(result->backend), result->variants,
                     phases_total(&result->phases), job->output, result->output_bytes);
}

/* Does the name of the input say another format than its bytes? PGM, PPM and PNM are often mixed up, and read alike. */
static bool is_misnamed(const struct job_result *result)
{
    const struct format *named = format_find_by_path(result->job->input), *format = result->input_format;
    return named != NULL && format != NULL && named->check != format->check;
}

static void print_job_end(struct output *output, const struct job_result *result)
{
    const struct options *options = output->options;
    const struct job *job = result->job;
    struct error missing;
    if (result->outcome == JOB_FAILED && options->pair &&
        !check_first_gpu(output->batch->recipe, output->batch, &missing)) {
        output->status = print_error_line(&missing);
        return;
    }
    if (result->outcome == JOB_FAILED || options->verbose || result->reduced || result->alpha_dropped ||
        result->cmyk_converted || result->linked || result->other_content != 0 || result->dropped_on_read != 0 ||
        result->dropped_on_write != 0 || result->unread_curves != 0 || result->not_enlarged || result->region_cut ||
        is_misnamed(result))
        progress_clear(&output->progress);
    warn_dropped_metadata(output->warnings, file_input_name(job->input), result->dropped_on_read);
    if (result->outcome == JOB_FAILED) {
        if (result->unwritten && file_is_standard(job->output))
            end_if_unread();
        output->status = print_error_line(&result->error);
        return;
    }
    if (result->outcome == JOB_DONE) {
        if (is_misnamed(result)) {
            char name[32];
            snprintf(name, sizeof name, "%s %s", format_article(result->input_format), result->input_format->name);
            warn_counted(output->warnings, file_input_name(job->input),
                         ": is %s, but its name has the suffix of another format", name);
        }
        warn_other_content(output->warnings, file_input_name(job->input), result->other_content);
        if (result->cmyk_converted)
            warn_counted(output->warnings, file_input_name(job->input), ": is CMYK; the output will be RGB", "");
        warn_unread_curves(output->warnings, file_input_name(job->input), result->unread_curves, result->curve);
        warn_losses(output->warnings, file_output_name(job->output), result->output_format, result->alpha_dropped,
                    result->reduced);
        if (result->region_cut)
            warn_counted(output->warnings, file_input_name(job->input),
                         ": a region reaches beyond the picture; only the part inside is filtered", "");
        if (result->not_enlarged)
            warn_counted(
                output->warnings, file_input_name(job->input),
                ": is smaller than asked for, and keeps its size; the word enlarge, as in resize:1920x:enlarge, "
                "makes it larger",
                "");
        warn_dropped_metadata(output->warnings, file_output_name(job->output), result->dropped_on_write);
        if (result->linked)
            warn_counted(output->warnings, job->output, ": has other hard links, which keep the old picture", "");
    }
    if (options->verbose)
        print_job_result(options, result);
}

/* Print a line as sha256sum does, with and without its --check. */
static void print_digest_line(const struct output *output, size_t index)
{
    const struct digest_line *line = &output->digests[index];
    const bool checks = output->options->check != NULL;
    if (checks ? line->is_right && output->options->quiet : line->digest[0] == '\0')
        return;
    if (!digest_print_line(stdout, checks ? "" : line->digest, output->batch->jobs[index].input))
        fputs("(not enough memory for a name)", stdout);
    puts(!checks ? "" : line->is_right ? ": OK" : line->digest[0] != '\0' ? ": FAILED" : ": FAILED open or read");
}

/* Record a digest. Print the lines up to the first file that is not done yet, unless the report goes to standard
 * output. A wrong digest is a line of output. A file without a digest is an error message. */
static void print_digest(struct output *output, const struct job_result *result)
{
    const struct batch_request *batch = output->batch;
    const char *report = output->options->report;
    struct digest_line *line = &output->digests[result->job - batch->jobs];
    progress_clear(&output->progress);
    if (result->outcome == JOB_FAILED && result->digest[0] == '\0')
        print_error_line(&result->error);
    warn_other_content(output->warnings, file_input_name(result->job->input), result->other_content);
    line->is_known = true;
    line->is_right = result->outcome == JOB_DONE;
    memcpy(line->digest, result->digest, sizeof line->digest);
    for (; output->digests_printed < batch->count && output->digests[output->digests_printed].is_known;
         output->digests_printed++)
        if (report == NULL || !file_is_standard(report))
            print_digest_line(output, output->digests_printed);
}

static void append_result(struct output *output, const struct job_result *result)
{
    struct error error;
    if (report_append(&output->report, result, &error))
        return;
    progress_clear(&output->progress);
    output->report_status = print_error_line(&error);
}

static void handle_image_event(void *context, const struct job_result *result, enum job_event event)
{
    struct output *output = context;
    const struct options *options = output->options;
    const bool prints_details = options->verbose && options->pair;
    if (options->tar && event != JOB_GPU_FAILED && members_are_broken(output->members))
        return;
    if (event == JOB_GPU_FAILED || (prints_details && (event == JOB_INPUT_KNOWN || event == JOB_PLANNED)))
        progress_clear(&output->progress);
    if (event == JOB_INPUT_KNOWN && prints_details)
        print_input(output, result);
    else if (event == JOB_PLANNED && prints_details)
        print_plan(result->run);
    else if (event == JOB_GPU_FAILED)
        print_warning(options, result->run->pipeline->fallback.message, "; the CPU continues");
    else if (options->report != NULL &&
             (event == JOB_WRITTEN || (event == JOB_INTERRUPTED && is_writable(output->report.descriptor))))
        append_result(output, result);
    else if (event == JOB_ENDED && options->mode == MODE_DIGEST)
        print_digest(output, result);
    else if (event == JOB_ENDED)
        print_job_end(output, result);
}

static void draw_image_progress(void *context, const struct batch_totals *totals)
{
    struct output *output = context;
    progress_draw(&output->progress, totals);
}

/* ---- The run ---- */

/* Is this a single image without a report? */
static bool is_single_image(const struct options *options)
{
    return options->pair && options->report == NULL;
}

/* How to go on after a signal, or after a folder was full. */
static const char *describe_continuation(const struct options *options, const struct report *report,
                                         const struct batch_totals *totals)
{
    if (options->mode == MODE_DIGEST)
        return "; run the same line again";
    if (options->tar)
        return "; the output is not complete: run the same line again";
    if (options->list.in_place && totals->done > 0 && (report->inode == 0 || file_is_standard(report->path)))
        return "; the same line would filter these files again: give only the other files, and --report FILE next time";
    return options->list.in_place || options->job.skip_existing ? "; run the same line again to continue"
                                                                : "; give --skip-existing to continue";
}

/* Print the summary and the last error. Returns the exit status. */
static int print_totals(const struct output *output, const struct batch_totals *totals, struct error *error)
{
    const struct options *options = output->options;
    print_warning_counts(output->warnings);
    const int status = totals->may_retry > 0 ? STATUS_RETRY : totals->failed > 0 ? STATUS_FAILED : 0;
    if (options->pair) /* the error or the details are printed already */
        return error_join_status(totals->failed > 0 ? output->status : 0, output->report_status);
    if (options->verbose)
        print_choice(totals);
    const bool sharded = options->shard.count > 1;
    if (!options->quiet && sharded)
        fprintf(stderr, "shard %d/%d on %s, listing %016" PRIx64 " of %zu file%s: ", options->shard.index + 1,
                options->shard.count, output->report.host, output->report.run.listing, output->report.run.files,
                output->report.run.files == 1 ? "" : "s");
    if (!options->quiet &&
        (((totals->count > 1 || totals->skipped > 0) && options->mode != MODE_DIGEST) || options->verbose || sharded))
        print_summary(totals, "file",
                      options->tar             ? "links or other files: unchanged"
                      : options->list.in_place ? "earlier runs wrote them"
                                               : "their outputs exist");
    const size_t ended = totals->done + totals->skipped + totals->failed;
    if (totals->no_new_files && ended < totals->count) {
        error_set(error, ERROR_WORK,
                  "%zu of %zu files failed and %zu did not begin, because their folder is full or read-only; repair "
                  "the folder%s",
                  totals->failed, totals->count, totals->count - ended,
                  describe_continuation(options, &output->report, totals));
        print_error_line(error);
    } else if (totals->failed > 0 &&
               (totals->count > 1 || options->check != NULL)) { /* the error of a single file is enough */
        error_set(error, ERROR_WORK, "%zu of %zu file%s failed", totals->failed, totals->count,
                  totals->count == 1 ? "" : "s");
        print_error_line(error);
    }
    return error_join_status(status, output->report_status);
}

/* Complete the archive, if the run writes one. It could not begin unless DONE. Returns false after a fault. */
static bool end_archive(const struct output *output, bool done, struct error *error)
{
    if (members_close(output->members, done, error))
        return true;
    if (file_is_standard(output->options->output))
        end_if_unread();
    return false;
}

/* Is the progress shown? Not if the result goes to standard output: its reader may write to the terminal, too. */
static bool shows_progress(const struct options *options)
{
    return !options->quiet && !options->tar && isatty(STDERR_FILENO) &&
           !(options->pair && file_is_standard(options->output));
}

/* Do the jobs. Returns the exit status. */
static int run_jobs(const struct options *options, const struct batch_request *request, const struct report_run *run,
                    struct warnings *warnings, struct error *error)
{
    struct output output = {
        .options = options,
        .batch = request,
        .warnings = warnings,
        .progress = {.wanted = shows_progress(options)},
    };
    const struct batch_callbacks callbacks = {
        .context = &output,
        .report = handle_image_event,
        .on_progress = output.progress.wanted ? draw_image_progress : NULL,
    };
    const struct members_request archives = {
        .input = options->input,
        .output = options->output,
        .format = options->list.format,
        .suffix = options->list.suffix,
        .memory = request->memory,
        .workers = request->workers,
        .images_only = options->images_only,
        .keep_failed = options->keep_failed,
    };
    struct job_source source;
    struct batch_totals totals;
    struct batch_request batch = *request;
    output.digests = calloc(options->mode == MODE_DIGEST ? batch.count + 1 : 1, sizeof *output.digests);
    bool done = (output.digests != NULL || error_no_memory(error, "%zu digests", batch.count)) &&
                report_open(&output.report, options->report, run, error);
    if (done && options->tar && !members_open(&output.members, &archives, &source, error)) {
        members_close(output.members, false, error);
        done = false;
    }
    if (!done) {
        report_close(&output.report, NULL);
        free(output.digests);
        return print_error_line(error);
    }
    batch.report = &output.report;
    if (options->tar) { /* its list has the archive alone */
        batch.source = &source;
        batch.count = 0;
    }
    done = batch_run(&batch, &callbacks, &totals, error);
    if (totals.signal != 0) { /* workers still run: release nothing, and wait for none */
        if (output.progress.wanted && write(STDERR_FILENO, "\r\033[K", 4) < 0)
            _exit(STATUS_FAILED);
        members_abandon(output.members);
        if (is_single_image(options))
            signals_end_program(totals.signal);
        if (!options->quiet && !options->pair && totals.count > 0)
            print_interrupted(&totals, "file", "done", describe_continuation(options, &output.report, &totals));
        _exit(128 + totals.signal); /* the status that a shell gives a program ended by a signal */
    }
    progress_clear(&output.progress);
    free(output.digests);
    struct error fault;
    const bool whole = end_archive(&output, done, &fault);
    int status = done ? 0 : print_error_line(error);
    if (!report_close(&output.report, error))
        output.report_status = print_error_line(error);
    if (done)
        status = print_totals(&output, &totals, error);
    return whole ? status : error_join_status(status, print_error_line(&fault));
}

/* ---- GPUs ---- */

/* The bytes of all files of LIST. */
static double listed_bytes(const struct file_list *list)
{
    double bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += (double)list->jobs[i].bytes;
    return bytes;
}

/* Name the GPUs for the workers, the first one instead of --device all. BYTES are those of all files; 0 if they are not
 * known. Let the first GPU start if it is asked for. */
static void name_gpus(const struct options *options, const struct recipe *recipe, double bytes,
                      struct batch_request *batch)
{
    const double many = 1.5e9; /* a GPU takes more than a second for them */
    const struct device_choice *choice = &options->devices;
    if (recipe->choice == CHOICE_CPU || !pipeline_has_cuda)
        return;
    batch->gpu_count = choice->count > 0 ? choice->count : 1;
    for (size_t i = 0; i < batch->gpu_count; i++)
        batch->gpus[i].device = choice->count > 0 ? choice->list[i] : 0;
    for (size_t i = 0; i < DEVICES_MAX; i++)
        batch->gpus[i].connections = options->pair ? 1 : bytes > 0 && bytes < many ? CONNECTIONS_FEW : CONNECTIONS_MANY;
    if (recipe->choice == CHOICE_CUDA)
        gpu_start_begin(&batch->gpus[0]);
}

static bool check_gpu(const struct recipe *recipe, const struct batch_request *batch, size_t number,
                      struct error *error)
{
    struct resources resources = {.start = NULL};
    if (batch->gpu_count > 0)
        resources = (struct resources){.start = &batch->gpus[0], .device = batch->gpus[number].device};
    return pipeline_check_gpu(recipe, &resources, error);
}

bool check_first_gpu(const struct recipe *recipe, const struct batch_request *batch, struct error *error)
{
    return check_gpu(recipe, batch, 0, error);
}

/* Check the GPUs for the workers of a batch. Count the GPUs only for --device all, because CUDA starts slowly. */
static bool check_gpus(const struct options *options, const struct recipe *recipe, struct batch_request *batch,
                       struct error *error)
{
    if (options->devices.all && batch->gpu_count > 0) {
        const int found = pipeline_gpus();
        batch->gpu_count = found < DEVICES_MAX ? (size_t)found : DEVICES_MAX;
        for (int i = 1; i < (int)batch->gpu_count; i++) /* number 0 may have begun to start */
            batch->gpus[i].device = i;
    }
    bool done = batch->gpu_count > 0 || check_gpu(recipe, batch, 0, error);
    for (size_t i = 0; done && i < batch->gpu_count; i++)
        done = check_gpu(recipe, batch, i, error);
    return done;
}

bool find_gpus(const struct options *options, const struct recipe *recipe, struct batch_request *batch,
               struct error *error)
{
    name_gpus(options, recipe, 0, batch);
    return check_gpus(options, recipe, batch, error);
}

/* What the jobs of one output have in common. */
struct output_kind {
    struct recipe recipe;
    struct report_run run;
};

static const char *filter_of_output(const struct options *options, size_t number)
{
    return number == 0 ? options->filter : options->list.also[number - 1].filter;
}

/* The report, the list of files and the files of the filters must not be images of the run, or each other. */
static bool check_others(const struct options *options, const struct output_kind *kinds, const struct file_list *list,
                         struct error *error)
{
    size_t count = 2;
    for (size_t i = 0; i <= options->list.also_count; i++)
        count += 2 * kinds[i].recipe.chain->count;
    struct other_file *others = calloc(count, sizeof *others);
    if (others == NULL)
        return error_no_memory(error, "the list of files");
    count = 0;
    other_files_add(others, &count, options->report, "the report", true);
    other_files_add(others, &count, options->check != NULL ? options->check : options->list.files_from, "the list",
                    false);
    for (size_t i = 0; i <= options->list.also_count; i++)
        other_files_add_filters(others, &count, kinds[i].recipe.chain);
    const bool done = collisions_check_others(list, others, count, error);
    free(others);
    return done;
}

static bool make_list(const struct options *options, const struct output_kind *kinds, struct warnings *warnings,
                      struct file_list *list, struct error *error)
{
    struct list_request request = options->list;
    request.warn = warn_left_out;
    request.context = warnings;
    request.pages = request.pages && !options->pair;
    const bool done =
        options->output != NULL
            ? file_list_make_pair(options->input, options->output, options->list.format, list, error) &&
                  (!request.pages || (file_list_split_pages(list, 1, error) && collisions_check(list, false, error)))
        : options->check != NULL       ? digest_list_make(options->check, list, error)
        : options->mode == MODE_DIGEST ? file_list_make_inputs(&request, list, error)
                                       : file_list_make(&request, list, error);
    if (!done || !check_others(options, kinds, list, error) || !file_list_check_codec(list, &options->job.codec, error))
        return false;
    if (list->count == 0)
        return error_set(error, ERROR_WORK, "there is no image to %s; give images, or folders that contain images",
                         options->mode == MODE_DIGEST ? "read" : "filter");
    for (struct job *job = list->jobs; job < list->jobs + list->count; job++) {
        job->all_pages = options->list.pages && options->pair;
        job->recipe = &kinds[job->number].recipe;
        job->run_members = &kinds[job->number].run;
    }
    file_list_keep_shard(list, &options->shard);
    return true;
}

bool find_recipe(const struct options *options, const char *filter, struct recipe *recipe, struct error *error)
{
    struct filter *filters = NULL;
    size_t count = 0;
    *recipe = options->recipe;
    if (filter == NULL) { /* nothing needs a GPU */
        recipe->variant = NULL;
        recipe->choice = CHOICE_CPU;
    } else if (!find_filters(options, filter, filter_find, &filters, &count, error)) {
        return false;
    }
    recipe->chain = chain_make(filters, count, error);
    return recipe->chain != NULL && masks_load(filters, count, options->job.codec.max_pixels, error);
}

/* Find the recipe of each kind. */
static bool find_kinds(const struct options *options, struct output_kind *kinds, struct error *error)
{
    bool done = true;
    for (size_t i = 0; done && i <= options->list.also_count; i++)
        done = find_recipe(options, filter_of_output(options, i), &kinds[i].recipe, error) &&
               pipeline_check(&kinds[i].recipe, error);
    return done;
}

struct job_settings make_job_settings(const struct options *options)
{
    struct job_settings settings = options->job;
    settings.keep_lossless =
        !options_given(options, OPTION(job.codec.quality)) || settings.codec.quality == CODEC_QUALITY_KEEP;
    settings.make_folders = options->list.output != NULL;
    settings.in_place = options->list.in_place;
    settings.digests = options->mode == MODE_DIGEST;
    settings.keep_orientation = settings.keep_orientation || options->filter == NULL;
    settings.keep_format = options->list.in_place && options->list.format == NULL;
    return settings;
}

/* Find the files to do, and let the GPU start. A batch checks first that its GPUs are there. A single image goes on
 * beside the start, and only after another failure asks whether its GPU is missing, which is then the error. */
static bool find_work(const struct options *options, const struct output_kind *kinds, struct batch_request *batch,
                      struct warnings *warnings, struct file_list *list, struct error *error)
{
    struct error missing;
    const struct recipe *recipe = &kinds[0].recipe;
    if (batch->gpus == NULL)
        return error_no_memory(error, "the list of GPUs");
    const bool is_listed = make_list(options, kinds, warnings, list, error);
    name_gpus(options, recipe, listed_bytes(list), batch);
    if ((is_listed && is_single_image(options)) || check_gpus(options, recipe, batch, &missing))
        return is_listed && (options->list.output == NULL || file_make_folders(options->list.output, error));
    *error = missing;
    return false;
}

int run_images(const struct options *options)
{
    struct error error;
    struct file_list list = {0};
    struct warnings warnings = {.options = options};
    struct output_kind *kinds = calloc(OUTPUTS_MAX, sizeof *kinds);
    const size_t outputs = options->list.also_count + 1;
    if (kinds == NULL) {
        error_no_memory(&error, "the outputs");
        return print_error_line(&error);
    }
    const struct job_settings settings = make_job_settings(options);
    struct batch_request batch = options->batch;
    batch.recipe = &kinds[0].recipe;
    batch.cpu_fallback = !options->pair;
    batch.settings = &settings;
    batch.gpus = calloc(DEVICES_MAX, sizeof *batch.gpus);
    batch.threads = options->threads;
    batch.on_this_thread = is_single_image(options) && !shows_progress(options);
    bool done = find_kinds(options, kinds, &error) && find_work(options, kinds, &batch, &warnings, &list, &error);
    if (done) {
        for (size_t i = 0; i < outputs; i++)
            warn_filters(options, kinds[i].recipe.chain->filters, kinds[i].recipe.chain->count);
        warn_unused_by_files(options, &list);
        warn_format(options);
        warn_unused_device(options);
    }
    batch.jobs = list.jobs;
    batch.count = list.count;
    char *given = options_text(options), hash[RECIPE_TEXT];
    const bool is_journal = options->list.in_place && options->report != NULL;
    if (done && is_journal && !options_hash(options, kinds[0].recipe.chain, hash))
        done = error_no_memory(&error, "%zu filters", kinds[0].recipe.chain->count);
    const struct report_run run = {.filter = options->filter,
                                   .options = given,
                                   .recipe = is_journal ? hash : NULL,
                                   .shard = options->shard,
                                   .listing = list.listing,
                                   .files = list.listed};
    for (size_t i = 0; i < outputs; i++) {
        kinds[i].run = run;
        kinds[i].run.filter = filter_of_output(options, i);
    }
    if (done && given == NULL)
        done = error_no_memory(&error, "the options");
    const int status = done ? run_jobs(options, &batch, &run, &warnings, &error) : print_error_line(&error);
    free(given);
    for (int i = 0; batch.gpus != NULL && i < DEVICES_MAX; i++)
        gpu_start_end(&batch.gpus[i]);
    free(batch.gpus);
    file_list_free(&list);
    for (size_t i = 0; i < outputs; i++)
        chain_release(kinds[i].recipe.chain);
    free(kinds);
    return status;
}
