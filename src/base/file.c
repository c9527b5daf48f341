/* SPDX-License-Identifier: MIT
 *
 * Whole files. Output goes to a temporary file, which is renamed when it is complete. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first buffer for a pipe. It doubles as needed. */
enum { FIRST_CAPACITY = 1 << 16 };

bool file_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *file_input_name(const char *path)
{
    return file_is_standard(path) ? "standard input" : path;
}

const char *file_output_name(const char *path)
{
    return file_is_standard(path) ? "standard output" : path;
}

/* ---- Reading ---- */

/* Read FD to its end. The buffer has CAPACITY bytes at first. For a regular file that is one more than its size, so
 * that the read that finds the end needs no larger buffer. At least one byte of the buffer stays free. */
static bool read_all(int fd, const char *name, size_t limit, size_t capacity, uint8_t **bytes, size_t *size,
                     struct error *error)
{
    uint8_t *buffer = malloc(capacity), *larger;
    size_t used = 0;
    while (buffer != NULL) {
        const ssize_t got = read(fd, buffer + used, capacity - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            error_about(error, ERROR_WORK, name, "cannot be read: %s", strerror(errno));
            goto fail;
        }
        used += (size_t)got;
        if (used > limit) {
            error_about(error, ERROR_WORK, name,
                        "is larger than the %zu bytes that are read at most; give a smaller file", limit);
            goto fail;
        }
        if (got == 0) {
            *bytes = buffer;
            *size = used;
            return true;
        }
        if (used == capacity) {
            larger = capacity <= SIZE_MAX / 2 ? realloc(buffer, capacity * 2) : NULL;
            if (larger == NULL)
                break;
            buffer = larger;
            capacity *= 2;
        }
    }
    error_about(error, ERROR_WORK, name, "there is not enough memory to read it");
fail:
    free(buffer);
    return false;
}

/* Read a file, which may be empty. The buffer has a free byte after the content. */
static bool read_file(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error)
{
    const char *name = file_input_name(path);
    const int fd = file_is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    bool done = false;
    *bytes = NULL;
    *size = 0;
    if (fd < 0 || fstat(fd, &status) != 0)
        error_about(error, ERROR_WORK, name, "cannot be read: %s", strerror(errno));
    else if (S_ISDIR(status.st_mode))
        error_about(error, ERROR_WORK, name, "is a folder; give the path of a file");
    else if (S_ISREG(status.st_mode) && status.st_size > 0 && (uintmax_t)status.st_size > limit)
        error_about(error, ERROR_WORK, name, "is larger than the %zu bytes that are read at most; give a smaller file",
                    limit);
    else if (S_ISREG(status.st_mode) && status.st_size > 0)
        done = read_all(fd, name, limit, (size_t)status.st_size + 1, bytes, size, error);
    else
        done = read_all(fd, name, limit, FIRST_CAPACITY, bytes, size, error);
    if (fd > STDERR_FILENO)
        close(fd);
    return done;
}

bool file_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error)
{
    if (!read_file(path, limit, bytes, size, error))
        return false;
    if (*size > 0)
        return true;
    free(*bytes);
    *bytes = NULL;
    return error_about(error, ERROR_WORK, file_input_name(path),
                       "is empty (0 bytes); give a file with something in it");
}

bool file_read_text(const char *path, size_t limit, char **text, size_t *size, struct error *error)
{
    uint8_t *bytes;
    const bool done = read_file(path, limit, &bytes, size, error);
    *text = (char *)bytes;
    if (done)
        (*text)[*size] = '\0';
    return done;
}

/* ---- Writing ---- */

/* Say why PATH cannot be written, from errno, and what to do if that is clear. */
static bool write_failed(const char *path, struct error *error)
{
    const int reason = errno;
    const char *advice = "";
    if (reason == EACCES || reason == EPERM || reason == EROFS)
        advice = "; choose a file and a folder that you may write to";
    else if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        advice = "; make room or choose another folder";
    else if (reason == ENOENT || reason == ENOTDIR)
        advice = "; its folder must exist";
    return error_about(error, ERROR_WORK, path, "cannot be written: %s%s", strerror(reason), advice);
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* Write to a pipe, a terminal or a device. */
static bool write_direct(const char *path, const uint8_t *bytes, size_t size, struct error *error)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    bool done = fd >= 0 && write_all(fd, bytes, size);
    if (!done)
        write_failed(path, error);
    if (fd >= 0 && close(fd) != 0 && done)
        done = write_failed(path, error);
    return done;
}

/* The name of a temporary file, hidden and random. */
struct temporary {
    char name[sizeof ".gpuconv-0123456789abcdef"]; /* empty if the file has none */
};

/* Find a new name in FOLDER. If UNNAMED is -1, make a file of that name with MODE; otherwise link the open file UNNAMED
 * to it. Returns the open file, or -1. */
