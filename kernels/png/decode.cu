/* SPDX-License-Identifier: MIT
 *
 * The PNG decoder: inflate.cu makes the bytes of the filtered rows, and these kernels samples of them.
 *
 *     sum        a warp sums up a row for the Adler-32
 *     unfilter   a warp undoes the filters of 32 rows. While the first row is at pixel I, row K is at pixel I - K, and
 *                the pixel above it was made one step before. The row above the first belongs to another warp, which
 *                says how far it is
 *     expand     a thread makes the samples of a pixel: palettes, transparent colours, 1 to 16 bits
 *     check      one block of threads compares sizes and checksums */
#include "kernels/png/adler.cuh"
#include "kernels/png/workspace.cuh"
#include "png/filter.h"

namespace
{
constexpr unsigned all_lanes = 0xffffffff;
constexpr int threads = 256, warps = threads / 32;
constexpr int rows_at_once = 32, columns_at_once = 32; /* pixels between two looks at the warp before */
constexpr size_t head_bytes = 2, tail_bytes = 4;       /* of zlib */

/* What the decoder tells the host. */
struct result {
    uint32_t is_decoded;
};

/* What the kernels get, by value. */
struct picture {
    const struct png_layout *layout; /* on the device */
    uint8_t *rows;                   /* each has the number of its filter in front */
    size_t row_bytes;                /* without it */
    int height, pixel;               /* PIXEL: bytes */
    uint2 *sums;
    unsigned *progress; /* a ticket, whether a filter is unknown, and the pixels that each warp's last row has */
    uint8_t *samples;
    const struct inflate_state *state;
    uint32_t adler;     /* as the stream has it */
    uint64_t last_byte; /* the deflate data end there */
    struct result *result;
};

/* ---- Checks ---- */

__global__ void __launch_bounds__(threads) sum_rows(const __grid_constant__ struct picture picture)
{
    const int row = (int)blockIdx.x * warps + (int)threadIdx.x / 32;
    if (row >= picture.height || picture.state->status != INFLATED)
        return;
    const size_t size = picture.row_bytes + 1;
    const uint8_t *bytes = picture.rows + (size_t)row * size;
    struct adler_sums sums = adler_begin(size, 1 + threadIdx.x % 32);
    for (size_t i = 1 + threadIdx.x % 32; i < size; i += 32)
        adler_add(sums, bytes[i]);
    const uint2 whole = adler_end(sums, bytes[0], size);
    if (threadIdx.x % 32 == 0) {
        picture.sums[row] = whole;
        if (bytes[0] >= PNG_FILTERS)
            picture.progress[1] = 1;
    }
}

__global__ void __launch_bounds__(adler_threads) check(const __grid_constant__ struct picture picture)
{
    __shared__ uint64_t work[adler_threads];
    bool is_right = picture.state->status == INFLATED;
    if (is_right) {
        const uint32_t adler = adler_join(work, picture.sums, picture.height, picture.row_bytes + 1);
        is_right =
            adler == picture.adler && (picture.state->end + 7) / 8 == picture.last_byte && picture.progress[1] == 0;
    }
    if (threadIdx.x == 0)
        picture.result->is_decoded = is_right;
}

/* ---- Filters ---- */

/* A byte from what FILTER predicts. LEFT, UP and CORNER are its neighbours. */
__device__ __forceinline__ uint8_t undo(int filter, int byte, int left, int up, int corner)
{
    const int a = abs(up - corner), b = abs(left - corner), c = abs(left + up - 2 * corner);
    const int paeth = a <= b && a <= c ? left : b <= c ? up : corner;
    return (uint8_t)(byte + (filter == PNG_SUB       ? left
                             : filter == PNG_UP      ? up
                             : filter == PNG_AVERAGE ? (left + up) / 2
                             : filter == PNG_PAETH   ? paeth
                                                     : 0));
}

/* Wait until the warp of the rows above has made COUNT pixels of its last one. */
__device__ __forceinline__ void wait_for(const unsigned *progress, unsigned count)
{
    while (*(const volatile unsigned *)progress < count)
        ;
    __threadfence();
}

template <int PIXEL>
__device__ __forceinline__ void undo_rows(const struct picture &picture, int group)
{
    const int lane = (int)threadIdx.x % 32, row = group * rows_at_once + lane;
    const int pixels = (int)((picture.row_bytes + PIXEL - 1) / PIXEL);
    const bool is_row = row < picture.height;
    const size_t stride = picture.row_bytes + 1;
    uint8_t *const bytes = picture.rows + (size_t)(is_row ? row : 0) * stride + 1;
    const int filter = is_row ? bytes[-1] : PNG_NONE;
    unsigned *const own = picture.progress + 2 + group;
    const bool waits = group > 0;
    uint8_t left[PIXEL] = {}, corner[PIXEL] = {};
    for (int step = 0; step < pixels + rows_at_once - 1; step++) {
        if (waits && step % columns_at_once == 0 && step < pixels)
            wait_for(own - 1, (unsigned)min(step + columns_at_once, pixels));
        const int x = step - lane;
        const bool is_inside = is_row && x >= 0 && x < pixels;
        uint8_t produced[PIXEL];
#pragma unroll
        for (int k = 0; k < PIXEL; k++) {
            /* The pixel above: of the lane before one step ago, which it has in LEFT, or of the warp before. */
            int up = __shfl_up_sync(all_lanes, (int)left[k], 1);
            if (lane == 0)
                up = waits && is_inside ? *(volatile uint8_t *)(bytes - stride + (size_t)x * PIXEL + k) : 0;
            produced[k] = is_inside ? undo(filter, bytes[(size_t)x * PIXEL + k], left[k], up, corner[k]) : left[k];
            corner[k] = is_inside ? (uint8_t)up : corner[k];
        }
#pragma unroll
        for (int k = 0; k < PIXEL; k++) {
            left[k] = produced[k];
            if (is_inside)
                bytes[(size_t)x * PIXEL + k] = produced[k];
        }
        if (lane == rows_at_once - 1 && x >= 0 && (x + 1) % columns_at_once == 0) {
            __threadfence();
            *(volatile unsigned *)own = (unsigned)(x + 1);
        }
    }
    if (lane == rows_at_once - 1) {
        __threadfence();
        *(volatile unsigned *)own = (unsigned)pixels;
    }
}

__global__ void __launch_bounds__(32) unfilter(const __grid_constant__ struct picture picture)
{
    if (picture.state->status != INFLATED || picture.progress[1] != 0)
        return;
    const unsigned drawn = threadIdx.x == 0 ? atomicAdd(picture.progress, 1u) : 0;
    const int group = (int)__shfl_sync(all_lanes, drawn, 0);
    switch (picture.pixel) {
    case 1:
        undo_rows<1>(picture, group);
        break;
    case 2:
        undo_rows<2>(picture, group);
        break;
    case 3:
        undo_rows<3>(picture, group);
        break;
    case 4:
        undo_rows<4>(picture, group);
        break;
    case 6:
        undo_rows<6>(picture, group);
        break;
    default:
        undo_rows<8>(picture, group);
        break;
    }
}

/* ---- Samples ---- */

__global__ void __launch_bounds__(threads) expand(const __grid_constant__ struct picture picture)
{
    const struct png_layout &layout = *picture.layout;
    const int x = (int)(blockIdx.x * threads + threadIdx.x);
    if (x >= layout.width)
        return;
    const unsigned bits = (unsigned)layout.bits;
    const size_t all = (size_t)png_layout_channels(&layout), pixel_bytes = bits == 16 ? 2 * all : all;
    for (int y = (int)blockIdx.y; y < picture.height; y += (int)gridDim.y) {
        const uint8_t *row = picture.rows + (size_t)y * (picture.row_bytes + 1) + 1;
        uint8_t *pixel = picture.samples + ((size_t)y * (size_t)layout.width + (size_t)x) * pixel_bytes;
        if (layout.paletted) {
            const uint8_t *colour = png_find_colour(&layout, row, (size_t)x, bits);
            for (size_t c = 0; c < all; c++)
                pixel[c] = colour[c];
        } else {
            png_expand_pixel(&layout, row, (size_t)x, bits, (size_t)layout.channels, pixel);
        }
    }
}
} // namespace

