/* SPDX-License-Identifier: MIT
 *
 * Check PNG on a GPU against the CPU, byte for byte: check_png --cuda [--quick | --cases NUMBER] [--seed NUMBER]. A
 * buffer of samples has exactly the size of the samples, so compute-sanitizer finds accesses beyond them. NUMBER is the
 * small pictures of each content and stream, 150 if it is not given.
 *
 * check_png --bench FILE... times the kernels with the pictures of PNG files. */
#include "check.h"

#include "base/bytes.h"
#include "base/random.h"
#include "codec/format.h"
#include "codec/gpu_codec.h"
#include "codecs/tests/png/deflate_streams.h"
#include "png/png.h"

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Pictures ---- */

enum content { NOISE, FLAT, PHOTO, SPARSE, TILES, LINES, MIXED, CONTENTS };

static const char *const content_names[CONTENTS] = {"noise", "flat", "photo", "sparse", "tiles", "lines", "mixed"};

/* Contents whose streams have literals only, runs, stored blocks, repetitions at many distances, and all of them. */
static uint8_t sample_of(enum content content, int x, int y, int byte, uint64_t key, uint64_t *state)
{
    const uint64_t random = random_next(state);
    switch (content) {
    case NOISE:
        return (uint8_t)(random >> 56);
    case FLAT:
        return (uint8_t)(key >> 8 * (unsigned)(byte % 8));
    case SPARSE: /* runs that end */
        return random % (2 + (key & 63)) == 0 ? (uint8_t)(random >> 56) : (uint8_t)key;
    case TILES: { /* the same small pictures again, side by side and in other places */
        const int side = 5 + (int)(key & 31);
        const uint64_t tile = ((uint64_t)(x / side) * 7 + (uint64_t)(y / side) * 13 + (key >> 8 & 1023)) % 5;
        const uint64_t mixed =
            (tile * 131 + (uint64_t)(x % side) * 17 + (uint64_t)(y % side) * 29 + (uint64_t)byte) * 0x9e3779b97f4a7c15u;
        return (uint8_t)((key >> 20 & 3) != 0 && (mixed >> 58) < 40 ? 0 : mixed >> 48);
    }
    case LINES: /* a row's bytes depend on the column alone, but for some */
        return (uint8_t)(random % 97 == 0 ? random >> 56 : ((uint64_t)x * 0x94d049bb133111ebu + (uint64_t)byte) >> 40);
    case MIXED:
        return sample_of((enum content)(((uint64_t)y / 40 + key) % MIXED), x, y, byte, key, state);
    case PHOTO:
    default: { /* slopes with some noise */
        const int slope = x * (1 + (int)(key & 3)) / 3 + y * (1 + (int)(key >> 2 & 3)) / 2 + byte * 40;
        const int noise = (int)(random >> 56) >> (3 + (key >> 4 & 3));
        return (uint8_t)((slope / 256 % 2 != 0 ? 255 - slope % 256 : slope % 256) + noise);
    }
    }
}

static struct image make_picture(enum content content, int width, int height, int channels, int bits, uint64_t *state)
{
    const uint64_t key = random_next(state);
    struct image image = {.width = width, .height = height, .channels = channels, .bits = bits};
    uint8_t *to = image.samples = allocate(image_bytes(&image));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int byte = 0; byte < (int)image_pixel_bytes(&image); byte++)
                *to++ = sample_of(content, x, y, byte, key, state);
    return image;
}

/* ---- One case ---- */

/* A stream of a thread, and its buffers. */
struct place {
    struct device *device;
    struct device_png *png;
    struct check_counts counts;
};

static void place_open(struct place *place)
{
    struct error error = {0};
    *place = (struct place){0};
    must(device_open(0, &place->device, &error) && device_png_open(place->device, &place->png, &error), &error);
}

static void place_close(struct place *place)
{
    device_png_close(place->png);
    device_close(place->device);
}

/* Encode IMAGE on the GPU, and compare with the CPU's file: a signature, IHDR, one IDAT chunk with a head of zlib and a
 * checksum, and IEND. */
