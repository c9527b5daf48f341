/* SPDX-License-Identifier: MIT
 *
 * The implementation of device.h, and the functions that only variants need: the device's stream, uploads to constant
 * memory, textures. */
#include "base/round.h"
#include "kernels/device/driver.h"
#include "kernels/shared/conv.cuh"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{
/* A texture object, and the planes that it reads. */
struct texture {
    const void *data;
    size_t row_bytes;
    int width, height;
    enum sample sample;
    bool zero;
    cudaTextureObject_t object; /* the last member, see device_texture */
};

/* Enough for the 128 buffers of 4 planes that the benchmark rotates. */
constexpr int max_textures = 512;

constexpr size_t row_alignment = 128; /* bytes: a full cache line, and four times the alignment of textures */
constexpr size_t base_alignment = 512;

/* The chip that this file's code was compiled for, as __CUDA_ARCH__: 900 for 9.0. The driver of a newer chip may have
 * loaded code for an older one. All files are compiled for the same chips, so all have the same code loaded. */
struct code {
    int arch;
    bool has_wgmma;
};

__device__ struct code loaded_code = {
#ifdef __CUDA_ARCH__
    __CUDA_ARCH__,
#endif
#if __CUDA_ARCH_FEAT_SM90_ALL
    true,
#endif
};
} // namespace

struct device {
    int index;
    cudaStream_t stream;
    struct device_info info;
    cudaEvent_t marks[DEVICE_MARKS];
    struct texture textures[max_textures];
    int next_texture; /* the oldest, to be replaced next */
    struct workspace table, scratch;
    bool is_abandoned; /* see device_abandon */
    bool is_shared;    /* see device_open_shared */

    /* For device_enter. */
    int previous; /* device of the calling thread */
    cudaStream_t own_stream, callers_stream;
    cudaEvent_t idle;               /* the end of what was queued last; NULL until then */
    struct device_taps *keeping;    /* receives what a variant uploads; NULL if constant memory and the table do */
    const struct device_taps *taps; /* that the next launch reads; NULL if it reads the device's own */
};

/* What a variant has uploaded to a symbol in constant memory. */
struct kept_words {
    const void *symbol;
    struct workspace memory;
};

struct device_taps {
    struct kept_words words[2];
    int count;
    struct workspace table;
    uint64_t serial; /* no others have it */
};

/* Who reads the constant memory of each GPU. It is one of a process, as constant memory is. */
static pthread_mutex_t readers_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_serial;
static struct reader {
    uint64_t serial;  /* the number of the taps that are there, or 0 if it is not known */
    cudaEvent_t done; /* the last kernel that reads them has ended */
} readers[64];

/* Say why the driver cannot run the program, which STATUS says: it is too old, or has no code for the thread's GPU. */
static bool refuse_driver(cudaError_t status, struct error *error)
{
    struct driver driver = {" ", device_driver_version(), CUDART_VERSION, 0, status == cudaErrorUnsupportedPtxVersion};
    int gpu;
    cudaDeviceProp properties;
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    if (!file || fscanf(file, "%30s", driver.release + 1) != 1)
        driver.release[0] = '\0';
    if (file)
        fclose(file);
    if (status != cudaErrorInsufficientDriver && cudaGetDevice(&gpu) == cudaSuccess &&
        cudaGetDeviceProperties(&properties, gpu) == cudaSuccess)
        driver.capability = 10 * properties.major + properties.minor;
    cudaGetLastError();
    return driver_failure(&driver, error);
}

bool cuda_failure(cudaError_t status, const char *call, struct error *error)
{
    cudaGetLastError(); /* clear the error, or the next call reports it again */
    if (status == cudaErrorMemoryAllocation)
        return error_set(
            error, ERROR_GPU,
            "the GPU does not have enough free memory; close other programs that use it, or give --backend cpu (%s)",
            cudaGetErrorString(status));
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
        return refuse_driver(status, error);
    return error_set(error, ERROR_GPU, "the GPU failed in %.*s: %s; use --backend cpu to run without it",
                     (int)strcspn(call, "("), call, cudaGetErrorString(status));
}

