/* SPDX-License-Identifier: MIT
 *
 * Filters that move samples: rows are copied as they lie, and squares where columns become rows. */
#include "cpu/cpu.h"

#include "base/parallel.h"

#include <string.h>

enum { BLOCK_ROWS = 64 }; /* rows of a block, which a thread takes at once */

/* What all blocks of a launch share. */
struct moving {
    const struct plan *plan;
    const struct plane *in, *out;
    int first_row, last_row; /* the rows of the planes that are written, from the first to the one before the last */
    int blocks;              /* the number of blocks of a plane */
    uint32_t fill[4];
};

static int clamp_int(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Set the samples of a row from FIRST to the one before LAST. */
static void fill_samples(enum sample sample, void *row, int first, int last, uint32_t fill)
{
    if (sample == SAMPLE_U8)
        memset((uint8_t *)row + first, (int)fill, (size_t)(last - first));
    for (int x = first; sample == SAMPLE_U16 && x < last; x++)
        ((uint16_t *)row)[x] = (uint16_t)fill;
    for (int x = first; sample == SAMPLE_F32 && x < last; x++)
        memcpy((float *)row + x, &fill, sizeof fill);
}

static void move_block(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct moving *moving = context;
    const struct plan *plan = moving->plan;
    if (cpu_is_stopped(plan->stop))
        return;
    const struct origin *origin = &plan->origin;
    const struct plane *in = moving->in, *out = moving->out;
    const int channel = (int)(index / moving->blocks), width = out->width, shift = origin->y + plan->out_row;
    const int y0 = moving->first_row + (int)(index % moving->blocks) * BLOCK_ROWS;
    const int y1 = clamp_int(y0 + BLOCK_ROWS, y0, moving->last_row);

    /* The part that has samples of the picture. It may be empty. */
    const int left = clamp_int(-origin->x, 0, width), right = clamp_int(origin->turned_width - origin->x, left, width);
    const int top = clamp_int(-shift, y0, y1), bottom = clamp_int(origin->turned_height - shift, top, y1);
    for (int y = y0; y < y1; y++) {
        const bool is_inside = y >= top && y < bottom;
        void *row = plane_row(out, channel, y);
        fill_samples(out->sample, row, 0, is_inside ? left : width, moving->fill[channel % 4]);
        fill_samples(out->sample, row, is_inside ? right : width, width, moving->fill[channel % 4]);
    }
    const ptrdiff_t size = (ptrdiff_t)sample_bytes(in->sample), row_bytes = (ptrdiff_t)in->row_bytes;
    const struct pixel_walk walk =
        orient_walk(plan->filter->move.orientation, plan->rows.from, plan->columns.from, size, row_bytes);
    const ptrdiff_t first = walk.first + (left + origin->x) * walk.column + (top + shift) * walk.row;
    orient_copy((const uint8_t *)plane_row(in, channel, 0) + (first - plan->in_row * row_bytes), walk,
                (uint8_t *)plane_row(out, channel, top) + left * size, out->row_bytes, right - left, bottom - top,
                (size_t)size);
}

bool cpu_move_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                     struct error *error)
{
    (void)device, (void)error;
    struct moving moving = {
        .plan = plan,
        .in = in,
        .out = out,
        .first_row = plan->last_row > 0 ? plan->first_row : 0,
        .last_row = plan->last_row > 0 ? plan->last_row : out->height,
    };
    moving.blocks = (moving.last_row - moving.first_row + BLOCK_ROWS - 1) / BLOCK_ROWS;
    plan_fill(plan, out->count, moving.fill);
    const int64_t blocks = (int64_t)moving.blocks * out->count;
    const int max = thread_pool_threads(plan->pool);
    parallel_for(plan->pool, blocks < max ? (int)blocks : max, blocks, move_block, &moving);
    return true;
}
