/* SPDX-License-Identifier: MIT
 *
 * What a call of the library takes: library [FILTER...]. 1 x 1 and 64 x 64 show the overhead of a call, 5120 x 2880 the
 * speed. On the CPU, each line has the microseconds of all processors and of the clock. On a GPU, the images are in its
 * memory, and each line has the microseconds until a call returns and until its work is done, with many calls queued.
 * The least of some rounds counts, because processors are shared. */
#include <gpuconv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 7 };

static double microseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void check(int done, const char *sentence)
{
    if (done)
        return;
    fprintf(stderr, "%s\n", sentence);
    exit(1);
}

#ifdef GPUCONV_CUDA_RUNTIME

/* From cuda_runtime_api.h, whose folder only nvcc knows. */
int cudaMalloc(void **memory, size_t size);
int cudaFree(void *memory);
int cudaMemset(void *memory, int value, size_t size);
int cudaDeviceSynchronize(void);

static void *open_memory(size_t size)
{
    void *memory;
    check(cudaMalloc(&memory, size) == 0 && cudaMemset(memory, 77, size) == 0, "the GPU has too little memory");
    return memory;
}

static void close_memory(void *memory)
{
    cudaFree(memory);
}

static void finish(void)
{
    check(cudaDeviceSynchronize() == 0, "a kernel failed");
}

static const int has_gpu = 1;

#else

static void *open_memory(size_t size)
{
    uint8_t *memory = malloc(size);
    check(memory != NULL, "there is too little memory");
    for (size_t i = 0; i < size; i++)
        memory[i] = (uint8_t)(i * i >> 5);
    return memory;
}

static void close_memory(void *memory)
{
    free(memory);
}

static void finish(void)
{
}

static const int has_gpu = 0;

#endif

/* One line, for images of SHAPE, whose data do not matter. */
static void measure(struct gpuconv_context *context, const char *name, const struct gpuconv_view *shape,
                    const char *layout)
{
    static const char *const types[] = {"uint8", "uint16", "float"};
    static const size_t bytes[] = {1, 2, 4};
    struct gpuconv_error error;
    struct gpuconv_filter *filter = gpuconv_filter_find(name, &error);
    check(filter != NULL, error.message);
    const size_t samples = (size_t)shape->width * (size_t)shape->height * (size_t)shape->channels;
    struct gpuconv_view in = *shape, out = *shape;
    in.data = open_memory(samples * bytes[shape->type]);
    out.data = open_memory(samples * bytes[shape->type]);
    const int calls = samples < 100000 ? 2000 : has_gpu ? 100 : 3;
    double processor = 0, returned = 0, done = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double used = microseconds(CLOCK_PROCESS_CPUTIME_ID), start = microseconds(CLOCK_MONOTONIC);
        for (int i = 0; i < calls; i++)
            check(gpuconv_apply(context, filter, &in, &out, NULL, &error) == GPUCONV_OK, error.message);
        const double queued = microseconds(CLOCK_MONOTONIC);
        finish();
        const double times[] = {microseconds(CLOCK_PROCESS_CPUTIME_ID) - used, queued - start,
                                microseconds(CLOCK_MONOTONIC) - start};
        double *const least[] = {&processor, &returned, &done};
        for (int i = 0; i < 3; i++)
            *least[i] = round == 0 || times[i] / calls < *least[i] ? times[i] / calls : *least[i];
    }
    printf("%-12s %4d x %4d x %d %-6s %-11s %10.2f us %s, %10.2f us until it is done\n", name, shape->width,
           shape->height, shape->channels, types[shape->type], layout, has_gpu ? returned : processor,
           has_gpu ? "until the call returns" : "of processors", done);
    close_memory(in.data);
    close_memory(out.data);
    gpuconv_filter_close(filter);
}

static void measure_filter(struct gpuconv_context *one, struct gpuconv_context *all, const char *name)
{
    static const int sizes[][3] = {{1, 1, 1}, {64, 64, 1}, {64, 64, 3}, {5120, 2880, 3}};
    for (int i = 0; i < 4; i++)
        for (int type = GPUCONV_UINT8; type <= (i < 2 ? GPUCONV_UINT8 : GPUCONV_FLOAT); type++) {
            const int *size = sizes[i];
            struct gpuconv_view view = gpuconv_interleaved(NULL, size[0], size[1], size[2], (enum gpuconv_type)type);
            view.memory = has_gpu ? GPUCONV_DEVICE : GPUCONV_HOST;
            measure(i < 3 ? one : all, name, &view, "interleaved");
            view = gpuconv_planar(NULL, size[0], size[1], size[2], (enum gpuconv_type)type);
            view.memory = has_gpu ? GPUCONV_DEVICE : GPUCONV_HOST;
            if (size[2] > 1)
                measure(i < 3 ? one : all, name, &view, "planar");
        }
}

int main(int count, char *names[])
{
    static const char *const standard[] = {"identity", "sharpen", "box9", "gaussian:2"};
    struct gpuconv_error error;
    const struct gpuconv_context_options options = {.threads = 1, .uses_gpu = has_gpu},
                                         all_threads = {.uses_gpu = has_gpu};
    struct gpuconv_context *one = gpuconv_context_open(&options, &error);
    check(one != NULL, error.message);
    struct gpuconv_context *all = gpuconv_context_open(&all_threads, &error);
    check(all != NULL, error.message);
    for (int i = 1; i < count; i++)
        measure_filter(one, all, names[i]);
    for (int i = 0; count < 2 && i < 4; i++)
        measure_filter(one, all, standard[i]);
    gpuconv_context_close(one);
    gpuconv_context_close(all);
    return 0;
}
