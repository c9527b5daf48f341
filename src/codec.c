/* SPDX-License-Identifier: MIT
 *
 * Bytes to image and back through stb, and files read and written whole. stb takes truncated and damaged files without
 * a word, and its JPEG decoder trusts some numbers that it should not, so the container is walked here first: every
 * chunk's length and CRC, every segment's length, the tables' sizes, the end. Encoding goes to memory and from there
 * to a temporary file that is renamed. */
#include "codec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <limits.h>
#include <signal.h>
#include <stb_image.h>
#include <stb_image_write.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most samples in a row. stb_image takes no image that is wider or higher than 2^24 (STBI_MAX_DIMENSIONS), and
 * stb_image_write adds up differences of at most 128 along a row in int. It also leaves CODEC_MAX_SAMPLES room for a
 * filter byte a row. */
enum { MAX_SIDE = (1 << 24) - 1 };

/* A JPEG file's frame header has 16 bits for each side. */
enum { JPEG_MAX_SIDE = 65535 };

/* Where reading from a pipe and encoding begin; doubled as needed. */
enum { FIRST_CAPACITY = 1 << 16 };

/* What a container says of its image. */
struct header {
    int64_t width, height;
    int channels; /* as stb will return them */
    int bits;     /* of a sample in the file */
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

/* ---- Reading ---- */

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Read FD to its end. The buffer begins at CAPACITY bytes, which is one more than a regular file's size, so that the
 * read that finds the end needs no larger one. */
static bool read_all(int fd, const char *name, size_t limit, size_t capacity, uint8_t **bytes, size_t *size,
                     struct error *error)
{
    uint8_t *buffer = malloc(capacity), *larger;
    size_t used = 0;

    while (buffer) {
        const ssize_t got = read(fd, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_set(error, ERROR_WORK, "%s: cannot be read: %s", name, strerror(errno));
            goto fail;
        }
        used += (size_t)got;
        if (used > limit) {
            error_set(error, ERROR_WORK, "%s: is larger than the %zu bytes that are read at most; give a smaller file",
                      name, limit);
            goto fail;
        }
        if (got == 0 && used == 0) {
            error_set(error, ERROR_WORK, "%s: is empty (0 bytes); give a file with something in it", name);
            goto fail;
        }
        if (got == 0) {
            *bytes = buffer;
            *size = used;
            return true;
        }
        if (used == capacity) {
            larger = capacity <= SIZE_MAX / 2 ? realloc(buffer, capacity * 2) : NULL;
            if (!larger)
                break;
            buffer = larger;
            capacity *= 2;
        }
    }
    error_set(error, ERROR_WORK, "%s: there is not enough memory to read it", name);
fail:
    free(buffer);
    return false;
}

bool codec_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error)
{
    const char *const name = is_standard(path) ? "standard input" : path;
    const int fd = is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    bool done = false;

    *bytes = NULL;
    *size = 0;
    if (fd < 0 || fstat(fd, &status) != 0)
        error_set(error, ERROR_WORK, "%s: cannot be read: %s", name, strerror(errno));
    else if (S_ISDIR(status.st_mode))
        error_set(error, ERROR_WORK, "%s: is a folder; give the path of a file", name);
    else if (S_ISREG(status.st_mode) && status.st_size > 0 && (uintmax_t)status.st_size > limit)
        error_set(error, ERROR_WORK, "%s: is larger than the %zu bytes that are read at most; give a smaller file",
                  name, limit);
    else if (S_ISREG(status.st_mode) && status.st_size > 0)
        done = read_all(fd, name, limit, (size_t)status.st_size + 1, bytes, size, error);
    else
        done = read_all(fd, name, limit, FIRST_CAPACITY, bytes, size, error);
    if (fd > STDERR_FILENO)
        close(fd);
    return done;
}

/* ---- Checking ---- */

