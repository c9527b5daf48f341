/* SPDX-License-Identifier: MIT
 *
 * CLONES before a function compiles it for several instruction sets; the loader chooses one when the program starts.
 * Only files whose Meson target has `clones_args` get them. */
#ifndef GPUCONV_BASE_CLONES_H
#define GPUCONV_BASE_CLONES_H

#ifdef GPUCONV_CLONES
#define CLONES __attribute__((target_clones(GPUCONV_CLONES)))
#else
#define CLONES
#endif

#endif
