/* SPDX-License-Identifier: MIT
 *
 * One way to fail: a code, which is also the exit status, the file that failed, and one sentence that says what is wrong
 * and what to do. The caller owns the struct; nothing here prints or exits. */
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
    char subject[4097]; /* the file that the message is about, or empty; PATH_MAX is 4096 */
    char message[6144]; /* one sentence, which may name another path; longer text is cut */
};

/* The most bytes of error_text, with its NUL. */
#define ERROR_TEXT (sizeof(struct error))

#if defined(__GNUC__)
#define ERROR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ERROR_PRINTF(text, first)
#endif

/* Fill ERROR (may be NULL: the reason is then dropped) and return false, so that a function can
 * `return error_set(error, ...)`. The sentence has no final newline. There is no subject. */
bool error_set(struct error *error, enum error_code code, const char *format, ...) ERROR_PRINTF(3, 4);

/* The same, about the file SUBJECT, which the sentence does not repeat. */
bool error_about(struct error *error, enum error_code code, const char *subject, const char *format, ...)
    ERROR_PRINTF(4, 5);

/* Static analysers see one file at a time, and would go on where these return true. */
#ifdef __clang_analyzer__
#define error_set(...) (error_set(__VA_ARGS__), false)
#define error_about(...) (error_about(__VA_ARGS__), false)
#endif

/* Let the error be about SUBJECT, unless it already has a subject. */
void error_add_subject(struct error *error, const char *subject);

/* Write "SUBJECT: MESSAGE", or the message where there is no subject, to TEXT of SIZE bytes. */
void error_text(const struct error *error, char *text, size_t size);

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
