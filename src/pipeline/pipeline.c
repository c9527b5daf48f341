/* SPDX-License-Identifier: MIT
 *
 * The choice of the backend, the plans, and what is kept between images: see pipeline.h. stream.c and cuda.c do the
 * work. */
#include "pipeline/pipeline_internal.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/vector/instruction_sets.h"
#include "image/linear.h"
#include "kernels/device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Checks ---- */

/* Check that the named variant, if there is one, accepts the filters and the sample type. */
static bool check_named_variant(const struct recipe *recipe, enum sample sample, struct error *error)
{
    struct plan plan;
    for (size_t i = 0; recipe->variant != NULL && i < recipe->chain->count; i++)
        if (!variant_plan(&plan, &recipe->chain->filters[i], recipe->border, sample, recipe->variant, error))
            return false;
    return true;
}

/* Can the recipe resize a picture of BITS? Black borders weigh alpha in another way, which needs other planes. Pillow's
 * rule is for levels of 8 bits. */
static bool check_resize(const struct recipe *recipe, int bits, struct error *error)
{
    bool has_border = false, repeats_edge = false;
    for (size_t i = 0; i < recipe->chain->count; i++) {
        const struct filter *filter = &recipe->chain->filters[i];
        has_border |= filter_kind(filter)->has_border;
        repeats_edge |= filter_kind(filter)->repeats_edge;
        if (filter_is_pillow(filter) && (bits != 8 || recipe->linear))
            return error_set(error, ERROR_USAGE,
                             "%s resizes samples of 8 bits, as Pillow does, and %s; %s, or choose another kernel",
                             filter->name, bits == 8 ? "linear light has 16 bits" : "these samples have more",
                             bits == 8 ? "leave --linear out" : "give --depth 8");
    }
    return recipe->border != BORDER_ZERO || !has_border || !repeats_edge ||
           error_set(error, ERROR_USAGE,
                     "the border zero cannot be combined with resize in one chain; choose another border, or resize in "
                     "a separate run");
}

/* Only jobs know a picture's file. */
static bool check_colours(const struct recipe *recipe, struct error *error)
{
    return !chain_needs_colours(recipe->chain) ||
           error_set(error, ERROR_USAGE, "to-srgb needs the profile of a file, and this image has none; leave it out");
}

/* Does an image of CHANNELS have all that the recipe needs? Jobs have widened theirs. */
static bool check_channels(const struct recipe *recipe, int channels, struct error *error)
{
    int working, result;
    chain_channels(recipe->chain, channels, &working, &result);
    return working == channels ||
           error_set(error, ERROR_USAGE,
                     "a filter makes colours from grey, and the image has %d channel%s; give an image of %d channels",
                     channels, text_plural(channels), working);
}

bool pipeline_check(const struct recipe *recipe, struct error *error)
{
    const struct image shape = {.channels = 3, .bits = 8};
    return check_resize(recipe, shape.bits, error) &&
           check_named_variant(recipe, recipe_work(recipe, recipe->alpha, &shape, 1).sample, error);
}

bool pipeline_check_gpu(const struct recipe *recipe, const struct resources *resources, struct error *error)
{
    if (recipe->choice != CHOICE_CUDA)
        return true;
    struct error reason;
    if (gpu_check(resources, &reason))
        return true;
    return error_set(error, reason.code, "no GPU can be used: %s; --backend cpu works on every machine",
                     reason.message);
}

int pipeline_gpus(void)
{
    int count;
    struct error error;
    return pipeline_count_gpus(&count, &error) ? count : 0;
}

/* ---- The choice of the backend ---- */

static enum gpu_codec gpu_codec_of(enum end_kind end)
{
    return end == END_JPEG ? GPU_CODEC_JPEG : end == END_PNG ? GPU_CODEC_PNG : GPU_CODEC_NONE;
}

struct work pipeline_work(const struct pipeline_run *run, enum alpha alpha)
{
    struct work work =
        recipe_work(run->recipe, alpha, &run->input.shape, thread_pool_threads(run->pipeline->resources->pool));
    work.full_width = run->input.full_width;
    work.full_height = run->input.full_height;
    return work;
}

