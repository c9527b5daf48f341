/* SPDX-License-Identifier: MIT
 *
 * Files read and written whole: modes, links, full disks, signals, nothing left behind. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* The folder for the files of a test. The group's set-up makes it, the tear-down removes it. */
static char folder[] = "/tmp/gpuconv-file-XXXXXX";

/* Does openat() below act as a file system without unnamed files? */
static bool named_only;

/* The signal that arrives just after a temporary file got its name, or 0. */
static int signal_after_link;

/* Replaces libc's linkat, in replace.c too. */
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    const int result = (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    if (signal_after_link != 0)
        raise(signal_after_link);
    return result;
}

/* Replaces libc's openat, in replace.c too. */
int openat(int from, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;
    va_start(arguments, flags);
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (named_only && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, from, path, flags, mode);
}

/* The path of a file in the test's folder, valid until the next call but one. */
static const char *in_folder(const char *name)
{
    static char paths[2][4096];
    static int next;
    next = !next;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static void remove_all(void)
{
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
}

/* How many files are in the test's folder. */
static int count_files(void)
{
    DIR *directory = opendir(folder);
    int count = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static void assert_holds(const char *path, const char *text)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    if (!file_read(path, 1 << 20, &bytes, &size, NULL, &error))
        fail_msg("%s", error.message);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static bool write_text(const char *path, const char *text, struct error *error)
{
    return file_write(path, (const uint8_t *)text, strlen(text), NULL, error);
}

static void assert_not_written(const char *path, const char *reason)
{
    struct error error = {0};
    assert_false(write_text(path, "new", &error));
    assert_true(error.code == ERROR_OUTPUT || error.code == ERROR_WRITE);
    if (strstr(error.message, reason) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", reason, error.message);
}

/* On a file system with unnamed files, then on one without. */
static void test_writing_keeps_mode_and_links(void **state)
{
    struct error error = {0};
    const mode_t mask = umask(027);
    (void)state;
    for (int named = 0; named < 2; named++) {
        named_only = named;
        if (!write_text(in_folder("new"), "first", &error))
            fail_msg("%s", error.message);
        assert_int_equal(mode_of(in_folder("new")), 0640);
        assert_holds(in_folder("new"), "first");

        assert_int_equal(chmod(in_folder("new"), 06606), 0);
        assert_true(write_text(in_folder("new"), "second, longer", &error));
        assert_int_equal(mode_of(in_folder("new")), 0606);
        assert_holds(in_folder("new"), "second, longer");

        assert_int_equal(symlink("new", in_folder("link")), 0);
        assert_true(write_text(in_folder("link"), "third", &error));
        assert_holds(in_folder("new"), "third");
        struct stat status;
        assert_int_equal(lstat(in_folder("link"), &status), 0);
        assert_true(S_ISLNK(status.st_mode));
        assert_int_equal(count_files(), 2);
        remove_all();
    }
    named_only = false;
    umask(mask);
}

static void test_a_plain_name_is_in_the_working_folder(void **state)
{
    const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error error = {0};
    (void)state;
    assert_true(before >= 0);
    assert_int_equal(chdir(folder), 0);
    const bool done = write_text("plain", "text", &error);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_true(done);
    assert_holds(in_folder("plain"), "text");
    remove_all();
}

static void test_a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    assert_not_written(folder, "is a folder");
    assert_not_written(in_folder("x/"), "is the path of a folder");
    assert_not_written(in_folder("missing/x"), "its folder must exist");
    assert_not_written("", "is the path of a folder");
    assert_not_written("/dev/full", "No space left on device; free some space");
    assert_int_equal(symlink("nothing", in_folder("link")), 0);
    assert_not_written(in_folder("link"), "symbolic link to a file that does not exist");
    assert_int_equal(count_files(), 1);
    remove_all();

    assert_true(write_text("/dev/null", "text", NULL));
    assert_true(write_text(in_folder("file"), "old", NULL));
    assert_not_written(in_folder("file/x"), "its folder must exist");

    /* A disk that fills up on the way, with and without a file to keep. */
    struct rlimit limit, small = {.rlim_cur = 1 << 16, .rlim_max = RLIM_INFINITY};
    static uint8_t bytes[1 << 18];
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int named = 0; named < 2; named++) {
        struct error error = {0};
        named_only = named;
        setrlimit(RLIMIT_FSIZE, &small);
        const bool replaced = file_write(in_folder("file"), bytes, sizeof bytes, NULL, &error);
        const bool made = file_write(in_folder("other"), bytes, sizeof bytes, NULL, &error);
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_false(replaced);
        assert_false(made);
        assert_non_null(strstr(error.message, "File too large; free some space"));
        assert_holds(in_folder("file"), "old");
        assert_int_equal(count_files(), 1);
    }
    named_only = false;
    signal(SIGXFSZ, handler);
    remove_all();
}

static void test_a_file_without_the_right_to_write_is_kept(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("root may write anywhere: skipped\n");
        skip();
    }
    assert_true(write_text(in_folder("file"), "old", NULL));
    assert_int_equal(chmod(in_folder("file"), 0444), 0);
    assert_not_written(in_folder("file"), "Permission denied");
    assert_int_equal(chmod(folder, 0555), 0);
    assert_not_written(in_folder("other"), "Permission denied");
    assert_int_equal(chmod(folder, 0755), 0);
    assert_holds(in_folder("file"), "old");
    assert_int_equal(count_files(), 1);
    remove_all();
}

