/* SPDX-License-Identifier: MIT
 *
 * Lists of files, each with a view or more: files.c decodes and encodes them, and preprocess.c makes a tensor. */
#ifndef GPUCONV_LIST_H
#define GPUCONV_LIST_H

#include "library/library.h"

/* A file, and the image that it becomes or that it is made of. */
struct file {
    struct gpuconv_bytes bytes;
    struct codec_info info;
    int orientation;   /* how to turn it upright */
    struct image view; /* the caller's */
    bool on_device;    /* it is in the memory of the GPU */
    bool is_done;
    struct image image; /* in the host's memory: what the CPU has decoded, or will encode */
    struct end end;     /* the file, or IMAGE, as the GPU decodes or encodes it */
    uint64_t dropped;   /* metadata that the format does not support */
    struct error error; /* unless it is OK */
    bool has_failed;
};

/* A call. */
struct list {
    struct gpuconv_context *context;
    struct file *files;
    int count;
    const struct gpuconv_view *views;
    struct codec_settings settings;
    bool keeps_orientation;
    const struct gpuconv_image *like;
    const struct format *format; /* to write */
    const struct gpuconv_bytes *given;
    struct gpu_picture *pictures;    /* a picture for each file; those whose views are not on the GPU are done */
    const struct gpu_tensor *tensor; /* what becomes of the pictures on the GPU; or NULL */
    void *stream;
};

/* Begin a list of COUNT files, and run WORK to inspect each of them. GIVEN is the caller's array, which must be there.
 * The threads are the first to touch the memory of the files: the system then clears it for several at a time. Finish
 * the list, also after a failure. */
bool list_inspect_all(struct list *list, struct gpuconv_context *context, const void *given, int count,
                      const struct gpuconv_decode_options *options, void (*work)(void *list, int64_t index, int thread),
                      struct error *error);

/* Inspect a file. Its error says why that fails. */
bool list_inspect(const struct list *list, struct file *file);

/* The shape of a file's picture, upright. */
struct image list_shape(const struct list *list, const struct file *file);

/* Note how a GPU decodes the file to its view in device memory. Where it does not, PICTURE is done. */
void list_plan(const struct list *list, struct file *file, struct gpu_picture *picture);

/* Decode a file to its image, which is upright. */
bool list_decode(const struct list *list, struct file *file);

/* Let the GPU decode what it can, if views are there. Then run WORK for the other files: it finishes a file, or decodes
 * it to its image, which is uploaded to the view of its picture. */
void list_decode_all(struct list *list, void (*work)(void *list, int64_t index, int thread));

/* Report the status and the warnings of each file, and close the list. REASON is of a call that failed as a whole. */
enum gpuconv_status list_finish(struct list *list, int count, const struct error *reason, struct gpuconv_error *errors);

#endif
