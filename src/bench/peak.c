/* SPDX-License-Identifier: MIT
 *
 * Measures the CPU's peak rate of float multiply-adds, with which the benchmark compares the CPU's variants. It is
 * compiled for several instruction sets (base/clones.h). */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/clones.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 1 << 16 }; /* in a call: some tens of microseconds, so reading the clock after each call costs little */

/* A loop of COUNT independent sums in registers of LANES floats. The latency of a multiply-add says how many sums are
 * needed, and the number and length of the registers how many fit. So several loops are tried. */
#define DEFINE_PEAK(lanes, count)                                                                                      \
    CLONES_OF(float, return, peak_##lanes##_##count, (float factor, float term), (factor, term))                       \
    {                                                                                                                  \
        typedef float vector __attribute__((vector_size(4 * lanes)));                                                  \
        vector sums[count];                                                                                            \
        for (int i = 0; i < count; i++)                                                                                \
            sums[i] = (vector){(float)i};                                                                              \
        for (int step = 0; step < STEPS; step++)                                                                       \
            _Pragma("GCC unroll 16") for (int i = 0; i < count; i++) sums[i] = sums[i] * factor + term;                \
        vector total = {0};                                                                                            \
        for (int i = 0; i < count; i++)                                                                                \
            total += sums[i];                                                                                          \
        return total[0] + total[lanes - 1];                                                                            \
    }

DEFINE_PEAK(16, 8) /* AVX-512 */
DEFINE_PEAK(16, 12)
DEFINE_PEAK(8, 10) /* AVX2: 16 registers */
DEFINE_PEAK(8, 12)
DEFINE_PEAK(4, 8) /* SSE, NEON */
DEFINE_PEAK(4, 12)

static const struct {
    float (*run)(float factor, float term);
    int lanes, count;
} loops[] = {{peak_16_8, 16, 8}, {peak_16_12, 16, 12}, {peak_8_10, 8, 10},
             {peak_8_12, 8, 12}, {peak_4_8, 4, 8},     {peak_4_12, 4, 12}};

struct thread_rate {
    double calls; /* calls of the loop per second */
    float result; /* the loop's result, which is used so that no compiler drops the loop */
};

struct measurement {
    size_t loop;
    double milliseconds;
    struct thread_rate *rates; /* one per thread */
};

/* Call the loop on this thread. If a thread starts so late that another one has taken its index, it counts as idle. */
static void measure_thread(void *context, int64_t index, int thread)
{
    const struct measurement *measurement = context;
    const double start = clock_milliseconds();
    double calls = 0, elapsed;
    float result = 0;
    (void)index;
    do {
        result += loops[measurement->loop].run(0.999f, 0.001f);
        calls++;
        elapsed = clock_milliseconds() - start;
    } while (elapsed < measurement->milliseconds);
    measurement->rates[thread] = (struct thread_rate){1e3 * calls / elapsed, result};
}

bool bench_measure_cpu(struct thread_pool *pool, double *peak, struct error *error)
{
    const int threads = thread_pool_threads(pool);
    const double warm_up_ms = 50, run_ms = 20; /* enough to raise the clock; enough calls to count */
    const int runs = 3;
    struct thread_rate *rates = calloc((size_t)threads, sizeof *rates);
    if (rates == NULL)
        return error_no_memory(error, "%d threads", threads);
    *peak = 0;
    for (size_t loop = 0; loop < sizeof loops / sizeof loops[0]; loop++)
        for (int run = 0; run < runs; run++) {
            struct measurement measurement = {loop, loop == 0 && run == 0 ? warm_up_ms : run_ms, rates};
            memset(rates, 0, (size_t)threads * sizeof *rates);
            parallel_for(pool, threads, threads, measure_thread, &measurement);
            double calls = 0;
            float result = 0;
            for (int thread = 0; thread < threads; thread++) {
                calls += rates[thread].calls;
                result += rates[thread].result;
            }
            /* RESULT is never NaN. The comparison keeps the compiler from removing the loops. */
            const double rate = calls * STEPS * loops[loop].lanes * loops[loop].count;
            if (result == result && rate > *peak)
                *peak = rate;
        }
    free(rates);
    return true;
}
