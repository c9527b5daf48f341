/* SPDX-License-Identifier: MIT
 *
 * The table of codecs, and what goes before all of them. stb takes truncated and damaged files without a word, and its
 * JPEG decoder trusts some numbers that it should not, so the container is walked here first: every chunk's length and
 * CRC, every segment's length, the tables' sizes, the end. So are damaged files refused alike, whichever codec follows.
 */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "base/file.h"

#include <ctype.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The most samples in a row. stb_image takes no image that is wider or higher than 2^24 (STBI_MAX_DIMENSIONS), and
 * stb_image_write adds up differences of at most 128 along a row in int. It also leaves CODEC_MAX_SAMPLES room for a
 * filter byte a row. */
enum { MAX_SIDE = (1 << 24) - 1 };

/* A JPEG file's frame header has 16 bits for each side. */
enum { JPEG_MAX_SIDE = 65535 };

/* The most scans of a JPEG. Encoders write about ten. Each goes through the whole picture, and some need hardly a byte
 * in the file: thousands in a few kilobytes would keep a decoder busy for minutes. */
enum { JPEG_MAX_SCANS = 100 };

#ifdef GPUCONV_JPEG
#define JPEG_ROW .decode = jpeg_decode, .encode = jpeg_encode
#else
#define JPEG_ROW .decode = NULL, .encode = NULL
#endif
#ifdef GPUCONV_SPNG
#define SPNG_ROW .decode = spng_decode, .encode = spng_encode
#else
#define SPNG_ROW .decode = NULL, .encode = NULL
#endif

enum { PNG = 1 << FORMAT_PNG, JPEG = 1 << FORMAT_JPEG };

/* The fastest first, as measured on a photo of 15 Mpixel (docs/benchmarks.md). libspng is behind libdeflate in all, and
 * so only taken where it is asked for; stb is the last resort. */
static const struct codec table[] = {
    {"libjpeg-turbo", "grey stays grey, the source's subsampling is kept", JPEG, JPEG, 8, 8, .inks = false,
     .levels = false, JPEG_ROW},
    {"libdeflate", "compresses on several threads", PNG, PNG, 16, 16, .inks = false, .levels = true,
     .decode = libdeflate_decode, .encode = libdeflate_encode},
    {"libspng", "a second library, for comparison", PNG, PNG, 16, 16, .inks = false, .levels = true, SPNG_ROW},
    {"stb", "reads a JPEG to the same samples in every build", PNG | JPEG, PNG | JPEG, 16, 8, .inks = true,
     .levels = false, .decode = stb_decode, .encode = stb_encode},
};

enum { CODECS = sizeof(table) / sizeof(table[0]) };

/* What a container says of its image. */
struct header {
    int64_t width, height;
    int channels; /* as the codecs will return them */
    int bits;     /* of a sample in the file */
    bool inks;
    struct sampling sampling;
};

/* A file being checked. */
struct input {
    const uint8_t *bytes;
    size_t size;
    const char *name;
    struct error *error;
};

enum format codec_format_of_name(const char *name)
{
    if (strcasecmp(name, "png") == 0)
        return FORMAT_PNG;
    if (strcasecmp(name, "jpg") == 0 || strcasecmp(name, "jpeg") == 0)
        return FORMAT_JPEG;
    return FORMAT_UNKNOWN;
}

enum format codec_format_of_path(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const dot = strrchr(slash ? slash : path, '.');

    return dot ? codec_format_of_name(dot + 1) : FORMAT_UNKNOWN;
}

const char *codec_format_name(enum format format)
{
    return format == FORMAT_PNG ? "PNG" : format == FORMAT_JPEG ? "JPEG" : "unknown";
}

/* ---- Checking ---- */

static const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/* The format by the first bytes. A PNG signature that is cut short or damaged further on still counts: the message is
 * then about a PNG file. */
static enum format format_of_bytes(const uint8_t *bytes, size_t size)
{
    if (size >= 4 && memcmp(bytes, png_signature, 4) == 0)
        return FORMAT_PNG;
    if (size >= 2 && bytes[0] == 0xff && bytes[1] == 0xd8)
        return FORMAT_JPEG;
    return FORMAT_UNKNOWN;
}

