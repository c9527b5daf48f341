/* SPDX-License-Identifier: MIT */
#include "base/vector/instruction_sets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__aarch64__) && !defined(HWCAP2_I8MM)
#define HWCAP2_I8MM (1 << 13) /* Linux's number, which the headers of glibc 2.31 do not have */
#endif

const char *instruction_set_name(enum instruction_set set)
{
    static const char *const names[INSTRUCTION_SETS] = {
        [SET_PORTABLE] = "portable", [SET_SSE2] = "sse2", [SET_AVX2] = "avx2", [SET_AVX512] = "avx512",
        [SET_VNNI] = "vnni",         [SET_NEON] = "neon", [SET_I8MM] = "i8mm",
    };
    return names[set];
}

const enum instruction_set *instruction_sets(size_t *count)
{
    static const enum instruction_set sets[] = {
        SET_PORTABLE,
#ifdef __x86_64__
        SET_SSE2,     SET_AVX2, SET_AVX512, SET_VNNI,
#elif defined(__aarch64__)
        SET_NEON,
        SET_I8MM,
#endif
    };
    *count = sizeof sets / sizeof *sets;
#ifdef __x86_64__
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    *count -= (size_t)(!avx2 + !avx512 + !vnni);
#elif defined(__aarch64__)
    *count -= (getauxval(AT_HWCAP2) & HWCAP2_I8MM) == 0;
#endif
    return sets;
}

bool instruction_set_find(enum instruction_set *set, struct error *error)
{
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    const char *asked = getenv("GPUCONV_CPU");
    *set = sets[count - 1];
    if (asked == NULL || asked[0] == '\0')
        return true;
    for (size_t i = 0; i < count; i++)
        if (strcmp(asked, instruction_set_name(sets[i])) == 0) {
            *set = sets[i];
            return true;
        }
    return error_set(error, ERROR_USAGE,
                     "GPUCONV_CPU asks for the instruction set \"%s\", which this processor or this build does not "
                     "have; unset it, or give a set from %s to %s",
                     asked, instruction_set_name(sets[0]), instruction_set_name(sets[count - 1]));
}