static void test_a_pipe_stays_a_pipe(void **state)
{
    char got[8] = {0};
    struct stat status;
    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    const int fd = open(in_folder("pipe"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(write_text(in_folder("pipe"), "text", NULL));
    assert_int_equal(read(fd, got, sizeof got), 4);
    assert_string_equal(got, "text");
    assert_int_equal(stat(in_folder("pipe"), &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    close(fd);
    remove_all();
}

/* A process that gets a signal while it writes leaves the old or the new file, whole, and no other file. The signal
 * still ends it. */
static void test_an_interrupted_write_leaves_a_whole_file(void **state)
{
    enum { SIZE = 1 << 20 };
    static uint8_t bytes[SIZE];
    struct error error = {0};
    (void)state;
    for (int round = 0; round < 12; round++) {
        const int signals[] = {SIGINT, SIGTERM, SIGHUP}, number = signals[round % 3];
        named_only = round % 2;
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);               /* should the signal be lost */
            signal(number, SIG_DFL); /* nohup, for one, leaves SIGHUP ignored */
            for (unsigned i = 0;; i++) {
                memset(bytes, (int)i, sizeof bytes);
                file_write(in_folder("file"), bytes, sizeof bytes, NULL, NULL);
            }
        }
        assert_true(child > 0);
        const struct timespec moment = {.tv_nsec = 20000000 + round * 1700000};
        nanosleep(&moment, NULL);
        kill(child, number);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
        assert_int_equal(count_files(), 1);
        uint8_t *got;
        size_t size;
        if (!file_read(in_folder("file"), SIZE, &got, &size, NULL, &error))
            fail_msg("%s", error.message);
        assert_int_equal(size, SIZE);
        for (size_t i = 1; i < size; i++)
            assert_int_equal(got[i], got[0]);
        free(got);
    }
    named_only = false;
    remove_all();
}

/* The signal arrives at the worst moment: the temporary file has a name and is not renamed yet. */
static void test_no_signal_leaves_a_temporary_file(void **state)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1};
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            signal(signals[i], SIG_DFL);
            signal_after_link = signals[i];
            write_text(in_folder("file"), "text", NULL);
            _exit(0);
        }
        assert_true(child > 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFSIGNALED(status)) /* linkat is not called if the file system has no unnamed files */
            assert_int_equal(WTERMSIG(status), signals[i]);
        assert_holds(in_folder("file"), "text");
        assert_int_equal(count_files(), 1);
        remove_all();
    }
}

static void test_reading_takes_whole_files_up_to_the_limit(void **state)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    int ends[2];
    (void)state;
    assert_false(file_read(folder, 100, &bytes, &size, NULL, &error));
    assert_non_null(strstr(error.message, "is a folder"));
    assert_false(file_read(in_folder("missing"), 100, &bytes, &size, NULL, &error));
    assert_non_null(strstr(error.message, "No such file or directory"));
    assert_null(bytes);
    assert_false(file_read("/dev/null", 100, &bytes, &size, NULL, &error));
    assert_non_null(strstr(error.message, "is empty"));
    assert_false(file_read("/dev/zero", 1 << 20, &bytes, &size, NULL, &error));
    assert_non_null(strstr(error.message, "is a device, which may have no end"));

    assert_true(write_text(in_folder("file"), "12345", NULL));
    assert_true(file_read(in_folder("file"), 5, &bytes, &size, NULL, &error));
    assert_int_equal(size, 5);
    free(bytes);
    assert_false(file_read(in_folder("file"), 4, &bytes, &size, NULL, &error));
    assert_non_null(strstr(error.message, "larger than the limit of 4 bytes"));
    remove_all();

    /* More than fits in a pipe and in the first buffer. */
    enum { SIZE = 300000 };
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (int i = 0; i < SIZE; i += 3)
            if (write(ends[1], "abc", 3) != 3)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_true(file_read(path, 1 << 20, &bytes, &size, NULL, &error));
    assert_int_equal(size, SIZE);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], "abc"[i % 3]);
    free(bytes);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_links_name_the_same_file(void **state)
{
    (void)state;
    assert_true(write_text(in_folder("a"), "text", NULL));
    assert_true(write_text(in_folder("b"), "text", NULL));
    assert_int_equal(link(in_folder("a"), in_folder("hard")), 0);
    assert_int_equal(symlink("a", in_folder("soft")), 0);
    assert_true(file_same(in_folder("a"), in_folder("./a")));
    assert_true(file_same(in_folder("a"), in_folder("hard")));
    assert_true(file_same(in_folder("soft"), in_folder("a")));
    assert_false(file_same(in_folder("a"), in_folder("b")));
    assert_false(file_same(in_folder("a"), in_folder("missing")));
    assert_false(file_same("-", "-"));
    assert_false(file_same("/dev/null", "/dev/null"));
    remove_all();
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writing_keeps_mode_and_links),
        cmocka_unit_test(test_a_plain_name_is_in_the_working_folder),
        cmocka_unit_test(test_a_failed_write_leaves_the_old_file),
        cmocka_unit_test(test_a_file_without_the_right_to_write_is_kept),
        cmocka_unit_test(test_a_pipe_stays_a_pipe),
        cmocka_unit_test(test_an_interrupted_write_leaves_a_whole_file),
        cmocka_unit_test(test_no_signal_leaves_a_temporary_file),
        cmocka_unit_test(test_reading_takes_whole_files_up_to_the_limit),
        cmocka_unit_test(test_links_name_the_same_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
