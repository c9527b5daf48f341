/* SPDX-License-Identifier: MIT
 *
 * rank: the work of src/cpu/rank.c on the GPU. Medians of 3 x 3 and 5 x 5 samples, and the lowest and the highest
 * sample of rectangles, are in rank/rectangles.cuh. For any other rank, a thread walks down a column of outputs and
 * counts the samples of its window.
 *
 *       leave    .  x  x  .        The footprint is a list of segments of rows: of all its samples, of those that
 *                x  o  o  x        leave when the window goes down by a row, and of those that enter. The thread has
 *                +  o  o  +        a histogram in shared memory, in words that lie in its own bank.
 *       enter       +  +
 *
 * Samples of more than 8 bits are found digit by digit, each of 8 bits, the highest first, in a launch each. In a later
 * launch only samples count whose higher digits are those of the output. They are counted anew where these differ from
 * those of the output above. That would take long for rectangles, where struct sorted_columns finds them in one launch.
 *
 * These kernels read a copy of the planes that is as wide and high as all windows, so they know no border.
 * There a float is its rank_key. */
#include "kernels/rank/rectangles.cuh"

namespace
{
/* ---- The copy with its border ---- */

/* Copies of planes with what the border gives around them. Row 0 and column `lead` are those of the first window. */
struct pad_call {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int width, height;                           /* sides of the planes */
    int columns, rows;                           /* sides of the copies; columns is a multiple of 4 */
    int left, above;                             /* samples of the copies before those of the planes */
    enum border border;
};

constexpr int four = 4; /* samples of a thread that copies */

template <typename T>
struct alignas(four * sizeof(T)) samples {
    T v[four];
};

/* T is the type of a sample or, for floats, of its bits. */
template <typename T>
__global__ void __launch_bounds__(256) pad_planes(const __grid_constant__ struct pad_call call)
{
    const int fours = call.columns / four;
    const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int y = (int)(number / fours), x = (int)(number % fours) * four;
    if (y >= call.rows)
        return;
    const int from_y = border_index(y - call.above, call.height, call.border), from_x = x - call.left;
    const T *from = (const T *)(call.in + blockIdx.z * call.in_plane + (size_t)max(from_y, 0) * call.in_row);
    samples<T> copied = {};
    if (from_y >= 0 && from_x >= 0 && from_x + four <= call.width)
        copied = *(const samples<T> *)(from + from_x);
    else if (from_y >= 0)
        for (int k = 0; k < four; k++) {
            const int at = border_index(from_x + k, call.width, call.border);
            copied.v[k] = at < 0 ? 0 : from[at];
        }
    if constexpr (sizeof(T) == 4)
        for (int k = 0; k < four; k++)
            copied.v[k] = rank_key(copied.v[k]);
    *(samples<T> *)(call.out + blockIdx.z * call.out_plane + y * call.out_row + x * sizeof(T)) = copied;
}

/* ---- Counting ---- */

/* A segment of a list: its row, its first column and its samples, a byte each from the lowest on. The table in device
 * memory has the ends of the lists as indices in it, and then the lists. */
typedef uint32_t segment;
enum { LIST_WHOLE, LIST_ENTER, LIST_LEAVE, LISTS };
constexpr int table_max = LISTS + LISTS * FILTER_MAX * (FILTER_MAX + 1) / 2;

struct count_call {
    const unsigned char *in; /* the copies */
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    uint16_t *ranks;      /* for each output, its rank among the samples that share its digits, row by row; or NULL */
    const segment *lists; /* the table of rank_prepare */
    int width, height;
    int columns, tiles_y, strip; /* tiles side by side, tiles one below the other, rows of a tile */
    int index;                   /* the rank of the outputs */
    int side_x, side_y, pitch;   /* for struct sorted_columns: the window's sides, and samples to the next in order */
    int shift;                   /* the lowest bit of the digit */
};

constexpr int histogram_words = 8192; /* words of a block's histograms: 32 KB */

/* A thread's counts of digits. BINS of them are in a word, so a count has 8 or 16 bits. */
template <int BINS>
struct histogram {
    static constexpr int bits = 32 / BINS, words = 256 / BINS;
    static constexpr int threads = histogram_words / words; /* threads of a block */

    uint32_t *word;
    int first; /* the first digit of the word that has the output's */
    int below; /* samples below `first` */

    __device__ __forceinline__ void clear()
    {
        for (int i = 0; i < words; i++)
            word[i * threads] = 0;
        first = below = 0;
    }

