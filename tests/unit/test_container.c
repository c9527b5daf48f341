/* SPDX-License-Identifier: MIT
 *
 * The walkers over PNG's chunks, JPEG's segments and TIFF's directories, what puts one together, and inflation: each
 * step by name, and each cut of a file; and the least data of a picture. test_codec.c has the checks' messages. */
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "container/check.h"
#include "container/jpeg.h"
#include "container/other_content.h"
#include "container/png.h"
#include "container/tiff.h"
#include "container/zlib.h"

/* ---- PNG ---- */

/* A signature, IHDR of 13 bytes, an empty tEXt, IEND, and a chunk after it. */
static struct blob make_png(void)
{
    static const uint8_t header[PNG_HEADER_DATA] = {0, 0, 1, 2, 0, 0, 0, 3, 8, PNG_COLOUR, 0, 0, 1};
    struct blob png = {0};
    assert_true(blob_append(&png, png_signature, PNG_SIGNATURE));
    assert_true(png_chunk_append(&png, "IHDR", header, sizeof header));
    assert_true(png_chunk_append(&png, "tEXt", NULL, 0));
    assert_true(png_chunk_append(&png, "IEND", NULL, 0));
    assert_true(png_chunk_append(&png, "tEXt", "late", 4));
    return png;
}

static void test_png_walk(void **state)
{
    struct blob png = make_png();
    struct png_walk walk = png_walk_begin(png.bytes, png.size);
    struct png_chunk chunk;
    (void)state;
    assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_CHUNK);
    assert_int_equal(chunk.at, 8);
    assert_int_equal(chunk.size, PNG_HEADER_DATA);
    assert_true(png_chunk_is(&chunk, "IHDR") && !png_chunk_is(&chunk, "IEND"));
    assert_true(png_chunk_crc_fits(&chunk));
    assert_ptr_equal(chunk.data, png.bytes + 16);
    const struct png_header header = png_file_header(png.bytes);
    assert_int_equal(header.width, 258);
    assert_int_equal(header.height, 3);
    assert_int_equal(header.bits, 8);
    assert_int_equal(header.colour, PNG_COLOUR);
    assert_int_equal(header.interlace, 1);
    png.bytes[16] ^= 1;
    assert_false(png_chunk_crc_fits(&chunk));
    assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_CHUNK);
    assert_int_equal(chunk.at, 33);
    assert_int_equal(chunk.size, 0);
    assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_CHUNK);
    assert_true(png_chunk_is(&chunk, "IEND"));
    for (int i = 0; i < 2; i++) /* and stays there */
        assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_END);
    blob_free(&png);
}

/* A walk over the first SIZE bytes ends with STEP, after COUNT chunks. */
static void check_png(const struct blob *png, size_t size, int count, enum png_step step)
{
    struct png_walk walk = png_walk_begin(png->bytes, size);
    struct png_chunk chunk;
    enum png_step last;
    int found = 0;
    while ((last = png_walk_next(&walk, &chunk)) == PNG_STEP_CHUNK)
        found++;
    assert_int_equal(found, count);
    assert_int_equal(last, step);
}

static void test_png_damage(void **state)
{
    struct blob png = make_png();
    const size_t second = 33, third = 45, end = 57;
    (void)state;
    for (size_t size = PNG_SIGNATURE; size < end; size++) {
        const int count = size >= third ? 2 : size >= second ? 1 : 0;
        const bool truncated = count == 0 && size >= PNG_SIGNATURE + PNG_CHUNK_OVERHEAD;
        check_png(&png, size, count, truncated ? PNG_STEP_TRUNCATED : PNG_STEP_NO_CHUNK);
    }
    check_png(&png, end, 3, PNG_STEP_END);
    png.bytes[second + 6] = '1';
    check_png(&png, png.size, 1, PNG_STEP_NO_TYPE);
    png.bytes[second + 6] = 'X';
    png.bytes[second] = 0x80;
    check_png(&png, png.size, 1, PNG_STEP_TOO_LONG);
    png.bytes[second] = 0x7f;
    check_png(&png, png.size, 1, PNG_STEP_TRUNCATED);
    blob_free(&png);
}