/* What a file that is neither PNG nor JPEG probably is, with its article, or NULL. */
static const char *foreign_format(const uint8_t *bytes, size_t size)
{
    static const struct {
        size_t at, length;
        const char *magic, *name;
    } formats[] = {
        {0, 4, "GIF8", "a GIF image"},      {8, 4, "WEBP", "a WebP image"},      {4, 7, "ftypavi", "an AVIF image"},
        {4, 7, "ftyphei", "a HEIC image"},  {4, 7, "ftyphev", "a HEIC image"},   {4, 8, "ftypmif1", "a HEIF image"},
        {4, 8, "ftypmsf1", "a HEIF image"}, {0, 4, "II*\0", "a TIFF image"},     {0, 4, "MM\0*", "a TIFF image"},
        {0, 2, "BM", "a BMP image"},        {0, 4, "%PDF", "a PDF document"},    {0, 2, "\xff\x0a", "a JPEG XL image"},
        {4, 4, "JXL ", "a JPEG XL image"},  {4, 4, "jP  ", "a JPEG 2000 image"}, {0, 4, "8BPS", "a Photoshop image"},
    };

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (size >= formats[i].at + formats[i].length &&
            memcmp(bytes + formats[i].at, formats[i].magic, formats[i].length) == 0)
            return formats[i].name;
    /* An SVG file may open with an XML declaration, a document type and comments. */
    if (bytes_contain(bytes, size < 1024 ? size : 1024, "<svg"))
        return "an SVG drawing";
    return NULL;
}

/* Why a compression method is not read, or NULL where it is: the last letter of the frame header's marker says. */
static const char *jpeg_unsupported(unsigned marker)
{
    static const char *const kinds[16] = {
        [3] = "lossless",          [5] = "hierarchical",      [6] = "hierarchical",      [7] = "hierarchical",
        [9] = "arithmetic-coded",  [10] = "arithmetic-coded", [11] = "arithmetic-coded", [13] = "arithmetic-coded",
        [14] = "arithmetic-coded", [15] = "arithmetic-coded",
    };

    return kinds[marker & 15];
}

#define DAMAGED(input, format, ...)                                                                                    \
    error_about((input)->error, ERROR_WORK, (input)->name, "the " format "; get an intact copy", __VA_ARGS__)

/* What the PNG chunks so far have said. */
struct png_state {
    struct header header;
    unsigned colour;  /* type: bit 0 palette, bit 1 colour, bit 2 alpha */
    uint32_t palette; /* its entries */
    bool transparency, data, data_ended;
};

/* PNG's IHDR: 13 bytes. */
static bool png_header(const struct input *input, const uint8_t *data, uint32_t length, struct png_state *state)
{
    /* Bit N is set where a colour type may have N bits a sample. */
    static const uint32_t depths[7] = {
        [0] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
        [2] = 1 << 8 | 1 << 16,
        [3] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
        [4] = 1 << 8 | 1 << 16,
        [6] = 1 << 8 | 1 << 16,
    };

    if (length != 13)
        return DAMAGED(input, "PNG file is damaged: its IHDR chunk has %u bytes instead of 13", length);
    const unsigned bits = data[8], colour = data[9];
    state->header = (struct header){
        .width = big32(data),
        .height = big32(data + 4),
        .channels = (colour & 2 ? 3 : 1) + (colour & 4 ? 1 : 0),
        .bits = (int)bits,
    };
    state->colour = colour;
    if (state->header.width < 1 || state->header.height < 1 || state->header.width > INT32_MAX ||
        state->header.height > INT32_MAX)
        return DAMAGED(input, "PNG file is damaged: it claims %u x %u pixels", big32(data), big32(data + 4));
    if (colour > 6 || bits > 16 || !(depths[colour] >> bits & 1))
        return DAMAGED(input, "PNG file is damaged: there is no colour type %u with %u bits a sample", colour, bits);
    if (data[10] != 0 || data[11] != 0 || data[12] > 1)
        return DAMAGED(input, "PNG file is damaged: compression %u, filter %u, interlace %u are unknown", data[10],
                       data[11], data[12]);
    return true;
}

