/* SPDX-License-Identifier: MIT
 *
 * The codec `libdeflate`: PNG with as little around the inflation and the compression as there can be. A picture is
 * inflated at once into the block that then holds its samples. It is filtered and compressed in bands of rows that do
 * not depend on each other, so that threads may share them, and that are always the same, so that the file is, too. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "base/parallel.h"
#include "codec/deflate.h"
#include "codec/png_filter.h"

#include <endian.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* Chunks are walked here as codec.c has found them to be whole. */
enum { SIGNATURE = 8, CHUNK_HEAD = 8, CHUNK_OVERHEAD = 12, HEADER_DATA = 13 };

/* ---- Decoding ---- */

enum { PALETTE_MAX = 256 };

/* A file taken apart. */
struct png {
    size_t width, height, channels;  /* of what the file holds; a palette's index is one channel */
    unsigned bits, interlaced;       /* bits of a sample */
    bool paletted, transparent;      /* pixels of the colour KEY, or as the palette says */
    uint8_t palette[PALETTE_MAX][4]; /* red, green, blue, alpha */
    unsigned key[3];
    const uint8_t *data; /* the zlib stream */
    size_t data_size;
    uint8_t *joined; /* holds it where it came in several chunks; to be released with free */
};

/* Where the pixels of a pass stand. */
struct pass {
    size_t x, y, across, down; /* the first one, and from each to the next */
    size_t width, height, row_bytes;
};

/* What zlib puts around a stream, in front of it. */
enum { ZLIB_HEAD = 2, ZLIB_TAIL = 4 };

/* The chunks of data, one after the other. */
static bool join_data(const struct codec_input *input, size_t first, struct png *png)
{
    const uint8_t *const bytes = input->bytes;
    size_t at = first, size = 0;

    for (; memcmp(bytes + at + 4, "IDAT", 4) == 0; at += CHUNK_OVERHEAD + big32(bytes + at))
        size += big32(bytes + at);
    png->data = bytes + first + CHUNK_HEAD;
    png->data_size = size;
    if (size == big32(bytes + first))
        return true;
    png->joined = malloc(size + 1); /* chunks may be empty */
    if (!png->joined)
        return false;
    png->data = png->joined;
    size = 0;
    for (at = first; memcmp(bytes + at + 4, "IDAT", 4) == 0; at += CHUNK_OVERHEAD + big32(bytes + at)) {
        memcpy(png->joined + size, bytes + at + CHUNK_HEAD, big32(bytes + at));
        size += big32(bytes + at);
    }
    return true;
}

/* Indices that have no colour are opaque black, as with libpng. */
static void read_palette(const uint8_t *data, size_t size, struct png *png)
{
    for (size_t i = 0; i < PALETTE_MAX; i++)
        png->palette[i][3] = 255;
    for (size_t i = 0; i < size / 3; i++)
        memcpy(png->palette[i], data + 3 * i, 3);
}

static void read_transparency(const uint8_t *data, size_t size, struct png *png)
{
    png->transparent = true;
    for (size_t i = 0; png->paletted && i < size; i++)
        png->palette[i][3] = data[i];
    for (size_t i = 0; !png->paletted && i < png->channels; i++)
        png->key[i] = ((unsigned)data[2 * i] << 8 | data[2 * i + 1]) & ((1u << png->bits) - 1);
}

static bool take_apart(const struct codec_input *input, struct png *png)
{
    const uint8_t *const header = input->bytes + SIGNATURE + CHUNK_HEAD;
    const unsigned colour = header[9];
    size_t at = SIGNATURE;

    *png = (struct png){
        .width = big32(header),
        .height = big32(header + 4),
        .channels = (colour == 2 || colour == 6 ? 3u : 1u) + (colour >> 2 & 1),
        .bits = header[8],
        .interlaced = header[12],
        .paletted = colour == 3,
    };
    for (;;) {
        const uint8_t *const chunk = input->bytes + at;
        const size_t size = big32(chunk);
        if (memcmp(chunk + 4, "IDAT", 4) == 0)
            return join_data(input, at, png);
        if (memcmp(chunk + 4, "PLTE", 4) == 0)
            read_palette(chunk + CHUNK_HEAD, size, png);
        else if (memcmp(chunk + 4, "tRNS", 4) == 0)
            read_transparency(chunk + CHUNK_HEAD, size, png);
        at += CHUNK_OVERHEAD + size;
    }
}

