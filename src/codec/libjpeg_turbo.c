/* SPDX-License-Identifier: MIT
 *
 * The codec `libjpeg-turbo`: JPEG through the interface of libjpeg. The library reports an error by calling a function
 * that must not return, so that function jumps back here. The jump loses local variables that have changed. So it goes
 * only to `attempt`, which has no such variables and calls all functions that call the library.
 *
 * CMYK becomes RGB without a profile. The samples of a file are inverted: 255 is no ink. So R = C K / 255, rounded to
 * the nearest integer, and G and B are the same of M and Y. The library has made CMYK from YCCK before. A file without
 * an Adobe marker is inverted, too: the standard does not say, and ImageMagick, libvips and Pillow read it so. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "base/round.h"
#include "metadata/littlecms.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> /* after jpeglib.h, whose JPEG_LIB_VERSION the numbers of the messages depend on */

enum {
    ROWS = 16,                /* passed to the library at once: the rows of the tallest blocks */
    FIRST_CAPACITY = 1 << 18, /* bytes for the encoded file; doubled as needed */
};

/* The library's error manager, and where to jump to. */
struct errors {
    struct jpeg_error_mgr manager; /* first, because the library knows only this */
    jmp_buf back;
};

static void errors_exit(j_common_ptr jpeg)
{
    longjmp(((struct errors *)jpeg->err)->back, 1);
}

/* Treat a warning as an error if samples may be wrong. A decoder of arithmetic codes has read the last byte of a scan
 * when it decodes the last block (T.81, annex D), so bytes that are left mean damage. */
static void errors_emit(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    const bool is_arithmetic = jpeg->is_decompressor && ((j_decompress_ptr)jpeg)->arith_code;
    if (level < 0 && (code != JWRN_EXTRANEOUS_DATA || is_arithmetic) && code != JWRN_ADOBE_XFORM &&
        code != JWRN_JFIF_MAJOR && code != JWRN_NOT_SEQUENTIAL)
        errors_exit(jpeg);
}

static void errors_print(j_common_ptr jpeg)
{
    (void)jpeg; /* only main prints */
}

/* Call CALL with STATE. Returns false after a jump. */
static bool attempt(struct errors *errors, void (*call)(void *), void *state)
{
    if (setjmp(errors->back) != 0)
        return false;
    call(state);
    return true;
}

static struct jpeg_error_mgr *errors_begin(struct errors *errors)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = errors_exit;
    errors->manager.emit_message = errors_emit;
    errors->manager.output_message = errors_print;
    return &errors->manager;
}

/* Bytes that the library holds of some rows of units, at most 32 x 32 samples of each component: as blocks, before and
 * after their colours change. */
static size_t rows_need(int width, int channels)
{
    enum { COPIES = 4, OTHER = 1 << 18 };
    return (size_t)COPIES * 32 * ((size_t)width + 31) * (size_t)channels + OTHER;
}

/* Bytes of all coefficients of a progressive file, which are in memory in whole units: those of brightness, and those
 * of OTHERS more components, subsampled as CHROMA says. If that is unknown, they are not subsampled. */
static size_t coefficients_need(int width, int height, int others, struct chroma_subsampling chroma)
{
    const size_t all = round_up((size_t)width, 32) * round_up((size_t)height, 32) * sizeof(JCOEF);
    const size_t share = chroma.horizontal > 0 ? (size_t)chroma.horizontal * (size_t)chroma.vertical : 1;
    return all + (size_t)others * all / share;
}

/* ---- Reading ---- */

struct jpeg_reader {
    struct jpeg_decompress_struct jpeg;
    struct errors errors;
    const struct codec_input *input;
    uint8_t *samples; /* the next COUNT rows go here */
    JDIMENSION count;
    JSAMPARRAY cmyk; /* ROWS rows, which the library releases; NULL for other files */
};

static bool read_failed(const struct codec_reader *reader, struct error *error)
{
    struct jpeg_reader *state = reader->state;
    char reason[JMSG_LENGTH_MAX];
    if (state->errors.manager.msg_code == JERR_OUT_OF_MEMORY)
        return error_no_memory(error, "the decoder");
    state->errors.manager.format_message((j_common_ptr)&state->jpeg, reason);
    return codec_report_damaged(&reader->input, reason, error);
}