/* PNG's PLTE: up to 256 colours, of which an image in colour makes no use. */
static bool png_palette(const struct input *input, size_t at, uint32_t length, struct png_state *state)
{
    if (state->palette > 0 || state->data || state->transparency)
        return DAMAGED(input, "PNG file is damaged: chunk PLTE at byte %zu stands %s", at,
                       state->palette > 0 ? "there a second time" : "too late");
    if (length == 0 || length % 3 != 0 || length > 3 * 256)
        return DAMAGED(input, "PNG file is damaged: its PLTE chunk has %u bytes", length);
    state->palette = length / 3;
    return true;
}

/* PNG's tRNS: the alpha of the palette's first colours, or the one colour that is transparent, in 2 bytes a channel. */
static bool png_transparency(const struct input *input, size_t at, uint32_t length, struct png_state *state)
{
    const bool paletted = state->colour == 3;

    if (state->transparency || state->data || (paletted && state->palette == 0))
        return DAMAGED(input, "PNG file is damaged: chunk tRNS at byte %zu stands %s", at,
                       state->transparency ? "there a second time"
                       : state->data       ? "too late"
                                           : "before PLTE");
    if (state->colour & 4)
        return DAMAGED(input, "PNG file is damaged: it has an alpha channel and chunk tRNS at byte %zu", at);
    if (paletted ? length > state->palette : length != 2 * (uint32_t)state->header.channels)
        return DAMAGED(input, "PNG file is damaged: its tRNS chunk has %u bytes", length);
    state->transparency = true;
    return true;
}

/* One PNG chunk whose bytes are known to be there. */
static bool png_chunk(const struct input *input, size_t at, struct png_state *state)
{
    const uint8_t *const chunk = input->bytes + at;
    const char *const type = (const char *)chunk + 4;
    const uint32_t length = big32(chunk);
    const bool first = at == sizeof(png_signature), data = memcmp(type, "IDAT", 4) == 0;

    if (big32(chunk + 8 + length) != libdeflate_crc32(0, type, (size_t)length + 4))
        return DAMAGED(input, "PNG file is damaged: the checksum of chunk %.4s at byte %zu is wrong", type, at);
    if (first != (memcmp(type, "IHDR", 4) == 0))
        return DAMAGED(input, "PNG file is damaged: chunk %.4s at byte %zu stands %s", type, at,
                       first ? "where IHDR must be" : "there a second time");
    if (first)
        return png_header(input, chunk + 8, length, state);
    if (data && state->data_ended)
        return DAMAGED(input, "PNG file is damaged: its IDAT chunks do not follow each other at byte %zu", at);
    if (data && state->colour == 3 && state->palette == 0)
        return DAMAGED(input, "PNG file is damaged: it holds no PLTE chunk before byte %zu", at);
    state->data_ended = state->data && !data;
    state->data |= data;
    if (memcmp(type, "PLTE", 4) == 0)
        return png_palette(input, at, length, state);
    if (memcmp(type, "tRNS", 4) == 0)
        return png_transparency(input, at, length, state);
    if (memcmp(type, "IEND", 4) == 0 && (length != 0 || !state->data))
        return DAMAGED(input, "PNG file is damaged: %s",
                       length ? "its IEND chunk is not empty" : "it holds no IDAT chunk");
    if (isupper((unsigned char)type[0]) && !data && memcmp(type, "IEND", 4) != 0)
        return error_about(input->error, ERROR_WORK, input->name,
                           "the PNG file needs a decoder for chunk %.4s at byte %zu; save it again as a plain PNG",
                           type, at);
    return true;
}

