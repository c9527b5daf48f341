/* SPDX-License-Identifier: MIT
 *
 * One image from the bytes of its file to the bytes of another: the steps of a job between reading and writing. */
#ifndef GPUCONV_PASSAGE_H
#define GPUCONV_PASSAGE_H

#include "batch/job.h"
#include "codec/codec.h"
#include "image/image.h"
#include "metadata/metadata.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct passage {
    const struct job *job;
    struct job_result *result;
    struct codec_settings codec; /* with this image's pool, chroma subsampling and quantisers */
    struct codec_info info;
    uint8_t *bytes; /* of the input's file; NULL once they are decoded */
    size_t size;
    struct stat facts;          /* of the input's file, before it was read */
    struct codec_reader reader; /* of these bytes, until they are decoded */
    struct metadata metadata;
    int orientation;     /* how decoding turns the samples upright; the metadata and the image's shape are upright */
    bool expects_opaque; /* rows are filtered as if all pixels were opaque, until one is not */
    atomic_bool translucent; /* one is not */
    struct image image;      /* decoded; its samples are NULL where the rows stream */
    struct image filtered;   /* the same samples, or the pipeline's own */
    uint8_t *output;         /* result->output_bytes of them */
};

/* Decode, orient, convolve and encode an image whose file is read and inspected, whose reader is chosen, and whose
 * metadata are read. Where codecs and filters can, rows stream through all of these. The result receives the facts of all
 * steps, and the error of a failure. */
bool passage_run(struct job_worker *worker, struct passage *passage);

/* Complete passage->codec with what --quality keep takes from the input, which is inspected. */
void passage_keep_quality(struct passage *passage);

/* Upper bounds of host memory in bytes. */
struct passage_need {
    size_t image; /* until the image is done */
    size_t kept;  /* by the pipeline, for this image and later ones */
};

/* The memory for such an image, with a file of SIZE bytes. */
struct passage_need passage_need(const struct job_worker *worker, const struct passage *passage, size_t size);

/* Release everything. */
void passage_free(struct passage *passage);

#endif
