/* SPDX-License-Identifier: MIT
 *
 * Filter a part of an image in the program's own memory, by taps of its own, without a copy: blur the face in a frame
 * whose pixels have four bytes, the last of which means nothing. Prints a line of the result.
 *
 *     cc blur_part.c $(pkg-config --cflags --libs gpuconv) -o blur_part */
#include <gpuconv.h>

#include <stdio.h>

enum { WIDTH = 640, HEIGHT = 480 };

static uint8_t frame[HEIGHT][WIDTH][4];

int main(void)
{
    static const int32_t binomial[5 * 5] = {
        1, 4, 6, 4, 1, 4, 16, 24, 16, 4, 6, 24, 36, 24, 6, 4, 16, 24, 16, 4, 1, 4, 6, 4, 1,
    };
    const struct gpuconv_taps taps = {.taps = binomial, .width = 5, .height = 5, .scale = 256};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < 3; c++)
                frame[y][x][c] = (uint8_t)((x ^ y) << c);

    struct gpuconv_error error;
    struct gpuconv_context *context = gpuconv_context_open(NULL, &error);
    struct gpuconv_filter *filter = context != NULL ? gpuconv_filter_make(&taps, &error) : NULL;
    enum gpuconv_status status = filter != NULL ? GPUCONV_OK : error.status;

    /* Three channels, in pixels of four bytes. */
    struct gpuconv_view view = gpuconv_interleaved(frame, WIDTH, HEIGHT, 4, GPUCONV_UINT8);
    view.channels = 3;
    const struct gpuconv_view face = gpuconv_crop(&view, 300, 100, 80, 60);
    const struct gpuconv_options options = {.border = GPUCONV_REFLECT};
    for (int i = 0; status == GPUCONV_OK && i < 3; i++)
        status = gpuconv_apply(context, filter, &face, &face, &options, &error);

    if (status != GPUCONV_OK)
        fprintf(stderr, "%s\n", error.message);
    for (int x = 296; status == GPUCONV_OK && x < 312; x++)
        printf("%d%c", frame[120][x][0], x == 311 ? '\n' : ' ');
    gpuconv_filter_close(filter);
    gpuconv_context_close(context);
    return status == GPUCONV_OK ? 0 : 1;
}
