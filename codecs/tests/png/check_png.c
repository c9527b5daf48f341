/* SPDX-License-Identifier: MIT
 *
 * Check PNG on a GPU against the CPU, byte for byte: check_png --cuda [--quick | --cases NUMBER] [--seed NUMBER]. A
 * buffer of samples has exactly the size of the samples, so compute-sanitizer finds accesses beyond them. NUMBER is the
 * small pictures of each content and stream, 150 if it is not given.
 *
 * check_png --bench FILE... times the kernels with the pictures of PNG files. */
#include "check.h"

#include "base/random.h"
#include "codecs/tests/png/deflate_streams.h"

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
    case TILES: { /* small pictures again and again, side by side and at other positions */
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

static struct picture make_picture(enum content content, int width, int height, int channels, int bits, uint64_t *state)
{
    const uint64_t key = random_next(state);
    struct picture picture = {.layout = {.width = width, .height = height, .channels = channels, .bits = bits}};
    uint8_t *to = picture.samples = allocate(picture_bytes(&picture.layout));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int byte = 0; byte < channels * bits / 8; byte++)
                *to++ = sample_of(content, x, y, byte, key, state);
    return picture;
}

/* ---- One case ---- */

/* A stream of a thread, and its buffers. */
struct test_gpu {
    struct device *device;
    struct device_png *png;
    struct check_counts counts;
};

static void test_gpu_open(struct test_gpu *gpu)
{
    struct error error = {0};
    *gpu = (struct test_gpu){0};
    must(device_open(0, &gpu->device, &error) && device_png_open(gpu->device, &gpu->png, &error), &error);
}

static void test_gpu_close(struct test_gpu *gpu)
{
    device_png_close(gpu->png);
    device_close(gpu->device);
}

/* Encode PICTURE on the GPU, and compare with the CPU's data. */
static void check_picture(struct test_gpu *gpu, const struct picture *picture, const char *name)
{
    enum { MARGIN = 100 };
    const struct png_layout *layout = &picture->layout;
    const size_t bytes = picture_bytes(layout);
    struct error error = {0};
    struct blob expected = {0};
    uint8_t *stream = NULL;
    size_t size = 0;
    uint32_t adler = 0, expected_adler;
    reference_encode(picture, LEVEL_STANDARD, &expected, &expected_adler);
    struct workspace samples = {0};
    must(device_reserve(gpu->device, &samples, bytes, &error) &&
             device_upload(gpu->device, samples.bytes, picture->samples, bytes, &error),
         &error);
    must(device_png_encode(gpu->png, layout, samples.bytes, &error) &&
             device_png_encoded(gpu->png, MARGIN, &stream, &size, &adler, &error),
         &error);
    device_release(gpu->device, &samples);
    memset(stream - MARGIN, 0, MARGIN); /* it may be written */
    memset(stream + size, 0, MARGIN);
    size_t same = 0;
    while (same < size && same < expected.size && stream[same] == expected.bytes[same])
        same++;
    if (size != expected.size || same != size || adler != expected_adler)
        fail("%s, %d x %d, %d channels of %d bits: %zu bytes, the CPU has %zu, equal up to byte %zu; checksum %08x, "
             "the CPU has %08x",
             name, layout->width, layout->height, layout->channels, layout->bits, size, expected.size, same, adler,
             expected_adler);
    blob_free(&expected);
    gpu->counts.cases++;
}

/* Decode STREAM, of zlib, on the GPU. Returns the samples, or NULL if it is left to the CPU. */
static uint8_t *decode_on_gpu(struct test_gpu *gpu, const struct blob *stream, const struct png_layout *layout)
{
    const size_t sample_bytes = picture_bytes(layout);
    struct error error = {0};
    uint8_t *data, *result = NULL;
    struct workspace samples = {0};
    bool is_decoded = false;
    must(device_png_reserve(gpu->png, stream->size, &data, &error), &error);
    memcpy(data, stream->bytes, stream->size);
    must(device_reserve(gpu->device, &samples, sample_bytes, &error) &&
             device_png_decode(gpu->png, layout, samples.bytes, &error) &&
             device_png_decoded(gpu->png, &is_decoded, &error),
         &error);
    if (is_decoded) {
        result = allocate(sample_bytes);
        must(device_download(gpu->device, result, samples.bytes, sample_bytes, &error) &&
                 device_wait(gpu->device, &error),
             &error);
    }
    device_release(gpu->device, &samples);
    return result;
}

/* Give the samples of PICTURE another meaning in LAYOUT: fewer bits, a palette, a transparent colour. */
static void reinterpret(const struct picture *picture, struct png_layout *layout, uint64_t *state)
{
    *layout = picture->layout;
    if (layout->channels == 1 && layout->bits == 8) {
        layout->bits = 1 << random_between(state, 0, 3);
        layout->paletted = random_between(state, 0, 1) != 0;
        layout->width *= 8 / layout->bits;
        layout->width -= random_between(state, 0, 8 / layout->bits - 1);
    }
    layout->transparent = layout->channels % 2 != 0 && random_between(state, 0, 1) != 0;
    for (int i = 0; i < 256; i++)
        for (int c = 0; c < 4; c++)
            layout->palette[i][c] = c < 3 || layout->transparent ? (uint8_t)random_next(state) : 255;
    /* The colour of the first pixel is the transparent one. */
    for (size_t c = 0; layout->transparent && c < (size_t)layout->channels; c++)
        layout->key[c] = layout->bits == 16 ? ((const uint16_t *)(const void *)picture->samples)[c]
                                            : png_read_sample(picture->samples, c, (unsigned)layout->bits);
}

