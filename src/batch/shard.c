/* SPDX-License-Identifier: MIT
 *
 * Shards: their number from text or the environment, and the files of each. */
#include "batch/shard.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* The number of shards, for engines that do not set it. */
#define SHARDS_VARIABLE "GPUCONV_SHARDS"

/* ---- From text and environment ---- */

/* Read a number of 1 to 9 digits that fills TEXT up to END. */
static bool read_number(const char *text, const char *end, int *number)
{
    return text_read_number(&text, 0, SHARD_MAX, number) && text == end;
}

/* An empty variable counts as unset: that is how scripts unset them. */
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

/* The number that VARIABLE, which is set, holds. */
static bool read_variable(const char *variable, int *number, struct error *error)
{
    const char *found = getenv(variable), *value = found != NULL ? found : "";
    return read_number(value, value + strlen(value), number) ||
           error_set(error, ERROR_USAGE,
                     "--shard auto: the environment variable %s is \"%s\", not a number from 0 to %d; give --shard I/N",
                     variable, value, SHARD_MAX);
}

/* An engine that gives each process a number and their count. */
struct engine {
    const char *name;
    const char *index, *count;
    int first; /* what INDEX counts from */
    bool (*find)(const struct engine *engine, struct shard *shard, struct error *error);

    /* For find_array_shard; NULL if there is no such variable. */
    const char *min, *max, *step;
    const char *none; /* the value of INDEX outside of an array */
};

/* Find the shard by the variables of ENGINE, whose index is set. */
static bool find_shard(const struct engine *engine, struct shard *shard, struct error *error)
{
    const char *count = engine->count;
    int index;
    if (!is_set(count))
        return error_set(error, ERROR_USAGE,
                         "--shard auto: %s sets the environment variable %s, but %s, the number of processes, is not "
                         "set; set it or give --shard I/N",
                         engine->name, engine->index, count);
    if (!read_variable(engine->index, &index, error) || !read_variable(count, &shard->count, error))
        return false;
    shard->index = index - engine->first;
    if (shard->index < 0 || shard->index >= shard->count)
        return error_set(error, ERROR_USAGE,
                         "--shard auto: the environment variables contradict each other: %s is %d and %s is %d; give "
                         "--shard I/N",
                         engine->index, index, count, shard->count);
    return true;
}

/* A task of srun, or the script of a batch job. A script looks like the first task, but nobody starts the others, so
 * their files would stay undone. One that is submitted from inside a step inherits that step's variables. Only
 * SLURM_UMASK tells: srun sets it, and slurmstepd takes it from scripts. */
static bool find_slurm_shard(const struct engine *engine, struct shard *shard, struct error *error)
{
    const char *count = is_set("SLURM_NTASKS") ? "SLURM_NTASKS" : "SLURM_JOB_NUM_NODES";
    int processes = 1;
    if (is_set("SLURM_STEP_ID") && is_set("SLURM_UMASK"))
        return find_shard(engine, shard, error);
    if (is_set(count) && !read_variable(count, &processes, error))
        return false;
    *shard = (struct shard){0, 1};
    return processes <= 1 || is_set("SLURM_ARRAY_TASK_ID") ||
           error_set(error, ERROR_USAGE,
                     "--shard auto: %s is %d, but this is the script of a Slurm job, not one of its tasks; start "
                     "gpuconv with srun",
                     count, processes);
}

/* A job array, whose numbers need not begin at 0 nor follow each other. Without a COUNT it follows from the others. */
static bool find_array_shard(const struct engine *engine, struct shard *shard, struct error *error)
{
    enum { ID, MIN, MAX, STEP, COUNT, VARIABLES };
    const char *const names[VARIABLES] = {engine->index, engine->min, engine->max, engine->step, engine->count};
    int values[VARIABLES] = {[MIN] = engine->first};

    for (int i = 0; i < VARIABLES; i++) {
        if (names[i] == NULL)
            continue;
        if (!is_set(names[i]))
            return error_set(error, ERROR_USAGE,
                             "--shard auto: %s sets the environment variable %s, but %s is not set; give --shard I/N",
                             engine->name, names[ID], names[i]);
        if (!read_variable(names[i], &values[i], error))
            return false;
    }
    const int step = values[STEP] > 0 ? values[STEP] : 1, past = values[ID] - values[MIN];
    const int count = (values[MAX] - values[MIN]) / step + 1;
    *shard = (struct shard){past / step, count};
    return (past >= 0 && past % step == 0 && values[ID] <= values[MAX] &&
            (engine->count == NULL || values[COUNT] == count)) ||
           error_set(error, ERROR_USAGE,
                     "--shard auto: number %d of a job array of %s from %d to %d in steps of %d cannot be placed; give "
                     "all numbers of the array as one range",
                     values[ID], engine->name, values[MIN], values[MAX], step);
}

