/* SPDX-License-Identifier: MIT
 *
 * Random calls of the library: check_library GPUCONV CALLS cpu|gpu FOLDER...
 *
 * gpuconv_apply is compared with the command line. The samples are
 * written as a PAM, which gpuconv filters. The library filters the same samples in views: interleaved, planar,
 * transposed, padded, cropped, at the end of a page, in place. The result must be the same bytes, and no other byte may
 * change. With `gpu`, contexts use a GPU, and most views are in its memory: managed memory, which the host sees too,
 * or, with the stub in place of a GPU, any. Each GPU has a thread of its own, and these run at the same time.
 *
 * The functions for many files are compared with those for one: encoded pictures, also turned, progressive and damaged
 * ones, and the files in the folders, go from and to such views. */
#include "base/random.h"
#include "tests/lib/program.h"

#include <gpuconv.h>

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IMAGES = 40,     /* with one filter and one set of options, so that one process filters them */
    SIDE_MAX = 90,   /* most are smaller */
    ARENA = 1 << 22, /* bytes, with a page before and after it that nobody may touch */
    PATH = 256,
    FILES = 8,            /* files of a call */
    SLOT = ARENA / FILES, /* for the view of each */
    FOREIGN_MAX = 2048,
    FILE_MAX = 1 << 16, /* files of the folders, and their bytes */
    GPUS_MAX = 8,
};

/* An image: height x width x channels samples. */
struct picture {
    int width, height, channels;
    enum gpuconv_type type;
    uint8_t *samples;
};

static size_t sample_size(const struct picture *picture)
{
    return picture->type == GPUCONV_UINT8 ? 1 : 2;
}

static size_t picture_size(const struct picture *picture)
{
    return (size_t)picture->width * (size_t)picture->height * (size_t)picture->channels * sample_size(picture);
}

/* ---- Memory ---- */

/* Memory between two pages that cannot be touched. */
static uint8_t *open_arena(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *all = mmap(NULL, ARENA + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, ARENA, PROT_READ | PROT_WRITE) != 0)
        fail("there is not enough memory");
    return all + page;
}

#ifdef GPUCONV_CUDA_RUNTIME

/* From cuda_runtime_api.h, whose folder only nvcc knows. */
int cudaSetDevice(int device);
int cudaMallocManaged(void **memory, size_t size, unsigned flags);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(void **stream);

static void choose_device(int device)
{
    if (cudaSetDevice(device) != 0)
        fail("GPU %d cannot be chosen", device);
}

static uint8_t *open_device_arena(void)
{
    void *arena;
    if (cudaMallocManaged(&arena, ARENA, 1) != 0)
        fail("there is no managed memory");
    return arena;
}

static void *open_stream(void)
{
    void *stream;
    if (cudaStreamCreate(&stream) != 0)
        fail("there is no stream");
    return stream;
}

/* Wait for all work. */
static void wait_for_device(void)
{
    if (cudaDeviceSynchronize() != 0)
        fail("a kernel failed");
}

#else

static void choose_device(int device)
{
    (void)device;
}

static uint8_t *open_device_arena(void)
{
    return open_arena();
}

static void *open_stream(void)
{
    return NULL;
}

static void wait_for_device(void)
{
}

#endif

/* ---- Pictures ---- */

static void make_picture(uint64_t *state, struct picture *picture)
{
    const int max = random_between(state, 0, 3) == 0 ? SIDE_MAX : 20;
    picture->width = random_between(state, 1, max);
    picture->height = random_between(state, 1, max);
    picture->channels = random_between(state, 1, 4);
    picture->type = random_between(state, 0, 1) ? GPUCONV_UINT16 : GPUCONV_UINT8;
    const size_t size = picture_size(picture);
    const int kind = random_between(state, 0, 3);
    picture->samples = allocate(size);
    for (size_t i = 0; i < size; i++)
        picture->samples[i] = kind == 0   ? (uint8_t)(i / 3)
                              : kind == 1 ? 255 * (random_next(state) & 1)
                                          : (uint8_t)random_next(state);
    /* An opaque image takes another way. */
    const size_t pixel = (size_t)picture->channels * sample_size(picture);
    for (size_t i = 0; kind == 2 && picture->channels % 2 == 0 && i < size; i += pixel)
        memset(picture->samples + i + pixel - sample_size(picture), 255, sample_size(picture));
}

