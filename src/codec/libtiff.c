/* SPDX-License-Identifier: MIT
 *
 * The codec `libtiff`. The container check has found the kind of the picture and its strips or tiles. Rows stream: from
 * strips row by row; from those of deflate, from tiles and from channels that are apart, a row of strips or tiles at a
 * time. libtiff reads and writes memory, and reports to this file only. Instead of the picture's directory it sees one
 * with the entries that a decoder needs, because it would copy the values of all others, which may be large, and which
 * may overlap. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "container/tiff.h"
#include "container/zlib.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

/* A file in memory, and the library's first message about it. */
struct tiff_file {
    TIFF *tiff;
    struct blob *content;
    size_t at;
    uint8_t directory[TIFF_NEEDED_BYTES]; /* only for reading: the directory as libtiff sees it */
    size_t directory_at, directory_size;
    struct blob mended; /* what the library sees after the end of the file */
    bool is_called, lacks_memory;
    bool is_decoding;       /* a warning is about damaged data, and not about an entry that is of no use */
    jmp_buf without_memory; /* while it is called: where to go on */
    char reason[128];
};

/* ---- The library ---- */

static tmsize_t file_read_bytes(thandle_t handle, void *to, tmsize_t size)
{
    struct tiff_file *file = handle;
    const size_t end = file->content->size, all = end + file->mended.size;
    const size_t left = file->at < all ? all - file->at : 0, count = (size_t)size < left ? (size_t)size : left;
    size_t first = file->at < end ? end - file->at : 0; /* bytes that are in the file itself */
    if (first > count)
        first = count;
    memcpy(to, file->content->bytes + (file->at < end ? file->at : 0), first);
    if (first < count)
        memcpy((uint8_t *)to + first, file->mended.bytes + (file->at + first - end), count - first);
    /* The directory takes the position of the one in the file, and is no longer. */
    for (size_t i = 0; i < file->directory_size; i++)
        if (file->directory_at + i >= file->at && file->directory_at + i - file->at < count)
            ((uint8_t *)to)[file->directory_at + i - file->at] = file->directory[i];
    file->at += count;
    return (tmsize_t)count;
}

static tmsize_t file_write_bytes(thandle_t handle, void *from, tmsize_t size)
{
    struct tiff_file *file = handle;
    const size_t before = file->content->size, end = file->at + (size_t)size;
    if (end > before && blob_extend(file->content, end - before) == NULL)
        return -1;
    if (file->at > before)
        memset(file->content->bytes + before, 0, file->at - before);
    memcpy(file->content->bytes + file->at, from, (size_t)size);
    file->at = end;
    return size;
}

static toff_t file_size(thandle_t handle)
{
    const struct tiff_file *file = handle;
    return file->content->size + file->mended.size;
}

static toff_t file_seek(thandle_t handle, toff_t offset, int whence)
{
    struct tiff_file *file = handle;
    file->at = (size_t)(whence == SEEK_CUR   ? file->at + offset
                        : whence == SEEK_END ? file_size(file) + offset
                                             : offset);
    return file->at;
}

static int file_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

/* Call the library by FUNCTION. Returns false if it fails, if it has ever given a message, or if memory was lacking.
 * Some decoders fill up what is damaged, give a message and succeed. The library has many words for a lack of memory,
 * and goes on without those lists and values. Then it may crash, or read another picture. But malloc sets errno, and
 * the library gives a message, from which it does not get back here. It leaks a few small blocks then. */
static bool call_libtiff(struct tiff_file *file, bool (*function)(void *context), void *context)
{
    bool done = false;
    errno = 0;
    file->is_called = true;
    if (setjmp(file->without_memory) == 0)
        done = function(context);
    file->is_called = false;
    file->lacks_memory |= errno == ENOMEM;
    return done && !file->lacks_memory && file->reason[0] == '\0';
}

