/* SPDX-License-Identifier: MIT
 *
 * Errors: a code, which gives the exit status, the file that failed, and one sentence that says what is wrong and what
 * to do. The caller owns the struct. Nothing here prints or exits. */
#ifndef GPUCONV_ERROR_H
#define GPUCONV_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum error_code {
    ERROR_NONE = 0,
    ERROR_WORK = 1,  /* the work failed; if no code below says more, because of an input */
    ERROR_USAGE = 2, /* the request makes no sense: an option, an operand, a filter or its file */
    ERROR_READ,      /* an input cannot be read now, or has just changed */
    ERROR_OUTPUT,    /* an output has the wrong name, folder or rights */
    ERROR_WRITE,     /* an output cannot be written now: the disk is full */
    ERROR_LIMIT,     /* more memory is needed than may be used */
    ERROR_MEMORY,    /* there is not enough memory now */
    ERROR_NO_GPU,    /* this machine or this program has none that can be used */
    ERROR_GPU,       /* a GPU has failed, or does not answer now */
    ERROR_INTERRUPTED,
};

/* The exit statuses of failed work: a retry cannot help, or can. The second is EX_TEMPFAIL of sysexits.h, which
 * programs that start others know. */
enum { STATUS_FAILED = 1, STATUS_RETRY = 75 };

struct error {
    enum error_code code;
    bool no_new_files;  /* a file could not be written, because its folder or disk is full or read-only */
    char subject[4097]; /* the file that failed, or empty; PATH_MAX is 4096 */
    /* One sentence; longer text is cut. It is no larger because many functions have an error on a stack that may be
     * small. */
    char message[2048];
};

/* An upper bound of the bytes that error_text writes, with the NUL. */
#define ERROR_TEXT (sizeof(struct error))

#if defined(__GNUC__)
#define ERROR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define ERROR_PRINTF(text, first)
#endif

/* Fill ERROR, and return false, so that a function can `return error_about(error, ...)`. SUBJECT is the file that
 * failed, whose name the sentence does not repeat. ERROR may be NULL: the reason is then dropped. The sentence has no
 * final newline. An argument may be a part of *ERROR. */
bool error_about(struct error *error, enum error_code code, const char *subject, const char *format, ...)
    ERROR_PRINTF(4, 5);

/* Fill ERROR as error_about does, but without a subject. */
#define error_set(error, code, ...) error_about(error, code, "", __VA_ARGS__)

/* Fill ERROR: there is not enough memory for WHAT, such as "an image of 3 x 2 pixels". Returns false. */
bool error_no_memory(struct error *error, const char *what, ...) ERROR_PRINTF(2, 3);

/* Fill ERROR: dlopen or dlsym has just failed for LIBRARY. NEED says who needs it, with the verb, and ADVICE how to
 * install it. A static program loads no library: the sentence then names the wheel. Returns false. */
bool error_not_loaded(struct error *error, const char *need, const char *library, const char *advice);

/* Can a retry of the same request succeed? */
bool error_may_retry(enum error_code code);

/* The exit status for CODE. */
int error_status(enum error_code code);

/* The exit status of work that has two. The larger one counts: the end by a signal, then STATUS_RETRY. */
int error_join_status(int a, int b);

/* The code of a system call that failed for REASON, an errno: LASTING if the same call would fail again, as long as
 * nobody changes names or rights, else PASSING. */
enum error_code error_of_errno(int reason, enum error_code lasting, enum error_code passing);

/* Static analysers see one file at a time. Without these they would assume that the functions can return true. */
#ifdef __clang_analyzer__
#define error_about(...) (error_about(__VA_ARGS__), false)
#define error_no_memory(...) (error_no_memory(__VA_ARGS__), false)
#define error_not_loaded(...) (error_not_loaded(__VA_ARGS__), false)
#endif

/* Set the subject, unless there is one. ERROR may be NULL. */
void error_add_subject(struct error *error, const char *subject);

/* Write "SUBJECT: MESSAGE", or only the message if there is no subject, to TEXT of SIZE bytes. Longer text is cut. */
void error_text(const struct error *error, char *text, size_t size);

/* ---- nearest.c ---- */

/* Find the names that WORD most probably means among COUNT names: those with the smallest Damerau-Levenshtein distance
 * (optimal string alignment: insert, delete, replace, swap neighbours), in any case of letters. The distance is at most
 * a third of the word's length, or 1 for short words, and smaller than the longer of the two. If the word is a part of
 * a name, or a name a part of the word, their distance is at most 2. Writes the first MAX of these names to NEAREST,
 * which may be NAMES, and returns their number. */
size_t error_nearest(const char *word, const char *const *names, size_t count, const char **nearest, size_t max);

/* Fill ERROR with a usage error: there is no KIND ("filter") named NAME. The message suggests the COUNT names in
 * NEAREST. It also names LIST, the option of gpuconv that shows all names. Returns false. */
bool error_unknown(struct error *error, const char *kind, const char *name, const char *const *nearest, size_t count,
                   const char *list);

#ifdef __cplusplus
}
#endif

#endif
