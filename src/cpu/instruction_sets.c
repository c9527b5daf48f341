/* SPDX-License-Identifier: MIT
 *
 * The CPU's instruction sets, and $GPUCONV_CPU. */
#include "cpu/loops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* From the slowest to the fastest. Each needs all that those before it need. */
static const struct loops *const all_loops[] = {
    &loops_portable,
#ifdef GPUCONV_X86
    &loops_sse2,     &loops_avx2, &loops_avx512, &loops_vnni,
#endif
};

enum { ALL_LOOPS = sizeof all_loops / sizeof all_loops[0] };

const char *const *cpu_instruction_sets(size_t *count)
{
    static const char *const names[] = {
        "portable",
#ifdef GPUCONV_X86
        "sse2",     "avx2", "avx512", "vnni",
#endif
    };
    static_assert(sizeof names / sizeof names[0] == ALL_LOOPS, "each has a name");
    *count = ALL_LOOPS;
#ifdef GPUCONV_X86
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    *count -= (size_t)(!avx2 + !avx512 + !vnni);
#endif
    return names;
}

const struct loops *loops_find(struct error *error)
{
    size_t count;
    const char *const *names = cpu_instruction_sets(&count);
    const char *asked = getenv("GPUCONV_CPU");
    if (asked == NULL || asked[0] == 0)
        return all_loops[count - 1];
    for (size_t i = 0; i < count; i++)
        if (strcmp(asked, names[i]) == 0)
            return all_loops[i];
    error_set(
        error, ERROR_USAGE,
        "GPUCONV_CPU asks for the instruction set \"%s\", which this processor or this build does not have; unset "
        "it, or take one from %s to %s",
        asked, names[0], names[count - 1]);
    return NULL;
}

bool cpu_instruction_set(const char **name, struct error *error)
{
    const struct loops *loops = loops_find(error);
    *name = loops != NULL ? loops->name : NULL;
    return loops != NULL;
}
