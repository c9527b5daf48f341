/* SPDX-License-Identifier: MIT
 *
 * Fuzz an image's way through gpuconv. Any bytes are decoded, filtered, encoded and decoded again, or refused with one
 * sentence. codec_inspect and codec_decode must agree. A PNG or PAM must keep all samples, other formats their size.
 * Every codec is tried. The fast CPU variant must return the reference's bytes, with 8 and 16 bits a sample. */
#include "codec/codec.h"
#include "filter/filter.h"
#include "image/linear.h"
#include "plan/plan.h"
#include "variants/table.h"

#include "fuzz.h"
#include "tests/lib/png_chunks.h"

#include <libdeflate.h>
#include <string.h>

/* Larger images find no other faults and take longer, so the limit keeps runs fast. mutate.c allows photos. */
#ifndef MAX_SAMPLES
#define MAX_SAMPLES (1 << 15)
#endif
enum { MAX_FILTERED = 1 << 13 };

/* libheif 1.15 does not release the decoder of a damaged picture. Only its libraries are written in C++. */
const char *__lsan_default_suppressions(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libheif\nleak:libdav1d\nleak:libde265\nleak:libstdc++\n";
}

/* All calls of the codecs are in these two functions. CODEC may be NULL: then the codec is chosen. */
static bool decode(const uint8_t *bytes, size_t size, const struct codec *codec, struct image *image,
                   struct codec_info *info, struct error *error)
{
    const struct codec_settings settings = {.codec = codec};
    return codec_decode(bytes, size, "fuzz", &settings, image, info, error);
}

static bool encode(const struct image *image, const struct format *format, const struct codec *codec, int quality,
                   uint8_t **bytes, size_t *size)
{
    const struct codec_settings settings = {.codec = codec, .quality = quality, .compression = CODEC_COMPRESSION};
    struct error error;
    return codec_encode(image, format, &settings, bytes, size, &error);
}

#ifdef __x86_64__
static const bool is_x86 = true;
#else
static const bool is_x86 = false;
#endif

static void check_error(const struct error *error)
{
    CHECK(error->code == ERROR_WORK);
    CHECK(error->message[0] != '\0' && strlen(error->message) < sizeof error->message);
    CHECK(strchr(error->message, '\n') == NULL);
}

/* Encode with CODEC, and decode with the codec that is chosen. */
static void check_round_trip(const struct image *image, const struct format *format, const struct codec *codec,
                             int quality)
{
    struct error error = {.code = ERROR_NONE};
    struct codec_info info;
    struct image again;
    uint8_t *bytes;
    size_t size;
    const bool done = encode(image, format, codec, quality, &bytes, &size);
    CHECK(done || (image->channels >= 3 && !format->holds_colour));
    if (!done)
        return;
    CHECK(decode(bytes, size, NULL, &again, &info, &error));
    CHECK((info.format == format || format->magics[0] == NULL) && again.width == image->width &&
          again.height == image->height);
    if (!format->is_lossy && format->holds_alpha) {
        CHECK(again.channels == image->channels && again.bits == image->bits);
        CHECK(memcmp(again.samples, image->samples, image_bytes(image)) == 0);
    }
    image_free(&again);
    free(bytes);
}

/* Decode with every codec that reads the format. One may refuse a file that another accepts, but all decode a file
 * without losses to the same samples. What may decline a JPEG decodes it as its substitute would, which has made
 * IMAGE; libjpeg-turbo's code for other processors makes other samples of numbers that overflow. */
static void check_codecs(const uint8_t *data, size_t size, const struct codec_info *inspected,
                         const struct image *image)
{
    size_t count;
    const struct codec *table = codecs(&count);
    for (size_t i = 0; i < count; i++) {
        struct error error = {.code = ERROR_NONE};
        struct image other;
        if (!codec_is_built_in(&table[i]) || !codec_reads(&table[i], inspected->format))
            continue;
        if (!decode(data, size, &table[i], &other, NULL, &error)) {
            check_error(&error);
            CHECK(other.samples == NULL);
            continue;
        }
        CHECK(other.width == inspected->width && other.height == inspected->height);
        CHECK(other.channels == inspected->channels && other.bits == inspected->bits);
        if (image != NULL && (!inspected->format->is_lossy || (table[i].may_fall_back && is_x86)))
            CHECK(memcmp(other.samples, image->samples, image_bytes(image)) == 0);
        image_free(&other);
    }
}

