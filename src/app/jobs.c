/* SPDX-License-Identifier: MIT
 *
 * --jobs-from: jobs that come one after another, a line of JSON each, and a line as the answer to each. Filters, plans
 * and the GPU stay from job to job. */
#include "app/job_line.h"
#include "app/messages.h"
#include "app/modes.h"
#include "app/option_table.h"
#include "app/progress.h"
#include "base/file.h"
#include "base/lines.h"
#include "batch/batch.h"
#include "batch/collisions.h"
#include "batch/report.h"
#include "compare/pair.h"
#include "compare/pairs.h"
#include "compare/report.h"
#include "compare/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 1 << 20,
    TEMPLATES_MAX = 64, /* templates that are kept; more if more are in use */
};

/* The data that jobs share if their lines give the same options. */
struct job_template {
    bool compares;       /* the lines are pairs to compare, not images to filter */
    struct job_line key; /* owns the strings of `options` */
    struct options options;
    struct recipe recipe;
    struct job_settings settings;
    struct compare_settings compare;
    char *text; /* the options as text, for the report */
    struct report_run run;
    size_t users;           /* jobs that have begun and are not released */
    unsigned long last_use; /* the number of the last line that used it */
};

struct stream;

/* A line of the input, and its job. */
struct entry {
    struct job job; /* first, so that a job leads to its entry */
    struct stream *stream;
    const struct job *first; /* the first job of its line */
    struct job_line line;
    struct job_template *template; /* NULL if the line or its options are wrong */
    struct compare_rows rows;      /* the row of a pair, the only one; empty for an image */
    struct error error;            /* why the line is no job; `job.run` is then run_failure */
};

struct stream {
    const struct options *options; /* the options of the command line */
    struct batch_request batch;
    struct line_reader lines;
    struct error error; /* why no more lines were read; no error at the end of the input */
    struct report report;
    int report_status; /* the exit status if answers could not be written, else 0 */

    pthread_mutex_t mutex; /* guards the templates */
    struct job_template **templates;
    size_t template_count;

    struct pair_worker *pair_workers[PARALLEL_THREADS_MAX]; /* by worker number; NULL until a worker compares */
    size_t different;                                       /* the number of pairs that differ */
};

/* ---- Templates ---- */

static void free_template(struct job_template *template)
{
    if (template == NULL)
        return;
    job_line_free(&template->key);
    chain_release(template->recipe.chain);
    free(template->text);
    free(template);
}

/* Set the option NAME as a line says: with its KIND, which is one of struct job_line's, and VALUE. */
static bool set_option(struct job_template *template, const char *name, char kind, const char *value,
                       struct error *error)
{
    const struct option *o = option_find(name, strlen(name));
    if (o == NULL) {
        char dashed[64];
        snprintf(dashed, sizeof dashed, "--%s", name);
        return suggest_option(dashed, error);
    }
    if ((o->bits & IN_LINE) == 0)
        return error_set(error, ERROR_USAGE, "\"%s\" is not an option of a job; leave it out", name);
    if (o->group == GROUP_COMPARE && !template->compares)
        return error_set(error, ERROR_USAGE, "\"%s\" is for a pair of \"expected\" and \"actual\"; leave it out", name);
    if (template->compares && (o->group == GROUP_FILTER || o->group == GROUP_BACKEND || (o->bits & ONLY_DIGEST) != 0))
        return error_set(error, ERROR_USAGE, "\"%s\" is for an \"input\", and a pair is not filtered; leave it out",
                         name);
    if (o->argument != NULL && kind != '=')
        return error_set(error, ERROR_USAGE, "\"%s\" needs a value: %s", name, o->argument);
    if (o->argument == NULL && kind == '=' && o->kind != KIND_FLAG_WORD)
        return error_set(error, ERROR_USAGE, "\"%s\" is true or false, not \"%s\"", name, value);
    if (kind == '-') {
        memset((char *)&template->options + o->field, 0, o->kind == KIND_FLAG ? sizeof(bool) : sizeof(int));
        template->options.given[o - option_table] = false;
        return true;
    }
    return option_set(o, kind == '=' ? value : NULL, &template->options, error);
}

