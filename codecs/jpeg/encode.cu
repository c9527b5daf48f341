/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of encode.c and encode_loops.c.
 * The JPEG encoder: one kernel makes the data of the scan from the pixels. A block of threads makes a tile: as many
 * MCUs, one after the other in the scan, as it has threads for their blocks of 8 x 8, and the MCU before them for its
 * DC.
 *
 *     load     pixels to Y, Cb and Cr in shared memory, chroma reduced
 *     block    a thread makes the DCT of a block in registers, quantises it and stores it in shared memory
 *     code     a sum over the threads says where their bits are in the tile, as if it began at bit 0
 *     offset   a sum over all tiles before says at which bit of the scan the tile begins
 *     store    the tile's bytes, shifted to that bit. A second sum counts the bytes FF before; a 0 follows each
 *
 * A tile stores the bytes that end in it, and the last one pads with ones. So each byte has one writer, and the result
 * does not depend on the order of the tiles. */
#include "jpeg/forward.h"
#include "jpeg/lookup.h"
#include "jpeg/workspace.cuh"
#include "kernels/shared/prefix.cuh"

namespace
{
constexpr int threads = 128,
              warps = threads / 32; /* threads and warps of a tile, which has as many blocks as threads */

/* The longest code of a block: DC of 16 + 11 bits, and 63 coefficients of 16 + 10. */
constexpr int block_bits = JPEG_CODE_MAX + JPEG_DC_SIZE_MAX + (JPEG_BLOCK - 1) * (JPEG_CODE_MAX + JPEG_AC_SIZE_MAX);
constexpr int lead_bits = 32; /* before the tile's first bit: the last bits of the tile before */
constexpr int bit_words = lead_bits / 32 + block_bits * threads / 32 + 3;
constexpr int tail_bits = 7; /* bits of the tile before that may belong to this tile's first byte */

struct tables {
    uint32_t dc[2][16], ac[2][256];                  /* codes of luma, and of chroma: as jpeg_symbol_codes sets them */
    struct jpeg_divisor divisors[2][JPEG_BLOCK + 1]; /* in natural order; one more keeps the two in different banks */
};

/* A picture on the device. The kernel gets an array of them, and blockIdx.y is the number of the picture. */
struct encoding {
    const uint8_t *samples;
    size_t size;  /* bytes of the samples */
    size_t plane; /* as in struct jpeg_output */
    int width, height, channels;
    int components, horizontal, vertical;
    int luma_across, luma_down; /* blocks with pixels in them */
    int mcus_across, mcus, mcu_blocks, tile_mcus, tiles;
    const struct tables *tables;
    uint64_t *words; /* a ticket, then the sums of bits and of bytes FF: see prefix.cuh */
    uint8_t *scan;
    size_t capacity; /* bytes that the scan may take. If it is longer, the kernel finds only its size */
    uint64_t *scan_size;
};

struct tile {
    union {
        uint8_t samples[JPEG_SIDE][threads * JPEG_SIDE]; /* row r of all blocks */
        uint32_t bits[bit_words];                        /* the first bit is the highest of a word */
    };
    union {
        int16_t coefficients[JPEG_BLOCK][threads]; /* in zigzag order, of all blocks */
        int2 corners[threads];                     /* the MCUs' corners in pixels; before there are coefficients */
    };
    struct tables tables;
    int16_t dc[threads];
    uint32_t sums[warps]; /* each warp's sum of bits, then of bytes FF */
    uint64_t before[2];   /* bits and bytes FF of all tiles before */
    int ticket;
};
static_assert(sizeof(struct tile) <= 48 * 1024, "static shared memory ends there");

/* ---- Load ---- */

/* As load_pixels, for planes. FROM is the first sample, of the first one. */
__device__ __forceinline__ void load_from_planes(const struct encoding &picture, const uint8_t *from, int x,
                                                 uint32_t (&pixel)[4])
{
    const uint8_t *const end = picture.samples + picture.size;
#pragma unroll
    for (int k = 0; k < 4; k++)
        pixel[k] = 0;
#pragma unroll
    for (int c = 0; c < 3; c++, from += picture.plane) {
        const unsigned skip = (unsigned)(uintptr_t)from & 3;
        const uint32_t *words = (const uint32_t *)(from - skip);
        uint32_t word = 0;
        if (x + 4 <= picture.width && (const uint8_t *)words + 8 <= end)
            word = __funnelshift_r(__ldg(words), skip != 0 ? __ldg(words + 1) : 0, 8 * skip);
        else
            for (int k = 0; k < 4; k++)
                word |= (uint32_t)from[min(k, picture.width - 1 - x)] << 8 * k;
#pragma unroll
        for (int k = 0; k < 4; k++)
            pixel[k] |= (word >> 8 * k & 255) << 8 * c;
    }
}

/* The pixels at columns x to x + 3 of row y, in the low bytes of a word each. Columns beyond the last repeat it. */
__device__ __forceinline__ void load_pixels(const struct encoding &picture, int y, int x, uint32_t (&pixel)[4])
{
    const int channels = picture.channels;
    const size_t row = (size_t)y * (size_t)picture.width, from = (row + (size_t)x) * (size_t)channels;
    const unsigned skip = (unsigned)from & 3;
    if (picture.plane != 0) {
        load_from_planes(picture, picture.samples + row + x, x, pixel);
        return;
    }
    if (x + 4 <= picture.width && from - skip + 4 * ((size_t)channels + 1) <= picture.size) {
        const uint32_t *words = (const uint32_t *)(picture.samples + (from - skip));
        uint32_t word[5];
#pragma unroll
        for (int k = 0; k < 5; k++)
            word[k] = k < channels || (k == channels && skip != 0) ? __ldg(words + k) : 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            word[k] = __funnelshift_r(word[k], word[k + 1], 8 * skip);
#pragma unroll
        for (int k = 0; k < 4; k++)
            pixel[k] = channels == 1   ? word[0] >> 8 * k
                       : channels == 2 ? word[k / 2] >> 16 * (k % 2)
                       : channels == 4 ? word[k]
                       : k == 0        ? word[0]
                                       : __funnelshift_r(word[k - 1], word[k], 8 * (4 - (unsigned)k));
        return;
    }
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        const uint8_t *bytes = picture.samples + (row + (size_t)min(x + k, picture.width - 1)) * (size_t)channels;
        uint32_t value = bytes[0];
        if (channels >= 3)
            value |= (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
#pragma unroll
        for (int i = 0; i < 3; i++) /* shifted in from the end, because registers have no index */
            pixel[i] = pixel[i + 1];
        pixel[3] = value;
    }
}

/* Load the MCUs whose corners are in the tile. A thread takes 4 pixels in V rows, and makes 4 / H samples of each
 * difference. Rows below the picture repeat the last one of each component, after it is reduced. */
template <int H, int V, bool IS_COLOUR>
__device__ __forceinline__ void load_mcus(const struct encoding &picture, struct tile &tile)
{
    constexpr int columns = 2 * H, luma = H * V, blocks = luma + (IS_COLOUR ? 2 : 0), mcus = threads / blocks;
    constexpr int shift = (H > 1) + (H > 2) + (V > 1);
    const int last_group = (picture.height - 1) / V;
    for (int i = (int)threadIdx.x; i < mcus * columns * JPEG_SIDE; i += threads) {
        const int column = i % columns, mcu = i / columns % mcus, row = i / (columns * mcus);
        const int2 corner = tile.corners[mcu];
        const int group = corner.y / V + row, shown = min(group, last_group);
        uint32_t luma_word[V];
        int blue[4] = {}, red[4] = {};
#pragma unroll
        for (int v = 0; v < V; v++) {
            uint32_t pixel[4];
            load_pixels(picture, min(shown * V + v, picture.height - 1), corner.x + 4 * column, pixel);
            luma_word[v] = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int r = (int)(pixel[k] & 255), g = (int)(pixel[k] >> 8 & 255), b = (int)(pixel[k] >> 16 & 255);
                luma_word[v] |= (uint32_t)(IS_COLOUR ? jpeg_luma(r, g, b) : r) << 8 * k;
                blue[k] += IS_COLOUR ? jpeg_blue_difference(r, g, b) : 0;
                red[k] += IS_COLOUR ? jpeg_red_difference(r, g, b) : 0;
            }
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int y = row * V + v, block = mcu * blocks + y / JPEG_SIDE * H + column / 2;
            *(uint32_t *)&tile.samples[y % JPEG_SIDE][block * JPEG_SIDE + column % 2 * 4] =
                luma_word[group > shown ? V - 1 : v];
        }
        if constexpr (IS_COLOUR) {
            uint8_t *const to = &tile.samples[row][(mcu * blocks + luma) * JPEG_SIDE + column * (4 / H)];
#pragma unroll
            for (int k = 0; k < 4 / H; k++) {
                int blue_sum = jpeg_chroma_bias(H, V, k), red_sum = blue_sum;
#pragma unroll
                for (int h = 0; h < H; h++) {
                    blue_sum += blue[k * H + h];
                    red_sum += red[k * H + h];
                }
                to[k] = (uint8_t)(blue_sum >> shift);
                to[JPEG_SIDE + k] = (uint8_t)(red_sum >> shift);
            }
        }
    }
}

