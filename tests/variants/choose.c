/* SPDX-License-Identifier: MIT
 *
 * Which variant would be chosen: for each line `FILTER SAMPLE WIDTH HEIGHT PLANES` of standard input, the name of the
 * CUDA variant that the automatic choice takes for planes of that size. FILTER is a name, also of a filter of the
 * benchmark. For choice.py. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char name[64], sample[16];
    struct work work = {.threads = 1};
    struct filter *filter = malloc(2 * sizeof *filter); /* and room for its `filter16` */
    struct error error;
    while (filter && scanf("%63s %15s %d %d %d", name, sample, &work.width, &work.height, &work.planes) == 5) {
        if (!bench_find_filter(name, filter, filter + 1, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        work.sample = 0;
        while (work.sample < SAMPLE_COUNT && strcmp(sample, sample_name(work.sample)) != 0)
            work.sample++;
        if (work.sample == SAMPLE_COUNT) {
            fprintf(stderr, "no samples are called %s\n", sample);
            return 1;
        }
        puts(variant_choose(filter, BACKEND_CUDA, &work)->name);
    }
    free(filter);
    return 0;
}
