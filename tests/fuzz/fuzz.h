/* SPDX-License-Identifier: MIT
 *
 * Shared by the fuzzers. Each is one LLVMFuzzerTestOneInput, linked with libFuzzer (Meson option `fuzz`) or with
 * replay.c, which runs the committed inputs through it in every build. */
#ifndef GPUCONV_FUZZ_H
#define GPUCONV_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A condition that must hold for every input. Unlike assert, it is checked in every build. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: a mutator that knows the format of the input. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

/* Optional: what LeakSanitizer does not report. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier) */

/* libFuzzer's own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

#endif
