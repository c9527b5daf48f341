/* SPDX-License-Identifier: MIT
 *
 * One shard of a batch: the number of this process among COUNT processes, and the files that it does. Any engine may
 * start the processes. They need not talk to each other. Nothing here knows images. */
#ifndef GPUCONV_SHARD_H
#define GPUCONV_SHARD_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* People count from 1 (`--shard 1/8` is the first of eight); INDEX counts from 0. */
struct shard {
    int index, count; /* 0 <= index < count */
};

/* The largest number of shards: nine digits fit in an int, and no engine starts more processes. */
#define SHARD_MAX 999999999

/* Read `I/N`, or both numbers from the environment if TEXT is `auto`. The first engine below whose variables are
 * set, and which has more than one process, counts. If each has one process, so has the batch. The innermost engine
 * comes first: mpirun may run inside a Slurm job.
 *
 *     GNU parallel             PARALLEL_SEQ (from 1), and GPUCONV_SHARDS, which the user sets: parallel does not say
 *                              how many jobs there are
 *     Open MPI's mpirun        OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *     MPICH, Intel MPI (PMI)   PMI_RANK, PMI_SIZE
 *     Slurm's srun             SLURM_PROCID, SLURM_STEP_NUM_TASKS
 *     Slurm job array          SLURM_ARRAY_TASK_ID, and _MIN, _MAX, _STEP and _COUNT of the same
 *     LSF job array            LSB_JOBINDEX (from 1; 0 if there is no array), and _END and _STEP of the same
 *     Grid Engine array job    SGE_TASK_ID ("undefined": there is no array), SGE_TASK_FIRST, _LAST and _STEPSIZE
 *     PBS, Torque job array    PBS_ARRAY_INDEX, PBS_ARRAYID (from 0: the user submits 0-7), and GPUCONV_SHARDS, which
 *                              the user sets: both do not say how many jobs there are
 *     Kubernetes Indexed Job   JOB_COMPLETION_INDEX (from 0), and GPUCONV_SHARDS, which the user sets to the job's
 *                              completions: Kubernetes does not pass them on
 *     AWS Batch array job      AWS_BATCH_JOB_ARRAY_INDEX (from 0), and AWS_BATCH_JOB_ARRAY_SIZE, or GPUCONV_SHARDS if
 *                              the user sets it
 *     Cloud Run job            CLOUD_RUN_TASK_INDEX (from 0), CLOUD_RUN_TASK_COUNT
 *
 * A variable that makes no sense, or half of a pair, is an error: a process that guessed could leave files undone. */
bool shard_parse(const char *text, struct shard *shard, struct error *error);

/* The hash of a file's NAME, which is the same on every machine. */
uint64_t shard_hash(const char *name);

/* The shard, from 0 to COUNT - 1, that does the file of this name: its hash modulo COUNT. It depends on nothing else.
 * So a file that appears, disappears or grows moves no other file, and processes that see different listings lose none.
 * */
int shard_of(const char *name, int count);

/* Mix HASH: each of its bits changes all bits of the result. */
uint64_t shard_mix(uint64_t hash);

#endif
