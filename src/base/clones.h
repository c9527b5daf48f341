/* SPDX-License-Identifier: MIT
 *
 * CLONES before a function makes the compiler build it for several instruction sets. The loader chooses one of them
 * when the program starts. Only files whose Meson target has `clones_args` get several versions. */
#ifndef GPUCONV_BASE_CLONES_H
#define GPUCONV_BASE_CLONES_H

#ifdef GPUCONV_CLONES
#define CLONES __attribute__((target_clones(GPUCONV_CLONES)))
#else
#define CLONES
#endif

#endif