/* The work for the cost model: a single image, or one of a batch. */
static struct total_work total_work(const struct pipeline_run *run)
{
    const struct pipeline_input *input = &run->input;
    const struct batch_choice *batch = run->pipeline->resources->batch;
    return (struct total_work){
        .image = pipeline_work(run, run->effective_alpha),
        .gpu_decodes = gpu_codec_of(input->gpu_decodes),
        .gpu_encodes = gpu_codec_of(input->gpu_encodes),
        .workers = batch != NULL ? batch->balance.workers : 0,
        .gpus = batch != NULL ? (int)batch->gpu_count : 0,
    };
}

/* How long that is expected to take. */
static struct backend_seconds expected_seconds(const struct pipeline_run *run, const struct total_work *work)
{
    const struct filter_chain *chain = run->recipe->chain;
    return cost_backends(chain->filters, chain->count, work);
}

/* Choose for a single image. Where the CPU is expected to be faster, CUDA is not started at all. */
static bool choose_for_image(struct pipeline_run *run)
{
    const struct resources *resources = run->pipeline->resources;
    const struct total_work work = total_work(run);
    const struct backend_seconds seconds = expected_seconds(run, &work);
    const double cpu = 1e3 * seconds.cpu, cuda = 1e3 * seconds.cuda;
    const bool is_faster = cuda < cpu;
    bool uses_gpu = false;
    if (is_faster) {
        gpu_start_begin(resources->start);
        uses_gpu = gpu_check(resources, &run->pipeline->why);
        phases_end(run->phases, uses_gpu || pipeline_may_have_gpu() ? PHASE_DRIVER : PHASE_PLAN);
    }
    if (uses_gpu)
        error_set(&run->pipeline->why, ERROR_NONE,
                  "a GPU is expected to take %.1f ms with its start-up, the CPU %.1f ms", cuda, cpu);
    else if (!pipeline_may_have_gpu())
        error_set(&run->pipeline->why, ERROR_NONE, "%s; the CPU is expected to take %.1f ms",
                  pipeline_has_cuda ? "there is no GPU" : "this gpuconv was built without CUDA", cpu);
    else if (!is_faster) /* else gpu_check has said why */
        error_set(&run->pipeline->why, ERROR_NONE,
                  "the CPU is expected to take %.1f ms, a GPU %.1f ms with its start-up", cpu, cuda);
    return uses_gpu;
}

static double clock_seconds(void)
{
    return clock_milliseconds() / 1e3;
}

static void start_gpus(struct batch_choice *batch)
{
    batch->uses_gpus = true;
    batch->began_start = clock_seconds();
    for (size_t i = 0; i < batch->gpu_count; i++)
        gpu_start_begin(&batch->gpus[i]);
}

static void prepare_gpus(struct batch_choice *batch)
{
    batch->prepared = clock_seconds();
    for (size_t i = 0; i < batch->gpu_count; i++)
        gpu_start_prepare(&batch->gpus[i]);
}

/* Choose for one image of a stream. Nobody knows how many follow, so GPUs start when they would have saved as much time
 * as their start takes. At worst this takes twice as long as the best choice (the ski-rental rule). The images that are
 * at work now share the CPU. Lock batch->mutex before. */
static enum choice choose_in_stream(struct pipeline_run *run)
{
    struct batch_choice *batch = run->pipeline->resources->batch;
    struct total_work work = total_work(run);
    const int busy = run->input.busy > 0 ? run->input.busy : 1;
    work.workers = busy < work.workers ? busy : work.workers;
    const struct backend_seconds one = expected_seconds(run, &work);
    const double saved = fmax(0, one.cpu / work.workers - one.cuda), start = cost_start(&work);
    const bool has_started = atomic_load(&run->pipeline->resources->start->step) == GPU_CONTEXT;
    if (!batch->uses_gpus) {
        batch->lost += saved - run->counted;
        run->counted = saved;
        batch->uses_gpus = saved > 0 && (has_started || batch->lost >= start);
        if (batch->uses_gpus && has_started)
            error_set(&batch->why, ERROR_NONE, "a GPU has started for jobs that ask for it");
        else
            error_set(&batch->why, ERROR_NONE,
                      "a GPU %swould have saved %.2f s, and its start is expected to take %.2f s",
                      batch->uses_gpus ? "began to start when it " : "", batch->lost, start);
        if (batch->uses_gpus)
            start_gpus(batch);
    }
    return batch->uses_gpus && saved > 0 ? CHOICE_CUDA : CHOICE_CPU;
}

