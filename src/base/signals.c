/* SPDX-License-Identifier: MIT */
#include "base/signals.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

void signals_find_ending(sigset_t *set)
{
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sigaction action;
        if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, all[i]);
    }
}

int signals_wait(const sigset_t *set, int milliseconds)
{
    const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    const int number = milliseconds < 0 ? sigwaitinfo(set, NULL) : sigtimedwait(set, NULL, &time);
    return number > 0 ? number : 0;
}

_Noreturn void signals_end_program(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    pthread_kill(pthread_self(), number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    _exit(128 + number);
}
