/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of index.c and decode_walk.c.
 * From the data of a scan to coefficients, in parallel although each Huffman code begins where the last one ends.
 * (Weissenberger and Schmidt, "Accelerating JPEG Decompression on GPUs", 2021; arXiv 2111.09219.)
 *
 * A thread walks over a subsequence of the data from a state: the bit, the block in the MCU, and the zigzag index.
 * Only the first state of a segment is known. From a wrong one, a walk soon meets the right codes, because Huffman
 * codes synchronise themselves. So all threads begin in a guessed state. Then each one whose neighbour ended in another
 * state than it began with walks again, until nothing changes. Its states are then right, from the segment's beginning
 * on. Prefix sums of the blocks that end in each subsequence tell where each thread's coefficients belong, and each
 * thread walks once more and writes them.
 *
 * The data may be anything. No walk leaves its subsequence by more than a symbol. Each launch ends, because the states
 * of the first K subsequences of a thread block are final after K rounds. The walk that writes checks the states and
 * all that libjpeg-turbo would warn of. It writes to the blocks of its segment only. */
#include "jpeg/decode.cuh"

namespace
{
constexpr int warp_size = 32;
constexpr int max_sum_threads = 1024; /* threads of the one thread block that sums up totals */

/* The position of each zigzag index in a block that is stored column by column. */
struct column_order {
    uint8_t positions[JPEG_BLOCK];

    constexpr column_order() : positions()
    {
        constexpr uint8_t natural[JPEG_BLOCK] = JPEG_NATURAL_ORDER;
        for (int i = 0; i < JPEG_BLOCK; i++)
            positions[i] = natural[i] % JPEG_SIDE * JPEG_SIDE + natural[i] / JPEG_SIDE;
    }
};
__constant__ const column_order columns;

/* ---- Sums ---- */

__device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b)
{
    return a + b;
}

__device__ __forceinline__ uint32_t subtract(uint32_t a, uint32_t b)
{
    return a - b;
}

__device__ __forceinline__ uint32_t shuffle_up(uint32_t value, int by)
{
    return __shfl_up_sync(~0u, value, (unsigned)by);
}

/* Four sums modulo 2^16. */
__device__ __forceinline__ uint2 add(uint2 a, uint2 b)
{
    return make_uint2(__vadd2(a.x, b.x), __vadd2(a.y, b.y));
}

__device__ __forceinline__ uint2 subtract(uint2 a, uint2 b)
{
    return make_uint2(__vsub2(a.x, b.x), __vsub2(a.y, b.y));
}

__device__ __forceinline__ uint2 shuffle_up(uint2 value, int by)
{
    return make_uint2(shuffle_up(value.x, by), shuffle_up(value.y, by));
}

/* The sum of the values of all threads before this one in the block. Sets *TOTAL to the sum of all. All threads of the
 * block call this. */
template <typename Sum>
__device__ __forceinline__ Sum sum_before(Sum value, Sum *total)
{
    __shared__ Sum warps[max_sum_threads / warp_size];
    const int lane = (int)threadIdx.x % warp_size, warp = (int)threadIdx.x / warp_size;
    Sum sum = value;
#pragma unroll
    for (int by = 1; by < warp_size; by *= 2) {
        const Sum other = shuffle_up(sum, by);
        if (lane >= by)
            sum = add(sum, other);
    }
    __syncthreads(); /* wait until the warps' last sums are read */
    if (lane == warp_size - 1)
        warps[warp] = sum;
    __syncthreads();
    Sum before = {}, all = {};
    for (int i = 0; i < (int)blockDim.x / warp_size; i++) {
        if (i == warp)
            before = all;
        all = add(all, warps[i]);
    }
    *total = all;
    return add(before, subtract(sum, value));
}

/* Replace each of COUNT totals by the sum of those before it, in one block of threads. */
template <typename Sum>
__device__ __forceinline__ void sum_totals(const uint32_t *is_bad, Sum *totals, uint32_t count)
{
    if (count == 0 || *is_bad != 0)
        return;
    Sum before = {};
    for (uint32_t first = 0; first < count; first += blockDim.x) {
        const uint32_t i = first + threadIdx.x;
        Sum value = {}, all;
        if (i < count)
            value = totals[i];
        const Sum sum = sum_before(value, &all);
        if (i < count)
            totals[i] = add(before, sum);
        before = add(before, all);
    }
}

