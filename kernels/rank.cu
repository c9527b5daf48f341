/* SPDX-License-Identifier: MIT
 *
 * rank: the work of src/cpu/rank.c on the GPU. Medians of 3 x 3 and 5 x 5 samples, and the lowest and the highest sample
 * of rectangles, are in rank/rectangles.cuh. For any other rank, a thread walks down a column of outputs and counts the
 * samples of its window.
 *
 *       leave    .  x  x  .        The footprint is a list of segments of rows: of all its samples, of those that
 *                x  o  o  x        leave when the window goes down by a row, and of those that enter. The thread has
 *                +  o  o  +        a histogram in shared memory, in words that lie in its own bank.
 *       enter       +  +
 *
 * Samples of more than 8 bits are found digit by digit, each of 8 bits, the highest first, in a launch each. In a later
 * launch only samples count whose higher digits are those of the output. They are counted anew where these differ from
 * those of the output above.
 *
 * The counting kernel reads a copy of the planes that is as wide and high as all windows, so it knows no border. There
 * a float is its rank_key. */
#include "kernels/rank/rectangles.cuh"

namespace
{
/* ---- The copy with its border ---- */

/* Copies of planes with what the border gives around them. Row 0 and column `lead` are those of the first window. */
struct pad_call {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int width, height;                           /* of the planes */
    int columns, rows;                           /* of the copies; columns is a multiple of 4 */
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
    int shift;                   /* the lowest bit of the digit */
};

/* A thread's counts of digits. BINS of them are in a word, so a count has 8 or 16 bits. */
template <int BINS>
struct histogram {
    static constexpr int bits = 32 / BINS, words = 256 / BINS;
    static constexpr int threads = 32768 / 4 / words; /* of a block, whose histograms have 32 KB */

    uint32_t *word;
    int first; /* of the digits whose word has the output's */
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

/* LATER: some digits of the outputs are known. The outputs have their bits, and call.ranks the rest. */
template <typename T, int BINS, bool LATER>
__global__ void __launch_bounds__(histogram<BINS>::threads)
    count_samples(const __grid_constant__ struct count_call call)
{
    extern __shared__ uint32_t memory[];
    const int across = (int)blockIdx.x / call.columns, plane = across / call.tiles_y;
    const int tile_x = ((int)blockIdx.x - across * call.columns) * histogram<BINS>::threads;
    const int y = (across - plane * call.tiles_y) * call.strip, rows = min(call.strip, call.height - y);
    const int x = min(tile_x + (int)threadIdx.x, call.width - 1);
    const T *window = (const T *)(call.in + plane * call.in_plane + y * call.in_row) + x;
    T *out = (T *)(call.out + plane * call.out_plane + y * call.out_row) + x;
    uint16_t *ranks = call.ranks + ((size_t)plane * call.height + y) * call.width + x;
    if (tile_x + (int)threadIdx.x >= call.width)
        return;
    struct histogram<BINS> histogram;
    histogram.word = memory + threadIdx.x;
    uint32_t prefix = 0;
#pragma unroll 1
    for (int row = 0; row < rows; row++) {
        int rank = call.index;
        bool is_new = row == 0;
        if constexpr (LATER) {
            const uint32_t known = (uint32_t)*out >> call.shift >> 8;
            is_new |= known != prefix;
            prefix = known;
            rank = *ranks;
        }
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
        window = (const T *)((const char *)window + call.in_row);
        out = (T *)((char *)out + call.out_row);
        ranks += call.width;
    }
}

/* ---- Differences ---- */

template <typename T>
__global__ void __launch_bounds__(256)
    subtract_planes(struct launch launch, const unsigned char *low, size_t low_row, size_t low_plane)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * 256 + (int)threadIdx.x, y = tile.y;
    if (x >= launch.width)
        return;
    const T high = in_row<T>(launch, y)[x];
    const T less = ((const T *)(low + blockIdx.z * low_plane + (size_t)y * low_row))[x];
    if constexpr (sizeof(T) == 4)
        out_row<T>(launch, y)[x] = rank_difference(high, less);
    else
        out_row<T>(launch, y)[x] = (T)(high - less);
}

/* OUT = HIGH - LOW. */
bool subtract(const struct plane *high, const struct plane *low, const struct plane *out, struct device *device,
              struct error *error)
{
    const enum sample sample = out->sample;
    return launch_kernel(sample == SAMPLE_U8    ? subtract_planes<uint8_t>
                         : sample == SAMPLE_U16 ? subtract_planes<uint16_t>
                                                : subtract_planes<float>,
                         planes_launch(high, out), out->count, device, {256, 1, dim3(256)}, error,
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
    const size_t ranks = bytes;
    if (method == METHOD_COUNT && in->sample != SAMPLE_U8)
        bytes += (size_t)in->width * (size_t)in->height * (size_t)in->count * sizeof *scratch->ranks;
    void *memory = NULL;
    if (bytes > 0 && !device_scratch(device, bytes, &memory, error))
        return false;
    scratch->between.data = (char *)memory + (size_t)scratch->between.data;
    scratch->copy.data = (char *)memory + (size_t)scratch->copy.data;
    scratch->ranks = (uint16_t *)((char *)memory + ranks);
    return true;
}

/* Count the samples of planes of T for all digits, in words of BINS counts. */
template <typename T, int BINS>
bool count_digits(struct count_call &call, int planes, struct device *device, struct error *error)
{
    for (call.shift = 8 * (int)sizeof(T) - 8; call.shift >= 0; call.shift -= 8) {
        void (*kernel)(struct count_call) = count_samples<T, BINS, false>;
        if constexpr (sizeof(T) > 1)
            if (call.shift < 8 * (int)sizeof(T) - 8)
                kernel = count_samples<T, BINS, true>;
        if (!queue_kernel(kernel, dim3((unsigned)(call.columns * call.tiles_y * planes)),
                          dim3(histogram<BINS>::threads), 32768, device, error, call))
            return false;
    }
    return true;
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
    const int threads = rank->count < 256 ? histogram<4>::threads : histogram<2>::threads;
    call.columns = (in->width + threads - 1) / threads;
    choose_strip(&call, in, 1, rank->count / (2 * rank->width), (double)device_get_info(device)->multiprocessors * 7);
    const int64_t fours = (int64_t)pad.columns / four * pad.rows;
    return queue_kernel(pad_planes<T>, dim3((unsigned)((fours + 255) / 256), 1, (unsigned)in->count), dim3(256), 0,
                        device, error, pad) &&
           (rank->count < 256 ? count_digits<T, 4>(call, in->count, device, error)
                              : count_digits<T, 2>(call, in->count, device, error));
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
        return queue_extremes<T>(plan, index > 0, in, out, &scratch.copy, device, error);
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
