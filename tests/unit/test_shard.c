/* SPDX-License-Identifier: MIT
 *
 * Shards: from text, from each engine's environment, and the files of each. */
#include "batch/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make ASSIGNMENTS ("NAME=VALUE NAME=VALUE") the whole environment. */
static void set_environment(const char *assignments)
{
    char text[1024];

    assert_true(strlen(assignments) < sizeof text);
    strcpy(text, assignments);
    clearenv();
    char *rest = text;
    for (char *word; (word = strsep(&rest, " "));) {
        char *const value = strchr(word, '=');
        if (!value)
            continue;
        *value = '\0';
        assert_int_equal(setenv(word, value + 1, 1), 0);
    }
}

static void check_shard(const char *text, int index, int count)
{
    struct error error = {.code = ERROR_NONE};
    struct shard shard = {-1, -1};

    if (!shard_parse(text, &shard, &error))
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(shard.index, index);
    assert_int_equal(shard.count, count);
}

/* TEXT is refused, with PART in the message. */
static void check_refused(const char *text, const char *part)
{
    struct error error = {.code = ERROR_NONE};
    struct shard shard;

    assert_false(shard_parse(text, &shard, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" is not in: %s", part, error.message);
}

static void test_a_shard_is_read_from_text(void **state)
{
    (void)state;
    check_shard("1/1", 0, 1);
    check_shard("2/8", 1, 8);
    check_shard("8/8", 7, 8);
    check_shard("007/010", 6, 10); /* decimal, as seq -w writes it */
    check_shard("1/999999999", 0, SHARD_MAX);

    static const char *const wrong[] = {"",     "1",    "/",    "1/",   "/8",   "1/8/8",        "a/8",  "1/b", "1.5",
                                        "-1/8", "+1/8", " 1/8", "1/8 ", "1 /8", "1/1000000000", "Auto", "1//8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(wrong[i], "--shard takes I/N");
    check_refused("0/8", "from 1/8 to 8/8");
    check_refused("9/8", "from 1/8 to 8/8");
    check_refused("0/0", "such as 1/1");
    check_refused("1/0", "such as 1/1");
}

/* What Slurm 22.05 sets in the script of a batch job, in a task of srun, and for each task of an array. A script has
 * SLURM_NTASKS only where sbatch got -n. */
#define SCRIPT "SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_GTIDS=0 SLURM_TASKS_PER_NODE=1 "
#define ONE_NODE "SLURM_JOB_NUM_NODES=1 "
#define TASK_1_OF_2                                                                                                    \
    "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_UMASK=0022 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 "            \
    "SLURM_LOCALID=1 SLURM_GTIDS=0,1 SLURM_JOB_NUM_NODES=1 "
#define INHERITED "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 "
#define ARRAY(id, min, max, step, count)                                                                               \
    "SLURM_ARRAY_TASK_ID=" #id " SLURM_ARRAY_TASK_MIN=" #min " SLURM_ARRAY_TASK_MAX=" #max                             \
    " SLURM_ARRAY_TASK_STEP=" #step " SLURM_ARRAY_TASK_COUNT=" #count " "

/* LSF sets these in every job, and Grid Engine in every job, too. */
#define LSF(id, max, step) "LSB_JOBINDEX=" #id " LSB_JOBINDEX_END=" #max " LSB_JOBINDEX_STEP=" #step " "
#define GRID_ENGINE(id, min, max, step)                                                                                \
    "SGE_TASK_ID=" #id " SGE_TASK_FIRST=" #min " SGE_TASK_LAST=" #max " SGE_TASK_STEPSIZE=" #step " "

static void test_each_engine_names_its_shard(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        int index, count;
    } cases[] = {
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", 3, 4},
        {"PMI_RANK=0 PMI_SIZE=2", 0, 2},
        {TASK_1_OF_2, 1, 2},
        /* A step of fewer tasks than the job. */
        {"SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_UMASK=0022 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3 SLURM_NTASKS=6", 0, 3},
        {SCRIPT ONE_NODE, 0, 1},
        {SCRIPT ONE_NODE "SLURM_NTASKS=1", 0, 1},
        {SCRIPT ONE_NODE ARRAY(7, 0, 7, 1, 8), 7, 8},
        {SCRIPT ONE_NODE "SLURM_NTASKS=2 " ARRAY(7, 0, 7, 1, 8), 7, 8},
        {SCRIPT ONE_NODE ARRAY(20, 10, 30, 10, 3), 1, 3},
        /* --array=0-15:4: the last number is 12, and Slurm may give 15 as the largest. */
        {SCRIPT ONE_NODE ARRAY(12, 0, 15, 4, 4), 3, 4},
        {"PARALLEL_SEQ=1 GPUCONV_SHARDS=8", 0, 8},
        {"PARALLEL_SEQ=8 GPUCONV_SHARDS=8", 7, 8},
        {"JOB_COMPLETION_INDEX=0 GPUCONV_SHARDS=3", 0, 3},
        {"JOB_COMPLETION_INDEX=2 GPUCONV_SHARDS=3", 2, 3},
        {LSF(1, 8, 1), 0, 8},
        {LSF(8, 8, 1), 7, 8},
        {LSF(7, 8, 3), 2, 3}, /* 1, 4 and 7 of "name[1-8:3]" */
        {LSF(0, 0, 0) SCRIPT ONE_NODE, 0, 1},
        {GRID_ENGINE(1, 1, 8, 1), 0, 8},
        {GRID_ENGINE(30, 10, 35, 10), 2, 3},
        {GRID_ENGINE(undefined, undefined, undefined, undefined) "PMI_RANK=1 PMI_SIZE=2", 1, 2},
        {"PBS_ARRAY_INDEX=7 PBS_JOBID=12[7].head GPUCONV_SHARDS=8", 7, 8},
        {"PBS_ARRAYID=0 GPUCONV_SHARDS=8", 0, 8},
        {"AWS_BATCH_JOB_ARRAY_INDEX=9 AWS_BATCH_JOB_ARRAY_SIZE=10 AWS_BATCH_JOB_ATTEMPT=2", 9, 10},
        {"AWS_BATCH_JOB_ARRAY_INDEX=3 GPUCONV_SHARDS=4", 3, 4},
        {"AWS_BATCH_JOB_ARRAY_INDEX=3 AWS_BATCH_JOB_ARRAY_SIZE=4 GPUCONV_SHARDS=4", 3, 4},
        {"CLOUD_RUN_TASK_INDEX=0 CLOUD_RUN_TASK_COUNT=1 CLOUD_RUN_TASK_ATTEMPT=0", 0, 1},
        {"CLOUD_RUN_TASK_INDEX=5 CLOUD_RUN_TASK_COUNT=6", 5, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i].environment);
        check_shard("auto", cases[i].index, cases[i].count);
    }
    set_environment("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4");
    check_shard("1/2", 0, 2); /* what is said counts */
}

