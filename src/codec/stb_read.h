/* SPDX-License-Identifier: MIT
 *
 * A limit for the blocks that stb_image grows while it decodes: a few kilobytes of a PNG can inflate to gigabytes. stb
 * gives its allocator no context, so each thread has its own limit. */
#ifndef GPUCONV_STB_READ_H
#define GPUCONV_STB_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Set the limit of this thread: from now on, no block may grow beyond SIZE bytes. */
void stb_read_limit(size_t size);

/* Was a larger block refused since the limit was set? */
bool stb_read_refused(void);

#endif
