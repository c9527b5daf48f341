/* SPDX-License-Identifier: MIT
 *
 * Shared by the codecs and codec.c. Each codec has its own file. A decoder gets a file with an intact container and an
 * image that is small enough. It returns an image with exactly the size, channels and bits of INFO, or fails. An
 * encoder gets at most the bits of its row and of the format's row. */
#ifndef GPUCONV_CODEC_INTERNAL_H
#define GPUCONV_CODEC_INTERNAL_H

#include "codec/codec.h"

/* The best codec that reads the file, if the chosen one declines it. NULL is an error: the file is too large for all
 * others. */
const struct codec *codec_find_substitute(const struct codec_input *input, struct error *error);

/* Report that the data cannot be decoded. REASON is the library's message, or NULL. Returns false. */
bool codec_report_damaged(const struct codec_input *input, const char *reason, struct error *error);

/* Report that there is not enough memory to decode, or to encode. Returns false. */
bool codec_report_decode_memory(const struct codec_input *input, struct error *error);
bool codec_report_encode_memory(const struct image *image, const struct format *format, struct error *error);

/* Check that the compressed rows of a PNG are whole: that they inflate to the rows of its size, or to a little more, and
 * that their checksum is right. */
bool png_check_rows(const struct codec_input *input, struct error *error);

/* The functions of the table's rows. png_decode reads interlaced files only. */
bool png_decode(const struct codec_input *input, struct image *image, struct error *error);
size_t png_reader_need(const struct codec_info *info);
bool png_reader_open(struct codec_reader *reader, struct error *error);
void png_reader_close(struct codec_reader *reader);
size_t png_writer_need(const struct image *shape, const struct codec_settings *settings, int threads);
bool png_writer_open(struct codec_writer *writer, int threads, struct error *error);
bool png_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error);
void png_writer_close(struct codec_writer *writer);
size_t libjpeg_turbo_reader_need(const struct codec_info *info);
bool libjpeg_turbo_reader_open(struct codec_reader *reader, struct error *error);
void libjpeg_turbo_reader_close(struct codec_reader *reader);
size_t libjpeg_turbo_writer_need(const struct image *shape, const struct codec_settings *settings, int threads);
bool libjpeg_turbo_writer_open(struct codec_writer *writer, int threads, struct error *error);
bool libjpeg_turbo_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error);
void libjpeg_turbo_writer_close(struct codec_writer *writer);
size_t parallel_jpeg_reader_need(const struct codec_info *info);
bool parallel_jpeg_reader_repays(const struct codec_info *info, const struct codec_settings *settings);
bool parallel_jpeg_reader_open(struct codec_reader *reader, struct error *error);
void parallel_jpeg_reader_close(struct codec_reader *reader);
size_t parallel_jpeg_writer_need(const struct image *shape, const struct codec_settings *settings, int threads);
bool parallel_jpeg_writer_open(struct codec_writer *writer, int threads, struct error *error);
bool parallel_jpeg_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error);
void parallel_jpeg_writer_close(struct codec_writer *writer);
bool stb_decode(const struct codec_input *input, struct image *image, struct error *error);
bool stb_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                uint8_t **bytes, size_t *size, struct error *error);

#endif
