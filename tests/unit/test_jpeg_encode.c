/* SPDX-License-Identifier: MIT
 *
 * JPEG as written by src/jpeg, byte by byte against libjpeg-turbo. */
#include "codec/codec.h"
#include "jpeg/write_headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JPEG format_of(FORMAT_JPEG)

static const struct chroma_subsampling all_chroma[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {0, 0}};

enum { CHROMAS = sizeof all_chroma / sizeof *all_chroma };

/* Skips the test where libjpeg-turbo was not built in. */
static const struct codec *find_turbo(void)
{
    const struct codec *turbo = codec_find("libjpeg-turbo", NULL);
    if (turbo == NULL) {
        print_message("libjpeg-turbo was not built in\n");
        skip();
    }
    return turbo;
}

static void test_the_headers_are_libjpeg_turbos(void **state)
{
    struct codec_settings settings = {.codec = find_turbo()};
    static uint8_t samples[40 * 23 * 3];
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int i = 0; i < CHROMAS; i++)
            for (int quality = 1; quality <= 100; quality++) {
                const struct image image = {
                    .width = 40, .height = 23, .channels = channels, .bits = 8, .samples = samples};
                struct jpeg_layout layout;
                uint8_t headers[JPEG_HEADERS_MOST], *bytes;
                size_t size;
                settings.quality = quality;
                settings.chroma_subsampling = all_chroma[i];
                jpeg_layout_for_writing(&layout, 40, 23, channels, all_chroma[i], quality);
                const size_t written = jpeg_write_headers(&layout, headers);
                assert_true(codec_encode(&image, JPEG, &settings, &bytes, &size, NULL));
                assert_true(written < size);
                assert_memory_equal(bytes, headers, written);
                free(bytes);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_headers_are_libjpeg_turbos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
