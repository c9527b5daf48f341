/* SPDX-License-Identifier: MIT
 *
 * SHA-256 (FIPS 180-4), as sha256sum prints it. */
#ifndef GPUCONV_SHA256_H
#define GPUCONV_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of a hash in hexadecimal digits, with the NUL. */
enum { SHA256_TEXT = 65 };

/* Write the hash of the SIZE bytes at BYTES to TEXT, in small hexadecimal digits. */
void sha256_text(const uint8_t *bytes, size_t size, char text[SHA256_TEXT]);

#endif
