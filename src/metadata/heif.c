/* SPDX-License-Identifier: MIT
 *
 * Metadata in the items and properties of a HEIC or AVIF: a profile or coding, EXIF and XMP. */
#include "metadata/metadata_internal.h"

#include "container/check.h"

#include <stdlib.h>

/* The kind of a mime item, after its empty or other name. */
#define XMP_KIND "application/rdf+xml"

/* Bytes of an nclx: its name, primaries, transfer and matrix in 2 bytes each, and the range. PNG's cICP has a byte for
 * each of these four. */
enum { NCLX = 11, NCLX_PRIMARIES = 5, NCLX_TRANSFER = 7, UNSPECIFIED = 2 };

static bool is_nclx(const struct heif_box *box)
{
    return box->size >= NCLX && heif_is(box->type, "colr") && heif_is(box->data, "nclx");
}

/* Does the item hold XMP? */
static bool is_xmp(const struct heif_item *item)
{
    const uint8_t *kind = memchr(item->words.data, 0, item->words.size);
    const size_t left = kind != NULL ? item->words.size - (size_t)(kind + 1 - item->words.data) : 0;
    return heif_is(item->type, "mime") && left > 0 && bytes_begin(kind + 1, left, XMP_KIND, sizeof XMP_KIND);
}

/* Does the item ID describe the picture? */
static bool describes_picture(const struct heif_file *file, uint32_t id)
{
    struct heif_box rest = file->references;
    struct heif_reference reference;
    while (heif_next_reference(file, &rest, &reference))
        while (reference.from == id && heif_is(reference.type, "cdsc") && reference.to.size > 0)
            if (heif_take(&reference.to, file->id_size) == file->primary)
                return true;
    return false;
}

/* Add the data of an item that describes the picture. EXIF begins with the bytes before its block, in 4 bytes. */
static bool add_item(struct metadata *metadata, const struct heif_item *item, struct heif_box data)
{
    if (!heif_is(item->type, "Exif"))
        return metadata_add_xmp(metadata, data.data, data.size);
    const uint64_t before = heif_take(&data, 4);
    return before > data.size ? metadata_drop(metadata, METADATA_EXIF, METADATA_DAMAGED)
                              : metadata_add_exif(metadata, data.data + before, data.size - (size_t)before);
}

/* Decoding turns the picture as the file says, whatever EXIF says, so that its orientation is not used. A profile
 * counts more than a coding. */
bool metadata_read_heif(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    enum { ITEMS = 16 }; /* more describe no picture */
    struct heif_file file = heif_open(bytes, size);
    int pages;
    heif_choose_page(&file, metadata->page, &pages);
    struct heif_box rest = file.items, box;
    struct heif_item item;
    bool done = true, is_moved = false;
    for (int looked_at = 0; done && looked_at < ITEMS && heif_next_item(&rest, &item);) {
        const bool is_exif = heif_is(item.type, "Exif");
        if (!is_exif && !is_xmp(&item))
            continue;
        looked_at++;
        if (!describes_picture(&file, item.id))
            continue;
        done = heif_locate(&file, item.id, &box)
                   ? add_item(metadata, &item, box)
                   : metadata_drop(metadata, is_exif ? METADATA_EXIF : METADATA_XMP, METADATA_DAMAGED);
    }
    for (rest = heif_properties_of(&file, file.primary); done && heif_next_property(&file, &rest, &box);) {
        is_moved = is_moved || heif_is(box.type, "irot") || heif_is(box.type, "imir") || heif_is(box.type, "clap");
        if (is_nclx(&box) && box.data[NCLX_PRIMARIES] != UNSPECIFIED && box.data[NCLX_TRANSFER] != UNSPECIFIED) {
            memcpy(metadata->coding, (uint8_t[]){box.data[NCLX_PRIMARIES], box.data[NCLX_TRANSFER], 0, 1}, 4);
            metadata->has_coding = true;
        } else if (heif_is(box.type, "colr") && box.size > 4 && metadata->icc.size == 0 &&
                   (heif_is(box.data, "prof") || heif_is(box.data, "rICC"))) {
            done = metadata_add_icc(metadata, box.data + 4, box.size - 4);
        }
    }
    metadata->has_coding = metadata->has_coding && metadata->icc.size == 0;
    metadata->orientation = 1;
    exif_set_upright(&metadata->exif);
    return metadata_read_end(done && (!is_moved || metadata_rebuild_turned(metadata)), metadata, error);
}

/* Copy the properties of an item of FILE, and set the coding in that of its colours. Add how a reader turns it upright:
 * by quarter turns to the left, and then mirrored top to bottom (0) or left to right (1). */
