/* SPDX-License-Identifier: MIT
 *
 * Masks of filters: images that say where, and how much, a filter changes a picture. */
#include "codec/mask.h"

#include "base/file.h"
#include "codec/codec.h"

#include <stdlib.h>
#include <sys/stat.h>

/* The grey of a pixel: the weights of Rec. 709, rounded to nearest. Grey pixels are their level. */
static uint16_t find_grey(const struct image *image, const uint16_t *pixel)
{
    if (image->channels < 3)
        return pixel[0];
    return (uint16_t)((2126u * pixel[0] + 7152u * pixel[1] + 722u * pixel[2] + 5000) / 10000);
}

static bool load(const char *path, size_t max_pixels, struct region *region, struct error *error)
{
    const struct codec_settings settings = {.bits = 16, .max_pixels = max_pixels};
    struct image image = {0};
    struct stat status = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    if (file_read(path, PTRDIFF_MAX, &bytes, &size, &status, error) &&
        codec_decode(bytes, size, path, &settings, &image, NULL, error)) {
        region->mask = mask_make(image.width, image.height);
        if (region->mask == NULL)
            error_no_memory(error, "the mask %s", path);
    }
    free(bytes);
    for (size_t i = 0; region->mask != NULL && i < (size_t)image.width * (size_t)image.height; i++)
        region->mask->levels[i] = find_grey(&image, image_samples16(&image) + i * (size_t)image.channels);
    image_free(&image);
    if (region->mask == NULL)
        return false;
    source_file_set(&region->mask_file, path, &status);
    return true;
}

bool masks_load(struct filter *filters, size_t count, size_t max_pixels, struct error *error)
{
    bool done = true;
    for (size_t i = 0; done && i < count; i++) {
        struct region *region = &filters[i].region;
        if (region->mask_file.path[0] == '\0' || region->mask != NULL)
            continue;
        done = load(region->mask_file.path, max_pixels, region, error);
        if (done && filters[i].filter16 != NULL)
            filters[i].filter16->region = filters[i].region; /* it has no reference of its own */
    }
    return done;
}
