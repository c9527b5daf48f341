/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of decode_blocks.c and decode_pixels.c.
 * From coefficients to pixels. The inverse DCT goes through the blocks of a component row by row, 8 threads a block, so
 * that a warp writes 32 bytes to each of 8 rows. In a smaller picture a thread makes a block. Then a thread makes 4
 * pixels of a row. */
#include "jpeg/decode.cuh"

#include "jpeg/samples.h"
#include "kernels/shared/lanes.cuh"

namespace
{
constexpr int warp_size = 32;

/* ---- The inverse DCT ---- */

__device__ __forceinline__ uint32_t pack(int low, int high)
{
    return ((uint32_t)low & 0xffff) | (uint32_t)high << 16;
}

/* Half K of a word, with its sign. */
__device__ __forceinline__ int half_of(uint32_t word, int k)
{
    return k == 0 ? (int16_t)word : (int)word >> 16;
}

/* Transpose the values of 8 threads: column t of thread t becomes row t. In each step, the partner has the other half
 * of the rows. */
__device__ __forceinline__ void transpose(int value[JPEG_SIDE])
{
    const unsigned t = threadIdx.x;
    const bool four = (t & 4) != 0, two = (t & 2) != 0, one = (t & 1) != 0;
    const uint32_t a = pack(value[0], value[1]), b = pack(value[2], value[3]);
    const uint32_t c = pack(value[4], value[5]), d = pack(value[6], value[7]);

    /* Rows 0 to 3, or 4 to 7, of two columns: of X, which is below 4, and of Y = X + 4. */
    const uint32_t own0 = four ? c : a, own1 = four ? d : b;
    const uint32_t other0 = __shfl_xor_sync(~0u, four ? a : c, 4), other1 = __shfl_xor_sync(~0u, four ? b : d, 4);
    const uint32_t x0 = four ? other0 : own0, x1 = four ? other1 : own1;
    const uint32_t y0 = four ? own0 : other0, y1 = four ? own1 : other1;

    /* Two rows of four columns. */
    const uint32_t own_x = two ? x1 : x0, other_x = __shfl_xor_sync(~0u, two ? x0 : x1, 2);
    const uint32_t own_y = two ? y1 : y0, other_y = __shfl_xor_sync(~0u, two ? y0 : y1, 2);
    const uint32_t xa = two ? other_x : own_x, xb = two ? own_x : other_x;
    const uint32_t ya = two ? other_y : own_y, yb = two ? own_y : other_y;

    /* One row: even columns in one word of a half of the block, and odd columns in another one. */
    const unsigned keep = one ? 0x7632 : 0x5410, give = one ? 0x5410 : 0x7632;
    const uint32_t kept_x = __byte_perm(xa, xb, keep), kept_y = __byte_perm(ya, yb, keep);
    const uint32_t got_x = __shfl_xor_sync(~0u, __byte_perm(xa, xb, give), 1);
    const uint32_t got_y = __shfl_xor_sync(~0u, __byte_perm(ya, yb, give), 1);
    const uint32_t even_x = one ? got_x : kept_x, odd_x = one ? kept_x : got_x;
    const uint32_t even_y = one ? got_y : kept_y, odd_y = one ? kept_y : got_y;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        value[2 * k] = half_of(even_x, k);
        value[2 * k + 1] = half_of(odd_x, k);
        value[2 * k + 4] = half_of(even_y, k);
        value[2 * k + 5] = half_of(odd_y, k);
    }
}

/* The number in the scan of the block at column X and row Y of COMPONENT, and its MCU. */
__device__ __forceinline__ uint32_t block_at(const struct picture &picture, const struct component &component,
                                             uint32_t x, uint32_t y, uint32_t *mcu)
{
    const uint32_t in_x = x & ((1u << component.horizontal) - 1), in_y = y & ((1u << component.vertical) - 1);
    *mcu = (y >> component.vertical) * picture.mcus_across + (x >> component.horizontal);
    return *mcu * picture.mcu_blocks + (uint32_t)component.first + (in_y << component.horizontal) + in_x;
}

/* The DC value of BLOCK of the scan, in MCU. Sums of DC are from the scan's beginning on; each segment begins at 0. */
__device__ __forceinline__ int dc_of(const struct picture &picture, int index, const struct component &component,
                                     uint32_t mcu, uint32_t block)
{
    const struct walk &walk = picture.walk;
    const auto total = [&](uint32_t of) {
        const uint2 both = walk.dc_totals[of / tile_mcus];
        return index == 0 ? both.x : index == 1 ? both.x >> 16 : both.y;
    };
    uint32_t sum = (uint32_t)walk.dc[block] + total(mcu);
    if (picture.segment_mcus != 0 && mcu >= picture.segment_mcus) {
        const uint32_t last = mcu / picture.segment_mcus * picture.segment_mcus - 1;
        const uint32_t blocks = 1u << (component.horizontal + component.vertical);
        sum -= (uint32_t)walk.dc[last * picture.mcu_blocks + (uint32_t)component.first + blocks - 1] + total(last);
    }
    return (int16_t)sum;
}