static bool copy_properties(const struct heif_file *file, uint32_t id, const struct metadata *metadata,
                            struct blob *properties)
{
    static const struct {
        int8_t quarters, mirror;
    } turns[] = {{0, -1}, {0, -1}, {0, 1}, {2, -1}, {0, 0}, {3, 1}, {3, -1}, {3, 0}, {1, -1}};
    const int8_t *quarters = &turns[metadata->orientation].quarters, *mirror = &turns[metadata->orientation].mirror;
    struct heif_box rest = heif_properties_of(file, id), box;
    bool done = true;
    while (done && heif_next_property(file, &rest, &box)) {
        done = heif_append(properties, (const char *)box.type, box.data, box.size);
        uint8_t *nclx = done ? properties->bytes + properties->size - box.size : NULL;
        if (done && is_nclx(&box) && (metadata->has_coding || metadata->has_srgb)) {
            nclx[NCLX_PRIMARIES] = metadata->has_coding ? metadata->coding[0] : 1;
            nclx[NCLX_TRANSFER] = metadata->has_coding ? metadata->coding[1] : 13;
        }
    }
    return done && (*quarters == 0 || heif_append(properties, "irot", quarters, 1)) &&
           (*mirror < 0 || heif_append(properties, "imir", mirror, 1));
}

/* The file has the picture, GREY or not, and perhaps its alpha: it is written anew with more items and properties. */
static bool write_items(const struct metadata *metadata, bool grey, uint8_t **bytes, size_t *size, uint64_t *dropped,
                        struct error *error)
{
    enum { PICTURES = 2, ITEMS = 4 };
    static const char xmp_type[] = "mime\0" XMP_KIND;
    const struct heif_file file = heif_open(*bytes, *size);
    const struct blob *xmp = &metadata->xmp;
    struct heif_new_item items[ITEMS] = {{0}};
    struct heif_box rest = file.items;
    struct heif_item item;
    struct blob exif = {0}, icc = {0}, out = {0};
    const bool has_icc = metadata_has_icc_for(metadata, grey, dropped);
    if (!has_icc && metadata->exif.size + xmp->size == 0 && !metadata->has_coding && !metadata->has_srgb &&
        metadata->orientation <= 1)
        return true;
    bool done = true;
    size_t count = 1;
    while (done && heif_next_item(&rest, &item)) {
        const bool is_picture = item.id == file.primary;
        if (!is_picture && count == PICTURES)
            continue;
        struct heif_new_item *to = is_picture ? items : &items[count++];
        *to = (struct heif_new_item){.type = "av01", .type_size = 5, .reference = is_picture ? NULL : "auxl"};
        done = heif_locate(&file, item.id, &to->data) && copy_properties(&file, item.id, metadata, &to->properties);
    }
    if (has_icc)
        done = done && blob_append(&icc, "prof", 4) && blob_append(&icc, metadata->icc.bytes, metadata->icc.size) &&
               heif_append(&items[0].properties, "colr", icc.bytes, icc.size);
    if (metadata->exif.size > 0) {
        done = done && blob_append(&exif, "\0\0\0", 4) && blob_append(&exif, metadata->exif.bytes, metadata->exif.size);
        struct blob block = {.bytes = done ? exif.bytes + 4 : NULL, .size = done ? exif.size - 4 : 0};
        exif_set_upright(&block);
        items[count++] = (struct heif_new_item){
            .type = "Exif", .type_size = 5, .reference = "cdsc", .data = {.data = exif.bytes, .size = exif.size}};
    }
    if (xmp->size > 0)
        items[count++] = (struct heif_new_item){.type = xmp_type,
                                                .type_size = sizeof xmp_type,
                                                .reference = "cdsc",
                                                .data = {.data = xmp->bytes, .size = xmp->size}};
    done = done && heif_write(&file, items, count, &out);
    for (size_t i = 0; i < count; i++)
        blob_free(&items[i].properties);
    blob_free(&exif);
    blob_free(&icc);
    if (!done) {
        blob_free(&out);
        return error_no_memory(error, "metadata");
    }
    free(*bytes);
    *bytes = out.bytes;
    *size = out.size;
    return true;
}

bool metadata_write_avif(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct codec_info info = {.page = 0};
    struct adapted adapted;
    if (!heif_check(*bytes, *size, "the output", &info, error))
        return false;
    const bool grey = info.channels <= 2;
    bool done = metadata_adapt(metadata, METADATA_OF_AVIF, grey, &adapted, dropped);
    done =
        done ? write_items(&adapted.metadata, grey, bytes, size, dropped, error) : error_no_memory(error, "metadata");
    metadata_adapted_free(&adapted);
    return done;
}
