/* SPDX-License-Identifier: MIT */
#include "codec/format.h"

#include "base/bytes.h"
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

static const struct format table[FORMAT_COUNT] = {
    [FORMAT_PNG] =
        {
            .id = FORMAT_PNG,
            .name = "PNG",
            .suffixes = {"png"},
            .magic = "\x89PNG",
            .magic_size = 4,
            .max_side = FORMAT_SIDE_MAX,
            .max_bits = 16,
            .work_of_byte = 8,
            .holds_grey = true,
            .holds_colour = true,
            .holds_alpha = true,
            .holds_metadata = true,
            .is_compressed = true,
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
            .magic = "\xff\xd8",
            .magic_size = 2,
            .max_side = 65535, /* a frame header has 16 bits for each */
            .max_bits = 8,
            .work_of_byte =
                24, /* more pixels: 25 ns, and 9 for a PNG, to decode and encode photos (docs/benchmarks.md) */
            .holds_grey = true,
            .holds_colour = true,
            .holds_metadata = true,
            .is_lossy = true,
            .unit_rows = CODEC_UNIT_ROWS,
            .check = jpeg_check,
            .read_metadata = metadata_read_jpeg,
            .write_metadata = metadata_write_jpeg,
        },
    [FORMAT_PGM] = {PNM_FIELDS, .id = FORMAT_PGM, .name = "PGM", .suffixes = {"pgm"}, .magic = "P5", .magic_size = 2,
                    .holds_grey = true},
    [FORMAT_PPM] = {PNM_FIELDS, .id = FORMAT_PPM, .name = "PPM", .suffixes = {"ppm"}, .magic = "P6", .magic_size = 2,
                    .holds_colour = true},
    [FORMAT_PNM] = {PNM_FIELDS, .id = FORMAT_PNM, .name = "PNM", .suffixes = {"pnm"}, .holds_grey = true,
                    .holds_colour = true}, /* a PGM or a PPM */
    [FORMAT_PAM] = {PNM_FIELDS, .id = FORMAT_PAM, .name = "PAM", .suffixes = {"pam"}, .magic = "P7", .magic_size = 2,
                    .holds_grey = true, .holds_colour = true, .holds_alpha = true},
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

void format_join_suffixes(const char *conjunction, char *text, size_t size)
{
    char joint[16], suffix[16];
    snprintf(joint, sizeof joint, " %s ", conjunction);
    text[0] = '\0';
    for (const struct format *format = table; format < table + FORMAT_COUNT; format++)
        for (int i = 0; format->suffixes[i] != NULL; i++) {
            const bool is_last = format == &table[FORMAT_COUNT - 1] && format->suffixes[i + 1] == NULL;
            snprintf(suffix, sizeof suffix, ".%s", format->suffixes[i]);
            text_add_word(text, size, suffix, is_last ? joint : NULL);
        }
}

const struct format *format_find_by_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    return dot != NULL ? format_find_by_suffix(dot + 1) : NULL;
}

size_t format_stem_length(const char *path)
{
    return format_find_by_path(path) != NULL ? (size_t)(strrchr(path, '.') - path) : strlen(path);
}

/* The probable kind of a file whose format is not in the table, with its article ("a GIF"), or NULL. */
static const char *name_foreign(const uint8_t *bytes, size_t size)
{
    static const struct {
        size_t at, length;
        const char *magic, *name;
    } kinds[] = {
        {0, 4, "GIF8", "a GIF image"},      {8, 4, "WEBP", "a WebP image"},       {4, 7, "ftypavi", "an AVIF image"},
        {4, 7, "ftyphei", "a HEIC image"},  {4, 7, "ftyphev", "a HEIC image"},    {4, 8, "ftypmif1", "a HEIF image"},
        {4, 8, "ftypmsf1", "a HEIF image"}, {0, 4, "II*\0", "a TIFF image"},      {0, 4, "MM\0*", "a TIFF image"},
        {0, 2, "BM", "a BMP image"},        {0, 4, "%PDF", "a PDF document"},     {0, 2, "\xff\x0a", "a JPEG XL image"},
        {4, 4, "JXL ", "a JPEG XL image"},  {4, 4, "jP  ", "a JPEG 2000 image"},  {0, 4, "8BPS", "a Photoshop image"},
        {0, 2, "P4", "a PBM bitmap"},       {0, 2, "P1", "a PBM bitmap as text"}, {0, 2, "P2", "a PGM as text"},
        {0, 2, "P3", "a PPM as text"},      {0, 2, "PF", "a PFM image"},          {0, 2, "Pf", "a PFM image"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size >= kinds[i].at + kinds[i].length && memcmp(bytes + kinds[i].at, kinds[i].magic, kinds[i].length) == 0)
            return kinds[i].name;
    /* An SVG file may open with an XML declaration, a document type and comments. */
    if (bytes_contain(bytes, size < 1024 ? size : 1024, "<svg"))
        return "an SVG drawing";
    return NULL;
}

/* Write the names of all formats that are read to TEXT, of SIZE bytes: "PNG, JPEG and PGM", where JOINT is " and ". */
static void join_names(const char *joint, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (table[i].magic != NULL)
            text_add_word(text, size, table[i].name, i == FORMAT_COUNT - 1 ? joint : NULL);
}

const struct format *format_find_by_magic(const uint8_t *bytes, size_t size, const char *name, struct error *error)
{
    for (const struct format *format = table; format < table + FORMAT_COUNT; format++)
        if (format->magic != NULL && size >= format->magic_size &&
            memcmp(bytes, format->magic, format->magic_size) == 0)
            return format;
    const char *foreign = name_foreign(bytes, size);
    char names[64];
    join_names(foreign != NULL ? " and " : " or ", names, sizeof names);
    if (foreign != NULL)
        error_about(error, ERROR_WORK, name, "is %s, and gpuconv reads %s; convert it first", foreign, names);
    else
        error_about(error, ERROR_WORK, name, "is not a %s; give an image in one of these formats", names);
    return NULL;
}