static void check_picture(struct place *place, const struct image *image, const char *name)
{
    enum { STREAM_AT = 8 + 25 + 8 + 2, TAIL = 4 + 4 + 12, MARGIN = 100 };
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    struct image on_device = *image;
    struct error error = {0};
    uint8_t *stream = NULL, *file;
    size_t file_size, size = 0;
    uint32_t adler = 0;
    must(codec_encode(image, format_find_by_suffix("png"), &settings, &file, &file_size, &error), &error);
    struct workspace samples = {0};
    must(device_reserve(place->device, &samples, image_bytes(image), &error) &&
             device_upload(place->device, samples.bytes, image->samples, image_bytes(image), &error),
         &error);
    on_device.samples = samples.bytes;
    must(device_png_encode(place->png, &on_device, &error) &&
             device_png_encoded(place->png, MARGIN, &stream, &size, &adler, &error),
         &error);
    device_release(place->device, &samples);
    memset(stream - MARGIN, 0, MARGIN); /* it may be written */
    memset(stream + size, 0, MARGIN);
    const size_t expected = file_size - STREAM_AT - TAIL;
    size_t same = 0;
    while (same < size && same < expected && stream[same] == file[STREAM_AT + same])
        same++;
    if (size != expected || same != size || adler != big32(file + file_size - TAIL))
        fail("%s, %d x %d, %d channels of %d bits: %zu bytes, the CPU has %zu, equal up to byte %zu; checksum %08x, "
             "the CPU has %08x",
             name, image->width, image->height, image->channels, image->bits, size, expected, same, adler,
             big32(file + file_size - TAIL));
    free(file);
    place->counts.cases++;
}

/* Decode STREAM on the GPU. Returns the samples, or NULL if it is left to the CPU. */
static uint8_t *decode_on_gpu(struct place *place, const struct png_stream *stream, const struct png_layout *layout,
                              size_t sample_bytes)
{
    struct error error = {0};
    uint8_t *data, *result = NULL;
    struct workspace samples = {0};
    bool is_decoded = false;
    must(device_png_reserve(place->png, stream->size, &data, &error), &error);
    png_stream_copy(stream, 0, stream->size, data);
    must(device_reserve(place->device, &samples, sample_bytes, &error) &&
             device_png_decode(place->png, layout, samples.bytes, &error) &&
             device_png_decoded(place->png, &is_decoded, &error),
         &error);
    if (is_decoded) {
        result = allocate(sample_bytes);
        must(device_download(place->device, result, samples.bytes, sample_bytes, &error) &&
                 device_wait(place->device, &error),
             &error);
    }
    device_release(place->device, &samples);
    return result;
}

/* Give the samples of *FILE, a PNG of IMAGE, another meaning: fewer bits, a palette, a transparent colour. */
static void reinterpret(const struct image *image, uint8_t **file, size_t *size, uint64_t *state)
{
    enum { IHDR_AT = PNG_SIGNATURE, IDAT_AT = IHDR_AT + PNG_CHUNK_OVERHEAD + PNG_HEADER_DATA };
    uint8_t *header = *file + IHDR_AT + PNG_CHUNK_HEAD, random[3 * PNG_PALETTE_MAX], key[6];
    size_t colours = 0;
    struct blob out = {0};
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)random_next(state);
    if (image->channels == 1 && image->bits == 8) {
        const int bits = 1 << random_between(state, 0, 3), pixels = 8 / bits;
        const bool is_paletted = random_between(state, 0, 1) != 0;
        put_big32(header, (uint32_t)(image->width * pixels - random_between(state, 0, pixels - 1)));
        header[8] = (uint8_t)bits;
        header[9] = is_paletted ? PNG_COLOUR | PNG_PALETTE : 0;
        colours = is_paletted ? (size_t)1 << bits : 0;
        png_chunk_close(*file + IHDR_AT, "IHDR", PNG_HEADER_DATA);
    }
    for (int c = 0; c < image->channels % 4; c++) /* of the first pixel */
        put_big16(key + 2 * c,
                  image->bits == 16 ? ((const uint16_t *)image->samples)[c] : ((const uint8_t *)image->samples)[c]);
    bool is_done = blob_append(&out, *file, IDAT_AT);
    if (colours > 0)
        is_done = is_done && png_chunk_append(&out, "PLTE", random, 3 * colours);
    if (image->channels % 2 != 0 && random_between(state, 0, 1) != 0)
        is_done = is_done && png_chunk_append(&out, "tRNS", colours > 0 ? random : key,
                                              colours > 0 ? colours : 2 * (size_t)image->channels);
    if (!is_done || !blob_append(&out, *file + IDAT_AT, *size - IDAT_AT))
        fail("no memory");
    free(*file);
    *file = out.bytes;
    *size = out.size;
}

