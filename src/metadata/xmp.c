/* SPDX-License-Identifier: MIT
 *
 * XMP: a packet of XML. xmp_filter.c checks it. Then a few properties are changed in place, without a parser, so that
 * the rest stays as it is. */
#include "metadata/metadata_internal.h"

#include <string.h>

/* A property in a packet: an attribute name="value" or an element <name>value</name>. */
struct property {
    size_t value, value_end; /* in quotes or between tags */
    size_t start, end;       /* of all of it */
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static size_t skip_space(const struct blob *text, size_t at)
{
    while (at < text->size && is_space(text->bytes[at]))
        at++;
    return at;
}

/* Find the property NAME from *AT on, and move *AT past it. */
static bool find_property(const struct blob *xmp, const char *name, size_t *at, struct property *found)
{
    const size_t length = strlen(name);
    const uint8_t *hit;
    while (*at < xmp->size && (hit = memmem(xmp->bytes + *at, xmp->size - *at, name, length)) != NULL) {
        const size_t start = (size_t)(hit - xmp->bytes), next = skip_space(xmp, start + length);
        *at = start + length;
        if (start == 0 || next == xmp->size)
            continue;
        const bool element = xmp->bytes[start - 1] == '<' && xmp->bytes[next] == '>';
        const size_t quote = skip_space(xmp, next + 1);
        if (!element && (!is_space(xmp->bytes[start - 1]) || xmp->bytes[next] != '=' || quote == xmp->size ||
                         (xmp->bytes[quote] != '"' && xmp->bytes[quote] != '\'')))
            continue;
        const size_t value = element ? next + 1 : quote + 1;
        const uint8_t *end = memchr(xmp->bytes + value, element ? '<' : xmp->bytes[quote], xmp->size - value);
        if (end == NULL)
            return false;
        const size_t value_end = (size_t)(end - xmp->bytes), left = xmp->size - value_end;
        *at = value_end;
        if (element &&
            (left < length + 3 || end[1] != '/' || memcmp(end + 2, name, length) != 0 || end[length + 2] != '>'))
            continue;
        *found = (struct property){
            .value = value,
            .value_end = value_end,
            .start = element ? start - 1 : start,
            .end = value_end + (element ? length + 3 : 1),
        };
        *at = found->end;
        return true;
    }
    return false;
}

void xmp_remove(struct blob *xmp, const char *name)
{
    struct property found;
    for (size_t at = 0; find_property(xmp, name, &at, &found);)
        memset(xmp->bytes + found.start, ' ', found.end - found.start);
}

void xmp_set_digit(struct blob *xmp, const char *name, char digit)
{
    struct property found;
    for (size_t at = 0; find_property(xmp, name, &at, &found);)
        if (found.value_end - found.value == 1)
            xmp->bytes[found.value] = (uint8_t)digit;
}

bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    struct blob packet = {0};
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    if (metadata->xmp.size > 0)
        return true;
    if (size > METADATA_PART_MOST)
        return metadata_drop(metadata, METADATA_XMP, METADATA_TOO_LARGE);
    const bool done = (xmp_filter(metadata, bytes, size, &packet) || error_no_memory(error, "metadata")) &&
                      metadata_add(metadata, METADATA_XMP, &metadata->xmp, packet.bytes, packet.size, error);
    blob_free(&packet);
    return done;
}