/* The passes of the picture, and how many bytes all of them have with a byte in front of each row. */
static size_t make_passes(const struct png *png, struct pass passes[7], int *count)
{
    static const uint8_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    size_t size = 0;

    *count = 0;
    for (int i = 0; i < (png->interlaced ? 7 : 1); i++) {
        struct pass pass = {0, 0, 1, 1, 0, 0, 0};
        if (png->interlaced)
            pass = (struct pass){adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3], 0, 0, 0};
        if (png->width <= pass.x || png->height <= pass.y)
            continue;
        pass.width = (png->width - pass.x - 1) / pass.across + 1;
        pass.height = (png->height - pass.y - 1) / pass.down + 1;
        pass.row_bytes = (pass.width * png->channels * png->bits + 7) / 8;
        size += pass.height * (pass.row_bytes + 1);
        passes[(*count)++] = pass;
    }
    return size;
}

/* What is wrong with a stream. */
static const char *inflation_failure(enum libdeflate_result result)
{
    return result == LIBDEFLATE_INSUFFICIENT_SPACE ? "it goes on after the last row" : "its compression is damaged";
}

/* Inflate at least SIZE bytes and at most SPARE more: some writers leave a little too much, which all readers pass
 * over. NULL with a reason, or without one where there is not enough memory. */
static uint8_t *inflate(const struct png *png, size_t size, size_t spare, const char **reason)
{
    const uint8_t *const data = png->data;
    size_t given = 0;

    *reason = NULL;
    if (png->data_size <= ZLIB_HEAD || (data[0] & 15) != 8 || (data[0] << 8 | data[1]) % 31 != 0 || data[1] & 32) {
        *reason = "its compression is unknown"; /* not deflate, no multiple of its check, or a dictionary */
        return NULL;
    }
    uint8_t *const raw = malloc(size + spare);
    struct libdeflate_decompressor *const decompressor = libdeflate_alloc_decompressor();
    if (raw && decompressor) { /* without zlib's checksum: those of the chunks have been looked at */
        const enum libdeflate_result result = libdeflate_deflate_decompress(
            decompressor, data + ZLIB_HEAD, png->data_size - ZLIB_HEAD, raw, size + spare, &given);
        if (result != LIBDEFLATE_SUCCESS)
            *reason = inflation_failure(result);
        else if (given < size)
            *reason = "it ends before the last row";
    }
    if (decompressor)
        libdeflate_free_decompressor(decompressor);
    if (decompressor && !*reason)
        return raw;
    free(raw);
    return NULL;
}

/* Undo the filters of a pass at RAW. The rows move together, without the bytes in front of them. */
static bool unfilter(const struct png *png, const struct pass *pass, uint8_t *raw)
{
    const size_t bits = png->channels * png->bits, size = pass->row_bytes;

    for (size_t y = 0; y < pass->height; y++) {
        const unsigned filter = raw[y * (size + 1)];
        uint8_t *const row = raw + y * size;
        memmove(row, raw + y * (size + 1) + 1, size);
        if (!png_unfilter(filter, row, y > 0 ? row - size : NULL, size, bits > 8 ? bits / 8 : 1))
            return false;
    }
    return true;
}

/* Sample number I of a row. */
static inline unsigned sample_at(const uint8_t *row, size_t i, unsigned bits)
{
    if (bits == 8)
        return row[i];
    if (bits == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    return (unsigned)row[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1u << bits) - 1);
}