    /* An atomic addition is one instruction, and the thread does not wait for it. */
    template <int SIGN>
    __device__ __forceinline__ void add(int digit)
    {
        atomicAdd(&word[digit / BINS * threads], (uint32_t)SIGN << digit % BINS * bits);
        below += digit < first ? SIGN : 0;
    }

    static __device__ __forceinline__ int sum(uint32_t counts)
    {
        return BINS == 4 ? (int)__dp4a(counts, 0x01010101u, 0u) : (int)((counts & 65535) + (counts >> 16));
    }

    /* The digit of RANK, which becomes the rank among the samples that have it. */
    __device__ __forceinline__ int find(int *rank)
    {
        while (below > *rank) {
            first -= BINS;
            below -= sum(word[first / BINS * threads]);
        }
        uint32_t counts;
        for (;;) {
            counts = word[first / BINS * threads];
            const int through = below + sum(counts);
            if (through > *rank)
                break;
            below = through;
            first += BINS;
        }
        int digit = first, rest = *rank - below;
#pragma unroll
        for (int i = 0; i < BINS - 1; i++) {
            const int count = (int)(counts & ((1u << bits) - 1));
            const bool is_above = digit == first + i && rest >= count;
            rest -= is_above ? count : 0;
            digit += is_above;
            counts >>= bits;
        }
        *rank = rest;
        return digit;
    }
};

/* Add the samples of a list that have the digits of PREFIX, or subtract them. WINDOW is its first sample. */
template <int SIGN, bool LATER, typename T, int BINS>
__device__ __forceinline__ void count_list(const struct count_call &call, int list, const T *window, uint32_t prefix,
                                           struct histogram<BINS> &histogram)
{
    const int end = (int)__ldg(call.lists + list);
#pragma unroll 1
    for (int i = list == 0 ? LISTS : (int)__ldg(call.lists + list - 1); i < end; i++) {
        const segment segment = __ldg(call.lists + i);
        const T *from = (const T *)((const char *)window + (segment & 255) * call.in_row) + (segment >> 8 & 255);
#pragma unroll 5
        for (int count = (int)(segment >> 16); count > 0; count--) {
            const uint32_t digits = (uint32_t)__ldg(from++) >> (sizeof(T) == 1 ? 0 : call.shift);
            if (!LATER || digits >> 8 == prefix)
                histogram.template add<SIGN>((int)(digits & 255));
        }
    }
}

/* The columns of a block's windows in a row of outputs: each has its samples in order in shared memory, the next one
 * PITCH samples on. So the samples that have the digits of a prefix are found without a look at all others. */
template <typename T>
struct sorted_columns {
    T *const samples;
    const struct count_call &call;
    const T *const from; /* the first sample of the block's first window */
    const int last;      /* the last column that the copy has */

    __device__ __forceinline__ T read(int row, int column) const
    {
        return ((const T *)((const char *)from + (ptrdiff_t)row * (ptrdiff_t)call.in_row))[min(column, last)];
    }

    /* Put OLD, which is sample I of the column or before it, out of the column, and NEXT into it. */
    __device__ __forceinline__ void replace(T *column, int i, T next) const
    {
        for (; i + 1 < call.side_y && column[(i + 1) * call.pitch] < next; i++)
            column[i * call.pitch] = column[(i + 1) * call.pitch];
        for (; i > 0 && column[(i - 1) * call.pitch] > next; i--)
            column[i * call.pitch] = column[(i - 1) * call.pitch];
        column[i * call.pitch] = next;
    }

    /* The samples of COLUMN below LEVEL. */
    __device__ __forceinline__ int count_below(const T *column, uint32_t level) const
    {
        int count = 0;
        for (int step = 64; step > 0; step /= 2)
            if (count + step <= call.side_y && column[(count + step - 1) * call.pitch] < level)
                count += step;
        return count;
    }

