/* SPDX-License-Identifier: MIT
 *
 * libgpuconv: exact convolution of images in memory, with the same bytes as the command gpuconv. See gpuconv(3).
 *
 *     struct gpuconv_error error;
 *     struct gpuconv_context *context = gpuconv_context_open(NULL, &error);
 *     struct gpuconv_filter *filter = gpuconv_filter_find("gaussian:2", &error);
 *     struct gpuconv_view in = gpuconv_interleaved(pixels, width, height, 3, GPUCONV_UINT8);
 *     struct gpuconv_view out = gpuconv_interleaved(result, width, height, 3, GPUCONV_UINT8);
 *     if (context == NULL || filter == NULL || gpuconv_apply(context, filter, &in, &out, NULL, &error) != GPUCONV_OK)
 *         fprintf(stderr, "%s\n", error.message);
 *
 * Errors. A function that returns a status returns GPUCONV_OK, which is 0, or the reason of its failure. A function
 * that returns a pointer returns NULL after a failure. Both then fill in ERROR, if it is not NULL. Nothing here prints,
 * exits or changes signals.
 *
 * Warnings. After a success, the status in ERROR is GPUCONV_OK, and the message has what the command line would warn
 * of: a line for each warning, usually none. A file that is CMYK, has more pictures or loses metadata is worth one, and
 * so are taps that seem to lack a scale.
 *
 * Ownership. What a function ending in _open, _find, _parse, _make, _flip, _new or _decode returns belongs to the
 * caller, who releases it with the function that is named there. Memory that the caller passes stays the caller's. A
 * function keeps no pointer to it after its return, except for images on a GPU: see gpuconv_apply.
 *
 * Threads. All functions may be called by several threads at the same time. Calls that share a context run one after
 * another: for calls that run in parallel, open a context for each thread. Filters never change, and may be shared.
 * Nobody may use an object while another thread releases it or writes the samples.
 *
 * Processes. A child of fork may use filters, images and views of its parent. Contexts of its parent are refused with
 * GPUCONV_BAD_ARGUMENT, and gpuconv_context_close does nothing with them: their threads are not in the child, and their
 * memory stays until its end. A context on the CPU can be opened there, whatever the threads of the parent do. CUDA
 * does not work in a child of a process that has used it.
 *
 * Structs. Set what you do not use to 0, for example by an initialiser: 0 is the default everywhere. Fields that a
 * later version adds replace `reserved` ones, which must be 0. */
#ifndef GPUCONV_H
#define GPUCONV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GPUCONV_API __attribute__((visibility("default")))
#else
#define GPUCONV_API
#endif

/* ---- Errors ---- */

enum gpuconv_status {
    GPUCONV_OK,
    GPUCONV_BAD_ARGUMENT, /* the call makes no sense: fix the program, or the filter's text */
    GPUCONV_BAD_DATA,     /* the bytes to decode are damaged, or of a kind that is not supported; or the image is too
                             large for a format */
    GPUCONV_NO_MEMORY,
    GPUCONV_NO_GPU /* there is no GPU that can be used, or it has failed */
};

struct gpuconv_error {
    enum gpuconv_status status;
    char message[2044]; /* one sentence without a newline: what is wrong, and usually what to do. It is UTF-8; control
                           characters and other bytes of a name are escaped, as \n and \x1b. Longer text is cut. After
                           a success it has the warnings, one a line. */
};

/* The version of the library that runs: "1.2.3". The string is static. */
GPUCONV_API const char *gpuconv_version(void);

/* The definition of the samples and files that it makes: "gpuconv pixels 1" (docs/spec/pixels-1.md). Two libraries that
 * say the same make the same samples of 8 and 16 bits, on every machine. The string is static. */
GPUCONV_API const char *gpuconv_pixels(void);

/* ---- Contexts ---- */

/* Where the work is done, with the threads, and the memory and the plans that are kept from call to call. */
struct gpuconv_context;

