/* SPDX-License-Identifier: MIT
 *
 * The C interface of JPEG on a GPU: the data of a scan become samples in device memory, and samples become the data of
 * a scan. Only compressed bytes cross the bus. The samples and the data equal libjpeg-turbo's. A build without CUDA has
 * none of these functions. */
#ifndef GPUCONV_DEVICE_JPEG_H
#define GPUCONV_DEVICE_JPEG_H

#include "jpeg/jpeg.h"
#include "kernels/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers on one device, and page-locked ones. They grow, and are kept from image to image. */
struct device_jpeg;

/* Release with device_jpeg_close, before the device; NULL is allowed there. */
bool device_jpeg_open(struct device *device, struct device_jpeg **jpeg, struct error *error);
void device_jpeg_close(struct device_jpeg *jpeg);

/* Copy SCAN, of a picture of LAYOUT, to page-locked memory, once device_jpeg_decoded has returned for the scan
 * before. */
bool device_jpeg_load(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                      struct error *error);

/* Queue the upload of the loaded scan, which has LAYOUT, and its decoding to SAMPLES, on the device: height x width
 * pixels of 1 or 3 bytes, interleaved, aligned to 16 bytes. */
bool device_jpeg_decode(struct device_jpeg *jpeg, const struct jpeg_layout *layout, uint8_t *samples,
                        struct error *error);

/* Wait for the decoder. *IS_DECODED is false if the data are damaged or unsupported, or did not synchronise in time:
 * the samples are then worthless, and the CPU has to decode the file. */
bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error);

/* Queue the encoding of IMAGE, 8 bits and 1 to 4 channels in device memory, aligned to 16 bytes; alpha is dropped. The
 * samples stay as they are until device_jpeg_encoded returns. The tables of LAYOUT are set, the same ones for both
 * chroma components, and it has no restart intervals. It has 1 component for 1 or 2 channels, else 3. */
bool device_jpeg_encode(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct image *image,
                        struct error *error);

/* Wait for the encoder, and download the data of the scan, stuffed and padded, without markers. *BYTES is page-locked
 * and valid until the next call. Encodes again if the data are longer than expected. */
bool device_jpeg_encoded(struct device_jpeg *jpeg, const uint8_t **bytes, size_t *size, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