    /* Let the columns be those of row ROW of the windows. All threads of the block call this. */
    __device__ __forceinline__ void move_to(int row, int threads) const
    {
        __syncthreads();
        for (int c = (int)threadIdx.x; c < threads + call.side_x - 1; c += threads) {
            T *const column = samples + c;
            if (row > 0) {
                replace(column, count_below(column, read(row - 1, c)), read(row + call.side_y - 1, c));
                continue;
            }
            for (int i = 0; i < call.side_y; i++)
                column[i * call.pitch] = (T)UINT32_MAX;
            for (int i = 0; i < call.side_y; i++)
                replace(column, call.side_y - 1, read(i, c));
        }
        __syncthreads();
    }
};

constexpr int sorted_threads = 128; /* threads of a block that sorts columns */

/* A thread keeps the number of samples below its output for each column of its window. In the next row, each number
 * grows or shrinks by one at most. Then the thread takes one sample after another, or puts one back, until the right
 * number is below. It takes at most as many samples as the window is wide. */
template <typename T>
__global__ void __launch_bounds__(sorted_threads) select_samples(const __grid_constant__ struct count_call call)
{
    constexpr int threads = sorted_threads;
    extern __shared__ uint32_t memory[];
    const int across = (int)blockIdx.x / call.columns, plane = across / call.tiles_y;
    const int tile_x = ((int)blockIdx.x - across * call.columns) * threads, x = tile_x + (int)threadIdx.x;
    const int y = (across - plane * call.tiles_y) * call.strip, rows = min(call.strip, call.height - y);
    const struct sorted_columns<T> columns = {
        (T *)memory, call, (const T *)(call.in + plane * call.in_plane + y * call.in_row) + tile_x,
            call.width + call.side_x - 2 - tile_x
    };
    const T *const first = columns.samples + threadIdx.x;
    uint8_t *const taken = (uint8_t *)(columns.samples + call.pitch * call.side_y) + threadIdx.x;
    T *out = (T *)(call.out + plane * call.out_plane + y * call.out_row) + x;
    uint32_t value = 0;
#pragma unroll 1
    for (int row = 0; row < rows; row++, out = (T *)((char *)out + call.out_row)) {
        columns.move_to(row, threads);
        if (x >= call.width)
            continue;
        if (row == 0) { /* the highest level that has no more samples below it than the rank */
#pragma unroll 1
            for (uint32_t bit = 1u << (8 * sizeof(T) - 1); bit > 0; bit /= 2) {
                int count = 0;
                for (int j = 0; j < call.side_x; j++)
                    count += columns.count_below(first + j, value | bit);
                value |= count <= call.index ? bit : 0;
            }
            for (int j = 0; j < call.side_x; j++)
                taken[j * threads] = (uint8_t)columns.count_below(first + j, value);
        }
        int sum = 0;
#pragma unroll 4
        for (int j = 0; j < call.side_x; j++) {
            const int count = taken[j * threads];
            const T *const next = first + j + count * call.pitch;
            const int step = count < call.side_y && *next < value ? 1 : count > 0 && next[-call.pitch] > value ? -1 : 0;
            if (step != 0)
                taken[j * threads] = (uint8_t)(count + step);
            sum += count + step;
        }
        for (;;) {
            const bool takes = sum <= call.index;
            const uint32_t flip = takes ? 0 : UINT32_MAX; /* the highest sample is the lowest of the complements */
            uint32_t lowest = UINT32_MAX;
            int column = 0;
#pragma unroll 4
            for (int j = 0; j < call.side_x; j++) {
                const int i = taken[j * threads] - !takes;
                const bool has = i >= 0 && i < call.side_y;
                const uint32_t sample = has ? first[i * call.pitch + j] ^ flip : UINT32_MAX;
                column = has && sample <= lowest ? j : column;
                lowest = min(lowest, sample);
            }
            if (sum == call.index) {
                value = lowest;
                break;
            }
            taken[column * threads] = (uint8_t)(taken[column * threads] + (takes ? 1 : -1));
            sum += takes ? 1 : -1;
        }
        *out = (T)(sizeof(T) == 4 ? rank_bits(value) : value);
    }
}

/* LATER: some digits of the outputs are known. The outputs have their bits, and call.ranks the rest. */
template <typename T, int BINS, bool LATER>
__global__ void __launch_bounds__(histogram<BINS>::threads)
    count_samples(const __grid_constant__ struct count_call call)
{
    constexpr int threads = histogram<BINS>::threads;
    extern __shared__ uint32_t memory[];
    const int across = (int)blockIdx.x / call.columns, plane = across / call.tiles_y;
    const int tile_x = ((int)blockIdx.x - across * call.columns) * threads, x = tile_x + (int)threadIdx.x;
    const int y = (across - plane * call.tiles_y) * call.strip, rows = min(call.strip, call.height - y);
    const bool has_output = x < call.width;
    const T *window = (const T *)(call.in + plane * call.in_plane + y * call.in_row) + x;
    T *out = (T *)(call.out + plane * call.out_plane + y * call.out_row) + x;
    uint16_t *ranks = call.ranks + ((size_t)plane * call.height + y) * call.width + x;
    struct histogram<BINS> histogram;
    histogram.word = memory + threadIdx.x;
    uint32_t prefix = 0;
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
        int rank = call.index;
        bool is_new = row == 0;
        if constexpr (LATER) {
            const uint32_t known = has_output ? (uint32_t)*out >> call.shift >> 8 : prefix;
            is_new = __any_sync(~0u, is_new || known != prefix); /* the lanes would wait for each other */
            prefix = known;
            rank = has_output ? *ranks : 0;
        }
        if (has_output) {
            if (is_new) {
                histogram.clear();
                count_list<1, LATER>(call, LIST_WHOLE, window, prefix, histogram);
            } else {
                const T *above = (const T *)((const char *)window - call.in_row);
                count_list<-1, LATER>(call, LIST_LEAVE, above, prefix, histogram);
                count_list<1, LATER>(call, LIST_ENTER, window, prefix, histogram);
            }
            const uint32_t digit = (uint32_t)histogram.find(&rank);
            const uint32_t key = (prefix << 8 | digit) << (sizeof(T) == 1 ? 0 : call.shift);
            *out = (T)(sizeof(T) == 4 && call.shift == 0 ? rank_bits(key) : key);
            if (sizeof(T) > 1 && call.shift > 0)
                *ranks = (uint16_t)rank;
        }
        window = (const T *)((const char *)window + call.in_row);
        out = (T *)((char *)out + call.out_row);
        ranks += call.width;
    }
}

