/* SPDX-License-Identifier: MIT
 *
 * PNG on the GPU of stub_device.c: the functions of png/png_gpu.h by the codec of the CPU, which makes the same
 * bytes. The stream is taken out of its file, or gets a file around it. */
#include "codec/codec.h"
#include "container/png.h"
#include "container/zlib.h"
#include "png/png_gpu.h"
#include "tests/lib/stub_device.h"

#include <stdlib.h>
#include <string.h>

struct device_png {
    uint8_t *loaded; /* a stream of this size */
    size_t loaded_size;
    bool is_decoded;
    uint8_t *file;
    struct png_chunk data; /* in the file; a small one has only one IDAT chunk */
    uint8_t *downloaded;
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
    free(png->loaded);
    free(png->file);
    free(png->downloaded);
    free(png);
}

bool device_png_reserve(struct device_png *png, size_t size, uint8_t **bytes, struct error *error)
{
    free(png->loaded);
    *bytes = png->loaded = malloc(size);
    png->loaded_size = size;
    return stub_works_png(error);
}

/* Append the chunks before the data. */
static bool append_head(struct blob *file, const struct png_layout *layout)
{
    const bool has_colour = layout->paletted || layout->channels > 2, has_alpha = layout->channels % 2 == 0;
    uint8_t header[PNG_HEADER_DATA] = {0}, colours[3 * PNG_PALETTE_MAX], alphas[PNG_PALETTE_MAX];
    put_big32(header, (uint32_t)layout->width);
    put_big32(header + 4, (uint32_t)layout->height);
    header[8] = (uint8_t)layout->bits;
    header[9] = (uint8_t)(layout->paletted * PNG_PALETTE + has_colour * PNG_COLOUR + has_alpha * PNG_ALPHA);
    for (int i = 0; i < PNG_PALETTE_MAX; i++) {
        memcpy(&colours[3 * i], layout->palette[i], 3);
        alphas[i] = layout->palette[i][3];
    }
    for (int i = 0; i < 3 && !layout->paletted; i++) {
        alphas[2 * i] = (uint8_t)(layout->key[i] >> 8);
        alphas[2 * i + 1] = (uint8_t)layout->key[i];
    }
    const size_t size = layout->paletted ? sizeof alphas : 2 * (size_t)layout->channels;
    return blob_append(file, png_signature, sizeof png_signature) &&
           png_chunk_append(file, "IHDR", header, sizeof header) &&
           (!layout->paletted || png_chunk_append(file, "PLTE", colours, sizeof colours)) &&
           (!layout->transparent || png_chunk_append(file, "tRNS", alphas, size));
}

bool device_png_decode(struct device_png *png, const struct png_layout *layout, uint8_t *samples, struct error *error)
{
    const struct codec_settings settings = {0};
    struct image image = {0};
    struct blob file = {0};
    png->is_decoded = append_head(&file, layout) && png_chunk_append(&file, "IDAT", png->loaded, png->loaded_size) &&
                      png_chunk_append(&file, "IEND", NULL, 0) &&
                      codec_decode(file.bytes, file.size, "stream", &settings, &image, NULL, NULL);
    if (png->is_decoded)
        memcpy(samples, image.samples, image_bytes(&image));
    image_free(&image);
    blob_free(&file);
    return stub_works_png(error);
}

bool device_png_decoded(struct device_png *png, bool *is_decoded, struct error *error)
{
    *is_decoded = png->is_decoded;
    return stub_works_png(error);
}

bool device_png_encode(struct device_png *png, const struct png_layout *layout, const uint8_t *samples,
                       struct error *error)
{
    const struct image image = {.width = layout->width,
                                .height = layout->height,
                                .channels = layout->channels,
                                .bits = layout->bits,
                                .samples = (uint8_t *)samples};
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    size_t size;
    free(png->file);
    if (!codec_encode(&image, format_of(FORMAT_PNG), &settings, &png->file, &size, error))
        return false;
    struct png_walk walk = png_walk_begin(png->file, size);
    while (png_walk_next(&walk, &png->data) == PNG_STEP_CHUNK && !png_chunk_is(&png->data, "IDAT"))
        continue;
    return stub_works_png(error);
}

bool device_png_encoded(struct device_png *png, size_t margin, uint8_t **bytes, size_t *size, uint32_t *adler,
                        struct error *error)
{
    const uint8_t *data = png->data.data + ZLIB_HEAD;
    *size = png->data.size - ZLIB_HEAD - ZLIB_TAIL;
    *adler = big32(data + *size);
    free(png->downloaded);
    png->downloaded = malloc(*size + 2 * margin);
    if (png->downloaded == NULL)
        return error_no_memory(error, "a stream");
    *bytes = memcpy(png->downloaded + margin, data, *size);
    return stub_works_png(error);
}
