/* SPDX-License-Identifier: MIT
 *
 * The C interface of PNG on a GPU: the stream of a file becomes samples in device memory, and samples become a stream.
 * Only compressed bytes cross the bus. The encoder writes the bytes that png/rules.h defines, as the CPU does. A
 * build without CUDA has none of these functions. */
#ifndef GPUCONV_DEVICE_PNG_H
#define GPUCONV_DEVICE_PNG_H

#include "kernels/device/stream.h"
#include "png/png.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers on one device, and page-locked ones. They grow, and are kept from image to image. */
struct device_png;

/* Release with device_png_close, before the device; NULL is allowed there. */
bool device_png_open(struct device *device, struct device_png **png, struct error *error);
void device_png_close(struct device_png *png);

/* Page-locked memory for the data of the IDAT chunks of a file, SIZE bytes: a stream of zlib. Call this once
 * device_png_decoded has returned for the file before. The memory is valid until device_png_decode. */
bool device_png_reserve(struct device_png *png, size_t size, uint8_t **bytes, struct error *error);

/* Queue the upload of the stream, whose rows have LAYOUT, and its decoding to SAMPLES, on the device: height x width
 * pixels of png_layout_channels samples, interleaved, aligned to 16 bytes. */
bool device_png_decode(struct device_png *png, const struct png_layout *layout, uint8_t *samples, struct error *error);

/* Wait for the decoder. *IS_DECODED is false if the stream is damaged or unsupported: the samples are then worthless,
 * and the CPU has to decode the file. */
bool device_png_decoded(struct device_png *png, bool *is_decoded, struct error *error);

/* Queue the encoding of SAMPLES, in device memory: pixels of LAYOUT, which has no palette and no transparent colour.
 * They are 1 to 4 channels of 8 bits, or of 16 bits in the machine's byte order, and stay as they are until
 * device_png_encoded returns. */
bool device_png_encode(struct device_png *png, const struct png_layout *layout, const uint8_t *samples,
                       struct error *error);

/* Wait for the encoder, and download the deflate data of all bands, without the head and the checksum of zlib. *BYTES
 * is page-locked and valid until the next call; so are MARGIN bytes before the data and after it, for the caller.
 * *ADLER is the Adler-32 of the filtered rows. */
bool device_png_encoded(struct device_png *png, size_t margin, uint8_t **bytes, size_t *size, uint32_t *adler,
                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
