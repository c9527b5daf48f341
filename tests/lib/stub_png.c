/* SPDX-License-Identifier: MIT
 *
 * PNG on the GPU of stub_device.c: the functions of kernels/png/png.h by the codec of the CPU, which makes the same
 * bytes. The stream is taken out of its file. */
#include "codec/codec.h"
#include "container/png.h"
#include "container/zlib.h"
#include "kernels/png/png.h"
#include "tests/lib/stub_device.h"

#include <stdlib.h>

struct device_png {
    uint8_t *file;
    struct png_chunk data; /* in the file; a small one has only one IDAT chunk */
};

bool device_png_open(struct device *device, struct device_png **png, struct error *error)
{
    (void)device;
    *png = calloc(1, sizeof **png);
    return stub_works_png(error);
}

void device_png_close(struct device_png *png)
{
    if (png == NULL)
        return;
    free(png->file);
    free(png);
}

bool device_png_encode(struct device_png *png, const struct image *image, struct error *error)
{
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    size_t size;
    free(png->file);
    if (!codec_encode(image, format_of(FORMAT_PNG), &settings, &png->file, &size, error))
        return false;
    struct png_walk walk = png_walk_begin(png->file, size);
    while (png_walk_next(&walk, &png->data) == PNG_STEP_CHUNK && !png_chunk_is(&png->data, "IDAT"))
        continue;
    return stub_works_png(error);
}

bool device_png_encoded(struct device_png *png, const uint8_t **bytes, size_t *size, uint32_t *adler,
                        struct error *error)
{
    *bytes = png->data.data + ZLIB_HEAD;
    *size = png->data.size - ZLIB_HEAD - ZLIB_TAIL;
    *adler = big32(*bytes + *size);
    return stub_works_png(error);
}
