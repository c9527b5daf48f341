/* SPDX-License-Identifier: MIT
 *
 * The curve of the samples, as a file names it: in a profile, in a PNG's chunks or in EXIF. */
#include "image/linear.h"
#include "metadata/metadata_internal.h"

#include <math.h>
#include <string.h>

/* A power without more. Exponents outside 0.1 to 10 are no picture's. */
static bool set_power(struct curve *curve, double exponent)
{
    *curve = (struct curve){.g = exponent, .a = 1};
    return exponent >= 0.1 && exponent <= 10;
}

/* The opposite of V = ALPHA L^EXPONENT - (ALPHA - 1) for L from BETA on, and V = SLOPE L below. */
static bool set_transfer(struct curve *curve, double alpha, double exponent, double slope, double beta)
{
    *curve =
        (struct curve){.g = 1 / exponent, .a = 1 / alpha, .b = (alpha - 1) / alpha, .c = 1 / slope, .d = slope * beta};
    return true;
}

/* The four numbers of ITU-T H.273: primaries, transfer, matrix, and 1 for the full range. */
static bool read_coding(const uint8_t *coding, struct curve *curve)
{
    *curve = curve_srgb;
    if (coding[3] != 1)
        return false;
    switch (coding[1]) {
    case 1: /* BT.709 */
    case 6: /* BT.601 */
    case 14:
    case 15: /* BT.2020, 10 and 12 bits */
        return set_transfer(curve, 1.099296826809442, 0.45, 4.5, 0.018053968510807);
    case 4:
        return set_power(curve, 2.2);
    case 5:
        return set_power(curve, 2.8);
    case 7: /* SMPTE ST 240 */
        return set_transfer(curve, 1.111572195921731, 0.45, 4, 0.022821585529445);
    case 8:
        return set_power(curve, 1);
    case 13:
        return true;
    case 16:
        *curve = (struct curve){.kind = CURVE_PQ};
        return true;
    case 18:
        *curve = (struct curve){.kind = CURVE_HLG};
        return true;
    default:
        return false;
    }
}

/* ---- Profiles ---- */

/* Read SIZE bytes of a parametricCurveType (ICC.1:2022, 10.18). */
static bool read_parameters(const uint8_t *value, size_t size, struct curve *curve)
{
    static const unsigned counts[] = {1, 3, 4, 5, 7};
    const unsigned type = big16(value + 8);
    double p[7] = {0};
    if (type > 4 || size < 12 + 4 * counts[type])
        return false;
    for (unsigned i = 0; i < counts[type]; i++)
        p[i] = (int32_t)big32(value + 12 + (size_t)4 * i) / 65536.0;
    if (!set_power(curve, p[0]))
        return false;
    if (type >= 1) {
        curve->a = p[1];
        curve->b = p[2];
    }
    if (type == 2)
        curve->e = p[3];
    if (type >= 3) {
        curve->c = p[3];
        curve->d = p[4];
        curve->e = p[5];
        curve->f = p[6];
    }
    return true;
}

/* Read the curve in a tag of PROFILE: a parametricCurveType, or a curveType (10.6) of an exponent, or entries. */
static bool read_tag(const struct blob *profile, const char *tag, struct curve *curve)
{
    size_t size;
    const uint8_t *value = icc_find(profile, tag, &size);
    if (value == NULL || size < 12)
        return false;
    if (memcmp(value, "para", 4) == 0)
        return read_parameters(value, size, curve);
    const size_t count = big32(value + 8);
    if (memcmp(value, "curv", 4) != 0 || count > (size - 12) / 2)
        return false;
    *curve = (struct curve){.kind = CURVE_SAMPLED, .entries = value + 12, .count = count};
    return count > 1 || set_power(curve, count == 1 ? big16(value + 12) / 256.0 : 1);
}

/* Read the curves of a profile to CURVES. Returns their number: 1 or 3, or -1 if they cannot be read. The curve of a
 * grey profile gives light only where that is a colour of XYZ. */
static int read_profile(const struct blob *profile, bool grey, struct curve *curves)
{
    size_t size;
    const uint8_t *coding = icc_find(profile, "cicp", &size);
    if (memcmp(profile->bytes + ICC_COLOUR, "GRAY", 4) == 0)
        return grey && memcmp(profile->bytes + ICC_CONNECTION, "XYZ ", 4) == 0 && read_tag(profile, "kTRC", curves)
                   ? 1
                   : -1;
    if (memcmp(profile->bytes + ICC_COLOUR, "RGB ", 4) != 0)
        return -1;
    if (coding != NULL && size >= 12 && memcmp(coding, "cicp", 4) == 0 && read_coding(coding + 8, curves))
        return 1;
    return read_tag(profile, "rTRC", &curves[0]) && read_tag(profile, "gTRC", &curves[1]) &&
                   read_tag(profile, "bTRC", &curves[2])
               ? 3
               : -1;
}

