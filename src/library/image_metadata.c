/* SPDX-License-Identifier: MIT
 *
 * The metadata of an image, for callers and for other processes. */
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parts ---- */

const void *gpuconv_image_metadata(const struct gpuconv_image *image, const char *part, size_t *size)
{
    const struct metadata *metadata = &image->metadata;
    const struct blob *blob = strcmp(part, "exif") == 0  ? &metadata->exif
                              : strcmp(part, "icc") == 0 ? &metadata->icc
                              : strcmp(part, "xmp") == 0 ? &metadata->xmp
                                                         : NULL;
    *size = blob != NULL ? blob->size : 0;
    return *size > 0 ? blob->bytes : NULL;
}

/* ---- Packed ---- */

/* The head of a packed block. The bytes of the blobs follow. */
struct head {
    char version[32];
    uint64_t size;  /* the size of this struct, in bytes */
    uint32_t order; /* 1, in the machine's byte order */
    int width, height;
    struct chroma_subsampling chroma_subsampling;
    struct metadata metadata; /* the pointers of its blobs are NULL */
};

void *gpuconv_metadata_pack(const struct gpuconv_image *image, size_t *size, struct gpuconv_error *error)
{
    struct error reason;
    struct head head;
    struct blob packed = {0};
    memset(&head, 0, sizeof head); /* with its padding */
    strncpy(head.version, GPUCONV_VERSION, sizeof head.version - 1);
    head.size = sizeof head;
    head.order = 1;
    head.width = image->image.width;
    head.height = image->image.height;
    head.chroma_subsampling = image->chroma_subsampling;
    memcpy(&head.metadata, &image->metadata, sizeof head.metadata);
    for (int i = 0; i < METADATA_BLOBS; i++)
        head.metadata.blobs[i].bytes = NULL;
    bool done = blob_append(&packed, &head, sizeof head);
    for (int i = 0; i < METADATA_BLOBS && done; i++)
        done = blob_append(&packed, image->metadata.blobs[i].bytes, image->metadata.blobs[i].size);
    if (!done) {
        error_no_memory(&reason, "metadata");
        blob_free(&packed);
    }
    *size = packed.size;
    return LIBRARY_RESULT(packed.bytes, &reason, error);
}

struct gpuconv_image *gpuconv_metadata_unpack(const void *packed, size_t size, struct gpuconv_error *error)
{
    struct error reason;
    struct head head = {.size = 0};
    const struct blob *blobs = head.metadata.blobs;
    struct gpuconv_image *image = calloc(1, sizeof *image);
    if (size >= sizeof head)
        memcpy(&head, packed, sizeof head);
    bool fits = size >= sizeof head && head.size == sizeof head && head.order == 1 &&
                strncmp(head.version, GPUCONV_VERSION, sizeof head.version) == 0;
    size_t left = fits ? size - sizeof head : 0;
    for (int i = 0; i < METADATA_BLOBS && fits; i++) {
        fits = blobs[i].size <= left && blobs[i].bytes == NULL;
        left -= fits ? blobs[i].size : 0;
    }
    bool done =
        ((fits && left == 0) ||
         error_set(&reason, ERROR_USAGE, "the packed metadata are not of gpuconv %s; pack and unpack with one version",
                   GPUCONV_VERSION)) &&
        (image != NULL || error_no_memory(&reason, "metadata"));
    if (done)
        *image = (struct gpuconv_image){.image = {.width = head.width, .height = head.height},
                                        .chroma_subsampling = head.chroma_subsampling,
                                        .metadata = head.metadata};
    for (size_t i = 0, at = sizeof head; done && i < METADATA_BLOBS; at += blobs[i++].size) {
        struct blob *blob = &image->metadata.blobs[i];
        *blob = (struct blob){0};
        done = blob_append(blob, (const uint8_t *)packed + at, blobs[i].size) || error_no_memory(&reason, "metadata");
    }
    if (library_status(done, &reason, error) == GPUCONV_OK)
        return image;
    gpuconv_image_free(image);
    return NULL;
}
