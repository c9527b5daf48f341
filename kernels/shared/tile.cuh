/* SPDX-License-Identifier: MIT
 *
 * What tensor-core and blur share: tiles, which are numbered over all planes, and the launch of blocks for them. */
#ifndef GPUCONV_TILE_CUH
#define GPUCONV_TILE_CUH

#include "kernels/shared/conv.cuh"

/* A tile of outputs, and its plane. */
struct tile {
    int x, y, rows;
    const uint8_t *in;
    uint8_t *out;
};

/* The tile of at most STRIP rows from row Y and column X on. */
static __device__ __forceinline__ struct tile make_tile(const struct launch &launch, int plane, int x, int y, int strip)
{
    struct tile tile;
    tile.x = x;
    tile.y = y;
    tile.rows = min(strip, launch.height - y);
    tile.in = launch.in + plane * launch.in_plane;
    tile.out = launch.out + plane * launch.out_plane;
    return tile;
}

/* Find tile INDEX. CALL, the argument of the kernel, has `columns` tiles of WIDTH columns side by side, the first from
 * column -BEFORE on, and `tiles_y` of `strip` rows one below the other. Tiles are numbered along rows of tiles, then
 * down, then from plane to plane. So tiles that run at one time are near each other in memory, and halo rows are still
 * in L2. */
template <typename Call>
static __device__ __forceinline__ struct tile find_tile(const Call &call, int index, int width, int before = 0)
{
    const int across = index / call.columns, plane = across / call.tiles_y;
    return make_tile(call.launch, plane, (index - across * call.columns) * width - before,
                     (across - plane * call.tiles_y) * call.strip, call.strip);
}

/* Choose the rows of a strip, a multiple of STEP, with the least total time: the waves of the blocks that run at one
 * time, RESIDENT, times the rows of a block and the HALO that it reads before them. Blocks are not equally fast: those
 * at the border take longer. So the blocks of a later wave fill the gaps of the one before, and the number of waves
 * need not be whole. */
template <typename Call>
static void choose_strip(Call *call, const struct plane *in, int step, int halo, double resident)
{
    double best = 0;
    for (int steps = 1; steps <= (in->height + step - 1) / step; steps += steps < 64 ? 1 : steps / 8) {
        const int strip = steps * step, tiles_y = (in->height + strip - 1) / strip;
        const double waves = (double)call->columns * tiles_y * in->count / resident;
        const double cost = ((waves > 1 ? waves : 1) + 0.5) * (strip + halo);
        if (best == 0 || cost < best) {
            best = cost;
            call->strip = strip;
            call->tiles_y = tiles_y;
        }
    }
}

/* Launch BLOCKS blocks of a kernel, each with SHARED bytes of shared memory. NAME is the filter's. */
template <typename Call>
static bool launch_blocks(void (*kernel)(Call), const Call &call, int blocks, dim3 block, size_t shared,
                          const char *name, struct device *device, struct error *error)
{
    const struct device_info *info = device_get_info(device);
    if (shared > info->block_shared) /* CUDA does not know $GPUCONV_MAX_CAPABILITY */
        return error_set(error, ERROR_WORK,
                         "%s needs %zu bytes of shared memory, and a block of %s has %zu; use --backend cpu", name,
                         shared, info->name, info->block_shared);
    CUDA_TRY(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
             error);
    return queue_kernel(kernel, dim3((unsigned)blocks), block, shared, device, error, call);
}

#endif