struct gpuconv_context_options {
    int threads;  /* CPU threads, with the calling thread; 0 for one on each processor of this process */
    int uses_gpu; /* 1 to filter on a GPU, whose start takes about 0.3 s; 0 for the CPU, and no GPU is asked for */
    int device;   /* the index of the GPU, as CUDA counts GPUs */
    int reserved[5];
};

/* Open a context. OPTIONS may be NULL. Threads start when an image first needs them: one of less than about 0.5
 * megabytes is filtered by the calling thread alone. Release the context with gpuconv_context_close. */
GPUCONV_API struct gpuconv_context *gpuconv_context_open(const struct gpuconv_context_options *options,
                                                         struct gpuconv_error *error);

/* Wait for queued work, end the threads, and release the context. NULL is allowed. In a child of fork, a context of
 * its parent is left alone. */
GPUCONV_API void gpuconv_context_close(struct gpuconv_context *context);

/* The number of GPUs that can be used; 0 if there is none, no driver, or the library was built without CUDA. The first
 * call starts CUDA, which takes up to 0.2 s. */
GPUCONV_API int gpuconv_gpus(void);

/* ---- Conformance ---- */

/* The results of the test cases of the definition. */
struct gpuconv_conformance {
    int cases, mismatches;      /* trust the results if there are cases and no mismatches */
    int ran_on_cpu, ran_on_gpu; /* cases by where they really ran; filters that must be refused run nowhere */
    char first[128];            /* the first mismatch; empty if there is none */
    int reserved[8];
};

/* Run the test cases of gpuconv_pixels, which are built in, by the variants that are chosen automatically, on the CPU
 * or on the GPU of OPTIONS, which may be NULL. It takes about a second. Mismatches are no failure of the call. Use it
 * once on a new machine, or on a GPU of a new kind, before you rely on equal bytes. */
GPUCONV_API enum gpuconv_status gpuconv_conformance(const struct gpuconv_context_options *options,
                                                    struct gpuconv_conformance *found, struct gpuconv_error *error);

/* ---- Filters ---- */

/* One filter, or several that are applied one after another. It never changes. */
struct gpuconv_filter;

/* Find a filter as the command line does: a name ("sharpen"), a parametric filter ("gaussian:2.5"), the path of a file,
 * or several of these, separated by commas. A name may also be that of a file in $GPUCONV_FILTERS and the other folders
 * of filters. Release the filter with gpuconv_filter_close. */
GPUCONV_API struct gpuconv_filter *gpuconv_filter_find(const char *name, struct gpuconv_error *error);

/* Read a filter from SIZE bytes of text, which need no 0 at their end: the content of a filter file. NAME is for
 * messages. Release the filter with gpuconv_filter_close. */
GPUCONV_API struct gpuconv_filter *gpuconv_filter_parse(const char *text, size_t size, const char *name,
                                                        struct gpuconv_error *error);

struct gpuconv_taps {
    const int32_t *taps; /* row by row: width x height. The filter is a correlation: see gpuconv_filter_flip */
    int width, height;   /* from 1 to 127 */
    int anchor_x,
        anchor_y; /* the column and row of the tap over the pixel, if has_anchor; else width / 2, height / 2 */
    int has_anchor;
    int absolute;  /* 1: take the absolute value of the sum before it is divided */
    int32_t scale; /* the divisor, at least 1; 0 is 1 */
    double offset; /* is added to the quotient; in levels of 8 bits, also for images of 16 bits and of floats */
    int reserved[4];
};

/* Make a filter of integers: out = clamp(round(sum of tap * in / scale + offset)). The sum of the absolute values of
 * the taps may be 8,421,504 at most. Release the filter with gpuconv_filter_close. */
GPUCONV_API struct gpuconv_filter *gpuconv_filter_make(const struct gpuconv_taps *taps, struct gpuconv_error *error);

/* Make a filter whose taps, and their anchor, are those of FILTER turned by 180 degrees: the correlation with it is the
 * convolution with FILTER. Release it with gpuconv_filter_close. */
GPUCONV_API struct gpuconv_filter *gpuconv_filter_flip(const struct gpuconv_filter *filter,
                                                       struct gpuconv_error *error);

