/* SPDX-License-Identifier: MIT
 *
 * The GPU's part of the benchmark in a build without CUDA. bench_open_gpu fails, so only bench_plane_layout and the
 * functions that release are called. */
#include "bench/bench_internal.h"

static bool no_cuda(struct error *error)
{
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

bool bench_open_gpu(struct bench *bench, struct error *error)
{
    (void)bench;
    return no_cuda(error);
}

void bench_close_gpu(struct bench *bench)
{
    (void)bench;
}

bool bench_measure_gpu(struct bench *bench, struct error *error)
{
    (void)bench;
    return no_cuda(error);
}

size_t bench_plane_layout(const struct bench_size *size, enum sample sample, struct plane *plane)
{
    size_t bytes;
    return plane_layout(plane, sample, size->width, size->height, size->planes, &bytes, NULL) ? bytes : SIZE_MAX;
}

bool bench_gpu_reserve(struct bench_case *c, struct error *error)
{
    (void)c;
    return no_cuda(error);
}

void bench_gpu_release(struct bench_case *c)
{
    (void)c;
}

bool bench_gpu_run(struct bench_case *c, struct plan *plan, bool image, struct error *error)
{
    (void)c, (void)plan, (void)image;
    return no_cuda(error);
}

bool bench_gpu_time(struct bench_case *c, const struct plan *plan, bool image, struct bench_row *row,
                    struct error *error)
{
    (void)c, (void)plan, (void)image, (void)row;
    return no_cuda(error);
}
