/* SPDX-License-Identifier: MIT
 *
 * Metadata in the chunks of a WebP: a profile, EXIF and XMP. */
#include "metadata/metadata_internal.h"

#include "container/check.h"

bool metadata_read_webp(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    struct webp_walk walk = webp_walk_begin(bytes);
    static const char picture[] = "VP8X VP8L ALPH VP8  ANIM ANMF ICCP";
    struct webp_chunk chunk;
    bool done = true;
    (void)size;
    metadata->orientation = 1;
    while (done && webp_walk_next(&walk, &chunk)) {
        if (webp_chunk_is(&chunk, "ICCP") && metadata->icc.size == 0)
            done = metadata_add_icc(metadata, chunk.data, chunk.size);
        else if (webp_chunk_is(&chunk, "EXIF"))
            done = metadata_add_exif(metadata, chunk.data, chunk.size);
        else if (webp_chunk_is(&chunk, "C2PA"))
            metadata_drop(metadata, METADATA_C2PA, METADATA_UNKNOWN);
        else if (webp_chunk_is(&chunk, "XMP "))
            done = metadata_add_xmp(metadata, chunk.data, chunk.size);
        else if (memmem(picture, sizeof picture, chunk.type, 4) == NULL)
            metadata_drop(metadata, METADATA_CHUNK, METADATA_UNKNOWN);
    }
    return metadata_read_end(done, metadata, error);
}

/* Append VP8X, unless the file has it, and the profile, which belongs before the picture. */
static bool append_head(const struct metadata *metadata, const struct codec_info *info, unsigned flags,
                        bool is_extended, struct blob *out)
{
    uint8_t data[WEBP_EXTENDED_DATA] = {(uint8_t)flags};
    bytes_put_number(data + 4, 3, false, (uint32_t)info->width - 1);
    bytes_put_number(data + 7, 3, false, (uint32_t)info->height - 1);
    return (is_extended || webp_chunk_append(out, "VP8X", data, sizeof data)) &&
           (!(flags & WEBP_ICC) || webp_chunk_append(out, "ICCP", metadata->icc.bytes, metadata->icc.size));
}

static bool write_chunks(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct webp_walk walk = webp_walk_begin(*bytes);
    struct webp_chunk chunk;
    struct codec_info info = {.page = 0};
    struct blob head = {0}, tail = {0};
    const bool is_extended = webp_walk_next(&walk, &chunk) && webp_chunk_is(&chunk, "VP8X");
    const unsigned flags = (metadata_has_icc_for(metadata, false, dropped) ? WEBP_ICC : 0U) |
                           (metadata->exif.size > 0 ? WEBP_EXIF : 0U) | (metadata->xmp.size > 0 ? WEBP_XMP : 0U);
    if (flags == 0)
        return true;
    if (!webp_check(*bytes, *size, "the output", &info, error))
        return false;
    if (is_extended)
        (*bytes)[chunk.data - *bytes] |= (uint8_t)flags;
    const bool done = append_head(metadata, &info, flags | (info.webp.has_alpha ? WEBP_ALPHA : 0U), is_extended, &head);
    const struct blob *exif = &metadata->exif, *xmp = &metadata->xmp;
    const bool tail_done = (exif->size == 0 || webp_chunk_append(&tail, "EXIF", exif->bytes, exif->size)) &&
                           (xmp->size == 0 || webp_chunk_append(&tail, "XMP ", xmp->bytes, xmp->size));
    const bool has_tail = metadata_insert(tail_done, &tail, *size, bytes, size, error);
    if (!metadata_insert(done && has_tail, &head, is_extended ? walk.at : WEBP_HEAD, bytes, size, error))
        return false;
    bytes_put_number(*bytes + 4, 4, false, (uint32_t)(*size - WEBP_CHUNK_HEAD));
    return true;
}

bool metadata_write_webp(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct adapted adapted;
    bool done = metadata_adapt(metadata, METADATA_OF_WEBP, false, &adapted, dropped);
    done = done ? write_chunks(&adapted.metadata, bytes, size, dropped, error) : error_no_memory(error, "metadata");
    metadata_adapted_free(&adapted);
    return done;
}
