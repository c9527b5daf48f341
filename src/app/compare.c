/* SPDX-License-Identifier: MIT
 *
 * --compare: do two images, or the images of two folders, hold the same samples? */
#include "app/messages.h"
#include "app/modes.h"
#include "app/progress.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "base/text.h"
#include "batch/batch.h"
#include "batch/collisions.h"
#include "batch/job.h"
#include "batch/report.h"
#include "codec/codec.h"
#include "compare/pair.h"
#include "compare/pairs.h"
#include "compare/report.h"
#include "compare/rows.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct comparison {
    const struct options *options;
    bool folders;                /* EXPECTED and ACTUAL are folders, not files */
    bool silent;                 /* standard output is for one of the reports, so print nothing else there */
    struct batch_totals updates; /* the totals of --update: only count, done and signal are used */
    size_t kept;                 /* expected files that --update kept, although they are missing in ACTUAL */
    struct compare_settings settings;
    struct image mask;
    struct compare_rows rows;
    struct progress progress;
    struct job *jobs;             /* a job for each row that is compared */
    struct compare_row **pairs;   /* the row of each job */
    int threads;                  /* threads for one pair */
    struct pair_worker **workers; /* by worker number; NULL until a worker compares */
    int worker_count;
    atomic_bool no_new_files;
};

/* ---- What to compare ---- */

static bool is_folder(const char *path)
{
    struct stat status;
    return !file_is_standard(path) && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool check_compare_picture(const struct options *options, const char *expected, const char *actual, const char *picture,
                           struct error *error)
{
    if (!options_check_suffix(options, picture, false, error) || !job_check_output(picture, error))
        return false;
    if (file_same(expected, picture) || file_same(actual, picture))
        return error_set(error, ERROR_USAGE,
                         "%s is one of the images to compare; give another file for the difference picture", picture);
    return true;
}

/* Neither folder may be in the other: --update would take its files for those of the other. Pictures in one of the
 * folders would be compared by the next run. That run also replaces these pictures, which it knows by a comment in
 * each. */
static bool check_folders(const struct options *options, struct error *error)
{
    const char *const folders[2] = {options->expected, options->actual};
    const struct format *format = options->list.format;
    if (options->picture != NULL && format != NULL && !format->holds_comments)
        return error_set(error, ERROR_USAGE,
                         "a %s cannot store a comment, so the next run would not know the pictures in %s; leave "
                         "--format out, or give --format png",
                         format->name, options->picture);
    const bool inside[2] = {file_is_inside(folders[0], folders[1]), file_is_inside(folders[1], folders[0])};
    const bool has_masks = options->compare.mask != NULL && is_folder(options->compare.mask);
    for (int i = 0; i < 2; i++) {
        if (path_is_absent(folders[i]) && !(i == 0 && options->compare.update))
            return error_about(error, ERROR_WORK, folders[i], "does not exist, and %s is a folder; check the path%s",
                               folders[1 - i], i == 0 ? ", or give --update to accept the images" : "");
        if (!is_folder(folders[i]) && !(i == 0 && options->compare.update && access(folders[i], F_OK) != 0))
            return error_about(error, ERROR_WORK, folders[i],
                               "is not a folder, but %s is; compare two files or two folders", folders[1 - i]);
        if (options->picture != NULL && access(options->picture, F_OK) == 0 && !is_folder(options->picture))
            return error_about(error, ERROR_WORK, options->picture,
                               "is not a folder; give a folder for the pictures of differences");
        if (options->picture != NULL && file_is_inside(options->picture, folders[i]))
            return error_set(error, ERROR_USAGE,
                             "%s is in %s, and the next run would compare the pictures in it; give another folder",
                             options->picture, folders[i]);
        if (options->picture != NULL && has_masks && file_is_inside(options->picture, options->compare.mask))
            return error_set(error, ERROR_USAGE, "%s is in the folder of masks %s; give another folder for pictures",
                             options->picture, options->compare.mask);
        if (has_masks && file_is_inside(options->compare.mask, folders[i]))
            return error_set(error, ERROR_USAGE, "%s is in %s, whose images are compared; move the masks out of it",
                             options->compare.mask, folders[i]);
        if (inside[i])
            return error_set(error, ERROR_USAGE, "%s is %s %s, so they cannot be compared; give two separate folders",
                             folders[i], inside[1 - i] ? "the same folder as" : "in", folders[1 - i]);
    }
    return true;
}

/* Check before the work starts that the reports can be written. */
static bool check_reports(struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    const char *const paths[] = {options->report, options->compare.junit, options->compare.html,
                                 options->compare.markdown};
    comparison->silent = options->json;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i] != NULL && file_is_standard(paths[i]))
            comparison->silent = true;
        else if (paths[i] != NULL && !job_check_output(paths[i], error))
            return false;
    return true;
}