struct gpuconv_filter_info {
    int count;                     /* the number of filters that are applied one after another */
    int left, right, above, below; /* pixels on each side of a pixel that its result depends on, by all filters */
    int exact;                     /* 1 if the taps are exact, 0 if they were rounded once */
    double largest_error; /* how far rounded taps can move a result, in levels of 8 bits; of the worst filter */
    int reserved[8];
};

/* Fill in INFO. */
GPUCONV_API void gpuconv_filter_describe(const struct gpuconv_filter *filter, struct gpuconv_filter_info *info);

/* Set *WIDTH and *HEIGHT, the size of an image, to the size of the result of FILTER. They change if it has filters that
 * change the size, such as "resize:50%" and "turn:90". */
GPUCONV_API enum gpuconv_status gpuconv_filter_size(const struct gpuconv_filter *filter, int *width, int *height,
                                                    struct gpuconv_error *error);

/* What `gpuconv --show` prints of filter number INDEX of FILTER, counted from 0: text for people or, if AS_JSON is 1, a
 * JSON object. Release the string with gpuconv_free. */
GPUCONV_API char *gpuconv_filter_text(const struct gpuconv_filter *filter, int index, int as_json,
                                      struct gpuconv_error *error);

/* The name of built-in filter number INDEX, counted from 0; NULL if there are fewer filters. The string is static. */
GPUCONV_API const char *gpuconv_filter_name(int index);

/* Release a filter. NULL is allowed. Contexts may keep data that they have derived from it. */
GPUCONV_API void gpuconv_filter_close(struct gpuconv_filter *filter);

/* ---- Views ---- */

enum gpuconv_type {
    GPUCONV_UINT8,
    GPUCONV_UINT16, /* in the machine's byte order */
    GPUCONV_FLOAT,  /* 32 bits; 0 is black and 1 is white, and other values are allowed */

    /* For gpuconv_apply alone, which computes these as floats and stores the result as the input, on the host and in
     * device memory. HALF and BFLOAT16 are rounded once more, and infinite where they do not hold the result. A DOUBLE
     * that no float is near, and a result that is to be a BOOL and is neither 0 nor 1, are GPUCONV_BAD_ARGUMENT. On a
     * GPU, the call therefore waits for these two. */
    GPUCONV_HALF,     /* IEEE 754's binary16 */
    GPUCONV_BFLOAT16, /* the upper half of a float */
    GPUCONV_DOUBLE,   /* 64 bits */
    GPUCONV_BOOL      /* a byte that is 0 or 1; other values count as 1 */
};

enum gpuconv_memory {
    GPUCONV_HOST,
    GPUCONV_DEVICE /* memory of the context's GPU */
};

/* Samples in the caller's memory: one image, or several of one shape at equal distances. A stride is the number of
 * bytes from a sample to the one of the next row, column, channel or image. Interleaved, planar, padded and cropped
 * images, and every second column, are all views, and none of them is copied before it is filtered. */
struct gpuconv_view {
    void *data;        /* the first sample; aligned to its type */
    int width, height; /* pixels, from 1 to 16,777,215 */
    int channels;      /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha (the order of colours does not matter) */
    enum gpuconv_type type;
    enum gpuconv_memory memory;
    int count; /* the number of images; 0 is 1 */

    /* Multiples of the sample's size, above 0. Any value if there is only one row, column, channel or image. */
    ptrdiff_t row_stride, column_stride, channel_stride, image_stride;
    int reserved[4];
};

/* A view of height x width x channels samples on the host, without padding. DATA may be const in a view for
 * reading: no function writes to an input. A stride that ptrdiff_t does not hold is 0, so that the functions that get
 * the view fail. */
GPUCONV_API struct gpuconv_view gpuconv_interleaved(const void *data, int width, int height, int channels,
                                                    enum gpuconv_type type);

/* A view of channels x height x width samples on the host, without padding. DATA is as above. */
GPUCONV_API struct gpuconv_view gpuconv_planar(const void *data, int width, int height, int channels,
                                               enum gpuconv_type type);

