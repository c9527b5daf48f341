/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of filter.c and src/codec/png_picture.c.
 * The PNG decoder: inflate.cu makes the bytes of the filtered rows, and these kernels samples of them.
 *
 *     sum        a warp sums up a row for the Adler-32
 *     unfilter   a warp undoes the filters of 32 rows. While the first row is at pixel I, row K is at pixel I - K, and
 *                the pixel above it was made one step before. The row above the first belongs to another warp, which
 *                hands its pixels over. Most pictures then have their samples
 *     expand     a thread makes the samples of a pixel: palettes, transparent colours, less than 8 bits
 *     check      one block of threads compares sizes and checksums */
#include "kernels/shared/lanes.cuh"
#include "png/adler.cuh"
#include "png/png.h"
#include "png/workspace.cuh"

namespace
{
constexpr int threads = 256, warps = threads / 32;
constexpr int rows_at_once = 32, batch = 8;      /* a batch is pixels of a row that are loaded together */
constexpr size_t head_bytes = 2, tail_bytes = 4; /* bytes of zlib's head, and of its Adler-32 */

/* What the kernels get, by value. */
struct png_decode_launch {
    const struct png_layout *layout; /* on the device */
    uint8_t *rows;                   /* each has the number of its filter in front */
    size_t row_bytes;                /* without it */
    int height, pixel;               /* the bytes of a pixel */
    uint2 *sums;
    unsigned *progress; /* a ticket, and whether a filter is unknown */
    uint64_t *edges;    /* the last row of each warp, in words of 4 bytes of one pixel, which have a mark above */
    uint8_t *out;       /* the rows without filters, OUT_STRIDE bytes apart: the samples, or the rows in place */
    size_t out_stride;
    unsigned order; /* the order of the bytes of two samples, for __byte_perm */
    uint8_t *samples;
    const struct inflate_state *state;
    uint32_t adler;       /* as the stream has it */
    uint64_t last_byte;   /* the deflate data end there */
    uint32_t *is_decoded; /* for the host */
};

/* How many bytes after an aligned word is byte AT of a row? */
__device__ __forceinline__ int offset_of(const uint8_t *row, int at)
{
    return (int)((uintptr_t)row + (uintptr_t)(intptr_t)at) & 3;
}

/* ---- Checks ---- */

__global__ void __launch_bounds__(threads) sum_rows(const __grid_constant__ struct png_decode_launch launch)
{
    const int row = (int)blockIdx.x * warps + (int)threadIdx.x / 32;
    if (row >= launch.height || launch.state->status != INFLATED)
        return;
    const int size = (int)launch.row_bytes + 1;
    const uint8_t *bytes = launch.rows + (size_t)row * (size_t)size;
    struct adler_sums sums = {0, 0};
#pragma unroll 4
    for (int at = 4 * ((int)threadIdx.x % 32) - offset_of(bytes, 0); at < size; at += 4 * 32) {
        uint32_t word = *(const uint32_t *)(bytes + at);
        if (at < 0)
            word &= ~0u << -8 * at;
        if (at + 4 > size)
            word &= ~0u >> 8 * (at + 4 - size);
        adler_add(sums, word, size - at);
    }
    const uint2 whole = adler_end(sums, 0, (size_t)size);
    if (threadIdx.x % 32 == 0) {
        launch.sums[row] = whole;
        if (bytes[0] >= PNG_FILTERS)
            launch.progress[1] = 1;
    }
}

__global__ void __launch_bounds__(adler_threads) check(const __grid_constant__ struct png_decode_launch launch)
{
    __shared__ uint64_t scratch[adler_threads];
    bool is_right = launch.state->status == INFLATED;
    if (is_right) {
        const uint32_t adler = adler_join(scratch, launch.sums, launch.height, launch.row_bytes + 1);
        is_right = adler == launch.adler && (launch.state->end + 7) / 8 == launch.last_byte && launch.progress[1] == 0;
    }
    if (threadIdx.x == 0)
        *launch.is_decoded = is_right;
}

/* ---- Filters ---- */

/* What Paeth predicts for two bytes, in the halves of words. With T = 3 CORNER - LEFT - UP, that is the smaller
 * neighbour if T is at least the larger, the larger if T is at most the smaller, and CORNER between. 2^15 keeps halves
 * positive; its bit is then a comparison. */
__device__ __forceinline__ uint32_t predict_paeth(uint32_t left, uint32_t up, uint32_t corner)
{
    const uint32_t low = __vminu2(left, up), high = __vmaxu2(left, up), t = 3 * corner + 0x80008000 - up - left;
    const uint32_t is_low = ((t - high) >> 15 & 0x00010001) * 255;
    const uint32_t is_corner = ((t - low - 0x00010001) >> 15 & 0x00010001) * 255;
    return (low & is_low) | (~is_low & ((corner & is_corner) | (high & ~is_corner)));
}

/* How a row predicts its pixels. Paeth with zeros instead of some neighbours is None, Sub or Up, too. */
struct prediction {
    uint32_t left, up, corner; /* masks for halves */
    bool is_average;
};

__device__ __forceinline__ struct prediction prediction_of(int filter)
{
    const bool is_average = filter == PNG_AVERAGE, has_both = filter == PNG_PAETH || is_average;
    return {has_both || filter == PNG_SUB ? 0x00ff00ff : 0u, has_both || filter == PNG_UP ? 0x00ff00ff : 0u,
            filter == PNG_PAETH ? 0x00ff00ff : 0u, is_average};
}

/* Load the aligned words with the bytes from AT on of a row of SIZE bytes. The others are worthless. */
template <int COUNT>
__device__ __forceinline__ void load_words(const uint8_t *row, int size, int at, uint32_t (&words)[COUNT])
{
    at -= offset_of(row, at);
#pragma unroll
    for (int i = 0; i < COUNT; i++, at += 4)
        words[i] = at > -4 && at < size ? *(const uint32_t *)(row + at) : 0;
}

/* Store those bytes of WORDS that are in a row of SIZE bytes, from AT on, which is aligned. Other rows have the bytes
 * around them. */
template <int COUNT>
__device__ __forceinline__ void store_words(uint8_t *row, int size, int at, const uint32_t (&words)[COUNT])
{
    if (at >= 0 && at + 4 * COUNT <= size) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            *(uint32_t *)(row + at + 4 * i) = words[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++, at += 4)
        if (at >= 0 && at + 4 <= size)
            *(uint32_t *)(row + at) = words[i];
        else if (at > -4 && at < size)
            for (int k = 0; k < 4; k++)
                if (at + k >= 0 && at + k < size)
                    row[at + k] = (uint8_t)(words[i] >> 8 * k);
}

/* A lane's part of the row above a group, from its pixel X on: a pixel's word, with the mark. Other lanes, and those
 * without such a pixel, have only a mark. */
__device__ __forceinline__ uint64_t load_edge(const struct png_decode_launch &launch, int group, int pixels, int x,
                                              int words, int word)
{
    x += (int)threadIdx.x;
    if (group == 0 || threadIdx.x >= batch || x >= pixels)
        return (uint64_t)1 << 32;
    return *(const volatile uint64_t *)&launch.edges[((size_t)(group - 1) * pixels + x) * words + word];
}

template <int PIXEL>
__device__ __forceinline__ void undo_rows(const struct png_decode_launch &launch, int group)
{
    constexpr int words = (PIXEL + 3) / 4, count = batch * PIXEL / 4; /* words of a pixel, words of a batch */
    const int lane = (int)threadIdx.x, row = group * rows_at_once + lane;
    const int size = row < launch.height ? (int)launch.row_bytes : 0, pixels = (int)(launch.row_bytes / PIXEL);
    const uint8_t *const from = launch.rows + (size_t)min(row, launch.height - 1) * (launch.row_bytes + 1) + 1;
    uint8_t *const to = launch.out + (size_t)min(row, launch.height - 1) * launch.out_stride;
    const struct prediction prediction = prediction_of(from[-1]);
    uint64_t *const edge = launch.edges + (size_t)group * pixels * words;
    uint32_t pixel[words] = {}, left[words][2] = {}, corner[words][2] = {}; /* left and corner: masked halves */
    uint32_t last = 0, next[count + 1], later[count + 1];
    uint64_t next_above[words];
    load_words(from, size, -lane * PIXEL, next);
    load_words(from, size, (batch - lane) * PIXEL, later);
#pragma unroll
    for (int k = 0; k < words; k++)
        next_above[k] = load_edge(launch, group, pixels, 0, words, k);
    /* All words are stored when the last lane is 3 pixels beyond its row, because a word may have parts of two
     * batches. */
    for (int first = 0; first < pixels + rows_at_once + 2; first += batch) {
        const int at = (first - lane) * PIXEL;
        uint32_t raw[count + 1], made[count + 1] = {};
        uint64_t above[words];
#pragma unroll
        for (int i = 0; i < count; i++)
            raw[i] = __funnelshift_r(next[i], next[i + 1], 8 * (unsigned)offset_of(from, at));
        raw[count] = 0;
#pragma unroll
        for (int i = 0; i <= count; i++)
            next[i] = later[i];
        load_words(from, size, at + 2 * batch * PIXEL, later); /* memory takes longer than a batch */
#pragma unroll
        for (int k = 0; k < words; k++) {
            above[k] = next_above[k];
            while (__any_sync(all_lanes, above[k] >> 32 == 0))
                above[k] = load_edge(launch, group, pixels, first, words, k);
            next_above[k] = load_edge(launch, group, pixels, first + batch, words, k);
        }
#pragma unroll
        for (int i = 0; i < batch; i++) {
            const int x = first - lane + i;
#pragma unroll
            for (int k = 0; k < words; k++) {
                /* The pixel above: of the lane before one step ago, or of the warp before. */
                const uint32_t inner = __shfl_up_sync(all_lanes, pixel[k], 1);
                const uint32_t outer = __shfl_sync(all_lanes, (uint32_t)above[k], i);
                const uint32_t up = lane == 0 ? outer : inner;
                const int byte = i * PIXEL + 4 * k, word = byte / 4, shift = byte % 4 * 8;
                const int bits = PIXEL - 4 * k < 4 ? (PIXEL - 4 * k) * 8 : 32;
                const uint32_t loaded = __funnelshift_r(raw[word], raw[word + 1], shift) & (~0u >> (32 - bits));
                const uint32_t difference = x >= 0 ? loaded : 0;
                uint32_t sums[2] = {};
#pragma unroll
                for (int half = 0; half < (PIXEL > 1 ? 2 : 1); half++) {
                    const uint32_t a = left[k][half], b = up >> 8 * half & prediction.up;
                    const uint32_t average = (a + b) >> 1 & 0x00ff00ff, paeth = predict_paeth(a, b, corner[k][half]);
                    sums[half] = (difference >> 8 * half & 0x00ff00ff) + (prediction.is_average ? average : paeth);
                    left[k][half] = sums[half] & prediction.left;
                    corner[k][half] = b & prediction.corner;
                }
                pixel[k] = __byte_perm(sums[0], sums[1], 0x6240);
                made[word] |= pixel[k] << shift;
                if (shift + bits > 32)
                    made[word + 1] |= pixel[k] >> (32 - shift);
                if (lane == rows_at_once - 1 && x >= 0 && x < pixels)
                    *(volatile uint64_t *)&edge[x * words + k] = (uint64_t)1 << 32 | pixel[k];
            }
        }
        const int offset = offset_of(to, at);
        uint32_t shifted[count];
#pragma unroll
        for (int i = 0; i < count; i++) {
            const uint32_t word = __byte_perm(made[i], 0, launch.order);
            shifted[i] = __funnelshift_l(last, word, 8 * (unsigned)offset);
            last = word;
        }
        store_words(to, size, at - offset, shifted);
    }
}

__global__ void __launch_bounds__(32) unfilter(const __grid_constant__ struct png_decode_launch launch)
{
    if (launch.state->status != INFLATED || launch.progress[1] != 0)
        return;
    const unsigned drawn = threadIdx.x == 0 ? atomicAdd(launch.progress, 1u) : 0;
    const int group = (int)__shfl_sync(all_lanes, drawn, 0);
    switch (launch.pixel) {
    case 1:
        undo_rows<1>(launch, group);
        break;
    case 2:
        undo_rows<2>(launch, group);
        break;
    case 3:
        undo_rows<3>(launch, group);
        break;
    case 4:
        undo_rows<4>(launch, group);
        break;
    case 6:
        undo_rows<6>(launch, group);
        break;
    default:
        undo_rows<8>(launch, group);
        break;
    }
}

/* ---- Samples ---- */

/* Are the bytes of the rows the samples, but for the order of the two bytes of a sample? */
bool has_samples(const struct png_layout *layout)
{
    return layout->bits >= 8 && !layout->paletted && !layout->transparent;
}

__global__ void __launch_bounds__(threads) expand(const __grid_constant__ struct png_decode_launch launch)
{
    const struct png_layout &layout = *launch.layout;
    const int x = (int)(blockIdx.x * threads + threadIdx.x);
    if (x >= layout.width || launch.state->status != INFLATED || launch.progress[1] != 0)
        return;
    const unsigned bits = (unsigned)layout.bits;
    const size_t all = (size_t)png_layout_channels(&layout), pixel_bytes = bits == 16 ? 2 * all : all;
    for (int y = (int)blockIdx.y; y < launch.height; y += (int)gridDim.y) {
        const uint8_t *row = launch.rows + (size_t)y * (launch.row_bytes + 1) + 1;
        uint8_t *pixel = launch.samples + ((size_t)y * (size_t)layout.width + (size_t)x) * pixel_bytes;
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
    if (!device_reserve_more(png->device, &decoder->data, size, error))
        return false;
    *bytes = decoder->data.bytes;
    return true;
}

bool device_png_decode(struct device_png *png, const struct png_layout *layout, uint8_t *samples, struct error *error)
{
    enum { SLACK = 64, ROW_SLACK = 4 }; /* bytes after the stream, and after the rows, that are read, and are 0 */
    struct device *device = png->device;
    struct png_decoder *decoder = &png->decoder;
    const uint8_t *data = decoder->data.bytes;
    const size_t row_bytes = png_row_bytes(layout, (size_t)layout->width),
                 expected = (size_t)layout->height * (row_bytes + 1);
    const int pixel = png_layout_pixel(layout);
    const size_t groups = (size_t)(layout->height - 1) / rows_at_once + 1, pixel_words = pixel > 4 ? 2 : 1,
                 progress = 1 + groups * (row_bytes / (size_t)pixel) * pixel_words;
    const bool is_ready = has_samples(layout);
    /* A stream of zlib: deflate, no dictionary, and a multiple of 31. */
    decoder->is_unsupported = decoder->size <= head_bytes + tail_bytes || (data[0] & 15) != 8 || (data[1] & 32) != 0 ||
                              (data[0] << 8 | data[1]) % 31 != 0 || expected > UINT32_MAX;
    if (decoder->is_unsupported)
        return true;
    const size_t size = decoder->size - head_bytes - tail_bytes;
    struct png_decode_launch launch;
    uint64_t *words; /* the two of launch.progress, and then the edges */
    if (!device_reserve_more(device, &decoder->stream, size + SLACK, error) ||
        !reserve_items(device, &decoder->rows, expected + ROW_SLACK, &launch.rows, error) ||
        !reserve_items(device, &decoder->sums, (size_t)layout->height, &launch.sums, error) ||
        !reserve_items(device, &decoder->layout, 1, &launch.layout, error) ||
        !reserve_items(device, &decoder->progress, progress, &words, error) ||
        !reserve_items(device, &decoder->result, 1, &launch.is_decoded, error) ||
        !device_upload(device, decoder->stream.bytes, data + head_bytes, size, error) ||
        !device_fill(device, decoder->stream.bytes + size, 0, SLACK, error) ||
        !device_fill(device, launch.rows + expected, 0, ROW_SLACK, error) ||
        !device_upload(device, decoder->layout.bytes, layout, sizeof *layout, error) ||
        !device_fill(device, words, 0, progress * sizeof *words, error) ||
        !inflate_queue(device, &decoder->inflation, decoder->stream.bytes, size, launch.rows, expected, error))
        return false;
    const uint8_t *tail = data + head_bytes + size;
    launch.row_bytes = row_bytes;
    launch.height = layout->height;
    launch.pixel = pixel;
    launch.progress = (unsigned *)words;
    launch.edges = words + 1;
    launch.out = is_ready ? samples : launch.rows + 1;
    launch.out_stride = row_bytes + !is_ready;
    launch.order = is_ready && layout->bits == 16 ? 0x2301 : 0x3210;
    launch.samples = samples;
    launch.state = (const struct inflate_state *)decoder->inflation.state.bytes;
    launch.adler = (uint32_t)tail[0] << 24 | (uint32_t)tail[1] << 16 | (uint32_t)tail[2] << 8 | tail[3];
    launch.last_byte = size;
    const dim3 pixels((unsigned)((layout->width - 1) / threads + 1), (unsigned)min(layout->height, 65535));
    const unsigned row_blocks = (unsigned)((layout->height - 1) / warps + 1);
    return queue_kernel(sum_rows, row_blocks, threads, 0, device, error, launch) &&
           queue_kernel(check, 1, adler_threads, 0, device, error, launch) &&
           queue_kernel(unfilter, (unsigned)groups, 32, 0, device, error, launch) &&
           (is_ready || queue_kernel(expand, pixels, threads, 0, device, error, launch));
}

bool device_png_decoded(struct device_png *png, bool *is_decoded, struct error *error)
{
    if (!device_wait(png->device, error))
        return false;
    *is_decoded = !png->decoder.is_unsupported && *(const volatile uint32_t *)png->decoder.result.bytes != 0;
    return true;
}