/* ---- JPEG ---- */

static const uint8_t jpeg[] = {
    0xff, 0xd8,                            /* SOI */
    0xff, 0xe0, 0,    4,    'a',  'b',     /* APP0 */
    0x00, 0xff, 0xff, 0xff, 0xfe, 0,    2, /* a byte that is ignored, then COM after two fill bytes */
    0xff, 0xda, 0,    3,    'c',           /* SOS */
    1,    0xff, 0,    2,    0xff, 0xd3, 3, /* data, a stuffed FF, a restart */
    0xff, 0xc4, 0,    2,                   /* DHT */
    0xff, 0xd9, 0xff, 0xe1,                /* EOI, and bytes after it */
};

static void test_jpeg_walk(void **state)
{
    static const struct {
        unsigned marker;
        size_t at, size;
    } expected[] = {
        {JPEG_MARKER_APP0, 2, 2}, {JPEG_MARKER_COM, 9, 0}, {JPEG_MARKER_SOS, 15, 1}, {JPEG_MARKER_DHT, 27, 0}};
    struct jpeg_walk walk = jpeg_walk_begin(jpeg, sizeof jpeg);
    struct jpeg_segment segment;
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(jpeg_walk_next(&walk, &segment), JPEG_STEP_SEGMENT);
        assert_int_equal(segment.marker, expected[i].marker);
        assert_int_equal(segment.at, expected[i].at);
        assert_int_equal(segment.size, expected[i].size);
    }
    assert_int_equal(jpeg_walk_next(&walk, &segment), JPEG_STEP_END);
    walk = jpeg_walk_begin(jpeg, sizeof jpeg);
    int headers = 0;
    while (jpeg_walk_headers(&walk, &segment))
        headers++;
    assert_int_equal(headers, 2);
    assert_false(jpeg_walk_headers(&walk, &segment)); /* and stays there */
}

/* The first step of a walk over the SIZE bytes of a JPEG is STEP. */
static void check_jpeg(const char *bytes, size_t size, enum jpeg_step step)
{
    struct jpeg_walk walk = jpeg_walk_begin((const uint8_t *)bytes, size);
    struct jpeg_segment segment;
    assert_int_equal(jpeg_walk_next(&walk, &segment), step);
}

static void test_jpeg_damage(void **state)
{
    (void)state;
    check_jpeg("\xff\xd8", 2, JPEG_STEP_NO_END);
    check_jpeg("\xff\xd8\xff\xff", 4, JPEG_STEP_NO_END);
    check_jpeg("\xff\xd8\xff\xe0\0", 5, JPEG_STEP_NO_END);
    check_jpeg("\xff\xd8\xff\xd0\0\2", 6, JPEG_STEP_NOT_ALLOWED);
    check_jpeg("\xff\xd8\xff\xd8\0\2", 6, JPEG_STEP_NOT_ALLOWED);
    check_jpeg("\xff\xd8\xff\1\0\2", 6, JPEG_STEP_NOT_ALLOWED);
    check_jpeg("\xff\xd8\xff\xe0\0\1", 6, JPEG_STEP_TOO_SHORT);
    check_jpeg("\xff\xd8\xff\xe0\0\3", 6, JPEG_STEP_TRUNCATED);
    check_jpeg("\xff\xd8\xff\xe0\0\3x", 7, JPEG_STEP_SEGMENT);
    check_jpeg("\xff\xd8\xff\xd9", 4, JPEG_STEP_END);
    for (size_t size = 2; size < sizeof jpeg - 2; size++) { /* no cut ends well */
        struct jpeg_walk walk = jpeg_walk_begin(jpeg, size);
        struct jpeg_segment segment;
        enum jpeg_step step;
        while ((step = jpeg_walk_next(&walk, &segment)) == JPEG_STEP_SEGMENT)
            ;
        assert_true(step == JPEG_STEP_NO_END || step == JPEG_STEP_TRUNCATED);
    }
    for (unsigned marker = 0; marker < 256; marker++)
        assert_int_equal(jpeg_is_frame(marker), marker >> 4 == 12 && marker % 4 != 0 ? 1 : marker == 0xc0);
}