static bool make_rows(struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    if (!comparison->folders) {
        if (options->list.files_from != NULL || options->shard.count > 1)
            return error_set(error, ERROR_USAGE, "--%s is for two folders, and %s is a file; leave it out",
                             options->list.files_from != NULL ? "files-from" : "shard", options->expected);
        return (options->picture == NULL ||
                check_compare_picture(options, options->expected, options->actual, options->picture, error)) &&
               pairs_make_one(options->expected, options->actual, options->compare.update, &comparison->rows, error);
    }
    struct warnings warnings = {.options = options};
    const struct pairs_request request = {
        .expected = options->expected,
        .actual = options->actual,
        .masks = options->compare.mask != NULL && is_folder(options->compare.mask) ? options->compare.mask : NULL,
        .updates = options->compare.update,
        .files_from = options->list.files_from,
        .null_separated = options->list.null_separated,
        .shard = options->shard,
        .warn = warn_left_out,
        .context = &warnings,
    };
    return check_folders(options, error) && pairs_make(&request, &comparison->rows, error);
}

/* No report and no lone picture may be written over a file of the run. Pictures in a folder replace only those of
 * earlier runs, which have a mark. */
static bool check_written_files(const struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    const struct compare_rows *rows = &comparison->rows;
    struct other_file *files = calloc(3 * rows->count + 7, sizeof *files);
    size_t count = 0;
    if (files == NULL)
        return error_no_memory(error, "the list of files");
    for (size_t i = 0; i < rows->count; i++) {
        other_files_add(files, &count, rows->rows[i].expected.path, "the expected image", false);
        other_files_add(files, &count, rows->rows[i].actual.path, "the actual image", false);
        other_files_add(files, &count, rows->rows[i].mask.path, "the mask", false);
    }
    other_files_add(files, &count, options->compare.mask, "the mask", false);
    other_files_add(files, &count, options->list.files_from, "the list", false);
    other_files_add(files, &count, comparison->settings.picture, "the picture of the difference", true);
    other_files_add(files, &count, options->report, "the report", true);
    other_files_add(files, &count, options->compare.junit, "the JUnit report", true);
    other_files_add(files, &count, options->compare.markdown, "the Markdown report", true);
    other_files_add(files, &count, options->compare.html, "the page", true);
    const bool done = collisions_check_files(files, count, error);
    free(files);
    return done;
}

struct compare_settings make_compare_settings(const struct options *options)
{
    struct compare_settings settings = {.codec = options->job.codec,
                                        .rules = options->compare.rules,
                                        .picture_format = options->list.format,
                                        .thumbnails = options->compare.html != NULL};
    settings.rules.any_pixels =
        rules_limit_numbers(&settings.rules) && !options_given(options, OPTION(compare.rules.tolerance)) &&
        !options_given(options, OPTION(compare.rules.yiq)) && !options_given(options, OPTION(compare.rules.different));
    settings.codec.subsampling = 0;
    if (settings.codec.quality == CODEC_QUALITY_KEEP) /* a picture of differences has no input to copy it from */
        settings.codec.quality = CODEC_QUALITY;
    return settings;
}

/* Fill in the settings, and read the mask. */
static bool make_settings(struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    struct compare_settings *settings = &comparison->settings;
    *settings = make_compare_settings(options);
    settings->mask_path = options->compare.mask;
    settings->pictures = comparison->folders ? options->picture : NULL;
    settings->picture = comparison->folders ? NULL : options->picture;
    if (options->compare.mask == NULL || (comparison->folders && is_folder(options->compare.mask)))
        return true; /* no mask, or a mask for each row */
    uint8_t *bytes;
    size_t size;
    if (!file_read(options->compare.mask, budget_file_max(), &bytes, &size, NULL, error))
        return false;
    const bool done =
        codec_decode(bytes, size, options->compare.mask, &settings->codec, &comparison->mask, NULL, error);
    free(bytes);
    settings->rules.mask = &comparison->mask;
    return done;
}

/* ---- Answers ---- */