__global__ void __launch_bounds__(max_sum_threads) sum_walk_totals(const struct picture *__restrict__ pictures)
{
    const struct picture &picture = pictures[blockIdx.y];
    sum_totals(picture.walk.is_bad, picture.walk.totals, picture.walk_blocks);
}

__global__ void __launch_bounds__(max_sum_threads) sum_dc_totals(const struct picture *__restrict__ pictures)
{
    const struct picture &picture = pictures[blockIdx.y];
    sum_totals(picture.walk.is_bad, picture.walk.dc_totals, picture.dc_tiles);
}

/* Threads of the one block of a picture that sums up to COUNT totals. */
uint32_t threads_for(uint32_t count)
{
    return count < max_sum_threads ? (count + warp_size - 1) / warp_size * warp_size : max_sum_threads;
}

/* ---- The walk ---- */

/* A state in 16 bits: 5 of the bits beyond the subsequence's beginning, at most 30, because a symbol has at most 31; 3
 * of the block in the MCU, modulo the period of the tables; 6 of the zigzag index. */
__device__ __forceinline__ uint16_t pack_state(uint32_t beyond, uint32_t block, uint32_t zigzag)
{
    return (uint16_t)(beyond | block << 5 | zigzag << 8);
}

struct state {
    uint32_t position, block, zigzag;
};

__device__ __forceinline__ struct state unpack_state(uint32_t begin, uint16_t packed)
{
    return {begin + (packed & 31u), packed >> 5 & 7u, (uint32_t)packed >> 8};
}

struct subsequence {
    uint32_t segment, first; /* the first subsequence of the segment */
    uint32_t begin, end;     /* bits */
    bool is_first, is_last;  /* the first, or the last, subsequence of its segment */
};