static void test_jpeg_append(void **state)
{
    struct blob out = {0};
    (void)state;
    assert_true(jpeg_segment_append(&out, JPEG_MARKER_APP1, "head", 5, (const uint8_t *)"xyz", 3));
    assert_int_equal(out.size, 12);
    assert_memory_equal(out.bytes, "\xff\xe1\0\12head\0xyz", 12);
    blob_free(&out);
}

/* An index with a number that lies about its size, offset or fields is read without harm, and hides nothing. */
static void test_index_of_pictures(void **state)
{
    static const uint8_t file[] = {
        'M',  'P',  'F',  0,    'M', 'M', 0, '*', 0, 0,  0, 8, /* the name; TIFF from byte 4, its directory at 8 */
        0,    1,    0xb0, 2,    0,   7,   0, 0,   0, 16, 0, 0,  0, 26, 0, 0, 0, 0, /* one field: 16 bytes at 26 */
        0,    1,    0,    1,    0,   0,   0, 5,   0, 0,  0, 42, 0, 0,  0, 0,       /* a preview of 5 bytes at 42 */
        0xff, 0xd8, 0xff, 0xd9, 1,   0xff};
    const size_t end = sizeof file - 6;
    uint8_t bytes[sizeof file];
    struct jpeg_segment index = {.marker = JPEG_MARKER_APP2, .data = bytes, .size = end};
    (void)state;
    memcpy(bytes, file, sizeof file);
    assert_true(container_is_picture_index(&index));
    assert_int_equal(container_other_content_behind(bytes, sizeof bytes, end, &index), 0);
    for (size_t i = 8; i < end; i++) {
        static const uint8_t values[] = {0, 1, 0x7f, 0xff};
        for (size_t v = 0; v < sizeof values; v++) {
            bytes[i] = values[v];
            container_other_content_behind(bytes, sizeof bytes, end, &index);
            bytes[i] = file[i];
        }
    }
    memset(bytes + 20, 0xff, 10); /* the field's size and offset */
    assert_int_equal(container_other_content_behind(bytes, sizeof bytes, end, &index),
                     1 << OTHER_PICTURES | 1 << OTHER_DATA);
    for (index.size = 5; index.size < end; index.size++)
        container_other_content_behind(bytes, sizeof bytes, end, &index);
    index.marker = JPEG_MARKER_APP1;
    assert_false(container_is_picture_index(&index));
}

/* ---- Data too few for the size ---- */

/* Append a scan of the components 1 to COUNT, or of ID alone, with SIZE bytes of data. */
static void append_scan(struct blob *out, unsigned count, unsigned id, unsigned first, unsigned last, size_t size)
{
    uint8_t header[12] = {(uint8_t)count};
    for (unsigned i = 0; i < count; i++)
        header[1 + 2 * i] = (uint8_t)(id + i);
    header[1 + 2 * count] = (uint8_t)first;
    header[2 + 2 * count] = (uint8_t)last;
    assert_true(jpeg_segment_append(out, JPEG_MARKER_SOS, header, 4 + 2 * count, NULL, 0));
    memset(blob_extend(out, size), 0, size);
}

static bool is_too_short(struct blob *file)
{
    struct codec_info info;
    assert_true(jpeg_check(file->bytes, file->size, "x", &info, NULL));
    blob_free(file);
    return info.is_too_short;
}

/* A JPEG of 33 x 17 pixels: FACTORS are the sampling factors of its components. */
static struct blob begin_jpeg(enum jpeg_marker marker, unsigned count, const uint8_t *factors)
{
    uint8_t frame[18] = {8, 0, 17, 0, 33, (uint8_t)count};
    struct blob file = {0};
    for (unsigned i = 0; i < count; i++) {
        frame[6 + 3 * i] = (uint8_t)(1 + i);
        frame[7 + 3 * i] = factors[i];
    }
    assert_true(blob_append(&file, "\xff\xd8", 2));
    assert_true(jpeg_segment_append(&file, marker, frame, 6 + 3 * count, NULL, 0));
    return file;
}