__device__ __forceinline__ void load(const struct encoding &picture, struct tile &tile)
{
    if (picture.components == 1)
        load_mcus<1, 1, false>(picture, tile);
    else if (picture.horizontal == 4)
        picture.vertical == 2 ? load_mcus<4, 2, true>(picture, tile) : load_mcus<4, 1, true>(picture, tile);
    else if (picture.horizontal == 2)
        picture.vertical == 2 ? load_mcus<2, 2, true>(picture, tile) : load_mcus<2, 1, true>(picture, tile);
    else
        picture.vertical == 2 ? load_mcus<1, 2, true>(picture, tile) : load_mcus<1, 1, true>(picture, tile);
}

/* ---- Blocks ---- */

/* Luma blocks of MCU number NUMBER that have pixels in them, side by side and one above the other. The others are dummy
 * blocks: libjpeg gives them no AC, and the DC of the block before. */
__device__ __forceinline__ int2 real_blocks(const struct encoding &picture, int number)
{
    const int column = number % picture.mcus_across, row = number / picture.mcus_across;
    return make_int2(min(picture.horizontal, picture.luma_across - column * picture.horizontal),
                     min(picture.vertical, picture.luma_down - row * picture.vertical));
}

/* The last real block of luma among blocks 0 to BLOCK of an MCU. */
__device__ __forceinline__ int real_luma(const struct encoding &picture, int2 real, int block)
{
    const int x = block % picture.horizontal, y = block / picture.horizontal;
    return y < real.y ? y * picture.horizontal + min(x, real.x - 1) : (real.y - 1) * picture.horizontal + real.x - 1;
}

