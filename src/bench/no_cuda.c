/* SPDX-License-Identifier: MIT
 *
 * The GPU's part of the benchmark in a build without CUDA. */
#include "bench/bench_internal.h"

static bool open_gpu(struct bench *bench, struct error *error)
{
    (void)bench;
    return error_set(error, ERROR_WORK, "this gpuconv was built without CUDA");
}

static size_t gpu_plane_layout(const struct bench_size *size, enum sample sample, struct plane *plane)
{
    size_t bytes;
    return plane_layout(plane, sample, size->width, size->height, size->planes, &bytes, NULL) ? bytes : SIZE_MAX;
}

const struct bench_gpu bench_gpu = {.open = open_gpu, .plane_layout = gpu_plane_layout};