/* The other byte order, for samples of 16 bits: a PAM is big-endian. */
static void swap_bytes(const struct picture *picture, uint8_t *samples)
{
    for (size_t i = 0; picture->type == GPUCONV_UINT16 && i < picture_size(picture); i += 2) {
        uint16_t value;
        memcpy(&value, samples + i, sizeof value);
        samples[i] = (uint8_t)(value >> 8);
        samples[i + 1] = (uint8_t)value;
    }
}

static void write_picture(const struct picture *picture, const char *path)
{
    static const char *const types[] = {"GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    FILE *file = fopen(path, "wb");
    uint8_t *bytes = allocate(picture_size(picture));
    memcpy(bytes, picture->samples, picture_size(picture));
    swap_bytes(picture, bytes);
    if (file == NULL)
        fail("cannot write %s", path);
    fprintf(file, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n", picture->width,
            picture->height, picture->channels, picture->type == GPUCONV_UINT8 ? 255 : 65535,
            types[picture->channels - 1]);
    if (fwrite(bytes, 1, picture_size(picture), file) != picture_size(picture) || fclose(file) != 0)
        fail("cannot write %s", path);
    free(bytes);
}

/* Read a result: the last bytes of the file. */
static void read_picture(struct picture *picture, const char *path)
{
    FILE *file = fopen(path, "rb");
    picture->samples = allocate(picture_size(picture));
    if (file == NULL || fseek(file, -(long)picture_size(picture), SEEK_END) != 0 ||
        fread(picture->samples, 1, picture_size(picture), file) != picture_size(picture))
        fail("cannot read %s", path);
    fclose(file);
    uint8_t big_endian[2] = {1, 0};
    uint16_t value;
    memcpy(&value, big_endian, sizeof value);
    if (value == 1) /* the machine is little-endian */
        for (size_t i = 0; picture->type == GPUCONV_UINT16 && i < picture_size(picture); i += 2) {
            const uint8_t first = picture->samples[i];
            picture->samples[i] = picture->samples[i + 1];
            picture->samples[i + 1] = first;
        }
}

/* ---- Views ---- */

/* Planes as the kernels of a GPU take them. */
static struct gpuconv_view place_planes(const struct picture *picture, uint8_t *arena)
{
    struct gpuconv_view view = gpuconv_planar(arena, picture->width, picture->height, picture->channels, picture->type);
    view.row_stride = (view.row_stride + 127) / 128 * 128;
    view.channel_stride = view.row_stride * (picture->height + 1);
    return view;
}

/* Place a view like PICTURE in the BYTES of ARENA: its axes in any order, with gaps, at either end or in between. */
static struct gpuconv_view place_view(uint64_t *state, const struct picture *picture, uint8_t *arena, size_t bytes)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 1, 2}, {1, 2, 0}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}, {2, 0, 1}};
    const int *order = orders[random_between(state, 0, sizeof orders / sizeof *orders - 1)]; /* channel, column, row */
    const int counts[3] = {picture->channels, picture->width, picture->height};
    const ptrdiff_t size = (ptrdiff_t)sample_size(picture);
    const bool gaps = random_between(state, 0, 1);
    const int simple = random_between(state, 0, 7);
    if (simple == 0)
        return place_planes(picture, arena);
    if (simple == 1)
        return gpuconv_interleaved(arena, picture->width, picture->height, picture->channels, picture->type);
    ptrdiff_t strides[3], covered = size;
    for (int i = 0; i < 3; i++) {
        const int axis = order[i];
        strides[axis] = covered + (gaps && random_between(state, 0, 1) ? size * random_between(state, 1, 5) : 0);
        covered += (counts[axis] - 1) * strides[axis];
        covered = covered > strides[axis] * counts[axis] || random_between(state, 0, 1) ? covered
                                                                                        : strides[axis] * counts[axis];
        if (counts[axis] == 1 && random_between(state, 0, 1))
            strides[axis] = random_between(state, -9, 9); /* it does not count */
    }
    ptrdiff_t reach = size;
    for (int axis = 0; axis < 3; axis++)
        reach += counts[axis] > 1 ? (counts[axis] - 1) * strides[axis] : 0;
    const ptrdiff_t rest = ((ptrdiff_t)bytes - reach) / size;
    const int alignment = random_between(state, 0, 2);
    return (struct gpuconv_view){
        .data = arena + size * (alignment == 0   ? 0
                                : alignment == 1 ? rest
                                                 : random_between(state, 0, (int)rest)),
        .width = picture->width,
        .height = picture->height,
        .channels = picture->channels,
        .type = picture->type,
        .channel_stride = strides[0],
        .column_stride = strides[1],
        .row_stride = strides[2],
    };
}

