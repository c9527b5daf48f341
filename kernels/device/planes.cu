/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/image/planes.c: split an interleaved image into planes, and merge them. On the way, colours are
 * multiplied or divided by alpha, and samples are converted to linear light and back, if the caller asks for it.
 *
 * For planes of uint8_t, both sides are accessed in whole aligned words. A thread converts groups of 4 pixels, in 4
 * rows:
 *
 *     image    rgbr gbrg brgb    4 pixels are CHANNELS words of 4 bytes,
 *     planes   rrrr gggg bbbb    and one word of each plane
 *
 * A row of the image starts at any byte, and a row of a plane at an aligned one, so the words of the two sides do not
 * coincide. Groups start at aligned words of the side that is written. On the side that is read, a thread loads one
 * word more and shifts the bytes into position. Bytes are permuted in registers (__byte_perm). With three channels,
 * words go through shared memory, so that each store of a warp is 128 contiguous bytes. Otherwise threads would be 12
 * bytes apart, and each 32-byte sector would be written in three parts.
 *
 * For planes of uint16_t and float, a thread converts pixels one by one. The pixels of a warp are side by side.
 *
 * Kernels with STEPS, for images of 8 bits, also change the pixels on the way: by steps before the first other filter,
 * or after the last one. */
#include "image/linear.h"
#include "kernels/shared/lanes.cuh"
#include "kernels/shared/point.cuh"
#include "kernels/shared/quads.cuh"