/* Make the coefficients of the thread's block. Returns a bit for each AC that is not 0, by its zigzag index. */
__device__ __forceinline__ uint64_t transform(struct tile &tile, int set)
{
    constexpr uint8_t natural[JPEG_BLOCK] = JPEG_NATURAL_ORDER;
    const int t = (int)threadIdx.x;
    int value[JPEG_BLOCK];
#pragma unroll
    for (int y = 0; y < JPEG_SIDE; y++) {
        const uint2 row = *(const uint2 *)&tile.samples[y][t * JPEG_SIDE];
#pragma unroll
        for (int x = 0; x < JPEG_SIDE; x++)
            value[y * JPEG_SIDE + x] = (int)__byte_perm(x < 4 ? row.x : row.y, 0, 0x4440 + (unsigned)x % 4);
        jpeg_forward_dct(value + y * JPEG_SIDE, 1, false);
        value[y * JPEG_SIDE] -= JPEG_FIRST_PASS_LEVEL;
    }
#pragma unroll
    for (int x = 0; x < JPEG_SIDE; x++)
        jpeg_forward_dct(value + x, JPEG_SIDE, true);
    uint32_t low = 0, high = 0;
#pragma unroll
    for (int k = 0; k < JPEG_BLOCK; k++) {
        const int level = jpeg_quantise(value[natural[k]], tile.tables.divisors[set][natural[k]]);
        tile.coefficients[k][t] = (int16_t)level;
        if (k > 0 && k < 32)
            low |= level != 0 ? 1u << k : 0;
        else if (k >= 32)
            high |= level != 0 ? 1u << (k - 32) : 0;
    }
    return (uint64_t)high << 32 | low;
}