/* ---- Files ---- */

/* Read what SOURCE says to CURVES. Returns the number of curves: 0 if it says nothing, or -1 if it cannot be read. */
static int read_source(const struct metadata *metadata, enum curve_source source, bool grey, struct curve *curves)
{
    const uint64_t lost = metadata_bit(METADATA_ICC, METADATA_DAMAGED) | metadata_bit(METADATA_ICC, METADATA_TOO_LARGE);
    enum exif_colours colours;
    curves[0] = curve_srgb;
    switch (source) {
    case CURVE_OF_CICP:
        return !metadata->has_coding ? 0 : read_coding(metadata->coding, curves) ? 1 : -1;
    case CURVE_OF_ICC:
        return metadata->icc.size > 0 ? read_profile(&metadata->icc, grey, curves) : metadata->dropped & lost ? -1 : 0;
    case CURVE_OF_SRGB:
        return metadata->has_srgb;
    case CURVE_OF_GAMMA:
        return !metadata->has_gamma ? 0 : set_power(curves, 1e5 / big32(metadata->gamma)) ? 1 : -1;
    case CURVE_OF_EXIF:
        colours = exif_colours(&metadata->exif);
        if (colours == EXIF_COLOURS_ADOBE)
            set_power(curves, 563 / 256.0); /* Adobe RGB (1998), 4.3.4.2 */
        return colours == EXIF_COLOURS_NONE ? 0 : colours != EXIF_COLOURS_OTHER ? 1 : -1;
    default:
        return 1;
    }
}

enum curve_source metadata_set_linear(const struct metadata *metadata, bool grey, int bits, struct linear *linear,
                                      unsigned *unread)
{
    struct curve curves[3];
    *unread = 0;
    for (enum curve_source source = CURVE_OF_CICP;; source++) {
        const int count = read_source(metadata, source, grey, curves);
        if (count > 0 && linear_set(linear, curves, count, bits) && (!grey || linear->count == 1))
            return source;
        if (count != 0)
            *unread |= 1u << source;
    }
}

/* ---- sRGB ---- */

/* Is CURVE nearer to sRGB's than half a level of 8 bits, everywhere? */
static bool is_srgb_curve(const struct curve *curve)
{
    enum { STEP = 514 }; /* a level of 8 bits, in half levels of 16 bits */
    bool is_near = true;
    for (int k = 0; k < 255 && is_near; k++) {
        const double step = linear_level(&curve_srgb, (k + 1) * STEP) - linear_level(&curve_srgb, k * STEP);
        is_near = fabs(linear_level(curve, k * STEP) - linear_level(&curve_srgb, k * STEP)) <= step / 2;
    }
    return is_near;
}

/* What PNG has for sRGB in gAMA, where nothing else says it (PNG, third edition, 11.3.2.5). */
enum { SRGB_GAMMA = 45455 };

void metadata_find_curve(const struct metadata *metadata, bool grey, enum curve_source *source, struct curve *curves,
                         int *count)
{
    *source = CURVE_OF_CICP;
    while ((*count = read_source(metadata, *source, grey, curves)) == 0)
        ++*source;
}

bool metadata_is_srgb(const struct metadata *metadata, bool grey)
{
    struct curve curves[3];
    enum curve_source source;
    double matrix[9];
    int count;
    metadata_find_curve(metadata, grey, &source, curves, &count);
    const bool is_usual = source == CURVE_OF_GAMMA && big32(metadata->gamma) == SRGB_GAMMA;
    for (int i = 0; i < count && !is_usual; i++)
        if (!is_srgb_curve(&curves[i]))
            return false;
    if (count <= 0 || grey) /* EXIF may say that the colours are of no kind that it knows */
        return count > 0 || source == CURVE_OF_EXIF;
    return metadata_find_matrix(metadata, source, matrix) && matrix[0] == 1 && matrix[4] == 1 && matrix[8] == 1;
}

const char *metadata_curve_name(enum curve_source source)
{
    static const char *const names[] = {
        [CURVE_OF_CICP] = "its cICP chunk",  [CURVE_OF_ICC] = "its ICC profile", [CURVE_OF_SRGB] = "its sRGB chunk",
        [CURVE_OF_GAMMA] = "its gAMA chunk", [CURVE_OF_EXIF] = "its EXIF",       [CURVE_ASSUMED] = "sRGB",
    };
    return names[source];
}
