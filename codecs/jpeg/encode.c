/* SPDX-License-Identifier: MIT */
#include "jpeg/encode_loops.h"

#include "jpeg/lookup.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tables ---- */

const struct jpeg_encode_loops *jpeg_encode_loops_for(enum instruction_set set)
{
    static const struct jpeg_encode_loops *const all[INSTRUCTION_SETS] =
        LOOPS_BY_SET(jpeg_encode, avx512, avx512, neon);
    return all[set];
}

/* The reciprocal is 2^shift / divisor, rounded upwards to 2^15 up to 2^16 - 1. A test divides every magnitude. */
static void set_divisors(const uint16_t quantisers[JPEG_BLOCK], struct jpeg_divisors *divisors)
{
    for (int i = 0; i < JPEG_BLOCK; i++) {
        const unsigned divisor = 8u * quantisers[i];
        const int shift = 15 + 32 - __builtin_clz(divisor - 1);
        divisors->bias[i] = (uint16_t)(divisor / 2);
        divisors->reciprocal[i] = (uint16_t)(((1u << shift) - 1) / divisor + 1);
        divisors->scale[i] = (uint16_t)(1u << (32 - shift));
    }
}

/* The codes of runs with small values, and these values after them (T.81, F.1.2.2). */
static void set_small_codes(struct jpeg_codes *codes)
{
    for (int run = 0; run < 16; run++)
        for (int value = -JPEG_SMALL; value < JPEG_SMALL; value++) {
            const int count = count_bits(value);
            const uint32_t code = codes->ac[run << 4 | count];
            codes->small[run][value + JPEG_SMALL] =
                ((code & 0xffff) << count | value_bits(value, count)) << 8 | code >> 16;
        }
}

struct jpeg_encoder *jpeg_encoder_open(const struct jpeg_layout *layout)
{
    enum instruction_set set;
    instruction_set_find(&set, NULL); /* the variant `cpu` reports an error of $GPUCONV_CPU */
    struct jpeg_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL)
        return NULL;
    encoder->layout = *layout;
    encoder->bands = calloc((size_t)layout->mcus_down, sizeof *encoder->bands);
    if (encoder->bands == NULL || !jpeg_append_headers(&encoder->file.blob, layout)) {
        jpeg_encoder_close(encoder);
        return NULL;
    }
    encoder->loops = jpeg_encode_loops_for(set);
    for (int i = 0; i < 2; i++) {
        const struct jpeg_component *component = &layout->components[i < layout->component_count ? i : 0];
        struct jpeg_codes *codes = &encoder->codes[i];
        set_divisors(layout->tables.quantisers[component->quantiser], &encoder->divisors[i]);
        jpeg_symbol_codes(&layout->tables.dc[component->dc], codes->dc, 16);
        jpeg_symbol_codes(&layout->tables.ac[component->ac], codes->ac, 256);
        set_small_codes(codes);
    }
    return encoder;
}

void jpeg_encoder_close(struct jpeg_encoder *encoder)
{
    if (encoder == NULL)
        return;
    for (int i = 0; encoder->bands != NULL && i < encoder->layout.mcus_down; i++)
        free(encoder->bands[i]);
    free(encoder->bands);
    blob_free(&encoder->file.blob);
    free(encoder);
}

/* ---- Bands ---- */

/* The bits of some rows of MCUs, which do not depend on other bands. The DC values of the first MCU cannot be coded
 * without the band above, so that MCU is not in the bits. */
struct jpeg_band {
    int16_t first[JPEG_MCU_BLOCKS_MAX][JPEG_BLOCK]; /* the blocks of the first MCU, as in struct jpeg_blocks */
    uint64_t first_nonzero[JPEG_MCU_BLOCKS_MAX];
    int last_dc[JPEG_COMPONENTS_MAX]; /* the DC of each component's last block in the band */
    uint64_t bit_count;
    uint8_t bits[]; /* the codes of all MCUs but the first, without stuffed bytes */
};

struct growth {
    struct jpeg_band *band;
    size_t capacity; /* bytes that the band's bits may take */
    struct jpeg_bits bits;
};

