/* SPDX-License-Identifier: MIT
 *
 * Photoshop's image resources, which hold IPTC: "8BIM", a number in 2 bytes, a name of even length with the byte that
 * counts it, the size in 4 bytes, and the data, which are padded to an even size (Adobe Photoshop File Formats). */
#include "metadata/metadata_internal.h"

#include <string.h>

enum {
    RESOURCE_LEAST = 12, /* bytes of a resource without a name and data */
    RESOURCE_NAME = 6,   /* where its name begins */
};

/* Is the resource carried? All others are dropped: one of them is a thumbnail. */
static bool is_carried(unsigned number)
{
    return number == 0x0404     /* IPTC */
           || number == 0x0425  /* its digest */
           || number == 0x040a  /* the copyright flag */
           || number == 0x040b; /* and its address */
}

bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    while (size >= RESOURCE_LEAST && memcmp(bytes, "8BIM", 4) == 0) {
        const unsigned number = big16(bytes + 4);
        const size_t name = ((size_t)bytes[RESOURCE_NAME] + 2) & ~(size_t)1; /* its length and itself, made even */
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