/* ---- Codes ---- */

/* Bits of a value's magnitude. */
__device__ __forceinline__ int magnitude_bits(int value)
{
    return 32 - __clz(abs(value));
}

/* Counts bits. */
struct counter {
    uint32_t bits;

    __device__ __forceinline__ void put(uint32_t code, int, int)
    {
        bits += code >> 16;
    }
};

/* Writes bits to shared words that were 0. Two threads may share their first and last word. */
struct writer {
    uint32_t *word;
    uint32_t filled; /* bits of the word, below 32; these are the low ones of BITS */
    uint64_t bits;

    __device__ __forceinline__ writer(uint32_t *words, uint32_t position)
        : word(words + position / 32), filled(position % 32), bits(0)
    {
    }

    __device__ __forceinline__ void put(uint32_t code, int value, int size)
    {
        const uint32_t tail = (uint32_t)(value - (value < 0)) & ((1u << size) - 1);
        bits = bits << (code >> 16) | (code & 0xffff) << size | tail;
        filled += code >> 16;
        if (filled >= 32) {
            filled -= 32;
            atomicOr(word++, (uint32_t)(bits >> filled));
        }
    }

    __device__ __forceinline__ void finish()
    {
        if (filled > 0)
            atomicOr(word, (uint32_t)(bits << (32 - filled)));
    }
};

/* The codes of the thread's block: DIFFERENCE of its DC, and the coefficients in MASK. */
template <typename Sink>
__device__ __forceinline__ void put_block(const struct tile &tile, int set, int difference, uint64_t mask, Sink &sink)
{
    const int size = magnitude_bits(difference);
    const uint32_t *ac = tile.tables.ac[set];
    sink.put(tile.tables.dc[set][size], difference, size);
    int last = 0;
    for (; mask != 0; mask &= mask - 1) {
        const int zigzag = __ffsll((long long)mask) - 1;
        int zeros = zigzag - last - 1;
        for (; zeros >= 16; zeros -= 16)
            sink.put(ac[JPEG_ZERO_RUN], 0, 0);
        const int value = tile.coefficients[zigzag][threadIdx.x], bits = magnitude_bits(value);
        sink.put(ac[zeros << 4 | bits], value, bits);
        last = zigzag;
    }
    if (last != JPEG_BLOCK - 1)
        sink.put(ac[0], 0, 0);
}

/* ---- Bytes ---- */

/* The bytes of a warp in the tile's string of bits: COUNT from byte FIRST, a multiple of 4. */
struct range {
    uint32_t first, count;
};

__device__ __forceinline__ struct range warp_range(uint32_t bytes)
{
    const uint32_t each = (bytes + 4 * warps - 1) / (4 * warps) * 4, warp = threadIdx.x / 32;
    struct range range;
    range.first = min(warp * each, bytes);
    range.count = min(each, bytes - range.first);
    return range;
}

