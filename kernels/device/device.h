/* SPDX-License-Identifier: MIT
 *
 * The C face of a GPU: open, one stream, buffers, upload, download, time. Implemented in device.cu,
 * peak.cu and planes.cu. A build without CUDA has none of it and does not define GPUCONV_CUDA. The message of a failed
 * call ends with CUDA's own words. */
#ifndef GPUCONV_DEVICE_H
#define GPUCONV_DEVICE_H

#include "base/error.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;

struct device_info {
    char name[256];
    int capability;      /* compute capability times 10: 90 is 9.0 */
    size_t memory;       /* bytes */
    int multiprocessors; /* SMs */
    int l2_bytes;
};

/* Multiply-adds a second, measured. */
struct device_peaks {
    double fma;    /* float */
    double dp4a;   /* four products of bytes an instruction */
    double tensor; /* bytes, on the tensor cores (mma.sync) */
};

/* Points in time on the device's stream. */
enum { DEVICE_MARKS = 16 };

/* How many CUDA devices this machine has. No driver, an old driver and no device all fail, with the reason. */
bool device_count(int *count, struct error *error);

/* Facts about device INDEX. */
bool device_describe(int index, struct device_info *info, struct error *error);

/* The driver's newest CUDA version, as 1000 * major + 10 * minor; 0 where there is no driver. */
int device_driver_version(void);

/* Create the context (about a third of a second, unless this process has it already) and a stream on device INDEX, for
 * the calling thread: the others must open it for themselves. Streams of one device share constant memory: from a
 * variant's prepare until device_wait after its launch no other stream may be between the same two. */
bool device_open(int index, struct device **device, struct error *error);

/* Release it; NULL is allowed. Buffers must have been released before. */
void device_close(struct device *device);

/* The facts, as device_describe gave them when the device was opened. */
const struct device_info *device_facts(const struct device *device);

/* Device memory, aligned to 512 bytes. device_release takes NULL. */
bool device_allocate(struct device *device, size_t size, void **buffer, struct error *error);
void device_release(struct device *device, void *buffer);

/* Host memory that is page-locked, so that copies to and from the device need no other. device_release_locked takes
 * NULL. */
bool device_allocate_locked(struct device *device, size_t size, void **buffer, struct error *error);
void device_release_locked(struct device *device, void *buffer);

/* Lay out COUNT planes with the alignment that struct plane asks for; data becomes NULL. Returns their bytes. Rows are
 * EXTRA bytes (a multiple of 128) longer than they must be. */
size_t device_plane_layout(enum sample sample, int width, int height, int count, size_t extra, struct plane *plane);

/* Reserve planes of that layout on the device; release plane->data with device_release. */
bool device_plane_allocate(struct device *device, enum sample sample, int width, int height, int count, size_t extra,
                           struct plane *plane, struct error *error);

/* Queue a copy of SIZE bytes to, from or within the device. The host's side must stay as it is until device_wait. */
bool device_upload(struct device *device, void *to, const void *from, size_t size, struct error *error);
bool device_download(struct device *device, void *to, const void *from, size_t size, struct error *error);
bool device_copy(struct device *device, void *to, const void *from, size_t size, struct error *error);

/* Queue setting SIZE bytes to VALUE. */
bool device_fill(struct device *device, void *buffer, uint8_t value, size_t size, struct error *error);

/* Wait for all queued work and report what failed in it. */
bool device_wait(struct device *device, struct error *error);

/* Note the time on the stream as MARK (0 to DEVICE_MARKS - 1), and the milliseconds between two marks (waits for the
 * later). */
bool device_mark(struct device *device, int mark, struct error *error);
bool device_elapsed(struct device *device, int from, int to, float *milliseconds, struct error *error);

/* Measure them: half a second. Uses marks 0 and 1. */
bool device_peaks(struct device *device, struct device_peaks *peaks, struct error *error);

/* image_split and image_merge on the device, bit for bit the same as on the CPU. The image's samples, aligned to 16
 * bytes, and what LINEAR points to are in device memory. */
bool device_split(struct device *device, const struct image *image, enum alpha alpha, const struct linear *linear,
                  const struct plane *planes, struct error *error);
bool device_merge(struct device *device, const struct plane *planes, enum alpha alpha, const struct linear *linear,
                  const struct image *image, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