static void warn_row(struct warnings *warnings, const struct compare_row *row)
{
    const struct row_file *const files[2] = {&row->expected, &row->actual};
    for (int i = 0; i < 2; i++)
        if (files[i]->path != NULL)
            warn_other_content(warnings, file_input_name(files[i]->path), files[i]->other_content);
}

/* Print a problem as an error, unless standard output has it. */
static void print_problem(const struct comparison *comparison, const struct compare_row *row)
{
    const struct options *options = comparison->options;
    const bool is_result = row->kind >= ROW_UNREADABLE; /* else the picture could not be written */
    const bool in_all = options->json || (options->report != NULL && file_is_standard(options->report)) ||
                        (options->compare.html != NULL && file_is_standard(options->compare.html));
    if ((!is_result && row->problem == NULL) || in_all || (is_result && (comparison->folders || comparison->silent)))
        return;
    fputs("gpuconv: ", stderr);
    text_print_escaped(stderr,
                       row->problem != NULL ? row->problem : "there is not enough memory for the reason of a failure");
    fputc('\n', stderr);
}

/* Print the line of a row: the result, and for folders also its kind and its name. */
static void print_compared_row(const struct comparison *comparison, const struct compare_row *row)
{
    const struct options *options = comparison->options;
    if (comparison->folders && row->kind == ROW_EQUAL && !options->verbose)
        return;
    if (comparison->folders) {
        printf("%-10s ", row_kind_name(row->kind));
        text_print_escaped(stdout, row->name);
    }
    if (!comparison->folders || (row->kind != ROW_EQUAL && row->kind != ROW_MISSING && row->kind != ROW_NEW)) {
        fputs(comparison->folders ? ": " : "", stdout);
        row_describe(stdout, row, &comparison->settings.rules, text_print_escaped);
    }
    putchar('\n');
}

/* Print all rows. A problem of two files goes to standard error, if no report goes to standard output. */
static void print_compared_rows(const struct comparison *comparison)
{
    const struct compare_rows *rows = &comparison->rows;
    struct warnings warnings = {.options = comparison->options};
    for (size_t i = 0; i < rows->count; i++) {
        const struct compare_row *row = &rows->rows[i];
        warn_row(&warnings, row);
        print_problem(comparison, row);
        if (comparison->options->json)
            row_print_json(stdout, row, &comparison->settings.rules);
        else if (!comparison->silent && (comparison->folders || row->kind < ROW_UNREADABLE))
            print_compared_row(comparison, row);
    }
    print_warning_counts(&warnings);
    if (comparison->folders && !comparison->silent && !comparison->options->quiet) {
        rows_print_counts(stdout, rows);
        putchar('\n');
    }
}

/* Append a line of JSON for each row. */
static bool write_report(const struct comparison *comparison, struct error *error)
{
    struct report report;
    bool done = report_open(&report, comparison->options->report, &(struct report_run){0}, error);
    for (size_t i = 0; done && report.descriptor >= 0 && i < comparison->rows.count; i++) {
        struct text_buffer line;
        FILE *file = text_open(&line);
        if (file != NULL)
            row_print_json(file, &comparison->rows.rows[i], &comparison->settings.rules);
        done = report_append_text(&report, file, &line, error);
    }
    return report_close(&report, done ? error : NULL) && done;
}

static void print_step(void *context, enum update_step step, const struct compare_row *row, const char *why)
{
    static const char *const words[] = {"replaced", "added", "removed", "kept"};
    struct comparison *comparison = context;
    comparison->updates.done++;
    comparison->kept += step == UPDATE_KEPT;
    if (comparison->silent)
        return;
    printf("%-10s ", words[step]);
    text_print_escaped(stdout, comparison->folders ? row->name : comparison->options->expected);
    if (why != NULL)
        printf(": %s", why);
    putchar('\n');
}

/* ---- The run ---- */

static void draw_pair_progress(void *context, const struct batch_totals *totals)
{
    struct comparison *comparison = context;
    struct batch_totals pairs = *totals;
    pairs.only = (struct job_progress){0}; /* a lone pair has no rows of pixels that are counted */
    progress_draw(&comparison->progress, &pairs);
}

static void add_pair_thumbnails(void *context, const struct job_result *result, enum job_event event)
{
    struct comparison *comparison = context;
    if (event == JOB_WRITTEN)
        rows_add_thumbnails(&comparison->rows, comparison->pairs[result->job - comparison->jobs]);
}

