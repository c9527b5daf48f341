/* SPDX-License-Identifier: MIT
 *
 * The instruction sets of the CPU's variants. */
#ifndef GPUCONV_INSTRUCTION_SETS_H
#define GPUCONV_INSTRUCTION_SETS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The instruction sets that this machine and this build have, from the slowest to the fastest, by the names that
 * $GPUCONV_CPU takes. *COUNT is set to their number. */
const char *const *cpu_instruction_sets(size_t *count);

/* The instruction set that the CPU's variants use: the fastest, or the one that $GPUCONV_CPU asks for. Fails if the
 * machine or the build does not have that one. */
bool cpu_instruction_set(const char **name, struct error *error);

#endif
