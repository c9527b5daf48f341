/* SPDX-License-Identifier: MIT
 *
 * The C interface of JPEG on a GPU: the data of a scan become samples in device memory, and samples become the data of
 * a scan. Only compressed bytes cross the bus. The samples and the data equal libjpeg-turbo's. A build without CUDA has
 * none of these functions. */
#ifndef GPUCONV_DEVICE_JPEG_H
#define GPUCONV_DEVICE_JPEG_H

#include "jpeg/jpeg.h"
#include "kernels/device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers on one device, and page-locked ones. They grow, and are kept from image to image. */
struct device_jpeg;

/* The decoder notes its end as MARK of the device. Release with device_jpeg_close, before the device; NULL is allowed
 * there. */
bool device_jpeg_open(struct device *device, int mark, struct device_jpeg **jpeg, struct error *error);
void device_jpeg_close(struct device_jpeg *jpeg);

/* A picture to decode. Keep its layout and its scan until device_jpeg_decoded has returned. */
struct jpeg_input {
    const struct jpeg_layout *layout;
    struct jpeg_scan scan;
    uint8_t *samples; /* on the device, from device_jpeg_decode on: height x width pixels of 1 or 3 bytes, aligned to 16
                         bytes */
    size_t plane;     /* 0 if they are interleaved, else bytes from the samples of a component to those of the next */
};

/* How many pictures may be decoded or encoded at once: a dimension of CUDA's grids. */
enum { DEVICE_JPEG_COUNT_MAX = 65535 };

/* Reserve page-locked memory for COUNT pictures, once device_jpeg_decoded has returned for those before. INPUTS stays
 * until it returns for these. */
bool device_jpeg_reserve(struct device_jpeg *jpeg, const struct jpeg_input *inputs, size_t count, struct error *error);

/* Copy the scan of picture INDEX there. Several threads may load pictures at a time. */
void device_jpeg_load(struct device_jpeg *jpeg, size_t index);

/* Queue the upload of all pictures, which are loaded, and their decoding. Each stage is one launch for all of them. */
bool device_jpeg_decode(struct device_jpeg *jpeg, struct error *error);

/* Wait for the decoder, and not for what was queued later. IS_DECODED, of each picture, is false if its data are
 * damaged or unsupported, or did not synchronise in time: its samples are then worthless, and the CPU has to decode the
 * file. */
bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error);

/* A picture to encode. The tables of its layout are set, the same ones for both chroma components. It has no restart
 * intervals. It has 1 component for 1 or 2 channels, else 3. */
struct jpeg_output {
    const struct jpeg_layout *layout;
    const uint8_t *samples; /* on the device: height x width pixels of CHANNELS bytes, aligned to 16 bytes */
    int channels;           /* 1 to 4; alpha is dropped */
    size_t plane;           /* as in struct jpeg_input; only for 3 channels */
    size_t margin;          /* bytes before the downloaded data and after them, for the caller */
};

/* Queue the encoding of COUNT pictures in one launch. OUTPUTS and the samples stay as they are until
 * device_jpeg_encoded returns. */
bool device_jpeg_encode(struct device_jpeg *jpeg, const struct jpeg_output *outputs, size_t count, struct error *error);

/* Wait for the encoder, and download the data of each scan to SCANS: stuffed and padded, without markers. They are
 * page-locked and valid until the next call. Encodes again if data are longer than expected. */
bool device_jpeg_encoded(struct device_jpeg *jpeg, struct jpeg_scan *scans, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
