/* SPDX-License-Identifier: MIT */
#include "codec/format.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/codec.h"
#include "container/jpeg.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The fields that are alike in netpbm's formats. */
#define PNM_FIELDS                                                                                                     \
    .max_side = FORMAT_SIDE_MAX, .max_bits = 16, .work_of_byte = 1, .unit_rows = 1, .check = pnm_check,                \
    .read_metadata = metadata_read_none, .write_metadata = metadata_write_none

/* The fields that are alike in HEIC and AVIF. AV1 is encoded at about a Mpixel a second. */
#define HEIF_FIELDS                                                                                                    \
    .magic_at = 4, .magic_size = 7, .max_side = HEIF_SIDE_MAX, .max_bits = 12, .work_of_byte = 300,                    \
    .holds_grey = true, .holds_colour = true, .holds_alpha = true, .has_pages = true, .is_lossy = true,                \
    .unit_rows = 1, .check = heif_check, .read_metadata = metadata_read_heif

static const struct format table[FORMAT_COUNT] = {
    [FORMAT_PNG] =
        {
            .id = FORMAT_PNG,
            .name = "PNG",
            .suffixes = {"png"},
            .magics = {"\x89PNG"},
            .magic_size = 4,
            .max_side = FORMAT_SIDE_MAX,
            .max_bits = 16,
            .work_of_byte = 8,
            .holds_grey = true,
            .holds_colour = true,
            .holds_alpha = true,
            .holds_comments = true,
            .is_for_browsers = true,
            .options = FORMAT_COMPRESSION,
            .unit_rows = 1,
            .check = png_check,
            .read_metadata = metadata_read_png,
            .write_metadata = metadata_write_png,
        },
    [FORMAT_JPEG] =
        {
            .id = FORMAT_JPEG,
            .name = "JPEG",
            .suffixes = {"jpg", "jpeg"},
            .magics = {"\xff\xd8"},
            .magic_size = 2,
            .max_side = 65535, /* a frame header has 16 bits for each */
            .max_bits = 8,
            .work_of_byte =
                24, /* more pixels: 25 ns, and 9 for a PNG, to decode and encode photos (docs/benchmarks.md) */
            .holds_grey = true,
            .holds_colour = true,
            .holds_comments = true,
            .is_lossy = true,
            .is_for_browsers = true,
            .options = FORMAT_QUALITY | FORMAT_SUBSAMPLING | FORMAT_PROGRESSIVE,
            .unit_rows = CODEC_UNIT_ROWS,
            .check = jpeg_check,
            .read_metadata = metadata_read_jpeg,
            .write_metadata = metadata_write_jpeg,
        },
    [FORMAT_PGM] = {PNM_FIELDS, .id = FORMAT_PGM, .name = "PGM", .suffixes = {"pgm"}, .magics = {"P5"}, .magic_size = 2,
                    .holds_grey = true},
    [FORMAT_PPM] = {PNM_FIELDS, .id = FORMAT_PPM, .name = "PPM", .suffixes = {"ppm"}, .magics = {"P6"}, .magic_size = 2,
                    .holds_colour = true},
    [FORMAT_PNM] = {PNM_FIELDS, .id = FORMAT_PNM, .name = "PNM", .suffixes = {"pnm"}, .holds_grey = true,
                    .holds_colour = true}, /* a PGM or a PPM */
    [FORMAT_PAM] = {PNM_FIELDS, .id = FORMAT_PAM, .name = "PAM", .suffixes = {"pam"}, .magics = {"P7"}, .magic_size = 2,
                    .holds_grey = true, .holds_colour = true, .holds_alpha = true},
    [FORMAT_WEBP] =
        {
            .id = FORMAT_WEBP,
            .name = "WebP",
            .suffixes = {"webp"},
            .magics = {"WEBP"},
            .magic_at = 8,
            .magic_size = 4,
            .max_side = 16383, /* the limit of a lossy picture; a lossless one has at most 16384 pixels on a side */
            .max_bits = 8,
            .work_of_byte = 200, /* libwebp encodes about 6 Mpixel a second */
            .holds_grey = true,  /* as equal colours */
            .holds_colour = true,
            .holds_alpha = true,
            .has_pages = true,
            .is_lossy = true,
            .is_for_browsers = true,
            .options = FORMAT_QUALITY | FORMAT_LOSSLESS,
            .unit_rows = 1,
            .check = webp_check,
            .read_metadata = metadata_read_webp,
            .write_metadata = metadata_write_webp,
        },
    [FORMAT_TIFF] =
        {
            .id = FORMAT_TIFF,
            .name = "TIFF",
            .suffixes = {"tif", "tiff"},
            .magics = {"II*\0", "MM\0*", "II+\0", "MM\0+"},
            .magic_size = 4,
            .max_side = FORMAT_SIDE_MAX,
            .max_bits = 16,
            .work_of_byte = 4,
            .holds_grey = true,
            .holds_colour = true,
            .holds_alpha = true,
            .has_pages = true,
            .options = FORMAT_COMPRESSION,
            .unit_rows = 1,
            .check = tiff_check,
            .read_metadata = metadata_read_tiff,
            .write_metadata = metadata_write_tiff,
        },
    [FORMAT_AVIF] = {HEIF_FIELDS, .id = FORMAT_AVIF, .name = "AVIF", .suffixes = {"avif"}, .magics = {"ftypavi"},
                     .is_for_browsers = true, .options = FORMAT_QUALITY | FORMAT_LOSSLESS,
                     .write_metadata = metadata_write_avif},
    [FORMAT_HEIC] = {HEIF_FIELDS, .id = FORMAT_HEIC, .name = "HEIC", .suffixes = {"heic", "heif", "hif"},
                     .is_only_read = true, .magics = {"ftyphei", "ftyphev", "ftypmif", "ftypmsf"},
                     .write_metadata = metadata_write_none},
};

