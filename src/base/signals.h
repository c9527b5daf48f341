/* SPDX-License-Identifier: MIT
 *
 * Signals that end a program. */
#ifndef GPUCONV_SIGNALS_H
#define GPUCONV_SIGNALS_H

#include <signal.h>

/* Fill SET with the signals that end a program and are not ignored. */
void signals_find_ending(sigset_t *set);

/* Wait for a signal of SET, all of which are blocked, for some MILLISECONDS; below 0: for any time. Returns its number,
 * or 0 if none came or another signal was handled meanwhile. */
int signals_wait(const sigset_t *set, int milliseconds);

/* End the program by signal NUMBER, as if nothing had handled it: a shell then ends its loop, too. */
_Noreturn void signals_end_program(int number);

#endif
