/* SPDX-License-Identifier: MIT
 *
 * Filter an image file as the command line does, in memory: filter_file FILTER INPUT OUTPUT.
 *
 *     cc filter_file.c $(pkg-config --cflags --libs gpuconv) -o filter_file */
#include <gpuconv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    *size = 0;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        const long length = ftell(file);
        rewind(file);
        bytes = length > 0 ? malloc((size_t)length) : NULL;
        *size = bytes != NULL ? fread(bytes, 1, (size_t)length, file) : 0;
    }
    if (file != NULL)
        fclose(file);
    return bytes;
}

static int write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return 0;
    const int written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

int main(int count, char *arguments[])
{
    if (count != 4) {
        fprintf(stderr, "usage: filter_file FILTER INPUT OUTPUT\n");
        return 2;
    }
    size_t size, encoded_size;
    void *bytes = read_file(arguments[2], &size), *encoded = NULL;
    struct gpuconv_error error;
    struct gpuconv_context *context = gpuconv_context_open(NULL, &error);
    struct gpuconv_filter *filter = NULL;
    struct gpuconv_image *image = NULL;
    int status = 1;
    if (bytes == NULL) {
        fprintf(stderr, "%s: cannot be read\n", arguments[2]);
        goto end;
    }
    if (context == NULL || (filter = gpuconv_filter_find(arguments[1], &error)) == NULL ||
        (image = gpuconv_decode(context, bytes, size, NULL, &error)) == NULL) {
        fprintf(stderr, "%s\n", error.message);
        goto end;
    }

    /* The result may take the place of the input. The image's metadata go into the new file. */
    const struct gpuconv_view view = gpuconv_image_view(image);
    const char *dot = strrchr(arguments[3], '.');
    const struct gpuconv_encode_options options = {.format = dot != NULL ? dot + 1 : "png", .metadata_of = image};
    if (gpuconv_apply(context, filter, &view, &view, NULL, &error) != GPUCONV_OK ||
        gpuconv_encode(context, &view, &options, &encoded, &encoded_size, &error) != GPUCONV_OK)
        fprintf(stderr, "%s\n", error.message);
    else if (!write_file(arguments[3], encoded, encoded_size))
        fprintf(stderr, "%s: cannot be written\n", arguments[3]);
    else
        status = 0;
end:
    gpuconv_free(encoded);
    gpuconv_image_free(image);
    gpuconv_filter_close(filter);
    gpuconv_context_close(context);
    free(bytes);
    return status;
}
