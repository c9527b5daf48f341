/* SPDX-License-Identifier: MIT
 *
 * Signals that end a program. */
#ifndef GPUCONV_SIGNALS_H
#define GPUCONV_SIGNALS_H

#include <signal.h>

/* Fill SET with the signals that end a program and are not ignored. */
void signals_find_ending(sigset_t *set);

/* End the program by signal NUMBER, as if nothing had handled it: a shell then ends its loop, too. */
_Noreturn void signals_end_program(int number);

#endif
