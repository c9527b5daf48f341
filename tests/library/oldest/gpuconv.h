/* SPDX-License-Identifier: MIT
 *
 * The first header of libgpuconv.so.0, without its comments. It changes only with the soname. */
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

enum gpuconv_status { GPUCONV_OK, GPUCONV_BAD_ARGUMENT, GPUCONV_BAD_DATA, GPUCONV_NO_MEMORY, GPUCONV_NO_GPU };

struct gpuconv_error {
    enum gpuconv_status status;
    char message[2044];
};

GPUCONV_API const char *gpuconv_version(void);

struct gpuconv_context;

struct gpuconv_context_options {
    int threads;
    int uses_gpu;
    int device;
    int reserved[5];
};

GPUCONV_API struct gpuconv_context *gpuconv_context_open(const struct gpuconv_context_options *options,
                                                         struct gpuconv_error *error);

GPUCONV_API void gpuconv_context_close(struct gpuconv_context *context);

GPUCONV_API int gpuconv_gpus(void);

struct gpuconv_filter;

GPUCONV_API struct gpuconv_filter *gpuconv_filter_find(const char *name, struct gpuconv_error *error);

GPUCONV_API struct gpuconv_filter *gpuconv_filter_parse(const char *text, size_t size, const char *name,
                                                        struct gpuconv_error *error);

struct gpuconv_taps {
    const int32_t *taps;
    int width, height;
    int anchor_x, anchor_y;
    int has_anchor;
    int absolute;
    int32_t scale;
    double offset;
    int reserved[4];
};

GPUCONV_API struct gpuconv_filter *gpuconv_filter_make(const struct gpuconv_taps *taps, struct gpuconv_error *error);

GPUCONV_API struct gpuconv_filter *gpuconv_filter_flip(const struct gpuconv_filter *filter,
                                                       struct gpuconv_error *error);

struct gpuconv_filter_info {
    int count;
    int left, right, above, below;
    int exact;
    double largest_error;
    int reserved[8];
};

GPUCONV_API void gpuconv_filter_describe(const struct gpuconv_filter *filter, struct gpuconv_filter_info *info);

GPUCONV_API char *gpuconv_filter_text(const struct gpuconv_filter *filter, int index, int as_json,
                                      struct gpuconv_error *error);

GPUCONV_API const char *gpuconv_filter_name(int index);

GPUCONV_API void gpuconv_filter_close(struct gpuconv_filter *filter);

enum gpuconv_type { GPUCONV_UINT8, GPUCONV_UINT16, GPUCONV_FLOAT };

enum gpuconv_memory { GPUCONV_HOST, GPUCONV_DEVICE };

struct gpuconv_view {
    void *data;
    int width, height;
    int channels;
    enum gpuconv_type type;
    enum gpuconv_memory memory;
    int count;

    ptrdiff_t row_stride, column_stride, channel_stride, image_stride;
    int reserved[4];
};

GPUCONV_API struct gpuconv_view gpuconv_interleaved(void *data, int width, int height, int channels,
                                                    enum gpuconv_type type);

GPUCONV_API struct gpuconv_view gpuconv_planar(void *data, int width, int height, int channels, enum gpuconv_type type);

GPUCONV_API struct gpuconv_view gpuconv_crop(const struct gpuconv_view *view, int x, int y, int width, int height);

enum gpuconv_border { GPUCONV_REPLICATE, GPUCONV_REFLECT, GPUCONV_REFLECT101, GPUCONV_WRAP, GPUCONV_ZERO };

enum gpuconv_alpha { GPUCONV_PREMULTIPLY, GPUCONV_KEEP, GPUCONV_FILTER_ALPHA };

struct gpuconv_image;

struct gpuconv_options {
    enum gpuconv_border border;
    enum gpuconv_alpha alpha;
    int linear;
    const struct gpuconv_image *curve_of;
    void *stream;
    int reserved[6];
};

GPUCONV_API enum gpuconv_status gpuconv_apply(struct gpuconv_context *context, const struct gpuconv_filter *filter,
                                              const struct gpuconv_view *in, const struct gpuconv_view *out,
                                              const struct gpuconv_options *options, struct gpuconv_error *error);

struct gpuconv_image;

GPUCONV_API struct gpuconv_image *gpuconv_image_new(int width, int height, int channels, enum gpuconv_type type,
                                                    struct gpuconv_error *error);

GPUCONV_API struct gpuconv_view gpuconv_image_view(const struct gpuconv_image *image);

GPUCONV_API void gpuconv_image_free(struct gpuconv_image *image);

struct gpuconv_file_info {
    const char *format;
    int width, height;
    int channels;
    enum gpuconv_type type;
    int reserved[8];
};

GPUCONV_API enum gpuconv_status gpuconv_inspect(const void *bytes, size_t size, struct gpuconv_file_info *info,
                                                struct gpuconv_error *error);

struct gpuconv_decode_options {
    int bits;
    int keep_orientation;
    const char *name;
    size_t max_pixels;
    int reserved[6];
};

GPUCONV_API struct gpuconv_image *gpuconv_decode(struct gpuconv_context *context, const void *bytes, size_t size,
                                                 const struct gpuconv_decode_options *options,
                                                 struct gpuconv_error *error);

struct gpuconv_encode_options {
    const char *format;
    int quality;
    int subsampling;
    int progressive;
    int compression;
    uint32_t background;
    int has_background;
    const struct gpuconv_image *metadata_of;
    int reserved[6];
};

GPUCONV_API enum gpuconv_status gpuconv_encode(struct gpuconv_context *context, const struct gpuconv_view *view,
                                               const struct gpuconv_encode_options *options, void **bytes, size_t *size,
                                               struct gpuconv_error *error);

GPUCONV_API void gpuconv_free(void *memory);

struct gpuconv_difference {
    int same_shape;
    int largest;
    int largest_of[4];
    int first_x, first_y;
    int box_x, box_y;
    int box_width, box_height;
    uint64_t pixels;
    uint64_t tolerated;
    double psnr;
    double ssim;
    int reserved[8];
};

GPUCONV_API enum gpuconv_status gpuconv_compare(struct gpuconv_context *context, const struct gpuconv_view *expected,
                                                const struct gpuconv_view *actual, int tolerance,
                                                struct gpuconv_difference *difference, struct gpuconv_error *error);

GPUCONV_API struct gpuconv_image *gpuconv_compare_picture(const struct gpuconv_view *expected,
                                                          const struct gpuconv_view *actual,
                                                          struct gpuconv_error *error);

#ifdef __cplusplus
}
#endif

#endif
