/* SPDX-License-Identifier: MIT
 *
 * pixelate: the work of src/cpu/squares.c on the GPU. A warp sums a square and fills it with the mean; a block does if
 * squares are large, and 4 lanes do if they are small. Squares are numbered row after row, plane after plane.
 *
 * Loads and stores: one of each per sample; 4 or more lanes are side by side in a row of the square. */
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int threads = 256, warp = 32;
constexpr int small = 8;  /* the side of a square that is for a warp, and not for 4 of its threads */
constexpr int large = 64; /* the side of a square that is for a block: 16 samples or more for each of its threads */

struct squares {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int width, height, planes;
    int side, columns, rows; /* a square's side; a plane's squares in a row, and rows of them */
};

/* The sum of levels is below 2^40, and of 8 bits below 2^32. */
template <typename T>
struct arithmetic {
    typedef unsigned long long sum;
};
template <>
struct arithmetic<uint8_t> {
    typedef uint32_t sum;
};
template <>
struct arithmetic<float> {
    typedef double sum;
};

template <typename T>
__device__ __forceinline__ T find_mean(typename arithmetic<T>::sum sum, int count)
{
    if constexpr (sizeof(T) == 4)
        return (T)(sum / count);
    else
        return (T)((2 * (unsigned long long)sum + (unsigned)count) / (2u * (unsigned)count));
}

/* GROUP threads do a square, in rows of WIDE: some lanes of a warp, a warp or the block. */
template <typename T, int GROUP, int WIDE>
__global__ void __launch_bounds__(threads) pixelate(const struct squares squares)
{
    typedef typename arithmetic<T>::sum sum_type;
    __shared__ sum_type sums[threads / warp];
    const int lane_x = (int)threadIdx.x % WIDE, lane_y = (int)threadIdx.x % GROUP / WIDE;
    const int64_t number = (int64_t)blockIdx.x * (threads / GROUP) + threadIdx.x / GROUP;
    const int64_t of_plane = (int64_t)squares.columns * squares.rows;
    const int plane = (int)(number / of_plane), square = (int)(number % of_plane);
    const int left = square % squares.columns * squares.side, top = square / squares.columns * squares.side;
    const int width = min(squares.side, squares.width - left);
    const int height = plane < squares.planes ? min(squares.side, squares.height - top) : 0; /* 0 beyond the last */
    const unsigned char *in = squares.in + plane * squares.in_plane + top * squares.in_row + left * sizeof(T);
    unsigned char *out = squares.out + plane * squares.out_plane + top * squares.out_row + left * sizeof(T);
    sum_type sum = 0;
    for (int y = lane_y; y < height; y += GROUP / WIDE)
        for (int x = lane_x; x < width; x += WIDE)
            sum += ((const T *)(in + y * squares.in_row))[x];
#pragma unroll
    for (int step = min(GROUP, warp) / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    if constexpr (GROUP > warp) {
        if (threadIdx.x % warp == 0)
            sums[threadIdx.x / warp] = sum;
        __syncthreads();
        sum = 0;
        for (int i = 0; i < GROUP / warp; i++)
            sum += sums[i];
    }
    const T mean = find_mean<T>(sum, max(width * height, 1));
    for (int y = lane_y; y < height; y += GROUP / WIDE)
        for (int x = lane_x; x < width; x += WIDE)
            ((T *)(out + y * squares.out_row))[x] = mean;
}

template <typename T>
bool launch_squares(const struct squares &squares, struct device *device, struct error *error)
{
    const int group = squares.side < small ? 4 : squares.side < large ? warp : threads;
    const int64_t count = (int64_t)squares.columns * squares.rows * squares.planes;
    const dim3 grid((unsigned)((count + threads / group - 1) / (threads / group)));
    return queue_kernel(group == 4      ? pixelate<T, 4, 4>
                        : group == warp ? pixelate<T, warp, 16>
                                        : pixelate<T, threads, warp>,
                        grid, threads, 0, device, error, squares);
}
} // namespace

extern "C" bool pixelate_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                const struct plane *out, struct error *error)
{
    struct squares squares = {};
    set_planes(&squares, in, out);
    squares.width = in->width;
    squares.height = in->height;
    squares.planes = in->count;
    squares.side = plan->filter->square;
    squares.columns = (in->width + squares.side - 1) / squares.side;
    squares.rows = (in->height + squares.side - 1) / squares.side;
    return plan->sample == SAMPLE_U8    ? launch_squares<uint8_t>(squares, device, error)
           : plan->sample == SAMPLE_U16 ? launch_squares<uint16_t>(squares, device, error)
                                        : launch_squares<float>(squares, device, error);
}