/* Copy SAMPLES of PICTURE to VIEW. */
static void fill_view(const struct picture *picture, const uint8_t *samples, const struct gpuconv_view *view)
{
    const size_t size = sample_size(picture);
    for (int y = 0; y < picture->height; y++)
        for (int x = 0; x < picture->width; x++)
            for (int c = 0; c < picture->channels; c++, samples += size)
                memcpy((char *)view->data + (picture->height > 1 ? y * view->row_stride : 0) +
                           (picture->width > 1 ? x * view->column_stride : 0) +
                           (picture->channels > 1 ? c * view->channel_stride : 0),
                       samples, size);
}

/* ---- Settings ---- */

struct setting {
    struct gpuconv_filter *filter;
    char spec[PATH]; /* for the command line */
    struct gpuconv_options options;
};

/* A filter of random taps, in a file for the command line. */
static struct gpuconv_filter *make_taps(uint64_t *state, const char *path)
{
    static const char *const offsets[] = {"0", "128", "0.3", "-1.25", "1e-3"};
    int32_t values[9 * 9];
    const char *offset = offsets[random_between(state, 0, 4)];
    struct gpuconv_taps taps = {.taps = values,
                                .width = random_between(state, 1, 9),
                                .height = random_between(state, 1, 9),
                                .has_anchor = random_between(state, 0, 1),
                                .absolute = random_between(state, 0, 3) == 0,
                                .scale = random_between(state, 1, 300),
                                .offset = strtod(offset, NULL)};
    taps.anchor_x = random_between(state, 0, taps.width - 1);
    taps.anchor_y = random_between(state, 0, taps.height - 1);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail("cannot write %s", path);
    fprintf(file, "scale %d\noffset %s\n%s", taps.scale, offset, taps.absolute ? "abs\n" : "");
    if (taps.has_anchor)
        fprintf(file, "anchor %d %d\n", taps.anchor_x, taps.anchor_y);
    for (int i = 0; i < taps.width * taps.height; i++) {
        values[i] = random_between(state, 0, 2) == 0 ? 0 : random_between(state, -60, 90);
        fprintf(file, "%d%c", values[i], i % taps.width == taps.width - 1 ? '\n' : ' ');
    }
    fclose(file);
    struct gpuconv_error error;
    struct gpuconv_filter *filter = gpuconv_filter_make(&taps, &error);
    if (filter == NULL)
        fail("%s", error.message);
    return filter;
}

static void choose_setting(uint64_t *state, int number, const char *folder, struct setting *setting)
{
    static const char *const specs[] = {"identity",
                                        "sharpen",
                                        "blur",
                                        "box9",
                                        "sobel",
                                        "emboss",
                                        "unsharp",
                                        "shift",
                                        "laplacian",
                                        "gaussian:2",
                                        "gaussian:0.6",
                                        "unsharp:1.5:0.8:3",
                                        "disk:3",
                                        "motion:9:30",
                                        "box:4",
                                        "log:1.4",
                                        "prewitt",
                                        "blur,sharpen",
                                        "gaussian:1,sobel,emboss",
                                        "gaussian:6",
                                        "scharr",
                                        "resize:60%",
                                        "resize:25x31:exact:cubic",
                                        "blur,resize:130%:mitchell,sharpen",
                                        "turn:90",
                                        "blur,crop:60%:top,sharpen,turn:270"};
    const int count = sizeof specs / sizeof *specs;
    struct gpuconv_error error;
    if (number % 3 == 2) {
        snprintf(setting->spec, sizeof setting->spec, "%s/taps-%d.txt", folder, number);
        setting->filter = make_taps(state, setting->spec);
    } else {
        snprintf(setting->spec, sizeof setting->spec, "%s", specs[(number - number / 3) % count]);
        setting->filter = gpuconv_filter_find(setting->spec, &error);
        if (setting->filter == NULL)
            fail("%s", error.message);
    }
    setting->options = (struct gpuconv_options){
        .border = (enum gpuconv_border)random_between(state, 0,
                                                      strstr(setting->spec, "resize") ? GPUCONV_WRAP : GPUCONV_ZERO),
        .alpha = (enum gpuconv_alpha)random_between(state, 0, GPUCONV_FILTER_ALPHA),
        .linear = random_between(state, 0, 4) == 0,
    };
}

