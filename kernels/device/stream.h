/* SPDX-License-Identifier: MIT
 *
 * The device layer: a GPU and its one stream, workspaces, copies, marks. It is what codecs/ uses of a GPU, with
 * kernels/shared/queue.cuh, lanes.cuh and prefix.cuh, so it knows nothing of images. device.h has the rest. */
#ifndef GPUCONV_DEVICE_STREAM_H
#define GPUCONV_DEVICE_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;

/* Points in time on the device's stream. */
enum { DEVICE_MARKS = 16 };

/* Set *COUNT to the number of CUDA devices of this machine. Fails with the reason if there is no driver, an old driver,
 * or no device. */
bool device_count(int *count, struct error *error);

/* Create the context (about a third of a second, unless this process already has it) and a stream on device INDEX. This
 * is for the calling thread; other threads must open the device for themselves. Streams of one device share constant
 * memory. While one stream is between a variant's prepare and the device_wait after its launch, no other may be. */
bool device_open(int index, struct device **device, struct error *error);

/* Wait for what was queued between device_enter and device_leave, and release the device; NULL is allowed. First
 * release its workspaces. */
void device_close(struct device *device);

/* Say, before any other call, that COUNT streams, 1 to 32, will work beside each other. The driver makes and frees the
 * context of one in half the time of that of eight. Nothing changes if CUDA_DEVICE_MAX_CONNECTIONS is set. */
void device_expect_streams(int count);

/* Memory that only grows: of the device, aligned to 512 bytes, or page-locked memory of the host. Copies between the
 * two need no intermediate buffer. It is empty if all is 0 but IS_LOCKED. */
struct workspace {
    uint8_t *bytes;
    size_t size;
    bool is_locked; /* it is the host's */
};

/* Make WORKSPACE at least SIZE bytes long. If it grows, its content is lost, and the call waits for all queued work. On
 * a device that pipelines share, it grows in the stream's order, without waiting: call this between device_enter and
 * device_leave. */
bool device_reserve(struct device *device, struct workspace *workspace, size_t size, struct error *error);

/* As device_reserve, but a workspace that grows gets an eighth more, if there is as much. Codecs use it for the data of
 * files: the next file may be a little longer, and new memory makes all streams of the device wait. */
bool device_reserve_more(struct device *device, struct workspace *workspace, size_t size, struct error *error);

/* Empty WORKSPACE. Kernels that were queued before may still use its memory. */
void device_release(struct device *device, struct workspace *workspace);

/* Queue a copy of SIZE bytes to, from or within the device. Memory on the host must not change until device_wait. */
bool device_upload(struct device *device, void *to, const void *from, size_t size, struct error *error);
bool device_download(struct device *device, void *to, const void *from, size_t size, struct error *error);
bool device_copy(struct device *device, void *to, const void *from, size_t size, struct error *error);

/* Queue the setting of SIZE bytes to VALUE. */
bool device_fill(struct device *device, void *buffer, uint8_t value, size_t size, struct error *error);

/* Wait for all queued work and report its errors. */
bool device_wait(struct device *device, struct error *error);

/* Queue a note of the time as MARK (0 to DEVICE_MARKS - 1) on the stream. device_elapsed waits for the later of two
 * marks and gives the milliseconds between them. */
bool device_mark(struct device *device, int mark, struct error *error);
bool device_elapsed(struct device *device, int from, int to, float *milliseconds, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