/* Walk the chunks from the signature to IEND; what follows it is nobody's. */
static bool png_check(const struct input *input, struct header *header)
{
    const size_t overhead = 12; /* length, type and CRC of a chunk */
    struct png_state state = {0};
    size_t at = sizeof(png_signature);

    if (input->size < at || memcmp(input->bytes, png_signature, at) != 0)
        return DAMAGED(input, "PNG file is damaged: the %zu bytes of its signature are wrong", at);
    for (bool end = false; !end;) {
        const uint8_t *const chunk = input->bytes + at;
        if (input->size - at < overhead)
            return DAMAGED(input, "PNG file is truncated: it ends after %zu bytes without an IEND chunk", input->size);
        const uint32_t length = big32(chunk);
        for (int i = 4; i < 8; i++)
            if (!isalpha(chunk[i]))
                return DAMAGED(input, "PNG file is damaged: no chunk begins at byte %zu", at);
        if (length > INT32_MAX)
            return DAMAGED(input, "PNG file is damaged: chunk %.4s at byte %zu claims %u bytes",
                           (const char *)chunk + 4, at, length);
        if (input->size - at - overhead < length)
            return DAMAGED(input, "PNG file is truncated: chunk %.4s at byte %zu claims %u bytes and %zu are left",
                           (const char *)chunk + 4, at, length, input->size - at - overhead);
        if (!png_chunk(input, at, &state))
            return false;
        end = memcmp(chunk + 4, "IEND", 4) == 0;
        at += overhead + length;
    }
    *header = state.header;
    header->channels += state.transparency;
    return true;
}

/* How the frame's components share the picture, 3 bytes each: number, samples across and down in 4 bits each, table. */
static struct sampling jpeg_sampling(const uint8_t *components)
{
    const int across = components[1] >> 4, down = components[1] & 15;

    /* Colours of one sample for each 1, 2 or 4 of brightness; all else is as rare as it is hard to write. */
    if (components[4] != 0x11 || components[7] != 0x11 || (across != 1 && across != 2 && across != 4) ||
        (down != 1 && down != 2))
        return (struct sampling){0, 0};
    return (struct sampling){across, down};
}

/* A frame header: SOF0 to SOF2. */
static bool jpeg_frame(const struct input *input, unsigned marker, const uint8_t *data, size_t length,
                       struct header *header)
{
    const char *const unsupported = jpeg_unsupported(marker);

    if (unsupported)
        return error_about(input->error, ERROR_WORK, input->name,
                           "is a JPEG of the %s kind, which is not read; save it again as a plain JPEG or PNG",
                           unsupported);
    if (header->width > 0)
        return DAMAGED(input, "JPEG file is damaged: it has %s", "two frame headers");
    if (length < 6 || length != 6 + 3 * (size_t)data[5])
        return DAMAGED(input, "JPEG file is damaged: its frame header has %zu bytes", length);
    *header = (struct header){
        .width = big16(data + 3),
        .height = big16(data + 1),
        .channels = data[5] >= 3 ? 3 : 1,
        .bits = data[0],
        .inks = data[5] == 4,
    };
    if (data[5] == 3)
        header->sampling = jpeg_sampling(data + 6);
    if (header->bits != 8)
        return error_about(input->error, ERROR_WORK, input->name,
                           "is a JPEG of %d bits a sample, and only 8 are read; save it again with 8 bits",
                           header->bits);
    if (header->height == 0)
        return error_about(input->error, ERROR_WORK, input->name,
                           "the JPEG file gives its height after the picture, which is not read; save it again");
    if (header->width == 0)
        return DAMAGED(input, "JPEG file is damaged: it claims %d pixels a row", 0);
    if (data[5] != 1 && data[5] != 3 && data[5] != 4)
        return DAMAGED(input, "JPEG file is damaged: it claims %u channels", data[5]);
    return true;
}

/* Huffman tables: 17 bytes that say how many symbols of each length follow, then the symbols. stb_image 2.27 writes
 * past its own tables where there are more than 256. */
static bool jpeg_huffman(const struct input *input, size_t at, const uint8_t *data, size_t length)
{
    while (length > 0) {
        size_t symbols = 0;
        for (size_t i = 1; i < 17 && i < length; i++)
            symbols += data[i];
        if (length < 17 || symbols > 256 || length < 17 + symbols)
            return DAMAGED(input, "JPEG file is damaged: the Huffman tables at byte %zu are wrong", at);
        data += 17 + symbols;
        length -= 17 + symbols;
    }
    return true;
}

