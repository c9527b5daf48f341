/* SPDX-License-Identifier: MIT
 *
 * What eyes do not see: small differences of colours, and antialiasing.
 *
 * Colours: Y. Kotsarenko, F. Ramos, "Measuring perceived color difference using YIQ NTSC transmission color space in
 * mobile applications", Programación Matemática y Software 2 (2), 2010. Antialiasing: V. Vyšniauskas, "Anti-aliased
 * Pixel and Intensity Slope Detector", Elektronika ir Elektrotechnika 95 (7), 2009. Both are applied as in the program
 * pixelmatch, versions 7.0 to 7.2. It computes with doubles, and this file with integers. For opaque colours of 8 bits
 * both find the same order of brightness: different brightnesses are at least 10^-8 apart, as a search among all
 * differences shows, and a double's error is below 10^-12. */
#include "compare/compare.h"

#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* ---- Colours ---- */

__extension__ typedef __int128 int128;

/* YIQ of red, green and blue, times 10^8. */
static const int64_t y_of[3] = {29889531, 58662247, 11448223}, i_of[3] = {59597799, -27417610, -32180189},
                     q_of[3] = {21147017, -52261711, 31114694};

/* A pixel with alpha. Grey is all three colours. */
struct colour {
    int64_t rgb[3], alpha;
};

static int64_t white_of(const struct image *image)
{
    return image_sample_bytes(image) == 1 ? 255 : 65535;
}

/* The colour of pixel number I. */
static struct colour read_colour(const struct image *image, size_t i)
{
    const size_t channels = (size_t)image->channels;
    int64_t samples[4] = {0};
    for (size_t c = 0; c < channels; c++)
        samples[c] = nth_sample(image, i * channels + c);
    struct colour colour = {.alpha = image_has_alpha(image) ? samples[channels - 1] : white_of(image)};
    for (size_t c = 0; c < 3; c++)
        colour.rgb[c] = samples[channels >= 3 ? c : 0];
    return colour;
}

/* Set OUT to A - B over the ground of pixel number I, times white. The ground is pixelmatch's: red is dark, and green
 * and blue are dark or light, by the golden ratio and its square. Then hardly any two colours look the same all over
 * it. A double holds the quotients, whose rounding IEEE 754 defines. */
static void subtract_colours(const struct colour *a, const struct colour *b, int64_t white, size_t i, int64_t out[3])
{
    const double position = 4 * (double)i;
    for (int c = 0; c < 3; c++)
        out[c] = a->rgb[c] * a->alpha - b->rgb[c] * b->alpha;
    if (a->alpha == b->alpha)
        return;
    const int64_t light[3] = {0, (int64_t)(position / 1.618033988749895) % 2,
                              (int64_t)(position / 2.618033988749895) % 2};
    for (int c = 0; c < 3; c++)
        out[c] -= (48 + 159 * light[c]) * (white / 255) * (a->alpha - b->alpha);
}

static int64_t dot_product(const int64_t colour[3], const int64_t weights[3])
{
    return colour[0] * weights[0] + colour[1] * weights[1] + colour[2] * weights[2];
}

/* The distance is pixelmatch's, in YIQ. With D from subtract_colours, the distance of the paper is
 *
 *     0.5053 y^2 + 0.299 i^2 + 0.1957 q^2, where y = dot_product(D, y_of) / 10^8 / white / (white / 255)
 *
 * and i and q likewise. pixelmatch's limit is 35215 threshold^2. Both are multiplied here by 10^4 (10^8 white white /
 * 255)^2. For 16 bits the roots are divided by 64, so that the squares fit: a component of D is below 2^32, and the sum
 * of a row of weights below 1.2 * 10^8, so y, i and q are below 2^53 and the sum is below 2^120. */
bool colours_differ(const struct image *expected, const struct image *actual, size_t i, int threshold)
{
    const struct colour a = read_colour(expected, i), b = read_colour(actual, i);
    const int64_t white = white_of(expected), divisor = white == 255 ? 1 : 64;
    const int64_t limit = 100 * white * (white / 255) * threshold / divisor; /* 10^8 / COMPARE_MILLION is 100 */
    int64_t difference[3];
    subtract_colours(&a, &b, white, i, difference);
    const int128 y = dot_product(difference, y_of) / divisor, p = dot_product(difference, i_of) / divisor,
                 q = dot_product(difference, q_of) / divisor;
    return 5053 * y * y + 2990 * p * p + 1957 * q * q > (int128)352150000 * limit * limit;
}

/* ---- Antialiasing ---- */

/* The pixels around X, Y. */
struct around {
    int left, top, right, bottom;
    bool at_edge; /* X, Y is at an edge of the image, which counts as an equal neighbour */
};

