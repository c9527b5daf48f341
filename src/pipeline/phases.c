/* SPDX-License-Identifier: MIT
 *
 * The stopwatch: see phases.h. */
#include "pipeline/phases.h"

#include "base/clock.h"

void phases_begin(struct phases *phases)
{
    *phases = (struct phases){0};
    phases->start = phases->last = clock_milliseconds();
}

void phases_end(struct phases *phases, enum phase phase)
{
    const double now = clock_milliseconds();
    phases->milliseconds[phase] += now - phases->last;
    phases->last = now;
}

double phases_total(const struct phases *phases)
{
    return phases->last - phases->start;
}

const char *phase_name(enum phase phase)
{
    static const char *const names[PHASE_COUNT] = {
        [PHASE_WAIT] = "wait",         [PHASE_READ] = "read",     [PHASE_DECODE] = "decode",
        [PHASE_DRIVER] = "driver",     [PHASE_PLAN] = "plan",     [PHASE_CONTEXT] = "context",
        [PHASE_BUFFERS] = "buffers",   [PHASE_UPLOAD] = "upload", [PHASE_SPLIT] = "split",
        [PHASE_CONVOLVE] = "convolve", [PHASE_MERGE] = "merge",   [PHASE_DOWNLOAD] = "download",
        [PHASE_ENCODE] = "encode",     [PHASE_WRITE] = "write",
    };
    return names[phase];
}
