/* SPDX-License-Identifier: MIT */
#include "pipeline/balance.h"

#include <math.h>

enum { CPU, GPU };

/* The images that fill a GPU, until one is known (H200). */
enum { IMAGES_AT_ONCE = 8 };

/* The end of the GPUs' contexts, and what their start takes from the workers, in seconds (H200: benchmarks.md). */
static const double end_seconds = 0.08;

/* EXPECTED, corrected by the images of the kind that have ended. Before there are any, it counts as one. */
static double correct(const struct balance *balance, size_t kind, int of, double expected)
{
    const struct balance_kind *known = &balance->kinds[kind];
    return expected * (expected + known->taken[of]) / (expected + known->expected[of]);
}

/* A worker's seconds for IMAGE, which it has had for SECONDS, and needs for REST more. */
static double worker_seconds(const struct balance *balance, const struct balance_image *image, double seconds,
                             double rest)
{
    return rest >= 0 ? seconds + rest : fmax(seconds, correct(balance, image->kind, CPU, image->seconds.cpu));
}

/* The workers work while the GPUs start, and half of them beside the GPUs. */
struct backend_seconds balance_expect(const struct balance *balance, const struct balance_image *image, double seconds,
                                      double rest)
{
    const double one = worker_seconds(balance, image, seconds, rest);
    const double others = image->left - 1 - (balance->workers - balance->busy); /* that no worker begins at once */
    const double cpu = one - seconds + fmax(0, others) / balance->workers * one;
    const double gpus = correct(balance, image->kind, GPU, image->seconds.cuda);
    const double both = image->left / (1 / gpus + balance->workers / one / 2);
    const double whole = balance->start * (1 + (balance->busy - 1.0) / balance->workers / 2); /* see balance_waits */
    const double start = fmax(whole / 2, whole - balance->prepared); /* the driver takes half of it */
    return (struct backend_seconds){cpu, start + both * fmax(0, 1 - start / cpu) + end_seconds};
}

bool balance_starts(const struct balance *balance, const struct balance_image *image, double seconds, double rest)
{
    const bool is_known = rest >= 0 || balance->kinds[image->kind].expected[CPU] > 0;
    const struct backend_seconds all = balance_expect(balance, image, seconds, rest);
    const double doubt = is_known ? 1.25 : 1.75; /* a start may take longer; and the model may be wrong */
    return doubt * all.cuda < all.cpu;
}

bool balance_prepares(const struct balance *balance, const struct balance_image *image)
{
    const struct backend_seconds all = balance_expect(balance, image, 0, -1);
    const double doubt = 1.25; /* the workers may take longer than expected */
    return all.cuda < doubt * all.cpu;
}

/* How long IMAGE is expected to be on its way through a GPU. */
static double way_through_gpu(const struct balance *balance, const struct balance_image *image)
{
    const double alone = balance->alone > 0 ? balance->alone : IMAGES_AT_ONCE;
    return fmax(alone * image->seconds.cuda,
                correct(balance, image->kind, GPU, image->seconds.cuda) * (balance->on_gpu + 1));
}

bool balance_moves(const struct balance *balance, const struct balance_image *image, double seconds, double rest)
{
    if (image->is_grouped)
        return image->seconds.cuda * balance->workers < worker_seconds(balance, image, seconds, rest);
    /* Their speed would stay unknown if no worker did any. */
    const bool is_needed = balance->kinds[image->kind].expected[CPU] <= 0 && balance->on_gpu >= balance->busy - 1;
    if (is_needed && image->left > 2 * balance->workers)
        return false;
    return way_through_gpu(balance, image) < worker_seconds(balance, image, seconds, rest) - seconds;
}

bool balance_waits(const struct balance *balance, const struct balance_image *image)
{
    const double gpus = correct(balance, image->kind, GPU, image->seconds.cuda);
    return 2 * gpus * balance->workers < worker_seconds(balance, image, 0, -1);
}

void balance_begin_gpu(struct balance *balance, double now)
{
    if (balance->on_gpu++ == 0)
        balance->last = now;
}

/* The GPUs' time since the last image ended counts for this one: several are on the way at once. */
void balance_end_gpu(struct balance *balance, const struct balance_image *image, double seconds, double now, bool done)
{
    struct balance_kind *kind = &balance->kinds[image->kind];
    const double alone = seconds / image->seconds.cuda;
    balance->on_gpu--;
    if (!done)
        return;
    balance->alone = balance->alone > 0 ? fmin(balance->alone, alone) : alone;
    kind->taken[GPU] += now - balance->last;
    kind->expected[GPU] += image->seconds.cuda;
    balance->last = now;
}

void balance_end_cpu(struct balance *balance, const struct balance_image *image, double seconds)
{
    struct balance_kind *kind = &balance->kinds[image->kind];
    kind->taken[CPU] += seconds;
    kind->expected[CPU] += image->seconds.cpu;
}
