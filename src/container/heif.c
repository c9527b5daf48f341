/* SPDX-License-Identifier: MIT */
#include "container/heif.h"

#include "container/check.h"
#include "container/other_content.h"
#include "container/report.h"

#include <limits.h>

/* ---- The walk ---- */

uint64_t heif_take(struct heif_box *rest, size_t count)
{
    uint64_t number = 0;
    if (count > rest->size || count > sizeof number) {
        rest->size = 0;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        number = number << 8 | rest->data[i];
    rest->data += count;
    rest->size -= count;
    return number;
}

/* A box begins with its size in 4 bytes and its type. The size 1 says that 8 bytes with it follow, and 0 that the box
 * goes to the end. Zeros are padding. */
bool heif_next(struct heif_box *rest, struct heif_box *box)
{
    struct heif_box left = *rest;
    if (left.size < 8)
        return false;
    uint64_t size = heif_take(&left, 4);
    box->type = left.data;
    heif_take(&left, 4);
    if (size == 1)
        size = heif_take(&left, 8);
    else if (size == 0)
        size = rest->size;
    const size_t head = (size_t)(left.data - rest->data);
    if (size < head || size > rest->size || *box->type == 0)
        return false;
    box->data = left.data;
    box->size = size - head;
    rest->data += size;
    rest->size -= size;
    return true;
}

/* Step over the version and the flags of a box. Returns the version. */
static unsigned take_version(struct heif_box *rest)
{
    return (unsigned)(heif_take(rest, 4) >> 24);
}

struct heif_file heif_open(const uint8_t *bytes, size_t size)
{
    struct heif_file file = {.bytes = bytes, .size = size};
    struct heif_box rest = {.data = bytes, .size = size}, box;
    while (file.meta.size == 0 && heif_next(&rest, &box))
        if (heif_is(box.type, "meta"))
            file.meta = box;
    rest = file.meta;
    take_version(&rest);
    while (heif_next(&rest, &box)) {
        const bool is_list = heif_is(box.type, "iinf"), is_long = box.size > 0 && box.data[0] > 0; /* version 1 or 2 */
        struct heif_box part = box;
        if (heif_is(box.type, "pitm") || is_list || heif_is(box.type, "iref"))
            take_version(&part);
        if (heif_is(box.type, "pitm")) {
            file.primary = (uint32_t)heif_take(&part, is_long ? 4 : 2);
        } else if (is_list) {
            heif_take(&part, is_long ? 4 : 2);
            file.items = part;
        } else if (heif_is(box.type, "iref")) {
            file.id_size = is_long ? 4 : 2;
            file.references = part;
        } else if (heif_is(box.type, "iloc")) {
            file.locations = box;
        } else if (heif_is(box.type, "idat")) {
            file.data = box;
        } else if (heif_is(box.type, "iprp")) {
            while (heif_next(&box, &part))
                *(heif_is(part.type, "ipco") ? &file.properties : &file.associations) = part;
        }
    }
    return file;
}

/* infe: version, flags, number, protection, type, words. Versions 0 and 1 are for other files. */
bool heif_next_item(struct heif_box *rest, struct heif_item *item)
{
    struct heif_box box;
    while (heif_next(rest, &box)) {
        const bool is_hidden = box.size > 3 && box.data[3] & 1;
        const unsigned version = take_version(&box);
        const uint32_t id = (uint32_t)heif_take(&box, version == 2 ? 2 : 4);
        heif_take(&box, 2);
        *item = (struct heif_item){.id = id, .type = box.data, .is_hidden = is_hidden};
        if (version < 2 || box.size < 4)
            continue;
        heif_take(&box, 4);
        item->words = box;
        return true;
    }
    return false;
}

bool heif_next_reference(const struct heif_file *file, struct heif_box *rest, struct heif_reference *reference)
{
    struct heif_box box;
    if (!heif_next(rest, &box))
        return false;
    reference->type = box.type;
    reference->from = (uint32_t)heif_take(&box, file->id_size);
    heif_take(&box, 2);
    reference->to = box;
    return true;
}

/* Bytes of the index of a property. */
static size_t index_size(const struct heif_file *file)
{
    return file->associations.size > 3 && file->associations.data[3] & 1 ? 2 : 1;
}

/* ipma: version, flags, count; for each item its number, a count, and the indices of its properties. */
struct heif_box heif_properties_of(const struct heif_file *file, uint32_t id)
{
    struct heif_box rest = file->associations;
    const size_t id_size = take_version(&rest) == 0 ? 2 : 4;
    heif_take(&rest, 4);
    while (rest.size > 0) {
        const bool is_wanted = heif_take(&rest, id_size) == id;
        const size_t count = (size_t)heif_take(&rest, 1) * index_size(file);
        const size_t bytes = count < rest.size ? count : rest.size;
        if (is_wanted)
            return (struct heif_box){.data = rest.data, .size = bytes};
        rest.data += bytes;
        rest.size -= bytes;
    }
    return rest;
}

/* An index counts the properties of all items from 1. Its first bit says that a reader must know the property. */
bool heif_next_property(const struct heif_file *file, struct heif_box *rest, struct heif_box *property)
{
    const size_t size = index_size(file);
    uint64_t index = heif_take(rest, size) & (size == 1 ? 0x7f : 0x7fff);
    for (struct heif_box all = file->properties; index > 0 && heif_next(&all, property);)
        if (--index == 0)
            return true;
    return false;
}

/* iloc: version, flags, four sizes in 4 bits each, count; for each item its number, where it is, and its pieces. */
bool heif_locate(const struct heif_file *file, uint32_t id, struct heif_box *data)
{
    struct heif_box rest = file->locations;
    const unsigned version = take_version(&rest), sizes = (unsigned)heif_take(&rest, 2);
    const size_t offset_size = sizes >> 12, length_size = sizes >> 8 & 15, base_size = sizes >> 4 & 15;
    const size_t piece = offset_size + length_size + (version > 0 ? sizes & 15 : 0), id_size = version < 2 ? 2 : 4;
    heif_take(&rest, id_size);
    while (rest.size > 0) {
        const bool is_wanted = heif_take(&rest, id_size) == id;
        const uint64_t way = version > 0 ? heif_take(&rest, 2) & 15 : 0, other_file = heif_take(&rest, 2);
        const uint64_t base = heif_take(&rest, base_size), pieces = heif_take(&rest, 2);
        if (pieces * piece > rest.size)
            return false;
        if (is_wanted) {
            heif_take(&rest, piece - offset_size - length_size);
            const uint64_t offset = base + heif_take(&rest, offset_size), length = heif_take(&rest, length_size);
            *data = way == 1 ? file->data : (struct heif_box){.data = file->bytes, .size = file->size};
            if (pieces != 1 || way > 1 || other_file != 0 || offset > data->size || length > data->size - offset)
                return false;
            data->data += offset;
            data->size = length > 0 ? (size_t)length : data->size - (size_t)offset;
            return true;
        }
        rest.data += pieces * piece;
        rest.size -= pieces * piece;
    }
    return false;
}

/* ---- The check ---- */

struct reading {
    struct checked_file file;
    struct heif_file heif;
};

/* Find the item, or the first property of TYPE of one, with this number. */
static bool find_item(const struct heif_file *file, uint32_t id, struct heif_item *item)
{
    struct heif_box rest = file->items;
    while (heif_next_item(&rest, item))
        if (item->id == id)
            return true;
    return false;
}

static bool find_property(const struct heif_file *file, uint32_t id, const char *type, struct heif_box *property)
{
    struct heif_box rest = heif_properties_of(file, id);
    while (heif_next_property(file, &rest, property))
        if (heif_is(property->type, type))
            return true;
    return false;
}

/* Is TYPE among TYPES, of four letters each? */
static bool is_one_of(const uint8_t *type, const char *types)
{
    while (*types != 0 && !heif_is(type, types))
        types += 4;
    return *types != 0;
}

int heif_choose_page(struct heif_file *file, int page, int *pages)
{
    enum { IDS = 1 << 16 }; /* more are in no file */
    uint8_t is_part[IDS / 8] = {0};
    struct heif_box rest = file->references;
    struct heif_reference reference;
    struct heif_item item;
    int found = 0;
    while (heif_next_reference(file, &rest, &reference)) {
        if (reference.from < IDS && (heif_is(reference.type, "auxl") || heif_is(reference.type, "thmb")))
            is_part[reference.from / 8] |= (uint8_t)(1 << reference.from % 8);
        while (heif_is(reference.type, "dimg") && reference.to.size > 0) {
            const uint32_t to = (uint32_t)heif_take(&reference.to, file->id_size);
            if (to < IDS)
                is_part[to / 8] |= (uint8_t)(1 << to % 8);
        }
    }
    *pages = 0;
    for (rest = file->items; heif_next_item(&rest, &item);) {
        if (!is_one_of(item.type, "hvc1av01gridiovlidenjpegavc1j2k1vvc1unci") || item.is_hidden ||
            (item.id < IDS && is_part[item.id / 8] >> item.id % 8 & 1))
            continue;
        ++*pages;
        if (page > 0 ? *pages == page : item.id == file->primary && found == 0)
            found = *pages;
        if (*pages == page)
            file->primary = item.id;
    }
    return *pages == 0 ? (*pages = 1) : found; /* the primary item is hidden */
}

/* Find how the picture is coded: as the first picture is of which it is made, if it is made of others. */
static bool read_configuration(const struct reading *reading, struct heif_header *header, bool *is_grey)
{
    enum { DEPTH = 4 }; /* an overlay of grids has 2 */
    const struct heif_file *heif = &reading->heif;
    struct heif_item item;
    struct heif_reference reference;
    struct heif_box box;
    uint32_t id = heif->primary;
    for (int depth = 0; depth < DEPTH && find_item(heif, id, &item); depth++) {
        if (find_property(heif, id, "av1C", &box) && box.size > 3) {
            const unsigned bits = box.data[2];
            *header = (struct heif_header){.is_av1 = true, .bits = bits & 0x40 ? bits & 0x20 ? 12 : 10 : 8};
            *is_grey = bits & 0x10;
            return true;
        }
        if (find_property(heif, id, "hvcC", &box) && box.size > 22) {
            *header = (struct heif_header){.bits = 8 + (box.data[17] & 7)};
            *is_grey = (box.data[16] & 3) == 0;
            return true;
        }
        struct heif_box rest = heif->references;
        bool is_made_of = false;
        while (!is_made_of && heif_next_reference(heif, &rest, &reference))
            is_made_of = reference.from == id && heif_is(reference.type, "dimg");
        if (!is_made_of && is_one_of(item.type, "hvc1av01gridiovliden"))
            return DAMAGED(reading, "its picture has no %s", "configuration");
        if (!is_made_of)
            return REFUSE(reading, "its picture is not coded as HEVC %s AV1; convert it first", "or");
        id = (uint32_t)heif_take(&reference.to, heif->id_size);
    }
    return DAMAGED(reading, "it has no %s", "picture");
}

/* Set INFO's sides to those of the coded picture, turned and cropped as libheif does. */
static bool read_sides(const struct reading *reading, struct codec_info *info)
{
    struct heif_box box;
    const uint32_t id = reading->heif.primary;
    if (!find_property(&reading->heif, id, "ispe", &box) || box.size < 12)
        return DAMAGED(reading, "its picture has no %s", "size");
    uint32_t width = big32(box.data + 4), height = big32(box.data + 8);
    info->heif.width = (int)(width < INT_MAX ? width : INT_MAX);
    info->heif.height = (int)(height < INT_MAX ? height : INT_MAX);
    for (struct heif_box rest = heif_properties_of(&reading->heif, id);
         heif_next_property(&reading->heif, &rest, &box);) {
        const bool crops = heif_is(box.type, "clap") && box.size >= 32;
        if (heif_is(box.type, "irot") && box.size > 0 && box.data[0] & 1) {
            const uint32_t before = width;
            width = height;
            height = before;
        }
        if (!crops)
            continue;
        const uint32_t part = big32(box.data + 4), other = big32(box.data + 12); /* the sides are fractions */
        if (part == 0 || other == 0 || big32(box.data) % part != 0 || big32(box.data + 8) % other != 0 ||
            big32(box.data) / part > width || big32(box.data + 8) / other > height)
            return DAMAGED(reading, "its crop does not fit its picture of %u x %u pixels", width, height);
        width = big32(box.data) / part;
        height = big32(box.data + 8) / other;
    }
    if (width < 1 || height < 1 || width > INT_MAX || height > INT_MAX)
        return DAMAGED(reading, "it claims %u x %u pixels", width, height);
    if (info->heif.width > HEIF_SIDE_MAX || info->heif.height > HEIF_SIDE_MAX)
        return REFUSE(reading, "%d x %d pixels are too many: at most %d on a side are read; scale it down",
                      info->heif.width, info->heif.height, HEIF_SIDE_MAX);
    if (info->heif.bits > 12)
        return REFUSE(reading, "its samples have %d bits, and at most 12 are read; convert it first", info->heif.bits);
    info->width = (int)width;
    info->height = (int)height;
    return true;
}

/* Find alpha, and what the items are besides the picture. */
static unsigned read_items(const struct heif_file *heif, bool *has_alpha)
{
    enum { AUXILIARIES = 16 }; /* more are in no file */
    struct heif_box rest = heif->references, kind;
    struct heif_reference reference;
    struct heif_item item;
    unsigned other_content = 0;
    for (int looked_at = 0; heif_next_reference(heif, &rest, &reference);)
        while (heif_is(reference.type, "auxl") && reference.to.size > 0) {
            if (heif_take(&reference.to, heif->id_size) != heif->primary || looked_at++ >= AUXILIARIES ||
                !find_property(heif, reference.from, "auxC", &kind))
                continue;
            if (bytes_contain(kind.data, kind.size, "auxiliary:alpha") ||
                bytes_contain(kind.data, kind.size, ":auxid:1"))
                *has_alpha = true;
            else
                other_content |=
                    1U << (bytes_contain(kind.data, kind.size, "hdrgainmap") ? OTHER_GAIN_MAP : OTHER_PICTURES);
        }
    for (rest = heif->items; heif_next_item(&rest, &item);)
        if (heif_is(item.type, "tmap"))
            other_content |= 1U << OTHER_GAIN_MAP;
    return other_content;
}

bool heif_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    struct reading reading = {{heif_is(bytes + 7, "pavi") ? "AVIF" : "HEIC", name, error}, heif_open(bytes, size)};
    struct heif_box rest = {.data = bytes, .size = size}, box;
    bool is_grey = false, has_alpha = false;
    unsigned other_content = 0;
    int pages;
    const int wanted = info->page, page = heif_choose_page(&reading.heif, wanted, &pages);
    *info = (struct codec_info){.page = page, .pages = pages};
    while (heif_next(&rest, &box))
        other_content |= heif_is(box.type, "moov")   ? 1U << OTHER_FRAMES
                         : heif_is(box.type, "mpvd") ? 1U << OTHER_FILM
                                                     : 0;
    const size_t end = size - rest.size;
    if (reading.heif.primary == 0 && other_content & 1U << OTHER_FRAMES)
        return REFUSE(&reading, "is a film without a %s; convert a frame of it first", "still picture");
    /* What follows the boxes is no box if it begins with no size: then the file may be whole. */
    if (rest.size > 0 && (reading.heif.primary == 0 || (rest.size >= 8 && rest.data[4] >= 'a' && rest.data[4] <= 'z')))
        return TRUNCATED(&reading, "the box at byte %zu is longer than the rest of the file", end);
    if (!container_check_page(wanted, pages, name, error) || !read_configuration(&reading, &info->heif, &is_grey) ||
        !read_sides(&reading, info))
        return false;
    info->heif.item = reading.heif.primary;
    info->other_content = other_content | read_items(&reading.heif, &has_alpha) |
                          (pages > (page > 0) ? 1U << OTHER_PICTURES : 0) |
                          container_other_content_behind(bytes, size, end, &(struct jpeg_segment){0});
    info->channels = (is_grey ? 1 : 3) + has_alpha;
    info->bits = info->heif.bits > 8 ? 16 : 8;
    return true;
}