/* Keep the first message. Returns 1: it is handled. */
static int record_error(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments)
{
    struct tiff_file *file = context;
    (void)tiff;
    (void)module;
    file->lacks_memory |= errno == ENOMEM;
    if (file->lacks_memory && file->is_called)
        longjmp(file->without_memory, 1);
    if (file->reason[0] == '\0')
        vsnprintf(file->reason, sizeof file->reason, format, arguments);
    for (char *at = file->reason; *at != '\0'; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    return 1;
}

static int record_warning(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments)
{
    const struct tiff_file *file = context;
    const bool is_decodable = strstr(format, "should be able to decode it") != NULL; /* progressive JPEG in a TIFF */
    return file->is_decoding && !is_decodable ? record_error(tiff, context, module, format, arguments) : 1;
}

/* Open FILE in MODE. The library allocates no block of more than MAX bytes. */
static bool file_open(struct tiff_file *file, const char *mode, size_t max)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    file->lacks_memory = options == NULL;
    if (options == NULL)
        return false;
    TIFFOpenOptionsSetErrorHandlerExtR(options, record_error, file);
    TIFFOpenOptionsSetWarningHandlerExtR(options, record_warning, file);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)max);
    errno = 0;
    file->tiff = TIFFClientOpenExt("image", mode, file, file_read_bytes, file_write_bytes, file_seek, file_close,
                                   file_size, NULL, NULL, options);
    file->lacks_memory |= errno == ENOMEM;
    TIFFOpenOptionsFree(options);
    return file->tiff != NULL && !file->lacks_memory;
}

/* Release a file without a flush, because the library can crash in a flush after a failure. */
static void file_release(struct tiff_file *file)
{
    if (file->tiff == NULL)
        return;
    TIFFSetMode(file->tiff, O_RDONLY);
    TIFFClose(file->tiff);
    file->tiff = NULL;
}

/* ---- Reading ---- */

struct tiff_reader {
    struct tiff_file file;
    struct blob input;
    uint8_t *rows;           /* a row of cells, or one row, with all samples of a pixel next to each other */
    uint8_t *cell;           /* a decoded tile or strip, where ROWS is not all of it */
    int first, count;        /* the rows that ROWS holds */
    uint8_t palette[256][3]; /* red, green and blue of each index, in 8 bits */
};

static bool is_deflate(const struct tiff_header *header)
{
    return header->compression == TIFF_DEFLATE || header->compression == TIFF_DEFLATE_OLD;
}

/* Are rows read one by one, and not by the cell? The checksum of a deflate stream is that of a whole strip. */
static bool reads_single_rows(const struct tiff_header *header)
{
    const size_t whole_max = (size_t)64 << 20;
    return !header->is_tiled && !header->is_separate &&
           (!is_deflate(header) || tiff_cell_row(header) > whole_max / (size_t)header->cell_height);
}

/* Is a cell all of the reader's rows? */
static bool fills_rows(const struct tiff_header *header)
{
    return !header->is_tiled && !header->is_separate;
}

/* Bytes of a row of the picture in the reader's memory. */
static size_t memory_row_bytes(const struct codec_info *info)
{
    const struct tiff_header *header = &info->tiff;
    const size_t across = header->is_tiled ? (size_t)((info->width - 1) / header->cell_width + 1) : 1;
    return ((size_t)header->cell_width * across * (size_t)header->samples * (size_t)header->bits + 7) / 8;
}

static size_t rows_bytes(const struct codec_info *info)
{
    return memory_row_bytes(info) * (reads_single_rows(&info->tiff) ? 1 : (size_t)info->tiff.cell_height);
}

static size_t cell_bytes(const struct codec_info *info)
{
    return reads_single_rows(&info->tiff) ? 0 : tiff_cell_row(&info->tiff) * (size_t)info->tiff.cell_height;
}

/* Bytes of memory that the library's decoder of a cell takes. A window of ZSTD or a dictionary of LZMA fills with
 * decoded bytes, whatever size it claims; libzstd takes no larger window. The codes of fax have lists of runs in two
 * rows. libjpeg has some rows of blocks, and all coefficients of a JPEG in several scans. */