/* From AT inside a scan's data to the next marker that ends it: 0xFF and neither a stuffed zero nor a restart. Returns
 * the input's size where there is none. */
static size_t jpeg_scan_end(const struct input *input, size_t at)
{
    const uint8_t *const end = input->bytes + input->size;
    const uint8_t *next = input->bytes + at;

    while ((next = memchr(next, 0xff, (size_t)(end - next)))) {
        const uint8_t *const marker = next;
        while (next < end && *next == 0xff)
            next++;
        if (next == end)
            break;
        if (*next != 0 && (*next & 0xf8) != 0xd0)
            return (size_t)(marker - input->bytes);
        next++;
    }
    return input->size;
}

/* Walk the segments from the start of the image to its end; what follows is nobody's. */
static bool jpeg_check(const struct input *input, struct header *header)
{
    const uint8_t *const bytes = input->bytes;
    int scans = 0;
    size_t at = 2;

    *header = (struct header){0};
    for (;;) {
        while (at < input->size && bytes[at] != 0xff) /* padding, which stb judges */
            at++;
        const size_t start = at;
        while (at < input->size && bytes[at] == 0xff)
            at++;
        const unsigned marker = at < input->size ? bytes[at++] : 0;
        if (marker == 0xd9)
            break;
        if (at < input->size && (marker < 2 || (marker >= 0xd0 && marker <= 0xd8)))
            return DAMAGED(input, "JPEG file is damaged: marker %02X at byte %zu has no place there", marker, start);
        if (input->size - at < 2)
            return DAMAGED(input, "JPEG file is truncated: it ends after %zu bytes without an end marker", input->size);
        const size_t length = big16(bytes + at);
        if (length < 2)
            return DAMAGED(input, "JPEG file is damaged: segment %02X at byte %zu claims %zu bytes", marker, start,
                           length);
        if (input->size - at < length)
            return DAMAGED(input, "JPEG file is truncated: segment %02X at byte %zu claims %zu bytes and %zu are left",
                           marker, start, length, input->size - at);
        if (marker == 0xc4) {
            if (!jpeg_huffman(input, start, bytes + at + 2, length - 2))
                return false;
        } else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc8 && marker != 0xcc) {
            if (!jpeg_frame(input, marker, bytes + at + 2, length - 2, header))
                return false;
        }
        at += length;
        if (marker == 0xda) {
            if (++scans > JPEG_MAX_SCANS)
                return DAMAGED(input, "JPEG file is damaged: it has more than %d scans", JPEG_MAX_SCANS);
            at = jpeg_scan_end(input, at);
        }
    }
    if (header->width == 0 || scans == 0)
        return DAMAGED(input, "JPEG file is damaged: it holds no %s", scans > 0 ? "frame header" : "picture");
    return true;
}

/* Only sizes that stb computes with without overflow (it decodes 16-bit samples to 2 bytes each), and no more than MOST
 * pixels, if that is not 0. */
static bool size_check(const struct header *header, size_t most, const char *name, struct error *error)
{
    const int64_t limit = (int64_t)CODEC_MAX_SAMPLES / (header->bits > 8 ? 2 : 1);

    if (header->width > MAX_SIDE || header->height > MAX_SIDE ||
        header->width * header->height > limit / header->channels)
        return error_about(error, ERROR_WORK, name,
                           "%lld x %lld pixels of %d channels are too many: at most %lld samples and %d pixels on a "
                           "side are read; cut it into pieces or scale it down",
                           (long long)header->width, (long long)header->height, header->channels, (long long)limit,
                           MAX_SIDE);
    if (most > 0 && (uint64_t)(header->width * header->height) > most)
        return error_about(error, ERROR_WORK, name,
                           "%lld x %lld pixels are more than the %zu that --max-pixels allows; scale it down, or "
                           "allow more",
                           (long long)header->width, (long long)header->height, most);
    return true;
}

/* ---- The table ---- */

const struct codec *codecs(size_t *count)
{
    *count = CODECS;
    return table;
}