static uint32_t big32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static unsigned big16(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

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

static bool contains(const uint8_t *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
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
    if (contains(bytes, size < 1024 ? size : 1024, "<svg"))
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
    error_set((input)->error, ERROR_WORK, "%s: the " format "; get an intact copy", (input)->name, __VA_ARGS__)

/* What the PNG chunks so far have said. */
struct png_state {
    struct header header;
    unsigned colour; /* type: bit 0 palette, bit 1 colour, bit 2 alpha */
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

/* One PNG chunk whose bytes are known to be there. Only what stb does not check itself. */
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
    state->data_ended = state->data && !data;
    state->data |= data;
    if (memcmp(type, "tRNS", 4) == 0)
        state->transparency = true;
    if (memcmp(type, "IEND", 4) == 0 && (length != 0 || !state->data))
        return DAMAGED(input, "PNG file is damaged: %s",
                       length ? "its IEND chunk is not empty" : "it holds no IDAT chunk");
    if (isupper((unsigned char)type[0]) && !data && memcmp(type, "PLTE", 4) != 0 && memcmp(type, "IEND", 4) != 0)
        return error_set(input->error, ERROR_WORK,
                         "%s: the PNG file needs a decoder for chunk %.4s at byte %zu; save it again as a plain PNG",
                         input->name, type, at);
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

/* A frame header: SOF0 to SOF2. */
static bool jpeg_frame(const struct input *input, unsigned marker, const uint8_t *data, size_t length,
                       struct header *header)
{
    const char *const unsupported = jpeg_unsupported(marker);

    if (unsupported)
        return error_set(input->error, ERROR_WORK,
                         "%s: is a JPEG of the %s kind, which is not read; save it again as a plain JPEG or PNG",
                         input->name, unsupported);
    if (header->width > 0)
        return DAMAGED(input, "JPEG file is damaged: it has %s", "two frame headers");
    if (length < 6 || length != 6 + 3 * (size_t)data[5])
        return DAMAGED(input, "JPEG file is damaged: its frame header has %zu bytes", length);
    *header = (struct header){
        .width = big16(data + 3), .height = big16(data + 1), .channels = data[5] >= 3 ? 3 : 1, .bits = data[0]};
    if (header->bits != 8)
        return error_set(input->error, ERROR_WORK,
                         "%s: is a JPEG of %d bits a sample, and only 8 are read; save it again with 8 bits",
                         input->name, header->bits);
    if (header->height == 0)
        return error_set(input->error, ERROR_WORK,
                         "%s: the JPEG file gives its height after the picture, which is not read; save it again",
                         input->name);
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
    bool scanned = false;
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
            scanned = true;
            at = jpeg_scan_end(input, at);
        }
    }
    if (header->width == 0 || !scanned)
        return DAMAGED(input, "JPEG file is damaged: it holds no %s", scanned ? "frame header" : "picture");
    return true;
}

/* Only sizes that stb computes with without overflow: it decodes 16-bit samples to 2 bytes each. */
static bool size_check(const struct header *header, const char *name, struct error *error)
{
    const int64_t limit = (int64_t)CODEC_MAX_SAMPLES / (header->bits > 8 ? 2 : 1);

    if (header->width > MAX_SIDE || header->height > MAX_SIDE ||
        header->width * header->height > limit / header->channels)
        return error_set(error, ERROR_WORK,
                         "%s: %lld x %lld pixels of %d channels are too many: at most %lld samples and %d pixels on a "
                         "side are read; cut it into pieces or scale it down",
                         name, (long long)header->width, (long long)header->height, header->channels, (long long)limit,
                         MAX_SIDE);
    return true;
}

/* ---- Decoding and encoding ---- */

/* Say in words why stb gave up. Not all of its failures set a reason, and what then stands there is that of an
 * earlier one: here always one of the two below. */
static bool decode_failed(enum format format, const char *name, struct error *error)
{
    const char *const reason = stbi_failure_reason();

    if (reason && strcmp(reason, "outofmem") == 0)
        return error_set(error, ERROR_WORK, "%s: there is not enough memory to decode it", name);
    if (!reason || strcmp(reason, "unknown image type") == 0 || strcmp(reason, "bad png sig") == 0)
        return error_set(error, ERROR_WORK,
                         "%s: the %s file is damaged: its data cannot be decoded; get an intact copy", name,
                         codec_format_name(format));
    return error_set(error, ERROR_WORK,
                     "%s: the %s file is damaged: its data cannot be decoded (%s); get an intact copy", name,
                     codec_format_name(format), reason);
}

bool codec_decode(const uint8_t *bytes, size_t size, const char *name, struct image *image, struct codec_info *info,
                  struct error *error)
{
    const enum format format = format_of_bytes(bytes, size);
    const struct input input = {bytes, size, is_standard(name) ? "standard input" : name, error};
    struct header header;
    int width, height, channels;

    *image = (struct image){0};
    if (format == FORMAT_UNKNOWN) {
        const char *const foreign = foreign_format(bytes, size);
        if (foreign)
            return error_set(error, ERROR_WORK, "%s: is %s, and gpuconv reads PNG and JPEG; convert it first",
                             input.name, foreign);
        return error_set(error, ERROR_WORK, "%s: is neither a PNG nor a JPEG; give an image in one of these formats",
                         input.name);
    }
    if (size > INT_MAX) /* stb counts bytes in int */
        return error_set(error, ERROR_WORK, "%s: is larger than 2 GiB; give a smaller file", input.name);
    if (!(format == FORMAT_PNG ? png_check : jpeg_check)(&input, &header) || !size_check(&header, input.name, error))
        return false;

    stbi_info_from_memory(bytes, 0, &width, &height, &channels); /* an empty file: sets the reason to a known one */
    uint8_t *const samples = stbi_load_from_memory(bytes, (int)size, &width, &height, &channels, 0);
    if (!samples)
        return decode_failed(format, input.name, error);
    *image = (struct image){.width = width, .height = height, .channels = channels, .samples = samples};
    if (width != header.width || height != header.height || channels != header.channels) {
        image_free(image);
        return DAMAGED(&input, "%s file is damaged: its headers contradict each other", codec_format_name(format));
    }
    if (info)
        *info = (struct codec_info){.format = format, .reduced = header.bits > 8};
    return true;
}

/* Where stb's writers put their bytes. */
struct sink {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
};

/* Take SIZE bytes; stb's JPEG writer gives them one by one. */
static void sink_append(void *context, void *bytes, int size)
{
    struct sink *const sink = context;
    const size_t needed = sink->size + (size_t)size;

    if (needed > sink->capacity && !sink->failed) {
        const size_t doubled = sink->capacity > 0 ? sink->capacity * 2 : FIRST_CAPACITY;
        const size_t capacity = needed > doubled ? needed : doubled;
        uint8_t *const larger = realloc(sink->bytes, capacity);
        sink->failed = !larger;
        if (larger) {
            sink->bytes = larger;
            sink->capacity = capacity;
        }
    }
    if (sink->failed)
        return;
    memcpy(sink->bytes + sink->size, bytes, (size_t)size);
    sink->size = needed;
}

bool codec_encode(const struct image *image, enum format format, int quality, uint8_t **bytes, size_t *size,
                  struct error *error)
{
    const int width = image->width, height = image->height, channels = image->channels;
    const int side = format == FORMAT_JPEG ? JPEG_MAX_SIDE : MAX_SIDE;
    struct sink sink = {0};
    int done = 0;

    *bytes = NULL;
    *size = 0;
    if (width > side || height > side || image_samples(image) > CODEC_MAX_SAMPLES)
        return error_set(error, ERROR_WORK,
                         "%d x %d pixels of %d channels are too many for a %s file: at most %zu samples and %d pixels "
                         "on a side are written; cut the image into pieces%s",
                         width, height, channels, codec_format_name(format), CODEC_MAX_SAMPLES, side,
                         format == FORMAT_JPEG ? " or write a PNG" : "");
    if (format == FORMAT_PNG)
        done = stbi_write_png_to_func(sink_append, &sink, width, height, channels, image->samples, 0);
    else if (format == FORMAT_JPEG)
        done = stbi_write_jpg_to_func(sink_append, &sink, width, height, channels, image->samples, quality);
    if (!done || sink.failed) {
        free(sink.bytes);
        return error_set(error, ERROR_WORK, "there is not enough memory to encode %d x %d pixels as %s", width, height,
                         codec_format_name(format));
    }
    *bytes = sink.bytes;
    *size = sink.size;
    return true;
}

/* ---- Writing ---- */

/* Say why PATH cannot be written, by errno, and what to do where that is clear. */
static bool write_failed(const char *path, struct error *error)
{
    const int reason = errno;
    const char *advice = "";

    if (reason == EACCES || reason == EPERM || reason == EROFS)
        advice = "; choose a file and a folder that you may write to";
    else if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        advice = "; make room or choose another folder";
    else if (reason == ENOENT || reason == ENOTDIR)
        advice = "; its folder must exist";
    return error_set(error, ERROR_WORK, "%s: cannot be written: %s%s", path, strerror(reason), advice);
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* Write to what is no regular file: a pipe, a terminal, a device. */
static bool write_direct(const char *path, const uint8_t *bytes, size_t size, struct error *error)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    bool done = fd >= 0 && write_all(fd, bytes, size);

    if (!done)
        write_failed(path, error);
    if (fd >= 0 && close(fd) != 0 && done)
        done = write_failed(path, error);
    return done;
}

/* Give a new name in FOLDER to a new file of MODE, or to the file that UNNAMED is open on where that is not -1. Returns
 * the open file, or -1; *NAME is to be released with free. The name is short, hidden and random. */
static int temporary_name(const char *folder, mode_t mode, int unnamed, char **name)
{
    for (int attempt = 0; attempt < 100; attempt++) { /* a second one is never needed unless somebody plays tricks */
        uint64_t random = 0;
        int fd = -1;
        if (getrandom(&random, sizeof(random), 0) < 0 ||
            asprintf(name, "%s/.gpuconv-%016llx", folder, (unsigned long long)random) < 0)
            break;
        if (unnamed < 0) {
            fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        } else {
            char link[32];
            snprintf(link, sizeof(link), "/proc/self/fd/%d", unnamed);
            if (linkat(AT_FDCWD, link, AT_FDCWD, *name, AT_SYMLINK_FOLLOW) == 0)
                fd = unnamed;
        }
        if (fd >= 0)
            return fd;
        free(*name);
        if (errno != EEXIST)
            break;
    }
    *name = NULL;
    return -1;
}

/* Open a new file in FOLDER. Where the file system can, it has no name (*NAME is NULL), and is gone whatever ends the
 * process; elsewhere it has one from the beginning. */
static int temporary_open(const char *folder, mode_t mode, char **name)
{
    const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);

    *name = NULL;
    if (fd >= 0 && access("/proc/self/fd", X_OK) == 0) /* it gets its name through there */
        return fd;
    if (fd >= 0)
        close(fd);
    return temporary_name(folder, mode, -1, name);
}

