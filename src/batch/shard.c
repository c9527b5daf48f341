/* SPDX-License-Identifier: MIT
 *
 * Shards: their number from text or the environment, and the files of each. */
#include "batch/shard.h"

#include "base/text.h"

#include <assert.h>
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

/* A Slurm job array, whose numbers need not begin at 0 nor follow each other. */
static bool find_array_shard(const struct engine *engine, struct shard *shard, struct error *error)
{
    const char *names[] = {engine->index, "SLURM_ARRAY_TASK_MIN", engine->count, "SLURM_ARRAY_TASK_MAX",
                           "SLURM_ARRAY_TASK_STEP"};
    enum { ID, MIN, COUNT, MAX, STEP, VARIABLES };
    static_assert(sizeof names / sizeof *names == VARIABLES, "a variable has no name");
    int values[VARIABLES];

    for (int i = 0; i < VARIABLES; i++) {
        if (!is_set(names[i]))
            return error_set(error, ERROR_USAGE,
                             "--shard auto: %s sets the environment variable %s, but %s is not set; give --shard I/N",
                             engine->name, names[ID], names[i]);
        if (!read_variable(names[i], &values[i], error))
            return false;
    }
    const int step = values[STEP] > 0 ? values[STEP] : 1, past = values[ID] - values[MIN];
    *shard = (struct shard){past / step, values[COUNT]};
    if (past < 0 || past % step != 0 || values[ID] > values[MAX] ||
        (values[MAX] - values[MIN]) / step + 1 != values[COUNT])
        return error_set(error, ERROR_USAGE,
                         "--shard auto: number %d of a Slurm job array of %d tasks from %d to %d in steps of %d cannot "
                         "be placed; submit it with --array=0-%d",
                         values[ID], values[COUNT], values[MIN], values[MAX], step,
                         values[COUNT] > 0 ? values[COUNT] - 1 : 0);
    return true;
}

/* In the order of the header. */
static const struct engine engines[] = {
    {"GNU parallel", "PARALLEL_SEQ", SHARDS_VARIABLE, 1, find_shard},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 0, find_shard},
    {"PMI", "PMI_RANK", "PMI_SIZE", 0, find_shard},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", 0, find_slurm_shard},
    {"Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 0, find_array_shard},
    {"Kubernetes", "JOB_COMPLETION_INDEX", SHARDS_VARIABLE, 0, find_shard},
};

enum { ENGINES = sizeof engines / sizeof *engines };

static bool from_environment(struct shard *shard, struct error *error)
{
    bool found = false;
    for (const struct engine *engine = engines; engine < engines + ENGINES; engine++) {
        /* Without a number of shards, GNU parallel or Kubernetes runs gpuconv for another purpose. */
        if (!is_set(engine->index) || (strcmp(engine->count, SHARDS_VARIABLE) == 0 && !is_set(SHARDS_VARIABLE)))
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
        if (is_set(engine->index))
            return engine->find(engine, shard, error); /* says that the number is missing */
    return error_set(
        error, ERROR_USAGE,
        "--shard auto: no known batch system was found; looked for the environment variables PARALLEL_SEQ, "
        "OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX; give --shard I/N");
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
        return error_set(error, ERROR_USAGE, "--shard %s: there is no such shard; give at least one, as in 1/1", text);
    if (number < 1 || number > count)
        return error_set(error, ERROR_USAGE, "--shard %s: there is no such shard; give one from 1/%d to %d/%d", text,
                         count, count, count);
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