/* Set sample number I of a pixel, of 16 bits where it is DEEP, to VALUE. */
static inline void put_sample(uint8_t *pixel, size_t i, bool deep, unsigned value)
{
    const uint16_t wide = (uint16_t)value;

    if (deep)
        memcpy(pixel + 2 * i, &wide, sizeof(wide));
    else
        pixel[i] = (uint8_t)value; /* 65535 becomes 255 */
}

/* Turn a row of COUNT pixels into samples of 8 or 16 bits with all channels; STEP bytes from a pixel to the next. */
static inline void expand_pixels(const struct png *png, const uint8_t *row, size_t count, unsigned bits, uint8_t *out,
                                 size_t step)
{
    const unsigned scale = bits < 8 ? 255 / ((1u << bits) - 1) : 1;
    const size_t channels = png->channels;
    const bool deep = bits == 16;

    for (size_t x = 0; x < count; x++, out += step) {
        bool key = true;
        for (size_t c = 0; c < channels; c++) {
            const unsigned sample = sample_at(row, x * channels + c, bits);
            key = key && sample == png->key[c < 3 ? c : 0];
            put_sample(out, c, deep, sample * scale);
        }
        if (png->transparent)
            put_sample(out, channels, deep, key ? 0 : 65535);
    }
}

static void expand_palette(const struct png *png, const uint8_t *row, size_t count, uint8_t *out, size_t step)
{
    for (size_t x = 0; x < count; x++, out += step)
        memcpy(out, png->palette[sample_at(row, x, png->bits)], png->transparent ? 4 : 3);
}

static void expand_row(const struct png *png, const uint8_t *row, size_t count, uint8_t *out, size_t step)
{
    if (png->paletted)
        expand_palette(png, row, count, out, step);
    else if (png->bits == 8)
        expand_pixels(png, row, count, 8, out, step);
    else if (png->bits == 16)
        expand_pixels(png, row, count, 16, out, step);
    else
        expand_pixels(png, row, count, png->bits, out, step);
}

/* COUNT samples of 16 bits from a PNG's order, the upper byte first, to the machine's. */
static void to_machine_order(void *samples, size_t count)
{
    uint16_t *const all = samples;

    for (size_t i = 0; i < count; i++)
        all[i] = be16toh(all[i]);
}

/* Turn what was inflated into IMAGE, whose shape is set: its own block where they are the samples already. */
static bool finish_decoding(const struct codec_input *input, const struct png *png, const struct pass *passes,
                            int count, uint8_t *raw, struct image *image, struct error *error)
{
    const size_t pixel = image_pixel_bytes(image);
    uint8_t *at = raw;

    for (int i = 0; i < count; i++) {
        if (!unfilter(png, &passes[i], at)) {
            free(raw);
            return codec_damaged(input, "unknown row filter", error);
        }
        at += passes[i].height * (passes[i].row_bytes + 1);
    }
    if (!png->interlaced && !png->paletted && !png->transparent && png->bits >= 8) {
        if (png->bits == 16)
            to_machine_order(raw, image_samples(image));
        image->samples = raw;
        return true;
    }
    const bool done = image_allocate(image, image->width, image->height, image->channels, image->bits, error);
    at = raw;
    for (int i = 0; done && i < count; i++) {
        const struct pass *const pass = &passes[i];
        for (size_t y = 0; y < pass->height; y++)
            expand_row(png, at + y * pass->row_bytes, pass->width,
                       image->samples + ((pass->y + y * pass->down) * png->width + pass->x) * pixel,
                       pass->across * pixel);
        at += pass->height * (pass->row_bytes + 1);
    }
    free(raw);
    return done;
}