static size_t decoder_need(const struct tiff_header *header)
{
    enum { RUNS = 20, ROWS = 64, COEFFICIENT = 2 };
    const size_t row = tiff_cell_row(header), cell = row * (size_t)header->cell_height, window = (size_t)128 << 20;
    switch (header->compression) {
    case TIFF_FAX_RUNS:
    case TIFF_FAX_3:
    case TIFF_FAX_4:
        return RUNS * (size_t)header->cell_width;
    case TIFF_JPEG:
        return ROWS * row + COEFFICIENT * header->coefficients;
    case TIFF_LZMA:
        return cell;
    case TIFF_ZSTD:
        return cell < window ? cell : window;
    default:
        return 0;
    }
}

/* The library lists the cells, copies the values of some other entries, and copies a cell as it is in the file. */
static size_t reader_need(const struct codec_info *info)
{
    enum { OTHER = 1 << 20, LISTS = 64, NUMBER = 24 };
    const struct tiff_header *header = &info->tiff;
    return OTHER + rows_bytes(info) + cell_bytes(info) + 4 * tiff_cell_row(header) + 2 * header->cell_max +
           LISTS * header->cells + NUMBER * header->numbers + decoder_need(header);
}

static bool report_reason(const struct codec_reader *reader, struct error *error)
{
    const struct tiff_reader *state = reader->state;
    const char *reason = state->file.reason;
    if (state->file.lacks_memory)
        return error_no_memory(error, "the decoder");
    return codec_report_damaged(&reader->input, reason[0] != '\0' ? reason : NULL, error);
}

/* Does the library see the same picture as the check? */
static bool agrees(TIFF *tiff, const struct codec_info *info)
{
    const struct tiff_header *header = &info->tiff;
    uint32_t width = 0, height = 0;
    uint16_t bits = 0, samples = 0, photometric = 0, compression = 0, planar = 0;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
    const tmsize_t row = header->is_tiled ? TIFFTileRowSize(tiff) : TIFFScanlineSize(tiff);
    const uint32_t cells = header->is_tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
    return width == (uint32_t)info->width && height == (uint32_t)info->height && bits == header->bits &&
           samples == header->samples && photometric == header->photometric && compression == header->compression &&
           (planar == PLANARCONFIG_SEPARATE && samples > 1) == header->is_separate &&
           (TIFFIsTiled(tiff) != 0) == header->is_tiled && row == (tmsize_t)tiff_cell_row(header) &&
           cells == header->cells && (!header->is_tiled || TIFFTileSize(tiff) == row * (tmsize_t)header->cell_height);
}

/* Read the palette of a file that was checked. Some writers store 8 bits in its 16. */
static void read_colour_map(struct tiff_reader *state, const struct tiff_directory *directory, size_t count)
{
    struct tiff_entry entry;
    bool is_wide = false;
    if (!tiff_find(directory, TIFF_TAG_PALETTE, &entry))
        return;
    for (size_t i = 0; i < 3 * count; i++)
        is_wide = is_wide || tiff_number(directory, &entry, i) > 255;
    for (size_t i = 0; i < 3 * count; i++) {
        const uint16_t level = (uint16_t)tiff_number(directory, &entry, i);
        state->palette[i % count][i / count] = is_wide ? reduce_sample(level) : (uint8_t)level;
    }
}

