/* SPDX-License-Identifier: MIT
 *
 * The code that the steps of the lesson from coarsened to register-tiled share (docs/kernels.md). They are built with
 * -Dexercise=true. Each is for square filters of 3, 5, 7 and 9 taps with the anchor in the centre. constant applies all
 * others. */
#ifndef GPUCONV_LESSON_CUH
#define GPUCONV_LESSON_CUH

#include "kernels/shared/strip.cuh"

extern "C" bool constant_prepare(struct plan *plan, struct device *device, struct error *error);
extern "C" bool constant_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                const struct plane *out, struct error *error);

/* Does the filter have a kernel of the step's own? */
static inline bool is_small_square(const struct filter *filter)
{
    return filter_is_centred_square(filter) && filter->width >= 3 && filter->width <= 9;
}

/* The window of a lane: COUNT samples of row y from column x on, which is a multiple of 4. */
template <typename T, int COUNT>
static __device__ __forceinline__ void load_window(const struct launch &launch, int y, int x, float (&v)[COUNT])
{
    const int from_y = border_index(y, launch.height, launch.border);
#pragma unroll
    for (int k = 0; k < COUNT; k += 4) {
        const quad<float> four = load_quad<T, float>(launch, from_y, x + k);
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[k + c] = four.v[c];
    }
}

/* Add filter row I over a window, V, to the sums of the outputs side by side. */
template <int SIZE>
static __device__ __forceinline__ void add_taps(float (&sum)[columns], const float *taps, int i, const float *v)
{
#pragma unroll
    for (int c = 0; c < columns; c++)
#pragma unroll
        for (int j = 0; j < SIZE; j++)
            sum[c] += taps[i * SIZE + j] * v[lead_of(SIZE / 2) + j + c];
}

/* The instance of a kernel template for the planes' sample type and a small square filter. */
#define SQUARE_KERNEL_OF(kernel, type, filter)                                                                         \
    kernel_of_size(filter, kernel<type, 9>, kernel<type, 3>, kernel<type, 5>, kernel<type, 7>, kernel<type, 9>)
#define SQUARE_KERNEL_FOR(plan, kernel)                                                                                \
    ((plan)->sample == SAMPLE_U8 ? SQUARE_KERNEL_OF(kernel, uint8_t, (plan)->filter)                                   \
                                 : SQUARE_KERNEL_OF(kernel, float, (plan)->filter))

/* Define the functions of a step, NAME, for the table of variants, as TEXTBOOK_VARIANT does. */
#define LESSON_VARIANT(name, ...)                                                                                      \
    extern "C" bool name##_prepare(struct plan *plan, struct device *device, struct error *error)                      \
    {                                                                                                                  \
        return is_small_square(plan->filter) ? upload_taps(plan, device, taps, error)                                  \
                                             : constant_prepare(plan, device, error);                                  \
    }                                                                                                                  \
                                                                                                                       \
    extern "C" bool name##_launch(const struct plan *plan, struct device *device, const struct plane *in,              \
                                  const struct plane *out, struct error *error)                                        \
    {                                                                                                                  \
        if (!is_small_square(plan->filter))                                                                            \
            return constant_launch(plan, device, in, out, error);                                                      \
        return launch_tiles(SQUARE_KERNEL_FOR(plan, name), plan, device, in, out, __VA_ARGS__, error);                 \
    }

#endif
