/* SPDX-License-Identifier: MIT
 *
 * What this process may use of its machine: the limits of containers (cgroup v1 and v2), those of Slurm, and its share
 * where MPI or Slurm has started several processes of one program on the machine. */
#ifndef GPUCONV_ALLOWANCE_H
#define GPUCONV_ALLOWANCE_H

#include <stddef.h>

struct allowance {
    size_t memory;  /* bytes of this process */
    int processors; /* at least 1 */
};

/* Find the limits. ROOT is what stands before /proc and /sys, for tests: "" otherwise. */
struct allowance allowance_find(const char *root);

#endif