cudaStream_t device_stream(const struct device *device)
{
    return device->stream;
}

int device_driver_version(void)
{
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return version;
}

bool device_may_exist(void)
{
    /* On a PC, in WSL, and on Tegra. */
    static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"};
    for (const char *file : files)
        if (access(file, F_OK) == 0)
            return true;
    return false;
}

bool device_count(int *count, struct error *error)
{
    *count = 0;
    const cudaError_t status = cudaGetDeviceCount(count);
    if (status == cudaSuccess && *count > 0)
        return true;
    *count = 0;
    cudaGetLastError();
    /* Without a driver the runtime answers that the driver is insufficient, as it does for one that is too old. */
    if (status == cudaErrorInsufficientDriver || device_driver_version() == 0)
        return refuse_driver(cudaErrorInsufficientDriver, error);
    if (status == cudaErrorNoDevice || status == cudaSuccess)
        return error_set(error, ERROR_GPU, "the NVIDIA driver finds no GPU");
    return error_set(error, ERROR_GPU, "CUDA could not be initialised: %s", cudaGetErrorString(status));
}

/* Make the device look as if it had at most $GPUCONV_MAX_CAPABILITY, for tests of what older chips get. */
static bool limit_capability(struct device_info *info, struct error *error)
{
    const char *text = getenv("GPUCONV_MAX_CAPABILITY");
    if (!text || !text[0])
        return true;
    char *end;
    const long max = strtol(text, &end, 10);
    if (*end || max < 10 || max > 999)
        return error_set(error, ERROR_USAGE,
                         "GPUCONV_MAX_CAPABILITY is \"%s\", which is not a compute capability times 10; unset it, or "
                         "give a number such as 75",
                         text);
    if (info->capability <= max)
        return true;
    info->capability = (int)max;
    /* The minimum of its generation. (CUDA C++ Programming Guide, technical specifications per compute capability.) */
    const size_t shared = (size_t)(max < 80 ? 64 : 99) * 1024;
    info->block_shared = info->block_shared < shared ? info->block_shared : shared;
    return true;
}

bool device_describe(int index, struct device_info *info, struct error *error)
{
    cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, index), error);
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->capability = 10 * properties.major + properties.minor;
    info->memory = properties.totalGlobalMem;
    info->multiprocessors = properties.multiProcessorCount;
    info->l2_bytes = properties.l2CacheSize;
    info->block_shared = properties.sharedMemPerBlockOptin;
    return limit_capability(info, error);
}

/* Ask the code that the driver loaded what it was compiled for. */
static bool describe_code(struct device_info *info, struct error *error)
{
    struct code code;
    CUDA_TRY(cudaMemcpyFromSymbol(&code, loaded_code, sizeof code), error);
    info->code_capability = code.arch / 10 < info->capability ? code.arch / 10 : info->capability;
    info->code_has_wgmma = code.has_wgmma && info->code_capability == 90;
    return true;
}

static bool device_start(struct device *device, struct error *error)
{
    CUDA_TRY(cudaSetDevice(device->index), error);
    if (!device_describe(device->index, &device->info, error) || !describe_code(&device->info, error))
        return false;
    CUDA_TRY(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), error);
    for (int i = 0; i < DEVICE_MARKS; i++)
        CUDA_TRY(cudaEventCreate(&device->marks[i]), error);
    return true;
}

bool device_open(int index, struct device **opened, struct error *error)
{
    int count = 0;
    *opened = NULL;
    if (!device_count(&count, error))
        return false;
    if (index < 0 || index >= count)
        return error_set(error, ERROR_NO_GPU, "there is no CUDA device %d; gpuconv --devices lists all %d", index,
                         count);
    struct device *device = (struct device *)calloc(1, sizeof *device);
    if (!device)
        return error_no_memory(error, "GPU %d", index);
    device->index = index;
    if (!device_start(device, error)) {
        device_close(device);
        return false;
    }
    *opened = device;
    return true;
}

