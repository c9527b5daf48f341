/* SPDX-License-Identifier: MIT
 *
 * The C interface of a GPU, for src/pipeline/, src/library/ and src/bench/: the device layer of stream.h, and images
 * and planes in device memory. The files of this folder implement both. A build without CUDA has none of these
 * functions and does not define GPUCONV_CUDA. The message of a failed call ends with CUDA's own words. */
#ifndef GPUCONV_DEVICE_H
#define GPUCONV_DEVICE_H

#include "image/image.h"
#include "kernels/device/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device_info {
    char name[256];
    int capability;      /* compute capability times 10: 90 is 9.0; at most $GPUCONV_MAX_CAPABILITY */
    size_t memory;       /* bytes */
    int multiprocessors; /* SMs */
    int l2_bytes;
    size_t block_shared; /* bytes of shared memory that a block may have */
    /* The next two describe the code that the driver loaded. Only device_open sets them. */
    int code_capability; /* what it was compiled for, at most `capability` */
    bool code_has_wgmma; /* does it have the matrix products of warpgroups? sm_90a has them, PTX for 9.0 does not */
};

/* Measured multiply-adds per second. */
struct device_peaks {
    double fma;    /* float */
    double dp4a;   /* four products of bytes per instruction */
    double tensor; /* bytes, on the tensor cores (mma.sync) */
};

/* May this machine have a CUDA device? It looks for the files of NVIDIA's drivers, because to ask CUDA takes long. */
bool device_may_exist(void);

/* Describe device INDEX in INFO. */
bool device_describe(int index, struct device_info *info, struct error *error);

/* The newest CUDA version that the driver supports, as 1000 * major + 10 * minor, or 0 if there is no driver. */
int device_driver_version(void);

/* Say that device_reset, or the end of the process, will release everything on the device. From now on, the releases
 * and device_close do nothing on the device: buffer by buffer, they would take longer than a batch of photos. */
void device_abandon(struct device *device);

/* Release the context of device INDEX, which must not be open. */
void device_reset(int index);

/* The description of the open device. */
const struct device_info *device_get_info(const struct device *device);

/* Lay out COUNT planes with the alignment that struct plane requires. data becomes NULL. Returns the bytes of all
 * planes. Rows are EXTRA bytes longer than necessary; EXTRA is a multiple of 128. */
size_t device_plane_layout(enum sample sample, int width, int height, int count, size_t extra, struct plane *plane);

/* Measure the peaks, which takes half a second. Uses marks 0 and 1. */
bool device_peaks(struct device *device, struct device_peaks *peaks, struct error *error);

/* image_orient and image_convert_samples on the device, in one step: copy FROM to TO and apply ORIENTATION (EXIF's, 1
 * to 8). TO has the sides of the result and its own bits per sample. The samples of both are in device memory. */
bool device_orient(struct device *device, const struct image *from, int orientation, const struct image *to,
                   struct error *error);

/* image_is_opaque on the device, where the samples are. It waits for them. */
bool device_is_opaque(struct device *device, const struct image *image, bool *is_opaque, struct error *error);

/* image_split and image_merge on the device. They give the same bytes as on the CPU. The image's samples, aligned to 16
 * bytes, and the tables of LINEAR are in device memory. */
bool device_split(struct device *device, const struct image *image, enum alpha alpha, const struct linear *linear,
                  const struct plane *planes, struct error *error);
bool device_merge(struct device *device, const struct plane *planes, enum alpha alpha, const struct linear *linear,
                  const struct image *image, struct error *error);

/* image_blend on the device, for images without padding. The samples and LEVELS are in device memory. */
bool device_blend(struct device *device, const struct image *from, const void *levels, const struct image *to,
                  struct error *error);

/* ---- On a caller's stream ---- */

/* As device_open, but the calling thread's current device is afterwards what it was. */
bool device_open_shared(int index, struct device **device, struct error *error);

/* Let the work of the calling thread be queued on *STREAM, a cudaStream_t, or on the device's own if STREAM is NULL,
 * until device_leave. It begins after the work that was queued before through this device, on any stream; the host does
 * not wait. Other threads may not use the device meanwhile. Fails if a CUDA graph captures the stream, because it would
 * not hold what orders the work. */
bool device_enter(struct device *device, void *const *stream, struct error *error);

/* Work on a caller's stream may go to two streams. Let the device's own stream, number 1, begin after what is queued on
 * the caller's, number 0; choose where the next work is queued; and let what is queued on the caller's stream later
 * begin after both. Fork and join while number 0 is chosen. Memory that is reserved on a stream is for that stream. */
bool device_fork(struct device *device, struct error *error);
void device_use_stream(struct device *device, int number);
bool device_join(struct device *device, struct error *error);

/* End this. The calling thread's current device is again what it was before device_enter. */
bool device_leave(struct device *device, struct error *error);

/* Copies of what a variant has uploaded for one plan, in device memory. */
struct device_taps;
struct plan;
typedef bool device_launcher(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error);

/* Call PREPARE, a variant's, for PLAN, and keep what it uploads. Call this between device_enter and device_leave.
 * Release *TAPS with device_free_taps, which takes NULL, too. */
bool device_keep_taps(struct device *device, bool (*prepare)(struct plan *, struct device *, struct error *),
                      struct plan *plan, struct device_taps **taps, struct error *error);
void device_free_taps(struct device *device, struct device_taps *taps);

/* Call LAUNCH, a variant's, for PLAN. Its kernels read TAPS, after all kernels on this GPU that read others. Meanwhile,
 * other threads of the host wait in this call; that is some microseconds. */
bool device_launch(struct device *device, const struct device_taps *taps, device_launcher *launch,
                   const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error);

/* Steps that change each pixel by itself, one after the other in one launch: what the device keeps of each. */
enum { POINTS_MAX = 8 };
struct device_points {
    const struct device_taps *taps[POINTS_MAX];
    int count;
    bool is_flat; /* in all of them, all samples of an image go through one table */
};

/* Queue POINTS for planes; every CHANNELS of them are the pixels of an image. (kernels/point.cu) */
bool device_change_planes(struct device *device, const struct device_points *points, int channels,
                          const struct plane *in, const struct plane *out, struct error *error);

/* Queue POINTS for images as device_split takes them: from FROM to TO, which may have the same samples; on the way to
 * planes; or on the way from planes. There must be at least one step. The planes have the depth of the image, and a
 * step that reads or changes alpha needs the plane of alpha. */
bool device_change_image(struct device *device, const struct device_points *points, const struct image *from,
                         const struct image *to, struct error *error);
bool device_split_points(struct device *device, const struct device_points *points, const struct image *image,
                         const struct plane *planes, struct error *error);
bool device_merge_points(struct device *device, const struct device_points *points, const struct plane *planes,
                         const struct image *image, struct error *error);

/* image_copy on the device, where the samples of both are. Where that would return false, the byte at IS_LOST in device
 * memory, which may be NULL, becomes 1. */
bool device_copy_samples(struct device *device, const struct image *from, const struct image *to, uint8_t *is_lost,
                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
