/* SPDX-License-Identifier: MIT
 *
 * What a call of the library takes, in microseconds of the calling thread's processor time and of the clock, beside the
 * same call for a single pixel: library [FILTER...]. The size 64 x 64 shows the overhead, 5120 x 2880 the speed. */
#include <gpuconv.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double microseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* The least of some rounds: processors are shared. */
static void measure(struct gpuconv_context *context, const struct gpuconv_filter *filter, const char *name, int width,
                    int height, int channels, enum gpuconv_type type)
{
    enum { ROUNDS = 7 };
    struct gpuconv_error error;
    struct gpuconv_image *in = gpuconv_image_new(width, height, channels, type, &error);
    struct gpuconv_image *out = gpuconv_image_new(width, height, channels, type, &error);
    if (in == NULL || out == NULL) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    const struct gpuconv_view from = gpuconv_image_view(in), to = gpuconv_image_view(out);
    const size_t size = (size_t)width * (size_t)height * (size_t)channels;
    for (size_t i = 0; i < size; i++)
        if (type == GPUCONV_UINT8)
            ((uint8_t *)from.data)[i] = (uint8_t)(i * i >> 5);
        else if (type == GPUCONV_UINT16)
            ((uint16_t *)from.data)[i] = (uint16_t)(i * i >> 5);
        else
            ((float *)from.data)[i] = (float)(i * i >> 5 & 255) / 255;
    const int calls = size < 100000 ? 2000 : size < 1000000 ? 50 : 3;
    double least = 0, least_time = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double processor = microseconds(CLOCK_PROCESS_CPUTIME_ID), start = microseconds(CLOCK_MONOTONIC);
        for (int i = 0; i < calls; i++)
            if (gpuconv_apply(context, filter, &from, &to, NULL, &error) != GPUCONV_OK) {
                fprintf(stderr, "%s\n", error.message);
                exit(1);
            }
        const double used = (microseconds(CLOCK_PROCESS_CPUTIME_ID) - processor) / calls;
        const double time = (microseconds(CLOCK_MONOTONIC) - start) / calls;
        least = round == 0 || used < least ? used : least;
        least_time = round == 0 || time < least_time ? time : least_time;
    }
    static const char *const types[] = {"uint8", "uint16", "float"};
    printf("%-12s %4d x %4d x %d %-6s  %10.2f us of a processor, %10.2f us\n", name, width, height, channels,
           types[type], least, least_time);
    gpuconv_image_free(in);
    gpuconv_image_free(out);
}

int main(int count, char *names[])
{
    static char *standard[] = {NULL, "identity", "sharpen", "box9", "gaussian:2"};
    struct gpuconv_error error;
    struct gpuconv_context *one = gpuconv_context_open(&(struct gpuconv_context_options){.threads = 1}, &error);
    struct gpuconv_context *all = gpuconv_context_open(NULL, &error);
    if (count < 2) {
        names = standard;
        count = sizeof standard / sizeof *standard;
    }
    for (int i = 1; one != NULL && all != NULL && i < count; i++) {
        struct gpuconv_filter *filter = gpuconv_filter_find(names[i], &error);
        if (filter == NULL) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        measure(one, filter, names[i], 1, 1, 1, GPUCONV_UINT8);
        measure(one, filter, names[i], 64, 64, 1, GPUCONV_UINT8);
        for (enum gpuconv_type type = GPUCONV_UINT8; type <= GPUCONV_FLOAT; type++) {
            measure(one, filter, names[i], 64, 64, 3, type);
            measure(all, filter, names[i], 5120, 2880, 3, type);
        }
        gpuconv_filter_close(filter);
    }
    gpuconv_context_close(one);
    gpuconv_context_close(all);
    return 0;
}
