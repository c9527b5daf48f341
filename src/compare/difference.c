/* SPDX-License-Identifier: MIT */
#include "compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Ignored pixels ---- */

/* Mark with 1 the pixels of row Y that an area or the mask ignores. FLAGS has WIDTH bytes of 0. */
static void mark_ignored(const struct compare_rules *rules, int y, int width, uint8_t *flags)
{
    for (size_t i = 0; i < rules->area_count; i++) {
        const struct compare_area *area = &rules->areas[i];
        if (y < area->y || y - area->y >= area->height || area->x >= width)
            continue;
        const int left = width - area->x;
        memset(flags + area->x, 1, (size_t)(area->width < left ? area->width : left));
    }
    if (rules->mask == NULL)
        return;
    const size_t channels = (size_t)rules->mask->channels, colours = channels >= 3 ? 3 : 1;
    const size_t first = (size_t)y * (size_t)width * channels;
    for (size_t x = 0; x < (size_t)width; x++) {
        int sum = 0;
        for (size_t c = 0; c < colours; c++)
            sum += nth_sample(rules->mask, first + x * channels + c);
        flags[x] |= sum == 0;
    }
}

/* Is alpha, the last sample of a pixel of BYTES bytes, 0 in both images? */
static bool is_transparent(const uint8_t *a, const uint8_t *b, size_t bytes, size_t sample)
{
    static const uint8_t zero[2] = {0};
    return memcmp(a + bytes - sample, zero, sample) == 0 && memcmp(b + bytes - sample, zero, sample) == 0;
}

bool compare_ignore(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                    uint64_t *ignored, uint64_t *hidden, struct error *error)
{
    const bool transparent = rules->ignores_transparent && image_has_alpha(expected);
    const size_t bytes = image_pixel_bytes(expected);
    *ignored = *hidden = 0;
    if (rules->area_count == 0 && rules->mask == NULL && !transparent)
        return true;
    uint8_t *flags = malloc((size_t)expected->width);
    if (flags == NULL)
        return error_no_memory(error, "a row of the mask");
    for (int y = 0; y < expected->height; y++) {
        const uint8_t *a = image_row(expected, y);
        uint8_t *b = image_row(actual, y);
        memset(flags, 0, (size_t)expected->width);
        mark_ignored(rules, y, expected->width, flags);
        for (int x = 0; x < expected->width; x++, a += bytes, b += bytes) {
            if (flags[x] == 0 && !(transparent && is_transparent(a, b, bytes, image_sample_bytes(expected))))
                continue;
            ++*ignored;
            *hidden += memcmp(a, b, bytes) != 0;
            memcpy(b, a, bytes);
        }
    }
    free(flags);
    return true;
}

/* ---- Numbers ---- */

/* Enlarge the box so that it contains the pixel at X, Y. The FIRST pixel begins the box. Rows come from the top
 * down. */
static void grow_box(struct compare_area *box, bool first, int x, int y)
{
    if (first)
        *box = (struct compare_area){.x = x, .y = y};
    const int right = x >= box->x + box->width ? x + 1 : box->x + box->width;
    box->x = x < box->x ? x : box->x;
    box->width = right - box->x;
    box->height = y + 1 - box->y;
}

/* Count the pixel at X, Y. Returns the sum of its squared differences. */
static uint64_t count_pixel(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                            int x, int y, struct difference *difference)
{
    const size_t i = (size_t)y * (size_t)expected->width + (size_t)x;
    uint64_t squares = 0;
    int max = 0, channel = 0, first = 0; /* the first sample beyond the tolerance, else the first that differs */
    for (int c = 0; c < expected->channels; c++) {
        const int d = sample_difference(expected, actual, i * (size_t)expected->channels + (size_t)c);
        max = d > max ? d : max;
        if (first == 0 || (first <= rules->tolerance && d > rules->tolerance)) {
            first = d;
            channel = c;
        }
        difference->largest_of[c] = d > difference->largest_of[c] ? d : difference->largest_of[c];
        squares += (uint64_t)d * (uint64_t)d;
    }
    difference->largest = max > difference->largest ? max : difference->largest;
    const bool beyond = max > 0 && pixel_is_beyond(rules, expected, actual, i, max);
    difference->tolerated += max > 0 && !beyond;
    if (!beyond)
        return squares;
    if (difference->pixels == 0) {
        difference->first_x = x;
        difference->first_y = y;
        difference->first_channel = channel;
    }
    grow_box(&difference->box, difference->pixels == 0, x, y);
    difference->pixels++;
    return squares;
}

