/* SPDX-License-Identifier: MIT
 *
 * JPEG on the GPU of stub_device.c: the functions of kernels/jpeg/jpeg.h by those of the CPU, which make the same
 * bytes. */
#include "codec/codec.h"
#include "image/rows.h"
#include "jpeg/jpeg.h"
#include "kernels/jpeg/jpeg.h"
#include "tests/lib/stub_device.h"

#include <stdlib.h>
#include <string.h>

struct device_jpeg {
    struct jpeg_scan loaded;
    bool is_decoded;
    struct jpeg_scan encoded;
    uint8_t *file; /* around it */
};

bool device_jpeg_open(struct device *device, struct device_jpeg **jpeg, struct error *error)
{
    (void)device;
    *jpeg = calloc(1, sizeof **jpeg);
    return stub_works_jpeg(error);
}

void device_jpeg_close(struct device_jpeg *jpeg)
{
    if (jpeg == NULL)
        return;
    free(jpeg->file);
    free(jpeg);
}

bool device_jpeg_load(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                      struct error *error)
{
    (void)layout;
    jpeg->loaded = *scan;
    return stub_works_jpeg(error);
}

/* Is LAYOUT plain? Other files are left to the CPU. */
static bool is_plain(const struct jpeg_layout *layout)
{
    bool is_small = layout->restart_interval == 0;
    for (int i = 0; i < layout->component_count; i++) {
        const struct jpeg_component *component = &layout->components[i];
        is_small = is_small && component->quantiser < 2 && component->dc < 2 && component->ac < 2;
        for (int k = 0; k < JPEG_BLOCK; k++)
            is_small = is_small && layout->tables.quantisers[component->quantiser][k] < 256;
    }
    return is_small;
}

bool device_jpeg_decode(struct device_jpeg *jpeg, const struct jpeg_layout *layout, uint8_t *samples,
                        struct error *error)
{
    struct jpeg_index *index = is_plain(layout) ? jpeg_index_open(layout, &jpeg->loaded, NULL) : NULL;
    uint8_t *planes = malloc(jpeg_planes_bytes(layout) * (size_t)layout->mcus_down);
    jpeg->is_decoded = index != NULL && planes != NULL;
    if (jpeg->is_decoded) {
        const struct rows rows = {.data = planes};
        jpeg_decode_band(index, 0, layout->height, planes);
        jpeg_convert_band(index, 0, layout->height, &rows, samples);
    }
    free(planes);
    jpeg_index_free(index);
    return stub_works_jpeg(error);
}

bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error)
{
    *is_decoded = jpeg->is_decoded;
    return stub_works_jpeg(error);
}

/* The quality whose quantisers LAYOUT has. */
static int find_quality(const struct jpeg_layout *layout)
{
    struct jpeg_layout other;
    int quality = 100;
    do
        jpeg_layout_for_writing(&other, layout->width, layout->height, layout->component_count,
                                (struct chroma_subsampling){layout->horizontal, layout->vertical}, quality);
    while (memcmp(other.tables.quantisers, layout->tables.quantisers, sizeof other.tables.quantisers) != 0 &&
           --quality > 1);
    return quality;
}

bool device_jpeg_encode(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct image *image,
                        struct error *error)
{
    const struct codec_settings settings = {.quality = find_quality(layout),
                                            .chroma_subsampling = {layout->horizontal, layout->vertical}};
    struct codec_info info;
    size_t size;
    free(jpeg->file);
    if (!codec_encode(image, format_of(FORMAT_JPEG), &settings, &jpeg->file, &size, error) ||
        !codec_inspect(jpeg->file, size, "scan", NULL, &info, error))
        return false;
    jpeg->encoded = (struct jpeg_scan){jpeg->file + info.jpeg.scan, info.jpeg.scan_size};
    return stub_works_jpeg(error);
}

bool device_jpeg_encoded(struct device_jpeg *jpeg, const uint8_t **bytes, size_t *size, struct error *error)
{
    *bytes = jpeg->encoded.bytes;
    *size = jpeg->encoded.size;
    return stub_works_jpeg(error);
}
