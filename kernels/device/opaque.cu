/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of image_is_opaque (src/image/image.c): is every pixel of an interleaved image opaque? */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int threads = 256, blocks_max = 4096;

/* Each thread checks every step-th pixel. ALPHA is the first alpha sample, and WHITE the largest level. */
template <typename Sample>
__global__ void __launch_bounds__(threads)
    find_translucent(const Sample *alpha, size_t pixels, int channels, unsigned white, unsigned *is_found)
{
    const size_t step = (size_t)gridDim.x * threads;
    bool is_opaque = true;
    for (size_t i = (size_t)blockIdx.x * threads + threadIdx.x; i < pixels; i += step)
        is_opaque = is_opaque && alpha[i * (size_t)channels] == white;
    if (!is_opaque)
        *is_found = 1;
}
} // namespace

bool device_is_opaque(struct device *device, const struct image *image, bool *is_opaque, struct error *error)
{
    const size_t pixels = (size_t)image->width * (size_t)image->height, wanted = (pixels - 1) / threads + 1;
    const unsigned blocks = (unsigned)(wanted < blocks_max ? wanted : blocks_max);
    const int channels = image->channels;
    unsigned found;
    void *scratch;
    *is_opaque = true;
    if (!image_has_alpha(image))
        return true;
    if (!device_scratch(device, sizeof found, &scratch, error) || !device_fill(device, scratch, 0, sizeof found, error))
        return false;
    const auto find = [&](auto kernel, auto *samples, unsigned white) {
        return queue_kernel(kernel, blocks, threads, 0, device, error, samples + channels - 1, pixels, channels, white,
                            (unsigned *)scratch);
    };
    if (!(image->bits > 8 ? find(find_translucent<uint16_t>, (const uint16_t *)image->samples, 65535)
                          : find(find_translucent<uint8_t>, image->samples, 255)) ||
        !device_download(device, &found, scratch, sizeof found, error) || !device_wait(device, error))
        return false;
    *is_opaque = found == 0;
    return true;
}
