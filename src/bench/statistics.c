/* SPDX-License-Identifier: MIT
 *
 * Statistics of the times of a row. */
#include "bench/bench.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_statistics(double *milliseconds, int runs, struct bench_row *row)
{
    qsort(milliseconds, (size_t)runs, sizeof *milliseconds, compare_doubles);
    row->runs = runs;
    row->median_ms = (milliseconds[(runs - 1) / 2] + milliseconds[runs / 2]) / 2;
    row->min_ms = milliseconds[0];
    row->max_ms = milliseconds[runs - 1];
    row->spread = (milliseconds[runs - 1 - runs / 4] - milliseconds[runs / 4]) / row->median_ms;
}