namespace
{
constexpr int rows = 4;                      /* rows of a thread */
constexpr int threads_x = 32, threads_y = 8; /* a warp works on one row at a time */
constexpr int tile_width = threads_x * 4;
constexpr int sector = 32; /* bytes; as pixels, they are whole sectors for each number of channels */

/* A kernel for CHANNELS of the image, which is aligned to 16 bytes, and PLANES, which may be fewer. */
using kernel = void(struct launch launch, unsigned char *image);

/* 4 pixels of the image. With 1, 2 and 4 channels they are one memory access. */
template <int CHANNELS>
struct alignas(CHANNELS == 3 ? 4 : 4 * CHANNELS) group {
    uint32_t word[CHANNELS];
};

/* A word of 4 bytes out of several words: its byte I is byte from(I) of them. */
template <typename From>
__device__ __forceinline__ uint32_t pick(const uint32_t *words, From from)
{
    uint32_t half[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int a = from(2 * i), b = from(2 * i + 1);
        half[i] = __byte_perm(words[a / 4], words[b / 4], (unsigned)(a % 4 + 16 * (4 + b % 4)));
    }
    return __byte_perm(half[0], half[1], 0x5410);
}

/* 4 samples of a colour times those of alpha. */
__device__ __forceinline__ uint32_t premultiply(uint32_t colours, uint32_t alphas)
{
    uint32_t product[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        product[k] = premultiply_sample((unsigned)byte_as<int>(colours, k), (unsigned)byte_as<int>(alphas, k));
    return pick(product, [](int i) { return 4 * i; });
}

/* unpremultiply_sample of 4 samples of each colour. The last word is alpha.
 *
 * It is floor(n / d) with n = 510 colour + alpha < 2^17 and d = 2 alpha <= 510, at most 255. Here it is (n + 1/2) / d -
 * 1/2, rounded to nearest. n + 1/2 is exact in float; (n + 1/2) / d is at least 1 / (2 d) > 2^-10 away from every
 * integer. The quotient 1 / d is within 2 ulp, and its product with n + 1/2 less 1/2 is rounded once. Together the
 * relative error is below 2^-21, which up to 256 is less than 2^-13. So below 256 the result is rounded to the floor.
 * From 256 on it is rounded to 255 or more, and the minimum makes it 255. Adding 1.5 * 2^23 rounds, because floats
 * there are 1 apart, and leaves the integer in the lowest byte. */
template <int CHANNELS>
__device__ __forceinline__ void unpremultiply(uint32_t (&word)[CHANNELS])
{
    float half[4], inverse[4]; /* alpha + 1/2, 1 / (2 alpha) */
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float alpha = byte_as<float>(word[CHANNELS - 1], k);
        half[k] = alpha + 0.5f;
        inverse[k] = alpha == 0.0f ? 0.0f : __fdividef(0.5f, alpha); /* 0 makes -1/2, which rounds to even: 0 */
    }
#pragma unroll
    for (int c = 0; c < CHANNELS - 1; c++) {
        uint32_t bits[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float n = __fmaf_rn(byte_as<float>(word[c], k), 510.0f, half[k]);
            bits[k] = __float_as_uint(fminf(__fmaf_rn(n, inverse[k], -0.5f), 255.0f) + 12582912.0f);
        }
        word[c] = pick(bits, [](int i) { return 4 * i; });
    }
}

/* What the steps make of the pixel at FROM, whose samples are STRIDE bytes apart. */
template <int PLANES>
__device__ __forceinline__ void change_pixel(const unsigned char *from, size_t stride, uint32_t (&changed)[PLANES],
                                             const uint8_t *levels, const struct point_steps &steps)
{
#pragma unroll
    for (int c = 0; c < PLANES; c++)
        changed[c] = from[c * stride];
    change<uint8_t, 1, PLANES>(changed, levels, steps);
}

/* Split the pixels at x to x + 3 of row y that are inside the image, byte by byte. */
template <int CHANNELS, int PLANES, bool PREMULTIPLY, typename... Steps>
__device__ __forceinline__ void split_pixels(const struct launch &launch, unsigned char *image, int y, int x,
                                             const uint8_t *levels, const Steps &...steps)
{
    const unsigned char *pixel = image + ((size_t)y * launch.width + x) * CHANNELS;
    unsigned char *to = launch.out + y * launch.out_row + x;
#pragma unroll
    for (int k = 0; k < 4; k++, pixel += CHANNELS, to++) {
        if (x + k >= launch.width)
            continue;
        uint32_t changed[PLANES];
        if constexpr (sizeof...(Steps) > 0)
            change_pixel(pixel, 1, changed, levels, steps...);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            if (c < PLANES && sizeof...(Steps) > 0)
                to[c * launch.out_plane] = (unsigned char)changed[c];
            else if (c < PLANES)
                to[c * launch.out_plane] =
                    (unsigned char)(PREMULTIPLY && c < CHANNELS - 1 ? premultiply_sample(pixel[c], pixel[CHANNELS - 1])
                                                                    : pixel[c]);
    }
}

/* Are the pixels at x to x + 3, whose bytes start at FROM, inside the row, and their words inside the image? */
template <int CHANNELS>
__device__ __forceinline__ bool split_whole(const struct launch &launch, int x, size_t from)
{
    return x + 4 <= launch.width &&
           from / 4 * 4 + 4 * (CHANNELS + 1) <= (size_t)launch.height * launch.width * CHANNELS;
}

template <int CHANNELS, int PLANES, bool PREMULTIPLY, typename... Steps>
__device__ __forceinline__ void split_tile(const struct launch &launch, unsigned char *image, const Steps &...steps)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * tile_width + (int)threadIdx.x * 4;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * rows;
    if (x >= launch.width && sizeof...(Steps) == 0) /* all threads call load_levels */
        return;
    const size_t row_bytes = (size_t)launch.width * CHANNELS;
    const size_t first = ((size_t)y * launch.width + x) * CHANNELS;

    uint32_t word[rows][CHANNELS + 1];
    bool whole[rows];
    bool all = true;
#pragma unroll
    for (int r = 0; r < rows; r++) {
        const size_t from = first + r * row_bytes, skip = from & 3;
        whole[r] = split_whole<CHANNELS>(launch, x, from);
        all &= whole[r];
        const uint32_t *words = (const uint32_t *)(image + (from - skip));
#pragma unroll
        for (int k = 0; k <= CHANNELS; k++)
            word[r][k] = whole[r] && (k < CHANNELS || skip != 0) ? words[k] : 0;
    }
    const uint8_t *levels = load_levels(steps...);
    unsigned char *to = launch.out + y * launch.out_row + x;
#pragma unroll
    for (int r = 0; r < rows; r++, to += launch.out_row) {
        uint32_t sample[CHANNELS];
#pragma unroll
        for (int k = 0; k < CHANNELS; k++)
            word[r][k] = __funnelshift_r(word[r][k], word[r][k + 1], 8 * (unsigned)(first + r * row_bytes & 3));
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            sample[c] = CHANNELS == 1 ? word[r][0] : pick(word[r], [=](int i) { return i * CHANNELS + c; });
        if (PREMULTIPLY)
#pragma unroll
            for (int c = 0; c < CHANNELS - 1; c++)
                sample[c] = premultiply(sample[c], sample[CHANNELS - 1]);
        change<uint8_t, 4, PLANES>(sample, levels, steps...);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            if (whole[r] && c < PLANES)
                *(uint32_t *)(to + c * launch.out_plane) = sample[c];
    }
    if (all)
        return;
#pragma unroll 1
    for (int r = 0; r < rows && y + r < launch.height; r++)
        if (!split_whole<CHANNELS>(launch, x, first + r * row_bytes))
            split_pixels<CHANNELS, PLANES, PREMULTIPLY>(launch, image, y + r, x, levels, steps...);
}