/* ---- Differences ---- */

/* A thread has 16 bytes of a row. */
template <typename T>
__global__ void __launch_bounds__(256)
    subtract_planes(struct launch launch, const unsigned char *low, size_t low_row, size_t low_plane)
{
    const int2 tile = block_tile(launch);
    constexpr int count = 16 / (int)sizeof(T);
    const int x = (tile.x * warp + (int)threadIdx.x) * count, y = tile.y * 8 + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    uint32_t high[4], less[4];
    load_words<16>(in_row<T>(launch, y) + x, high);
    load_words<16>((const T *)(low + blockIdx.z * low_plane + (size_t)y * low_row) + x, less);
#pragma unroll
    for (int k = 0; k < 4; k++)
        high[k] = sizeof(T) == 1 ? __vsubus4(high[k], less[k])
                  : sizeof(T) == 2
                      ? __vsubus2(high[k], less[k])
                      : __float_as_uint(rank_difference(__uint_as_float(high[k]), __uint_as_float(less[k])));
    store_samples<T, count>(out_row<T>(launch, y) + x, high, launch.width - x);
}

/* OUT = HIGH - LOW. Levels are at least 0. */
bool subtract(const struct plane *high, const struct plane *low, const struct plane *out, struct device *device,
              struct error *error)
{
    const enum sample sample = out->sample;
    return launch_kernel(sample == SAMPLE_U8    ? subtract_planes<uint8_t>
                         : sample == SAMPLE_U16 ? subtract_planes<uint16_t>
                                                : subtract_planes<uint32_t>,
                         planes_launch(high, out), out->count, device,
                         {warp * 16 / (int)sample_bytes(sample), 8, dim3(warp, 8)}, error,
                         (const unsigned char *)low->data, low->row_bytes, low->plane_bytes);
}

/* ---- Passes ---- */

/* Which kernel does a pass? */
enum method { METHOD_NETWORK, METHOD_EXTREME, METHOD_COUNT };

enum method find_method(const struct rank *rank, int index)
{
    const int side = rank->width;
    if (rank->count != rank->width * rank->height)
        return METHOD_COUNT;
    if (index == 0 || index == rank->count - 1)
        return METHOD_EXTREME;
    return (side == 3 || side == 5) && rank->height == side && rank->anchor_x == side / 2 &&
                   rank->anchor_y == side / 2 && index == rank->count / 2
               ? METHOD_NETWORK
               : METHOD_COUNT;
}

/* Lay out planes of WIDTH x HEIGHT for the samples of LIKE in scratch memory from *BYTES on, which grows. */
struct plane lay_out(const struct plane *like, int width, int height, size_t *bytes)
{
    struct plane planes = *like;
    planes.width = width;
    planes.height = height;
    planes.row_bytes = round_up((size_t)width * sample_bytes(like->sample), row_alignment);
    planes.plane_bytes = planes.row_bytes * (size_t)height;
    planes.data = (void *)*bytes; /* the offset in the scratch memory, until that is known */
    *bytes += round_up(planes.plane_bytes * (size_t)planes.count, row_alignment);
    return planes;
}