/* Destroy all textures. This must happen before one of their buffers is released. */
static void forget_textures(struct device *device)
{
    for (int i = 0; i < max_textures; i++)
        if (device->textures[i].object)
            cudaDestroyTextureObject(device->textures[i].object);
    memset(device->textures, 0, sizeof device->textures);
}

void device_close(struct device *device)
{
    if (!device)
        return;
    device_release(device, &device->table);
    device_release(device, &device->scratch);
    if (!device->is_abandoned) {
        forget_textures(device);
        for (int i = 0; i < DEVICE_MARKS; i++)
            if (device->marks[i])
                cudaEventDestroy(device->marks[i]);
        if (device->idle) {
            cudaStreamWaitEvent(device->stream, device->idle, 0);
            cudaStreamSynchronize(device->stream);
            cudaEventDestroy(device->idle);
        }
        if (device->stream)
            cudaStreamDestroy(device->stream);
    }
    free(device);
}

void device_abandon(struct device *device)
{
    device->is_abandoned = true;
}

void device_expect_streams(int count)
{
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", text, 0);
}

void device_reset(int index)
{
    if (cudaSetDevice(index) != cudaSuccess || cudaDeviceReset() != cudaSuccess)
        cudaGetLastError();
}

const struct device_info *device_get_info(const struct device *device)
{
    return &device->info;
}

void device_release(struct device *device, struct workspace *workspace)
{
    void *const memory = workspace->bytes;
    workspace->bytes = NULL;
    workspace->size = 0;
    if (!memory || device->is_abandoned)
        return;
    if (workspace->is_locked) {
        cudaHostUnregister(memory);
        free(memory);
        return;
    }
    forget_textures(device);
    if (!device->is_shared) {
        cudaFree(memory); /* waits for the kernels that use it */
        return;
    }
    int previous = device->index; /* outside device_enter, the thread may use another GPU */
    cudaGetDevice(&previous);
    cudaSetDevice(device->index);
    if (device->idle) /* the last ones may be on a caller's stream */
        cudaStreamWaitEvent(device->stream, device->idle, 0);
    cudaFreeAsync(memory, device->stream);
    if (previous != device->index)
        cudaSetDevice(previous);
}

/* Pages that exist are locked in a fifth of the time that cudaMallocHost takes, because that makes them while no other
 * thread can use the driver; large ones in a seventh. (16 times 64 MiB by 16 threads, beside an H200: 507, 106, 69 ms.)
 * No two blocks share a page: all are aligned to the largest one that a Linux system has by default. */
static bool allocate_locked(void **memory, size_t size, struct error *error)
{
    constexpr size_t page = 64 << 10, large_page = 2 << 20, smallest_page = 4 << 10;
    const size_t whole = round_up(size, size < large_page ? page : large_page);
    *memory = aligned_alloc(size < large_page ? page : large_page, whole);
    if (!*memory)
        return error_no_memory(error, "%zu page-locked bytes", whole);
    if (size >= large_page)
        (void)madvise(*memory, whole, MADV_HUGEPAGE); /* the system may refuse */
    for (size_t i = 0; i < whole; i += smallest_page)
        ((volatile uint8_t *)*memory)[i] = 0;
    const cudaError_t status = cudaHostRegister(*memory, whole, cudaHostRegisterDefault);
    if (status == cudaSuccess)
        return true;
    free(*memory);
    return cuda_failure(status, "cudaHostRegister", error);
}