/* In the order of the header. */
static const struct engine engines[] = {
    {.name = "GNU parallel", .index = "PARALLEL_SEQ", .count = SHARDS_VARIABLE, .first = 1, .find = find_shard},
    {.name = "Open MPI", .index = "OMPI_COMM_WORLD_RANK", .count = "OMPI_COMM_WORLD_SIZE", .find = find_shard},
    {.name = "PMI", .index = "PMI_RANK", .count = "PMI_SIZE", .find = find_shard},
    {.name = "Slurm", .index = "SLURM_PROCID", .count = "SLURM_STEP_NUM_TASKS", .find = find_slurm_shard},
    {.name = "Slurm",
     .index = "SLURM_ARRAY_TASK_ID",
     .count = "SLURM_ARRAY_TASK_COUNT",
     .find = find_array_shard,
     .min = "SLURM_ARRAY_TASK_MIN",
     .max = "SLURM_ARRAY_TASK_MAX",
     .step = "SLURM_ARRAY_TASK_STEP"},
    {.name = "LSF",
     .index = "LSB_JOBINDEX",
     .first = 1,
     .find = find_array_shard,
     .max = "LSB_JOBINDEX_END",
     .step = "LSB_JOBINDEX_STEP",
     .none = "0"},
    {.name = "Grid Engine",
     .index = "SGE_TASK_ID",
     .find = find_array_shard,
     .min = "SGE_TASK_FIRST",
     .max = "SGE_TASK_LAST",
     .step = "SGE_TASK_STEPSIZE",
     .none = "undefined"},
    {.name = "PBS", .index = "PBS_ARRAY_INDEX", .count = SHARDS_VARIABLE, .find = find_shard},
    {.name = "Torque", .index = "PBS_ARRAYID", .count = SHARDS_VARIABLE, .find = find_shard},
    {.name = "Kubernetes", .index = "JOB_COMPLETION_INDEX", .count = SHARDS_VARIABLE, .find = find_shard},
    {.name = "AWS Batch", .index = "AWS_BATCH_JOB_ARRAY_INDEX", .count = SHARDS_VARIABLE, .find = find_shard},
    {.name = "AWS Batch",
     .index = "AWS_BATCH_JOB_ARRAY_INDEX",
     .count = "AWS_BATCH_JOB_ARRAY_SIZE",
     .find = find_shard},
    {.name = "Cloud Run", .index = "CLOUD_RUN_TASK_INDEX", .count = "CLOUD_RUN_TASK_COUNT", .find = find_shard},
};

enum { ENGINES = sizeof engines / sizeof *engines };

/* Has ENGINE started this process as one of several? */
static bool has_started(const struct engine *engine)
{
    const char *index = getenv(engine->index);
    return index != NULL && index[0] != '\0' && (engine->none == NULL || strcmp(index, engine->none) != 0);
}

static bool from_environment(struct shard *shard, struct error *error)
{
    bool found = false;
    for (const struct engine *engine = engines; engine < engines + ENGINES; engine++) {
        /* Without a number of shards, GNU parallel or Kubernetes runs gpuconv for another purpose. */
        const bool counts_itself = engine->count == NULL || strcmp(engine->count, SHARDS_VARIABLE) != 0;
        if (!has_started(engine) || (!counts_itself && !is_set(SHARDS_VARIABLE)))
            continue;
        if (!engine->find(engine, shard, error))
            return false;
        found = true;
        if (shard->count > 1)
            break;
    }
    if (found)
        return true;
    for (const struct engine *engine = engines; engine < engines + ENGINES; engine++)
        if (has_started(engine))
            return engine->find(engine, shard, error); /* says that the number is missing */
    char names[512] = "";
    for (int i = 0; i < ENGINES; i++)
        if (i == 0 || strcmp(engines[i].index, engines[i - 1].index) != 0)
            text_add_word(names, sizeof names, engines[i].index, i == ENGINES - 1 ? " and " : NULL);
    return error_set(error, ERROR_USAGE,
                     "--shard auto: no known batch system was found; looked for the environment variables %s; give "
                     "--shard I/N",
                     names);
}

bool shard_parse(const char *text, struct shard *shard, struct error *error)
{
    const char *slash = strchr(text, '/');
    int number, count;
    if (strcmp(text, "auto") == 0)
        return from_environment(shard, error);
    if (slash == NULL || !read_number(text, slash, &number) || !read_number(slash + 1, text + strlen(text), &count))
        return error_set(error, ERROR_USAGE,
                         "--shard takes I/N, such as 2/8 for the second of eight, or auto, not \"%s\"", text);
    if (count < 1)
        return error_set(error, ERROR_USAGE, "--shard %s: there is no such shard; give a shard such as 1/1", text);
    if (number < 1 || number > count)
        return error_set(error, ERROR_USAGE, "--shard %s: there is no such shard; give a shard from 1/%d to %d/%d",
                         text, count, count, count);
    *shard = (struct shard){number - 1, count};
    return true;
}

/* ---- The files of each ---- */

/* The last steps of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t shard_mix(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

/* FNV-1a, then mixed, because its low bits alone are a poor hash. */
uint64_t shard_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    return shard_mix(hash);
}

int shard_of(const char *name, int count)
{
    return (int)(shard_hash(name) % (uint64_t)count);
}
