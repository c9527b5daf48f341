/* SPDX-License-Identifier: MIT
 *
 * The ends of a pipeline: where an image comes from, and where it goes to. */
#ifndef GPUCONV_CODEC_END_H
#define GPUCONV_CODEC_END_H

#include "base/bytes.h"
#include "container/png.h"
#include "image/image.h"
#include "image/rows.h"
#include "jpeg/jpeg.h"
#include "png/png.h"

#include <stddef.h>
#include <stdint.h>

enum end_kind {
    END_HOST,   /* samples in memory */
    END_ROWS,   /* a source, or a sink, of rows; only for the CPU */
    END_DEVICE, /* samples in the memory of a GPU that pipelines share */
    END_JPEG,   /* the scan of a JPEG, which the GPU decodes or encodes; only its bytes cross the bus */
    END_PNG,    /* likewise, the stream of a PNG that is not interlaced */
};

/* The caller sets what its kind needs. What the fields point to must stay until the image is done. */
struct end {
    enum end_kind kind;
    struct image *image;             /* the upright image: its shape, and with END_HOST and END_DEVICE its samples */
    const struct row_source *source; /* END_ROWS as an input */
    const struct row_sink *sink;     /* END_ROWS as an output */
    struct jpeg_layout jpeg;         /* END_JPEG; the next is for an input */
    struct jpeg_scan scan;
    struct png_layout png; /* END_PNG as an input, and the next, too */
    struct png_stream stream;
    int orientation;  /* how to turn an image upright that the GPU has decoded, as for image_orient */
    struct blob head; /* what is before the data in the file of an output that the GPU encodes; or empty */

    /* What pipeline_run makes of such an output. Before the data and after them, as many bytes as in HEAD are free. */
    uint8_t *data; /* the scan or the stream, valid until the next call */
    size_t size;
    uint32_t adler; /* the checksum of a PNG's filtered rows */
};

#endif