/* What the passes of a launch need besides the planes. */
struct scratch {
    struct plane between; /* the result of the first of two passes */
    struct plane copy;    /* METHOD_COUNT: see struct pad_call; METHOD_EXTREME: the extremes of rows */
    void *pieces;         /* METHOD_EXTREME: see find_piece_bytes */
    uint16_t *ranks;      /* METHOD_COUNT: see struct count_call */
};

/* The samples of the copies before those of the planes, so that both are aligned. */
int find_lead(const struct rank *rank)
{
    return round_up(rank->anchor_x, 16);
}

bool reserve(const struct rank *rank, const struct plane *in, struct device *device, struct scratch *scratch,
             struct error *error)
{
    const struct rank_passes passes = rank_passes(rank);
    const enum method method = find_method(rank, passes.first);
    size_t bytes = 0;
    if (passes.second >= 0)
        scratch->between = lay_out(in, in->width, in->height, &bytes);
    if (method == METHOD_EXTREME)
        scratch->copy = lay_out(in, in->width, in->height, &bytes);
    if (method == METHOD_COUNT)
        scratch->copy = lay_out(in, round_up(find_lead(rank) + in->width + rank->width, four),
                                in->height + rank->height - 1, &bytes);
    const size_t rest = bytes;
    if (method == METHOD_EXTREME)
        bytes += find_piece_bytes(rank, in);
    if (method == METHOD_COUNT && in->sample != SAMPLE_U8)
        bytes += (size_t)in->width * (size_t)in->height * (size_t)in->count * sizeof *scratch->ranks;
    void *memory = NULL;
    if (bytes > 0 && !device_scratch(device, bytes, &memory, error))
        return false;
    scratch->between.data = (char *)memory + (size_t)scratch->between.data;
    scratch->copy.data = (char *)memory + (size_t)scratch->copy.data;
    scratch->pieces = (char *)memory + rest;
    scratch->ranks = (uint16_t *)scratch->pieces;
    return true;
}

/* Count the samples of planes of T for all digits, in words of BINS counts. */
template <typename T, int BINS>
bool count_digits(struct count_call &call, const struct rank *rank, const struct plane *in, struct device *device,
                  struct error *error)
{
    constexpr int threads = histogram<BINS>::threads;
    call.columns = (in->width + threads - 1) / threads;
    choose_strip(&call, in, 1, rank->count / (2 * rank->width), (double)device_get_info(device)->multiprocessors * 7);
    for (call.shift = 8 * (int)sizeof(T) - 8; call.shift >= 0; call.shift -= 8) {
        void (*kernel)(struct count_call) = count_samples<T, BINS, false>;
        if constexpr (sizeof(T) > 1)
            if (call.shift < 8 * (int)sizeof(T) - 8)
                kernel = count_samples<T, BINS, true>;
        if (!queue_kernel(kernel, dim3((unsigned)(call.columns * call.tiles_y * in->count)), dim3(threads),
                          histogram_words * 4, device, error, call))
            return false;
    }
    return true;
}

/* Let columns that are put in order find the samples of a rectangle, and histograms all others, and all bytes. */
template <typename T>
bool queue_walk(struct count_call &call, const struct plan *plan, const struct plane *in, struct device *device,
                struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    if constexpr (sizeof(T) > 1) {
        const struct device_info *info = device_get_info(device);
        const size_t row = round_up((size_t)(sorted_threads + rank->width - 1) * sizeof(T), row_alignment);
        const size_t shared = row * (size_t)rank->height + (size_t)sorted_threads * (size_t)rank->width;
        if (rank->count == rank->width * rank->height && shared <= info->block_shared) {
            call.side_x = rank->width;
            call.side_y = rank->height;
            call.pitch = (int)(row / sizeof(T));
            call.columns = (in->width + sorted_threads - 1) / sorted_threads;
            choose_strip(&call, in, 1, rank->height,
                         (double)info->multiprocessors * max(1, min(12, 230000 / (int)shared)));
            return launch_blocks(select_samples<T>, call, call.columns * call.tiles_y * in->count, dim3(sorted_threads),
                                 shared, plan->filter->name, device, error);
        }
    }
    return rank->count < 256 ? count_digits<T, 4>(call, rank, in, device, error)
                             : count_digits<T, 2>(call, rank, in, device, error);
}