template <int CHANNELS, int PLANES, bool PREMULTIPLY = false>
__global__ void __launch_bounds__(threads_x *threads_y, 4) split(struct launch launch, unsigned char *image)
{
    split_tile<CHANNELS, PLANES, PREMULTIPLY>(launch, image);
}

template <int CHANNELS, int PLANES>
__global__ void __launch_bounds__(threads_x *threads_y, 4)
    split_steps(struct launch launch, unsigned char *image, const __grid_constant__ struct point_steps steps)
{
    split_tile<CHANNELS, PLANES, false>(launch, image, steps);
}

/* Merge the pixels at x to x + 3 of row y that are inside the image, byte by byte. */
template <int CHANNELS, int PLANES, bool PREMULTIPLY, typename... Steps>
__device__ __forceinline__ void merge_pixels(const struct launch &launch, unsigned char *image, int y, int x,
                                             const uint8_t *levels, const Steps &...steps)
{
    unsigned char *pixel = image + ((ptrdiff_t)y * launch.width + x) * CHANNELS;
    const unsigned char *from = launch.in + y * launch.in_row + x;
#pragma unroll
    for (int k = 0; k < 4; k++, pixel += CHANNELS, from++) {
        if (x + k < 0 || x + k >= launch.width)
            continue;
        const unsigned alpha = PREMULTIPLY ? from[(CHANNELS - 1) * launch.in_plane] : 255;
        uint32_t changed[PLANES];
        if constexpr (sizeof...(Steps) > 0)
            change_pixel(from, launch.in_plane, changed, levels, steps...);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            if (c < PLANES && sizeof...(Steps) > 0) {
                pixel[c] = (unsigned char)changed[c];
            } else if (c < PLANES) {
                const unsigned value = from[c * launch.in_plane];
                pixel[c] =
                    (unsigned char)(PREMULTIPLY && c < CHANNELS - 1 ? unpremultiply_sample(value, alpha) : value);
            }
    }
}

/* Rows are counted from up to sector - 1 columns further left. So groups start at words of the image, and warps at
 * sectors. This is the first column of the thread's group, which may be outside the image. */
__device__ __forceinline__ int merge_column(const struct launch &launch, int group_x, int y)
{
    return group_x - (int)((size_t)y * launch.width % sector);
}

/* Are the pixels at x to x + 3 inside the row, and also the words of planes that contain them? */
__device__ __forceinline__ bool merge_whole(const struct launch &launch, int x)
{
    return x - (x & 3) >= 0 && x - (x & 3) + ((x & 3) == 0 ? 4 : 8) <= launch.width;
}

template <int CHANNELS, int PLANES, bool PREMULTIPLY, typename... Steps>
__device__ __forceinline__ void merge_tile(const struct launch &launch, unsigned char *image, const Steps &...steps)
{
    __shared__ uint32_t shared[CHANNELS == 3 ? threads_y : 1][threads_x * 3];
    const int2 tile = block_tile(launch);
    const int warp_x = tile.x * tile_width, group_x = warp_x + (int)threadIdx.x * 4;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * rows, count = min(rows, launch.height - y);

    uint32_t low[rows][CHANNELS], high[rows][CHANNELS];
    group<CHANNELS> old[rows] = {}; /* the image's bytes, if some of them are kept */
#pragma unroll
    for (int r = 0; r < rows; r++) {
        const int x = merge_column(launch, group_x, y + r), skip = x & 3;
        const bool whole = r < count && merge_whole(launch, x);
        const unsigned char *from = launch.in + (y + r) * launch.in_row + (x - skip);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++, from += launch.in_plane) {
            low[r][c] = whole && c < PLANES ? ((const uint32_t *)from)[0] : 0;
            high[r][c] = whole && c < PLANES && skip != 0 ? ((const uint32_t *)from)[1] : 0;
        }
        if (PLANES < CHANNELS && whole)
            old[r] = *(const group<CHANNELS> *)(image + ((ptrdiff_t)(y + r) * launch.width + x) * CHANNELS);
    }
    const uint8_t *levels = load_levels(steps...);
