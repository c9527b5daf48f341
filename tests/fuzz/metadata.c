/* SPDX-License-Identifier: MIT
 *
 * Fuzz metadata: those of any file are written into a file of each format and read again. That must be a fixed point.
 * Metadata that were written once are neither damaged nor dropped, and stay the same when they are written again. */
#include "metadata/metadata.h"
#include "codec/codec.h"
#include "image/image.h"

#include "fuzz.h"
#include "tests/lib/png_chunks.h"

#include <string.h>

/* Encode a picture of 3 x 2 pixels to hold metadata. Release *BYTES with free. */
static void encode(const struct format *format, bool grey, uint8_t **bytes, size_t *size)
{
    static struct blob made[FORMAT_COUNT][2]; /* encoded once, because that takes the most time */
    struct blob *blob = &made[format->id][grey];
    if (blob->bytes == NULL) {
        uint8_t samples[18] = {0, 255};
        const struct image image = {.width = 3, .height = 2, .channels = grey ? 1 : 3, .bits = 8, .samples = samples};
        const struct codec_settings settings = {.quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION};
        struct error error;
        CHECK(codec_encode(&image, format, &settings, &blob->bytes, &blob->size, &error));
    }
    *size = blob->size;
    *bytes = malloc(blob->size);
    CHECK(*bytes != NULL);
    memcpy(*bytes, blob->bytes, blob->size);
}

