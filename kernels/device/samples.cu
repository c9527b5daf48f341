/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of image_copy (src/image/image.c): samples from one layout to another, for views that the other
 * kernels do not take as they are. */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int threads = 256, tile_width = 64, tile_height = threads / tile_width;

/* Strides in samples. */
struct strides {
    size_t row, pixel, channel;
};

struct copy {
    struct strides in, out;
    int width, height, channels;
    int tiles_x;
};

/* Each thread copies a pixel. The tiles are numbered row after row, because grid.y ends at 65535. */
template <typename Sample>
__global__ void __launch_bounds__(threads) copy_samples(const Sample *from, Sample *to, const struct copy copy)
{
    const int x = (int)blockIdx.x % copy.tiles_x * tile_width + (int)threadIdx.x % tile_width;
    const int y = (int)blockIdx.x / copy.tiles_x * tile_height + (int)threadIdx.x / tile_width;
    if (x >= copy.width || y >= copy.height)
        return;
    from += (size_t)y * copy.in.row + (size_t)x * copy.in.pixel;
    to += (size_t)y * copy.out.row + (size_t)x * copy.out.pixel;
    for (int c = 0; c < copy.channels; c++)
        to[(size_t)c * copy.out.channel] = from[(size_t)c * copy.in.channel];
}

struct strides strides_of(const struct image *image)
{
    const size_t size = image_sample_bytes(image);
    return {image_row_stride(image) / size, image_pixel_stride(image) / size, image_channel_stride(image) / size};
}
} // namespace

bool device_copy_samples(struct device *device, const struct image *from, const struct image *to, struct error *error)
{
    const int tiles_x = (from->width + tile_width - 1) / tile_width;
    const unsigned tiles = (unsigned)tiles_x * (unsigned)((from->height + tile_height - 1) / tile_height);
    const struct copy copy = {strides_of(from), strides_of(to), from->width, from->height, from->channels, tiles_x};
    const auto queue = [&](auto kernel, auto *samples) {
        return queue_kernel(kernel, tiles, threads, 0, device, error, samples, (decltype(samples))to->samples, copy);
    };
    const void *in = from->samples;
    return image_sample_bytes(from) == 1   ? queue(copy_samples<uint8_t>, (uint8_t *)in)
           : image_sample_bytes(from) == 2 ? queue(copy_samples<uint16_t>, (uint16_t *)in)
                                           : queue(copy_samples<float>, (float *)in);
}
