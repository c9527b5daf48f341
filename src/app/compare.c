/* SPDX-License-Identifier: MIT
 *
 * --compare: do two images hold the same samples? */
#include "compare/compare.h"
#include "app/messages.h"
#include "app/modes.h"
#include "base/file.h"
#include "base/parallel.h"
#include "batch/job.h"
#include "batch/memory.h"
#include "codec/codec.h"
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>

/* Read and decode the image at PATH; its samples stay in the file's order. */
static bool read_image(const struct options *options, const char *path, const struct codec_settings *settings,
                       struct image *image, struct error *error)
{
    uint8_t *bytes;
    size_t size;
    if (!file_read(path, budget_file_most(), &bytes, &size, NULL, error))
        return false;
    struct codec_info info;
    const bool done = codec_decode(bytes, size, file_input_name(path), settings, image, &info, error);
    if (done)
        warn_extras(options, file_input_name(path), info.extras);
    free(bytes);
    return done;
}

/* Write the picture of a difference. */
static bool write_picture(const struct options *options, const struct codec_settings *settings,
                          const struct image *expected, const struct image *actual, struct error *error)
{
    struct image picture;
    uint8_t *bytes = NULL;
    size_t size;
    if (!difference_picture(expected, actual, &picture, error))
        return false;
    const struct format *format =
        options->list.format != NULL ? options->list.format : format_find_by_path(options->picture);
    warn_losses(options, options->picture, format, !format->holds_alpha && image_has_alpha(&picture),
                picture.bits > format->most_bits);
    const bool done = codec_encode(&picture, format, settings, &bytes, &size, error) &&
                      file_write(options->picture, bytes, size, NULL, error);
    free(bytes);
    image_free(&picture);
    return done;
}

/* The picture of the difference must not overwrite one of the images. */
static bool check_picture(const struct options *options, struct error *error)
{
    if (options->picture == NULL)
        return true;
    if (!job_check_output(options->picture, error))
        return false;
    if (file_same(options->expected, options->picture) || file_same(options->actual, options->picture))
        return error_set(error, ERROR_USAGE,
                         "%s is one of the images to compare; name another file for the difference picture",
                         options->picture);
    return true;
}

static void print_shapes(const struct image *expected, const struct image *actual)
{
    if (expected->width == actual->width && expected->height == actual->height &&
        expected->channels == actual->channels) {
        printf("depths differ: expected %d bits a sample, actual %d; give --depth 8 to compare them reduced\n",
               expected->bits, actual->bits);
        return;
    }
    printf("shapes differ: expected %d x %d with %d channel%s, actual %d x %d with %d channel%s\n", expected->width,
           expected->height, expected->channels, expected->channels == 1 ? "" : "s", actual->width, actual->height,
           actual->channels, actual->channels == 1 ? "" : "s");
}

static void print_difference(const struct image *image, const struct difference *difference)
{
    printf("%llu of %llu pixels differ, first at x %d y %d channel %d, largest difference %d, PSNR %.2f dB\n",
           (unsigned long long)difference->pixels, (unsigned long long)image->width * (unsigned long long)image->height,
           difference->first_x, difference->first_y, difference->first_channel, difference->largest, difference->psnr);
}

/* Print how the images differ; the exit status. */
static int print_answer(const struct options *options, const struct codec_settings *settings,
                        const struct image *expected, const struct image *actual)
{
    struct error error;
    struct difference difference;
    compare_images(expected, actual, &difference);
    if (!difference.same_shape) {
        print_shapes(expected, actual);
        return 1;
    }
    if (difference.pixels == 0) {
        puts("equal");
        return 0;
    }
    print_difference(expected, &difference);
    if (options->picture != NULL && !write_picture(options, settings, expected, actual, &error))
        return print_error_line(&error);
    return 1;
}

/* Exit status 0 where the images are equal, 1 where they are not or cannot be compared. */
int run_compare(const struct options *options)
{
    struct codec_settings settings = options->job.codec;
    struct thread_pool pool;
    struct error error;
    struct image expected = {0}, actual = {0};
    thread_pool_open(&pool, options->threads);
    settings.pool = &pool;
    if (settings.quality == CODEC_QUALITY_KEEP) /* a picture of differences has no input */
        settings.quality = CODEC_QUALITY;
    const bool done = check_picture(options, &error) &&
                      read_image(options, options->expected, &settings, &expected, &error) &&
                      read_image(options, options->actual, &settings, &actual, &error);
    const int status = done ? print_answer(options, &settings, &expected, &actual) : print_error_line(&error);
    image_free(&expected);
    image_free(&actual);
    thread_pool_close(&pool);
    return status;
}