static struct around look_around(const struct image *image, int x, int y)
{
    const int right = image->width - 1, bottom = image->height - 1;
    return (struct around){.left = x > 0 ? x - 1 : 0,
                           .top = y > 0 ? y - 1 : 0,
                           .right = x < right ? x + 1 : right,
                           .bottom = y < bottom ? y + 1 : bottom,
                           .at_edge = x == 0 || y == 0 || x == right || y == bottom};
}

/* A pixel with this number of equal neighbours, or more, is inside a shape and not at its edge. */
enum { EQUAL_INSIDE = 3 };

/* Has the pixel at X, Y at least EQUAL_INSIDE neighbours that equal it? */
static bool is_inside(const struct image *image, int x, int y)
{
    const struct around around = look_around(image, x, y);
    const size_t bytes = image_pixel_bytes(image);
    const uint8_t *pixel = image_row(image, y) + (size_t)x * bytes;
    int equal = around.at_edge ? 0 : -1; /* the loop also meets the pixel itself */
    for (int v = around.top; v <= around.bottom; v++)
        for (int u = around.left; u <= around.right; u++)
            equal += memcmp(pixel, image_row(image, v) + (size_t)u * bytes, bytes) == 0;
    return equal >= EQUAL_INSIDE;
}

/* Is the pixel at X, Y of IMAGE antialiased? It has few equal neighbours and both darker and brighter ones, and the
 * darkest or the brightest of them is inside a shape of both images. Columns come first, as in pixelmatch: of several
 * equal ones the first counts. */
static bool is_antialiased(const struct image *image, const struct image *other, int x, int y)
{
    const struct around around = look_around(image, x, y);
    const size_t width = (size_t)image->width, i = (size_t)y * width + (size_t)x;
    const struct colour centre = read_colour(image, i);
    int64_t darkest = 0, brightest = 0, difference[3];
    int equal = around.at_edge ? 1 : 0, extremes[2][2] = {{0}};
    for (int u = around.left; u <= around.right; u++)
        for (int v = around.top; v <= around.bottom; v++) {
            if (u == x && v == y)
                continue;
            const struct colour neighbour = read_colour(image, (size_t)v * width + (size_t)u);
            subtract_colours(&centre, &neighbour, white_of(image), i, difference);
            const int64_t brighter = dot_product(difference, y_of);
            if (brighter == 0 && ++equal >= EQUAL_INSIDE)
                return false;
            int *extreme = brighter < darkest ? extremes[0] : brighter > brightest ? extremes[1] : NULL;
            if (extreme == NULL)
                continue;
            darkest = brighter < darkest ? brighter : darkest;
            brightest = brighter > brightest ? brighter : brightest;
            extreme[0] = u;
            extreme[1] = v;
        }
    if (darkest == 0 || brightest == 0)
        return false;
    for (int k = 0; k < 2; k++)
        if (is_inside(image, extremes[k][0], extremes[k][1]) && is_inside(other, extremes[k][0], extremes[k][1]))
            return true;
    return false;
}

struct search {
    const struct image *expected, *actual;
    const struct compare_rules *rules;
    uint8_t *flags;
};

/* parallel_for's function: mark the pixels of row INDEX. */
static void mark_row(void *context, int64_t index, int thread)
{
    const struct search *search = context;
    const struct image *a = search->expected, *b = search->actual;
    const size_t width = (size_t)a->width, first = (size_t)index * width;
    (void)thread;
    if (memcmp(image_row(a, (int)index), image_row(b, (int)index), image_row_bytes(a)) == 0)
        return;
    for (int x = 0; x < a->width; x++) {
        const size_t i = first + (size_t)x, channels = (size_t)a->channels;
        int max = 0;
        for (size_t c = 0; c < channels; c++) {
            const int d = sample_difference(a, b, i * channels + c);
            max = d > max ? d : max;
        }
        search->flags[i] = pixel_is_beyond(search->rules, a, b, i, max) &&
                           (is_antialiased(a, b, x, (int)index) || is_antialiased(b, a, x, (int)index));
    }
}

bool antialiasing_ignore(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                         struct thread_pool *pool, uint8_t **flags, uint64_t *count, struct error *error)
{
    const size_t pixels = (size_t)expected->width * (size_t)expected->height, bytes = image_pixel_bytes(expected);
    *count = 0;
    *flags = calloc(pixels, 1);
    if (*flags == NULL)
        return error_no_memory(error, "the antialiased pixels");
    struct search search = {.expected = expected, .actual = actual, .rules = rules, .flags = *flags};
    parallel_for(pool, thread_pool_threads(pool), expected->height, mark_row, &search);
    for (size_t i = 0; i < pixels; i++) {
        if ((*flags)[i] == 0)
            continue;
        ++*count;
        memcpy(actual->samples + i * bytes, expected->samples + i * bytes, bytes);
    }
    return true;
}