static void run_row_comparison(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    struct comparison *comparison = job->context;
    struct compare_row *row = comparison->pairs[job - comparison->jobs];
    struct compare_settings settings = comparison->settings;
    pthread_mutex_lock(&workers->reporting);
    settings.thumbnails = row < comparison->rows.unshown;
    pthread_mutex_unlock(&workers->reporting);
    compare_pair(&comparison->workers[number], workers, comparison->threads, &settings, row);
    result->width = row->expected.width;
    result->height = row->expected.height;
}

/* Make a job of each row that has two files, or one whose thumbnail is wanted. Returns their number. */
static size_t make_jobs(struct comparison *comparison)
{
    struct compare_rows *rows = &comparison->rows;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct compare_row *row = &rows->rows[i];
        if (row->kind != ROW_EQUAL && !comparison->settings.thumbnails)
            continue;
        comparison->jobs[count] =
            (struct job){.input = row->expected.path != NULL ? row->expected.path : row->actual.path,
                         .bytes = row->expected.bytes + row->actual.bytes,
                         .run = run_row_comparison,
                         .context = comparison};
        comparison->pairs[count++] = row;
    }
    if (comparison->settings.thumbnails)
        rows->unshown = rows->rows + rows->count;
    return count;
}

/* Compare the rows that have two readable files, and count the kinds of all. If there are fewer of them than threads, a
 * pair takes several. A signal ends the program here. */
static bool compare_all(struct comparison *comparison, struct error *error)
{
    static const struct recipe none = {.choice = CHOICE_CPU};
    const struct options *options = comparison->options;
    struct compare_rows *rows = &comparison->rows;
    const bool progress = comparison->folders && !options->quiet && isatty(STDERR_FILENO);
    const struct batch_callbacks callbacks = {
        .context = comparison, .report = add_pair_thumbnails, .on_progress = progress ? draw_pair_progress : NULL};
    const int threads = options->threads > 0 ? options->threads : parallel_processors();
    struct batch_request batch = {.recipe = &none,
                                  .workers = options->batch.workers > 0 ? options->batch.workers : threads,
                                  .memory = options->batch.memory};
    struct batch_totals totals;
    batch.jobs = comparison->jobs = calloc(rows->count + 1, sizeof *comparison->jobs);
    comparison->pairs = calloc(rows->count + 1, sizeof(struct compare_row *));
    comparison->worker_count = batch.workers;
    comparison->workers = calloc((size_t)batch.workers, sizeof(struct pair_worker *));
    if (comparison->jobs == NULL || comparison->pairs == NULL || comparison->workers == NULL)
        return error_no_memory(error, "%zu pairs", rows->count);
    batch.count = make_jobs(comparison);
    comparison->settings.no_new_files = &comparison->no_new_files;
    const int pairs = batch.count < (size_t)batch.workers ? (int)batch.count : batch.workers;
    comparison->threads = pairs > 0 && threads > pairs ? threads / pairs : 1;
    const bool done = batch_run(&batch, &callbacks, &totals, error);
    if (totals.signal != 0) { /* threads still run */
        if (progress && write(STDERR_FILENO, "\r\033[K", 4) < 0)
            _exit(STATUS_FAILED);
        if (comparison->folders && !options->quiet && totals.count > 0)
            print_interrupted(&totals, "pair", "compared", "; nothing was reported");
        _exit(128 + totals.signal);
    }
    progress_clear(&comparison->progress);
    for (size_t i = 0; i < rows->count; i++)
        rows->counts[rows->rows[i].kind]++;
    return done;
}

/* Has no signal arrived? Signals that end a program are blocked. */
static bool may_update(void *context)
{
    struct comparison *comparison = context;
    sigset_t signals;
    signals_find_ending(&signals);
    const int number = signals_wait(&signals, 0);
    if (number > 0)
        comparison->updates.signal = number;
    return comparison->updates.signal == 0;
}

