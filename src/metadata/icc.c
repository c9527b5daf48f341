/* SPDX-License-Identifier: MIT
 *
 * A profile: a header, a table of tags, and their values (ICC.1:2022, section 7). Only what the table refers to is
 * kept. */
#include "metadata/metadata_internal.h"

#include <string.h>

enum {
    ICC_SIGNATURE = 36, /* the offset of "acsp" in the header */
    ICC_TAGS = 128,     /* the offset of the number of tags; the table follows */
    ICC_TABLE = 132,
    ICC_ENTRY = 12,      /* a signature, an offset and a size */
    ICC_TAGS_MAX = 1024, /* profiles have about 10 to 30 */
};

/* The offsets of a value and of its end. */
struct range {
    size_t start, end;
};

static struct range tag_range(const uint8_t *profile, size_t index)
{
    const uint8_t *entry = profile + ICC_TABLE + index * ICC_ENTRY;
    const size_t start = big32(entry + 4);
    return (struct range){start, start + big32(entry + 8)};
}

/* Does the table of COUNT tags, and each of its values, lie in the SIZE bytes? */
static bool tags_fit(const uint8_t *profile, size_t size, size_t count)
{
    if (count > ICC_TAGS_MAX || count > (size - ICC_TABLE) / ICC_ENTRY)
        return false;
    for (size_t i = 0; i < count; i++)
        if (tag_range(profile, i).end > size)
            return false;
    return true;
}

/* Set the bytes between the values to 0. Each step of the outer loop passes a value or begins one. */
static void clear_gaps(uint8_t *profile, size_t size, size_t count)
{
    for (size_t at = ICC_TABLE + count * ICC_ENTRY; at < size;) {
        size_t next = size, end = at;
        for (size_t i = 0; i < count; i++) {
            const struct range range = tag_range(profile, i);
            if (range.start <= at && range.end > end)
                end = range.end;
            else if (range.start > at && range.start < next)
                next = range.start;
        }
        if (end == at) {
            memset(profile + at, 0, next - at);
            end = next;
        }
        at = end;
    }
}

const uint8_t *icc_find(const struct blob *icc, const char *tag, size_t *size)
{
    for (size_t i = 0; i < big32(icc->bytes + ICC_TAGS); i++)
        if (memcmp(icc->bytes + ICC_TABLE + i * ICC_ENTRY, tag, 4) == 0) {
            const struct range range = tag_range(icc->bytes, i);
            *size = range.end - range.start;
            return icc->bytes + range.start;
        }
    return NULL;
}

bool metadata_add_icc(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    const size_t claimed = size >= ICC_TABLE ? big32(bytes) : 0;
    if (claimed < ICC_TABLE || claimed > size || memcmp(bytes + ICC_SIGNATURE, "acsp", 4) != 0 ||
        !tags_fit(bytes, claimed, big32(bytes + ICC_TAGS)))
        return metadata_drop(metadata, METADATA_ICC, METADATA_DAMAGED);
    if (!metadata_add(metadata, METADATA_ICC, bytes, claimed))
        return false;
    if (metadata->icc.size > 0)
        clear_gaps(metadata->icc.bytes, claimed, big32(bytes + ICC_TAGS));
    return true;
}