static bool set_template_options(struct job_template *template, struct error *error)
{
    const char *end = template->key.options + template->key.size, *before = NULL;
    for (const char *name = template->key.options, *kind; name < end; name = kind + strlen(kind) + 1) {
        const struct option *o = option_find(name, strlen(name));
        if (before != NULL && strcmp(before, name) == 0 && o != NULL && o->kind != KIND_AREA)
            return error_set(error, ERROR_USAGE, "\"%s\" takes one value, not a list%s", name,
                             strcmp(name, "filter") == 0 ? "; join filters by commas, as in \"blur,edge\""
                                                         : "; give one value");
        before = name;
        kind = name + strlen(name) + 1;
        if (!set_option(template, name, *kind, kind + 1, error))
            return false;
    }
    return options_check_backend(&template->options, error);
}

/* Check that the FILTERS of a line are names or regular files. A pipe could be the stream of jobs itself, and all
 * workers wait while a filter is read. */
static bool check_filter_files(const char *filters, struct error *error)
{
    bool done = true;
    for (const char *at = filters; done && *at != '\0';) {
        const size_t length = at == filters && access(at, F_OK) == 0 ? strlen(at) : strcspn(at, ",");
        char *path = strndup(at, length);
        struct stat status;
        done = path != NULL || error_no_memory(error, "a path");
        const char *mask = done ? filter_region_text(path) : NULL;
        if (done && stat(mask != NULL ? mask + 1 : path, &status) == 0 && !S_ISREG(status.st_mode) &&
            !S_ISDIR(status.st_mode))
            done = error_about(error, ERROR_USAGE, path,
                               "is not a regular file; give the name of a filter, or the path of a filter file");
        free(path);
        at += length + (at[length] == ',');
    }
    return done;
}

/* Find the filters of a template, and check that they can run. */
static bool make_recipe(struct stream *stream, struct job_template *template, struct error *error)
{
    const struct options *options = &template->options;
    struct recipe *recipe = &template->recipe;
    struct batch_request *batch = &stream->batch;
    if (options->filter == NULL)
        return error_set(error, ERROR_USAGE,
                         "has no \"filter\"; give it in the line, or --filter on the command line for all lines");
    if ((options->filter != stream->options->filter && !check_filter_files(options->filter, error)) ||
        !find_recipe(options, options->filter, recipe, error) || !pipeline_check(recipe, error))
        return false;
    if (recipe->choice != CHOICE_CUDA)
        return true;
    for (size_t i = 0; i < batch->gpu_count; i++)
        gpu_start_begin(&batch->gpus[i]);
    return check_first_gpu(recipe, batch, error);
}

/* Make a template of the options of LINE, which it takes over. */
static bool make_template(struct stream *stream, struct job_line *line, bool compares, struct job_template *template,
                          struct error *error)
{
    *template = (struct job_template){
        .compares = compares, .key = {.options = line->options, .size = line->size}, .options = *stream->options};
    line->options = NULL;
    line->size = 0;
    template->options.mode = compares ? MODE_COMPARE : MODE_RUN;
    if (!set_template_options(template, error) || (!compares && !make_recipe(stream, template, error)))
        return false;
    template->settings = make_job_settings(&template->options);
    template->compare = make_compare_settings(&template->options);
    template->text = options_text(&template->options);
    template->run = (struct report_run){.filter = template->options.filter, .options = template->text};
    return template->text != NULL || error_no_memory(error, "the options of a job");
}

/* The slot for another template: the slot of the least recently used one without users, or a new one. */
static struct job_template **find_template_slot(struct stream *stream)
{
    struct job_template **slot = NULL;
    for (size_t i = 0; stream->template_count >= TEMPLATES_MAX && i < stream->template_count; i++) {
        struct job_template *template = stream->templates[i];
        if (template->users == 0 && (slot == NULL || template->last_use < (*slot)->last_use))
            slot = &stream->templates[i];
    }
    if (slot != NULL) {
        free_template(*slot);
        return slot;
    }
    struct job_template **larger =
        realloc(stream->templates, (stream->template_count + 1) * sizeof(struct job_template *));
    if (larger == NULL)
        return NULL;
    stream->templates = larger;
    return &larger[stream->template_count++];
}

