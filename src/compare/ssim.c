/* SPDX-License-Identifier: MIT
 *
 * The structural similarity of two images: Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality
 * assessment: from error visibility to structural similarity", IEEE Transactions on Image Processing 13 (4), 2004. As
 * there, the window is a Gaussian of 11 x 11 pixels with sigma 1.5, K1 is 0.01 and K2 is 0.03. The result is the mean
 * of all windows that lie inside the image; the lowest of them finds a small difference in a large image. It is
 * computed by rows of windows: weighted sums down the columns first, then along the row. */
#include "compare/compare.h"

#include "base/clones.h"
#include "base/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Rows of windows that one thread takes at a time. */
enum { BAND_ROWS = 32, SUMS = 5 };

struct window_row {
    double sum, lowest; /* the sum and the lowest SSIM of the row's windows */
    int x;              /* the column of the first window whose SSIM is `lowest` */
};

struct ssim_work {
    const struct image *images[2];
    double weights[SSIM_WINDOW];
    double c1, c2;
    int columns, rows; /* the columns and rows of windows */
    struct window_row *results;
    atomic_bool failed;
};

/* The luma of row Y of an image. */
static void read_luma(const struct image *image, int y, double *luma)
{
    const size_t channels = (size_t)image->channels, width = (size_t)image->width;
    const uint8_t *row = image_row(image, y);
    const uint16_t *words = (const uint16_t *)(const void *)row;
    const bool is_16_bit = image_sample_bytes(image) == 2;
    for (size_t x = 0; x < width; x++) {
        int s[3];
        for (size_t c = 0; c < 3; c++) {
            const size_t i = x * channels + (channels >= 3 ? c : 0);
            s[c] = is_16_bit ? words[i] : row[i];
        }
        luma[x] = channels >= 3 ? (299.0 * s[0] + 587.0 * s[1] + 114.0 * s[2]) / 1000 : s[0];
    }
}

/* Sum WIDTH columns of SSIM_WINDOW rows A and B: their weighted sums, and those of a a, b b and a b. */
CLONES(sum_window_columns,
       (const double *const *a, const double *const *b, const double *weights, size_t width, double *const *sums),
       (a, b, weights, width, sums))
{
    double *sum_a = sums[0], *sum_b = sums[1], *sum_aa = sums[2], *sum_bb = sums[3], *sum_ab = sums[4];
    for (int s = 0; s < SUMS; s++)
        memset(sums[s], 0, width * sizeof *sums[s]);
    for (int i = 0; i < SSIM_WINDOW; i++) {
        const double w = weights[i], *p = a[i], *q = b[i];
        for (size_t x = 0; x < width; x++) {
            const double wp = w * p[x], wq = w * q[x];
            sum_a[x] += wp;
            sum_b[x] += wq;
            sum_aa[x] += wp * p[x];
            sum_bb[x] += wq * q[x];
            sum_ab[x] += wp * q[x];
        }
    }
}

/* The weighted sums along the row: OUT has COLUMNS of them. */
CLONES(sum_window_row, (const double *in, const double *weights, size_t columns, double *out),
       (in, weights, columns, out))
{
    memset(out, 0, columns * sizeof *out);
    for (int i = 0; i < SSIM_WINDOW; i++)
        for (size_t x = 0; x < columns; x++)
            out[x] += weights[i] * in[x + (size_t)i];
}

/* The result of a row of windows. MEANS are the weighted sums of each window. */
static struct window_row rate_windows(const struct ssim_work *work, double *const *means)
{
    struct window_row row = {.lowest = INFINITY};
    for (size_t x = 0; x < (size_t)work->columns; x++) {
        const double a = means[0][x], b = means[1][x];
        const double aa = means[2][x] - a * a, bb = means[3][x] - b * b, ab = means[4][x] - a * b;
        const double one =
            (2 * a * b + work->c1) * (2 * ab + work->c2) / ((a * a + b * b + work->c1) * (aa + bb + work->c2));
        row.sum += one;
        if (one < row.lowest) {
            row.lowest = one;
            row.x = (int)x;
        }
    }
    return row;
}

/* Are the rows of pixels under row Y of windows equal in both images? */
static bool rows_are_equal(const struct ssim_work *work, int y)
{
    const size_t bytes = (size_t)work->images[0]->width * image_pixel_bytes(work->images[0]) * SSIM_WINDOW;
    return memcmp(image_row(work->images[0], y), image_row(work->images[1], y), bytes) == 0;
}