/* Bytes 4 i to 4 i + 3 of the tile, which begin SHIFT bits before its own ones; the first is the highest. */
__device__ __forceinline__ uint32_t shifted_word(const struct tile &tile, uint32_t i, unsigned shift)
{
    return __funnelshift_r(tile.bits[i + 1], tile.bits[i], shift);
}

/* The bytes FF of a warp, counted by all its lanes. */
__device__ __forceinline__ uint32_t count_full(const struct tile &tile, struct range range, unsigned shift)
{
    uint32_t count = 0;
    for (uint32_t i = 4 * (threadIdx.x % 32); i < range.count; i += 128) {
        uint32_t word = shifted_word(tile, (range.first + i) / 4, shift);
        if (range.count - i < 4)
            word &= ~(0xffffffffu >> 8 * (range.count - i)); /* bytes of the next tile */
        count += (uint32_t)__popc((int)__vcmpeq4(word, 0xffffffff)) / 8;
    }
    return sum_of_lanes(count);
}

/* Store a warp's bytes at TO, with a 0 after each FF. */
__device__ __forceinline__ void store_bytes(const struct tile &tile, struct range range, unsigned shift, uint8_t *to)
{
    const unsigned lane = threadIdx.x % 32;
    for (uint32_t i = 0; i < range.count; i += 32) {
        const uint32_t byte = range.first + i + lane,
                       word = i + lane < range.count ? shifted_word(tile, byte / 4, shift) : 0;
        const uint8_t value = (uint8_t)(word >> 8 * (3 - byte % 4));
        const unsigned full = __ballot_sync(0xffffffff, value == 255);
        uint8_t *const out = to + i + lane + __popc((int)(full & ((1u << lane) - 1)));
        if (i + lane < range.count)
            out[0] = value;
        if (value == 255)
            out[1] = 0;
        to += __popc((int)full);
    }
}

/* Store the tile's LENGTH bits, which all threads have put down. */
__device__ __forceinline__ void store(const struct encoding &picture, struct tile &tile, uint32_t length)
{
    const int warp = (int)threadIdx.x / 32, ticket = tile.ticket;
    const bool is_last = ticket == picture.tiles - 1;
    uint64_t *const bit_words = picture.words + 1, *const full_words = bit_words + picture.tiles;
    if (warp == 0) {
        const uint32_t end = lead_bits + length, word = (end - 1) / 32;
        const uint32_t tail = __funnelshift_r(tile.bits[word], tile.bits[word - 1], 31 - (end - 1) % 32);
        __syncwarp(); /* tile.bits[0] may have been read */
        uint32_t lead;
        const uint64_t bits = prefix_before(bit_words, ticket, length, tail & ((1 << tail_bits) - 1), &lead);
        if (threadIdx.x == 0) {
            tile.bits[0] = lead;
            tile.before[0] = bits;
        }
    }
    __syncthreads();
    const unsigned shift = (unsigned)tile.before[0] & 7;
    const uint32_t bytes = (shift + length + (is_last ? 7 : 0)) / 8;
    const struct range range = warp_range(bytes);
    const uint32_t full = count_full(tile, range, shift);
    if (threadIdx.x % 32 == 0)
        tile.sums[warp] = full;
    __syncthreads();
    uint32_t full_before = 0, full_whole = 0;
#pragma unroll
    for (int i = 0; i < warps; i++) {
        full_before += i < warp ? tile.sums[i] : 0;
        full_whole += tile.sums[i];
    }
    if (warp == 0) {
        uint32_t none;
        const uint64_t sum = prefix_before(full_words, ticket, full_whole, 0, &none);
        if (threadIdx.x == 0)
            tile.before[1] = sum;
    }
    __syncthreads();
    const uint64_t first = tile.before[0] / 8 + tile.before[1], end = first + bytes + full_whole;
    if (end <= picture.capacity)
        store_bytes(tile, range, shift, picture.scan + first + range.first + full_before);
    if (is_last && threadIdx.x == 0)
        *picture.scan_size = end;
}

/* ---- The kernel ---- */

