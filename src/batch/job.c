/* SPDX-License-Identifier: MIT
 *
 * One job: read, plan, convert, write. */
#include "batch/job.h"

#include "base/file.h"
#include "batch/job_internal.h"
#include "batch/outputs.h"
#include "container/other_content.h"
#include "metadata/littlecms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Memory ---- */

static void release_image(struct job_worker *worker)
{
    budget_release(&worker->workers->budget, worker->reserved);
    worker->reserved = 0;
}

/* Reserve memory for what is known of the file, and for pages that are done. If the job may wait, wait for the memory,
 * also for the largest output: the job does not begin again. Otherwise fail, and set conversion->lacks_memory, if there
 * is too little now. */
static bool reserve_job_memory(struct job_worker *worker, struct conversion *conversion, struct job_memory need,
                               struct error *error)
{
    struct memory_budget *budget = &worker->workers->budget;
    const size_t pages = worker->pages.file.size;
    need.image = need.image < SIZE_MAX - pages ? need.image + pages : SIZE_MAX;
    size_t image = need.image > worker->reserved ? need.image : worker->reserved;
    const size_t all = image < SIZE_MAX - need.kept ? image + need.kept : SIZE_MAX;
    if (!budget_check(budget, all, file_input_name(conversion->job->input), error))
        return false;
    if (conversion->may_wait && need.largest > image)
        image = need.largest < budget->max - need.kept ? need.largest : budget->max - need.kept;
    const size_t growth = need.kept > worker->kept ? need.kept - worker->kept : 0;
    const size_t more = image + growth - worker->reserved;
    if (more == 0)
        return true;
    if (conversion->may_wait)
        budget_wait(budget, more, worker->reserved);
    else if (!budget_try(budget, more, worker->reserved)) {
        conversion->lacks_memory = true;
        return error_no_memory(error, "one more image");
    }
    worker->reserved = image;
    worker->kept += growth;
    return true;
}

/* Reserve SIZE bytes for the output, and what its stream needs. */
static bool reserve_output(void *context, size_t size, struct error *error)
{
    struct conversion *conversion = context;
    return reserve_job_memory(conversion->worker, conversion,
                              (struct job_memory){.image = conversion->streaming + size}, error);
}

/* ---- The input ---- */

/* Complete conversion->codec with what --quality keep takes from the input, which is inspected. */
static void keep_quality(struct conversion *conversion)
{
    struct codec_settings *codec = &conversion->codec;
    if (codec->quality != CODEC_QUALITY_KEEP)
        return;
    codec->quality = CODEC_QUALITY; /* the default, for an input without quantisers */
    if (!conversion->info.jpeg.has_quantisers)
        return;
    codec->quality = 100; /* no quantisers make a larger file */
    codec->quantisers = &conversion->info.jpeg;
}

/* Read the metadata of the file. The size of its inflated parts is not known in advance, so reserve more and more. */
static bool read_metadata(struct job_worker *worker, struct conversion *conversion)
{
    enum { FIRST = 1 << 14 };
    struct error *error = &conversion->result->error;
    for (size_t max = FIRST;; max *= 4) {
        const size_t other = conversion->size - conversion->info.data;
        conversion->metadata =
            (struct metadata){.max = max, .keep_text = worker->settings->keep_text, .page = conversion->codec.page};
        if (!reserve_job_memory(worker, conversion, (struct job_memory){.image = conversion->size + 4 * (other + max)},
                                error) ||
            !conversion->info.format->read_metadata(conversion->bytes, conversion->size, &conversion->metadata, error))
            return false;
        if (!conversion->metadata.needs_more)
            return true;
        metadata_free(&conversion->metadata);
    }
}

/* Can the result replace the input without a loss that no filter asks for? */
static bool check_in_place(const struct job_settings *settings, const struct conversion *conversion,
                           struct error *error)
{
    const struct codec_info *info = &conversion->info;
    const char *name = conversion->job->input;
    if (!settings->in_place)
        return true;
    if (info->other_content != 0 && !settings->first_picture) {
        char other_content[OTHER_CONTENT_TEXT];
        container_print_other_content(info->other_content, other_content);
        return error_about(error, ERROR_WORK, name,
                           "also contains %s, which --in-place would lose; write to another file, or give "
                           "--first-picture to keep its first picture only",
                           other_content);
    }
    return !info->cmyk || error_about(error, ERROR_WORK, name,
                                      "is CMYK, and --in-place would make it RGB; write the result to another file");
}