/* ---- A batch with an end ---- */

static bool is_ready(const struct pipeline_run *run)
{
    return atomic_load(&run->pipeline->resources->start->step) == GPU_CONTEXT;
}

/* Let the GPUs start, if the images that are left then end earlier. A worker may have had this one for SECONDS, and
 * need it for the REST. */
static void start_if_useful(struct batch_choice *batch, const struct pipeline_run *run, double seconds, double rest)
{
    batch->balance.prepared = batch->prepared > 0 ? clock_seconds() - batch->prepared : 0;
    const struct backend_seconds all = balance_expect(&batch->balance, &run->placed, seconds, rest);
    if (batch->uses_gpus)
        return;
    if (balance_starts(&batch->balance, &run->placed, seconds, rest)) {
        error_set(&batch->why, ERROR_NONE,
                  "a GPU is expected to take %.2f s of the rest with its start-up, the CPU %.2f s", all.cuda, all.cpu);
        start_gpus(batch);
    } else if (pipeline_may_have_gpu()) {
        error_set(&batch->why, ERROR_NONE,
                  "a GPU would be expected to take %.2f s of the rest with its start-up, the CPU takes %.2f s",
                  all.cuda, all.cpu);
    }
}

/* The seconds that a worker still needs for the image, by the rows that it has filtered since they were first seen.
 * Less than 0 if that is not known. */
static double expect_rest(struct pipeline_run *run, double now)
{
    enum { LEAST = 50 }; /* thousandths of the rows */
    const int done = atomic_load(&run->pipeline->progress_permille);
    if (done < run->first_permille || run->first_permille <= 0) {
        run->first_permille = done;
        run->first_seen = now;
    }
    const int more = done - run->first_permille;
    return run->first_permille > 0 && more >= LEAST ? (now - run->first_seen) * (1000 - done) / more : -1;
}

/* As pipeline_look, unless that was done a moment ago. Lock batch->mutex before. */
static void look(struct batch_choice *batch, double now)
{
    const double moment = 2e-3; /* seconds: many small images end in it */
    if (now < batch->looked + moment)
        return;
    batch->looked = now;
    for (struct pipeline_run *run = batch->running; run != NULL; run = run->next) {
        const double seconds = now - run->began, rest = expect_rest(run, now);
        if (run->on_gpu)
            continue;
        run->placed.left = 1 + batch->left / fmax(1, run->input.work);
        start_if_useful(batch, run, seconds, rest);
        if (!atomic_load(&run->may_move) || !is_ready(run) ||
            !balance_moves(&batch->balance, &run->placed, seconds, rest))
            continue;
        run->on_gpu = true;
        balance_begin_gpu(&batch->balance, now);
        __atomic_store_n(&run->pipeline->moves, 1, __ATOMIC_RELAXED);
    }
}

void pipeline_look(struct batch_choice *batch)
{
    pthread_mutex_lock(&batch->mutex);
    look(batch, clock_seconds());
    pthread_mutex_unlock(&batch->mutex);
}

/* Wait until the GPU is ready, if that is better than to do the image, but not for much longer than a start should
 * take. One worker waits anyway where the workers take all processors: the start needs one, also that of the driver
 * alone. Lock batch->mutex before. */
static void wait_for_gpu(struct batch_choice *batch, const struct pipeline_run *run)
{
    struct gpu_start *start = run->pipeline->resources->start;
    const double left = batch->began_start + 2 * batch->balance.start - clock_seconds();
    if (!batch->takes_all || is_ready(run) || (!batch->uses_gpus && batch->prepared <= 0))
        return;
    const bool is_first = !atomic_flag_test_and_set(&start->is_awaited);
    if (!is_first && (!batch->uses_gpus || left <= 0 || !balance_waits(&batch->balance, &run->placed)))
        return;
    pthread_mutex_unlock(&batch->mutex);
    if (is_first)
        gpu_start_wait(start, GPU_CONTEXT, NULL);
    else
        gpu_start_wait_briefly(start, left);
    pthread_mutex_lock(&batch->mutex);
}

