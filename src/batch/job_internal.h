/* SPDX-License-Identifier: MIT
 *
 * What the steps of a job share. job.c reads and writes; job_convert.c does what is between. */
#ifndef GPUCONV_JOB_INTERNAL_H
#define GPUCONV_JOB_INTERNAL_H

#include "batch/job.h"
#include "codec/codec.h"
#include "image/image.h"
#include "metadata/metadata.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The image of the current job, from its file to its output. */
struct conversion {
    struct job_worker *worker;
    const struct job *job;
    struct job_result *result;
    struct codec_settings codec; /* the job's, with the pool, chroma subsampling and quantisers for this image */
    struct pipeline_run run;

    /* The input. */
    bool lacks_memory; /* there was too little memory; then the job begins again, and waits for memory */
    bool may_wait;     /* the job may wait for memory */
    size_t streaming;  /* bytes reserved for an image that streams, without its output; 0 for a whole image */
    struct codec_info info;
    uint8_t *bytes; /* the bytes of the input file, or job->content; NULL once they are decoded */
    size_t size;
    struct stat status;         /* the status of the input file, before it was read */
    struct codec_reader reader; /* the reader of `bytes`, until they are decoded */
    struct metadata metadata;
    int orientation;       /* how decoding turns the samples upright; the metadata and the image's shape are upright */
    struct image image;    /* decoded; its samples are NULL where the rows stream, or a GPU will decode them */
    struct image produced; /* the shape of the image after the filters, which may change its size */
    bool widens;           /* grey becomes three channels before the filters */
    bool streams;          /* the reader can feed the filters row by row */
    bool shares;           /* the image is, or will be, worker->input.image, which the filters must not change */
    struct image aside;    /* the memory for `filtered` where the CPU must not filter in place, or no samples */

    /* The ends, with what a GPU needs if it can decode the input, or encode the output. */
    struct end in, out;
    struct codec_writer writer;                    /* the writer of the output's rows, if out.kind is END_ROWS */
    const struct codec *gpu_decoder, *gpu_encoder; /* they read and write the same as the GPU; NULL if it cannot */

    /* The output. */
    struct image filtered; /* its samples are those of `image`, or belong to the pipeline */
    uint8_t *output;       /* the output file, result->output_bytes bytes */
    bool is_borrowed;      /* `output` is in page-locked memory of the pipeline, valid until its next image */
};

/* Upper bounds of host memory in bytes. */
struct job_memory {
    size_t image;   /* bytes until the image is done, with an output of the expected size */
    size_t largest; /* bytes until the image is done, with the largest output; 0 if equal to `image` */
    size_t kept;    /* bytes that the pipeline keeps, for this image and later ones */
};

/* Find the shapes of the image, whose metadata are read: what the decoder makes, which is small for a thumbnail, and
 * what the filters make. Let the metadata be of the latter. */
bool job_find_shapes(struct conversion *conversion);

/* The memory for an image whose file of SIZE bytes is inspected. */
struct job_memory job_estimate_memory(struct job_worker *worker, struct conversion *conversion, size_t size);

/* Release what a worker keeps of the colours of the last picture. */
void job_forget_colours(struct job_worker *worker);

/* Release the shared image of the worker, and with IS_LAST the file. */
void job_forget_input(struct job_worker *worker, bool is_last);

/* Give back the buffers that the worker's pipeline keeps. */
void job_release_buffers(struct job_worker *worker);

/* Choose the backend for an image whose file is inspected and whose metadata are read. Decode it and turn it upright,
 * unless a GPU decodes it or its rows stream. Reports JOB_INPUT_KNOWN. */
bool job_decode(struct job_worker *worker, struct conversion *conversion);

/* Choose the codec for the output, and plan the filters. Reports JOB_PLANNED. */
bool job_plan(struct job_worker *worker, struct conversion *conversion);

/* Make the digest of the image, after its filters if it has some, and compare it with the job's, if that has one. */
bool job_digest(struct conversion *conversion);

/* Filter and encode as planned. Where codecs and filters can, rows stream through all steps. */
bool job_convert(struct job_worker *worker, struct conversion *conversion);

/* Release the memory of the conversion. */
void job_free(struct conversion *conversion);

#endif
