/* SPDX-License-Identifier: MIT
 *
 * Split and merge on the device: interleaved image to planes and back, with alpha premultiplied on the way where it is
 * asked for. A thread a pixel; a row of threads reads or writes whole cache lines of either side. */
#include "conv.cuh"

namespace
{
struct interleaved {
    unsigned char *samples;
    int channels;
    bool premultiply;
};

constexpr int block_width = 32, block_height = 8;

__device__ bool pixel_of_thread(const struct job &job, int *x, int *y)
{
    const int2 tile = block_tile(job);
    *x = tile.x * block_width + (int)threadIdx.x;
    *y = tile.y * block_height + (int)threadIdx.y;
    return *x < job.width && *y < job.height;
}

__global__ void split(struct job job, struct interleaved image, int planes)
{
    int x, y;
    if (!pixel_of_thread(job, &x, &y))
        return;
    const unsigned char *pixel = image.samples + ((size_t)y * job.width + x) * image.channels;
    const unsigned alpha = image.premultiply ? pixel[image.channels - 1] : 255;
    for (int c = 0; c < planes; c++) {
        const bool colour = c < image.channels - 1;
        job.out[c * job.out_plane + y * job.out_row + x] =
            (unsigned char)(image.premultiply && colour ? premultiply_sample(pixel[c], alpha) : pixel[c]);
    }
}

__global__ void merge(struct job job, struct interleaved image, int planes)
{
    int x, y;
    if (!pixel_of_thread(job, &x, &y))
        return;
    unsigned char *pixel = image.samples + ((size_t)y * job.width + x) * image.channels;
    const unsigned alpha = image.premultiply ? job.in[(planes - 1) * job.in_plane + y * job.in_row + x] : 255;
    for (int c = 0; c < planes; c++) {
        const unsigned value = job.in[c * job.in_plane + y * job.in_row + x];
        const bool colour = c < image.channels - 1;
        pixel[c] = (unsigned char)(image.premultiply && colour ? unpremultiply_sample(value, alpha) : value);
    }
}

bool run(void (*kernel)(struct job, struct interleaved, int), struct device *device, const struct plane *planes,
         void *samples, int channels, enum alpha alpha, struct error *error)
{
    struct job job = {};
    job.in = (const unsigned char *)planes->data;
    job.out = (unsigned char *)planes->data;
    job.in_row = job.out_row = planes->row_bytes;
    job.in_plane = job.out_plane = planes->plane_bytes;
    job.width = planes->width;
    job.height = planes->height;
    job.tiles_x = (job.width + block_width - 1) / block_width;
    const int tiles_y = (job.height + block_height - 1) / block_height;
    const struct interleaved image = {(unsigned char *)samples, channels,
                                      alpha == ALPHA_PREMULTIPLY && channels % 2 == 0};
    kernel<<<(unsigned)job.tiles_x *(unsigned)tiles_y, dim3(block_width, block_height), 0, device_stream(device)>>>(
        job, image, planes->count);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}
} // namespace

bool device_split(struct device *device, const void *samples, int channels, enum alpha alpha,
                  const struct plane *planes, struct error *error)
{
    return run(split, device, planes, const_cast<void *>(samples), channels, alpha, error);
}

bool device_merge(struct device *device, const struct plane *planes, int channels, enum alpha alpha, void *samples,
                  struct error *error)
{
    return run(merge, device, planes, samples, channels, alpha, error);
}
