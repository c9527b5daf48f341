/* SPDX-License-Identifier: MIT
 *
 * pixelate: each square of a plane becomes its mean. */
#include "cpu/cpu.h"

#include "base/parallel.h"

/* What all squares of a launch share. */
struct squaring {
    const struct plan *plan;
    const struct plane *in, *out;
    int first_square;        /* number of the first row of squares, in the picture */
    int rows;                /* rows of squares in a plane */
    int first_row, last_row; /* the rows of the planes that are written, from the first to the one before the last */
};

/* The sum of COUNT samples. */
static double sum_row(enum sample sample, const void *row, int count)
{
    const uint8_t *levels = row;
    const uint16_t *levels16 = row;
    const float *floats = row;
    uint64_t sum = 0;
    double float_sum = 0;
    for (int x = 0; sample == SAMPLE_U8 && x < count; x++)
        sum += levels[x];
    for (int x = 0; sample == SAMPLE_U16 && x < count; x++)
        sum += levels16[x];
    for (int x = 0; sample == SAMPLE_F32 && x < count; x++)
        float_sum += (double)floats[x];
    return sample == SAMPLE_F32 ? float_sum : (double)sum;
}

static void fill_row(enum sample sample, void *row, int count, double mean)
{
    for (int x = 0; sample == SAMPLE_U8 && x < count; x++)
        ((uint8_t *)row)[x] = (uint8_t)mean;
    for (int x = 0; sample == SAMPLE_U16 && x < count; x++)
        ((uint16_t *)row)[x] = (uint16_t)mean;
    for (int x = 0; sample == SAMPLE_F32 && x < count; x++)
        ((float *)row)[x] = (float)mean;
}

/* A row of squares. All sums of levels are below 2^40, which doubles hold. */
static void make_squares(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct squaring *squaring = context;
    const struct plane *in = squaring->in, *out = squaring->out;
    const int side = squaring->plan->filter->square, channel = (int)(index / squaring->rows);
    const int top = (squaring->first_square + (int)(index % squaring->rows)) * side - squaring->plan->in_row;
    const int bottom = top + side < in->height ? top + side : in->height;
    if (cpu_is_stopped(squaring->plan->stop))
        return;
    for (int left = 0; left < in->width; left += side) {
        const int width = in->width - left < side ? in->width - left : side;
        const size_t offset = (size_t)left * sample_bytes(in->sample);
        double mean = 0;
        for (int y = top; y < bottom; y++)
            mean += sum_row(in->sample, (const char *)plane_row(in, channel, y) + offset, width);
        const int64_t count = (int64_t)width * (bottom - top);
        if (in->sample == SAMPLE_F32)
            mean /= (double)count;
        else
            mean = (double)((2 * (int64_t)mean + count) / (2 * count));
        for (int y = top; y < bottom; y++)
            if (y >= squaring->first_row && y < squaring->last_row)
                fill_row(in->sample, (char *)plane_row(out, channel, y) + offset, width, mean);
    }
}

bool cpu_squares_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                        struct error *error)
{
    (void)device, (void)error;
    const int side = plan->filter->square;
    struct squaring squaring = {
        .plan = plan,
        .in = in,
        .out = out,
        .first_row = plan->last_row > 0 ? plan->first_row : 0,
        .last_row = plan->last_row > 0 ? plan->last_row : out->height,
    };
    squaring.first_square = (plan->in_row + squaring.first_row) / side;
    squaring.rows = (plan->in_row + squaring.last_row + side - 1) / side - squaring.first_square;
    const int64_t count = (int64_t)squaring.rows * in->count;
    const int max = thread_pool_threads(plan->pool);
    parallel_for(plan->pool, count < max ? (int)count : max, count, make_squares, &squaring);
    return true;
}