/* Filter the image by both CPU variants, as it is or in linear light. */
static void check_filter(struct image *image, const char *spec, enum border border, enum alpha alpha, bool in_light)
{
    static struct filter filter; /* too large for the stack of a thread */
    static struct linear *tables;
    struct plane in, out[2];
    struct error error;
    const int planes = image_planes(image, alpha);
    const enum sample sample = in_light || image->bits == 16 ? SAMPLE_U16 : SAMPLE_U8;
    if (in_light && tables == NULL) {
        tables = linear_allocate(&error);
        CHECK(tables != NULL);
        CHECK(linear_set(tables, &curve_srgb, 1, 8) && linear_set(tables, &curve_srgb, 1, 16));
    }
    const struct linear *linear = in_light ? tables : NULL;
    CHECK(filter_find(spec, &filter, NULL, &error));
    CHECK(plane_allocate(&in, sample, image->width, image->height, planes, &error));
    image_split(image, alpha, linear, &in);
    for (int i = 0; i < 2; i++) {
        const struct variant *variant = variant_find(i == 0 ? "reference" : "cpu", &error);
        struct plan plan;
        CHECK(variant != NULL && variant_plan(&plan, &filter, border, sample, variant, &error));
        CHECK(plane_allocate(&out[i], sample, image->width, image->height, planes, &error));
        CHECK(variant_prepare(&plan, NULL, &error));
        CHECK(variant_launch(&plan, NULL, &in, &out[i], &error));
        plan_free(&plan);
    }
    for (int p = 0; p < planes; p++)
        for (int y = 0; y < image->height; y++)
            CHECK(memcmp((uint8_t *)out[0].data + (size_t)p * out[0].plane_bytes + (size_t)y * out[0].row_bytes,
                         (uint8_t *)out[1].data + (size_t)p * out[1].plane_bytes + (size_t)y * out[1].row_bytes,
                         (size_t)image->width * sample_bytes(sample)) == 0);
    image_merge(&out[1], alpha, linear, image);
    plane_free(&in);
    plane_free(&out[0]);
    plane_free(&out[1]);
}