/* Copy the actual files to the expected ones. A signal stops this between two files. Returns the exit status. */
static int update(struct comparison *comparison, struct error *error)
{
    const struct update_request request = {.expected = comparison->options->expected,
                                           .actual = comparison->options->actual,
                                           .folders = comparison->folders,
                                           .renews = comparison->options->compare.renews,
                                           .removes = comparison->options->compare.removes,
                                           .file_max = budget_file_max(),
                                           .on_step = print_step,
                                           .may_go_on = may_update,
                                           .context = comparison};
    const size_t *counts = comparison->rows.counts;
    sigset_t signals;
    signals_find_ending(&signals);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    comparison->updates.count = counts[ROW_DIFFERENT] + counts[ROW_SHAPE] + counts[ROW_MISSING] + counts[ROW_NEW] +
                                (request.renews ? counts[ROW_TOLERATED] : 0);
    const bool done = rows_update(&comparison->rows, &request, error);
    if (!done)
        print_error_line(error);
    else if (!request.renews && counts[ROW_TOLERATED] > 0 && !comparison->silent && !comparison->options->quiet)
        printf("left       %zu file%s that differ%s within the tolerance; --update all renews %s\n",
               counts[ROW_TOLERATED], counts[ROW_TOLERATED] == 1 ? "" : "s", counts[ROW_TOLERATED] == 1 ? "s" : "",
               counts[ROW_TOLERATED] == 1 ? "it" : "them");
    if (!may_update(comparison)) {
        print_interrupted(&comparison->updates, "pair", "updated", "; run it again for the others");
        return 128 + comparison->updates.signal;
    }
    return !done ? error_status(error->code) : comparison->kept > 0 ? STATUS_FAILED : 0;
}

/* A wrong path must not look like success. Returns the exit status. */
static int print_no_work(const struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    const bool listed = options->list.files_from != NULL;
    const bool is_new = comparison->rows.counts[ROW_NEW] > 0, accepts = is_new && !file_is_standard(options->actual);
    if (!comparison->folders && is_new)
        error_about(error, ERROR_WORK, options->expected, "does not exist, so nothing was compared; check the path%s%s",
                    accepts ? ", or give --update to accept " : "", accepts ? options->actual : "");
    else if (!comparison->folders)
        error_about(error, ERROR_WORK, options->actual, "does not exist, so nothing was %s; check the path",
                    options->compare.update ? "updated" : "compared");
    else if (options->compare.update)
        error_about(error, ERROR_WORK, options->actual, "contains no image%s, so nothing was updated; check the path%s",
                    listed ? " of the list" : "", listed ? " and the list" : "");
    else
        error_about(error, ERROR_WORK, options->actual,
                    "contains no image%s with the same name as in %s, so nothing was compared; check both paths%s",
                    listed ? " of the list" : "", options->expected, listed ? " and the list" : "");
    return print_error_line(error);
}

/* Print and write the results. Returns the exit status. */
static int report_comparison(struct comparison *comparison, struct error *error)
{
    const struct options *options = comparison->options;
    const struct {
        const char *path;
        report_print *print;
    } reports[] = {{options->compare.junit, junit_print},
                   {options->compare.markdown, markdown_print},
                   {options->compare.html, page_print}};
    const struct report_request request = {.expected = options->expected,
                                           .actual = options->actual,
                                           .rows = &comparison->rows,
                                           .rules = &comparison->settings.rules,
                                           .new_fails = options->compare.new_fails};
    int status = 0, written = 0;
    for (size_t i = 0; i < comparison->rows.count; i++)
        status = error_join_status(status, row_status(&comparison->rows.rows[i], options->compare.new_fails));
    print_compared_rows(comparison);
    if (!write_report(comparison, error))
        written = error_join_status(written, print_error_line(error));
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (reports[i].path != NULL && !rows_write(reports[i].path, reports[i].print, &request, error))
            written = error_join_status(written, print_error_line(error));
    if (comparison->rows.no_work)
        status = print_no_work(comparison, error);
    else if (options->compare.update)
        status = error_join_status(update(comparison, error), status == STATUS_RETRY ? status : 0);
    return error_join_status(status, written);
}

int run_compare(const struct options *options)
{
    struct comparison comparison = {.options = options,
                                    .folders = is_folder(options->expected) || is_folder(options->actual)};
    struct error error;
    const bool done = check_reports(&comparison, &error) && make_settings(&comparison, &error) &&
                      make_rows(&comparison, &error) && check_written_files(&comparison, &error) &&
                      pictures_remove_old(&comparison.settings, &comparison.rows, &error) &&
                      compare_all(&comparison, &error);
    const int status = done ? report_comparison(&comparison, &error) : print_error_line(&error);
    for (int i = 0; comparison.workers != NULL && i < comparison.worker_count; i++)
        compare_worker_free(comparison.workers[i]);
    free(comparison.workers);
    free(comparison.jobs);
    free(comparison.pairs);
    rows_free(&comparison.rows);
    image_free(&comparison.mask);
    return status;
}