#pragma unroll
    for (int r = 0; r < rows; r++) {
        if (r >= count) /* the whole warp */
            break;
        const int x = merge_column(launch, group_x, y + r);
        const bool whole = merge_whole(launch, x);
        unsigned char *to = image + ((ptrdiff_t)(y + r) * launch.width + x) * CHANNELS;
        uint32_t sample[CHANNELS];
        group<CHANNELS> out;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            sample[c] = __funnelshift_r(low[r][c], high[r][c], 8 * (unsigned)(x & 3));
        if constexpr (PREMULTIPLY)
            unpremultiply(sample);
        change<uint8_t, 4, PLANES>(sample, levels, steps...);
#pragma unroll
        for (int k = 0; k < CHANNELS; k++) {
            out.word[k] = CHANNELS == 1 ? sample[0] : pick(sample, [=](int i) {
                const int b = 4 * k + i; /* byte of the group: channel b % CHANNELS of pixel b / CHANNELS */
                return b % CHANNELS * 4 + b / CHANNELS;
            });
            uint32_t kept = 0; /* the bytes of channels that have no plane */
#pragma unroll
            for (int i = 0; i < 4; i++)
                kept |= (4 * k + i) % CHANNELS >= PLANES ? 255u << 8 * i : 0;
            out.word[k] = (out.word[k] & ~kept) | (old[r].word[k] & kept);
        }
        if constexpr (CHANNELS == 3) {
            __syncwarp(); /* wait until the last row's words are read */
            exchange(shared[threadIdx.y], out.word);
            to -= 12 * threadIdx.x; /* to the warp's first word */
#pragma unroll
            for (int k = 0; k < 3; k++) {
                const int index = (int)threadIdx.x + threads_x * k; /* a word of group index / 3 */
                if (merge_whole(launch, x - 4 * (int)threadIdx.x + index / 3 * 4))
                    *(uint32_t *)(to + 4 * index) = out.word[k];
            }
        } else if (whole) {
            *(group<CHANNELS> *)to = out;
        }
    }
#pragma unroll 1
    for (int r = 0; r < count; r++) {
        const int x = merge_column(launch, group_x, y + r);
        if (!merge_whole(launch, x) && x + 4 > 0 && x < launch.width)
            merge_pixels<CHANNELS, PLANES, PREMULTIPLY>(launch, image, y + r, x, levels, steps...);
    }
}

template <int CHANNELS, int PLANES, bool PREMULTIPLY = false>
__global__ void __launch_bounds__(threads_x *threads_y, PLANES < CHANNELS ? 3 : 4)
    merge(struct launch launch, unsigned char *image)
{
    merge_tile<CHANNELS, PLANES, PREMULTIPLY>(launch, image);
}

template <int CHANNELS, int PLANES>
__global__ void __launch_bounds__(threads_x *threads_y, PLANES < CHANNELS ? 2 : 4)
    merge_steps(struct launch launch, unsigned char *image, const __grid_constant__ struct point_steps steps)
{
    merge_tile<CHANNELS, PLANES, false>(launch, image, steps);
}

/* Kernels by channels and planes; with premultiplied colours, all planes are needed. */
kernel *const splits[4][4] = {
    {split<1, 1>},
    {split<2, 1>, split<2, 2>},
    {split<3, 1>, split<3, 2>, split<3, 3>},
    {split<4, 1>, split<4, 2>, split<4, 3>, split<4, 4>},
};
kernel *const premultiplying_splits[4] = {split<1, 1>, split<2, 2, true>, split<3, 3>, split<4, 4, true>};
kernel *const merges[4][4] = {
    {merge<1, 1>},
    {merge<2, 1>, merge<2, 2>},
    {merge<3, 1>, merge<3, 2>, merge<3, 3>},
    {merge<4, 1>, merge<4, 2>, merge<4, 3>, merge<4, 4>},
};
kernel *const black_splits[4] = {split<1, 1>, split<2, 1, true>, split<3, 3>, split<4, 3, true>};
kernel *const premultiplying_merges[4] = {merge<1, 1>, merge<2, 2, true>, merge<3, 3>, merge<4, 4, true>};