/* Are the filters of RECIPE those of its options? A filter file may have changed since it was read. */
static bool is_current(const struct job_template *template)
{
    const struct filter_chain *chain = template->recipe.chain; /* NULL for pairs */
    bool current = true;
    for (size_t i = 0; chain != NULL && i < chain->count; i++)
        current = current && filter_is_current(&chain->filters[i]);
    return current;
}

/* The template for the options of LINE, found or made. NULL is an error. Call with the mutex locked. */
static struct job_template *find_template(struct stream *stream, struct job_line *line, bool compares,
                                          struct error *error)
{
    for (size_t i = 0; i < stream->template_count; i++) {
        struct job_template *template = stream->templates[i];
        if (template->compares == compares && template->key.size == line->size &&
            (line->size == 0 || memcmp(template->key.options, line->options, line->size) == 0) && is_current(template))
            return template;
    }
    struct job_template *template = malloc(sizeof *template);
    const bool is_prepared = template != NULL && make_template(stream, line, compares, template, error);
    struct job_template **slot = is_prepared ? find_template_slot(stream) : NULL;
    if (slot != NULL)
        return *slot = template;
    if (template == NULL || is_prepared)
        error_no_memory(error, "the options of a job");
    free_template(template);
    return NULL;
}

/* ---- Jobs ---- */

/* Do what a line without a job asks for: report why. */
static void run_failure(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    (void)workers, (void)number;
    result->outcome = JOB_FAILED;
    result->error = ((struct entry *)job)->error;
}

static void run_entry_comparison(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    struct entry *entry = (struct entry *)job;
    struct compare_row *row = entry->rows.rows;
    struct compare_settings settings = entry->template->compare;
    const int threads = entry->template->options.threads;
    settings.picture = entry->line.files[JOB_DIFF];
    compare_pair(&entry->stream->pair_workers[number], workers, threads > 0 ? threads : 1, &settings, row);
    result->width = row->expected.width;
    result->height = row->expected.height;
    if (row->kind < ROW_UNREADABLE && row->problem == NULL)
        return;
    result->outcome = JOB_FAILED;
    error_set(&result->error, row->may_retry ? ERROR_READ : ERROR_WORK, "%s",
              row->problem != NULL ? row->problem : row_kind_name(row->kind));
}

/* Check that LINE has the files of one kind of job, and which. */
static bool check_line_files(const struct job_line *line, bool *compares, struct error *error)
{
    char *const *files = line->files;
    const bool filters = files[JOB_INPUT] != NULL || files[JOB_OUTPUT] != NULL;
    *compares = files[JOB_EXPECTED] != NULL || files[JOB_ACTUAL] != NULL || files[JOB_DIFF] != NULL;
    if (filters == *compares)
        return error_set(error, ERROR_USAGE,
                         filters ? "has an image and a pair; give two lines"
                                 : "has no file; give \"input\" and \"output\", or \"expected\" and \"actual\"");
    const enum job_file needed = *compares ? JOB_EXPECTED : JOB_INPUT;
    for (enum job_file file = needed; file < needed + 2; file++)
        if (files[file] == NULL)
            return error_set(error, ERROR_USAGE, "has no \"%s\"; give the path of a file", job_file_name(file));
    for (enum job_file file = 0; file < JOB_FILES; file++)
        if (files[file] != NULL && file_is_standard(files[file]))
            return error_set(error, ERROR_USAGE,
                             "\"%s\" is \"-\", and the jobs use standard input and output; give a file",
                             job_file_name(file));
    return true;
}

static bool prepare_image(struct entry *entry, struct error *error)
{
    const struct job_template *template = entry->template;
    struct job *job = &entry->job;
    struct stat input, output;
    const bool exists = stat(job->input, &input) == 0;
    if (!options_check_suffix(&template->options, job->output, false, error))
        return false;
    if (exists && stat(job->output, &output) == 0 && file_is_one(&input, &output))
        return error_set(error, ERROR_USAGE, "%s is the same file as %s; give another output", job->output, job->input);
    job->name = job->input;
    job->bytes = exists && S_ISREG(input.st_mode) ? (uint64_t)input.st_size : 0;
    job->format =
        template->options.list.format != NULL ? template->options.list.format : format_find_by_path(job->output);
    job->recipe = &template->recipe;
    job->settings = &template->settings;
    return true;
}

