/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of filter_loops.c, deflate.c and the writing in deflate_loops.c.
 * The PNG encoder, from samples to the stream: six kernels, one after the other.
 *
 *     filter   a warp filters a row, and sums it up for the Adler-32
 *     split    split.cu finds the repetitions of each block
 *     codes    codes.cuh: a warp makes the codes of a block, which say how many bits the block has
 *     place    one block of threads adds up the bits of all blocks, and the sums of all rows
 *     emit     a block of threads writes the bits of a block to their position
 *
 * Each bit is written once, to words that were 0, so the result does not depend on the order of the threads. */
#include "png/adler.cuh"
#include "png/codes.cuh"
#include "png/encode.cuh"
#include "png/workspace.cuh"

namespace
{
/* ---- Filter ---- */

/* Rows of samples. Their functions take bytes of a file, 4 at once: the first is the lowest. */
struct rows {
    const uint8_t *here, *above; /* both are the same for the first row, and UP is 0 */
    int size, pixel;             /* bytes */
    uint32_t up;                 /* the bits of bytes above that count */
    bool swap;                   /* the bytes of a sample change their order */
};

/* What FILTER predicts for 4 bytes, from their neighbours. Paeth's prediction is the nearest neighbour to LEFT + UP -
 * CORNER: png/filter.c says why it is these. */
__device__ __forceinline__ uint32_t predict(int filter, uint32_t left, uint32_t up, uint32_t corner)
{
    if (filter == PNG_SUB)
        return left;
    if (filter == PNG_UP)
        return up;
    if (filter == PNG_AVERAGE)
        return __vhaddu4(left, up);
    if (filter != PNG_PAETH)
        return 0;
    const uint32_t swap = __vcmpgtu4(left, up) & (left ^ up), low = left ^ swap, high = up ^ swap;
    const uint32_t x = __vabsdiffu4(high, corner) & __vcmpgtu4(high, corner);
    const uint32_t y = __vabsdiffu4(corner, low) & __vcmpgtu4(corner, low);
    const uint32_t not_high = __vcmpgtu4(y, x >> 1 & 0x7f * each_byte),
                   not_low = __vcmpgtu4(x, y >> 1 & 0x7f * each_byte);
    return (low & ~not_low) | (not_low & ((high & ~not_high) | (corner & not_high)));
}

/* Twice the sum of the magnitudes of 4 differences, which count at most PNG_DIFFERENCE_MAX each: the smaller of two
 * numbers, twice, is their sum less their difference. */
__device__ __forceinline__ uint32_t double_magnitudes(uint32_t bytes, uint32_t predicted, uint32_t counted,
                                                      uint32_t sum)
{
    constexpr uint32_t limit = PNG_DIFFERENCE_MAX * each_byte, half = 0x80 * each_byte;
    const uint32_t magnitudes = __vabsdiffu4(__vabsdiffu4(bytes, predicted) ^ half, half); /* 256 - n above 128 */
    return __dp4a((magnitudes + limit - __vabsdiffu4(magnitudes, limit)) & counted, each_byte, sum);
}

/* The bits of the 4 bytes from AT on that the row has. */
__device__ __forceinline__ uint32_t bits_inside(const struct rows &rows, int at)
{
    const int missing = at + 4 - rows.size;
    return missing >= 4 ? 0 : (all_lanes << 8 * max(-at, 0)) & (all_lanes >> 8 * max(missing, 0));
}

/* 8 bytes from AT on, in two words. A byte outside the row is 0. */
__device__ __forceinline__ uint2 bytes_near_end(const struct rows &rows, const uint8_t *row, int at)
{
    uint64_t bytes = 0;
    for (int i = max(at, 0); i < min(at + 8, rows.size); i++)
        bytes |= (uint64_t)row[i ^ (int)rows.swap] << 8 * (i - at);
    return make_uint2((uint32_t)bytes, (uint32_t)(bytes >> 32));
}

/* The 8 bytes from AT on, where the row has these, the 8 after them and the 4 before them. */
template <bool swap>
__device__ __forceinline__ uint2 bytes_at(const uint8_t *row, int at)
{
    const uint8_t *const first = row + (swap ? at & ~1 : at);
    const uint32_t *const words = (const uint32_t *)((uintptr_t)first & ~(uintptr_t)3);
    const unsigned shift = 8 * (unsigned)((uintptr_t)first & 3), order = at & 1 ? 0x5230 : 0x2301;
    const uint32_t low = __funnelshift_r(words[0], words[1], shift), high = __funnelshift_r(words[1], words[2], shift);
    if (!swap)
        return make_uint2(low, high);
    return make_uint2(__byte_perm(low, high, order),
                      __byte_perm(high, __funnelshift_r(words[2], words[3], shift), order));
}

/* See visit_row. One branch decides about all loads, so that they do not wait for each other. */
template <bool swap, typename Visit>
__device__ __forceinline__ void visit_bytes(const struct rows &rows, int first, Visit visit)
{
    for (int at = first + 8 * ((int)threadIdx.x % 32); at < rows.size; at += 8 * 32) {
        const int before = at - rows.pixel;
        uint2 bytes, left, up, corner, counted = make_uint2(all_lanes, all_lanes);
        if (before >= 4 && at + 16 <= rows.size) {
            bytes = bytes_at<swap>(rows.here, at);
            left = bytes_at<swap>(rows.here, before);
            up = bytes_at<swap>(rows.above, at);
            corner = bytes_at<swap>(rows.above, before);
        } else {
            bytes = bytes_near_end(rows, rows.here, at);
            left = bytes_near_end(rows, rows.here, before);
            up = bytes_near_end(rows, rows.above, at);
            corner = bytes_near_end(rows, rows.above, before);
            counted = make_uint2(bits_inside(rows, at), bits_inside(rows, at + 4));
        }
        visit(at, counted.x, bytes.x, left.x, up.x & rows.up, corner.x & rows.up);
        visit(at + 4, counted.y, bytes.y, left.y, up.y & rows.up, corner.y & rows.up);
    }
}

/* Call VISIT(at, counted, bytes, left, up, corner) for the bytes that the lane has. The row's first byte is one of the
 * 4 from FIRST on. COUNTED has the bits of those that the row has. */
template <typename Visit>
__device__ __forceinline__ void visit_row(const struct rows &rows, int first, Visit visit)
{
    if (rows.swap)
        visit_bytes<true>(rows, first, visit);
    else
        visit_bytes<false>(rows, first, visit);
}

__global__ void __launch_bounds__(threads) filter_rows(const __grid_constant__ struct png_encode_launch launch)
{
    const int row = (int)blockIdx.x * warps + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    if (row >= launch.height)
        return;
    const size_t size = launch.row_bytes;
    struct rows rows;
    rows.here = launch.samples + (size_t)row * size;
    rows.above = row > 0 ? rows.here - size : rows.here;
    rows.size = (int)size;
    rows.pixel = launch.pixel;
    rows.up = row > 0 ? all_lanes : 0;
    rows.swap = launch.is_wide != 0;
    uint8_t *const out = launch.filtered + (size_t)row * (size + 1);
    const int first = -(int)((uintptr_t)(out + 1) & 3); /* words of the result are aligned */

    uint32_t sums[PNG_FILTERS] = {};
    visit_row(rows, first, [&](int, uint32_t counted, uint32_t bytes, uint32_t left, uint32_t up, uint32_t corner) {
#pragma unroll
        for (int f = 0; f < PNG_FILTERS; f++)
            sums[f] = double_magnitudes(bytes, predict(f, left, up, corner), counted, sums[f]);
    });
    int best = PNG_NONE;
    uint32_t lowest = all_lanes;
#pragma unroll
    for (int f = 0; f < PNG_FILTERS; f++) {
        sums[f] = sum_of_lanes(sums[f]);
        best = sums[f] < lowest ? f : best;
        lowest = min(lowest, sums[f]);
    }

    struct adler_sums sums_of_row = {0, 0};
    visit_row(rows, first, [&](int at, uint32_t counted, uint32_t bytes, uint32_t left, uint32_t up, uint32_t corner) {
        const uint32_t values = __vsub4(bytes, predict(best, left, up, corner)) & counted;
        adler_add(sums_of_row, values, rows.size - at);
        if (counted == all_lanes)
            *(uint32_t *)(out + 1 + at) = values;
        else
            for (int i = max(at, 0); i < min(at + 4, rows.size); i++)
                out[1 + i] = (uint8_t)(values >> 8 * (i - at));
    });
    const uint2 whole = adler_end(sums_of_row, (uint32_t)best, size + 1);
    if (lane == 0) {
        out[0] = (uint8_t)best;
        launch.sums[row] = whole;
    }
}

/* ---- Codes ---- */

__global__ void __launch_bounds__(32) make_codes(const __grid_constant__ struct png_encode_launch launch)
{
    __shared__ struct coding coding;
    struct block &block = launch.block_list[blockIdx.x];
    const struct part part = part_of(launch, (int)blockIdx.x);
    for (int i = (int)threadIdx.x; i < (int)(sizeof coding.uses / 4); i += 32)
        ((uint32_t *)&coding.uses)[i] = ((const uint32_t *)&block.uses)[i];
    __syncwarp();
    make_code(coding, coding.uses.litlens, DEFLATE_LITLENS, CODE_MAX, coding.codes.litlens);
    make_code(coding, coding.uses.distances, DEFLATE_DISTANCES, CODE_MAX, coding.codes.distances);
    make_precode(coding);
    const unsigned description_bits = describe(coding, part.ends_stream), bits = description_bits + symbol_bits(coding);
    if (threadIdx.x == 0) {
        block.bits = bits;
        block.is_stored = bits >= 8 * (unsigned)part.size;
        block.description_bits = description_bits;
    }
    for (int i = (int)threadIdx.x; i < description_words; i += 32)
        block.description[i] = coding.description[i];
    deflate_set_tables(&block.tables, &coding.codes, threadIdx.x, 32);
}

/* ---- Positions ---- */

constexpr int place_threads = adler_threads;
constexpr unsigned block_head = 3, stored_head = 32, byte_bits = 8; /* bits */

__device__ __forceinline__ uint64_t next_byte(uint64_t bit)
{
    return (bit + byte_bits - 1) / byte_bits * byte_bits;
}

/* The end of a stored block of SIZE bytes that begins at bit AT. */
__device__ __forceinline__ uint64_t stored_end(uint64_t at, int size)
{
    return next_byte(at + block_head) + stored_head + byte_bits * (uint64_t)size;
}

/* Set the positions of a band's blocks, from the band's begin. Returns the bytes of the band. */
__device__ __forceinline__ uint64_t place_band(const struct png_encode_launch &launch, int band)
{
    uint64_t at = 0;
    for (int number = band * launch.band_blocks;; number++) {
        const struct part part = part_of(launch, number);
        struct block &block = launch.block_list[number];
        block.position = at;
        at = block.is_stored ? stored_end(at, part.size) : at + block.bits;
        if (part.ends_band)
            return (part.ends_stream ? next_byte(at) : stored_end(at, 0)) / byte_bits;
    }
}

__global__ void __launch_bounds__(place_threads) place_blocks(const __grid_constant__ struct png_encode_launch launch)
{
    __shared__ uint64_t sums[place_threads];
    uint64_t start = 0; /* bytes of the stream before the next bands */
    for (int first = 0; first < launch.bands; first += place_threads) {
        const int band = first + (int)threadIdx.x;
        const uint64_t bytes = band < launch.bands ? place_band(launch, band) : 0;
        __syncthreads();
        const uint64_t end = start + sum_up_to<place_threads>(sums, bytes);
        if (band < launch.bands)
            launch.ends[band] = end;
        start += sums[place_threads - 1];
        __syncthreads();
    }
    const uint32_t adler = adler_join(sums, launch.sums, launch.height, launch.row_bytes + 1);
    if (threadIdx.x == 0) {
        launch.result->size = start;
        launch.result->adler = adler;
    }
}

/* ---- Bits ---- */

/* Write a stored block of PART's bytes that begins at bit AT. */
__device__ __forceinline__ void emit_stored(const struct png_encode_launch &launch, const struct part &part,
                                            uint64_t at)
{
    const uint64_t head = next_byte(at + block_head), first = (head + stored_head) / byte_bits,
                   end = first + (uint64_t)part.size;
    if (threadIdx.x == 0) {
        put_bits(launch.stream, at, part.ends_stream, block_head);
        put_bits(launch.stream, head, (uint32_t)part.size | ~(uint32_t)part.size << 16, stored_head);
    }
    for (uint64_t word = first / 4 + threadIdx.x; 4 * word < end; word += threads) {
        uint32_t value = 0;
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            if (4 * word + k >= first && 4 * word + k < end)
                value |= (uint32_t)part.bytes[4 * word + k - first] << byte_bits * k;
        atomicOr(launch.stream + word, value);
    }
}

constexpr int thread_bytes = 8, step_bytes = threads * thread_bytes;
/* A repetition has 3 bytes or more, and its codes and extra bits at most 42 bits. */
constexpr int step_words = step_bytes * 14 / 32 + 4;

struct emission {
    struct deflate_tables tables;
    uint32_t words[step_words]; /* bits of a step, from a word of the stream on; 0 between steps */
    uint32_t sums[warps];
};

/* Bits on their way to words of 32 bits, which other threads share. */
struct word_writer {
    uint32_t *word;
    uint64_t waiting;
    unsigned count; /* below 32 */
};

/* COUNT is at most 32. */
__device__ __forceinline__ void add_bits(struct word_writer &out, uint32_t value, unsigned count)
{
    out.waiting |= (uint64_t)value << out.count;
    out.count += count;
    if (out.count >= 32) {
        atomicOr(out.word++, (uint32_t)out.waiting);
        out.waiting >>= 32;
        out.count -= 32;
    }
}

/* The codes of a repetition: LENGTH is as in the tables. */
struct repetition_codes {
    uint32_t length, distance;
    unsigned distance_count;
};

__device__ __forceinline__ struct repetition_codes codes_of(const struct deflate_tables &tables, uint32_t repetition)
{
    const unsigned rest = (repetition >> 16) - 1, symbol = deflate_symbol(rest, DISTANCE_STEPS);
    const unsigned extra = deflate_extra(symbol, DISTANCE_STEPS);
    const uint32_t code = tables.distances[symbol], count = code & 255;
    return {tables.lengths[repetition & 0xffff], code >> 8 | (rest & ((1u << extra) - 1)) << count, count + extra};
}

/* Write the block, which begins at bit AT. Its first and last word may also have bits of others. */
__device__ __forceinline__ void emit_coded(const struct png_encode_launch &launch, struct emission &emission,
                                           const struct block &block, const struct part &part, uint64_t at)
{
    const int t = (int)threadIdx.x;
    const struct deflate_tables &tables = emission.tables;
    for (int i = t; i < (int)(sizeof tables / 4); i += threads)
        ((uint32_t *)&emission.tables)[i] = ((const uint32_t *)&block.tables)[i];
    for (int i = t; i < step_words; i += threads)
        emission.words[i] = 0;
    for (unsigned first = 32 * threadIdx.x; first < block.description_bits; first += 32 * threads)
        put_bits(launch.stream, at + first, block.description[first / 32], min(32u, block.description_bits - first));
    at += block.description_bits;
    __syncthreads();
    for (int first = 0; first < part.size; first += step_bytes) {
        const int start = first + thread_bytes * t;
        uint32_t codes[thread_bytes] = {}, begun = 0, sum = 0, whole;
        if (start < part.size) {
            const uint64_t bytes = load64(part.bytes + start);
            const uint32_t literals = ~((const uint8_t *)block.covered)[start / 8] & inside(0, part.size - start);
            begun = ((const uint8_t *)block.begun)[start / 8];
#pragma unroll
            for (int k = 0; k < thread_bytes; k++) {
                codes[k] = literals >> k & 1 ? tables.literals[bytes >> 8 * k & 255] : 0;
                sum += codes[k]; /* 8 counts fit in the lowest 8 bits */
            }
        }
        uint32_t count = sum & 255;
        for (uint32_t left = begun; left != 0; left &= left - 1) {
            const int position = start + __ffs((int)left) - 1;
            const struct repetition_codes repetition = codes_of(tables, block.repetitions[position / 2]);
            count += (repetition.length & 255) + repetition.distance_count;
        }
        const uint32_t bit = (uint32_t)(at % 32) + sum_before<warps>(emission.sums, count, &whole);
        struct word_writer out = {emission.words + bit / 32, 0, bit % 32};
#pragma unroll
        for (int k = 0; k < thread_bytes;
             k += 2) { /* a repetition is after the literals: it has both bytes or the last */
            add_bits(out, codes[k] >> 8 | codes[k + 1] >> 8 << (codes[k] & 255), (codes[k] + codes[k + 1]) & 255);
            if (begun >> k & 3) {
                const struct repetition_codes repetition = codes_of(tables, block.repetitions[(start + k) / 2]);
                add_bits(out, repetition.length >> 8, repetition.length & 255);
                add_bits(out, repetition.distance, repetition.distance_count);
            }
        }
        if (out.waiting != 0)
            atomicOr(out.word, (uint32_t)out.waiting);
        __syncthreads();
        const int words = (int)((at % 32 + whole + 31) / 32);
        for (int i = t; i < words; i += threads) {
            if (i == 0 || i == words - 1)
                atomicOr(launch.stream + at / 32 + i, emission.words[i]);
            else
                launch.stream[at / 32 + i] = emission.words[i];
            emission.words[i] = 0;
        }
        at += whole;
    }
    if (t == 0)
        put_bits(launch.stream, at, tables.end >> 8, tables.end & 255);
}

__global__ void __launch_bounds__(threads) emit_blocks(const __grid_constant__ struct png_encode_launch launch)
{
    __shared__ struct emission emission;
    const int number = (int)blockIdx.x, band = number / launch.band_blocks;
    const struct part part = part_of(launch, number);
    const struct block &block = launch.block_list[number];
    const uint64_t at = block.position + byte_bits * (band > 0 ? launch.ends[band - 1] : 0);
    if (block.is_stored)
        emit_stored(launch, part, at);
    else
        emit_coded(launch, emission, block, part, at);
    if (threadIdx.x == 0 && part.ends_band && !part.ends_stream) { /* an empty block, which ends at a whole byte */
        const uint64_t end = block.is_stored ? stored_end(at, part.size) : at + block.bits;
        put_bits(launch.stream, next_byte(end + block_head), 0xffff0000u, stored_head);
    }
}
} // namespace

