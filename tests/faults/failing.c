/* SPDX-License-Identifier: MIT
 *
 * A library for LD_PRELOAD that makes calls fail. $GPUCONV_FAIL is KIND:N: the Nth call of that kind after main starts
 * fails; or KIND:N+: the Nth and all later ones fail. KIND is memory (malloc and its relatives, also when libc calls
 * them) or thread (pthread_create). When the program ends by itself, the number of calls is written to the descriptor
 * $GPUCONV_FAIL_COUNT. $GPUCONV_NAMED simulates a file system without unnamed files, such as NFS.
 *
 * $GPUCONV_KILL is N: SIGKILL ends the program before its Nth call that changes a file. With $GPUCONV_POWER it ends as
 * by a power cut: what was appended to a file and not flushed is lost, but no renaming. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { KIND_NONE, KIND_MEMORY, KIND_THREAD };

static enum kind kind;
static long first;
static bool all;
static atomic_long calls;
static atomic_bool armed;

/* libc's own functions; libc offers these names to libraries that replace malloc. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool fails(enum kind asked)
{
    if (asked != kind || !atomic_load(&armed))
        return false;
    const long number = atomic_fetch_add(&calls, 1) + 1;
    return number == first || (all && number > first);
}

static bool no_memory(void)
{
    if (!fails(KIND_MEMORY))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return no_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return no_memory() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    return no_memory() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return no_memory() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (fails(KIND_MEMORY))
        return ENOMEM;
    *block = __libc_memalign(alignment, size);
    return *block != NULL ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return fails(KIND_THREAD) ? EAGAIN : next(thread, attributes, start, argument);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;
    va_start(arguments, flags);
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if ((flags & O_TMPFILE) == O_TMPFILE && getenv("GPUCONV_NAMED") != NULL) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* ---- The end at a call ---- */

static atomic_long changes;
static int appended = -1; /* the file to which lines are appended */
static off_t flushed;     /* its size when it was last flushed */

static off_t size_of(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 ? status.st_size : 0;
}

/* Call this before a call that changes a file. */
static void count_change(void)
{
    const char *last = getenv("GPUCONV_KILL");
    if (last == NULL || !atomic_load(&armed) || atomic_fetch_add(&changes, 1) + 1 != atol(last))
        return;
    if (getenv("GPUCONV_POWER") != NULL && appended >= 0 && ftruncate(appended, flushed) != 0)
        _exit(1);
    kill(getpid(), SIGKILL);
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    if (descriptor > STDERR_FILENO) {
        if (appended < 0 && (fcntl(descriptor, F_GETFL) & O_APPEND) != 0) {
            appended = descriptor;
            flushed = size_of(descriptor);
        }
        count_change();
    }
    return syscall(SYS_write, descriptor, bytes, size);
}

int fsync(int descriptor)
{
    count_change();
    return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    count_change();
    const int result = (int)syscall(SYS_fdatasync, descriptor);
    if (result == 0 && descriptor == appended)
        flushed = size_of(descriptor);
    return result;
}

int renameat(int old_folder, const char *old, int new_folder, const char *new)
{
    count_change();
    return (int)syscall(SYS_renameat2, old_folder, old, new_folder, new, 0);
}

int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags)
{
    count_change();
    return (int)syscall(SYS_linkat, old_folder, old, new_folder, new, flags);
}

/* ---- The way to main ---- */

static void write_count(void)
{
    char text[32];
    const char *descriptor = getenv("GPUCONV_FAIL_COUNT");
    const int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
    if (descriptor != NULL && write(atoi(descriptor), text, (size_t)length) < 0)
        _exit(1);
}

static int (*real_main)(int, char **, char **);

static int counted_main(int count, char **arguments, char **environment)
{
    const char *text = getenv("GPUCONV_FAIL"), *number = text != NULL ? strchr(text, ':') : NULL;
    if (number != NULL) {
        kind = text[0] == 'm' ? KIND_MEMORY : KIND_THREAD;
        first = atol(number + 1);
        all = text[strlen(text) - 1] == '+';
    }
    atexit(write_count);
    atomic_store(&armed, true);
    const int status = real_main(count, arguments, environment);
    atomic_store(&armed, false);
    return status;
}

/* From the program's first instruction. */
int __libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, void (*begin)(void),
                      void (*end)(void), void (*unload)(void), void *stack);

int __libc_start_main(int (*main)(int, char **, char **), int count, char **arguments, void (*begin)(void),
                      void (*end)(void), void (*unload)(void), void *stack)
{
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return next(counted_main, count, arguments, begin, end, unload, stack);
}