bool libdeflate_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *const info = input->info;
    struct image made = {.width = info->width, .height = info->height, .channels = info->channels, .bits = info->bits};
    struct pass passes[7] = {{0}};
    struct png png = {0};
    enum { SPARE_BYTES = 1 << 16 }; /* besides a row; what holds yet more was not meant to be a picture */
    const char *reason;
    int count;

    if (!take_apart(input, &png))
        return codec_no_memory(input, error);
    const size_t size = make_passes(&png, passes, &count);
    uint8_t *const raw = inflate(&png, size, passes[0].row_bytes + SPARE_BYTES, &reason);
    free(png.joined);
    if (!raw)
        return reason ? codec_damaged(input, reason, error) : codec_no_memory(input, error);
    if (!finish_decoding(input, &png, passes, count, raw, &made, error))
        return false;
    *image = made;
    return true;
}

/* ---- Encoding ---- */

/* Bytes of a band before compression: as many as a processor's second cache holds beside what compressing them takes,
 * and enough that a compressor that begins anew with each loses nothing. */
enum { BAND_BYTES = 1 << 19 };

/* The work of the threads. */
struct encoding {
    const struct image *image;
    size_t pixel, row_bytes; /* without the byte in front */
    int64_t bands;
    int band_rows, level;
    uint8_t *out;      /* where the first band goes */
    size_t out_bytes;  /* from a band to the next */
    uint8_t *filtered; /* where all filtered rows go; NULL: nobody needs them */
    struct band {
        size_t size;
        uint32_t adler;
    } * results;
    struct workplace **workplaces; /* one a thread */
};

/* What a thread works with. */
struct workplace {
    struct deflate_space *space;
    uint8_t *rows[2]; /* with zeros before them */
    uint8_t *room, *filtered;
};

/* From this level on libdeflate compresses the filtered rows once more, in one piece and on one thread, as its streams
 * cannot be joined. Drawings become a fifth smaller by it, photos larger: the smaller of both is kept. */
enum { LIBDEFLATE_LEVEL = 2 };

static size_t band_bytes(const struct encoding *job)
{
    return (size_t)job->band_rows * (job->row_bytes + 1);
}

static void workplace_free(struct workplace *workplace)
{
    if (workplace)
        free(workplace->space);
    free(workplace);
}

static struct workplace *workplace_new(const struct encoding *job)
{
    const size_t padded = job->row_bytes + PNG_PIXEL_MAX;
    const size_t filtered = job->filtered ? 0 : band_bytes(job);
    struct workplace *const workplace =
        malloc(sizeof(*workplace) + 2 * padded + png_filter_room(job->row_bytes) + filtered);

    if (!workplace)
        return NULL;
    uint8_t *const bytes = (uint8_t *)(workplace + 1);
    *workplace = (struct workplace){
        .space = deflate_space_new(),
        .rows = {bytes + PNG_PIXEL_MAX, bytes + padded + PNG_PIXEL_MAX},
        .room = bytes + 2 * padded,
        .filtered = bytes + 2 * padded + png_filter_room(job->row_bytes),
    };
    memset(bytes, 0, 2 * padded);
    if (!workplace->space) {
        free(workplace);
        return NULL;
    }
    return workplace;
}

/* Row Y of the image as a PNG has it. */
static void copy_row(const struct encoding *job, int y, uint8_t *out)
{
    const uint8_t *const samples = job->image->samples + (size_t)y * job->row_bytes;

    if (image_sample_bytes(job->image) == 1)
        memcpy(out, samples, job->row_bytes);
    else
        for (size_t i = 0; i < job->row_bytes; i += 2) {
            uint16_t sample;
            memcpy(&sample, samples + i, sizeof(sample));
            sample = htobe16(sample);
            memcpy(out + i, &sample, sizeof(sample));
        }
}

/* Filter COUNT rows from FIRST on. Without compression a filter gains nothing. */
static void filter_rows(const struct encoding *job, struct workplace *workplace, int first, int count, uint8_t *out)
{
    const size_t size = job->row_bytes;
    uint8_t *above = workplace->rows[0], *row = workplace->rows[1];

    if (first == 0 || job->level == 0)
        memset(above, 0, size);
    else
        copy_row(job, first - 1, above);
    for (int y = first; y < first + count; y++, out += size + 1) {
        if (job->level == 0) {
            out[0] = 0;
            copy_row(job, y, out + 1);
            continue;
        }
        uint8_t *const next = above;
        copy_row(job, y, row);
        png_filter(row, above, size, job->pixel, workplace->room, out);
        above = row;
        row = next;
    }
}

