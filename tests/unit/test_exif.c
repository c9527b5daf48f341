/* SPDX-License-Identifier: MIT
 *
 * EXIF built anew, in both byte orders: what is carried, what is dropped, what is made to agree with the picture, and
 * blocks that are cut, that lie, or that refer to themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metadata/metadata_internal.h"

enum { SHORT = 3, LONG = 4, RATIONAL = 5, ASCII = 2, UNDEFINED = 7 };
enum { ORIENTATION = 0x112, WIDTH = 0x100, X_RESOLUTION = 0x11a, Y_RESOLUTION = 0x11b, MAKE = 0x10f, EXIF = 0x8769 };
enum { GPS = 0x8825, INTEROP = 0xa005, MAKER_NOTE = 0x927c, SUBJECT_AREA = 0x9214, PIXELS_ACROSS = 0xa002 };

/* ---- Building and reading blocks ---- */

struct block {
    bool big; /* the byte order: the highest byte first */
    uint8_t bytes[1024];
    size_t size;
};

static void put(struct block *block, size_t at, uint32_t value, int count)
{
    for (int i = 0; i < count; i++)
        block->bytes[at + (size_t)(block->big ? count - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

static uint32_t get(const uint8_t *block, const uint8_t *at, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint32_t)at[block[0] == 'M' ? count - 1 - i : i] << 8 * i;
    return value;
}

/* Begin a block whose first directory follows. */
static struct block block_begin(bool big)
{
    struct block block = {.big = big, .size = 8};
    memcpy(block.bytes, big ? "MM\0*" : "II*\0", 4);
    put(&block, 4, 8, 4);
    return block;
}

/* Append a directory of COUNT empty entries, and return where it is. The offset of the next one, after it, is 0. */
static size_t add_directory(struct block *block, int count)
{
    const size_t at = block->size;
    put(block, at, (uint32_t)count, 2);
    block->size += 2 + 12 * (size_t)count + 4;
    assert_true(block->size <= sizeof block->bytes);
    return at;
}

/* Fill entry number INDEX of the directory at AT. VALUE is a number of TYPE, or where more bytes are. */
static void set_entry(struct block *block, size_t at, int index, unsigned tag, unsigned type, uint32_t count,
                      uint32_t value)
{
    const size_t entry = at + 2 + 12 * (size_t)index;
    put(block, entry, tag, 2);
    put(block, entry + 2, type, 2);
    put(block, entry + 4, count, 4);
    put(block, entry + 8, value, type == SHORT && count == 1 ? 2 : 4);
}

/* Append bytes, and return where they are. */
static uint32_t add_bytes(struct block *block, const void *bytes, size_t size)
{
    const size_t at = block->size;
    memcpy(block->bytes + at, bytes, size);
    block->size += size;
    assert_true(block->size <= sizeof block->bytes);
    return (uint32_t)at;
}

/* Append a rational number. */
static uint32_t add_rational(struct block *block, uint32_t numerator, uint32_t denominator)
{
    const uint32_t at = add_bytes(block, "12345678", 8);
    put(block, at, numerator, 4);
    put(block, at + 4, denominator, 4);
    return at;
}

/* Rebuild a block, from a copy of just its size so that a read beyond it is seen. */
static struct blob rebuild(const struct block *block, size_t size, bool turned)
{
    struct blob exif = {0};
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    memcpy(exact, block->bytes, size);
    struct metadata metadata = {0};
    assert_true(exif_rebuild(&metadata, exact, size, turned, &exif));
    free(exact);
    return exif;
}

/* The entry of TAG in the directory at AT of what was rebuilt, or NULL. */
static const uint8_t *find_entry(const struct blob *exif, size_t at, unsigned tag)
{
    const uint32_t count = get(exif->bytes, exif->bytes + at, 2);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = exif->bytes + at + 2 + 12 * i;
        if (get(exif->bytes, entry, 2) == tag)
            return entry;
    }
    return NULL;
}

static size_t first_directory(const struct blob *exif)
{
    return get(exif->bytes, exif->bytes + 4, 4);
}

/* ---- Tests ---- */

static void test_orientation(void **state)
{
    (void)state;
    for (uint32_t value = 0; value < 10; value++)
        for (int big = 0; big < 2; big++) {
            struct block block = block_begin(big);
            const size_t at = add_directory(&block, 1);
            set_entry(&block, at, 0, ORIENTATION, SHORT, 1, value);
            struct blob exif = rebuild(&block, block.size, false);
            const uint32_t carried = value >= 1 && value <= 8 ? value : 1;
            assert_int_equal(exif_orientation(&exif), carried);
            assert_int_equal(exif.bytes[big ? 8 + 2 + 8 + 1 : 8 + 2 + 8], carried); /* the first entry's number */
            exif_set_upright(&exif);
            assert_int_equal(exif_orientation(&exif), 1);
            blob_free(&exif);
            set_entry(&block, at, 0, ORIENTATION, LONG, 1, 6); /* an integer of another type */
            exif = rebuild(&block, block.size, false);
            assert_int_equal(exif_orientation(&exif), 6);
            exif_set_upright(&exif);
            assert_int_equal(exif_orientation(&exif), 1);
            blob_free(&exif);
        }
    const struct blob none = {0};
    assert_int_equal(exif_orientation(&none), 0);
}

/* A block of the image's directory with a text, EXIF's and GPS's below it, and a thumbnail after it. */
static struct block make_full(bool big)
{
    struct block block = block_begin(big);
    const size_t image = add_directory(&block, 6), below = add_directory(&block, 3), gps = add_directory(&block, 1);
    const size_t thumbnail = add_directory(&block, 1);
    const uint32_t make = add_bytes(&block, "A maker", 8), picture = add_bytes(&block, "UNFILTERED", 10);
    put(&block, image + 2 + 12 * 6, (uint32_t)thumbnail, 4);
    set_entry(&block, image, 0, WIDTH, SHORT, 1, 640);
    set_entry(&block, image, 1, MAKE, ASCII, 8, make);
    set_entry(&block, image, 2, X_RESOLUTION, RATIONAL, 1, add_rational(&block, 72, 1));
    set_entry(&block, image, 3, Y_RESOLUTION, RATIONAL, 1, add_rational(&block, 300, 2));
    set_entry(&block, image, 4, EXIF, LONG, 1, (uint32_t)below);
    set_entry(&block, image, 5, GPS, LONG, 1, (uint32_t)gps);
    set_entry(&block, below, 0, MAKER_NOTE, UNDEFINED, 10, picture);
    set_entry(&block, below, 1, SUBJECT_AREA, LONG, 1, 7);
    set_entry(&block, below, 2, PIXELS_ACROSS, SHORT, 1, 640);
    set_entry(&block, gps, 0, 0, LONG, 1, 0x02030000);
    set_entry(&block, thumbnail, 0, 0x201, LONG, 1, picture);
    return block;
}

static void test_carried(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool big = i & 1, turned = i & 2;
        const struct block block = make_full(big);
        struct blob exif = rebuild(&block, block.size, turned);
        assert_int_equal(exif.bytes[0], big ? 'M' : 'I');
        assert_false(bytes_contain(exif.bytes, exif.size, "UNFILTERED"));
        assert_true(bytes_contain(exif.bytes, exif.size, "A maker"));
        const size_t image = first_directory(&exif);
        const uint8_t *to_below = find_entry(&exif, image, EXIF);
        assert_non_null(to_below);
        assert_non_null(find_entry(&exif, image, GPS));
        assert_int_equal(get(exif.bytes, exif.bytes + image + 2 + 12 * 6, 4), 0); /* no thumbnail */
        const size_t below = get(exif.bytes, to_below + 8, 4);
        assert_null(find_entry(&exif, below, MAKER_NOTE));
        assert_int_equal(find_entry(&exif, below, SUBJECT_AREA) == NULL, turned);

        /* Once more changes nothing: what was built is carried as a whole. */
        struct blob again = {0};
        struct metadata metadata = {0};
        assert_true(exif_rebuild(&metadata, exif.bytes, exif.size, turned, &again));
        assert_int_equal(metadata.dropped, 0);
        assert_int_equal(again.size, exif.size);
        assert_memory_equal(again.bytes, exif.bytes, exif.size);
        blob_free(&again);
        blob_free(&exif);
    }
}

