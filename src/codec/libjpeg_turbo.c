/* SPDX-License-Identifier: MIT
 *
 * The codec `libjpeg-turbo`: JPEG through the interface of libjpeg. The library reports an error by calling a function
 * that must not return, so that function jumps back here. The jump loses local variables that have changed. So it goes
 * only to functions that have none. */
#include "codec/codec_internal.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

enum {
    ROWS = 16,                /* passed to the library at once: the rows of the tallest blocks */
    FIRST_CAPACITY = 1 << 18, /* bytes for the encoded file; doubled as needed */
};

/* The library's error manager, and the place to jump to. */
struct errors {
    struct jpeg_error_mgr manager; /* first, because the library knows only this */
    jmp_buf back;
};

static void errors_exit(j_common_ptr jpeg)
{
    longjmp(((struct errors *)jpeg->err)->back, 1);
}

/* Treat a warning as an error if samples may be wrong. */
static void errors_emit(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
        code != JWRN_NOT_SEQUENTIAL)
        errors_exit(jpeg);
}

static void errors_print(j_common_ptr jpeg)
{
    (void)jpeg; /* only main prints */
}

static struct jpeg_error_mgr *errors_begin(struct errors *errors)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = errors_exit;
    errors->manager.emit_message = errors_emit;
    errors->manager.output_message = errors_print;
    return &errors->manager;
}

/* ---- Decoding ---- */

static void decode_rows(struct jpeg_decompress_struct *jpeg, const struct codec_input *input, struct image *image)
{
    const size_t row_bytes = (size_t)image->width * (size_t)image->channels;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, input->bytes, (unsigned long)input->size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(jpeg);
    if (jpeg->output_width != (JDIMENSION)image->width || jpeg->output_height != (JDIMENSION)image->height ||
        jpeg->output_components != image->channels)
        ERREXIT(jpeg, JERR_BAD_LENGTH); /* the container check has read other numbers */
    while (jpeg->output_scanline < jpeg->output_height) {
        const JDIMENSION left = jpeg->output_height - jpeg->output_scanline;
        JSAMPROW rows[ROWS];
        for (JDIMENSION i = 0; i < ROWS && i < left; i++)
            rows[i] = image->samples + (jpeg->output_scanline + i) * row_bytes;
        jpeg_read_scanlines(jpeg, rows, left < ROWS ? left : ROWS);
    }
    jpeg_finish_decompress(jpeg);
}

static bool decode_failed(struct errors *errors, j_common_ptr jpeg, const struct codec_input *input,
                          struct error *error)
{
    char reason[JMSG_LENGTH_MAX];
    if (errors->manager.msg_code == JERR_OUT_OF_MEMORY)
        return codec_report_decode_memory(input, error);
    errors->manager.format_message(jpeg, reason);
    return codec_report_damaged(input, reason, error);
}

static bool try_decode(struct jpeg_decompress_struct *jpeg, struct errors *errors, const struct codec_input *input,
                       struct image *image)
{
    if (setjmp(errors->back) != 0)
        return false;
    decode_rows(jpeg, input, image);
    return true;
}

bool libjpeg_turbo_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct jpeg_decompress_struct jpeg = {0};
    struct errors errors;
    if (!image_allocate(image, info->width, info->height, info->channels, 8, error))
        return false;
    jpeg.err = errors_begin(&errors);
    const bool done =
        try_decode(&jpeg, &errors, input, image) || decode_failed(&errors, (j_common_ptr)&jpeg, input, error);
    jpeg_destroy_decompress(&jpeg);
    if (!done)
        image_free(image);
    return done;
}

/* ---- Encoding ---- */

/* The destination of the library's bytes. The library's own destination loses them if an error interrupts it. */
struct sink {
    struct jpeg_destination_mgr manager; /* first, because the library knows only this */
    uint8_t *bytes;
    size_t capacity;
};

