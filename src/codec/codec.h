/* SPDX-License-Identifier: MIT
 *
 * Bytes to image and back: THE TABLE of codecs, and the choice of one. Before a codec sees a file, its container and
 * its limits are checked here. The codecs know nothing of filters. */
#ifndef GPUCONV_CODEC_H
#define GPUCONV_CODEC_H

#include "base/bytes.h"
#include "base/error.h"
#include "codec/format.h"
#include "image/image.h"
#include "image/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximal number of pixels of an image: as many as its sides allow. */
#define CODEC_MAX_PIXELS ((size_t)FORMAT_SIDE_MAX * FORMAT_SIDE_MAX)

struct thread_pool; /* base/parallel.h */
struct transform;   /* metadata/littlecms.h */

/* Properties of a JPEG that not every codec can write. codec_missing_options finds those of settings. */
enum jpeg_option { JPEG_OPTION_SUBSAMPLING = 1, JPEG_OPTION_QUANTISERS = 2, JPEG_OPTION_PROGRESSIVE = 4 };

/* How to decode and encode. */
struct codec_settings {
    const struct codec *codec;             /* or NULL, for the best codec for each file */
    int bits;                              /* bits of a decoded sample, 8 or 16; or 0, for as many as the file has */
    int quality;                           /* the quality of a JPEG, lossy WebP or AVIF, 1 to 100 */
    bool lossless;                         /* write a lossless WebP or AVIF */
    const struct jpeg_headers *quantisers; /* the JPEG whose tables are used instead of the quality's; or NULL */
    bool progressive;                      /* write a JPEG in several scans */
    int subsampling; /* the chroma subsampling that a JPEG's codec must write, 444 to 411; 0 if none was asked for */
    int compression; /* the level of a PNG, 0 (none) to 9, or CODEC_COMPRESSION_FAST */
    uint8_t background[3];    /* red, green and blue, below the image if a format holds no alpha */
    struct thread_pool *pool; /* or NULL, for the calling thread only. It never changes the result. */
    struct chroma_subsampling chroma_subsampling; /* for a JPEG; if it is 0, 0, its quality decides */
    size_t reader_extra; /* bytes that codec_reader_extra may take. It never changes the result. */
    size_t max_pixels;   /* the maximum of width x height; if it is 0, only CODEC_MAX_PIXELS limits that */
    const struct transform *transform; /* makes sRGB of what is decoded, by the profile of the file; or NULL */
    int page;                          /* the picture of a file that is read, from 1; 0 for its main one */

    /* May a file that grows take SIZE bytes of memory in all? If not, the writing fails. If this is NULL, it always
     * may. */
    bool (*may_grow)(void *context, size_t size, struct error *error);
    void *context; /* the first argument of may_grow */
};

/* The standard settings. */
enum { CODEC_COMPRESSION = 1, CODEC_QUALITY = 90 };

/* As a compression: the fast level of a PNG. It is 1 for a TIFF. */
enum { CODEC_COMPRESSION_FAST = -1 };

/* As a quality: the quantisers of the input. Nothing encodes with it. */
enum { CODEC_QUALITY_KEEP = 0 };

/* No writer of PNGs wants a multiple of more bytes of rows, unless one row has more. */
enum { CODEC_BAND_BYTES = 1 << 19 };

/* No reader, and no writer of JPEGs, has a larger multiple: the rows of the tallest unit of a JPEG. */
enum { CODEC_UNIT_ROWS = 16 };

/* No reader that takes rows in order lets more threads read at once. */
enum { CODEC_READERS = 4 };

/* A file to decode. It must outlive whoever decodes it. */
struct codec_input {
    const uint8_t *bytes;
    size_t size;
    const char *name; /* for messages */
    const struct codec_info *info;
    const struct codec_settings *settings;
};

/* Reads the rows of a file, so that the picture need not be in memory as a whole. It must not be moved, because the
 * source points to it. */
struct codec_reader {
    struct row_source source; /* gives samples of codec_bits; if its read is NULL, the file is decoded at once */
    struct codec_input input;
    const struct codec *codec; /* the codec that reads the file: the chosen one, if it supports the file */
    bool unsupported;          /* reader_open failed, without an error, because another codec must read the file */
    struct row_source inner;   /* the codec's source, if the source above converts its samples */
    void *state;               /* the codec's state */
};

/* Writes the rows of an image. It must not be moved, because the sink points to it. */
struct codec_writer {
    struct row_sink sink; /* takes rows of an image like the one that it was opened for */
    const struct codec *codec;
    const struct format *format;
    const struct codec_settings *settings;
    struct image shape;    /* the image as the codec gets it; its samples are NULL */
    bool finishes_late;    /* codec_writer_finish takes longer than all rows */
    struct blob file;      /* what the codec has written; it may be longer until the file is finished */
    size_t written;        /* bytes of the file so far; the codec's write sets it */
    struct row_sink inner; /* the codec's sink, which the sink above calls */
    void *state;           /* the codec's state */
};

/* The functions of a codec. `encode` and the writer's functions get images that the format holds: of at most max_bits,
 * and with alpha only if it holds_alpha. codec.c converts them before. */
