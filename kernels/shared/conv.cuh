/* SPDX-License-Identifier: MIT
 *
 * The code that all kernels of variants share: struct launch (the plan and the planes, as the argument of a kernel),
 * samples with their border, sums to outputs, and the launch itself. */
#ifndef GPUCONV_CONV_CUH
#define GPUCONV_CONV_CUH

#include "kernels/device/device.h"
#include "kernels/shared/queue.cuh"
#include "plan/plan.h"

#include <cuda_runtime.h>
#include <string.h>

/* The taps of the largest filter. Each variant's symbol in constant memory can hold as many. */
constexpr int max_taps = FILTER_MAX * FILTER_MAX;
static_assert(max_taps * 4 <= 65536, "constant memory is 64 KB a module, and each variant's file is one");

/* Queue an upload of the plan's taps to the symbol TAPS of max_taps floats, row by row. For planes of uint8_t these are
 * q, so that sums are integers; for planes of float, q / D. (device.cu) */
bool upload_taps(const struct plan *plan, struct device *device, const void *taps, struct error *error);

/* Queue an upload of COUNT words of 4 bytes to a symbol. (device.cu) */
bool upload_words(struct device *device, const void *symbol, const void *words, int count, struct error *error);

/* Queue an upload of BYTES of words to a table in device memory. The device owns the table. It is for taps for which
 * constant memory is too small or too slow. It replaces the last table, in the stream's order. (device.cu) */
bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error);

/* The last uploaded table. (device.cu) */
const void *device_table(const struct device *device);

/* The table among TAPS. (device.cu) */
const void *kept_table(const struct device_taps *taps);

/* BYTES of device memory for a launch, in any state. The device owns them, and the next launch may use them again.
 * (device.cu) */
bool device_scratch(struct device *device, size_t bytes, void **scratch, struct error *error);

/* A texture object for plane INDEX of PLANE. Outside, it reads 0 if BORDER is zero, and the nearest sample otherwise.
 * The device keeps it, and it stays valid until device_close. (device.cu) */
bool device_texture(struct device *device, const struct plane *plane, int index, enum border border,
                    cudaTextureObject_t *texture, struct error *error);

/* The argument of a kernel, passed by value. Coordinates are int, as image sides are. Offsets in bytes are size_t,
 * because planes exceed 2 GiB. */
struct launch {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int width, height;
    int filter_width, filter_height, anchor_x, anchor_y;
    int tiles_x; /* blocks side by side */
    int strip;   /* rows of a thread, if the variant chooses them at launch */
    enum border border;
    struct rounding rounding; /* for planes of uint16_t, the bytes of a struct rounding16: see rounding16_of */
    float offset;
};

/* With one more member, or a union, nvcc 13.0 schedules all kernels differently: sparse takes 1.2 times as long, and
 * tiled-cached 1.6 times. Compare the machine code before you change this struct. */
static_assert(sizeof(struct rounding16) <= sizeof(struct rounding), "both share the member");

static __device__ __forceinline__ struct rounding16 rounding16_of(const struct launch &launch)
{
    struct rounding16 rounding;
    memcpy(&rounding, &launch.rounding, sizeof rounding);
    return rounding;
}

/* Say in the argument of a kernel where planes are. */
template <typename Launch>
static inline void set_planes(Launch *launch, const struct plane *in, const struct plane *out)
{
    launch->in = (const unsigned char *)in->data;
    launch->out = (unsigned char *)out->data;
    launch->in_row = in->row_bytes;
    launch->in_plane = in->plane_bytes;
    launch->out_row = out->row_bytes;
    launch->out_plane = out->plane_bytes;
}

/* The argument of a kernel for planes, without a filter. */
static inline struct launch planes_launch(const struct plane *in, const struct plane *out)
{
    struct launch launch = {};
    set_planes(&launch, in, out);
    launch.width = in->width;
    launch.height = in->height;
    return launch;
}

/* The launch for a plan and its planes. */
static inline struct launch make_launch(const struct plan *plan, const struct plane *in, const struct plane *out)
{
    struct launch launch = planes_launch(in, out);
    launch.filter_width = plan->filter->width;
    launch.filter_height = plan->filter->height;
    launch.anchor_x = plan->filter->anchor_x;
    launch.anchor_y = plan->filter->anchor_y;
    launch.border = plan->border;
    launch.rounding = plan->rounding;
    if (plan->sample == SAMPLE_U16)
        memcpy(&launch.rounding, &plan->rounding16, sizeof plan->rounding16);
    launch.offset = plan->offset;
    return launch;
}

/* The layout of a launch: each block of threads makes a tile of outputs. */
struct layout {
    int tile_width, tile_height;
    dim3 block;
    int strip;     /* rows of a thread, if the variant chooses them at launch */
    int lead;      /* columns before the image that the tiles also cover */
    size_t shared; /* bytes of shared memory of a block */
};

/* Launch KERNEL over LAUNCH's image, PLANES times. The tiles are numbered along grid.x alone, row after row, because
 * grid.y ends at 65535 and an image may be 2^24 rows high; grid.z is the plane. */