static bool same_blob(const struct blob *a, const struct blob *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

static void check_same(const struct metadata *a, const struct metadata *b)
{
    CHECK(same_blob(&a->icc, &b->icc));
    CHECK(same_blob(&a->exif, &b->exif));
    CHECK(same_blob(&a->xmp, &b->xmp));
    CHECK(same_blob(&a->iptc, &b->iptc));
    CHECK(same_blob(&a->texts, &b->texts));
    CHECK(a->has_gamma == b->has_gamma && memcmp(a->gamma, b->gamma, sizeof a->gamma) == 0);
    CHECK(a->has_chromaticities == b->has_chromaticities);
    CHECK(memcmp(a->chromaticities, b->chromaticities, sizeof a->chromaticities) == 0);
    CHECK(a->has_coding == b->has_coding && memcmp(a->coding, b->coding, sizeof a->coding) == 0);
    CHECK(a->has_srgb == b->has_srgb && (!a->has_srgb || a->intent == b->intent));
    CHECK(a->resolution.unit == b->resolution.unit);
    CHECK(a->resolution.horizontal == b->resolution.horizontal && a->resolution.vertical == b->resolution.vertical);
    CHECK(a->orientation == b->orientation);
}

/* Write METADATA into a new file of FORMAT and read them again. The file must be intact. */
static uint64_t pass_on(const struct metadata *metadata, const struct format *format, bool grey, struct metadata *again)
{
    struct error error;
    struct codec_info info;
    uint64_t dropped;
    uint8_t *bytes;
    size_t size;
    encode(format, grey, &bytes, &size);
    const size_t before = size;
    CHECK(format->write_metadata(metadata, &bytes, &size, &dropped, &error));
    CHECK(size >= before);
    CHECK(codec_inspect(bytes, size, "fuzz", NULL, &info, &error));
    CHECK(info.format == format && info.width == 3 && info.height == 2);
    *again = (struct metadata){.max = METADATA_PART_MAX, .keep_text = true};
    CHECK(format->read_metadata(bytes, size, again, &error));
    CHECK(again->dropped == 0);
    free(bytes);
    return dropped;
}

static void check_format(const struct metadata *metadata, const struct format *source, const struct format *format,
                         bool grey)
{
    struct metadata once, twice;
    const uint64_t dropped = pass_on(metadata, format, grey, &once);
    const bool is_tiff = format->id == FORMAT_TIFF; /* its EXIF has the sides of the picture, and its resolution */
    if (format == source && dropped == 0 && !is_tiff)
        check_same(metadata, &once);
    if (dropped == 0 || format->id == FORMAT_PNG) { /* a PNG holds all parts but an unfit profile */
        CHECK(same_blob(&metadata->exif, &once.exif) || is_tiff || metadata->exif.size == 0); /* or made */
        CHECK(same_blob(&metadata->xmp, &once.xmp) || metadata->texts.size > 0);              /* which XMP has then */
        CHECK(same_blob(&metadata->iptc, &once.iptc));
    }
    CHECK(pass_on(&once, format, grey, &twice) == 0);
    check_same(&once, &twice);
    metadata_free(&once);
    metadata_free(&twice);
}

/* Check METADATA in all formats that hold metadata. */
static void check_formats(const struct metadata *metadata, const struct format *source, bool grey)
{
    for (int id = 0; id < FORMAT_COUNT; id++) {
        const struct format *format = format_of((enum format_id)id);
        if (format->id == FORMAT_AVIF && metadata->orientation > 1) /* its picture is turned without EXIF */
            continue;
        if (format->write_metadata != metadata_write_none && codec_is_available(format))
            check_format(metadata, source, format, grey);
    }
}

/* Whatever names the curve, its tables rise, and what cannot be read comes before what is used. */
static void check_curve(const struct metadata *metadata, bool grey)
{
    static struct linear *linear;
    unsigned unread;
    if (linear == NULL)
        linear = linear_allocate(NULL);
    CHECK(linear != NULL);
    const enum curve_source source = metadata_set_linear(metadata, grey, 8, linear, &unread);
    CHECK(source <= CURVE_ASSUMED && unread < 1u << source && metadata_curve_name(source) != NULL);
    CHECK(linear->count == 1 || (linear->count == 3 && !grey));
    for (int c = 0; c < linear->count; c++) {
        const struct linear_tables *tables = linear_of(linear, c);
        for (int v = 1; v < 256; v++)
            CHECK(tables->from8[v] >= tables->from8[v - 1]);
        for (int w = 1; w < 65536; w += 97)
            CHECK(tables->to8[w] >= tables->to8[w - 1]);
    }
}

/* Metadata that are turned upright say so, and are as stable as before. */
static void check_upright(struct metadata *metadata, const struct format *source)
{
    struct image image;
    struct chroma_subsampling chroma = {2, 1};
    struct error error;
    const int orientation = metadata->orientation;
    CHECK(orientation >= 1 && orientation <= 8);
    CHECK(image_allocate(&image, 3, 2, 1, 8, &error));
    memset(image.samples, 0, image_samples(&image));
    CHECK(metadata_orient(metadata, &image, &chroma, &error));
    CHECK(image.width == (orientation >= 5 ? 2 : 3) && image.height == (orientation >= 5 ? 3 : 2));
    CHECK(chroma.horizontal == (orientation >= 5 ? 1 : 2));
    CHECK(metadata->orientation == 1);
    image_free(&image);
    check_formats(metadata, source, false);
}

static void check_file(const uint8_t *data, size_t size, const struct codec_info *info, bool keep_text)
{
    struct error error;
    struct metadata metadata = {.max = METADATA_PART_MAX, .keep_text = keep_text};
    char text[512];
    CHECK(info->format->read_metadata(data, size, &metadata, &error));
    CHECK(metadata_bytes(&metadata) <= METADATA_MAX);
    CHECK(keep_text || (metadata.text_bytes <= METADATA_TEXTS_MAX && metadata.texts.size <= METADATA_TEXTS_MAX));
    metadata_print_dropped(metadata.dropped, text, sizeof text);
    CHECK((metadata.dropped == 0) == (text[0] == '\0') && strlen(text) + 1 < sizeof text);
    for (int grey = 0; grey < 2; grey++) {
        check_formats(&metadata, info->format, grey);
        check_curve(&metadata, grey);
    }
    check_upright(&metadata, info->format);
    metadata_free(&metadata);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct codec_info info;
    for (int keep_text = 0; codec_inspect(data, size, "fuzz", NULL, &info, &error) && keep_text < 2; keep_text++)
        check_file(data, size, &info, keep_text);
    return 0;
}

#ifdef GPUCONV_LIBFUZZER

/* The checksums of a changed PNG are wrong, and gpuconv would refuse it before it reads anything else: repair them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    (void)seed;
    size = LLVMFuzzerMutate(data, size, capacity);
    if (is_png(data, size))
        png_mend_checksums(data, size);
    return size;
}

#endif