static bool prepare_pair(struct entry *entry, struct error *error)
{
    const struct options *options = &entry->template->options;
    char *const *files = entry->line.files;
    if (files[JOB_DIFF] != NULL &&
        !check_compare_picture(options, files[JOB_EXPECTED], files[JOB_ACTUAL], files[JOB_DIFF], error))
        return false;
    if (!pairs_make_one(files[JOB_EXPECTED], files[JOB_ACTUAL], false, &entry->rows, error))
        return false;
    struct compare_row *row = entry->rows.rows;
    row->id = entry->line.id;
    if (options->compare.mask != NULL && (row->mask.path = strdup(options->compare.mask)) == NULL)
        return error_no_memory(error, "a path");
    entry->job.run = run_entry_comparison;
    return true;
}

/* The file of a stream that no job may read or write: that of DESCRIPTOR. */
static void add_stream(struct other_file *files, size_t *count, int descriptor, const char *path, const char *role)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0 || S_ISCHR(status.st_mode))
        return;
    for (size_t i = 0; i < *count; i++) /* the jobs and their answers may share a socket */
        if (files[i].device == status.st_dev && files[i].inode == status.st_ino)
            return;
    files[(*count)++] = (struct other_file){
        .path = path, .role = role, .written = true, .device = status.st_dev, .inode = status.st_ino};
}

/* A job writes no file that it or the stream reads, and no other output of its line. It takes no line and no answer of
 * the stream. */
static bool check_collisions(const struct entry *entry, struct error *error)
{
    static const char *const roles[JOB_FILES] = {[JOB_INPUT] = "the input",
                                                 [JOB_OUTPUT] = "the output",
                                                 [JOB_EXPECTED] = "the expected image",
                                                 [JOB_ACTUAL] = "the actual image",
                                                 [JOB_DIFF] = "the picture of the difference"};
    const struct stream *stream = entry->stream;
    const struct job_template *template = entry->template;
    const struct filter_chain *chain = template->recipe.chain; /* NULL for pairs */
    struct other_file *files =
        calloc(JOB_FILES + 3 + entry->job.number + (chain != NULL ? 2 * chain->count : 0), sizeof *files);
    size_t count = 0;
    if (files == NULL)
        return error_no_memory(error, "the list of files");
    add_stream(files, &count, stream->lines.descriptor, file_input_name(stream->options->jobs_from),
               "the list of jobs");
    add_stream(files, &count, STDOUT_FILENO, file_output_name("-"), "the answers");
    other_files_add_filters(files, &count, chain);
    for (enum job_file file = 0; file < JOB_FILES; file++)
        other_files_add(files, &count, entry->line.files[file], roles[file], file == JOB_OUTPUT || file == JOB_DIFF);
    other_files_add(files, &count, template->options.compare.mask, "the mask", false);
    for (const struct job *job = entry->first; job != &entry->job; job = job->next)
        other_files_add(files, &count, job->run == NULL ? job->output : NULL, "another output", true);
    const bool done = collisions_check_files(files, count, error);
    free(files);
    return done;
}