/* Make what was renamed in FOLDER last through a power cut. Some file systems cannot (EINVAL), and a folder that may be
 * written but not read cannot be opened; neither harms the file. */
static bool folder_flush(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd < 0 || fsync(fd) == 0 || errno == EINVAL;

    if (fd >= 0)
        close(fd);
    return done;
}

/* Write TARGET anew, with MODE less the umask, or exactly MODE where one is KEPT. Both paths are free of symbolic links
 * in their last part. Signals wait until no temporary file is left, because most of them end a program. */
static bool write_renamed(const char *target, const char *folder, mode_t mode, bool kept, const uint8_t *bytes,
                          size_t size)
{
    sigset_t all, before;
    char *name;
    bool done;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);

    const int fd = temporary_open(folder, mode, &name);
    done = fd >= 0 && (!kept || fchmod(fd, mode) == 0) && write_all(fd, bytes, size) &&
           (fsync(fd) == 0 || errno == EINVAL) && (name || temporary_name(folder, mode, fd, &name) >= 0);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && done) {
        reason = errno;
        done = false;
    }
    if (done && rename(name, target) != 0) {
        reason = errno;
        done = false;
    }
    if (!done && name)
        unlink(name);
    if (done && !folder_flush(folder)) {
        reason = errno;
        done = false;
    }
    free(name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return done;
}

