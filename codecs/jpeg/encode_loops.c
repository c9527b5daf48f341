/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the JPEG encoder, compiled once for each instruction set. All results are those of libjpeg-turbo:
 * its colour conversion (jccolor.c), subsampling (jcsample.c), forward transform ISLOW (jfdctint.c, after Loeffler,
 * Ligtenberg and Moschytz, 1989) and quantisation (jcdctmgr.c). Samples of 8 bits overflow no word on the way:
 *
 *     a sample less 128                                  at most 128
 *     a sum of 8 in the first pass, times 4              4096
 *     a sum of 8 of these in the second pass             32768: -32768 to 32512, and 2 more for rounding
 *     a coefficient times 8, and half a quantiser        8192 + 1021 */
#include "jpeg/encode_vectors.h"

#include <assert.h>
#include <endian.h>

/* Samples less 128 of all components, in full size, and then of chroma in its own. */
struct planes {
    _Alignas(64) int16_t rows[JPEG_COMPONENTS_MAX][2 * JPEG_SIDE][JPEG_TILE];
};

/* ---- Colours ---- */

enum { PIXEL = 3 }; /* bytes of a pixel that has colours */

/* 16-bit fractions of jccolor.c. Chroma is rounded to the nearest, and a half downwards. */
enum {
    HALF = 1 << 15,
    Y_RED = 19595,
    Y_GREEN = 38470,
    Y_BLUE = 7471,
    BLUE_RED = -11059,
    BLUE_GREEN = -21709,
    RED_GREEN = -27439,
    RED_BLUE = -5329,
};

#if VECTOR > 16

/* Eight shorts: A and B, interleaved. */
#define TWO(a, b) a, b, a, b, a, b, a, b

/* The bytes of four pixels as shorts: component A and component B of each pixel. */
#define PAIR(at, a, b) (at) + (a), 128, (at) + (b), 128
#define PAIRS(a, b)                                                                                                    \
    {                                                                                                                  \
        PAIR(0, a, b), PAIR(PIXEL, a, b), PAIR(2 * PIXEL, a, b), PAIR(3 * PIXEL, a, b)                                 \
    }

/* Four pixels a lane, as pairs of shorts: red and green, blue and green. */
struct pairs {
    shorts red_green, blue_green;
};

INLINE struct pairs load_pairs(const uint8_t *from)
{
    static const uint8_t indices[2][QUAD] = {PAIRS(0, 1), PAIRS(2, 1)};
    const void *quads[QUADS];
    for (int i = 0; i < QUADS; i++)
        quads[i] = from + (size_t)i * 8 * PIXEL;
    const shorts samples = load_quads(quads);
    return (struct pairs){shuffle(samples, load_quad(indices[0])), shuffle(samples, load_quad(indices[1]))};
}

/* Red times A + green times B + blue times C + green times D. */
INLINE ints weighted_sum(struct pairs pairs, const int16_t red_green[8], const int16_t blue_green[8])
{
    return multiply_pairs(pairs.red_green, load_quad(red_green)) +
           multiply_pairs(pairs.blue_green, load_quad(blue_green));
}

/* Green's weight in Y is beyond a word, so both pairs have a part. A half is -32768 of the negative. */
static const int16_t y_weights[2][8] = {{TWO(Y_RED, Y_GREEN - 16384)}, {TWO(Y_BLUE, 16384)}};
static const int16_t blue_weights[2][8] = {{TWO(-BLUE_RED, -BLUE_GREEN)}, {TWO(-HALF, 0)}};
static const int16_t red_weights[2][8] = {{TWO(-HALF, 0)}, {TWO(-RED_BLUE, -RED_GREEN)}};

/* A row of RGB. Up to 4 bytes after it are read. */
INLINE void convert_colours(const uint8_t *row, int16_t *y, int16_t *blue, int16_t *red)
{
    for (int x = 0; x < JPEG_TILE; x += VECTOR / 2) {
        const struct pairs a = load_pairs(row + (size_t)x * PIXEL);
        const struct pairs b = load_pairs(row + (size_t)(x + 4) * PIXEL);
        const int y_bias = HALF - (128 << 16), bias = HALF - 1;
        store_shorts(y + x, pack_small((weighted_sum(a, y_weights[0], y_weights[1]) + y_bias) >> 16,
                                       (weighted_sum(b, y_weights[0], y_weights[1]) + y_bias) >> 16));
        store_shorts(blue + x, pack_small((bias - weighted_sum(a, blue_weights[0], blue_weights[1])) >> 16,
                                          (bias - weighted_sum(b, blue_weights[0], blue_weights[1])) >> 16));
        store_shorts(red + x, pack_small((bias - weighted_sum(a, red_weights[0], red_weights[1])) >> 16,
                                         (bias - weighted_sum(b, red_weights[0], red_weights[1])) >> 16));
    }
}

