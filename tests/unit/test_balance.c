/* SPDX-License-Identifier: MIT
 *
 * How batches share their images, in a simulation of machines: the automatic choice beside each backend alone. */
#include "pipeline/balance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* In seconds, for images of the mean size; `cpu` is of a worker, and `gpu` of one GPU. A worker loads and writes an
 * image of a GPU in `host`, and an image that has a GPU for itself takes LATENCY times `gpu`. */
struct machine {
    const char *name;
    int workers, gpus;
    double cpu, gpu, host, start, end;
};

/* The first five are as measured on 16 threads of a Xeon beside an H200, with photos of 4 to 15 Mpixel. */
static const struct machine machines[] = {
    {"PNG gaussian", 16, 1, 0.46, 0.0017, 0.004, 0.28, 0.08},
    {"PNG sharpen", 16, 1, 0.285, 0.0019, 0.004, 0.28, 0.08},
    {"JPEG resize", 16, 1, 0.078, 0.0003, 0.002, 0.28, 0.08},
    {"JPEG gaussian", 16, 1, 0.19, 0.0004, 0.002, 0.28, 0.08},
    {"JPEG 500 x 375", 16, 1, 0.0028, 0.00007, 0.0005, 0.28, 0.08},
    {"4 cores, PNG sharpen", 4, 1, 0.155, 0.0019, 0.004, 0.28, 0.08},
    {"64 cores, small GPU", 64, 1, 0.155, 0.02, 0.004, 0.35, 0.1},
    {"64 cores, middling GPU", 64, 1, 0.155, 0.004, 0.004, 0.28, 0.08},
    {"32 cores, two GPUs", 32, 2, 0.235, 0.0017, 0.004, 0.35, 0.12},
    {"laptop", 8, 1, 0.3, 0.03, 0.02, 0.2, 0.05},
};

static const int counts[] = {2, 5, 17, 19, 40, 95, 340, 3000};

static const double TICK = 0.025, DRIVER_END = 0.02;

/* A worker decodes for this share of its time for an image, and has filtered no row. */
static const double DECODING = 1 / 3.0;

/* Workers that compute while the GPUs start make the start longer by up to this share of it, as they did on 16 threads
 * beside an H200. */
static const double DELAY = 0.5;

enum { WORKERS = 64, GPUS = 2, LATENCY = 6, CPU_ALONE = 0, GPU_ALONE, AUTOMATIC };

struct worker {
    double free; /* when it is */
    double size;
    bool has_image, on_gpu;
    double begun;
    struct balance_image image;
};

/* The size of image NUMBER beside the mean: from 0.5 to 1.8, the largest first. */
static double size_of(int number, int count)
{
    return 1.8 - 1.3 * (number + 0.5) / count;
}

struct simulation {
    const struct machine *machine;
    struct balance balance;
    struct worker workers[WORKERS];
    double gpu_free[GPUS];
    bool is_prepared, has_begun, is_ready; /* the GPUs; their driver starts at 0 */
    double began, ready;                   /* when they began to start, and are ready */
    double left;                           /* the size of all images that nobody has begun */
};

/* A GPU gets the worker's image. */
static void begin_on_gpu(struct simulation *s, struct worker *worker, double now)
{
    const struct machine *machine = s->machine;
    double *gpu = &s->gpu_free[s->gpu_free[1] < s->gpu_free[0] && machine->gpus > 1];
    worker->on_gpu = true;
    worker->begun = fmax(now, s->ready);
    const double loaded = worker->begun + worker->size * machine->host;
    *gpu = fmax(*gpu, loaded) + worker->size * machine->gpu;
    worker->free = fmax(*gpu, loaded + LATENCY * worker->size * machine->gpu);
    balance_begin_gpu(&s->balance, worker->begun);
}

static void begin_start(struct simulation *s, double now)
{
    s->has_begun = true;
    s->began = now;
    const double whole = s->machine->start * (1 + DELAY * (s->balance.busy - 1.0) / s->balance.workers);
    s->ready = now + (s->is_prepared ? fmax(whole / 2, whole - now) : whole);
}

/* A worker computes while the GPUs start. */
static void delay_start(struct simulation *s)
{
    const double longest = s->began + (1 + DELAY) * s->machine->start;
    s->ready = fmin(longest, s->ready + DELAY * s->machine->start / s->balance.workers);
}

/* Look at what workers do now: move it if GPUs are ready, and let them start if the rest will take longer. */
static void look(struct simulation *s, double now)
{
    s->balance.prepared = s->is_prepared ? now : 0;
    for (int i = 0; i < s->balance.workers; i++) {
        struct worker *worker = &s->workers[i];
        const double seconds = now - worker->begun;
        if (!worker->has_image || worker->on_gpu || worker->free <= now)
            continue;
        worker->image.left = s->left / worker->size + 1;
        const bool is_known = seconds > fmax(1.5 * TICK, (worker->free - worker->begun) * DECODING); /* by two looks */
        const double rest = is_known ? worker->free - now : -1;
        if (s->is_ready && balance_moves(&s->balance, &worker->image, seconds, rest))
            begin_on_gpu(s, worker, now);
        else if (!s->has_begun && balance_starts(&s->balance, &worker->image, seconds, rest))
            begin_start(s, now);
    }
}