/* Let the command line filter the pictures in FOLDER/in to FOLDER/out. */
static void run_program(const char *program, const char *folder, const struct setting *setting)
{
    static const char *const borders[] = {"replicate", "reflect", "reflect101", "wrap", "zero"};
    static const char *const alphas[] = {"premultiply", "keep", "filter"};
    char command[4 * PATH];
    snprintf(command, sizeof command, "'%s' --quiet --backend cpu %s--border %s --alpha %s '%s' '%s/in' -o '%s/out'",
             program, setting->options.linear ? "--linear " : "", borders[setting->options.border],
             alphas[setting->options.alpha], setting->spec, folder, folder);
    if (system(command) != 0)
        fail("failed: %s", command);
}

/* ---- Calls ---- */

static void report(const char *what, const struct setting *setting, const struct picture *picture)
{
    fail("%s: %s, border %d, alpha %d, linear %d, %d x %d x %d of type %d", what, setting->spec,
         (int)setting->options.border, (int)setting->options.alpha, setting->options.linear, picture->width,
         picture->height, picture->channels, (int)picture->type);
}

/* Contexts, and the memory for views. */
struct library {
    struct gpuconv_context *contexts[2];
    uint8_t *arenas[3];        /* for the input, the output, and the expected output */
    uint8_t *device_arenas[2]; /* memory of a GPU for the input and the output, or NULL */
    void *streams[2];
};

static void open_library(bool uses_gpu, int device, struct library *library)
{
    *library = (struct library){0};
    if (uses_gpu)
        choose_device(device);
    for (int i = 0; i < 2; i++) {
        struct gpuconv_error error;
        const struct gpuconv_context_options options = {.threads = 1 + 2 * i, .uses_gpu = uses_gpu, .device = device};
        library->contexts[i] = gpuconv_context_open(&options, &error);
        if (library->contexts[i] == NULL)
            fail("%s", error.message);
        library->device_arenas[i] = uses_gpu ? open_device_arena() : NULL;
        library->streams[i] = uses_gpu ? open_stream() : NULL;
    }
    for (int i = 0; i < 3; i++)
        library->arenas[i] = open_arena();
}

/* Filter PICTURE from one view to another, and sometimes in place. */
static void check_call(uint64_t *state, const struct library *library, const struct setting *setting,
                       const struct picture *picture, const struct picture *result)
{
    struct gpuconv_error error;
    const bool in_place =
        random_between(state, 0, 7) == 0 && picture->width == result->width && picture->height == result->height;
    const bool on_device = library->device_arenas[0] != NULL && random_between(state, 0, 5) > 0;
    uint8_t *const *arenas = on_device ? library->device_arenas : library->arenas;
    struct gpuconv_view out = place_view(state, result, arenas[1], ARENA);
    struct gpuconv_view in = in_place ? out : place_view(state, picture, arenas[0], ARENA), expected = out;
    struct gpuconv_options options = setting->options;
    in.memory = out.memory = on_device ? GPUCONV_DEVICE : GPUCONV_HOST;
    if (on_device)
        options.stream = library->streams[random_between(state, 0, 1)];
    expected.data = library->arenas[2] + ((uint8_t *)out.data - arenas[1]);
    memset(arenas[1], 0xa5, ARENA);
    memset(library->arenas[2], 0xa5, ARENA);
    fill_view(picture, picture->samples, &in);
    fill_view(result, result->samples, &expected);
    if (gpuconv_apply(library->contexts[random_between(state, 0, 1)], setting->filter, &in, &out, &options, &error) !=
        GPUCONV_OK)
        report(error.message, setting, picture);
    if (on_device)
        wait_for_device();
    if (memcmp(arenas[1], library->arenas[2], ARENA) != 0)
        report(in_place    ? "other bytes in place"
               : on_device ? "other bytes on the GPU"
                           : "other bytes",
               setting, picture);
}

/* ---- Many files ---- */

/* The files of the folders. */
static struct gpuconv_bytes foreign[FOREIGN_MAX];
static int foreign_count;