#else

INLINE void convert_colours(const uint8_t *restrict row, int16_t *restrict y, int16_t *restrict blue,
                            int16_t *restrict red)
{
    for (int x = 0; x < JPEG_TILE; x++) {
        const uint8_t *rgb = row + (size_t)x * PIXEL;
        const int r = rgb[0], g = rgb[1], b = rgb[2];
        y[x] = (int16_t)((Y_RED * r + Y_GREEN * g + Y_BLUE * b + HALF - (128 << 16)) >> 16);
        blue[x] = (int16_t)((BLUE_RED * r + BLUE_GREEN * g + HALF * b + HALF - 1) >> 16);
        red[x] = (int16_t)((HALF * r + RED_GREEN * g + RED_BLUE * b + HALF - 1) >> 16);
    }
}

#endif

static void convert_to_ycc(const uint8_t *row, int channels, struct planes *planes, int at)
{
    int16_t *y = planes->rows[0][at];
    if (channels == PIXEL)
        convert_colours(row, y, planes->rows[1][at], planes->rows[2][at]);
    else
        for (int x = 0; x < JPEG_TILE; x++)
            y[x] = (int16_t)(row[x] - 128);
}

/* Convert the rows of TILE. Its last column is repeated up to the width of a tile. */
static void convert_tile_rows(const struct jpeg_tile *tile, struct planes *planes)
{
    enum { READ_BEHIND = 4 };
    const size_t pixel = (size_t)tile->channels, whole = JPEG_TILE * pixel + READ_BEHIND;
    const size_t row = (size_t)tile->columns * pixel;
    uint8_t padded[JPEG_TILE * PIXEL + READ_BEHIND] = {0};
    for (int y = 0; y < tile->rows; y++) {
        const uint8_t *samples = tile->samples + (size_t)y * tile->row_bytes;
        if (row < whole) {
            memcpy(padded, samples, row);
            for (size_t i = row; i < whole; i++)
                padded[i] = padded[i - pixel];
            samples = padded;
        }
        convert_to_ycc(samples, tile->channels, planes, y);
    }
}

/* ---- Chroma ---- */

/* Two columns of one or two rows to one sample. The bias alternates, 0 and 1 or 1 and 2, so that halves go both
 * ways. */
INLINE void halve_row(const int16_t *above, const int16_t *below, int rows, int16_t *to)
{
    static const int32_t biases[2][4] = {{0, 1, 0, 1}, {1, 2, 1, 2}};
    const shorts ones = (shorts){0} + 1;
    const ints bias = (ints)load_quad(biases[rows - 1]);
    for (int x = 0; x < JPEG_TILE; x += VECTOR) {
        shorts a = load_shorts(above + x), b = load_shorts(above + x + VECTOR / 2);
        if (rows == 2) {
            a += load_shorts(below + x);
            b += load_shorts(below + x + VECTOR / 2);
        }
        const ints first = (multiply_pairs(a, ones) + bias) >> rows, last = (multiply_pairs(b, ones) + bias) >> rows;
        store(to + x / 2, gather_halves((ints)pack_small(first, last)));
    }
}

/* The mean of HORIZONTAL x VERTICAL samples, a half rounded upwards. */
INLINE void average_row(const int16_t *const rows[2], int horizontal, int vertical, int16_t *to)
{
    const int count = horizontal * vertical, shift = __builtin_ctz((unsigned)count);
    for (int x = 0; x < JPEG_TILE / horizontal; x++) {
        int sum = count / 2;
        for (int v = 0; v < vertical; v++)
            for (int h = 0; h < horizontal; h++)
                sum += rows[v][horizontal * x + h];
        to[x] = (int16_t)(sum >> shift);
    }
}

/* Subsample a component in place. A row of the result ends before the rows that it is made of. */
static void subsample(int16_t (*rows)[JPEG_TILE], int count, int horizontal, int vertical)
{
    if (horizontal * vertical == 1)
        return;
    for (int y = 0; y < count; y++) {
        const int16_t *const from[2] = {rows[vertical * y], rows[vertical * y + vertical - 1]};
        if (horizontal == 2)
            halve_row(from[0], from[1], vertical, rows[y]);
        else
            average_row(from, horizontal, vertical, rows[y]);
    }
}

