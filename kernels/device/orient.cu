/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/image/orient.c: apply EXIF's orientation to an interleaved image, and change its bits per
 * sample. A thread copies one pixel. A block covers a square, so that the rows that it reads and those that it writes
 * stay in the caches even if they become columns. */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int side = 32, threads_y = 8; /* of the square, and rows of threads */

/* Where the pixels of the result come from: the address of the first one, and the bytes to the next one of a row and
 * of a column of the result. */
struct source {
    const unsigned char *first;
    ptrdiff_t column, row;
    int channels;
};

__device__ __forceinline__ void convert(const uint8_t *from, uint8_t *to)
{
    *to = *from;
}

__device__ __forceinline__ void convert(const uint16_t *from, uint16_t *to)
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
        const From *from = (const From *)(source.first + x * source.column + y * source.row);
        To *to = (To *)launch.out + ((size_t)y * launch.width + x) * source.channels;
        for (int c = 0; c < source.channels; c++)
            convert(&from[c], &to[c]);
    }
}

/* Are the samples of the source, and of the result, of 16 bits? */
void (*const kernels[2][2])(struct launch, struct source) = {
    {orient<uint8_t, uint8_t>, orient<uint8_t, uint16_t>},
    {orient<uint16_t, uint8_t>, orient<uint16_t, uint16_t>},
};
} // namespace

bool device_orient(struct device *device, const struct image *from, int orientation, const struct image *to,
                   struct error *error)
{
    /* As in image_orient. */
    const bool is_mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool is_upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool is_swapped = orientation >= 5 && orientation <= 8;
    const ptrdiff_t pixel = (ptrdiff_t)image_pixel_bytes(from), row_bytes = pixel * from->width;
    const ptrdiff_t column = is_mirrored ? -pixel : pixel, row = is_upside_down ? -row_bytes : row_bytes;
    struct source source;
    source.first =
        from->samples + (is_upside_down ? (from->height - 1) * row_bytes : 0) + (is_mirrored ? row_bytes - pixel : 0);
    source.column = is_swapped ? row : column;
    source.row = is_swapped ? column : row;
    source.channels = from->channels;

    struct launch launch = {};
    launch.out = to->samples;
    launch.width = to->width;
    launch.height = to->height;
    return launch_kernel(kernels[from->bits > 8][to->bits > 8], launch, 1, device, {side, side, dim3(side, threads_y)},
                         error, source);
}