const struct codec *codec_find(const char *name, struct error *error)
{
    const char *names[CODECS];

    for (size_t i = 0; i < CODECS; i++) {
        names[i] = table[i].name;
        if (strcmp(name, table[i].name) != 0)
            continue;
        if (table[i].decode)
            return &table[i];
        error_set(error, ERROR_USAGE, "the codec %s was not built into this gpuconv; gpuconv --list-codecs shows all",
                  name);
        return NULL;
    }
    error_unknown(error, "codec", name, error_nearest(name, names, CODECS), "--list-codecs");
    return NULL;
}

/* The first codec that reads such a file; stb reads all that codec_inspect lets pass. */
static const struct codec *best_reader(const struct codec_info *info)
{
    for (size_t i = 0; i < CODECS - 1; i++)
        if (table[i].decode && table[i].reads >> info->format & 1 && (table[i].inks || !info->inks))
            return &table[i];
    return &table[CODECS - 1];
}

/* The codec that is to read a file, or NULL: the one that SETTINGS name cannot. */
static const struct codec *reader(const struct codec_info *info, const struct codec_settings *settings,
                                  const char *name, struct error *error)
{
    const struct codec *const codec = settings->codec;

    if (!codec)
        return best_reader(info);
    if (codec->reads >> info->format & 1 && (codec->inks || !info->inks))
        return codec;
    error_about(error, ERROR_WORK, name, "the codec %s reads no %s%s; leave --codec out, or give %s", codec->name,
                codec_format_name(info->format), info->inks ? " of 4 channels" : "", best_reader(info)->name);
    return NULL;
}

/* A JPEG has 8 bits a sample whatever the image has. */
static bool writes(const struct codec *codec, enum format format, int bits)
{
    return codec->encode && codec->writes >> format & 1 && (format == FORMAT_JPEG || bits <= codec->write_bits);
}

const struct codec *codec_writer(enum format format, int bits, const struct codec_settings *settings,
                                 struct error *error)
{
    const struct codec *const codec = settings->codec, *best = table;

    while (!writes(best, format, bits)) /* libdeflate writes all PNGs, stb all JPEGs */
        best++;
    if (!codec)
        return best;
    if (!(codec->writes >> format & 1)) {
        error_set(error, ERROR_USAGE, "the codec %s writes no %s; leave --codec out, or give %s", codec->name,
                  codec_format_name(format), best->name);
        return NULL;
    }
    if (!writes(codec, format, bits)) {
        error_set(error, settings->bits > 0 ? ERROR_USAGE : ERROR_WORK,
                  "the codec %s writes %d bits a sample, and the image has %d; give --codec %s, or --depth %d to "
                  "reduce it",
                  codec->name, codec->write_bits, bits, best->name, codec->write_bits);
        return NULL;
    }
    if (format == FORMAT_PNG && !codec->levels && settings->compression != CODEC_COMPRESSION) {
        error_set(error, ERROR_USAGE, "the codec %s has no --compression %d; leave it out, or give --codec %s",
                  codec->name, settings->compression, best->name);
        return NULL;
    }
    return codec;
}

/* ---- Decoding and encoding ---- */

/* The name of a file in messages. */
static const char *input_name(const char *name)
{
    return file_input_name(name);
}