/* Make the job of a line, or of one of its outputs. */
static bool prepare(struct entry *entry, const char *text, size_t size, struct error *error)
{
    struct stream *stream = entry->stream;
    struct job *job = &entry->job;
    bool compares;
    const bool is_parsed = job_line_parse(text, size, entry->job.number, &entry->line, error);
    job->id = entry->line.id != NULL ? entry->line.id : "null";
    job->input = entry->line.files[JOB_INPUT];
    job->output = entry->line.files[JOB_OUTPUT];
    if (!is_parsed || !check_line_files(&entry->line, &compares, error))
        return false;
    pthread_mutex_lock(&stream->mutex);
    struct job_template *template = entry->template = find_template(stream, &entry->line, compares, error);
    if (template != NULL) {
        template->users++;
        template->last_use = stream->lines.number;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (template == NULL)
        return false;
    job->run_members = &template->run;
    return (compares ? prepare_pair(entry, error) : prepare_image(entry, error)) && check_collisions(entry, error);
}

/* ---- The stream ---- */

static void release_entry(void *context, struct job *job)
{
    struct stream *stream = context;
    struct entry *entry = (struct entry *)job;
    pthread_mutex_lock(&stream->mutex);
    if (entry->template != NULL)
        entry->template->users--;
    pthread_mutex_unlock(&stream->mutex);
    rows_free(&entry->rows);
    job_line_free(&entry->line);
    free(entry);
}

/* Read the next line that is not blank. */
static enum line_result read_job_line(struct stream *stream, char **text, size_t *size)
{
    enum line_result result;
    do
        result = lines_next(&stream->lines, text, size, &stream->error);
    while (result == LINE_READ && strspn(*text, " \t\r") == *size);
    return result;
}

/* Make an entry for the line that was read: for its first output, or for the one after BEFORE. */
static struct entry *add_entry(struct stream *stream, enum line_result result, const char *text, size_t size,
                               struct entry *before)
{
    char where[32];
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        error_no_memory(&stream->error, "a job");
        return NULL;
    }
    entry->stream = stream;
    entry->first = before != NULL ? before->first : &entry->job;
    entry->job.id = "null";
    if (before != NULL) {
        before->job.next = &entry->job;
        entry->job.number = before->job.number + 1;
    }
    if (result == LINE_TOO_LONG)
        error_set(&entry->error, ERROR_USAGE, "is longer than %d bytes; give shorter names", LINE_MAX_BYTES);
    else if (prepare(entry, text, size, &entry->error))
        return entry;
    snprintf(where, sizeof where, "line %zu", stream->lines.number);
    error_add_subject(&entry->error, where);
    entry->job.run = run_failure; /* the answer to the line is its error */
    return entry;
}

static struct job *next_job(void *context)
{
    struct stream *stream = context;
    char *text;
    size_t size;
    if (stream->report.failed || stream->error.code != ERROR_NONE) /* no answer or no job could be made */
        return NULL;
    const enum line_result result = read_job_line(stream, &text, &size);
    if (result == LINE_END)
        return NULL;
    struct entry *first = add_entry(stream, result, text, size, NULL);
    for (struct entry *last = first; last != NULL && last->job.number + 1 < first->line.outputs;)
        last = add_entry(stream, result, text, size, last);
    return first != NULL ? &first->job : NULL;
}

/* ---- Answers ---- */

static void answer_line(struct stream *stream, const struct job_result *result)
{
    struct entry *entry = (struct entry *)result->job;
    struct compare_row *row = entry->rows.rows;
    struct error error;
    bool done;
    if (row == NULL || entry->job.run == run_failure || result->error.code == ERROR_INTERRUPTED) {
        done = report_append(&stream->report, result, &error);
    } else {
        struct text_buffer line;
        FILE *file = stream->report.failed ? NULL : text_open(&line);
        stream->different += result->outcome == JOB_DONE && row_fails(row, true);
        if (file != NULL)
            row_print_json(file, row, &entry->template->compare.rules);
        done = stream->report.failed || report_append_text(&stream->report, file, &line, &error);
    }
    if (done)
        return;
    end_if_unread();
    stream->report_status = print_error_line(&error);
}

static void handle_line_event(void *context, const struct job_result *result, enum job_event event)
{
    struct stream *stream = context;
    if (event == JOB_GPU_FAILED)
        print_warning(stream->options, result->run->pipeline->fallback.message, "; the CPU continues");
    else if (event == JOB_WRITTEN || (event == JOB_INTERRUPTED && is_writable(stream->report.descriptor)))
        answer_line(stream, result);
}

/* ---- The run ---- */