/* ---- Writing ---- */

bool heif_append(struct blob *out, const char *type, const void *data, size_t size)
{
    uint8_t head[8];
    put_big32(head, (uint32_t)(sizeof head + size));
    memcpy(head + 4, type, 4);
    return blob_append(out, head, sizeof head) && blob_append(out, data, size);
}

/* Append COUNT numbers of SIZE bytes. */
static bool append_numbers(struct blob *out, size_t size, size_t count, const size_t *numbers)
{
    uint8_t bytes[8];
    bool done = true;
    for (size_t i = 0; i < count; i++) {
        bytes_put_number(bytes, size, true, numbers[i]);
        done = done && blob_append(out, bytes, size);
    }
    return done;
}

#define NUMBERS(out, size, ...)                                                                                        \
    append_numbers(out, size, sizeof(size_t[]){__VA_ARGS__} / sizeof(size_t), (size_t[]){__VA_ARGS__})

/* Append PART as a box, and release it. DONE says whether it is complete. */
static bool append_part(bool done, struct blob *out, const char *type, struct blob *part)
{
    done = done && heif_append(out, type, part->bytes, part->size);
    blob_free(part);
    return done;
}

/* Append iprp: all properties, and which are of which item. A reader must know how AV1 is configured, and turns. */
static bool append_properties(const struct heif_new_item *items, size_t count, struct blob *out)
{
    struct blob all = {0}, list = {0}, both = {0};
    bool done = NUMBERS(&list, 4, 0, count);
    for (size_t i = 0, index = 0; i < count; i++) {
        struct heif_box rest = {.data = items[i].properties.bytes, .size = items[i].properties.size}, box;
        const size_t at = list.size + 2;
        done = done && blob_append(&all, rest.data, rest.size) && NUMBERS(&list, 2, i + 1) && NUMBERS(&list, 1, 0);
        for (; done && heif_next(&rest, &box); list.bytes[at]++, index++)
            done = NUMBERS(&list, 1, (index + 1) | (is_one_of(box.type, "av1Cirotimir") ? 0x80 : 0));
    }
    done = append_part(done, &both, "ipco", &all);
    done = append_part(done, &both, "ipma", &list);
    return append_part(done, out, "iprp", &both);
}