struct codec_functions {
    /* Bytes of their states, which are zero at first; 0 if the codec makes the state itself. */
    size_t reader_state, writer_state;

    /* Write to TEXT, of SIZE bytes, what the library does on this machine. It is NULL if the summary says it. */
    void (*describe)(char *text, size_t size);

    bool (*decode)(const struct codec_input *input, struct image *image, struct error *error);
    bool (*encode)(const struct image *image, const struct format *format, const struct codec_settings *settings,
                   uint8_t **bytes, size_t *size, struct error *error);

    /* Upper bounds of the bytes of memory that a writer of SHAPE, on the threads of the settings' pool, and a reader of
     * INFO take, besides the two files. Encoded bands that wait for an earlier one are not counted. If one is NULL, it
     * takes none. */
    size_t (*writer_need)(const struct image *shape, const struct codec_settings *settings);
    size_t (*reader_need)(const struct codec_info *info);

    /* Extra memory that makes the reader faster, on the threads of the settings' pool. It is NULL if there is none. */
    size_t (*reader_extra)(const struct codec_info *info, const struct codec_settings *settings);

    /* Is this codec faster for this file? If not, it is used only when it is named. If this is NULL, it always is. */
    bool (*reader_is_faster)(const struct codec_info *info, const struct codec_settings *settings);

    /* Write row by row. If it is NULL, the codec encodes whole images only, by `encode`. writer_open gets a writer
     * whose settings and shape are set, and a sink whose context is the writer. It sets the sink's multiple and
     * functions, and its image if the file will hold the samples as they are. writer_close releases the writer, also
     * after a failure. */
    bool (*writer_open)(struct codec_writer *writer, struct error *error);

    /* Finish writer->file, after the last rows. It is NULL if there is nothing more to do. */
    bool (*writer_finish)(struct codec_writer *writer, struct error *error);

    void (*writer_close)(struct codec_writer *writer);

    /* Read row by row. If it is NULL, the codec decodes whole images only; so do all codecs for an interlaced PNG.
     * reader_open gets a reader whose input is set, and a source of multiple 1 whose context is the reader. It sets the
     * source's functions, and what else differs; also its image, if the file holds the samples as they are, without
     * alpha. The samples have the bits of INFO. The last rows succeed only if the data end as they should. reader_open
     * may use the threads of the settings' pool. reader_close releases the reader, also after a failure. */
    bool (*reader_open)(struct codec_reader *reader, struct error *error);

    void (*reader_close)(struct codec_reader *reader);
};

/* A row of the table. */
struct codec {
    const char *name, *summary;
    unsigned reads, writes;    /* 1 << format_id for each */
    int read_bits, write_bits; /* the maximal number of bits of a sample */
    bool reads_rare_jpegs;     /* in CMYK or with arithmetic codes, itself or by falling back */
    bool shrinks;              /* it uses codec_info.shrink */
    unsigned jpeg_options;     /* bits of enum jpeg_option */
    bool takes_compression;    /* it uses codec_settings.compression */
    bool may_fall_back;        /* its reader_open may leave a file to another codec */
    bool any_order;            /* its reader takes rows in any order */
    bool fetches;              /* its reader fetches raw rows before it reads them */
    bool has_gpu_version;      /* kernels/ reads or writes the same on a GPU: codec/gpu_codec.h */
    int max_side;              /* the maximal number of pixels on a side; 0 if it has no limit */
    size_t max_bytes;          /* the maximal number of bytes of an image's samples in memory; 0 if it has no limit */
    size_t max_file;           /* the maximal number of bytes of a file that it reads; 0 if it has no limit */
    const char *limits;        /* these three limits in words; NULL if it has none */

    const struct codec_functions *functions; /* NULL if it is not built in */
};

/* All codecs. For each file, the first one that can read or write it, and is worth it, is the best. */
const struct codec *codecs(size_t *count);

/* The codec with that name. Returns NULL, with a usage error, if there is none or if it was not built in. */
const struct codec *codec_find(const char *name, struct error *error);

/* Is the codec built in? */
static inline bool codec_is_built_in(const struct codec *codec)
{
    return codec->functions != NULL;
}

/* Does CODEC, which is built in, write row by row? */
static inline bool codec_writes_rows(const struct codec *codec)
{
    return codec->functions->writer_open != NULL;
}

/* Does CODEC read, or write, files of FORMAT? It need not be built in. */
bool codec_reads(const struct codec *codec, const struct format *format);
bool codec_writes(const struct codec *codec, const struct format *format);

/* Write the summary of CODEC to TEXT, of SIZE bytes, or what its library does on this machine. */
void codec_describe(const struct codec *codec, char *text, size_t size);

/* Is there a codec for files of FORMAT in this build? If so, all codecs that read a format also write it, or none. */
bool codec_is_available(const struct format *format);

/* The codec that will write an image of SHAPE as FORMAT. More bits than the format stores are reduced first. If SHAPE
 * has no width and height, only its bits count. Returns NULL, with an error, if the image is too large for the format
 * or its codecs, or if the codec that SETTINGS name cannot write this. */
