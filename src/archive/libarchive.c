/* SPDX-License-Identifier: MIT
 *
 * Load libarchive. */
#include "archive/libarchive.h"

#include <dlfcn.h>
#include <errno.h>

/* The name has been the same since version 3.0 of 2011. */
static const char file_name[] = "libarchive.so.13";

bool libarchive_load(struct libarchive *library, struct error *error)
{
    errno = 0;
    void *handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
    bool done = handle != NULL;
#define LOAD(name) done = done && (*(void **)&library->name = dlsym(handle, #name)) != NULL;
    LIBARCHIVE_FUNCTIONS(LOAD)
#undef LOAD
    return done || error_not_loaded(error, "--tar needs", file_name, "install libarchive");
}
