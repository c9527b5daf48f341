/* SPDX-License-Identifier: MIT
 *
 * Which pairs are compared, and which of them keep their thumbnails. */
#include "compare/compare_internal.h"

#include "base/clock.h"
#include "base/workers.h"

#include <stdlib.h>

struct run {
    const struct compare_request *request;
    struct workers workers;
    int threads; /* for one pair */
    struct batch_totals totals;
    atomic_bool no_new_files;
    struct pair_worker *pair_workers; /* by their numbers */
    double start;
    size_t shown;                /* rows with thumbnails */
    struct compare_row *bound;   /* no row from this one on keeps thumbnails; if NULL, no row does */
    struct compare_row *pairs[]; /* the rows to compare */
};

/* Keep the thumbnails that a row got, or release those of the last row that has some. The caller holds the lock. */
static void keep_thumbnails(struct run *run, struct compare_row *row, struct thumbnails *thumbnails)
{
    if (thumbnails == NULL)
        return;
    if (row >= run->bound) {
        thumbnails_free(thumbnails);
        return;
    }
    row->thumbnails = thumbnails;
    if (++run->shown <= COMPARE_THUMBNAILS_MAX)
        return;
    do
        run->bound--;
    while (run->bound->thumbnails == NULL);
    thumbnails_free(run->bound->thumbnails);
    run->bound->thumbnails = NULL;
    run->shown--;
}

/* Compare pairs until there are no more. */
static void compare_pairs(void *context, int number)
{
    struct run *run = context;
    struct workers *workers = &run->workers;
    struct pair_worker *worker = &run->pair_workers[number];
    size_t index;
    *worker = (struct pair_worker){
        .settings = run->request->settings, .workers = workers, .no_new_files = &run->no_new_files};
    pair_worker_open(worker, run->threads);
    while (workers_next(workers, &index)) {
        struct compare_row *row = run->pairs[index];
        pthread_mutex_lock(&workers->reporting);
        worker->wants_thumbnails = row < run->bound;
        pthread_mutex_unlock(&workers->reporting);
        const double start = clock_milliseconds();
        pair_compare(worker, row);
        row->seconds = (clock_milliseconds() - start) / 1000;
        if (!workers_begin_output(workers))
            break; /* its picture may be missing: do not count it */
        pthread_mutex_lock(&workers->reporting);
        keep_thumbnails(run, row, worker->thumbnails);
        worker->thumbnails = NULL;
        run->totals.done++;
        run->totals.work_done += workers->work[index];
        run->totals.pixels += (double)row->expected.width * row->expected.height;
        pthread_mutex_unlock(&workers->reporting);
        workers_end_output(workers);
    }
    pair_worker_close(worker);
}

static double estimate_work(void *context, size_t index)
{
    const struct compare_row *row = ((const struct run *)context)->pairs[index];
    return (double)row->expected.bytes + (double)row->actual.bytes;
}

static void report_progress(void *context)
{
    struct run *run = context;
    run->totals.milliseconds = clock_milliseconds() - run->start;
    run->request->on_progress(run->request->context, &run->totals);
}

/* Choose the rows that have two files, or one whose thumbnail is wanted. */
static void choose_pairs(struct run *run, struct compare_rows *rows)
{
    const bool thumbnails = run->request->settings->thumbnails;
    for (size_t i = 0; i < rows->count; i++) {
        struct compare_row *row = &rows->rows[i];
        if (row->kind == ROW_EQUAL || thumbnails)
            run->pairs[run->totals.count++] = row;
    }
    if (thumbnails && rows->count > 0)
        run->bound = rows->rows + rows->count;
}

static bool run_workers(struct run *run, struct error *error)
{
    const struct compare_request *request = run->request;
    const int threads = request->threads > 0 ? request->threads : parallel_processors();
    const int jobs = request->jobs > 0 ? request->jobs : threads;
    const int wanted = run->totals.count < (size_t)jobs ? (int)run->totals.count : jobs;
    const struct workers_request workers = {
        .count = run->totals.count,
        .workers = workers_limit(wanted),
        .memory = request->memory,
        .context = run,
        .estimate = estimate_work,
        .run = compare_pairs,
        .on_progress = request->on_progress != NULL ? report_progress : NULL,
    };
    run->threads = threads / wanted;
    bool done = workers_open(&run->workers, &workers, error);
    run->totals.work = run->workers.all_work;
    run->pair_workers = calloc((size_t)wanted, sizeof *run->pair_workers);
    if (done && run->pair_workers == NULL)
        done = error_no_memory(error, "%d workers", wanted);
    done = done && workers_run(&run->workers, error);
    if (run->workers.signal != 0)
        return done;
    workers_close(&run->workers);
    free(run->pair_workers);
    return done;
}

bool compare_run(const struct compare_request *request, struct compare_rows *rows, struct batch_totals *totals,
                 struct error *error)
{
    *totals = (struct batch_totals){0};
    struct run *run = calloc(1, sizeof *run + rows->count * sizeof *run->pairs); /* threads may outlive this call */
    if (run == NULL)
        return error_no_memory(error, "%zu pairs", rows->count);
    run->request = request;
    run->start = clock_milliseconds();
    choose_pairs(run, rows);
    const bool done = run->totals.count == 0 || run_workers(run, error);
    if (!run->workers.hangs)
        *totals = run->totals;
    totals->signal = run->workers.signal;
    if (totals->signal != 0)
        return true;
    for (size_t i = 0; done && i < rows->count; i++)
        rows->counts[rows->rows[i].kind]++;
    free(run);
    return done;
}

/* ---- One pair after another ---- */

struct pair_worker *compare_worker_make(struct workers *workers, int threads)
{
    struct pair_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->workers = workers;
    pair_worker_open(worker, threads);
    return worker;
}

void compare_pair(struct pair_worker *worker, const struct compare_settings *settings, struct compare_row *row)
{
    atomic_bool no_new_files = false; /* another pair may have another folder */
    worker->settings = settings;
    worker->no_new_files = &no_new_files;
    pair_compare(worker, row);
    worker->no_new_files = NULL;
}

void compare_worker_free(struct pair_worker *worker)
{
    if (worker != NULL)
        pair_worker_close(worker);
    free(worker);
}
