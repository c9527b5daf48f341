/* SPDX-License-Identifier: MIT
 *
 * Signals, standard streams, parse, dispatch, exit code. */
#include "app/messages.h"
#include "app/modes.h"
#include "app/options.h"
#include "base/parallel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Occupy the standard descriptors that are closed. Otherwise a file that is opened later becomes one of them. Each is
 * opened for the wrong direction, so that its use still fails. */
static void occupy_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(STATUS_FAILED); /* there may be no stream to report it on */
}

static void do_nothing(int number)
{
    (void)number;
}

/* A write to a closed pipe or beyond the limit of file sizes must fail, not kill the program: a warning that nobody
 * reads must not prevent the output. If the parent ignores SIGPIPE, it stays ignored: end_if_unread asks for that. */
static void keep_signals_from_killing(void)
{
    if (signal(SIGPIPE, do_nothing) == SIG_IGN)
        signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static int dispatch(const struct options *options)
{
    if (options->mode != MODE_RUN)
        warn_unused_by_question(options);
    switch ((enum mode)options->mode) {
    case MODE_RUN:
    case MODE_DIGEST:
        return run_images(options);
    case MODE_COMPARE:
        return run_compare(options);
    case MODE_JOBS:
        return run_jobs_from(options);
    case MODE_BENCH:
        return run_benchmark(options);
    case MODE_CONFORMANCE:
        return run_conformance(options);
    default:
        return run_query(options);
    }
}

struct program {
    int argc;
    char **argv;
    int status;
};

static void *run_program(void *context)
{
    struct program *program = context;
    struct options options;
    struct error error;
    const bool parsed = options_parse(program->argc, program->argv, &options, &error);
    program->status = parsed ? flush_output(dispatch(&options)) : print_error_line(&error);
    options_free(&options);
    return NULL;
}

int main(int argc, char *argv[])
{
    struct program program = {argc, argv, STATUS_FAILED};
    struct rlimit stack;
    pthread_t thread;
    sigset_t all;
    occupy_descriptors();
    keep_signals_from_killing();
    /* `ulimit -s` may leave too small a stack. Then all runs on a thread with a larger one, which takes the signals. */
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < PARALLEL_STACK_MIN &&
        parallel_start_thread(&thread, run_program, &program) == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        pthread_join(thread, NULL);
    } else {
        run_program(&program);
    }
    return program.status;
}
