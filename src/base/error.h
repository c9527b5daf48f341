/* SPDX-License-Identifier: MIT
 *
 * One way to fail: a code, which is also the exit status, and one sentence that says what is wrong,
 * with which file, and what to do. The caller owns the struct; nothing here prints or exits. */
#ifndef GPUCONV_ERROR_H
#define GPUCONV_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum error_code {
    ERROR_NONE = 0,
    ERROR_WORK = 1,  /* the work failed: a file, the device, memory */
    ERROR_USAGE = 2, /* what was asked for makes no sense: an option, a filter's or a variant's name */
};

struct error {
    enum error_code code;
    char message[6144]; /* room for one path of 4096 bytes and a sentence; longer text is cut */
};

#if defined(__GNUC__)
#define ERROR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ERROR_PRINTF(text, first)
#endif

/* Fill ERROR (may be NULL: the reason is then dropped) and return false, so that a function can
 * `return error_set(error, ...)`. The sentence has no final newline. */
bool error_set(struct error *error, enum error_code code, const char *format, ...) ERROR_PRINTF(3, 4);

/* Static analysers see one file at a time, and would go on where error_set returns true. */
#ifdef __clang_analyzer__
#define error_set(...) (error_set(__VA_ARGS__), false)
#endif

/* The one of COUNT names that WORD most probably meant, or NULL where none is near: the smallest
 * Damerau-Levenshtein distance (optimal string alignment: insert, delete, replace, swap neighbours),
 * at most a third of the word's length, rounded up, and at least one letter in common. */
const char *error_nearest(const char *word, const char *const *names, size_t count);

/* A usage error: there is no KIND ("filter") of that NAME; NEAREST, which may be NULL, was probably meant, and
 * gpuconv's option LIST shows all. Returns false. */
bool error_unknown(struct error *error, const char *kind, const char *name, const char *nearest, const char *list);

#ifdef __cplusplus
}
#endif

#endif