/* Baseline: two bits a block. 33 x 17 pixels are 5 x 3 blocks, halved 3 x 2. Progressive: a bit a block for DC. */
static void test_jpeg_data_fill_the_picture(void **state)
{
    static const struct {
        enum jpeg_marker marker;
        unsigned count;
        uint8_t factors[4];
        size_t bytes; /* that the picture needs at least */
    } cases[] = {
        {JPEG_MARKER_SOF0, 1, {0x11}, 4},
        {JPEG_MARKER_SOF0, 1, {0x22}, 4}, /* the factors of a single component do not count */
        {JPEG_MARKER_SOF0, 3, {0x11, 0x11, 0x11}, 12},
        {JPEG_MARKER_SOF0, 3, {0x22, 0x11, 0x11}, 7},
        {JPEG_MARKER_SOF0, 3, {0x21, 0x11, 0x11}, 9},
        {JPEG_MARKER_SOF0, 4, {0x11, 0x11, 0x11, 0x11}, 15},
        {JPEG_MARKER_SOF2, 1, {0x11}, 2},
        {JPEG_MARKER_SOF2, 3, {0x22, 0x11, 0x11}, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t bytes = cases[i].bytes - 1; bytes <= cases[i].bytes; bytes++) {
            const bool progressive = cases[i].marker == JPEG_MARKER_SOF2;
            struct blob file = begin_jpeg(cases[i].marker, cases[i].count, cases[i].factors);
            append_scan(&file, cases[i].count, 1, 0, progressive ? 0 : 63, bytes);
            if (progressive) /* nearly without data */
                append_scan(&file, 1, 1, 1, 63, 1);
            assert_true(blob_append(&file, "\xff\xd9", 2));
            assert_int_equal(is_too_short(&file), bytes < cases[i].bytes);
        }
}

/* Arithmetic codes need no data up to 2^22 bits of Huffman codes, two a block, or one for DC of a progressive file. */
static void test_arithmetic_data_fill_the_picture(void **state)
{
    (void)state;
    for (unsigned progressive = 0; progressive < 2; progressive++)
        for (unsigned over = 0; over < 2; over++) {
            struct blob file =
                begin_jpeg(progressive ? JPEG_MARKER_SOF10 : JPEG_MARKER_SOF9, 1, (const uint8_t *)"\x11");
            put_big16(file.bytes + 7, 8 * 2048 + over);            /* its height */
            put_big16(file.bytes + 9, progressive ? 16384 : 8192); /* and width */
            append_scan(&file, 1, 1, 0, progressive ? 0 : 63, 100);
            assert_true(blob_append(&file, "\xff\xd9", 2));
            assert_int_equal(is_too_short(&file), over);
        }
}

/* Each component has a scan with its DC coefficients. */
static void test_jpeg_data_fill_each_component(void **state)
{
    (void)state;
    for (unsigned missing = 0; missing < 4; missing++)
        for (unsigned progressive = 0; progressive < 2; progressive++) {
            struct blob file =
                begin_jpeg(progressive ? JPEG_MARKER_SOF2 : JPEG_MARKER_SOF0, 3, (const uint8_t *)"\x22\x11\x11");
            for (unsigned id = 1; id <= 3; id++)
                append_scan(&file, 1, id, missing == id && progressive ? 1 : 0, progressive ? 0 : 63,
                            missing == id && !progressive ? 0
                            : id == 1                     ? 4
                                                          : 2);
            assert_true(blob_append(&file, "\xff\xd9", 2));
            assert_int_equal(is_too_short(&file), missing > 0);
        }
}

/* The first scan of a coefficient and 13 that refine it are read, one more is not. */
static void test_jpeg_scans_of_a_coefficient(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int scans = 14 + i % 2;
        struct blob file = begin_jpeg(i < 2 ? JPEG_MARKER_SOF2 : JPEG_MARKER_SOF10, 1, (const uint8_t *)"\x11");
        struct codec_info info;
        struct error error = {0};
        append_scan(&file, 1, 1, 0, 0, 2);
        for (int j = 0; j < scans; j++)
            append_scan(&file, 1, 1, j % 2 == 0 ? 1 : 30, j % 2 == 0 ? 30 : 63, 1); /* all have coefficient 30 */
        assert_true(blob_append(&file, "\xff\xd9", 2));
        assert_int_equal(jpeg_check(file.bytes, file.size, "x", &info, &error), scans == 14);
        assert_int_equal(strstr(error.message, "more than 14 scans with one coefficient") != NULL, scans == 15);
        blob_free(&file);
    }
}

