/* SPDX-License-Identifier: MIT
 *
 * texture: constant, with its input read through the texture path.
 *
 *     constant   thread (x, y) -- address --------------------> L1 -- 32 samples a cycle ---> register
 *     texture    thread (x, y) -- x + 1/2, y + 1/2 --> unit --> L1 -- 4 samples a cycle ----> register
 *                                                      |
 *                                    border:  0 or k k k | k l m ... x y z | z z z or 0
 *
 * A texture unit reads at coordinates, not at addresses, and has border modes: clamped coordinates are
 * BORDER_REPLICATE, and its border colour of zero is BORDER_ZERO. So no thread asks whether it is near an edge, and one
 * loop serves all. With the other borders, a thread first computes the coordinate if the window crosses the edge of the
 * image.
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 21.34 ms (160.1 copies), float 21.66 ms (42.5 copies)
 *
 * Limits: planes up to 131072 samples wide, 65000 high and 2 MiB a row. These are CUDA's limits for textures on pitched
 * memory. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 8;

/* A texture object for each plane of the launch. */
struct textures {
    cudaTextureObject_t planes[4];
};

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void texture(struct launch launch, struct textures textures)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * block_width + (int)threadIdx.x;
    const int y = tile.y * block_height + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    const cudaTextureObject_t in = textures.planes[blockIdx.z];
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const int top = y - launch.anchor_y, left = x - launch.anchor_x;
    float sum = 0;
    if (launch.border == BORDER_REPLICATE || launch.border == BORDER_ZERO || window_inside(launch, y, x)) {
        /* The centre of sample i is at i + 1/2. */
#pragma unroll(SIZE ? SIZE : 1)
        for (int i = 0; i < filter_height; i++)
#pragma unroll(SIZE ? SIZE : 1)
            for (int j = 0; j < filter_width; j++)
                sum +=
                    taps[i * filter_width + j] * (float)tex2D<T>(in, (float)(left + j) + 0.5f, (float)(top + i) + 0.5f);
    } else {
        for (int i = 0; i < filter_height; i++) {
            const float from_y = (float)border_index(top + i, launch.height, launch.border) + 0.5f;
            for (int j = 0; j < filter_width; j++) {
                const float from_x = (float)border_index(left + j, launch.width, launch.border) + 0.5f;
                sum += taps[i * filter_width + j] * (float)tex2D<T>(in, from_x, from_y);
            }
        }
    }
    finish(launch, sum, &out_row<T>(launch, y)[x]);
}

TEXTBOOK_PREPARE(texture)

extern "C" bool texture_launch(const struct plan *plan, struct device *device, const struct plane *in,
                               const struct plane *out, struct error *error)
{
    if (in->width > 131072 || in->height > 65000 || in->row_bytes > 2 << 20)
        return error_set(
            error, ERROR_WORK,
            "the variant %s takes images up to 131072 x 65000, and this image is %d x %d; choose another --variant",
            "texture", in->width, in->height);
    struct textures textures = {};
    if (in->count > (int)(sizeof textures.planes / sizeof textures.planes[0]))
        return error_set(error, ERROR_WORK, "the variant %s takes at most 4 planes, not %d", "texture", in->count);
    for (int i = 0; i < in->count; i++)
        if (!device_texture(device, in, i, plan->border, &textures.planes[i], error))
            return false;
    return launch_kernel(KERNEL_FOR(plan, texture), make_launch(plan, in, out), in->count, device,
                         {block_width, block_height, dim3(block_width, block_height)}, error, textures);
}
