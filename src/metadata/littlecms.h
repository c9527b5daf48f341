/* SPDX-License-Identifier: MIT
 *
 * Levels of sRGB by a profile of tables, or of CMYK, which littleCMS reads. It is loaded for the first of them, not
 * linked. Its versions may differ by a level. */
#ifndef GPUCONV_LITTLECMS_H
#define GPUCONV_LITTLECMS_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of memory that a transform takes, at most. */
enum { TRANSFORM_BYTES = 4 << 20 };

/* The samples that are converted, in place unless they are CMYK. */
struct transform_samples {
    int channels; /* 1 to 4, with alpha, which stays; 3 for CMYK, which a JPEG has inverted, in 4 bytes */
    int bits;     /* 8 or 16 */
    bool is_cmyk;
    bool black_point; /* the profile's darkest colour becomes black */
};

struct transform;

/* Let *TRANSFORM, or NULL, be one for SAMPLES by the PROFILE. Fails, with *TRANSFORM NULL, if littleCMS is missing or
 * cannot read the profile. Release it with transform_free. */
bool transform_set(struct transform **transform, const struct transform_samples *samples, const struct blob *profile,
                   struct error *error);

/* Convert PIXELS. Any thread may call this. */
void transform_apply(const struct transform *transform, const void *in, void *out, size_t pixels);

/* The name of littleCMS and its version, for messages. */
const char *transform_name(const struct transform *transform);

/* TRANSFORM may be NULL. */
void transform_free(struct transform *transform);

#endif