static void test_agreement(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        const struct block block = make_full(big);
        struct blob exif = rebuild(&block, block.size, false);
        exif_set_sides(&exif, 70000, 3);
        exif_swap_resolutions(&exif);
        const size_t image = first_directory(&exif);
        const uint8_t *width = find_entry(&exif, image, WIDTH), *x = find_entry(&exif, image, X_RESOLUTION);
        const uint8_t *y = find_entry(&exif, image, Y_RESOLUTION);
        const size_t below = get(exif.bytes, find_entry(&exif, image, EXIF) + 8, 4);
        assert_int_equal(get(exif.bytes, width + 2, 2), LONG); /* it had 16 bits */
        assert_int_equal(get(exif.bytes, width + 8, 4), 70000);
        assert_int_equal(get(exif.bytes, find_entry(&exif, below, PIXELS_ACROSS) + 8, 4), 70000);
        assert_null(find_entry(&exif, image, 0x101)); /* a height that was not there is not added */
        assert_int_equal(get(exif.bytes, exif.bytes + get(exif.bytes, x + 8, 4), 4), 300);
        assert_int_equal(get(exif.bytes, exif.bytes + get(exif.bytes, y + 8, 4), 4), 72);
        blob_free(&exif);
    }
}

/* A directory that refers to itself or upwards is followed once; of equal tags only the first counts. */
static void test_loops(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        struct block block = block_begin(big);
        const size_t image = add_directory(&block, 4), below = add_directory(&block, 2);
        set_entry(&block, image, 0, ORIENTATION, SHORT, 1, 6);
        set_entry(&block, image, 1, ORIENTATION, SHORT, 1, 3);
        set_entry(&block, image, 2, EXIF, LONG, 1, (uint32_t)below);
        set_entry(&block, image, 3, GPS, LONG, 1, (uint32_t)image);
        put(&block, image + 2 + 12 * 4, (uint32_t)image, 4);
        set_entry(&block, below, 0, INTEROP, LONG, 1, (uint32_t)below);
        set_entry(&block, below, 1, EXIF, LONG, 1, (uint32_t)image);
        struct blob exif = rebuild(&block, block.size, false);
        assert_int_equal(exif_orientation(&exif), 6);
        assert_in_range(exif.size, 8, 3 * block.size);
        blob_free(&exif);
    }
}