/* Load column T of BLOCK, times its quantisers modulo 2^16. Returns whether coefficients outside the first row are
 * set. */
__device__ __forceinline__ bool load_column(const struct walk &walk, const uint16_t *quantisers, uint32_t block,
                                            unsigned t, int dc, int value[JPEG_SIDE])
{
    const uint4 words = ((const uint4 *)(walk.coefficients + (size_t)block * JPEG_BLOCK))[t];
    const uint4 factors = ((const uint4 *)quantisers)[t];
    const uint32_t word[] = {words.x, words.y, words.z, words.w};
    const uint32_t factor[] = {factors.x, factors.y, factors.z, factors.w};
#pragma unroll
    for (int i = 0; i < JPEG_SIDE; i++) {
        const int coefficient = i == 0 && t == 0 ? dc : half_of(word[i / 2], i % 2);
        value[i] = (int16_t)(coefficient * half_of(factor[i / 2], i % 2));
    }
    return (word[0] >> 16 | word[1] | word[2] | word[3]) != 0;
}

__global__ void __launch_bounds__(transform_threads) transform(const struct picture *__restrict__ pictures)
{
    const struct picture &picture = pictures[blockIdx.y];
    const struct walk &walk = picture.walk;
    const struct tiles &tiles = picture.tiles;
    if (blockIdx.x >= picture.transform_tiles || *walk.is_bad != 0)
        return;
    const int index = blockIdx.x >= tiles.first[2] ? 2 : blockIdx.x >= tiles.first[1] ? 1 : 0;
    const struct component &component = picture.components[index];
    const uint32_t tile = blockIdx.x - tiles.first[index], tile_y = tile / tiles.across[index];
    const uint32_t x = (tile - tile_y * tiles.across[index]) * tile_blocks + threadIdx.x / JPEG_SIDE, y = tile_y;
    const unsigned t = threadIdx.x % JPEG_SIDE; /* the column, and then the row */
    const bool is_inside = x < (uint32_t)component.blocks_across;

    int value[JPEG_SIDE] = {};
    bool is_set = false;
    if (is_inside) {
        uint32_t mcu;
        const uint32_t block = block_at(picture, component, x, y, &mcu);
        const int dc = t == 0 ? dc_of(picture, index, component, mcu, block) : 0;
        is_set = load_column(walk, picture.quantisers + component.quantiser * JPEG_BLOCK, block, t, dc, value);
    }
    const unsigned set = __ballot_sync(~0u, is_set) >> (threadIdx.x % warp_size - t);
    if ((set & 0xff) != 0) {
        jpeg_inverse_pass(value, JPEG_COLUMN_SHIFT);
    } else {
        value[0] = jpeg_inverse_flat(value[0]);
#pragma unroll
        for (int i = 1; i < JPEG_SIDE; i++)
            value[i] = value[0];
    }
    transpose(value);
    jpeg_inverse_pass(value, JPEG_ROW_SHIFT);
    if (!is_inside)
        return;
    uint32_t samples[2] = {};
#pragma unroll
    for (int i = 0; i < JPEG_SIDE; i++)
        samples[i / 4] |= (uint32_t)jpeg_inverse_sample(value[i]) << 8 * (i % 4);
    *(uint2 *)(component.samples + ((size_t)y * JPEG_SIDE + t) * component.pitch + (size_t)x * JPEG_SIDE) =
        make_uint2(samples[0], samples[1]);
}

/* Blocks of threads for component INDEX, if its blocks have SIDE x SIDE samples; else 0. */
__host__ __device__ inline uint32_t small_tiles(const struct picture &picture, int index, int side)
{
    const struct component &component = picture.components[index];
    return picture.walk_blocks == 0 || index >= picture.count || component.side != side
               ? 0
               : blocks_of((size_t)component.blocks_across, transform_threads) * (uint32_t)component.blocks_down;
}

/* Transform blocks to SIDE x SIDE samples, 4, 2 or 1, of component INDEX: a thread a block. */
template <int SIDE>
__global__ void __launch_bounds__(transform_threads)
    transform_small(const struct picture *__restrict__ pictures, int index)
{
    const struct picture &picture = pictures[blockIdx.y];
    const struct component &component = picture.components[index];
    if (blockIdx.x >= small_tiles(picture, index, SIDE) || *picture.walk.is_bad != 0)
        return;
    const uint32_t across = blocks_of((size_t)component.blocks_across, transform_threads), y = blockIdx.x / across;
    const uint32_t x = (blockIdx.x - y * across) * transform_threads + threadIdx.x;
    if (x >= (uint32_t)component.blocks_across)
        return;
    uint32_t mcu;
    const uint32_t block = block_at(picture, component, x, y, &mcu);
    jpeg_inverse_small(picture.walk.coefficients + (size_t)block * JPEG_BLOCK,
                       picture.quantisers + component.quantiser * JPEG_BLOCK,
                       dc_of(picture, index, component, mcu, block), JPEG_SIDE, SIDE,
                       component.samples + (size_t)y * SIDE * component.pitch + (size_t)x * SIDE, component.pitch);
}