/* The part of VIEW whose first pixel is in column X and row Y. The part is an image of its own: a filter uses the
 * border around it, and not the pixels of VIEW. If the part is not inside VIEW, the result has no pixels, and the
 * functions that get it fail. */
GPUCONV_API struct gpuconv_view gpuconv_crop(const struct gpuconv_view *view, int x, int y, int width, int height);

/* ---- Apply ---- */

/* What stands outside the image. A row of samples abcd continues as: */
enum gpuconv_border {
    GPUCONV_REPLICATE,  /* aaa|abcd|ddd */
    GPUCONV_REFLECT,    /* cba|abcd|dcb */
    GPUCONV_REFLECT101, /* dcb|abcd|cba */
    GPUCONV_WRAP,       /* bcd|abcd|abc */
    GPUCONV_ZERO        /* 000|abcd|000 */
};

/* How the last of 2 or 4 channels is filtered. */
enum gpuconv_alpha {
    GPUCONV_PREMULTIPLY, /* filter alpha, and the colours multiplied by it, and divide these. Filters whose taps do not
                            sum to 1 see the picture on black and keep alpha: see the manual of the command line */
    GPUCONV_KEEP,        /* filter the colours as they are, and copy alpha */
    GPUCONV_FILTER_ALPHA /* filter the last channel as any other: also for four channels without alpha */
};

struct gpuconv_image;

struct gpuconv_options {
    enum gpuconv_border border;
    enum gpuconv_alpha alpha;
    int linear;                           /* 1: filter in linear light. For samples of 8 and 16 bits */
    const struct gpuconv_image *curve_of; /* a decoded image whose profile says what linear light is; NULL for sRGB */
    void *stream;    /* for views in device memory: the cudaStream_t; NULL is CUDA's legacy default stream */
    const int *stop; /* another thread may set it to end a call on the CPU early, with GPUCONV_BAD_DATA and an output
                        that is not whole; NULL if nobody does */
    int reserved[4];
};

/* Apply FILTER to IN, and write the result to OUT, which has the size that gpuconv_filter_size says, and the same
 * channels, type, number of images and kind of memory. OPTIONS may be NULL. Samples of 8 and 16 bits become the bytes
 * that the command line makes, on every machine, with any number of threads. Floats are neither rounded nor clamped:
 * their sums depend on the order, so they agree with the exact result only within the rounding of float, and machines
 * may differ.
 *
 * IN and OUT may overlap, or be the same; then memory for one more image is used. Several images in device memory may
 * not. In OUT, no two samples may share memory. Bytes between the samples of OUT are not written.
 *
 * Views on the host: the call returns when OUT is written. A context on a GPU copies the samples there and back.
 *
 * Views in device memory: the work is queued on the stream of OPTIONS, in its order, and the call returns at once. IN
 * and OUT must stay until the work is done. The first call with a filter, or with another curve of linear light, copies
 * its numbers to the GPU, and may wait for that. A filter that changes the size has other numbers for each size of IN.
 * Calls of one context are ordered on the GPU, also those on other streams, because they share memory; those of other
 * contexts are ordered only where both need constant memory. Where the stream is captured by a CUDA graph, the call
 * fails: a graph would not hold this order. Fastest are planes whose first sample is at a multiple of 512 bytes, and
 * whose strides of rows and channels are multiples of 128, and then interleaved images without padding at a multiple of
 * 16 bytes. Others are copied on the GPU, also all but uint8, uint16 and float. Several images are filtered at once if
 * their planes have equal distances, or if they are interleaved without padding and gaps and not copied; and if neither
 * alpha nor linear light takes part. With GPUCONV_PREMULTIPLY and alpha of 8 or 16 bits, the call waits until it knows
 * whether the image is opaque. */
GPUCONV_API enum gpuconv_status gpuconv_apply(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                              const struct gpuconv_view *in, const struct gpuconv_view *out,
                                              const struct gpuconv_options *options, struct gpuconv_error *error);