/* Without alpha's plane, and with it. */
using steps_kernel = void(struct launch launch, unsigned char *image, struct point_steps steps);
steps_kernel *const splits_steps[4][2] = {
    {split_steps<1, 1>, split_steps<1, 1>},
    {split_steps<2, 1>, split_steps<2, 2>},
    {split_steps<3, 3>, split_steps<3, 3>},
    {split_steps<4, 3>, split_steps<4, 4>},
};
steps_kernel *const merges_steps[4][2] = {
    {merge_steps<1, 1>, merge_steps<1, 1>},
    {merge_steps<2, 1>, merge_steps<2, 2>},
    {merge_steps<3, 3>, merge_steps<3, 3>},
    {merge_steps<4, 3>, merge_steps<4, 4>},
};

/* Planes of uint16_t and float. */

/* The conversions of samples on the way. */
struct conversion16 {
    int planes;
    enum alpha alpha;            /* ALPHA_KEEP where the image has none */
    const struct linear *linear; /* the tables in device memory, or NULL */
};

/* Is channel C a colour? */
template <int CHANNELS>
__device__ __forceinline__ bool is_colour(int c)
{
    return CHANNELS % 2 == 1 || c < CHANNELS - 1;
}

__device__ __forceinline__ uint16_t to_plane16(uint8_t sample, const struct linear_tables *tables)
{
    return tables ? __ldg(&tables->from8[sample]) : widen_sample(sample);
}

__device__ __forceinline__ uint16_t to_plane16(uint16_t sample, const struct linear_tables *tables)
{
    return tables ? __ldg(&tables->from16[sample]) : sample;
}

__device__ __forceinline__ void from_plane16(uint16_t value, const struct linear_tables *tables, uint8_t *sample)
{
    *sample = tables ? linear_to8(tables, value, *sample) : reduce_sample(value);
}

__device__ __forceinline__ void from_plane16(uint16_t value, const struct linear_tables *tables, uint16_t *sample)
{
    *sample = tables ? linear_to16(tables, value, *sample) : value;
}

/* A colour times alpha. VALUE is the colour as it is in planes. */
__device__ __forceinline__ uint16_t multiply(uint8_t colour, uint8_t alpha, uint16_t value,
                                             const struct conversion16 &conversion)
{
    return conversion.linear ? premultiply_sample16(value, widen_sample(alpha))
                             : multiply_alpha(conversion.alpha, colour, alpha);
}

__device__ __forceinline__ uint16_t multiply(uint16_t, uint16_t alpha, uint16_t value, const struct conversion16 &)
{
    return premultiply_sample16(value, alpha);
}

constexpr int columns16 = 4; /* pixels of a thread, a warp's width apart: as many loads are under way at once */
constexpr int width16 = columns16 * threads_x;

/* A kernel for samples of T. */
using kernel16 = void(struct launch launch, unsigned char *image, struct conversion16 conversion);

/* Let WORK(row of PLANES, pixel, column) do the thread's pixels of IMAGE. */
template <int CHANNELS, typename T, typename Plane, typename Work>
__device__ __forceinline__ void each_pixel(const struct launch &launch, T *image, Plane *planes, size_t row_bytes,
                                           Work work)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * width16 + (int)threadIdx.x, y = tile.y * threads_y + (int)threadIdx.y;
    if (y >= launch.height)
        return;
    T *pixel = image + ((size_t)y * launch.width + x) * CHANNELS;
    Plane *row = planes + y * row_bytes;
#pragma unroll
    for (int k = 0; k < columns16; k++, pixel += threads_x * CHANNELS) {
        const int at = x + threads_x * k;
        if (at < launch.width)
            work(row, pixel, at);
    }
}