bool codec_damaged(const struct codec_input *input, const char *reason, struct error *error)
{
    return error_about(
        error, ERROR_WORK, input->name, "the %s file is damaged: its data cannot be decoded%s%s%s; get an intact copy",
        codec_format_name(input->info->format), reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
}

bool codec_no_memory(const struct codec_input *input, struct error *error)
{
    return error_about(error, ERROR_WORK, input->name, "there is not enough memory to decode it");
}

bool codec_no_room(const struct image *image, enum format format, struct error *error)
{
    return error_set(error, ERROR_WORK, "there is not enough memory to encode %d x %d pixels as %s", image->width,
                     image->height, codec_format_name(format));
}

bool codec_inspect(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                   struct codec_info *info, struct error *error)
{
    const enum format format = format_of_bytes(bytes, size);
    const struct input input = {bytes, size, input_name(name), error};
    struct header header;

    if (format == FORMAT_UNKNOWN) {
        const char *const foreign = foreign_format(bytes, size);
        if (foreign)
            return error_about(error, ERROR_WORK, input.name, "is %s, and gpuconv reads PNG and JPEG; convert it first",
                               foreign);
        return error_about(error, ERROR_WORK, input.name,
                           "is neither a PNG nor a JPEG; give an image in one of these formats");
    }
    if (size > INT_MAX - 1024) /* stb counts bytes in int, and gets up to 1024 more (codec_stb.c) */
        return error_about(error, ERROR_WORK, input.name, "is larger than 2 GiB; give a smaller file");
    if (!(format == FORMAT_PNG ? png_check : jpeg_check)(&input, &header) ||
        !size_check(&header, settings ? settings->most_pixels : 0, input.name, error))
        return false;
    *info = (struct codec_info){
        .format = format,
        .width = (int)header.width,
        .height = (int)header.height,
        .channels = header.channels,
        .bits = header.bits > 8 ? 16 : 8,
        .inks = header.inks,
        .sampling = header.sampling,
    };
    return true;
}

/* Give IMAGE, which was decoded, the bits a sample that are wanted. */
static bool convert(const struct codec_input *input, struct image *image, struct error *error)
{
    const int bits = codec_bits(input->info, input->settings);
    struct image converted;

    if (image->bits == bits)
        return true;
    const bool done = image_convert(image, bits, &converted, NULL) || codec_no_memory(input, error);
    image_free(image);
    *image = converted;
    return done;
}

bool codec_decode_inspected(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                            struct codec_info *info, struct image *image, struct error *error)
{
    const struct codec_input input = {bytes, size, input_name(name), info, settings};

    *image = (struct image){0};
    info->codec = reader(info, settings, input.name, error);
    if (!info->codec || !info->codec->decode(&input, image, error)) {
        *image = (struct image){0};
        return false;
    }
    if (image->width != info->width || image->height != info->height || image->channels != info->channels ||
        image->bits != info->bits) {
        image_free(image);
        return error_about(error, ERROR_WORK, input.name,
                           "the %s file is damaged: its headers contradict each other; get an intact copy",
                           codec_format_name(info->format));
    }
    return convert(&input, image, error);
}

bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error)
{
    struct codec_info found;

    *image = (struct image){0};
    if (!codec_inspect(bytes, size, name, settings, &found, error) ||
        !codec_decode_inspected(bytes, size, name, settings, &found, image, error))
        return false;
    if (info)
        *info = found;
    return true;
}

/* Encode IMAGE, of 16 bits a sample, by a codec that writes 8. */
static bool encode_reduced(const struct codec *codec, const struct image *image, enum format format,
                           const struct codec_settings *settings, uint8_t **bytes, size_t *size, struct error *error)
{
    struct image reduced;

    if (!image_convert(image, 8, &reduced, NULL))
        return codec_no_room(image, format, error);
    const bool done = codec->encode(&reduced, format, settings, bytes, size, error);
    image_free(&reduced);
    return done;
}

bool codec_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                  size_t *size, struct error *error)
{
    const int width = image->width, height = image->height, channels = image->channels;
    const int side = format == FORMAT_JPEG ? JPEG_MAX_SIDE : MAX_SIDE;
    const size_t limit = CODEC_MAX_SAMPLES / image_sample_bytes(image);
    const struct codec *const codec = codec_writer(format, image->bits, settings, error);

    *bytes = NULL;
    *size = 0;
    if (!codec)
        return false;
    if (width > side || height > side || image_samples(image) > limit)
        return error_set(error, ERROR_WORK,
                         "%d x %d pixels of %d channels are too many for a %s file: at most %zu samples and %d pixels "
                         "on a side are written; cut the image into pieces%s",
                         width, height, channels, codec_format_name(format), limit, side,
                         format == FORMAT_JPEG ? " or write a PNG" : "");
    if (format == FORMAT_JPEG && image->bits > 8)
        return encode_reduced(codec, image, format, settings, bytes, size, error);
    return codec->encode(image, format, settings, bytes, size, error);
}