/* Apply FILTER to COUNT views IN, and write the results to OUT, as COUNT calls of gpuconv_apply. All views are on the
 * host, or all in device memory. No output may overlap an input or another output. If the call fails, some outputs may
 * be written.
 *
 * In device memory, one launch resizes many pictures of 8 bits without alpha, of any sizes and layouts. FILTER has
 * one `resize` then. Filters that crop may stand before and after it, those that turn or mirror only before it. No
 * picture has more than 2^20 pixels, before or after. The call waits until all are resized. */
GPUCONV_API enum gpuconv_status gpuconv_apply_list(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                                   const struct gpuconv_view *in, const struct gpuconv_view *out,
                                                   int count, const struct gpuconv_options *options,
                                                   struct gpuconv_error *error);

/* Resize IN to the size of OUT, and write the result there: the bytes that Image.resize of Pillow makes. KERNEL is
 * "pillow-NAME" for Pillow 13 and later, or "pillow12-NAME" for Pillow up to 12: their order of passes may differ. NAME
 * is nearest, box, bilinear, hamming, bicubic or lanczos, and for "pillow-" also mks2013 or mks2021. Both views are on
 * the host, and may overlap. They are of GPUCONV_UINT8 with 1, 2, 3 or 4 channels, the modes L, LA, RGB and RGBA, or of
 * GPUCONV_UINT16 or GPUCONV_FLOAT with 1 channel, the modes I;16 and F. The sides of OUT are at most 100,000 pixels.
 * Fails if a sample would be the sum of more than 16,384 samples of a row or a column.
 *
 * BOX is the part of IN that becomes OUT: its left, upper, right and lower edge in pixels, with fractions. If it is
 * NULL, that is the whole picture. Kernels also reach pixels around the box. With a REDUCING_GAP, 1 or more, IN is
 * first reduced as by Image.reduce, by whole numbers, but not below that multiple of OUT. A gap of 0 is none. As in
 * Pillow, `nearest` has no gap, and LA and RGBA have none up to Pillow 12; for I;16, a call that would reduce fails.
 *
 * This needs no context: the calling thread does the work, and no memory is kept. For many images, call gpuconv_apply
 * with the filter "resize:224x224:exact:pillow-bicubic": its context keeps the taps and has several threads. */
GPUCONV_API enum gpuconv_status gpuconv_pillow_resize(const char *kernel, const struct gpuconv_view *in,
                                                      const struct gpuconv_view *out, const double box[4],
                                                      double reducing_gap, struct gpuconv_error *error);

/* ---- Images ---- */

/* An image in memory of the library, with the metadata of the file that it was decoded from. */
struct gpuconv_image;

/* Make an image with samples of any value, and without metadata. Release it with gpuconv_image_free. */
GPUCONV_API struct gpuconv_image *gpuconv_image_new(int width, int height, int channels, enum gpuconv_type type,
                                                    struct gpuconv_error *error);

/* A view of the samples of IMAGE: interleaved, without padding, on the host. It is valid until IMAGE is released. The
 * samples may be written. */
GPUCONV_API struct gpuconv_view gpuconv_image_view(const struct gpuconv_image *image);

/* Release an image. NULL is allowed. */
GPUCONV_API void gpuconv_image_free(struct gpuconv_image *image);

/* The part "exif" (a TIFF block), "icc" (a profile) or "xmp" (a packet) of the metadata of IMAGE, which gpuconv_encode
 * would write. *SIZE becomes its bytes. NULL if there is none. It is valid until IMAGE is released. */
GPUCONV_API const void *gpuconv_image_metadata(const struct gpuconv_image *image, const char *part, size_t *size);

/* Pack all metadata of IMAGE into a block of *SIZE bytes, for gpuconv_metadata_unpack of the same version in another
 * process. Release it with gpuconv_free. */
GPUCONV_API void *gpuconv_metadata_pack(const struct gpuconv_image *image, size_t *size, struct gpuconv_error *error);

/* Make an image that has no samples, but the metadata that gpuconv_metadata_pack has packed: for METADATA_OF and
 * CURVE_OF alone. Take bytes from nobody but yourself. Release it with gpuconv_image_free. */
GPUCONV_API struct gpuconv_image *gpuconv_metadata_unpack(const void *bytes, size_t size, struct gpuconv_error *error);

