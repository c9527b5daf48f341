/* SPDX-License-Identifier: MIT
 *
 * Signals that end a program. */
#ifndef GPUCONV_SIGNALS_H
#define GPUCONV_SIGNALS_H

#include <signal.h>

/* Fill SET with the signals that end a program and are not ignored. */
void signals_find_ending(sigset_t *set);

#endif