/* ---- Upsampling and colours ---- */

constexpr int threads_x = warp_size, threads_y = colour_height; /* a warp works on one row */
constexpr int group = 4;
static_assert(threads_x * group == colour_width, "a thread makes a group of pixels");

__device__ __forceinline__ unsigned sample_at(const struct component &component, int x, int y)
{
    return component.samples[(size_t)y * component.pitch + (size_t)x];
}

/* The samples of a component at a group of pixels, from X on. H and V are log2 of the factors by which it has fewer
 * samples. Pixels beside the picture get any. */
template <enum upsampling UPSAMPLING>
__device__ __forceinline__ void upsample(const struct component &component, int x, int y, int h, int v,
                                         unsigned out[group])
{
    const int odd_y = y & 1, near_y = UPSAMPLING == ACROSS ? y : y >> (UPSAMPLING == COPIED ? v : 1);
    const int far_y = min(max(near_y - 1 + 2 * odd_y, 0), component.height - 1);
    unsigned columns[group]; /* with ACROSS and BOTH, the first one is that of X if X is odd, else the one before */
#pragma unroll
    for (int k = 0; k < group; k++) {
        const int wanted = UPSAMPLING == ACROSS || UPSAMPLING == BOTH ? ((x - 1) >> 1) + k
                           : UPSAMPLING == COPIED                     ? max(x + k, 0) >> h
                                                                      : x + k;
        const int at = min(max(wanted, 0), component.width - 1);
        columns[k] = sample_at(component, at, near_y);
        if (UPSAMPLING == DOWN)
            columns[k] = jpeg_upsample(columns[k], sample_at(component, at, far_y), (unsigned)odd_y);
        if (UPSAMPLING == BOTH)
            columns[k] = 3 * columns[k] + sample_at(component, at, far_y);
    }
    const auto pixel_at = [&](int near, int far, unsigned odd_x) {
        return UPSAMPLING == BOTH ? jpeg_upsample_sums(columns[near], columns[far], odd_x)
                                  : jpeg_upsample(columns[near], columns[far], odd_x);
    };
    const bool is_odd = (x & 1) != 0; /* in all groups of a row */
#pragma unroll
    for (int k = 0; k < group; k++)
        out[k] = UPSAMPLING == COPIED || UPSAMPLING == DOWN ? columns[k]
                 : is_odd                                   ? pixel_at((k + 1) / 2, k / 2 + 1 - k % 2, (k + 1) % 2u)
                                                            : pixel_at(1 + k / 2, k / 2 + k % 2 * 2, k % 2u);
}

/* Store those pixels of a group whose numbers are at least FIRST and below END. */
__device__ __forceinline__ void store_planes(const uint8_t bytes[group * 3], uint8_t *to, size_t plane, int first,
                                             int end)
{
#pragma unroll
    for (int c = 0; c < 3; c++, to += plane) {
        if (first <= 0 && end >= group && (uintptr_t)to % group == 0) {
            *(uint32_t *)to =
                bytes[c] | (uint32_t)bytes[3 + c] << 8 | (uint32_t)bytes[6 + c] << 16 | (uint32_t)bytes[9 + c] << 24;
            continue;
        }
#pragma unroll
        for (int k = 0; k < group; k++)
            if (k >= first && k < end)
                to[k] = bytes[3 * k + c];
    }
}

