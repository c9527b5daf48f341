/* SPDX-License-Identifier: MIT
 *
 * The colours of a picture, and how they become those of sRGB: by a curve for each colour, a matrix of light, and
 * sRGB's curve. */
#include "metadata/metadata_internal.h"

#include <math.h>
#include <string.h>

/* ---- Matrices of 3 x 3 numbers, row by row ---- */

static void multiply(const double *a, const double *b, double *out)
{
    for (int i = 0; i < 9; i++)
        out[i] = a[i / 3 * 3] * b[i % 3] + a[i / 3 * 3 + 1] * b[i % 3 + 3] + a[i / 3 * 3 + 2] * b[i % 3 + 6];
}

/* OUT = A^-1, by cofactors. Returns false if there is none. */
static bool invert(const double *a, double *out)
{
    for (int i = 0; i < 9; i++) {
        const int row = i % 3, column = i / 3, r1 = (row + 1) % 3, r2 = (row + 2) % 3, c1 = (column + 1) % 3,
                  c2 = (column + 2) % 3;
        out[i] = a[3 * r1 + c1] * a[3 * r2 + c2] - a[3 * r1 + c2] * a[3 * r2 + c1];
    }
    const double determinant = a[0] * out[0] + a[1] * out[3] + a[2] * out[6];
    for (int i = 0; i < 9; i++)
        out[i] /= determinant;
    return fabs(determinant) > 1e-6;
}

/* ---- Primaries ---- */

/* Chromaticities x and y of red, green, blue and white. */
struct primaries {
    double xy[8];
};

#define D65 0.3127, 0.329
#define ILLUMINANT_C 0.31, 0.316

static const struct primaries srgb = {{0.64, 0.33, 0.3, 0.6, 0.15, 0.06, D65}};

/* ITU-T H.273, table 2, by the number. */
static const struct primaries coded_primaries[] = {
    [1] = {{0.64, 0.33, 0.3, 0.6, 0.15, 0.06, D65}},
    [4] = {{0.67, 0.33, 0.21, 0.71, 0.14, 0.08, ILLUMINANT_C}},
    [5] = {{0.64, 0.33, 0.29, 0.6, 0.15, 0.06, D65}},
    [6] = {{0.63, 0.34, 0.31, 0.595, 0.155, 0.07, D65}},
    [7] = {{0.63, 0.34, 0.31, 0.595, 0.155, 0.07, D65}},
    [8] = {{0.681, 0.319, 0.243, 0.692, 0.145, 0.049, ILLUMINANT_C}},
    [9] = {{0.708, 0.292, 0.17, 0.797, 0.131, 0.046, D65}},
    [11] = {{0.68, 0.32, 0.265, 0.69, 0.15, 0.06, 0.314, 0.351}},
    [12] = {{0.68, 0.32, 0.265, 0.69, 0.15, 0.06, D65}},
    [22] = {{0.63, 0.34, 0.295, 0.605, 0.155, 0.077, D65}},
};

/* OUT = the matrix that makes XYZ of light in these primaries, with D50 as white: adapted by the matrix of Bradford, as
 * ICC.1:2022, annex E does. */
static bool find_xyz(const struct primaries *primaries, double *out)
{
    static const double bradford[9] = {0.8951, 0.2664, -0.1614, -0.7502, 1.7135, 0.0367, 0.0389, -0.0685, 1.0296};
    static const double d50[3] = {0.9642, 1, 0.8249};
    double xyz[9], inverse[9], scaled[9], back[9], adapted[9], white[3];
    const double *w = &primaries->xy[6];
    for (int c = 0; c < 3; c++) {
        const double x = primaries->xy[2 * c], y = primaries->xy[2 * c + 1];
        xyz[c] = x;
        xyz[3 + c] = y;
        xyz[6 + c] = 1 - x - y;
    }
    if (!(w[1] > 0) || !invert(xyz, inverse) || !invert(bradford, back))
        return false;
    white[0] = w[0] / w[1];
    white[1] = 1;
    white[2] = (1 - w[0] - w[1]) / w[1];
    for (int i = 0; i < 9; i++) {
        const double *row = &inverse[3 * (i % 3)]; /* how much of a colour white has */
        scaled[i] = xyz[i] * (row[0] * white[0] + row[1] * white[1] + row[2] * white[2]);
    }
    for (int i = 0; i < 9; i++) {
        const double *row = &bradford[3 * (i / 3)];
        const double from = row[0] * white[0] + row[1] * white[1] + row[2] * white[2];
        const double to = row[0] * d50[0] + row[1] * d50[1] + row[2] * d50[2];
        adapted[i] = bradford[i] * to / from;
    }
    multiply(back, adapted, inverse);
    multiply(inverse, scaled, out);
    return true;
}

/* OUT = the matrix of a profile: its colours in XYZ, with D50 as white. */
static bool read_profile(const struct blob *profile, double *out)
{
    static const char *const tags[3] = {"rXYZ", "gXYZ", "bXYZ"};
    for (int c = 0; c < 3; c++) {
        size_t size;
        const uint8_t *value = icc_find(profile, tags[c], &size);
        if (value == NULL || size < 20)
            return false;
        for (size_t i = 0; i < 3; i++)
            out[3 * i + (size_t)c] = (int32_t)big32(value + 8 + 4 * i) / 65536.0;
    }
    return true;
}

