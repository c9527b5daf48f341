/* SPDX-License-Identifier: MIT
 *
 * A limit to the blocks that stb_image grows while it decodes: a few kilobytes of a PNG can inflate to gigabytes. stb
 * gives its allocator no context, so each thread has a limit of its own. */
#ifndef GPUCONV_STB_READ_H
#define GPUCONV_STB_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Let no block of this thread grow beyond SIZE bytes from now on. */
void stb_read_limit(size_t size);

/* Has a larger block been refused since then? */
bool stb_read_refused(void);

#endif