/* Inspect the file, and record what the next steps need. */
static bool inspect_input(struct job_worker *worker, struct conversion *conversion)
{
    struct error *error = &conversion->result->error;
    const char *name = file_input_name(conversion->job->input);
    struct codec_info *info = &conversion->info;
    if (!codec_inspect(conversion->bytes, conversion->size, name, &conversion->codec, info, error) ||
        !codec_choose_reader(info, &conversion->codec, name, error))
        return false;
    keep_quality(conversion);
    if (worker->settings->keep_lossless && info->webp.lossless)
        conversion->codec.lossless = true;
    const bool is_named = conversion->job->format != NULL && !worker->settings->keep_format;
    conversion->result->output_format = is_named ? conversion->job->format : info->format;
    conversion->image = (struct image){.width = info->width,
                                       .height = info->height,
                                       .channels = info->channels,
                                       .bits = codec_bits(info, &conversion->codec)};
    return check_in_place(worker->settings, conversion, error);
}

static bool is_image_file(const uint8_t *bytes, size_t size)
{
    return format_find_by_magic(bytes, size, "", NULL) != NULL;
}

/* Reserve memory for the file, read it, inspect it and reserve memory for its image. Fails as `reserve_job_memory`
 * does. */
static bool read_input(struct job_worker *worker, struct conversion *conversion)
{
    const struct job *job = conversion->job;
    struct phases *phases = &conversion->result->phases;
    struct error *error = &conversion->result->error;
    const struct memory_budget *budget = &worker->workers->budget;
    const size_t expected = job->bytes < budget->file_max ? (size_t)job->bytes : budget->file_max;
    if (!reserve_job_memory(worker, conversion, (struct job_memory){.image = expected}, error))
        return false;
    if (conversion->may_wait)
        phases_end(phases, PHASE_WAIT);

    bool done = true;
    struct shared_input *input = &worker->input;
    if (job->content != NULL) {
        conversion->bytes = (uint8_t *)job->content;
        conversion->size = (size_t)job->bytes;
    } else if (input->bytes != NULL) {
        conversion->bytes = input->bytes;
        conversion->size = input->size;
        conversion->status = input->status;
    } else {
        done = file_read_wanted(job->input, budget_input_max(budget), is_image_file, &conversion->bytes,
                                &conversion->size, &conversion->status, error);
        if (done && (job->next != NULL || job->all_pages))
            *input = (struct shared_input){
                .bytes = conversion->bytes, .size = conversion->size, .status = conversion->status};
    }
    phases_end(phases, PHASE_READ);
    if (done && journal_holds(&worker->outputs->report->journal, conversion->bytes, conversion->size)) {
        conversion->result->outcome = JOB_SKIPPED;
        return false;
    }
    done =
        done && inspect_input(worker, conversion) && read_metadata(worker, conversion) && job_find_shapes(conversion);
    phases_end(phases, PHASE_DECODE);
    /* A file that has grown since it was listed counts as it is now. */
    const size_t size = conversion->size > expected ? conversion->size : expected;
    done = done && reserve_job_memory(worker, conversion, job_estimate_memory(worker, conversion, size), error);
    if (conversion->may_wait)
        phases_end(phases, PHASE_WAIT);
    return done;
}

/* Read the input within the memory budget, unless an earlier run made it, and decode it unless that waits for the
 * filters. */
static bool job_read(struct job_worker *worker, struct conversion *conversion)
{
    if (conversion->may_wait)
        budget_begin_wait(&worker->workers->budget);
    const bool done = read_input(worker, conversion);
    if (conversion->may_wait)
        budget_end_wait(&worker->workers->budget);
    return done && job_decode(worker, conversion);
}

/* ---- The output ---- */

static bool make_folder(const char *path, struct error *error)
{
    struct stat status;
    char *folder = file_folder(path);
    if (folder == NULL)
        return error_no_memory(error, "the name of a folder");
    const bool done = stat(folder, &status) == 0 || file_make_folders(folder, error);
    free(folder);
    return done;
}