/* A row is considered to start up to colour_alignment - 1 pixels early: then groups of 4 pixels are aligned words. */
template <int CHANNELS, enum upsampling UPSAMPLING>
__global__ void __launch_bounds__(threads_x *threads_y) colour(const struct picture *__restrict__ pictures)
{
    __shared__ uint32_t shared[CHANNELS == 3 ? threads_y : 1][threads_x * 3];
    const struct picture &picture = pictures[blockIdx.y];
    if (picture.count != CHANNELS || picture.upsampling != UPSAMPLING || *picture.walk.is_bad != 0)
        return;
    const uint32_t tiles_across = colour_tiles_across(picture.width), tile_y = blockIdx.x / tiles_across;
    const int y = (int)tile_y * threads_y + (int)threadIdx.y, t = (int)threadIdx.x;
    const int tile_x = (int)(blockIdx.x - tile_y * tiles_across) * colour_width;
    if (y >= picture.height) /* the whole warp, or a block that this picture does not need */
        return;
    const int h = picture.components[CHANNELS - 1].across, v = picture.components[CHANNELS - 1].down;
    uint8_t *const pixels = picture.pixels;
    const size_t row = (size_t)y * (size_t)picture.width;
    const int warp_x = tile_x - (int)(row % colour_alignment), x = warp_x + t * group;
    uint8_t bytes[group * CHANNELS];
    unsigned chroma[2][group];
    if (CHANNELS > 1) {
        upsample<UPSAMPLING>(picture.components[1], x, y, h, v, chroma[0]);
        upsample<UPSAMPLING>(picture.components[CHANNELS - 1], x, y, h, v, chroma[1]);
    }
#pragma unroll
    for (int k = 0; k < group; k++) {
        const unsigned luma = sample_at(picture.components[0], min(max(x + k, 0), picture.width - 1), y);
        if (CHANNELS == 1)
            bytes[k] = (uint8_t)luma;
        else
            jpeg_colour((int)luma, (int)chroma[0][k], (int)chroma[1][k], bytes + k * CHANNELS);
    }
    if (CHANNELS == 3 && picture.plane != 0) {
        store_planes(bytes, pixels + (ptrdiff_t)row + x, picture.plane, -x, picture.width - x);
        return;
    }
    uint32_t word[CHANNELS];
#pragma unroll
    for (int k = 0; k < CHANNELS; k++)
        word[k] = bytes[4 * k] | (uint32_t)bytes[4 * k + 1] << 8 | (uint32_t)bytes[4 * k + 2] << 16 |
                  (uint32_t)bytes[4 * k + 3] << 24;
    if (CHANNELS == 3)
        exchange(shared[threadIdx.y % (CHANNELS == 3 ? threads_y : 1)], word);
    uint8_t *to = pixels + ((ptrdiff_t)row + warp_x) * CHANNELS; /* a multiple of 16 */
#pragma unroll
    for (int k = 0; k < CHANNELS; k++) {
        const int index = t + threads_x * k,
                  from = warp_x + index / CHANNELS * group; /* the first pixel of its group */
        if (from >= 0 && from + group <= picture.width)
            *(uint32_t *)(to + 4 * index) = word[k];
    }
    if (x >= 0 && x + group <= picture.width)
        return;
#pragma unroll
    for (int k = 0; k < group; k++)
        if (x + k >= 0 && x + k < picture.width)
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                pixels[(row + (size_t)(x + k)) * CHANNELS + c] = bytes[k * CHANNELS + c];
}

using kernel = void(const struct picture *pictures);

/* Pictures of one component have the first kernel, and those of three have the others by their upsampling. */
kernel *const colour_kernels[1 + UPSAMPLINGS] = {colour<1, COPIED>, colour<3, COPIED>, colour<3, ACROSS>,
                                                 colour<3, DOWN>, colour<3, BOTH>};

int number_colour_kernel(const struct picture &picture)
{
    return picture.count == 1 ? 0 : 1 + (int)picture.upsampling;
}
} // namespace

bool decode_transform(const struct pictures *pictures, struct device *device, struct error *error)
{
    const uint32_t count = (uint32_t)pictures->count;
    const auto tiles_of = [](const struct picture &picture) { return picture.transform_tiles; };
    const uint32_t whole = max_of(pictures, tiles_of);
    if (whole > 0 &&
        !queue_kernel(transform, dim3(whole, count), transform_threads, 0, device, error, pictures->device))
        return false;
    for (int side = JPEG_SIDE / 2; side > 0; side /= 2)
        for (int i = 0; i < JPEG_COMPONENTS_MAX; i++) {
            const auto need = [&](const struct picture &picture) { return small_tiles(picture, i, side); };
            const uint32_t tiles = max_of(pictures, need);
            const auto kernel = side == 4 ? transform_small<4> : side == 2 ? transform_small<2> : transform_small<1>;
            if (tiles > 0 &&
                !queue_kernel(kernel, dim3(tiles, count), transform_threads, 0, device, error, pictures->device, i))
                return false;
        }
    return true;
}

bool decode_colour(const struct pictures *pictures, struct device *device, struct error *error)
{
    const dim3 block(threads_x, threads_y);
    for (int i = 0; i < 1 + UPSAMPLINGS; i++) {
        const auto need = [&](const struct picture &picture) {
            return number_colour_kernel(picture) == i ? picture.colour_tiles : 0;
        };
        const dim3 grid(max_of(pictures, need), (uint32_t)pictures->count);
        if (grid.x > 0 && !queue_kernel(colour_kernels[i], grid, block, 0, device, error, pictures->device))
            return false;
    }
    return true;
}
