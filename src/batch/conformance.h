/* SPDX-License-Identifier: MIT
 *
 * Conformance: do this build and this machine make what gpuconv's definition says (docs/spec/pixels-1.md)? */
#ifndef GPUCONV_CONFORMANCE_H
#define GPUCONV_CONFORMANCE_H

#include "base/error.h"
#include "pipeline/recipe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The built-in vectors, as a zlib stream. docs/spec/embed.py writes it at build time. */
extern const uint8_t builtin_vectors[];
extern const size_t builtin_vectors_size;

enum { CONFORMANCE_VARIANTS_MAX = 64 };

struct conformance_request {
    const char *text; /* SIZE bytes: lines as in docs/spec/vectors.jsonl; NULL for those that are built in */
    size_t size;
    enum choice choice;            /* CHOICE_CPU or CHOICE_CUDA */
    const struct variant *variant; /* NULL for the automatic choice */
    int device;                    /* the GPU */
};

/* The result. A case is a digest of a vector: of the samples, or of a file. */
struct conformance_result {
    size_t cases, mismatches;
    size_t not_taken; /* cases that the variant, or the codecs of this build, cannot do */
    char first[128];  /* the first mismatch: the vector, and what is wrong */

    /* Where they really ran, as their pipelines report it. */
    size_t ran[2];                            /* cases, by backend */
    size_t filters[CONFORMANCE_VARIANTS_MAX]; /* by rows of the table of variants */
    char hardware[160];                       /* empty if it is not known */
};

/* Do all vectors, with two threads. Fails if it cannot go on. Mismatches are no failure: they are counted. */
bool conformance_run(const struct conformance_request *request, struct conformance_result *result, struct error *error);

#endif