/* Repeat row LAST down to the row before END. */
static void repeat_row(int16_t (*rows)[JPEG_TILE], int last, int end)
{
    for (int y = last + 1; y < end; y++)
        memcpy(rows[y], rows[last], sizeof *rows);
}

/* ---- The transform ---- */

/* Fractions of 13 bits. */
enum {
    F_0_298 = 2446,
    F_0_390 = 3196,
    F_0_541 = 4433,
    F_0_765 = 6270,
    F_0_899 = 7373,
    F_1_175 = 9633,
    F_1_501 = 12299,
    F_1_847 = 15137,
    F_1_961 = 16069,
    F_2_053 = 16819,
    F_2_562 = 20995,
    F_3_072 = 25172,
};

INLINE void transpose_block(shorts v[8])
{
    shorts a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = zip_first16(v[i], v[i + 1]);
        a[i + 1] = zip_last16(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            b[i + 2 * k] = zip_first32(a[i + k], a[i + k + 2]);
            b[i + 2 * k + 1] = zip_last32(a[i + k], a[i + k + 2]);
        }
    for (int k = 0; k < 4; k++) {
        v[2 * k] = zip_first64(b[k], b[k + 4]);
        v[2 * k + 1] = zip_last64(b[k], b[k + 4]);
    }
}

/* The shorts of two vectors as pairs. */
struct paired {
    shorts first, last;
};

INLINE struct paired pair(shorts a, shorts b)
{
    return (struct paired){zip_first16(a, b), zip_last16(a, b)};
}

struct sums {
    ints first, last;
};

/* a x + b y + more, for the pairs a and b of V. */
INLINE struct sums multiply_add(struct paired v, int x, int y, struct sums more)
{
    const shorts factors = repeat_pair(x, y);
    return (struct sums){multiply_pairs(v.first, factors) + more.first, multiply_pairs(v.last, factors) + more.last};
}

INLINE shorts descale(struct sums sums, int shift)
{
    return pack_small(sums.first >> shift, sums.last >> shift);
}

/* Transform the eight shorts across V. The first pass leaves its results 4 times as large, and the second takes this
 * back; both leave them sqrt(8) times as large as the transform of T.81 does. */
INLINE void transform_words(shorts v[8], bool first_pass)
{
    const int shift = first_pass ? 11 : 15;
    const int32_t min = 1 << (shift - 1);
    const ints half = (ints){0} + min;
    const struct sums rounding = {half, half};
    const shorts t0 = v[0] + v[7], t1 = v[1] + v[6], t2 = v[2] + v[5], t3 = v[3] + v[4];
    const shorts t4 = v[3] - v[4], t5 = v[2] - v[5], t6 = v[1] - v[6], t7 = v[0] - v[7];
    const shorts t10 = t0 + t3, t11 = t1 + t2, t12 = t1 - t2, t13 = t0 - t3;
    v[0] = first_pass ? (t10 + t11) * 4 : (t10 + t11 + 2) >> 2;
    v[4] = first_pass ? (t10 - t11) * 4 : (t10 - t11 + 2) >> 2;
    const struct paired even = pair(t13, t12);
    v[2] = descale(multiply_add(even, F_0_541 + F_0_765, F_0_541, rounding), shift);
    v[6] = descale(multiply_add(even, F_0_541, F_0_541 - F_1_847, rounding), shift);
    const struct paired z = pair(t4 + t6, t5 + t7), outer = pair(t4, t7), inner = pair(t5, t6);
    const struct sums z3 = multiply_add(z, F_1_175 - F_1_961, F_1_175, rounding);
    const struct sums z4 = multiply_add(z, F_1_175, F_1_175 - F_0_390, rounding);
    v[7] = descale(multiply_add(outer, F_0_298 - F_0_899, -F_0_899, z3), shift);
    v[5] = descale(multiply_add(inner, F_2_053 - F_2_562, -F_2_562, z4), shift);
    v[3] = descale(multiply_add(inner, -F_2_562, F_3_072 - F_2_562, z3), shift);
    v[1] = descale(multiply_add(outer, -F_0_899, F_1_501 - F_0_899, z4), shift);
}