template <typename T, int CHANNELS>
__global__ void __launch_bounds__(threads_x *threads_y)
    split16(struct launch launch, unsigned char *image, struct conversion16 conversion)
{
    each_pixel<CHANNELS>(
        launch, (const T *)image, launch.out, launch.out_row, [=](unsigned char *to, const T *from, int at) {
            const bool headroom = sizeof(T) == 1 && conversion.alpha == ALPHA_HEADROOM && !conversion.linear;
            uint16_t value[CHANNELS];
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                value[c] = to_plane16(from[c], is_colour<CHANNELS>(c) ? linear_of(conversion.linear, c) : NULL);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                if (is_colour<CHANNELS>(c) && conversion.alpha != ALPHA_KEEP)
                    value[c] = multiply(from[c], from[CHANNELS - 1], value[c], conversion);
                else if (!is_colour<CHANNELS>(c) && headroom)
                    value[c] = (uint16_t)(from[c] * HEADROOM_UNIT);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                if (c < conversion.planes)
                    ((uint16_t *)(to + c * launch.out_plane))[at] = value[c];
        });
}

template <typename T, int CHANNELS>
__global__ void __launch_bounds__(threads_x *threads_y)
    merge16(struct launch launch, unsigned char *image, struct conversion16 conversion)
{
    each_pixel<CHANNELS>(launch, (T *)image, launch.in, launch.in_row, [=](const unsigned char *from, T *to, int at) {
        uint16_t value[CHANNELS];
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            value[c] = c < conversion.planes ? ((const uint16_t *)(from + c * launch.in_plane))[at] : 0;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            const bool divides = conversion.alpha == ALPHA_PREMULTIPLY || conversion.alpha == ALPHA_HEADROOM;
            if (c >= conversion.planes)
                continue;
            if (sizeof(T) == 1 && conversion.alpha == ALPHA_HEADROOM && !conversion.linear)
                to[c] = is_colour<CHANNELS>(c) ? (uint8_t)unpremultiply_sample(value[c], value[CHANNELS - 1])
                                               : reduce_headroom(value[c]);
            else
                from_plane16(divides && is_colour<CHANNELS>(c) ? unpremultiply_sample16(value[c], value[CHANNELS - 1])
                                                               : value[c],
                             is_colour<CHANNELS>(c) ? linear_of(conversion.linear, c) : NULL, &to[c]);
        }
    });
}

/* Floats are multiplied and divided as on the CPU. */
template <int CHANNELS>
__global__ void __launch_bounds__(threads_x *threads_y)
    split_floats(struct launch launch, unsigned char *image, struct conversion16 conversion)
{
    each_pixel<CHANNELS>(
        launch, (const float *)image, launch.out, launch.out_row, [=](unsigned char *to, const float *from, int at) {
            const float alpha = from[CHANNELS - 1];
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                if (c < conversion.planes)
                    ((float *)(to + c * launch.out_plane))[at] =
                        is_colour<CHANNELS>(c) && conversion.alpha != ALPHA_KEEP ? from[c] * alpha : from[c];
        });
}

template <int CHANNELS>
__global__ void __launch_bounds__(threads_x *threads_y)
    merge_floats(struct launch launch, unsigned char *image, struct conversion16 conversion)
{
    each_pixel<CHANNELS>(
        launch, (float *)image, launch.in, launch.in_row, [=](const unsigned char *from, float *to, int at) {
            const bool divides = conversion.alpha == ALPHA_PREMULTIPLY || conversion.alpha == ALPHA_HEADROOM;
            const float alpha = divides ? ((const float *)(from + (CHANNELS - 1) * launch.in_plane))[at] : 0;
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                if (c < conversion.planes) {
                    const float value = ((const float *)(from + c * launch.in_plane))[at];
                    to[c] = !divides || !is_colour<CHANNELS>(c) ? value : alpha > 0 ? value / alpha : 0;
                }
        });
}

/* By bits and channels. */
kernel16 *const splits16[3][4] = {
    {split16<uint8_t, 1>, split16<uint8_t, 2>, split16<uint8_t, 3>, split16<uint8_t, 4>},
    {split16<uint16_t, 1>, split16<uint16_t, 2>, split16<uint16_t, 3>, split16<uint16_t, 4>},
    {split_floats<1>, split_floats<2>, split_floats<3>, split_floats<4>},
};
kernel16 *const merges16[3][4] = {
    {merge16<uint8_t, 1>, merge16<uint8_t, 2>, merge16<uint8_t, 3>, merge16<uint8_t, 4>},
    {merge16<uint16_t, 1>, merge16<uint16_t, 2>, merge16<uint16_t, 3>, merge16<uint16_t, 4>},
    {merge_floats<1>, merge_floats<2>, merge_floats<3>, merge_floats<4>},
};