/* Deflate makes at most 1032 bytes of one. */
static void test_png_data_fill_the_picture(void **state)
{
    static const struct {
        uint8_t width, height, bits, colour, interlaced; /* sizes in units of 256 */
        size_t bytes;                                    /* that the picture needs at least */
    } cases[] = {
        {4, 4, 8, 0, 0, 1018}, {4, 4, 8, 0, 1, 1018}, {4, 4, 16, 6, 0, 8130},
        {4, 4, 8, 3, 0, 1018}, {4, 4, 1, 3, 0, 128},  {0, 4, 1, 0, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t bytes = cases[i].bytes - 1; bytes <= cases[i].bytes; bytes++) {
            const uint8_t header[] = {
                0, 0, cases[i].width,     cases[i].width == 0, 0, 0, cases[i].height, 0, cases[i].bits, cases[i].colour,
                0, 0, cases[i].interlaced};
            static const uint8_t zeros[10000];
            struct codec_info info;
            struct blob file = {0};
            assert_true(blob_append(&file, png_signature, PNG_SIGNATURE));
            assert_true(png_chunk_append(&file, "IHDR", header, sizeof header));
            if (cases[i].colour == 3)
                assert_true(png_chunk_append(&file, "PLTE", zeros, 3));
            assert_true(png_chunk_append(&file, "IDAT", zeros, bytes / 2));
            assert_true(png_chunk_append(&file, "IDAT", zeros, bytes - bytes / 2));
            assert_true(png_chunk_append(&file, "IEND", NULL, 0));
            assert_true(png_check(file.bytes, file.size, "x", &info, NULL));
            assert_int_equal(info.is_too_short, bytes < cases[i].bytes);
            blob_free(&file);
        }
}

/* ---- PNM ---- */

/* Blanks, comments and lines, as netpbm's pages pgm(5) and pam(5) allow them. */
static void test_pnm_headers(void **state)
{
    static const struct {
        const char *header;
        int width, height, channels, maxval;
    } cases[] = {
        {"P5 2 1 255 ", 2, 1, 1, 255},
        {"P5\r\n2\t1 \n255\r", 2, 1, 1, 255},
        {"P5\n2 1\n255\n", 2, 1, 1, 255},
        {"P6\n#\n# 9 9\n02#9\n 1 # 9\r255#\n", 2, 1, 3, 255},
        {"P5#P6\n00000000000000000000000000000000000000002 1 00001000\n", 2, 1, 1, 1000},
        {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n", 2, 1, 1, 1},
        {"P7\n# DEPTH 3\n\n ENDHDR#\n"
         "MAXVAL\t65535 \r\n  TUPLTYPE RGB_ALPHA\nDEPTH 4\nHEIGHT 1\nWIDTH 2\nENDHDR\n",
         0, 0, 0, 0},
        {"P7\n# DEPTH 3\n\nMAXVAL\t65535 \r\n  TUPLTYPE RGB_ALPHA\nDEPTH 4\nHEIGHT 1\nWIDTH 2\nENDHDR\n", 2, 1, 4,
         65535},
        {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\n", 2, 1, 2, 255},
        {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nTUPLTYPE ALPHA\nENDHDR\n", 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const uint8_t samples[2 * 4 * 2] = {'#'};
        const size_t bytes = (size_t)(2 * cases[i].channels) * (cases[i].maxval > 255 ? 2 : 1);
        struct codec_info info;
        struct blob file = {0};
        struct error error;
        assert_true(blob_append(&file, cases[i].header, strlen(cases[i].header)));
        assert_true(blob_append(&file, samples, bytes));
        const bool done = pnm_check(file.bytes, file.size, "x", &info, &error);
        if (done != (cases[i].width > 0))
            fail_msg("header %zu: %s", i, done ? "was read" : error.message);
        if (done) {
            assert_int_equal(info.width, cases[i].width);
            assert_int_equal(info.height, cases[i].height);
            assert_int_equal(info.channels, cases[i].channels);
            assert_int_equal(info.pnm.maxval, cases[i].maxval);
            assert_int_equal(info.pnm.samples, file.size - bytes);
            assert_false(pnm_check(file.bytes, file.size - 1, "x", &info, &error));
        }
        blob_free(&file);
    }
}

/* ---- zlib ---- */

static void test_inflate(void **state)
{
    static uint8_t zeros[100000], packed[1000], out[100001];
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    struct blob blob = {0};
    size_t used;
    (void)state;
    assert_non_null(compressor);
    const size_t size = libdeflate_zlib_compress(compressor, zeros, sizeof zeros, packed, sizeof packed);
    libdeflate_free_compressor(compressor);
    assert_in_range(size, 10, sizeof packed);
    assert_int_equal(zlib_inflate(packed, size, out, sizeof out, NULL, &used), ZLIB_DONE);
    assert_int_equal(used, sizeof zeros);
    assert_int_equal(zlib_inflate(packed, size + 1, out, sizeof out, NULL, &used), ZLIB_DONE); /* a byte after it */
    assert_int_equal(zlib_inflate(packed, size, out, sizeof zeros - 1, NULL, &used), ZLIB_TOO_LARGE);
    assert_int_not_equal(zlib_inflate(packed, size - 1, out, sizeof out, NULL, &used), ZLIB_DONE);
    assert_int_equal(zlib_inflate(packed, size / 2, out, sizeof out, NULL, &used), ZLIB_DAMAGED);
    assert_int_equal(zlib_inflate(packed, ZLIB_HEAD, out, sizeof out, NULL, &used), ZLIB_UNKNOWN);
    size_t whole = size + 1;
    assert_int_equal(zlib_inflate_blob(packed, &whole, sizeof zeros, &blob), ZLIB_DONE); /* after several sizes */
    assert_int_equal(whole, size);                                                       /* without the byte after it */
    assert_int_equal(blob.size, sizeof zeros);
    assert_memory_equal(blob.bytes, zeros, sizeof zeros);
    blob_free(&blob);
    assert_int_equal(zlib_inflate_blob(packed, &whole, sizeof zeros - 1, &blob), ZLIB_TOO_LARGE);
    assert_int_equal(blob.size, sizeof zeros - 1); /* what was tried */
    blob_free(&blob);
    packed[size - 1] ^= 1; /* the checksum */
    assert_int_equal(zlib_inflate(packed, size, out, sizeof out, NULL, &used), ZLIB_DAMAGED);
    packed[1] ^= 1; /* no longer a multiple of 31 */
    assert_int_equal(zlib_inflate(packed, size, out, sizeof out, NULL, &used), ZLIB_UNKNOWN);
}

/* ---- TIFF ---- */

enum { TIFF_ENTRIES = 3 };

/* A file with a directory of a number, a text of 9 bytes and a value of an unknown type; BIG is big-endian, WIDE is
 * BigTIFF. The text is at the end. */
static struct blob make_tiff(bool big, bool wide)
{
    static const uint8_t text[9] = "a text";
    const size_t word = wide ? 8 : 4, head = wide ? 16 : 8, entry = 4 + 2 * word, count = wide ? 8 : 2;
    const size_t directory = count + TIFF_ENTRIES * entry + word;
    struct blob tiff = {0};
    uint8_t *at = blob_extend(&tiff, head + directory);
    assert_non_null(at);
    memset(at, 0, head + directory);
    memcpy(at, big ? "MM" : "II", 2);
    bytes_put_number(at + 2, 2, big, wide ? 43 : 42);
    if (wide)
        bytes_put_number(at + 4, 2, big, 8);
    /* A number of 8 bytes has its 4 low bytes at the end or at the beginning. */
    const size_t low = wide && big ? 4 : 0;
    bytes_put_number(at + head - word + low, 4, big, (uint32_t)head);
    bytes_put_number(at + head + (wide ? low : 0), wide ? 4 : 2, big, TIFF_ENTRIES);
    at += head + count;
    for (unsigned i = 0; i < TIFF_ENTRIES; i++, at += entry) {
        static const unsigned types[TIFF_ENTRIES] = {TIFF_TYPE_LONG, TIFF_TYPE_BYTE, 99};
        bytes_put_number(at, 2, big, TIFF_TAG_WIDTH + i);
        bytes_put_number(at + 2, 2, big, types[i]);
        bytes_put_number(at + 4 + low, 4, big, i == 1 ? sizeof text : 1);
        if (i == 0)
            bytes_put_number(at + 4 + word, 4, big, 77); /* as long as an offset */
        if (i == 1)
            bytes_put_number(at + 4 + word + low, 4, big, (uint32_t)(head + directory));
    }
    assert_true(blob_append(&tiff, text, sizeof text));
    return tiff;
}

static void test_tiff_directories(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct blob tiff = make_tiff(kind & 1, kind & 2);
        const size_t entry = kind & 2 ? 20 : 12, first = kind & 2 ? 24 : 10;
        struct tiff_directory directory;
        struct tiff_entry found;
        assert_true(tiff_open_first(tiff.bytes, tiff.size, &directory));
        assert_true(directory.big == (kind & 1) && directory.wide == ((kind & 2) != 0) && directory.next == 0);
        assert_true(directory.count == TIFF_ENTRIES && tiff_start(&directory) == (kind & 2 ? 16 : 8));
        assert_int_equal(tiff_end(&directory), tiff.size - 9);
        assert_int_equal(tiff_find_number(&directory, TIFF_TAG_WIDTH, 5), 77);
        assert_int_equal(tiff_find_number(&directory, TIFF_TAG_XMP, 5), 5);
        assert_true(tiff_find(&directory, TIFF_TAG_HEIGHT, &found) && found.size == 9 && found.count == 9);
        assert_string_equal((const char *)found.value, "a text");
        assert_false(tiff_find(&directory, TIFF_TAG_BITS, &found)); /* its type is unknown */
        assert_int_equal(found.size, 0);
        /* Cut at each byte: only a damaged block has the entries that are there, and values in it. */
        for (size_t size = tiff.size - 1; size > 0; size--) {
            const size_t entries = size < first ? 0 : (size - first) / entry;
            const bool is_whole = entries >= TIFF_ENTRIES;
            assert_true(size < 8 || tiff_open_first(tiff.bytes, size, &directory) == is_whole);
            tiff_open_damaged(tiff.bytes, size, &directory);
            assert_true(directory.is_cut == !is_whole);
            assert_int_equal(directory.count, is_whole ? TIFF_ENTRIES : entries);
            assert_int_equal(tiff_find_number(&directory, TIFF_TAG_WIDTH, 5), entries > 0 ? 77 : 5);
            assert_false(tiff_find(&directory, TIFF_TAG_HEIGHT, &found));
            assert_int_equal(entries > 1 ? found.size : 9, 9); /* known, but not there */
        }
        blob_free(&tiff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_walk),
        cmocka_unit_test(test_png_damage),
        cmocka_unit_test(test_jpeg_walk),
        cmocka_unit_test(test_jpeg_damage),
        cmocka_unit_test(test_jpeg_append),
        cmocka_unit_test(test_jpeg_data_fill_the_picture),
        cmocka_unit_test(test_arithmetic_data_fill_the_picture),
        cmocka_unit_test(test_jpeg_data_fill_each_component),
        cmocka_unit_test(test_jpeg_scans_of_a_coefficient),
        cmocka_unit_test(test_png_data_fill_the_picture),
        cmocka_unit_test(test_pnm_headers),
        cmocka_unit_test(test_inflate),
        cmocka_unit_test(test_index_of_pictures),
        cmocka_unit_test(test_tiff_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
