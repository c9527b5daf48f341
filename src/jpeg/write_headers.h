/* SPDX-License-Identifier: MIT
 *
 * What libjpeg-turbo writes around the data of a scan, and the tables that it uses: those of ITU-T T.81, Annex K. */
#ifndef GPUCONV_JPEG_WRITE_HEADERS_H
#define GPUCONV_JPEG_WRITE_HEADERS_H

#include "container/jpeg.h"
#include "jpeg/layout.h"

/* No headers are longer, and so many bytes end the file. */
enum { JPEG_HEADERS_MOST = 1024, JPEG_END_BYTES = 2 };

/* Fill LAYOUT as libjpeg-turbo would encode a picture of 1 or 3 COMPONENTS with QUALITY, 1 to 100. CHROMA is as in
 * codec_settings: 0, 0 is chosen by quality. */
void jpeg_layout_for_writing(struct jpeg_layout *layout, int width, int height, int components,
                             struct chroma_subsampling chroma, int quality);

/* Write all up to the data of the scan. LAYOUT is one for writing. Returns the number of bytes. */
size_t jpeg_write_headers(const struct jpeg_layout *layout, uint8_t out[JPEG_HEADERS_MOST]);

/* Write what follows the data. */
static inline void jpeg_write_end(uint8_t out[JPEG_END_BYTES])
{
    out[0] = 0xff;
    out[1] = JPEG_MARKER_EOI;
}

#endif