static void read_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL)
        fail("%s cannot be read", folder);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL && foreign_count < FOREIGN_MAX;) {
        char path[2 * PATH];
        static uint8_t bytes[FILE_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        const size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
        if (file != NULL)
            fclose(file);
        if (size == 0 || size == sizeof bytes)
            continue;
        struct gpuconv_bytes *kept = &foreign[foreign_count++];
        *kept = (struct gpuconv_bytes){allocate(size), size};
        memcpy(kept->data, bytes, size);
    }
    closedir(entries);
}

/* Say in a JPEG, after SOI, that it is turned. */
static void turn_jpeg(struct gpuconv_bytes *file, int orientation)
{
    const uint8_t exif[] = {0xff,
                            0xe1,
                            0,
                            34,
                            'E',
                            'x',
                            'i',
                            'f',
                            0,
                            0,
                            'I',
                            'I',
                            42,
                            0,
                            8,
                            0,
                            0,
                            0,
                            1,
                            0,
                            0x12,
                            1,
                            3,
                            0,
                            1,
                            0,
                            0,
                            0,
                            (uint8_t)orientation,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0};
    uint8_t *bytes = allocate(file->size + sizeof exif);
    memcpy(bytes, file->data, 2);
    memcpy(bytes + 2, exif, sizeof exif);
    memcpy(bytes + 2 + sizeof exif, (uint8_t *)file->data + 2, file->size - 2);
    free(file->data);
    *file = (struct gpuconv_bytes){bytes, file->size + sizeof exif};
}

/* An image whose EXIF says that it is turned. */
static struct gpuconv_image *image_with_metadata(struct gpuconv_context *context)
{
    uint8_t pixel = 0;
    struct gpuconv_error error;
    struct gpuconv_bytes file;
    const struct gpuconv_view view = gpuconv_interleaved(&pixel, 1, 1, 1, GPUCONV_UINT8);
    gpuconv_encode(context, &view, &(struct gpuconv_encode_options){.format = "jpg"}, &file.data, &file.size, &error);
    turn_jpeg(&file, 6);
    struct gpuconv_image *image =
        gpuconv_decode(context, file.data, file.size, &(struct gpuconv_decode_options){.keep_orientation = 1}, &error);
    free(file.data);
    return image;
}

/* Encode pictures at once, and one by one. FILES become what is written. */
static void check_encode(uint64_t *state, const struct library *library, const struct picture *pictures,
                         struct gpuconv_bytes *files)
{
    static const char *const formats[] = {"jpg", "jpg", "jpg", "png", "png", "pam", "tif"};
    static const int subsamplings[] = {0, 444, 422, 420, 440, 411};
    const char *format = formats[random_between(state, 0, sizeof formats / sizeof *formats - 1)];
    struct gpuconv_encode_options options = {.format = format};
    if (format[0] == 'j') {
        options.quality = random_between(state, 0, 100);
        options.subsampling = subsamplings[random_between(state, 0, 5)];
        options.progressive = random_between(state, 0, 3) == 0;
    } else if (format[0] == 'p' && random_between(state, 0, 3) == 0) {
        options.compression = random_between(state, 0, 1) ? 3 : -2;
    }
    struct gpuconv_context *context = library->contexts[random_between(state, 0, 1)];
    struct gpuconv_view views[FILES];
    struct gpuconv_error *errors = allocate(FILES * sizeof *errors), error;
    const bool has_device = library->device_arenas[0] != NULL;
    options.stream = has_device ? library->streams[random_between(state, 0, 1)] : NULL;
    struct gpuconv_image *like = random_between(state, 0, 1) ? image_with_metadata(context) : NULL;
    options.metadata_of = like;
    for (int i = 0; i < FILES; i++) {
        const bool on_device = has_device && random_between(state, 0, 5) > 0;
        uint8_t *arena = on_device ? library->device_arenas[0] : library->arenas[0];
        views[i] = place_view(state, &pictures[i], arena + i * SLOT, SLOT);
        views[i].memory = on_device ? GPUCONV_DEVICE : GPUCONV_HOST;
        fill_view(&pictures[i], pictures[i].samples, &views[i]);
    }
    gpuconv_encode_all(context, views, FILES, &options, files, errors);
    for (int i = 0; i < FILES; i++) {
        const struct picture *picture = &pictures[i];
        const struct gpuconv_view view =
            gpuconv_interleaved(picture->samples, picture->width, picture->height, picture->channels, picture->type);
        struct gpuconv_bytes one;
        gpuconv_encode(context, &view, &options, &one.data, &one.size, &error);
        if (errors[i].status != error.status || strcmp(errors[i].message, error.message) != 0 ||
            one.size != files[i].size || memcmp(one.data, files[i].data, one.size) != 0)
            fail("encode %s: picture %d of %d x %d x %d, type %d, in %s: %zu bytes, not %zu; \"%s\", not \"%s\"",
                 format, i, picture->width, picture->height, picture->channels, (int)picture->type,
                 views[i].memory == GPUCONV_HOST ? "host" : "device", files[i].size, one.size, errors[i].message,
                 error.message);
        gpuconv_free(one.data);
    }
    gpuconv_image_free(like);
    free(errors);
}

