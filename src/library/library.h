/* SPDX-License-Identifier: MIT
 *
 * What the files of the library share. */
#ifndef GPUCONV_LIBRARY_H
#define GPUCONV_LIBRARY_H

#include "base/error.h"
#include "base/parallel.h"
#include "codec/codec.h"
#include "filter/chain.h"
#include "image/image.h"
#include "library/gpuconv.h"
#include "metadata/metadata.h"
#include "pipeline/pipeline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The caller's filter is a chain. The caller has a reference to it, and each context that keeps plans for it. */
static inline struct filter_chain *filter_chain_of(const struct gpuconv_filter *filter)
{
    return (struct filter_chain *)filter;
}

struct gpuconv_image {
    struct image image;
    struct metadata metadata;
    struct chroma_subsampling chroma_subsampling; /* that of the JPEG that was decoded, turned as the image */
};

struct gpuconv_context {
    pid_t process;         /* the process that opened the context, and has its threads */
    pthread_mutex_t mutex; /* guards the fields below; a pool and a pipeline serve one thread at a time */
    struct thread_pool pool;
    struct resources resources; /* its `shared` is NULL if the CPU filters */
    struct pipeline pipeline;
    struct phases phases;
};

/* The status of a call that is DONE, or failed for the reason FROM, which is copied TO the caller's struct. After a
 * success, that has no warnings yet. */
enum gpuconv_status library_status(bool done, const struct error *from, struct gpuconv_error *to);

/* As library_status, for a function that returns the pointer RESULT, which is NULL after a failure. Returns RESULT. */
#define LIBRARY_RESULT(result, from, to) (library_status((result) != NULL, from, to) == GPUCONV_OK ? (result) : NULL)

/* Add a warning, one sentence, TO the caller's struct of a call that has succeeded. It may be NULL. */
void library_warn(struct gpuconv_error *to, const char *format, ...) ERROR_PRINTF(2, 3);

/* Are all COUNT values of RESERVED 0? */
bool library_check_reserved(const int *reserved, size_t count, struct error *error);

/* May this process use CONTEXT, which may be NULL? */
bool library_check_context(const struct gpuconv_context *context, struct error *error);

/* Has CONTEXT a GPU, if VIEW is in the memory of one? */
bool library_check_gpu(const struct gpuconv_context *context, const struct gpuconv_view *view, struct error *error);

/* Set *WIDTH and *HEIGHT, the size of an image, to the size of the result of FILTER. */
bool filter_size(const struct gpuconv_filter *filter, int *width, int *height, struct error *error);

/* Apply RECIPE to the image at IN, as pipeline_run does. IMAGES is that of struct pipeline_run. */
bool library_run(struct pipeline *pipeline, struct phases *phases, const struct recipe *recipe, int images,
                 const struct end *in, struct end *out, struct error *error);

/* ---- picture.c, for files.c ---- */

/* The type of samples of BITS bits. */
enum gpuconv_type library_type_of(int bits);

/* Check OPTIONS, and set SETTINGS to what they ask for, and *FORMAT. The pool is left to the caller. */
bool library_decode_settings(const struct gpuconv_decode_options *options, struct codec_settings *settings,
                             struct error *error);
bool library_encode_settings(const struct gpuconv_encode_options *options, struct codec_settings *settings,
                             const struct format **format, struct error *error);

/* Inspect a file, whose bytes may be missing. */
bool library_inspect(const void *bytes, size_t size, const char *name, const struct codec_settings *settings,
                     struct codec_info *info, struct error *error);

/* Put the metadata of LIKE into the file of IMAGE, which may have another size. */
bool library_write_metadata(const struct gpuconv_image *like, const struct image *image, const struct format *format,
                            uint8_t **bytes, size_t *size, uint64_t *dropped, struct error *error);

/* Warn of the contents of a file besides its first picture, of losses of an encoded VIEW, and of metadata that are not
 * carried over. */
void library_warn_decoded(struct gpuconv_error *error, const char *name, const struct codec_info *info);
void library_warn_encoded(struct gpuconv_error *error, const struct gpuconv_view *view, const struct format *format,
                          const struct gpuconv_encode_options *options);
void library_warn_dropped(struct gpuconv_error *error, const char *name, uint64_t dropped);

/* ---- view.c ---- */

/* Check VIEW, and set IMAGES to its images, with strides. NAME is for messages: "input". */
bool view_check(const struct gpuconv_view *view, const char *name, struct images *images, struct error *error);

/* The name of a type of samples, as NumPy has it. */
const char *view_type_name(enum gpuconv_type type);

/* Do no two samples of VIEW, which is checked, share memory? */
bool view_check_apart(const struct gpuconv_view *view, const char *name, struct error *error);

/* Let *IMAGE be a copy of FROM, which may have strides, in COPY. Release COPY with image_free. */
bool library_copy_image(const struct image *from, struct image *image, struct image *copy, struct error *error);

/* Set *IMAGE to the only image of VIEW, of 8 or 16 bits and without padding. If the samples must be copied for that,
 * COPY has them, else it is zero: release it with image_free. */
bool view_take_image(const struct gpuconv_view *view, const char *name, struct image *image, struct image *copy,
                     struct error *error);

#endif