/* Copy CELL, of channel CHANNEL at column X of the picture, to the rows. Only samples of 8 and 16 bits are apart. */
static void put_cell(const struct codec_info *info, const struct tiff_reader *state, size_t x, size_t channel)
{
    const struct tiff_header *header = &info->tiff;
    const size_t from = tiff_cell_row(header), to = memory_row_bytes(info), sample = (size_t)header->bits / 8;
    const size_t pixel = sample * (size_t)header->samples;
    for (int y = 0; y < state->count; y++) {
        const uint8_t *in = state->cell + (size_t)y * from;
        uint8_t *out = state->rows + (size_t)y * to;
        if (!header->is_separate) {
            memcpy(out + x * (size_t)header->bits * (size_t)header->samples / 8, in, from);
            continue;
        }
        for (size_t i = 0; i < (size_t)header->cell_width; i++)
            memcpy(out + (x + i) * pixel + channel * sample, in + i * sample, sample);
    }
}

/* Has a deflate stream its end, after a whole cell or less, and the right checksum? The library stops where its cell is
 * full. CELL is scratch. */
static bool check_deflate(const struct codec_reader *reader, uint32_t index, uint8_t *cell)
{
    struct tiff_reader *state = reader->state;
    const struct tiff_header *header = &reader->input.info->tiff;
    const size_t offset = TIFFGetStrileOffset(state->file.tiff, index),
                 size = TIFFGetStrileByteCount(state->file.tiff, index);
    size_t read, used;
    const enum zlib_result result = zlib_inflate(reader->input.bytes + offset, size, cell,
                                                 tiff_cell_row(header) * (size_t)header->cell_height, &read, &used);
    state->file.lacks_memory |= result == ZLIB_NO_MEMORY;
    return result == ZLIB_DONE;
}

/* Fill the rows from row Y of the picture on: a row of cells. */
static bool read_cell_row(const struct codec_reader *reader, int y)
{
    const struct codec_info *info = reader->input.info;
    const struct tiff_header *header = &info->tiff;
    struct tiff_reader *state = reader->state;
    TIFF *tiff = state->file.tiff;
    const size_t channels = header->is_separate ? (size_t)header->samples : 1;
    uint8_t *cell = fills_rows(header) ? state->rows : state->cell;
    state->first = y - y % header->cell_height;
    const int left = info->height - state->first;
    state->count = header->cell_height < left ? header->cell_height : left;
    const size_t size = tiff_cell_row(header) * (size_t)(header->is_tiled ? header->cell_height : state->count);
    for (size_t channel = 0; channel < channels; channel++)
        for (int x = 0; x < info->width; x += header->cell_width) {
            const uint32_t index = header->is_tiled
                                       ? TIFFComputeTile(tiff, (uint32_t)x, (uint32_t)y, 0, (uint16_t)channel)
                                       : TIFFComputeStrip(tiff, (uint32_t)y, (uint16_t)channel);
            const tmsize_t got = header->is_tiled ? TIFFReadEncodedTile(tiff, index, cell, (tmsize_t)size)
                                                  : TIFFReadEncodedStrip(tiff, index, cell, (tmsize_t)size);
            if (got < (tmsize_t)size)
                return false;
            if (cell == state->cell)
                put_cell(info, state, (size_t)x, channel);
            if (is_deflate(header) && !check_deflate(reader, index, state->cell))
                return false;
        }
    return true;
}

/* Row Y of the picture, and where the reader has it. */
struct found_row {
    const struct codec_reader *reader;
    int y;
    const uint8_t *bytes;
};

/* call_libtiff's function: find a row. */
static bool find_cell_row(void *context)
{
    struct found_row *row = context;
    const struct codec_info *info = row->reader->input.info;
    struct tiff_reader *state = row->reader->state;
    row->bytes = state->rows;
    if (reads_single_rows(&info->tiff))
        return TIFFReadScanline(state->file.tiff, state->rows, (uint32_t)row->y, 0) == 1;
    if ((row->y < state->first || row->y >= state->first + state->count) && !read_cell_row(row->reader, row->y))
        return false;
    row->bytes += (size_t)(row->y - state->first) * memory_row_bytes(info);
    return true;
}

