/* SPDX-License-Identifier: MIT
 *
 * Image.resize of Pillow: resample.c has its passes over bytes. This file has what no filter has: a part of a picture,
 * which may be reduced before, and sums of doubles for samples of 16 bits and floats. The compiler must not fuse these
 * products and sums. */
#include "cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reduce ---- */

/* Sum groups of SIDE x SIDE samples as floats, and then the groups as doubles. Bytes are exact in both. */
static double sum_block(const char *at, size_t row_bytes, size_t size, int side, int width, int height)
{
    double sum = 0;
    for (int y = 0; y < height; y += side)
        for (int x = 0; x < width; x += side) {
            float group = 0;
            for (int i = y; i < y + side && i < height; i++)
                for (int k = x; k < x + side && k < width; k++) {
                    const char *sample = at + (size_t)i * row_bytes + (size_t)k * size;
                    group += size == 1 ? *(const uint8_t *)sample : *(const float *)(const void *)sample;
                }
            sum += group;
        }
    return sum;
}

/* Let each sample of OUT be the mean of a block of IN, of FACTORS[0] x FACTORS[1] samples from (LOW[0], LOW[1]) on. The
 * last ones, before HIGH, may have fewer. */
static void reduce(const struct plane *in, const int low[2], const int high[2], const int factors[2],
                   const struct plane *out)
{
    const size_t size = sample_bytes(in->sample);
    for (int i = 0; i < out->count * out->height; i++)
        for (int x = 0; x < out->width; x++) {
            const int channel = i / out->height, y = i % out->height;
            const int left = low[0] + x * factors[0], top = low[1] + y * factors[1];
            const int width = high[0] - left < factors[0] ? high[0] - left : factors[0];
            const int height = high[1] - top < factors[1] ? high[1] - top : factors[1], count = width * height;
            const char *at = (const char *)plane_row(in, channel, top) + (size_t)left * size;
            const int side = count == factors[0] * factors[1] ? 2 : 1;
            const double sum = sum_block(at, in->row_bytes, size, side, width, height);
            void *to = (char *)plane_row(out, channel, y) + (size_t)x * size;
            if (size == 1)
                *(uint8_t *)to = (uint8_t)(((uint32_t)sum + (uint32_t)count / 2) * ((1 << 24) / (uint32_t)count) >> 24);
            else
                *(float *)to = (float)(sum * (1.0 / count));
        }
}

/* Reduce IN as far as REDUCING_GAP asks for it, for a result of SIDES, and let BOX be one of the reduced picture. */
static bool reduce_planes(enum resample_kernel kernel, double box[4], double reducing_gap, const int sides[2],
                          struct plane *in, struct error *error)
{
    const int from[2] = {in->width, in->height};
    int factors[2], low[2], high[2];
    struct resample_axis axis;
    struct plane out;
    for (int i = 0; i < 2; i++) {
        resample_shape(&axis, kernel, from[i], sides[i], 8);
        const double scale = (box[i + 2] - box[i]) / sides[i], reach = (axis.reach / 2.0 - 0.5) * scale;
        factors[i] = (int)fmax(scale / reducing_gap, 1);
        low[i] = (int)fmax(box[i] - reach, 0);
        high[i] = (int)fmin(ceil(box[i + 2] + reach), from[i]);
    }
    if (factors[0] == 1 && factors[1] == 1)
        return true;
    if (in->sample == SAMPLE_U16 || (int64_t)factors[0] * factors[1] >= 1 << 24)
        return error_set(
            error, ERROR_USAGE,
            "Pillow does not reduce %d x %d samples of %zu bits to one; give a larger reducing gap, or none",
            factors[0], factors[1], 8 * sample_bytes(in->sample));
    if (!plane_allocate(&out, in->sample, (high[0] - low[0] - 1) / factors[0] + 1,
                        (high[1] - low[1] - 1) / factors[1] + 1, in->count, error))
        return false;
    reduce(in, low, high, factors, &out);
    plane_free(in);
    *in = out;
    for (int i = 0; i < 4; i++)
        box[i] = (box[i] - low[i % 2]) / factors[i % 2];
    return true;
}

/* ---- Doubles ---- */

/* Make rows FIRST to LAST - 1 of OUT by a pass over rows, or over columns, of IN. */
static void sum_doubles(const struct resample_axis *axis, bool is_over_rows, const struct plane *in,
                        const struct plane *out, int first, int last)
{
    const size_t size = sample_bytes(in->sample), step = is_over_rows ? size : in->row_bytes;
    for (int y = first; y < last; y++)
        for (int x = 0; x < out->width; x++) {
            const int i = is_over_rows ? x : y, input = resample_first(axis, i);
            const int count = resample_last(axis, i) - input + 1;
            const double *weights = axis->weights + (size_t)(i % axis->period) * (size_t)axis->count;
            const char *at =
                (const char *)plane_row(in, 0, is_over_rows ? y : input) + (size_t)(is_over_rows ? input : x) * size;
            char *to = (char *)plane_row(out, 0, y) + (size_t)x * size;
            double sum = 0;
            for (int k = 0; k < count; k++) {
                const void *sample = at + (size_t)k * step;
                sum += weights[k] * (size == 2 ? *(const uint16_t *)sample : (double)*(const float *)sample);
            }
            if (axis->reach == 0 || pillow_keeps(axis))
                memcpy(to, at, size);
            else if (size == 2)
                *(uint16_t *)(void *)to = (uint16_t)fmin(fmax(sum + 0.5, 0), 65535);
            else
                *(float *)(void *)to = (float)sum;
        }
}