/* A file in parts: what comes before the data, the data, and the most bytes of a chunk of data. */
struct parts {
    const char *name;
    const uint8_t *head;
    size_t head_size;
    struct blob data; /* a stream of zlib */
    int chunk_max;
};

static struct blob join_parts(const struct parts *parts, uint64_t *state)
{
    struct blob file = {0};
    bool is_done = blob_append(&file, parts->head, parts->head_size);
    for (size_t at = 0, some; is_done && at < parts->data.size; at += some) {
        some = (size_t)random_between(state, 1, parts->chunk_max);
        some = some < parts->data.size - at ? some : parts->data.size - at;
        is_done = png_chunk_append(&file, "IDAT", parts->data.bytes + at, some);
    }
    if (!is_done || !png_chunk_append(&file, "IEND", NULL, 0))
        fail("no memory");
    return file;
}

/* Give the data of PARTS to another writer: other filters, blocks and chunks. Returns whether all filters are known. */
static bool write_as_others(struct parts *parts, const struct png_layout *layout, uint64_t *state)
{
    enum { HEAD = 2 };
    const size_t row = png_row_bytes(layout, (size_t)layout->width) + 1, size = row * (size_t)layout->height;
    const bool has_other_filters = random_between(state, 0, 1) != 0;
    uint8_t *rows = allocate(size), adler[4];
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL || libdeflate_zlib_decompress(decompressor, parts->data.bytes, parts->data.size, rows,
                                                           size, NULL) != LIBDEFLATE_SUCCESS)
        fail("%s: libdeflate does not inflate the stream", parts->name);
    libdeflate_free_decompressor(decompressor);
    for (size_t at = 0; has_other_filters && at < size; at += row) /* the picture becomes another one */
        rows[at] = (uint8_t)random_between(state, 0, PNG_FILTERS - 1);
    const bool has_unknown = random_between(state, 0, 9) == 0;
    if (has_unknown)
        rows[row * (size_t)random_between(state, 0, layout->height - 1)] =
            (uint8_t)(PNG_FILTERS + random_between(state, 0, 2));
    blob_free(&parts->data);
    uint8_t *const head = blob_extend(&parts->data, HEAD);
    if (head == NULL)
        fail("no memory");
    const unsigned method = 8 | (unsigned)(deflate_as_others(state, rows, size, &parts->data) - 8) << 4;
    parts->data.bytes[0] = (uint8_t)method;
    parts->data.bytes[1] = (uint8_t)(31 - (method << 8) % 31);
    put_big32(adler, libdeflate_adler32(1, rows, size));
    if (!blob_append(&parts->data, adler, sizeof adler))
        fail("no memory");
    free(rows);
    const int chunk_maxima[] = {parts->data.size < 20000 ? 1 : 300, 50, 8192, 1 << 20};
    parts->chunk_max = chunk_maxima[random_between(state, 0, 3)];
    return !has_unknown;
}

/* Decode the file on the CPU, and its stream on the GPU, as LAYOUT says. Returns whether the GPU decoded it. It must
 * not, if the CPU refuses the file; and the samples must be equal. */
static bool check_parts(struct place *place, const struct parts *parts, const struct png_layout *layout,
                        bool is_damaged, uint64_t *state)
{
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    struct blob file = join_parts(parts, state);
    const struct png_stream stream = {file.bytes + parts->head_size, parts->data.size};
    struct image expected = {0};
    struct error error = {0};
    const bool is_good = codec_decode(file.bytes, file.size, parts->name, &settings, &expected, NULL, &error);
    if (!is_good && !is_damaged)
        fail("%s", error.message);
    const size_t pixel_bytes = (size_t)png_layout_channels(layout) * (layout->bits == 16 ? 2 : 1);
    const size_t bytes = (size_t)layout->width * (size_t)layout->height * pixel_bytes;
    uint8_t *samples = decode_on_gpu(place, &stream, layout, bytes);
    const bool is_decoded = samples != NULL;
    if (is_decoded && (!is_good || memcmp(samples, expected.samples, bytes) != 0))
        fail("%s, %d x %d, %d channels of %d bits%s%s, %zu bytes of data%s: other samples", parts->name, layout->width,
             layout->height, layout->channels, layout->bits, layout->paletted ? ", a palette" : "",
             layout->transparent ? ", a transparent colour" : "", parts->data.size, is_damaged ? ", damaged" : "");
    free(samples);
    if (is_good)
        image_free(&expected);
    blob_free(&file);
    place->counts.cases++;
    return is_decoded;
}