/* Estimate the image's costs, and let the GPUs start if that pays off. Lock batch->mutex before. */
static void place(struct pipeline_run *run)
{
    struct batch_choice *batch = run->pipeline->resources->batch;
    const struct total_work work = total_work(run);
    run->work = work.image;
    run->placed = (struct balance_image){.kind = work.gpu_decodes * GPU_CODECS + work.gpu_encodes,
                                         .seconds = expected_seconds(run, &work),
                                         .left = 1 + batch->left / fmax(1, run->input.work),
                                         .is_grouped = batcher_takes(run)};
    batch->balance.start = cost_start(&work);
    start_if_useful(batch, run, 0, -1);
}

void pipeline_expect(struct pipeline_run *run)
{
    struct batch_choice *batch = run->pipeline->resources->batch;
    run->effective_alpha = recipe_expected_alpha(run->recipe, false);
    pthread_mutex_lock(&batch->mutex);
    place(run);
    if (!batch->uses_gpus && balance_prepares(&batch->balance, &run->placed))
        prepare_gpus(batch);
    pthread_mutex_unlock(&batch->mutex);
}

/* Choose for one image of a batch with an end. Lock batch->mutex before. */
static bool choose_with_end(struct pipeline_run *run)
{
    struct batch_choice *batch = run->pipeline->resources->batch;
    run->began = clock_seconds();
    atomic_store(&run->pipeline->progress_permille, -1);
    if (!run->is_running) {
        run->is_running = true;
        run->next = batch->running;
        batch->running = run;
        batch->balance.busy++;
    }
    place(run);
    wait_for_gpu(batch, run);
    run->began = clock_seconds();
    look(batch, run->began);
    run->first_permille = 0;
    run->pipeline->moves = 0;
    const bool on_gpu = batch->uses_gpus && is_ready(run) && balance_moves(&batch->balance, &run->placed, 0, -1);
    if (on_gpu && !run->on_gpu)
        balance_begin_gpu(&batch->balance, run->began);
    else if (!on_gpu && run->on_gpu)
        batch->balance.on_gpu--;
    run->on_gpu = on_gpu;
    return on_gpu;
}

void pipeline_end(struct pipeline_run *run, bool done)
{
    if (!run->is_running)
        return;
    struct batch_choice *batch = run->pipeline->resources->batch;
    const double now = clock_seconds();
    struct pipeline_run **at = &batch->running;
    pthread_mutex_lock(&batch->mutex);
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run->is_running = false;
    batch->balance.busy--;
    if (run->on_gpu)
        balance_end_gpu(&batch->balance, &run->placed, now - run->began, now, done && run->backend == BACKEND_CUDA);
    else if (done)
        balance_end_cpu(&batch->balance, &run->placed, now - run->began);
    look(batch, now);
    pthread_mutex_unlock(&batch->mutex);
}

/* Choose for one image of a batch. */
static bool choose_in_batch(struct pipeline_run *run)
{
    struct batch_choice *batch = run->pipeline->resources->batch;
    pthread_mutex_lock(&batch->mutex);
    const bool has_end = batch->images > 0 || batch->work > 0;
    const bool uses_gpu = has_end ? choose_with_end(run) : choose_in_stream(run) == CHOICE_CUDA && is_ready(run);
    pthread_mutex_unlock(&batch->mutex);
    return uses_gpu;
}

/* What the recipe wishes, where there may be a GPU. */
static enum choice find_choice(const struct pipeline_run *run)
{
    return run->pipeline->resources->cpu_only ? CHOICE_CPU : run->recipe->choice;
}

/* Choose the backend where alpha takes part as ALPHA says. */
static void choose_backend(struct pipeline_run *run, enum alpha alpha)
{
    const struct resources *resources = run->pipeline->resources;
    const enum choice choice = find_choice(run);
    bool uses_gpu = choice != CHOICE_CPU && run->pipeline->fallback.code == ERROR_NONE;
    run->effective_alpha = alpha;
    error_set(&run->pipeline->why, ERROR_NONE, "asked for");
    if (uses_gpu && choice == CHOICE_CUDA)
        gpu_start_begin(resources->start);
    else if (uses_gpu)
        uses_gpu = resources->batch != NULL ? choose_in_batch(run) : choose_for_image(run);
    run->backend = uses_gpu ? BACKEND_CUDA : BACKEND_CPU;
}