/* The folder that holds PATH's last part, to be released with free. */
static char *folder_of(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash == NULL ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

bool codec_write(const char *path, const uint8_t *bytes, size_t size, struct error *error)
{
    struct stat status;
    char *target = NULL, *folder = NULL;
    bool done = false;

    if (is_standard(path) || strcmp(path, "/dev/stdout") == 0)
        return write_all(STDOUT_FILENO, bytes, size) || write_failed("standard output", error);
    const bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return write_failed(path, error);
    if (exists && S_ISDIR(status.st_mode))
        return error_set(error, ERROR_WORK, "%s: is a folder; give the path of a file", path);
    if (exists && !S_ISREG(status.st_mode))
        return write_direct(path, bytes, size, error);
    if (!exists && lstat(path, &status) == 0)
        return error_set(error, ERROR_WORK,
                         "%s: is a symbolic link to a file that does not exist; remove it or give the file's own path",
                         path);
    if (!exists && (path[0] == '\0' || path[strlen(path) - 1] == '/'))
        return error_set(error, ERROR_WORK, "%s: names a folder; give the path of a file", path);
    /* Renaming needs no right to write the old file, but its owner took that right away for a reason. */
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return write_failed(path, error);

    target = exists ? realpath(path, NULL) : strdup(path);
    folder = target ? folder_of(target) : NULL;
    done = folder && write_renamed(target, folder, exists ? status.st_mode & 0777 : 0666, exists, bytes, size);
    if (!done)
        write_failed(path, error);
    free(folder);
    free(target);
    return done;
}

bool codec_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;

    return !is_standard(a) && !is_standard(b) && stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}