static bool allocate(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    void *memory;
    if (workspace->is_locked) {
        if (!allocate_locked(&memory, size, error))
            return false;
    } else if (device->is_shared) {
        CUDA_TRY(cudaMallocAsync(&memory, size, device->stream), error);
    } else {
        CUDA_TRY(cudaMalloc(&memory, size), error);
    }
    workspace->bytes = (uint8_t *)memory;
    workspace->size = size;
    return true;
}

bool device_reserve(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    if (size <= workspace->size)
        return true;
    if (workspace->bytes && !device->is_shared && !device_wait(device, error))
        return false;
    device_release(device, workspace);
    return allocate(device, workspace, size, error);
}

bool device_reserve_more(struct device *device, struct workspace *workspace, size_t size, struct error *error)
{
    return size <= workspace->size || device_reserve(device, workspace, size + size / 8, NULL) ||
           device_reserve(device, workspace, size, error);
}

size_t device_plane_layout(enum sample sample, int width, int height, int count, size_t extra, struct plane *plane)
{
    plane->sample = sample;
    plane->width = width;
    plane->height = height;
    plane->count = count;
    plane->row_bytes = round_up((size_t)width * sample_bytes(sample), row_alignment) + extra;
    plane->plane_bytes = round_up(plane->row_bytes * (size_t)height, base_alignment);
    plane->data = NULL;
    return plane->plane_bytes * (size_t)count;
}

bool device_upload(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    CUDA_TRY(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, device->stream), error);
    return true;
}

bool device_download(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    CUDA_TRY(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, device->stream), error);
    return true;
}

bool device_copy(struct device *device, void *to, const void *from, size_t size, struct error *error)
{
    CUDA_TRY(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, device->stream), error);
    return true;
}

bool device_fill(struct device *device, void *buffer, uint8_t value, size_t size, struct error *error)
{
    CUDA_TRY(cudaMemsetAsync(buffer, value, size, device->stream), error);
    return true;
}

bool device_wait(struct device *device, struct error *error)
{
    CUDA_TRY(cudaStreamSynchronize(device->stream), error);
    return true;
}

bool device_mark(struct device *device, int mark, struct error *error)
{
    CUDA_TRY(cudaEventRecord(device->marks[mark], device->stream), error);
    return true;
}

bool device_elapsed(struct device *device, int from, int to, float *milliseconds, struct error *error)
{
    CUDA_TRY(cudaEventSynchronize(device->marks[to]), error);
    CUDA_TRY(cudaEventElapsedTime(milliseconds, device->marks[from], device->marks[to]), error);
    return true;
}

/* Record an upload of BYTES of words to SYMBOL, instead of doing it. */
static bool keep_words(struct device *device, const void *symbol, const void *words, size_t bytes, struct error *error)
{
    struct kept_words *kept = &device->keeping->words[device->keeping->count++];
    kept->symbol = symbol;
    return device_reserve(device, &kept->memory, bytes, error) &&
           device_upload(device, kept->memory.bytes, words, bytes, error);
}

bool upload_words(struct device *device, const void *symbol, const void *words, int count, struct error *error)
{
    if (device->keeping)
        return keep_words(device, symbol, words, (size_t)count * 4, error);
    /* The source is pageable: the call returns once it has been read, so it may be a local array. */
    CUDA_TRY(cudaMemcpyToSymbolAsync(symbol, words, (size_t)count * 4, 0, cudaMemcpyHostToDevice, device->stream),
             error);
    return true;
}

bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error)
{
    struct workspace *table = device->keeping ? &device->keeping->table : &device->table;
    return device_reserve(device, table, bytes, error) && device_upload(device, table->bytes, words, bytes, error);
}

const void *device_table(const struct device *device)
{
    return device->taps ? device->taps->table.bytes : device->table.bytes;
}

const void *kept_table(const struct device_taps *taps)
{
    return taps->table.bytes;
}

bool device_scratch(struct device *device, size_t bytes, void **scratch, struct error *error)
{
    if (!device_reserve(device, &device->scratch, bytes, error))
        return false;
    *scratch = device->scratch.bytes;
    return true;
}