__device__ __forceinline__ struct subsequence find_subsequence(const struct scan &scan, uint32_t number)
{
    uint32_t low = 0, high = scan.segment_count; /* firsts[low] <= number < firsts[high] */
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (scan.firsts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    struct subsequence found;
    const uint32_t segment_end = scan.starts[low + 1] * 8;
    found.segment = low;
    found.first = scan.firsts[low];
    found.begin = scan.starts[low] * 8 + (number - found.first) * subsequence_bits;
    found.is_first = number == found.first;
    found.is_last = segment_end - found.begin <= subsequence_bits;
    found.end = found.is_last ? segment_end : found.begin + subsequence_bits;
    return found;
}

/* The next bits of the data: 32 of them in one word. Three words are in registers, the last of them early. */
struct bits {
    const uint32_t *words;
    uint32_t high, low, next, position;

    __device__ __forceinline__ uint32_t load(uint32_t word) const
    {
        return __byte_perm(__ldg(words + word), 0, 0x0123); /* big-endian */
    }

    __device__ __forceinline__ void begin(const uint32_t *from, uint32_t at)
    {
        words = from;
        position = at;
        high = load(at / 32);
        low = load(at / 32 + 1);
        next = load(at / 32 + 2);
    }

    __device__ __forceinline__ uint32_t window() const
    {
        return __funnelshift_l(low, high, position);
    }

    __device__ __forceinline__ void skip(uint32_t count) /* at most 31 */
    {
        const uint32_t to = position + count;
        if ((to ^ position) / 32 != 0) {
            high = low;
            low = next;
            next = load(to / 32 + 2);
        }
        position = to;
    }
};

/* The tables in shared memory. */
struct walk_tables {
    const uint16_t *entries; /* the entries of all tables, one after another */
    const uint32_t
        *order; /* for each block of the period, the first entry of its tables: DC, and in the high half AC */
    uint32_t period;
};

__device__ __forceinline__ uint32_t find_entry(const struct walk_tables &tables, uint32_t order, uint32_t zigzag,
                                               uint32_t window)
{
    const uint16_t *table = tables.entries + (zigzag == 0 ? order & 0xffff : order >> 16);
    const uint32_t entry = table[window >> (32 - look_bits)];
    return (entry & 31) != 0 ? entry : table[(entry >> 5 << more_bits) + (window << look_bits >> (32 - more_bits))];
}

/* Copy the tables to shared memory, at SHARED and ORDER. The caller synchronises. */
__device__ __forceinline__ struct walk_tables load_tables(const struct scan &scan, uint4 *shared, uint32_t *order)
{
    const uint4 *from = (const uint4 *)scan.tables;
    const uint32_t count = scan.table_entries / 8;
    for (uint32_t i = threadIdx.x; i < count; i += walk_threads)
        shared[i] = from[i];
    if (threadIdx.x == 0)
        for (int i = 0; i < JPEG_MCU_BLOCKS_MAX; i++)
            order[i] = scan.dc[i] | (uint32_t)scan.ac[i] << 16;
    return {(const uint16_t *)shared, order, scan.period};
}

/* Walk from the state IN to the end of the subsequence. Returns the state there, and adds to *COUNT the blocks that
 * ended. */
__device__ uint16_t count_blocks(const struct scan &scan, const struct walk_tables &tables,
                                 const struct subsequence &at, uint16_t in, uint32_t *count)
{
    struct state state = unpack_state(at.begin, in);
    struct bits bits;
    bits.begin(scan.words, state.position);
    uint32_t order = tables.order[state.block], ended = 0;
    while (bits.position < at.end) {
        const uint32_t entry = find_entry(tables, order, state.zigzag, bits.window());
        bits.skip(entry & 31);
        state.zigzag += entry >> 9;
        if (state.zigzag >= JPEG_BLOCK) {
            state.zigzag = 0;
            state.block = state.block + 1 == tables.period ? 0 : state.block + 1;
            order = tables.order[state.block];
            ended++;
        }
    }
    *count = ended;
    return pack_state(bits.position - at.end, state.block, state.zigzag);
}

/* Hand states on in a block of threads until they agree, and in launch 0, walk from guessed states before. Then number
 * the blocks. In later launches, only the states at the beginning of a thread block can be wrong. */
__global__ void __launch_bounds__(walk_threads) synchronise(const struct picture *__restrict__ pictures, int launch)
{
    extern __shared__ uint4 shared[];
    __shared__ uint32_t order[JPEG_MCU_BLOCKS_MAX];
    __shared__ uint16_t states[walk_threads + 1]; /* states[t] is at the beginning of subsequence t */
    const struct picture &picture = pictures[blockIdx.y];
    const struct scan &scan = picture.scan;
    const struct walk &walk = picture.walk;
    const uint32_t t = threadIdx.x, number = blockIdx.x * walk_threads + t;
    if (blockIdx.x >= picture.walk_blocks)
        return;
    uint16_t *edge =
        walk.edges + (size_t)launch * picture.walk_blocks + blockIdx.x; /* its own; those of the last launch follow */
    const uint16_t *last_edge = edge - picture.walk_blocks;
    const uint16_t before = launch > 0 && blockIdx.x > 0 ? last_edge[-1] : (uint16_t)0;
    if (launch > 0 && (blockIdx.x == 0 || before == walk.in[blockIdx.x * walk_threads])) { /* the whole block */
        if (t == 0)
            *edge = *last_edge;
        return;
    }
    const struct walk_tables tables = load_tables(scan, shared, order);
    const bool is_active = number < scan.subsequences;
    struct subsequence at = {};
    uint16_t in = 0, out = 0;
    uint32_t count = 0;
    if (is_active)
        at = find_subsequence(scan, number);
    __syncthreads();
    if (is_active && launch == 0) {
        out = count_blocks(scan, tables, at, in, &count);
    } else if (is_active) {
        in = walk.in[number];
        out = walk.out[number];
        count = walk.counts[number];
    }
    if (t == 0)
        states[0] = before;
    states[t + 1] = out;
    for (;;) {
        __syncthreads();
        const uint16_t wanted = at.is_first ? (uint16_t)0 : states[t];
        const bool is_stale = is_active && in != wanted;
        if (!__syncthreads_or(is_stale))
            break;
        if (is_stale) {
            in = wanted;
            out = count_blocks(scan, tables, at, in, &count);
            states[t + 1] = out;
        }
    }
    uint32_t total;
    const uint32_t blocks = sum_before(count, &total);
    if (is_active) {
        walk.in[number] = in;
        walk.out[number] = out;
        walk.counts[number] = (uint16_t)count;
        walk.blocks[number] = blocks;
    }
    if (t == 0)
        walk.totals[blockIdx.x] = total;
    if (t == walk_threads - 1)
        *edge = out;
}

/* The value of SIZE bits after a code of LENGTH bits. (T.81, F.2.2.1, EXTEND) */
__device__ __forceinline__ int value_of(uint32_t window, uint32_t length, uint32_t size)
{
    if (size == 0)
        return 0;
    const uint32_t value = window << length;
    return (int)(value >> (32 - size)) + ((int)value < 0 ? 0 : 1 - (1 << size));
}

/* Walk over a subsequence, and write the coefficients of the blocks FROM to COUNT of its segment, which begins with
 * block FIRST of the scan. Returns false for data that libjpeg-turbo would warn of. */
__device__ bool write_blocks(const struct scan &scan, const struct walk &walk, const struct walk_tables &tables,
                             const uint8_t *positions, const struct subsequence &at, uint16_t in, uint32_t first,
                             uint32_t from, uint32_t count)
{
    struct state state = unpack_state(at.begin, in);
    struct bits bits;
    bits.begin(scan.words, state.position);
    uint32_t order = tables.order[state.block], block = from;
    int16_t *coefficients = walk.coefficients + (size_t)(first + block) * JPEG_BLOCK, *const dc = walk.dc + first;
    while (bits.position < at.end) {
        const uint32_t window = bits.window(), entry = find_entry(tables, order, state.zigzag, window);
        const uint32_t length = entry & 31, size = entry >> 5 & 15, advance = entry >> 9;
        const uint32_t zigzag = state.zigzag + advance;
        if (entry == bad_entry || (zigzag > JPEG_BLOCK && advance != end_of_block))
            return false;
        const int value = value_of(window, length - size, size);
        /* BLOCK is below COUNT here. With a size, the advance is at most 16, so ZIGZAG is at most JPEG_BLOCK. */
        if (state.zigzag == 0)
            dc[block] = (int16_t)value;
        else if (size != 0)
            coefficients[positions[zigzag - 1]] = (int16_t)value;
        bits.skip(length);
        state.zigzag = zigzag;
        if (zigzag >= JPEG_BLOCK) {
            state.zigzag = 0;
            state.block = state.block + 1 == tables.period ? 0 : state.block + 1;
            order = tables.order[state.block];
            coefficients += JPEG_BLOCK;
            if (++block == count) { /* the padding has less than a byte */
                const uint32_t segment_end = scan.starts[at.segment + 1] * 8;
                return bits.position <= segment_end && segment_end - bits.position < 8;
            }
        }
    }
    return !at.is_last;
}

__global__ void __launch_bounds__(walk_threads) write(const struct picture *__restrict__ pictures)
{
    extern __shared__ uint4 shared[];
    __shared__ uint32_t order[JPEG_MCU_BLOCKS_MAX];
    __shared__ uint8_t positions[JPEG_BLOCK];
    const struct picture &picture = pictures[blockIdx.y];
    const struct scan &scan = picture.scan;
    const struct walk &walk = picture.walk;
    const uint32_t number = blockIdx.x * walk_threads + threadIdx.x;
    if (blockIdx.x >= picture.walk_blocks)
        return;
    const struct walk_tables tables = load_tables(scan, shared, order);
    if (threadIdx.x < JPEG_BLOCK)
        positions[threadIdx.x] = columns.positions[threadIdx.x];
    __syncthreads();
    if (number >= scan.subsequences)
        return;
    const struct subsequence at = find_subsequence(scan, number);
    const uint16_t in = walk.in[number];
    const uint32_t first = at.segment * scan.segment_blocks;
    const uint32_t count = min(scan.segment_blocks, scan.blocks - first);
    const uint32_t from = walk.totals[number / walk_threads] + walk.blocks[number] -
                          walk.totals[at.first / walk_threads] - walk.blocks[at.first];
    bool is_good = in == (at.is_first ? 0 : walk.out[number - 1]);
    if (is_good && from < count) /* after the last block there is only padding */
        is_good = write_blocks(scan, walk, tables, positions, at, in, first, from, count);
    if (!is_good)
        atomicOr(walk.is_bad, 1u);
}

/* ---- DC ---- */

/* Replace the DC differences of a tile of MCUs by their sums from the tile's beginning on, which wrap as
 * libjpeg-turbo's 16 bits do. The first blocks of an MCU are luma; the other components have one each. */
__global__ void __launch_bounds__(tile_mcus) sum_dc(const struct picture *__restrict__ pictures)
{
    const struct picture &picture = pictures[blockIdx.y];
    if (blockIdx.x >= picture.dc_tiles || *picture.walk.is_bad != 0)
        return;
    const uint32_t mcu = blockIdx.x * tile_mcus + threadIdx.x, mcus = picture.mcus;
    const int luma_blocks = picture.luma_blocks, mcu_blocks = (int)picture.mcu_blocks;
    int16_t *blocks = picture.walk.dc + (size_t)mcu * picture.mcu_blocks;
    uint32_t sum[JPEG_COMPONENTS_MAX] = {};
    int value[JPEG_MCU_BLOCKS_MAX];
#pragma unroll
    for (int i = 0; i < JPEG_MCU_BLOCKS_MAX; i++) {
        value[i] = mcu < mcus && i < mcu_blocks ? blocks[i] : 0;
        sum[0] += (uint32_t)(i < luma_blocks ? value[i] : 0);
        sum[1] += (uint32_t)(i == luma_blocks ? value[i] : 0);
        sum[2] += (uint32_t)(i == luma_blocks + 1 ? value[i] : 0);
    }
    uint2 total;
    const uint2 before = sum_before(make_uint2((sum[0] & 0xffff) | sum[1] << 16, sum[2] & 0xffff), &total);
    if (threadIdx.x == 0)
        picture.walk.dc_totals[blockIdx.x] = total;
    if (mcu >= mcus)
        return;
    uint32_t luma = before.x;
#pragma unroll
    for (int i = 0; i < JPEG_MCU_BLOCKS_MAX; i++) {
        if (i >= mcu_blocks)
            break;
        luma += (uint32_t)value[i];
        blocks[i] = (int16_t)(i < luma_blocks    ? luma
                              : i == luma_blocks ? (before.x >> 16) + (uint32_t)value[i]
                                                 : before.y + (uint32_t)value[i]);
    }
}
} // namespace