/* Write the output. In place, its line in the journal must come first. */
static bool write_output(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    const bool in_place = worker->settings->in_place;
    if (conversion->job->in_memory) {
        uint8_t *smaller = realloc(conversion->output, result->output_bytes); /* it may wait for other jobs */
        if (smaller != NULL)
            conversion->output = smaller;
        result->output = conversion->output;
        conversion->output = NULL;
        return true;
    }
    if (worker->settings->make_folders && !make_folder(conversion->job->output, &result->error))
        return false;
    if (in_place && !report_begin(worker->outputs->report, result, conversion->output, &result->error)) {
        workers_stop(worker->workers); /* no other file can be replaced */
        return false;
    }
    return outputs_write(worker->outputs, conversion->job, in_place ? &conversion->status : NULL, conversion->output,
                         result->output_bytes, &result->error);
}

/* Write the output, if there is one, and report the result. */
static void job_write(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    atomic_store(&worker->step, JOB_STEP_WRITE);
    if (!workers_begin_output(worker->workers))
        return;
    if (result->outcome == JOB_DONE && !worker->settings->digests && !write_output(worker, conversion)) {
        result->outcome = JOB_FAILED;
        result->unwritten = true;
    }
    result->linked = result->outcome == JOB_DONE && worker->settings->in_place && conversion->status.st_nlink > 1;
    phases_end(&result->phases, PHASE_WRITE);
    if (result->outcome == JOB_FAILED)
        error_add_subject(&result->error, file_input_name(conversion->job->input));
    if (worker->page > 0 && strcmp(result->error.subject, conversion->job->input) == 0)
        snprintf(result->error.subject, sizeof result->error.subject, "%s, page %d", conversion->job->input,
                 worker->page);
    worker->report(worker->context, result, JOB_WRITTEN);
    workers_end_output(worker->workers);
}

/* ---- Progress ---- */

struct job_progress job_find_progress(const struct job_worker *worker)
{
    /* Unless they go on beside each other, decoding, filtering and encoding count as a third each. */
    static const struct {
        const char *word;
        double first, last; /* share of the job before and after this step; equal if rows are not counted */
    } steps[] = {
        [JOB_STEP_NONE] = {NULL, 0, 0},
        [JOB_STEP_READ] = {"reading", 0, 0},
        [JOB_STEP_STREAM] = {"filtering", 0, 1},
        [JOB_STEP_STREAM_DECODED] = {"filtering", 1 / 3.0, 1},
        [JOB_STEP_FILTER] = {"filtering", 1 / 3.0, 2 / 3.0},
        [JOB_STEP_ENCODE] = {"writing", 2 / 3.0, 2 / 3.0},
        [JOB_STEP_WRITE] = {"writing", 1, 1},
    };
    const int step = atomic_load(&worker->step);
    const double first = steps[step].first, last = steps[step].last;
    struct job_progress progress = {.word = steps[step].word, .done = first, .is_rough = true, .rows = -1};
    /* Before these steps, it is of another job. */
    const int permille = last > first ? atomic_load(&worker->pipeline.progress_permille) : -1;
    if (permille >= 0) {
        progress.rows = permille / 1e3;
        progress.is_rough = last < 1;
        progress.done = first + (last - first) * progress.rows;
    }
    return progress;
}

/* ---- The whole job ---- */

static void begin_conversion(struct conversion *conversion, struct job_worker *worker, const struct job *job,
                             struct job_result *result)
{
    memset(conversion, 0, sizeof *conversion); /* it is too large for a copy on the stack */
    conversion->worker = worker;
    conversion->job = job;
    conversion->result = result;
    conversion->run.recipe = worker->recipe;
    conversion->run.pipeline = &worker->pipeline;
    conversion->run.phases = &result->phases;
    conversion->run.input.work = worker->work;
    conversion->codec = worker->settings->codec;
    conversion->codec.page = worker->page > 0 ? worker->page : conversion->codec.page;
    conversion->codec.pool = &worker->pool;
    conversion->codec.may_grow = reserve_output;
    conversion->codec.context = conversion;
    atomic_store(&worker->step, JOB_STEP_READ);
}

/* Do all steps but the writing. A job that lacks memory gives back all that it has, and begins again when it may
 * wait for memory. */
