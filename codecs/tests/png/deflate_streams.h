/* SPDX-License-Identifier: MIT
 *
 * Deflate streams as many writers make them: zlib with random settings, and blocks that zlib never writes. */
#ifndef GPUCONV_TEST_DEFLATE_STREAMS_H
#define GPUCONV_TEST_DEFLATE_STREAMS_H

#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>

/* Append SIZE bytes, deflated, to STREAM. The window, the memory, the level and the strategy are random, and so are the
 * blocks: from a single one to one every few bytes, with all of zlib's flushes, empty ones, and stored ones of 1 to
 * 65,535 bytes. Returns the logarithm of the window's size, 9 to 15. */
int deflate_as_others(uint64_t *state, const uint8_t *bytes, size_t size, struct blob *stream);

#endif