/* Let another writer make STREAM: other filters and blocks. Returns whether all filters are known. */
static bool write_as_others(struct blob *stream, const struct png_layout *layout, uint64_t *state)
{
    const size_t row = png_row_bytes(layout, (size_t)layout->width) + 1, size = row * (size_t)layout->height;
    const bool has_other_filters = random_between(state, 0, 1) != 0;
    uint8_t *const rows = reference_inflate(stream, size);
    struct blob data = {0};
    if (rows == NULL)
        fail("libdeflate does not inflate the stream");
    for (size_t at = 0; has_other_filters && at < size; at += row) /* the picture becomes another one */
        rows[at] = (uint8_t)random_between(state, 0, PNG_FILTERS - 1);
    const bool has_unknown = random_between(state, 0, 9) == 0;
    if (has_unknown)
        rows[row * (size_t)random_between(state, 0, layout->height - 1)] =
            (uint8_t)(PNG_FILTERS + random_between(state, 0, 2));
    const int window_bits = deflate_as_others(state, rows, size, &data);
    blob_free(stream);
    wrap_zlib(&data, window_bits, libdeflate_adler32(1, rows, size), stream);
    blob_free(&data);
    free(rows);
    return !has_unknown;
}

/* Decode STREAM on the CPU and on the GPU, as LAYOUT says. Returns whether the GPU decoded it. It must not, if the CPU
 * refuses it; and the samples must be equal. */
static bool check_stream(struct test_gpu *gpu, const struct blob *stream, const struct png_layout *layout,
                         bool is_damaged, const char *name)
{
    uint8_t *expected = reference_decode(stream, layout), *samples = decode_on_gpu(gpu, stream, layout);
    const bool is_good = expected != NULL, is_decoded = samples != NULL;
    if (!is_good && !is_damaged)
        fail("%s: the CPU does not decode the stream", name);
    if (is_decoded && (!is_good || memcmp(samples, expected, picture_bytes(layout)) != 0))
        fail("%s, %d x %d, %d channels of %d bits%s%s, %zu bytes of data%s: other samples", name, layout->width,
             layout->height, layout->channels, layout->bits, layout->paletted ? ", a palette" : "",
             layout->transparent ? ", a transparent colour" : "", stream->size, is_damaged ? ", damaged" : "");
    free(samples);
    free(expected);
    gpu->counts.cases++;
    return is_decoded;
}

/* Streams of all levels and of other writers must give the CPU's samples, and damaged ones must not give wrong samples.
 * The GPU must decode our own streams. It may leave other ones to the CPU, and counts these. */
static void check_decoder(struct test_gpu *gpu, const struct picture *picture, const char *name, bool is_ours,
                          uint64_t *state)
{
    static const int levels[] = {LEVEL_STORED, LEVEL_STANDARD, LEVEL_STANDARD, LEVEL_FAST, 6, 9};
    const int level = levels[random_between(state, 0, 5)];
    struct png_layout layout;
    struct blob data = {0}, stream = {0};
    uint32_t adler;
    reference_encode(picture, level, &data, &adler);
    wrap_zlib(&data, WINDOW_BITS_MAX, adler, &stream);
    blob_free(&data);
    reinterpret(picture, &layout, state);
    const bool is_good = is_ours || write_as_others(&stream, &layout, state);
    const bool is_decoded = check_stream(gpu, &stream, &layout, !is_good, name);
    if (is_ours && !is_decoded)
        fail("%s, %d x %d, level %d: not decoded", name, layout.width, layout.height, level);
    gpu->counts.others += !is_ours && is_good;
    gpu->counts.left += is_good && !is_decoded;
    for (int i = 0; i < 2; i++) {
        stream.bytes[random_between(state, 0, (int)stream.size - 1)] ^= (uint8_t)(1 << random_between(state, 0, 7));
        (void)check_stream(gpu, &stream, &layout, true, name);
    }
    blob_free(&stream);
}

static void check_size(struct test_gpu *gpu, enum content content, int width, int height, uint64_t *state)
{
    const int channels = random_between(state, 1, 4), bits = random_between(state, 0, 2) == 0 ? 16 : 8;
    struct picture picture = make_picture(content, width, height, channels, bits, state);
    check_picture(gpu, &picture, content_names[content]);
    check_decoder(gpu, &picture, content_names[content], true, state);
    check_decoder(gpu, &picture, content_names[content], false, state);
    free(picture.samples);
}

/* ---- The run ---- */

/* One with QUICK_CASES is a reduced set, for sanitizers. */
enum { CASES = 150, QUICK_CASES = 6 };

static struct check_counts run_cases(const struct check_options *options, bool has_large)
{
    const bool quick = options->quick;
    uint64_t state = options->seed;
    struct test_gpu gpu;
    test_gpu_open(&gpu);
    for (enum content content = 0; content < CONTENTS; content++) {
        for (int i = 0; i < options->cases; i++) {
            const int max = i % 3 == 0 ? 20 : i % 3 == 1 ? 200 : quick ? 300 : 700;
            const int width = random_between(&state, 1, i % 10 == 9 ? 3 : max);
            const int height = random_between(&state, 1, max > 100 ? max : 100); /* a warp has 32 rows */
            check_size(&gpu, content, width, height, &state);
        }
        for (int i = 0; i < (quick ? 1 : 4); i++) /* rows longer than a block, and than a band */
            check_size(&gpu, content, random_between(&state, 10000, quick ? 100000 : 300000),
                       random_between(&state, 1, 3), &state);
        if (has_large)
            check_size(&gpu, content, 2500, 1700, &state);
    }
    test_gpu_close(&gpu);
    return gpu.counts;
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
