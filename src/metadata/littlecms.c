/* SPDX-License-Identifier: MIT
 *
 * Load littleCMS, and make a transform of it. */
#include "metadata/littlecms.h"

#include <dlfcn.h>
#include <errno.h>
#include <lcms2.h>
#include <lcms2_plugin.h>
#include <setjmp.h>
#include <sha2.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name has been the same since version 2.0 of 2010. */
static const char file_name[] = "liblcms2.so.2";

#define FUNCTIONS(X)                                                                                                   \
    X(cmsBuildParametricToneCurve)                                                                                     \
    X(cmsCloseProfile)                                                                                                 \
    X(cmsCreateContext)                                                                                                \
    X(cmsCreateGrayProfileTHR)                                                                                         \
    X(cmsCreateTransformTHR)                                                                                           \
    X(cmsCreate_sRGBProfileTHR)                                                                                        \
    X(cmsD50_xyY)                                                                                                      \
    X(cmsDeleteContext)                                                                                                \
    X(cmsDeleteTransform)                                                                                              \
    X(cmsDoTransform)                                                                                                  \
    X(cmsFreeToneCurve)                                                                                                \
    X(cmsGetColorSpace)                                                                                                \
    X(cmsGetDeviceClass)                                                                                               \
    X(cmsGetEncodedCMMversion)                                                                                         \
    X(cmsOpenProfileFromMemTHR)                                                                                        \
    X(cmsSetLogErrorHandlerTHR)

struct littlecms {
#define FIELD(name) __typeof__(name) *name;
    FUNCTIONS(FIELD)
#undef FIELD
};

/* What littleCMS has allocated: the head of it, as large as alignment asks for. */
struct block {
    alignas(max_align_t) struct block *next;
    struct block *previous;
};

struct transform {
    struct littlecms library;
    struct transform_samples samples;
    char key[SHA256_DIGEST_STRING_LENGTH + 32]; /* the profile's hash, and the samples in words */
    char name[32];
    cmsContext context;
    cmsHTRANSFORM handle;
    struct block blocks; /* before the first block */
    jmp_buf failed;
    bool lacks_memory;
    bool is_other; /* the profile is for other colours */
};

static bool load(struct littlecms *library, struct error *error)
{
    errno = 0;
    void *handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
    bool done = handle != NULL;
#define LOAD(name) done = done && (*(void **)&library->name = dlsym(handle, #name)) != NULL;
    FUNCTIONS(LOAD)
#undef LOAD
    return done || error_not_loaded(error, "has a profile of tables, and needs", file_name,
                                    "install littleCMS, or leave to-srgb out");
}

/* The message of an error is not kept: it names what a table lacks, and says nothing to a reader. */
static void ignore_error(cmsContext context, cmsUInt32Number code, const char *text)
{
    (void)context;
    (void)code;
    (void)text;
}

/* ---- Memory ---- */

/* A damaged profile of a few bytes may claim a table of gigabytes. A table of the largest profile, of numbers of 8
 * bits, takes twice its size. */
enum { ALLOCATION_MAX = 32 << 20 };

/* The transform that this thread makes. littleCMS does not look whether each allocation succeeds, so the first failure
 * leaves it. */
static _Thread_local struct transform *making;

/* The function that creates a context looks, and may not be left. Otherwise this does not return. */
static void *fail_allocation(bool lacks_memory)
{
    making->lacks_memory = making->lacks_memory || lacks_memory;
    if (making->context != NULL)
        longjmp(making->failed, 1);
    return NULL;
}

static void *allocate(cmsContext context, cmsUInt32Number size)
{
    (void)context;
    if (making == NULL) /* a transform that is made allocates nothing */
        return NULL;
    struct block *block = size <= ALLOCATION_MAX ? malloc(sizeof *block + size) : NULL;
    if (block == NULL)
        return fail_allocation(size <= ALLOCATION_MAX);
    block->previous = &making->blocks;
    block->next = making->blocks.next;
    if (block->next != NULL)
        block->next->previous = block;
    making->blocks.next = block;
    return block + 1;
}

static void release(cmsContext context, void *memory)
{
    (void)context;
    struct block *block = memory != NULL ? (struct block *)memory - 1 : NULL;
    if (block == NULL)
        return;
    block->previous->next = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    free(block);
}

/* Only names and texts grow, and no transform reads these. */
static void *reallocate(cmsContext context, void *memory, cmsUInt32Number size)
{
    if (memory == NULL)
        return allocate(context, size);
    release(context, memory);
    return fail_allocation(false);
}

/* ---- Transforms ---- */

/* The format of samples: of one or three colours, and alpha, or of CMYK. */
static cmsUInt32Number format_of(const struct transform_samples *samples, bool is_input)
{
    const bool is_cmyk = is_input && samples->is_cmyk;
    const unsigned colours = is_cmyk ? 4 : samples->channels >= 3 ? 3 : 1;
    const unsigned kind = is_cmyk ? PT_CMYK : colours == 3 ? PT_RGB : PT_GRAY;
    const unsigned extra = is_cmyk ? 0 : (unsigned)samples->channels - colours, bytes = (unsigned)samples->bits / 8;
    return COLORSPACE_SH(kind) | CHANNELS_SH(colours) | EXTRA_SH(extra) | BYTES_SH(bytes) |
           (is_cmyk ? FLAVOR_SH(1u) : 0);
}