/* Divide by the quantisers, to the nearest. */
INLINE shorts quantise(shorts value, const struct jpeg_divisors *divisors, int row)
{
    const shorts sign = value >> 15;
    const shorts magnitude = (value ^ sign) - sign + load_quad(divisors->bias + JPEG_SIDE * row);
    const shorts scaled = multiply_high_ushorts(magnitude, load_quad(divisors->reciprocal + JPEG_SIDE * row));
    return (multiply_high_ushorts(scaled, load_quad(divisors->scale + JPEG_SIDE * row)) ^ sign) - sign;
}

/* Transform and quantise BLOCKS blocks side by side. The rows of samples follow each other. */
INLINE void transform_blocks(const int16_t *samples, const struct jpeg_divisors *divisors, const int at[BLOCKS],
                             struct jpeg_blocks *blocks)
{
    shorts v[8];
    for (int i = 0; i < 8; i++)
        v[i] = load_shorts(samples + i * JPEG_TILE);
    transpose_block(v);
    transform_words(v, true);
    transpose_block(v);
    transform_words(v, false);
    for (int i = 0; i < 8; i++)
        v[i] = quantise(v[i], divisors, i);
    store_zigzag(v, at, blocks);
}

/* Luma blocks beyond the picture's last one, of the width ACROSS and the height DOWN, have the DC of the block before,
 * and nothing else. */
static void fill_up(const struct jpeg_layout *layout, int mcus, int across, int down, struct jpeg_blocks *blocks)
{
    const int horizontal = layout->horizontal, luma = horizontal * layout->vertical;
    for (int mcu = down < layout->vertical ? 0 : mcus - 1; mcu < mcus; mcu++)
        for (int i = 1; i < luma; i++)
            if (mcu * horizontal + i % horizontal >= across || i / horizontal >= down) {
                const int at = mcu * layout->mcu_blocks + i;
                memset(blocks->coefficients[at], 0, sizeof blocks->coefficients[at]);
                blocks->coefficients[at][0] = blocks->coefficients[at - 1][0];
                blocks->nonzero[at] = 0;
            }
}

/* Transform row Y of the blocks of component I. */
static void transform_row(const struct jpeg_layout *layout, int i, int y, int mcus,
                          const struct jpeg_divisors *divisors, const int16_t *samples, struct jpeg_blocks *blocks)
{
    const int horizontal = layout->components[i].horizontal;
    const int before = i == 0 ? y * horizontal : layout->mcu_blocks - layout->component_count + i;
    for (int x = 0; x < mcus * horizontal; x += BLOCKS) {
        int at[BLOCKS];
        for (int k = 0; k < BLOCKS; k++)
            at[k] = (x + k) / horizontal * layout->mcu_blocks + before + (x + k) % horizontal;
        transform_blocks(samples + x * JPEG_SIDE, divisors, at, blocks);
    }
}

static int transform_tile(const struct jpeg_layout *layout, const struct jpeg_divisors divisors[2],
                          const struct jpeg_tile *tile, struct jpeg_blocks *blocks)
{
    const int horizontal = layout->horizontal, vertical = layout->vertical, mcu_width = JPEG_SIDE * horizontal;
    const int columns = tile->columns < JPEG_TILE ? tile->columns : JPEG_TILE;
    const int mcus = (columns + mcu_width - 1) / mcu_width, groups = (tile->rows + vertical - 1) / vertical;
    const int across = (columns + JPEG_SIDE - 1) / JPEG_SIDE, down = (tile->rows + JPEG_SIDE - 1) / JPEG_SIDE;
    struct planes planes;
    assert(tile->rows > 0 && tile->columns > 0);
    convert_tile_rows(tile, &planes);
    for (int i = 0; i < layout->component_count; i++) {
        int16_t(*rows)[JPEG_TILE] = planes.rows[i];
        if (i == 0) {
            repeat_row(rows, tile->rows - 1, JPEG_SIDE * down);
        } else {
            repeat_row(rows, tile->rows - 1, vertical * groups);
            subsample(rows, groups, horizontal, vertical);
            repeat_row(rows, groups - 1, JPEG_SIDE);
        }
        for (int y = 0; y < (i == 0 ? down : 1); y++)
            transform_row(layout, i, y, mcus, &divisors[i > 0], rows[JPEG_SIDE * y], blocks);
    }
    if (across < mcus * horizontal || down < vertical)
        fill_up(layout, mcus, across, down, blocks);
    return mcus;
}

/* ---- The codes ---- */