/* The worker that is free next, or NULL after the last image. */
static struct worker *find_next(struct simulation *s)
{
    struct worker *next = &s->workers[0];
    for (int i = 1; i < s->balance.workers; i++)
        if (s->workers[i].free < next->free)
            next = &s->workers[i];
    return isinf(next->free) ? NULL : next;
}

static void end_image(struct simulation *s, struct worker *worker)
{
    const double now = worker->free;
    worker->has_image = false;
    s->balance.busy--;
    if (worker->on_gpu)
        balance_end_gpu(&s->balance, &worker->image, now - worker->begun, now, true);
    else
        balance_end_cpu(&s->balance, &worker->image, now - worker->begun);
}

/* The model's estimates of a worker and of a GPU are wrong by the factors. */
static struct balance_image estimate(const struct simulation *s, double size, const double factors[2])
{
    const struct machine *machine = s->machine;
    return (struct balance_image){
        .seconds = {.cpu = factors[0] * size * machine->cpu,
                    .cuda = factors[1] * size * fmax(machine->gpu / machine->gpus, machine->host / machine->workers)},
        .left = s->left / size};
}

/* Let the worker begin an image of SIZE, or wait for the GPUs: returns false. */
static bool begin_image(struct simulation *s, struct worker *worker, double size, int how, const double factors[2])
{
    const struct machine *machine = s->machine;
    const double now = worker->free;
    worker->size = size;
    worker->image = estimate(s, size, factors);
    s->left -= size;
    s->balance.prepared = s->is_prepared ? now : 0;
    s->balance.busy++;
    if (how == AUTOMATIC && !s->has_begun && balance_starts(&s->balance, &worker->image, 0, -1))
        begin_start(s, now);
    if (how == AUTOMATIC && s->has_begun && !s->is_ready && balance_waits(&s->balance, &worker->image)) {
        s->balance.busy--;
        s->left += size;
        worker->free = s->ready;
        return false;
    }
    const bool takes_gpu = s->is_ready && balance_moves(&s->balance, &worker->image, 0, -1);
    worker->has_image = true;
    worker->on_gpu = false;
    worker->begun = now;
    worker->free = now + size * machine->cpu;
    if (how == GPU_ALONE || takes_gpu)
        begin_on_gpu(s, worker, now);
    else if (s->has_begun && !s->is_ready)
        delay_start(s);
    return true;
}

/* The seconds of a batch of COUNT images. */
static double simulate(const struct machine *machine, int count, int how, const double factors[2])
{
    struct simulation s = {.machine = machine,
                           .balance = {.workers = machine->workers < count ? machine->workers : count, .start = 0.25},
                           .ready = how == GPU_ALONE ? machine->start : INFINITY};
    double end = 0, tick = TICK;
    int next = 0;
    for (int i = 0; i < count; i++)
        s.left += size_of(i, count);
    const struct balance_image first = estimate(&s, size_of(0, count), factors);
    if (how == AUTOMATIC && balance_starts(&s.balance, &first, 0, -1))
        begin_start(&s, 0);
    else if (how == AUTOMATIC)
        s.is_prepared = balance_prepares(&s.balance, &first);
    for (struct worker *worker; (worker = find_next(&s)) != NULL;) {
        if (how == AUTOMATIC && !s.is_ready && worker->free >= s.ready) {
            s.is_ready = true;
            look(&s, s.ready);
            continue;
        }
        if (how == AUTOMATIC && worker->free > tick) {
            look(&s, tick);
            tick += TICK;
            continue;
        }
        if (worker->has_image) {
            end = worker->free;
            end_image(&s, worker);
        } else if (next < count) {
            if (how == AUTOMATIC)
                look(&s, worker->free);
            next += begin_image(&s, worker, size_of(next, count), how, factors);
        } else {
            if (how == AUTOMATIC)
                look(&s, worker->free);
            worker->free = INFINITY;
        }
    }
    return end + (s.has_begun || how == GPU_ALONE ? machine->end : s.is_prepared ? DRIVER_END : 0);
}

/* The model's estimates may be right, or wrong by the factor 2. Most of the longest cases are machines whose GPUs take
 * longer to start than is expected. */
static void test_both_take_little_longer_than_the_better(void **state)
{
    (void)state;
    static const double factors[] = {1, 0.5, 2};
    const double worst = 1.65, mean = 1.041, usual = 1.1, share = 0.151; /* at most this share is above `usual` */
    double sum = 0;
    int cases = 0, above = 0;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const struct machine *machine = &machines[m];
            const double cpu = simulate(machine, counts[c], CPU_ALONE, factors);
            const double gpu = simulate(machine, counts[c], GPU_ALONE, factors), better = fmin(cpu, gpu);
            for (int f = 0; f < 9; f++) {
                const double wrong[] = {factors[f % 3], factors[f / 3]};
                const double both = simulate(machine, counts[c], AUTOMATIC, wrong);
                sum += both / better;
                cases++;
                above += both > usual * better;
                if (both > worst * better)
                    fail_msg("%s, %d images, factors %g and %g: %.3f s, the CPU %.3f s, a GPU %.3f s", machine->name,
                             counts[c], wrong[0], wrong[1], both, cpu, gpu);
            }
        }
    if (sum > mean * cases || above > share * cases)
        fail_msg("mean %.3f, %d of %d above %g", sum / cases, above, cases, usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_take_little_longer_than_the_better)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
