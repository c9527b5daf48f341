/* SPDX-License-Identifier: MIT
 *
 * The memory and processors that this process may use: the limits of containers (cgroup v1 and v2) and of Slurm, and
 * its share if MPI or Slurm has started several processes of one program on this machine. */
#ifndef GPUCONV_RESOURCE_LIMITS_H
#define GPUCONV_RESOURCE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

struct resource_limits {
    size_t memory;         /* bytes of this process */
    bool has_memory_limit; /* they are fewer than the machine has: a container or a batch system sets them aside */
    int processors;        /* at least 1 */
};

/* Find the limits. ROOT is the folder of /proc and /sys: "", or another one in tests. */
struct resource_limits resource_limits_find(const char *root);

#endif