static void begin_reading(void *context)
{
    struct jpeg_reader *state = context;
    struct jpeg_decompress_struct *jpeg = &state->jpeg;
    const struct codec_input *input = state->input;
    const struct codec_info *info = input->info;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, input->bytes, (unsigned long)input->size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = info->cmyk ? JCS_CMYK : info->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->scale_num = 1;
    jpeg->scale_denom = 1u << info->shrink;
    jpeg_start_decompress(jpeg);
    if (jpeg->output_width != (JDIMENSION)info->width || jpeg->output_height != (JDIMENSION)info->height ||
        jpeg->output_components != info->jpeg.component_count)
        ERREXIT(jpeg, JERR_BAD_LENGTH); /* the container check has read other numbers */
    if (info->cmyk)
        state->cmyk = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE,
                                              JPEG_COMPONENTS_IN_FRAME * jpeg->output_width, ROWS);
}

static size_t reader_need(const struct codec_info *info)
{
    const int components = info->jpeg.component_count;
    return rows_need(info->width, components) +
           (info->progressive
                ? coefficients_need(info->jpeg.width, info->jpeg.height, components - 1, info->chroma_subsampling)
                : 0);
}

static void convert_cmyk(const uint8_t *cmyk, JDIMENSION width, uint8_t *rgb)
{
    for (JDIMENSION x = 0; x < width; x++, cmyk += 4, rgb += 3)
        for (int i = 0; i < 3; i++)
            rgb[i] = (uint8_t)((cmyk[i] * cmyk[3] + 127) / 255);
}

static void read_scanlines(void *context)
{
    struct jpeg_reader *state = context;
    struct jpeg_decompress_struct *jpeg = &state->jpeg;
    const struct transform *transform = state->input->settings->transform;
    const size_t row_bytes = (size_t)jpeg->output_width * (size_t)state->input->info->channels;
    const JDIMENSION first = jpeg->output_scanline, last = first + state->count;
    while (jpeg->output_scanline < last) {
        const JDIMENSION left = last - jpeg->output_scanline;
        uint8_t *samples = state->samples + (jpeg->output_scanline - first) * row_bytes;
        JSAMPROW rows[ROWS];
        for (JDIMENSION i = 0; i < ROWS && i < left; i++)
            rows[i] = samples + i * row_bytes;
        const JDIMENSION done =
            jpeg_read_scanlines(jpeg, state->cmyk != NULL ? state->cmyk : rows, left < ROWS ? left : ROWS);
        for (JDIMENSION i = 0; state->cmyk != NULL && i < done; i++)
            if (transform != NULL)
                transform_apply(transform, state->cmyk[i], samples + i * row_bytes, jpeg->output_width);
            else
                convert_cmyk(state->cmyk[i], jpeg->output_width, samples + i * row_bytes);
    }
    if (last == jpeg->output_height)
        jpeg_finish_decompress(jpeg);
}

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct codec_reader *reader = context;
    struct jpeg_reader *state = reader->state;
    (void)first;
    (void)raw;
    state->samples = samples;
    state->count = (JDIMENSION)rows;
    return attempt(&state->errors, read_scanlines, state) || read_failed(reader, error);
}

static bool reader_open(struct codec_reader *reader, struct error *error)
{
    struct jpeg_reader *state = reader->state;
    reader->source.read = read_rows;
    state->input = &reader->input;
    state->jpeg.err = errors_begin(&state->errors);
    return attempt(&state->errors, begin_reading, state) || read_failed(reader, error);
}

static void reader_close(struct codec_reader *reader)
{
    jpeg_destroy_decompress(&((struct jpeg_reader *)reader->state)->jpeg);
}

/* ---- Writing ---- */

/* The destination of the library's bytes. The library's own destination loses them if an error interrupts it. */
struct sink {
    struct jpeg_destination_mgr manager; /* first, because the library knows only this */
    struct blob *file;                   /* up to the end of the library's buffer */
};

struct jpeg_writer {
    struct jpeg_compress_struct jpeg;
    struct errors errors;
    struct sink sink;
    const struct codec_writer *writer;
    const struct image *rows; /* the next ones */
};

static void sink_grow(j_compress_ptr jpeg, size_t size)
{
    struct sink *sink = (struct sink *)jpeg->dest;
    uint8_t *next = blob_extend(sink->file, size);
    if (next == NULL)
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    sink->manager.next_output_byte = next;
    sink->manager.free_in_buffer = size;
}

static void sink_begin(j_compress_ptr jpeg)
{
    sink_grow(jpeg, FIRST_CAPACITY);
}

static boolean sink_full(j_compress_ptr jpeg) /* every byte is in use; free_in_buffer does not count */
{
    sink_grow(jpeg, ((struct sink *)jpeg->dest)->file->size);
    return TRUE;
}

static void sink_end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