bool upload_taps(const struct plan *plan, struct device *device, const void *taps, struct error *error)
{
    const struct filter *filter = plan->filter;
    const int count = filter->width * filter->height;
    const double divisor = plan->sample == SAMPLE_U8 ? 1 : filter->scale;
    float values[max_taps];
    for (int i = 0; i < count; i++)
        values[i] = (float)(filter->taps[i] / divisor);
    return upload_words(device, taps, values, count, error);
}

bool device_texture(struct device *device, const struct plane *plane, int index, enum border border,
                    cudaTextureObject_t *texture, struct error *error)
{
    struct texture wanted;
    memset(&wanted, 0, sizeof wanted); /* also the padding */
    wanted.data = (const char *)plane->data + (size_t)index * plane->plane_bytes;
    wanted.row_bytes = plane->row_bytes;
    wanted.width = plane->width;
    wanted.height = plane->height;
    wanted.sample = plane->sample;
    wanted.zero = border == BORDER_ZERO;
    for (int i = 0; i < max_textures; i++) {
        const struct texture *have = &device->textures[i];
        if (have->object && memcmp(have, &wanted, offsetof(struct texture, object)) == 0) {
            *texture = have->object;
            return true;
        }
    }

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = const_cast<void *>(wanted.data);
    resource.res.pitch2D.desc =
        plane->sample == SAMPLE_U8 ? cudaCreateChannelDesc<unsigned char>() : cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = (size_t)plane->width;
    resource.res.pitch2D.height = (size_t)plane->height;
    resource.res.pitch2D.pitchInBytes = plane->row_bytes;
    cudaTextureDesc description = {};
    description.addressMode[0] = wanted.zero ? cudaAddressModeBorder : cudaAddressModeClamp;
    description.addressMode[1] = description.addressMode[0];
    description.filterMode = cudaFilterModePoint;
    description.readMode = cudaReadModeElementType;

    struct texture *slot = &device->textures[device->next_texture];
    if (slot->object) {
        /* Queued kernels may still read through it. */
        CUDA_TRY(cudaStreamSynchronize(device->stream), error);
        CUDA_TRY(cudaDestroyTextureObject(slot->object), error);
        slot->object = 0;
    }
    CUDA_TRY(cudaCreateTextureObject(&wanted.object, &resource, &description, NULL), error);
    device->next_texture = (device->next_texture + 1) % max_textures;
    *slot = wanted;
    *texture = wanted.object;
    return true;
}

/* ---- On a caller's stream ---- */

bool device_open_shared(int index, struct device **device, struct error *error)
{
    int previous = index;
    cudaGetDevice(&previous);
    const bool done = device_open(index, device, error);
    if (done)
        (*device)->is_shared = true;
    if (previous != index)
        cudaSetDevice(previous);
    cudaGetLastError(); /* where there is no GPU, these have failed, too */
    return done;
}

/* Begin on STREAM; the current device is the right one. */
static bool begin_on_stream(struct device *device, cudaStream_t stream, struct error *error)
{
    cudaStreamCaptureStatus status;
    CUDA_TRY(cudaStreamIsCapturing(stream, &status), error);
    if (status != cudaStreamCaptureStatusNone)
        return error_set(error, ERROR_USAGE,
                         "a CUDA graph captures the stream, but constant memory is shared with work outside the graph; "
                         "filter before or after the capture");
    if (device->idle)
        CUDA_TRY(cudaStreamWaitEvent(stream, device->idle, 0), error);
    else
        CUDA_TRY(cudaEventCreateWithFlags(&device->idle, cudaEventDisableTiming), error);
    device->own_stream = device->stream;
    device->stream = device->callers_stream = stream;
    return true;
}

