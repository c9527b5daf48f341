/* SPDX-License-Identifier: MIT
 *
 * CLONES(name, (parameters), (arguments)) in front of a function's body makes the compiler build it for several
 * instruction sets. The function is static and returns nothing. Each call runs the best version that this processor
 * has. The compiler's own target_clones lets the loader choose, which musl's does not: the first call would end the
 * program. */
#ifndef GPUCONV_BASE_CLONES_H
#define GPUCONV_BASE_CLONES_H

#define CLONES(name, parameters, arguments) CLONES_OF(void, , name, parameters, arguments)

/* A function that returns a TYPE; KEYWORD is return. */
#ifdef __x86_64__
#define CLONES_OF(type, keyword, name, parameters, arguments)                                                          \
    static inline __attribute__((always_inline)) type name##_body parameters;                                          \
    static __attribute__((target("avx2,fma,bmi,bmi2"))) type name##_avx2 parameters                                    \
    {                                                                                                                  \
        keyword name##_body arguments;                                                                                 \
    }                                                                                                                  \
    static __attribute__((target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl")))                             \
    type name##_avx512 parameters                                                                                      \
    {                                                                                                                  \
        keyword name##_body arguments;                                                                                 \
    }                                                                                                                  \
    static type name parameters                                                                                        \
    {                                                                                                                  \
        if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&                                \
            __builtin_cpu_supports("avx512vl")) {                                                                      \
            keyword name##_avx512 arguments;                                                                           \
        } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && \
                   __builtin_cpu_supports("bmi2")) {                                                                   \
            keyword name##_avx2 arguments;                                                                             \
        } else {                                                                                                       \
            keyword name##_body arguments;                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static inline __attribute__((always_inline)) type name##_body parameters
#else
#define CLONES_OF(type, keyword, name, parameters, arguments) static type name parameters
#endif

#endif