static void encode_band(void *context, int64_t index, int thread)
{
    const struct encoding *const job = context;
    struct workplace *const workplace = job->workplaces[thread];
    const int first = (int)index * job->band_rows, left = job->image->height - first;
    const int rows = left < job->band_rows ? left : job->band_rows;
    const size_t size = (size_t)rows * (job->row_bytes + 1);
    uint8_t *const out = job->out + (size_t)index * job->out_bytes;
    uint8_t *const filtered = job->filtered ? job->filtered + (size_t)index * band_bytes(job) : workplace->filtered;
    struct band *const result = &job->results[index];

    filter_rows(job, workplace, first, rows, filtered);
    result->adler = libdeflate_adler32(1, filtered, size);
    result->size = job->level == 0 ? deflate_store(filtered, size, rows == left, out)
                                   : deflate_band(workplace->space, filtered, size, rows == left, out);
}

/* The checksum of two runs of bytes, where those of the first and of the second, which has SIZE bytes, are known: it is
 * two sums modulo the largest prime below 2^16, 1 + the bytes, and the first sums after each byte. */
static uint32_t adler_join(uint32_t first, uint32_t second, size_t size)
{
    const uint64_t prime = 65521, a = first & 0xffff, b = first >> 16;
    const uint64_t sum = (a + (second & 0xffff) + prime - 1) % prime;
    const uint64_t sums = (b + (second >> 16) + size % prime * (a + prime - 1)) % prime;

    return (uint32_t)(sums << 16 | sum);
}

/* Put what belongs around a chunk's SIZE bytes, and return where the next begins. */
static uint8_t *put_chunk(uint8_t *chunk, const char *type, size_t size)
{
    put_big32(chunk, (uint32_t)size);
    memcpy(chunk + 4, type, 4);
    put_big32(chunk + CHUNK_HEAD + size, libdeflate_crc32(0, chunk + 4, size + 4));
    return chunk + CHUNK_OVERHEAD + size;
}