struct gpuconv_file_info {
    const char *format;     /* "PNG", "JPEG", "PGM", "PPM", "PNM", "PAM", "WebP", "TIFF", "AVIF" or "HEIC"; static */
    int width, height;      /* pixels, as in the file: gpuconv_decode may turn the image */
    int channels;           /* the channels of the decoded image */
    enum gpuconv_type type; /* the type of the decoded image's samples */
    int reserved[8];
};

/* Check the structure of SIZE bytes of an image file, and fill in INFO, without decoding. */
GPUCONV_API enum gpuconv_status gpuconv_inspect(const void *bytes, size_t size, struct gpuconv_file_info *info,
                                                struct gpuconv_error *error);

struct gpuconv_decode_options {
    int bits;             /* bits of a decoded sample, 8 or 16; 0 for the bits of the file */
    int keep_orientation; /* 1 to leave the rows as they are in the file, 0 to turn the image upright, as EXIF says */
    const char *name;     /* the name of the file, for messages; or NULL */
    size_t max_pixels;    /* refuse a larger image; 0 for no limit but that of struct gpuconv_view */
    void *stream; /* for gpuconv_decode_all to views in device memory: the cudaStream_t; NULL is CUDA's legacy default
                     stream */
    int page; /* which page of a TIFF, frame of a WebP or picture of a HEIC or AVIF, from 1; 0 for the main picture */
    int reserved[3];
};

/* Decode SIZE bytes of a PNG, JPEG, PNM, WebP, TIFF, AVIF or HEIC on the context's threads: the image that the command
 * line would filter. OPTIONS may be NULL. Bytes from strangers are safe to decode, but may make a large image: set
 * max_pixels. Release the image with gpuconv_image_free. */
GPUCONV_API struct gpuconv_image *gpuconv_decode(struct gpuconv_context *context, const void *bytes, size_t size,
                                                 const struct gpuconv_decode_options *options,
                                                 struct gpuconv_error *error);

struct gpuconv_encode_options {
    const char *format;  /* a suffix: "png" (NULL), "jpg", "pgm", "ppm", "pnm", "pam", "webp", "tif" or "avif" */
    int quality;         /* the quality of a JPEG, lossy WebP or AVIF, 1 to 100; 0 is 90 */
    int subsampling;     /* for a JPEG: 444, 422, 420, 440 or 411; 0 for that of METADATA_OF, or by quality */
    int progressive;     /* 1: a JPEG in several scans */
    int compression;     /* the level of a PNG or TIFF, 1 to 9; 0 is 1, -1 is none, and -2 the fast level of a PNG */
    uint32_t background; /* the colour below alpha, 0xRRGGBB, where the format has no alpha and HAS_BACKGROUND is 1;
                            else white */
    int has_background;
    const struct gpuconv_image
        *metadata_of; /* write the metadata of this decoded image, made to fit the size; or NULL */
    int lossless;     /* 1: a WebP or AVIF is lossless */
    int reserved[3];
    void *stream; /* for gpuconv_encode_all, as in struct gpuconv_decode_options */
};

/* Encode VIEW, one image of 8 or 16 bits on the host, on the context's threads: the bytes that the command line writes.
 * OPTIONS may be NULL. *BYTES becomes a block of *SIZE bytes. Release it with gpuconv_free. */
GPUCONV_API enum gpuconv_status gpuconv_encode(struct gpuconv_context *context, const struct gpuconv_view *view,
                                               const struct gpuconv_encode_options *options, void **bytes, size_t *size,
                                               struct gpuconv_error *error);

/* Release memory that gpuconv_encode, gpuconv_encode_all, gpuconv_filter_text or gpuconv_metadata_pack has returned.
 * NULL is allowed. */
GPUCONV_API void gpuconv_free(void *memory);

/* ---- Many files ---- */