static void sink_grow(j_compress_ptr jpeg, size_t capacity)
{
    struct sink *sink = (struct sink *)jpeg->dest;
    const size_t used = sink->capacity;
    uint8_t *larger = realloc(sink->bytes, capacity);
    if (larger == NULL)
        ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
    sink->bytes = larger;
    sink->capacity = capacity;
    sink->manager.next_output_byte = larger + used;
    sink->manager.free_in_buffer = capacity - used;
}

static void sink_begin(j_compress_ptr jpeg)
{
    sink_grow(jpeg, FIRST_CAPACITY);
}

static boolean sink_full(j_compress_ptr jpeg) /* every byte is in use; free_in_buffer does not count */
{
    sink_grow(jpeg, 2 * ((struct sink *)jpeg->dest)->capacity);
    return TRUE;
}

static void sink_end(j_compress_ptr jpeg)
{
    (void)jpeg;
}

/* Copy the grey samples of a row of grey and alpha. */
static void drop_alpha(const uint8_t *from, int width, uint8_t *to)
{
    for (int x = 0; x < width; x++)
        to[x] = from[2 * x];
}

static void encode_rows(struct jpeg_compress_struct *jpeg, const struct image *image,
                        const struct codec_settings *settings, uint8_t *grey)
{
    static const J_COLOR_SPACE spaces[] = {[1] = JCS_GRAYSCALE, JCS_GRAYSCALE, JCS_RGB, JCS_EXT_RGBX};
    const size_t row_bytes = (size_t)image->width * (size_t)image->channels;
    struct chroma_subsampling chroma = settings->chroma_subsampling;
    if (chroma.horizontal == 0) /* as stb chooses */
        chroma.horizontal = chroma.vertical = settings->quality <= 90 ? 2 : 1;
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->in_color_space = spaces[image->channels];
    jpeg->input_components = image->channels == 2 ? 1 : image->channels;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, settings->quality, TRUE);
    if (jpeg->num_components == 3) {
        jpeg->comp_info[0].h_samp_factor = chroma.horizontal;
        jpeg->comp_info[0].v_samp_factor = chroma.vertical;
    }
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        const JDIMENSION left = jpeg->image_height - jpeg->next_scanline;
        uint8_t *first = image->samples + jpeg->next_scanline * row_bytes;
        JSAMPROW rows[ROWS] = {grey}; /* the library does not write to them */
        JDIMENSION count = 1;
        if (grey != NULL)
            drop_alpha(first, image->width, grey);
        else
            for (count = 0; count < ROWS && count < left; count++)
                rows[count] = first + count * row_bytes;
        jpeg_write_scanlines(jpeg, rows, count);
    }
    jpeg_finish_compress(jpeg);
}

static bool try_encode(struct jpeg_compress_struct *jpeg, struct errors *errors, struct sink *sink,
                       const struct image *image, const struct codec_settings *settings, uint8_t *grey)
{
    if (setjmp(errors->back) != 0)
        return false;
    jpeg_create_compress(jpeg);
    jpeg->dest = &sink->manager;
    encode_rows(jpeg, image, settings, grey);
    return true;
}

bool libjpeg_turbo_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                          uint8_t **bytes, size_t *size, struct error *error)
{
    struct jpeg_compress_struct jpeg = {0};
    struct errors errors;
    struct sink sink = {
        .manager = {.init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end}};
    uint8_t *grey = image->channels == 2 ? malloc((size_t)image->width) : NULL;
    if (image->channels == 2 && grey == NULL)
        return codec_report_encode_memory(image, format, error);
    jpeg.err = errors_begin(&errors);
    const bool done = try_encode(&jpeg, &errors, &sink, image, settings, grey);
    jpeg_destroy_compress(&jpeg);
    free(grey);
    if (!done) { /* only memory can be missing: codec.c has checked the sides */
        free(sink.bytes);
        return codec_report_encode_memory(image, format, error);
    }
    *bytes = sink.bytes;
    *size = sink.capacity - sink.manager.free_in_buffer;
    return true;
}