void pipeline_choose(struct pipeline_run *run)
{
    choose_backend(run, recipe_expected_alpha(run->recipe, false));
}

/* Can a GPU take an image as large as this, and what the filters make of it? Kernels count its samples in int. */
static bool check_gpu_size(const struct pipeline_run *run, struct error *error)
{
    const size_t max = (size_t)1 << 30;
    struct image shape = run->input.shape;
    bool fits = image_samples(&shape) <= max;
    for (size_t i = 0; fits && i < run->recipe->chain->count; i++)
        fits = !recipe_resize_by(run->recipe, &run->work, i, &shape, NULL) || image_samples(&shape) <= max;
    return fits || error_set(error, ERROR_WORK,
                             "%d x %d x %d samples are too many for a GPU: it takes at most %zu; give "
                             "--backend cpu",
                             shape.width, shape.height, shape.channels, max);
}

/* May the CPU take over from a GPU? */
static bool may_fall_back(const struct pipeline_run *run)
{
    return run->recipe->choice == CHOICE_AUTO || run->pipeline->resources->cpu_fallback;
}

/* Make the plans while the GPU starts, and open it. */
static bool plan_for_gpu(struct pipeline_run *run, struct error *error)
{
    if (run->pipeline->device == NULL) {
        if (!gpu_check(run->pipeline->resources, error))
            return false;
        phases_end(run->phases, PHASE_DRIVER);
    }
    if (!plans_make(run, BACKEND_CUDA, error))
        return false;
    phases_end(run->phases, PHASE_PLAN);
    return batcher_takes(run) || gpu_open(run, error);
}

/* Let the CPU take over from the GPU, which failed for the reason in ERROR. */
static bool fall_back_to_cpu(struct pipeline_run *run, struct error *error)
{
    run->pipeline->fallback = *error;
    gpu_close(run->pipeline, false);
    phases_end(run->phases, PHASE_CONTEXT);
    return plans_make(run, BACKEND_CPU, error);
}

/* ---- A pipeline ---- */

void pipeline_open(struct pipeline *pipeline, const struct resources *resources)
{
    *pipeline = (struct pipeline){.resources = resources,
                                  .device = resources->shared,
                                  .memory[MEMORY_LOCKED].is_locked = true,
                                  .memory[MEMORY_LOCKED_TABLE].is_locked = true,
                                  .memory[MEMORY_OTHER_LOCKED_TABLE].is_locked = true};
}

struct linear *pipeline_linear(struct pipeline *pipeline, struct error *error)
{
    if (pipeline->tables == NULL)
        pipeline->tables = linear_allocate(error);
    return pipeline->tables;
}

/* Plan the filters where alpha takes part as ALPHA says. */
static bool plan_filters(struct pipeline_run *run, enum alpha alpha, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    const struct image *shape = &run->input.shape;
    bool done = false;
    if (alpha != run->effective_alpha)
        choose_backend(run, alpha);
    atomic_store(&run->pipeline->progress_permille, -1);
    run->work = pipeline_work(run, alpha);
    if (!check_resize(recipe, shape->bits, error) || !check_colours(recipe, error) ||
        !check_channels(recipe, run->images < 0 ? -run->images : shape->channels, error))
        return false;
    if (!check_named_variant(recipe, run->work.sample, error)) { /* not even the CPU may take over */
        if (shape->bits == 8 && !recipe->linear && check_named_variant(recipe, SAMPLE_U8, NULL))
            error_set(
                error, ERROR_USAGE,
                "the variant %s takes 8 bits only, which are too few for a translucent picture; give --alpha keep, "
                "or leave --variant out",
                recipe->variant->name);
        return false;
    }
    if (find_choice(run) != CHOICE_CPU &&
        !check_gpu_size(run, &run->pipeline->why)) { /* the next image may be smaller */
        *error = run->pipeline->why;
        done = may_fall_back(run) && plans_make(run, BACKEND_CPU, error);
    } else if (run->backend == BACKEND_CPU) {
        done = plans_make(run, BACKEND_CPU, error);
    } else if (plan_for_gpu(run, error)) {
        done = true;
    } else if (recipe->choice == CHOICE_AUTO && run->pipeline->resources->batch == NULL) { /* no failure of the image */
        run->pipeline->why = *error;
        gpu_close(run->pipeline, false);
        done = plans_make(run, BACKEND_CPU, error);
    } else {
        done = may_fall_back(run) && fall_back_to_cpu(run, error);
    }
    phases_end(run->phases, PHASE_PLAN);
    return done;
}