__global__ void __launch_bounds__(threads, 4) encode(const struct encoding *__restrict__ pictures)
{
    __shared__ struct tile tile;
    const struct encoding &picture = pictures[blockIdx.y];
    const int t = (int)threadIdx.x;
    if (blockIdx.x >= (unsigned)picture.tiles)
        return;
    if (t == 0)
        tile.ticket = (int)atomicAdd((unsigned *)picture.words, 1u);
    for (int i = t; i < (int)(sizeof tile.tables / 4); i += threads)
        ((uint32_t *)&tile.tables)[i] = __ldg((const uint32_t *)picture.tables + i);
    __syncthreads();

    /* MCU 0 of the tile is the one before it. Beyond the ends of the scan, any will do. */
    const int mcu_blocks = picture.mcu_blocks, luma = picture.horizontal * picture.vertical;
    const int before = tile.ticket * picture.tile_mcus - 1;
    if (t <= picture.tile_mcus) {
        const int number = max(0, min(before + t, picture.mcus - 1));
        tile.corners[t] = make_int2(number % picture.mcus_across * picture.horizontal * JPEG_SIDE,
                                    number / picture.mcus_across * picture.vertical * JPEG_SIDE);
    }
    __syncthreads();
    load(picture, tile);
    __syncthreads();

    const int mcu = t / mcu_blocks, block = t % mcu_blocks, number = before + mcu, set = block >= luma;
    const bool is_inside = mcu <= picture.tile_mcus && number >= 0 && number < picture.mcus;
    const int2 real = is_inside ? real_blocks(picture, number) : make_int2(1, 1);
    const bool is_real = is_inside && (set == 1 || real_luma(picture, real, block) == block);
    const uint64_t mask = is_real ? transform(tile, set) : 0;
    tile.dc[t] = is_real ? tile.coefficients[0][t] : 0;
    __syncthreads();

    /* DC less that of the same component's block before it in the scan. */
    int difference = 0;
    if (is_real && mcu > 0) {
        int from = t - mcu_blocks; /* the block of chroma in the MCU before */
        if (set == 0 && block > 0)
            from = t - block + real_luma(picture, real, block - 1);
        else if (set == 0 && number > 0)
            from = t - mcu_blocks + real_luma(picture, real_blocks(picture, number - 1), luma - 1);
        difference = tile.dc[t] - (number == 0 && (set == 1 || block == 0) ? 0 : tile.dc[from]);
    }
    const bool is_coded = is_inside && mcu > 0;
    struct counter counter = {0};
    if (is_coded)
        put_block(tile, set, difference, mask, counter);
    uint32_t length;
    const uint32_t position = sum_before<warps>(tile.sums, counter.bits, &length);
    for (int i = t; i < (int)length / 32 + 4; i += threads)
        tile.bits[i] = 0;
    __syncthreads();
    if (is_coded) {
        struct writer writer(tile.bits, lead_bits + position);
        put_block(tile, set, difference, mask, writer);
        writer.finish();
    }
    if (t == 0 && tile.ticket == picture.tiles - 1) { /* ones up to the next byte */
        struct writer writer(tile.bits, lead_bits + length);
        writer.put((uint32_t)tail_bits << 16 | ((1 << tail_bits) - 1), 0, 0);
        writer.finish();
    }
    __syncthreads();
    store(picture, tile, length);
}
} // namespace

/* ---- The host's part ---- */

static void make_tables(const struct jpeg_layout *layout, struct tables *tables)
{
    memset(tables, 0, sizeof *tables);
    for (int i = 0; i < (layout->component_count == 1 ? 1 : 2); i++) {
        const struct jpeg_component *component = &layout->components[i];
        jpeg_symbol_codes(&layout->tables.dc[component->dc], tables->dc[i], 16);
        jpeg_symbol_codes(&layout->tables.ac[component->ac], tables->ac[i], 256);
        for (int k = 0; k < JPEG_BLOCK; k++)
            tables->divisors[i][k] = jpeg_divisor_of(layout->tables.quantisers[component->quantiser][k]);
    }
}

