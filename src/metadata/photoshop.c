/* SPDX-License-Identifier: MIT
 *
 * Photoshop's image resources, which hold IPTC. A resource is "8BIM", a number in 2 bytes, a name, the size in 4 bytes,
 * and the data, padded to an even size. The name begins with a byte for its length and has an even size with it (Adobe
 * Photoshop File Formats). */
#include "metadata/metadata_internal.h"

#include <string.h>

enum {
    RESOURCE_LEAST = 12, /* bytes of a resource with neither name nor data */
    RESOURCE_NAME = 6,   /* the place of its name */
};

/* Is the resource kept? All others are dropped: one of them is a thumbnail. */
static bool is_carried(unsigned number)
{
    return number == 0x0404     /* IPTC */
           || number == 0x0425  /* its digest */
           || number == 0x040a  /* the copyright flag */
           || number == 0x040b; /* the copyright's address */
}

bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    while (size >= RESOURCE_LEAST && memcmp(bytes, "8BIM", 4) == 0) {
        const unsigned number = big16(bytes + 4);
        const size_t name = ((size_t)bytes[RESOURCE_NAME] + 2) &
                            ~(size_t)1; /* the byte for its length, and the name, padded to an even size */
        if (size - RESOURCE_NAME < name + 4)
            break;
        const size_t head = RESOURCE_NAME + name + 4, data = big32(bytes + RESOURCE_NAME + name);
        if (data > size - head)
            break;
        const size_t whole = head + data + ((data & 1) && data < size - head);
        if (is_carried(number)) {
            const size_t before = metadata->iptc.size;
            if (!metadata_add(metadata, METADATA_IPTC, &metadata->iptc, bytes, head + data, error))
                return false;
            if ((data & 1) && metadata->iptc.size > before && !blob_append(&metadata->iptc, "", 1))
                return metadata_report_memory(error);
        }
        bytes += whole;
        size -= whole;
    }
    if (size >= 4 && memcmp(bytes, "8BIM", 4) == 0)
        metadata_drop(metadata, METADATA_IPTC, METADATA_DAMAGED);
    return true;
}