static bool do_steps(struct job_worker *worker, struct conversion *conversion)
{
    for (;;) {
        const bool done = job_read(worker, conversion) &&
                          (worker->settings->digests ? job_digest(conversion)
                                                     : job_plan(worker, conversion) && job_convert(worker, conversion));
        pipeline_end(&conversion->run, done);
        if (!conversion->lacks_memory)
            return done;
        const bool can_read_again = S_ISREG(conversion->status.st_mode) && !file_is_standard(conversion->job->input);
        job_free(conversion);
        job_forget_input(worker, can_read_again);
        release_image(worker);
        job_release_buffers(worker);
        begin_conversion(conversion, worker, conversion->job, conversion->result);
        conversion->may_wait = true; /* so it does not lack memory again */
    }
}

/* Do all steps but the writing for each page of the job, and join their outputs. */
static bool do_pages(struct job_worker *worker, struct conversion *conversion)
{
    struct job_result *result = conversion->result;
    bool done = do_steps(worker, conversion);
    while (done && conversion->job->all_pages) {
        done = tiff_add_page(&worker->pages, conversion->output, result->output_bytes, &result->error);
        if (!done || worker->page >= result->pages)
            break;
        job_free(conversion);
        result->page = ++worker->page;
        begin_conversion(conversion, worker, conversion->job, result);
        done = do_steps(worker, conversion);
    }
    if (done && conversion->job->all_pages) {
        free(conversion->output);
        conversion->output = worker->pages.file.bytes;
        result->output_bytes = worker->pages.file.size;
        worker->pages.file = (struct blob){0};
    }
    blob_free(&worker->pages.file);
    return done;
}

void job_run(struct job_worker *worker, const struct job *job, struct job_result *result)
{
    struct conversion conversion;
    struct stat status;
    worker->page = job->all_pages ? 1 : job->page;
    begin_conversion(&conversion, worker, job, result);
    *result = (struct job_result){
        .job = job, .outcome = JOB_FAILED, .run = &conversion.run, .device = -1, .input_bytes = (size_t)job->bytes};
    phases_begin(&result->phases);
    atomic_store(&worker->start, result->phases.start);
    if (job->problem != NULL)
        error_about(&result->error, job->problem_passes ? ERROR_READ : ERROR_WORK, job->input, "%s", job->problem);
    else if (worker->settings->skip_existing && stat(job->output, &status) == 0 &&
             (status.st_size > 0 || !S_ISREG(status.st_mode))) /* a power cut may leave an empty file */
        result->outcome = outputs_check(worker->outputs, job, &status, &result->error) ? JOB_SKIPPED : JOB_FAILED;
    else if (do_pages(worker, &conversion))
        result->outcome = JOB_DONE;
    if (worker->pipeline.fallback.code != ERROR_NONE)
        worker->report(worker->context, result, JOB_GPU_FAILED);
    if (result->outcome != JOB_DONE)
        result->encoder = NULL;
    job_write(worker, &conversion);
    result->run = NULL;
    worker->is_grouped = conversion.run.is_grouped;
    job_free(&conversion);
    if (job->next == NULL)
        job_end_input(worker);
}

void job_end_input(struct job_worker *worker)
{
    job_forget_input(worker, true);
    release_image(worker);
}

void job_worker_open(struct job_worker *worker)
{
    thread_pool_open(&worker->pool, worker->threads);
    worker->resources.pool = &worker->pool;
    pipeline_open(&worker->pipeline, &worker->resources);
}

void job_worker_close(struct job_worker *worker)
{
    if (worker->workers == NULL) /* it was never opened */
        return;
    pipeline_close(&worker->pipeline);
    job_forget_colours(worker);
    transform_free(worker->transform);
    worker->transform = NULL;
    thread_pool_close(&worker->pool);
    budget_release(&worker->workers->budget, worker->kept);
    worker->kept = 0;
}

bool job_check_output(const char *path, struct error *error)
{
    struct stat status;
    if (file_is_standard(path)) {
        if (isatty(STDOUT_FILENO))
            return error_set(error, ERROR_USAGE,
                             "standard output is a terminal, which cannot show an image; redirect it or give a file");
        return true;
    }
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return error_about(error, ERROR_OUTPUT, path, "is a folder; give the path of a file");
    char *folder = file_folder(path);
    if (folder == NULL)
        return error_no_memory(error, "the name of a folder");
    bool done = stat(folder, &status) == 0;
    if (done && !S_ISDIR(status.st_mode)) {
        done = false;
        errno = ENOTDIR;
    }
    if (!done)
        error_about(error, ERROR_OUTPUT, path, "cannot be written: %s; its folder must exist", strerror(errno));
    free(folder);
    return done;
}