bool heif_write(const struct heif_file *file, const struct heif_new_item *items, size_t count, struct blob *out)
{
    enum { HEAD = 8, LOCATIONS = 8, LOCATION = 14 };
    static const char handler[25] = "\0\0\0\0\0\0\0\0pict";
    struct blob meta = {0}, list = {0}, references = {0}, locations = {0};
    struct heif_box rest = {.data = file->bytes, .size = file->size}, box;
    bool done = heif_next(&rest, &box) && blob_append(out, file->bytes, (size_t)(rest.data - file->bytes)) &&
                NUMBERS(&meta, 4, 0) && heif_append(&meta, "hdlr", handler, sizeof handler) &&
                heif_append(&meta, "pitm", "\0\0\0\0\0\1", 6) && NUMBERS(&list, 2, 0, 0, count) &&
                NUMBERS(&references, 4, 0);
    for (size_t i = 0; i < count; i++) {
        struct blob entry = {0};
        done = done && NUMBERS(&entry, 2, 0x200, 0, i + 1, 0) && blob_append(&entry, items[i].type, items[i].type_size);
        done = append_part(done, &list, "infe", &entry) &&
               (items[i].reference == NULL ||
                heif_append(&references, items[i].reference, (uint8_t[]){0, (uint8_t)(i + 1), 0, 1, 0, 1}, 6));
    }
    done = append_part(done, &meta, "iinf", &list);
    done = append_part(done, &meta, "iref", &references) && append_properties(items, count, &meta) &&
           NUMBERS(&locations, 2, 0, 0, 0x4400, count);
    const size_t data = out->size + HEAD + meta.size + HEAD + LOCATIONS + LOCATION * count + HEAD;
    size_t at = data;
    for (size_t i = 0; i < count; i++) {
        done = done && NUMBERS(&locations, 2, i + 1, 0, 1) && NUMBERS(&locations, 4, at, items[i].data.size);
        at += items[i].data.size;
    }
    done = append_part(done, &meta, "iloc", &locations);
    done = append_part(done, out, "meta", &meta) && NUMBERS(out, 4, HEAD + at - data) && blob_append(out, "mdat", 4);
    for (size_t i = 0; i < count; i++)
        done = done && blob_append(out, items[i].data.data, items[i].data.size);
    return done;
}