static int temporary_name(int folder, mode_t mode, int unnamed, struct temporary *temporary)
{
    for (int attempt = 0; attempt < 100; attempt++) { /* with 64 random bits, the first is new as a rule */
        uint64_t random = 0;
        int fd = -1;
        if (getrandom(&random, sizeof random, 0) < 0)
            break;
        snprintf(temporary->name, sizeof temporary->name, ".gpuconv-%016llx", (unsigned long long)random);
        if (unnamed < 0) {
            fd = openat(folder, temporary->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        } else {
            char link[32];
            snprintf(link, sizeof link, "/proc/self/fd/%d", unnamed);
            if (linkat(AT_FDCWD, link, folder, temporary->name, AT_SYMLINK_FOLLOW) == 0)
                fd = unnamed;
        }
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    temporary->name[0] = '\0';
    return -1;
}

/* Open a new file in FOLDER. If the file system can, the file has no name, so that it disappears however the process
 * ends; otherwise it has a name from the beginning. */
static int temporary_open(int folder, mode_t mode, struct temporary *temporary)
{
    const int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    temporary->name[0] = '\0';
    if (fd >= 0 && access("/proc/self/fd", X_OK) == 0) /* linkat needs it */
        return fd;
    if (fd >= 0)
        close(fd);
    return temporary_name(folder, mode, -1, temporary);
}

/* Flush FOLDER, so that a rename in it survives a power cut. Some file systems cannot do that (EINVAL), and a folder
 * that this process may not read cannot be opened. Neither is an error: the file is complete anyway. */
static bool folder_flush(int folder)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd < 0 || fsync(fd) == 0 || errno == EINVAL;
    if (fd >= 0)
        close(fd);
    return done;
}

/* Write the file NAME in FOLDER. NAME is no symbolic link. A new file gets MODE less the umask; a file that REPLACES
 * another gets exactly MODE. FOLDER is open: all steps happen in the same folder, even if it is renamed meanwhile.
 * Signals are blocked until no temporary file is left, because most of them end the program. */
static bool write_renamed(int folder, const char *name, mode_t mode, bool replaces, const uint8_t *bytes, size_t size)
{
    sigset_t all, before;
    struct temporary temporary;
    bool done;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);

    const int fd = temporary_open(folder, mode, &temporary);
    done = fd >= 0 && (!replaces || fchmod(fd, mode) == 0) && write_all(fd, bytes, size) &&
           (!replaces || fsync(fd) == 0 || errno == EINVAL) &&
           (temporary.name[0] != '\0' || temporary_name(folder, mode, fd, &temporary) >= 0);
    int reason = errno;
    if (fd >= 0 && close(fd) != 0 && done) {
        reason = errno;
        done = false;
    }
    if (done && renameat(folder, temporary.name, folder, name) != 0) {
        reason = errno;
        done = false;
    }
    if (!done && temporary.name[0] != '\0')
        unlinkat(folder, temporary.name, 0);
    if (done && replaces && !folder_flush(folder)) {
        reason = errno;
        done = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return done;
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

bool file_write(const char *path, const uint8_t *bytes, size_t size, struct error *error)
{
    struct stat status;
    char *target = NULL, *folder = NULL;
    bool done = false;
    if (file_is_standard(path) || strcmp(path, "/dev/stdout") == 0)
        return write_all(STDOUT_FILENO, bytes, size) || write_failed("standard output", error);
    const bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return write_failed(path, error);
    if (exists && S_ISDIR(status.st_mode))
        return error_about(error, ERROR_WORK, path, "is a folder; give the path of a file");
    if (exists && !S_ISREG(status.st_mode))
        return write_direct(path, bytes, size, error);
    if (!exists && lstat(path, &status) == 0)
        return error_about(error, ERROR_WORK, path,
                           "is a symbolic link to a file that does not exist; remove it or give the file's own path");
    if (!exists && (path[0] == '\0' || path[strlen(path) - 1] == '/'))
        return error_about(error, ERROR_WORK, path, "names a folder; give the path of a file");
    /* A rename needs no right to write the old file, but the file's owner may have removed that right on purpose. */
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return write_failed(path, error);

    target = exists ? realpath(path, NULL) : strdup(path);
    folder = target != NULL ? file_folder(target) : NULL;
    const int open_folder = folder != NULL ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (open_folder >= 0) {
        const char *slash = strrchr(target, '/');
        done = write_renamed(open_folder, slash != NULL ? slash + 1 : target, exists ? status.st_mode & 0777 : 0666,
                             exists, bytes, size);
    }
    if (!done)
        write_failed(path, error);
    if (open_folder >= 0)
        close(open_folder);
    free(folder);
    free(target);
    return done;
}

/* ---- Folders ---- */

bool file_make_folders(const char *path, struct error *error)
{
    struct stat status;
    char *folder = strdup(path);
    bool done = folder != NULL;
    errno = ENOMEM;
    for (char *at = folder; done && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char after = *at;
        *at = '\0';
        if (mkdir(folder, 0777) != 0) { /* it may exist, or another process made it just now */
            const int reason = errno;
            const bool there = stat(folder, &status) == 0;
            done = there && S_ISDIR(status.st_mode);
            errno = there ? ENOTDIR : reason;
        }
        *at = after;
    }
    free(folder);
    return done || error_about(error, ERROR_WORK, path,
                               "the folder cannot be made: %s; choose one that you may write to", strerror(errno));
}

bool file_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return !file_is_standard(a) && !file_is_standard(b) && stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
           S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}