static void test_nested_engines_give_one_shard(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        int index, count;
    } cases[] = {
        /* mpirun in the script of a Slurm job, and under srun with PMI. */
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 " SCRIPT ONE_NODE "SLURM_NTASKS=4", 2, 4},
        {"PMI_RANK=1 PMI_SIZE=2 " TASK_1_OF_2, 1, 2},
        /* Scripts that are submitted from inside a step. */
        {SCRIPT ONE_NODE INHERITED ARRAY(2, 1, 4, 1, 4), 1, 4},
        {SCRIPT ONE_NODE INHERITED "SLURM_NTASKS=2 " ARRAY(2, 1, 4, 1, 4), 1, 4},
        {SCRIPT ONE_NODE INHERITED, 0, 1},
        /* srun in each task of an array: each does the whole. */
        {TASK_1_OF_2 ARRAY(2, 1, 4, 1, 4), 1, 2},
        {"SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_UMASK=0022 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 " ARRAY(2, 1, 4, 1, 4),
         1, 4},
        /* One process of mpirun in a pod. */
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 JOB_COMPLETION_INDEX=4 GPUCONV_SHARDS=5", 4, 5},
        /* parallel in each task of srun: over shards where their number is given, over something else where not. */
        {"PARALLEL_SEQ=3 GPUCONV_SHARDS=8 " TASK_1_OF_2, 2, 8},
        {"PARALLEL_SEQ=3 " TASK_1_OF_2, 1, 2},
        {"PMI_RANK= PMI_SIZE= " TASK_1_OF_2, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i].environment);
        check_shard("auto", cases[i].index, cases[i].count);
    }
}