/* Files of all levels and of other writers must give the CPU's samples, and damaged ones must not give wrong samples.
 * The GPU must decode our own files. It may leave other ones to the CPU, and counts these. */
static void check_file(struct place *place, const struct image *image, const char *name, bool is_ours, uint64_t *state)
{
    static const int levels[] = {0, 1, 1, 2, 6, 9};
    const struct codec_settings settings = {.compression = levels[random_between(state, 0, 5)]};
    struct codec_info info;
    struct png_layout layout;
    struct png_stream stream;
    struct image ignored;
    struct error error = {0};
    uint8_t *file;
    size_t size;
    must(codec_encode(image, format_find_by_suffix("png"), &settings, &file, &size, &error), &error);
    reinterpret(image, &file, &size, state);
    must(codec_decode(file, size, name, &settings, &ignored, &info, &error), &error);
    image_free(&ignored);
    const struct codec_input input = {file, size, name, &info, &settings};
    if (codec_find_stream(&input, &layout, &stream) == NULL)
        fail("not a file that a GPU reads");
    struct parts parts = {
        .name = name, .head = file, .head_size = (size_t)(stream.chunks - file), .chunk_max = 1 << 30};
    uint8_t *data = blob_extend(&parts.data, stream.size);
    if (data == NULL)
        fail("no memory");
    png_stream_copy(&stream, 0, stream.size, data);
    const bool is_good = is_ours || write_as_others(&parts, &layout, state);
    const bool is_decoded = check_parts(place, &parts, &layout, !is_good, state);
    if (is_ours && !is_decoded)
        fail("%s, %d x %d, level %d: not decoded", name, layout.width, layout.height, settings.compression);
    place->counts.others += !is_ours && is_good;
    place->counts.left += is_good && !is_decoded;
    for (int i = 0; i < 2; i++) {
        parts.data.bytes[random_between(state, 0, (int)parts.data.size - 1)] ^=
            (uint8_t)(1 << random_between(state, 0, 7));
        (void)check_parts(place, &parts, &layout, true, state);
    }
    blob_free(&parts.data);
    free(file);
}

static void check_size(struct place *place, enum content content, int width, int height, uint64_t *state)
{
    const int channels = random_between(state, 1, 4), bits = random_between(state, 0, 2) == 0 ? 16 : 8;
    struct image image = make_picture(content, width, height, channels, bits, state);
    check_picture(place, &image, content_names[content]);
    check_file(place, &image, content_names[content], true, state);
    check_file(place, &image, content_names[content], false, state);
    free(image.samples);
}

/* ---- The run ---- */

/* One with QUICK_CASES is a reduced set, for sanitizers. */
enum { CASES = 150, QUICK_CASES = 6 };

static struct check_counts run_cases(const struct check_options *options, bool has_large)
{
    const bool quick = options->quick;
    uint64_t state = options->seed;
    struct place place;
    place_open(&place);
    for (enum content content = 0; content < CONTENTS; content++) {
        for (int i = 0; i < options->cases; i++) {
            const int max = i % 3 == 0 ? 20 : i % 3 == 1 ? 200 : quick ? 300 : 700;
            const int width = random_between(&state, 1, i % 10 == 9 ? 3 : max);
            const int height = random_between(&state, 1, max > 100 ? max : 100); /* a warp has 32 rows */
            check_size(&place, content, width, height, &state);
        }
        for (int i = 0; i < (quick ? 1 : 4); i++) /* rows longer than a block, and than a band */
            check_size(&place, content, random_between(&state, 10000, quick ? 100000 : 300000),
                       random_between(&state, 1, 3), &state);
        if (has_large)
            check_size(&place, content, 2500, 1700, &state);
    }
    place_close(&place);
    return place.counts;
}

static struct check_counts run(const struct check_options *options)
{
    return run_cases(options, !options->quick);
}

static struct check_counts run_beside(const struct check_options *options)
{
    return run_cases(options, false);
}

int main(int argc, char **argv)
{
    static const struct codec_check check = {
        .usage = "usage: check_png --cuda [--quick | --cases NUMBER] [--seed NUMBER]\n"
                 "       check_png --bench FILE...\n",
        .seed = 20261123,
        .cases = CASES, /* small pictures of each content and stream */
        .quick_cases = QUICK_CASES,
        .run = run,
        .run_beside = run_beside,
        .bench = bench_files,
    };
    return codec_check_main(&check, argc, argv);
}
