/* SPDX-License-Identifier: MIT
 *
 * A build without littleCMS reads no profile of tables. */
#include "metadata/littlecms.h"

bool transform_set(struct transform **transform, const struct transform_samples *samples, const struct blob *profile,
                   struct error *error)
{
    (void)samples;
    (void)profile;
    *transform = NULL;
    return error_set(error, ERROR_WORK,
                     "has a profile of tables, and this gpuconv was built without littleCMS; convert it with another "
                     "program, or leave to-srgb out");
}

void transform_apply(const struct transform *transform, const void *in, void *out, size_t pixels)
{
    (void)transform;
    (void)in;
    (void)out;
    (void)pixels;
}

const char *transform_name(const struct transform *transform)
{
    (void)transform;
    return "";
}

void transform_free(struct transform *transform)
{
    (void)transform;
}
