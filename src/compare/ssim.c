/* SPDX-License-Identifier: MIT
 *
 * The structural similarity of two images: Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality
 * assessment: from error visibility to structural similarity", IEEE Transactions on Image Processing 13 (4), 2004. As
 * there, the window is a Gaussian of 11 x 11 pixels with sigma 1.5, K1 is 0.01 and K2 is 0.03. The result is the mean
 * of all windows that lie inside the image. It is computed by rows of windows: weighted sums down the columns first,
 * then along the row. */
#include "compare/compare.h"

#include "base/clones.h"
#include "base/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Rows of windows that one thread takes at a time. */
enum { BAND_ROWS = 32, SUMS = 5 };

struct ssim {
    const struct image *images[2];
    double weights[SSIM_WINDOW];
    double c1, c2;
    int columns, rows; /* of windows */
    double *sums;      /* of each row of windows */
    atomic_bool failed;
};

/* The luma of row Y of an image. */
static void read_luma(const struct image *image, int y, double *luma)
{
    const size_t channels = (size_t)image->channels, width = (size_t)image->width;
    const uint8_t *row = image_row(image, y);
    const uint16_t *deep = (const uint16_t *)(const void *)row;
    const bool is_deep = image_sample_bytes(image) == 2;
    for (size_t x = 0; x < width; x++) {
        int s[3];
        for (size_t c = 0; c < 3; c++) {
            const size_t i = x * channels + (channels >= 3 ? c : 0);
            s[c] = is_deep ? deep[i] : row[i];
        }
        luma[x] = channels >= 3 ? (299.0 * s[0] + 587.0 * s[1] + 114.0 * s[2]) / 1000 : s[0];
    }
}

/* Sum WIDTH columns of SSIM_WINDOW rows A and B: their weighted sums, and those of a a, b b and a b. */
CLONES static void sum_columns(const double *const *a, const double *const *b, const double *weights, size_t width,
                               double *const *sums)
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
CLONES static void sum_row(const double *in, const double *weights, size_t columns, double *out)
{
    memset(out, 0, columns * sizeof *out);
    for (int i = 0; i < SSIM_WINDOW; i++)
        for (size_t x = 0; x < columns; x++)
            out[x] += weights[i] * in[x + (size_t)i];
}

/* The sum of a row's windows, from their weighted sums. */
static double sum_windows(const struct ssim *ssim, double *const *means)
{
    double sum = 0;
    for (size_t x = 0; x < (size_t)ssim->columns; x++) {
        const double a = means[0][x], b = means[1][x];
        const double aa = means[2][x] - a * a, bb = means[3][x] - b * b, ab = means[4][x] - a * b;
        sum += (2 * a * b + ssim->c1) * (2 * ab + ssim->c2) / ((a * a + b * b + ssim->c1) * (aa + bb + ssim->c2));
    }
    return sum;
}

/* Are the rows that the windows of row Y lie in equal? */
static bool rows_are_equal(const struct ssim *ssim, int y)
{
    const size_t bytes = (size_t)ssim->images[0]->width * image_pixel_bytes(ssim->images[0]) * SSIM_WINDOW;
    return memcmp(image_row(ssim->images[0], y), image_row(ssim->images[1], y), bytes) == 0;
}

/* parallel_for's function: the sums of band INDEX. */
static void sum_band(void *context, int64_t index, int thread)
{
    struct ssim *ssim = context;
    const size_t width = (size_t)ssim->images[0]->width;
    const int first = (int)index * BAND_ROWS, end = ssim->rows - first < BAND_ROWS ? ssim->rows : first + BAND_ROWS;
    int known = first; /* the next row without luma */
    double *memory = calloc((2 * SSIM_WINDOW + 2 * SUMS) * width, sizeof *memory);
    double *luma[2][SSIM_WINDOW], *sums[SUMS], *means[SUMS];
    (void)thread;
    if (memory == NULL) {
        atomic_store(&ssim->failed, true);
        return;
    }
    for (size_t i = 0; i < SUMS; i++) {
        sums[i] = memory + i * width;
        means[i] = memory + (SUMS + i) * width;
    }
    for (int y = first; y < end; y++) {
        if (rows_are_equal(ssim, y)) { /* each window is 1 */
            ssim->sums[y] = ssim->columns;
            continue;
        }
        /* Row r has its luma at place r modulo SSIM_WINDOW. */
        for (known = known < y ? y : known; known < y + SSIM_WINDOW; known++)
            for (size_t i = 0; i < 2; i++)
                read_luma(ssim->images[i], known,
                          memory + (2 * SUMS + i * SSIM_WINDOW + (size_t)(known % SSIM_WINDOW)) * width);
        for (int row = y; row < y + SSIM_WINDOW; row++)
            for (size_t i = 0; i < 2; i++)
                luma[i][row - y] = memory + (2 * SUMS + i * SSIM_WINDOW + (size_t)(row % SSIM_WINDOW)) * width;
        sum_columns((const double *const *)luma[0], (const double *const *)luma[1], ssim->weights, width, sums);
        for (int i = 0; i < SUMS; i++)
            sum_row(sums[i], ssim->weights, (size_t)ssim->columns, means[i]);
        ssim->sums[y] = sum_windows(ssim, means);
    }
    free(memory);
}

bool ssim_compute(const struct image *expected, const struct image *actual, struct thread_pool *pool, double *ssim,
                  struct error *error)
{
    const double peak = image_sample_bytes(expected) == 1 ? 255 : 65535;
    struct ssim work = {.images = {expected, actual},
                        .c1 = 0.01 * peak * 0.01 * peak,
                        .c2 = 0.03 * peak * 0.03 * peak,
                        .columns = expected->width - SSIM_WINDOW + 1,
                        .rows = expected->height - SSIM_WINDOW + 1};
    double total = 0;
    *ssim = NAN;
    if (work.columns < 1 || work.rows < 1)
        return true;
    for (int i = 0; i < SSIM_WINDOW; i++) {
        const double x = i - SSIM_WINDOW / 2;
        total += work.weights[i] = exp(-x * x / (2 * 1.5 * 1.5));
    }
    for (int i = 0; i < SSIM_WINDOW; i++)
        work.weights[i] /= total;
    work.sums = calloc((size_t)work.rows, sizeof *work.sums);
    if (work.sums != NULL)
        parallel_for(pool, thread_pool_threads(pool), (work.rows + BAND_ROWS - 1) / BAND_ROWS, sum_band, &work);
    if (work.sums == NULL || atomic_load(&work.failed)) {
        free(work.sums);
        return error_no_memory(error, "the SSIM");
    }
    total = 0;
    for (int y = 0; y < work.rows; y++)
        total += work.sums[y];
    *ssim = total / work.rows / work.columns;
    free(work.sums);
    return true;
}