/* Have both pictures the same tables? */
static bool shares_tables(const struct jpeg_layout *a, const struct jpeg_layout *b)
{
    return a->component_count == b->component_count && memcmp(&a->tables, &b->tables, sizeof a->tables) == 0;
}

/* More than a byte a sample is more than photographs need at the highest quality. */
static size_t expected_size(const struct jpeg_output *output)
{
    const struct jpeg_layout *layout = output->layout;
    const size_t samples = (size_t)layout->width * (size_t)layout->height * (size_t)layout->component_count;
    return samples + samples / 8 + 4096;
}

/* Describe the picture of OUTPUT, but its memory. */
static struct encoding describe(const struct jpeg_output *output)
{
    const struct jpeg_layout *layout = output->layout;
    const size_t pixels = (size_t)layout->width * (size_t)layout->height;
    struct encoding picture = {};
    picture.samples = output->samples;
    picture.size = output->plane != 0 ? 2 * output->plane + pixels : pixels * (size_t)output->channels;
    picture.plane = output->plane;
    picture.width = layout->width;
    picture.height = layout->height;
    picture.channels = output->channels;
    picture.components = layout->component_count;
    picture.horizontal = layout->horizontal;
    picture.vertical = layout->vertical;
    picture.luma_across = (layout->width + JPEG_SIDE - 1) / JPEG_SIDE;
    picture.luma_down = (layout->height + JPEG_SIDE - 1) / JPEG_SIDE;
    picture.mcus_across = layout->mcus_across;
    picture.mcus = layout->mcus_across * layout->mcus_down;
    picture.mcu_blocks = layout->mcu_blocks;
    picture.tile_mcus = threads / layout->mcu_blocks - 1;
    picture.tiles = (picture.mcus + picture.tile_mcus - 1) / picture.tile_mcus;
    return picture;
}

/* Words of 8 bytes that a picture needs: see struct encoding. */
static size_t words_of(const struct encoding *picture)
{
    return 1 + 2 * (size_t)picture->tiles;
}

/* Describe the pictures in page-locked memory, and after them their tables, where these are not those of the picture
 * before. Picture I gets the table TABLES[I]. Returns the number of tables. */
static size_t describe_all(struct encoder *encoder)
{
    struct encoding *pictures = (struct encoding *)encoder->sent.bytes;
    struct tables *tables = (struct tables *)(pictures + encoder->count);
    size_t count = 0;
    for (size_t i = 0; i < encoder->count; i++) {
        const struct jpeg_layout *layout = encoder->outputs[i].layout;
        if (i == 0 || !shares_tables(layout, encoder->outputs[i - 1].layout))
            make_tables(layout, &tables[count++]);
        pictures[i] = describe(&encoder->outputs[i]);
        pictures[i].tables =
            (const struct tables *)(encoder->pictures.bytes + encoder->count * sizeof *pictures) + count - 1;
    }
    return count;
}