/* Let the file have the quantisers of another. A table gets its number at its first use. A grey picture has one table,
 * and a colour picture made from a grey one takes that for all. */
static void set_quantisers(struct jpeg_compress_struct *jpeg, const struct jpeg_headers *headers)
{
    int numbers[JPEG_TABLES] = {-1, -1, -1, -1}, count = 0;
    for (int i = 0; i < jpeg->num_components; i++) {
        const int from = headers->components[i < headers->component_count ? i : 0].quantiser;
        if (numbers[from] < 0) {
            unsigned values[DCTSIZE2];
            for (int k = 0; k < DCTSIZE2; k++)
                values[k] = headers->tables.quantisers[from][k];
            numbers[from] = count++;
            jpeg_add_quant_table(jpeg, numbers[from], values, 100, FALSE);
        }
        jpeg->comp_info[i].quant_tbl_no = numbers[from];
    }
}

static void begin_writing(void *context)
{
    struct jpeg_writer *state = context;
    struct jpeg_compress_struct *jpeg = &state->jpeg;
    const struct image *shape = &state->writer->shape;
    const struct codec_settings *settings = state->writer->settings;
    const struct chroma_subsampling chroma = jpeg_chroma_for(settings->chroma_subsampling, settings->quality);
    jpeg_create_compress(jpeg);
    jpeg->dest = &state->sink.manager;
    jpeg->image_width = (JDIMENSION)shape->width;
    jpeg->image_height = (JDIMENSION)shape->height;
    jpeg->in_color_space = shape->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->input_components = shape->channels;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, settings->quality, TRUE);
    if (jpeg->num_components == 3) {
        jpeg->comp_info[0].h_samp_factor = chroma.horizontal;
        jpeg->comp_info[0].v_samp_factor = chroma.vertical;
    }
    if (settings->quantisers != NULL)
        set_quantisers(jpeg, settings->quantisers);
    if (settings->progressive)
        jpeg_simple_progression(jpeg);
    jpeg_start_compress(jpeg, TRUE);
}

/* A progressive file is written at the end. Then it is in memory beside all coefficients. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    const struct chroma_subsampling chroma = jpeg_chroma_for(settings->chroma_subsampling, settings->quality);
    const size_t rows = rows_need(shape->width, shape->channels);
    return settings->progressive ? rows + coefficients_need(shape->width, shape->height, shape->channels - 1, chroma) +
                                       codec_file_need(codec_file_bound(shape, format_of(FORMAT_JPEG), settings))
                                 : rows;
}

static void write_scanlines(void *context)
{
    struct jpeg_writer *state = context;
    const struct image *image = state->rows;
    int next = 0;
    while (next < image->height) {
        JSAMPROW rows[ROWS]; /* the library does not write to them */
        JDIMENSION count = 0;
        for (; count < ROWS && next + (int)count < image->height; count++)
            rows[count] = image_row(image, next + (int)count);
        next += (int)jpeg_write_scanlines(&state->jpeg, rows, count);
    }
}

/* Call CALL for WRITER. Only memory can be missing: codec.c has checked the sides. */
static bool call_libjpeg(const struct codec_writer *writer, void (*call)(void *), struct error *error)
{
    struct jpeg_writer *state = writer->state;
    return attempt(&state->errors, call, state) || error_no_memory(error, "the encoded image");
}

static bool write_rows(void *context, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    struct jpeg_writer *state = writer->state;
    (void)first;
    state->rows = rows;
    if (!call_libjpeg(writer, write_scanlines, error))
        return false;
    writer->written = writer->file.size - state->sink.manager.free_in_buffer;
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    struct jpeg_writer *state = writer->state;
    state->writer = writer;
    writer->sink.multiple = ROWS;
    writer->sink.write = write_rows;
    state->jpeg.err = errors_begin(&state->errors);
    state->sink.manager = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end};
    state->sink.file = &writer->file;
    return call_libjpeg(writer, begin_writing, error);
}

static void finish_writing(void *context)
{
    struct jpeg_writer *state = context;
    jpeg_finish_compress(&state->jpeg);
}

static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    const struct jpeg_writer *state = writer->state;
    if (!call_libjpeg(writer, finish_writing, error))
        return false;
    writer->file.size -= state->sink.manager.free_in_buffer;
    return true;
}

static void writer_close(struct codec_writer *writer)
{
    jpeg_destroy_compress(&((struct jpeg_writer *)writer->state)->jpeg);
}

const struct codec_functions libjpeg_turbo = {
    .reader_state = sizeof(struct jpeg_reader),
    .writer_state = sizeof(struct jpeg_writer),
    .reader_need = reader_need,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
