/* SPDX-License-Identifier: MIT
 *
 * The stopwatch: see stages.h. */
#include "pipeline/stages.h"

#include "base/clock.h"

void stages_begin(struct stages *stages)
{
    *stages = (struct stages){0};
    stages->start = stages->last = clock_milliseconds();
}

void stages_end(struct stages *stages, enum stage stage)
{
    const double now = clock_milliseconds();
    stages->milliseconds[stage] += now - stages->last;
    stages->last = now;
}

double stages_total(const struct stages *stages)
{
    return stages->last - stages->start;
}

const char *stage_name(enum stage stage)
{
    static const char *const names[STAGE_COUNT] = {
        [STAGE_WAIT] = "wait",         [STAGE_READ] = "read",     [STAGE_DECODE] = "decode",
        [STAGE_DRIVER] = "driver",     [STAGE_PLAN] = "plan",     [STAGE_CONTEXT] = "context",
        [STAGE_BUFFERS] = "buffers",   [STAGE_UPLOAD] = "upload", [STAGE_SPLIT] = "split",
        [STAGE_CONVOLVE] = "convolve", [STAGE_MERGE] = "merge",   [STAGE_DOWNLOAD] = "download",
        [STAGE_ENCODE] = "encode",     [STAGE_WRITE] = "write",
    };
    return names[stage];
}