/* Print the summary. Returns the exit status. */
static int print_jobs_summary(struct stream *stream, const struct batch_totals *totals, struct error *error)
{
    int status = totals->may_retry > 0 ? STATUS_RETRY : totals->failed > 0 || stream->different > 0 ? STATUS_FAILED : 0;
    if (stream->options->verbose)
        print_choice(totals);
    if (!stream->options->quiet)
        print_summary(totals, "job", "their outputs exist");
    if (totals->failed > 0) {
        error_set(error, ERROR_WORK, "%zu of %zu job%s failed", totals->failed, totals->count,
                  totals->count == 1 ? "" : "s");
        print_error_line(error);
    }
    if (stream->different > 0 && !stream->options->quiet)
        fprintf(stderr, "%zu pair%s differ%s\n", stream->different, stream->different == 1 ? "" : "s",
                stream->different == 1 ? "s" : "");
    if (stream->error.code != ERROR_NONE) {
        error_add_subject(&stream->error, file_input_name(stream->options->jobs_from));
        status = error_join_status(status, print_error_line(&stream->error));
    }
    return error_join_status(status, stream->report_status);
}

/* Do the jobs. Returns the exit status. */
static int run_job_stream(struct stream *stream, struct error *error)
{
    const struct options *options = stream->options;
    const struct job_source source = {
        .next = next_job, .release = release_entry, .context = stream, .in_order = options->ordered};
    const struct batch_callbacks callbacks = {.context = stream, .report = handle_line_event};
    const struct job_settings settings = make_job_settings(options);
    struct batch_request batch = stream->batch;
    struct batch_totals totals;
    if (!report_open(&stream->report, "-", &(struct report_run){0}, error))
        return print_error_line(error);
    batch.recipe = &options->recipe; /* the command line's; each job has another */
    batch.cpu_fallback = true;
    batch.settings = &settings;
    batch.threads = options->threads;
    batch.source = &source;
    batch.report = &stream->report;
    const bool done = batch_run(&batch, &callbacks, &totals, error);
    if (totals.signal != 0) { /* a worker may still wait for a line: release nothing */
        if (!options->quiet && totals.count > 0)
            print_interrupted(&totals, "job", "done", "");
        _exit(128 + totals.signal);
    }
    report_close(&stream->report, NULL);
    return done ? print_jobs_summary(stream, &totals, error) : print_error_line(error);
}

static bool open_lines(struct stream *stream, struct error *error)
{
    const char *path = stream->options->jobs_from;
    stream->lines = (struct line_reader){
        .descriptor = file_is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY),
        .max = LINE_MAX_BYTES};
    return stream->lines.descriptor >= 0 || error_about(error, error_of_errno(errno, ERROR_WORK, ERROR_READ), path,
                                                        "cannot be read: %s", strerror(errno));
}

static void close_stream(struct stream *stream)
{
    for (int i = 0; i < PARALLEL_THREADS_MAX; i++)
        compare_worker_free(stream->pair_workers[i]);
    for (size_t i = 0; i < stream->template_count; i++)
        free_template(stream->templates[i]);
    for (int i = 0; stream->batch.gpus != NULL && i < DEVICES_MAX; i++)
        gpu_start_end(&stream->batch.gpus[i]);
    free(stream->batch.gpus);
    free(stream->templates);
    lines_free(&stream->lines);
    pthread_mutex_destroy(&stream->mutex);
    free(stream);
}

int run_jobs_from(const struct options *options)
{
    struct error error;
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        error_no_memory(&error, "the jobs");
        return print_error_line(&error);
    }
    stream->options = options;
    stream->batch = options->batch;
    stream->batch.gpus = calloc(DEVICES_MAX, sizeof *stream->batch.gpus);
    pthread_mutex_init(&stream->mutex, NULL);
    bool done = stream->batch.gpus != NULL || error_no_memory(&error, "the list of GPUs");
    struct recipe any = options->recipe; /* a line may ask for a GPU, whatever the command line says */
    any.choice = any.choice == CHOICE_CPU ? CHOICE_AUTO : any.choice;
    done = done && open_lines(stream, &error) && find_gpus(options, &any, &stream->batch, &error);
    const int status = done ? run_job_stream(stream, &error) : print_error_line(&error);
    close_stream(stream);
    return status;
}
