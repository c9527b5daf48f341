/* SPDX-License-Identifier: MIT
 *
 * What the test programs share that are no unit tests. */
#ifndef GPUCONV_TEST_PROGRAM_H
#define GPUCONV_TEST_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* The exit status of a test that was skipped. */
enum { EXIT_SKIPPED = 77 };

/* Print a message and end the program. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Memory, or the end of the program. Release it with free. */
void *allocate(size_t size);

/* A random number from LOW to HIGH. */
int random_between(uint64_t *state, int low, int high);

#endif