/* Resize IN to OUT by both axes of PLAN, which have weights. */
static bool resize_doubles(const struct plan *plan, const struct plane *in, const struct plane *out,
                           struct error *error)
{
    const bool rows_first = plan->rows_first;
    struct plane middle;
    int from = 0, to = out->height;
    if (!plane_allocate(&middle, in->sample, rows_first ? out->width : in->width, rows_first ? in->height : out->height,
                        1, error))
        return false;
    if (rows_first)
        resample_span(&plan->columns, 0, out->height, &from, &to);
    sum_doubles(rows_first ? &plan->rows : &plan->columns, rows_first, in, &middle, from, to);
    sum_doubles(rows_first ? &plan->columns : &plan->rows, !rows_first, &middle, out, 0, out->height);
    plane_free(&middle);
    return true;
}

/* ---- Resize ---- */

/* Resize planes IN to OUT. The box of Pillow is of floats, and a box of whole pixels that keeps its size is copied. */
static bool resize_planes(enum resample_kernel kernel, const double box[4], const struct plane *in,
                          const struct plane *out, struct error *error)
{
    struct plan plan = {.sample = in->sample};
    struct resample_axis *axes[2] = {&plan.rows, &plan.columns};
    const int from[2] = {in->width, in->height}, to[2] = {out->width, out->height};
    bool is_crop = true, done = true;
    plan.rows_first = resample_rows_first(kernel, from[0], from[1], to[0], to[1]);
    for (int i = 0; i < 2; i++) {
        const float start = (float)box[i], end = (float)box[i + 2];
        is_crop = is_crop && start == floorf(start) && end - start == (float)to[i];
    }
    for (int i = 0; done && i < 2; i++) {
        resample_shape(axes[i], is_crop ? RESAMPLE_PILLOW_NEAREST : kernel, from[i], to[i], 8);
        pillow_cut(axes[i], (float)box[i], (float)box[i + 2]);
        done = resample_check_axis(resample_name(kernel), axes[i], error) &&
               (pillow_make(axes[i], 8 * (int)sample_bytes(in->sample)) || error_no_memory(error, "the taps"));
    }
    if (done && in->sample == SAMPLE_U8)
        done = cpu_resample_prepare(&plan, NULL, error) && cpu_resample_launch(&plan, NULL, in, out, error);
    else if (done)
        done = resize_doubles(&plan, in, out, error);
    free(plan.rows.weights);
    free(plan.columns.weights);
    plan_free(&plan);
    return done;
}

/* Let PLANES be the samples of IMAGE, together and where they are, or reserve others for them. */
static bool open_planes(const struct image *image, bool in_place, struct plane *planes, struct error *error)
{
    const enum sample sample = image->bits == 8 ? SAMPLE_U8 : image->bits == 16 ? SAMPLE_U16 : SAMPLE_F32;
    *planes = (struct plane){.sample = sample,
                             .width = image->width,
                             .height = image->height,
                             .count = image->channels,
                             .row_bytes = image_row_stride(image),
                             .plane_bytes = sample_bytes(sample),
                             .data = image->samples,
                             .is_together = true};
    return in_place || plane_allocate(planes, sample, image->width, image->height, image->channels, error);
}

bool cpu_pillow_resize(enum resample_kernel kernel, double box[4], double reducing_gap, const struct image *in,
                       struct image *out, struct error *error)
{
    const int sides[2] = {out->width, out->height};
    const bool keeps = in->width == out->width && in->height == out->height && box[0] == 0 && box[1] == 0 &&
                       box[2] == in->width && box[3] == in->height;
    const bool sums = !keeps && pillow_formula(kernel) != RESAMPLE_PILLOW_NEAREST;
    const bool multiplies = image_has_alpha(in) && sums;
    const bool reduces = reducing_gap > 0 && sums && !(multiplies && kernel >= RESAMPLE_PILLOW12_NEAREST);
    const bool in_place = !multiplies && !reduces && image_has_packed_rows(in) && image_has_packed_rows(out);
    const enum alpha alpha = multiplies ? ALPHA_PILLOW : ALPHA_FILTER;
    struct plane from = {0}, to = {0};
    bool done = open_planes(in, in_place, &from, error) && open_planes(out, in_place, &to, error);
    if (done && !in_place)
        image_split(in, alpha, NULL, &from);
    done = done && (!reduces || reduce_planes(kernel, box, reducing_gap, sides, &from, error)) &&
           resize_planes(kernel, box, &from, &to, error);
    if (in_place)
        return done;
    if (done)
        image_merge(&to, alpha, NULL, out);
    plane_free(&from);
    plane_free(&to);
    return done;
}
