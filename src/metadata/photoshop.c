/* SPDX-License-Identifier: MIT
 *
 * Photoshop's image resources, which hold IPTC. A resource is "8BIM", a number in 2 bytes, a name, the size in 4 bytes,
 * and the data, padded to an even size. The name begins with a byte for its length; both together have an even size
 * (Adobe Photoshop File Formats). */
#include "metadata/metadata_internal.h"

#include <string.h>

enum {
    RESOURCE_MIN = 12, /* bytes of a resource with neither name nor data */
    RESOURCE_NAME = 6, /* the offset of its name */
};

/* The resources that are kept. All others are dropped: one of them is a thumbnail. */
enum {
    RESOURCE_IPTC = 0x0404,
    RESOURCE_DIGEST = 0x0425,    /* the MD5 digest of the resource IPTC */
    RESOURCE_COPYRIGHT = 0x040a, /* a flag */
    RESOURCE_ADDRESS = 0x040b,   /* the URL of the copyright */
};

enum { FLAG_MAX = 4, DIGEST_BYTES = 16 };

/* A dataset of IPTC: 1C, a record, a number, the size in 2 bytes or, if its highest bit is set, the size of the size;
 * and the data (IPTC IIM 4.2, chapter 3). */
struct dataset {
    const uint8_t *bytes, *data;
    size_t whole, size; /* bytes of all and of the data */
};

static bool dataset_read(const uint8_t *bytes, size_t size, struct dataset *dataset)
{
    enum { HEAD = 5, EXTENDED = 0x8000 };
    if (size < HEAD || bytes[0] != 0x1c)
        return false;
    size_t head = HEAD, data = big16(bytes + 3);
    if (data & EXTENDED) {
        if (data != (EXTENDED | 4) || size < HEAD + 4)
            return false;
        head += 4;
        data = big32(bytes + HEAD);
    }
    *dataset = (struct dataset){.bytes = bytes, .data = bytes + head, .whole = head + data, .size = data};
    return data <= size - head;
}

/* Is the dataset a text or a few numbers? The preview is neither. */
static bool is_known(const struct dataset *dataset)
{
    enum { FEW = 16, RECORD_APPLICATION = 2, PREVIEW_FORMAT = 200, PREVIEW = 202 };
    const unsigned record = dataset->bytes[1], number = dataset->bytes[2];
    return (record == 1 || record == RECORD_APPLICATION) &&
           !(record == RECORD_APPLICATION && number >= PREVIEW_FORMAT && number <= PREVIEW) &&
           (dataset->size <= FEW || metadata_is_text(dataset->data, dataset->size));
}

static enum metadata_class class_of(const struct dataset *dataset)
{
    /* By-line, its title, city, place in it, province, code and name of the country, contact, writer */
    static const uint8_t persons[] = {80, 85, 90, 92, 95, 100, 101, 118, 122};
    enum { COPYRIGHT = 116 };
    return dataset->bytes[2] == COPYRIGHT                               ? METADATA_COPYRIGHT
           : memchr(persons, dataset->bytes[2], sizeof persons) != NULL ? METADATA_PRIVATE
                                                                        : METADATA_PUBLIC;
}

/* Append the datasets that are kept to IPTC. Zeros may follow the last. Returns false if there is not enough memory. */
static bool filter_iptc(struct metadata *metadata, const uint8_t *bytes, size_t size, struct blob *iptc)
{
    struct dataset dataset;
    bool done = true;
    for (; done && dataset_read(bytes, size, &dataset); bytes += dataset.whole, size -= dataset.whole) {
        if (metadata_strips(metadata, class_of(&dataset)))
            continue;
        if (!is_known(&dataset))
            metadata_drop(metadata, METADATA_IPTC, METADATA_UNKNOWN);
        else if (metadata_take_text(metadata, METADATA_IPTC, dataset.whole))
            done = blob_append(iptc, dataset.bytes, dataset.whole);
    }
    for (; done && size > 0 && *bytes == 0; bytes++, size--)
        done = blob_append(iptc, bytes, 1);
    if (done && size > 0)
        metadata_drop(metadata, METADATA_IPTC, METADATA_DAMAGED);
    return done;
}

/* A resource that is read. */
struct resource {
    const uint8_t *head, *data;
    size_t head_size, size; /* bytes up to the data, and of the data */
};

/* Add a resource of SIZE bytes of DATA, under the number and the name of RESOURCE. */
static bool append_resource(struct metadata *metadata, const struct resource *resource, const uint8_t *data,
                            size_t size)
{
    struct blob whole = {0};
    uint8_t count[4];
    put_big32(count, (uint32_t)size);
    const bool done = blob_append(&whole, resource->head, resource->head_size - sizeof count) &&
                      blob_append(&whole, count, sizeof count) && blob_append(&whole, data, size) &&
                      blob_append(&whole, "", size & 1) &&
                      metadata_add(metadata, METADATA_IPTC, whole.bytes, whole.size);
    blob_free(&whole);
    return done;
}

/* Add a resource if it is one of those that are kept. *CHANGED says whether IPTC was cut, so its digest is wrong. */
static bool add_resource(struct metadata *metadata, const struct resource *resource, bool *changed)
{
    struct blob iptc = {0};
    const unsigned number = big16(resource->head + 4);
    const bool is_iptc = number == RESOURCE_IPTC;
    if (!is_iptc && number != RESOURCE_DIGEST && number != RESOURCE_COPYRIGHT && number != RESOURCE_ADDRESS)
        return true;
    /* The digest covers all datasets, and some are left out. */
    if (!is_iptc && metadata_strips(metadata, number == RESOURCE_DIGEST ? METADATA_PUBLIC : METADATA_COPYRIGHT))
        return true;
    if (!metadata_take_text(metadata, METADATA_IPTC, resource->head_size + (is_iptc ? 0 : resource->size)))
        return true;
    if (is_iptc) {
        bool done = filter_iptc(metadata, resource->data, resource->size, &iptc);
        *changed = *changed || iptc.size < resource->size;
        done = done && (iptc.size == 0 || append_resource(metadata, resource, iptc.bytes, iptc.size));
        blob_free(&iptc);
        return done;
    }
    const bool known = number == RESOURCE_DIGEST      ? resource->size == DIGEST_BYTES
                       : number == RESOURCE_COPYRIGHT ? resource->size <= FLAG_MAX
                                                      : metadata_is_text(resource->data, resource->size);
    if (!known)
        return metadata_drop(metadata, METADATA_IPTC, METADATA_UNKNOWN);
    return (number == RESOURCE_DIGEST && *changed) ||
           append_resource(metadata, resource, resource->data, resource->size);
}

bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    bool changed = false;
    while (size >= RESOURCE_MIN && memcmp(bytes, "8BIM", 4) == 0) {
        const size_t name = ((size_t)bytes[RESOURCE_NAME] + 2) &
                            ~(size_t)1; /* the byte for its length, and the name, padded to an even size */
        if (size - RESOURCE_NAME < name + 4)
            break;
        const size_t head = RESOURCE_NAME + name + 4, data = big32(bytes + RESOURCE_NAME + name);
        if (data > size - head)
            break;
        const struct resource resource = {.head = bytes, .data = bytes + head, .head_size = head, .size = data};
        if (!add_resource(metadata, &resource, &changed))
            return false;
        const size_t whole = head + data + ((data & 1) && data < size - head);
        bytes += whole;
        size -= whole;
    }
    if (size >= 4 && memcmp(bytes, "8BIM", 4) == 0)
        metadata_drop(metadata, METADATA_IPTC, METADATA_DAMAGED);
    return true;
}
