/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/image/orient.c and src/cpu/move.c: apply EXIF's orientation to an interleaved image, and change
 * its bits per sample; and move the samples of planes. A thread copies one pixel. A block covers a square, so that the
 * rows that it reads and those that it writes stay in the caches even if they become columns. */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int side = 32, threads_y = 8; /* pixels on a side of the square, and rows of threads */

/* Where the pixels of the result come from, in each plane: from column `left` to the one before `right`, and from row
 * `top` to the one before `bottom`. The first of these is at `first`. `column`, `row` and `plane` are bytes to the next
 * pixel of the result's row, of its column, and to the next plane. The other pixels become `fill`, which has the bits
 * of a sample of each plane. */
struct source {
    const unsigned char *first;
    ptrdiff_t column, row;
    size_t plane;
    int channels; /* channels of a pixel: 1 in planes */
    int left, top, right, bottom;
    uint32_t fill[4];
};

template <typename T>
__device__ __forceinline__ void convert(const T *from, T *to)
{
    *to = *from;
}

__device__ __forceinline__ void convert(const uint8_t *from, uint16_t *to)
{
    *to = widen_sample(*from);
}

__device__ __forceinline__ void convert(const uint16_t *from, uint8_t *to)
{
    *to = reduce_sample(*from);
}

template <typename From, typename To>
__global__ void __launch_bounds__(side *threads_y) orient(struct launch launch, struct source source)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * side + (int)threadIdx.x;
    for (int i = (int)threadIdx.y; i < side; i += threads_y) {
        const int y = tile.y * side + i;
        if (x >= launch.width || y >= launch.height)
            continue;
        To *to = out_row<To>(launch, y) + (size_t)x * (size_t)source.channels;
        if (x < source.left || x >= source.right || y < source.top || y >= source.bottom) {
            *to = (To)source.fill[blockIdx.z & 3];
            continue;
        }
        const From *from = (const From *)(source.first + blockIdx.z * source.plane + (x - source.left) * source.column +
                                          (y - source.top) * source.row);
        for (int c = 0; c < source.channels; c++)
            convert(&from[c], &to[c]);
    }
}

typedef void kernel(struct launch, struct source);

/* Are the samples of the source, and of the result, of 16 bits? */
kernel *const kernels[2][2] = {
    {orient<uint8_t, uint8_t>, orient<uint8_t, uint16_t>},
    {orient<uint16_t, uint8_t>, orient<uint16_t, uint16_t>},
};

const struct layout squares = {side, side, dim3(side, threads_y)};
} // namespace

bool device_orient(struct device *device, const struct image *from, int orientation, const struct image *to,
                   struct error *error)
{
    const ptrdiff_t pixel = (ptrdiff_t)image_pixel_bytes(from);
    const struct pixel_walk walk = orient_walk(orientation, from->width, from->height, pixel, pixel * from->width);
    struct source source = {};
    source.first = from->samples + walk.first;
    source.column = walk.column;
    source.row = walk.row;
    source.channels = from->channels;
    source.right = to->width;
    source.bottom = to->height;

    struct launch launch = {};
    launch.out = to->samples;
    launch.out_row = image_row_bytes(to);
    launch.width = to->width;
    launch.height = to->height;
    return launch_kernel(kernels[from->bits > 8][to->bits > 8], launch, 1, device, squares, error, source);
}

extern "C" bool move_launch(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    const struct origin *origin = &plan->origin;
    const ptrdiff_t size = (ptrdiff_t)sample_bytes(in->sample), row_bytes = (ptrdiff_t)in->row_bytes;
    const struct pixel_walk walk = orient_walk(plan->filter->move.orientation, in->width, in->height, size, row_bytes);
    struct source source = {};
    source.left = origin->x < 0 ? -origin->x : 0;
    source.top = origin->y < 0 ? -origin->y : 0;
    source.right = origin->turned_width - origin->x;
    source.bottom = origin->turned_height - origin->y;
    source.first = (const unsigned char *)in->data + walk.first + (source.left + origin->x) * walk.column +
                   (source.top + origin->y) * walk.row;
    source.column = walk.column;
    source.row = walk.row;
    source.plane = in->plane_bytes;
    source.channels = 1;
    plan_fill(plan, out->count, source.fill);

    struct launch launch = planes_launch(in, out);
    launch.width = out->width;
    launch.height = out->height;
    kernel *const move = plan->sample == SAMPLE_U8    ? orient<uint8_t, uint8_t>
                         : plan->sample == SAMPLE_U16 ? orient<uint16_t, uint16_t>
                                                      : orient<uint32_t, uint32_t>;
    return launch_kernel(move, launch, out->count, device, squares, error, source);
}