bool device_enter(struct device *device, void *const *stream, struct error *error)
{
    CUDA_TRY(cudaGetDevice(&device->previous), error);
    CUDA_TRY(cudaSetDevice(device->index), error);
    if (begin_on_stream(device, stream ? (cudaStream_t)*stream : device->stream, error))
        return true;
    cudaSetDevice(device->previous);
    return false;
}

/* Let TO wait for what is queued on FROM. */
static bool follow(struct device *device, cudaStream_t from, cudaStream_t to, struct error *error)
{
    CUDA_TRY(cudaEventRecord(device->idle, from), error);
    CUDA_TRY(cudaStreamWaitEvent(to, device->idle, 0), error);
    return true;
}

bool device_fork(struct device *device, struct error *error)
{
    return follow(device, device->callers_stream, device->own_stream, error);
}

void device_use_stream(struct device *device, int number)
{
    device->stream = number == 0 ? device->callers_stream : device->own_stream;
}

bool device_join(struct device *device, struct error *error)
{
    return follow(device, device->own_stream, device->callers_stream, error);
}

bool device_leave(struct device *device, struct error *error)
{
    const cudaError_t recorded = cudaEventRecord(device->idle, device->stream);
    device->stream = device->own_stream;
    cudaSetDevice(device->previous);
    CUDA_TRY(recorded, error);
    return true;
}

bool device_keep_taps(struct device *device, bool (*prepare)(struct plan *, struct device *, struct error *),
                      struct plan *plan, struct device_taps **taps, struct error *error)
{
    *taps = device->keeping = (struct device_taps *)calloc(1, sizeof **taps);
    if (!*taps)
        return error_no_memory(error, "the taps on a GPU");
    pthread_mutex_lock(&readers_mutex);
    device->keeping->serial = ++last_serial;
    pthread_mutex_unlock(&readers_mutex);
    const bool done = prepare(plan, device, error);
    device->keeping = NULL;
    return done;
}

void device_free_taps(struct device *device, struct device_taps *taps)
{
    if (!taps)
        return;
    for (int i = 0; i < taps->count; i++)
        device_release(device, &taps->words[i].memory);
    device_release(device, &taps->table);
    free(taps);
}

/* Queue the copy of TAPS to constant memory, unless they are there. */
static bool copy_taps(struct device *device, const struct device_taps *taps, struct reader *reader, struct error *error)
{
    if (reader->done)
        CUDA_TRY(cudaStreamWaitEvent(device->stream, reader->done, 0), error);
    else
        CUDA_TRY(cudaEventCreateWithFlags(&reader->done, cudaEventDisableTiming), error);
    if (reader->serial == taps->serial)
        return true;
    reader->serial = 0;
    for (int i = 0; i < taps->count; i++)
        CUDA_TRY(cudaMemcpyToSymbolAsync(taps->words[i].symbol, taps->words[i].memory.bytes, taps->words[i].memory.size,
                                         0, cudaMemcpyDeviceToDevice, device->stream),
                 error);
    reader->serial = taps->serial;
    return true;
}

bool device_launch(struct device *device, const struct device_taps *taps, device_launcher *launch,
                   const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error)
{
    const bool is_reader = taps->count > 0;
    cudaError_t recorded = cudaSuccess;
    if (is_reader && device->index >= (int)(sizeof readers / sizeof *readers))
        return error_set(error, ERROR_NO_GPU, "GPU %d is not one of the first 64; use another GPU", device->index);
    struct reader *reader = is_reader ? &readers[device->index] : NULL;
    if (is_reader)
        pthread_mutex_lock(&readers_mutex);
    device->taps = taps;
    const bool done = (!is_reader || copy_taps(device, taps, reader, error)) && launch(plan, device, in, out, error);
    device->taps = NULL;
    if (is_reader) {
        if (reader->done) /* also where the launch failed after some kernels */
            recorded = cudaEventRecord(reader->done, device->stream);
        pthread_mutex_unlock(&readers_mutex);
    }
    CUDA_TRY(recorded, done ? error : NULL);
    return done;
}