/* Copy COUNT samples of less than 8 bits, of the palette or grey. */
static void unpack(const struct tiff_reader *state, const struct tiff_header *header, const uint8_t *in, size_t count,
                   uint8_t *out)
{
    const unsigned bits = (unsigned)header->bits, white = (1U << bits) - 1;
    for (size_t i = 0; i < count; i++) {
        const size_t bit = i * bits;
        const unsigned value = in[bit / 8] >> (8 - bits - bit % 8) & white;
        if (header->photometric == TIFF_PALETTE)
            memcpy(out + 3 * i, state->palette[value], 3);
        else
            out[i] = (uint8_t)(value * (255 / white));
    }
}

/* Divide the colours of COUNT pixels by their alpha. */
static void divide_alpha(uint8_t *samples, int channels, int bits, size_t count)
{
    uint16_t *samples16 = (uint16_t *)(void *)samples;
    const int last = channels - 1;
    for (size_t i = 0; i < count; i++, samples += channels, samples16 += channels)
        for (int c = 0; c < last; c++) {
            if (bits == 16)
                samples16[c] = unpremultiply_sample16(samples16[c], samples16[last]);
            else
                samples[c] = (uint8_t)unpremultiply_sample(samples[c], samples[last]);
        }
}

/* Convert a row of the file to one of the image. */
static void convert_strip_row(const struct codec_info *info, const struct tiff_reader *state, const uint8_t *in,
                              uint8_t *out)
{
    const struct tiff_header *header = &info->tiff;
    const size_t width = (size_t)info->width, bytes = width * (size_t)info->channels * (size_t)info->bits / 8;
    if (header->bits < 8 || header->photometric == TIFF_PALETTE)
        unpack(state, header, in, width, out);
    else
        memcpy(out, in, bytes);
    const size_t sample = (size_t)info->bits / 8, step = sample * (size_t)info->channels;
    for (size_t i = 0; header->photometric == TIFF_WHITE_IS_0 && i < width; i++) /* alpha stays */
        for (size_t k = 0; k < sample; k++)
            out[i * step + k] = (uint8_t)~out[i * step + k];
    if (header->is_associated)
        divide_alpha(out, info->channels, info->bits, width);
}

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct codec_reader *reader = context;
    const struct codec_info *info = reader->input.info;
    struct tiff_reader *state = reader->state;
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8;
    (void)raw;
    for (int y = 0; y < rows; y++) {
        struct found_row found = {.reader = reader, .y = first + y};
        if (!call_libtiff(&state->file, find_cell_row, &found))
            return report_reason(reader, error);
        convert_strip_row(info, state, found.bytes, samples + (size_t)y * row);
    }
    return true;
}

/* call_libtiff's function: read the directory of an open file. */
static bool read_directory(void *context)
{
    const struct codec_reader *reader = context;
    TIFF *tiff = ((struct tiff_reader *)reader->state)->file.tiff;
    return TIFFReadDirectory(tiff) == 1 && (reader->input.info->tiff.photometric != TIFF_YCBCR ||
                                            TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB) == 1);
}

/* After the end of a file whose own list of sizes of strips or tiles is wrong, let the library see a directory with a
 * right list, and that list. They take more bytes than are there. It also sees a directory there that is not the file's
 * first one. Returns false if memory is lacking. */
static bool mend_directory(struct tiff_file *file, const struct tiff_directory *directory,
                           const struct tiff_header *header)
{
    const size_t each = tiff_offset_bytes(directory), end = file->content->size;
    const size_t sizes = header->has_wrong_sizes ? header->cells : 0;
    struct tiff_cells cells;
    uint8_t *to = blob_extend(&file->mended, TIFF_NEEDED_BYTES + sizes * each);
    if (to == NULL || !tiff_find_cells(directory, &cells))
        return false;
    const size_t list = sizes == 1 ? (size_t)tiff_cell_size(directory, header, &cells, 0) : end + TIFF_NEEDED_BYTES;
    tiff_put_needed(directory, sizes > 0 ? list : 0, sizes, to);
    for (size_t i = 0; i < sizes; i++)
        bytes_put_number(to + TIFF_NEEDED_BYTES + i * each, each, directory->big,
                         tiff_cell_size(directory, header, &cells, i));
    file->directory_at = file->directory_size = each; /* the head's offset of the directory */
    bytes_put_number(file->directory, each, directory->big, end);
    return true;
}

