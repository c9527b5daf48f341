/* SPDX-License-Identifier: MIT
 *
 * Limits from the files of cgroups and from the environment. A file that cannot be read sets no limit. */
#include "base/resource_limits.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Cgroups ---- */

/* The one or two numbers of the file NAME in a folder: how many there are. `max`, and v1's -1, are none. */
static int read_limit_file(const char *folder, const char *name, long long numbers[2])
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const int count = fscanf(file, "%lld %lld", &numbers[0], &numbers[1]);
    fclose(file);
    return count > 0 && numbers[0] > 0 ? count : 0;
}

static void lower_memory(struct resource_limits *limits, unsigned long long bytes)
{
    if (bytes >= limits->memory)
        return;
    limits->memory = (size_t)bytes;
    limits->has_memory_limit = true;
}

/* A quota of microseconds of processors in each period. A part of a processor counts as one. */
static void lower_processors(struct resource_limits *limits, long long quota, long long period)
{
    const long long processors = period > 0 ? (quota + period - 1) / period : INT_MAX;
    if (processors < limits->processors)
        limits->processors = processors > 0 ? (int)processors : 1;
}

/* The limits of one cgroup, of v2 or v1. */
static void read_cgroup(const char *folder, struct resource_limits *limits)
{
    static const char *const memory[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    long long numbers[2], period[2];
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (read_limit_file(folder, memory[i], numbers) > 0)
            lower_memory(limits, (unsigned long long)numbers[0]);
    if (read_limit_file(folder, "cpu.max", numbers) == 2)
        lower_processors(limits, numbers[0], numbers[1]);
    else if (read_limit_file(folder, "cpu.cfs_quota_us", numbers) > 0 &&
             read_limit_file(folder, "cpu.cfs_period_us", period) > 0)
        lower_processors(limits, numbers[0], period[0]);
}

/* The limits of the cgroup PATH below a mount, and of all above it, which hold too. A container may see the host's path
 * and only its own cgroup, as the mount: then that alone is there. */
static void read_cgroups(const char *root, const char *mount, const char *path, struct resource_limits *limits)
{
    char folder[4160];
    const int above = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root, mount, path) - (int)strlen(path);
    if (above < 0 || strlen(path) > 4096 || (size_t)above + strlen(path) >= sizeof folder)
        return;
    for (char *end = folder + strlen(folder); end >= folder + above; end--)
        if (*end == '\0' || *end == '/') {
            *end = '\0';
            read_cgroup(folder, limits);
        }
}

/* cgroups(7): each line of /proc/self/cgroup is ID:CONTROLLERS:PATH. v2 has no controllers there. It is mounted alone,
 * or as `unified` next to those of v1, whose mounts have the names of their controllers. */
static void find_cgroups(const char *root, struct resource_limits *limits)
{
    char name[4160], line[4400];
    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *controllers = '/';
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (strcmp(path, "/") == 0)
            path = "";
        read_cgroups(root, controllers[1] == '\0' ? "" : controllers, path, limits);
        if (controllers[1] == '\0')
            read_cgroups(root, "/unified", path, limits);
    }
    fclose(file);
}

/* ---- Slurm and MPI ---- */

/* The number that VARIABLE begins with; 0 if it is not set, or makes no sense. */
static int read_count_variable(const char *variable)
{
    const char *value = getenv(variable);
    const long long number = value != NULL ? strtoll(value, NULL, 10) : 0;
    return number > 0 && number <= INT_MAX ? (int)number : 0;
}

/* The tasks of a Slurm step on this node, from such a text as "3(x2),1": three on nodes 0 and 1, one on node 2. */
static int slurm_tasks(void)
{
    const char *at = getenv("SLURM_STEP_TASKS_PER_NODE");
    for (long node = read_count_variable("SLURM_NODEID"); at != NULL && *at != '\0'; at += *at == ',') {
        char *end;
        const long tasks = strtol(at, &end, 10);
        long nodes = 1;
        if (strncmp(end, "(x", 2) == 0) {
            nodes = strtol(end + 2, &end, 10);
            end += *end == ')';
        }
        if (node < nodes)
            return tasks > 0 && tasks <= INT_MAX ? (int)tasks : 1;
        if (end == at || (*end != ',' && *end != '\0'))
            break;
        node -= nodes;
        at = end;
    }
    return 1;
}

/* How many processes of this program the same engine has started on this machine; at least 1. Only srun's own tasks
 * have SLURM_UMASK: a batch script may inherit the other variables of a step. */
static int local_processes(void)
{
    const int open_mpi = read_count_variable("OMPI_COMM_WORLD_LOCAL_SIZE"),
              mpich = read_count_variable("MPI_LOCALNRANKS");
    return open_mpi > 0 ? open_mpi : mpich > 0 ? mpich : getenv("SLURM_UMASK") != NULL ? slurm_tasks() : 1;
}

/* ---- All ---- */

static void lower_count(int *count, int limit)
{
    if (limit > 0 && limit < *count)
        *count = limit;
}

struct resource_limits resource_limits_find(const char *root)
{
    enum { SLURM_UNIT = 1 << 20 };
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE), online = sysconf(_SC_NPROCESSORS_ONLN);
    struct resource_limits limits = {
        .memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)1 << 30, /* 1 GiB if nobody says */
        .processors = online > 0 && online < INT_MAX ? (int)online : 1,
    };
    find_cgroups(root, &limits);
    const int processes = local_processes(), node = read_count_variable("SLURM_CPUS_ON_NODE");
    const size_t for_node = (size_t)read_count_variable("SLURM_MEM_PER_NODE"),
                 for_processor = (size_t)read_count_variable("SLURM_MEM_PER_CPU");
    lower_count(&limits.processors, node);
    if (for_node > 0)
        lower_memory(&limits, for_node * SLURM_UNIT);
    if (for_processor > 0 && node > 0)
        lower_memory(&limits, for_processor * (size_t)node * SLURM_UNIT);
    limits.memory /= (size_t)processes;
    limits.processors /= processes;
    lower_count(&limits.processors, read_count_variable("SLURM_CPUS_PER_TASK"));
    limits.processors = limits.processors > 0 ? limits.processors : 1;
    return limits;
}
