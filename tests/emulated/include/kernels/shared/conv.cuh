/* SPDX-License-Identifier: MIT
 *
 * What kernels other than those of filters with taps use of kernels/shared/conv.cuh, for the emulated GPU. The rest is
 * about constant memory. */
#ifndef GPUCONV_CONV_CUH
#define GPUCONV_CONV_CUH

#include "kernels/device/device.h"
#include "plan/plan.h"

#include <cuda_runtime.h>
#include <string.h>

/* launches.py adds the NAME. */
template <typename... Parameters, typename... Arguments>
static inline bool queue_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t,
                                struct device *, struct error *, const Arguments &...arguments)
{
    emulated_launch(name, grid, block, [&] { kernel(arguments...); });
    return true;
}

/* The argument of a kernel for planes, without what filters with taps need. */
struct launch {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane;
    int width, height, tiles_x;
};

template <typename Launch>
static inline void set_planes(Launch *launch, const struct plane *in, const struct plane *out)
{
    launch->in = (const unsigned char *)in->data;
    launch->out = (unsigned char *)out->data;
    launch->in_row = in->row_bytes;
    launch->in_plane = in->plane_bytes;
    launch->out_row = out->row_bytes;
    launch->out_plane = out->plane_bytes;
}

static inline struct launch planes_launch(const struct plane *in, const struct plane *out)
{
    struct launch launch = {};
    set_planes(&launch, in, out);
    launch.width = in->width;
    launch.height = in->height;
    return launch;
}

struct layout {
    int tile_width, tile_height;
    dim3 block;
};

template <typename... Arguments>
static inline bool launch_kernel(void (*kernel)(struct launch, Arguments...), struct launch launch, int planes,
                                 struct device *device, const struct layout &layout, struct error *error,
                                 Arguments... arguments)
{
    launch.tiles_x = (launch.width + layout.tile_width - 1) / layout.tile_width;
    const int tiles_y = (launch.height + layout.tile_height - 1) / layout.tile_height;
    return queue_kernel("kernel", kernel, dim3((unsigned)(launch.tiles_x * tiles_y), 1, (unsigned)planes), layout.block,
                        0, device, error, launch, arguments...);
}

static inline int2 block_tile(const struct launch &launch)
{
    return make_int2((int)blockIdx.x % launch.tiles_x, (int)blockIdx.x / launch.tiles_x);
}

template <typename T>
static inline T *out_row(const struct launch &launch, int y)
{
    return (T *)(launch.out + blockIdx.z * launch.out_plane + (size_t)y * launch.out_row);
}

/* (gpu.cc) */
bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error);
const void *device_table(const struct device *device);

#endif