/* ---- The host's part ---- */

/* Describe a picture of LAYOUT, but the memory for it. */
static struct png_encode_launch describe(const struct png_layout *layout, const uint8_t *samples)
{
    struct png_encode_launch launch;
    launch.samples = samples;
    launch.row_bytes = png_row_bytes(layout, (size_t)layout->width);
    launch.height = layout->height;
    launch.pixel = png_layout_pixel(layout);
    launch.is_wide = layout->bits > 8;
    const int band_rows = png_band_rows(launch.row_bytes, layout->height);
    const size_t row = launch.row_bytes + 1, block = DEFLATE_BLOCK;
    launch.band_bytes = (size_t)band_rows * row;
    launch.bytes = (size_t)layout->height * row;
    launch.bands = (layout->height - 1) / band_rows + 1;
    launch.band_blocks = (int)((launch.band_bytes - 1) / block + 1);
    const size_t last = launch.bytes - (size_t)(launch.bands - 1) * launch.band_bytes;
    launch.blocks = (launch.bands - 1) * launch.band_blocks + (int)((last - 1) / block + 1);
    return launch;
}

bool device_png_encode(struct device_png *png, const struct png_layout *layout, const uint8_t *samples,
                       struct error *error)
{
    enum { SLACK = 64 }; /* bytes before and after the filtered rows are read; whole words are written */
    struct device *device = png->device;
    struct png_encoder *encoder = &png->encoder;
    struct png_encode_launch launch = describe(layout, samples);
    const size_t words = ((size_t)launch.bands * deflate_bound(launch.band_bytes) + SLACK) / sizeof *launch.stream;
    if (!reserve_items(device, &encoder->filtered, launch.bytes + 2 * SLACK, &launch.filtered, error) ||
        !reserve_items(device, &encoder->sums, (size_t)launch.height, &launch.sums, error) ||
        !reserve_items(device, &encoder->block_list, (size_t)launch.blocks, &launch.block_list, error) ||
        !reserve_items(device, &encoder->ends, (size_t)launch.bands, &launch.ends, error) ||
        !reserve_items(device, &encoder->stream, words, &launch.stream, error) ||
        !reserve_items(device, &encoder->result, 1, &launch.result, error) ||
        !device_fill(device, launch.filtered, 0, SLACK, error) ||
        !device_fill(device, launch.filtered + SLACK + launch.bytes, 0, SLACK, error) ||
        !device_fill(device, launch.stream, 0, words * sizeof *launch.stream, error))
        return false;
    launch.filtered += SLACK;
    const unsigned row_blocks = (unsigned)((launch.height - 1) / warps + 1), blocks = (unsigned)launch.blocks;
    return queue_kernel(filter_rows, row_blocks, threads, 0, device, error, launch) &&
           split_blocks(device, launch, error) && queue_kernel(make_codes, blocks, 32, 0, device, error, launch) &&
           queue_kernel(place_blocks, 1, place_threads, 0, device, error, launch) &&
           queue_kernel(emit_blocks, blocks, threads, 0, device, error, launch);
}

bool device_png_encoded(struct device_png *png, size_t margin, uint8_t **bytes, size_t *size, uint32_t *adler,
                        struct error *error)
{
    struct png_encoder *encoder = &png->encoder;
    if (!device_wait(png->device, error))
        return false;
    const volatile struct result *result = (const volatile struct result *)encoder->result.bytes;
    *size = (size_t)result->size;
    *adler = result->adler;
    if (!device_reserve_more(png->device, &encoder->data, *size + 2 * margin, error))
        return false;
    *bytes = encoder->data.bytes + margin;
    return device_download(png->device, *bytes, encoder->stream.bytes, *size, error) && device_wait(png->device, error);
}