static void test_a_wrong_environment_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"",
         "PARALLEL_SEQ, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, SLURM_ARRAY_TASK_ID, LSB_JOBINDEX, SGE_TASK_ID, "
         "PBS_ARRAY_INDEX, PBS_ARRAYID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX and CLOUD_RUN_TASK_INDEX; "
         "give"},
        {LSF(0, 0, 0), "no known batch system"},
        {GRID_ENGINE(undefined, undefined, undefined, undefined), "no known batch system"},
        {"LSB_JOBINDEX=3", "LSB_JOBINDEX_END"},
        {LSF(9, 8, 1), "of a job array of LSF from 1 to 8"},
        {GRID_ENGINE(3, 1, 8, 4), "cannot be placed"},
        {"PBS_ARRAY_INDEX=8 GPUCONV_SHARDS=8", "contradict"}, /* -J 1-8 */
        {"PBS_ARRAY_INDEX=3", "GPUCONV_SHARDS"},
        {"AWS_BATCH_JOB_ARRAY_INDEX=3", "AWS_BATCH_JOB_ARRAY_SIZE"},
        {"CLOUD_RUN_TASK_INDEX=3", "CLOUD_RUN_TASK_COUNT"},
        {"GPUCONV_SHARDS=4", "no known batch system"},
        {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK is \"x\""},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=-2", "OMPI_COMM_WORLD_SIZE is \"-2\""},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=2", "contradict"},
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=0", "contradict"},
        {"PARALLEL_SEQ=0 GPUCONV_SHARDS=8", "contradict"},
        {"PARALLEL_SEQ=9 GPUCONV_SHARDS=8", "contradict"},
        {"PARALLEL_SEQ=1", "GPUCONV_SHARDS"},
        {"JOB_COMPLETION_INDEX=0", "GPUCONV_SHARDS"},
        {"SLURM_STEP_ID=0 SLURM_UMASK=0022 SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS"},
        {SCRIPT ONE_NODE "SLURM_NTASKS=4", "SLURM_NTASKS is 4"},
        {SCRIPT "SLURM_JOB_NUM_NODES=2", "start gpuconv with srun"},
        {SCRIPT INHERITED "SLURM_JOB_NUM_NODES=2", "start gpuconv with srun"},
        {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_MIN"},
        /* --array=1,2,4 */
        {ARRAY(2, 1, 4, 1, 3), "as one range"},
        {ARRAY(5, 0, 8, 4, 3), "cannot be placed"},
        {ARRAY(0, 1, 2, 1, 2), "cannot be placed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i][0]);
        check_refused("auto", cases[i][1]);
    }
}

/* The values are Python's: every version, on every machine, must deal a file to the same shard. */
static void test_a_name_has_its_shard(void **state)
{
    (void)state;
    assert_int_equal(shard_hash(""), 0xf52a15e9a9b5e89b);
    assert_int_equal(shard_hash("a.png"), 0xd0f483569cceeb56);
    assert_int_equal(shard_hash("deep/b.jpg"), 0x21a7fff4aaf00cd8);
    assert_int_equal(shard_of("a.png", 1), 0);
    assert_int_equal(shard_of("a.png", 3), 2);
    assert_int_equal(shard_of("deep/b.jpg", SHARD_MAX), 92451545);
}

/* Cameras number their files. If 8 shards share 10000 such names, none has 10 percent more than its part. */
static void test_names_in_a_row_are_shared_out_evenly(void **state)
{
    (void)state;
    enum { FILES = 10000, SHARDS = 8 };
    int files[SHARDS] = {0};
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "DCIM/IMG_%05d.JPG", i);
        files[shard_of(name, SHARDS)]++;
    }
    for (int i = 0; i < SHARDS; i++)
        assert_in_range(files[i], FILES / SHARDS * 9 / 10, FILES / SHARDS * 11 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_shard_is_read_from_text),
        cmocka_unit_test(test_each_engine_names_its_shard),
        cmocka_unit_test(test_nested_engines_give_one_shard),
        cmocka_unit_test(test_a_wrong_environment_is_refused),
        cmocka_unit_test(test_a_name_has_its_shard),
        cmocka_unit_test(test_names_in_a_row_are_shared_out_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