/* These functions take COUNT files. A file that fails does not stop the others. ERRORS, which may be NULL, has an
 * element for each file, with its warnings. They return the status of the first file that failed, or GPUCONV_OK.
 * OPTIONS may be NULL, and apply to all files. Views may be on the host, or in the memory of the context's GPU; those
 * to decode to must not overlap.
 *
 * On a GPU, baseline JPEGs are decoded and encoded there, many in one launch: many small files take little longer
 * than one. So are PNGs that are not interlaced, one after the other, if they are so large that this is faster. All
 * other files (progressive, arithmetic, CMYK, interlaced, damaged, other formats) take the CPU, on the context's
 * threads. Few small JPEGs are decoded there, too, as that is faster. The samples and the bytes are the same. The work
 * is queued on the stream of OPTIONS, in its order. The calls return when it is done: only then it is known which files
 * are damaged. Calls of one context run one after another. */

/* The bytes of a file. */
struct gpuconv_bytes {
    void *data; /* may be const memory if the function only reads it */
    size_t size;
};

/* Set INFOS to the formats of FILES, and to the shapes of the views that gpuconv_decode_all needs: upright, unless
 * OPTIONS keep the orientation, and with the bits that OPTIONS ask for. Nothing is decoded. */
GPUCONV_API enum gpuconv_status gpuconv_inspect_all(struct gpuconv_context *context, const struct gpuconv_bytes *files,
                                                    int count, const struct gpuconv_decode_options *options,
                                                    struct gpuconv_file_info *infos, struct gpuconv_error *errors);

/* Decode FILES to VIEWS of the caller's memory, one image each, without metadata. The name in OPTIONS is not used. */
GPUCONV_API enum gpuconv_status gpuconv_decode_all(struct gpuconv_context *context, const struct gpuconv_bytes *files,
                                                   int count, const struct gpuconv_decode_options *options,
                                                   const struct gpuconv_view *views, struct gpuconv_error *errors);

/* Encode VIEWS, one image of 8 or 16 bits each, as gpuconv_encode does. FILES become blocks of the library, or NULL
 * after a failure. Release each with gpuconv_free. */
GPUCONV_API enum gpuconv_status gpuconv_encode_all(struct gpuconv_context *context, const struct gpuconv_view *views,
                                                   int count, const struct gpuconv_encode_options *options,
                                                   struct gpuconv_bytes *files, struct gpuconv_error *errors);

/* ---- Pictures for a model ---- */

/* How a picture gets into its image of the output. It is resized to WIDTH x HEIGHT pixels, each from 1 to 100,000. Then
 * pixel (X, Y) of the resized picture becomes pixel (0, 0) of the image. X and Y may be below 0, and the image may end
 * beyond the resized picture: it has the colour `pad` there. But it must have a pixel of the picture at least. */
struct gpuconv_placement {
    int width, height, x, y;
};

struct gpuconv_preprocess_options {
    struct gpuconv_decode_options decode;       /* for files, without the name; its stream is for all work on a GPU */
    const char *kernel;                         /* a word of the filter `resize`, such as "pillow-bicubic" or "cubic" */
    const struct gpuconv_placement *placements; /* one for each picture */
    const float *levels; /* 3 x 256 numbers: the samples that the levels 0 to 255 of red become, then those of green and
                            of blue. NULL for an output of GPUCONV_UINT8, whose samples are the levels */
    uint32_t pad;        /* the colour of the output beside the picture, 0xRRGGBB; its levels become samples, too */
    uint32_t background; /* the colour below alpha, 0xRRGGBB, if HAS_BACKGROUND is 1; else alpha is dropped */
    int has_background;
    int reserved[5];
};

/* Decode COUNT pictures, resize and crop them, and write them to OUT: COUNT images of 3 channels, of GPUCONV_UINT8,
 * GPUCONV_FLOAT, GPUCONV_HALF or GPUCONV_BFLOAT16, on the host or in the memory of the context's GPU. OPTIONS may not
 * be NULL. ERRORS and the result are as for many files, above. The image of a picture that failed has any samples.
 *
 * Picture I is the file FILES[I] or, if that has no data, the view VIEWS[I]. FILES or VIEWS may be NULL. A view is one
 * image of 8 or 16 bits on the host. It may be in the memory of the context's GPU if it has 8 bits, OUT is there, too,
 * the kernel is one of Pillow's, and there is no background.
 *
 * Before it is resized, a picture becomes RGB of 8 bits, as by Pillow's convert("RGB"). Grey becomes three equal
 * channels. Colours of 16 bits lose their lower 8 bits. Grey levels of 16 bits that are above 255 become 255.
 * But if the options ask for 8 bits, files of 16 bits are rounded. A colour over the background is rounded to nearest.
 *
 * If OUT is in the memory of a GPU, that decodes the JPEGs that gpuconv_decode_all decodes there, and the CPU all other
 * files. The GPU then resizes the pictures, many in one launch, if the kernel is one of Pillow's; else the CPU does.
 * The samples are the same. */