const struct codec *codec_find_writer(const struct format *format, const struct image *shape,
                                      const struct codec_settings *settings, struct error *error);

/* Check SIZE bytes and fill INFO, without decoding. NAME is for messages. First the whole container is checked (PNG:
 * chunk order, lengths, CRCs, IEND; JPEG: segments up to EOI). Then the image's size is compared with FORMAT_SIDE_MAX,
 * with the limit of SETTINGS, and with what data of this length can fill. SETTINGS may be NULL. INFO->pages is also set
 * for a file that is refused, or 0 if it is not known. */
bool codec_inspect(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                   struct codec_info *info, struct error *error);

/* The bits a sample of the image that INFO describes, once it is decoded. */
static inline int codec_bits(const struct codec_info *info, const struct codec_settings *settings)
{
    return settings->bits > 0 ? settings->bits : info->bits;
}

/* Set INFO->codec. Fails if no codec, or not the one that SETTINGS name, can read the file, which codec_inspect has
 * accepted. */
bool codec_choose_reader(struct codec_info *info, const struct codec_settings *settings, const char *name,
                         struct error *error);

/* Let the chosen reader, which shrinks, make the image 1/2^SHRINK as wide and high, rounded up, for 0 to 3. */
static inline void codec_shrink(struct codec_info *info, int shrink)
{
    info->shrink = shrink;
    info->width = ((info->width - 1) >> shrink) + 1;
    info->height = ((info->height - 1) >> shrink) + 1;
}

/* Inspect and decode. The image has codec_bits a sample. Release it with image_free. INFO may be NULL. */
bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error);

/* Encode IMAGE into memory. Release *BYTES with free. Alpha and bits that FORMAT does not hold are dropped. stb writes
 * a grey image as a colour JPEG, the only kind that it writes. */
bool codec_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                  uint8_t **bytes, size_t *size, struct error *error);

/* ---- Memory: upper bounds in bytes ---- */

/* What the reader of a file takes, besides the file and the image. */
size_t codec_reader_need(const struct codec_info *info);

/* The extra memory that makes its reader faster. The reader takes it if the settings allow so much. */
size_t codec_reader_extra(const struct codec_info *info, const struct codec_settings *settings);

/* A fetched row of this file, or 0 if its rows are not fetched. */
size_t codec_raw_bytes(const struct codec_info *info);

/* What CODEC, which writes row by row, takes for an image of SHAPE, besides the file. */
size_t codec_writer_need(const struct codec *codec, const struct image *shape, const struct format *format,
                         const struct codec_settings *settings);

/* A file of FORMAT that is written row by row, without metadata, or such rows in it. */
size_t codec_file_bound(const struct image *shape, const struct format *format, const struct codec_settings *settings);

/* What a file of SIZE bytes has taken while it grew. */
size_t codec_file_need(size_t size);

/* May a file grow to SIZE bytes, as settings->may_grow says? If not, ERROR says why. */
bool codec_may_grow(const struct codec_settings *settings, size_t size, struct error *error);

/* The bytes that a whole image takes while it is decoded, and then encoded as FORMAT, with the SHAPE that filters have
 * given it: the images and the new file, without the decoder's copy of the file. If ENCODER is NULL, the image is not
 * encoded. */
size_t codec_whole_need(const struct codec_info *info, const struct image *shape, const struct codec *encoder,
                        const struct format *format, const struct codec_settings *settings);

/* ---- Row by row ---- */

/* Will this file be read row by row, even if the chosen codec does not support it? */
bool codec_reads_rows(const struct codec_info *info);

/* Open a reader of the chosen codec. If that does not support the file, open one of the best codec that supports every
 * file. Either decode the file with it or, if it has a source.read, let a stream read its rows. Release it with
 * codec_reader_close, also after a failure. */
bool codec_reader_open(struct codec_reader *reader, const struct codec_input *input, struct error *error);

/* Decode the whole file into IMAGE, on the threads of the settings' pool. The image has codec_bits a sample. Release it
 * with image_free. */
bool codec_reader_decode(struct codec_reader *reader, struct image *image, struct error *error);

/* Read the inspected file INPUT at once: its samples, as codec_reader_decode does, and its metadata unless METADATA is
 * NULL; they have a limit already (metadata.h). Returns the codec that has read it, or NULL after a failure. */
const struct codec *codec_read_picture(const struct codec_input *input, struct image *image, struct metadata *metadata,
                                       struct error *error);

/* Release the reader. All zero is allowed. */
void codec_reader_close(struct codec_reader *reader);

/* Open a writer for an image of SHAPE, whose samples do not matter. The codec of codec_find_writer must write row by
 * row. Release it with codec_writer_close, also after a failure. */
bool codec_writer_open(struct codec_writer *writer, const struct image *shape, const struct format *format,
                       const struct codec_settings *settings, struct error *error);

/* Finish the file. Release *BYTES with free. */
bool codec_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error);

/* Release the writer. All zero is allowed. */
void codec_writer_close(struct codec_writer *writer);

#endif
