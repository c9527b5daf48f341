/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of image_copy (src/image/image.c): samples from one layout to another, for views that the other
 * kernels do not take as they are, and from one kind of storage to another. */
#include "image/stored.h"
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int threads = 256, pixels = 4; /* that a thread copies, STEP columns apart */
constexpr int step = 64, tile_width = pixels * step, tile_height = threads / step;

/* Bytes from a row, a pixel or a channel to the next one. */
struct strides {
    size_t row, pixel, channel;
};

struct copy {
    struct strides in, out;
    int width, height, channels;
    int tiles_x;
    uint8_t *is_lost; /* becomes 1 if image_copy would return false; NULL if nobody asks */
};

/* Let WORK(from, to) do each sample. A thread does some pixels of a row, so that several loads are under way. The tiles
 * are numbered row after row, because grid.y ends at 65535. */
template <typename Work>
__device__ __forceinline__ void each_sample(const uint8_t *from, uint8_t *to, const struct copy &copy, Work work)
{
    const int first = (int)blockIdx.x % copy.tiles_x * tile_width + (int)threadIdx.x % step;
    const int y = (int)blockIdx.x / copy.tiles_x * tile_height + (int)threadIdx.x / step;
    if (y >= copy.height)
        return;
    from += (size_t)y * copy.in.row + blockIdx.z * copy.in.channel;
    to += (size_t)y * copy.out.row + blockIdx.z * copy.out.channel;
    for (int c = 0; c < copy.channels; c++, from += copy.in.channel, to += copy.out.channel)
#pragma unroll
        for (int k = 0; k < pixels; k++) {
            const size_t x = (size_t)(first + k * step);
            if (x < (size_t)copy.width)
                work(from + x * copy.in.pixel, to + x * copy.out.pixel);
        }
}

template <typename Sample>
__global__ void __launch_bounds__(threads) copy_samples(const uint8_t *from, uint8_t *to, const struct copy copy)
{
    each_sample(from, to, copy, [](const uint8_t *in, uint8_t *out) { *(Sample *)out = *(const Sample *)in; });
}

/* One of FROM and TO is STORED_FLOAT. */
template <enum storage FROM, enum storage TO>
__global__ void __launch_bounds__(threads) convert_samples(const uint8_t *from, uint8_t *to, const struct copy copy)
{
    bool is_exact = true;
    each_sample(from, to, copy, [&](const uint8_t *in, uint8_t *out) {
        stored_write(stored_value(in, FROM, &is_exact), TO, out, &is_exact);
    });
    if (!is_exact && copy.is_lost)
        *copy.is_lost = 1;
}

/* image_blend of COUNT samples without padding. */
template <typename Sample>
__global__ void __launch_bounds__(threads)
    blend(const Sample *from, const uint16_t *levels, Sample *to, size_t count, unsigned channels)
{
    const size_t i = (size_t)blockIdx.x * threads + threadIdx.x;
    if (i >= count)
        return;
    const unsigned level = levels[i / channels];
    if constexpr (sizeof(Sample) == 4)
        to[i] = level == 0       ? to[i]
                : level == 65535 ? from[i]
                                 : __fadd_rn(__fmul_rn(to[i], (float)(65535 - level) / 65535),
                                             __fmul_rn(from[i], (float)level / 65535));
    else
        to[i] = (Sample)blend_sample(to[i], from[i], level);
}

template <typename Sample>
bool queue_blend(struct device *device, const struct image *from, const void *levels, const struct image *to,
                 struct error *error)
{
    const size_t count = image_samples(from);
    return queue_kernel(blend<Sample>, dim3((unsigned)((count - 1) / threads + 1)), threads, 0, device, error,
                        (const Sample *)from->samples, (const uint16_t *)levels, (Sample *)to->samples, count,
                        (unsigned)from->channels);
}

using kernel = void(const uint8_t *from, uint8_t *to, struct copy copy);

kernel *find_copy(const struct image *image)
{
    const size_t size = image_sample_bytes(image);
    return size == 1   ? copy_samples<uint8_t>
           : size == 2 ? copy_samples<uint16_t>
           : size == 4 ? copy_samples<uint32_t>
                       : copy_samples<uint64_t>;
}

kernel *find_conversion(enum storage from, enum storage to)
{
    switch (from == STORED_FLOAT ? to : from) {
    case STORED_HALF:
        return from == STORED_FLOAT ? convert_samples<STORED_FLOAT, STORED_HALF>
                                    : convert_samples<STORED_HALF, STORED_FLOAT>;
    case STORED_BFLOAT16:
        return from == STORED_FLOAT ? convert_samples<STORED_FLOAT, STORED_BFLOAT16>
                                    : convert_samples<STORED_BFLOAT16, STORED_FLOAT>;
    case STORED_DOUBLE:
        return from == STORED_FLOAT ? convert_samples<STORED_FLOAT, STORED_DOUBLE>
                                    : convert_samples<STORED_DOUBLE, STORED_FLOAT>;
    default:
        return from == STORED_FLOAT ? convert_samples<STORED_FLOAT, STORED_BOOL>
                                    : convert_samples<STORED_BOOL, STORED_FLOAT>;
    }
}

struct strides strides_of(const struct image *image)
{
    return {image_row_stride(image), image_pixel_stride(image), image_channel_stride(image)};
}
} // namespace

bool device_blend(struct device *device, const struct image *from, const void *levels, const struct image *to,
                  struct error *error)
{
    return from->bits == 8    ? queue_blend<uint8_t>(device, from, levels, to, error)
           : from->bits == 16 ? queue_blend<uint16_t>(device, from, levels, to, error)
                              : queue_blend<float>(device, from, levels, to, error);
}

bool device_copy_samples(struct device *device, const struct image *from, const struct image *to, uint8_t *is_lost,
                         struct error *error)
{
    const int tiles_x = (from->width + tile_width - 1) / tile_width;
    const unsigned tiles = (unsigned)tiles_x * (unsigned)((from->height + tile_height - 1) / tile_height);
    const bool are_planes = from->channels > 4; /* several images: each channel has its own blocks */
    const dim3 grid(tiles, 1, are_planes ? (unsigned)from->channels : 1);
    const struct copy copy = {
        strides_of(from), strides_of(to), from->width, from->height, are_planes ? 1 : from->channels, tiles_x, is_lost};
    kernel *const kernel = from->stored == to->stored ? find_copy(from) : find_conversion(from->stored, to->stored);
    return queue_kernel(kernel, grid, threads, 0, device, error, (const uint8_t *)from->samples, to->samples, copy);
}