static uint8_t *put_header(uint8_t *out, const struct image *image)
{
    static const uint8_t signature[SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t types[] = {[1] = 0, 4, 2, 6};
    uint8_t *const data = out + SIGNATURE + CHUNK_HEAD;

    memcpy(out, signature, SIGNATURE);
    memset(data, 0, HEADER_DATA);
    put_big32(data, (uint32_t)image->width);
    put_big32(data + 4, (uint32_t)image->height);
    data[8] = (uint8_t)image->bits;
    data[9] = types[image->channels];
    return put_chunk(out + SIGNATURE, "IHDR", HEADER_DATA);
}

enum { HEADER_BYTES = SIGNATURE + CHUNK_OVERHEAD + HEADER_DATA };

/* Push the bands together and return the sum of their sizes and the checksum of all. */
static size_t join_bands(const struct encoding *job, uint32_t *adler)
{
    const size_t full = band_bytes(job), all = (size_t)job->image->height * (job->row_bytes + 1);
    size_t size = 0;

    *adler = 1;
    for (int64_t i = 0; i < job->bands; i++) {
        const size_t before = (size_t)i * full;
        memmove(job->out + size, job->out + (size_t)i * job->out_bytes, job->results[i].size);
        size += job->results[i].size;
        *adler = adler_join(*adler, job->results[i].adler, all - before < full ? all - before : full);
    }
    return size;
}

/* Filter and compress all bands on THREADS threads. */
static bool encode_bands(struct encoding *job, int threads)
{
    bool done = true;

    job->results = calloc((size_t)job->bands, sizeof(*job->results));
    job->workplaces = calloc((size_t)threads, sizeof(struct workplace *));
    done = job->results && job->workplaces;
    for (int i = 0; done && i < threads; i++)
        done = (job->workplaces[i] = workplace_new(job)) != NULL;
    if (done)
        parallel_for(threads, job->bands, encode_band, job);
    for (int i = 0; job->workplaces && i < threads; i++)
        workplace_free(job->workplaces[i]);
    free(job->workplaces);
    return done;
}

/* Compress the filtered rows with libdeflate; where that takes less than *SIZE bytes it goes to OUT instead of what is
 * there. */
static bool compress_again(const struct encoding *job, uint8_t *out, size_t *size)
{
    struct libdeflate_compressor *const compressor = libdeflate_alloc_compressor(job->level);
    uint8_t *const again = *size > 0 ? malloc(*size) : NULL;
    const bool done = compressor && again;

    if (done) {
        const size_t all = (size_t)job->image->height * (job->row_bytes + 1);
        const size_t used = libdeflate_deflate_compress(compressor, job->filtered, all, again, *size - 1);
        if (used > 0) { /* there was enough room */
            memcpy(out, again, used);
            *size = used;
        }
    }
    if (compressor)
        libdeflate_free_compressor(compressor);
    free(again);
    return done;
}

/* Write the whole stream but for its checksum to OUT; 0 where there is not enough memory. */
static size_t compress(struct encoding *job, int threads, uint8_t *out, uint32_t *adler)
{
    size_t size = 0;

    job->out = out;
    job->out_bytes = deflate_bound(band_bytes(job));
    if (job->level >= LIBDEFLATE_LEVEL) {
        job->filtered = malloc((size_t)job->image->height * (job->row_bytes + 1));
        if (!job->filtered)
            return 0;
    }
    if (encode_bands(job, threads)) {
        size = join_bands(job, adler);
        if (job->filtered && !compress_again(job, out, &size))
            size = 0;
    }
    free(job->results);
    free(job->filtered);
    return size;
}

bool libdeflate_encode(const struct image *image, enum format format, const struct codec_settings *settings,
                       uint8_t **bytes, size_t *size, struct error *error)
{
    const size_t pixel = image_pixel_bytes(image), row_bytes = (size_t)image->width * pixel;
    const int fitting = row_bytes < BAND_BYTES ? (int)(BAND_BYTES / (row_bytes + 1)) : 1;
    struct encoding job = {.image = image, .pixel = pixel, .row_bytes = row_bytes, .level = settings->compression};

    job.band_rows = fitting < image->height ? fitting : image->height;
    job.bands = (image->height - 1) / job.band_rows + 1;
    const int wanted = parallel_threads(settings->threads);
    const int threads = job.bands < wanted ? (int)job.bands : wanted;
    const size_t room = (size_t)job.bands * deflate_bound(band_bytes(&job));
    uint8_t *const file = malloc(HEADER_BYTES + CHUNK_HEAD + ZLIB_HEAD + room + ZLIB_TAIL + 4 + CHUNK_OVERHEAD);
    if (!file)
        return codec_no_room(image, format, error);

    uint8_t *const chunk = put_header(file, image);
    uint8_t *const stream = chunk + CHUNK_HEAD + ZLIB_HEAD;
    uint32_t adler;
    const size_t compressed = compress(&job, threads, stream, &adler);
    if (compressed == 0) {
        free(file);
        return codec_no_room(image, format, error);
    }
    stream[-2] = 0x78; /* deflate with a window of 32 KB */
    stream[-1] = 0x01; /* makes both a multiple of 31, and stands for a fast compression */
    put_big32(stream + compressed, adler);
    uint8_t *const end = put_chunk(chunk, "IDAT", ZLIB_HEAD + compressed + ZLIB_TAIL);
    *size = (size_t)(put_chunk(end, "IEND", 0) - file);
    *bytes = file;
    return true;
}