const struct format *formats(size_t *count)
{
    *count = FORMAT_COUNT;
    return table;
}

const struct format *format_of(enum format_id id)
{
    return &table[id];
}

const struct format *format_find_by_suffix(const char *suffix)
{
    for (const struct format *format = table; format < table + FORMAT_COUNT; format++)
        for (int i = 0; format->suffixes[i] != NULL; i++)
            if (strcasecmp(suffix, format->suffixes[i]) == 0)
                return format;
    return NULL;
}

void format_join_suffixes(const char *conjunction, bool written, char *text, size_t size)
{
    char joint[16], suffix[16];
    const struct format *end = table + FORMAT_COUNT;
    while (written && end[-1].is_only_read)
        end--;
    snprintf(joint, sizeof joint, " %s ", conjunction);
    text[0] = '\0';
    for (const struct format *format = table; format < end; format++)
        for (int i = 0; format->suffixes[i] != NULL; i++) {
            const bool is_last = format == end - 1 && format->suffixes[i + 1] == NULL;
            snprintf(suffix, sizeof suffix, ".%s", format->suffixes[i]);
            text_add_word(text, size, suffix, is_last ? joint : NULL);
        }
}

const struct format *format_find_by_path(const char *path)
{
    const char *dot = strrchr(file_name(path), '.');
    return dot != NULL ? format_find_by_suffix(dot + 1) : NULL;
}

size_t format_stem_length(const char *path)
{
    return format_find_by_path(path) != NULL ? (size_t)(strrchr(path, '.') - path) : strlen(path);
}

/* Kinds of files whose formats are not in the table, with articles. A command makes a PNG of a file; PNM as text and
 * bitmaps have common suffixes, and an SVG is known by other bytes. */
static const struct {
    size_t at, length;
    const char *magic, *name, *suffix, *command;
} foreign[] = {
    {0, 4, "GIF8", "a GIF image", "gif", "convert 'a.gif[0]' a.png"},
    {0, 2, "BM", "a BMP image", "bmp", "convert a.bmp a.png"},
    {0, 4, "%PDF", "a PDF document", NULL, "pdftoppm -png a.pdf a"},
    {0, 2, "\xff\x0a", "a JPEG XL image", "jxl", "djxl a.jxl a.png"},
    {4, 4, "JXL ", "a JPEG XL image", NULL, "djxl a.jxl a.png"},
    {4, 4, "jP  ", "a JPEG 2000 image", "jp2", "opj_decompress -i a.jp2 -o a.png"},
    {0, 4, "8BPS", "a Photoshop image", "psd", "convert 'a.psd[0]' a.png"},
    {0, 2, "P4", "a PBM bitmap", "pbm", "pnmtopng a.pbm >a.png"},
    {0, 2, "P1", "a PBM bitmap as text", NULL, "pnmtopng a.pbm >a.png"},
    {0, 2, "P2", "a PGM as text", NULL, "pnmtopng a.pgm >a.png"},
    {0, 2, "P3", "a PPM as text", NULL, "pnmtopng a.ppm >a.png"},
    {0, 2, "PF", "a PFM image", "pfm", "convert a.pfm a.png"},
    {0, 2, "Pf", "a PFM image", NULL, "convert a.pfm a.png"},
    {0, 0, NULL, "an SVG drawing", "svg", "rsvg-convert a.svg -o a.png"},
};

enum { FOREIGN = sizeof foreign / sizeof *foreign };

/* The row of a file of one of these kinds, or FOREIGN. An SVG file may open with an XML declaration, a document type
 * and comments. */
static size_t find_foreign(const uint8_t *bytes, size_t size)
{
    size_t i = 0;
    while (i < FOREIGN - 1 && (size < foreign[i].at + foreign[i].length ||
                               memcmp(bytes + foreign[i].at, foreign[i].magic, foreign[i].length) != 0))
        i++;
    return i < FOREIGN - 1 || bytes_contain(bytes, size < 1024 ? size : 1024, "<svg") ? i : FOREIGN;
}

bool format_describe_foreign(const char *suffix, char *text, size_t size)
{
    size_t i = 0;
    while (i < FOREIGN && (foreign[i].suffix == NULL || strcmp(foreign[i].suffix, suffix) != 0))
        i++;
    if (i < FOREIGN)
        snprintf(text, size, " is %s; convert it first, for example: %s", foreign[i].name, foreign[i].command);
    return i < FOREIGN;
}

/* Write the names of all formats that are read to TEXT, of SIZE bytes: "PNG, JPEG and PGM" for the CONJUNCTION " and
 * ". */
static void join_names(const char *conjunction, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (table[i].magics[0] != NULL)
            text_add_word(text, size, table[i].name, i == FORMAT_COUNT - 1 ? conjunction : NULL);
}

const struct format *format_find_by_magic(const uint8_t *bytes, size_t size, const char *name, struct error *error)
{
    for (const struct format *format = table; format < table + FORMAT_COUNT; format++)
        for (int i = 0; format->magics[i] != NULL; i++)
            if (size >= format->magic_at + format->magic_size &&
                memcmp(bytes + format->magic_at, format->magics[i], format->magic_size) == 0)
                return format;
    const size_t row = find_foreign(bytes, size);
    char names[64];
    join_names(row < FOREIGN ? " and " : " or ", names, sizeof names);
    if (row < FOREIGN)
        error_about(error, ERROR_WORK, name, "is %s, and gpuconv reads %s; convert it first, for example: %s",
                    foreign[row].name, names, foreign[row].command);
    else
        error_about(error, ERROR_WORK, name, "is not a %s; give an image in one of these formats", names);
    return NULL;
}