/* parallel_for's function: compute the results of band INDEX. */
static void rate_band(void *context, int64_t index, int thread)
{
    struct ssim_work *work = context;
    const size_t width = (size_t)work->images[0]->width;
    const int first = (int)index * BAND_ROWS, end = work->rows - first < BAND_ROWS ? work->rows : first + BAND_ROWS;
    int known = first; /* the next row of pixels whose luma is not computed yet */
    double *memory = calloc((2 * SSIM_WINDOW + 2 * SUMS) * width, sizeof *memory);
    double *luma[2][SSIM_WINDOW], *sums[SUMS], *means[SUMS];
    (void)thread;
    if (memory == NULL) {
        atomic_store(&work->failed, true);
        return;
    }
    for (size_t i = 0; i < SUMS; i++) {
        sums[i] = memory + i * width;
        means[i] = memory + (SUMS + i) * width;
    }
    for (int y = first; y < end; y++) {
        if (rows_are_equal(work, y)) { /* each window is 1 */
            work->results[y] = (struct window_row){.sum = work->columns, .lowest = 1};
            continue;
        }
        /* Row r has its luma at index r modulo SSIM_WINDOW. */
        for (known = known < y ? y : known; known < y + SSIM_WINDOW; known++)
            for (size_t i = 0; i < 2; i++)
                read_luma(work->images[i], known,
                          memory + (2 * SUMS + i * SSIM_WINDOW + (size_t)(known % SSIM_WINDOW)) * width);
        for (int row = y; row < y + SSIM_WINDOW; row++)
            for (size_t i = 0; i < 2; i++)
                luma[i][row - y] = memory + (2 * SUMS + i * SSIM_WINDOW + (size_t)(row % SSIM_WINDOW)) * width;
        sum_window_columns((const double *const *)luma[0], (const double *const *)luma[1], work->weights, width, sums);
        for (int i = 0; i < SUMS; i++)
            sum_window_row(sums[i], work->weights, (size_t)work->columns, means[i]);
        work->results[y] = rate_windows(work, means);
    }
    free(memory);
}

/* exp(-x * x / (2 * 1.5 * 1.5)) for x from 0 to 5. Another C library, or another processor, may round the last bit of
 * exp in another way. */
static const double gaussian[SSIM_WINDOW / 2 + 1] = {
    1, 0.8007374029168081, 0.41111229050718745, 0.1353352832366127, 0.028565500784550377, 0.0038659201394728076};

bool ssim_compute(const struct image *expected, const struct image *actual, struct thread_pool *pool, struct ssim *ssim,
                  struct error *error)
{
    const double peak = image_sample_bytes(expected) == 1 ? 255 : 65535;
    struct ssim_work work = {.images = {expected, actual},
                             .c1 = 0.01 * peak * 0.01 * peak,
                             .c2 = 0.03 * peak * 0.03 * peak,
                             .columns = expected->width - SSIM_WINDOW + 1,
                             .rows = expected->height - SSIM_WINDOW + 1};
    double total = 0;
    *ssim = (struct ssim){.mean = NAN, .lowest = NAN};
    if (work.columns < 1 || work.rows < 1)
        return true;
    for (int i = 0; i < SSIM_WINDOW; i++)
        total += work.weights[i] = gaussian[abs(i - SSIM_WINDOW / 2)];
    for (int i = 0; i < SSIM_WINDOW; i++)
        work.weights[i] /= total;
    work.results = calloc((size_t)work.rows, sizeof *work.results);
    if (work.results != NULL)
        parallel_for(pool, thread_pool_threads(pool), (work.rows + BAND_ROWS - 1) / BAND_ROWS, rate_band, &work);
    if (work.results == NULL || atomic_load(&work.failed)) {
        free(work.results);
        return error_no_memory(error, "the SSIM");
    }
    total = 0;
    for (int y = 0; y < work.rows; y++) {
        total += work.results[y].sum;
        if (!(work.results[y].lowest >= ssim->lowest))
            *ssim = (struct ssim){.lowest = work.results[y].lowest, .x = work.results[y].x, .y = y};
    }
    ssim->mean = total / work.rows / work.columns;
    free(work.results);
    return true;
}