GPUCONV_API enum gpuconv_status gpuconv_preprocess_all(struct gpuconv_context *context,
                                                       const struct gpuconv_bytes *files,
                                                       const struct gpuconv_view *views, int count,
                                                       const struct gpuconv_preprocess_options *options,
                                                       const struct gpuconv_view *out, struct gpuconv_error *errors);

/* ---- Compare ---- */

struct gpuconv_difference {
    int same_shape;       /* 1: width, height, channels and type agree; else all fields below are 0 */
    int largest;          /* the largest difference of two samples, in levels of their type */
    int largest_of[4];    /* `largest`, for each channel */
    int first_x, first_y; /* the first pixel in reading order that differs by more than the tolerance; else -1 */
    int box_x, box_y;     /* the first column and row of the smallest rectangle around all such pixels */
    int box_width, box_height;
    uint64_t pixels;      /* the number of such pixels */
    uint64_t tolerated;   /* the number of pixels that differ by no more than the tolerance */
    double psnr;          /* in dB; infinite if all samples are equal */
    double ssim;          /* the mean structural similarity of the luma; 1 if all samples are equal, and NAN for images
                               below 11 x 11 pixels */
    uint64_t antialiased; /* the number of pixels that were ignored because they are antialiased */
    double local_ssim;    /* the lowest similarity of a window of 11 x 11 pixels; else as ssim */
    int beyond;           /* 1: the images differ by more than the options allow */
    int reserved[3];
};

/* Compare ACTUAL with EXPECTED, each one image of 8 or 16 bits on the host, as `gpuconv --compare --strict-channels`
 * does with a tolerance of TOLERANCE levels. */
GPUCONV_API enum gpuconv_status gpuconv_compare(struct gpuconv_context *context, const struct gpuconv_view *expected,
                                                const struct gpuconv_view *actual, int tolerance,
                                                struct gpuconv_difference *difference, struct gpuconv_error *error);

/* What may differ, as the options of `gpuconv --compare` say it. */
struct gpuconv_compare_options {
    int tolerance;           /* levels that a sample may differ by */
    int strict_channels;     /* 1: opaque alpha, and grey as three equal channels, are a difference */
    int ignore_antialiasing; /* 1: ignore pixels that differ only because edges were smoothed in another way */
    int ignore_transparent;  /* 1: ignore pixels whose alpha is 0 in both images */
    double tolerance_yiq;    /* the difference of colours that is allowed, up to 1; 0 for none */
    uint64_t different;      /* the number of pixels that may differ by more than the tolerance */

    /* Limits of the whole image; 0 for none. If only these are set, any pixels may differ. */
    double min_psnr, min_ssim, min_local_ssim;
    int reserved[8];
};

/* Compare ACTUAL with EXPECTED, each one image of 8 or 16 bits on the host, by OPTIONS, which may be NULL. */
GPUCONV_API enum gpuconv_status
gpuconv_compare_with(struct gpuconv_context *context, const struct gpuconv_view *expected,
                     const struct gpuconv_view *actual, const struct gpuconv_compare_options *options,
                     struct gpuconv_difference *difference, struct gpuconv_error *error);

/* Make a picture that shows where and how much two images of one size and type differ: black where they are equal.
 * Release it with gpuconv_image_free. */
GPUCONV_API struct gpuconv_image *gpuconv_compare_picture(const struct gpuconv_view *expected,
                                                          const struct gpuconv_view *actual,
                                                          struct gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
