/* SPDX-License-Identifier: MIT
 *
 * How large a block stb_image may grow while it decodes: a few kilobytes of a PNG inflate to gigabytes. stb gives its
 * allocator no context, so the limit is the calling thread's. */
#ifndef GPUCONV_STB_READ_H
#define GPUCONV_STB_READ_H

#include <stdbool.h>
#include <stddef.h>

/* From now on no block grows beyond SIZE bytes in this thread. */
void stb_read_limit(size_t size);

/* Was a larger one asked for since? */
bool stb_read_refused(void);

#endif