template <typename... Arguments>
static inline bool launch_kernel(void (*kernel)(struct launch, Arguments...), struct launch launch, int planes,
                                 struct device *device, const struct layout &layout, struct error *error,
                                 Arguments... arguments)
{
    launch.tiles_x = (launch.width + layout.lead + layout.tile_width - 1) / layout.tile_width;
    launch.strip = layout.strip;
    const int tiles_y = (launch.height + layout.tile_height - 1) / layout.tile_height;
    const dim3 grid((unsigned)launch.tiles_x * (unsigned)tiles_y, 1, (unsigned)planes);
    return queue_kernel(kernel, grid, layout.block, layout.shared, device, error, launch, arguments...);
}

/* Launch a variant's KERNEL over all planes. */
static inline bool launch_tiles(void (*kernel)(struct launch), const struct plan *plan, struct device *device,
                                const struct plane *in, const struct plane *out, const struct layout &layout,
                                struct error *error)
{
    return launch_kernel(kernel, make_launch(plan, in, out), in->count, device, layout, error);
}

/* Column and row of the block's tile. */
static __device__ __forceinline__ int2 block_tile(const struct launch &launch)
{
    return make_int2((int)blockIdx.x % launch.tiles_x, (int)blockIdx.x / launch.tiles_x);
}

/* Row y of the block's plane. */
template <typename T>
static __device__ __forceinline__ const T *in_row(const struct launch &launch, int y)
{
    return (const T *)(launch.in + blockIdx.z * launch.in_plane + (size_t)y * launch.in_row);
}

template <typename T>
static __device__ __forceinline__ T *out_row(const struct launch &launch, int y)
{
    return (T *)(launch.out + blockIdx.z * launch.out_plane + (size_t)y * launch.out_row);
}

/* in(y, x), border included. */
template <typename T>
static __device__ float load(const struct launch &launch, int y, int x)
{
    const int from_y = border_index(y, launch.height, launch.border);
    const int from_x = border_index(x, launch.width, launch.border);
    return from_y < 0 || from_x < 0 ? 0.0f : (float)in_row<T>(launch, from_y)[from_x];
}

/* Is the filter's window at (y, x) wholly inside the image? */
static __device__ __forceinline__ bool window_inside(const struct launch &launch, int y, int x)
{
    return y >= launch.anchor_y && x >= launch.anchor_x &&
           y - launch.anchor_y + launch.filter_height <= launch.height &&
           x - launch.anchor_x + launch.filter_width <= launch.width;
}

/* Convert an integer sum to a sample of uint8_t. */
static __device__ __forceinline__ uint8_t finish_sum(const struct launch &launch, int sum)
{
    return rounding_apply(&launch.rounding, sum);
}

static __device__ __forceinline__ void finish(const struct launch &launch, int sum, uint8_t *to)
{
    *to = finish_sum(launch, sum);
}

/* Convert a float sum to a sample. For uint8_t the sum is an integer. A float that was rounded up to 2^31 converts to
 * one of the ends of int. The lower end has no absolute value, so it is excluded. */
static __device__ __forceinline__ void finish(const struct launch &launch, float sum, uint8_t *to)
{
    *to = finish_sum(launch, max(__float2int_rn(sum), -INT32_MAX));
}

static __device__ __forceinline__ void finish(const struct launch &launch, float sum, float *to)
{
    *to = (launch.rounding.absolute ? fabsf(sum) : sum) + launch.offset;
}

/* A bool that the body of a lambda knows at compile time. */
template <bool VALUE>
struct known {
    static constexpr bool value = VALUE;
};

/* Choose an instance of a kernel template by the planes' sample type and the filter's size. Square filters of 3, 5, 7
 * and 9 taps have a size that is known at compile time, so that their loops unroll. 0 is for all other sizes. */
template <typename Kernel>
static Kernel *kernel_of_size(const struct filter *filter, Kernel *any, Kernel *three, Kernel *five, Kernel *seven,
                              Kernel *nine)
{
    const int size = filter->width == filter->height ? filter->width : 0;
    return size == 3 ? three : size == 5 ? five : size == 7 ? seven : size == 9 ? nine : any;
}

#define KERNEL_OF_SIZE(kernel, type, filter)                                                                           \
    kernel_of_size(filter, kernel<type, 0>, kernel<type, 3>, kernel<type, 5>, kernel<type, 7>, kernel<type, 9>)
#define KERNEL_FOR(plan, kernel)                                                                                       \
    ((plan)->sample == SAMPLE_U8 ? KERNEL_OF_SIZE(kernel, uint8_t, (plan)->filter)                                     \
                                 : KERNEL_OF_SIZE(kernel, float, (plan)->filter))

/* Define the function of a textbook variant, NAME, that uploads its taps, for the table of variants. */
#define TEXTBOOK_PREPARE(name)                                                                                         \
    extern "C" bool name##_prepare(struct plan *plan, struct device *device, struct error *error)                      \
    {                                                                                                                  \
        return upload_taps(plan, device, taps, error);                                                                 \
    }

/* Define both functions of a textbook variant. KERNEL is the instance of its template for PLAN, and the other argument
 * its struct layout. */
#define TEXTBOOK_VARIANT(name, kernel, ...)                                                                            \
    TEXTBOOK_PREPARE(name)                                                                                             \
                                                                                                                       \
    extern "C" bool name##_launch(const struct plan *plan, struct device *device, const struct plane *in,              \
                                  const struct plane *out, struct error *error)                                        \
    {                                                                                                                  \
        return launch_tiles(kernel, plan, device, in, out, __VA_ARGS__, error);                                        \
    }

#endif