bool decode_walk(const struct pictures *pictures, struct device *device, struct error *error)
{
    const uint32_t blocks = max_of(pictures, [](const struct picture &picture) { return picture.walk_blocks; });
    const uint32_t entries = max_of(pictures, [](const struct picture &picture) { return picture.scan.table_entries; });
    const uint32_t count = (uint32_t)pictures->count;
    const size_t shared = entries * sizeof(uint16_t);
    for (int launch = 0; launch < (blocks > 1 ? walk_launches : 1); launch++)
        if (!queue_kernel(synchronise, dim3(blocks, count), walk_threads, shared, device, error, pictures->device,
                          launch))
            return false;
    return queue_kernel(sum_walk_totals, dim3(1, count), threads_for(blocks), 0, device, error, pictures->device) &&
           queue_kernel(write, dim3(blocks, count), walk_threads, shared, device, error, pictures->device);
}

bool decode_sum_dc(const struct pictures *pictures, struct device *device, struct error *error)
{
    const uint32_t tiles = max_of(pictures, [](const struct picture &picture) { return picture.dc_tiles; });
    const uint32_t count = (uint32_t)pictures->count;
    return queue_kernel(sum_dc, dim3(tiles, count), tile_mcus, 0, device, error, pictures->device) &&
           queue_kernel(sum_dc_totals, dim3(1, count), threads_for(tiles), 0, device, error, pictures->device);
}