/* Write the last bits to memory. Returns the number of all that began at BEGIN. */
static uint64_t bits_end(const struct jpeg_bits *bits, const uint8_t *begin)
{
    if (bits->count > 0)
        *bits->next = (uint8_t)(bits->pending << (8 - bits->count));
    return 8 * (uint64_t)(bits->next - begin) + (uint64_t)bits->count;
}

enum { TILE_BYTES = JPEG_TILE_BLOCKS * JPEG_BLOCK_BYTES_MAX + 16 }; /* the codes of a tile, and a word after them */

/* Extend the band, so that it can hold the codes of another tile. */
static bool reserve_tile(struct growth *growth)
{
    const size_t used = growth->band != NULL ? (size_t)(growth->bits.next - growth->band->bits) : 0;
    if (growth->band != NULL && growth->capacity - used >= TILE_BYTES)
        return true;
    const size_t capacity = 2 * growth->capacity + TILE_BYTES;
    struct jpeg_band *larger = realloc(growth->band, sizeof *larger + capacity);
    if (larger == NULL)
        return false;
    growth->band = larger;
    growth->capacity = capacity;
    growth->bits.next = larger->bits + used;
    return true;
}

/* Keep the first MCU of the band, and let the next one follow it. */
static void keep_first(const struct jpeg_layout *layout, const struct jpeg_blocks *blocks, struct jpeg_band *band,
                       int predictors[JPEG_COMPONENTS_MAX])
{
    for (int i = 0; i < layout->mcu_blocks; i++) {
        memcpy(band->first[i], blocks->coefficients[i], sizeof band->first[i]);
        band->first_nonzero[i] = blocks->nonzero[i];
        predictors[layout->mcu_components[i]] = blocks->coefficients[i][0];
    }
}

/* Encode a row of MCUs: ROWS rows of pixels. */
static bool encode_row(const struct jpeg_encoder *encoder, const uint8_t *samples, int rows, bool is_first,
                       int predictors[JPEG_COMPONENTS_MAX], struct growth *growth)
{
    struct jpeg_blocks blocks;
    const int width = encoder->layout.width, channels = encoder->layout.component_count;
    for (int x = 0; x < width; x += JPEG_TILE) {
        const struct jpeg_tile tile = {
            .samples = samples + (size_t)x * (size_t)channels,
            .row_bytes = (size_t)width * (size_t)channels,
            .channels = channels,
            .columns = width - x,
            .rows = rows,
        };
        const bool keep = is_first && x == 0;
        const int mcus = encoder->loops->transform(&encoder->layout, encoder->divisors, &tile, &blocks);
        if (!reserve_tile(growth))
            return false;
        if (keep)
            keep_first(&encoder->layout, &blocks, growth->band, predictors);
        encoder->loops->encode(&encoder->layout, encoder->codes, &blocks, keep, mcus, predictors, &growth->bits);
    }
    return true;
}

bool jpeg_encode_band(struct jpeg_encoder *encoder, int first, int rows, const uint8_t *samples)
{
    const int mcu_height = JPEG_SIDE * encoder->layout.vertical;
    const size_t row_bytes = (size_t)encoder->layout.width * (size_t)encoder->layout.component_count;
    int predictors[JPEG_COMPONENTS_MAX] = {0};
    struct growth growth = {.capacity = (size_t)rows * row_bytes / 8};
    if (!reserve_tile(&growth))
        return false;
    for (int y = 0; y < rows; y += mcu_height) {
        const int some = rows - y < mcu_height ? rows - y : mcu_height;
        if (!encode_row(encoder, samples + (size_t)y * row_bytes, some, y == 0, predictors, &growth)) {
            free(growth.band);
            return false;
        }
    }
    struct jpeg_band *band = growth.band;
    memcpy(band->last_dc, predictors, sizeof predictors);
    band->bit_count = bits_end(&growth.bits, band->bits);
    struct jpeg_band *smaller = realloc(band, sizeof *band + (size_t)(band->bit_count / 8) + 1);
    encoder->bands[first / mcu_height] = smaller != NULL ? smaller : band;
    return true;
}

/* ---- Joining ---- */

static bool has_ff(uint64_t bytes)
{
    const uint64_t ones = UINT64_MAX / 255, inverse = ~bytes;
    return ((inverse - ones) & bytes & ones << 7) != 0;
}

