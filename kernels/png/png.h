/* SPDX-License-Identifier: MIT
 *
 * The C interface of PNG on a GPU: samples in device memory become the stream of a file. Only compressed bytes cross
 * the bus. They are the bytes that png/deflate.h defines, which the CPU writes, too. A build without CUDA has none of
 * these functions. */
#ifndef GPUCONV_DEVICE_PNG_H
#define GPUCONV_DEVICE_PNG_H

#include "image/image.h"
#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers on one device, and page-locked ones. They grow, and are kept from image to image. */
struct device_png;

/* Release with device_png_close, before the device; NULL is allowed there. */
bool device_png_open(struct device *device, struct device_png **png, struct error *error);
void device_png_close(struct device_png *png);

/* Queue the encoding of IMAGE, 8 or 16 bits and 1 to 4 channels in device memory. The samples stay as they are until
 * device_png_encoded returns. */
bool device_png_encode(struct device_png *png, const struct image *image, struct error *error);

/* Wait for the encoder, and download the deflate data of all bands, without the head and the checksum of zlib. *BYTES
 * is page-locked and valid until the next call. *ADLER is the Adler-32 of the filtered rows. */
bool device_png_encoded(struct device_png *png, const uint8_t **bytes, size_t *size, uint32_t *adler,
                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