/* Every cut of a block, and every byte set to extremes: never a read beyond it, nor the picture. */
static void test_damage(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        const struct block block = make_full(big);
        for (size_t size = 0; size < block.size; size++) {
            struct blob exif = rebuild(&block, size, false);
            assert_int_equal(exif.size == 0, exif.bytes == NULL);
            blob_free(&exif);
        }
        for (size_t at = 0; at < block.size; at++)
            for (int value = 0; value < 256; value += 51) {
                struct block changed = block;
                changed.bytes[at] = (uint8_t)value;
                struct blob exif = rebuild(&changed, changed.size, value & 1);
                assert_in_range(exif_orientation(&exif), 0, 8);
                exif_set_upright(&exif);
                exif_set_sides(&exif, 1, 2);
                exif_swap_resolutions(&exif);
                blob_free(&exif);
            }
        struct block other = block;
        other.bytes[2] = 'x'; /* no TIFF */
        other.bytes[3] = 'x';
        struct blob none = rebuild(&other, other.size, false);
        assert_int_equal(none.size, 0);
    }
}

/* A format without metadata says which parts it drops, and no others. */
static void test_no_metadata(void **state)
{
    (void)state;
    for (unsigned part = 0; part < METADATA_BLOBS; part++) {
        struct metadata metadata = {.keep_text = true};
        uint64_t dropped;
        assert_true(metadata_add(&metadata, (enum metadata_part)part, "x", 1));
        assert_int_equal(metadata_bytes(&metadata), 1);
        assert_true(metadata_write_none(&metadata, NULL, NULL, &dropped, NULL));
        assert_int_equal(dropped, metadata_bit((enum metadata_part)part, METADATA_NOT_SUPPORTED));
        metadata_free(&metadata);
        assert_int_equal(metadata_bytes(&metadata), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orientation), cmocka_unit_test(test_carried), cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_loops),       cmocka_unit_test(test_damage),  cmocka_unit_test(test_no_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