/* Let the library open a checked file. */
static bool open_in_library(struct codec_reader *reader)
{
    const struct codec_input *input = &reader->input;
    struct tiff_reader *state = reader->state;
    struct tiff_file *file = &state->file;
    struct tiff_directory first, directory;
    int pages;
    if (!tiff_open_first(input->bytes, input->size, &first) ||
        tiff_find_page(&first, input->settings->page, &directory, &pages) != input->info->page)
        return false;
    state->input = (struct blob){(uint8_t *)input->bytes, input->size};
    file->content = &state->input;
    file->directory_at = tiff_start(&directory);
    file->directory_size = tiff_put_needed(&directory, 0, 0, file->directory);
    file->lacks_memory = (input->info->tiff.has_wrong_sizes || input->info->page > 1) &&
                         !mend_directory(file, &directory, &input->info->tiff);
    if (file->lacks_memory)
        return false;
    if (input->info->tiff.photometric == TIFF_PALETTE)
        read_colour_map(state, &directory, (size_t)1 << input->info->tiff.bits);
    file->is_decoding = file_open(file, "rhmc", reader_need(input->info)) && call_libtiff(file, read_directory, reader);
    return file->is_decoding;
}

static bool reader_open(struct codec_reader *reader, struct error *error)
{
    const struct codec_input *input = &reader->input;
    const struct codec_info *info = input->info;
    const struct tiff_header *header = &info->tiff;
    struct tiff_reader *state = reader->state;
    reader->source.read = read_rows;
    state->rows = calloc(1, rows_bytes(info));
    state->cell = calloc(1, cell_bytes(info) + 1);
    if (state->rows == NULL || state->cell == NULL)
        return error_no_memory(error, "the decoder");
    if (!open_in_library(reader))
        return report_reason(reader, error);
    if (!TIFFIsCODECConfigured((uint16_t)header->compression))
        return error_about(error, ERROR_WORK, input->name,
                           "is a TIFF of compression %u, which this libtiff does not read; save it again with deflate",
                           header->compression);
    if (!agrees(state->file.tiff, info))
        return codec_report_damaged(input, "its directory contradicts itself", error);
    return true;
}

static void reader_close(struct codec_reader *reader)
{
    struct tiff_reader *state = reader->state;
    file_release(&state->file);
    blob_free(&state->file.mended);
    free(state->rows);
    free(state->cell);
}

/* ---- Writing ---- */

struct tiff_writer {
    struct tiff_file file;
    int strip_rows;
    uint8_t *strip; /* a copy, because the library changes what it writes */
    uint32_t index; /* the strip's index in the file */
    tmsize_t size;  /* the strip's bytes */
};

enum { STRIP_BYTES = 1 << 18 };

static int rows_of_strip(const struct image *shape)
{
    const size_t rows = STRIP_BYTES / image_row_bytes(shape);
    return rows < 1 ? 1 : rows < (size_t)shape->height ? (int)rows : shape->height;
}

/* The strip, its copy with differences, and its compressed bytes; lists of strips; and the compressor. For level 9
 * libtiff takes libdeflate's level 10, which searches in 9 MB. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    enum { OTHER = 1 << 20, SEARCH = 9 << 20, LISTS = 64 };
    const size_t row = image_row_bytes(shape), fixed = settings->compression == 9 ? OTHER + SEARCH : OTHER;
    return fixed + 4 * row * (size_t)rows_of_strip(shape) + LISTS * (size_t)(shape->height / rows_of_strip(shape) + 1);
}

static bool report_unwritten(const struct tiff_writer *state, struct error *error)
{
    if (state->file.lacks_memory || state->file.reason[0] == '\0')
        return error_no_memory(error, "the encoded image");
    return error_set(error, ERROR_WORK, "the TIFF cannot be written: %s; write a PNG", state->file.reason);
}

/* call_libtiff's function. */
static bool write_strip(void *context)
{
    const struct tiff_writer *state = context;
    return TIFFWriteEncodedStrip(state->file.tiff, state->index, state->strip, state->size) >= 0;
}