/* Queue the encoding of the encoder's pictures, to as many bytes as CAPACITIES says of each. */
static bool queue_encoding(struct device_jpeg *jpeg, struct error *error)
{
    struct encoder *encoder = &jpeg->encoder;
    struct device *device = jpeg->device;
    const size_t count = encoder->count, sent = count * (sizeof(struct encoding) + sizeof(struct tables));
    if (!device_reserve_more(device, &encoder->sent, sent, error) ||
        !device_reserve_more(device, &encoder->pictures, sent, error) ||
        !device_reserve_more(device, &encoder->scan_sizes, count * sizeof(uint64_t), error))
        return false;
    const size_t used = count * sizeof(struct encoding) + describe_all(encoder) * sizeof(struct tables);
    struct encoding *pictures = (struct encoding *)encoder->sent.bytes;
    size_t words = 0, bytes = 0;
    uint32_t tiles = 0;
    for (size_t i = 0; i < count; i++) {
        words += words_of(&pictures[i]);
        bytes += encoder->capacities[i];
        tiles = (uint32_t)pictures[i].tiles > tiles ? (uint32_t)pictures[i].tiles : tiles;
    }
    if (!device_reserve_more(device, &encoder->words, words * sizeof(uint64_t), error) ||
        !device_reserve_more(device, &encoder->scans, bytes, error))
        return false;
    uint64_t *word = (uint64_t *)encoder->words.bytes;
    uint8_t *scan = encoder->scans.bytes;
    for (size_t i = 0; i < count; i++) {
        struct encoding *picture = &pictures[i];
        picture->words = word;
        picture->scan = scan;
        picture->capacity = encoder->capacities[i];
        picture->scan_size = (uint64_t *)encoder->scan_sizes.bytes + i;
        word += words_of(picture);
        scan += picture->capacity;
    }
    if (!device_upload(device, encoder->pictures.bytes, pictures, used, error) ||
        !device_fill(device, encoder->words.bytes, 0, words * sizeof(uint64_t), error))
        return false;
    return queue_kernel(encode, dim3(tiles, (uint32_t)count), threads, 0, device, error,
                        (const struct encoding *)encoder->pictures.bytes);
}

bool device_jpeg_encode(struct device_jpeg *jpeg, const struct jpeg_output *outputs, size_t count, struct error *error)
{
    struct encoder *encoder = &jpeg->encoder;
    size_t *capacities = (size_t *)realloc(encoder->capacities, count * sizeof *capacities);
    if (!capacities)
        return error_no_memory(error, "%zu pictures", count);
    encoder->capacities = capacities;
    encoder->outputs = outputs;
    encoder->count = count;
    for (size_t i = 0; i < count; i++)
        capacities[i] = expected_size(&outputs[i]);
    return queue_encoding(jpeg, error);
}

/* Wait for the encoder. *ARE_WHOLE is false if scans are longer than was reserved, because of noise: then capacities
 * become their sizes. */
static bool wait_for_sizes(struct device_jpeg *jpeg, bool *are_whole, struct error *error)
{
    struct encoder *encoder = &jpeg->encoder;
    const uint64_t *sizes = (const uint64_t *)encoder->scan_sizes.bytes;
    *are_whole = true;
    if (!device_wait(jpeg->device, error))
        return false;
    for (size_t i = 0; i < encoder->count; i++)
        if (sizes[i] > encoder->capacities[i]) {
            encoder->capacities[i] = sizes[i];
            *are_whole = false;
        }
    return true;
}

bool device_jpeg_encoded(struct device_jpeg *jpeg, struct jpeg_scan *scans, struct error *error)
{
    struct encoder *encoder = &jpeg->encoder;
    const size_t count = encoder->count;
    bool are_whole;
    size_t bytes = 0;
    if (!wait_for_sizes(jpeg, &are_whole, error) ||
        (!are_whole && (!queue_encoding(jpeg, error) || !wait_for_sizes(jpeg, &are_whole, error))))
        return false;
    for (size_t i = 0; i < count; i++) {
        scans[i].size = (size_t)((const uint64_t *)encoder->scan_sizes.bytes)[i];
        bytes += scans[i].size + 2 * encoder->outputs[i].margin;
    }
    if (!device_reserve_more(jpeg->device, &encoder->data, bytes, error))
        return false;
    uint8_t *to = encoder->data.bytes;
    const uint8_t *from = encoder->scans.bytes;
    for (size_t i = 0; i < count; i++) {
        to += encoder->outputs[i].margin;
        if (!device_download(jpeg->device, to, from, scans[i].size, error))
            return false;
        scans[i].bytes = to;
        to += scans[i].size + encoder->outputs[i].margin;
        from += encoder->capacities[i];
    }
    return device_wait(jpeg->device, error);
}
