/* SPDX-License-Identifier: MIT */
#include "tests/lib/program.h"

#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        fail("not enough memory");
    return memory;
}

int random_between(uint64_t *state, int low, int high)
{
    return low + (int)(random_next(state) % (uint64_t)(high - low + 1));
}
