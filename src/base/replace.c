/* SPDX-License-Identifier: MIT
 *
 * Writing files. Output goes to a temporary file, which is renamed when it is complete. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h> /* the sizes of extended attributes */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Say why PATH, which EXISTS or not, cannot be written, from errno, and what to do if that is clear. */
static bool write_failed(const char *path, bool exists, struct error *error)
{
    const int reason = errno;
    const char *advice = "";
    if (reason == EACCES || reason == EPERM || reason == EROFS)
        advice = "; choose a file and a folder that you may write to";
    else if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        advice = "; free some space or choose another folder";
    else if (reason == ENOENT || reason == ENOTDIR)
        advice = "; its folder must exist";
    error_about(error, error_of_errno(reason, ERROR_OUTPUT, ERROR_WRITE), path, "cannot be written: %s%s",
                strerror(reason), advice);
    if (error != NULL)
        error->no_new_files = file_refuses_new(reason) && (!exists || reason != EACCES);
    return false;
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

/* Close FD, unless it is -1. Returns DONE, or false if the file cannot be closed. errno is of the first failure. */
static bool close_after(int fd, bool done)
{
    const int reason = errno;
    if (fd >= 0 && close(fd) != 0 && done)
        return false;
    errno = reason;
    return done;
}

/* Find a new name in FOLDER. If UNNAMED is -1, make a file of that name with MODE; otherwise link the open file UNNAMED
 * to it. Returns the open file, or -1. */
static int temporary_name(int folder, mode_t mode, int unnamed, char temporary[FILE_TEMPORARY])
{
    for (int attempt = 0; attempt < 100; attempt++) { /* with 64 random bits, the first is new as a rule */
        uint64_t random = 0;
        int fd = -1;
        if (getrandom(&random, sizeof random, 0) < 0)
            break;
        snprintf(temporary, FILE_TEMPORARY, ".gpuconv-%016llx", (unsigned long long)random);
        if (unnamed < 0) {
            fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        } else {
            char link[32];
            snprintf(link, sizeof link, "/proc/self/fd/%d", unnamed);
            if (linkat(AT_FDCWD, link, folder, temporary, AT_SYMLINK_FOLLOW) == 0)
                fd = unnamed;
        }
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    temporary[0] = '\0';
    return -1;
}

/* Open a new file in FOLDER. If the file system can, the file has no name, so that it disappears however the process
 * ends; otherwise it has a name from the beginning. */
static int temporary_open(int folder, mode_t mode, char temporary[FILE_TEMPORARY])
{
    const int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    temporary[0] = '\0';
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
    return close_after(fd, fd < 0 || fsync(fd) == 0 || errno == EINVAL);
}

/* ---- Attributes of a replaced file ---- */

/* The access control list, as the kernel gives it. */
static const char access_list[] = "system.posix_acl_access";

/* May the attribute NAME go to a file of other content? The rights of a program, and the checksums that the kernel's
 * integrity checks keep, belong to the old content. */
static bool outlives_content(const char *name)
{
    return strcmp(name, "security.capability") != 0 && strcmp(name, "security.ima") != 0 &&
           strcmp(name, "security.evm") != 0;
}

/* Copy the extended attributes of the open file FROM, among them the access control list if WITH_ACCESS_LIST. Skip what
 * the system does not let this process read or set. */
static bool copy_attributes(int from, int to, bool with_access_list)
{
    if (flistxattr(from, NULL, 0) <= 0) /* the usual case, or the file system has none */
        return true;
    char *names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX); /* the kernel's limits; the value follows the names */
    if (names == NULL)
        return false;
    char *value = names + XATTR_LIST_MAX;
    const ssize_t length = flistxattr(from, names, XATTR_LIST_MAX);
    bool done = true;
    for (const char *name = names; done && name < names + length; name += strlen(name) + 1) {
        if (!outlives_content(name) || (!with_access_list && strcmp(name, access_list) == 0))
            continue;
        const ssize_t size = fgetxattr(from, name, value, XATTR_SIZE_MAX);
        done = size < 0 || fsetxattr(to, name, value, (size_t)size, 0) == 0 ||
               (errno != ENOSPC && errno != EDQUOT && errno != ENOMEM && errno != EIO);
    }
    const int reason = errno;
    free(names);
    errno = reason;
    return done;
}

/* Give the file TO, which nobody else may read yet, the rights and attributes of the file FROM. INFO is of FROM; FROM
 * is -1 if it cannot be read. The set-ID bits would run new content with another's rights. If the group, or an access
 * control list, cannot be kept, the bits of the group would let others in: then the group may do what everybody may. */
static bool keep_attributes(int from, const struct stat *info, int to)
{
    const bool grouped = fchown(to, info->st_uid, info->st_gid) == 0 || fchown(to, (uid_t)-1, info->st_gid) == 0;
    mode_t mode = info->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO | S_ISVTX);
    if (!grouped || from < 0)
        mode = (mode & ~(mode_t)S_IRWXG) | (mode & S_IRWXO) << 3;
    fremovexattr(to, access_list); /* the folder may have given it one */
    return fchmod(to, mode) == 0 && (from < 0 || copy_attributes(from, to, grouped));
}

/* ---- Replacing ---- */

