/* SPDX-License-Identifier: MIT
 *
 * Names, reading and folders. replace.c writes. */
#include "base/file.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first buffer for a pipe. It doubles as needed. */
enum { FIRST_CAPACITY = 1 << 16 };

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

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

/* Say that NAME cannot be read, from REASON, an errno. LIMIT is the size that it may have. */
static bool report_read_error(const char *name, int reason, size_t limit, enum error_code code, struct error *error)
{
    switch (reason) {
    case ENOMEM:
        return error_no_memory(error, "the bytes of %s", name);
    case EFBIG:
        return error_about(error, code == ERROR_WORK ? ERROR_LIMIT : code, name,
                           "is larger than the limit of %zu bytes; give a smaller file", limit);
    case ENODEV:
        return error_about(error, code, name, "is a device, which may have no end; give a file, or a pipe");
    case EISDIR:
        return error_about(error, code, name, "is a folder; give the path of a file");
    default:
        return error_about(error, error_of_errno(reason, code, ERROR_READ), name, "cannot be read: %s",
                           strerror(reason));
    }
}

/* Read FD to its end, or only FILE_HEAD bytes if IS_WANTED, unless NULL, does not want what begins so. The buffer has
 * CAPACITY bytes at first. For a regular file that is one more than its size, so that the read that finds the end needs
 * no larger buffer. At least one byte of the buffer stays free. Returns false with the reason in errno. */
static bool read_all(int fd, size_t limit, size_t capacity, file_head_judge *is_wanted, uint8_t **bytes, size_t *size)
{
    uint8_t *buffer = bytes_allocate(capacity), *larger;
    size_t used = 0;
    int reason = ENOMEM;
    while (buffer != NULL) {
        const bool is_head = is_wanted != NULL && used < FILE_HEAD && capacity > FILE_HEAD;
        const ssize_t got = read(fd, buffer + used, (is_head ? FILE_HEAD : capacity) - used);
        if (got < 0 && errno == EINTR)
            continue;
        used += got > 0 ? (size_t)got : 0;
        if (got < 0 || used > limit) {
            reason = got < 0 ? errno : EFBIG;
            break;
        }
        if (got == 0 || (is_head && used == FILE_HEAD && !is_wanted(buffer, used))) {
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
    free(buffer);
    errno = reason;
    return false;
}

/* Read a file, which may be empty. The buffer has a free byte after the content. CODE is for a file that cannot be
 * read. */
static bool read_file(const char *path, size_t limit, file_head_judge *is_wanted, enum error_code code,
                      struct blob *content, struct stat *info, struct error *error)
{
    const int fd = file_is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status = {0};
    *content = (struct blob){0};
    bool done = fd >= 0 && fstat(fd, &status) == 0;
    if (done) {
        const bool sized = S_ISREG(status.st_mode) && status.st_size > 0, is_device = S_ISCHR(status.st_mode);
        const bool large = sized && (uintmax_t)status.st_size > limit;
        done = !large && read_all(fd, is_device && limit > FILE_DEVICE_MAX ? FILE_DEVICE_MAX : limit,
                                  sized ? (size_t)status.st_size + 1 : FIRST_CAPACITY, is_device ? NULL : is_wanted,
                                  &content->bytes, &content->size);
        errno = large ? EFBIG : is_device && errno == EFBIG ? ENODEV : errno;
    }
    if (!done)
        report_read_error(file_input_name(path), errno, limit, code, error);
    if (fd > STDERR_FILENO)
        close(fd);
    if (info != NULL)
        *info = status;
    return done;
}

bool file_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct stat *info, struct error *error)
{
    return file_read_wanted(path, limit, NULL, bytes, size, info, error);
}

bool file_read_wanted(const char *path, size_t limit, file_head_judge *is_wanted, uint8_t **bytes, size_t *size,
                      struct stat *info, struct error *error)
{
    struct blob content;
    const bool done = read_file(path, limit, is_wanted, ERROR_WORK, &content, info, error);
    *bytes = content.size > 0 ? content.bytes : NULL;
    *size = content.size;
    if (!done || content.size > 0)
        return done;
    free(content.bytes);
    return error_about(error, ERROR_WORK, file_input_name(path),
                       "is empty (0 bytes); give a file with something in it");
}

bool file_read_text(const char *path, size_t limit, enum error_code code, char **text, size_t *size,
                    struct error *error)
{
    struct blob content;
    const bool done = read_file(path, limit, NULL, code, &content, NULL, error);
    *text = (char *)content.bytes;
    *size = content.size;
    if (done)
        (*text)[*size] = '\0';
    return done;
}

/* ---- Folders ---- */

bool file_refuses_new(int reason)
{
    return reason == ENOSPC || reason == EDQUOT || reason == EROFS || reason == EACCES;
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

bool file_remove(const char *path, struct error *error)
{
    return unlink(path) == 0 || error_about(error, error_of_errno(errno, ERROR_OUTPUT, ERROR_WRITE), path,
                                            "cannot be deleted: %s; delete it by hand", strerror(errno));
}

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
    if (done)
        return true;
    const int reason = errno;
    error_about(error, error_of_errno(reason, ERROR_OUTPUT, ERROR_WRITE), path,
                "the folder cannot be made: %s; choose a folder that you may write to", strerror(reason));
    if (error != NULL)
        error->no_new_files = file_refuses_new(reason);
    return false;
}

/* ---- Which file it is ---- */

static bool find_file(const char *path, int standard, struct stat *info)
{
    return (file_is_standard(path) ? fstat(standard, info) : stat(path, info)) == 0 && S_ISREG(info->st_mode);
}

bool file_find_input(const char *path, struct stat *info)
{
    return find_file(path, STDIN_FILENO, info);
}

bool file_find_output(const char *path, struct stat *info)
{
    return find_file(path, STDOUT_FILENO, info);
}

bool file_is_inside(const char *path, const char *folder)
{
    char real[PATH_MAX], *nearest = strdup(path);
    struct stat outer, status;
    bool inside = false;
    while (nearest != NULL && realpath(nearest, real) == NULL) { /* the nearest parent that exists */
        char *parent = strcmp(nearest, ".") != 0 && strcmp(nearest, "/") != 0 ? file_folder(nearest) : NULL;
        free(nearest);
        nearest = parent;
    }
    char *end = nearest != NULL && stat(folder, &outer) == 0 ? real + strlen(real) : NULL;
    for (; end != NULL && !inside; end = strrchr(real, '/')) {
        end[end == real] = '\0'; /* the root keeps its slash */
        inside = stat(real, &status) == 0 && file_is_one(&status, &outer);
        if (end == real || real[1] == '\0')
            break;
    }
    free(nearest);
    return inside;
}

bool file_same(const char *input, const char *output)
{
    struct stat read, written;
    return file_find_input(input, &read) && file_find_output(output, &written) && file_is_one(&read, &written);
}