bool pipeline_plan(struct pipeline_run *run, const struct image *image, struct error *error)
{
    const struct recipe *recipe = run->recipe;
    /* Floats count as translucent. */
    const enum alpha opaque = recipe_expected_alpha(recipe, true), translucent = recipe_expected_alpha(recipe, false);
    const bool may_be_opaque = opaque != translucent && image_has_alpha(image) && image->bits < 32 &&
                               (image->samples == NULL || image_is_opaque(image));
    run->input.shape = *image;
    run->linear = recipe->linear ? run->pipeline->tables : NULL;
    run->expects_opaque = may_be_opaque && image->samples == NULL;
    return plan_filters(run, may_be_opaque ? opaque : translucent, error);
}

bool pipeline_describe_hardware(enum backend backend, int device, char *text, size_t size)
{
    struct device_info info;
    struct error error;
    enum instruction_set set;
    if (backend == BACKEND_CUDA && pipeline_describe_gpu(device, &info, &error))
        snprintf(text, size, "%d: %s, compute capability %d.%d", device, info.name, info.capability / 10,
                 info.capability % 10);
    else if (backend == BACKEND_CPU && instruction_set_find(&set, &error)) /* only `reference` works without one */
        snprintf(text, size, "instruction set %s", instruction_set_name(set));
    else
        return false;
    return true;
}

static enum run_result run_on_cpu(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    atomic_store(&run->translucent, false);
    atomic_store(&run->may_move, in->kind == END_ROWS && run->input.gpu_decodes != END_HOST);
    const bool done = stream_image(run, in, out, error);
    atomic_store(&run->may_move, false);
    if (done)
        return RUN_DONE;
    if (__atomic_load_n(&run->pipeline->moves, __ATOMIC_RELAXED) != 0)
        return RUN_MOVES;
    return atomic_load(&run->translucent) ? RUN_TRANSLUCENT : RUN_FAILED;
}

static enum run_result run_once(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    bool is_intact = true;
    if (run->expects_opaque && in->kind == END_HOST && !image_is_opaque(in->image))
        return RUN_TRANSLUCENT;
    if (run->backend == BACKEND_CPU)
        return run_on_cpu(run, in, out, error);
    const enum run_result result = run_on_gpu(run, in, out, &is_intact, error);
    const bool falls_back = result == RUN_FAILED && is_intact && may_fall_back(run);
    return falls_back && fall_back_to_cpu(run, error) ? RUN_FELL_BACK : result;
}

bool pipeline_run(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error)
{
    enum run_result result;
    do {
        if (run->set_ends != NULL && !run->set_ends(run->context, error))
            return false;
        result = run_once(run, in, out, error);
        run->needs_samples |= result == RUN_NEEDS_SAMPLES;
        if (result == RUN_TRANSLUCENT) {
            phases_end(run->phases, PHASE_DECODE);
            run->expects_opaque = false;
            if (!plan_filters(run, run->recipe->alpha, error))
                return false;
        } else if (result == RUN_MOVES) {
            phases_end(run->phases, PHASE_CONVOLVE);
            run->pipeline->moves = 0;
            run->backend = BACKEND_CUDA;
            if (!plan_filters(run, run->effective_alpha, error))
                return false;
        }
    } while (result > RUN_FAILED);
    return result == RUN_DONE;
}

void pipeline_leave_gpu(struct pipeline *pipeline)
{
    gpu_close(pipeline, true);
    gpu_start_release(pipeline->resources->start);
}

void pipeline_close(struct pipeline *pipeline)
{
    gpu_close(pipeline, true);
    plans_free(pipeline);
    free(pipeline->tables);
    pipeline->tables = NULL;
}
