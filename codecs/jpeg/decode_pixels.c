/* SPDX-License-Identifier: MIT
 *
 * Planes to pixels: upsampling and conversion of colours, by tiles whose rows stay in the first cache. */
#include "jpeg/decode_loops.h"
#include "jpeg/samples.h"

#ifdef GPUCONV_PORTABLE
#include "jpeg/colour_plain.h"
#else
#include "jpeg/colour_vectors.h"
#endif

enum { TILE = 1024 }; /* pixels; a multiple of 4 and of GROUP */

/* A picture, and where its planes are. */
struct source {
    const struct jpeg_layout *layout;
    const struct jpeg_planes *planes;
    int64_t first, last; /* the rows of MCUs in planes->band */
};

/* Row Y of the plane of component PART. */
static const uint8_t *component_row(const struct source *source, int component, int64_t y)
{
    const struct jpeg_layout *layout = source->layout;
    const struct jpeg_component *of = &layout->components[component];
    const int64_t height = (int64_t)of->side * of->vertical, number = y / height;
    const size_t row_bytes = jpeg_planes_bytes(layout);
    const uint8_t *at = number < source->first  ? source->planes->above - row_bytes
                        : number > source->last ? source->planes->below
                                                : source->planes->band + (size_t)(number - source->first) * row_bytes;
    for (int i = 0; i < component; i++)
        at += jpeg_plane_bytes(&layout->components[i]);
    return at + (size_t)(y % height) * jpeg_plane_stride(of);
}

/* The rows of a component of chroma that make row Y of pixels: the nearest, and the next but one. */
struct chroma {
    const uint8_t *near, *far; /* these two rows; without interpolation, both are the nearest */
    unsigned is_odd;
    int width, across, down; /* as of the component */
    bool is_interpolated;    /* by columns: libjpeg-turbo does so only where there are three of them */
};

static struct chroma find_chroma(const struct source *source, int component, int64_t y)
{
    const struct jpeg_layout *layout = source->layout;
    const struct jpeg_component *of = &layout->components[component];
    const int64_t near = y / of->down;
    const bool is_smooth = layout->side > 1; /* it interpolates nothing in a picture of an eighth */
    struct chroma chroma = {
        .near = component_row(source, component, near),
        .width = of->width,
        .across = of->across,
        .down = of->down,
        .is_odd = y % of->down > 0,
        .is_interpolated = is_smooth && of->across == 2 && of->width > 2,
    };
    const int64_t far = near + (chroma.is_odd > 0 ? 1 : -1);
    chroma.far =
        is_smooth && of->down > 1 && far >= 0 && far < of->height ? component_row(source, component, far) : chroma.near;
    return chroma;
}

/* ---- Upsampling ---- */

/* COUNT samples of a row, from column FIRST on, which are 1, 2 or 4 pixels wide each. */
static void repeat_columns(const struct chroma *chroma, int first, int count, uint8_t *to)
{
    const int shift = chroma->across / 2;
    for (int i = 0; i < count; i++)
        to[i] = chroma->near[(first + i) >> shift];
}

static void upsample_rows(const struct chroma *chroma, int first, int count, uint8_t *to)
{
    const uint8_t *near = chroma->near + first, *far = chroma->far + first;
    for (int i = 0; i < count; i++)
        to[i] = (uint8_t)jpeg_upsample(near[i], far[i], chroma->is_odd);
}

/* Upsample chroma to pixels twice as dense in columns, and also in rows if IS_TWICE is set. */
static void upsample_columns(const struct chroma *chroma, bool is_twice, int first, int count, uint8_t *to)
{
    enum { MAX = TILE / 2 };
    uint16_t sums[MAX + 2] = {0}; /* with one more on each side */
    const int begin = first / 2, columns = (count + 1) / 2, left = begin > 0 ? begin - 1 : 0;
    const int right = begin + columns < chroma->width ? begin + columns : chroma->width - 1;
    const uint8_t *near = chroma->near + left, *far = chroma->far + left;
    uint16_t *sum = sums + (left - begin + 1);
    for (int i = 0; i <= right - left; i++)
        sum[i] = (uint16_t)(is_twice ? 3 * near[i] + far[i] : near[i]);
    sums[0] = sums[left < begin ? 0 : 1];
    sums[columns + 1] = sums[columns + (right < begin + columns ? 0 : 1)];
    sum = sums + 1;
    if (is_twice)
        for (int i = 0; i < columns; i++) {
            to[2 * i] = (uint8_t)jpeg_upsample_sums(sum[i], sum[i - 1], 0);
            to[2 * i + 1] = (uint8_t)jpeg_upsample_sums(sum[i], sum[i + 1], 1);
        }
    else
        for (int i = 0; i < columns; i++) {
            to[2 * i] = (uint8_t)jpeg_upsample(sum[i], sum[i - 1], 0);
            to[2 * i + 1] = (uint8_t)jpeg_upsample(sum[i], sum[i + 1], 1);
        }
}

/* COUNT samples as dense as pixels, from column FIRST on. Samples that need no work stay where they are. */
static const uint8_t *upsample_row(const struct chroma *chroma, int first, int count, uint8_t *to)
{
    if (chroma->across == 1 && chroma->down == 1)
        return chroma->near + first;
    if (chroma->across == 1)
        upsample_rows(chroma, first, count, to);
    else if (chroma->is_interpolated)
        upsample_columns(chroma, chroma->down == 2, first, count, to);
    else
        repeat_columns(chroma, first, count, to);
    return to;
}

/* ---- Rows ---- */

static void convert_row_to_rgb(const struct source *source, int64_t y, uint8_t *samples)
{
    const struct jpeg_layout *layout = source->layout;
    const uint8_t *luma = component_row(source, 0, y);
    const struct chroma blue = find_chroma(source, 1, y), red = find_chroma(source, 2, y);
    uint8_t blues[TILE], reds[TILE];
    for (int x = 0; x < layout->width; x += TILE) {
        const int count = layout->width - x < TILE ? layout->width - x : TILE;
        const uint8_t *const blue_at = upsample_row(&blue, x, count, blues);
        const uint8_t *const red_at = upsample_row(&red, x, count, reds);
        convert_pixels(luma + x, blue_at, red_at, count, samples + 3 * (size_t)x);
    }
}

void IN_SET(jpeg_convert)(const struct jpeg_layout *layout, int first, int rows, const struct jpeg_planes *planes,
                          uint8_t *samples)
{
    const int mcu_height = jpeg_mcu_height(layout);
    const struct source source = {layout, planes, first / mcu_height, (first + rows - 1) / mcu_height};
    const size_t row_bytes = (size_t)layout->width * (size_t)layout->component_count;
    for (int64_t y = first; y < (int64_t)first + rows; y++, samples += row_bytes) {
        if (layout->component_count == 1)
            memcpy(samples, component_row(&source, 0, y), row_bytes);
        else
            convert_row_to_rgb(&source, y, samples);
    }
}

const struct jpeg_decode_loops IN_SET(jpeg_decode) = {
    .walk = IN_SET(jpeg_walk),
    .decode = IN_SET(jpeg_decode_row),
    .convert = IN_SET(jpeg_convert),
};
