/* SPDX-License-Identifier: MIT
 *
 * A profile: a header, a table of tags, and their values (ICC.1:2022, section 7). Only what the table refers to is
 * kept. */
#include "metadata/metadata_internal.h"

#include "image/linear.h"

#include <math.h>
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

/* ---- A profile of curves and primaries ---- */

/* A number of 16 bits before the point and 16 after it. */
static void put_fixed(uint8_t *to, double number)
{
    put_big32(to, (uint32_t)(int32_t)floor(number * 65536 + 0.5));
}

static void put_letters(uint8_t *to, const char *letters)
{
    for (; *letters != '\0'; letters++)
        *to++ = (uint8_t)*letters;
}

/* Append the value of a tag, and its entries in the table for the TAGS, four letters each. */
static bool append_tag(struct blob *table, struct blob *values, size_t base, const char *tags, const uint8_t *value,
                       size_t size)
{
    uint8_t entry[ICC_ENTRY];
    bool done = true;
    for (; done && *tags != '\0'; tags += 4) {
        memcpy(entry, tags, 4);
        put_big32(entry + 4, (uint32_t)(base + values->size));
        put_big32(entry + 8, (uint32_t)size);
        done = blob_append(table, entry, sizeof entry);
    }
    return done && blob_append(values, value, size) && blob_append(values, "\0\0\0", -size & 3);
}

/* A text in English, as a multiLocalizedUnicodeType (10.15). */
static bool append_words(struct blob *table, struct blob *values, size_t base, const char *tag, const char *text)
{
    enum { HEAD = 28 };
    uint8_t value[HEAD + 64] = "mluc\0\0\0\0\0\0\0\1\0\0\0\x0c"
                               "enUS\0\0\0\0\0\0\0\x1c";
    const size_t length = strlen(text);
    put_big32(value + 20, (uint32_t)(2 * length));
    for (size_t i = 0; i < length; i++)
        value[HEAD + 2 * i + 1] = (uint8_t)text[i];
    return append_tag(table, values, base, tag, value, HEAD + 2 * length);
}

static bool append_xyz(struct blob *table, struct blob *values, size_t base, const char *tag, double x, double y,
                       double z)
{
    uint8_t value[20] = "XYZ ";
    put_fixed(value + 8, x);
    put_fixed(value + 12, y);
    put_fixed(value + 16, z);
    return append_tag(table, values, base, tag, value, sizeof value);
}

bool metadata_make_icc(const struct metadata *metadata, bool grey, struct blob *icc, bool *is_made)
{
    enum { TAGS_GREY = 4, TAGS_COLOUR = 9 };
    const size_t count = grey ? TAGS_GREY : TAGS_COLOUR, base = ICC_TABLE + count * ICC_ENTRY;
    struct blob table = {0}, values = {0};
    struct curve curves[3];
    enum curve_source source;
    double m[9] = {0};
    int found;
    metadata_find_curve(metadata, grey, &source, curves, &found);
    *is_made = found == 1 && curves[0].kind == CURVE_POWER && (grey || metadata_find_xyz(metadata, source, m));
    for (int i = 0; i < 9; i++)
        *is_made &= fabs(m[i]) < 8; /* and a number */
    if (!*is_made)
        return true;
    uint8_t head[ICC_TABLE] = {0}, curve[40] = "para\0\0\0\0\0\4";
    const double parameters[7] = {curves[0].g, curves[0].a, curves[0].b, curves[0].c,
                                  curves[0].d, curves[0].e, curves[0].f};
    for (int i = 0; i < 7; i++)
        put_fixed(curve + 12 + 4 * i, parameters[i]);
    bool done = append_words(&table, &values, base, "desc", "Colours of a PNG") &&
                append_words(&table, &values, base, "cprt", "CC0") &&
                append_xyz(&table, &values, base, "wtpt", 0.9642, 1, 0.8249) &&
                append_tag(&table, &values, base, grey ? "kTRC" : "rTRCgTRCbTRC", curve, sizeof curve);
    for (int c = 0; done && !grey && c < 3; c++)
        done = append_xyz(&table, &values, base, c == 0 ? "rXYZ" : c == 1 ? "gXYZ" : "bXYZ", m[c], m[3 + c], m[6 + c]);
    put_big32(head, (uint32_t)(base + values.size));
    put_big32(head + 8, 0x04300000); /* version 4.3 */
    put_letters(head + 12, grey ? "mntrGRAYXYZ " : "mntrRGB XYZ ");
    put_big16(head + 24, 2026);
    head[27] = head[29] = 1; /* January, and its first day */
    put_letters(head + ICC_SIGNATURE, "acsp");
    put_big32(head + 64, 1); /* relative */
    put_fixed(head + 68, 0.9642);
    put_fixed(head + 72, 1);
    put_fixed(head + 76, 0.8249);
    put_big32(head + ICC_TAGS, (uint32_t)count);
    done = done && blob_append(icc, head, sizeof head) && blob_append(icc, table.bytes, table.size) &&
           blob_append(icc, values.bytes, values.size);
    blob_free(&table);
    blob_free(&values);
    return done;
}
