/* SPDX-License-Identifier: MIT
 *
 * A program that was compiled with the first header of libgpuconv.so.0: it calls each function, with each option that
 * there was, and prints what it gets. After each struct that the library fills in, the program has bytes of its own. */
#include <gpuconv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 24, HEIGHT = 16, OWN = 64 };

/* A variable of TYPE, and bytes that nobody else may write. */
#define WITH_OWN_BYTES(type, name)                                                                                     \
    struct {                                                                                                           \
        type value;                                                                                                    \
        unsigned char own[OWN];                                                                                        \
    } name;                                                                                                            \
    memset(&name, 0xa5, sizeof name)
#define CHECK_OWN_BYTES(name) check(are_own(name.own), "the library wrote behind " #name)

static void check(int condition, const char *message)
{
    if (condition)
        return;
    printf("%s\n", message);
    exit(1);
}

static int are_own(const unsigned char *bytes)
{
    int equal = 1;
    for (int i = 0; i < OWN; i++)
        equal &= bytes[i] == 0xa5;
    return equal;
}

static void print_samples(const char *name, const void *data, size_t size)
{
    uint32_t sum = 2166136261; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)data)[i]) * 16777619;
    printf("%s %08x\n", name, (unsigned)sum);
}

/* ---- Filters ---- */

static void print_filters(void)
{
    static const int32_t taps[6] = {-1, 2, -3, 4, 5, 6};
    const char *text = "scale 16\n1 2 1\n2 4 2\n1 2 1\n";
    const struct gpuconv_taps made = {.taps = taps,
                                      .width = 3,
                                      .height = 2,
                                      .anchor_x = 2,
                                      .has_anchor = 1,
                                      .absolute = 1,
                                      .scale = 13,
                                      .offset = 0.5};
    WITH_OWN_BYTES(struct gpuconv_error, error);
    struct gpuconv_filter *filters[4] = {gpuconv_filter_find("gaussian:2.5,sharpen", &error.value),
                                         gpuconv_filter_parse(text, strlen(text), "text", &error.value),
                                         gpuconv_filter_make(&made, &error.value)};
    filters[3] = gpuconv_filter_flip(filters[2], &error.value);
    for (int i = 0; i < 4; i++) {
        WITH_OWN_BYTES(struct gpuconv_filter_info, info);
        gpuconv_filter_describe(filters[i], &info.value);
        char *shown = gpuconv_filter_text(filters[i], info.value.count - 1, 1, &error.value);
        printf("filter %d: %d %d %d %d %d %d %g %d\n", i, info.value.count, info.value.left, info.value.right,
               info.value.above, info.value.below, info.value.exact, info.value.largest_error, shown != NULL);
        CHECK_OWN_BYTES(info);
        gpuconv_free(shown);
        gpuconv_filter_close(filters[i]);
    }
    const struct gpuconv_filter *wrong = gpuconv_filter_find("no such filter", &error.value);
    printf("wrong: %d %d %d\n", wrong == NULL, (int)error.value.status, strstr(error.value.message, "no such") != NULL);
    CHECK_OWN_BYTES(error);
    printf("first: %s\n", gpuconv_filter_name(0));
}

/* ---- Images ---- */

/* Filter, encode and decode an image of each type of integers with each border and kind of alpha. */
static void print_images(struct gpuconv_context *context)
{
    static uint16_t samples[HEIGHT][WIDTH][4];
    for (int i = 0; i < HEIGHT * WIDTH * 4; i++)
        (&samples[0][0][0])[i] = (uint16_t)(i * 2654435761u >> 16);
    struct gpuconv_error error;
    struct gpuconv_filter *filter = gpuconv_filter_find("sharpen", &error);
    for (int type = GPUCONV_UINT8; type <= GPUCONV_UINT16; type++)
        for (int i = 0; i < 15; i++) {
            const struct gpuconv_view in = gpuconv_interleaved(samples, WIDTH, HEIGHT, 4, (enum gpuconv_type)type);
            const struct gpuconv_view part = gpuconv_crop(&in, 3, 2, WIDTH - 4, HEIGHT - 5);
            struct gpuconv_image *image = gpuconv_image_new(WIDTH - 4, HEIGHT - 5, 4, in.type, &error);
            const struct gpuconv_view out = gpuconv_image_view(image);
            const struct gpuconv_options options = {
                .border = (enum gpuconv_border)(i % 5), .alpha = (enum gpuconv_alpha)(i / 5), .linear = i % 2};
            check(gpuconv_apply(context, filter, &part, &out, &options, &error) == GPUCONV_OK, error.message);
            print_samples("filtered", out.data, (size_t)(out.row_stride * out.height));
            gpuconv_image_free(image);
        }
    gpuconv_filter_close(filter);
}

static void print_files(struct gpuconv_context *context)
{
    static uint8_t planes[3][HEIGHT][WIDTH];
    for (int i = 0; i < 3 * HEIGHT * WIDTH; i++)
        (&planes[0][0][0])[i] = (uint8_t)(i * 37);
    struct gpuconv_error error;
    const struct gpuconv_view view = gpuconv_planar(planes, WIDTH, HEIGHT, 3, GPUCONV_UINT8);
    const struct gpuconv_encode_options kinds[] = {
        {.format = "png", .compression = 9}, {.format = "jpg", .quality = 80, .subsampling = 422}, {.format = "ppm"}};
    for (int i = 0; i < 3; i++) {
        void *bytes;
        size_t size;
        check(gpuconv_encode(context, &view, &kinds[i], &bytes, &size, &error) == GPUCONV_OK, error.message);
        WITH_OWN_BYTES(struct gpuconv_file_info, info);
        check(gpuconv_inspect(bytes, size, &info.value, &error) == GPUCONV_OK, error.message);
        CHECK_OWN_BYTES(info);
        const struct gpuconv_decode_options options = {.bits = 8, .name = "file", .max_pixels = WIDTH * HEIGHT};
        struct gpuconv_image *image = gpuconv_decode(context, bytes, size, &options, &error);
        check(image != NULL, error.message);
        const struct gpuconv_view decoded = gpuconv_image_view(image);
        WITH_OWN_BYTES(struct gpuconv_difference, difference);
        check(gpuconv_compare(context, &view, &decoded, 2, &difference.value, &error) == GPUCONV_OK, error.message);
        CHECK_OWN_BYTES(difference);
        struct gpuconv_image *picture = gpuconv_compare_picture(&view, &decoded, &error);
        const struct gpuconv_difference *found = &difference.value;
        printf("%s: %d %d %d %d; same %d, %d %d, %d %d, %d %d %d %d, %d %d, %.3f %.5f, picture %d\n", info.value.format,
               info.value.width, info.value.height, info.value.channels, (int)info.value.type, found->same_shape,
               found->largest, found->largest_of[2], found->first_x, found->first_y, found->box_x, found->box_y,
               found->box_width, found->box_height, (int)found->pixels, (int)found->tolerated, found->psnr, found->ssim,
               picture != NULL);
        print_samples("file", bytes, size);
        gpuconv_image_free(picture);
        gpuconv_image_free(image);
        gpuconv_free(bytes);
    }
}

int main(void)
{
    struct gpuconv_error error;
    const struct gpuconv_context_options options = {.threads = 2};
    struct gpuconv_context *context = gpuconv_context_open(&options, &error);
    check(context != NULL && gpuconv_version() != NULL && gpuconv_gpus() >= 0, error.message);
    print_filters();
    print_images(context);
    print_files(context);
    gpuconv_context_close(context);
    return 0;
}