/* Read another page, with its metadata, or have it refused; twice alike. */
static void check_page(const uint8_t *data, size_t size)
{
    const struct codec_settings settings = {.page = 1 + (int)(size % 4)};
    struct metadata metadata = {.max = 1 << 16, .page = settings.page};
    struct error error = {.code = ERROR_NONE};
    struct codec_info info;
    struct image images[2];
    const bool done = codec_inspect(data, size, "fuzz", &settings, &info, &error);
    CHECK(done || error.code == ERROR_WORK);
    if (!done || (int64_t)info.width * info.height * info.channels > MAX_SAMPLES)
        return;
    CHECK(info.page == settings.page && info.page <= info.pages);
    CHECK(info.format->read_metadata(data, size, &metadata, &error));
    metadata_free(&metadata);
    const bool decoded = codec_decode(data, size, "fuzz", &settings, &images[0], NULL, &error);
    CHECK(codec_decode(data, size, "fuzz", &settings, &images[1], NULL, &error) == decoded);
    CHECK(!decoded || (images[0].width == info.width && images[0].height == info.height));
    CHECK(!decoded || memcmp(images[0].samples, images[1].samples, image_bytes(&images[0])) == 0);
    image_free(&images[0]);
    image_free(&images[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const specs[] = {"sharpen",    "blur",     "shift",       "emboss", "box9",
                                        "gaussian:2", "identity", "motion:9:30", "log:1",  "sobel-x"};
    struct error error = {.code = ERROR_NONE};
    struct codec_info inspected, decoded;
    struct image image;
    check_page(data, size);
    if (!codec_inspect(data, size, "fuzz", NULL, &inspected, &error)) {
        check_error(&error);
        CHECK(!decode(data, size, NULL, &image, &decoded, &error) && image.samples == NULL);
        return 0;
    }
    if ((int64_t)inspected.width * inspected.height * inspected.channels > MAX_SAMPLES)
        return 0;
    if (!decode(data, size, NULL, &image, &decoded, &error)) {
        check_error(&error);
        CHECK(image.samples == NULL);
        check_codecs(data, size, &inspected, NULL);
        return 0;
    }
    CHECK(image.width == inspected.width && image.height == inspected.height && image.channels == inspected.channels);
    CHECK(decoded.width == inspected.width && decoded.height == inspected.height && decoded.format == inspected.format);
    CHECK(image.channels >= 1 && image.channels <= 4 && image.bits == inspected.bits);

    /* No sample may be uninitialised memory: the same bytes decode to the same samples. */
    struct image twice;
    CHECK(decode(data, size, NULL, &twice, NULL, &error));
    CHECK(memcmp(image.samples, twice.samples, image_bytes(&image)) == 0);
    image_free(&twice);
    check_codecs(data, size, &inspected, &image);

    const uint32_t chance = libdeflate_crc32(0, data, size); /* all choices depend only on the input */
    if (image_samples(&image) <= MAX_FILTERED)
        check_filter(&image, specs[chance % (sizeof specs / sizeof *specs)], (enum border)(chance >> 8) % BORDER_COUNT,
                     (enum alpha)((chance >> 16) % 3), chance >> 18 & 1);
    size_t count;
    const struct codec *table = codecs(&count);
    for (size_t i = 0; i < count; i++)
        for (int id = 0; id < FORMAT_COUNT; id++) {
            const struct format *format = format_of((enum format_id)id);
            if (format->id == FORMAT_AVIF && chance % 64 != 0) /* it takes a thousand times as long as others */
                continue;
            if (codec_is_built_in(&table[i]) &&
                codec_find_writer(format, &(struct image){.bits = image.bits},
                                  &(struct codec_settings){&table[i], .compression = 1}, NULL))
                check_round_trip(&image, format, &table[i], 1 + (int)(chance >> 20) % 100);
        }
    image_free(&image);
    return 0;
}

#ifdef GPUCONV_LIBFUZZER

/* ---- Mutations that keep a PNG whole ---- */

/* The checksums of a changed PNG are wrong, so gpuconv would refuse it before it reads anything else. This mutator
 * repairs the checksums. It changes the samples before as well as after compression. */

enum { MAX_RAW = 1 << 16 }; /* bytes of samples */

/* Inflate the samples, change them, and deflate them into one IDAT chunk instead of the first. Returns the new
 * size, or 0. */
static size_t mutate_picture(uint8_t *data, size_t size, size_t capacity)
{
    static uint8_t packed[MAX_RAW], raw[MAX_RAW], rest[1 << 20];
    size_t packed_size = 0, first = 0, length, after = 0, raw_size;
    for (size_t at = PNG_SIGNATURE; (length = png_chunk_length(data, size, at)) != SIZE_MAX;
         at += PNG_OVERHEAD + length) {
        if (memcmp(data + at + 4, "IDAT", 4) != 0)
            continue;
        if (length > sizeof packed - packed_size)
            return 0;
        memcpy(packed + packed_size, data + at + PNG_DATA, length);
        packed_size += length;
        first = first != 0 ? first : at;
        after = at + PNG_OVERHEAD + length;
    }
    if (packed_size < 6 || size - after > sizeof rest)
        return 0;
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    CHECK(decompressor != NULL);
    const bool inflated = libdeflate_deflate_decompress(decompressor, packed + 2, packed_size - 2, raw, sizeof raw,
                                                        &raw_size) == LIBDEFLATE_SUCCESS;
    libdeflate_free_decompressor(decompressor);
    if (!inflated)
        return 0;
    raw_size = LLVMFuzzerMutate(raw, raw_size, sizeof raw);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    CHECK(compressor != NULL);
    packed_size = libdeflate_zlib_compress(compressor, raw, raw_size, packed, sizeof packed);
    libdeflate_free_compressor(compressor);
    if (packed_size == 0 || first + PNG_OVERHEAD + packed_size + (size - after) > capacity)
        return 0;
    memcpy(rest, data + after, size - after);
    png_put32(data + first, (uint32_t)packed_size);
    memcpy(data + first + 4, "IDAT", 4);
    memcpy(data + first + PNG_DATA, packed, packed_size);
    memcpy(data + first + PNG_OVERHEAD + packed_size, rest, size - after);
    return first + PNG_OVERHEAD + packed_size + (size - after);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    const bool png = is_png(data, size);
    size_t changed = png && seed % 3 == 0 ? mutate_picture(data, size, capacity) : 0;
    if (changed == 0)
        changed = LLVMFuzzerMutate(data, size, capacity);
    if (png && seed % 16 != 1) /* sometimes keep a wrong checksum */
        png_mend_checksums(data, changed);
    return changed;
}

#endif