void compare_images(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                    uint64_t ignored, struct difference *difference)
{
    const size_t channels = (size_t)expected->channels, row = (size_t)expected->width * channels;
    const double peak = image_sample_bytes(expected) == 1 ? 255 : 65535;
    uint64_t squares = 0; /* no overflow for up to 2^48 samples of 8 bits, or 2^32 of 16 */
    *difference = (struct difference){
        .first_x = -1, .first_y = -1, .first_channel = -1, .psnr = INFINITY, .ssim = {.mean = NAN, .lowest = NAN}};
    difference->same_shape = true;
    difference->channels = expected->channels;
    difference->ignored = ignored;
    difference->compared = (uint64_t)expected->width * (uint64_t)expected->height - ignored;
    for (int y = 0; y < expected->height; y++) {
        if (memcmp(image_row(expected, y), image_row(actual, y), row * image_sample_bytes(expected)) == 0)
            continue;
        for (int x = 0; x < expected->width; x++)
            squares += count_pixel(expected, actual, rules, x, y, difference);
    }
    if (squares > 0)
        difference->psnr = 10 * log10(peak * peak * (double)difference->compared * (double)channels / (double)squares);
}

bool compare_by_rules(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                      struct thread_pool *pool, struct difference *difference, uint8_t **flags, struct error *error)
{
    uint64_t ignored, hidden, antialiased = 0;
    *flags = NULL;
    if (!compare_ignore(expected, actual, rules, &ignored, &hidden, error) ||
        (rules->ignores_antialiasing &&
         !antialiasing_ignore(expected, actual, rules, pool, flags, &antialiased, error)))
        return false;
    compare_images(expected, actual, rules, ignored, difference);
    difference->hidden = hidden;
    difference->antialiased = antialiased;
    return difference->largest == 0 || ssim_compute(expected, actual, pool, &difference->ssim, error);
}

uint64_t compare_allowed(const struct compare_rules *rules, const struct difference *difference)
{
    const uint64_t share = (uint64_t)rules->share;
    if (rules->any_pixels)
        return difference->compared;
    if (share == 0)
        return rules->different;
    return difference->compared / COMPARE_WHOLE * share + difference->compared % COMPARE_WHOLE * share / COMPARE_WHOLE;
}

bool rules_limit_numbers(const struct compare_rules *rules)
{
    bool is_set = false;
    for (enum limit limit = LIMIT_PSNR; limit < LIMITS; limit++)
        is_set = is_set || rules->lowest[limit] > 0;
    return is_set;
}

double compare_number(const struct difference *difference, enum limit limit)
{
    return limit == LIMIT_PSNR   ? difference->psnr
           : limit == LIMIT_SSIM ? difference->ssim.mean
                                 : difference->ssim.lowest;
}

unsigned compare_limits(const struct compare_rules *rules, const struct difference *difference)
{
    unsigned beyond = difference->pixels > compare_allowed(rules, difference) ? 1u << LIMIT_PIXELS : 0;
    for (enum limit limit = LIMIT_PSNR; limit < LIMITS; limit++)
        if (rules->lowest[limit] > 0 && difference->largest > 0 &&
            !(compare_number(difference, limit) >= (double)rules->lowest[limit] / COMPARE_MILLION))
            beyond |= 1u << limit;
    return beyond;
}

/* ---- The picture ---- */

/* Set OUT to the COLOURS numbers that the picture shows at pixel number I, before they are scaled. Returns the largest
 * of these numbers. */
static int pixel_difference(const struct image *expected, const struct image *actual, size_t i, size_t colours,
                            int out[3])
{
    const size_t first = i * (size_t)expected->channels;
    int largest = 0;
    for (size_t c = 0; c < colours; c++) {
        out[c] = sample_difference(expected, actual, first + c);
        largest = out[c] > largest ? out[c] : largest;
    }
    if (largest == 0 && image_has_alpha(expected)) {
        largest = sample_difference(expected, actual, first + colours);
        for (size_t c = 0; c < colours; c++)
            out[c] = largest;
    }
    return largest;
}

bool difference_picture(const struct image *expected, const struct image *actual, const uint8_t *antialiased,
                        struct image *picture, struct error *error)
{
    static const int yellow[3] = {1, 1, 0};
    const size_t colours = expected->channels >= 3 ? 3 : 1, shown = antialiased != NULL ? 3 : colours;
    const size_t pixels = (size_t)expected->width * (size_t)expected->height;
    int largest = 1, differences[3];
    if (!image_allocate(picture, expected->width, expected->height, (int)shown, 8, error))
        return false;

    for (size_t i = 0; i < pixels; i++) {
        const int max = pixel_difference(expected, actual, i, colours, differences);
        largest = max > largest ? max : largest;
    }
    for (size_t i = 0; i < pixels; i++) {
        const int max = pixel_difference(expected, actual, i, colours, differences);
        for (size_t c = 0; c < shown; c++) {
            const int level = antialiased == NULL ? differences[c] : antialiased[i] != 0 ? yellow[c] * largest : max;
            picture->samples[i * shown + c] = (uint8_t)((2 * level * 255 + largest) / (2 * largest));
        }
    }
    return true;
}