/* PNG's cHRM: white, red, green and blue, in 1/100000. */
static struct primaries read_chromaticities(const uint8_t *bytes)
{
    struct primaries primaries;
    for (size_t i = 0; i < 8; i++)
        primaries.xy[(i + 6) % 8] = big32(bytes + 4 * i) / 1e5;
    return primaries;
}

bool metadata_find_xyz(const struct metadata *metadata, enum curve_source source, double out[9])
{
    static const struct primaries adobe = {{0.64, 0.33, 0.21, 0.71, 0.15, 0.06, D65}}; /* Adobe RGB (1998), 4.3.1 */
    const unsigned code = metadata->coding[0];
    const struct primaries chromaticities = read_chromaticities(metadata->chromaticities);
    switch (source) {
    case CURVE_OF_CICP:
        return code < sizeof coded_primaries / sizeof *coded_primaries && find_xyz(&coded_primaries[code], out);
    case CURVE_OF_ICC:
        return read_profile(&metadata->icc, out);
    case CURVE_OF_GAMMA:
        return find_xyz(metadata->has_chromaticities ? &chromaticities : &srgb, out);
    case CURVE_OF_EXIF:
        return find_xyz(exif_colours(&metadata->exif) == EXIF_COLOURS_ADOBE ? &adobe : &srgb, out);
    default:
        return find_xyz(&srgb, out);
    }
}

bool metadata_find_matrix(const struct metadata *metadata, enum curve_source source, double matrix[9])
{
    double xyz[9], to_xyz[9], to_srgb[9];
    if (!metadata_find_xyz(metadata, source, xyz) || !find_xyz(&srgb, to_xyz) || !invert(to_xyz, to_srgb))
        return false;
    multiply(to_srgb, xyz, matrix);
    bool is_identity = true, is_sane = true;
    for (int i = 0; i < 9; i++) { /* white stays white, and numbers of files are rounded */
        const double sum = to_srgb[i / 3 * 3] * (xyz[0] + xyz[1] + xyz[2]) +
                           to_srgb[i / 3 * 3 + 1] * (xyz[3] + xyz[4] + xyz[5]) +
                           to_srgb[i / 3 * 3 + 2] * (xyz[6] + xyz[7] + xyz[8]);
        matrix[i] /= sum;
        is_identity &= fabs(matrix[i] - (i % 4 == 0)) < 0.004;
        is_sane &= fabs(matrix[i]) < 8;
    }
    for (int i = 0; is_identity && i < 9; i++)
        matrix[i] = i % 4 == 0;
    return is_sane;
}

/* ---- To sRGB ---- */

/* The weights of MATRIX over COLOURS_SCALE, whose rows sum to it. */
static void round_matrix(const double matrix[9], int32_t weights[3][3])
{
    for (int row = 0; row < 3; row++) {
        int32_t sum = 0;
        for (int c = 0; c < 3; c++)
            sum += weights[row][c] = (int32_t)floor(matrix[3 * row + c] * COLOURS_SCALE + 0.5);
        weights[row][row] += COLOURS_SCALE - sum;
    }
}

bool metadata_find_colours(const struct metadata *metadata, bool grey, int bits, struct linear *linear,
                           struct colours *colours, int32_t weights[3][3], bool *is_mixed, struct error *error)
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double matrix[9];
    unsigned unread;
    const enum curve_source source = metadata_set_linear(metadata, grey, bits, linear, &unread);
    const enum curve_kind kind = linear->curves[0].kind;
    memcpy(matrix, identity, sizeof matrix);
    if (kind == CURVE_PQ || kind == CURVE_HLG)
        return error_set(error, ERROR_WORK,
                         "has the light of %s, which sRGB cannot store; leave to-srgb out, and keep the profile",
                         kind == CURVE_PQ ? "PQ" : "HLG");
    if ((unread & ~(1u << CURVE_OF_EXIF)) != 0 || (!grey && !metadata_find_matrix(metadata, source, matrix)))
        return error_set(error, ERROR_WORK,
                         "has colours that to-srgb cannot read, as of a profile with tables; convert it with another "
                         "program, or leave to-srgb out");
    round_matrix(matrix, weights);
    *is_mixed = matrix[0] != 1 || matrix[4] != 1 || matrix[8] != 1; /* its rows sum to 1 */
    colours->curves = linear->count;
    for (int c = 0; c < linear->count; c++)
        for (size_t i = 0; i < 65536; i += bits == 8 ? 257 : 1)
            colours->light[c][i] = bits == 8 ? linear->tables[c].from8[i / 257] : linear->tables[c].from16[i];
    return true;
}

bool metadata_has_tables(const struct metadata *metadata, bool grey)
{
    struct curve curves[3];
    enum curve_source source;
    double matrix[9];
    int count;
    metadata_find_curve(metadata, grey, &source, curves, &count);
    return source == CURVE_OF_ICC && metadata->icc.size > 0 &&
           (count < 0 || (!grey && !metadata_find_matrix(metadata, source, matrix)));
}

void metadata_set_srgb(struct metadata *metadata)
{
    metadata_drop_colours(metadata);
    metadata->has_srgb = true;
    metadata->intent = 1; /* relative */
    exif_set_srgb(&metadata->exif);
}