/* Append a byte, and 0 to FF. Two bytes are written. */
static uint8_t *put_byte(uint8_t *to, uint64_t byte)
{
    to[0] = (uint8_t)byte;
    to[1] = 0;
    return to + 1 + (byte == 0xff);
}

/* Write the 8 bytes of WORD as put_byte does, the highest first. */
static uint8_t *put_word(uint8_t *to, uint64_t word)
{
    const uint64_t bytes = htobe64(word);
    if (has_ff(word)) {
        for (int shift = 56; shift >= 0; shift -= 8)
            to = put_byte(to, word >> shift & 255);
        return to;
    }
    memcpy(to, &bytes, sizeof bytes);
    return to + sizeof bytes;
}

bool jpeg_file_append_bits(struct jpeg_file *file, const uint8_t *bits, uint64_t count)
{
    const int shift = file->pending_count;
    const uint64_t mask = ((uint64_t)1 << shift) - 1;
    uint64_t pending = file->pending;
    uint8_t *to = blob_extend(&file->blob, (size_t)(count / 8) * 2 + 16); /* all may be FF; and 8 after the last */
    if (to == NULL)
        return false;
    for (; count >= 64; count -= 64, bits += 8) {
        uint64_t word;
        memcpy(&word, bits, sizeof word);
        word = be64toh(word);
        to = put_word(to, shift > 0 ? pending << (64 - shift) | word >> shift : word);
        pending = word & mask;
    }
    for (; count >= 8; count -= 8, bits++) {
        pending = pending << 8 | *bits;
        to = put_byte(to, pending >> shift & 255);
        pending &= mask;
    }
    file->pending = pending << count | (count > 0 ? (uint64_t)*bits >> (8 - count) : 0);
    file->pending_count += (int)count;
    if (file->pending_count >= 8) {
        file->pending_count -= 8;
        to = put_byte(to, file->pending >> file->pending_count & 255);
        file->pending &= ((uint64_t)1 << file->pending_count) - 1;
    }
    file->blob.size = (size_t)(to - file->blob.bytes);
    return true;
}

static bool write_band(struct jpeg_encoder *encoder, const struct jpeg_band *band)
{
    struct jpeg_file *file = &encoder->file;
    const size_t mcu_blocks = (size_t)encoder->layout.mcu_blocks;
    struct jpeg_blocks blocks;
    uint8_t first[JPEG_MCU_BLOCKS_MAX * JPEG_BLOCK_BYTES_MAX + 16] = {0};
    struct jpeg_bits bits = {.next = first};
    memcpy(blocks.coefficients, band->first, mcu_blocks * sizeof *band->first);
    memcpy(blocks.nonzero, band->first_nonzero, mcu_blocks * sizeof *band->first_nonzero);
    encoder->loops->encode(&encoder->layout, encoder->codes, &blocks, 0, 1, file->predictors, &bits);
    memcpy(file->predictors, band->last_dc, sizeof file->predictors);
    return jpeg_file_append_bits(file, first, bits_end(&bits, first)) &&
           jpeg_file_append_bits(file, band->bits, band->bit_count);
}

bool jpeg_write_bands(struct jpeg_encoder *encoder, int first, int rows)
{
    const int mcu_height = JPEG_SIDE * encoder->layout.vertical;
    for (int i = first / mcu_height; i <= (first + rows - 1) / mcu_height; i++) {
        struct jpeg_band **band = &encoder->bands[i];
        if (*band == NULL)
            continue; /* a band of several rows of MCUs has begun above */
        if (!write_band(encoder, *band))
            return false;
        free(*band);
        *band = NULL;
    }
    return true;
}

size_t jpeg_encoder_size(const struct jpeg_encoder *encoder)
{
    return encoder->file.blob.size;
}

bool jpeg_encoder_finish(struct jpeg_encoder *encoder, uint8_t **bytes, size_t *size)
{
    const uint8_t ones = 0xff; /* fill the last byte */
    struct jpeg_file *file = &encoder->file;
    if ((file->pending_count > 0 && !jpeg_file_append_bits(file, &ones, 8 - (unsigned)file->pending_count)) ||
        !jpeg_append_end(&file->blob))
        return false;
    *bytes = file->blob.bytes;
    *size = file->blob.size;
    file->blob = (struct blob){0};
    return true;
}