static bool write_rows(void *context, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    struct tiff_writer *state = writer->state;
    const size_t row = image_row_bytes(rows);
    for (int y = 0; y < rows->height; y += state->strip_rows) {
        const int left = rows->height - y;
        const size_t size = (size_t)(left < state->strip_rows ? left : state->strip_rows) * row;
        memcpy(state->strip, image_row(rows, y), size);
        state->index = (uint32_t)((first + y) / state->strip_rows);
        state->size = (tmsize_t)size;
        if (!call_libtiff(&state->file, write_strip, state))
            return report_unwritten(state, error);
    }
    writer->written = writer->file.size;
    return true;
}

/* call_libtiff's function: say what the picture is. The level is --compression; the differences of neighbours
 * compress better than samples. */
static bool set_fields(void *context)
{
    const struct codec_writer *writer = context;
    const struct tiff_writer *state = writer->state;
    TIFF *tiff = state->file.tiff;
    enum { UNASSOCIATED = 2, DIFFERENCES = 2 };
    const struct image *shape = &writer->shape;
    const uint16_t extra = UNASSOCIATED;
    const int level =
        writer->settings->compression == CODEC_COMPRESSION_FAST ? CODEC_COMPRESSION : writer->settings->compression;
    return TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)shape->width) &&
           TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, (uint32_t)shape->height) &&
           TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, shape->bits) &&
           TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, shape->channels) &&
           TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, shape->channels < 3 ? TIFF_BLACK_IS_0 : TIFF_RGB) &&
           TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
           TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, (uint32_t)state->strip_rows) &&
           (!image_has_alpha(shape) || TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra)) &&
           TIFFSetField(tiff, TIFFTAG_COMPRESSION, level > 0 ? COMPRESSION_ADOBE_DEFLATE : COMPRESSION_NONE) &&
           (level == 0 ||
            (TIFFSetField(tiff, TIFFTAG_ZIPQUALITY, level) && TIFFSetField(tiff, TIFFTAG_PREDICTOR, DIFFERENCES)));
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    const size_t classic_max = (size_t)4000 << 20; /* with its lists and metadata it stays below 2^32 bytes */
    struct tiff_writer *state = writer->state;
    state->file.content = &writer->file;
    state->strip_rows = rows_of_strip(&writer->shape);
    writer->sink.multiple = state->strip_rows;
    writer->sink.write = write_rows;
    state->strip = malloc((size_t)state->strip_rows * image_row_bytes(&writer->shape));
    if (state->strip == NULL)
        return error_no_memory(error, "the encoded image");
    const bool is_large = codec_file_bound(&writer->shape, writer->format, writer->settings) > classic_max;
    return (file_open(&state->file, is_large ? "wl8" : "wl", 0) && call_libtiff(&state->file, set_fields, writer)) ||
           report_unwritten(state, error);
}

/* call_libtiff's function. */
static bool flush_library(void *context)
{
    return TIFFFlush(((struct tiff_writer *)context)->file.tiff) == 1;
}

static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    struct tiff_writer *state = writer->state;
    return call_libtiff(&state->file, flush_library, state) || report_unwritten(state, error);
}

static void writer_close(struct codec_writer *writer)
{
    struct tiff_writer *state = writer->state;
    file_release(&state->file);
    free(state->strip);
}

const struct codec_functions libtiff = {
    .reader_state = sizeof(struct tiff_reader),
    .writer_state = sizeof(struct tiff_writer),
    .reader_need = reader_need,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
