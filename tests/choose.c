/* SPDX-License-Identifier: MIT
 *
 * Which variant would be chosen: for each line `FILTER-FILE uint8|float WIDTH HEIGHT PLANES` of standard input, the
 * name of the CUDA variant that the automatic choice takes for planes of that size. For choice.py. */
#include "conv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char path[1024], sample[16];
    struct work work = {.threads = 1};
    struct filter *filter = malloc(sizeof *filter);
    struct error error;
    while (filter && scanf("%1023s %15s %d %d %d", path, sample, &work.width, &work.height, &work.planes) == 5) {
        if (!filter_find(path, filter, &error)) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        work.sample = strcmp(sample, "float") == 0 ? SAMPLE_F32 : SAMPLE_U8;
        puts(conv_choose(filter, BACKEND_CUDA, &work)->name);
    }
    free(filter);
    return 0;
}