/* sRGB, or its curve for grey. NULL if there is too little memory. */
static cmsHPROFILE make_srgb(const struct transform *transform)
{
    static const cmsFloat64Number parameters[5] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    const struct littlecms *library = &transform->library;
    if (transform->samples.channels >= 3)
        return library->cmsCreate_sRGBProfileTHR(transform->context);
    cmsToneCurve *curve = library->cmsBuildParametricToneCurve(transform->context, 4, parameters);
    cmsHPROFILE profile = NULL;
    if (curve != NULL)
        profile = library->cmsCreateGrayProfileTHR(transform->context, library->cmsD50_xyY(), curve);
    library->cmsFreeToneCurve(curve);
    return profile;
}

/* Is the profile of a device, or of a space, of the colours of the samples? */
static bool is_for(const struct transform *transform, cmsHPROFILE profile)
{
    const struct transform_samples *samples = &transform->samples;
    const cmsProfileClassSignature class = transform->library.cmsGetDeviceClass(profile);
    return transform->library.cmsGetColorSpace(profile) == (samples->is_cmyk         ? cmsSigCmykData
                                                            : samples->channels >= 3 ? cmsSigRgbData
                                                                                     : cmsSigGrayData) &&
           (class == cmsSigInputClass || class == cmsSigDisplayClass || class == cmsSigOutputClass ||
            class == cmsSigColorSpaceClass);
}

/* Make the transform, whose library is loaded. */
static void build(struct transform *transform, const struct blob *icc)
{
    static cmsPluginMemHandler memory = {
        .base = {.Magic = cmsPluginMagicNumber, .ExpectedVersion = 2000, .Type = cmsPluginMemHandlerSig},
        .MallocPtr = allocate,
        .ReallocPtr = reallocate,
        .FreePtr = release};
    const struct littlecms *library = &transform->library;
    const struct transform_samples *samples = &transform->samples;
    const cmsUInt32Number flags =
        cmsFLAGS_NOCACHE | cmsFLAGS_COPY_ALPHA | (samples->black_point ? (unsigned)cmsFLAGS_BLACKPOINTCOMPENSATION : 0);
    transform->context = library->cmsCreateContext(&memory, NULL);
    transform->lacks_memory = transform->context == NULL;
    if (transform->lacks_memory)
        return;
    library->cmsSetLogErrorHandlerTHR(transform->context, ignore_error);
    cmsHPROFILE profile = library->cmsOpenProfileFromMemTHR(transform->context, icc->bytes, (cmsUInt32Number)icc->size);
    cmsHPROFILE srgb = make_srgb(transform);
    transform->is_other = profile != NULL && !is_for(transform, profile);
    if (profile != NULL && !transform->is_other && srgb != NULL)
        transform->handle =
            library->cmsCreateTransformTHR(transform->context, profile, format_of(samples, true), srgb,
                                           format_of(samples, false), INTENT_RELATIVE_COLORIMETRIC, flags);
    if (srgb != NULL)
        library->cmsCloseProfile(srgb);
    if (profile != NULL)
        library->cmsCloseProfile(profile);
}

static bool make(struct transform *transform, const struct blob *icc, struct error *error)
{
    const int version = transform->library.cmsGetEncodedCMMversion();
    snprintf(transform->name, sizeof transform->name, "littleCMS %d.%d", version / 1000, version % 1000 / 10);
    making = transform;
    if (setjmp(transform->failed) == 0)
        build(transform, icc);
    making = NULL;
    if (transform->lacks_memory)
        return error_no_memory(error, "littleCMS");
    return transform->handle != NULL ||
           error_set(error, ERROR_WORK, "has a profile that %s; convert it with another program, or leave to-srgb out",
                     transform->is_other ? "is for other colours than it has" : "littleCMS cannot read");
}

bool transform_set(struct transform **transform, const struct transform_samples *samples, const struct blob *profile,
                   struct error *error)
{
    struct transform *made = *transform;
    char hash[SHA256_DIGEST_STRING_LENGTH], key[sizeof made->key];
    snprintf(key, sizeof key, "%s %d %d %d %d", SHA256Data(profile->bytes, profile->size, hash), samples->channels,
             samples->bits, samples->is_cmyk, samples->black_point);
    if (made != NULL && strcmp(made->key, key) == 0)
        return true;
    transform_free(made);
    *transform = made = calloc(1, sizeof *made);
    if (made == NULL)
        return error_no_memory(error, "a profile");
    memcpy(made->key, key, sizeof key);
    made->samples = *samples;
    if (load(&made->library, error) && make(made, profile, error))
        return true;
    transform_free(made);
    *transform = NULL;
    return false;
}

void transform_apply(const struct transform *transform, const void *in, void *out, size_t pixels)
{
    transform->library.cmsDoTransform(transform->handle, in, out, (cmsUInt32Number)pixels);
}

const char *transform_name(const struct transform *transform)
{
    return transform->name;
}

void transform_free(struct transform *transform)
{
    if (transform == NULL)
        return;
    if (transform->handle != NULL)
        transform->library.cmsDeleteTransform(transform->handle);
    if (transform->context != NULL)
        transform->library.cmsDeleteContext(transform->context);
    struct block *block = transform->blocks.next; /* those that a failed allocation has left */
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(transform);
}