/* ---- The host's part ---- */

bool device_png_reserve(struct device_png *png, size_t size, uint8_t **bytes, struct error *error)
{
    struct png_decoder *decoder = &png->decoder;
    decoder->size = size;
    if (!device_buffer_reserve(png->device, &decoder->data, size, error))
        return false;
    *bytes = decoder->data.bytes;
    return true;
}

bool device_png_decode(struct device_png *png, const struct png_layout *layout, uint8_t *samples, struct error *error)
{
    enum { SLACK = 64 }; /* bytes after the stream that are read, and are 0 */
    struct device *device = png->device;
    struct png_decoder *decoder = &png->decoder;
    const uint8_t *data = decoder->data.bytes;
    const size_t row_bytes = png_row_bytes(layout, (size_t)layout->width),
                 expected = (size_t)layout->height * (row_bytes + 1);
    const size_t groups = (size_t)(layout->height - 1) / rows_at_once + 1, progress = (2 + groups) * sizeof(unsigned);
    /* A stream of zlib: deflate, no dictionary, and a multiple of 31. */
    decoder->is_unsupported = decoder->size <= head_bytes + tail_bytes || (data[0] & 15) != 8 || (data[1] & 32) != 0 ||
                              (data[0] << 8 | data[1]) % 31 != 0 || expected > UINT32_MAX;
    if (decoder->is_unsupported)
        return true;
    const size_t size = decoder->size - head_bytes - tail_bytes;
    if (!device_buffer_reserve(device, &decoder->stream, size + SLACK, error) ||
        !device_buffer_reserve(device, &decoder->rows, expected, error) ||
        !device_buffer_reserve(device, &decoder->sums, (size_t)layout->height * sizeof(uint2), error) ||
        !device_buffer_reserve(device, &decoder->layout, sizeof *layout, error) ||
        !device_buffer_reserve(device, &decoder->progress, progress, error) ||
        !device_buffer_reserve(device, &decoder->result, sizeof(struct result), error) ||
        !device_upload(device, decoder->stream.bytes, data + head_bytes, size, error) ||
        !device_fill(device, decoder->stream.bytes + size, 0, SLACK, error) ||
        !device_upload(device, decoder->layout.bytes, layout, sizeof *layout, error) ||
        !device_fill(device, decoder->progress.bytes, 0, progress, error) ||
        !inflate_queue(device, &decoder->inflation, decoder->stream.bytes, size, decoder->rows.bytes, expected, error))
        return false;
    const uint8_t *tail = data + head_bytes + size;
    struct picture picture;
    picture.layout = (const struct png_layout *)decoder->layout.bytes;
    picture.rows = decoder->rows.bytes;
    picture.row_bytes = row_bytes;
    picture.height = layout->height;
    picture.pixel = png_layout_pixel(layout);
    picture.sums = (uint2 *)decoder->sums.bytes;
    picture.progress = (unsigned *)decoder->progress.bytes;
    picture.samples = samples;
    picture.state = (const struct inflate_state *)decoder->inflation.state.bytes;
    picture.adler = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
    picture.last_byte = size;
    picture.result = (struct result *)decoder->result.bytes;
    const cudaStream_t queue = device_stream(device);
    const unsigned across = (unsigned)((layout->width - 1) / threads + 1), down = (unsigned)min(layout->height, 65535);
    sum_rows<<<(unsigned)((layout->height - 1) / warps + 1), threads, 0, queue>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    check<<<1, adler_threads, 0, queue>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    unfilter<<<(unsigned)groups, 32, 0, queue>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    expand<<<dim3(across, down), threads, 0, queue>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}

bool device_png_decoded(struct device_png *png, bool *is_decoded, struct error *error)
{
    if (!device_wait(png->device, error))
        return false;
    const volatile struct result *result = (const volatile struct result *)png->decoder.result.bytes;
    *is_decoded = !png->decoder.is_unsupported && result->is_decoded != 0;
    return true;
}
