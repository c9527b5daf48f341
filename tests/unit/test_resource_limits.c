/* SPDX-License-Identifier: MIT
 *
 * Limits of cgroups, from files below a root of our own, and of Slurm and MPI, from the environment. */
#include "base/resource_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[] = "/tmp/gpuconv-limits-XXXXXX";
static size_t machine_memory;
static int machine_processors;

static void write_text(const char *name, const char *text)
{
    char path[512], command[600];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(command, sizeof command, "mkdir -p \"$(dirname '%s')\"", path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): of constants */
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int begin(void **state)
{
    (void)state;
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    strcpy(strrchr(root, '-'), "-XXXXXX");
    if (mkdtemp(root) == NULL)
        return -1;
    const struct resource_limits limits = resource_limits_find(root); /* without any file */
    machine_memory = limits.memory;
    machine_processors = limits.processors;
    return 0;
}

static int end(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): likewise */
}

/* MEMORY 0, PROCESSORS 0: what the machine has. */
static void check(size_t memory, int processors)
{
    const struct resource_limits limits = resource_limits_find(root);
    assert_int_equal(limits.memory, memory > 0 ? memory : machine_memory);
    assert_int_equal(limits.processors, processors > 0 ? processors : machine_processors);
}

/* Is some memory set aside for this process? If not, the machine has other users. */
static void check_set_aside(bool is_set_aside)
{
    assert_int_equal(resource_limits_find(root).has_memory_limit, is_set_aside);
}

static void test_cgroup_v2(void **state)
{
    (void)state;
    write_text("proc/self/cgroup", "0::/user.slice/job\n");
    check(0, 0);
    write_text("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
    write_text("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    check(0, 0);
    check_set_aside(false);
    write_text("sys/fs/cgroup/user.slice/job/memory.max", "262144000\n");
    check(262144000, 0);
    write_text("sys/fs/cgroup/user.slice/memory.max", "200000000\n"); /* the cgroups above hold, too */
    check(200000000, 0);
    write_text("sys/fs/cgroup/user.slice/job/cpu.max", "50000 100000\n");
    check(200000000, 1);
    write_text("sys/fs/cgroup/user.slice/job/memory.high", "max\n");
    check(200000000, 1);
    write_text("sys/fs/cgroup/user.slice/job/memory.high", "150000000\n"); /* beyond this the kernel slows us down */
    check(150000000, 1);
    check_set_aside(true);
}

/* A container sees its own cgroup as the root. */
static void test_cgroup_of_a_container(void **state)
{
    (void)state;
    write_text("proc/self/cgroup", "0::/\n");
    write_text("sys/fs/cgroup/memory.max", "300000000\n");
    write_text("sys/fs/cgroup/cpu.max", "100000 100000\n");
    check(300000000, 1);
}

/* v1 with the host's path, of which only the container's own cgroup is mounted. */
static void test_cgroup_v1(void **state)
{
    (void)state;
    write_text("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/1\n1:cpu,cpuacct:/docker/1\n0::/\n");
    write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write_text("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    check(0, 0);
    write_text("sys/fs/cgroup/memory/memory.limit_in_bytes", "250000000\n");
    write_text("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n");
    check(250000000, 1);
    write_text("sys/fs/cgroup/unified/memory.max", "150000000\n"); /* v2 beside v1 */
    check(150000000, 1);
}

static void test_damaged_files_limit_nothing(void **state)
{
    (void)state;
    write_text("proc/self/cgroup", "\n0\n0:\n0::/a\n\xff:\xff:\xff\n");
    write_text("sys/fs/cgroup/a/memory.max", "-5\n");
    write_text("sys/fs/cgroup/a/cpu.max", "100 0\n");
    check(0, 0);
    write_text("sys/fs/cgroup/a/memory.max", "");
    write_text("sys/fs/cgroup/a/cpu.max", "five\n");
    check(0, 0);
}

static void test_slurm(void **state)
{
    (void)state;
    setenv("SLURM_MEM_PER_NODE", "300", 1);
    check((size_t)300 << 20, 0);
    check_set_aside(true);
    setenv("SLURM_MEM_PER_NODE", "0", 1); /* --mem=0 is all */
    check(0, 0);
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    setenv("SLURM_MEM_PER_CPU", "100", 1);
    check((size_t)100 << 20, 1);
    setenv("SLURM_CPUS_ON_NODE", "4096", 1); /* no more than there are */
    setenv("SLURM_CPUS_PER_TASK", "1", 1);
    check(0, 1);
}

static void test_processes_of_one_machine_share_it(void **state)
{
    (void)state;
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1024", 1);
    check_set_aside(false);
    check(machine_memory / 1024, 1);
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    setenv("MPI_LOCALNRANKS", "2048", 1);
    check(machine_memory / 2048, 1);
    unsetenv("MPI_LOCALNRANKS");
    setenv("SLURM_STEP_TASKS_PER_NODE", "300(x2),500", 1);
    check(0, 0); /* a script that inherits it */
    setenv("SLURM_UMASK", "0022", 1);
    check(machine_memory / 300, 0 + 1);
    setenv("SLURM_NODEID", "1", 1);
    check(machine_memory / 300, 1);
    setenv("SLURM_NODEID", "2", 1);
    check(machine_memory / 500, 1);
    setenv("SLURM_NODEID", "3", 1);
    check(0, 0);
    setenv("SLURM_STEP_TASKS_PER_NODE", "x", 1);
    check(0, 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_cgroup_v2), TEST(test_cgroup_of_a_container),
        TEST(test_cgroup_v1), TEST(test_damaged_files_limit_nothing),
        TEST(test_slurm),     TEST(test_processes_of_one_machine_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
