/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-pnm`: PGM, PPM and PAM. Their samples are those of an image, so rows are copied in any order,
 * between the file in memory and the stream. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "base/clones.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

/* COUNT samples of a file to levels of WHITE, the nearest ones: floor((sample * WHITE + MAXVAL / 2) / MAXVAL). Doubles
 * hold that exactly: the dividend is whole and below 2^32, and a quotient that is not whole lies 1 / MAXVAL or more
 * below the next whole number, far more than it is rounded by. Returns false if a sample is above MAXVAL. */
#define SCALE(name, type, get)                                                                                         \
    CLONES_OF(bool, return, name,                                                                                      \
              (const uint8_t *restrict in, size_t count, int maxval, int white, type *restrict out),                   \
              (in, count, maxval, white, out))                                                                         \
    {                                                                                                                  \
        int largest = 0;                                                                                               \
        for (size_t i = 0; i < count; i++) {                                                                           \
            const int sample = get, valid = sample < maxval ? sample : maxval;                                         \
            largest = sample > largest ? sample : largest;                                                             \
            out[i] = (type)(int)((valid * (double)white + maxval / 2) / maxval);                                       \
        }                                                                                                              \
        return largest <= maxval;                                                                                      \
    }
SCALE(scale8, uint8_t, in[i])
SCALE(scale16, uint16_t, in[2 * i] << 8 | in[2 * i + 1])

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct codec_input *input = &((struct codec_reader *)context)->input;
    const struct pnm_header *header = &input->info->pnm;
    const size_t row = (size_t)pnm_row_bytes(header), size = (size_t)rows * row;
    const uint8_t *from = input->bytes + header->samples + (size_t)first * row;
    bool valid = true;
    (void)raw;
    if (header->maxval == 255)
        memcpy(samples, from, size);
    else if (header->maxval == 65535)
        bytes_swap_big16(from, size / 2, samples);
    else if (header->maxval < 255)
        valid = scale8(from, size, header->maxval, 255, samples);
    else
        valid = scale16(from, size / 2, header->maxval, 65535, (uint16_t *)(void *)samples);
    return valid || codec_report_damaged(input, "a sample is above its maxval", error);
}

static bool reader_open(struct codec_reader *reader, struct error *error)
{
    const struct codec_info *info = reader->input.info;
    struct image *image = reader->state; /* in the file, if its samples are those of an image */
    (void)error;
    reader->source.read = read_rows;
    *image = (struct image){.width = info->width,
                            .height = info->height,
                            .channels = info->channels,
                            .bits = 8,
                            .samples = (uint8_t *)reader->input.bytes + info->pnm.samples};
    if (info->pnm.maxval == 255 && !image_has_alpha(image)) /* else the stream must look at it */
        reader->source.image = image;
    return true;
}

/* ---- Writing ---- */

/* The bytes of the longest header, with its NUL. */
enum { HEADER_MAX = 128 };

/* Write the header of a file of FORMAT. Returns its bytes. */
static size_t print_header(const struct format *format, const struct image *shape, char text[HEADER_MAX])
{
    static const char *const types[] = {[1] = "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    const int maxval = shape->bits == 8 ? 255 : 65535;
    const char *pam = "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n";
    return (size_t)(format->id == FORMAT_PAM
                        ? snprintf(text, HEADER_MAX, pam, shape->width, shape->height, shape->channels, maxval,
                                   types[shape->channels])
                        : snprintf(text, HEADER_MAX, "P%c\n%d %d\n%d\n", shape->channels == 1 ? '5' : '6', shape->width,
                                   shape->height, maxval));
}

static bool write_rows(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    uint8_t *to = image_row(writer->state, first);
    (void)thread;
    (void)error;
    if (rows->bits > 8)
        bytes_swap_big16(rows->samples, image_samples(rows), to);
    else if (rows->samples != to)
        memcpy(to, rows->samples, image_bytes(rows));
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    char header[HEADER_MAX];
    const size_t header_size = print_header(writer->format, &writer->shape, header);
    const size_t size = header_size + image_bytes(&writer->shape);
    struct image *image = writer->state; /* in the file, after the header */
    if (!codec_may_grow(writer->settings, size, error))
        return false;
    writer->file.bytes = bytes_allocate(size);
    if (writer->file.bytes == NULL)
        return error_no_memory(error, "the encoded image");
    writer->file.size = size;
    memcpy(writer->file.bytes, header, header_size);
    *image = writer->shape;
    image->samples = writer->file.bytes + header_size;
    writer->sink.multiple = 1;
    writer->sink.encode = write_rows;
    if (image->bits == 8) /* filters can write their rows there */
        writer->sink.image = image;
    return true;
}

const struct codec_functions parallel_pnm = {
    .reader_state = sizeof(struct image),
    .writer_state = sizeof(struct image),
    .reader_open = reader_open,
    .writer_open = writer_open,
};
