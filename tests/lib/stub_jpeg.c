/* SPDX-License-Identifier: MIT
 *
 * JPEG on the GPU of stub_device.c: the functions of jpeg/jpeg_gpu.h by those of the CPU, which make the same
 * bytes. */
#include "codec/codec.h"
#include "jpeg/jpeg.h"
#include "jpeg/jpeg_gpu.h"
#include "tests/lib/stub_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device_jpeg {
    const struct jpeg_input *inputs;
    size_t count;
    bool *is_decoded; /* for each input: is it decoded? */
    size_t encoded_count;
    struct encoded {
        uint8_t *data;
        struct jpeg_scan scan; /* in it, with the margins */
    } * encoded;
};

bool device_jpeg_open(struct device *device, int mark, struct device_jpeg **jpeg, struct error *error)
{
    (void)device, (void)mark;
    *jpeg = calloc(1, sizeof **jpeg);
    return stub_works_jpeg(error);
}

static void forget_encoded(struct device_jpeg *jpeg)
{
    for (size_t i = 0; i < jpeg->encoded_count; i++)
        free(jpeg->encoded[i].data);
    free(jpeg->encoded);
    jpeg->encoded = NULL;
    jpeg->encoded_count = 0;
}

void device_jpeg_close(struct device_jpeg *jpeg)
{
    if (jpeg == NULL)
        return;
    free(jpeg->is_decoded);
    forget_encoded(jpeg);
    free(jpeg);
}

bool device_jpeg_reserve(struct device_jpeg *jpeg, const struct jpeg_input *inputs, size_t count, struct error *error)
{
    free(jpeg->is_decoded);
    jpeg->inputs = inputs;
    jpeg->count = count;
    jpeg->is_decoded = calloc(count, sizeof *jpeg->is_decoded);
    return (jpeg->is_decoded != NULL || error_no_memory(error, "pictures")) && stub_works_jpeg(error);
}

void device_jpeg_load(struct device_jpeg *jpeg, size_t index)
{
    (void)jpeg;
    (void)index;
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

/* An interleaved image with the layout of the caller's planes. */
static struct image planes_of(const struct image *image, uint8_t *samples, size_t plane)
{
    struct image planes = *image;
    planes.samples = samples;
    if (plane != 0) {
        planes.row_stride = (size_t)image->width;
        planes.pixel_stride = 1;
        planes.channel_stride = plane;
    }
    return planes;
}

static void copy_planes(const struct jpeg_layout *layout, uint8_t *samples, const struct jpeg_input *input)
{
    const struct image from = {.width = layout->width,
                               .height = layout->height,
                               .channels = layout->component_count,
                               .bits = 8,
                               .samples = samples},
                       to = planes_of(&from, input->samples, input->plane);
    image_copy(&from, &to);
}

static bool decode(const struct jpeg_input *input)
{
    const struct jpeg_layout *layout = input->layout;
    struct jpeg_index *index = is_plain(layout) ? jpeg_index_open(layout, &input->scan, NULL) : NULL;
    uint8_t *planes = malloc(jpeg_planes_bytes(layout) * (size_t)layout->mcus_down);
    uint8_t *samples = malloc((size_t)layout->width * (size_t)layout->height * (size_t)layout->component_count);
    const bool is_decoded = index != NULL && planes != NULL && samples != NULL;
    if (is_decoded) {
        const struct jpeg_planes all = {.band = planes};
        jpeg_decode_band(index, 0, layout->height, planes);
        jpeg_convert_band(index, 0, layout->height, &all, samples);
        copy_planes(layout, samples, input);
    }
    free(samples);
    free(planes);
    jpeg_index_free(index);
    return is_decoded;
}

bool device_jpeg_decode(struct device_jpeg *jpeg, struct error *error)
{
    for (size_t i = 0; i < jpeg->count; i++)
        jpeg->is_decoded[i] = decode(&jpeg->inputs[i]);
    return stub_works_jpeg(error);
}

bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error)
{
    memcpy(is_decoded, jpeg->is_decoded, jpeg->count * sizeof *is_decoded);
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

static bool encode(const struct jpeg_output *output, struct encoded *encoded, struct error *error)
{
    const struct jpeg_layout *layout = output->layout;
    const struct codec_settings settings = {.quality = find_quality(layout),
                                            .chroma_subsampling = {layout->horizontal, layout->vertical}};
    const struct image image = {.width = layout->width,
                                .height = layout->height,
                                .channels = output->channels,
                                .bits = 8,
                                .samples = (uint8_t *)output->samples},
                       planes = planes_of(&image, image.samples, output->plane);
    struct image packed;
    struct codec_info info;
    uint8_t *file = NULL;
    size_t size;
    if (!image_allocate(&packed, image.width, image.height, image.channels, 8, error))
        return false;
    image_copy(&planes, &packed);
    bool done = codec_encode(&packed, format_of(FORMAT_JPEG), &settings, &file, &size, error) &&
                codec_inspect(file, size, "scan", NULL, &info, error);
    image_free(&packed);
    if (done) {
        encoded->data = malloc(info.jpeg.scan_size + 2 * output->margin);
        done = encoded->data != NULL || error_no_memory(error, "a scan");
    }
    if (done)
        encoded->scan = (struct jpeg_scan){
            memcpy(encoded->data + output->margin, file + info.jpeg.scan, info.jpeg.scan_size), info.jpeg.scan_size};
    free(file);
    return done;
}

/* Add to the file $GPUCONV_STUB_GROUPS how many pictures are encoded at once. */
static void note_group(size_t count)
{
    const char *name = getenv("GPUCONV_STUB_GROUPS");
    FILE *file = name != NULL ? fopen(name, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%zu\n", count);
    fclose(file);
}

bool device_jpeg_encode(struct device_jpeg *jpeg, const struct jpeg_output *outputs, size_t count, struct error *error)
{
    note_group(count);
    forget_encoded(jpeg);
    jpeg->encoded = calloc(count, sizeof *jpeg->encoded);
    if (jpeg->encoded == NULL)
        return error_no_memory(error, "pictures");
    jpeg->encoded_count = count;
    for (size_t i = 0; i < count; i++)
        if (!encode(&outputs[i], &jpeg->encoded[i], error))
            return false;
    return stub_works_jpeg(error);
}

bool device_jpeg_encoded(struct device_jpeg *jpeg, struct jpeg_scan *scans, struct error *error)
{
    for (size_t i = 0; i < jpeg->encoded_count; i++)
        scans[i] = jpeg->encoded[i].scan;
    return stub_works_jpeg(error);
}