/* Divide the colours of PIXELS by alpha, as Pillow does. */
__global__ void __launch_bounds__(threads_x *threads_y) divide(unsigned char *image, size_t pixels, int channels)
{
    const size_t i = (size_t)blockIdx.x * (threads_x * threads_y) + threadIdx.x;
    unsigned char *pixel = image + i * (size_t)channels;
    for (int c = 0; i < pixels && c < channels - 1; c++)
        pixel[c] = (unsigned char)pillow_unpremultiply(pixel[c], pixel[channels - 1]);
}

template <typename... Steps>
bool run(void (*kernel)(struct launch, unsigned char *, Steps...), int lead, struct device *device,
         const struct plane *planes, const struct image *image, struct error *error, Steps... steps)
{
    return launch_kernel(kernel, planes_launch(planes, planes), 1, device,
                         {tile_width, threads_y * rows, dim3(threads_x, threads_y), 0, lead}, error,
                         (unsigned char *)image->samples, steps...);
}

/* The samples by which a row of the merge starts early, at most. */
int merge_lead(const struct plane *planes)
{
    return planes->width % sector == 0 ? 0 : sector - 1;
}

bool run16(kernel16 *const kernels[3][4], enum alpha alpha, const struct linear *linear, struct device *device,
           const struct plane *planes, const struct image *image, struct error *error)
{
    const struct conversion16 conversion = {
        planes->count, alpha_multiplies(alpha) && image_has_alpha(image) ? alpha : ALPHA_KEEP, linear};
    return launch_kernel(kernels[image->bits / 16][image->channels - 1], planes_launch(planes, planes), 1, device,
                         {width16, threads_y, dim3(threads_x, threads_y)}, error, (unsigned char *)image->samples,
                         conversion);
}
} // namespace

bool device_split(struct device *device, const struct image *image, enum alpha alpha, const struct linear *linear,
                  const struct plane *planes, struct error *error)
{
    const bool is_pillow = alpha == ALPHA_PILLOW; /* levels of 8 bits are multiplied, also for planes of 16 bits */
    if (planes->sample != SAMPLE_U8)
        return run16(splits16, is_pillow ? ALPHA_BLACK : alpha, linear, device, planes, image, error);
    const int channels = image->channels;
    return run(alpha == ALPHA_PREMULTIPLY || is_pillow ? premultiplying_splits[channels - 1]
               : alpha == ALPHA_BLACK                  ? black_splits[channels - 1]
                                                       : splits[channels - 1][planes->count - 1],
               0, device, planes, image, error);
}

bool device_merge(struct device *device, const struct plane *planes, enum alpha alpha, const struct linear *linear,
                  const struct image *image, struct error *error)
{
    if (alpha == ALPHA_PILLOW && image_has_alpha(image)) {
        const size_t pixels = (size_t)image->width * (size_t)image->height, block = threads_x * threads_y;
        return device_merge(device, planes, ALPHA_FILTER, linear, image, error) &&
               queue_kernel(divide, dim3((unsigned)((pixels - 1) / block + 1)), dim3((unsigned)block), 0, device, error,
                            (unsigned char *)image->samples, pixels, image->channels);
    }
    if (planes->sample != SAMPLE_U8)
        return run16(merges16, alpha, linear, device, planes, image, error);
    const int channels = image->channels;
    return run(alpha == ALPHA_PREMULTIPLY ? premultiplying_merges[channels - 1]
                                          : merges[channels - 1][planes->count - 1],
               merge_lead(planes), device, planes, image, error);
}

bool device_split_points(struct device *device, const struct device_points *points, const struct image *image,
                         const struct plane *planes, struct error *error)
{
    return run(splits_steps[image->channels - 1][planes->count == image->channels], 0, device, planes, image, error,
               steps_of(points));
}

bool device_merge_points(struct device *device, const struct device_points *points, const struct plane *planes,
                         const struct image *image, struct error *error)
{
    return run(merges_steps[image->channels - 1][planes->count == image->channels], merge_lead(planes), device, planes,
               image, error, steps_of(points));
}