/* Decode FILES at once, and one by one. */
static void check_decode(uint64_t *state, const struct library *library, const struct gpuconv_bytes *files)
{
    struct gpuconv_decode_options options = {.bits = 8 * random_between(state, 0, 2),
                                             .keep_orientation = random_between(state, 0, 3) == 0};
    struct gpuconv_context *context = library->contexts[random_between(state, 0, 1)];
    struct gpuconv_file_info infos[FILES];
    struct gpuconv_error *errors = allocate(2 * FILES * sizeof *errors), *inspected = errors + FILES, error;
    struct gpuconv_view views[FILES];
    struct gpuconv_image *images[FILES];
    const bool has_device = library->device_arenas[0] != NULL;
    gpuconv_inspect_all(context, files, FILES, &options, infos, inspected);
    for (int i = 0; i < FILES; i++) {
        const bool on_device = has_device && random_between(state, 0, 5) > 0;
        uint8_t *arena = (on_device ? library->device_arenas[0] : library->arenas[0]) + i * SLOT;
        struct picture picture = {infos[i].width, infos[i].height, infos[i].channels, infos[i].type, NULL};
        images[i] = gpuconv_decode(context, files[i].data, files[i].size, &options, &error);
        if (inspected[i].status != GPUCONV_OK || 6 * picture_size(&picture) > SLOT / 2)
            picture = (struct picture){1, 1, 1, GPUCONV_UINT8, NULL}; /* a wrong view, for a file that will fail */
        views[i] = place_view(state, &picture, arena, SLOT);
        views[i].memory = on_device ? GPUCONV_DEVICE : GPUCONV_HOST;
        memset(arena, 0xa5, SLOT);
    }
    options.stream = has_device ? library->streams[random_between(state, 0, 1)] : NULL;
    gpuconv_decode_all(context, files, FILES, &options, views, errors);
    if (has_device)
        wait_for_device();
    for (int i = 0; i < FILES; i++) {
        const struct gpuconv_view one = images[i] != NULL ? gpuconv_image_view(images[i]) : (struct gpuconv_view){0};
        const bool is_wrong_view = images[i] != NULL && (one.width != views[i].width || one.height != views[i].height);
        uint8_t *arena = (views[i].memory == GPUCONV_HOST ? library->arenas[0] : library->device_arenas[0]) + i * SLOT;
        if ((errors[i].status == GPUCONV_OK) != (images[i] != NULL && !is_wrong_view))
            fail("decode: file %d of %zu bytes: %s", i, files[i].size, errors[i].message);
        if (errors[i].status == GPUCONV_OK) {
            const struct picture picture = {one.width, one.height, one.channels, one.type, one.data};
            struct gpuconv_view expected = views[i];
            memset(library->arenas[2], 0xa5, SLOT);
            expected.data = library->arenas[2] + ((uint8_t *)views[i].data - arena);
            fill_view(&picture, one.data, &expected);
            if (memcmp(arena, library->arenas[2], SLOT) != 0)
                fail("decode: file %d of %zu bytes, %d x %d x %d, in %s: other samples", i, files[i].size, one.width,
                     one.height, one.channels, views[i].memory == GPUCONV_HOST ? "host" : "device");
        }
        gpuconv_image_free(images[i]);
    }
    free(errors);
}

