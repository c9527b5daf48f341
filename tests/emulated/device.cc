/* SPDX-License-Identifier: MIT
 *
 * The whole device layer and device.h on the emulated GPU (codecs/emulated), for libgpuconv. */
#include "base/round.h"
#include "kernels/shared/conv.cuh"

#include <list>
#include <pthread.h>
#include <string>

namespace
{
/* What a variant uploads to a symbol in constant memory. */
struct kept_words {
    const void *symbol;
    std::string bytes;
};
} // namespace

struct device_taps {
    std::list<kept_words> words;
    struct workspace table;
};

struct device {
    struct workspace table, scratch;
    std::list<emulated_texture> textures;
    struct device_taps *keeping;    /* receives what a variant uploads; NULL if constant memory and the table do */
    const struct device_taps *taps; /* that the next launch reads; NULL if it reads the device's own */
};

static pthread_mutex_t readers = PTHREAD_MUTEX_INITIALIZER; /* the readers of constant memory */

bool upload_words(struct device *device, const void *symbol, const void *words, int count, struct error *)
{
    if (device->keeping != NULL)
        device->keeping->words.push_back({symbol, std::string((const char *)words, (size_t)count * 4)});
    else
        memcpy((void *)symbol, words, (size_t)count * 4);
    return true;
}

bool upload_table(struct device *device, const void *words, size_t bytes, struct error *error)
{
    struct workspace *table = device->keeping != NULL ? &device->keeping->table : &device->table;
    return device_reserve(device, table, bytes, error) && device_upload(device, table->bytes, words, bytes, error);
}

const void *device_table(const struct device *device)
{
    return device->taps != NULL ? device->taps->table.bytes : device->table.bytes;
}

const void *kept_table(const struct device_taps *taps)
{
    return taps->table.bytes;
}

bool device_scratch(struct device *device, size_t bytes, void **scratch, struct error *error)
{
    const bool done = device_reserve(device, &device->scratch, bytes, error);
    *scratch = device->scratch.bytes;
    return done;
}

bool upload_taps(const struct plan *plan, struct device *device, const void *taps, struct error *error)
{
    const struct filter *filter = plan->filter;
    float values[max_taps];
    for (int i = 0; i < filter->width * filter->height; i++)
        values[i] = (float)(filter->taps[i] / (plan->sample == SAMPLE_U8 ? 1 : filter->scale));
    return upload_words(device, taps, values, filter->width * filter->height, error);
}

bool device_texture(struct device *device, const struct plane *plane, int index, enum border border,
                    cudaTextureObject_t *texture, struct error *)
{
    device->textures.push_back({(const unsigned char *)plane->data + (size_t)index * plane->plane_bytes,
                                plane->row_bytes, plane->width, plane->height, border == BORDER_ZERO});
    *texture = &device->textures.back();
    return true;
}

bool device_may_exist()
{
    return true;
}

bool device_count(int *count, struct error *)
{
    *count = 1;
    return true;
}

int device_driver_version()
{
    return 0;
}

/* As __CUDA_ARCH__ says. */
bool device_describe(int, struct device_info *info, struct error *)
{
    *info = {};
    strcpy(info->name, "emulated");
    info->capability = info->code_capability = __CUDA_ARCH__ / 10;
    info->memory = (size_t)1 << 32;
    info->multiprocessors = 2;
    info->l2_bytes = 1 << 20;
    info->block_shared = EMULATED_SHARED;
    return true;
}

const struct device_info *device_get_info(const struct device *)
{
    static struct device_info info;
    device_describe(0, &info, NULL);
    return &info;
}

void device_expect_streams(int)
{
}

bool device_open(int, struct device **device, struct error *)
{
    *device = new struct device();
    return true;
}

bool device_open_shared(int index, struct device **device, struct error *error)
{
    return device_open(index, device, error);
}

void device_close(struct device *device)
{
    if (device == NULL)
        return;
    device_release(device, &device->table);
    device_release(device, &device->scratch);
    delete device;
}

void device_abandon(struct device *)
{
}

void device_reset(int)
{
}

bool device_enter(struct device *, void *const *, struct error *)
{
    return true;
}

bool device_fork(struct device *, struct error *)
{
    return true;
}

void device_use_stream(struct device *, int)
{
}

bool device_join(struct device *, struct error *)
{
    return true;
}

bool device_leave(struct device *, struct error *)
{
    return true;
}

bool device_keep_taps(struct device *device, bool (*prepare)(struct plan *, struct device *, struct error *),
                      struct plan *plan, struct device_taps **taps, struct error *error)
{
    *taps = device->keeping = new struct device_taps();
    const bool done = prepare(plan, device, error);
    device->keeping = NULL;
    return done;
}

void device_free_taps(struct device *device, struct device_taps *taps)
{
    if (taps == NULL)
        return;
    device_release(device, &taps->table);
    delete taps;
}

bool device_launch(struct device *device, const struct device_taps *taps, device_launcher *launch,
                   const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error)
{
    pthread_mutex_lock(&readers);
    for (const kept_words &words : taps->words)
        memcpy((void *)words.symbol, words.bytes.data(), words.bytes.size());
    device->taps = taps;
    const bool done = launch(plan, device, in, out, error);
    device->taps = NULL;
    pthread_mutex_unlock(&readers);
    return done;
}

size_t device_plane_layout(enum sample sample, int width, int height, int count, size_t extra, struct plane *plane)
{
    *plane = {};
    plane->sample = sample;
    plane->width = width;
    plane->height = height;
    plane->count = count;
    plane->row_bytes = round_up((size_t)width * sample_bytes(sample), 128) + extra;
    plane->plane_bytes = round_up(plane->row_bytes * (size_t)height, 512);
    return plane->plane_bytes * (size_t)count;
}

bool device_peaks(struct device *, struct device_peaks *, struct error *error)
{
    return error_set(error, ERROR_WORK, "the emulated GPU has no peaks");
}