/* Find what is at PATH, and open the folder for a temporary file. Pipes and devices are opened themselves. */
static bool find_target(struct file_output *output, const char *path, struct error *error)
{
    struct stat *status = &output->info;
    const bool standard = file_is_standard(path) || strcmp(path, "/dev/stdout") == 0;
    *output = (struct file_output){.path = standard ? "standard output" : path, .folder = -1, .descriptor = -1};
    if (standard) {
        output->descriptor = STDOUT_FILENO;
        return true;
    }
    const bool exists = output->exists = stat(path, status) == 0;
    if (!exists && errno != ENOENT)
        return write_failed(path, exists, error);
    if (exists && S_ISDIR(status->st_mode))
        return error_about(error, ERROR_OUTPUT, path, "is a folder; give the path of a file");
    if (exists && !S_ISREG(status->st_mode)) {
        output->descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return output->descriptor >= 0 || write_failed(path, exists, error);
    }
    if (!exists && lstat(path, status) == 0 && S_ISLNK(status->st_mode)) /* another file may have come just now */
        return error_about(error, ERROR_OUTPUT, path,
                           "is a symbolic link to a file that does not exist; remove it, or give the file's path");
    if (!exists && (path[0] == '\0' || path[strlen(path) - 1] == '/'))
        return error_about(error, ERROR_OUTPUT, path, "is the path of a folder; give the path of a file");
    /* A rename needs no right to write the old file, but the file's owner may have removed that right on purpose. */
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return write_failed(path, exists, error);

    output->real = exists ? realpath(path, NULL) : strdup(path);
    char *folder = output->real != NULL ? file_folder(output->real) : NULL;
    if (folder != NULL)
        output->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int reason = errno;
    free(folder);
    errno = reason;
    return output->folder >= 0 || write_failed(path, exists, error);
}

/* Open the temporary file, unless the output is written itself. */
static bool open_temporary(struct file_output *output, struct error *error)
{
    if (output->folder >= 0)
        output->descriptor = temporary_open(output->folder, output->exists ? 0600 : 0666, output->temporary);
    return output->descriptor >= 0 || write_failed(output->path, output->exists, error);
}

/* Give the temporary file a name, if it has none, and what it takes over from the old file. */
static bool complete_temporary(struct file_output *output)
{
    const int folder = output->folder, fd = output->descriptor;
    const int old = output->exists ? openat(folder, file_name(output->real),
                                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
                                   : -1;
    if (old >= 0)
        fstat(old, &output->info); /* this cannot fail */
    const bool done =
        (!output->exists || (keep_attributes(old, &output->info, fd) && (fsync(fd) == 0 || errno == EINVAL))) &&
        (output->temporary[0] != '\0' || temporary_name(folder, 0, fd, output->temporary) >= 0);
    close_after(old, false); /* it was only read */
    return done;
}

/* Rename the temporary file to the output's name, if GUARD allows it; *REFUSED says that it does not. */
static bool rename_guarded(const struct file_output *output, const struct file_guard *guard, bool *refused,
                           struct error *error)
{
    struct stat info;
    const int folder = output->folder;
    const char *name = file_name(output->real);
    if (guard == NULL)
        return renameat(folder, output->temporary, folder, name) == 0;
    guard->begin(guard->context);
    const bool there = fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    *refused = !guard->allow(guard->context, there ? &info : NULL, error);
    const bool done = !*refused && renameat(folder, output->temporary, folder, name) == 0;
    const int reason = errno;
    guard->end(guard->context, done && fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? &info : NULL);
    errno = reason;
    return done;
}

bool file_output_open(struct file_output *output, const char *path, struct error *error)
{
    return find_target(output, path, error) && open_temporary(output, error);
}

bool file_output_write(const struct file_output *output, const void *bytes, size_t size, struct error *error)
{
    return write_all(output->descriptor, bytes, size) || write_failed(output->path, output->exists, error);
}

bool file_output_close(struct file_output *output, bool keep, const struct file_guard *guard, struct error *error)
{
    const int folder = output->folder, fd = output->descriptor;
    bool refused = false, done = keep && (folder < 0 || complete_temporary(output));
    done = close_after(fd != STDOUT_FILENO ? fd : -1, done) &&
           (folder < 0 || rename_guarded(output, guard, &refused, error));
    const int reason = errno;
    if (!done && output->temporary[0] != '\0')
        unlinkat(folder, output->temporary, 0);
    errno = reason;
    done = done && (folder < 0 || !output->exists || folder_flush(folder));
    if (keep && !done && !refused)
        write_failed(output->path, output->exists, error);
    if (folder >= 0)
        close(folder);
    free(output->real);
    *output = (struct file_output){.folder = -1, .descriptor = -1};
    return done;
}

bool file_write(const char *path, const uint8_t *bytes, size_t size, const struct file_guard *guard,
                struct error *error)
{
    struct file_output output;
    sigset_t all, before;
    bool done = find_target(&output, path, error);
    const bool renames = output.folder >= 0;
    sigfillset(&all);
    if (renames) /* until no temporary file is left, because most signals end the program */
        pthread_sigmask(SIG_BLOCK, &all, &before);
    done = done && open_temporary(&output, error) && file_output_write(&output, bytes, size, error);
    done = file_output_close(&output, done, guard, error);
    if (renames)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}