/* Queue the pass whose outputs have rank INDEX. */
template <typename T>
bool queue_counts(const struct plan *plan, int index, const struct plane *in, const struct plane *out,
                  const struct scratch &scratch, struct device *device, struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    struct pad_call pad = {};
    set_planes(&pad, in, &scratch.copy);
    pad.width = in->width;
    pad.height = in->height;
    pad.columns = scratch.copy.width;
    pad.rows = scratch.copy.height;
    pad.left = find_lead(rank);
    pad.above = rank->anchor_y;
    pad.border = plan->border;
    struct count_call call = {};
    set_planes(&call, &scratch.copy, out);
    call.in += (size_t)(find_lead(rank) - rank->anchor_x) * sample_bytes(in->sample);
    call.ranks = scratch.ranks;
    call.width = in->width;
    call.height = in->height;
    call.index = index;
    call.lists = (const segment *)device_table(device);
    const int64_t fours = (int64_t)pad.columns / four * pad.rows;
    return queue_kernel(pad_planes<T>, dim3((unsigned)((fours + 255) / 256), 1, (unsigned)in->count), dim3(256), 0,
                        device, error, pad) &&
           queue_walk<T>(call, plan, in, device, error);
}

/* Queue a pass for planes of T, or of floats if it is uint32_t. */
template <typename T>
bool queue_pass_of(const struct plan *plan, int index, const struct plane *in, const struct plane *out,
                   const struct scratch &scratch, struct device *device, struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    switch (find_method(rank, index)) {
    case METHOD_NETWORK:
        return queue_medians<T>(plan, in, out, device, error);
    case METHOD_EXTREME:
        return queue_extremes<T>(plan, index > 0, in, out, &scratch.copy, scratch.pieces, device, error);
    default:
        return queue_counts<T>(plan, index, in, out, scratch, device, error);
    }
}

bool queue_pass(const struct plan *plan, int index, const struct plane *in, const struct plane *out,
                const struct scratch &scratch, struct device *device, struct error *error)
{
    const enum sample sample = plan->sample;
    return (sample == SAMPLE_U8    ? queue_pass_of<uint8_t>
            : sample == SAMPLE_U16 ? queue_pass_of<uint16_t>
                                   : queue_pass_of<uint32_t>)(plan, index, in, out, scratch, device, error);
}

/* Add the segments of the samples (x, Y) of the footprint that are not in its row Y + STEP, or all if STEP is 0.
 * Returns their number. */
int add_segments(const struct rank *rank, int y, int step, segment *list)
{
    int count = 0, begin = -1;
    for (int x = 0; x <= rank->width; x++) {
        const bool is_outside = y + step < 0 || y + step >= rank->height;
        const bool has =
            x < rank->width && rank_has(rank, x, y) && (step == 0 || is_outside || !rank_has(rank, x, y + step));
        if (has && begin < 0)
            begin = x;
        if (!has && begin >= 0) {
            list[count++] = (segment)y | (segment)begin << 8 | (segment)(x - begin) << 16;
            begin = -1;
        }
    }
    return count;
}
} // namespace

extern "C" bool rank_prepare(struct plan *plan, struct device *device, struct error *error)
{
    static const int steps[LISTS] = {0, 1, -1}; /* LIST_ENTER: what the row below has not */
    const struct rank *rank = &plan->filter->rank;
    segment table[table_max];
    int count = LISTS;
    for (int list = 0; list < LISTS; list++) {
        for (int y = 0; y < rank->height; y++)
            count += add_segments(rank, y, steps[list], table + count);
        table[list] = (segment)count;
    }
    return upload_table(device, table, (size_t)count * sizeof *table, error);
}

extern "C" bool rank_launch(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    const struct rank_passes passes = rank_passes(rank);
    struct scratch scratch = {};
    if (!reserve(rank, in, device, &scratch, error))
        return false;
    if (passes.second < 0)
        return queue_pass(plan, passes.first, in, out, scratch, device, error);
    if (!queue_pass(plan, passes.first, in, &scratch.between, scratch, device, error) ||
        !queue_pass(plan, passes.second, passes.reads_input ? in : &scratch.between, out, scratch, device, error))
        return false;
    const struct plane *high = rank->form == RANK_TOPHAT ? in : rank->form == RANK_OUTLINE ? &scratch.between : out;
    return !rank_subtracts(rank) || subtract(high, rank->form == RANK_BLACKHAT ? in : out, out, device, error);
}