/* Append the last LENGTH bits of VALUE, whose others are 0, to BITS, which keeps up to 64 bits before they are
 * stored. */
INLINE struct jpeg_bits append_bits(struct jpeg_bits bits, uint32_t value, int length)
{
    bits.pending = bits.pending << length | value;
    bits.count += length;
    return bits;
}

/* Append at least one bit as append_bits does, and store all whole bytes. The next call writes the bytes after them
 * again. */
INLINE struct jpeg_bits append_and_store(struct jpeg_bits bits, uint32_t value, int length)
{
    bits = append_bits(bits, value, length);
    const uint64_t bytes = htobe64(bits.pending << (64 - bits.count));
    memcpy(bits.next, &bytes, sizeof bytes);
    bits.next += bits.count >> 3;
    bits.count &= 7;
    return bits;
}

/* Append the code of a symbol, and the COUNT bits of VALUE that follow it. */
INLINE struct jpeg_bits put_symbol(struct jpeg_bits bits, uint32_t code, int value, int count)
{
    return append_and_store(bits, (code & 0xffff) << count | value_bits(value, count), (int)(code >> 16));
}

INLINE struct jpeg_bits put_dc(struct jpeg_bits bits, const struct jpeg_codes *codes, int difference)
{
    const int count = count_bits(difference);
    return put_symbol(bits, codes->dc[count], difference, count);
}

/* A coefficient after RUN zeros, where the small table does not have it. */
static struct jpeg_bits put_large(struct jpeg_bits bits, const struct jpeg_codes *codes, int run, int value)
{
    for (; run > 15; run -= 16)
        bits = put_symbol(bits, codes->ac[0xf0], 0, 0);
    const int count = count_bits(value);
    return put_symbol(bits, codes->ac[run << 4 | count], value, count);
}

INLINE bool is_small_code(int run, int value)
{
    return run < 16 && (unsigned)(value + JPEG_SMALL) < 2 * JPEG_SMALL;
}

/* Every second small code waits for the one after it: BITS keeps at most 7 + 16 + 5 bits then. */
INLINE struct jpeg_bits append_block(struct jpeg_bits bits, const struct jpeg_codes *codes, const int16_t *coefficients,
                                     uint64_t nonzero, int predictor)
{
    int last = 0;
    bits = put_dc(bits, codes, coefficients[0] - predictor);
    for (nonzero &= ~(uint64_t)1; nonzero != 0; nonzero &= nonzero - 1) {
        int at = __builtin_ctzll(nonzero), run = at - last - 1, value = coefficients[at];
        last = at;
        if (!is_small_code(run, value)) {
            bits = put_large(bits, codes, run, value);
            continue;
        }
        uint32_t code = codes->small[run][value + JPEG_SMALL];
        bits = append_bits(bits, code >> 8, (int)(code & 255));
        nonzero &= nonzero - 1;
        if (nonzero == 0)
            break;
        at = __builtin_ctzll(nonzero), run = at - last - 1, value = coefficients[at];
        last = at;
        if (!is_small_code(run, value)) {
            bits = put_large(bits, codes, run, value);
            continue;
        }
        code = codes->small[run][value + JPEG_SMALL];
        bits = append_and_store(bits, code >> 8, (int)(code & 255));
    }
    return last < JPEG_BLOCK - 1 ? put_symbol(bits, codes->ac[0], 0, 0) : bits;
}

static void encode_blocks(const struct jpeg_layout *layout, const struct jpeg_codes codes[2],
                          const struct jpeg_blocks *blocks, int first, int last, int predictors[JPEG_COMPONENTS_MAX],
                          struct jpeg_bits *to)
{
    struct jpeg_bits bits = *to;
    int at = first * layout->mcu_blocks;
    for (int mcu = first; mcu < last; mcu++)
        for (int i = 0; i < layout->mcu_blocks; i++, at++) {
            const int component = layout->mcu_components[i];
            const int16_t *coefficients = blocks->coefficients[at];
            bits = append_block(bits, &codes[component > 0], coefficients, blocks->nonzero[at], predictors[component]);
            predictors[component] = coefficients[0];
        }
    for (; bits.count >= 8; bits.count -= 8)
        *bits.next++ = (uint8_t)(bits.pending >> (bits.count - 8));
    *to = bits;
}

const struct jpeg_encode_loops IN_SET(jpeg_encode) = {
    .transform = transform_tile,
    .encode = encode_blocks,
};