/* Encode some of PICTURES, damage some of the files, and decode them among those of the folders. */
static void check_files(uint64_t *state, const struct library *library, const struct picture *pictures)
{
    struct gpuconv_bytes files[FILES];
    check_encode(state, library, pictures + random_between(state, 0, IMAGES - FILES), files);
    for (int i = 0; i < FILES; i++) {
        const int change = random_between(state, 0, 5);
        uint8_t *bytes = files[i].data;
        if (bytes == NULL || (change == 0 && foreign_count > 0)) {
            const struct gpuconv_bytes *other = &foreign[random_between(state, 0, foreign_count - 1)];
            gpuconv_free(bytes);
            files[i] = (struct gpuconv_bytes){allocate(other->size), other->size};
            memcpy(files[i].data, other->data, other->size);
        } else if (change == 1) {
            bytes[random_next(state) % files[i].size] ^= (uint8_t)(1 << random_between(state, 0, 7));
        } else if (change == 2 && bytes[0] == 0xff) {
            turn_jpeg(&files[i], random_between(state, 2, 8));
        }
    }
    check_decode(state, library, files);
    for (int i = 0; i < FILES; i++)
        gpuconv_free(files[i].data);
}

/* What a thread does. */
struct task {
    const char *program;
    int calls;
    bool uses_gpu;
    int device;
};

static void check_setting(uint64_t *state, const struct task *task, const struct library *library, int number,
                          const char *folder)
{
    struct picture pictures[IMAGES];
    struct setting setting;
    char path[PATH];
    choose_setting(state, number, folder, &setting);
    for (int i = 0; i < IMAGES; i++) {
        make_picture(state, &pictures[i]);
        snprintf(path, sizeof path, "%s/in/%d.pam", folder, i);
        write_picture(&pictures[i], path);
    }
    run_program(task->program, folder, &setting);
    for (int i = 0; i < IMAGES; i++) {
        snprintf(path, sizeof path, "%s/out/%d.pam", folder, i);
        struct picture result = pictures[i];
        struct gpuconv_error error;
        if (gpuconv_filter_size(setting.filter, &result.width, &result.height, &error) != GPUCONV_OK)
            fail("%s", error.message);
        read_picture(&result, path);
        check_call(state, library, &setting, &pictures[i], &result);
        free(result.samples);
    }
    for (int i = 0; i < 2; i++)
        check_files(state, library, pictures);
    for (int i = 0; i < IMAGES; i++)
        free(pictures[i].samples);
    gpuconv_filter_close(setting.filter);
}

static void *run_task(void *context)
{
    const struct task *task = context;
    char folder[] = "/tmp/gpuconv-library-XXXXXX", path[PATH];
    uint64_t state = (uint64_t)(31 + task->device);
    struct library library;
    open_library(task->uses_gpu, task->device, &library);
    if (mkdtemp(folder) == NULL)
        fail("there is no temporary folder");
    snprintf(path, sizeof path, "%s/in", folder);
    mkdir(path, 0700);
    for (int number = 0; number * IMAGES < task->calls; number++)
        check_setting(&state, task, &library, number, folder);
    gpuconv_context_close(library.contexts[0]);
    gpuconv_context_close(library.contexts[1]);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    if (system(path) != 0)
        fail("failed: %s", path);
    return NULL;
}

int main(int count, char *arguments[])
{
    if (count < 5)
        fail("usage: check_library GPUCONV CALLS cpu|gpu FOLDER...");
    const bool uses_gpu = strcmp(arguments[3], "gpu") == 0;
    const int calls = atoi(arguments[2]), all = uses_gpu ? gpuconv_gpus() : 1, gpus = all < GPUS_MAX ? all : GPUS_MAX;
    if (gpus == 0) {
        printf("skipped: there is no GPU\n");
        return EXIT_SKIPPED;
    }
    for (int i = 4; i < count; i++)
        read_folder(arguments[i]);
    struct task tasks[GPUS_MAX];
    pthread_t threads[GPUS_MAX];
    for (int i = 0; i < gpus; i++) {
        tasks[i] = (struct task){arguments[1], calls / gpus, uses_gpu, i};
        if (pthread_create(&threads[i], NULL, run_task, &tasks[i]) != 0)
            fail("there is no thread");
    }
    for (int i = 0; i < gpus; i++)
        pthread_join(threads[i], NULL);
    printf("%d calls%s\n", gpus * ((calls / gpus + IMAGES - 1) / IMAGES * IMAGES),
           gpus > 1 ? ", on all GPUs at once" : "");
    return 0;
}
